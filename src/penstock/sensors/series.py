"""Score a series of readings: learn from rows in order of time, score them two-sided, score later rows trailing.

A row's score is the largest surprise of up to three views: sensors that disagree with the others over time
(`residuals`, `evidence`), a state of the plant that is new (`novelty`), and, where sensors explain each other little or
there is only one, readings that are unlike all earlier ones. How much a new state counts is fitted (`Blend`). Each
surprise is measured in spreads of the view's own maxima over blocks of time: 0 is the usual maximum of a block.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from functools import partial, reduce
from itertools import pairwise
from typing import Any

import numpy as np

from penstock._progress import set_stage
from penstock._types import BoolArray, FloatArray, IndexArray
from penstock.sensors._kernels import compare_with_past
from penstock.sensors.blocks import add_up, each_column, fill_blocks, follow_blocks
from penstock.sensors.evidence import (
    HORIZONS,
    TRAILING,
    Calibration,
    LayerState,
    Surprise,
    TimeLayer,
    calibrate,
    learn_movement,
    learn_surprise,
    learn_time_layer,
    score_both_sides,
    trailing_channels,
)
from penstock.sensors.novelty import Novelty, NoveltyState, learn_novelty
from penstock.sensors.readings import Clock, LastRow, Scale, Spacing, learn_clock, learn_scale, without_holes
from penstock.sensors.residuals import RIDGE, LeaveOneOut, from_sums, learn_leave_one_out, weighted_sums
from penstock.sensors.unmoved import EVIDENCE, follow_moves, score_of_news, size_of_moves

_ADDED, _MOST_ADDED = 0.5, 3.0  # of the surprise at a new state, counted up to this, for rows fitted to
_MOST_LATER = 5.0  # of the surprise of a view that is not the largest, for later rows
_LEAST_WEIGHT, _HANDICAP = 0.25, 4 / 3  # of a new state that no sensor contradicts
_AFTERWARDS = 1.5  # over 1 − weight: what came before may add to what came before and after
_CALM_TAIL, _BURSTY_TAIL = 2.4, 2.55  # `BothSides.tail` of residuals without bursts, and with: full weight then
_PASSES = 3
_SET_ASIDE = 0.05  # of the rows, the highest, are not fitted to in the next pass
_FOLDS = 10  # contiguous blocks, each scored by a model of the others, for the calibration of later rows
_WELL_EXPLAINED = 0.95  # median share of variance; below, readings are also compared with earlier ones


@dataclass(frozen=True)
class Blend:
    """How much a state that is new counts in the score of a row.

    Where sensors explain each other and their residuals are calm, a new state that no sensor contradicts is seldom a
    fault (a flood, a test). Where residuals come in bursts, or sensors explain each other little, it is what there is.
    With ν the surprise at the state and w the weight, it says wν − (1 − w)·4/3.

    A later row scores what its views say together: the largest of them, and of each other that is above 0, the usual
    maximum of a block, at most 5. A row that was fitted to scores the largest of them, and w/2·min(max(ν, 0), 3):
    faults are among the rows that say what is usual, so that views that agree there say less.

    Where a new state counts little, so does what came before a training row alone: after the end of a fault it still
    says that the fault is there, and what comes after the row does not.
    """

    weight: float  # 0.25 to 1
    added: float = _ADDED  # 0 for a single sensor, whose states are courses

    def own(self, both: FloatArray, before: FloatArray) -> FloatArray:
        """Return the surprise at training rows (n,) from that by what came before and after, and by what came before.

        >>> Blend(0.25).own(np.array([5.0, 0.0]), np.array([6.0, 6.0]))
        array([6., 2.])
        >>> Blend(1.0).own(np.array([5.0, 0.0]), np.array([6.0, 6.0]))
        array([6., 6.])
        """
        most = np.inf if self.weight >= 1 else _AFTERWARDS / (1 - self.weight)
        return np.maximum(both, np.minimum(before, both + most))

    def combine(self, views: list[FloatArray], novelty: FloatArray) -> FloatArray:
        """Return the score of each row that was fitted to (n,) from its surprises by each view.

        >>> Blend(0.25).combine([np.array([2.0, -2.0])], np.array([4.0, 8.0]))
        array([2.375, 1.375])
        >>> Blend(1.0).combine([np.array([2.0, -2.0])], np.array([4.0, 8.0]))
        array([5.5, 9.5])
        """
        largest: FloatArray = reduce(np.maximum, [*views, self._state(novelty)])
        return largest + self.weight * self.added * np.clip(novelty, 0.0, _MOST_ADDED)

    def combine_later(self, views: list[FloatArray], novelty: FloatArray) -> FloatArray:
        """Return the score of each later row (n,) from its surprises by each view.

        >>> Blend(0.25).combine_later([np.array([2.0, -2.0])], np.array([4.0, 8.0]))
        array([2., 1.])
        >>> Blend(1.0).combine_later([np.array([2.0, -2.0])], np.array([9.0, -8.0]))
        array([11., -2.])
        """
        views = [*views, self._state(novelty)]
        largest: FloatArray = reduce(np.maximum, views)
        together: FloatArray = reduce(np.add, (np.clip(view, 0.0, _MOST_LATER) for view in views))
        return largest + together - np.clip(largest, 0.0, _MOST_LATER)

    def _state(self, novelty: FloatArray) -> FloatArray:
        return self.weight * novelty - (1 - self.weight) * _HANDICAP


def learn_blend(tail: float, explained: float) -> Blend:
    """Learn from `BothSides.tail` and the share of variance that the others explain, both of the median sensor."""
    if explained < _WELL_EXPLAINED:
        return Blend(1.0)
    return Blend(float(np.interp(tail, [_CALM_TAIL, _BURSTY_TAIL], [_LEAST_WEIGHT, 1.0])))


@dataclass(frozen=True)
class Past:
    """Compare readings with all earlier ones: fewest earlier readings, least spreads (p,), calibration, surprise."""

    least: float
    floors: FloatArray
    calibration: Calibration
    surprise: Surprise

    def score(self, Z: FloatArray, spacing: Spacing, state: PastState) -> FloatArray:
        """Return the surprise at rows that follow the training rows; `state` goes on from row to row."""
        found = np.empty_like(Z)
        compare_with_past(Z, self.least, self.floors, state.moments, found)
        return self.surprise.apply(self.calibration.score(trailing_channels(found, spacing, state.means, HORIZONS))[0])


@dataclass
class PastState:
    """Count, mean and sum of squared deviations of earlier readings (3, p), and moving means (4, p)."""

    moments: FloatArray
    means: FloatArray


@dataclass
class SeriesState:
    """Where a series stands after its last row; its size does not depend on the length of the series."""

    layer: LayerState
    novelty: NoveltyState
    past: PastState
    moves: FloatArray  # (2, p) of columns that never moved in training; see `follow_moves`
    last: LastRow = field(default_factory=LastRow)


@dataclass(frozen=True)
class SeriesScores:
    """Scores of rows (n,), and the evidence of each sensor (n, p): 1 at the edge of what is usual, 0 if not scored."""

    scores: FloatArray
    evidence: FloatArray


@dataclass
class ResidualState:
    """Where a series stands after its last row, for models that have the time layer alone."""

    layer: LayerState
    last: LastRow = field(default_factory=LastRow)


class SeriesModel(ABC):
    """What was fitted to a series, whatever the source of residuals."""

    scale: Scale
    clock: Clock
    layer: TimeLayer

    @abstractmethod
    def start(self) -> Any:
        """Return the state of a series that begins after the training rows."""

    @abstractmethod
    def score(self, X: FloatArray, state: Any, time: FloatArray | None = None, runs: Any = None) -> SeriesScores:
        """Score rows that follow those already seen in `state`; the same for any cut of a series into pieces."""

    @abstractmethod
    def score_single_rows(self, X: FloatArray) -> FloatArray:
        """Score rows without history, each by itself: as the first row of a series that moves as usual."""

    @abstractmethod
    def residuals_of(self, X: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return scaled residuals that can be compared between rows, and scaled readings without holes, both (n, p)."""

    def expected(self, X: FloatArray) -> FloatArray:
        """Return what each sensor should read given the others; for a missing reading its expected value."""
        residuals, filled = self.residuals_of(X)
        return (filled - residuals) * self.scale.width + self.scale.center

    def deviations(self, X: FloatArray) -> FloatArray:
        """Return residuals in units of what is usual for each sensor when the plant moves as usual."""
        return self.residuals_of(X)[0] / self.layer.activity.spread(np.ones((1, 6)))


@dataclass(frozen=True)
class SensorModel(SeriesModel):
    """What was fitted to a series; scores later rows with a `SeriesState`."""

    scale: Scale
    clock: Clock
    residuals: LeaveOneOut
    layer: TimeLayer
    novelty: Novelty
    past: Past | None
    past_moments: FloatArray
    blend: Blend
    watched: BoolArray  # (p,) columns that never moved in training, of which a move is news
    news: float  # the score of a row with a large one

    @property
    def single(self) -> bool:
        """Whether there is one sensor: it is compared with its own past and its courses alone."""
        return self.novelty.column >= 0

    def start(self) -> SeriesState:
        return SeriesState(
            self.layer.start(),
            NoveltyState(np.zeros(len(self.scale.center)), np.array([self.novelty.usual])),
            PastState(self.past_moments.copy(), np.zeros((len(HORIZONS), self.past_moments.shape[1]))),
            np.zeros((2, len(self.scale.center))),
        )

    def score(
        self, X: FloatArray, state: SeriesState, time: FloatArray | None = None, runs: Any = None
    ) -> SeriesScores:
        spacing = self.clock.follow(len(X), time, runs, state.last)
        Z = self._scaled(X)
        residuals, filled = self.residuals.score(Z)
        own, evidence = self.layer.score(residuals, filled, spacing, state.layer)
        novelty = self.novelty.score(self._with_moves(filled, X), spacing, state.novelty)
        views = [] if self.single else [own]
        if self.past is not None:
            views.append(self.past.score(Z[:, self.layer.scored].copy(), spacing, state.past))
        scores, watched = self.blend.combine_later(views, novelty), self.watched
        if watched.any():
            sizes, moves = self._moves(X), state.moves[:, watched]
            news = follow_moves(sizes, moves)
            state.moves[:, watched] = moves
            evidence[:, watched] = EVIDENCE * news
            large = np.where(sizes == 1, news, 0.0).max(axis=1)
            scores = np.where(large > 0, np.maximum(scores, self.news * large), scores)
        return SeriesScores(scores, evidence)

    def score_single_rows(self, X: FloatArray) -> FloatArray:
        # A column that never moved before says nothing here: a single row cannot tell news from a level that stays.
        residuals, filled = self.residuals_of(X)
        own = self.layer.score_single_rows(residuals)
        return own if self.single else self.blend.combine_later([own], self.novelty.score_single_rows(filled))

    def residuals_of(self, X: FloatArray) -> tuple[FloatArray, FloatArray]:
        return self.residuals.score(self._scaled(X))

    def expected(self, X: FloatArray) -> FloatArray:
        return fill_blocks(X.shape[1], self._expected_rows, X)

    def deviations(self, X: FloatArray) -> FloatArray:
        found, watched = super().deviations(X), self.watched
        if watched.any():
            sizes = self._moves(X)
            found[:, watched] = np.where(X[:, watched] < self.scale.center[watched], -EVIDENCE, EVIDENCE) * sizes
        return found

    def _expected_rows(self, X: FloatArray) -> FloatArray:
        return self.residuals.expected(self._scaled(X)) * self.scale.width + self.scale.center

    def _with_moves(self, filled: FloatArray, X: FloatArray) -> FloatArray:
        """Return scaled readings without holes, with those of columns that never moved in training as they are."""
        if not self.watched.any():
            return filled
        found, readings = filled.copy(), self.scale.apply(X)[:, self.watched]
        found[:, self.watched] = np.where(self._moves(X) > 0, readings, 0.0)
        return found

    def _moves(self, X: FloatArray) -> FloatArray:
        return size_of_moves(X[:, self.watched], self.scale.center[self.watched])

    def _scaled(self, X: FloatArray) -> FloatArray:
        """Return scaled readings; those of columns that never moved in training are at their center."""
        Z = self.scale.apply(X)
        Z[:, self.scale.still] = 0.0
        return Z


@dataclass(frozen=True)
class SeriesFit:
    """A model, what it says of its training rows, and how they score as if each were new."""

    model: SeriesModel
    scores: SeriesScores  # of the training rows, by what came before and after each
    out_of_sample: FloatArray  # (n,) their scores by what came before, by sensors' models of other blocks of time


def learn_series(
    X: FloatArray,
    time: FloatArray | None,
    runs: Any,
    random: np.random.RandomState,
    explaining: IndexArray | None = None,
) -> SeriesFit:
    """Learn from rows in order of time and score them.

    X : (n, p) readings; NaN where one is missing. Every column has a reading.
    time : (n,) time of each row in any unit; rows are taken as evenly spaced if None.
    runs : (n,) labels of runs.
    random : draws the reference rows of `Novelty`.
    explaining : columns that explain others and are never scored; those that change seldom if None.
    """
    clock = learn_clock(time, runs)
    spacing = clock.follow(len(X), time, runs)
    scale = learn_scale(X, spacing.starts)
    if explaining is not None:
        scored = ~scale.still
        scored[explaining] = False
        scale = replace(scale, scored=scored)
    if scale.still.all():  # nothing ever moved: score whatever moves later
        scale = replace(scale, still=np.zeros_like(scale.still))
    if not scale.scored.any():  # nothing but settings and constants: score what moves at all
        scale = replace(scale, scored=~scale.still)
    if not scale.still.any():
        return _learn_moving(X, clock, spacing, scale, random)
    watched = scale.still.copy()
    watched[[] if explaining is None else explaining] = False
    moving = ~scale.still
    some = scale.only(moving)
    columns = fill_blocks(int(moving.sum()), partial(_take_columns, moving), X)
    found = _learn_moving(columns, clock, spacing, some, random)
    assert isinstance(found.model, SensorModel)
    scores = replace(
        found.scores, evidence=fill_blocks(X.shape[1], partial(_put_columns, moving), found.scores.evidence)
    )
    return SeriesFit(_with_unmoved(found.model, scale, watched), scores, found.out_of_sample)


def _take_columns(columns: BoolArray, X: FloatArray) -> FloatArray:
    return np.ascontiguousarray(X[:, columns])


def _put_columns(columns: BoolArray, values: FloatArray) -> FloatArray:
    """Return values of some columns among those of all; 0 for the others."""
    found = np.zeros((len(values), len(columns)))
    found[:, columns] = values
    return found


def _with_unmoved(model: SensorModel, scale: Scale, watched: BoolArray) -> SensorModel:
    """Return a model of the columns that moved as one of all: the others have no part in it."""
    moving = ~scale.still
    p = len(moving)

    def put(values: FloatArray, others: float = 0.0) -> FloatArray:
        found = np.full((*values.shape[:-1], p), others)
        found[..., moving] = values
        return np.ascontiguousarray(found)

    precision = np.eye(p) / RIDGE
    precision[np.ix_(moving, moving)] = model.residuals.precision
    moved, novelty = model.layer.activity, model.novelty
    activity = replace(
        moved,
        center=put(moved.center),
        directions=put(moved.directions.T).T.copy(),
        coefficients=put(moved.coefficients),
        floors=put(moved.floors, 1.0),
    )
    if novelty.column >= 0:
        novelty = replace(novelty, column=int(np.flatnonzero(moving)[0]))
    else:
        novelty = novelty.with_constants(put(novelty.center), put(novelty.directions.T).T.copy(), watched)
    return replace(
        model,
        scale=scale,
        residuals=LeaveOneOut(put(model.residuals.mean), precision),
        layer=replace(model.layer, scored=scale.scored, activity=activity),
        novelty=novelty,
        watched=watched,
    )


def _learn_moving(
    X: FloatArray, clock: Clock, spacing: Spacing, scale: Scale, random: np.random.RandomState
) -> SeriesFit:
    """Learn from columns that move, given their scale."""
    p, scored, leads = X.shape[1], scale.scored, scale.leads
    Z = fill_blocks(p, scale.apply, X)
    lead_now = leads | _news_of_columns(Z, scale)
    kept, tail = np.ones(len(X), dtype=np.bool_), 0.0
    has_holes = bool(add_up(_count_missing, Z))
    filled = fill_blocks(p, without_holes, Z) if has_holes else Z
    R: Any = None  # a pass takes the memory of the one before
    complete: Any = None
    found: Any = None
    for number in range(_PASSES):
        set_stage("pass", number + 1, _PASSES)
        model = learn_leave_one_out(filled, kept.astype(np.float64))
        if number == _PASSES - 1:
            others = _models_of_other_blocks(filled, kept, model)
        R = fill_blocks(p, model.comparable, Z, into=None if filled is Z else filled)
        filled = Z  # whose memory was taken
        complete = fill_blocks(p, model.fill, Z, into=complete) if has_holes else Z
        movement = learn_movement(complete, spacing, kept)
        found = score_both_sides(R, movement, spacing, kept, scored, lead_now, found)
        tail = found.tail if number == 0 else tail
        if number < _PASSES - 1:
            kept = found.scores <= np.quantile(found.scores, 1 - _SET_ASIDE)
            work = partial(_with_expected_where_out, scored)
            filled = fill_blocks(p, work, complete, R, found.evidence, into=R)
    explained = float(np.median(np.array(each_column(_share_explained, (Z, R), kept))[scored]))
    set_stage("calibration")
    both, before = found.scores, found.surprise_before()
    evidence = found.evidence if scored.all() else fill_blocks(p, partial(_put_columns, scored), found.evidence)
    del found
    R = fill_blocks(p, partial(_residuals_by_fold, others), Z, _folds(len(Z)), into=R)
    layer, out_of_sample = learn_time_layer(R, movement, spacing, kept, scored, leads)
    del R
    novelty, new, new_so_far = learn_novelty(complete, spacing, random)
    past, moments, unlike = None, np.zeros((3, int(scored.sum()))), []
    if p == 1 or explained < _WELL_EXPLAINED:
        past, moments, surprises = _learn_past(Z, scored, lead_now, spacing)
        unlike.append(surprises)
    blend = Blend(1.0, added=0.0) if p == 1 else learn_blend(tail, explained)
    out_of_sample = blend.combine_later(unlike if p == 1 else [out_of_sample, *unlike], new_so_far)
    news = score_of_news(out_of_sample)
    fitted = SensorModel(scale, clock, model, layer, novelty, past, moments, blend, scale.still, news)
    scores = SeriesScores(blend.combine([blend.own(both, before), *unlike], new), evidence)
    return SeriesFit(fitted, scores, out_of_sample)


def _news_of_columns(Z: FloatArray, scale: Scale) -> BoolArray:
    """Return the column that leads in this record though it seldom moves: it does so in one stretch, and no other does.

    A relief valve that opens for the only time is news. Where several columns seldom move, that one of them does is
    none: healthy servers and spacecraft have many such columns.
    """
    seldom = scale.seldom & scale.scored
    if seldom.sum() != 1:
        return np.zeros_like(seldom)
    return seldom & np.array(each_column(_is_away_once, (Z,)), dtype=np.bool_)


def _is_away_once(column: FloatArray) -> bool:
    away = column[np.isfinite(column)] != 0.0
    return int(np.diff(away, prepend=False, append=False).sum()) == 2  # one beginning and one end


def _against_past(
    least: float, floors: FloatArray, scored: BoolArray, moments: FloatArray, Z: FloatArray
) -> tuple[FloatArray, FloatArray]:
    readings, moments = Z[:, scored].copy(), moments.copy()
    found = np.empty_like(readings)
    compare_with_past(readings, least, floors, moments, found)
    return found, moments


def _count_missing(Z: FloatArray) -> int:
    return int(np.isnan(Z).sum())


def _with_expected_where_out(scored: BoolArray, Z: FloatArray, R: FloatArray, evidence: FloatArray) -> FloatArray:
    """Return readings without holes in which those outside the usual are what the other sensors of the row expect.

    So a fault of one sensor is not fitted, and what the others read meanwhile still is.
    """
    out = np.zeros(Z.shape, dtype=np.bool_)
    out[:, scored] = evidence > 1.0
    return np.where(out, Z - R, Z)


def _folds(n: int) -> IndexArray:
    """Return the number of the block of time, of ten, that each row is in."""
    blocks = np.array_split(np.arange(n), min(_FOLDS, n))
    return np.repeat(np.arange(len(blocks)), [len(block) for block in blocks])


def _rows_of_folds(folds: IndexArray) -> Iterator[tuple[int, slice]]:
    """Yield the folds of some rows that follow each other, and which of these are of it."""
    edges = [0, *(np.flatnonzero(np.diff(folds)) + 1).tolist(), len(folds)]
    for first, last in pairwise(edges):
        yield int(folds[first]), slice(first, last)


def _models_of_other_blocks(filled: FloatArray, kept: BoolArray, model: LeaveOneOut) -> list[LeaveOneOut]:
    """Return for each block of time a model of the other blocks."""
    folds = _folds(len(filled))
    sums = add_up(partial(_sums_by_fold, folds[-1] + 1), filled, kept.astype(np.float64), folds)
    total, rows, products = (part.sum(axis=0) for part in sums)
    return [
        from_sums(total - one, rows - its_rows, products - its_products) if total - one > 1 else model
        for one, its_rows, its_products in zip(*sums, strict=True)
    ]


def _sums_by_fold(
    n_folds: int, Z: FloatArray, weights: FloatArray, folds: IndexArray
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return `weighted_sums` of the rows of each fold."""
    p = Z.shape[1]
    sums = np.zeros(n_folds), np.zeros((n_folds, p)), np.zeros((n_folds, p, p))
    for fold, rows in _rows_of_folds(folds):
        sums[0][fold], sums[1][fold], sums[2][fold] = weighted_sums(Z[rows], weights[rows])
    return sums


def _residuals_by_fold(models: list[LeaveOneOut], Z: FloatArray, folds: IndexArray) -> FloatArray:
    R = np.empty(Z.shape)
    for fold, rows in _rows_of_folds(folds):
        R[rows] = models[fold].comparable(Z[rows])
    return R


def _share_explained(readings: FloatArray, residuals: FloatArray, kept: BoolArray) -> float:
    """Return the share of a sensor's variance that the others explain."""
    there = kept & ~np.isnan(readings)
    variance, left = np.var(readings[there]) if there.any() else 0.0, (residuals[kept] ** 2).mean()
    return float(1 - left / (variance if variance > 0 else 1.0))


def _learn_past(
    Z: FloatArray, scored: BoolArray, leads: BoolArray, spacing: Spacing
) -> tuple[Past, FloatArray, FloatArray]:
    """Learn how far readings are from all earlier ones; also return their moments (3, q) and the surprises (n,)."""
    least, floors = float(max(30, len(Z) // 50)), 1e-3 * np.array(each_column(np.nanstd, (Z,)))[scored]
    q = len(floors)
    found, moments = follow_blocks(q, partial(_against_past, least, floors, scored), np.zeros((3, q)), Z)
    # In most series blocks differ much.
    calibration, sizes = calibrate(TRAILING, found, spacing, leads[scored], 0.75, np.inf)
    surprise = learn_surprise(sizes)
    return Past(least, floors, calibration, surprise), moments, surprise.apply(sizes)
