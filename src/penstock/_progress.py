"""Progress of long fits, through the standard logger "penstock.fit".

`fit` opens a block (`logged_fit`), and the code below it names its stage (`set_stage`). A thread logs that
stage every two seconds, so that one long call of a kernel is reported too. Costs nothing unless the level INFO is on.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

LOGGER = logging.getLogger("penstock.fit")
SECONDS = 2.0  # before the first message, and between two
_stage: ContextVar[list[tuple[str, int, int]] | None] = ContextVar("stage", default=None)


def set_stage(stage: str, done: int = 0, total: int = 0) -> None:
    """Name what a fit under way does now, and how many steps of how many are done if that is known."""
    current = _stage.get()
    if current is not None:
        current[0] = (stage, done, total)


@contextmanager
def logged_fit(name: str) -> Iterator[None]:
    """Inside this block, log every two seconds what the fit of the estimator `name` does.

    Records have the attributes `stage`, `done` and `total` for handlers that draw a bar. Inside the fit of another
    estimator, the outer one is named.
    """
    if _stage.get() is not None or not LOGGER.isEnabledFor(logging.INFO):
        yield
        return
    current, ended, began = [("checks", 0, 0)], threading.Event(), time.monotonic()

    def log() -> None:
        while not ended.wait(SECONDS):
            stage, done, total = current[0]
            words = f"{stage} {done:,} of {total:,}" if total else stage
            extra = {"stage": words, "done": done, "total": total}
            LOGGER.info("fitting %s: %s, %.0f s", name, words, time.monotonic() - began, extra=extra)

    thread, token = threading.Thread(target=log, daemon=True), _stage.set(current)
    thread.start()
    try:
        yield
    finally:
        _stage.reset(token)
        ended.set()
        thread.join()
