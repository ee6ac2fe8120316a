"""What is known about a column before anything is computed."""

from __future__ import annotations

from dataclasses import dataclass

import pandas as pd


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
