"""New rows among fitted ones, for detectors that look at neighbours: no jump where a new row meets a fitted one."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from penstock._types import FloatArray, IndexArray
from penstock.graph.search import Search, search_over
from penstock.storage import Record


@dataclass(frozen=True)
class Company:
    """The k nearest fitted rows of new rows, seen in two ways.

    A new row that equals a fitted one *is* that row and must not have it for a neighbour (`without_twin`); one that is
    as far from it as its nearest neighbour, or farther, has (`with_twin`). `apart` runs from 0 to 1 between the two,
    and a score is mixed accordingly.
    """

    without_twin: IndexArray
    with_twin: IndexArray
    distances: FloatArray  # to the k + 1 nearest; infinite where fewer share a column with a row
    apart: FloatArray

    def mix(self, score_without: FloatArray, score_with: FloatArray) -> FloatArray:
        mixed: FloatArray = (1 - self.apart) * score_without + self.apart * score_with
        return np.where(self.apart == 0, score_without, mixed)


@dataclass(frozen=True)
class FittedRows:
    """Fitted rows ready to be searched, and each one's distance to its nearest neighbour that is not a copy."""

    tree: Search
    reach: FloatArray

    def company(self, Q: FloatArray, k: int) -> Company:
        near, distances = self.tree.nearest(Q, k + 1)
        apart = np.minimum(1.0, distances[:, 0] / self.reach[near[:, 0]])
        return Company(near[:, 1:], near[:, :-1], distances, apart)

    def pack(self) -> dict[str, Any]:
        return {"rows": self.tree.rows(), "reach": self.reach}


def keep_rows(tree: Search, distances: FloatArray) -> FittedRows:
    """`distances` are those to the nearest neighbours, as from `Search.neighbors`."""
    positive = np.where(distances > 0, distances, np.inf).min(axis=1)
    finite = positive[np.isfinite(positive)]
    usual = float(np.median(finite)) if len(finite) else 1.0
    return FittedRows(tree, np.where(np.isfinite(positive), positive, usual))


def unpack_rows(record: Record, n: int, p: int, *, missing: bool = False) -> FittedRows:
    """The rows of `FittedRows.pack` again, with holes if `missing`; the tree over them is grown anew."""
    record.only("rows", "reach")
    rows = record.array("rows", np.float64, (n, p), missing=missing)
    if np.isnan(rows).all(axis=1).any() or np.isnan(rows).all(axis=0).any():
        raise record.trouble("rows", "numbers, some of them in each row and each column")
    reach = record.array("reach", np.float64, (n,), least=0.0)
    if not (reach > 0).all():
        raise record.trouble("reach", "positive")
    return FittedRows(search_over(rows), reach)
