"""The index of the table a detector was fitted on, as a part of a saved state: what `top` shows must come back.

Stored are RangeIndex, numbers (int, uint, float, bool), text, times with their unit and zone, durations, and levels of
these (MultiIndex). What else pandas has (categories, periods, intervals, mixed objects) is refused by `pack_labels`,
which says what to do. A regular index's `freq` is not kept; `top` does not show it either.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import numpy as np

from penstock.detectors._packing import pack_text, unpack_text
from penstock.storage import Record, StorageError

if TYPE_CHECKING:
    import pandas as pd

_WAY_OUT = "Save without labels, `save(path, labels=False)`, or fit on a table with another index."
_ZONE = re.compile(r"[A-Za-z0-9_+-]+(/[A-Za-z0-9_+-]+)*(:[0-9]{2})?")
_UNITS = ("s", "ms", "us", "ns")
_MOST_LEVELS = 100
_TEXT_TYPES = ("object", "str", "string")


def pack_labels(index: pd.Index[Any] | None) -> dict[str, Any] | None:
    """An index as a part of a state; None for None.

    >>> import pandas as pd
    >>> pack_labels(pd.RangeIndex(3, 9, 2, name="row"))
    {'type': 'range', 'name': 'row', 'start': 3, 'stop': 9, 'step': 2}
    """
    if index is None:
        return None
    import pandas as pd

    if isinstance(index, pd.MultiIndex):
        if index.nlevels > _MOST_LEVELS:
            raise TypeError(f"Row labels of more than {_MOST_LEVELS} levels cannot be stored. {_WAY_OUT}")
        used = index.remove_unused_levels()
        levels = [_pack_level(used, i) for i in range(used.nlevels)]
        return {"type": "levels", "name": None, "levels": levels}
    return {"type": _type_of(index), "name": _checked_name(index.name), **_pack_values(index)}


def _pack_level(index: pd.MultiIndex, level: int) -> dict[str, Any]:
    values = index.levels[level].rename(index.names[level])
    return {"codes": np.asarray(index.codes[level], dtype=np.int64), "values": pack_labels(values)}


def _type_of(index: pd.Index[Any]) -> str:
    import pandas as pd

    if isinstance(index, pd.RangeIndex):
        return "range"
    if isinstance(index, pd.DatetimeIndex):
        return "times"
    if isinstance(index, pd.TimedeltaIndex):
        return "durations"
    if isinstance(index.dtype, np.dtype) and index.dtype.kind in "biuf":
        return "numbers"
    if isinstance(index, pd.CategoricalIndex | pd.PeriodIndex | pd.IntervalIndex):
        raise TypeError(f"Row labels of type {type(index).__name__} cannot be stored. {_WAY_OUT}")
    if str(index.dtype) in _TEXT_TYPES and all(isinstance(label, str) for label in index):
        return "text"
    strange = next((label for label in index if not isinstance(label, str)), None)
    raise TypeError(f"Row labels of dtype {index.dtype}, such as {strange!r}, cannot be stored. {_WAY_OUT}")


def _pack_values(index: Any) -> dict[str, Any]:
    kind = _type_of(index)
    if kind == "range":
        return {"start": index.start, "stop": index.stop, "step": index.step}
    if kind == "numbers":
        return {"values": index.to_numpy()}
    if kind == "text":
        return {"dtype": str(index.dtype), "values": pack_text(list(index))}
    if kind == "durations":
        return {"unit": index.unit, "values": index.asi8}
    return {"unit": index.unit, "zone": _zone_name(index), "values": index.asi8}


def _zone_name(index: pd.DatetimeIndex) -> str | None:
    """The name that leads back to the zone, if there is one."""
    if index.tz is None:
        return None
    name = str(index.tz)
    if not _is_zone_name(name) or _known_zone(name, index.unit) != index.dtype:
        raise TypeError(f"Row labels in the time zone {index.tz!r}, which has no standard name. {_WAY_OUT}")
    return name


def _is_zone_name(name: str) -> bool:
    """Whether a name may be given to pandas, which would open files of any name for dateutil."""
    return _ZONE.fullmatch(name) is not None and not name.startswith("dateutil")


def _known_zone(name: str, unit: Any) -> Any:
    """The type of times in a zone, None if this machine does not know it."""
    import pandas as pd

    try:
        return pd.DatetimeTZDtype(unit, name)
    except (KeyError, OSError, TypeError, ValueError):  # zoneinfo's is a KeyError, for a folder of zones an OSError
        return None


def _checked_name(name: Any) -> str | int | float | bool | None:
    if name is not None and type(name) not in (str, int, float, bool):
        raise TypeError(f"Row labels have the name {name!r}, which cannot be stored. {_WAY_OUT}")
    result: str | int | float | bool | None = name
    return result


def unpack_labels(record: Record | None, n: int) -> Any:
    """The index again, of n rows; None for None."""
    if record is None:
        return None
    index = _unpack(record, record.text("type"))
    if len(index) != n:
        raise StorageError(f"there are {len(index)} row labels for {n} rows")
    return index


def _unpack(record: Record, kind: str) -> Any:
    import pandas as pd

    if kind == "levels":
        return _unpack_levels(record.only("type", "name", "levels"))
    name = record.value("name")
    if name is not None and type(name) not in (str, int, float, bool):
        raise record.trouble("name", "text or a number")
    if kind == "range":
        record.only("type", "name", "start", "stop", "step")
        start, stop, step = (record.whole(bound, least=-(2**63), most=2**63 - 1) for bound in ("start", "stop", "step"))
        return pd.RangeIndex(start, stop, step, name=name)
    if kind == "numbers":
        values = record.only("type", "name", "values").value("values")
        if not isinstance(values, np.ndarray) or values.ndim != 1:
            raise record.trouble("values", "a row of numbers")
        return pd.Index(values, name=name)
    if kind == "text":
        dtype = record.only("type", "name", "dtype", "values").text("dtype")
        if dtype not in _TEXT_TYPES:
            raise record.trouble("dtype", f"one of {', '.join(_TEXT_TYPES)}")
        return pd.Index(unpack_text(record.part("values")), dtype=dtype, name=name)
    if kind in ("times", "durations"):
        return _unpack_times(record, kind, name)
    raise record.trouble("type", "a known kind of index")


def _unpack_times(record: Record, kind: str, name: Any) -> Any:
    import pandas as pd

    unit = record.text("unit")
    if unit not in _UNITS:
        raise record.trouble("unit", f"one of {', '.join(_UNITS)}")
    values = record.array("values", np.int64, (None,))
    if kind == "durations":
        record.only("type", "name", "unit", "values")
        return pd.TimedeltaIndex(values.view(f"m8[{unit}]"), name=name)
    zone = record.only("type", "name", "unit", "zone", "values").value("zone")
    times = pd.DatetimeIndex(values.view(f"M8[{unit}]"), name=name)
    if zone is None:
        return times
    if not isinstance(zone, str) or not _is_zone_name(zone) or _known_zone(zone, unit) is None:
        raise record.trouble("zone", "a time zone that this machine knows")
    return times.tz_localize("UTC").tz_convert(zone)


def _unpack_levels(record: Record) -> Any:
    import pandas as pd

    levels: list[Any] = []
    codes: list[Any] = []
    packed = record.value("levels")
    if not isinstance(packed, list) or not 1 <= len(packed) <= _MOST_LEVELS:
        raise record.trouble("levels", f"a list of 1 to {_MOST_LEVELS} levels")
    for i, content in enumerate(packed):
        level = Record(content, f"row_labels['levels'][{i}]").only("codes", "values")
        values = level.part("values")
        if values.text("type") == "levels":
            raise level.trouble("values", "a plain index")
        levels.append(_unpack(values, values.text("type")))
        codes.append(level.array("codes", np.int64, (None,), least=-1, most=len(levels[-1]) - 1))
        if values.text("type") == "range" and len(levels[-1]) > len(codes[-1]):  # pandas writes it out
            raise level.trouble("values", f"a range of at most {len(codes[-1])} labels")
    return pd.MultiIndex(levels=levels, codes=codes, names=[level.name for level in levels])
