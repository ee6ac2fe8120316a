"""The report on the time column: the troubles of the clock."""

from __future__ import annotations

import numpy as np
import pandas as pd

from penstock._messages import duration_in_words
from penstock.column_check._remarks import Remarks
from penstock.column_check._report import ColumnReport
from penstock.io import Table

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
