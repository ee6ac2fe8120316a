"""Store states in files: nested dicts of numbers, text and NumPy arrays, in one file each, without pickle.

A file is safetensors with the rest as JSON in its metadata, a format version and a SHA-256 of every byte; reading it
executes nothing, and a file that is damaged, cut short or hostile is refused: docs/saving.md and
docs/decisions/0007-storage.md.

>>> import tempfile, numpy as np
>>> path = tempfile.mkdtemp() + "/state.safetensors"
>>> write_state(path, "example", {"rounds": 3, "limit": float("inf"), "weights": np.arange(3.0)})
>>> read_state(path)
('example', {'rounds': 3, 'limit': inf, 'weights': array([0., 1., 2.])})
"""

from penstock.storage.fields import LARGEST_WHOLE, Fields, pack_fields, read_field, read_fields
from penstock.storage.files import (
    StorageError,
    lock,
    remove_leftovers,
    replace_file,
)
from penstock.storage.states import (
    FORMAT_VERSION,
    MAX_HEADER,
    Record,
    read_state,
    state_from_bytes,
    state_to_bytes,
    write_state,
)

__all__ = [
    "FORMAT_VERSION", "LARGEST_WHOLE", "MAX_HEADER", "Fields", "Record", "StorageError", "lock", "pack_fields",
    "read_field", "read_fields", "read_state", "remove_leftovers", "replace_file", "state_from_bytes", "state_to_bytes",
    "write_state",
]  # fmt: skip
