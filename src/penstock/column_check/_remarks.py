"""Sentences about a column, and the grade that they add up to."""

from __future__ import annotations

import pandas as pd

from penstock._messages import duration_in_words
from penstock.column_check._runs import Stretch, time_across

_HARDLY_ANY = 0.95
_MANY = 0.2


class Remarks:
    """Collects remarks; the grade is that of the gravest.

    >>> remarks = Remarks()
    >>> remarks.add("B", "Some values are missing.")
    >>> remarks.add("C", "It stood still.")
    >>> remarks.grade, remarks.sentences
    ('C', ('It stood still.', 'Some values are missing.'))
    """

    def __init__(self) -> None:
        self._found: list[tuple[str, str]] = []

    def add(self, grade: str, sentence: str) -> None:
        self._found.append((grade, sentence))

    def add_missing(self, share: float, rows: int, time: pd.DatetimeIndex | None, gap: Stretch) -> None:
        """Say how much is missing, if anything is."""
        if not share:
            return
        across = time_across(time, gap)
        lasting = "" if across is None else f", {duration_in_words(across.total_seconds())}"
        grade = "D" if share > _HARDLY_ANY else "C" if share > _MANY else "B"
        percent = f"{share:.0%}" if 0.01 <= share <= 0.99 else f"{share:.2%}"
        self.add(grade, f"{percent} of its values are missing, at most {rows:,} in a row{lasting}.")

    @property
    def grade(self) -> str:
        return max((grade for grade, _ in self._found), default="A")

    @property
    def sentences(self) -> tuple[str, ...]:
        return tuple(sentence for _, sentence in sorted(self._found, key=lambda entry: entry[0], reverse=True))
