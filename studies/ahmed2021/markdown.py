"""Write numbers, names and tables as Markdown."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import pandas as pd

from penstock.report.words import NO_NUMBER, percent

__all__ = ["closed", "count", "escape", "names", "number", "p_value", "percent", "points", "rank", "table", "yes_no"]
Format = Callable[[Any], str]
_INVISIBLE = re.compile("[\x00-\x1f\x7f-\x9f\ud800-\udfff\u202a-\u202e\u2066-\u2069\ufffe\uffff]")
_SPECIAL = re.compile(r"([\\`*_{}\[\]<>|~#$])")
_LINK = re.compile(r"(?i)\b(https?|ftp|mailto|xmpp):|\bwww\.|(?<!\bP)@(?=\w)")


def escape(text: object) -> str:
    """Return a name or a message on one line, so that Markdown shows it as it is.

    >>> escape("a|b\\n<img src=x> www.c.d")
    'a\\\\|b &lt;img src=x&gt; www\\\\.c.d'
    """
    line = _INVISIBLE.sub("�", " ".join(str(text).split())).replace("&", "&amp;")
    line = _LINK.sub(lambda found: found[0][:-1] + "\\" + found[0][-1], _SPECIAL.sub(r"\\\1", line))
    return line.replace("\\<", "&lt;").replace("\\>", "&gt;")


def table(
    frame: pd.DataFrame,
    formats: Mapping[str, Format] | Format | None = None,
    *,
    caption: str = "",
    titles: Mapping[str, str] | None = None,
) -> str:
    """Format a frame, without its index. Columns with a format are numbers, the others names; what is missing is "–".

    >>> frame = pd.DataFrame({"method": ["NMF", "GNMF"], "rank": [1.5, float("nan")]})
    >>> print(table(frame, {"rank": "{:.2f}".format}))
    | method | rank |
    | --- | ---: |
    | NMF | 1.50 |
    | GNMF | – |
    """
    columns = [str(column) for column in frame.columns]
    by_column = formats if isinstance(formats, Mapping) else dict.fromkeys(columns[1:], formats) if formats else {}
    lines = [
        _line(escape((titles or {}).get(name, name)) for name in columns),
        _line("---:" if name in by_column else "---" for name in columns),
    ]
    for row in frame.itertuples(index=False):
        lines.append(_line(_cell(value, by_column.get(name)) for name, value in zip(columns, row, strict=True)))
    return (f"{caption}\n\n" if caption else "") + "\n".join(lines)


def _line(cells: Iterable[str]) -> str:
    return "| " + " | ".join(cells) + " |"


def _cell(value: Any, form: Format | None) -> str:
    if value is None or (not isinstance(value, (str, list, tuple, dict)) and bool(pd.isna(value))):
        return NO_NUMBER
    return escape(value if form is None else form(value))


def closed(summary: str, content: str) -> str:
    """Return a part that is closed at first."""
    return f"<details>\n<summary>{escape(summary)}</summary>\n\n{content}\n\n</details>"


def count(value: float) -> str:
    """Format detections, or a median of them: whole, or with their half.

    >>> count(7.0), count(6.5), count(1508), count(float("nan")), count(-6.333)
    ('7', '6.5', '1,508', '–', '−6.3')
    """
    return f"{value:,.1f}".removesuffix(".0").replace("-", "−") if math.isfinite(value) else NO_NUMBER


def rank(value: float) -> str:
    """
    >>> rank(1.2), rank(float("nan"))
    ('1.20', '–')
    """
    return f"{value:.2f}".replace("-", "−") if math.isfinite(value) else NO_NUMBER


def points(share: float) -> str:
    """
    >>> points(0.0312), points(-0.1)
    ('+3.1', '−10.0')
    """
    return f"{100 * share:+.1f}".replace("-", "−") if math.isfinite(share) else NO_NUMBER


def p_value(value: float) -> str:
    """
    >>> p_value(1.2345e-7), p_value(0.04567), p_value(1.0), p_value(0.0), p_value(float("nan"))
    ('1.23e−7', '0.0457', '1', '< 1e−300', '–')
    """
    return "< 1e−300" if value == 0 else number(value)


def number(value: float) -> str:
    """Format with three significant digits.

    >>> number(81_920_000.0), number(0.00072), number(0.5), number(1234.0)
    ('8.19e7', '7.20e−4', '0.5', '1,234')
    """
    if not math.isfinite(value):
        return NO_NUMBER
    if value == 0 or 0.001 <= abs(value) < 1e6:
        return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.3g}".replace("-", "−")
    mantissa, exponent = f"{value:.2e}".split("e")
    return f"{mantissa}e{int(exponent)}".replace("-", "−")


def yes_no(value: Any) -> str:
    """
    >>> yes_no(True), yes_no(pd.NA)
    ('yes', '–')
    """
    return NO_NUMBER if pd.isna(value) else "yes" if value else "no"


def names(given: Sequence[object]) -> str:
    """Put names into a sentence.

    >>> names(["NMF", "GNMF", "SNMF"])
    'NMF, GNMF and SNMF'
    """
    shown = [escape(name) for name in given]
    return ", ".join(shown[:-1]) + " and " + shown[-1] if len(shown) > 1 else "".join(shown)
