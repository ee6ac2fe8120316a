"""Wait for what another process or thread does."""

from __future__ import annotations

import time
from collections.abc import Callable

PATIENCE = 300.0  # seconds: a busy machine is not an error, and what comes is seen at once


def wait_for(happened: Callable[[], object]) -> None:
    """Wait until it is true; fail where it does not come."""
    end = time.monotonic() + PATIENCE
    while not happened():
        assert time.monotonic() < end, "it did not come"
        time.sleep(0.02)
