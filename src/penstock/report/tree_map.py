"""The spanning tree of each mode in two dimensions, with the findings marked."""

from __future__ import annotations

from typing import Any

import numpy as np

from penstock._types import FloatArray
from penstock.detection import Findings
from penstock.explain import tree_layout
from penstock.report.axis import Axis
from penstock.report.packing import Packed, pack_bytes, pack_numbers

MOST_NODES = 2_000
_STEPS = 65_534


def tree_maps(findings: Findings, axis: Axis) -> list[Packed]:
    """One drawing for each mode whose detector has a tree over rows of this table."""
    return [_tree_map(findings, axis, judged) for judged in findings.parts if _has_tree(judged)]


def _has_tree(judged: Any) -> bool:
    tree = getattr(judged.part.detector, "tree_", None)
    return tree is not None and judged.learnt is not None and tree.n_nodes == len(judged.learnt) > 1


def _tree_map(findings: Findings, axis: Axis, judged: Any) -> Packed:
    found = np.flatnonzero(findings.flags[judged.learnt])
    gravest = found[np.argsort(-findings.scores[judged.learnt[found]], kind="stable")]
    drawing = tree_layout(judged.part.detector.tree_, most=MOST_NODES, keep=gravest)
    rows = judged.learnt[drawing.nodes]
    return {
        "mode": judged.part.mode,
        "n_rows": len(judged.learnt),
        "simplified": drawing.simplified,
        "positions": pack_bytes(np.rint(_lying(drawing.positions) * _STEPS), "<u2"),
        "edges": pack_bytes(drawing.edges, "<u2"),
        "places": axis.places[rows].tolist(),
        "scores": pack_numbers(np.nan_to_num(findings.scores[rows])),
        "weights": drawing.weights.tolist(),
        "events": findings.grouped.of_row[rows].tolist(),
    }


def _lying(positions: FloatArray) -> FloatArray:
    """Turned so that the drawing is wider than high, as pages are, in the unit square again."""
    centred = positions - positions.mean(axis=0)
    turned = centred @ np.linalg.svd(centred, full_matrices=False)[2].T if len(centred) > 1 else centred
    turned = turned - turned.min(axis=0)
    result: FloatArray = turned / (turned.max() or 1.0)
    return result
