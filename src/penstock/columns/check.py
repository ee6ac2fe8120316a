"""Grade each column of a table as an input, and decide its role."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd

from penstock._messages import duration_in_words
from penstock._threads import for_each_range
from penstock._types import BoolArray, FloatArray
from penstock.columns._patterns import (
    LIKE_A_LABEL,
    MOST_KINDS,
    Run,
    copies_of_numbers,
    copies_of_texts,
    equal_runs,
    extent_of_outliers,
    is_setting,
    levels_of_state,
    longest_true,
    looks_like_label,
    named_like_setting,
    resets_of_counter,
)
from penstock.columns.roles import (
    CONSTANT,
    COUNTER,
    EMPTY,
    LABEL,
    QUALITY,
    SENSOR,
    SETTING,
    STATE,
    TEXT,
    TIME,
)
from penstock.io import Table
from penstock.io.quality import codes_for_missing, is_quality
from penstock.sensors.readings import changes_seldom, is_flag

_CELLS_AT_ONCE = 500_000  # that are checked by one thread at least: sorting them takes longer than starting it
_HARDLY_ANY, _MANY = 0.95, 0.2  # shares of missing values: grade D, grade C
_FAR_OUTSIDE = 1000.0  # ranges of the middle 90 %: such a value leaves nothing of the others after scaling
_MOST_LEVELS, _FEWEST_PER_LEVEL = 10, 10  # different numbers of a categorical column, and rows for each
_MOST_CATEGORIES = 1000  # different texts
_FEWEST_OF_COUNTER = 100  # values that are not whole numbers: fewer may rise by chance
SAYS_QUALITY = "It says how good readings are."
_TIME_GRADES = {  # of notes on the time that were made while reading
    "missing times": "C", "contradictory dates": "C", "ambiguous dates": "C", "times that do not exist": "C",
    "time without date": "C", "duplicate times": "B", "order": "B", "gaps": "B", "irregular sampling": "B",
    "daylight saving": "B", "mixed offsets": "B", "mixed time formats": "A", "shortened times": "A",
}  # fmt: skip
_RESET_FARTHER, _RESET_SHARE, _RESET_FEW = 1000, 0.5, 0.05  # usual steps; of the whole time; of the stamps on one side


@dataclass(frozen=True)
class ColumnReport:
    """How fit a column is to be an input.

    Parameters
    ----------
    name : str
        The column.
    role : str
        What the column is to the plant. "sensor": a reading. "state": few levels that hold for a while, as of a pump
        that is on or off, or text of few kinds. "setting": it changes in under 5 % of the steps, and stays where it is
        then, as set points, limits and tap positions do. "driver": it explains others and is never scored nor named,
        where the user or its name says so (`give_roles`). "counter": it only rises, but for resets. "quality": how good
        readings are. "label": what is known of the rows. "constant": it never moved. "text": many different texts.
        "empty"; or "time", for the time column, whose reasons are about the clock.
    grade : str
        "A": nothing stands in the way. "B": usable, with something to know: values are missing (up to a fifth), it is
        text of few kinds, which has to be encoded, looks like a label, or only rises. "C": doubtful: more than a fifth
        is missing, it stood still, has values far outside or a number that seems to stand for missing ones, or copies
        another column. "D": unusable: no values (or hardly any), always the same, free text.
    reasons : tuple of str
        Short sentences, the most severe first.
    share_missing : float
        Of all rows.
    n_distinct : int
        Different values.
    stuck : bool
        Its longest run of equal values is far longer than is usual for this very column.
    duplicate_of : str, optional
        An earlier column that it equals, or follows on a straight line to rounding.
    codes : tuple of float
        Numbers that seem to stand for a missing value, as -9999 may.
    scored : bool
        Whether it is scored over time (method sensors). A column that hardly ever changes only explains others.
    named : bool
        Whether it may be named as a cause. A setting, a driver, and a state that hardly ever switches are not.
    levels : tuple of float
        Of a state of numbers, ascending.
    low, high : float
        Its smallest and largest value in the rows fitted to; NaN for text.
    spread : tuple of float
        Of all its values the smallest, those that 5 % and 95 % do not exceed, and the largest; empty for text.

    Examples
    --------
    >>> from penstock.columns import check_columns
    >>> from penstock.io import read_table
    >>> [report] = check_columns(read_table({"flow": [1.5, 1.5, 1.5, 1.5]}))
    >>> report.role, report.grade
    ('constant', 'D')
    """

    name: str
    role: str
    grade: str
    reasons: tuple[str, ...]
    share_missing: float
    n_distinct: int = 0
    stuck: bool = False
    duplicate_of: str | None = None
    codes: tuple[float, ...] = ()
    scored: bool = True
    named: bool = True
    levels: tuple[float, ...] = ()
    low: float = np.nan
    high: float = np.nan
    spread: tuple[float, ...] = ()


def check_columns(table: Table, fitted: BoolArray | None = None) -> list[ColumnReport]:
    """Report on each input column, in order; the report on the time column, if there is one, comes first.

    Parameters
    ----------
    table : Table
        As `penstock.io.read_table` returns it.
    fitted : (n,) array of bool, optional
        The rows that are fitted to. They alone decide what moves, and how: later rows must not decide by what they
        are assessed. All rows if None.

    Returns
    -------
    list of ColumnReport

    Examples
    --------
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
    starts = np.zeros(len(values), dtype=np.bool_)
    starts[[span.start for span in table.spans]] = True
    rows = np.ones(len(values), dtype=np.bool_) if fitted is None else fitted
    of_time = [] if table.time is None else [_report_on_time(table, table.time)]
    reports: dict[str, ColumnReport] = {}

    def check(first: int, last: int) -> None:
        for name in values.columns[first:last]:
            if name in places:
                column = numbers[:, places[name]]
                report = _report_on_numbers(name, column, time, copies.get(name))
                reports[name] = _with_role(report, column[rows], starts[rows])
            else:
                reports[name] = _report_on_text(name, values[name], time, copies.get(name))

    for_each_range(check, len(values.columns), smallest=1 + _CELLS_AT_ONCE // max(len(values), 1))
    return [*of_time, *(reports[name] for name in values.columns)]


class _Remarks:
    """Sentences about a column with their grades; the grade of the column is that of the most severe."""

    def __init__(self) -> None:
        self._found: list[tuple[str, str]] = []

    def add(self, grade: str, sentence: str) -> None:
        self._found.append((grade, sentence))

    def add_missing(self, share: float, gap: Run, time: pd.DatetimeIndex | None) -> None:
        if share:
            across = _time_across(time, gap)
            lasting = "" if across is None else f", {duration_in_words(across.total_seconds())}"
            percent = f"{share:.0%}" if 0.01 <= share <= 0.99 else f"{share:.2%}"
            grade = "D" if share > _HARDLY_ANY else "C" if share > _MANY else "B"
            self.add(grade, f"{percent} of its values are missing, at most {gap.length:,} in a row{lasting}.")

    @property
    def graded(self) -> tuple[str, tuple[str, ...]]:
        """The grade, and the sentences, the most severe first."""
        ordered = sorted(self._found, key=lambda entry: entry[0], reverse=True)
        return (ordered[0][0] if ordered else "A"), tuple(sentence for _, sentence in ordered)


def _time_across(time: pd.DatetimeIndex | None, run: Run) -> pd.Timedelta | None:
    """Return the time from the row before a run to the row after it, or to the ends of the table."""
    if time is None or not run.length:
        return None
    across: Any = time[min(run.start + run.length, len(time) - 1)] - time[max(run.start - 1, 0)]
    return pd.Timedelta(across)


def _report_on_numbers(
    name: str, values: FloatArray, time: pd.DatetimeIndex | None, duplicate_of: str | None
) -> ColumnReport:
    missing = np.isnan(values)
    gap, share = longest_true(missing), float(missing.mean())
    present = values[~missing] if gap.length else values
    if not len(present):
        return ColumnReport(name, EMPTY, "D", ("It has no values.",), share)
    ordered = np.sort(present)
    distinct = 1 + int(np.count_nonzero(ordered[1:] != ordered[:-1]))
    codes = codes_for_missing(ordered)
    farthest, ranges = extent_of_outliers(ordered)
    runs = equal_runs(present)
    stuck = runs.stood_still(distinct)
    few = 1 < distinct <= _MOST_LEVELS and len(present) >= _FEWEST_PER_LEVEL * distinct
    resets = resets_of_counter(present)
    role = _role_by_name(name, present, distinct, resets)
    remarks = _Remarks()
    if distinct == 1:
        remarks.add("D", f"It never changes: it is always {present[0]:g}.")
    remarks.add_missing(share, gap, time)
    if duplicate_of is not None:
        remarks.add("C", f"It copies column {duplicate_of!r}, or follows it on a straight line.")
    if stuck:
        rows, run = np.flatnonzero(~missing), runs.longest
        first, last = int(rows[run.start]), int(rows[run.start + run.length - 1])
        lasting, since = _time_across(time, Run(first, last - first + 1)), ""
        if time is not None and lasting is not None:
            since = f" ({duration_in_words(lasting.total_seconds())} from {time[first]})"
        usually = "it changes with every value" if runs.usual <= 1 else f"at most {runs.usual} are equal"
        level = f"{present[run.start]:g}"
        remarks.add("C", f"It stood still at {level} for {run.length:,} values{since}; usually {usually}.")
    for code, times in codes.items():
        remarks.add("C", f"{code:.10g} stands in it {times:,} times, far from all other values: a code for missing?")
    if ranges >= _FAR_OUTSIDE and farthest not in codes:
        remarks.add("C", f"Its value {farthest:g} is {ranges:.2g} usual ranges away from the others.")
    if role in (LABEL, QUALITY):
        remarks.add("B", LIKE_A_LABEL if role == LABEL else SAYS_QUALITY)
    if resets is not None:
        but = "" if not resets else ", but for a reset" if resets == 1 else f", but for {resets:,} resets"
        remarks.add("B", f"It only rises{but}, like a counter: its steps may say more than its level.")
    if few:
        remarks.add("A", f"It has only {distinct} different values.")
    return ColumnReport(
        name,
        role,
        *remarks.graded,
        share_missing=share,
        n_distinct=distinct,
        stuck=stuck,
        duplicate_of=duplicate_of,
        codes=tuple(codes),
        low=float(ordered[0]),
        high=float(ordered[-1]),
        spread=tuple(float(ordered[round(share * (len(ordered) - 1))]) for share in (0, 0.05, 0.95, 1)),
    )


def _role_by_name(name: str, values: FloatArray, distinct: int, resets: int | None) -> str:
    """Return the role of a column of numbers as its name and its different values say; "sensor" if they do not."""
    kinds = np.unique(values).tolist() if distinct <= 2 * MOST_KINDS else []
    if kinds and is_quality(name, kinds):
        return QUALITY
    if kinds and looks_like_label(name, kinds):
        return LABEL
    if distinct == 1:
        return CONSTANT
    whole = len(values) >= _FEWEST_OF_COUNTER or bool((values == np.floor(values)).all())
    return COUNTER if resets is not None and whole else SENSOR


def _with_role(report: ColumnReport, values: FloatArray, starts: BoolArray) -> ColumnReport:
    """Return the report on a column of numbers with what its values in the rows fitted to say of its role."""
    known = values[~np.isnan(values)]
    if not len(known) or report.role == EMPTY:
        return report
    report = replace(report, low=float(known.min()), high=float(known.max()))
    if report.low == report.high and report.role in (SENSOR, CONSTANT):
        apart = named_like_setting(report.name)
        return replace(report, role=SETTING if apart else CONSTANT, scored=not apart, named=not apart)
    if report.role != SENSOR:
        return report
    # What stands still but for a short while is looked at, unless people set it.
    seldom = is_setting(known) and (not is_flag(known) or named_like_setting(report.name))
    levels = levels_of_state(known)
    role = STATE if levels else SETTING if seldom else SENSOR
    return replace(report, role=role, scored=not changes_seldom(values, starts), named=not seldom, levels=levels)


def _report_on_text(
    name: str, values: pd.Series[Any], time: pd.DatetimeIndex | None, duplicate_of: str | None
) -> ColumnReport:
    missing = values.isna().to_numpy()
    gap, share = longest_true(missing), float(missing.mean())
    present, distinct = len(values) - int(missing.sum()), values.nunique()
    kinds = values.dropna().unique().tolist() if distinct <= MOST_KINDS else []
    remarks = _Remarks()
    role = STATE
    if not present:
        role = EMPTY
        remarks.add("D", "It has no values.")
    elif kinds and is_quality(name, kinds):
        role = QUALITY
        remarks.add("B", SAYS_QUALITY)
    elif distinct == 1:
        role = CONSTANT
        remarks.add("D", f"It never changes: it is always {values.dropna().iloc[0]!r:.60}.")
    elif distinct > max(2, min(_MOST_CATEGORIES, present // 4)):
        role = TEXT
        remarks.add("D", f"It is free text: {distinct:,} different texts, such as {values.dropna().iloc[0]!r:.60}.")
    else:
        remarks.add("B", f"It is text of {distinct:,} kinds and has to be encoded.")
    if role == STATE and looks_like_label(name, kinds):
        role = LABEL
        remarks.add("B", LIKE_A_LABEL)
    if present:
        remarks.add_missing(share, gap, time)
    duplicate_of = duplicate_of if role in (STATE, LABEL) else None
    if duplicate_of is not None:
        remarks.add("C", f"It says the same as column {duplicate_of!r}.")
    return ColumnReport(
        name,
        role,
        *remarks.graded,
        share_missing=share,
        n_distinct=distinct,
        duplicate_of=duplicate_of,
    )


def _report_on_time(table: Table, time: pd.DatetimeIndex) -> ColumnReport:
    """Report on what was noted about the time while reading, on its longest step, and on a clock that was reset."""
    remarks = _Remarks()
    steps = [np.diff(time[rows].to_numpy()) for rows in table.spans]
    if len(steps) == 1 and len(steps[0]):
        in_seconds = steps[0] / np.timedelta64(1, "s")
        longest = int(np.argmax(in_seconds))
        seconds, few = float(in_seconds[longest]), min(longest + 1, len(time) - longest - 1)
        least = max(_RESET_FARTHER * float(np.median(in_seconds)), _RESET_SHARE * float(in_seconds.sum()))
        if seconds > least and few <= _RESET_FEW * len(time):
            remarks.add(
                "C",
                f"{few:,} of its stamps are {duration_in_words(seconds)} away from all others, as after a "
                f"reset of the clock: the break is at {time[longest]}.",
            )
    for note in table.notes:
        if note.kind in _TIME_GRADES:
            remarks.add(_TIME_GRADES[note.kind], note.message)
    missing = table.about("missing times")
    n_missing = 0 if missing is None else missing.count
    return ColumnReport(
        str(table.time_name),
        TIME,
        *remarks.graded,
        share_missing=n_missing / (n_missing + len(time)),
        n_distinct=time.nunique(),
    )
