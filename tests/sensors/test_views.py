"""The views of a row equal their definitions as slow loops, whatever the table."""

from __future__ import annotations

import math
from unittest import mock

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from naive import incomplete
from naive import views as naive
from strategies import examples
from views_cases import few_draws, make_table, new_rows, punch

from penstock import Detector, Tree
from penstock.detectors import views as composite
from penstock.detectors.views import (
    Places,
    counted,
    draw_nodes,
    draw_numbers,
    join_rows,
    learn_encoding,
    learn_margins,
    learn_standard,
    sampling_of,
)
from penstock.graph.edges import nearest_by_tree, shortest_edges, tree_among
from penstock.graph.mst import spanning_tree_of_comparable

pytestmark = [
    pytest.mark.kernels,
    pytest.mark.filterwarnings("ignore:.* have no column in common:UserWarning"),
]
# Without the JIT, NumPy's scalars warn of what kernels pass over.
overflows = pytest.mark.filterwarnings("ignore:overflow encountered in scalar:RuntimeWarning")
UNITS = [1.0, 1e-300, 1e-9, 1e9, 1e300]


def members_of(fitted: Detector) -> tuple[list[list[int]], list[list[int]]]:
    return fitted.model_.views.sampled.coarse.tolist(), fitted.model_.views.sampled.fine.tolist()


def assert_twins(fitted: Detector, twin: naive.Twin, rows: np.ndarray) -> None:
    np.testing.assert_allclose(fitted.parts_, twin.parts_, rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(fitted.scores_, twin.scores_, rtol=1e-9, atol=1e-9)
    A = rows if fitted.scaling_ is None else fitted.scaling_.apply(rows)
    found = fitted.model_.views.parts(A)
    expected = [twin.parts(row) for row in A.tolist()]
    np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-9)
    scores = [sum(naive.two_largest(parts)) for parts in expected]
    np.testing.assert_allclose(fitted.anomaly_score(rows), scores, rtol=1e-9, atol=1e-9)


options = {
    "seed": st.integers(0, 10**6),
    "n": st.sampled_from([2, 2, 3, 3, 4, 7, 16]),
    "p": st.integers(1, 4),
    "copies": st.booleans(),
    "constant": st.booleans(),
    "holes": st.booleans(),
}


@given(**options, kind=st.sampled_from(["smooth", "wide"]), scale=st.sampled_from(["minmax", None]),
       unit=st.sampled_from(UNITS))  # fmt: skip
@examples(50)
def test_the_detector_is_its_definition(seed, n, p, kind, copies, constant, holes, scale, unit) -> None:
    X = make_table(seed, n, p, kind, copies, constant, holes)
    X = X * (unit if kind == "smooth" else 1.0)
    assume(
        scale or unit < 1 or (np.nanmax(X, axis=0) > np.nanmin(X, axis=0)).any()
    )  # a search ends at 1e154 ranges of the largest column
    rows = new_rows(X, seed, holes)
    with few_draws():
        fitted = Detector(scale=scale, random_state=seed).fit(X)
    A, B = (naive.min_max(X.tolist(), table.tolist()) if scale else table.tolist() for table in (X, rows))
    if fitted.scaling_ is not None:
        np.testing.assert_array_equal(fitted.scaling_.apply(rows), B)
    assert_twins(fitted, naive.Twin(A, *members_of(fitted)), rows)


@given(**options, offset=st.sampled_from([0.0, 7.0, 1e6]), scale=st.sampled_from(["minmax", None]))
@examples(50)
def test_the_detector_is_its_definition_where_lengths_tie(
    seed, n, p, copies, constant, holes, offset, scale
) -> None:  # fmt: skip
    """Rounding decides which of several minimal trees is taken, and in which bin a reading is."""
    X = make_table(seed, n, p, "lattice", copies, constant, holes) + offset
    with few_draws():
        fitted = Detector(scale=scale, random_state=seed).fit(X)
    A = X if fitted.scaling_ is None else fitted.scaling_.apply(X)
    encoding, rows = fitted.model_.views.encoding, A[fitted.model_.copies.kept]
    columns = naive.learn_encoding(A.tolist())
    encoded = encoding.apply(rows)
    np.testing.assert_allclose(encoded, [naive.encode(columns, row) for row in rows], rtol=1e-12, atol=1e-12)
    trees = []
    if len(rows) > 1:
        trees = [tree_among(fitted.tree_, fitted.model_.copies.kept), spanning_tree_of_comparable(encoded)]
        for tree, table in zip(trees, (rows, encoded), strict=True):
            assert math.fsum(tree.lengths) == pytest.approx(naive.tree_length(table), rel=1e-12)
            lengths = [naive.length_of(table, i, j) for i, j in tree.edges]
            np.testing.assert_allclose(tree.lengths, lengths, rtol=1e-12)
    twin = naive.Twin(
        A,
        *members_of(fitted),
        apply=lambda table: encoding.apply(np.array(table)).tolist(),
        trees=[list(zip(*tree.edges.T.tolist(), tree.lengths.tolist(), strict=True)) for tree in trees] or (None, None),
    )
    assert_twins(fitted, twin, new_rows(X, seed, holes) + np.r_[0, np.full(5, 1e-3), 0, 0][:, None])


@pytest.mark.parametrize("scale", ["minmax", None])
def test_the_detector_is_its_definition_where_rows_share_no_column(scale: str | None) -> None:
    rng = np.random.default_rng(3)
    X = rng.normal(size=(12, 4))
    X[:6, 2:], X[6:11, :2] = np.nan, np.nan  # the last row alone holds them together
    new = np.array([[0.3, np.nan, np.nan, np.nan], [np.nan, np.nan, 0.1, 2.0], [0.3, 0.4, np.nan, 1.0]])
    with few_draws():
        fitted = Detector(scale=scale).fit(X)
    A = naive.min_max(X.tolist(), X.tolist()) if scale else X.tolist()
    assert_twins(fitted, naive.Twin(A, *members_of(fitted)), new)


def test_no_draw_has_a_row_to_compare_with() -> None:
    """The views that cannot say anything say nothing."""
    X = np.c_[np.arange(40.0) ** 1.5, np.full(40, np.nan)]
    X[0, 1] = 3.0
    with mock.patch.multiple(composite, COARSE=(2, 2), FINE=(1, 2)):
        fitted = Detector(scale=None, random_state=1).fit(X)
    assert 0 not in fitted.model_.views.sampled.drawn
    parts = fitted.model_.views.parts(np.array([[np.nan, 4.0]]))
    assert parts[0, :2].tolist() == [0.0, 0.0]
    assert parts[0, 2] != 0
    assert_twins(fitted, naive.Twin(X, *members_of(fitted)), np.array([[np.nan, 4.0], [3.0, 3.0]]))


@pytest.mark.parametrize(("n", "p"), [(60, 3), (30, 20)])
def test_the_detector_is_its_definition_with_all_its_draws(n: int, p: int) -> None:
    X = np.random.default_rng(n).gamma(2.0, size=(n, p))
    fitted = Detector().fit(X)
    assert fitted.model_.views.sampled.coarse.shape == (128, 4)
    assert fitted.model_.views.sampled.fine.shape == (64, min(n, 32))
    assert all(len(set(draw)) == len(draw) for members in members_of(fitted) for draw in members)
    twin = naive.Twin(naive.min_max(X.tolist(), X.tolist()), *members_of(fitted))
    assert_twins(fitted, twin, new_rows(X, 0, holes=False))


@given(st.integers(0, 10**6), st.integers(8, 12), st.integers(1, 4), st.booleans(), st.booleans())
@examples(30)
def test_shares_are_their_definition(seed: int, n: int, p: int, copies: bool, holes: bool) -> None:
    X = make_table(seed, n, p, "smooth", copies, False, holes)
    with few_draws():
        fitted = Detector(random_state=seed).fit(X)
    twin = naive.Twin(naive.min_max(X.tolist(), X.tolist()), *members_of(fitted))
    A = fitted.scaling_.apply(new_rows(X, seed, holes))
    encode = fitted.model_.views.encoding.apply
    gaps = np.abs(encode(A)[:, None] - encode(fitted.scaling_.apply(X))[None])  # rows, nodes, variables
    with np.errstate(all="ignore"):
        size = np.nanmean(gaps, axis=2)
    tied = np.abs(size[:, :, None] - size[:, None]) < 1e-9
    alike = np.isclose(gaps[:, :, None], gaps[:, None], equal_nan=True).all(axis=3)
    assume(not (tied & ~alike).any())  # of nodes that are equally near, rounding decides which is the nearest
    np.testing.assert_allclose(
        fitted.model_.views.parts_and_shares(A)[1], [twin.shares(row) for row in A.tolist()], rtol=1e-9, atol=1e-9
    )  # fmt: skip


# Each by itself.


@overflows
def test_a_huge_or_constant_column_encoded() -> None:
    A = np.c_[[1e308, -1e308, 1.0], [0.0, 0.0, 0.0], [7.0, 7.0, 7.0], [1e-308, 3e-308, 2e-308], [np.nan, 1.0, 3.0]]
    encoding = learn_encoding(A)
    np.testing.assert_allclose(encoding.apply(A), [naive.encode(naive.learn_encoding(A), row) for row in A], rtol=1e-12)
    assert (encoding.apply(A)[:, 1:3] == 0).all()
    wild = encoding.apply(np.array([[1.7e308] * 5, [-1.7e308] * 5, [5e-324] * 5, [np.nan] * 5]))
    assert np.isfinite(wild[:3]).all()
    assert np.isnan(wild[3]).all()
    moved = encoding.apply(np.array([[0.0, 3.0, 14.0, 0.0, np.nan], [0.0, 1e-9, 7.00001, 0.0, np.nan]]))
    np.testing.assert_allclose(moved[0, 1:3], np.log1p([3e3, 1e3]), rtol=1e-12)
    assert (moved[1, 1:3] == 0).all()  # rounding is no move


def test_a_constant_is_constant_however_its_mean_is_rounded() -> None:
    A = np.full((10, 1), 0.1)
    assert learn_encoding(A).spread[0] == 1e-3


@pytest.mark.parametrize("p", [1, 7, 8, 9, 16, 21])
@pytest.mark.parametrize("holes", [False, True])
def test_distances_of_any_width(p: int, holes: bool) -> None:
    """Entries are summed by fours; rows of which none is the nearest in any draw are nodes too."""
    rng = np.random.default_rng(p)
    rows, Q = rng.normal(size=(90, p)), 2 * rng.normal(size=(10, p))
    if holes:
        rows, Q = punch(rows, rng, 0.5), punch(Q, rng, 0.5)
    with few_draws():
        view = draw_nodes(rows, np.arange(90), rng)
    near, apart = rng.integers(0, 90, 10), rng.choice([0.0, 0.4, 1.0], 10)
    near[:3] = view.drawn[:3]
    values = view.values(Q, Places(near, np.zeros(10), apart))
    for found, members in zip(values, (view.coarse, view.fine), strict=True):
        expected = [
            naive.mean_to_nearest(q, rows.tolist(), members.tolist(), (near[i], 0.0, apart[i]))
            for i, q in enumerate(Q.tolist())
        ]
        np.testing.assert_allclose(found, expected, rtol=1e-13)


def test_a_row_is_no_node_for_itself() -> None:
    rows = np.array([[0.0], [1.0], [5.0]])
    view = sampling_of(rows, np.array([[0, 2], [0, 1]]), np.array([[1]]), np.ones(3, dtype=np.intp))
    at_home = Places(np.array([0, 2]), np.zeros(2), np.zeros(2))
    assert view.values(rows[[0, 2]], at_home)[0].tolist() == [3.0, 4.5]  # (5 + 1)/2 and (5 + 4)/2
    away = Places(np.array([0, 2]), np.ones(2), np.ones(2))
    assert view.values(rows[[0, 2]], away)[0].tolist() == [0.0, 2.0]
    assert np.isnan(view.values(rows[[1]], Places(np.array([1]), *np.zeros((2, 1))))[1])
    copied = sampling_of(rows, view.coarse, view.fine, np.array([4, 1, 1]))  # of four, three are left
    assert copied.values(rows[[0, 2]], at_home)[0].tolist() == [3.0 / 4, 4.5]


def test_draws() -> None:
    assert np.sort(draw_numbers(3, 4, 32, np.random.default_rng(0))).tolist() == [[0, 1, 2]] * 4
    rng = np.random.default_rng(1)
    numbers = draw_numbers(7, 70_000, 3, rng)
    assert (np.diff(np.sort(numbers), axis=1) > 0).all()
    sets, counts = np.unique(np.sort(numbers) @ [49, 7, 1], return_counts=True)
    assert len(sets) == 35
    assert np.abs(counts - 2000).max() < 5 * np.sqrt(2000)  # all sets alike
    copy_of = np.repeat([0, 1, 2], [1, 1, 98])
    drawn = draw_nodes(np.arange(3.0)[:, None], copy_of, rng)
    assert (drawn.coarse == 2).mean() > 0.9  # copies count as often as they are there
    assert drawn.times.tolist() == [1, 1, 98]


def test_histograms() -> None:
    rows = np.array([[0.0, 3.0], [0.5, 3.0], [1.0, 3.0], [10.0, np.nan]])
    margins = learn_margins(rows)
    assert margins.counts.tolist() == [[0, 3, 0, 0, 0, 1, 0], [0, 3, 0, 0, 0, 0, 0]]
    assert margins.total.tolist() == [4, 3]
    wild = np.array([[-1e300, 1e300], [1e300, -1e300], [1.0, np.nan], [1.0, 3.0], [11.0, 3.25]])
    np.testing.assert_allclose(
        margins.surprises(wild, wild, np.zeros(5)),
        -np.log([[0.5 / 6.5, 0.5 / 5.5], [0.5 / 6.5, 0.5 / 5.5], [3.5 / 6.5, np.nan], [3.5 / 6.5, 3.5 / 5.5],
                 [0.5 / 6.5, 2.75 / 5.5]]),
        rtol=1e-12,
    )  # fmt: skip
    assert (margins.excesses(*[np.array([[1.0, 3.0]])] * 2, np.ones(1)) == 0).all()
    without = margins.surprises(rows, rows, np.ones(4))
    np.testing.assert_allclose(
        without, -np.log([[1.5 / 5.5, 2.5 / 4.5], [2.0 / 5.5, 2.5 / 4.5], [2.5 / 5.5, 2.5 / 4.5], [0.5 / 5.5, np.nan]])
    )
    np.testing.assert_allclose(margins.usual, np.nanmean(without, axis=0), rtol=1e-11)


@pytest.mark.parametrize("runs", [3, 5, 6, 7, 11])
def test_readings_that_are_all_equally_surprising_are_not_odd(runs: int) -> None:
    """Where rounding put the mean below them, a new reading was twice as odd as elsewhere."""
    levels = np.repeat([[0.0], [1.0]], 4 * runs, axis=0)
    margins = learn_margins(levels)
    assert (margins.values(levels, levels, np.ones(len(levels))) == 0).all()


def test_standards() -> None:
    for values in ([1.0, 10.0, 100.0], [0.0, 2.0, 5.0], [np.nan, 3.0, 4.0], [5e-324, 1.0], [1e308, 1.0]):
        mine, twin = learn_standard(np.array(values)), naive.LogStandard(values)
        assert (mine.floor, mine.mean) == (twin.floor, pytest.approx(twin.mean, rel=1e-12))
        assert mine.spread == pytest.approx(twin.spread, rel=1e-12)
        new = [*values, 0.0, np.nan, 1e-320, 1.7e308]
        np.testing.assert_allclose(mine.apply(np.array(new)), [twin.of(value) for value in new], rtol=1e-12, atol=1e-12)
    assert learn_standard(np.zeros(3)).apply(np.array([0.0, 1e-6, 1e-9])).tolist() == [0.0, 0.0, 0.0]
    assert learn_standard(np.full(2, np.nan)).apply(np.array([np.nan, 1.0])).tolist() == [0.0, 0.0]
    equal = learn_standard(np.array([3.0, 3.0 * (1 + 1e-9), 3.0]))
    assert np.abs(equal.apply(np.array([3.0, 3.0 * math.e])) - [0.0, 1.0]).max() < 1e-8


@given(st.lists(st.sampled_from([-2.0, -1.0, 0.0, 0.5, 1.0]), min_size=4, max_size=4))
@examples(60)
def test_two_of_four_count_whatever_ties(parts: list[float]) -> None:
    found = counted(np.array([parts]))[0]
    assert found.tolist() == naive.two_largest(parts)
    assert found.sum() == sum(sorted(parts)[2:])


def test_a_tree_seen_from_its_rows() -> None:
    tree = Tree(np.array([[0, 1], [2, 3], [0, 3], [3, 4]]), np.array([0.0, 1.0, 1.0, 2.0]))
    near, edge, total, degree = nearest_by_tree(tree)
    assert near.tolist() == [1, 0, 3, 0, 3]  # of row 3, two are equally near: the first
    assert edge.tolist() == [0.0, 0.0, 1.0, 1.0, 2.0]
    assert total.tolist() == [1.0, 0.0, 1.0, 4.0, 2.0]
    assert degree.tolist() == [2, 1, 1, 3, 1]
    assert shortest_edges(tree).tolist() == [1.0, 1.0, 1.0, 1.0, 2.0]  # row 1 has none above 0: the median
    among = tree_among(tree, np.array([0, 2, 3, 4]))
    assert among.edges.tolist() == [[1, 2], [0, 2], [2, 3]]
    assert among.lengths.tolist() == [1.0, 1.0, 2.0]
    assert shortest_edges(Tree(np.array([[0, 1]]), np.zeros(1))).tolist() == [1.0, 1.0]


@given(st.integers(0, 10**6), st.integers(2, 25), st.integers(1, 3), st.booleans())
@examples(30)
def test_the_shortest_edge_leads_to_the_nearest_row(seed: int, n: int, p: int, lattice: bool) -> None:
    X = make_table(seed, n, p, "lattice" if lattice else "smooth", False, False, False)
    near, edge, _, _ = nearest_by_tree(spanning_tree_of_comparable(X))
    for i in range(n):
        assert edge[i] == pytest.approx(incomplete.nearest(X, X[i], 1, left_out=i)[0][0], abs=1e-15)
        assert edge[i] == pytest.approx(incomplete.shared_distance(X[i], X[near[i]]), abs=1e-15)


def joined(rows: np.ndarray) -> tuple:
    joining = join_rows(rows, spanning_tree_of_comparable(rows), np.ones(len(rows), dtype=np.intp))
    return joining, joining.values(joining.own_places())


def test_a_row_that_joins() -> None:
    """0 – 1 – 3 – 10: the last joins 3, whose other edge is 2; without 1, which it joins, 0 would join 3."""
    joining, own = joined(np.array([[0.0], [1.0], [3.0], [10.0]]))
    assert own.tolist() == [1.0 + 2.0, 1.0 + (1.0 + 3.0) / 2, 2.0 + 1.0, 7.0 + 2.0]
    new = np.array([[3.1], [12.0], [3.0], [3.05], [0.0]])
    places = joining.places(new)
    assert places.near.tolist() == [2, 3, 2, 2, 0]
    np.testing.assert_allclose(places.apart, [0.5, 1.0, 0.0, 0.25, 0.0], rtol=1e-14)
    expected = [(3.0 + (0.1 + 4.5)) / 2, 2.0 + 7.0, 3.0, 0.75 * 3 + 0.25 * (0.05 + 4.5), 3.0]
    np.testing.assert_allclose(joining.values(places), expected, rtol=1e-14)


def test_rows_that_are_equal_when_encoded_are_told_apart() -> None:
    """Tiny readings with a median of 0.7: when it is taken off they are all the same."""
    rng = np.random.default_rng(0)
    X = np.r_[np.arange(1, 31) * 1e-20, rng.uniform(0.4, 1, 40)][rng.permutation(70)][:, None]
    for scale in ("minmax", None):
        fitted = Detector(scale=scale).fit(X)
        A = X if fitted.scaling_ is None else fitted.scaling_.apply(X)
        assert len(np.unique(fitted.model_.views.encoding.apply(A))) < len(np.unique(A)) == 70
        np.testing.assert_array_equal(fitted.anomaly_score(X), fitted.scores_)
        difference = np.abs(fitted.anomaly_score(X * (1 + 1e-13)) - fitted.scores_)
        assert difference.max() < 1e-6


def test_rows_nearer_than_a_search_can_tell_keep_their_scores() -> None:
    X = np.array([[0.0, 0.0], [1e-200, 0.0], [2e-200, 0.0], [1.0, 1.0], [0.7, 0.2], [0.5, 0.4]])
    for scale in ("minmax", None):
        fitted = Detector(scale=scale).fit(X)
        assert len(set(fitted.parts_[:3, 2])) > 1
        np.testing.assert_array_equal(fitted.anomaly_score(X), fitted.scores_)
        assert np.isfinite(fitted.anomaly_score([[1.5e-200, 0.0]])).all()


@overflows
def test_what_overflows_is_the_largest_float() -> None:
    star = 8e307 * np.array([[0.0, 0.0], [1.0, 0.0], [0.0, 1.0], [-1.0, 0.0], [0.0, -1.0]])
    wild = np.array([[1.7e308, 1.7e308], [-1.7e308, 1.0], [0.0, 1.0]])
    fitted = Detector(scale=None).fit(star)
    assert np.isfinite(fitted.model_.views.plain.around).all()  # the sum of four such edges is not
    for rows in (star, wild):
        assert np.isfinite(fitted.anomaly_score(rows)).all()
        assert np.isfinite(fitted.explain(rows).variables.to_numpy()).all()
    dense = Detector(scale=None).fit(1e-9 * np.random.default_rng(0).normal(size=(40, 2)))
    explained = dense.explain(wild)
    np.testing.assert_array_equal(explained.parts.sum(axis=1), dense.anomaly_score(wild))
    local = explained.shares["local"].to_numpy()
    assert np.abs(local[:2] - [[0.5, 0.5], [1.0, 0.0]]).max() < 0.01


def test_shares_of_gaps_whose_squares_would_vanish() -> None:
    joining, _ = joined(np.array([[0.0, 0.0], [3e-200, 4e-200]]))
    gaps = joining.gaps(np.array([[-3e-200, 1e-200]]), joining.places(np.array([[-3e-200, 1e-200]])))
    np.testing.assert_allclose(gaps[0] / gaps[0].sum(), [0.9, 0.1])
