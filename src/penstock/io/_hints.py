"""Recognise what was probably not meant: a table that is transposed, local times through a change of the clocks, and
stamps that are coarser than the rows."""

from __future__ import annotations

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from penstock._messages import duration_in_words, listed, option, quoted
from penstock.io._combine import RawTable
from penstock.io._daylight import ZONES, change_of_clocks
from penstock.io._layout import DATA, TEXT, kind_of_field
from penstock.io._time_texts import is_clock_alone, is_time
from penstock.io.table import ReadLog, TableError

PER_SECOND = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}  # units of times
_FEWEST_COLUMNS = 10  # of a table that looks transposed
_NEARLY_ALL = 0.8  # of its columns are alike
_FEWEST_STAMPS, _EVEN = 20, 0.95  # different ones, and the share that is as the others, to spread rows between them
_AS_FAR = 1.2  # times the difference of rows from one stamp to the next


def check_orientation(raw: RawTable, log: ReadLog) -> None:
    """Refuse a table with times in its header and names in its first column; note one that only looks transposed."""
    frame = raw.frame
    n_rows, width = frame.shape
    if width < 4 or n_rows < 2:
        return
    clocks = [name for name in map(str, frame.columns) if is_clock_alone(name)]
    if len(clocks) >= _FEWEST_COLUMNS:
        said = (
            f"The columns of {raw.name} are called as times of day, {listed(clocks, most=2)}, as if each row were a day"
        )
        said = f"{said} of one reading. Give it a row for each time, in pandas by frame.melt."
        log.add("transposed", said, len(clocks), tuple(clocks))
        return
    above = list(map(str, frame.columns)) if not raw.unnamed else list(map(str, frame.iloc[0]))
    names = frame.iloc[:, 0] if not raw.unnamed else frame.iloc[1:, 0]
    if frame.dtypes.iloc[0].kind not in "OUT" or any(kind_of_field(str(name)) != TEXT for name in names.iloc[:100]):
        return
    if names.isna().any() or not names.is_unique:
        return
    times = sum(is_time(field) for field in above[1:101])
    if times >= max(3, _NEARLY_ALL * len(above[1:101])):
        raise TableError(
            f"{raw.name} is transposed: its first line holds times, such as {quoted(above[1])}, and its first column "
            f"names, such as {quoted(names.iloc[0])}. Give it a row for each time and a column for each name: in Excel "
            f"by Paste Special, Transpose; in pandas by frame.set_index(frame.columns[0]).T."
        )
    numeric = sum(kind.kind in "iuf" for kind in frame.dtypes.iloc[1:])
    ordinal = all(kind_of_field(field) == DATA or field.startswith("column ") for field in above[1:101])
    if width >= _FEWEST_COLUMNS and width > n_rows and ordinal and numeric >= _NEARLY_ALL * (width - 1):
        said = (
            f"{raw.name} looks transposed: {width:,} columns of numbers without names, and {n_rows:,} rows that begin"
        )
        said = f"{said} with names, such as {quoted(names.iloc[0])}. Rows should be times, and columns sensors."
        log.add("transposed", said, width)


def note_clock_changes(times: pd.DatetimeIndex, steps: NDArray[np.int64], log: ReadLog) -> None:
    """Note an hour that comes twice, or is missing, in local stamps: times in the order of the rows, and their steps.

    An hour is missing in many records; it is noted where clocks are set forward in that hour somewhere. One that comes
    twice is noted wherever it is, in rows that are in order otherwise, and where each of its stamps is there twice.
    """
    if times.tz is not None or len(times) < 4 or steps.min() == steps.max():  # as regular as can be
        return
    forward = steps[steps > 0]
    if 2 * len(forward) < np.count_nonzero(steps):  # the newest first
        times, steps = times[::-1], -steps[::-1]
        forward = steps[steps > 0]
    second = PER_SECOND[times.unit]
    hour, usual = 3600 * second, int(np.median(forward)) if len(forward) else 0
    if not 0 < usual <= hour:
        return
    years = 1 + int((times[-1] - times[0]) / pd.Timedelta(days=365))
    near = hour // 10
    back = np.flatnonzero((np.abs(steps - (usual - hour)) <= near) & (steps <= 0))
    if usual == hour:  # the stamp comes again
        back = back[steps[back] == 0]
    twice = [times[place + 1].floor("h") for place in back[: 2 * years + 1].tolist()]
    twice += _doubled_hours(times, steps, usual, hour)
    ahead = np.flatnonzero(np.abs(steps - (usual + hour)) <= near)
    missing = [times[place + 1].floor("h") - pd.Timedelta(minutes=30) for place in ahead[: 20 * years].tolist()]
    if len(twice) > 2 * years or np.count_nonzero(steps < 0) > len(twice):  # in no order anyway
        twice = []
    fitting = {
        zone: sum(change_of_clocks(at, zone) < 0 for at in twice)
        + sum(change_of_clocks(at, zone) > 0 for at in missing)
        for zone in (ZONES if twice or missing else ())
    }
    best = max(fitting, key=lambda zone: fitting[zone], default="")
    zone = best if fitting.get(best) else ""
    missing = [at for at in missing if zone and change_of_clocks(at, zone) > 0]
    if usual == hour:  # a stamp that comes twice says little by itself
        twice = [at for at in twice if zone and change_of_clocks(at, zone) < 0]
    how = f"With the time zone set (such as {option('timezone', zone or 'Europe/Berlin')})"
    if twice:
        said = f"Clocks seem to have been set back at {twice[0]}: an hour comes twice."
        log.add("daylight saving", f"{said} {how} the two are distinguished.", len(twice))
    if missing:
        said = f"Clocks seem to have been set forward before {missing[0].ceil('h')}: an hour is missing, as in {zone}."
        log.add("daylight saving", f"{said} {how} it is no gap.", len(missing))


def spread_stamps(
    times: pd.DatetimeIndex, values: pd.DataFrame, log: ReadLog
) -> tuple[pd.DatetimeIndex, tuple[int, int] | None]:
    """Put rows that share a stamp at even distances, if stamps are only written more coarsely than rows were taken.

    So it is where each stamp comes as often, stamps are evenly apart, and rows of one stamp differ no more than those
    of different stamps do; else they may be of several machines, which is noted.

    times : in order, of the rows of `values`.

    Returns
    -------
    The times, and, if they were spread, how many rows share a stamp, and the microseconds from one to the next.
    """
    stamps = times.as_unit("us").asi8
    if 3 * np.count_nonzero(stamps[1:] == stamps[:-1]) < len(stamps):
        return times, None
    starts = np.flatnonzero(np.diff(stamps, prepend=stamps[0] - 1))
    counts = np.diff(starts, append=len(stamps))
    often, apart = int(np.median(counts)), np.diff(stamps[starts])
    if often < 2 or len(starts) < _FEWEST_STAMPS:
        return times, None
    step = int(np.median(apart))
    if (counts[1:-1] == often).mean() < _EVEN or (apart == step).mean() < _EVEN:
        return times, None
    numbers = values.select_dtypes("number").to_numpy()
    same = np.diff(stamps) == 0
    with np.errstate(invalid="ignore"):
        within, between = np.abs(np.diff(numbers, axis=0))[same], np.abs(numbers[often:] - numbers[:-often])
    if (within == 0).all(axis=1).mean() > 0.5:
        return times, None  # rows that are there twice
    near = duration_in_words(step / often / 1e6)
    ratio = np.nanmean(within, axis=0) / np.maximum(np.nanmean(between, axis=0), np.finfo(np.float64).tiny)
    if not np.nanmedian(ratio) <= _AS_FAR:
        said = f"Each time stamp comes {often} times, with rows that differ as if they were of {often} machines: name"
        log.add("repeated stamps", f"{said} the column that tells them apart ({option('group')}).", len(stamps))
        return times, None
    place = np.arange(len(stamps)) - np.repeat(starts, counts)
    place[: counts[0]] += max(0, often - counts[0])  # a record that begins within a stamp
    moved = stamps + place * step // np.repeat(np.maximum(counts, often), counts)
    said = f"Each time stamp comes {often} times, as of rows every {near} with coarser stamps: rows were put {near}"
    said = f"{said} apart. If they are of several machines, name the column that tells them apart ({option('group')})."
    log.add("repeated stamps", said, len(stamps), changed=True)
    index = pd.DatetimeIndex(moved.astype("M8[us]"), name=times.name)
    return index if times.tz is None else index.tz_localize("UTC").tz_convert(times.tz), (often, step)


def _doubled_hours(times: pd.DatetimeIndex, steps: NDArray[np.int64], usual: int, hour: int) -> list[pd.Timestamp]:
    """Return the hours in which nearly each stamp is there twice, in rows that were sorted by time."""
    again = np.flatnonzero(steps == 0)
    if usual == hour or not len(again):
        return []
    hours = times[again + 1].floor("h")
    counts = hours.value_counts()
    return list(counts.index[counts >= _NEARLY_ALL * hour / usual]) if len(counts) < 100 else []
