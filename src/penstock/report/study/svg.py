"""Drawings as SVG text: elements, scales and the sheet they are on. Static, without styles, scripts, links or ids."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from xml.sax.saxutils import escape

from penstock.report.study.blocks import one_line

# Okabe and Ito's colours, the ones that are dark enough for lines on white first; yellow is left out.
COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#56b4e9", "#e69f00", "#000000", "#7f7f7f")
DASHES = ("", "7 4", "2 3", "9 3 2 3", "", "7 4", "2 3", "9 3 2 3")
INK, SOFT, RULE, FAINT, PAPER = "#1a2026", "#55606b", "#c9cfd5", "#e9ecef", "#ffffff"
FONT = "system-ui, -apple-system, 'Segoe UI', Roboto, 'Helvetica Neue', Arial, 'DejaVu Sans', sans-serif"
SIZE = 13  # of all texts, in pixels
BOLD = 1.12  # times as wide as other text
_WIDE, _CAPITAL, _USUAL, _NARROW = (
    0.98,
    0.74,
    0.63,
    0.4,
)  # of the size: width of a character, rather too much than too little


def text_width(text: str, size: float = SIZE) -> float:
    """About how wide a text will be; the font is the reader's.

    >>> text_width("NMF") > text_width("ill"), round(text_width("GNMF"), 1)
    (True, 41.6)
    """
    return size * sum(_width(character) for character in text)


def _width(character: str) -> float:
    if character in "ijl.,:;'|!()[] ft":
        return _NARROW
    return _WIDE if character in "mwMW@%" or ord(character) > 0x2E80 else (_CAPITAL if character.isupper() else _USUAL)


def shorten(text: object, width: float, size: float = SIZE) -> str:
    """A name cut to a width.

    >>> shorten("NS-NMF", 100), shorten("a name without end", 60)
    ('NS-NMF', 'a name…')
    """
    whole = one_line(text)
    if text_width(whole, size) <= width:
        return whole
    cut = whole
    while cut and text_width(cut + "…", size) > width:
        cut = cut[:-1]
    return cut + "…"


def label(
    x: float,
    y: float,
    text: str,
    *,
    anchor: str = "start",
    fill: str = INK,
    bold: bool = False,
    size: float = SIZE,
    halo: bool = False,
    turn: float = 0,
) -> str:
    """Text with its middle at the height y; `halo` keeps what is under it away from the letters."""
    weight = ' font-weight="600"' if bold else ""
    around = f' stroke="{PAPER}" stroke-width="4" paint-order="stroke" stroke-linejoin="round"' if halo else ""
    turned = f' transform="rotate({_n(turn)} {_n(x)} {_n(y)})"' if turn else ""
    place = f'x="{_n(x)}" y="{_n(y + 0.35 * size)}" text-anchor="{anchor}" font-size="{_n(size)}" fill="{fill}"'
    return f"<text {place}{weight}{around}{turned}>{escape(one_line(text))}</text>"


def line(
    x1: float, y1: float, x2: float, y2: float, *, stroke: str = RULE, width: float = 1, dash: str = "", ends: str = ""
) -> str:
    more = (f' stroke-dasharray="{dash}"' if dash else "") + (f' stroke-linecap="{ends}"' if ends else "")
    ends_at = f'x1="{_n(x1)}" y1="{_n(y1)}" x2="{_n(x2)}" y2="{_n(y2)}"'
    return f'<line {ends_at} stroke="{stroke}" stroke-width="{_n(width)}"{more}/>'


def path(
    points: Iterable[tuple[float, float]],
    *,
    stroke: str = INK,
    width: float = 2,
    dash: str = "",
    fill: str = "none",
    opacity: float = 1,
    close: bool = False,
) -> str:
    steps = " ".join(f"{'L' if place else 'M'}{_n(x)} {_n(y)}" for place, (x, y) in enumerate(points))
    more = (f' stroke-dasharray="{dash}"' if dash else "") + (f' opacity="{_n(opacity)}"' if opacity < 1 else "")
    shape = f'd="{steps}{" Z" if close else ""}" fill="{fill}" stroke="{stroke}" stroke-width="{_n(width)}"'
    return f'<path {shape} stroke-linejoin="round"{more}/>'


def rectangle(
    x: float, y: float, width: float, height: float, *, fill: str = FAINT, stroke: str = "none", opacity: float = 1
) -> str:
    more = f' opacity="{_n(opacity)}"' if opacity < 1 else ""
    size = f'x="{_n(x)}" y="{_n(y)}" width="{_n(width)}" height="{_n(height)}"'
    return f'<rect {size} fill="{fill}" stroke="{stroke}"{more}/>'


def circle(
    x: float,
    y: float,
    radius: float = 4,
    *,
    fill: str = INK,
    stroke: str = "none",
    width: float = 1,
    opacity: float = 1,
) -> str:
    more = f' opacity="{_n(opacity)}"' if opacity < 1 else ""
    place = f'cx="{_n(x)}" cy="{_n(y)}" r="{_n(radius)}"'
    return f'<circle {place} fill="{fill}" stroke="{stroke}" stroke-width="{_n(width)}"{more}/>'


def sheet(width: float, height: float, parts: Iterable[str], title: str) -> str:
    """The drawing, on white, with its title for those who cannot see it.

    >>> sheet(100, 50, [label(5, 5, "<b>")], "Ranks of \\"A\\" & <B>").count("&lt;")
    3
    """
    named = escape(one_line(title), {'"': "&quot;"})
    size = f'width="{_n(width)}" height="{_n(height)}" viewBox="0 0 {_n(width)} {_n(height)}"'
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" {size} role="img" aria-label="{named}" font-family="{FONT}">',
            f"<title>{named}</title>",
            rectangle(0, 0, width, height, fill=PAPER),
            *parts,
            "</svg>",
        ]
    )


def _n(value: float) -> str:
    """A coordinate, short.

    >>> _n(3.0), _n(2.345678), _n(-0.001)
    ('3', '2.35', '0')
    """
    text = f"{value:.2f}".rstrip("0").rstrip(".")
    return "0" if text in ("-0", "") else text


@dataclass(frozen=True)
class Scale:
    """From values to places. A logarithmic one takes only values above 0.

    >>> Scale(0, 10, 100, 200).at(5.0), Scale(1, 100, 0, 100, log=True).at(10.0)
    (150.0, 50.0)
    """

    low: float
    high: float
    start: float
    end: float
    log: bool = False

    def at(self, value: float) -> float:
        low, high, value = (
            (math.log10(v) for v in (self.low, self.high, value)) if self.log else (self.low, self.high, value)
        )
        share = (value - low) / (high - low) if high > low else 0.5
        return self.start + share * (self.end - self.start)

    def ticks(self, most: int = 6) -> list[float]:
        """Round values to write on the axis, at most so many.

        >>> Scale(0, 0.93, 0, 1).ticks(), Scale(0.003, 40, 0, 1, log=True).ticks()
        ([0.0, 0.2, 0.4, 0.6, 0.8], [0.01, 0.1, 1.0, 10.0])
        """
        return _powers(self.low, self.high, most) if self.log else _steps(self.low, self.high, most)


def _steps(low: float, high: float, most: int) -> list[float]:
    if high <= low:
        return [low]
    rough = (high - low) / most
    size = 10.0 ** math.floor(math.log10(rough))
    step = next(size * factor for factor in (1, 2, 5, 10, 20) if size * factor >= rough * (1 - 1e-9))
    first = math.ceil(low / step - 1e-9)
    return [round(place * step, 12) for place in range(first, math.floor(high / step + 1e-9) + 1)]


def _powers(low: float, high: float, most: int) -> list[float]:
    first, last = math.ceil(math.log10(low) - 1e-9), math.floor(math.log10(high) + 1e-9)
    every = max(1, math.ceil((last - first + 1) / most))
    powers = [10.0**power for power in range(first, last + 1, every)]
    if len(powers) >= 2:
        return powers
    between = [factor * 10.0**power for power in range(first - 1, last + 2) for factor in (1, 2, 5)]
    return [value for value in between if low * (1 - 1e-9) <= value <= high * (1 + 1e-9)] or [low, high]


def spans_decades(values: Sequence[float]) -> bool:
    """Whether values are better seen on a logarithmic scale: all above 0, the largest more than 30 times the smallest.

    >>> spans_decades([0.01, 0.1, 1.0]), spans_decades([1, 2, 3]), spans_decades([0, 1, 100])
    (True, False, False)
    """
    return bool(values) and min(values) > 0 and max(values) > 30 * min(values)
