"""The spanning tree is exact, unique and the same for every strategy, precision and number of threads."""

from __future__ import annotations

import math
import os
from itertools import product

import numpy as np
import pytest
from hypothesis import given
from naive import incomplete
from naive import trees as naive
from scipy import sparse
from strategies import examples, tables

from penstock import minimum_spanning_tree
from penstock._threads import thread_limit
from penstock.graph import boruvka, edge_lengths, points, spanning_tree_of_edges
from penstock.graph import mst as mst_module
from penstock.graph.distance_kernels import TILE, search_limit
from penstock.graph.edges import squares_of
from penstock.graph.points import prepare_incomplete, prepare_points
from penstock.graph.search import build_tree

pytestmark = pytest.mark.kernels
# "clumps" is "kdtree" where the components left at the first search are joined pair by pair
STRATEGIES = ["prim", "kdtree", "clumps"]
# what `_blurred` says of the rounding of float32 and of axes in float64
PRECISIONS = {
    "float32": points._blurred,
    "float64": lambda shift, stretch, distances, n: stretch > 1e-9,
    "exact": lambda *rounding: True,
}


def grow(X, strategy, precision="float32", **constants):
    """Grow the tree; return it and the numbers of components that were joined pair by pair."""
    joined, original = [], boruvka.join_clumps

    def join_clumps(tree, component, nearest, known):
        joined.append(int(component.max()) + 1)
        return original(tree, component, nearest, known)

    if strategy == "clumps":
        constants |= {"_VISITS_PER_LEAF": -1, "_VISITS_PER_PAIR": 0, "_SAMPLED_LEAVES": 2, "join_clumps": join_clumps}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(points, "_blurred", PRECISIONS[precision])
        for name, value in constants.items():
            patch.setattr(boruvka, name, value)
        return minimum_spanning_tree(X, strategy="prim" if strategy == "prim" else "kdtree"), joined


def assert_same_lengths(X, trees):
    edges, lengths = naive.kruskal(X)
    largest = max(lengths, default=0.0)
    # No ties among any pairs, in the tree or not: only then is one tree alone right, however lengths are rounded.
    gaps = np.diff(sorted(math.dist(X[i], X[j]) for i in range(len(X)) for j in range(i)))
    for tree in trees:
        assert tree.edges.shape == (len(X) - 1, 2)
        assert len(naive.join(len(X), ((0.0, int(i), int(j)) for i, j in tree.edges))[0]) == len(X) - 1
        assert tree.total_length == pytest.approx(sum(lengths), rel=1e-12, abs=0)
        np.testing.assert_allclose(tree.lengths, lengths, rtol=1e-12, atol=1e-15 * largest)
        if len(gaps) and (gaps > 1e-9 * largest).all():
            assert sorted(map(tuple, tree.edges.tolist())) == sorted(edges)


def assert_same_tree(X, precision="float32", **constants):
    """All strategies return the same tree; return how many components were joined pair by pair."""
    expected = grow(X, "prim")[0]
    for strategy in ("kdtree", "clumps"):
        found, joined = grow(X, strategy, precision, **constants)
        np.testing.assert_array_equal(found.edges, expected.edges)
        np.testing.assert_array_equal(found.lengths, expected.lengths)
    return joined


@given(X=tables())
@examples(200)
def test_equals_naive_kruskal(X):
    assert_same_lengths(X, [grow(X, *how)[0] for how in product(STRATEGIES, PRECISIONS)])


@pytest.mark.parametrize("n", [1, 2, 3, 63, 64, 65, 129, 200])
def test_tile_boundaries(n):
    X = np.random.default_rng(n).normal(size=(n, 3))
    assert_same_lengths(X, [grow(X, strategy)[0] for strategy in STRATEGIES])


def sheets(rng, n, p, n_sheets, flat=2):
    """Thin sheets, each tilted its own way, far apart."""
    member = rng.integers(n_sheets, size=n)
    X = 0.01 * rng.normal(size=(n, p))
    for c in range(n_sheets):
        rows = member == c
        X[rows] += rng.uniform(-6, 6, p) + rng.normal(size=(rows.sum(), flat)) @ rng.normal(size=(flat, p))
    return X


def tiny_clusters(rng):
    """Clusters of one to three points, with large ones, and outliers."""
    groups = [rng.normal(size=(size, 4)) * 0.01 + rng.uniform(-20, 20, 4) for size in [1, 2, 3, 1, 2, 3, 90, 90]]
    return np.concatenate([*groups, rng.uniform(-100, 100, (5, 4))])


def grids(rng):
    """Integer lattices far apart: within and across them almost all lengths tie."""
    grid = np.stack(np.meshgrid(*[np.arange(5.0)] * 3), axis=-1).reshape(-1, 3)
    X = np.concatenate([grid + shift for shift in ([0, 0, 0], [20, 0, 0], [0, 20, 0])])
    return X[rng.permutation(len(X))]


CLUMPED = {
    "sheets": lambda rng: sheets(rng, 300, 8, 4),
    "lines": lambda rng: sheets(rng, 260, 3, 4, flat=1),
    "wide": lambda rng: sheets(rng, 180, 40, 3) * np.geomspace(1e-3, 1e3, 40),
    "one column": lambda rng: np.sort(rng.normal(size=(300, 1))) + 50.0 * rng.integers(0, 4, (300, 1)),
    "offset": lambda rng: sheets(rng, 200, 5, 3) + 1e6,
    "minute": lambda rng: sheets(rng, 200, 5, 3) * 1e-120,
    "minute clusters": lambda rng: 1e-12 * rng.normal(size=(200, 3)) + rng.integers(0, 4, (200, 1)) / 2,
    "tiny": tiny_clusters,
    "very wide": lambda rng: sheets(rng, 80, 520, 3),
    "grids": grids,
    "copies": lambda rng: sheets(rng, 250, 5, 4)[rng.integers(250, size=400)],
}
WHOLE = {
    "normal": lambda rng: rng.normal(size=(700, 5)),
    "lattice": lambda rng: rng.integers(0, 6, size=(700, 3)).astype(float),
    "line": lambda rng: np.arange(700.0)[:, None] * [1.0, 2.0],
    "wide scales": lambda rng: rng.normal(size=(700, 40)) * np.geomspace(1e-6, 1e6, 40),
}


@pytest.mark.parametrize("precision", ["float32", pytest.param("float64", marks=pytest.mark.compiled)])
@pytest.mark.parametrize(
    "case",
    [
        pytest.param(case, marks=[] if case in ("tiny", "grids", "one column", "copies") else [pytest.mark.compiled])
        for case in CLUMPED
    ],
)
def test_clumps_joined_pair_by_pair_make_the_same_tree(case, precision):
    joined = assert_same_tree(CLUMPED[case](np.random.default_rng(0)), precision)
    assert len(joined) == 1
    assert joined[0] > 1


@pytest.mark.compiled
@pytest.mark.parametrize("case", WHOLE)
def test_strategies_return_the_same_edges(case):
    assert_same_tree(WHOLE[case](np.random.default_rng(7)))


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
def test_far_rows_leave_the_tree_exact(case):
    X = FAR_OFF[case]()
    expected = set(naive.kruskal_in_doubles(X))
    for strategy in ("prim", "kdtree"):
        assert {tuple(edge) for edge in minimum_spanning_tree(X, strategy=strategy).edges.tolist()} == expected
    # rounding relative to the farthest rows must not make all near ones candidates
    assert prepare_points(X, rotate=False).search.dtype == np.float64


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
    for strategy in STRATEGIES:
        assert grow(X, strategy)[0].edges.tolist() == [list(edge) for edge in naive.kruskal(X)[0]]
    tree = minimum_spanning_tree(np.ones((4, 2)))  # equal rows make a star around the first
    assert (tree.edges.tolist(), tree.lengths.tolist()) == ([[0, 1], [0, 2], [0, 3]], [0, 0, 0])


@pytest.mark.compiled
def test_a_search_that_another_cuts_short_misses_no_equal_edge():
    """A point had found an edge as long as its bound when its component found a shorter one, and was never asked again.

    Rows of this table, with two neighbours listed, showed it; it was rarer with six, and rarest with threads.
    """
    rng = np.random.default_rng(2433)
    p, m, w = int(rng.integers(1, 5)), int(rng.integers(40, 700)), int(rng.integers(3, 14))
    X = rng.integers(0, w, (m, p)) * rng.integers(1, 4, (1, p))
    X = X + rng.integers(5, 30) * rng.integers(0, rng.integers(2, 6), (m, 1)).astype(float)
    expected = minimum_spanning_tree(X, strategy="prim").edges
    np.testing.assert_array_equal(grow(X, "kdtree", N_LISTED=2)[0].edges, expected)


@pytest.mark.skipif(os.environ.get("NUMBA_DISABLE_JIT") != "1", reason="compiled kernels do not call numpy.empty")
@pytest.mark.parametrize("strategy", ["kdtree", "clumps"])
def test_no_kernel_reads_memory_that_it_has_not_written(strategy, monkeypatch):
    """One did: what lay in new memory was not a number once in some thousand trees, and an edge was missed."""
    X = np.random.default_rng(5).integers(0, 5, (90, 2)) + 40.0 * np.random.default_rng(6).integers(0, 2, (90, 1))
    expected = minimum_spanning_tree(X, strategy="prim").edges
    empty = np.empty

    def spoiled(*shape, **options):
        array = empty(*shape, **options)
        array.fill(np.nan if array.dtype.kind == "f" else 1)
        return array

    monkeypatch.setattr(np, "empty", spoiled)
    np.testing.assert_array_equal(grow(X, strategy)[0].edges, expected)


@pytest.mark.compiled
@pytest.mark.parametrize("strategy", ["kdtree", "clumps"])
def test_threads_do_not_change_the_tree(strategy):
    """Whole numbers tie; ranges of one item and large batches make several threads work on each step."""
    X = np.random.default_rng(3).integers(0, 9, (600, 3)) + 12.0 * np.random.default_rng(4).integers(0, 2, (600, 1))
    original = boruvka.for_each_range
    patches = {"_GROWTH": 1 << 20, "for_each_range": lambda work, n, *, smallest: original(work, n, smallest=1)}
    expected = minimum_spanning_tree(X, strategy="prim")
    for threads in (1, 2, 3):
        with thread_limit(threads):
            np.testing.assert_array_equal(grow(X, strategy, **patches)[0].edges, expected.edges)


@pytest.mark.parametrize("strategy", ["prim", "kdtree"])
def test_lengths_at_any_scale(strategy):
    X = np.array([[1e6, 0.0], [1e6 + 2.0**-20, 0.0], [1e6 + 1.0, 0.0]])  # near duplicates far from the origin
    np.testing.assert_array_equal(minimum_spanning_tree(X, strategy=strategy).lengths, [2.0**-20, 1 - 2.0**-20])
    X = np.array([[1e300, 0.0], [1e300, 1e-10], [1e300, 3e-10], [1e300, 2e-10]])  # a huge constant column
    tree = minimum_spanning_tree(X, strategy=strategy)
    assert sorted(tree.edges.tolist()) == [[0, 1], [1, 3], [2, 3]]
    np.testing.assert_allclose(tree.lengths, 1e-10)
    edges = np.array([[0, 1], [1, 2]])
    np.testing.assert_array_equal(edge_lengths(np.array([[0.0], [5e-324], [1e-320]]), edges), [5e-324, 1e-320 - 5e-324])
    np.testing.assert_allclose(edge_lengths(np.array([[0.0], [1e-180], [1e130]]), edges), [1e-180, 1e130], rtol=1e-15)


def test_leaves_whose_centres_nearly_coincide():
    """Squares of differences of 1e-24 vanish in float32: such leaves have no separating axis."""
    k = np.arange(1, 65)
    left = np.c_[-k * 1e-26, np.where(k % 2 == 0, 1.0, -1.0)]
    right = np.c_[k * 1e-26, np.full(64, 1e-24)]
    far_left, far_right = np.c_[-4 - k / 256, 0 * k], np.c_[4 + k / 256, 0 * k]
    X = np.r_[far_left, left, right, far_right]
    assert_same_tree(X)
    assert_same_lengths(X, [minimum_spanning_tree(X)])


def test_pairs_of_clumps_only_where_few_are_left():
    """With short lists components interleave; too many of them are joined in rounds until few enough are left."""
    X = np.random.default_rng(1).normal(size=(200, 5))
    (first,) = assert_same_tree(X, N_LISTED=2)
    assert first > 5
    (second,) = assert_same_tree(X, N_LISTED=2, _MOST_CLUMPS=first - 1)
    assert second < first


def test_any_components_are_joined_by_their_shortest_edges():
    """Components that interleave, some of one point, with nothing known beforehand."""
    rng = np.random.default_rng(5)
    tree = build_tree(rng.integers(0, 12, size=(150, 3)).astype(float) + 1e-3 * np.arange(150)[:, None])
    component = np.r_[np.arange(9), rng.integers(5, 9, size=141)]
    rows = boruvka.join_clumps(tree, component, np.zeros(150), np.empty((0, 2), dtype=np.int64))
    pairs = np.array([(i, j) for i in range(150) for j in range(i) if component[i] != component[j]])
    expected, joined = [], component.copy()
    for i, j in pairs[np.argsort(squares_of(tree.exact, pairs), kind="stable")].tolist():  # no two are equally long
        if joined[i] != joined[j]:
            expected.append(frozenset((i, j)))
            joined[joined == joined[i]] = joined[j]
    assert len(rows) == 8
    assert {frozenset(pair) for pair in rows.tolist()} == set(expected)


@pytest.mark.parametrize("few", [150, 4], ids=["both with axes", "one without"])
@pytest.mark.parametrize("scale", [1e-6, 1.0, 1e6])
def test_no_gap_of_a_leaf_is_beyond_the_limit_of_its_pairs(scale, few):
    """What rules out leaves must not rule out the pair that is nearest, whatever the tilt and the scale."""
    rng = np.random.default_rng(6)
    some = 0
    for _ in range(5):
        X, way = sheets(rng, 300, 6, 2), rng.normal(size=6)
        far = np.argsort(np.argsort(X @ way)) >= few  # divided by a plane, and a little apart
        X += np.outer(far, rng.uniform(0, 2) * way)
        tree = build_tree((X + rng.choice([0.0, 1e3])) * scale)
        sides = [boruvka.Clump(tree, np.flatnonzero(far[tree.names] == side)) for side in (False, True)]
        for host, guest in (sides, sides[::-1]):
            shift, stretch = host.slack(guest)
            gaps = host.leaf_gaps(guest)
            difference = tree.exact[guest.points][:, None] - tree.exact[host.points][None]
            nearest = (difference**2).sum(axis=2).min(axis=1)
            some += (gaps > 0).sum()
            for leaf, gap in enumerate(gaps):
                assert gap <= search_limit(nearest[leaf * TILE : (leaf + 1) * TILE].min(), shift, stretch)
    assert some > 10


@pytest.mark.parametrize("tilted", [True, False])
def test_most_of_two_clumps_that_are_far_apart_is_ruled_out(tilted, monkeypatch):
    rng = np.random.default_rng(7)
    line = np.c_[rng.uniform(-1, 1, (640, 1)), np.zeros((640, 3))]
    turn = np.linalg.qr(rng.normal(size=(4, 4)))[0] if tilted else np.eye(4)
    moved = line + np.array([4.0, 0, 0, 0])
    tree = build_tree(np.r_[line @ turn, moved] + 1e-3 * rng.normal(size=(1280, 4)))
    entered, original = [], boruvka.kernels.first_edge
    monkeypatch.setattr(boruvka.kernels, "first_edge", lambda *a: (entered.append(a[7] - a[6]), original(*a))[1])
    component = (tree.names >= 640).astype(np.int64)
    boruvka.join_clumps(tree, component, np.zeros(1280), np.empty((0, 2), dtype=np.int64))
    assert sum(entered) <= 3 * 64


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


@pytest.mark.parametrize(
    ("X", "strategy", "message"),
    [
        ([[0.0], [np.inf]], "auto", "row 1, column 0 is inf"),
        (np.empty((0, 3)), "auto", "at least one row"),
        (np.empty((3, 0)), "auto", "at least one row"),
        ([1.0, 2.0], "auto", "shape"),
        ([[1.0], [2.0]], "kruskal", "strategy must be one of auto, prim, kdtree"),
        ([[-1.7e308, -1.7e308], [1.7e308, 1.7e308]], "auto", "exceed the range"),
        (sparse.eye_array(4), "auto", "toarray"),
    ],
)
def test_clear_errors(X, strategy, message):
    with pytest.raises((TypeError, ValueError), match=message):
        minimum_spanning_tree(X, strategy=strategy)


@given(tables())
@examples(40)
def test_trees_of_distances_and_of_edges_are_kruskals(X):
    lengths = np.array([[math.dist(a, b) for b in X] for a in X])
    rng = np.random.default_rng(len(X))
    lengths = np.round(lengths, 1)  # ties
    keep = np.triu(rng.random(lengths.shape) < 0.5, 1)
    keep[0, 1:] = True  # so that all are joined
    D = np.where(keep | keep.T, lengths, np.inf)
    np.fill_diagonal(D, 0.0)
    ends = np.argwhere(keep)
    edges, sizes = naive.join(len(X), sorted((D[i, j], int(i), int(j)) for i, j in ends))
    shuffled = rng.permutation(len(ends))
    turned = np.where(rng.random((len(ends), 1)) < 0.5, ends, ends[:, ::-1])[shuffled]
    for tree in (
        minimum_spanning_tree(D, metric="precomputed"),
        spanning_tree_of_edges(turned, D[turned[:, 0], turned[:, 1]], len(X)),
    ):
        assert [tuple(edge) for edge in tree.edges.tolist()] == edges
        assert tree.lengths.tolist() == sizes


def test_several_edges_between_two_nodes_and_loops():
    tree = spanning_tree_of_edges([[1, 0], [0, 1], [0, 0], [2, 1]], [3.0, 2.0, 0.0, 0.0])
    assert tree.edges.tolist() == [[1, 2], [0, 1]]
    assert tree.lengths.tolist() == [0.0, 2.0]
    assert spanning_tree_of_edges([], []).n_nodes == 1


@pytest.mark.parametrize(
    ("make", "says"),
    [
        (
            lambda: minimum_spanning_tree([[0, 1.0], [1.5, 0]], metric="precomputed"),
            r"\(0, 1\) is 1.*difference of 0.5",
        ),
        (lambda: minimum_spanning_tree([[0, 1.0]], metric="precomputed"), r"square.*\(1, 2\)"),
        (lambda: minimum_spanning_tree([[0, -1.0], [-1.0, 0]], metric="precomputed"), r"≥ 0.*\(0, 1\) is -1"),
        (lambda: minimum_spanning_tree([[0, np.nan], [1, 0]], metric="precomputed"), r"\(0, 1\) is nan"),
        (lambda: minimum_spanning_tree([[0, 1], [1, 2.0]], metric="precomputed"), r"itself.*\(1, 1\) is 2"),
        (
            lambda: minimum_spanning_tree([[0, np.inf], [np.inf, 0]], metric="precomputed"),
            "node 0 to node 1, and 1 of 2",
        ),
        (lambda: minimum_spanning_tree([[0.0]], metric="cosine"), "'cosine'"),
        (lambda: spanning_tree_of_edges([[0, 1]], [1.0], 4), "3 parts.*node 0 to node 2, and 2 of 4"),
        (lambda: spanning_tree_of_edges([[0, 1], [1, 2]], [1.0, -2.0]), r"edge 1, \[1, 2\], is -2"),
        (lambda: spanning_tree_of_edges([[0, 3]], [1.0], 3), r"between 0 and 2; edge 0 is \[0, 3\]"),
        (lambda: spanning_tree_of_edges([[0, 1]], [1.0, 2.0]), "shape"),
        (lambda: spanning_tree_of_edges([[0, 1.5]], [1.0]), "whole numbers"),
    ],
)
def test_graphs_without_a_tree_are_refused(make, says):
    with pytest.raises(ValueError, match=says):
        make()
