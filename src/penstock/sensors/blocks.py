"""Go through arrays of n rows block by block: here, on threads, or wherever `use_block_backend` sends the blocks.

Work on a block is a function of the arrays' rows of the block (picklable, if it is sent elsewhere). What is fitted to
a series is put together from these few ways to go through its rows, so that it is the same wherever they are.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

import numpy as np

from penstock._threads import for_each
from penstock._types import FloatArray

_VALUES_AT_ONCE, _FEWEST_ROWS = 65_536 * 50, 4096
_VALUES_IN_CACHE, _FEWEST_IN_CACHE = 2**18, 512  # what is computed on the way then stays in the cache of a core
_FEWEST_COLUMNS = 8  # a line of the cache holds eight values

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


def _rows_apart(n: int, p: int) -> list[slice]:
    """Return smaller slices, for results of rows that do not depend on the other rows of their block."""
    size = max(_FEWEST_IN_CACHE, _VALUES_IN_CACHE // max(p, 1))
    return [slice(start, min(start + size, n)) for start in range(0, n, size)]


class LocalBlocks:
    """Blocks of rows in this process; the results do not depend on the number of threads."""

    def each(self, work: Work, arrays: tuple[Any, ...], *, apart: bool = False) -> list[Any]:
        """Return ``work(*rows of the arrays)`` of each block; work may change the rows in place.

        apart : what is returned of a row does not depend on the others. Else blocks are the same on every machine, and
            come one after the other, as sums of products (BLAS) keep their bits on the main thread alone.
        """

        def do(rows: slice) -> Any:
            return work(*(array[rows] for array in arrays))

        shape = arrays[0].shape
        return for_each(do, _rows_apart(*shape)) if apart else [do(rows) for rows in row_blocks(*shape)]

    def around(self, work: Work, arrays: tuple[Any, ...], around: int) -> list[Any]:
        """Return what work returns for each block with rows around it; here the block is all rows."""
        return [work(slice(0, len(arrays[0])), *arrays)]

    def fill(self, columns: int, work: Work, arrays: tuple[Any, ...], into: Any) -> FloatArray:
        """Return an array (n, columns) of what work returns for each block; see `fill_blocks`."""
        found: FloatArray = np.empty((len(arrays[0]), columns)) if into is None else into

        def do(rows: slice) -> None:
            found[rows] = work(*(array[rows] for array in arrays))

        for_each(do, _rows_apart(*arrays[0].shape))
        return found

    def follow(
        self, columns: int, work: Work, state: Any, arrays: tuple[Any, ...], into: Any
    ) -> tuple[FloatArray, Any]:
        """Like `fill`, block after block: work takes a state, and returns that of the next block too."""
        found: FloatArray = np.empty((len(arrays[0]), columns)) if into is None else into
        for rows in _rows_apart(*arrays[0].shape):
            found[rows], state = work(state, *(array[rows] for array in arrays))
        return found, state

    def each_column(self, work: Work, arrays: tuple[Any, ...], vectors: tuple[Any, ...]) -> list[Any]:
        """Return ``work(*that column of the arrays, *vectors)`` of each column."""

        def do(first: int) -> list[Any]:
            some = slice(first, first + _FEWEST_COLUMNS)
            groups = [np.ascontiguousarray(array[:, some].T) for array in arrays]
            return [work(*columns, *vectors) for columns in zip(*groups, strict=True)]

        found = for_each(do, range(0, arrays[0].shape[1], _FEWEST_COLUMNS))
        return [each for group in found for each in group]

    def take(self, array: Any, places: Any) -> FloatArray:
        """Return some rows of an array."""
        rows: FloatArray = array[places]
        return rows


_where: ContextVar[LocalBlocks] = ContextVar("blocks of rows", default=LocalBlocks())  # noqa: B039


@contextmanager
def use_block_backend(blocks: Any) -> Iterator[None]:
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
    """Return ``work(*rows of the arrays)`` of all blocks, one after the other, in memory: for few columns.

    What work returns of a row does not depend on the other rows.
    """
    return np.concatenate(_where.get().each(work, arrays, apart=True))


def blocks_around(work: Work, around: int, *arrays: Any) -> list[Any]:
    """Return ``work(inner, *rows of the arrays)`` of each block of rows with so many rows before and after it.

    inner : where the block's own rows are in what work is given, which it may change in place.
    """
    return _where.get().around(work, arrays, around)


def fill_blocks(columns: int, work: Work, *arrays: Any, into: FloatArray | None = None) -> FloatArray:
    """Return an array (n, columns) of what work returns for the rows of each block; a row depends on no other.

    into : an array of this shape whose content is needed no more: the result may be written there. It may be one of the
        arrays that work is given.
    """
    return _where.get().fill(columns, work, arrays, into)


def follow_blocks(
    columns: int, work: Work, state: Any, *arrays: Any, into: FloatArray | None = None
) -> tuple[FloatArray, Any]:
    """Like `fill_blocks`, with a state that goes on from block to block; also return the last one."""
    return _where.get().follow(columns, work, state, arrays, into)


def take_rows(array: Any, places: Any) -> FloatArray:
    """Return the rows of an array at these places, an index or a slice, in memory."""
    return _where.get().take(array, places)


def each_column(work: Work, arrays: tuple[Any, ...], *vectors: Any) -> list[Any]:
    """Return ``work(*that column of the arrays, *vectors)`` of each column of arrays (n, p)."""
    return _where.get().each_column(work, arrays, vectors)
