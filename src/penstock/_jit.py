"""The one home of numba: how a kernel is compiled, cached and announced.

Kernels release the interpreter lock, so that plain threads run them side by side (`_threads.py`); none of them uses
numba's own parallel mode, whose compilation is several times slower and whose threads spin when a core is busy.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any, TypeVar

import numba
from numba.core import event

F = TypeVar("F", bound=Callable[..., Any])

# Rounding may differ, nothing else: a relaxed kernel may sum in another order and fuse a product with a sum, but must
# honour infinities and NaN. Only for values that a proven slack covers, never for a length that is returned.
_RELAXED = {"contract", "reassoc", "nsz"}


def kernel(function: F) -> F:
    """Compile with IEEE arithmetic in the order written: the same bits wherever it is called from."""
    return _compile(function, fastmath=False)


def relaxed_kernel(function: F) -> F:
    """Compile with sums in any order; the caller owns a bound on the rounding error."""
    return _compile(function, fastmath=_RELAXED)


def _compile(function: F, **options: Any) -> F:
    options |= {"nogil": True, "error_model": "numpy"}
    try:
        compiled: F = numba.njit(cache=True, **options)(function)
    except RuntimeError:  # no place to write a cache: compile anew in each process
        compiled = numba.njit(cache=False, **options)(function)
    return compiled


class _AnnounceOnce(event.Listener):
    """Says once, on a terminal only, why the first call of all takes its time."""

    def __init__(self) -> None:
        self._said = False

    def on_start(self, event: Any) -> None:
        module = event.data["dispatcher"].py_func.__module__
        if not self._said and module.startswith("penstock.") and sys.stderr is not None and sys.stderr.isatty():
            sys.stderr.write("penstock: compiling its kernels, once on this machine (less than half a minute)\n")
            self._said = True

    def on_end(self, event: Any) -> None:
        pass


event.register("numba:compile", _AnnounceOnce())  # type: ignore[no-untyped-call]
