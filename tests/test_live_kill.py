"""`penstock watch`, killed with SIGKILL many times, writes what an unbroken run does, to the last byte."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from golden.behaviour import modes

from penstock.cli import main

N_ROWS, N_COLUMNS = 2500, 6


def plant_like_csv(path: Path) -> None:
    """Rows with anomalies, missing readings and malformed lines; the last line has no line end."""
    rng = np.random.default_rng(7)
    rows = rng.random((N_ROWS, 3)) @ rng.random((3, N_COLUMNS)) + 0.01 * rng.random((N_ROWS, N_COLUMNS))
    rows[::199, 2] += 4.0
    lines = ["time," + ",".join(f"sensor{column}" for column in range(N_COLUMNS))]
    for number, row in enumerate(rows):
        fields = [f"{value:.6f}" for value in row]
        if number % 37 == 0:
            fields[number % N_COLUMNS] = ""
        if number % 333 == 0:
            fields[1] = "broken"
        lines.append(f"2026-03-14T{number},{','.join(fields)}")
    path.write_text("\n".join(lines), encoding="ascii")


def learn_from_good_months(folder: Path) -> Path:
    """Fit unit1.penstock as the README does, with operating modes; return a file to watch."""
    table = pd.concat([modes()] * 4, ignore_index=True).assign(
        time=pd.date_range("2024-05-01", periods=2000, freq="10min")
    )
    table[:1000].to_csv(folder / "good.csv", index=False)
    live = table[1000:].copy()
    live.loc[1500:1505, "oil"] += 9
    live.loc[1700, "state"] = "new"
    live.to_csv(folder / "live.csv", index=False)
    fit = [
        "fit",
        str(folder / "good.csv"),
        "--model",
        str(folder / "unit1.penstock"),
        "--mode",
        "state",
        "--settle",
        "20min",
    ]
    assert main([*fit, "--quiet"]) == 0
    return folder / "live.csv"


@pytest.mark.parametrize("kills", [30, pytest.param(100, marks=pytest.mark.slow)])
def test_killed_often_the_output_is_that_of_an_unbroken_run(tmp_path: Path, kills: int) -> None:
    in_snapshots = kills // 5
    plant_like_csv(tmp_path / "plant.csv")
    live = learn_from_good_months(tmp_path)
    common = [str(tmp_path / "plant.csv"), "--components", "3", "--snapshot-every", "100"]
    variants = [
        common,
        [*common, "--threshold", "drifting-peaks", "--snapshot-every", "73", "--warmup", "900"],
        [*common, "--threshold", "quantile:rate=0.05", "--no-learn-flagged", "--forgetting", "0.999"],
        [str(live), "--model", str(tmp_path / "unit1.penstock"), "--snapshot-every", "40"],
        [str(live), "--model", str(tmp_path / "unit1.penstock"), "--snapshot-every", "31", "--threshold", "conformal"],
    ]
    variants = variants if kills > 30 else [variants[0], variants[-1]]
    task = {"folder": str(tmp_path), "variants": variants, "kills": kills, "half_written": in_snapshots, "seed": 0}
    done = subprocess.run(
        [sys.executable, str(Path(__file__).with_name("live_kills.py"))],
        input=json.dumps(task),
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
        env={**os.environ, "OPENBLAS_NUM_THREADS": "1"},  # no threads, so that forks are whole
    )
    assert done.returncode == 0, done.stderr
    sequences = json.loads(done.stdout)
    errors = [(tmp_path / f"sequence-{number}" / "stderr.txt").read_text() for number in range(len(sequences))]
    assert [each["last_code"] for each in sequences] == [0] * len(sequences), errors[-1]
    assert all(each["identical"] for each in sequences)
    assert len(sequences) >= len(variants)

    killed = [kill for each in sequences for kill in each["kills"]]
    assert {kill["signal"] for kill in killed} == {signal.SIGKILL}  # each was alive
    mid_work = [kill for kill in killed if kill["worked"] and kill["output_bytes"] < kill["expected_bytes"]]
    assert len(mid_work) >= kills
    assert sum(bool(kill["half_written"]) for kill in killed) >= in_snapshots
    assert "Traceback" not in "".join(errors)
    print(f"{len(killed)} kills, {len(mid_work)} in mid-work, in {len(sequences)} sequences")
