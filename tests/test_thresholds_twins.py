"""Every threshold beside its slow twin, which is written straight from the definition."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from naive import thresholds as naive

from penstock.thresholds import (
    ConformalPValue,
    DriftingPeaks,
    MeanDeviation,
    PeaksOverThreshold,
    RollingQuantile,
    Threshold,
    TopN,
)
from penstock.thresholds.quantile import fewest_for, most_above

some_score = st.one_of(st.sampled_from([0.0, -0.0, 1.0, 1.0, 2.0, math.nan]), st.floats(-100, 100))
some_scores = st.one_of(st.lists(some_score, max_size=30), st.lists(some_score, min_size=40, max_size=60))
decimal_rates = st.sampled_from([0.01, 0.05, 0.07, 0.1, 0.2, 0.29, 0.3, 0.5, 0.9, 0.99])


def watched(threshold: Threshold, scores: list[float]) -> tuple[list[bool], list[float]]:
    flags, values = [], []
    for score in scores:
        flags.append(threshold.update(score))
        values.append(threshold.value)
    return flags, values


@given(some_scores, st.floats(0, 4), st.integers(2, 20))
@settings(max_examples=40, deadline=None)
def test_mean_deviation(scores: list[float], k: float, min_scores: int) -> None:
    """The recursion rounds differently, so a score at the threshold, to nine digits, may be judged either way."""
    flags, values = watched(MeanDeviation(k, min_scores), scores)
    for cut in range(len(scores)):
        before = values[cut - 1] if cut else math.nan
        if not math.isnan(before) and abs(scores[cut] - before) < 1e-9:
            scores, flags, values = scores[:cut], flags[:cut], values[:cut]
            break
    expected_flags, expected_values = naive.mean_deviation(scores, k, min_scores)
    assert flags == expected_flags
    np.testing.assert_allclose(values, expected_values, rtol=1e-9, atol=1e-7)


def test_mean_deviation_learns_no_flagged_score_and_stays_flagging_after_a_shift() -> None:
    rng = np.random.default_rng(0)
    threshold = MeanDeviation()
    threshold.update_many(rng.normal(size=1000))
    before = threshold.get_state()
    assert threshold.update_many(rng.normal(10.0, size=5000)).all()
    assert threshold.get_state() == before
    assert threshold.value == pytest.approx(3.0, abs=0.3)


def test_mean_deviation_judges_but_does_not_learn_scores_whose_squares_overflow() -> None:
    threshold = MeanDeviation(min_scores=3)
    assert threshold.update_many([1.0, 1e200, 2.0, -1e200, 3.0, 1e200, -1e200]).tolist() == [False] * 5 + [True, False]
    assert threshold.value == pytest.approx(2.0 + 3.0 * math.sqrt(2 / 3))


@given(some_scores, decimal_rates, st.integers(1, 40), st.integers(1, 30))
@settings(max_examples=40, deadline=None)
def test_rolling_quantile(scores: list[float], rate: float, more: int, min_scores: int) -> None:
    window = max(math.ceil(1 / rate), min_scores) + more
    flags, values = watched(RollingQuantile(rate, window, min_scores), scores)
    assert (flags, [None if math.isnan(value) else value for value in values]) == without_nan(
        *naive.rolling_quantile(scores, rate, window, min_scores)
    )


def without_nan(flags: list[bool], values: list[float]) -> tuple[list[bool], list[float | None]]:
    return flags, [None if math.isnan(value) else value for value in values]


@given(some_scores, decimal_rates, st.integers(1, 40), st.booleans(), st.one_of(st.none(), st.integers(1, 30)))
@settings(max_examples=40, deadline=None)
def test_conformal(scores: list[float], rate: float, more: int, learn_flagged: bool, min_scores: int | None) -> None:
    window = max(math.ceil(1 / rate), min_scores or 0) + more
    threshold = ConformalPValue(rate, window, min_scores, learn_flagged)
    flags, _ = watched(threshold, scores)
    assert flags == naive.conformal_flags(scores, rate, window, min_scores or 1, learn_flagged)
    if learn_flagged:
        assert flags == watched(RollingQuantile(rate, window, min_scores), scores)[0]


@given(st.lists(some_score, max_size=30), st.floats(-100, 100))
@settings(max_examples=40, deadline=None)
def test_p_values(scores: list[float], score: float) -> None:
    threshold = ConformalPValue(rate=0.2, window=12)
    assert threshold.p_value(score) == 1.0
    threshold.update_many(scores)
    remembered = [other for other in scores if not math.isnan(other)][-12:]
    for asked in [score, *remembered]:
        assert threshold.p_value(asked) == float(naive.p_value(remembered, asked))
    if len(remembered) >= 4:
        assert (threshold.p_value(score) <= 0.2) == (score > threshold.value)
    assert math.isnan(threshold.p_value(math.nan))
    with pytest.raises(ValueError, match="must be finite or NaN; got inf"):
        threshold.p_value(math.inf)


@pytest.mark.parametrize("n", [1, 9, 19, 98, 99, 499, 999])
def test_ranks_do_not_suffer_from_rounding(n: int) -> None:
    for thousandths in range(1, 1000):
        assert most_above(n, thousandths / 1000) == (n + 1) * thousandths // 1000
        assert fewest_for(thousandths / 1000) == max(1, -(-1000 // thousandths) - 1)


@given(some_scores, st.integers(1, 12))
@settings(max_examples=40, deadline=None)
def test_top_n(scores: list[float], n: int) -> None:
    threshold = TopN(n)
    for seen, score in enumerate(scores, start=1):
        flagged = threshold.update(score)
        positions, best = naive.top_n(scores[:seen], n)
        assert threshold.positions.tolist() == positions
        assert threshold.scores.tolist() == best
        assert threshold.positions.dtype == np.int64
        before, _ = naive.top_n(scores[: seen - 1], n)
        assert flagged == (len(before) == n and seen - 1 in positions)
        assert threshold.value == best[-1] if len(best) == n else math.isnan(threshold.value)


def test_top_n_lists_nothing_before_the_first_score() -> None:
    assert TopN(3).positions.tolist() == TopN(3).scores.tolist() == []


SETTINGS = {"rate": 0.02, "level": 0.9, "n_calibration": 150, "max_peaks": 22}
STREAMS = {
    "exponential": lambda rng, n: rng.exponential(size=n),
    "heavy": lambda rng, n: rng.pareto(1.5, size=n),
    "bounded": lambda rng, n: rng.random(n),
    "with NaN and ties": lambda rng, n: np.where(rng.random(n) < 0.1, np.nan, np.round(rng.normal(size=n), 1)),
}


@pytest.mark.parametrize(("stream", "expect_alarms"), [*((stream, True) for stream in STREAMS), ("exponential", False)])
def test_peaks_over_threshold(stream: str, expect_alarms: bool) -> None:
    scores = STREAMS[stream](np.random.default_rng(5), 300).tolist()
    flags, values = watched(PeaksOverThreshold(**SETTINGS, expect_alarms=expect_alarms), scores)
    expected = naive.peaks_over_threshold(scores, **SETTINGS, expect_alarms=expect_alarms)
    assert flags == expected[0]
    assert any(flags)
    np.testing.assert_allclose(values, expected[1], rtol=1e-5)


def test_drifting_peaks() -> None:
    scores = np.random.default_rng(7).normal(size=300) + np.linspace(0, 30, 300)
    scores[270] += 10
    scores[200] = np.nan
    flags, values = watched(DriftingPeaks(**SETTINGS, depth=7), scores.tolist())
    expected = naive.drifting_peaks(scores.tolist(), depth=7, **SETTINGS, expect_alarms=True)
    assert flags == expected[0]
    assert flags[270]
    np.testing.assert_allclose(values, expected[1], rtol=1e-5)
