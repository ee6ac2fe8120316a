"""Grow a tree of rules over all findings: what separates flagged rows from normal ones."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

import numpy as np

from penstock._types import BoolArray, FloatArray, IndexArray
from penstock.explain._conditions import GrownTree, gap_around, grow, round_between, sample_rows, smallest_leaf
from penstock.explain.variables import in_words, split_unit, units_of


@dataclass(frozen=True)
class Leaf:
    """Where rows end up: how many of them are flagged and how many are normal."""

    flagged: int
    normal: int


@dataclass(frozen=True)
class Split:
    """Readings of `variable` up to `value` go `below`, larger ones `above`, missing ones to the side of `missing_goes`.

    `missing` is how many rows lack the reading here. An infinite `value` parts the rows that have a reading (below)
    from those that have none (above).
    """

    variable: str
    unit: str
    value: float
    below: Node
    above: Node
    flagged: int
    normal: int
    missing_goes: Literal["below", "above"]
    missing: int = 0


Node: TypeAlias = Split | Leaf


@dataclass(frozen=True)
class RuleTree:
    """A tree of splits; its `leaves` from below to above, its `text` a drawing, two lines per split."""

    root: Node

    @property
    def leaves(self) -> tuple[Leaf, ...]:
        return tuple(node for node in _nodes(self.root) if isinstance(node, Leaf))

    @property
    def text(self) -> str:
        return "\n".join(_lines(self.root, 0)) or f"{self.root.flagged} flagged, {self.root.normal} normal"


def grow_tree(
    values: FloatArray,
    is_flagged: BoolArray,
    names: Sequence[str],
    *,
    max_depth: int = 3,
    units: Sequence[str | None] | None = None,
    random_state: int = 0,
    max_normal: int = 20_000,
) -> RuleTree:
    """Return a classification tree (CART) of the flagged rows against all others, both kinds weighing the same.

    values : (n, p) in the user's units, NaN where a reading is missing (an infinite one counts as missing). A missing
        reading goes to the side that CART found better for it, or, where it met none, to the side with more rows.
    names, units : of the columns. Without `units` they are taken from the names where these have them.
    max_normal : the tree is grown on at most so many rows of either kind, drawn with `random_state`. All rows are
        counted.

    Its thresholds have the fewest significant digits that send every row to the same side. It is a single leaf if there
    is nothing to separate.

    >>> values = np.array([[1.0, 20.0], [2.1, 30.0], [1.5, 25.0], [4.3, 20.0], [5.2, 30.0]])
    >>> tree = grow_tree(values, np.array([False, False, False, True, True]), ["vibration [mm/s]", "load"])
    >>> print(tree.text)
    vibration <= 3 mm/s: 0 flagged, 3 normal
    vibration > 3 mm/s: 2 flagged, 0 normal
    """
    flagged, normal = np.flatnonzero(is_flagged), np.flatnonzero(~is_flagged)
    with np.errstate(invalid="ignore"):
        varying = np.flatnonzero(
            np.fmin.reduce(values, axis=0, initial=np.inf) < np.fmax.reduce(values, axis=0, initial=-np.inf)
        )
    if len(flagged) == 0 or len(normal) == 0 or len(varying) == 0:
        return RuleTree(Leaf(len(flagged), len(normal)))
    rng = np.random.default_rng(random_state)
    rows = np.concatenate([sample_rows(flagged, max_normal, rng), sample_rows(normal, max_normal, rng)])
    grown = grow(
        values[rows[:, None], varying],
        is_flagged[rows],
        max_depth=max_depth,
        min_leaf=smallest_leaf(len(flagged)),
        random_state=random_state,
    )
    labels = list(zip(names, units_of(names, units), strict=True))
    return RuleTree(_node(grown, 0, np.arange(len(values)), values, is_flagged, varying, labels))


def _node(
    grown: GrownTree,
    number: int,
    rows: IndexArray,
    values: FloatArray,
    is_flagged: BoolArray,
    columns: IndexArray,
    labels: list[tuple[str, str]],
) -> Node:
    """Return the node with the rows that reach it; at most as deep as the tree was allowed to be."""
    flagged = int(is_flagged[rows].sum())
    if grown.below[number] < 0 or flagged in (0, len(rows)):  # rounded weights let CART split what is pure
        return Leaf(flagged, len(rows) - flagged)
    j = int(columns[grown.column[number]])
    column = values[rows, j]
    seen = np.isfinite(column)
    value = float(grown.threshold[number])
    low, high = gap_around(column, value, seen)
    if np.isfinite(low) and np.isfinite(high):
        value = round_between(low, high)
    missing_below = bool(grown.missing_below[number])
    goes_below = np.where(seen, column <= value, missing_below)
    below, above = (
        _node(grown, int(child), part, values, is_flagged, columns, labels)
        for child, part in ((grown.below[number], rows[goes_below]), (grown.above[number], rows[~goes_below]))
    )
    missing_goes: Literal["below", "above"] = "below" if missing_below else "above"
    n_missing = len(rows) - int(seen.sum())
    return Split(*labels[j], value, below, above, flagged, len(rows) - flagged, missing_goes, n_missing)


def _nodes(node: Node) -> Iterator[Node]:
    """Yield a node before its children, the one below first."""
    yield node
    if isinstance(node, Split):
        yield from _nodes(node.below)
        yield from _nodes(node.above)


def _lines(node: Node, depth: int) -> Iterator[str]:
    """Yield a line for each node below this one."""
    if isinstance(node, Split):
        for words, child in zip(_words(node), (node.below, node.above), strict=True):
            yield f"{'    ' * depth}{words}: {child.flagged} flagged, {child.normal} normal"
            yield from _lines(child, depth + 1)


def _words(split: Split) -> tuple[str, str]:
    if not np.isfinite(split.value):
        name = split_unit(split.variable)[0]
        return f"{name} known", f"{name} missing"
    below, above = (in_words(split.variable, operator, split.value, split.unit) for operator in ("<=", ">"))
    if split.missing:
        return (f"{below} or missing", above) if split.missing_goes == "below" else (below, f"{above} or missing")
    return below, above
