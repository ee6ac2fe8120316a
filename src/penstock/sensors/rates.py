"""How many episodes in a period reach a score by chance: estimated from maxima over blocks of time.

Rows that follow each other are not independent, so rows above a threshold are not counted. Maxima over blocks as long
as the memory of the score are: their distribution is taken as Gumbel's, fitted by quantiles, of which the lower ones
are hardly touched by faults in a minority of the blocks.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from penstock._types import BoolArray, FloatArray

WELL_ABOVE_USUAL = 3.0  # a score, in spreads of block maxima, for where no rate is known
FEWEST_BLOCKS = 25  # fewer say nothing about how rare a maximum is
_MOST_BLOCKS = 100
_MEMORY = 0.3  # of the autocorrelation of ranks
_SMALLEST_SLOPE = 0.05


@dataclass(frozen=True)
class EpisodeRate:
    """How often a score is reached by chance: Gumbel's distribution of block maxima."""

    block: int  # rows in a block
    location: float
    slope: float
    blocks: int  # that it was learnt from

    def expected(self, scores: FloatArray, n_rows: int) -> FloatArray:
        """Return how many episodes of at least this score n_rows normal rows are expected to have.

        Fewer rows than a block count as one block: how often a part of it reaches a score is not known.

        >>> rate = EpisodeRate(block=10, location=0.0, slope=1.0, blocks=100)
        >>> rate.expected(np.array([3.0, 5.0, 9.0]), 1000).round(2)
        array([4.86, 0.67, 0.01])
        """
        excess = np.clip((np.asarray(scores) - self.location) / self.slope, -5.0, 700.0)
        return max(n_rows / self.block, 1.0) * -np.expm1(-np.exp(-excess))

    def score_expected(self, episodes: float, n_rows: int) -> float:
        """Return the score that this many episodes in n_rows normal rows are expected to reach."""
        share = min(episodes / max(n_rows / self.block, 1.0), 1 - 1e-9)
        return float(self.location - self.slope * np.log(-np.log1p(-share)))


def learn_rate(scores: FloatArray, starts: BoolArray, *, without_highest: bool = False) -> EpisodeRate | None:
    """Learn from scores of rows in order of time; None if they are too few for 25 blocks.

    starts : (n,) where the history begins anew.
    without_highest : leave the highest block out, where these rows are judged by the rate: an episode must not decide
        how rare it is.
    """
    block = max(_memory(scores, starts), len(scores) // _MOST_BLOCKS, 1)
    count = len(scores) // block
    if count < FEWEST_BLOCKS:
        return None
    edges = np.arange(count + 1) * len(scores) // count
    maxima = np.sort(np.maximum.reduceat(scores, edges[:-1]))[: -1 if without_highest else None]
    shares = np.array([0.25, 0.5, 0.75])
    low, middle, high = np.quantile(maxima, shares)
    places = -np.log(-np.log(shares))
    slopes = [
        (middle - low) / (places[1] - places[0]),
        (high - middle) / (places[2] - places[1]),
        (high - low) / (places[2] - places[0]),
    ]
    slope = max(*slopes, _SMALLEST_SLOPE)
    return EpisodeRate(block, float(middle - slope * places[1]), float(slope), len(maxima))


def _memory(scores: FloatArray, starts: BoolArray) -> int:
    """Return the number of rows after which ranks of scores are hardly correlated any more."""
    ranks = np.empty(len(scores))
    ranks[np.argsort(scores, kind="stable")] = np.linspace(-1.0, 1.0, len(scores))
    lag, variance = 1, float((ranks**2).mean()) or 1.0
    run = np.cumsum(starts)
    while lag < len(scores) // 2:
        together = run[lag:] == run[:-lag]
        if not together.any() or (ranks[lag:] * ranks[:-lag])[together].mean() / variance < _MEMORY:
            break
        lag = max(lag + 1, int(1.2 * lag))
    return lag
