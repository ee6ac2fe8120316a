"""Durations in words."""

from __future__ import annotations

_UNITS = ((86_400.0, "days"), (3_600.0, "h"), (60.0, "min"), (1.0, "s"), (1e-3, "ms"))


def duration_in_words(seconds: float) -> str:
    """A duration in the largest unit that it has two of, or one.

    >>> duration_in_words(600), duration_in_words(5400), duration_in_words(86_400 * 3.25), duration_in_words(0.02)
    ('10 min', '90 min', '3.25 days', '20 ms')
    """
    for size, unit in _UNITS:
        if seconds >= 2 * size or seconds == size:
            return f"{seconds / size:.3g} {unit}" if unit != "days" or seconds != size else "1 day"
    return f"{seconds:.3g} s"
