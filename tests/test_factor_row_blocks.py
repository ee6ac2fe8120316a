from __future__ import annotations

import json
import pickle
from functools import partial
from itertools import count, pairwise

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from naive import row_blocks as naive
from naive.factors import family_loss
from scipy import sparse
from strategies_factors import draw_factors, family, random_tree, tables

from penstock._threads import thread_limit
from penstock._types import Factors
from penstock.detectors.nsnmf import NSNMF
from penstock.factor import (
    Auto,
    BlockSGD,
    Coordinate,
    Objective,
    RowBlocks,
    blocks,
    coordinate,
    fit_factors,
    nmf,
    nsnmf,
    random_start,
    row_blocks,
    snmf,
    solve,
)
from penstock.factor import _block_work as work
from penstock.factor._block_sums import (
    JointSteps,
    borders_of,
    gaps_after,
    gram_of,
    lowest_on_unit_interval,
    mean_of,
    offers_after,
    polynomial,
    steps_of,
    sums_after,
)
from penstock.factor.blocks import LocalCrew
from penstock.factor.objectives import over_seen
from penstock.factor.row_blocks import LocalBlocks, RowBlockDescent, fit_by_blocks
from penstock.factor.terms import Terms, value_of


@pytest.fixture(autouse=True, scope="module")
def one_thread():
    """Rows of a test are too few for two threads to be worth starting."""
    with thread_limit(1):
        yield


KINDS = ["nmf", "gnmf", "snmf", "nsnmf", "laplacian"]
coefficients = st.floats(-100, 100).map(lambda c: 0.0 if abs(c) < 1e-3 else c)


def owners(layout):
    owner = np.empty(len(layout.order), dtype=int)
    for block, (a, b) in enumerate(pairwise(layout.bounds)):
        owner[layout.order[a:b]] = block
    return owner


def without_crossing(objective_of, S, n_blocks):
    """S with nothing between the blocks; near rows are together whatever S is."""
    owner = owners(LocalBlocks.of(objective_of(S), n_blocks).layout)
    return np.where(owner[:, None] == owner[None, :], S, 0.0)


def residual_value(terms, start, sums, gaps):
    """f, its squares summed rather than expanded."""
    ridge = terms.gamma * (np.trace(sums.G) + np.sum(start.H**2)) + terms.laplacian * sums.roughness
    return ridge + terms.symmetric * (gaps.on_graph + gaps.off_graph) + terms.alpha * gaps.attributes


def clusters(n=60, seed=0):
    """Two groups of rows, similar within: a problem with one good answer."""
    rng = np.random.default_rng(seed)
    member = np.arange(n) % 2
    A = np.where(member[:, None] == np.arange(4) // 2, 1.0, 0.1) + 0.05 * rng.random((n, 4))
    S = np.zeros((n, n))
    for i in range(2, n):
        S[i, i - 2] = S[i - 2, i] = 1 + rng.random()
    return A, sparse.csr_array(S)


@given(c1=coefficients, c2=coefficients, c3=coefficients, c4=coefficients)
@example(c1=-1.0, c2=0.0, c3=0.0, c4=0.0)
@example(c1=0.0, c2=0.0, c3=0.0, c4=0.0)
@example(c1=1.0, c2=-4.0, c3=0.0, c4=3.5)
@settings(max_examples=300, deadline=None)
def test_lowest_point_of_a_quartic(c1, c2, c3, c4):
    t = lowest_on_unit_interval(c1, c2, c3, c4)
    grid = np.linspace(0.0, 1.0, 2001)
    assert 0.0 <= t <= 1.0
    assert polynomial(t, c1, c2, c3, c4) <= polynomial(grid, c1, c2, c3, c4).min() + 1e-12
    if polynomial(1.0, c1, c2, c3, c4) < polynomial(grid[:-1], c1, c2, c3, c4).min() - 1e-3:
        assert t == 1.0


def test_steps_that_overflow_are_left_to_the_loop():
    nothing = np.zeros((2, 1, 1))
    for bad in (np.inf, -np.inf, np.nan):
        slopes, bends = np.array([-1.0, bad]), np.diag([bad, 1.0])
        assert JointSteps(slopes, np.eye(2), *[nothing] * 2, 0.0).choose().tolist() == [1.0, 1.0]
        assert JointSteps(-np.ones(2), bends, *[nothing] * 2, 0.0).choose().tolist() == [1.0, 1.0]


def test_blocks_go_in_turn_where_no_joint_step_lowers_the_loss():
    nothing = np.zeros((3, 1, 1))
    steps = JointSteps(
        np.array([3.0, -1.0, -1.0]), np.array([[0.0, 0, 0], [0, 0.5, 0.8], [0, 0, 0.5]]), *[nothing] * 2, 0.0
    )
    assert steps.choose().tolist() == [0.0, 1.0, 0.0]


@pytest.mark.parametrize("kind", KINDS)
@given(problem=tables(max_rows=8, largest=20.0), n_blocks=st.integers(1, 4), crossing=st.booleans())
@settings(max_examples=12, deadline=None)
def test_the_loss_along_steps_equals_the_loss(kind, problem, n_blocks, crossing):
    A, S, K, rng = problem
    S = S if crossing else without_crossing(lambda S: family(A, S, [kind])[kind], S, n_blocks)
    objective = family(A, S, [kind])[kind]
    start = draw_factors(objective, K, rng)
    table = A if objective.A is not None else np.zeros((len(S), 0))
    weights = {"symmetric": objective.symmetric, "alpha": objective.alpha, "gamma": objective.gamma}
    weights |= {"laplacian_weight": objective.laplacian}
    local, terms = LocalBlocks.of(objective, n_blocks), Terms.of(objective)
    assert crossing or len(local.wiring.similarities) == 0
    crew, owner = local.crew(start.W), owners(local.layout)
    places = crew.each(work.begin)
    told = terms, start.H, gram_of(places), mean_of(terms, places)
    swept = crew.each(work.sweep, *told, apart=borders_of(local.wiring, places))
    moved = local.layout.restored(np.concatenate(crew.gather("moved")))
    # Rows are visited in the order of the blocks, not of the table.
    order, back = local.layout.order, np.argsort(local.layout.order)
    expected = naive.stale_sweep(
        table[order], S[np.ix_(order, order)], start.W[order], start.H, owner[order], **weights
    )[back]  # fmt: skip
    np.testing.assert_allclose(moved, expected, rtol=1e-8, atol=1e-9)
    steps = steps_of(terms, local.wiring, start.H, places, swept)
    first = family_loss(table, S, start.W, start.H, **weights)
    for t in (np.ones(crew.n_blocks), np.full(crew.n_blocks, 0.3), rng.random(crew.n_blocks)):
        loss = naive.loss_along(table, S, start.W, moved - start.W, start.H, owner, t, weights)
        assert steps.change(t) == pytest.approx(loss - first, rel=1e-9, abs=1e-11 * (first + loss))
        sums = sums_after(terms, local.wiring, places, swept, t)
        gaps = partial(gaps_after, crew, local.wiring, terms, start.H, sums.G, t, offers_after(places, swept, t))
        assert value_of(terms, start.H, sums, gaps) == pytest.approx(loss, rel=1e-9, abs=1e-13 * first)
        assert residual_value(terms, start, sums, gaps()) == pytest.approx(loss, rel=1e-9, abs=1e-13 * first)
    for t in (0.2, 1.0):
        same = steps.change(np.full(crew.n_blocks, t))
        assert polynomial(t, *steps.along_diagonal()) == pytest.approx(same, rel=1e-9, abs=1e-11 * first)


@pytest.mark.parametrize("kind", KINDS)
@given(problem=tables(max_rows=12, largest=1e4), n_blocks=st.integers(1, 6), dense=st.booleans())
@settings(max_examples=16, deadline=None)
def test_loss_never_rises_and_factors_stay_in_bounds(kind, problem, n_blocks, dense):
    A, S, K, rng = problem
    S = np.full_like(S, S.max()) if dense else S  # where all rows pull each other, blocks overshoot together
    objective = family(A, S, [kind])[kind]
    solution = solve(objective, random_start(objective, K, rng), settings=RowBlocks(n_blocks), max_iter=25, tol=0.0)
    slack = 1e-12 * (solution.history[0] + objective.norm_A + objective.norm_S)
    assert np.all(np.diff(solution.history) <= slack)
    for factor in (solution.factors.W, solution.factors.H):
        assert np.isfinite(factor).all()
        assert (factor >= 0).all()
    assert np.all(np.linalg.norm(solution.factors.H, axis=1) <= objective.row_bound * (1 + 1e-12))
    assert solution.objective == pytest.approx(objective.value(solution.factors), rel=1e-9, abs=slack)
    assert solution.kkt_residual == pytest.approx(objective.kkt_residual(solution.factors), rel=1e-6, abs=1e-12)
    assert solution.history[-1] == pytest.approx(solution.objective, rel=1e-9, abs=slack)


def test_without_back_tracking_the_loss_would_rise(monkeypatch):
    objective = snmf(sparse.csr_array(np.ones((12, 12))))
    start = Factors(np.full((12, 1), 0.5), np.zeros((1, 0)))
    held = solve(objective, start, settings=RowBlocks(6), max_iter=10, tol=0.0).history
    assert np.all(np.diff(held) <= 1e-12 * held[0])
    monkeypatch.setattr(JointSteps, "choose", lambda self: np.ones(len(self.slopes)))
    free = solve(objective, start, settings=RowBlocks(6), max_iter=10, tol=0.0).history
    assert free[1] > 1.1 * free[0]


@pytest.mark.parametrize("kind", KINDS)
@given(problem=tables(largest=20.0), n_blocks=st.integers(1, 4))
@settings(max_examples=6, deadline=None)
def test_reaches_a_stationary_point(kind, problem, n_blocks):
    A, S, K, rng = problem
    objective = family(A, S, [kind])[kind]
    start = random_start(objective, K, rng)
    solution = solve(objective, start, settings=RowBlocks(n_blocks), max_iter=30_000, tol=1e-7)
    assert solution.converged
    assert objective.kkt_residual(solution.factors) <= 1.001e-7


@pytest.mark.parametrize("n_blocks", [1, 3, 8])
def test_ends_where_coordinate_descent_ends(n_blocks):
    objective = nsnmf(*clusters())
    start = random_start(objective, 2, 0)
    whole, parts = (
        solve(objective, start, settings=s, tol=1e-8, max_iter=5000) for s in (Coordinate(), RowBlocks(n_blocks))
    )
    assert whole.converged
    assert parts.converged
    assert parts.objective == pytest.approx(whole.objective, rel=1e-6)


def restarting(checks):
    """A stand-in for `has_risen` that says so at these checks, counted from 1."""
    numbers = count(1)
    return lambda terms, value, before: next(numbers) in checks


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("restarts", [(), (3,), (2, 5)])
def test_one_block_that_takes_whole_steps_is_coordinate_descent(kind, restarts, monkeypatch):
    monkeypatch.setattr(JointSteps, "choose", lambda self: np.ones(len(self.slopes)))
    for module in (coordinate, row_blocks):
        monkeypatch.setattr(module, "has_risen", restarting(restarts))
    rng = np.random.default_rng(5)
    objective = family(rng.random((30, 4)), random_tree(30, rng), [kind])[kind]
    start = random_start(objective, 3, rng)
    local = LocalBlocks.of(objective, 1)
    crew = local.crew(start.W)
    parts = RowBlockDescent(crew, local.wiring, Terms.of(objective), start.H, 2)
    whole = Coordinate().begin(objective, start, None)
    whole._order = local.layout.order.astype(np.int64)
    for _ in range(12):
        assert parts.step() == pytest.approx(whole.step(), rel=1e-10)
        assert parts.residual == pytest.approx(whole.residual, rel=1e-8)
    np.testing.assert_allclose(local.gather(crew), whole.factors.W, rtol=1e-10, atol=1e-10)
    np.testing.assert_allclose(parts.H, whole.factors.H, rtol=1e-10, atol=1e-10)


def test_a_fitted_table_is_measured_by_its_residuals():
    rng = np.random.default_rng(0)
    W = rng.random((20, 2))
    exact = nmf(W @ rng.random((2, 5)))
    solution = solve(exact, random_start(exact, 2, 1), settings=RowBlocks(3), max_iter=3000, tol=1e-10)
    assert solution.objective < 1e-14 * exact.norm_A
    assert solution.objective == pytest.approx(exact.value(solution.factors), rel=1e-6)
    own = snmf(sparse.csr_array(W @ W.T))
    solution = solve(own, random_start(own, 2, 1), settings=RowBlocks(3), max_iter=3000, tol=1e-10)
    assert solution.objective < 1e-14 * own.norm_S


@pytest.mark.parametrize("chosen", [Coordinate(), RowBlocks(3)])
@pytest.mark.parametrize("seed", range(4))
def test_the_loss_of_a_table_that_is_nearly_fitted_does_not_rise_either(chosen, seed):
    rng = np.random.default_rng(seed)
    exact = nmf(rng.random((30, 2)) @ rng.random((2, 6)))
    history = solve(exact, random_start(exact, 2, seed), settings=chosen, max_iter=400, tol=0.0).history
    assert history.min() < 1e-24 * exact.norm_A
    assert np.all(np.diff(history) <= 1e-9 * history[:-1] + 1e-28 * exact.norm_A)


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("chosen", [Coordinate(), RowBlocks(2)])
def test_similarities_without_a_say_may_be_too_large_to_square(chosen):
    S = sparse.csr_array(np.diag([1e160, 0.0, 0.0], 1) + np.diag([1e160, 0.0, 0.0], -1))
    objective = Objective(A=np.ones((4, 2)), S=S, alpha=1.0, laplacian=1e-170)
    solution = solve(objective, random_start(objective, 1, 0), settings=chosen, tol=1e-6)
    assert solution.converged
    assert solution.objective < 1e-12


@pytest.mark.parametrize("objective", [nsnmf(*clusters()), snmf(clusters()[1])], ids=["nsnmf", "snmf"])
@pytest.mark.parametrize("chunk", [1, 7])
def test_blocks_larger_than_a_chunk(objective, chunk, monkeypatch):
    """Sums over chunks are those over all rows, but for rounding."""
    whole = fit_factors(objective, 2, Auto(n_blocks=2), max_iter=25, tol=0.0, random_state=0)
    for module in (blocks, work):
        monkeypatch.setattr(module, "CHUNK", chunk)
    parts = fit_factors(objective, 2, Auto(n_blocks=2), max_iter=25, tol=0.0, random_state=0)
    np.testing.assert_allclose(parts.history, whole.history, rtol=1e-12)
    np.testing.assert_allclose(parts.factors.W, whole.factors.W, rtol=1e-9, atol=1e-9)
    assert parts.kkt_residual == pytest.approx(whole.kkt_residual, rel=1e-6)


def test_threads_do_not_change_a_bit():
    objective = nsnmf(*clusters())
    with thread_limit(1):
        one = fit_factors(objective, 3, Auto(n_blocks=5), random_state=2)
    with thread_limit(3):
        three = fit_factors(objective, 3, Auto(n_blocks=5), random_state=2)
    assert np.array_equal(one.factors.W, three.factors.W)
    assert np.array_equal(one.history, three.history)
    assert len(one.start_objectives) == 3
    assert one.history[Auto().burn_in] == one.start_objectives.min()
    assert one.converged


class FrozenCrew(LocalCrew):
    """Whoever changes what he was given fails; work must also survive being sent."""

    def each(self, work, *common, apart=None):
        for value in [*common, *[value for own in apart or [] for value in own]]:
            if isinstance(value, np.ndarray):
                value.flags.writeable = False
        for state in self._states:
            for array in state.values():
                array.flags.writeable = False
            assert len(state) <= 3
        return super().each(pickle.loads(pickle.dumps(work)), *common, apart=apart)


@pytest.mark.parametrize("chosen", [Auto(n_starts=2, burn_in=2), RowBlocks()])
def test_work_leaves_what_it_is_given_as_it_is(chosen):
    objective = nsnmf(*clusters(20))
    local = LocalBlocks.of(objective, 3)
    free, frozen = local.crew(), FrozenCrew(local.blocks)
    one, two = (
        fit_by_blocks(crew, local.wiring, Terms.of(objective), 2, chosen, random_state=0) for crew in (free, frozen)
    )
    assert np.array_equal(one.history, two.history)
    assert np.array_equal(local.gather(free), local.gather(frozen))


@pytest.mark.parametrize("chosen", [Auto(n_starts=2), RowBlocks(profile_passes=1)])
def test_a_resumed_run_has_the_same_bits(chosen):
    objective = nsnmf(*clusters())
    local, terms, kept = LocalBlocks.of(objective, 4), Terms.of(objective), []

    def keep(snapshot):
        arrays = {name: value for name, value in snapshot.items() if isinstance(value, np.ndarray)}
        rest = {name: value for name, value in snapshot.items() if name not in arrays}
        states = [{name: array.copy() for name, array in state.items()} for state in crew._states]
        kept.append((json.loads(json.dumps(rest, allow_nan=False)) | arrays, states))

    crew = local.crew()
    whole = fit_by_blocks(crew, local.wiring, terms, 2, chosen, tol=1e-6, random_state=0, checkpoint=keep)
    past = 0 if isinstance(chosen, RowBlocks) else chosen.burn_in
    assert len(kept) == 1 + whole.n_iter - past
    for snapshot, states in (kept[0], kept[1], kept[len(kept) // 2], kept[-1]):
        other = LocalCrew(local.blocks, states)
        again = fit_by_blocks(other, local.wiring, terms, 2, chosen, tol=1e-6, resume=snapshot)
        assert np.array_equal(again.H, whole.H)
        assert np.array_equal(again.history, whole.history)
        assert np.array_equal(again.start_objectives, whole.start_objectives)
        assert (again.objective, again.kkt_residual) == (whole.objective, whole.kkt_residual)
        assert np.array_equal(local.gather(other), local.gather(crew))


def test_every_block_draws_its_own_rows():
    objective = nsnmf(*clusters(20))
    local, seeds = LocalBlocks.of(objective, 2), []

    class Spy(LocalCrew):
        def each(self, work_, *common, apart=None):
            if work_ is work.draw:
                seeds.append(common[2])
            return super().each(work_, *common, apart=apart)

    crew = Spy(local.blocks)
    fit_by_blocks(crew, local.wiring, Terms.of(objective), 2, RowBlocks(), max_iter=0, random_state=3)
    for block, W in enumerate(crew.gather("W")):
        drawn = np.random.default_rng([seeds[0], 0, 1 + block]).random(W.shape)
        np.testing.assert_allclose(W / drawn, W[0, 0] / drawn[0, 0], rtol=1e-12)
    assert not np.array_equal(crew.gather("W")[0][:2], crew.gather("W")[1][:2])


def test_a_burn_in_by_blocks_is_the_one_that_is_not():
    objective = nsnmf(*clusters())
    start = random_start(objective, 2, 0)
    whole, parts = (solve(objective, start, settings=s, max_iter=20) for s in (Auto(), Auto(n_blocks=4)))
    np.testing.assert_allclose(parts.history[:11], whole.history[:11], rtol=1e-12)
    np.testing.assert_allclose(parts.history[-1], whole.history[-1], rtol=1e-2)


@pytest.mark.parametrize("solver", [Auto(n_blocks=4), RowBlocks(4)])
def test_detectors_take_it(solver):
    X = clusters()[0]
    one, two = (NSNMF(n_components=2, solver=solver, random_state=0).fit(X) for _ in range(2))
    assert one.converged_
    assert np.array_equal(one.embedding_, two.embedding_)
    assert one.objective_ == pytest.approx(NSNMF(n_components=2, random_state=0).fit(X).objective_, rel=0.05)


def test_more_blocks_than_rows_and_rows_that_are_all_equal():
    few = nmf(np.arange(6.0).reshape(3, 2))
    assert solve(few, random_start(few, 1, 0), settings=RowBlocks(50), tol=1e-6).converged
    equal = nmf(np.ones((5, 2)))
    assert len(LocalBlocks.of(equal, 4).blocks) == 1
    assert solve(equal, random_start(equal, 1, 0), settings=RowBlocks(4), tol=1e-6).converged


def test_refuses_missing_values():
    holed = over_seen(nmf(np.array([[1.0, np.nan], [1.0, 2.0], [0.5, 1.0]])))
    for chosen in (RowBlocks(2), Auto(n_blocks=2)):
        with pytest.raises(ValueError, match=r"missing values. Use Coordinate\(\) or Auto\(\)"):
            fit_factors(holed, 1, chosen, random_state=0)


@pytest.mark.parametrize(
    ("kind", "name", "least"),
    [
        *[(RowBlocks, name, 1) for name in ("n_blocks", "profile_passes")],
        *[(Auto, name, least) for name, least in (("n_starts", 1), ("burn_in", 0), ("n_blocks", 1))],
        *[(BlockSGD, name, 1) for name in ("n_blocks", "rounds", "rounds_per_check")],
    ],
)
def test_counts_are_whole_numbers(kind, name, least):
    for wrong in (least - 1, 2.5, True, "2"):
        with pytest.raises(ValueError, match=f"{name} must be a whole number ≥ {least}; got"):
            kind(**{name: wrong})
    assert getattr(kind(**{name: np.int64(3)}), name) == 3


def test_overflow_is_an_error_not_a_result():
    objective = nmf(np.full((4, 3), 1e200))
    for chosen in (Auto(n_blocks=2), RowBlocks(2)):
        with np.errstate(all="ignore"), pytest.raises(FloatingPointError, match="Scale the table"):
            fit_factors(objective, 2, chosen, random_state=0)
