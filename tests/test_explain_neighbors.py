from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from naive import explanations as naive
from strategies_explain import trees

from penstock import Tree
from penstock.explain import TreeWalker, nearest_normal


@given(trees(), st.data())
@settings(max_examples=100)
def test_the_naive_neighbours(tree, data):
    nodes = st.integers(0, tree.n_nodes - 1)
    rows = data.draw(st.sets(nodes, max_size=4))
    is_normal = np.zeros(tree.n_nodes, dtype=bool)
    is_normal[list(data.draw(st.sets(nodes)))] = True
    n = data.draw(st.integers(0, 5))
    found = nearest_normal(tree, rows, is_normal, n)
    expected = naive.nearest_normal(tree.n_nodes, tree.edges.tolist(), tree.lengths.tolist(), rows, is_normal, n)
    assert list(zip(found.lengths.tolist(), found.nodes.tolist(), found.steps.tolist(), strict=True)) == expected
    assert found.nodes.dtype == found.steps.dtype == np.intp


def path(*lengths: float) -> Tree:
    steps = np.arange(len(lengths))
    return Tree(np.column_stack([steps, steps + 1]).reshape(-1, 2), np.array(lengths, dtype=float))


def test_behind_an_edge_of_length_zero_a_smaller_number_wins():
    tree = Tree(np.array([[0, 2], [1, 2], [1, 3]]), np.array([0.0, 1.0, 1.0]))
    found = nearest_normal(tree, [1], np.array([True, False, True, True]), 1)
    assert found.nodes.tolist() == [0]
    assert found.steps.tolist() == [2]


def test_rows_of_the_event_are_not_their_own_neighbours():
    found = nearest_normal(path(1.0, 2.0), [0, 1], np.ones(3, dtype=bool))
    assert found.nodes.tolist() == [2]
    assert found.lengths.tolist() == [2.0]


@pytest.mark.parametrize("rows", [[], [0]])
def test_a_tree_of_one_node(rows):
    assert len(nearest_normal(path(), rows, np.ones(1, dtype=bool)).nodes) == 0


class Watched(np.ndarray):
    """An array of flags that counts how often one is read."""

    reads = 0

    def __getitem__(self, key):
        Watched.reads += 1
        return super().__getitem__(key)


def test_a_walk_visits_no_more_than_it_needs():
    walker = TreeWalker(path(*[1.0] * 9999))
    is_normal = np.ones(10_000, dtype=bool).view(Watched)
    is_normal.view(np.ndarray)[5000:5010] = False
    Watched.reads = 0
    assert walker.nearest_normal(range(5000, 5010), is_normal, 4).nodes.tolist() == [4999, 5010, 4998, 5011]
    assert Watched.reads <= 10 + 6


def test_a_walker_answers_as_the_function_and_builds_once():
    tree = path(1.0, 0.0, 3.0, 1.0)
    walker = TreeWalker(tree)
    is_normal = np.array([True, False, True, False, True])
    for rows in ([1], [3], [1, 3]):
        a, b = walker.nearest_normal(rows, is_normal), nearest_normal(tree, rows, is_normal)
        assert a.nodes.tolist() == b.nodes.tolist()
    assert walker._nodes is walker._nodes
