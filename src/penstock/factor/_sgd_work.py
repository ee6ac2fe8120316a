"""What one block does in block SGD: functions of a block and its state W that a crew can send anywhere.

None of them changes what it is given. Sums go over fixed pieces and chunks in their order, so that neither threads nor
machines change a bit.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from penstock._blas import one_blas_thread
from penstock._types import FloatArray, IndexArray
from penstock.factor._sgd_kernels import find_entries, fit_within, gram_of_rows, step_rows
from penstock.factor.blocks import RowBlock, State

PIECE = 1600  # rows per piece of work, about 0.2 ms; fixed, because the order of sums depends on it


class Outset(NamedTuple):
    """How a block stands before the first round."""

    gram: FloatArray
    offered: FloatArray
    sizes: FloatArray  # its part of ‖A‖², of ‖S‖² and of the number of similarities
    max_degree: float


class Meeting(NamedTuple):
    """What a block is told of its instance set {i,j,k}."""

    weights: FloatArray  # the step, and the factors of structure, attributes and ridge
    gram: FloatArray  # the partner's WᵀW
    partners: FloatArray | None  # the partner's rows that it is similar to; None: it is its own partner
    first_border: int  # which of the block's border rows is the first of them
    H: FloatArray  # the profiles' columns k, as p×K
    columns: tuple[int, int]


class Moved(NamedTuple):
    """What a block reports of its step."""

    gram: FloatArray
    slope: FloatArray  # −(A−WH)ᵀW over the columns of its instance set
    offered: FloatArray


class Fit(NamedTuple):
    """A block's part of the objective: V = WᵀA, and over S within it the sums that `fit_within` names."""

    V: FloatArray
    similarities: FloatArray


def draw_weights(block: RowBlock, state: State, seed: int, n_components: int, number: int) -> tuple[State, None]:
    """ALAD's start of W, 0.1·U(0,1), from a stream of the block's own."""
    return {**state, "W": start_weights(seed, number, block.n, n_components)}, None


def start_weights(seed: int, number: int, n: int, n_components: int) -> FloatArray:
    """The start of block `number`: 1 + number, because NumPy takes [seed, 0, 0] for [seed, 0], the stream of H."""
    return 0.1 * np.random.default_rng([seed, 0, 1 + number]).random((n, n_components))


def start_profiles(seed: int, n_components: int, n_columns: int) -> FloatArray:
    """The start of H."""
    return 0.1 * np.random.default_rng([seed, 0]).random((n_components, n_columns))


def stand(block: RowBlock, state: State) -> tuple[State, Outset]:
    """What a run needs to know before it begins, or goes on."""
    W = state["W"]
    gram = np.zeros((W.shape[1], W.shape[1]))
    for _, start, stop in _pieces(block.n):
        part = np.zeros_like(gram)
        gram_of_rows(W, start, stop, part)
        gram += part
    sizes = np.array([0.0, 0.0, len(block.data)])
    with one_blas_thread():
        for _, chunk in () if block.rows is None else block.rows.chunks():
            sizes[0] += np.vdot(chunk, chunk)
        sizes[1] = np.vdot(block.data, block.data)
    return state, Outset(gram, W[block.offers], sizes, float(block.degree.max(initial=0.0)))


def step_block(block: RowBlock, state: State, meeting: Meeting) -> tuple[State, Moved]:
    """Ahmed et al. (2021), eq:update, for the rows of one block: W ← max(0, W − ε∇L_ijk)."""
    W = state["W"]
    K = W.shape[1]
    partners, low = (W, 0) if meeting.partners is None else (meeting.partners, block.n + meeting.first_border)
    first, last = np.empty(block.n, np.int64), np.empty(block.n, np.int64)
    find_entries(block.indptr, block.indices, low, low + len(partners), first, last)
    A = _columns_of(block, *meeting.columns)
    H = np.ascontiguousarray(meeting.H)
    moved, gram, slope = np.empty_like(W), np.zeros((K, K)), np.zeros_like(H)
    for _, start, stop in _pieces(block.n):
        part, part_slope = np.zeros_like(gram), np.zeros_like(slope)
        step_rows(
            W, start, stop, A, H, meeting.weights, meeting.gram, first, last, block.indices, block.data,
            partners, low, moved, part, part_slope,
        )  # fmt: skip
        gram += part
        slope += part_slope
    return {**state, "W": moved}, Moved(gram, slope, moved[block.offers])


def measure_fit(block: RowBlock, state: State, n_columns: int) -> tuple[State, Fit]:
    """A block's part of the objective."""
    W = state["W"]
    V, sums = np.zeros((W.shape[1], n_columns)), np.zeros(3)
    fit_within(W, block.indptr, block.indices, block.data, sums)
    if n_columns and block.rows is not None:
        with one_blas_thread():
            for start, chunk in block.rows.chunks():
                V += W[start : start + len(chunk)].T @ chunk
    return state, Fit(V, sums)


def measure_residual(block: RowBlock, state: State, H: FloatArray) -> tuple[State, float]:
    """A block's part of ‖A−WH‖², square by square: for where A is nearly fitted and V would cancel."""
    total = 0.0
    if block.rows is not None:
        with one_blas_thread():
            for start, chunk in block.rows.chunks():
                residual = chunk - state["W"][start : start + len(chunk)] @ H
                total += float(np.vdot(residual, residual))
    return state, total


def cut_pieces(bounds: IndexArray) -> IndexArray:
    """The blocks' rows in pieces, (block, first row, last row): fixed, so that threads do not change a bit.

    >>> cut_pieces(np.array([0, 3, 2000])).tolist()
    [[0, 0, 3], [1, 3, 1603], [1, 1603, 2000]]
    """
    pieces = [
        (block, a, min(a + PIECE, bounds[block + 1]))
        for block in range(len(bounds) - 1)
        for a in range(bounds[block], bounds[block + 1], PIECE)
    ]
    return np.array(pieces, dtype=np.int64)


def _pieces(n: int) -> IndexArray:
    return cut_pieces(np.array([0, n], dtype=np.int64))


def _columns_of(block: RowBlock, first: int, last: int) -> FloatArray:
    """Some columns of the block's table, read anew each time: the table may be in a file, and larger than memory."""
    values = np.empty((block.n, last - first))
    if last > first and block.rows is not None:
        for start, chunk in block.rows.chunks():
            values[start : start + len(chunk)] = chunk[:, first:last]
    return values
