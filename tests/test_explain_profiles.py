from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from naive import explanations as naive

from penstock.explain import describe_groups, group_of_row
from penstock.prepare import learn_scaling

WEIGHT = st.one_of(st.just(0.0), st.floats(0.01, 10))


@st.composite
def factors(draw):
    n, K, p = draw(st.integers(1, 12)), draw(st.integers(1, 4)), draw(st.integers(1, 5))
    return draw(arrays(np.float64, (n, K), elements=WEIGHT)), draw(arrays(np.float64, (K, p), elements=WEIGHT))


@given(factors())
def test_groups_are_the_naive_ones(both):
    W, H = both
    p = H.shape[1]
    scaling = learn_scaling(np.array([np.arange(p), 5.0 + 3 * np.arange(p)]))
    names = [f"v{j}" for j in range(p)]
    groups = describe_groups(W, H, scaling.undo, names, n=2)
    sizes = W * np.sqrt((H**2).sum(axis=1))
    belongs = group_of_row(W, H)
    clear = np.sort(sizes, axis=1)[:, -2:] if len(H) > 1 else np.column_stack([np.zeros(len(W)), sizes])
    clear = clear[:, 1] > clear[:, 0] * (1 + 1e-12)  # where rounding cannot decide
    np.testing.assert_array_equal(belongs[clear], np.array(naive.group_of_row(W.tolist(), H.tolist()))[clear])
    usual = np.array(naive.mean_reconstruction(W.tolist(), H.tolist(), range(len(W))))
    assert [group.number for group in groups] == list(range(len(H)))
    for group in groups:
        rows = np.flatnonzero(belongs == group.number)
        assert group.members == len(rows)
        assert group.share == len(rows) / len(W)
        if len(rows) == 0:
            assert np.isnan(group.profile).all()
            assert len(group.telling) == 0
            continue
        own = np.array(naive.mean_reconstruction(W.tolist(), H.tolist(), rows.tolist()))
        np.testing.assert_allclose(group.profile, scaling.undo(own), rtol=1e-9)
        departure = np.abs(own - usual)
        told = [names.index(name) for name in group.telling["variable"]]
        assert len(told) <= 2
        if told:
            left = np.delete(departure, told)
            assert departure[told].min() >= left.max(initial=0.0) - 1e-9
            np.testing.assert_allclose(group.telling["value"], scaling.undo(own)[told], rtol=1e-9)
            np.testing.assert_allclose(group.telling["usual"], scaling.undo(usual)[told], rtol=1e-9)


def test_belonging_does_not_depend_on_how_the_scale_is_shared():
    rng = np.random.default_rng(0)
    W, H = rng.random((50, 3)), rng.random((3, 4))
    shared = np.array([0.25, 8.0, 2.0])
    np.testing.assert_array_equal(group_of_row(W, H), group_of_row(W * shared, H / shared[:, None]))
    assert group_of_row(W, H).dtype == np.intp


def test_a_row_without_weights_belongs_to_none():
    W, H = np.array([[0.0, 0.0], [1.0, 0.0]]), np.eye(2)
    assert group_of_row(W, H).tolist() == [-1, 0]
    assert [group.members for group in describe_groups(W, H, lambda rows: rows, ["a", "b"])] == [1, 0]
    assert sum(group.share for group in describe_groups(W, H, lambda rows: rows, ["a", "b"])) == 0.5


def test_a_single_group_departs_from_nothing():
    rng = np.random.default_rng(1)
    (group,) = describe_groups(rng.random((100, 1)) + 0.1, rng.random((1, 7)), lambda rows: rows, list("abcdefg"))
    assert len(group.telling) == 0
    assert group.share == 1.0


def test_telling_is_judged_in_scaled_units():
    W, H = np.array([[1.0, 0.0], [0.0, 1.0]]), np.array([[0.1, 0.5], [0.9, 0.6]])
    scaling = learn_scaling(np.array([[0.0, 0.0], [1.0, 1000.0]]))
    group = describe_groups(W, H, scaling.undo, ["small", "large"], n=1)[0]
    assert group.telling["variable"].tolist() == ["small"]
    assert group.telling["value"].tolist() == pytest.approx([0.1])
    assert group.telling["usual"].tolist() == pytest.approx([0.5])
    assert group.profile.tolist() == pytest.approx([0.1, 500.0])
