"""`SensorDetector` fitted on a cluster is the one fitted on one machine, to rounding; and what can go wrong."""

from __future__ import annotations

import json
import os
import signal

import numpy as np
import pandas as pd
import pytest

from penstock import Detector, SensorDetector, scale
from penstock.cli import main
from penstock.io import TableError

N = 1200  # more than one block


def readings(p=5, seed=0):
    """Sensors that follow two slow causes: one fault, some readings missing, the last column a setting."""
    rng = np.random.default_rng(seed)
    X = np.cumsum(rng.normal(size=(N, 2)), axis=0) @ rng.normal(size=(2, p)) * 0.1 + 0.05 * rng.normal(size=(N, p))
    X[700:730, 2] += 1.0
    X[rng.random(X.shape) < 0.01] = np.nan
    X[:, 4] = np.repeat([1.0, 2.0, 3.0], N // 3)
    return X


def times():
    """Uneven, with two gaps."""
    rng = np.random.default_rng(1)
    return np.cumsum(rng.choice([1.0, 1.0, 1.0, 2.0], N) + np.isin(np.arange(N), [400, 900]) * 100)


def assert_same(found, expected, X):
    for name in (
        "scores_",
        "evidence_",
        "single_row_scores_",
        "out_of_sample_scores_",
        "observed_fraction_",
        "threshold_",
    ):
        np.testing.assert_allclose(getattr(found, name), getattr(expected, name), rtol=1e-9, atol=1e-9, err_msg=name)
    np.testing.assert_allclose(found.score_series(X[:50]), expected.score_series(X[:50]), rtol=1e-9, atol=1e-9)


def test_the_same_as_on_one_machine_from_pieces_of_files(client, tmp_path):
    X, time, runs = readings(), times(), np.repeat(["a", "b"], N // 2)
    frame = pd.DataFrame(X, columns=list("vwxyz"))
    (tmp_path / "rows").mkdir()
    for number, (start, stop) in enumerate([(0, 100), (100, 777), (777, N)]):
        frame[start:stop].to_parquet(tmp_path / "rows" / f"{number}.parquet", row_group_size=250)
    found = scale.fit(SensorDetector(), tmp_path / "rows", client, folder=tmp_path / "job", time=time, runs=runs)
    assert_same(found, SensorDetector().fit(frame, time=time, runs=runs), X)
    assert list(found.feature_names_in_) == list("vwxyz")
    evidence = np.array(found.evidence_)
    del found
    again = scale.fit(SensorDetector(), tmp_path / "rows", client, folder=tmp_path / "job", time=time, runs=runs)
    np.testing.assert_array_equal(again.evidence_, evidence)  # from what is in the folder


@pytest.mark.slow
def test_one_sensor_alone(client):
    X = np.cumsum(np.random.default_rng(2).normal(size=(N, 1)), axis=0)
    assert_same(scale.fit(SensorDetector(), X, client), SensorDetector().fit(X), X)


def test_it_goes_on_after_a_lost_driver_and_a_lost_worker(client, tmp_path):
    X = readings()

    def stop(stage, done, total):
        if stage.startswith("step 30,"):
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        scale.fit(SensorDetector(), X, client, folder=tmp_path / "job", progress=stop)
    stages, worker = [], next(iter(client.run(os.getpid).values()))

    def kill_once(stage, done, total):
        if not any(seen.startswith("step 50,") for seen in stages) and stage.startswith("step 50,"):
            os.kill(worker, signal.SIGKILL)
        stages.append(stage)

    found = scale.fit(SensorDetector(), X, client, folder=tmp_path / "job", progress=kill_once)
    client.wait_for_workers(2, timeout=300)
    assert not any(stage.startswith("step 29,") for stage in stages)
    assert any(stage.startswith("step 50,") for stage in stages)
    assert_same(found, SensorDetector().fit(X), X)


def test_what_is_refused(client, tmp_path):
    frame = pd.DataFrame(readings())
    for number, part in enumerate([frame[600:], frame[:600]]):
        part.rename(columns=str).to_parquet(tmp_path / f"{number}.parquet")
    time = np.r_[times()[600:], times()[:600]]
    with pytest.raises(TableError, match=r"1\.parquet.* begins before .*0\.parquet.* ends .*order of time"):
        scale.fit(SensorDetector(), tmp_path, client, time=time)
    with pytest.raises(TypeError, match="Detector does not look at time"):
        scale.fit(Detector(), readings(), client, time=times())
    with pytest.raises(ValueError, match="time must have one entry for each of the 1200 rows"):
        scale.fit(SensorDetector(), readings(), client, time=[1.0, 2.0])
    with pytest.raises(TableError, match="Column 1 has no reading at all"):
        scale.fit(SensorDetector(), np.column_stack([readings()[:, 0], np.full(N, np.nan)]), client)


@pytest.mark.slow
def test_the_command_fits_series_on_a_cluster(client, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    table = pd.DataFrame(readings(), columns=list("vwxyz"))
    table.insert(0, "time", pd.date_range("2026-01-01", periods=N, freq="10min"))
    table.to_csv("plant.csv", index=False)
    engine = str(client.scheduler.address).replace("tcp://", "dask://")
    for name, options in (("there.json", ["--engine", engine]), ("here.json", [])):
        assert main(["detect", "plant.csv", "-q", "-o", name, *options]) == 0
    there, here = (json.loads((tmp_path / name).read_text()) for name in ("there.json", "here.json"))
    assert there["settings"].pop("engine") == engine
    assert [row["row"] for row in there["findings"]] == [row["row"] for row in here["findings"]]
