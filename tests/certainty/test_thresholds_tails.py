"""Pareto tails, and how often thresholds flag normal scores: what the docstrings promise, on seeded streams."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from naive import thresholds as naive
from naive.thresholds import p_value
from scipy import stats
from strategies import examples

from penstock.certainty import RowRate
from penstock.thresholds import (
    ConformalPValue,
    DriftingPeaks,
    PeaksOverThreshold,
    RollingQuantile,
    Threshold,
)
from penstock.thresholds.pareto import ParetoTail, fit_tail
from penstock.thresholds.quantile import most_above

NONE = np.empty(0)
hundredths = st.integers(-90, 150).map(lambda number: number / 100)


def sample(gamma: float, sigma: float, n: int, seed: int) -> np.ndarray:
    """Generalised Pareto numbers, by the inverse of their distribution."""
    share = np.random.default_rng(seed).random(n)
    return -sigma * np.log(share) if gamma == 0 else sigma / gamma * np.expm1(-gamma * np.log(share))


@pytest.mark.parametrize("gamma", [-0.4, -0.1, 0.0, 0.3, 1.0])
@pytest.mark.parametrize("sigma", [1e-200, 0.5, 1e200])
def test_the_parameters_of_a_sample_are_found(gamma: float, sigma: float) -> None:
    """Within four of their asymptotic standard deviations."""
    n = 4000
    found = fit_tail(sample(gamma, sigma, n, seed=1), NONE, NONE)
    assert abs(found.gamma - gamma) < 4 * (1 + gamma) / math.sqrt(n)
    assert abs(found.sigma / sigma - 1) < 4 * math.sqrt(2 * (1 + gamma) / n)


@pytest.mark.parametrize("gamma", [-0.4, 0.0, 0.3])
def test_what_is_above_a_ceiling_is_made_up_for(gamma: float) -> None:
    """The upper tenth hidden above ceilings: the fit knows only how many there are; without that it is far off."""
    y = sample(gamma, 1.0, 5000, seed=2)
    ceiling = float(np.quantile(y, 0.9))
    seen = y[y <= ceiling]
    found = fit_tail(seen, np.array([ceiling, ceiling]), np.array([100.0, 400.0]))
    assert found.gamma == pytest.approx(gamma, abs=0.15)
    assert found.sigma == pytest.approx(1.0, abs=0.1)
    assert fit_tail(seen, NONE, NONE).gamma < gamma - 0.2


@given(st.sampled_from([10, 20, 100, 500]), hundredths, st.booleans(), st.integers(0, 10**6))
@examples(30)
@pytest.mark.filterwarnings("ignore::RuntimeWarning")  # SciPy's search strays outside
def test_never_less_likely_than_scipys_fit(n: int, gamma: float, tied: bool, seed: int) -> None:
    y = sample(gamma, 2.0, n, seed)
    y = np.ceil(y * 3) / 3 if tied else y
    shape, _, scale = stats.genpareto.fit(y, floc=0)
    found = fit_tail(y, NONE, NONE)
    ours = naive.pareto_log_likelihood(y, found.gamma, found.sigma)
    assert ours >= naive.pareto_log_likelihood(y, 0.0, y.mean()) - 1e-9
    assert ours >= naive.pareto_log_likelihood(y, -1.0, y.max()) - 1e-9
    if shape >= -1:  # below that the likelihood has no bound, and SciPy's is accidental
        assert ours >= naive.pareto_log_likelihood(y, shape, scale) - 1e-6


@given(st.integers(10, 60), hundredths, st.sampled_from([0.01, 0.05, 0.3]), st.integers(0, 10**6))
@examples(15)
def test_censored_fits_are_as_likely_as_brute_force_ones(n: int, gamma: float, share: float, seed: int) -> None:
    y = sample(gamma, 2.0, n, seed)
    ceilings = np.random.default_rng(seed).uniform(0.5, 1.5, 7) * np.quantile(y, 1 - share)
    unseen = np.full(7, share * n / 7)
    found = fit_tail(y, ceilings, unseen)
    ours = naive.pareto_log_likelihood(y, found.gamma, found.sigma, ceilings, unseen)
    brute = naive.pareto_log_likelihood(y, *naive.fit_pareto(y, ceilings, unseen), ceilings, unseen)
    assert ours >= brute - 1e-6


def test_too_few_or_equal_excesses_have_an_exponential_tail() -> None:
    assert fit_tail(np.array([3.0]), NONE, NONE) == ParetoTail(0.0, 3.0)
    assert fit_tail(np.array([1.0, 2.0, 9.0]), NONE, NONE) == ParetoTail(0.0, 4.0)
    assert fit_tail(np.full(50, 2.0), NONE, NONE) == ParetoTail(0.0, 2.0)
    assert fit_tail(np.full(5, 2.0), np.array([4.0]), np.array([2.5])) == ParetoTail(0.0, 4.0)


@pytest.mark.parametrize("gamma", [-1.0, -0.3, -1e-9, 0.0, 1e-9, 0.5])
@pytest.mark.parametrize("share", [1e-6, 0.05, 0.9])
def test_quantiles_are_scipys(gamma: float, share: float) -> None:
    assert ParetoTail(gamma, 2.0).exceeded_by(share) == pytest.approx(stats.genpareto.isf(share, gamma, scale=2.0))


def test_spot_extrapolates_beyond_what_it_has_seen() -> None:
    """2,000 scores know a value that one in 10,000 exceeds."""
    scores = np.random.default_rng(3).exponential(size=2000)
    threshold = PeaksOverThreshold(rate=1e-4, n_calibration=2000)
    assert threshold.calibrate(scores) == pytest.approx(-math.log(1e-4), rel=0.15)
    assert threshold.calibrate(scores) > scores.max()


def test_spot_finds_injected_extremes_and_is_not_moved_by_them() -> None:
    rng = np.random.default_rng(4)
    scores = rng.normal(size=8000)
    places = rng.choice(np.arange(1000, 8000), 200, replace=False)
    spoilt = scores.copy()
    spoilt[places] = rng.uniform(8.0, 1e6, 200)
    clean = PeaksOverThreshold()
    expected = clean.update_many(np.delete(scores, places))
    threshold = PeaksOverThreshold()
    flags = threshold.update_many(spoilt)
    assert flags[places].all()
    np.testing.assert_array_equal(np.delete(flags, places), expected)
    assert threshold.value == clean.value


def test_only_the_latest_peaks_are_kept_and_the_counts_with_them() -> None:
    """After a change of the spread, a short memory forgets the old one: n, N and the peaks are all of the new time."""
    rng = np.random.default_rng(6)
    scores = np.concatenate([rng.exponential(size=5000), rng.exponential(0.5, size=60_000)])
    threshold = PeaksOverThreshold(rate=1e-3, level=0.9, n_calibration=2000, max_peaks=300)
    threshold.update_many(scores)
    state = threshold.get_state()
    assert len(state["excesses"]) == len(state["gaps"]) == 300
    assert 300 / state["gaps"].sum() == pytest.approx(math.exp(-threshold.level_value / 0.5), rel=0.25)


def test_ties_and_constants() -> None:
    constant = PeaksOverThreshold(n_calibration=100, level=0.9, rate=0.01)
    assert not constant.update_many([2.0] * 500).any()
    assert constant.value == 2.0
    assert constant.tail is None
    assert constant.update(2.5)
    assert constant.value == 2.0

    two_levels = PeaksOverThreshold(n_calibration=100, level=0.9, rate=0.01)
    assert not two_levels.update_many(([0.0] * 19 + [1.0]) * 50).any()
    assert two_levels.tail.gamma == 0.0
    assert 1.0 < two_levels.value < 5.0


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
@pytest.mark.parametrize("threshold", [PeaksOverThreshold, lambda **options: DriftingPeaks(depth=20, **options)])
def test_peaks_keep_the_rate(threshold: Callable[..., Threshold], tail: str) -> None:
    rates = alarm_rates(threshold(rate=1e-3, n_calibration=5000), tail, streams=4, n=15_000)
    assert 0.5 < rates.mean() < 2.0
    assert 0.2 < rates.min() <= rates.max() < 3.0


def test_expected_alarms_keep_the_threshold_from_sinking() -> None:
    """Without them, as in the paper, the peaks lack their own upper end, and the rate of false alarms climbs."""
    scores = draw("Gaussian", 80_000)
    settings = {"rate": 1e-3, "n_calibration": 2000, "max_peaks": 300}
    paper = PeaksOverThreshold(**settings, expect_alarms=False).update_many(scores)
    ours = PeaksOverThreshold(**settings).update_many(scores)
    assert paper[-20_000:].mean() > 5e-3
    assert 0.2e-3 < ours[-20_000:].mean() < 2e-3


ASKED_RATES = [0.9, 0.5, 0.1, 0.05, 0.011, 0.01, 0.001, 1e-4, 1e-7, 1e-30]
scores_of_all_kinds = st.one_of(
    st.lists(st.floats(-50, 50), min_size=2, max_size=60),
    st.lists(st.integers(0, 4).map(float), min_size=2, max_size=60),
    st.tuples(st.integers(2, 400), st.integers(0, 10**6)).map(
        lambda drawn: np.random.default_rng(drawn[1]).normal(size=drawn[0]).tolist()
    ),
)


def around(scores: np.ndarray) -> np.ndarray:
    """The scores, some between them, and some far beyond."""
    high, spread = scores.max(), np.ptp(scores) + 1e-3
    beyond = high + spread * np.array([1e-9, 0.01, 0.1, 0.3, 1.0, 3.0, 30.0, 1e4])
    return np.concatenate([scores, (scores[1:] + scores[:-1]) / 2, [scores.min() - 1], beyond])


@given(scores_of_all_kinds)
@examples(80)
def test_rates_are_p_values_up_to_the_highest_score_and_fall_beyond(values: list[float]) -> None:
    scores = np.array(values)
    known, new = RowRate.of(scores), np.sort(around(scores))
    rates = known.rate_of(new)
    within = new <= scores.max()
    np.testing.assert_array_equal(rates[within], [float(p_value(values, score)) for score in new[within]])
    assert (rates > 0).all()
    assert (rates <= 1).all()
    assert (rates[~within] <= 1 / (len(scores) + 1)).all()
    assert (np.diff(rates) <= 0).all()
    assert rates[0] == 1.0


@given(scores_of_all_kinds, st.sampled_from(ASKED_RATES))
@examples(100)
def test_a_score_above_the_threshold_of_a_rate_has_at_most_that_rate(values: list[float], rate: float) -> None:
    scores = np.array(values)
    known, new = RowRate.of(scores), around(scores)
    threshold = known.exceeded_at(rate)
    assert math.isfinite(threshold)
    if len(set(values)) == 1 and rate * (len(values) + 1) < 1:
        assert threshold == values[0]  # nothing is known of higher scores: they are flagged, and say 1/(n + 1)
        return
    np.testing.assert_array_equal(new > threshold, known.rate_of(new) <= rate)


def test_equal_scores() -> None:
    known = RowRate.of(np.full(19, 2.5))
    assert known.tail is None
    assert known.rate_of(np.array([2.0, 2.5, 2.6, 1e9])).tolist() == [1.0, 1.0, 0.05, 0.05]
    assert known.exceeded_at(0.05) == known.exceeded_at(1e-9) == 2.5


def test_where_the_highest_scores_are_equal_the_tail_begins_below_them() -> None:
    """There was none, and a score of a million was no rarer than 1/(n + 1)."""
    known = RowRate.of(np.r_[np.linspace(0, 1, 80), np.full(19, 3.0)])
    assert known.level == 1.0
    assert known.n_peaks == 19
    assert known.tail is not None
    assert known.rate_of(np.array([1e6]))[0] < 1e-9
    assert known.rate_of(np.array([3.0, 3.0 + 1e-9])).tolist() == [0.2, 0.01]
    assert known.exceeded_at(0.01) == 3.0 < known.exceeded_at(1e-4)


def test_no_tail_ends() -> None:
    """Uniform scores end at 1, but a hundred of them do not say so."""
    known = RowRate.of(np.random.default_rng(0).random(100))
    assert known.tail is not None
    assert known.tail.gamma == 0.1
    rates = known.rate_of(np.array([1.05, 5.0]))
    assert rates[0] > 1e-6
    assert rates[1] < 1e-9


@pytest.mark.parametrize(
    ("name", "draw", "off"),
    [
        ("exponential", lambda rng, size: rng.exponential(size=size), 1.3),
        ("Gaussian", lambda rng, size: rng.normal(size=size), 1.0),
        ("uniform", lambda rng, size: rng.random(size), 1.0),
        ("heavy", lambda rng, size: rng.pareto(3.0, size=size), 6.0),
    ],
)
def test_rates_beyond_the_highest_score_are_kept(name: str, draw: object, off: float) -> None:
    """Rates of 1e-3 and 1e-4 from 300 scores: never exceeded by much, on average over 300 streams."""
    flagged = np.zeros(2)
    for stream in range(300):
        rng = np.random.default_rng([stream, len(name)])
        known, new = RowRate.of(draw(rng, 300)), draw(rng, 2000)  # type: ignore[operator]
        flagged += [(new > known.exceeded_at(rate)).mean() for rate in (1e-3, 1e-4)]
    assert (flagged / 300 <= off * np.array([1e-3, 1e-4])).all(), flagged / 300


def test_dspot_follows_a_drift_and_spot_does_not() -> None:
    rng = np.random.default_rng(7)
    n = 10_000
    scores = np.linspace(0.0, 20.0, n) + rng.normal(size=n)
    places = np.arange(3000, n, 500)
    scores[places] += 8.0
    spot = PeaksOverThreshold().update_many(scores)
    threshold = DriftingPeaks(depth=20)
    dspot = threshold.update_many(scores)
    assert spot[-2500:].mean() > 0.99
    assert dspot[places].all()
    assert np.delete(dspot, places).mean() < 0.005
    assert 22.0 < threshold.value < 26.0


def test_the_mean_of_a_whole_period_stands_still_to_the_last_bit() -> None:
    """It is rounded exactly, in whichever order: rounding errors would be the only differences, and be flagged."""
    scores = np.tile([0.1, 0.2, 0.7, 0.3, 0.30000001, 0.1, 0.9], 200)
    threshold = DriftingPeaks(n_calibration=700, depth=7)
    assert not threshold.update_many(scores).any()
    values = set()
    for score in scores:
        threshold.update(score)
        values.add(threshold.value)
    assert len(values) == 1
