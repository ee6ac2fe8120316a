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

from threadpoolctl import ThreadpoolController


@contextmanager
def one_blas_thread() -> Iterator[None]:
    """Keep BLAS on one thread inside this block.

    On the main thread only: OpenBLAS ignores a larger number set from another thread, so what was lowered there
    could not be restored, and two solvers on two threads would undo each other's setting.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    with _controller().limit(limits=1, user_api="blas"):
        yield


@cache
def _controller() -> Any:
    return ThreadpoolController()
