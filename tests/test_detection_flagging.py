"""From scores to findings, and what people give for the cut."""

from __future__ import annotations

import datetime as dt

import numpy as np
import pandas as pd
import pytest
from detection_tables import FAULT, plant, rows_found

from penstock import detect
from penstock.detection._periods import read_duration
from penstock.io import TableError
from penstock.thresholds import Fixed, TopN, score_threshold


@pytest.mark.parametrize("n", [1, 3, 4, 6, 11])
def test_top_n_flags_exactly_n_of_equals_the_earlier(n):
    table = pd.DataFrame({"a": [0.0, 2, 1, 2, 0, 1, 2, 1, 3, 0, 1, 2], "b": [0.0, 2, 1, 2, 0, 1, 2, 1, 3, 0, 1, 2]})
    findings = detect(table, method="norm", top=n)
    ranked = sorted(range(12), key=lambda row: (-findings.scores[row], row))
    assert rows_found(findings) == sorted(ranked[:n])
    last, following = findings.scores[ranked[n - 1]], findings.scores[ranked[n]]
    assert following <= findings.threshold <= last
    assert findings.threshold < last or last == following


def test_top_as_many_as_rows_is_refused():
    for n in (260, 261):
        with pytest.raises(TableError, match=r"as many findings as there are rows to judge \(260\) or more"):
            detect(plant(), top=n, method="mean")


@pytest.mark.parametrize("threshold", ["auto", 0.02, Fixed(0.3), TopN(6)])
def test_thresholds_are_those_of_the_training_scores(threshold):
    findings = detect(plant(), threshold=threshold, method="mean")
    limit = score_threshold(findings.scores, threshold)
    assert findings.threshold == limit
    assert (findings.flags == (findings.scores > limit)).all()
    assert findings.settings["threshold"] == str(threshold)


def test_by_default_a_table_gives_a_list():
    findings = detect(plant(), method="mean")
    assert findings.flags.sum() == 13
    assert detect(plant(2200), method="mean").flags.sum() == 100
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
