"""List every detector and threshold once: class, name on the command line, summary, parameters for tests.

`penstock.__getattr__`, `penstock.load`, `--method`, `--threshold`, `penstock bench`, the estimator checks and
docs/which_detector.md follow these tables. To add a detector, write its file and add one line here.

Classes are imported when they are asked for, so that this module takes no time to import.
"""

from __future__ import annotations

from importlib import import_module

TYPE_CHECKING = False  # as in `typing`, whose import takes longer than this module's
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from typing import Any


class Entry:
    """Describe one class.

    module : where it is defined. Saved files name only classes listed here.
    method : its name on the command line; None if it can be loaded but is not offered.
    summary : what it does, in one line.
    checks : constructor arguments with which the estimator checks run.
    """

    def __init__(self, module: str, method: str | None, summary: str, checks: Mapping[str, Any] | None = None) -> None:
        self.module = module
        self.method = method
        self.summary = summary
        self.checks = dict(checks or {})


_SEED = {"random_state": 0}
_QUICK = {"max_iter": 30, "random_state": 0}
_DETECTORS, _THRESHOLDS = "penstock.detectors", "penstock.thresholds"
# fmt: off
DETECTORS: dict[str, Entry] = {
    "Detector": Entry(f"{_DETECTORS}.recommended", "detector", "Two highest of four views of a row; nothing to tune."),
    "SensorDetector": Entry(f"{_DETECTORS}.sensors", "sensors", "Sensors scored by each other over time."),
    "OverTime": Entry(f"{_DETECTORS}.over_time", "over-time", "Any detector of rows over time; NS-NMF by default."),
    "NSNMF": Entry(f"{_DETECTORS}.nsnmf", "nsnmf", "The paper's NS-NMF: NMF of rows and their spanning tree.", _SEED),
    "LaplacianNSNMF": Entry(f"{_DETECTORS}.nsnmf", "laplacian", "NS-NMF whose tree term is a graph Laplacian.", _SEED),
    "OnlineNSNMF": Entry(f"{_DETECTORS}.online", "online", "NS-NMF of a stream: score a row, then learn it.", _SEED),
    "NMF": Entry(f"{_DETECTORS}.nmf", "nmf", "Non-negative matrix factorisation alone.", {"n_components": 2, **_SEED}),
    "GNMF": Entry(f"{_DETECTORS}.gnmf", "gnmf", "NMF with a graph of nearest neighbours (Cai et al. 2011).", _SEED),
    "SNMF": Entry(f"{_DETECTORS}.snmf", "snmf", "Symmetric NMF of the full Gaussian graph, as in the paper.", _SEED),
    "LoMST": Entry(f"{_DETECTORS}.lomst", "lomst", "Spanning trees of nearest neighbours (Ahmed et al. 2019)."),
    "MeanDistance": Entry(f"{_DETECTORS}.controls", "mean", "Distance to the mean of the rows: a control."),
    "KNNDistance": Entry(f"{_DETECTORS}.controls", "knn", "Distance to the k-th nearest row: a control."),
    "NormScore": Entry(f"{_DETECTORS}.controls", "norm", "Length of the scaled row: a control."),
    "AER": Entry("studies.ahmed2021.deep", None, "Autoencoder of the paper's study.", _QUICK),
    "DAGMM": Entry("studies.ahmed2021.deep", None, "Deep autoencoding Gaussian mixture of the paper's study.", _QUICK),
}
THRESHOLDS: dict[str, Entry] = {
    "ConformalPValue": Entry(f"{_THRESHOLDS}.quantile", "conformal", "p-value among the last scores."),
    "MeanDeviation": Entry(f"{_THRESHOLDS}.basic", "deviation", "Mean plus k standard deviations."),
    "DriftingPeaks": Entry(f"{_THRESHOLDS}.peaks", "drifting-peaks", "As peaks, above a moving mean."),
    "Fixed": Entry(f"{_THRESHOLDS}.basic", "fixed", "A given value.", {"value": 1.0}),
    "PeaksOverThreshold": Entry(f"{_THRESHOLDS}.peaks", "peaks", "Pareto tail of the highest scores."),
    "RollingQuantile": Entry(f"{_THRESHOLDS}.quantile", "quantile", "Quantile of the last scores."),
    "TopN": Entry(f"{_THRESHOLDS}.basic", "top", "The n highest scores so far."),
}
# fmt: on
METHODS = tuple(entry.method for entry in DETECTORS.values() if entry.method)
AUTO, DEFAULT_METHOD, SERIES_METHOD, PAPERS_METHOD = "auto", "detector", "sensors", "nsnmf"


def find_detector(name: str) -> str:
    """Return the class name of a detector given by its class name or its name on the command line, in any case.

    >>> find_detector("knn"), find_detector("KNNDistance"), find_detector("NSNMF")
    ('KNNDistance', 'KNNDistance', 'NSNMF')
    >>> find_detector("nsmf")
    Traceback (most recent call last):
    ValueError: There is no method 'nsmf'. Did you mean 'nsnmf'? There are detector, sensors, over-time, ...
    """
    return _find(name, DETECTORS, "method")


def find_threshold(name: str, also: Iterable[str] = ()) -> str:
    """Return the class name of a threshold given by its class name or its name on the command line, in any case.

    also : other names that the caller takes, for the error message.

    >>> find_threshold("quantile")
    'RollingQuantile'
    """
    return _find(name, THRESHOLDS, "threshold", also)


def detector_class(name: str) -> Any:
    """Return the class of a detector, by its class name or its name on the command line.

    >>> detector_class("lomst").__name__
    'LoMST'
    """
    found = find_detector(name)
    return _imported(DETECTORS[found], found)


def threshold_class(name: str) -> Any:
    """Return the class of a threshold, by its class name or its name on the command line."""
    found = find_threshold(name)
    return _imported(THRESHOLDS[found], found)


def make_detector(method: Any, random_state: Any = 0, **parameters: Any) -> Any:
    """Make a detector, not fitted.

    Parameters
    ----------
    method : str or detector
        A class name, or a name on the command line. A detector is returned as it is.
    random_state : int, RandomState or None, default=0
        Seed for methods that draw random numbers.
    **parameters :
        Of the class. Those that are None keep the default of the class.

    Examples
    --------
    >>> make_detector("nsnmf", n_components=3)
    NSNMF(n_components=3, random_state=0)
    >>> make_detector("mean")
    MeanDistance()
    """
    if not isinstance(method, str):
        if isinstance(method, type) or not hasattr(method, "anomaly_score"):
            raise TypeError(
                f"method must be a name ({', '.join(METHODS)}) or a detector of penstock; got {method!r:.100}."
            )
        for name, value in parameters.items():
            if value is not None:
                raise ValueError(f"{name} has no effect on a detector that is made already. Give it to its class.")
        return method
    cls = detector_class(method)
    given = {name: value for name, value in parameters.items() if value is not None}
    known = parameter_names(cls)
    for name in given:
        if name not in known:
            able = [each for each in METHODS if name in parameter_names(detector_class(each))]
            others = f" The methods that have it: {', '.join(able)}." if able else ""
            raise ValueError(f"{cls.__name__} has no parameter {name!r}. It has {', '.join(known)}.{others}")
    if "random_state" in known:
        given["random_state"] = random_state
    return cls(**given)


def parameter_names(cls: Any) -> list[str]:
    """Return the names of a class's constructor arguments."""
    from inspect import signature

    return list(signature(cls).parameters)


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """Return a sentence with the closest known name, preceded by a space; "" if none is close.

    >>> did_you_mean("windw", ["rate", "window"])
    " Did you mean 'window'?"
    """
    from difflib import get_close_matches

    close = get_close_matches(name, list(known), n=1)
    return f" Did you mean {close[0]!r}?" if close else ""


def _find(name: str, entries: Mapping[str, Entry], kind: str, also: Iterable[str] = ()) -> str:
    wanted = name.lower()
    for cls, entry in entries.items():
        if wanted in (entry.method, cls.lower()):
            return cls
    known = [*also, *(entry.method for entry in entries.values() if entry.method)]
    raise ValueError(f"There is no {kind} {name!r}.{did_you_mean(wanted, known)} There are {', '.join(known)}.")


def _imported(entry: Entry, name: str) -> Any:
    try:
        return getattr(import_module(entry.module), name)
    except ModuleNotFoundError as error:
        if entry.module.startswith("penstock."):
            raise
        raise ImportError(
            f"{name} is defined in {entry.module}, which cannot be imported here ({error}). It is part of penstock's "
            f"repository, not of the installed package."
        ) from error
