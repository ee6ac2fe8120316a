"""JSON from strangers: not deep, not made of a million crumbs, no key twice, no numbers that take long to read."""

from __future__ import annotations

import json
import re
from typing import Any

import numpy as np

from penstock.storage._errors import CorruptFileError

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
