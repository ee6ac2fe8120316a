"""Trees grown part by part and joined pair by pair are the tree of all rows, to the last bit."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from naive import parts as naive
from strategies import examples, tables

from penstock import minimum_spanning_tree
from penstock._threads import thread_limit
from penstock.graph import edge_lengths
from penstock.graph.distance_kernels import TILE
from penstock.graph.partition import plan_partition, sample_distinct
from penstock.graph.parts import (
    Crossing,
    Edges,
    Side,
    common_frame,
    cross_edges,
    grow_part,
    join_edges,
    skippable_pairs,
)

pytestmark = pytest.mark.kernels
compiled_only = pytest.mark.compiled


def joined(n, parts):
    """The spanning tree of all rows of all parts, from the edges of every pair."""
    pairs = itertools.combinations(parts, 2)
    return join_edges(n, [*(part.tree_edges() for part in parts), *(cross_edges(one, other) for one, other in pairs)])


def assert_same_tree(X, part_of):
    expected, X = minimum_spanning_tree(X), np.asarray(X)
    original, rows = first_of_equals(X), np.arange(len(X))
    kept, copies = np.flatnonzero(original == rows), np.flatnonzero(original != rows)
    found = joined(len(X), grown(X, [kept[part_of[kept] == part] for part in np.unique(part_of)]))
    ends = np.concatenate([found.ends, np.column_stack([original[copies], copies])])
    lengths = np.concatenate([found.lengths, np.zeros(len(copies))])
    order = np.lexsort((ends[:, 1], ends[:, 0], lengths))
    np.testing.assert_array_equal(ends[order], expected.edges)
    np.testing.assert_array_equal(lengths[order], expected.lengths)


def together(X, part_of):
    """The same division, with equal rows in the part of the first."""
    return np.asarray(part_of)[first_of_equals(X)]


def first_of_equals(X):
    _, first, inverse = np.unique(X + 0.0, axis=0, return_index=True, return_inverse=True)
    return first[inverse.ravel()]


def slabs(X, n_parts, column=0):
    """Parts of about equal size between cuts of a column."""
    cuts = np.quantile(X[:, column], np.arange(1, n_parts) / n_parts)
    return np.searchsorted(cuts, X[:, column])


def grown(X, groups):
    frame = common_frame(X.min(axis=0), X.max(axis=0), X)
    return [grow_part(X[group], group, frame) for group in groups]


@given(X=tables(), seed=st.integers(0, 99), n_parts=st.integers(1, 40), spatial=st.booleans())
@examples(130)
def test_equals_the_tree_of_all_rows(X, seed, n_parts, spatial):
    column = seed % X.shape[1]
    part_of = slabs(X, n_parts, column) if spatial else np.random.default_rng(seed).integers(0, n_parts, len(X))
    assert_same_tree(X, together(X, part_of))


@given(
    values=st.lists(st.tuples(st.integers(-3, 3), st.integers(-3, 3)), min_size=2, max_size=40, unique=True),
    seed=st.integers(0, 99),
)
@examples(60)
def test_cross_edges_equal_the_naive_ones(values, seed):
    X = np.array(values, dtype=float)
    order = np.random.default_rng(seed).permutation(len(X))
    cut = 1 + seed % (len(X) - 1)
    groups = np.sort(order[:cut]), np.sort(order[cut:])
    found = cross_edges(*grown(X, groups))
    expected = naive.cross_edges(values, *(group.tolist() for group in groups))
    assert found.ends.tolist() == [[i, j] for _, i, j in expected]
    np.testing.assert_array_equal(found.lengths**2, np.sqrt([s for s, _, _ in expected]) ** 2)


def kinds(n):
    rng = np.random.default_rng(n)
    blobs = rng.integers(0, 6, size=(n, 1))
    return {
        "normal": rng.normal(size=(n, 5)),
        "one column": rng.normal(size=(n, 1)),
        "600 columns": rng.normal(size=(n, 5)) @ rng.normal(size=(5, 600)),  # more than are rotated
        "lattice": rng.integers(0, 6, size=(n, 3)).astype(float),
        "far apart": rng.normal(size=(n, 4)) * 0.01 + 100 * blobs,
        "outliers": np.r_[rng.normal(size=(n - 5, 3)), 1e6 * rng.normal(size=(5, 3))],
        "constant": np.c_[np.full(n, 1e300), rng.normal(size=(n, 2)), np.zeros(n)],
        "offset": rng.normal(size=(n, 4)) + 1e6,
        "huge": 1e300 * rng.uniform(size=(n, 3)),
        "tiny": 1e-300 * rng.normal(size=(n, 3)),
        "vanishing": np.where(rng.random((n, 2)) < 0.5, 1.0, 1e-310) * rng.normal(size=(n, 2)),
        "flat": rng.normal(size=(n, 3)) @ rng.normal(size=(3, 20)),
        "wide scales": rng.normal(size=(n, 12)) * np.geomspace(1e-6, 1e6, 12),
        "an absurd row": np.r_[rng.normal(size=(n - 1, 5)), np.full((1, 5), 1e10)],
        "absurd values": np.c_[rng.normal(size=(n, 4)), np.where(np.arange(n) % 300 == 7, 1e100, blobs.ravel())],
        "dense and far apart": 1e-6 * rng.normal(size=(n, 4)) + 1e9 * blobs,
    }


@compiled_only
@pytest.mark.parametrize("kind", kinds(10))
def test_kinds_of_data(kind):
    X = kinds(700)[kind]
    for part_of in (np.random.default_rng(1).integers(0, 4, len(X)), slabs(X, 5, column=X.shape[1] // 2)):
        assert_same_tree(X, together(X, part_of))


@compiled_only
@pytest.mark.parametrize("kind", ["lattice", "flat"])
def test_parts_above_the_size_for_a_kdtree(kind):
    n, rng = 13_500, np.random.default_rng(3)
    X = rng.integers(0, 40, size=(n, 3)).astype(float) if kind == "lattice" else kinds(n)[kind]
    planned = plan_partition(sample_distinct(X, 2000), 3).assign(X)
    for part_of in (together(X, rng.integers(0, 3, n)), planned):
        assert np.bincount(part_of).min() > 1000
        assert_same_tree(X, part_of)


@compiled_only
@pytest.mark.parametrize("seed", [66, 96])
def test_what_a_search_cut_short_has_found_is_not_taken_for_the_nearest(seed):
    """In these two tables a point's search ends early because of another point, and its turn comes later."""
    rng = np.random.default_rng(seed)
    n, p = rng.integers(300, 2500), rng.integers(1, 5)
    X = rng.normal(size=(n, p)) * rng.choice([0.01, 1, 1], size=(n, 1)) + rng.integers(0, 3, size=(n, 1))
    assert_same_tree(X, np.floor(X[:, 0] * 3 / np.std(X[:, 0])).astype(int) % 2)


@compiled_only
@pytest.mark.parametrize("cut", [300, 301, 603])
def test_leaves_are_no_nearer_to_the_other_part_than_their_bound(cut):
    """On a line the gap of two boxes is that of their points, but for the rounding of both to float32."""
    X = np.arange(900.0)[:, None] / 3
    one, other = grown(X, [np.arange(cut), np.arange(cut, 900)])
    sides = Side(one, 0), Side(other, len(one.tree.names))
    Crossing(*sides)
    exact = ((one.tree.exact[:, None] - other.tree.exact[None]) ** 2).sum(axis=2)
    for squares, side in zip((exact.min(axis=1), exact.min(axis=0)), sides, strict=True):
        nearest = np.array([squares[start : start + TILE].min() for start in range(0, len(squares), TILE)])
        assert (side.leaf_lower <= nearest).all()
        assert (side.leaf_lower > 0.99 * nearest).all()


@compiled_only
def test_parts_on_disk_and_threads(tmp_path):
    """Arrays mapped into memory give the same edges, on any number of threads."""
    X = kinds(6000)["flat"]
    parts = grown(X, [np.flatnonzero(slabs(X, 2) == part) for part in (0, 1)])
    expected = cross_edges(*parts)
    for number, part in enumerate(parts):
        for name in ("exact", "tiles", "boxes", "centers", "names"):
            np.save(tmp_path / f"{number}_{name}.npy", getattr(part.tree, name))
            mapped = np.load(tmp_path / f"{number}_{name}.npy", mmap_mode="c")
            object.__setattr__(part.tree, name, mapped)
    for threads in (1, 3):
        with thread_limit(threads):
            np.testing.assert_array_equal(cross_edges(*parts).ends, expected.ends)


def test_lengths_are_those_of_the_rows_where_scaling_rounds_them():
    X = np.array([[0.0], [5e-324 * 33], [5e-324 * 101], [3000.0]])
    part, other = grown(X, [np.array([0, 2]), np.array([1, 3])])
    assert part.rounded is not None
    np.testing.assert_array_equal(part.rows_at(np.array([0, 1])), X[part.tree.names])
    found = cross_edges(part, other)
    np.testing.assert_array_equal(found.lengths, edge_lengths(X, found.ends))


@given(
    edges=st.lists(st.tuples(st.integers(0, 3), st.integers(0, 7), st.integers(0, 7)), max_size=30),
    n_lists=st.integers(1, 3),
)
@examples(100)
def test_join_equals_naive_kruskal(edges, n_lists):
    edges = [(float(s), min(i, j), max(i, j)) for s, i, j in edges if i != j]
    lists = [np.array(edges[start::n_lists]).reshape(-1, 3) for start in range(n_lists)]
    found = join_edges(8, [Edges(some[:, 1:].astype(int), some[:, 0], some[:, 0]) for some in lists])
    assert np.column_stack([found.squares, found.ends]).tolist() == [list(edge) for edge in naive.forest(edges)]


@st.composite
def divided(draw):
    """A table of distinct rows in parts, most of them apart, and the rows of each."""
    n_parts, size, p = draw(st.integers(2, 5)), draw(st.integers(1, 5)), draw(st.integers(1, 3))
    rng = np.random.default_rng(draw(st.integers(0, 10_000)))
    spread = draw(st.sampled_from([0.5, 3.0, 30.0]))
    scale = draw(st.sampled_from([1.0, 1e200, 1e-200]))
    X = rng.normal(size=(n_parts * size, p)) + spread * np.repeat(rng.normal(size=(n_parts, p)), size, axis=0)
    return scale * np.round(X, draw(st.sampled_from([1, 12]))), np.repeat(np.arange(n_parts), size)


@given(table=divided(), seed=st.integers(0, 99), units=st.sampled_from(["data", "frame"]))
@examples(150)
def test_no_edge_joins_parts_that_may_be_skipped(table, seed, units):
    X, part_of = table
    part_of = together(X, part_of)
    groups = [
        np.flatnonzero((part_of == part) & (first_of_equals(X) == np.arange(len(X)))) for part in np.unique(part_of)
    ]
    parts = grown(X, groups)
    rows = [X[group] for group in groups] if units == "data" else [part.tree.exact for part in parts]
    longest = np.array([part.lengths.max(initial=0.0) if units == "data" else part.longest for part in parts])
    joined = np.full((len(parts), len(parts)), np.inf)
    known = np.random.default_rng(seed).random(joined.shape) < 0.6
    for a, b in itertools.combinations(range(len(parts)), 2):
        if known[a, b]:
            edges = cross_edges(parts[a], parts[b])
            joined[a, b] = joined[b, a] = edges.lengths[0] if units == "data" else np.sqrt(edges.squares[0])
    low, high = (np.array([getattr(r, end)(axis=0) for r in rows]) for end in ("min", "max"))
    skipped = skippable_pairs(low, high, longest, joined)
    for a, b in itertools.combinations(range(len(parts)), 2):
        apart = naive.box_distance(low[a], high[a], low[b], high[b])
        least = naive.minimax(longest, joined, a, b)
        if abs(apart - least) > 1e-8 * apart:
            assert skipped[a, b] == skipped[b, a] == (apart > least)
    numbers = np.full(len(X), -1)
    for number, group in enumerate(groups):
        numbers[group] = number
    ends = numbers[minimum_spanning_tree(X).edges]
    ends = ends[(ends >= 0).all(axis=1)]
    assert not skipped[ends[:, 0], ends[:, 1]].any()


def test_far_parts_are_skipped():
    """Of eight clusters in a row only neighbours are joined: 7 pairs of 28."""
    X = np.random.default_rng(0).uniform(size=(160, 2)) + np.repeat(np.arange(8) * [[3.0], [0.0]], 20, axis=1).T
    parts = grown(X, np.split(np.arange(160), 8))
    rows = [part.tree.exact for part in parts]
    known = [[np.sqrt(((a[:, None] - b) ** 2).sum(axis=2).min()) for a in rows] for b in rows]
    low, high = ([getattr(r, end)(axis=0) for r in rows] for end in ("min", "max"))
    skipped = skippable_pairs(
        np.array(low), np.array(high), np.array([part.longest for part in parts]), np.array(known)
    )
    assert (~skipped[np.triu_indices(8, 1)]).sum() == 7


def test_clear_errors():
    rows = np.array([[0.0], [1.0]])
    with pytest.raises(ValueError, match="ascending"):
        grow_part(rows, np.array([5, 4]), common_frame(rows.min(axis=0), rows.max(axis=0), rows))
