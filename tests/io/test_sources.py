"""Bytes → lines → rows."""

from __future__ import annotations

import contextlib
import datetime as dt
import gzip
import os
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from time import process_time
from typing import Any

import hostile_tables
import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from naive.tables import read_line
from strategies import examples

from penstock.io import (
    Batch,
    Columns,
    InputError,
    PipeFeed,
    RowSource,
    TableError,
    TableOptions,
    TimeOptions,
    TimeProgress,
    open_feed,
    read_table,
)
from penstock.io.feeds import LONGEST, LineCutter, byte_length

Opener = Callable[[Path], RowSource]
numbers = st.one_of(
    st.floats(allow_nan=False, allow_infinity=False).map(repr),
    st.floats(-1e6, 1e6).map("{:.4f}".format),
    st.floats(allow_nan=False, allow_infinity=False).map("{:.18e}".format),
    st.integers(-(10**25), 10**25).map(str),
    st.from_regex(r"[+-]?[0-9]{0,18}\.?[0-9]{0,18}([eE][+-]?[0-9]{0,4})?", fullmatch=True),
)
oddities = st.sampled_from(
    ["", "+", " ", "NaN", "nan", "-nan", "NA", "null", "None", "inf", "-Infinity", "1e999", "1_000", "0x10", "٣", "1 2"]
)
strange = st.sampled_from([
    " 7 ", "1.5.2", "--1", ".", "e5", "1e", "1e+", "true", '"3"', '"3', 'a"b', "1,5", "é", "1.e3", "00.1", "-0",
    "5e-324",
])  # fmt: skip
fields = st.one_of(numbers, oddities, strange)


def read_all(source: RowSource, at_most: int = 10**6) -> list[Batch]:
    batches = []
    while not source.ended:
        batch = source.next_batch(at_most)
        if batch is not None:
            batches.append(batch)
    return batches


@pytest.fixture
def opened() -> Iterator[Opener]:
    """Opens files as sources, and closes them in the end."""
    sources: list[RowSource] = []

    def open_source(path: Path) -> RowSource:
        sources.append(RowSource(open_feed(path), TableOptions()))
        return sources[-1]

    yield open_source
    for source in sources:
        source.close()


def from_bytes(data: bytes, options: TableOptions | None = None, strict: bool = False) -> RowSource:
    """A source on a pipe that holds the data. (A pipe holds 64 KB.)"""
    reading, writing = os.pipe()
    os.write(writing, data)
    os.close(writing)
    return RowSource(PipeFeed(reading), options or TableOptions(), strict)


def rows_of(batches: list[Batch]) -> list[list[float]]:
    return [row for batch in batches for row in batch.values.tolist()]


def times_of(batches: list[Batch]) -> list[Any]:
    return [time for batch in batches for time in batch.times or []]


def faults_of(batches: list[Batch]) -> list[str]:
    return [str(fault) for batch in batches for fault in batch.faults]


@pytest.mark.kernels
@given(st.lists(st.lists(fields, min_size=2, max_size=4), min_size=1, max_size=36), st.sampled_from(",;\t|"))
@examples(100)
@example([["1", "2", "3"]], ",")
@example([["9007199254740993", "0.1", "123456789012345e-22"]], ",")
def test_csv_reads_what_float_reads(table: list[list[str]], delimiter: str) -> None:
    """Also one line at a time: what a line gives does not depend on the others."""
    lines = [delimiter.join(row).encode() for row in table]
    lines = [line for line in lines if line.strip()]
    head = (delimiter.join(["c0", "c1", "c2"]) + "\n" + f"{delimiter.join('111')}\n" * 200).encode()
    for at_most in (10**6, 1):
        batches = read_all(from_bytes(head + b"\n".join(lines), TableOptions(delimiter=delimiter)), at_most)
        found = np.array(rows_of(batches))[200:].reshape(-1, 3)
        expected = [read_line(line, delimiter, 3) for line in lines]
        good = np.array([row for row in expected if row is not None]).reshape(-1, 3)
        assert found.tobytes() == good.tobytes() or (
            np.array_equal(found, good, equal_nan=True) and np.isnan(good).any()
        )
        faults = [fault.line - 202 for batch in batches for fault in batch.faults]
        assert faults == [number for number, row in enumerate(expected) if row is None]


@given(st.binary(max_size=300), st.lists(st.integers(1, 40), min_size=1, max_size=60))
def test_lines_do_not_depend_on_the_pieces(data: bytes, sizes: list[int]) -> None:
    cutter, lines, at = LineCutter(), [], 0
    for size in sizes:
        lines += cutter.cut(data[at : at + size])
        at += size
    lines += cutter.cut(data[at:])
    rest = cutter.rest()
    assert b"\n".join([*lines, rest]) == data
    assert byte_length(lines) + len(rest) == len(data)


def test_a_line_that_is_too_long_is_malformed_and_takes_no_memory(tmp_path: Path, opened: Opener) -> None:
    cutter = LineCutter()
    for _ in range(50):
        assert cutter.cut(b"7" * 100_000) == []
        assert len(cutter._unfinished) <= LONGEST + 1
    long, short = cutter.cut(b"7\n1,2\n")
    assert (byte_length([long]), len(long), short) == (5_000_002, LONGEST + 1, b"1,2")
    for good in (b"a,b\n1,2\n", b'{"a": 1, "b": 2}\n'):
        path = tmp_path / "plant.csv"
        path.write_bytes(good * (1 if b"a,b" in good else 2) + b"7" * 5_000_000 + b"\n" + good.split(b"\n")[-2] + b"\n")
        assert [fault.split(": ")[1] for fault in faults_of(read_all(opened(path)))] == ["longer than 1,000,000 bytes"]


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize(
    ("header", "row", "time"),
    [
        (b"a,Timestamp,b", b"1,2026,3", "Timestamp"),
        (b"when,a,b", b"Monday,2,3", "when"),
        (b",a,b", b"0,2,3", "column 1"),
        (b"a,b,c", b"1,2,3", None),
        (b"a,b,c", b",2,3", None),
        (b"T,b,c", b"1,2,3", "T"),
        (b"a,T,c", b"1,2,3", None),
        (b"a,T,c", b"1,,3", None),
        (b"a,T,c", b"1,10:00,3", "T"),
        (b"when,b,t", b"Monday,2,3", "when"),
        (b"when,b,t", b"Monday,2,noon", "when"),
    ],
)
def test_the_time_column_is_found(header: bytes, row: bytes, time: str | None) -> None:
    source = from_bytes(header + b"\n" + row + b"\n")
    read_all(source)
    assert (None if source.columns.time is None else source.columns.names[source.columns.time]) == time


def test_columns_are_chosen_and_left_out() -> None:
    data = b"time,a,label,b\n1,2,yes,4\n"
    (batch,) = read_all(from_bytes(data, TableOptions(exclude=("label",))))
    assert batch.values.tolist() == [[2.0, 4.0]]
    (batch,) = read_all(from_bytes(data, TableOptions(columns=("b", "a"))))
    assert batch.values.tolist() == [[4.0, 2.0]]
    (batch,) = read_all(from_bytes(data, TableOptions(columns=("time", "b"))))
    assert (batch.values.tolist(), batch.times) == ([[1.0, 4.0]], None)
    (batch,) = read_all(from_bytes(data, TableOptions(time="label", columns=("a",))))
    assert batch.times == ["yes"]


@pytest.mark.parametrize(
    ("data", "options", "message"),
    [
        (b"a,b\n1,2\n", TableOptions(columns=("c",)), 'no column "c"; the columns are a, b'),
        (b"flow,b\n1,2\n", TableOptions(exclude=("flaw",)), 'Did you mean "flow"'),
        (b"a,b\n1,2\n", TableOptions(time="b", columns=("b",)), "cannot be the time and a measurement"),
        (b"a,b\n1,2\n", TableOptions(exclude=("a", "b")), "No column is left"),
        (b"a,b\n1,2\n", TableOptions(columns=("a", "a", "b")), '--columns names "a" more than once'),
        (b"a,b,c\n1,2,3\n", TableOptions(exclude=("a", "a")), '--exclude names "a" more than once'),
        ("a,b\n1,2\n".encode("utf-16"), TableOptions(), "save the table as UTF-8"),
        ("a,b\n1,2\n".encode("utf-16-le"), TableOptions(), "save the table as UTF-8"),
        (b"a,b\r1,2\r3,4\r", TableOptions(), "carriage return alone"),
        (b'[\n{"a": 1}\n]\n', TableOptions(), "one object per line"),
        (b'[{"a": 1}, {"a": 2}]', TableOptions(), "one object per line"),
        (b"[1, 2]\n", TableOptions(format="jsonl"), "one object per line"),
        (b"a,b,a\n1,2,3\n", TableOptions(), "more than one column named 'a'"),
        (b"time,state\n1,on\n2,off\n", TableOptions(), "No column is left"),
        (b"a,b\n1,2,3\n4,5,6\n", TableOptions(), "line 1 has 2 fields, but the lines below have 3"),
        (b"<html>\n", TableOptions(), "is HTML or XML, not a table"),
        (b"t,a\nx,1\n", TableOptions(times=TimeOptions(format="%Y")), "no column of times written as '%Y'"),
    ],
)
def test_tables_that_cannot_be_read_are_refused(data: bytes, options: TableOptions, message: str) -> None:
    with pytest.raises(InputError, match=message):
        read_all(from_bytes(data, options))


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize(
    ("data", "names", "rows", "times"),
    [
        (b"when;a;b\n;m3/h;C\n1.5.2024;2,5;3\n", ("a", "b"), [[2.5, 3]], ["1.5.2024"]),
        (b"Report,\ntime,flow\n1,2\n", ("flow",), [[2]], ["1"]),
        (b"Plant report\n\ntime;flow\n1;2\n", ("flow",), [[2]], ["1"]),
        (b"  1.5  2.5\n 3.5  4.5\n", ("column 1", "column 2"), [[1.5, 2.5], [3.5, 4.5]], None),
        (b"time a b\n1 2 NaN\n", ("a", "b"), [[2, np.nan]], ["1"]),
        (b"date\ttime\ta\n31.12.2024\t10:00\t1\n", ("a",), [[1]], ["31.12.2024 10:00"]),
        (b"2024-01-01,1.5\n2024-01-02,n/a\n", ("column 2",), [[1.5], [np.nan]], ["2024-01-01", "2024-01-02"]),
        (b"time,F\xfcllstand\n2024-01-01,1\n", ("Füllstand",), [[1]], ["2024-01-01"]),
        (b"time,a,state\n1,2,on\n2,3,off\n", ("a",), [[2], [3]], ["1", "2"]),
        (b"time,a,b\n1,True,1\n2,false,2\n", ("a", "b"), [[1, 1], [0, 2]], ["1", "2"]),
        (b"time;a;b\n1;1,5;2.5\n2;2;3\n", ("a", "b"), [[1.5, 2.5], [2, 3]], ["1", "2"]),
        (b"a;b;\n1;2;\n3;4;\n", ("a", "b"), [[1, 2], [3, 4]], None),
        (b'time,"flow\n(m3/h)"\n1,2\n', ("flow (m3/h)",), [[2]], ["1"]),
        (b"time, a\n1,  2\n2,3 \n", ("a",), [[2], [3]], ["1", "2"]),
    ],
)
def test_odd_layouts_are_found(
    data: bytes, names: tuple[str, ...], rows: list[list[float]], times: list[str] | None
) -> None:
    source = from_bytes(data)
    batches = read_all(source)
    assert source.columns.variable_names == names
    np.testing.assert_array_equal(rows_of(batches), rows)
    assert times_of(batches) == (times or [])
    assert not faults_of(batches)
    again = from_bytes(data)  # the decided layout is kept, and what is above the rows may come again
    again.continue_from(source.position())
    np.testing.assert_array_equal(rows_of(read_all(again)), rows)
    assert again.columns == source.columns


def test_a_layout_is_decided_when_the_input_pauses() -> None:
    reading, writing = os.pipe()
    source = RowSource(PipeFeed(reading), TableOptions())
    for piece in (b"Plant report\n", b"time;flow\n", b";m3/h\n"):
        os.write(writing, piece)
        assert all(source.next_batch(10) is None for _ in range(3))
        assert source.columns is None
    os.write(writing, b"1.5.2024;3,5\n")
    with pytest.warns(UserWarning, match="1 line above the table in standard input left out|nothing tells the day"):
        batch = next(batch for _ in range(9) if (batch := source.next_batch(10)) is not None)
    assert (batch.values.tolist(), batch.lines, batch.times) == ([[3.5]], [4], ["1.5.2024"])
    os.close(writing)


def test_times_are_read() -> None:
    (batch,) = read_all(from_bytes(b"time,a\n1/30/2024,1\n1/31/2024,2\n"))
    assert batch.seconds.astype("M8[s]").astype(str).tolist() == ["2024-01-30T00:00:00", "2024-01-31T00:00:00"]
    (batch,) = read_all(from_bytes(b"time,a\n" + b"1704067200,1\n" * 9 + b"x,3\n,4\n"))
    np.testing.assert_array_equal(batch.seconds, [1704067200] * 9 + [np.nan])
    assert [fault.line for fault in batch.faults] == [11]


@pytest.mark.filterwarnings("ignore:Left out:UserWarning")
@pytest.mark.parametrize("wanted", [(), ("flow", "level")])
def test_a_row_for_each_reading_is_refused(wanted: tuple[str, ...]) -> None:
    text = b"tag,time,value\nflow,2024-01-01,1.5\nlevel,2024-01-01,2\nflow,2024-01-02,2.5\nlevel,2024-01-02,3\n"
    with pytest.raises(InputError, match="Rows are made of them on a clock"):
        read_all(from_bytes(text, TableOptions(columns=wanted)))
    assert rows_of(read_all(from_bytes(text, TableOptions(columns=("value",))))) == [[1.5], [2.0], [2.5], [3.0]]
    assert rows_of(read_all(from_bytes(text.replace(b"level", b"flow")))) == [[1.5], [2.0], [2.5], [3.0]]


ODD_TABLES = (
    hostile_tables.dressed()
    | hostile_tables.remarks()
    | {
        name: make
        for name, make in hostile_tables.hostile().items()
        if not re.match(
            "noise|shuffled|damaged|patchwork|.*(million|thousand columns|MB|far away|, then (num|text))", name
        )
    }
)
# A row is one line here; a blank line is none, also in a single column; what comes of UTF-16 and CR alone is refused.
OTHERWISE = r"one column$|times: line breaks inside|line break in a field|.*(utf-16|utf-32|, mac)"


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize("name", ODD_TABLES)
def test_rows_and_times_are_those_of_detect(tmp_path: Path, opened: Opener, name: str) -> None:
    """Line by line; what `detect` changes with a note (text among numbers, rows without a time) is malformed here."""
    content = ODD_TABLES[name]()
    path = tmp_path / ("plant.csv.gz" if content.startswith(b"\x1f\x8b") else "plant.csv")
    path.write_bytes(content)
    try:
        table = read_table(path)
    except TableError:
        with contextlib.suppress(InputError):
            read_all(opened(path))
        return
    if re.match(OTHERWISE, name) or content.startswith((b"PK", b"PAR1")) or b"\r" in content.replace(b"\r\n", b""):
        return
    source = opened(path)
    try:
        batches = read_all(source)
    except InputError:
        assert table.about("text among numbers") or table.about("mixed text") or table.about("infinite values"), name
        return
    faults = [fault.line for batch in batches for fault in batch.faults]
    rows = dict(zip((line for batch in batches for line in batch.lines), rows_of(batches), strict=True))
    names, time = list(source.columns.variable_names), source.columns.time
    passed = set() if time is None else {source.columns.names[time]}
    numeric = set(table.values.select_dtypes("number"))
    assert numeric - passed == set(names) - passed
    seconds = [time for batch in batches if batch.seconds is not None for time in batch.seconds]
    stamps = table.time_reader.index(np.array(seconds)) if table.time is not None and seconds else None
    places = {line: place for place, line in enumerate(rows)}
    left_out = any(table.about(kind) for kind in ("remarks", "headers again", "lines below"))  # no rows, with a note
    for number, line in enumerate(sorted([*rows, *([] if left_out else faults)])):
        if number not in table.values.index:
            assert table.about("missing times") is not None
        elif line in rows:
            expected = table.values[names].loc[number].to_numpy()
            assert np.array_equal(expected, rows[line], equal_nan=True)
            if stamps is not None and not table.about("dates carried on"):
                assert stamps[places[line]] == table.time[table.values.index.get_loc(number)]


TOO_LARGE = 'column "a" holds an infinite value or one too large for a float'


@pytest.mark.parametrize(
    ("data", "options", "rows", "faults"),
    [
        (
            b"time,a,b\n1,2,3\n1,2\n\n1,off,3\n1,inf,3\n\xff,1,2\n1,1_0,2\n4,5,6\n",
            {"encoding": "utf-8"},
            {2: [2.0, 3.0], 9: [5.0, 6.0]},
            {
                3: "2 fields instead of 3",
                5: 'column "a" holds "off", which is not a number',
                6: TOO_LARGE,
                7: "not UTF-8 at byte 1",
                8: 'column "a" holds "1_0", which is not a number',
            },
        ),
        (b"time;a\n1;2,5\n2;1,2,3\n", {}, {2: [2.5]}, {3: 'column "a" holds "1,2,3", which is not a number'}),
        (b"when,a\nMonday\nTuesday,2\n", {}, {3: [2.0]}, {2: "1 fields instead of 2"}),
        (
            b'{"time": "10:00", "a": 1, "b": "2.5"}\n{"b": null, "time": 7}\n[1]\n{"a": 1, "c": 2}\n{"a": true}\n'
            b'{"a": 1e999}\n{"a": NaN, "b": 3}\n{"time": {}, "a": 1}\n{"a": 1' + b"0" * 400 + b'}\n{"a": 1, "a": 3}\n',
            {},
            {1: [1.0, 2.5], 2: [np.nan, np.nan], 7: [np.nan, 3.0]},
            {
                3: "not a JSON object",
                4: 'key "c" was not in the first object',
                5: 'column "a" holds "true", which is not a number',
                6: TOO_LARGE,
                8: "its time is neither a text nor a number",
                9: TOO_LARGE,
                10: 'key "a" comes more than once',
            },
        ),
        (
            b'{}\n{"a": 1, "b": 2}\n{"a": 3, "new": "x"}\n',
            {"columns": ("a",)},
            {2: [1.0], 3: [3.0]},
            {1: "an object without any key"},
        ),
        *(
            (header + b"\n10:00,3,4\n", {}, {2: [3.0, 4.0]}, {})
            for header in (b"time,1,2", b"time,1_1,1_2", b"time,Na,2")
        ),
    ],
)
def test_malformed_lines_are_named_and_passed_over(
    data: bytes, options: dict[str, Any], rows: dict[int, list[float]], faults: dict[int, str]
) -> None:
    batches = read_all(from_bytes(data, TableOptions(**options)))
    np.testing.assert_array_equal(rows_of(batches), list(rows.values()))
    assert [line for batch in batches for line in batch.lines] == list(rows)
    assert faults_of(batches) == [f"standard input, line {line}: {fault}" for line, fault in faults.items()]


def test_times_of_json_lines_are_texts_or_numbers() -> None:
    assert times_of(read_all(from_bytes(b'{"time": "10:00", "a": 1}\n{"time": 7}\n{"a": 2}\n'))) == ["10:00", 7, None]


@pytest.mark.parametrize("at_most", [1, 2, 100])
@pytest.mark.parametrize("strict", [True, False])
def test_blank_lines_are_passed_over_and_counted_as_lines(at_most: int, strict: bool) -> None:
    batches = read_all(from_bytes(b"\n\na\n\n1\n\n \n\r\n2\n\n  ", strict=strict), at_most)
    assert rows_of(batches) == [[1.0], [2.0]]
    assert [line for batch in batches for line in batch.lines] == [5, 9]


def test_strict_hands_out_what_comes_before_the_first_malformed_line() -> None:
    source = from_bytes(b"a,b\n1,2\n3,4\n5\n6,7\n", strict=True)
    batches = [source.next_batch(100) for _ in range(3)]
    assert rows_of([batch for batch in batches if batch is not None]) == [[1.0, 2.0], [3.0, 4.0]]
    with pytest.raises(InputError, match=r"line 4: 1 fields instead of 2 \(--strict\)"):
        source.next_batch(100)
    with pytest.raises(InputError, match="line 2: not JSON"):
        read_all(from_bytes(b'\n{"a"\n', TableOptions(format="jsonl"), strict=True))


@pytest.mark.filterwarnings("ignore::UserWarning")
def test_an_index_without_a_name_is_not_watched() -> None:
    for data, rows in ((b",time,a\n0,10:00,3\n1,10:01,4\n", [[3.0], [4.0]]), (b",time,a\n7,10:00,3\n", [[3.0]])):
        source = from_bytes(data)
        assert rows_of(read_all(source)) == rows
        assert "row numbers" in {note.kind for note in source.notes}


def test_a_decimal_sign_is_that_of_the_first_row(opened: Opener, tmp_path: Path) -> None:
    batches = read_all(from_bytes(b"time;a;b\n1;2,5;3\n2;2.345;3\n3;7;4,5\n"))
    assert rows_of(batches) == [[2.5, 3.0], [7.0, 4.5]]
    assert faults_of(batches) == ['standard input, line 3: column "a" holds "2.345", which is not a number']
    assert rows_of(read_all(from_bytes(b"time;a\n1;2.5\n2;2,5\n3;7\n"))) == [[2.5], [7.0]]
    assert rows_of(read_all(from_bytes(b"time;a\n1;2\n2;2,5\n3;7.5\n"))) == [[2.0], [2.5]]
    late = b"time;a\n" + b"1;2\n" * 300 + b"2;2,5\n3;7.5\n"
    assert rows_of(read_all(from_bytes(late)))[-2:] == [[2.5], [7.5]]
    (tmp_path / "plant.csv").write_bytes(b"time;a\n1;2,5\n2;3\n3;2.345\n")
    source = opened(tmp_path / "plant.csv")
    while source.next_batch(1) is None:
        pass
    again = opened(tmp_path / "plant.csv")
    again.continue_from(source.position())
    assert rows_of(read_all(again)) == [[3.0]]


@pytest.mark.parametrize("ending", [".csv", ".csv.gz"])
def test_a_file_can_be_left_and_continued_at_any_line(tmp_path: Path, ending: str, opened: Opener) -> None:
    path = tmp_path / f"plant{ending}"
    text = "time,a\n" + "".join(f"{number},{number}.5\n" for number in range(2000)) + "2000,7"
    path.write_bytes(gzip.compress(text.encode()) if ending.endswith("gz") else text.encode())
    whole = rows_of(read_all(opened(path)))
    assert len(whole) == 2001

    source, parts = opened(path), []
    while not source.ended:
        batch = source.next_batch(at_most=97)
        if batch is not None:
            parts.append(batch)
        if batch is not None and not source.provisional:
            position = source.position()
            source = opened(path)
            source.continue_from(position)
    assert rows_of(parts) == whole
    assert [line for batch in parts for line in batch.lines] == list(range(2, 2003))


def test_json_lines_can_be_left_and_continued(tmp_path: Path, opened: Opener) -> None:
    path = tmp_path / "plant.jsonl"
    path.write_text('{"t": 1, "a": 1}\n{"t": 2, "a": 2}\n{"t": 3}\n{"a": 4, "b": 5}\n')
    first = opened(path)
    assert first.next_batch(1) is None  # the columns are known
    assert first.next_batch(1) is not None
    position = first.position()
    second = opened(path)
    second.continue_from(position)
    rest = read_all(second)
    assert (rest[0].times, rest[0].lines) == ([2, 3], [2, 3])
    assert faults_of(rest) == [f'{path}, line 4: key "b" was not in the first object']
    assert second.columns == Columns(("t", "a"), 0, (1,))


def test_another_file_is_not_continued(tmp_path: Path, opened: Opener) -> None:
    path = tmp_path / "plant.csv"
    path.write_text("a\n1\n2\n")
    position = left_in_the_middle(opened(path))
    for content, message in (("b\n1\n2\n3\n", "does not begin like the input"), ("a\n1\n", "shorter than the 6 bytes")):
        path.write_text(content)
        with pytest.raises(InputError, match=message):
            opened(path).continue_from(position)


def test_a_stream_that_begins_anew_may_repeat_its_header() -> None:
    first = from_bytes(b"time,a\n1,2\n")
    read_all(first)
    for data, rows in ((b"time,a\n3,4\n", [[4.0]]), (b"3,4\n", [[4.0]]), (b"\xff,a\n3,4\n", [[4.0]])):
        source = from_bytes(data)
        source.continue_from(first.position())
        assert rows_of(read_all(source)) == rows
    for header in ("time,b", "when,b", "when,b,c", "time,Na,Cl"):
        source = from_bytes(f"{header}\n3,4\n".encode())
        source.continue_from(first.position())
        with pytest.raises(InputError, match=f'columns have changed, from "time,a" to "{header}"'):
            read_all(source)


def test_a_further_stream_of_sensors_with_numbers_for_names() -> None:
    first = from_bytes(b"time,1,2\n10:00,3,4\n")
    read_all(first)
    for data in (b"10:01,1,7\n", b"time,1,2\n10:01,1,7\n", b"\n \ntime,1,2\n10:01,1,7\n"):
        source = from_bytes(data)
        source.continue_from(first.position())
        assert rows_of(read_all(source)) == [[1.0, 7.0]]


def left_in_the_middle(source: RowSource) -> dict[str, Any]:
    """The position after the first rows of a file."""
    while source.next_batch(1000) is None:
        pass
    return source.position()


@pytest.mark.parametrize("ending", [".csv", ".csv.gz"])
def test_a_file_that_was_edited_before_the_position_is_not_continued(
    tmp_path: Path, ending: str, opened: Opener
) -> None:
    def write(text: str) -> None:
        path.write_bytes(gzip.compress(text.encode()) if ending.endswith("gz") else text.encode())

    path = tmp_path / f"plant{ending}"
    text = "time,a\n" + "".join(f"{number},{number}.5\n" for number in range(5000))
    write(text)
    position = left_in_the_middle(opened(path))
    source = opened(path)
    source.continue_from(position)
    assert source.position() == position  # also before anything is read
    write(text.replace("\n700,", "\n700000,"))
    with pytest.raises(InputError, match="was changed before byte 9,787"):
        opened(path).continue_from(position)


def test_a_position_after_a_line_that_is_too_long(tmp_path: Path, opened: Opener) -> None:
    path = tmp_path / "plant.csv"
    path.write_bytes(b"a\n1\n" + b"7" * (LONGEST + 5000) + b"\n2\n3\n")
    source, rows = opened(path), []
    while not source.ended:
        batch = source.next_batch(1)
        if batch is not None:
            rows += rows_of([batch])
            position = source.position()
            source = opened(path)
            source.continue_from(position)
    assert rows == [[1.0], [2.0], [3.0]]


def test_a_state_belongs_to_a_file_or_to_a_pipe(tmp_path: Path, opened: Opener) -> None:
    path = tmp_path / "plant.csv"
    path.write_text("a\n1\n2\n")
    of_file = left_in_the_middle(opened(path))
    of_pipe = left_in_the_middle(from_bytes(b"a\n1\n2\n"))
    with pytest.raises(InputError, match="This state belongs to a file, but standard input is a pipe"):
        from_bytes(b"a\n1\n").continue_from(of_file)
    with pytest.raises(InputError, match=r"This state belongs to a pipe, but .*plant.csv is a file"):
        opened(path).continue_from(of_pipe)


ODD_MARKS = [
    ("kind", "tape"), ("kind", ...), ("offset", -1), ("offset", 1.5), ("offset", None), ("inode", "x"),
    ("head_length", -1), ("head_length", 10**9), ("tail_length", 7), ("head", None), ("tail", ...), ("more", 1),
]  # fmt: skip


@pytest.mark.parametrize("follow", [True, False])
@pytest.mark.parametrize(("entry", "value"), ODD_MARKS)
def test_odd_marks_are_input_errors(tmp_path: Path, opened: Opener, follow: bool, entry: str, value: object) -> None:
    path = tmp_path / "plant.csv"
    path.write_text("a\n1\n2\n")
    position = left_in_the_middle(opened(path))
    position["file"][entry] = value
    if value is ...:
        del position["file"][entry]
    source = RowSource(open_feed(path, follow=follow), TableOptions())
    with pytest.raises(InputError, match="makes no sense"):
        source.continue_from(position)
    source.close()


@pytest.mark.parametrize("key", ["file", "line", "table"])
def test_odd_positions_are_input_errors(key: str) -> None:
    odd: list[Any] = [None, [], {}, "x"]
    for value in odd:
        position = left_in_the_middle(from_bytes(b"a\n1\n2\n"))
        position[key] = value
        with pytest.raises(InputError, match="makes no sense"):
            from_bytes(b"a\n1\n").continue_from(position)


def test_a_long_field_in_quotes(tmp_path: Path, opened: Opener) -> None:
    (tmp_path / "plant.csv").write_bytes(b'a,b\n"' + b" " * 200_000 + b'1",2\n')
    assert rows_of(read_all(opened(tmp_path / "plant.csv"))) == [[1.0, 2.0]]


@pytest.mark.parametrize("members", [1, 3])
def test_packed_members_one_after_the_other(tmp_path: Path, opened: Opener, members: int) -> None:
    path = tmp_path / "plant.csv.gz"
    path.write_bytes(gzip.compress(b"a\n") + gzip.compress(b"1\n" * 50_000) * members + b"\0" * 100)
    assert len(rows_of(read_all(opened(path)))) == 50_000 * members


@pytest.mark.parametrize("damage", ["cut off", "changed"])
def test_what_comes_before_a_damage_is_handed_out(tmp_path: Path, opened: Opener, damage: str) -> None:
    path = tmp_path / "plant.csv.gz"
    text = "a\n" + "".join(f"{number}\n" for number in range(1000))
    packed = gzip.compress(text.encode())
    path.write_bytes(packed[:-10] if damage == "cut off" else packed[:-8] + b"\0\0\0\0" + packed[-4:])
    source = opened(path)
    batch = next(batch for _ in range(9) if (batch := source.next_batch(10**6)) is not None)
    rows = batch.values.tolist()
    with pytest.raises(InputError, match="cannot be unpacked"):
        source.next_batch(10**6)
    assert len(rows) > 900
    assert rows == [[float(number)] for number in range(len(rows))]


def test_what_cannot_be_followed(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    for path, message in (
        (None, "needs a file"),
        (tmp_path / "a.gz", "packed"),
        (tmp_path / "missing" / "a.csv", "There is no folder"),
        (tmp_path / "pipe", "pipe is not a regular file"),
    ):
        with pytest.raises(InputError, match=message):
            open_feed(path, follow=True)


def test_a_named_pipe_waits_for_its_writer_while_it_is_read(tmp_path: Path) -> None:
    path = tmp_path / "pipe"
    os.mkfifo(path)
    source = RowSource(open_feed(path), TableOptions())  # this must not wait: Ctrl-C would do nothing
    assert source.next_batch(1) is None
    assert not source.ended
    assert not source._feed.can_seek
    path.write_bytes(b"a\n1\n2\n")
    assert rows_of(read_all(source)) == [[1.0], [2.0]]


@pytest.mark.parametrize(
    "data",
    [
        b"Year,Month,Day,Hour,flow\n" + b"".join(b"2024,3,5,%d,1.5\n" % hour for hour in range(24)),
        b"date,time,flow\n" + b"".join(b"20240305,%d,1.5\n" % (10_000 * hour) for hour in range(24)),
    ],
)
def test_a_time_in_parts_is_refused_in_a_stream(data: bytes) -> None:
    with pytest.raises(InputError, match="whole time"):
        read_all(from_bytes(data))


@pytest.mark.parametrize("line", [b"{}\n", b"\n"])
def test_reading_takes_time_in_proportion_to_the_lines(tmp_path: Path, opened: Opener, line: bytes) -> None:
    path = tmp_path / "plant.json"
    path.write_bytes(400_000 * line + b'{"time": "2026-01-01 10:00", "a": 1}\n')
    begun = process_time()
    batches = read_all(opened(path))
    assert rows_of(batches) == [[1.0]]
    assert process_time() - begun < 60  # the square of the lines took minutes


def test_a_wide_table_takes_time_in_proportion_to_its_columns(tmp_path: Path, opened: Opener) -> None:
    path = tmp_path / "plant.csv"
    names = [f"c{number}" for number in range(3000)]
    path.write_text(f"{','.join(names)}\n{','.join('1' for _ in names)}\n")
    begun = process_time()
    assert len(rows_of(read_all(opened(path)))[0]) == 3000
    assert process_time() - begun < 60  # the square took four minutes


@pytest.mark.parametrize("time", ["1e300", "-1e300", "1e12", "soon"])
def test_counts_of_seconds_have_bounds(time: str) -> None:
    rows = [f"{number},{number}\n" for number in range(1, 31)]
    batches = read_all(from_bytes("".join(["time,a\n", *rows, f"{time},99\n", "31,31\n"]).encode()))
    assert rows_of(batches) == [[float(number)] for number in range(1, 32)]
    assert [time in fault for fault in faults_of(batches)] == [True]


def test_a_stream_has_dates_or_counts_and_not_both() -> None:
    progress = TimeProgress()
    found = []
    for text in ('{"time": "2026-01-01 10:00", "a": 1}', '{"time": 5, "a": 2}', '{"time": "soon", "a": 3}'):
        reading, writing = os.pipe()
        os.write(writing, text.encode())
        os.close(writing)
        found.append(read_all(RowSource(PipeFeed(reading), TableOptions(), progress=progress)))
    assert [rows_of(batches) for batches in found] == [[[1.0]], [], []]
    assert ["and those before are dates" in "".join(faults_of(batches)) for batches in found] == [False, True, False]


def test_rows_of_the_present_are_not_ahead_of_it() -> None:
    times = ("2026-01-01 10:00", "2026-01-03 10:00", "2026-01-03 10:01", "2026-01-01 10:01")
    reading, writing = os.pipe()
    os.write(writing, "".join(f'{{"time": "{time}", "a": 1}}\n' for time in times).encode())
    os.close(writing)
    now = dt.datetime(2026, 1, 1, 10, tzinfo=dt.UTC).timestamp()
    batches = read_all(RowSource(PipeFeed(reading), TableOptions(), clock=lambda: now))
    assert times_of(batches) == [times[0], times[3]]
    assert ["machine's clock" in fault for fault in faults_of(batches)] == [True, True]
