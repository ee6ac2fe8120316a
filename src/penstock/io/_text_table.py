"""Text with separators → a pandas table, by pandas' own parser, once the layout is known."""

from __future__ import annotations

import re
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, cast

import pandas as pd

from penstock._messages import counted, listed, quoted
from penstock.io._census import all_lines_fit, refuse_ragged
from penstock.io._errors import TableError
from penstock.io._layout import Layout, find_layout
from penstock.io._notes import Notebook
from penstock.io._raw import RawTable, own_names
from penstock.io._text_source import CleanBytes, TextSource, WrongEncodingError, likely_encodings

# What makes pandas read numbers as Python does; since 3.1 it does so by itself.
_OLD_PANDAS = tuple(map(int, pd.__version__.split(".")[:2])) < (3, 1)
_EXACTLY: dict[str, Any] = {"float_precision": "round_trip"} if _OLD_PANDAS else {}
_LARGE = 5 * 2**20  # bytes: from here on pandas reads in parallel


@dataclass(frozen=True)
class TextOptions:
    """How a text is to be read; what is None is found out."""

    separator: str | None = None
    decimal: str | None = None
    thousands: str | None = None
    encoding: str | None = None

    @property
    def decimal_sign(self) -> str | None:
        """The one that is given, or that is left by the sign between thousands."""
        return self.decimal or {".": ",", ",": "."}.get(self.thousands or "")

    def check(self) -> None:
        for option in ("separator", "decimal", "thousands"):
            sign = getattr(self, option)
            if sign is not None and (
                not isinstance(sign, str) or len(sign) != 1 or not sign.isascii() or sign in '"\r\n\0'
            ):
                raise TableError(f"{option} must be a single character such as ';' or ','; got {quoted(sign)}.")
        if self.decimal is not None and self.decimal == self.thousands:
            raise TableError(f"decimal and thousands cannot both be {quoted(self.decimal)}.")


def read_text(source: TextSource, options: TextOptions, notebook: Notebook) -> RawTable:
    """Read a text in the first encoding that fits; says which, if it had to be guessed."""
    options.check()
    encodings = [options.encoding] if options.encoding else likely_encodings(source)
    for encoding in encodings:
        try:
            table = _read_as(source, encoding, options, notebook)
        except WrongEncodingError as error:
            if encoding == encodings[-1]:
                raise TableError(f"{source.name} is not {encoding} ({error}). Name its encoding.") from None
            continue
        if not options.encoding and encoding != "utf-8":
            _note_encoding(encoding, source, notebook)
        return table
    raise AssertionError("no encoding to try")


def _note_encoding(encoding: str, source: TextSource, notebook: Notebook) -> None:
    guessed = encoding in ("cp1252", "latin-1")
    why = ", as it is not UTF-8. Another encoding can be set if names or texts look wrong" if guessed else ""
    notebook.add("encoding", f"{source.name} was read as {encoding}{why}.", 1)


def _read_as(source: TextSource, encoding: str, options: TextOptions, notebook: Notebook) -> RawTable:
    with CleanBytes(source, encoding) as stream:
        head = stream.head()
    if not head.strip():
        raise TableError(f"{source.name} is empty. Export the table again.")
    layout = find_layout(head.decode(), source.name, options.separator, options.decimal_sign)
    names, unnamed = _column_names(layout, source.name)
    frame = _read_frame(source, encoding, layout)
    if frame.empty:
        raise TableError(f"{source.name} has a header but no rows. Check that the export was complete.")
    if frame.iloc[:, -1].isna().any() and not _every_line_fits(source, encoding, layout):
        _refuse_ragged(source, encoding, layout)
    _restore_texts(frame, source, encoding, layout)
    frame.columns = pd.Index(names)
    _note_layout(layout, frame, source, options, notebook)
    return RawTable(source.name, frame, layout.decimal, unnamed, _units(layout, names))


def _column_names(layout: Layout, name: str) -> tuple[list[str], tuple[str, ...]]:
    given = layout.names or ()
    return own_names([given[number] if number < len(given) else "" for number in range(layout.width)], name)


def _units(layout: Layout, names: list[str]) -> dict[str, str]:
    """The unit of each column that has one, without the brackets around it."""
    bare = (re.sub(r"^[\[(]([^\[\]()]*)[\])]$", r"\1", unit.strip()).strip() for unit in layout.units)
    return {name: unit for name, unit in zip(names, bare, strict=False) if unit not in ("", "-")}


def _read_frame(source: TextSource, encoding: str, layout: Layout) -> pd.DataFrame:
    """Hand pandas the rows; of a large file rather its path, once it is checked, for pandas then reads in parallel.

    What may become too large is checked first too, before pandas keeps any of it.
    """
    plain = source.path is not None and encoding == "utf-8" and layout.separator != " "
    by_path = plain and source.most_bytes >= _LARGE
    if by_path or source.most_bytes * layout.width > source.max_bytes // 2:
        with CleanBytes(source, encoding, layout.width, layout.separator) as stream:
            simple = all(line.count(b'"') % 2 == 0 for line in stream.head().split(b"\n")[: layout.lines_above])
            for _ in stream:  # raises if there is anything that pandas should not see
                pass
        if by_path and source.path is not None and simple and not stream.has_lone_returns:
            return _parse(
                str(source.path.resolve()), source, encoding, layout, skiprows=layout.lines_above, compression=None
            )
    with _rows(source, encoding, layout) as stream:
        return _parse(stream, source, encoding, layout)


@contextmanager
def _rows(source: TextSource, encoding: str, layout: Layout) -> Iterator[CleanBytes]:
    """The text below the header."""
    with CleanBytes(source, encoding, layout.width, layout.separator) as stream:
        lines = stream.head().split(b"\n", layout.lines_above)[: layout.lines_above]
        stream.skip(sum(len(line) + 1 for line in lines))
        yield stream


def _parse(readable: CleanBytes | str, source: TextSource, encoding: str, layout: Layout, **more: Any) -> pd.DataFrame:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error", pd.errors.ParserWarning)  # a longer first row would lose its end
            warnings.simplefilter("ignore", pd.errors.DtypeWarning)  # see _restore_texts
            frame: pd.DataFrame = pd.read_csv(
                cast(Any, readable),
                sep=layout.separator,
                decimal=layout.decimal,
                header=None,
                names=range(layout.width),
                index_col=False,
                skipinitialspace=layout.spaced,
                skip_blank_lines=layout.width > 1,  # in a single column a blank line is a missing value
                **_EXACTLY,
                **more,
            )
            return frame
    except (ValueError, OverflowError, pd.errors.ParserWarning) as error:
        if isinstance(error, TableError):
            raise
        if "EOF inside string" not in str(error):
            _refuse_ragged(source, encoding, layout)
        raise TableError(_words_for(error, source.name, layout)) from None


def _every_line_fits(source: TextSource, encoding: str, layout: Layout) -> bool:
    with _rows(source, encoding, layout) as stream:
        return all_lines_fit(stream, layout.separator, layout.width)


def _refuse_ragged(source: TextSource, encoding: str, layout: Layout) -> None:
    with _rows(source, encoding, layout) as stream:
        refuse_ragged(stream, layout.separator, layout.width, source.name, layout.lines_above)


def _restore_texts(frame: pd.DataFrame, source: TextSource, encoding: str, layout: Layout) -> None:
    """pandas reads a table in pieces; where a column is text in one and numbers in another, read it again as text."""
    objects = [number for number, kind in zip(frame.columns, frame.dtypes, strict=True) if kind.kind == "O"]
    mixed = [number for number in objects if pd.api.types.infer_dtype(frame[number]).startswith("mixed")]
    if not mixed:
        return
    with _rows(source, encoding, layout) as stream:
        texts = _parse(stream, source, encoding, layout, usecols=mixed, dtype=str)
    for number in mixed:
        frame[number] = texts[number]


def _words_for(error: Exception, name: str, layout: Layout) -> str:
    open_quote = re.search(r"EOF inside string starting at row (\d+)", str(error))
    if open_quote:
        line = layout.lines_above + int(open_quote.group(1)) + 1
        return f'{name} has a quote (") near line {line:,} that is never closed. Close or remove it.'
    return f"{name} cannot be read as a table ({str(error).strip()[:200]}). Export it again as CSV."


def _note_layout(
    layout: Layout, frame: pd.DataFrame, source: TextSource, options: TextOptions, notebook: Notebook
) -> None:
    if layout.preamble:
        above, first = counted(len(layout.preamble), "line"), quoted(layout.preamble[0])
        notebook.add("preamble", f"{above} above the table in {source.name} left out: {first} …", len(layout.preamble))
    if layout.names is None:
        notebook.add(
            "no header",
            f"{source.name} has no header; its columns are called {listed(frame.columns, most=2)}.",
            layout.width,
        )
    if layout.units:
        shown = listed([unit.strip() for unit in layout.units if unit.strip()], most=5)
        notebook.add("units", f"A line of units below the header of {source.name} is no row: {shown}.", 1)
    if layout.description:
        shown = listed([text.strip() for text in layout.description if text.strip()], most=5)
        notebook.add("description", f"A second line below the header of {source.name} is no row: {shown}.", 1)
    if layout.separator == " " and options.separator is None:
        notebook.add("blanks", f"{source.name} was read with blanks between its columns.", 1)
    if layout.decimal == "," and options.decimal is None:
        notebook.add("decimal comma", f"{source.name} was read with a decimal comma.", 1)
