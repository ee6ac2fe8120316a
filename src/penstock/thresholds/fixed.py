"""A threshold that somebody else chose."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from penstock._parameters import check_number
from penstock.thresholds._base import Threshold
from penstock.thresholds._state import StateReader


class Fixed(Threshold):
    """Flag scores above a given value; learn nothing.

    Parameters
    ----------
    value : float
        A score equal to it is not flagged. Infinity flags nothing.

    Examples
    --------
    >>> Fixed(3.0).update_many([1.0, 3.0, 3.1])
    array([False, False,  True])
    """

    _entries = frozenset()
    value: float = math.nan  # the parameter itself, in the place of the property

    def __init__(self, value: float) -> None:
        self.value = value

    def _check_parameters(self) -> None:
        if not (isinstance(self.value, float) and math.isinf(self.value)):
            check_number("value", self.value)

    def _fewest_scores(self) -> int:
        return 0

    def _begin(self) -> None:
        self._value = float(self.value)

    def __setattr__(self, name: str, value: Any) -> None:
        super().__setattr__(name, value)
        if name == "value" and self._begun:
            self._begun = False  # checked, and taken over, with the next score

    def _learn(self, score: float, flagged: bool) -> None:
        pass

    def update_many(self, scores: ArrayLike) -> NDArray[np.bool_]:
        flagged: NDArray[np.bool_] = np.asarray(self._read(scores), dtype=np.float64) > self._value
        return flagged

    def _state(self) -> dict[str, Any]:
        return {}

    def _restore(self, state: StateReader) -> None:
        pass
