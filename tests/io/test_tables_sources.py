"""Files, folders and tables of other libraries."""

from __future__ import annotations

import gzip
import sys
import tracemalloc
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import date, datetime
from pathlib import Path

import hostile_tables
import numpy as np
import pandas as pd
import polars as pl
import pytest

from penstock.io import TableError, read_table

HOURS = pd.date_range("2024-01-01", periods=6, freq="h")


def written(folder: Path, name: str, frame: pd.DataFrame) -> Path:
    frame.to_csv(folder / name, index=False)
    return folder / name


@contextmanager
def measured_memory() -> Iterator[Callable[[], int]]:
    """The most bytes that Python, NumPy, pandas and Arrow had at once inside this block, beyond those before it."""
    import pyarrow

    usual = pyarrow.default_memory_pool()
    counting = pyarrow.proxy_memory_pool(usual)
    pyarrow.set_memory_pool(counting)
    tracemalloc.start()
    peaks: list[int] = []
    try:
        yield lambda: peaks[0]
    finally:
        peaks.append(tracemalloc.get_traced_memory()[1] + counting.max_memory())
        tracemalloc.stop()
        pyarrow.set_memory_pool(usual)


@pytest.fixture
def january(tmp_path):
    """Two files with the same columns, the later one first by name."""
    frame = pd.DataFrame({"time": HOURS, "a": np.arange(6.0), "b": np.arange(6.0) ** 2})
    written(tmp_path, "a2.csv", frame.iloc[3:])
    written(tmp_path, "a10.csv", frame[["time", "b", "a"]].iloc[:3])
    return tmp_path


def test_files_with_the_same_columns_are_appended_in_order_of_time(january):
    table = read_table(january, strict=True)
    assert table.values["a"].tolist() == [0, 1, 2, 3, 4, 5]
    assert table.time.equals(pd.DatetimeIndex(HOURS.astype("M8[us]")))
    assert table.about("appended files").count == 2
    assert table.about("order") is None
    same = read_table([january / "a10.csv", january / "a2.csv"])
    pd.testing.assert_frame_equal(same.values.reset_index(drop=True)[["a", "b"]], table.values.reset_index(drop=True))


def test_files_written_in_different_ways_are_appended(tmp_path):
    (tmp_path / "a.csv").write_text("time,x\n2024-01-01,1.5\n2024-01-02,2.5\n")
    (tmp_path / "b.csv").write_text("time;x\n03.01.2024;3,5\n04.01.2024;4,5\n05.01.2024;5,5\n06.01.2024;Bad\n")
    table = read_table(tmp_path)
    assert table.values["x"].tolist()[:5] == [1.5, 2.5, 3.5, 4.5, 5.5]
    assert np.isnan(table.values["x"].iloc[5])
    assert {"decimal comma", "text among numbers", "mixed time formats"} <= {note.kind for note in table.notes}


def test_other_files_in_a_folder_are_named(january):
    (january / "readme.pdf").write_text("x")
    (january / ".hidden.csv").write_text("x")
    (january / "~$lock.xlsx").write_text("x")
    table = read_table(january)
    assert "'readme.pdf'" in table.about("other files").message
    assert table.about("other files").count == 1


def test_areas_with_different_columns_are_joined_on_time(tmp_path):
    written(tmp_path, "intake.csv", pd.DataFrame({"time": HOURS, "a": np.arange(6.0)}))
    written(tmp_path, "turbine.csv", pd.DataFrame({"when": HOURS[1:], "b": np.arange(5.0)}))
    table = read_table(tmp_path)
    assert table.names == ("a", "b")
    assert table.values["b"].tolist()[1:] == [0, 1, 2, 3, 4]
    assert np.isnan(table.values["b"].iloc[0])
    assert table.about("joined files").count == 1


@pytest.mark.parametrize(
    ("other", "message"),
    [
        (pd.DataFrame({"time": HOURS, "a": 1.0, "c": 2.0}), "x.csv and y.csv share some columns .'a'. but not all"),
        (pd.DataFrame({"c": np.arange(6.0)}), "y.csv has other columns than the other files, and no time"),
        (pd.DataFrame({"time": HOURS[[0, 0, 1]], "c": 1.0}), "y.csv has 1 time stamps that are missing or come more"),
        (
            pd.DataFrame({"time": HOURS.tz_localize("UTC"), "c": 1.0}),
            "some have time stamps with a zone and some without",
        ),
    ],
)
def test_files_that_do_not_belong_together_are_refused(tmp_path, other, message):
    plant = written(tmp_path, "x.csv", pd.DataFrame({"time": HOURS, "a": 1.0, "b": np.arange(6.0)}))
    with pytest.raises(TableError, match=message):
        read_table([plant, written(tmp_path, "y.csv", other)])


def test_lists_beside_the_table_in_a_folder_are_left_out_and_named(tmp_path):
    plant = pd.DataFrame({"time": HOURS, "a": 1.0, "b": np.arange(6.0)})
    written(tmp_path, "plant.csv", plant)
    written(tmp_path, "variables.csv", pd.DataFrame({"name": ["a", "b"], "unit": ["m", "s"]}))
    written(
        tmp_path, "truth.csv", pd.DataFrame({"Start": HOURS[:2], "end_time": HOURS[2:4], "is_fault": [True, False]})
    )
    table = read_table(tmp_path)
    assert table.names == ("a", "b")
    note = table.about("other files")
    assert (note.count, note.changed) == (2, True)
    assert note.message.startswith("The rows are in 'plant.csv'. Left out, as without time")
    assert note.message.endswith("'truth.csv', 'variables.csv'.")
    with pytest.raises(TableError, match="strict refuses"):
        read_table(tmp_path, strict=True)
    with pytest.raises(TableError, match="has no column 'is_fault'"):
        read_table(tmp_path, label="is_fault")
    with pytest.raises(TableError, match=r"variables\.csv has other columns"):
        read_table([tmp_path / "plant.csv", tmp_path / "variables.csv"])
    written(tmp_path, "plant2.csv", plant.assign(time=HOURS + pd.Timedelta("1D")))
    assert len(read_table(tmp_path).values) == 12
    assert len(read_table(tmp_path, time="time").values) == 12


def test_without_any_time_no_file_is_left_out(tmp_path):
    written(tmp_path, "x.csv", pd.DataFrame({"a": np.arange(6.0)}))
    written(tmp_path, "y.csv", pd.DataFrame({"b": np.arange(6.0)}))
    with pytest.raises(TableError, match=r"x\.csv has other columns than the other files, and no time"):
        read_table(tmp_path)


def test_paths_that_lead_nowhere(tmp_path, monkeypatch):
    (tmp_path / "plant.csv").write_text("a\n1\n2\n")
    (tmp_path / "empty").mkdir()
    for source, message in (
        (tmp_path / "plnat.csv", "There is no file .*Did you mean .*plant.csv"),
        (tmp_path / "no" / "plant.csv", "nor a folder"),
        (tmp_path / "empty", "holds no table .*nothing else"),
        ("/dev/null", "not a file that can be read from its start"),
        ("a\0b", "cannot be opened"),
        ("x" * 5000, "cannot be opened"),
        ([], "list of paths is empty"),
        ([3], "got list"),
        (3, "got int"),
    ):
        with pytest.raises(TableError, match=message):
            read_table(source)

    def refuse(*_: object, **__: object) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(Path, "open", refuse)
    with pytest.raises(TableError, match="may not be read by you"):
        read_table(tmp_path / "plant.csv")


def test_parquet(tmp_path, monkeypatch):
    frame = pd.DataFrame(
        {
            "time": HOURS.tz_localize("Europe/Berlin"),
            "a": pd.array([1, None, 3, 4, 5, 6], dtype="Int64"),
            "on": [True, False] * 3,
            "state": pd.Categorical(list("xyxyxy")),
            "took": pd.to_timedelta(np.arange(6), unit="min"),
            "until": HOURS,
        }
    )
    frame.to_parquet(tmp_path / "plant.parquet")
    table = read_table(tmp_path / "plant.parquet")
    assert str(table.time.tz) == "Europe/Berlin"
    np.testing.assert_array_equal(table.values["a"], [1, np.nan, 3, 4, 5, 6])
    assert table.values["took"].tolist() == [0, 60, 120, 180, 240, 300]
    assert table.values["state"].tolist() == list("xyxyxy")
    assert table.values["until"].iloc[1] == "2024-01-01 01:00:00"
    assert {note.kind for note in table.notes} == {"true and false", "durations", "time as text", "missing values"}
    frame.set_index("time").to_parquet(tmp_path / "plant.parquet")
    assert read_table(tmp_path / "plant.parquet").time_name == "time"
    with pytest.raises(TableError, match="pass a larger max_bytes"):
        read_table(tmp_path / "plant.parquet", max_bytes=10)
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(TableError, match=r"pip install 'penstock\[files\]'"):
        read_table(tmp_path / "plant.parquet")


SHEET = (
    ("Report", None, None),
    (None, None, None),
    ("time", "flow", "state"),
    (datetime(2024, 1, 1, 10), 1.5, "on"),
    (datetime(2024, 1, 1, 11), None, "off"),
    (datetime(2024, 1, 1, 12), 0.1 + 0.2, "on"),
)


def workbook(path, **sheets):
    book = pytest.importorskip("openpyxl", reason="the extra `excel` is not installed").Workbook()
    book.remove(book.active)
    for title, rows in sheets.items():
        sheet = book.create_sheet(title)
        for row in rows:
            sheet.append(row)
    book.save(path)
    return path


def test_excel(tmp_path, monkeypatch):
    path = workbook(tmp_path / "plant.xlsx", plant=SHEET, notes=[])
    table = read_table(path)
    np.testing.assert_allclose(table.values["flow"][::2], [1.5, 0.1 + 0.2], rtol=1e-15)  # openpyxl writes 16 digits
    assert table.time[1] == pd.Timestamp("2024-01-01 11:00")
    assert {note.kind for note in table.notes} == {"sheets", "preamble", "missing values"}
    with pytest.raises(TableError, match=r"no such sheet.*Its sheets are 'plant', 'notes'"):
        read_table(path, sheet="Tabelle1")
    with pytest.raises(TableError, match="is empty"):
        read_table(path, sheet="notes")
    path.write_bytes(hostile_tables.zipped("xl/workbook.xml", bytes(10**6)))
    with pytest.raises(TableError, match="bytes when unpacked"):
        read_table(path, max_bytes=1000)
    monkeypatch.setitem(sys.modules, "openpyxl", None)
    with pytest.raises(TableError, match=r"pip install 'penstock\[excel\]'"):
        read_table(path)


@pytest.mark.parametrize(
    "cover", [[("Notes",), ("made by X",), ("for Y",)], [("Report", "plant")], [], [("time", "flow"), (1, 2)]]
)
def test_a_cover_sheet_is_told_from_the_table(tmp_path, cover):
    path = workbook(tmp_path / "plant.xlsx", Cover=cover, Data=SHEET)
    table = read_table(path)
    assert table.names == ("flow", "state")
    assert "'Cover'" in table.about("sheets").message
    assert read_table(path, sheet="Data").names == ("flow", "state")


_TWO_ROWS = (
    '<row r="1"><c r="A1" t="str"><v>a</v></c><c r="B1" t="str"><v>b</v></c></row>'
    '<row r="2"><c r="A2"><v>1</v></c><c r="B2"><v>2</v></c></row><row r="3"><c r="A3"><v>3</v></c></row>'
)
_TEXTS = "".join(
    f'<row r="{row}"><c r="A{row}" t="s"><v>0</v></c><c r="B{row}"><v>1</v></c></row>' for row in range(4, 999)
)
BOMBS = {
    "a cell far away": ('<row r="5000"><c r="XFD5000"><v>1</v></c></row>', (), "cells"),
    "row number": ('<row r="999999999"><c r="A999999999"><v>1</v></c></row>', (), "more than 1,048,576 rows"),
    "rows without cells below": ('<row r="4"><c r="XFD4"><v>1</v></c></row><row r="999999"/>', (), "cells"),
    "far cells that are empty": ('<row><c r="ZZZ4"/></row>' * 2000, (), "cells"),
    "one text in many cells": (_TEXTS, ("x" * 30_000,), "bytes of text"),
}


@pytest.mark.parametrize("name", BOMBS)
def test_small_workbooks_that_would_fill_memory_are_refused(tmp_path, name):
    pytest.importorskip("openpyxl", reason="the extra `excel` is not installed")
    rows, strings, message = BOMBS[name]
    path = tmp_path / "plant.xlsx"
    path.write_bytes(hostile_tables.workbook(_TWO_ROWS + rows, strings=strings))
    assert path.stat().st_size < 10_000
    with pytest.raises(TableError, match=rf"plant\.xlsx.*{message}.*Save the sheet as CSV"):
        read_table(path, max_bytes=20_000_000)


@pytest.mark.parametrize("part", ["workbook", "styles", "worksheets/sheet1"])
def test_workbooks_with_a_part_that_no_program_writes_are_refused(tmp_path, part):
    pytest.importorskip("openpyxl", reason="the extra `excel` is not installed")
    path, rows = tmp_path / "plant.xlsx", _TWO_ROWS
    if part == "worksheets/sheet1":
        rows += f'<row r="4"><c r="A4" t="inlineStr"><is><t>{"x" * 70_000_000}</t></is></c></row>'
    sheets, styles = 30_000 if part == "workbook" else 1, 1_000_000 if part == "styles" else 0
    path.write_bytes(hostile_tables.workbook(rows, sheets=sheets, styles=styles))
    with pytest.raises(TableError, match=rf"plant\.xlsx holds a part 'xl/{part}\.xml' of [0-9,]+ bytes.*as CSV"):
        read_table(path)


@pytest.mark.parametrize("dimension", ["A1:XFD1048576", "A1", "B2:ZZ9999"])
def test_a_sheet_is_read_whatever_it_says_of_its_size(tmp_path, dimension):
    pytest.importorskip("openpyxl", reason="the extra `excel` is not installed")
    path = tmp_path / "plant.xlsx"
    path.write_bytes(hostile_tables.workbook(_TWO_ROWS, f'<dimension ref="{dimension}"/>'))
    table = read_table(path, max_bytes=10_000)
    np.testing.assert_array_equal(table.values, [[1, 2], [3, np.nan]])


@pytest.mark.parametrize("kind", ["text", "categories", "lists", "maps", "plain"])
def test_small_parquet_files_that_would_fill_memory_are_refused(tmp_path, kind):
    import pyarrow as pa
    from pyarrow import parquet

    texts = pa.DictionaryArray.from_arrays(pa.array([0] * 2000, pa.int32()), pa.array(["x" * 10_000]))
    column = texts if kind == "categories" else texts.cast(pa.string())
    if kind == "lists":
        column = pa.ListArray.from_arrays(pa.array(range(2001), pa.int32()), column)
    if kind == "maps":
        column = pa.MapArray.from_arrays(pa.array(range(2001), pa.int32()), pa.array(["x"] * 2000), column)
    path = tmp_path / "plant.parquet"
    parquet.write_table(
        pa.table({"a": range(2000), "s": column}), path, compression="zstd", use_dictionary=kind != "plain"
    )
    assert path.stat().st_size < 50_000
    del texts, column
    with (
        measured_memory() as peak,
        pytest.raises(TableError, match=r"plant\.parquet holds more than .* bytes of text, or"),
    ):
        read_table(path, max_bytes=2_000_000)
    assert peak() < 10_000_000
    assert len(read_table(path, max_bytes=10**8).values) == 2000


def test_a_small_packed_text_that_would_fill_memory_is_refused(tmp_path):
    path = tmp_path / "plant.csv.gz"
    path.write_bytes(gzip.compress(b"a,b\n" + b"1.2345678,2.345678\n" * 500_000))
    with measured_memory() as peak, pytest.raises(TableError, match=r"holds more than 4,000,000 bytes of text"):
        read_table(path, max_bytes=4_000_000)
    assert peak() < 12_000_000
    path.write_bytes(gzip.compress((b"1," * 999 + b"1\n") * 300 + b"1\n" * 20_000))
    with measured_memory() as peak, pytest.raises(TableError, match=r"has more than 1,250,000 cells in rows of 1,000"):
        read_table(path, max_bytes=10_000_000)
    assert peak() < 12_000_000


def test_pandas_stays_as_it_is():
    frame = pd.DataFrame({"a": [3, 1, 2], "b": list("xyx")}, index=HOURS[[2, 0, 1]])
    before = frame.copy()
    table = read_table(frame)
    assert table.time_name == "time"
    assert table.values["a"].tolist() == [1, 2, 3]
    table.values.loc[:, "a"] = 0.0
    pd.testing.assert_frame_equal(frame, before)


def test_indexes_of_pandas():
    numbered = read_table(pd.DataFrame({"a": [1, 2]}, index=[5, 9]))
    assert numbered.names == ("a",)
    assert numbered.about("index") is not None
    named = read_table(pd.DataFrame({"a": [1, 2]}, index=pd.Index(["x", "y"], name="place")))
    assert named.names == ("place", "a")
    levels = pd.MultiIndex.from_tuples([("pump", "flow"), ("pump", "head")])
    assert read_table(pd.DataFrame([[1, 2], [3, 4]], columns=levels)).names == ("pump flow", "pump head")
    with pytest.raises(TableError, match="more than one column named 'a'"):
        read_table(pd.DataFrame([[1, 2], [3, 4]], columns=["a", "a"]))


@pytest.mark.parametrize("lazy", [False, True])
def test_polars(lazy):
    frame = pl.DataFrame(
        {
            "when": HOURS.to_pydatetime().tolist(),
            "a": [1, None, 3, 4, 5, 6],
            "state": list("xyxyxy"),
            "on": [True, None, False, True, True, True],
            "day": [date(2024, 1, 1)] * 6,
        }
    )
    table = read_table(frame.lazy() if lazy else frame)
    assert table.time_name == "when"
    assert table.values.isna().sum().tolist() == [1, 0, 1, 0]
    zoned = frame.with_columns(pl.col("when").dt.replace_time_zone("Europe/Berlin"))
    assert str(read_table(zoned).time.tz) == "Europe/Berlin"


def test_numpy_and_dict():
    table = read_table(np.arange(6.0).reshape(3, 2))
    assert table.names == ("column 1", "column 2")
    assert read_table({"a": [1, 2], "b": [3, 4]}).names == ("a", "b")
    assert read_table(np.array([(1, 2.0), (3, 4.0)], dtype=[("x", int), ("y", float)])).names == ("x", "y")
    for array in (np.arange(3.0), np.ones((2, 2), dtype=complex), np.ones((2, 2), dtype="M8[s]")):
        with pytest.raises(TableError):
            read_table(array)
