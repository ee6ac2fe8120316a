"""The contract of thresholds, each compared with its slow twin, and thresholds of all scores at once."""

from __future__ import annotations

import copy
import math
import pickle
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from naive import thresholds as naive
from sklearn.base import clone
from strategies import examples

from penstock import NSNMF
from penstock.detectors import NormScore
from penstock.thresholds import (
    ConformalPValue,
    DriftingPeaks,
    Fixed,
    MeanDeviation,
    PeaksOverThreshold,
    RollingQuantile,
    Threshold,
    TopN,
    pack_threshold,
    parse_threshold,
    score_threshold,
    unpack_threshold,
)
from penstock.thresholds.basic import _three_sigma
from penstock.thresholds.quantile import fewest_for, most_above


@pytest.mark.parametrize(
    ("text", "threshold"),
    [
        ("fixed:0.8", Fixed(0.8)),
        ("fixed:value=-2", Fixed(-2)),
        ("deviation", MeanDeviation()),
        ("quantile:rate=0.01,window=500", RollingQuantile(rate=0.01, window=500)),
        ("peaks:rate=1e-3,expect_alarms=false", PeaksOverThreshold(rate=1e-3, expect_alarms=False)),
        ("top:100", TopN(100)),
    ],
)
def test_thresholds_from_text(text: str, threshold: Any) -> None:
    assert repr(parse_threshold(text)) == repr(threshold)


finite = st.floats(-1.7e308, 1.7e308)


@given(st.lists(finite, min_size=2, max_size=60, unique=True), st.floats(0.001, 0.5))
@examples(200)
def test_a_share_flags_exactly_that_many_distinct_scores(scores: list[float], share: float) -> None:
    values = np.array(scores)
    expected = max(1, int(np.floor(share * len(values) + 0.5)))
    assert (values > score_threshold(values, share)).sum() == expected


@given(st.lists(st.floats(0, 100), min_size=1, max_size=200))
@examples(200)
def test_auto_is_a_fixed_point(scores: list[float]) -> None:
    values = np.array(scores)
    threshold = _three_sigma(values)
    kept = values[values <= threshold]
    assert len(kept) > 0
    assert threshold == pytest.approx(kept.mean() + 3 * kept.std(), rel=1e-6, abs=1e-9)
    if len(kept) < len(values):
        assert score_threshold(values) == threshold


@pytest.mark.parametrize(
    ("scores", "contamination", "flagged"),
    [
        ([5.0, 3.0, 3.0, 3.0, 1.0, 0.0], 0.5, [0]),  # ties at the cut: fewer
        ([5.0, 3.0, 3.0, 3.0, 1.0, 0.0], 1 / 3, [0]),
        ([*np.linspace(0, 1, 100), 1e6, 10.0], "auto", [100, 101]),  # mean + 3 sd of all would hide the second
        ([1.0, 2.0, 3.0, 4.0], "auto", [3]),  # the highest where none is three sigma out
        ([7.0, 1.0, 9.0, 2.0], TopN(2), [0, 2]),
        ([7.0, 1.0, 9.0, 2.0], Fixed(1.5), [0, 2, 3]),
        ([9.0, 1.0, 2.0, 3.0, 4.0, 5.0], RollingQuantile(rate=0.4, window=5), [0, 5]),
    ],
)
def test_thresholds_of_a_few_scores(scores: list[float], contamination: Any, flagged: list[int]) -> None:
    assert np.flatnonzero(np.array(scores) > score_threshold(np.array(scores), contamination)).tolist() == flagged


@pytest.mark.parametrize("value", [0.0, 0.1, 1 / 3, 1e300, -7.7])
def test_constant_scores_flag_none(value: float) -> None:
    assert score_threshold(np.full(57, value)) == score_threshold(np.full(57, value), 0.1) == value


@pytest.mark.parametrize("bad", [0, 0.0, -0.1, 0.51, 1, "a", None, True, float("nan")])
def test_other_values_are_refused(bad: object) -> None:
    with pytest.raises(ValueError, match=r"contamination must be 'auto' or a number in \(0, 0.5\], but is "):
        score_threshold(np.arange(5.0), bad)
    with pytest.raises(ValueError, match="at least two scores; got 1"):
        score_threshold(np.array([1.0]), 0.1)


@pytest.mark.parametrize(
    ("bad", "message"),
    [
        (TopN, "contamination must be 'auto' or a number .* An object of penstock.thresholds, such as TopN"),
        (TopN(-3), "n must be a whole number ≥ 1; got -3"),
        (TopN(5), r"TopN\(n=5\) needs at least 6 scores to give a threshold, NaN not counted; got 5"),
        (PeaksOverThreshold(), r"PeaksOverThreshold\(\) needs at least 1000 scores .*; got 5\. Give it more"),
    ],
)
def test_threshold_objects_that_do_not_fit_are_refused(bad: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        score_threshold(np.arange(5.0), bad)
    with pytest.raises(ValueError, match=message):
        NormScore(contamination=bad).fit(np.arange(5.0)[:, None])
    fitted = NormScore(contamination=0.4).fit(np.arange(5.0)[:, None])
    with pytest.raises(ValueError, match=message):
        fitted.set_contamination(bad)
    assert fitted.contamination == 0.4
    assert (fitted.predict(np.arange(5.0)[:, None]) == -1).sum() == 2


def test_detectors_take_threshold_objects() -> None:
    X = np.random.default_rng(0).gamma(2.0, size=(1200, 3))
    X[700] = 60.0
    contamination = PeaksOverThreshold(rate=1e-3)
    detector = NSNMF(n_components=2, similarity="normalized", contamination=contamination, random_state=0)
    copied = clone(detector)
    assert copied.contamination is not contamination
    assert repr(copied) == repr(detector)
    assert "PeaksOverThreshold()" in repr(detector)
    detector.fit(X)
    assert detector.contamination is contamination
    assert vars(contamination).keys() == contamination.get_params().keys(), "the caller's object learns nothing"
    assert detector.threshold_ == PeaksOverThreshold(rate=1e-3).calibrate(detector.scores_)
    assert copied.fit(X).threshold_ == detector.threshold_
    assert detector.predict(X)[700] == -1
    assert detector.set_params(contamination__rate=1e-2).get_params()["contamination__rate"] == 1e-2

    top = TopN(7)
    assert detector.set_contamination(top).contamination is top
    assert (detector.predict(X) == -1).sum() == 7
    assert vars(top).keys() == {"n"}


SMALL_PEAKS = {"rate": 0.05, "level": 0.7, "n_calibration": 20, "max_peaks": 12}
DRIFTING = DriftingPeaks(**SMALL_PEAKS, depth=4)
ALL_THRESHOLDS: list[Threshold] = [
    Fixed(1.0),
    MeanDeviation(k=1.0, min_scores=5),
    RollingQuantile(rate=0.2, window=9),
    RollingQuantile(rate=0.1, window=30, min_scores=20),
    ConformalPValue(rate=0.2, window=9),
    ConformalPValue(rate=0.2, window=9, learn_flagged=False),
    PeaksOverThreshold(**SMALL_PEAKS),
    DriftingPeaks(**SMALL_PEAKS, depth=4),
    PeaksOverThreshold(**SMALL_PEAKS, expect_alarms=False),
    TopN(5),
]
LARGEST = float(np.finfo(np.float64).max)

every_threshold = pytest.mark.parametrize("threshold", ALL_THRESHOLDS, ids=repr)


def a_long_stream(n: int, seed: int, pieces: list[float]) -> list[float]:
    """Ties, NaN and plain numbers among each other; drawing them one by one would take hypothesis too long."""
    rng = np.random.default_rng(seed)
    return np.where(rng.random(n) < 0.4, rng.choice(pieces, n), rng.exponential(size=n) * pieces[-1]).tolist()


def streams(score: st.SearchStrategy[float], pieces: list[float]) -> st.SearchStrategy[list[float]]:
    long = st.builds(a_long_stream, st.integers(40, 100), st.integers(0, 10**6), st.just(pieces))
    return st.one_of(st.lists(score, max_size=20), long)


some_scores = streams(st.floats(-100, 100, width=16) | st.just(math.nan), [0.0, -0.0, 1.0, 2.0, math.nan, 3.0])
wild_scores = streams(st.floats(-LARGEST, LARGEST), [0.0, 5e-324, LARGEST, -LARGEST, 1e-200, 1e307])


def bits(value: float) -> bytes:
    return np.float64(value).tobytes()


def traced(threshold: Threshold, scores: list[float]) -> list[tuple[bool, bytes]]:
    return [(threshold.update(score), bits(threshold.value)) for score in scores]


def a_stream(n: int = 200, seed: int = 0) -> list[float]:
    scores = np.random.default_rng(seed).exponential(size=n)
    scores[::17] = np.nan
    scores[::5] = scores[::5].round(1)
    return scores.tolist()


@every_threshold
@given(scores=some_scores)
@examples(30)
def test_a_score_is_flagged_if_it_is_above_the_value_known_before(threshold: Threshold, scores: list[float]) -> None:
    fresh = threshold.fresh()
    for score in scores:
        before = fresh.value
        flagged = fresh.update(score)
        assert type(flagged) is bool
        assert flagged == (score > before)


@every_threshold
@given(scores=some_scores, cut=st.integers(0, 100))
@examples(30)
def test_many_at_once_are_the_same_as_one_by_one(threshold: Threshold, scores: list[float], cut: int) -> None:
    singly, jointly = threshold.fresh(), threshold.fresh()
    flags = [singly.update(score) for score in scores]
    joint = [jointly.update_many(scores[:cut]), jointly.update_many(np.array(scores[cut:]))]
    assert all(part.dtype == np.bool_ for part in joint)
    assert np.concatenate(joint).tolist() == flags
    assert bits(jointly.value) == bits(singly.value)
    assert states_equal(jointly.get_state(), singly.get_state())


@every_threshold
@given(scores=some_scores, cut=st.integers(0, 100))
@examples(30)
def test_continuing_from_a_copy_gives_the_same_bits(threshold: Threshold, scores: list[float], cut: int) -> None:
    whole = threshold.fresh()
    whole.update_many(scores[:cut])
    packed = unpack_threshold(copy.deepcopy(pack_threshold(whole)))
    copies = [packed, pickle.loads(pickle.dumps(whole)), copy.deepcopy(whole)]
    assert [(type(again), again.get_params()) for again in copies] == [(type(whole), whole.get_params())] * 3
    assert [bits(again.value) for again in copies] == [bits(whole.value)] * 3
    expected = traced(whole, scores[cut:])
    assert [traced(again, scores[cut:]) for again in copies] == [expected] * 3


@every_threshold
def test_the_state_is_plain_and_a_copy(threshold: Threshold) -> None:
    for length in (0, 3, 200):
        fresh = threshold.fresh()
        fresh.update_many(a_stream()[:length])
        before = bits(fresh.value)
        for entry in fresh.get_state().values():
            if isinstance(entry, np.ndarray):
                assert entry.dtype in (np.float64, np.int64)
                entry[:] = 77
            else:
                assert entry is None or type(entry) in (int, float, bool)
        assert bits(fresh.value) == before
        assert states_equal(fresh.get_state(), threshold_after(threshold, length).get_state())


def threshold_after(threshold: Threshold, length: int) -> Threshold:
    fresh = threshold.fresh()
    fresh.update_many(a_stream()[:length])
    return fresh


def states_equal(one: dict[str, Any], two: dict[str, Any]) -> bool:
    return one.keys() == two.keys() and all(np.asarray(one[k]).tobytes() == np.asarray(two[k]).tobytes() for k in one)


def damaged(state: dict[str, Any]) -> list[object]:
    """Everything that can be wrong with a single entry, whatever it means."""
    found: list[object] = [None, [], 3, state | {"more": 1}]
    for name, entry in state.items():
        found.append({key: value for key, value in state.items() if key != name})
        bad: list[object] = ["x", True, math.nan, math.inf, [1.0], np.zeros((2, 2))]
        if isinstance(entry, int):
            bad += [-1, 2.5, None]
        if isinstance(entry, np.ndarray):
            bad += [None, entry.astype(np.float32), np.ones(1000, dtype=entry.dtype)]
        if isinstance(entry, np.ndarray) and entry.dtype == np.float64:
            bad += [np.append(entry, np.nan), np.append(entry, np.inf)]
        found += [state | {name: value} for value in bad]
    return found


@every_threshold
@pytest.mark.parametrize("length", [0, 3, 200])
def test_damaged_states_are_refused_and_change_nothing(threshold: Threshold, length: int) -> None:
    fresh, twin = threshold_after(threshold, 150), threshold_after(threshold, 150)
    for bad in damaged(threshold_after(threshold, length).get_state()):
        with pytest.raises(ValueError, match=f"^state of {type(threshold).__name__}"):
            fresh.set_state(bad)  # type: ignore[arg-type]
    assert traced(fresh, a_stream()[150:]) == traced(twin, a_stream()[150:])


PEAKS = PeaksOverThreshold(**SMALL_PEAKS)


@pytest.mark.parametrize(
    ("threshold", "length", "change", "message"),
    [
        (MeanDeviation(), 9, {"squares": -0.5}, "squares.* a finite number ≥ 0, but is -0.5"),
        (RollingQuantile(0.2, 9), 9, {"scores": np.ones(10)}, "scores.* at most window = 9 numbers"),
        (TopN(5), 9, {"scores": np.ones(6), "positions": np.arange(6)}, "scores.* at most n = 5 numbers"),
        (TopN(5), 9, {"scores": np.ones(4)}, r"scores.* float64 of shape \(5\)"),
        (TopN(2), 9, {"positions": np.array([1, 1])}, "positions.* different numbers"),
        (TopN(2), 9, {"positions": np.array([1, 9])}, "positions.* different numbers below 9"),
        (TopN(2), 9, {"positions": np.array([1, -1])}, "positions.* ≥ 0"),
        (PEAKS, 9, {"calibration": np.ones(20)}, "calibration.* fewer than n_calibration = 20"),
        (PEAKS, 9, {"limit": 1.0, "level_value": 1.0}, "has a limit, and still calibrates"),
        (PEAKS, 9, {"level_value": 1.0}, "has peaks, but no limit"),
        (PEAKS, 9, {"since_peak": 3}, "has peaks, but no limit"),
        (PEAKS, 200, {"limit": None}, "has peaks, but no limit"),
        (PEAKS, 200, {"limit": -5.0}, "limit.* at least the level_value"),
        (PEAKS, 200, {"level_value": None}, "level_value.* a number, as there is a limit, but is None"),
        (PEAKS, 200, {"gamma": -1.5}, "gamma.* a finite number ≥ -1, but is -1.5"),
        (PEAKS, 200, {"sigma": None}, "gamma.* and sigma too"),
        (DRIFTING, 200, {"recent": np.ones(3)}, "recent.* depth = 4 numbers"),
        (DRIFTING, 200, {"recent": np.ones(5)}, "recent.* depth = 4 numbers"),
        (DRIFTING, 9, {"recent": np.ones(3)}, "recent.* depth = 4 numbers"),
        (PEAKS, 200, {"excesses": np.zeros(12)}, "excesses"),
        (PEAKS, 200, {"excesses": np.ones(11)}, r"ceilings.* float64 of shape \(11\)"),
        (PEAKS, 200, {"ceilings": -np.ones(12)}, "ceilings.* ≥ 0"),
        (PEAKS, 200, {"gaps": np.zeros(12, dtype=np.int64)}, "gaps.* ≥ 1"),
        (PEAKS, 200, dict.fromkeys(("excesses", "ceilings"), np.ones(13)) | {"gaps": np.ones(13, dtype=np.int64)},
         "excesses.* at most max_peaks = 12 numbers"),
    ],
    ids=str,
)  # fmt: skip
def test_states_that_cannot_be_are_refused(
    threshold: Threshold, length: int, change: dict[str, Any], message: str
) -> None:
    state = threshold_after(threshold, length).get_state()
    threshold.fresh().set_state(state)
    with pytest.raises(ValueError, match=message):
        threshold.fresh().set_state(state | change)


@every_threshold
@pytest.mark.parametrize("bad", [math.inf, -math.inf, np.float64(np.inf)])
def test_infinite_scores_are_refused_and_change_nothing(threshold: Threshold, bad: float) -> None:
    fresh = threshold_after(threshold, 100)
    with pytest.raises(ValueError, match=r"must be finite or NaN; got -?inf"):
        fresh.update(bad)
    with pytest.raises(ValueError, match=r"must be finite or NaN, but number 2 is -?inf"):
        fresh.update_many([1.0, math.nan, bad])
    assert traced(fresh, a_stream()[100:]) == traced(threshold_after(threshold, 100), a_stream()[100:])


@every_threshold
def test_what_is_no_stream_of_numbers_is_refused(threshold: Threshold) -> None:
    with pytest.raises(TypeError):
        threshold.fresh().update("high")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match=r"one-dimensional; got an array of shape \(2, 1\)"):
        threshold.fresh().update_many([[1.0], [2.0]])


@every_threshold
@given(scores=wild_scores)
@examples(30)
def test_a_value_once_known_stays_a_finite_number(threshold: Threshold, scores: list[float]) -> None:
    fresh = threshold.fresh()
    for score in scores:
        known = not math.isnan(fresh.value)
        fresh.update(score)
        assert math.isfinite(fresh.value) or (math.isnan(fresh.value) and not known)
    unpack_threshold(pack_threshold(fresh))


@every_threshold
@pytest.mark.parametrize("level", [0.0, 0.1, -7.7, 1e300])
def test_constant_scores_are_not_flagged(threshold: Threshold, level: float) -> None:
    if isinstance(threshold, Fixed):
        return
    fresh = threshold.fresh()
    assert not fresh.update_many([level] * 60).any()
    if abs(level) <= 1e140 or not isinstance(fresh, MeanDeviation):
        assert fresh.value == pytest.approx(level, rel=1e-12)
        assert fresh.update(level + max(1.0, abs(level)))


@every_threshold
def test_scikit_learns_parameters(threshold: Threshold) -> None:
    fresh = threshold_after(threshold, 100)
    copied = clone(fresh)
    assert copied.get_params() == fresh.get_params()
    assert repr(copied) == repr(fresh) == repr(threshold)
    assert traced(copied, a_stream()) == traced(threshold.fresh(), a_stream())
    assert traced(fresh.fresh(), a_stream()) == traced(threshold.fresh(), a_stream())
    for name, value in fresh.get_params().items():
        assert getattr(fresh, name) is value
        assert fresh.set_params(**{name: value}) is fresh
        assert traced(fresh, a_stream()) == traced(threshold.fresh(), a_stream()), "set_params forgets"


@every_threshold
def test_calibrate_is_the_value_after_all_scores_and_changes_nothing(threshold: Threshold) -> None:
    fresh = threshold_after(threshold, 50)
    before = copy.deepcopy(fresh)
    if not isinstance(threshold, TopN):
        assert bits(fresh.calibrate(a_stream())) == bits(threshold_after(threshold, 200).value)
    assert traced(fresh, a_stream(seed=1)) == traced(before, a_stream(seed=1))


@every_threshold
def test_calibrate_with_too_few(threshold: Threshold) -> None:
    if isinstance(threshold, Fixed):
        assert threshold.calibrate([]) == 1.0
        return
    fewest = threshold._fewest_scores() + isinstance(threshold, TopN)
    scores = a_stream(fewest, seed=2)
    scores = [1.0 if math.isnan(score) else score for score in scores]
    assert math.isfinite(threshold.calibrate(scores))
    scores[0] = math.nan
    with pytest.raises(ValueError, match=rf"needs at least {fewest} scores .*; got {fewest - 1}\. Give it more"):
        threshold.calibrate(scores)


@pytest.mark.parametrize(
    ("threshold", "message"),
    [
        (Fixed(math.nan), "value must be a finite number; got nan"),
        (MeanDeviation(k=-1.0), "k must be a finite number ≥ 0; got -1.0"),
        (MeanDeviation(min_scores=1), "min_scores must be a whole number ≥ 2; got 1"),
        (RollingQuantile(rate=0), "rate must be a number between 0 and 1, both excluded; got 0"),
        (RollingQuantile(window=98), "window = 98 is too short for rate = 0.01: .* at least 99, or the rate higher"),
        (RollingQuantile(min_scores=1001), "min_scores = 1001 scores never fit into window = 1000"),
        (ConformalPValue(learn_flagged=1), "learn_flagged must be True or False; got 1"),
        (PeaksOverThreshold(rate=0.03), "rate must be below 1 − level.* got rate = 0.03 and level = 0.98"),
        (PeaksOverThreshold(n_calibration=49), "n_calibration = 49 leaves no score above level = 0.98.* least 50"),
        (PeaksOverThreshold(max_peaks=9), "max_peaks must be a whole number ≥ 10; got 9"),
        (PeaksOverThreshold(expect_alarms=None), "expect_alarms must be True or False; got None"),
        (DriftingPeaks(depth=0), "depth must be a whole number ≥ 1; got 0"),
        (TopN(0), "n must be a whole number ≥ 1; got 0"),
        (TopN(2_000_001), "n must be at most 2,000,000"),
    ],
    ids=repr,
)
def test_parameters_are_refused_at_first_use(threshold: Threshold, message: str) -> None:
    uses = [
        lambda one: one.update(1.0),
        lambda one: one.update_many([]),
        lambda one: one.calibrate([1.0, 2.0]),
        lambda one: one.get_state(),
        lambda one: one.set_state({}),
        pack_threshold,
    ]
    for use in uses:
        with pytest.raises(ValueError, match=message):
            use(threshold.fresh())


@pytest.mark.parametrize(
    ("document", "message"),
    [
        (None, "A packed threshold is a dictionary of kind, parameters and state"),
        ({"kind": "Fixed", "state": {}}, "A packed threshold is a dictionary of kind, parameters and state"),
        ({"kind": "Threshold", "parameters": {}, "state": {}}, "Unknown kind of threshold: 'Threshold'. Known are "),
        ({"kind": "os.system", "parameters": {}, "state": {}}, "Unknown kind of threshold: 'os.system'"),
        ({"kind": ["Fixed"], "parameters": {}, "state": {}}, r"Unknown kind of threshold: \['Fixed'\]"),
        ({"kind": "Fixed", "parameters": {}, "state": {}}, "A packed Fixed must give its parameters value; got {}"),
        ({"kind": "Fixed", "parameters": {"value": 1, "x": 2}, "state": {}}, "must give its parameters value"),
        ({"kind": "Fixed", "parameters": {"value": "1"}, "state": {}}, "value must be a finite number"),
        ({"kind": "TopN", "parameters": {"n": 3}, "state": {}}, "state of TopN should have the fields"),
        ({"kind": "TopN", "parameters": {"n": 3}, "state": None}, "state of TopN should be a dict, but is None"),
    ],
)
def test_only_packed_thresholds_are_unpacked(document: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        unpack_threshold(document)


def test_only_known_thresholds_are_packed() -> None:
    class Fixed(MeanDeviation):
        pass

    with pytest.raises(ValueError, match=r"Only thresholds of penstock\.thresholds can be packed"):
        pack_threshold(Fixed())


some_score = st.one_of(st.sampled_from([0.0, -0.0, 1.0, 1.0, 2.0, math.nan]), st.floats(-100, 100))
twin_scores = st.one_of(st.lists(some_score, max_size=30), st.lists(some_score, min_size=40, max_size=60))
decimal_rates = st.sampled_from([0.01, 0.05, 0.07, 0.1, 0.2, 0.29, 0.3, 0.5, 0.9, 0.99])


def watched(threshold: Threshold, scores: list[float]) -> tuple[list[bool], list[float]]:
    steps = [(threshold.update(score), threshold.value) for score in scores]
    return [flag for flag, _ in steps], [value for _, value in steps]


@given(twin_scores, st.floats(0, 4), st.integers(2, 20))
@examples(40)
def test_mean_deviation(scores: list[float], k: float, min_scores: int) -> None:
    """The recursion rounds differently, so a score at the threshold, to nine digits, may be judged either way."""
    flags, values = watched(MeanDeviation(k, min_scores), scores)
    for cut in range(len(scores)):
        before = values[cut - 1] if cut else math.nan
        if not math.isnan(before) and abs(scores[cut] - before) < 1e-9:
            scores, flags, values = scores[:cut], flags[:cut], values[:cut]
            break
    expected_flags, expected_values = naive.mean_deviation(scores, k, min_scores)
    assert flags == expected_flags
    np.testing.assert_allclose(values, expected_values, rtol=1e-9, atol=1e-7)


def test_mean_deviation_judges_but_does_not_learn_scores_whose_squares_overflow() -> None:
    threshold = MeanDeviation(min_scores=3)
    assert threshold.update_many([1.0, 1e200, 2.0, -1e200, 3.0, 1e200, -1e200]).tolist() == [False] * 5 + [True, False]
    assert threshold.value == pytest.approx(2.0 + 3.0 * math.sqrt(2 / 3))


@given(twin_scores, decimal_rates, st.integers(1, 40), st.integers(1, 30))
@examples(40)
def test_rolling_quantile(scores: list[float], rate: float, more: int, min_scores: int) -> None:
    window = max(math.ceil(1 / rate), min_scores) + more
    flags, values = watched(RollingQuantile(rate, window, min_scores), scores)
    expected_flags, expected_values = naive.rolling_quantile(scores, rate, window, min_scores)
    assert flags == expected_flags
    np.testing.assert_array_equal(values, expected_values)


@given(twin_scores, decimal_rates, st.integers(1, 40), st.booleans(), st.one_of(st.none(), st.integers(1, 30)))
@examples(40)
def test_conformal(scores: list[float], rate: float, more: int, learn_flagged: bool, min_scores: int | None) -> None:
    window = max(math.ceil(1 / rate), min_scores or 0) + more
    threshold = ConformalPValue(rate, window, min_scores, learn_flagged)
    flags, _ = watched(threshold, scores)
    assert flags == naive.conformal_flags(scores, rate, window, min_scores or 1, learn_flagged)
    if learn_flagged:
        assert flags == watched(RollingQuantile(rate, window, min_scores), scores)[0]


@given(st.lists(some_score, max_size=30), st.floats(-100, 100))
@examples(40)
def test_p_values(scores: list[float], score: float) -> None:
    threshold = ConformalPValue(rate=0.2, window=12)
    assert threshold.p_value(score) == 1.0
    threshold.update_many(scores)
    remembered = [other for other in scores if not math.isnan(other)][-12:]
    for asked in [score, *remembered]:
        assert threshold.p_value(asked) == float(naive.p_value(remembered, asked))
    if len(remembered) >= 4:
        assert (threshold.p_value(score) <= 0.2) == (score > threshold.value)
    assert math.isnan(threshold.p_value(math.nan))
    with pytest.raises(ValueError, match="must be finite or NaN; got inf"):
        threshold.p_value(math.inf)


@pytest.mark.parametrize("n", [1, 9, 19, 98, 99, 499, 999])
def test_ranks_do_not_suffer_from_rounding(n: int) -> None:
    for thousandths in range(1, 1000):
        assert most_above(n, thousandths / 1000) == (n + 1) * thousandths // 1000
        assert fewest_for(thousandths / 1000) == max(1, -(-1000 // thousandths) - 1)


@given(twin_scores, st.integers(1, 12))
@examples(40)
def test_top_n(scores: list[float], n: int) -> None:
    threshold = TopN(n)
    for seen, score in enumerate(scores, start=1):
        flagged = threshold.update(score)
        positions, best = naive.top_n(scores[:seen], n)
        assert threshold.positions.tolist() == positions
        assert threshold.scores.tolist() == best
        assert threshold.positions.dtype == np.int64
        before, _ = naive.top_n(scores[: seen - 1], n)
        assert flagged == (len(before) == n and seen - 1 in positions)
        assert threshold.value == best[-1] if len(best) == n else math.isnan(threshold.value)


SMALL_TAIL = {"rate": 0.02, "level": 0.9, "n_calibration": 150, "max_peaks": 22}
STREAMS = {
    "exponential": lambda rng, n: rng.exponential(size=n),
    "heavy": lambda rng, n: rng.pareto(1.5, size=n),
    "bounded": lambda rng, n: rng.random(n),
    "with NaN and ties": lambda rng, n: np.where(rng.random(n) < 0.1, np.nan, np.round(rng.normal(size=n), 1)),
}


@pytest.mark.parametrize(("stream", "expect_alarms"), [*((stream, True) for stream in STREAMS), ("exponential", False)])
def test_peaks_over_threshold_is_its_twin(stream: str, expect_alarms: bool) -> None:
    scores = STREAMS[stream](np.random.default_rng(5), 300).tolist()
    flags, values = watched(PeaksOverThreshold(**SMALL_TAIL, expect_alarms=expect_alarms), scores)
    expected = naive.peaks_over_threshold(scores, **SMALL_TAIL, expect_alarms=expect_alarms)
    assert flags == expected[0]
    assert any(flags)
    np.testing.assert_allclose(values, expected[1], rtol=1e-5)


def test_drifting_peaks_is_its_twin() -> None:
    scores = np.random.default_rng(7).normal(size=300) + np.linspace(0, 30, 300)
    scores[270] += 10
    scores[200] = np.nan
    flags, values = watched(DriftingPeaks(**SMALL_TAIL, depth=7), scores.tolist())
    expected = naive.drifting_peaks(scores.tolist(), depth=7, **SMALL_TAIL, expect_alarms=True)
    assert flags == expected[0]
    assert flags[270]
    np.testing.assert_allclose(values, expected[1], rtol=1e-5)
