"""New rows and a fitted model: exact, alone or in a batch, and without a jump on the way to a fitted row."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from naive import factors as naive
from scipy import sparse
from strategies import examples
from strategies_factors import random_tree

from penstock import minimum_spanning_tree, similarity
from penstock.factor import Factors, fit_factors, gnmf, laplacian_nsnmf, nmf, nsnmf, snmf
from penstock.factor.placement import Attachment, attach, place_rows, settle_rows

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


@pytest.mark.parametrize("holes", [False, True])
@pytest.mark.parametrize("max_iter", [2, 2000])
def test_weights_go_to_the_neighbours_as_the_distance_goes_to_zero(data, max_iter, holes):
    A, S = data
    if holes:
        A = np.where(np.random.default_rng(4).random(A.shape) < 0.2, np.nan, A)
    objective = nsnmf(A, S)
    factors = fit_factors(objective, 3, random_state=0, max_iter=max_iter, tol=1e-10).factors
    direction = np.array([0.5, -0.5, 0.5, 0.5])
    reach = np.full(len(A), 0.1)
    strongest = np.full(len(A), 10.0)
    jumps = []
    for distance in (1e-2, 1e-4, 1e-6, 1e-8):
        rows = A + distance * direction
        where = attach(np.arange(len(A)), np.full(len(A), distance), reach, strongest, equal=np.zeros(len(A), bool))
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
    assert not settle_rows(nmf(A), Factors(W, H), np.zeros((2, 6))).any()


def coordinate_steps(Q, pull, quartic, w, most):
    """Each weight in turn to the minimum of ½wᵀQw − pullᵀw + (quartic/4)‖w‖⁴ over w ≥ 0, until none of them moves."""
    w = w.copy()
    for _ in range(most):
        before = w.copy()
        for k in range(len(w)):
            a = Q[k, k] + quartic * (w @ w - w[k] ** 2)
            b = Q[k] @ w - Q[k, k] * w[k] - pull[k]
            if quartic > 0:
                w[k] = naive.minimise_quartic(a / quartic, b / quartic)
            elif a > 0:
                w[k] = max(-b / a, 0.0)
        if np.abs(w - before).max() <= 1e-14 * np.linalg.norm(w):
            break
    return w


def row_problem(objective, factors, row, i, apart, similarity):
    """Q and pull of a row that is fitted row i to the part 1 − apart: docs/decisions/0004-new-rows.md."""
    W, H, S = factors.W, factors.H, np.zeros((len(factors.W),) * 2) if objective.S is None else objective.S.toarray()
    edges = (1 - apart) * S[i]
    edges[i] += apart * similarity
    seen = ~np.isnan(row) if objective.A is not None else np.zeros(H.shape[1], bool)
    others = W.T @ W - (1 - apart) * np.outer(W[i], W[i])
    Q = objective.symmetric * others + objective.alpha / 2 * H[:, seen] @ H[:, seen].T
    Q += (objective.gamma / 2 + objective.laplacian / 2 * edges.sum()) * np.eye(len(H))
    pull = (objective.symmetric + objective.laplacian / 2) * edges @ W
    return Q, pull + objective.alpha / 2 * H[:, seen] @ np.where(np.isnan(row), 0.0, row)[seen]


def slow_place(objective, factors, row, i, apart, similarity, most):
    """A new row's weights by plain coordinate steps, the size of what they are made of, and if the steps get there."""
    problems = [row_problem(objective, factors, row, i, apart, similarity)]
    if apart < 1:
        fitted = row if objective.A is None else objective.A[i]
        problems.append(row_problem(objective, factors, fitted, i, 0.0, 0.0))
    ends = [coordinate_steps(Q, pull, objective.symmetric, factors.W[i], most) for Q, pull in problems]
    undone = (1 - apart) * (factors.W[i] - ends[-1]) if apart < 1 else 0.0
    well_posed = all(
        np.linalg.cond(Q + objective.symmetric * (w @ w) * np.eye(len(w))) < 50
        for (Q, _), w in zip(problems, ends, strict=True)
    )
    return np.maximum(ends[0] + undone, 0.0), np.abs([factors.W[i], *ends]).max(), well_posed


def posed(kind, A, S):
    return {
        "nsnmf": lambda: nsnmf(A, S),
        "no ridge": lambda: nsnmf(A, S, 0.5, 0.0),
        "laplacian": lambda: laplacian_nsnmf(A, S),
        "gnmf": lambda: gnmf(A, S, 3.0),
        "snmf": lambda: snmf(S),
        "nmf": lambda: nmf(A),
    }[kind]()


@given(
    st.sampled_from(["nsnmf", "no ridge", "laplacian", "gnmf", "snmf", "nmf"]),
    st.sampled_from([0.0, 0.2, 0.9, 1.0]),
    st.booleans(),
    st.sampled_from([0.01, 1.0, 30.0]),
    st.integers(1, 4),
    st.integers(0, 10**6),
)
@examples(150)
def test_new_rows_end_where_slow_coordinate_steps_do(kind, apart, holes, size, K, seed):
    rng = np.random.default_rng(seed)
    n, p = int(rng.integers(3, 9)), int(rng.integers(1, 7))
    A, row = rng.random((n, p)), rng.random((1, p))
    if holes:
        A[:, 1:][rng.random((n, p - 1)) < 0.3] = np.nan
        row[rng.random((1, p)) < 0.3] = np.nan
    objective = posed(kind, A, random_tree(n, rng))
    W, H = rng.random((n, K)) * (rng.random((n, K)) < 0.7), size * rng.random((K, p)) * (rng.random((K, p)) < 0.7)
    factors = Factors(size * W, H)
    i, similarity = int(rng.integers(n)), float(rng.random())
    where = Attachment(np.array([i]), np.array([apart]), np.array([similarity]), np.zeros(1, bool))
    expected, largest, well_posed = slow_place(objective, factors, row[0], i, apart, similarity, 1500)
    found = place_rows(objective, factors, row, where)[0][0]
    assert (found >= 0).all()
    if well_posed:
        np.testing.assert_allclose(found, expected, rtol=0, atol=1e-11 * largest)
    elif apart == 1:
        Q, pull = row_problem(objective, factors, row[0], i, apart, similarity)
        assert phi(found, Q, pull, objective.symmetric) <= phi(expected, Q, pull, objective.symmetric) + 1e-12 * (
            found @ Q @ found + np.abs(pull) @ found
        )


def phi(w, Q, pull, quartic):
    return w @ Q @ w / 2 - pull @ w + quartic * (w @ w) ** 2 / 4


@pytest.mark.parametrize("apart", [0.3, 1.0])
@pytest.mark.parametrize("kind", ["nmf", "gnmf"])
def test_of_many_minima_the_one_that_coordinate_steps_reach_is_taken(kind, apart):
    rng = np.random.default_rng(5)
    A, row, H = rng.random((9, 2)), rng.random((1, 2)), rng.random((4, 2))  # four groups explain two columns
    objective = nmf(A) if kind == "nmf" else gnmf(A, sparse.csr_array((9, 9)), 1.0)
    factors = Factors(rng.random((9, 4)), H)
    where = Attachment(np.array([3]), np.array([apart]), np.zeros(1))
    expected, _, well_posed = slow_place(objective, factors, row[0], 3, apart, 0.0, 500)
    assert not well_posed
    np.testing.assert_allclose(place_rows(objective, factors, row, where)[0][0], expected, rtol=1e-10, atol=1e-11)


def test_nearly_parallel_profiles_do_not_keep_a_row_from_its_minimum():
    rng = np.random.default_rng(6)
    A, base = rng.random((30, 8)), rng.random(8)
    H = base + 1e-3 * rng.random((4, 8))  # plain coordinate steps would need millions
    W = settle_rows(nmf(A), Factors(np.zeros((1, 4)), H), A)
    slopes = (W @ H - A) @ H.T
    assert np.abs(np.minimum(W, slopes)).max() < 1e-11
    assert (W > 0).any(axis=1).all()


def test_a_structure_too_weak_for_rounding_leaves_the_coordinate_steps():
    A, S = np.random.default_rng(7).random((5, 3)), sparse.csr_array((5, 5))
    objective = replace(nsnmf(A, S, 1e9, 0.0), symmetric=1e-6)
    H = np.array([[1.0, 1.0, 1.0], [1.0, 1.0, 1.0], [1.0, 0.5, 0.0]])  # two equal profiles
    factors = Factors(np.full((5, 3), 0.1), H)
    placed = place_rows(objective, factors, A, Attachment(np.arange(5), np.ones(5), np.zeros(5)))[0]
    slopes = (placed @ H - A) @ H.T
    assert np.abs(np.minimum(placed, slopes)).max() < 1e-11


@pytest.mark.parametrize("kind", ["nsnmf", "laplacian", "nmf"])
def test_a_row_has_the_same_weights_alone_and_in_a_batch_to_the_last_bit(data, kind):
    A, S = data
    objective, rng = posed(kind, A, S), np.random.default_rng(9)
    factors = Factors(rng.random((25, 3)), rng.random((3, 4)))
    rows = rng.random((300, 4))
    where = Attachment(rng.integers(0, 25, 300), rng.random(300), rng.random(300))
    together = place_rows(objective, factors, rows, where)
    for r in range(0, 300, 17):
        one = slice(r, r + 1)
        alone = Attachment(where.neighbors[one], where.apart[one], where.similarity[one])
        for whole, part in zip(together, place_rows(objective, factors, rows[one], alone), strict=True):
            np.testing.assert_array_equal(part[0], whole[r])
