"""SensorDetector as an estimator: times, gaps, broken sensors, tables of any shape, its monitor, and its files."""

from __future__ import annotations

import warnings
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from saving_cases import assert_same_detector
from saving_refusals_cases import at, changed, places, refuse_or_work
from strategies import examples

import penstock
from penstock import SensorDetector
from penstock.detectors import SeriesMonitor
from penstock.simulate import simulate_hydropower
from penstock.storage import StorageError, read_state, write_state

NAMES = ["load", "flow", "head", "oil", "gate", "level"]


def readings(n: int = 400, seed: int = 0, p: int = 6) -> np.ndarray:
    """Return sensors that follow two slow causes."""
    rng, mixing = np.random.default_rng(seed), np.random.default_rng(99).normal(size=(2, p))
    return np.cumsum(rng.normal(size=(n, 2)), axis=0) * 0.1 @ mixing + 0.05 * rng.normal(size=(n, p))


def stamps(n: int = 400, **kwargs: Any) -> pd.DatetimeIndex:
    return pd.date_range("2024-03-30", periods=n, freq="10min", **kwargs)


@cache
def fitted(kind: str = "time") -> SensorDetector:
    """Return a detector with a setting among its columns; "few": of which all but three rows miss something."""
    X = readings()
    X[:, 4] = np.arange(len(X)) // 60
    if kind == "few":
        X[np.random.default_rng(1).random(X.shape) < 0.2] = np.nan
    return SensorDetector().fit(X, time=600.0 * np.arange(len(X)) if kind == "time" else None)


def same_scores(found: SensorDetector, expected: SensorDetector, later: np.ndarray) -> None:
    np.testing.assert_array_equal(found.scores_, expected.scores_)
    np.testing.assert_array_equal(found.evidence_, expected.evidence_)
    np.testing.assert_array_equal(found.score_series(later), expected.score_series(later))


def test_time_is_that_of_the_index_or_of_the_argument_in_any_form() -> None:
    X, late = readings(), readings(30, seed=1)
    index = stamps()
    irregular = index[np.r_[:200, 210:410] % 400].sort_values()
    for times in (index, irregular):
        frame = pd.DataFrame(X, columns=NAMES, index=times)
        expected = SensorDetector().fit(frame)
        zoned = times.tz_localize("UTC").tz_convert("Asia/Tokyo")
        forms: list[Any] = [
            times, times.to_numpy(), list(times), times.astype(str).tolist(), pd.Series(times), pl.Series(times),
            zoned, list(zoned), times.to_numpy().astype("datetime64[s]").astype(np.int64),
        ]  # fmt: skip
        for form in forms:
            same_scores(SensorDetector().fit(X, time=form), expected, late)
        same_scores(SensorDetector().fit(pl.DataFrame(X, schema=NAMES), time=times), expected, late)
        later = pd.DataFrame(late, columns=NAMES, index=times[-30:])
        np.testing.assert_array_equal(
            expected.score_series(later), SensorDetector().fit(X, time=times).score_series(late, time=times[-30:])
        )


def test_numbers_of_any_unit_are_times_also_as_objects() -> None:
    X, late = readings(), readings(30, seed=1)
    gap = np.where(np.arange(400) < 250, 0, 40) + np.arange(400.0)
    expected = SensorDetector().fit(X, time=gap)
    for time in (600 * gap, gap.astype(int).tolist(), pd.Series(gap.astype(int), dtype=object), gap.astype(np.uint32)):
        same_scores(SensorDetector().fit(X, time=time), expected, late)
    assert not np.array_equal(SensorDetector().fit(X).scores_, expected.scores_)


def test_a_gap_a_clock_that_jumps_back_and_a_new_run_begin_the_history_anew() -> None:
    X, time = readings(40, seed=2), 600.0 * np.arange(40)
    first, second = (fitted().assess_series(part) for part in (X[:25], X[25:]))
    unbroken = fitted().assess_series(X, time=time)
    moved = [time + np.where(np.arange(40) >= 25, shift, 0) for shift in (7 * 600.0, -10 * 600.0)]
    breaks: list[dict[str, Any]] = [{"time": moved[0]}, {"time": moved[1]}, {"runs": ["a"] * 25 + ["b"] * 15}]
    for each in breaks:
        found = fitted().assess_series(X, **each)
        np.testing.assert_array_equal(found.scores[:25], first.scores)
        tolerance = 0.1 if each is breaks[0] else 0.0  # slow levels go on after a gap
        np.testing.assert_allclose(found.evidence[25:], second.evidence, atol=tolerance, rtol=0)
        assert not np.array_equal(found.evidence[25:], unbroken.evidence[25:])


def test_duplicate_stamps_and_uneven_sampling_are_judged_by_time() -> None:
    n = 600
    X, time = readings(n), np.arange(n, dtype=np.float64)
    doubled = np.repeat(time[: n // 2], 2)
    assert np.isfinite(SensorDetector().fit(X, time=doubled).scores_).all()
    # a fault that lasts four steps leaves as much behind whether it was sampled four or eight times in them
    detector, rng = SensorDetector().fit(X, time=time), np.random.default_rng(5)
    quiet = np.tile(X[300], (12, 1)) + 0.01 * rng.normal(size=(12, 6))
    fault = quiet[:1] + np.array([0, 0, 0, 0.4, 0, 0])
    slow = detector.assess_series(np.r_[quiet, np.repeat(fault, 4, axis=0)], time=np.arange(16.0))
    fast_time = np.r_[np.arange(12.0), 11.5 + 0.5 * np.arange(1, 9)]
    fast = detector.assess_series(np.r_[quiet, np.repeat(fault, 8, axis=0)], time=fast_time)
    by_rows = detector.assess_series(np.r_[quiet, np.repeat(fault, 8, axis=0)])
    last = slow.evidence[-1, 3]
    assert abs(fast.evidence[-1, 3] - last) < 0.3 * abs(by_rows.evidence[-1, 3] - last) + 0.05 * last


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"time": np.arange(9.0)}, r"time must have one entry for each of the 400 rows; got shape \(9,\)"),
        ({"time": np.zeros((400, 1))}, r"time must have one entry .* got shape \(400, 1\)"),
        ({"time": 7}, r"time must have one entry .* got shape \(\)"),
        ({"time": [*stamps(399), pd.NaT]}, "time is missing in 1 rows, the first of them row 399"),
        ({"time": stamps().where(stamps() != stamps()[5])}, "time is missing in 1 rows, the first of them row 5"),
        ({"time": np.r_[np.nan, np.arange(398.0), np.inf]}, "time is missing in 2 rows, the first of them row 0"),
        ({"time": ["yesterday"] * 400}, "time must hold time stamps or numbers; not all could be read"),
        ({"time": [{}] * 400}, "time must hold time stamps or numbers; not all could be read"),
        ({"time": np.zeros(400, dtype=bool)}, "time must hold time stamps or numbers; got bool"),
        ({"time": np.arange(400).astype("m8[s]")}, "time must hold time stamps or numbers; got timedelta64"),
        ({"runs": ["a"] * 3}, r"runs must have one label for each of the 400 rows; got shape \(3,\)"),
    ],
)
def test_times_and_runs_that_do_not_fit_are_named(given: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        SensorDetector().fit(readings(), **given)
    with pytest.raises(ValueError, match=message):
        fitted().score_series(readings(), **given)


@pytest.mark.parametrize("p", [1, 2, 500])
@pytest.mark.parametrize("n", [2, 3, 60])
def test_any_shape(n: int, p: int) -> None:
    X = readings(n, p=p)
    detector = SensorDetector().fit(X)
    later = detector.assess_series(readings(20, seed=1, p=p))
    for scores in (
        detector.scores_,
        detector.single_row_scores_,
        detector.out_of_sample_scores_,
        later.scores,
        detector.anomaly_score(X),
    ):
        assert np.isfinite(scores).all()
    assert later.evidence.shape == (20, p)
    assert np.isfinite(detector.evidence_).all()
    assert np.isfinite(later.evidence).all()
    assert np.isnan(detector.expected_by_chance([1.0])).all() or n == 60


def test_a_single_sensor_that_leaves_its_range_is_found() -> None:
    X = np.random.default_rng(0).normal(size=(500, 1))
    X[420:430] += 5
    assert 420 <= SensorDetector().fit(X).scores_.argmax() < 432
    assert 20 <= SensorDetector().fit(X[:400]).score_series(X[400:]).argmax() < 32


@pytest.mark.parametrize("value", [0.0, 0.1, -3.3e7, 1e300])
def test_constant_columns_explain_nothing_and_are_not_judged(value: float) -> None:
    X = np.column_stack([readings(), np.full(400, value)])
    X[200:210, 3] += 1.0
    detector, without = SensorDetector().fit(X), SensorDetector().fit(X[:, :-1])
    assert not detector.model_.scale.scored[-1]
    assert (detector.evidence_[:, -1] == 0).all()
    np.testing.assert_allclose(detector.evidence_[:, :-1], without.evidence_, rtol=1e-6)
    np.testing.assert_allclose(detector.expected(X)[:, -1], value)
    everything = SensorDetector().fit(np.full((30, 4), value))
    assert (everything.scores_ == 0).all()
    assert np.isfinite(everything.score_series(readings(9, p=4))).all()


def test_missing_readings_carry_no_evidence() -> None:
    X = readings(800)
    X[300:420] = np.nan  # nothing at all for a day
    X[500:, 1] = np.nan  # a sensor that dies for good
    X[np.random.default_rng(2).random(X.shape) < 0.05] = np.nan
    X[650:660, 3] += 1.0
    detector = SensorDetector().fit(X)
    assert np.isfinite(detector.scores_).all()
    assert 645 <= detector.scores_.argmax() < 665
    assert detector.evidence_[655].argmax() == 3
    assert (detector.evidence_[600:, 1] < 0.1).all()
    assert detector.observed_fraction_[350] == 0
    assert np.isfinite(detector.expected(X)).all()
    assert np.isfinite(detector.anomaly_score(X)).all()
    with pytest.raises(ValueError, match="only in column 1"):
        SensorDetector().fit(np.where(np.arange(6) == 1, np.nan, X))


@pytest.mark.parametrize("how", ["no reading", "stuck", "zero", "added"])
def test_a_sensor_that_dies_later_does_not_spoil_the_others(how: str) -> None:
    X, later = readings(), readings(300)[200:] + 0.0
    before = fitted("few").assess_series(later)
    later[50:, 1] = {"no reading": np.nan, "stuck": later[50, 1], "zero": 0.0, "added": later[50:, 1]}[how]
    if how == "added":
        X[:350, 1] = np.nan  # it is new in the last rows that were fitted to
        found = SensorDetector().fit(X).assess_series(later)
    else:
        found = fitted("few").assess_series(later)
        np.testing.assert_array_equal(found.scores[:50], before.scores[:50])
    assert np.isfinite(found.scores).all()
    assert np.isfinite(found.evidence).all()
    if how == "no reading":
        assert (np.diff(found.evidence[51:, 1]) <= 0).all()
        assert (found.evidence[96:, 1] < 0.05).all()
    if how == "zero":
        later[50:, 1] = 40.0
        assert (fitted("all").assess_series(later).evidence[55:60].argmax(axis=1) == 1).all()


def test_expected_is_what_the_other_sensors_say() -> None:
    X = readings()
    detector, late = SensorDetector().fit(X), X[-50:].copy()
    late[:, 2] += 0.7
    np.testing.assert_allclose(detector.expected(late)[:, 2], X[-50:, 2], atol=0.2)
    gone = late.copy()
    gone[:, 2] = np.nan
    np.testing.assert_allclose(detector.expected(gone)[:, 2], detector.expected(late)[:, 2], atol=1e-9)
    one_by_one = np.vstack([detector.expected(row[None]) for row in gone])
    np.testing.assert_array_equal(one_by_one, detector.expected(gone))
    assert detector.deviations(late)[:, 2].mean() > 3
    assert (detector.deviations(gone)[:, 2] == 0).all()


@pytest.mark.filterwarnings("ignore:X does not have valid feature names:UserWarning")
def test_names_of_columns_are_kept_and_compared() -> None:
    frame = pd.DataFrame(readings(), columns=NAMES)
    monitor = SensorDetector().fit(frame).monitor()
    assert monitor.detector.feature_names_in_.tolist() == NAMES
    with pytest.raises(ValueError, match="same order"):
        monitor.update_many(frame[NAMES[::-1]])
    with pytest.raises(ValueError, match="feature names"):
        monitor.update(frame[NAMES[::-1]].iloc[0])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        by_name, by_place = (
            monitor.copy().update_many(frame).scores,
            monitor.copy().update_many(frame.to_numpy()).scores,
        )
        assert monitor.copy().update(frame.iloc[0]) == monitor.copy().update(frame.to_numpy()[0])
        singly = [monitor.update(row) for row in frame.to_numpy()]
    assert by_name.tolist() == by_place.tolist() == singly
    for wrong in (readings(5, p=5), readings(5, p=7)):
        with pytest.raises(ValueError, match="expecting 6 features"):
            monitor.update_many(wrong)
        with pytest.raises(ValueError, match="expecting 6 features"):
            monitor.update(wrong[0])
    with pytest.raises(ValueError, match="inf"):
        monitor.update_many(np.full((2, 6), np.inf))
    assert monitor.update_many(np.empty((0, 6))).evidence.shape == (0, 6)


@pytest.mark.kernels
@examples(20)
@given(
    kind=st.sampled_from(["time", "none", "few"]),
    seed=st.integers(0, 2**32 - 1),
    cuts=st.lists(st.integers(0, 60), max_size=6),
    holes=st.sampled_from([0.0, 0.1, 0.9]),
)
def test_any_cut_of_a_series_gives_the_same_to_the_last_bit(
    kind: str, seed: int, cuts: list[int], holes: float
) -> None:
    """A monitor fed pieces or single rows, copied or restored, says what `assess_series` says of the whole."""
    detector, rng = fitted(kind), np.random.default_rng(seed)
    X = readings(60, seed % 1000) + 0.3 * rng.standard_t(2, size=(60, 6))
    X[rng.random(X.shape) < holes] = np.nan
    time = None if kind == "none" else 600 * np.cumsum(rng.choice([0.0, 0.5, 1.0, 1.0, 2.0, 9.0, -3.0], size=60))
    runs = None if seed % 2 else (np.arange(60) // 17)
    whole = detector.assess_series(X, time=time, runs=runs)
    monitor, pieces = detector.monitor(), []
    for start, stop in zip([0, *sorted(cuts)], [*sorted(cuts), 60], strict=True):
        some = slice(start, stop)
        pieces.append(
            monitor.update_many(
                X[some], time=None if time is None else time[some], runs=None if runs is None else runs[some]
            )
        )
        goes_on = detector.monitor()
        goes_on.restore(monitor.state())
        monitor = goes_on.copy()
    np.testing.assert_array_equal(np.concatenate([piece.scores for piece in pieces]), whole.scores)
    np.testing.assert_array_equal(np.concatenate([piece.evidence for piece in pieces]), whole.evidence)
    single = detector.monitor()
    for row, score in enumerate(whole.scores):
        given_time, run = None if time is None else time[row], None if runs is None else runs[row]
        assert single.update(X[row], time=given_time, run=run) == score
    assert np.isfinite(whole.scores).all()
    assert np.isfinite(whole.evidence).all()


def test_long_series_are_judged_in_pieces_of_bounded_memory() -> None:
    detector, X = fitted("none"), readings(9000, seed=4)
    monitor = detector.monitor()
    pieces = [monitor.update_many(X[start : start + 700]).scores for start in range(0, 9000, 700)]
    np.testing.assert_array_equal(detector.score_series(X), np.concatenate(pieces))


def test_how_often_by_chance() -> None:
    detector = SensorDetector().fit(np.random.default_rng(0).normal(size=(3000, 4)))
    low, middle, high = detector.expected_by_chance([1.0, 3.0, 6.0])
    assert low > middle > high > 0
    np.testing.assert_allclose(detector.expected_by_chance([3.0], 6000), 2 * middle)
    assert detector.expected_by_chance([3.0], later=False).shape == (1,)


def test_few_later_rows_of_a_healthy_plant_are_flagged() -> None:
    healthy = simulate_hydropower(0, faults=False).table
    detector = SensorDetector().fit(healthy.iloc[:4000])
    assert (detector.predict(healthy.iloc[:4000]) == -1).mean() < 0.01
    assert (detector.predict(healthy.iloc[4000:]) == -1).mean() < 0.01
    assert detector.set_contamination(0.1).set_contamination("auto").threshold_ == detector.threshold_
    assert np.isnan(SensorDetector().fit(readings(9)).expected_by_chance([5.0])).all()
    few = SensorDetector().fit(readings(30))
    assert (few.predict(readings(30)) == -1).sum() == 1  # the highest


@pytest.mark.parametrize("kind", ["time", "none", "few"])
def test_detectors_and_monitors_in_files_go_on_to_the_last_bit(tmp_path: Path, kind: str) -> None:
    detector, X = fitted(kind), readings(60, seed=6)
    detector.save(tmp_path / "detector")
    loaded = penstock.load(tmp_path / "detector")
    assert_same_detector(detector, loaded)
    np.testing.assert_array_equal(loaded.score_series(X), detector.score_series(X))
    monitor = detector.monitor()
    monitor.update_many(X[:31], runs=["a"] * 31)
    monitor.save(tmp_path / "monitor")
    again = penstock.load(tmp_path / "monitor")
    assert isinstance(again, SeriesMonitor)
    np.testing.assert_array_equal(again.update_many(X[31:]).evidence, monitor.update_many(X[31:]).evidence)
    with pytest.raises(StorageError, match="it holds a SeriesMonitor, not a model"):
        penstock.detection.Model.load(tmp_path / "monitor")


@pytest.mark.parametrize("kind", ["time", "few"])
def test_monitors_that_do_not_fit_are_refused_or_harmless(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    X = readings(40, seed=6)
    monitor = SensorDetector().fit(readings(60)[:, :3], time=np.arange(60.0) if kind == "time" else None).monitor()
    monitor.update_many(X[:31, :3], time=np.arange(31.0))
    monitor.save(tmp_path / "monitor")

    def works(loaded: SeriesMonitor) -> None:
        found = loaded.update_many(X[31:, :3], time=31.0 + np.arange(9))
        assert np.isfinite(found.scores).all()
        assert np.isfinite(found.evidence).all()
        loaded.save(tmp_path / "again")

    refused, taken = refuse_or_work(tmp_path / "monitor", monkeypatch, works)
    assert refused > 900
    assert len(taken) > 5


EXTREME = [0.0, 1e-300, -1e-300, 1e-12, -1.0, 1e150, -1e150, 1e308, -1e308]


@pytest.mark.filterwarnings("ignore:overflow:RuntimeWarning")
def test_numbers_of_any_size_in_a_file_are_refused_or_harmless(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A hostile file may hold any finite number: never a crash or a NaN."""
    monitor = fitted("few").monitor()
    monitor.update_many(readings(31, seed=6))
    monitor.save(tmp_path / "monitor")
    sound = read_state(tmp_path / "monitor")[1]
    X = np.vstack([readings(9, seed=7), np.full((1, 6), 1e308), np.full((1, 6), np.nan)])
    for way in places(sound):
        value = at(sound, way)
        numbers = isinstance(value, np.ndarray) and value.dtype == np.float64
        for extreme in EXTREME if numbers or type(value) is float else ():
            state = changed(sound, way, np.full(value.shape, extreme) if numbers else extreme)
            monkeypatch.setattr("penstock.detection._model_files.read_state", lambda *_, s=state: ("monitor", s))
            try:
                loaded = penstock.load("file")
            except StorageError:
                continue
            found = loaded.update_many(X)
            assert np.isfinite(found.scores).all(), (way, extreme)
            assert not np.isnan(found.evidence).any(), (way, extreme)
            assert not np.isnan(loaded.detector.anomaly_score(X)).any(), (way, extreme)


@pytest.mark.parametrize(
    ("way", "value", "message"),
    [
        (("series", "layer", "means"), np.zeros((3, 9)), r"means.* should be float64 of shape \(4, 5\)"),
        (("series", "novelty", "level"), np.zeros(1), "level.* ≥ 1e-300"),
        (("detector", "fitted", "model", "model", "novelty", "column"), 99, "center.* of 6 columns"),
        (("series", "last", "begun"), 1, "begun.* should be True or False"),
        (("series", "last", "run"), [], "run.* should be a text or a number"),
        (("detector", "fitted", "model", "model", "scale", "width"), np.zeros(6), "width.* ≥ 1e-300"),
        (("detector", "fitted", "model", "single_rows"), np.zeros(3), r"single_rows.* of shape \(400\)"),
        (("detector", "fitted", "model", "model", "past_moments"), np.full((3, 5), -1.0), "counts and sums of squares"),
        (("detector", "fitted", "model", "model", "residuals", "precision"), np.eye(6) * 1e9, "inverse covariance"),
        (("detector", "fitted", "model", "model", "residuals", "precision"), np.zeros((6, 6)), "inverse covariance"),
        (("detector", "fitted", "model", "model", "layer", "activity", "typical"), np.full(6, 1e-20), "≥ 1e-13"),
        (("detector", "class"), "NormScore", "NormScore has no parameter"),
        (("detector", "fitted"), None, "its detector does not score series, or is not fitted"),
    ],
)
def test_what_does_not_fit_in_a_monitor_is_named(
    tmp_path: Path, way: tuple[str, ...], value: Any, message: str
) -> None:
    fitted().monitor().save(tmp_path / "monitor")
    state = read_state(tmp_path / "monitor")[1]
    write_state(tmp_path / "monitor", "monitor", changed(state, way, value))
    with pytest.raises(StorageError, match=f"(?s)the file is sound, but .*not a monitor.*{message}"):
        penstock.load(tmp_path / "monitor")
