"""Base class of thresholds."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from math import isfinite
from numbers import Integral, Real
from typing import Any, ClassVar, NoReturn, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, clone

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


LARGEST = float(np.finfo(np.float64).max)


class Threshold(BaseEstimator, ABC):  # type: ignore[misc]
    """A threshold that learns from a stream of scores; high means anomalous.

    The rules of every threshold: a score is flagged if it is above `value`, the threshold known *before* it came; while
    there are too few scores to know one, `value` is NaN and nothing is flagged; a NaN score is never flagged and
    teaches nothing; an infinite one is an error. Parameters are checked at the first score. `set_params` makes the
    threshold forget what it learnt, because that belonged to other parameters.

    A subclass stores its parameters in `__init__` and does nothing else there; it implements `_check_parameters`,
    `_fewest_scores`, `_begin`, `_learn`, `_state` and `_restore`, and lists the entries of its state in `_entries`.
    """

    _entries: ClassVar[frozenset[str]]
    _begun = False
    _value = math.nan

    @abstractmethod
    def _check_parameters(self) -> None:
        """Raise a ValueError if a parameter is out of bounds."""

    @abstractmethod
    def _fewest_scores(self) -> int:
        """How many scores must be seen before there is a value."""

    @abstractmethod
    def _begin(self) -> None:
        """Set up an empty memory. The parameters are known to be good."""

    @abstractmethod
    def _learn(self, score: float, flagged: bool) -> None:
        """Learn from a finite score, and set `_value` for the next one."""

    def _pass_over(self) -> None:
        """A NaN came. It teaches nothing; who counts positions counts it here."""

    @abstractmethod
    def _state(self) -> dict[str, Any]:
        """What was learnt, in copies that are the caller's."""

    @abstractmethod
    def _restore(self, state: StateReader) -> None:
        """Check all of a state, and take it over. The memory is set up and empty."""

    @property
    def value(self) -> float:
        """Scores above it are flagged; NaN while there are too few scores to know one."""
        return self._value

    def update(self, score: float) -> bool:
        """Whether the score is flagged, by what was known before it; then learn from it."""
        if not self._begun:
            self._begin_anew()
        if not isfinite(score):
            refuse_infinite(score)
            self._pass_over()
            return False
        score = float(score)  # NumPy's scalars are slow, and warn where a float does not
        flagged = score > self._value
        self._learn(score, flagged)
        return flagged

    def update_many(self, scores: ArrayLike) -> NDArray[np.bool_]:
        """The same as a loop of `update`, to the last bit, except that one infinite score refuses all of them."""
        values = self._read(scores)
        return np.fromiter(map(self.update, values), dtype=np.bool_, count=len(values))

    def calibrate(self, scores: ArrayLike) -> float:
        """The value after all these scores, as learnt by a fresh copy: for scores that are all there already."""
        judge = self.fresh()
        judge.update_many(scores)
        if math.isnan(judge.value):
            self._refuse_too_few(scores, judge._fewest_scores())
        return float(judge.value)

    def fresh(self) -> Self:
        """A copy with the same parameters and no memory."""
        copy: Self = clone(self)
        return copy

    def set_params(self, **params: Any) -> Self:
        """Change parameters, and forget what was learnt with the old ones."""
        super().set_params(**params)
        if params:
            self._begun, self._value = False, math.nan
        return self

    def get_state(self) -> dict[str, Any]:
        """What was learnt: plain numbers, None and NumPy arrays, for `set_state` of one with the same parameters."""
        if self._begun:
            return self._state()
        empty = self.fresh()  # asking does not begin anything
        empty._begin_anew()
        return empty._state()

    def set_state(self, state: dict[str, Any]) -> None:
        """Continue where `get_state` was called, to the last bit. A state that cannot be is refused."""
        before = self.__dict__.copy()
        try:
            self._begin_anew()
            self._restore(StateReader(type(self).__name__, state, self._entries))
        except BaseException:
            self.__dict__.clear()
            self.__dict__.update(before)
            raise

    def _begin_anew(self) -> None:
        self._check_parameters()
        self._value = math.nan
        self._begin()
        self._begun = True

    def _refuse_too_few(self, scores: ArrayLike, needed: int) -> NoReturn:
        usable = np.count_nonzero(~np.isnan(np.asarray(scores, dtype=np.float64)))
        raise ValueError(
            f"{self!r} needs at least {needed} scores to give a threshold, NaN not counted; got {usable}. "
            "Give it more scores, or other parameters."
        )

    def _read(self, scores: ArrayLike) -> list[float]:
        """Scores as Python's floats, the memory ready for them."""
        values: FloatArray = np.asarray(scores, dtype=np.float64)
        if values.ndim != 1:
            raise ValueError(f"Scores must be one-dimensional; got an array of shape {values.shape}.")
        infinite = np.flatnonzero(np.isinf(values))
        if len(infinite):
            raise ValueError(f"Scores must be finite or NaN, but number {infinite[0]} is {values[infinite[0]]}.")
        if not self._begun:
            self._begin_anew()
        result: list[float] = values.tolist()
        return result


def refuse_infinite(score: float) -> None:
    """Raise unless the score, known not to be finite, is NaN."""
    if not math.isnan(score):
        raise ValueError(f"A score must be finite or NaN; got {score}.")
