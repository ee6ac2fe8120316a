"""The scores of the rows that were fitted, block by block."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from scipy import sparse

from penstock._types import Factors, FloatArray
from penstock.factor.blocks import Crew, RowBlock, State, Wiring
from penstock.factor.objectives import nmf
from penstock.factor.placement import settle_rows
from penstock.graph.similarities import neighbor_mean
from penstock.scoring import residual_scores


@dataclass(frozen=True)
class Scoring:
    """How: a row against its own weights, against its neighbours', or (`settle`) against the best there are for H.

    The last is for rows that are independent of each other: then a new row that equals one of them has its weights.
    """

    H: FloatArray
    structural: bool
    settle: bool


def score_training_rows(crew: Crew, wiring: Wiring, scoring: Scoring) -> list[FloatArray]:
    """The scores of every block's rows; afterwards the crew holds nothing but W."""
    borders = wiring.borders(crew.each(offer_weights))
    return crew.each(score_block, scoring, apart=[(border,) for border in borders])


def offer_weights(block: RowBlock, state: State) -> tuple[State, FloatArray]:
    """The weights of the rows that other blocks have to know."""
    return state, state["W"][block.offers]


def score_block(block: RowBlock, state: State, scoring: Scoring, border: FloatArray) -> tuple[State, FloatArray]:
    W, scores = state["W"], np.empty(block.n)
    if scoring.settle:
        W = np.concatenate([_settled(rows, scoring.H) for _, rows in _chunks(block)])
    used = neighbor_mean(np.concatenate([W, border]), _with_border(block, len(border))) if scoring.structural else W
    for start, rows in _chunks(block):
        scores[start : start + len(rows)] = residual_scores(rows, used[start : start + len(rows)], scoring.H)
    return {"W": W}, scores


def _chunks(block: RowBlock) -> Iterator[tuple[int, FloatArray]]:
    assert block.rows is not None
    return block.rows.chunks()


def _settled(rows: FloatArray, H: FloatArray) -> FloatArray:
    return settle_rows(nmf(rows), Factors(np.zeros((1, len(H))), H), rows)


def _with_border(block: RowBlock, n_border: int) -> sparse.csr_array:
    """The block's share of S with empty rows for the border."""
    n = block.n + n_border
    indptr = np.concatenate([block.indptr, np.full(n_border, block.indptr[-1])])
    return sparse.csr_array((block.data, block.indices, indptr), shape=(n, n))
