"""Kills workers of a cluster in the middle of a task, and says what each kill hit.

A worker marks the task that it is executing by a file that is there for as long as it executes it. A kill counts only
if that file is still there when the worker is dead: then it died in that task, not before or after it.
"""

from __future__ import annotations

import os
import re
import signal
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path

from distributed import SchedulerPlugin, Status, WorkerPlugin
from waiting import is_running, wait_for

_LOOK_AGAIN = 0.001  # seconds


def _named(*names):
    return [rf"^{name}-[0-9a-f]+-\d+$" for name in names]


# The names of tasks, in the order in which the stages of a fit come. They end in a token of the
# stage and the number of a piece, part, pair or group of blocks.
ROWS = _named("measure-piece", "lay-piece", "spread-rows", "gather-part")
TREE = _named("grow-part-tree", "join-two")
FACTORISATION = _named(
    "extend-columns", "sweep", "sweep-report", "advance", "save-blocks", "load-blocks", "advance-report", "score-block"
)


@dataclass
class Aim:
    """Which task to hit: the `nth` whose name matches, `delay` seconds after a worker was given it."""

    pattern: str
    nth: int
    delay: float


@dataclass
class Kill:
    """A kill that was shown to have landed."""

    key: str
    pid: int
    delay: float


@dataclass
class Marks(WorkerPlugin):
    """On a worker: the file that marks what is being executed."""

    folder: Path
    name = "marks"

    def transition(self, key, start, finish, **_):
        file = mark_of(self.folder, str(key), os.getpid())
        if finish == "executing":
            file.touch()
        elif start == "executing":
            file.unlink(missing_ok=True)


def mark_of(folder, key, pid):
    return folder / f"{key}@{pid}"


@dataclass
class Killer(SchedulerPlugin):
    """On the scheduler: aims in turn, and keeps count of how often each task was given to a worker."""

    cluster: object
    marks: Path
    aims: list
    name = "killer"
    kills: list = field(default_factory=list)
    misses: int = 0
    given: dict = field(default_factory=dict)
    _seen: int = 0
    _busy: bool = False

    def transition(self, key, start, finish, *_, **__):
        if finish != "processing":
            return
        key = str(key)
        self.given[key] = self.given.get(key, 0) + 1
        if self._busy or not self.aims or not re.search(self.aims[0].pattern, key):
            return
        self._seen += 1
        if self._seen < self.aims[0].nth:
            return
        self._busy = True
        self._later(self.aims[0].delay, self._strike, key)

    def _strike(self, key):
        """Kill the worker if it is at the task; look again if it is not there yet; else aim at the next one."""
        task = self.cluster.scheduler.tasks.get(key)
        if task is None or task.state != "processing":
            self._miss()
            return
        nanny = next((n for n in self.cluster.workers.values() if n.worker_address == task.processing_on.address), None)
        if nanny is None or nanny.status != Status.running:
            self._miss()  # a worker that dies before its nanny knows it to run is not started again
            return
        if not mark_of(self.marks, key, nanny.pid).exists():
            self._later(_LOOK_AGAIN, self._strike, key)
            return
        os.kill(nanny.pid, signal.SIGKILL)
        self._later(_LOOK_AGAIN, self._look_after, key, nanny.pid)

    def _look_after(self, key, pid):
        if is_running(pid):
            self._later(_LOOK_AGAIN, self._look_after, key, pid)
            return
        if not mark_of(self.marks, key, pid).exists():  # it had just finished
            self._miss()
            return
        self.kills.append(Kill(key, pid, self.aims.pop(0).delay))
        self._seen, self._busy = 0, False

    def _miss(self):
        """Too late: a quicker one, then."""
        self.misses += 1
        self.aims[0].delay = 0.0
        self._busy = False

    def _later(self, seconds, call, *arguments):
        self.cluster.scheduler.loop.asyncio_loop.call_later(seconds, call, *arguments)


@contextmanager
def killing(client, marks, aims):
    """A killer at work; all workers are there again in the end, for the next test."""
    cluster = client.cluster
    killer = Killer(cluster, marks, list(aims))
    client.sync(_add, cluster.scheduler, killer)
    try:
        yield killer
    finally:
        client.sync(_remove, cluster.scheduler, killer)
        wait_for_all_workers(client)


def wait_for_all_workers(client):
    """Until every worker is there, and its nanny knows it: one that dies sooner is not started again."""
    nannies = client.cluster.workers.values()
    wait_for(lambda: all(nanny.status == Status.running for nanny in nannies))
    client.wait_for_workers(len(nannies), timeout=300)


async def _add(scheduler, plugin):
    scheduler.add_plugin(plugin, name=plugin.name)


async def _remove(scheduler, plugin):
    scheduler.remove_plugin(plugin.name)


def kill_workers(cluster, number):
    """So many workers at once; their nannies start others."""
    pids = [nanny.pid for nanny in cluster.workers.values()][:number]
    for pid in pids:
        os.kill(pid, signal.SIGKILL)
    return pids


def random_aims(rng, patterns):
    """One aim for each pattern, at the first or second such task and a random moment after it was given out.

    Training rows are scored once, by one task for each worker: the first is aimed at, and soon.
    """
    aims = [Aim(pattern, int(rng.integers(1, 3)), float(rng.uniform(0, 0.02))) for pattern in patterns]
    return [replace(aim, nth=1, delay=aim.delay / 5) if "score-block" in aim.pattern else aim for aim in aims]
