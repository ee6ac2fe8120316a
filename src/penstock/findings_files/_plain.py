"""Values → what JSON has for them."""

from __future__ import annotations

import dataclasses
import datetime as dt
import json
import math
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np
import pandas as pd

from penstock.findings_files._cells import iso_times


def plain(value: Any) -> Any:
    """The value in JSON's types: times in ISO 8601, durations in seconds, None for what is not a finite number.

    >>> plain({"time": pd.Timestamp("2024-05-01 10:00"), "score": np.float64("nan"), "rows": (np.int64(3), True)})
    {'time': '2024-05-01T10:00:00', 'score': None, 'rows': [3, True]}
    """
    if value is None or value is pd.NaT or value is pd.NA:
        return None
    make = next((make for kinds, make in _KINDS if isinstance(value, kinds)), None)
    if make is not None:
        return make(value)
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {field.name: plain(getattr(value, field.name)) for field in dataclasses.fields(value)}
    return str(value)


_KINDS: tuple[tuple[Any, Callable[[Any], Any]], ...] = (
    (str, str),
    (bool | np.bool_, bool),
    (int | np.integer, int),
    (float | np.floating, lambda value: float(value) if math.isfinite(value) else None),
    (dt.date, lambda value: value.isoformat()),
    (dt.timedelta, lambda value: value.total_seconds()),
    (pd.DataFrame, lambda value: list(records(value))),
    (Mapping, lambda value: {str(key): plain(entry) for key, entry in value.items()}),
    (np.ndarray | pd.Series | pd.Index, lambda value: [plain(entry) for entry in value.tolist()]),
    (list | tuple, lambda value: [plain(entry) for entry in value]),
    (set | frozenset, lambda value: [plain(entry) for entry in sorted(value, key=str)]),
)


def records(frame: pd.DataFrame) -> Iterator[dict[str, Any]]:
    """The rows of a table, without its index, as objects."""
    names = [str(name) for name in frame.columns]
    for row in zip(*(_plain_column(frame[name]) for name in frame.columns), strict=True):
        yield dict(zip(names, row, strict=True))


def _plain_column(column: pd.Series) -> list[Any]:
    """As `plain` of each value, but quicker where there are many."""
    kind = column.dtype.kind
    if kind == "M":
        return [text or None for text in iso_times(pd.DatetimeIndex(column))]
    if kind == "f":
        finite = np.isfinite(column.to_numpy(dtype=np.float64, na_value=np.nan))
        return [value if good else None for good, value in zip(finite.tolist(), column.tolist(), strict=True)]
    if column.dtype == object or kind == "m":
        return [plain(value) for value in column.tolist()]
    return [None if gone else value for gone, value in zip(column.isna().tolist(), column.tolist(), strict=True)]


def as_json(value: Any, **layout: Any) -> str:
    """Strict JSON of a plain value, in the order of its keys; `layout` as in `json.dumps`."""
    return json.dumps(value, **{"ensure_ascii": False, **layout, "allow_nan": False})
