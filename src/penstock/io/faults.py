"""What can be wrong with an input: with one line of it, or with all of it."""

from __future__ import annotations

import json
from dataclasses import dataclass

_LONGEST_QUOTE = 40


class InputError(ValueError):
    """The input cannot be read at all, or not be continued; the message says what to do."""


class LineError(ValueError):
    """One line cannot be read. The message is the reason; who catches it knows the line's number."""


@dataclass(frozen=True)
class Fault:
    """A malformed line: where it is and what is wrong with it.

    >>> print(Fault("plant.csv", 17, "3 fields instead of 4"))
    plant.csv, line 17: 3 fields instead of 4
    """

    source: str
    line: int
    reason: str

    def __str__(self) -> str:
        return f"{self.source}, line {self.line}: {self.reason}"


def quoted(text: object) -> str:
    """A value as it is shown in a message: in quotes, on one line, not too long.

    >>> quoted("x" * 99) == '"' + "x" * 40 + '…"'
    True
    """
    shown = str(text)
    return json.dumps(f"{shown[:_LONGEST_QUOTE]}…" if len(shown) > _LONGEST_QUOTE else shown, ensure_ascii=False)
