"""Plan the cells of a study (a method on a data set with a seed) and run one of them.

A cell has a key made of the content of its data, its parameters, its seed and the code that it runs, so that it is run
again only if one of these changed.
"""

from __future__ import annotations

import hashlib
import json
import sys
import time
import warnings
import zlib
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from penstock._types import FloatArray
from penstock.bench.code_digest import code_digest, forget_digests, judging_digest
from penstock.bench.datasets import Dataset
from penstock.bench.methods import MethodError, build, find_class, takes_seed, training_scores, with_defaults
from penstock.bench.metrics import average_precision, precision_at_n, roc_auc, true_detections
from penstock.bench.settings import Method, Study
from penstock.prepare import learn_scaling

Loader = Callable[[str], Dataset]
_FITTED = ("n_iter_", "converged_", "n_neighbors_", "objective_", "collapsed_")  # attributes kept in `detail`
_FEWEST_ROWS_TIMED = 1000  # below, building a tree takes less time than a clock can resolve


@dataclass(frozen=True, eq=False)
class Cell:
    """A method on a data set with a seed. `trouble` says why it cannot be tried."""

    method: Method
    dataset: str
    seed: int | None
    data: Dataset | None
    trouble: str = ""
    uses_labels: bool = False
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
        anomalies = 0
        if data is not None:
            anomalies = int(data.y[taken_rows(data.n, method.order, method.rows, self.seed)].sum())
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
            "detail": {**method.detail, **({"uses_labels": True} if self.uses_labels else {})},
        }


def plan(study: Study, load: Loader) -> Iterator[Cell]:
    """Yield all cells of a study. A data set that cannot be read is a trouble of its cells."""
    forget_digests()
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
                cell = Cell(method, name, seed, dataset, trouble or why, uses_labels)
                yield replace(cell, key=_key(cell))


def _read(name: str, load: Loader) -> tuple[Dataset | None, str]:
    try:
        dataset = load(name)
    except (EOFError, zlib.error) as error:
        return None, f"{name}: a damaged file ({error})."
    except (OSError, ValueError) as error:
        return None, str(error)
    if dataset.n_anomalies in (0, dataset.n):
        none_or_all = "no anomaly" if dataset.n_anomalies == 0 else "nothing but anomalies"
        return dataset, f"Data set {dataset.name} has {none_or_all}: there is nothing to tell apart."
    return dataset, ""


def _seeds(method: Method, study: Study) -> tuple[tuple[int | None, ...], bool, str]:
    """Return the seeds of a method (None where it takes none), whether it sees the labels, why it cannot be made."""
    try:
        cls = find_class(method.detector)
        build(method.detector, method.parameters)
    except MethodError as error:
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
        "code": cell.trouble or code_digest(method.detector),
        "judged by": judging_digest(),
        "parameters": method.parameters if cell.trouble else with_defaults(method.detector, method.parameters),
        "order": method.order,
        "rows": method.rows,
        "data": cell.dataset if cell.data is None else cell.data.digest,
        "seed": cell.seed,
    }
    text = json.dumps(content, sort_keys=True, ensure_ascii=False, default=str)
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:32]


def run_cell(cell: Cell) -> dict[str, Any]:
    """Fit and judge; return the outcome of a cell, with the reason if it failed. Never raises for what a method does.

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
            outcome = _judge(cell)
        except MemoryError:
            outcome = failed("out of memory")
        except MethodError as error:
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


def _judge(cell: Cell) -> dict[str, Any]:
    assert cell.data is not None
    taken = taken_rows(cell.data.n, cell.method.order, cell.method.rows, cell.seed)
    X = np.ascontiguousarray(cell.data.X[taken], dtype=np.float64)
    X, y = learn_scaling(X).apply(X), cell.data.y[taken].astype(np.int64)  # columns to [0, 1], for all methods alike
    detector = build(cell.method.detector, cell.method.parameters, cell.seed)
    wall, cpu = time.perf_counter(), time.process_time()
    scores = training_scores(detector, X, y)
    wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
    return {
        "precision_at_n": float(precision_at_n(y, scores)),
        "true_detections": float(true_detections(y, scores)),
        "roc_auc": roc_auc(y, scores),
        "average_precision": average_precision(y, scores),
        "fit_seconds": round(wall, 6),
        "cpu_seconds": round(cpu, 6),
        "status": "ok",
        "why": "",
        "detail": _details(detector, X),
    }


def taken_rows(n: int, order: str, rows: int | None, seed: int | None) -> NDArray[np.intp]:
    """Choose which of n rows are fitted, in which order. Measures do not depend on the order.

    >>> taken_rows(5, "file", 3, seed=0).tolist()
    [2, 3, 4]
    """
    if order == "file" and rows is None:
        return np.arange(n)
    drawn = np.random.default_rng(seed or 0).permutation(n)[:rows]
    return drawn if order == "shuffled" else np.sort(drawn)


def _details(detector: Any, X: FloatArray) -> dict[str, Any]:
    """Collect numbers that a fitted detector has, and the time of its spanning tree alone."""
    found = {name.rstrip("_"): _plain(getattr(detector, name)) for name in _FITTED if hasattr(detector, name)}
    if hasattr(detector, "tree_") and len(X) >= _FEWEST_ROWS_TIMED:
        from penstock.graph.mst import minimum_spanning_tree

        started = time.perf_counter()
        minimum_spanning_tree(X)
        found["tree_seconds"] = round(time.perf_counter() - started, 6)
    return {name: value for name, value in found.items() if value is not None}


def _plain(value: Any) -> Any:
    """Return a number or truth value that JSON can hold, else None."""
    if isinstance(value, bool | np.bool_):
        return bool(value)
    if isinstance(value, int | np.integer):
        return int(value)
    return float(value) if isinstance(value, float | np.floating) and np.isfinite(value) else None


def _peak_memory() -> float:
    """Return the most memory that this process has held so far, in MB; 0 where the system does not tell."""
    if sys.platform == "win32":
        return 0.0
    import resource

    unit = 2**20 if sys.platform == "darwin" else 2**10
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / unit


def _one_line(text: str) -> str:
    return " ".join(text.split())[:500]
