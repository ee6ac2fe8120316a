"""Threads: kernels that release the interpreter lock run on several of them, matrix products on one.

The same work is done in the same pieces, whatever the number of threads. The matrix products of a solver's sweep or of
a rotation take a millisecond: on two threads they gain little, but wait for each other a hundred times longer when
another program holds a core; and their rounding would depend on the number of cores.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from contextvars import ContextVar
from functools import cache
from itertools import pairwise
from typing import Any, TypeVar

import numpy as np
from threadpoolctl import ThreadpoolController

from penstock._types import FloatArray

T = TypeVar("T")
R = TypeVar("R")

_limit: ContextVar[int | None] = ContextVar("penstock_thread_limit", default=None)
_lock = threading.Lock()
_pins: list[Any] = []  # one entry per block under way, on whichever thread: the setting is the whole process's


def thread_count() -> int:
    """Return how many threads may run at once: a `thread_limit`, else PENSTOCK_THREADS, else the usable cores."""
    limit = _limit.get()
    if limit is not None:
        return limit
    text = os.environ.get("PENSTOCK_THREADS", "")
    if text:
        if not text.isdigit() or int(text) < 1:
            raise ValueError(f"PENSTOCK_THREADS must be a positive whole number, but is {text!r}.")
        return int(text)
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


@contextmanager
def thread_limit(count: int) -> Iterator[None]:
    """Use at most `count` threads inside this block."""
    token = _limit.set(count)
    try:
        yield
    finally:
        _limit.reset(token)


def for_each_range(work: Callable[[int, int], None], n: int, *, smallest: int) -> None:
    """Call ``work(start, stop)`` on consecutive ranges that cover ``0..n``, on several threads where it pays.

    `work` must write to disjoint places for disjoint ranges; then the result does not depend on the threads.
    A range holds at least `smallest` items, so that small jobs stay on the calling thread.
    """
    threads = min(thread_count(), n // max(smallest, 1))
    if threads <= 1:
        work(0, n)
        return
    pieces = 4 * threads  # more than threads: an unlucky one does not keep the others waiting
    bounds = [n * piece // pieces for piece in range(pieces + 1)]
    for_each(lambda ends: work(*ends), [ends for ends in pairwise(bounds) if ends[1] > ends[0]])


def for_each(work: Callable[[T], R], items: Sequence[T]) -> list[R]:
    """Return ``work(item)`` of each item, on several threads."""
    threads = min(thread_count(), len(items))
    if threads <= 1:
        return [work(item) for item in items]
    with ThreadPoolExecutor(threads) as pool:
        try:
            return [done.result() for done in [pool.submit(work, item) for item in items]]
        except BaseException:  # an error, or Ctrl-C: what has not begun is not begun
            pool.shutdown(cancel_futures=True)
            raise


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
