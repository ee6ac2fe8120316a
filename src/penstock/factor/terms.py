"""What an objective weighs, without its data: enough for whoever sees only sums over the rows."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, fields
from typing import Protocol

import numpy as np

from penstock._types import FloatArray

# Below this share of ‖A‖² or ‖S‖² the expanded squares have lost three digits: sum the squares themselves instead.
CANCELS = 1e-3


class Weighed(Protocol):
    """The numbers of an objective. See `Objective` for what they mean."""

    @property
    def symmetric(self) -> float: ...
    @property
    def alpha(self) -> float: ...
    @property
    def laplacian(self) -> float: ...
    @property
    def gamma(self) -> float: ...
    @property
    def row_bound(self) -> float: ...
    @property
    def norm_A(self) -> float: ...
    @property
    def norm_S(self) -> float: ...
    @property
    def n_rows(self) -> int: ...
    @property
    def n_columns(self) -> int: ...


@dataclass(frozen=True)
class Terms:
    """The numbers of an objective alone, so that they can be sent where its table and its graph do not fit.

    >>> from penstock.factor import nmf
    >>> Terms.of(nmf(np.ones((3, 2)))).norm_A
    6.0
    """

    n_rows: int
    n_columns: int
    symmetric: float = 0.0
    alpha: float = 0.0
    laplacian: float = 0.0
    gamma: float = 0.0
    row_bound: float = math.inf
    norm_A: float = 0.0  # ‖A‖²  # noqa: N815
    norm_S: float = 0.0  # ‖S‖²  # noqa: N815

    @classmethod
    def of(cls, objective: Weighed) -> Terms:
        return cls(**{field.name: getattr(objective, field.name) for field in fields(cls)})


def has_risen(terms: Weighed, value: float, before: float) -> bool:
    """Whether f has grown by more than rounding can account for.

    Far from a fit that is a share of the norms, whose expanded squares f is made of; near one, where residuals are
    summed instead, a share of f itself. Whoever asks only does a sweep again, so that a false alarm costs little.

    >>> terms = Terms(3, 2, alpha=1.0, norm_A=6.0)
    >>> has_risen(terms, 1.0 + 1e-15, 1.0), has_risen(terms, 2e-20, 1e-20)
    (False, True)
    """
    structure = terms.symmetric * terms.norm_S if terms.symmetric else 0.0  # the norm may be infinite
    return value > before + min(1e-15 * (structure + terms.alpha * terms.norm_A), 1e-9 * before)


@dataclass(frozen=True, eq=False)
class Sums:
    """All that f(W,H) needs to know of W: G = WᵀW, V = WᵀA, ⟨W, SW⟩ and tr(WᵀLW)."""

    G: FloatArray
    V: FloatArray
    agreement: float
    roughness: float


@dataclass(frozen=True)
class Gaps:
    """Sums of squared residuals: of the table, of the similarities in S, and of WWᵀ where S has no entry."""

    attributes: float
    on_graph: float
    off_graph: float


def value_of(terms: Weighed, H: FloatArray, sums: Sums, gaps: Callable[[], Gaps]) -> float:
    """f(W,H) from sums over the rows. Ahmed et al. (2021), eq:main.

    Where a term is nearly fitted and its expanded square would cancel, `gaps` is asked for the residuals themselves.

    >>> sums = Sums(np.array([[3.0]]), np.array([[3.0, 3.0]]), 0.0, 0.0)
    >>> value_of(Terms(3, 2, alpha=1.0, norm_A=24.0), np.ones((1, 2)), sums, lambda: Gaps(0.0, 0.0, 0.0))
    18.0
    """
    total = terms.gamma * (float(np.trace(sums.G)) + float(np.vdot(H, H))) + terms.laplacian * sums.roughness
    gram = float(np.vdot(sums.G, sums.G))
    structure = terms.norm_S - 2 * sums.agreement + gram if terms.symmetric else 0.0
    attributes = expanded_loss(terms, H, sums.G, sums.V) if terms.alpha else 0.0
    structure_fits = terms.symmetric > 0 and cancels(structure, terms.norm_S)
    table_fits = terms.alpha > 0 and cancels(attributes, terms.norm_A)
    if structure_fits or table_fits:
        near = gaps()
        structure = near.on_graph + near.off_graph if structure_fits else structure
        attributes = near.attributes if table_fits else attributes
    return total + terms.symmetric * structure + terms.alpha * attributes


def cancels(loss: float, norm: float) -> bool:
    """Whether an expanded square has lost too many digits to be used. NaN has not: it is passed on."""
    return loss <= CANCELS * norm


def expanded_loss(terms: Weighed, H: FloatArray, G: FloatArray, V: FloatArray) -> float:
    """‖A−WH‖² as a sum of three terms, quick where they do not cancel."""
    return terms.norm_A - 2 * float(np.vdot(V, H)) + float(np.vdot(G, H @ H.T))
