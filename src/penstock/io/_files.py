"""Read what a source means into raw tables: text, Excel, Parquet, and tables of pandas, polars and NumPy.

The kind of a file is known by its first bytes. Excel and Parquet need the extras `excel` and `files`; how large their
content becomes is counted while it is unpacked, so that a small file cannot fill the memory.
"""

from __future__ import annotations

import gzip
import io
import os
import re
import stat
import zipfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from difflib import get_close_matches
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Any, BinaryIO, cast

import numpy as np
import pandas as pd

from penstock._messages import listed, option, quoted
from penstock.io._clock import seems_clock_alone, seems_dated
from penstock.io._combine import (
    RawTable,
    have_same_columns,
    one_below_other,
    own_names,
    with_names,
    without_fillers,
)
from penstock.io._layout import GZIP, PARQUET, ZIPPED, kind_of_file
from penstock.io._text import TextOptions, TextSource, most_cells, read_text
from penstock.io._time_texts import is_time, with_dates
from penstock.io.feeds import by_numbers
from penstock.io.table import Note, ReadLog, TableError
from penstock.io.times import as_texts

_DATE_OF_FILE = re.compile(
    r"(?<!\d)(?:(?P<iso>(?:19|20)\d\d([-_.]?)\d\d\2\d\d)|(?P<day_first>\d\d\.\d\d\.\d{4}))(?!\d)"
)
_GZIP_RATIO = 1032  # the most bytes that one byte packed by deflate can hold
_ENDINGS = (".csv", ".tsv", ".txt", ".dat", ".parquet", ".pq", ".xlsx", ".xlsm")
_LARGE = 2**20  # cells of a Parquet file for which threads are worth their start
_DEEPEST = 8  # folders below the one that is named
_MOST_TEXT = 2**30  # bytes of one sheet, written as CSV
_MOST_ROWS = 2**20  # of an Excel sheet
# Bytes of parts of a workbook of which openpyxl makes objects before it reads the first cell.
_LARGEST_PARTS = {"xl/workbook.xml": 2**20, "xl/styles.xml": 2**22}
_MOST_UNPACKED, _MOST_PACKED = 2**26, 200  # bytes from which on a part may not be packed better than by this factor
_MOST_CELLS = 2**27  # of one sheet, also empty ones: openpyxl makes them one by one


@dataclass(frozen=True)
class ReadOptions:
    """How files are read: text, the sheet of a workbook, the largest size, and names to give to all columns."""

    text: TextOptions
    sheet: str | None
    max_bytes: int
    names: tuple[str, ...] = ()


def files_of(source: str | os.PathLike[str] | Sequence[str | os.PathLike[str]], log: ReadLog) -> list[Path]:
    """Return the files that a path, a folder or a list of paths means."""
    if not isinstance(source, str | os.PathLike):
        if not isinstance(source, Sequence) or not all(isinstance(each, str | os.PathLike) for each in source):
            raise TableError(
                f"A table is a path, a folder, a list of paths, or a pandas, polars or NumPy table; got "
                f"{type(source).__name__}."
            )
        if not source:
            raise TableError("The list of paths is empty. Name at least one file.")
        return [file for each in source for file in files_of(each, log)]
    path = Path(source)
    try:
        if not stat.S_ISDIR(path.stat().st_mode):
            return [path]
        files, others = _tables_in(path)
        if not files:
            files, others = _tables_below(path)
    except FileNotFoundError:
        raise TableError(_no_such_file(path)) from None
    except (OSError, ValueError) as error:
        if isinstance(error, TableError):
            raise
        raise TableError(f"{str(path)[:200]!r} cannot be opened: {_reason(error)}. Check the path.") from None
    if not files:
        held = f"; it holds {listed(others, most=5)}" if others else ", and nothing else"
        raise TableError(f"The folder {path} holds no table ({', '.join(_ENDINGS)}, or those with .gz){held}.")
    if others:
        log.add("other files", f"In {path}, {listed(others, most=5)} was not read.", len(others))
    return files


def _tables_in(folder: Path) -> tuple[list[Path], list[str]]:
    """Return the tables of a folder in order of their names, and the names of all else."""
    files, others = list[str](), list[str]()
    with os.scandir(folder) as entries:
        for entry in entries:
            if entry.name.startswith((".", "~$")):  # hidden files and the lock files of Excel
                continue
            is_table = entry.name.lower().removesuffix(".gz").endswith(_ENDINGS) and entry.is_file()
            (files if is_table else others).append(entry.name)
    return [folder / name for name in sorted(files, key=by_numbers)], sorted(others)


def _tables_below(folder: Path, depth: int = 0) -> tuple[list[Path], list[str]]:
    """Return the tables in the folders below, as data sets and folders for each day have them, and what is not read."""
    if (folder / "_delta_log").is_dir() or any(folder.glob("metadata/*.metadata.json")):
        raise TableError(
            f"{folder} is a Delta or Iceberg table, of which some files may be out of date. Export it as plain Parquet."
        )
    files, others = _tables_in(folder)
    for name in sorted(others, key=by_numbers):
        below = folder / name
        if name.startswith("_") or below.is_symlink() or not below.is_dir() or depth >= _DEEPEST:
            continue
        found, left = _tables_below(below, depth + 1)
        files += found
        others = [other for other in others if other != name or not found] + [f"{name}/{other}" for other in left]
    return files, others


def _no_such_file(path: Path) -> str:
    parent = path.parent
    if not parent.is_dir():
        return f"There is no file {path}, nor a folder {parent}. Check the path."
    try:
        close = get_close_matches(path.name, [entry.name for entry in parent.iterdir()], n=1)
    except OSError:
        close = []
    return f"There is no file {path}. " + (f"Did you mean {parent / close[0]}?" if close else "Check the path.")


def _reason(error: Exception) -> str:
    return (error.strerror or str(error)) if isinstance(error, OSError) else str(error)


def read_files(paths: Sequence[Path], options: ReadOptions, log: ReadLog) -> list[RawTable]:
    """Read files of any known kind; all together may hold no more than one file may."""
    _refuse_too_many_bytes(paths, options.max_bytes)
    tables: list[RawTable] = []
    further: list[RawTable] = []  # below the first of a file
    cells = 0
    for path in paths:
        raw, *more = _read_file(path, options, log)
        tables.append(raw)
        further += more
        cells += raw.frame.size
        if len(paths) > 1 and cells > most_cells(options.max_bytes):
            raise TableError(
                f"The first {len(tables):,} of {len(paths):,} files hold {cells:,} values, and all of them may not fit "
                f"into memory. Read fewer files, or pass a larger {option('max_bytes')}.",
                "max_bytes",
            )
    return [*_with_dates_of_files(_with_partitions(tables, paths, log), log), *further]


def _refuse_too_many_bytes(paths: Sequence[Path], max_bytes: int) -> None:
    """Raise before anything is read if the files are larger than one may be; of Parquet, four times as large.

    Packed texts count as they are here, and as they are unpacked when they are read.
    """
    if len(paths) < 2:
        return
    sizes = [(path.stat().st_size, path.suffix.lower() in (".parquet", ".pq")) for path in paths if path.is_file()]
    if sum(size / 4 if packed else size for size, packed in sizes) > max_bytes:
        held, most = (_size_in_words(size) for size in (sum(size for size, _ in sizes), max_bytes))
        raise TableError(
            f"The {len(paths):,} files hold {held}; texts of up to {most} are read at once, as more may not fit into "
            f"memory. Read fewer files, or pass a larger {option('max_bytes')}.",
            "max_bytes",
        )


def _size_in_words(size: float) -> str:
    """Return a number of bytes, large ones in GB.

    >>> _size_in_words(50e9), _size_in_words(2048)
    ('50 GB', '2,048 bytes')
    """
    return f"{size / 1e9:,.3g} GB" if size >= 1e9 else f"{size:,.0f} bytes"


def _with_partitions(tables: list[RawTable], paths: Sequence[Path], log: ReadLog) -> list[RawTable]:
    """Add what the names of folders say (unit=7) as columns of text, if it differs; a date is known from the rows."""
    keys = [
        {key: value for part in path.parts[:-1] for key, _, value in [part.partition("=")] if value} for path in paths
    ]
    names = list(dict.fromkeys(name for each in keys for name in each))
    values = {name: {each.get(name, "") for each in keys} for name in names}
    dates = [name for name in names if _are_dates(name, values[name])]
    kept = [name for name in names if name not in dates and len(values[name]) > 1]
    if dates:
        said = f"The folders are named by {listed(dates)}; the time of the rows is what counts."
        log.add("partitions", said, len(dates), tuple(dates))
    for name in kept:
        if any(name in table.frame.columns for table in tables):
            continue  # the files have it too
        said = f"Column {quoted(name)} comes from the names of folders, which have {len(values[name]):,} values of it."
        log.add("partitions", said, len(values[name]), (name,))
        tables = [
            replace(table, frame=table.frame.assign(**{name: each.get(name)}))
            for table, each in zip(tables, keys, strict=True)
        ]
    if kept and have_same_columns(tables):  # one table, maybe of readings by tag
        return [one_below_other(tables, f"{len(tables):,} files")]
    return tables


def _with_dates_of_files(tables: list[RawTable], log: ReadLog) -> list[RawTable]:
    """Put the date in the name of each file before its times of day, where rows have no date and are of one day."""
    dated = []
    for table in tables:
        found = list(_DATE_OF_FILE.finditer(table.name))
        if len(found) != 1:
            return tables
        clocks = [name for name in table.frame.columns if seems_clock_alone(table.frame[name])]
        if len(clocks) != 1 or seems_dated(table.frame):
            return tables
        day = found[0]["iso"] or "{2}-{1}-{0}".format(*re.split(r"\D", found[0]["day_first"]))
        rows = as_texts(table.frame[clocks[0]])
        texts = with_dates(rows, [day, *[""] * (len(rows) - 1)])
        if texts is None or not is_time(day):
            return tables
        dated.append(replace(table, frame=table.frame.assign(**{clocks[0]: texts[0]})))
    said = f"The times have no date: it was taken from the name of each file, as in {quoted(tables[0].name)}."
    log.add("dates of files", said, len(tables), (clocks[0],))
    return dated


def _are_dates(name: str, values: Iterable[str]) -> bool:
    """Return whether these name days or parts of dates.

    >>> _are_dates("day", {"2025-03-10", "2025-03-11"}), _are_dates("month", {"3", "4"}), _are_dates("unit", {"1", "2"})
    (True, True, False)
    """
    whole = [value for value in values if value != "__HIVE_DEFAULT_PARTITION__"]
    parts = re.fullmatch(r"(?i)y+|m+|d+|h+|year|month|day|hour|minute|week|quarter|date|dt|ds", name) is not None
    return all(is_time(value) or (parts and value.isdecimal()) for value in whole)


def _read_file(path: Path, options: ReadOptions, log: ReadLog) -> list[RawTable]:
    name, most = path.name, options.max_bytes
    try:
        kind, size = kind_of_file(path), path.stat().st_size
        if kind == PARQUET:
            tables = [_read_parquet(path, most, log)]
        elif kind == ZIPPED:
            tables = _read_workbook(path, options, log)
        elif kind == GZIP:
            unpacked = partial(cast(Callable[..., BinaryIO], gzip.GzipFile), path, "rb")
            tables = read_text(TextSource(name, unpacked, most, most_bytes=_GZIP_RATIO * size), options.text, log)
        else:
            plain = TextSource(name, lambda: path.open("rb", buffering=0), most, path, size)
            tables = read_text(plain, options.text, log)
    except PermissionError:
        raise TableError(
            f"{path} may not be read by you. Ask for permission, or copy it to a place of yours."
        ) from None
    except OSError as error:
        raise TableError(f"{path} cannot be read: {_reason(error)}. Check the path and the disk.") from None
    if options.names and len(tables) > 1:
        raise TableError(f"{name} holds several tables, which cannot all have these names.", "names")
    named = [with_names(raw, options.names, log) if options.names else raw for raw in tables]
    return [without_fillers(raw, log) for raw in named]


# Excel.


def _read_workbook(path: Path, options: ReadOptions, log: ReadLog) -> list[RawTable]:
    """Read the sheet that is named; else all that hold a table with times, each as a table; else the first."""
    sources = _sheets_as_texts(path, options.sheet, min(options.max_bytes, _MOST_TEXT))
    first, source = next(sources)
    if options.sheet is not None:
        return read_text(source, options.text, log)
    tables: dict[str, list[RawTable]] = {}
    names, notes = [first], list[Note]()
    for name, each in chain([(first, source)], sources):
        names += [name] if name != first else []
        own_log = ReadLog(path.name, log.strict)
        try:
            read = read_text(each, options.text, own_log)
        except TableError:  # a sheet of remarks, or an empty one
            continue
        if seems_dated(read[0].frame):
            tables[name] = read
            notes += own_log.notes
    if not tables or len(names) == 1:
        if len(names) > 1:
            log.add("sheets", f"Of the sheets of {path.name}, {listed(names)}, the first was read.", len(names))
        return read_text(source, options.text, log)
    others = [name for name in names if name not in tables]
    left = f" Left out, as without times: {listed(others)}." if others else ""
    log.add("sheets", f"Of {path.name} these sheets were read: {listed(tables)}.{left}", len(names))
    log.notes += notes
    if len(tables) == 1:
        return next(iter(tables.values()))
    return [replace(each[0], name=f"{path.name}: {name}") for name, each in tables.items()]


def _sheets_as_texts(path: Path, sheet: str | None, max_bytes: int) -> Iterator[tuple[str, TextSource]]:
    """Yield sheets of a workbook as texts with commas: the one named, or all; together no more than one may be."""
    name = path.name
    _check_workbook(path, max_bytes)
    try:
        from openpyxl import load_workbook
    except ImportError:
        raise TableError(
            f"{name} is an Excel file, and reading it needs openpyxl. Install it with: pip install 'penstock[excel]', "
            f"or save the sheet as CSV."
        ) from None
    try:
        book = load_workbook(path, read_only=True, data_only=True)
    except Exception as error:  # openpyxl raises any kind of error for a damaged file
        raise TableError(f"{name} is a damaged Excel file ({str(error)[:150]}). Save it again.") from None
    try:
        names = [each.title for each in book.worksheets]
        if not names or (sheet is not None and sheet not in names):
            raise TableError(f"{name} has no such sheet with cells. Its sheets are {listed(names) or 'none'}.")
        for each in names if sheet is None else [sheet]:
            chosen = book[each]
            chosen.reset_dimensions()  # the size that a sheet states may be wrong
            content = _as_csv(chosen.iter_rows(values_only=True), name, max_bytes)
            max_bytes -= len(content)
            yield each, TextSource(name, partial(io.BytesIO, content), max_bytes + len(content))
    finally:
        book.close()


def _check_workbook(path: Path, max_bytes: int) -> None:
    """Raise unless this is an archive of Excel that unpacks to a reasonable size."""
    try:
        with zipfile.ZipFile(path) as archive:
            files = archive.infolist()
    except (zipfile.BadZipFile, OSError, ValueError, NotImplementedError) as error:
        raise TableError(f"{path.name} is a damaged archive ({str(error)[:150]}). Copy it again.") from None
    if not any(file.filename.startswith("xl/") for file in files):
        held = listed([file.filename for file in files], most=3) or "nothing"
        raise TableError(f"{path.name} is a zip archive (of {held}). Unpack it and read what is inside.")
    size = sum(file.file_size for file in files)
    if size > 4 * max_bytes:
        raise TableError(f"{path.name} holds {size:,} bytes when unpacked. Save the sheet as CSV and read that.")
    for file in files:  # one text may be of any length, and openpyxl holds it whole
        most = max(_MOST_UNPACKED, _MOST_PACKED * file.compress_size)
        if file.file_size > _LARGEST_PARTS.get(file.filename, most):
            raise TableError(
                f"{path.name} holds a part {quoted(file.filename)} of {file.file_size:,} bytes, which no program "
                f"writes. Save the sheet as CSV and read that."
            )


def _as_csv(rows: Iterator[tuple[Any, ...]], name: str, max_bytes: int) -> bytes:
    """Write a sheet as text; the size of each row is counted before the next is made."""
    lines: list[tuple[bytes, int]] = []  # and the number of cells
    size = made = width = 0
    most = min(_MOST_CELLS, most_cells(max_bytes))
    try:
        for number, row in enumerate(rows, start=1):
            filled = row.count(None) < len(row)
            cells = ["" if cell is None else _as_field(cell) for cell in row] if filled else []
            made, size, width = made + len(row), size + sum(map(len, cells)), max(width, len(cells))
            problem = ""
            if number > _MOST_ROWS:
                problem = f"has more than {_MOST_ROWS:,} rows, which no sheet has"
            elif max(made, width * number) > most:
                problem = f"has more than {most:,} cells up to row {number:,}"
            elif size > max_bytes:
                problem = f"holds more than {max_bytes:,} bytes of text"
            if problem:
                raise TableError(f"{name} {problem}; it may not fit into memory. Save the sheet as CSV and read that.")
            lines.append((",".join(cells).replace("\0", "").encode("utf-8", errors="replace"), len(cells)))
    except TableError:
        raise
    except Exception as error:  # as in `_sheets_as_texts`
        raise TableError(f"{name} is a damaged Excel file ({quoted(error, 150)}). Save it again.") from None
    return b"\n".join(line + b"," * (width - max(1, cells)) for line, cells in lines)


def _as_field(cell: Any) -> str:
    """Return a cell as the csv module would write it, but much faster where the text is long."""
    text = repr(cell) if isinstance(cell, float) else str(cell)
    return '"' + text.replace('"', '""') + '"' if any(sign in text for sign in ',"\n\r') else text


# Parquet.


def need_pyarrow(what: str) -> None:
    """Raise unless Parquet can be read and written here."""
    try:
        import pyarrow.parquet  # noqa: F401
    except ImportError:
        raise TableError(f"{what} needs pyarrow. Install it with: pip install 'penstock[files]'") from None


def _read_parquet(path: Path, max_bytes: int, log: ReadLog) -> RawTable:
    name = path.name
    need_pyarrow(f"{name} is a Parquet file, and reading it")
    import pyarrow
    from pyarrow import parquet

    try:
        with parquet.ParquetFile(path) as file:
            metadata, schema = file.metadata, file.schema_arrow
        cells = metadata.num_rows * metadata.num_columns
        if cells > most_cells(max_bytes):
            raise TableError(f"{name} holds {cells:,} values. Read a part, or pass a larger {option('max_bytes')}.")
        columns = [metadata.schema.column(number) for number in range(metadata.num_columns)]
        texts = [column.path for column in columns if column.physical_type == "BYTE_ARRAY"]
        batches, size, rows, large = [], 0, 0, cells > _LARGE
        # A text that comes again is kept once.
        with parquet.ParquetFile(path, read_dictionary=texts, metadata=metadata) as file:
            for batch in file.iter_batches(use_threads=large):
                size += sum(_text_size(column) for column in batch.columns) if texts else 0
                rows += batch.num_rows
                if size > max_bytes or rows * batch.num_columns > most_cells(max_bytes):
                    raise TableError(
                        f"{name} holds more than {max_bytes:,} bytes of text, or an eighth as many values, which may "
                        f"not fit into memory. Read a part of it, or pass a larger {option('max_bytes')}."
                    )
                batches.append(batch)
            frame = pyarrow.Table.from_batches(batches, file.schema_arrow).cast(schema).to_pandas(use_threads=large)
    except TableError:
        raise
    except Exception as error:  # pyarrow raises any kind of error for a damaged file
        raise TableError(f"{name} is damaged or no Parquet table ({quoted(error, 150)}). Write it again.") from None
    return _from_pandas(frame, name, log)


def _text_size(column: Any) -> int:
    """Return the bytes of the texts in a column, each as often as it comes, also of texts in lists and records."""
    import pyarrow
    from pyarrow import compute

    types = pyarrow.types
    if types.is_dictionary(column.type) and not types.is_primitive(column.type.value_type):
        return compute.sum(compute.binary_length(column.dictionary).take(column.indices)).as_py() or 0
    if types.is_struct(column.type):
        return sum(map(_text_size, column.flatten()))
    if types.is_map(column.type):
        return _text_size(column.keys) + _text_size(column.items)
    return _text_size(column.values) if types.is_nested(column.type) else 0


def parquet_pieces(frames: Iterable[pd.DataFrame]) -> Iterator[bytes]:
    """Yield the bytes of a Parquet file with these tables one after another; no indices; types as in the first."""
    need_pyarrow("Writing Parquet")
    import pyarrow
    from pyarrow import parquet

    sink, writer = _Drain(), None
    for frame in frames:
        schema = None if writer is None else writer.schema
        part = pyarrow.Table.from_pandas(frame, schema=schema, preserve_index=False)
        writer = writer or parquet.ParquetWriter(sink, part.schema)
        writer.write_table(part)
        yield sink.drain()
    if writer is not None:
        writer.close()
        yield sink.drain()


class _Drain(io.RawIOBase):
    """A file whose content is taken away piece by piece while it is written."""

    def __init__(self) -> None:
        self._content, self._position = bytearray(), 0

    def writable(self) -> bool:
        return True

    def write(self, data: Any) -> int:
        before = len(self._content)
        self._content += data
        self._position += len(self._content) - before
        return len(self._content) - before

    def tell(self) -> int:
        return self._position

    def drain(self) -> bytes:
        content, self._content = bytes(self._content), bytearray()
        return content


# Tables in memory.


def is_in_memory(source: object) -> bool:
    known = isinstance(source, pd.DataFrame | pd.Series | np.ndarray | Mapping)
    return known or hasattr(source, "to_pandas") or hasattr(source, "collect")


def are_areas(source: object) -> bool:
    """Return whether this is a table or a path for each area of a plant, rather than the values of each column.

    >>> are_areas({"turbine": pd.DataFrame(), "generator": "generator.csv"}), are_areas({"flow": [1.0, 2.0]})
    (True, False)
    """
    if not isinstance(source, Mapping) or not source:
        return False
    kinds = [_is_area(each) for each in source.values()]
    if any(kinds) and not all(kinds):
        odd = [str(name) for name, kind in zip(source, kinds, strict=True) if not kind]
        raise TableError(
            f"Some values are tables or paths, and {listed(odd, most=3)} is neither. Give a table for each area."
        )
    return all(kinds)


def _is_area(value: object) -> bool:
    frame = isinstance(value, pd.DataFrame | Mapping | str | os.PathLike)
    several = hasattr(value, "get_columns") or hasattr(value, "collect")  # tables of polars
    return frame or several or (isinstance(value, np.ndarray) and (value.ndim == 2 or value.dtype.names is not None))


def from_memory(source: Any, log: ReadLog) -> RawTable:
    """Read a table of pandas, polars or NumPy; the source itself is not changed."""
    if hasattr(source, "collect"):  # lazy tables of polars
        source = source.collect()
    if isinstance(source, np.ndarray):
        return _from_numpy(source)
    if isinstance(source, pd.Series):
        frame = source.to_frame(source.name if source.name is not None else "values")
        return _from_pandas(frame, "the series", log)
    if hasattr(source, "get_columns"):
        return _from_polars(source)
    try:
        if not isinstance(source, pd.DataFrame):
            source = source.to_pandas() if hasattr(source, "to_pandas") else pd.DataFrame(dict(source))
    except (ValueError, TypeError) as error:
        raise TableError(f"The table cannot be read ({error}). Pass a pandas table.") from None
    return _from_pandas(source, "the table", log)


def _from_pandas(frame: pd.DataFrame, name: str, log: ReadLog) -> RawTable:
    """Read a pandas table; an index that says more than the number of the row becomes a column."""
    levels = [frame.index.get_level_values(level) for level in range(frame.index.nlevels)]
    levels = [level for level in levels if level.name is not None or level.dtype.kind not in "iuf"]
    if not levels and not frame.index.equals(pd.RangeIndex(len(frame))) and not isinstance(frame.index, pd.RangeIndex):
        log.add("index", f"The index of {name} has no name and holds numbers; it is left out.", 1)
    taken, names = [str(column) for column in frame.columns], []
    for level in levels:
        usual = "time" if isinstance(level, pd.DatetimeIndex) else "index"
        wanted = str(usual if level.name is None else level.name)
        names.append(f"index {wanted}" if wanted in taken else wanted)
    columns: list[Any] = list(frame.columns)
    for column in columns:
        if isinstance(column, tuple):  # of several levels
            names.append(" ".join(str(part) for part in column if str(part)))
        else:
            numbered = isinstance(column, int | np.integer)
            names.append(f"column {column + 1}" if numbered else str(column).strip())
    called, unnamed = own_names(names, name)
    copy = frame.reset_index(drop=True)
    if levels:
        copy = pd.concat([*(pd.Series(level, index=copy.index) for level in levels), copy], axis=1)
    copy.columns = pd.Index(called)
    return RawTable(name, copy, unnamed=unnamed)


def _from_numpy(array: np.ndarray[Any, Any]) -> RawTable:
    if array.dtype.names:
        return RawTable("the array", pd.DataFrame({name: array[name] for name in array.dtype.names}))
    if array.ndim != 2:
        raise TableError(
            f"The array has {array.ndim} dimensions; a table has two, rows and columns. For a single column use "
            f"X.reshape(-1, 1)."
        )
    if array.dtype.kind not in "biufOUS":
        raise TableError(f"The array holds {array.dtype}, not numbers or text. Convert it, or pass a pandas table.")
    names = [f"column {number}" for number in range(1, array.shape[1] + 1)]
    return RawTable("the array", pd.DataFrame(array.astype(str) if array.dtype.kind == "S" else array, columns=names))


def _from_polars(table: Any) -> RawTable:
    """Read column by column, without pyarrow, which the conversion of polars itself needs."""
    columns: dict[str, Any] = {}
    for column in table.get_columns():
        kind = str(column.dtype)
        if kind.startswith("Datetime"):
            times = pd.DatetimeIndex(column.to_numpy())
            zone = getattr(column.dtype, "time_zone", None)
            columns[column.name] = times if zone is None else times.tz_localize("UTC").tz_convert(zone)
        elif kind == "Date" or kind.startswith("Duration") or (column.dtype.is_numeric() and "Decimal" not in kind):
            columns[column.name] = column.to_numpy()
        else:
            columns[column.name] = pd.Series(column.to_list())
    names, _ = own_names(list(columns), "the table")
    return RawTable("the table", pd.DataFrame(dict(zip(names, columns.values(), strict=True))))
