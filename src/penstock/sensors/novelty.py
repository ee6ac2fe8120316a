"""How new a state of the plant is: the distance to the third nearest reference row that is not close in time.

Sensors that move together in an unusual way explain each other, and only the state as a whole is new. Rows close in
time are left out, as a lasting fault is near itself; a level that stays (another season) is divided out.

A single sensor has no state but its recent course: its readings now and 1, 2, 4, 8 and 16 rows before.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cached_property, partial

import numpy as np

from penstock._threads import one_blas_thread
from penstock._types import BoolArray, FloatArray
from penstock.sensors._kernels import follow_states, moving_means, multiply_rows, third_nearest
from penstock.sensors.blocks import add_up, blocks_around, join_blocks, take_rows
from penstock.sensors.evidence import SLOW, Surprise, learn_surprise, over_slow_level, products_about
from penstock.sensors.readings import Spacing

_DIRECTIONS = 30
_MOVES, _LEAST_VARIANCE = 1e-12, 1e-9  # of a scaled column, and of a direction
_REFERENCES = 3000
_GROUP = 64  # references that are compared at once
_ZONE = 0.2  # of the training rows: closer ones are close in time
_HORIZON = 4  # rows
_LAGS = (0, 1, 2, 4, 8, 16)  # rows, of the recent course of a single sensor
COURSE, RECENT = len(_LAGS), _LAGS[-1]  # readings of a course, and the rows that it goes back
_COURSE_HORIZON = 16  # rows
_LEAST_COURSE_VARIANCE = 1e-4  # of a direction of courses: less is rounding
_COURSE_DISCOUNT = 2.0  # surprises at courses are divided by: what readings themselves say comes first
_NEWS = 16  # rows for which a level is new in a column that did not move before
_NEW = np.iinfo(np.int64).max // 4  # the place of rows that are not training rows: far from all of them


@dataclass(frozen=True)
class Novelty:
    """Reference rows in half-whitened principal directions, or the courses of one sensor in whitened ones."""

    center: FloatArray  # (c,) c columns of a state: p, or 6 of a course
    directions: FloatArray  # (c, d) principal directions, each divided by a root of its variance
    references: FloatArray  # (m, d)
    places: np.ndarray  # (m,) their row numbers in training
    zone: int  # references closer to a training row than so many rows are left out
    usual: float  # median distance of the training rows; the slow level is at least this
    surprise: Surprise
    constant: BoolArray  # (c,) columns that did not move
    horizon: int = _HORIZON  # rows over which distances are averaged
    column: int = -1  # of the sensor whose course this is; -1 where states are rows

    def score(self, Z: FloatArray, spacing: Spacing, state: NoveltyState) -> FloatArray:
        """Return the surprise at rows that follow the training rows; `state` goes on from row to row."""
        if self.column >= 0:
            Z = follow_course(Z[:, self.column], spacing.starts, state.recent)
        elif self.constant.any():
            Z = self._news(Z, spacing, state)
        relative, shares = np.empty(len(Z)), spacing.shares_over((self.horizon,))[0]
        known = self.center, self.directions, self._groups, self.places
        follow_states(Z, spacing.starts, shares, known, SLOW, self.usual, (state.mean, state.level), relative)
        return self.surprise.apply(relative[:, None])

    def _news(self, Z: FloatArray, spacing: Spacing, state: NoveltyState) -> FloatArray:
        """Return readings with those of columns that did not move less their mean over the last rows.

        A set point that is moved for the first time is news. A level that stays is not, nor is one that is as ever.
        """
        columns, last = Z[:, self.constant].copy(), state.constant_means[self.constant]
        means, goes_on = np.empty(columns.shape), np.zeros(len(Z), dtype=np.bool_)  # over gaps, too
        moving_means(columns, goes_on, spacing.shares(_NEWS), last, means)
        state.constant_means[self.constant] = last
        news = Z.copy()
        news[:, self.constant] = np.where(columns == 0.0, 0.0, columns - means)
        return news

    def with_constants(self, center: FloatArray, directions: FloatArray, constant: BoolArray) -> Novelty:
        """Return the same for more columns, some of which did not move: each is a direction, if there is room for them.

        center, directions : of all columns, 0 for those that did not move.
        """
        room = directions.shape[1] + np.count_nonzero(constant) <= _DIRECTIONS
        more = np.eye(len(constant))[:, constant if room else []] / _LEAST_VARIANCE**0.25
        references = np.hstack([self.references, np.zeros((len(self.references), more.shape[1]))])
        wider = np.ascontiguousarray(np.hstack([directions, more]))
        return replace(self, center=center, directions=wider, references=references, constant=constant)

    def score_single_rows(self, Z: FloatArray) -> FloatArray:
        """Return the surprise at rows without history."""
        return self.surprise.apply(self.distances(Z, np.full(len(Z), _NEW))[:, None] / self.usual)

    def distances(self, Z: FloatArray, places: np.ndarray) -> FloatArray:
        """Return the distance of each row without holes to its third nearest reference outside its time zone."""
        squares, states = np.empty(len(Z)), np.empty((len(Z), self.directions.shape[1]))
        multiply_rows(np.ascontiguousarray(Z - self.center), self.directions, states)
        third_nearest(states, places, self._groups, self.places, self.zone, squares)
        return np.sqrt(np.maximum(squares, 0.0))

    @cached_property
    def _groups(self) -> FloatArray:
        return group_references(self.references)


def group_references(references: FloatArray) -> FloatArray:
    """Return reference rows (m, d) in groups of 64 as `third_nearest` takes them, (groups, d, 64), filled up with 0."""
    m, d = references.shape
    padded = np.zeros((-(-m // _GROUP) * _GROUP, d))
    padded[:m] = references
    return np.ascontiguousarray(padded.reshape(-1, _GROUP, d).transpose(0, 2, 1))


@dataclass
class NoveltyState:
    """Where the moving means and the slow level stand after the last row of a series."""

    constant_means: FloatArray  # (p,) of columns that did not move in training, 0 for others
    level: FloatArray
    recent: FloatArray = field(default_factory=lambda: np.zeros(RECENT))  # readings, of a single sensor
    mean: FloatArray = field(default_factory=lambda: np.zeros(1))


def learn_novelty(
    Z: FloatArray, spacing: Spacing, random: np.random.RandomState
) -> tuple[Novelty, FloatArray, FloatArray]:
    """Learn from scaled readings without holes (n, p); of a single sensor from its courses.

    Returns also the surprise (n,) at the training rows: by the smaller of what came before and after each, and by what
    came before.
    """
    horizon, column, power, least, discount = _HORIZON, -1, 0.25, _LEAST_VARIANCE, 1.0
    if Z.shape[1] == 1:
        Z = np.concatenate(blocks_around(_courses_of_rows, RECENT, Z, spacing.starts))
        horizon, column, power = _COURSE_HORIZON, 0, 0.5
        least, discount = _LEAST_COURSE_VARIANCE, _COURSE_DISCOUNT
    center = add_up(partial(np.sum, axis=0), Z) / len(Z)
    with one_blas_thread():
        covariance = add_up(partial(products_about, center), Z) / len(Z)
        variances, vectors = np.linalg.eigh(covariance)
    kept = slice(None, -_DIRECTIONS - 1, -1)
    directions = np.ascontiguousarray(vectors[:, kept] / np.maximum(variances[kept], least) ** power)
    places = np.sort(random.permutation(len(Z))[:_REFERENCES]).astype(np.int64)
    references = np.empty((len(places), directions.shape[1]))
    multiply_rows(np.ascontiguousarray(take_rows(Z, places) - center), directions, references)
    zone, constant = int(_ZONE * len(Z)), np.diag(covariance) < _MOVES
    none = Surprise(np.zeros(1), np.ones(1))
    found = Novelty(center, directions, references, places, zone, 0.0, none, constant, horizon, column)
    distances = join_blocks(found.distances, Z, np.arange(len(Z)))
    usual = max(float(np.median(distances)), 1e-12)
    relative = _relative(distances, spacing, usual, horizon)[:, None]
    surprise = learn_surprise(relative)
    surprise = replace(surprise, spread=discount * surprise.spread)
    backwards = _relative(distances[::-1].copy(), spacing.reversed(), usual, horizon)[::-1]
    smaller = np.minimum(relative, backwards[:, None])
    novelty = replace(found, usual=usual, surprise=surprise)
    return novelty, learn_surprise(smaller).apply(smaller) / discount, surprise.apply(relative)


def _courses_of_rows(inner: slice, Z: FloatArray, starts: BoolArray) -> FloatArray:
    return _courses(Z, starts)[inner]


def _courses(Z: FloatArray, starts: BoolArray) -> FloatArray:
    """Return the course (n, 6) of one column (n, 1); it begins with the first reading since the history began."""
    rows = np.arange(len(Z))
    begin = np.maximum.accumulate(np.where(starts, rows, 0))
    return np.column_stack([Z[np.maximum(rows - lag, begin), 0] for lag in _LAGS])


def follow_course(values: FloatArray, starts: BoolArray, recent: FloatArray) -> FloatArray:
    """Return the course (n, 6) of the next readings (n,) of one sensor; `recent` (16,) goes on from row to row.

    >>> recent = np.zeros(RECENT)
    >>> first = follow_course(np.array([1.0, 2.0]), np.array([True, False]), recent)
    >>> follow_course(np.array([3.0]), np.array([False]), recent).tolist()
    [[3.0, 2.0, 1.0, 1.0, 1.0, 1.0]]
    """
    readings = np.concatenate([recent, values])
    begins = np.concatenate([np.zeros(RECENT, dtype=np.bool_), starts])
    found = np.flatnonzero(begins)
    places = np.arange(len(values), len(readings))
    recent[:] = readings[np.maximum(places, found[-1]) if len(found) else places]
    return np.ascontiguousarray(_courses(readings[:, None], begins)[RECENT:])


def _relative(distances: FloatArray, spacing: Spacing, usual: float, horizon: int) -> FloatArray:
    """Return trailing means of distances over their slow level."""
    means = np.empty((len(distances), 1))
    moving_means(distances[:, None].copy(), spacing.starts, spacing.shares(horizon), np.zeros(1), means)
    return over_slow_level(means[:, 0].copy(), usual)
