"""Recognise a table with a row for each reading, as historians export them: its columns of tags, values and quality.

The names of columns tell most of them. Where they do not, what the columns hold does: files and streams ask here.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from penstock._types import FloatArray
from penstock.io._clock import plain_name, seems_time
from penstock.io.quality import is_quality, is_quality_name, tells_quality

_TAGS = (
    "tag", "tagname", "tag name", "tag id", "varname", "variable", "sensor", "sensor name", "sensor id", "signal",
    "point", "point name", "channel", "metric", "parameter", "item", "field", "measurement", "name", "file name",
    *("punkt", "punktname", "messstelle", "messpunkt", "kanal", "signalname", "variablenname", "pointid", "point id"),
    *("tagindex", "tag index"),
    *("tagid", "variable name", "datapoint", "data point", "node", "nodeid", "node id", "etiqueta", "mesure", "_field"),
)  # fmt: skip
_VALUES = (
    *("value", "varvalue", "val", "reading", "tag value", "wert", "messwert", "valor", "valeur", "waarde", "valore"),
    *("data value", "numeric value"),
)
_UNITS = ("unit", "units", "uom", "eu", "einheit", "unitsabbreviation")
_ABOUT = (
    *(*_UNITS, "result", "table", "description", "vvalue", "time ms", "timems", "datatype", "data type", "type"),
    *("source", "annotated", "questionable", "substituted", "comment"),
)
_MOST_NUMERIC = 8  # columns of numbers in a table of readings
_MOST_OF_TIME = 7  # columns of numbers that are parts of times, from year to second
_OF_NUMBERS = 0.5  # of the values of a column that holds numbers
_SAMPLE = 200
_LONGEST_NUMBER = 40  # characters
_AGAIN = 0.1  # of the readings come at the time of another of the same tag
_REPEATED = 0.3  # of the readings come at the time of another
_TURNS = 0.3  # of the rows are of another tag than the row before
_EXPLAINED = 0.8  # of the variance, by the tags


@dataclass(frozen=True)
class ReadingColumns:
    """The columns of a table with a row for each reading; `named` if it was known by the names of tags and values."""

    tag: str
    value: str
    unit: str = ""
    quality: tuple[str, ...] = ()
    named: bool = True


def named_reading_columns(names: Iterable[str]) -> tuple[str, str, str]:
    """Return which columns are named like tags, values and units; "" where none is.

    >>> named_reading_columns(["TimeString", "VarName", "VarValue"])
    ('VarName', 'VarValue', '')
    """
    plain = {plain_name(name): name for name in names}
    tag, value, unit = (next((plain[name] for name in some if name in plain), "") for some in (_TAGS, _VALUES, _UNITS))
    return tag, value, unit


def is_about_readings(name: str) -> bool:
    """Return whether a column says something about readings: their unit, quality or type."""
    return plain_name(name) in _ABOUT or is_quality_name(name)


def has_many_numbers(frame: pd.DataFrame) -> bool:
    """Return whether a table has more columns of numbers than one with a row for each reading, and its time, can."""
    return sum(kind.kind in "iuf" for kind in frame.dtypes) > _MOST_NUMERIC + _MOST_OF_TIME


def find_reading_columns(
    frame: pd.DataFrame, when: Collection[str], taken: Collection[str] = (), tags: Collection[str] = ()
) -> ReadingColumns | None:
    """Return the columns of tags and values; None unless there is one of values only.

    when, taken : columns of time, and of something else.
    tags : that a model knows: the column that holds them is that of the tags.

    >>> rows = {"t": [0, 0, 1, 1], "位号": ["a", "b"] * 2, "值": [3, 7, 4, 9], "状": ["Good"] * 3 + ["Bad"]}
    >>> find_reading_columns(pd.DataFrame(rows), ["t"])
    ReadingColumns(tag='位号', value='值', unit='', quality=('状',), named=False)
    """
    others = [name for name in frame.columns if name not in when and _is_plain(frame[name])]
    tag, value, unit = named_reading_columns(others)
    numeric = [name for name in others if _holds_numbers(frame[name])]
    if len(numeric) > _MOST_NUMERIC or {tag, value} & set(taken):
        return None
    free = [name for name in others if name not in taken and not is_about_readings(name)]
    quality = tuple(
        name
        for name in others
        if name not in (tag, value) and (is_quality(name, frame[name]) or tells_quality(frame[name]))
    )
    free = [name for name in free if name not in quality]
    keys = [tag]
    # A column of one kind is about something else, unless it is a stream, of which only the begin is here.
    named = bool(tag and value) and (frame[tag].nunique() > 1 or bool(tags))
    if not named:
        kinds = {
            name: frame[name].nunique() for name in free if name not in numeric and _may_be_tags(frame[name], tags)
        }
        keys = sorted(kinds, key=lambda name: (name != tag, kinds[name]))
    for key in keys:
        if not named and not tags and frame.duplicated([*when, key]).mean() > _AGAIN:
            continue
        values = [name for name in free if name in numeric and name != key and not _is_about(frame, name, key, value)]
        if values == [value] or (not value and len(values) == 1) or (value and not values):
            return ReadingColumns(key, value or values[0], unit, quality, named)
    return None


def _is_plain(column: pd.Series[Any]) -> bool:
    """Return whether a column holds numbers, truth values or texts, and no lists."""
    if column.dtype.kind in "iufb" or isinstance(column.dtype, pd.CategoricalDtype | pd.StringDtype):
        return True
    return pd.api.types.infer_dtype(column.iloc[:_SAMPLE], skipna=True) in ("string", "boolean", "mixed-integer")


def _holds_numbers(column: pd.Series[Any]) -> bool:
    """Return whether a column is of numbers, or of texts that mostly are: words may stand for those that are bad."""
    if column.dtype.kind in "iuf":
        return True
    if column.dtype.kind in "bcmM" or isinstance(column.dtype, pd.CategoricalDtype):
        return False
    sample = mostly_numbers(column.dropna().iloc[:: 1 + len(column) // _SAMPLE])
    return len(sample) > 0 and bool(np.isfinite(sample).mean() > _OF_NUMBERS)


def _may_be_tags(column: pd.Series[Any], tags: Collection[str]) -> bool:
    if column.dtype.kind in "iufbcmM":
        return False
    if tags:
        return bool(column.dropna().astype(str).str.strip().isin(tags).any())
    return 2 <= column.nunique() <= len(column) / 2 and not seems_time(column)


def _is_about(frame: pd.DataFrame, name: str, key: str, value: str) -> bool:
    """Return whether a column of numbers says something about readings, and is none: it numbers rows, say."""
    if name == value:
        return False
    column = frame[name]
    if column.dtype.kind in "iu" and len(column) > 1 and (np.diff(column.to_numpy()) == 1).all():
        return True
    if value and seems_time(column):
        return True
    return bool(frame.groupby(key, observed=True)[name].nunique().max() <= 1)


def are_readings(codes: NDArray[np.integer], times: NDArray[np.int64], values: FloatArray) -> bool:
    """Return whether rows are readings of tags that take turns, where no name of a column says so.

    They are if many come at the time of another, or if each tag has the whole period for itself, one after the other,
    or if tags take turns and tell most of the values apart. A state beside one sensor does none of these.

    codes, times, values : of the rows, as they are in the table.
    """
    turns = np.diff(codes) != 0
    ordered = np.sort(times)
    if (ordered[1:] == ordered[:-1]).mean() >= _REPEATED:
        return True
    if turns.sum() == len(np.unique(codes)) - 1 and (np.diff(times)[turns] < 0).all():
        return True
    known = np.isfinite(values)
    spread = values[known].var() if known.any() else 0.0
    if turns.mean() < _TURNS or not spread > 0:
        return False
    within = pd.Series(values[known]).groupby(codes[known]).transform("mean").to_numpy()
    return bool(within.var() >= _EXPLAINED * spread)


def mostly_numbers(column: pd.Series[Any]) -> FloatArray:
    """Return the numbers that a column holds or spells, NaN for all else."""
    if column.dtype.kind in "iuf":
        return np.asarray(column.to_numpy(dtype=np.float64, na_value=np.nan))
    texts = column.astype(str).str.slice(stop=_LONGEST_NUMBER).str.replace(",", ".", regex=False)
    return np.asarray(pd.to_numeric(texts, errors="coerce"), dtype=np.float64)


def tag_of_object(values: dict[str, Any], tags: Collection[str]) -> tuple[str, str]:
    """Return the keys of tag and value of a JSON object that is a reading, by names, or as its tag is known.

    >>> tag_of_object({"id": "TT1", "v": 3.5, "t": 1700000000000}, ["TT1", "TT2"])
    ('id', 'v')
    """
    tag, value, _ = named_reading_columns(values)
    known = [key for key, each in values.items() if isinstance(each, str) and each.strip() in tags]
    tag = tag or (known[0] if len(known) == 1 else "")
    if tag and not value:
        numbers = [
            key
            for key, each in values.items()
            if isinstance(each, int | float) and not isinstance(each, bool) and not re.match(r"(?i)t|.*time|.*ts$", key)
        ]
        value = numbers[0] if len(numbers) == 1 else ""
    return tag, value
