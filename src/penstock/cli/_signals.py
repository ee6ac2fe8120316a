"""Ctrl-C and SIGTERM as a wish to end: heard between two batches, or at once but without leaving anything behind."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from multiprocessing import resource_tracker
from types import FrameType, TracebackType
from typing import Any, Self

_SIGNALS = (signal.SIGINT, signal.SIGTERM)


class StopSignals:
    """Inside this block the first signal is only noted; a second one ends the process at once.

    >>> with StopSignals() as stop:
    ...     stop.requested()
    False
    """

    def __init__(self) -> None:
        self.number: int | None = None
        self._before: dict[signal.Signals, Any] = {}

    def requested(self) -> bool:
        return self.number is not None

    def __enter__(self) -> Self:
        self._before = {number: signal.signal(number, self._note) for number in _SIGNALS}
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)

    def _note(self, number: int, frame: FrameType | None) -> None:
        self.number = number
        # Whoever asks twice does not want to wait, for example for a reader that no longer takes the output.
        for each in _SIGNALS:
            signal.signal(each, signal.SIG_DFL)


@contextmanager
def cleaning_up() -> Iterator[None]:
    """Inside this block SIGTERM ends the process as Ctrl-C does, through all that tidies up on the way."""
    if threading.current_thread() is not threading.main_thread():  # others cannot hear signals
        yield
        return
    before = signal.signal(signal.SIGTERM, _end)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


@contextmanager
def deaf_children() -> Iterator[None]:
    """Processes started inside this block, or later by threads that begin in it, do not hear Ctrl-C.

    A terminal sends it to all of them at once. They would die with a traceback each, where the one who started them
    is about to end them in an orderly way.
    """
    if not hasattr(signal, "pthread_sigmask"):  # Windows
        yield
        return
    resource_tracker.ensure_running()  # it lets signals through again wherever it is started
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)  # a Ctrl-C of the meantime is heard now


def _end(number: int, frame: FrameType | None) -> None:
    raise SystemExit(128 + number)  # as shells have it
