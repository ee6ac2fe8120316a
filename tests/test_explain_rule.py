from __future__ import annotations

import time
from decimal import Decimal

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from naive import explanations as naive
from strategies_explain import labelled_tables

from penstock.explain import Condition, NormalSample, Rule, find_rule
from penstock.explain._conditions import (
    Bound,
    GrownTree,
    best_path,
    gap_around,
    grow,
    paths_of,
    round_between,
    rows_that_meet,
    simplest,
)
from penstock.explain.rule import best_separating

NAMES = list("abcde")


def conditions_of(rule, names=NAMES):
    return [(names.index(c.variable), c.operator, c.value) for c in rule.conditions]


def digits_of(value: float) -> int:
    return len(Decimal(repr(value)).normalize().as_tuple().digits)


def is_worth_it(rows, m, path):
    """Whether at least half of the rows that meet a path are among the first m."""
    met = [naive.meets(row, path) for row in rows]
    return 2 * sum(met[:m]) >= sum(met) > 0


def is_sliver(X, m, path):
    """Whether some column is bounded on both sides for fewer than 3 rows or too little room."""
    shown = simplest(tuple(Bound(*each) for each in tightest(path)), X)
    for column in {bound.column for bound in shown}:
        sides = {bound.operator: bound.value for bound in shown if bound.column == column}
        if len(sides) == 2:
            rows = sum(sides[">"] < reading <= sides["<="] for reading in X[:m, column])
            low, high = np.nanquantile(X[m:, column], [0.05, 0.95])
            if rows < 3 or sides["<="] - sides[">"] < 0.05 * (high - low):
                return True
    return False


def tightest(path):
    """Of conditions on the same side of a column only the tightest."""
    kept = {}
    for column, operator, value in path:
        tighter = max if operator == ">" else min
        kept[column, operator] = tighter(value, kept.get((column, operator), value))
    return [(*side, value) for side, value in kept.items()]


@given(labelled_tables(), st.integers(1, 3))
@settings(max_examples=60, deadline=None)
def test_counts_are_the_naive_ones(labelled, max_conditions):
    X, is_event = labelled
    names = NAMES[: X.shape[1]]
    rule = find_rule(X, is_event, names, max_conditions=max_conditions)
    if rule is None:
        return
    met = np.array([naive.meets(row, conditions_of(rule)) for row in X.tolist()])
    assert (rule.hits, rule.false_hits) == (met[is_event].sum(), met[~is_event].sum())
    assert (rule.event_rows, rule.normal_rows) == (is_event.sum(), (~is_event).sum())
    assert rule.hits > 0
    np.testing.assert_array_equal(rule.holds(X, names), met)
    sides = [(c.variable, c.operator) for c in rule.conditions]
    assert len(set(sides)) == len(sides) <= max_conditions
    assert rule.f1 == pytest.approx(naive.f1(X.tolist(), is_event.tolist(), conditions_of(rule)), rel=1e-12)


@given(labelled_tables())
@settings(max_examples=60, deadline=None)
def test_the_path_is_the_best_of_all(labelled):
    X, is_event = labelled
    X = np.concatenate([X[is_event], X[~is_event]])
    m = int(is_event.sum())
    is_event = np.arange(len(X)) < m
    tree = grow(X, is_event, max_depth=3, min_leaf=1, random_state=0)
    arrays = (tree.column.tolist(), tree.threshold.tolist(), tree.below.tolist(), tree.above.tolist())
    scores = [
        naive.f1(X.tolist(), is_event.tolist(), path)
        for path in naive.paths(*arrays)
        if is_worth_it(X.tolist(), m, path) and not is_sliver(X, m, path)
    ]
    best = best_path(paths_of(tree, X), X, m)
    assert (best is None) == (max(scores, default=0.0) < 0.5)
    if best is not None:
        assert naive.f1(X.tolist(), is_event.tolist(), best) == pytest.approx(max(scores), rel=1e-12)
        simple = simplest(best, X)
        assert 1 <= len(simple) <= len(best)
        np.testing.assert_array_equal(rows_that_meet(simple, X), rows_that_meet(best, X))


@given(labelled_tables(missing=False))
@settings(max_examples=60, deadline=None)
def test_the_first_split_is_carts(labelled):
    X, is_event = labelled
    tree = grow(X, is_event, max_depth=1, min_leaf=1, random_state=0)
    rows, labels = X.tolist(), is_event.tolist()
    split = naive.balanced_gini(rows, labels, tree.column[0], tree.threshold[0]) if tree.below[0] >= 0 else 0.5
    assert split == pytest.approx(naive.best_gini(rows, labels), abs=1e-9)


@given(labelled_tables())
@settings(max_examples=60, deadline=None)
def test_a_single_threshold_has_the_fewest_digits(labelled):
    X, is_event = labelled
    rule = find_rule(X, is_event, NAMES[: X.shape[1]], max_conditions=1)
    if rule is None:
        return
    [(column, _, value)] = conditions_of(rule)
    low, high = gap_around(X[:, column], value, np.ones(len(X), dtype=bool))
    assert low <= value < high
    assert digits_of(value) == naive.fewest_digits(repr(low), repr(high))


@given(st.integers(-(10**9), 10**9), st.integers(1, 10**9), st.integers(-6, 6))
@settings(max_examples=300)
def test_rounding_is_exact_and_shortest(low, width, power):
    a, b = float(f"{low}e{power}"), float(f"{low + width}e{power}")
    value = round_between(a, b)
    assert a <= value < b
    assert digits_of(value) == naive.fewest_digits(repr(a), repr(b))


@given(st.floats(allow_nan=False, allow_infinity=False), st.floats(allow_nan=False, allow_infinity=False))
def test_rounding_never_crosses_data(a, b):
    low, high = min(a, b), max(a, b)
    if low < high:
        assert low <= round_between(low, high) < high


def test_neighbouring_floats_and_the_widest_gap():
    assert round_between(1.0, np.nextafter(1.0, 2)) == 1.0
    assert round_between(np.nextafter(1.0, 0), 1.0) == np.nextafter(1.0, 0)
    assert round_between(-1.7e308, 1.7e308) == 0.0


def plant(n: int = 400, seed: int = 0):
    rng = np.random.default_rng(seed)
    X = np.column_stack([rng.normal(2, 0.4, n), rng.random(n), rng.normal(0, 1, n)])
    is_event = np.arange(n) < 20
    X[is_event, 0] += 3
    X[is_event, 1] *= 0.3
    high = rng.choice(np.arange(20, n), 30, replace=False)
    X[high, 0] += 3  # normal at large openings
    X[high, 1] = 0.5 + 0.5 * rng.random(30)
    return X, is_event


def test_two_conditions_where_one_is_not_enough():
    X, is_event = plant()
    rule = find_rule(X, is_event, ["vibration", "vane", "noise"], units=["mm/s", "", ""])
    assert {(c.variable, c.operator) for c in rule.conditions} == {("vibration", ">"), ("vane", "<=")}
    assert (rule.hits, rule.false_hits) == (20, 0)
    assert rule.text == "vibration > 4 mm/s and vane <= 0.4: 20 of 20 rows, 0 false"
    assert rule.precision == rule.recall == rule.f1 == 1.0


def test_conditions_on_one_side_are_merged():
    X = np.arange(20, dtype=float)[:, None]
    rule = find_rule(X, (X[:, 0] >= 12) & (X[:, 0] <= 14), ["x"])
    assert {(c.operator, c.value) for c in rule.conditions} == {(">", 11.0), ("<=", 14.0)}
    merged = simplest((Bound(0, ">", 3.0), Bound(0, "<=", 14.5), Bound(0, ">", 11.5)), X)
    assert [bound.operator for bound in merged] == ["<=", ">"]


def test_the_tighter_of_two_conditions_stays():
    X = np.arange(10, dtype=float)[:, None]
    no = -1
    tree = GrownTree(
        np.zeros(5, dtype=int),
        np.array([3.0, no, 7.0, no, no]),
        np.array([1, no, 3, no, no]),
        np.array([2, no, 4, no, no]),
        np.zeros(5, dtype=bool),
    )
    assert best_path(paths_of(tree, X[::-1]), X[::-1], 2) == (Bound(0, ">", 7.0),)


def test_a_column_that_the_event_hardly_has_tells_less():
    normal = np.arange(100.0)[:, None] * np.ones(2)
    event = np.array([[200.0, 90.0], [np.nan, 90.0], [np.nan, 90.0]])
    assert best_separating(event, NormalSample.of(normal), 1).tolist() == [1]


def test_rows_that_are_neither_have_no_say():
    X = np.array([[1.0], [2.0], [9.0], [10.0], [np.nan]])
    is_event = np.array([False, False, False, True, False])
    is_normal = np.array([True, True, False, False, True])
    rule = find_rule(X, is_event, ["x"], is_normal=is_normal)
    assert rule == Rule((Condition("x", ">", 6.0),), 1, 1, 0, 3)
    assert find_rule(X, is_event, ["x"]).conditions[0].value == 9.0


def test_missing_readings_meet_nothing():
    X = np.array([[np.nan, 0.0], [np.nan, 0.0], [5.0, 0.0], [1.0, 0.0], [2.0, 0.0]])
    is_event = np.array([True, True, True, False, False])
    rule = find_rule(X, is_event, ["a", "b"])
    assert rule.text == "a > 3: 1 of 3 rows, 0 false"
    condition = Condition("a", "<=", 3.0)
    assert condition.holds(np.array([1.0, np.nan, -np.inf, 3.0])).tolist() == [True, False, False, True]


def test_only_missing_against_present_is_no_rule():
    X = np.array([[np.nan], [np.nan], [1.0], [1.0], [2.0]])
    assert find_rule(X, np.array([True, True, False, False, False]), ["a"]) is None


@pytest.mark.parametrize(
    ("X", "is_event"),
    [
        (np.ones((4, 2)), [True, False, True, False]),
        (np.full((4, 2), np.nan), [True, False, True, False]),
        (np.arange(8.0).reshape(4, 2), [True] * 4),
        (np.arange(8.0).reshape(4, 2), [False] * 4),
        (np.empty((4, 0)), [True, False, True, False]),
    ],
)
def test_no_rule(X, is_event):
    assert find_rule(X, np.array(is_event), NAMES[: X.shape[1]]) is None


def test_readings_too_close_for_32_bits_and_too_large():
    X = np.array([[1.0, 0.0], [1.0, 1e300], [1.0 + 1e-12, 1e300], [1.0 + 1e-12, 0.0]])
    rule = find_rule(X, np.array([False, False, True, True]), ["a", "b"])
    assert (rule.hits, rule.false_hits, rule.conditions[0].variable) == (2, 0, "a")
    rule = find_rule(X, np.array([False, True, True, False]), ["a", "b"])
    assert (rule.hits, rule.false_hits, rule.conditions[0].variable) == (2, 0, "b")


def test_ties_go_to_fewer_conditions_and_earlier_columns():
    X = np.array([[1.0, 1.0], [2.0, 2.0], [3.0, 3.0]])
    tree = grow(X, np.array([True, False, False]), max_depth=1, min_leaf=1, random_state=0)
    path = best_path(paths_of(tree, X), X, 1)
    assert len(path) == 1
    assert path[0].operator == "<="


def test_the_sample_grows_the_tree_but_all_rows_are_counted():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(5000, 2))
    is_event = np.arange(5000) < 50
    X[is_event, 0] = 2.5 + rng.random(50)
    rule = find_rule(X, is_event, ["a", "b"], max_normal=100)
    met = np.array([naive.meets(row, conditions_of(rule)) for row in X.tolist()])
    assert rule.normal_rows == 4950
    assert rule.false_hits == met[50:].sum() > 10
    assert rule == find_rule(X, is_event, ["a", "b"], max_normal=100)


def test_columns_are_chosen_high_low_outside_and_between():
    rng = np.random.default_rng(1)
    normal = rng.normal(size=(500, 60))
    normal[:, 3] += np.where(rng.random(500) < 0.5, 8, -8)
    event = rng.normal(size=(20, 60))
    event[:, 3] = rng.normal(size=20)  # between two modes
    event[:, 11] *= 9  # outside on both sides
    event[:, 25] += 4
    event[:, 40] -= 4
    assert best_separating(event, NormalSample.of(normal), 4).tolist() == [3, 11, 25, 40]
    event[:, 25] = np.nan
    normal[:, 11] = event[:, 11] = 7.0
    assert not {11, 25} & set(best_separating(event, NormalSample.of(normal), 4).tolist())
    assert 11 not in best_separating(event, NormalSample.of(normal), 60)


def test_a_row_in_the_middle_has_no_rule():
    X = np.random.default_rng(0).normal(50, 5, size=(3000, 1))
    X[0] = 50.958
    assert find_rule(X, np.arange(3000) < 1, ["bearing"]) is None


@pytest.mark.parametrize(("rows", "width"), [(2, 1.0), (30, 0.001)])
def test_two_bounds_need_rows_and_room(rows, width):
    X = np.linspace(0, 10, 1001)[:, None]
    is_event = np.zeros(1001, dtype=bool)
    is_event[500 : 500 + rows] = True
    X[is_event, 0] = 5.0 + np.linspace(0, width, rows)
    X[(X[:, 0] >= 5.0) & (X[:, 0] <= 5.0 + width) & ~is_event] = 2.0
    assert find_rule(X, is_event, ["x"]) is None
    X[is_event, 0] = 5.0 + np.linspace(0, 1.0, rows)
    X[(X[:, 0] >= 5.0) & (X[:, 0] <= 6.0) & ~is_event] = 2.0
    assert (find_rule(X, is_event, ["x"]) is None) == (rows < 3)


def test_a_row_that_is_high_in_two_columns_is_told_by_both():
    X = np.random.default_rng(1).normal(size=(5000, 4))
    X[0, :2] = 2.2  # many are higher in one of them
    X[(X[:, 0] > 2) & (X[:, 1] > 2) & (np.arange(5000) > 0), 1] = 0.0
    rule = find_rule(X, np.arange(5000) < 1, list("abcd"))
    assert {(c.variable, c.operator) for c in rule.conditions} == {("a", ">"), ("b", ">")}
    assert (rule.hits, rule.false_hits) == (1, 0)


def test_a_rule_that_is_mostly_wrong_is_none():
    X = np.random.default_rng(2).normal(size=(20_000, 3))
    assert find_rule(X, np.arange(20_000) % 2000 == 0, list("abc")) is None


def test_of_near_equals_the_column_that_was_off():
    X = np.random.default_rng(3).normal(size=(500, 40))
    names, is_event = [f"v{j}" for j in range(40)], np.arange(500) < 40
    X[:40, [4, 30]] += 50
    weights = np.zeros(40)
    weights[[4, 30]] = 0.1, 0.9
    assert [c.variable for c in find_rule(X, is_event, names, weights=weights).conditions] == ["v30"]
    X[40, 30] = 60.0
    rule = find_rule(X, is_event, names, weights=weights)
    assert [c.variable for c in rule.conditions] == ["v30"]
    assert rule.false_hits == 1  # F1 is 0.988
    X[41:45, 30] = 60.0  # 0.941
    assert [c.variable for c in find_rule(X, is_event, names, weights=weights).conditions] == ["v4"]
    X[40:45, 30] = 0.0
    assert [c.variable for c in find_rule(X, is_event, names, weights=np.zeros(40)).conditions] == ["v4"]


def test_columns_are_chosen_by_what_was_off():
    rng = np.random.default_rng(4)
    X = rng.normal(size=(400, 60))
    X[:10, :40] += 9.0
    weights = np.zeros(60)
    weights[39] = 1.0
    names, is_event = [f"v{j}" for j in range(60)], np.arange(400) < 10
    assert [c.variable for c in find_rule(X, is_event, names, weights=weights).conditions] == ["v39"]
    assert find_rule(X, is_event, names, weights=np.roll(weights, 9)) is None


def test_a_sample_sorted_before_gives_the_same_rule():
    X, is_event = plant()
    usual = NormalSample.drawn_from(X, ~is_event)
    assert find_rule(X, is_event, NAMES[:3], normals=usual) == find_rule(X, is_event, NAMES[:3])


def test_many_columns():
    rng = np.random.default_rng(2)
    X = rng.normal(size=(2000, 222))
    X[:30, 137] += 8
    rule = find_rule(X, np.arange(2000) < 30, [f"v{j}" for j in range(222)])
    assert [c.variable for c in rule.conditions] == ["v137"]
    assert (rule.hits, rule.false_hits) == (30, 0)


@pytest.mark.slow
def test_thirty_events_of_a_large_table_take_seconds():
    rng = np.random.default_rng(3)
    X = rng.normal(size=(10_000, 222))
    names = [f"v{j}" for j in range(222)]
    find_rule(X[:100], np.arange(100) < 9, names)
    start = time.process_time()
    for event in range(30):
        find_rule(X, np.abs(np.arange(10_000) - 300 * event - 20) < 20, names)
    assert time.process_time() - start < 6  # about 2.5 s on an idle core
