"""Fork server that runs one benchmark cell per child process.

It imports and compiles once, then forks for every cell: so a cell has a memory of its own to measure, can be stopped
and can crash without harm. Run by `penstock.bench.runner` as ``python -m penstock.bench.cell_server``; cells come in on
standard input, outcomes go out on standard output. Where there is no fork, cells run in this process, which the runner
replaces if it has to be killed.
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


def send(stream: Any, message: Any) -> None:
    """Write a message into a pipe: its length, then itself."""
    content = pickle.dumps(message, protocol=pickle.HIGHEST_PROTOCOL)
    rest = memoryview(_LENGTH.pack(len(content)) + content)
    while rest:  # an unbuffered pipe takes as much as fits
        rest = rest[stream.write(rest) :]
    stream.flush()


def receive(stream: Any) -> Any:
    """Read the next message; raise EOFError at the end, or if the sender died within one.

    >>> import io
    >>> pipe = io.BytesIO()
    >>> send(pipe, {"a": 1})
    >>> _ = pipe.seek(0)
    >>> receive(pipe)
    {'a': 1}
    """
    (length,) = _LENGTH.unpack(_read(stream, _LENGTH.size))
    return pickle.loads(
        _read(stream, length)
    )  # from our own parent or child, through a pipe that no other process holds


def _read(stream: Any, length: int) -> bytes:
    content = bytearray()
    while len(content) < length:
        piece = stream.read(length - len(content))
        if not piece:
            raise EOFError("the pipe was closed")
        content += piece
    return bytes(content)


def main() -> None:
    """Serve until the parent closes the pipe."""
    cells, outcomes = os.fdopen(os.dup(0), "rb", buffering=0), os.fdopen(os.dup(1), "wb", buffering=0)
    nowhere = os.open(os.devnull, os.O_RDWR)
    for standard in (0, 1):  # what a method prints must not get into the pipes
        os.dup2(nowhere, standard)
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is handled by the parent, which closes the pipe
    sys.path[:], detectors, threads = receive(cells)
    from penstock.bench.methods import rehearse

    rehearse(detectors)
    send(outcomes, "ready")
    while True:
        try:
            cell, limit = receive(cells)
        except EOFError:
            return
        if hasattr(os, "fork"):
            send(outcomes, _run_in_child(cell, threads, limit, cells, outcomes))
        else:
            send(outcomes, _run(cell, threads))


def _run(cell: Any, threads: int) -> dict[str, Any]:
    from penstock._threads import thread_limit
    from penstock.bench.cells import run_cell

    with thread_limit(threads):
        return run_cell(cell)


def _run_in_child(cell: Any, threads: int, limit: float, cells: BinaryIO, outcomes: BinaryIO) -> dict[str, Any]:
    from penstock.bench.cells import failed

    server = os.getpid()
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        code = 1
        try:
            with suppress(OSError):
                os.setpgid(0, 0)  # with what it starts it is a group of its own, to be ended as one
            _die_with(server)
            for descriptor in (reading, cells.fileno(), outcomes.fileno()):
                os.close(descriptor)
            with os.fdopen(writing, "wb", buffering=0) as pipe:
                send(pipe, _run(cell, threads))
            code = 0
        finally:
            os._exit(code)  # without the clean-up that belongs to the server
    with suppress(OSError):  # the child does the same; one of them is first
        os.setpgid(child, child)
    os.close(writing)
    content, ended, status = _watch(child, reading, cells, limit)
    _kill_group(child)
    if status is None:
        _, status = os.waitpid(child, 0)
    os.close(reading)
    if len(content) > _LENGTH.size and len(content) == _LENGTH.size + _LENGTH.unpack_from(content)[0]:
        outcome: dict[str, Any] = pickle.loads(content[_LENGTH.size :])
        return outcome
    if not ended:
        return failed(f"stopped after the time limit of {limit:g} s", "timed out") | {"limit": limit}
    return failed(_how_it_ended(status), "killed")


def _watch(child: int, reading: int, cells: BinaryIO, limit: float) -> tuple[bytes, bool, int | None]:
    """Return what a child sent, whether it ended before the time limit, and its exit status if that is known."""
    content = bytearray()
    status: int | None = None
    listening: list[Any] = [reading, cells]
    end = time.monotonic() + limit
    while (left := end - time.monotonic()) > 0:
        ready, _, _ = select.select(listening, [], [], min(left, _GLANCE))
        if cells in ready:  # the parent sends one cell at a time: this can only be its end
            _kill_group(child)
            os._exit(1)
        if reading in ready:
            piece = os.read(reading, 1 << 20)
            content += piece
            if not piece:  # it has closed the pipe, and should end now
                listening = [cells]
                end = time.monotonic() + 10 * _GLANCE
        elif status is not None:  # it has ended, and there is nothing left to read
            break
        if status is None:
            gone, found = os.waitpid(child, os.WNOHANG)
            status = found if gone else None
            if gone and reading not in listening:
                break
    return bytes(content), status is not None or reading not in listening, status


def _die_with(server: int) -> None:
    """End this process when the server is killed; where the system cannot do that, it ends with its cell."""
    if sys.platform == "linux":
        import ctypes

        ctypes.CDLL(None).prctl(1, signal.SIGKILL)  # PR_SET_PDEATHSIG
        if os.getppid() != server:  # it was killed before that
            os._exit(1)


def _kill_group(child: int) -> None:
    """Kill the cell and the processes that it started."""
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(child, signal.SIGKILL)


def _how_it_ended(status: int) -> str:
    if os.WIFSIGNALED(status):
        number = os.WTERMSIG(status)
        hint = "; was there too little memory?" if number == signal.SIGKILL else ""
        return f"its process was ended by signal {number} ({signal.Signals(number).name}){hint}"
    return f"its process ended with exit code {os.waitstatus_to_exitcode(status)} and no result"


if __name__ == "__main__":
    main()
