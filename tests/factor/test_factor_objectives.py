from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from naive import factors as naive
from scipy import sparse
from strategies import examples
from strategies_factors import draw_factors, family, random_tree, tables

from penstock.factor import Factors, Objective, fit_factors, gnmf, laplacian_nsnmf, nmf, nsnmf, snmf, solve

pytestmark = pytest.mark.kernels

KINDS = ["nmf", "gnmf", "snmf", "nsnmf", "laplacian"]


@pytest.mark.parametrize("kind", KINDS)
@given(problem=tables())
@examples(20)
def test_value_equals_the_equations(kind, problem):
    A, S, K, rng = problem
    objective = family(A, S, [kind])[kind]
    factors = draw_factors(objective, K, rng)
    W, H = factors.W, factors.H
    expected = {
        "nmf": lambda: naive.nmf_loss(A, W, H),
        "gnmf": lambda: naive.gnmf_loss(A, S, W, H, 2.0),
        "snmf": lambda: naive.snmf_loss(S, W),
        "nsnmf": lambda: naive.nsnmf_loss(A, S, W, H, 0.8, 0.2),
        "laplacian": lambda: naive.laplacian_form_loss(A, S, W, H, 0.8),
    }[kind]()
    assert objective.value(factors) == pytest.approx(expected, rel=1e-11)


@pytest.mark.parametrize("kind", KINDS)
@given(problem=tables(max_rows=6, largest=5.0))
@examples(10)
def test_gradient_equals_finite_differences(kind, problem):
    A, S, K, rng = problem
    objective = family(A, S, [kind])[kind]
    factors = draw_factors(objective, K, rng)
    gradient = objective.gradient(factors)
    for name in ("W", "H"):
        exact = getattr(gradient, name)
        for place in np.ndindex(exact.shape):
            values = []
            for shift in (1e-4, -1e-4):
                moved = {"W": factors.W.copy(), "H": factors.H.copy()}
                moved[name][place] += shift
                values.append(objective.value(Factors(**moved)))
            assert (values[0] - values[1]) / 2e-4 == pytest.approx(exact[place], abs=1e-5, rel=1e-6)


def test_value_is_accurate_where_the_expansion_cancels():
    rng = np.random.default_rng(0)
    W, H = rng.random((40, 3)), rng.random((3, 6))
    moved = Factors(W + 1e-9, H)
    structure = float(np.sum((W @ W.T - moved.W @ moved.W.T) ** 2))
    bare = snmf(sparse.csr_array(W @ W.T)).value(Factors(moved.W, np.zeros((3, 0))))
    assert bare == pytest.approx(structure, rel=1e-5, abs=0)
    attributes = float(np.sum((W @ H - moved.W @ H) ** 2))
    assert nmf(W @ H).value(moved) == pytest.approx(attributes, rel=1e-5, abs=0)


@given(problem=tables())
@examples(20)
def test_special_cases(problem):
    A, S, K, rng = problem
    graph = sparse.csr_array(S)
    factors = draw_factors(nmf(A), K, rng)
    plain = nmf(A).value(factors)
    assert gnmf(A, graph, 0.0).value(factors) == plain
    assert math.isinf(gnmf(A, graph, 0.0).row_bound)
    structure = snmf(graph).value(factors)
    for alpha in (1e3, 1e9):  # the rest fades as 1/alpha
        near = nsnmf(A, graph, alpha=alpha, gamma=0.0).value(factors) / alpha
        assert near == pytest.approx(plain + structure / alpha, rel=1e-12)
    bare = nsnmf(A, graph, alpha=0.0, gamma=0.0).value(factors)
    assert bare == pytest.approx(structure, rel=1e-12)
    assert nsnmf(A, graph, 0.3, 0.0).value(factors) == pytest.approx(
        naive.nsnmf_loss_without_ridge(A, S, factors.W, factors.H, 0.3), rel=1e-11
    )


def test_special_cases_of_fits():
    """Not only the values: the fits, too, are those of NMF and of SNMF."""
    rng = np.random.default_rng(3)
    A, S = rng.random((30, 4)), sparse.csr_array(random_tree(30, rng))
    options = {"n_components": 2, "max_iter": 3000, "tol": 1e-7, "random_state": 0}
    plain = fit_factors(nmf(A), **options)
    assert np.array_equal(fit_factors(gnmf(A, S, 0.0), **options).factors.W, plain.factors.W)
    heavy = fit_factors(nsnmf(A, S, alpha=1e9, gamma=0.0), **options)
    assert heavy.objective / 1e9 == pytest.approx(plain.objective, rel=1e-4)
    np.testing.assert_allclose(
        heavy.factors.W @ heavy.factors.H, plain.factors.W @ plain.factors.H, rtol=1e-3, atol=1e-3
    )
    alone = fit_factors(snmf(S), **options)
    start = Factors(rng.random((30, 2)), np.zeros((2, 4)))
    bare, same = (
        solve(objective, Factors(start.W, start.H[:, : objective.n_columns]), max_iter=3000, tol=1e-7)
        for objective in (nsnmf(A, S, alpha=0.0, gamma=0.0), snmf(S))
    )
    np.testing.assert_array_equal(bare.factors.W, same.factors.W)
    assert alone.objective == pytest.approx(fit_factors(nsnmf(A, S, 0.0, 0.0), **options).objective, rel=1e-9)


def test_what_pins_the_scale():
    """(W/c, cH) rebuilds the same table: without a bound or a ridge it takes the structure term away for ever."""
    rng = np.random.default_rng(4)
    A, S, W, H = rng.random((9, 3)), sparse.csr_array(random_tree(9, rng)), rng.random((9, 2)), rng.random((2, 3))
    free, ridge, none = gnmf(A, S, 100.0, row_bound=math.inf), nsnmf(A, S), nsnmf(A, S, gamma=0.0)
    scaled = [Factors(W / c, c * H) for c in (1.0, 1e2, 1e4, 1e6)]
    fitted, norm = nmf(A).value(scaled[0]), snmf(S).terms.norm_S
    values = [free.value(factors) - fitted for factors in scaled]
    np.testing.assert_allclose(values, values[0] / np.array([1.0, 1e4, 1e8, 1e12]), rtol=1e-3, atol=1e-12 * fitted)
    assert none.value(scaled[-1]) == pytest.approx(0.8 * fitted + norm, rel=1e-9)
    assert ridge.value(scaled[-1]) > 1e9
    end = fit_factors(gnmf(A, S, 100.0), 2, random_state=0).factors.H
    assert np.linalg.norm(end, axis=1).max() <= np.linalg.norm(A, axis=1).mean() * (1 + 1e-12)


def test_residual_norm_and_scores_agree_with_the_loss():
    rng = np.random.default_rng(1)
    A, W, H = rng.random((6, 4)), rng.random((6, 2)), rng.random((2, 4))
    value = nmf(A).value(Factors(W, H))
    assert naive.reconstruction_error(A, W, H) == pytest.approx(value**0.5, rel=1e-12)
    assert np.sum(naive.anomaly_scores(A, W, H) ** 2) == pytest.approx(value, rel=1e-12)


def test_laplacian_and_symmetric_forms_are_equivalent_under_their_conditions():
    """With WᵀW = I and the normalised Laplacian, ‖S−WWᵀ‖² = 2tr(WᵀLW) + ‖S‖² − K: eq:equivalence2."""
    rng = np.random.default_rng(2)
    raw = random_tree(8, rng)
    root = np.sqrt(raw.sum(axis=1))
    S = raw / np.outer(root, root)
    for groups in ([0, 0, 0, 1, 1, 1, 2, 2], [0, 1, 2, 0, 1, 2, 0, 1]):
        W = np.eye(3)[groups]
        W /= np.sqrt(W.sum(axis=0))
        trace = naive.normalised_laplacian_trace(S, W)
        assert trace == pytest.approx(np.trace(W.T @ (np.eye(8) - S) @ W), rel=1e-12)
        value = snmf(sparse.csr_array(S)).value(Factors(W, np.zeros((3, 0))))
        assert value == pytest.approx(naive.equivalent_structure_loss(S, W), rel=1e-12)
        assert value == pytest.approx(2 * trace + np.sum(S**2) - 3, rel=1e-12)


@given(problem=tables())
@examples(20)
def test_block_losses_sum_to_B_times_f(problem):
    A, S, K, rng = problem
    factors = draw_factors(nmf(A), K, rng)
    B = 3
    triples = [(i, j, k) for i in range(B) for j in range(B) for k in range(B)]
    total = sum(naive.block_loss(A, S, factors.W, factors.H, 0.8, 0.2, B, *t) for t in triples)
    assert total == pytest.approx(B * nsnmf(A, sparse.csr_array(S)).value(factors), rel=1e-10)


def test_kkt_residual_is_free_of_units_and_zero_at_a_known_minimum():
    A = np.outer([1.0, 2.0, 3.0], [1.0, 2.0])
    exact = Factors(np.array([[1.0], [2.0], [3.0]]), np.array([[1.0, 2.0]]))
    assert nmf(A).kkt_residual(exact) < 1e-15
    off = Factors(1.1 * exact.W, exact.H)
    once = nmf(A).kkt_residual(off)
    assert once > 0.01
    thousand = Factors(1000 * off.W, 1000 * off.H)
    assert nmf(1e6 * A).kkt_residual(thousand) == pytest.approx(once, rel=1e-10)


def test_kkt_residual_of_the_bounded_problem_knows_the_bound():
    """For a = 2 and 4, joined by similarity 1, and h = 1 the best weights are 8/3 and 10/3; then ∇_h = −8/9 < 0."""
    A, S = np.array([[2.0], [4.0]]), sparse.csr_array(np.array([[0.0, 1.0], [1.0, 0.0]]))
    pressed = Factors(np.array([[8 / 3], [10 / 3]]), np.array([[1.0]]))
    bounded, free = gnmf(A, S, 1.0, row_bound=1.0), gnmf(A, S, 1.0, row_bound=math.inf)
    np.testing.assert_allclose(bounded.gradient(pressed).W, 0.0, atol=1e-14)
    np.testing.assert_allclose(bounded.gradient(pressed).H, -8 / 9, rtol=1e-12)
    assert bounded.kkt_residual(pressed) < 1e-15
    assert free.kkt_residual(pressed) > 1e-3
    inside = Factors(pressed.W, np.array([[0.5]]))
    assert bounded.kkt_residual(inside) > 1e-2


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"A": None, "S": None}, "needs the table"),
        ({"A": None, "S": np.eye(2), "alpha": 1.0}, "A is None"),
        ({"A": np.eye(2), "S": None, "symmetric": 1.0}, "S is None"),
        ({"A": np.eye(2), "S": np.eye(3), "symmetric": 1.0}, "2×2"),
        ({"A": np.eye(2), "S": np.array([[0, 1.0], [0, 0]]), "symmetric": 1.0}, "symmetric"),
        ({"A": np.eye(2), "S": -np.eye(2), "symmetric": 1.0}, "similarities ≥ 0"),
        ({"A": np.eye(2), "S": None, "gamma": -1.0}, "gamma"),
        ({"A": np.eye(2), "S": None, "row_bound": 0.0}, "row_bound"),
    ],
)
def test_refuses_what_makes_no_sense(arguments, message):
    with pytest.raises(ValueError, match=message):
        Objective(**arguments)


def test_laplacian_bound_is_the_mean_row_norm():
    A = np.array([[3.0, 4.0], [0.0, 1.0]])
    assert laplacian_nsnmf(A, sparse.csr_array((2, 2))).row_bound == 3.0
