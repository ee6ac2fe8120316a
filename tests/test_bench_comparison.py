"""All tests of a study in one record: second opinions, what is left out, groups that do not differ."""

from __future__ import annotations

import itertools

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats
from study_rows import make_rows, paper_rows

from penstock.bench import paper
from penstock.bench.comparison import alike, compare_rows, compare_table
from penstock.bench.nemenyi import critical_difference, nemenyi
from penstock.bench.tables import OFFLINE

TABLE = paper.true_positives[OFFLINE]


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
    assert found.groups == found.nemenyi_groups == [("GNMF", "NMF", "SNMF")]
    assert found.groups_by == "Conover"
    assert found.left_out.empty
    assert found.notes == []
    other = stats.friedmanchisquare(*found.table.to_numpy().T)
    assert found.friedman.statistic == pytest.approx(other.statistic, rel=1e-10)


def test_scikit_posthocs_on_nemenyi() -> None:
    posthocs = pytest.importorskip("scikit_posthocs")
    rng = np.random.default_rng(5)
    for table in (TABLE, pd.DataFrame(rng.integers(0, 4, (9, 5)), columns=list("ABCDE"))):
        other = posthocs.posthoc_nemenyi_friedman(table)
        found = nemenyi(table)
        np.testing.assert_allclose(found, other.loc[found.index, found.columns], rtol=1e-10)


def test_scikit_posthocs_and_scipy_on_a_study() -> None:
    posthocs = pytest.importorskip("scikit_posthocs")
    rng = np.random.default_rng(8)
    table = pd.DataFrame(rng.random((11, 5)), columns=list("ABCDE"))
    found = compare_table(table)
    assert found.conover is not None
    assert found.wilcoxon is not None
    other = posthocs.posthoc_conover_friedman(table, p_adjust="bonferroni")
    np.testing.assert_allclose(found.conover, other.loc[list("ABCDE"), list("ABCDE")], rtol=1e-10)
    pairs = list(itertools.combinations("ABCDE", 2))
    raw = [stats.wilcoxon(table[a], table[b], method="exact").pvalue for a, b in pairs]
    multi = pytest.importorskip("statsmodels.stats.multitest")
    expected = multi.multipletests(raw, method="holm")[1]
    np.testing.assert_allclose([found.wilcoxon.loc[a, b] for a, b in pairs], expected, rtol=1e-10)


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
    chosen = compare_rows(rows, ["A", "B", "nobody"])
    assert chosen.table.shape == (5, 2)
    assert chosen.methods_missing == ["nobody"]


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
@settings(max_examples=60, deadline=None)
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
