"""Plan the cells of a study (a method on a data set with a seed) and run one of them.

A cell has a key made of the content of its data, its parameters, its seed and the releases of the packages that it
runs, so that it is run again only if one of these changed.
"""

from __future__ import annotations

import hashlib
import json
import sys
import time
import warnings
import zlib
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from importlib import invalidate_caches, metadata, util
from importlib.machinery import ModuleSpec
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from penstock._parameters import ParameterError
from penstock._types import BoolArray, FloatArray, IndexArray
from penstock.bench.datasets import Dataset, check_labels, split_causes
from penstock.bench.measures import (
    EventMeasures,
    average_precision,
    event_measures,
    highest_incident,
    resampled_precision,
    resampling_blocks,
    roc_auc,
    sensor_hits,
    vus_buffer,
    vus_pr,
)
from penstock.bench.methods import (
    build,
    find_class,
    fit_and_score,
    import_path,
    takes_missing,
    takes_seed,
    with_defaults,
)
from penstock.bench.settings import Method, Study
from penstock.explain import Incident, find_incidents
from penstock.prepare import learn_scaling
from penstock.ranking import precision_at_n, true_detections

_LIBRARIES = ("numba", "numpy", "scikit-learn", "scipy")  # their releases may change the last digits of anything
Loader = Callable[[str], Dataset]
# Attributes kept in `detail`, and those of the record `details_`, if there is one.
_FITTED = ("n_iter_", "converged_", "n_neighbors_", "objective_", "collapsed_", "explained_")
_FEWEST_ROWS_TIMED = 1000  # below, building a tree takes less time than a clock can resolve


@dataclass(frozen=True, eq=False)
class Cell:
    """A method on a data set with a seed.

    trouble : why it cannot be tried.
    resampled : whether its average precision is also that of data sets drawn from this one, for an interval.
    """

    method: Method
    dataset: str
    seed: int | None
    data: Dataset | None
    trouble: str = ""
    uses_labels: bool = False
    resampled: bool = False
    key: str = ""

    @property
    def n(self) -> int:
        """Number of rows that are fitted."""
        return 0 if self.data is None else min(self.data.n, self.method.rows or self.data.n)

    @property
    def size(self) -> int:
        """Number of values that are fitted."""
        return 0 if self.data is None else self.n * self.data.p

    def planned(self) -> dict[str, Any]:
        """Return the columns of its row that are known before it runs."""
        method, data = self.method, self.data
        anomalies, detail = 0, dict(method.detail)
        if data is not None:
            taken = taken_rows(data.n, method.order, method.rows, self.seed)
            anomalies = int(data.y[taken].sum())
            detail |= {"missing": missing} if (missing := int(np.isnan(data.X).sum())) else {}
            detail |= {"notes": list(data.notes)} if data.notes else {}
            if data.train is not None:
                later = data.y[taken][~data.train[taken]]
                detail |= {"fitted": len(taken) - len(later), "share": round(float(later.mean()), 6)}
                detail |= {"fitted_anomalies": anomalies - int(later.sum())}
        return {
            **method.labels,
            "method": method.name,
            "dataset": self.dataset if data is None else data.name,
            "seed": self.seed,
            "n": self.n,
            "p": 0 if data is None else data.p,
            "n_anomalies": anomalies,
            "key": self.key,
            "mark": method.mark,
            "detail": {**detail, **({"uses_labels": True} if self.uses_labels else {})},
        }


def plan(study: Study, load: Loader) -> Iterator[Cell]:
    """Yield all cells of a study. A data set that cannot be read is a trouble of its cells."""
    code_version.cache_clear()  # a script may have been edited since
    invalidate_caches()
    used = [name for method in study.methods for name in method.datasets or study.datasets]
    data = {name: _read(name, load) for name in dict.fromkeys(used)}
    count = Counter(dataset.name for dataset, _ in data.values() if dataset is not None)
    for given, (dataset, why) in data.items():
        if dataset is not None and count[dataset.name] > 1:  # files of one name in different folders
            data[given] = replace(dataset, name=given), why
    for method in study.methods:
        seeds, uses_labels, trouble = _seeds(method, study)
        for name in method.datasets or study.datasets:
            dataset, why = data[name]
            for seed in seeds:
                resampled = len(data) == 1 or (dataset is not None and dataset.time is not None)
                cell = Cell(method, name, seed, dataset, trouble or why, uses_labels, resampled)
                yield replace(cell, key=_key(cell))


def _read(name: str, load: Loader) -> tuple[Dataset | None, str]:
    dataset = None
    try:
        dataset = load(name)
        check_labels(dataset)
    except (EOFError, zlib.error) as error:
        return None, f"{name}: a damaged file ({error})."
    except (OSError, ValueError) as error:
        return dataset, str(error)
    return dataset, ""


def _seeds(method: Method, study: Study) -> tuple[tuple[int | None, ...], bool, str]:
    """Return the seeds of a method (None where it takes none), whether it sees the labels, why it cannot be made."""
    try:
        cls = find_class(method.detector)
        build(method.detector, method.parameters)
    except ParameterError as error:
        return (None,), False, str(error)
    except (Exception, SystemExit) as error:  # a user's class may do anything when it is made
        return (None,), False, f"{method.detector} cannot be made: {type(error).__name__}: {error}"
    random = takes_seed(cls) or method.order == "shuffled" or method.rows is not None
    seeds = (method.seeds or study.seeds) if random else (None,)
    return seeds, bool(getattr(cls, "uses_labels", False)), ""


def _key(cell: Cell) -> str:
    """Hash everything that the outcome of a cell depends on."""
    method = cell.method
    content = {
        "detector": method.detector,
        "code": cell.trouble or code_version(method.detector),
        "parameters": method.parameters if cell.trouble else with_defaults(method.detector, method.parameters),
        "order": method.order,
        "rows": method.rows,
        "data": cell.dataset if cell.data is None else cell.data.digest,
        "seed": cell.seed,
        **({"resampled": True} if cell.resampled else {}),
    }
    text = json.dumps(content, sort_keys=True, ensure_ascii=False, default=str)
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:32]


def run_cell(cell: Cell) -> dict[str, Any]:
    """Fit and measure; return the outcome of a cell, with the reason if it failed. Never raises for what a method does.

    >>> rows = np.array([[0.0], [0.1], [0.2], [0.3], [0.4], [9.0]])
    >>> data = Dataset("six", rows, np.array([0, 0, 0, 0, 0, 1]))
    >>> outcome = run_cell(Cell(Method("knn", "KNNDistance", {"n_neighbors": 2}), "six", None, data))
    >>> outcome["status"], outcome["true_detections"]
    ('ok', 1.0)
    """
    memory = _peak_memory()
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        try:
            outcome = _measure(cell)
        except MemoryError:
            outcome = failed("out of memory")
        except ParameterError as error:
            outcome = failed(str(error))
        except Exception as error:
            outcome = failed(f"{type(error).__name__}: {error}")
    outcome["peak_memory_mb"] = round(_peak_memory() - memory, 1)
    if said:
        outcome.setdefault("detail", {})["warnings"] = sorted({_one_line(str(entry.message)) for entry in said})[:3]
    return outcome


def failed(why: str, status: str = "failed") -> dict[str, Any]:
    """Return the outcome of a cell that has no scores."""
    return {"status": status, "why": _one_line(why), "detail": {}}


def _measure(cell: Cell) -> dict[str, Any]:
    data = cell.data
    assert data is not None
    taken = taken_rows(data.n, cell.method.order, cell.method.rows, cell.seed)
    X, y = np.ascontiguousarray(data.X[taken], dtype=np.float64), data.y[taken].astype(np.int64)
    train = None if data.train is None else data.train[taken]
    stamps = None if data.time is None or cell.method.order == "shuffled" else data.time[taken]
    groups = None if data.groups is None else data.groups[taken]
    fitted = slice(None) if train is None else train
    detector = build(cell.method.detector, cell.method.parameters, cell.seed)
    if not hasattr(detector, "assess_series"):  # detectors of series have units of their own
        X = learn_scaling(X[fitted]).apply(X)  # columns to [0, 1], for all others alike
    if np.isnan(X).any() and not takes_missing(detector):
        X = np.where(np.isnan(X), np.nan_to_num(np.nanmedian(X[fitted], axis=0)), X)
    wall, cpu = time.perf_counter(), time.process_time()
    found = fit_and_score(detector, X, y, time=stamps, groups=groups, train=train)
    wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
    scored = np.ones(len(X), dtype=np.bool_) if train is None else ~train
    counted = scored if data.counted is None else scored & data.counted[taken]
    y_counted, scores = y[counted], found.scores[counted[scored]]
    outcome = {
        "precision_at_n": float(precision_at_n(y_counted, scores)),
        "true_detections": float(true_detections(y_counted, scores)),
        "roc_auc": roc_auc(y_counted, scores),
        "average_precision": average_precision(y_counted, scores),
    }
    detail = _details(detector, X)
    # Rows fitted to, in between, part the others.
    edges = [each[1:] != each[:-1] for each in (groups, train) if each is not None]
    runs = np.cumsum(np.append(0, np.logical_or.reduce(edges) if edges else np.zeros(len(X) - 1, dtype=np.intp)))
    if cell.resampled:
        blocks = resampling_blocks(y_counted, None if stamps is None else stamps[counted], runs[counted])
        detail["resampled"] = [round(float(each), 4) for each in resampled_precision(y_counted, scores, blocks)]
    if stamps is not None:
        events = event_measures(y[scored], found.scores, stamps[scored], groups=runs[scored])
        first, in_three = float("nan"), float("nan")
        if data.causes is not None and found.evidence is not None and found.evidence.shape[1] == data.p:
            starts = _history_starts(stamps[scored], runs[scored])
            readings, expected, causes = X[scored], detector.expected(X[scored]), data.causes[taken][scored]
            evidence, names = found.evidence, data.names
            incidents = find_incidents(events.ranked, found.scores, evidence, expected, readings, starts, names)
            first, in_three = _named_sensors(events, incidents, causes)
        outcome |= {
            "vus_pr": vus_pr(y_counted, scores, vus_buffer(data.X[taken]), groups=runs[counted]),
            "faults": events.n_faults,
            "in_n": events.in_n,
            "in_2n": events.in_2n,
            "false_per_day": events.false_per_day,
            "delay_hours": events.delay_hours,
            "sensor_first": first,
            "sensor_in_three": in_three,
        }
        detail["events"] = _shown_events(events, stamps[scored])
    measured = {name: value if np.isfinite(value) else None for name, value in outcome.items()}
    cost = {"fit_seconds": round(wall, 6), "cpu_seconds": round(cpu, 6)}
    return {**measured, **cost, "status": "ok", "why": "", "detail": detail}


def _history_starts(stamps: pd.DatetimeIndex, runs: IndexArray) -> BoolArray:
    """Return where a run begins, or rows follow a gap of three times the usual step."""
    steps = np.diff(stamps.to_numpy()).astype(np.int64)
    return np.append(True, (steps > 3 * np.median(steps)) | (np.diff(runs) != 0))


def _named_sensors(events: EventMeasures, incidents: Sequence[Incident], causes: NDArray[Any]) -> tuple[float, float]:
    """Return how often a true sensor is named first, and among three, of the faults among the first 2N events."""
    named, true = [], []
    for first, last in zip(events.first_rows.tolist(), events.last_rows.tolist(), strict=True):
        behind = {name for text in causes[first : last + 1] for name in split_causes(text)}
        incident = highest_incident(incidents, first, last)
        if behind and incident is not None:
            named.append([sensor.name for sensor in incident.sensors])
            true.append(behind)
    return sensor_hits(named, true)


def _shown_events(events: EventMeasures, stamps: pd.DatetimeIndex) -> dict[str, Any]:
    """Return what a picture of the faults and the first 2N events needs: rows, and whether each event is a hit."""
    ranked = events.ranked
    spans = zip(ranked.first_rows.tolist(), ranked.last_rows.tolist(), strict=True)
    shown = [[*span, int(hit)] for span, hit in zip(spans, events.hits, strict=True)]
    faults = zip(events.first_rows.tolist(), events.last_rows.tolist(), strict=True)
    return {
        "rows": len(stamps),
        "begin": str(stamps.min()),
        "end": str(stamps.max()),
        "faults": [list(span) for span in faults],
        "found": shown,
    }


def taken_rows(n: int, order: str, rows: int | None, seed: int | None) -> NDArray[np.intp]:
    """Choose which of n rows are fitted, in which order. Measures do not depend on the order."""
    if order == "file" and rows is None:
        return np.arange(n)
    drawn = np.random.default_rng(seed or 0).permutation(n)[:rows]
    return drawn if order == "shuffled" else np.sort(drawn)


def _details(detector: Any, X: FloatArray) -> dict[str, Any]:
    """Collect numbers that a fitted detector has, and the time of its spanning tree alone."""
    values = {name.rstrip("_"): np.asarray(getattr(detector, name)) for name in _FITTED if hasattr(detector, name)}
    values |= {name: np.asarray(value) for name, value in getattr(detector, "details_", {}).items()}
    found = {name: value.item() for name, value in values.items() if value.ndim == 0 and value.dtype.kind in "biuf"}
    if hasattr(detector, "tree_") and len(X) >= _FEWEST_ROWS_TIMED:
        from penstock.graph.mst import minimum_spanning_tree

        started = time.perf_counter()
        minimum_spanning_tree(X)
        found["tree_seconds"] = round(time.perf_counter() - started, 6)
    return {name: value for name, value in found.items() if np.isfinite(value)}


def _peak_memory() -> float:
    """Return the most memory that this process has held so far, in MB."""
    import resource  # which Windows has not; measures can be used there

    unit = 2**20 if sys.platform == "darwin" else 2**10
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / unit


def _one_line(text: str) -> str:
    return " ".join(text.split())[:500]


@cache
def code_version(detector: str) -> str:
    """Return a text that names the code of a detector: releases of packages, and of a script the hash of its file.

    What a script imports is not looked at.
    """
    module = import_path(detector).rpartition(".")[0]
    owners = owners_of_modules().get(module.partition(".")[0], [])
    names = [_release(name) for name in dict.fromkeys(["penstock", *sorted(owners), *_LIBRARIES])]
    origin = getattr(_find_spec(module), "origin", None)
    if not owners and origin is not None and Path(origin).is_file():
        names.append(hashlib.sha256(Path(origin).read_bytes()).hexdigest())
    return ", ".join(names)


@cache
def owners_of_modules() -> Mapping[str, list[str]]:
    """Return which installed packages the top-level modules belong to."""
    return metadata.packages_distributions()


@cache
def _release(package: str) -> str:
    try:
        return f"{package}=={metadata.version(package)}"
    except metadata.PackageNotFoundError:
        return package


def _find_spec(module: str) -> ModuleSpec | None:
    try:
        return util.find_spec(module)
    except Exception:  # it imports the packages around the module, which may fail
        return None
