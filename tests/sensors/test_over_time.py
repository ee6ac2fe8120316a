"""Any detector of rows over time: residuals that leave a reading's own part out, and what must not matter."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from naive import sensors as naive
from sklearn.base import clone

import penstock
from penstock import GNMF, NMF, NSNMF, SNMF, Detector, KNNDistance, LaplacianNSNMF, LoMST, OnlineNSNMF, OverTime
from penstock.detectors import BaseDetector, SensorDetector, SeriesDetector
from penstock.detectors.over_time import held_apart_from_readings
from penstock.sensors.residuals import leave_own_out, leverages, rebuild_rows
from penstock.storage import StorageError, read_state, write_state

pytestmark = pytest.mark.filterwarnings("ignore::penstock.CollapsedFactorsWarning")
REBUILDERS = [
    NMF(2, random_state=0),
    NSNMF(2, similarity="normalized", random_state=0),
    LaplacianNSNMF(2, similarity="normalized", random_state=0),
    GNMF(2, penalty=0.1, random_state=0),
    SNMF(2, random_state=0),
]
SCORERS = [Detector(), KNNDistance(), LoMST()]
every_detector = pytest.mark.parametrize("detector", [*REBUILDERS, *SCORERS], ids=lambda each: type(each).__name__)


def plant(n: int = 300, fault: bool = True) -> np.ndarray:
    """Return six sensors that follow two positive causes; from row 200 on, sensor 2 reads too high for 20 rows."""
    rng = np.random.default_rng(0)
    t = np.arange(n)
    causes = np.column_stack([1 + np.sin(t / 25), 1 + np.cos(t / 11)])
    X = causes @ rng.uniform(0.2, 1, size=(2, 6)) + 0.02 * rng.normal(size=(n, 6))
    if fault:
        X[200:220, 2] += 0.4
    return X


@pytest.mark.kernels
@settings(max_examples=30, deadline=None)
@given(st.integers(1, 6), st.integers(1, 5), st.integers(0, 2**32 - 1))
def test_residuals_of_rebuilt_rows_are_their_slow_twin(p: int, k: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    H = np.abs(rng.normal(size=(k, p))) * (rng.random((k, p)) < 0.8)
    H[k // 2] = H[0]  # redundant groups are no more than one
    root = rng.normal(size=(k, k)) * rng.integers(0, 2)
    W, Q = rng.random((9, k)) * (rng.random((9, k)) < 0.7), root @ root.T
    Z = np.where(rng.random((9, p)) < 0.15, np.nan, rng.normal(size=(9, p)))
    rebuilt = rebuild_rows(W, H)
    np.testing.assert_allclose(rebuilt, W @ H)
    found = leave_own_out(np.where(np.isnan(Z), 0.0, Z - rebuilt), H, Q, W > 0, ~np.isnan(Z))
    rows = zip(Z, rebuilt, W, strict=True)
    expected = [[naive.rebuilt_residual(z, again, w, H, Q, j) for j in range(p)] for z, again, w in rows]
    np.testing.assert_allclose(found, expected, atol=1e-6)


@pytest.mark.parametrize("held", [0.0, 0.7])
def test_a_residual_is_that_of_weights_found_without_the_reading(held: float) -> None:
    rng = np.random.default_rng(0)
    H, z, Q = rng.random((3, 8)), rng.random(8), held * np.eye(3)

    def weights(some: np.ndarray) -> np.ndarray:
        return np.linalg.solve(H[:, some] @ H[:, some].T + Q, H[:, some] @ z[some])

    everything = np.ones(8, dtype=bool)
    residuals = (z - weights(everything) @ H)[None]
    found = leave_own_out(residuals, H, Q, np.ones((1, 3), dtype=bool), everything[None])[0]
    for j in range(8):
        assert found[j] == pytest.approx(z[j] - weights(np.arange(8) != j) @ H[:, j])


@pytest.mark.parametrize("detector", [NMF(2, random_state=0), NSNMF(2, random_state=0, similarity="normalized")])
def test_a_leverage_is_how_far_the_rebuilt_value_follows_the_reading(detector: BaseDetector) -> None:
    fitted, row = clone(detector).fit(plant(fault=False)), 1.2 * plant(fault=False)[150] + 0.3
    W, ones = fitted.transform([row]), np.ones((1, 6), dtype=bool)
    moved = fitted.transform(row + 1e-4 * np.eye(6))
    true = np.diag(fitted.inverse_transform(moved) - fitted.inverse_transform(W)) / 1e-4
    held = held_apart_from_readings(fitted)
    error, of_readings_alone = (
        abs(leverages(fitted.components_, Q, W > 0, ones)[0] - true).mean() for Q in (held, 0 * held)
    )
    assert error < 0.03
    assert error <= of_readings_alone


@pytest.mark.parametrize("detector", REBUILDERS[:3], ids=lambda each: type(each).__name__)
def test_a_fault_of_one_sensor_is_found_and_named(detector: BaseDetector) -> None:
    fitted = OverTime(detector).fit(plant())
    assert 200 <= fitted.scores_.argmax() < 220
    assert fitted.evidence_.shape == (300, 6)
    assert fitted.evidence_[200:220].mean(axis=0).argmax() == 2
    healthy = OverTime(detector).fit(plant(fault=False))
    later = healthy.assess_series(plant())
    assert 200 <= later.scores.argmax() < 224
    assert later.evidence[205].argmax() == 2
    assert np.abs(healthy.deviations(plant()))[200:220].mean(axis=0).argmax() == 2


def test_what_was_to_be_expected_does_not_follow_the_reading() -> None:
    healthy = OverTime(NMF(2, random_state=0)).fit(plant(fault=False))
    true, row = plant(fault=False)[200:220, 2], slice(200, 220)
    error = abs(healthy.expected(plant())[row, 2] - true).mean()
    rebuilt = healthy.detector_.inverse_transform(healthy.detector_.transform(plant()[row]))
    assert error < 0.05  # of 0.4
    assert error < 0.5 * abs(rebuilt[:, 2] - true).mean()


@every_detector
def test_the_contract(detector: BaseDetector, tmp_path: Path) -> None:
    X, later = plant(), plant(160)[100:]
    if type(detector)._takes_missing:
        later[5:9, 1], later[30] = np.nan, np.nan
    over_time = OverTime(detector)
    fitted = clone(over_time).fit(X, time=np.arange(300.0))
    assert not hasattr(detector, "scores_")
    assert type(fitted.detector_) is type(detector)
    assert fitted.scores_sensors is (fitted.evidence_.shape == (300, 6))
    scores = fitted.score_series(later)
    fitted.save(tmp_path / "saved")
    loaded = penstock.load(tmp_path / "saved")
    assert repr(loaded) == repr(fitted)
    np.testing.assert_array_equal(loaded.scores_, fitted.scores_)
    np.testing.assert_array_equal(loaded.score_series(later), scores)
    np.testing.assert_array_equal(loaded.anomaly_score(later), fitted.anomaly_score(later))
    np.testing.assert_array_equal(fitted.anomaly_score(X), fitted.single_row_scores_)
    monitor, again = fitted.monitor(), loaded.monitor()
    for start, stop in pairwise((0, 7, 8, 20)):
        np.testing.assert_array_equal(monitor.update_many(later[start:stop]).scores, scores[start:stop])
    again.restore(monitor.state())
    np.testing.assert_array_equal(again.update_many(later[20:]).scores, scores[20:])
    np.testing.assert_array_equal(monitor.update(later[20]), scores[20])


@pytest.mark.parametrize("detector", [REBUILDERS[0], SCORERS[1]], ids=["rebuilt", "scores"])
def test_units_do_not_matter(detector: BaseDetector) -> None:
    X = plant()
    plain = OverTime(detector).fit(X)
    other = OverTime(detector).fit(X * [1e-6, 1.8, 1, 1e5, 7, 3] + 32)
    np.testing.assert_allclose(other.scores_, plain.scores_, atol=1e-4)
    np.testing.assert_allclose(other.evidence_, plain.evidence_, atol=1e-4)


@pytest.mark.parametrize("detector", [*REBUILDERS, *SCORERS[:2]], ids=lambda each: type(each).__name__)
def test_a_missing_reading_carries_no_evidence(detector: BaseDetector) -> None:
    X = plant()
    X[40:60, 3], X[100:103] = np.nan, np.nan
    fitted = OverTime(detector).fit(X)
    assert np.isfinite(fitted.scores_).all()
    assert (fitted.single_row_scores_[100:103] == fitted.single_row_scores_.min()).all()
    later = plant(50)
    later[:, 1] = np.nan
    found = fitted.assess_series(later)
    assert np.isfinite(found.scores).all()
    nothing = fitted.assess_series(np.full((5, 6), np.nan))
    assert (nothing.evidence == 0).all()
    if fitted.scores_sensors:
        assert (found.evidence[:, 1] == 0).all()
        assert found.evidence.any()
        assert np.isfinite(fitted.expected(X)).all()


def test_a_detector_that_needs_all_readings_says_so() -> None:
    X = plant()
    X[40, 3] = np.nan
    with pytest.raises(ValueError, match=r"contains NaN .* in row 40, column 3"):
        OverTime(LoMST()).fit(X)


@pytest.mark.parametrize("detector", SCORERS, ids=lambda each: type(each).__name__)
def test_where_nothing_is_rebuilt_the_row_is_evidence_and_sensors_are_not(detector: BaseDetector) -> None:
    fitted = OverTime(detector).fit(plant())
    assert fitted.evidence_.shape == (300, 1)
    assert fitted.assess_series(plant()).evidence.shape == (300, 1)
    for question in (fitted.expected, fitted.deviations):
        with pytest.raises(AttributeError, match="rebuilds no rows"):
            question(plant())


def test_a_score_below_the_usual_one_is_no_evidence() -> None:
    rng = np.random.default_rng(0)
    fitted = OverTime(KNNDistance()).fit(rng.normal(size=(400, 4)))
    assert (fitted.assess_series(0.01 * rng.normal(size=(30, 4))).evidence == 0).all()
    assert (fitted.assess_series(np.full((1, 4), 5.0)).evidence > 1).all()


def test_the_default_is_the_papers_method_with_fewer_groups_than_columns() -> None:
    fitted = OverTime().fit(plant(120))
    assert isinstance(fitted.detector_, NSNMF)
    assert fitted.detector_.n_components == 3
    np.testing.assert_array_equal(OverTime().fit(plant(120)).scores_, fitted.scores_)


def test_parameters_of_the_inner_detector_can_be_set() -> None:
    over_time = OverTime(NMF(2)).set_params(detector__n_components=3)
    assert over_time.get_params()["detector__n_components"] == 3
    with pytest.raises(ValueError, match="n_components must be a whole number"):
        over_time.set_params(detector__n_components=0).fit(plant())


@pytest.mark.parametrize("wrong", [NSNMF, "nsnmf", 3, OnlineNSNMF(), SensorDetector(), OverTime()], ids=repr)
def test_what_cannot_be_followed_is_refused(wrong: object) -> None:
    message = "looks at time by itself" if isinstance(wrong, SeriesDetector) else "detector must be None or a detector"
    with pytest.raises(ValueError, match=message):
        OverTime(wrong).fit(plant())


def test_a_file_with_another_detector_inside_is_refused(tmp_path: Path) -> None:
    OverTime(KNNDistance()).fit(plant()).save(tmp_path / "saved")
    kind, state = read_state(tmp_path / "saved")
    inside = state["fitted"]["model"]["model"]
    for change in (
        {"detector": inside["detector"] | {"class": "MeanDistance"}},
        {"detector": inside["detector"] | {"fitted": None}},
        {"usual": np.array([0.0, 0.0])},
        {"usual": None},
    ):
        state["fitted"]["model"]["model"] = inside | change
        write_state(tmp_path / "changed", kind, state)
        with pytest.raises(StorageError, match="Cannot load"):
            penstock.load(tmp_path / "changed")


@pytest.mark.parametrize("method", [OverTime(NMF(2, random_state=0)), OverTime(KNNDistance())], ids=repr)
def test_detect_takes_it(method: OverTime, tmp_path: Path) -> None:
    table = pd.DataFrame(plant(1200), columns=list("abcdef"), index=pd.date_range("2024", periods=1200, freq="h"))
    table.index.name = "time"
    findings = penstock.detect(table.reset_index(), method=method, top=10)
    assert findings.assessment.method == "OverTime"
    if method.scores_sensors:
        assert findings.incidents
        assert findings.explain(1).variables.iloc[0]["variable"] == "c"
    else:
        assert findings.rows.evidence is None
        assert not findings.incidents
        assert "stretches" in findings.verdict.sentence
    assert len(findings.explain(1).variables)
    model = penstock.fit_model(table.reset_index(), method=method)
    model.save(tmp_path / "model")
    later = penstock.score(penstock.load(tmp_path / "model"), table.iloc[190:230].reset_index(), top=5)
    assert np.isfinite(later.scores).all()
