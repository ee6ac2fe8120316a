"""Readable rules: conditions that an event's rows meet and normal rows do not, and a tree for all findings.

Readings come in, in the user's units, with the rows that are meant; a `Rule`, or the text of a tree, goes out. The one
idea: a rule is a good bound on one column, then a bound on another that raises its F1, and so on.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from decimal import ROUND_CEILING, ROUND_FLOOR, ROUND_HALF_EVEN, Context, Decimal
from typing import Any, Literal, NamedTuple

import numpy as np

from penstock._types import BoolArray, FloatArray, IndexArray
from penstock.explain.variables import in_words, split_unit, units_of

Operator = Literal[">", "<="]
_MOST_ROWS = 5_000  # of either kind, on which rules are sought
_DEEPEST = 3  # splits of a tree, or conditions of a rule
_EXTENDED = 8  # paths, by a further condition
_LEAST, _NEARLY = 0.5, 0.02  # of F1: of a rule worth saying; between rules that are nearly as good
_DIGITS = 17  # are enough for any float


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
        return _meets(column, self.operator, self.value)


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

    def holds(self, values: FloatArray, names: Sequence[str]) -> BoolArray:
        """Return which rows of a table with these columns meet the rule."""
        names, met = list(names), np.ones(len(values), dtype=bool)
        for condition in self.conditions:
            met &= condition.holds(values[:, names.index(condition.variable)])
        return met


class _Bound(NamedTuple):
    """A condition on a column of the table that rules are sought in."""

    column: int
    operator: Operator
    value: float


_Path = tuple[_Bound, ...]


def find_rule(
    values: FloatArray,
    is_event: BoolArray,
    names: Sequence[str],
    *,
    is_normal: BoolArray | None = None,
    units: Sequence[str | None] | None = None,
    weights: FloatArray | None = None,
) -> Rule | None:
    """Return a rule of at most three conditions that separates an event from normal rows; None if none does.

    values : (n, p) in the user's units, NaN where a reading is missing (an infinite one counts as missing).
    is_event, is_normal : (n,) rows that are neither do not count. Without `is_normal` all rows outside the event are
        normal.
    names, units : of the columns. Without `units` they are taken from the names where these have them.
    weights : (p,) how much each column is to blame, such as its share in the event's residual. A rule names only
        columns that are, and of rules that are nearly as good (F1 within 0.02) that is taken whose columns are most.
        All 0: as None.

    A rule has a precision and an F1 of at least a half. Of equal rules the one with fewer conditions, then of earlier
    columns. Rules are sought on at most 5,000 rows of either kind, drawn at random; counted are all. Each threshold has
    the fewest significant digits that leave the rows that meet the rule the same.
    """
    normal = ~is_event if is_normal is None else is_normal & ~is_event
    events, others = np.flatnonzero(is_event), np.flatnonzero(normal)
    if len(events) == 0 or len(others) == 0:
        return None
    columns = np.arange(values.shape[1])
    blame = None
    if weights is not None and weights.any():
        columns = np.flatnonzero(weights > 0)
        blame = weights[columns]
    rows = np.concatenate([events, others])
    table = np.stack([values[rows, j] for j in columns]).T if len(columns) else np.empty((len(rows), 0))
    path = _best_path(_conjunctions(table, len(events)), table, len(events), blame)
    if path is None:
        return None
    path, known = _simplest(path, table), units_of(names, units)
    met = _rows_that_meet(path, table)
    hits = int(met[: len(events)].sum())
    conditions = [
        Condition(names[columns[bound.column]], bound.operator, bound.value, known[columns[bound.column]])
        for bound in path
    ]
    return Rule(tuple(conditions), hits, len(events), int(met.sum()) - hits, len(others))


def _conjunctions(table: FloatArray, n_events: int) -> Iterator[_Path]:
    """Yield the best bound of each column alone, and the eight best paths extended by each other column of these.

    The first `n_events` rows of the table are the event's. Best is the highest F1.
    """
    rng = np.random.default_rng(0)
    events = _sample(np.arange(n_events), rng)
    normals = _sample(np.arange(n_events, len(table)), rng)
    rarity = (len(table) - n_events) / len(normals) * len(events) / n_events  # a normal row stands for so many
    rows = np.concatenate([events, normals])
    some = table[rows]
    is_event = rows < n_events
    best: list[tuple[float, _Path]] = [(0.0, ())]
    columns = list(range(table.shape[1]))
    for _ in range(_DEEPEST):
        longer = []
        for score, path in best:
            met = _rows_that_meet(path, some)
            others = [column for column in columns if all(bound.column != column for bound in path)]
            for f1, bound in _best_bounds(some[met], is_event[met], others, rarity, len(events)):
                if f1 > score:
                    longer.append((f1, (*path, bound)))
        yield from (path for _, path in longer)
        best = sorted(longer, key=lambda each: -each[0])[:_EXTENDED]
        columns = sorted({bound.column for _, path in best for bound in path})


def _best_bounds(
    table: FloatArray, is_event: BoolArray, columns: Sequence[int], rarity: float, n_events: int
) -> list[tuple[float, _Bound]]:
    """Return of each of some columns the bounds with the highest F1; a bound shuts out a reading."""
    found: list[tuple[float, _Bound]] = []
    for j in columns:
        column = table[:, j]
        places = _distinct(column[is_event])
        if not len(places):
            continue
        codes = _codes_of(column, places)
        seen = np.isfinite(codes)
        hits, false = (
            np.bincount(codes[seen & kind].astype(np.intp), minlength=2 * len(places) + 1).cumsum()
            for kind in (is_event, ~is_event)
        )
        sides: tuple[tuple[Operator, FloatArray, FloatArray, FloatArray], ...] = (
            ("<=", hits[1::2], false[1::2], places),
            (">", hits[-1] - hits[:-1:2], false[-1] - false[:-1:2], np.nextafter(places, -np.inf)),
        )
        for operator, some, wrong, values in sides:
            f1 = np.where(some + wrong < hits[-1] + false[-1], 2 * some / (some + rarity * wrong + n_events), 0.0)
            # The best of all may be extended to a good rule, the best of those that are right more often is one.
            for each in (f1, np.where(some >= rarity * wrong, f1, 0.0)):
                best = int(each.argmax())
                bound = _Bound(j, operator, float(values[best]))
                if each[best] > 0 and (not found or found[-1][1] != bound):
                    found.append((float(each[best]), bound))
    return found


def _best_path(
    paths: Iterator[_Path], table: FloatArray, n_events: int, weights: FloatArray | None = None
) -> _Path | None:
    """Return the path with the highest F1, then the fewest conditions, then the earliest columns; None if none is good.

    With weights of the columns, of paths with nearly the same F1 the one whose columns weigh most, on average.
    """
    found = set()
    for path in paths:
        met = _rows_that_meet(path, table)
        hits = int(met[:n_events].sum())
        false_hits = int(met.sum()) - hits
        score = 2 * hits / (hits + false_hits + n_events)
        if hits >= max(1, false_hits) and score >= _LEAST:
            found.add((-score, len(path), tuple(sorted(path))))
    if not found:
        return None
    if weights is None:
        return min(found)[-1]
    highest = -min(found)[0]
    near = [each for each in found if -each[0] >= highest - _NEARLY]
    return min(near, key=lambda each: (-float(np.mean([weights[bound.column] for bound in each[-1]])), *each))[-1]


def _simplest(path: _Path, table: FloatArray) -> _Path:
    """Return the path without conditions that shut out no row, each threshold with the fewest digits that keep rows."""
    bounds = list(path)
    for bound in path:
        others = _rows_that_meet([other for other in bounds if other is not bound], table)
        column = table[:, bound.column]
        place = bounds.index(bound)
        if len(bounds) > 1 and _meets(column, bound.operator, bound.value)[others].all():
            del bounds[place]
            continue
        near, all_rows = (_gap_around(column, bound.value, among) for among in (others, np.isfinite(column)))
        low, high = (a if np.isfinite(a) else b for a, b in zip(near, all_rows, strict=True))
        if np.isfinite(low) and np.isfinite(high):
            bounds[place] = bound._replace(value=round_between(low, high))
    return tuple(bounds)


def _rows_that_meet(path: Sequence[_Bound], table: FloatArray) -> BoolArray:
    met = np.ones(len(table), dtype=bool)
    for bound in path:
        met &= _meets(table[:, bound.column], bound.operator, bound.value)
    return met


def _meets(column: FloatArray, operator: Operator, value: float) -> BoolArray:
    """Return which readings meet a condition; a missing (or infinite) one meets none."""
    met = column > value if operator == ">" else column <= value
    result: BoolArray = met & np.isfinite(column)
    return result


def round_between(low: float, high: float) -> float:
    """Return the number with the fewest digits that separates x <= low from x >= high, the nearest to the middle.

    At least `low` and less than `high`, because what equals a threshold lies below it. 0 if that is about the middle.

    >>> round_between(3.02, 3.23), round_between(118.7, 141.0), round_between(0.0, 1.0), round_between(1.0, 2.0)
    (3.1, 130.0, 0.5, 1.0)
    >>> round_between(-3.2, 3.9)
    0.0
    """
    middle = low / 2 + high / 2
    if low <= 0 < high and abs(middle) < (high / 2 - low / 2) / 5:
        return 0.0
    exact = Decimal(middle)
    for digits in range(1, _DIGITS + 1):
        candidates = [
            float(Context(prec=digits, rounding=way).plus(exact))
            for way in (ROUND_HALF_EVEN, ROUND_FLOOR, ROUND_CEILING)
        ]
        inside = [value for value in candidates if low <= value < high]
        if inside:
            return min(inside, key=lambda value: (abs(value - middle), value))
    return low


def _gap_around(column: FloatArray, threshold: float, among: BoolArray) -> tuple[float, float]:
    """Return the largest reading <= threshold and the smallest above it among some rows; ∓infinity where none is."""
    seen = column[among & np.isfinite(column)]
    above = seen > threshold
    return float(seen[~above].max(initial=-np.inf)), float(seen[above].min(initial=np.inf))


def _distinct(readings: FloatArray) -> FloatArray:
    return np.unique(readings[np.isfinite(readings)])


def _codes_of(column: FloatArray, places: FloatArray) -> FloatArray:
    """Return 2i for a reading between places i−1 and i, 2i+1 for one that equals place i, NaN for a missing one."""
    if len(places) == 0:
        return np.where(np.isfinite(column), 0.0, np.nan)
    left = np.searchsorted(places, column)
    equal = places[np.minimum(left, len(places) - 1)] == column
    return np.where(np.isfinite(column), 2.0 * left + equal, np.nan)


def _sample(rows: IndexArray, rng: np.random.Generator) -> IndexArray:
    return rows if len(rows) <= _MOST_ROWS else np.sort(rng.choice(rows, _MOST_ROWS, replace=False))


def grow_tree(
    values: FloatArray, is_flagged: BoolArray, names: Sequence[str], units: Sequence[str | None] | None = None
) -> str:
    """Return a classification tree of the flagged rows against all others as text, both kinds weighing the same.

    values : (n, p) in the user's units, NaN where a reading is missing (an infinite one counts as missing). A missing
        reading goes to the side that scikit-learn's tree found better for it, or, where it met none, to the larger one.
    names, units : of the columns. Without `units` they are taken from the names where these have them.

    There are two lines for each of at most three levels of splits, with how many rows of each kind arrive. It is grown
    on at most 5,000 rows of either kind, drawn at random; all are counted. Its thresholds have the fewest significant
    digits that send every row to the same side.

    >>> print(grow_tree(np.array([[1.0], [2.0], [8.0], [9.0]]), np.array([False, False, True, True]), ["flow [m³/s]"]))
    flow <= 5 m³/s: 0 flagged, 2 normal
    flow > 5 m³/s: 2 flagged, 0 normal
    """
    flagged, normal = np.flatnonzero(is_flagged), np.flatnonzero(~is_flagged)
    counts = f"{len(flagged)} flagged, {len(normal)} normal"
    with np.errstate(invalid="ignore"):
        low = np.fmin.reduce(values, axis=0, initial=np.inf)
        high = np.fmax.reduce(values, axis=0, initial=-np.inf)
    varying = np.flatnonzero(low < high)
    if not len(flagged) or not len(normal) or not len(varying):
        return counts
    rng = np.random.default_rng(0)
    sample = np.concatenate([_sample(flagged, rng), _sample(normal, rng)])
    # Scikit-learn rounds readings to 32 bits. A tree needs only their order, though, and a best split lies next to a
    # reading of a flagged row: so it is given the place of each among these, which 32 bits hold.
    table, kinds = values[sample[:, None], varying], is_flagged[sample]
    places = [_distinct(column[kinds]) for column in table.T]
    tree = _fit_tree(table, kinds, places)
    known = units_of(names, units)

    def lines(node: int, rows: IndexArray, indent: str) -> Iterator[str]:
        """Yield two lines for a node and for each split below it, given the rows that reach it."""
        n_flagged = int(is_flagged[rows].sum())
        if tree.children_left[node] < 0 or n_flagged in (0, len(rows)):  # rounded weights let it split what is pure
            return
        j = int(varying[tree.feature[node]])
        column = values[rows, j]
        seen = np.isfinite(column)
        value = _reading_of(float(tree.threshold[node]), places[tree.feature[node]])
        low, high = _gap_around(column, value, seen)
        if np.isfinite(low) and np.isfinite(high):
            value = round_between(low, high)
        missing_below = bool(tree.missing_go_to_left[node])
        goes_below = np.where(seen, column <= value, missing_below)
        words = [in_words(names[j], operator, value, known[j]) for operator in ("<=", ">")]
        if not np.isfinite(value):
            words = [f"{split_unit(names[j])[0]} {word}" for word in ("known", "missing")]
        elif not seen.all():
            words[0 if missing_below else 1] += " or missing"
        children = (tree.children_left[node], rows[goes_below]), (tree.children_right[node], rows[~goes_below])
        for text, (child, some) in zip(words, children, strict=True):
            n_here = int(is_flagged[some].sum())
            yield f"{indent}{text}: {n_here} flagged, {len(some) - n_here} normal"
            yield from lines(int(child), some, f"{indent}    ")

    return "\n".join(lines(0, np.arange(len(values)), "")) or counts


def _fit_tree(values: FloatArray, is_flagged: BoolArray, places: Sequence[FloatArray]) -> Any:
    from sklearn.tree import DecisionTreeClassifier

    codes = np.empty(values.shape, dtype=np.float32, order="F")
    for j, place in enumerate(places):
        codes[:, j] = _codes_of(values[:, j], place)
    # A leaf has a tenth of the flagged rows, but at most 5, since few normal rows may matter too.
    smallest = max(1, min(5, int(is_flagged.sum()) // 10))
    model = DecisionTreeClassifier(
        max_depth=_DEEPEST, min_samples_leaf=smallest, class_weight="balanced", random_state=0
    )
    return model.fit(codes, is_flagged).tree_


def _reading_of(code: float, places: FloatArray) -> float:
    """Return the largest reading with at most a code; an infinite code parts the readings from the missing ones."""
    if not 0 <= code < np.inf:
        return np.inf
    which, equal = divmod(int(code), 2)
    value = float(places[which])
    return value if equal else float(np.nextafter(value, -np.inf))
