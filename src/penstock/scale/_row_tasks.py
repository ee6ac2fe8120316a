"""Tasks on rows: what is in the source, scaled into one file, and cut into parts of near rows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from penstock._types import FloatArray, IndexArray
from penstock.detectors._input import LARGEST_VALUE
from penstock.graph.partition import Partition, local_order, sample_distinct
from penstock.graph.rows import first_copies
from penstock.prepare import MinMaxScaling
from penstock.scale.sources import SourceError, read_piece
from penstock.scale.workspace import fill_rows, open_array, open_arrays, save_array, save_arrays


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
