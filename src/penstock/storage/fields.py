"""The fields of a record in a file, declared in a table and read by one function; what does not fit is refused.

A table gives for each field what it holds:

- a text of words: lengths of an array ("n p", numbers or letters; none for a single number), its type ("bool", "int",
  "uint8", "uint32", else float), bounds (">0", ">=1", "<=1", "<n" for less than a length), "nan" if values may be
  missing, "inf" if a number may be infinite;
- bool, int, float or str, for one value; object for anything, unchecked;
- a table, for a record in the record;
- [kind], for a list of these, each with lengths of its own; a tuple comes back;
- ("by name", kind), for such values in a dict with any names;
- ("?", kind), for one of these or None.

Letters stand for lengths. A length that is not known is that of the first array which has it.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from penstock.storage.states import Record

Fields = Mapping[str, Any]
LARGEST_WHOLE = 2**53
_BY_NAME = "by name"
_LEAST_POSITIVE = 5e-324
_TYPES: dict[str, Any] = {
    "bool": np.bool_, "int": np.int64, "uint8": np.uint8, "uint32": np.uint32, "float": np.float64,
}  # fmt: skip


def read_fields(record: Record, fields: Fields, lengths: dict[str, int] | None = None) -> dict[str, Any]:
    """Return the values of a record that has exactly these fields.

    lengths : known ones by letter; those that are met are added.

    >>> record = Record({"rows": np.zeros((3, 2)), "reach": np.ones(3), "usual": None}, "model")
    >>> found = read_fields(record, {"rows": "n p nan", "reach": "n >0", "usual": ("?", "float >=0")}, {"p": 2})
    >>> found["rows"].shape, found["usual"]
    ((3, 2), None)
    """
    record.require_fields(*fields)
    known = {} if lengths is None else lengths
    return {name: read_field(record, name, kind, known) for name, kind in fields.items()}


def pack_fields(thing: Any, fields: Fields) -> dict[str, Any]:
    """Return the attributes of a thing that a table names, as files hold them."""
    return {name: _pack(getattr(thing, name), kind) for name, kind in fields.items()}


def _pack(value: Any, kind: Any) -> Any:
    if isinstance(kind, Mapping):
        return pack_fields(value, kind)
    if isinstance(kind, list):
        return [_pack(each, kind[0]) for each in value]
    if isinstance(kind, tuple) and value is not None:
        rest = kind[1]
        return {name: _pack(each, rest) for name, each in value.items()} if kind[0] == _BY_NAME else _pack(value, rest)
    if isinstance(value, np.ndarray) and value.dtype.kind == "i":
        return value.astype(np.int64, copy=False)
    return value


def read_field(
    record: Record, name: str, kind: Any, lengths: dict[str, int], least: float | None = None, most: float = math.inf
) -> Any:
    """Return one field; `least` and `most` are bounds besides those in the text."""
    value: Any = record.value(name)
    if isinstance(kind, list):
        if type(value) is not list:
            raise record.error(name, "a list")
        each = Record({str(place): item for place, item in enumerate(value)}, f"{record.place}[{name!r}]")
        value = tuple(read_field(each, str(place), kind[0], {**lengths}) for place in range(len(value)))
    elif isinstance(kind, tuple) and kind[0] == _BY_NAME:
        value = {key: read_field(record.part(name), key, kind[1], {**lengths}) for key in record.part(name)}
    elif isinstance(kind, tuple):
        value = None if value is None else read_field(record, name, kind[1], lengths, least, most)
    elif isinstance(kind, Mapping):
        value = read_fields(record.part(name), kind, lengths)
    elif kind is bool:
        value = record.flag(name)
    elif kind is str:
        value = record.text(name)
    elif kind is not object:
        words = kind.__name__.split() if isinstance(kind, type) else kind.split()
        low, high = _bounds(words, lengths)
        value = _read_numbers(record, name, words, lengths, low if least is None else max(low, least), min(high, most))
    return value


def _read_numbers(record: Record, name: str, words: list[str], lengths: dict[str, int], low: float, high: float) -> Any:
    letters = [word for word in words if word not in (*_TYPES, "nan", "inf") and word[0] not in "<>"]
    if letters:
        return _read_array(record, name, words, letters, lengths, low, high)
    if "int" in words:
        largest = LARGEST_WHOLE if high == math.inf else int(high)
        return record.whole(name, least=0 if low == -math.inf else int(low), most=largest)
    value = record.value(name)
    if "nan" in words and type(value) is float and math.isnan(value):
        return value
    value = record.number(name, least=low, infinite="inf" in words)
    if value > high:
        raise record.error(name, f"a number ≤ {high:g}")
    return value


def _bounds(words: list[str], lengths: Mapping[str, int]) -> tuple[float, float]:
    low, high = -math.inf, math.inf
    for word in words:
        if word == ">0":
            low = _LEAST_POSITIVE
        elif word.startswith(">="):
            low = _number(word[2:])
        elif word.startswith("<="):
            high = _number(word[2:])
        elif word.startswith("<"):
            high = lengths[word[1:]] - 1
    return low, high


def _number(text: str) -> float:
    return int(text) if text.lstrip("-").isdigit() else float(text)  # whole numbers above 2**53 are exact


def _read_array(
    record: Record, name: str, words: list[str], letters: list[str], lengths: dict[str, int], low: float, high: float
) -> Any:
    dtype = next((_TYPES[word] for word in words if word in _TYPES), np.float64)
    shape = tuple(int(letter) if letter.isdigit() else lengths.get(letter) for letter in letters)
    array = record.array(name, dtype, shape, least=low, most=high, missing="nan" in words)
    lengths.update({letter: size for letter, size in zip(letters, array.shape, strict=True) if not letter.isdigit()})
    return array.astype(np.intp, copy=False) if dtype is np.int64 else array
