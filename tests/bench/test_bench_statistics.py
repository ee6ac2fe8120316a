"""Statistics of a study: ranks, tests, groups and measures, compared with slow twins, SciPy and scikit-posthocs."""

from __future__ import annotations

import itertools

import numpy as np
import pandas as pd
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from naive import detection as naive_detect
from naive import significance as naive
from scipy import stats
from strategies import examples
from study_rows import make_rows, paper_rows

from penstock.bench import (
    average_precision,
    compare_rows,
    compare_table,
    conover,
    find_lead,
    friedman,
    mean_ranks,
    nemenyi,
    precision_at_n,
    roc_auc,
    true_detections,
    wilcoxon,
)
from penstock.bench.report import answer
from penstock.bench.results import frame_of
from penstock.bench.significance import alike, critical_difference, resample_means
from studies.ahmed2021 import paper

OFFLINE = ["NS-NMF", "NMF", "GNMF", "SNMF"]
TABLE = paper.true_positives[OFFLINE]
ALL = [mean_ranks, friedman, conover, wilcoxon]


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
@examples(100)
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
@examples(100)
def test_conover_is_its_twin(table: pd.DataFrame) -> None:
    assume(says_something(table) and orders_vary(table))
    expected = list(naive.conover(rows_of(table)).values())
    np.testing.assert_allclose(upper(conover(table, None)), expected, rtol=1e-9)
    np.testing.assert_allclose(upper(conover(table, "bonferroni")), naive.bonferroni(expected), rtol=1e-9)
    np.testing.assert_allclose(upper(conover(table, "holm")), naive.holm(expected), rtol=1e-9)


@given(tables(max_columns=3))
@examples(60)
def test_wilcoxon_is_its_twin(table: pd.DataFrame) -> None:
    columns = table.to_numpy().T.tolist()
    expected = [naive.wilcoxon(first, second) for first, second in itertools.combinations(columns, 2)]
    np.testing.assert_allclose(upper(wilcoxon(table, None)), expected, rtol=1e-12)
    np.testing.assert_allclose(upper(wilcoxon(table)), naive.holm(expected), rtol=1e-12)


# Second opinions.


def test_scipy_on_wilcoxon_without_ties() -> None:
    rng = np.random.default_rng(4)
    for n in (2, 5, 20, 45):
        table = pd.DataFrame(rng.random((n, 2)) - [0.3, 0.0])
        other = stats.wilcoxon(table[0], table[1], method="exact").pvalue
        assert wilcoxon(table, None).loc[0, 1] == pytest.approx(other, rel=1e-10)


def test_scikit_posthocs_on_conover_and_nemenyi() -> None:
    posthocs = pytest.importorskip("scikit_posthocs", reason="needs scikit-posthocs: run by `make test-all`")
    rng = np.random.default_rng(5)
    for table in (TABLE, pd.DataFrame(rng.integers(0, 4, (9, 5)), columns=list("ABCDE"))):
        pairs = [(nemenyi(table), posthocs.posthoc_nemenyi_friedman(table))]
        for correction in (None, "bonferroni", "holm"):
            other = posthocs.posthoc_conover_friedman(table, p_adjust=correction)
            pairs.append((conover(table, correction), other))
        for found, other in pairs:
            np.testing.assert_allclose(found, other.loc[found.index, found.columns], rtol=1e-10)


# Properties.


@given(tables(), st.randoms(use_true_random=False))
@examples(60)
def test_the_order_of_methods_and_of_data_sets_does_not_matter(table: pd.DataFrame, random) -> None:
    assume(says_something(table) and orders_vary(table))
    columns, index = list(table.columns), list(table.index)
    random.shuffle(columns)
    random.shuffle(index)
    other = table.loc[index, columns]
    assert friedman(other).statistic == pytest.approx(friedman(table).statistic, rel=1e-12, abs=1e-12)
    pd.testing.assert_series_equal(mean_ranks(other), mean_ranks(table)[columns])
    for test in (conover, wilcoxon):
        pd.testing.assert_frame_equal(test(other), test(table).loc[columns, columns], rtol=1e-9)


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
            "method 'B' on data set 'Glass' is nan",
        ),
        (pd.DataFrame({"A": [1, 2], "B": pd.array([1, None], dtype="Int64")}), "method 'B' on data set 1 is nan"),
        (pd.DataFrame({"A": [np.nan, 2], "B": [np.nan, 1]}), r"method 'A' on data set 0 \(and 1 more\) is nan"),
        (pd.DataFrame({"A": [1, np.inf], "B": [2.0, 1.0]}), "method 'A' on data set 1 is inf"),
    ],
)
def test_tables_that_cannot_be_compared(function, table: pd.DataFrame, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        function(table)


def test_wrong_arguments() -> None:
    for test in (conover, wilcoxon):
        with pytest.raises(ValueError, match="correction must be 'bonferroni', 'holm' or None; got 'tukey'"):
            test(TABLE, "tukey")


# All tests in one record.


def test_the_papers_tests() -> None:
    found = compare_rows(paper_rows(), OFFLINE)
    assert found.friedman is not None
    assert f"{found.friedman.p_value:.2e}" == "1.23e-07"
    assert found.mean_ranks.to_dict() == {"NS-NMF": 1.2, "GNMF": 2.6, "NMF": 3.1, "SNMF": 3.1}
    assert found.conover is not None
    assert [f"{found.conover.loc['NS-NMF', other]:.2e}" for other in OFFLINE[1:]] == [
        "1.24e-09",
        "2.84e-06",
        "1.24e-09",
    ]
    assert found.groups == [("GNMF", "NMF", "SNMF")]
    assert found.groups_by == "Conover"
    assert found.left_out.empty
    assert found.notes == []
    other = stats.friedmanchisquare(*found.table.to_numpy().T)
    assert found.friedman.statistic == pytest.approx(other.statistic, rel=1e-10)


def test_the_papers_post_hoc_diagram() -> None:
    pytest.importorskip("matplotlib").use("Agg")
    from matplotlib import pyplot

    from penstock.report.figures import plot_ranks

    axes = plot_ranks(compare_table(TABLE, alpha=0.01))
    shown = {tuple(text.get_text().split()) for text in axes.texts}
    assert shown == {("NS-NMF", "1.20"), ("GNMF", "2.60"), ("NMF", "3.10"), ("SNMF", "3.10")}
    (bar,) = [line for line in axes.lines if line.get_linewidth() > 3]
    np.testing.assert_allclose(bar.get_xdata(), [2.6, 3.1])  # all but NS-NMF
    dots = sorted(float(line.get_xdata()[0]) for line in axes.lines if line.get_marker() == "o")
    np.testing.assert_allclose(dots, [1.2, 2.6, 3.1, 3.1])
    pyplot.close("all")
    with pytest.raises(ValueError, match="nothing can be tested"):
        plot_ranks(compare_table(TABLE[:1]))


def test_the_critical_difference_is_that_of_the_tables() -> None:
    """Demšar (2006), table 5: q at 0.05 for 2, 4 and 10 methods."""
    for k, q in ((2, 1.960), (4, 2.569), (10, 3.164)):
        assert critical_difference(k, 30) == pytest.approx(q * np.sqrt(k * (k + 1) / (6 * 30)), rel=5e-4)
    gap = critical_difference(4, 20)
    ranks = compare_table(TABLE).mean_ranks
    for first, second in itertools.combinations(OFFLINE, 2):
        assert (nemenyi(TABLE).loc[first, second] < 0.05) == (abs(ranks[first] - ranks[second]) > gap)


def test_what_is_left_out_is_said() -> None:
    rows = pd.concat(
        [
            make_rows(["A", "B", "C"], list("vwxyz")),
            make_rows(["D"], ["v"], status="timed out", why="1 h"),
            make_rows(["E"], list("vwxy")),
            make_rows(["E"], ["z"], status="failed", why="singular"),
        ]
    )
    found = compare_rows(rows)
    assert found.methods_missing == ["D"]
    assert found.table.index.tolist() == list("vwxy")
    assert found.left_out.to_dict("records") == [{"dataset": "z", "method": "E", "why": "failed: singular"}]
    chosen = compare_rows(rows, ["A", "B", "no such"])
    assert chosen.table.shape == (5, 2)
    assert chosen.methods_missing == ["no such"]


@pytest.mark.parametrize("table", [pd.DataFrame(), TABLE[["NMF"]], TABLE[:1], TABLE * np.nan])
def test_too_little_to_test(table: pd.DataFrame) -> None:
    found = compare_table(table)
    assert found.friedman is None
    assert found.groups == []
    assert len(found.mean_ranks) == 0
    assert np.isnan(found.critical_difference)
    assert "nothing can be tested" in found.notes[0]


def test_all_alike_and_always_the_same_order() -> None:
    tied = compare_table(pd.DataFrame({"A": [1, 2, 3], "B": [1, 2, 3]}))
    assert tied.friedman is None
    assert tied.groups == [("A", "B")]
    assert "All methods tie" in tied.notes[0]
    ordered = compare_table(pd.DataFrame({"A": range(1, 31), "B": range(30)}))
    assert ordered.friedman is not None
    assert ordered.conover is None
    assert ordered.groups == []
    assert tied.groups_by == ordered.groups_by == "Nemenyi"
    assert "Use wilcoxon" in ordered.notes[0]


@given(st.integers(2, 7), st.randoms(use_true_random=False))
@examples(60)
def test_groups_are_the_cliques_of_neighbours(k: int, random) -> None:
    names = list("ABCDEFG"[:k])
    square = pd.DataFrame(1.0, index=names, columns=names)
    for first, second in itertools.combinations(names, 2):
        square.loc[first, second] = square.loc[second, first] = random.choice([0.01, 0.5])
    ranks = pd.Series(range(k), index=names, dtype="float64")
    runs = [names[i:j] for i in range(k) for j in range(i + 2, k + 1)]
    alike_runs = [run for run in runs if (square.loc[run, run] > 0.05).all(axis=None)]
    largest = [tuple(run) for run in alike_runs if not any(set(run) < set(other) for other in alike_runs)]
    assert alike(ranks, square, 0.05) == largest


# Which method is best, and how sure that is.


def rows_with(values: dict[str, list[float]], **more: object) -> pd.DataFrame:
    """Average precisions of methods, one a data set."""
    cells, outcomes = [], {}
    for method, several in values.items():
        for number, value in enumerate(several):
            key = f"{method}{number}"
            named = {"method": method, "dataset": f"set {number}", "seed": None, "key": key}
            cells.append(named | {"n": 90, "p": 2, "n_anomalies": 9})
            measures = dict.fromkeys(("precision_at_n", "roc_auc", "average_precision"), value)
            outcomes[key] = {**measures, "true_detections": 1.0, "status": "ok", **more}
    return frame_of(cells, outcomes)


def test_the_lead_over_data_sets() -> None:
    rng = np.random.default_rng(0)
    base = rng.uniform(0.2, 0.6, 30)
    values = {"worse": base - 0.1, "alike": base + rng.normal(0, 0.1, 30), "best": base + 0.05}
    lead = find_lead(rows_with({name: several.tolist() for name, several in values.items()}))
    assert lead is not None
    assert (lead.drawn, lead.n, lead.table.index[0]) == ("data sets", 30, "best")
    assert "worse" in lead.told_apart
    assert lead.table.loc["worse", ["behind", "behind_low", "behind_high"]].tolist() == pytest.approx([0.15] * 3)
    means = resample_means(pd.DataFrame(values))
    assert lead.table.loc["alike", "low"] == pytest.approx(means["alike"].quantile(0.025))
    assert lead.table["first"].sum() == pytest.approx(1.0)


def test_the_lead_of_one_data_set_is_by_its_draws() -> None:
    draws = np.linspace(0.3, 0.5, 101)
    rows = pd.concat(
        [
            rows_with({"a": [0.4]}, detail={"resampled": draws.tolist()}),
            rows_with({"b": [0.2]}, detail={"resampled": (draws - 0.2).tolist()}),
        ]
    )
    lead = find_lead(rows)
    assert lead is not None
    assert (lead.drawn, lead.n, lead.told_apart) == ("anomalies", 9, ["b"])
    assert lead.table.loc["a", ["low", "high"]].tolist() == pytest.approx([0.305, 0.495])
    assert lead.table.loc["b", ["behind", "behind_low", "behind_high", "first"]].tolist() == pytest.approx(
        [0.2] * 3 + [0]
    )
    without = find_lead(rows_with({"a": [0.4], "b": [0.2]}, detail={"resampled": []}))
    assert without is not None
    assert without.table["low"].isna().all()
    assert without.told_apart == []


def one_series(values: dict[str, tuple[float, float, float]], faults: int) -> pd.DataFrame:
    """Of each method its average precision, how far its draws are from that, and the faults in its first N events."""
    several = []
    for method, (value, spread, in_n) in values.items():
        drawn = [] if faults == 1 else np.linspace(value - spread, value + spread, 101).tolist()
        detail = {"resampled": drawn}
        found = {
            "vus_pr": value,
            "faults": faults,
            "in_n": in_n,
            "in_2n": in_n,
            "false_per_day": 0.0,
            "delay_hours": 1.0,
        }
        several.append(rows_with({method: [value]}, detail=detail, **found))
    return pd.concat(several)


@pytest.mark.parametrize(
    ("values", "faults", "words"),
    [
        (
            {"a": (0.9, 0.05, 2), "b": (0.5, 0.05, 1)},
            20,
            "a is best: all others are below it, with a certainty of 95 %.",
        ),
        ({"a": (0.9, 0.05, 2), "b": (0.5, 0.05, 1)}, 3, "a is best here, as far as 3 faults can tell: all others"),
        ({"a": (0.9, 0.0, 2), "b": (0.8, 0.3, 1)}, 3, "a is best here, but not for sure: b may be as good."),
        ({"a": (0.9, 0.0, 1), "b": (0.8, 0.3, 1)}, 1, "a is best here. How sure that is cannot be said from 1 fault."),
        ({"a": (0.9, 0.0, 1), "b": (0.9, 0.0, 1), "c": (0.8, 0.0, 1)}, 1, "a, b are equally good and best here. How"),
        ({"a": (0.9, 0.05, 2)}, 3, "a is the only method with a result: there is nothing to compare it with."),
    ],
)
def test_the_first_sentence_says_who_and_how_sure(values: dict, faults: int, words: str) -> None:
    said = answer(one_series(values, faults))
    assert said[0].startswith(words)
    assert said[1].startswith(f"Of {faults} fault")  # then what it finds, and figures last
    assert said[-1].startswith("a has the highest average precision, 0.900 (")
    assert ("95 % interval" in said[-1]) == (faults > 1)


def test_a_method_that_finds_more_faults_than_the_best_is_named() -> None:
    said = answer(one_series({"a": (0.9, 0.0, 2), "b": (0.8, 0.3, 3)}, 3))
    assert "Of 3 faults it finds 2 in its first 3 events" in said[1]
    assert "b finds more in its first 3 events: 3." in said[1]
    assert "finds more" not in answer(one_series({"a": (0.9, 0.0, 3), "b": (0.8, 0.3, 3)}, 3))[1]


# Metrics.

labelled = st.lists(st.tuples(st.integers(0, 1), st.integers(0, 3)), min_size=2, max_size=6).filter(
    lambda rows: 0 < sum(y for y, _ in rows) < len(rows)
)


@given(labelled, st.data())
@examples(60)
def test_expected_over_all_orders(rows: list[tuple[int, int]], data: st.DataObject) -> None:
    y, scores = zip(*rows, strict=True)
    n = data.draw(st.none() | st.integers(1, len(y)))
    assert precision_at_n(y, scores, n) == pytest.approx(naive_detect.precision_at_n(y, scores, n), abs=1e-12)


@pytest.mark.parametrize("measure", [precision_at_n, true_detections, roc_auc, average_precision])
def test_what_cannot_be_measured(measure) -> None:
    with pytest.raises(ValueError, match="0 of 3 rows are labelled anomalies"):
        measure([0, 0, 0], [1.0, 2.0, 3.0])
    with pytest.raises(ValueError, match="3 of 3 rows are labelled anomalies"):
        measure([1, 1, 1], [1.0, 2.0, 3.0])
    with pytest.raises(ValueError, match=r"0 \(normal\) or 1 \(anomaly\); got \[-1, 1\]"):
        measure([1, -1, 1], [1.0, 2.0, 3.0])
    with pytest.raises(ValueError, match=r"one length; got \(2,\) and \(3,\)"):
        measure([1, 0], [1.0, 2.0, 3.0])
    with pytest.raises(ValueError, match="row 1 is NaN"):
        measure([1, 0, 1], [1.0, np.nan, 3.0])
