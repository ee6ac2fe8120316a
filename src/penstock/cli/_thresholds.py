"""`--threshold`: a name and parameters in one word → a threshold."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from penstock import thresholds
from penstock.cli._names import closest
from penstock.registry import find_threshold, parameter_names, threshold_class


def parse_threshold(text: str, also: Sequence[str] = ()) -> thresholds.Threshold:
    """The threshold that a text describes; ValueError with what is known instead, and what else the caller takes.

    >>> parse_threshold("fixed:0.8")
    Fixed(value=0.8)
    >>> parse_threshold("quantile:windw=500")
    Traceback (most recent call last):
    ValueError: quantile has no parameter 'windw'. Did you mean 'window'? Its parameters are ...
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
            hint = closest(key, known)
            raise ValueError(f"{name} has no parameter {key!r}.{hint} Its parameters are {_all(known)}.")
        if key in given:
            raise ValueError(f"{name} is given {key!r} twice.")
        given[key] = _value(value.strip())
    return _checked(cls, given, name)


def _checked(cls: type[thresholds.Threshold], given: dict[str, Any], name: str) -> thresholds.Threshold:
    try:
        threshold = cls(**given)
        threshold._check_parameters()
    except (TypeError, ValueError) as error:
        raise ValueError(f"{name}: {error}") from None
    return threshold


def _value(text: str) -> Any:
    plain = {"true": True, "false": False, "none": None}
    if text.lower() in plain:
        return plain[text.lower()]
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return text


def _all(names: Any) -> str:
    return ", ".join(names)
