from __future__ import annotations

import time
from decimal import Decimal

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from naive import explanations as naive
from strategies_explain import labelled_tables

from penstock.explain import Condition, Rule, find_rule
from penstock.explain._cart import GrownTree, grow
from penstock.explain._paths import Bound, best_path, rows_that_meet, simplest
from penstock.explain._rounding import gap_around, round_between
from penstock.explain._separation import best_separating

NAMES = list("abcde")


def conditions_of(rule, names=NAMES):
    return [(names.index(c.variable), c.operator, c.value) for c in rule.conditions]


def digits_of(value: float) -> int:
    return len(Decimal(repr(value)).normalize().as_tuple().digits)


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
    scores = [naive.f1(X.tolist(), is_event.tolist(), path) for path in naive.paths(*arrays)]
    best = best_path(tree, X, m)
    assert (best is None) == (max(scores, default=0.0) == 0)
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
    assert best_path(tree, X[::-1], 2) == (Bound(0, ">", 7.0),)


def test_a_column_that_the_event_hardly_has_tells_less():
    normal = np.arange(100.0)[:, None] * np.ones(2)
    event = np.array([[200.0, 90.0], [np.nan, 90.0], [np.nan, 90.0]])
    assert best_separating(event, normal, 1).tolist() == [1]


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
    path = best_path(tree, X, 1)
    assert len(path) == 1
    assert path[0].operator == "<="


def test_the_sample_grows_the_tree_but_all_rows_are_counted():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(5000, 2))
    is_event = np.arange(5000) < 50
    X[is_event, 0] = 2.2 + rng.random(50)
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
    assert best_separating(event, normal, 4).tolist() == [3, 11, 25, 40]
    event[:, 25] = np.nan
    normal[:, 11] = event[:, 11] = 7.0
    assert not {11, 25} & set(best_separating(event, normal, 4).tolist())
    assert 11 not in best_separating(event, normal, 60)


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
