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

from live_tables import committed, fork_main

from penstock.cli import main

LONGEST_WAIT = 300.0  # seconds; then something hangs


@dataclass
class Kill:
    """One kill, and the evidence of what it interrupted."""

    aim: str  # "commit": when one has begun; "work": anywhere after the run had begun to work; "start": before, too
    signal: int  # what the process died of: 9, so it was alive
    worked: bool  # this run had committed, or written output beyond what it began with
    output_bytes: int  # when it died
    expected_bytes: int  # of the complete output
    in_commit: bool  # the log of the store had grown since the last look, a moment before

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
            aim = self._chance.choices(["commit", "work", "start"], [5, 4, 1])[0]
            status, in_commit = self._kill(aim)
            if os.WIFEXITED(status):
                identical = self._output.read_bytes() == self._expected
                identical = identical and self._alarms.read_bytes() == self._expected_alarms
                return {"kills": kills, "identical": identical, "last_code": os.WEXITSTATUS(status)}
            kills.append(Kill(aim, os.WTERMSIG(status), self._worked(), self._size(), len(self._expected), in_commit))

    def _kill(self, aim: str) -> tuple[int, bool]:
        """Kill the run in a moment of the kind wanted; return how it ended, it may have been faster, and if that was
        in a commit."""
        if aim != "start":
            self._wait(self._worked)
        time.sleep(self._chance.uniform(0.0, 0.05))
        before = self._log()
        if aim == "commit":
            self._wait(lambda: self._log() != before, pause=0.0)
        in_commit = aim == "commit" and self._log() != before
        os.kill(self._process, signal.SIGKILL)  # a process that has ended waits for the next line
        return os.waitpid(self._process, 0)[1], in_commit

    def _wait(self, wanted: Any, pause: float = 0.001) -> None:
        end = time.monotonic() + LONGEST_WAIT
        while not (wanted() or self._has_ended()):
            time.sleep(pause)
            assert time.monotonic() < end, "a run hangs"

    def _has_ended(self) -> bool:
        return os.waitid(os.P_PID, self._process, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None

    def _look_before(self) -> None:
        self._size_before, self._committed_before = self._size(), committed(self._state)
        self._resumed = (self._committed_before or {}).get("output", {}).get("length", 0)

    def _worked(self) -> bool:
        """A run first cuts the output back to what its state knows of; that is not work."""
        size = self._size()
        if size > self._resumed and size != self._size_before:
            return True
        return committed(self._state) != self._committed_before

    def _size(self) -> int:
        return self._output.stat().st_size if self._output.exists() else 0

    def _log(self) -> tuple[int, int]:
        """Return size and time of the log of the store, which change when something is committed."""
        try:
            found = (self._state / "watch.db-wal").stat()
        except FileNotFoundError:
            return 0, 0
        return found.st_size, found.st_mtime_ns


def kill_again_and_again(folder: Path, variants: list[list[str]], kills: int, in_commits: int, seed: int) -> None:
    """Sequences of the variants in turn, until there were so many kills of runs at work, and in commits."""
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
    hits = commit_hits = 0
    while len(sequences) < len(variants) or hits < kills or commit_hits < in_commits:
        variant = len(sequences) % len(variants)
        place = folder / f"sequence-{len(sequences)}"
        killer = Killer(place, variants[variant], expected[variant], expected_alarms[variant], chance)
        sequences.append(killer.run())
        hits += sum(kill.mid_work for kill in sequences[-1]["kills"])
        commit_hits += sum(kill.in_commit for kill in sequences[-1]["kills"])
    json.dump([{**each, "kills": [asdict(kill) for kill in each["kills"]]} for each in sequences], sys.stdout)


if __name__ == "__main__":
    task = json.load(sys.stdin)
    kill_again_and_again(Path(task.pop("folder")), **task)
