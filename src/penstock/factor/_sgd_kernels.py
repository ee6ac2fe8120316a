"""Compiled loops of block SGD: contiguous float64 and int64 arrays and scalars in, nothing checked."""

from __future__ import annotations

import numpy as np

from penstock._jit import kernel
from penstock._types import FloatArray, IndexArray


@kernel
def finish_round(
    pieces: IndexArray,
    partners: IndexArray,
    columns: IndexArray,
    piece_grams: FloatArray,
    piece_slopes: FloatArray,
    grams: FloatArray,
    H: FloatArray,
    step: float,
    alpha: float,
    ridge: float,
) -> None:
    """Add up what the pieces of a round left behind: the blocks' Gram matrices, and a clipped step on H (as p×K)."""
    K = H.shape[1]
    grams[:, :, :] = 0.0
    slopes = np.zeros((grams.shape[0], piece_slopes.shape[1], K))
    for piece in range(pieces.shape[0]):
        block = pieces[piece, 0]
        grams[block] += piece_grams[piece]
        slopes[block] += piece_slopes[piece]
    for block in range(partners.shape[0]):
        if block > partners[block]:
            continue  # its partner has moved their columns
        for c in range(columns[block, 1], columns[block, 2]):
            row = c - columns[block, 1]
            for k in range(K):
                gradient = alpha * (slopes[block, row, k] + slopes[partners[block], row, k]) + ridge * H[c, k]
                H[c, k] = max(H[c, k] - step * gradient, 0.0)


@kernel
def step_pieces(
    W: FloatArray,
    H: FloatArray,
    A: FloatArray,
    moved: FloatArray,
    pieces: IndexArray,
    partners: IndexArray,
    columns: IndexArray,
    weights: FloatArray,
    grams: FloatArray,
    entries: IndexArray,
    indices: IndexArray,
    data: FloatArray,
    start: int,
    stop: int,
    piece_grams: FloatArray,
    piece_slopes: FloatArray,
) -> None:
    """A gradient step, clipped at 0, on the rows of pieces start..stop of one round of block SGD.

    `pieces` has (block, first row, last row); for each block, `partners` names the other block of its instance set,
    `columns` its block of columns and the first and last of these, and `weights` the step and the factors of
    structure, attributes and ridge. Reads A (cut into blocks of columns), W, H (as p×K) and the blocks' Gram matrices;
    writes the new rows to `moved`, their Gram matrix to `piece_grams` and −(A−WH)ᵀW, their part of the gradient of H,
    to `piece_slopes`. Row i's entries of S in block b lie from entries[b, i] to entries[b+1, i].
    """
    for piece in range(start, stop):
        block = pieces[piece, 0]
        partner = partners[block]
        piece_grams[piece] = 0.0
        piece_slopes[piece] = 0.0
        step_rows(
            W, pieces[piece, 1], pieces[piece, 2], A[columns[block, 0]], H[columns[block, 1] : columns[block, 2]],
            weights[block], grams[partner], entries[partner], entries[partner + 1], indices, data, W, 0, moved,
            piece_grams[piece], piece_slopes[piece],
        )  # fmt: skip


@kernel
def step_rows(
    W: FloatArray,
    start: int,
    stop: int,
    A: FloatArray,
    H: FloatArray,
    weights: FloatArray,
    G: FloatArray,
    first: IndexArray,
    last: IndexArray,
    indices: IndexArray,
    data: FloatArray,
    partners: FloatArray,
    shift: int,
    moved: FloatArray,
    gram: FloatArray,
    slope: FloatArray,
) -> None:
    """The step on rows start..stop; adds their new Gram matrix to `gram`, their part of the gradient of H to `slope`.

    A and H (as p×K) have the columns of the instance set only. Row i's similarities to the partner's rows lie from
    first[i] to last[i]; S's column j is row j − shift of `partners`.
    """
    K = W.shape[1]
    change = np.empty(K)
    step, structure, attribute, ridge = weights[0], weights[1], weights[2], weights[3]
    for i in range(start, stop):
        for k in range(K):
            change[k] = ridge * W[i, k]
        for k in range(K):
            for m in range(K):
                change[k] += structure * W[i, m] * G[m, k]
        for e in range(first[i], last[i]):
            for k in range(K):
                change[k] -= structure * data[e] * partners[indices[e] - shift, k]
        for c in range(H.shape[0]):
            residual = A[i, c]
            for k in range(K):
                residual -= W[i, k] * H[c, k]
            for k in range(K):
                change[k] -= attribute * residual * H[c, k]
                slope[c, k] -= residual * W[i, k]
        for k in range(K):
            moved[i, k] = max(W[i, k] - step * change[k], 0.0)
        for k in range(K):
            for m in range(K):
                gram[k, m] += moved[i, k] * moved[i, m]


@kernel
def find_entries(
    indptr: IndexArray, indices: IndexArray, low: int, high: int, first: IndexArray, last: IndexArray
) -> None:
    """Where in each row of S the columns low..high are: a run, as columns are in the order of the blocks."""
    for i in range(indptr.shape[0] - 1):
        first[i] = indptr[i]
        while first[i] < indptr[i + 1] and not low <= indices[first[i]] < high:
            first[i] += 1
        last[i] = first[i]
        while last[i] < indptr[i + 1] and low <= indices[last[i]] < high:
            last[i] += 1
