"""What the model has learnt: latent groups, the spanning tree of each mode, and the tree of rules over all findings."""

from __future__ import annotations

from types import SimpleNamespace as Record

import numpy as np
from markupsafe import Markup

from penstock._messages import counted
from penstock._types import FloatArray
from penstock.detection import Findings
from penstock.explain import Leaf, RuleTree, Split
from penstock.report.axis import Axis, Packed, pack_bytes, pack_numbers
from penstock.report.words import name_tag, numbers, percent, with_unit

_MOST_VALUES = 500  # variables in the list of all profiles
_STEPS = 65_534


def mode_groups(findings: Findings) -> list[Record]:
    """Format the latent groups of each mode whose detector has such, the largest group first.

    `at` and `usual_at` are places from 0 to 100 in a variable's range; `profiles` has a line per variable: name, unit,
    and the value in each group.
    """
    found = []
    for described in findings.groups:
        order = sorted(described.groups, key=lambda group: -group.members)
        cards = []
        for group in order:
            differences = []
            for row in group.differences.to_dict("records"):
                column = findings.names.index(row["variable"])
                ends = described.low[column], described.high[column]
                here, usual = numbers([row["value"], row["usual"]])
                at, usual_at = _place(row["value"], *ends), _place(row["usual"], *ends)
                unit = findings.units.get(row["variable"], "")
                place = Record(
                    name=name_tag(row["variable"]), unit=unit, value=here, usual=usual, at=at, usual_at=usual_at
                )
                differences.append(place)
            cards.append(
                Record(
                    number=group.number + 1,
                    members=f"{group.members:,}",
                    share=percent(group.share),
                    width=100 * group.share,
                    findings=f"{described.findings[group.number]:,}",
                    differences=differences,
                )
            )
        profiles = [
            (name_tag(name), findings.units.get(name, ""), numbers([float(group.profile[j]) for group in order]))
            for j, name in enumerate(findings.names[:_MOST_VALUES])
        ]
        left_out = len(findings.names) - len(profiles)
        groups = Record(mode=described.mode, groups=cards, profiles=profiles, left_out=left_out, about=described.about)
        found.append(groups)
    return found


def _place(value: float, low: float, high: float) -> float:
    if not np.isfinite([value, low, high]).all() or not high > low:
        return 50.0
    return round(100 * min(1.0, max(0.0, (value - low) / (high - low))), 1)


def tree_maps(findings: Findings, axis: Axis) -> list[Packed]:
    """Pack the drawing of each mode's spanning tree, with the findings marked."""
    maps = []
    for tree in findings.trees:
        drawing = tree.drawing
        rows = tree.rows[drawing.nodes]
        maps.append(
            {
                "mode": tree.mode,
                "n_rows": len(tree.rows),
                "simplified": drawing.simplified,
                "positions": pack_bytes(np.rint(_turned(drawing.positions) * _STEPS), "<u2"),
                "edges": pack_bytes(drawing.edges, "<u2"),
                "places": axis.places[rows].tolist(),
                "scores": pack_numbers(np.nan_to_num(findings.scores[rows])),
                "weights": drawing.weights.tolist(),
                "events": findings.grouped.of_row[rows].tolist(),
            }
        )
    return maps


def _turned(positions: FloatArray) -> FloatArray:
    """Turned so that the drawing is wider than high, as pages are, in the unit square again."""
    centred = positions - positions.mean(axis=0)
    turned = centred @ np.linalg.svd(centred, full_matrices=False)[2].T if len(centred) > 1 else centred
    turned = turned - turned.min(axis=0)
    result: FloatArray = turned / (turned.max() or 1.0)
    return result


def draw_rules(tree: RuleTree) -> Record:
    """Format the classification tree over all findings as nested boxes.

    >>> tree = RuleTree(Split("flow", "m³/s", 3.0, Leaf(0, 90), Leaf(4, 1), 4, 91, "below"))
    >>> drawn = draw_rules(tree)
    >>> str(drawn.children[1].condition), drawn.children[1].counts, drawn.children[1].kind
    ('<bdi class="name">flow</bdi> above 3 m³/s', '4 findings, 1 other row', 'findings')
    """
    return _branch(Markup("All judged rows"), tree.root)


def _branch(condition: Markup, node: Split | Leaf) -> Record:
    total = node.flagged + node.normal
    share = node.flagged / total if total else 0.0
    kind = "mixed"
    children: list[Record] = []
    if isinstance(node, Split):
        below, above = _conditions(node)
        children = [_branch(below, node.below), _branch(above, node.above)]
    elif share >= 0.5 or not node.flagged:
        kind = "findings" if share >= 0.5 else "normal"
    counts = f"{counted(node.flagged, 'finding')}, {counted(node.normal, 'other row')}"
    return Record(
        condition=condition,
        counts=counts,
        share=percent(share),
        width=round(100 * share, 1),
        kind=kind,
        children=children,
    )


def _conditions(split: Split) -> tuple[Markup, Markup]:
    name = name_tag(split.variable)
    if not np.isfinite(split.value):
        return Markup("{} known").format(name), Markup("{} missing").format(name)
    value = with_unit(split.value, split.unit)
    below, above = Markup("{} at most {}").format(name, value), Markup("{} above {}").format(name, value)
    if split.missing:
        return (below + " or missing", above) if split.missing_goes == "below" else (below, above + " or missing")
    return below, above
