"""Work of a project in a process of its own: one job after the other, with progress, and it can be ended.

The process keeps the table and the findings in memory, so that to score again, or to write a report, reads nothing
again. What a job makes is in the project folder when it is done.
"""

from __future__ import annotations

import multiprocessing
import os
import threading
import time
import warnings
from collections.abc import Mapping
from dataclasses import dataclass, field
from multiprocessing.connection import Connection
from typing import Any

from penstock.project.folder import Project

_LOST = "The work ended without a result; perhaps there was not enough memory. Read fewer rows or columns."
_MOST_WAITING = 20


@dataclass
class Task:
    """A job of the worker: one of `TASKS` with its arguments, what it does now, and how it ended."""

    what: str
    given: Mapping[str, Any]
    stage: str = "waiting"
    started: float = field(default_factory=time.time)
    answer: dict[str, Any] | None = None
    error: dict[str, Any] | None = None
    done: threading.Event = field(default_factory=threading.Event)

    def end(self, answer: dict[str, Any] | None, error: dict[str, Any] | None = None) -> None:
        self.answer, self.error = answer, error
        self.done.set()


class Worker:
    """The process that works for a project."""

    def __init__(self, project: Project) -> None:
        self._folder = project.folder
        self._context = multiprocessing.get_context("spawn")
        self._lock = threading.Condition()
        self._waiting: list[Task] = []
        self._closed = False
        self._process: Any = None
        self._connection: Any = None
        self.running: Task | None = None
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def start(self, what: str, **given: Any) -> Task:
        """Add a job; one that waits already is not added again."""
        with self._lock:
            for each in self._waiting:
                if (each.what, each.given) == (what, given):
                    return each
            if len(self._waiting) >= _MOST_WAITING:
                raise ValueError("Too much work is waiting. Wait, or cancel it.")
            task = Task(what, given)
            self._waiting.append(task)
            self._lock.notify()
            return task

    @property
    def next(self) -> Task | None:
        """What runs, or else what waits: a job that was added is never neither."""
        with self._lock:
            return self.running or next(iter(self._waiting), None)

    def cancel(self) -> None:
        """End what runs and forget what waits."""
        with self._lock:
            for each in self._waiting:
                each.end(None, {"message": "Cancelled.", "cures": []})
            self._waiting.clear()
            if self.running is not None:
                self.running.stage = "cancelled"
                self._end_process()

    def warm(self) -> None:
        """Start the process before there is work."""
        with self._lock:
            self._ensure_process()

    def close(self) -> None:
        self.cancel()
        with self._lock:
            self._closed = True
            self._lock.notify()
            self._end_process()
        self._thread.join(5)

    def _end_process(self) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.join(5)
            self._connection.close()
            self._process = None

    def _ensure_process(self) -> None:
        if self._process is None or not self._process.is_alive():
            ours, theirs = self._context.Pipe()
            self._process = self._context.Process(target=serve_tasks, args=(theirs, str(self._folder)), daemon=True)
            self._process.start()
            theirs.close()
            self._connection = ours

    def _run(self) -> None:
        while True:
            with self._lock:
                while not self._waiting and not self._closed:
                    self._lock.wait()
                if self._closed:
                    return
                task = self.running = self._waiting.pop(0)
                task.started = time.time()
                self._ensure_process()
                connection = self._connection
            self._carry_out(task, connection)
            with self._lock:
                self.running = None

    def _carry_out(self, task: Task, connection: Any) -> None:
        try:
            connection.send((task.what, dict(task.given)))
            while True:
                kind, content = connection.recv()
                if kind == "stage":
                    task.stage = content
                else:
                    task.end(content if kind == "done" else None, content if kind == "failed" else None)
                    return
        except (EOFError, OSError):
            with self._lock:
                message = "Cancelled." if task.stage == "cancelled" else _LOST
                self._end_process()
            task.end(None, {"message": message, "cures": []})


def serve_tasks(connection: Connection, folder: str) -> None:
    """Carry out tasks until the other side is gone: the worker's process."""
    import signal

    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the terminal sends it to all; our parent decides
    threading.Thread(target=_end_with_parent, args=(os.getppid(),), daemon=True).start()
    from penstock.project.tasks import Desk

    desk = Desk(Project(folder), lambda stage: connection.send(("stage", stage)))
    while True:
        try:
            what, given = connection.recv()
        except (EOFError, OSError):
            return
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            connection.send(desk.carry_out(what, given))


def _end_with_parent(parent: int) -> None:
    """End when the parent was killed: there is no one to work for."""
    while os.getppid() == parent:
        time.sleep(1.0)
    os._exit(1)
