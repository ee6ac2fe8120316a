"""Bring readings to one scale and tell sensors from settings; find where the history of a series begins anew."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any

import numpy as np

from penstock._row_kernels import scale_rows
from penstock._types import BoolArray, FloatArray
from penstock.sensors.blocks import each_column

LARGEST_READING = 50.0  # scaled readings are cut there: one absurd reading must not decide the covariance
_GAP = 3.0  # steps longer than so many of the longest usual ones are gaps
_JITTER = 0.01  # of a step: rows so close to even spacing are evenly spaced
_SHORTEST_STEP = 0.1  # rows with one time stamp count as so far apart
_HUGE, _SHRINK = 1e150, 2.0**-600  # readings whose squares overflow, and what they are multiplied by: exact
_FEW_CHANGES = 0.05  # a setting changes in fewer steps
_SELDOM_MOVES = 0.9  # of the rows at one value: such a column supports others, and never leads
_SELDOM_AWAY = 0.02  # a column away from its commonest value in fewer rows, that comes back, is a flag: it is scored


@dataclass(frozen=True)
class Scale:
    """Center and width of each sensor, and which sensors are scored."""

    center: FloatArray  # (p,) scaled readings are (reading − center) / width, cut at ±50
    width: FloatArray  # (p,)
    scored: BoolArray  # (p,) false for settings and constants: they explain others and are never evidence themselves
    still: BoolArray  # (p,) columns that never moved in the rows fitted to
    seldom: BoolArray  # (p,) columns at one value in nine of ten rows, such as a pump that hardly ever runs

    @property
    def leads(self) -> BoolArray:
        """(p,) scored sensors that may be the largest of a row; a column that seldom moves supports these."""
        return self.scored & ~self.seldom

    def only(self, columns: BoolArray) -> Scale:
        """Return the scale of some columns."""
        return Scale(*(getattr(self, each.name)[columns] for each in fields(self)))

    def apply(self, X: FloatArray) -> FloatArray:
        """Return scaled readings; NaN stays NaN."""
        scaled: FloatArray = np.empty(X.shape)
        scale_rows(X, self.center, self.width, LARGEST_READING, scaled)
        return scaled


def without_holes(Z: FloatArray) -> FloatArray:
    """Return scaled readings with 0, the center, where one is missing."""
    return np.where(np.isnan(Z), 0.0, Z)


def learn_scale(X: FloatArray, starts: BoolArray) -> Scale:
    """Learn the scale of each column from rows in order of time.

    X : (n, p) readings; NaN where one is missing. Every column has a reading.
    starts : (n,) where the history begins anew: the step into such a row does not count.

    >>> rng = np.random.default_rng(0)
    >>> X = np.column_stack([rng.normal(20, 2, 200), np.repeat([1.0, 2.0], 100), np.full(200, 5.0)])
    >>> learn_scale(X, np.arange(200) == 0).scored  # a sensor, a set point, a constant
    array([ True, False, False])
    """
    found = each_column(_scale_of, (X,), starts)
    return Scale(*(np.array(values) for values in zip(*found, strict=True)))


def _scale_of(column: FloatArray, starts: BoolArray) -> tuple[float, float, bool, bool, bool]:
    """Return center and width of a column, and whether it is scored, never moved, seldom moves."""
    bottom, top = np.nanmin(column), np.nanmax(column)
    shrink = _SHRINK if max(-bottom, top) > _HUGE else 1.0
    if shrink < 1:
        column = column * shrink
    low, center, high = np.nanquantile(column, [0.05, 0.5, 0.95])
    spread = np.nanstd(column)
    width = (high - low) / 3.29  # the standard deviation, for a normal distribution
    width = width if width > 1e-3 * spread else spread
    constant = bottom == top or not width > 0  # rounding may let a constant column seem to vary
    scored = not constant and not changes_seldom(column, starts)
    known = column[np.isfinite(column)]
    seldom = bool((known == center).sum() >= _SELDOM_MOVES * len(known))  # what most readings are, their median is
    width = 1.0 if constant else float(width / shrink)
    return float(center / shrink), width, scored, bool(constant), seldom


def changes_seldom(column: FloatArray, starts: BoolArray) -> bool:
    """Return whether a column changes in under 5 % of the steps, and is no flag: it explains others, and is not scored.

    column : (n,) NaN where a reading is missing.
    starts : (n,) where the history begins anew.

    >>> changes_seldom(np.repeat([1.0, 2.0], 50), np.zeros(100, dtype=bool))
    True
    """
    steps = np.diff(column)
    usable = np.isfinite(steps) & ~starts[1:]
    if not usable.any() or (steps[usable] != 0).mean() >= _FEW_CHANGES:
        return False
    return not is_flag(column[np.isfinite(column)])


def is_flag(values: FloatArray) -> bool:
    """Return whether values are away from the commonest one in under 2 % of the rows, and come back.

    >>> is_flag(np.append(np.zeros(99), [80.0, 0.0])), is_flag(np.repeat([0.0, 80.0], 50))
    (True, False)
    """
    levels, counts = np.unique(values, return_counts=True)
    common = levels[counts.argmax()]
    return bool(1 - counts.max() / len(values) < _SELDOM_AWAY and values[0] == common == values[-1])


@dataclass(frozen=True)
class Spacing:
    """How rows follow each other; the history begins anew after a gap, where the clock goes back, and in a new run."""

    starts: BoolArray  # (n,) where the history begins anew, and at the first row
    steps: FloatArray  # (n,) time since the row before in usual steps; 1 where rows are evenly spaced
    runs: BoolArray  # (n,) those starts with which another run begins: after a gap, slow levels still hold
    even: bool = False  # whether all steps are known to be 1

    def shares(self, horizon: int) -> FloatArray:
        """Return the weight of each row in the moving mean over a horizon: 1/horizon per usual step."""
        if self.even:
            return np.full(len(self.steps), 1 / horizon)
        uneven = 1 - (1 - 1 / horizon) ** self.steps
        return np.where(self.steps == 1.0, 1 / horizon, uneven)

    def shares_over(self, horizons: tuple[int, ...]) -> FloatArray:
        """Return the weights over several horizons, (h, n)."""
        shares = np.empty((len(horizons), len(self.steps)))
        for number, horizon in enumerate(horizons):
            shares[number] = 1 / horizon if self.even else self.shares(horizon)
        return shares

    def reversed(self) -> Spacing:
        """Return the spacing of the same rows when time runs backwards."""
        ends, steps = np.append(self.starts[1:], True), np.append(self.steps[1:], 1.0)
        return Spacing(ends[::-1].copy(), steps[::-1].copy(), np.append(self.runs[1:], True)[::-1].copy())


@dataclass
class LastRow:
    """Time and run of the last row of a series so far; None where there is none."""

    time: float | None = None
    run: Any = None
    begun: bool = False


@dataclass(frozen=True)
class Clock:
    """The usual time between rows, and the longest time that is no gap, in any unit; (0, inf) without time."""

    step: float = 0.0
    gap: float = np.inf

    def follow(self, n: int, time: FloatArray | None = None, runs: Any = None, last: LastRow | None = None) -> Spacing:
        """Return the spacing of the next n rows, and remember the last of them in `last`.

        n : number of rows.
        time : (n,) time of each row, in the unit of the clock.
        runs : (n,) labels of runs; rows of one run follow each other.
        last : the row before the first of these; None where the series begins with them.

        >>> time = np.array([0.0, 1.0, 2.0, 9.0, 10.0])
        >>> learn_clock(time).follow(5, time).starts.tolist()
        [True, False, False, True, False]
        """
        before = LastRow() if last is None else last
        starts, steps = np.zeros(n, dtype=np.bool_), np.ones(n)
        if not n:
            return Spacing(starts, steps, starts, True)
        others = np.zeros(n, dtype=np.bool_)
        others[0] = not before.begun
        if time is not None and self.step > 0:
            first = time[0] if before.time is None else before.time
            passed = np.diff(time, prepend=first)
            others |= passed < 0
            starts |= others | (passed > self.gap)
            relative = np.clip(passed / self.step, _SHORTEST_STEP, None)
            steps = np.where(starts | (np.abs(relative - 1) < _JITTER), 1.0, relative)
            steps[0] = 1.0 if before.time is None else steps[0]
        if runs is not None:
            labels = np.asarray(runs)
            others[1:] |= labels[1:] != labels[:-1]
            others[0] |= before.run is not None and labels[0] != before.run
        starts |= others
        if last is not None:
            last.time = None if time is None else float(time[-1])
            last.run = None if runs is None else np.asarray(runs)[-1]
            last.begun = True
        return Spacing(starts, steps, others, time is None or not self.step > 0)


def learn_clock(time: FloatArray | None, runs: Any = None) -> Clock:
    """Learn the usual step, the median, and the longest time that is no gap: three times the 0.9 quantile of steps."""
    if time is None or len(time) < 2:
        return Clock()
    steps = np.diff(time)
    inside = steps > 0
    if runs is not None:
        labels = np.asarray(runs)
        inside &= labels[1:] == labels[:-1]
    if not inside.any():
        return Clock()
    return Clock(float(np.median(steps[inside])), _GAP * float(np.quantile(steps[inside], 0.9, method="lower")))
