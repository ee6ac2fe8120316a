"""What the model has learnt: latent groups, the spanning tree of each mode, and the tree of rules over all findings."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from markupsafe import Markup

from penstock._messages import counted
from penstock._types import FloatArray, IndexArray
from penstock.detection import Findings
from penstock.explain import Group, Leaf, RuleTree, Split, describe_groups, group_of_row, tree_layout
from penstock.report.axis import Axis, Packed, pack_bytes, pack_numbers
from penstock.report.words import name_tag, numbers, percent, with_unit

_SAMPLE = 5_000  # rows of a table that was not learnt from
_MOST_VALUES = 500  # variables in the list of all profiles


@dataclass(frozen=True)
class Telling:
    """A variable in which a group departs from the usual; `at` and `usual_at` are places from 0 to 100 in its range."""

    name: Markup
    unit: str
    value: str
    usual: str
    at: float
    usual_at: float


@dataclass(frozen=True)
class GroupCard:
    number: int
    members: str
    share: str
    width: float
    findings: str
    telling: tuple[Telling, ...]


@dataclass(frozen=True)
class ModeGroups:
    """The groups of one mode; `profiles` has a line per variable: name, unit, and the value in each group."""

    mode: str
    groups: tuple[GroupCard, ...]
    profiles: list[tuple[Markup, str, list[str]]]
    left_out: int
    about: str


def mode_groups(findings: Findings) -> list[ModeGroups]:
    """One record per mode whose detector has latent groups."""
    found = []
    for judged in findings.parts:
        weighed = _weights(findings, judged)
        if weighed is not None:
            found.append(_describe(findings, judged.part.mode, judged.part.detector, *weighed))
    return found


def _weights(findings: Findings, judged: Any) -> tuple[FloatArray, IndexArray, str] | None:
    """The weights of rows in the groups, which rows these are, and words for them."""
    detector = judged.part.detector
    if not hasattr(detector, "components_"):
        return None
    if judged.learnt is not None and hasattr(detector, "embedding_"):
        every = len(judged.learnt) == len(judged.rows)
        return detector.embedding_, judged.learnt, "rows" if every else "of the rows learnt from"
    if not hasattr(detector, "transform") or not len(judged.rows):
        return None
    step = -(-len(judged.rows) // _SAMPLE)
    rows = judged.rows[::step]
    return detector.transform(findings.values.to_numpy()[rows]), rows, "rows" if step == 1 else f"every {step}th row"


def _describe(findings: Findings, mode: str, detector: Any, W: FloatArray, rows: IndexArray, about: str) -> ModeGroups:
    scaling = getattr(detector, "scaling_", None)
    undo = (lambda scaled: scaled) if scaling is None else scaling.undo
    groups = describe_groups(W, detector.components_, undo, findings.names)
    belongs = group_of_row(W, detector.components_)
    flagged = np.bincount(belongs[(belongs >= 0) & findings.flags[rows]], minlength=len(groups))
    low, high = _ranges(findings, rows)
    order = sorted(groups, key=lambda group: -group.members)
    columns = list(range(min(len(findings.names), _MOST_VALUES)))
    return ModeGroups(
        mode,
        tuple(_card(findings, group, int(flagged[group.number]), low, high) for group in order),
        [
            (name_tag(name), findings.units.get(name, ""), numbers([float(group.profile[j]) for group in order]))
            for j, name in ((j, findings.names[j]) for j in columns)
        ],
        len(findings.names) - len(columns),
        about,
    )


def _card(findings: Findings, group: Group, flagged: int, low: FloatArray, high: FloatArray) -> GroupCard:
    telling = []
    for row in group.telling.to_dict("records"):
        column = findings.names.index(row["variable"])
        ends = low[column], high[column]
        here, usual = numbers([row["value"], row["usual"]])
        at, usual_at = _place(row["value"], *ends), _place(row["usual"], *ends)
        unit = findings.units.get(row["variable"], "")
        telling.append(Telling(name_tag(row["variable"]), unit, here, usual, at, usual_at))
    share = 100 * group.share
    return GroupCard(
        group.number + 1, f"{group.members:,}", percent(group.share), share, f"{flagged:,}", tuple(telling)
    )


def _ranges(findings: Findings, rows: IndexArray) -> tuple[FloatArray, FloatArray]:
    values = findings.values.to_numpy()[rows]
    known = np.isfinite(values)
    low = np.where(known, values, np.inf).min(axis=0, initial=np.inf)
    high = np.where(known, values, -np.inf).max(axis=0, initial=-np.inf)
    return low, high


def _place(value: float, low: float, high: float) -> float:
    if not np.isfinite([value, low, high]).all() or not high > low:
        return 50.0
    return round(100 * min(1.0, max(0.0, (value - low) / (high - low))), 1)


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


@dataclass(frozen=True)
class Branch:
    """A box: the condition that leads to it, how many rows it holds, and the question that parts them."""

    condition: Markup
    flagged: int
    normal: int
    counts: str
    share: str
    width: float
    kind: str
    children: tuple[Branch, ...]


def draw_rules(tree: RuleTree) -> Branch:
    """
    >>> tree = RuleTree(Split("flow", "m³/s", 3.0, Leaf(0, 90), Leaf(4, 1), 4, 91, "below"))
    >>> drawn = draw_rules(tree)
    >>> str(drawn.children[1].condition), drawn.children[1].counts, drawn.children[1].kind
    ('<bdi class="name">flow</bdi> above 3 m³/s', '4 findings, 1 other row', 'findings')
    """
    return _branch(Markup("All judged rows"), tree.root)


def _branch(condition: Markup, node: Split | Leaf) -> Branch:
    total = node.flagged + node.normal
    share = node.flagged / total if total else 0.0
    kind = "mixed" if isinstance(node, Split) else ("findings" if share >= 0.5 else "normal")
    if isinstance(node, Leaf) and node.flagged and kind == "normal":
        kind = "mixed"
    children: tuple[Branch, ...] = ()
    if isinstance(node, Split):
        below, above = _conditions(node)
        children = (_branch(below, node.below), _branch(above, node.above))
    counts = f"{counted(node.flagged, 'finding')}, {counted(node.normal, 'other row')}"
    return Branch(condition, node.flagged, node.normal, counts, percent(share), round(100 * share, 1), kind, children)


def _conditions(split: Split) -> tuple[Markup, Markup]:
    name = name_tag(split.variable)
    if not np.isfinite(split.value):
        return Markup("{} known").format(name), Markup("{} missing").format(name)
    value = with_unit(split.value, split.unit)
    below, above = Markup("{} at most {}").format(name, value), Markup("{} above {}").format(name, value)
    if split.missing:
        return (below + " or missing", above) if split.missing_goes == "below" else (below, above + " or missing")
    return below, above
