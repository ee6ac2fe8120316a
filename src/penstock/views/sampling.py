"""The coarse and the fine view: how far a row is from the nearest of a handful drawn at random, on average."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from penstock._threads import for_each_range
from penstock._types import FloatArray, IndexArray
from penstock.views._kernels import gaps_to_nodes, mean_to_nodes
from penstock.views.joining import Places

_SMALLEST = 64  # rows for a thread


@dataclass(frozen=True, eq=False)
class Sampling:
    """Mean Manhattan distance to the nearest node, over draws of a few fitted rows each.

    By the cut property that node is where the row would join the tree of the draw. A handful of rows of a table with
    few anomalies holds none most of the time: the anomalies cannot cover for each other.

    members : (draws, size) which of the fitted rows.
    rows : (m, p) the fitted rows; or (draws, size, p), only those.
    """

    members: IndexArray
    rows: FloatArray

    @cached_property
    def nodes(self) -> FloatArray:
        """(draws, size, p) the rows drawn, when they are needed: drawn often, they may take far more than `rows`."""
        return self.rows if self.rows.ndim == 3 else np.ascontiguousarray(self.rows[self.members])

    def values(self, Q: FloatArray, places: Places) -> FloatArray:
        """A row is no node for itself; NaN where no node shares a column with it."""
        out = np.empty(len(Q))

        def measure(start: int, stop: int) -> None:
            mean_to_nodes(Q, self.nodes, self.members, self._has_holes, places.near, places.apart, start, stop, out)

        for_each_range(measure, len(Q), smallest=_SMALLEST)
        return out

    def gaps(self, Q: FloatArray, places: Places) -> FloatArray:
        """What each variable adds to `values`."""
        out = np.zeros(Q.shape)
        gaps_to_nodes(Q, self.nodes, self.members, self._has_holes, places.near, places.apart, out)
        return out

    @cached_property
    def _has_holes(self) -> bool:
        return bool(np.isnan(self.nodes).any())


def draw_nodes(rows: FloatArray, draws: int, size: int, rng: np.random.Generator) -> Sampling:
    """`draws` times `size` different rows, or all if there are fewer."""
    return Sampling(draw_members(len(rows), draws, size, rng), rows)


def draw_members(m: int, draws: int, size: int, rng: np.random.Generator) -> IndexArray:
    """The same, by number among m rows."""
    size = min(size, m)
    return np.stack([rng.choice(m, size, replace=False) for _ in range(draws)]).astype(np.intp)
