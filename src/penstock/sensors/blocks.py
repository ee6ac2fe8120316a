"""Go through arrays of n rows block by block: here, one after the other, or wherever `work_elsewhere` sends the blocks.

Work on a block is a function of the arrays' rows of the block (picklable, if it is sent elsewhere). What is learnt from
a series is put together from these few ways to go through its rows, so that it is the same wherever they are.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

import numpy as np

from penstock._types import FloatArray

_VALUES_AT_ONCE, _FEWEST_ROWS = 65_536 * 50, 4096

Work = Callable[..., Any]


def row_blocks(n: int, p: int) -> Iterator[slice]:
    """Yield slices of n rows of p values: what is computed on the way to a result need not be as large as it."""
    size = max(_FEWEST_ROWS, _VALUES_AT_ONCE // max(p, 1))
    for start in range(0, n, size):
        yield slice(start, min(start + size, n))


def widened(rows: slice, around: int, n: int) -> tuple[slice, slice]:
    """Return a block with so many of the n rows before and after it, and where the block is in it."""
    wide = slice(max(rows.start - around, 0), min(rows.stop + around, n))
    return wide, slice(rows.start - wide.start, rows.stop - wide.start)


class Here:
    """Blocks of rows one after the other, in this thread."""

    def each(self, work: Work, arrays: tuple[Any, ...]) -> list[Any]:
        """Return ``work(*rows of the arrays)`` of each block; work may change the rows in place."""
        return [work(*(array[rows] for array in arrays)) for rows in row_blocks(*arrays[0].shape)]

    def fill(self, columns: int, work: Work, arrays: tuple[Any, ...], around: int) -> FloatArray:
        """Return an array (n, columns) of what work returns for each block, seen with `around` rows on both sides."""
        n = len(arrays[0])
        found = np.empty((n, columns))
        for rows in row_blocks(*arrays[0].shape):
            wide, inner = widened(rows, around, n)
            found[rows] = work(*(array[wide] for array in arrays))[inner]
        return found

    def follow(self, columns: int, work: Work, state: Any, arrays: tuple[Any, ...]) -> tuple[FloatArray, Any]:
        """Like `fill`, block after block: work takes a state, and returns that of the next block too."""
        found = np.empty((len(arrays[0]), columns))
        for rows in row_blocks(*arrays[0].shape):
            found[rows], state = work(state, *(array[rows] for array in arrays))
        return found, state

    def each_column(self, work: Work, arrays: tuple[Any, ...], vectors: tuple[Any, ...]) -> list[Any]:
        """Return ``work(*that column of the arrays, *vectors)`` of each column."""
        columns = range(arrays[0].shape[1])
        return [work(*(np.ascontiguousarray(array[:, j]) for array in arrays), *vectors) for j in columns]

    def take(self, array: Any, places: Any) -> FloatArray:
        """Return some rows of an array."""
        rows: FloatArray = array[places]
        return rows


_where: ContextVar[Here] = ContextVar("blocks of rows", default=Here())  # noqa: B039


@contextmanager
def work_elsewhere(blocks: Any) -> Iterator[None]:
    """Let something with the methods of `Here` go through the rows inside this block of code."""
    token = _where.set(blocks)
    try:
        yield
    finally:
        _where.reset(token)


def each_block(work: Work, *arrays: Any) -> list[Any]:
    """Return ``work(*rows of the arrays)`` of each block of rows; work may change the rows in place."""
    return _where.get().each(work, arrays)


def add_up(work: Work, *arrays: Any) -> Any:
    """Return the sum of ``work(*rows of the arrays)`` over the blocks, or of each of its results if it has several."""
    found = each_block(work, *arrays)
    if isinstance(found[0], tuple):
        return tuple(sum(parts[1:], parts[0]) for parts in zip(*found, strict=True))
    return sum(found[1:], found[0])


def join_blocks(work: Work, *arrays: Any) -> Any:
    """Return ``work(*rows of the arrays)`` of all blocks, one after the other, in memory: for few columns."""
    return np.concatenate(each_block(work, *arrays))


def fill_blocks(columns: int, work: Work, *arrays: Any, around: int = 0) -> FloatArray:
    """Return an array (n, columns) of what work returns for the rows of each block.

    around : how many rows before and after a block are given to work as well; it returns values for them too.
    """
    return _where.get().fill(columns, work, arrays, around)


def follow_blocks(columns: int, work: Work, state: Any, *arrays: Any) -> tuple[FloatArray, Any]:
    """Like `fill_blocks`, with a state that goes on from block to block; also return the last one."""
    return _where.get().follow(columns, work, state, arrays)


def take_rows(array: Any, places: Any) -> FloatArray:
    """Return the rows of an array at these places, an index or a slice, in memory."""
    return _where.get().take(array, places)


def each_column(work: Work, arrays: tuple[Any, ...], *vectors: Any) -> list[Any]:
    """Return ``work(*that column of the arrays, *vectors)`` of each column of arrays (n, p)."""
    return _where.get().each_column(work, arrays, vectors)
