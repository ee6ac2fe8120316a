"""What findings say as a whole: how many stand out, how many would by chance, and how sure that is."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from penstock._messages import counted
from penstock._types import FloatArray
from penstock.thresholds import CLEARLY, SOME, Chance, about_figure

Kind = Literal["unknown", "nothing", "some", "clearly"]
LISTED = 1.0  # an episode expected so often by chance in a period like this is still listed


@dataclass(frozen=True)
class Verdict:
    """Whether anything stands out.

    Attributes
    ----------
    kind : {"unknown", "nothing", "some", "clearly"}
        "some": it would be seen by chance in at most one healthy record of ten; "clearly": of a hundred. "unknown"
        where the method or the data cannot say. "nothing" does not say that all is well.
    sentence : str
        The same in words, with figures.
    found, expected : int, float
        How many incidents, or rows, are listed, and how many would be by chance; NaN where that is not known.
    """

    kind: Kind
    sentence: str
    found: int = 0
    expected: float = float("nan")


def about_incidents(expected: Sequence[float] | FloatArray, period: str, noun: str = "incident") -> Verdict:
    """Return the verdict on incidents, given how often each is expected by chance.

    expected : how many episodes as high as each incident a normal period of this length has.
    period : the period in words.
    noun : what they are called; "event" where nothing is known of single sensors.

    >>> about_incidents([0.004, 0.03, 0.4], "176 days").sentence
    '3 incidents stand out, 2 of them near certain; about 0.4 would be expected by chance in 176 days.'
    >>> about_incidents([0.004, 3.1], "176 days").sentence
    '1 of 2 incidents stands out, near certain; about 0.004 would be expected by chance in 176 days.'
    >>> about_incidents([], "9 h").sentence
    'Nothing stands out: no episode is as high as the one that chance would give in 9 h.'
    """
    values = np.sort(np.asarray(expected, dtype=np.float64))
    n = len(values)
    if not n:
        sentence = f"Nothing stands out: no episode is as high as the one that chance would give in {period}."
        return Verdict("nothing", sentence, 0, LISTED)
    sure, high = int((values <= SOME).sum()), int((values <= LISTED).sum())
    most = float(values[high - 1] if sure else values[-1])
    by_chance = f"{about_figure(most)} would be expected by chance in {period}"
    if not sure:
        listed = f"One {noun} is listed" if n == 1 else f"{n:,} {noun}s are listed"
        return Verdict("nothing", f"Nothing stands out: {listed.lower()}, and {by_chance}.", n, most)
    certain = "near certain" if high == 1 else "all near certain" if sure == high else f"{sure:,} of them near certain"
    verb = "stands" if high == 1 else "stand"
    of_all = counted(n, noun) if high == n else f"{high:,} of {counted(n, noun)}"
    return Verdict(
        "clearly" if values[0] <= CLEARLY else "some", f"{of_all} {verb} out, {certain}; {by_chance}.", high, most
    )


def about_table(chance: Chance) -> Verdict:
    """Return the verdict on rows of a table that are like independent draws, judged by each other."""
    kind: Kind = "unknown" if chance.verdict == "too few" else chance.verdict
    called = chance.called
    expected = float(chance.expected[called].max()) if called.any() else float("nan")
    return Verdict(kind, chance.in_words(), int(called.sum()), expected)


def about_new_rows(rates: FloatArray, rows: int, above: float) -> Verdict:
    """Return the verdict on rows above a threshold.

    rates : of each row above it, the share of normal rows that score at least as high.
    rows : how many rows were judged.
    above : the share of normal rows above the threshold.

    Of the k highest, k·q or fewer normal rows would score as high; the smallest q over all k makes the verdict, so that
    one row far off counts though others hardly exceed the threshold.

    >>> verdict = about_new_rows(np.array([1e-7, 0.004, 0.005]), 300, 0.005)
    >>> print(verdict.sentence.replace(". ", ".\\n"))
    3 of 300 rows are above the threshold; about 1.5 normal ones would be.
    1 of them stands out: fewer than 0.001 normal ones would score as high.
    """
    found, ascending = len(rates), np.sort(rates) * rows
    quotients = ascending / np.arange(1, found + 1)
    smallest = float(quotients.min(initial=np.inf))
    kind: Kind = "clearly" if smallest <= CLEARLY else "some" if smallest <= SOME else "nothing"
    verb = "is" if found == 1 else "are"
    sentence = (
        f"{f'{found:,}' if found else 'None'} of {rows:,} rows {verb} above the threshold; "
        f"{about_figure(above * rows)} normal ones would be."
    )
    if kind != "nothing":
        high = int(np.flatnonzero(quotients <= SOME)[-1]) + 1
        which = "All of them" if high == found > 1 else "It" if found == 1 else f"{high:,} of them"
        normal = about_figure(float(ascending[high - 1]))
        sentence += f" {which} {'stands' if high == 1 else 'stand'} out: {normal} normal ones would score as high."
    return Verdict(kind, sentence, found, above * rows)
