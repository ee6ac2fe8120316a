"""One call from an objective to its factors, for all solvers: in memory, by blocks on threads, or on a cluster."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from penstock._blas import one_blas_thread
from penstock._types import Factors, FloatArray, Solution
from penstock.factor._block_sums import BlockProblem
from penstock.factor.block_sgd import BlockSGDDescent, check_terms
from penstock.factor.blocks import Layout, LocalExecutor
from penstock.factor.coordinate import CoordinateDescent
from penstock.factor.loop import InMemoryDescent, Outcome, Progress, check_finite, descend, with_starts
from penstock.factor.multiplicative import MultiplicativeDescent
from penstock.factor.objectives import Objective, over_seen
from penstock.factor.row_blocks import BlockStart, RowBlockDescent, best_start, given_start, one_start
from penstock.factor.settings import MAX_ITER, TOL, Auto, BlockSGD, Coordinate, Multiplicative, RowBlocks, Settings
from penstock.factor.sgd_by_blocks import ExecutorSGDDescent, start_profiles, start_weights
from penstock.factor.start import draw_seed, draws_from, random_start

__all__ = ["MAX_ITER", "TOL", "BlockProblem", "Progress", "Settings", "fit_by_blocks", "fit_factors", "solve"]

BlockSettings = Auto | RowBlocks | BlockSGD


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
    """Minimise an objective from one start. Ahmed et al. (2021), eq:main.

    Use `fit_factors` unless you have a start of your own.

    Parameters
    ----------
    objective : Objective
        What is to be minimised.
    start : Factors
        W of shape (n, K) and H of shape (K, p), finite and ≥ 0.
    settings : Auto, Coordinate, RowBlocks, Multiplicative or BlockSGD, default Auto()
        The solver.
    max_iter : int, default 300
        Most iterations.
    tol : float, default 1e-4
        The run stops when the KKT residual (`Objective.kkt_residual`) is at most this.
    progress : callable, optional
        Called with the iteration and the objective.
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
    settings = Auto() if settings is None else settings
    _check_shapes(objective, start)
    with one_blas_thread():
        if _is_by_blocks(settings, objective):
            return _solve_locally(objective, start, settings, max_iter, tol, progress, random_state)
        if isinstance(settings, Auto):
            start, history = _burn_in(objective, start, min(settings.burn_in, max_iter // 2))
            return _run(
                CoordinateDescent(objective, start, Coordinate().profile_passes), max_iter, tol, progress, history
            )
        return _run_from(objective, start, settings, max_iter, tol, progress, draws_from(random_state))


def fit_factors(
    objective: Objective,
    n_components: int,
    settings: Settings | None = None,
    max_iter: int = MAX_ITER,
    tol: float = TOL,
    random_state: Any = None,
    progress: Progress | None = None,
) -> Solution:
    """Draw one or several random starts, minimise the objective, return the best. Ahmed et al. (2021), eq:main.

    Missing entries of the table (NaN) are left out.

    Parameters
    ----------
    objective : Objective
        What is to be minimised.
    n_components : int
        Number of latent groups K, at most the number of rows.
    settings : Auto, Coordinate, RowBlocks, Multiplicative or BlockSGD, default Auto()
        The solver.
    max_iter : int, default 300
        Most iterations.
    tol : float, default 1e-4
        The run stops when the KKT residual (`Objective.kkt_residual`) is at most this.
    random_state : int, RandomState, Generator or None, default None
        Source of the random starts.
    progress : callable, optional
        Called with the iteration and the objective.

    Returns
    -------
    Solution
        `start_objectives` holds, for `Auto`, the objective of each start after its burn-in.

    Examples
    --------
    >>> import numpy as np
    >>> from penstock.factor import nmf
    >>> solution = fit_factors(nmf(np.eye(3)), 3, max_iter=500, tol=1e-9, random_state=0)
    >>> solution.objective < 1e-12, len(solution.start_objectives)
    (True, 3)
    """
    objective, settings = over_seen(objective), Auto() if settings is None else settings
    if not 1 <= n_components <= objective.n_rows:
        raise ValueError(f"n_components must lie between 1 and {objective.n_rows} rows, but is {n_components!r}.")
    rng = draws_from(random_state)
    with one_blas_thread():
        if _is_by_blocks(settings, objective):
            return _solve_locally(objective, int(n_components), settings, max_iter, tol, progress, rng)
        if not isinstance(settings, Auto):
            start = _draw(settings, objective, n_components, rng)
            return _run_from(objective, start, settings, max_iter, tol, progress, rng)
        starts = (random_start(objective, n_components, rng) for _ in range(settings.n_starts))
        warm = [_burn_in(objective, start, min(settings.burn_in, max_iter // 2)) for start in starts]
        best, history = min(warm, key=lambda tried: tried[1][-1])
        descent = CoordinateDescent(objective, best, Coordinate().profile_passes)
        return _run(descent, max_iter, tol, progress, history, np.array([values[-1] for _, values in warm]))


def fit_by_blocks(
    problem: BlockProblem,
    n_components: int,
    settings: BlockSettings | None = None,
    max_iter: int = MAX_ITER,
    tol: float = TOL,
    random_state: Any = None,
    progress: Progress | None = None,
    checkpoint: Callable[[dict[str, Any]], None] | None = None,
    resume: Mapping[str, Any] | None = None,
) -> tuple[FloatArray, Outcome]:
    """Draw the start or starts and minimise an objective over blocks of rows. Ahmed et al. (2021), eq:main.

    The executor says how many blocks there are, whatever the settings do. Every block draws its own rows of W, from
    ``default_rng([seed, start, 1 + block])``, with one seed from `random_state`; H is from ``[seed, start]``.

    Returns H and the outcome; W stays with the executor, as the part "W" of the blocks' states.

    At the start of the descent and after each iteration `checkpoint` is called with a snapshot, a dict of arrays and
    plain values. With it as `resume`, and an executor whose blocks have the states of that moment, the run goes on to
    the same bits.

    >>> from penstock.factor import nmf
    >>> objective = nmf(np.eye(4))
    >>> blocks, coupling = Layout.of(objective, 2).cut(objective)
    >>> problem = BlockProblem(LocalExecutor(blocks), coupling, objective.terms)
    >>> H, outcome = fit_by_blocks(problem, 4, tol=1e-9, random_state=0)
    >>> H.shape, outcome.converged, outcome.objective < 1e-12
    ((4, 4), True, True)
    """
    settings = Auto() if settings is None else settings
    begun = BlockStart(np.zeros((0, 0)))
    with one_blas_thread():
        run: RowBlockDescent | ExecutorSGDDescent
        if resume is not None:
            values = np.asarray(resume["start_objectives"], dtype=np.float64)
            begun = BlockStart(begun.H, [float(value) for value in resume["history"]], values)
            if isinstance(settings, BlockSGD):
                run = ExecutorSGDDescent.resumed(problem, settings, resume)
            else:
                run = RowBlockDescent.resumed(problem, _passes(settings), resume)
        elif isinstance(settings, BlockSGD):
            run = ExecutorSGDDescent.drawn(problem, settings, n_components, random_state)
        else:
            if isinstance(settings, Auto):
                burn_in = min(settings.burn_in, max_iter // 2)
                begun = best_start(problem, n_components, settings.n_starts, burn_in, random_state)
            else:
                begun = one_start(problem, n_components, random_state)
            run = RowBlockDescent(problem, begun.H, _passes(settings))
        return _descend_blocks(run, begun, max_iter, tol, progress, checkpoint, is_new=resume is None)


def _descend_blocks(
    run: RowBlockDescent | ExecutorSGDDescent,
    begun: BlockStart,
    max_iter: int,
    tol: float,
    progress: Progress | None,
    checkpoint: Callable[[dict[str, Any]], None] | None = None,
    *,
    is_new: bool = True,
) -> tuple[FloatArray, Outcome]:
    """Minimise from a start, the W of which the blocks have; its history is continued."""

    def save(history: list[float]) -> None:
        if checkpoint is not None:
            starts = begun.start_objectives
            checkpoint({**run.snapshot(), "history": np.array(history), "start_objectives": starts})

    history = begun.history or [run.value()]
    if is_new:
        save(history)
    outcome = descend(run, history, max_iter, tol, progress, save)
    return run.H, with_starts(outcome, begun.start_objectives)


def _passes(settings: Auto | RowBlocks) -> int:
    return Coordinate().profile_passes if isinstance(settings, Auto) else settings.profile_passes


def _is_by_blocks(settings: Settings, objective: Objective) -> bool:
    """Whether an executor steps blocks of rows. Block SGD keeps all in memory where what fills a table changes."""
    if isinstance(settings, BlockSGD):
        return settings.blocks == "space" and objective.table is objective.A
    return isinstance(settings, RowBlocks) or (isinstance(settings, Auto) and settings.n_blocks is not None)


def _solve_locally(
    objective: Objective,
    start: Factors | int,
    settings: Any,
    max_iter: int,
    tol: float,
    progress: Progress | None,
    random_state: Any,
) -> Solution:
    """Minimise by blocks on this machine's threads, from a start, or from random ones with so many components."""
    if objective.table is not objective.A:
        raise ValueError("Descent by blocks of rows cannot leave out missing values. Use Coordinate() or Auto().")
    if isinstance(settings, BlockSGD):
        check_terms(objective)
    layout = Layout.of(objective, settings.n_blocks)
    blocks, coupling = layout.cut(objective)
    states = None if isinstance(start, int) else [{"W": W} for W in layout.split(start.W)]
    executor = LocalExecutor(blocks, states)
    problem = BlockProblem(executor, coupling, objective.terms)
    if isinstance(start, int):
        H, outcome = fit_by_blocks(problem, start, settings, max_iter, tol, random_state, progress)
    elif isinstance(settings, BlockSGD):
        run = ExecutorSGDDescent(problem, settings, start.H, draws_from(random_state))
        H, outcome = _descend_blocks(run, BlockStart(start.H), max_iter, tol, progress)
    else:
        begun = BlockStart(start.H)
        if isinstance(settings, Auto):
            begun = given_start(problem, start.H, min(settings.burn_in, max_iter // 2))
        descent = RowBlockDescent(problem, begun.H, _passes(settings))
        H, outcome = _descend_blocks(descent, begun, max_iter, tol, progress)
    return outcome.solution(Factors(layout.joined(executor.gather("W")), H))


def _draw(settings: Settings, objective: Objective, n_components: int, rng: Any) -> Factors:
    """A random start on the scale of the problem; for block SGD ALAD's, 0.1·U(0,1)."""
    if not isinstance(settings, BlockSGD):
        return random_start(objective, n_components, rng)
    if settings.blocks == "rows":
        W = 0.1 * rng.random((objective.n_rows, n_components))
        return Factors(W, 0.1 * rng.random((n_components, objective.n_columns)))
    layout, seed = Layout.of(objective, settings.n_blocks), draw_seed(rng)
    sizes = enumerate(int(size) for size in np.diff(layout.bounds))
    W = layout.joined([start_weights(seed, number, n, n_components) for number, n in sizes])
    return Factors(W, start_profiles(seed, n_components, objective.n_columns))


def _run_from(
    objective: Objective,
    start: Factors,
    settings: Settings,
    max_iter: int,
    tol: float,
    progress: Progress | None,
    rng: Any,
) -> Solution:
    if isinstance(settings, Coordinate):
        return _run(CoordinateDescent(objective, start, settings.profile_passes), max_iter, tol, progress)
    if isinstance(settings, Multiplicative):
        return _run(MultiplicativeDescent(objective, start, settings.exponent), max_iter, tol, progress)
    assert isinstance(settings, BlockSGD)
    if settings.blocks == "rows":
        return _run(BlockSGDDescent(objective, start, settings, rng), max_iter, tol, progress)
    layout = Layout.of(objective, settings.n_blocks)
    arranged = Factors(start.W[layout.order], start.H)
    descent = BlockSGDDescent(layout.arranged(objective), arranged, settings, rng, layout.bounds)
    outcome = descend(descent, [descent.value()], max_iter, tol, progress)
    return outcome.solution(Factors(layout.joined([descent.factors.W]), descent.factors.H))


def _run(
    descent: InMemoryDescent,
    max_iter: int,
    tol: float,
    progress: Progress | None,
    history: list[float] | None = None,
    starts: FloatArray | None = None,
) -> Solution:
    outcome = descend(descent, [descent.value()] if history is None else history, max_iter, tol, progress)
    return with_starts(outcome, np.zeros(0) if starts is None else starts).solution(descent.factors)


def _burn_in(objective: Objective, start: Factors, steps: int) -> tuple[Factors, list[float]]:
    """Where some multiplicative steps end, and the objective on the way."""
    descent = MultiplicativeDescent(objective, start, Multiplicative().exponent)
    history = [check_finite(descent.value())]
    history += [check_finite(descent.step()) for _ in range(steps)]
    return descent.factors, history


def _check_shapes(objective: Objective, start: Factors) -> None:
    K = start.W.shape[1]
    wanted = (objective.n_rows, K), (K, objective.n_columns)
    if (start.W.shape, start.H.shape) != wanted:
        raise ValueError(f"The start must have shapes {wanted}, not {start.W.shape} and {start.H.shape}.")
    for factor in (start.W, start.H):
        if not (np.isfinite(factor).all() and (factor >= 0).all()):
            raise ValueError("The start must be finite and non-negative.")
