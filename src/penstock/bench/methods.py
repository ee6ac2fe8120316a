"""Methods of a study: any detector by name or import path, and its parameters."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from difflib import get_close_matches
from functools import cache
from importlib import import_module
from typing import Any

from penstock.registry import DETECTORS

# Ours, by the names they have in penstock; those of the study have no other home.
OURS = {name: f"{entry.module}.{name}" for name, entry in DETECTORS.items()} | {
    "BestLoMST": "penstock.bench.oracle.BestLoMST",
    "GraphChoice": "penstock.bench.graph_choice.GraphChoice",
}
SOLVERS = ("Auto", "BlockSGD", "Coordinate", "Multiplicative")


class MethodError(ValueError):
    """A method that cannot be built: no such detector, no such parameter, a package that is not installed."""


def import_path(detector: str) -> str:
    """The import path of a detector given by a name of ours or by its path.

    >>> import_path("NMF"), import_path("sklearn.ensemble.IsolationForest")
    ('penstock.detectors.nmf.NMF', 'sklearn.ensemble.IsolationForest')
    """
    if "." in detector or ":" in detector:
        return detector.replace(":", ".")
    if detector in OURS:
        return OURS[detector]
    lowered = {name.lower(): name for name in OURS}
    close = [lowered[match] for match in get_close_matches(detector.lower(), lowered, n=2, cutoff=0.5)]
    hint = f"Did you mean {' or '.join(close)}?" if close else f"Ours are {', '.join(sorted(OURS))}."
    raise MethodError(
        f"There is no detector {detector!r}. {hint} Any other one is named by its import path, such as "
        "'sklearn.ensemble.IsolationForest'."
    )


def find_class(detector: str) -> Any:
    """The class of a detector by name or import path."""
    path, _, name = import_path(detector).rpartition(".")
    module = _import(path, detector)
    try:
        return getattr(module, name)
    except AttributeError:
        raise MethodError(f"Module {path} has no {name!r}; check the import path {detector!r}.") from None


def _import(path: str, detector: str) -> Any:
    try:
        return import_module(path)
    except ImportError as error:
        missing = (error.name or path).partition(".")[0]
        extra = {"torch": "deep", "pyod": "peers"}.get(missing)
        how = f"pip install 'penstock[{extra}]'" if extra else f"install what provides the module {missing!r}"
        raise MethodError(f"{detector} cannot be imported ({error}): {how}.") from error
    except (Exception, SystemExit) as error:  # whatever a user's module does when it is imported
        raise MethodError(f"{detector} cannot be imported: {type(error).__name__}: {error}.") from error


def takes_seed(cls: Any) -> bool:
    """Whether chance has a part in the method: it has a parameter `random_state`.

    >>> takes_seed(find_class("NMF")), takes_seed(find_class("KNNDistance"))
    (True, False)
    """
    return "random_state" in _parameter_names(cls)


def with_defaults(detector: str, parameters: Mapping[str, Any]) -> dict[str, Any]:
    """Parameters as given, and the plain defaults of the others: what a cell is known by.

    >>> with_defaults("LoMST", {"n_neighbors": 5})["max_neighbors"]
    50
    """
    return _plain_defaults(find_class(detector)) | dict(parameters)


def build(detector: str, parameters: Mapping[str, Any], seed: int | None = None) -> Any:
    """The detector with these parameters, as they are written in a settings file, and this seed.

    >>> build("NMF", {"n_components": 2, "solver": {"Coordinate": {"profile_passes": 1}}}, seed=3)
    NMF(n_components=2, random_state=3, solver=Coordinate(profile_passes=1))
    """
    cls = find_class(detector)
    known = _parameter_names(cls)
    for name in parameters:
        if known and name not in known and "**" not in known:
            close = get_close_matches(name, known, n=1)
            hint = f"Did you mean {close[0]!r}?" if close else f"It has {', '.join(known)}."
            raise MethodError(f"{detector} has no parameter {name!r}. {hint}")
    try:
        values = {name: _as_object(value) for name, value in parameters.items()}
        if seed is not None and "random_state" in known:
            values.setdefault("random_state", seed)
        return cls(**values)
    except ImportError as error:
        raise MethodError(str(error)) from error
    except (TypeError, ValueError) as error:
        raise MethodError(f"{detector} cannot be made with {dict(parameters)}: {error}") from error


def _parameter_names(cls: Any) -> list[str]:
    """The parameters of a class; "**" among them if it takes any. Nothing known: an empty list."""
    try:
        parameters = inspect.signature(cls).parameters.values()
    except (TypeError, ValueError):
        return []
    kinds = inspect.Parameter
    names = [p.name for p in parameters if p.kind in (kinds.POSITIONAL_OR_KEYWORD, kinds.KEYWORD_ONLY)]
    return [*names, "**"] if any(p.kind is kinds.VAR_KEYWORD for p in parameters) else names


@cache
def _plain_defaults(cls: Any) -> dict[str, Any]:
    try:
        known = inspect.signature(cls).parameters
    except (TypeError, ValueError):
        return {}
    plain = (type(None), bool, int, float, str)
    return {name: known[name].default for name in known if type(known[name].default) in plain}


def _as_object(value: Any) -> Any:
    """Solver settings are written as a table with their name, `{BlockSGD = {rounds = 100}}`; all else is plain."""
    if isinstance(value, Mapping) and len(value) == 1:
        name, fields = next(iter(value.items()))
        if name in SOLVERS and isinstance(fields, Mapping):
            return getattr(import_module("penstock.factor"), name)(**fields)
    return tuple(value) if isinstance(value, list) else value
