"""What the detectors that factorise have learnt, as parts of a saved state, and back."""

from __future__ import annotations

from typing import Any

import numpy as np

from penstock._types import Factors, FloatArray, IndexArray
from penstock.detectors._packing import pack_graph, unpack_graph
from penstock.factor.objectives import Objective
from penstock.storage import Record

# The objective has fourth powers of W, and squares of H.
_LARGEST_WEIGHT, _LARGEST_PROFILE = 1e77, 1e150
_TERMS = ("symmetric", "alpha", "laplacian", "gamma", "row_bound")


def pack_copies(kept: IndexArray, copy_of: IndexArray) -> dict[str, Any]:
    return {"kept": kept.astype(np.int64, copy=False), "copy_of": copy_of.astype(np.int64, copy=False)}


def unpack_copies(record: Record, n: int) -> tuple[IndexArray, IndexArray]:
    """Which of the n training rows were fitted, and for each row which of those it is or equals."""
    record.only("kept", "copy_of")
    kept = record.array("kept", np.int64, (None,), least=0, most=n - 1)
    copy_of = record.array("copy_of", np.int64, (n,), least=0, most=len(kept) - 1)
    if not np.array_equal(copy_of[kept], np.arange(len(kept))):
        raise record.trouble("copy_of", "the number of each fitted row for that row itself")
    return kept.astype(np.intp, copy=False), copy_of.astype(np.intp, copy=False)


def unpack_factors(record: Record, n: int, p: int) -> Factors:
    """W and H of n fitted rows and p columns."""
    record.only("weights", "profiles")
    W = record.array("weights", np.float64, (n, None), least=0.0, most=_LARGEST_WEIGHT)
    if not 1 <= W.shape[1] <= n:
        raise record.trouble("weights", f"of at least one group and at most {n}")
    return Factors(W, record.array("profiles", np.float64, (W.shape[1], p), least=0.0, most=_LARGEST_PROFILE))


def pack_objective(objective: Objective) -> dict[str, Any]:
    """The weights of the terms, the similarities, and whether the rows have a part in it."""
    packed: dict[str, Any] = {term: float(getattr(objective, term)) for term in _TERMS}
    packed["has_rows"] = objective.A is not None
    packed["similarity"] = None if objective.S is None else pack_graph(objective.S)
    return packed


def unpack_objective(record: Record, rows: FloatArray, *, has_graph: bool) -> Objective:
    """The objective over the fitted rows."""
    record.only(*_TERMS, "has_rows", "similarity")
    terms = {term: record.number(term, least=0.0, infinite=True) for term in _TERMS}
    graph = record.optional_part("similarity")
    if (graph is not None) != has_graph:
        raise record.trouble("similarity", "there" if has_graph else "None")
    S = None if graph is None else unpack_graph(graph, len(rows))
    return Objective(rows if record.flag("has_rows") else None, S, **terms)
