"""Parts of near rows: even ones, whatever the scale of the table and however far from zero it is."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from strategies import examples, tables

from penstock.graph.partition import arrange_rows, local_order, plan_partition, sample_distinct

pytestmark = [pytest.mark.kernels, pytest.mark.filterwarnings("error")]

# Scales are powers of two, so that rows keep all their digits.
MOVED = {
    "offset": lambda X: X + 1e9,
    "huge": lambda X: np.ldexp(X, 1000),
    "widest": lambda X: np.ldexp(X, 1023),  # ranges above the largest float
    "tiny": lambda X: np.ldexp(X, -1000),
}


def square(n=400, p=2, seed=0):
    """Rows with few binary digits: moved by an offset they are still all different. The first column is the widest."""
    X = np.round(np.random.default_rng(seed).uniform(-1, 1, (n, p)) * 2**20) / 2**20
    X[:, 1:] /= 2
    return X


@pytest.mark.parametrize("move", MOVED.values(), ids=MOVED)
def test_near_rows_come_together_wherever_they_are(move):
    X = square()
    order = local_order(move(X))
    np.testing.assert_array_equal(order, local_order(X))
    leaves = X[order][:384].reshape(6, 64, 2)
    assert np.prod(leaves.max(axis=1) - leaves.min(axis=1), axis=1).sum() < 2 * 1.2
    assert len(local_order(X[:0])) == 0
    assert sorted(local_order(np.full((100, 2), 1e300)).tolist()) == list(range(100))


@pytest.mark.parametrize("move", MOVED.values(), ids=MOVED)
def test_cuts_are_along_the_widest_column_wherever_it_is(move):
    X = square()
    here, there = plan_partition(X, 4), plan_partition(move(X), 4)
    assert here.columns[0] == 0
    assert plan_partition(X + np.array([0.0, 1e6]), 2).columns[0] == 0  # a column that is far off is not wide
    np.testing.assert_array_equal(there.columns, here.columns)
    np.testing.assert_array_equal(there.assign(move(X)), here.assign(X))
    assert np.bincount(there.assign(move(X))).min() >= 90


@given(X=tables())
@examples(60)
def test_arranged_rows_are_all_rows_once(X):
    order, bounds = arrange_rows(X, 3)
    assert sorted(order.tolist()) == list(range(len(X)))
    assert (bounds[0], bounds[-1]) == (0, len(X))
    assert (np.diff(bounds) > 0).all()


def test_a_sample_has_different_rows_only():
    X = np.repeat(square(50), 3, axis=0)
    assert len(np.unique(sample_distinct(X, 1000), axis=0)) == len(sample_distinct(X, 1000)) == 50
    np.testing.assert_array_equal(sample_distinct(X, 7), sample_distinct(X[::-1], 1000)[:7])
