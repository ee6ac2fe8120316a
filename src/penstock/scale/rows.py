"""Read a source, scale its rows into one file, and cut them into parts of near rows."""

from __future__ import annotations

import math
import secrets
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
from penstock.prepare import MinMaxScaling
from penstock.scale.cluster import Call, Cluster
from penstock.scale.plan import Plan, check_largest_part, gather_bytes, part_bytes
from penstock.scale.sources import Piece, Source, SourceError, read_piece
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


@dataclass(frozen=True)
class Extents:
    """How many rows each piece has, and what its columns range over (NaN where it has none)."""

    counts: IndexArray
    lows: FloatArray
    highs: FloatArray

    @property
    def n_rows(self) -> int:
        return int(self.counts.sum())

    @property
    def minimum(self) -> FloatArray:
        """Of all pieces."""
        low: FloatArray = np.fmin.reduce(self.lows, axis=0)
        return low

    @property
    def maximum(self) -> FloatArray:
        """Of all pieces."""
        high: FloatArray = np.fmax.reduce(self.highs, axis=0)
        return high

    def of_piece(self, number: int) -> Extent:
        return Extent(int(self.counts[number]), self.lows[number], self.highs[number])


def measure(cluster: Cluster, space: Workspace, job: str, source: Source) -> Extents:
    """A first pass over the source."""
    folder = space / "extents"
    if not folder.exists():
        calls = [
            Call(f"look-{job}-{number}", look, (*given(piece), source.columns, source.n_columns))
            for number, piece in enumerate(source.pieces)
        ]
        found = cluster.run("looking at the rows", calls)
        if not sum(extent.n_rows for extent in found):
            raise SourceError("The source has no rows.")
        lows, highs = (np.array([getattr(extent, side) for extent in found]) for side in ("minimum", "maximum"))
        counts = np.array([extent.n_rows for extent in found], dtype=np.int64)
        save_arrays(folder, {"counts": counts, "lows": lows, "highs": highs})
    arrays = open_arrays(folder)
    return Extents(*(np.array(arrays[name]) for name in ("counts", "lows", "highs")))


def given(piece: Piece) -> tuple[Any, str]:
    """What a task is given of a piece: the piece, to be loaded there, or what Dask is to make of it."""
    return (piece if piece.delayed is None else piece.delayed), piece.label


def scale_rows(
    cluster: Cluster,
    space: Workspace,
    job: str,
    source: Source,
    extents: Extents,
    scaling: MinMaxScaling | None,
    n_parts: int,
    *,
    needs_nonnegative: bool,
) -> FloatArray:
    """A second pass: all rows, scaled, in one file in their order (`rows.npy`); returns a sample of them.

    Unscaled rows that are to be factorised are refused where they are negative.
    """
    done = space / "sample.npy"
    if not done.exists():
        size, samples = sample_size(n_parts), space / "samples"
        samples.mkdir(exist_ok=True)
        create_array(space / "rows.npy", (extents.n_rows, source.n_columns))
        starts = np.cumsum(extents.counts) - extents.counts
        calls = [
            Call(
                f"scale-{job}-{number}",
                scale_piece,
                (
                    *given(piece),
                    source.columns,
                    extents.of_piece(number),
                    scaling,
                    space / "rows.npy",
                    start,
                    size,
                    samples / f"{number}.npy",
                    needs_nonnegative,
                ),
            )
            for number, (piece, start) in enumerate(zip(source.pieces, starts.tolist(), strict=True))
        ]
        cluster.run("scaling the rows", calls)
        save_array(done, merged_sample([samples / f"{number}.npy" for number in range(len(calls))], size))
        shutil.rmtree(samples, ignore_errors=True)
    return np.array(open_array(done))


def merged_sample(files: Sequence[Path], size: int) -> FloatArray:
    """The sample of all samples, a few files at a time: together they may be as large as the table."""
    held: list[FloatArray] = []
    for file in files:
        held.append(np.array(open_array(file)))
        if sum(len(rows) for rows in held) > 3 * size:
            held = [merge_samples(held, size)]
    return merge_samples(held, size)


def cut_into_parts(
    cluster: Cluster, space: Workspace, job: str, n: int, sample: FloatArray, plan: Plan, merge_copies: bool
) -> list[int]:
    """Parts of near rows, each in a folder `part-…`; returns the numbers of those that have rows."""
    done = space / "parts.npy"
    if not done.exists():
        partition = plan_partition(sample, plan.n_parts)
        runs = space / "spread"
        runs.mkdir(exist_ok=True)
        starts = range(0, n, plan.run_rows)
        bounds = cluster.run(
            "sorting rows by part",
            [
                Call(
                    f"spread-{job}-{start}",
                    spread_rows,
                    (space / "rows.npy", start, min(start + plan.run_rows, n), partition, runs / str(start)),
                )
                for start in starts
            ],
        )
        sizes = np.sum([np.diff(bound) for bound in bounds], axis=0)
        filled = np.flatnonzero(sizes > 0).tolist()
        check_largest_part(cluster, int(sizes.max()), gather_bytes(sample.shape[1]))
        left = _gather(cluster, space, job, [runs / str(start) for start in starts], filled, merge_copies)
        check_largest_part(cluster, max(left), part_bytes(sample.shape[1]))
        save_array(done, filled)
        shutil.rmtree(runs, ignore_errors=True)
    return [int(part) for part in open_array(done)]


def _gather(
    cluster: Cluster, space: Workspace, job: str, runs: Sequence[Path], parts: Sequence[int], merge_copies: bool
) -> list[int]:
    return cluster.run(
        "gathering parts",
        [
            Call(f"gather-{job}-{part}", gather_part, (list(runs), part, merge_copies, space / f"part-{part}"))
            for part in parts
        ],
    )


@dataclass(frozen=True)
class Extent:
    """What a first look at a piece tells."""

    n_rows: int
    minimum: FloatArray
    maximum: FloatArray


def look(given: Any, label: str, columns: list[str] | None, n_columns: int) -> Extent:
    """How many rows a piece has, and what they range over."""
    rows = read_piece(given, label, columns)
    if rows.shape[1] != n_columns:
        raise SourceError(f"{label} has {rows.shape[1]} columns, the others have {n_columns}.")
    return extent_of(rows)


def extent_of(rows: FloatArray) -> Extent:
    nothing = np.full(rows.shape[1], np.nan)
    if len(rows) == 0:
        return Extent(0, nothing, nothing)
    return Extent(len(rows), rows.min(axis=0), rows.max(axis=0))


def scale_piece(
    given: Any,
    label: str,
    columns: list[str] | None,
    expected: Extent,
    scaling: MinMaxScaling | None,
    file: Path,
    start: int,
    sampled: int,
    sample_file: Path,
    needs_nonnegative: bool,
) -> None:
    """Scale a piece into its place in the file of all rows, and leave a sample of it in a file.

    Not as the result: samples of pieces can be whole pieces, and would pile up in the workers' and driver's memory.
    """
    rows = read_piece(given, label, columns)
    _refuse_change(extent_of(rows), expected, label)
    if scaling is None and needs_nonnegative:
        _refuse_unfit(rows, label, columns)
    scaled = rows if scaling is None else scaling.apply(rows)
    fill_rows(file, start, scaled)
    save_array(sample_file, sample_distinct(scaled, sampled))


def _refuse_change(now: Extent, before: Extent, label: str) -> None:
    """A source is read twice, and must be the same both times: else rows would be scaled by what is no longer there."""
    same = now.n_rows == before.n_rows and all(
        np.array_equal(getattr(now, side), getattr(before, side), equal_nan=True) for side in ("minimum", "maximum")
    )
    if not same:
        raise SourceError(
            f"{label} has changed since it was first read. Begin anew when nothing writes to it any more."
        )


def _refuse_unfit(rows: FloatArray, label: str, columns: list[str] | None) -> None:
    """Without scaling, what a factorisation cannot take is refused where it is."""
    bad = (rows < 0) | (rows > LARGEST_VALUE)
    if bad.any():
        row, column = np.argwhere(bad)[0]
        name = column if columns is None else repr(columns[column])
        raise SourceError(
            f"{label}: row {row}, column {name} is {rows[row, column]:g}. With scale=None values must lie between 0 "
            f"and {LARGEST_VALUE:g}; scale='minmax' takes any numbers."
        )


def load_rows(file: Path, start: int, stop: int) -> FloatArray:
    """A run of rows, in memory: what is mapped to a file would be read again for each look at it."""
    return np.array(open_array(file)[start:stop])


def spread_rows(file: Path, start: int, stop: int, partition: Partition, folder: Path) -> IndexArray:
    """Write a run of rows sorted by part; returns where in what was written each part begins and the last ends."""
    if folder.exists():
        return np.array(open_array(folder / "bounds.npy"))
    rows = load_rows(file, start, stop)
    part = partition.assign(rows)
    order = np.argsort(part, kind="stable")
    bounds = np.searchsorted(part[order], np.arange(partition.n_parts + 1))
    save_arrays(folder, {"rows": rows[order], "numbers": start + order, "bounds": bounds})
    return bounds


def gather_part(runs: Sequence[Path], part: int, merge_copies: bool, folder: Path) -> int:
    """All rows of a part from what was spread: in ascending order, then in `local_order`, equal ones perhaps merged.

    Returns how many rows are left. Leaves `rows`, their `numbers` in the table, and `copies`, pairs of (row, the first
    row that equals it).
    """
    if folder.exists():
        return len(open_array(folder / "numbers.npy"))
    pieces = [_slice_of(run, part) for run in runs]
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


def _slice_of(run: Path, part: int) -> tuple[IndexArray, FloatArray]:
    arrays = open_arrays(run)
    first, last = arrays["bounds"][part : part + 2]
    return np.array(arrays["numbers"][first:last]), np.array(arrays["rows"][first:last])


_RUNS_PER_THREAD = 4


@dataclass(frozen=True)
class Runs:
    """How many rows a task takes: whole blocks of `block_sums`."""

    cluster: Cluster
    n_rows: int

    def starts(self, n: int) -> range:
        """Where the runs of n rows begin."""
        return range(0, n, self.n_rows)

    def each(
        self,
        stage: str,
        name: str,
        work: Callable[..., Any],
        file: Path,
        n: int,
        *given: Any,
        apart: Sequence[tuple[Any, ...]] | None = None,
    ) -> list[Any]:
        """What `work` finds in each run of the n rows of a file: given the run, what all are given, and what it alone.

        Tasks are called by a name of this turn, so that they are not taken for those of another.
        """
        starts, turn = self.starts(n), secrets.token_hex(3)
        calls = [
            Call(f"{name}-{turn}-{start}", work, (file, start, min(start + self.n_rows, n), *given, *own))
            for start, own in zip(starts, apart or [()] * len(starts), strict=True)
        ]
        return self.cluster.run(stage, calls)


def settled_runs(file: Path, cluster: Cluster, n: int, plan: Plan) -> Runs:
    """The runs of a job: as it began, though the cluster may have changed since.

    No more rows than are sorted at once, and fewer where that would leave threads idle.
    """
    if not file.exists():
        fair = math.ceil(n / (_RUNS_PER_THREAD * cluster.n_threads))
        write_json(file, {"rows": max(1, min(fair, plan.run_rows) // BLOCK) * BLOCK})
    return Runs(cluster, int(read_json(file)["rows"]))
