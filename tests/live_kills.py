"""Kill `penstock watch` with SIGKILL, again and again, and say what each kill hit. Run by test_live_kill.py.

Importing penstock takes seconds and is done once: each run is a fork of this process, which then carries out the real
command from its beginning. It is a process of its own, and the kill is a real one.
"""

from __future__ import annotations

import json
import os
import random
import signal
import sys
import time
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from live_tables import fork_main

from penstock.cli import main
from penstock.storage import read_state

LONGEST_WAIT = 300.0  # seconds; then something hangs


@dataclass
class Kill:
    """One kill, and the evidence of what it interrupted."""

    aim: str  # "snapshot": its writing; "work": anywhere after the run had begun to work; "start": before that, too
    signal: int  # what the process died of: 9, so it was alive
    worked: bool  # this run had written a snapshot, or output beyond what it began with
    output_bytes: int  # when it died
    expected_bytes: int  # of the complete output
    half_written: list[str]  # temporary files that this very process left behind: snapshots that it was writing

    @property
    def mid_work(self) -> bool:
        return self.worked and self.output_bytes < self.expected_bytes


class Killer:
    """Watches one file to its end through many kills."""

    def __init__(
        self, folder: Path, arguments: list[str], expected: bytes, alarms: bytes, chance: random.Random
    ) -> None:
        folder.mkdir()
        self._errors = folder / "stderr.txt"
        self._output, self._alarms = folder / "out.jsonl", folder / "alarms.jsonl"
        self._state = folder / "state"
        files = ["--output", str(self._output), "--alarms", str(self._alarms), "--state", str(self._state)]
        self._command = ["watch", *arguments, *files]
        self._expected, self._expected_alarms = expected, alarms
        self._chance = chance
        self._process = 0

    def run(self) -> dict[str, Any]:
        kills: list[Kill] = []
        while True:
            self._look_before()
            self._process = fork_main(self._command, self._errors)
            aim = self._chance.choices(["snapshot", "work", "start"], [5, 4, 1])[0]
            status = self._kill(aim)
            if os.WIFEXITED(status):
                identical = self._output.read_bytes() == self._expected
                identical = identical and self._alarms.read_bytes() == self._expected_alarms
                return {"kills": kills, "identical": identical, "last_code": os.WEXITSTATUS(status)}
            half_written = [name for name in self._temporary() if f".{self._process}-" in name]
            kills.append(
                Kill(aim, os.WTERMSIG(status), self._worked(), self._size(), len(self._expected), half_written)
            )

    def _kill(self, aim: str) -> int:
        """Kill the run in a moment of the kind wanted, and return how it ended; it may have been faster."""
        if aim != "start":
            self._wait(self._worked)
        time.sleep(self._chance.uniform(0.0, 0.05))
        if aim == "snapshot":
            self._wait(self._temporary, pause=0.0)
        os.kill(self._process, signal.SIGKILL)  # a process that has ended waits for the next line
        return os.waitpid(self._process, 0)[1]

    def _wait(self, wanted: Any, pause: float = 0.001) -> None:
        end = time.monotonic() + LONGEST_WAIT
        while not (wanted() or self._has_ended()):
            time.sleep(pause)
            assert time.monotonic() < end, "a run hangs"

    def _has_ended(self) -> bool:
        return os.waitid(os.P_PID, self._process, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None

    def _look_before(self) -> None:
        names = self._snapshots()
        self._size_before, self._last_before = self._size(), names[-1] if names else ""
        self._resumed = read_state(self._state / names[-1])[1]["output"] if names else 0

    def _worked(self) -> bool:
        """A run first cuts the output back to what its snapshot knows of; that is not work."""
        names, size = self._snapshots(), self._size()
        return (bool(names) and names[-1] > self._last_before) or (size > self._resumed and size != self._size_before)

    def _size(self) -> int:
        return self._output.stat().st_size if self._output.exists() else 0

    def _snapshots(self) -> list[str]:
        return sorted(name for name in self._names() if name.startswith("snapshot-"))

    def _temporary(self) -> list[str]:
        return [name for name in self._names() if name.endswith(".tmp")]

    def _names(self) -> list[str]:
        return [path.name for path in self._state.iterdir()] if self._state.exists() else []


def kill_again_and_again(folder: Path, variants: list[list[str]], kills: int, half_written: int, seed: int) -> None:
    """Sequences of the variants in turn, until there were so many kills of runs at work, and in snapshots."""
    chance = random.Random(seed)
    expected, expected_alarms = [], []
    for number, arguments in enumerate(variants):
        unbroken = folder / f"unbroken-{number}.jsonl"
        alarms = folder / f"alarms-{number}.jsonl"
        assert main(["watch", *arguments, "--output", str(unbroken), "--alarms", str(alarms), "--quiet"]) == 0
        expected.append(unbroken.read_bytes())
        expected_alarms.append(alarms.read_bytes())
    assert sum(b'"raised"' in alarms for alarms in expected_alarms) > 1
    sequences: list[dict[str, Any]] = []
    hits = snapshot_hits = 0
    while len(sequences) < len(variants) or hits < kills or snapshot_hits < half_written:
        variant = len(sequences) % len(variants)
        place = folder / f"sequence-{len(sequences)}"
        killer = Killer(place, variants[variant], expected[variant], expected_alarms[variant], chance)
        sequences.append(killer.run())
        hits += sum(kill.mid_work for kill in sequences[-1]["kills"])
        snapshot_hits += sum(bool(kill.half_written) for kill in sequences[-1]["kills"])
    json.dump([{**each, "kills": [asdict(kill) for kill in each["kills"]]} for each in sequences], sys.stdout)


if __name__ == "__main__":
    task = json.load(sys.stdin)
    kill_again_and_again(Path(task.pop("folder")), **task)
