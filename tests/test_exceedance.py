"""From scores to the rates at which normal ones are exceeded, and back."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from naive.thresholds import p_value

from penstock.thresholds import Exceedance

RATES = [0.9, 0.5, 0.1, 0.05, 0.011, 0.01, 0.001, 1e-4, 1e-7, 1e-30]
scores_of_all_kinds = st.one_of(
    st.lists(st.floats(-50, 50), min_size=2, max_size=60),
    st.lists(st.integers(0, 4).map(float), min_size=2, max_size=60),
    st.tuples(st.integers(2, 400), st.integers(0, 10**6)).map(
        lambda drawn: np.random.default_rng(drawn[1]).normal(size=drawn[0]).tolist()
    ),
)


def around(scores: np.ndarray) -> np.ndarray:
    """The scores, some between them, and some far beyond."""
    high, spread = scores.max(), np.ptp(scores) + 1e-3
    beyond = high + spread * np.array([1e-9, 0.01, 0.1, 0.3, 1.0, 3.0, 30.0, 1e4])
    return np.concatenate([scores, (scores[1:] + scores[:-1]) / 2, [scores.min() - 1], beyond])


@given(scores_of_all_kinds)
@settings(max_examples=80, deadline=None)
def test_rates_are_p_values_up_to_the_highest_score_and_fall_beyond(values: list[float]) -> None:
    scores = np.array(values)
    exceedance, new = Exceedance.of(scores), np.sort(around(scores))
    rates = exceedance.rate_of(new)
    within = new <= scores.max()
    np.testing.assert_array_equal(rates[within], [float(p_value(values, score)) for score in new[within]])
    assert (rates > 0).all()
    assert (rates <= 1).all()
    assert (rates[~within] <= 1 / (len(scores) + 1)).all()
    assert (np.diff(rates) <= 0).all()
    assert rates[0] == 1.0


@given(scores_of_all_kinds, st.sampled_from(RATES))
@settings(max_examples=100, deadline=None)
def test_a_score_above_the_threshold_of_a_rate_has_at_most_that_rate(values: list[float], rate: float) -> None:
    scores = np.array(values)
    exceedance, new = Exceedance.of(scores), around(scores)
    threshold = exceedance.exceeded_at(rate)
    assert math.isfinite(threshold)
    if len(set(values)) == 1 and rate * (len(values) + 1) < 1:
        assert threshold == values[0]  # nothing is known of higher scores: they are flagged, and say 1/(n + 1)
        return
    np.testing.assert_array_equal(new > threshold, exceedance.rate_of(new) <= rate)


@pytest.mark.parametrize("n", [2, 9, 99, 999])
def test_rates_that_are_whole_numbers_of_scores(n: int) -> None:
    """k/(n + 1) means k − 1 of the n scores, whichever way the quotient is rounded."""
    scores = np.random.default_rng(n).permutation(n).astype(float)
    exceedance = Exceedance.of(scores)
    for k in range(1, n + 1):
        assert exceedance.exceeded_at(k / (n + 1)) == n - k
        assert (scores > exceedance.exceeded_at(k / (n + 1))).sum() == k - 1


def test_equal_scores() -> None:
    exceedance = Exceedance.of(np.full(19, 2.5))
    assert exceedance.tail is None
    assert exceedance.rate_of(np.array([2.0, 2.5, 2.6, 1e9])).tolist() == [1.0, 1.0, 0.05, 0.05]
    assert exceedance.exceeded_at(0.05) == exceedance.exceeded_at(1e-9) == 2.5


def test_where_the_highest_scores_are_equal_the_tail_begins_below_them() -> None:
    """There was none, and a score of a million was no rarer than 1/(n + 1)."""
    exceedance = Exceedance.of(np.r_[np.linspace(0, 1, 80), np.full(19, 3.0)])
    assert exceedance.level == 1.0
    assert exceedance.n_peaks == 19
    assert exceedance.tail is not None
    assert exceedance.rate_of(np.array([1e6]))[0] < 1e-9
    assert exceedance.rate_of(np.array([3.0, 3.0 + 1e-9])).tolist() == [0.2, 0.01]
    assert exceedance.exceeded_at(0.01) == 3.0 < exceedance.exceeded_at(1e-4)


def test_the_tail_is_fitted_to_the_highest_twentieth() -> None:
    for n, peaks in ((2, 1), (8, 7), (12, 10), (200, 10), (1000, 50), (40_000, 1000)):
        scores = np.random.default_rng(n).exponential(size=n)
        exceedance = Exceedance.of(scores)
        assert exceedance.n_peaks == peaks
        assert exceedance.level == np.sort(scores)[-peaks - 1]


def test_no_tail_ends() -> None:
    """Uniform scores end at 1, but a hundred of them do not say so."""
    exceedance = Exceedance.of(np.random.default_rng(0).random(100))
    assert exceedance.tail is not None
    assert exceedance.tail.gamma == 0.1
    rates = exceedance.rate_of(np.array([1.05, 5.0]))
    assert rates[0] > 1e-6
    assert rates[1] < 1e-9


@pytest.mark.parametrize(
    ("name", "draw", "off"),
    [
        ("exponential", lambda rng, size: rng.exponential(size=size), 1.3),
        ("Gaussian", lambda rng, size: rng.normal(size=size), 1.0),
        ("uniform", lambda rng, size: rng.random(size), 1.0),
        ("heavy", lambda rng, size: rng.pareto(3.0, size=size), 6.0),
    ],
)
def test_rates_beyond_the_highest_score_are_kept(name: str, draw: object, off: float) -> None:
    """Rates of 1e-3 and 1e-4 from 300 scores: never exceeded by much, on average over 300 streams."""
    flagged = np.zeros(2)
    for stream in range(300):
        rng = np.random.default_rng([stream, len(name)])
        exceedance, new = Exceedance.of(draw(rng, 300)), draw(rng, 2000)  # type: ignore[operator]
        flagged += [(new > exceedance.exceeded_at(rate)).mean() for rate in (1e-3, 1e-4)]
    assert (flagged / 300 <= off * np.array([1e-3, 1e-4])).all(), flagged / 300
