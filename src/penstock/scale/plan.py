"""How many parts the rows are cut into, and whether workers and disk can hold what they will be asked to."""

from __future__ import annotations

import math
import shutil
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from penstock.scale.cluster import Cluster, ClusterError
from penstock.scale.workspace import read_json, write_json

_MOST_PARTS = 4096  # pairs of parts are tasks: beyond this the scheduler is the bottleneck
_FEWEST_ROWS = 2000  # of a part: less is not worth a task
_PARTS_PER_THREAD = 4
_USABLE = 0.6  # of a worker's limit: above it Dask begins to move what it keeps to disk
_AT_REST = 315 * 2**20  # what a worker takes with all libraries loaded, after its first tasks


@dataclass(frozen=True)
class Plan:
    n_parts: int
    run_rows: int  # rows that are spread at once


def plan_parts(cluster: Cluster, n: int, p: int, asked: int | None) -> Plan:
    """Parts small enough for the worker with the least memory, and enough of them to keep all workers busy."""
    room = _USABLE * cluster.memory_per_thread - _AT_REST
    needed = math.ceil(n * part_bytes(p) / room) if room > 0 else _MOST_PARTS + 1
    if needed > _MOST_PARTS:
        limit = cluster.memory_per_thread / 2**20
        raise ClusterError(
            f"Workers have {limit:,.0f} MiB for each thread, of which the libraries alone take "
            f"{_AT_REST / 2**20:.0f} MiB: too little for {n:,} rows of {p} columns. Give them at least "
            f"{_least_limit(n, p) / 2**20:,.0f} MiB for each thread (memory_limit), or use fewer threads per worker."
        )
    if asked is not None and asked < needed:
        raise ClusterError(
            f"{asked} parts of {n:,} rows of {p} columns do not fit into the workers' memory: at least {needed} are "
            f"needed. Ask for more parts (or blocks of the solver), or give workers more memory."
        )
    wished = min(_PARTS_PER_THREAD * cluster.n_threads, max(1, n // _FEWEST_ROWS))
    run_rows = min(max(1, n), 1 << 18) if math.isinf(room) else int(min(1 << 18, max(1024, room // (40 * p + 64))))
    return Plan(asked or max(needed, wished), run_rows)


def settled_plan(file: Path, cluster: Cluster, n: int, p: int, asked: int | None) -> Plan:
    """The plan of a job: what was planned when it began, though the cluster may have changed since."""
    if not file.exists():
        write_json(file, asdict(plan_parts(cluster, n, p, asked)))
    plan = Plan(**read_json(file))
    plan_parts(cluster, n, p, plan.n_parts)  # refuses if its parts do not fit into the workers of now
    return plan


def part_bytes(p: int) -> int:
    """What growing the tree of a part takes for each row: the rows several times over, searchable copies, and lists."""
    return 75 * p + 300


def _least_limit(n: int, p: int) -> float:
    return (_AT_REST + n * part_bytes(p) / _MOST_PARTS) / _USABLE * 1.1


def check_disk(folder: Path, n: int, p: int, n_components: int) -> None:
    """Refuse to begin what the disk cannot hold."""
    needed = n * (36 * p + 24 * n_components + 300)
    free = shutil.disk_usage(folder).free
    if needed > 0.95 * free:
        raise ClusterError(
            f"The job needs about {needed / 1e9:,.1f} GB on disk, but {folder} has {free / 1e9:,.1f} GB left. Give "
            f"another folder."
        )


def check_memory_for_model(cluster: Cluster, detector: Any) -> None:
    """Refuse to begin if a worker could not hold the detector: its rows, and the tree by which they are searched."""
    if not getattr(detector, "_compares_rows", True):
        return
    needed = len(detector.scores_) * part_bytes(detector.n_features_in_)
    room = _USABLE * cluster.memory_per_thread - _AT_REST
    if needed > room:
        raise ClusterError(
            f"To score new rows each worker needs the {len(detector.scores_):,} rows that the detector was fitted on, "
            f"about {needed / 2**20:,.0f} MiB, and has {max(room, 0) / 2**20:,.0f} MiB for each thread. Use fewer, "
            f"larger workers."
        )


def check_memory_for_result(n: int, p: int, n_components: int) -> None:
    """Refuse to begin what this process could not hold in the end."""
    import psutil

    needed = n * (8 * p + 24 * n_components + 120)
    available = psutil.virtual_memory().available
    if needed > 0.7 * available:
        raise ClusterError(
            f"The fitted detector would take about {needed / 1e9:,.1f} GB of this process's memory, and "
            f"{available / 1e9:,.1f} GB are available. Give a folder, and it stays in files."
        )
