"""A table as it was read."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from penstock.io._notes import Note


@dataclass(frozen=True, eq=False)
class Table:
    """The input columns of a table, its time stamps, and notes on everything that was changed or odd.

    values : numeric columns are float64 with NaN for missing values, all others text with NaN for missing. Its index
        numbers the rows as they were in the source, from 0, so that a row is found again after sorting.
    time : the time stamps in ascending order, one a row; None if there are none.
    time_name : the column (or columns) they come from.
    label : the column that says what is known of each row, or None; never an input.
    source : where the table comes from, for people.
    notes : in the order in which things were found.
    units : of the input columns, as far as a line below the header says.
    group : which run, unit or machine each row is of, as text, under the column's name, or None. Rows of a group are
        next to each other, and the time stamps are in ascending order within each.
    """

    values: pd.DataFrame
    time: pd.DatetimeIndex | None
    time_name: str | None
    label: pd.Series | None
    source: str
    notes: tuple[Note, ...]
    units: Mapping[str, str] = field(default_factory=dict[str, str])
    group: pd.Series | None = None

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
        """The rows of the group that a row is of."""
        return next(span for span in self.spans if span.start <= row < span.stop)

    @property
    def in_time(self) -> bool:
        """Whether all rows are in order of time, as they are unless groups overlap."""
        return self.time is not None and bool(self.time.is_monotonic_increasing)

    def only(self, rows: NDArray[np.bool_]) -> Table:
        """The table with some of its rows."""
        return replace(
            self,
            values=self.values[rows],
            time=None if self.time is None else self.time[rows],
            label=None if self.label is None else self.label[rows],
            group=None if self.group is None else self.group[rows],
        )

    def about(self, kind: str) -> Note | None:
        """The first note of this kind, if there is one."""
        return next((note for note in self.notes if note.kind == kind), None)
