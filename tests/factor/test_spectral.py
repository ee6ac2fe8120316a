"""Starts from eigenvectors: the pairs of the matrix written down in full, in memory and by blocks of rows."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from naive import factors as naive
from scipy import sparse
from strategies import examples
from strategies_factors import family, random_tree, tables

from penstock._threads import thread_limit
from penstock.factor import Factors, fit_factors, nmf, nsnmf, random_start, snmf, solve
from penstock.factor.blocks import Layout, LocalExecutor
from penstock.factor.objectives import over_seen
from penstock.factor.row_blocks import BlockColumns, BlockProblem
from penstock.factor.start import Operator, TableColumns, find_leading, find_start, spectral_start
from penstock.factor.terms import profile_parts, profile_residual
from penstock.graph.mst import minimum_spanning_tree
from penstock.graph.paths import PathSimilarity

KINDS = ["nmf", "gnmf", "snmf", "nsnmf", "laplacian"]


def by_blocks(objective, n_blocks, K, seed):
    layout = Layout.of(objective, n_blocks)
    cut, coupling = layout.cut(objective)
    problem = BlockProblem(LocalExecutor(cut), coupling, objective.terms)
    return BlockColumns(problem, K, seed), problem, layout


def rows_of(columns, problem, layout, mixed):
    """The vectors that the basis is mixed to, signs aside."""
    columns.set_weights(mixed, 0.0)
    return columns.W if problem is None else layout.joined(problem.executor.gather("W"))


@pytest.mark.parametrize("kind", ["nmf", "snmf", "nsnmf"])
@pytest.mark.parametrize("n_blocks", [None, 1, 4])
@given(seed=st.integers(0, 999), n=st.integers(4, 70), K=st.integers(1, 3))
@examples(12)
def test_leading_eigenpairs_are_those_of_the_matrix_in_full(kind, n_blocks, seed, n, K):
    rng = np.random.default_rng(seed)
    A, S = rng.random((n, 5)), random_tree(n, rng)
    objective = family(A, S, [kind])[kind]
    columns, problem, layout = TableColumns(objective, K, seed), None, None
    if n_blocks is not None:
        columns, problem, layout = by_blocks(objective, n_blocks, K, seed)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("penstock.factor.start._MOST_PASSES", 2000)
        values, mixed = find_leading(columns, K, tol=1e-7)
    weights = objective.symmetric, objective.alpha
    expected, vectors = naive.leading_eigenpairs(objective.A, S, *weights, K)
    norm = Operator.of(objective.terms).norm
    np.testing.assert_allclose(values * norm, expected, rtol=1e-9, atol=1e-9 * norm)
    everything = naive.leading_eigenpairs(objective.A, S, *weights, n)[0]
    gaps = np.abs(expected[:, None] - everything)
    gaps[np.arange(K), np.arange(K)] = np.inf
    alone = gaps.min(axis=1) > 1e-2 * norm  # vectors of values that are near each other may be mixed
    found = rows_of(columns, problem, layout, mixed)
    np.testing.assert_allclose(found[:, alone], np.abs(vectors[:, alone]), atol=1e-4)


@pytest.mark.parametrize("kind", KINDS)
@given(problem=tables())
@examples(12)
def test_a_start_is_usable_on_its_bound_and_has_the_best_profiles(kind, problem):
    A, S, K, rng = problem
    objective = family(A, S, [kind])[kind]
    start = spectral_start(objective, K, int(rng.integers(2**31)))
    assert (start.W.shape, start.H.shape) == ((len(S), K), (K, objective.n_columns))
    for factor in start.W, start.H:
        assert np.isfinite(factor).all()
        assert (factor >= 0).all()
    assert start.W.any(axis=0).all()
    assert (np.linalg.norm(start.H, axis=1) <= objective.row_bound * (1 + 1e-12)).all()
    if kind in ("nmf", "nsnmf"):
        G = start.W.T @ start.W
        parts = profile_parts(objective.terms, start.H, G, objective.attributes_by(start.W))
        assert profile_residual(objective.terms, start.H, np.diag(G), parts) < 0.05


@pytest.mark.parametrize("kind", KINDS)
def test_blocks_start_where_the_table_does(kind):
    rng = np.random.default_rng(3)
    objective = family(rng.random((80, 6)), random_tree(80, rng), [kind])[kind]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("penstock.factor.start._MOST_PASSES", 2000)
        patch.setattr(find_leading, "__defaults__", (1e-9,))
        whole = spectral_start(objective, 3, 0)
        columns, problem, layout = by_blocks(objective, 5, 3, 0)
        H = find_start(columns, objective.terms, 3)
    W = layout.joined(problem.executor.gather("W"))
    np.testing.assert_allclose(W, whole.W, rtol=1e-5, atol=1e-6 * whole.W.max())
    np.testing.assert_allclose(H, whole.H, rtol=1e-4, atol=1e-5 * whole.H.max(initial=1.0))


@pytest.mark.parametrize("exponent", [-150, -100, -6, 0, 4, 60])
def test_a_start_follows_the_scale_of_the_data(exponent):
    rng = np.random.default_rng(0)
    A, S = rng.random((30, 4)), random_tree(30, rng)
    plain, alone = nmf(10.0**exponent * A), snmf(sparse.csr_array(10.0**exponent * S))
    assert plain.value(spectral_start(plain, 3, 0)) < 0.5 * plain.norm_A
    assert alone.value(spectral_start(alone, 3, 0)) < alone.terms.norm_S
    both = nsnmf(A, sparse.csr_array(10.0 ** min(exponent, 4) * S), gamma=0.01)
    nothing = Factors(np.zeros((30, 3)), np.zeros((3, 4)))
    assert both.value(spectral_start(both, 3, 0)) < both.value(nothing)


def test_groups_without_an_eigenvector_begin_from_random_weights():
    rank_one = nmf(np.outer([1.0, 2.0, 3.0, 0.5], [1.0, 0.5]))
    start = spectral_start(rank_one, 3, 0)
    assert start.W.any(axis=0).all()
    np.testing.assert_allclose(start.W[:, 0] / start.W[0, 0], [1.0, 2.0, 3.0, 0.5], rtol=1e-9)
    assert 0 < start.W[:, 1:].max() < start.W[:, 0].max()
    nothing = fit_factors(nmf(np.zeros((3, 2))), 2, random_state=0)
    assert nothing.objective == 0.0
    assert nothing.converged
    pair = snmf(sparse.csr_array(np.array([[0.0, 2.0], [2.0, 0.0]])))  # eigenvalues 2 and −2
    assert fit_factors(pair, 2, random_state=0).objective == pytest.approx(4.0, rel=1e-6)


def test_missing_entries_count_as_means_however_often_one_fits():
    rng = np.random.default_rng(1)
    A = rng.random((40, 5))
    A[rng.random(A.shape) < 0.2] = np.nan
    objective = over_seen(nsnmf(A, sparse.csr_array(random_tree(40, rng))))
    first, again = (fit_factors(objective, 2, random_state=0) for _ in range(2))
    assert first.history[0] == pytest.approx(again.history[0], rel=1e-12)


def test_all_pairs_along_a_tree_are_as_good_as_their_matrix():
    rng = np.random.default_rng(2)
    A = rng.random((60, 3))
    paths = PathSimilarity(minimum_spanning_tree(A))
    one, two = (spectral_start(nsnmf(A, S), 3, 0) for S in (paths, paths.tocsr()))
    np.testing.assert_allclose(one.W, two.W, rtol=1e-6, atol=1e-8)


def test_the_same_seed_gives_the_same_bits_on_any_number_of_threads():
    rng = np.random.default_rng(4)
    objective = nsnmf(rng.random((300, 6)), sparse.csr_array(random_tree(300, rng)))
    starts = []
    for threads in (1, 2, 3):
        with thread_limit(threads):
            run = fit_factors(objective, 4, max_iter=3, tol=0.0, random_state=5)
        starts.append((run.factors.W.tobytes(), run.factors.H.tobytes(), run.objective))
    assert len(set(starts)) == 1


def test_eigenvectors_end_lower_than_random_starts():
    rng = np.random.default_rng(0)
    ends = []
    for _ in range(12):
        objective = nsnmf(rng.random((80, 5)), sparse.csr_array(random_tree(80, rng, 1000.0)))
        found = [
            fit_factors(objective, 4, random_state=0).objective,
            *(solve(objective, random_start(objective, 4, seed)).objective for seed in range(5)),
        ]
        ends.append(np.array(found) / min(found) - 1)
    ends = np.array(ends)
    assert ends[:, 0].mean() < ends[:, 1:].mean()
