from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.base import clone

from penstock import NSNMF
from penstock.detectors import NormScore
from penstock.thresholds import (
    Fixed,
    MeanDeviation,
    PeaksOverThreshold,
    RollingQuantile,
    TopN,
    parse_threshold,
    score_threshold,
)
from penstock.thresholds.basic import _three_sigma


@pytest.mark.parametrize(
    ("text", "threshold"),
    [
        ("fixed:0.8", Fixed(0.8)),
        ("fixed:value=-2", Fixed(-2)),
        ("deviation", MeanDeviation()),
        ("quantile:rate=0.01,window=500", RollingQuantile(rate=0.01, window=500)),
        ("peaks:rate=1e-3,expect_alarms=false", PeaksOverThreshold(rate=1e-3, expect_alarms=False)),
        ("top:100", TopN(100)),
    ],
)
def test_thresholds_from_text(text: str, threshold: Any) -> None:
    assert repr(parse_threshold(text)) == repr(threshold)


finite = st.floats(-1.7e308, 1.7e308)


@given(st.lists(finite, min_size=2, max_size=60, unique=True), st.floats(0.001, 0.5))
@settings(max_examples=200, deadline=None)
def test_a_share_flags_exactly_that_many_distinct_scores(scores: list[float], share: float) -> None:
    values = np.array(scores)
    expected = max(1, int(np.floor(share * len(values) + 0.5)))
    assert (values > score_threshold(values, share)).sum() == expected


def test_share_with_ties_at_the_cut_flags_fewer() -> None:
    scores = np.array([5.0, 3.0, 3.0, 3.0, 1.0, 0.0])
    assert (scores > score_threshold(scores, 0.5)).sum() == 1
    assert (scores > score_threshold(scores, 1 / 3)).sum() == 1


def test_at_least_one_is_flagged() -> None:
    scores = np.arange(20.0)
    assert (scores > score_threshold(scores, 0.001)).sum() == 1


@given(st.lists(st.floats(0, 100), min_size=1, max_size=200))
@settings(max_examples=200, deadline=None)
def test_auto_is_a_fixed_point(scores: list[float]) -> None:
    values = np.array(scores)
    threshold = _three_sigma(values)
    kept = values[values <= threshold]
    assert len(kept) > 0
    assert threshold == pytest.approx(kept.mean() + 3 * kept.std(), rel=1e-6, abs=1e-9)
    if len(kept) < len(values):
        assert score_threshold(values) == threshold


@given(st.lists(finite, min_size=1, max_size=30))
@settings(max_examples=100, deadline=None)
def test_auto_is_finite_and_never_flags_all(scores: list[float]) -> None:
    values = np.array(scores)
    threshold = score_threshold(values)
    assert np.isfinite(threshold)
    assert not (values > threshold).all()


def test_auto_looks_behind_the_largest() -> None:
    """One giant hides a second anomaly from mean + 3 sd of all scores; the repetition finds both."""
    scores = np.r_[np.linspace(0, 1, 100), 1e6, 10.0]
    assert scores.mean() + 3 * scores.std() > 10.0
    assert np.flatnonzero(scores > score_threshold(scores)).tolist() == [100, 101]


@pytest.mark.parametrize("value", [0.0, 0.1, 1 / 3, 1e300, -7.7])
def test_constant_scores_flag_none(value: float) -> None:
    assert score_threshold(np.full(57, value)) == value
    assert score_threshold(np.full(57, value), 0.1) == value


@pytest.mark.parametrize("bad", [0, 0.0, -0.1, 0.51, 1, "a", None, True, float("nan")])
def test_other_values_are_refused(bad: object) -> None:
    with pytest.raises(ValueError, match=r"contamination must be 'auto' or a number in \(0, 0.5\], but is "):
        score_threshold(np.arange(5.0), bad)


def test_one_score_is_too_few_for_a_share() -> None:
    with pytest.raises(ValueError, match="at least two scores; got 1"):
        score_threshold(np.array([1.0]), 0.1)


def test_auto_flags_the_highest_where_nobody_is_three_sigma_out() -> None:
    scores = np.array([1.0, 2.0, 3.0, 4.0])
    assert score_threshold(scores) == 3.5


def test_a_threshold_object_gives_what_it_calibrates() -> None:
    scores = np.random.default_rng(0).exponential(size=500)
    for threshold in (Fixed(2.5), MeanDeviation(), RollingQuantile(rate=0.1, window=200), TopN(9)):
        assert score_threshold(scores, threshold) == threshold.calibrate(scores)
        assert vars(threshold).keys() == threshold.get_params().keys()
    assert score_threshold(scores, Fixed(2.5)) == 2.5
    assert score_threshold(scores, RollingQuantile(rate=0.1, window=200)) == np.sort(scores[-200:])[-20]


@given(st.lists(finite, min_size=3, max_size=60, unique=True), st.integers(1, 59))
@settings(max_examples=50, deadline=None)
def test_top_n_of_all_scores_flags_exactly_n(scores: list[float], n: int) -> None:
    n = min(n, len(scores) - 1)
    assert (np.array(scores) > score_threshold(np.array(scores), TopN(n))).sum() == n


def test_top_n_with_ties_at_the_cut_flags_fewer() -> None:
    scores = np.array([5.0, 3.0, 3.0, 3.0, 1.0, 0.0])
    assert (scores > score_threshold(scores, TopN(3))).sum() == 1
    assert score_threshold(scores, TopN(4)) == 2.0


@pytest.mark.parametrize(
    ("bad", "message"),
    [
        (TopN, "contamination must be 'auto' or a number .* An object of penstock.thresholds, such as TopN"),
        (TopN(-3), "n must be a whole number ≥ 1; got -3"),
        (TopN(5), r"TopN\(n=5\) needs at least 6 scores to give a threshold, NaN not counted; got 5"),
        (PeaksOverThreshold(), r"PeaksOverThreshold\(\) needs at least 1000 scores .*; got 5\. Give it more"),
    ],
)
def test_threshold_objects_that_do_not_fit_are_refused(bad: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        score_threshold(np.arange(5.0), bad)
    with pytest.raises(ValueError, match=message):
        NormScore(contamination=bad).fit(np.arange(5.0)[:, None])
    fitted = NormScore(contamination=0.4).fit(np.arange(5.0)[:, None])
    with pytest.raises(ValueError, match=message):
        fitted.set_contamination(bad)
    assert fitted.contamination == 0.4
    assert (fitted.predict(np.arange(5.0)[:, None]) == -1).sum() == 2


def test_detectors_take_threshold_objects() -> None:
    X = np.random.default_rng(0).gamma(2.0, size=(1200, 3))
    X[700] = 60.0
    contamination = PeaksOverThreshold(rate=1e-3)
    detector = NSNMF(n_components=2, similarity="normalized", contamination=contamination, random_state=0)
    copied = clone(detector)
    assert copied.contamination is not contamination
    assert repr(copied) == repr(detector)
    assert "PeaksOverThreshold()" in repr(detector)
    detector.fit(X)
    assert detector.contamination is contamination
    assert vars(contamination).keys() == contamination.get_params().keys(), "the caller's object learns nothing"
    assert detector.threshold_ == PeaksOverThreshold(rate=1e-3).calibrate(detector.scores_)
    assert copied.fit(X).threshold_ == detector.threshold_
    assert detector.predict(X)[700] == -1
    assert detector.set_params(contamination__rate=1e-2).get_params()["contamination__rate"] == 1e-2

    top = TopN(7)
    assert detector.set_contamination(top).contamination is top
    assert (detector.predict(X) == -1).sum() == 7
    assert vars(top).keys() == {"n"}
