"""Work of one block of rows in coordinate descent by blocks. Each function is a `Work` (see blocks.py).

A block's state has its rows of the factor, ``W``; in the middle of a sweep also ``y``, where the sweep starts, and
``moved``, where it would go. Blocks report sums over their rows and the few rows that other blocks receive, nothing of
the size of a block.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from scipy import sparse

from penstock._types import FloatArray
from penstock.factor._kernels import agreement_forms, roughness_forms, sweep_rows
from penstock.factor.blocks import CHUNK, RowBlock, State
from penstock.factor.coordinate import NEGLIGIBLE, own_curvature, reach
from penstock.factor.multiplicative import scale_weights
from penstock.factor.terms import Sums, Terms, weight_parts, weight_residuals

Forms = tuple[float, float, float]  # of y with itself, of y with D, of D with itself, for a step D = moved − y


@dataclass(frozen=True, eq=False)
class Place:
    """Where a block's rows are, as far as the next sweep of other blocks depends on it."""

    G: FloatArray  # yᵀy
    total: float  # the sum of y
    offers: FloatArray  # the rows that other blocks receive


@dataclass(frozen=True, eq=False)
class Standing:
    """Where a block's rows are, and what the objective needs of them but for pairs across blocks."""

    place: Place
    sums: Sums


@dataclass(frozen=True, eq=False)
class Swept:
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
    """Report on the part `name` of the state as it is."""
    return state, _place(block, state[name])


def stand(block: RowBlock, state: State, terms: Terms) -> tuple[State, Standing]:
    """Report on W as it is, with the block's part of the objective."""
    return state, _standing(block, terms, state["W"])


def begin(block: RowBlock, state: State) -> tuple[State, Place]:
    """Let the next sweep start from W itself: the first one, or one that is done again without momentum."""
    return {"W": state["W"], "y": state["W"]}, _place(block, state["W"])


def advance(block: RowBlock, state: State, push: float, step: float) -> tuple[State, Place]:
    """Take the part `step` of the last sweep, and extrapolate from there to the start of the next."""
    W = _stepped(state, step)
    y = reach(W, state["W"], push) if push else W
    return {"W": W, "y": y}, _place(block, y)


def sweep(
    block: RowBlock, state: State, terms: Terms, H: FloatArray, G: FloatArray, mean: float, border: FloatArray
) -> tuple[State, Swept]:
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
            fit += float(np.vdot(linear[rows], D)) * 2 / terms.alpha
    moved = moved[:n]
    forms = _forms(block, terms, y, moved)
    report = Swept(residual, mixed, change, gram, V_before, V, fit, *forms, moved[block.offers])
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
            attributes += float(np.vdot(gap, gap))
    if not terms.symmetric:
        return state, (attributes, 0.0, 0.0, len(block.data))
    rows, columns, data = block.pairs()
    fitted = np.sum(W[rows] * W[columns], axis=1)
    on_graph = float(np.sum((data - fitted) ** 2))
    return state, (attributes, on_graph, float(np.vdot(fitted, fitted)), len(block.data))


def judge(
    block: RowBlock, state: State, terms: Terms, H: FloatArray, G: FloatArray, mean: float, border: FloatArray
) -> tuple[State, tuple[float, Sums]]:
    """Report the sum of the squared KKT residuals of W's rows, and the block's part of the objective."""
    W = state["W"]
    SW = _spread(block, W, border) if terms.symmetric or terms.laplacian else None
    C = _attributes_onto(block, terms, H) if terms.alpha else None
    parts = weight_parts(terms, W, G, H, block.degree, SW, C)
    residuals = weight_residuals(terms, W, H, np.diag(G), block.degree, mean, parts)
    return state, (float(residuals.sum()), _standing(block, terms, W).sums)


def draw(
    block: RowBlock, state: State, terms: Terms, n_components: int, seed: int, start: int, keep: bool, number: int
) -> tuple[State, Standing]:
    """Draw W for the block of this number: the same numbers on any machine. What W was may be kept as best.

    NumPy pads seeds with zeros, so that blocks count from 1: [seed, start] is that of H.
    """
    W = np.random.default_rng([seed, start, 1 + number]).random((block.n, n_components))
    kept = {"best": state["W"]} if keep else {name: state[name] for name in state if name == "best"}
    return {**kept, "W": W}, _standing(block, terms, W)


def choose_start(block: RowBlock, state: State, keep: bool) -> tuple[State, None]:
    """Go on with the best start: the present one if that is to be kept, else the one that was."""
    return {"W": state["W"] if keep or "best" not in state else state["best"]}, None


def rescale(block: RowBlock, state: State, terms: Terms, scale: float, floor: float) -> tuple[State, Standing]:
    """Multiply W by a number, with no entry below the floor."""
    W = np.maximum(scale * state["W"], floor)
    return {**state, "W": W}, _standing(block, terms, W)


def multiply(
    block: RowBlock, state: State, terms: Terms, H: FloatArray, G: FloatArray, exponent: float, border: FloatArray
) -> tuple[State, Standing]:
    """Update the block's rows once by multiplication."""
    W = state["W"].copy()
    SW = _spread(block, W, border) if terms.symmetric or terms.laplacian else None
    C = _attributes_onto(block, terms, terms.alpha * H) if terms.alpha else None
    scale_weights(terms, W, G, H, block.degree, SW, C, exponent)
    return {**state, "W": W}, _standing(block, terms, W)


def _stepped(state: State, step: float) -> FloatArray:
    """The rows after a part of the last sweep; W itself where there was none."""
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


def _standing(block: RowBlock, terms: Terms, W: FloatArray) -> Standing:
    V = np.zeros((W.shape[1], terms.n_columns))
    for rows, table in _chunks(block, terms):
        if table is not None:
            V += W[rows].T @ table
    place, (agreement, roughness) = _place(block, W), _forms(block, terms, W, W)
    return Standing(place, Sums(place.G, V, agreement[0], roughness[0]))


def _forms(block: RowBlock, terms: Terms, y: FloatArray, moved: FloatArray) -> tuple[Forms, Forms]:
    graph, nothing = (block.indptr, block.indices, block.data), (0.0, 0.0, 0.0)
    agreement = agreement_forms(y, moved, *graph) if terms.symmetric or not terms.alpha else nothing
    return agreement, roughness_forms(y, moved, *graph) if terms.laplacian else nothing


def _spread(block: RowBlock, W: FloatArray, border: FloatArray) -> FloatArray:
    """SW for the block's rows."""
    everything = np.concatenate([W, border])
    S = sparse.csr_array((block.data, block.indices, block.indptr), shape=(block.n, len(everything)))
    return np.asarray(S @ everything)


def _attributes_onto(block: RowBlock, terms: Terms, H: FloatArray) -> FloatArray:
    """AHᵀ for the block's rows."""
    C = np.zeros((block.n, len(H)))
    for rows, table in _chunks(block, terms):
        if table is not None:
            np.matmul(table, H.T, out=C[rows])
    return C


def _chunks(block: RowBlock, terms: Terms) -> Iterator[tuple[slice, FloatArray | None]]:
    """The block's rows, chunk by chunk, with those of the table if its weight is not 0."""
    if block.rows is not None and terms.alpha:
        for first, table in block.rows.chunks():
            yield slice(first, first + len(table)), table
        return
    for first in range(0, block.n, CHUNK):
        yield slice(first, min(first + CHUNK, block.n)), None
