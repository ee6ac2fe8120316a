"""Box plots lying down: a row per group, its box, its whiskers and all its points."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence

import numpy as np

from penstock.report.study.axes import across
from penstock.report.study.svg import (
    COLOURS,
    FAINT,
    INK,
    SOFT,
    Scale,
    circle,
    label,
    line,
    rectangle,
    sheet,
    shorten,
    text_width,
)

_WIDTH, _ROW, _TOP, _RIGHT = 700.0, 32.0, 30.0, 86.0
_SIDES = (0.0, -4.5, 4.5, -2.25, 2.25, -6.75, 6.75)  # how far points are moved off the middle, in turn
_WHISKER = 1.5  # times the height of the box


def draw_boxes(
    groups: Mapping[str, Sequence[float]],
    title: str,
    axis: str,
    shown: Callable[[float], str],
    *,
    low: float | None = None,
    high: float | None = None,
) -> str:
    """Groups of values, in the order given; those that are no numbers are left out, a group without any says so.

    The box is from the first to the third quartile, with the median as a stroke; whiskers go to the last points within
    1.5 times its length.

    >>> draw_boxes({"NMF": [0.1, 0.5, 0.9], "<b>": []}, "P@N", "P@N", "{:.1f}".format, low=0, high=1).count("<circle")
    3
    """
    known = {name: [float(v) for v in values if math.isfinite(v)] for name, values in groups.items()}
    every = [value for values in known.values() for value in values]
    names = {name: shorten(name, 190) for name in known}
    left = max([text_width(name) for name in names.values()], default=0.0) + 22
    bottom = _TOP + _ROW * len(known)
    start = min(every, default=0.0) if low is None else low
    end = max(every, default=1.0) if high is None else high
    scale = Scale(start, end if end > start else start + 1, left, _WIDTH - _RIGHT)
    parts = across(scale, _TOP, bottom, axis, shown)
    parts.append(label(_WIDTH - 10, _TOP - 14, "median", anchor="end", fill=SOFT))
    for place, (name, values) in enumerate(known.items()):
        y = _TOP + _ROW * (place + 0.5)
        middle = shown(float(np.median(values))) if values else "not run"
        parts += [label(left - 12, y, names[name], anchor="end"), label(_WIDTH - 10, y, middle, anchor="end")]
        if values:
            parts += _box(scale, y, values)
    return sheet(_WIDTH, bottom + 50, parts, title)


def _box(scale: Scale, y: float, values: list[float]) -> list[str]:
    q1, middle, q3 = (float(q) for q in np.quantile(values, [0.25, 0.5, 0.75]))
    reach = _WHISKER * (q3 - q1)
    inside = [value for value in values if q1 - reach <= value <= q3 + reach]
    points = [
        circle(scale.at(value), y + _SIDES[place % len(_SIDES)], 2.6, fill=COLOURS[0], opacity=0.65)
        for place, value in enumerate(sorted(values))
    ]
    return [
        line(scale.at(min(inside)), y, scale.at(max(inside)), y, stroke=SOFT, width=1.3),
        rectangle(scale.at(q1), y - 10, scale.at(q3) - scale.at(q1), 20, fill=FAINT, stroke=SOFT),
        *points,
        line(scale.at(middle), y - 11, scale.at(middle), y + 11, stroke=INK, width=2.6),
    ]
