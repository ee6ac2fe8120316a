"""Check that parameters are within their bounds; errors name the parameter, what it may be and what it is."""

from __future__ import annotations

import math
from collections.abc import Iterable
from numbers import Integral, Real


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
    if not any(type(value) is type(choice) and value == choice for choice in choices):
        raise ParameterError(name, f" must be one of {', '.join(map(repr, choices))}; got {value!r:.100}.")


_MOST = 2**31 - 1  # for counts: what is larger is a mistake, and would not fit into the integers of kernels


def check_whole_number(name: str, value: object, *, least: int) -> None:
    """Raise unless `value` is a whole number from `least` to 2³¹ − 1."""
    if not _is_number(value) or not isinstance(value, Integral) or value < least:
        raise ParameterError(name, f" must be a whole number ≥ {least}; got {value!r:.100}.")
    if int(value) > _MOST:
        raise ParameterError(name, f" must be a whole number from {least} to {_MOST:,}; got {float(value):.4g}.")


def check_number(name: str, value: object, *, least: float = -math.inf, above: bool = False) -> None:
    """Raise unless `value` is a finite number ≥ `least` (or > `least`, if `above`)."""
    fine = _is_number(value) and math.isfinite(value) and value >= least  # type: ignore[arg-type, operator]
    if not fine or (above and value == least):
        bound = "" if least == -math.inf else f" {'>' if above else '≥'} {least:g}"
        raise ParameterError(name, f" must be a finite number{bound}; got {value!r:.100}.")


def check_share(name: str, value: object) -> None:
    """Raise unless 0 < `value` < 1."""
    if not _is_number(value) or not 0 < value < 1:  # type: ignore[operator]
        raise ParameterError(name, f" must be a number between 0 and 1, both excluded; got {value!r:.100}.")


def check_switch(name: str, value: object) -> None:
    """Raise unless `value` is True or False."""
    if not isinstance(value, bool):
        raise ParameterError(name, f" must be True or False; got {value!r:.100}.")


def _is_number(value: object) -> bool:
    return isinstance(value, Real) and not isinstance(value, bool)
