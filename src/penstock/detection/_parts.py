"""The model of each operating mode: its scores, what adds up to them, and what it expects of a row.

Rows in the user's units come in; what detectors say of them goes out in one form, whatever the detector can do.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from penstock._types import BoolArray, FloatArray, IndexArray
from penstock.detectors.views import VIEWS
from penstock.graph.search import RowSearch
from penstock.prepare import MinMaxScaling

MOST_REFERENCES = 2000
_ROWS_AT_ONCE = 1000  # of which shares, or distances of each input, are in memory
_LEAST_USUAL = 1e-6  # of the largest mode's
_MOST_OF_IT = 0.5  # of a score
_SPREADS = 3.29  # from the 0.05 to the 0.95 quantile of a normal distribution, in standard deviations
ALL = "all"  # the mode of every row where none were asked for
SIMILAR = 3  # rows whose mean is expected; an explanation shows them


@dataclass(frozen=True)
class Abilities:
    """What a detector can do, read from what it has: the one place where detectors differ.

    over_time : it scores rows in order of time.
    by_sensor : and says how far each sensor is off: events are then put together as incidents.
    rebuilds : it says what a row should have been.
    explains : it says what each view and each variable adds to a score; 0 is then usual in every mode, and a score may
        be negative.
    takes_drivers : inputs may explain others without being scored.
    scaled_before : rows are scaled before it gets them; see `ModePart`.
    """

    over_time: bool
    by_sensor: bool
    rebuilds: bool
    explains: bool
    takes_drivers: bool
    scaled_before: bool

    @classmethod
    def of(cls, detector: Any) -> Abilities:
        """Return what a detector can do; it need not be fitted.

        >>> from penstock import Detector, NSNMF, SensorDetector
        >>> [(can.by_sensor, can.rebuilds, can.explains) for can in map(Abilities.of, (SensorDetector(), NSNMF()))]
        [(True, True, False), (False, True, False)]
        >>> Abilities.of(Detector()).explains
        True
        """
        kind = type(detector)
        over_time = hasattr(kind, "assess_series")
        by_sensor = over_time and detector.scores_sensors
        return cls(
            over_time=over_time,
            by_sensor=by_sensor,
            rebuilds=by_sensor or hasattr(kind, "inverse_transform"),
            explains=hasattr(kind, "parts_"),
            takes_drivers=hasattr(detector, "explaining"),
            scaled_before=hasattr(kind, "is_warm") and detector.scale is not None,
        )

    @property
    def keeps_constants(self) -> bool:
        """Return whether an input that never moved is an input all the same, as later rows may move it."""
        return self.takes_drivers or self.explains


@dataclass(frozen=True, eq=False)
class ModePart:
    """The model of one operating mode.

    usual : the score that counts as one when modes are ranked together: `usual_scores` where there are several modes,
        else 1, so that a single model's scores stay what they are. 1 also for a detector whose scores can be compared
        between modes.
    scaled_before : of a detector for streams, which would only know the range of its warm-up: the range of all training
        rows, as the paper's data were scaled as a whole before they were streamed.
    reference : of a detector that rebuilds nothing: usual training rows in the user's units, by which a finding is
        compared; None for the others.
    """

    mode: str
    detector: Any
    usual: float = 1.0
    scaled_before: MinMaxScaling | None = None
    reference: FloatArray | None = None

    @property
    def can(self) -> Abilities:
        return Abilities.of(self.detector)

    def scores(self, values: FloatArray) -> FloatArray:
        """Score rows that were not fitted, one by one."""
        rows = values if self.scaled_before is None else self.scaled_before.apply(values)
        scores: FloatArray = self.detector.anomaly_score(rows) / self.usual
        return scores

    def expected(self, values: FloatArray) -> FloatArray:
        """Return what a detector that rebuilds expects of rows that were not fitted."""
        found: FloatArray
        if self.can.over_time:
            found = self.detector.expected(values)
        else:
            found = self.detector.inverse_transform(self.detector.transform(values))
        return found

    @property
    def scaling(self) -> Any:
        """Return how rows are scaled before distances are measured; None if they are not."""
        return self.detector.model_.scale if self.can.over_time else self.scaled_before or self.detector.scaling_

    def scaled(self, values: FloatArray) -> FloatArray:
        """Return rows in the units in which distances are measured."""
        scaled: FloatArray = values if self.scaling is None else self.scaling.apply(values)
        return scaled

    @property
    def scale(self) -> FloatArray:
        """Per input, what counts as one in a residual: the range that it was fitted in."""
        scale: FloatArray
        if self.can.over_time:
            scale = self.scaling.width * _SPREADS
        else:
            scale = np.ones(self.detector.n_features_in_) if self.scaling is None else self.scaling.span
        return scale

    @property
    def training_scores(self) -> FloatArray:
        scores: FloatArray = self.detector.scores_ / self.usual
        return scores

    @property
    def new_row_scores(self) -> FloatArray:
        """Return the training scores that those of later rows are compared with."""
        return self.detector.out_of_sample_scores_ if self.can.over_time else self.training_scores

    def level(self, episodes: float) -> float | None:
        """Return the score that so many episodes reach by chance in a record as long as that fitted to.

        None where that is not known. For detectors that score rows over time.
        """
        rate = self.detector.new_row_rate_
        return None if rate is None else rate.score_expected(episodes, len(self.detector.scores_))

    def explained(self, values: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return (n, views) and (n, p): what each view and each variable adds to a score, if the detector explains."""
        views, variables = np.zeros((len(values), len(VIEWS))), np.zeros(values.shape)
        for start in range(0, len(values), _ROWS_AT_ONCE):
            some = slice(start, start + _ROWS_AT_ONCE)
            found = self.detector.explain(values[some])
            views[some], variables[some] = found.parts, found.variables
        return views, variables


@dataclass(frozen=True, eq=False)
class ScoredPart:
    """A part and its rows in a table, as positions."""

    part: ModePart
    rows: IndexArray
    fitted: IndexArray | None  # as the detector saw them (node i of its tree is `fitted[i]`); None: of another table

    @cached_property
    def new(self) -> IndexArray:
        """Return the rows that were not fitted to."""
        return self.rows if self.fitted is None else self.rows[~np.isin(self.rows, self.fitted)]


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


def contributions_of(parts: Sequence[ScoredPart], values: FloatArray, flags: BoolArray) -> Contributions:
    """Explain the scores of all findings by the detectors of the parts, which must have views."""
    rows = np.flatnonzero(flags)
    found = Contributions(rows, np.zeros((len(rows), len(VIEWS))), np.zeros((len(rows), values.shape[1])))
    for each in parts:
        mine = np.isin(rows, each.rows)
        found.views[mine], found.variables[mine] = each.part.explained(values[rows[mine]])
    return found


def rebuild(each: ScoredPart, values: FloatArray, expected: FloatArray) -> None:
    """Fill in what the detector of a part expects of its rows; nothing if it does not rebuild rows."""
    part, rows = each.part, each.new
    if not part.can.rebuilds:
        return
    if each.fitted is not None and part.can.over_time:
        rows = each.rows
    elif each.fitted is not None:
        expected[each.fitted] = part.detector.inverse_transform(part.detector.embedding_)
    if len(rows):
        some = slice(None) if len(rows) == len(values) else rows  # no copy of a whole table
        expected[some] = part.expected(values[some])


class SimilarRows:
    """Normal rows of a part, ready to be searched for those nearest to another row.

    What a normal row lacks counts as the median of the others when near ones are looked for: else those would seem
    nearest that lack the very reading that stands out.
    """

    def __init__(self, part: ModePart, rows: FloatArray) -> None:
        known = [column[~np.isnan(column)] for column in rows.T]
        self.rows = rows
        self.medians = np.array([np.median(each) if len(each) else np.nan for each in known])
        self._part = part
        self._scaled = part.scaled(np.where(np.isnan(rows), self.medians, rows))

    def nearest(self, values: FloatArray, k: int) -> tuple[IndexArray, FloatArray]:
        """Return which k normal rows are nearest to each row (−1 where it shares no reading), and how far."""
        wanted, k = self._part.scaled(values), min(k, len(self.rows))
        if not self._part.can.over_time:
            return self._search.nearest(wanted, k)
        # Of a series few rows are asked for: to measure all distances is quicker than to build a search tree.
        found = [self._nearest_of_all(row, k) for row in wanted]
        return np.array([near for near, _ in found]), np.array([distances for _, distances in found])

    @cached_property
    def _search(self) -> RowSearch:
        return RowSearch(self._scaled)

    def _nearest_of_all(self, row: FloatArray, k: int) -> tuple[IndexArray, FloatArray]:
        shared = np.flatnonzero(~np.isnan(row) & ~np.isnan(self.medians))
        if not len(shared) or not k:
            return np.full(k, -1), np.full(k, np.inf)
        squares, every = np.empty(len(self._scaled)), len(shared) == len(row)
        for first in range(0, len(squares), _ROWS_AT_ONCE):
            some = self._scaled[first : first + _ROWS_AT_ONCE]
            apart = (some if every else some[:, shared]) - row[shared]
            squares[first : first + _ROWS_AT_ONCE] = np.einsum("ij,ij->i", apart, apart)
        near = np.flatnonzero(squares <= np.partition(squares, k - 1)[k - 1])
        near = near[np.argsort(squares[near], kind="stable")[:k]]
        return near, np.sqrt(squares[near] * len(row) / len(shared))


def to_compare(rows: IndexArray, values: FloatArray, contributions: Contributions | None) -> FloatArray:
    """Return the readings by which rows of a table are similar to others, NaN for the rest.

    Where it is known what makes up a score, those that make up half of it do not count, unless nothing else is left:
    else what is wrong in some would be expected of all.
    """
    if contributions is None:
        return values[rows]
    others = np.where(contributions.of(rows).standing_out, np.nan, values[rows])
    return np.where(np.isnan(others).all(axis=1, keepdims=True), values[rows], others)


def mean_of_similar(part: ModePart, compared: FloatArray, normal: FloatArray) -> FloatArray:
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
