"""Arrays as short texts, for the script in the page."""

from __future__ import annotations

import base64
from typing import Any

import numpy as np

from penstock._types import FloatArray
from penstock.findings_files import as_json

Packed = dict[str, Any]
_MISSING = 65535  # of 16 bits; the values use those below
_ESCAPES = {"<": "\\u003c", ">": "\\u003e", "&": "\\u0026", "\u2028": "\\u2028", "\u2029": "\\u2029"}


def script_json(data: Any) -> str:
    """JSON that can stand inside a script element: no sign in it can end that element or begin a comment.

    >>> script_json(["</script>", "a & b"])
    '["\\\\u003c/script\\\\u003e","a \\\\u0026 b"]'
    """
    text = as_json(data, ensure_ascii=True, separators=(",", ":"))
    for sign, escape in _ESCAPES.items():
        text = text.replace(sign, escape)
    return text


def pack_bytes(array: Any, kind: str) -> str:
    return base64.b64encode(np.ascontiguousarray(array, dtype=kind).tobytes()).decode("ascii")


def pack_curve(values: FloatArray) -> Packed:
    """Values between their least and largest in steps of 1/65534 of that range, which is finer than any screen.

    >>> pack_curve(np.array([0.0, 1.0, np.nan]))
    {'low': 0.0, 'high': 1.0, 'data': 'AAD+////'}
    """
    known = np.isfinite(values)
    low, high = (float(values[known].min()), float(values[known].max())) if known.any() else (0.0, 0.0)
    # Halves, so that the widest range there can be does not overflow.
    width = high / 2 - low / 2
    share = (np.where(known, values, low) / 2 - low / 2) / (width if width > 0 else 1.0)
    steps = np.where(known, np.rint(share * (_MISSING - 1)), _MISSING)
    return {"low": low, "high": high, "data": pack_bytes(steps, "<u2")}


def pack_places(places: FloatArray) -> Packed:
    """Ascending places (milliseconds from the first row, or row numbers) as whole steps from the first of them.

    The step is the largest in which all of them are whole, or a four-thousand-millionth of their span.
    """
    if not len(places):
        return {"first": 0.0, "step": 1.0, "data": ""}
    first, offsets = float(places[0]), places - places[0]
    step = _common_step(offsets)
    return {"first": first, "step": step, "data": pack_bytes(np.rint(offsets / step), "<u4")}


def _common_step(offsets: FloatArray) -> float:
    span = float(offsets[-1])
    whole = offsets[offsets == np.rint(offsets)]
    if len(whole) == len(offsets) and 0 < span < 2**53:
        common = int(np.gcd.reduce(offsets.astype(np.int64)))
        if span / common < 2**32:
            return float(common)
    return span / (2**32 - 1) if span > 0 else 1.0


def pack_numbers(values: FloatArray) -> str:
    """As numbers of 32 bits; what is beyond them is the largest there is."""
    largest = float(np.finfo(np.float32).max)
    return pack_bytes(np.clip(values, -largest, largest), "<f4")


def finite(value: float) -> float | None:
    """A number for JSON, which knows neither NaN nor infinity.

    >>> finite(2.5), finite(float("inf"))
    (2.5, None)
    """
    return float(value) if np.isfinite(value) else None
