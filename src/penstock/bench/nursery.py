"""The process in which cells are born: it imports and compiles once, then forks a child for every cell.

So a cell has a memory of its own to measure, can be stopped, and can crash without harm, but need not wait for imports.
Run by `penstock.bench.workers` as `python -m penstock.bench.nursery`; jobs come in on standard input, outcomes go out
on what was standard output. Where there is no fork, cells run in this process, and it is replaced if it must be killed.
"""

from __future__ import annotations

import contextlib
import os
import pickle
import select
import signal
import struct
import sys
from typing import Any, BinaryIO

_LENGTH = struct.Struct("<Q")


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
    _warm()
    send(outcomes, "ready")
    while True:
        try:
            job, limit = receive(jobs)
        except EOFError:
            return
        send(outcomes, _in_a_child(job, limit, jobs) if hasattr(os, "fork") else _run(job))


def _take_pipes() -> tuple[BinaryIO, BinaryIO]:
    """The pipes to the parent; what a method prints goes nowhere near them."""
    jobs, outcomes = os.dup(0), os.dup(1)
    nowhere = os.open(os.devnull, os.O_RDWR)
    os.dup2(nowhere, 0)
    os.dup2(nowhere, 1)
    return os.fdopen(jobs, "rb", buffering=0), os.fdopen(outcomes, "wb", buffering=0)


def _warm() -> None:
    """Compile, or fetch from its cache, what the paper's methods need, once for all cells."""
    import numpy as np

    from penstock.detectors import GNMF, NMF, NSNMF, SNMF, KNNDistance, LoMST, OnlineNSNMF

    rows = np.random.default_rng(0).random((60, 4))
    detectors: list[Any] = [NSNMF(2), NMF(2), GNMF(2), SNMF(2), LoMST(3), OnlineNSNMF(2), KNNDistance(3)]
    for detector in detectors:
        with contextlib.suppress(Exception):  # then a cell will say what is wrong
            detector.fit(rows)


def _run(job: Any) -> dict[str, Any]:
    from penstock._threads import thread_limit
    from penstock.bench.cell import run_cell

    with thread_limit(job.threads):
        return run_cell(job)


def _in_a_child(job: Any, limit: float, jobs: BinaryIO) -> dict[str, Any]:
    from penstock.bench.cell import failed

    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        _be_the_child(job, reading, writing)
    os.close(writing)
    with os.fdopen(reading, "rb", buffering=0) as pipe:
        outcome = _wait(pipe, jobs, limit)
        if outcome is None:
            os.kill(child, signal.SIGKILL)
        _, status = os.waitpid(child, 0)
    if isinstance(outcome, dict):
        return outcome
    marked = {"key": job.key, "mark": job.mark}
    if outcome is None:
        return marked | failed(f"stopped after the time limit of {limit:g} s", "timed out") | {"limit": limit}
    return marked | failed(_end_of(status), "killed")


def _be_the_child(job: Any, reading: int, writing: int) -> None:
    """Run the cell and vanish, without the clean-up that belongs to the nursery."""
    code = 1
    try:
        os.close(reading)
        with os.fdopen(writing, "wb", buffering=0) as pipe:
            send(pipe, _run(job))
        code = 0
    finally:
        os._exit(code)


def _wait(pipe: BinaryIO, jobs: BinaryIO, limit: float) -> dict[str, Any] | str | None:
    """The child's outcome; "died" without one; None if its time is up. If the parent is gone, so is all of this."""
    import time

    end = time.monotonic() + limit
    while True:
        left = end - time.monotonic()
        if left <= 0:
            return None
        ready, _, _ = select.select([pipe, jobs], [], [], left)
        if pipe in ready:
            try:
                outcome: dict[str, Any] = receive(pipe)
                return outcome
            except EOFError:
                return "died"
        if jobs in ready:  # the parent sends one job at a time: this can only be the end of it
            os.killpg(0, signal.SIGKILL)


def _end_of(status: int) -> str:
    if os.WIFSIGNALED(status):
        number = os.WTERMSIG(status)
        hint = "; was there too little memory?" if number == signal.SIGKILL else ""
        return f"its process was ended by signal {number} ({signal.Signals(number).name}){hint}"
    return f"its process ended with exit code {os.waitstatus_to_exitcode(status)} and no result"


if __name__ == "__main__":
    main()
