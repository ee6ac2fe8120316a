"""Writes the golden files of the current format: a small saved detector of each class, models, and what they must say.

    .venv/bin/python tests/golden/make_golden.py

Files that exist are left alone: they prove that what an earlier version wrote can still be read, which files written
anew would not. For a new class add a case to CASES and run it again; a new format gets a folder of its own.
"""

from __future__ import annotations

import json
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from penstock import (
    GNMF,
    NMF,
    NSNMF,
    SNMF,
    Detector,
    KNNDistance,
    LaplacianNSNMF,
    LoMST,
    OnlineNSNMF,
    OverTime,
    SensorDetector,
    fit_model,
)
from penstock.detectors import MeanDistance, NormScore, SeriesMonitor
from penstock.factor import BlockSGD, Multiplicative
from penstock.registry import detector_class
from penstock.storage import FORMAT_VERSION
from penstock.thresholds import (
    ConformalPValue,
    DriftingPeaks,
    Fixed,
    MeanDeviation,
    PeaksOverThreshold,
    RollingQuantile,
    TopN,
)

FOLDER = Path(__file__).resolve().parent


def table(n: int = 14, seed: int = 0) -> pd.DataFrame:
    """A few rows of three sensors, one of them a copy, one odd."""
    rng = np.random.default_rng(seed)
    rows = rng.gamma(2.0, size=(n, 1)) * [1.0, 2.0, 0.5] + rng.random((n, 3))
    rows[3], rows[n - 1] = [9.0, 0.5, 7.0], rows[1]
    return pd.DataFrame(rows, columns=["flow", "Druck", "dp é"])


def by_time() -> pd.DataFrame:
    rows = table()
    return rows.set_index(pd.date_range("2024-03-31 00:30", periods=len(rows), freq="30min", tz="Europe/Berlin"))


def by_name() -> pd.DataFrame:
    return table().rename(index="pump {}".format).rename_axis("unit")


def online(**parameters: Any) -> OnlineNSNMF:
    """A stream under way, with a reading missing."""
    rows = table(30)
    rows.iloc[12, 1] = np.nan
    defaults: dict[str, Any] = {"n_components": 2, "buffer_size": 5, "random_state": 0}
    return OnlineNSNMF(**(defaults | parameters)).partial_fit(rows)


def series(n: int, seed: int = 0) -> np.ndarray:
    """Return rows of three sensors that follow one, and a setting."""
    rng = np.random.default_rng(seed)
    return np.column_stack([np.cumsum(rng.normal(size=n))[:, None] + 0.1 * rng.normal(size=(n, 3)), np.arange(n) // 40])


def begun(detector: SensorDetector) -> SeriesMonitor:
    """Return a monitor that has seen some rows, the last of them after a gap."""
    monitor = detector.monitor()
    monitor.update_many(series(9, 1), time=[60.0, 61, 62, 63, 64, 65, 66, 90, 91], runs=["a"] * 9)
    return monitor


# The name of a file, and the detector to put into it.
CASES: dict[str, Callable[[], Any]] = {
    "NSNMF": lambda: NSNMF(2, random_state=np.random.RandomState(0), contamination=0.1).fit(by_time()),
    "NSNMF-block-sgd": lambda: NSNMF(2, duplicates="zero", solver=BlockSGD(rounds=30), random_state=0).fit(table()),
    "NSNMF-not-fitted": lambda: NSNMF(7, alpha=0.25, scale=None, random_state=3),
    "LaplacianNSNMF": lambda: LaplacianNSNMF(2, score_kind="structural", random_state=0).fit(by_name()),
    "NMF": lambda: NMF(2, solver=Multiplicative(0.25), random_state=0).fit(table()),
    "GNMF": lambda: GNMF(2, n_neighbors=3, random_state=0).fit(table()),
    "SNMF": lambda: SNMF(2, random_state=0).fit(table()),
    "LoMST": lambda: LoMST(scale=None).fit(by_time()),
    "AER": lambda: detector_class("AER")(1, hidden="3-2", max_iter=5, random_state=0).fit(by_time()),
    "DAGMM": lambda: detector_class("DAGMM")(1, n_mixtures=2, hidden=3, max_iter=5, scale=None, random_state=0).fit(
        table()
    ),
    "Detector": lambda: Detector(contamination=0.1).fit(by_time()),
    "Detector-copies": lambda: Detector(contamination=0.1).fit(pd.concat([table()] * 3)),  # draws of all training rows
    "OverTime": lambda: OverTime(NMF(2, random_state=0), contamination=0.1).fit(by_time()),
    "OverTime-scores": lambda: OverTime(KNNDistance(3)).fit(by_name()),
    "SensorDetector": lambda: SensorDetector(contamination=0.1).fit(by_time()),
    "SensorDetector-monitor": lambda: begun(SensorDetector().fit(series(60), time=np.arange(60.0))),
    "KNNDistance": lambda: KNNDistance(3).fit(table().to_numpy()),
    "MeanDistance": lambda: MeanDistance().fit(by_name()),
    "NormScore": lambda: NormScore().fit(table()),
    "OnlineNSNMF": lambda: online(threshold=MeanDeviation(min_scores=4), forgetting=0.99),
    "OnlineNSNMF-warming-up": lambda: online(buffer_size=40),
    "OnlineNSNMF-quantile": lambda: online(threshold=RollingQuantile(0.2, window=9), learn_flagged=False),
    "OnlineNSNMF-drifting-peaks": lambda: online(threshold=DriftingPeaks(0.05, level=0.5, n_calibration=12, depth=3)),
    "OnlineNSNMF-peaks": lambda: online(threshold=PeaksOverThreshold(0.05, level=0.5, n_calibration=12)),
    "OnlineNSNMF-conformal": lambda: online(threshold=ConformalPValue(0.2, window=9)),
    "OnlineNSNMF-top": lambda: online(threshold=TopN(3)),
    "OnlineNSNMF-fixed": lambda: online(threshold=Fixed(0.75)).fit(table()),
}


def what_it_says(detector: Any) -> dict[str, Any]:
    """Plain values that a loaded detector must give again: `scores` to the last bit, `new_scores` to rounding."""
    if isinstance(detector, SeriesMonitor):
        scores = detector.copy().update_many(series(20, 2), time=92.0 + np.arange(20), runs=["a"] * 20).scores
        return what_it_says(detector.detector) | {"class": "SeriesMonitor", "new_scores": scores.tolist()}
    parameters = {name: repr(value) for name, value in detector.get_params().items() if name != "random_state"}
    said: dict[str, Any] = {"class": type(detector).__name__, "parameters": parameters}
    if not hasattr(detector, "n_features_in_") or not getattr(detector, "is_warm", True):
        return said
    new: Any = table(8, seed=1)
    if not hasattr(detector, "feature_names_in_"):
        new = new.to_numpy() if detector.n_features_in_ == new.shape[1] else series(8, seed=1)
    said |= {"threshold": float(detector.threshold_), "new_scores": detector.anomaly_score(new).tolist()}
    if hasattr(detector, "top") and not isinstance(detector, OnlineNSNMF):
        said |= {"scores": detector.scores_.tolist(), "top": [str(label) for label in detector.top(3).index]}
    return said


def model_rows(n: int = 60, seed: int = 0) -> pd.DataFrame:
    """Rows as they are exported: times as text, a state, a kind of text that is seldom, a reading that is missing."""
    rows = table(n, seed).assign(state=np.where(np.arange(n) // 15 % 2, "off", "on"), grade="g")
    rows.loc[::7, "grade"] = "h"
    rows.loc[5, "flow"] = np.nan
    rows.insert(0, "time", pd.date_range("2024-05-01", periods=n, freq="10min").strftime("%d.%m.%Y %H:%M"))
    return rows


MODELS: dict[str, Callable[[], Any]] = {
    "model-modes": lambda: fit_model(model_rows(), method="mean", modes="state", settle="20 min", units={"flow": "m"}),
    "model-rules": lambda: fit_model(model_rows(), method="nmf", modes={"much": "Druck > 4"}, exclude="grade"),
    "model-sensors": lambda: fit_model(model_rows(), timezone="Europe/Berlin", keep="grade"),
}


def what_a_model_says(model: Any) -> dict[str, Any]:
    """What a model of `penstock fit` says of new rows; None where it says nothing."""
    scores = model.score(model_rows(20, seed=1), top=2).scores
    return {"inputs": list(model.inputs.names), "scores": [None if np.isnan(each) else each for each in scores]}


def main() -> None:
    folder = FOLDER / f"format-{FORMAT_VERSION}"
    folder.mkdir(exist_ok=True)
    warnings.simplefilter("ignore")  # so few rows converge to little
    made = {f"{name}.safetensors": (make, what_it_says) for name, make in CASES.items()}
    made |= {f"{name}.penstock": (make, what_a_model_says) for name, make in MODELS.items()}
    for name, (make, says) in made.items():
        path = folder / name
        if path.exists():
            print(f"{path.name} exists")
            continue
        detector = make()
        detector.save(path)
        text = json.dumps(says(detector), indent=1, ensure_ascii=False)
        path.with_suffix(".json").write_text(text + "\n", encoding="utf-8")
        print(f"{path.name} written, {path.stat().st_size:,} bytes")


if __name__ == "__main__":
    main()
