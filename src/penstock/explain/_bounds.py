"""The best one-sided bounds, and conjunctions of them: rules that CART, greedy for purity, passes by."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from penstock._types import FloatArray
from penstock.explain._cart import BoolArray, codes_of, distinct
from penstock.explain._paths import Bound, Operator, Path, rows_that_meet

_STARTS = 3  # bounds that are extended by others


def conjunctions(table: FloatArray, is_event: BoolArray, rarity: float, max_conditions: int) -> Iterator[Path]:
    """The best bound of each column alone, and the best of these extended by the best of other columns in turn.

    Each normal row stands for `rarity` of them. Best is the highest F1.

    >>> table = np.array([[5.0, 1.0], [5.0, 9.0], [1.0, 1.0]])
    >>> list(conjunctions(table, np.array([True, False, False]), 1.0, 2))[-1]
    (Bound(column=1, operator='<=', value=1.0), Bound(column=0, operator='>', value=4.999999999999999))
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
    """Of each column that has one, the bound with the highest F1; a bound shuts out a reading."""
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
