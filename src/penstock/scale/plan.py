"""How many parts the rows are cut into, and whether workers and disk can hold what they will be asked to."""

from __future__ import annotations

import math
import shutil
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from penstock.detectors.views import BLOCK
from penstock.factor.start import basis_size
from penstock.scale.cluster import Cluster, ClusterError
from penstock.scale.sources import Source
from penstock.scale.workspace import Workspace

MOST_PARTS = 4096  # pairs of parts are tasks: beyond this the scheduler is the bottleneck
_FEWEST_ROWS = 2000  # of a part: less is not worth a task
_PARTS_PER_THREAD = 4
_RUNS_PER_THREAD = 4
_MOST_SPREAD = 1 << 18
_USABLE = 0.65  # of a worker's limit: at 0.8 Dask lets it pause, and some memory is never given back (see _AT_REST)
_UNEVEN = 1.3  # times the mean: the largest part, where few rows are equal
_AT_REST = 315 * 2**20  # what a worker takes with all libraries loaded, after its first tasks; after thousands, 30 more


@dataclass(frozen=True)
class Plan:
    """How a job cuts its rows."""

    n_parts: int
    run_rows: int  # rows that are sorted by part at once
    task_rows: int  # rows that a task of a `Detector` goes through: whole blocks of its sums


def room_for_a_task(cluster: Cluster) -> float:
    """Return the bytes that a task may take, on the worker that has least; infinite if none has a limit."""
    return _USABLE * cluster.memory_per_thread - _AT_REST


def plan_parts(cluster: Cluster, n: int, p: int, n_components: int, asked: int | None) -> Plan:
    """Parts small enough for the worker with the least memory, and enough of them to keep all workers busy."""
    room, bytes_per_row = room_for_a_task(cluster), max(part_bytes(p), state_bytes(n_components))
    needed = math.ceil(_UNEVEN * n * bytes_per_row / room) if room > 0 else MOST_PARTS + 1
    if needed > MOST_PARTS:
        limit, least = cluster.memory_per_thread, (_AT_REST + _UNEVEN * n * bytes_per_row / MOST_PARTS) / _USABLE * 1.1
        raise ClusterError(
            f"Workers have {limit / 2**20:,.0f} MiB for each thread, of which the libraries alone take "
            f"{_AT_REST / 2**20:.0f} MiB: too little for {n:,} rows of {p} columns. Give them at least "
            f"{least / 2**20:,.0f} MiB for each thread (memory_limit), or use fewer threads per worker."
        )
    if asked is not None and asked < needed:
        raise ClusterError(
            f"{asked} parts of {n:,} rows of {p} columns do not fit into the workers' memory: at least {needed} are "
            f"needed. Ask for more parts (or blocks of the solver), or give workers more memory."
        )
    wished = min(_PARTS_PER_THREAD * cluster.n_threads, max(1, n // _FEWEST_ROWS))
    run_rows = _MOST_SPREAD if math.isinf(room) else int(min(_MOST_SPREAD, max(1024, room // (40 * p + 64))))
    fair = math.ceil(n / (_RUNS_PER_THREAD * cluster.n_threads))
    return Plan(asked or max(needed, wished), run_rows, max(1, min(fair, run_rows) // BLOCK) * BLOCK)


def settled_plan(
    space: Workspace, cluster: Cluster, n: int, p: int, n_components: int, asked: int | None, *, tables: int = 1
) -> Plan:
    """Return the plan of a job: what was planned when it began, though the cluster may have changed since.

    tables : how many tables of this size the folder will hold.
    """

    def make() -> dict[str, Any]:
        check_disk(space.folder, n, tables * p, n_components)
        return asdict(plan_parts(cluster, n, p, n_components, asked))

    plan = Plan(**space.keep("plan", make))
    plan_parts(cluster, n, p, n_components, plan.n_parts)  # refuses if its parts do not fit into the workers of now
    return plan


def check_pieces(cluster: Cluster, source: Source) -> None:
    """Refuse a source whose pieces, loaded whole, would not fit into a worker."""
    largest = max(source.pieces, key=lambda piece: piece.n_rows)
    n = largest.n_rows
    what = f"{largest.label} has {n:,} rows of {source.n_columns} columns, to be loaded at once. That takes"
    way_out = "Write smaller row groups, chunks or partitions, or give workers more memory."
    _check_room(cluster, n * (24 * source.n_columns + 64), what, way_out)


def check_largest_part(cluster: Cluster, n_rows: int, bytes_per_row: int) -> None:
    """Refuse to go on if so many rows are equal, and thus in one part, that it does not fit into a worker."""
    way_out = (
        "More parts do not help: rows that are equal are always together. Give workers more memory, or leave out rows "
        "that repeat."
    )
    _check_room(cluster, n_rows * bytes_per_row, f"One part has {n_rows:,} rows, which take", way_out)


def _check_room(cluster: Cluster, needed: float, what: str, way_out: str) -> None:
    room = room_for_a_task(cluster)
    if needed > room:
        raise ClusterError(
            f"{what} about {needed / 2**20:,.0f} MiB, and a worker has {max(room, 0) / 2**20:,.0f} MiB for each "
            f"thread. {way_out}"
        )


def group_count(cluster: Cluster, n: int, n_components: int, n_blocks: int) -> int:
    """Into how many groups blocks are put: one for each thread, more where a group's weights would not fit."""
    room = room_for_a_task(cluster)
    fitting = 1 if math.isinf(room) else math.ceil(n * state_bytes(n_components) / room)
    return max(1, min(n_blocks, max(cluster.n_threads, fitting)))


def state_bytes(n_components: int) -> int:
    """Estimate the bytes per row of the largest step of the factorisation: a basis of eigenvectors before and after."""
    return 8 * (2 * basis_size(n_components) + 4 * n_components) + 64


def gather_bytes(p: int) -> int:
    """Estimate the bytes per row of gathering a part: the rows as they lie and in order, and their numbers."""
    return 24 * p + 64


def part_bytes(p: int) -> int:
    """Estimate the bytes per row of growing the tree of a part: several copies of the rows, and lists."""
    return 75 * p + 300


def check_disk(folder: Path, n: int, p: int, n_components: int) -> None:
    """Refuse to begin what the disk cannot hold."""
    needed = n * (44 * p + 48 * n_components + 300)
    free = shutil.disk_usage(folder).free
    if needed > 0.95 * free:
        raise ClusterError(
            f"The job needs about {needed / 1e9:,.1f} GB on disk, but {folder} has {free / 1e9:,.1f} GB left. Give "
            f"another folder."
        )


def check_memory_of_driver(n: int, p: int, n_components: int, *, keeps_files: bool) -> None:
    """Refuse to begin what this process could not hold: edges and similarities, and without a folder all rows too."""
    import psutil

    needed = n * (24 * n_components + 300 + (0 if keeps_files else 8 * p))
    available = psutil.virtual_memory().available
    if needed > 0.7 * available:
        way_out = "Use a machine with more." if keeps_files else "Give a folder, and rows stay in files."
        raise ClusterError(
            f"This process would need about {needed / 1e9:,.1f} GB of memory for the tree and the result, and "
            f"{available / 1e9:,.1f} GB are available. {way_out}"
        )
