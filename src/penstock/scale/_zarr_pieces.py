"""Rows of a Zarr array, in runs of whole chunks: a chunk that two tasks share would be read and unpacked twice."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from penstock._messages import listed
from penstock._types import FloatArray
from penstock.scale import _pieces
from penstock.scale._blocks import array_table
from penstock.scale._checks import (
    Place,
    SourceError,
    brief,
    missing_extra,
    refuse_array_type,
    refuse_chosen_names,
    refuse_nonfinite,
    refuse_shape,
)
from penstock.scale._pieces import FilePiece, Piece, Source, file_facts, refuse_no_rows, signature_of


@dataclass(frozen=True)
class ZarrPiece(FilePiece):
    """Consecutive rows of a Zarr array."""

    label: str
    first_row: int
    n_rows: int
    array: Any = field(repr=False)

    def load(self) -> FloatArray:
        """Its rows; raises `SourceError` where a chunk is damaged or a value missing or infinite."""
        try:
            block = self.array[self.first_row : self.first_row + self.n_rows]
        except MemoryError:
            raise
        except Exception as error:  # each codec of a chunk has its own errors, without a common ancestor
            raise SourceError(
                f"{self.label}: cannot be read ({type(error).__name__}: {brief(error)}). Write the array again, "
                f"and keep it where every worker can read it under the same path."
            ) from None
        table = array_table(block, self.label)
        refuse_nonfinite(table, Place(self.label, "these rows", "the array", self.first_row), None)
        return table


def is_zarr_folder(path: Path) -> bool:
    """Whether a path is meant as Zarr: by its name, or because the folder says so."""
    return path.suffix == ".zarr" or (path / "zarr.json").is_file() or (path / ".zarray").is_file()


def open_zarr(source: Any, wish: Sequence[str] | None) -> Source:
    """A source of the rows of a Zarr array, given itself or by its folder."""
    array, label = _opened(source) if isinstance(source, Path) else _reachable(source)
    refuse_chosen_names(wish, label)
    refuse_shape(array.shape, label)
    refuse_array_type(array.dtype, label)
    n_rows, n_columns = array.shape
    pieces: list[Piece] = [
        ZarrPiece(f"{label}, rows {start:,} to {stop - 1:,}", start, stop - start, array)
        for start, stop in _runs(n_rows, n_columns, (array.shards or array.chunks)[0])
    ]
    refuse_no_rows(pieces, label)
    return Source(pieces, None, n_columns, _signature(array))


def _opened(path: Path) -> tuple[Any, str]:
    try:
        import zarr
    except ImportError:
        raise missing_extra("Reading Zarr") from None
    if not path.exists():
        raise SourceError(f"{path} does not exist. Check the path; every worker must see the array under it.")
    try:
        opened = zarr.open(path.absolute(), mode="r")
    except Exception as error:  # what is wrong with the metadata comes in many classes
        raise SourceError(f"{path} is damaged or no Zarr array ({brief(error)}). Write it again.") from None
    if not isinstance(opened, zarr.Array):
        raise SourceError(f"{path} is a Zarr group. Pass one of its arrays: {listed(sorted(opened.array_keys()))}.")
    return opened, f"Zarr array {path}"


def _reachable(array: Any) -> tuple[Any, str]:
    """An array that a worker elsewhere can open: a relative path would lead it astray, and memory is not shared."""
    from zarr.storage import LocalStore, MemoryStore

    if isinstance(array.store, MemoryStore):
        raise SourceError(
            "The Zarr array lies in memory, where no worker can read it. Save it to a folder, or pass its content "
            "(array[:]) with folder=..., to be written in pieces."
        )
    if isinstance(array.store, LocalStore):
        return _opened(Path(array.store.root) / array.path)
    return array, f"Zarr array {array.store_path}"


def _runs(n_rows: int, n_columns: int, chunk_rows: int) -> list[tuple[int, int]]:
    """Where runs of whole chunks begin and end, near the size of a piece."""
    chunks = max(1, _pieces.PIECE_BYTES // max(1, 8 * n_columns * chunk_rows))
    step = chunks * chunk_rows
    return [(start, min(start + step, n_rows)) for start in range(0, n_rows, step)]


def _signature(array: Any) -> str:
    """By the files where they can be looked at; elsewhere by the metadata and the number of bytes stored."""
    from zarr.storage import LocalStore

    if isinstance(array.store, LocalStore):
        folder = Path(array.store.root) / array.path
        return signature_of("zarr", file_facts(sorted(path for path in folder.rglob("*") if path.is_file())))
    return signature_of("zarr", str(array.store_path), array.metadata.to_dict(), array.nbytes_stored())
