"""The model of each operating mode: its scores, what adds up to them, and what it expects of a row."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from penstock._types import BoolArray, FloatArray, IndexArray
from penstock.detectors import Detector, OnlineNSNMF, SeriesDetector
from penstock.detectors.views import VIEWS
from penstock.graph.search import search_over
from penstock.prepare import MinMaxScaling

MOST_REFERENCES = 2000
_ROWS_AT_ONCE = 1000  # of which shares are kept in memory, for each view
_LEAST_USUAL = 1e-6  # of the largest mode's
_MOST_OF_IT = 0.5  # of a score
_SPREADS = 3.29  # from the 0.05 to the 0.95 quantile of a normal distribution, in standard deviations
ALL = "all"  # the mode of every row where none were asked for
SIMILAR = 3  # rows whose mean is expected; an explanation shows them


@dataclass(frozen=True, eq=False)
class Part:
    """The model of one operating mode.

    usual : the score that counts as one when modes are ranked together: `usual_scores` where there are several modes,
        else 1, so that a single model's scores stay what they are. 1 also for a detector whose scores compare by
        themselves (`has_views`).
    scaled_before : of a detector for streams, which by itself would know the range of its warm-up alone: the range of
        all training rows, as the paper's data were scaled as a whole before they were streamed.
    reference : of a detector that rebuilds nothing: usual training rows in the user's units, by which a finding is
        compared; None for the others.
    """

    mode: str
    detector: Any
    usual: float = 1.0
    scaled_before: MinMaxScaling | None = None
    reference: FloatArray | None = None

    def scores(self, values: FloatArray) -> FloatArray:
        """Score rows that were not learnt, each by itself."""
        rows = values if self.scaled_before is None else self.scaled_before.apply(values)
        scores: FloatArray = self.detector.anomaly_score(rows) / self.usual
        return scores

    def expected(self, values: FloatArray) -> FloatArray:
        """Return what a detector that `rebuilds` expects of rows that were not learnt."""
        if is_series(self.detector):
            found: FloatArray = self.detector.expected(values)
        else:
            found = self.detector.inverse_transform(self.detector.transform(values))
        return found

    def scaled(self, values: FloatArray) -> FloatArray:
        """Return rows in the units in which distances are measured."""
        if is_series(self.detector):
            scaled: FloatArray = self.detector.model_.scale.apply(values)
            return scaled
        return values if self._scaling is None else self._scaling.apply(values)

    @property
    def scale(self) -> FloatArray:
        """Per input, what counts as one in a residual: the range that it was learnt in."""
        if is_series(self.detector):
            return self.detector.model_.scale.width * _SPREADS  # type: ignore[no-any-return]
        return np.ones(self.detector.n_features_in_) if self._scaling is None else self._scaling.span

    @property
    def _scaling(self) -> MinMaxScaling | None:
        scaling: MinMaxScaling | None = self.scaled_before or self.detector.scaling_
        return scaling

    @property
    def training_scores(self) -> FloatArray:
        scores: FloatArray = self.detector.scores_ / self.usual
        return scores

    @property
    def later_scores(self) -> FloatArray:
        """Return the training scores that those of later rows are compared with."""
        return self.detector.as_new_ if is_series(self.detector) else self.training_scores

    def level(self, episodes: float) -> float | None:
        """Return the score that so many episodes reach by chance in a record as long as that learnt from.

        None where that is not known. For detectors that judge series.
        """
        rate = self.detector.later_rate_
        return None if rate is None else rate.score_expected(episodes, len(self.detector.scores_))

    def explained(self, values: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return (n, views) and (n, p): what each view and each variable adds to the score of a row (`has_views`)."""
        views, variables = np.zeros((len(values), len(VIEWS))), np.zeros(values.shape)
        for start in range(0, len(values), _ROWS_AT_ONCE):
            some = slice(start, start + _ROWS_AT_ONCE)
            found = self.detector.explain(values[some])
            views[some], variables[some] = found.parts, found.variables
        return views, variables


def is_scaled_before(detector: Any) -> bool:
    """Return whether rows are scaled before this detector sees them; see `Part`."""
    return isinstance(detector, OnlineNSNMF) and detector.scale is not None


@dataclass(frozen=True, eq=False)
class JudgedPart:
    """A part and its rows in a table, as positions."""

    part: Part
    rows: IndexArray
    learnt: IndexArray | None  # as the detector saw them (node i of its tree is `learnt[i]`); None: of another table


def rebuilds(detector: Any) -> bool:
    """Return whether a detector says by itself what a row should have been."""
    return hasattr(detector, "inverse_transform") or (is_series(detector) and detector.judges_sensors)


def is_series(detector: Any) -> bool:
    """Return whether a detector judges rows in order of time; see `SeriesDetector`."""
    return isinstance(detector, SeriesDetector)


def has_views(detector: Any) -> bool:
    """Return whether a detector explains its scores by views and by variables, as `penstock.Detector` does.

    Then 0 is usual in every mode, and a score may be negative.
    """
    return isinstance(detector, Detector)


def reference_rows(rows: FloatArray, scores: FloatArray) -> FloatArray:
    """Return training rows with a score of the lower half: at most `MOST_REFERENCES`, evenly spaced in their order."""
    usual = np.flatnonzero(scores <= np.median(scores[np.isfinite(scores)]))
    if len(usual) > MOST_REFERENCES:
        usual = usual[np.linspace(0, len(usual) - 1, MOST_REFERENCES).round().astype(np.intp)]
    return rows[usual]


def usual_scores(scores: Sequence[FloatArray]) -> list[float]:
    """Return what counts as one for the training scores of each mode: the score that 95 % of its rows do not exceed.

    Where that is 0 the highest, and where all are 0, one. Never less than a millionth of the largest mode's, so that
    the rounding of a machine that stands still does not lead the list.
    """
    known = [each[np.isfinite(each)] for each in scores]
    found = [float(np.quantile(each, 0.95)) or float(each.max()) for each in known]
    least = _LEAST_USUAL * max(found)
    return [max(each, least) if each > 0 else 1.0 for each in found]


@dataclass(frozen=True, eq=False)
class Contributions:
    """Of findings, at these rows of the table: (m, views) and (m, variables), what each adds to the score."""

    rows: IndexArray
    views: FloatArray
    variables: FloatArray

    def of(self, rows: IndexArray) -> Contributions:
        places = np.searchsorted(self.rows, rows)
        return Contributions(rows, self.views[places], self.variables[places])

    @property
    def standing_out(self) -> BoolArray:
        """(m, variables) the fewest that make up half of the score, but no more than half of the variables."""
        added = np.maximum(self.variables, 0.0)
        order = np.argsort(-added, axis=1, kind="stable")
        sums = np.cumsum(np.take_along_axis(added, order, axis=1), axis=1)
        before = np.concatenate([np.zeros((len(sums), 1)), sums[:, :-1]], axis=1)
        chosen = before < _MOST_OF_IT * sums[:, -1:]
        chosen[:, added.shape[1] // 2 :] = False
        found = np.zeros(added.shape, dtype=np.bool_)
        np.put_along_axis(found, order, chosen, axis=1)
        return found


def contributions_of(parts: Sequence[JudgedPart], values: FloatArray, flags: BoolArray) -> Contributions:
    """Explain the scores of all findings by the detectors of the parts, which must have views."""
    rows = np.flatnonzero(flags)
    found = Contributions(rows, np.zeros((len(rows), len(VIEWS))), np.zeros((len(rows), values.shape[1])))
    for judged in parts:
        mine = np.isin(rows, judged.rows)
        found.views[mine], found.variables[mine] = judged.part.explained(values[rows[mine]])
    return found


def rebuild(part: Part, values: FloatArray, new: IndexArray, learnt: IndexArray | None, expected: FloatArray) -> None:
    """Fill in what the latent groups make of the part's rows; nothing for a detector without groups."""
    detector = part.detector
    if not rebuilds(detector):
        return
    if is_series(detector):
        rows = new if learnt is None else np.union1d(new, learnt)
        expected[rows] = detector.expected(values[rows])
        return
    if learnt is not None:
        expected[learnt] = detector.inverse_transform(detector.embedding_)
    if len(new):
        expected[new] = part.expected(values[new])


class SimilarRows:
    """Normal rows of a part, ready to be searched for those nearest to another row.

    What a normal row lacks counts as the median of the others when near ones are looked for: else those would seem
    nearest that lack the very reading that stands out.
    """

    def __init__(self, part: Part, rows: FloatArray) -> None:
        known = [column[~np.isnan(column)] for column in rows.T]
        self.rows, self.medians = rows, np.array([np.median(each) if len(each) else np.nan for each in known])
        self._part = part
        self._search = search_over(part.scaled(np.where(np.isnan(rows), self.medians, rows)))

    def nearest(self, values: FloatArray, k: int) -> tuple[IndexArray, FloatArray]:
        """Return which k normal rows are nearest to each row (−1 where it shares no reading), and how far."""
        return self._search.nearest(self._part.scaled(values), min(k, len(self.rows)))


def to_compare(rows: IndexArray, values: FloatArray, contributions: Contributions | None) -> FloatArray:
    """Return the readings by which rows of a table are similar to others, NaN for the rest.

    Where it is known what makes up a score, those that make up half of it do not count, unless nothing else is left:
    else what is wrong in some would be expected of all.
    """
    if contributions is None:
        return values[rows]
    others = np.where(contributions.of(rows).standing_out, np.nan, values[rows])
    return np.where(np.isnan(others).all(axis=1, keepdims=True), values[rows], others)


def mean_of_similar(part: Part, compared: FloatArray, normal: FloatArray) -> FloatArray:
    """Return for each row of `to_compare` the mean of the nearest normal rows."""
    similar = SimilarRows(part, normal)
    near, _ = similar.nearest(compared, SIMILAR)
    expected = np.empty(compared.shape)
    for position, found in enumerate(near):
        rows = similar.rows[found[found >= 0]]
        known = ~np.isnan(rows)
        total = np.where(known, rows, 0.0).sum(axis=0)
        expected[position] = np.where(known.any(axis=0), total / np.maximum(known.sum(axis=0), 1), similar.medians)
    return expected


def are_usual(rows: IndexArray, scores: FloatArray, flags: BoolArray) -> BoolArray:
    """Return which rows to compare with: no findings, and with a score of the lower half, so not near a finding."""
    if not np.isfinite(scores[rows]).any():
        return np.zeros(len(rows), dtype=np.bool_)
    return ~flags[rows] & (scores[rows] <= np.nanmedian(scores[rows]))
