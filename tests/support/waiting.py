"""Wait for what another process or thread does, and see whether one runs."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from pathlib import Path

PATIENCE = 300.0  # seconds: a busy machine is not an error, and what comes is seen at once


def wait_for(happened: Callable[[], object]) -> None:
    """Wait until it is true; fail where it does not come."""
    end = time.monotonic() + PATIENCE
    while not happened():
        assert time.monotonic() < end, "it did not come"
        time.sleep(0.02)


def is_running(process: int) -> bool:
    """Whether it runs; one that has ended and waits to be noticed does not."""
    try:
        state = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0]
    except (OSError, IndexError):
        try:
            os.kill(process, 0)
        except ProcessLookupError:
            return False
        return not Path("/proc/self/stat").exists()
    return state not in "ZX"
