"""Descent by blocks of rows on this machine's threads: what a cluster does, for an objective that is in memory."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any

import numpy as np

from penstock._types import Factors, FloatArray, Solution
from penstock.factor.auto import Auto
from penstock.factor.block_starts import BlockStart, given_start
from penstock.factor.blocks import LocalCrew, RowBlock, Wiring
from penstock.factor.layout import Layout
from penstock.factor.loop import Progress
from penstock.factor.objectives import Objective
from penstock.factor.row_blocks import BlockSolution, RowBlocks, descend_from, fit_by_blocks
from penstock.factor.terms import Terms


@dataclass(frozen=True, eq=False)
class LocalBlocks:
    """An objective cut into blocks of near rows.

    >>> from penstock.factor import nmf
    >>> [block.n for block in LocalBlocks.of(nmf(np.array([[9.0], [0.0], [8.0], [1.0]])), 2).blocks]
    [2, 2]
    """

    layout: Layout
    blocks: list[RowBlock]
    wiring: Wiring

    @classmethod
    def of(cls, objective: Objective, n_blocks: int) -> LocalBlocks:
        """Near rows together; without a table, runs of rows. There may be fewer blocks than asked for."""
        if objective.table is not objective.A:
            raise ValueError("Descent by blocks of rows cannot leave out missing values. Use Coordinate() or Auto().")
        layout = Layout.of(objective, n_blocks)
        return cls(layout, *layout.cut(objective))

    def crew(self, W: FloatArray | None = None) -> LocalCrew:
        """Threads that work on the blocks, each of which has its rows of W."""
        if W is None:
            return LocalCrew(self.blocks)
        return LocalCrew(self.blocks, [{"W": W[rows]} for rows in self.layout.members])

    def gather(self, crew: LocalCrew) -> FloatArray:
        """All of W, rows in the order of the table."""
        return self.layout.restored(np.concatenate(crew.gather("W")))


def solve_locally(
    objective: Objective,
    start: Factors | int,
    settings: Auto | RowBlocks,
    max_iter: int,
    tol: float,
    progress: Progress | None,
    random_state: Any,
) -> Solution:
    """Minimise the objective from a start, or from random ones with so many components."""
    assert settings.n_blocks is not None
    local, terms = LocalBlocks.of(objective, settings.n_blocks), Terms.of(objective)
    if isinstance(start, int):
        crew = local.crew()
        done = fit_by_blocks(crew, local.wiring, terms, start, settings, max_iter, tol, random_state, progress)
        return _solution(local, crew, done)
    crew = local.crew(start.W)
    begun = BlockStart(start.H, [])
    if isinstance(settings, Auto):
        begun = given_start(crew, local.wiring, terms, start.H, min(settings.burn_in, max_iter // 2))
    return _solution(local, crew, descend_from(crew, local.wiring, terms, begun, settings, max_iter, tol, progress))


def _solution(local: LocalBlocks, crew: LocalCrew, done: BlockSolution) -> Solution:
    known = {field.name: getattr(done, field.name) for field in fields(done) if field.name != "H"}
    return Solution(factors=Factors(local.gather(crew), done.H), **known)
