"""How times are written is found out once, and every door reads them alike."""

from __future__ import annotations

import contextlib
import json
from datetime import datetime
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from live_tables import lines_of
from naive.times import CLOCKS, DATES, read_stamp
from strategies import examples

import penstock
from penstock.io import (
    InputError,
    RowSource,
    TableError,
    TableOptions,
    TimeOptions,
    TimeProgress,
    TimeReader,
    open_feed,
    read_table,
)
from penstock.live import Monitor, WatchOptions

DAY = 86_400.0


def stamps_of(reader: TimeReader, *values: object) -> list[str]:
    return [str(stamp) for stamp in reader.index(reader.seconds(values))]


@given(
    st.lists(st.datetimes(datetime(1971, 1, 1), datetime(2068, 12, 31)), min_size=3, max_size=20),
    st.sampled_from(DATES),
    st.sampled_from(CLOCKS),
)
@examples(200)
def test_a_reader_reads_each_stamp_as_the_table_does(stamps, date, clock):
    """One by one, in any cut, and after it was saved."""
    form = date + clock.replace("%z", "")
    texts = [stamp.strftime(form) for stamp in stamps]
    options = TimeOptions(day_first=not date.startswith("%m"))
    reader = TimeReader.learn(texts, options)
    saved = TimeReader.restore(json.loads(json.dumps(reader.state())))
    expected = [np.datetime64(read_stamp(text, form), "us").astype(np.int64) / 1e6 for text in texts]
    np.testing.assert_array_equal(saved.seconds(texts), expected)
    np.testing.assert_array_equal([saved.seconds([text])[0] for text in texts], expected)


@pytest.mark.parametrize(
    ("values", "unit", "first"),
    [
        (["45352.5", "45353"], "days as Excel counts them", "2024-03-01 12:00:00"),
        (["45352,5", "45353"], "days as Excel counts them", "2024-03-01 12:00:00"),
        (["202401031530", "202401031540"], "times as 202412311345", "2024-01-03 15:30:00"),
        ([202401031530, 202401031540], "times as 202412311345", "2024-01-03 15:30:00"),
        (["20240103153000", "20240103154000"], "times as 20241231134500", "2024-01-03 15:30:00"),
        (["20240103", "20240104"], "dates as 20241231", "2024-01-03 00:00:00"),
        ([1704295800, 1704295860], "seconds since 1970", "2024-01-03 15:30:00+00:00"),
        (["1704295800000"], "milliseconds since 1970", "2024-01-03 15:30:00+00:00"),
        ([1704295800000000000], "nanoseconds since 1970", "2024-01-03 15:30:00+00:00"),
    ],
)
def test_units_of_numbers(values, unit, first):
    reader = TimeReader.learn(values)
    assert reader.unit == unit
    assert stamps_of(reader, values[0]) == [first]
    column = pd.to_numeric(pd.Series(values).astype(str).str.replace(",", "."))
    table = read_table(pd.DataFrame({"time": pd.concat([column] * 3, ignore_index=True), "flow": 1.5}))
    assert table.time_reader == reader
    assert str(table.time[0]) == first


@pytest.mark.parametrize("value", ["1e300", "inf", "9" * 5000, "-1e18", "nan", 10**400, float("inf"), True, "x", "١٢٣"])
@pytest.mark.parametrize("sample", [["2024-01-01 10:00"], ["1704295800"], ["45352.5"], ["20240103"], ["3", "4.5"]])
def test_what_is_no_time_is_none(value, sample):
    reader = TimeReader.learn(sample)
    with np.errstate(all="raise"):
        assert np.isnan(reader.seconds([value])[0]) or not reader.dated


@pytest.mark.parametrize("text", ["1677-01-01", "1899-12-31 23:59", "2200-01-01", "2500-06-01", "9999-12-31 23:59:59"])
def test_times_are_between_1900_and_2200(text):
    assert np.isnan(TimeReader.learn(["2024-01-01 10:00"]).seconds([text])[0])
    table = read_table({"time": ["2024-01-01", "2024-01-02", "2024-01-03", text], "flow": [1.0, 2.0, 3.0, 4.0]})
    assert len(table.values) == 3
    assert table.about("times out of bounds" if text.startswith(("1", "2")) else "missing times") is not None


def test_what_was_known_decides_where_the_values_do_not():
    known = TimeReader(day_first=True)
    first_days = [f"{day:02d}/03/2024 10:00" for day in (1, 1, 1)]
    assert TimeReader.learn(first_days).day_first is False  # nothing tells, and a slash is American
    assert TimeReader.learn(first_days, TimeOptions(known=known)).day_first is True
    american = [f"03/{day:02d}/2024 10:00" for day in range(1, 25)]
    assert TimeReader.learn(american, TimeOptions(known=known)).day_first is False  # days above 12 show it
    typo = [f"{day:02d}/03/2024 10:00" for day in range(1, 13)] * 3 + ["05/13/2024 10:00"]
    assert TimeReader.learn(typo, TimeOptions(known=known)).day_first is True  # a single date does not
    for number, unit in ((20240103, "dates as 20241231"), (20240103, "seconds since 1970")):
        known = TimeReader(unit)
        assert TimeReader.learn([number], TimeOptions(known=known)).unit == unit


def test_an_hour_that_comes_twice_in_a_stream():
    reader = TimeReader.learn(["2024-10-27 01:30"], TimeOptions(zone=penstock.io.as_zone("Europe/Berlin")))
    texts = [f"2024-10-27 {hour}" for hour in ("01:30", "02:00", "02:30", "02:00", "02:30", "03:00")]
    hours = (reader.seconds(texts) - reader.seconds(texts)[0]) / 3600
    np.testing.assert_allclose(hours, [0, 0.5, 1, 1.5, 2, 2.5])
    one_by_one, last = [], -np.inf
    for text in texts:
        last = reader.seconds([text], last)[0]
        one_by_one.append(last)
    np.testing.assert_array_equal(one_by_one, reader.seconds(texts))
    table = read_table({"time": texts, "flow": np.arange(6.0)}, timezone="Europe/Berlin")
    np.testing.assert_array_equal(table.time.as_unit("us").asi8 / 1e6, one_by_one)


def test_damaged_states_are_refused():
    good = TimeReader("seconds since 1970").state()
    for wrong in (
        {},
        [],
        good | {"unit": "fortnights"},
        good | {"day_first": 1},
        good | {"zone": "Mars/Base"},
        good | {"format": "x"},
        good | {"more": 1},
    ):
        with pytest.raises((ValueError, TypeError, LookupError)):
            TimeReader.restore(wrong)


@given(st.lists(st.floats(0, 100).map(lambda days: days * DAY), min_size=1, max_size=30), st.integers(1, 5))
@examples(100)
def test_no_time_moves_the_clock_far_ahead_alone(times, size):
    """The newest time is never more than what is allowed beyond another that was accepted, and cuts do not matter."""
    whole = TimeProgress(0.0, 0.0, 60.0)
    wrong, _ = whole.check(np.array(times), DAY)
    parts, refused = TimeProgress(0.0, 0.0, 60.0), 0
    for start in range(0, len(times), size):
        refused += len(parts.check(np.array(times[start : start + size]), DAY)[0])
    assert (parts.newest, parts.ahead) == (whole.newest, whole.ahead)
    assert refused >= len(wrong)  # in one piece, a row may still be confirmed by the next
    assert whole.newest == max([0.0, *(time for place, time in enumerate(times) if place not in wrong)])


def a_stream(tmp_path: Path, lines: list[str]) -> list[float]:
    path = tmp_path / "plant.csv"
    path.write_text("\n".join(["time,flow", *lines, ""]))
    source, seconds, faults = RowSource(open_feed(path), TableOptions()), [], []
    while not source.ended:
        batch = source.next_batch(2)
        if batch is not None:
            seconds += batch.seconds.tolist()
            faults += [fault.line for fault in batch.faults]
    source.close()
    return seconds, faults


def test_a_row_far_ahead_is_malformed_and_a_break_is_not(tmp_path: Path) -> None:
    lines = [f"2024-05-01 10:{minute:02d},1.5" for minute in range(6)]
    lines += ["2024-11-01 10:00,1.5", "2024-05-01 10:06,1.5", "2024-05-04 10:00,1.5", "2024-05-04 10:01,1.5"]
    lines += ["2024-05-09 10:00,1.5"]  # nothing follows that would confirm it
    seconds, faults = a_stream(tmp_path, lines)
    assert faults == [8, 12]
    assert len(seconds) == 9
    assert max(seconds) == datetime.fromisoformat("2024-05-04T10:01:00Z").timestamp()
    weekly = [f"2024-{month:02d}-01,2.5" for month in range(1, 13)]
    assert a_stream(tmp_path, weekly)[1] == []


DOORS = {
    "day first": lambda times: times.strftime("%d/%m/%Y %H:%M"),
    "month first": lambda times: times.strftime("%m/%d/%Y %I:%M %p"),
    "Excel days": lambda times: ((times - pd.Timestamp("1899-12-30")) / pd.Timedelta("1D")).round(7),
    "compact": lambda times: times.strftime("%Y%m%d%H%M"),
    "ms": lambda times: times.as_unit("ms").asi8,
    "German": lambda times: times.strftime("%d.%m.%y %H:%M"),
}


@pytest.mark.filterwarnings("ignore:Dates in column")
@pytest.mark.parametrize("written", DOORS)
def test_fit_score_and_watch_read_the_same_times(tmp_path: Path, written: str) -> None:
    """Fitted on all of February and March, watched on the first days of April, which say nothing of day and month."""
    rng = np.random.default_rng(0)
    times = pd.date_range("2024-02-01", "2024-04-06", freq="2h")
    load = np.cumsum(rng.normal(size=len(times)))[:, None] * [1.0, 0.5, -0.3] + 0.1 * rng.normal(size=(len(times), 3))
    table = pd.DataFrame(load, columns=["load", "oil", "flow"])
    table.insert(0, "time", DOORS[written](times))
    later = times >= "2024-04-01"
    table[~later].to_csv(tmp_path / "good.csv", index=False)
    table[later].to_csv(tmp_path / "new.csv", index=False)
    model = penstock.fit_model(tmp_path / "good.csv")
    model.save(tmp_path / "unit.penstock")
    scored = penstock.score(penstock.load(tmp_path / "unit.penstock"), tmp_path / "new.csv")
    expected = times[later].as_unit("us").asi8 / 1e6
    np.testing.assert_allclose(scored.table.time.as_unit("us").asi8 / 1e6, expected, atol=0.01)
    files = {"output": tmp_path / "out.jsonl", "alarms": tmp_path / "alarms.jsonl"}
    counts = Monitor(WatchOptions(tmp_path / "new.csv", model=tmp_path / "unit.penstock", **files)).run()
    assert (counts.samples, counts.malformed, counts.unscored) == (later.sum(), 0, 0)
    np.testing.assert_allclose([line["score"] for line in lines_of(files["output"])], scored.scores, rtol=1e-9)


def test_a_time_that_contradicts_the_reader_is_malformed(tmp_path: Path) -> None:
    lines = [f"{day:02d}/03/2024 10:00,1.5" for day in range(1, 32)] + ["03/31/2024 11:00,1.5", "30/02/2024 10:00,1.5"]
    seconds, faults = a_stream(tmp_path, lines)
    assert faults == [33, 34]
    assert len(seconds) == 31


def test_unknown_zones_and_formats_of_a_stream() -> None:
    for name, value in (("timezone", "Mars/Base"), ("time_format", "x"), ("max_ahead", "soon"), ("max_ahead", -1)):
        with pytest.raises(ValueError, match=name) as error:
            WatchOptions("-", **{name: value}).check()
        assert error.value.parameter == name
    with pytest.raises(TableError):
        TimeOptions(format="%d %H")


def a_batch(path: Path) -> None:
    with contextlib.closing(RowSource(open_feed(path), TableOptions())) as source:
        while source.next_batch(5) is None:
            pass


def test_a_stream_knows_quality_and_refuses_times_beside_tags(tmp_path: Path) -> None:
    times = pd.date_range("2024-05-01", periods=40, freq="1min")
    table = pd.DataFrame({"time": times, "flow": np.arange(40) + 0.5, "flow Status": "GOOD", "head": 7.5})
    table.loc[[7, 30], ["flow", "flow Status"]] = [0.0, "BAD"]
    table.to_csv(tmp_path / "plant.csv", index=False)
    source = RowSource(open_feed(tmp_path / "plant.csv"), TableOptions())
    rows = []
    while not source.ended:
        batch = source.next_batch(5)
        rows += [] if batch is None else batch.values.tolist()
    source.close()
    assert source.columns.variable_names == ("flow", "head")
    assert np.flatnonzero(np.isnan(np.array(rows)[:, 0])).tolist() == [7, 30]
    read = read_table(tmp_path / "plant.csv")
    np.testing.assert_array_equal(read.values[["flow", "head"]].to_numpy(), rows)
    pairs = pd.DataFrame({"flow_time": times, "flow": 1.5, "head_time": times + pd.Timedelta("7s"), "head": 2.5})
    pairs["flow"] += np.arange(40)
    pairs.to_csv(tmp_path / "plant.csv", index=False)
    with pytest.raises(InputError, match="a time beside each tag"):
        a_batch(tmp_path / "plant.csv")
