"""Format of state files: safetensors with JSON metadata, a format version and a SHA-256 of every byte."""

from __future__ import annotations

import hashlib
import json
import math
import re
import struct
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, BinaryIO
from urllib.parse import quote

import numpy as np
from numpy.typing import NDArray
from safetensors.numpy import save

from penstock.storage.files import CorruptFileError, NewerVersionError, StorageError

FORMAT_VERSION = 1

# From each older format the step to the next: it gets the kind and the state and returns the state. A change of what a
# detector stores raises FORMAT_VERSION and adds a step; tests/golden has files of every format to prove it.
Upgrade = Callable[[str, dict[str, Any]], dict[str, Any]]
UPGRADES: dict[int, Upgrade] = {}


def upgrade(version: int, kind: str, state: dict[str, Any]) -> dict[str, Any]:
    """A state of an older format as one of today's."""
    while version < FORMAT_VERSION:
        if version not in UPGRADES:
            raise StorageError(f"it has format {version}, which this version of penstock no longer reads")
        state = UPGRADES[version](kind, state)
        version += 1
    return state


MAX_DEPTH = 100
MAX_VALUES = 100_000  # four megabytes of {} would take two seconds to become Python objects
MAX_DIGITS = 1000  # reading a decimal number takes time quadratic in its digits

_STRINGS = re.compile(rb'"[^"]*"')
_STEPS = np.zeros(256, dtype=np.int8)
_STEPS[[ord("["), ord("{")]] = 1
_STEPS[[ord("]"), ord("}")]] = -1


def write_json(value: Any) -> str:
    """ASCII without spaces; keys in the order given."""
    return json.dumps(value, separators=(",", ":"), allow_nan=False)


def parse_json(text: bytes) -> Any:
    """The value of a JSON text, or a CorruptFileError.

    >>> parse_json(b'{"a":[1,2.5,null]}')
    {'a': [1, 2.5, None]}
    """
    depth, values = measure_json(text)
    if depth > MAX_DEPTH or values > MAX_VALUES:
        raise CorruptFileError(
            f"its header is nested more than {MAX_DEPTH} deep or has more than {MAX_VALUES:,} values"
        )
    try:
        return json.loads(
            text.decode("utf-8"),
            object_pairs_hook=_without_duplicates,
            parse_constant=_refuse_constant,
            parse_int=_parse_int,
        )
    except CorruptFileError:
        raise
    except UnicodeDecodeError:
        raise CorruptFileError("its header is not UTF-8 text") from None
    except ValueError as error:
        raise CorruptFileError(f"its header is not valid JSON ({error})") from None


def measure_json(text: bytes) -> tuple[int, int]:
    """How deep a JSON text nests, and how many values it has (at most), found without parsing it.

    json recurses, and would overflow the stack of a program that has raised Python's own limit. The numbers are right
    as far as the text is valid JSON, and the parser goes no farther.

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


def _without_duplicates(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    result = dict(pairs)
    if len(result) < len(pairs):
        raise CorruptFileError("its header has a key twice")
    return result


def _refuse_constant(name: str) -> Any:
    raise CorruptFileError(f"its header holds {name}, which is not JSON")


def _parse_int(digits: str) -> int:
    if len(digits) > MAX_DIGITS:
        raise CorruptFileError(f"its header holds a number of {len(digits)} digits")
    return int(digits)


Array = NDArray[Any]
DEEPEST_STATE = 64  # dicts and lists in each other; less than what `parse_json` takes
# What numpy calls a type, and what safetensors does.
DTYPES = {
    "bool": "BOOL",
    "int8": "I8",
    "int16": "I16",
    "int32": "I32",
    "int64": "I64",
    "uint8": "U8",
    "uint16": "U16",
    "uint32": "U32",
    "uint64": "U64",
    "float32": "F32",
    "float64": "F64",
}


def take_apart(state: dict[str, Any]) -> tuple[Any, dict[str, Array]]:
    """The document and the arrays of a state; a TypeError names what cannot be stored, and where it is.

    >>> import numpy as np
    >>> document, arrays = take_apart({"n": 3, "model": {"x": np.ones(2)}})
    >>> document
    {'n': 3, 'model': {'x': {'$array': '/model/x'}}}
    >>> arrays
    {'/model/x': array([1., 1.])}
    >>> take_apart({"model": {"x": 1j}})
    Traceback (most recent call last):
    TypeError: state['model']['x'] is of type complex, which cannot be stored...
    """
    if type(state) is not dict:
        raise TypeError(f"A state must be a dict; got {type(state).__name__}.")
    arrays: dict[str, Array] = {}
    return _take_apart(state, "state", [], arrays), arrays


def _take_apart(value: Any, place: str, way: list[str], arrays: dict[str, Array]) -> Any:
    if value is None or type(value) in (bool, str):
        return value
    if type(value) is int:
        return _checked_int(value, place)
    if type(value) in (float, np.float64):
        return float(value) if math.isfinite(value) else {"$float": struct.pack(">d", value).hex()}
    if type(value) is np.ndarray:
        name = "/" + "/".join(way)
        arrays[name] = _little_endian(value, place)
        return {"$array": name}
    if len(way) >= DEEPEST_STATE and isinstance(value, list | dict):
        raise ValueError(f"{place:.80}… is nested more than {DEEPEST_STATE} levels deep.")
    if type(value) is list:
        return [_take_apart(item, f"{place}[{i}]", [*way, str(i)], arrays) for i, item in enumerate(value)]
    if type(value) is dict:
        return {
            _checked_key(key, place): _take_apart(item, f"{place}[{key!r}]", [*way, _word(key)], arrays)
            for key, item in value.items()
        }
    raise TypeError(
        f"{place} is of type {type(value).__name__}, which cannot be stored: only None, bool, int, float, str, list, "
        f"dict and numpy arrays of numbers can."
    )


def _checked_int(value: int, place: str) -> int:
    if value.bit_length() > 3 * MAX_DIGITS:  # a digit has more than three bits
        raise ValueError(f"{place} is a whole number of more than {3 * MAX_DIGITS} bits, which cannot be stored.")
    return value


def _checked_key(key: object, place: str) -> str:
    if type(key) is not str:
        raise TypeError(f"{place} has the key {key!r} of type {type(key).__name__}; keys must be str.")
    return f"${key}" if key.startswith("$") else key


def _word(key: object) -> str:
    """A key as a part of a name, without slashes and in ASCII."""
    return quote(str(key), safe=" ", errors="surrogatepass")


def _little_endian(array: Array, place: str) -> Array:
    if array.dtype.name not in DTYPES:
        raise TypeError(
            f"{place} is an array of dtype {array.dtype}, which cannot be stored: only bool, int, uint, float32 and "
            f"float64 can."
        )
    return np.array(array, dtype=array.dtype.newbyteorder("<"), order="C", copy=None)


def put_together(document: Any, arrays: dict[str, Array]) -> dict[str, Any]:
    """The state of a document whose arrays are `arrays`, each used once; a CorruptFileError if that is not so."""
    left = dict(arrays)
    state = _put_together(document, left)
    if type(state) is not dict:
        raise CorruptFileError("its document is not a state")
    if left:
        raise CorruptFileError(f"it has an array {next(iter(left))!r} that belongs nowhere")
    return state


def _put_together(value: Any, left: dict[str, Array]) -> Any:
    if isinstance(value, list):
        return [_put_together(item, left) for item in value]
    if not isinstance(value, dict):
        return value
    if set(value) == {"$array"}:
        name = value["$array"]
        if not isinstance(name, str) or name not in left:
            raise CorruptFileError(f"its document names an array {name!r:.80} that is not there, or used twice")
        return left.pop(name)
    if set(value) == {"$float"}:
        return _special_float(value["$float"])
    return {_plain_key(key): _put_together(item, left) for key, item in value.items()}


def _special_float(bits: object) -> float:
    if isinstance(bits, str) and len(bits) == 16 and set(bits) <= set("0123456789abcdef"):
        value: float = struct.unpack(">d", bytes.fromhex(bits))[0]
        if not math.isfinite(value):
            return value
    raise CorruptFileError(f"its document holds a float that is none: {bits!r:.80}")


def _plain_key(key: str) -> str:
    if not key.startswith("$"):
        return key
    if not key.startswith("$$"):
        raise CorruptFileError(f"its document has the unknown mark {key!r:.80}")
    return key[1:]


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
    version = FORMAT_VERSION
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
    if version > FORMAT_VERSION:
        _hash_rest(stream, digest)
        _compare(digest, checksum)
        raise NewerVersionError(
            f"it was written by a newer penstock (format {version}); this one reads up to format "
            f"{FORMAT_VERSION}. Update penstock."
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


class Record:
    """A dict of a state that was read from a file, with a place for messages.

    >>> record = Record({"k": 3, "edges": np.zeros((4, 2))}, "fitted")
    >>> record.whole("k", least=1)
    3
    >>> record.array("edges", np.float64, (None, 2)).shape
    (4, 2)
    >>> record.array("edges", np.float64, (7, 2))
    Traceback (most recent call last):
    penstock.storage.files.StorageError: fitted['edges'] should be float64 of shape (7, 2), but is float64 of shape...
    """

    def __init__(self, content: Any, place: str) -> None:
        if type(content) is not dict:
            raise StorageError(f"{place} should be a dict, but is {content!r:.80}")
        self._content: dict[str, Any] = content
        self._place = place

    def only(self, *names: str, new: Mapping[str, Any] | None = None) -> Record:
        """Raise unless the fields are exactly these. Old files lack the `new` ones and get their values."""
        self._content = dict(new or {}) | self._content
        names = (*names, *(new or {}))
        if set(self._content) != set(names):
            odd = sorted(set(self._content) ^ set(names))
            raise StorageError(f"{self._place} should have the fields {', '.join(names)}; too many or missing: {odd}")
        return self

    def part(self, name: str) -> Record:
        """A field that is a dict."""
        return Record(self.value(name), f"{self._place}[{name!r}]")

    def optional_part(self, name: str) -> Record | None:
        """A field that is a dict or None."""
        return None if self.value(name) is None else self.part(name)

    def value(self, name: str) -> Any:
        """A field as it is, unchecked."""
        if name not in self._content:
            raise StorageError(f"{self._place} lacks the field {name!r}")
        return self._content[name]

    def flag(self, name: str) -> bool:
        value = self.value(name)
        if type(value) is not bool:
            raise self.trouble(name, "True or False")
        return value

    def text(self, name: str) -> str:
        value = self.value(name)
        if type(value) is not str:
            raise self.trouble(name, "text")
        return value

    def whole(self, name: str, *, least: int, most: int | None = None) -> int:
        """A whole number between two bounds."""
        value = self.value(name)
        if type(value) is not int or value < least or (most is not None and value > most):
            raise self.trouble(name, f"a whole number ≥ {least}" + (f" and ≤ {most}" if most is not None else ""))
        return value

    def number(self, name: str, *, least: float = -math.inf, infinite: bool = False) -> float:
        """A float ≥ `least`; never NaN, and finite unless infinities are allowed."""
        value = self.value(name)
        if type(value) is not float or not value >= least or not (infinite or math.isfinite(value)):
            raise self.trouble(name, f"a {'' if infinite else 'finite '}number" + _bounds(least, math.inf))
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
        """An array of this type and shape (None: any length), finite and between two bounds; NaN only if `missing`."""
        value, wanted = self.value(name), np.dtype(dtype)
        fits = isinstance(value, np.ndarray) and value.dtype == wanted and value.ndim == len(shape)
        if not fits or any(length not in (None, found) for length, found in zip(shape, value.shape, strict=True)):
            lengths = ", ".join("any" if length is None else str(length) for length in shape)
            raise self.trouble(name, f"{wanted} of shape ({lengths})")
        seen = value[~np.isnan(value)] if missing else value
        if seen.size and wanted.kind != "b":
            low, high = seen.min(), seen.max()  # NaN, if there is one, and then no comparison holds
            if not (low >= least and high <= most and math.isfinite(low) and math.isfinite(high)):
                raise StorageError(f"{self._place}[{name!r}] should hold finite numbers{_bounds(least, most)} only")
        result: NDArray[Any] = value
        return result

    def trouble(self, name: str, expected: str) -> StorageError:
        """The error to raise where a field is not what it should be."""
        value = self.value(name)
        found = f"{value.dtype} of shape {value.shape}" if isinstance(value, np.ndarray) else f"{value!r:.80}"
        return StorageError(f"{self._place}[{name!r}] should be {expected}, but is {found}")


def _bounds(least: float, most: float) -> str:
    below = f" ≥ {least:g}" if least > -math.inf else ""
    return below + (f" ≤ {most:g}" if most < math.inf else "")
