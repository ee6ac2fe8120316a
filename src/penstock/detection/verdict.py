"""What findings say: how severe each is, by chance, as a rate of false alarms or as a rank; and a verdict on all."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import pandas as pd

from penstock._messages import counted, duration_in_words
from penstock._types import FloatArray, IndexArray
from penstock.certainty import CLEARLY, SOME, Chance, about_figure, expected_by_chance
from penstock.detection._scoring import LISTED, Scored
from penstock.detectors import scores_without_the_highest
from penstock.io import Table
from penstock.sensors import learn_clock

Kind = Literal["unknown", "nothing", "some", "clearly"]
ONLY_RANKS = "Every table has rows with the highest scores: nothing here says how many of these are real faults."
HOW_TO_RATES = (
    "For a rate of false alarms, learn from a period that is known to be good (--train-until, --train-rule, or "
    "penstock fit and score)."
)
NO_RATES = "This method gives scores without a rate."
FOLLOWING = "Rows are much like the ones before, and this method judges them one by one: it cannot say how sure it is."
TOO_FEW_BLOCKS = "The record is too short to say how often chance would give such an episode."
THROUGHOUT = "The later rows differ from the good period throughout: the model no longer fits."
TOO_RARE = "The rows learnt from cannot show how rare scores above the threshold are."
TOO_FEW_ROWS = "There are too few rows to say how many would stand out by chance."
_RAREST, _RAREST_BEYOND = 1e-9, 1e-6  # below it, a rate is a guess; beyond what was learnt, sooner
_EXTRAPOLATED = " (extrapolated)"
_OFTEN = 0.1


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


def verdict_on(scored: Scored, noun: str, peaks: Sequence[int], states: Sequence[bool] = ()) -> Verdict:
    """Return what the findings say as a whole.

    peaks : the highest rows of the events or incidents (`noun`).
    states : which of these are unusual operation, and so no faults; none if empty.
    """
    model, parts, rates = scored.model, scored.parts, scored.rates
    if scored.chance is not None:
        period = _period(scored.prepared.table, np.flatnonzero(scored.candidates))
        return about_incidents(scored.chance[list(peaks)], period, noun, states)
    if scored.threshold_rate is not None and rates is not None:
        return about_new_rows(rates[~np.isnan(rates)], int(scored.candidates.sum()), scored.threshold_rate)
    unsure = ""
    if model.judges_series:
        unsure = TOO_FEW_BLOCKS
    elif scored.alike:
        unsure = FOLLOWING
    elif not model.tells_rates:
        unsure = NO_RATES
    elif any(judged.learnt is None or not np.isin(judged.rows, judged.learnt).all() for judged in parts):
        unsure = TOO_RARE
    if unsure:
        return Verdict("unknown", f"{unsure} {ONLY_RANKS}")
    try:
        again = [
            scores_without_the_highest(judged.part.detector, scored.values[judged.rows], scored.scores[judged.rows])
            for judged in parts
        ]
    except ValueError:  # without the highest rows a column has no readings, or too few rows are left
        return Verdict("unknown", f"{TOO_FEW_ROWS} {ONLY_RANKS}")
    return about_table(expected_by_chance(np.concatenate(again)))


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
    >>> about_incidents([0.2, 0.2, 0.3, 0.4, 0.4, 0.5, 0.5], "176 days").sentence.partition(": ")[2]
    '7 incidents are there where about 0.5 would be expected by chance in 176 days.'
    >>> about_incidents([0.5, 1.5], "30 days").sentence
    'Nothing stands out: about 0.5 stretches as high as the highest would be expected by chance in 30 days.'
    """
    values = np.asarray(expected, dtype=np.float64)
    order = np.argsort(values, kind="stable")
    values, is_state = values[order], np.array(list(states) or [False] * len(values), dtype=np.bool_)[order]
    n = len(values)
    if not n:
        sentence = f"Nothing stands out: no episode is as high as the one that chance would give in {period}."
        return Verdict("nothing", sentence, 0, LISTED)
    sure, high = int((values <= SOME).sum()), int((values <= LISTED).sum())
    most = float(values[high - 1] if sure else values[0])
    by_chance = f"{about_figure(most)} would be expected by chance in {period}"
    together = np.flatnonzero(values <= SOME * np.arange(1, n + 1))
    if not sure and len(together):
        many = int(together[-1]) + 1
        where = f"{many:,} {noun}s are there where {about_figure(float(values[many - 1]))} would be expected"
        sentence = f"No {noun} stands out by itself, but together they do: {where} by chance in {period}."
        return Verdict("some", sentence, many, float(values[many - 1]))
    if not sure:
        figure = about_figure(most)
        stretches = "stretch" if figure == "about 1" else "stretches"
        sentence = f"Nothing stands out: {figure} {stretches} as high as the highest would be expected by chance in "
        return Verdict("nothing", f"{sentence}{period}.", 0, most)
    in_new_state = int(is_state[:high].sum())
    certain = int((~is_state[:sure]).sum())
    words = []
    if certain:
        words = ["near certain" if high == 1 else "all near certain" if certain == high else ""]
        words = words if words[0] else [f"{certain:,} of them near certain"]
    if in_new_state:
        words.append("unusual operation" if in_new_state == high else f"{in_new_state:,} unusual operation")
    verb = "stands" if high == 1 else "stand"
    sentence = f"{', '.join([f'{counted(high, noun)} {verb} out', *words])}; {by_chance}."
    return Verdict("clearly" if values[0] <= CLEARLY else "some", sentence, high, most)


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


class Grades:
    """How severe findings are: a multiple of the threshold, or of `penstock.Detector` a rate or a rank."""

    def __init__(self, scored: Scored) -> None:
        self._scored, self._ranked = scored, scored.contributions is not None
        self._comparable = np.sort(scored.scores[scored.judged & (scored.self_judged | ~scored.trained)])

    def of(self, rows: IndexArray) -> dict[str, Any]:
        """Return the one column that says how severe findings are, by its name."""
        scored = self._scored
        if scored.chance is not None:
            return {"expected_by_chance": scored.chance[rows]}
        if not self._ranked:
            usable = scored.threshold > 0
            return {"severity": scored.scores[rows] / scored.threshold if usable else np.full(len(rows), np.nan)}
        if scored.rates is None:
            return {"standing": np.array([self._standing(row) for row in rows.tolist()], dtype=object)}
        return {"false_alarm_rate": scored.rates[rows]}

    def in_place_of_severity(self, events: pd.DataFrame) -> pd.DataFrame:
        if not self._ranked and self._scored.chance is None:
            return events
        ((name, values),) = self.of(events["peak_row"].to_numpy()).items()
        return events.rename(columns={"severity": name}).assign(**{name: values})

    def rarity(self, events: pd.DataFrame) -> pd.DataFrame:
        """Return how rare the peak of each event is, as a sentence and as a figure."""
        scored, texts = self._scored, list[tuple[str, str]]()
        learnt = {judged.part.mode: len(judged.part.training_scores) for judged in scored.parts}
        for row in events["peak_row"].tolist():
            if scored.chance is not None:
                figure = about_figure(float(scored.chance[row]))
                texts.append((f"{figure} as high would be expected by chance in a period like this", figure))
            elif scored.rates is None:
                texts.append((self._standing(row),) * 2 if self._ranked else ("", ""))
            else:
                rate = float(scored.rates[row])
                beyond = rate < 1 / (learnt[scored.prepared.modes[row]] + 1)  # less than the rows learnt can show
                sentence = rows_that(rate, "scores this high", "score this high", extrapolated=beyond)
                texts.append((sentence, how_rare(rate, extrapolated=beyond)))
        return pd.DataFrame(texts, columns=["sentence", "figure"], index=events.index, dtype=object)

    def _standing(self, row: int) -> str:
        """Return the rank of a row's score among all rows that could be findings."""
        score, n = self._scored.scores[row], len(self._comparable)
        below, up_to = (int(np.searchsorted(self._comparable, score, side)) for side in ("left", "right"))
        return rank_in_words(n - up_to, up_to - below, n, over_all_modes=len(self._scored.parts) > 1)


def threshold_rarity(scored: Scored) -> str:
    """Return how many normal rows, or rows learnt from, exceed the threshold, in words; "" where neither is known."""
    if scored.contributions is None or scored.self_judged:
        return ""
    scores, rate = np.concatenate([judged.part.training_scores for judged in scored.parts]), scored.threshold_rate
    if rate is None:
        above = int((scores > scored.threshold).sum())
        verb = "exceed" if above > 1 else "exceeds"
        return f"{f'{above:,}' if above else 'none'} of the {len(scores):,} rows learnt from {verb}"
    extrapolated = rate < 1 / (len(scores) + 1)
    return rows_that(rate, "exceeds", "exceed", extrapolated=extrapolated, over_all_modes=len(scored.parts) > 1)


def how_rare(rate: float, *, extrapolated: bool = False) -> str:
    """Return a share of normal rows.

    extrapolated : it is smaller than the rows that it was learnt from can show.

    >>> how_rare(0.0002), how_rare(0.31), how_rare(1e-30)
    ('1 in 5,000', '31 in 100', 'fewer than 1 in a billion')
    >>> how_rare(0.0002, extrapolated=True), how_rare(1e-7, extrapolated=True)
    ('1 in 5,000 (extrapolated)', 'fewer than 1 in a million (extrapolated)')
    """
    return _figure(rate, extrapolated) + (_EXTRAPOLATED if extrapolated else "")


def _figure(rate: float, extrapolated: bool) -> str:
    if rate < (_RAREST_BEYOND if extrapolated else _RAREST):
        return f"fewer than 1 in a {'million' if extrapolated else 'billion'}"
    if rate > _OFTEN:
        return f"{math.ceil(100 * rate - 1e-9)} in 100"
    count = math.floor(1 / rate + 1e-6)
    step = 10 ** max(0, len(str(count)) - 2)
    return f"1 in {count // step * step:,}"


def rows_that(
    rate: float, singular: str, plural: str, *, extrapolated: bool = False, over_all_modes: bool = False
) -> str:
    """Return what a share of normal rows does; the rest as in `how_rare`.

    over_all_modes : it is a share of the rows of several operating modes together.

    >>> rows_that(0.0002, "scores this high", "score this high"), rows_that(0.31, "reaches it", "reach it")
    ('1 in 5,000 normal rows scores this high', '31 in 100 normal rows reach it')
    >>> rows_that(1e-5, "exceeds", "exceed", extrapolated=True, over_all_modes=True)
    '1 in 100,000 normal rows over all modes (extrapolated) exceeds'
    """
    words = _figure(rate, extrapolated)
    which = f"normal rows{' over all modes' if over_all_modes else ''}{_EXTRAPOLATED if extrapolated else ''}"
    return f"{words} {which} {singular if words.startswith('1 ') else plural}"


def rank_in_words(higher: int, equal: int, rows: int, *, over_all_modes: bool = False) -> str:
    """Return where a score stands among those of some rows.

    higher, equal : how many of the rows have a higher score, and how many this one.
    over_all_modes : the rows are of several operating modes.

    >>> rank_in_words(2, 1, 4177), rank_in_words(0, 4, 4177), rank_in_words(0, 1, 900, over_all_modes=True)
    ('rank 3 of 4,177', 'rank 1–4 of 4,177, tied', 'rank 1 of 900 over all modes')
    """
    place = f"{higher + 1:,}" if equal == 1 else f"{higher + 1:,}–{higher + equal:,}"
    modes, tied = " over all modes" if over_all_modes else "", ", tied" if equal > 1 else ""
    return f"rank {place} of {rows:,}{modes}{tied}"
