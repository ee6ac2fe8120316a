"""Workers for the cells of a study: a few processes, each with its share of the cores and no more."""

from __future__ import annotations

import os
import queue
import subprocess
import sys
import threading
from collections.abc import Generator, Iterable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import Any

from penstock.bench.cell import Job, failed
from penstock.bench.nursery import receive, send

_GRACE = 60.0  # seconds beyond the limit: the nursery itself hangs, and is replaced
# What the libraries that methods are written with read at their start.
_THREAD_VARIABLES = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMEXPR_NUM_THREADS")


def run_jobs(jobs: Iterable[Job], n_workers: int, time_limit: float) -> Generator[dict[str, Any], None, None]:
    """The outcomes of jobs, in the order in which they end; each job's process has `job.threads` threads.

    Closing the iterator, or an exception in the caller's loop (Ctrl-C too), ends the workers at once.
    """
    waiting: queue.Queue[Job] = queue.Queue()
    detectors: dict[str, None] = {}
    for job in jobs:
        waiting.put(job)
        detectors[job.detector] = None
    done: queue.Queue[dict[str, Any] | BaseException] = queue.Queue()
    workers = [_Worker(time_limit, list(detectors)) for _ in range(min(n_workers, waiting.qsize()))]
    remaining = waiting.qsize()
    with ThreadPoolExecutor(max(len(workers), 1)) as pool:
        try:
            for worker in workers:
                pool.submit(worker.work, waiting, done)
            while remaining:
                outcome = done.get()
                if isinstance(outcome, BaseException):
                    raise outcome
                remaining -= 1
                yield outcome
        finally:
            with suppress(queue.Empty):
                while True:
                    waiting.get_nowait()
            for worker in workers:
                worker.close()


class _Worker:
    """A nursery, started when it is needed and anew if it dies."""

    def __init__(self, time_limit: float, detectors: list[str]) -> None:
        self._limit = time_limit
        self._detectors = detectors
        self._process: subprocess.Popen[bytes] | None = None
        self._closed = False
        self._lock = threading.Lock()

    def work(self, waiting: queue.Queue[Job], done: queue.Queue[dict[str, Any] | BaseException]) -> None:
        """Take jobs until there are none."""
        try:
            while not self._closed:
                try:
                    job = waiting.get_nowait()
                except queue.Empty:
                    return
                done.put(self._run(job))
        except BaseException as error:  # the loop in the main thread waits for something to come
            done.put(error)

    def close(self) -> None:
        """End the nursery and the cell in it; `work` ends too."""
        with self._lock:
            self._closed = True
            self._kill()

    def _run(self, job: Job) -> dict[str, Any]:
        process = self._started(job.threads)
        assert process.stdin is not None
        assert process.stdout is not None
        alarm = threading.Timer(self._limit + (_GRACE if hasattr(os, "fork") else 0.0), self._kill)
        alarm.daemon = True
        alarm.start()
        try:
            send(process.stdin, (job, self._limit))  # type: ignore[arg-type]
            outcome: dict[str, Any] = receive(process.stdout)  # type: ignore[arg-type]
            return outcome
        except (EOFError, OSError):
            late = not alarm.is_alive()
            self._kill()
            why = f"stopped after the time limit of {self._limit:g} s" if late else "its worker was killed"
            outcome = {"key": job.key, "mark": job.mark} | failed(why, "timed out" if late else "killed")
            return outcome | ({"limit": self._limit} if late else {})
        finally:
            alarm.cancel()

    def _started(self, threads: int) -> subprocess.Popen[bytes]:
        with self._lock:
            if self._closed:
                raise RuntimeError("The study was ended.")
            if self._process is not None and self._process.poll() is None:
                return self._process
            # Of the libraries, one thread each: a pool that is there before the fork hangs in the child, and their
            # rounding must not depend on how many cells run at a time.
            limits = dict.fromkeys(_THREAD_VARIABLES, "1")
            self._process = subprocess.Popen(
                [sys.executable, "-P", "-m", "penstock.bench.nursery"],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                env=os.environ | limits | {"PENSTOCK_THREADS": str(threads)},
                start_new_session=True,  # with its children it is a group of its own, to be ended as one
            )
            process = self._process
        try:
            send(process.stdin, {"path": list(sys.path), "detectors": self._detectors})  # type: ignore[arg-type]
            receive(process.stdout)  # type: ignore[arg-type]
        except (EOFError, OSError):
            if self._closed:
                raise RuntimeError("The study was ended.") from None
            raise RuntimeError(
                f"A worker ended while it started (exit code {process.wait()}); see the messages above."
            ) from None
        return process

    def _kill(self) -> None:
        process, self._process = self._process, None
        if process is None:
            return
        with suppress(ProcessLookupError, PermissionError):
            if hasattr(os, "killpg"):
                import signal

                os.killpg(process.pid, signal.SIGKILL)
            else:
                process.kill()
        process.wait()
        for pipe in (process.stdin, process.stdout):
            if pipe is not None:
                with suppress(OSError):
                    pipe.close()
