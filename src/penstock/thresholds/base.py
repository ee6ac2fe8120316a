"""Base class of thresholds, and thresholds as dictionaries (for files) and as text (for the command line)."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from math import isfinite
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator, clone

from penstock._parameters import Bounds, check_bounds
from penstock._types import BoolArray, FloatArray
from penstock.registry import THRESHOLDS, did_you_mean, find_threshold, parameter_names, threshold_class
from penstock.storage import Fields, Record, read_fields

LARGEST = float(np.finfo(np.float64).max)
_WORDS = {"true": True, "false": False, "none": None}


class Threshold(BaseEstimator, ABC):  # type: ignore[misc]
    """A threshold that learns from a stream of scores; high means anomalous.

    A score is flagged if it is above `value`, the threshold known *before* it came. While there are too few scores,
    `value` is NaN and nothing is flagged. A NaN score is never flagged and not taken in; an infinite one is an error.
    Parameters are checked at the first score. `set_params` discards what was fitted with other parameters.

    A subclass stores its parameters in `__init__` and does nothing else there; it declares their `_bounds`,
    implements `_fewest_scores`, `_begin` and `_learn`, and, if it has a memory, `_fields`, `_state` and `_restore`.

    Examples
    --------
    >>> from penstock.thresholds import Threshold, TopN
    >>> threshold = TopN(n=1)
    >>> isinstance(threshold, Threshold), [threshold.update(score) for score in (1.0, 3.0, 2.0, 4.0)]
    (True, [False, True, False, True])
    """

    _bounds: ClassVar[Bounds] = {}
    _fields: ClassVar[Fields] = {}  # of `_state`
    _begun = False
    _value = math.nan

    def _check_parameters(self) -> None:
        """Raise a ValueError if a parameter is out of bounds: those declared, and how they go together."""
        check_bounds(self)

    @abstractmethod
    def _fewest_scores(self) -> int:
        """Return how many scores must be seen before there is a value."""

    @abstractmethod
    def _begin(self) -> None:
        """Set up an empty memory. The parameters are known to be good."""

    @abstractmethod
    def _learn(self, score: float, flagged: bool) -> None:
        """Learn from a finite score, and set `_value` for the next one."""

    def _pass_over(self) -> None:
        """Count a NaN, where positions are counted."""

    def _state(self) -> dict[str, Any]:
        """Return the memory, in copies."""
        return {}

    def _restore(self, state: dict[str, Any], record: Record) -> None:
        """Take over a state whose fields fit `_fields`; `record` is for errors. The memory is set up and empty."""

    @property
    def value(self) -> float:
        """Scores above it are flagged; NaN while there are too few scores to know one."""
        return self._value

    def update(self, score: float) -> bool:
        """Return whether the score is flagged, by what was known before it; then learn from it."""
        if not self._begun:
            self._begin_again()
        if not isfinite(score):
            check_not_infinite(score)
            self._pass_over()
            return False
        score = float(score)  # NumPy's scalars are slow, and warn where a float does not
        flagged = score > self._value
        self._learn(score, flagged)
        return flagged

    def update_many(self, scores: ArrayLike) -> BoolArray:
        """Return the same as a loop of `update`, to the last bit; one infinite score refuses all of them."""
        values = self._read(scores)
        return np.fromiter(map(self.update, values), dtype=np.bool_, count=len(values))

    def follow(self, scores: ArrayLike) -> tuple[FloatArray, BoolArray]:
        """Return the value before each score, and whether the score is flagged: a loop of `value` and `update`."""
        values, found, flags = self._read(scores), list[float](), list[bool]()
        for score in values:
            found.append(self._value)
            flags.append(self.update(score))
        return np.array(found, dtype=np.float64), np.array(flags, dtype=np.bool_)

    def calibrate(self, scores: ArrayLike) -> float:
        """Return the value after all these scores, as a fresh copy finds it."""
        copy = self.fresh()
        copy.update_many(scores)
        if math.isnan(copy.value):
            raise self._too_few(scores, copy._fewest_scores())
        return float(copy.value)

    def fresh(self) -> Self:
        """Return a copy with the same parameters and no memory."""
        copy: Self = clone(self)
        return copy

    def set_params(self, **params: Any) -> Self:
        """Change parameters, and discard what was fitted with the old ones."""
        super().set_params(**params)
        if params:
            self._begun, self._value = False, math.nan
        return self

    def get_state(self) -> dict[str, Any]:
        """Return the memory, as numbers, None and NumPy arrays, for `set_state` with the same parameters."""
        if self._begun:
            return self._state()
        empty = self.fresh()
        empty._begin_again()
        return empty._state()

    def set_state(self, state: dict[str, Any]) -> None:
        """Continue where `get_state` was called, to the last bit; ValueError for a state that cannot be."""
        before = self.__dict__.copy()
        try:
            self._begin_again()
            record = Record(state, f"state of {type(self).__name__}")
            self._restore(read_fields(record, self._fields), record)
        except BaseException:
            self.__dict__.clear()
            self.__dict__.update(before)
            raise

    def _too_few(self, scores: ArrayLike, needed: int) -> ValueError:
        usable = np.count_nonzero(~np.isnan(np.asarray(scores, dtype=np.float64)))
        return ValueError(
            f"{self!r} needs at least {needed} scores to give a threshold, NaN not counted; got {usable}. "
            "Give it more scores, or other parameters."
        )

    def _begin_again(self) -> None:
        self._check_parameters()
        self._value = math.nan
        self._begin()
        self._begun = True

    def _read(self, scores: ArrayLike) -> list[float]:
        """Return scores as Python's floats, and set up the memory if it is not."""
        values: FloatArray = np.asarray(scores, dtype=np.float64)
        if values.ndim != 1:
            raise ValueError(f"Scores must be one-dimensional; got an array of shape {values.shape}.")
        infinite = np.flatnonzero(np.isinf(values))
        if len(infinite):
            raise ValueError(f"Scores must be finite or NaN, but number {infinite[0]} is {values[infinite[0]]}.")
        if not self._begun:
            self._begin_again()
        result: list[float] = values.tolist()
        return result


def check_not_infinite(score: float) -> None:
    """Raise unless the score, known not to be finite, is NaN."""
    if not math.isnan(score):
        raise ValueError(f"A score must be finite or NaN; got {score}.")


def pack_threshold(threshold: Threshold) -> dict[str, Any]:
    """Return the class by name, the parameters and the state, for `unpack_threshold`."""
    kind = type(threshold).__name__
    if kind not in THRESHOLDS or threshold_class(kind) is not type(threshold):
        raise ValueError(f"Only thresholds of penstock.thresholds can be packed, not {type(threshold)!r}.")
    given = threshold.get_params(deep=False).items()
    parameters = {name: value.item() if isinstance(value, np.generic) else value for name, value in given}
    return {"kind": kind, "parameters": parameters, "state": threshold.get_state()}


def unpack_threshold(document: dict[str, Any]) -> Threshold:
    """Return the threshold that was packed; ValueError for anything else."""
    if not isinstance(document, dict) or set(document) != {"kind", "parameters", "state"}:
        raise ValueError("A packed threshold is a dictionary of kind, parameters and state; see pack_threshold.")
    kind, parameters = document["kind"], document["parameters"]
    if not isinstance(kind, str) or kind not in THRESHOLDS:
        raise ValueError(f"Unknown kind of threshold: {kind!r}. Known are {', '.join(THRESHOLDS)}.")
    made = threshold_class(kind)
    names = set(parameter_names(made))
    if not isinstance(parameters, dict) or set(parameters) != names:
        raise ValueError(f"A packed {kind} must give its parameters {', '.join(sorted(names))}; got {parameters!r}.")
    threshold: Threshold = made(**parameters)
    threshold.set_state(document["state"])
    return threshold


def parse_threshold(text: str, also: Sequence[str] = ()) -> Threshold:
    """Make a threshold of a text: a name, and after a colon parameters; ValueError with what is known instead.

    also : other words that the caller understands, for the message of the error.

    >>> parse_threshold("fixed:0.8"), parse_threshold("quantile:rate=0.2,window=50")
    (Fixed(value=0.8), RollingQuantile(rate=0.2, window=50))
    """
    name, _, rest = text.partition(":")
    cls = threshold_class(find_threshold(name, also))
    known = parameter_names(cls)
    given: dict[str, Any] = {}
    for part in filter(None, rest.split(",")):
        key, equals, value = part.partition("=")
        if not equals:
            key, value = known[0], key  # fixed:0.8, top:100
        if key not in known:
            hint = did_you_mean(key, known)
            raise ValueError(f"{name} has no parameter {key!r}.{hint} Its parameters are {', '.join(known)}.")
        if key in given:
            raise ValueError(f"{name} is given {key!r} twice.")
        given[key] = _value(value.strip())
    try:
        threshold: Threshold = cls(**given)
        threshold._check_parameters()
    except (TypeError, ValueError) as error:
        raise ValueError(f"{name}: {error}") from None
    return threshold


def _value(text: str) -> Any:
    if text.lower() in _WORDS:
        return _WORDS[text.lower()]
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return text
