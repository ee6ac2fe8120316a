"""Nearest fitted rows of new rows, for detectors that look at neighbours, without a jump at a fitted row."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from penstock._types import FloatArray, IndexArray
from penstock.detectors._packing import check_some_seen
from penstock.graph.search import RowSearch
from penstock.storage import Record, read_fields


@dataclass(frozen=True)
class NeighborBlend:
    """The k nearest fitted rows of new rows, seen in two ways.

    A new row that equals a fitted one *is* that row and must not have it for a neighbour (`without_twin`); one that is
    at least as far from it as its nearest neighbour has it for a neighbour (`with_twin`). `apart` runs from 0 to 1
    between the two, and a score is blended accordingly.
    """

    without_twin: IndexArray
    with_twin: IndexArray
    distances: FloatArray  # to the k + 1 nearest; infinite where fewer share a column with a row
    apart: FloatArray

    def blend(self, score_without: FloatArray, score_with: FloatArray) -> FloatArray:
        """Return the blended scores."""
        blended: FloatArray = (1 - self.apart) * score_without + self.apart * score_with
        return np.where(self.apart == 0, score_without, blended)


@dataclass(frozen=True)
class FittedRows:
    """Fitted rows ready to be searched, and each one's distance to its nearest neighbour that is not a copy."""

    search: RowSearch
    reach: FloatArray

    @classmethod
    def of(cls, search: RowSearch, distances: FloatArray) -> FittedRows:
        """Take over rows, given the distances to their nearest neighbours as from `RowSearch.neighbors`."""
        positive = np.where(distances > 0, distances, np.inf).min(axis=1)
        finite = positive[np.isfinite(positive)]
        usual = float(np.median(finite)) if len(finite) else 1.0
        return cls(search, np.where(np.isfinite(positive), positive, usual))

    def neighbors(self, Q: FloatArray, k: int) -> NeighborBlend:
        """Find the k nearest fitted rows of new rows."""
        near, distances = self.search.nearest(Q, k + 1)
        apart = np.minimum(1.0, distances[:, 0] / self.reach[near[:, 0]])
        return NeighborBlend(near[:, 1:], near[:, :-1], distances, apart)

    def pack(self) -> dict[str, Any]:
        """Return the rows for a file."""
        return {"rows": self.search.rows, "reach": self.reach}


def unpack_rows(record: Record, n: int, p: int, *, missing: bool = False) -> FittedRows:
    """Return the rows that `FittedRows.pack` gave, with NaN if `missing`."""
    fields = {"rows": "n p nan" if missing else "n p", "reach": "n >0"}
    rows, reach = read_fields(record, fields, {"n": n, "p": p}).values()
    check_some_seen(record, rows)
    return FittedRows(RowSearch(rows), reach)
