"""Judge a series of readings: learn from rows in order of time, score them two-sided, score later rows trailing.

A row's score is the largest surprise of up to three views: sensors that disagree with the others over time
(`residuals`, `evidence`), a state of the plant that is new (`novelty`), and, where sensors explain each other little or
there is only one, readings that are unlike all earlier ones. Each surprise is measured in spreads of the view's own
maxima over blocks of time: 0 is the usual maximum of a block.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from penstock._types import FloatArray
from penstock.sensors._kernels import compare_with_past
from penstock.sensors.evidence import (
    HORIZONS,
    TRAILING_HORIZONS,
    Activity,
    ActivityState,
    Calibration,
    Surprise,
    activity_features,
    learn_activity,
    learn_calibration,
    learn_surprise,
    trailing_channels,
    two_sided_channels,
)
from penstock.sensors.novelty import Novelty, NoveltyState, learn_novelty
from penstock.sensors.readings import BoolArray, Scale, find_starts, learn_scale, usual_step
from penstock.sensors.residuals import LeaveOneOut, from_sums, learn_leave_one_out, weighted_sums

_PASSES = 3
_SET_ASIDE = 0.05  # of the rows, the highest, are not learnt from in the next pass
_FOLDS = 10  # contiguous blocks, each judged by a model of the others, for the calibration of later rows
_WELL_EXPLAINED = 0.95  # median share of variance; below, readings are also compared with earlier ones


@dataclass(frozen=True)
class Past:
    """Compare readings with all earlier ones: fewest earlier readings, least spreads (p,), calibration, surprise."""

    least: float
    floors: FloatArray
    calibration: Calibration
    surprise: Surprise


@dataclass(frozen=True)
class SensorModel:
    """What was learnt from a series; scores later rows with a `SeriesState`."""

    scale: Scale
    step: float
    residuals: LeaveOneOut
    activity: Activity
    calibration: Calibration
    surprise: Surprise
    novelty: Novelty | None
    past: Past | None
    past_state: FloatArray

    def start(self) -> SeriesState:
        """Return the state of a series that begins after the training rows."""
        judged = int(self.scale.judged.sum())
        return SeriesState(
            means=np.zeros((len(TRAILING_HORIZONS), judged)),
            activity=ActivityState(np.zeros(self.activity.directions.shape[1])),
            novelty=NoveltyState(level=np.array([1.0 if self.novelty is None else self.novelty.usual])),
            past=self.past_state.copy(),
            past_means=np.zeros((len(HORIZONS), judged)),
        )

    def score(self, X: FloatArray, state: SeriesState, time: FloatArray | None = None, runs: Any = None) -> Judgement:
        """Score rows that follow those already seen in `state`; the same for any cut of a series into pieces."""
        starts = state.find_starts(len(X), time, runs, self.step)
        Z = self.scale.apply(X)
        filled = self.residuals.fill(Z)
        E = self._standardised(Z, filled, starts, state.activity)
        channels = trailing_channels(E, starts, state.means)
        views = [self.surprise.apply(self.calibration.score(channels))]
        if self.novelty is not None:
            views.append(self.novelty.score(filled, starts, state.novelty))
        if self.past is not None:
            views.append(_past_surprise(self.past, self._judged(Z), starts, state))
        return Judgement(np.max(views, axis=0), self.calibration.evidence(channels))

    def score_alone(self, X: FloatArray) -> FloatArray:
        """Score rows without history, each by itself: as the first row of a series that moves as usual."""
        Z = self.scale.apply(X)
        E = self._judged(self.residuals.residuals(Z)) / self._judged(self.activity.spread(np.ones((1, 6))))
        channels = [np.abs(E) / horizon for horizon in TRAILING_HORIZONS]
        views = [self.surprise.apply(self.calibration.score(channels))]
        if self.novelty is not None:
            places = np.full(len(Z), np.iinfo(np.int64).max // 4)
            distances = self.novelty.distances(self.residuals.fill(Z), places)
            views.append(self.novelty.surprise.apply(distances / self.novelty.usual))
        scores: FloatArray = np.max(views, axis=0)
        return scores

    def expected(self, X: FloatArray) -> FloatArray:
        """Return what each sensor should read given the others; for a missing reading its expected value."""
        Z = self.scale.apply(X)
        filled = self.residuals.fill(Z)
        scaled = np.where(np.isnan(Z), filled, Z - self.residuals.residuals(Z))
        expected: FloatArray = scaled * self.scale.width + self.scale.center
        return expected

    def _judged(self, values: FloatArray) -> FloatArray:
        return np.ascontiguousarray(values[:, self.scale.judged])

    def _standardised(self, Z: FloatArray, filled: FloatArray, starts: BoolArray, state: ActivityState) -> FloatArray:
        """Return residuals in units of their usual spread, of the sensors that are judged."""
        features = activity_features(filled, starts, self.activity.center, self.activity.directions, state)
        return self._judged(self.residuals.residuals(Z) / self.activity.spread(features / self.activity.typical))


@dataclass
class SeriesState:
    """Where a series stands after its last row; its size does not depend on the length of the series."""

    means: FloatArray
    activity: ActivityState
    novelty: NoveltyState
    past: FloatArray
    past_means: FloatArray
    last_time: float | None = None
    last_run: Any = None
    begun: bool = field(default=False)

    def find_starts(self, n: int, time: FloatArray | None, runs: Any, step: float) -> BoolArray:
        """Find where the history begins anew in the next n rows, and remember the last of them."""
        starts = find_starts(n, time, runs, step)
        if n == 0:
            return starts
        if self.begun:
            since = None if time is None or self.last_time is None else np.array([self.last_time, float(time[0])])
            labels = None if runs is None else [self.last_run, runs[0]]
            starts[0] = find_starts(2, since, labels, step)[1]
        self.begun = True
        self.last_time = None if time is None else float(time[-1])
        self.last_run = None if runs is None else runs[-1]
        return starts


@dataclass(frozen=True)
class Judgement:
    """Scores of rows (n,) and the evidence of each judged sensor (n, q): 1 at the edge of what is usual."""

    scores: FloatArray
    evidence: FloatArray


def learn_series(
    X: FloatArray, time: FloatArray | None, runs: Any, random: np.random.RandomState
) -> tuple[SensorModel, Judgement]:
    """Learn from rows in order of time and judge them.

    Parameters
    ----------
    X : array of shape (n, p)
        Readings; NaN where one is missing. Every row and column has a reading.
    time : array of shape (n,), optional
        Time of each row in any unit; rows are taken as evenly spaced if None.
    runs : array of shape (n,), optional
        Labels of runs.
    random : RandomState
        Draws the reference rows of `Novelty`.

    Returns
    -------
    SensorModel
        Scores later rows.
    Judgement
        Of the training rows, by what came before and after each.
    """
    starts = find_starts(len(X), time, runs)
    scale = learn_scale(X, starts)
    if not scale.judged.any():  # nothing but settings and constants: judge what moves at all
        scale = Scale(scale.center, scale.width, np.ones(len(scale.judged), dtype=np.bool_))
    Z = scale.apply(X)
    kept = np.ones(len(X), dtype=np.bool_)
    filled = np.where(np.isnan(Z), 0.0, Z)
    for number in range(_PASSES):
        model = learn_leave_one_out(filled, kept.astype(np.float64))
        filled = model.fill(Z)
        R = model.residuals(Z)
        activity = learn_activity(filled, R, starts, kept)
        E = _standardise(R, filled, starts, activity)[:, scale.judged].copy()
        channels = two_sided_channels(E, starts)
        calibration = learn_calibration(channels)
        scores = calibration.score(channels)
        if number < _PASSES - 1:
            kept = scores <= np.quantile(scores, 1 - _SET_ASIDE)
    trailing = trailing_channels(E, starts, np.zeros((len(TRAILING_HORIZONS), E.shape[1])))
    views = [learn_surprise(scores).apply(scores)]
    trailing_scores = learn_calibration(trailing).score(trailing)
    views.append(learn_surprise(trailing_scores).apply(trailing_scores))
    novelty, past = None, None
    past_state = np.zeros((3, E.shape[1]))
    if X.shape[1] > 1:
        novelty, surprise = learn_novelty(filled, starts, random)
        views.append(surprise)
    if X.shape[1] == 1 or _median_share_explained(Z, R, kept, scale.judged) < _WELL_EXPLAINED:
        past, past_state, surprise = _learn_past(Z[:, scale.judged].copy(), starts)
        views.append(surprise)
    activity, E = _cross_fitted(Z, filled, starts, kept, model, scale)
    trailing = trailing_channels(E, starts, np.zeros((len(TRAILING_HORIZONS), E.shape[1])))
    by = learn_calibration(trailing)
    fitted = SensorModel(
        scale=scale,
        step=usual_step(time),
        residuals=model,
        activity=activity,
        calibration=by,
        surprise=learn_surprise(by.score(trailing)),
        novelty=novelty,
        past=past,
        past_state=past_state,
    )
    return fitted, Judgement(np.max(views, axis=0), calibration.evidence(channels))


def _standardise(R: FloatArray, filled: FloatArray, starts: BoolArray, activity: Activity) -> FloatArray:
    state = ActivityState(np.zeros(activity.directions.shape[1]))
    features = activity_features(filled, starts, activity.center, activity.directions, state)
    standardised: FloatArray = R / activity.spread(features / activity.typical)
    return standardised


def _cross_fitted(
    Z: FloatArray, filled: FloatArray, starts: BoolArray, kept: BoolArray, model: LeaveOneOut, scale: Scale
) -> tuple[Activity, FloatArray]:
    """Judge each of ten blocks of time by a model of the others: what is usual is then estimated out of sample."""
    weights = kept.astype(np.float64)
    blocks = [block for block in np.array_split(np.arange(len(Z)), _FOLDS) if len(block)]
    sums = [weighted_sums(filled[block], weights[block]) for block in blocks]
    total, rows, products = (sum(parts) for parts in zip(*sums, strict=True))
    R = np.empty_like(Z)
    for block, (one, its_rows, its_products) in zip(blocks, sums, strict=True):
        usable = total - one > 1
        others = from_sums(total - one, rows - its_rows, products - its_products) if usable else model
        R[block] = others.residuals(Z[block])
    activity = learn_activity(filled, R, starts, kept)
    E = np.ascontiguousarray(_standardise(R, filled, starts, activity)[:, scale.judged])
    return activity, E


def _median_share_explained(Z: FloatArray, R: FloatArray, kept: BoolArray, judged: BoolArray) -> float:
    variances = np.nanvar(Z[kept][:, judged], axis=0)
    left = (R[kept][:, judged] ** 2).mean(axis=0)
    return float(np.median(1 - left / np.where(variances > 0, variances, 1.0)))


def _learn_past(Z: FloatArray, starts: BoolArray) -> tuple[Past, FloatArray, FloatArray]:
    """Learn how far readings are from all earlier ones; also return the state after the last row and the surprises."""
    least, floors = float(max(30, len(Z) // 50)), 1e-3 * np.nanstd(Z, axis=0)
    state, found = np.zeros((3, Z.shape[1])), np.empty_like(Z)
    compare_with_past(Z, least, floors, state, found)
    channels = trailing_channels(found, starts, np.zeros((len(HORIZONS), Z.shape[1])), HORIZONS)
    calibration = learn_calibration(channels, 0.75)  # the last blocks are unlike the first in most series
    scores = calibration.score(channels)
    surprise = learn_surprise(scores)
    return Past(least, floors, calibration, surprise), state, surprise.apply(scores)


def _past_surprise(past: Past, Z: FloatArray, starts: BoolArray, state: SeriesState) -> FloatArray:
    found = np.empty_like(Z)
    compare_with_past(Z, past.least, past.floors, state.past, found)
    return past.surprise.apply(past.calibration.score(trailing_channels(found, starts, state.past_means, HORIZONS)))
