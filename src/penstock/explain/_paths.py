"""The paths of a classification tree as conjunctions of conditions."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Literal, NamedTuple

import numpy as np

from penstock._types import FloatArray
from penstock.explain._cart import BoolArray, GrownTree
from penstock.explain._rounding import gap_around, round_between

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
    """Which readings meet a condition; a missing (or infinite) one meets none.

    >>> meets(np.array([1.0, 2.0, np.nan, np.inf]), ">", 1.0).tolist()
    [False, True, False, False]
    """
    met = column > value if operator == ">" else column <= value
    result: BoolArray = met & np.isfinite(column)
    return result


def f1(hits: int, false_hits: int, event_rows: int) -> float:
    """The harmonic mean of precision and recall.

    >>> f1(3, 1, 4), f1(0, 5, 4)
    (0.75, 0.0)
    """
    return 2 * hits / (hits + false_hits + event_rows)


def best_path(
    paths: Iterable[tuple[Path, BoolArray]], table: FloatArray, event_rows: int, weights: FloatArray | None = None
) -> Path | None:
    """The path with the highest F1, then the fewest conditions, then the earliest columns; None if none is worth it.

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
    """Whether a column is bounded on both sides for few rows or little room, with the bounds as they are shown."""
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
    """Conditions that shut out no row left away, and each threshold with the fewest digits that change no row."""
    bounds = list(path)
    for bound in path:
        others = rows_that_meet(tuple(other for other in bounds if other is not bound), table)
        own = bound.holds(table)
        place = next(i for i, other in enumerate(bounds) if other is bound)
        if len(bounds) > 1 and own[others].all():
            del bounds[place]
        else:
            bounds[place] = bound._replace(value=_rounded(bound, table, others))
    return tuple(bounds)


def _rounded(bound: Bound, table: FloatArray, others: BoolArray) -> float:
    column = table[:, bound.column]
    near, all_rows = (gap_around(column, bound.value, among) for among in (others, np.ones(len(table), dtype=bool)))
    low, high = (a if np.isfinite(a) else b for a, b in zip(near, all_rows, strict=True))
    return round_between(low, high) if np.isfinite(low) and np.isfinite(high) else bound.value


def paths_of(tree: GrownTree, table: FloatArray) -> Iterator[tuple[Path, BoolArray]]:
    """The path to each node but the root, and the rows that meet it."""
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
    """The path and one more condition, which replaces one on the same side of the same column."""
    for i, other in enumerate(path):
        if other[:2] == bound[:2]:
            tighter = max if bound.operator == ">" else min
            return (*path[:i], bound._replace(value=tighter(other.value, bound.value)), *path[i + 1 :])
    return (*path, bound)


def rows_that_meet(path: Path, table: FloatArray) -> BoolArray:
    """Which rows meet all conditions."""
    met = np.ones(len(table), dtype=bool)
    for bound in path:
        met &= bound.holds(table)
    return met
