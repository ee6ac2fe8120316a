"""How many episodes in a period reach a score by chance: estimated from maxima over blocks of time.

Rows that follow each other are not independent, so rows above a threshold are not counted. Maxima over blocks as long
as the memory of the score are. Their body is taken as Gumbel's distribution, and their tail as a power, heavier where
fewer blocks are known; the highest blocks count by their number alone, so that a fault in a few of them does not set
the scale. How heavy the tail is was chosen on healthy records of several origins: decision 25,
docs/decisions/0025-certainty-in-time.md.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from penstock._types import BoolArray, FloatArray

WELL_ABOVE_USUAL = 3.0  # a score, in spreads of block maxima, for where no rate is known
_FEWEST_ROWS, _FEWEST_BLOCKS = 250, 10  # fewer say nothing about how rare a maximum is
_MOST_BLOCKS = 200
_MEMORY, _HIGH = 0.3, 0.9  # of the autocorrelation of "above this quantile"
_LOW = 0.25  # quantile of the maxima at which the tail begins
# By whether scores are of later rows: which share of the blocks is measured, not only counted; how many, at least, of
# the highest are only counted; the power of the tail for very many blocks.
_MEASURED, _ONLY_COUNTED = {True: 0.90, False: 0.85}, {True: 0, False: 3}
_TAIL = {True: 5.0, False: 15.0}
_PRIOR = 3.0  # blocks that the width of the body counts for in that of the tail
_QUARTILES = 1.5725  # between the quartiles of Gumbel's distribution, in its slopes
_LEAST_SPREAD = 0.05


@dataclass(frozen=True)
class EpisodeRate:
    """How often a score is reached by chance: L(s) = rate·(1 + (s − start)/(tail·spread))^−tail in a block."""

    block: int  # rows in a block
    blocks: int  # that it was fitted to
    start: float  # the score at which the tail begins
    rate: float  # L there
    spread: float
    tail: float  # the power; less is heavier

    def expected(self, scores: FloatArray, n_rows: int) -> FloatArray:
        """Return how many episodes of at least this score n_rows normal rows are expected to have.

        Fewer rows than a block count as one block: how often a part of it reaches a score is not known.

        >>> rate = EpisodeRate(block=10, blocks=100, start=0.0, rate=1.0, spread=1.0, tail=20.0)
        >>> rate.expected(np.array([-1.0, 3.0, 5.0, 9.0]), 1000).round(2)
        array([1.00e+02, 5.93e+00, 1.15e+00, 6.00e-02])
        """
        beyond = np.maximum(np.asarray(scores, dtype=np.float64) - self.start, 0.0)
        episodes = self.rate * np.exp(-self.tail * np.log1p(beyond / (self.tail * self.spread)))
        return max(n_rows / self.block, 1.0) * np.where(beyond > 0, -np.expm1(-episodes), 1.0)

    def score_expected(self, episodes: float, n_rows: int) -> float:
        """Return the score that this many episodes in n_rows normal rows are expected to reach; at least the start."""
        share = min(episodes / max(n_rows / self.block, 1.0), 1 - 1e-9)
        times = max(-self.rate / np.log1p(-share), 1.0)
        return float(self.start + self.tail * self.spread * np.expm1(np.log(times) / self.tail))


def fit_episode_rate(scores: FloatArray, starts: BoolArray, *, later: bool) -> EpisodeRate | None:
    """Fit to scores of rows in order of time; None if they are fewer than 250, or too few for ten blocks.

    starts : (n,) where the history begins anew.
    later : whether these are scores of a good period, each by a model of other rows, for rows that follow it. Else the
        rows are assessed by this rate themselves: faults are among them, and more of the highest blocks count by
        their number alone.
    """
    block = max(_memory(scores, starts), len(scores) // _MOST_BLOCKS, 1)
    count = len(scores) // block
    if count < _FEWEST_BLOCKS or len(scores) < _FEWEST_ROWS:
        return None
    edges = np.arange(count + 1) * len(scores) // count
    maxima = np.sort(np.maximum.reduceat(scores, edges[:-1]))
    low = int(_LOW * count)
    high = min(int(np.ceil(_MEASURED[later] * count)), count - _ONLY_COUNTED[later])
    start, seen = maxima[low - 1], high - low
    first, third = np.quantile(maxima, [0.25, 0.75])
    body = max(float(third - first) / _QUARTILES, _LEAST_SPREAD)
    total = float((maxima[low:high] - start).sum()) + (count - high) * float(maxima[high - 1] - start)
    total /= _gumbel_total(low / count, high / count)
    spread = max((_PRIOR * body + total) / (_PRIOR + seen), _LEAST_SPREAD)
    tail = 1 / (1 / (_PRIOR + seen) + 1 / _TAIL[later])
    return EpisodeRate(block, count, float(start), float(-np.log(low / count)), spread, tail)


def _gumbel_total(low: float, high: float) -> float:
    """Return ∫ 1 − F(x) dx of Gumbel's F with slope 1 between two of its quantiles, over the share between them.

    The sum of what maxima exceed the lower quantile by, cut at the higher, has this mean for each maximum in between.
    """
    first, last = (float(-np.log(-np.log(share))) if share < 1 else 40.0 for share in (low, high))
    middles = first + (last - first) * (np.arange(1000) + 0.5) / 1000
    return float(-np.expm1(-np.exp(-middles)).mean() * (last - first) / (high - low))


def _memory(scores: FloatArray, starts: BoolArray) -> int:
    """Return the number of rows after which a high score hardly makes another one more likely."""
    below_highest = float(np.nextafter(scores.max(), -np.inf))  # a tenth of the scores may equal the highest
    high = min(float(np.quantile(scores, _HIGH)), below_highest)
    above = (scores > high).astype(np.float64)
    above -= above.mean()
    lag, variance = 1, float((above**2).mean()) or 1.0
    run = np.cumsum(starts)
    while lag < len(scores) // 2:
        together = run[lag:] == run[:-lag]
        if not together.any() or (above[lag:] * above[:-lag])[together].mean() / variance < _MEMORY:
            break
        lag = max(lag + 1, int(1.2 * lag))
    return lag
