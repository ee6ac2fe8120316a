"""The time layer: from residuals (n, p) of any source to evidence per sensor over horizons, and to one score per row.

Residuals are divided by the spread that is usual when the plant moves as much as it does (`Activity`). Their moving
means over several horizons are the channels: |mean| trailing, or, offline, the smaller of the means before and after a
row if both have one sign. Each channel is divided by a quantile of its maxima over blocks of time (`Calibration`), so
that rows that follow each other closely do not count as independent; what lies above counts less the more the maxima
differ by themselves. A row's score is built from its one and its five largest sensors.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from functools import cached_property, partial
from typing import Any

import numpy as np
from scipy.optimize import nnls

from penstock._threads import for_each, one_blas_thread
from penstock._types import BoolArray, FloatArray, IndexArray
from penstock.sensors._kernels import (
    BOTH_SIDES,
    FADED,
    MEANS,
    SIZES,
    activity_rows,
    channel_rows,
    compare_channel,
    follow_residuals,
    multiply_rows,
    slow_levels,
    standard_rows,
    take_out_slow_changes,
)
from penstock.sensors.blocks import add_up, blocks_around, fill_blocks, follow_blocks, join_blocks, take_rows
from penstock.sensors.readings import Spacing

HORIZONS = (1, 4, 16, 64)  # rows, offline
TRAILING_HORIZONS = (1, 4)  # rows, for later rows in order: longer ones carry a fault on after its end
_SIZE_HORIZON = 8  # rows, of the mean of squares
LATER_CHANNELS = len(TRAILING_HORIZONS) + 1
ACTIVITY_HORIZONS = (4, 16)  # rows, over which the movement of the plant is followed
_LATER_QUANTILE = 0.97  # of block maxima, that channels of later rows are divided by
_BLOCKS, _FEWEST_ROWS = 50, 20  # at most so many blocks of time, of at least so many rows
_LARGEST_RATIO = 20.0
_LARGEST_SIZE = 10.0  # of a residual whose square counts
_USUAL_TAIL = 0.15  # log of the third quartile of block maxima over their median, of readings without bursts
_LEAST_POWER = 0.5
_CUT_AT = 0.99  # quantile of residuals at which they are cut, where their usual spread is fitted to all rows
_MOST_DRAWN = 50_000  # rows, evenly drawn, that quantiles of residuals are taken of
_DIRECTIONS = 3  # at most, and one for four sensors: more would let a fault excuse itself
_SMALLEST = 1e-12
_VALUES_IN_CACHE = 2**16
_FORGOTTEN = 1e-20  # of a moving mean
SLOW = 1 / 1000  # the weight of a row in a slow level


@dataclass(frozen=True)
class Activity:
    """How the variance of residuals follows the movement of the plant.

    variance_j(t) = F(t)·c_j ≥ floor_j with c_j ≥ 0 and F = [1, a, mean of a over 4 rows, over 16, e^(−s/4), e^(−s/24)];
    a is the mean squared step of the first three principal directions, s the rows since the history began anew.
    """

    center: FloatArray  # (p,)
    directions: FloatArray  # (p, d)
    typical: FloatArray  # (6,) the mean of each feature, by which it is divided
    coefficients: FloatArray  # (6, p)
    floors: FloatArray  # (p,)

    def spread(self, features: FloatArray) -> FloatArray:
        """Return the usual size of residuals (n, p) for features (n, 6) that are divided by `typical`."""
        variances = np.empty((len(features), self.coefficients.shape[1]))
        multiply_rows(features, self.coefficients, variances)
        return np.sqrt(np.maximum(variances, self.floors))


@dataclass(frozen=True)
class Movement:
    """How the plant moves from row to row, as the features of `Activity`, whatever the residuals are."""

    center: FloatArray
    directions: FloatArray
    typical: FloatArray
    features: FloatArray  # (n, 6) of the training rows, divided by `typical`


@dataclass
class ActivityState:
    """Where the features of a series stand after its last row."""

    last: FloatArray
    means: FloatArray = field(default_factory=lambda: np.zeros((2, 1)))
    since: int = 0


def activity_features(
    Z: FloatArray, spacing: Spacing, center: FloatArray, directions: FloatArray, state: ActivityState
) -> FloatArray:
    """Return the six features of each row, not yet divided by their means; `state` goes on from row to row."""
    places = join_blocks(partial(_places, center, directions), Z)
    shares = spacing.shares_over(ACTIVITY_HORIZONS)
    features = np.empty((len(Z), 6))
    state.since = int(activity_rows(places, spacing.starts, shares, state.last, state.means, state.since, features))
    return features


def learn_movement(Z: FloatArray, spacing: Spacing, kept: BoolArray) -> Movement:
    """Learn from scaled readings without holes (n, p), and the rows that count."""
    center = add_up(_sum_of_kept, Z, kept) / kept.sum()
    with one_blas_thread():
        _, vectors = np.linalg.eigh(add_up(partial(products_about, center), Z, kept))
    directions = np.ascontiguousarray(vectors[:, ::-1][:, : min(_DIRECTIONS, Z.shape[1] // 4)])
    features = activity_features(Z, spacing, center, directions, ActivityState(np.zeros(directions.shape[1])))
    typical = features.mean(axis=0) + _SMALLEST
    return Movement(center, directions, typical, features / typical)


def learn_activity(movement: Movement, residuals: FloatArray, kept: BoolArray) -> Activity:
    """Learn from residuals (n, p) and the rows that count."""
    used = movement.features[kept]
    with one_blas_thread():
        squares = used.T @ used
        root = np.linalg.cholesky(squares + 1e-9 * np.trace(squares) * np.eye(len(squares)))
        largest: Any = np.inf
        if kept.all():  # no row is set aside yet: a large fault must not excuse itself
            largest = np.quantile(np.abs(_some_rows(residuals)), _CUT_AT, axis=0) ** 2
        work = partial(_squares_by_feature, largest)
        targets = np.linalg.solve(root, add_up(work, residuals, movement.features, kept))
    coefficients = np.column_stack([nnls(root.T, target)[0] for target in targets.T])
    floors = np.maximum(1e-3 * (used.mean(axis=0) @ coefficients), _SMALLEST)
    fitted = movement.center, movement.directions, movement.typical
    return Activity(*fitted, np.ascontiguousarray(coefficients), floors)


def _places(center: FloatArray, directions: FloatArray, Z: FloatArray) -> FloatArray:
    places = np.empty((len(Z), directions.shape[1]))
    multiply_rows(np.ascontiguousarray(Z - center), directions, places)
    return places


def _sum_of_kept(Z: FloatArray, kept: BoolArray) -> FloatArray:
    return np.asarray(Z[kept].sum(axis=0))


def products_about(center: FloatArray, Z: FloatArray, kept: BoolArray | None = None) -> FloatArray:
    """Return the sums of products (p, p) of deviations from the center, over the rows that are kept."""
    deviations = (Z if kept is None else Z[kept]) - center
    with one_blas_thread():
        products: FloatArray = deviations.T @ deviations
    return products


def _squares_by_feature(
    largest: FloatArray, residuals: FloatArray, features: FloatArray, kept: BoolArray
) -> FloatArray:
    with one_blas_thread():
        totals: FloatArray = features[kept].T @ np.minimum(residuals[kept] ** 2, largest)
    return totals


def _some_rows(array: Any) -> Any:
    """Return at most some 50,000 rows, evenly drawn, for quantiles."""
    return take_rows(array, slice(None, None, 1 + len(array) // _MOST_DRAWN))


@dataclass(frozen=True)
class Calibration:
    """What channels and scores are divided by: quantiles of their maxima over blocks of time.

    powers : (number of horizons, p) of ratios above 1, at most 1: below where the block maxima of a sensor differ much,
        as bursts are usual then.
    edges : (number of horizons, p) what is divided by for evidence: from the third quartile, which a fault of the
        sensor itself does not move.
    """

    channels: FloatArray  # (number of horizons, p)
    powers: FloatArray
    edges: FloatArray
    tops: FloatArray  # (number of horizons, 2) of the mean of the one and of the five largest sensors
    leads: BoolArray  # (p,) sensors that may be a row's largest; others count at most as much as the largest of these

    def score(self, channels: Iterable[FloatArray]) -> tuple[FloatArray, FloatArray]:
        """Return two sizes of each row (n, 2) and the evidence of each sensor (n, p) from the channels, each (n, p).

        Evidence is the largest channel of a sensor: 1 at the edge of what is usual.
        """
        sizes: Any = None
        evidence: Any = None
        fitted = zip(self.channels, self.powers, self.edges, self.tops, strict=True)
        for channel, (by, powers, edges, tops) in zip(channels, fitted, strict=True):
            evidence = np.zeros(channel.shape) if evidence is None else evidence
            largest = np.empty((len(channel), 2))
            compare_channel(channel, by, powers, edges, self.leads, _LARGEST_RATIO, largest, evidence)
            sizes = _add_sizes(sizes, largest, tops)
            del channel  # before the next one is made
        return _mean_sizes(sizes, self.tops), evidence


class _Followed:
    """Channels of rows in memory, by chunks of rows that stay in the cache while they are looked at."""

    def __init__(self, channels: Channels, E: FloatArray, rows: tuple[Any, ...]) -> None:
        """rows : of the rows of E, as `Channels` hands them out."""
        self.kinds, self.E = channels.kinds, E
        self._rows = [np.ascontiguousarray(each.T) for each in rows]
        size = max(_FEWEST_ROWS, _VALUES_IN_CACHE // E.shape[1])
        self.chunks = [slice(first, min(first + size, len(E))) for first in range(0, len(E), size)]

    def channel(self, h: int, chunk: slice, state: FloatArray) -> FloatArray:
        """Return a channel of a chunk; its state (3, p), two rows before the chunk and one after it, goes on."""
        starts, shares, ends, shares_back = self._rows
        values, back = self.E[chunk], shares_back[h, chunk]
        out = np.empty(values.shape)
        channel_rows(
            self.kinds[h], values, starts[chunk], shares[h, chunk], state[:2], ends[chunk], back, state[2], out
        )
        return out

    def states(self, note: Callable[[int, slice, FloatArray], None] | None = None) -> FloatArray:
        """Return the states around each chunk, (chunks, channels, 3, p).

        note : called with each channel of each chunk.
        """
        states = np.zeros((len(self.chunks), len(self.kinds), 3, self.E.shape[1]))

        def do(h: int) -> None:
            state = np.zeros(states.shape[2:])
            for number in reversed(range(len(states))) if self.kinds[h] == BOTH_SIDES else ():
                states[number, h, 2] = state[2]
                self.channel(h, self.chunks[number], state)
            state[:] = 0.0
            for number, chunk in enumerate(self.chunks):
                states[number, h, :2], state[2] = state[:2], states[number, h, 2]
                channel = self.channel(h, chunk, state)
                if note is not None:
                    note(h, chunk, channel)

        for_each(do, range(len(self.kinds)))
        return states


@dataclass(frozen=True)
class Channels:
    """How residuals of a series are seen over time: the kinds of `channel_rows`, and their horizons.

    No channel is in memory as a whole: it is computed once for its maxima over blocks of time, and once to be compared
    with what follows from these.
    """

    kinds: tuple[int, ...]
    horizons: tuple[int, ...]

    def maxima(self, E: FloatArray, spacing: Spacing) -> tuple[FloatArray, FloatArray | None]:
        """Return `block_maxima` of each channel of residuals (n, p), (number of channels, blocks, p).

        Returns also what `largest` needs, if it was all in one block.
        """
        edges = _block_edges(len(E))
        maxima = np.full((len(self.kinds), len(edges) - 1, E.shape[1]), -np.inf)
        numbers = np.repeat(np.arange(len(edges) - 1), np.diff(edges))
        found = self._each(self._maxima_of_rows, E, spacing, numbers)
        for first, part, _ in found:
            some = maxima[:, first : first + part.shape[1]]
            np.maximum(some, part, out=some)
        return maxima, found[0][2] if len(found) == 1 else None

    def largest(
        self, E: FloatArray, spacing: Spacing, states: Any, calibration: tuple[Any, ...], evidence: FloatArray | None
    ) -> FloatArray:
        """Return the largest ratio of each row and the mean of its five, (n, channels, 2); see `compare_channel`.

        calibration : by, powers, edges (number of channels, p), and leads (p,).
        evidence : (n, p) is raised; or None.
        """
        work = partial(self._largest_of_rows, states, calibration)
        return np.concatenate(self._each(work, E, spacing, *(() if evidence is None else (evidence,))))

    def _each(self, work: Any, E: FloatArray, spacing: Spacing, *more: Any) -> list[Any]:
        back = spacing.reversed()
        shares = spacing.shares_over(self.horizons), back.shares_over(self.horizons)[:, ::-1]
        around = _rows_remembered(min(1 - FADED, *(each.min() for each in shares)))
        return blocks_around(work, around, E, spacing.starts, shares[0].T, back.starts[::-1], shares[1].T, *more)

    def _maxima_of_rows(self, inner: slice, E: FloatArray, *rows: Any) -> tuple[int, FloatArray, FloatArray]:
        """Return the first of the numbers of the inner rows, their maxima, and states if there are no other rows."""
        numbers = rows[-1] - rows[-1][inner.start]
        maxima = np.full((len(self.kinds), int(numbers[inner.stop - 1]) + 1, E.shape[1]), -np.inf)

        def note(h: int, chunk: slice, channel: FloatArray) -> None:
            low, high = max(chunk.start, inner.start), min(chunk.stop, inner.stop)
            if low < high:
                begins = np.append(0, np.flatnonzero(np.diff(numbers[low:high])) + 1)
                part = np.maximum.reduceat(channel[low - chunk.start : high - chunk.start], begins, axis=0)
                some = numbers[low:high][begins]
                maxima[h, some] = np.maximum(maxima[h, some], part)

        states = _Followed(self, E, rows[:-1]).states(note)
        return int(rows[-1][inner.start]), maxima, states if inner == slice(0, len(E)) else states[:0]

    def _largest_of_rows(
        self, states: FloatArray | None, calibration: tuple[Any, ...], inner: slice, E: FloatArray, *rows: Any
    ) -> FloatArray:
        by, powers, edges, leads = calibration
        followed, found = _Followed(self, E, rows[:4]), np.empty((len(self.kinds), len(E), 2))
        around = followed.states() if states is None else states
        evidence = rows[4] if len(rows) > 4 else np.zeros((0, E.shape[1]))
        raised = evidence if inner == slice(0, len(E)) else np.zeros((len(E) if len(evidence) else 0, E.shape[1]))

        def do(number: int) -> None:
            chunk = followed.chunks[number]
            for h in range(len(self.kinds)):
                channel, into = followed.channel(h, chunk, around[number, h]), (found[h, chunk], raised[chunk])
                compare_channel(channel, by[h], powers[h], edges[h], leads, _LARGEST_RATIO, *into)

        for_each(do, range(len(around)))
        if raised is not evidence and len(evidence):
            evidence[inner] = raised[inner]
        return np.ascontiguousarray(found[:, inner].swapaxes(0, 1))


LATER = Channels((MEANS, MEANS, SIZES), (*TRAILING_HORIZONS, _SIZE_HORIZON))  # of later rows
OFFLINE = Channels((BOTH_SIDES,) * len(HORIZONS), HORIZONS)
TRAILING = Channels((MEANS,) * len(HORIZONS), HORIZONS)


def calibrate(
    channels: Channels,
    E: FloatArray,
    spacing: Spacing,
    leads: BoolArray,
    quantile: float = 0.95,
    usual_tail: float = _USUAL_TAIL,
    *,
    evidence: FloatArray | None = None,
) -> tuple[Calibration, FloatArray]:
    """Learn what channels of training rows are divided by: this quantile of their block maxima.

    E : (n, p) residuals.
    leads : (p,) sensors that may be a row's largest; all of them if there are none.

    Ratios count less where the logarithm of the third quartile of the maxima over their median exceeds `usual_tail`.

    evidence : (n, p) takes the evidence of the sensors, as `Calibration.score` gives it; it begins as 0.

    Returns also the sizes (n, 2) of the training rows, as `Calibration.score` gives them.
    """
    leads = leads if leads.any() else ~leads
    maxima, states = channels.maxima(E, spacing)
    middle, third, by = np.quantile(maxima, [0.5, 0.75, quantile], axis=1)
    tails = np.log(np.maximum(third, _SMALLEST) / np.maximum(middle, _SMALLEST))
    powers = np.clip(usual_tail / np.maximum(tails, _SMALLEST), _LEAST_POWER, 1.0)
    edges = np.empty_like(by)
    for place, (high, wanted) in enumerate(zip(third, by, strict=True)):
        moves = high > 0
        edges[place] = high * np.median(wanted[moves] / high[moves]) if moves.any() else wanted
    largest = channels.largest(E, spacing, states, (by, powers, edges, leads), evidence)
    tops: list[FloatArray] = []
    sizes: Any = None
    for each in largest.swapaxes(0, 1):
        usual = np.quantile(block_maxima(each), quantile, axis=0)
        tops.append(np.where(usual > 0, usual, 1.0))
        sizes = _add_sizes(sizes, each, tops[-1])
    calibration = Calibration(by, powers, edges, np.array(tops), leads)
    return calibration, _mean_sizes(sizes, calibration.tops)


def trailing_channels(
    evidence: FloatArray, spacing: Spacing, state: FloatArray, horizons: tuple[int, ...] = TRAILING_HORIZONS
) -> Iterator[FloatArray]:
    """Yield |moving mean| of each horizon, bounded by the present; `state` (number of horizons, p) goes on."""
    for number, horizon in enumerate(horizons):
        means, starts, shares = np.empty_like(evidence), spacing.starts, spacing.shares(horizon)
        channel_rows(MEANS, evidence, starts, shares, state[number : number + 1], starts, shares, state[number], means)
        yield means
        del means  # before the next one is made


def _rows_remembered(share: float) -> int:
    """Return after how many rows with at least this weight a moving mean has forgotten what was before, to rounding."""
    return 0 if share >= 1 else int(np.ceil(np.log(_FORGOTTEN) / np.log1p(-share)))


@dataclass(frozen=True)
class Surprise:
    """Where the logarithms of block maxima of a row's sizes lie: their medians, and their spreads of at least 0.1."""

    median: FloatArray  # (number of sizes,)
    spread: FloatArray

    def apply(self, sizes: FloatArray) -> FloatArray:
        """Return how far a row stands above the usual block maximum, in spreads of block maxima, by its largest size.

        sizes : (n, number of sizes).
        """
        return np.asarray(((np.log(np.maximum(sizes, _SMALLEST)) - self.median) / self.spread).max(axis=1))


def learn_surprise(sizes: FloatArray) -> Surprise:
    """Learn from the sizes (n, number of sizes) of training rows in order of time."""
    maxima = np.log(np.maximum(block_maxima(sizes), _SMALLEST))
    median = np.median(maxima, axis=0)
    return Surprise(median, np.maximum(0.1, 1.4826 * np.median(np.abs(maxima - median), axis=0)))


@dataclass
class LayerState:
    """Where the channels, the features of activity and the slow levels stand after the last row of a series."""

    means: FloatArray  # (number of channels + 1, q), the faded sizes last
    activity: ActivityState
    levels: FloatArray  # (2, q) level and spread of each sensor's residuals
    rows: int = 0  # that the levels have followed


@dataclass(frozen=True)
class TimeLayer:
    """Score residuals of rows that follow the training rows, whatever the source of the residuals.

    activity, calibration, surprise : what is usual, fitted to the training rows.
    """

    scored: BoolArray  # (p,) sensors that are scored
    activity: Activity
    calibration: Calibration
    surprise: Surprise

    def start(self) -> LayerState:
        """Return the state of a series of which no row was scored yet."""
        q = len(self._columns)
        activity = ActivityState(np.zeros(self.activity.directions.shape[1]))
        return LayerState(np.zeros((LATER_CHANNELS + 1, q)), activity, _first_levels(q))

    def score(
        self, residuals: FloatArray, Z: FloatArray, spacing: Spacing, state: LayerState
    ) -> tuple[FloatArray, FloatArray]:
        """Return the surprise (n,) and the evidence of all sensors (n, p) of the next rows, by what came before them.

        residuals, Z : (n, p) residuals, and scaled readings without holes.
        state : goes on from row to row.
        """
        sizes, evidence = np.empty((len(Z), 2)), np.zeros((len(Z), len(self._columns)))
        moved, usual = self.activity, self.calibration
        since, rows = follow_residuals(
            residuals,
            Z,
            spacing.starts,
            spacing.runs,
            spacing.shares_over((*ACTIVITY_HORIZONS, *LATER.horizons)),
            (moved.center, moved.directions, moved.typical, moved.coefficients, moved.floors),
            self._columns,
            (usual.channels, usual.powers, usual.edges, usual.tops, usual.leads),
            _LARGEST_RATIO,
            (state.activity.last, state.activity.means, state.means, state.levels),
            state.activity.since,
            state.rows,
            sizes,
            evidence,
        )
        state.activity.since, state.rows = int(since), int(rows)
        return self.surprise.apply(sizes), self.on_all_sensors(evidence)

    @cached_property
    def _columns(self) -> IndexArray:
        return np.flatnonzero(self.scored)

    def score_single_rows(self, residuals: FloatArray) -> FloatArray:
        """Return the surprise (n,) at rows without history, each as if the plant had moved as usual before it."""
        E = np.abs(residuals / self.activity.spread(np.ones((1, 6))))[:, self.scored].copy()
        sizes = np.minimum(E, _LARGEST_SIZE) / np.sqrt(_SIZE_HORIZON)
        found, _ = self.calibration.score([*(E / horizon for horizon in TRAILING_HORIZONS), sizes])
        return self.surprise.apply(found)

    def on_all_sensors(self, evidence: FloatArray) -> FloatArray:
        """Return the evidence of scored sensors (n, q) as that of all (n, p): 0 for the others."""
        if len(self._columns) == len(self.scored):
            return evidence
        found = np.zeros((len(evidence), len(self.scored)))
        found[:, self.scored] = evidence
        return found


def learn_time_layer(
    residuals: FloatArray,
    movement: Movement,
    spacing: Spacing,
    kept: BoolArray,
    scored: BoolArray,
    leads: BoolArray,
) -> tuple[TimeLayer, FloatArray]:
    """Learn what is usual from residuals of training rows that they did not decide themselves, where that is possible.

    scored, leads : (p,) sensors that are scored, and those of them that may be a row's largest.

    Returns also the surprise (n,) at the training rows, by what came before them.
    """
    activity = learn_activity(movement, residuals, kept)
    E = standardise(residuals, movement, activity, scored)
    q = int(scored.sum())
    E, _ = follow_blocks(q, _without_slow_changes, (_first_levels(q), 0), E, spacing.runs, into=E)
    calibration, sizes = calibrate(LATER, E, spacing, leads[scored], _LATER_QUANTILE)
    surprise = learn_surprise(sizes)
    return TimeLayer(scored, activity, calibration, surprise), surprise.apply(sizes)


def _first_levels(q: int) -> FloatArray:
    """Return the level, 0, and the spread, 1, of residuals of which no row was followed."""
    return np.array([np.zeros(q), np.ones(q)])


def _without_slow_changes(
    state: tuple[FloatArray, int], E: FloatArray, starts: BoolArray
) -> tuple[FloatArray, tuple[FloatArray, int]]:
    levels, found = state[0].copy(), np.empty(E.shape)
    rows = take_out_slow_changes(np.ascontiguousarray(E), starts, levels, state[1], found)
    return found, (levels, int(rows))


@dataclass(frozen=True)
class BothSides:
    """What residuals say of training rows by what came before and after each.

    scores : how far a row stands above the usual, as `Surprise` has it.
    residuals : in units of the spread that is usual when the plant moves as it does.
    tail : of the median sensor, the 0.99 quantile of its residuals over the third quartile: 2.24 for normal noise, more
        where bursts are usual. NaN where rows were set aside.
    """

    scores: FloatArray  # (n,)
    evidence: FloatArray  # (n, number of scored sensors)
    tail: float
    residuals: FloatArray  # (n, number of scored sensors)
    spacing: Spacing
    leads: BoolArray

    def surprise_before(self) -> FloatArray:
        """Return the surprise (n,) by what came before each row alone, in the channels of later rows."""
        _, sizes = calibrate(LATER, self.residuals, self.spacing, self.leads)
        return _by_many(sizes)


def score_both_sides(
    residuals: FloatArray,
    movement: Movement,
    spacing: Spacing,
    kept: BoolArray,
    scored: BoolArray,
    leads: BoolArray,
    earlier: BothSides | None = None,
) -> BothSides:
    """Score training rows by what came before and after each.

    earlier : what was said of these rows before, and is not needed any more: its memory is taken.
    """
    activity = learn_activity(movement, residuals, kept)
    into = (None, None) if earlier is None else (earlier.residuals, earlier.evidence)
    E, leads = standardise(residuals, movement, activity, scored, into=into[0]), leads[scored]
    evidence = fill_blocks(E.shape[1], np.zeros_like, E, into=into[1])
    _, sizes = calibrate(OFFLINE, E, spacing, leads, evidence=evidence)
    tail = np.nan
    if kept.all():  # faults make the tail where they are not fitted to
        tails = [np.quantile(np.abs(column), [0.75, 0.99]) for column in _some_rows(E).T]
        tail = float(np.median([extreme / max(high, _SMALLEST) for high, extreme in tails]))
    return BothSides(_by_many(sizes), evidence, tail, E, spacing, leads)


def _by_many(sizes: FloatArray) -> FloatArray:
    """Return the surprise by the first size alone: one sensor's largest channel in a record tells faults less well."""
    return learn_surprise(sizes[:, :1]).apply(sizes[:, :1])


def standardise(
    residuals: FloatArray, movement: Movement, activity: Activity, scored: BoolArray, into: FloatArray | None = None
) -> FloatArray:
    """Return residuals of scored sensors in units of the spread that is usual when the plant moves as it does."""
    work = partial(_over_spread, activity, np.flatnonzero(scored))
    return fill_blocks(int(scored.sum()), work, residuals, movement.features, into=into)


def _over_spread(activity: Activity, scored: IndexArray, residuals: FloatArray, features: FloatArray) -> FloatArray:
    found = np.empty((len(residuals), len(scored)))
    standard_rows(residuals, features, activity.coefficients, activity.floors, scored, found)
    return found


def over_slow_level(scores: FloatArray, usual: float) -> FloatArray:
    """Return scores over their level of about the last 1,000 rows, which begins as `usual` and is at least that.

    A level that stays, as in another season, is no fault; peaks hardly move it.
    """
    levels = np.empty(len(scores))
    slow_levels(scores, SLOW, usual, np.array([usual]), levels)
    return scores / levels


def block_maxima(values: FloatArray) -> FloatArray:
    """Return the largest value of each column in each of at most 50 blocks of consecutive rows."""
    return np.maximum.reduceat(values, _block_edges(len(values))[:-1], axis=0)


def _block_edges(n: int) -> IndexArray:
    count = int(min(_BLOCKS, max(4, n // _FEWEST_ROWS), n))
    return np.arange(count + 1) * n // count


def _add_sizes(sizes: FloatArray | None, largest: FloatArray, tops: FloatArray) -> FloatArray:
    """Return the sum of squares of the largest sensor and of the five, and the largest sensor, of channels so far.

    sizes : (n, 2) of the channels before; None at the first. Each channel is divided by what is usual.
    """
    relative = largest / tops
    found = np.column_stack([(relative**2).sum(axis=1), relative[:, 0]])
    if sizes is not None:
        found[:, 0] += sizes[:, 0]
        np.maximum(found[:, 1], sizes[:, 1], out=found[:, 1])
    return found


def _mean_sizes(sizes: FloatArray, tops: FloatArray) -> FloatArray:
    """Return the root of the mean of squares, for many sensors and channels, and the largest sensor in any: (n, 2)."""
    return np.column_stack([np.sqrt(sizes[:, 0] / tops.size), sizes[:, 1]])
