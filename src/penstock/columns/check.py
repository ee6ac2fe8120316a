"""Grade each column of a table as an input."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from penstock._messages import duration_in_words
from penstock._types import FloatArray
from penstock.columns._patterns import (
    LIKE_A_LABEL,
    MOST_KINDS,
    EqualRuns,
    Stretch,
    codes_for_missing,
    copies_of_numbers,
    copies_of_texts,
    equal_runs,
    is_setting,
    longest_true,
    looks_like_label,
    resets_of_counter,
    time_across,
)
from penstock.io import Table


@dataclass(frozen=True)
class ColumnReport:
    """How fit a column is to be an input.

    name : of the column.
    kind : "measurement"; "categorical" (few different values); "text" (many different texts); "constant"; "empty"; or
        "time", for the time column, whose reasons are the troubles of the clock.
    grade : "A" nothing stands in the way; "B" usable, with something to know: values are missing (up to a fifth), it is
        text of few kinds, which has to be encoded, looks like a label, or only rises; "C" doubtful: more than a
        fifth is missing, it stood still, has values far outside or a number that seems to stand for missing ones, or
        copies another column; "D" unusable: no values (or hardly any), always the same, free text.
    reasons : short sentences, the gravest first.
    share_missing : of all rows.
    longest_gap_rows, longest_gap : the most missing values in a row, and the time from the last value before them to
        the first after (None without time, or without a gap). For the time itself the longest step.
    n_distinct : different values.
    longest_run, usual_run : the most equal values in a row, and the length that 95 % of the other values keep to.
    stuck : the longest run is far longer than is usual for this very column: it stood still.
    duplicate_of : an earlier column that it equals, or follows on a straight line to rounding.
    codes : numbers that seem to stand for a missing value, as -9999 may.
    label_like : it is named like a label and has values as labels have: it says what is known, and is no reading.
    setting : it changes in under 5 % of the steps, and stays where it is then, as set points, limits, tap positions and
        states do. A reading that is mostly 0, or stuck, and moves where it is not, is none.
    extremeness : how far its largest or smallest value is outside the range of the middle 90 %, in such ranges.
    """

    name: str
    kind: str
    grade: str
    reasons: tuple[str, ...]
    share_missing: float
    longest_gap_rows: int = 0
    longest_gap: pd.Timedelta | None = None
    n_distinct: int = 0
    longest_run: int = 0
    usual_run: int = 0
    stuck: bool = False
    duplicate_of: str | None = None
    extremeness: float = 0.0
    extreme: bool = False
    codes: tuple[float, ...] = ()
    label_like: bool = False
    setting: bool = False

    @property
    def constant(self) -> bool:
        return self.kind == "constant"

    @property
    def categorical(self) -> bool:
        return self.kind == "categorical"

    @property
    def text(self) -> bool:
        return self.kind == "text"


_HARDLY_ANY = 0.95
_MANY = 0.2


class Remarks:
    """Collects remarks; the grade is that of the gravest.

    >>> remarks = Remarks()
    >>> remarks.add("B", "Some values are missing.")
    >>> remarks.add("C", "It stood still.")
    >>> remarks.grade, remarks.sentences
    ('C', ('It stood still.', 'Some values are missing.'))
    """

    def __init__(self) -> None:
        self._found: list[tuple[str, str]] = []

    def add(self, grade: str, sentence: str) -> None:
        self._found.append((grade, sentence))

    def add_missing(self, share: float, rows: int, time: pd.DatetimeIndex | None, gap: Stretch) -> None:
        """Say how much is missing, if anything is."""
        if not share:
            return
        across = time_across(time, gap)
        lasting = "" if across is None else f", {duration_in_words(across.total_seconds())}"
        grade = "D" if share > _HARDLY_ANY else "C" if share > _MANY else "B"
        percent = f"{share:.0%}" if 0.01 <= share <= 0.99 else f"{share:.2%}"
        self.add(grade, f"{percent} of its values are missing, at most {rows:,} in a row{lasting}.")

    @property
    def grade(self) -> str:
        return max((grade for grade, _ in self._found), default="A")

    @property
    def sentences(self) -> tuple[str, ...]:
        return tuple(sentence for _, sentence in sorted(self._found, key=lambda entry: entry[0], reverse=True))


def check_columns(table: Table) -> list[ColumnReport]:
    """A report on each input column, in order, and one on the time column, which comes first.

    >>> import pandas as pd
    >>> from penstock.io import read_table
    >>> rng = np.random.default_rng(0)
    >>> flow = rng.normal(5, 1, 200).round(2)
    >>> flow[50:100] = 4.2
    >>> plant = pd.DataFrame({"flow": flow, "set point": 5.0, "state": ["on", "on", "off", "on"] * 50})
    >>> for report in check_columns(read_table(plant)):
    ...     print(report.grade, report.name, *report.reasons, sep=" | ")
    C | flow | It stood still at 4.2 for 50 values; usually it changes with every value.
    D | set point | It never changes: it is always 5.
    B | state | It is text of 2 kinds and has to be encoded.
    """
    values = table.values
    numeric = values.select_dtypes("number")
    numbers = np.asfortranarray(numeric.to_numpy(dtype=np.float64))
    places = {name: place for place, name in enumerate(numeric.columns)}
    copies = copies_of_numbers(numbers, list(numeric.columns))
    copies |= copies_of_texts(values.drop(columns=list(numeric.columns)))
    time = table.time if table.in_time else None
    on_time = report_on_time(table)
    reports = [] if on_time is None else [on_time]
    for name in values.columns:
        if name in places:
            column = numbers[:, places[name]]
            reports.append(report_on_numbers(name, column, time, copies.get(name)))
        else:
            reports.append(report_on_text(name, values[name], time, copies.get(name)))
    return reports


FAR_OUTSIDE = 1000.0  # ranges of the middle 90 %: such a value leaves nothing of the others after scaling
_MOST_LEVELS = 10  # different values of a categorical column
_FEWEST_PER_LEVEL = 10
_FEWEST_FOR_RANGE = 20


@dataclass(frozen=True)
class _Spread:
    distinct: int
    extremeness: float
    farthest: float
    codes: dict[float, int]  # → how often

    @property
    def extreme(self) -> bool:
        return self.extremeness >= FAR_OUTSIDE


def report_on_numbers(
    name: str, values: FloatArray, time: pd.DatetimeIndex | None, duplicate_of: str | None
) -> ColumnReport:
    """Look at one column of numbers with NaN for missing values."""
    missing = np.isnan(values)
    gap = longest_true(missing)
    share = float(missing.mean())
    present = values[~missing] if gap.length else values
    if not len(present):
        return ColumnReport(name, "empty", "D", ("It has no values.",), share, gap.length, time_across(time, gap))
    spread = _spread(present)
    runs = equal_runs(present)
    constant = spread.distinct == 1
    few = 1 < spread.distinct <= _MOST_LEVELS and len(present) >= _FEWEST_PER_LEVEL * spread.distinct
    stuck = runs.stood_still(spread.distinct)
    remarks = Remarks()
    if constant:
        remarks.add("D", f"It never changes: it is always {present[0]:g}.")
    remarks.add_missing(share, gap.length, time, gap)
    if duplicate_of is not None:
        remarks.add("C", f"It copies column {duplicate_of!r}, or follows it on a straight line.")
    if stuck:
        remarks.add("C", _words_for_standstill(runs, np.flatnonzero(~missing), present, time))
    _add_far_values(spread, remarks)
    label_like = spread.distinct <= 2 * MOST_KINDS and looks_like_label(name, np.unique(present).tolist())
    if label_like:
        remarks.add("B", LIKE_A_LABEL)
    _add_counter(present, remarks)
    if few:
        remarks.add("A", f"It has only {spread.distinct} different values.")
    return ColumnReport(
        name=name,
        kind="constant" if constant else "categorical" if few else "measurement",
        grade=remarks.grade,
        reasons=remarks.sentences,
        share_missing=share,
        longest_gap_rows=gap.length,
        longest_gap=time_across(time, gap),
        n_distinct=spread.distinct,
        longest_run=runs.longest.length,
        usual_run=runs.usual,
        stuck=stuck,
        duplicate_of=duplicate_of,
        extremeness=spread.extremeness,
        extreme=spread.extreme,
        codes=tuple(spread.codes),
        label_like=label_like,
        setting=is_setting(present),
    )


def _spread(present: FloatArray) -> _Spread:
    """How many different values, and how far the ends are outside the range of the middle 90 % (or 98 %)."""
    ordered = np.sort(present)
    distinct = 1 + int(np.count_nonzero(ordered[1:] != ordered[:-1]))
    farthest = float(ordered[-1])
    codes = codes_for_missing(ordered)
    if len(ordered) < _FEWEST_FOR_RANGE:
        return _Spread(distinct, 0.0, farthest, codes)
    for share in (0.05, 0.01):
        cut = int(share * len(ordered))
        low, high = ordered[cut], ordered[-1 - cut]
        if high > low:
            with np.errstate(over="ignore"):
                below, above = low - ordered[0], ordered[-1] - high
                width = high - low
            farthest = float(ordered[0] if below > above else ordered[-1])
            extremeness = float(max(below, above) / width) if np.isfinite(width) else 0.0
            return _Spread(distinct, extremeness, farthest, codes)
    return _Spread(distinct, 0.0, farthest, codes)


def _add_far_values(spread: _Spread, remarks: Remarks) -> None:
    for code, times in spread.codes.items():
        remarks.add("C", f"{code:.10g} stands in it {times:,} times, far from all other values: a code for missing?")
    if spread.extreme and spread.farthest not in spread.codes:
        remarks.add(
            "C", f"Its value {spread.farthest:g} is {spread.extremeness:.2g} usual ranges away from the others."
        )


def _add_counter(present: FloatArray, remarks: Remarks) -> None:
    resets = resets_of_counter(present)
    if resets is not None:
        but = "" if not resets else ", but for a reset" if resets == 1 else f", but for {resets:,} resets"
        remarks.add("B", f"It only rises{but}, like a counter: its steps may say more than its level.")


def _words_for_standstill(
    runs: EqualRuns,
    rows: np.ndarray[tuple[int, ...], np.dtype[np.intp]],
    present: FloatArray,
    time: pd.DatetimeIndex | None,
) -> str:
    first, length = runs.longest.start, runs.longest.length
    span = Stretch(int(rows[first]), int(rows[first + length - 1] - rows[first] + 1))
    lasting = time_across(time, span)
    since = (
        ""
        if time is None or lasting is None
        else f" ({duration_in_words(lasting.total_seconds())} from {time[span.start]})"
    )
    usually = "it changes with every value" if runs.usual <= 1 else f"at most {runs.usual} are equal"
    return f"It stood still at {present[first]:g} for {length:,} values{since}; usually {usually}."


_MOST_CATEGORIES = 1000


def report_on_text(
    name: str, values: pd.Series[Any], time: pd.DatetimeIndex | None, duplicate_of: str | None
) -> ColumnReport:
    """Look at one column of text: categories, if there are few for the number of rows, or free text."""
    missing = values.isna().to_numpy()
    gap = longest_true(missing)
    share = float(missing.mean())
    present = len(values) - int(missing.sum())
    distinct = values.nunique()
    remarks = Remarks()
    kind = "categorical"
    if not present:
        kind = "empty"
        remarks.add("D", "It has no values.")
    elif distinct == 1:
        kind = "constant"
        remarks.add("D", f"It never changes: it is always {values.dropna().iloc[0]!r:.60}.")
    elif distinct > max(2, min(_MOST_CATEGORIES, present // 4)):
        kind = "text"
        remarks.add("D", f"It is free text: {distinct:,} different texts, such as {values.dropna().iloc[0]!r:.60}.")
    else:
        remarks.add("B", f"It is text of {distinct:,} kinds and has to be encoded.")
    label_like = distinct <= MOST_KINDS and looks_like_label(name, values.dropna().unique().tolist())
    if label_like:
        remarks.add("B", LIKE_A_LABEL)
    if present:
        remarks.add_missing(share, gap.length, time, gap)
    if duplicate_of is not None and kind == "categorical":
        remarks.add("C", f"It says the same as column {duplicate_of!r}.")
    return ColumnReport(
        name=name,
        kind=kind,
        grade=remarks.grade,
        reasons=remarks.sentences,
        share_missing=share,
        longest_gap_rows=gap.length,
        longest_gap=time_across(time, gap),
        n_distinct=distinct,
        duplicate_of=duplicate_of if kind == "categorical" else None,
        label_like=label_like,
    )


_GRADES = {  # of notes that were made when the time was read
    "missing times": "C",
    "contradictory dates": "C",
    "ambiguous dates": "C",
    "times that do not exist": "C",
    "time without date": "C",
    "duplicate times": "B",
    "order": "B",
    "gaps": "B",
    "irregular sampling": "B",
    "daylight saving": "B",
    "mixed offsets": "B",
    "mixed time formats": "A",
    "shortened times": "A",
}
_FARTHER = 1000  # times the usual step, and
_LARGEST_SHARE = 0.5  # of the whole time, and
_FEW = 0.05  # of the stamps on one side of it: a clock that was reset, not a standstill


def report_on_time(table: Table) -> ColumnReport | None:
    """What was noted about the time while reading, and its longest step; None if the table has no time."""
    if table.time is None or table.time_name is None:
        return None
    remarks = Remarks()
    if len(table.spans) == 1:
        _add_reset(table.time, remarks)
    for note in table.notes:
        if note.kind in _GRADES:
            remarks.add(_GRADES[note.kind], note.message)
    missing = table.about("missing times")
    n_missing = 0 if missing is None else missing.count
    return ColumnReport(
        name=table.time_name,
        kind="time",
        grade=remarks.grade,
        reasons=remarks.sentences,
        share_missing=n_missing / (n_missing + len(table.time)),
        longest_gap=max(_longest_step(table.time[rows]) for rows in table.spans),
        n_distinct=table.time.nunique(),
    )


def _longest_step(time: pd.DatetimeIndex) -> pd.Timedelta:
    return pd.Timedelta(np.diff(time.to_numpy()).max()) if len(time) > 1 else pd.Timedelta(0)


def _add_reset(time: pd.DatetimeIndex, remarks: Remarks) -> None:
    """A few stamps years away from the others are what a clock writes that has lost its time."""
    steps = np.diff(time.to_numpy()) / np.timedelta64(1, "s")
    whole, usual = float(steps.sum()), float(np.median(steps))
    longest = int(np.argmax(steps))
    few = min(longest + 1, len(time) - longest - 1)
    if steps[longest] > max(_FARTHER * usual, _LARGEST_SHARE * whole) and few <= _FEW * len(time):
        remarks.add(
            "C",
            f"{few:,} of its stamps are {duration_in_words(float(steps[longest]))} away from all others, as after a "
            f"reset of the clock: the break is at {time[longest]}.",
        )
