"""Turn what detectors keep into parts of a saved state, and back: columns, trees, graphs, labels of rows.

Of row labels RangeIndex, numbers (int, uint, float, bool), text, times with their unit and zone, and durations can be
stored. Other kinds (levels, categories, periods, intervals, mixed objects) are refused by `pack_labels`, which says
what to do. A regular index's `freq` is not kept; `top` does not show it either.
"""

from __future__ import annotations

import re
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy import sparse
from scipy.sparse.csgraph import connected_components

from penstock._types import FloatArray, SparseMatrix, Tree
from penstock.graph.distance_kernels import LARGEST_SIMILARITY
from penstock.graph.paths import PathSimilarity
from penstock.storage import Fields, Record, StorageError, pack_fields, read_fields

if TYPE_CHECKING:
    import pandas as pd

_MOST_COLUMNS = 1_000_000
_WAY_OUT = "Save without labels, `save(path, labels=False)`, or fit on a table with another index."
_ZONE = re.compile(r"[A-Za-z0-9_+-]+(/[A-Za-z0-9_+-]+)*(:[0-9]{2})?")
_UNITS = ("s", "ms", "us", "ns")
_TEXT_TYPES = ("object", "str", "string")


def pack_text(texts: list[str]) -> dict[str, Any]:
    """Return strings as one run of UTF-8 and the places where each ends: JSON is limited in size.

    >>> packed = pack_text(["flow", "dp"])
    >>> bytes(packed["utf8"]), packed["ends"].tolist()
    (b'flowdp', [4, 6])
    """
    encoded = [text.encode("utf-8", errors="surrogatepass") for text in texts]
    ends = np.cumsum([len(text) for text in encoded], dtype=np.int64)
    return {"utf8": np.frombuffer(b"".join(encoded), dtype=np.uint8), "ends": ends}


def unpack_text(record: Record) -> list[str]:
    """Return the strings that `pack_text` packed."""
    found = read_fields(record, {"utf8": "b uint8", "ends": "k int >=0"})
    run, ends = found["utf8"].tobytes(), found["ends"]
    if (np.diff(ends, prepend=0) < 0).any() or (ends[-1] if len(ends) else 0) != len(run):
        raise record.error("ends", f"ascending up to {len(run)}")
    bounds = pairwise([0, *ends.tolist()])
    return [run[start:stop].decode("utf-8", errors="surrogatepass") for start, stop in bounds]


def pack_columns(detector: Any) -> dict[str, Any]:
    """Return how many columns a detector was fitted on, and their names if it knows them."""
    if detector.n_features_in_ > _MOST_COLUMNS:
        raise ValueError(f"A detector of more than {_MOST_COLUMNS:,} columns cannot be saved.")
    names = getattr(detector, "feature_names_in_", None)
    return {"count": int(detector.n_features_in_), "names": None if names is None else pack_text(list(names))}


def unpack_columns(detector: Any, record: Record) -> None:
    """Set `n_features_in_` and `feature_names_in_` as scikit-learn does."""
    fields = {"count": f"int >=1 <={_MOST_COLUMNS}", "names": object}
    detector.n_features_in_ = read_fields(record, fields)["count"]
    packed = record.optional_part("names")
    if packed is None:
        return
    names = unpack_text(packed)
    if len(names) != detector.n_features_in_:
        raise StorageError(f"there are {len(names)} names for {detector.n_features_in_} columns")
    detector.feature_names_in_ = np.array(names, dtype=object)


TREE: Fields = {"edges": "e 2 int >=0 <n", "lengths": "e >=0"}
_GRAPH: Fields = {
    "pairs": ("?", "e 2 int >=0 <n"), "values": ("?", f"e >=0 <={LARGEST_SIMILARITY!r}"), "paths": ("?", TREE),
}  # fmt: skip


def unpack_tree(record: Record, n: int) -> Tree:
    """Return the spanning tree over n rows that a file holds."""
    edges, lengths = read_fields(record, TREE, {"n": n, "e": n - 1}).values()
    if (edges[:, 0] >= edges[:, 1]).any() or (np.diff(lengths) < 0).any():
        raise record.error("edges", "pairs with the smaller row first, in ascending order of length")
    joined = sparse.csr_array((np.ones(n - 1), (edges[:, 0], edges[:, 1])), shape=(n, n))
    if connected_components(joined, directed=False, return_labels=False) != 1:
        raise record.error("edges", "a tree that reaches every row")
    return Tree(edges, lengths)


def check_some_seen(record: Record, rows: FloatArray) -> None:
    """Raise unless the field `rows` has a number in each row and each column."""
    if np.isnan(rows).all(axis=1).any() or np.isnan(rows).all(axis=0).any():
        raise record.error("rows", "numbers, some of them in each row and each column")


def pack_graph(S: SparseMatrix | PathSimilarity) -> dict[str, Any]:
    """Return the upper half of a symmetric sparse matrix for a file; of all pairs along a tree, the tree."""
    if isinstance(S, PathSimilarity):
        return {"pairs": None, "values": None, "paths": pack_fields(S.tree, TREE)}
    entries = S.tocoo()
    rows, columns = (coordinates.astype(np.int64) for coordinates in entries.coords)
    upper = rows <= columns
    return {"pairs": np.column_stack([rows[upper], columns[upper]]), "values": entries.data[upper], "paths": None}


def unpack_graph(record: Record, n: int) -> SparseMatrix | PathSimilarity:
    """Return the similarities of n rows that `pack_graph` packed."""
    if record.value("paths") is not None:
        if record.value("pairs") is not None or record.value("values") is not None:
            raise record.error("pairs", "None beside paths")
        return PathSimilarity(unpack_tree(record.part("paths"), n))
    pairs, values, _ = read_fields(record, _GRAPH, {"n": n}).values()
    if pairs is None or values is None:
        raise record.error("pairs", "there, as there are no paths")
    rows, columns = pairs.T
    if (rows > columns).any() or (np.diff(rows * n + columns) <= 0).any():
        raise record.error("pairs", "different pairs with the smaller row first, in ascending order")
    lower = rows < columns
    both = (np.concatenate([rows, columns[lower]]), np.concatenate([columns, rows[lower]]))
    return sparse.csr_array((np.concatenate([values, values[lower]]), both), shape=(n, n))


def pack_labels(index: pd.Index[Any] | None) -> dict[str, Any] | None:
    """Return an index for a file; None for None.

    >>> import pandas as pd
    >>> pack_labels(pd.RangeIndex(3, 9, 2, name="row"))
    {'type': 'range', 'name': 'row', 'start': 3, 'stop': 9, 'step': 2}
    """
    if index is None:
        return None
    if index.name is not None and type(index.name) not in (str, int, float, bool):
        raise TypeError(f"Row labels have the name {index.name!r}, which cannot be stored. {_WAY_OUT}")
    kind, content = _pack_values(index)
    return {"type": kind, "name": index.name, **content}


def _pack_values(index: Any) -> tuple[str, dict[str, Any]]:
    """Return the type of an index, and what a file holds of it apart from the name."""
    import pandas as pd

    if isinstance(index, pd.RangeIndex):
        return "range", {"start": index.start, "stop": index.stop, "step": index.step}
    if isinstance(index, pd.DatetimeIndex):
        zone = None if index.tz is None else str(index.tz)
        if zone is not None and (not _is_zone_name(zone) or _known_zone(zone, index.unit) != index.dtype):
            raise TypeError(f"Row labels in the time zone {index.tz!r}, which has no standard name. {_WAY_OUT}")
        return "times", {"unit": index.unit, "zone": zone, "values": index.asi8}
    if isinstance(index, pd.TimedeltaIndex):
        return "durations", {"unit": index.unit, "values": index.asi8}
    if isinstance(index.dtype, np.dtype) and index.dtype.kind in "biuf":
        return "numbers", {"values": index.to_numpy()}
    if isinstance(index, pd.MultiIndex | pd.CategoricalIndex | pd.PeriodIndex | pd.IntervalIndex):
        raise TypeError(f"Row labels of type {type(index).__name__} cannot be stored. {_WAY_OUT}")
    if str(index.dtype) in _TEXT_TYPES and all(isinstance(label, str) for label in index):
        return "text", {"dtype": str(index.dtype), "values": pack_text(list(index))}
    first = next((label for label in index if not isinstance(label, str)), None)
    raise TypeError(f"Row labels of dtype {index.dtype}, such as {first!r}, cannot be stored. {_WAY_OUT}")


def _is_zone_name(name: str) -> bool:
    """Return whether a name may be given to pandas, which would open files of any name for dateutil."""
    return _ZONE.fullmatch(name) is not None and not name.startswith("dateutil")


def _known_zone(name: str, unit: Any) -> Any:
    """Return the type of times in a zone, None if this machine does not know it."""
    import pandas as pd

    try:
        return pd.DatetimeTZDtype(unit, name)
    except (KeyError, OSError, TypeError, ValueError):  # zoneinfo's is a KeyError, for a folder of zones an OSError
        return None


def unpack_labels(record: Record | None, n: int) -> Any:
    """Return the index of n rows that `pack_labels` packed; None for None."""
    if record is None:
        return None
    index = _unpack(record, record.text("type"))
    if len(index) != n:
        raise StorageError(f"there are {len(index)} row labels for {n} rows")
    return index


_WHOLE = f"int >={-(2**63)} <={2**63 - 1}"
# What a file holds of each kind of index, beside its type and name.
_INDEX: dict[str, Fields] = {
    "range": {"start": _WHOLE, "stop": _WHOLE, "step": _WHOLE},
    "numbers": {"values": object},
    "text": {"dtype": str, "values": object},
    "times": {"unit": str, "zone": ("?", str), "values": "n int"},
    "durations": {"unit": str, "values": "n int"},
}


def _unpack(record: Record, kind: str) -> Any:
    import pandas as pd

    if kind not in _INDEX:
        raise record.error("type", "a known kind of index")
    found = read_fields(record, {"type": str, "name": object, **_INDEX[kind]})
    name, values = found["name"], found.get("values")
    if name is not None and type(name) not in (str, int, float, bool):
        raise record.error("name", "text or a number")
    if kind == "range":
        return pd.RangeIndex(found["start"], found["stop"], found["step"], name=name)
    if kind == "numbers":
        if not isinstance(values, np.ndarray) or values.ndim != 1:
            raise record.error("values", "a row of numbers")
        return pd.Index(values, name=name)
    if kind == "text":
        if found["dtype"] not in _TEXT_TYPES:
            raise record.error("dtype", f"one of {', '.join(_TEXT_TYPES)}")
        return pd.Index(unpack_text(record.part("values")), dtype=found["dtype"], name=name)
    return _unpack_times(record, found, name)


def _unpack_times(record: Record, found: dict[str, Any], name: Any) -> Any:
    import pandas as pd

    unit, zone = found["unit"], found.get("zone")
    if unit not in _UNITS:
        raise record.error("unit", f"one of {', '.join(_UNITS)}")
    if "zone" not in found:
        return pd.TimedeltaIndex(found["values"].view(f"m8[{unit}]"), name=name)
    times = pd.DatetimeIndex(found["values"].view(f"M8[{unit}]"), name=name)
    if zone is None:
        return times
    if not _is_zone_name(zone) or _known_zone(zone, unit) is None:
        raise record.error("zone", "a time zone that this machine knows")
    return times.tz_localize("UTC").tz_convert(zone)
