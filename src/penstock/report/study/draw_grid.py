"""A grid of numbers, the higher the darker: which of two choices does what."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from penstock.report.study.svg import INK, PAPER, RULE, SOFT, label, rectangle, sheet, shorten, text_width
from penstock.report.words import percent

_ROW, _CELL, _TOP = 46.0, 118.0, 60.0
_LIGHT, _DARK = (247, 249, 251), (0, 90, 142)


def draw_grid(
    rows: Sequence[str], columns: Sequence[str], values: Mapping[tuple[str, str], float], title: str, rows_are: str
) -> str:
    """Shares by row and column, written and shaded; what is missing is empty.

    >>> draw_grid(["symmetric"], ["tree", "5 nearest"], {("symmetric", "tree"): 0.4}, "P@N", "form").count("not run")
    1
    """
    names = [shorten(name, 180) for name in rows]
    left = max([text_width(name) for name in [*names, rows_are]], default=0.0) + 24
    known = [value for value in values.values() if math.isfinite(value)]
    low, high = min(known, default=0.0), max(known, default=1.0)
    parts = [label(left - 12, _TOP - 14, rows_are, anchor="end", fill=SOFT)]
    for place, column in enumerate(columns):
        lines = _two_lines(column)
        for step, text in enumerate(lines):
            y = _TOP - 14 - 17 * (len(lines) - 1 - step)
            parts.append(label(left + _CELL * (place + 0.5), y, text, anchor="middle", fill=SOFT))
    for down, row in enumerate(rows):
        y = _TOP + _ROW * down
        parts.append(label(left - 12, y + _ROW / 2, names[down], anchor="end"))
        for along, column in enumerate(columns):
            parts += _cell(left + _CELL * along, y, values.get((row, column), math.nan), low, high)
    return sheet(left + _CELL * len(columns) + 12, _TOP + _ROW * len(rows) + 14, parts, title)


def _cell(x: float, y: float, value: float, low: float, high: float) -> list[str]:
    if not math.isfinite(value):
        outline = rectangle(x + 1, y + 1, _CELL - 2, _ROW - 2, fill=PAPER, stroke=RULE)
        return [outline, label(x + _CELL / 2, y + _ROW / 2, "not run", anchor="middle", fill=SOFT)]
    share = (value - low) / (high - low) if high > low else 0.5
    tint = [round(light + share * (dark - light)) for light, dark in zip(_LIGHT, _DARK, strict=True)]
    fill = f"#{tint[0]:02x}{tint[1]:02x}{tint[2]:02x}"
    ink = PAPER if share > 0.55 else INK
    box = rectangle(x + 1, y + 1, _CELL - 2, _ROW - 2, fill=fill, stroke=RULE)
    return [box, label(x + _CELL / 2, y + _ROW / 2, percent(value), anchor="middle", fill=ink, bold=True)]


def _two_lines(text: str) -> list[str]:
    """A heading in at most two lines, broken at a space.

    >>> _two_lines("tree"), _two_lines("15 nearest, heat kernel")
    (['tree'], ['15 nearest,', 'heat kernel'])
    """
    whole = shorten(text, 2 * _CELL - 24)
    if text_width(whole) <= _CELL - 8 or " " not in whole:
        return [shorten(whole, _CELL - 8)]
    words = whole.split(" ")
    cuts = [(" ".join(words[:cut]), " ".join(words[cut:])) for cut in range(1, len(words))]
    first, second = min(cuts, key=lambda pair: max(text_width(pair[0]), text_width(pair[1])))
    return [shorten(first, _CELL - 8), shorten(second, _CELL - 8)]
