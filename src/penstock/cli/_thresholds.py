"""`--threshold`: a name and parameters in one word → a threshold."""

from __future__ import annotations

import inspect
from collections.abc import Sequence
from typing import Any

from penstock import thresholds
from penstock.cli._names import closest

_CLASSES: dict[str, type[thresholds.Threshold]] = {
    "conformal": thresholds.ConformalPValue,
    "deviation": thresholds.MeanDeviation,
    "drifting-peaks": thresholds.DriftingPeaks,
    "fixed": thresholds.Fixed,
    "peaks": thresholds.PeaksOverThreshold,
    "quantile": thresholds.RollingQuantile,
    "top": thresholds.TopN,
}


def parse_threshold(text: str, also: Sequence[str] = ()) -> thresholds.Threshold:
    """The threshold that a text describes; ValueError with what is known instead, and what else the caller takes.

    >>> parse_threshold("fixed:0.8")
    Fixed(value=0.8)
    >>> parse_threshold("quantile:windw=500")
    Traceback (most recent call last):
    ValueError: quantile has no parameter 'windw'. Did you mean 'window'? Its parameters are ...
    """
    name, _, rest = text.partition(":")
    if name not in _CLASSES:
        raise ValueError(
            f"There is no threshold {name!r}.{closest(name, [*also, *_CLASSES])} There are {_all([*also, *_CLASSES])}."
        )
    known = list(inspect.signature(_CLASSES[name]).parameters)
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
    return _checked(_CLASSES[name], given, name)


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
