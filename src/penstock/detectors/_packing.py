"""Turn what detectors keep into parts of a saved state, and back: columns, trees, graphs, labels of rows.

Of row labels RangeIndex, numbers (int, uint, float, bool), text, times with their unit and zone, durations, and levels
of these (MultiIndex) can be stored. Other kinds (categories, periods, intervals, mixed objects) are refused by
`pack_labels`, which says what to do. A regular index's `freq` is not kept; `top` does not show it either.
"""

from __future__ import annotations

import re
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy import sparse
from scipy.sparse.csgraph import connected_components

from penstock._types import SparseMatrix, Tree
from penstock.graph.distance_kernels import LARGEST_SIMILARITY
from penstock.graph.paths import PathSimilarity
from penstock.storage import Record, StorageError

if TYPE_CHECKING:
    import pandas as pd

_MOST_COLUMNS = 1_000_000
_WAY_OUT = "Save without labels, `save(path, labels=False)`, or fit on a table with another index."
_ZONE = re.compile(r"[A-Za-z0-9_+-]+(/[A-Za-z0-9_+-]+)*(:[0-9]{2})?")
_UNITS = ("s", "ms", "us", "ns")
_MOST_LEVELS = 100
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
    record.require_fields("utf8", "ends")
    run = record.array("utf8", np.uint8, (None,)).tobytes()
    ends = record.array("ends", np.int64, (None,), least=0)
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
    record.require_fields("count", "names")
    detector.n_features_in_ = record.whole("count", least=1, most=_MOST_COLUMNS)
    packed = record.optional_part("names")
    if packed is None:
        return
    names = unpack_text(packed)
    if len(names) != detector.n_features_in_:
        raise StorageError(f"there are {len(names)} names for {detector.n_features_in_} columns")
    detector.feature_names_in_ = np.array(names, dtype=object)


def pack_tree(tree: Tree) -> dict[str, Any]:
    """Return a spanning tree for a file."""
    return {"edges": tree.edges.astype(np.int64, copy=False), "lengths": tree.lengths}


def unpack_tree(record: Record, n: int) -> Tree:
    """Return the spanning tree over n rows that `pack_tree` packed."""
    record.require_fields("edges", "lengths")
    edges = record.array("edges", np.int64, (n - 1, 2), least=0, most=n - 1)
    lengths = record.array("lengths", np.float64, (n - 1,), least=0.0)
    if (edges[:, 0] >= edges[:, 1]).any() or (np.diff(lengths) < 0).any():
        raise record.error("edges", "pairs with the smaller row first, in ascending order of length")
    joined = sparse.csr_array((np.ones(n - 1), (edges[:, 0], edges[:, 1])), shape=(n, n))
    if connected_components(joined, directed=False, return_labels=False) != 1:
        raise record.error("edges", "a tree that reaches every row")
    return Tree(edges.astype(np.intp, copy=False), lengths)


def pack_graph(S: SparseMatrix | PathSimilarity) -> dict[str, Any]:
    """Return the upper half of a symmetric sparse matrix for a file; of all pairs along a tree, the tree."""
    if isinstance(S, PathSimilarity):
        return {"paths": pack_tree(S.tree)}
    entries = S.tocoo()
    rows, columns = (coordinates.astype(np.int64) for coordinates in entries.coords)
    upper = rows <= columns
    return {"pairs": np.column_stack([rows[upper], columns[upper]]), "values": entries.data[upper]}


def unpack_graph(record: Record, n: int) -> SparseMatrix | PathSimilarity:
    """Return the similarities of n rows that `pack_graph` packed."""
    record.require_fields("pairs", "values", "paths", new={"pairs": None, "values": None, "paths": None})
    if record.value("paths") is not None:
        if record.value("pairs") is not None or record.value("values") is not None:
            raise record.error("pairs", "None beside paths")
        return PathSimilarity(unpack_tree(record.part("paths"), n))
    pairs = record.array("pairs", np.int64, (None, 2), least=0, most=n - 1)
    values = record.array("values", np.float64, (len(pairs),), least=0.0, most=LARGEST_SIMILARITY)
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
    import pandas as pd

    if isinstance(index, pd.MultiIndex):
        if index.nlevels > _MOST_LEVELS:
            raise TypeError(f"Row labels of more than {_MOST_LEVELS} levels cannot be stored. {_WAY_OUT}")
        used = index.remove_unused_levels()
        levels = [
            {"codes": np.asarray(codes, dtype=np.int64), "values": pack_labels(values.rename(name))}
            for codes, values, name in zip(used.codes, used.levels, used.names, strict=True)
        ]
        return {"type": "levels", "name": None, "levels": levels}
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
    if isinstance(index, pd.CategoricalIndex | pd.PeriodIndex | pd.IntervalIndex):
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


def _unpack(record: Record, kind: str) -> Any:
    import pandas as pd

    if kind == "levels":
        return _unpack_levels(record.require_fields("type", "name", "levels"))
    name = record.value("name")
    if name is not None and type(name) not in (str, int, float, bool):
        raise record.error("name", "text or a number")
    if kind == "range":
        record.require_fields("type", "name", "start", "stop", "step")
        start, stop, step = (record.whole(bound, least=-(2**63), most=2**63 - 1) for bound in ("start", "stop", "step"))
        return pd.RangeIndex(start, stop, step, name=name)
    if kind == "numbers":
        values = record.require_fields("type", "name", "values").value("values")
        if not isinstance(values, np.ndarray) or values.ndim != 1:
            raise record.error("values", "a row of numbers")
        return pd.Index(values, name=name)
    if kind == "text":
        dtype = record.require_fields("type", "name", "dtype", "values").text("dtype")
        if dtype not in _TEXT_TYPES:
            raise record.error("dtype", f"one of {', '.join(_TEXT_TYPES)}")
        return pd.Index(unpack_text(record.part("values")), dtype=dtype, name=name)
    if kind in ("times", "durations"):
        return _unpack_times(record, kind, name)
    raise record.error("type", "a known kind of index")


def _unpack_times(record: Record, kind: str, name: Any) -> Any:
    import pandas as pd

    unit = record.text("unit")
    if unit not in _UNITS:
        raise record.error("unit", f"one of {', '.join(_UNITS)}")
    values = record.array("values", np.int64, (None,))
    if kind == "durations":
        record.require_fields("type", "name", "unit", "values")
        return pd.TimedeltaIndex(values.view(f"m8[{unit}]"), name=name)
    zone = record.require_fields("type", "name", "unit", "zone", "values").value("zone")
    times = pd.DatetimeIndex(values.view(f"M8[{unit}]"), name=name)
    if zone is None:
        return times
    if not isinstance(zone, str) or not _is_zone_name(zone) or _known_zone(zone, unit) is None:
        raise record.error("zone", "a time zone that this machine knows")
    return times.tz_localize("UTC").tz_convert(zone)


def _unpack_levels(record: Record) -> Any:
    import pandas as pd

    levels: list[Any] = []
    codes: list[Any] = []
    packed = record.value("levels")
    if not isinstance(packed, list) or not 1 <= len(packed) <= _MOST_LEVELS:
        raise record.error("levels", f"a list of 1 to {_MOST_LEVELS} levels")
    for i, content in enumerate(packed):
        level = Record(content, f"row_labels['levels'][{i}]").require_fields("codes", "values")
        values = level.part("values")
        if values.text("type") == "levels":
            raise level.error("values", "a plain index")
        levels.append(_unpack(values, values.text("type")))
        codes.append(level.array("codes", np.int64, (None,), least=-1, most=len(levels[-1]) - 1))
        if values.text("type") == "range" and len(levels[-1]) > len(codes[-1]):  # pandas writes it out
            raise level.error("values", f"a range of at most {len(codes[-1])} labels")
    return pd.MultiIndex(levels=levels, codes=codes, names=[level.name for level in levels])
