"""Trees and neighbours of rows with holes: as the slow loops say, and the plain ones where nothing is missing."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from naive import incomplete as naive
from strategies import examples
from strategies_missing import tables_with_holes, tables_with_incomparable_rows

from penstock import minimum_spanning_tree
from penstock._threads import thread_limit
from penstock.graph.distance_kernels import count_shared, search_limit, shared_squared_distance, squared_distance
from penstock.graph.mst import prim_edges, spanning_tree_of_comparable
from penstock.graph.points import prepare_incomplete, prepare_points
from penstock.graph.rows import (
    check_comparable,
    check_connected,
    find_incomparable,
    find_unconnected,
    first_copies,
    patterns_seen,
    shares_seen,
)
from penstock.graph.search import RowSearch, nearest_neighbors
from penstock.graph.similarities import binary_knn_graph, gaussian_graph, self_tuning_graph

pytestmark = pytest.mark.kernels


def lattice(n, p, seed, missing=0.25):
    """Small whole numbers with holes: many ties, and sums without rounding. The first column is complete."""
    rng = np.random.default_rng(seed)
    X = rng.integers(0, 4, size=(n, p)).astype(float)
    X[:, 1:][rng.random((n, p - 1)) < missing] = np.nan
    return X


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize(("n", "p"), [(2, 2), (30, 3), (65, 5), (130, 8)])
def test_the_tree_is_kruskals_edge_by_edge(n, p, seed):
    rng = np.random.default_rng(seed)
    sparse = np.where(rng.random((n, p)) < 0.6, np.nan, rng.integers(0, 4, size=(n, p)))
    sparse[np.isnan(sparse).all(axis=1), seed % p] = 1.0
    assert n == 2 or naive.incomparable_pair(sparse) is not None
    for X, grow in ((lattice(n, p, seed), minimum_spanning_tree), (sparse, spanning_tree_of_comparable)):
        if not any(naive.groups(X)):
            tree = grow(X)
            edges, lengths = naive.kruskal(X)
            assert list(map(tuple, tree.edges.tolist())) == edges
            np.testing.assert_allclose(tree.lengths, lengths, rtol=1e-15)


def slack(X, lengths):
    """Rounding; and lengths whose squares vanish next to the largest range of a column count as equal."""
    return 1e-15 * max(lengths, default=0.0) + 1e-149 * float(np.nanmax(np.fmax.reduce(X) - np.fmin.reduce(X)))


def assert_kruskals(tree, X):
    """The same lengths; and the same edges, unless rounding may decide between two pairs of rows."""
    edges, lengths = naive.kruskal(X)
    np.testing.assert_allclose(tree.lengths, lengths, rtol=1e-12, atol=slack(X, lengths))
    finite = [distance for distance, _, _ in naive.pair_distances(X) if distance < np.inf]
    if (np.diff(finite) > 1e-12 * np.array(finite[1:]) + 1e6 * slack(X, lengths)).all():
        assert list(map(tuple, tree.edges.tolist())) == edges


@given(X=tables_with_holes())
@examples(150)
def test_the_tree_has_kruskals_lengths(X):
    tree = minimum_spanning_tree(X)
    assert_kruskals(tree, X)
    comparable = spanning_tree_of_comparable(X)
    np.testing.assert_array_equal(comparable.edges, tree.edges)
    np.testing.assert_array_equal(comparable.lengths, tree.lengths)


@given(X=tables_with_incomparable_rows())
@examples(300)
def test_the_tree_of_comparable_rows_is_kruskals_or_the_rows_fall_apart(X):
    groups = naive.groups(X)
    if any(groups):
        assert np.isinf(naive.kruskal(X)[1]).any()
        other = next(row for row, group in enumerate(groups) if group)
        with pytest.raises(ValueError, match=f"between row 0 and row {other}, not even by way of other rows"):
            spanning_tree_of_comparable(X)
    else:
        assert_kruskals(spanning_tree_of_comparable(X), X)


@given(seen=arrays(np.bool_, st.tuples(st.integers(1, 12), st.integers(1, 6))))
@examples(250)
def test_rows_without_a_common_column_are_named(seen):
    X = np.where(seen, 1.0, np.nan)
    if not seen.any(axis=1).all():
        for check in (check_connected, check_comparable):
            with pytest.raises(ValueError, match=f"reading in row {int(np.argmin(seen.any(axis=1)))}"):
                check(X)
    else:
        apart = [row for row, group in enumerate(naive.groups(X)) if group]
        assert find_unconnected(seen) == ((0, apart[0]) if apart else None)
        assert find_incomparable(seen) == naive.incomparable_pair(X)


@given(X=tables_with_holes(), data=st.data())
@examples(50)
def test_the_order_of_columns_and_rows_does_not_matter(X, data):
    columns, rows = (data.draw(st.permutations(range(size))) for size in X.shape[::-1])
    lengths = minimum_spanning_tree(X).lengths
    mixed = minimum_spanning_tree(X[rows][:, columns]).lengths
    np.testing.assert_allclose(mixed, lengths, rtol=1e-12, atol=slack(X, lengths))


def test_without_holes_the_kernel_returns_the_plain_tree():
    X = np.random.default_rng(0).normal(size=(150, 7))
    marked = np.vstack([X, X[:1] + 100.0])
    marked[150, 3] = np.nan  # a row far away from all others, whose edges stay what they are
    plain, with_hole = minimum_spanning_tree(X, strategy="prim"), minimum_spanning_tree(marked)
    np.testing.assert_array_equal(with_hole.edges[:-1], plain.edges)
    np.testing.assert_array_equal(with_hole.lengths[:-1], plain.lengths)
    points = prepare_points(X, rotate=False)
    np.testing.assert_array_equal(points.search, prepare_incomplete(X).search)
    np.testing.assert_array_equal(prim_edges(points), prim_edges(prepare_incomplete(X)))


@given(X=tables_with_holes())
@examples(100)
def test_the_float32_sum_never_exceeds_its_limit(X):
    points = prepare_incomplete(X)
    difference = points.search[:, None] - points.search[None]
    computed = np.nancumsum(difference * difference, axis=2, dtype=np.float32)[:, :, -1]
    patterns, seen = patterns_seen(X), shares_seen(X)
    for i in range(len(X)):
        for j in range(len(X)):
            square = shared_squared_distance(points.exact, i, points.exact, j)
            part = count_shared(patterns, i, patterns, j) / X.shape[1]
            assert part == (~np.isnan(X[i]) & ~np.isnan(X[j])).mean()
            assert part <= min(seen[i], seen[j]) + 1e-15
            assert computed[i, j] <= search_limit(square * part, 2 * points.errors.max(), points.stretch)


@pytest.mark.parametrize("p", [1, 3, 4, 63, 64, 65, 130])
def test_the_shared_distance_of_whole_rows_is_the_distance_to_the_last_bit(p):
    X = np.random.default_rng(p).normal(size=(2, p))
    assert shared_squared_distance(X, 0, X, 1) == squared_distance(X, 0, X, 1)
    patterns = patterns_seen(X)
    assert count_shared(patterns, 0, patterns, 1) == p
    apart = np.array([[1.0, np.nan], [np.nan, 1.0]])
    assert shared_squared_distance(apart, 0, apart, 1) == np.inf


def test_incomparable_rows_of_a_large_table(monkeypatch):
    monkeypatch.setattr("penstock.graph.rows._AT_ONCE", 16)
    seen = np.random.default_rng(0).random((200, 40)) < 0.45
    seen[:, 0] = seen[:, 1] = False
    seen[:, 2] = ~seen[:, 3]
    expected = naive.incomparable_pair(np.where(seen, 1.0, np.nan).tolist())
    assert find_incomparable(seen) == expected


def test_clear_errors():
    nan = np.nan
    with pytest.raises(ValueError, match=r"between row 0 and row 2: no column has a reading in both\. Leave out one"):
        minimum_spanning_tree([[1.0, nan], [1.0, 1.0], [nan, 1.0]])
    with pytest.raises(ValueError, match=r"No column has a reading in row 1, nor in 1 other rows"):
        minimum_spanning_tree([[1.0, 2.0], [nan, nan], [nan, nan]])
    with pytest.raises(ValueError, match="A kd-tree needs all values"):
        minimum_spanning_tree([[1.0, nan], [1.0, 1.0]], strategy="kdtree")
    with pytest.raises(ValueError, match="the 20 nearest rows, but there are 19"):
        nearest_neighbors(lattice(20, 3, 0), 20)


def test_a_column_without_any_value_only_stretches_the_tree():
    X = np.array([[0.0, np.nan], [3.0, np.nan], [1.0, np.nan]])
    tree = minimum_spanning_tree(X)
    assert tree.edges.tolist() == [[0, 2], [1, 2]]
    np.testing.assert_allclose(tree.lengths, np.sqrt(2) * np.array([1.0, 2.0]))


@given(X=tables_with_holes())
@examples(100)
def test_copies_have_the_same_holes(X):
    assert first_copies(X).tolist() == naive.first_copies(X)
    odd = np.array([0x7FF8000000000001], dtype=np.uint64).view(np.float64)[0]  # another bit pattern of NaN
    assert first_copies(np.array([[1.0, np.nan], [1.0, odd], [1.0, -np.nan]])).tolist() == [0, 0, 0]


@pytest.mark.parametrize("seed", range(4))
def test_neighbours_are_those_of_all_pairs(seed):
    X = lattice(70, 4, seed)
    for k, threads in ((1, 1), (5, 2), (69, 3)):
        with thread_limit(threads):
            near, distances = nearest_neighbors(X, k)
        for i in range(70):
            expected = naive.nearest(X.tolist(), X[i].tolist(), k, left_out=i)
            assert near[i].tolist() == [j for _, j in expected]
            np.testing.assert_allclose(distances[i], [d for d, _ in expected], rtol=1e-14)


@pytest.mark.parametrize("holes", [True, False])
def test_new_rows_find_the_nearest_in_any_batch(holes):
    X = lattice(70, 4, 1) if holes else lattice(70, 4, 1, missing=0.0)
    Q = np.vstack([lattice(40, 4, 2), lattice(10, 4, 3, missing=0.0)]) + 0.25
    search = RowSearch(X)
    near, distances = search.nearest(Q, 3)
    for i, row in enumerate(Q.tolist()):
        expected = naive.nearest(X.tolist(), row, 3)
        assert near[i].tolist() == [j for _, j in expected]
        np.testing.assert_allclose(distances[i], [d for d, _ in expected], rtol=1e-14)
    for start in range(0, 50, 7):
        part = search.nearest(Q[start : start + 7], 3)
        np.testing.assert_array_equal(part[0], near[start : start + 7])
        np.testing.assert_array_equal(part[1], distances[start : start + 7])


def test_rows_without_a_common_column_are_not_found():
    search = RowSearch(np.array([[1.0, np.nan], [2.0, 5.0], [3.0, np.nan]]))
    near, distances = search.nearest(np.array([[np.nan, 4.0]]), 3)
    assert near.tolist() == [[1, -1, -1]]
    np.testing.assert_allclose(distances, [[np.sqrt(2), np.inf, np.inf]])


def test_an_equal_row_comes_before_one_that_only_agrees():
    X = np.array([[1.0, np.nan, 3.0], [1.0, 2.0, 3.0], [9.0, 9.0, 9.0]])
    near, distances, equal = RowSearch(X).nearest_or_equal(np.array([[1.0, 2.0, 3.0], [1.0, 2.0, np.nan]]))
    assert near.tolist() == [1, 0]
    assert distances.tolist() == [0.0, 0.0]
    assert equal.tolist() == [True, False]
    complete = RowSearch(X[1:])
    assert complete.nearest_or_equal(np.array([[1.0, np.nan, 3.0], [9.0, 9.0, 9.0]]))[2].tolist() == [False, True]


@pytest.mark.parametrize("unit", [1e-150, 1.0, 1e150])
def test_a_search_gives_back_its_rows(unit):
    X = lattice(20, 4, 5) * unit
    X[:, 2] = np.where(np.isnan(X[:, 2]), np.nan, 7.0 * unit)
    search = RowSearch(X)
    np.testing.assert_array_equal(search.rows, X)
    again = RowSearch(search.rows)
    np.testing.assert_array_equal(again.neighbors(3)[1], search.neighbors(3)[1])


def few_shared(n=40, p=4, seed=6):
    """Rows that are connected by shared columns, though some pairs share none; row 0 shares one with row 1 alone."""
    X = lattice(n, p, seed)
    X[:, 0] = np.nan
    X[2:, 1] = np.where(np.isnan(X[2:, 1]), 1.0, X[2:, 1])
    X[:2] = np.nan
    X[:2, 0], X[1, 1], X[3], X[4] = 1.0, 2.0, np.nan, np.nan
    X[3, 1], X[4, 2:] = 1.0, 3.0
    assert naive.incomparable_pair(X) == (0, 2)
    assert not any(naive.groups(X))
    return X


def test_graphs_are_their_formulas():
    X = few_shared()
    assert nearest_neighbors(X, 5)[0][0].tolist() == [1, -1, -1, -1, -1]
    binary, gaussian, tuned = np.zeros((3, 40, 40))
    near = [naive.nearest(X.tolist(), X[i].tolist(), 39, left_out=i) for i in range(40)]
    sigma = [found[min(7, len(found)) - 1][0] for found in near]
    sigma = [value or min(s for s in sigma if s > 0) for value in sigma]
    usual = np.median([distance for found in near for distance, _ in found if distance > 0])
    for i in range(40):
        for rank, (distance, j) in enumerate(near[i]):
            gaussian[i, j] = np.exp(-(distance**2) / (2 * usual**2))
            if rank < 5:
                binary[i, j] = binary[j, i] = 1.0
            if rank < 6:  # ⌊log2 40⌋ + 1
                tuned[i, j] = tuned[j, i] = np.exp(-(distance**2) / (sigma[i] * sigma[j]))
    np.testing.assert_array_equal(binary_knn_graph(X).toarray(), binary)
    assert np.flatnonzero(binary[0]).tolist() == [1]
    for found, S in ((gaussian_graph(X), gaussian), (self_tuning_graph(X).toarray(), tuned)):
        degree = S.sum(axis=1)
        np.testing.assert_allclose(found, S / np.sqrt(np.outer(degree, degree)), rtol=1e-12, atol=1e-15)
        np.testing.assert_array_equal(found, found.T)


def test_a_row_that_shares_a_column_with_no_other_is_alone_in_every_graph():
    X = np.array([[1.0, np.nan, np.nan], [np.nan, 1.0, 2.0], [np.nan, 3.0, 2.5], [np.nan, 1.5, np.nan]])
    for S in (binary_knn_graph(X).toarray(), gaussian_graph(X), self_tuning_graph(X).toarray()):
        assert (S[0] == 0).all()
        assert (S[1:, 1:].sum(axis=1) > 0).all()
