"""Compare two periods of a table, or two units with the same tags: which tags differ, and since when."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from penstock._messages import counted, listed, option
from penstock._types import FloatArray
from penstock.detection import rows_of_period
from penstock.io import Table, TableError

_PART = re.compile(r"[^\W_]+")  # a word of a tag's name: what stands between signs
_FEWEST_SHARED = 2  # tags, for a word to be taken for a unit
_LOW, _HIGH = 0.05, 0.95  # between which the usual readings lie
_LEAST_STEP = 0.1  # of the usual range: a smaller step of a difference is none, however little it varies


def compare_periods(table: Table, first: str, second: str) -> pd.DataFrame:
    """Say how tags differ between two periods, the one that differs most first: what a repair or a season changed.

    Each tag is compared alone: that two no longer fit together is found by `penstock.detect` with the first period as
    `train_periods`.

    first, second : "START..END", as in `exclude_periods` of `penstock.detect`.

    Returns one row per tag with numbers: tag; the medians (first, second); change; apart, the change in units of the
    range that nine tenths of the first period's readings lie in, NaN where that has no width; differs, whether the
    second median is outside that range; since, of those that differ, the time (or row) from which readings are nearer
    to the second median, None where the periods overlap.

    >>> from penstock.io import read_table
    >>> table = read_table({"flow": [1.0, 2.0, 3.0, 7.0, 8.0, 9.0], "head": [5.0, 6.0, 7.0, 5.0, 6.0, 7.0]})
    >>> compare_periods(table, "0..2", "3..5")[["tag", "change", "differs", "since"]].values.tolist()
    [['flow', 6.0, True, 3], ['head', 0.0, False, None]]
    """
    rows = [rows_of_period(table, each) for each in (first, second)]
    for mine, words in zip(rows, (first, second), strict=True):
        if not mine.any():
            raise TableError(f"There is no row in {words}.")
    places = [np.flatnonzero(mine) for mine in rows]
    begin, end = min(each[0] for each in places), max(each[-1] for each in places) + 1
    goes_back = places[1][-1] < places[0][0]
    apart_in_time = goes_back or places[0][-1] < places[1][0]
    found = []
    for name, values in _numbers(table.values).items():
        record = _compared(name, values[rows[0]], values[rows[1]])
        if record["differs"] and apart_in_time:
            levels = (record["second"], record["first"]) if goes_back else (record["first"], record["second"])
            record["since"] = _moment(table, begin + _turn(values[begin:end], *levels))
        found.append(record)
    return _ordered(found)


def compare_units(one: Table, other: Table) -> pd.DataFrame:
    """Say how the same tags differ between two units, such as sister machines, the one that differs most first.

    Where both have times, readings of the same moment are compared. A tag differs if their difference has moved to
    another level, by more than it usually varies: `since` says when. It differs too, and did all the time, if the
    median of one unit is outside the range that nine tenths of the other's readings lie in.

    Returns what `compare_periods` does: the medians of the two units, since the difference moved if it did.

    >>> from penstock.io import read_table
    >>> times = [f"2024-05-01 {hour:02d}:00" for hour in range(12)]
    >>> one = read_table({"time": times, "oil": [40.0, 41.0] * 6})
    >>> other = read_table({"time": times, "oil": [40.0, 41.0] * 4 + [60.0, 61.0] * 2})
    >>> found = compare_units(one, other).iloc[0]
    >>> float(found["change"]), str(found["since"])
    (20.0, '2024-05-01 08:00:00')
    """
    numbers = [_numbers(each.values) for each in (one, other)]
    shared = [name for name in numbers[0] if name in numbers[1]]
    if not shared:
        raise TableError(f"They share no tag with numbers: {listed(one.names)} and {listed(other.names)}.")
    partner = _same_moments(one, other)
    found = []
    for name in shared:
        mine, theirs = numbers[0][name], numbers[1][name]
        record = _compared(name, mine, theirs)
        if partner is not None:
            difference = np.where(partner >= 0, theirs[partner], np.nan) - mine
            at, before, after, noise = _step(difference)
            if abs(after - before) > max(noise, _LEAST_STEP * _width(mine)):
                record |= _compared(name, mine[at:], mine[at:] + after)
                record |= {"differs": True, "since": _moment(one, at)}
        found.append(record)
    return _ordered(found)


def unit_tables(table: Table, first: str, second: str) -> tuple[Table, Table]:
    """Return the tables of two units, whose tags have the same names then.

    A unit is a value of the column of groups, or a word of tag names: "unit1" in unit1_oil and unit1.flow.

    >>> from penstock.io import read_table
    >>> table = read_table({"unit1_oil": [1.0, 2.0], "unit2_oil": [3.0, 4.0], "level": [5.0, 6.0]})
    >>> [each.names for each in unit_tables(table, "unit1", "unit2")]
    [('oil',), ('oil',)]
    """
    if first == second:
        raise TableError("Name two different units.")
    if table.group is not None and {first, second} <= set(table.group):
        one, other = (table.only((table.group == unit).to_numpy()) for unit in (first, second))
        return one, other
    names = [_names_of_unit(table.names, unit) for unit in (first, second)]
    for unit, mine in zip((first, second), names, strict=True):
        if not mine:
            known = units_of(table)
            hint = f" There seem to be {listed(known)}." if known else ""
            raise TableError(f"{unit!r:.60} is no group, and no word in the names of tags.{hint}")
    one, other = (replace(table, values=table.values[list(mine)].rename(columns=mine), group=None) for mine in names)
    return one, other


def units_of(table: Table) -> list[str]:
    """Return what may be units of a table: its groups, or words of tag names that differ in a number or letter alone.

    >>> from penstock.io import read_table
    >>> names = ("G1.oil", "G2.oil", "G1.flow", "G2.flow", "level")
    >>> units_of(read_table({name: [1.0, 2.0] for name in names}))
    ['G1', 'G2']
    """
    if table.group is not None:
        return list(dict.fromkeys(table.group))
    forms: dict[tuple[str, str, str], list[str]] = {}
    for name in table.names:
        for match in _PART.finditer(str(name)):
            word = match[0]
            kind = "letter" if len(word) == 1 and word.isalpha() else re.sub(r"\d+", "#", word)
            if kind != word:
                forms.setdefault((kind, name[: match.start()], name[match.end() :]), []).append(word)
    shared = Counter(pair for words in forms.values() for pair in combinations(words, 2))
    most = max(shared.values(), default=0)
    if most < _FEWEST_SHARED:
        return []
    return list(dict.fromkeys(word for pair, count in shared.items() if count * 2 > most for word in pair))


def compare_sources(
    source: str | list[str],
    read: Callable[[str | list[str]], Table],
    *,
    periods: Sequence[str] = (),
    units: Sequence[str] = (),
) -> pd.DataFrame:
    """Compare two periods or two units of what is read from sources; a file is a unit too, by its name."""
    if bool(periods) == bool(units) or len(periods or units) != 2:
        raise TableError(f"Give two periods ({option('period')}), or two units ({option('unit')}).")
    if periods:
        return compare_periods(read(source), *periods)
    files = file_units(source)
    if {*units} <= {*files}:
        return compare_units(read(files[units[0]]), read(files[units[1]]))
    return compare_units(*unit_tables(read(source), *units))


def file_units(source: str | list[str]) -> dict[str, str]:
    """Return several files by what they are called as units: their names without endings.

    >>> file_units(["/data/unit1.csv", "/data/unit2.csv.gz"])
    {'unit1': '/data/unit1.csv', 'unit2': '/data/unit2.csv.gz'}
    """
    sources = [source] if isinstance(source, str) else source
    names = {Path(each).name.partition(".")[0]: each for each in sources}
    return names if len(names) == len(sources) > 1 else {}


def compared_in_words(found: pd.DataFrame) -> str:
    """Return which tags differ.

    >>> compared_in_words(pd.DataFrame({"tag": ["oil", "flow"], "differs": [True, False]}))
    "1 of 2 tags differs: 'oil'."
    """
    names = found["tag"][found["differs"]].tolist()
    total = counted(len(found), "tag")
    if not names:
        return f"None of {total} differs."
    return f"{len(names)} of {total} {'differs' if len(names) == 1 else 'differ'}: {listed(names)}."


def _numbers(frame: pd.DataFrame) -> dict[str, FloatArray]:
    return {str(name): frame[name].to_numpy(dtype=np.float64) for name in frame.select_dtypes("number")}


def _compared(name: str, one: FloatArray, other: FloatArray) -> dict[str, Any]:
    """Return the record of a tag; nothing differs where one of both has no reading."""
    low, first, high = _quantiles(one, (_LOW, 0.5, _HIGH))
    (second,) = _quantiles(other, (0.5,))
    width = high - low
    change = second - first
    apart = change / width if width > 0 else np.nan
    return {"tag": name, "first": first, "second": second, "change": change, "apart": apart,
            "differs": bool(second < low or second > high), "since": None}  # fmt: skip


def _quantiles(values: FloatArray, shares: Sequence[float]) -> list[float]:
    present = values[~np.isnan(values)]
    return np.quantile(present, shares).tolist() if len(present) else [np.nan] * len(shares)


def _width(values: FloatArray) -> float:
    low, high = _quantiles(values, (_LOW, _HIGH))
    return high - low


def _turn(values: FloatArray, before: float, after: float) -> int:
    """Return the row from which readings are nearer to one level than to the other, with the least regret."""
    nearer = np.abs(values - before) - np.abs(values - after)
    lost = np.concatenate([[0.0], np.cumsum(np.nan_to_num(nearer))])
    return min(int(np.argmin(lost)), len(values) - 1)


def _step(values: FloatArray) -> tuple[int, float, float, float]:
    """Return where a series moves most from one level to another, both levels, and the width of what is left then."""
    known = np.flatnonzero(~np.isnan(values))
    present = values[known]
    n = len(present)
    if n < 2:
        return 0, np.nan, np.nan, np.inf
    counts = np.arange(1, n)
    sums = np.cumsum(present - present.mean())[:-1]
    at = int(np.argmax(sums**2 / (counts * (n - counts)))) + 1  # of least squares: two constant levels
    before, after = np.median(present[:at]), np.median(present[at:])
    left = np.concatenate([present[:at] - before, present[at:] - after])
    return int(known[at]), float(before), float(after), _width(left)


def _same_moments(one: Table, other: Table) -> Any:
    """Return for each row of a table the row of the other nearest in time, -1 if none is near; None without times."""
    if one.time is None or other.time is None or (one.time.tz is None) != (other.time.tz is None):
        return None
    if not (one.in_time and other.in_time) or len(other.time) < 2 or len(one.time) < 2:
        return None
    times = [each.time.as_unit("ns").asi8 for each in (one, other)]  # type: ignore[union-attr]
    after = np.clip(np.searchsorted(times[1], times[0]), 1, len(times[1]) - 1)
    nearer = np.where(times[0] - times[1][after - 1] <= times[1][after] - times[0], after - 1, after)
    near = np.abs(times[1][nearer] - times[0]) <= max(np.median(np.diff(each)) for each in times)
    return np.where(near, nearer, -1) if near.sum() * 2 >= len(near) else None


def _moment(table: Table, row: int) -> Any:
    return int(row) if table.time is None else table.time[row]


def _names_of_unit(names: Sequence[str], unit: str) -> dict[str, str]:
    """Return the tags with the name of a unit in them, and what they are called without it."""
    word = re.compile(rf"(?<![^\W_]){re.escape(unit)}(?![^\W_])")
    return {name: word.sub("", name, count=1).strip(" _.:/-") or name for name in names if word.search(name)}


def _ordered(found: list[dict[str, Any]]) -> pd.DataFrame:
    """Return records as a table: those that differ first, those that never moved before on top."""
    table = pd.DataFrame([{**each, "since": None} for each in found])
    table["since"] = pd.Series([each["since"] for each in found], dtype=object)  # as they are: a row stays a number
    moved = table["apart"].abs().where(table["apart"].notna(), np.where(table["change"].abs() > 0, np.inf, -1.0))
    order = np.lexsort((-moved.to_numpy(), ~table["differs"].to_numpy()))
    return table.iloc[order].reset_index(drop=True)
