"""Put readings of tags that have clocks of their own into rows of one clock.

In: readings, each a tag (as a number), a time (whole microseconds) and a value. Out: a row for each step of time in
which at least one tag has a reading of its own. The one idea: a row stands for the step that begins at its stamp, and
is made when that step is over. In it, a tag has the mean of its readings in the step (the last one, if it is a state),
else its last reading before, if that is not older than is usual for this tag (`AlignedTag.hold`), else nothing. So no
value comes from after its step, a gap in all tags stays a gap, and an incident is dated at most one step too early.

`align_readings` does this for all readings of a file, `Aligner` for readings as they come: the same kernel, and the
same bits wherever the stream is cut. `plan_alignment` chooses the step and how long readings stand, as measured in
docs/decisions/0022-one-clock.md.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from penstock._types import BoolArray, FloatArray
from penstock.io._align_kernels import (
    CLOSED,
    LATE_CODE,
    LATE_TIME,
    NEWEST,
    OLDEST,
    TOO_LATE,
    WAITING,
    IntArray,
    count_readings,
    count_rows,
    fill_rows,
    has_few_levels,
    receive_readings,
    sample_intervals,
)
from penstock.io.table import TableError
from penstock.io.times import parse_duration
from penstock.storage import Record, StorageError

_SECOND = 1_000_000  # microseconds
_FARTHEST = 2**61  # microseconds from 1970: sums and differences of times and durations do not overflow
_NEVER = -(2**62)
_MOST_WAITING = 2**20  # readings
_FIRST_WAITING = 2**10  # and how many there is room for at first
_MARKS = 7
_SAMPLE = 2_048  # times between readings that show what is usual for a tag
_MINUTE, _HOUR = 60 * _SECOND, 3_600 * _SECOND
ROUND_STEPS = (
    *(count * _SECOND for count in (1, 2, 5, 10, 15, 20, 30)),
    *(count * _MINUTE for count in (1, 2, 5, 10, 15, 20, 30)),
    *(count * _HOUR for count in (1, 2, 3, 4, 6, 12, 24)),
)  # which "auto" takes
AUTO, NONE = "auto", "none"
_ROUND_DOWN = 0.9  # a step may be so much shorter than the usual interval that it is for
_USUAL, _FACTOR = 0.99, 1.5  # a reading stands for this factor of the interval that so many do not exceed
_MOST_LEVELS = 10  # whole numbers of a tag that is a state


@dataclass(frozen=True)
class AlignedTag:
    """How a tag is put into rows; durations in microseconds.

    name : of the column.
    interval : the usual time between two of its readings; 0 if that is not known.
    hold : how long after a reading it still stands, where a step has none.
    mean : whether several readings in a step are averaged; else the last one counts, as for states and texts.
    """

    name: str
    interval: int
    hold: int
    mean: bool = True


@dataclass(frozen=True)
class Alignment:
    """One clock for tags that have their own: what `Aligner` needs to know, and a model keeps.

    Parameters
    ----------
    step : int
        Microseconds from one row to the next.
    tags : tuple of AlignedTag
        In the order of the columns; the code of a tag is its place here.
    origin : int
        Steps begin at this time (microseconds since 1970) and at whole steps from it.

    Examples
    --------
    >>> clock = Alignment(60_000_000, (AlignedTag("flow", 20_000_000, 60_000_000),))
    >>> Alignment.restore(clock.state()) == clock
    True
    """

    step: int
    tags: tuple[AlignedTag, ...]
    origin: int = 0

    def __post_init__(self) -> None:
        durations = [duration for tag in self.tags for duration in (tag.interval, tag.hold)]
        if not 0 < self.step <= _FARTHEST or not 0 <= self.origin < self.step:
            raise ValueError(f"A step is positive and its origin within it; got {self.step} and {self.origin}.")
        if not self.tags or len({tag.name for tag in self.tags}) < len(self.tags):
            raise ValueError("An alignment has at least one tag, and each has its own name.")
        if not all(0 <= duration <= _FARTHEST for duration in durations):
            raise ValueError(f"Intervals and holds of tags are from 0 to {_FARTHEST} microseconds.")

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(tag.name for tag in self.tags)

    def is_read_in_each_step(self, code: int) -> bool:
        """Return whether a tag is read in every step: an empty cell of a table is then a missing reading."""
        return 0 < self.tags[code].interval <= self.step

    def state(self) -> dict[str, Any]:
        """Return what `restore` takes: plain values and arrays."""
        return {
            "step": self.step,
            "origin": self.origin,
            "names": list(self.names),
            "intervals": np.array([tag.interval for tag in self.tags], dtype=np.int64),
            "holds": self._holds,
            "means": self._means,
        }

    @classmethod
    def restore(cls, state: Any) -> Alignment:
        """Return the alignment of a state from a file; a StorageError if something does not fit."""
        record = state if isinstance(state, Record) else Record(state, "alignment")
        record.require_fields("step", "origin", "names", "intervals", "holds", "means")
        names = record.value("names")
        if type(names) is not list or not all(type(name) is str for name in names):
            raise record.error("names", "a list of texts")
        p = len(names)
        intervals, holds = (
            record.array(name, np.int64, (p,), least=0, most=_FARTHEST).tolist() for name in ("intervals", "holds")
        )
        means = record.array("means", np.bool_, (p,)).tolist()
        step = record.whole("step", least=1, most=_FARTHEST)
        try:
            tags = tuple(map(AlignedTag, names, intervals, holds, means))
            return cls(step, tags, record.whole("origin", least=0, most=step - 1))
        except ValueError as error:
            raise StorageError(f"{record.place} is no alignment: {error}") from None

    def with_tags(self, tags: Sequence[AlignedTag]) -> Alignment:
        """Return this clock for some tags: those it knows as it knows them, the others as given."""
        known = {tag.name: tag for tag in self.tags}
        return Alignment(self.step, tuple(known.get(tag.name, tag) for tag in tags), self.origin)

    @property
    def _holds(self) -> IntArray:
        return np.array([tag.hold for tag in self.tags], dtype=np.int64)

    @property
    def _means(self) -> BoolArray:
        return np.array([tag.mean for tag in self.tags], dtype=np.bool_)


@dataclass(frozen=True, eq=False)
class AlignedRows:
    """Rows of one clock: when the step of each begins (microseconds since 1970), and a column for each tag."""

    times: IntArray
    values: FloatArray

    def __len__(self) -> int:
        return len(self.times)


class _RowMaker:
    """What is known of each tag from the rows made so far: its last reading, and how often it had one of its own."""

    def __init__(self, alignment: Alignment) -> None:
        p = len(alignment.tags)
        self.alignment = alignment
        self.holds, self.means = alignment._holds, alignment._means
        self.last_values = np.full(p, np.nan)
        self.last_times = np.full(p, _NEVER, dtype=np.int64)
        self.shares = np.zeros((2, p), dtype=np.int64)  # rows with readings of its own, and with one held
        self.rows = 0

    def make(self, codes: NDArray[np.integer], times: IntArray, values: FloatArray) -> AlignedRows:
        """Return the rows of complete steps; times ascend."""
        step, origin = self.alignment.step, self.alignment.origin
        count = count_rows(times, values, step, origin)
        stamps, rows = np.empty(count, dtype=np.int64), np.empty((count, len(self.holds)))
        fill_rows(
            codes, times, values, step, origin, self.holds, self.means,
            self.last_values, self.last_times, self.shares, stamps, rows,
        )  # fmt: skip
        self.rows += count
        return AlignedRows(stamps, rows)


def align_readings(
    alignment: Alignment, codes: NDArray[np.integer], times: IntArray, values: FloatArray
) -> tuple[AlignedRows, IntArray]:
    """Put all readings of a file into rows.

    Parameters
    ----------
    alignment : Alignment
    codes, times, values : arrays, one entry a reading
        Which tag, when (microseconds since 1970), and what; NaN for a reading that is known to be bad, after which
        nothing is held. In order of time.

    Returns
    -------
    The rows, and (2, tags) how many of them have readings of a tag's own, and one held.

    Examples
    --------
    >>> tags = (AlignedTag("flow", 30, 0), AlignedTag("level", 60, 60))
    >>> times = np.array([0, 10, 30, 60, 90])
    >>> codes, values = np.array([0, 1, 0, 0, 0]), np.array([1.0, 7, 2, 3, 4])
    >>> rows, shares = align_readings(Alignment(30, tags), codes, times, values)
    >>> rows.times.tolist(), rows.values.tolist(), shares.tolist()
    ([0, 30, 60, 90], [[1.0, 7.0], [2.0, 7.0], [3.0, 7.0], [4.0, nan]], [[4, 1], [0, 2]])
    """
    maker = _RowMaker(alignment)
    return maker.make(codes, times, values), maker.shares


class Aligner:
    """Put readings into rows as they come; see the module for the rule.

    The row of a step is returned as soon as a reading has come that is at least `late` after its end. A reading whose
    row is made already is not used, but counted (`too_late`, `newest_too_late`). Where more than a million readings
    wait for the end of their step, the oldest step is closed before its time.

    Parameters
    ----------
    alignment : Alignment
    late : int
        Microseconds.

    Examples
    --------
    >>> aligner = Aligner(Alignment(60, (AlignedTag("flow", 20, 60),)), late=10)
    >>> readings = (0, 1.0), (62, 5.0), (40, 2.0), (70, 6.0)
    >>> [aligner.take([0], [time], [value]).values.tolist() for time, value in readings]
    [[], [], [], [[1.5]]]
    >>> aligner.take([0], [50], [3.0]).values.tolist(), aligner.too_late, aligner.newest_too_late
    ([], 1, ('flow', 50))
    >>> aligner.finish().values.tolist()
    [[5.5]]
    """

    def __init__(self, alignment: Alignment, late: int = 0) -> None:
        self.alignment, self.late = alignment, int(late)
        self._maker = _RowMaker(alignment)
        self._marks = np.zeros(_MARKS, dtype=np.int64)
        self._marks[[NEWEST, CLOSED, LATE_TIME]] = _NEVER
        self._marks[OLDEST] = -_NEVER
        self._codes: IntArray = np.empty(0, dtype=np.int64)
        self._times: IntArray = np.empty(0, dtype=np.int64)
        self._values: FloatArray = np.empty(0)
        self._make_room(_FIRST_WAITING)
        self._none = AlignedRows(np.empty(0, dtype=np.int64), np.empty((0, len(alignment.tags))))

    @property
    def waiting(self) -> int:
        """How many readings wait for the end of their step."""
        return int(self._marks[WAITING])

    @property
    def too_late(self) -> int:
        """How many readings came when the row of their step was made already, and were not used."""
        return int(self._marks[TOO_LATE])

    @property
    def newest_too_late(self) -> tuple[str, int] | None:
        """The newest of these: its tag and its time."""
        if not self._marks[TOO_LATE]:
            return None
        return self.alignment.tags[self._marks[LATE_CODE]].name, int(self._marks[LATE_TIME])

    def take(self, codes: Any, times: Any, values: Any) -> AlignedRows:
        """Take readings in the order in which they came; return the rows that are complete now."""
        codes, times = np.asarray(codes, dtype=np.int64), np.asarray(times, dtype=np.int64)
        values = np.asarray(values, dtype=np.float64)
        if not len(codes):
            return self._none
        found, first = [], 0
        while True:
            first = receive_readings(
                codes, times, values, first, self.alignment.step, self.alignment.origin, self.late,
                self._codes, self._times, self._values, self._marks,
            )  # fmt: skip
            if self._marks[OLDEST] <= self._marks[CLOSED]:
                found.append(self._make_rows())
            if first == len(codes):
                return _joined(found) if found else self._none
            if self.waiting == len(self._codes) < _MOST_WAITING:
                self._make_room(2 * len(self._codes))
            elif self.waiting == len(self._codes):
                self._marks[CLOSED] = self._marks[OLDEST]
                found.append(self._make_rows())

    def finish(self) -> AlignedRows:
        """Return the rows of all readings that wait, whether or not their steps are over."""
        if not self.waiting:
            return self._none
        newest = int(self._times[: self.waiting].max())
        self._marks[CLOSED] = max(self._marks[CLOSED], (newest - self.alignment.origin) // self.alignment.step)
        return self._make_rows()

    def _make_rows(self) -> AlignedRows:
        """Make the rows of the steps that are closed, and keep the other readings."""
        n, step, origin = self.waiting, self.alignment.step, self.alignment.origin
        codes, times, values = self._codes[:n], self._times[:n], self._values[:n]
        done = times < (int(self._marks[CLOSED]) + 1) * step + origin
        order = np.flatnonzero(done)
        order = order[np.argsort(times[order], kind="stable")]
        rows = self._maker.make(codes[order], times[order], values[order])
        left = n - len(order)
        if left:
            kept = ~done
            codes[:left], times[:left], values[:left] = codes[kept], times[kept], values[kept]
        self._marks[WAITING] = left
        self._marks[OLDEST] = (int(times[:left].min()) - origin) // step if left else -_NEVER
        return rows

    def _make_room(self, size: int) -> None:
        n = self.waiting
        self._codes, self._times = np.resize(self._codes[:n], size), np.resize(self._times[:n], size)
        self._values = np.resize(self._values[:n], size)

    def state(self) -> dict[str, Any]:
        """Return what `restore` takes: an aligner that goes on from here gives the same bits."""
        n, maker = self.waiting, self._maker
        return {
            "alignment": self.alignment.state(),
            "late": self.late,
            "rows": maker.rows,
            "marks": self._marks.copy(),
            "codes": self._codes[:n].copy(),
            "times": self._times[:n].copy(),
            "values": self._values[:n].copy(),
            "last_values": maker.last_values.copy(),
            "last_times": maker.last_times.copy(),
            "shares": maker.shares.copy(),
        }

    @classmethod
    def restore(cls, state: Any) -> Aligner:
        """Return the aligner of a state from a file; a StorageError if something does not fit."""
        record = state if isinstance(state, Record) else Record(state, "aligner")
        record.require_fields(
            "alignment", "late", "rows", "marks", "codes", "times", "values", "last_values", "last_times", "shares",
        )  # fmt: skip
        alignment = Alignment.restore(record.part("alignment"))
        p = len(alignment.tags)
        aligner = cls(alignment, record.whole("late", least=0, most=_FARTHEST))
        marks = record.array("marks", np.int64, (_MARKS,), least=_NEVER, most=-_NEVER)
        n = int(marks[WAITING])
        codes = record.array("codes", np.int64, (n,), least=0, most=p - 1)
        times = record.array("times", np.int64, (n,), least=-_FARTHEST, most=_FARTHEST)
        steps = (times - alignment.origin) // alignment.step
        oldest = int(steps.min()) if n else -_NEVER
        sound = n <= _MOST_WAITING and marks[TOO_LATE] >= 0 and 0 <= marks[LATE_CODE] < p and marks[OLDEST] == oldest
        if not sound or marks[CLOSED] >= oldest or (n and marks[NEWEST] < times.max()):
            raise record.error("marks", "those of the readings that wait")
        values = record.value("values")
        if not isinstance(values, np.ndarray) or values.dtype != np.float64 or values.shape != (n,):
            raise record.error("values", f"float64 of shape ({n},)")
        maker = aligner._maker
        maker.rows = record.whole("rows", least=0, most=2**53)
        maker.last_values = record.array("last_values", np.float64, (p,), missing=True)
        maker.last_times = record.array("last_times", np.int64, (p,), least=_NEVER, most=_FARTHEST)
        maker.shares = record.array("shares", np.int64, (2, p), least=0, most=maker.rows)
        aligner._make_room(1 << (max(n, _FIRST_WAITING) - 1).bit_length())
        aligner._codes[:n], aligner._times[:n], aligner._values[:n] = codes, times, values
        aligner._marks = marks.copy()
        return aligner


def _joined(parts: Sequence[AlignedRows]) -> AlignedRows:
    if len(parts) == 1:
        return parts[0]
    return AlignedRows(np.concatenate([part.times for part in parts]), np.concatenate([part.values for part in parts]))


def tag_intervals(codes: NDArray[np.integer], times: IntArray, values: FloatArray, count: int) -> list[IntArray]:
    """Return times between successive readings of each tag, in order of size; of many every so many.

    >>> times = np.array([0, 5, 10, 15, 20, 30])
    >>> [found.tolist() for found in tag_intervals(np.array([0, 1, 0, 1, 0, 0]), times, np.ones(6), 3)]
    [[10, 10, 10], [10], []]
    """
    sizes = count_readings(codes, values, count)[0]
    samples = np.zeros((count, _SAMPLE), dtype=np.int64)
    filled = sample_intervals(codes, times, values, 1 + sizes // _SAMPLE, samples)
    return [np.sort(sample[:size]) for sample, size in zip(samples, filled.tolist(), strict=True)]


@dataclass(frozen=True)
class AlignOptions:
    """How tags are put on one clock: `step` in microseconds, AUTO or NONE; `hold` of all tags, or None."""

    step: int | str = AUTO
    hold: int | None = None

    @classmethod
    def of(cls, step: Any = None, hold: Any = None) -> AlignOptions:
        """Read what a user gave: texts such as "5min", or durations of Python or pandas; a TableError otherwise.

        >>> AlignOptions.of("5min", dt.timedelta(minutes=15))
        AlignOptions(step=300000000, hold=900000000)
        """
        word = step.strip().lower() if isinstance(step, str) else step
        chosen: int | str = AUTO if word is None else word if word in (AUTO, NONE) else _microseconds("step", step, 1)
        return cls(chosen, None if hold is None else _microseconds("hold", hold, 0))


def _microseconds(name: str, value: Any, least: int) -> int:
    also = " auto, none or" if name == "step" else ""
    try:
        read = parse_duration(value) if isinstance(value, str) else value
        if not isinstance(read, dt.timedelta | np.timedelta64):
            raise ValueError(f"it must be{also} a duration such as '5min'; got {value!r:.100}.")
        found = pd.Timedelta(read) // pd.Timedelta(microseconds=1)  # NaT fails
        if not least <= found <= _FARTHEST:
            raise ValueError(f"it must be{also} a duration of at least {least} microseconds; got {value!r:.100}.")
    except (ValueError, TypeError) as error:
        raise TableError(f"{name}: {error}", name) from None
    return int(found)


def plan_alignment(
    names: Sequence[str],
    codes: NDArray[np.integer],
    times: IntArray,
    values: FloatArray,
    options: AlignOptions,
    *,
    states: Sequence[int] = (),
    offset: int = 0,
) -> Alignment:
    """Choose a step and how long a reading of each tag stands, from readings in order of time.

    Parameters
    ----------
    names : of the tags.
    codes, times, values : arrays
        As `align_readings` takes them.
    options : AlignOptions
        A given step is taken. "auto" is the next round step that is not much shorter than what is usual for half of the
        tags. Without a hold, a reading stands for 1.5 times the longest interval that is usual for its tag (in 99 of
        100), so that tags that are read only when they change keep their values, and for a step at least.
    states : codes of tags whose last reading counts; so do those of few whole numbers.
    offset : microseconds from UTC, so that steps begin at round local times.

    Returns
    -------
    Alignment

    Examples
    --------
    >>> codes, times = np.array([0, 1] * 40), np.arange(80) * 30_000_000
    >>> clock = plan_alignment(["flow", "valve"], codes, times, np.arange(80) % 4 / 1.5, AlignOptions())
    >>> clock.step, clock.tags[0]
    (60000000, AlignedTag(name='flow', interval=60000000, hold=90000000, mean=True))
    """
    intervals = tag_intervals(codes, times, values, len(names))
    usual = [int(np.median(each)) if len(each) else 0 for each in intervals]
    step = options.step if isinstance(options.step, int) else 1 if options.step == NONE else choose_step(usual)
    few = has_few_levels(codes, values, np.zeros((len(names), _MOST_LEVELS)), np.zeros(len(names), dtype=np.int64))
    tags = []
    for code, name in enumerate(names):
        hold = options.hold
        if hold is None:
            longest = float(np.quantile(intervals[code], _USUAL)) if len(intervals[code]) else 0.0
            hold = 0 if options.step == NONE else max(step, int(_FACTOR * longest))
        tags.append(AlignedTag(name, usual[code], min(hold, _FARTHEST), code not in states and not few[code]))
    return Alignment(step, tuple(tags), -offset % step)


def choose_step(usual: Sequence[int]) -> int:
    """Return the round step for tags with these usual intervals (0: not known), all in microseconds.

    >>> [choose_step([each * 1_000_000 for each in some]) // 1_000_000 for some in ([60, 61, 3600], [7], [10, 60, 300])]
    [60, 10, 60]
    """
    known = [each for each in usual if each > 0]
    middle = float(np.median(known)) if known else 0.0
    return next((step for step in ROUND_STEPS if step >= _ROUND_DOWN * middle), ROUND_STEPS[-1])
