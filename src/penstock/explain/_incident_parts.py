"""Cut the flagged rows of events into parts of one cause, and merge neighbouring parts whose cause is the same.

A sensor is *out* in a row if its evidence is at least 1, the edge of what is usual. What lies above 1, averaged over
the flagged rows, says which sensors a part is about; two parts share a cause as far as these agree.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from penstock._types import FloatArray, IndexArray
from penstock.columns import InputRole
from penstock.explain.events import USUAL_STEPS

LEVEL = 1.0  # evidence at the edge of what is usual
FEWEST_ROWS = 3  # flagged rows on each side of a split
_WINDOW = 24  # flagged rows before and after a split that are compared
_ROUNDING = 1e-6  # sums of evidence below this are rounding
_EQUAL = 1e-9  # cosines closer than this are equal: a row without excess makes no difference
_OTHER_SENSORS = 0.2  # patterns with a smaller cosine are of other sensors
_SAME_SENSORS = 0.7  # patterns with at least this cosine are of the same sensors
_STAYS = 0.5  # a sensor stays out if it keeps this share of its excess
_LEADING = 0.7  # of the largest mean evidence: sensors that decide on start and end


@dataclass(frozen=True, eq=False)
class Series:
    """n rows of p sensors; `segment` numbers the stretches between starts."""

    scores: FloatArray
    evidence: FloatArray
    expected: FloatArray
    readings: FloatArray
    segment: IndexArray
    names: tuple[str, ...]
    units: tuple[str, ...]  # "" where the unit is not known
    roles: tuple[InputRole, ...]
    fitted_apart: bool  # the ranges of the roles are of rows of another table


@dataclass(frozen=True, eq=False)
class IncidentPart:
    """Flagged rows, the sums of their evidence and of what lies above the level (p,), and from where to where."""

    rows: IndexArray
    evidence: FloatArray
    excess: FloatArray
    start: int
    end: int


def split_event(series: Series, rows: IndexArray) -> list[IncidentPart]:
    """Split the flagged rows of one event where a new history begins, and where the cause changes."""
    parts: list[IncidentPart] = []
    for some in np.split(rows, 1 + np.flatnonzero(np.diff(series.segment[rows]))):
        excess = np.maximum(series.evidence[some] - LEVEL, 0.0)
        cuts = _changes_of_cause(excess)
        for own, above in zip(np.split(some, cuts), np.split(excess, cuts), strict=True):
            sums = series.evidence[own].sum(axis=0), above.sum(axis=0)
            parts.append(IncidentPart(own, *sums, int(own[0]), int(own[-1])))
    return parts


def _changes_of_cause(excess: FloatArray) -> list[int]:
    """Return before which rows of the excess (m, p) the cause changes: up to 24 rows before against 24 rows from it on.

    Of neighbouring rows the first with the smallest cosine counts; parts have at least three rows.
    """
    m = len(excess)
    rows = np.arange(FEWEST_ROWS, m - FEWEST_ROWS + 1)
    if not len(rows):
        return []
    sums = np.concatenate([np.zeros((1, excess.shape[1])), np.cumsum(excess, axis=0)])
    first = np.maximum(rows - _WINDOW, 0)
    last = np.minimum(rows + _WINDOW, m)
    before, after = sums[rows] - sums[first], sums[last] - sums[rows]
    before[before < _ROUNDING] = 0.0
    after[after < _ROUNDING] = 0.0
    before /= (rows - first)[:, None]
    after /= (last - rows)[:, None]
    changes = np.flatnonzero(_cause_changes(before, after))
    cosines = _cosine(before, after)
    cuts: list[int] = []
    for near in np.split(changes, 1 + np.flatnonzero(np.diff(changes) > 1)):
        if len(near):
            cut = int(rows[near[cosines[near] <= cosines[near].min() + _EQUAL][0]])
            if cut >= (cuts or [0])[-1] + FEWEST_ROWS:
                cuts.append(cut)
    return cuts


def _cause_changes(one: FloatArray, other: FloatArray) -> Any:
    """Say whether two patterns (…, p) of mean excess have different causes: other sensors, and none of the old stays.

    The strongest sensor of either must have lost half of its excess in the other: a fault that spreads from one sensor
    to many is one cause. A pattern of zeros has no sensors, and so no other cause.
    """
    kept = np.maximum(_kept_of_strongest(one, other), _kept_of_strongest(other, one))
    return (_cosine(one, other) < _OTHER_SENSORS) & (kept < _STAYS)


def _kept_of_strongest(one: FloatArray, other: FloatArray) -> Any:
    strongest = one.argmax(axis=-1)[..., None]
    of_one, of_other = (np.take_along_axis(values, strongest, -1)[..., 0] for values in (one, other))
    return of_other / np.where(of_one > 0, of_one, 1.0)


def _cosine(one: FloatArray, other: FloatArray) -> Any:
    """Return the cosine of patterns (…, p), NaN if one is all 0."""
    lengths = np.sqrt((one**2).sum(axis=-1)) * np.sqrt((other**2).sum(axis=-1))
    return (one * other).sum(axis=-1) / np.where(lengths > 0, lengths, np.nan)


def merge_parts(series: Series, parts: list[IncidentPart]) -> list[IncidentPart]:
    """Merge neighbours that touch in time unless their causes differ, or follow each other with the same sensors."""
    done: list[IncidentPart] = []
    for number, part in enumerate(parts):
        following = int(parts[number + 1].rows[0]) if number + 1 < len(parts) else len(series.scores)
        current = _with_span(series, part, int(done[-1].rows[-1]) if done else -1, following)
        while done and _have_one_cause(series, done[-1], current):
            last = done.pop()
            both = IncidentPart(
                np.concatenate([last.rows, current.rows]),
                last.evidence + current.evidence,
                last.excess + current.excess,
                last.start,
                current.end,
            )
            current = _with_span(series, both, int(done[-1].rows[-1]) if done else -1, following)
        done.append(current)
    return done


def _have_one_cause(series: Series, one: IncidentPart, other: IncidentPart) -> bool:
    """Compare an incident with the next: no farther apart than the longer of them lasts, or six rows."""
    if series.segment[one.rows[0]] != series.segment[other.rows[0]]:
        return False
    patterns = one.excess / len(one.rows), other.excess / len(other.rows)
    apart = other.start - one.end - 1
    if apart <= 0:
        return not _cosine(*patterns) < _OTHER_SENSORS
    longer = max(one.end - one.start, other.end - other.start) + 1
    return bool(apart <= max(USUAL_STEPS, longer) and _cosine(*patterns) >= _SAME_SENSORS)


def _with_span(series: Series, part: IncidentPart, before: int, after: int) -> IncidentPart:
    """Return the part with the rows in which its leading sensors leave their range and come back.

    The span holds no flagged row of a neighbour: it lies between the rows `before` and `after`.
    """
    mean = part.evidence / len(part.rows)
    first = int(part.rows[0])
    last = int(part.rows[-1])
    leading = np.flatnonzero((mean >= LEVEL) & (mean >= _LEADING * mean.max()))
    if not len(leading):  # no sensor is out on average: those that are ever out
        leading = np.flatnonzero(part.excess > 0)
    start = walk(series, leading, first, before, -1).min(initial=first)
    end = walk(series, leading, last, after, 1).max(initial=last)
    return replace(part, start=int(start), end=int(end))


def walk(series: Series, sensors: IndexArray, row: int, limit: int, step: int) -> IndexArray:
    """Return the farthest row that each sensor reaches from `row` while it is out, in one history, short of `limit`.

    Sensors that are not out in `row` stay there. Rows are looked at in blocks that double, so that the cost is that of
    the distance walked.
    """
    reached = np.full(len(sensors), row, dtype=np.intp)
    walking = np.arange(len(sensors))
    position, block = row, 16
    while len(walking) and position != limit:
        stop = position + step * block
        stop = max(stop, limit, -1) if step < 0 else min(stop, limit)
        rows = np.arange(position, stop, step)
        out = (series.evidence[np.ix_(rows, sensors[walking])] >= LEVEL) & (
            series.segment[rows] == series.segment[row]
        )[:, None]
        steps = np.where(out.all(axis=0), len(rows), out.argmin(axis=0))
        reached[walking] = np.where(steps > 0, position + step * (steps - 1), reached[walking])
        walking = walking[steps == len(rows)]
        position, block = stop, 2 * block
    return reached
