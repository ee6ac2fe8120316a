"""Block SGD on blocks of near rows: the local counterpart of a run on a cluster, with the same bits."""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np

from penstock._types import Factors
from penstock.factor._sgd_work import start_profiles, start_weights
from penstock.factor.blocks import LocalCrew
from penstock.factor.layout import Layout
from penstock.factor.objectives import Objective
from penstock.factor.sgd_by_blocks import CrewDescent
from penstock.factor.start import draw_seed
from penstock.factor.strata import StepSettings


def start_in_space(objective: Objective, n_components: int, n_blocks: int, rng: Any) -> Factors:
    """ALAD's start, drawn as `sgd_by_blocks` has each block draw its own.

    >>> from penstock.factor import nmf
    >>> start_in_space(nmf(np.eye(4)), 2, 2, np.random.default_rng(0)).W.shape
    (4, 2)
    """
    layout, seed = Layout.of(objective, n_blocks), draw_seed(rng)
    sizes = enumerate(int(size) for size in np.diff(layout.bounds))
    W = np.concatenate([start_weights(seed, number, n, n_components) for number, n in sizes])
    return Factors(layout.restored(W), start_profiles(seed, n_components, objective.n_columns))


def begin_in_space(
    layout: Layout, objective: Objective, start: Factors, settings: StepSettings, rng: Any
) -> CrewDescent:
    """A run on this machine's threads. The start's rows are in the order of the blocks."""
    blocks, wiring = layout.cut(objective)
    crew = LocalCrew(blocks, [{"W": W} for W in np.split(start.W, layout.bounds[1:-1])])
    return CrewDescent(crew, wiring, objective, settings, start.H, rng)


class Run(Protocol):
    """A run of block SGD whose rows are in the order of the blocks."""

    @property
    def finished(self) -> bool: ...
    @property
    def settled(self) -> bool: ...
    @property
    def factors(self) -> Factors: ...
    def step(self) -> float: ...


class SpaceDescent:
    """A run on blocks of near rows, seen from outside with the rows in their own order."""

    residual = float("inf")

    def __init__(self, layout: Layout, run: Run) -> None:
        self._layout, self._run = layout, run

    @property
    def finished(self) -> bool:
        return self._run.finished

    @property
    def settled(self) -> bool:
        return self._run.settled

    @property
    def factors(self) -> Factors:
        factors = self._run.factors
        return Factors(self._layout.restored(factors.W), factors.H)

    def step(self) -> float:
        return self._run.step()
