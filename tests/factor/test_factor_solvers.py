"""Solvers of the NMF family: each step is its formula, the loss never rises, and runs end where they say."""

from __future__ import annotations

import math
import threading

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from naive import factors as naive
from scipy import sparse
from strategies import examples
from strategies_factors import draw_factors, family, random_tree, tables
from threadpoolctl import ThreadpoolController

from penstock._parameters import ParameterError
from penstock._threads import one_blas_thread
from penstock.factor import (
    BlockSGD,
    Coordinate,
    Factors,
    Multiplicative,
    RowBlocks,
    fit_factors,
    gnmf,
    nmf,
    nsnmf,
    random_start,
    snmf,
    solve,
)
from penstock.factor._kernels import minimise_quartic
from penstock.factor.descent import update_profiles

pytestmark = pytest.mark.kernels

KINDS = ["nmf", "gnmf", "snmf", "nsnmf", "laplacian"]
sizes = st.floats(-12, 12).map(lambda e: 10.0**e)
signed = st.tuples(sizes, st.sampled_from([-1.0, 1.0])).map(lambda pair: pair[0] * pair[1])


def after(objective, start, chosen, steps):
    """The factors after some iterations."""
    return solve(objective, start, settings=chosen, max_iter=steps, tol=0.0).factors


@given(a=signed, b=signed, near=st.one_of(st.just(0.0), sizes))
@example(a=-1e12, b=1e-12, near=0.0)
@example(a=1e-12, b=-1e12, near=1e12)
@example(a=1e12, b=-1e-12, near=1e12)
@example(a=-3.0, b=1.41, near=0.0)  # 0 takes over at √2
@example(a=-3.0, b=1.42, near=1.5)
@examples(500)
def test_quartic_minimiser(a, b, near):
    x, expected = minimise_quartic(a, b, near), naive.minimise_quartic(a, b)
    size = max(abs(a) ** 0.5, abs(b) ** (1 / 3))
    a1, b1, x1 = a / size**2, b / size**3, x / size

    def value(y):
        return y**4 / 4 + a1 * y * y / 2 + b1 * y

    if x == 0.0 or expected == 0.0:  # both sides of a tie are right
        assert abs(value(x1) - value(expected / size)) <= 1e-14
    else:
        assert x == pytest.approx(expected, rel=1e-13)
        terms = x**3 + abs(a) * x + abs(b)
        assert abs(x**3 + a * x + b) <= 4e-15 * terms


def test_quartic_minimiser_where_a_coefficient_is_zero():
    assert minimise_quartic(0.0, 0.0, 1.0) == 0.0
    assert minimise_quartic(2.0, 0.0, 1.0) == 0.0
    assert minimise_quartic(0.0, -8.0, 0.0) == 2.0
    assert minimise_quartic(-4.0, 0.0, 0.0) == pytest.approx(2.0, rel=1e-15)


@pytest.mark.parametrize("kind", KINDS)
@given(problem=tables(max_rows=6, largest=5.0))
@examples(8)
def test_one_sweep_equals_brute_minimisation(kind, problem):
    A, S, K, rng = problem
    objective = family(A, S, [kind])[kind]
    start = draw_factors(objective, K, rng)
    found = after(objective, start, Coordinate(profile_passes=1), 1)
    order = np.argsort(start.W.sum(axis=1), kind="stable")
    table = A if objective.A is not None else np.zeros((len(S), 0))

    def loss(W):
        weights = {"symmetric": objective.symmetric, "alpha": objective.alpha, "gamma": objective.gamma}
        return naive.family_loss(table, S, W, start.H, laplacian_weight=objective.laplacian, **weights)

    W = naive.weight_sweep(loss, start.W, order)
    np.testing.assert_allclose(found.W, W, rtol=1e-7, atol=1e-7)  # the twin's quartic comes from five values
    if objective.alpha:
        H = naive.hals(A, found.W, start.H, objective.alpha, objective.gamma, objective.row_bound)
        np.testing.assert_allclose(found.H, H, rtol=1e-10, atol=1e-12)


@given(problem=tables())
@examples(20)
def test_one_sweep_equals_the_formulas_of_the_coordinate_step(problem):
    """a and b of the exact coordinate step, term by term, with G recomputed from scratch for every coordinate."""
    A, S, K, rng = problem
    objective = nsnmf(A, sparse.csr_array(S))
    start = draw_factors(objective, K, rng)
    W, Q, C = start.W.copy(), start.H @ start.H.T, A @ start.H.T
    for i in np.argsort(W.sum(axis=1), kind="stable"):
        for k in range(K):
            G, w, x = W.T @ W, W[i], W[i, k]
            a = G[k, k] + w @ w - 2 * x * x - S[i, i] + (0.8 * Q[k, k] + 0.2) / 2
            b = (w @ G[k] - x * G[k, k]) - x * (w @ w - x * x) - (S[i] @ W[:, k] - S[i, i] * x)
            b += 0.4 * ((w @ Q[k] - x * Q[k, k]) - C[i, k])
            W[i, k] = naive.minimise_quartic(a, b)
    np.testing.assert_allclose(after(objective, start, Coordinate(), 1).W, W, rtol=1e-9, atol=1e-10)


@pytest.mark.parametrize("exponent", [0.5, 0.25])
@given(problem=tables())
@examples(15)
def test_multiplicative_steps_equal_the_formulas(exponent, problem):
    A, S, K, rng = problem
    objective = nsnmf(A, sparse.csr_array(S))
    start = draw_factors(objective, K, rng)
    W, H = start.W, start.H
    for step in range(1, 4):
        found = after(objective, start, Multiplicative(exponent), step)
        W, H = naive.multiplicative_step(A, S, W, H, 0.8, 0.2, exponent)
        np.testing.assert_allclose(found.W, W, rtol=1e-10, atol=1e-14)
        np.testing.assert_allclose(found.H, H, rtol=1e-10, atol=1e-14)
    cai = gnmf(A, sparse.csr_array(S), 3.0, row_bound=np.inf)
    found = after(cai, start, Multiplicative(), 1)
    W, H = naive.gnmf_step(A, S, start.W, start.H, 3.0)
    np.testing.assert_allclose(found.W, W, rtol=1e-10, atol=1e-14)
    np.testing.assert_allclose(found.H, H, rtol=1e-10, atol=1e-14)


@pytest.mark.parametrize("chosen", [Coordinate(), Multiplicative(), RowBlocks(3)], ids=lambda it: type(it).__name__)
@pytest.mark.parametrize("kind", KINDS)
@given(problem=tables(max_rows=12), dense=st.booleans())
@examples(12)
def test_loss_never_rises_and_factors_stay_in_bounds(kind, chosen, problem, dense):
    A, S, K, rng = problem
    S = np.full_like(S, S.max()) if dense else S  # where all rows pull each other, blocks overshoot together
    objective = family(A, S, [kind])[kind]
    solution = solve(objective, random_start(objective, K, rng), settings=chosen, max_iter=30, tol=0.0)
    share = 1e-11 if isinstance(chosen, Multiplicative) else 1e-12  # the floor may cost its own size
    slack = share * (solution.history[0] + objective.norm_A + objective.terms.norm_S)
    assert np.all(np.diff(solution.history) <= slack)
    for factor in (solution.factors.W, solution.factors.H):
        assert np.isfinite(factor).all()
        assert (factor >= 0).all()
    assert np.all(np.linalg.norm(solution.factors.H, axis=1) <= objective.row_bound * (1 + 1e-12))
    assert solution.objective == pytest.approx(objective.value(solution.factors), rel=1e-9, abs=slack)
    assert solution.kkt_residual == pytest.approx(objective.kkt_residual(solution.factors), rel=1e-6, abs=1e-12)


@pytest.mark.parametrize(("chosen", "tol"), [(Coordinate(), 1e-8), (RowBlocks(3), 1e-7)], ids=["coordinate", "blocks"])
@pytest.mark.parametrize("kind", KINDS)
@given(problem=tables(largest=20.0))
@examples(6)
@pytest.mark.compiled
def test_reaches_a_stationary_point(kind, chosen, tol, problem):
    A, S, K, rng = problem
    objective = family(A, S, [kind])[kind]
    solution = solve(objective, random_start(objective, K, rng), settings=chosen, max_iter=30_000, tol=tol)
    assert solution.converged
    assert objective.kkt_residual(solution.factors) <= 1.001 * tol
    gradient = objective.gradient(solution.factors)
    size = 1 + np.abs(gradient.W).max() + 4 * objective.symmetric * np.abs(S).max() * solution.factors.W.max()
    assert gradient.W.min() >= -1e3 * tol * size
    assert np.all(np.abs(gradient.W * solution.factors.W) <= 1e3 * tol * size * (1 + solution.factors.W))


@pytest.mark.compiled
@given(problem=tables())
@examples(5)
def test_permuting_rows_permutes_the_result(problem):
    A, S, K, rng = problem
    objective = nsnmf(A, sparse.csr_array(S))
    start = random_start(objective, K, rng)
    shuffle = rng.permutation(len(A))
    other = nsnmf(A[shuffle], sparse.csr_array(S[np.ix_(shuffle, shuffle)]))
    moved = Factors(start.W[shuffle], start.H)
    one, two = (after(*it, Multiplicative(), 20) for it in ((objective, start), (other, moved)))
    np.testing.assert_allclose(two.W, one.W[shuffle], rtol=1e-7, atol=1e-12)
    one, two = (solve(*it, max_iter=3000, tol=1e-9).factors for it in ((objective, start), (other, moved)))
    scores, permuted = naive.anomaly_scores(A, one.W, one.H), naive.anomaly_scores(A[shuffle], two.W, two.H)
    np.testing.assert_allclose(permuted, scores[shuffle], rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("largest", [1e4, 1e8])
def test_huge_similarities_stay_finite(largest):
    rng = np.random.default_rng(0)
    A, S = rng.random((20, 3)), np.zeros((20, 20))
    S[np.arange(19), np.arange(1, 20)] = rng.random(19)
    S[3, 4] = largest
    objective = nsnmf(A, sparse.csr_array(S + S.T))
    solution = solve(objective, random_start(objective, 3, rng), settings=Coordinate(), max_iter=2000, tol=1e-8)
    assert solution.converged
    assert np.isfinite(solution.factors.W).all()


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("chosen", [Coordinate(), RowBlocks(2)])
def test_similarities_of_weight_zero_may_be_too_large_to_square(chosen):
    S = sparse.csr_array(np.diag([1e160, 0.0, 0.0], 1) + np.diag([1e160, 0.0, 0.0], -1))
    objective = gnmf(np.ones((4, 2)), S, 1e-170, row_bound=math.inf)
    solution = solve(objective, random_start(objective, 1, 0), settings=chosen, tol=1e-6)
    assert solution.converged
    assert solution.objective < 1e-12


@pytest.mark.parametrize("chosen", [Coordinate(), RowBlocks(3)])
@pytest.mark.parametrize("seed", range(3))
@pytest.mark.compiled
def test_the_loss_of_a_table_that_is_nearly_fitted_does_not_rise_either(chosen, seed):
    rng = np.random.default_rng(seed)
    exact = nmf(rng.random((30, 2)) @ rng.random((2, 6)))
    history = solve(exact, random_start(exact, 2, seed), settings=chosen, max_iter=400, tol=0.0).history
    assert history.min() < 1e-24 * exact.norm_A
    assert np.all(np.diff(history) <= 1e-9 * history[:-1] + 1e-28 * exact.norm_A)


def test_profiles_stay_where_nothing_weighs_them():
    rng = np.random.default_rng(3)
    H = np.array([[0.3, 0.4]])
    assert update_profiles(nmf(np.ones((2, 2))).terms, H, np.zeros((1, 1)), np.zeros((1, 2))) == 0.0
    assert H.tolist() == [[0.3, 0.4]]
    S = sparse.csr_array(np.ones((4, 4)))
    start = Factors(rng.random((4, 2)), rng.random((2, 3)))
    found = after(nsnmf(rng.random((4, 3)), S, alpha=0.0), start, Coordinate(), 5)
    assert np.array_equal(found.H, start.H)
    assert after(snmf(S), Factors(start.W, np.zeros((2, 0))), Coordinate(), 50).H.shape == (2, 0)


@pytest.mark.parametrize("kind", KINDS)
@given(problem=tables())
@examples(8)
def test_the_default_reports_what_it_did(kind, problem):
    A, S, K, rng = problem
    objective = family(A, S, [kind])[kind]
    solution = fit_factors(objective, K, random_state=np.random.RandomState(int(rng.integers(2**31))))
    assert solution.n_iter == len(solution.history) - 1
    slack = 1e-11 * (solution.history[0] + objective.norm_A + objective.terms.norm_S)
    assert np.all(np.diff(solution.history) <= slack)
    assert solution.objective == objective.value(solution.factors)
    assert solution.kkt_residual == objective.kkt_residual(solution.factors)
    assert solution.converged == (solution.kkt_residual <= 1e-4)


@given(exponent=st.integers(-6, 4), seed=st.integers(0, 99))
@examples(20)
def test_start_follows_the_scale_of_the_data(exponent, seed):
    rng = np.random.default_rng(seed)
    A, S = rng.random((12, 4)), random_tree(12, rng)
    plain = nmf(10.0**exponent * A)
    assert plain.value(random_start(plain, 3, seed)) < plain.norm_A
    alone = snmf(sparse.csr_array(10.0**exponent * S))
    assert alone.value(random_start(alone, 3, seed)) < alone.terms.norm_S
    both = nsnmf(A, sparse.csr_array(10.0**exponent * S), gamma=0.01)
    nothing = Factors(np.zeros((12, 3)), np.zeros((3, 4)))
    assert both.value(random_start(both, 3, seed)) < both.value(nothing)


def test_start_respects_the_bound_and_the_seed():
    rng = np.random.default_rng(0)
    objective = gnmf(rng.random((9, 3)), sparse.csr_array(random_tree(9, rng)), 1.0)
    one, two, three = (random_start(objective, 2, seed) for seed in (7, 7, np.random.default_rng(7)))
    assert np.array_equal(one.W, two.W)
    assert not np.array_equal(one.W, three.W)
    assert (np.linalg.norm(one.H, axis=1) <= objective.row_bound * (1 + 1e-12)).all()
    nothing = fit_factors(nmf(np.zeros((3, 2))), 1, Coordinate(), random_state=0)
    assert nothing.objective == 0.0
    assert nothing.converged


def test_progress_reports_every_iteration():
    seen = []
    objective = nmf(np.eye(4))
    start = random_start(objective, 2, 0)
    chosen = {"settings": Multiplicative(), "max_iter": 7, "tol": 0.0}
    solution = solve(objective, start, progress=lambda *told: seen.append(told), **chosen)
    assert seen == list(enumerate(solution.history))[1:]
    assert not solution.converged
    easy = nsnmf(np.ones((4, 2)), sparse.csr_array(np.ones((4, 4))))
    solution = solve(easy, random_start(easy, 1, 0), settings=Multiplicative(), max_iter=1000, tol=1e-7)
    assert solution.converged
    assert solution.n_iter % 10 == 0


def test_the_default_is_coordinate_descent_and_repeats_its_bits():
    rng = np.random.default_rng(0)
    objective = nsnmf(rng.random((25, 4)), sparse.csr_array(random_tree(25, rng)))
    start = random_start(objective, 2, 1)
    one, two = solve(objective, start), solve(objective, start, settings=Coordinate())
    assert np.array_equal(one.factors.W, two.factors.W)
    first, again = (fit_factors(objective, 3, random_state=0) for _ in range(2))
    assert np.array_equal(first.factors.W, again.factors.W)


@pytest.mark.parametrize("chosen", [Coordinate(), Multiplicative(), RowBlocks(2)])
def test_overflow_is_an_error_not_a_result(chosen):
    objective = nmf(np.full((4, 3), 1e200))
    with np.errstate(all="ignore"), pytest.raises(FloatingPointError, match="Scale the table"):
        fit_factors(objective, 2, chosen, random_state=0)


def test_blas_threads_are_lowered_and_restored_on_any_thread():
    def limits():
        return [info["num_threads"] for info in ThreadpoolController().info() if info["user_api"] == "blas"]

    def other():
        with one_blas_thread():
            seen.append(limits())

    seen = []
    with ThreadpoolController().limit(limits=2, user_api="blas"):
        assert set(limits()) == {2}
        with one_blas_thread():
            assert set(limits()) == {1}
            thread = threading.Thread(target=other)
            thread.start()
            thread.join()
        assert set(limits()) == {2}
    assert set(seen[0]) == {1}


@pytest.mark.parametrize(
    ("W", "H", "message"),
    [
        (np.ones((2, 1)), np.ones((1, 3)), "shapes"),
        (np.ones((3, 1)), np.ones((2, 3)), "shapes"),
        (-np.ones((3, 1)), np.ones((1, 3)), "non-negative"),
        (np.full((3, 1), np.nan), np.ones((1, 3)), "finite"),
    ],
)
def test_refuses_a_wrong_start(W, H, message):
    with pytest.raises(ValueError, match=message):
        solve(nmf(np.eye(3)), Factors(W, H))


@pytest.mark.parametrize(
    ("kind", "wrong", "parameter"),
    [
        (Coordinate, {"profile_passes": 0}, "profile_passes"),
        *[(Multiplicative, {"exponent": wrong}, "exponent") for wrong in (0.0, 0.75, 1.0)],
        *[(RowBlocks, {"n_blocks": wrong}, "n_blocks") for wrong in (0, 2.5, True, "2")],
        (RowBlocks, {"profile_passes": 0}, "profile_passes"),
        *[(BlockSGD, {name: 0}, name) for name in ("n_blocks", "rounds")],
        *[(BlockSGD, {name: 0.1}, "first_step") for name in ("first_step", "last_step")],
        *[(BlockSGD, {"first_step": 0.1, "last_step": wrong}, "last_step") for wrong in (0.0, 0.2, "0.1")],
        (BlockSGD, {"stall": -1.0}, "stall"),
    ],
)
def test_refuses_wrong_settings(kind, wrong, parameter):
    with pytest.raises(ParameterError) as error:
        kind(**wrong)
    assert error.value.parameter == parameter


def test_refuses_more_groups_than_rows():
    with pytest.raises(ValueError, match="n_components"):
        fit_factors(nmf(np.eye(3)), 4)
