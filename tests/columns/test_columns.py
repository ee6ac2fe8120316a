"""Grades of columns, and the choice of inputs that follows from them."""

from __future__ import annotations

import dataclasses

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from naive import columns as naive
from strategies import examples

from penstock.columns import ColumnReport, check_columns, choose_inputs
from penstock.columns._patterns import copies_of_numbers, equal_runs, longest_true
from penstock.io import TableError, read_table

ROWS = 2000
RNG = np.random.default_rng(0)
NOISE = RNG.normal(50, 5, ROWS).round(2)
TIME = pd.date_range("2024-01-01", periods=ROWS, freq="min")


def report_on(values: object, time: bool = True) -> ColumnReport:
    frame = pd.DataFrame({"x": values, "other": RNG.normal(size=len(values))})  # type: ignore[arg-type]
    if time:
        frame.index = TIME[: len(frame)]
    table = read_table(frame, words=())  # without the codes that reading takes as missing
    return next(report for report in check_columns(table) if report.name == "x")


@pytest.mark.parametrize(("share", "grade"), [(0.001, "B"), (0.15, "B"), (0.5, "C"), (0.97, "D")])
def test_missing_values_lower_the_grade(share, grade):
    values = NOISE.copy()
    values[10 : 10 + int(share * ROWS)] = np.nan
    report = report_on(values)
    assert report.grade == grade
    assert report.share_missing == pytest.approx(share)
    assert f"missing, at most {int(share * ROWS):,} in a row, " in report.reasons[0]


def test_text_without_any_value_is_a_d():
    sound = read_table(pd.DataFrame({"a": NOISE, "x": ["on", "off"] * (ROWS // 2)}))
    table = dataclasses.replace(sound, values=sound.values.assign(x=sound.values["x"].where(NOISE > 1e9)))
    report = check_columns(table)[1]
    assert (report.grade, report.role, report.reasons) == ("D", "empty", ("It has no values.",))


def set_point() -> np.ndarray:
    return np.repeat(RNG.permutation(np.arange(10.0)), 200)


def rarely_moving() -> np.ndarray:
    """A reading that keeps its value for long, some forty times as long as others."""
    lengths = RNG.geometric(1 / 40, 500)
    return np.repeat(RNG.normal(size=500).round(3), lengths)[:ROWS]


def pump_off() -> np.ndarray:
    """Zero every night."""
    values = NOISE.copy()
    for night in range(10):
        values[night * 200 : night * 200 + RNG.integers(60, 110)] = 0
    return values


def with_values(values: object, places: object) -> np.ndarray:
    changed = NOISE.copy()
    changed[places] = values
    return changed


ENERGY, FEW = NOISE.cumsum(), RNG.integers(0, 3, ROWS)
STOOD_STILL = with_values(47.11, slice(500, 600))


@pytest.mark.parametrize(
    ("values", "grade", "role", "reason"),
    [
        (NOISE, "A", "sensor", ""),
        ([np.nan] * ROWS, "D", "empty", ""),
        ([5.0, np.nan] * (ROWS // 2), "D", "constant", "It never changes: it is always 5."),
        (["same"] * ROWS, "D", "constant", "It never changes"),
        (FEW, "A", "sensor", ""),
        (RNG.choice(["on", "off", "idle"], ROWS), "B", "state", ""),
        ([f"note {row}" for row in range(ROWS)], "D", "text", ""),
        (with_values(1e7, 7), "C", "sensor", "Its value 1e+07 is"),
        (-with_values(1e7, 7), "C", "sensor", "Its value -1e+07 is"),
        (STOOD_STILL, "C", "sensor", "It stood still at 47.11 for 100 values"),
        (STOOD_STILL, "C", "sensor", "from 2024-01-01 08:20:00"),
        (np.where(np.arange(ROWS) == 550, np.nan, STOOD_STILL), "C", "sensor", "It stood still at 47.11"),
        ([*NOISE[:300], *[1.5] * 1700], "C", "sensor", "It stood still"),
        (ENERGY, "B", "counter", "It only rises, like a counter"),
        (np.where(NOISE > 55, np.nan, ENERGY), "B", "counter", "It only rises, like a counter"),
        (ENERGY % (ENERGY[-1] / 4.5), "B", "counter", "It only rises, but for 4 resets, like"),
        ((NOISE > 55).cumsum(), "B", "counter", "It only rises"),
        (NOISE + np.arange(ROWS), "A", "sensor", ""),
        (np.sin(np.arange(ROWS) / 100), "A", "sensor", ""),
        (set_point(), "A", "state", ""),
        (rarely_moving(), "A", "setting", ""),
        (pump_off(), "A", "sensor", ""),
        (np.repeat([0.0, 1.0], ROWS // 2), "A", "state", ""),
        (np.clip(RNG.lognormal(0, 1.5, ROWS), 0, 20), "A", "sensor", ""),  # heavy tails are no spikes
        ((RNG.random(ROWS) < 0.01) * 1.0, "A", "state", ""),
        (RNG.choice([0, 1, 10], ROWS), "A", "sensor", ""),
        (RNG.choice([20.0, 500.0], ROWS), "A", "sensor", ""),
    ],
)
def test_grades_roles_and_reasons(values, grade, role, reason):
    report = report_on(values)
    assert (report.grade, report.role) == (grade, role)
    assert reason in " ".join(report.reasons)
    assert report.stuck == ("stood still" in reason or reason.startswith("from"))
    if grade == "A":
        assert (report.codes, report.share_missing) == ((), 0)
        assert not report.reasons or report.n_distinct <= 10
    if role == "state":
        assert report.n_distinct == len(set(values))


@pytest.mark.parametrize("code", [-9999, -999, 9999, 32767, -32768, 1e30])
def test_a_code_for_missing_values_is_noticed(code):
    values = NOISE.copy()
    values[RNG.permutation(ROWS)[:600]] = code
    report = report_on(values)
    assert (report.grade, report.codes) == ("C", (code,))
    assert f"{code:.10g} stands in it 600 times, far from all other values: a code for missing?" in report.reasons
    values = NOISE.copy()
    values[[3, 500, 900]] = code
    assert report_on(values).codes == (code,)
    assert not any("usual ranges away" in reason for reason in report_on(values).reasons)
    values[900] = NOISE[900]
    assert report_on(values).codes == ()
    assert report_on(np.where(NOISE > 60, code, FEW)).codes == (code,)


def test_two_codes_in_a_column():
    assert set(report_on(with_values([-9999] * 100 + [32767] * 50, slice(150))).codes) == {-9999, 32767}


LABELS = {  # as files of others have them
    "outlier": (0, 1), "is_anomaly": (0, 1), "ATT_FLAG": (-999, 0, 1), " ATT_FLAG": (-999, 1), "label": (-1, 1),
    "Normal/Attack": ("Normal", "Attack", "A ttack"), "fault": range(21), "faultNumber": range(6), "CLASS": (1, 2, 3),
    "anomaly": ("True", "False"), "changepoint": (0, 1), "point_label": (0, 1), "target": (0, 1), "fault 1": (1, 2),
    "Machine failure": (0, 1), "isOutlier": ("good", "bad"), "fault_type": ("none", "leak", "seal", "bearing"),
    "pump_fault": (0, 1), "ground_truth": (0, 1), "Störung": (0, 1),
}  # fmt: skip


@pytest.mark.parametrize("name", LABELS)
def test_what_looks_like_a_label_is_no_input(name):
    frame = pd.DataFrame({name: RNG.choice(list(LABELS[name]), ROWS), "flow": NOISE})
    table = read_table(frame)
    report = check_columns(table)[0]
    assert report.role == "label"
    assert any("looks like a label" in reason for reason in report.reasons)
    assert [each.name for each in choose_inputs(table).left_out] == [report.name]
    assert report.name not in choose_inputs(table).names
    for choice in (choose_inputs(table, keep=[report.name]), choose_inputs(table, labels=True)):
        assert not choice.left_out


@pytest.mark.parametrize(
    ("name", "values"),
    [
        ("pump_on", RNG.integers(0, 2, ROWS)),
        ("valve", RNG.integers(0, 2, ROWS)),
        ("default", RNG.integers(0, 2, ROWS)),
        ("y", RNG.integers(0, 2, ROWS)),
        ("target", NOISE),
        ("target level", RNG.integers(0, 2, ROWS)),
        ("target", RNG.choice([18.0, 21.0], ROWS)),
        ("anomaly", NOISE),
        ("fault current", RNG.integers(0, 20, ROWS)),
        ("min_to_next_fault", np.arange(ROWS) % 40),
        ("state", RNG.choice(["on", "off"], ROWS)),
    ],
)
def test_other_columns_are_no_labels(name, values):
    table = read_table(pd.DataFrame({name: values, "flow": NOISE[::-1]}))
    role = check_columns(table)[0].role
    assert role != "label"
    assert [each.name for each in choose_inputs(table).left_out] == ([name] if role == "counter" else [])


def steps(levels: object, each: int) -> np.ndarray:
    return np.repeat(np.asarray(levels, dtype=float), each)


@pytest.mark.parametrize(
    "values",
    [
        steps(RNG.choice([40, 60, 80], 20), 100),  # a set point
        steps(RNG.normal(50, 9, 40), 50),  # one of any value
        steps([3, 4], 1000),  # a tap that moved once
        steps([1, 0, 1, 0], 500),  # a pump
        np.where(np.arange(ROWS) == 700, -999.0, steps([1, 0, 1, 0], 500)),  # with a bad row
    ],
)
def test_settings_change_seldom_and_stay(values):
    assert report_on(values).role in ("setting", "state")
    assert not report_on(values).named
    holes = np.where(RNG.random(len(values)) < 0.2, np.nan, values)
    assert not report_on(holes).named
    assert choose_inputs(read_table(pd.DataFrame({"x": values, "flow": NOISE}))).settings == ("x",)


@pytest.mark.parametrize(
    "values",
    [
        NOISE,
        np.full(ROWS, 5.0),
        np.where(np.arange(ROWS) > 1950, NOISE, 0.0),  # a leak that is seldom there
        np.where(np.arange(ROWS) > 60, 47.1, NOISE),  # a sensor that is stuck nearly always
        np.where(np.arange(ROWS) == 700, 20.0, 5.0),  # one jump
        np.where(np.arange(ROWS) % 500 == 0, NOISE, np.nan),  # a reading a day
        RNG.choice(["on", "off"], ROWS),
    ],
)
def test_readings_are_no_settings(values):
    assert report_on(values).role != "setting"
    assert report_on(values).named


def test_copies_are_found():
    level = NOISE.cumsum()
    frame = pd.DataFrame(
        {
            "a": NOISE,
            "b": 32 + 1.8 * NOISE,
            "c": -NOISE,
            "d": NOISE + RNG.normal(0, 0.01, ROWS),
            "e": level,
            "f": NOISE,
            "g": np.where(np.arange(ROWS) < 5, np.nan, NOISE),
            "state": np.where(NOISE > 50, "on", "off"),
            "zustand": np.where(NOISE > 50, "an", "aus"),
        }
    )
    reports = {report.name: report.duplicate_of for report in check_columns(read_table(frame))}
    found = {name: origin for name, origin in reports.items() if origin}
    assert found == {"b": "a", "c": "a", "f": "a", "g": "a", "zustand": "state"}


def test_copies_are_found_across_holes_in_different_rows():
    rng = np.random.default_rng(1)
    columns = np.column_stack([NOISE, NOISE, 32 + 1.8 * NOISE, NOISE + rng.normal(0, 0.01, ROWS), NOISE])
    for column, share in ((1, 0.03), (2, 0.05), (3, 0.05), (4, 0.2)):
        columns[rng.random(ROWS) < share, column] = np.nan
    assert copies_of_numbers(columns, list("abcde")) == {"b": "a", "c": "a"} == naive.copies(columns, list("abcde"))
    twice = columns[:, [0, 1, 1]]
    assert copies_of_numbers(twice, list("abc")) == {"b": "a", "c": "a"}
    assert copies_of_numbers(columns[:, ::-1], list("edcba")) == {"b": "c", "a": "c"}


@given(st.data())
@examples(50)
def test_copies_are_those_that_all_pairs_would_find(data):
    seed = data.draw(st.integers(0, 10**6))
    rng = np.random.default_rng(seed)
    base = rng.normal(size=(40, 4)) * 10.0 ** rng.integers(-8, 8, 4)
    picks = data.draw(st.lists(st.integers(0, 4), min_size=2, max_size=12))
    blocks = [base[:, pick] * rng.normal() + rng.normal() if pick < 4 else np.full(40, 3.0) for pick in picks]
    columns = np.column_stack(blocks)
    names = [str(number) for number in range(len(picks))]
    expected: dict[str, str] = {}
    for number, pick in enumerate(picks):
        if pick < 4 and picks.index(pick) < number:
            expected[str(number)] = str(picks.index(pick))
    slow = naive.copies(columns, names)
    found = copies_of_numbers(columns, names)
    if slow == expected:  # else a shift has drowned a column of tiny numbers in rounding
        assert found == expected


@given(st.lists(st.integers(0, 3), min_size=1, max_size=60))
@examples(200)
def test_runs_agree_with_the_slow_way(values):
    found = equal_runs(np.array(values, dtype=float))
    lengths = naive.runs(values)
    assert found.longest.length == max(lengths)
    assert found.longest.start == sum(lengths[: lengths.index(max(lengths))])
    assert found.count == len(lengths)
    assert found.usual == naive.usual_run(values)
    mask = [value == 0 for value in values]
    assert longest_true(np.array(mask)).length == naive.longest_gap(mask)


def test_the_clock_has_its_own_report():
    frame = pd.DataFrame({"a": NOISE[:300]}, index=TIME[:300])
    report = check_columns(read_table(frame))[0]
    assert (report.name, report.role, report.grade, report.reasons) == ("time", "time", "A", ())
    worse = pd.concat([frame.iloc[:100], frame.iloc[99:100], frame.iloc[150:]]).iloc[::-1]
    report = check_columns(read_table(worse))[0]
    assert report.grade == "B"
    assert len(report.reasons) == 3


def test_a_clock_that_was_reset_is_noticed():
    times = TIME[:300].to_series().tolist()
    times[150:153] = [pd.Timestamp("1970-01-01") + pd.Timedelta(minutes=minute) for minute in range(3)]
    report = check_columns(read_table(pd.DataFrame({"time": times, "a": NOISE[:300]})))[0]
    assert report.grade == "C"
    assert "3 of its stamps are 1.97e+04 days away from all others" in report.reasons[0]


def mixed_table() -> pd.DataFrame:
    return pd.DataFrame(
        {
            "flow": NOISE,
            "flow copy": NOISE * 2,
            "limit": 5.0,
            "empty": np.nan,
            "state": RNG.choice(["on", "off"], ROWS),
            "product": RNG.choice([f"P{number}" for number in range(40)], ROWS, p=np.arange(1, 41) / 820),
            "note": [f"note {row}" for row in range(ROWS)],
            "stage": RNG.integers(0, 3, ROWS),
        }
    )


def test_inputs_are_chosen_and_the_rest_explained():
    table = read_table(mixed_table())
    choice = choose_inputs(table, check_columns(table))
    assert choice.as_they_are == ("flow", "stage")
    assert [(each.column, each.method) for each in choice.encoded] == [("state", "one-hot"), ("product", "rarity")]
    assert {each.name for each in choice.left_out} == {"flow copy", "limit", "empty", "note"}
    assert choice.counts == {"as they are": 2, "encoded": 2, "left out": 4}
    assert "says the same as column 'flow'" in next(each.reason for each in choice.left_out if each.name == "flow copy")
    inputs = choice.apply(table)
    assert tuple(inputs.columns) == choice.names
    assert (inputs.dtypes == np.float64).all()
    assert set(inputs["state=on"]) == {0.0, 1.0}
    rarest = table.values["product"].value_counts()
    shares = rarest[table.values["product"]].to_numpy() / ROWS
    np.testing.assert_allclose(inputs["product"], -np.log(shares))


def test_the_choice_is_applied_to_later_tables():
    choice = choose_inputs(read_table(mixed_table()))
    later = mixed_table().iloc[:3].assign(state=["on", "broken", None], product=["P39", "new", None])
    inputs = choice.apply(read_table(later))
    assert inputs["state=on"].tolist()[:2] == [1, 0]
    assert inputs["state=off"].tolist()[:2] == [0, 0]
    assert np.isnan(inputs["state=on"].iloc[2])
    assert inputs["product"].iloc[1] > np.log(ROWS)
    with pytest.raises(TableError, match="has no column 'flow', which was an input before"):
        choice.apply(read_table(later.drop(columns="flow")))
    with pytest.raises(TableError, match="column 'flow' held numbers before, and now holds text"):
        choice.apply(read_table(later.assign(flow="much")))


def test_columns_can_be_kept_and_strict_refuses():
    table = read_table(mixed_table())
    assert "limit" in choose_inputs(table, keep=["limit"]).as_they_are
    with pytest.raises(TableError, match=r"6 columns cannot be inputs as they are: 'flow copy' \(It says the same"):
        choose_inputs(table, strict=True)
    assert choose_inputs(read_table(mixed_table()[["flow", "stage"]]), strict=True).as_they_are == ("flow", "stage")
    with pytest.raises(TableError, match="no column that can be an input"):
        choose_inputs(read_table(mixed_table()[["limit", "note"]]))
