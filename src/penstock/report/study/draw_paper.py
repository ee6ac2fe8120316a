"""The paper's figures against ours: a row per data set, a ring for the paper, a dot for us, a bar over our seeds."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from penstock.report.study.axes import across
from penstock.report.study.svg import (
    COLOURS,
    FAINT,
    INK,
    PAPER,
    SOFT,
    Scale,
    circle,
    label,
    line,
    sheet,
    shorten,
    text_width,
)
from penstock.report.words import percent

_WIDTH, _ROW, _TOP = 700.0, 22.0, 44.0


@dataclass(frozen=True)
class Compared:
    """One data set: shares of its anomalies found, and what is written at the right. NaN: not known."""

    name: str
    paper: float
    median: float
    lowest: float
    highest: float
    words: str


def draw_paper(rows: Sequence[Compared], title: str) -> str:
    """
    >>> draw_paper([Compared("Glass", 0.44, 0.33, 0.22, 0.44, "4 | 3")], "NS-NMF").count("<circle")
    4
    """
    names = [shorten(row.name, 170) for row in rows]
    left = max([text_width(name) for name in names], default=0.0) + 22
    right = max([text_width(row.words) for row in rows], default=0.0) + 26
    bottom = _TOP + _ROW * len(rows)
    scale = Scale(0, 1, left, _WIDTH - right)
    parts = [*_key(left), *across(scale, _TOP, bottom, "share of the anomalies that was found (P@N)", percent)]
    for place, (row, name) in enumerate(zip(rows, names, strict=True)):
        y = _TOP + _ROW * (place + 0.5)
        parts += [line(left, y, _WIDTH - right, y, stroke=FAINT), label(left - 12, y, name, anchor="end")]
        parts += [*_marks(scale, y, row), label(_WIDTH - 10, y, row.words, anchor="end", fill=SOFT)]
    return sheet(_WIDTH, bottom + 50, parts, title)


def _marks(scale: Scale, y: float, row: Compared) -> list[str]:
    parts = []
    if math.isfinite(row.lowest) and row.highest > row.lowest:
        start, end = scale.at(row.lowest), scale.at(row.highest)
        parts.append(line(start, y, end, y, stroke=COLOURS[4], width=5, ends="round"))
    if math.isfinite(row.median):
        parts.append(circle(scale.at(row.median), y, 4, fill=COLOURS[0]))
    if math.isfinite(row.paper):
        parts.append(circle(scale.at(row.paper), y, 6.5, fill="none", stroke=INK, width=1.8))
    return parts


def _key(left: float) -> list[str]:
    y = 18.0
    return [
        circle(left + 8, y, 6.5, fill=PAPER, stroke=INK, width=1.8),
        label(left + 20, y, "the paper"),
        line(left + 112, y, left + 140, y, stroke=COLOURS[4], width=5, ends="round"),
        circle(left + 126, y, 4, fill=COLOURS[0]),
        label(left + 150, y, "ours: median, range over seeds"),
    ]
