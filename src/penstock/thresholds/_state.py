"""What a threshold has learnt, read back from a dictionary that may be damaged or another's."""

from __future__ import annotations

import math
from numbers import Integral, Real
from typing import Any, NoReturn

import numpy as np
from numpy.typing import NDArray

from penstock._parameters import check_number, check_whole_number
from penstock._types import FloatArray

_LARGEST_COUNT = 2**53  # of scores: a thousand million a second for a hundred days; sums of a thousand fit into int64


class StateReader:
    """The entries of a state, each checked; what is wrong is an error that says whose state and which entry.

    >>> StateReader("TopN", {"seen": -1}, frozenset({"seen"})).whole_number("seen")
    Traceback (most recent call last):
    ...
    ValueError: This is no state of TopN: seen must be a whole number ≥ 0; got -1. Pass what its get_state() returned.
    """

    def __init__(self, kind: str, state: object, names: frozenset[str]) -> None:
        self._kind = kind
        if not isinstance(state, dict):
            self.refuse(f"it is a {type(state).__name__}, not a dictionary")
        if set(state) != names:
            wanted, found = (", ".join(sorted(map(str, some))) or "none" for some in (names, state))
            self.refuse(f"its entries must be {wanted}; got {found}")
        self._state: dict[str, Any] = state

    def refuse(self, why: str) -> NoReturn:
        raise ValueError(f"This is no state of {self._kind}: {why}. Pass what its get_state() returned.")

    def has(self, name: str) -> bool:
        """Whether the entry is known; one that is not yet is None."""
        return self._state[name] is not None

    def whole_number(self, name: str) -> int:
        value = self._state[name]
        self._check(check_whole_number, name, value, least=0)
        if value > _LARGEST_COUNT:
            self.refuse(f"{name} must be at most {_LARGEST_COUNT}; got {value!r:.40}")
        return int(value)

    def number(self, name: str, *, least: float = -math.inf) -> float:
        value = self._state[name]
        self._check(check_number, name, value, least=least)
        return float(value)

    def numbers(self, name: str, *, least: float = -math.inf) -> FloatArray:
        """A copy of an array of finite numbers ≥ `least`."""
        values: FloatArray = self._array(name, np.float64)
        if not np.isfinite(values).all() or (values < least).any():
            self.refuse(f"{name} must hold finite numbers" + ("" if least == -math.inf else f" ≥ {least:g}"))
        return values

    def whole_numbers(self, name: str, *, least: int) -> NDArray[np.int64]:
        """A copy of an array of whole numbers ≥ `least`."""
        values: NDArray[np.int64] = self._array(name, np.int64)
        if (values < least).any() or (values > _LARGEST_COUNT).any():
            self.refuse(f"{name} must hold whole numbers ≥ {least} and ≤ {_LARGEST_COUNT}")
        return values

    def same_length(self, **arrays: Any) -> None:
        lengths = {name: len(array) for name, array in arrays.items()}
        if len(set(lengths.values())) > 1:
            self.refuse(f"arrays must be equally long; got {lengths}")

    def _array(self, name: str, kind: type) -> Any:
        values = self._state[name]
        if not isinstance(values, np.ndarray) or values.ndim != 1 or values.dtype != kind:
            found = f"{values.dtype} {values.shape}" if isinstance(values, np.ndarray) else type(values).__name__
            self.refuse(f"{name} must be a one-dimensional {np.dtype(kind)} array; got {found}")
        return values.copy()

    def _check(self, check: Any, name: str, value: object, **bounds: Any) -> None:
        try:
            check(name, value, **bounds)
        except ValueError as error:
            self.refuse(str(error).removesuffix("."))


def plain(value: object) -> object:
    """A parameter as a plain Python value: NumPy's numbers become int, float and bool."""
    if isinstance(value, bool | np.bool_):
        return bool(value)
    if isinstance(value, Integral):
        return int(value)
    return float(value) if isinstance(value, Real) else value
