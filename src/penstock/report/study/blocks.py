"""What a study says, written once: a list of blocks that the page and the Markdown are made from.

Texts are plain, with two marks: `**bold**` and a pair of backticks for code. A name that comes from elsewhere goes
through `plain`, so that its stars and backticks are shown and not obeyed; what HTML or Markdown would make of it is the
renderers' task.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pandas as pd

Style = str  # "", "bold" or "code"
Format = Callable[[Any], str]
_MARKS = re.compile(r"\\([\\*`])|\*\*(.+?)\*\*|`([^`]+)`", re.DOTALL)
_INNER = re.compile(r"\\([\\*`])")


@dataclass(frozen=True)
class Heading:
    """Level 2 is a section, with an entry in the table of contents; level 3 is a part of one."""

    level: int
    text: str


@dataclass(frozen=True)
class Paragraph:
    text: str
    warning: bool = False


@dataclass(frozen=True)
class Bullets:
    items: tuple[str, ...]


@dataclass(frozen=True)
class DataTable:
    """A table of finished words. `numeric`: which columns are numbers; `groups`: titles over several columns, with
    how many."""

    headers: tuple[str, ...]
    cells: tuple[tuple[str, ...], ...]
    numeric: tuple[bool, ...]
    caption: str
    groups: tuple[tuple[str, int], ...] = ()


@dataclass(frozen=True)
class Picture:
    """A drawing. `name` is that of its file, without the ending; `alt` says in words what is to be seen."""

    name: str
    svg: str
    alt: str
    caption: str


@dataclass(frozen=True)
class CodeBlock:
    text: str
    language: str = ""


@dataclass(frozen=True)
class Details:
    """What only some want to read: closed at first."""

    summary: str
    blocks: tuple[Block, ...]


Block = Heading | Paragraph | Bullets | DataTable | Picture | CodeBlock | Details


def plain(name: object) -> str:
    """A name or a message, on one line, for a text with marks.

    >>> plain("a**b`c\\nd")
    'a\\\\*\\\\*b\\\\`c d'
    """
    return re.sub(r"([\\*`])", r"\\\1", one_line(name))


def one_line(name: object) -> str:
    """Without line breaks and characters that cannot be seen; never empty.

    >>> one_line("a\\r\\n  b\\x00"), one_line(" ")
    ('a b�', '(no name)')
    """
    return visible(" ".join(str(name).split())) or "(no name)"


def visible(line: str) -> str:
    """A line with a sign in place of every character that cannot be seen."""
    return "".join("�" if _cannot_be_shown(character) else character for character in line)


def _cannot_be_shown(character: str) -> bool:
    """Control characters, halves of characters, and those that turn the direction of what follows."""
    code = ord(character)
    return (
        code < 0x20
        or 0x7F <= code < 0xA0
        or 0xD800 <= code < 0xE000
        or 0x202A <= code <= 0x202E
        or 0x2066 <= code <= 0x2069
        or code in (0xFFFE, 0xFFFF)
    )


def spans(text: str) -> Iterator[tuple[str, Style]]:
    """A text in pieces, each with its style.

    >>> list(spans("run **all** of `a<b`, " + plain("`this")))
    [('run ', ''), ('all', 'bold'), (' of ', ''), ('a<b', 'code'), (', ', ''), ('`', ''), ('this', '')]
    """
    at = 0
    for found in _MARKS.finditer(text):
        if found.start() > at:
            yield text[at : found.start()], ""
        escaped, bold, code = found.groups()
        if escaped is not None:
            yield escaped, ""
        elif bold is not None:
            yield _INNER.sub(r"\1", bold), "bold"
        else:
            yield code, "code"
        at = found.end()
    if at < len(text):
        yield text[at:], ""


def make_table(
    frame: pd.DataFrame,
    caption: str,
    formats: Mapping[str, Format] | Format,
    *,
    titles: Mapping[str, str] | None = None,
    groups: Sequence[tuple[str, int]] = (),
) -> DataTable:
    """A frame as a table of words. Columns with a format are numbers, the others names; missing values are "–".

    >>> frame = pd.DataFrame({"method": ["NMF", "GNMF"], "rank": [1.5, float("nan")]})
    >>> make_table(frame, "Ranks", {"rank": "{:.2f}".format}).cells
    (('NMF', '1.50'), ('GNMF', '–'))
    """
    columns = [str(column) for column in frame.columns]
    by_column = formats if isinstance(formats, Mapping) else dict.fromkeys(columns[1:], formats)
    shown = [
        [_cell(value, by_column.get(name)) for value in frame.iloc[:, place]] for place, name in enumerate(columns)
    ]
    rows = tuple(zip(*shown, strict=True)) if columns else ()
    headers = tuple((titles or {}).get(name, one_line(name) if name else "") for name in columns)
    return DataTable(headers, rows, tuple(name in by_column for name in columns), caption, tuple(groups))


def _cell(value: Any, form: Format | None) -> str:
    missing = value is None or (not isinstance(value, (str, list, tuple, dict)) and bool(pd.isna(value)))
    if missing:
        return "–"
    if form is not None:
        return form(value)
    return one_line(value) if str(value).strip() else ""
