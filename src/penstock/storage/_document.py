"""A nested state taken apart, into a document that JSON can hold and named arrays, and put together again.

In the document an array is {"$array": its name} and a float that JSON lacks (NaN, inf) {"$float": its bits in hex}; a
key of the state that begins with $ gets a second one. An array's name is the way to it, as in "/fitted/scores".
"""

from __future__ import annotations

import math
import struct
from typing import Any
from urllib.parse import quote

import numpy as np
from numpy.typing import NDArray

from penstock.storage._errors import CorruptFileError
from penstock.storage._json import MAX_DIGITS

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
