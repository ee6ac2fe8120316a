"""Where descents begin: random factors on the scale of the problem, or eigenvectors.

From eigenvectors, W = |X|·√Θ of the K leading eigenpairs of M = σS + αAAᵀ/(2‖A‖), and H the best for it. The
eigenpairs are found by block Lanczos with restarts. A pass multiplies M by at most K columns; the rest is algebra of
small matrices, whose entries are sums over rows. So the columns may be in memory (`TableColumns`) or with blocks of
rows, on threads or on a cluster (`penstock.factor.row_blocks.BlockColumns`).
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from numbers import Integral
from typing import Any, Protocol

import numpy as np
from sklearn.utils import check_random_state

from penstock._threads import dot
from penstock._types import Factors, FloatArray
from penstock.factor.descent import check_finite, update_profiles
from penstock.factor.objectives import Objective, fill_with_means
from penstock.factor.terms import Terms, shorten_rows

_TOLERANCE = 0.03  # of the largest eigenvalue: what a residual ‖Mx − θx‖ may be; less changes little (decision 20)
_MOST_PASSES = 30
_BASIS = 5  # times K, at least _SMALL_BASIS: columns before a restart
_SMALL_BASIS = 20
_KEPT = 2  # times K: columns that a restart keeps
_DEPENDENT = 1e-12  # of the squared length: a column that has no more than this outside the others is one of them
_PROFILE_PASSES = 10
_FILL = 0.1  # of the mean weight: entries of a group for which there is no eigenvector


def draws_from(random_state: Any) -> Any:
    """Make a source of random numbers from a seed, a `RandomState`, a `Generator` or None."""
    return random_state if isinstance(random_state, np.random.Generator) else check_random_state(random_state)


def check_random_source(name: str, value: object) -> None:
    """Raise unless a value is what `draws_from` takes; a bound as in `penstock._parameters`."""
    if value is not None and not (isinstance(value, Integral) and 0 <= int(value) < 2**32):  # to seed takes its time
        draws_from(value)


def draw_seed(rng: Any) -> int:
    """Draw 63 random bits, from which blocks draw their starts on any machine."""
    return int.from_bytes(rng.bytes(8), "little") >> 1


def random_start(objective: Objective, n_components: int, rng: Any) -> Factors:
    """Draw uniform random W and H, each times the number that suits the objective best: where `Multiplicative` begins.

    Along (tW, uH) the objective is a polynomial in t and u whose five coefficients cost one pass over the data; t is
    its best power of √2 and u the best multiple for that t. So the start follows the data whatever its units: entries
    of A near 1e-6 and similarities of 1e4 alike. A term that only ever shrinks W (a Laplacian) does not set a scale:
    there t = u, or, where rows of H are bounded, H is as long as allowed and W fits it.

    Parameters
    ----------
    objective : Objective
        What is to be minimised.
    n_components : int
        Number of latent groups K.
    rng : int, RandomState, Generator or None
        Source of random numbers.

    Returns
    -------
    Factors
        W of shape (n, K) and H of shape (K, p).

    Examples
    --------
    >>> import numpy as np
    >>> from penstock.factor import nmf
    >>> start = random_start(nmf(np.full((4, 3), 1e-6)), 2, 0)
    >>> start.W.shape, start.H.shape, bool(np.abs(start.W @ start.H - 1e-6).max() < 1e-6)
    ((4, 2), (2, 3), True)
    """
    rng = draws_from(rng)
    W = rng.random((objective.n_rows, n_components))
    H = rng.random((n_components, objective.n_columns))
    G = W.T @ W
    fit, energy = objective.fit_and_energy(W, H, G)
    t, u = _best_scales(objective.terms, G, H, fit, energy, dot(W, objective.structure.spread(W)))
    return Factors(t * W, shorten_rows(u * H, objective.row_bound))


def _best_scales(
    terms: Terms, G: FloatArray, H: FloatArray, fit: float, energy: float, agreement: float
) -> tuple[float, float]:
    """Find the t and u of the best (tW, uH), given G = WᵀW, ⟨A, WH⟩, ‖WH‖² and ⟨W, SW⟩."""
    t = _weight_scale(terms, G, H, fit, energy, agreement)
    if not (terms.alpha and energy > 0):
        return t, 1.0
    u = terms.alpha * t * fit / (terms.alpha * t * t * energy + terms.gamma * dot(H, H))
    return t, u or 1.0  # 1 where A holds nothing to fit


def _weight_scale(terms: Terms, G: FloatArray, H: FloatArray, fit: float, energy: float, agreement: float) -> float:
    """Find the t that minimises f(tW, uH) with u at its best."""
    norm_W, norm_H, quartic = float(np.trace(G)), dot(H, H), dot(G, G)
    balanced = math.sqrt(max(fit, 0.0) / energy) if energy > 0 and fit > 0 else 1.0
    structured = math.sqrt(agreement / quartic) if agreement > 0 else balanced
    if not terms.alpha:
        return structured
    if not terms.symmetric and math.isfinite(terms.row_bound):
        return balanced**2 * math.sqrt(norm_H / len(H)) / terms.row_bound
    if not terms.symmetric:
        return balanced
    centre = math.sqrt(balanced * structured)
    scales = centre * 2.0 ** np.arange(-20, 20.5, 0.5)
    squares = scales**2
    fitted = terms.alpha * squares * fit**2 * terms.alpha
    fitted /= terms.alpha * squares * energy + terms.gamma * norm_H
    values = terms.symmetric * (squares**2 * quartic - 2 * squares * agreement)
    values += terms.gamma * squares * norm_W - fitted
    return float(scales[np.argmin(values)])


@dataclass(frozen=True, eq=False)
class Extension:
    """Columns V = (Y − Q·taken)·mixed are to be added to the basis Q, which becomes Q·turned first if that is given."""

    taken: FloatArray
    mixed: FloatArray
    turned: FloatArray | None

    def apply(self, Q: FloatArray, Y: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return the basis and V, of rows of Q and Y, or of sums over them."""
        V = (Y - Q @ self.taken) @ self.mixed
        return Q if self.turned is None else Q @ self.turned, V


@dataclass(frozen=True, eq=False)
class Products:
    """Sums over rows after a pass: of the basis Q with V = Q's last columns, with Y = MV, and of Y with itself."""

    QV: FloatArray
    QY: FloatArray
    YY: FloatArray


class BasisColumns(Protocol):
    """Columns of n rows each: a basis Q, and Y, from which its next ones are made."""

    def draw(self) -> FloatArray:
        """Begin with an empty Q and K random columns Y; return YᵀY."""

    def extend(self, extension: Extension) -> Products:
        """Add columns V to Q, and set Y to MV."""

    def set_weights(self, mixed: FloatArray, fill: float) -> tuple[FloatArray, FloatArray]:
        """Set W to |Q·mixed|, further columns to random entries up to `fill`; return WᵀW and WᵀA."""

    def scale_weights(self, factors: FloatArray) -> None:
        """Multiply the columns of W."""


@dataclass(frozen=True)
class Operator:
    """M/‖M‖: the weights of S and of AAᵀ in it. ‖M‖ is a bound, so that no eigenvalue is larger than 1."""

    structure: float
    attributes: float
    norm: float

    @classmethod
    def of(cls, terms: Terms) -> Operator:
        size_S = terms.symmetric * math.sqrt(terms.norm_S) if terms.symmetric else 0.0
        size_A = terms.alpha / 2 * math.sqrt(terms.norm_A)
        norm = check_finite(size_S + size_A)
        if norm == 0.0:
            return cls(0.0, 0.0, 0.0)
        attributes = terms.alpha / 2 / math.sqrt(terms.norm_A) / norm if size_A else 0.0
        return cls(terms.symmetric / norm, attributes, norm)


def find_start(columns: BasisColumns, terms: Terms, n_components: int) -> FloatArray:
    """Leave in `columns` the W of a start; return its H.

    There is no better H for that W, but that rows longer than the bound are shortened and their weights grow instead.
    """
    norm = Operator.of(terms).norm
    values, mixed = find_leading(columns, min(n_components, terms.n_rows))
    used = values > _DEPENDENT * max(float(values.max(initial=0.0)), _DEPENDENT)
    values = values[used] * norm
    fill = _FILL * math.sqrt(values[0] / terms.n_rows) if len(values) else 1.0
    mixed = mixed[:, used] * np.sqrt(values)
    mixed = np.pad(mixed, ((0, 0), (0, n_components - mixed.shape[1])))  # 0 for groups that have no eigenvector
    G, V = columns.set_weights(mixed, fill)
    H = np.zeros((n_components, terms.n_columns))
    if terms.alpha:
        free = replace(terms, row_bound=math.inf)
        for _ in range(_PROFILE_PASSES):
            update_profiles(free, H, G, V)
        if math.isfinite(terms.row_bound):
            lengths = np.sqrt(np.einsum("kj,kj->k", H, H))
            factors = np.where(lengths > 0, lengths / terms.row_bound, 1.0)
            columns.scale_weights(factors)
            H /= factors[:, None]
    return H


def find_leading(columns: BasisColumns, n_vectors: int, tol: float = _TOLERANCE) -> tuple[FloatArray, FloatArray]:
    """Find the largest eigenvalues of M/‖M‖ and how the basis is mixed to their vectors, the largest first.

    Fewer than asked for if Krylov's space has no more. With a full basis Q becomes the best 2K vectors in it, and goes
    on with the residual, as Lanczos does with restarts (Wu and Simon 2000). Columns of Q are nearly orthonormal; what
    they are not is part of the small eigenvalue problem, so that no column is made orthogonal twice.
    """
    YY = columns.draw()
    most = basis_size(n_vectors)
    G, T, QY = np.zeros((0, 0)), np.zeros((0, 0)), np.zeros((0, len(YY)))
    values, vectors = np.zeros(0), np.zeros((0, 0))
    for passes in range(_MOST_PASSES + 1):
        check_finite(float(YY.sum()) + float(QY.sum()))
        taken: FloatArray = np.linalg.solve(G, QY).astype(np.float64, copy=False)
        sizes, directions = np.linalg.eigh(_symmetric(YY - QY.T @ taken))
        new = sizes > _DEPENDENT * np.trace(YY)
        root = np.sqrt(sizes[new])
        if passes:
            values, vectors = _ritz(G, T)
            last = vectors[len(G) - len(YY) :, :n_vectors]
            residuals = np.sqrt(np.sum((root[:, None] * (directions[:, new].T @ last)) ** 2, axis=0))
            if len(residuals) == n_vectors and (residuals <= tol * values[0]).all():
                break
        if passes == _MOST_PASSES or not new.any():
            break
        turned = None
        if len(G) + len(root) > most:
            turned = vectors[:, : _KEPT * n_vectors]
            G, T = turned.T @ G @ turned, turned.T @ T @ turned
        grown = columns.extend(Extension(taken, directions[:, new] / root, turned))
        before, QY, YY = len(G), grown.QY, grown.YY
        G = _bordered(G, grown.QV[:before], grown.QV[before:])
        T = _bordered(T, QY[:before], QY[before:])
    return values[:n_vectors], vectors[:, :n_vectors]


def basis_size(n_vectors: int) -> int:
    """Return the most columns that the basis has at a time."""
    return max(_BASIS * n_vectors, _SMALL_BASIS)


def _ritz(G: FloatArray, T: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Solve Tx = θGx where G is not singular; the largest θ first, xᵀGx = 1."""
    sizes, directions = np.linalg.eigh(G)
    held = sizes > _DEPENDENT * sizes[-1]
    whitened = directions[:, held] / np.sqrt(sizes[held])
    values, vectors = np.linalg.eigh(_symmetric(whitened.T @ T @ whitened))
    return values[::-1], (whitened @ vectors)[:, ::-1]


def _bordered(whole: FloatArray, side: FloatArray, corner: FloatArray) -> FloatArray:
    return np.block([[whole, side], [side.T, _symmetric(corner)]])


def _symmetric(square: FloatArray) -> FloatArray:
    return (square + square.T) / 2


def draw_columns(seed: int, number: int, n: int, n_components: int) -> FloatArray:
    """Draw the random columns of the block of this number, U(0, 1), the same on any machine."""
    return np.random.default_rng([seed, 1 + number]).random((n, n_components))


def weights_of(Q: FloatArray, mixed: FloatArray, fill: float, seed: int, number: int) -> FloatArray:
    """Return |Q·mixed|, and random entries up to `fill` in its columns of zeros."""
    W = np.abs(Q @ mixed)
    empty = ~mixed.any(axis=0)
    if empty.any():
        W[:, empty] = fill * draw_columns(seed, number, len(Q), mixed.shape[1])[:, empty]
    return W


class TableColumns:
    """Columns in memory. Missing entries of the table count as the means of their columns."""

    def __init__(self, objective: Objective, n_components: int, seed: int) -> None:
        self._objective, self._seed, self._K = objective, seed, n_components
        self._operator = Operator.of(objective.terms)
        self._table = None if objective.A is None or not objective.alpha else fill_with_means(objective.A)
        self._room = np.empty((objective.n_rows, basis_size(n_components)), order="F")  # Q is its first columns
        self._Q, self._Y, self.W = self._room[:, :0], self._room[:, :0], self._room[:, :0]

    def draw(self) -> FloatArray:
        self._Y = draw_columns(self._seed, 0, self._objective.n_rows, self._K) - 0.5
        return self._Y.T @ self._Y

    def extend(self, extension: Extension) -> Products:
        Q, V = extension.apply(self._Q, self._Y)
        before, after = Q.shape[1], Q.shape[1] + V.shape[1]
        if extension.turned is not None:
            self._room[:, :before] = Q
        self._room[:, before:after] = V
        self._Q, self._Y = self._room[:, :after], np.zeros_like(V)
        if self._operator.structure:
            full = np.pad(V, ((0, 0), (0, self._K - V.shape[1])))  # sums along a tree have room for K columns
            self._Y += self._operator.structure * self._objective.structure.spread(full)[:, : V.shape[1]]
        if self._table is not None:
            self._Y += self._table @ (self._operator.attributes * (V.T @ self._table)).T
        return Products(self._Q.T @ V, self._Q.T @ self._Y, self._Y.T @ self._Y)

    def set_weights(self, mixed: FloatArray, fill: float) -> tuple[FloatArray, FloatArray]:
        self.W = W = weights_of(self._Q, mixed, fill, self._seed, 0)
        return W.T @ W, np.zeros((self._K, 0)) if self._table is None else W.T @ self._table

    def scale_weights(self, factors: FloatArray) -> None:
        self.W = self.W * factors


def spectral_start(objective: Objective, n_components: int, seed: int) -> Factors:
    """Find the start of a descent in memory.

    Parameters
    ----------
    objective : Objective
        What is to be minimised.
    n_components : int
        Number of latent groups K.
    seed : int
        Of the random columns that the search for eigenvectors begins with. They hardly matter.

    Returns
    -------
    Factors
        W of shape (n, K) and H of shape (K, p).

    Examples
    --------
    >>> import numpy as np
    >>> from penstock.factor import nmf
    >>> A = np.outer([1.0, 2.0, 3.0], [1.0, 1.0])
    >>> start = spectral_start(nmf(A), 1, 0)
    >>> bool(np.abs(A - start.W @ start.H).max() < 1e-9)
    True
    """
    columns = TableColumns(objective, n_components, seed)
    H = find_start(columns, objective.terms, n_components)
    return Factors(columns.W, H)
