"""What a source of rows is made of: pieces that a task can load by itself, and a signature to know them again by."""

from __future__ import annotations

import hashlib
import os
from abc import ABC, abstractmethod
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from penstock._types import FloatArray
from penstock.scale._checks import SourceError

PIECE_BYTES = 32 << 20  # large enough that loading outweighs the scheduling, small enough that many fit into a worker


class Piece(Protocol):
    """A run of consecutive rows that a task can load by itself, again and again."""

    @property
    def label(self) -> str:
        """What messages call it: the file and which part of it."""

    @property
    def n_rows(self) -> int | None:
        """How many rows it has; None if that is not known before loading."""

    @property
    def delayed(self) -> Any:
        """For pieces of a Dask collection the `dask.delayed` block to pass to a task; None for pieces of files."""

    def load(self) -> FloatArray:
        """The rows, C-contiguous float64 and finite; raises `SourceError` naming the label, row and column."""


class FilePiece(ABC):
    """A piece that lies in a file, so that a task on any worker can load it."""

    @property
    def delayed(self) -> None:
        """None: a file needs no Dask graph before it."""
        return

    @abstractmethod
    def load(self) -> FloatArray:
        """The rows, C-contiguous float64 and finite; raises `SourceError` naming the label, row and column."""


@dataclass(frozen=True)
class Source:
    """Rows in pieces.

    Attributes
    ----------
    pieces
        In the order of the rows. Those of files are small and can be pickled; those of Dask carry their graph, so pass
        their `delayed` to tasks, not the pieces.
    columns
        The names of the columns, None if they have none (or not all of them are texts).
    n_columns
        How many there are.
    signature
        A hex digest that changes when the source does: by the paths, sizes and times of change of files, the content
        of arrays, or Dask's token of a collection.
    """

    pieces: list[Piece]
    columns: list[str] | None
    n_columns: int
    signature: str


def signature_of(*facts: object) -> str:
    """A digest of facts whose `repr` tells them apart.

    >>> signature_of("a", 1) == signature_of("a", 1), signature_of("a", 1) == signature_of("a", 2)
    (True, False)
    """
    return hashlib.blake2b(repr(facts).encode(errors="surrogateescape"), digest_size=16).hexdigest()


def file_facts(paths: Iterable[Path]) -> list[tuple[str, int, int]]:
    """The path, size and time of change of each file: cheap to ask for, and different when a file was written anew."""
    facts = []
    for path in paths:
        status = path.stat()
        facts.append((os.fspath(path), status.st_size, status.st_mtime_ns))
    return facts


def refuse_no_rows(pieces: Iterable[Piece], label: str) -> None:
    """Raise if it is known before loading that there are no rows at all; single pieces may be empty."""
    if all(piece.n_rows == 0 for piece in pieces):
        raise SourceError(f"{label} has no rows. A detector needs some to learn from.")
