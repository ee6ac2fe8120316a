"""Sensitivity curves: what comes out against what was set, a line per method with its name at its end."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from penstock.report.study.axes import across, upwards
from penstock.report.study.label_places import spread
from penstock.report.study.series import colour, dash, point
from penstock.report.study.svg import BOLD, Scale, label, line, path, sheet, shorten, spans_decades, text_width
from penstock.report.words import number

_WIDTH, _TOP, _HEIGHT, _LEFT, _LABEL = 700.0, 44.0, 250.0, 62.0, 17.0


@dataclass(frozen=True, eq=False)
class Curve:
    """`values` of the setting, the mean at each, and the single lines (a row each, NaN where not run) behind it."""

    name: str
    values: Sequence[Any]
    means: Sequence[float]
    single: np.ndarray[Any, np.dtype[np.float64]]


def draw_curves(
    curves: Sequence[Curve], title: str, across_name: str, up_name: str, shown: Callable[[float], str]
) -> str:
    """Curves over numbers (logarithmic where they span decades) or words (side by side, in their order).

    A single curve is drawn over the thin lines of its data sets; of two or three, the middle half is shaded.

    >>> one = Curve("NMF", [1, 10, 100], [0.2, 0.5, 0.4], np.array([[0.1, 0.5, 0.3], [0.3, 0.5, 0.5]]))
    >>> draw_curves([one], "K", "K", "P@N", "{:.1f}".format).count("<path")
    3
    """
    names = [shorten(curve.name, 180) for curve in curves]
    right = _WIDTH - max([BOLD * text_width(name) for name in names], default=0.0) - 38
    bottom = _TOP + max(_HEIGHT, _LABEL * len(curves))
    places, axis = _places([value for curve in curves for value in curve.values], _LEFT + 14, right - 8)
    up = Scale(0, _highest(curves), bottom, _TOP)
    parts = upwards(up, _LEFT, right, up_name, shown)
    parts += across(
        axis, _TOP, bottom, across_name, lambda value: _word(places, axis, value), ticks=_ticks(places, axis)
    )
    for place, curve in enumerate(curves):
        parts += _behind(curve, place, places, axis, up, alone=len(curves) == 1, few=len(curves) <= 3)
    ends = []
    for place, curve in enumerate(curves):
        line_points = _points(curve.values, curve.means, places, axis, up)
        parts.append(path(line_points, stroke=colour(place), width=2.4, dash=dash(place)))
        parts += [point(place, x, y) for x, y in line_points]
        ends.append(line_points[-1] if line_points else (right, bottom))
    heights = spread([y for _, y in ends], _LABEL, _TOP, bottom)
    for place, (name, (x, y), height) in enumerate(zip(names, ends, heights, strict=True)):
        parts += [line(x + 6, y, right + 8, height, stroke=colour(place), width=0.8), point(place, right + 14, height)]
        parts.append(label(right + 24, height, name, bold=True))
    return sheet(_WIDTH, bottom + 50, parts, title)


def _places(values: Sequence[Any], start: float, end: float) -> tuple[dict[Any, float], Scale]:
    """What number stands for each value, and the axis of these numbers."""
    distinct = list(dict.fromkeys(values))
    if all(isinstance(value, (int, float)) and math.isfinite(value) for value in distinct) and distinct:
        distinct = sorted(distinct)
        uneven = min(distinct) <= 0 and spans_decades([value for value in distinct if value > 0])
        if not uneven:
            low, high = float(distinct[0]), float(distinct[-1])
            return {value: float(value) for value in distinct}, Scale(
                low, high, start, end, log=spans_decades(distinct)
            )
    return {value: float(place) for place, value in enumerate(distinct)}, Scale(
        0, max(1, len(distinct) - 1), start, end
    )


def _ticks(places: Mapping[Any, float], axis: Scale) -> list[float]:
    return sorted(places.values()) if len(places) <= 14 else axis.ticks()


def _word(places: Mapping[Any, float], axis: Scale, tick: float) -> str:
    value = next((value for value, place in places.items() if place == tick), tick)
    return number(value) if isinstance(value, (int, float)) else shorten(value, (axis.end - axis.start) / len(places))


def _highest(curves: Sequence[Curve]) -> float:
    alone = len(curves) <= 3
    drawn = [np.asarray(curve.single, dtype=float).ravel() if alone else np.empty(0) for curve in curves]
    every = (
        np.concatenate([*drawn, *(np.asarray(curve.means, dtype=float) for curve in curves)]) if curves else np.empty(0)
    )
    every = every[np.isfinite(every)]
    return float(every.max()) * 1.05 if len(every) and every.max() > 0 else 1.0


def _points(
    values: Sequence[Any], heights: Sequence[float], places: Mapping[Any, float], axis: Scale, up: Scale
) -> list[tuple[float, float]]:
    found = [
        (axis.at(places[value]), up.at(float(height)))
        for value, height in zip(values, heights, strict=True)
        if math.isfinite(height)
    ]
    return sorted(found)


def _behind(
    curve: Curve, place: int, places: Mapping[Any, float], axis: Scale, up: Scale, *, alone: bool, few: bool
) -> list[str]:
    """The thin lines of a curve that is alone; the middle half of one among few."""
    single = np.asarray(curve.single, dtype=float)
    if alone:
        lines = [_points(curve.values, row, places, axis, up) for row in single]
        return [path(points, stroke=colour(place), width=0.9, opacity=0.35) for points in lines if len(points) > 1]
    if not few or len(single) < 4 or not np.isfinite(single).all():
        return []
    low, high = np.quantile(single, [0.25, 0.75], axis=0)
    outline = _points(curve.values, low, places, axis, up) + _points(curve.values, high, places, axis, up)[::-1]
    return [path(outline, stroke="none", width=0, fill=colour(place), opacity=0.13, close=True)]
