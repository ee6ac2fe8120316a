"""Measures of scores over time, against their slow twins and the published implementation."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from naive import events as naive_events
from naive import measures as naive
from sklearn.metrics import average_precision_score
from strategies import examples

from penstock.bench import average_precision, event_measures, vus_buffer, vus_pr
from penstock.bench.measures import resampled_precision, resampling_blocks, sensor_hits

START = pd.Timestamp("2024-05-01")


@st.composite
def series(draw: st.DrawFn) -> tuple[list[int], list[float], list[int]]:
    """Labels of both kinds, scores with ties, and times in hours that may jump."""
    n = draw(st.integers(3, 40))
    labels = draw(st.lists(st.integers(0, 1), min_size=n, max_size=n).filter(lambda y: 0 < sum(y) < n))
    scores = draw(st.lists(st.integers(0, draw(st.sampled_from([3, 50]))), min_size=n, max_size=n))
    steps = draw(st.lists(st.sampled_from([1, 1, 1, 1, 2, 9]), min_size=n, max_size=n))
    return labels, [float(score) for score in scores], np.cumsum(steps).tolist()


def stamps(hours: list[int]) -> pd.DatetimeIndex:
    return START + pd.to_timedelta(hours, unit="h")


def published_case() -> tuple[np.ndarray, np.ndarray]:
    labels, scores = np.zeros(64, dtype=int), np.linspace(0.02, 0.18, 64)
    labels[10:15] = labels[38:44] = 1
    scores[9:16] = [0.25, 0.55, 0.72, 0.91, 0.84, 0.63, 0.31]
    scores[37:45] = [0.22, 0.48, 0.68, 0.93, 0.87, 0.79, 0.56, 0.29]
    scores[53] = 0.62
    return labels, scores


def test_vus_pr_is_that_of_the_published_implementation() -> None:
    """Values that `RangeAUC_volume_opt` of TSB-AD 1.5 and of VUS (TheDatumOrg) gave."""
    labels, scores = published_case()
    assert vus_pr(labels, scores, 11) == pytest.approx(0.9750688705234158, abs=1e-14)
    rng = np.random.RandomState(0)
    labels = np.zeros(200, dtype=int)
    labels[40:56] = labels[120:131] = 1
    scores = rng.rand(200) + 0.5 * labels
    scores = (scores - scores.min()) / (scores.max() - scores.min())
    assert naive.vus_pr(labels.tolist(), scores.tolist(), 10, 50) == pytest.approx(0.657318866508, abs=1e-12)


@given(series(), st.integers(0, 9), st.data())
@examples(60)
def test_vus_pr_is_its_twin(given_series: tuple[list[int], list[float], list[int]], buffer: int, data) -> None:
    labels, scores, _ = given_series
    assert vus_pr(labels, scores, buffer) == pytest.approx(naive.vus_pr(labels, scores, buffer), abs=1e-12)
    cut = data.draw(st.integers(1, len(labels)))
    runs = [int(row >= cut) for row in range(len(labels))]
    expected = naive.vus_pr(labels, scores, buffer, runs=runs)
    assert vus_pr(labels, scores, buffer, groups=runs) == pytest.approx(expected, abs=1e-12)


def test_the_buffer_of_vus_pr_is_the_period_that_tsb_ad_finds() -> None:
    """`naive.period` follows the published rule; the limits are those of TSB-AD."""
    rows = np.arange(2000)
    noise = np.random.RandomState(0).rand(2000)
    assert vus_buffer(np.sin(2 * np.pi * rows / 48) + 0.3 * noise) == naive.period(np.sin(2 * np.pi * rows / 48)) == 48
    assert vus_buffer(noise) == naive.period(noise) != 125
    two = np.column_stack([np.sin(2 * np.pi * rows / 30), np.sin(2 * np.pi * rows / 100)])
    assert vus_buffer(two) == 30  # of the first column
    assert vus_buffer(rows) == vus_buffer(np.ones(9)) == 125  # no peak
    assert vus_buffer(np.sin(2 * np.pi * rows / 350)) == vus_buffer(rows % 4) == 125  # too long, too short
    labels, scores = published_case()
    with pytest.raises(ValueError, match="buffer must be a number of rows from 0 on; got -1"):
        vus_pr(labels, scores, -1)


@given(series(), st.sampled_from([0.3, 0.5, 1.0]))
@examples(150)
def test_event_measures_are_their_twins(given_series: tuple[list[int], list[float], list[int]], recall: float) -> None:
    labels, scores, hours = given_series
    found = event_measures(labels, scores, stamps(hours), recall=recall)
    gap = naive_events.usual_gap(hours)
    n = len(naive_events.faults(labels, hours, float("inf")))
    assert found.n_faults == n
    for count, most in ((found.in_n, n), (found.in_2n, 2 * n)):
        assert count == naive.found_among(labels, scores, hours, gap, most)
    assert len(found.ranked) <= 2 * n
    expected = naive.at_recall(labels, scores, hours, gap, recall)
    if expected is None:
        assert np.isnan([found.false_per_day, found.delay_hours]).all()
        return
    days = len(labels) * float(np.median(np.diff(hours))) / 24
    assert (found.false_per_day * days, found.delay_hours) == pytest.approx(expected, abs=1e-9)


def test_no_event_spans_two_runs() -> None:
    labels, scores, time = np.zeros(40), np.zeros(40), stamps([*range(20), *range(20)])
    labels[18:22], scores[18:22] = 1, [3.0, 3.0, 2.0, 2.0]
    runs = np.repeat(["a", "b"], 20)
    found = event_measures(labels, scores, time, groups=runs)
    assert (found.n_faults, found.in_n, found.first_rows.tolist()) == (2, 2, [18, 20])
    assert resampling_blocks(labels, time, runs)[[17, 18, 19, 20, 21, 22]].tolist() == [8, 9, 9, 10, 10, 11]
    with pytest.raises(ValueError, match="recall must be above 0"):
        event_measures(labels, scores, time, groups=runs, recall=0.0)


def test_one_event_over_all_of_a_series_does_not_find_all_faults() -> None:
    labels, hours = np.zeros(200), list(range(200))
    for begin in (20, 80, 140):
        labels[begin : begin + 5] = 1
    found = event_measures(labels, np.arange(200.0), stamps(hours))
    assert (found.n_faults, found.in_n, found.in_2n) == (3, 0, 0)
    assert np.isnan(found.false_per_day)
    late = np.roll(labels, 6) + 0.1 * labels  # within six steps
    found = event_measures(labels, late, stamps(hours))
    assert (found.in_n, found.hits.tolist(), found.false_per_day) == (3, [True] * 3, 0.0)
    assert event_measures(labels, np.roll(labels, 11), stamps(hours)).in_2n == 0


def test_hits_of_the_true_sensor() -> None:
    assert sensor_hits([["b", "a", "c", "d"], ["d", "c", "b", "a"]], [{"a"}, {"a"}]) == (0.0, 0.5)
    assert np.isnan(sensor_hits([], [])).all()


@given(series())
@examples(60)
def test_a_resampled_average_precision_is_its_twin(given_series: tuple[list[int], list[float], list[int]]) -> None:
    labels, scores, hours = given_series
    ones = [1] * len(labels)
    assert naive.average_precision(labels, scores, ones) == pytest.approx(average_precision(labels, scores), abs=1e-12)
    blocks = resampling_blocks(labels, stamps(hours))
    found = resampled_precision(labels, scores, blocks, 3)
    anomalous = {block for block, label in zip(blocks.tolist(), labels, strict=True) if label}
    kinds = sorted(anomalous), sorted(set(blocks.tolist()) - anomalous)
    if min(map(len, kinds)) < 2:
        assert len(found) == 0
        return
    rng = np.random.default_rng(0)
    for value in found:
        counts: dict[int, int] = {}
        for kind in kinds:
            for place in rng.integers(0, len(kind), len(kind)).tolist():
                counts[kind[place]] = counts.get(kind[place], 0) + 1
        weights = [counts.get(block, 0) for block in blocks.tolist()]
        assert value == pytest.approx(naive.average_precision(labels, scores, weights), abs=1e-12)


def test_intervals_of_rows_cover_the_truth() -> None:
    """95 % of the intervals of data sets of one kind should hold the average precision of all such data."""
    rng = np.random.default_rng(0)

    def drawn(n: int) -> tuple[np.ndarray, np.ndarray]:
        y = (np.arange(n) < n // 5).astype(int)
        return y, rng.normal(size=n) + 1.2 * y

    truth = average_precision_score(*drawn(200_000))
    covered = 0
    for _ in range(100):
        y, scores = drawn(300)
        low, high = np.quantile(resampled_precision(y, scores, resampling_blocks(y, None), 200), [0.025, 0.975])
        covered += bool(low <= truth <= high)
    assert covered >= 88
