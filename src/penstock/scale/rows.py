"""Read a source, lay its rows out in one file, and cut them into parts of near rows.

A source is read twice: once for the range of its columns, once to write its rows. All later steps read the file.
"""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from penstock._types import FloatArray, IndexArray
from penstock.detectors import LARGEST_VALUE
from penstock.graph.partition import Partition, local_order, merge_samples, plan_partition, sample_distinct
from penstock.graph.rows import first_copies
from penstock.io import TableError
from penstock.prepare import MinMaxScaling
from penstock.scale.cluster import Cluster
from penstock.scale.plan import Plan, check_largest_part, gather_bytes, part_bytes
from penstock.scale.sources import Piece, Source
from penstock.scale.workspace import (
    Workspace,
    create_array,
    fill_rows,
    open_array,
    open_arrays,
    save_array,
    save_arrays,
)

_ROWS_AT_ONCE = 1 << 16


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


def measure(cluster: Cluster, space: Workspace, source: Source, *, takes_missing: bool = False) -> list[Extent]:
    """Find the extent of each piece of a source: the first pass over it."""

    def make() -> dict[str, Any]:
        tasks = [(piece, takes_missing) for piece in source.pieces]
        found = cluster.run("looking at the rows", measure_piece, tasks)
        return {
            "n_rows": [extent.n_rows for extent in found],
            "minimum": [extent.minimum for extent in found],
            "maximum": [extent.maximum for extent in found],
        }

    arrays = space.keep("extents", make)
    columns = (np.array(arrays[name]) for name in ("n_rows", "minimum", "maximum"))
    return [Extent(int(count), low, high) for count, low, high in zip(*columns, strict=True)]


def measure_piece(piece: Piece, takes_missing: bool) -> Extent:
    """Task: find the extent of a piece."""
    return Extent.of(piece.load(takes_missing=takes_missing))


def joint_extent(extents: Sequence[Extent]) -> Extent:
    """Compute the extent of all pieces together."""
    low: FloatArray = np.fmin.reduce([extent.minimum for extent in extents], axis=0)
    high: FloatArray = np.fmax.reduce([extent.maximum for extent in extents], axis=0)
    return Extent(sum(extent.n_rows for extent in extents), low, high)


@dataclass(frozen=True)
class PieceLayout:
    """How rows are written to the file of all rows."""

    columns: list[str] | None
    takes_missing: bool = False
    scaling: MinMaxScaling | None = None
    is_nonnegative: bool = False  # rows that are not scaled must lie between 0 and `LARGEST_VALUE`
    n_sampled: int = 0  # how many rows of the table are also kept as a sample

    def read(self, piece: Piece, expected: Extent) -> FloatArray:
        """Return the rows of a piece as they are to be written; those that must not be negative are refused by name."""
        rows = piece.load(takes_missing=self.takes_missing)
        expected.check_still(rows, piece.label)
        if self.scaling is not None:
            return self.scaling.apply(rows)
        bad = (rows < 0) | (rows > LARGEST_VALUE)
        if self.is_nonnegative and bad.any():
            row, column = np.argwhere(bad)[0]
            name = column if self.columns is None else repr(self.columns[column])
            raise TableError(
                f"{piece.label}: row {row}, column {name} is {rows[row, column]:g}. With scale=None values must lie "
                f"between 0 and {LARGEST_VALUE:g}; scale='minmax' takes any numbers."
            )
        return rows


def lay_rows(
    cluster: Cluster, space: Workspace, source: Source, extents: Sequence[Extent], layout: PieceLayout
) -> Path:
    """Write all rows to one file in their order, which is returned, and a sample to `laid`: the second pass."""
    file = space / "rows.npy"

    def make() -> dict[str, Any]:
        samples = Samples(space / "samples", layout.n_sampled)
        counts = np.array([extent.n_rows for extent in extents])
        starts = (np.cumsum(counts) - counts).tolist()
        create_array(file, (int(counts.sum()), source.n_columns))
        tasks = [(*places, layout, samples, file) for places in zip(source.pieces, extents, starts, strict=True)]
        cluster.run("laying out the rows", lay_piece, tasks)
        return samples.merge()

    space.keep("laid", make)
    return file


def lay_piece(piece: Piece, expected: Extent, start: int, layout: PieceLayout, samples: Samples, file: Path) -> None:
    """Task: write a piece into its place in the file of all rows, and leave a sample of it."""
    rows = layout.read(piece, expected)
    fill_rows(file, start, rows)
    samples.draw(start, rows)


@dataclass(frozen=True)
class Samples:
    """Samples of runs of rows, in files of a folder until they are merged.

    Not the results of tasks: samples can be whole pieces, and would pile up in the workers' and driver's memory.
    """

    folder: Path
    size: int

    def draw(self, start: int, rows: FloatArray) -> None:
        """Leave a sample of the rows that begin at `start`."""
        if self.size:
            self.folder.mkdir(parents=True, exist_ok=True)
            save_array(self.folder / f"{start:020d}-{len(rows)}.npy", sample_distinct(rows, self.size))

    def merge(self) -> dict[str, FloatArray]:
        """Return the sample of all samples, a few files at a time: together they may be as large as the table."""
        if not self.size:
            return {}
        held: list[FloatArray] = []
        for file in sorted(self.folder.iterdir()):
            held.append(np.array(open_array(file)))
            if sum(len(rows) for rows in held) > 3 * self.size:
                held = [merge_samples(held, self.size)]
        found = merge_samples(held, self.size)
        shutil.rmtree(self.folder, ignore_errors=True)
        return {"sample": found}


def load_rows(file: Path, start: int, stop: int) -> FloatArray:
    """Load a run of rows into memory: what is mapped to a file would be read again for each use."""
    return np.array(open_array(file)[start:stop])


def read_column(file: Path, column: int) -> FloatArray:
    """Read one column of the rows in a file, a run of rows at a time."""
    n = len(open_array(file))
    found = [open_array(file)[start : start + _ROWS_AT_ONCE, column].copy() for start in range(0, n, _ROWS_AT_ONCE)]
    return np.concatenate(found)


def cut_into_parts(cluster: Cluster, space: Workspace, plan: Plan, *, merge_copies: bool) -> list[int]:
    """Put near rows of `rows.npy` together, each part in a folder `part-…`; return the numbers of parts with rows."""

    def make() -> dict[str, Any]:
        partition = plan_partition(np.array(open_array(space / "laid" / "sample.npy")), plan.n_parts)
        folder, file = space / "spread", space / "rows.npy"
        folder.mkdir(exist_ok=True)
        n, p = open_array(file).shape
        tasks = []
        for start in range(0, n, plan.run_rows):
            tasks.append((file, start, min(start + plan.run_rows, n), partition, folder / str(start)))
        bounds = cluster.run("sorting rows by part", spread_rows, tasks)
        sizes = np.sum([np.diff(bound) for bound in bounds], axis=0)
        filled = np.flatnonzero(sizes > 0)
        check_largest_part(cluster, int(sizes.max()), gather_bytes(p))
        runs = [task[-1] for task in tasks]
        parts = [(runs, part, merge_copies, space / f"part-{part}") for part in filled.tolist()]
        left = cluster.run("gathering parts", gather_part, parts)
        check_largest_part(cluster, max(left), part_bytes(p))
        shutil.rmtree(folder, ignore_errors=True)
        return {"filled": filled}

    return [int(part) for part in space.keep("parts", make)["filled"]]


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
