"""`penstock watch`, killed with SIGKILL many times, writes what an unbroken run does, to the last byte."""

from __future__ import annotations

import json
import os
import shlex
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from golden.behaviour import modes

from penstock.cli import main
from penstock.detection import load

N_ROWS, N_COLUMNS = 2500, 6


def plant_like_csv(path: Path) -> None:
    """Rows with anomalies, missing readings and malformed lines; the last line has no line end."""
    rng = np.random.default_rng(7)
    rows = rng.random((N_ROWS, 3)) @ rng.random((3, N_COLUMNS)) + 0.01 * rng.random((N_ROWS, N_COLUMNS))
    rows[::199, 2] += 4.0
    rows[700:720, 2] += 4.0
    lines = ["time," + ",".join(f"sensor{column}" for column in range(N_COLUMNS))]
    for number, row in enumerate(rows):
        fields = [f"{value:.6f}" for value in row]
        if number % 37 == 0:
            fields[number % N_COLUMNS] = ""
        if number % 333 == 0:
            fields[1] = "broken"
        lines.append(f"t{number},{','.join(fields)}")
    path.write_text("\n".join(lines), encoding="ascii")


def learn_from_good_months(folder: Path) -> Path:
    """Fit unit1.penstock as the README does, with operating modes, and rows.penstock; return a file to watch.

    The first scores series, the other each row by itself.
    """
    table = pd.concat([modes()] * 4, ignore_index=True).assign(
        time=pd.date_range("2024-05-01", periods=2000, freq="10min")
    )
    table[:1000].to_csv(folder / "good.csv", index=False)
    live = table[1000:].copy()
    live.loc[1500:1505, "oil"] += 9
    live.loc[1700, "state"] = "new"
    live.to_csv(folder / "live.csv", index=False)
    fit = ["fit", str(folder / "good.csv"), "--mode", "state", "--settle", "20min", "--quiet"]
    assert main([*fit, "--model", str(folder / "unit1.penstock")]) == 0
    assert main([*fit, "--model", str(folder / "rows.penstock"), "--method", "detector"]) == 0
    assert load(folder / "unit1.penstock").can.over_time
    return folder / "live.csv"


@pytest.mark.parametrize("kills", [15, pytest.param(100, marks=pytest.mark.slow)])
def test_killed_often_the_output_is_that_of_an_unbroken_run(tmp_path: Path, kills: int) -> None:
    in_commits = kills // 5
    plant_like_csv(tmp_path / "plant.csv")
    live = learn_from_good_months(tmp_path)
    short = ["--on-delay", "1min", "--off-delay", "2min"]
    common = [str(tmp_path / "plant.csv"), "--components", "3", "--snapshot-every", "100", *short]
    variants = [
        common,
        [*common, "--threshold", "drifting-peaks", "--snapshot-every", "73", "--warmup", "900"],
        [*common, "--threshold", "quantile:rate=0.05", "--no-learn-flagged", "--forgetting", "0.999"],
        [str(live), "--model", str(tmp_path / "rows.penstock"), "--snapshot-every", "40"],
        [str(live), "--model", str(tmp_path / "rows.penstock"), "--snapshot-every", "31", "--threshold", "conformal"],
        [str(live), "--model", str(tmp_path / "unit1.penstock"), "--snapshot-every", "23"],
        [str(live), "--model", str(tmp_path / "unit1.penstock"), "--snapshot-every", "31", "--threshold", "conformal"],
    ]
    variants = variants if kills > 15 else [variants[0], variants[-1]]
    task = {"folder": str(tmp_path), "variants": variants, "kills": kills, "in_commits": in_commits, "seed": 0}
    done = subprocess.run(
        [sys.executable, str(Path(__file__).parents[1] / "support" / "live_kills.py")],
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
    assert sum(kill["in_commit"] for kill in killed) >= in_commits
    assert "Traceback" not in "".join(errors)
    print(f"{len(killed)} kills, {len(mid_work)} in mid-work, in {len(sequences)} sequences")


@pytest.mark.slow
def test_the_three_commands_of_the_readme(tmp_path: Path) -> None:
    """Learn from good months, then watch live: killed in mid-work, the watch goes on to the same output."""
    readme = (Path(__file__).parents[2] / "README.md").read_text(encoding="utf-8")
    lines = readme.splitlines()
    simulate, fit, watch = [
        next(shlex.split(line, comments=True) for line in lines if line.startswith(f"penstock {command}"))
        for command in ("simulate", "fit", "watch")
    ]
    command = [sys.executable, "-c", "import sys; from penstock.cli import main; sys.exit(main())"]
    for given in (simulate, fit):
        subprocess.run([*command, *given[1:]], cwd=tmp_path, check=True, capture_output=True)
    output, kills = tmp_path / watch[-1], 0
    while True:
        process = subprocess.Popen([*command, *watch[1:], "--snapshot-every", "500"], cwd=tmp_path)
        before = output.stat().st_size if output.exists() else 0
        while process.poll() is None and (not output.exists() or output.stat().st_size <= before):
            time.sleep(0.01)
        if process.poll() is None and kills < 3:
            process.kill()
            kills += 1
        if process.wait() == 0:
            break
    assert kills == 3
    subprocess.run([*command, *watch[1:5], "--output", "unbroken"], cwd=tmp_path, check=True, capture_output=True)
    assert output.read_bytes() == (tmp_path / "unbroken").read_bytes()
    assert len(output.read_text().splitlines()) == 3833
