"""True, false and unknown."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import reduce

import numpy as np
from numpy.typing import NDArray

BoolArray = NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class Truth:
    """Of each row: `true`, `false`, or neither, which is unknown. Kleene's strong three-valued logic."""

    true: BoolArray
    false: BoolArray

    @property
    def unknown(self) -> BoolArray:
        return ~(self.true | self.false)

    def __and__(self, other: Truth) -> Truth:
        return Truth(self.true & other.true, self.false | other.false)

    def __or__(self, other: Truth) -> Truth:
        return Truth(self.true | other.true, self.false & other.false)

    def __invert__(self) -> Truth:
        return Truth(self.false, self.true)


def where_known(true: BoolArray, known: BoolArray) -> Truth:
    return Truth(true & known, ~true & known)


def all_of(truths: Iterable[Truth]) -> Truth:
    return reduce(Truth.__and__, truths)


def any_of(truths: Iterable[Truth]) -> Truth:
    return reduce(Truth.__or__, truths)
