"""The process in which cells are born: it imports and compiles once, then forks a child for every cell.

So a cell has a memory of its own to measure, can be stopped, and can crash without harm, but need not wait for imports.
Run by `penstock.bench.workers` as `python -m penstock.bench.nursery`; jobs come in on standard input, outcomes go out
on what was standard output. Where there is no fork, cells run in this process, and it is replaced if it must be killed.
"""

from __future__ import annotations

import os
import pickle
import select
import signal
import struct
import sys
import time
from contextlib import suppress
from typing import Any, BinaryIO

_LENGTH = struct.Struct("<Q")
_GLANCE = 0.2  # seconds between two looks at whether a child is still there


def send(stream: BinaryIO, message: Any) -> None:
    """A message into a pipe: its length, then itself."""
    content = pickle.dumps(message, protocol=pickle.HIGHEST_PROTOCOL)
    rest = memoryview(_LENGTH.pack(len(content)) + content)
    while rest:  # an unbuffered pipe takes as much as fits
        rest = rest[stream.write(rest) :]
    stream.flush()


def receive(stream: BinaryIO) -> Any:
    """The next message; EOFError at the end, or if the sender died within one.

    >>> import io
    >>> pipe = io.BytesIO()
    >>> send(pipe, {"a": 1})
    >>> _ = pipe.seek(0)
    >>> receive(pipe)
    {'a': 1}
    """
    (length,) = _LENGTH.unpack(_read(stream, _LENGTH.size))
    return pickle.loads(_read(stream, length))  # of our own parent or child, through a pipe that no one else holds


def _read(stream: BinaryIO, length: int) -> bytes:
    """So many bytes; an unbuffered pipe gives as many as there are."""
    content = bytearray()
    while len(content) < length:
        piece = stream.read(length - len(content))
        if not piece:
            raise EOFError("the pipe was closed")
        content += piece
    return bytes(content)


def main() -> None:
    """Serve until the parent closes the pipe."""
    jobs, outcomes = _take_pipes()
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is the parent's to handle: it closes the pipe
    settings = receive(jobs)
    sys.path[:] = settings["path"]
    from penstock.bench.rehearsal import rehearse

    rehearse(settings["detectors"])
    send(outcomes, "ready")
    while True:
        try:
            job, limit = receive(jobs)
        except EOFError:
            return
        send(outcomes, _in_a_child(job, limit, jobs, outcomes) if hasattr(os, "fork") else _run(job))


def _take_pipes() -> tuple[BinaryIO, BinaryIO]:
    """The pipes to the parent; what a method prints goes nowhere near them."""
    jobs, outcomes = os.dup(0), os.dup(1)
    nowhere = os.open(os.devnull, os.O_RDWR)
    os.dup2(nowhere, 0)
    os.dup2(nowhere, 1)
    return os.fdopen(jobs, "rb", buffering=0), os.fdopen(outcomes, "wb", buffering=0)


def _run(job: Any) -> dict[str, Any]:
    from penstock._threads import thread_limit
    from penstock.bench.cell import run_cell

    with thread_limit(job.threads):
        return run_cell(job)


def _in_a_child(job: Any, limit: float, jobs: BinaryIO, outcomes: BinaryIO) -> dict[str, Any]:
    from penstock.bench.cell import failed

    nursery = os.getpid()
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        _be_the_child(job, writing, nursery, (reading, jobs.fileno(), outcomes.fileno()))
    with suppress(OSError):  # the child does the same: whoever comes first
        os.setpgid(child, child)
    os.close(writing)
    with os.fdopen(reading, "rb", buffering=0) as pipe:
        outcome, status = _watch(child, pipe, jobs, limit)
    _end_group(child)
    if status is None:
        _, status = os.waitpid(child, 0)
    if isinstance(outcome, dict):
        return outcome
    marked = {"key": job.key, "mark": job.mark}
    if outcome is None:
        return marked | failed(f"stopped after the time limit of {limit:g} s", "timed out") | {"limit": limit}
    return marked | failed(_end_of(status), "killed")


def _be_the_child(job: Any, writing: int, nursery: int, not_ours: tuple[int, ...]) -> None:
    """Run the cell and vanish, without the clean-up that belongs to the nursery."""
    code = 1
    try:
        with suppress(OSError):
            os.setpgid(0, 0)  # with what it starts it is a group of its own, to be ended as one
        _end_with(nursery)
        for descriptor in not_ours:
            os.close(descriptor)
        with os.fdopen(writing, "wb", buffering=0) as pipe:
            send(pipe, _run(job))
        code = 0
    finally:
        os._exit(code)


def _end_with(nursery: int) -> None:
    """If the nursery is killed, so is this process; where the system cannot promise that, it ends with its cell."""
    if sys.platform == "linux":
        import ctypes

        ctypes.CDLL(None).prctl(1, signal.SIGKILL)  # PR_SET_PDEATHSIG
        if os.getppid() != nursery:  # it was killed before that
            os._exit(1)


def _watch(child: int, pipe: BinaryIO, jobs: BinaryIO, limit: float) -> tuple[dict[str, Any] | str | None, int | None]:
    """The child's outcome, "died" without one, or None if its time is up; and its exit status, if that is known."""
    end = time.monotonic() + limit
    listening = [pipe]
    while (left := end - time.monotonic()) > 0:
        ready, _, _ = select.select([*listening, jobs], [], [], min(left, _GLANCE))
        if jobs in ready:  # the parent sends one job at a time: this can only be the end of it
            _end_group(child)
            os._exit(1)
        if pipe not in ready:
            gone, status = os.waitpid(child, os.WNOHANG)  # others may hold its end of the pipe
            if not gone:
                continue
            if not select.select(listening, [], [], 0)[0]:
                return "died", status
        try:
            outcome: dict[str, Any] = receive(pipe)
            return outcome, None
        except EOFError:
            listening = []
            ended = _exit_status(child)
            if ended is not None:
                return "died", ended
    return None, None


def _exit_status(child: int) -> int | None:
    """How a child ended that has closed its pipe; None if it lives on."""
    end = time.monotonic() + 10 * _GLANCE
    while time.monotonic() < end:
        gone, status = os.waitpid(child, os.WNOHANG)
        if gone:
            return status
        time.sleep(_GLANCE / 10)
    return None


def _end_group(child: int) -> None:
    """The cell, and whatever it started."""
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(child, signal.SIGKILL)


def _end_of(status: int) -> str:
    if os.WIFSIGNALED(status):
        number = os.WTERMSIG(status)
        hint = "; was there too little memory?" if number == signal.SIGKILL else ""
        return f"its process was ended by signal {number} ({signal.Signals(number).name}){hint}"
    return f"its process ended with exit code {os.waitstatus_to_exitcode(status)} and no result"


if __name__ == "__main__":
    main()
