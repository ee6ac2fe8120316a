"""Matrix products on one thread.

Those of a solver's sweep or of a rotation take a millisecond. On two threads they gain little, but wait for each other
a hundred times longer when another program holds a core; and their rounding would depend on the number of cores.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any

import numpy as np
from threadpoolctl import ThreadpoolController

from penstock._types import FloatArray

_lock = threading.Lock()
_pins: list[Any] = []  # one entry per block under way, on whichever thread: the setting is the whole process's


@contextmanager
def one_blas_thread() -> Iterator[None]:
    """Keep BLAS on one thread inside this block; the last to leave restores what the first one found."""
    with _lock:
        _pins.append(_pins[0] if _pins else _controller().limit(limits=1, user_api="blas"))
    try:
        yield
    finally:
        with _lock:
            pin = _pins.pop()
            if not _pins:
                pin.restore_original_limits()


def dot(a: FloatArray, b: FloatArray) -> float:
    """Return Σ a·b over all entries, to the same bits on any thread and any number of cores.

    BLAS splits long sums among its threads, and `one_blas_thread` cannot keep it from that outside of the main thread:
    there, OpenBLAS ignores the setting.
    """
    return float(np.einsum("i,i->", a.ravel(), b.ravel()))


@cache
def _controller() -> Any:
    return ThreadpoolController()
