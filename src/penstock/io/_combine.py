"""Several files → one table: rows one after the other, or columns side by side."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd

from penstock._messages import listed, quoted
from penstock.io._errors import TableError
from penstock.io._notes import Notebook
from penstock.io._raw import RawTable
from penstock.io._time_column import Clock, TimeOptions, find_clock


@dataclass(frozen=True)
class Combined:
    """A raw table, its clock and units; `lengths` are the numbers of rows from each file, if files were appended."""

    frame: pd.DataFrame
    clock: Clock
    decimal: str
    lengths: tuple[int, ...]
    units: Mapping[str, str]


def combine(tables: Sequence[RawTable], options: TimeOptions, taken: Collection[str], notebook: Notebook) -> Combined:
    """Append tables with the same columns; join tables with different columns on their time; refuse a mixture."""
    if have_same_columns(tables):
        frame = tables[0].frame
        if len(tables) > 1:
            frame = pd.concat([table.frame for table in tables], ignore_index=True)
            notebook.add(
                "appended files",
                f"{len(tables)} files with the same columns were put one after the other.",
                len(tables),
            )
        clock = find_clock(frame, options, taken, notebook)
        lengths = tuple(len(table.frame) for table in tables)
        return Combined(frame, clock, _common_decimal(tables), lengths, _all_units(tables))
    return _joined(tables, options, taken, notebook)


def have_same_columns(tables: Sequence[RawTable]) -> bool:
    return all(set(table.frame.columns) == set(tables[0].frame.columns) for table in tables)


def _all_units(tables: Sequence[RawTable]) -> dict[str, str]:
    return {name: unit for table in tables for name, unit in table.units.items()}


def _common_decimal(tables: Sequence[RawTable]) -> str:
    """A comma if any has it: the numbers of the others have been read already."""
    return "," if any(table.decimal == "," for table in tables) else "."


def _joined(tables: Sequence[RawTable], options: TimeOptions, taken: Collection[str], notebook: Notebook) -> Combined:
    clocks = [_clock_of(table, options, taken, notebook) for table in tables]
    parts = [table.frame.drop(columns=list(clock.columns)) for table, clock in zip(tables, clocks, strict=True)]
    _refuse_mixture(tables, parts)
    for table, clock, part in zip(tables, clocks, parts, strict=True):
        part.index = _unique_stamps(table.name, clock)
    zones = {str(part.index.tz) for part in parts if isinstance(part.index, pd.DatetimeIndex)}
    if len({zone == "None" for zone in zones}) > 1:
        raise TableError(
            f"Of {listed([table.name for table in tables])} some have time stamps with a zone and some without, and "
            f"cannot be joined. Pass timezone."
        )
    frame = pd.concat(parts, axis=1, join="outer", sort=True)
    stamps = pd.DatetimeIndex(frame.index)
    lonely = int((~np.logical_and.reduce([stamps.isin(part.index) for part in parts])).sum())
    notebook.add(
        "joined files",
        f"{len(tables)} files with different columns were joined on time; {lonely:,} of {len(stamps):,} time stamps "
        f"are not in all of them, and the values there count as missing.",
        lonely,
    )
    clock = Clock(stamps, clocks[0].name, ())
    return Combined(frame.reset_index(drop=True), clock, _common_decimal(tables), (len(stamps),), _all_units(tables))


def _clock_of(table: RawTable, options: TimeOptions, taken: Collection[str], notebook: Notebook) -> Clock:
    missing = [name for name in options.columns if name not in table.frame.columns]
    if missing:
        raise TableError(f"{table.name} has no column {quoted(missing[0])} (given as time). Files are joined on time.")
    clock = find_clock(table.frame, options, taken, notebook)
    if clock.times is None:
        raise TableError(
            f"{table.name} has other columns than the files beside it, and no time to join them on. Name its time "
            f"column, or read it alone."
        )
    return clock


def _refuse_mixture(tables: Sequence[RawTable], parts: Sequence[pd.DataFrame]) -> None:
    """Columns must be all the same or all different: anything between is a mistake, or more than we should guess."""
    for number, part in enumerate(parts):
        for other in range(number):
            shared = [name for name in part.columns if name in parts[other].columns]
            if shared:
                raise TableError(
                    f"{tables[other].name} and {tables[number].name} share some columns ({listed(shared, most=4)}) but "
                    f"not all. Files that belong together have the same columns (then rows are appended) or different "
                    f"ones (then they are joined on time): rename columns, or read the files apart."
                )


def _unique_stamps(name: str, clock: Clock) -> pd.DatetimeIndex:
    assert clock.times is not None
    odd = len(clock.times) - clock.times.nunique()
    if odd:
        raise TableError(
            f"{name} has {odd:,} time stamps that are missing or come more than once, so that it cannot be joined to "
            f"other files on time. Remove these rows, or read the file alone."
        )
    return clock.times
