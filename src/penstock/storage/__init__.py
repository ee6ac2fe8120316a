"""States in files: nested dicts of numbers, text and numpy arrays, in one file each, without pickle.

A file is safetensors with the rest as JSON in its metadata, a format version and a SHA-256 over every byte; reading it
runs no code, and a file that was damaged, cut short or made by a stranger is refused: docs/saving.md and
docs/decisions/0007-storage.md.

>>> import tempfile, numpy as np
>>> path = tempfile.mkdtemp() + "/state.safetensors"
>>> write_state(path, "example", {"rounds": 3, "limit": float("inf"), "weights": np.arange(3.0)})
>>> read_state(path)
('example', {'rounds': 3, 'limit': inf, 'weights': array([0., 1., 2.])})
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from penstock.storage.files import (
    CorruptFileError,
    NewerVersionError,
    StorageError,
    WrongKindError,
    lock,
    open_file,
    remove_leftovers,
    replace_file,
)
from penstock.storage.states import FORMAT_VERSION, MAX_HEADER, Record, seal, unseal, upgrade

__all__ = [
    "FORMAT_VERSION",
    "MAX_HEADER",
    "CorruptFileError",
    "NewerVersionError",
    "Record",
    "StorageError",
    "WrongKindError",
    "lock",
    "read_state",
    "remove_leftovers",
    "replace_file",
    "write_state",
]


def write_state(path: str | os.PathLike[str], kind: str, state: dict[str, Any]) -> None:
    """Write a state to a file, wholly or not at all: the old file stays until the new one is safely on the disk.

    Parameters
    ----------
    path : path
        Any name; by custom it ends in ".safetensors".
    kind : str
        What it is, for `read_state` to compare.
    state : dict
        Keys are str. Values are None, bool, int, float (also NaN and infinities), str, numpy arrays of bool, int, uint,
        float32 or float64 of any shape, and lists and dicts of these. Anything else is a TypeError that names the
        place. All that is not an array may have 100,000 values and take 4 MB: long lists belong into arrays.
    """
    import penstock

    if type(kind) is not str:
        raise TypeError(f"kind must be a str; got {kind!r}.")
    replace_file(Path(path), seal(kind, state, penstock.__version__))


def read_state(path: str | os.PathLike[str], kind: str | None = None) -> tuple[str, dict[str, Any]]:
    """The kind and the state in a file; arrays are writable and nobody else's.

    Raises a `StorageError` unless the file is sound to the last byte and, if `kind` is given, of this kind. Safe for
    files from strangers: it takes no more memory than about the file's size, runs nothing and never waits.
    """
    try:
        with open_file(Path(path)) as stream:
            content = unseal(stream, os.fstat(stream.fileno()).st_size)
        if kind is not None and content.kind != kind:
            raise WrongKindError(f"it holds a {content.kind!r:.80}, not a {kind!r}")
        return content.kind, upgrade(content.version, content.kind, content.state)
    except StorageError as error:
        raise type(error)(f"Cannot read {os.fspath(path)}: {error}") from None
    except MemoryError:
        raise StorageError(f"Cannot read {os.fspath(path)}: it does not fit into memory.") from None
