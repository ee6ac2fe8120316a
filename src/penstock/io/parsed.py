"""What every parser gives back, and how one value becomes a number."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np

from penstock._types import FloatArray
from penstock.io.columns import Columns, is_missing
from penstock.io.faults import LineError, quoted
from penstock.io.lines import LONGEST

_BOM = b"\xef\xbb\xbf"


@dataclass
class Parsed:
    """Rows of numbers (NaN: no reading), their times as written, and the lines that could not be read."""

    values: FloatArray
    times: list[Any] | None
    faults: list[tuple[int, str]] = field(default_factory=list)  # number of the line among those given, reason
    texts: dict[str, list[str | None]] = field(default_factory=dict)  # columns that are not numbers, None: missing


class RowParser(Protocol):
    """Makes rows of lines. `columns` is None until `prepare` has seen enough of them."""

    columns: Columns | None

    def prepare(self, line: bytes) -> bool:
        """Learn the columns from the first lines, one at a time; True if the line was a header and is used up."""

    def is_header(self, line: bytes) -> bool:
        """Whether a line, the first of a further file or stream, repeats the header; InputError for another header."""

    def parse(self, lines: Sequence[bytes]) -> Parsed:
        """Numbers from lines, none of them blank. What a line gives does not depend on the other lines."""

    def state(self) -> dict[str, Any]:
        """Plain values from which `restore_parser` makes this parser again."""


def to_number(text: str, name: str, shown: str | None = None) -> float:
    """The number that a field spells, NaN for a reading that is not there; `shown` is how the input spells it.

    >>> to_number("2.5", "flow"), to_number("NA", "flow")
    (2.5, nan)
    >>> to_number("off", "flow")
    Traceback (most recent call last):
    penstock.io.faults.LineError: column "flow" holds "off", which is not a number
    """
    shown = quoted(text if shown is None else shown)
    try:
        value = float(text)
    except ValueError:
        if is_missing(text):
            return math.nan
        raise LineError(f"column {quoted(name)} holds {shown}, which is not a number") from None
    if "_" in text or not text.isascii():  # Python's own spelling, which no instrument writes
        raise LineError(f"column {quoted(name)} holds {shown}, which is not a number")
    return finite(value, name)


def to_numbers(texts: Sequence[str]) -> list[float] | None:
    """What `to_number` makes of each, in much less time, if `float` knows them all; else None.

    >>> to_numbers(["1", "nan"]), to_numbers(["1", ""])
    ([1.0, nan], None)
    """
    together = "".join(texts)
    if "_" in together or not together.isascii():
        return None
    try:
        values = list(map(float, texts))
    except ValueError:
        return None
    return None if math.inf in values or -math.inf in values else values


def finite(value: float, name: str) -> float:
    """The value itself, unless it is infinite."""
    if math.isinf(value):
        raise LineError(f"column {quoted(name)} holds an infinite value or one too large for a float")
    return value


def decoded(line: bytes) -> str:
    """The text of a line, without a carriage return at its end and the mark that some programs put before UTF-8."""
    if len(line) > LONGEST:
        raise LineError(f"longer than {LONGEST:,} bytes")
    try:
        return line.removesuffix(b"\r").removeprefix(_BOM).decode()
    except UnicodeDecodeError as error:
        raise LineError(f"not UTF-8 at byte {error.start + 1}") from None


def to_text(field: str) -> str | None:
    """The text of a field; None for one that stands for a missing reading."""
    return None if is_missing(field) else field.strip()


def as_rows(rows: list[list[float]], columns: Columns) -> FloatArray:
    """Rows as an array with a column for each variable, also where there is no row."""
    return np.array(rows, dtype=np.float64).reshape(len(rows), len(columns.variables))
