"""Conditions on columns: small classification trees, their paths, bounds, and thresholds with few digits."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from decimal import ROUND_CEILING, ROUND_FLOOR, ROUND_HALF_EVEN, Context, Decimal
from typing import Literal, NamedTuple

import numpy as np

from penstock._types import BoolArray, FloatArray, IndexArray

_DIGITS = 17  # are enough for any float


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


def gap_around(column: FloatArray, threshold: float, among: BoolArray) -> tuple[float, float]:
    """Return the largest reading <= threshold and the smallest above it among some rows; ∓infinity where none is."""
    seen = column[among & np.isfinite(column)]
    above = seen > threshold
    return float(seen[~above].max(initial=-np.inf)), float(seen[above].min(initial=np.inf))


@dataclass(frozen=True, eq=False)
class GrownTree:
    """Node 0 is the root; `below` and `above` are the children (−1 at a leaf), which come after their parent.

    At node v, readings of `column[v]` up to `threshold[v]` go below, larger ones above, and missing ones below if
    `missing_below[v]`. An infinite threshold parts the readings from the missing ones.
    """

    column: IndexArray
    threshold: FloatArray
    below: IndexArray
    above: IndexArray
    missing_below: BoolArray


def grow(values: FloatArray, is_event: BoolArray, *, max_depth: int, min_leaf: int) -> GrownTree:
    """Grow a tree by CART (Gini impurity, both classes weighing the same) on rows with NaN where a reading is missing.

    Scikit-learn rounds its input to 32 bits. A tree needs only the order of the readings, though, and a best split lies
    next to a reading of the event: so it is given the place of each reading among the event's, which 32 bits hold.
    """
    from sklearn.tree import DecisionTreeClassifier

    places = [distinct(column[is_event]) for column in values.T]
    codes = np.empty(values.shape, dtype=np.float32, order="F")
    for j, place in enumerate(places):
        codes[:, j] = codes_of(values[:, j], place)
    model = DecisionTreeClassifier(
        max_depth=max_depth, min_samples_leaf=min_leaf, class_weight="balanced", random_state=0
    )
    tree = model.fit(codes, is_event).tree_
    column = np.maximum(tree.feature, 0).astype(np.intp)
    threshold = np.full(len(column), np.inf)  # a reading has at most a code exactly if it is at most this threshold
    for node, code in enumerate(tree.threshold):
        if 0 <= code < np.inf:
            which, equal = divmod(int(code), 2)
            value = places[column[node]][which]
            threshold[node] = value if equal else np.nextafter(value, -np.inf)
    return GrownTree(
        column,
        threshold,
        tree.children_left.astype(np.intp),
        tree.children_right.astype(np.intp),
        tree.missing_go_to_left.astype(bool),
    )


def sample_rows(rows: IndexArray, most: int, rng: np.random.Generator) -> IndexArray:
    """Return all rows, or `most` of them drawn without repetition, in their order."""
    return rows if len(rows) <= most else np.sort(rng.choice(rows, most, replace=False))


def smallest_leaf(n_events: int) -> int:
    """Return the fewest rows in a leaf: a tenth of the event's, but at most 5, since few normal rows may matter too."""
    return max(1, min(5, n_events // 10))


def distinct(readings: FloatArray) -> FloatArray:
    return np.unique(readings[np.isfinite(readings)])


def codes_of(column: FloatArray, places: FloatArray) -> FloatArray:
    """Return 2i for a reading between places i−1 and i, 2i+1 for one that equals place i, NaN for a missing one."""
    if len(places) == 0:
        return np.where(np.isfinite(column), 0.0, np.nan)
    left = np.searchsorted(places, column)
    equal = places[np.minimum(left, len(places) - 1)] == column
    return np.where(np.isfinite(column), 2.0 * left + equal, np.nan)


Operator = Literal[">", "<="]
_LEAST, _NEARLY = 0.5, 0.02  # of F1
_FEWEST_BETWEEN, _SLIVER = 3, 0.05


class Bound(NamedTuple):
    """A condition on a column of the table that a tree was grown on."""

    column: int
    operator: Operator
    value: float

    def holds(self, table: FloatArray) -> BoolArray:
        return meets(table[:, self.column], self.operator, self.value)


Path = tuple[Bound, ...]


def meets(column: FloatArray, operator: Operator, value: float) -> BoolArray:
    """Return which readings meet a condition; a missing (or infinite) one meets none."""
    met = column > value if operator == ">" else column <= value
    result: BoolArray = met & np.isfinite(column)
    return result


def f1(hits: int, false_hits: int, event_rows: int) -> float:
    return 2 * hits / (hits + false_hits + event_rows)


def best_path(
    paths: Iterable[tuple[Path, BoolArray]], table: FloatArray, event_rows: int, weights: FloatArray | None = None
) -> Path | None:
    """Return the path with the highest F1, then the fewest conditions, then the earliest columns; None if none is good.

    paths : with the rows of the table that meet each; the first `event_rows` of them are the event's, others normal.
    weights : of the columns. Of paths with nearly the same F1 the one whose columns weigh most, on average.

    Worth it are a precision and an F1 of at least a half, without a sliver: a column bounded on both sides needs at
    least 3 rows of the event between the bounds, and these 5 % of the range of normal readings (without the lowest and
    highest twentieth) apart.
    """
    found = set()
    for path, met in paths:
        hits = int(met[:event_rows].sum())
        false_hits = int(met.sum()) - hits
        score = f1(hits, false_hits, event_rows)
        if path and hits >= max(1, false_hits) and score >= _LEAST and not _has_sliver(path, table, event_rows):
            found.add((-score, len(path), tuple(sorted(path)), path))
    if not found:
        return None
    if weights is None:
        return min(found)[-1]
    highest = -min(found)[0]
    near = [each for each in found if -each[0] >= highest - _NEARLY]
    return min(near, key=lambda each: (-float(np.mean([weights[bound.column] for bound in each[-1]])), *each))[-1]


def _has_sliver(path: Path, table: FloatArray, event_rows: int) -> bool:
    """Return whether a column is bounded on both sides for few rows or little room, by the bounds as shown."""
    columns = [bound.column for bound in path]
    if len(set(columns)) == len(columns):
        return False
    shown = simplest(path, table)
    for column in {bound.column for bound in shown}:
        sides = tuple(bound for bound in shown if bound.column == column)
        if len(sides) < 2:
            continue
        normal = table[event_rows:, column] / 2  # halves, so that the widest range there can be does not overflow
        normal = normal[np.isfinite(normal)]
        usual = np.quantile(normal, [0.05, 0.95]) if len(normal) else np.zeros(2)
        width = abs(sides[0].value / 2 - sides[1].value / 2)
        rows = int(rows_that_meet(sides, table[:event_rows]).sum())
        if rows < _FEWEST_BETWEEN or width < _SLIVER * (usual[1] - usual[0]):
            return True
    return False


def simplest(path: Path, table: FloatArray) -> Path:
    """Return the path without conditions that shut out no row, each threshold with the fewest digits that keep rows."""
    bounds = list(path)
    for bound in path:
        others = rows_that_meet(tuple(other for other in bounds if other is not bound), table)
        own = bound.holds(table)
        place = next(i for i, other in enumerate(bounds) if other is bound)
        if len(bounds) > 1 and own[others].all():
            del bounds[place]
        else:
            column, every = table[:, bound.column], np.ones(len(table), dtype=bool)
            near, all_rows = (gap_around(column, bound.value, among) for among in (others, every))
            low, high = (a if np.isfinite(a) else b for a, b in zip(near, all_rows, strict=True))
            if np.isfinite(low) and np.isfinite(high):
                bounds[place] = bound._replace(value=round_between(low, high))
    return tuple(bounds)


def paths_of(tree: GrownTree, table: FloatArray) -> Iterator[tuple[Path, BoolArray]]:
    """Yield the path to each node but the root, and the rows that meet it."""
    waiting: list[tuple[int, Path, BoolArray]] = [(0, (), np.ones(len(table), dtype=bool))]
    while waiting:
        node, path, met = waiting.pop()
        if tree.below[node] < 0:
            continue
        column, value = int(tree.column[node]), float(tree.threshold[node])
        sides: tuple[tuple[int, Operator], ...] = ((int(tree.below[node]), "<="), (int(tree.above[node]), ">"))
        for child, operator in sides:
            longer, left = path, met
            if np.isfinite(value):  # missing against not missing is no condition
                bound = Bound(column, operator, value)
                longer, left = _merged(path, bound), met & bound.holds(table)
            yield longer, left
            waiting.append((child, longer, left))


def _merged(path: Path, bound: Bound) -> Path:
    """Return the path and one more condition, which replaces one on the same side of the same column."""
    for i, other in enumerate(path):
        if other[:2] == bound[:2]:
            tighter = max if bound.operator == ">" else min
            return (*path[:i], bound._replace(value=tighter(other.value, bound.value)), *path[i + 1 :])
    return (*path, bound)


def rows_that_meet(path: Path, table: FloatArray) -> BoolArray:
    met = np.ones(len(table), dtype=bool)
    for bound in path:
        met &= bound.holds(table)
    return met


_STARTS = 3  # bounds that are extended by others


def conjunctions(table: FloatArray, is_event: BoolArray, rarity: float, max_conditions: int) -> Iterator[Path]:
    """Yield the best bound of each column alone, and the best of these extended by the best of other columns in turn.

    Each normal row stands for `rarity` of them. Best is the highest F1.
    """
    n_events = int(is_event.sum())
    starts = _best_bounds(table, is_event, rarity, n_events)
    yield from ((bound,) for _, bound in starts)
    for start in sorted(starts, key=lambda each: -each[0])[:_STARTS]:
        score = start[0]
        path: Path = (start[1],)
        while len(path) < max_conditions:
            met = rows_that_meet(path, table)
            used = {each.column for each in path}
            more = _best_bounds(table[met], is_event[met], rarity, n_events)
            best = max((each for each in more if each[1].column not in used), default=start)
            if best[0] <= score:
                break
            score, path = best[0], (*path, best[1])
            yield path


def _best_bounds(table: FloatArray, is_event: BoolArray, rarity: float, n_events: int) -> list[tuple[float, Bound]]:
    """Return for each column that has one the bound with the highest F1; a bound shuts out a reading."""
    found = []
    for j, column in enumerate(table.T):
        places = distinct(column[is_event])
        if not len(places):
            continue
        codes = codes_of(column, places)
        seen = np.isfinite(codes)
        hits, false = (
            np.bincount(codes[seen & kind].astype(np.intp), minlength=2 * len(places) + 1).cumsum()
            for kind in (is_event, ~is_event)
        )
        everything = (hits[-1], false[-1])
        sides: tuple[tuple[Operator, FloatArray, FloatArray, FloatArray], ...] = (
            ("<=", hits[1::2], false[1::2], places),
            (">", everything[0] - hits[:-1:2], everything[1] - false[:-1:2], np.nextafter(places, -np.inf)),
        )
        for operator, some, wrong, values in sides:
            f1 = np.where(some + wrong < sum(everything), 2 * some / (some + rarity * wrong + n_events), 0.0)
            best = int(f1.argmax())
            if f1[best] > 0:
                found.append((float(f1[best]), Bound(j, operator, float(values[best]))))
    return found
