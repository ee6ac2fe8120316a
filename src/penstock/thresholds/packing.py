"""Thresholds to plain dictionaries and back, for files: only classes listed here are ever made."""

from __future__ import annotations

from inspect import signature
from typing import Any

from penstock.registry import THRESHOLDS, threshold_class
from penstock.thresholds.base import Threshold, plain


def pack_threshold(threshold: Threshold) -> dict[str, Any]:
    """What `unpack_threshold` needs to continue with the same bits: the class by name, parameters, and state.

    >>> from penstock.thresholds import Fixed
    >>> pack_threshold(Fixed(3.0))
    {'kind': 'Fixed', 'parameters': {'value': 3.0}, 'state': {}}
    """
    kind = type(threshold).__name__
    if kind not in THRESHOLDS or threshold_class(kind) is not type(threshold):
        raise ValueError(f"Only thresholds of penstock.thresholds can be packed, not {type(threshold)!r}.")
    parameters = {name: plain(value) for name, value in threshold.get_params(deep=False).items()}
    return {"kind": kind, "parameters": parameters, "state": threshold.get_state()}


def unpack_threshold(document: dict[str, Any]) -> Threshold:
    """The threshold that was packed; anything else is refused.

    >>> unpack_threshold({"kind": "Fixed", "parameters": {"value": 3.0}, "state": {}})
    Fixed(value=3.0)
    """
    if not isinstance(document, dict) or set(document) != {"kind", "parameters", "state"}:
        raise ValueError("A packed threshold is a dictionary of kind, parameters and state; see pack_threshold.")
    kind, parameters = document["kind"], document["parameters"]
    if not isinstance(kind, str) or kind not in THRESHOLDS:
        raise ValueError(f"Unknown kind of threshold: {kind!r}. Known are {', '.join(THRESHOLDS)}.")
    made = threshold_class(kind)
    names = set(signature(made).parameters)
    if not isinstance(parameters, dict) or set(parameters) != names:
        raise ValueError(f"A packed {kind} must give its parameters {', '.join(sorted(names))}; got {parameters!r}.")
    threshold: Threshold = made(**parameters)
    threshold.set_state(document["state"])
    return threshold
