from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from strategies_explain import labelled_tables

from penstock.explain import Leaf, RuleTree, Split, grow_tree


def leaf_of(node, row, names):
    """The leaf of a row, by its readings, as the records say."""
    while isinstance(node, Split):
        reading = row[names.index(node.variable)]
        goes = node.missing_goes if np.isnan(reading) else ("below" if reading <= node.value else "above")
        node = getattr(node, goes)
    return node


def splits_of(node):
    return [] if isinstance(node, Leaf) else [node, *splits_of(node.below), *splits_of(node.above)]


@given(labelled_tables())
@settings(max_examples=60, deadline=None)
def test_counts_are_those_of_the_rows_that_arrive(labelled):
    X, is_flagged = labelled
    names = list("abcde")[: X.shape[1]]
    tree = grow_tree(X, is_flagged, names)
    arrived = [leaf_of(tree.root, row, names) for row in X]
    for leaf in tree.leaves:
        here = np.array([other is leaf for other in arrived])
        assert (leaf.flagged, leaf.normal) == (is_flagged[here].sum(), (~is_flagged)[here].sum())
        assert leaf.flagged + leaf.normal > 0
    for split in splits_of(tree.root):
        assert split.flagged == split.below.flagged + split.above.flagged
        assert split.normal == split.below.normal + split.above.normal
        assert min(split.flagged, split.normal) > 0
    assert len(tree.leaves) <= 8
    assert len(tree.text.splitlines()) == max(1, 2 * len(splits_of(tree.root)))


TABLE = np.array([[1.0, 20.0], [2.0, 30.0], [1.5, np.nan], [4.2, 20.0], [5.2, 30.0], [4.9, np.nan]])
FLAGGED = np.array([False, False, False, True, True, False])


def test_a_drawing():
    tree = grow_tree(TABLE, FLAGGED, ["vibration [mm/s]", "load"])
    assert tree.text.splitlines() == [
        "vibration <= 3 mm/s: 0 flagged, 3 normal",
        "vibration > 3 mm/s: 2 flagged, 1 normal",
        "    load known: 2 flagged, 0 normal",
        "    load missing: 0 flagged, 1 normal",
    ]
    assert tree.leaves == (Leaf(0, 3), Leaf(2, 0), Leaf(0, 1))
    assert tree.root.unit == "mm/s"


def test_missing_readings_are_said_to_go_somewhere():
    X = np.array([[1.0], [2.0], [np.nan], [np.nan], [8.0], [9.0]])
    tree = grow_tree(X, np.array([False, False, True, True, True, True]), ["x"])
    assert tree.root == Split("x", "", 5.0, Leaf(0, 2), Leaf(4, 0), 4, 2, "above", 2)
    assert tree.text == "x <= 5: 0 flagged, 2 normal\nx > 5 or missing: 4 flagged, 0 normal"
    tree = grow_tree(X, np.array([False, False, False, False, True, True]), ["x"])
    assert tree.text == "x <= 5 or missing: 0 flagged, 4 normal\nx > 5: 2 flagged, 0 normal"


@pytest.mark.parametrize(
    ("X", "is_flagged"),
    [
        (np.ones((4, 2)), [True, False, False, False]),
        (np.full((4, 2), np.nan), [True, False, False, False]),
        (np.arange(8.0).reshape(4, 2), [False] * 4),
        (np.arange(8.0).reshape(4, 2), [True] * 4),
    ],
)
def test_nothing_to_tell_apart(X, is_flagged):
    tree = grow_tree(X, np.array(is_flagged), ["a", "b"])
    assert tree == RuleTree(Leaf(sum(is_flagged), 4 - sum(is_flagged)))
    assert tree.text == f"{sum(is_flagged)} flagged, {4 - sum(is_flagged)} normal"


def test_max_depth_units_and_a_sample():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(30_000, 3))
    is_flagged = (X[:, 1] > 2) & (X[:, 2] < 1)
    tree = grow_tree(X, is_flagged, ["a", "b", "c"], units=["", "bar", None], max_normal=3000)
    assert tree.root.variable == "b"
    assert tree.root.unit == "bar"
    assert sum(leaf.flagged for leaf in tree.leaves) == is_flagged.sum()
    assert sum(leaf.normal for leaf in tree.leaves) == (~is_flagged).sum()
    assert max(leaf.flagged for leaf in tree.leaves) > 0.95 * is_flagged.sum()
    assert len(grow_tree(X, is_flagged, ["a", "b", "c"], max_depth=1).leaves) == 2
    assert tree == grow_tree(X, is_flagged, ["a", "b", "c"], units=["", "bar", None], max_normal=3000)
