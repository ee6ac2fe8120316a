"""Whatever lies in a file, it is read or refused: quickly, and with one kind of error."""

from __future__ import annotations

import contextlib
import gzip
import io
import random
import re
import time
import tracemalloc

import hostile_tables
import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from strategies import examples

from penstock.columns import check_columns, choose_inputs
from penstock.io import Table, TableError, read_table
from penstock.io._encodings import UTF8
from penstock.io._text import LONGEST_LINE, CleanBytes, TextSource

HOSTILE = hostile_tables.hostile()
LONGEST = 10.0  # seconds of CPU time, which other processes do not count in; the slowest takes about four


def assert_sensible(table: Table) -> None:
    """What every table promises."""
    numeric = table.values.select_dtypes("number")
    assert len(table.values) >= 2
    assert numeric.shape[1] >= 1
    assert (numeric.dtypes == np.float64).all()
    assert not np.isinf(numeric.to_numpy()).any()
    assert np.isfinite(numeric.to_numpy()).any()
    assert len(set(table.names)) == len(table.names)
    for name in set(table.names) - set(numeric.columns):
        assert all(isinstance(value, str) for value in table.values[name].dropna())
    if table.time is not None:
        assert len(table.time) == len(table.values)
        assert table.time.is_monotonic_increasing
        assert not table.time.isna().any()
        assert table.time_name is not None


def test_there_are_enough_of_them():
    assert len(HOSTILE) + len(hostile_tables.dressed()) >= 400


@pytest.mark.parametrize("name", HOSTILE)
def test_read_or_refused(tmp_path, name):
    path = tmp_path / "table.csv"
    path.write_bytes(HOSTILE[name]())
    refusal = None
    start = time.process_time()
    try:
        table = read_table(path)
        assert_sensible(table)
        choose_inputs(table, check_columns(table))
    except TableError as error:
        refusal = error
    assert time.process_time() - start < LONGEST
    assert refusal is None or (len(str(refusal)) < 600 and refusal.__cause__ is None)


TEXTS = hostile_tables.dressed() | HOSTILE
UNPACKED = [name for name in TEXTS if not name.startswith(("noise", "gzip", "zip", "parquet"))]


@pytest.mark.parametrize("name", UNPACKED[::9])
def test_large_files_are_read_as_small_ones(tmp_path, name, monkeypatch):
    """Whether pandas gets the path or the bytes."""
    path = tmp_path / "table.csv"
    path.write_bytes(TEXTS[name]())
    found = []
    for large in (2**60, 0):
        monkeypatch.setattr("penstock.io._text._LARGE", large)
        try:
            table = read_table(path)
            found.append((table.values.to_csv(), str(table.time), table.time_name, table.notes))
        except TableError as error:
            found.append(re.sub(r"near line \d+", "", str(error)))
    assert found[0] == found[1]


class Endless(io.RawIOBase):
    """A line that never ends."""

    def read(self, size: int = -1) -> bytes:
        return b"1," * (size // 2)


@pytest.mark.parametrize("sign", ["a", "(", "[", "1e", "utc", "de ", "1/", "年"])
def test_a_long_field_is_read_once_and_not_from_each_of_its_characters(tmp_path, sign):
    field, begun = sign * 60_000, time.process_time()
    for text in (f"{field},b\n1,2\n2,3\n", f"time,a\n{field},1\n2024-01-02,3\n", f"time,{field} 2024\n2024-01-01,2\n"):
        (tmp_path / "long.csv").write_text(text, encoding="utf-8")
        with contextlib.suppress(TableError):
            read_table(tmp_path / "long.csv")
    assert time.process_time() - begun < 3  # about 0.1 s; 5 to 15 s where a pattern begins at each character


def test_an_endless_line_does_not_fill_the_memory():
    tracemalloc.start()
    try:
        with pytest.raises(TableError, match=r"more than 67,108,864 bytes in line 1"):
            CleanBytes(TextSource("endless.csv", Endless, 2**60), UTF8).head()
        assert tracemalloc.get_traced_memory()[1] < 2 * LONGEST_LINE
    finally:
        tracemalloc.stop()


@given(st.binary(max_size=300))
@examples(200)
def test_any_bytes(tmp_path_factory, content):
    path = tmp_path_factory.getbasetemp() / "any.csv"
    path.write_bytes(content)
    with contextlib.suppress(TableError):
        assert_sensible(read_table(path))


@given(st.integers(1000, 10**6))
@examples(60)
def test_more_patchwork_and_damage(tmp_path_factory, seed):
    path = tmp_path_factory.getbasetemp() / "any.csv"
    for make in (hostile_tables.patchwork, hostile_tables.damaged):
        path.write_bytes(make(seed))
        with contextlib.suppress(TableError):
            table = read_table(path, timezone="Europe/Berlin")
            assert_sensible(table)
            check_columns(table)


def sound_files() -> dict[str, bytes]:
    """The same small table in each kind of file."""
    times = pd.date_range("2024-01-01", periods=40, freq="h")
    frame = pd.DataFrame({"time": times, "a": np.arange(40) / 3, "b": list("xy") * 20})
    text = frame.to_csv(index=False).encode()
    sheet = "".join(
        f'<row r="{row}"><c r="A{row}"><v>{row}.5</v></c><c r="B{row}" t="s"><v>{row % 2}</v></c></row>'
        for row in range(1, 40)
    )
    return {
        "csv": text,
        "gz": gzip.compress(text, mtime=0),
        "parquet": frame.to_parquet(),
        "indexed parquet": frame.set_index("time").to_parquet(compression=None),
        "xlsx": hostile_tables.workbook(sheet, strings=("on", "off")),
    }


@pytest.mark.parametrize("kind", sound_files())
def test_damaged_files_are_read_or_refused(tmp_path, kind):
    sound, chosen, path = sound_files()[kind], random.Random(14), tmp_path / "plant"
    outcomes = set()
    for _ in range(60):
        content = bytearray(sound)
        for _ in range(chosen.randint(1, 6)):
            content[chosen.randrange(len(content))] = chosen.randrange(256)
        path.write_bytes(content[: chosen.choice((len(content), chosen.randrange(len(content))))])
        try:
            read_table(path, max_bytes=10**7)
        except TableError as refusal:
            outcomes.add("plant" in str(refusal) and len(str(refusal)) < 600)
    assert outcomes == {True}


@pytest.mark.parametrize("notes", [b"{}", b"[]", b"{", b'{"index_columns": [7], "columns": [], "column_indexes": []}'])
def test_parquet_with_damaged_notes_of_pandas_is_refused(tmp_path, notes):
    import pyarrow as pa
    from pyarrow import parquet

    table = pa.table({"a": [1.0, 2.0]}).replace_schema_metadata({b"pandas": notes})
    parquet.write_table(table, tmp_path / "plant.parquet")
    with pytest.raises(TableError, match=r"plant\.parquet is damaged or no Parquet table"):
        read_table(tmp_path / "plant.parquet")


def test_an_error_of_ours_is_a_refusal_with_its_cause(tmp_path, monkeypatch):
    def broken(*_: object) -> None:
        raise KeyError("a slip")

    monkeypatch.setattr("penstock.io.read.combine", broken)
    (tmp_path / "plant.csv").write_text("a,b\n1,2\n3,4\n")
    with pytest.raises(TableError, match=r"plant\.csv cannot be read \(KeyError: 'a slip'\)") as caught:
        read_table(tmp_path / "plant.csv")
    assert isinstance(caught.value.__cause__, KeyError)
