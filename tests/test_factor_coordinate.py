from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from naive import factors as naive
from scipy import sparse
from strategies_factors import draw_factors, family, tables

from penstock._types import Factors
from penstock.factor import Coordinate, gnmf, nmf, nsnmf, random_start, snmf, solve
from penstock.factor._kernels import minimise_quartic
from penstock.factor.coordinate import update_profiles

pytestmark = pytest.mark.kernels

KINDS = ["nmf", "gnmf", "snmf", "nsnmf", "laplacian"]
sizes = st.floats(-12, 12).map(lambda e: 10.0**e)
signed = st.tuples(sizes, st.sampled_from([-1.0, 1.0])).map(lambda pair: pair[0] * pair[1])


@given(a=signed, b=signed, near=st.one_of(st.just(0.0), sizes))
@example(a=-1e12, b=1e-12, near=0.0)
@example(a=1e-12, b=-1e12, near=1e12)
@example(a=1e12, b=-1e-12, near=1e12)
@example(a=-3.0, b=1.0, near=0.0)
@example(a=-3.0, b=1.41, near=0.0)  # 0 takes over at √2
@example(a=-3.0, b=1.42, near=1.5)
@settings(max_examples=500, deadline=None)
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


def test_quartic_minimiser_of_a_tie_and_of_nothing():
    assert minimise_quartic(0.0, 0.0, 1.0) == 0.0
    assert minimise_quartic(2.0, 0.0, 1.0) == 0.0
    assert minimise_quartic(0.0, -8.0, 0.0) == 2.0
    assert minimise_quartic(-4.0, 0.0, 0.0) == pytest.approx(2.0, rel=1e-15)


@pytest.mark.parametrize("kind", KINDS)
@given(problem=tables(max_rows=6, largest=5.0))
@settings(max_examples=8, deadline=None)
def test_one_sweep_equals_brute_minimisation(kind, problem):
    A, S, K, rng = problem
    objective = family(A, S, [kind])[kind]
    start = draw_factors(objective, K, rng)
    solver = Coordinate(profile_passes=1).begin(objective, start, None)
    solver.step()
    order = np.argsort(start.W.sum(axis=1), kind="stable")
    table = A if objective.A is not None else np.zeros((len(S), 0))

    def loss(W):
        weights = {"symmetric": objective.symmetric, "alpha": objective.alpha, "gamma": objective.gamma}
        return naive.family_loss(table, S, W, start.H, laplacian_weight=objective.laplacian, **weights)

    W = naive.weight_sweep(loss, start.W, order)
    np.testing.assert_allclose(solver.factors.W, W, rtol=1e-7, atol=1e-7)  # the twin's quartic comes from five values
    if objective.alpha:
        H = naive.hals(A, solver.factors.W, start.H, objective.alpha, objective.gamma, objective.row_bound)
        np.testing.assert_allclose(solver.factors.H, H, rtol=1e-10, atol=1e-12)


@given(problem=tables())
@settings(max_examples=20, deadline=None)
def test_one_sweep_equals_the_formulas_of_the_coordinate_step(problem):
    """a and b of the exact coordinate step, term by term, with G recomputed from scratch for every coordinate."""
    A, S, K, rng = problem
    objective = nsnmf(A, sparse.csr_array(S))
    start = draw_factors(objective, K, rng)
    solver = Coordinate(profile_passes=1).begin(objective, start, None)
    solver.step()
    W, Q, C = start.W.copy(), start.H @ start.H.T, A @ start.H.T
    for i in np.argsort(W.sum(axis=1), kind="stable"):
        for k in range(K):
            G, w, x = W.T @ W, W[i], W[i, k]
            a = G[k, k] + w @ w - 2 * x * x - S[i, i] + (0.8 * Q[k, k] + 0.2) / 2
            b = (w @ G[k] - x * G[k, k]) - x * (w @ w - x * x) - (S[i] @ W[:, k] - S[i, i] * x)
            b += 0.4 * ((w @ Q[k] - x * Q[k, k]) - C[i, k])
            W[i, k] = naive.minimise_quartic(a, b)
    np.testing.assert_allclose(solver.factors.W, W, rtol=1e-9, atol=1e-10)


@pytest.mark.parametrize("kind", KINDS)
@given(problem=tables())
@settings(max_examples=15, deadline=None)
def test_loss_never_rises_and_factors_stay_in_bounds(kind, problem):
    A, S, K, rng = problem
    objective = family(A, S, [kind])[kind]
    solution = solve(objective, random_start(objective, K, rng), settings=Coordinate(), max_iter=30, tol=0.0)
    slack = 1e-12 * (solution.history[0] + objective.norm_A + objective.norm_S)
    assert np.all(np.diff(solution.history) <= slack)
    for factor in (solution.factors.W, solution.factors.H):
        assert np.isfinite(factor).all()
        assert (factor >= 0).all()
    assert np.all(np.linalg.norm(solution.factors.H, axis=1) <= objective.row_bound * (1 + 1e-12))


@pytest.mark.parametrize("kind", KINDS)
@given(problem=tables(largest=20.0))
@settings(max_examples=8, deadline=None)
def test_reaches_a_stationary_point(kind, problem):
    A, S, K, rng = problem
    objective = family(A, S, [kind])[kind]
    solution = solve(objective, random_start(objective, K, rng), settings=Coordinate(), max_iter=30_000, tol=1e-8)
    assert solution.converged
    assert solution.kkt_residual <= 1e-8
    gradient = objective.gradient(solution.factors)
    size = 1 + np.abs(gradient.W).max() + 4 * objective.symmetric * np.abs(S).max() * solution.factors.W.max()
    assert gradient.W.min() >= -1e-5 * size
    assert np.all(np.abs(gradient.W * solution.factors.W) <= 1e-5 * size * (1 + solution.factors.W))


@pytest.mark.compiled
@given(problem=tables())
@settings(max_examples=15, deadline=None)
def test_permuting_rows_leaves_objective_and_scores(problem):
    A, S, K, rng = problem
    objective = nsnmf(A, sparse.csr_array(S))
    start = random_start(objective, K, rng)
    shuffle = rng.permutation(len(A))
    other = nsnmf(A[shuffle], sparse.csr_array(S[np.ix_(shuffle, shuffle)]))
    one = solve(objective, start, settings=Coordinate(), max_iter=3000, tol=1e-10)
    two = solve(other, Factors(start.W[shuffle], start.H), settings=Coordinate(), max_iter=3000, tol=1e-10)
    assert two.objective == pytest.approx(one.objective, rel=1e-6)
    scores = naive.anomaly_scores(A, one.factors.W, one.factors.H)
    permuted = naive.anomaly_scores(A[shuffle], two.factors.W, two.factors.H)
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


def test_profiles_of_an_unused_group_stay():
    objective = nmf(np.ones((2, 2)))
    H = np.array([[0.3, 0.4]])
    assert update_profiles(objective, H, np.zeros((1, 1)), np.zeros((1, 2))) == 0.0
    assert H.tolist() == [[0.3, 0.4]]


def test_profiles_are_left_alone_without_attributes():
    rng = np.random.default_rng(3)
    S = sparse.csr_array(np.ones((4, 4)))
    start = Factors(rng.random((4, 2)), rng.random((2, 3)))
    solution = solve(nsnmf(rng.random((4, 3)), S, alpha=0.0), start, settings=Coordinate(), max_iter=5)
    assert np.array_equal(solution.factors.H, start.H)
    bare = solve(snmf(S), Factors(start.W, np.zeros((2, 0))), settings=Coordinate(), max_iter=50, tol=1e-9)
    assert bare.factors.H.shape == (2, 0)


def test_graph_without_a_bound_is_still_monotone():
    rng = np.random.default_rng(4)
    objective = gnmf(rng.random((5, 3)), sparse.csr_array(np.ones((5, 5))), 1.0, row_bound=math.inf)
    solution = solve(objective, random_start(objective, 2, 0), settings=Coordinate(), max_iter=20)
    assert np.all(np.diff(solution.history) <= 1e-12)


def test_refuses_no_passes():
    with pytest.raises(ValueError, match="profile_passes"):
        Coordinate(profile_passes=0)
