"""The models of the operating modes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from penstock._types import FloatArray, IndexArray
from penstock.detectors import Detector, OnlineNSNMF
from penstock.prepare import MinMaxScaling
from penstock.thresholds import Exceedance
from penstock.views.composite import VIEWS

MOST_REFERENCES = 2000
_ROWS_AT_ONCE = 1000  # of which shares are kept in memory, for each view
_LEAST_USUAL = 1e-6  # of the largest mode's
ALL = "all"  # the mode of every row where none were asked for


@dataclass(frozen=True, eq=False)
class Part:
    """The model of one operating mode.

    usual : the score that counts as one when modes are ranked together: `usual_scores` where there are several modes,
        else 1, so that a single model's scores stay what they are. 1 also for a detector whose scores compare by
        themselves (`tells_rates`).
    scaled_before : of a detector for streams, which by itself would know the range of its warm-up alone: the range of
        all training rows, as the paper's data were scaled as a whole before they were streamed.
    reference : of a detector that rebuilds nothing: usual training rows in the user's units, from which is told what a
        finding should have been; None for the others.
    """

    mode: str
    detector: Any
    usual: float = 1.0
    scaled_before: MinMaxScaling | None = None
    reference: FloatArray | None = None

    def scores(self, values: FloatArray) -> FloatArray:
        """Of rows that were not learnt, each by itself."""
        rows = values if self.scaled_before is None else self.scaled_before.apply(values)
        scores: FloatArray = self.detector.anomaly_score(rows) / self.usual
        return scores

    def scaled(self, values: FloatArray) -> FloatArray:
        """Rows in the units in which they are near to each other or far."""
        return values if self._scaling is None else self._scaling.apply(values)

    @property
    def scale(self) -> FloatArray:
        """Per input, what counts as one in a residual: the range that it was learnt in."""
        return np.ones(self.detector.n_features_in_) if self._scaling is None else self._scaling.span

    @property
    def _scaling(self) -> MinMaxScaling | None:
        scaling: MinMaxScaling | None = self.scaled_before or self.detector.scaling_
        return scaling

    @property
    def training_scores(self) -> FloatArray:
        scores: FloatArray = self.detector.scores_ / self.usual
        return scores

    def rates_of(self, scores: FloatArray) -> FloatArray:
        """How many normal rows of this mode score at least as high, as `Detector.false_alarm_rate` has it."""
        return self._exceedance.rate_of(scores)

    def explained(self, values: FloatArray) -> tuple[FloatArray, FloatArray]:
        """(n, views) and (n, p): what each view and each variable adds to the score of a row, of one that can tell."""
        starts = range(0, len(values), _ROWS_AT_ONCE)
        told = [self.detector.explain(values[start : start + _ROWS_AT_ONCE]) for start in starts]
        if not told:
            return np.zeros((0, len(VIEWS))), np.zeros(values.shape)
        return np.concatenate([each.parts for each in told]), np.concatenate([each.variables for each in told])

    @cached_property
    def _exceedance(self) -> Exceedance:
        return Exceedance.of(self.training_scores)


def is_scaled_before(detector: Any) -> bool:
    """Whether rows are scaled before this detector sees them; see `Part`."""
    return isinstance(detector, OnlineNSNMF) and detector.scale is not None


@dataclass(frozen=True, eq=False)
class JudgedPart:
    """A part and its rows in a table, as positions.

    learnt : the training rows, in the order in which the detector saw them (node i of its tree is `learnt[i]`); None if
        it was fitted to another table.
    """

    part: Part
    rows: IndexArray
    learnt: IndexArray | None


def rebuilds(detector: Any) -> bool:
    """Whether it can say by itself what a row should have been."""
    return hasattr(detector, "inverse_transform")


def tells_rates(detector: Any) -> bool:
    """Whether its scores are on a scale of their own, that of `Detector`.

    Then 0 is usual, a score may be negative, and ratios of scores say nothing; how seldom normal rows score as high
    does, and is known. And it can explain its scores, by views and by variables.
    """
    return isinstance(detector, Detector)


def reference_rows(rows: FloatArray, scores: FloatArray) -> FloatArray:
    """Training rows with a score of the lower half, at most `MOST_REFERENCES` of them, evenly spaced in their order."""
    usual = np.flatnonzero(scores <= np.median(scores[np.isfinite(scores)]))
    if len(usual) > MOST_REFERENCES:
        usual = usual[np.linspace(0, len(usual) - 1, MOST_REFERENCES).round().astype(np.intp)]
    return rows[usual]


def usual_scores(scores: Sequence[FloatArray]) -> list[float]:
    """For the training scores of each mode, what counts as one: the score that 95 % of its rows do not exceed.

    Where that is 0 the highest, and where all are 0, one. Never less than a millionth of the largest mode's, so that
    the rounding of a machine that stands still does not lead the list.

    >>> usual_scores([np.arange(101.0), np.array([0.0] * 99 + [3.0]), np.zeros(9)])
    [95.0, 3.0, 1.0]
    """
    found = [_high(each[np.isfinite(each)]) for each in scores]
    least = _LEAST_USUAL * max(found)
    return [max(each, least) if each > 0 else 1.0 for each in found]


def _high(scores: FloatArray) -> float:
    return float(np.quantile(scores, 0.95)) or float(scores.max())
