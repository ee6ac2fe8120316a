"""Files as loggers and exports write them: what was once read wrongly without a word."""

import numpy as np
import pandas as pd
import pytest

import penstock
from penstock.io import TimeReader, read_table

TIMES = pd.date_range("2025-03-03", periods=300, freq="5min")
FLOW = np.round(50 + np.random.default_rng(0).normal(size=300), 3)
DAY, HHMM = TIMES.day_of_year, TIMES.hour * 100 + TIMES.minute
LATE = HHMM == 0  # midnight as 2400 of the day before


@pytest.mark.parametrize(
    "parts",
    [
        [np.full(300, 101), TIMES.year, DAY, HHMM],
        [TIMES.year, np.where(LATE, DAY - 1, DAY), np.where(LATE, 2400, HHMM)],
        [np.full(300, 9), TIMES.year, DAY, HHMM, np.zeros(300, dtype=int)],
        [TIMES.year, TIMES.month, TIMES.day, TIMES.hour, TIMES.minute],
    ],
)
def test_the_parts_of_a_time_are_found_without_a_header(tmp_path, parts):
    path = tmp_path / "array.dat"
    pd.DataFrame([*parts, FLOW]).T.to_csv(path, header=False, index=False, float_format="%.10g")
    table = read_table(path)
    assert table.time.tolist() == TIMES.tolist()
    assert table.about("time found").columns
    assert table.values.iloc[:, -1].tolist() == FLOW.tolist()


def test_month_and_minute_may_have_names_that_differ_in_case_alone(tmp_path):
    path = tmp_path / "buoy.txt"
    parts = {"#YY": TIMES.year, "MM": TIMES.month, "DD": TIMES.day, "hh": TIMES.hour, "mm": TIMES.minute}
    pd.DataFrame({**parts, "WVHT": FLOW}).to_csv(path, sep=" ", index=False)
    table = read_table(path)
    assert (table.time.tolist(), table.names) == (TIMES.tolist(), ("WVHT",))


def test_numbers_that_ascend_by_chance_are_no_parts_of_a_time():
    columns = {"speed": np.arange(1900, 2200), "tap": 1 + np.arange(300) % 12, "step": 1 + np.arange(300) % 31}
    assert read_table({**columns, "flow": FLOW}).time is None


@pytest.mark.parametrize("form", ["%y-%m-%d %H:%M:%S", "%y/%m/%d %H:%M"])
def test_a_year_of_two_digits_may_come_first(form):
    table = read_table({"Time": TIMES.strftime(form), "flow": FLOW})
    assert table.time.tolist() == TIMES.tolist()
    assert table.about("ambiguous dates").doubt
    reader = TimeReader.restore(table.time_reader.state())
    assert reader.index(reader.seconds(["26-01-02 03:04:05" if "-" in form else "26/01/02 03:04"]))[0].year == 2026
    with_day_first = read_table({"Time": TIMES.strftime("%d-%m-%y %H:%M"), "flow": FLOW})
    assert with_day_first.time.tolist() == TIMES.tolist()


def test_excel_may_have_day_and_part_of_the_day_apart():
    days = (TIMES - pd.Timestamp("1899-12-30")) / pd.Timedelta(days=1)
    table = read_table({"Date": np.floor(days), "Time": days % 1, "flow": FLOW})
    assert (abs(table.time - TIMES) < pd.Timedelta(seconds=1)).all()
    assert table.names == ("flow",)


def test_a_stamp_that_most_rows_share_is_a_doubt():
    days = {"Date": TIMES.strftime("%Y-%m-%d"), "flow": FLOW}
    assert "duplicate times" in [note.kind for note in penstock.look(days).doubts]
    twice = read_table({"Date": TIMES.repeat(2), "flow": FLOW.repeat(2)}).about("duplicate times")
    assert not twice.doubt


def test_a_minus_behind_a_number_is_no_unit():
    table = read_table({"time": TIMES, "flow": FLOW, "draught": [f"{value}-" for value in FLOW]})
    np.testing.assert_array_equal(table.values["draught"], -np.abs(FLOW))


def test_hours_as_columns_are_noticed():
    hours = {f"{hour:02}:00": FLOW[hour : hour + 30] for hour in range(24)}
    days = pd.date_range("2025-01-01", periods=30).strftime("%Y-%m-%d")
    assert "melt" in read_table({"Date": days, **hours}).about("transposed").message


@pytest.mark.parametrize("codes", [[192] * 200 + [24] * 100, ["0x00C0"] * 200 + ["0x18"] * 100])
def test_quality_may_be_called_q(codes):
    table = read_table({"time": TIMES, "P1": FLOW, "P1.Q": codes})
    assert (table.names, table.bad["P1"]) == (("P1",), 100)
    assert read_table({"time": TIMES, "P1": FLOW, "pump_q": FLOW * 3}).names == ("P1", "pump_q")


def test_an_area_of_text_is_a_doubt():
    areas = {"a": {"time": TIMES, "flow": FLOW}, "b": {"time": TIMES, "level": ["n.v."] * 300}}
    assert "'n.v.'" in read_table(areas).about("only text").message


def test_numbers_may_name_the_tags_of_readings(tmp_path):
    path = tmp_path / "tags.csv"
    rows = pd.DataFrame({"Date": TIMES.repeat(2).strftime("%m/%d/%Y"), "Time": TIMES.repeat(2).strftime("%H:%M:%S")})
    rows.assign(Millitm=0, TagIndex=[3, 4] * 300, Value=np.repeat(FLOW, 2), Status=" ").to_csv(path, index=False)
    table = read_table(path)
    assert table.names == ("3", "4")
    assert table.values["4"].tolist() == FLOW.tolist()
