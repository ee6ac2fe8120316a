"""Bounds of parameters, declared as data, and their checks; errors name the parameter, what it may be and what it is.

The parameters of an `estimator` are its fields: a line says the type, the default and, as `Annotated`, the bound. A
type with few values needs none: `Literal` and `bool` are bounds. Other classes list bounds in `_bounds`.
`check_bounds` checks those of a class and all its bases.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, fields, is_dataclass
from functools import cache, partial
from numbers import Integral, Real
from types import NoneType
from typing import Annotated, Any, Literal, TypeVar, dataclass_transform, get_args, get_origin, get_type_hints

Bound = Callable[[str, object], None]  # raises if a parameter of this name cannot have this value
Bounds = Mapping[str, Bound]
T = TypeVar("T")


class ParameterError(ValueError):
    """A parameter has a value that cannot be used.

    The message is its name and the `problem`, such as " must be a whole number; got 2.5."
    """

    def __init__(self, parameter: str, problem: str) -> None:
        super().__init__(f"{parameter}{problem}")
        self.parameter = parameter

    def __reduce__(self) -> tuple[type[ParameterError], tuple[str, str]]:
        return ParameterError, (self.parameter, str(self).removeprefix(self.parameter))


def check_choice(name: str, value: object, allowed: Iterable[object]) -> None:
    """Raise unless `value` is one of `allowed`."""
    choices = list(allowed)
    if (type(value), value) not in zip(map(type, choices), choices, strict=True):
        raise ParameterError(name, f" must be one of {', '.join(map(repr, choices))}; got {value!r:.100}.")


_MOST = 2**31 - 1  # for counts: what is larger is a mistake, and would not fit into the integers of kernels


def check_whole_number(name: str, value: object, *, least: int) -> None:
    """Raise unless `value` is a whole number from `least` to 2³¹ − 1."""
    if not _is_number(value) or not isinstance(value, Integral) or value < least:
        raise ParameterError(name, f" must be a whole number ≥ {least}; got {value!r:.100}.")
    if int(value) > _MOST:
        raise ParameterError(name, f" must be a whole number from {least} to {_MOST:,}; got {float(value):.4g}.")


def check_number(
    name: str, value: object, *, least: float = -math.inf, above: bool = False, most: float = math.inf
) -> None:
    """Raise unless `value` is a finite number from `least` (or above it, if `above`) to `most`."""
    fine = _is_number(value) and math.isfinite(value) and least <= value <= most  # type: ignore[arg-type, operator]
    if not fine or (above and value == least):
        bound = "" if least == -math.inf else f" {'>' if above else '≥'} {least:g}"
        if most < math.inf:
            bound += f" and ≤ {most:g}"
        raise ParameterError(name, f" must be a finite number{bound}; got {value!r:.100}.")


def check_share(name: str, value: object) -> None:
    """Raise unless 0 < `value` < 1."""
    if not _is_number(value) or not 0 < value < 1:  # type: ignore[operator]
        raise ParameterError(name, f" must be a number between 0 and 1, both excluded; got {value!r:.100}.")


def check_switch(name: str, value: object) -> None:
    """Raise unless `value` is True or False."""
    if not isinstance(value, bool):
        raise ParameterError(name, f" must be True or False; got {value!r:.100}.")


def whole(least: int) -> Bound:
    """Return the bound of a whole number."""
    return partial(check_whole_number, least=least)


def number(least: float = -math.inf, *, above: bool = False, most: float = math.inf) -> Bound:
    """Return the bound of a finite number."""
    return partial(check_number, least=least, above=above, most=most)


def choice(*allowed: object) -> Bound:
    """Return the bound of a parameter with a few values."""
    return partial(check_choice, allowed=allowed)


def word_or(bound: Bound, *words: str) -> Bound:
    """Return the bound of a parameter that is one of a few words, or no text."""

    def check(name: str, value: object) -> None:
        if isinstance(value, str):
            check_choice(name, value, words)
        else:
            bound(name, value)

    return check


def optional(bound: Bound) -> Bound:
    """Return the bound of a parameter that may be None."""

    def check(name: str, value: object) -> None:
        if value is not None:
            bound(name, value)

    return check


@dataclass_transform(eq_default=False)
def estimator(cls: type[T]) -> type[T]:
    """Make the annotated fields of a class its parameters, as scikit-learn knows them, those of its bases first."""
    made = dataclass(eq=False, repr=False)(cls)
    vars(made)["__init__"].__annotations__ = {}  # a signature shows names and defaults, as those of scikit-learn do
    return made


@cache
def bounds_of(cls: type) -> dict[str, Bound]:
    """Return the bounds that a class and its bases declare, by parameter."""
    declared = [vars(base).get("_bounds", {}) for base in reversed(cls.__mro__)]
    found = {name: bound for bounds in declared for name, bound in bounds.items()}
    if is_dataclass(cls):
        types = get_type_hints(cls, include_extras=True)
        typed = {field.name: _bound_of(types[field.name]) for field in fields(cls)}
        found |= {name: bound for name, bound in typed.items() if bound is not None}
    return found


def _bound_of(hint: Any) -> Bound | None:
    """Return the bound that a type is, or is annotated with."""
    if get_origin(hint) is Annotated:
        bound: Bound = hint.__metadata__[0]
        return bound
    if hint is bool:
        return check_switch
    if get_origin(hint) is not Literal and not all(
        part is NoneType or get_origin(part) is Literal for part in get_args(hint) or (hint,)
    ):
        return None
    return choice(*_values_of(hint))


def _values_of(hint: Any) -> list[object]:
    if hint is NoneType:
        return [None]
    if get_origin(hint) is Literal:
        return list(get_args(hint))
    return [value for part in get_args(hint) for value in _values_of(part)]


def check_bounds(owner: object) -> None:
    """Raise if a parameter of an object is out of its bounds."""
    cls: Any = type(owner)
    for name, bound in bounds_of(cls).items():
        bound(name, getattr(owner, name))


def _is_number(value: object) -> bool:
    return isinstance(value, Real) and not isinstance(value, bool)
