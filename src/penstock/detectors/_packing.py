"""Small things that several detectors keep, as parts of a saved state, and back."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
from scipy import sparse
from scipy.sparse.csgraph import connected_components

from penstock._types import SparseMatrix, Tree
from penstock.graph.distance_kernels import LARGEST_SIMILARITY
from penstock.prepare import MinMaxScaling
from penstock.storage import Record, StorageError

_MOST_COLUMNS = 1_000_000


def pack_text(texts: list[str]) -> dict[str, Any]:
    """Strings as one run of UTF-8 and the places where each ends: long lists do not belong into JSON.

    >>> packed = pack_text(["flow", "dp"])
    >>> bytes(packed["utf8"]), packed["ends"].tolist()
    (b'flowdp', [4, 6])
    """
    encoded = [text.encode("utf-8", errors="surrogatepass") for text in texts]
    ends = np.cumsum([len(text) for text in encoded], dtype=np.int64)
    return {"utf8": np.frombuffer(b"".join(encoded), dtype=np.uint8), "ends": ends}


def unpack_text(record: Record) -> list[str]:
    """The strings again."""
    record.only("utf8", "ends")
    run = record.array("utf8", np.uint8, (None,)).tobytes()
    ends = record.array("ends", np.int64, (None,), least=0)
    if (np.diff(ends, prepend=0) < 0).any() or (ends[-1] if len(ends) else 0) != len(run):
        raise record.trouble("ends", f"ascending up to {len(run)}")
    bounds = pairwise([0, *ends.tolist()])
    return [run[start:stop].decode("utf-8", errors="surrogatepass") for start, stop in bounds]


def pack_columns(detector: Any) -> dict[str, Any]:
    """How many columns a detector was fitted on, and their names if it knows them."""
    if detector.n_features_in_ > _MOST_COLUMNS:
        raise ValueError(f"A detector of more than {_MOST_COLUMNS:,} columns cannot be saved.")
    names = getattr(detector, "feature_names_in_", None)
    return {"count": int(detector.n_features_in_), "names": None if names is None else pack_text(list(names))}


def unpack_columns(detector: Any, record: Record) -> None:
    """Set `n_features_in_` and `feature_names_in_` as scikit-learn does."""
    record.only("count", "names")
    detector.n_features_in_ = record.whole("count", least=1, most=_MOST_COLUMNS)
    packed = record.optional_part("names")
    if packed is None:
        return
    names = unpack_text(packed)
    if len(names) != detector.n_features_in_:
        raise StorageError(f"there are {len(names)} names for {detector.n_features_in_} columns")
    detector.feature_names_in_ = np.array(names, dtype=object)


def pack_scaling(scaling: MinMaxScaling | None) -> dict[str, Any] | None:
    return None if scaling is None else {"minimum": scaling.minimum, "maximum": scaling.maximum}


def unpack_scaling(record: Record | None, n_columns: int, *, missing: bool = False) -> MinMaxScaling | None:
    """The scaling again; with `missing`, columns without a reading have a range of NaN."""
    if record is None:
        return None
    record.only("minimum", "maximum")
    low = record.array("minimum", np.float64, (n_columns,), missing=missing)
    high = record.array("maximum", np.float64, (n_columns,), missing=missing)
    if (low > high).any() or (np.isnan(low) != np.isnan(high)).any():
        raise record.trouble("maximum", "nowhere below the minimum")
    return MinMaxScaling(low, high)


def pack_tree(tree: Tree) -> dict[str, Any]:
    return {"edges": tree.edges.astype(np.int64, copy=False), "lengths": tree.lengths}


def unpack_tree(record: Record, n: int) -> Tree:
    """A spanning tree over n rows again."""
    record.only("edges", "lengths")
    edges = record.array("edges", np.int64, (n - 1, 2), least=0, most=n - 1)
    lengths = record.array("lengths", np.float64, (n - 1,), least=0.0)
    if (edges[:, 0] >= edges[:, 1]).any() or (np.diff(lengths) < 0).any():
        raise record.trouble("edges", "pairs with the smaller row first, in ascending order of length")
    joined = sparse.csr_array((np.ones(n - 1), (edges[:, 0], edges[:, 1])), shape=(n, n))
    if connected_components(joined, directed=False, return_labels=False) != 1:
        raise record.trouble("edges", "a tree that reaches every row")
    return Tree(edges.astype(np.intp, copy=False), lengths)


def pack_graph(S: SparseMatrix) -> dict[str, Any]:
    """A symmetric sparse matrix by its upper half."""
    entries = S.tocoo()
    rows, columns = (coordinates.astype(np.int64) for coordinates in entries.coords)
    upper = rows <= columns
    return {"pairs": np.column_stack([rows[upper], columns[upper]]), "values": entries.data[upper]}


def unpack_graph(record: Record, n: int) -> SparseMatrix:
    """The similarities of n rows again."""
    record.only("pairs", "values")
    pairs = record.array("pairs", np.int64, (None, 2), least=0, most=n - 1)
    values = record.array("values", np.float64, (len(pairs),), least=0.0, most=LARGEST_SIMILARITY)
    rows, columns = pairs.T
    if (rows > columns).any() or (np.diff(rows * n + columns) <= 0).any():
        raise record.trouble("pairs", "different pairs with the smaller row first, in ascending order")
    lower = rows < columns
    both = (np.concatenate([rows, columns[lower]]), np.concatenate([columns, rows[lower]]))
    return sparse.csr_array((np.concatenate([values, values[lower]]), both), shape=(n, n))
