"""One call from an objective to its factors, whichever the solver."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Protocol

import numpy as np

from penstock._blas import one_blas_thread
from penstock._types import Factors, FloatArray, Solution
from penstock.factor.block_sgd import BlockSGD
from penstock.factor.coordinate import Coordinate
from penstock.factor.loop import MAX_ITER, TOL, Progress, descend, finite
from penstock.factor.multiplicative import Multiplicative
from penstock.factor.objectives import Objective, over_seen
from penstock.factor.row_blocks import RowBlocks, solve_locally
from penstock.factor.start import Auto, draws_from, random_start

Settings = Auto | Coordinate | RowBlocks | Multiplicative | BlockSGD

__all__ = ["MAX_ITER", "TOL", "Auto", "Progress", "Settings", "fit_factors", "solve"]


class Solver(Protocol):
    """A run under way with all of W in memory. See `Descent`."""

    @property
    def residual(self) -> float: ...

    @property
    def finished(self) -> bool: ...

    @property
    def settled(self) -> bool: ...

    @property
    def factors(self) -> Factors: ...

    def step(self) -> float: ...


def solve(
    objective: Objective,
    start: Factors,
    *,
    settings: Settings | None = None,
    max_iter: int = MAX_ITER,
    tol: float = TOL,
    progress: Progress | None = None,
    random_state: Any = 0,
) -> Solution:
    """Minimise the objective from one start. Ahmed et al. (2021), eq:main.

    Stops when the KKT residual (`Objective.kkt_residual`) is at most `tol`, or after `max_iter` iterations. `progress`
    is called with the iteration and the objective. `random_state` matters to `BlockSGD` only.

    >>> import numpy as np
    >>> from penstock.factor import nmf, random_start
    >>> objective = nmf(np.outer([1.0, 2.0, 3.0], [1.0, 1.0]))
    >>> solution = solve(objective, random_start(objective, 1, 0), settings=Coordinate(), tol=1e-9)
    >>> solution.converged, solution.objective < 1e-20
    (True, True)
    """
    settings = Auto() if settings is None else settings
    _check_shapes(objective, start)
    with one_blas_thread():
        if isinstance(settings, RowBlocks) or (isinstance(settings, Auto) and settings.n_blocks is not None):
            return solve_locally(objective, start, settings, max_iter, tol, progress, random_state)
        if isinstance(settings, Auto):
            warm = _burn_in(objective, start, min(settings.burn_in, max_iter // 2))
            return _run(objective, warm.factors, Coordinate(), max_iter, tol, progress, None, warm.history)
        return _run(objective, start, settings, max_iter, tol, progress, random_state)


def fit_factors(
    objective: Objective,
    n_components: int,
    settings: Settings | None = None,
    max_iter: int = MAX_ITER,
    tol: float = TOL,
    random_state: Any = None,
    progress: Progress | None = None,
) -> Solution:
    """Draw the start or starts, minimise the objective, return the best. Ahmed et al. (2021), eq:main.

    `start_objectives` holds, for `Auto`, the objective of each start after its burn-in.

    >>> import numpy as np
    >>> from penstock.factor import nmf
    >>> solution = fit_factors(nmf(np.eye(3)), 3, max_iter=500, tol=1e-9, random_state=0)
    >>> solution.objective < 1e-12, len(solution.start_objectives)
    (True, 3)
    """
    settings = Auto() if settings is None else settings
    if not 1 <= n_components <= objective.n_rows:
        raise ValueError(f"n_components must lie between 1 and {objective.n_rows} rows, but is {n_components!r}.")
    rng = draws_from(random_state)
    with one_blas_thread():
        if isinstance(settings, RowBlocks) or (isinstance(settings, Auto) and settings.n_blocks is not None):
            return solve_locally(objective, int(n_components), settings, max_iter, tol, progress, rng)
        if not isinstance(settings, Auto):
            start = _draw(settings, objective, n_components, rng)
            return _run(objective, start, settings, max_iter, tol, progress, rng)
        starts = (random_start(objective, n_components, rng) for _ in range(settings.n_starts))
        warm = [_burn_in(objective, start, min(settings.burn_in, max_iter // 2)) for start in starts]
        best = min(warm, key=lambda tried: tried.history[-1])
        solution = _run(objective, best.factors, Coordinate(), max_iter, tol, progress, None, best.history)
        return replace(solution, start_objectives=np.array([tried.history[-1] for tried in warm]))


def fit_incomplete(
    pose: Callable[[FloatArray], Objective],
    A: FloatArray,
    n_components: int,
    settings: Settings | None = None,
    max_iter: int = MAX_ITER,
    tol: float = TOL,
    random_state: Any = None,
) -> Solution:
    """Minimise the objective that `pose` makes of a table, over the entries of A that are not NaN.

    Without missing entries this is `fit_factors`.

    >>> from penstock.factor import nmf
    >>> A = np.outer([1.0, 2.0, 3.0, 4.0], [1.0, 2.0, 1.0])
    >>> A[1, 1] = np.nan
    >>> W, H = (f := fit_incomplete(nmf, A, 1, tol=1e-6, random_state=0).factors).W, f.H
    >>> round(float(W[1] @ H[:, 1]), 2)
    4.0
    """
    return fit_factors(over_seen(pose(A)), n_components, settings, max_iter, tol, random_state)


def _draw(settings: Settings, objective: Objective, n_components: int, rng: Any) -> Factors:
    if isinstance(settings, BlockSGD):
        return settings.start(objective, n_components, rng)
    return random_start(objective, n_components, rng)


@dataclass(frozen=True)
class _Warm:
    """Where a burn-in ended, and the objective on the way."""

    factors: Factors
    history: list[float]


def _burn_in(objective: Objective, start: Factors, steps: int) -> _Warm:
    solver = Multiplicative().begin(objective, start, None)
    history = [finite(objective.value(solver.factors))]
    history += [finite(solver.step()) for _ in range(steps)]
    return _Warm(solver.factors, history)


class _InMemory:
    """A solver's run as the loop sees it."""

    def __init__(self, objective: Objective, solver: Solver) -> None:
        self._objective, self._solver = objective, solver

    @property
    def residual(self) -> float:
        return self._solver.residual

    @property
    def finished(self) -> bool:
        return self._solver.finished

    @property
    def settled(self) -> bool:
        return self._solver.settled

    def step(self) -> float:
        return self._solver.step()

    def value(self) -> float:
        return self._objective.value(self._solver.factors)

    def kkt_residual(self) -> float:
        return self._objective.kkt_residual(self._solver.factors)


def _run(
    objective: Objective,
    start: Factors,
    settings: Coordinate | Multiplicative | BlockSGD,
    max_iter: int,
    tol: float,
    progress: Progress | None,
    rng: Any,
    history: list[float] | None = None,
) -> Solution:
    solver: Solver = settings.begin(objective, start, rng)
    run = _InMemory(objective, solver)
    done = descend(run, [run.value()] if history is None else history, max_iter, tol, progress)
    return Solution(
        factors=solver.factors,
        objective=done.objective,
        n_iter=done.n_iter,
        converged=done.converged,
        kkt_residual=done.kkt_residual,
        history=done.history,
        start_objectives=done.history[-1:],
    )


def _check_shapes(objective: Objective, start: Factors) -> None:
    K = start.W.shape[1]
    wanted = (objective.n_rows, K), (K, objective.n_columns)
    if (start.W.shape, start.H.shape) != wanted:
        raise ValueError(f"The start must have shapes {wanted}, not {start.W.shape} and {start.H.shape}.")
    for factor in (start.W, start.H):
        if not (np.isfinite(factor).all() and (factor >= 0).all()):
            raise ValueError("The start must be finite and non-negative.")
