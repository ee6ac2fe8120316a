"""How the lines of a drawing are told apart: by colour, dashes and the shape of their points, for grey print too."""

from __future__ import annotations

import math

from penstock.report.study.svg import COLOURS, DASHES, PAPER, circle, path

_CORNERS = {1: 4, 2: 3, 3: 4, 4: 3}  # of the shapes that are not round
_TURNS = {1: math.pi / 4, 2: -math.pi / 2, 3: 0.0, 4: math.pi / 2}


def colour(number: int) -> str:
    return COLOURS[number % len(COLOURS)]


def dash(number: int) -> str:
    return DASHES[number % len(DASHES)]


def point(number: int, x: float, y: float, radius: float = 4) -> str:
    """A point of the series with this number: disc, square, triangle, diamond, triangle upside down; then hollow.

    >>> point(0, 1, 2)
    '<circle cx="1" cy="2" r="4" fill="#0072b2" stroke="#0072b2" stroke-width="1.5"/>'
    """
    shape, hollow = number % 5, (number // 5) % 2 == 1
    tint = colour(number)
    fill = PAPER if hollow else tint
    if shape == 0:
        return circle(x, y, radius, fill=fill, stroke=tint, width=1.5)
    corners, turn = _CORNERS[shape], _TURNS[shape]
    angles = [turn + 2 * math.pi * corner / corners for corner in range(corners)]
    outer = radius * 1.3
    places = [(x + outer * math.cos(angle), y + outer * math.sin(angle)) for angle in angles]
    return path(places, stroke=tint, width=1.5, fill=fill, close=True)
