"""Find readable rules: conditions that an event's rows meet and normal rows do not, and a tree for all findings."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

import numpy as np

from penstock._types import BoolArray, FloatArray, IndexArray
from penstock.explain._conditions import (
    Operator,
    Path,
    best_path,
    conjunctions,
    gap_around,
    grow,
    meets,
    paths_of,
    round_between,
    rows_that_meet,
    sample_rows,
    simplest,
    smallest_leaf,
)
from penstock.explain.variables import in_words, split_unit, units_of

LOOK = 1_000  # normal rows, and rows of the event, on which the columns are chosen
_MOST_ROWS = 5_000  # of either kind, on which a tree is grown
_DEEPEST = 3  # splits, or conditions of a rule


@dataclass(frozen=True, eq=False)
class NormalSample:
    """Some normal rows, sorted once for all events: `columns[j, : seen[j]]` are the readings of a column, ascending."""

    columns: FloatArray
    seen: IndexArray

    @classmethod
    def of(cls, rows: FloatArray) -> NormalSample:
        """Return all these rows; what is not finite is missing."""
        known = np.isfinite(rows)
        return cls(np.sort(np.where(known, rows, np.nan).T, axis=1), known.sum(axis=0))

    @classmethod
    def drawn_from(cls, values: FloatArray, is_normal: BoolArray) -> NormalSample:
        """Return at most 1,000 of the normal rows of a table."""
        rows = sample_rows(np.flatnonzero(is_normal), LOOK, np.random.default_rng(0))
        return cls.of(values[rows])


def best_separating(event: FloatArray, normal: NormalSample, n: int, weights: FloatArray | None = None) -> IndexArray:
    """Return the `n` columns that separate the rows best, in the order of the columns; constant and empty ones never.

    u is the share of normal readings below a reading of the event (half of those equal to it). |mean(u) − ½| is the
    distance of the area under the ROC curve from chance: the event is high or low. |mean(|2u − 1|) − ½| is the same for
    the distance from the middle: the event is outside on both sides, or between two modes. The larger of the two
    counts, times the weight of the column, if there are weights; without any weight a column is never chosen. A missing
    reading counts as chance. Ties in the order of the columns.
    """
    known = np.isfinite(event)
    u = np.where(known, _shares_below(event, normal), 0.5)  # chance
    count, rows = known.sum(axis=0), max(len(event), 1)
    high = np.abs(u.sum(axis=0) / rows - 0.5)  # a missing reading adds nothing
    outside = np.abs(np.where(known, np.abs(2 * u - 1) - 0.5, 0.0).sum(axis=0)) / rows
    power = np.where((count > 0) & (normal.seen > 0), np.maximum(high, outside), 0.0)  # from 0 (chance) to ½
    power = np.where(_varies(event, known, normal), power, -1.0)
    if weights is not None:
        power = np.where(weights > 0, power * weights, -1.0)
    chosen = np.argsort(-power, kind="stable")[:n]
    result: IndexArray = np.sort(chosen[power[chosen] >= 0]).astype(np.intp)
    return result


def _shares_below(event: FloatArray, normal: NormalSample) -> FloatArray:
    """Return the share of normal readings below each reading, and half of those equal to it."""
    below = np.zeros(event.shape[::-1])
    for j, (readings, column, seen) in enumerate(zip(event.T, normal.columns, normal.seen, strict=True)):
        if seen:
            here = column[:seen]
            below[j] = (here.searchsorted(readings, "left") + here.searchsorted(readings, "right")) / (2 * seen)
    return below.T


def _varies(event: FloatArray, known: BoolArray, normal: NormalSample) -> BoolArray:
    """Return which columns have two different readings."""
    low = np.where(known, event, np.inf).min(axis=0, initial=np.inf)
    high = np.where(known, event, -np.inf).max(axis=0, initial=-np.inf)
    if normal.columns.shape[1]:
        last = np.maximum(normal.seen - 1, 0)
        low = np.fmin(low, normal.columns[:, 0])
        high = np.fmax(high, normal.columns[np.arange(len(last)), last])
    varies: BoolArray = low < high
    return varies


MOST_COLUMNS = 16  # those that a tree is grown on


@dataclass(frozen=True)
class Condition:
    """`variable` lies above `value` (">") or not ("<="). A missing reading meets no condition."""

    variable: str
    operator: Operator
    value: float
    unit: str = ""

    @property
    def text(self) -> str:
        return in_words(self.variable, self.operator, self.value, self.unit)

    def holds(self, column: FloatArray) -> BoolArray:
        return meets(column, self.operator, self.value)


@dataclass(frozen=True)
class Rule:
    """All `conditions` together: `hits` of the event's rows and `false_hits` of the normal rows meet them."""

    conditions: tuple[Condition, ...]
    hits: int
    event_rows: int
    false_hits: int
    normal_rows: int
    text: str = field(init=False)

    def __post_init__(self) -> None:
        conditions = " and ".join(condition.text for condition in self.conditions)
        text = f"{conditions}: {self.hits} of {self.event_rows} rows, {self.false_hits} false"
        object.__setattr__(self, "text", text)

    @property
    def precision(self) -> float:
        """The share of the rows that meet the rule that are the event's, among those it was found on."""
        return self.hits / (self.hits + self.false_hits)

    @property
    def recall(self) -> float:
        """The share of the event's rows that meet the rule."""
        return self.hits / self.event_rows

    def holds(self, values: FloatArray, names: Sequence[str]) -> BoolArray:
        """Return which rows of a table with these columns meet the rule."""
        names, met = list(names), np.ones(len(values), dtype=bool)
        for condition in self.conditions:
            met &= condition.holds(values[:, names.index(condition.variable)])
        return met


def find_rule(
    values: FloatArray,
    is_event: BoolArray,
    names: Sequence[str],
    *,
    is_normal: BoolArray | None = None,
    max_conditions: int = _DEEPEST,
    units: Sequence[str | None] | None = None,
    weights: FloatArray | None = None,
    normals: NormalSample | None = None,
    max_normal: int = _MOST_ROWS,
) -> Rule | None:
    """Return the rule with the highest F1 among paths of a small classification tree and conjunctions of bounds.

    values : (n, p) in the user's units, NaN where a reading is missing (an infinite one counts as missing).
    is_event, is_normal : (n,) rows that are neither do not count. Without `is_normal` all rows outside the event are
        normal.
    names, units : of the columns. Without `units` they are taken from the names where these have them.
    max_conditions : the depth of the tree.
    weights : (p,) how much each column is to blame, such as its share in the event's residual. A rule names only
        columns that are, and of rules that are nearly as good (F1 within 0.02) that is taken whose columns are most.
        All 0: as None.
    normals : `NormalSample.drawn_from(values, is_normal)`, where many events are set against the same normal rows.
    max_normal : rules are sought on at most so many rows of either kind, drawn at random; counted are all.

    None if no simple rule separates the event: a precision or an F1 below a half, or only slivers (bounds on
    both sides of a column with fewer than 3 rows of the event, or less than 5 % of the normal range, between them). Of
    equal rules the one with fewer conditions, then of earlier columns. Each threshold has the fewest significant digits
    that leave the rows that meet the rule the same, and all counts are made with the conditions as returned.

    Of more than 16 columns, those 16 are looked at that separate a sample of the rows best one by one, by a rank
    statistic times the weight (see `best_separating`): a rule in columns that separate nothing alone is not found.
    """
    normal = ~is_event if is_normal is None else is_normal & ~is_event
    events, others = np.flatnonzero(is_event), np.flatnonzero(normal)
    if len(events) == 0 or len(others) == 0:
        return None
    blame = weights if weights is not None and weights.any() else None
    look = sample_rows(events, LOOK, np.random.default_rng(0))
    usual = NormalSample.drawn_from(values, normal) if normals is None else normals
    columns = best_separating(values[look], usual, MOST_COLUMNS, blame)
    if len(columns) == 0:
        return None
    rows = np.concatenate([events, others])
    table = np.stack([values[rows, j] for j in columns]).T  # a column is contiguous: most work goes along one
    paths = _paths(table, len(events), max_conditions, max_normal)
    path = best_path(paths, table, len(events), None if blame is None else blame[columns])
    if path is None:
        return None
    path, known = simplest(path, table), units_of(names, units)
    met = rows_that_meet(path, table)
    bounds = [(int(columns[bound.column]), bound.operator, bound.value) for bound in path]
    conditions = [Condition(names[j], operator, value, known[j]) for j, operator, value in bounds]
    hits = int(met[: len(events)].sum())
    return Rule(tuple(conditions), hits, len(events), int(met.sum()) - hits, len(others))


def _paths(table: FloatArray, n_events: int, max_conditions: int, most: int) -> Iterator[tuple[Path, BoolArray]]:
    """Yield what may be a rule and the rows that meet it; the first `n_events` rows of the table are the event's."""
    rng = np.random.default_rng(0)
    events = sample_rows(np.arange(n_events), most, rng)
    normals = sample_rows(np.arange(n_events, len(table)), most, rng)
    rows = np.concatenate([events, normals])
    some, is_event = table[rows], rows < n_events
    tree = grow(some, is_event, max_depth=max_conditions, min_leaf=smallest_leaf(len(events)))
    yield from paths_of(tree, table)
    rarity = (len(table) - n_events) / len(normals) * len(events) / n_events
    for path in conjunctions(some, is_event, rarity, max_conditions):
        yield path, rows_that_meet(path, table)


@dataclass(frozen=True)
class Leaf:
    """Where rows end up: how many of them are flagged and how many are normal."""

    flagged: int
    normal: int


@dataclass(frozen=True)
class Split:
    """Readings of `variable` up to `value` go `below`, larger ones `above`, missing ones where `missing_goes` says."""

    variable: str
    unit: str
    value: float  # infinite: it parts the rows that have a reading (below) from those that have none (above)
    below: Node
    above: Node
    flagged: int
    normal: int
    missing_goes: Literal["below", "above"]
    missing: int = 0  # how many rows lack the reading here


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
    values: FloatArray, is_flagged: BoolArray, names: Sequence[str], units: Sequence[str | None] | None = None
) -> RuleTree:
    """Return a classification tree (CART) of the flagged rows against all others, both kinds weighing the same.

    values : (n, p) in the user's units, NaN where a reading is missing (an infinite one counts as missing). A missing
        reading goes to the side that CART found better for it, or, where it met none, to the side with more rows.
    names, units : of the columns. Without `units` they are taken from the names where these have them.

    It is at most three splits deep, and grown on at most 5,000 rows of either kind, drawn at random; all are counted.
    Its thresholds have the fewest significant digits that send every row to the same side. It is a single leaf if
    there is nothing to separate.
    """
    flagged, normal = np.flatnonzero(is_flagged), np.flatnonzero(~is_flagged)
    with np.errstate(invalid="ignore"):
        varying = np.flatnonzero(
            np.fmin.reduce(values, axis=0, initial=np.inf) < np.fmax.reduce(values, axis=0, initial=-np.inf)
        )
    if len(flagged) == 0 or len(normal) == 0 or len(varying) == 0:
        return RuleTree(Leaf(len(flagged), len(normal)))
    rng = np.random.default_rng(0)
    rows = np.concatenate([sample_rows(some, _MOST_ROWS, rng) for some in (flagged, normal)])
    table, min_leaf = values[rows[:, None], varying], smallest_leaf(len(flagged))
    grown = grow(table, is_flagged[rows], max_depth=_DEEPEST, min_leaf=min_leaf)
    labels = list(zip(names, units_of(names, units), strict=True))

    def node(number: int, rows: IndexArray) -> Node:
        """Return the node with the rows that reach it."""
        n_flagged = int(is_flagged[rows].sum())
        if grown.below[number] < 0 or n_flagged in (0, len(rows)):  # rounded weights let CART split what is pure
            return Leaf(n_flagged, len(rows) - n_flagged)
        j = int(varying[grown.column[number]])
        column = values[rows, j]
        seen = np.isfinite(column)
        value = float(grown.threshold[number])
        low, high = gap_around(column, value, seen)
        if np.isfinite(low) and np.isfinite(high):
            value = round_between(low, high)
        missing_below = bool(grown.missing_below[number])
        goes_below = np.where(seen, column <= value, missing_below)
        below, above = node(grown.below[number], rows[goes_below]), node(grown.above[number], rows[~goes_below])
        missing_goes: Literal["below", "above"] = "below" if missing_below else "above"
        n_missing = len(rows) - int(seen.sum())
        return Split(*labels[j], value, below, above, n_flagged, len(rows) - n_flagged, missing_goes, n_missing)

    return RuleTree(node(0, np.arange(len(values))))


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
