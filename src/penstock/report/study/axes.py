"""Axes of the drawings: rules, ticks and what they are called."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from penstock.report.study.svg import FAINT, SOFT, Scale, label, line, text_width


def across(
    scale: Scale,
    top: float,
    bottom: float,
    name: str,
    shown: Callable[[float], str],
    ticks: Sequence[float] | None = None,
) -> list[str]:
    """The horizontal axis: thin rules from top to bottom, values below, the name below them."""
    places = [(scale.at(value), shown(value)) for value in (scale.ticks() if ticks is None else ticks)]
    rules = [line(x, top, x, bottom, stroke=FAINT) for x, _ in places]
    base = line(scale.start, bottom, scale.end, bottom, stroke=SOFT)
    written = [label(x, bottom + 14, text, anchor="middle", fill=SOFT) for x, text in apart(places)]
    middle = (scale.start + scale.end) / 2
    return [*rules, base, *written, label(middle, bottom + 36, name, anchor="middle", fill=SOFT, bold=True)]


def upwards(scale: Scale, left: float, right: float, name: str, shown: Callable[[float], str]) -> list[str]:
    """The vertical axis: thin rules from left to right, values to the left, the name above."""
    parts = []
    for value in scale.ticks():
        y = scale.at(value)
        parts += [line(left, y, right, y, stroke=FAINT), label(left - 8, y, shown(value), anchor="end", fill=SOFT)]
    return [*parts, label(8, scale.end - 20, name, fill=SOFT, bold=True)]


def apart(places: Sequence[tuple[float, str]], gap: float = 8) -> list[tuple[float, str]]:
    """The texts of an axis that have room, from the left; the first and the last stay.

    >>> apart([(0, "0"), (5, "100"), (100, "200")])
    [(0, '0'), (100, '200')]
    """
    kept: list[tuple[float, str]] = []
    for x, text in places:
        while kept and _overlap(kept[-1], (x, text), gap):
            if len(kept) == 1 or (x, text) != places[-1]:
                break
            kept.pop()
        if not kept or not _overlap(kept[-1], (x, text), gap):
            kept.append((x, text))
    return kept


def _overlap(first: tuple[float, str], second: tuple[float, str], gap: float) -> bool:
    return abs(second[0] - first[0]) < (text_width(first[1]) + text_width(second[1])) / 2 + gap
