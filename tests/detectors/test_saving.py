"""Detectors in files: what is loaded is what was saved, to the last bit, or the file is refused."""

from __future__ import annotations

import pickle
from datetime import timedelta, timezone
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from estimators_cases import ALL_DETECTORS, TABLES, agreeing_rows, both_scales, new_rows, rescaled, some_rows
from saving_cases import alike, assert_same_detector, saved_and_loaded
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

import penstock
from penstock import NMF, NSNMF, SNMF, KNNDistance, LoMST
from penstock.detectors import BaseDetector, FactorDetector, NormScore
from penstock.factor import BlockSGD, Coordinate, Multiplicative, RowBlocks
from penstock.storage import StorageError, read_state, write_state

pytestmark = [
    pytest.mark.filterwarnings("ignore:n_components = :UserWarning"),
    pytest.mark.filterwarnings("ignore:Only .* rows differ:UserWarning"),
    pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning"),
    pytest.mark.filterwarnings("ignore::penstock.CollapsedFactorsWarning"),
]
MORE_DETECTORS = [
    NSNMF(duplicates="zero", similarity="binary", solver=Coordinate(), random_state=1),
    NSNMF(duplicates="floor", n_components=1, random_state=1),
    NSNMF(n_components=2, solver=RowBlocks(2), random_state=1),
    NMF(n_components=2, solver=RowBlocks(2), random_state=1),
    NMF(n_components=20, random_state=0),
    KNNDistance(n_neighbors=1),
    LoMST(3),
]
every_detector = pytest.mark.parametrize("detector", [*ALL_DETECTORS, *MORE_DETECTORS], ids=repr)


@pytest.mark.parametrize(
    ("detector", "holes"), [*TABLES, *((detector, False) for detector in MORE_DETECTORS)], ids=repr
)
@both_scales
def test_all_comes_back(tmp_path: Path, detector: BaseDetector, holes: bool, scale: str | None) -> None:
    fitted = rescaled(detector, scale).fit(agreeing_rows(holes))
    loaded = saved_and_loaded(fitted, tmp_path)
    assert_same_detector(fitted, loaded)
    new = np.vstack([new_rows(detector), some_rows(p=6)[:5] + 1e-9])
    assert alike(pickle.loads(pickle.dumps(fitted)).anomaly_score(new), fitted.anomaly_score(new))
    for method in ("anomaly_score", "score_samples", "predict", "decision_function"):
        assert alike(getattr(fitted, method)(new), getattr(loaded, method)(new))
    assert fitted.offset_ == loaded.offset_
    assert fitted.top(20).equals(loaded.top(20))
    if isinstance(fitted, FactorDetector):
        weights = fitted.transform(new)
        assert alike(weights, loaded.transform(new))
        assert alike(fitted.inverse_transform(weights), loaded.inverse_transform(weights))
        assert fitted.get_feature_names_out().tolist() == loaded.get_feature_names_out().tolist()
    assert fitted.set_contamination(0.2).threshold_ == loaded.set_contamination(0.2).threshold_
    before = (tmp_path / "saved.safetensors").read_bytes()
    penstock.load(tmp_path / "saved.safetensors").save(tmp_path / "again")
    assert (tmp_path / "again").read_bytes() == before


@every_detector
def test_a_loaded_detector_fits_as_the_saved_one_would(tmp_path: Path, detector: BaseDetector) -> None:
    loaded = saved_and_loaded(clone(detector), tmp_path)
    assert repr(loaded) == repr(detector)
    with pytest.raises(NotFittedError):
        loaded.predict(some_rows())
    assert alike(loaded.fit(some_rows()).scores_, clone(detector).fit(some_rows()).scores_)
    assert clone(loaded).get_params() == loaded.get_params()


@pytest.mark.parametrize(
    ("detector", "unit"),
    [(detector, unit) for detector in (KNNDistance(), LoMST()) for unit in (1e-300, 1e-150, 1e300)]
    + [(detector, unit) for detector in (NSNMF(random_state=0), SNMF(random_state=0)) for unit in (1e-60, 1e60)],
)
def test_any_unit(tmp_path: Path, detector: BaseDetector, unit: float) -> None:
    rows = some_rows() * unit
    rows[:, 2] = 3 * unit
    rows[:, 4] *= 1e-9
    fitted = clone(detector).set_params(scale=None).fit(rows)
    loaded = saved_and_loaded(fitted, tmp_path)
    assert_same_detector(fitted, loaded)
    assert alike(fitted.anomaly_score(rows * 1.01), loaded.anomaly_score(rows * 1.01))


LABELS = {
    "range": pd.RangeIndex(5, 85, name="row number"),
    "int": pd.Index(np.arange(80) * 3, name=7),
    "uint64": pd.Index(np.arange(80, dtype=np.uint64) + 2**63),
    "text": pd.Index([f"row {i} é\ud800" for i in range(80)], dtype=object, name="é"),
    "str": pd.Index([f"row {i}" for i in range(80)], dtype="str"),
    "times": pd.date_range("2024-03-01", periods=80, freq="10min", name="time"),
    "missing time": pd.DatetimeIndex([*pd.date_range("2024-03-01", periods=79), pd.NaT]),
    "zone": pd.date_range("2024-10-26 22:00", periods=80, freq="10min", tz="Europe/Berlin", name="time"),
    "offset": pd.DatetimeIndex(pd.date_range("2024-03-01 12:00+05:30", periods=80, freq="h")),
    "durations": pd.timedelta_range("1h", periods=80, freq="min", name="age"),
}


@pytest.mark.parametrize("name", LABELS)
def test_labels(tmp_path: Path, name: str) -> None:
    frame = pd.DataFrame(some_rows(), index=LABELS[name], columns=["é", "a b", "", "\U0001f600", "d"])
    fitted = NormScore().fit(frame)
    loaded = saved_and_loaded(fitted, tmp_path)
    pd.testing.assert_frame_equal(loaded.top(80), fitted.top(80), check_exact=True)
    assert_same_detector(fitted, loaded)
    assert loaded.feature_names_in_.tolist() == list(frame.columns)
    with pytest.raises(ValueError, match="same order"):
        loaded.predict(frame[frame.columns[::-1]])


@pytest.mark.parametrize(
    ("index", "message"),
    [
        (pd.CategoricalIndex(["a", "b"] * 40), "CategoricalIndex"),
        (pd.MultiIndex.from_product([["a", "b"], range(40)]), "MultiIndex"),
        (pd.Index([1, "a"] * 40, dtype=object), "dtype object, such as 1"),
        (pd.Index(["a", None] * 40, dtype="str"), "dtype (str, such as nan|object, such as None)"),
        (pd.Index(range(80), name=("a", 1)), r"the name \('a', 1\)"),
        (pd.date_range("2024", periods=80, tz=timezone(timedelta(hours=1), "plant")), "no standard name"),
    ],
)
def test_labels_that_cannot_be_stored_are_not_dropped_silently(tmp_path: Path, index: Any, message: str) -> None:
    fitted = NormScore().fit(pd.DataFrame(some_rows(), index=index, columns=list("abcde")))
    with pytest.raises(TypeError, match=rf"{message}.* cannot be stored|{message}.*save\(path, labels=False\)"):
        fitted.save(tmp_path / "saved")
    assert list(tmp_path.iterdir()) == []
    fitted.save(tmp_path / "saved", labels=False)
    best = penstock.load(tmp_path / "saved").top(3)
    assert (best.index.name, best.index[0]) == ("row", 40)


def test_parameters(tmp_path: Path) -> None:
    rng = np.random.RandomState(5)
    rng.normal()
    for solver in (
        RowBlocks(5, 2),
        Coordinate(3),
        Multiplicative(0.25),
        BlockSGD(rounds=np.int64(70), first_step=0.1, last_step=0.01),
    ):
        detector = NSNMF(n_components=np.int32(3), tol=np.float32(0.01), solver=solver, random_state=rng, alpha=1)
        loaded = saved_and_loaded(detector, tmp_path)
        assert_same_detector(detector, loaded)
    assert alike(loaded.random_state, rng)
    for value, name in (
        (np.random.default_rng(0), "random_state"),
        (np.random.RandomState(np.random.PCG64(0)), "random_state"),
    ):
        with pytest.raises(TypeError, match=rf"NSNMF.{name} = .* cannot be stored"):
            NSNMF(**{name: value}).save(tmp_path / "saved")
    with pytest.raises(ValueError, match="alpha must be a finite number > 0; got -1"):
        NSNMF(alpha=-1).save(tmp_path / "saved")


def test_what_was_changed_after_fitting_is_kept(tmp_path: Path) -> None:
    fitted = KNNDistance().fit(some_rows())
    for threshold in (0.25, np.float64(0.3), np.inf, 1):
        fitted.threshold_ = threshold
        assert saved_and_loaded(fitted, tmp_path).threshold_ == threshold
    fitted.threshold_ = np.nan
    with pytest.raises(ValueError, match="threshold_ is NaN"):
        fitted.save(tmp_path / "saved")
    fitted.set_contamination(0.1).set_params(n_neighbors=80)
    with pytest.raises(ValueError, match="needs at least 81 rows"):
        fitted.save(tmp_path / "saved")
    refitted = NSNMF(random_state=0).fit(some_rows()).set_params(similarity="binary", gamma=3.0, duplicates="zero")
    assert_same_detector(refitted, saved_and_loaded(refitted, tmp_path))


class _Mine(NormScore):
    pass


class _Unsaveable(BaseDetector):
    def __init__(self, contamination: Any = "auto", scale: Any = "minmax") -> None:
        self.contamination = contamination
        self.scale = scale

    def _fit_rows(self, A: np.ndarray) -> np.ndarray:
        return A.sum(axis=1)

    def _score_rows(self, A: np.ndarray) -> np.ndarray:
        return A.sum(axis=1)


def test_classes_of_others_are_refused_before_anything_is_packed(tmp_path: Path) -> None:
    impostor = type("NSNMF", (NSNMF,), {"__module__": __name__})
    for detector in (_Mine(), impostor(), _Unsaveable(), _Unsaveable().fit(some_rows())):
        with pytest.raises(TypeError, match=r"test_saving.* cannot be saved: files hold penstock's own detectors only"):
            detector.save(tmp_path / "saved")
    assert not (tmp_path / "saved").exists()


def test_other_files(tmp_path: Path) -> None:
    write_state(tmp_path / "other", "stream", {})
    with pytest.raises(StorageError, match="it holds a 'stream', not a detector or a model"):
        penstock.load(tmp_path / "other")
    (tmp_path / "text").write_text("time,flow\n1,2\n")
    with pytest.raises(StorageError, match=r"Cannot read .*text: it is cut short, or not a file saved by penstock"):
        penstock.load(tmp_path / "text")
    with pytest.raises(FileNotFoundError):
        penstock.load(tmp_path / "nothing")


def test_a_file_without_a_newer_parameter_gets_its_default(tmp_path: Path) -> None:
    LoMST(7).save(tmp_path / "saved")
    state = read_state(tmp_path / "saved")[1]
    del state["parameters"]["contamination"]
    write_state(tmp_path / "saved", "detector", state)
    assert penstock.load(tmp_path / "saved").get_params() == LoMST(7).get_params()


def test_a_million_columns_are_the_most(tmp_path: Path) -> None:
    detector = NormScore(scale=None).fit(np.eye(2, 1_000_001))
    with pytest.raises(ValueError, match="more than 1,000,000 columns cannot be saved"):
        detector.save(tmp_path / "saved")
