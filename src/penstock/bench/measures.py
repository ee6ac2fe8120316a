"""Measure how well scores find known anomalies: row by row, and in series event by event.

An event is a stretch of rows: of the truth, known rows that follow each other; of a detector, flagged rows at most six
steps of time apart, as `penstock.explain.group_events` joins them. The slow twins are in tests/naive/measures.py.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray
from sklearn.metrics import average_precision_score, roc_auc_score

from penstock._types import BoolArray, FloatArray, IndexArray
from penstock.explain import Events, Incident, group_events
from penstock.explain.events import clock_of
from penstock.explain.labels import fault_spans
from penstock.ranking import checked_labels

N_THRESHOLDS = 250  # of VUS-PR, as in TSB-AD
_NO_PERIOD = 125  # rows, the buffer where no period is found, as in TSB-AD
_PERIODS = (6, 303)  # rows: the shortest and the longest period that counts, as in TSB-AD
_MOST_LAGS, _MOST_ROWS = 400, 20_000  # by which and of which the period is found, as in TSB-AD
DRAWS = 500  # of a bootstrap
_FEWEST_BLOCKS = 2


def roc_auc(y: ArrayLike, scores: ArrayLike) -> float:
    """Return the area under the ROC curve: the chance that an anomaly scores above a normal row.

    >>> roc_auc([1, 0, 0], [3.0, 1.0, 3.0])
    0.75
    """
    return float(roc_auc_score(*checked_labels(y, scores)))


def average_precision(y: ArrayLike, scores: ArrayLike) -> float:
    """Return the average precision, the area under the precision-recall steps.

    >>> average_precision([1, 0, 0, 1], [4.0, 3.0, 2.0, 1.0])
    0.75
    """
    return float(average_precision_score(*checked_labels(y, scores)))


def vus_pr(y: ArrayLike, scores: ArrayLike, buffer: int = 100, *, groups: ArrayLike | None = None) -> float:
    """Return VUS-PR, the volume under the surface of precision, recall and tolerance (Paparrizos et al., VLDB 2022).

    Labels fade out over a buffer at both ends of each anomaly, so that an alarm just before or after it counts in part;
    recall also counts how many of the anomalies are touched at all. The area under precision and recall is averaged
    over all buffers from 0 to `buffer` rows. Computed as in TSB-AD (Liu and Paparrizos, NeurIPS 2024), at 250
    thresholds. Use it for series, where labels begin and end a little too early or late; for rows without an order use
    `average_precision`.

    Parameters
    ----------
    y : array-like of shape (n,)
        1 for a row of an anomaly, 0 for the others, in order of time.
    scores : array-like of shape (n,)
        High is anomalous.
    buffer : int, default=100
        The longest buffer in rows, half of it on each side. For figures that compare with those of TSB-AD give the
        period of the series, `vus_buffer(X)`; 100 is what TSB-AD takes where it is not told the period. The code of
        2022 took twice the period.
    groups : array-like of shape (n,), default=None
        Which run each row is of; a buffer ends where the run does.

    Returns
    -------
    float
        1 if the highest scores are those of the anomalies.

    Examples
    --------
    >>> y = [0, 0, 0, 1, 1, 1, 0, 0, 0, 0]
    >>> round(vus_pr(y, [0, 0, 0, 5, 5, 5, 0, 0, 0, 0], 3), 3)
    1.0
    >>> late, lost = [0, 0, 0, 0, 5, 5, 5, 0, 0, 0], [5, 5, 0, 0, 5, 0, 0, 0, 0, 0]
    >>> vus_pr(y, late, 3) > average_precision(y, late) > vus_pr(y, lost, 3)
    True
    """
    labels, values = checked_labels(y, scores)
    n = len(labels)
    starts = clock_of(None, n, groups).starts
    bounds = np.append(starts, n)
    first, last = fault_spans(labels.astype(np.bool_), clock_of(None, n, groups), 1)
    run = np.searchsorted(starts, first, side="right")
    lowest, highest = bounds[run - 1], bounds[run] - 1
    if buffer < 0:
        raise ValueError(f"buffer must be a number of rows from 0 on; got {buffer!r}.")
    # A row is flagged from one of the thresholds on, the `reached`-th: all sums over flagged rows are cumulative.
    ordered = -np.sort(-values)
    cuts = ordered[np.linspace(0, n - 1, N_THRESHOLDS).astype(np.intp)]
    reached = np.searchsorted(-cuts, -values, side="left")

    def flagged(rows: IndexArray, weights: FloatArray | None = None) -> FloatArray:
        return np.bincount(reached[rows], weights, N_THRESHOLDS).cumsum()

    n_flagged, inside = flagged(np.arange(n)), flagged(np.flatnonzero(labels))
    areas = []
    for length in range(buffer + 1):
        half = length // 2
        soft = np.zeros(n)
        for away in range(1, half + 1):
            weight = np.sqrt(1 - away / length)
            before, after = first - away, last + away
            np.add.at(soft, before[before >= lowest], weight)
            np.add.at(soft, after[after <= highest], weight)
        near = np.flatnonzero((soft > 0) & (labels == 0))
        around = flagged(near, np.minimum(soft[near], 1.0))
        low, high = np.maximum(first - half, lowest), np.minimum(last + half, highest)
        apart = np.append(True, (first[1:] - half > last[:-1] + half) | (run[1:] != run[:-1]))
        zones = np.column_stack([low[apart], high[np.append(apart[1:], True)] + 1]).ravel()
        # The lowest number of a threshold in each zone; a zone may end where the table does.
        seen = np.minimum.reduceat(np.append(reached, N_THRESHOLDS), zones)[::2]
        touched = np.bincount(seen, minlength=N_THRESHOLDS + 1)[:N_THRESHOLDS].cumsum() / len(seen)
        hits, positives = inside + around, labels.sum() + around / 2
        recall = np.minimum(hits / positives, 1.0) * touched
        areas.append(float(np.diff(recall, prepend=0.0) @ (hits / n_flagged)))
    return float(np.mean(areas))


def vus_buffer(X: ArrayLike) -> int:
    """Return the buffer of `vus_pr` in rows that TSB-AD takes for a series: the period of its first column.

    The period is the lag of the highest peak of the autocorrelation from a lag of 4 rows on, of 400 lags and 20,000
    rows at most. Where there is no peak, or the highest is at fewer than 6 or more than 303 rows, it is 125.

    Parameters
    ----------
    X : array-like of shape (n,) or (n, p)
        Readings in order of time; missing ones are left out.

    Returns
    -------
    int

    Examples
    --------
    >>> vus_buffer(np.sin(2 * np.pi * np.arange(1000) / 24)), vus_buffer(np.ones(1000))
    (24, 125)
    """
    values = np.asarray(X, dtype=np.float64)
    column = values if values.ndim == 1 else values[:, 0]
    column = column[np.isfinite(column)][:_MOST_ROWS]
    if len(column) < _PERIODS[0] or np.ptp(column) == 0:
        return _NO_PERIOD
    deviations = column - column.mean()
    lags = np.arange(3, min(_MOST_LAGS, len(column) - 1) + 1)
    together = np.array([deviations[lag:] @ deviations[:-lag] for lag in lags])
    peaks = np.flatnonzero((together[1:-1] > together[:-2]) & (together[1:-1] > together[2:])) + 1
    if not len(peaks):
        return _NO_PERIOD
    period = int(lags[peaks[together[peaks].argmax()]])
    return period if _PERIODS[0] <= period <= _PERIODS[1] else _NO_PERIOD


@dataclass(frozen=True, eq=False)
class EventMeasures:
    """How scores find the faults of a series, event by event.

    Attributes
    ----------
    n_faults : int
        True events, N.
    in_n, in_2n : int
        How many of them are found among the first N and the first 2N events: the threshold is lowered until there are
        so many, or as many as there can be before there are more.
    false_per_day : float
        Events that find no fault, per day, at the highest threshold that finds the wanted share of the faults, of those
        at which a fault is first flagged; NaN if there is none.
    delay_hours : float
        Median time from the start of a fault to its first flagged row, at the same threshold, of the faults found.
    ranked : Events
        The first 2N events.
    hits : ndarray of bool
        Which of these find a fault.
    first_rows, last_rows : ndarray
        Of the faults.

    Examples
    --------
    >>> import pandas as pd
    >>> labels, time = np.array([0, 0, 1, 1, 0, 0]), pd.date_range("2024-05-01", periods=6, freq="h")
    >>> found = event_measures(labels, np.array([0.1, 0.2, 0.9, 0.3, 0.2, 0.1]), time)
    >>> found.n_faults, found.in_n, found.delay_hours
    (1, 1, 0.0)
    """

    n_faults: int
    in_n: int
    in_2n: int
    false_per_day: float
    delay_hours: float
    ranked: Events
    hits: BoolArray
    first_rows: IndexArray
    last_rows: IndexArray


def event_measures(
    y: ArrayLike, scores: ArrayLike, time: pd.DatetimeIndex, *, groups: ArrayLike | None = None, recall: float = 0.5
) -> EventMeasures:
    """Measure how scores find the faults of a series, event by event.

    An event finds a fault if its highest score lies in the fault, or at most six steps of time after it: one event that
    covers most of the series does not find all of its faults. Use it where what matters is how many faults are found at
    what price in alarms. It does not say how much of a fault was flagged: see `vus_pr`.

    Parameters
    ----------
    y : array-like of shape (n,)
        1 for a row of a fault, 0 for the others; known rows that follow each other are one fault, however far apart.
    scores : array-like of shape (n,)
        High is anomalous.
    time : DatetimeIndex
        In ascending order, in each group.
    groups : array-like of shape (n,), default=None
        Which run each row is of; no event spans two.
    recall : float, default=0.5
        The share of the faults at which false events and delays are measured.

    Returns
    -------
    EventMeasures

    Examples
    --------
    >>> time = pd.date_range("2024-05-01", periods=144, freq="10min")
    >>> y, scores = np.zeros(144), np.zeros(144)
    >>> y[40:50], y[100:110] = 1, 1
    >>> scores[43:48], scores[70], scores[104] = 5, 4, 3
    >>> found = event_measures(y, scores, time)
    >>> found.in_n, found.in_2n, found.false_per_day, found.delay_hours
    (1, 2, 0.0, 0.5)
    >>> event_measures(y, scores, time, recall=1.0).false_per_day
    1.0
    """
    labels, values = checked_labels(y, scores)
    if not 0 < recall <= 1:
        raise ValueError(f"recall must be above 0 and at most 1; got {recall!r}.")
    known, clock = labels.astype(np.bool_), clock_of(time, len(labels), groups)
    gap = clock.usual_length()
    first, last = fault_spans(known, clock, len(known))  # a gap in the record does not end a fault
    n_faults, rows = len(first), np.arange(len(values))
    ticks, width, run_of = clock.ticks(gap), clock.width(gap), clock.group_of(rows)
    # Where an event may have its highest score to find each fault: up to the next fault, or the end of the run.
    until = np.append(first[1:], len(values))
    ends = last.copy()
    for fault, (end, stop) in enumerate(zip(last, until, strict=True)):
        near = (ticks[end + 1 : stop] - ticks[end] <= width) & (run_of[end + 1 : stop] == run_of[end])
        ends[fault] += int(np.logical_and.accumulate(near).sum())

    def at(cut: float) -> tuple[Events, IndexArray, int]:
        """Return the events at a threshold, the fault that each finds (−1 for none), and how many faults are found."""
        events = group_events(values >= cut, values, time, gap=gap, groups=groups)
        peaks = events.table["peak_row"].to_numpy()
        fault = np.searchsorted(first, peaks, side="right") - 1
        found = np.where((fault >= 0) & (peaks <= ends[fault]), fault, -1)
        return events, found, len(np.unique(found[found >= 0]))

    cuts = _event_thresholds(values, ticks, run_of, width, (n_faults, 2 * n_faults))
    ranked, ranked_finds, in_2n = at(cuts[1])
    wanted = int(np.ceil(recall * n_faults - 1e-9))
    highest = np.array([values[a : b + 1].max() for a, b in zip(first, ends, strict=True)])
    false, delays = 0, list[float]()
    for cut in np.unique(highest)[::-1]:
        if (highest >= cut).sum() < wanted:
            continue
        _, found, count = at(cut)
        if count >= wanted:
            false = int((found < 0).sum())
            for fault in np.unique(found[found >= 0]):
                alarm = first[fault] + int(np.argmax(values[first[fault] : ends[fault] + 1] >= cut))
                delays.append((time[alarm] - time[first[fault]]) / pd.Timedelta(hours=1))
            break
    steps = np.diff(time.to_numpy()) / np.timedelta64(1, "D")
    steps[clock.starts[1:] - 1] = 0.0
    days = len(values) * float(np.median(steps[steps > 0])) if (steps > 0).any() else 0.0
    return EventMeasures(
        n_faults=n_faults,
        in_n=at(cuts[0])[2],
        in_2n=in_2n,
        false_per_day=false / days if days and delays else float("nan"),
        delay_hours=float(np.median(delays)) if delays else float("nan"),
        ranked=ranked,
        hits=ranked_finds >= 0,
        first_rows=first,
        last_rows=last,
    )


def _event_thresholds(
    scores: FloatArray, ticks: NDArray[np.int64], groups: IndexArray, gap: int, most: Sequence[int]
) -> list[float]:
    """Return the thresholds with the most events, down to where there are more than so many; ∞ if at once too many.

    Of equal numbers the highest threshold counts. Rows are flagged from the highest score down: each begins an event,
    extends one, or joins two.
    """
    order = np.argsort(-scores, kind="stable")
    found, best, opened = [np.inf] * len(most), [0] * len(most), [True] * len(most)
    flagged, count = list[int](), 0
    for place, row in enumerate(order.tolist()):
        at = bisect_left(flagged, row)
        near = [other for other in flagged[max(at - 1, 0) : at + 1] if groups[other] == groups[row]]
        joined = [abs(int(ticks[row]) - int(ticks[other])) <= gap for other in near]
        already_one = len(near) == 2 and int(ticks[near[1]]) - int(ticks[near[0]]) <= gap
        count += 1 - sum(joined) + already_one
        insort(flagged, row)
        if place + 1 < len(order) and scores[order[place + 1]] == scores[row]:
            continue  # rows of one score are flagged together
        for k, limit in enumerate(most):
            opened[k] &= count <= limit
            if opened[k] and count > best[k]:
                found[k], best[k] = float(scores[row]), count
        if not any(opened):
            break
    return found


def sensor_hits(named: Sequence[Sequence[str]], true: Sequence[Collection[str]]) -> tuple[float, float]:
    """Return the shares of faults of which a true sensor is named first, and among the first three; NaN without any.

    >>> sensor_hits([["a", "b", "c", "d"], ["a", "b", "c", "d"]], [{"a"}, {"c"}])
    (0.5, 1.0)
    """
    if not named:
        return float("nan"), float("nan")
    pairs = list(zip(named, map(set, true), strict=True))
    return tuple(sum(bool(set(names[:most]) & causes) for names, causes in pairs) / len(pairs) for most in (1, 3))  # type: ignore[return-value]


def highest_incident(incidents: Sequence[Incident], first: int, last: int) -> Incident | None:
    """Return the incident with the highest score among those that overlap these rows; None if there is none."""
    over = [one for one in incidents if one.start <= last and one.end >= first]
    return max(over, key=lambda one: one.peak_score, default=None)


def resampling_blocks(y: ArrayLike, time: pd.DatetimeIndex | None, groups: ArrayLike | None = None) -> IndexArray:
    """Return the block of each row that is resampled with it: in a series faults and normal stretches, else the row.

    Normal rows between two faults are cut into blocks as long as the median fault. Without times rows are independent.
    No block spans two groups.

    >>> resampling_blocks([0, 0, 0, 1, 1, 0], pd.date_range("2024-05-01", periods=6, freq="h")).tolist()
    [0, 0, 1, 2, 2, 3]
    """
    known = np.asarray(y).astype(np.bool_)
    n = len(known)
    if time is None:
        return np.arange(n)
    clock = clock_of(time, n, groups)
    first, last = fault_spans(known, clock, n)
    begins = np.zeros(n, dtype=np.bool_)
    begins[np.concatenate([clock.starts, first, (last + 1)[last + 1 < n]])] = True
    edges = np.append(np.flatnonzero(begins), n)
    length = max(1, int(np.median(last - first + 1))) if len(first) else n
    for low, high in pairwise(edges.tolist()):
        if not known[low]:
            begins[low:high:length] = True
    return np.cumsum(begins) - 1


def resampled_precision(y: ArrayLike, scores: ArrayLike, blocks: ArrayLike, n_draws: int = DRAWS) -> FloatArray:
    """Return the average precision of data sets whose blocks are drawn with replacement: a block bootstrap.

    As many blocks with anomalies are drawn as there are, and as many without. The draws depend on the blocks alone, so
    that those of two methods are of the same data sets and can be subtracted. Empty if there are fewer than two blocks
    with anomalies, or without: these cannot vary.

    >>> y, scores = [1, 0, 0, 1], [4.0, 3.0, 2.0, 1.0]
    >>> drawn = resampled_precision(y, scores, resampling_blocks(y, None))
    >>> bool(drawn.min() < average_precision(y, scores) < drawn.max())
    True
    """
    labels, values = checked_labels(y, scores)
    numbers = np.asarray(blocks, dtype=np.intp)
    anomalous = np.zeros(int(numbers.max()) + 1, dtype=np.bool_)
    anomalous[numbers[labels == 1]] = True
    if min(anomalous.sum(), (~anomalous).sum()) < _FEWEST_BLOCKS:
        return np.empty(0)
    order = np.argsort(-values, kind="stable")
    hits, of_block = labels[order].astype(np.float64), numbers[order]
    ends = np.append(np.flatnonzero(np.diff(values[order])), len(values) - 1)  # rows of one score count together
    rng, found, counts = np.random.default_rng(0), np.empty(n_draws), np.empty(len(anomalous))
    for draw in range(n_draws):
        for kind in (anomalous, ~anomalous):
            size = int(kind.sum())
            counts[kind] = np.bincount(rng.integers(0, size, size), minlength=size)
        weights = counts[of_block]
        true, every = np.cumsum(weights * hits)[ends], np.cumsum(weights)[ends]
        precision = np.divide(true, every, out=np.zeros_like(true), where=every > 0)
        found[draw] = float(np.diff(true, prepend=0.0) @ precision) / true[-1]
    return found
