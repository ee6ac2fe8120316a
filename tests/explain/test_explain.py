"""Explanations at the door of the room: variables, neighbours, rules, trees, groups and drawings."""

from __future__ import annotations

from decimal import Decimal

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from naive import explanations as naive
from strategies import examples
from strategies_explain import labelled_tables, trees

from penstock import Tree
from penstock.explain import (
    Condition,
    Leaf,
    NormalSample,
    Rule,
    RuleTree,
    Split,
    TreeWalker,
    describe_groups,
    find_rule,
    group_of_row,
    grow_tree,
    rank_variables,
    split_unit,
    tree_layout,
)
from penstock.explain._conditions import Bound, best_path, f1, gap_around, grow, paths_of, rows_that_meet, simplest
from penstock.explain.rules import best_separating
from penstock.explain.spanning import middle
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


@given(trees(), st.data())
@examples(100)
def test_the_naive_neighbours(tree, data):
    nodes = st.integers(0, tree.n_nodes - 1)
    rows = data.draw(st.sets(nodes, max_size=4))
    is_normal = np.zeros(tree.n_nodes, dtype=bool)
    is_normal[list(data.draw(st.sets(nodes)))] = True
    n = data.draw(st.integers(0, 5))
    found = TreeWalker(tree).nearest_normal(rows, is_normal, n)
    expected = naive.nearest_normal(tree.n_nodes, tree.edges.tolist(), tree.lengths.tolist(), rows, is_normal, n)
    assert list(zip(found.lengths.tolist(), found.nodes.tolist(), found.steps.tolist(), strict=True)) == expected
    assert found.nodes.dtype == found.steps.dtype == np.intp


class Counted(np.ndarray):
    """Flags that count how often one is read."""

    reads = 0

    def __getitem__(self, key):
        Counted.reads += 1
        return super().__getitem__(key)


def test_a_walk_ends_as_soon_as_enough_are_found():
    is_normal = np.ones(10_000, dtype=bool).view(Counted)
    is_normal.view(np.ndarray)[5000:5010] = False
    walker, Counted.reads = TreeWalker(straight(10_000)), 0
    assert walker.nearest_normal(range(5000, 5010), is_normal, 4).nodes.tolist() == [4999, 5010, 4998, 5011]
    assert Counted.reads <= 10 + 6


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
@examples(60)
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
    assert f1(rule.hits, rule.false_hits, rule.event_rows) == pytest.approx(
        naive.f1(X.tolist(), is_event.tolist(), conditions_of(rule)), rel=1e-12
    )


@given(labelled_tables())
@examples(60)
def test_the_path_is_the_best_of_all(labelled):
    X, is_event = labelled
    X = np.concatenate([X[is_event], X[~is_event]])
    m = int(is_event.sum())
    is_event = np.arange(len(X)) < m
    tree = grow(X, is_event, max_depth=3, min_leaf=1)
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
@examples(60)
def test_the_first_split_is_carts(labelled):
    X, is_event = labelled
    tree = grow(X, is_event, max_depth=1, min_leaf=1)
    rows, labels = X.tolist(), is_event.tolist()
    split = naive.balanced_gini(rows, labels, tree.column[0], tree.threshold[0]) if tree.below[0] >= 0 else 0.5
    assert split == pytest.approx(naive.best_gini(rows, labels), abs=1e-9)


@given(labelled_tables())
@examples(60)
def test_a_single_threshold_has_the_fewest_digits(labelled):
    X, is_event = labelled
    rule = find_rule(X, is_event, NAMES[: X.shape[1]], max_conditions=1)
    if rule is None:
        return
    [(column, _, value)] = conditions_of(rule)
    low, high = gap_around(X[:, column], value, np.ones(len(X), dtype=bool))
    assert low <= value < high
    assert digits_of(value) == naive.fewest_digits(repr(low), repr(high))


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
    assert rule.precision == rule.recall == 1.0


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
        tree, flagged = grow_tree(X, np.array(is_event), ["a", "b"]), sum(is_event)
        assert tree == RuleTree(Leaf(flagged, 4 - flagged))
        assert tree.text == f"{flagged} flagged, {4 - flagged} normal"


def test_readings_too_close_for_32_bits_and_too_large():
    X = np.array([[1.0, 0.0], [1.0, 1e300], [1.0 + 1e-12, 1e300], [1.0 + 1e-12, 0.0]])
    rule = find_rule(X, np.array([False, False, True, True]), ["a", "b"])
    assert (rule.hits, rule.false_hits, rule.conditions[0].variable) == (2, 0, "a")
    rule = find_rule(X, np.array([False, True, True, False]), ["a", "b"])
    assert (rule.hits, rule.false_hits, rule.conditions[0].variable) == (2, 0, "b")


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


def leaf_of(node, row, names):
    """The leaf of a row, by its readings, as the records say."""
    while isinstance(node, Split):
        reading = row[names.index(node.variable)]
        goes = node.missing_goes if np.isnan(reading) else ("below" if reading <= node.value else "above")
        node = getattr(node, goes)
    return node


def splits_of(node):
    return [] if isinstance(node, Leaf) else [node, *splits_of(node.below), *splits_of(node.above)]


@given(labelled_tables())
@examples(60)
def test_counts_are_those_of_the_rows_that_arrive(labelled):
    X, is_flagged = labelled
    names = list("abcde")[: X.shape[1]]
    tree = grow_tree(X, is_flagged, names)
    arrived = [leaf_of(tree.root, row, names) for row in X]
    for leaf in tree.leaves:
        here = np.array([other is leaf for other in arrived])
        assert (leaf.flagged, leaf.normal) == (is_flagged[here].sum(), (~is_flagged)[here].sum())
        assert leaf.flagged + leaf.normal > 0
    for split in splits_of(tree.root):
        assert split.flagged == split.below.flagged + split.above.flagged
        assert split.normal == split.below.normal + split.above.normal
        assert min(split.flagged, split.normal) > 0
    assert len(tree.leaves) <= 8
    assert len(tree.text.splitlines()) == max(1, 2 * len(splits_of(tree.root)))


TABLE = np.array([[1.0, 20.0], [2.0, 30.0], [1.5, np.nan], [4.2, 20.0], [5.2, 30.0], [4.9, np.nan]])
FLAGGED = np.array([False, False, False, True, True, False])


def test_a_drawing():
    tree = grow_tree(TABLE, FLAGGED, ["vibration [mm/s]", "load"])
    assert tree.text.splitlines() == [
        "vibration <= 3 mm/s: 0 flagged, 3 normal",
        "vibration > 3 mm/s: 2 flagged, 1 normal",
        "    load known: 2 flagged, 0 normal",
        "    load missing: 0 flagged, 1 normal",
    ]
    assert tree.leaves == (Leaf(0, 3), Leaf(2, 0), Leaf(0, 1))
    assert tree.root.unit == "mm/s"


def test_missing_readings_are_said_to_go_somewhere():
    X = np.array([[1.0], [2.0], [np.nan], [np.nan], [8.0], [9.0]])
    tree = grow_tree(X, np.array([False, False, True, True, True, True]), ["x"])
    assert tree.root == Split("x", "", 5.0, Leaf(0, 2), Leaf(4, 0), 4, 2, "above", 2)
    assert tree.text == "x <= 5: 0 flagged, 2 normal\nx > 5 or missing: 4 flagged, 0 normal"
    tree = grow_tree(X, np.array([False, False, False, False, True, True]), ["x"])
    assert tree.text == "x <= 5 or missing: 0 flagged, 4 normal\nx > 5: 2 flagged, 0 normal"


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


@given(trees(), st.integers(1, 50), st.data())
@examples(100)
def test_it_is_still_a_tree(tree, most, data):
    n = tree.n_nodes
    keep = data.draw(st.lists(st.integers(0, n - 1), max_size=12))
    drawing = tree_layout(tree, most=most, keep=keep)
    m = len(drawing.nodes)
    assert 1 <= m <= most
    assert drawing.simplified == (m < n) == (n > most)
    assert (np.diff(drawing.nodes) > 0).all()
    assert naive.is_tree(m, drawing.edges.tolist())
    assert drawing.edges.shape == (m - 1, 2)
    assert set(list(dict.fromkeys(keep))[:most]) <= set(drawing.nodes.tolist())
    assert drawing.weights.sum() == n
    assert np.isfinite(drawing.positions).all()
    assert drawing.positions.shape == (m, 2)
    assert 0 <= drawing.positions.min() <= drawing.positions.max() <= 1
    np.testing.assert_array_equal(drawing.drawn_as[drawing.nodes], np.arange(m))
    for place in range(m):
        members = set(np.flatnonzero(drawing.drawn_as == place).tolist())
        assert len(members) == drawing.weights[place]
        assert naive.hangs_together(tree.edges.tolist(), members)
    crossing = drawing.drawn_as[tree.edges]
    joining = {
        (*sorted(pair), length)
        for pair, length in zip(crossing.tolist(), tree.lengths.tolist(), strict=True)
        if pair[0] != pair[1]
    }
    drawn = {(*pair, length) for pair, length in zip(drawing.edges.tolist(), drawing.lengths.tolist(), strict=True)}
    assert drawn == joining


@given(trees())
def test_no_two_nodes_of_a_whole_drawing_coincide(tree):
    positions = tree_layout(tree).positions
    if tree.lengths.max(initial=0.0) < 1e9:
        assert len(np.unique(positions.round(9), axis=0)) == tree.n_nodes


def straight(n: int) -> Tree:
    steps = np.arange(n - 1)
    return Tree(np.column_stack([steps, steps + 1]), np.ones(n - 1))


def test_rows_at_long_edges_are_at_the_rim():
    rng = np.random.default_rng(0)
    parents = np.array([rng.integers(max(0, i - 30), i) for i in range(1, 500)])
    lengths = rng.random(499) + 0.5
    is_end = ~np.isin(np.arange(1, 500), parents)
    outlier = int(np.flatnonzero(is_end)[7])
    lengths[outlier] = 60.0
    tree = Tree(np.column_stack([parents, np.arange(1, 500)]), lengths)
    drawing = tree_layout(tree)
    center = drawing.positions[middle(tree)]
    radius = np.linalg.norm(drawing.positions - center, axis=1)
    assert radius.argmax() == outlier + 1


def test_a_backbone_remains_where_there_is_room():
    drawing = tree_layout(straight(10_000), most=100, keep=[0, 9_999])
    assert 80 <= len(drawing.nodes) <= 100
    assert drawing.weights.max() < 300


def test_more_to_keep_than_there_is_room():
    drawing = tree_layout(straight(50), most=3, keep=[40, 10, 20, 30])
    assert drawing.nodes.tolist() == [10, 20, 40]


@pytest.mark.parametrize("most", [2000, 300_000])
def test_a_long_path_does_not_overflow(most):
    drawing = tree_layout(straight(300_000), most=most, keep=[17])
    assert 17 in drawing.nodes
    assert drawing.weights.sum() == 300_000
