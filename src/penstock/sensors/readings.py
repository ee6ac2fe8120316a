"""Bring readings to one scale and tell sensors from settings; find where the history of a series begins anew."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from penstock._types import FloatArray

BoolArray = NDArray[np.bool_]
_LARGEST = 50.0  # scaled readings are cut there: one absurd reading must not decide the covariance
_GAP = 3.0  # steps longer than so many usual ones are gaps
_FEW_CHANGES = 0.05  # a setting changes in fewer steps
_SELDOM_AWAY = 0.02  # a column away from its commonest value in fewer rows is a flag, which is judged


@dataclass(frozen=True)
class Scale:
    """Center and width of each sensor, and which sensors are judged.

    Attributes
    ----------
    center, width : array of shape (p,)
        Scaled readings are (reading − center) / width, cut at ±50.
    judged : array of bool of shape (p,)
        False for settings and constant columns: they explain others and are never evidence themselves.
    """

    center: FloatArray
    width: FloatArray
    judged: BoolArray

    def apply(self, X: FloatArray) -> FloatArray:
        """Return scaled readings; NaN stays NaN."""
        with np.errstate(over="ignore"):
            scaled: FloatArray = np.clip((X - self.center) / self.width, -_LARGEST, _LARGEST)
        return scaled


def learn_scale(X: FloatArray, starts: BoolArray) -> Scale:
    """Learn the scale of each column from rows in order of time.

    Parameters
    ----------
    X : array of shape (n, p)
        Readings; NaN where one is missing. Every column has a reading.
    starts : array of bool of shape (n,)
        Where the history begins anew: the step into such a row does not count.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> X = np.column_stack([rng.normal(20, 2, 200), np.repeat([1.0, 2.0], 100), np.full(200, 5.0)])
    >>> learn_scale(X, np.arange(200) == 0).judged  # a sensor, a set point, a constant
    array([ True, False, False])
    """
    low, center, high = np.nanquantile(X, [0.05, 0.5, 0.95], axis=0)
    spread = np.nanstd(X, axis=0)
    width = (high - low) / 3.29  # the standard deviation, for a normal distribution
    width = np.where(width > 1e-3 * spread, width, spread)
    constant = ~(width > 0)
    judged = np.array([not constant[j] and not _is_setting(X[:, j], starts) for j in range(X.shape[1])])
    return Scale(center, np.where(constant, 1.0, width), judged)


def _is_setting(column: FloatArray, starts: BoolArray) -> bool:
    known = column[np.isfinite(column)]
    steps = np.diff(column)
    usable = np.isfinite(steps) & ~starts[1:]
    if not usable.any() or (steps[usable] != 0).mean() >= _FEW_CHANGES:
        return False
    _, counts = np.unique(known, return_counts=True)
    return bool(1 - counts.max() / len(known) >= _SELDOM_AWAY)


def usual_step(time: FloatArray | None) -> float:
    """Return the median time between rows, 0 where there is no time or fewer than two rows."""
    if time is None or len(time) < 2:
        return 0.0
    return float(np.median(np.diff(time)))


def find_starts(n: int, time: FloatArray | None = None, runs: Any = None, step: float | None = None) -> BoolArray:
    """Find the rows where the history begins anew: the first, after a gap, where the clock goes back, in a new run.

    Parameters
    ----------
    n : int
        Number of rows.
    time : array of shape (n,), optional
        Time of each row, in any unit.
    runs : array of shape (n,), optional
        Labels of runs; rows of one run follow each other.
    step : float, optional
        Usual time between rows; the median step if None. Longer than three of them is a gap.

    Examples
    --------
    >>> find_starts(5, np.array([0.0, 1.0, 2.0, 9.0, 10.0])).tolist()
    [True, False, False, True, False]
    """
    starts = np.zeros(n, dtype=np.bool_)
    starts[:1] = True
    if time is not None and n > 1:
        steps = np.diff(time)
        usual = usual_step(time) if step is None else step
        starts[1:] |= (steps < 0) | ((steps > _GAP * usual) if usual > 0 else False)
    if runs is not None:
        labels = np.asarray(runs)
        starts[1:] |= labels[1:] != labels[:-1]
    return starts
