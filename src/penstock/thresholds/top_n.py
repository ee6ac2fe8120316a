"""The paper's other way: no threshold, but a list of the N highest scores to look at."""

from __future__ import annotations

from heapq import heappush, heapreplace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from penstock._parameters import check_whole_number
from penstock._types import FloatArray
from penstock.thresholds._base import Threshold
from penstock.thresholds._state import StateReader
from penstock.thresholds.contamination import midway

_LARGEST_N = 2_000_000


class TopN(Threshold):
    """Keep the N highest scores so far, in constant memory; flag a score that drives another one off the list.

    The first N scores fill the list and are not flagged, as nothing is before a threshold is known.

    Parameters
    ----------
    n : int ≥ 1
        How many.

    Examples
    --------
    >>> threshold = TopN(n=2)
    >>> threshold.update_many([5.0, 1.0, 3.0, 1.0, 5.0])
    array([False, False,  True, False,  True])
    >>> threshold.positions, threshold.scores
    (array([0, 4]), array([5., 5.]))
    """

    _entries = frozenset({"positions", "scores", "seen"})

    def __init__(self, n: int = 100) -> None:
        self.n = n

    @property
    def positions(self) -> NDArray[np.int64]:
        """Which updates, counted from 0 and with NaN, brought the listed scores: best first, of equals the earlier."""
        return np.array([-entry[1] for entry in self._listed()], dtype=np.int64)

    @property
    def scores(self) -> FloatArray:
        """The listed scores, best first."""
        return np.array([entry[0] for entry in self._listed()], dtype=np.float64)

    def calibrate(self, scores: ArrayLike) -> float:
        """The value above which the N highest of these scores lie, midway between the N-th and the next.

        That takes at least N + 1 scores; equal ones at the cut share a verdict, and lead to fewer than N.
        """
        self._check_parameters()
        longer = TopN(self.n + 1)
        longer.update_many(scores)
        listed = longer.scores
        if len(listed) <= self.n:
            self._refuse_too_few(scores, self.n + 1)
        return midway(float(listed[-1]), float(listed[-2]))

    def _check_parameters(self) -> None:
        check_whole_number("n", self.n, least=1)
        if self.n > _LARGEST_N:
            raise ValueError(f"n must be at most {_LARGEST_N:,}, as each takes 150 bytes; got {self.n}.")

    def _fewest_scores(self) -> int:
        return self.n

    def _begin(self) -> None:
        self._seen = 0
        self._heap: list[tuple[float, int]] = []  # (score, −position): the entry to lose its place is the smallest

    def _pass_over(self) -> None:
        self._seen += 1

    def _learn(self, score: float, flagged: bool) -> None:
        entry = (score, -self._seen)
        self._seen += 1
        if flagged:
            heapreplace(self._heap, entry)
        elif len(self._heap) < self.n:
            heappush(self._heap, entry)
        if len(self._heap) == self.n:
            self._value = self._heap[0][0]

    def _listed(self) -> list[tuple[float, int]]:
        return sorted(self._heap, reverse=True) if self._begun else []

    def _state(self) -> dict[str, Any]:
        return {"positions": self.positions, "scores": self.scores, "seen": self._seen}

    def _restore(self, state: StateReader) -> None:
        self._seen = state.whole_number("seen")
        scores = state.numbers("scores")
        positions = state.whole_numbers("positions", least=0)
        state.same_length(scores=scores, positions=positions)
        if len(scores) > self.n:
            state.refuse(f"scores holds {len(scores)} numbers, but n is {self.n}")
        if (np.diff(np.sort(positions)) == 0).any() or (positions >= self._seen).any():
            state.refuse(f"positions must be different and below seen = {self._seen}")
        order = np.lexsort((-positions, scores))  # an ordered list is a heap
        scores, positions = scores[order], -positions[order]
        del order
        self._heap = list(zip(map(float, scores), map(int, positions), strict=True))
        if len(self._heap) == self.n:
            self._value = self._heap[0][0]
