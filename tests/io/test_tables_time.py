"""Finding the time column, reading stamps, zones and order."""

from __future__ import annotations

from datetime import datetime, timedelta

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from naive.times import CLOCKS, DATES, read_stamp
from strategies import examples

from penstock.io import Table, TableError, read_table
from penstock.io._time_texts import NAIVE, read_times

MINUTE = timedelta(minutes=1)


def table_of(*times: object, name: str = "time", **options: object) -> Table:
    frame = pd.DataFrame({name: list(times), "flow": np.arange(len(times)) + 0.5})
    return read_table(frame, **options)


def kinds(table: Table) -> set[str]:
    return {note.kind for note in table.notes}


@given(
    st.lists(st.datetimes(datetime(1971, 1, 1), datetime(2068, 12, 31)), min_size=1, max_size=20),
    st.sampled_from(DATES),
    st.sampled_from(CLOCKS),
    st.sampled_from(["", "Z", "+01:00", "-0330", "+05"]),
)
@examples(300)
def test_stamps_are_read_as_strptime_reads_them(stamps, date, clock, zone):
    """Whichever way they are written, if they are all written in that way."""
    form = date + clock.replace("%z", "")
    zone = zone if "%z" in clock else ""
    texts = [stamp.strftime(form) + zone for stamp in stamps]
    padded = [text + "00" if zone == "+05" else text for text in texts]
    expected = [read_stamp(text, form + ("%z" if zone else "")) for text in padded]
    read = read_times(texts, day_first=not date.startswith("%m"))
    np.testing.assert_array_equal(read.times, np.array(expected, dtype="M8[us]"))
    assert (read.offsets != NAIVE).all() == bool(zone)


@given(st.lists(st.text(alphabet="0123456789-./: TapmzZ+,ä\n", max_size=25), min_size=1, max_size=15))
@examples(300)
def test_any_text_is_a_time_or_none(texts):
    """Each text is read on its own as it is among others, but for the order of day and month."""
    together = read_times(texts, day_first=True)
    alone = [read_times([text], day_first=True).times[0] for text in texts]
    np.testing.assert_array_equal(together.times, np.array(alone))


@pytest.mark.parametrize(
    ("times", "first", "note"),
    [
        (("31.12.2024 13:45", "1.1.2025 0:00"), "2024-12-31 13:45", "day and month"),
        (("12/31/2024 1:45 PM", "1/1/2025 12:00 AM"), "2024-12-31 13:45", "day and month"),
        (("01/02/2024 10:00", "01/02/2024 11:00", "02/02/2024 10:00"), "2024-02-01 10:00", "ambiguous dates"),
        (("02/01/2024 10:00", "02/01/2024 11:00", "02/02/2024 10:00"), "2024-02-01 10:00", "ambiguous dates"),
        (("03.04.2024", "03.04.2024"), "2024-04-03", "ambiguous dates"),
        (("03/04/2024", "03/04/2024"), "2024-03-04", "ambiguous dates"),
        (("1/13/2024, 1:45\u202fPM", "1/14/2024, 1:45\u202fPM"), "2024-01-13 13:45", "day and month"),
        (("04/07/16 00", "04/07/16 01", "04/07/16 02"), "2016-04-07 00:00", "ambiguous dates"),
        (("31/07/16 00", "31/07/16 13"), "2016-07-31 00:00", "day and month"),
        (("00:00:00 31/07/2016", "0:10 31/07/2016"), "2016-07-31 00:00", "mixed time formats"),
        (("01:45:30 PM 12/31/2024", "02:45:30 PM 12/31/2024"), "2024-12-31 13:45:30", "day and month"),
        (("24.12.2024 24:00", "25.12.2024 0:01"), "2024-12-25", "day and month"),
        ((1704067200, 1704067260), "2024-01-01", "time from numbers"),
        ((1704067200000.5, 1704067260000.0), "2024-01-01 00:00:00.000500", "time from numbers"),
        ((1704067200000000000, 1704067260000000000), "2024-01-01", "time from numbers"),
        ((45292.5, 45293.5), "2024-01-01 12:00", "time from numbers"),
        ((20240101, 20240102), "2024-01-01", "time from numbers"),
        ((20240101134500, 20240102134500), "2024-01-01 13:45", "time from numbers"),
        (("2024年3月5日 7時05分", "2024年3月14日 7時05分"), "2024-03-05 07:05", None),
        (("05 févr. 2024 07:05", "14 juil. 2024 08:00"), "2024-02-05 07:05", None),
        (("2024-07-05 07:05 CEST", "2024-07-05 08:05 CEST"), "2024-07-05 07:05", None),
        ((638462190000000000, 638462196000000000), "2024-03-16 20:50", "time from numbers"),
        ((202401031530, 202401031540), "2024-01-03 15:30", "time from numbers"),
        (("5-Jan-24 10:00:00", "2024-01-06 10:00"), "2024-01-05 10:00", "mixed time formats"),
        (("2024-01-05 10:00:00.1234567", "2024-01-06 10:00"), "2024-01-05 10:00:00.123456", "shortened times"),
    ],
)
def test_odd_formats_are_read_and_noted(times, first, note):
    table = table_of(*times)
    assert table.time[0].tz_localize(None) == pd.Timestamp(first)
    assert note is None or note in kinds(table)


def test_day_and_month_are_settled_on_request_and_contradictory_dates_left_out():
    for day_first, first in ((True, "2024-02-01"), (False, "2024-01-02")):
        table = table_of("01/02/2024", "01/03/2024", day_first=day_first)
        assert table.time[0] == pd.Timestamp(first)
        assert not kinds(table)
    table = table_of("13/01/2024", "01/14/2024", "15/01/2024", "16/01/2024")
    assert len(table.values) == 3
    assert table.about("contradictory dates").count == 1
    assert table.about("missing times").rows == (1,)


@pytest.mark.parametrize(
    ("names", "found"),
    [
        (("flow", "Time_Stamp [UTC]"), "Time_Stamp [UTC]"),
        (("date", "timestamp"), "timestamp"),
        (("reading", "x"), "x"),
        (("t", "y"), "t"),
        (("Datum/Uhrzeit", "flow"), "Datum/Uhrzeit"),
    ],
)
def test_the_time_is_found_by_name_or_content(names, found):
    stamps = pd.Series(pd.date_range("2024-01-01", periods=5, freq="h")).astype(str)
    columns = {name: np.arange(5) * 1.5 for name in names} | {found: stamps, "level": [3.5, 1, 2, 8, 5]}
    if "date" in names:
        columns["date"] = stamps.str[:10]
    table = read_table(pd.DataFrame(columns))
    assert table.time_name == found
    assert table.time[1] == pd.Timestamp("2024-01-01 01:00")


def test_date_and_clock_in_two_columns():
    frame = pd.DataFrame({"Date": ["31.12.2024"] * 3, "Time": ["10:00", "10:01", "10:02"], "a": [1, 2, 4]})
    for options in ({}, {"time": ("Date", "Time")}):
        table = read_table(frame, **options)
        assert table.time_name == "Date + Time"
        assert table.time[2] == pd.Timestamp("2024-12-31 10:02")
        assert table.names == ("a",)
    excel = frame.assign(Date="2024-12-31 00:00:00")
    assert read_table(excel).time[0] == pd.Timestamp("2024-12-31 10:00")


def test_a_name_alone_does_not_make_a_time():
    table = read_table(pd.DataFrame({"t": [21.5, 20.5, 22.5], "a": [1, 2, 3]}))
    assert (table.time, table.names) == (None, ("t", "a"))
    assert "not a time" in kinds(table)
    note = table_of("2024-01-01", "x1", "x2", "x3").about("not a time")
    assert "row 1 (counted from 0) holds 'x1'. If it is the time, its format can be set (time_format)." in note.message
    assert "input" not in note.message


@pytest.mark.parametrize("times", [(0, 1, 2), ("10:00", "10:01", "10:02")])
def test_times_without_a_date_are_left_out_but_not_silently(times):
    table = table_of(*times)
    assert table.time is None
    assert table.names == ("flow",)
    assert table.about("time without date").columns == ("time",)


def test_rows_are_sorted_and_found_again():
    table = table_of("2024-01-03", "2024-01-01", "2024-01-02", None, "2024-01-01")
    assert table.time.is_monotonic_increasing
    assert table.values.index.tolist() == [1, 4, 2, 0]
    assert table.values["flow"].tolist() == [1.5, 4.5, 2.5, 0.5]
    assert table.about("missing times").rows == (3,)
    assert table.about("order").rows == (1, 4)
    assert table.about("duplicate times").rows == (4,)
    turned = table_of("2024-01-03", "2024-01-02", "2024-01-01")
    assert turned.values.index.tolist() == [2, 1, 0]
    assert "newest first" in turned.about("order").message


def test_gaps_and_irregular_sampling_are_noted():
    start = datetime(2024, 1, 1)
    regular = [start + row * MINUTE for row in range(100)]
    assert not kinds(table_of(*regular))
    note = table_of(*(stamp for row, stamp in enumerate(regular) if row not in (10, 11, 50))).about("gaps")
    assert note.count == 2
    assert "usually 1 min apart, but up to 3 min (after 2024-01-01 00:09:00)" in note.message
    uneven = np.cumsum(np.random.default_rng(0).uniform(0.8, 1.2, 200))
    assert "irregular sampling" in kinds(table_of(*(start + float(step) * MINUTE for step in uneven)))


def test_one_offset_is_kept_and_several_become_utc():
    table = table_of("2024-01-01T10:00:00+05:30", "2024-01-01T11:00:00+05:30")
    assert table.time[0].utcoffset() == timedelta(hours=5.5)
    assert not kinds(table)
    table = table_of("2024-03-31T01:30:00+01:00", "2024-03-31T03:30:00+02:00")
    assert str(table.time.tz) == "UTC"
    assert table.about("mixed offsets").count == 2
    table = table_of("2024-03-31T01:30:00+01:00", "2024-03-31T03:30:00+02:00", timezone="Europe/Berlin")
    assert table.time[1].isoformat() == "2024-03-31T03:30:00+02:00"
    assert not kinds(table)
    with pytest.raises(TableError, match=r"1 have an offset from UTC and 1 have none"):
        table_of("2024-03-31T01:30:00+01:00", "2024-03-31T03:30:00")


def autumn(newest_first: bool = False) -> list[str]:
    """Local stamps every half hour through the night in which 2:00 to 3:00 comes twice."""
    hours = pd.date_range("2024-10-26 22:00", "2024-10-27 04:00", freq="30min", tz="UTC").tz_convert("Europe/Berlin")
    stamps = [str(stamp) for stamp in hours.tz_localize(None)]
    return stamps[::-1] if newest_first else stamps


@pytest.mark.parametrize("newest_first", [False, True])
def test_an_hour_that_comes_twice_is_told_apart_by_order(newest_first):
    table = table_of(*autumn(newest_first), timezone="Europe/Berlin")
    assert (np.diff(table.time.asi8) == 1800 * 10**6).all()
    note = table.about("daylight saving")
    assert (note.count, note.changed) == (4, False)
    without_zone = table_of(*autumn(newest_first))
    assert without_zone.about("duplicate times").count == 2
    if not newest_first:
        assert "Clocks seem to have been set back" in without_zone.about("daylight saving").message


def test_an_hour_that_does_not_exist_is_noted():
    table = table_of("2024-03-31 01:30", "2024-03-31 02:30", "2024-03-31 03:30", timezone="Europe/Berlin")
    assert table.about("times that do not exist").count == 1
    with pytest.raises(TableError, match="Check that this is the zone"):
        table_of("2024-03-31 01:30", "2024-03-31 02:30", timezone="Europe/Berlin", strict=True)


def test_an_hour_seen_once_is_taken_as_the_first():
    table = table_of("2024-10-27 01:00", "2024-10-27 02:00", "2024-10-27 03:00", timezone="Europe/Berlin")
    assert table.time[1].isoformat() == "2024-10-27T02:00:00+02:00"
    assert table.about("daylight saving").changed


def test_a_named_time_that_cannot_be_read_is_refused():
    with pytest.raises(TableError, match="only 0% of it can be read as times"):
        table_of("soon", "later", name="when", time="when")
    with pytest.raises(TableError, match="it is empty"):
        table_of(None, None, time="time")


@pytest.mark.parametrize(
    ("times", "form", "first"),
    [
        (("7h30 on 04-07-2016", "8h30 on 04-07-2016"), "%Hh%M on %d-%m-%Y", "2016-07-04 07:30"),
        ((40716, 50716), "%d%m%y", "2016-07-04"),
        (("2016w27-1", "2016w27-2"), "%Gw%V-%u", "2016-07-04"),
        (("04/07/16 00 +0200", "04/07/16 01 +0200"), "%d/%m/%y %H %z", "2016-07-03 22:00"),
    ],
)
def test_times_are_read_as_told(times, form, first):
    for name in ("time", "x"):
        table = table_of(*times, name=name, time_format=form)
        assert table.time[0].tz_localize(None) == pd.Timestamp(first)
        assert table.names == ("flow",)
        assert kinds(table) <= {"time found"}
    pair = pd.DataFrame({"Date": ["04/07/16"] * 2, "Time": ["7h30", "8h00"], "a": [1, 2]})
    assert read_table(pair, time_format="%d/%m/%y %Hh%M").time[1] == pd.Timestamp("2016-07-04 08:00")


def test_a_format_that_does_not_fit_names_the_cell():
    with pytest.raises(
        TableError, match=r"no column of times written as '%H' .*in column 'time' row 0 .* holds 'soon'"
    ):
        table_of("soon", "later", time_format="%H")
    with pytest.raises(TableError, match=r"row 1 \(counted from 0\) holds 'soon', and only 33% of it .* as '%Y'"):
        table_of("2024", "soon", "later", time="time", time_format="%Y")
    for form in ("%d.%m. %H:%M", "%d("):
        with pytest.raises(TableError, match=r"is not a format of time \(it has a day but no year"):
            table_of("28.02. 12:00", "29.02. 12:00", time_format=form)
    for form in ("dd/mm/yyyy", "%Q", "%", "%Y(", 7):
        with pytest.raises(TableError, match=r"is not a format of time|has no column of times"):
            table_of("2024", "2025", time_format=form)


@pytest.mark.parametrize("odd", [None, "", "no time", "2024-01-01T03:00:00", "2024-01-01 03:00:00+01:00"])
def test_a_large_plain_file_is_read_as_a_small_one(tmp_path, odd):
    """From 5 MB on pandas reads the times; packed, the same text is read as before."""
    times = pd.date_range("2024-01-01", periods=120_000, freq="s")
    frame = pd.DataFrame({"time": times.strftime("%Y-%m-%d %H:%M:%S"), **{f"x{k}": times.second + k for k in range(9)}})
    if odd is not None:
        frame.loc[10_800, "time"] = odd
    large, packed = tmp_path / "large.csv", tmp_path / "large.csv.gz"
    for path in (large, packed):
        frame.to_csv(path, index=False)
    assert large.stat().st_size > 5 * 2**20
    if odd is not None and odd.endswith("+01:00"):
        for path in (large, packed):
            with pytest.raises(TableError):
                read_table(path)
        return
    one, other = read_table(large), read_table(packed)
    assert one.time_reader == other.time_reader
    assert [note.kind for note in one.notes] == [note.kind for note in other.notes]
    pd.testing.assert_index_equal(one.time, other.time)
    pd.testing.assert_frame_equal(one.values, other.values)
