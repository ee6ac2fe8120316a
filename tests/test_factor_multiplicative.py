from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from naive import factors as naive
from scipy import sparse
from strategies_factors import draw_factors, family, tables

from penstock._types import Factors
from penstock.factor import Multiplicative, gnmf, nsnmf, random_start, solve

pytestmark = pytest.mark.kernels

KINDS = ["nmf", "gnmf", "snmf", "nsnmf", "laplacian"]


@pytest.mark.parametrize("exponent", [0.5, 0.25])
@given(problem=tables())
@settings(max_examples=15, deadline=None)
def test_steps_equal_the_formulas(exponent, problem):
    A, S, K, rng = problem
    objective = nsnmf(A, sparse.csr_array(S))
    start = draw_factors(objective, K, rng)
    solver = Multiplicative(exponent).begin(objective, start, None)
    W, H = start.W, start.H
    for _ in range(3):
        solver.step()
        W, H = naive.multiplicative_step(A, S, W, H, 0.8, 0.2, exponent)
        np.testing.assert_allclose(solver.factors.W, W, rtol=1e-10, atol=1e-14)
        np.testing.assert_allclose(solver.factors.H, H, rtol=1e-10, atol=1e-14)


@given(problem=tables())
@settings(max_examples=15, deadline=None)
def test_unbounded_gnmf_steps_are_cais(problem):
    A, S, K, rng = problem
    objective = gnmf(A, sparse.csr_array(S), 3.0, row_bound=np.inf)
    start = draw_factors(objective, K, rng)
    solver = Multiplicative().begin(objective, start, None)
    solver.step()
    W, H = naive.gnmf_step(A, S, start.W, start.H, 3.0)
    np.testing.assert_allclose(solver.factors.W, W, rtol=1e-10, atol=1e-14)
    np.testing.assert_allclose(solver.factors.H, H, rtol=1e-10, atol=1e-14)


@pytest.mark.parametrize("kind", KINDS)
@given(problem=tables())
@settings(max_examples=15, deadline=None)
def test_loss_never_rises_and_factors_stay_in_bounds(kind, problem):
    A, S, K, rng = problem
    objective = family(A, S, [kind])[kind]
    start = random_start(objective, K, rng)
    solution = solve(objective, start, settings=Multiplicative(), max_iter=60, tol=0.0)
    slack = 1e-11 * (solution.history[0] + objective.norm_A + objective.norm_S)  # the floor may cost its own size
    assert np.all(np.diff(solution.history) <= slack)
    assert np.isfinite(solution.factors.W).all()
    assert (solution.factors.W > 0).all()
    assert np.all(np.linalg.norm(solution.factors.H, axis=1) <= objective.row_bound * (1 + 1e-12))


@given(problem=tables())
@settings(max_examples=15, deadline=None)
def test_permuting_rows_permutes_the_weights(problem):
    A, S, K, rng = problem
    start = draw_factors(nsnmf(A, sparse.csr_array(S)), K, rng)
    shuffle = rng.permutation(len(A))
    other = nsnmf(A[shuffle], sparse.csr_array(S[np.ix_(shuffle, shuffle)]))
    one = solve(nsnmf(A, sparse.csr_array(S)), start, settings=Multiplicative(), max_iter=20)
    two = solve(other, Factors(start.W[shuffle], start.H), settings=Multiplicative(), max_iter=20)
    np.testing.assert_allclose(two.factors.W, one.factors.W[shuffle], rtol=1e-7, atol=1e-12)


def test_converges_on_an_easy_problem():
    objective = nsnmf(np.ones((4, 2)), sparse.csr_array(np.ones((4, 4))))
    solution = solve(objective, random_start(objective, 1, 0), settings=Multiplicative(), max_iter=1000, tol=1e-7)
    assert solution.converged
    assert solution.kkt_residual <= 1e-7
    assert solution.n_iter % 10 == 0


@pytest.mark.parametrize("exponent", [0.0, 0.75, 1.0])
def test_refuses_exponents_that_may_raise_the_loss(exponent):
    with pytest.raises(ValueError, match="exponent"):
        Multiplicative(exponent)
