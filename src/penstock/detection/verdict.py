"""The verdict on findings as a whole: whether anything stands out, and how many would by chance."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
import pandas as pd

from penstock._messages import counted, duration_in_words
from penstock._types import FloatArray, IndexArray
from penstock.certainty import CLEARLY, SOME, Chance, about_figure
from penstock.detection._scoring import LISTED, ScoredTable
from penstock.io import Table
from penstock.sensors import learn_clock

VerdictKind = Literal["unknown", "nothing", "unusual", "some", "clearly"]
ONLY_RANKS = "Every table has rows with the highest scores: nothing here says how many of these are real faults."
THROUGHOUT = "The later rows differ from the good period throughout: the model no longer fits."


@dataclass(frozen=True)
class Verdict:
    """Whether anything stands out.

    Attributes
    ----------
    kind : {"unknown", "nothing", "unusual", "some", "clearly"}
        "some": it would be seen by chance in at most one healthy record of ten; "clearly": of a hundred. "unusual":
        unusual operation alone stands out, with no sign of a fault. "unknown" where the method or the data cannot say.
        "nothing" does not say that all is well.
    sentence : str
        The same in words, with figures.
    found, expected : int, float
        How many incidents, or rows, are listed, and how many would be by chance; NaN where that is not known.
    """

    kind: VerdictKind
    sentence: str
    found: int = 0
    expected: float = float("nan")


def verdict_on(scored: ScoredTable, noun: str, peaks: Sequence[int], states: Sequence[bool] = ()) -> Verdict:
    """Return what the findings say as a whole.

    peaks : the highest rows of the events or incidents (`noun`).
    states : which of these are unusual operation, and so no faults; none if empty.
    """
    if scored.chance_unknown:
        return Verdict("unknown", f"{scored.chance_unknown} {ONLY_RANKS}")
    rows = np.flatnonzero(scored.candidates)
    if scored.model.can.over_time:
        return about_incidents(scored.chance[list(peaks)], _period(scored.prepared.table, rows), noun, states)
    return about_table(Chance.of(scored.chance[rows], scored.scores[rows]))


def _period(table: Table, rows: IndexArray) -> str:
    """Return the time that was recorded in rows, without gaps between them, in words."""
    if table.time is None or len(rows) < 2:
        return counted(len(rows), "row")
    groups = [rows[(rows >= span.start) & (rows < span.stop)] for span in table.spans]
    seconds = np.concatenate([np.diff(table.time[mine]) / pd.Timedelta(seconds=1) for mine in groups])
    recorded = float(seconds[seconds <= learn_clock(np.cumsum(seconds)).gap].sum())
    return duration_in_words(recorded) if recorded else counted(len(rows), "row")


def about_incidents(
    expected: Sequence[float] | FloatArray, period: str, noun: str = "incident", states: Sequence[bool] = ()
) -> Verdict:
    """Return the verdict on incidents, given how often each is expected by chance.

    expected : how many episodes as high as each incident a normal period of this length has.
    period : the period in words.
    noun : what they are called; "event" where nothing is known of single sensors.
    states : which of them are unusual operation: never said to be near certain. None if empty.

    >>> about_incidents([0.004, 0.03, 0.4], "176 days").sentence
    '3 incidents stand out, 2 of them near certain; about 0.4 would be expected by chance in 176 days.'
    >>> about_incidents([0.004, 0.03, 0.4], "176 days", states=[True, False, False]).sentence.partition("; ")[0]
    '3 incidents stand out, 1 of them near certain, 1 unusual operation'
    >>> about_incidents([0.004, 0.4], "176 days", states=[True, False]).sentence.partition("; ")[0]
    'Unusual operation, no sign of a fault: 1 incident stands out'
    >>> about_incidents([0.2, 0.2, 0.3, 0.4, 0.4, 0.5, 0.5], "176 days").sentence.partition(": ")[2]
    '7 incidents are there where about 0.5 would be expected by chance in 176 days.'
    >>> about_incidents([0.5, 1.5], "30 days").sentence
    'Nothing stands out: about 0.5 stretches as high as the highest would be expected by chance in 30 days.'
    """
    is_state = np.array(list(states) or [False] * len(expected), dtype=np.bool_)
    values = np.sort(expected)
    faults = np.sort(np.asarray(expected)[~is_state])
    unusual = np.sort(np.asarray(expected)[is_state])
    if not len(values):
        sentence = f"Nothing stands out: no episode is as high as the one that chance would give in {period}."
        return Verdict("nothing", sentence, 0, LISTED)
    if not _number_together(values):
        figure = about_figure(float(values[0]))
        stretches = "stretch" if figure == "about 1" else "stretches"
        sentence = f"Nothing stands out: {figure} {stretches} as high as the highest would be expected by chance in "
        return Verdict("nothing", f"{sentence}{period}.", 0, float(values[0]))
    if _number_together(unusual) and not _number_together(faults):
        return _about_unusual_operation(faults, unusual, period, noun)
    if values[0] > SOME:
        many = _number_together(values)
        where = f"{many:,} {noun}s are there where {about_figure(float(values[many - 1]))} would be expected"
        sentence = f"No {noun} stands out by itself, but together they do: {where} by chance in {period}."
        return Verdict("some", sentence, many, float(values[many - 1]))
    listed = values[values <= LISTED]
    certain, in_new_state = int((faults <= SOME).sum()), int((unusual <= LISTED).sum())
    words = []
    if certain:
        words.append(_how_many_certain(certain, len(listed)))
    if in_new_state:
        words.append(f"{in_new_state:,} unusual operation")
    sentence = f"{', '.join([_stand_out(len(listed), noun), *words])}; {_by_chance(listed[-1], period)}."
    is_clear = len(faults) > 0 and faults[0] <= CLEARLY
    return Verdict("clearly" if is_clear else "some", sentence, len(listed), float(listed[-1]))


def _about_unusual_operation(faults: FloatArray, unusual: FloatArray, period: str, noun: str) -> Verdict:
    """Return the verdict where unusual operation stands out, and nothing else does."""
    listed = unusual[: max(_number_together(unusual), int((unusual <= LISTED).sum()))]
    others = int((faults <= LISTED).sum())
    stand_out = f"{_stand_out(len(listed), noun)}; {_by_chance(listed[-1], period)}."
    more = f" {others:,} more may be chance." if others else ""
    sentence = f"Unusual operation, no sign of a fault: {stand_out}{more}"
    return Verdict("unusual", sentence, len(listed) + others, float(listed[-1]))


def _number_together(values: FloatArray) -> int:
    """Return how many of the lowest are so many that chance gives at most a tenth of them; 0 if none stands out.

    values : in ascending order.
    """
    stands_out = np.flatnonzero(values <= SOME * np.arange(1, len(values) + 1))
    return int(stands_out[-1]) + 1 if len(stands_out) else 0


def _stand_out(number: int, noun: str) -> str:
    return f"{counted(number, noun)} {'stands' if number == 1 else 'stand'} out"


def _how_many_certain(certain: int, listed: int) -> str:
    if certain < listed:
        return f"{certain:,} of them near certain"
    return "near certain" if listed == 1 else "all near certain"


def _by_chance(expected: float, period: str) -> str:
    return f"{about_figure(float(expected))} would be expected by chance in {period}"


def about_table(chance: Chance) -> Verdict:
    """Return the verdict on rows of a table that are like independent draws."""
    kind: VerdictKind = "unknown" if chance.verdict == "too few" else chance.verdict
    called = chance.called
    expected = chance.expected[called].max() if called.any() else chance.expected.min()
    return Verdict(kind, chance.in_words(), int(called.sum()), float(expected))
