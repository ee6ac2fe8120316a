"""Training periods: what is learnt from, and what is judged."""

from __future__ import annotations

import datetime as dt

import numpy as np
import pandas as pd
import pytest
from detection_tables import FAULT, plant, rows_found

from penstock import detect, fit_model, score
from penstock.columns import RuleError, parse_rule
from penstock.detection._periods import training_rows
from penstock.io import TableError, read_table


def hours(n: int = 72, zone: str | None = None, start: str = "2024-05-01"):
    time = pd.date_range(start, periods=n, freq="h", tz=zone)
    return read_table(pd.DataFrame({"time": time, "x": np.arange(float(n))}))


@pytest.mark.parametrize(
    ("until", "count"),
    [
        ("2024-05-01", 24),
        (" 2024-05-02 ", 48),
        ("20240501", 24),
        ("2024-05-01 00:00", 1),
        ("2024-05-01T13:00", 14),
        ("2024-05-01 13:59:59", 14),
        ("2024-05", 72),
        ("2024-05-09", 72),
        ("9999-12-31", 72),
        (dt.date(2024, 5, 1), 24),
        (dt.datetime(2024, 5, 1), 1),
        (pd.Timestamp("2024-05-01 13:00"), 14),
        (np.datetime64("2024-05-01"), 24),
        (np.datetime64("2024-05-01T00:00"), 1),
    ],
)
def test_train_until_is_a_moment_or_all_of_a_day(until, count):
    rows = training_rows(hours(), until, None)
    assert rows.sum() == count
    assert rows[:count].all()


@pytest.mark.parametrize(
    "until",
    ["soon", "", "31.05.2024", "05/06/2024", "now", 20240501, 1.5, pd.NaT, np.datetime64("NaT"), [1], "2024-13-01"],
)
def test_what_is_no_time_is_refused(until):
    with pytest.raises(TableError, match=r"train_until.*Write (it like|the year first)"):
        training_rows(hours(), until, None)


def test_a_moment_without_a_zone_is_in_that_of_the_table():
    table = hours(zone="Europe/Berlin")
    assert training_rows(table, "2024-05-01 01:00", None).sum() == 2
    assert training_rows(table, "2024-05-01", None).sum() == 24
    assert training_rows(table, "2024-05-01 01:00+00:00", None).sum() == 4
    assert training_rows(table, pd.Timestamp("2024-05-01 01:00", tz="UTC"), None).sum() == 4
    with pytest.raises(TableError, match="has a zone, but those of the table have none"):
        training_rows(hours(), "2024-05-01 01:00+00:00", None)


@pytest.mark.parametrize(
    ("zone", "start", "until"),
    [
        ("Europe/Berlin", "2024-10-26", "2024-10-27 02:30"),  # twice
        ("Europe/Berlin", "2024-03-30", "2024-03-31 02:30"),  # never
        ("Africa/Cairo", "2024-10-30", "2024-10-31"),  # the day ends in an hour that comes twice
    ],
)
def test_a_change_of_the_clock_is_no_trouble(zone, start, until):
    rows = training_rows(hours(zone=zone, start=start), until, None)
    assert 0 < rows.sum() < len(rows)
    assert (np.diff(rows.astype(int)) <= 0).all()


def test_before_the_start_there_is_nothing_to_learn():
    with pytest.raises(TableError, match=r"no row until 2024-04-30, as the table begins at 2024-05-01 00:00:00"):
        training_rows(hours(), "2024-04-30", None)


def test_after_the_end_there_is_nothing_to_judge():
    for options in ({"train_until": "2025-01-01"}, {"train_rule": "oil > -100"}):
        with pytest.raises(TableError, match="nothing to judge: all rows are of the training period"):
            detect(plant(), method="mean", **options)
        assert len(fit_model(plant(), method="mean", **options).training_scores) == 260


@pytest.mark.parametrize("until", [149, "149"])
def test_without_time_row_numbers_tell(until):
    table = plant(time=False)
    by_row = detect(table, train_until=until, method="mean")
    by_rule = detect(table, train_rule="row <= 149", method="mean")
    for findings in (by_row, by_rule):
        assert np.flatnonzero(findings.trained).tolist() == list(range(150))
    assert (by_row.scores == by_rule.scores).all()
    column = table.assign(row=np.arange(260) % 2)
    assert np.flatnonzero(detect(column, train_rule="row == 1", method="mean").trained).tolist() == [*range(1, 260, 2)]
    with pytest.raises(TableError, match=r"train_until: the table has no time stamps .* Give a row number"):
        detect(table, train_until="2024-05-02")


def test_without_time_a_rule_can_tell():
    findings = detect(plant(time=False), train_rule="`head [m]` < 80", method="mean")
    assert (findings.trained == (findings.values["head [m]"] < 80)).all()


def test_both_are_refused():
    with pytest.raises(TableError, match="train_until and train_rule exclude each other"):
        detect(plant(), train_until="2024-05-02", train_rule="oil > 0")


def test_a_rule_that_holds_nowhere_or_cannot_be_read():
    with pytest.raises(TableError, match="the rule oil > 1000 holds for no row"):
        training_rows(read_table(plant()), None, parse_rule("oil > 1000"))
    with pytest.raises(RuleError, match="cannot be read"):
        detect(plant(), train_rule="oil >")


def test_a_rule_may_name_a_column_that_is_no_input():
    table = plant()
    table["good"] = (np.arange(len(table)) < 150).astype(float)
    findings = detect(table, train_rule="good == 1", exclude="good", method="mean")
    assert "good" not in findings.names
    assert findings.trained.sum() == 150


def test_too_short_a_period_is_refused():
    with pytest.raises(TableError, match=r"too few rows to learn from: 10 are needed, the table has 7"):
        detect(plant(), train_until="2024-05-01 01:00")


@pytest.mark.parametrize("method", ["nsnmf", "mean", "knn", "online"])
@pytest.mark.parametrize("cut", [{}, {"top": 5}, {"threshold": 0.1}])
def test_findings_are_never_training_rows(method, cut):
    table = plant()
    table.loc[20:22, "oil"] += 40  # in the training period
    findings = detect(table, train_until="2024-05-01", method=method, **cut)
    assert findings.trained.sum() == 144
    assert not (findings.flags & findings.trained).any()
    assert set(FAULT) <= set(rows_found(findings))
    assert np.isfinite(findings.scores).all()


DAY = {"since": "2024-05-01 12:00", "until": "2024-05-02"}


@pytest.mark.parametrize(
    ("options", "time", "rows"),
    [
        (DAY, True, range(72, 260)),
        ({"since": "2024-05-02"}, True, range(144, 260)),
        ({"until": "2024-05-01"}, True, range(144)),
        ({"since": 20, "until": "99"}, False, range(20, 100)),
        ({"until": 99}, False, range(100)),
    ],
)
def test_other_rows_are_not_used_at_all(options, time, rows):
    table = plant(time=time)
    findings = detect(table, method="mean", top=3, **options)
    assert findings.table.values.index.tolist() == list(rows)
    alone = detect(table.iloc[list(rows)], method="mean", top=3)
    assert (findings.scores == alone.scores).all()
    note = next(note for note in findings.notes if note.kind == "period")
    assert note.count == 260 - len(rows)
    assert f"{note.count} of 260 rows were not used" in note.message
    assert {name: findings.settings[name] for name in options} == {name: str(value) for name, value in options.items()}


def test_excluded_periods_are_neither_learnt_from_nor_judged():
    table = plant()
    table["valve"] = np.where(np.arange(260) == 30, 7.0, 5.0)  # changes only in the maintenance
    periods = ["2024-05-01 03:00..2024-05-01 05:50", ("2024-05-02 10:00", None)]
    findings = detect(table, method="mean", top=3, exclude_periods=periods)
    out = [*range(18, 36), *range(204, 260)]
    assert np.flatnonzero(~findings.judged).tolist() == out
    assert not findings.trained[out].any()
    assert "valve" not in findings.names
    assert [note.count for note in findings.notes if note.kind == "excluded period"] == [18, 56]
    left = detect(table.drop(index=out), method="mean", top=3)
    assert (findings.scores[findings.judged] == left.scores).all()
    by_row = detect(table.drop(columns="time"), method="mean", top=3, exclude_periods="18..35")
    assert np.flatnonzero(~by_row.judged).tolist() == list(range(18, 36))
    model = fit_model(table, method="mean", exclude_periods=periods)
    assert (model.training_scores == left.scores).all()
    assert score(model, table, top=3, exclude_periods="2024-05-01..2024-05-01").judged.sum() == 116
    assert score(model, table, top=3, until="2024-05-01").judged.sum() == 144


@pytest.mark.parametrize(
    ("options", "time", "words"),
    [
        ({"since": "soon"}, True, "since is not a time; got 'soon'. Write it like"),
        ({"until": 1.5}, True, "until = 1.5 is not a time. Write it like"),
        ({"since": 20}, True, "since: the table has time stamps, but 20 is a row number"),
        ({"since": "2024-05-01"}, False, r"since: the table has no time stamps .* Give a row number \(from 0\)"),
        ({"since": "2025"}, True, "since: '2025' is no time stamp"),
        (
            {"since": "2025-01"},
            True,
            "No row is left from 2025-01: the table begins at 2024-05-01",
        ),
        ({"since": 300, "until": 400}, False, "No row is left from 300 until 400: the table has the rows 0 to 259"),
        ({"exclude_periods": "2024-05-01"}, True, "'2024-05-01' is not a period. Write START..END"),
        ({"exclude_periods": ".."}, True, "'..' is not a period"),
        ({"exclude_periods": ["2024-05-01..soon"]}, True, "exclude_periods is not a time; got 'soon'"),
        ({"exclude_periods": "2024-06-01..2024-06-02"}, True, "no row to exclude from 2024-06-01 until 2024-06-02"),
        ({"exclude_periods": "2024-05-02..2024-05-01"}, True, "no row to exclude from 2024-05-02 until 2024-05-01"),
        ({"exclude_periods": ["..2024-05-01", "2024-05-02.."]}, True, "cover all 260 rows"),
    ],
)
def test_periods_that_mean_nothing_are_refused(options, time, words):
    with pytest.raises(TableError, match=words):
        detect(plant(time=time), method="mean", **options)
