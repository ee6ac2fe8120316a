"""The approximate tree spans all rows, is never shorter than the exact one and says how much longer it may be."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from naive import parts as naive
from strategies import examples, tables

from penstock import approximate_spanning_tree, minimum_spanning_tree
from penstock.graph.approximate import list_some_neighbors
from penstock.graph.search import build_tree

pytestmark = pytest.mark.kernels
compiled_only = pytest.mark.compiled


def assert_spanning(tree, n):
    assert tree.edges.shape == (n - 1, 2)
    assert len(naive.forest((0.0, int(i), int(j)) for i, j in tree.edges)) == n - 1
    assert (tree.edges[:, 0] < tree.edges[:, 1]).all()


@given(X=tables(), n_neighbors=st.integers(1, 4))
@examples(80)
def test_spans_and_is_not_shorter(X, n_neighbors):
    found = approximate_spanning_tree(X, n_neighbors=n_neighbors, max_leaves=1)
    exact = minimum_spanning_tree(X)
    assert_spanning(found.tree, len(X))
    assert found.tree.total_length >= exact.total_length * (1 - 1e-12)
    assert found.sample_size == len(X)
    assert found.excess == pytest.approx(
        found.tree.total_length / exact.total_length - 1 if exact.total_length else 0.0, abs=1e-12
    )


@given(X=tables())
@examples(40)
def test_exact_where_all_is_looked_at(X):
    """With all rows listed the graph is complete."""
    found = approximate_spanning_tree(X, n_neighbors=len(X), max_leaves=10).tree
    exact = minimum_spanning_tree(X)
    np.testing.assert_array_equal(found.edges, exact.edges)
    np.testing.assert_array_equal(found.lengths, exact.lengths)


def test_components_are_joined_by_the_shortest_edges():
    """Three clusters farther apart than any list reaches: two edges join them, the shortest there are."""
    rng = np.random.default_rng(0)
    X = rng.uniform(size=(210, 2)) + np.repeat([[0.0, 0.0], [10.0, 0.0], [30.0, 0.0]], 70, axis=0)
    found, exact = approximate_spanning_tree(X, n_neighbors=3, max_leaves=2).tree, minimum_spanning_tree(X)
    np.testing.assert_array_equal(found.lengths[-2:], exact.lengths[-2:])


def test_lists_of_all_leaves_are_exact():
    X = np.random.default_rng(1).normal(size=(300, 3))
    tree = build_tree(X)
    for found, expected in zip(list_some_neighbors(tree, 4, 99), tree.list_neighbors(4), strict=True):
        np.testing.assert_array_equal(found, expected)


@compiled_only
def test_more_leaves_are_better_and_the_excess_is_measured_on_a_sample():
    X = np.random.default_rng(2).uniform(size=(6000, 15))
    exact = minimum_spanning_tree(X).total_length
    total = []
    for max_leaves in (1, 4, 1000):
        found = approximate_spanning_tree(X, n_neighbors=12, max_leaves=max_leaves, sample_size=2000)
        assert_spanning(found.tree, 6000)
        assert found.sample_size == 2000
        total.append(found.tree.total_length / exact - 1)
        assert 0 <= found.excess <= 3 * total[-1] + 1e-9
    assert total[0] > total[1] > total[2] >= 0
    assert total[2] < 1e-4
    excess = [
        approximate_spanning_tree(X[:900], max_leaves=1, sample_size=300, random_state=seed).excess
        for seed in (1, 1, 2)
    ]
    assert excess[0] == excess[1] != excess[2]


@pytest.mark.parametrize(
    ("X", "options", "message"),
    [
        ([[1.0], [np.nan]], {}, "missing"),
        ([[1.0], [2.0]], {"n_neighbors": 0}, "at least 1"),
        ([[1.0], [2.0]], {"max_leaves": 0}, "at least 1"),
        ([[1.0], [2.0]], {"sample_size": 0}, "sample_size"),
    ],
)
def test_clear_errors(X, options, message):
    with pytest.raises(ValueError, match=message):
        approximate_spanning_tree(X, **options)
