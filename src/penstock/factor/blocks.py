"""Blocks of rows: their data, how they are coupled, the executor that steps them, and the work of one block.

Solvers that work by blocks are written against `BlockExecutor`, so that the same solver runs on this machine's threads
or on a cluster: with the same blocks, the same order of the rows in them and the same terms, to the same bits.

A block's state has its rows of the factor, ``W``; in the middle of a sweep also ``y``, where the sweep starts, and
``moved``, where it would go. Blocks report sums over their rows and the few rows that other blocks receive, nothing of
the size of a block.
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
from scipy import sparse

from penstock._threads import dot, thread_count
from penstock._types import FloatArray, IndexArray, SparseMatrix
from penstock.factor._kernels import Forms, agreement_forms, roughness_forms, sweep_rows
from penstock.factor.descent import NEGLIGIBLE, own_curvature, reach
from penstock.factor.objectives import Objective, fill_with_means
from penstock.factor.start import Extension, Operator, Products, draw_columns, weights_of
from penstock.factor.terms import Sums, Terms, weight_parts, weight_residuals
from penstock.graph.partition import arrange_rows

CHUNK = 1 << 14  # rows that are worked on at once: fixed, because the order of sums depends on it


class Rows(Protocol):
    """The table's rows of a block, in memory or in a file."""

    def __len__(self) -> int: ...

    def chunks(self) -> Iterator[tuple[int, FloatArray]]:
        """Iterate over the rows, `CHUNK` at a time, each time with the number of the first."""


@dataclass(frozen=True, eq=False)
class ArrayRows:
    """Rows in memory."""

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
        """Return S between the block's own rows, as (rows, columns, data)."""
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
        """Return the rows at either end of the similarities between blocks."""
        return offered[self.ends[:, 0]], offered[self.ends[:, 1]]

    def borders(self, offered: Sequence[FloatArray]) -> list[FloatArray]:
        """Return the border rows of each block, given what each of them offers."""
        everything = np.concatenate(list(offered))
        return [everything[places] for places in self.needs]


def cut_graph(S: SparseMatrix | None, order: IndexArray, bounds: IndexArray) -> tuple[list[RowBlock], BlockCoupling]:
    """Cut S into the blocks order[bounds[b]:bounds[b+1]]; the blocks have no rows of a table yet."""
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
    """Put the rows and columns of S in another order: (indptr, rows, columns, data), columns ascending in each row."""
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
    """Blocks of near rows: block b has the rows order[bounds[b]:bounds[b+1]]."""

    order: IndexArray
    bounds: IndexArray

    @classmethod
    def of(cls, objective: Objective, n_blocks: int) -> Layout:
        """Put near rows together; without a table, runs of rows. There may be fewer blocks than asked for."""
        n = objective.n_rows
        if objective.A is None:
            return cls(np.arange(n), equal_runs(n, min(n_blocks, n)))
        return cls(*arrange_rows(fill_with_means(objective.A), min(n_blocks, n)))

    def cut(self, objective: Objective) -> tuple[list[RowBlock], BlockCoupling]:
        """Return the blocks, with their rows of the table if there is one, and how they are coupled."""
        blocks, coupling = cut_graph(objective.matrix, self.order, self.bounds)
        if objective.A is not None:
            tables = self.split(objective.A)
            blocks = [replace(block, rows=ArrayRows(rows)) for block, rows in zip(blocks, tables, strict=True)]
        return blocks, coupling

    def split(self, values: FloatArray) -> list[FloatArray]:
        """Return the rows of each block."""
        return [values[self.order[first:last]] for first, last in pairwise(self.bounds)]

    def joined(self, blocks: Sequence[FloatArray]) -> FloatArray:
        """Return the rows of all blocks, in the order of the table."""
        rows = np.concatenate(list(blocks))
        result = np.empty_like(rows)
        result[self.order] = rows
        return result


def equal_runs(count: int, parts: int) -> IndexArray:
    """Compute where each of `parts` runs of about equal length begins, and where the last one ends."""
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
        """Return the part `name` of every block's state."""


class LocalExecutor:
    """Steps blocks on the threads of this machine."""

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


@dataclass(frozen=True, eq=False)
class Place:
    """Where a block's rows are, as far as the next sweep of other blocks depends on it."""

    G: FloatArray  # yᵀy
    total: float  # the sum of y
    offers: FloatArray  # the rows that other blocks receive


@dataclass(frozen=True, eq=False)
class BlockSums(Place):
    """Where a block's rows are, and what the objective needs of them but for pairs across blocks."""

    sums: Sums


@dataclass(frozen=True, eq=False)
class Grown:
    """What a block has to say of its columns while eigenvectors are searched for."""

    products: Products
    image: FloatArray  # AᵀY
    offers: FloatArray  # the rows of Y that other blocks receive


@dataclass(frozen=True, eq=False)
class SweepResult:
    """What a sweep of a block's rows from y by D would do; forms are over pairs within the block."""

    residual: float  # the sum of its rows' squared residuals as the sweep found them
    mixed: FloatArray  # yᵀD
    change: FloatArray  # DᵀD
    G: FloatArray  # movedᵀmoved
    V_before: FloatArray  # yᵀA
    V: FloatArray  # movedᵀA
    fit: float  # ⟨D, AHᵀ⟩
    agreement: Forms
    roughness: Forms
    offers: FloatArray  # of moved


def look(block: RowBlock, state: State, name: str) -> tuple[State, Place]:
    """Report on the part `name` of the state."""
    return state, _place(block, state[name])


def begin(block: RowBlock, state: State) -> tuple[State, Place]:
    """Start the next sweep from W itself: the first one, or one that is repeated without momentum."""
    return {"W": state["W"], "y": state["W"]}, _place(block, state["W"])


def advance(block: RowBlock, state: State, push: float, step: float) -> tuple[State, Place]:
    """Take the part `step` of the last sweep, and extrapolate from there to the start of the next."""
    W = _stepped(state, step)
    y = reach(W, state["W"], push) if push else W
    return {"W": W, "y": y}, _place(block, y)


def sweep(
    block: RowBlock, state: State, terms: Terms, H: FloatArray, G: FloatArray, mean: float, border: FloatArray
) -> tuple[State, SweepResult]:
    """Sweep the block's rows once by exact coordinate steps from y, with the rows of other blocks as they were."""
    y = state["y"]
    (n, K), scaled = y.shape, terms.alpha / 2 * H.T
    moved, linear = np.concatenate([y, border]), np.zeros_like(y)
    shift = own_curvature(terms, block.degree, block.diagonal)
    M = terms.symmetric * G + (terms.alpha / 2) * (H @ H.T)
    coupling = terms.symmetric + terms.laplacian / 2
    graph = block.indptr, block.indices, block.data
    residual, fit, mixed, change, gram = 0.0, 0.0, *np.zeros((3, K, K))
    V_before, V = np.zeros((2, K, terms.n_columns))
    for rows, table in _chunks(block, terms):
        if table is not None:
            np.matmul(table, scaled, out=linear[rows])
            V_before += y[rows].T @ table
        order = np.arange(rows.start, rows.stop)
        residual += sweep_rows(moved, linear, M, shift, *graph, order, terms.symmetric, coupling, mean)
        D = moved[rows] - y[rows]
        mixed += y[rows].T @ D
        change += D.T @ D
        gram += moved[rows].T @ moved[rows]
        if table is not None:
            V += moved[rows].T @ table
            fit += dot(linear[rows], D) * 2 / terms.alpha
    moved = moved[:n]
    forms = _forms(block, terms, y, moved)
    report = SweepResult(residual, mixed, change, gram, V_before, V, fit, *forms, moved[block.offers])
    return {"W": state["W"], "y": y, "moved": moved}, report


def find_gaps(
    block: RowBlock, state: State, terms: Terms, H: FloatArray, step: float
) -> tuple[State, tuple[float, float, float, int]]:
    """Sum squared residuals: of the table, of own similarities; squared fits of the latter; the number of entries of S.

    For similarities whose weight is 0 the sums are 0: their squares may overflow.
    """
    W, attributes = _stepped(state, step), 0.0
    for part, table in _chunks(block, terms):
        if table is not None:
            gap = table - W[part] @ H
            attributes += dot(gap, gap)
    if not terms.symmetric:
        return state, (attributes, 0.0, 0.0, len(block.data))
    rows, columns, data = block.pairs()
    fitted = np.sum(W[rows] * W[columns], axis=1)
    on_graph = float(np.sum((data - fitted) ** 2))
    return state, (attributes, on_graph, dot(fitted, fitted), len(block.data))


def assess(
    block: RowBlock, state: State, terms: Terms, H: FloatArray, G: FloatArray, mean: float, border: FloatArray
) -> tuple[State, tuple[float, Sums]]:
    """Report the sum of the squared KKT residuals of W's rows, and the block's part of the objective."""
    W = state["W"]
    SW = _spread(block, W, border) if terms.symmetric or terms.laplacian else None
    C = _attributes_onto(block, terms, H) if terms.alpha else None
    parts = weight_parts(terms, W, G, H, block.degree, SW, C)
    residuals = weight_residuals(terms, W, H, np.diag(G), block.degree, mean, parts)
    return state, (float(residuals.sum()), _block_sums(block, terms, W).sums)


def draw_start(
    block: RowBlock, state: State, terms: Terms, n_components: int, seed: int, number: int
) -> tuple[State, Grown]:
    """Begin the search for eigenvectors with random columns. See `penstock.factor.start`."""
    nothing = np.zeros((block.n, 0))
    return _grown(block, terms, nothing, nothing, draw_columns(seed, number, block.n, n_components) - 0.5)


def extend_columns(
    block: RowBlock, state: State, terms: Terms, operator: Operator, extension: Extension, image: FloatArray,
    border: FloatArray,
) -> tuple[State, Grown]:  # fmt: skip
    """Add columns V to the block's rows of the basis, and multiply M by them, given AᵀV and V of border rows."""
    Q, V = extension.apply(state["Q"], state["Y"])
    Y = operator.structure * _spread(block, V, border) if operator.structure else np.zeros_like(V)
    for rows, table in _chunks(block, terms):
        if table is not None:
            Y[rows] += table @ (operator.attributes * image)
    return _grown(block, terms, np.concatenate([Q, V], axis=1), V, Y)


def set_weights(
    block: RowBlock, state: State, terms: Terms, mixed: FloatArray, fill: float, seed: int, number: int
) -> tuple[State, BlockSums]:
    """Set W to the start that the basis has led to."""
    W = weights_of(state["Q"], mixed, fill, seed, number)
    return {"W": W}, _block_sums(block, terms, W)


def scale_columns(block: RowBlock, state: State, factors: FloatArray) -> tuple[State, None]:
    """Multiply the columns of W."""
    return {"W": state["W"] * factors}, None


def _grown(block: RowBlock, terms: Terms, Q: FloatArray, V: FloatArray, Y: FloatArray) -> tuple[State, Grown]:
    (q, v), y = (Q.shape[1], V.shape[1]), Y.shape[1]
    QV = np.zeros((q, v))
    QY = np.zeros((q, y))
    YY = np.zeros((y, y))
    image = np.zeros((terms.n_columns, y))
    for rows, table in _chunks(block, terms):
        QV += Q[rows].T @ V[rows]
        QY += Q[rows].T @ Y[rows]
        YY += Y[rows].T @ Y[rows]
        if table is not None:
            image += table.T @ Y[rows]
    return {"Q": Q, "Y": Y}, Grown(Products(QV, QY, YY), image, Y[block.offers])


def _stepped(state: State, step: float) -> FloatArray:
    """Return the rows after a part of the last sweep; W itself where there was none."""
    if "moved" not in state:
        return state["W"]
    if step == 1.0:
        return state["moved"]
    W = state["y"] + step * (state["moved"] - state["y"])
    W[W < NEGLIGIBLE] = 0.0
    return W


def _place(block: RowBlock, W: FloatArray) -> Place:
    G = np.zeros((W.shape[1], W.shape[1]))
    for first in range(0, block.n, CHUNK):
        rows = W[first : first + CHUNK]
        G += rows.T @ rows
    return Place(G, float(W.sum()), W[block.offers])


def _block_sums(block: RowBlock, terms: Terms, W: FloatArray) -> BlockSums:
    V = np.zeros((W.shape[1], terms.n_columns))
    for rows, table in _chunks(block, terms):
        if table is not None:
            V += W[rows].T @ table
    place, (agreement, roughness) = _place(block, W), _forms(block, terms, W, W)
    return BlockSums(place.G, place.total, place.offers, Sums(place.G, V, agreement[0], roughness[0]))


def _forms(block: RowBlock, terms: Terms, y: FloatArray, moved: FloatArray) -> tuple[Forms, Forms]:
    graph, nothing = (block.indptr, block.indices, block.data), (0.0, 0.0, 0.0)
    agreement = agreement_forms(y, moved, *graph) if terms.symmetric or not terms.alpha else nothing
    return agreement, roughness_forms(y, moved, *graph) if terms.laplacian else nothing


def _spread(block: RowBlock, W: FloatArray, border: FloatArray) -> FloatArray:
    """Compute SW for the block's rows."""
    everything = np.concatenate([W, border])
    S = sparse.csr_array((block.data, block.indices, block.indptr), shape=(block.n, len(everything)))
    return np.asarray(S @ everything)


def _attributes_onto(block: RowBlock, terms: Terms, H: FloatArray) -> FloatArray:
    """Return AHᵀ for the block's rows."""
    C = np.zeros((block.n, len(H)))
    for rows, table in _chunks(block, terms):
        if table is not None:
            np.matmul(table, H.T, out=C[rows])
    return C


def _chunks(block: RowBlock, terms: Terms) -> Iterator[tuple[slice, FloatArray | None]]:
    """Iterate over the block's rows, chunk by chunk, with those of the table if its weight is not 0."""
    if block.rows is not None and terms.alpha:
        for first, table in block.rows.chunks():
            yield slice(first, first + len(table)), table
        return
    for first in range(0, block.n, CHUNK):
        yield slice(first, min(first + CHUNK, block.n)), None
