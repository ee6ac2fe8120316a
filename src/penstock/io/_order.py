"""Put rows in order of time and by groups, and note what is odd about their stamps."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from penstock._messages import counted, duration_in_words, listed, quoted
from penstock._types import BoolArray
from penstock.io.table import Notebook, TableError

Rows = NDArray[np.intp]
_PER_SECOND = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}
_NO_GROUP = "(none)"  # rows without a value in the column of groups
_FEWEST_ROWS = 2  # of a group, on average, in a table of
_ENOUGH = 20  # rows
_SHARED = 0.3  # of the rows have the stamp of the row before
_NEARLY_ALL = 0.99  # of the rows are the only one of their kind at their time


@dataclass(frozen=True, eq=False)
class Groups:
    """The groups of the rows of a table: `codes` number them in the order in which they begin."""

    column: str
    codes: NDArray[np.intp]
    names: tuple[str, ...]

    @classmethod
    def of(cls, column: pd.Series[Any], times: pd.DatetimeIndex | None, notebook: Notebook) -> Groups:
        """Read the column of groups, and note how many there are."""
        texts = column.map(_as_text).fillna(_NO_GROUP)
        codes, names = pd.factorize(texts)
        if len(names) * _FEWEST_ROWS > len(codes) >= _ENOUGH:
            raise TableError(
                f"{notebook.source}: column {quoted(column.name)} has {len(names):,} different values in "
                f"{counted(len(codes), 'row')}, so it is no column of groups. Name a column of runs, units or machines."
            )
        if times is not None:
            stamps = np.where(times.isna(), np.iinfo(np.int64).max, times.asi8)
            order = np.argsort(pd.Series(stamps).groupby(codes).min().to_numpy(), kind="stable")
            codes, names = np.argsort(order)[codes], names[order]
        missing = int(column.isna().sum())
        without = f"; {counted(missing, 'row')} without a value are the group {_NO_GROUP}" if missing else ""
        said = f"Rows are kept together by column {quoted(column.name)}: {counted(len(names), 'group')}{without}."
        notebook.add("row groups", said, len(names), (str(column.name),))
        return cls(str(column.name), codes.astype(np.intp), tuple(map(str, names)))

    def new(self, rows: NDArray[np.intp]) -> BoolArray:
        """Return whether each of these rows but the first is of another group than the one before."""
        return np.asarray(np.diff(self.codes[rows]) != 0)

    def named(self, rows: NDArray[np.intp]) -> pd.Series[Any]:
        """Return the names of these rows' groups, under the rows' numbers."""
        return pd.Series(np.array(self.names, dtype=object)[self.codes[rows]], index=pd.Index(rows), name=self.column)


def _as_text(value: Any) -> Any:
    """Return a value as text, whole numbers without decimals; missing values as they are."""
    if pd.isna(value):
        return value
    return str(int(value)) if isinstance(value, float) and value.is_integer() else str(value).strip()


def rows_in_order(
    times: pd.DatetimeIndex, lengths: Sequence[int], notebook: Notebook, groups: Groups | None = None
) -> Rows:
    """Return the rows that have a stamp, sorted by it; rows with the same stamp stay as they were.

    lengths : of the files that the rows come from, which are put in order first, without a note.
    groups : a step from one group to another is no step in time.
    """
    missing = np.asarray(times.isna())
    if missing.all():
        raise TableError(f"{notebook.source} has no time stamp that can be read. Name another column as time.")
    rows = np.arange(len(times))
    if len(lengths) > 1:  # the file with the earliest stamp first
        none = np.iinfo(np.int64).max
        stamps = np.where(missing, none, times.asi8)
        blocks = np.split(rows, np.cumsum(lengths)[:-1])
        rows = np.concatenate(sorted(blocks, key=lambda block: int(stamps[block].min(initial=none))))
    if missing.any():
        rows, without = rows[~missing[rows]], np.flatnonzero(missing)
        where = ", ".join(map(str, without[:3])) + (" …" if len(without) > 3 else "")
        said = f"{counted(len(without), 'row')} without a time stamp that can be read left out (number {where}, counted"
        notebook.add("missing times", f"{said} from 0).", len(without), rows=_first(without), changed=True)
    if groups is not None:
        rows = rows[np.argsort(groups.codes[rows], kind="stable")]
    steps = np.diff(times.asi8[rows])
    if groups is not None:
        steps = np.where(groups.new(rows), 0, steps)
    backwards = int((steps < 0).sum())
    if not backwards:
        return rows
    _note_clock_set_back(times[rows], steps, notebook)
    how = f"The rows were sorted by time: {counted(backwards, 'step')} went backwards."
    if backwards == len(steps):
        how = "The rows were in order of time with the newest first; they were turned round."
    notebook.add("order", how, backwards, rows=_first(rows[1:][steps < 0]), changed=True)
    return rows[np.argsort(times.asi8[rows], kind="stable")]


def note_sampling(times: pd.DatetimeIndex, rows: Rows, notebook: Notebook, groups: Groups | None = None) -> None:
    """Note how often stamps come twice, and how regular they are; `times` are in order, `rows` their rows."""
    steps = np.diff(times.asi8) / _PER_SECOND[times.unit]
    if groups is not None:
        steps = np.where(groups.new(rows), -1.0, steps)  # neither equal nor apart
    repeated = int((steps == 0).sum())
    if repeated:
        said = f"The time stamp of {counted(repeated, 'row')} is that of the row before; all rows are kept."
        notebook.add("duplicate times", said, repeated, rows=_first(rows[1:][steps == 0]))
    seconds, steps = steps, steps[steps > 0]
    if len(steps) < 3:  # too few to say what is usual
        return
    median = float(np.median(steps))
    gaps = steps > 1.5 * median
    usual, n_gaps = duration_in_words(median), int(gaps.sum())
    if n_gaps:
        longest = f"{duration_in_words(float(steps.max()))} (after {times[int(np.argmax(seconds))]})"
        said = f"There {'is' if n_gaps == 1 else 'are'} {counted(n_gaps, 'gap')}: stamps are usually {usual} apart, but"
        notebook.add("gaps", f"{said} up to {longest}.", n_gaps)
    uneven = int((np.abs(steps[~gaps] - median) > 0.1 * median).sum())
    if uneven > 0.05 * len(steps) and len(steps) >= 10:
        said = f"Stamps are {usual} apart in the middle, but {uneven:,} of {len(steps):,} distances differ from that by"
        notebook.add("irregular sampling", f"{said} more than a tenth.", uneven)


def _note_clock_set_back(times: pd.DatetimeIndex, steps: NDArray[np.int64], notebook: Notebook) -> None:
    """Note local stamps that jump back by up to an hour early on a Sunday, in rows that are in order otherwise."""
    hour = 3600 * _PER_SECOND[times.unit]
    back = np.flatnonzero(steps < 0)
    after = times[back + 1]
    typical = (steps[back] >= -hour) & (after.day_of_week == 6) & (after.hour <= 3)
    if times.tz is None and len(back) <= 1 + len(steps) // 100 and typical.all():
        said = f"Clocks seem to have been set back at {after[0]}: an hour comes twice. With the time zone set (such as"
        notebook.add("daylight saving", f"{said} 'Europe/Berlin') the two are distinguished.", len(back))


def _first(rows: NDArray[np.integer]) -> tuple[int, ...]:
    return tuple(int(row) for row in rows[:5])


def note_long_format(values: pd.DataFrame, times: pd.DatetimeIndex, time_name: str | None, notebook: Notebook) -> None:
    """Note a column of text that names what each of several rows at the same time is about; `times` are in order."""
    stamps = times.asi8
    if np.count_nonzero(stamps[1:] == stamps[:-1]) < _SHARED * len(stamps):
        return
    numeric = values.select_dtypes("number").columns
    kinds = {name: values[name].nunique() for name in values.columns.difference(numeric, sort=False)}
    for name in sorted(kinds, key=lambda each: kinds[each]):
        pairs = pd.DataFrame({"stamp": stamps, "kind": pd.factorize(values[name])[0]})
        if 2 <= kinds[name] <= len(values) / 2 and (~pairs.duplicated()).mean() >= _NEARLY_ALL:
            notebook.add(
                "long format",
                f"The {kinds[name]:,} kinds of column {quoted(name)} have rows of their own at the same time. If they "
                f"name sensors or machines, pivot the table first, to one row per {quoted(time_name)} and a column of "
                f"{listed(numeric, most=3)} for each {quoted(name)}.",
                kinds[name],
                (name, *numeric),
            )
            return
