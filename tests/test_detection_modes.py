"""Operating modes: which mode a row is of, and which rows are not judged."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd
import pytest
from detection_tables import HOT, NAMES, plant, two_modes
from hypothesis import given, settings
from hypothesis import strategies as st
from naive import modes as naive

from penstock import detect, fit_model, score
from penstock.columns import RuleError
from penstock.detection.modes import ModePlan, _with_changes, named_columns, plan_modes
from penstock.io import Table, TableError, read_table

POWER = [0.0, 3.0, 8.0, 9.0, np.nan, 2.0, 7.0, 1.0]
STATE = ["off", "off", "on", "on", "on", None, "on", "off"]


def machine() -> Table:
    return read_table(pd.DataFrame({"power": POWER, "state": STATE, "x y": np.arange(8.0)}))


def assigned(modes, **options) -> list[str]:
    table = machine()
    return plan_modes(modes, table.names, **options).assign(table).tolist()


def test_without_modes_all_rows_are_of_one():
    assert assigned(()) == ["all"] * 8
    assert plan_modes({}, ["power"]) == ModePlan()


def test_a_column_of_text_tells_modes():
    assert assigned("state") == ["off", "off", "on", "on", "on", "unknown", "on", "off"]
    assert assigned(["state"]) == assigned("state")


def test_a_column_of_numbers_tells_modes_and_near_numbers_stay_apart():
    values = [1000001.0, 1000002.0, 0.1, 2.0, np.nan, 1e22]
    table = read_table(pd.DataFrame({"code": values, "y": np.arange(6.0)}))
    modes = plan_modes("code", table.names).assign(table)
    assert modes.tolist() == ["1000001", "1000002", "0.1", "2", "unknown", "1e+22"]


def test_a_rule_is_its_own_name():
    assert assigned("power > 5") == [
        "other",
        "other",
        "power > 5",
        "power > 5",
        "unknown",
        "other",
        "power > 5",
        "other",
    ]


def test_the_first_rule_that_holds_wins():
    high_first = assigned(["high: power > 7", "running: power > 2"])
    assert high_first == ["other", "running", "high", "high", "unknown", "other", "running", "other"]
    running_first = assigned({"running": "power > 2", "high": "power > 7"})
    assert running_first == ["other", "running", "running", "running", "unknown", "other", "running", "other"]


@given(
    st.lists(st.tuples(st.sampled_from([0.0, 3.0, 6.0, math.nan]), st.sampled_from([0.0, 1.0, math.nan])), min_size=2),
    st.booleans(),
)
@settings(max_examples=100, deadline=None)
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
@settings(max_examples=200, deadline=None)
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


def test_settling_by_hand_with_a_gap_in_the_data():
    clock = ["00:00", "00:10", "00:20", "00:30", "09:00", "09:10", "09:20", "09:30"]
    time = pd.DatetimeIndex([f"2024-05-01 {each}" for each in clock])
    modes = np.array(["on", "on", "off", "off", "off", "on", "on", "on"])
    found = _with_changes(modes, time, pd.Timedelta(minutes=10))
    assert found.tolist() == ["on", "changing", "changing", "off", "changing", "changing", "on", "on"]
    found = _with_changes(modes, time, pd.Timedelta(minutes=60))
    assert found.tolist() == ["on", "changing", "changing", "changing", "changing", "changing", "changing", "changing"]


@pytest.mark.parametrize(("settle", "rows"), [(0, [4]), (1, [4, 5]), (3, [4, 5, 6, 7])])
def test_so_many_rows_settle_and_as_many_steps_of_time(settle, rows):
    modes = np.array(["on"] * 5 + ["off"] * 5)
    time = pd.date_range("2024-05-01", periods=10, freq="min")
    assert np.flatnonzero(_with_changes(modes, None, settle) == "changing").tolist() == rows
    assert np.flatnonzero(_with_changes(modes, time, pd.Timedelta(minutes=settle)) == "changing").tolist() == rows


def test_settling_for_less_than_the_clock_shows_is_settling():
    time = pd.date_range("2024-05-01", periods=4, freq="s").as_unit("s")
    found = _with_changes(np.array(["a", "a", "b", "b"]), time, pd.Timedelta(milliseconds=5))
    assert found.tolist() == ["a", "changing", "changing", "b"]


def test_a_missing_reading_is_no_change_of_mode():
    modes = np.array(["on", "unknown", "on", "on", "unknown", "off", "off"])
    expected = ["on", "unknown", "on", "changing", "unknown", "changing", "off"]
    assert _with_changes(modes, None, 1).tolist() == expected


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
        ((), {"skip": ["off"]}, TableError, "need modes"),
        ({}, {"settle": 3}, TableError, "need modes"),
        (["a: power > 5", "a: power > 6"], {}, TableError, "Two modes are called 'a'"),
        (["power > 5", "power > 5"], {}, TableError, "Give each a name of its own"),
        (["unknown: power > 5", "b: power > 6"], {}, TableError, "cannot be called 'unknown'"),
        ({"other": "power > 5"}, {}, TableError, "cannot be called 'other'"),
        ({"changing": "power > 5"}, {}, TableError, "cannot be called 'changing'"),
        ({f"m{n}": f"power > {n}" for n in range(51)}, {}, TableError, "There are 51 modes, too many"),
        ("power > 5 or power > 5 or power > 5 or power > 5 or power > 5 or power > 5 or power > 5 or power > 5", {},
         TableError, "Write a short name before the rule"),
        ("stat", {}, RuleError, "it is not a column. Did you mean 'state'?"),
        ("running: power >", {}, RuleError, "a number, a text or a column is expected"),
        (["a: power > 5", "b: power >"], {}, RuleError, "The rule cannot be read"),
        ("power > high", {}, RuleError, "has no column 'high'"),
        ("state > 'on'", {}, RuleError, "only equal or not"),
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


def test_skips_are_known_before_they_occur():
    table = machine()
    for name in ("other", "unknown", "changing"):
        plan_modes("power > 5", table.names, skip=[name]).refuse_unknown_skips(table)
    with pytest.raises(TableError, match="no mode 'other'"):
        plan_modes("state", table.names, skip=["other"]).refuse_unknown_skips(table)


def test_named_columns_are_those_of_rules_and_columns():
    assert named_columns(["a: power > 5 and `x y` < 3", "b: state == on"]) == ["power", "x y", "state"]
    assert named_columns("state") == ["state"]
    assert named_columns({"a: b": "power > 5"}) == ["power"]
    assert named_columns(()) == []


def test_rows_that_are_not_judged_have_no_score_and_are_noted():
    table = two_modes()
    table.loc[100:103, "state"] = None
    findings = detect(table, modes="state", skip_modes="off", settle="20 min", method="mean", top=3)
    assert set(np.unique(findings.modes)) == {"on", "off", "changing", "unknown"}
    assert (findings.judged == (findings.modes == "on")).all()
    assert np.isnan(findings.scores[~findings.judged]).all()
    assert np.isfinite(findings.scores[findings.judged]).all()
    assert findings.expected[~findings.judged].isna().all(axis=None)
    notes = {note.kind: note for note in findings.notes}
    assert notes["modes not judged"].count == (~findings.judged).sum()
    assert "unknown (the reading that tells the mode is missing)" in str(notes["modes not judged"])
    assert "changing (the mode was changing)" in str(notes["modes not judged"])
    counts = pd.Series(findings.modes).value_counts()
    assert f"on {counts['on']}" in str(notes["modes"])


@pytest.mark.parametrize("dropped", [{"columns": NAMES}, {"exclude": ["state"]}, {}])
def test_a_column_that_tells_modes_is_read_but_no_input(dropped):
    findings = detect(two_modes(), modes="state", method="mean", top=4, **dropped)
    assert set(findings.names) == set(NAMES)
    assert set(np.unique(findings.modes)) == {"on", "off"}


def test_a_column_that_tells_modes_is_an_input_if_it_is_to_be_kept():
    table = two_modes()
    table["code"] = (table["state"] == "on").astype(float)
    assert "code" in detect(table, modes="code", keep="code", exclude="state", method="mean", top=4).names


def test_columns_of_rules_stay_inputs_unless_they_are_left_out():
    rules = {"hot": f"`{HOT}` > 60"}
    assert HOT in detect(plant(), modes=rules, method="mean", top=3).names
    assert HOT not in detect(plant(), modes=rules, exclude=HOT, method="mean", top=3).names
    chosen = detect(plant(), modes=rules, columns=["oil", "head [m]"], method="mean", top=3)
    assert chosen.names == ("oil", "head [m]")


def test_a_column_of_modes_that_is_not_there_is_named():
    with pytest.raises(RuleError, match=r"'stat' tells no modes: it is not a column. Did you mean 'state'"):
        detect(two_modes(), modes="stat")


def test_plans_say_what_they_do():
    plan = plan_modes(["on: power > 5"], ["power"], skip="other", settle=3)
    assert str(plan) == "on: power > 5; not judged: other; settling: 3"
    assert str(plan_modes("state", ["state"])) == "by column state"
    assert str(ModePlan()) == ""


@pytest.mark.parametrize("value", ["unknown", "changing", "other", "all"])
def test_a_column_that_holds_a_name_of_ours_is_refused_and_the_rule_that_is_proposed_works(value):
    table = two_modes().replace({"state": {"off": value}})
    with pytest.raises(TableError, match=f"Column 'state' has the value '{value}'") as caught:
        detect(table, modes="state", method="mean", top=4)
    proposed = str(caught.value).partition('such as "')[2].removesuffix('".')
    findings = detect(table, modes=proposed, method="mean", top=4)
    assert (findings.modes == f"mode {value}").sum() == (table["state"] == value).sum()


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
        assert ((findings.modes == "same") == same).all() if told_by == "modes" else (findings.trained == same).all()
        if dropped:
            assert "wanted" not in "".join(findings.names)


def test_a_bare_word_means_for_new_data_what_it_meant_when_it_was_learnt():
    table = wanted()
    column = fit_model(table, modes="same: state == wanted", columns=NAMES, method="mean")
    with pytest.raises(RuleError, match="no column 'wanted'"):
        score(column, table.drop(columns="wanted"))
    text = fit_model(table, modes="running: state == on", columns=NAMES, method="mean")
    findings = score(text, table.assign(on="off"))
    assert ((findings.modes == "running") == (table["state"] == "on")).all()
