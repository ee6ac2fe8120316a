"""The report on a column of numbers."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pandas as pd

from penstock._messages import duration_in_words
from penstock._types import FloatArray
from penstock.column_check._codes import codes_for_missing
from penstock.column_check._counters import resets_of_counter
from penstock.column_check._labels import LIKE_A_LABEL, MOST_KINDS, looks_like_label
from penstock.column_check._remarks import Remarks
from penstock.column_check._report import ColumnReport
from penstock.column_check._runs import EqualRuns, Stretch, equal_runs, is_setting, longest_true, time_across

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
