"""Factors, weights and scores of tables with holes: missing entries have no say."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from naive import incomplete as naive
from scipy.optimize import nnls
from strategies import examples

from penstock import minimum_spanning_tree, similarity
from penstock.factor import (
    Coordinate,
    Factors,
    Multiplicative,
    fit_factors,
    gnmf,
    laplacian_nsnmf,
    nmf,
    nsnmf,
    random_start,
    solve,
)
from penstock.factor.descent import fit_profiles
from penstock.factor.objectives import over_seen
from penstock.factor.placement import Attachment, place_rows, settle_rows
from penstock.scoring import distance_scores, residual_scores, structural_scores

pytestmark = pytest.mark.kernels


def table(n=40, p=6, missing=0.2, seed=0):
    rng = np.random.default_rng(seed)
    A = rng.random((n, 2)) @ rng.random((2, p)) + 0.1 * rng.random((n, p))
    A[:, 1:][rng.random((n, p - 1)) < missing] = np.nan
    return A


def family(A):
    S = similarity(minimum_spanning_tree(A), "relative")
    return {"nmf": nmf(A), "nsnmf": nsnmf(A, S), "laplacian": laplacian_nsnmf(A, S), "gnmf": gnmf(A, S, 3.0)}


def value(objective, factors):
    """The objective by the slow loops for the attribute term, and by the fast code for all else."""
    rest = over_seen(objective).value(factors) - objective.alpha * over_seen(nmf(objective.A)).value(factors)
    return rest + objective.alpha * naive.attribute_loss(objective.A, factors.W, factors.H)


@given(st.integers(2, 12), st.integers(2, 6), st.integers(1, 3), st.integers(0, 1000))
@examples(40)
def test_the_value_is_that_of_the_entries_seen(n, p, K, seed):
    A = table(n, p, 0.3, seed)
    rng = np.random.default_rng(seed)
    factors = Factors(rng.random((n, K)), rng.random((K, p)))
    objective = over_seen(nmf(A))
    expected = naive.attribute_loss(A, factors.W, factors.H)
    for _ in range(2):  # whatever the holes are filled with at the moment
        assert objective.value(factors) == pytest.approx(expected, rel=1e-9)
        objective.refill(rng.random((n, K)), rng.random((K, p)))


@pytest.mark.parametrize("kind", ["nmf", "nsnmf", "laplacian", "gnmf"])
def test_the_gradient_is_that_of_the_entries_seen(kind):
    objective = over_seen(family(table())[kind])
    start = random_start(objective, 2, 0)
    gradient = objective.gradient(start)
    for name in ("W", "H"):
        for place in [(0, 0), (1, 1)]:
            moved = {"W": start.W.copy(), "H": start.H.copy()}
            values = []
            for step in (1e-5, -1e-5):
                moved[name] = getattr(start, name).copy()
                moved[name][place] += step
                values.append(objective.value(Factors(**moved)))
            slope = (values[0] - values[1]) / 2e-5
            assert getattr(gradient, name)[place] == pytest.approx(slope, rel=1e-4, abs=1e-6)


@pytest.mark.parametrize("settings_", [Coordinate(), Multiplicative()], ids=lambda s: type(s).__name__)
@pytest.mark.parametrize("kind", ["nmf", "nsnmf", "laplacian", "gnmf"])
def test_the_loss_never_rises_and_the_end_is_stationary(kind, settings_):
    objective = over_seen(family(table())[kind])
    solution = fit_factors(objective, 2, settings_, max_iter=400, random_state=0)
    slack = 1e-10 * (solution.history[0] + objective.norm_A + objective.terms.norm_S)
    assert (np.diff(solution.history) <= slack).all()
    assert solution.objective == pytest.approx(value(objective, solution.factors), rel=1e-9)
    if not isinstance(settings_, Multiplicative):
        assert solution.converged
        assert solution.kkt_residual <= 1e-4


@given(seed=st.integers(0, 200), missing=st.sampled_from([0.05, 0.3, 0.5]))
@examples(15)
def test_it_improves_on_a_table_filled_with_column_means(seed, missing):
    A = table(missing=missing, seed=seed)
    S = similarity(minimum_spanning_tree(A), "relative")
    means = np.nanmean(A, axis=0)
    filled = fit_factors(nsnmf(np.where(np.isnan(A), means, A), S), 2, max_iter=2000, random_state=0)
    objective = over_seen(nsnmf(A, S))
    # From the same start: other starts may end in other valleys, on either side of that of the filled table.
    ours = solve(objective, filled.factors, settings=Coordinate(), max_iter=200, tol=1e-6)
    assert ours.objective <= objective.value(filled.factors) * (1 + 1e-12)


def test_without_holes_it_is_the_plain_objective():
    whole, seen = nmf(table(missing=0.0)), over_seen(nmf(table()))
    assert over_seen(whole) is whole
    assert over_seen(seen) is seen


def test_what_stands_in_a_hole_is_found_again():
    rng = np.random.default_rng(3)
    whole = rng.random((60, 2)) @ rng.random((2, 8))
    A = np.where(rng.random(whole.shape) < 0.2, np.nan, whole)
    found = fit_factors(nmf(A), 2, max_iter=5000, tol=1e-7, random_state=0).factors
    assert np.abs(found.W @ found.H - whole).max() < 0.05


def test_profiles_are_least_squares_over_the_rows_that_have_the_column():
    A, W = table(30, 5, 0.3, 1), np.random.default_rng(1).random((30, 3))
    H = fit_profiles(A, W)
    for column in range(5):
        seen = ~np.isnan(A[:, column])
        np.testing.assert_allclose(H[:, column], nnls(W[seen], A[seen, column])[0], atol=1e-7)


def test_weights_are_least_squares_over_the_columns_that_the_row_has():
    A, H = table(20, 12, 0.3, 2), np.random.default_rng(2).random((2, 12))
    W = settle_rows(nmf(A), Factors(np.zeros((20, 2)), H), A)
    for w, a in zip(W, A, strict=True):
        np.testing.assert_allclose(w, nnls(H[:, ~np.isnan(a)].T, a[~np.isnan(a)])[0], atol=1e-8)


@pytest.mark.parametrize("kind", ["nsnmf", "laplacian", "gnmf"])
def test_a_leaf_with_holes_is_placed_as_if_the_columns_were_not_there(kind):
    A = table(25, 5, 0.2, 3)
    objective = family(A)[kind]
    factors = fit_factors(over_seen(objective), 2, random_state=0, max_iter=500).factors
    row = np.array([[0.4, np.nan, 0.3, np.nan, 0.2]])
    where = Attachment(np.array([3]), np.array([1.0]), np.array([2.5]))
    placed = place_rows(objective, factors, row, where)[0]
    seen = ~np.isnan(row[0])
    narrow = {"nsnmf": nsnmf, "laplacian": laplacian_nsnmf, "gnmf": lambda B, S: gnmf(B, S, 3.0)}[kind](
        np.ascontiguousarray(A[:, seen]), objective.S
    )
    expected = place_rows(narrow, Factors(factors.W, factors.H[:, seen]), row[:, seen], where)[0]
    np.testing.assert_allclose(placed, expected, rtol=1e-9, atol=1e-12)


@given(st.integers(1, 20), st.integers(2, 9), st.integers(1, 4), st.integers(0, 1000))
@examples(40)
def test_scores_are_scaled_up_from_what_is_seen(n, p, K, seed):
    A, rng = table(n, p, 0.4, seed), np.random.default_rng(seed)
    W, H = rng.random((n, K)), rng.random((K, p))
    np.testing.assert_allclose(residual_scores(A, W, H), naive.residual_scores(A, W, H), rtol=1e-12, atol=1e-14)
    np.testing.assert_allclose(
        distance_scores(A, H[0]), naive.residual_scores(A, np.ones((n, 1)), H[:1]), rtol=1e-12, atol=1e-14
    )
    if n > 1:
        S = similarity(minimum_spanning_tree(A), "relative")
        mean = np.asarray((S @ W) / np.where(S.sum(axis=1) > 0, S.sum(axis=1), 1)[:, None])
        mean[S.sum(axis=1) == 0] = W[S.sum(axis=1) == 0]
        np.testing.assert_allclose(structural_scores(A, W, H, S), naive.residual_scores(A, mean, H), rtol=1e-10)
