"""Run a job in a process of its own, with a time limit, and tell what it took."""

from __future__ import annotations

import resource
import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass
from multiprocessing import get_context
from multiprocessing.connection import Connection
from typing import Any

# maps the job's name and arguments to something to call again and again; set-up outside is not timed
Setup = Callable[..., Callable[[], Any]]


@dataclass(frozen=True)
class Timing:
    """Medians over the repeats, in seconds; memory in MB; `value` is what the job returned."""

    wall: float
    cpu: float
    peak_mb: float
    value: Any


class Worker:
    """A process that runs jobs until one exceeds its time; then it is ended and the next job gets a new one."""

    def __init__(self, setup: Setup) -> None:
        self._setup = setup
        self._process: Any = None
        self._pipe: Any = None

    def run(self, arguments: tuple[Any, ...], limit: float, repeats: int = 3) -> Timing | str:
        """The timing, or a word on why there is none."""
        if self._process is None:
            context = get_context("spawn")
            self._pipe, theirs = context.Pipe()
            self._process = context.Process(target=_serve, args=(self._setup, theirs), daemon=False)
            self._process.start()
            theirs.close()
        self._pipe.send((arguments, limit, repeats))
        try:
            if not self._pipe.poll(limit + 30):
                self.close()
                return f"> {limit:.0f} s"
            answer: Timing | str = self._pipe.recv()
        except EOFError:
            self.close()
            return "died"
        return answer

    def close(self) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.join()
            self._pipe.close()
            self._process = None


def alone(setup: Setup, *arguments: Any, limit: float = 600.0, repeats: int = 3) -> Timing:
    """Run one job in a process of its own; end this one if there is no timing."""
    worker = Worker(setup)
    try:
        result = worker.run(arguments, limit, repeats)
    finally:
        worker.close()
    if isinstance(result, str):
        raise SystemExit(f"{setup.__name__}{arguments}: {result}")
    return result


def _serve(setup: Setup, pipe: Connection) -> None:
    while True:
        try:
            arguments, limit, repeats = pipe.recv()
        except EOFError:
            return
        try:
            pipe.send(_measure(setup(*arguments), limit, repeats))
        except Exception as error:
            pipe.send(f"failed: {type(error).__name__}: {error}"[:17])


def _measure(job: Callable[[], Any], limit: float, repeats: int) -> Timing | str:
    walls: list[float] = []
    cpus: list[float] = []
    value = None
    while len(walls) < repeats and sum(walls) < limit / 4:
        wall, cpu = time.perf_counter(), time.process_time()
        value = job()
        walls.append(time.perf_counter() - wall)
        cpus.append(time.process_time() - cpu)
        if walls[-1] > limit:
            return f"> {limit:.0f} s"
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    return Timing(statistics.median(walls), statistics.median(cpus), peak, value)
