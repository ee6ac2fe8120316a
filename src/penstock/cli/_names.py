"""Names that people type: the nearest known one, and several in one text."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Sequence
from difflib import get_close_matches


def closest(name: str, known: Sequence[str]) -> str:
    """A question that is to follow a complaint; "" if nothing known is near.

    >>> closest("windw", ["rate", "window"])
    " Did you mean 'window'?"
    """
    close = get_close_matches(name, known, n=1)
    return f" Did you mean {close[0]!r}?" if close else ""


def join_names(names: Iterable[str]) -> str:
    """Names as one text, with quotes around those that hold a comma.

    >>> join_names(["flow", "head, upper"])
    'flow,"head, upper"'
    """
    text = io.StringIO()
    csv.writer(text, lineterminator="").writerow(names)
    return text.getvalue()


def split_names(text: str | None) -> tuple[str, ...]:
    """The names that `join_names`, or a person, put into one text.

    >>> split_names('flow, "head, upper"')
    ('flow', 'head, upper')
    """
    return tuple(name.strip() for name in next(csv.reader([text], skipinitialspace=True))) if text else ()
