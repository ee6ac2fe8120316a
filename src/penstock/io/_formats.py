"""What kind of file a path leads to, told by its first bytes rather than by its name."""

from __future__ import annotations

import stat
from pathlib import Path

from penstock.io._errors import TableError

TEXT, GZIP, PARQUET, ZIPPED = "text", "gzip", "parquet", "zipped"
_KINDS = {b"\x1f\x8b": GZIP, b"PAR1": PARQUET, b"PK\x03\x04": ZIPPED}
_FOREIGN = {
    b"\xd0\xcf\x11\xe0": ("an old Excel file", "Save it as .xlsx or CSV"),
    b"%PDF": ("a PDF", "Export the table as CSV"),
    b"BZh": ("packed with bzip2", "Unpack it, or pack it with gzip"),
    b"\xfd7zXZ": ("packed with xz", "Unpack it, or pack it with gzip"),
    b"\x28\xb5\x2f\xfd": ("packed with zstd", "Unpack it, or pack it with gzip"),
    b"7z\xbc\xaf": ("a 7z archive", "Unpack it"),
    b"PK": ("a damaged or empty zip archive", "Export it again"),
    b"\x1f\x8b": ("packed twice", "Unpack it once"),
    b"PAR1": ("a packed Parquet file", "Unpack it"),
    b"SQLite format 3": ("a database", "Export the table as CSV"),
    b"\x89HDF": ("an HDF5 file", "Export the table as CSV or Parquet"),
    b"ARROW1": ("an Arrow file", "Save it as Parquet"),
    b"\x93NUMPY": ("a NumPy file", "Pass numpy.load(path) instead of the path"),
    b"\x89PNG": ("a picture", "Export the table as CSV"),
    b"\xff\xd8\xff": ("a picture", "Export the table as CSV"),
}
_MARKUP = {b"<": "HTML or XML", b"{": "JSON", b"[{": "JSON", b"[[": "JSON"}
_TEXT_CONTROLS = bytes(sorted({*range(32)} - {9, 10, 12, 13, 26}))  # 26 ends files that come from DOS


def kind_of_file(path: Path) -> str:
    """One of TEXT, GZIP, PARQUET and ZIPPED; raises for what is not a readable file."""
    mode = path.stat().st_mode
    if not stat.S_ISREG(mode):
        raise TableError(f"{path} is not a file that can be read from its start. Save the table to a plain file.")
    with path.open("rb") as file:
        start = file.read(16)
    return next((kind for magic, kind in _KINDS.items() if start.startswith(magic)), TEXT)


def refuse_foreign(start: bytes, name: str) -> None:
    """Raise if the first bytes of a text (after unpacking) belong to another kind of file."""
    for magic, (what, advice) in _FOREIGN.items():
        if start.startswith(magic):
            raise TableError(f"{name} is {what}, not a table. {advice}.")
    for mark, what in _MARKUP.items():
        if start.removeprefix(b"\xef\xbb\xbf").lstrip().startswith(mark):
            raise TableError(f"{name} is {what}, not a table. Export it as CSV.")


def refuse_binary(start: bytes, name: str) -> None:
    """Raise if the first bytes of a text, as UTF-8, hold more control characters than any text would."""
    controls = len(start) - len(start.translate(None, _TEXT_CONTROLS))
    if controls > max(2, len(start) // 100):
        raise TableError(
            f"{name} is a binary file ({controls} control characters in its first {len(start):,} bytes), not a table. "
            f"Export the table as CSV."
        )
