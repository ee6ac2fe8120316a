"""Find the files that a path means, tell their kind by their first bytes, and read each into a raw table."""

from __future__ import annotations

import gzip
import os
import re
import stat
from collections.abc import Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path
from typing import BinaryIO, cast

from penstock._messages import listed
from penstock.io._binary_files import excel_as_text, read_parquet
from penstock.io._combine import RawTable, with_names, without_fillers
from penstock.io._layout import GZIP, PARQUET, ZIPPED, kind_of_file
from penstock.io._text import TextOptions, TextSource, read_text
from penstock.io.table import Notebook, TableError

_GZIP_RATIO = 1032  # the most bytes that come of one packed by deflate
_ENDINGS = (".csv", ".tsv", ".txt", ".dat", ".parquet", ".pq", ".xlsx", ".xlsm")


@dataclass(frozen=True)
class FileOptions:
    """How files are read: text, the sheet of a workbook, and how large a file may be."""

    text: TextOptions
    sheet: str | None
    max_bytes: int
    names: tuple[str, ...] = ()  # of all columns, instead of their own


def files_of(source: str | os.PathLike[str] | Sequence[str | os.PathLike[str]], notebook: Notebook) -> list[Path]:
    """The files that a path, a folder or a list of paths means."""
    if not isinstance(source, str | os.PathLike):
        if not isinstance(source, Sequence) or not all(isinstance(each, str | os.PathLike) for each in source):
            raise TableError(
                f"A table is a path, a folder, a list of paths, or a pandas, polars or NumPy table; got "
                f"{type(source).__name__}."
            )
        if not source:
            raise TableError("The list of paths is empty. Name at least one file.")
        return [file for each in source for file in files_of(each, notebook)]
    path = Path(source)
    try:
        is_folder = stat.S_ISDIR(path.stat().st_mode)
        entries = list(path.iterdir()) if is_folder else []
    except FileNotFoundError:
        raise TableError(_no_such_file(path)) from None
    except (OSError, ValueError) as error:
        raise TableError(f"{str(path)[:200]!r} cannot be opened: {_reason(error)}. Check the path.") from None
    return _tables_among(entries, path, notebook) if is_folder else [path]


def read_file(path: Path, options: FileOptions, notebook: Notebook) -> RawTable:
    """Read one file of any kind we know."""
    name = path.name
    try:
        kind = kind_of_file(path)
        if kind == PARQUET:
            return _finished(read_parquet(path, name, options.max_bytes, notebook), options, notebook)
        if kind == ZIPPED:
            source = excel_as_text(path, name, options.sheet, options.max_bytes, notebook)
        elif kind == GZIP:
            most = _GZIP_RATIO * path.stat().st_size
            source = TextSource(
                name, lambda: cast(BinaryIO, gzip.GzipFile(path, "rb")), options.max_bytes, most_bytes=most
            )
        else:
            source = TextSource(
                name, lambda: path.open("rb", buffering=0), options.max_bytes, path, path.stat().st_size
            )
        return _finished(read_text(source, options.text, notebook), options, notebook)
    except PermissionError:
        raise TableError(
            f"{path} may not be read by you. Ask for permission, or copy it to a place of yours."
        ) from None
    except OSError as error:
        raise TableError(f"{path} cannot be read: {_reason(error)}. Check the path and the disk.") from None


def _finished(raw: RawTable, options: FileOptions, notebook: Notebook) -> RawTable:
    return without_fillers(with_names(raw, options.names, notebook) if options.names else raw, notebook)


def _tables_among(entries: list[Path], folder: Path, notebook: Notebook) -> list[Path]:
    """The tables in a folder by name, numbers in names counted; hidden files and Excel's locks do not belong to it."""
    entries = [entry for entry in entries if not entry.name.startswith((".", "~$"))]
    files = [entry for entry in entries if entry.is_file() and _is_table_name(entry.name)]
    others = sorted(entry.name for entry in entries if entry not in files)
    if not files:
        held = f"; it holds {listed(others, most=5)}" if others else ", and nothing else"
        raise TableError(f"The folder {folder} holds no table ({', '.join(_ENDINGS)}, or those with .gz){held}.")
    if others:
        notebook.add("other files", f"In {folder}, {listed(others, most=5)} was not read.", len(others))
    return sorted(
        files, key=lambda file: [int(part) if part.isdigit() else part for part in re.split(r"(\d+)", file.name)]
    )


def _is_table_name(name: str) -> bool:
    return name.lower().removesuffix(".gz").endswith(_ENDINGS)


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
