"""The readings around an event, actual against expected, for the script to draw when the event is opened."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from penstock._types import IndexArray
from penstock.detection import Findings
from penstock.report.axis import Axis, thin_out
from penstock.report.heat_map import ranges_of
from penstock.report.packing import Packed, pack_curve, pack_places
from penstock.report.words import shown_name

MOST_CHARTS = 6
_CONTEXT = 18  # rows before and after an event, at least
_MOST_CONTEXT = 500
_PLAIN = 240  # rows drawn one by one; of more, the lowest and highest in each span
_REACH = 3.0  # context ends where the sampling has a hole so many times as long as the context should be


def event_chart_data(findings: Findings, axis: Axis, event: int, variables: Sequence[str]) -> Packed:
    """One chart for each of the first `MOST_CHARTS` variables, over the same rows."""
    names = list(variables[:MOST_CHARTS])
    columns = [findings.names.index(name) for name in names]
    window = event_window(findings, axis, event)
    actual = findings.values.to_numpy()[window.start : window.stop, columns]
    expected = findings.expected.to_numpy()[window.start : window.stop, columns]
    kept = _kept(actual, axis, window)
    rows = window.start + kept
    ranges = ranges_of(findings)
    first, last = int(findings.grouped.first_rows[event - 1]), int(findings.grouped.last_rows[event - 1])
    of_row = findings.grouped.of_row[rows]
    return {
        "places": pack_places(axis.places[rows]),
        "begins": _begins(axis, rows),
        "span": [float(axis.places[first]), float(axis.places[last])],
        "marked": np.flatnonzero(of_row == event).tolist(),
        "charts": [
            {
                "name": shown_name(name),
                "unit": findings.units.get(name, ""),
                "range": float(ranges[column]),
                "actual": pack_curve(actual[kept, place]),
                "expected": pack_curve(expected[kept, place]),
            }
            for place, (name, column) in enumerate(zip(names, columns, strict=True))
        ],
    }


def event_window(findings: Findings, axis: Axis, event: int) -> slice:
    """The rows of an event with as many before and after it, at least `_CONTEXT`, unless they are far away in time."""
    span = findings.grouped.span_of(event)
    context = min(max(_CONTEXT, span.stop - span.start), _MOST_CONTEXT)
    group = findings.table.span_of(span.start)
    low, high = max(group.start, span.start - context), min(group.stop, span.stop + context)
    if axis.step > 0:
        reach = _REACH * axis.step * context
        low = max(low, int(np.searchsorted(axis.places, axis.places[span.start] - reach)))
        high = min(high, int(np.searchsorted(axis.places, axis.places[span.stop - 1] + reach, side="right")))
    return slice(low, high)


def _kept(actual: np.ndarray[tuple[int, int], np.dtype[np.float64]], axis: Axis, window: slice) -> IndexArray:
    """Which rows of the window are drawn: those in which any of the variables has a peak."""
    length = window.stop - window.start
    if length <= _PLAIN:
        return np.arange(length, dtype=np.intp)
    stretches = np.cumsum(axis.begins[window]).astype(np.intp)
    places = axis.places[window]
    each = max(40, _PLAIN // max(1, actual.shape[1]))
    kept = [thin_out(np.nan_to_num(column), stretches, places, each) for column in actual.T]
    return np.unique(np.concatenate(kept)).astype(np.intp)


def _begins(axis: Axis, rows: IndexArray) -> list[int]:
    gaps = np.cumsum(axis.begins[rows[0] : rows[-1] + 1])[rows - rows[0]]
    found: list[int] = np.flatnonzero(np.diff(gaps, prepend=-1)).tolist()
    return found
