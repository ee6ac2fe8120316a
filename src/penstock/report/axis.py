"""Place rows on the horizontal axis, choose the points that a chart needs, and pack arrays for the page's script.

Times and readings come in; places, and texts that `unpack.js` turns into arrays again, go out.
"""

from __future__ import annotations

import base64
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from penstock._types import FloatArray, IndexArray
from penstock.io import Table
from penstock.report.document import as_json

_PER_MILLISECOND = {"s": 1e-3, "ms": 1.0, "us": 1e3, "ns": 1e6}
_WIDER = 2.5  # times the usual step: a gap
_USUAL = 0.9  # of all steps are no longer
_MOSTLY_GAPS = 0.25  # of the time: gaps are drawn narrow
_NARROW = 0.1  # of what is drawn, all gaps together
_BETWEEN_GROUPS = 10  # steps


@dataclass(frozen=True, eq=False)
class Axis:
    """The horizontal axis of every chart.

    places : of each row, in milliseconds from the first row; without time its number in the source, or its
        position where rows are in another order. Where gaps take much of the time they are narrower than they were.
    elapsed : the same with gaps as long as they were.
    begins : whether a new stretch begins with a row: it follows a gap in the sampling (or is the first).
    step : how far rows are usually apart.
    origin : milliseconds from 1970 (UTC) to the first row; None without time.
    offsets : from which place on the clock is how many milliseconds ahead of origin + place: by the time zone, and by
        what gaps are narrower.
    zone : its name, "" if the times have none.
    is_narrowed : whether gaps are narrower than they were.
    in_groups : where groups begin that overlap in time and are drawn one after the other; None if rows are in order.
    """

    places: FloatArray
    elapsed: FloatArray
    begins: NDArray[np.bool_]
    step: float
    origin: float | None
    offsets: tuple[tuple[float, float], ...]
    zone: str
    is_narrowed: bool = False
    in_groups: IndexArray | None = None

    def packed(self) -> Packed:
        ordered = self.in_groups is None
        return {"origin": self.origin, "offsets": self.offsets, "zone": self.zone, "ordered": ordered}

    @property
    def gaps(self) -> list[tuple[float, float, float]]:
        """From where to where each gap is drawn, and how long it was; none without time."""
        after = np.flatnonzero(self.begins)[1:] if self.origin is not None else np.zeros(0, dtype=np.intp)
        if self.in_groups is not None:
            after = np.setdiff1d(after, self.in_groups)
        lengths = self.elapsed[after] - self.elapsed[after - 1]
        ends = zip(self.places[after - 1].tolist(), self.places[after].tolist(), lengths.tolist(), strict=True)
        return [gap for gap in ends if gap[2] > 0]


def make_axis(
    time: pd.DatetimeIndex | None, n: int, starts: Sequence[int] = (0,), rows: pd.Index[Any] | None = None
) -> Axis:
    """The axis of a table with n rows, in their order, whose groups begin at `starts`; `rows` are their numbers.

    Groups that overlap in time are placed one after the other. Rows whose times fall inside a group are placed by their
    position, without time.

    >>> hours = pd.DatetimeIndex(["2024-05-01 00:00", "2024-05-01 01:00", "2024-05-01 02:00", "2024-05-02"])
    >>> axis = make_axis(hours, 4)
    >>> (axis.elapsed / 3_600_000).tolist(), axis.begins.tolist()
    ([0.0, 1.0, 2.0, 24.0], [True, False, False, True])
    >>> (axis.places / 3_600_000).round(2).tolist(), axis.gaps[0][2] / 3_600_000  # the gap of 22 h is drawn narrow
    ([0.0, 1.0, 2.0, 2.22], 22.0)
    """
    first = np.asarray(starts, dtype=np.intp)
    steps = np.zeros(0) if time is None or not len(time) else np.diff(time.asi8.astype(np.float64))
    falls = np.flatnonzero(steps < 0) + 1
    if time is None or not len(time) or not np.isin(falls, first).all():
        begins = np.zeros(n, dtype=np.bool_)
        begins[list(starts) if n else []] = True
        places = np.arange(n, dtype=np.float64)
        if time is None and rows is not None and rows.is_monotonic_increasing:
            places = rows.to_numpy(dtype=np.float64)
        return Axis(places, places, begins, 1.0, None, (), "")
    per = _PER_MILLISECOND[time.unit]
    ticks = time.asi8
    elapsed = (ticks.view(np.uint64) - ticks.view(np.uint64)[0]).astype(np.int64).astype(np.float64) / per
    moved = np.zeros(n)
    if len(falls):  # groups that overlap in time: one after the other, a few steps apart
        inside = np.delete(np.diff(elapsed), first[1:] - 1)
        apart = _BETWEEN_GROUPS * (float(np.median(inside)) if len(inside) else 1.0)
        moved[first[1:]] = elapsed[first[1:] - 1] + apart - elapsed[first[1:]]
        moved = np.cumsum(moved)
    elapsed = elapsed + moved
    steps = np.diff(elapsed)
    usual = float(np.median(steps)) if len(steps) else 0.0
    positive = steps[steps > 0]
    longest = _WIDER * float(np.quantile(positive, _USUAL, method="lower")) if len(positive) else np.inf
    begins = np.concatenate([[True], steps > longest])
    begins[first] = True
    removed = _removed(steps, begins)
    ahead = removed - moved
    if time.tz is not None:
        ahead = ahead + (time.tz_localize(None).asi8 - ticks).astype(np.float64) / per
    places = elapsed - removed
    changes = np.flatnonzero(np.diff(ahead, prepend=np.nan) != 0)
    offsets = tuple((float(places[row]), float(ahead[row])) for row in changes)
    zone, groups = "" if time.tz is None else str(time.tz), first if len(falls) else None
    return Axis(places, elapsed, begins, usual, float(ticks[0]) / per, offsets, zone, bool(removed.any()), groups)


def axis_of(table: Table) -> Axis:
    """Return the axis of a whole table."""
    return make_axis(table.time, len(table.values), [rows.start for rows in table.spans], table.values.index)


def _removed(steps: FloatArray, begins: NDArray[np.bool_]) -> FloatArray:
    """Return by how much each row is moved to the left, as gaps before it are drawn narrower than they were."""
    cut = np.zeros(len(begins))
    gaps = np.flatnonzero(begins[1:])
    inside = float(steps.sum() - steps[gaps].sum())
    if len(gaps) and inside > 0 and steps[gaps].sum() > _MOSTLY_GAPS * steps.sum():
        width = _NARROW / (1 - _NARROW) * inside / len(gaps)
        cut[gaps + 1] = np.maximum(steps[gaps] - width, 0.0)
    return np.cumsum(cut)


def thin_out(values: FloatArray, stretches: IndexArray, places: FloatArray, most: int) -> IndexArray:
    """Which points a chart needs: in each of many equal spans the lowest and the highest, and both ends of a stretch.

    `stretches` numbers the stretch of each point, in ascending order. All points if there are at most `most`; otherwise
    about so many (and the ends of the stretches). The highest and the lowest point are always kept.

    >>> thin_out(np.array([1.0, 9.0, 2.0, 0.0, 5.0, 5.0]), np.zeros(6, int), np.arange(6.0), most=4).tolist()
    [0, 1, 3, 4, 5]
    """
    if len(values) <= most:
        return np.arange(len(values), dtype=np.intp)
    n_spans = max(1, most // 2)
    width = (float(places[-1]) - float(places[0])) / n_spans
    span = (
        np.minimum((places - places[0]) / width, n_spans - 1).astype(np.int64) if width > 0 else np.arange(len(values))
    )
    new = np.concatenate([[True], (np.diff(span) != 0) | (np.diff(stretches) != 0)])
    first = np.flatnonzero(new)
    ends = np.flatnonzero(np.diff(stretches) != 0)
    lowest = _first_equal(values, np.minimum.reduceat(values, first), first)
    highest = _first_equal(values, np.maximum.reduceat(values, first), first)
    kept = np.concatenate([lowest, highest, [0, len(values) - 1], ends, ends + 1])
    return np.unique(kept).astype(np.intp)


def _first_equal(values: FloatArray, wanted: FloatArray, first: IndexArray) -> IndexArray:
    """Where each group, beginning at `first`, first has its wanted value."""
    counts = np.diff(first, append=len(values))
    found = np.flatnonzero(values == np.repeat(wanted, counts))
    groups = np.searchsorted(first, found, side="right")
    return found[np.diff(groups, prepend=0) > 0]


@dataclass(frozen=True, eq=False)
class Level:
    """Rows put together in bins of equal length, of which a chart draws the lowest and the highest value each.

    Bins begin at the rows `first` and end with a stretch; `size` is the most rows in one. With a size of 1 every row is
    drawn.
    """

    axis: Axis
    first: IndexArray
    size: int

    @staticmethod
    def of(axis: Axis, most: int) -> Level:
        """Return bins that give at most about `most` points.

        >>> level = Level.of(make_axis(None, 7, starts=[0, 3]), most=6)
        >>> level.first.tolist(), level.thin(np.array([1.0, 5, 2, 9, 8, 7, np.nan])).tolist()
        ([0, 3, 6], [1.0, 5.0, 9.0, 7.0, nan, nan])
        """
        n = len(axis.places)
        size = 1 if n <= most else -(-2 * n // most)
        begin = np.maximum.accumulate(np.where(axis.begins, np.arange(n), 0))
        return Level(axis, np.flatnonzero((np.arange(n) - begin) % size == 0), size)

    def thin(self, values: FloatArray) -> FloatArray:
        """Return the lowest and highest value of each bin, in the order in which they came; NaN where there is none."""
        if self.size == 1:
            return values
        known = ~np.isnan(values)
        low = np.minimum.reduceat(np.where(known, values, np.inf), self.first)
        high = np.maximum.reduceat(np.where(known, values, -np.inf), self.first)
        empty = low > high
        filled = np.where(known, values, np.inf)
        low_at = _first_equal(filled, low, self.first)
        high_at = _first_equal(np.where(known, values, -np.inf), high, self.first)
        pairs = np.stack([np.where(low_at <= high_at, low, high), np.where(low_at <= high_at, high, low)], axis=1)
        pairs[empty] = np.nan
        return pairs.ravel()

    def packed(self) -> Packed:
        axis = self.axis
        begins = self.axis.begins[self.first]
        if self.size == 1:
            return {"places": pack_places(axis.places), "begins": np.flatnonzero(begins).tolist(), "rows": 1}
        last = np.append(self.first[1:], len(axis.places)) - 1
        middle = (self.first + last) // 2
        places = np.stack([axis.places[self.first], axis.places[middle]], axis=1).ravel()
        return {"places": pack_places(places), "begins": (2 * np.flatnonzero(begins)).tolist(), "rows": self.size}


Packed = dict[str, Any]
_MISSING = 65535  # of 16 bits; the values use those below
_MANY, _FEW_STEPS = 20, 30  # values; times that the range is wider than nine tenths of them
_ESCAPES = {"<": "\\u003c", ">": "\\u003e", "&": "\\u0026", "\u2028": "\\u2028", "\u2029": "\\u2029"}


def script_json(data: Any) -> str:
    """JSON that can stand inside a script element: no sign in it can end that element or begin a comment.

    >>> script_json(["</script>", "a & b"])
    '["\\\\u003c/script\\\\u003e","a \\\\u0026 b"]'
    """
    text = as_json(data, ensure_ascii=True, separators=(",", ":"))
    for sign, escape in _ESCAPES.items():
        text = text.replace(sign, escape)
    return text


def pack_bytes(array: Any, kind: str) -> str:
    return base64.b64encode(np.ascontiguousarray(array, dtype=kind).tobytes()).decode("ascii")


def pack_curve(values: FloatArray) -> Packed:
    """Values between their least and largest in steps of 1/65534 of that range, which is finer than any screen.

    Where one value is so far out that the others would share few steps, all are numbers of 32 bits.

    >>> pack_curve(np.array([0.0, 1.0, np.nan]))
    {'low': 0.0, 'high': 1.0, 'data': 'AAD+////'}
    """
    known = np.isfinite(values)
    inside = values[known]
    low, high = (float(inside.min()), float(inside.max())) if len(inside) else (0.0, 0.0)
    width = high / 2 - low / 2  # half of the range cannot overflow
    if len(inside) > _MANY:
        usual = np.quantile(inside, [0.05, 0.95]) / 2
        if 0 < (usual[1] - usual[0]) < width / _FEW_STEPS:
            largest = float(np.finfo(np.float32).max)
            numbers = np.clip(np.where(known, values, np.nan), -largest, largest)
            return {"numbers": pack_bytes(numbers, "<f4")}
    share = (np.where(known, values, low) / 2 - low / 2) / (width if width > 0 else 1.0)
    steps = np.where(known, np.rint(share * (_MISSING - 1)), _MISSING)
    return {"low": low, "high": high, "data": pack_bytes(steps, "<u2")}


def pack_places(places: FloatArray) -> Packed:
    """Ascending places (milliseconds from the first row, or row numbers) as whole steps from the first of them.

    The step is the largest in which all of them are whole, or a four-thousand-millionth of their span.
    """
    if not len(places):
        return {"first": 0.0, "step": 1.0, "data": ""}
    first = float(places[0])
    offsets = places - places[0]
    step = _common_step(offsets)
    return {"first": first, "step": step, "data": pack_bytes(np.rint(offsets / step), "<u4")}


def _common_step(offsets: FloatArray) -> float:
    span = float(offsets[-1])
    whole = offsets[offsets == np.rint(offsets)]
    if len(whole) == len(offsets) and 0 < span < 2**53:
        common = int(np.gcd.reduce(offsets.astype(np.int64)))
        if span / common < 2**32:
            return float(common)
    return span / (2**32 - 1) if span > 0 else 1.0


def finite(value: float) -> float | None:
    """A number for JSON, which knows neither NaN nor infinity.

    >>> finite(2.5), finite(float("inf"))
    (2.5, None)
    """
    return float(value) if np.isfinite(value) else None
