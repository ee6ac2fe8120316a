"""Kill `penstock serve` with SIGKILL while a client sends rows and acknowledges alarms. Run by test_serve_kill.py.

Importing penstock takes seconds and is done once: each run is a fork of this process that carries out the real command.
A client numbers its requests and repeats those that were not answered, as docs/serve.md asks it to.
"""

from __future__ import annotations

import json
import os
import random
import signal
import socket
import sys
import time
from pathlib import Path

from live_service import HEADER, Client
from live_tables import fork_main

import penstock.live.web  # noqa: F401  isort: skip  (so that each fork has it)

BATCH = 20


class Runs:
    """The server, started again after each kill."""

    def __init__(self, folder, arguments, port, kills, chance):
        self._folder, self._port, self._chance = folder, port, chance
        self._command = ["serve", *arguments, "--store", str(folder / "live.db"), "--port", str(port), "--quiet"]
        self.kills_left, self.kills, self._process = kills, 0, 0
        self.start()

    def start(self):
        self._process = fork_main(self._command, self._folder / "stderr.txt")
        self._kill_at = time.monotonic() + self._chance.uniform(0.0, 0.7) if self.kills_left else float("inf")

    def kill_if_due(self):
        if time.monotonic() >= self._kill_at:
            os.kill(self._process, signal.SIGKILL)
            os.waitpid(self._process, 0)
            self.kills += 1
            self.kills_left -= 1
            self.start()

    def until_answered(self, request):
        """Repeat a request until there is an answer."""
        end = time.monotonic() + 120
        while True:
            self.kill_if_due()
            try:
                status, answer = request()
            except (OSError, ValueError):  # it is not there (yet), or was killed in the middle of an answer
                assert time.monotonic() < end, (self._folder / "stderr.txt").read_text()
                ended = os.waitid(os.P_PID, self._process, os.WEXITED | os.WNOHANG | os.WNOWAIT)
                assert ended is None, (self._folder / "stderr.txt").read_text()
                time.sleep(0.01)
                continue
            return status, answer

    def stop(self):
        os.kill(self._process, signal.SIGTERM)
        os.waitpid(self._process, 0)


def play(folder, arguments, text, kills, seed):
    """Send all rows, kill meanwhile, and return how often it was killed."""
    folder.mkdir()
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    runs = Runs(folder, arguments, port, kills, random.Random(seed))
    client, lines = Client(f"http://127.0.0.1:{port}/"), text.splitlines()[1:]
    repeats = 1
    for number, at in enumerate(range(0, len(lines), BATCH)):
        body = "\n".join([HEADER, *lines[at : at + BATCH]])
        status, answer = runs.until_answered(lambda: client.samples(body, sequence=number))  # noqa: B023
        assert status == 200, answer
        for alarm in runs.until_answered(lambda: client("GET", "/api/v1/alarms?open=1&asset=unit1"))[1]:
            if "acknowledged" not in alarm["state"]:
                path = f"alarms/{alarm['id']}/acknowledge"
                status, answer = runs.until_answered(lambda: client.command(path, reason="fault"))  # noqa: B023
                assert status in (200, 409), answer  # 409: it was done, and the answer was lost
    while runs.kills_left:  # what is over is asked for again
        repeats += 1
        runs.until_answered(lambda: client.samples(body, sequence=number))
    while runs.until_answered(lambda: client("GET", "/api/v1/assets/unit2"))[1]["row"] < len(lines):
        time.sleep(0.01)
    runs.stop()
    return runs.kills


if __name__ == "__main__":
    task = json.load(sys.stdin)
    base, rows = Path(task["folder"]), task["text"]
    found = [play(base / name, task["arguments"], rows, count, 0) for name, count in task["runs"].items()]
    json.dump(found, sys.stdout)
