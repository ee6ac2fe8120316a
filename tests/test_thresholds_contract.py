"""The contract that every threshold keeps."""

from __future__ import annotations

import copy
import math
import pickle
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.base import clone

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
    unpack_threshold,
)

SMALL_PEAKS = {"rate": 0.05, "level": 0.7, "n_calibration": 20, "max_peaks": 12}
ALL_THRESHOLDS: list[Threshold] = [
    Fixed(1.0),
    MeanDeviation(k=1.0, min_scores=5),
    RollingQuantile(rate=0.2, window=9),
    RollingQuantile(rate=0.1, window=30, min_scores=20),
    ConformalPValue(rate=0.2, window=9),
    ConformalPValue(rate=0.2, window=9, learn_flagged=False),
    PeaksOverThreshold(**SMALL_PEAKS),
    PeaksOverThreshold(**SMALL_PEAKS, expect_alarms=False),
    DriftingPeaks(**SMALL_PEAKS, depth=4),
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
@settings(max_examples=30, deadline=None)
def test_a_score_is_flagged_if_it_is_above_the_value_known_before(threshold: Threshold, scores: list[float]) -> None:
    judge = threshold.fresh()
    for score in scores:
        before = judge.value
        flagged = judge.update(score)
        assert type(flagged) is bool
        assert flagged == (score > before)


@every_threshold
@given(scores=some_scores, cut=st.integers(0, 100))
@settings(max_examples=30, deadline=None)
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
@settings(max_examples=30, deadline=None)
def test_continuing_from_a_packed_state_gives_the_same_bits(
    threshold: Threshold, scores: list[float], cut: int
) -> None:
    whole = threshold.fresh()
    whole.update_many(scores[:cut])
    again = unpack_threshold(copy.deepcopy(pack_threshold(whole)))
    assert type(again) is type(whole)
    assert again.get_params() == whole.get_params()
    assert bits(again.value) == bits(whole.value)
    assert traced(again, scores[cut:]) == traced(whole, scores[cut:])


@every_threshold
def test_pickle_and_deepcopy_continue_too(threshold: Threshold) -> None:
    whole = threshold.fresh()
    whole.update_many(a_stream()[:120])
    others = [pickle.loads(pickle.dumps(whole)), copy.deepcopy(whole)]
    expected = traced(whole, a_stream()[120:])
    for other in others:
        assert traced(other, a_stream()[120:]) == expected


@every_threshold
def test_the_state_is_plain_and_a_copy(threshold: Threshold) -> None:
    for length in (0, 3, 200):
        judge = threshold.fresh()
        judge.update_many(a_stream()[:length])
        before = bits(judge.value)
        for entry in judge.get_state().values():
            if isinstance(entry, np.ndarray):
                assert entry.dtype in (np.float64, np.int64)
                entry[:] = 77
            else:
                assert entry is None or type(entry) in (int, float, bool)
        assert bits(judge.value) == before
        assert states_equal(judge.get_state(), threshold_after(threshold, length).get_state())


def threshold_after(threshold: Threshold, length: int) -> Threshold:
    judge = threshold.fresh()
    judge.update_many(a_stream()[:length])
    return judge


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
    judge, twin = threshold_after(threshold, 150), threshold_after(threshold, 150)
    for bad in damaged(threshold_after(threshold, length).get_state()):
        with pytest.raises(ValueError, match=f"^state of {type(threshold).__name__}"):
            judge.set_state(bad)  # type: ignore[arg-type]
    assert traced(judge, a_stream()[150:]) == traced(twin, a_stream()[150:])


PEAKS = PeaksOverThreshold(**SMALL_PEAKS)
DRIFTING = DriftingPeaks(**SMALL_PEAKS, depth=4)


@pytest.mark.parametrize(
    ("threshold", "length", "change", "message"),
    [
        (MeanDeviation(), 9, {"squares": -0.5}, "squares.* a finite number ≥ 0, but is -0.5"),
        (RollingQuantile(0.2, 9), 9, {"scores": np.ones(10)}, "scores.* at most window = 9 numbers"),
        (TopN(5), 9, {"scores": np.ones(6), "positions": np.arange(6)}, "scores.* at most n = 5 numbers"),
        (TopN(5), 9, {"scores": np.ones(4)}, r"positions.* int64 of shape \(4\)"),
        (TopN(2), 9, {"positions": np.array([1, 1])}, "positions.* different numbers"),
        (TopN(2), 9, {"positions": np.array([1, 9])}, "positions.* ≥ 0 ≤ 8"),
        (TopN(2), 9, {"positions": np.array([1, -1])}, "positions.* ≥ 0 ≤ 8"),
        (PEAKS, 9, {"calibration": np.ones(20)}, "calibration.* fewer than n_calibration = 20"),
        (PEAKS, 9, {"limit": 1.0, "level_value": 1.0}, "has a limit, and still calibrates"),
        (PEAKS, 9, {"level_value": 1.0}, "has peaks, but no limit"),
        (PEAKS, 9, {"since_peak": 3}, "has peaks, but no limit"),
        (PEAKS, 200, {"limit": None}, "has peaks, but no limit"),
        (PEAKS, 200, {"limit": -5.0}, "limit.* a finite number ≥ "),
        (PEAKS, 200, {"level_value": None}, "level_value.* a finite number, but is None"),
        (PEAKS, 200, {"gamma": -1.5}, "gamma.* a finite number ≥ -1, but is -1.5"),
        (PEAKS, 200, {"sigma": None}, "sigma.* a finite number ≥ 0, but is None"),
        (PEAKS, 200, {"excesses": np.zeros(12)}, "excesses"),
        (PEAKS, 200, {"excesses": np.ones(11)}, r"ceilings.* float64 of shape \(11\)"),
        (PEAKS, 200, {"ceilings": -np.ones(12)}, "ceilings.* ≥ 0"),
        (PEAKS, 200, {"gaps": np.zeros(12, dtype=np.int64)}, "gaps.* ≥ 1"),
        (PEAKS, 200, dict.fromkeys(("excesses", "ceilings"), np.ones(13)) | {"gaps": np.ones(13, dtype=np.int64)},
         "excesses.* at most max_peaks = 12 numbers"),
        (DRIFTING, 200, {"recent": np.ones(3)}, "recent.* depth = 4 numbers"),
        (DRIFTING, 200, {"recent": np.ones(5)}, "recent.* depth = 4 numbers"),
        (DRIFTING, 9, {"recent": np.ones(3)}, "recent.* depth = 4 numbers"),
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
def test_nan_teaches_nothing(threshold: Threshold) -> None:
    with_nan, without = threshold.fresh(), threshold.fresh()
    scores = a_stream()
    flags = with_nan.update_many(scores)
    numbers = [score for score in scores if not math.isnan(score)]
    assert not flags[np.isnan(scores)].any()
    assert flags[~np.isnan(scores)].tolist() == without.update_many(numbers).tolist()
    assert bits(with_nan.value) == bits(without.value)


@every_threshold
@pytest.mark.parametrize("bad", [math.inf, -math.inf, np.float64(np.inf)])
def test_infinite_scores_are_refused_and_change_nothing(threshold: Threshold, bad: float) -> None:
    judge = threshold_after(threshold, 100)
    with pytest.raises(ValueError, match=r"must be finite or NaN; got -?inf"):
        judge.update(bad)
    with pytest.raises(ValueError, match=r"must be finite or NaN, but number 2 is -?inf"):
        judge.update_many([1.0, math.nan, bad])
    assert traced(judge, a_stream()[100:]) == traced(threshold_after(threshold, 100), a_stream()[100:])


@every_threshold
def test_what_is_no_stream_of_numbers_is_refused(threshold: Threshold) -> None:
    with pytest.raises(TypeError):
        threshold.fresh().update("high")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match=r"one-dimensional; got an array of shape \(2, 1\)"):
        threshold.fresh().update_many([[1.0], [2.0]])


@every_threshold
@given(scores=wild_scores)
@settings(max_examples=30, deadline=None)
def test_a_value_once_known_stays_a_finite_number(threshold: Threshold, scores: list[float]) -> None:
    judge = threshold.fresh()
    for score in scores:
        known = not math.isnan(judge.value)
        judge.update(score)
        assert math.isfinite(judge.value) or (math.isnan(judge.value) and not known)
    unpack_threshold(pack_threshold(judge))


@every_threshold
@pytest.mark.parametrize("level", [0.0, 0.1, -7.7, 1e300])
def test_constant_scores_are_not_flagged(threshold: Threshold, level: float) -> None:
    if isinstance(threshold, Fixed):
        return
    judge = threshold.fresh()
    assert not judge.update_many([level] * 60).any()
    if abs(level) <= 1e140 or not isinstance(judge, MeanDeviation):
        assert judge.value == pytest.approx(level, rel=1e-12)
        assert judge.update(level + max(1.0, abs(level)))


@every_threshold
def test_numpy_and_python_numbers_are_the_same(threshold: Threshold) -> None:
    one, other = threshold.fresh(), threshold.fresh()
    scores = a_stream()
    assert traced(one, scores) == traced(other, list(np.array(scores)))  # type: ignore[arg-type]
    assert isinstance(other.value, float)
    assert not isinstance(other.value, np.floating)


@every_threshold
def test_scikit_learns_parameters(threshold: Threshold) -> None:
    judge = threshold_after(threshold, 100)
    copied = clone(judge)
    assert copied.get_params() == judge.get_params()
    assert repr(copied) == repr(judge) == repr(threshold)
    assert traced(copied, a_stream()) == traced(threshold.fresh(), a_stream())
    assert traced(judge.fresh(), a_stream()) == traced(threshold.fresh(), a_stream())
    for name, value in judge.get_params().items():
        assert getattr(judge, name) is value
        assert judge.set_params(**{name: value}) is judge
        assert traced(judge, a_stream()) == traced(threshold.fresh(), a_stream()), "set_params forgets"


@every_threshold
def test_nothing_is_computed_before_the_first_score(threshold: Threshold) -> None:
    fresh = threshold.fresh()
    fresh.get_state()
    pack_threshold(fresh)
    assert vars(fresh).keys() == fresh.get_params().keys()
    if not isinstance(fresh, Fixed):
        assert math.isnan(fresh.value)


@every_threshold
def test_calibrate_is_the_value_after_all_scores_and_changes_nothing(threshold: Threshold) -> None:
    judge = threshold_after(threshold, 50)
    before = copy.deepcopy(judge)
    if not isinstance(threshold, TopN):
        assert bits(judge.calibrate(a_stream())) == bits(threshold_after(threshold, 200).value)
    assert traced(judge, a_stream(seed=1)) == traced(before, a_stream(seed=1))


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
        (Fixed("3"), "value must be a finite number; got '3'"),
        (Fixed(True), "value must be a finite number; got True"),
        (MeanDeviation(k=-1.0), "k must be a finite number ≥ 0; got -1.0"),
        (MeanDeviation(min_scores=1), "min_scores must be a whole number ≥ 2; got 1"),
        (MeanDeviation(min_scores=5.5), "min_scores must be a whole number ≥ 2; got 5.5"),
        (RollingQuantile(rate=0), "rate must be a number between 0 and 1, both excluded; got 0"),
        (RollingQuantile(rate=1.0), "rate must be a number between 0 and 1, both excluded; got 1.0"),
        (RollingQuantile(rate=None), "rate must be a number between 0 and 1, both excluded; got None"),
        (RollingQuantile(window=0), "window must be a whole number ≥ 1; got 0"),
        (RollingQuantile(window=98), "window = 98 is too short for rate = 0.01: .* at least 99, or the rate higher"),
        (RollingQuantile(min_scores=0), "min_scores must be a whole number ≥ 1; got 0"),
        (RollingQuantile(min_scores=1001), "min_scores = 1001 scores never fit into window = 1000"),
        (ConformalPValue(rate=0.001, window=998), "window = 998 is too short for rate = 0.001"),
        (ConformalPValue(learn_flagged=1), "learn_flagged must be True or False; got 1"),
        (PeaksOverThreshold(rate=0.03), "rate must be below 1 − level.* got rate = 0.03 and level = 0.98"),
        (PeaksOverThreshold(level=1.0), "level must be a number between 0 and 1"),
        (PeaksOverThreshold(n_calibration=49), "n_calibration = 49 leaves no score above level = 0.98.* least 50"),
        (PeaksOverThreshold(max_peaks=9), "max_peaks must be a whole number ≥ 10; got 9"),
        (PeaksOverThreshold(expect_alarms=None), "expect_alarms must be True or False; got None"),
        (DriftingPeaks(rate=0.03), "rate must be below 1 − level"),
        (DriftingPeaks(depth=0), "depth must be a whole number ≥ 1; got 0"),
        (TopN(0), "n must be a whole number ≥ 1; got 0"),
        (TopN(2_000_001), "n must be at most 2,000,000"),
        (TopN(2.0), r"n must be a whole number ≥ 1; got 2\.0"),
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


def test_numpy_numbers_as_parameters_are_packed_as_plain_ones() -> None:
    threshold = RollingQuantile(rate=np.float32(0.25), window=np.int64(7))
    parameters = pack_threshold(threshold)["parameters"]
    assert parameters == {"rate": 0.25, "window": 7, "min_scores": None}
    assert {name: type(value) for name, value in parameters.items()} == {
        "rate": float,
        "window": int,
        "min_scores": type(None),
    }


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
