"""The one home of numba: how a kernel is compiled, cached and announced.

Kernels release the interpreter lock, so that plain threads run them side by side (`_threads.py`); none of them uses
numba's own parallel mode, whose compilation is several times slower and whose threads spin when a core is busy.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from contextlib import suppress
from typing import Any, TypeVar

import numba
from numba.core import event
from numba.core.caching import FunctionCache

F = TypeVar("F", bound=Callable[..., Any])
Array = Any  # inside kernels an array is an array; its type is settled by the caller

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
    compiled: F = numba.njit(**options)(function)
    with suppress(RuntimeError):  # no place to write a cache: compile anew in each process
        if hasattr(compiled, "enable_caching"):  # not where NUMBA_DISABLE_JIT is set
            compiled._cache = _ForgivingCache(function)  # type: ignore[attr-defined, no-untyped-call]
    return compiled


class _ForgivingCache(FunctionCache):
    """numba's cache of a kernel on disk, where damaged files and a full disk cost time and no more."""

    _noted = False

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        try:
            return super().load_overload(sig, target_context)  # type: ignore[no-untyped-call]
        except Exception as error:  # unpickling what is damaged can raise anything
            self._note("cannot be read", error, "They are compiled again.")
            with suppress(OSError):
                self.flush()  # type: ignore[no-untyped-call]  # so that they are replaced
            return None

    def save_overload(self, sig: Any, data: Any) -> None:
        try:
            super().save_overload(sig, data)  # type: ignore[no-untyped-call]
        except Exception as error:  # also of what is damaged there
            advice = "They are compiled in memory, for this run only. Make room there, or set NUMBA_CACHE_DIR."
            self._note("cannot be stored", error, advice)

    def _note(self, what: str, error: Exception, advice: str) -> None:
        if not _ForgivingCache._noted and sys.stderr is not None:
            _ForgivingCache._noted = True
            why = " ".join((str(error) or type(error).__name__)[:200].split())
            sys.stderr.write(f"penstock: compiled kernels in {self.cache_path} {what} ({why}). {advice}\n")


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
