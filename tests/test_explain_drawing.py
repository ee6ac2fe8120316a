from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from naive import explanations as naive
from strategies_explain import trees

from penstock import Tree
from penstock.explain import tree_layout
from penstock.explain.drawing import middle
from penstock.explain.neighbors import rooted


@given(trees(), st.integers(1, 50), st.data())
@settings(max_examples=100)
def test_it_is_still_a_tree(tree, most, data):
    n = tree.n_nodes
    keep = data.draw(st.lists(st.integers(0, n - 1), max_size=12))
    drawing = tree_layout(tree, most=most, keep=keep)
    m = len(drawing.nodes)
    assert 1 <= m <= most
    assert drawing.simplified == (m < n) == (n > most)
    assert (np.diff(drawing.nodes) > 0).all()
    assert naive.is_tree(m, drawing.edges.tolist())
    assert drawing.edges.shape == (m - 1, 2)
    assert set(list(dict.fromkeys(keep))[:most]) <= set(drawing.nodes.tolist())
    assert drawing.weights.sum() == n
    assert np.isfinite(drawing.positions).all()
    assert drawing.positions.shape == (m, 2)
    assert 0 <= drawing.positions.min() <= drawing.positions.max() <= 1
    np.testing.assert_array_equal(drawing.drawn_as[drawing.nodes], np.arange(m))
    for place in range(m):
        members = set(np.flatnonzero(drawing.drawn_as == place).tolist())
        assert len(members) == drawing.weights[place]
        assert naive.hangs_together(tree.edges.tolist(), members)
    crossing = drawing.drawn_as[tree.edges]
    joining = {
        (*sorted(pair), length)
        for pair, length in zip(crossing.tolist(), tree.lengths.tolist(), strict=True)
        if pair[0] != pair[1]
    }
    drawn = {(*pair, length) for pair, length in zip(drawing.edges.tolist(), drawing.lengths.tolist(), strict=True)}
    assert drawn == joining


@given(trees(20))
@settings(max_examples=50)
def test_no_two_nodes_of_a_whole_drawing_coincide(tree):
    positions = tree_layout(tree).positions
    if tree.lengths.max(initial=0.0) < 1e9:
        assert len(np.unique(positions.round(9), axis=0)) == tree.n_nodes


@given(trees(20))
@settings(max_examples=50)
def test_the_middle_leaves_the_smallest_largest_part(tree):
    def largest_part(node):
        hung = rooted(tree, node)
        top = {}
        for v in hung.order[1:].tolist():
            parent = int(hung.parent[v])
            top[v] = v if parent == node else top[parent]
        return max(np.bincount(list(top.values())), default=0)

    parts = [largest_part(node) for node in range(tree.n_nodes)]
    assert middle(tree) == int(np.argmin(parts))


def path(n: int) -> Tree:
    steps = np.arange(n - 1)
    return Tree(np.column_stack([steps, steps + 1]), np.ones(n - 1))


def test_rows_at_long_edges_are_at_the_rim():
    rng = np.random.default_rng(0)
    parents = np.array([rng.integers(max(0, i - 30), i) for i in range(1, 500)])
    lengths = rng.random(499) + 0.5
    is_end = ~np.isin(np.arange(1, 500), parents)
    outlier = int(np.flatnonzero(is_end)[7])
    lengths[outlier] = 60.0
    tree = Tree(np.column_stack([parents, np.arange(1, 500)]), lengths)
    drawing = tree_layout(tree)
    center = drawing.positions[middle(tree)]
    radius = np.linalg.norm(drawing.positions - center, axis=1)
    assert radius.argmax() == outlier + 1


def test_a_backbone_remains_where_there_is_room():
    drawing = tree_layout(path(10_000), most=100, keep=[0, 9_999])
    assert 80 <= len(drawing.nodes) <= 100
    assert drawing.weights.max() < 300


def test_more_to_keep_than_there_is_room():
    drawing = tree_layout(path(50), most=3, keep=[40, 10, 20, 30])
    assert drawing.nodes.tolist() == [10, 20, 40]


def test_all_room_is_taken_by_what_is_kept():
    drawing = tree_layout(path(50), most=2, keep=[0, 49])
    assert drawing.nodes.tolist() == [0, 49]
    assert drawing.weights.sum() == 50


def test_the_same_each_time():
    tree = path(3000)
    a, b = (tree_layout(tree, keep=[5]) for _ in range(2))
    np.testing.assert_array_equal(a.positions, b.positions)
    np.testing.assert_array_equal(a.edges, b.edges)


def test_no_room_at_all_is_refused():
    with pytest.raises(ValueError, match="most must be at least 1; got 0"):
        tree_layout(path(3), most=0)


@pytest.mark.parametrize("most", [2000, 300_000])
def test_a_long_path_does_not_overflow(most):
    drawing = tree_layout(path(300_000), most=most, keep=[17])
    assert 17 in drawing.nodes
    assert drawing.weights.sum() == 300_000
