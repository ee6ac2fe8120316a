"""How often thresholds flag scores that are all alike: what the docstrings promise, on seeded streams.

Every distribution has a seed of its own, so that no two streams are monotone images of each other.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from scipy import stats

from penstock.thresholds import ConformalPValue, DriftingPeaks, PeaksOverThreshold, RollingQuantile, Threshold
from penstock.thresholds.quantile import most_above

Draw = Callable[[np.random.Generator, int], np.ndarray]
TAILS: dict[str, tuple[int, Draw]] = {
    "Gaussian": (1, lambda rng, n: rng.normal(size=n)),
    "exponential": (2, lambda rng, n: rng.exponential(size=n)),
    "Student": (3, lambda rng, n: rng.standard_t(3, size=n)),
    "Pareto": (4, lambda rng, n: rng.pareto(2.0, size=n)),
    "uniform": (5, lambda rng, n: rng.random(n)),
}
every_tail = pytest.mark.parametrize("tail", TAILS)


def draw(tail: str, n: int, stream: int = 0) -> np.ndarray:
    seed, make = TAILS[tail]
    return make(np.random.default_rng([seed, stream]), n)


@every_tail
@pytest.mark.parametrize("kind", [RollingQuantile, ConformalPValue])
def test_until_the_window_is_full_flags_follow_their_exact_distribution(kind: type, tail: str) -> None:
    """Independent flags of known probabilities ⌊(n+1)·rate⌋/(n+1): the count within four standard deviations."""
    n = 10_000
    flags = kind(rate=0.02, window=n).update_many(draw(tail, n, stream=len(kind.__name__)))
    chances = np.array([most_above(k, 0.02) / (k + 1) for k in range(n)])
    assert abs(flags.sum() - chances.sum()) < 4 * np.sqrt((chances * (1 - chances)).sum())
    assert not flags[chances == 0].any()


@pytest.mark.parametrize(("rate", "window", "chance"), [(0.05, 59, 3 / 60), (0.05, 70, 3 / 71), (0.3, 4, 1 / 5)])
def test_the_score_after_a_full_window_is_flagged_with_the_chance_promised(
    rate: float, window: int, chance: float
) -> None:
    """Independent trials: the number of flags is binomial."""
    trials, threshold = 1500, RollingQuantile(rate, window)
    scores = np.random.default_rng(0).normal(size=(trials, window + 1))
    flags = sum(row[-1] > threshold.calibrate(row[:-1]) for row in scores)
    low, high = stats.binom.interval(0.9999, trials, chance)
    assert low <= flags <= high


@every_tail
def test_a_sliding_window_keeps_the_rate(tail: str) -> None:
    flags = RollingQuantile(rate=0.02, window=499).update_many(draw(tail, 20_000, stream=9))
    assert flags[499:].mean() == pytest.approx(0.02, rel=0.15)


def test_leaving_flagged_scores_out_lets_the_rate_grow() -> None:
    scores = draw("exponential", 20_000)
    flags = ConformalPValue(rate=0.02, window=499, learn_flagged=False).update_many(scores)
    assert flags[:2000].mean() < flags[-5000:].mean()
    assert flags[-5000:].mean() > 5 * 0.02


def alarm_rates(threshold: Threshold, tail: str, streams: int, n: int) -> np.ndarray:
    """False alarms after calibration, in units of the rate asked for, in each stream."""
    fewest = threshold._fewest_scores()
    flags = [threshold.fresh().update_many(draw(tail, n, stream)) for stream in range(streams)]
    return np.array([part[fewest:].mean() for part in flags]) / threshold.rate


@every_tail
def test_peaks_over_threshold(tail: str) -> None:
    rates = alarm_rates(PeaksOverThreshold(rate=1e-3, n_calibration=5000), tail, streams=4, n=15_000)
    assert 0.5 < rates.mean() < 2.0
    assert rates.min() > 0.2
    assert rates.max() < 3.0


@every_tail
def test_drifting_peaks(tail: str) -> None:
    rates = alarm_rates(DriftingPeaks(rate=1e-3, n_calibration=5000, depth=20), tail, streams=4, n=15_000)
    assert 0.5 < rates.mean() < 2.0
    assert rates.min() > 0.2
    assert rates.max() < 3.0


def test_expected_alarms_keep_the_threshold_from_sinking() -> None:
    """Without them, as in the paper, the peaks lack their own upper end, and the rate of false alarms climbs."""
    scores = draw("Gaussian", 80_000)
    settings = {"rate": 1e-3, "n_calibration": 2000, "max_peaks": 300}
    paper = PeaksOverThreshold(**settings, expect_alarms=False).update_many(scores)
    ours = PeaksOverThreshold(**settings).update_many(scores)
    assert paper[-20_000:].mean() > 5e-3
    assert 0.2e-3 < ours[-20_000:].mean() < 2e-3
