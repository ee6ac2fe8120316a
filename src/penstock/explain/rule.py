"""One readable rule for an event: the conditions that its rows meet and normal rows do not."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from penstock._types import FloatArray, IndexArray
from penstock.explain._cart import BoolArray, GrownTree, grow, sample_rows, smallest_leaf
from penstock.explain._paths import Operator, Path, best_path, f1, meets, rows_that_meet, simplest
from penstock.explain._separation import best_separating
from penstock.explain.units import in_words, units_of

MOST_COLUMNS = 16  # those that a tree is grown on
_LOOK = 1_000  # normal rows, and rows of the event, on which the columns are chosen


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
        """For which readings of the variable."""
        return meets(column, self.operator, self.value)


@dataclass(frozen=True)
class Rule:
    """All `conditions` together: `hits` of the event's rows and `false_hits` of the normal rows meet them.

    >>> rule = Rule((Condition("vibration", ">", 3.1, "mm/s"), Condition("vane", "<=", 0.4)), 18, 19, 2, 5000)
    >>> rule.text
    'vibration > 3.1 mm/s and vane <= 0.4: 18 of 19 rows, 2 false'
    >>> rule.precision, round(rule.recall, 3)
    (0.9, 0.947)
    >>> rule.holds(np.array([[0.4, 4.0], [0.4, np.nan], [0.5, 4.0]]), ["vane", "vibration"]).tolist()
    [True, False, False]
    """

    conditions: tuple[Condition, ...]
    hits: int
    event_rows: int
    false_hits: int
    normal_rows: int

    @property
    def text(self) -> str:
        conditions = " and ".join(condition.text for condition in self.conditions)
        return f"{conditions}: {self.hits} of {self.event_rows} rows, {self.false_hits} false"

    @property
    def precision(self) -> float:
        """The share of the rows that meet the rule that are the event's, among those it was found on."""
        return self.hits / (self.hits + self.false_hits)

    @property
    def recall(self) -> float:
        """The share of the event's rows that meet the rule."""
        return self.hits / self.event_rows

    @property
    def f1(self) -> float:
        """The harmonic mean of precision and recall."""
        return f1(self.hits, self.false_hits, self.event_rows)

    def holds(self, values: FloatArray, names: Sequence[str]) -> BoolArray:
        """Which rows of a table with these columns meet the rule."""
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
    max_conditions: int = 3,
    units: Sequence[str | None] | None = None,
    random_state: int = 0,
    max_normal: int = 20_000,
) -> Rule | None:
    """The rule with the highest F1 among all paths of a small classification tree, event against normal.

    Parameters
    ----------
    values : (n, p) array
        In the user's units, NaN where a reading is missing (an infinite one counts as missing).
    is_event, is_normal : (n,) arrays of bool
        Rows that are neither have no say. Without `is_normal` all rows outside the event are normal.
    names, units : sequences
        Of the columns. Without `units` they are taken from the names where these have them.
    max_conditions : int
        The depth of the tree.
    max_normal : int
        The tree is grown on at most so many rows of either kind, drawn with `random_state`; counted are all.

    Returns
    -------
    Rule or None
        None if there are no normal rows, or no path reaches a row of the event. Of equal rules the one with fewer
        conditions, then of earlier columns. Each threshold has the fewest significant digits that leave the rows that
        meet the rule the same, and all counts are made with the conditions as returned.

    Notes
    -----
    Of more than 16 columns, the tree sees the 16 that separate a sample of the rows best one by one, by a rank
    statistic (see `best_separating`): it finds no rule in columns that tell nothing alone.

    Examples
    --------
    >>> values = np.array([[1.0, 20.0], [2.1, 30.0], [1.5, 25.0], [4.3, 20.0], [5.2, 30.0]])
    >>> find_rule(values, np.array([False, False, False, True, True]), ["vibration [mm/s]", "load"]).text
    'vibration > 3 mm/s: 2 of 2 rows, 0 false'
    """
    normal = ~is_event if is_normal is None else is_normal & ~is_event
    events, normals = np.flatnonzero(is_event), np.flatnonzero(normal)
    if len(events) == 0 or len(normals) == 0:
        return None
    rng = np.random.default_rng(random_state)
    look = (sample_rows(events, _LOOK, rng), sample_rows(normals, _LOOK, rng))
    columns = best_separating(values[look[0]], values[look[1]], MOST_COLUMNS)
    if len(columns) == 0:
        return None
    table = values[np.concatenate([events, normals])[:, None], columns]
    tree = _grow_on_sample(table, len(events), max_conditions, max_normal, random_state)
    path = best_path(tree, table, len(events))
    if path is None:
        return None
    path, known = simplest(path, table), units_of(names, units)
    met = rows_that_meet(path, table)
    conditions = [Condition(names[j], operator, value, known[j]) for j, operator, value in _in_table(path, columns)]
    hits = int(met[: len(events)].sum())
    return Rule(tuple(conditions), hits, len(events), int(met.sum()) - hits, len(normals))


def _grow_on_sample(table: FloatArray, n_events: int, max_depth: int, most: int, random_state: int) -> GrownTree:
    """A tree on at most `most` rows of either kind; the first `n_events` rows are the event's."""
    rng = np.random.default_rng(random_state)
    events = sample_rows(np.arange(n_events), most, rng)
    normals = sample_rows(np.arange(n_events, len(table)), most, rng)
    rows = np.concatenate([events, normals])
    min_leaf = smallest_leaf(len(events))
    return grow(table[rows], rows < n_events, max_depth=max_depth, min_leaf=min_leaf, random_state=random_state)


def _in_table(path: Path, columns: IndexArray) -> list[tuple[int, Operator, float]]:
    return [(int(columns[bound.column]), bound.operator, bound.value) for bound in path]
