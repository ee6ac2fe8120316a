"""New rows beside a fitted model: exact, alone or in a batch, and without a jump on the way to a fitted row."""

from __future__ import annotations

import numpy as np
import pytest
from naive import factors as naive

from penstock import minimum_spanning_tree, similarity
from penstock._types import Factors
from penstock.factor import fit_factors, gnmf, laplacian_nsnmf, nmf, nsnmf, snmf
from penstock.factor.placement import Attachment, attach, place_rows, settle_rows
from penstock.factor.profiles import fit_profiles

pytestmark = pytest.mark.kernels


@pytest.fixture
def data():
    A = np.random.default_rng(0).uniform(size=(25, 4))
    return A, similarity(minimum_spanning_tree(A))


def with_row(A, S, W, row, edge_to, strength, w):
    """The fitted rows and one more, joined to one of them."""
    n = len(A)
    bigger = np.zeros((n + 1, n + 1))
    bigger[:n, :n] = S.toarray()
    bigger[n, edge_to] = bigger[edge_to, n] = strength
    return np.vstack([A, row]), bigger, np.vstack([W, w])


@pytest.mark.parametrize("kind", ["nsnmf", "laplacian", "gnmf", "snmf"])
def test_a_leaf_minimises_the_objective_of_the_enlarged_tree(data, kind):
    A, S = data
    objective = {
        "nsnmf": nsnmf(A, S),
        "laplacian": laplacian_nsnmf(A, S),
        "gnmf": gnmf(A, S, 3.0),
        "snmf": snmf(S),
    }[kind]
    factors = fit_factors(objective, 2, random_state=0, max_iter=2000, tol=1e-9).factors
    row = np.array([0.9, 0.1, 0.4, 0.7])
    placed, around = place_rows(
        objective, factors, row[None], Attachment(np.array([3]), np.array([1.0]), np.array([2.5]))
    )
    np.testing.assert_allclose(around[0], factors.W[3])

    def loss(w):
        bigger_A, bigger_S, W = with_row(A, S, factors.W, row, 3, 2.5, w)
        return naive.family_loss(
            np.zeros((len(W), 0)) if objective.A is None else bigger_A, bigger_S, W, factors.H,
            symmetric=objective.symmetric, alpha=objective.alpha, laplacian_weight=objective.laplacian,
            gamma=objective.gamma,
        )  # fmt: skip

    at = loss(placed[0])
    for k in range(2):
        for step in (1e-4, -1e-4):
            w = placed[0].copy()
            w[k] = max(w[k] + step, 0.0)
            assert loss(w) >= at - 1e-12 * abs(at)


def test_a_twin_gets_the_fitted_weights_even_when_the_fit_stopped_early(data):
    A, S = data
    objective = nsnmf(A, S)
    factors = fit_factors(objective, 3, random_state=0, max_iter=2, tol=0.0).factors
    n = len(A)
    placed, _ = place_rows(objective, factors, A, Attachment(np.arange(n), np.zeros(n), np.ones(n)))
    np.testing.assert_array_equal(placed, factors.W)


@pytest.mark.parametrize("max_iter", [2, 2000])
def test_weights_go_to_the_neighbours_as_the_distance_goes_to_zero(data, max_iter):
    A, S = data
    objective = nsnmf(A, S)
    factors = fit_factors(objective, 3, random_state=0, max_iter=max_iter, tol=1e-10).factors
    direction = np.array([0.5, -0.5, 0.5, 0.5])
    reach = np.full(len(A), 0.1)
    strongest = np.full(len(A), 10.0)
    jumps = []
    for distance in (1e-2, 1e-4, 1e-6, 1e-8):
        rows = A + distance * direction
        where = attach(np.arange(len(A)), np.full(len(A), distance), reach, strongest)
        jumps.append(np.abs(place_rows(objective, factors, rows, where)[0] - factors.W).max())
    assert jumps[3] < 1e-5 * (1 + np.abs(factors.W).max())
    assert jumps[3] < jumps[2] < jumps[1] < jumps[0]


def test_similarity_is_capped_at_the_neighbours_largest():
    where = attach(np.array([0, 0, 0]), np.array([0.0, 1e-4, 2.0]), np.array([0.5]), np.array([2.0]))
    np.testing.assert_allclose(where.similarity, [2.0, 2.0, 0.5])
    np.testing.assert_allclose(where.apart, [0.0, 2e-4, 1.0])


def test_rows_without_a_graph_are_non_negative_least_squares():
    from scipy.optimize import nnls

    rng = np.random.default_rng(1)
    H, A = rng.uniform(size=(3, 6)), rng.uniform(size=(10, 6))
    W = settle_rows(nmf(A), Factors(rng.uniform(size=(10, 3)), H), A)
    for w, a in zip(W, A, strict=True):
        np.testing.assert_allclose(w, nnls(H.T, a)[0], atol=1e-10)


def test_profiles_are_non_negative_least_squares():
    from scipy.optimize import nnls

    rng = np.random.default_rng(2)
    W, A = rng.uniform(size=(20, 3)), rng.uniform(size=(20, 5))
    H = fit_profiles(A, W)
    for j in range(5):
        np.testing.assert_allclose(H[:, j], nnls(W, A[:, j])[0], atol=1e-8)
