"""A table as it was read, the notes on what was changed or is odd in it, and the error if it cannot be used."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from difflib import get_close_matches
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from penstock._messages import listed, option, quoted
from penstock._types import BoolArray

if TYPE_CHECKING:
    from penstock.io.align import Alignment
    from penstock.io.times import TimeReader


# Kinds of notes on what was read without confidence, the one that can spoil most first.
DOUBTS = (
    "transposed", "thousands", "long format", "two clocks", "ambiguous dates", "contradictory dates", "not a time",
    "time without date", "dates carried on", "repeated stamps", "duplicate times",
    "reset of the clock", "times out of bounds", "broken times", "times to come",
    "times that do not exist", "daylight saving", "mixed offsets", "short overlap", "encoding", "codes for missing?",
    "only text", "text among numbers", "limits", "numbers as text", "mixed text",
)  # fmt: skip


class TableError(ValueError):
    """A table that cannot be used as it is.

    Parameters
    ----------
    message : str
        What is wrong, where, and what to do.
    parameter : str, optional
        The parameter that is wrong; the message begins with its name.

    Examples
    --------
    >>> from penstock.io import read_table
    >>> read_table({"flow": [1.0, 2.0]}, time="when")
    Traceback (most recent call last):
    penstock.io.table.TableError: ...has no column 'when' (given as time)...
    """

    def __init__(self, message: str, parameter: str | None = None) -> None:
        super().__init__(message)
        self.parameter = parameter


def refuse_unknown(wanted: Iterable[str], known: Sequence[str], parameter: str, source: str) -> None:
    """Raise if a name given for a parameter is not a column, with the known name nearest to it."""
    for name in wanted:
        if name in known:
            continue
        folded = {other.casefold(): other for other in known}
        close = get_close_matches(str(name).casefold(), list(folded), n=1)
        hint = f" Did you mean {quoted(folded[close[0]])}?" if close else ""
        given = f"{quoted(name)} (given as {option(parameter)})"
        raise TableError(f"{source} has no column {given}; its columns are {listed(known)}.{hint}")


@dataclass(frozen=True)
class Note:
    """One thing worth knowing about a table."""

    kind: str  # a fixed word to select by, such as "duplicate times"
    message: str
    count: int  # of how many values, rows or columns
    columns: tuple[str, ...] = ()  # which, as far as that is known
    rows: tuple[int, ...] = ()  # the first few, numbered as in `Table.values`
    changed: bool = False  # whether something is now other than in the source, which `strict` refuses
    doubt: bool = False  # whether it was read without confidence, so that the user should look

    def __str__(self) -> str:
        return self.message


@dataclass(frozen=True)
class TagNote:
    """What is known of the readings of a tag that has a clock of its own, and how it was put into rows."""

    name: str
    interval: float  # the usual seconds from one reading to the next; NaN if there are too few to say
    hold: float  # seconds for which a reading stands
    readings: int
    bad: int  # of these, known to be bad or no number
    held: float  # share of the rows that have an earlier reading
    missing: float  # and of those without any
    first: pd.Timestamp
    last: pd.Timestamp


class ReadLog:
    """Collect notes while a table is read; if `strict`, raise at the first that is about a change."""

    def __init__(self, source: str, strict: bool = False) -> None:
        self.source = source
        self.strict = strict
        self.notes: list[Note] = []
        self.bad: dict[str, int] = {}  # readings of bad quality, by tag
        self.words: set[str] = set()  # that stand in place of numbers
        self.thousands: str | None = None  # the sign between thousands, where the numbers show it

    def about(self, kind: str) -> Note | None:
        """Return the first note of this kind, if there is one."""
        return next((note for note in self.notes if note.kind == kind), None)

    def add(
        self,
        kind: str,
        message: str,
        count: int,
        columns: tuple[str, ...] = (),
        rows: tuple[int, ...] = (),
        changed: bool = False,
        doubt: bool | None = None,
    ) -> None:
        """Add a note; without `doubt`, its kind says whether it is one."""
        if changed and self.strict:
            raise TableError(
                f"strict refuses what would be done to {self.source} otherwise: {message} Correct the table, or read "
                f"it without strict."
            )
        doubt = kind in DOUBTS if doubt is None else doubt
        self.notes.append(Note(kind, message, count, columns, rows, changed, doubt))


@dataclass(frozen=True, eq=False)
class Table:
    """The input columns of a table, its time stamps, and notes on everything that was changed or is odd.

    Attributes
    ----------
    values : DataFrame
        Numeric columns are float64 with NaN for missing values, all others text with NaN for missing. Its index numbers
        the rows as they were in the source, from 0, so that a row is found again after sorting.
    time : DatetimeIndex or None
        The time stamps in ascending order, one a row; None if there are none.
    time_name : str or None
        The column (or columns) they come from.
    label : Series or None
        The column that says what is known of each row; never an input.
    source : str
        Where the table comes from, for people.
    notes : tuple of Note
        In the order in which things were found.
    units : mapping
        Of the input columns, as far as a line below the header says.
    group : Series or None
        Which run, unit or machine each row is of, as text, under the column's name. Rows of a group are next to each
        other, and the time stamps are in ascending order within each.
    time_reader : TimeReader or None
        How the time stamps were read.
    alignment : Alignment or None
        How tags with clocks of their own were put into rows; None if all have one clock.
    tags : tuple of TagNote
        Of each of these tags, what its readings are like.
    bad : mapping
        How many readings of a column were taken as missing for their quality, of those with a column of quality beside.
    words : tuple of str
        Texts, and numbers such as -9999, that stand in place of readings, and were taken as missing.
    thousands : str or None
        The point or comma that was found to stand between thousands.

    Examples
    --------
    >>> from penstock.io import read_table
    >>> table = read_table({"time": ["2024-05-01 12:00", "2024-05-01 11:00"], "flow": [2.0, None]})
    >>> table.time_name, table.values["flow"].tolist(), table.values.index.tolist()
    ('time', [nan, 2.0], [1, 0])
    """

    values: pd.DataFrame
    time: pd.DatetimeIndex | None
    time_name: str | None
    label: pd.Series | None
    source: str
    notes: tuple[Note, ...]
    units: Mapping[str, str] = field(default_factory=dict[str, str])
    group: pd.Series | None = None
    time_reader: TimeReader | None = None
    alignment: Alignment | None = None
    tags: tuple[TagNote, ...] = ()
    bad: Mapping[str, int] = field(default_factory=dict[str, int])
    words: tuple[str, ...] = ()
    thousands: str | None = None

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(self.values.columns)

    @cached_property
    def spans(self) -> list[slice]:
        """The rows of each group; all rows if there are no groups."""
        if self.group is None:
            return [slice(0, len(self.values))]
        codes = pd.factorize(self.group)[0]
        starts = np.flatnonzero(np.diff(codes, prepend=-1)).tolist()
        return [slice(start, stop) for start, stop in zip(starts, [*starts[1:], len(codes)], strict=True)]

    def span_of(self, row: int) -> slice:
        """Return the rows of the group that a row is of."""
        return next(span for span in self.spans if span.start <= row < span.stop)

    @property
    def in_time(self) -> bool:
        """Whether all rows are in order of time, as they are unless groups overlap."""
        return self.time is not None and bool(self.time.is_monotonic_increasing)

    def only(self, rows: BoolArray) -> Table:
        """Return the table with some of its rows."""
        return replace(
            self,
            values=self.values[rows],
            time=None if self.time is None else self.time[rows],
            label=None if self.label is None else self.label[rows],
            group=None if self.group is None else self.group[rows],
        )

    def about(self, kind: str) -> Note | None:
        """Return the first note of this kind, if there is one."""
        return next((note for note in self.notes if note.kind == kind), None)
