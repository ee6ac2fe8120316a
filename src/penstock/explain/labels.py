"""Compare findings with a column of labels: which rows are known faults, and which of these were found."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from numbers import Number
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray

from penstock._messages import counted, quoted
from penstock._types import IndexArray
from penstock.explain.events import Clock, Length, checked_arrays, checked_length, clock_of
from penstock.io import TableError
from penstock.ranking import precision_at_n

NORMAL, FAULT, UNKNOWN = "normal", "fault", "unknown"
NORMAL_WORDS = frozenset({"normal", "ok", "good", "healthy", "no", "none", "false", "0", ""})
_MISSING = {"nan", "na", "n/a", "null", "-", "--"}  # as texts
_FAULT_WORDS = {
    "abnormal", "anomalous", "anomaly", "attack", "bad", "broken", "fail", "failed", "failure", "fault", "faulty",
    "outlier", "true", "yes",
}  # fmt: skip
_UNKNOWN_WORDS = {"?", "unknown", "unlabeled", "unlabelled", "undefined"}
UNKNOWN_CODES = (-99.0, -999.0, -9999.0, -99999.0)
_SHOWN = 5


@dataclass(frozen=True, eq=False)
class Truth:
    """What a label says of each row, and in a sentence how it was read.

    faults, unknown : which rows are known faults, and of which nothing is known. The others are normal.
    """

    faults: NDArray[np.bool_]
    unknown: NDArray[np.bool_]
    sentence: str


def known_faults(label: pd.Series[Any], fault_values: Sequence[Any] = (), unknown_values: Sequence[Any] = ()) -> Truth:
    """Read a column of labels.

    Parameters
    ----------
    label : Series
        One value a row.
    fault_values : values
        Those that mean a fault; all others, but the unknown ones, are normal then. Numbers are compared as numbers,
        texts without regard to case and blanks ("A ttack" is "attack").
    unknown_values : values
        Those of rows of which nothing is known.

    Without `fault_values`, 0 is normal and whole numbers above are faults; where there are 1 and −1 alone, these are
    scikit-learn's, and −1 is a fault; −99, −999 … are unknown. Of texts, normal, ok, good, healthy, no, none, false and
    nothing are normal in upper and lower case, and all others are faults if there is a normal one too, or a missing
    value, or if they are words for a fault (attack, faulty, yes …). Missing is normal.

    Raises
    ------
    TableError
        If it is not clear which of its values mean a fault; they are named with their counts.

    Examples
    --------
    >>> known_faults(pd.Series([0, 1, 0, 0], name="outlier")).sentence
    "Label 'outlier': 1 of 4 rows is a known fault (1); the others hold 0."
    >>> truth = known_faults(pd.Series(["Normal", "trip", None, "leak", "trip"], name="state"))
    >>> truth.faults.tolist(), truth.sentence
    ([False, True, False, True, True],
     "Label 'state': 3 of 5 rows are known faults ('trip', 'leak'); the others hold 'Normal' or nothing.")
    >>> known_faults(pd.Series([0, 1, -999], name="flag"), fault_values=[1], unknown_values=[-999]).sentence
    "Label 'flag': 1 of 3 rows is a known fault (1); 1 row is unknown (-999) and not counted; the others count as
     normal: 0 (1 row)."
    """
    codes, distinct = pd.factorize(label, use_na_sentinel=True)
    values = list(distinct)
    counts = np.bincount(codes + 1, minlength=len(values) + 1)[1:]
    signs = not len(fault_values) and {_as_number(value) for value in values} == {-1.0, 1.0}
    if len(fault_values):
        kinds = _kinds_as_told(values, fault_values, unknown_values)
    else:
        kinds = _kinds_as_read(values, unknown_values, signs, bool((codes < 0).any()))
    open_ = [place for place, kind in enumerate(kinds) if kind is None]
    if open_:
        raise TableError(
            f"Label {quoted(label.name)}: it is not clear which of its values mean a fault: "
            f"{_with_counts(values, counts, range(len(values)))}. Name those that do in fault_values, and those of "
            f"rows of which nothing is known in unknown_values."
        )
    faults, unknown = (np.array([*(kind == which for kind in kinds), False])[codes] for which in (FAULT, UNKNOWN))
    sentence = _sentence(label, values, counts, kinds, bool((codes < 0).any()), bool(len(fault_values)))
    strange = [value for value in (*fault_values, *unknown_values) if _folded(value) not in set(map(_folded, values))]
    sentence += f" No row holds {_shown(strange)}." if strange else ""
    sentence += " It was read as scikit-learn writes labels, where -1 is a fault." if signs else ""
    return Truth(faults, unknown, sentence)


def _kinds_as_told(values: Sequence[Any], faults: Sequence[Any], unknown: Sequence[Any]) -> list[str | None]:
    bad, open_ = set(map(_folded, faults)), set(map(_folded, unknown))
    both = bad & open_
    if both:
        raise TableError(f"{_shown(sorted(both, key=str))} is given as a fault value and as an unknown value.")
    return [FAULT if _folded(value) in bad else UNKNOWN if _folded(value) in open_ else NORMAL for value in values]


def _kinds_as_read(values: Sequence[Any], unknown: Sequence[Any], signs: bool, missing: bool) -> list[str | None]:
    """What each value means; None where that is not clear."""
    open_ = set(map(_folded, unknown))
    kinds = [UNKNOWN if _folded(value) in open_ else _kind(value, signs) for value in values]
    if NORMAL in kinds or missing:  # texts beside a normal one are names of faults
        kinds = [FAULT if kind is None and np.isnan(_as_number(value)) else kind
                 for value, kind in zip(values, kinds, strict=True)]  # fmt: skip
    return kinds


def _kind(value: Any, signs: bool) -> str | None:
    """What a value means by itself; None where that is not clear."""
    if isinstance(value, bool | np.bool_):
        return FAULT if value else NORMAL
    number, word = _as_number(value), str(value).strip().casefold()
    if np.isnan(number):
        plain = "".join(word.split())
        known = {NORMAL: NORMAL_WORDS | _MISSING, FAULT: _FAULT_WORDS, UNKNOWN: _UNKNOWN_WORDS}
        return next((kind for kind, words in known.items() if plain in words), None)
    if signs:
        return FAULT if number == -1 else NORMAL
    if number in UNKNOWN_CODES:
        return UNKNOWN
    return NORMAL if number == 0 else FAULT if number > 0 and number.is_integer() else None


def _folded(value: Any) -> Any:
    """What values are compared by: numbers, and texts without case and blanks."""
    if isinstance(value, bool | np.bool_):
        return str(bool(value)).casefold()
    number = _as_number(value)
    return "".join(str(value).casefold().split()) if np.isnan(number) else number


def _sentence(
    label: pd.Series[Any],
    values: Sequence[Any],
    counts: NDArray[np.integer],
    kinds: Sequence[str | None],
    missing: bool,
    told: bool,
) -> str:
    of = {kind: [place for place, each in enumerate(kinds) if each == kind] for kind in (NORMAL, FAULT, UNKNOWN)}
    name, n = quoted(label.name), len(label)
    count, unknown = (int(counts[of[kind]].sum()) for kind in (FAULT, UNKNOWN))
    held, normal = ([values[place] for place in of[kind]] for kind in (FAULT, NORMAL))
    nothing = ["nothing"] if missing else []
    others = " or ".join(([_shown(normal)] if normal else []) + nothing)
    ending = f"; the others hold {others}" if others else ""
    if told and normal:
        others = "the others" if count or unknown else "all"
        ending = f"; {others} count as normal: {_with_counts(values, counts, of[NORMAL])}{' or nothing' * missing}"
    if unknown:
        seen = _shown([values[place] for place in of[UNKNOWN]])
        are = "is unknown" if unknown == 1 else "are unknown"
        ending = f"; {counted(unknown, 'row')} {are} ({seen}) and not counted{ending}"
    if not count:
        if not unknown and not told:
            ending = f"; they hold {others}" if others else ""
        return f"Label {name}: none of {n:,} rows is a known fault{ending}."
    if count == n:
        return f"Label {name}: all {n:,} rows are known faults ({_shown(held)}), so there is no normal row."
    are = "is a known fault" if count == 1 else "are known faults"
    return f"Label {name}: {count:,} of {n:,} rows {are} ({_shown(held)}){ending}."


def _with_counts(values: Sequence[Any], counts: NDArray[np.integer], places: Sequence[int]) -> str:
    ordered = sorted(places, key=lambda place: -int(counts[place]))
    words = [f"{_word(values[place])} ({counted(int(counts[place]), 'row')})" for place in ordered[:_SHOWN]]
    return ", ".join(words) + (f" and {len(ordered) - _SHOWN:,} more" if len(ordered) > _SHOWN else "")


def _as_number(value: Any) -> float:
    """What a value counts as; NaN for a text that spells no number, and for True and False."""
    number = None if isinstance(value, bool | np.bool_) else _number(str(value).strip())
    return np.nan if number is None else number


def _number(word: str) -> float | None:
    """The number that a text spells, with a decimal point or comma."""
    try:
        number = float(word.replace(",", ".", 1))
    except ValueError:
        return None
    return None if np.isnan(number) else number


def _shown(values: Sequence[Any]) -> str:
    words = list(dict.fromkeys(map(_word, values)))
    more = f" and {len(words) - _SHOWN:,} more" if len(words) > _SHOWN else ""
    return ", ".join(words[:_SHOWN]) + more


def _word(value: Any) -> str:
    if isinstance(value, float):
        return f"{value:.6g}"
    spelled = str(value).strip()
    plain = isinstance(value, bool | np.bool_ | Number) or _number(spelled) is not None
    return spelled[:20] if plain else quoted(spelled)


_HORIZON = pd.Timedelta(hours=24)
_EARLIEST = -(2**63)


@dataclass(frozen=True, eq=False)
class Agreement:
    """How scores and flags agree with known faults.

    n_known, n_judged : rows of known faults, and rows with a score.
    n_ranked, precision_at_n : the share of known rows among the N highest scores, where N is the number of known rows
        that have a score. NaN if all of those with a score are known, or none.
    faults : one row per known fault, numbered from 1: start, end, rows, flagged (rows flagged inside), first_alarm (the
        first flagged row from `horizon` before the start to the end, but after the previous fault), lead (from the
        first alarm to the start: positive if it came before), found, judged (whether any row inside has a score: else
        nobody could find it). Without time, start, end, first_alarm and lead count rows.
    horizon : as used.
    first_rows : where each fault starts in the table.
    n_judged_faults, n_found, n_inside : how many faults have a row with a score, so that they could be found; of these,
        how many had an alarm, and how many a flagged row inside (the other found ones had an earlier alarm alone).
    """

    n_known: int
    n_judged: int
    n_ranked: int
    precision_at_n: float
    faults: pd.DataFrame
    horizon: Length
    first_rows: IndexArray
    n_judged_faults: int
    n_found: int
    n_inside: int


def agreement(
    known: ArrayLike,
    flags: ArrayLike,
    scores: ArrayLike,
    time: pd.DatetimeIndex | None,
    *,
    horizon: Length | None = None,
    gap: Length | None = None,
    groups: ArrayLike | None = None,
) -> Agreement:
    """Compare flags and scores with known faults.

    Parameters
    ----------
    known, flags, scores : one a row
        A score may be NaN: the row is not judged then.
    time : DatetimeIndex or None
        In ascending order; None: the positions of the rows count.
    horizon : Timedelta, int (rows) or None
        How long before a fault an alarm counts as a warning. None: 24 hours; without time, 0 rows.
    gap : Timedelta, int (rows) or None
        Known rows in a row are one fault, unless they are farther than this apart. None: as in `group_events`; with
        groups they are one fault however far apart, as a run has holes but is one.
    groups : one a row, optional
        As in `group_events`: no fault spans two, nor does an alarm in one count for a fault in another.

    Examples
    --------
    >>> time = pd.date_range("2024-05-01", periods=8, freq="h")
    >>> known = [False, False, False, True, True, False, False, True]
    >>> flags = [False, True, False, False, True, False, False, False]
    >>> found = agreement(known, flags, [1.0, 7.0, 1.0, 2.0, 8.0, 1.0, 1.0, 6.0], time)
    >>> found.faults[["rows", "flagged", "lead", "found"]]
           rows  flagged            lead  found
    fault
    1         2        1 0 days 02:00:00   True
    2         1        0             NaT  False
    >>> found.n_known, round(found.precision_at_n, 3)
    (3, 0.667)
    """
    (truth, flagged, values), n = checked_arrays(known=known, flags=flags, scores=scores)
    clock = clock_of(time, n, groups)
    before = checked_length(horizon, 0 if time is None else _HORIZON, clock, "horizon")
    usual = n if groups is not None else clock.usual_length() if gap is None else 0
    apart = checked_length(gap, usual, clock, "gap")
    first, last = _stretches(truth, clock, apart)
    judged = ~np.isnan(values)
    faults = _faults(first, last, flagged, _windows(first, last, clock, before), clock)
    until = np.append(0, np.cumsum(judged))
    faults["judged"] = until[last + 1] > until[first]
    n_ranked, n_judged = int(truth[judged].sum()), int(judged.sum())
    precision = precision_at_n(truth[judged], values[judged]) if 0 < n_ranked < n_judged else float("nan")
    found, inside = faults["judged"] & faults["found"], faults["judged"] & (faults["flagged"] > 0)
    counts = int(faults["judged"].sum()), int(found.sum()), int(inside.sum())
    return Agreement(int(truth.sum()), n_judged, n_ranked, precision, faults, before, first, *counts)


def _stretches(truth: NDArray[np.bool_], clock: Clock, gap: Length) -> tuple[IndexArray, IndexArray]:
    """The first and last row of each fault: known rows that follow each other at most `gap` apart."""
    rows = np.flatnonzero(truth)
    parted = (np.diff(rows) > 1) | clock.steps_above(rows, gap)
    ends = np.flatnonzero(parted)
    if not len(rows):
        return rows, rows
    return rows[np.append(0, ends + 1)], rows[np.append(ends, len(rows) - 1)]


def _windows(first: IndexArray, last: IndexArray, clock: Clock, horizon: Length) -> IndexArray:
    """The first row at which an alarm counts for each fault."""
    ticks, width = clock.ticks(horizon), clock.width(horizon)
    starts = ticks[first]
    opening = np.where(starts < _EARLIEST + width, _EARLIEST, starts - width)  # never below what int64 holds
    after_previous = np.append(0, last[:-1] + 1)[: len(first)]
    return np.asarray(np.maximum(clock.first_from(ticks, opening, first), after_previous))


def _faults(
    first: IndexArray, last: IndexArray, flagged: NDArray[np.bool_], opening: IndexArray, clock: Clock
) -> pd.DataFrame:
    alarms = np.append(np.flatnonzero(flagged), len(flagged))
    alarm = alarms[np.searchsorted(alarms, opening)]  # the next alarm from each opening on
    found = alarm <= last
    until = np.append(0, np.cumsum(flagged))
    columns: dict[str, Any] = {
        "start": clock.stamps(first),
        "end": clock.stamps(last),
        "rows": (last - first + 1).astype(np.int64),
        "flagged": until[last + 1] - until[first],
    }
    numbers = pd.RangeIndex(1, len(first) + 1, name="fault")
    table = pd.DataFrame(columns, index=numbers)
    nearest = np.where(found, alarm, first)  # any row will do where there is no alarm
    lead: Any = first - nearest if clock.time is None else clock.time[first] - clock.time[nearest]
    kind = "Int64" if clock.time is None else None  # whole numbers that may be missing
    for name, values in (("first_alarm", clock.stamps(nearest)), ("lead", lead)):
        table[name] = pd.Series(values, index=numbers, dtype=kind).where(found)
    return table.assign(found=found)
