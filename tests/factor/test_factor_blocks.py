"""Solvers by blocks of rows: coordinate descent and Algorithm 1, on threads or sent elsewhere, to the same bits."""

from __future__ import annotations

import pickle
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from itertools import count, pairwise

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from naive import factors as naive_factors
from naive import row_blocks as naive
from naive.factors import family_loss
from scipy import sparse
from strategies import examples
from strategies_factors import draw_factors, family, random_tree, tables

from penstock._threads import thread_limit
from penstock.detectors.nsnmf import NSNMF
from penstock.factor import (
    BlockSGD,
    Coordinate,
    Factors,
    RowBlocks,
    block_sgd,
    blocks,
    descent,
    fit_factors,
    laplacian_nsnmf,
    nmf,
    nsnmf,
    random_start,
    row_blocks,
    snmf,
    solve,
)
from penstock.factor.block_sgd import BlockSGDDescent, draw_epoch, draw_instances
from penstock.factor.blocks import ArrayRows, Layout, LocalExecutor
from penstock.factor.descent import CoordinateDescent
from penstock.factor.row_blocks import (
    BlockProblem,
    JointSteps,
    RowBlockDescent,
    gram_of,
    lowest_on_unit_interval,
    offers_after,
    polynomial,
)
from penstock.factor.solve import fit_by_blocks

KINDS = ["nmf", "gnmf", "snmf", "nsnmf", "laplacian"]
coefficients = st.floats(-100, 100).map(lambda c: 0.0 if abs(c) < 1e-3 else c)


@pytest.fixture(autouse=True, scope="module")
def one_thread():
    """Rows of a test are too few for two threads to be worth starting."""
    with thread_limit(1):
        yield


@pytest.fixture(autouse=True)
def small_pieces(monkeypatch):
    monkeypatch.setattr(block_sgd, "PIECE", 7)  # several pieces per block even in a small table


def posed(objective, layout, states=None, executor=LocalExecutor):
    """The objective cut into the blocks of a layout."""
    if isinstance(layout, int):
        layout = Layout.of(objective, layout)
    cut, coupling = layout.cut(objective)
    if isinstance(states, np.ndarray):
        states = [{"W": W} for W in layout.split(states)]
    return BlockProblem(executor(cut, states), coupling, objective.terms), layout


def clusters(n=60, seed=0):
    """Two groups of rows, similar within: a problem with one good answer."""
    rng = np.random.default_rng(seed)
    member = np.arange(n) % 2
    A = np.where(member[:, None] == np.arange(4) // 2, 1.0, 0.1) + 0.05 * rng.random((n, 4))
    S = np.zeros((n, n))
    for i in range(2, n):
        S[i, i - 2] = S[i - 2, i] = 1 + rng.random()
    return nsnmf(A, sparse.csr_array(S))


def rugged(n=60, p=7, largest=20.0, seed=0):
    rng = np.random.default_rng(seed)
    return nsnmf(rng.random((n, p)), sparse.csr_array(random_tree(n, rng, largest, diagonal=True)))


# The line search along the joint step of all blocks.


@given(c1=coefficients, c2=coefficients, c3=coefficients, c4=coefficients)
@example(c1=-1.0, c2=0.0, c3=0.0, c4=0.0)
@example(c1=0.0, c2=0.0, c3=0.0, c4=0.0)
@example(c1=1.0, c2=-4.0, c3=0.0, c4=3.5)
@examples(300)
def test_lowest_point_of_a_quartic(c1, c2, c3, c4):
    t = lowest_on_unit_interval(c1, c2, c3, c4)
    grid = np.linspace(0.0, 1.0, 2001)
    assert 0.0 <= t <= 1.0
    assert polynomial(t, c1, c2, c3, c4) <= polynomial(grid, c1, c2, c3, c4).min() + 1e-12
    if polynomial(1.0, c1, c2, c3, c4) < polynomial(grid[:-1], c1, c2, c3, c4).min() - 1e-3:
        assert t == 1.0


def test_joint_steps_that_overflow_or_do_not_lower_the_loss():
    nothing = np.zeros((2, 1, 1))
    for bad in (np.inf, -np.inf, np.nan):
        slopes, bends = np.array([-1.0, bad]), np.diag([bad, 1.0])
        assert JointSteps(slopes, np.eye(2), *[nothing] * 2, 0.0).choose().tolist() == [1.0, 1.0]
        assert JointSteps(-np.ones(2), bends, *[nothing] * 2, 0.0).choose().tolist() == [1.0, 1.0]
    bends = np.array([[0.0, 0, 0], [0, 0.5, 0.8], [0, 0, 0.5]])
    in_turn = JointSteps(np.array([3.0, -1.0, -1.0]), bends, *[np.zeros((3, 1, 1))] * 2, 0.0)
    assert in_turn.choose().tolist() == [0.0, 1.0, 0.0]


@pytest.mark.parametrize("kind", KINDS)
@given(problem=tables(max_rows=8, largest=20.0), n_blocks=st.integers(1, 4), crossing=st.booleans())
@examples(12)
def test_the_loss_along_steps_equals_the_loss(kind, problem, n_blocks, crossing):
    A, S, K, rng = problem
    layout = Layout.of(family(A, S, [kind])[kind], n_blocks)
    owner = np.empty(len(S), dtype=int)
    for block, (a, b) in enumerate(pairwise(layout.bounds)):
        owner[layout.order[a:b]] = block
    S = S if crossing else np.where(owner[:, None] == owner[None, :], S, 0.0)
    objective = family(A, S, [kind])[kind]
    start = draw_factors(objective, K, rng)
    table = A if objective.A is not None else np.zeros((len(S), 0))
    weights = {"symmetric": objective.symmetric, "alpha": objective.alpha, "gamma": objective.gamma}
    weights |= {"laplacian_weight": objective.laplacian}
    cut, _ = posed(objective, layout, start.W)
    executor, terms = cut.executor, cut.terms
    assert crossing or len(cut.coupling.similarities) == 0
    places = executor.each(blocks.begin)
    swept = executor.each(blocks.sweep, terms, start.H, gram_of(places), cut.mean(places), apart=cut.borders(places))
    moved = layout.joined(executor.gather("moved"))
    # Rows are visited in the order of the blocks, not of the table.
    order, back = layout.order, np.argsort(layout.order)
    expected = naive.stale_sweep(
        table[order], S[np.ix_(order, order)], start.W[order], start.H, owner[order], **weights
    )[back]  # fmt: skip
    np.testing.assert_allclose(moved, expected, rtol=1e-8, atol=1e-9)
    steps = cut.joint_steps(start.H, places, swept)
    first = family_loss(table, S, start.W, start.H, **weights)
    for t in (np.ones(executor.n_blocks), np.full(executor.n_blocks, 0.3), rng.random(executor.n_blocks)):
        loss = naive.loss_along(table, S, start.W, moved - start.W, start.H, owner, t, weights)
        assert steps.change(t) == pytest.approx(loss - first, rel=1e-9, abs=1e-11 * (first + loss))
        sums, offered = cut.sums_after(places, swept, t), offers_after(places, swept, t)
        assert cut.value(start.H, sums, offered, t) == pytest.approx(loss, rel=1e-9, abs=1e-13 * first)
        gaps = cut.gaps_after(start.H, sums.G, t, offered)
        ridge = terms.gamma * (np.trace(sums.G) + np.sum(start.H**2)) + terms.laplacian * sums.roughness
        summed = ridge + terms.symmetric * (gaps.on_graph + gaps.off_graph) + terms.alpha * gaps.attributes
        assert summed == pytest.approx(loss, rel=1e-9, abs=1e-13 * first)
    for t in (0.2, 1.0):
        same = steps.change(np.full(executor.n_blocks, t))
        assert polynomial(t, *steps.along_diagonal()) == pytest.approx(same, rel=1e-9, abs=1e-11 * first)


# Coordinate descent by blocks.


def test_without_back_tracking_the_loss_would_rise(monkeypatch):
    objective = snmf(sparse.csr_array(np.ones((12, 12))))
    start = Factors(np.full((12, 1), 0.5), np.zeros((1, 0)))
    held = solve(objective, start, settings=RowBlocks(6), max_iter=10, tol=0.0).history
    assert np.all(np.diff(held) <= 1e-12 * held[0])
    monkeypatch.setattr(JointSteps, "choose", lambda self: np.ones(len(self.slopes)))
    free = solve(objective, start, settings=RowBlocks(6), max_iter=10, tol=0.0).history
    assert free[1] > 1.1 * free[0]


def restarting(checks):
    """A stand-in for `has_risen` that says so at these checks, counted from 1."""
    numbers = count(1)
    return lambda terms, value, before: next(numbers) in checks


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("restarts", [(), (2, 5)])
def test_one_block_that_takes_whole_steps_is_coordinate_descent(kind, restarts, monkeypatch):
    monkeypatch.setattr(JointSteps, "choose", lambda self: np.ones(len(self.slopes)))
    for module in (descent, row_blocks):
        monkeypatch.setattr(module, "has_risen", restarting(restarts))
    rng = np.random.default_rng(5)
    objective = family(rng.random((30, 4)), random_tree(30, rng), [kind])[kind]
    start = random_start(objective, 3, rng)
    cut, layout = posed(objective, 1, start.W)
    parts, whole = RowBlockDescent(cut, start.H, 2), CoordinateDescent(objective, start, 2)
    whole._order = layout.order.astype(np.int64)
    for _ in range(12):
        assert parts.step() == pytest.approx(whole.step(), rel=1e-10)
        assert parts.residual == pytest.approx(whole.residual, rel=1e-8)
    np.testing.assert_allclose(layout.joined(cut.executor.gather("W")), whole.factors.W, rtol=1e-10, atol=1e-10)
    np.testing.assert_allclose(parts.H, whole.factors.H, rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize("n_blocks", [1, 8])
def test_blocks_end_where_coordinate_descent_ends(n_blocks):
    objective = clusters()
    start = random_start(objective, 2, 0)
    limits = {"tol": 1e-8, "max_iter": 5000}
    whole, parts = (solve(objective, start, settings=s, **limits) for s in (Coordinate(), RowBlocks(n_blocks)))
    assert parts.converged
    assert parts.objective == pytest.approx(whole.objective, rel=1e-6)


def test_fitted_data_are_measured_by_their_residuals():
    rng = np.random.default_rng(0)
    W = rng.random((20, 2))
    for objective, norm in ((nmf(W @ rng.random((2, 5))), "norm_A"), (snmf(sparse.csr_array(W @ W.T)), "norm_S")):
        start = random_start(objective, 2, 1)
        solution = solve(objective, start, settings=RowBlocks(3), max_iter=3000, tol=1e-10)
        assert solution.objective < 1e-14 * getattr(objective.terms, norm)
        assert solution.objective == pytest.approx(objective.value(solution.factors), rel=1e-6, abs=1e-28)


@pytest.mark.parametrize("objective", [clusters(), snmf(clusters().S)], ids=["nsnmf", "snmf"])
@pytest.mark.parametrize("chunk", [1, 7])
def test_blocks_larger_than_a_chunk(objective, chunk, monkeypatch):
    """Sums over chunks are those over all rows, but for rounding."""
    whole = fit_factors(objective, 2, RowBlocks(2), max_iter=25, tol=0.0, random_state=0)
    monkeypatch.setattr(blocks, "CHUNK", chunk)
    parts = fit_factors(objective, 2, RowBlocks(2), max_iter=25, tol=0.0, random_state=0)
    np.testing.assert_allclose(parts.history, whole.history, rtol=1e-12)
    np.testing.assert_allclose(parts.factors.W, whole.factors.W, rtol=1e-9, atol=1e-9)
    assert parts.kkt_residual == pytest.approx(whole.kkt_residual, rel=1e-6)


def test_detectors_take_it():
    X = clusters().A
    one, two = (NSNMF(n_components=2, solver=RowBlocks(4), random_state=0).fit(X) for _ in range(2))
    assert one.converged_
    assert np.array_equal(one.embedding_, two.embedding_)
    assert one.objective_ == pytest.approx(NSNMF(n_components=2, random_state=0).fit(X).objective_, rel=0.05)


def test_more_blocks_than_rows_and_rows_that_are_all_equal():
    few, equal = nmf(np.arange(6.0).reshape(3, 2)), nmf(np.ones((5, 2)))
    assert solve(few, random_start(few, 1, 0), settings=RowBlocks(50), tol=1e-6).converged
    assert len(Layout.of(equal, 4).bounds) == 2
    assert solve(equal, random_start(equal, 1, 0), settings=RowBlocks(4), tol=1e-6).converged


def test_coordinate_descent_by_blocks_refuses_missing_values():
    with pytest.raises(ValueError, match=r"missing values. Use Coordinate\(\)"):
        fit_factors(nmf(np.array([[1.0, np.nan], [1.0, 2.0], [0.5, 1.0]])), 1, RowBlocks(2), random_state=0)


# Block SGD.


@given(B=st.integers(1, 9), seed=st.integers(0, 1000))
def test_instances_of_a_round_are_interchangeable_and_use_every_row_block(B, seed):
    drawn = draw_instances(B, np.random.default_rng(seed))
    columns = [k for *_, k in drawn]
    assert sorted(index for i, j, _ in drawn for index in {i, j}) == list(range(B))
    assert len(set(columns)) == len(columns)
    assert all(0 <= k < B for k in columns)
    assert any(i == j for i, j, _ in drawn) or B % 2 == 0


@given(B=st.integers(1, 7), seed=st.integers(0, 1000))
@examples(25)
def test_an_epoch_has_every_instance_set_once_and_its_gradients_add_up_to_that_of_the_loss(B, seed):
    rng = np.random.default_rng(seed)
    epoch = draw_epoch(B, rng)
    drawn = [(frozenset((i, j)), k) for instances in epoch for i, j, k in instances]
    assert len(epoch) == B**2
    assert len(set(drawn)) == len(drawn) == B * B * (B + 1) // 2
    for instances in epoch:
        assert sorted(index for i, j, _ in instances for index in {i, j}) == list(range(B))
        assert len({k for *_, k in instances}) == len(instances)
    for first in range(0, B * B, B):  # every block meets every other and itself
        met = [frozenset((i, j)) for instances in epoch[first : first + B] for i, j, _ in instances]
        assert len(set(met)) == len(met) == B * (B + 1) // 2
    A, S = rng.random((8, 7)), random_tree(8, rng, 3.0, diagonal=True)
    W, H = rng.random((8, 2)) + 1, rng.random((2, 7)) + 1
    step, moved_W, moved_H = 1e-6, np.zeros_like(W), np.zeros_like(H)
    for instances in epoch:
        round_W, round_H = naive_factors.block_round(A, S, W, H, 0.8, 0.2, B, instances, step, step, both_orders=True)
        moved_W, moved_H = moved_W + (W - round_W), moved_H + (H - round_H)
    gradient = nsnmf(A, sparse.csr_array(S)).gradient(Factors(W, H))
    np.testing.assert_allclose(moved_W / step, B * gradient.W, rtol=1e-6, atol=1e-6)
    np.testing.assert_allclose(moved_H / step, B * gradient.H, rtol=1e-6, atol=1e-6)


@pytest.mark.kernels
@pytest.mark.parametrize("given_steps", [False, True])
@given(problem=tables(max_rows=11, largest=4.0))
@examples(15)
def test_rounds_equal_the_formulas(given_steps, problem):
    A, S, K, rng = problem
    objective = nsnmf(A, sparse.csr_array(S))
    chosen = BlockSGD(n_blocks=3, rounds=9, **({"first_step": 0.01, "last_step": 0.002} if given_steps else {}))
    start = draw_factors(objective, K, rng, 0.1)
    run = BlockSGDDescent(objective, start, chosen, rng)
    W, H = start.W, start.H
    with ThreadPoolExecutor(2) as pool:
        for t in range(5):
            instances = draw_instances(3, rng)
            run.take_round(instances, t, pool, 2)
            if given_steps:
                steps = [0.01 + t / 8 * (0.002 - 0.01)] * 2
            else:
                steps = [2.0 / bend for bend in naive_factors.curvatures(S, W, H, 0.8, 0.2)]
            W, H = naive_factors.block_round(A, S, W, H, 0.8, 0.2, 3, instances, *steps, both_orders=not given_steps)
            np.testing.assert_allclose(run.factors.W, W, rtol=1e-10, atol=1e-12)
            np.testing.assert_allclose(run.factors.H, H, rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("largest", [10.0, 1e4, 1e8])
@pytest.mark.compiled
def test_sgd_comes_near_the_minimum_whatever_the_largest_similarity(largest):
    """One pair of very near rows must not set the steps of the others."""
    objective = rugged(40, 4, 3.0)
    S = objective.S.toarray()
    S[3, 4] = S[4, 3] = largest
    objective = nsnmf(objective.A, sparse.csr_array(S))
    solution = fit_factors(objective, 2, BlockSGD(), random_state=0)
    best = min(fit_factors(objective, 2, random_state=seed).objective for seed in range(3))
    assert solution.converged
    assert solution.objective < 1.05 * best


@pytest.mark.compiled
def test_sgd_has_converged_only_if_an_exact_sweep_finds_little_to_do():
    objective = rugged(60, 4, 2.0)
    done = fit_factors(objective, 2, BlockSGD(), random_state=0)
    assert done.converged
    assert done.n_iter < 100
    assert done.remaining < BlockSGD().stall
    after = solve(objective, done.factors, settings=Coordinate(), max_iter=1, tol=0.0)
    assert 1 - after.objective / done.objective == pytest.approx(done.remaining, rel=1e-6)
    for early in (BlockSGD(rounds=10), BlockSGD(rounds=10, stall=0.0)):
        short = fit_factors(objective, 2, early, random_state=0)
        assert not short.converged
        assert short.remaining > 0.01
        assert short.objective > done.objective
    # ALAD's rule stops where steps are short, which says nothing about a minimum.
    slow = BlockSGD(first_step=1e-6, last_step=1e-6)
    stopped = fit_factors(objective, 2, slow, random_state=0)
    assert (stopped.n_iter, stopped.converged) == (2, False)
    assert stopped.remaining > 0.01


def test_given_steps_stop_after_two_stalls():
    chosen = BlockSGD(first_step=0.01, last_step=0.001, rounds=700, stall=1e-3)
    solution = fit_factors(rugged(30, 4, 2.0), 2, chosen, random_state=0)
    falls = -np.diff(solution.history) / solution.history[:-1]
    assert solution.n_iter < 70
    assert (falls[-2:] < 1e-3).all()
    assert not any((falls[:-1][:-1] < 1e-3) & (falls[1:][:-1] < 1e-3))


def test_the_pace_is_halved_after_an_epoch_that_did_not_lower_the_loss():
    objective = rugged(30, 4, 2.0)
    run = BlockSGDDescent(objective, draw_factors(objective, 2, np.random.default_rng(0), 0.1), BlockSGD(), None)
    for value, pace in ((run._last / 2, 2.0), (run._last / 2, 1.0), (run._last, 0.5), (run._last / 4, 0.5)):
        run._note(value, 25)
        assert run._pace == pace
    assert run._rounds == 100


@pytest.mark.parametrize("kind", ["table", "dense", "sparse"])
def test_the_objective_of_nearly_fitted_data_does_not_cancel(kind):
    rng = np.random.default_rng(1)
    W, H = rng.random((12, 2)), rng.random((2, 3))
    W[::2, 0], W[1::2, 1] = 0.0, 0.0  # so that half of WWᵀ is 0
    S = sparse.csr_array(W @ W.T)
    S.data += 1e-8
    problems = {"table": nmf(W @ H + 1e-8), "dense": snmf(W @ W.T + 1e-8), "sparse": snmf(S)}
    objective, H = problems[kind], H if kind == "table" else np.zeros((2, 0))
    cut, _ = posed(objective, Layout(rng.permutation(12), np.array([0, 3, 7, 12])), W)
    exact = {"table": 36e-16, "dense": 144e-16, "sparse": 72e-16}[kind]
    rounding = 1e-14 if kind == "sparse" else 0.0  # of WWᵀ where S has no entries
    assert RowBlockDescent(cut, H, 1).value() == pytest.approx(exact, rel=1e-5, abs=rounding)


def test_blocks_in_space_have_fewer_similarities_between_them():
    rng = np.random.default_rng(2)
    group = rng.permutation(np.repeat(np.arange(4), 25))
    A = group[:, None] + 0.1 * rng.random((100, 2))
    objective = nsnmf(A, sparse.csr_array((group[:, None] == group).astype(float)))
    in_space = Layout.of(objective, 4).cut(objective)[1]
    in_rows = Layout(np.arange(100), np.array([0, 25, 50, 75, 100])).cut(objective)[1]
    assert len(in_space.similarities) < 0.1 * len(in_rows.similarities)


def test_sgd_without_a_table_with_few_rows_and_with_missing_values():
    rng = np.random.default_rng(3)
    chosen = BlockSGD(rounds=40, stall=0.0)
    S = sparse.csr_array(random_tree(4, rng, 3.0))
    for objective in (snmf(S), nsnmf(rng.random((4, 2)), S), nmf(np.ones((4, 3)))):
        solution = fit_factors(objective, 2, chosen, random_state=0)
        assert solution.objective < solution.history[0]
    A = rng.random((40, 5))
    A[rng.random(A.shape) < 0.2] = np.nan
    solution = fit_factors(nsnmf(A, sparse.csr_array(random_tree(40, rng, 3.0))), 2, chosen, random_state=0)
    assert solution.objective < solution.history[0]
    assert solution.history[-1] == pytest.approx(solution.objective, rel=1e-9)


def test_sgd_refuses_what_it_is_not_defined_for():
    objective = rugged(20, largest=1e6)
    smooth = laplacian_nsnmf(objective.A, objective.S)
    with np.errstate(all="ignore"), pytest.raises(FloatingPointError, match="without first_step"):
        fit_factors(objective, 2, BlockSGD(first_step=0.04, last_step=0.0035), random_state=0)
    with pytest.raises(ValueError, match="Laplacian"):
        fit_factors(smooth, 2, BlockSGD())


# Any executor gives the same bits, and a run goes on from a checkpoint.


class ReadOnlyRows(ArrayRows):
    """Rows that cannot be written to, in short chunks."""

    def chunks(self):
        for start in range(0, len(self), 5):
            chunk = self.values[start : start + 5].copy()
            chunk.setflags(write=False)
            yield start, chunk


def frozen(thing):
    """A copy in which every array is read-only."""
    if isinstance(thing, np.ndarray):
        thing = thing.copy()
        thing.setflags(write=False)
        return thing
    if isinstance(thing, dict):
        return {name: frozen(part) for name, part in thing.items()}
    if isinstance(thing, tuple):
        parts = [frozen(part) for part in thing]
        return type(thing)(*parts) if hasattr(thing, "_fields") else tuple(parts)
    return thing


class DistantExecutor(LocalExecutor):
    """Sends work and blocks as bytes, allows no writing to arguments and states, and does everything twice."""

    def each(self, work, *common, apart=None):
        def sent(block, state, *told):
            assert len(state) <= 3
            again = pickle.loads(pickle.dumps((work, block)))
            first = again[0](again[1], frozen(state), *frozen(told))
            second = again[0](again[1], frozen(state), *frozen(told))
            assert pickle.dumps(first) == pickle.dumps(second)
            return first

        return super().each(sent, *common, apart=apart)


SOLVERS = [
    RowBlocks(4),
    RowBlocks(4, profile_passes=1),
]


@pytest.mark.parametrize("chosen", SOLVERS, ids=["rows", "one pass"])
def test_same_bits_on_any_number_of_threads_and_on_other_machines(chosen):
    objective, runs = rugged(), []
    for threads, kind in ((1, LocalExecutor), (3, LocalExecutor), (2, DistantExecutor)):
        cut, layout = posed(objective, 4, executor=kind)
        with thread_limit(threads):
            H, outcome = fit_by_blocks(cut, 3, chosen, max_iter=20, random_state=1)
        W = layout.joined(cut.executor.gather("W"))
        runs.append((W.tobytes(), H.tobytes(), outcome.history.tobytes(), outcome.objective))
    here = fit_factors(objective, 3, chosen, max_iter=20, random_state=1)
    runs.append((here.factors.W.tobytes(), here.factors.H.tobytes(), here.history.tobytes(), here.objective))
    assert len(set(runs)) == 1
    assert here.objective == pytest.approx(objective.value(here.factors), rel=1e-12)
    distant = [replace(block, rows=ReadOnlyRows(block.rows.values)) for block in layout.cut(objective)[0]]
    cut = BlockProblem(DistantExecutor(distant), cut.coupling, cut.terms)  # other chunks: sums in another order
    fit_by_blocks(cut, 3, chosen, max_iter=20, random_state=1)
    np.testing.assert_allclose(layout.joined(cut.executor.gather("W")), here.factors.W, rtol=1e-9, atol=1e-12)


def test_sgd_has_the_same_bits_on_any_number_of_threads():
    runs = []
    for threads in (1, 2, 3):
        with thread_limit(threads):
            run = fit_factors(rugged(), 3, BlockSGD(rounds=30, stall=0.0), random_state=5)
        runs.append((run.factors.W.tobytes(), run.factors.H.tobytes(), run.objective))
    assert len(set(runs)) == 1


@pytest.mark.parametrize("rng", [np.random.RandomState, np.random.default_rng])
@pytest.mark.parametrize("chosen", SOLVERS, ids=["rows", "one pass"])
def test_a_resumed_run_has_the_same_bits(rng, chosen):
    cut, layout = posed(clusters(), 4)
    kept, seen = [], []

    def keep(snapshot):
        states = [{name: array.copy() for name, array in state.items()} for state in cut.executor._states]
        kept.append(({name: np.array(value) for name, value in snapshot.items()}, states))

    told = {"progress": lambda *it: seen.append(it), "checkpoint": keep}
    H, whole = fit_by_blocks(cut, 2, chosen, tol=1e-6, random_state=rng(7), **told)
    assert len(kept) == 1 + whole.n_iter
    assert seen == list(enumerate(whole.history))[1:]
    for snapshot, states in (kept[0], kept[1], kept[len(kept) // 2], kept[-1]):
        later, _ = posed(clusters(), layout, states)
        again_H, again = fit_by_blocks(later, 2, chosen, tol=1e-6, resume=snapshot)
        assert again_H.tobytes() == H.tobytes()
        assert {name: np.asarray(value).tobytes() for name, value in vars(again).items()} == {
            name: np.asarray(value).tobytes() for name, value in vars(whole).items()
        }
        assert [W.tobytes() for W in later.executor.gather("W")] == [W.tobytes() for W in cut.executor.gather("W")]


def test_no_more_iterations_than_wanted():
    H, outcome = fit_by_blocks(posed(rugged(20), 3)[0], 2, RowBlocks(), tol=0.0, max_iter=3, random_state=0)
    assert (H.shape, outcome.n_iter, len(outcome.history), outcome.converged) == ((2, 7), 3, 4, False)
