"""The bytes of a file: safetensors, with one entry "penstock" in its metadata that holds everything but the arrays.

That entry is JSON: {"checksum": …, "format": …, "kind": …, "penstock": …, "state": …}. The checksum is the SHA-256 of
the whole file as it would be with 64 zeros in the checksum's place, so it covers every byte. This much stays the same
in all formats, so that any version can tell a newer file from a damaged one.

The safetensors library writes; reading is done here. A reader that trusts nothing has to check every number of the
header anyway, and a second parser that may see the same bytes differently would add a risk, and a copy of the arrays.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import Any, BinaryIO

from safetensors.numpy import save

from penstock.storage import _versions
from penstock.storage._document import Array, put_together, take_apart
from penstock.storage._errors import CorruptFileError, NewerVersionError, StorageError
from penstock.storage._json import MAX_VALUES, measure_json, parse_json, write_json
from penstock.storage._layout import read_arrays, read_layout

MAX_HEADER = 4 * 2**20  # bytes: arrays are not in it

_LENGTH = 8  # bytes of the header's length
_MARK = b'"{\\"checksum\\":\\"'  # inside the header, where all other quotes of the entry are escaped: it occurs once
_BLANK = "0" * 64
_CHUNK = 2**20


@dataclass(frozen=True)
class Content:
    """What a file holds."""

    version: int
    kind: str
    state: dict[str, Any]


def seal(kind: str, state: dict[str, Any], program: str) -> list[memoryview]:
    """The bytes of a file, in pieces to be written one after the other."""
    document, arrays = take_apart(state)
    version = _versions.FORMAT_VERSION
    entry = {"checksum": _BLANK, "format": version, "kind": kind, "penstock": program, "state": document}
    text = write_json(entry)
    unsealed = memoryview(save(arrays, metadata={"penstock": text}))
    head = bytes(unsealed[: _LENGTH + int.from_bytes(unsealed[:_LENGTH], "little")])
    _refuse_crumbs(head[_LENGTH:], text.encode())
    start = _checksum_place(head)
    digest = hashlib.sha256(unsealed).hexdigest().encode()
    return [unsealed[:start], memoryview(digest), unsealed[start + len(_BLANK) :]]


def _refuse_crumbs(header: bytes, entry: bytes) -> None:
    """What could not be read must not be written."""
    values = max(measure_json(header)[1], measure_json(entry)[1])
    if len(header) > MAX_HEADER or values > MAX_VALUES:
        raise StorageError(
            f"What is to be stored beside numpy arrays has {values:,} values and takes {len(header):,} bytes; "
            f"{MAX_VALUES:,} and {MAX_HEADER:,} are allowed. Put long lists into arrays."
        )


def unseal(stream: BinaryIO, size: int) -> Content:
    """What a file of so many bytes holds. Nothing is believed before it is checked, and nothing in it is executed.

    Takes the memory of the arrays, and about that of ten headers.
    """
    head = _read_head(stream, size)
    start = _checksum_place(head)
    digest = hashlib.sha256(head[:start] + _BLANK.encode() + head[start + len(_BLANK) :])
    tensors = parse_json(head[_LENGTH:])
    entry = _take_entry(tensors)
    version, checksum = entry.get("format"), entry.get("checksum")
    if type(version) is not int or version < 1 or type(checksum) is not str:
        raise CorruptFileError("it does not say which format it has")
    if version > _versions.FORMAT_VERSION:
        _hash_rest(stream, digest)
        _compare(digest, checksum)
        raise NewerVersionError(
            f"it was written by a newer penstock (format {version}); this one reads up to format "
            f"{_versions.FORMAT_VERSION}. Update penstock."
        )
    if set(entry) != {"checksum", "format", "kind", "penstock", "state"} or type(entry["kind"]) is not str:
        raise CorruptFileError("its entry 'penstock' lacks a part, or has one too many")
    arrays: dict[str, Array] = read_arrays(stream, read_layout(tensors, size - len(head)), digest)
    _compare(digest, checksum)
    return Content(version, entry["kind"], put_together(entry["state"], arrays))


def _read_head(stream: BinaryIO, size: int) -> bytes:
    """The header and the eight bytes before it, which say how long it is."""
    first = stream.read(_LENGTH)
    length = int.from_bytes(first, "little")
    if len(first) < _LENGTH or length > size - _LENGTH:
        raise CorruptFileError("it is cut short, or not a file saved by penstock")
    if length > MAX_HEADER:
        raise CorruptFileError(f"its header has {length:,} bytes; penstock writes at most {MAX_HEADER:,}")
    header = stream.read(length)
    if len(header) < length:
        raise CorruptFileError("it was cut short while being read")
    return first + header


def _checksum_place(head: bytes) -> int:
    place = head.find(_MARK)
    if place < 0:
        raise CorruptFileError("it is not a file saved by penstock")
    return place + len(_MARK)


def _take_entry(tensors: Any) -> dict[str, Any]:
    """The entry "penstock", taken out of the header: tensors are left."""
    metadata = tensors.pop("__metadata__", None) if isinstance(tensors, dict) else None
    if not isinstance(metadata, dict) or set(metadata) != {"penstock"} or type(metadata["penstock"]) is not str:
        raise CorruptFileError("it is not a file saved by penstock")
    entry = parse_json(metadata["penstock"].encode("utf-8", errors="surrogatepass"))
    if not isinstance(entry, dict):
        raise CorruptFileError("its entry 'penstock' is not a JSON object")
    return entry


def _hash_rest(stream: BinaryIO, digest: Any) -> None:
    while chunk := stream.read(_CHUNK):
        digest.update(chunk)


def _compare(digest: Any, checksum: str) -> None:
    if digest.hexdigest() != checksum:
        raise CorruptFileError("it is damaged: its checksum does not match what it holds")
