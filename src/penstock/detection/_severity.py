"""Say how severe findings are: by chance, as a rate of false alarms, or as a rank, and as a verdict on all of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from penstock._messages import counted, duration_in_words
from penstock._types import BoolArray, FloatArray, IndexArray
from penstock.detection._parts import JudgedPart, is_series
from penstock.detection._preparing import Prepared
from penstock.detection._wording import (
    FOLLOWING,
    NO_RATES,
    ONLY_RANKS,
    TOO_FEW_BLOCKS,
    TOO_FEW_ROWS,
    TOO_RARE,
    how_rare,
    rank_in_words,
    rows_that,
)
from penstock.detection.model import Model
from penstock.detection.verdict import Verdict, about_incidents, about_new_rows, about_table
from penstock.detectors import scores_without_the_highest
from penstock.io import Note, Table
from penstock.sensors import learn_clock
from penstock.thresholds import about_figure, expected_by_chance


@dataclass(frozen=True, eq=False)
class Grades:
    """How severe findings are: a multiple of the threshold, or of `penstock.Detector` a rate or a rank.

    ascending : the scores of all rows that could be findings.
    """

    scores: FloatArray
    ascending: FloatArray
    modes: NDArray[np.str_]
    parts: tuple[JudgedPart, ...]
    threshold: float
    rates: FloatArray | None
    ranked: bool
    chance: FloatArray | None

    def of(self, rows: IndexArray) -> dict[str, Any]:
        """Return the one column that says how severe findings are, by its name."""
        if self.chance is not None:
            return {"expected_by_chance": self.chance[rows]}
        if not self.ranked:
            usable = self.threshold > 0
            return {"severity": self.scores[rows] / self.threshold if usable else np.full(len(rows), np.nan)}
        if self.rates is None:
            return {"standing": np.array([self._standing(row) for row in rows.tolist()], dtype=object)}
        return {"false_alarm_rate": self.rates[rows]}

    def in_place_of_severity(self, events: pd.DataFrame) -> pd.DataFrame:
        if not self.ranked and self.chance is None:
            return events
        ((name, values),) = self.of(events["peak_row"].to_numpy()).items()
        return events.rename(columns={"severity": name}).assign(**{name: values})

    def rarity(self, events: pd.DataFrame) -> pd.DataFrame:
        """Return how rare the peak of each event is, as a sentence and as a figure."""
        texts: list[tuple[str, str]] = []
        for row in events["peak_row"].tolist():
            if self.chance is not None:
                figure = about_figure(float(self.chance[row]))
                texts.append((f"{figure} as high would be expected by chance in a period like this", figure))
            elif self.rates is None:
                texts.append((self._standing(row),) * 2 if self.ranked else ("", ""))
            else:
                rate, mode = float(self.rates[row]), self.modes[row]
                learnt = next(len(judged.part.training_scores) for judged in self.parts if judged.part.mode == mode)
                beyond = rate < 1 / (learnt + 1)  # smaller than the training rows of the mode can show
                sentence = rows_that(rate, "scores this high", "score this high", extrapolated=beyond)
                texts.append((sentence, how_rare(rate, extrapolated=beyond)))
        return pd.DataFrame(texts, columns=["sentence", "figure"], index=events.index, dtype=object)

    def _standing(self, row: int) -> str:
        """Return the rank of a row's score among all rows that could be findings."""
        below, up_to = (int(np.searchsorted(self.ascending, self.scores[row], side)) for side in ("left", "right"))
        n = len(self.ascending)
        return rank_in_words(n - up_to, up_to - below, n, over_all_modes=len(self.parts) > 1)


def chance_of(
    parts: tuple[JudgedPart, ...], scores: FloatArray, candidates: BoolArray, *, as_long_as_learnt: bool = False
) -> FloatArray | None:
    """Return how many episodes as high as each row a normal period of this length has; None where that is not known.

    For detectors that judge series. Each mode is a chance to find something, so its numbers count as often as there
    are modes. `as_long_as_learnt`: in a period at least as long as that learnt from, by which few rows are listed: in
    a short one nearly every row would be as high as one that chance gives.
    """
    expected = np.full(len(scores), np.nan)
    for part, rows, learnt in ((judged.part, judged.rows, judged.learnt) for judged in parts):
        mine = rows[candidates[rows]]
        later = learnt is None or not np.isin(mine, learnt).all()
        if not is_series(part.detector) or part.level(1.0, later=later) is None:
            return None
        n_rows = max(len(mine), len(part.training_scores) if as_long_as_learnt else 1)
        expected[mine] = part.detector.expected_by_chance(scores[mine], n_rows, later=later)
    return expected * len(parts)


def rates_of(parts: tuple[JudgedPart, ...], scores: FloatArray, flags: BoolArray) -> FloatArray:
    """Return how seldom normal rows of a finding's mode score as high; NaN for other rows."""
    rates = np.full(len(scores), np.nan)
    for judged in parts:
        found = judged.rows[flags[judged.rows]]
        if len(found):
            rates[found] = judged.part.rates_of(scores[found])
    return rates


def verdict_on(
    model: Model,
    prepared: Prepared,
    parts: tuple[JudgedPart, ...],
    scores: FloatArray,
    candidates: BoolArray,
    peaks: Mapping[str, Sequence[int]],
    chance: FloatArray | None,
    rates: FloatArray | None,
    threshold_rate: float | None,
    alike: list[Note],
) -> Verdict:
    """Return what the findings say as a whole; `peaks` are the highest rows of what is counted, and its name."""
    if chance is not None:
        rows, ((noun, peak_rows),) = np.flatnonzero(candidates), peaks.items()
        return about_incidents(chance[list(peak_rows)], _period(prepared.table, rows), noun)
    if threshold_rate is not None and rates is not None:
        return about_new_rows(rates[~np.isnan(rates)], int(candidates.sum()), threshold_rate)
    unsure = ""
    if model.judges_series:
        unsure = TOO_FEW_BLOCKS
    elif alike:
        unsure = FOLLOWING
    elif not model.tells_rates:
        unsure = NO_RATES
    elif any(judged.learnt is None or not np.isin(judged.rows, judged.learnt).all() for judged in parts):
        unsure = TOO_RARE
    if unsure:
        return Verdict("unknown", f"{unsure} {ONLY_RANKS}")
    values = prepared.values.to_numpy()
    try:
        again = [
            scores_without_the_highest(judged.part.detector, values[judged.rows], scores[judged.rows])
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


def threshold_rarity(threshold: float, rate: float | None, parts: tuple[JudgedPart, ...]) -> str:
    """Return how many normal rows, or rows learnt from, exceed the threshold, in words."""
    scores = np.concatenate([judged.part.training_scores for judged in parts])
    if rate is None:
        above = int((scores > threshold).sum())
        verb = "exceed" if above > 1 else "exceeds"
        return f"{f'{above:,}' if above else 'none'} of the {len(scores):,} rows learnt from {verb}"
    extrapolated = rate < 1 / (len(scores) + 1)
    return rows_that(rate, "exceeds", "exceed", extrapolated=extrapolated, over_all_modes=len(parts) > 1)
