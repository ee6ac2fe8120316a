"""Operating modes and periods: which rows are fitted to, scored, and by which model."""

from __future__ import annotations

import datetime as dt
import math

import numpy as np
import pandas as pd
import pytest
from detection_tables import FAULT, HOT, NAMES, plant, readings, residuals, rows_found, two_modes
from hypothesis import given
from hypothesis import strategies as st
from naive import modes as naive
from strategies import examples

from penstock import NSNMF, detect, fit_model, score
from penstock._parameters import ParameterError
from penstock.detection import make_detector
from penstock.detection._periods import training_rows
from penstock.detection.modes import _with_changes, plan_modes
from penstock.io import Table, TableError, read_table

POWER = [0.0, 3.0, 8.0, 9.0, np.nan, 2.0, 7.0, 1.0]
STATE = ["off", "off", "on", "on", "on", None, "on", "off"]


def machine() -> Table:
    return read_table(pd.DataFrame({"power": POWER, "state": STATE, "x y": np.arange(8.0)}))


def test_a_column_of_numbers_tells_modes_and_near_numbers_stay_apart():
    values = [1000001.0, 1000002.0, 0.1, 2.0, np.nan, 1e22]
    table = read_table(pd.DataFrame({"code": values, "y": np.arange(6.0)}))
    modes = plan_modes("code", table.names).assign(table)
    assert modes.tolist() == ["1000001", "1000002", "0.1", "2", "unknown", "1e+22"]


@given(
    st.lists(st.tuples(st.sampled_from([0.0, 3.0, 6.0, math.nan]), st.sampled_from([0.0, 1.0, math.nan])), min_size=2),
    st.booleans(),
)
@examples(100)
def test_rules_are_those_of_the_slow_way(rows, swapped):
    values = pd.DataFrame([*rows, (1.0, 1.0)], columns=["power", "speed"])
    table = Table(values, None, None, None, "the table", ())
    rules = [
        ("fast", "speed > 0", lambda row: None if math.isnan(row[1]) else row[1] > 0),
        ("running", "power > 2", lambda row: None if math.isnan(row[0]) else row[0] > 2),
    ][:: -1 if swapped else 1]
    plan = plan_modes({name: rule for name, rule, _ in rules}, table.names)
    expected = naive.first_rule(values.to_numpy().tolist(), [(name, slow) for name, _, slow in rules])
    assert plan.assign(table).tolist() == expected


RUNS = st.lists(st.tuples(st.sampled_from("abc"), st.integers(1, 5)), max_size=8)


@given(
    RUNS,
    st.integers(0, 12),
    st.sets(st.integers(0, 40), max_size=6),
    st.lists(st.sampled_from([0, 1, 1, 2, 30]), min_size=40, max_size=40),
    st.sampled_from(["rows", "s", "ns"]),
)
@examples(200)
def test_settling_is_that_of_the_slow_way(runs, span, gone, steps, unit):
    modes = [mode for mode, length in runs for _ in range(length)]
    modes = np.array(["unknown" if place in gone else mode for place, mode in enumerate(modes)], dtype=np.str_)
    clock = np.cumsum(steps)[: len(modes)]
    if unit == "rows":
        found, expected = _with_changes(modes, None, span), naive.with_changes(modes, range(len(modes)), span)
    else:
        time = pd.DatetimeIndex(pd.Timestamp("2024-05-01") + pd.to_timedelta(clock, unit="s")).as_unit(unit)
        found = _with_changes(modes, time, pd.Timedelta(seconds=span))
        expected = naive.with_changes(modes, clock, span)
    assert found.tolist() == expected


def test_settling_for_ever_does_not_overflow():
    time = pd.date_range("2024-05-01", periods=4, freq="D").as_unit("ns")
    found = _with_changes(np.array(["a", "b", "b", "b"]), time, pd.Timedelta(days=100_000))
    assert found.tolist() == ["changing"] * 4
    far = pd.DatetimeIndex(np.array(["2500-01-01", "2500-01-02"], dtype="M8[s]"))
    assert _with_changes(np.array(["a", "a"]), far, pd.Timedelta(days=1)).tolist() == ["a", "a"]


@pytest.mark.parametrize(
    ("modes", "options", "error", "message"),
    [
        ("state", {"skip": "of"}, TableError, "There is no mode 'of' to skip; there are off, on"),
        ("power > 5", {"skip": ["off"]}, TableError, "there are other, power > 5"),
        ((), {"skip": ["off"]}, TableError, "needs modes"),
        ({}, {"settle": 3}, TableError, "needs modes"),
        (["a: power > 5", "a: power > 6"], {}, TableError, "Two modes are called 'a'"),
        (["power > 5", "power > 5"], {}, TableError, "Give each a name of its own"),
        (["unknown: power > 5", "b: power > 6"], {}, TableError, "cannot be called 'unknown'"),
        ({"other": "power > 5"}, {}, TableError, "cannot be called 'other'"),
        ({"changing": "power > 5"}, {}, TableError, "cannot be called 'changing'"),
        ({f"m{n}": f"power > {n}" for n in range(51)}, {}, TableError, "There are 51 modes, too many"),
        ("power > 5 or power > 5 or power > 5 or power > 5 or power > 5 or power > 5 or power > 5 or power > 5", {},
         TableError, "Write a short name before the rule"),
        ("stat", {}, ParameterError, "it is not a column. Did you mean 'state'?"),
        ("running: power >", {}, ParameterError, "a number, a text or a column is expected"),
        (["a: power > 5", "b: power >"], {}, ParameterError, "rule cannot be read"),
        ("power > high", {}, ParameterError, "has no column 'high'"),
        ("state > 'on'", {}, ParameterError, "only equal or not"),
        ("power > 5", {"settle": pd.Timedelta("1h")}, TableError, "Give a number of rows instead"),
    ],
)  # fmt: skip
def test_what_cannot_be_is_refused(modes, options, error, message):
    table = machine()
    with pytest.raises(error) as caught:  # noqa: PT012
        plan = plan_modes(modes, table.names, **options)
        plan.refuse_unknown_skips(table)
        plan.assign(table)
    assert message in str(caught.value)


@pytest.mark.parametrize("numbers", [True, False])
def test_too_many_values_are_no_modes_and_the_rule_that_is_proposed_can_be_read(numbers):
    values = np.arange(30.0) if numbers else [f"it's {n}" for n in range(30)]
    table = read_table(pd.DataFrame({"a `b` [c]": values, "y": np.arange(30.0)}))
    with pytest.raises(TableError, match="30 different values, too many to be modes") as caught:
        plan_modes("a `b` [c]", table.names).assign(table)
    proposed = str(caught.value).partition('such as "')[2].removesuffix('".')
    assert set(plan_modes(proposed, table.names).assign(table)) == {"other", proposed}


def test_rows_that_are_not_scored_have_no_score_and_are_noted():
    table = two_modes()
    table.loc[100:103, "state"] = None
    findings = detect(table, modes="state", skip_modes="off", settle="20 min", method="mean", top=3)
    assert set(np.unique(findings.rows.modes)) == {"on", "off", "changing", "unknown"}
    assert (findings.rows.scored == (findings.rows.modes == "on")).all()
    assert np.isnan(findings.scores[~findings.rows.scored]).all()
    assert np.isfinite(findings.scores[findings.rows.scored]).all()
    assert findings.inputs.expected[~findings.rows.scored].isna().all(axis=None)
    notes = {note.kind: note for note in findings.notes}
    assert notes["modes not scored"].count == (~findings.rows.scored).sum()
    assert "unknown (the reading that decides the mode is missing)" in str(notes["modes not scored"])
    assert "changing (the mode was changing)" in str(notes["modes not scored"])
    counts = pd.Series(findings.rows.modes).value_counts()
    assert f"on {counts['on']}" in str(notes["modes"])


@pytest.mark.parametrize("dropped", [{"columns": NAMES}, {"exclude": ["state"]}, {}])
def test_a_column_that_tells_modes_is_read_but_no_input(dropped):
    findings = detect(two_modes(), modes="state", method="mean", top=4, **dropped)
    assert set(findings.inputs.names) == set(NAMES)
    assert set(np.unique(findings.rows.modes)) == {"on", "off"}


@pytest.mark.parametrize("value", ["unknown", "changing", "other", "all"])
def test_a_column_that_holds_a_name_of_ours_is_refused_and_the_rule_that_is_proposed_works(value):
    table = two_modes().replace({"state": {"off": value}})
    with pytest.raises(TableError, match=f"Column 'state' has the value '{value}'") as caught:
        detect(table, modes="state", method="mean", top=4)
    proposed = str(caught.value).partition('such as "')[2].removesuffix('".')
    findings = detect(table, modes=proposed, method="mean", top=4)
    assert (findings.rows.modes == f"mode {value}").sum() == (table["state"] == value).sum()


def wanted() -> pd.DataFrame:
    return two_modes().assign(wanted=["on"] * 100 + ["off"] * 300)


@pytest.mark.parametrize("dropped", [{}, {"columns": NAMES}, {"exclude": ["wanted"]}, {"exclude": ["state", "wanted"]}])
@pytest.mark.parametrize("told_by", ["modes", "train_rule"])
def test_a_bare_word_is_a_column_if_the_source_has_it_whatever_the_inputs_are(dropped, told_by, tmp_path):
    table = wanted()
    same = (table["state"] == table["wanted"]).to_numpy()
    path = tmp_path / "wanted.csv"
    table.to_csv(path, index=False)
    for source in (table, path):
        rule = {"modes": "same: state == wanted"} if told_by == "modes" else {"train_rule": "state == wanted"}
        findings = detect(source, method="mean", top=4, **rule, **dropped)
        assert (
            ((findings.rows.modes == "same") == same).all()
            if told_by == "modes"
            else (findings.rows.fitted == same).all()
        )
        if dropped:
            assert "wanted" not in "".join(findings.inputs.names)


def test_a_bare_word_means_for_new_data_what_it_meant_when_it_was_fitted():
    table = wanted()
    column = fit_model(table, modes="same: state == wanted", columns=NAMES, method="mean")
    with pytest.raises(ParameterError, match="no column 'wanted'"):
        score(column, table.drop(columns="wanted"))
    text = fit_model(table, modes="running: state == on", columns=NAMES, method="mean")
    findings = score(text, table.assign(on="off"))
    assert ((findings.rows.modes == "running") == (table["state"] == "on")).all()


@pytest.mark.parametrize("method", ["nsnmf", "nmf", "knn", "lomst"])
def test_each_row_is_scored_by_its_own_model(method):
    table = two_modes()
    findings = detect(table, modes="state", method=method, top=10)
    for part in findings.rows.parts:
        rows = (table["state"] == part.part.mode).to_numpy()
        by_hand = make_detector(method).fit(table.loc[rows, list(NAMES)].to_numpy())
        assert (part.rows == np.flatnonzero(rows)).all()
        assert (part.fitted == part.rows).all()
        np.testing.assert_allclose(findings.scores[rows], by_hand.scores_ / part.part.usual, rtol=1e-12)
        assert part.part.usual == pytest.approx(np.quantile(by_hand.scores_, 0.95))
        assert np.quantile(findings.scores[rows], 0.95) == pytest.approx(1.0)
        if method in ("nsnmf", "nmf"):
            off = np.sqrt((residuals(findings, part.rows) ** 2).sum(axis=1))
            np.testing.assert_allclose(off, findings.scores[rows] * part.part.usual, rtol=1e-9)


def test_a_mode_with_too_few_rows_is_noted_and_not_scored():
    table = two_modes()
    table.loc[10:14, "state"] = "test"
    findings = detect(table, modes="state", method="mean", top=5)
    assert not findings.rows.scored[10:15].any()
    notes = {note.kind: note for note in findings.notes}
    assert "Mode test has 5 rows to learn from, too few (10 are needed)" in str(notes["small modes"])
    assert [part.part.mode for part in findings.rows.parts] == ["off", "on"]
    with pytest.raises(TableError, match=r"the table has 8 in its largest mode"):
        detect(two_modes(16).assign(state=["a", "b"] * 8), modes="state")


def test_a_mode_that_comes_after_the_training_period_is_noted():
    table = two_modes()
    table.loc[350:, "state"] = "new"
    findings = detect(table, modes="state", train_until="2024-05-02", method="mean", top=5)
    assert not findings.rows.scored[350:].any()
    notes = {note.kind: note for note in findings.notes}
    assert "50 rows of modes that were not fitted (new) cannot be scored" in str(notes["unknown modes"])


def test_new_data_of_no_known_mode_are_refused_and_of_a_skipped_one_not():
    table = two_modes()
    model = fit_model(table, modes="state", skip_modes="off", method="mean")
    with pytest.raises(TableError, match="No row is of a mode that the model knows; the rows are of strange"):
        score(model, table.iloc[:40].assign(state="strange"))
    stopped = score(model, table.iloc[50:100])
    assert not stopped.rows.scored.any()
    assert len(stopped.events) == 0
    with pytest.raises(TableError, match="no column 'state' \\(given as modes\\)"):
        score(model, table.drop(columns="state"))


@pytest.mark.parametrize(
    "method", ["detector", NSNMF(n_components=3, similarity="relative", random_state=0), "nmf", "knn"]
)
def test_the_noise_of_a_machine_that_stands_still_does_not_lead_the_list(method):
    rng, n = np.random.default_rng(0), 600
    table = two_modes(n).drop(columns="time")
    off = np.arange(n) >= 300
    table["state"] = np.where(off, "off", "on")
    table.loc[~off, list(NAMES)] = readings(300).to_numpy()
    table.loc[off, list(NAMES)] = [0.0, 20.0, 0.0, 50.0, -5.0, 0.0]
    quiet = rng.choice(np.flatnonzero(off), 30, replace=False)
    table.loc[quiet, list(NAMES)] += rng.normal(scale=1e-3, size=(30, len(NAMES)))
    table.loc[100:103, HOT] += 120
    findings = detect(table, modes="state", method=method, top=8)
    assert findings.flags[100:104].all()


def test_an_event_across_modes_is_explained_by_the_rows_of_its_peak():
    table = two_modes()
    table.loc[48:51, HOT] += 500  # two rows on, two off
    findings = detect(table, modes="state", method="mean", top=9)
    event = int(findings.rows.grouped.of_row[49])
    assert set(findings.rows.grouped.rows_of(event)) == {48, 49, 50, 51}
    why = findings.explain(event)
    peak = int(findings.events.loc[event, "peak_row"])
    assert (findings.rows.modes[why.variables["position"]] == findings.rows.modes[peak]).all()
    assert why.variables["variable"].iloc[0] == HOT
    assert why.rule.event_rows == 2


def hours(n: int = 72, zone: str | None = None, start: str = "2024-05-01"):
    time = pd.date_range(start, periods=n, freq="h", tz=zone)
    return read_table(pd.DataFrame({"time": time, "x": np.arange(float(n))}))


@pytest.mark.parametrize(("until", "count"), [
    ("2024-05-01", 24), (" 2024-05-02 ", 48), ("20240501", 24), ("2024-05-01 00:00", 1), ("2024-05-01T13:00", 14),
    ("2024-05-01 13:59:59", 14), ("2024-05", 72), ("2024-05-09", 72), ("9999-12-31", 72), (dt.date(2024, 5, 1), 24),
    (dt.datetime(2024, 5, 1), 1), (pd.Timestamp("2024-05-01 13:00"), 14), (np.datetime64("2024-05-01"), 24),
    (np.datetime64("2024-05-01T00:00"), 1),
])  # fmt: skip
def test_train_until_is_a_moment_or_all_of_a_day(until, count):
    rows = training_rows(hours(), until, None)
    assert rows.sum() == count
    assert rows[:count].all()


@pytest.mark.parametrize(
    "until",
    ["soon", "", "31.05.2024", "05/06/2024", "now", 20240501, 1.5, pd.NaT, np.datetime64("NaT"), [1], "2024-13-01"],
)
def test_what_is_no_time_is_refused(until):
    with pytest.raises(TableError) as refused:
        training_rows(hours(), until, None)
    assert refused.value.parameter == "train_until"


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


def test_after_the_end_there_is_nothing_to_score():
    for options in ({"train_until": "2025-01-01"}, {"train_rule": "oil > -100"}):
        with pytest.raises(TableError, match="nothing to score: all rows are of the training period"):
            detect(plant(), method="mean", **options)
        assert len(fit_model(plant(), method="mean", **options).training_scores) == 260


@pytest.mark.parametrize("until", [149, "149"])
def test_without_time_row_numbers_tell(until):
    table = plant(time=False)
    by_row = detect(table, train_until=until, method="mean")
    by_rule = detect(table, train_rule="row <= 149", method="mean")
    for findings in (by_row, by_rule):
        assert np.flatnonzero(findings.rows.fitted).tolist() == list(range(150))
    assert (by_row.scores == by_rule.scores).all()
    column = table.assign(row=np.arange(260) % 2)
    assert np.flatnonzero(detect(column, train_rule="row == 1", method="mean").rows.fitted).tolist() == [
        *range(1, 260, 2)
    ]
    for rows, rule in ((table, None), (plant(), "oil > 0")):  # no time to compare with; two ways at once
        with pytest.raises(TableError) as refused:
            detect(rows, train_until="2024-05-02", train_rule=rule)
        assert refused.value.parameter == "train_until"


@pytest.mark.parametrize("method", ["nsnmf", "mean", "knn", "online"])
@pytest.mark.parametrize("cut", [{}, {"top": 5}, {"threshold": 0.1}])
def test_findings_are_never_training_rows(method, cut):
    table = plant()
    table.loc[20:22, "oil"] += 40  # in the training period
    findings = detect(table, train_until="2024-05-01", method=method, **cut)
    assert findings.rows.fitted.sum() == 144
    assert not (findings.flags & findings.rows.fitted).any()
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


def test_excluded_periods_are_neither_fitted_to_nor_scored():
    table = plant()
    table["valve"] = np.where(np.arange(260) == 30, 7.0, 5.0)  # changes only in the maintenance
    periods = ["2024-05-01 03:00..2024-05-01 05:50", ("2024-05-02 10:00", None)]
    findings = detect(table, method="mean", top=3, exclude_periods=periods)
    out = [*range(18, 36), *range(204, 260)]
    assert np.flatnonzero(~findings.rows.scored).tolist() == out
    assert not findings.rows.fitted[out].any()
    assert "valve" not in findings.inputs.names
    assert [note.count for note in findings.notes if note.kind == "excluded period"] == [18, 56]
    left = detect(table.drop(index=out), method="mean", top=3)
    assert (findings.scores[findings.rows.scored] == left.scores).all()
    by_row = detect(table.drop(columns="time"), method="mean", top=3, exclude_periods="18..35")
    assert np.flatnonzero(~by_row.rows.scored).tolist() == list(range(18, 36))
    model = fit_model(table, method="mean", exclude_periods=periods)
    assert (model.training_scores == left.scores).all()
    assert score(model, table, top=3, exclude_periods="2024-05-01..2024-05-01").rows.scored.sum() == 116
    assert score(model, table, top=3, until="2024-05-01").rows.scored.sum() == 144


@pytest.mark.parametrize(
    ("parameter", "given", "time"),
    [
        ("since", "soon", True),
        ("until", 1.5, True),
        ("since", 20, True),
        ("since", "2024-05-01", False),
        ("since", "2025", True),
        ("exclude_periods", "2024-05-01", True),
        ("exclude_periods", "..", True),
        ("exclude_periods", ["2024-05-01..soon"], True),
    ],
)
def test_periods_that_mean_nothing_are_refused(parameter, given, time):
    with pytest.raises(TableError) as refused:
        detect(plant(time=time), method="mean", **{parameter: given})
    assert refused.value.parameter == parameter


@pytest.mark.parametrize(
    ("options", "time", "words"),
    [
        ({"since": "2025-01"}, True, "No row is left from 2025-01"),
        ({"since": 300, "until": 400}, False, "No row is left from 300 until 400"),
        ({"exclude_periods": "2024-06-01..2024-06-02"}, True, "no row to exclude"),
        ({"exclude_periods": "2024-05-02..2024-05-01"}, True, "no row to exclude"),
        ({"exclude_periods": ["..2024-05-01", "2024-05-02.."]}, True, "No row is left"),
    ],
)
def test_periods_must_hold_rows_and_leave_some(options, time, words):
    with pytest.raises(TableError, match=words):
        detect(plant(time=time), method="mean", **options)
