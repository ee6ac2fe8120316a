"""What is read from text: values, names, notes and refusals."""

from __future__ import annotations

from pathlib import Path

import hostile_tables
import numpy as np
import pandas as pd
import pytest

from penstock._messages import spelled_by
from penstock.io import Table, TableError, read_table

DRESSED = hostile_tables.dressed()


@pytest.fixture
def write(tmp_path):
    def write_text(text: str | bytes, name: str = "plant.csv") -> Path:
        path = tmp_path / name
        path.write_bytes(text.encode() if isinstance(text, str) else text)
        return path

    return write_text


def kinds(table: Table) -> set[str]:
    return {note.kind for note in table.notes}


@pytest.mark.parametrize("dress", DRESSED)
def test_the_same_table_in_every_dress(write, dress):
    table = read_table(write(DRESSED[dress]()))
    assert table.names == ("Füllstand", "flow")
    np.testing.assert_array_equal(table.values["flow"], hostile_tables.FLOWS)
    np.testing.assert_array_equal(table.values["Füllstand"], hostile_tables.LEVELS)
    assert table.time_name == "time"
    assert table.time[-1] == pd.Timestamp(hostile_tables.stamp(hostile_tables.ROWS - 1))
    assert kinds(table) <= {"encoding", "decimal comma"}
    assert ("encoding" in kinds(table)) == any(encoding in dress for encoding in ("utf-16", "utf-32", "cp1252"))


def test_numbers_are_what_python_reads(write):
    rng = np.random.default_rng(0)
    numbers = rng.normal(size=2000) * 10.0 ** rng.integers(-30, 30, 2000)
    table = read_table(write("a,b\n" + "\n".join(f"{number!r},1.5" for number in numbers.tolist())))
    np.testing.assert_array_equal(table.values["a"], numbers)
    assert table.values.dtypes.tolist() == [np.float64, np.float64]


NAN = np.nan
DAYS = [f"2024-01-{day:02d}" for day in range(1, 31)]
ROWS = "2024-01-01,1.5,2\n2024-01-02,2.5,3\n"
READ = {  # text → columns of numbers, and for each note its count and columns
    "missing": ("a,b\n1,\nNaN,2\n3,n/a\n", {"a": [1, NAN, 3], "b": [NAN, 2, NAN]}, {"missing values": (3, ("a", "b"))}),
    "words among numbers": (
        "\n".join(["time,a,b", *(f"{day},1.5,2" for day in DAYS), "2024-02-01,Bad Input,---"]),
        {"a": [*[1.5] * 30, NAN], "b": [*[2] * 30, NAN]},
        {"text among numbers": (1, ("a",))},
    ),
    "infinite": ("a,b\n1,1\ninf,2\n-1e999,3\n", {"a": [1, NAN, NAN], "b": [1, 2, 3]}, {"infinite values": (2, ("a",))}),
    "truth": ("a,b\nTrue,True\nFALSE,\ntrue,False\n", {"a": [1, 0, 1], "b": [1, NAN, 0]},
              {"true and false": (5, ("a", "b"))}),
    "large numbers": (f"a,b\n{2**60 + 1},1\n3,2\n", {"a": [2.0**60, 3], "b": [1, 2]}, {"rounded numbers": (1, ("a",))}),
    "a late decimal comma": (
        "\n".join(["time;a", *(f"{day};2" for day in DAYS * 5), "2024-02-01;1,5"]),
        {"a": [*[2] * 150, 1.5]},
        {},
    ),
    "decimal commas in quotes": ('time,a\n2024-01-01,"1,5"\n2024-01-02,"2,25"\n', {"a": [1.5, 2.25]}, {}),
    "lines above": (
        "Plant report;;\nmade by;X;\n\ntime;a;b\n2024-01-01;1,5;2\n2024-01-02;2,5;3\n",
        {"a": [1.5, 2.5], "b": [2, 3]},
        {"preamble": (2, ())},
    ),
    "a name missing": (
        "time,a,,b\n2024-01-01,1,2,3\n2024-01-02,2,3,4\n",
        {"a": [1, 2], "column 3": [2, 3], "b": [3, 4]},
        {"unnamed columns": (1, ("column 3",))},
    ),
    "no header": (ROWS, {"column 2": [1.5, 2.5], "column 3": [2, 3]},
                  {"no header": (3, ()), "time found": (1, ("column 1",))}),
    "numbers for names": ("0,1\n1.5,2\n2.5,3\n", {"0": [1.5, 2.5], "1": [2, 3]}, {}),
    "numbers for sensors": (f"time,101,102\n{ROWS}", {"101": [1.5, 2.5], "102": [2, 3]}, {}),
    "row numbers and an empty column": (
        ",time,a,\n0,2024-01-01,5,\n1,2024-01-02,6,\n2,2024-01-03,7,\n",
        {"a": [5, 6, 7]},
        {"row numbers": (1, ("column 1",)), "empty columns": (1, ("column 4",))},
    ),
    "a separator too many": ("a;b\n1;2;\n3;4;\n", {"a": [1, 3], "b": [2, 4]}, {}),
    "a line break in a name": ('time,"flow\n(m³/h)"\n2024-01-01,1\n2024-01-02,2\n', {"flow (m³/h)": [1, 2]}, {}),
    "blanks": ("  1.5\t2  3 \n4 5\t6\t\n", {"column 1": [1.5, 4], "column 2": [2, 5], "column 3": [3, 6]}, {}),
    "blanks and decimal commas": ("\n 1,5  2,5\n\n2,5 3,5", {"column 1": [1.5, 2.5], "column 2": [2.5, 3.5]}, {}),
    "blanks and a header": ("time  a b\n2024-01-01 1 NaN\n2024-01-02  2 3\n", {"a": [1, 2], "b": [NAN, 3]}, {}),
    "blanks, date and clock": ("date time a\n2024-01-01 10:00 2\n2024-01-01 10:10 3\n", {"a": [2, 3]}, {}),
    "blanks in names": ("time;a b\n2024-01-01 10:00;1\n2024-01-01 11:00;2\n", {"a b": [1, 2]}, {}),
    "blanks in times": ("when\tb\n2024-01-01 10:00\t5\n2024-01-01 11:00\t6\n", {"b": [5, 6]}, {}),
    "blanks after commas": ("a,b\n1, 2\n3, 4\n", {"a": [1, 3], "b": [2, 4]}, {}),
    "blanks in the one name": ("flow rate\n1.5\n2.5\n", {"flow rate": [1.5, 2.5]}, {}),
}  # fmt: skip


@pytest.mark.parametrize("name", READ)
def test_columns_and_notes(write, name):
    text, columns, notes = READ[name]
    table = read_table(write(text))
    assert table.names == tuple(columns)
    np.testing.assert_array_equal(table.values.to_numpy(), np.column_stack(list(columns.values())))
    assert (table.values.dtypes == np.float64).all()
    assert {kind: (table.about(kind).count, table.about(kind).columns) for kind in notes} == notes


def test_text_stays_text_with_its_own_spelling(write):
    codes = "\n".join(
        f"{row % 7:03d},{'x' if row > 200_000 and row % 2 else f'{row % 3}.50'}" for row in range(300_000)
    )
    table = read_table(write(f"code,mixed\n{codes}\n"))
    assert table.values["code"].dtype == np.float64
    assert set(table.values["mixed"]) == {"0.50", "1.50", "2.50", "x"}
    quoted = read_table(write('a,note\n1,"x, ""y""\nz"\n2,5" pipe\n'))
    assert quoted.values["note"].tolist() == ['x, "y"\nz', '5" pipe']
    assert table.about("mixed text").columns == ("mixed",)


@pytest.mark.parametrize(
    ("text", "thousands"),
    [
        ("time;a\n31.12.2024;1.234,5\n1.1.2025;2.345\n2.1.2025;3\n", "."),
        ('time,a\n2024-12-31,"1,234.5"\n2025-01-01,"2,345"\n2025-01-02,3\n', ","),
    ],
)
def test_thousands_are_refused_or_read_on_request(write, text, thousands):
    path = write(text)
    with pytest.raises(TableError, match=r"column 'a' seems to have .* between thousands.*Pass thousands="):
        read_table(path)
    table = read_table(path, thousands=thousands)
    assert table.values["a"].tolist() == [1234.5, 2345, 3]
    assert table.time[0] == pd.Timestamp("2024-12-31")


def test_a_point_among_decimal_commas_is_not_guessed_at(write):
    path = write("time;a;b\n2024-12-31;999,5;1\n2025-01-01;2.345;2\n2025-01-02;3;3\n")
    with pytest.raises(TableError, match=r"column 'a' has numbers with a comma, as '999,5', and with a point"):
        read_table(path)
    with pytest.raises(TableError, match=r"column 'a' seems to have '.' between thousands, as in '2.345'"):
        read_table(path, decimal=",")
    assert read_table(path, thousands=".").values["a"].tolist() == [999.5, 2345, 3]


@pytest.mark.parametrize("lines", [[",MW,m3/s"], ["Zeitstempel,Active power,Water flow", ",MW,m3/s"]])
def test_lines_below_the_header_are_no_rows(write, lines):
    for order in (lines, lines[::-1]):
        table = read_table(write("\n".join(["time,power,flow", *order, ROWS])), strict=True)
        assert table.values["power"].tolist() == [1.5, 2.5]
        assert table.units == {"power": "MW", "flow": "m3/s"}
        assert "'MW', 'm3/s'" in table.about("units").message
        if len(lines) > 1:
            assert "'Zeitstempel', 'Active power', 'Water flow'" in table.about("description").message


@pytest.mark.parametrize("make", hostile_tables.remarks().values(), ids=hostile_tables.remarks())
def test_lines_that_begin_with_a_number_sign_above_the_table_are_left_out(write, make):
    table = read_table(write(make().decode()))
    assert table.names[-2:] == ("flow", "level")
    assert table.values[["flow", "level"]].to_numpy().tolist() == [[1.5, 2], [2.5, 3], [3.5, 5]]
    assert table.time is not None
    assert not table.units


def test_names_that_come_again_get_those_of_the_line_above(write):
    rows = "2024-01-01,1.5,2,7,8\n2024-01-02,2.5,3,9,6\n"
    table = read_table(write("Plant\n,Unit 1,,Unit 2,\nTime,Power,Flow,Power,Flow\n,MW,l/s,MW,l/s\n" + rows))
    assert table.names == ("Unit 1 Power", "Unit 1 Flow", "Unit 2 Power", "Unit 2 Flow")
    assert (table.units["Unit 2 Flow"], table.about("preamble").count) == ("l/s", 1)
    assert table.values["Unit 2 Power"].tolist() == [7, 9]
    assert read_table(write(",Unit 1,,Unit 2,\nTime,a,b,c,d\n" + rows)).names == ("a", "b", "c", "d")
    for above in ("", "Plant\n", ",Unit 1,,,\n", "Time,Power,Flow,Power,Flow\n"):
        with pytest.raises(TableError, match="more than one column named"):
            read_table(write(f"{above}Time,Power,Flow,Power,Flow\n{rows}"))


def test_units_are_kept_with_the_inputs(write):
    rows = "2024-01-01,1.5,2,a\n2024-01-02,2.5,3,b\n"
    table = read_table(write("time,flow,level,known\n(UTC),[m³/h],-,x\n" + rows), label="known")
    assert table.units == {"flow": "m³/h"}
    assert read_table(write("time,flow,level,known\n,m (abs),(bar),\n" + rows)).units == {
        "flow": "m (abs)",
        "level": "bar",
    }
    assert read_table(write("time,flow,level,known\n" + rows)).units == {}
    assert read_table(pd.DataFrame({"a": [1.0, 2.0]})).units == {}


@pytest.mark.parametrize("missing", [("-9999",), (-9999,), (-9999.0, "Bad"), ("-9999.0", "Bad"), "-9999"])
def test_codes_for_missing_values_are_told(write, missing):
    table = read_table(write("a,b,s\n1.5,-9999,on\n-9999,2,Bad\n-9999.0,3,-9999\n4,5,off\n"), missing=missing)
    np.testing.assert_array_equal(table.values["a"], [1.5, np.nan, np.nan, 4])
    np.testing.assert_array_equal(table.values["b"], [np.nan, 2, 3, 5])
    bad = "Bad" in missing
    assert table.values["s"].isna().tolist() == [False, bad, True, False]
    note = table.about("codes for missing")
    assert (note.count, note.columns, note.changed) == (4 + bad, ("s", "a", "b"), False)


def test_words_told_as_missing_leave_numbers(write):
    path = write("a;b\n1,5;x\nBad;y\n-99,5;x\n2,5;y\n")
    table = read_table(path, missing=["Bad", "-99,5"], strict=True)
    np.testing.assert_array_equal(table.values["a"], [1.5, np.nan, np.nan, 2.5])
    assert table.about("codes for missing").count == 2
    assert table.about("text among numbers") is None
    frame = pd.DataFrame({"a": [1, -9999, 3], "c": pd.Categorical(["x", "none of it", "x"])})
    table = read_table(frame, missing=["none of it", -9999])
    assert table.values.isna().sum().tolist() == [1, 1]
    assert frame["a"].tolist() == [1, -9999, 3]
    with pytest.raises(TableError, match="missing must be texts or numbers; got 'None'"):
        read_table(frame, missing=[None])


def test_long_format_is_noticed(write):
    hours = pd.date_range("2024-01-01", periods=20, freq="h")
    wide = pd.DataFrame({"time": hours, "power": np.arange(20.0), "flow": np.arange(20.0) ** 2})
    assert read_table(wide.melt("time", var_name="machine")).names == ("power", "flow")
    machines = pd.concat([wide.assign(machine="A"), wide.assign(machine="B", flow=7.0)])
    note = read_table(machines).about("long format")
    assert (note.count, note.columns, note.changed) == (2, ("machine", "power", "flow"), False)
    assert "to one row per 'time' and a column of 'power', 'flow' for each 'machine'" in note.message
    assert read_table(wide.assign(tag=["on", "off"] * 10)).about("long format") is None
    assert read_table(pd.concat([wide, wide]).assign(tag=["on", "on", "off", "on"] * 10)).about("long format") is None


def test_a_row_for_each_reading_is_read_as_a_column_for_each_tag(write):
    hours = pd.date_range("2024-10-27", periods=20, freq="h", tz="UTC").tz_convert("Europe/Berlin")
    wide = pd.DataFrame({"power": np.arange(20.0), "flow": np.arange(20.0) ** 2, "oil": 7.5})
    wide.insert(0, "When", hours.strftime("%d.%m.%Y %H:%M"))  # an hour comes twice
    long = wide.melt("When", var_name="TagName", value_name="Value").assign(Quality=192)
    long.loc[25, "Quality"] = 0  # flow, at the sixth hour
    long["Unit"] = long["TagName"].map({"power": "MW", "flow": "m3/s", "oil": "bar"})
    for order in (long, long.sort_values("When", kind="stable"), long[::-1]):
        texts = order.assign(Value=order["Value"].astype(str).str.replace(".", ",").where(order["Value"] != 81, "Bad"))
        table = read_table(write(texts.to_csv(index=False, sep=";")))
        note = table.about("long format")
        assert (note.count, note.columns, note.changed) == (3, ("TagName", "Value"), True)
        assert "Left out: 'Unit'" in note.message
        assert (table.about("bad quality").count, table.about("bad quality").columns) == (1, ("Value",))
        assert table.units == {"power": "MW", "flow": "m3/s", "oil": "bar"}
        there = table.values.sort_values("power")[["power", "flow", "oil"]].to_numpy()
        expected = wide[["power", "flow", "oil"]].to_numpy().copy()
        expected[[5, 9], 1] = np.nan
        np.testing.assert_array_equal(there, expected)
        assert table.time.nunique() == 19
    with pytest.raises(TableError, match="Each row of the table is one reading"):
        read_table(long.assign(Quality=192), strict=True)
    assert list(read_table(long, columns=["Value", "TagName"]).values) == ["Value", "TagName"]  # rows, if asked for
    assert "TagName" in read_table(long.assign(level=long["Value"] / 7)).values  # another measurement
    assert list(read_table(long, exclude=["oil"]).values) == ["power", "flow"]
    with pytest.raises(TableError, match="may not fit into memory"):
        read_table(long, max_bytes=100)


def test_tags_that_are_read_one_after_the_other_are_put_on_one_clock_and_so_are_those_read_at_any_time():
    minutes = pd.date_range("2024-01-01", periods=60, freq="min", tz="Europe/Berlin")
    parts = [
        pd.DataFrame({"time": minutes + pd.Timedelta(seconds=7 * i), "tag": f"t{i}", "value": i}) for i in range(4)
    ]
    table = read_table(pd.concat(parts))
    assert (table.time == minutes).all()
    assert (table.values == np.arange(4)).all(axis=None)
    assert table.alignment.step == 60_000_000
    assert table.about("aligned").count == 4
    assert table.alignment.names == table.names == ("t0", "t1", "t2", "t3")
    untagged = pd.concat([*parts, parts[0].iloc[:2].assign(tag=None)])
    assert "2 rows without a tag left out." in read_table(untagged).about("long format").message
    rng = np.random.default_rng(0)
    for part in parts:
        part["time"] = minutes[0] + pd.to_timedelta(np.sort(rng.exponential(900, 60)), unit="s")
    table = read_table(pd.concat(parts))
    usual = np.median([part["time"].diff().median().total_seconds() for part in parts])
    assert 0.9 * usual < 30
    assert table.alignment.step == 30_000_000
    assert (table.values == np.arange(4)).sum().sum() > 0
    assert ((table.values == np.arange(4)) | table.values.isna()).all(axis=None)
    rows = read_table(pd.concat(parts), step="none")
    assert len(rows.values) == pd.concat(parts)["time"].nunique()
    assert (rows.values.notna().sum(axis=1) == 1).all()


def test_files_of_one_tag_each_are_joined_and_those_of_one_record_appended(tmp_path):
    hours = pd.date_range("2024-01-01", periods=20, freq="h")
    for tag, factor in {"U1.FLOW": 1.0, "U1.PWR": 2.0}.items():
        rows = pd.DataFrame({"Timestamp": hours, "Value": factor * np.arange(20), "Quality": "Good"})
        rows.to_csv(tmp_path / f"{tag}.csv", index=False)
    table = read_table(tmp_path)
    assert table.values["U1.PWR"].tolist() == (2.0 * np.arange(20)).tolist()
    assert (table.names, table.about("long format").count) == (("U1.FLOW", "U1.PWR"), 2)
    rows.assign(Timestamp=hours + pd.Timedelta(days=3)).to_csv(tmp_path / "U1.PWR.csv", index=False)
    table = read_table(tmp_path)
    assert (len(table.values), table.about("appended files").count) == (40, 2)


def test_a_wide_table_of_tags_with_times_of_their_own_is_put_on_one_clock():
    times = pd.date_range("2024-05-01", periods=900, freq="20s")
    frame = pd.DataFrame({"time": times, **dict.fromkeys("abc", np.nan)})
    for number, name in enumerate("abc"):
        frame.loc[number::3, name] = np.arange(300.0)
    table = read_table(frame)
    assert table.alignment is not None
    assert table.values.notna().to_numpy().mean() > 0.99
    assert read_table(frame, step="none").alignment is None


def test_a_table_most_of_whose_times_cannot_be_read_is_refused():
    times = pd.Series(pd.date_range("2024-05-01", periods=200, freq="1min").astype(str)).where(
        np.arange(200) % 3 > 0, "soon"
    )
    with pytest.raises(TableError) as error:
        read_table(pd.DataFrame({"time": times, "flow": np.arange(200.0)}))
    assert error.value.parameter == "time_format"


def test_notes_name_options_as_the_door_spells_them(write):
    dates = "a,time\n1,01.02.2024\n2,03.02.2024\n3,05.02.2024\n"
    clock = "time,a\n2024-10-27 02:30,1\n2024-10-27 02:45,2\n2024-10-27 02:15,3\n2024-10-27 03:00,4\n"
    offsets = "time,a\n2024-01-01T00:00+01:00,1\n2024-07-01T00:00+02:00,2\n"
    for text in (dates, clock, offsets, "time,Füllstand\n2024-01-01,1\n2024-01-02,2\n".encode("cp1252")):
        table = read_table(write(text))
        assert table.notes
        with spelled_by(lambda name, value: f"--{name}"):
            assert not any(word in str(note) for note in read_table(write(text)).notes for word in ("=", "ass "))


def test_inputs_are_chosen_by_name(write):
    path = write("time,a,b,c,fault\n2024-01-01,1,2,3,no\n2024-01-02,4,5,6,yes\n")
    assert read_table(path, columns=["c", "a"]).names == ("c", "a")
    assert read_table(path, exclude=["b", "fault"]).names == ("a", "c")
    table = read_table(path, label="fault", exclude="b")
    assert table.names == ("a", "c")
    assert table.label.tolist() == ["no", "yes"]
    assert read_table(path, exclude=["time"]).time is None


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"time": "Tiem"}, "no column 'Tiem' .given as time.*Did you mean 'time'"),
        ({"columns": ["folw"]}, "no column 'folw' .given as columns.*Did you mean 'flow'"),
        ({"exclude": ["x"]}, "no column 'x' .given as exclude.*its columns are 'time', 'flow', 'level'"),
        ({"label": "FLOW"}, "no column 'FLOW'.*Did you mean 'flow'"),
        ({"columns": ["flow"], "label": "flow"}, "cannot be an input and the label"),
        ({"columns": ["time"], "time": "time"}, "cannot be an input and the time"),
        ({"label": "time", "time": "time"}, "cannot be the label and the time"),
        ({"columns": ["flow", "flow"]}, "names a column twice"),
        ({"columns": [3]}, "must be a name"),
        ({"exclude": ["flow", "level"]}, "No column of plant.csv is left as an input"),
        ({"time": "flow"}, "column 'flow' was named as the time, but row 0 .* holds '1'"),
        ({"time": ["time", "flow", "level"]}, "one column, or two"),
        ({"timezone": "Mars"}, "no time zone 'Mars'"),
        ({"encoding": "zip"}, "no encoding 'zip'"),
        ({"encoding": "utf-16"}, "is not utf-16"),
        ({"separator": ";;"}, "separator must be a single character"),
        ({"decimal": ",", "thousands": ","}, "cannot both be"),
        ({"max_bytes": 20}, "more than 20 bytes"),
    ],
)
def test_options_that_do_not_fit_are_refused(write, options, message):
    path = write("time,flow,level\n2024-01-01,1,2\n2024-01-02,3,4\n")
    with pytest.raises(TableError, match=message):
        read_table(path, **options)


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("empty", "is empty"),
        ("header alone", "has a header but no rows"),
        ("one row", "has a single row"),
        ("all text", "no column of numbers besides the time"),
        ("text and time", "no column of numbers besides the time"),
        ("all missing", "has no number at all"),
        ("duplicate header", "more than one column named 'flow'"),
        ("too many fields", "line 3 has 3 fields where the table has 2 columns: it begins '3,4,5'"),
        ("too few fields", "line 3 has 2 fields where the table has 3 columns: it begins '4,5'"),
        ("first row too long", "line 2 has 3 fields, but the header names 2"),
        ("all rows too long", "line 1 has 2 fields, but the lines below have 3"),
        ("last row cut", "line 4 has 2 fields"),
        ("quote never closed", "quote .* near line 2 that is never closed"),
        ("nul far away", "NUL byte in line 100,002"),
        ("control signs", "is a binary file"),
        ("line of 70 MB", "more than 67,108,864 bytes in line 3"),
        ("gzip bomb, one line", "more than 67,108,864 bytes in line 1"),
        ("gzip, cut", "cut short or damaged"),
        ("gzip, wrong sum", "cut short or damaged"),
        ("gzip of gzip", "packed twice"),
        ("html", "is HTML or XML, not a table. Export it as CSV"),
        ("old excel", "an old Excel file.*Save it as .xlsx or CSV"),
        ("zip of a table", "zip archive .of 'plant.csv'.. Unpack it"),
        ("a million columns", "1,000,000 columns"),
    ],
)
def test_bad_tables_are_refused_in_one_clear_sentence(write, name, message):
    path = write(hostile_tables.BROKEN[name]())
    with pytest.raises(TableError, match=message) as caught:
        read_table(path)
    assert "plant.csv" in str(caught.value)
    assert len(str(caught.value)) < 400


@pytest.mark.parametrize(
    "text",
    [
        "time,a\n2024-01-02,1\n2024-01-01,2\n",
        "time,a\n2024-01-02,1\n2024-01-03,2\n,3\n",
        "a,b\n" + "1,2\n" * 30 + "Bad,3\n",
        "a,b\n1,2\ninf,3\n",
        "time,a\n0,1.5\n1,2.5\n2,3.5\n",
    ],
)
def test_strict_refuses_to_change_anything(write, text):
    path = write(text)
    assert any(note.changed for note in read_table(path).notes)
    with pytest.raises(TableError, match=r"strict refuses.*Correct the table"):
        read_table(path, strict=True)


def test_strict_leaves_a_sound_table_alone(write):
    table = read_table(write(hostile_tables.written(";", ",")), strict=True)
    assert not any(note.changed for note in table.notes)


def eastman(rows: int = 1000, columns: int = 52) -> tuple[str, np.ndarray]:
    """A text as the Tennessee Eastman process is handed on: numbers between runs of blanks, no header, no time."""
    values = np.random.default_rng(0).normal(size=(rows, columns)) * 10.0 ** (np.arange(columns) % 5)
    lines = [
        " " + "".join(f"  {value: .7e}" for value in row) + " " * (number % 3) for number, row in enumerate(values)
    ]
    return "\n".join(lines) + "\n", np.array([[float(field) for field in line.split()] for line in lines])


def test_blanks_between_columns_without_a_header(write):
    text, values = eastman()
    table = read_table(write(text, "d06_te.dat"))
    np.testing.assert_array_equal(table.values, values)
    assert table.names[:2] == ("column 1", "column 2")
    assert table.time is None
    assert kinds(table) == {"no header", "blanks"}
    names = [f"x{number}" for number in range(52)]
    named = read_table(write(text, "d06_te.dat"), names=names)
    assert named.names == tuple(names)
    assert kinds(named) == {"blanks"}
    with pytest.raises(TableError, match=r"d06_te\.dat has 52 columns, but names has 2"):
        read_table(write(text, "d06_te.dat"), names=["a", "b"])
    with pytest.raises(TableError, match="more than one column named 'a'"):
        read_table(write("1.5 2\n3 4\n"), names=["a", "a"])


def test_one_line_and_ragged_lines_of_blanks(write):
    assert read_table(write(" 1.5  2.5 3.5"), fewest_rows=1).values.shape == (1, 3)
    with pytest.raises(TableError, match="line 2 has 2 fields where the table has 3 columns: it begins '4 5'"):
        read_table(write("1.5 2 3\n4 5\n6 7 8\n"))
    with pytest.raises(TableError, match="seems to have ' ' between thousands"):
        read_table(write("flow rate\n1 234\n2 345\n"))


def test_names_replace_a_header_and_are_noted(write):
    table = read_table(write("time,a\n;,m\n2024-01-01,1\n2024-01-02,2\n"), names=["time", "level"])
    assert table.names == ("level",)
    assert table.units == {"level": "m"}
    assert "'time', 'a', were replaced" in table.about("names").message
    assert read_table(np.ones((2, 2)), names=("a", "b")).names == ("a", "b")
