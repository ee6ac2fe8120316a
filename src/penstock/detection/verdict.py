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

    Parameters
    ----------
    expected : sequence of float
        How many episodes as high as each incident a normal period of this length has.
    period : str
        The period in words.
    noun : str, default="incident"
        What they are called; "event" where nothing is known of single sensors.

    Examples
    --------
    >>> about_incidents([0.004, 0.03, 0.4], "176 days").sentence
    '3 incidents stand out, 2 of them near certain; about 0.4 would be expected by chance in 176 days.'
    >>> about_incidents([], "9 h").sentence
    'Nothing stands out: no episode is as high as the one that chance would give in 9 h.'
    """
    values = np.sort(np.asarray(expected, dtype=np.float64))
    n = len(values)
    if not n:
        sentence = f"Nothing stands out: no episode is as high as the one that chance would give in {period}."
        return Verdict("nothing", sentence, 0, LISTED)
    sure, most = int((values <= SOME).sum()), float(values[-1])
    by_chance = f"{about_figure(most)} would be expected by chance in {period}"
    if not sure:
        listed = f"One {noun} is listed" if n == 1 else f"{n:,} {noun}s are listed"
        return Verdict("nothing", f"Nothing stands out: {listed.lower()}, and {by_chance}.", n, most)
    certain = "near certain" if n == 1 else "all near certain" if sure == n else f"{sure:,} of them near certain"
    verb = "stands" if n == 1 else "stand"
    sentence = f"{counted(n, noun)} {verb} out, {certain}; {by_chance}."
    return Verdict("clearly" if values[0] <= CLEARLY else "some", sentence, n, most)


def about_table(chance: Chance) -> Verdict:
    """Return the verdict on rows of a table that are like independent draws, judged by each other."""
    kind: Kind = "unknown" if chance.verdict == "too few" else chance.verdict
    called = chance.called
    expected = float(chance.expected[called].max()) if called.any() else float("nan")
    return Verdict(kind, chance.in_words(), int(called.sum()), expected)


def about_new_rows(found: int, rows: int, rate: float) -> Verdict:
    """Return the verdict on rows above a threshold that a share `rate` of normal rows exceeds.

    Examples
    --------
    >>> about_new_rows(12, 3000, 0.0001).sentence
    '12 of 3,000 rows are above the threshold; about 0.3 normal ones would be.'
    """
    expected = rate * rows
    share = expected / found if found else np.inf
    kind: Kind = "clearly" if share <= CLEARLY else "some" if share <= SOME else "nothing"
    verb = "is" if found == 1 else "are"
    sentence = (
        f"{f'{found:,}' if found else 'None'} of {rows:,} rows {verb} above the threshold; "
        f"{about_figure(expected)} normal ones would be."
    )
    return Verdict(kind, sentence, found, expected)
