from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from naive import detection as naive_detect
from scipy import sparse
from strategies import examples

from penstock import minimum_spanning_tree
from penstock._threads import thread_limit
from penstock.graph.similarities import neighbor_mean, similarity
from penstock.scoring import distance_scores, residual_scores, structural_scores

pytestmark = pytest.mark.kernels

# Interpreted, a kernel announces the overflow that it then deals with; compiled, it does not.
overflows = pytest.mark.filterwarnings("ignore:(overflow|invalid value|divide by zero) encountered:RuntimeWarning")


def some_factors(n: int = 30, p: int = 7, K: int = 3, seed: int = 0):
    rng = np.random.default_rng(seed)
    return rng.random((n, p)), rng.random((n, K)), rng.random((K, p))


@given(st.integers(1, 20), st.integers(1, 9), st.integers(1, 5), st.integers(0, 1000))
@examples(40)
def test_residual_is_the_equation(n: int, p: int, K: int, seed: int) -> None:
    A, W, H = some_factors(n, p, K, seed)
    np.testing.assert_allclose(residual_scores(A, W, H), naive_detect.residual_scores(A, W, H), rtol=1e-12, atol=1e-14)


@given(st.integers(2, 20), st.integers(0, 1000))
@examples(20)
def test_structural_is_its_definition(n: int, seed: int) -> None:
    A, W, H = some_factors(n, seed=seed)
    S = similarity(minimum_spanning_tree(A))
    np.testing.assert_allclose(
        structural_scores(A, W, H, S), naive_detect.structural_scores(A, W, H, S.toarray()), rtol=1e-11
    )


def test_a_row_without_neighbours_uses_its_own_weights() -> None:
    A, W, H = some_factors(4)
    stored = sparse.csr_array((np.zeros(2), (np.array([0, 1]), np.array([1, 0]))), shape=(4, 4))  # zeros are none
    for S in (sparse.csr_array((4, 4)), stored):
        np.testing.assert_array_equal(structural_scores(A, W, H, S), residual_scores(A, W, H))
    turned = (np.asfortranarray(A), np.asfortranarray(W), H)
    np.testing.assert_array_equal(residual_scores(*turned), residual_scores(A, W, H))


def test_huge_similarities_do_not_overflow() -> None:
    S = sparse.csr_array(np.array([[0.0, 1e140, 1e140], [1e140, 0.0, 0.0], [1e140, 0.0, 0.0]]))
    W = np.full((3, 2), 1e200)
    np.testing.assert_allclose(neighbor_mean(W, S), W, rtol=1e-15)


@overflows
@pytest.mark.parametrize("unit", [1e-300, 1e-170, 1e170, 1e300])
def test_any_unit(unit: float) -> None:
    A, W, H = some_factors()
    np.testing.assert_allclose(residual_scores(A * unit, W, H * unit) / unit, residual_scores(A, W, H), rtol=1e-9)


@overflows
def test_products_beyond_float_range_give_the_largest_float() -> None:
    scores = residual_scores(np.ones((1, 2)), np.full((1, 2), 1e200), np.array([[1e200, 0.0], [-1e200, 0.0]]))
    assert scores.tolist() == [np.finfo(float).max]


@pytest.mark.parametrize("p", [1, 3, 8, 33])
def test_a_row_does_not_depend_on_its_batch(p: int) -> None:
    A, W, H = some_factors(300, p, 5)
    whole, distances = residual_scores(A, W, H), distance_scores(A, H[0])
    for size in (1, 2, 7):
        for start in range(0, 70, size):
            part = slice(start, start + size)
            np.testing.assert_array_equal(residual_scores(A[part], W[part], H), whole[part])
            np.testing.assert_array_equal(distance_scores(A[part], H[0]), distances[part])


def test_threads_do_not_matter() -> None:
    A, W, H = some_factors(9000)
    with thread_limit(1):
        alone = residual_scores(A, W, H)
    with thread_limit(3):
        np.testing.assert_array_equal(residual_scores(A, W, H), alone)
