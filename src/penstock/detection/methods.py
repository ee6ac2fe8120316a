"""The detectors by the names that the command line knows."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from difflib import get_close_matches
from typing import Any

from sklearn.base import clone

import penstock

_CLASSES = {
    "detector": "Detector",
    "nsnmf": "NSNMF",
    "laplacian": "LaplacianNSNMF",
    "online": "OnlineNSNMF",
    "nmf": "NMF",
    "gnmf": "GNMF",
    "snmf": "SNMF",
    "lomst": "LoMST",
    "mean": "MeanDistance",
    "knn": "KNNDistance",
    "norm": "NormScore",
}
METHODS = tuple(_CLASSES)
DEFAULT_METHOD, PAPERS_METHOD = "detector", "nsnmf"


def fit_to_inputs(detector: Any, p: int) -> Any:
    """A detector with no more latent groups than about half as many as there are inputs.

    As many groups as inputs could rebuild any row, and nothing would be left to stand out.

    >>> fit_to_inputs(make_detector("nsnmf"), 3)
    NSNMF(n_components=2, random_state=0)
    >>> fit_to_inputs(make_detector("nmf"), 30)
    NMF(random_state=0)
    """
    groups = getattr(detector, "n_components", None)
    most = max(1, (p + 1) // 2)
    return detector if groups is None or groups <= most else clone(detector).set_params(n_components=most)


def make_detector(method: Any, random_state: Any = 0, **parameters: Any) -> Any:
    """A detector by its name, unfitted; anything but a text is passed through.

    Parameters that are None, and a seed for a method that draws no random numbers, are left out. Defaults are those of
    the classes.

    >>> make_detector("nsnmf", n_components=3)
    NSNMF(n_components=3, random_state=0)
    >>> make_detector("mean")
    MeanDistance()
    >>> make_detector("nsmf")
    Traceback (most recent call last):
    ValueError: There is no method 'nsmf'. Did you mean 'nsnmf'? There are detector, nsnmf, laplacian, ...
    """
    if not isinstance(method, str):
        _refuse_strange(method, parameters)
        return method
    if method.lower() not in _CLASSES:
        close = get_close_matches(method.lower(), METHODS, n=1)
        hint = f" Did you mean {close[0]!r}?" if close else ""
        raise ValueError(f"There is no method {method!r}.{hint} There are {', '.join(METHODS)}.")
    cls = getattr(penstock, _CLASSES[method.lower()])
    known = inspect.signature(cls).parameters
    given = {name: value for name, value in parameters.items() if value is not None}
    for name in given:
        if name not in known:
            raise ValueError(f"{cls.__name__} has no parameter {name!r}. It has {', '.join(known)}.{_who_has(name)}")
    if "random_state" in known:
        given["random_state"] = random_state
    return cls(**given)


def _who_has(parameter: str) -> str:
    """A sentence on the methods that have a parameter; "" if none has."""
    classes = {name: getattr(penstock, cls) for name, cls in _CLASSES.items()}
    able = [name for name, cls in classes.items() if parameter in inspect.signature(cls).parameters]
    return f" The methods that have it: {', '.join(able)}." if able else ""


def _refuse_strange(detector: Any, parameters: Mapping[str, Any]) -> None:
    if isinstance(detector, type) or not hasattr(detector, "anomaly_score"):
        raise TypeError(
            f"method must be a name ({', '.join(METHODS)}) or a detector of penstock; got {detector!r:.100}."
        )
    for name, value in parameters.items():
        if value is not None:
            raise ValueError(f"{name} has no effect on a detector that is made already. Give it to its class.")
