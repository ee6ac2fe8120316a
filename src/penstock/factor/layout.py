"""Which rows of an objective make up which block: near ones together."""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np

from penstock._types import FloatArray, IndexArray
from penstock.factor.blocks import ArrayRows, RowBlock, Wiring, cut_graph
from penstock.factor.objectives import Objective
from penstock.factor.strata import equal_runs
from penstock.graph.partition import arrange_rows


@dataclass(frozen=True, eq=False)
class Layout:
    """Blocks of near rows: block b has the rows order[bounds[b]:bounds[b+1]].

    >>> from penstock.factor import nmf
    >>> layout = Layout.of(nmf(np.array([[9.0], [0.0], [8.0], [1.0]])), 2)
    >>> layout.bounds.tolist(), sorted(layout.order[:2].tolist())
    ([0, 2, 4], [1, 3])
    """

    order: IndexArray
    bounds: IndexArray

    @classmethod
    def of(cls, objective: Objective, n_blocks: int) -> Layout:
        """Near rows together; without a table, runs of rows. There may be fewer blocks than asked for."""
        n = objective.n_rows
        if objective.A is None:
            return cls(np.arange(n), equal_runs(n, min(n_blocks, n)))
        return cls(*arrange_rows(_without_holes(objective.A), min(n_blocks, n)))

    @property
    def members(self) -> list[IndexArray]:
        """The rows of each block."""
        return [self.order[first:last] for first, last in pairwise(self.bounds)]

    def arranged(self, objective: Objective) -> Objective:
        """The objective with its rows block by block."""
        A, S = objective.A, objective.S
        A = None if A is None else A[self.order]
        return replace(objective, A=A, S=None if S is None else S[self.order][:, self.order])

    def cut(self, objective: Objective) -> tuple[list[RowBlock], Wiring]:
        """The blocks, with their rows of the table if there is one, and who is told what."""
        blocks, wiring = cut_graph(objective.S, self.order, self.bounds)
        if objective.A is not None:
            tables = [ArrayRows(objective.A[rows]) for rows in self.members]
            blocks = [replace(block, rows=rows) for block, rows in zip(blocks, tables, strict=True)]
        return blocks, wiring

    def restored(self, W: FloatArray) -> FloatArray:
        """Rows that are in the order of the blocks, in their own again."""
        result = np.empty_like(W)
        result[self.order] = W
        return result


def _without_holes(A: FloatArray) -> FloatArray:
    """A with the means of the columns where entries are missing: only to say which rows are near each other."""
    known = np.isfinite(A)
    if known.all():
        return A
    means = np.where(known, A, 0.0).sum(axis=0) / np.maximum(known.sum(axis=0), 1)
    return np.where(known, A, means)
