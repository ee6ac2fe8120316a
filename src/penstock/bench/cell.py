"""One cell of a study: a method on a data set with a seed; what came of it, measured."""

from __future__ import annotations

import sys
import time
import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from penstock._types import FloatArray
from penstock.bench.methods import MethodError, build
from penstock.bench.metrics import average_precision, precision_at_n, roc_auc, true_detections
from penstock.bench.training_scores import ScoresError, training_scores
from penstock.prepare import learn_scaling

# What a fitted detector says about itself.
_TOLD = ("n_iter_", "converged_", "n_neighbors_", "objective_", "collapsed_")
_FEWEST_ROWS_TIMED = 1000  # below, a tree takes less than a clock can tell


@dataclass(frozen=True, eq=False)
class Job:
    """All that a worker needs to run a cell; it crosses a pipe."""

    key: str
    detector: str
    parameters: Mapping[str, Any]
    seed: int | None
    order: str
    rows: int | None
    X: FloatArray
    y: NDArray[np.int64]
    mark: str = ""
    threads: int = 1


def run_cell(job: Job) -> dict[str, Any]:
    """Fit and judge: the outcome of a cell, with the reason if it failed. Never raises for what a method does.

    >>> rows = np.array([[0.0], [0.1], [0.2], [0.3], [0.4], [9.0]])
    >>> outcome = run_cell(Job("k", "KNNDistance", {"n_neighbors": 2}, None, "file", None, rows, rows[:, 0] > 1))
    >>> outcome["status"], outcome["true_detections"]
    ('ok', 1.0)
    """
    memory = peak_memory()
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        try:
            outcome = _judge(job)
        except MemoryError:
            outcome = failed("out of memory")
        except (MethodError, ScoresError) as error:
            outcome = failed(str(error))
        except Exception as error:
            outcome = failed(f"{type(error).__name__}: {error}")
    outcome["peak_memory_mb"] = round(peak_memory() - memory, 1)
    if said:
        outcome.setdefault("detail", {})["warnings"] = sorted({_one_line(str(entry.message)) for entry in said})[:3]
    return {"key": job.key, "mark": job.mark} | outcome


def failed(why: str, status: str = "failed") -> dict[str, Any]:
    """The outcome of a cell that has no scores."""
    return {"status": status, "why": _one_line(why), "detail": {}}


def peak_memory() -> float:
    """The most memory that this process has held so far, in MB; 0 where the system does not say."""
    if sys.platform == "win32":
        return 0.0
    import resource

    unit = 2**20 if sys.platform == "darwin" else 2**10
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / unit


def _judge(job: Job) -> dict[str, Any]:
    taken = taken_rows(len(job.X), job.order, job.rows, job.seed)
    X, y = scaled(job.X[taken]), job.y[taken].astype(np.int64)
    detector = build(job.detector, job.parameters, job.seed)
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


def scaled(X: FloatArray) -> FloatArray:
    """Columns taken to [0, 1], for all methods alike, as in the paper's data sets; constant ones to 0.

    >>> scaled(np.array([[2.0, 7.0], [4.0, 7.0]])).tolist()
    [[0.0, 0.0], [1.0, 0.0]]
    """
    X = np.ascontiguousarray(X, dtype=np.float64)
    return learn_scaling(X).apply(X)


def taken_rows(n: int, order: str, rows: int | None, seed: int | None) -> NDArray[np.intp]:
    """Which of n rows are fitted, in which order; measures do not depend on the order, so scores need not go back.

    >>> taken_rows(5, "file", 3, seed=0).tolist()
    [2, 3, 4]
    """
    if order == "file" and rows is None:
        return np.arange(n)
    drawn = np.random.default_rng(seed or 0).permutation(n)[:rows]
    return drawn if order == "shuffled" else np.sort(drawn)


def _details(detector: Any, X: FloatArray) -> dict[str, Any]:
    told = {name.rstrip("_"): _plain(getattr(detector, name)) for name in _TOLD if hasattr(detector, name)}
    if hasattr(detector, "tree_") and len(X) >= _FEWEST_ROWS_TIMED:
        told["tree_seconds"] = _tree_seconds(X)
    return {name: value for name, value in told.items() if value is not None}


def _tree_seconds(X: FloatArray) -> float:
    """How long the spanning tree alone takes: the paper says that it dominates."""
    from penstock.graph.mst import minimum_spanning_tree

    begun = time.perf_counter()
    minimum_spanning_tree(X)
    return round(time.perf_counter() - begun, 6)


def _plain(value: Any) -> Any:
    """A number or truth value that JSON can hold, else None."""
    if isinstance(value, bool | np.bool_):
        return bool(value)
    if isinstance(value, int | np.integer):
        return int(value)
    if isinstance(value, float | np.floating) and np.isfinite(value):
        return float(value)
    return None


def _one_line(text: str) -> str:
    return " ".join(text.split())[:500]
