"""Critical-difference diagram after Demšar (2006): mean ranks on an axis, bars over methods that do not differ."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from penstock.report.study.svg import INK, SOFT, Scale, label, line, path, sheet, shorten

_WIDTH, _SIDE, _ROW = 720.0, 190.0, 22.0
_AXIS, _BAR = 74.0, 9.0  # height of the axis, room of a bar


def draw_ranks(
    mean_ranks: Mapping[str, float], groups: Sequence[Sequence[str]], critical_difference: float, title: str
) -> str:
    """Methods with their mean ranks, 1 (the best) at the left; each of `groups` has a bar.

    >>> draw_ranks({"A": 1.2, "B": 1.8}, [("A", "B")], 0.9, "Mean ranks").count("<text")
    8
    """
    ranked = sorted(mean_ranks.items(), key=lambda item: (item[1], item[0]))
    several = [group for group in groups if len(group) > 1]
    low, high = _range([value for _, value in ranked])
    scale = Scale(low, high, _SIDE + 14, _WIDTH - _SIDE - 14)
    first = _AXIS + 16 + _BAR * len(several) + _ROW / 2
    left = (len(ranked) + 1) // 2
    parts = [*_axis(scale), *_difference(scale, critical_difference)]
    for place, (method, rank) in enumerate(ranked):
        row = place if place < left else len(ranked) - 1 - place
        parts += _leader(scale.at(rank), first + row * _ROW, f"{rank:.2f}", method, to_left=place < left)
    for level, group in enumerate(several):
        ranks = [mean_ranks[method] for method in group]
        y = _AXIS + 12 + level * _BAR
        parts.append(line(scale.at(min(ranks)) - 4, y, scale.at(max(ranks)) + 4, y, stroke=INK, width=4, ends="round"))
    return sheet(_WIDTH, first + left * _ROW, parts, title)


def _range(ranks: Sequence[float]) -> tuple[int, int]:
    """The whole ranks around these, at least two.

    >>> _range([1.2, 2.9]), _range([2.0, 2.0]), _range([])
    ((1, 3), (2, 3), (1, 2))
    """
    low, high = math.floor(min(ranks, default=1)), math.ceil(max(ranks, default=2))
    return low, max(high, low + 1)


def _axis(scale: Scale) -> list[str]:
    parts = [line(scale.start, _AXIS, scale.end, _AXIS, stroke=INK, width=1.5)]
    for value in range(int(scale.low), int(scale.high) + 1, 1 if scale.high - scale.low <= 12 else 2):
        x = scale.at(value)
        parts += [
            line(x, _AXIS - 6, x, _AXIS, stroke=INK, width=1.5),
            label(x, _AXIS - 16, str(value), anchor="middle"),
        ]
    parts.append(label(scale.start - 12, _AXIS - 16, "mean rank, 1 is best:", anchor="end", fill=SOFT))
    return parts


def _difference(scale: Scale, size: float) -> list[str]:
    """The critical difference as a bar above the axis; none if it is not known."""
    if not math.isfinite(size):
        return []
    start, y = scale.start, 34.0
    end = start + size * (scale.at(scale.low + 1) - scale.start)
    words = f"CD = {size:.2f}"
    if end > scale.end + _SIDE - 90:  # longer than the axis and the room beside it
        return [label(start, 16, f"{words} (wider than the axis)")]
    ends = [line(x, y - 5, x, y + 5, stroke=INK, width=1.5) for x in (start, end)]
    return [line(start, y, end, y, stroke=INK, width=1.5), *ends, label(start, 16, words)]


def _leader(x: float, y: float, rank: str, method: str, *, to_left: bool) -> list[str]:
    edge = _SIDE if to_left else _WIDTH - _SIDE
    name = shorten(method, _SIDE - 60)
    elbow = path([(x, _AXIS), (x, y), (edge, y)], stroke=SOFT, width=1.2)
    if to_left:
        return [elbow, label(edge - 6, y, rank, anchor="end", fill=SOFT), label(edge - 50, y, name, anchor="end")]
    return [elbow, label(edge + 6, y, rank, fill=SOFT), label(edge + 50, y, name)]
