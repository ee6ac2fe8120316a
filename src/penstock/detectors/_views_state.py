"""The views of a `Detector` as parts of a saved state, and back."""

from __future__ import annotations

from typing import Any

import numpy as np

from penstock._types import FloatArray
from penstock.graph.search import LazySearch
from penstock.storage import Record
from penstock.views.composite import COARSE, FINE, Composite, Standards
from penstock.views.encoding import LogEncoding
from penstock.views.joining import Joining
from penstock.views.margins import Margins
from penstock.views.sampling import Sampling
from penstock.views.standard import LogStandard

_STANDARDS = ("coarse", "fine", "plain", "logged", "marginal")
_LARGEST_LOG, _SMALLEST_SPREAD = 1000.0, 1e-20  # no logarithm of a float is larger; below it, scores may overflow


def pack_views(views: Composite) -> dict[str, Any]:
    """The rows once, as they are: encoded ones and nodes follow from them."""
    return {
        "rows": views.plain.search.rows(),
        "encoding": {"unit": views.encoding.unit, "center": views.encoding.center, "spread": views.encoding.spread},
        "plain": _pack_joining(views.plain),
        "logged": _pack_joining(views.logged),
        "coarse": views.coarse.members.astype(np.int64, copy=False),
        "fine": views.fine.members.astype(np.int64, copy=False),
        "marginal": {name: getattr(views.marginal, name) for name in ("low", "width", "counts", "total", "usual")},
        "standards": {name: _pack_standard(getattr(views.standards, name)) for name in _STANDARDS},
    }


def unpack_views(record: Record, m: int, p: int) -> Composite:
    """The views of m different rows of p columns again."""
    record.only("rows", "encoding", "plain", "logged", "coarse", "fine", "marginal", "standards")
    rows = record.array("rows", np.float64, (m, p), missing=True)
    if np.isnan(rows).all(axis=1).any() or np.isnan(rows).all(axis=0).any():
        raise record.trouble("rows", "numbers, some of them in each row and each column")
    encoding = _unpack_encoding(record.part("encoding"), p)
    encoded = encoding.apply(rows)
    standards = record.part("standards").only(*_STANDARDS)
    return Composite(
        encoding,
        _unpack_joining(record.part("plain"), rows),
        _unpack_joining(record.part("logged"), encoded),
        _unpack_sampling(record, "coarse", COARSE, encoded),
        _unpack_sampling(record, "fine", FINE, encoded),
        _unpack_margins(record.part("marginal"), p),
        Standards(*(_unpack_standard(standards.part(name)) for name in _STANDARDS)),
    )


def _unpack_encoding(record: Record, p: int) -> LogEncoding:
    record.only("unit", "center", "spread")
    unit, spread = (_positive(record, name, p) for name in ("unit", "spread"))
    return LogEncoding(unit, record.array("center", np.float64, (p,), least=-1.0, most=1.0), spread)


def _pack_joining(joining: Joining) -> dict[str, Any]:
    joins = joining.joins.astype(np.int64, copy=False)
    return {"reach": joining.reach, "around": joining.around, "own": joining.own, "joins": joins}


def _unpack_joining(record: Record, rows: FloatArray) -> Joining:
    record.only("reach", "around", "own", "joins")
    m = len(rows)
    around, own = (record.array(name, np.float64, (m,), least=0.0) for name in ("around", "own"))
    joins = record.array("joins", np.int64, (m,), least=0, most=m - 1).astype(np.intp, copy=False)
    return Joining(LazySearch(rows), _positive(record, "reach", m), around, own, joins)


def _unpack_sampling(record: Record, name: str, drawn: tuple[int, int], encoded: FloatArray) -> Sampling:
    shape = (drawn[0], min(drawn[1], len(encoded)))  # as `draw_nodes` has it
    members = record.array(name, np.int64, shape, least=0, most=len(encoded) - 1)
    return Sampling(members.astype(np.intp, copy=False), encoded)


def _unpack_margins(record: Record, p: int) -> Margins:
    record.only("low", "width", "counts", "total", "usual")
    counts = record.array("counts", np.float64, (p, None), least=0.0)
    if counts.shape[1] < 3:
        raise record.trouble("counts", "of at least one bin between two empty ones")
    low, usual = (record.array(name, np.float64, (p,)) for name in ("low", "usual"))
    return Margins(low, _positive(record, "width", p), counts, _positive(record, "total", p), usual)


def _pack_standard(standard: LogStandard) -> dict[str, Any]:
    return {"floor": standard.floor, "mean": standard.mean, "spread": standard.spread}


def _unpack_standard(record: Record) -> LogStandard:
    record.only("floor", "mean", "spread")
    floor, spread = (record.number(name, least=0.0) for name in ("floor", "spread"))
    mean = record.number("mean")
    if not floor > 0:
        raise record.trouble("floor", "positive")
    if not abs(mean) <= _LARGEST_LOG:
        raise record.trouble("mean", f"that of logarithms, between −{_LARGEST_LOG:g} and {_LARGEST_LOG:g}")
    if not _SMALLEST_SPREAD <= spread <= _LARGEST_LOG:
        raise record.trouble("spread", f"that of logarithms, between {_SMALLEST_SPREAD:g} and {_LARGEST_LOG:g}")
    return LogStandard(floor, mean, spread)


def _positive(record: Record, name: str, length: int) -> FloatArray:
    values: FloatArray = record.array(name, np.float64, (length,), least=0.0)
    if not (values > 0).all():
        raise record.trouble(name, "positive")
    return values
