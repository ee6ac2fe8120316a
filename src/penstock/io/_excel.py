"""Excel sheets; need the extra `excel`. A sheet is read as the CSV file that it would be saved as."""

from __future__ import annotations

import io
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from penstock._messages import listed, quoted
from penstock.io._errors import TableError
from penstock.io._notes import Notebook
from penstock.io._text_source import TextSource

_MOST_TEXT = 2**30  # bytes of one sheet, written as CSV
_MOST_ROWS = 2**20  # of a sheet of Excel
_MOST_CELLS = 2**27  # of one sheet, also empty ones: openpyxl makes them one by one
_NOTHING = (b"", 0)


def excel_as_text(path: Path, name: str, sheet: str | None, max_bytes: int, notebook: Notebook) -> TextSource:
    """One sheet of a workbook as a text with commas: the one named, or the first."""
    max_bytes = min(max_bytes, _MOST_TEXT)
    _refuse_other_archives(path, name, max_bytes)
    try:
        from openpyxl import load_workbook
    except ImportError:
        raise TableError(
            f"{name} is an Excel file, and reading it needs openpyxl. Install it with: pip install 'penstock[excel]', "
            f"or save the sheet as CSV."
        ) from None
    try:
        book = load_workbook(path, read_only=True, data_only=True)
    except Exception as error:  # openpyxl raises whatever comes up in a damaged file
        raise TableError(f"{name} is a damaged Excel file ({str(error)[:150]}). Save it again.") from None
    try:
        names = [each.title for each in book.worksheets]
        if sheet is None and len(names) > 1:
            notebook.add("sheets", f"Of the sheets of {name}, {listed(names)}, the first was read.", len(names))
        if not names or (sheet is not None and sheet not in names):
            raise TableError(f"{name} has no such sheet with cells. Its sheets are {listed(names) or 'none'}.")
        chosen = book[sheet if sheet is not None else names[0]]
        chosen.reset_dimensions()  # what a sheet says of its size may be wrong
        content = _as_csv(chosen.iter_rows(values_only=True), name, max_bytes)
    finally:
        book.close()
    return TextSource(name, lambda: io.BytesIO(content), max_bytes)


def _refuse_other_archives(path: Path, name: str, max_bytes: int) -> None:
    try:
        with zipfile.ZipFile(path) as archive:
            files = archive.infolist()
    except (zipfile.BadZipFile, OSError, ValueError, NotImplementedError) as error:
        raise TableError(f"{name} is a damaged archive ({str(error)[:150]}). Copy it again.") from None
    if not any(file.filename.startswith("xl/") for file in files):
        held = listed([file.filename for file in files], most=3) or "nothing"
        raise TableError(f"{name} is a zip archive (of {held}). Unpack it and read what is inside.")
    size = sum(file.file_size for file in files)
    if size > 4 * max_bytes:
        raise TableError(f"{name} holds {size:,} bytes when unpacked. Save the sheet as CSV and read that.")


def _as_csv(rows: Iterator[tuple[Any, ...]], name: str, max_bytes: int) -> bytes:
    """The sheet as text. What comes of each row is counted before the next is made."""
    lines: list[tuple[bytes, int]] = []  # and how many cells each has
    size = made = width = 0
    most = min(_MOST_CELLS, max_bytes // 2)  # 8 bytes each, of four times max_bytes
    try:
        for row in rows:
            if len(lines) == _MOST_ROWS:
                raise _too_large(name, f"has more than {_MOST_ROWS:,} rows, which no sheet has")
            made += len(row)
            if max(made, width * (len(lines) + 1)) > most:
                raise _too_large(name, f"has more than {most:,} cells up to row {len(lines) + 1:,}")
            if row.count(None) == len(row):
                lines.append(_NOTHING)
                continue
            cells = ["" if cell is None else _as_field(_written(cell)) for cell in row]
            size += sum(map(len, cells))
            if size > max_bytes:
                raise _too_large(name, f"holds more than {max_bytes:,} bytes of text")
            width = max(width, len(cells))
            if width * (len(lines) + 1) > most:
                raise _too_large(name, f"has more than {most:,} cells up to row {len(lines) + 1:,}")
            lines.append((",".join(cells).replace("\0", "").encode("utf-8", errors="replace"), len(cells)))
    except TableError:
        raise
    except Exception as error:  # as above
        raise TableError(f"{name} is a damaged Excel file ({quoted(error, 150)}). Save it again.") from None
    return b"\n".join(line + b"," * (width - max(1, cells)) for line, cells in lines)


def _too_large(name: str, what: str) -> TableError:
    return TableError(f"{name} {what}; it may not fit into memory. Save the sheet as CSV and read that.")


def _written(cell: Any) -> str:
    return repr(cell) if isinstance(cell, float) else str(cell)


def _as_field(text: str) -> str:
    """What the csv module would write, in a fraction of the time if the text is long."""
    return '"' + text.replace('"', '""') + '"' if any(sign in text for sign in ',"\n\r') else text
