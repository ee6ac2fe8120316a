"""Where safetensors says its arrays are: every number checked, then the arrays read."""

from __future__ import annotations

import math
import sys
from dataclasses import dataclass
from typing import Any, BinaryIO

import numpy as np

from penstock.storage._document import DTYPES, Array
from penstock.storage._errors import CorruptFileError

_NUMPY_TYPES = {theirs: np.dtype(ours).newbyteorder("<") for ours, theirs in DTYPES.items()}
_MOST_DIMENSIONS = 32


@dataclass(frozen=True)
class Slot:
    """One array's place: `start` and `stop` count bytes from the end of the header."""

    name: str
    dtype: np.dtype[Any]
    shape: tuple[int, ...]
    start: int
    stop: int


def read_layout(tensors: dict[str, Any], size: int) -> list[Slot]:
    """The slots in the order of the file: they fill its `size` bytes without gap or overlap, or it is refused."""
    slots = sorted((_slot(name, entry) for name, entry in tensors.items()), key=lambda slot: (slot.start, slot.stop))
    position = 0
    for slot in slots:
        if slot.start != position:
            raise CorruptFileError(f"its array {slot.name!r:.80} overlaps another, or there is a gap before it")
        position = slot.stop
    if position != size:
        raise CorruptFileError(f"its arrays should take {position:,} bytes, but {size:,} are there")
    return slots


def _slot(name: str, entry: Any) -> Slot:
    if not isinstance(entry, dict) or set(entry) != {"dtype", "shape", "data_offsets"}:
        raise _nonsense(name)
    kind, shape, offsets = entry["dtype"], entry["shape"], entry["data_offsets"]
    if not isinstance(kind, str) or kind not in _NUMPY_TYPES:
        raise CorruptFileError(f"its array {name!r:.80} is of the unknown type {kind!r:.80}")
    if not _are_counts(shape) or not _are_counts(offsets) or len(shape) > _MOST_DIMENSIONS or len(offsets) != 2:
        raise _nonsense(name)
    dtype = _NUMPY_TYPES[kind]
    # Beside a 0 the other numbers of a shape may be anything, but numpy multiplies them.
    if math.prod(max(1, length) for length in shape) * dtype.itemsize > sys.maxsize:
        raise _nonsense(name)
    if offsets[1] - offsets[0] != math.prod(shape) * dtype.itemsize:
        raise CorruptFileError(f"its array {name!r:.80} does not have as many bytes as its shape needs")
    return Slot(name, dtype, tuple(shape), offsets[0], offsets[1])


def _nonsense(name: str) -> CorruptFileError:
    return CorruptFileError(f"its array {name!r:.80} is described in a way that makes no sense")


def _are_counts(values: Any) -> bool:
    return isinstance(values, list) and all(type(value) is int and 0 <= value <= sys.maxsize for value in values)


def read_arrays(stream: BinaryIO, slots: list[Slot], digest: Any) -> dict[str, Array]:
    """The arrays of a stream that stands at the end of the header, each in memory of its own; hashed on the way."""
    arrays = {}
    for slot in slots:
        array: Array = np.empty(slot.shape, dtype=slot.dtype)
        content: Any = array.reshape(-1).view(np.uint8)
        if stream.readinto(content) != content.size:  # type: ignore[attr-defined]
            raise CorruptFileError("it was cut short while being read")
        if slot.dtype == np.bool_ and content.size and content.max() > 1:
            raise CorruptFileError(f"its array {slot.name!r:.80} should hold 0 and 1 only")
        digest.update(content)
        arrays[slot.name] = array.astype(slot.dtype.newbyteorder("="), copy=False)
    return arrays
