"""Generalised Pareto tails, and what SPOT and DSPOT are for."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from naive import thresholds as naive
from scipy import stats

from penstock.thresholds import DriftingPeaks, PeaksOverThreshold
from penstock.thresholds.pareto import ParetoTail, fit_tail

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
@settings(max_examples=30, deadline=None)
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
@settings(max_examples=15, deadline=None)
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


def test_quantiles_at_the_ends() -> None:
    assert ParetoTail(0.5, 2.0).exceeded_by(1.0) == ParetoTail(0.5, 2.0).exceeded_by(7.0) == 0.0
    assert ParetoTail(100.0, 2.0).exceeded_by(1e-6) == math.inf


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


def test_spot_says_what_it_learnt() -> None:
    threshold = PeaksOverThreshold()
    assert math.isnan(threshold.level_value)
    assert threshold.tail is None
    scores = np.random.default_rng(5).exponential(size=3000)
    threshold.update_many(scores)
    assert threshold.level_value == np.sort(scores[:1000])[979]
    assert threshold.tail is not None
    assert threshold.level_value < threshold.value


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


def test_dspot_is_stuck_after_a_sudden_lasting_rise() -> None:
    rng = np.random.default_rng(8)
    threshold = DriftingPeaks()
    threshold.update_many(rng.normal(size=2000))
    assert threshold.update_many(rng.normal(20.0, size=1000)).all()


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
