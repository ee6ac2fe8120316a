"""Rows of Dask collections: a piece for each block of an array or partition of a dataframe.

A task cannot run a Dask graph of its own sensibly: it would wait for other tasks while holding the thread they need. So
these pieces carry a `delayed` block that becomes an argument of the task, and Dask computes it before.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import accumulate
from typing import Any

import numpy as np

from penstock._types import FloatArray
from penstock.scale._blocks import as_table, check_frame_types, frame_names
from penstock.scale._checks import (
    chosen_positions,
    refuse_array_type,
    refuse_chosen_names,
    refuse_shape,
)
from penstock.scale._pieces import Piece, Source, refuse_no_rows, signature_of


@dataclass(frozen=True)
class DaskPiece:
    """One block of a Dask collection."""

    label: str
    n_rows: int | None
    n_columns: int
    columns: tuple[str, ...] | None
    delayed: Any = field(repr=False)

    def load(self) -> FloatArray:
        """Its rows, computed by Dask; not for use inside a task, which takes `delayed` as an argument instead."""
        return as_table(self.delayed.compute(), self.label, self.columns, n_columns=self.n_columns)


def open_dask_array(array: Any, wish: Sequence[str] | None) -> Source:
    """A source of the blocks of a 2-D Dask array, joined along the columns where these are in several chunks."""
    label = "The Dask array"
    refuse_chosen_names(wish, label)
    refuse_shape(array.shape, label)
    refuse_array_type(array.dtype, label)
    whole_rows = array.rechunk({1: -1}) if array.numblocks[1] > 1 else array
    sizes, n_columns = whole_rows.chunks[0], int(array.shape[1])
    starts = accumulate(sizes, initial=0)
    pieces: list[Piece] = [
        DaskPiece(_block_label(number, start, size), _known(size), n_columns, None, block)
        for number, (start, size, block) in enumerate(zip(starts, sizes, whole_rows.to_delayed()[:, 0], strict=False))
    ]
    refuse_no_rows(pieces, label)
    return Source(pieces, None, n_columns, signature_of("dask array", _token(array)))


def open_dask_frame(frame: Any, wish: Sequence[str] | None) -> Source:
    """A source of the partitions of a Dask dataframe; how many rows each has is not known before it is computed."""
    label = "The Dask dataframe"
    names = [str(name) for name in frame.columns]
    positions = chosen_positions(names, wish, label)
    check_frame_types(names, list(frame.dtypes), positions, label)
    chosen = frame if wish is None else frame[[frame.columns[k] for k in positions]]
    columns = tuple(names[k] for k in positions)
    pieces: list[Piece] = [
        DaskPiece(f"partition {number:,} of the Dask dataframe", None, len(columns), columns, block)
        for number, block in enumerate(chosen.to_delayed())
    ]
    return Source(pieces, frame_names(chosen), len(columns), signature_of("dask frame", columns, _token(frame)))


def _block_label(number: int, start: float, size: float) -> str:
    if np.isnan(start + size):
        return f"block {number:,} of the Dask array"
    return f"block {number:,} of the Dask array (rows {int(start):,} to {int(start + size) - 1:,})"


def _known(size: float) -> int | None:
    return None if np.isnan(size) else int(size)


def _token(collection: Any) -> str:
    """Dask's name for what a collection computes: the same for the same data and steps, if Dask can tell."""
    from dask.base import tokenize

    return str(tokenize(collection))
