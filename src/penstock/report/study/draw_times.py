"""Run time against the number of rows, both logarithmic: a line per method with its name at its end."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from penstock.report.study.axes import across, upwards
from penstock.report.study.label_places import spread
from penstock.report.study.series import colour, dash, point
from penstock.report.study.svg import BOLD, Scale, label, line, path, sheet, shorten, text_width
from penstock.report.study.words import seconds

_WIDTH, _TOP, _HEIGHT, _LEFT, _LABEL = 700.0, 44.0, 340.0, 70.0, 17.0
_SHORTEST = 1e-4  # seconds; what is shorter is drawn there


def draw_times(lines: Mapping[str, Sequence[tuple[int, float]]], title: str) -> str:
    """Of each method the pairs of rows and seconds, in any order.

    >>> draw_times({"NMF": [(100, 0.02), (10_000, 3.0)], "SNMF": [(100, 0.1)]}, "Run times").count("<circle")
    3
    """
    known = {name: sorted((n, max(t, _SHORTEST)) for n, t in pairs if t >= 0) for name, pairs in lines.items()}
    known = {name: pairs for name, pairs in known.items() if pairs}
    sizes = [n for pairs in known.values() for n, _ in pairs] or [1]
    times = [t for pairs in known.values() for _, t in pairs] or [1.0]
    names = {name: shorten(name, 180) for name in known}
    right = _WIDTH - max([BOLD * text_width(name) for name in names.values()], default=0.0) - 38
    bottom = _TOP + max(_HEIGHT, _LABEL * len(known))
    wide = Scale(min(sizes) * 0.9, max(sizes) * 1.1, _LEFT, right, log=True)
    up = Scale(min(times) / 1.3, max(times) * 1.3, bottom, _TOP, log=True)
    parts = upwards(up, _LEFT, right, "time of a fit", seconds)
    parts += across(wide, _TOP, bottom, "rows of the data set", lambda value: f"{value:,.0f}")
    ends = []
    for place, pairs in enumerate(known.values()):
        points = [(wide.at(n), up.at(t)) for n, t in pairs]
        parts.append(path(points, stroke=colour(place), width=1.4, dash=dash(place), opacity=0.7))
        parts += [point(place, x, y, 3.2) for x, y in points]
        ends.append(points[-1])
    heights = spread([y for _, y in ends], _LABEL, _TOP, bottom)
    for place, (name, (x, y), height) in enumerate(zip(names.values(), ends, heights, strict=True)):
        parts += [line(x + 6, y, right + 8, height, stroke=colour(place), width=0.8), point(place, right + 14, height)]
        parts.append(label(right + 24, height, name, bold=True))
    return sheet(_WIDTH, bottom + 50, parts, title)
