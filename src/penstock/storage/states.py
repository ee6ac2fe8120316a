"""Read and write states: nested dicts of numbers, text and NumPy arrays, in one safetensors file each.

All that is not an array is JSON in one entry "penstock" of the file's metadata: {"checksum": …, "format": …, "kind": …,
"penstock": …, "state": …}. There an array is {"$array": its name}, a float that JSON lacks (NaN, inf) {"$float": its
bits in hex}, and a key that begins with $ has a second one. The checksum is the SHA-256 of the whole file with 64 zeros
in the checksum's place, so that it covers every byte. This much is the same in all formats: any version can distinguish
a newer file from a damaged one.

The safetensors library writes; reading is done here. A reader of untrusted files has to check every number of the
header anyway, and a second parser that may read the same bytes differently would add a risk, and a copy of the arrays.
"""

from __future__ import annotations

import hashlib
import json
import math
import os
import re
import struct
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path
from typing import Any, BinaryIO
from urllib.parse import quote

import numpy as np
from numpy.typing import NDArray
from safetensors.numpy import save

from penstock.storage.files import StorageError, open_file, replace_file

Array = NDArray[Any]

FORMAT_VERSION = 1  # a change of what is stored raises it; other formats are refused

MAX_HEADER = 4 * 2**20  # bytes, without the arrays
MAX_DEPTH = 100  # of JSON
MAX_VALUES = 100_000  # of JSON: four megabytes of {} would take two seconds to become Python objects
MAX_DIGITS = 1000  # reading a decimal number takes time quadratic in its digits
DEEPEST_STATE = 64  # dicts and lists in each other; less than MAX_DEPTH
_MOST_DIMENSIONS = 32

# Names of types in NumPy and in safetensors.
DTYPES = {
    "bool": "BOOL", "int8": "I8", "int16": "I16", "int32": "I32", "int64": "I64", "uint8": "U8", "uint16": "U16",
    "uint32": "U32", "uint64": "U64", "float32": "F32", "float64": "F64",
}  # fmt: skip
_NUMPY_TYPES = {theirs: np.dtype(ours).newbyteorder("<") for ours, theirs in DTYPES.items()}

_LENGTH = 8  # bytes of the header's length
_MARK = b'"{\\"checksum\\":\\"'  # inside the header, where all other quotes of the entry are escaped: it occurs once
_BLANK = "0" * 64
_STRINGS = re.compile(rb'"[^"]*"')
_STEPS = np.zeros(256, dtype=np.int8)
_STEPS[[ord("["), ord("{")]] = 1
_STEPS[[ord("]"), ord("}")]] = -1


def write_state(path: str | os.PathLike[str], kind: str, state: dict[str, Any]) -> None:
    """Write a state to a file atomically: the old file stays until the new one is safely on the disk.

    States hold readings: only the owner can read a new file.

    path : any name; usually it ends in ".safetensors".
    kind : what it is, for `read_state` to compare.
    state : keys are str. Values are None, bool, int, float (also NaN and infinities), str, NumPy arrays of bool, int,
        uint, float32 or float64 of any shape, and lists and dicts of these. Anything else is a TypeError that names the
        place. All that is not an array may have 100,000 values and take 4 MB: long lists belong into arrays.
    """
    if type(kind) is not str:
        raise TypeError(f"kind must be a str; got {kind!r}.")
    replace_file(Path(path), _encode_file(kind, state), private=True)


def state_to_bytes(kind: str, state: dict[str, Any]) -> bytes:
    """Return what `write_state` would write to a file."""
    return b"".join(_encode_file(kind, state))


def state_from_bytes(data: bytes, kind: str) -> dict[str, Any]:
    """Return the state of this kind that `state_to_bytes` was given; StorageError if the bytes are not sound."""
    return _read_stream(BytesIO(data), len(data), kind)[1]


def read_state(path: str | os.PathLike[str], kind: str | None = None) -> tuple[str, dict[str, Any]]:
    """Read the kind and the state in a file; the arrays are writable.

    Safe for untrusted files: it takes about as much memory as the file is long, executes nothing and never blocks.

    kind : raise a `StorageError` if the file is of another kind.

    Raises StorageError: if the file is not sound to the last byte.
    """
    try:
        with open_file(Path(path)) as stream:
            return _read_stream(stream, os.fstat(stream.fileno()).st_size, kind)
    except StorageError as error:
        raise type(error)(f"Cannot read {os.fspath(path)}: {error}") from None
    except MemoryError:
        raise StorageError(f"Cannot read {os.fspath(path)}: it does not fit into memory.") from None


def _read_stream(stream: BinaryIO, size: int, kind: str | None) -> tuple[str, dict[str, Any]]:
    found, state = _decode_file(stream, size)
    if kind is not None and found != kind:
        raise StorageError(f"it holds a {found!r:.80}, not a {kind!r}")
    return found, state


def _encode_file(kind: str, state: dict[str, Any]) -> list[memoryview]:
    """Return the bytes of a file, in pieces to be written one after the other."""
    import penstock

    if type(state) is not dict:
        raise TypeError(f"A state must be a dict; got {type(state).__name__}.")
    arrays: dict[str, Array] = {}
    document = _encode(state, "state", [], arrays)
    entry = {
        "checksum": _BLANK,
        "format": FORMAT_VERSION,
        "kind": kind,
        "penstock": penstock.__version__,
        "state": document,
    }
    text = json.dumps(entry, separators=(",", ":"), allow_nan=False)
    whole = memoryview(save(arrays, metadata={"penstock": text}))
    head = bytes(whole[: _LENGTH + int.from_bytes(whole[:_LENGTH], "little")])
    values = max(measure_json(head[_LENGTH:])[1], measure_json(text.encode())[1])
    if len(head) - _LENGTH > MAX_HEADER or values > MAX_VALUES:  # it could not be read
        raise StorageError(
            f"What is to be stored apart from numpy arrays has {values:,} values and takes {len(head) - _LENGTH:,} "
            f"bytes; {MAX_VALUES:,} and {MAX_HEADER:,} are allowed. Put long lists into arrays."
        )
    start = _checksum_place(head)
    digest = hashlib.sha256(whole).hexdigest().encode()
    return [whole[:start], memoryview(digest), whole[start + len(_BLANK) :]]


def _decode_file(stream: BinaryIO, size: int) -> tuple[str, dict[str, Any]]:
    """Return kind and state of a file of `size` bytes; every part is checked before it is used.

    Takes the memory of the arrays, and about that of ten headers.
    """
    first = stream.read(_LENGTH)
    length = int.from_bytes(first, "little")
    if len(first) < _LENGTH or length > size - _LENGTH:
        raise StorageError("it is cut short, or not a file saved by penstock")
    if length > MAX_HEADER:
        raise StorageError(f"its header has {length:,} bytes; penstock writes at most {MAX_HEADER:,}")
    head = first + stream.read(length)
    if len(head) < _LENGTH + length:
        raise StorageError("it was cut short while being read")
    start = _checksum_place(head)
    digest = hashlib.sha256(head[:start] + _BLANK.encode() + head[start + len(_BLANK) :])
    tensors = parse_json(head[_LENGTH:])
    metadata = tensors.pop("__metadata__", None) if isinstance(tensors, dict) else None
    if not isinstance(metadata, dict) or set(metadata) != {"penstock"} or type(metadata["penstock"]) is not str:
        raise StorageError("it is not a file saved by penstock")
    entry = parse_json(metadata["penstock"].encode("utf-8", errors="surrogatepass"))
    version, checksum = (entry.get("format"), entry.get("checksum")) if isinstance(entry, dict) else (None, None)
    if type(version) is not int or version < 1 or type(checksum) is not str:
        raise StorageError("it does not say which format it has")
    newer = version > FORMAT_VERSION
    if newer:
        while chunk := stream.read(2**20):
            digest.update(chunk)
    elif set(entry) != {"checksum", "format", "kind", "penstock", "state"} or type(entry["kind"]) is not str:
        raise StorageError("its entry 'penstock' lacks a part, or has one too many")
    arrays = {} if newer else _read_arrays(stream, _read_layout(tensors, size - len(head)), digest)
    if digest.hexdigest() != checksum:
        raise StorageError("it is damaged: its checksum does not match what it holds")
    if newer:
        raise StorageError(
            f"it was written by a newer penstock (format {version}); this one reads up to format "
            f"{FORMAT_VERSION}. Update penstock."
        )
    state = _decode(entry["state"], arrays)
    if type(state) is not dict:
        raise StorageError("its document is not a state")
    if arrays:
        raise StorageError(f"it has an array {next(iter(arrays))!r} that belongs nowhere")
    return entry["kind"], state


def _checksum_place(head: bytes) -> int:
    place = head.find(_MARK)
    if place < 0:
        raise StorageError("it is not a file saved by penstock")
    return place + len(_MARK)


def _encode(value: Any, place: str, way: list[str], arrays: dict[str, Array]) -> Any:
    """Return what JSON holds of a value; its arrays are put into `arrays`, named by the way to them."""
    if value is None or type(value) in (bool, str):
        return value
    if type(value) is int:
        if value.bit_length() > 3 * MAX_DIGITS:  # a digit has more than three bits
            raise ValueError(f"{place} is a whole number of more than {3 * MAX_DIGITS} bits, which cannot be stored.")
        return value
    if type(value) in (float, np.float64):
        return float(value) if math.isfinite(value) else {"$float": struct.pack(">d", value).hex()}
    if type(value) is np.ndarray:
        if value.dtype.name not in DTYPES:
            raise TypeError(
                f"{place} is an array of dtype {value.dtype}, which cannot be stored: only bool, int, uint, float32 "
                f"and float64 can."
            )
        name = "/" + "/".join(way)
        arrays[name] = np.array(value, dtype=value.dtype.newbyteorder("<"), order="C", copy=None)
        return {"$array": name}
    if len(way) >= DEEPEST_STATE and isinstance(value, list | dict):
        raise ValueError(f"{place:.80}… is nested more than {DEEPEST_STATE} levels deep.")
    if type(value) is list:
        return [_encode(item, f"{place}[{i}]", [*way, str(i)], arrays) for i, item in enumerate(value)]
    if type(value) is dict:
        encoded = {}
        for key, item in value.items():
            if type(key) is not str:
                raise TypeError(f"{place} has the key {key!r} of type {type(key).__name__}; keys must be str.")
            word = quote(key, safe=" ", errors="surrogatepass")  # a part of a name, without slashes and in ASCII
            kept = f"${key}" if key.startswith("$") else key
            encoded[kept] = _encode(item, f"{place}[{key!r}]", [*way, word], arrays)
        return encoded
    raise TypeError(
        f"{place} is of type {type(value).__name__}, which cannot be stored: only None, bool, int, float, str, list, "
        f"dict and numpy arrays of numbers can."
    )


def _decode(value: Any, arrays: dict[str, Array]) -> Any:
    """Return the value that JSON stands for; each array is taken out of `arrays`, once."""
    if isinstance(value, list):
        return [_decode(item, arrays) for item in value]
    if not isinstance(value, dict):
        return value
    if set(value) == {"$array"}:
        name = value["$array"]
        if not isinstance(name, str) or name not in arrays:
            raise StorageError(f"its document names an array {name!r:.80} that is not there, or used twice")
        return arrays.pop(name)
    if set(value) == {"$float"}:
        bits = value["$float"]
        if isinstance(bits, str) and re.fullmatch("[0-9a-f]{16}", bits):
            number: float = struct.unpack(">d", bytes.fromhex(bits))[0]
            if not math.isfinite(number):
                return number
        raise StorageError(f"its document holds a float that is none: {bits!r:.80}")
    unknown = next((key for key in value if key.startswith("$") and not key.startswith("$$")), None)
    if unknown is not None:
        raise StorageError(f"its document has the unknown mark {unknown!r:.80}")
    return {key[1:] if key.startswith("$$") else key: _decode(item, arrays) for key, item in value.items()}


@dataclass(frozen=True)
class _Slot:
    """The place of an array: `start` and `stop` count bytes from the end of the header."""

    name: str
    dtype: np.dtype[Any]
    shape: tuple[int, ...]
    start: int
    stop: int


def _read_layout(tensors: dict[str, Any], size: int) -> list[_Slot]:
    """Return the arrays in the order of the file; they must fill its `size` bytes without gap or overlap."""
    slots = sorted(
        (_read_slot(name, entry) for name, entry in tensors.items()), key=lambda slot: (slot.start, slot.stop)
    )
    position = 0
    for slot in slots:
        if slot.start != position:
            raise StorageError(f"its array {slot.name!r:.80} overlaps another, or there is a gap before it")
        position = slot.stop
    if position != size:
        raise StorageError(f"its arrays should take {position:,} bytes, but {size:,} are there")
    return slots


def _read_slot(name: str, entry: Any) -> _Slot:
    nonsense = StorageError(f"its array {name!r:.80} is described in a way that makes no sense")
    if not isinstance(entry, dict) or set(entry) != {"dtype", "shape", "data_offsets"}:
        raise nonsense
    kind, shape, offsets = entry["dtype"], entry["shape"], entry["data_offsets"]
    if not isinstance(kind, str) or kind not in _NUMPY_TYPES:
        raise StorageError(f"its array {name!r:.80} is of the unknown type {kind!r:.80}")
    if not _are_counts(shape) or not _are_counts(offsets) or len(shape) > _MOST_DIMENSIONS or len(offsets) != 2:
        raise nonsense
    dtype = _NUMPY_TYPES[kind]
    # With a 0 the other numbers of a shape may be anything, but numpy multiplies them.
    if math.prod(max(1, length) for length in shape) * dtype.itemsize > sys.maxsize:
        raise nonsense
    if offsets[1] - offsets[0] != math.prod(shape) * dtype.itemsize:
        raise StorageError(f"its array {name!r:.80} does not have as many bytes as its shape needs")
    return _Slot(name, dtype, tuple(shape), offsets[0], offsets[1])


def _are_counts(values: Any) -> bool:
    return isinstance(values, list) and all(type(value) is int and 0 <= value <= sys.maxsize for value in values)


def _read_arrays(stream: BinaryIO, slots: list[_Slot], digest: Any) -> dict[str, Array]:
    """Read and hash the arrays of a stream that stands at the end of the header."""
    arrays = {}
    for slot in slots:
        array: Array = np.empty(slot.shape, dtype=slot.dtype)
        content: Any = array.reshape(-1).view(np.uint8)
        if stream.readinto(content) != content.size:  # type: ignore[attr-defined]
            raise StorageError("it was cut short while being read")
        if slot.dtype == np.bool_ and content.size and content.max() > 1:
            raise StorageError(f"its array {slot.name!r:.80} should hold 0 and 1 only")
        digest.update(content)
        arrays[slot.name] = array.astype(slot.dtype.newbyteorder("="), copy=False)
    return arrays


def parse_json(text: bytes) -> Any:
    """Parse untrusted JSON with limits on depth, number of values and digits; no key may come twice."""
    depth, values = measure_json(text)
    if depth > MAX_DEPTH or values > MAX_VALUES:
        raise StorageError(f"its header is nested more than {MAX_DEPTH} deep or has more than {MAX_VALUES:,} values")

    def without_duplicates(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        result = dict(pairs)
        if len(result) < len(pairs):
            raise StorageError("its header has a key twice")
        return result

    def refuse_constant(name: str) -> Any:
        raise StorageError(f"its header holds {name}, which is not JSON")

    def parse_int(digits: str) -> int:
        if len(digits) > MAX_DIGITS:
            raise StorageError(f"its header holds a number of {len(digits)} digits")
        return int(digits)

    hooks: dict[str, Any] = {"parse_constant": refuse_constant, "parse_int": parse_int}
    try:
        return json.loads(text.decode("utf-8"), object_pairs_hook=without_duplicates, **hooks)
    except StorageError:
        raise
    except UnicodeDecodeError:
        raise StorageError("its header is not UTF-8 text") from None
    except ValueError as error:
        raise StorageError(f"its header is not valid JSON ({error})") from None


def measure_json(text: bytes) -> tuple[int, int]:
    """Return how deep a JSON text nests, and how many values it has (at most), without parsing it.

    The parser of json recurses, and would overflow the stack of a program that has raised Python's own limit. The
    numbers are right as far as the text is valid JSON, and the parser goes no farther.

    >>> measure_json(b'{"a":[1,2.5,{"[[[":3}]}')
    (3, 6)
    """
    unescaped = text.replace(b"\\\\", b"").replace(b'\\"', b"")
    strings = unescaped.count(b'"') // 2
    if strings > 2 * MAX_VALUES:  # a key and a value each: that is too many, and cutting them out would cost memory
        return 0, strings
    outside = _STRINGS.sub(b"", unescaped)
    steps = _STEPS[np.frombuffer(outside, dtype=np.uint8)]
    depth = int(np.cumsum(steps, dtype=np.int32).max(initial=0))
    return depth, 1 + outside.count(b",") + outside.count(b"[") + outside.count(b"{")


class Record:
    """Read a dict of a state field by field; what does not fit is a `StorageError` that names the field."""

    def __init__(self, content: Any, place: str) -> None:
        if type(content) is not dict:
            raise StorageError(f"{place} should be a dict, but is {content!r:.80}")
        self._content: dict[str, Any] = content
        self.place = place

    def require_fields(self, *names: str) -> Record:
        """Raise unless the fields are exactly these."""
        if set(self._content) != set(names):
            odd = sorted(set(self._content) ^ set(names))
            raise StorageError(f"{self.place} should have the fields {', '.join(names)}; too many or missing: {odd}")
        return self

    def part(self, name: str) -> Record:
        return Record(self.value(name), f"{self.place}[{name!r}]")

    def optional_part(self, name: str) -> Record | None:
        return None if self.value(name) is None else self.part(name)

    def __iter__(self) -> Iterator[str]:
        """Return the names of the fields."""
        return iter(self._content)

    def value(self, name: str) -> Any:
        """Return a field as it is, unchecked."""
        if name not in self._content:
            raise StorageError(f"{self.place} lacks the field {name!r}")
        return self._content[name]

    def flag(self, name: str) -> bool:
        value = self.value(name)
        if type(value) is not bool:
            raise self.error(name, "True or False")
        return value

    def text(self, name: str) -> str:
        value = self.value(name)
        if type(value) is not str:
            raise self.error(name, "text")
        return value

    def whole(self, name: str, *, least: int, most: int | None = None) -> int:
        """Return a whole number between two bounds."""
        value = self.value(name)
        if type(value) is not int or value < least or (most is not None and value > most):
            raise self.error(name, f"a whole number ≥ {least}" + (f" and ≤ {most}" if most is not None else ""))
        return value

    def number(self, name: str, *, least: float = -math.inf, infinite: bool = False) -> float:
        """Return a float ≥ `least`; never NaN, and finite unless infinities are allowed."""
        value = self.value(name)
        if type(value) is not float or not value >= least or not (infinite or math.isfinite(value)):
            raise self.error(name, f"a {'' if infinite else 'finite '}number" + _bounds(least, math.inf))
        return value

    def array(
        self,
        name: str,
        dtype: Any,
        shape: tuple[int | None, ...],
        *,
        least: float = -math.inf,
        most: float = math.inf,
        missing: bool = False,
    ) -> NDArray[Any]:
        """Return an array of this type and shape (None: any length), finite, within bounds; NaN only if `missing`."""
        value, wanted = self.value(name), np.dtype(dtype)
        fits = isinstance(value, np.ndarray) and value.dtype == wanted and value.ndim == len(shape)
        if not fits or any(length not in (None, found) for length, found in zip(shape, value.shape, strict=True)):
            lengths = ", ".join("any" if length is None else str(length) for length in shape)
            raise self.error(name, f"{wanted} of shape ({lengths})")
        seen = value[~np.isnan(value)] if missing else value
        if seen.size and wanted.kind != "b":
            low, high = seen.min(), seen.max()  # NaN, if there is one, and then no comparison holds
            if not (low >= least and high <= most and math.isfinite(low) and math.isfinite(high)):
                raise StorageError(f"{self.place}[{name!r}] should hold finite numbers{_bounds(least, most)} only")
        result: NDArray[Any] = value
        return result

    def error(self, name: str, expected: str) -> StorageError:
        """Return the error to raise where a field is not what it should be."""
        value = self.value(name)
        found = f"{value.dtype} of shape {value.shape}" if isinstance(value, np.ndarray) else f"{value!r:.80}"
        return StorageError(f"{self.place}[{name!r}] should be {expected}, but is {found}")


def _bounds(least: float, most: float) -> str:
    bounds = [] if least == -math.inf else ["> 0" if 0 < least < 1e-300 else f"≥ {least:g}"]
    bounds += [] if most == math.inf else [f"≤ {most:g}"]
    return " " + " and ".join(bounds) if bounds else ""
