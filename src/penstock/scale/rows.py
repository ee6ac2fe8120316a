"""Read a source, scale its rows into one file, and cut them into parts of near rows.

A source is read twice: once for the range of its columns, once to scale its rows. All later steps read the file.
"""

from __future__ import annotations

import math
import shutil
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from penstock._types import FloatArray, IndexArray
from penstock.detectors import LARGEST_VALUE
from penstock.detectors.views import BLOCK
from penstock.graph.partition import Partition, local_order, merge_samples, plan_partition, sample_distinct, sample_size
from penstock.graph.rows import first_copies
from penstock.io import TableError
from penstock.prepare import MinMaxScaling
from penstock.scale.cluster import Cluster
from penstock.scale.plan import Plan, check_largest_part, gather_bytes, part_bytes
from penstock.scale.sources import Piece, Source, read_piece, taking_missing
from penstock.scale.workspace import (
    Workspace,
    create_array,
    fill_rows,
    open_array,
    open_arrays,
    read_json,
    save_array,
    save_arrays,
    write_json,
)

_RUNS_PER_THREAD = 4


@dataclass(frozen=True)
class Extent:
    """The number of rows, and the range of each column (NaN without rows)."""

    n_rows: int
    minimum: FloatArray
    maximum: FloatArray

    @classmethod
    def of(cls, rows: FloatArray) -> Extent:
        nothing = np.full(rows.shape[1], np.nan)
        return cls(len(rows), np.fmin.reduce(rows), np.fmax.reduce(rows)) if len(rows) else cls(0, nothing, nothing)

    def check_still(self, rows: FloatArray, label: str) -> None:
        """Raise if rows are not those that had this extent: they would be scaled by a range that is not theirs."""
        now = Extent.of(rows)
        pairs = ((self.minimum, now.minimum), (self.maximum, now.maximum))
        if now.n_rows != self.n_rows or not all(np.array_equal(*pair, equal_nan=True) for pair in pairs):
            raise TableError(
                f"{label} has changed since it was first read. Begin anew when nothing writes to it any more."
            )


def given(piece: Piece) -> tuple[Any, str]:
    """Return the first arguments of a task on a piece: the piece itself or its Dask block; and its label."""
    return (piece if piece.delayed is None else piece.delayed), piece.label


def measure(cluster: Cluster, space: Workspace, source: Source, *, takes_missing: bool = False) -> list[Extent]:
    """Find the extent of each piece of a source: the first pass over it."""
    folder = space / "extents"
    if not folder.exists():
        pieces = [(*given(piece), source.columns, source.n_columns, takes_missing) for piece in source.pieces]
        found = cluster.run("looking at the rows", measure_piece, pieces)
        if not sum(extent.n_rows for extent in found):
            raise TableError("The source has no rows.")
        lows, highs = (np.array([getattr(extent, side) for extent in found]) for side in ("minimum", "maximum"))
        counts = np.array([extent.n_rows for extent in found], dtype=np.int64)
        save_arrays(folder, {"counts": counts, "lows": lows, "highs": highs})
    arrays = open_arrays(folder)
    columns = (np.array(arrays[name]) for name in ("counts", "lows", "highs"))
    return [Extent(int(count), low, high) for count, low, high in zip(*columns, strict=True)]


def measure_piece(given: Any, label: str, columns: list[str] | None, n_columns: int, takes_missing: bool) -> Extent:
    """Task: find the extent of a piece."""
    with taking_missing(takes_missing):
        rows = read_piece(given, label, columns)
    if rows.shape[1] != n_columns:
        raise TableError(f"{label} has {rows.shape[1]} columns, the others have {n_columns}.")
    return Extent.of(rows)


def joint_extent(extents: Sequence[Extent]) -> Extent:
    """Compute the extent of all pieces together."""
    low: FloatArray = np.fmin.reduce([extent.minimum for extent in extents], axis=0)
    high: FloatArray = np.fmax.reduce([extent.maximum for extent in extents], axis=0)
    return Extent(sum(extent.n_rows for extent in extents), low, high)


def scale_rows(
    cluster: Cluster, space: Workspace, source: Source, extents: Sequence[Extent], scaling: MinMaxScaling | None,
    n_parts: int, *, needs_nonnegative: bool,
) -> None:  # fmt: skip
    """Write all rows, scaled, to one file in their order (`rows.npy`), and a sample of them to `sample.npy`.

    The second pass over the source. Unscaled rows that must not be negative are refused where they are.
    """
    if (space / "sample.npy").exists():
        return
    size, samples, file = sample_size(n_parts), space / "samples", space / "rows.npy"
    samples.mkdir(exist_ok=True)
    counts = np.array([extent.n_rows for extent in extents])
    create_array(file, (int(counts.sum()), source.n_columns))
    tasks, files = [], []
    for number, (piece, start) in enumerate(zip(source.pieces, np.cumsum(counts) - counts, strict=True)):
        files.append(samples / f"{number}.npy")
        how = source.columns, extents[number], scaling, needs_nonnegative
        tasks.append((*given(piece), *how, file, int(start), size, files[-1]))
    cluster.run("scaling the rows", scale_piece, tasks)
    merge_sample_files(files, size, space / "sample.npy")


def scale_piece(
    given: Any, label: str, columns: list[str] | None, expected: Extent, scaling: MinMaxScaling | None,
    needs_nonnegative: bool, file: Path, start: int, sampled: int, sample_file: Path,
) -> None:  # fmt: skip
    """Task: scale a piece into its place in the file of all rows, and leave a sample of it in a file.

    Not as the result: samples of pieces can be whole pieces, and would pile up in the workers' and driver's memory.
    """
    rows = read_piece(given, label, columns)
    expected.check_still(rows, label)
    bad = (rows < 0) | (rows > LARGEST_VALUE)
    if scaling is None and needs_nonnegative and bad.any():
        row, column = np.argwhere(bad)[0]
        name = column if columns is None else repr(columns[column])
        raise TableError(
            f"{label}: row {row}, column {name} is {rows[row, column]:g}. With scale=None values must lie between 0 "
            f"and {LARGEST_VALUE:g}; scale='minmax' takes any numbers."
        )
    scaled = rows if scaling is None else scaling.apply(rows)
    fill_rows(file, start, scaled)
    save_array(sample_file, sample_distinct(scaled, sampled))


def merge_sample_files(files: Sequence[Path], size: int, result: Path) -> None:
    """Save the sample of all samples, a few files at a time: together they may be as large as the table."""
    held: list[FloatArray] = []
    for file in files:
        held.append(np.array(open_array(file)))
        if sum(len(rows) for rows in held) > 3 * size:
            held = [merge_samples(held, size)]
    save_array(result, merge_samples(held, size))
    shutil.rmtree(files[0].parent, ignore_errors=True)


def load_rows(file: Path, start: int, stop: int) -> FloatArray:
    """Load a run of rows into memory: what is mapped to a file would be read again for each use."""
    return np.array(open_array(file)[start:stop])


def cut_into_parts(cluster: Cluster, space: Workspace, plan: Plan, *, merge_copies: bool) -> list[int]:
    """Put near rows of `rows.npy` together, each part in a folder `part-…`; return the numbers of parts with rows."""
    done = space / "parts.npy"
    if not done.exists():
        sample = np.array(open_array(space / "sample.npy"))
        partition, folder = plan_partition(sample, plan.n_parts), space / "spread"
        folder.mkdir(exist_ok=True)
        file = space / "rows.npy"
        n, p = open_array(file).shape
        starts = range(0, n, plan.run_rows)
        runs = [folder / str(start) for start in starts]
        tasks = [
            (file, start, min(start + plan.run_rows, n), partition, run)
            for start, run in zip(starts, runs, strict=True)
        ]
        bounds = cluster.run("sorting rows by part", spread_rows, tasks)
        sizes = np.sum([np.diff(bound) for bound in bounds], axis=0)
        filled = np.flatnonzero(sizes > 0).tolist()
        check_largest_part(cluster, int(sizes.max()), gather_bytes(p))
        parts = [(runs, part, merge_copies, space / f"part-{part}") for part in filled]
        left = cluster.run("gathering parts", gather_part, parts)
        check_largest_part(cluster, max(left), part_bytes(p))
        save_array(done, filled)
        shutil.rmtree(folder, ignore_errors=True)
    return [int(part) for part in open_array(done)]


def spread_rows(file: Path, start: int, stop: int, partition: Partition, folder: Path) -> IndexArray:
    """Task: write a run of rows sorted by part; return where each part begins and the last ends."""
    if folder.exists():
        return np.array(open_array(folder / "bounds.npy"))
    rows = load_rows(file, start, stop)
    part = partition.assign(rows)
    order = np.argsort(part, kind="stable")
    bounds = np.searchsorted(part[order], np.arange(partition.n_parts + 1))
    save_arrays(folder, {"rows": rows[order], "numbers": start + order, "bounds": bounds})
    return bounds


def gather_part(runs: Sequence[Path], part: int, merge_copies: bool, folder: Path) -> int:
    """Task: gather all rows of a part, in ascending order, then in `local_order`, equal ones merged if wanted.

    Returns how many rows are left. Leaves `rows`, their `numbers` in the table, and `copies`, pairs of (row, the first
    row that equals it).
    """
    if folder.exists():
        return len(open_array(folder / "numbers.npy"))
    pieces = []
    for run in runs:
        arrays = open_arrays(run)
        first, last = arrays["bounds"][part : part + 2]
        pieces.append((np.array(arrays["numbers"][first:last]), np.array(arrays["rows"][first:last])))
    numbers = np.concatenate([numbers for numbers, _ in pieces])
    rows = np.concatenate([rows for _, rows in pieces])
    del pieces
    original = first_copies(rows)
    is_first = original == np.arange(len(rows))
    copies = np.column_stack([numbers[~is_first], numbers[original[~is_first]]])
    if merge_copies and len(copies):
        rows, numbers = rows[is_first], numbers[is_first]
    order = local_order(rows)
    save_arrays(folder, {"rows": rows[order], "numbers": numbers[order], "copies": copies})
    return len(rows)


@dataclass(frozen=True)
class Runs:
    """Runs of consecutive rows that tasks work on: whole blocks of `block_sums`."""

    cluster: Cluster
    n_rows: int

    @classmethod
    def settled(cls, file: Path, cluster: Cluster, n: int, plan: Plan) -> Runs:
        """Return the runs of a job: as it began, though the cluster may have changed since.

        No more rows than are sorted at once, and fewer where that would leave threads idle.
        """
        if not file.exists():
            fair = math.ceil(n / (_RUNS_PER_THREAD * cluster.n_threads))
            write_json(file, {"rows": max(1, min(fair, plan.run_rows) // BLOCK) * BLOCK})
        return cls(cluster, int(read_json(file)["rows"]))

    def starts(self, n: int) -> range:
        """Return where the runs of n rows begin."""
        return range(0, n, self.n_rows)

    def each(
        self, stage: str, work: Callable[..., Any], file: Path, n: int,
        *common: Any, apart: Sequence[tuple[Any, ...]] | None = None,
    ) -> list[Any]:  # fmt: skip
        """Run ``work(file, start, stop, *common, *apart[i])`` for each run of the n rows of a file."""
        starts = self.starts(n)
        own = apart or [()] * len(starts)
        tasks = [
            (file, start, min(start + self.n_rows, n), *common, *more) for start, more in zip(starts, own, strict=True)
        ]
        return self.cluster.run(stage, work, tasks)
