"""The classification tree over all findings, as nested boxes for the template."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from markupsafe import Markup

from penstock._messages import counted
from penstock.explain import Leaf, RuleTree, Split
from penstock.report.words import name_tag, percent, with_unit


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
