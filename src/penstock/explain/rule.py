"""One readable rule for an event: the conditions that its rows meet and normal rows do not."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from penstock._types import FloatArray, IndexArray
from penstock.explain._bounds import conjunctions
from penstock.explain._cart import BoolArray, grow, sample_rows, smallest_leaf
from penstock.explain._paths import Operator, Path, best_path, f1, meets, paths_of, rows_that_meet, simplest
from penstock.explain._separation import LOOK, NormalSample, best_separating
from penstock.explain.units import in_words, units_of

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
    weights: FloatArray | None = None,
    normals: NormalSample | None = None,
    random_state: int = 0,
    max_normal: int = 20_000,
) -> Rule | None:
    """The rule with the highest F1 among the paths of a small classification tree, and among conjunctions of bounds.

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
    weights : (p,) array, optional
        How much each column is to blame, such as its share in the event's residual. A rule speaks only of columns that
        are, and of rules that are nearly as good (F1 within 0.02) that is taken whose columns are most. All 0: as None.
    normals : NormalSample, optional
        `NormalSample.drawn_from(values, is_normal)`, where many events are set against the same normal rows.
    max_normal : int
        Rules are sought on at most so many rows of either kind, drawn with `random_state`; counted are all.

    Returns
    -------
    Rule or None
        None if no simple rule tells the event apart: a precision or an F1 below a half, or only slivers (bounds on both
        sides of a column with fewer than 3 rows of the event, or less than 5 % of the normal range, between them). Of
        equal rules the one with fewer conditions, then of earlier columns. Each threshold has the fewest significant
        digits that leave the rows that meet the rule the same, and all counts are made with the conditions as returned.

    Notes
    -----
    Of more than 16 columns, those 16 are looked at that separate a sample of the rows best one by one, by a rank
    statistic times the weight (see `best_separating`): there is no rule in columns that tell nothing alone.

    Examples
    --------
    >>> values = np.array([[1.0, 20.0], [2.1, 30.0], [1.5, 25.0], [4.3, 20.0], [5.2, 30.0]])
    >>> find_rule(values, np.array([False, False, False, True, True]), ["vibration [mm/s]", "load"]).text
    'vibration > 3 mm/s: 2 of 2 rows, 0 false'
    """
    normal = ~is_event if is_normal is None else is_normal & ~is_event
    events, others = np.flatnonzero(is_event), np.flatnonzero(normal)
    if len(events) == 0 or len(others) == 0:
        return None
    blame = weights if weights is not None and weights.any() else None
    look = sample_rows(events, LOOK, np.random.default_rng(random_state))
    usual = NormalSample.drawn_from(values, normal, random_state) if normals is None else normals
    columns = best_separating(values[look], usual, MOST_COLUMNS, blame)
    if len(columns) == 0:
        return None
    rows = np.concatenate([events, others])
    table = np.stack([values[rows, j] for j in columns]).T  # a column is contiguous: most work goes along one
    paths = _paths(table, len(events), max_conditions, max_normal, random_state)
    path = best_path(paths, table, len(events), None if blame is None else blame[columns])
    if path is None:
        return None
    path, known = simplest(path, table), units_of(names, units)
    met = rows_that_meet(path, table)
    conditions = [Condition(names[j], operator, value, known[j]) for j, operator, value in _in_table(path, columns)]
    hits = int(met[: len(events)].sum())
    return Rule(tuple(conditions), hits, len(events), int(met.sum()) - hits, len(others))


def _paths(
    table: FloatArray, n_events: int, max_conditions: int, most: int, random_state: int
) -> Iterator[tuple[Path, BoolArray]]:
    """What may be a rule, found on at most `most` rows of either kind, and the rows of the table that meet it.

    The first `n_events` rows are the event's.
    """
    rng = np.random.default_rng(random_state)
    events = sample_rows(np.arange(n_events), most, rng)
    normals = sample_rows(np.arange(n_events, len(table)), most, rng)
    rows = np.concatenate([events, normals])
    some, is_event = table[rows], rows < n_events
    min_leaf = smallest_leaf(len(events))
    tree = grow(some, is_event, max_depth=max_conditions, min_leaf=min_leaf, random_state=random_state)
    yield from paths_of(tree, table)
    rarity = (len(table) - n_events) / len(normals) * len(events) / n_events
    for path in conjunctions(some, is_event, rarity, max_conditions):
        yield path, rows_that_meet(path, table)


def _in_table(path: Path, columns: IndexArray) -> list[tuple[int, Operator, float]]:
    return [(int(columns[bound.column]), bound.operator, bound.value) for bound in path]
