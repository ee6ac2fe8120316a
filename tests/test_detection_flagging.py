"""From scores to findings, and what people give for the cut."""

from __future__ import annotations

import datetime as dt

import numpy as np
import pandas as pd
import pytest
from detection_tables import FAULT, plant, rows_found
from hypothesis import given, settings
from hypothesis import strategies as st

from penstock import detect
from penstock.detection._judging import default_top, flag_above, flag_top
from penstock.detection._periods import read_duration
from penstock.io import TableError
from penstock.thresholds import Fixed, TopN, score_threshold


@given(st.lists(st.integers(0, 4).map(float), min_size=2, max_size=30), st.data())
@settings(max_examples=150, deadline=None)
def test_top_n_flags_exactly_n_of_equals_the_earlier(scores, data):
    candidates = data.draw(
        st.lists(st.booleans(), min_size=len(scores), max_size=len(scores)).filter(lambda c: sum(c) > 1)
    )
    n = data.draw(st.integers(1, sum(candidates) - 1))
    flags, threshold = flag_top(np.array(scores), np.array(candidates), n)
    ranked = sorted((row for row in range(len(scores)) if candidates[row]), key=lambda row: (-scores[row], row))
    assert np.flatnonzero(flags).tolist() == sorted(ranked[:n])
    assert scores[ranked[n]] <= threshold <= scores[ranked[n - 1]]
    assert threshold < scores[ranked[n - 1]] or scores[ranked[n - 1]] == scores[ranked[n]]


def test_top_as_many_as_rows_is_refused():
    scores, every = np.arange(5.0), np.ones(5, dtype=bool)
    for n in (5, 6):
        with pytest.raises(TableError, match=r"as many findings as there are rows to judge \(5\) or more"):
            flag_top(scores, every, n)
    with pytest.raises(TableError, match=r"rows to judge \(260\)"):
        detect(plant(), top=260, method="mean")


@given(st.integers(0, 10_000))
def test_the_default_list_is_a_hundred_or_a_twentieth(n):
    assert default_top(n) == max(1, min(100, n // 20))


@pytest.mark.parametrize("threshold", ["auto", 0.02, Fixed(0.3), TopN(6)])
def test_thresholds_are_those_of_the_training_scores(threshold):
    findings = detect(plant(), threshold=threshold, method="mean")
    limit = score_threshold(findings.scores, threshold)
    assert findings.threshold == limit
    assert (findings.flags == (findings.scores > limit)).all()
    assert findings.settings["threshold"] == str(threshold)


def test_rows_without_a_score_are_never_above():
    flags, _ = flag_above(np.array([np.nan, 9.0, 1.0]), np.array([True, True, True]), np.arange(20.0), Fixed(2.0))
    assert flags.tolist() == [False, True, False]


def test_by_default_a_table_gives_a_list():
    findings = detect(plant(), method="mean")
    assert findings.flags.sum() == 13
    assert set(FAULT) <= set(rows_found(findings))


@pytest.mark.parametrize("top", [0, -1, 2.5, True, "5"])
def test_a_top_that_is_no_number_is_refused_before_anything_is_read(top):
    with pytest.raises(ValueError, match="top must be a whole number ≥ 1"):
        detect("no such file.csv", top=top)


@pytest.mark.parametrize("threshold", ["high", 0.0, 0.7, -1, [1]])
def test_a_threshold_that_is_none_is_refused_before_anything_is_read(threshold):
    with pytest.raises(TableError, match=r"threshold: .* must be 'auto' or a number in"):
        detect("no such file.csv", threshold=threshold)


def test_top_and_threshold_exclude_each_other():
    with pytest.raises(TableError, match="exclude each other"):
        detect("no such file.csv", top=5, threshold="auto")


@pytest.mark.parametrize(
    ("given_", "expected"),
    [
        (None, None),
        (3, 3),
        (np.int64(3), 3),
        (0, 0),
        ("90 s", pd.Timedelta(seconds=90)),
        (dt.timedelta(hours=1), pd.Timedelta(hours=1)),
        (np.timedelta64(5, "m"), pd.Timedelta(minutes=5)),
        (pd.Timedelta(0), pd.Timedelta(0)),
    ],
)
def test_lengths_are_durations_or_rows(given_, expected):
    found = read_duration("gap", given_)
    assert found == expected
    assert type(found) is type(expected)


@pytest.mark.parametrize("wrong", [-1, 1.5, True, "30", "soon", dt.timedelta(-1), np.timedelta64("NaT"), pd.NaT, [1]])
@pytest.mark.parametrize("name", ["gap", "settle"])
def test_lengths_that_are_none_are_refused_before_anything_is_read(name, wrong):
    with pytest.raises(TableError, match=f"{name}.*'30 min'"):
        detect("no such file.csv", modes="state", **{name: wrong})


def test_gaps_join_findings():
    assert len(detect(plant(), top=5).events) == 1
    split = detect(plant(), top=5, gap="5 min")
    assert len(split.events) == 5
    assert len(detect(plant(), top=5, gap=1).events) == 1
    with pytest.raises(ValueError, match=r"gap is a duration.*Give a number of rows"):
        detect(plant(time=False), top=5, gap="1 h")
