"""Blocks of rows: their data, how blocks are coupled, and the executor that steps them.

Solvers that work by blocks are written against `BlockExecutor`, so that the same solver runs on this machine's threads
or on a cluster: with the same blocks, the same order of the rows in them and the same terms, to the same bits.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from penstock._threads import thread_count
from penstock._types import FloatArray, IndexArray, SparseMatrix
from penstock.factor.objectives import Objective, fill_with_means
from penstock.graph.partition import arrange_rows

CHUNK = 1 << 14  # rows that are worked on at once: fixed, because the order of sums depends on it


class Rows(Protocol):
    """The table's rows of a block, in memory or in a file."""

    def __len__(self) -> int: ...

    def chunks(self) -> Iterator[tuple[int, FloatArray]]:
        """Iterate over the rows, `CHUNK` at a time, each time with the number of the first."""


@dataclass(frozen=True, eq=False)
class ArrayRows:
    """Rows in memory.

    >>> [(start, chunk.shape) for start, chunk in ArrayRows(np.ones((20_000, 2))).chunks()]
    [(0, (16384, 2)), (16384, (3616, 2))]
    """

    values: FloatArray

    def __len__(self) -> int:
        return len(self.values)

    def chunks(self) -> Iterator[tuple[int, FloatArray]]:
        for start in range(0, len(self.values), CHUNK):
            yield start, self.values[start : start + CHUNK]


@dataclass(frozen=True, eq=False)
class RowBlock:
    """The data of one block of n rows: the rows, and S between them and all rows they are similar to.

    S is in compressed rows. Columns from n on are border rows, copies of other blocks' rows that the block receives
    before each step; `offers` are those of its own rows that other blocks receive.
    """

    rows: Rows | None
    indptr: NDArray[np.int64]
    indices: NDArray[np.int64]
    data: FloatArray
    offers: IndexArray

    @property
    def n(self) -> int:
        return len(self.indptr) - 1

    @cached_property
    def degree(self) -> FloatArray:
        """The sum of each row's similarities, those to border rows among them."""
        return self._by_row(self.data)

    @cached_property
    def diagonal(self) -> FloatArray:
        """Each row's similarity to itself."""
        return self._by_row(np.where(self.indices == self._row_numbers(), self.data, 0.0))

    def pairs(self) -> tuple[IndexArray, IndexArray, FloatArray]:
        """S between the block's own rows, as (rows, columns, data)."""
        own = self.indices < self.n
        return self._row_numbers()[own], self.indices[own], self.data[own]

    def _by_row(self, entries: FloatArray) -> FloatArray:
        return np.bincount(self._row_numbers(), weights=entries, minlength=self.n).astype(np.float64)

    def _row_numbers(self) -> IndexArray:
        return np.repeat(np.arange(self.n), np.diff(self.indptr))


@dataclass(frozen=True, eq=False)
class BlockCoupling:
    """The similarities between blocks. The offers of all blocks make one list; everything here counts places in it."""

    needs: list[IndexArray]  # for each block the places of its border rows
    ends: IndexArray  # (m, 2): similarities between blocks, each pair once
    similarities: FloatArray

    def ends_of(self, offered: FloatArray) -> tuple[FloatArray, FloatArray]:
        """The rows at either end of the similarities between blocks."""
        return offered[self.ends[:, 0]], offered[self.ends[:, 1]]

    def borders(self, offered: Sequence[FloatArray]) -> list[FloatArray]:
        """The border rows of each block, from what each of them offers."""
        everything = np.concatenate(list(offered))
        return [everything[places] for places in self.needs]


def cut_graph(S: SparseMatrix | None, order: IndexArray, bounds: IndexArray) -> tuple[list[RowBlock], BlockCoupling]:
    """Cut S into the blocks order[bounds[b]:bounds[b+1]]; the blocks have no rows of a table yet.

    >>> from scipy import sparse
    >>> chain = sparse.csr_array(np.diag([2.0, 3.0, 4.0], 1) + np.diag([2.0, 3.0, 4.0], -1))
    >>> blocks, coupling = cut_graph(chain, np.arange(4), np.array([0, 2, 4]))
    >>> blocks[0].indices.tolist(), blocks[0].offers.tolist(), coupling.similarities.tolist()
    ([1, 0, 2], [1], [3.0])
    >>> [border.tolist() for border in coupling.borders([np.array([[0.1]]), np.array([[0.2]])])]
    [[[0.2]], [[0.1]]]
    """
    indptr, rows, columns, data = _permuted(S, order)
    block_of = np.repeat(np.arange(len(bounds) - 1), np.diff(bounds))
    crossing = block_of[rows] != block_of[columns]
    offers = np.unique(columns[crossing])
    blocks, needs = [], []
    for first, last in pairwise(int(bound) for bound in bounds):
        entries = slice(indptr[first], indptr[last])
        inside, outside = columns[entries] - first, crossing[entries]
        needed = np.unique(columns[entries][outside])
        inside[outside] = last - first + np.searchsorted(needed, columns[entries][outside])
        needs.append(np.searchsorted(offers, needed))
        own = offers[np.searchsorted(offers, first) : np.searchsorted(offers, last)] - first
        pointers = indptr[first : last + 1] - indptr[first]
        blocks.append(RowBlock(None, pointers, inside, data[entries].copy(), own))
    once = crossing & (rows < columns)
    ends = np.searchsorted(offers, np.column_stack([rows[once], columns[once]]))
    return blocks, BlockCoupling(needs, ends, data[once])


def _permuted(S: SparseMatrix | None, order: IndexArray) -> tuple[Any, Any, Any, Any]:
    """The rows and columns of S in another order: (indptr, rows, columns, data), columns ascending in each row."""
    n = len(order)
    if S is None:
        return np.zeros(n + 1, np.int64), np.zeros(0, np.int64), np.zeros(0, np.int64), np.zeros(0)
    place = np.empty(n, dtype=np.int64)
    place[order] = np.arange(n)
    rows = place[np.repeat(np.arange(n), np.diff(S.indptr))]
    columns = place[S.indices]
    by_row = np.lexsort((columns, rows))
    indptr = np.concatenate([[0], np.cumsum(np.diff(S.indptr)[order])]).astype(np.int64)
    return indptr, rows[by_row], columns[by_row], np.asarray(S.data, dtype=np.float64)[by_row]


@dataclass(frozen=True, eq=False)
class Layout:
    """Blocks of near rows: block b has the rows order[bounds[b]:bounds[b+1]].

    >>> from penstock.factor import nmf
    >>> layout = Layout.of(nmf(np.array([[9.0], [0.0], [8.0], [1.0]])), 2)
    >>> layout.bounds.tolist(), sorted(layout.order[:2].tolist())
    ([0, 2, 4], [1, 3])
    """

    order: IndexArray
    bounds: IndexArray

    @classmethod
    def of(cls, objective: Objective, n_blocks: int) -> Layout:
        """Put near rows together; without a table, runs of rows. There may be fewer blocks than asked for."""
        n = objective.n_rows
        if objective.A is None:
            return cls(np.arange(n), equal_runs(n, min(n_blocks, n)))
        return cls(*arrange_rows(fill_with_means(objective.A), min(n_blocks, n)))

    def arranged(self, objective: Objective) -> Objective:
        """The objective with its rows block by block."""
        A, S = objective.A, objective.S
        A = None if A is None else A[self.order]
        return replace(objective, A=A, S=None if S is None else S[self.order][:, self.order])

    def cut(self, objective: Objective) -> tuple[list[RowBlock], BlockCoupling]:
        """The blocks, with their rows of the table if there is one, and how they are coupled."""
        blocks, coupling = cut_graph(objective.S, self.order, self.bounds)
        if objective.A is not None:
            tables = self.split(objective.A)
            blocks = [replace(block, rows=ArrayRows(rows)) for block, rows in zip(blocks, tables, strict=True)]
        return blocks, coupling

    def split(self, values: FloatArray) -> list[FloatArray]:
        """The rows of each block."""
        return [values[self.order[first:last]] for first, last in pairwise(self.bounds)]

    def joined(self, blocks: Sequence[FloatArray]) -> FloatArray:
        """The rows of all blocks, in the order of the table."""
        rows = np.concatenate(list(blocks))
        result = np.empty_like(rows)
        result[self.order] = rows
        return result


def equal_runs(count: int, parts: int) -> IndexArray:
    """Compute where each of `parts` runs of about equal length begins, and where the last one ends.

    >>> equal_runs(7, 3).tolist()
    [0, 2, 4, 7]
    """
    return np.array([count * part // parts for part in range(parts + 1)], dtype=np.int64)


State = dict[str, FloatArray]
# A step of one block: from the block and its state (which it must leave as it is: a cluster may ask again) and further
# arguments to its new state and a report. A function of a module, so that it can be sent elsewhere.
Work = Callable[..., tuple[State, Any]]


class BlockExecutor(Protocol):
    """Steps blocks, and keeps their states from one step to the next."""

    @property
    def n_blocks(self) -> int: ...

    def each(self, work: Work, *common: Any, apart: Sequence[tuple[Any, ...]] | None = None) -> list[Any]:
        """Run ``work(block, state, *common, *apart[b])`` for every block; keep the new states, return the reports."""

    def gather(self, name: str) -> list[FloatArray]:
        """The part `name` of every block's state."""


class LocalExecutor:
    """Steps blocks on the threads of this machine.

    >>> blocks = [RowBlock(None, np.zeros(3, np.int64), np.zeros(0, np.int64), np.zeros(0), np.zeros(0, int))]
    >>> executor = LocalExecutor(blocks)
    >>> executor.each(lambda block, state, size: ({"W": np.full(block.n, size)}, block.n), 7.0)
    [2]
    >>> executor.gather("W")
    [array([7., 7.])]
    """

    def __init__(self, blocks: Sequence[RowBlock], states: Sequence[State] | None = None) -> None:
        self._blocks = list(blocks)
        self._states: list[State] = [{} for _ in self._blocks] if states is None else list(states)

    @property
    def n_blocks(self) -> int:
        return len(self._blocks)

    def each(self, work: Work, *common: Any, apart: Sequence[tuple[Any, ...]] | None = None) -> list[Any]:
        own = [()] * self.n_blocks if apart is None else apart
        calls = [
            (work, block, state, *common, *more)
            for block, state, more in zip(self._blocks, self._states, own, strict=True)
        ]
        threads = min(thread_count(), self.n_blocks)
        if threads == 1:
            done = [function(*arguments) for function, *arguments in calls]
        else:
            with ThreadPoolExecutor(threads) as pool:
                # Each in a copy of the caller's context, which holds the limit on threads.
                running = [pool.submit(copy_context().run, function, *arguments) for function, *arguments in calls]
                done = [task.result() for task in running]
        self._states = [state for state, _ in done]
        return [report for _, report in done]

    def gather(self, name: str) -> list[FloatArray]:
        return [state[name] for state in self._states]
