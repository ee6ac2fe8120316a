"""Make thresholds of dictionaries, for files, and of text, for the command line. No other classes are ever made."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from penstock.registry import THRESHOLDS, did_you_mean, find_threshold, parameter_names, threshold_class
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
    names = set(parameter_names(made))
    if not isinstance(parameters, dict) or set(parameters) != names:
        raise ValueError(f"A packed {kind} must give its parameters {', '.join(sorted(names))}; got {parameters!r}.")
    threshold: Threshold = made(**parameters)
    threshold.set_state(document["state"])
    return threshold


_WORDS = {"true": True, "false": False, "none": None}


def parse_threshold(text: str, also: Sequence[str] = ()) -> Threshold:
    """Make a threshold of a text, such as "quantile:rate=0.01,window=1000".

    Parameters
    ----------
    text : str
        A name, and after a colon parameters; the first one may be given without its name.
    also : sequence of str, default=()
        Other words that the caller understands, for the message of the error.

    Raises
    ------
    ValueError
        With what is known instead.

    Examples
    --------
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
