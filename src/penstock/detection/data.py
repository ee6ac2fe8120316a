"""What is known of the data of a table before anything is scored: its time, its tags, and what was done with them.

A table that was read and checked comes in, a `DataSummary` goes out: `look` returns it, findings have it, and the
command line and the report show it. The one idea: what was read without confidence (`doubts`) is said first.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from penstock._messages import counted, in_columns, listed, option, quoted
from penstock._types import BoolArray
from penstock.columns import ROLES, ColumnReport, InputChoice, LeftOut
from penstock.io import DOUBTS, Note, Table, TimeReader

_TIME = "time"  # the role of the time column
_LONGER = 1.5  # usual steps: more is a gap
_PLAN = (
    "partitions", "stacked tables", "appended files", "areas", "long format", "times beside tags", "joined files",
    "aligned", "row groups", "roles", "drivers by name", "encoded columns", "method",
)  # fmt: skip
_NOT_READ = ("rare tags", "broken times", "time without date", "row numbers", "empty columns")  # kinds of notes
_SAMPLE, _MOST_COLUMNS = 2_000, 500  # rows and columns that are searched for two clocks
_OFTEN, _HARDLY = 0.02, 0.1  # of the rows: what a tag has readings in, at least; and of these, what two have in common


@dataclass(frozen=True)
class TimeSummary:
    """How the time of a table was read, and what it is like.

    Parameters
    ----------
    column : str
        The column, or columns, that it comes from.
    how : str
        How it is written, in words.
    zone : str or None
        Of the time stamps; None if they have none.
    first, last : Timestamp
        Of the rows.
    step : float
        The usual seconds from one row to the next; NaN for a single row.
    gaps : int
        Steps of more than 1.5 times that.
    longest_gap : float
        In seconds; 0 without gaps.
    gap_after : Timestamp or None
        The last row before the longest gap.
    grade, reasons, share_missing : as in `penstock.columns.ColumnReport`
        Of the time column.

    Examples
    --------
    >>> import penstock
    >>> time = penstock.look({"time": ["31.1.2024 10:00", "31.1.2024 11:00"], "flow": [1.0, 2.0]}).time
    >>> time.how, time.step
    ('dates with the day first', 3600.0)
    """

    column: str
    how: str
    zone: str | None
    first: pd.Timestamp
    last: pd.Timestamp
    step: float
    gaps: int
    longest_gap: float
    gap_after: pd.Timestamp | None
    grade: str
    reasons: tuple[str, ...]
    share_missing: float


@dataclass(frozen=True)
class TagSummary:
    """What is known of a tag: a column of the table as it was read.

    Parameters
    ----------
    name, role, grade, reasons : as in `penstock.columns.ColumnReport`
        What it is to the plant, and what to know about it.
    unit : str
        "" if it is not known.
    use : str
        "as it is", "encoded as … numbers (…)", "left out" or "not an input".
    left_out : str
        Why it is left out, in a sentence; else "".
    interval : float
        The usual seconds between two of its readings; NaN if that is not known.
    low, usual_low, usual_high, high : float
        Of its readings the smallest, those that 5 % and 95 % do not exceed, and the largest; NaN for text.
    kinds : int
        Different values.
    share_missing, share_held : float
        Of the rows, those without a value of it, and those with an earlier reading that still stands.
    bad : int or None
        Readings that were taken as missing because their quality is bad; None if that is not known of each tag.
    first, last : Timestamp, int or None
        Of its readings; row numbers of the source in a table without time; None if it has no reading.

    Examples
    --------
    >>> import penstock
    >>> flow, _ = penstock.look({"flow": [1.0, 3.0, 2.0], "valve": [0.0, 1.0, 1.0]}).tags
    >>> flow.role, flow.low, flow.high, flow.share_missing
    ('sensor', 1.0, 3.0, 0.0)
    """

    name: str
    role: str
    unit: str
    use: str
    left_out: str
    grade: str
    reasons: tuple[str, ...]
    interval: float
    low: float
    usual_low: float
    usual_high: float
    high: float
    kinds: int
    share_missing: float
    share_held: float
    bad: int | None
    first: pd.Timestamp | int | None
    last: pd.Timestamp | int | None


@dataclass(frozen=True)
class DataSummary:
    """What was understood of the data, before anything is scored.

    Parameters
    ----------
    source : str
        Where the table comes from.
    rows : int
        Of the table, on one clock.
    doubts : tuple of Note
        What was read without confidence, the worst first; each says what was taken, and how to change it.
    time : TimeSummary or None
        None for a table without time.
    tags : tuple of TagSummary
        One for each column that was read, in order.
    left_out : tuple of penstock.columns.LeftOut
        Columns that are not used, and why.
    plan : tuple of str
        What is done with the data, in sentences: how tables are put together, roles, method.
    notes : tuple of Note
        Everything that was changed, left out or odd, in the order in which it came up.

    Examples
    --------
    >>> import penstock
    >>> data = penstock.look(penstock.datasets.load_plant().table)
    >>> data.rows, data.time.step, data.roles
    (3833, 600.0, {'sensor': 47, 'setting': 2, 'driver': 1})
    """

    source: str
    rows: int
    doubts: tuple[Note, ...]
    time: TimeSummary | None
    tags: tuple[TagSummary, ...]
    left_out: tuple[LeftOut, ...]
    plan: tuple[str, ...]
    notes: tuple[Note, ...]

    @property
    def roles(self) -> dict[str, int]:
        """How many tags have which role."""
        roles = [tag.role for tag in self.tags]
        return {role: roles.count(role) for role in ROLES if role in roles}

    @property
    def other_notes(self) -> tuple[Note, ...]:
        """The notes that neither the doubts, nor the plan, nor what is left out say."""
        said = {*(note.message for note in self.doubts), *self.plan}
        kinds = {*_NOT_READ, "left out columns", "gaps"}
        return tuple(note for note in self.notes if note.message not in said and note.kind not in kinds)


def describe_data(
    table: Table,
    checks: Sequence[ColumnReport],
    inputs: InputChoice,
    units: Mapping[str, str],
    notes: Sequence[Note],
) -> DataSummary:
    """Put together what is known of a table.

    checks : of the time, if there is one, and of the columns that may be inputs.
    inputs : which of these are used.
    units : by column, as far as they are known.
    notes : on the table and on the choice of inputs; further doubts are added to them.

    >>> from penstock.columns import check_columns, choose_inputs
    >>> from penstock.io import read_table
    >>> table = read_table({"flow": [1.0, 2.0, 4.0], "limit": [5.0, 5.0, 5.0]})
    >>> checks = check_columns(table)
    >>> data = describe_data(table, checks, choose_inputs(table, checks), {"flow": "m³/s"}, table.notes)
    >>> [(tag.name, tag.unit, tag.use) for tag in data.tags]
    [('flow', 'm³/s', 'as it is'), ('limit', '', 'left out')]
    """
    of_time = next((check for check in checks if check.role == _TIME), None)
    columns = [check for check in checks if check.role != _TIME and check.name in table.values]
    time = None if table.time is None or of_time is None else _describe_time(table, table.time, of_time)
    present = {check.name: table.values[check.name].notna().to_numpy() for check in columns}
    tags = tuple(_describe_tags(table, columns, present, inputs, units, np.nan if time is None else time.step))
    notes = [*notes, *_doubts_about_time(of_time, notes), *_doubts_about_clocks(table, present), *_about_codes(columns)]
    doubts = sorted((note for note in notes if note.doubt), key=lambda note: DOUBTS.index(note.kind))
    done = (note for note in notes if note.kind in _PLAN and not note.doubt)
    plan = sorted(done, key=lambda note: _PLAN.index(note.kind))
    not_read = [LeftOut(name, note.message) for note in notes if note.kind in _NOT_READ for name in note.columns]
    return DataSummary(
        table.source,
        len(table.values),
        tuple(doubts),
        time,
        tags,
        (*inputs.left_out, *not_read),
        tuple(note.message for note in plan),
        tuple(notes),
    )


def _describe_time(table: Table, time: pd.DatetimeIndex, check: ColumnReport) -> TimeSummary:
    parts = [time[rows] for rows in table.spans]
    steps = np.concatenate([np.diff(part.as_unit("us").asi8) for part in parts]) / 1e6
    before = np.concatenate([np.arange(rows.start, rows.stop - 1) for rows in table.spans])
    forward = steps[steps > 0]
    step = float(np.median(forward)) if len(forward) else np.nan
    is_gap = steps > _LONGER * step
    longest = int(np.argmax(steps)) if is_gap.any() else -1
    return TimeSummary(
        column=str(table.time_name),
        how=_in_words(table.time_reader),
        zone=None if time.tz is None else str(time.tz),
        first=time.min(),
        last=time.max(),
        step=step,
        gaps=int(is_gap.sum()),
        longest_gap=float(steps[longest]) if longest >= 0 else 0.0,
        gap_after=time[before[longest]] if longest >= 0 else None,
        grade=check.grade,
        reasons=check.reasons,
        share_missing=check.share_missing,
    )


def _in_words(reader: TimeReader | None) -> str:
    """Return how times are written.

    >>> _in_words(TimeReader("days as Excel counts them")), _in_words(TimeReader(day_first=False)), _in_words(None)
    ('numbers: days as Excel counts them', 'dates with the month first', 'unambiguous dates')
    """
    if reader is not None and reader.unit:
        return f"numbers: {reader.unit}"
    if reader is not None and reader.format:
        return f"written as {quoted(reader.format)}"
    if reader is None or reader.day_first is None:
        return "unambiguous dates"
    return f"dates with the {'day' if reader.day_first else 'month'} first"


def _describe_tags(
    table: Table,
    columns: Sequence[ColumnReport],
    present: Mapping[str, BoolArray],
    inputs: InputChoice,
    units: Mapping[str, str],
    step: float,
) -> Iterator[TagSummary]:
    """Yield what is known of each tag; where rows were aligned, what was noted of it before that."""
    uses = dict.fromkeys(inputs.as_they_are, "as it is")
    for encoding in inputs.encoded:
        uses[encoding.column] = f"encoded as {counted(len(encoding.names), 'number')} ({encoding.method})"
    left_out = {each.name: each.reason for each in inputs.left_out}
    uses |= dict.fromkeys(left_out, "left out")
    aligned = {tag.name: tag for tag in table.tags}
    # A note on bad quality that is not by tag: then it is not known how many readings of each were bad.
    without_count = 0 if table.about("bad quality") is None else None
    for check in columns:
        note = aligned.get(check.name)
        there = present[check.name]
        first, last = _ends(table, there)
        spread = check.spread or (np.nan,) * 4
        yield TagSummary(
            name=check.name,
            role=check.role,
            unit=units.get(check.name, ""),
            use=uses.get(check.name, "not an input"),
            left_out=left_out.get(check.name, ""),
            grade=check.grade,
            reasons=check.reasons,
            interval=_interval(table, there, step) if note is None else note.interval,
            low=spread[0],
            usual_low=spread[1],
            usual_high=spread[2],
            high=spread[3],
            kinds=check.n_distinct,
            share_missing=check.share_missing,
            share_held=0.0 if note is None else note.held,
            bad=table.bad.get(check.name, without_count) if note is None else note.bad,
            first=first if note is None else note.first,
            last=last if note is None else note.last,
        )


def _ends(table: Table, there: BoolArray) -> tuple[Any, Any]:
    """Return when the first and the last reading were, or their rows; None if there is none."""
    if not there.any():
        return None, None
    rows = np.flatnonzero(there) if table.group is not None else None
    first = int(np.argmax(there))
    last = len(there) - 1 - int(np.argmax(there[::-1]))
    if table.time is None:
        return int(table.values.index[first]), int(table.values.index[last])
    if rows is not None:  # groups may overlap in time
        return table.time[rows].min(), table.time[rows].max()
    return table.time[first], table.time[last]


def _interval(table: Table, there: BoolArray, step: float) -> float:
    """Return the usual seconds between readings of a tag that has the clock of the table."""
    if table.time is None or there.all():
        return step
    stamps = table.time.as_unit("us").asi8
    apart = np.concatenate([np.diff(stamps[rows][there[rows]]) for rows in table.spans])
    apart = apart[apart > 0]
    return float(np.median(apart)) / 1e6 if len(apart) else np.nan


def _doubts_about_time(check: ColumnReport | None, notes: Sequence[Note]) -> list[Note]:
    """Return what the check of the time says beyond what was noted while it was read."""
    if check is None:
        return []
    said = {note.message for note in notes}
    return [
        Note("reset of the clock", f"Column {quoted(check.name)}: {reason}", 1, (check.name,), doubt=True)
        for reason in check.reasons
        if reason not in said
    ]


def _doubts_about_clocks(table: Table, present: Mapping[str, BoolArray]) -> list[Note]:
    """Return a note on two tags that hardly ever have a reading in the same row, though both have some all the time."""
    if table.time is None or table.alignment is not None or table.group is not None:
        return []
    names = [name for name, there in present.items() if not there.all() and there.mean() >= _OFTEN][:_MOST_COLUMNS]
    if len(names) < 2:
        return []
    # Successive rows, as every so many-th might hold one tag alone; from the middle, where all are likely to be there.
    start = max(0, (len(table.values) - _SAMPLE) // 2)
    there = np.column_stack([present[name][start : start + _SAMPLE] for name in names]).astype(np.float64)
    together = there.T @ there
    counts = np.diag(together)
    fewer = np.minimum(counts[:, None], counts[None, :])
    share = np.where(fewer >= max(10, _OFTEN * len(there)), together / np.maximum(fewer, 1), 1.0)
    one, other = (int(each) for each in np.unravel_index(int(np.argmin(share)), share.shape))
    if share[one, other] >= _HARDLY or not _alternate(there[:, one] > 0, there[:, other] > 0):
        return []
    message = (
        f"{listed([names[one], names[other]])} hardly ever have a reading in the same row, as tags with clocks of "
        f"their own: {option('step', '5min')} puts all tags on one clock, or another step."
    )
    return [Note("two clocks", message, 2, (names[one], names[other]), doubt=True)]


def _alternate(one: BoolArray, other: BoolArray) -> bool:
    """Return whether readings of two tags come in turns; one may also have taken the other's place for good."""
    order = np.flatnonzero(one | other)
    changes = int(np.count_nonzero(np.diff(one[order].astype(np.int8))))
    return changes >= 0.1 * min(int(one.sum()), int(other.sum()))


def _about_codes(columns: Sequence[ColumnReport]) -> list[Note]:
    """Return a note on numbers that seem to stand for missing values."""
    coded = [check for check in columns if check.codes]
    if not coded:
        return []
    codes = ",".join(f"{code:.10g}" for code in dict.fromkeys(code for check in coded for code in check.codes))
    names = tuple(check.name for check in coded)
    message = (
        f"In {in_columns(names)} {codes} seems to stand for a missing value, and was taken as a reading: if it does, "
        f"say so ({option('missing', codes)})."
    )
    return [Note("codes for missing?", message, len(names), names, doubt=True)]
