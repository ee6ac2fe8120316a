"""Explanations at the door of the room: variables, rules, trees of rules and groups."""

from __future__ import annotations

from decimal import Decimal

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from naive import explanations as naive
from strategies import examples
from strategies_explain import labelled_tables

from penstock.explain import (
    Condition,
    Rule,
    describe_groups,
    find_rule,
    group_of_row,
    grow_tree,
    rank_variables,
    split_unit,
)
from penstock.prepare import learn_scaling

COLUMNS = ["variable", "unit", "actual", "expected", "difference", "row", "share", "direction"]


@st.composite
def events(draw):
    shape = draw(st.integers(1, 6)), draw(st.integers(1, 5))
    some = st.floats(-1e3, 1e3).map(lambda x: round(x, 6))  # squares that do not vanish, which the twin needs
    readings = st.one_of(st.integers(-2, 2).map(float), some, st.just(np.nan))
    actual, expected = (draw(arrays(np.float64, shape, elements=readings)) for _ in range(2))
    return actual, expected, draw(arrays(np.float64, shape[1], elements=st.sampled_from([0.5, 1.0, 10.0])))


@given(events())
def test_shares_and_extremes_are_the_naive_ones(event):
    actual, expected, scale = event
    names = [f"v{j}" for j in range(len(scale))]
    table = rank_variables(actual, expected, scale, names, n=99)
    shares = naive.shares(actual.tolist(), expected.tolist(), scale.tolist())
    assert list(table.columns) == COLUMNS
    found = dict(zip(table["variable"], table["share"], strict=True))
    np.testing.assert_allclose([found.get(name, 0.0) for name in names], shares, rtol=1e-12, atol=1e-300)
    assert (table["share"] > 0).all()
    assert (np.diff(table["share"]) <= 0).all()
    if len(table):
        assert table["share"].sum() == pytest.approx(1.0, rel=1e-12)
    for line in table.itertuples():
        j = names.index(line.variable)
        residual = np.abs(actual[:, j] - expected[:, j]) / scale[j]
        assert line.row == np.nanargmax(residual)
        assert (line.actual, line.expected) == (actual[line.row, j], expected[line.row, j])
        assert line.difference == line.actual - line.expected
        assert line.direction == ("above" if line.difference > 0 else "below")


def test_ties_in_the_order_of_the_columns_and_of_the_rows():
    actual = np.array([[1.0, -2.0, 2.0], [1.0, 2.0, -2.0]])
    table = rank_variables(actual, np.zeros((2, 3)), np.ones(3), list("abc"))
    assert table["variable"].tolist() == ["b", "c", "a"]
    assert table["row"].tolist() == [0, 0, 0]
    assert table["direction"].tolist() == ["below", "above", "above"]


@pytest.mark.parametrize("m", [0, 2])
def test_nothing_to_tell(m):
    table = rank_variables(np.full((m, 2), np.nan), np.ones((m, 2)), np.ones(2), ["a", "b"])
    assert list(table.columns) == COLUMNS
    assert len(table) == 0
    assert table["row"].dtype.kind == "i"
    assert table["share"].dtype == np.float64


def test_a_column_that_was_constant_counts_in_units_of_itself():
    actual, expected = np.array([[6.0, 2.0, 1.0]]), np.array([[4.0, 0.0, 0.0]])
    table = rank_variables(actual, expected, np.array([0.0, 0.0, 1.0]), list("abc"))
    # residuals ½, 2 and 1
    np.testing.assert_allclose(table.set_index("variable")["share"][list("abc")], np.array([0.25, 4, 1]) / 5.25)


def test_huge_and_tiny_readings_count():
    actual, expected = np.array([[1.7e308, 3.0]]), np.array([[-1.7e308, 0.0]])
    table = rank_variables(actual, expected, np.array([np.inf, 1.0]), ["a", "b"])
    assert np.isfinite(table["share"]).all()
    np.testing.assert_allclose(table["share"].sum(), 1.0)
    tiny = rank_variables(np.array([[3e-283]]), np.array([[0.0]]), np.ones(1), ["a"])
    assert tiny["share"].tolist() == [1.0]
    alone = rank_variables(np.array([[1e300]]), np.array([[0.0]]), np.array([1e-300]), ["a"])
    assert alone["share"].tolist() == [1.0]


@pytest.mark.parametrize(
    ("name", "parts"),
    [
        ("share (%)", ("share", "%")),
        ("conductivity (µS/cm)", ("conductivity", "µS/cm")),
        ("density (kg/m^3)", ("density", "kg/m^3")),
        ("efficiency [-]", ("efficiency", "")),
        ("things [furlongs]", ("things", "furlongs")),
        *(
            (name, (name, ""))
            for name in ("heat (kJ/(kg K))", "pump (old)", "pump[2]", "pump []", "in / out", "[bar]", "")
        ),
        ("m" * 20_000 + " (" + "m·" * 20_000, ("m" * 20_000 + " (" + "m·" * 20_000, "")),  # in no time
    ],
    ids=lambda given: str(given)[:20],
)
def test_split_unit(name, parts):
    assert split_unit(name) == parts


NAMES = list("abcde")


def conditions_of(rule, names=NAMES):
    return [(names.index(c.variable), c.operator, c.value) for c in rule.conditions]


def digits_of(value: float) -> int:
    return len(Decimal(repr(value)).normalize().as_tuple().digits)


@given(labelled_tables())
@examples(100)
def test_a_rule_is_counted_naively_and_no_single_bound_is_better(labelled):
    X, is_event = labelled
    names = NAMES[: X.shape[1]]
    rule, best = find_rule(X, is_event, names), naive.best_bound(X.tolist(), is_event.tolist())
    if rule is None:
        assert best < 0.5
        return
    conditions = conditions_of(rule)
    met = np.array([naive.meets(row, conditions) for row in X.tolist()])
    np.testing.assert_array_equal(rule.holds(X, names), met)
    assert (rule.hits, rule.false_hits) == (met[is_event].sum(), met[~is_event].sum())
    assert (rule.event_rows, rule.normal_rows) == (is_event.sum(), (~is_event).sum())
    assert rule.hits >= max(1, rule.false_hits)
    assert len({c.variable for c in rule.conditions}) == len(conditions) <= 3
    assert naive.f1(X.tolist(), is_event.tolist(), conditions) >= max(0.5, best) - 1e-12
    for condition in conditions:  # none is without effect
        fewer = [naive.meets(row, [each for each in conditions if each is not condition]) for row in X.tolist()]
        assert len(conditions) == 1 or sum(fewer) > met.sum()


@given(labelled_tables())
@examples(60)
def test_a_single_threshold_has_the_fewest_digits(labelled):
    X, is_event = labelled
    rule = find_rule(X[:, :1], is_event, NAMES[:1])
    if rule is None:
        return
    [(_, _, value)] = conditions_of(rule)
    seen = X[np.isfinite(X[:, 0]), 0]
    low, high = seen[seen <= value].max(), seen[seen > value].min()
    assert digits_of(value) == naive.fewest_digits(repr(float(low)), repr(float(high)))


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


def test_a_bound_that_is_mostly_wrong_does_not_hide_one_that_is_right():
    X = np.array([1.0, 5.0, 8.0, 2.0, 3.0, 4.0, 6.0, 7.0, 9.0])[:, None]
    assert find_rule(X, np.arange(9) < 3, ["x"]).text == "x <= 1: 1 of 3 rows, 0 false"


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
def test_where_nothing_tells_rows_apart_there_is_no_rule_and_a_tree_of_one_leaf(X, is_event):
    assert find_rule(X, np.array(is_event), NAMES[: X.shape[1]]) is None
    if X.shape[1]:
        text, flagged = grow_tree(X, np.array(is_event), ["a", "b"]), sum(is_event)
        assert text == f"{flagged} flagged, {4 - flagged} normal"


def test_readings_too_close_for_32_bits_and_too_large():
    X = np.array([[1.0, 0.0], [1.0, 1e300], [1.0 + 1e-12, 1e300], [1.0 + 1e-12, 0.0]])
    rule = find_rule(X, np.array([False, False, True, True]), ["a", "b"])
    assert (rule.hits, rule.false_hits, rule.conditions[0].variable) == (2, 0, "a")
    rule = find_rule(X, np.array([False, True, True, False]), ["a", "b"])
    assert (rule.hits, rule.false_hits, rule.conditions[0].variable) == (2, 0, "b")


def test_a_sample_chooses_the_rule_but_all_rows_are_counted():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(20_000, 2))
    is_event = np.arange(20_000) < 50
    X[is_event, 0] = 3.0 + rng.random(50)
    rule = find_rule(X, is_event, ["a", "b"])
    met = np.array([naive.meets(row, conditions_of(rule)) for row in X.tolist()])
    assert rule.normal_rows == 19_950
    assert rule.false_hits == met[50:].sum() > 0
    assert rule == find_rule(X, is_event, ["a", "b"])


def test_a_row_in_the_middle_has_no_rule():
    X = np.random.default_rng(0).normal(50, 5, size=(3000, 1))
    X[0] = 50.958
    assert find_rule(X, np.arange(3000) < 1, ["bearing"]) is None


def test_a_row_that_is_high_in_two_columns_has_a_rule_with_both():
    X = np.random.default_rng(1).normal(size=(5000, 4))
    X[0, :2] = 2.2  # many are higher in one of them
    X[(X[:, 0] > 2) & (X[:, 1] > 2) & (np.arange(5000) > 0), 1] = 0.0
    rule = find_rule(X, np.arange(5000) < 1, list("abcd"))
    assert {(c.variable, c.operator) for c in rule.conditions} == {("a", ">"), ("b", ">")}
    assert (rule.hits, rule.false_hits) == (1, 0)


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


@given(labelled_tables())
@examples(60)
def test_counts_of_a_tree_are_those_of_the_rows_that_arrive(labelled):
    X, is_flagged = labelled
    lines = grow_tree(X, is_flagged, NAMES[: X.shape[1]]).splitlines()
    counts = [tuple(int(word.split()[0]) for word in line.rsplit(": ", 1)[-1].split(", ")) for line in lines]
    depths = [(len(line) - len(line.lstrip())) // 4 for line in lines]
    assert len(lines) == 1 or max(depths) <= 2
    top = [count for count, depth in zip(counts, depths, strict=True) if depth == 0]
    assert tuple(map(sum, zip(*top, strict=True))) == (is_flagged.sum(), (~is_flagged).sum())
    for place, depth in enumerate(depths):  # the two lines below a line share its rows
        below = next((k for k in range(place + 1, len(lines)) if depths[k] <= depth), len(lines))
        children = [counts[k] for k in range(place + 1, below) if depths[k] == depth + 1]
        assert not children or tuple(map(sum, zip(*children, strict=True))) == counts[place]
        assert sum(counts[place]) > 0


TABLE = np.array([[1.0, 20.0], [2.0, 30.0], [1.5, np.nan], [4.2, 20.0], [5.2, 30.0], [4.9, np.nan]])
FLAGGED = np.array([False, False, False, True, True, False])


def test_a_drawing():
    assert grow_tree(TABLE, FLAGGED, ["vibration [mm/s]", "load"]).splitlines() == [
        "vibration <= 3 mm/s: 0 flagged, 3 normal",
        "vibration > 3 mm/s: 2 flagged, 1 normal",
        "    load known: 2 flagged, 0 normal",
        "    load missing: 0 flagged, 1 normal",
    ]


def test_missing_readings_are_said_to_go_somewhere():
    X = np.array([[1.0], [2.0], [np.nan], [np.nan], [8.0], [9.0]])
    tree = grow_tree(X, np.array([False, False, True, True, True, True]), ["x"])
    assert tree == "x <= 5: 0 flagged, 2 normal\nx > 5 or missing: 4 flagged, 0 normal"
    tree = grow_tree(X, np.array([False, False, False, False, True, True]), ["x"])
    assert tree == "x <= 5 or missing: 0 flagged, 4 normal\nx > 5: 2 flagged, 0 normal"


WEIGHT = st.one_of(st.just(0.0), st.floats(0.01, 10))


@st.composite
def factors(draw):
    n, K, p = draw(st.integers(1, 12)), draw(st.integers(1, 4)), draw(st.integers(1, 5))
    return draw(arrays(np.float64, (n, K), elements=WEIGHT)), draw(arrays(np.float64, (K, p), elements=WEIGHT))


@given(factors())
def test_groups_are_the_naive_ones(both):
    W, H = both
    p = H.shape[1]
    scaling = learn_scaling(np.array([np.arange(p), 5.0 + 3 * np.arange(p)]))
    names = [f"v{j}" for j in range(p)]
    groups = describe_groups(W, H, scaling.undo, names, n=2)
    sizes = W * np.sqrt((H**2).sum(axis=1))
    belongs = group_of_row(W, H)
    clear = np.sort(sizes, axis=1)[:, -2:] if len(H) > 1 else np.column_stack([np.zeros(len(W)), sizes])
    clear = clear[:, 1] > clear[:, 0] * (1 + 1e-12)  # where rounding cannot decide
    np.testing.assert_array_equal(belongs[clear], np.array(naive.group_of_row(W.tolist(), H.tolist()))[clear])
    usual = np.array(naive.mean_reconstruction(W.tolist(), H.tolist(), range(len(W))))
    assert [group.number for group in groups] == list(range(len(H)))
    for group in groups:
        rows = np.flatnonzero(belongs == group.number)
        assert group.members == len(rows)
        assert group.share == len(rows) / len(W)
        if len(rows) == 0:
            assert np.isnan(group.profile).all()
            assert len(group.differences) == 0
            continue
        own = np.array(naive.mean_reconstruction(W.tolist(), H.tolist(), rows.tolist()))
        np.testing.assert_allclose(group.profile, scaling.undo(own), rtol=1e-9)
        departure = np.abs(own - usual)
        told = [names.index(name) for name in group.differences["variable"]]
        assert len(told) <= 2
        if told:
            left = np.delete(departure, told)
            assert departure[told].min() >= left.max(initial=0.0) - 1e-9
            np.testing.assert_allclose(group.differences["value"], scaling.undo(own)[told], rtol=1e-9)
            np.testing.assert_allclose(group.differences["usual"], scaling.undo(usual)[told], rtol=1e-9)


def test_a_single_group_departs_from_nothing():
    rng = np.random.default_rng(1)
    (group,) = describe_groups(rng.random((100, 1)) + 0.1, rng.random((1, 7)), lambda rows: rows, list("abcdefg"))
    assert len(group.differences) == 0
    assert group.share == 1.0


def test_differences_are_judged_in_scaled_units():
    W, H = np.array([[1.0, 0.0], [0.0, 1.0]]), np.array([[0.1, 0.5], [0.9, 0.6]])
    scaling = learn_scaling(np.array([[0.0, 0.0], [1.0, 1000.0]]))
    group = describe_groups(W, H, scaling.undo, ["small", "large"], n=1)[0]
    assert group.differences["variable"].tolist() == ["small"]
    assert group.differences["value"].tolist() == pytest.approx([0.1])
    assert group.differences["usual"].tolist() == pytest.approx([0.5])
    assert group.profile.tolist() == pytest.approx([0.1, 500.0])
