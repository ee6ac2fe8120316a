"""Progress on a terminal; nothing in a pipe."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

Progress = Callable[[str, int, int], None]
_PATIENCE = 2.0  # seconds before a bar appears


@contextmanager
def terminal_progress(asked: Progress | None) -> Iterator[Progress]:
    """What to call with (what is done, how much of it, of how much): what was asked for, else a bar on a terminal."""
    if asked is not None:
        yield asked
        return
    if sys.stderr is None or not sys.stderr.isatty():
        yield _silent
        return
    with _bar() as bar:
        yield _Lines(bar)


def _silent(stage: str, done: int, total: int) -> None:
    pass


@contextmanager
def _bar() -> Iterator[Any]:
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeElapsedColumn
    from rich.progress import Progress as Bars

    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Bars(*columns, console=Console(stderr=True), transient=True) as bars:
        yield bars


class _Lines:
    """One line, for whatever is being done, once it takes longer than a moment."""

    def __init__(self, bars: Any) -> None:
        self._bars, self._began = bars, time.monotonic()
        self._task: Any = None

    def __call__(self, stage: str, done: int, total: int) -> None:
        if time.monotonic() - self._began < _PATIENCE:
            return
        if self._task is None:
            self._task = self._bars.add_task(stage, total=total)
        self._bars.update(self._task, description=stage, completed=done, total=total)
