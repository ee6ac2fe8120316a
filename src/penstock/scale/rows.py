"""From a source to parts of near rows in files."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from penstock._types import FloatArray, IndexArray
from penstock.graph.partition import merge_samples, plan_partition, sample_size
from penstock.prepare import MinMaxScaling
from penstock.scale._row_tasks import Extent, gather_part, look, scale_piece, spread_rows
from penstock.scale.cluster import Call, Cluster
from penstock.scale.plan import Plan, check_largest_part, gather_bytes, part_bytes
from penstock.scale.sources import Piece, Source, SourceError
from penstock.scale.workspace import Workspace, create_array, open_array, open_arrays, save_array, save_arrays


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
