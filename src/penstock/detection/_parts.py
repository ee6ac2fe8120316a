"""The models of the operating modes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from penstock._types import FloatArray, IndexArray
from penstock.detectors import OnlineNSNMF
from penstock.prepare import MinMaxScaling

ALL = "all"  # the mode of every row where none were asked for


@dataclass(frozen=True, eq=False)
class Part:
    """The model of one operating mode.

    usual : the score that counts as one when modes are ranked together: the median of the training scores where there
        are several modes, else 1, so that a single model's scores stay what they are.
    scaled_before : of a detector for streams, which by itself would know the range of its warm-up alone: the range of
        all training rows, as the paper's data were scaled as a whole before they were streamed.
    """

    mode: str
    detector: Any
    usual: float = 1.0
    scaled_before: MinMaxScaling | None = None

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


def usual_score(scores: FloatArray) -> float:
    """The median, or where most rows fit perfectly the mean; 1 where all do."""
    known = scores[np.isfinite(scores)]
    for middle in (float(np.median(known)), float(known.mean())):
        if middle > 0:
            return middle
    return 1.0
