"""`penstock serve`, killed under load: verdicts, alarms, labels and outbox are those of an unbroken run."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from live_service import csv_of, model, rows

from penstock.live.store import Store

TIMES = {"at", "until", "time", "acknowledged_at"}  # of what a person did: when they did it


def without_times(record, names=TIMES):
    if isinstance(record, dict):
        return {key: without_times(value, names) for key, value in record.items() if key not in names}
    return [without_times(each, names) for each in record] if isinstance(record, list) else record


def content(path):
    """Everything in a store that must not depend on kills."""
    store = Store(path)
    try:
        found = {"labels": [without_times(each) for each in store.labels()]}
        by_people = {"acknowledged", "recognised"}  # the latter by the label of the former
        changes = [each if each["kind"] not in by_people else without_times(each) for each in store.changes()]
        found["changes"] = sorted(
            (without_times(each, {"acknowledged_at"}) for each in changes), key=lambda each: each["id"]
        )
        found["alarms"] = sorted(
            (without_times(each, {"acknowledged_at"}) for each in store.alarms()), key=lambda each: each["id"]
        )
        sent = [(each["id"], without_times(each["payload"], {"acknowledged_at"})) for each in store.messages()]
        found["outbox"] = sorted(sent, key=lambda each: each[0])
        for name in ("unit1", "unit2"):
            found[name] = [
                (block.first + place, block.times[place], block.scores.scores[place], block.scores.flags[place])
                for block in store.rows(store.asset(name).id)
                for place in range(len(block.seconds))
            ]
        return found
    finally:
        store.close()


@pytest.mark.parametrize("kills", [3, pytest.param(100, marks=pytest.mark.slow)])
def test_killed_under_load_nothing_is_lost_or_counted_twice(tmp_path: Path, kills: int) -> None:
    n_rows = 180 if kills == 3 else 1400
    text = csv_of(rows(n=2000, fault=[*range(640, 670), *range(900, 930)])[600 : 600 + n_rows])
    (tmp_path / "unit2.csv").write_text(text)
    (tmp_path / "live.toml").write_text(
        f'on-delay = "3s"\noff-delay = "5s"\nmin-duration = "2s"\nrejoin = "20s"\ngroup-wait = "1s"\n'
        f'webhook = ["http://127.0.0.1:9/never"]\n'
        f'[asset.unit1]\nmodel = "{model()}"\n[asset.unit2]\nmodel = "{model()}"\ninput = "{tmp_path}/unit2.csv"\n'
    )
    task = {"folder": str(tmp_path), "arguments": ["--config", str(tmp_path / "live.toml")], "text": text}
    done = subprocess.run(
        [sys.executable, str(Path(__file__).parents[1] / "support" / "serve_kills.py")],
        input=json.dumps({**task, "runs": {"unbroken": 0, "killed": kills}}),
        capture_output=True,
        text=True,
        timeout=900,
        check=False,
        env={**os.environ, "OPENBLAS_NUM_THREADS": "1"},  # no threads, so that forks are whole
    )
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout) == [0, kills]
    unbroken, killed = content(tmp_path / "unbroken" / "live.db"), content(tmp_path / "killed" / "live.db")
    assert len(unbroken["unit1"]) == len(unbroken["unit2"]) == n_rows
    assert len(unbroken["labels"]) >= 1
    assert len(unbroken["outbox"]) >= 2
    for name, each in unbroken.items():
        assert killed[name] == each, name
    assert "Traceback" not in (tmp_path / "killed" / "stderr.txt").read_text()
