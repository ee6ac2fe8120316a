"""A table as a file or another library has it, before anything is made of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
import pandas as pd

from penstock._messages import counted, listed
from penstock.io._errors import TableError
from penstock.io._notes import Notebook


@dataclass(frozen=True)
class RawTable:
    """Columns of numbers, texts or times, each with its own name; `unnamed` were given theirs by us.

    units : of the columns for which the source says it.
    """

    name: str
    frame: pd.DataFrame
    decimal: str = "."
    unnamed: tuple[str, ...] = ()
    units: Mapping[str, str] = field(default_factory=dict[str, str])


def own_names(names: Sequence[str], source: str) -> tuple[list[str], tuple[str, ...]]:
    """Names for all columns: one without a name is called after its place. Raises if a name comes twice.

    >>> own_names(["time", "", "flow"], "plant.csv")
    (['time', 'column 2', 'flow'], ('column 2',))
    """
    called = [name or f"column {number}" for number, name in enumerate(names, start=1)]
    if len(set(called)) < len(called):
        seen: set[str] = set()
        repeated = dict.fromkeys(name for name in called if name in seen or seen.add(name))  # type: ignore[func-returns-value]
        raise TableError(f"{source} has more than one column named {listed(repeated)}. Give each column its own name.")
    return called, tuple(call for call, name in zip(called, names, strict=True) if not name)


def with_names(raw: RawTable, names: Sequence[str], notebook: Notebook) -> RawTable:
    """The same with the names that were given for its columns."""
    width = raw.frame.shape[1]
    if len(names) != width:
        raise TableError(f"{raw.name} has {counted(width, 'column')}, but names has {len(names):,}. Name every column.")
    own_names(names, "names")
    notebook.notes = [note for note in notebook.notes if note.kind != "no header"]
    if len(raw.unnamed) < width:
        before = listed(raw.frame.columns, most=3)
        notebook.add("names", f"The names of the columns of {raw.name}, {before}, were replaced.", width)
    called = dict(zip(raw.frame.columns, names, strict=True))
    units = {called[name]: unit for name, unit in raw.units.items()}
    return replace(raw, frame=raw.frame.rename(columns=called), unnamed=(), units=units)


def without_fillers(raw: RawTable, notebook: Notebook) -> RawTable:
    """Leave out what programs add: columns with neither name nor values, and a first one that only numbers the rows."""
    empty = [name for name in raw.unnamed if raw.frame[name].isna().all()]
    if empty and len(empty) < raw.frame.shape[1]:
        notebook.add(
            "empty columns",
            f"{counted(len(empty), 'column')} of {raw.name} with neither name nor values left out.",
            len(empty),
            tuple(empty),
        )
    else:
        empty = []
    first = raw.frame.columns[0]
    numbered = [first] if first in raw.unnamed and raw.frame.shape[1] > 1 and _numbers_rows(raw.frame[first]) else []
    if numbered and len(raw.unnamed) < raw.frame.shape[1]:  # all unnamed: there is no header to say so
        notebook.add(
            "row numbers",
            f"The first column of {raw.name} has no name and numbers the rows ({raw.frame[first].iloc[0]}, …); it is "
            f"left out.",
            1,
            (first,),
        )
    else:
        numbered = []
    called = [name for name in raw.unnamed if name not in (*empty, *numbered)]
    if called and len(raw.unnamed) < raw.frame.shape[1]:
        notebook.add(
            "unnamed columns",
            f"{counted(len(called), 'column')} of {raw.name} without a name, called by the place: {listed(called)}.",
            len(called),
            tuple(called),
        )
    if not empty and not numbered:
        return raw
    return replace(raw, frame=raw.frame.drop(columns=[*empty, *numbered]))


def _numbers_rows(column: pd.Series[float]) -> bool:
    if column.dtype.kind not in "iu" or len(column) < 2:
        return False
    numbers = column.to_numpy()
    return bool(numbers[0] in (0, 1) and (np.diff(numbers) == 1).all())
