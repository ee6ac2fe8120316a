from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import array_shapes, arrays
from strategies import examples

from penstock.prepare import learn_scaling

tables = arrays(np.float64, array_shapes(min_dims=2, max_dims=2, max_side=8), elements=st.floats(-1.7e308, 1.7e308))


@given(tables)
@examples(200)
def test_training_rows_fill_zero_to_one_and_come_back(X: np.ndarray) -> None:
    X.setflags(write=False)
    scaling = learn_scaling(X)
    A = scaling.apply(X)
    np.testing.assert_array_equal(np.vstack([scaling.apply(row[None]) for row in X]), A)
    assert (A >= 0).all()
    assert (A <= 1).all()
    varies = X.min(axis=0) < X.max(axis=0)
    assert (A.min(axis=0) == 0).all()
    assert (A.max(axis=0) == varies).all()
    size = np.maximum(np.abs(X.min(axis=0)), np.abs(X.max(axis=0)))
    back = scaling.undo(A)
    assert (np.abs(back / 2 - X / 2) <= 4 * np.finfo(float).eps * size + 1e-323).all()


def test_new_values_outside_the_range() -> None:
    scaling = learn_scaling(np.array([[0.0], [10.0]]))
    np.testing.assert_array_equal(scaling.apply(np.array([[-5.0], [5.0], [30.0]])), [[-0.5], [0.5], [3.0]])
    np.testing.assert_array_equal(scaling.apply(np.array([[-5.0], [5.0], [30.0]]), clip=True), [[0], [0.5], [1]])


def test_constant_columns_map_to_zero_until_they_move() -> None:
    scaling = learn_scaling(np.array([[7.0, 1.0, 0.0], [7.0, 2.0, 0.0]]))
    assert (scaling.maximum - scaling.minimum).tolist() == [0.0, 1.0, 0.0]
    rows = np.array([[7.0, 1.0, 0.0], [77.0, 2.0, 3.0]])
    np.testing.assert_array_equal(scaling.apply(rows), [[0, 0, 0], [10, 1, 3]])
    np.testing.assert_array_equal(scaling.apply(rows, clip=True), [[0, 0, 0], [0, 1, 0]])
    np.testing.assert_array_equal(scaling.undo(scaling.apply(rows)), rows)


@pytest.mark.parametrize("value", [1.7e308, -1.7e308])
def test_far_values_stay_finite(value: float) -> None:
    scaling = learn_scaling(np.array([[0.0, -1.7e308], [1e-300, 1.7e308]]))
    A = scaling.apply(np.array([[value, value]]))
    assert np.isfinite(A).all()
    assert abs(A[0, 0]) == 1e300
    assert 0 <= A[0, 1] <= 1
