"""Compare findings with a column of labels: which rows are known faults, and which of these were found.

A column comes in, `Truth` goes out; flags, scores and truth come in, `Agreement` goes out.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from numbers import Number
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike

from penstock._messages import counted, quoted
from penstock._types import BoolArray, IndexArray
from penstock.explain.events import EventClock, Length, clock_of
from penstock.io import TableError
from penstock.ranking import precision_at_n

NORMAL, FAULT, UNKNOWN = _KINDS = ("normal", "fault", "unknown")
_WORDS = {
    NORMAL: "normal ok good healthy inlier no none false nan na n/a null - --",
    FAULT: "abnormal anomalous anomaly attack bad broken fail failed failure fault faulty outlier true yes",
    UNKNOWN: "? unknown unlabeled unlabelled undefined",
}
_MEANINGS = {word: kind for kind, words in _WORDS.items() for word in words.split()} | {"": NORMAL}
UNKNOWN_CODES = (-99.0, -999.0, -9999.0, -99999.0)
_SHOWN = 5


@dataclass(frozen=True, eq=False)
class Truth:
    """What a label says of each row (those that are neither are normal), and in a sentence how it was read."""

    faults: BoolArray
    unknown: BoolArray
    sentence: str


def known_faults(label: pd.Series[Any], fault_values: Sequence[Any] = (), unknown_values: Sequence[Any] = ()) -> Truth:
    """Read a column of labels.

    label : one value a row.
    fault_values : those that mean a fault; all others, but the unknown ones, are normal then. Numbers are compared as
        numbers, texts without regard to case and blanks ("A ttack" is "attack").
    unknown_values : those of rows of which nothing is known.

    Without `fault_values`, 0 is normal and whole numbers above are faults; where there are 1 and −1 alone, these are
    scikit-learn's, and −1 is a fault; −99, −999 … are unknown. Of texts, normal, ok, good, healthy, no, none, false and
    nothing are normal in upper and lower case, and all others are faults if there is a normal one too, or a missing
    value, or if they are words for a fault (attack, faulty, yes …). Missing is normal.

    Raises TableError: if it is not clear which of its values mean a fault; they are named with their counts.

    >>> known_faults(pd.Series([0, 1, 0, 0], name="outlier")).sentence
    "Label 'outlier': 1 of 4 rows is a known fault (1); 3 normal (0)."
    >>> known_faults(pd.Series([0, 1, -999], name="flag"), fault_values=[1], unknown_values=[-999]).sentence
    "Label 'flag': 1 of 3 rows is a known fault (1); 1 unknown and not counted (-999); 1 normal (0)."
    """
    codes, distinct = pd.factorize(label, use_na_sentinel=True)
    values = list(distinct)
    missing = bool((codes < 0).any())
    faults = set(map(_folded, fault_values))
    unknown = set(map(_folded, unknown_values))
    both = faults & unknown
    if both:
        raise TableError(f"{_shown(sorted(both, key=str))} is given as a fault value and as an unknown value.")
    signs = not faults and {_as_number(value) for value in values} == {-1.0, 1.0}
    if faults:
        kinds: list[str | None] = [FAULT if _folded(value) in faults else NORMAL for value in values]
    else:
        kinds = [_kind(value, signs) for value in values]
    kinds = [UNKNOWN if _folded(value) in unknown else kind for value, kind in zip(values, kinds, strict=True)]
    if NORMAL in kinds or missing:  # other texts than normal ones are names of faults
        pairs = zip(values, kinds, strict=True)
        kinds = [FAULT if kind is None and np.isnan(_as_number(value)) else kind for value, kind in pairs]
    counts = np.bincount(codes + 1, minlength=len(values) + 1)[1:]
    if None in kinds:
        order = sorted(range(len(values)), key=lambda place: -int(counts[place]))
        held = [f"{_word(values[place])} ({counted(int(counts[place]), 'row')})" for place in order[:_SHOWN]]
        more = f" and {len(order) - _SHOWN:,} more" if len(order) > _SHOWN else ""
        raise TableError(
            f"Label {quoted(label.name)}: it is not clear which of its values mean a fault: {', '.join(held)}{more}. "
            f"Name those that do in fault_values, and those of rows of which nothing is known in unknown_values."
        )
    is_fault, is_unknown = (np.array([*(kind == which for kind in kinds), False])[codes] for which in (FAULT, UNKNOWN))
    held_by = {which: [value for value, kind in zip(values, kinds, strict=True) if kind == which] for which in _KINDS}
    n_faults = int(is_fault.sum())
    n_unknown = int(is_unknown.sum())
    n = len(label)
    words = f"{n_faults:,} of {n:,} rows {'is a known fault' if n_faults == 1 else 'are known faults'}"
    words += f" ({_shown(held_by[FAULT])})" if n_faults else ""
    words += f"; {n_unknown:,} unknown and not counted ({_shown(held_by[UNKNOWN])})" if n_unknown else ""
    normal = ", ".join(filter(None, (_shown(held_by[NORMAL]), "nothing" if missing else "")))
    words += f"; {n - n_faults - n_unknown:,} normal ({normal})" if normal else "; none is normal"
    unused = [value for value in (*fault_values, *unknown_values) if _folded(value) not in set(map(_folded, values))]
    words += f". No row holds {_shown(unused)}" if unused else ""
    words += ". It was read as scikit-learn writes labels, where -1 is a fault" if signs else ""
    return Truth(is_fault, is_unknown, f"Label {quoted(label.name)}: {words}.")


def _kind(value: Any, signs: bool) -> str | None:
    """Return what a value means by itself; None where that is not clear."""
    if isinstance(value, bool | np.bool_):
        return FAULT if value else NORMAL
    number = _as_number(value)
    if np.isnan(number):
        return _MEANINGS.get("".join(str(value).casefold().split()))
    if signs:
        return FAULT if number == -1 else NORMAL
    if number in UNKNOWN_CODES:
        return UNKNOWN
    if number == 0:
        return NORMAL
    return FAULT if number > 0 and number.is_integer() else None


def _folded(value: Any) -> Any:
    """Return what values are compared by: numbers, and texts without case and blanks."""
    if isinstance(value, bool | np.bool_):
        return str(bool(value)).casefold()
    number = _as_number(value)
    return "".join(str(value).casefold().split()) if np.isnan(number) else number


def _as_number(value: Any) -> float:
    """Return the number that a value is or spells, with a decimal point or comma; NaN for other texts and bools."""
    if isinstance(value, bool | np.bool_):
        return np.nan
    try:
        return float(str(value).strip().replace(",", ".", 1))
    except ValueError:
        return np.nan


def _shown(values: Sequence[Any]) -> str:
    words = list(dict.fromkeys(map(_word, values)))
    more = f" and {len(words) - _SHOWN:,} more" if len(words) > _SHOWN else ""
    return ", ".join(words[:_SHOWN]) + more


def _word(value: Any) -> str:
    if isinstance(value, float):
        return f"{value:.6g}"
    spelled = str(value).strip()
    is_plain = isinstance(value, bool | np.bool_ | Number) or not np.isnan(_as_number(spelled))
    return spelled[:20] if is_plain else quoted(spelled)


_HORIZON = pd.Timedelta(hours=24)


@dataclass(frozen=True, eq=False)
class Agreement:
    """How scores and flags agree with known faults.

    faults : one row per known fault, numbered from 1: start, end, rows, flagged (rows flagged inside), first_alarm (the
        first flagged row from `horizon` before the start to the end, but after the previous fault), lead (from the
        first alarm to the start: positive if it came before), found, scored (whether any row inside has a score: else
        it could not be found). Without time, start, end, first_alarm and lead count rows.
    """

    n_known: int  # rows of known faults
    n_scored: int  # rows with a score
    n_ranked: int  # N: known rows that have a score
    precision_at_n: float  # the share of known rows among the N highest scores; NaN if N is 0 or all rows scored
    faults: pd.DataFrame
    horizon: Length
    first_rows: IndexArray  # where each fault starts in the table
    n_scored_faults: int  # faults that have a row with a score, so that they could be found
    n_found: int  # of these, how many had an alarm
    n_inside: int  # and how many a flagged row inside; the other found ones had an earlier alarm alone


def agreement(
    known: ArrayLike,
    flags: ArrayLike,
    scores: ArrayLike,
    time: pd.DatetimeIndex | None,
    groups: ArrayLike | None = None,
) -> Agreement:
    """Compare flags and scores with known faults.

    known, flags, scores : a score may be NaN: the row is not scored then.
    time : in ascending order; None: the positions of the rows count.
    groups : as in `group_events`: no fault spans two, nor does an alarm in one count for a fault in another.

    Known rows in a row are one fault, unless they are farther apart than events may be (`group_events`); with groups
    they are one however far apart, as a run has holes but is one. An alarm up to 24 hours before a fault counts as a
    warning; without time, none before it does.
    """
    truth, flagged = (np.asarray(each, dtype=np.bool_) for each in (known, flags))
    values = np.asarray(scores, dtype=np.float64)
    clock = clock_of(time, len(truth), groups)
    before: Length = 0 if time is None else _HORIZON
    first, last = fault_spans(truth, clock, clock.usual_length() if groups is None else len(truth))
    # The first row at which an alarm counts for each fault.
    ticks = clock.ticks(before)
    wanted = ticks[first] - clock.width(before)
    after_previous = np.append(0, last[:-1] + 1)[: len(first)]
    opening = np.maximum(clock.first_from(ticks, wanted, first), after_previous)
    scored = ~np.isnan(values)
    faults = _faults(first, last, flagged, opening, clock)
    until = np.append(0, np.cumsum(scored))
    faults["scored"] = until[last + 1] > until[first]
    n_ranked, n_scored = int(truth[scored].sum()), int(scored.sum())
    precision = precision_at_n(truth[scored], values[scored]) if 0 < n_ranked < n_scored else float("nan")
    found = faults["scored"] & faults["found"]
    inside = faults["scored"] & (faults["flagged"] > 0)
    counts = int(faults["scored"].sum()), int(found.sum()), int(inside.sum())
    return Agreement(int(truth.sum()), n_scored, n_ranked, precision, faults, before, first, *counts)


def fault_spans(known: BoolArray, clock: EventClock, gap: Length) -> tuple[IndexArray, IndexArray]:
    """Return the first and the last row of each fault: known rows that follow each other at most `gap` apart."""
    rows = np.flatnonzero(known)
    ends = np.flatnonzero((np.diff(rows) > 1) | clock.steps_above(rows, gap))
    return (rows[np.append(0, ends + 1)], rows[np.append(ends, -1)]) if len(rows) else (rows, rows)


def _faults(
    first: IndexArray, last: IndexArray, flagged: BoolArray, opening: IndexArray, clock: EventClock
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
