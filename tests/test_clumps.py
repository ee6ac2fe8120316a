"""Components joined pair by pair, each in its own axes: the same tree as by any other way."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from strategies import tables

from penstock import minimum_spanning_tree
from penstock._threads import thread_limit
from penstock.graph import boruvka, points
from penstock.graph.boruvka import joining_edges
from penstock.graph.distance_kernels import TILE
from penstock.graph.edges import squares_of
from penstock.graph.search import build_tree

pytestmark = pytest.mark.kernels


@pytest.fixture
def joined(monkeypatch):
    """Whatever is left when the first search is due is joined pair by pair; lists how many components that were."""
    monkeypatch.setattr(boruvka, "_VISITS_PER_LEAF", -1)
    monkeypatch.setattr(boruvka, "_VISITS_PER_PAIR", 0)
    monkeypatch.setattr(boruvka, "_SAMPLED_LEAVES", 2)
    counts, original = [], boruvka.join_clumps

    def counted(tree, component, nearest, known):
        counts.append(int(component.max()) + 1)
        return original(tree, component, nearest, known)

    monkeypatch.setattr(boruvka, "join_clumps", counted)
    return counts


def sheets(rng, n, p, n_sheets, flat=2):
    """Thin sheets, each tilted its own way, far apart."""
    member = rng.integers(n_sheets, size=n)
    X = 0.01 * rng.normal(size=(n, p))
    for c in range(n_sheets):
        rows = member == c
        X[rows] += rng.uniform(-6, 6, p) + rng.normal(size=(rows.sum(), flat)) @ rng.normal(size=(flat, p))
    return X


def tiny_clusters(rng):
    """Clusters of one to three points, beside large ones, and outliers."""
    groups = [rng.normal(size=(size, 4)) * 0.01 + rng.uniform(-20, 20, 4) for size in [1, 2, 3, 1, 2, 3, 90, 90]]
    return np.concatenate([*groups, rng.uniform(-100, 100, (5, 4))])


def grids(rng):
    """Integer lattices far apart: within and across them almost all lengths tie."""
    grid = np.stack(np.meshgrid(*[np.arange(5.0)] * 3), axis=-1).reshape(-1, 3)
    X = np.concatenate([grid + shift for shift in ([0, 0, 0], [20, 0, 0], [0, 20, 0])])
    return X[rng.permutation(len(X))]


def copies(rng):
    X = sheets(rng, 250, 5, 4)
    return X[rng.integers(len(X), size=400)]


CASES = {
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
    "copies": copies,
}


def assert_same_tree(X):
    first, second = (minimum_spanning_tree(X, strategy=s) for s in ("prim", "kdtree"))
    np.testing.assert_array_equal(first.edges, second.edges)
    np.testing.assert_array_equal(first.lengths, second.lengths)


@pytest.mark.parametrize("case", CASES)
def test_equals_prim(case, joined):
    assert_same_tree(CASES[case](np.random.default_rng(0)))
    assert len(joined) == 1
    assert joined[0] > 1


@pytest.mark.parametrize("case", CASES)
def test_equals_prim_with_float64_search_points(case, joined, monkeypatch):
    monkeypatch.setattr(points, "_blurred", lambda shift, stretch, distances, n: stretch > 1e-9)
    assert_same_tree(CASES[case](np.random.default_rng(0)))
    assert len(joined) == 1


def test_equals_prim_where_components_interleave(joined, monkeypatch):
    monkeypatch.setattr(boruvka, "N_LISTED", 2)
    assert_same_tree(np.random.default_rng(1).normal(size=(200, 5)))
    assert joined[0] > 5


@given(X=tables())
@settings(max_examples=40, deadline=None)
def test_equals_prim_on_anything(X):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(boruvka, "_VISITS_PER_LEAF", -1)
        patch.setattr(boruvka, "_VISITS_PER_PAIR", 0)
        patch.setattr(boruvka, "_SAMPLED_LEAVES", 1)
        assert_same_tree(X)


@pytest.mark.parametrize("threads", [1, 3])
def test_threads_change_nothing(threads, monkeypatch):
    monkeypatch.setattr(boruvka, "_GROWTH", 1 << 20)
    X = np.random.default_rng(3).integers(0, 9, (200, 3)) + 12.0 * np.random.default_rng(4).integers(0, 2, (200, 1))
    original = boruvka.for_each_range
    monkeypatch.setattr(boruvka, "for_each_range", lambda work, n, *, smallest: original(work, n, smallest=1))
    monkeypatch.setattr(boruvka, "_VISITS_PER_LEAF", -1)
    monkeypatch.setattr(boruvka, "_VISITS_PER_PAIR", 0)
    with thread_limit(threads):
        assert_same_tree(X)


def test_any_components_are_joined_by_their_shortest_edges():
    """Components that interleave, some of one point, with nothing known beforehand."""
    rng = np.random.default_rng(5)
    tree = build_tree(rng.integers(0, 12, size=(150, 3)).astype(float) + 1e-3 * np.arange(150)[:, None])
    component = np.r_[np.arange(9), rng.integers(5, 9, size=141)]
    n = len(component)
    nothing = np.empty((0, 2), dtype=np.int64)
    rows = boruvka.join_clumps(tree, component, np.zeros(n), nothing)
    expected = joining_edges(tree, component)
    assert len(rows) == 8
    np.testing.assert_array_equal(
        np.sort(squares_of(tree.exact, rows)), np.sort(squares_of(tree.exact, np.asarray(expected)))
    )
    assert {frozenset(pair) for pair in rows.tolist()} == {frozenset(pair) for pair in expected.tolist()}


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
                assert gap <= boruvka.search_limit(nearest[leaf * TILE : (leaf + 1) * TILE].min(), shift, stretch)
    assert some > 10


@pytest.mark.parametrize(
    ("n", "p", "turned"),
    [(1, 4, False), (3, 4, False), (4, 4, True), pytest.param(520, 520, False, marks=pytest.mark.compiled)],
)
def test_axes_are_found_only_where_they_are_worth_it(n, p, turned):
    tree = build_tree(np.random.default_rng(8).normal(size=(n + 2, p)))
    clump = boruvka.Clump(tree, np.arange(n))
    assert (clump.axes is not None) == turned


def test_too_many_components_are_not_joined_pair_by_pair(joined, monkeypatch):
    """Rounds go on until few enough are left."""
    monkeypatch.setattr(boruvka, "N_LISTED", 2)
    X = np.random.default_rng(1).normal(size=(200, 5))
    assert_same_tree(X)
    monkeypatch.setattr(boruvka, "_MOST_CLUMPS", joined[0] - 1)
    assert_same_tree(X)
    first, second = joined
    assert second < first


@pytest.mark.parametrize("tilted", [True, False])
def test_most_of_two_clumps_that_are_far_apart_is_ruled_out(tilted, monkeypatch):
    rng = np.random.default_rng(7)
    line = np.c_[rng.uniform(-1, 1, (640, 1)), np.zeros((640, 3))]
    turn = np.linalg.qr(rng.normal(size=(4, 4)))[0] if tilted else np.eye(4)
    moved = line + np.array([4.0, 0, 0, 0])
    tree = build_tree(np.r_[line @ turn, moved] + 1e-3 * rng.normal(size=(1280, 4)))
    entered = []
    original = boruvka._Joining._search_rows
    monkeypatch.setattr(
        boruvka._Joining,
        "_search_rows",
        lambda self, host, rows, bound: (entered.append(len(rows)), original(self, host, rows, bound))[1],
    )
    component = (tree.names >= 640).astype(np.int64)
    boruvka.join_clumps(tree, component, np.zeros(1280), np.empty((0, 2), dtype=np.int64))
    assert sum(entered) <= 3 * 64
