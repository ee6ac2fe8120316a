"""The float32 copy may rule a pair out only when it is proven to be too far."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from naive import trees as naive
from strategies import examples, tables

from penstock.graph.distance_kernels import search_limit, squared_distance
from penstock.graph.points import centered_frame, plain_frame, prepare_points
from penstock.graph.rows import first_copies, hash_rows

pytestmark = pytest.mark.kernels


@pytest.mark.parametrize("precise", [False, True])
@pytest.mark.parametrize("rotate", [False, True])
@given(X=tables(max_rows=25))
@examples(100)
def test_the_distance_of_search_points_never_exceeds_its_limit(rotate, precise, X):
    points = centered_frame(replace(plain_frame(X), precise=precise), X, rotate=rotate).enter(X)
    number = np.float64 if precise else np.float32
    assert points.search.dtype == number
    assert_within_limits(points, number)


@pytest.mark.parametrize("size", [1e-3, 1.0, 500.0])
@pytest.mark.parametrize("rotate", [False, True])
@given(X=tables(max_rows=25))
@examples(30)
def test_rows_of_ordinary_size_are_neither_copied_nor_changed(rotate, size, X):
    X = size * (X / max(1.0, np.abs(X).max()))
    before = X.copy()
    points = prepare_points(X, rotate=rotate)
    np.testing.assert_array_equal(X, before)
    if points.frame.exponent == 0 and not points.frame.origin.any():
        assert points.exact is X
    assert_within_limits(points, points.search.dtype.type)


@given(X=tables(max_rows=25))
@examples(50)
def test_a_precise_frame_without_axes_holds_the_rows_as_they_are(X):
    points = replace(plain_frame(X), precise=True).enter(X)
    np.testing.assert_array_equal(points.search[:, : X.shape[1]], points.exact)
    assert points.errors.max() <= 1e-150
    assert_within_limits(points, np.float64)


@pytest.mark.parametrize(("precise", "number", "apart"), [(False, np.float32, 1e-9), (True, np.float64, 2e-16)])
@pytest.mark.parametrize("rotate", [False, True])
def test_the_limit_covers_rounding_that_is_larger_than_the_distance(rotate, precise, number, apart):
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(60, 6))
    X = np.r_[rows, rows + apart * rng.normal(size=rows.shape)]
    points = centered_frame(replace(plain_frame(X), precise=precise), X, rotate=rotate).enter(X)
    assert_within_limits(points, number)


def assert_within_limits(points, number):
    difference = points.search[:, None] - points.search[None]
    computed = np.cumsum(difference * difference, axis=2, dtype=number)[:, :, -1]
    for i in range(len(points.exact)):
        for j in range(len(points.exact)):
            square = squared_distance(points.exact, i, points.exact, j)
            assert computed[i, j] <= number(search_limit(square, 2 * points.errors.max(), points.stretch))


def test_the_limit_is_tight_enough_to_rule_out():
    points = prepare_points(np.random.default_rng(0).normal(size=(50, 8)), rotate=True)
    limit = search_limit(1.0, 2 * points.errors.max(), points.stretch)
    assert 1 < limit < 1.00001


@given(X=tables())
@examples(100)
def test_scaling_is_exact(X):
    frame = plain_frame(X)
    scaled = frame.scale(X)
    np.testing.assert_array_equal(np.ldexp(scaled, frame.exponent) + frame.origin, X)
    assert np.ptp(scaled, axis=0).max() <= 1


@given(X=tables())
@examples(100)
def test_first_copies(X):
    assert first_copies(X).tolist() == naive.first_copies(X)
    with pytest.MonkeyPatch.context() as patch:  # rows that share a hash but differ stay apart
        patch.setattr("penstock.graph.rows.hash_rows", lambda X: np.zeros(len(X), dtype=np.uint64))
        assert first_copies(X).tolist() == naive.first_copies(X)
    assert len(np.unique(hash_rows(X))) == len(np.unique(X + 0.0, axis=0))
    assert first_copies(np.array([[0.0, 1.0], [-0.0, 1.0]])).tolist() == [0, 0]
