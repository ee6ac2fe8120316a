"""The spanning tree is exact, unique and the same for every strategy and number of threads."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from naive import incomplete
from naive import trees as naive
from scipy import sparse
from strategies import tables

from penstock import minimum_spanning_tree
from penstock._threads import thread_limit
from penstock.graph import mst as mst_module
from penstock.graph import points as points_module
from penstock.graph.edges import edge_lengths
from penstock.graph.points import prepare_incomplete, prepare_points
from penstock.graph.search import build_tree

pytestmark = pytest.mark.kernels
STRATEGIES = ["prim", "kdtree"]


def assert_same_lengths(tree, X):
    edges, lengths = naive.kruskal(X)
    assert tree.edges.shape == (len(X) - 1, 2)
    assert tree.total_length == pytest.approx(sum(lengths), rel=1e-12, abs=0)
    largest = max(lengths, default=0.0)
    np.testing.assert_allclose(tree.lengths, lengths, rtol=1e-12, atol=1e-15 * largest)
    # No ties among any pairs, in the tree or not: only then is one tree alone right, however lengths are rounded.
    gaps = np.diff(sorted(math.dist(X[i], X[j]) for i in range(len(X)) for j in range(i)))
    if len(gaps) and (gaps > 1e-9 * largest).all():
        assert sorted(map(tuple, tree.edges.tolist())) == sorted(edges)


def assert_spanning(tree, n):
    leader = np.arange(n)
    for i, j in tree.edges:
        assert 0 <= i < j < n
        a, b = leader[i], leader[j]
        assert a != b  # no circle
        leader[leader == b] = a
    assert len(set(leader)) == 1


@pytest.mark.parametrize("strategy", STRATEGIES)
@given(X=tables())
@settings(max_examples=150, deadline=None)
def test_equals_naive_kruskal(strategy, X):
    tree = minimum_spanning_tree(X, strategy=strategy)
    assert_same_lengths(tree, X)
    assert_spanning(tree, len(X))


# what `_blurred` says of the rounding of float32 and of axes in float64
PRECISIONS = {"float64": lambda shift, stretch, distances, n: stretch > 1e-9, "exact": lambda *rounding: True}


@pytest.mark.parametrize("precision", PRECISIONS)
@pytest.mark.parametrize("strategy", STRATEGIES)
@given(X=tables())
@settings(max_examples=60, deadline=None)
def test_equals_naive_kruskal_in_any_precision(strategy, precision, X):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(points_module, "_blurred", PRECISIONS[precision])
        tree = minimum_spanning_tree(X, strategy=strategy)
    assert_same_lengths(tree, X)
    assert_spanning(tree, len(X))


@pytest.mark.parametrize("strategy", STRATEGIES)
@pytest.mark.parametrize("n", [1, 2, 3, 63, 64, 65, 129, 200])
def test_tile_boundaries(strategy, n):
    X = np.random.default_rng(n).normal(size=(n, 3))
    assert_same_lengths(minimum_spanning_tree(X, strategy=strategy), X)


@pytest.mark.parametrize("kind", ["normal", "lattice", "clusters", "line", "offset", "wide"])
def test_strategies_return_the_same_edges(kind):
    rng = np.random.default_rng(7)
    n = 700
    X = {
        "normal": lambda: rng.normal(size=(n, 5)),
        "lattice": lambda: rng.integers(0, 6, size=(n, 3)).astype(float),
        "clusters": lambda: rng.normal(size=(n, 4)) * 0.01 + 10 * rng.integers(0, 5, size=(n, 1)),
        "line": lambda: np.arange(n, dtype=float)[:, None] * [1.0, 2.0],
        "offset": lambda: rng.normal(size=(n, 4)) + 1e6,
        "wide": lambda: rng.normal(size=(n, 40)) * np.geomspace(1e-6, 1e6, 40),
    }[kind]()
    first, second = (minimum_spanning_tree(X, strategy=s) for s in STRATEGIES)
    np.testing.assert_array_equal(first.edges, second.edges)
    np.testing.assert_array_equal(first.lengths, second.lengths)


def rows_with(values, columns=slice(None)):
    """Normal rows, some of which have an absurd value."""
    X = np.random.default_rng(11).normal(size=(600, 8))
    X[np.arange(len(values)) * 97 + 5, columns] = np.array(values)[:, None] if columns == slice(None) else values
    return X


def clusters_at(distance, spread, n_clusters=2):
    rng = np.random.default_rng(12)
    return spread * rng.normal(size=(600, 8)) + distance * rng.integers(n_clusters, size=(600, 1))


def nested_groups():
    rng = np.random.default_rng(13)
    return rng.normal(size=(600, 4)) + rng.integers(3, size=(600, 1)) * 1e5 + rng.integers(3, size=(600, 1)) * 1e10


def one_hot(noise):
    rng = np.random.default_rng(14)
    return np.eye(12)[rng.integers(12, size=600)] + noise * rng.normal(size=(600, 12))


FAR_OFF = {
    "a row of 1e10": lambda: rows_with([1e10]),
    "a value of 1e10": lambda: rows_with([1e10], 3),
    "a value of 1e15": lambda: rows_with([1e15], 3),
    "rows of 1e5, 1e10, 1e100": lambda: rows_with([1e5, -1e10, 1e100]),
    "values of 1e5, 1e10, 1e100": lambda: rows_with([1e5, 1e10, -1e100], 3),
    "clusters 1e9 apart": lambda: clusters_at(1e9, 1.0),
    "dense clusters 1e9 apart": lambda: clusters_at(1e9, 1e-6, 4),
    "lattices 1e9 apart": lambda: clusters_at(1e9, 1.0).round(),
    "groups of groups": nested_groups,
    "one-hot and noise": lambda: one_hot(1e-6),
    "one-hot and less noise": lambda: one_hot(1e-12),
}


@pytest.mark.compiled
@pytest.mark.parametrize("case", FAR_OFF)
def test_what_is_far_off_leaves_the_tree_exact(case):
    X = FAR_OFF[case]()
    expected = set(naive.kruskal_in_doubles(X))
    for strategy in STRATEGIES:
        tree = minimum_spanning_tree(X, strategy=strategy)
        assert {tuple(edge) for edge in tree.edges.tolist()} == expected


@pytest.mark.parametrize("case", FAR_OFF)
def test_what_is_far_off_costs_near_rows_no_precision(case):
    """Rounding beside the farthest rows must not make all near ones candidates."""
    assert prepare_points(FAR_OFF[case](), rotate=False).search.dtype == np.float64


@pytest.mark.compiled
def test_a_far_row_leaves_searches_as_short_as_they_were():
    X = np.random.default_rng(15).normal(size=(2000, 3))
    usual = build_tree(X).sample_search_cost(6, 16)
    for value in (1e6, 1e10, 1e15, 1e100):
        X[77] = value
        assert build_tree(X).sample_search_cost(6, 16) < 1.5 * usual


@pytest.mark.compiled
@pytest.mark.parametrize("columns", [1, 2, 8, 40])
def test_ordinary_tables_keep_their_quick_float32_copy(columns):
    rng = np.random.default_rng(16)
    for X in (
        rng.normal(size=(2000, columns)),
        rng.normal(size=(2000, columns)) + 100.0 * rng.integers(3, size=(2000, 1)),
        rng.integers(0, 3, size=(2000, columns)) / 7,
        rng.standard_t(2, size=(2000, columns)),
        np.arange(2000.0)[:, None] * np.ones(columns),
    ):
        for rotate in (False, True):
            assert prepare_points(X, rotate=rotate).search.dtype == np.float32


def test_missing_values_beside_far_rows():
    X = rows_with([1e10], 3)[:520]
    X[:, 1:][np.random.default_rng(17).random((520, 7)) < 0.1] = np.nan
    assert prepare_incomplete(X).search.dtype == np.float64
    edges = minimum_spanning_tree(X).edges
    assert {tuple(edge) for edge in edges.tolist()} == set(incomplete.kruskal(X)[0])


def test_ties_are_broken_by_index():
    X = np.array([[float(i), float(j)] for i in range(6) for j in range(6)])
    edges, _ = naive.kruskal(X)
    for strategy in STRATEGIES:
        assert minimum_spanning_tree(X, strategy=strategy).edges.tolist() == [list(edge) for edge in edges]


def test_equal_rows_make_a_star_around_the_first():
    tree = minimum_spanning_tree(np.ones((4, 2)))
    assert tree.edges.tolist() == [[0, 1], [0, 2], [0, 3]]
    assert tree.lengths.tolist() == [0, 0, 0]


@pytest.mark.compiled
def test_threads_do_not_change_the_tree():
    X = np.random.default_rng(0).normal(size=(3000, 4)) + 8 * np.random.default_rng(1).integers(0, 4, size=(3000, 1))
    trees = []
    for threads in (1, 2, 3):
        with thread_limit(threads):
            trees.append(minimum_spanning_tree(X, strategy="kdtree"))
    for other in trees[1:]:
        np.testing.assert_array_equal(trees[0].edges, other.edges)
        np.testing.assert_array_equal(trees[0].lengths, other.lengths)


def test_near_duplicates_far_from_the_origin_keep_their_length():
    X = np.array([[1e6, 0.0], [1e6 + 2.0**-20, 0.0], [1e6 + 1.0, 0.0]])
    np.testing.assert_array_equal(minimum_spanning_tree(X).lengths, [2.0**-20, 1 - 2.0**-20])


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_a_huge_constant_column_changes_nothing(strategy):
    X = np.array([[1e300, 0.0], [1e300, 1e-10], [1e300, 3e-10], [1e300, 2e-10]])
    tree = minimum_spanning_tree(X, strategy=strategy)
    assert sorted(tree.edges.tolist()) == [[0, 1], [1, 3], [2, 3]]
    np.testing.assert_allclose(tree.lengths, 1e-10)


def test_leaves_whose_centres_nearly_coincide():
    """Squares of differences of 1e-24 vanish in float32: such leaves have no separating axis."""
    k = np.arange(1, 65)
    left = np.c_[-k * 1e-26, np.where(k % 2 == 0, 1.0, -1.0)]
    right = np.c_[k * 1e-26, np.full(64, 1e-24)]
    far_left, far_right = np.c_[-4 - k / 256, 0 * k], np.c_[4 + k / 256, 0 * k]
    X = np.r_[far_left, left, right, far_right]
    first, second = (minimum_spanning_tree(X, strategy=s) for s in STRATEGIES)
    np.testing.assert_array_equal(first.edges, second.edges)
    assert_same_lengths(second, X)


def test_lengths_down_to_the_smallest_float():
    X = np.array([[0.0], [5e-324], [1e-320]])
    np.testing.assert_array_equal(edge_lengths(X, np.array([[0, 1], [1, 2]])), [5e-324, 1e-320 - 5e-324])


def test_lengths_do_not_vanish_beside_a_huge_range():
    X = np.array([[0.0], [1e-180], [1e130]])
    np.testing.assert_allclose(edge_lengths(X, np.array([[0, 1], [1, 2]])), [1e-180, 1e130], rtol=1e-15)


@pytest.mark.compiled
def test_auto_takes_the_kdtree_for_flat_data_and_prim_for_full_ones(monkeypatch):
    taken = []
    for name in ("prim_edges", "boruvka_edges"):
        original = getattr(mst_module, name)
        monkeypatch.setattr(mst_module, name, lambda *a, _n=name, _o=original: (taken.append(_n), _o(*a))[1])
    monkeypatch.setattr(mst_module, "_SMALLEST_FOR_KDTREE", 1000)
    rng = np.random.default_rng(0)
    for X in (rng.normal(size=(900, 2)), rng.normal(size=(3000, 2)), rng.normal(size=(2000, 40))):
        minimum_spanning_tree(X)
    assert taken == ["prim_edges", "boruvka_edges", "prim_edges"]


def test_sparse_tables_are_refused():
    with pytest.raises(TypeError, match="toarray"):
        minimum_spanning_tree(sparse.eye_array(4))


@pytest.mark.parametrize(
    ("X", "strategy", "message"),
    [
        ([[0.0], [np.inf]], "auto", "row 1, column 0 is inf"),
        (np.empty((0, 3)), "auto", "at least one row"),
        (np.empty((3, 0)), "auto", "at least one row"),
        ([1.0, 2.0], "auto", "shape"),
        ([[1.0], [2.0]], "kruskal", "strategy must be one of auto, prim, kdtree"),
        ([[-1.7e308, -1.7e308], [1.7e308, 1.7e308]], "auto", "exceed the range"),
    ],
)
def test_clear_errors(X, strategy, message):
    with pytest.raises(ValueError, match=message):
        minimum_spanning_tree(X, strategy=strategy)
