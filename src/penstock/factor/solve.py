"""One call from an objective to its factors, for all solvers: in memory, by blocks on threads, or on a cluster."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from penstock._threads import one_blas_thread
from penstock._types import Factors, FloatArray, Solution
from penstock.factor.block_sgd import BlockSGDDescent
from penstock.factor.blocks import Layout, LocalExecutor
from penstock.factor.descent import (
    CoordinateDescent,
    InMemoryDescent,
    MultiplicativeDescent,
    Outcome,
    Progress,
    check_finite,
    descend,
)
from penstock.factor.objectives import Objective, over_seen
from penstock.factor.row_blocks import BlockColumns, BlockProblem, RowBlockDescent
from penstock.factor.settings import DEFAULT, MAX_ITER, TOL, BlockSGD, Coordinate, Multiplicative, RowBlocks, Settings
from penstock.factor.start import draw_seed, draws_from, find_start, random_start, spectral_start

_BY_BLOCKS = RowBlocks()
_TRIAL_STEPS = 10  # after which the lower of two starts goes on


def solve(
    objective: Objective,
    start: Factors,
    *,
    settings: Settings = DEFAULT,
    max_iter: int = MAX_ITER,
    tol: float = TOL,
    progress: Progress | None = None,
    random_state: Any = 0,
) -> Solution:
    """Minimise an objective from one start. Ahmed et al. (2021), eq:main.

    Use `fit_factors` unless you have a start of your own.

    Parameters
    ----------
    objective : Objective
        What is to be minimised.
    start : Factors
        W of shape (n, K) and H of shape (K, p), finite and ≥ 0.
    settings, max_iter, tol, progress : as in `fit_factors`
    random_state : int, RandomState, Generator or None, default 0
        Used by `BlockSGD` only.

    Returns
    -------
    Solution
        The factors, how good they are, and how the solver got there.

    Examples
    --------
    >>> import numpy as np
    >>> from penstock.factor import nmf, random_start
    >>> objective = nmf(np.outer([1.0, 2.0, 3.0], [1.0, 1.0]))
    >>> solution = solve(objective, random_start(objective, 1, 0), settings=Coordinate(), tol=1e-9)
    >>> solution.converged, solution.objective < 1e-20
    (True, True)
    """
    K = start.W.shape[1]
    wanted = (objective.n_rows, K), (K, objective.n_columns)
    if (start.W.shape, start.H.shape) != wanted:
        raise ValueError(f"The start must have shapes {wanted}, not {start.W.shape} and {start.H.shape}.")
    if not all(np.isfinite(factor).all() and (factor >= 0).all() for factor in (start.W, start.H)):
        raise ValueError("The start must be finite and non-negative.")
    return _minimise(objective, start, settings, max_iter, tol, progress, random_state)


def fit_factors(
    objective: Objective,
    n_components: int,
    settings: Settings = DEFAULT,
    max_iter: int = MAX_ITER,
    tol: float = TOL,
    random_state: Any = None,
    progress: Progress | None = None,
) -> Solution:
    """Minimise an objective from the solver's own start. Ahmed et al. (2021), eq:main.

    Missing entries of the table (NaN) are left out.

    Parameters
    ----------
    objective : Objective
        What is to be minimised.
    n_components : int
        Number of latent groups K, at most the number of rows.
    settings : Coordinate, RowBlocks, Multiplicative or BlockSGD, default Coordinate()
        The solver.
    max_iter : int, default 300
        Most iterations.
    tol : float, default 1e-4
        The run stops when the KKT residual (`Objective.kkt_residual`) is at most this.
    random_state : int, RandomState, Generator or None, default None
        Source of random numbers. Coordinate descent begins from eigenvectors, on which it has little influence.
    progress : callable, optional
        Called with the iteration and the objective.

    Returns
    -------
    Solution
        The factors, how good they are, and how the solver got there.

    Examples
    --------
    >>> import numpy as np
    >>> from penstock.factor import nmf
    >>> solution = fit_factors(nmf(np.eye(3)), 3, max_iter=500, tol=1e-9, random_state=0)
    >>> solution.converged, solution.objective < 1e-12
    (True, True)
    """
    objective = over_seen(objective)
    if not 1 <= n_components <= objective.n_rows:
        raise ValueError(f"n_components must lie between 1 and {objective.n_rows} rows, but is {n_components!r}.")
    return _minimise(objective, int(n_components), settings, max_iter, tol, progress, random_state)


def _minimise(
    objective: Objective, start: Factors | int, settings: Settings, max_iter: int, tol: float,
    progress: Progress | None, random_state: Any,
) -> Solution:  # fmt: skip
    """Minimise from a start, or from the solver's own with so many components."""
    rng = draws_from(random_state)
    with one_blas_thread():
        if isinstance(settings, RowBlocks):
            if objective.table is not objective.A:
                raise ValueError("Descent by blocks of rows cannot leave out missing values. Use Coordinate().")
            layout = Layout.of(objective, settings.n_blocks)
            blocks, coupling = layout.cut(objective)
            states = None if isinstance(start, int) else [{"W": W} for W in layout.split(start.W)]
            problem = BlockProblem(LocalExecutor(blocks, states), coupling, objective.terms)
            given = start if isinstance(start, int) else start.H
            H, outcome = fit_by_blocks(problem, given, settings, max_iter, tol, rng, progress)
            return Solution(Factors(layout.joined(problem.executor.gather("W")), H), **vars(outcome))
        start = _begin(settings, objective, start, rng) if isinstance(start, int) else start
        run: InMemoryDescent
        if isinstance(settings, Coordinate):
            run = CoordinateDescent(objective, start, settings.profile_passes)
        elif isinstance(settings, Multiplicative):
            run = MultiplicativeDescent(objective, start, settings.exponent)
        else:
            run = BlockSGDDescent(objective, start, settings, rng)
        outcome = descend(run, [check_finite(run.value())], max_iter, tol, progress)
        return Solution(run.factors, **vars(outcome))


def fit_by_blocks(
    problem: BlockProblem,
    start: int | FloatArray,
    settings: RowBlocks = _BY_BLOCKS,
    max_iter: int = MAX_ITER,
    tol: float = TOL,
    random_state: Any = None,
    progress: Progress | None = None,
    checkpoint: Callable[[dict[str, Any]], None] | None = None,
    resume: Mapping[str, Any] | None = None,
) -> tuple[FloatArray, Outcome]:
    """Minimise an objective over blocks of rows; return H and the outcome. Ahmed et al. (2021), eq:main.

    `start` is the number of components, or the H of a start whose W the blocks have. W stays with the executor, as the
    part "W" of the blocks' states. The executor says how many blocks there are, whatever the settings do.

    At the start of the descent and after each iteration `checkpoint` is called with a snapshot, a dict of arrays and
    numbers. With it as `resume`, and an executor whose blocks have the states of that moment, the run goes on to
    the same bits.
    """
    history: list[float] = []
    with one_blas_thread():
        if resume is not None:
            history = [float(value) for value in resume["history"]]
            run = RowBlockDescent.resumed(problem, settings.profile_passes, resume)
        else:
            if not isinstance(start, np.ndarray):
                columns = BlockColumns(problem, start, draw_seed(draws_from(random_state)))
                start = find_start(columns, problem.terms, start)
            run = RowBlockDescent(problem, start, settings.profile_passes)

        def save(history: list[float]) -> None:
            if checkpoint is not None:
                checkpoint({**run.snapshot(), "history": np.array(history)})

        if resume is None:
            history = [check_finite(run.value())]
            save(history)
        outcome = descend(run, history, max_iter, tol, progress, save)
        return run.H, outcome


def _after_a_few_steps(run: CoordinateDescent) -> float:
    return check_finite([run.step() for _ in range(_TRIAL_STEPS)][-1])


def _begin(settings: Settings, objective: Objective, n_components: int, rng: Any) -> Factors:
    """Return the start of a solver: from eigenvectors, random on the scale of the problem, or ALAD's, 0.1·U(0,1)."""
    if isinstance(settings, Coordinate):
        start = spectral_start(objective, n_components, draw_seed(rng))
        if not objective.terms.laplacian:
            return start
        # A Laplacian pulls rows together that the eigenvectors tell apart: there a random start is as often better.
        starts = (start, random_start(objective, n_components, rng))
        return min(
            starts, key=lambda each: _after_a_few_steps(CoordinateDescent(objective, each, settings.profile_passes))
        )
    if not isinstance(settings, BlockSGD):
        return random_start(objective, n_components, rng)
    W = 0.1 * rng.random((objective.n_rows, n_components))
    return Factors(W, 0.1 * rng.random((n_components, objective.n_columns)))
