"""Wording of messages: names, counts and durations; and warnings."""

from __future__ import annotations

import re
import sys
import warnings
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from types import FrameType

_spellings: list[Callable[[str, object], str]] = []  # of options, the one in use last
_ODD = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\ud800-\udfff]")
_UNITS = ((86_400.0, "days"), (3_600.0, "h"), (60.0, "min"), (1.0, "s"), (1e-3, "ms"))


def quoted(text: object, most: int = 60) -> str:
    """Return a text from the table, in quotes and on one line, cut short if it is long.

    >>> quoted("flow"), quoted("x" * 100, most=10)
    ("'flow'", "'xxxxxxxxxx…'")
    """
    words = str(text)
    return repr(words if len(words) <= most else words[:most] + "…")


def odd_character(text: str) -> str | None:
    r"""Return a character that no text for people has, as it is written in code; None if there is none.

    These are control characters other than blanks and line ends, and halves of a pair of surrogates: they cannot be
    shown, and some cannot be written.

    >>> odd_character("Kühlwasser\n[m³/h]"), odd_character("flow\x1b[2J"), odd_character("\ud800")
    (None, "'\\x1b'", "'\\ud800'")
    """
    found = _ODD.search(text)
    return None if found is None else ascii(found[0])


def listed(names: Iterable[object], most: int = 8) -> str:
    """Names in quotes, the first few of them.

    >>> listed(["flow", "head"]), listed("abcd", most=2)
    ("'flow', 'head'", "'a', 'b' and 2 more")
    """
    every = list(names)
    shown = ", ".join(quoted(name) for name in every[:most])
    return shown if len(every) <= most else f"{shown} and {len(every) - most:,} more"


def counted(count: int, noun: str) -> str:
    """Return a number and its noun.

    >>> counted(1, "row"), counted(1200, "row")
    ('1 row', '1,200 rows')
    """
    return f"{count:,} {noun}" if count == 1 else f"{count:,} {noun}s"


def in_columns(names: Iterable[object]) -> str:
    """Return which column, or how many and some of them.

    >>> in_columns(["flow"]), in_columns(["a", "b", "c", "d"])
    ("column 'flow'", "4 columns ('a', 'b', 'c' and 1 more)")
    """
    every = list(names)
    return f"column {quoted(every[0])}" if len(every) == 1 else f"{len(every):,} columns ({listed(every, most=3)})"


def duration_in_words(seconds: float) -> str:
    """Return a duration in the largest unit that it has two of, or one.

    >>> duration_in_words(600), duration_in_words(5400), duration_in_words(86_400 * 3.25), duration_in_words(0.02)
    ('10 min', '90 min', '3.25 days', '20 ms')
    """
    for size, unit in _UNITS:
        if seconds >= 2 * size or seconds == size:
            return f"{seconds / size:.3g} {unit}" if unit != "days" or seconds != size else "1 day"
    return f"{seconds:.3g} s"


def option(name: str, value: object = None) -> str:
    """Return an option as it is written where the user is: as a keyword, or as the door says (`spelled_by`).

    >>> option("thousands", ","), option("max_bytes"), option("day_first", True)
    ("thousands=','", 'max_bytes', 'day_first=True')
    >>> with spelled_by(lambda name, value: f"--{name} {value}"):
    ...     option("thousands", ",")
    '--thousands ,'
    """
    if _spellings:
        return _spellings[-1](name, value)
    return name if value is None else f"{name}={value!r}"


@contextmanager
def spelled_by(spelling: Callable[[str, object], str]) -> Iterator[None]:
    """Inside this block, messages write options in this way, in all threads."""
    _spellings.append(spelling)
    try:
        yield
    finally:
        _spellings.remove(spelling)


def warn_caller(message: str, category: type[Warning] = UserWarning) -> None:
    """Warn as if the first caller outside penstock had: the line that a user can change."""
    frame: FrameType | None = sys._getframe()
    level = 1
    while frame is not None and frame.f_globals.get("__name__", "").partition(".")[0] == "penstock":
        frame, level = frame.f_back, level + 1
    warnings.warn(message, category, stacklevel=level)
