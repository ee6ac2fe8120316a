"""What goes on, on a terminal: the stage and the seconds, for whatever takes longer than two of them."""

from __future__ import annotations

import sys
import time
from types import TracebackType
from typing import Any, Self

from penstock.cli._printable import printable

_PATIENCE = 2.0  # seconds


class Stages:
    """Inside this block, call it with the name of each stage that begins. Shows nothing in a pipe, or if `quiet`."""

    def __init__(self, *, quiet: bool) -> None:
        self._shown = not quiet and sys.stderr is not None and sys.stderr.isatty()
        self._stage = ""
        self._live: Any = None
        self._started = time.monotonic()

    def __call__(self, stage: str) -> None:
        self._stage = printable(stage)

    def __enter__(self) -> Self:
        if self._shown:
            from rich.console import Console
            from rich.live import Live

            self._live = Live(
                console=Console(stderr=True), get_renderable=self._status, refresh_per_second=4, transient=True
            )
            self._live.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        if self._live is not None:
            self._live.stop()

    def _status(self) -> Any:
        from rich.text import Text

        seconds = time.monotonic() - self._started
        return Text(f"{self._stage}, {seconds:.0f} s" if seconds >= _PATIENCE and self._stage else "")
