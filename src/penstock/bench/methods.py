"""Find, make and fit the detectors of a study: those of penstock by class name, any other by import path."""

from __future__ import annotations

import inspect
import warnings
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from difflib import get_close_matches
from functools import cache
from importlib import import_module
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray
from sklearn.utils import get_tags

from penstock._parameters import ParameterError
from penstock._types import BoolArray, FloatArray
from penstock.registry import DETECTORS, did_you_mean

OURS = {name: f"{entry.module}.{name}" for name, entry in DETECTORS.items() if entry.method}
SOLVERS = ("BlockSGD", "Coordinate", "Multiplicative", "RowBlocks")
_REHEARSED = ("penstock", "pyod", "sklearn")


def import_path(detector: str) -> str:
    """Return the import path of a detector given by a class name of penstock or by its path."""
    if "." in detector or ":" in detector:
        return detector.replace(":", ".")
    if detector in OURS:
        return OURS[detector]
    lowered = {name.lower(): name for name in OURS}
    close = [lowered[match] for match in get_close_matches(detector.lower(), lowered, n=2, cutoff=0.5)]
    hint = f"Did you mean {' or '.join(close)}?" if close else f"Ours are {', '.join(sorted(OURS))}."
    raise ParameterError(
        "detector",
        f": there is no {detector!r}. {hint} Any other one is named by its import path, such as "
        f"'sklearn.ensemble.IsolationForest'.",
    )


def find_class(detector: str) -> Any:
    """Import the class of a detector."""
    path, _, name = import_path(detector).rpartition(".")
    try:
        return getattr(import_module(path), name)
    except AttributeError:
        raise ParameterError(detector, f": module {path} has no {name!r}. Check the import path.") from None
    except ImportError as error:
        missing = (error.name or path).partition(".")[0]
        extra = {"torch": "deep", "pyod": "peers"}.get(missing)
        how = f"pip install 'penstock[{extra}]'" if extra else f"install what provides the module {missing!r}"
        raise ParameterError(detector, f" cannot be imported ({error}): {how}.") from error
    except (Exception, SystemExit) as error:  # a user's module may do anything when it is imported
        raise ParameterError(detector, f" cannot be imported: {type(error).__name__}: {error}.") from error


def takes_seed(cls: Any) -> bool:
    """Tell whether a class has a parameter `random_state`."""
    return "random_state" in _parameter_names(cls)


def with_defaults(detector: str, parameters: Mapping[str, Any]) -> dict[str, Any]:
    """Return the parameters given, and the plain defaults of the others."""
    known, plain = _signature(find_class(detector)), (type(None), bool, int, float, str)
    defaults = {name: known[name].default for name in known if type(known[name].default) in plain}
    return defaults | dict(parameters)


def build(detector: str, parameters: Mapping[str, Any], seed: int | None = None) -> Any:
    """Make a detector from parameters as they are written in a settings file.

    >>> build("NMF", {"n_components": 2, "solver": {"Coordinate": {"profile_passes": 1}}}, seed=3)
    NMF(n_components=2, random_state=3, solver=Coordinate(profile_passes=1))
    """
    cls = find_class(detector)
    known = _parameter_names(cls)
    for name in parameters:
        if known and name not in known and "**" not in known:
            hint = did_you_mean(name, known) or f" It has {', '.join(known)}."
            raise ParameterError(detector, f" has no parameter {name!r}.{hint}")
    try:
        values = {name: _as_object(value) for name, value in parameters.items()}
        if seed is not None and "random_state" in known:
            values.setdefault("random_state", seed)
        return cls(**values)
    except ImportError as error:
        raise ParameterError(detector, f": {error}") from error
    except (TypeError, ValueError) as error:
        raise ParameterError(detector, f" cannot be made with {dict(parameters)}: {error}") from error


@dataclass(frozen=True, eq=False)
class Scored:
    """Scores of the rows (m,), high = anomalous, and of a series the evidence of each sensor (m, p) if there is any."""

    scores: FloatArray
    evidence: FloatArray | None = None


def fit_and_score(
    detector: Any,
    X: FloatArray,
    y: ArrayLike,
    *,
    time: pd.DatetimeIndex | None = None,
    groups: NDArray[Any] | None = None,
    train: BoolArray | None = None,
) -> Scored:
    """Fit a detector to all rows and return their scores; or to those of `train`, and return those of the others.

    Scores of training rows are looked for in this order: `scores_` (penstock), `decision_scores_` (PyOD), and with the
    sign of scikit-learn `negative_outlier_factor_`, `score_samples(X)`, `decision_function(X)`; of later rows:
    `score_series` and `anomaly_score` (penstock), `decision_function` (with the sign of PyOD, if it has
    `decision_scores_`), `score_samples`. Labels are given only to a detector with the attribute `uses_labels`, which is
    an oracle; times and groups only to one with a method `assess_series`.

    >>> from sklearn.neighbors import LocalOutlierFactor
    >>> rows = np.array([[0.0], [0.1], [0.2], [9.0]])
    >>> int(fit_and_score(LocalOutlierFactor(n_neighbors=2), rows, None).scores.argmax())
    3
    """
    known = np.ones(len(X), dtype=np.bool_) if train is None else train
    order: dict[str, Any] = {}
    if time is not None and hasattr(detector, "assess_series"):
        order = {"time": time, "runs": groups}
    labels = (np.asarray(y)[known],) if getattr(detector, "uses_labels", False) else ()
    detector.fit(X[known], *labels, **{name: None if each is None else each[known] for name, each in order.items()})
    if train is not None and hasattr(detector, "assess_series"):
        # As `penstock score` and `watch` do: the history begins with the first row that was not fitted to.
        later = {name: None if each is None else each[~train] for name, each in order.items()}
        found = detector.assess_series(X[~train], **later)
        return Scored(_check_scores(found.scores, int((~train).sum())), found.evidence)
    scores = _later_scores(detector, X[~train]) if train is not None else _training_scores(detector, X)
    n = len(X) if train is None else int((~train).sum())
    return Scored(_check_scores(np.asarray(scores, dtype=np.float64), n), getattr(detector, "evidence_", None))


def _training_scores(detector: Any, X: FloatArray) -> Any:
    for name, sign in (("scores_", 1.0), ("decision_scores_", 1.0), ("negative_outlier_factor_", -1.0)):
        if hasattr(detector, name):
            return sign * np.asarray(getattr(detector, name), dtype=np.float64)
    message = "has no scores that are known here: neither scores_ nor decision_scores_ after fit, nor"
    return _negated_scores(detector, X, f"{message} a method score_samples or decision_function.")


def _later_scores(detector: Any, X: FloatArray) -> Any:
    if hasattr(detector, "anomaly_score"):
        return detector.anomaly_score(X)
    if hasattr(detector, "decision_scores_"):  # of PyOD
        return detector.decision_function(X)
    message = "cannot score rows that it was not fitted to: it has no method anomaly_score,"
    return _negated_scores(detector, X, f"{message} score_samples or decision_function.")


def _negated_scores(detector: Any, X: FloatArray, message: str) -> FloatArray:
    """Return scores with scikit-learn's sign turned, or refuse the detector with this message."""
    for name in ("score_samples", "decision_function"):
        if hasattr(detector, name):
            return -np.asarray(getattr(detector, name)(X), dtype=np.float64)
    raise ParameterError(type(detector).__name__, f" {message}")


def takes_missing(detector: Any) -> bool:
    """Tell whether a detector says, as scikit-learn's do, that it takes NaN."""
    try:
        return bool(get_tags(detector).input_tags.allow_nan)
    except Exception:  # it is no estimator of scikit-learn's
        return False


def rehearse(detectors: Iterable[str], *, gaps: bool, later: bool) -> None:
    """Import detectors, and fit those of known libraries to a few rows, so that compiling is not timed in cells.

    `gaps`: values are missing in the cells to come; `later`: rows are scored that were not fitted to.
    """
    rng = np.random.default_rng(0)
    rows, labels = rng.random((64, 5)), np.arange(64) < 4
    train, time = np.arange(64) < 48 if later else None, pd.date_range("2024-05-01", periods=64, freq="h")
    for name in detectors:
        with suppress(Exception), warnings.catch_warnings():  # what fails here fails again, and is reported, in cells
            warnings.simplefilter("ignore")
            find_class(name)
            if import_path(name).partition(".")[0] in _REHEARSED:
                detector = build(name, {}, seed=0)
                X = np.where(rows < 0.05, np.nan, rows) if gaps and takes_missing(detector) else rows
                fit_and_score(detector, X, labels, time=time, train=train)


def _check_scores(scores: FloatArray, n: int) -> FloatArray:
    if scores.shape != (n,):
        raise ParameterError("scores", f" must be one number per row, {n}; they have shape {scores.shape}.")
    finite = np.isfinite(scores)
    if not finite.all():
        raise ParameterError(
            "scores", f" must be finite; {int((~finite).sum())} of {n} are not, the first in row {np.argmin(finite)}."
        )
    return scores


def _parameter_names(cls: Any) -> list[str]:
    """Return the parameters of a class, "**" among them if it takes any; an empty list if they are not known."""
    parameters = _signature(cls).values()
    kinds = inspect.Parameter
    names = [p.name for p in parameters if p.kind in (kinds.POSITIONAL_OR_KEYWORD, kinds.KEYWORD_ONLY)]
    return [*names, "**"] if any(p.kind is kinds.VAR_KEYWORD for p in parameters) else names


@cache
def _signature(cls: Any) -> Mapping[str, inspect.Parameter]:
    try:
        return inspect.signature(cls).parameters
    except (TypeError, ValueError):
        return {}


def _as_object(value: Any) -> Any:
    """Make a solver, or a detector of ours, of a table with its name, ``{BlockSGD = {rounds = 100}}``."""
    if isinstance(value, Mapping) and len(value) == 1:
        name, fields = next(iter(value.items()))
        if name in SOLVERS and isinstance(fields, Mapping):
            return getattr(import_module("penstock.factor"), name)(**fields)
        if name in OURS and isinstance(fields, Mapping):
            return build(name, fields)
    return tuple(value) if isinstance(value, list) else value
