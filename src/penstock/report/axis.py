"""Place rows on the horizontal axis, choose the points that a chart needs, and pack arrays for the page's script."""

from __future__ import annotations

import base64
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from penstock._types import FloatArray, IndexArray
from penstock.detection import Findings
from penstock.report import as_json

_PER_MILLISECOND = {"s": 1e-3, "ms": 1.0, "us": 1e3, "ns": 1e6}
_WIDER = 2.5  # times the usual step: a gap
_USUAL = 0.9  # of all steps are no longer


@dataclass(frozen=True, eq=False)
class Axis:
    """The horizontal axis of every chart.

    places : of each row, in milliseconds from the first row; without time its number in the source, or its
        position where rows are in another order.
    begins : whether a new stretch begins with a row: it follows a gap in the sampling (or is the first).
    step : how far rows are usually apart.
    origin : milliseconds from 1970 (UTC) to the first row; None without time.
    offsets : from which place on the clock of the time zone is how many milliseconds ahead of UTC.
    zone : its name, "" if the times have none.
    """

    places: FloatArray
    begins: NDArray[np.bool_]
    step: float
    origin: float | None
    offsets: tuple[tuple[float, float], ...]
    zone: str

    def packed(self) -> Packed:
        return {"origin": self.origin, "offsets": self.offsets, "zone": self.zone}


def event_span(findings: Findings, event: int) -> slice:
    """Return all rows from the first flagged one of an event to the last."""
    first, last = findings.grouped.first_rows[event - 1], findings.grouped.last_rows[event - 1]
    return slice(int(first), int(last) + 1)


def make_axis(
    time: pd.DatetimeIndex | None, n: int, starts: Sequence[int] = (0,), rows: pd.Index[Any] | None = None
) -> Axis:
    """The axis of a table with n rows, in their order, whose groups begin at `starts`; `rows` are their numbers.

    Where groups overlap in time, so that rows are not in its order, they are placed by their position.

    >>> hours = pd.DatetimeIndex(["2024-05-01 00:00", "2024-05-01 01:00", "2024-05-01 02:00", "2024-05-02"])
    >>> axis = make_axis(hours, 4)
    >>> (axis.places / 3_600_000).tolist(), axis.begins.tolist()
    ([0.0, 1.0, 2.0, 24.0], [True, False, False, True])
    """
    if time is None or not len(time) or not time.is_monotonic_increasing:
        begins = np.zeros(n, dtype=np.bool_)
        begins[list(starts) if n else []] = True
        places = np.arange(n, dtype=np.float64)
        if time is None and rows is not None and rows.is_monotonic_increasing:
            places = rows.to_numpy(dtype=np.float64)
        return Axis(places, begins, 1.0, None, (), "")
    per = _PER_MILLISECOND[time.unit]
    ticks = time.asi8
    places = (ticks.view(np.uint64) - ticks.view(np.uint64)[0]).astype(np.float64) / per
    steps = np.diff(places)
    usual = float(np.median(steps)) if len(steps) else 0.0
    offsets = _offsets(time, places, per)
    begins = _after_gaps(steps)
    begins[list(starts)] = True
    return Axis(places, begins, usual, float(ticks[0]) / per, offsets, _zone_name(time))


def _after_gaps(steps: FloatArray) -> NDArray[np.bool_]:
    usual = steps[steps > 0]
    limit = _WIDER * float(np.quantile(usual, _USUAL, method="lower")) if len(usual) else np.inf
    return np.concatenate([[True], steps > limit])


def _offsets(time: pd.DatetimeIndex, places: FloatArray, per: float) -> tuple[tuple[float, float], ...]:
    if time.tz is None:
        return ((0.0, 0.0),)
    ahead = (time.tz_localize(None).asi8 - time.asi8).astype(np.float64) / per
    changes = np.flatnonzero(np.diff(ahead, prepend=np.nan) != 0)
    return tuple((float(places[row]), float(ahead[row])) for row in changes)


def _zone_name(time: pd.DatetimeIndex) -> str:
    return "" if time.tz is None else str(time.tz)


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


Packed = dict[str, Any]
_MISSING = 65535  # of 16 bits; the values use those below
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

    >>> pack_curve(np.array([0.0, 1.0, np.nan]))
    {'low': 0.0, 'high': 1.0, 'data': 'AAD+////'}
    """
    known = np.isfinite(values)
    low, high = (float(values[known].min()), float(values[known].max())) if known.any() else (0.0, 0.0)
    # Halves, so that the widest range there can be does not overflow.
    width = high / 2 - low / 2
    share = (np.where(known, values, low) / 2 - low / 2) / (width if width > 0 else 1.0)
    steps = np.where(known, np.rint(share * (_MISSING - 1)), _MISSING)
    return {"low": low, "high": high, "data": pack_bytes(steps, "<u2")}


def pack_places(places: FloatArray) -> Packed:
    """Ascending places (milliseconds from the first row, or row numbers) as whole steps from the first of them.

    The step is the largest in which all of them are whole, or a four-thousand-millionth of their span.
    """
    if not len(places):
        return {"first": 0.0, "step": 1.0, "data": ""}
    first, offsets = float(places[0]), places - places[0]
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


def pack_numbers(values: FloatArray) -> str:
    """As numbers of 32 bits; what is beyond them is the largest there is."""
    largest = float(np.finfo(np.float32).max)
    return pack_bytes(np.clip(values, -largest, largest), "<f4")


def finite(value: float) -> float | None:
    """A number for JSON, which knows neither NaN nor infinity.

    >>> finite(2.5), finite(float("inf"))
    (2.5, None)
    """
    return float(value) if np.isfinite(value) else None
