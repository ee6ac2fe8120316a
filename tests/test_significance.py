from __future__ import annotations

import dataclasses
import itertools
from fractions import Fraction

import numpy as np
import pandas as pd
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from naive import significance as naive
from scipy import stats

from penstock.bench import paper
from penstock.bench.significance import compare, conover, friedman, mean_ranks, wilcoxon, without_last_bits

OFFLINE = ["NS-NMF", "NMF", "GNMF", "SNMF"]
TABLE = paper.true_positives[OFFLINE]
ALL = [mean_ranks, friedman, conover, wilcoxon, lambda table: compare(table, table.columns[0])]


@st.composite
def tables(draw: st.DrawFn, max_rows: int = 8, max_columns: int = 5) -> pd.DataFrame:
    """Whole numbers from a short range, for many ties, or from a long one."""
    n, k = draw(st.integers(2, max_rows)), draw(st.integers(2, max_columns))
    element = st.integers(0, draw(st.sampled_from([2, 6, 1000])))
    rows = draw(st.lists(st.lists(element, min_size=k, max_size=k), min_size=n, max_size=n))
    return pd.DataFrame(rows, columns=list("ABCDE"[:k]), index=[f"set {i}" for i in range(n)])


def rows_of(table: pd.DataFrame) -> list[list[int]]:
    return table.to_numpy().tolist()


def says_something(table: pd.DataFrame) -> bool:
    return bool((table.nunique(axis=1) > 1).any())


def orders_vary(table: pd.DataFrame) -> bool:
    return len({tuple(naive.ranks(row)) for row in rows_of(table)}) > 1


def upper(square: pd.DataFrame) -> np.ndarray:
    return square.to_numpy()[np.triu_indices(len(square), 1)]


# The paper's own table.


def test_the_papers_friedman_test() -> None:
    result = friedman(TABLE)
    assert f"{result.p_value:.2e}" == "1.23e-07"
    assert result.statistic == pytest.approx(34.988, abs=5e-4)
    assert (result.n, result.k, result.degrees_of_freedom) == (20, 4, 3)
    assert result.mean_ranks.to_dict() == dict(zip(OFFLINE, [1.2, 3.1, 2.6, 3.1], strict=True))
    assert result.uncorrected == pytest.approx(29.04)
    assert f"{stats.chi2.sf(result.uncorrected, 3):.2e}" == "2.20e-06"  # not what the paper reports


def test_the_papers_ranks_and_rows() -> None:
    claims = paper.claims.query("where == 'tbl:3'").pivot(index="claim", columns="method", values="value")[OFFLINE]
    np.testing.assert_allclose(mean_ranks(TABLE), claims.loc["mean rank"], rtol=1e-12)
    kinds = ["Better", "Equal", "Close", "Worse"]
    np.testing.assert_array_equal(compare(TABLE, "NS-NMF"), claims.loc[kinds])
    for close in (8 / 11 + 1e-9, 75 / 102):  # the whole range that gives the paper's rows
        np.testing.assert_array_equal(compare(TABLE, "NS-NMF", close), claims.loc[kinds])
    for close in (8 / 11, 75 / 102 + 1e-9, 0.8):
        found = compare(TABLE, "NS-NMF", close)
        np.testing.assert_array_equal(found.loc[["Better", "Equal"]], claims.loc[["Better", "Equal"]])
        assert (found.loc["Close"] != claims.loc["Close"]).any()
    assert compare(TABLE, "NS-NMF", 0.8).loc["Close"].tolist() == [0, 3, 6, 4]


def test_conover_on_the_papers_table() -> None:
    found = conover(TABLE, "bonferroni").loc["NS-NMF"]
    assert [f"{found[other]:.2e}" for other in OFFLINE[1:]] == ["1.24e-09", "2.84e-06", "1.24e-09"]
    assert conover(TABLE, None).loc["NMF", "GNMF"] == pytest.approx(0.0471, abs=5e-5)


def test_the_papers_conover_values_are_those_of_the_swapped_formula() -> None:
    """tbl:11: NMF and SNMF to all three digits; GNMF to two (3.38e-15, printed as 3.40e-15)."""
    printed = paper.claims.query("where == 'tbl:11'").set_index("method")["value"]
    swapped = naive.conover(rows_of(TABLE), swapped=True)
    found = {other: 6 * swapped[0, place] for place, other in enumerate(OFFLINE) if place}
    assert f"{found['NMF']:.2e}" == f"{found['SNMF']:.2e}" == f"{printed['NMF']:.2e}" == "7.11e-21"
    assert f"{found['GNMF']:.1e}" == f"{printed['GNMF']:.1e}" == "3.4e-15"
    assert f"{found['GNMF']:.2e}" == "3.38e-15"
    correct = naive.conover(rows_of(TABLE))
    assert f"{6 * correct[0, 1]:.2e}" == "1.24e-09"


# Twins.


@given(tables())
@settings(max_examples=100, deadline=None)
def test_friedman_is_its_twin(table: pd.DataFrame) -> None:
    assume(says_something(table))
    statistic, p_value = naive.friedman(rows_of(table))
    result = friedman(table)
    assert result.statistic == pytest.approx(float(statistic), rel=1e-12, abs=1e-12)
    assert result.p_value == pytest.approx(p_value, rel=1e-9)
    assert result.uncorrected == pytest.approx(float(naive.uncorrected_friedman(rows_of(table))), rel=1e-12, abs=1e-12)
    expected = [float(mean) for mean in naive.mean_ranks(rows_of(table))]
    assert result.mean_ranks.tolist() == pytest.approx(expected, rel=1e-15)
    assert mean_ranks(table).tolist() == result.mean_ranks.tolist()


@given(tables())
@settings(max_examples=100, deadline=None)
def test_conover_is_its_twin(table: pd.DataFrame) -> None:
    assume(says_something(table) and orders_vary(table))
    expected = list(naive.conover(rows_of(table)).values())
    np.testing.assert_allclose(upper(conover(table, None)), expected, rtol=1e-9)
    np.testing.assert_allclose(upper(conover(table, "bonferroni")), naive.bonferroni(expected), rtol=1e-9)
    np.testing.assert_allclose(upper(conover(table, "holm")), naive.holm(expected), rtol=1e-9)


@given(tables(max_columns=3))
@settings(max_examples=60, deadline=None)
def test_wilcoxon_is_its_twin(table: pd.DataFrame) -> None:
    columns = table.to_numpy().T.tolist()
    expected = [naive.wilcoxon(first, second) for first, second in itertools.combinations(columns, 2)]
    np.testing.assert_allclose(upper(wilcoxon(table, None)), expected, rtol=1e-12)
    np.testing.assert_allclose(upper(wilcoxon(table)), naive.holm(expected), rtol=1e-12)


@given(tables(), st.integers(1, 20))
@settings(max_examples=60, deadline=None)
def test_compare_is_its_twin(table: pd.DataFrame, twentieths: int) -> None:
    found = compare(table, "A", twentieths / 20)
    assert found.T.to_numpy().tolist() == naive.compare(rows_of(table), Fraction(twentieths, 20))
    assert (found.sum() == len(table)).all()


def test_a_share_that_is_exactly_the_cut_is_close() -> None:
    table = pd.DataFrame({"A": [25, 25], "B": [14, 13]})
    assert 0.56 * 25 > 14  # so that a product would call 14 of 25 worse
    assert compare(table, "A", 0.56)["B"].tolist() == [0, 0, 1, 1]


# Second opinions.


def test_scipy_on_friedman() -> None:
    rng = np.random.default_rng(3)
    for top in (3, 1000):
        table = pd.DataFrame(rng.integers(0, top, (12, 5)))
        other = stats.friedmanchisquare(*table.to_numpy().T)
        result = friedman(table)
        assert (result.statistic, result.p_value) == pytest.approx((other.statistic, other.pvalue), rel=1e-10)


def test_scipy_on_wilcoxon_without_ties() -> None:
    rng = np.random.default_rng(4)
    for n in (2, 5, 20, 45):
        table = pd.DataFrame(rng.random((n, 2)) - [0.3, 0.0])
        other = stats.wilcoxon(table[0], table[1], method="exact").pvalue
        assert wilcoxon(table, None).loc[0, 1] == pytest.approx(other, rel=1e-10)


@pytest.mark.parametrize("parts", [3, 7, 10, 47])
def test_shares_of_one_size_tie_as_their_counts_do(parts: int) -> None:
    """0.3 - 0.2 is not 0.1 - 0.0: without rounding, equal steps of P@N would have different ranks."""
    rng = np.random.default_rng(6)
    for _ in range(20):
        counts = pd.DataFrame(rng.integers(0, parts + 1, (12, 3)), columns=list("ABC"))
        pd.testing.assert_frame_equal(wilcoxon(counts / parts), wilcoxon(counts), rtol=1e-12)


@pytest.mark.parametrize("correction", [None, "bonferroni", "holm"])
def test_scikit_posthocs_on_conover(correction) -> None:
    posthocs = pytest.importorskip("scikit_posthocs")
    rng = np.random.default_rng(5)
    for table in (TABLE, pd.DataFrame(rng.integers(0, 4, (9, 5)), columns=list("ABCDE"))):
        other = posthocs.posthoc_conover_friedman(table, p_adjust=correction)
        found = conover(table, correction)
        np.testing.assert_allclose(found, other.loc[found.index, found.columns], rtol=1e-10)


# Properties.


@given(tables(), st.randoms(use_true_random=False))
@settings(max_examples=60, deadline=None)
def test_the_order_of_methods_and_of_data_sets_does_not_matter(table: pd.DataFrame, random) -> None:
    assume(says_something(table) and orders_vary(table))
    columns, index = list(table.columns), list(table.index)
    random.shuffle(columns)
    random.shuffle(index)
    other = table.loc[index, columns]
    assert friedman(other).statistic == pytest.approx(friedman(table).statistic, rel=1e-12, abs=1e-12)
    pd.testing.assert_series_equal(mean_ranks(other), mean_ranks(table)[columns])
    pd.testing.assert_frame_equal(compare(other, "A"), compare(table, "A")[compare(other, "A").columns])
    for test in (conover, wilcoxon):
        pd.testing.assert_frame_equal(test(other), test(table).loc[columns, columns], rtol=1e-9)


@given(tables())
@settings(max_examples=60, deadline=None)
def test_only_the_order_within_a_data_set_matters_to_ranks(table: pd.DataFrame) -> None:
    assume(says_something(table) and orders_vary(table))
    other = table.apply(lambda row: np.expm1(row / 100) * (1 + len(row.name)) - row.sum(), axis=1)
    pd.testing.assert_series_equal(mean_ranks(other), mean_ranks(table))
    assert friedman(other).p_value == friedman(table).p_value
    pd.testing.assert_frame_equal(conover(other), conover(table))


@given(tables())
@settings(max_examples=40, deadline=None)
def test_a_method_and_its_copy_do_not_differ(table: pd.DataFrame) -> None:
    assume(says_something(table) and orders_vary(table))
    twice = table.assign(copy=table["A"])
    assert mean_ranks(twice)["A"] == mean_ranks(twice)["copy"]
    for test in (conover, wilcoxon):
        p = test(twice)
        assert p.loc["A", "copy"] == 1
        np.testing.assert_array_equal(p, p.T)
        np.testing.assert_array_equal(np.diag(p), 1.0)
        assert ((p >= 0) & (p <= 1)).all(axis=None)


def test_nothing_but_ties() -> None:
    table = pd.DataFrame({"A": [1, 2, 3], "B": [1, 2, 3]})
    for test in (friedman, conover):
        with pytest.raises(ValueError, match="All methods tie on all 3 data sets"):
            test(table)
    assert upper(wilcoxon(table)).tolist() == [1.0]
    assert mean_ranks(table).tolist() == [1.5, 1.5]
    assert compare(table, "A").loc["Equal"].tolist() == [3, 3]


def test_always_the_same_order() -> None:
    table = pd.DataFrame({"A": [3, 9, 5], "B": [2, 8, 1], "C": [1, 7, 0]})
    assert friedman(table).statistic == 6
    with pytest.raises(ValueError, match=r"All 3 data sets rank the methods in the same way.*Use wilcoxon"):
        conover(table)
    assert wilcoxon(table, None).loc["A", "B"] == 0.25


# Refusals.


@pytest.mark.parametrize("function", ALL)
@pytest.mark.parametrize(
    ("table", "message"),
    [
        (pd.DataFrame({"A": [1, 2]}), r"at least 2 methods \(columns\); got 1"),
        (pd.DataFrame({"A": [1], "B": [2]}), r"at least 2 data sets \(rows\); got 1"),
        (pd.DataFrame([[1, 2], [3, 4]], columns=["A", "A"]), "Method 'A' is there more than once"),
        (pd.DataFrame({"A": [1, 2], "B": [2, 1]}, index=["Glass"] * 2), "Data set 'Glass' is there more than once"),
        (pd.DataFrame({"A": [1, 2], "B": ["x", "y"]}), "must be numbers; those of method 'B' are"),
        (pd.DataFrame({"A": [1, 2], "B": [True, False]}), "must be numbers; those of method 'B' are bool"),
        (
            pd.DataFrame({"A": [1, 2], "B": [np.nan, 1]}, index=["Glass", "WBC"]),
            "method 'B' on data set 'Glass' is NaN",
        ),
        (pd.DataFrame({"A": [1, 2], "B": pd.array([1, None], dtype="Int64")}), "method 'B' on data set 1 is NaN"),
        (
            pd.DataFrame({"A": [np.nan, 2], "B": [np.nan, 1]}),
            r"method 'A' on data set 0 \(and 1 more\) is NaN",
        ),
        (pd.DataFrame({"A": [1, np.inf], "B": [2.0, 1.0]}), "method 'A' on data set 1 is infinite"),
    ],
)
def test_tables_that_cannot_be_compared(function, table: pd.DataFrame, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        function(table)


@pytest.mark.parametrize("function", ALL[:-1])
def test_arrays_have_no_names(function) -> None:
    with pytest.raises(TypeError, match="must be a DataFrame, data sets by methods; got ndarray"):
        function(np.ones((3, 3)))


def test_wrong_arguments() -> None:
    for test in (conover, wilcoxon):
        with pytest.raises(ValueError, match="correction must be 'bonferroni', 'holm' or None; got 'tukey'"):
            test(TABLE, "tukey")
    with pytest.raises(ValueError, match="no method 'PCA' in the table; it has NS-NMF, NMF"):
        compare(TABLE, "PCA")
    for close in (0, 1.1, np.nan):
        with pytest.raises(ValueError, match="close must be a share"):
            compare(TABLE, "NMF", close)
    with pytest.raises(ValueError, match=r"method 'NMF' on data set 'Glass' \(and 16 more\) is negative"):
        compare(TABLE.assign(NMF=-TABLE["NMF"]), "NMF")


def test_results_are_frozen_and_tables_are_left_alone() -> None:
    table = paper.true_positives
    result = friedman(table)
    with pytest.raises(dataclasses.FrozenInstanceError):
        result.p_value = 0.0  # type: ignore[misc]
    conover(table), wilcoxon(table), compare(table, "GNMF")
    pd.testing.assert_frame_equal(table, paper.true_positives)
    assert compare(table, "GNMF").columns.tolist() == ["GNMF", "NS-NMF", "Online NS-NMF", "NMF", "SNMF"]


@given(st.integers(1, 2000), st.data())
def test_halves_of_shares_with_equal_sums_tie(n: int, data: st.DataObject) -> None:
    total = data.draw(st.integers(0, n))
    firsts = data.draw(st.lists(st.integers(0, total), min_size=4, max_size=4))
    halves = without_last_bits([(first / n + (total - first) / n) / 2 for first in firsts])
    assert len(set(halves)) == 1
    assert halves[0] == pytest.approx(total / (2 * n), rel=1e-11)
