"""Errors, output, the status of long work, Ctrl-C and SIGTERM."""

from __future__ import annotations

import logging
import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from multiprocessing import resource_tracker
from types import FrameType
from typing import Any, Self

from penstock import _progress
from penstock._progress import LOGGER


class CommandError(Exception):
    """An expected error, shown in one line without a traceback; exit code 2: the command was given wrongly."""

    def __init__(self, message: str, exit_code: int = 2) -> None:
        super().__init__(message)
        self.exit_code = exit_code


def printable(text: str) -> str:
    """Replace each character that a terminal would obey instead of showing it.

    Column names and times come from the data: they must not move the cursor or change the title.

    >>> printable("10:00" + chr(27) + "[2J")
    '10:00�[2J'
    """
    return text if text.isprintable() else "".join(each if each.isprintable() else "�" for each in text)


def print_text(text: str) -> None:
    """Print a text; that the reader has closed the pipe is no failure."""
    if sys.stdout is None:  # closed before the start
        return
    encoding = sys.stdout.encoding or "utf-8"
    try:
        sys.stdout.write(text.encode(encoding, "replace").decode(encoding) + "\n")
        sys.stdout.flush()
    except BrokenPipeError:
        _discard()
    except OSError as error:
        _discard()
        raise CommandError(f"Standard output cannot be written: {error.strerror}.") from None


def _discard() -> None:
    """Discard what is still in the buffer: Python would report it at the end."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    try:
        os.dup2(nowhere, sys.stdout.fileno())
    except OSError:  # not a real file, as in tests
        pass
    finally:
        os.close(nowhere)


def live_status(render: Callable[[], Any]) -> Any:
    """Start a status on standard error, drawn by `render`; None where that is not a terminal."""
    if sys.stderr is None or not sys.stderr.isatty():
        return None
    from rich.console import Console
    from rich.live import Live

    live = Live(console=Console(stderr=True), get_renderable=render, refresh_per_second=4, transient=True)
    live.start()
    return live


class Stages(logging.Handler):
    """Inside this block, call it with the name of each stage that begins. Shows nothing in a pipe, or if `quiet`.

    A fit that lasts shows what it does, and a bar if its steps can be counted.
    """

    def __init__(self, *, quiet: bool) -> None:
        super().__init__()
        self._quiet, self._stage = quiet, ""
        self._fit: logging.LogRecord | None = None
        self._started = time.monotonic()

    def __call__(self, stage: str) -> None:
        self._stage = printable(stage)
        self._fit = None

    def __enter__(self) -> Self:
        self._live = None if self._quiet else live_status(self._status)
        if self._live is not None:
            self._level = LOGGER.level
            LOGGER.setLevel(logging.INFO)
            LOGGER.addHandler(self)
        return self

    def __exit__(self, *_: object) -> None:
        if self._live is not None:
            self._live.stop()
            LOGGER.removeHandler(self)
            LOGGER.setLevel(self._level)

    def emit(self, record: logging.LogRecord) -> None:
        self._fit = record

    def _status(self) -> Any:
        from rich.progress_bar import ProgressBar
        from rich.table import Table
        from rich.text import Text

        seconds = time.monotonic() - self._started
        fit = {} if self._fit is None else vars(self._fit)
        if seconds < _progress.SECONDS or not self._stage:
            return Text("")
        done, total = fit.get("done", 0), fit.get("total", 0)
        words = (self._stage, fit.get("stage", ""), f"{seconds:.0f} s")
        status = Table.grid(padding=(0, 1))
        status.add_row(Text(", ".join(filter(None, words))), ProgressBar(total, done, width=30) if total else "")
        return status


_SIGNALS = (signal.SIGINT, signal.SIGTERM)


class StopSignals:
    """Inside this block the first SIGINT or SIGTERM is only noted; a second one ends the process at once."""

    def __init__(self) -> None:
        self.number: int | None = None
        self._before: dict[signal.Signals, Any] = {}

    def requested(self) -> bool:
        return self.number is not None

    def __enter__(self) -> Self:
        self._before = {number: signal.signal(number, self._note) for number in _SIGNALS}
        return self

    def __exit__(self, *_: object) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)

    def _note(self, number: int, frame: FrameType | None) -> None:
        self.number = number
        # A second signal ends the command without waiting, for example for a reader that does not read.
        for each in _SIGNALS:
            signal.signal(each, signal.SIG_DFL)


@contextmanager
def cleaning_up() -> Iterator[None]:
    """Inside this block SIGTERM ends the process as Ctrl-C does, with all cleaning up on the way."""
    if threading.current_thread() is not threading.main_thread():  # others get no signals
        yield
        return

    def end(number: int, frame: FrameType | None) -> None:
        raise SystemExit(128 + number)  # as shells have it

    before = signal.signal(signal.SIGTERM, end)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


@contextmanager
def children_without_interrupt() -> Iterator[None]:
    """Processes started inside this block, or later by threads that begin in it, ignore Ctrl-C.

    A terminal sends it to all processes at once: children would print a traceback each, before their parent ends them.
    """
    if not hasattr(signal, "pthread_sigmask"):  # Windows
        yield
        return
    resource_tracker.ensure_running()  # it lets signals through again wherever it is started
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)  # a Ctrl-C of the meantime works now
