"""The door of the fits on a cluster: every kind of source gives the same numbers, and what is wrong is named."""

from __future__ import annotations

import decimal
import os
import pickle
import sys
from pathlib import Path

import dask
import dask.array as da
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from penstock.io import TableError
from penstock.scale import ClusterError, connect, sources

NAMES = ["flow", "head", "load"]
ROWS = np.random.default_rng(0).normal(size=(60, 3))


@pytest.fixture
def small_pieces(monkeypatch):
    """Pieces of about 10 rows of three columns."""
    monkeypatch.setattr(sources, "PIECE_BYTES", 10 * 3 * 8)


def open_source(given, folder=Path("unused"), **options):
    return sources.open_source(given, Path(folder), **options)


def frame(rows=ROWS):
    return pd.DataFrame(rows, columns=NAMES)


def write(path, table=None, **options):
    """A Parquet file of row groups of 20 rows."""
    if not isinstance(table, pa.Table):
        table = pa.Table.from_pandas(frame() if table is None else table)
    pq.write_table(table, path, **{"row_group_size": 20, **options})
    return path


def gathered(source):
    """All rows, each piece read as a task would: from a piece that came through pickle."""
    blocks = []
    for piece in source.pieces:
        block = pickle.loads(pickle.dumps(piece)).load()
        assert block.flags.c_contiguous
        assert block.flags.writeable
        assert block.dtype == np.float64
        assert block.shape == (piece.n_rows, source.n_columns)
        blocks.append(block)
    return np.concatenate(blocks)


def parquet_file(folder):
    return write(folder / "rows.parquet")


def parquet_folder(folder):
    for number in range(12):
        write(folder / f"part-{number}.parquet", frame(ROWS[5 * number : 5 * number + 5]))
    (folder / "_metadata.parquet").write_text("not data")
    return folder


def parquet_list(folder):
    first, second = frame(ROWS[:30]), frame(ROWS[30:])[["load", "flow", "head"]]
    return [str(write(folder / "a.parquet", first)), write(folder / "b", second)]


NAMED = {
    "Parquet file": parquet_file,
    "Parquet folder": parquet_folder,
    "Parquet list": parquet_list,
    "pandas": lambda folder: frame(),
    "polars": lambda folder: pl.DataFrame(ROWS, schema=NAMES),
}


@pytest.mark.parametrize("kind", [*NAMED, "NumPy"])
def test_every_kind_gives_the_same_numbers(kind, tmp_path, small_pieces):
    given = NAMED[kind](tmp_path) if kind in NAMED else ROWS
    source = open_source(given, folder=tmp_path / "pieces")
    assert source.signature == open_source(given, folder=tmp_path / "again").signature
    np.testing.assert_array_equal(gathered(source), ROWS)
    assert source.n_columns == 3
    assert source.columns == (NAMES if kind in NAMED else None)
    assert len(source.pieces) > 2
    assert len({piece.label for piece in source.pieces}) == len(source.pieces)
    assert all(len(pickle.dumps(piece)) < 4000 for piece in source.pieces)


@pytest.mark.parametrize("kind", NAMED)
def test_columns_are_chosen_by_name(kind, tmp_path):
    given = NAMED[kind](tmp_path)
    source = open_source(given, columns=("load", "flow"), folder=tmp_path / "pieces")
    np.testing.assert_array_equal(gathered(source), ROWS[:, [2, 0]])
    assert source.columns == ["load", "flow"]
    assert source.signature != open_source(given, folder=tmp_path / "pieces").signature
    with pytest.raises(TableError, match=r"no column 'flo'.*its columns are .*Did you mean 'flow'"):
        open_source(given, columns=["flo"], folder=tmp_path)


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        ("flow", r"for one column pass columns=\['flow'\]"),
        ([], "leaves no column"),
        (["flow", "flow"], "more than one column named 'flow'"),
    ],
)
def test_columns_that_cannot_be_meant(columns, message, tmp_path):
    with pytest.raises(TableError, match=message):
        open_source(parquet_file(tmp_path), columns=columns)
    with pytest.raises(TableError, match=r"ndarray has no column names, so 'flow' \(given as columns\)"):
        open_source(ROWS, columns=["flow"], folder=tmp_path)


def test_the_signature_of_files_changes_with_them(tmp_path):
    paths = [write(tmp_path / "a.parquet"), write(tmp_path / "b.parquet")]
    before = open_source(paths).signature
    assert open_source(paths[::-1]).signature != before
    os.utime(paths[1], ns=(0, 1))
    touched = open_source(paths).signature
    write(paths[1], frame(ROWS[:59]))
    os.utime(paths[1], ns=(0, 1))
    assert len({before, touched, open_source(paths).signature}) == 3


def test_the_signature_of_arrays_changes_with_their_content(tmp_path):
    other = ROWS.copy()
    other[59, 2] += 1
    for convert in (np.asarray, frame):
        assert (
            open_source(convert(ROWS), folder=tmp_path).signature
            != open_source(convert(other), folder=tmp_path).signature
        )


def test_numbers_of_all_types_are_taken(tmp_path):
    table = pa.table(
        {
            "whole": pa.array([1, 2], pa.uint8()),
            "large": pa.array([2**60 + 1, 2], pa.int64()),
            "half": pa.array([0.5, 1.5], pa.float16()),
            "truth": pa.array([True, False]),
            "exact": pa.array([decimal.Decimal("1.25"), decimal.Decimal("2.5")]),
            "dotted.name": pa.array([1.0, 2.0], pa.float32()),
            "dotted": pa.array([3.0, 4.0]),
        }
    )
    expected = [[1, 2.0**60, 0.5, 1, 1.25, 1, 3], [2, 2, 1.5, 0, 2.5, 2, 4]]
    path = write(tmp_path / "a.parquet", table)
    np.testing.assert_array_equal(gathered(open_source(path)), expected)
    np.testing.assert_array_equal(gathered(open_source(path, columns=["dotted"])), [[3], [4]])
    nullable = pd.DataFrame({"a": pd.array([1, 2], "Int64"), "b": [True, False]})
    arrow = nullable.astype({"a": pd.ArrowDtype(pa.decimal128(22, 1))})
    in_polars = pl.DataFrame({"a": [decimal.Decimal(1), decimal.Decimal(2)], "b": [True, False]})
    for given in (nullable, arrow, in_polars, np.array([[1, 1], [2, 0]])):
        np.testing.assert_array_equal(gathered(open_source(given, folder=tmp_path)), [[1, 1], [2, 0]])


def test_an_index_is_no_measurement(tmp_path):
    odd = frame().set_index(pd.Index(np.arange(60) % 7))
    timed = frame().set_index(pd.date_range("2024", periods=60, name="time"))
    paths = [write(tmp_path / "odd.parquet", odd), write(tmp_path / "timed.parquet", timed)]
    assert "__index_level_0__" in pq.read_schema(paths[0]).names
    np.testing.assert_array_equal(gathered(open_source(paths)), np.concatenate([ROWS, ROWS]))
    assert open_source(paths[0], columns=["__index_level_0__"]).pieces[0].load()[8] == 1


def test_empty_pieces_are_taken(tmp_path):
    paths = [write(tmp_path / "a.parquet", frame(ROWS[:0])), write(tmp_path / "b.parquet")]
    with pq.ParquetWriter(tmp_path / "c.parquet", pq.read_schema(paths[1])) as writer:
        writer.write_table(pa.Table.from_pandas(frame(ROWS[:0])), row_group_size=5)
        writer.write_table(pa.Table.from_pandas(frame()))
    np.testing.assert_array_equal(gathered(open_source([*paths, tmp_path / "c.parquet"])), np.tile(ROWS, (2, 1)))


# What is refused at opening


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ([], "list of Parquet files is empty"),
        ("gone.parquet", r"gone\.parquet does not exist"),
        (["s3://bucket/a.parquet"], "does not exist"),
        ([[1.0, 2.0]], r"cannot be taken from a builtins\.list"),
        ({"a": 1}, r"cannot be taken from a builtins\.dict\. Pass the path"),
        (pd.Series([1.0]), "Series"),
        (pl.LazyFrame({"a": [1]}), "LazyFrame"),
        (da.ones((5, 3)), r"cannot be taken from a dask\.array.*Write a Dask dataframe to files first"),
        (np.arange(3.0), r"1 dimension \(shape \(3,\)\).*reshape\(-1, 1\)"),
        (np.zeros((0, 3)), "no rows"),
        (np.zeros((3, 0)), "no columns"),
        (np.array([["a"]]), "column '0' holds string"),
        (np.array([["2024"]], "M8[s]"), "column '0' holds timestamp"),
        (np.array([[1j]]), "no table of numbers"),
        (np.array([[None]]), "column '0' holds null"),
        (frame().assign(when=pd.Timestamp("2024")), "'when' holds timestamp"),
        (frame().assign(name="x"), "pandas DataFrame: column 'name' holds"),
        (frame().assign(z=1j), "no table of numbers"),
        (frame().set_axis(["a", "b", "a"], axis=1), "more than one column named 'a'"),
        (pl.DataFrame({"a": ["x"]}), "polars DataFrame: column 'a' holds large_string"),
        (pl.DataFrame({"a": [None]}), "column 'a' holds null"),
        (pl.DataFrame({"a": [1]}).cast(pl.Datetime), "'a' holds timestamp"),
    ],
)
def test_what_is_no_table_of_numbers(given, message, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(TableError, match=message):
        open_source(given, tmp_path)


@pytest.mark.parametrize(
    ("column", "message"),
    [
        (pa.array(["x"]), "column 'bad' holds string, but a detector needs numbers"),
        (pa.array([0], pa.timestamp("us")), r"column 'bad' holds timestamp\[us\].*columns=\[\.\.\.\]"),
        (pa.array([0], pa.date32()), "holds date32"),
        (pa.array([0], pa.duration("s")), "holds duration"),
        (pa.array([[1.0]]), "holds list<"),
        (pa.array([{"a": 1}]), "holds struct<"),
        (pa.nulls(1), "holds null"),
    ],
)
def test_parquet_columns_of_other_types(column, message, tmp_path):
    good = write(tmp_path / "a.parquet", pa.table({"bad": [1.0], "flow": [2.0]}))
    bad = write(tmp_path / "b.parquet", pa.table({"bad": column, "flow": [3.0]}))
    with pytest.raises(TableError, match=rf"b\.parquet: .*{message}"):
        open_source([good, bad])
    np.testing.assert_array_equal(gathered(open_source([good, bad], columns=["flow"])), [[2], [3]])


def test_folders_and_files_without_rows_or_columns_or_with_repeated_names(tmp_path):
    with pytest.raises(TableError, match=r"has no files named \*\.parquet\. Check the path"):
        open_source(tmp_path)
    (tmp_path / "year=2024").mkdir()
    path = write(tmp_path / "year=2024" / "a.parquet", frame(ROWS[:0]))
    with pytest.raises(TableError, match=r"some in its folders .*year=2024.*a\.parquet.*list of their paths"):
        open_source(tmp_path)
    with pytest.raises(TableError, match="list of 2 Parquet files has no rows"):
        open_source([path, path])
    index_only = write(tmp_path / "b.parquet", frame()[[]].set_index(pd.Index(np.arange(60) % 7)))
    with pytest.raises(TableError, match=r"b\.parquet has no columns"):
        open_source(index_only)
    twice = pa.Table.from_arrays([pa.array([1.0]), pa.array([2.0]), pa.array([3.0])], names=["a", "a", "b"])
    path = write(tmp_path / "c.parquet", twice)
    with pytest.raises(TableError, match=r"c\.parquet has more than one column named 'a'"):
        open_source(path)
    assert open_source(path, columns=["b"]).pieces[0].load() == 3


def test_parquet_files_with_other_columns(tmp_path):
    whole, part = write(tmp_path / "a.parquet"), write(tmp_path / "b.parquet", frame()[["flow", "load"]])
    more = write(tmp_path / "c.parquet", frame().assign(noise=1.0).drop(columns="head"))
    with pytest.raises(TableError, match=r"b\.parquet has other columns than .*a\.parquet: it lacks 'head'\."):
        open_source([whole, part])
    with pytest.raises(TableError, match=r"a\.parquet has other columns .*: it has 'head' besides\."):
        open_source([part, whole])
    with pytest.raises(TableError, match="lacks 'head' and has 'noise' besides"):
        open_source([whole, more])
    with pytest.raises(TableError, match=r"b\.parquet has no column 'head'"):
        open_source([whole, part], columns=["head"])
    assert gathered(open_source([whole, part, more], columns=["flow"])).shape == (180, 1)


@pytest.mark.parametrize("content", [b"", b"time,flow\n1,2\n", b"PAR1" + bytes(40) + b"PAR1", None])
def test_parquet_files_whose_footer_cannot_be_read(content, tmp_path):
    path = parquet_file(tmp_path)
    path.write_bytes(path.read_bytes()[:-30] if content is None else content)
    with pytest.raises(TableError, match=r"rows\.parquet: damaged, or no Parquet table \(.*Write the file again"):
        open_source([write(tmp_path / "good.parquet"), path])


def test_a_missing_package_is_named(tmp_path, monkeypatch):
    path = parquet_file(tmp_path)
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(TableError, match=r"Reading Parquet needs the extra 'dask': pip install 'penstock\[dask\]'"):
        open_source(path)


# What is refused at loading


@pytest.mark.parametrize(
    ("value", "message"),
    [
        (None, r"holds no value \(null or NaN\), the first of 1 such value among 60\. Missing.*detector\.fit"),
        (np.nan, r"holds no value.*fill them, leave out such rows \(1 row here\), or fit on one machine"),
        (-np.inf, r"holds -inf \(infinity\).*Replace such values by finite numbers"),
    ],
)
def test_values_that_are_missing_or_infinite_are_found(value, message, tmp_path, small_pieces):
    flow = [*ROWS[:57, 0], value, *ROWS[58:, 0]]
    table = pa.table({"load": ROWS[:, 2], "flow": pa.array(flow, pa.float64()), "head": ROWS[:, 1]})
    path = write(tmp_path / "a.parquet", table)
    bad = open_source(path).pieces[2]
    place = r"a\.parquet, row group 2: row 17 \(row 57 of the whole\), column 'flow'"
    with pytest.raises(TableError, match=f"{place}, {message}"):
        bad.load()
    rows = table.to_pandas()
    for given, named in ((rows, r"pandas DataFrame.*'flow'"), (rows.to_numpy(), r"numpy ndarray.*'1'")):
        opened = open_source(given, folder=tmp_path)
        with pytest.raises(TableError, match=rf"^The {named}, holds"):
            opened.pieces[5].load()


def test_no_damage_breaks_the_loader(tmp_path):
    """Wherever bytes are flipped, there are rows or a `TableError` with the name of the file, never anything else."""
    path = write(tmp_path / "a.parquet", compression="snappy", write_page_checksum=True)
    whole, generator = path.read_bytes(), np.random.default_rng(0)
    messages = []
    for _ in range(200):
        content = bytearray(whole)
        for place in generator.integers(4, len(whole) - 8, size=3):
            content[place] ^= int(generator.integers(1, 256))
        path.write_bytes(content)
        try:
            for piece in open_source(path).pieces:
                piece.load()
        except TableError as error:
            messages.append(str(error))
    assert len(messages) > 100
    assert all("a.parquet" in message for message in messages)


def test_files_that_change_or_go_after_opening(tmp_path):
    path = parquet_file(tmp_path)
    pieces = open_source(path).pieces
    write(path, frame(ROWS[:30]))
    for piece in pieces[1:]:
        with pytest.raises(TableError, match=r"was changed after it was opened.*Open the source again"):
            piece.load()
    write(path, frame()[["flow", "head"]])
    with pytest.raises(TableError, match="row group 0: the file was changed"):
        pieces[0].load()
    path.unlink()
    with pytest.raises(TableError, match="row group 0: the file is gone, or this machine does not see it"):
        pieces[0].load()


def test_written_pieces_that_go_or_change(tmp_path):
    piece = open_source(ROWS, folder=tmp_path).pieces[0]
    file = Path(piece.path)
    file.write_bytes(file.read_bytes()[:200])
    with pytest.raises(TableError, match=r"ndarray, row group 0: damaged, or no Parquet table"):
        piece.load()
    with pytest.raises(TableError, match=r"cannot be written to.*another folder"):
        open_source(ROWS, folder=file)


def test_a_client_that_cannot_connect_leaves_dask_as_it_was():
    before = dask.config.get("scheduler", None)
    with pytest.raises(ClusterError), connect("nowhere://10.0.0.5"):
        pass
    assert dask.config.get("scheduler", None) == before
    assert da.ones(4, chunks=2).sum().compute() == 4
