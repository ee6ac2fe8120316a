"""Tables in memory, written to files in pieces.

Rows that are sent inside tasks, or scattered to the workers, are lost with the worker that holds them, and the fit with
them; a file is simply loaded again by another worker. So the rows are written once, and tasks get the path.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from penstock._types import FloatArray
from penstock.scale import _pieces
from penstock.scale._blocks import array_table, check_frame_types, frame_names, frame_table, is_frame
from penstock.scale._checks import (
    Place,
    SourceError,
    brief,
    chosen_positions,
    refuse_array_type,
    refuse_chosen_names,
    refuse_nonfinite,
    refuse_shape,
)
from penstock.scale._pieces import FilePiece, Piece, Source, refuse_no_rows, signature_of


@dataclass(frozen=True)
class ArrayPiece(FilePiece):
    """Consecutive rows of a table that was in memory, in a file of their own."""

    label: str
    path: str
    first_row: int
    n_rows: int
    n_columns: int
    columns: tuple[str, ...] | None

    def load(self) -> FloatArray:
        """Its rows; raises `SourceError` if the file is gone or not as it was written."""
        try:
            table = np.load(self.path, allow_pickle=False)
        except (OSError, ValueError, EOFError) as error:
            raise SourceError(
                f"{self.label}: {self.path} cannot be read ({brief(error)}). Open the source again with a folder "
                f"that every worker can read under the same path."
            ) from None
        if table.shape != (self.n_rows, self.n_columns) or table.dtype != np.float64:
            raise SourceError(f"{self.label}: {self.path} is not what was written. Open the source again.")
        refuse_nonfinite(table, Place(self.label, "these rows", "the whole", self.first_row), self.columns)
        return np.ascontiguousarray(table)


def open_memory(table: Any, wish: Sequence[str] | None, folder: Path | None) -> Source:
    """A source of the rows of an array or DataFrame, which are checked and written to `folder` at once."""
    label = f"The {type(table).__module__.split('.')[0]} {type(table).__name__}"
    columns, names, n_columns = _checked_columns(table, wish, label)
    if folder is None:
        raise SourceError(
            f"{label} lies in memory, where the workers cannot read it. Pass folder=..., a folder that all of them "
            f"see, to which its rows are written in pieces."
        )
    pieces: list[Piece] = []
    digests: list[str] = []
    for start, stop in _runs(len(table), n_columns):
        rows = _rows(table, start, stop, columns, label)
        refuse_nonfinite(rows, Place(label, first_row=start), columns)
        digests.append(hashlib.blake2b(np.ascontiguousarray(rows).data, digest_size=16).hexdigest())
        path = _written(rows, folder.absolute() / f"rows-{start}-{digests[-1]}.npy")
        own = f"{label}, rows {start:,} to {stop - 1:,}"
        pieces.append(ArrayPiece(own, str(path), start, stop - start, n_columns, columns))
    refuse_no_rows(pieces, label)
    return Source(pieces, names, n_columns, signature_of("memory", len(table), columns, digests))


def _checked_columns(
    table: Any, wish: Sequence[str] | None, label: str
) -> tuple[tuple[str, ...] | None, list[str] | None, int]:
    """The columns to use as messages call them, their names if these are texts, and how many; types are checked."""
    if not is_frame(table):
        refuse_chosen_names(wish, label)
        refuse_shape(table.shape, label)
        refuse_array_type(table.dtype, label)
        return None, None, table.shape[1]
    known = [str(name) for name in table.columns]
    positions = chosen_positions(known, wish, label)
    columns = tuple(known[k] for k in positions)
    check_frame_types(known, list(table.dtypes), positions, label)
    return columns, None if frame_names(table) is None else list(columns), len(columns)


def _runs(n_rows: int, n_columns: int) -> Iterator[tuple[int, int]]:
    step = max(1, _pieces.PIECE_BYTES // (8 * n_columns))
    return ((start, min(start + step, n_rows)) for start in range(0, n_rows, step))


def _rows(table: Any, start: int, stop: int, columns: tuple[str, ...] | None, label: str) -> FloatArray:
    if columns is None:
        return array_table(table[start:stop], label)
    rows = table.iloc[start:stop] if hasattr(table, "iloc") else table.slice(start, stop - start)
    return frame_table(rows, label, columns)


def _written(rows: FloatArray, path: Path) -> Path:
    """Write a piece under a name that tells its content, whole or not at all; one that is there already is kept."""
    beside = path.with_name(f"{path.name}.{os.getpid()}.part")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        if path.exists() and path.stat().st_size > rows.nbytes:
            return path
        with beside.open("wb") as file:
            np.save(file, rows)
        beside.replace(path)
    except OSError as error:
        with suppress(OSError):
            beside.unlink(missing_ok=True)
        raise SourceError(f"{path} cannot be written ({error}). Make room, or pass another folder=...") from None
    return path
