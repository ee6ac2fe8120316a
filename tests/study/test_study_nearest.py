"""The configuration nearest to the paper, what choosing it after the fact is worth, and sweeps of parameters."""

from __future__ import annotations

import pandas as pd
import pytest
from study_rows import make_rows, paper_rows, study_rows, sweep_rows

from studies.ahmed2021 import paper
from studies.ahmed2021.nearest import nearest
from studies.ahmed2021.rows import COLUMNS
from studies.ahmed2021.sweeps import sweep_names, sweep_table

FIGURES = paper.true_positives["NS-NMF"]
SETS = list(FIGURES.index)


def configuration(name: str, matched: list[str], off: float = 50.0, by: float = 0.0) -> pd.DataFrame:
    """One that has the paper's figure (plus `by`) on some data sets and is far off on the others."""
    return make_rows(
        [name],
        SETS,
        part="nearest",
        paper="NS-NMF",
        detections=lambda m, d, s: FIGURES[d] + (by if d in matched else off),
    )


def test_the_papers_own_figures_are_met_on_all_sets() -> None:
    for column in ("NS-NMF", "LoMST", "DAGMM", "AER", "SNMF"):
        found = nearest(paper_rows(), column)
        assert (found.best, found.compared) == (column, 1)
        assert found.configurations.loc[column, ["sets", "run", "matched", "exact"]].tolist() == [20, 20, 20, 20]
        assert (found.held_out_matched, found.held_out_sets) == (20, 20)
        assert found.per_set["matches"].all()


def test_the_order_of_configurations() -> None:
    rows = pd.concat(
        [
            configuration("c, exact", SETS[:5]),
            configuration("b, near", SETS[:5], by=1),
            configuration("a, near", SETS[:5], by=1),
            configuration("d, nearer elsewhere", SETS[:5], off=30, by=1),
            configuration("e, most", SETS[:6], by=1),
        ]
    )
    found = nearest(rows, "NS-NMF")
    assert found.configurations.index.tolist() == ["e, most", "c, exact", "d, nearer elsewhere", "a, near", "b, near"]
    assert found.configurations["matched"].tolist() == [6, 5, 5, 5, 5]
    assert found.configurations["exact"].tolist() == [0, 5, 0, 0, 0]
    assert found.configurations.loc["c, exact", "mean_abs_difference"] == pytest.approx(50 * 15 / 20)
    assert (found.best, found.compared) == ("e, most", 5)


def test_choosing_by_the_other_sets_is_the_honest_number() -> None:
    """Each configuration matches one set of its own: chosen by the others, none ever matches."""
    rows = pd.concat([configuration(f"only {name}", [name]) for name in SETS])
    found = nearest(rows, "NS-NMF")
    assert found.configurations["matched"].max() == 1
    assert (found.per_set["matched_by"] == 1).all()
    assert found.held_out_matched == 0
    assert found.held_out_sets == 20
    for dataset, chosen in found.held_out["chosen"].items():
        assert chosen != f"only {dataset}"


def test_a_configuration_that_is_good_stays_chosen() -> None:
    rows = pd.concat([configuration("good", SETS[:15]), configuration("bad", SETS[15:17])])
    found = nearest(rows, "NS-NMF")
    assert set(found.held_out["chosen"]) == {"good"}
    assert found.held_out_matched == 15
    table = found.per_set
    assert table["matched_by"].tolist() == [1] * 17 + [0] * 3
    assert table["closest"].tolist() == ["good"] * 15 + ["bad"] * 5  # the last three tie: first by name
    assert table["matches"].tolist() == [True] * 15 + [False] * 5
    assert table["closest_median"][SETS[16]] == FIGURES[SETS[16]]


@pytest.mark.parametrize("ran", [False, True])
def test_nothing_ran(ran: bool) -> None:
    rows = make_rows(status="failed", why="x") if ran else pd.DataFrame(columns=list(COLUMNS))
    found = nearest(rows, "NS-NMF")
    assert (found.best, found.compared, found.held_out_matched, found.held_out_sets) == ("", 0, 0, 0)
    assert found.per_set["matches"].isna().all()
    assert (found.per_set["matched_by"] == 0).all()


TWO = ["x", "y"]


def test_means_and_ranks() -> None:
    rows = sweep_rows("K", [10, 2], TWO, ["NMF"], lambda base, k, d: k / 2 + (d == "y"))
    found = sweep_table(rows, "K")
    assert found.summary["value"].tolist() == [2, 10]
    assert found.summary["precision_at_n"].tolist() == pytest.approx([0.15, 0.55])
    assert found.summary["average_precision"].tolist() == pytest.approx([0.135, 0.495])
    assert found.summary["mean_rank"].tolist() == [2, 1]
    assert found.summary["cpu_seconds"].tolist() == [1, 1]
    assert found.summary["datasets"].tolist() == [2, 2]
    assert found.per_set[["value", "dataset", "rank", "runs"]].to_numpy().tolist() == [
        [2, "x", 2.0, 2], [2, "y", 2.0, 2], [10, "x", 1.0, 2], [10, "y", 1.0, 2]]  # fmt: skip
    assert found.left_out.empty


def test_bases_are_apart_and_sweeps_too() -> None:
    rows = study_rows()
    assert sweep_names(rows) == ["K", "alpha"]
    assert sweep_table(rows, "K").summary.groupby("base").size().to_dict() == {"NS-NMF": 6, "NMF": 6}
    assert set(sweep_table(rows, "alpha").summary["base"]) == {"NS-NMF"}


def test_values_are_compared_on_the_same_sets() -> None:
    rows = sweep_rows("K", [2, 5], TWO, ["NMF"], lambda base, k, d: 9.0 if d == "y" else 1.0)
    gone = (rows["value"] == 5) & (rows["dataset"] == "y")
    rows.loc[gone, ["status", "why"]] = ["timed out", "1 h"]
    found = sweep_table(rows, "K")
    assert found.summary["datasets"].tolist() == [1, 1]
    assert found.summary["precision_at_n"].tolist() == [0.1, 0.1]
    assert len(found.per_set) == 4
    assert found.left_out.to_dict("records") == [{"base": "NMF", "value": 5, "dataset": "y", "why": "timed out: 1 h"}]
