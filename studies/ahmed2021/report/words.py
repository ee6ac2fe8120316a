"""Format the numbers and names of the study."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable
from typing import Any

from penstock.report.words import NO_NUMBER, number, percent
from studies.ahmed2021.report.pages import plain

__all__ = ["count", "enumerate_names", "figure", "file_name", "instant", "p_value", "percent", "plural", "rank"]
__all__ += ["seconds", "yes_or_no"]


def count(value: float) -> str:
    """Detections, or a median of them: whole, or with their half.

    >>> count(7.0), count(6.5), count(1508), count(float("nan")), count(6.333)
    ('7', '6.5', '1,508', '–', '6.3')
    """
    if not math.isfinite(value):
        return NO_NUMBER
    text = f"{value:,.1f}"
    return text.removesuffix(".0").replace("-", "−")


def rank(value: float) -> str:
    """
    >>> rank(1.2), rank(float("nan"))
    ('1.20', '–')
    """
    return f"{value:.2f}" if math.isfinite(value) else NO_NUMBER


def p_value(value: float) -> str:
    """Three significant digits.

    >>> p_value(1.2345e-7), p_value(0.04567), p_value(1.0), p_value(0.0), p_value(float("nan"))
    ('1.23e−7', '0.0457', '1', '< 1e−300', '–')
    """
    if not math.isfinite(value):
        return NO_NUMBER
    if value == 0:
        return "< 1e−300"
    if value >= 0.001:
        return f"{value:.3g}"
    mantissa, exponent = f"{value:.2e}".split("e")
    return f"{mantissa}e−{abs(int(exponent))}"


def seconds(value: float) -> str:
    """A run time.

    >>> [seconds(value) for value in (0.0042, 0.314, 4.26, 42.0, 250.0, 7300.0, float("nan"))]
    ['4.2 ms', '0.31 s', '4.3 s', '42 s', '4.2 min', '2.0 h', '–']
    """
    if not math.isfinite(value):
        return NO_NUMBER
    if value < 0.1:
        return f"{value * 1000:.2g} ms" if value >= 0.0001 else "< 0.1 ms"
    if value < 10:
        return f"{value:.2g} s"
    if value < 120:
        return f"{value:.0f} s"
    return f"{value / 60:.1f} min" if value < 7200 else f"{value / 3600:.1f} h"


def figure(value: Any) -> str:
    """A number of any kind, or the words that stand in its place.

    >>> figure(0.123456), figure(True), figure("not run"), figure(1.23e-7)
    ('0.1235', 'yes', 'not run', '1.23e−7')
    """
    if isinstance(value, bool):
        return yes_or_no(value)
    try:
        size = float(value)
    except (TypeError, ValueError):
        return str(value)
    return p_value(size) if 0 < size < 1e-4 else number(size)


def yes_or_no(value: Any) -> str:
    """
    >>> yes_or_no(True), yes_or_no(False), yes_or_no(None), yes_or_no("not run")
    ('yes', 'no', '–', 'not run')
    """
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return NO_NUMBER
    return str(value) if isinstance(value, str) else ("yes" if value else "no")


def plural(amount: int, thing: str) -> str:
    """
    >>> plural(1, "data set"), plural(1200, "cell"), plural(0, "seed")
    ('1 data set', '1,200 cells', 'no seeds')
    """
    return f"{amount:,} {thing}{'' if amount == 1 else 's'}" if amount else f"no {thing}s"


def enumerate_names(names: Iterable[object], most: int = 8) -> str:
    """Names in a sentence, escaped for it.

    >>> enumerate_names(["NMF", "GNMF", "**"]), enumerate_names("abcd", most=2)
    ('NMF, GNMF and \\\\*\\\\*', 'a, b and 2 more')
    """
    shown = [plain(name) for name in names]
    if len(shown) > most:
        shown = [*shown[:most], f"{len(shown) - most} more"]
    return ", ".join(shown[:-1]) + " and " + shown[-1] if len(shown) > 1 else "".join(shown)


def instant(text: str) -> str:
    """An ISO date and time, as it is, to the minute.

    >>> instant("2026-11-16T05:04:34+00:00"), instant("2026-11-16"), instant("")
    ('2026-11-16 05:04 UTC', '2026-11-16', 'not recorded')
    """
    if len(text) < 16 or text[10] not in "T ":
        return text or "not recorded"
    utc = text.endswith(("+00:00", "Z"))
    return f"{text[:10]} {text[11:16]}{' UTC' if utc else ''}"


def file_name(kind: str, name: str) -> str:
    """Name the file of a figure.

    >>> file_name("paper", "NS-NMF"), file_name("sweep", "GNMF penalty")
    ('paper-ns-nmf', 'sweep-gnmf-penalty')
    """
    return f"{kind}-{re.sub(r'[^a-z0-9]+', '-', name.lower()).strip('-')}"
