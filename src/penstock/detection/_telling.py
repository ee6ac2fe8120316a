"""What makes up the scores of findings, by views and by variables, for a detector that can tell."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from penstock._types import FloatArray, IndexArray
from penstock.detection._parts import JudgedPart
from penstock.views.composite import VIEWS

_MOST_OF_IT = 0.5  # of a score


@dataclass(frozen=True, eq=False)
class Told:
    """Of findings, at these rows of the table: (m, views) and (m, variables), what each adds to the score."""

    rows: IndexArray
    views: FloatArray
    variables: FloatArray

    def of(self, rows: IndexArray) -> Told:
        """Of some of them."""
        places = np.searchsorted(self.rows, rows)
        return Told(rows, self.views[places], self.variables[places])

    @property
    def standing_out(self) -> NDArray[np.bool_]:
        """(m, variables) the fewest that make up half of the score, but no more than half of the variables."""
        added = np.maximum(self.variables, 0.0)
        order = np.argsort(-added, axis=1, kind="stable")
        sums = np.cumsum(np.take_along_axis(added, order, axis=1), axis=1)
        before = np.concatenate([np.zeros((len(sums), 1)), sums[:, :-1]], axis=1)
        chosen = before < _MOST_OF_IT * sums[:, -1:]
        chosen[:, added.shape[1] // 2 :] = False
        found = np.zeros(added.shape, dtype=np.bool_)
        np.put_along_axis(found, order, chosen, axis=1)
        return found


def tell(parts: Sequence[JudgedPart], values: FloatArray, flags: NDArray[np.bool_]) -> Told:
    """What the detectors of the parts, which can tell, say of all findings."""
    rows = np.flatnonzero(flags)
    told = Told(rows, np.zeros((len(rows), len(VIEWS))), np.zeros((len(rows), values.shape[1])))
    for judged in parts:
        mine = np.isin(rows, judged.rows)
        told.views[mine], told.variables[mine] = judged.part.explained(values[rows[mine]])
    return told
