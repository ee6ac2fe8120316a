"""Compile kernels with numba, cache them on disk, and announce the first compilation.

Only this module imports numba. Kernels release the interpreter lock, so that plain threads run them side by side
(`_threads.py`); none of them uses numba's own parallel mode, whose compilation is several times slower and whose
threads spin when a core is busy. Kernels live in files named ``*kernels.py``: their sources are the key of the cache.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from contextlib import suppress
from functools import cache
from hashlib import blake2b
from pathlib import Path
from typing import Any, TypeVar

import numba
from numba.core import event
from numba.core.caching import FunctionCache, IndexDataCacheFile

F = TypeVar("F", bound=Callable[..., Any])
Array = Any  # type of an array inside a kernel: numba settles it when the kernel is called

# A relaxed kernel may sum in another order and fuse a product with a sum, but must honour infinities and NaN. Only for
# values whose rounding error is covered by a proven bound, never for a length that is returned.
_RELAXED = {"contract", "reassoc", "nsz"}


def kernel(function: F) -> F:
    """Compile with IEEE arithmetic in the order written: the same bits wherever it is called from."""
    return _compile(function, fastmath=False)


def inlined_kernel(function: F) -> F:
    """Compile like `kernel`, always inlined: for small steps of inner loops with many array arguments."""
    return _compile(function, fastmath=False, forceinline=True)


def relaxed_kernel(function: F) -> F:
    """Compile with sums in any order; the caller owns a bound on the rounding error."""
    return _compile(function, fastmath=_RELAXED)


def _compile(function: F, **options: Any) -> F:
    options["no_cfunc_wrapper"] = True  # no kernel is called from C
    compiled: F = numba.njit(nogil=True, error_model="numpy", **options)(function)
    with suppress(RuntimeError):  # no place to write a cache: compile again in each process
        if hasattr(compiled, "enable_caching"):  # not where NUMBA_DISABLE_JIT is set
            compiled._cache = _KernelCache(function)  # type: ignore[attr-defined]
    return compiled


@cache
def _hash_sources() -> str:
    """Hash the sources of all kernels: numba inlines one into another and looks only at the file of the outer one."""
    package, found = Path(__file__).parent, blake2b(digest_size=16)
    for file in sorted([Path(__file__), *package.rglob("*kernels.py")]):
        found.update(file.relative_to(package).as_posix().encode() + b"\0" + file.read_bytes() + b"\0")
    return found.hexdigest()


class _KernelCache(FunctionCache):
    """numba's cache of one kernel on disk; a damaged cache or a full disk only cost the time to compile again."""

    _noted = False

    def __init__(self, function: Callable[..., Any]) -> None:
        super().__init__(function)  # type: ignore[no-untyped-call]
        with suppress(OSError):  # sources that cannot be read do not change
            stamp = (self._impl.locator.get_source_stamp(), _hash_sources())
            self._cache_file = IndexDataCacheFile(self.cache_path, self._impl.filename_base, stamp)  # type: ignore[no-untyped-call]

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        try:
            return super().load_overload(sig, target_context)  # type: ignore[no-untyped-call]
        except Exception as error:  # unpickling a damaged file can raise anything
            self._note("cannot be read", error, "They are compiled again.")
            with suppress(OSError):
                self.flush()  # type: ignore[no-untyped-call]  # so that they are replaced
            return None

    def save_overload(self, sig: Any, data: Any) -> None:
        try:
            super().save_overload(sig, data)  # type: ignore[no-untyped-call]
        except Exception as error:  # a full disk, or a damaged index
            advice = "They are compiled in memory, for this run only. Make room there, or set NUMBA_CACHE_DIR."
            self._note("cannot be stored", error, advice)

    def _note(self, what: str, error: Exception, advice: str) -> None:
        """Write one note on stderr per process."""
        if not _KernelCache._noted and sys.stderr is not None:
            _KernelCache._noted = True
            why = " ".join((str(error) or type(error).__name__)[:200].split())
            sys.stderr.write(f"penstock: compiled kernels in {self.cache_path} {what} ({why}). {advice}\n")


class _AnnounceOnce(event.Listener):
    """Explain once, on a terminal only, why the first call takes long."""

    def __init__(self) -> None:
        self._announced = False

    def on_start(self, event: Any) -> None:
        module = event.data["dispatcher"].py_func.__module__
        if not self._announced and module.startswith("penstock.") and sys.stderr is not None and sys.stderr.isatty():
            sys.stderr.write("penstock: compiling its kernels, once on this machine (less than half a minute)\n")
            self._announced = True

    def on_end(self, event: Any) -> None:
        pass


event.register("numba:compile", _AnnounceOnce())  # type: ignore[no-untyped-call]
