"""The four views together, each on the same scale; what the two that see most say is the score."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from penstock._types import FloatArray, IndexArray, Tree
from penstock.graph.mst import spanning_tree_of_comparable
from penstock.views._kernels import two_largest
from penstock.views.encoding import LogEncoding, learn_encoding
from penstock.views.joining import Joining, Places, join_rows
from penstock.views.margins import Margins, learn_margins
from penstock.views.sampling import Sampling, draw_nodes
from penstock.views.standard import LogStandard, learn_standard

VIEWS = ("coarse", "fine", "local", "marginal")
# How often, and how many rows are drawn: docs/decisions/0015-default-detector.md.
COARSE = (128, 4)
FINE = (64, 32)


@dataclass(frozen=True)
class Standards:
    """The scale of each view; the local one is the mean of two."""

    coarse: LogStandard
    fine: LogStandard
    plain: LogStandard
    logged: LogStandard
    marginal: LogStandard


NO_STANDARDS = Standards(*[LogStandard(1.0, 0.0, 1.0)] * 5)  # nothing is known yet


@dataclass(frozen=True, eq=False)
class Composite:
    """What was learnt from rows: four views of any row.

    plain, logged : the local view, of readings as they are and as `encoding` makes them.
    coarse, fine, marginal : of encoded readings.
    """

    encoding: LogEncoding
    plain: Joining
    logged: Joining
    coarse: Sampling
    fine: Sampling
    marginal: Margins
    standards: Standards

    def parts(self, A: FloatArray) -> FloatArray:
        """(n, 4): how odd each row is in each view, where 0 is usual and 1 a standard deviation above it."""
        encoded, at, log_at = self._places(A)
        return self._on_one_scale(self._raw(encoded, at, log_at))

    def parts_and_shares(self, A: FloatArray) -> tuple[FloatArray, FloatArray]:
        """`parts`; and (n, 4, p) each variable's share of what a view says of a row, summing to 1.

        Missing readings have no share.
        """
        encoded, at, log_at = self._places(A)
        return self._on_one_scale(self._raw(encoded, at, log_at)), self._shares(A, encoded, at, log_at)

    def _shares(self, A: FloatArray, encoded: FloatArray, at: Places, log_at: Places) -> FloatArray:
        seen = ~np.isnan(A)
        local = (_normalised(self.plain.gaps(A, at), seen) + _normalised(self.logged.gaps(encoded, log_at), seen)) / 2
        return np.stack(
            [
                _normalised(self.coarse.gaps(encoded, log_at), seen),
                _normalised(self.fine.gaps(encoded, log_at), seen),
                local,
                _normalised(np.nan_to_num(self.marginal.excesses(encoded)), seen),
            ],
            axis=1,
        )

    def _places(self, A: FloatArray) -> tuple[FloatArray, Places, Places]:
        """Rows encoded, and where they are; different fitted rows may be equal when encoded."""
        encoded, at = self.encoding.apply(A), self.plain.places(A)
        return encoded, at, self.logged.places(encoded, at.near)

    def own_raw(self, encoded: FloatArray) -> tuple[FloatArray, ...]:
        """What each view says of the fitted rows, given their encoding, before it is put on a scale."""
        return self._raw(encoded, self.plain.own_places(), self.logged.own_places())

    def on_their_scale(self, raw: tuple[FloatArray, ...], copy_of: IndexArray) -> tuple[Composite, FloatArray]:
        """With scales learnt from `own_raw`; and the parts of all fitted rows, of which row i equals `copy_of[i]`."""
        standards = Standards(*(learn_standard(values[copy_of]) for values in raw))
        views = replace(self, standards=standards)
        return views, views._on_one_scale(raw)[copy_of]

    def _raw(self, encoded: FloatArray, at: Places, log_at: Places) -> tuple[FloatArray, ...]:
        """In the order of `Standards`."""
        return (
            self.coarse.values(encoded, log_at),
            self.fine.values(encoded, log_at),
            self.plain.values(at),
            self.logged.values(log_at),
            self.marginal.values(encoded),
        )

    def _on_one_scale(self, raw: tuple[FloatArray, ...]) -> FloatArray:
        s = self.standards
        scales = (s.coarse, s.fine, s.plain, s.logged, s.marginal)
        coarse, fine, plain, logged, marginal = (scale.apply(values) for scale, values in zip(scales, raw, strict=True))
        return np.column_stack([coarse, fine, (plain + logged) / 2, marginal])


def learn_composite(
    A: FloatArray, kept: IndexArray, copy_of: IndexArray, tree: Tree, rng: np.random.Generator
) -> tuple[Composite, FloatArray]:
    """The views of rows, and their parts (n, 4).

    A : all rows.
    kept, copy_of : the rows that are different from all before them, and which of these each row equals.
    tree : the spanning tree of the kept rows.
    """
    rows = np.ascontiguousarray(A[kept])
    encoding = learn_encoding(A)
    encoded = encoding.apply(rows)
    log_tree = spanning_tree_of_comparable(encoded) if len(rows) > 1 else tree
    views = Composite(
        encoding,
        join_rows(rows, tree),
        join_rows(encoded, log_tree),
        draw_nodes(encoded, *COARSE, rng),
        draw_nodes(encoded, *FINE, rng),
        learn_margins(encoded if len(kept) == len(A) else encoding.apply(A)),
        NO_STANDARDS,
    )
    return views.on_their_scale(views.own_raw(encoded), copy_of)


def counted(parts: FloatArray) -> FloatArray:
    """The parts that count: the two largest of each row, 0 for the others.

    An anomaly far from everything is seen by all views; a tight group of them escapes the local view, one that is odd
    only as a whole the marginal one. Two views that agree are enough.

    >>> counted(np.array([[3.0, 1.0, 2.0, 0.5]])).tolist()
    [[3.0, 0.0, 2.0, 0.0]]
    """
    out = np.empty(parts.shape)
    two_largest(np.ascontiguousarray(parts), out)
    return out


def total_of(parts: FloatArray) -> FloatArray:
    """Of each row, in the order of the views: what adding up the parts gives, to the last bit."""
    total: FloatArray = ((parts[:, 0] + parts[:, 1]) + parts[:, 2]) + parts[:, 3]
    return total


def _normalised(gaps: FloatArray, seen: FloatArray) -> FloatArray:
    """Shares of the row's sum; the same for all readings that are there, where the sum is 0."""
    largest = gaps.max(axis=1, initial=0.0)
    scaled = gaps / np.where(largest > 0, largest, 1.0)[:, None]  # so that no sum overflows
    even = np.where((largest > 0)[:, None], scaled, seen)
    shares: FloatArray = even / even.sum(axis=1, keepdims=True)
    return shares
