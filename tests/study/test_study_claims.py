"""Every claim of the paper, checked on its own tables and on runs that are known."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pandas as pd
import pytest
from study_rows import central_claim_rows, make_rows, paper_rows, sweep_rows

from penstock.bench.results import Results
from studies.ahmed2021 import paper
from studies.ahmed2021.claim_table import check_claims
from studies.ahmed2021.claims import check_number, paper_source, run_source
from studies.ahmed2021.plant import PAPER, list_tables
from studies.ahmed2021.rows import COLUMNS

NOTHING = pd.DataFrame(columns=list(COLUMNS))
FOUR_SETS = ["Glass", "Pima", "WBC", "WDBC"]


@pytest.fixture(scope="module")
def golden() -> pd.DataFrame:
    return check_claims(Results(paper_rows()))


def line(claims: pd.DataFrame, claim: str, method: str | None = None) -> pd.Series:
    found = claims[(claims["claim"] == claim) & (claims["method"] == (method or claims["method"]))]
    assert len(found) == 1
    return found.iloc[0]


def test_every_number_of_the_paper_is_there_and_all_but_three_follow(golden: pd.DataFrame) -> None:
    numbers = golden[: len(paper.claims)]
    assert numbers["claim"].tolist() == paper.claims["claim"].tolist()
    plant = numbers["claim"].str.startswith("common to")
    conover = numbers["claim"].str.startswith("Conover")
    assert (numbers["holds_in_paper"][plant] == "cannot be checked").all()
    assert numbers["from_paper_table"][conover].tolist() == ["1.24e-09", "2.84e-06", "1.24e-09"]
    assert (numbers["holds_in_paper"][conover] == "no").all()
    assert (numbers["holds_in_paper"][~plant & ~conover] == "yes").all()
    assert (numbers["from_paper_table"] == numbers["stated"])[~plant & ~conover].all()


def test_a_run_with_the_papers_figures_says_what_the_paper_says(golden: pd.DataFrame) -> None:
    checked = golden[golden["holds_in_paper"] != "cannot be checked"]
    assert len(checked) == 55
    assert checked["from_our_run"].tolist() == checked["from_paper_table"].tolist()
    conover = checked["claim"].str.startswith("Conover")  # other digits, but the same side of the level
    assert set(checked["holds_in_run"][conover]) == {"yes"}
    assert checked["holds_in_run"][~conover].tolist() == checked["holds_in_paper"][~conover].tolist()
    rest = golden[golden["holds_in_paper"] == "cannot be checked"]
    assert set(rest["holds_in_run"]) == {"not run"}
    assert set(rest["from_our_run"]) == {"not run"}


def test_a_run_that_differs() -> None:
    rows = paper_rows()
    ours = rows["method"] == "NS-NMF"
    rows.loc[ours, ["true_detections", "precision_at_n"]] = 0.0
    found = check_claims(Results(rows))
    assert line(found, "Better", "NS-NMF")[["from_our_run", "holds_in_run"]].tolist() == ["0", "no"]
    assert line(found, "outperforms LoMST")["from_our_run"] == "0 won, 20 lost, 0 tied"
    for claim in ("best mean rank of the four offline methods", "significantly better than each of the other three"):
        assert line(found, claim)["holds_in_run"] == "no"
    assert line(found, "better than NMF and SNMF")["holds_in_run"] == "yes"
    assert line(found, "data sets worse than NMF", "SNMF")["holds_in_run"] == "yes"
    assert line(found, "outperforms AER and DAGMM")["holds_in_run"] == "no"


@pytest.mark.parametrize(
    ("claim", "method", "value", "near", "far"),
    [
        ("data sets better than LoMST", "NS-NMF", 14, (12, 16), (11, 17)),
        ("mean rank", "NMF", 3.1, (2.85, 3.35), (2.84, 3.36)),
        ("Friedman p-value of the four offline methods", "all", 1.23e-7, (0.0, 0.0099), (0.01, 0.5)),
        ("times faster than SNMF on ALOI", "NS-NMF", 4, (2, 8), (1.9, 8.1)),
    ],
)
def test_each_number_has_its_tolerance(
    claim: str, method: str, value: float, near: tuple[float, ...], far: tuple[float, ...]
) -> None:
    source = run_source(paper_rows())  # whose own number is the paper's
    for stated in (value, *near):
        assert check_number(source, claim, method, stated).holds == "yes", stated
    for stated in far:
        assert check_number(source, claim, method, stated).holds == "no", stated
        assert check_number(paper_source(), claim, method, stated).holds == "no"


@pytest.mark.parametrize(
    "rows", [lambda: NOTHING, lambda: make_rows(status="failed", why="x"), lambda: make_rows(["odd"])]
)
def test_nothing_to_check(rows: Callable[[], pd.DataFrame]) -> None:
    found = check_claims(Results(rows()))
    assert set(found["holds_in_run"]) == {"not run"}
    assert set(found["from_our_run"]) == {"not run"}


def test_missing_sets_can_rule_a_count_out_but_not_in() -> None:
    rows = paper_rows()
    gone = (rows["method"] == "LoMST") & rows["dataset"].isin(["Glass", "WBC"])  # two that NS-NMF wins
    source = run_source(rows[~gone])
    found = {n: check_number(source, "data sets better than LoMST", "NS-NMF", n) for n in (9, 10, 14, 16, 17)}
    assert [finding.holds for finding in found.values()] == ["no", "undecided", "undecided", "undecided", "no"]
    assert found[14].text == "12 of 18 data sets; 2 without a result"
    claims = check_claims(Results(rows[~gone]))
    assert line(claims, "outperforms LoMST")["holds_in_run"] == "yes"  # 12 to 5: two more losses leave a lead
    first = (rows["method"] == "LoMST") & rows["dataset"].isin(paper.lomst_true_positives.index[:11])
    claims = check_claims(Results(rows[~first]))  # 8 to 1, which eleven more could turn
    assert line(claims, "outperforms LoMST")["holds_in_run"] == "undecided"


def test_an_unknown_claim_is_an_error() -> None:
    with pytest.raises(ValueError, match="no rule to check the claim 'is the best'"):
        check_number(paper_source(), "is the best", "NMF", 1)
    with pytest.raises(ValueError, match="No table of the paper has all of NMF, PCA"):
        paper_source().table_with(["NMF", "PCA"])


# Claims without a table.


@pytest.mark.parametrize(
    ("best", "holds", "order"), [((5, 10, 15), "yes", "yes"), ((2, 20, 25), "no", "yes"), ((10,), "yes", "yes")]
)
def test_the_range_of_k(best: tuple[int, ...], holds: str, order: str) -> None:
    def count(base: str, value: int, dataset: str) -> float:
        return 4.0 + 2 * (value in best) + (base == "NS-NMF")

    found = check_claims(Results(sweep_rows("K", [2, 5, 10, 15, 20, 25], FOUR_SETS, detections=count)))
    assert line(found, "K from 5 to 15 is best")["holds_in_run"] == holds
    assert f"best at K = {best[0]}" in line(found, "K from 5 to 15 is best")["from_our_run"]
    assert line(found, "K does not change the order of the methods")["holds_in_run"] == order


@pytest.mark.parametrize(("step", "alpha", "gnmf"), [(0.0, "yes", "yes"), (3.0, "no", "no")])
def test_alpha_and_the_parameters_of_gnmf(step: float, alpha: str, gnmf: str) -> None:
    rows = pd.concat(
        [
            sweep_rows("alpha", [0.2, 0.8], FOUR_SETS, ["NS-NMF"], lambda b, v, d: 4.0 + step * (v > 0.5)),
            sweep_rows("GNMF penalty", [1, 100], FOUR_SETS, ["GNMF"], lambda b, v, d: 4.0 + (v > 50)),
            sweep_rows("GNMF neighbours", [2, 5], FOUR_SETS, ["GNMF"], lambda b, v, d: 4.0 + (v > 3)),
            # No parameter of GNMF, and steady: it must not be taken for one.
            sweep_rows("rows", [1000, 3000], FOUR_SETS, ["GNMF", "NS-NMF"], lambda b, v, d: 4.0),
        ],
        ignore_index=True,
    )
    found = check_claims(Results(rows))
    assert line(found, "hardly depends on alpha")["holds_in_run"] == alpha
    for name in ("penalty", "neighbours"):
        sensitive = line(found, f"sensitive to its {name}, NS-NMF less so to alpha")
        assert sensitive["holds_in_run"] == gnmf
        assert sensitive["from_our_run"].startswith(f"of the mean: GNMF {name} 22%; NS-NMF, alpha")
    one = check_claims(Results(rows[rows["sweep"] != "GNMF neighbours"]))
    assert line(one, "sensitive to its neighbours, NS-NMF less so to alpha")["holds_in_run"] == "not run"
    assert line(one, "sensitive to its penalty, NS-NMF less so to alpha")["holds_in_run"] == gnmf


@pytest.mark.parametrize(("share", "holds"), [(0.9, "yes"), (0.2, "no")])
def test_the_time_of_the_tree(share: float, holds: str) -> None:
    rows = make_rows(["NS-NMF"], ["ALOI"], fit_seconds=10.0, detail={"tree_seconds": 10 * share})
    found = line(check_claims(Results(rows)), "the tree takes most of the time on ALOI")
    assert found[["from_our_run", "holds_in_run"]].tolist() == [f"{share:.0%} of the time", holds]


def spoil(rows: pd.DataFrame, where: pd.Series, status: str = "not run") -> pd.DataFrame:
    rows = rows.copy()
    rows.loc[where, "status"] = status
    rows.loc[where, ["precision_at_n", "true_detections", "average_precision", "roc_auc"]] = float("nan")
    return rows


def test_sweeps_with_missing_cells_decide_nothing() -> None:
    rows = pd.concat(
        [
            sweep_rows("K", [2, 5, 10], FOUR_SETS, detections=lambda b, v, d: 4.0 + (v > 3) + (b == "NMF")),
            sweep_rows("alpha", [0.2, 0.8], FOUR_SETS, ["NS-NMF"], lambda b, v, d: 4.0),
            sweep_rows("GNMF penalty", [1, 100], FOUR_SETS, ["GNMF"], lambda b, v, d: 4.0 + (v > 50)),
            sweep_rows("GNMF neighbours", [2, 5], FOUR_SETS, ["GNMF"], lambda b, v, d: 4.0 + (v > 3)),
        ],
        ignore_index=True,
    )
    names = ["K from 5 to 15 is best", "K does not change the order of the methods", "hardly depends on alpha",
             "sensitive to its penalty, NS-NMF less so to alpha"]  # fmt: skip
    whole = check_claims(Results(rows))
    assert [line(whole, name)["holds_in_run"] for name in names] == ["yes"] * 4
    last = (rows["dataset"] == "WDBC") & rows["value"].isin([10, 0.8, 100])
    some = check_claims(Results(spoil(rows, last)))
    assert [line(some, name)["holds_in_run"] for name in names] == ["undecided"] * 4
    assert line(some, names[0])["from_our_run"].endswith("; 2 cells without a result")
    flat = sweep_rows("GNMF penalty", [1, 100], FOUR_SETS, ["GNMF"], lambda b, v, d: 4.0)
    other = pd.concat([rows[rows["sweep"] != "GNMF penalty"], flat], ignore_index=True)
    found = check_claims(Results(other))
    assert line(found, names[3])["holds_in_run"] == "no"
    assert line(found, "sensitive to its neighbours, NS-NMF less so to alpha")["holds_in_run"] == "yes"


def test_methods_are_ordered_on_the_data_sets_of_all() -> None:
    """NMF has the easy data set alone: counted for it, it would lead at every K."""

    def count(base: str, value: int, dataset: str) -> float:
        return 10.0 if dataset == "WDBC" else 4.0 + (base == "NS-NMF") * (1 if value > 3 else -1)

    rows = sweep_rows("K", [2, 5], FOUR_SETS, detections=count)
    rows = rows[~((rows["base"] == "NS-NMF") & (rows["dataset"] == "WDBC"))]
    found = line(check_claims(Results(rows)), "K does not change the order of the methods")
    assert found[["from_our_run", "holds_in_run"]].tolist() == ["K = 2: NMF > NS-NMF; K = 5: NS-NMF > NMF", "no"]


def test_the_central_claim() -> None:
    rows = central_claim_rows(FOUR_SETS, detections=lambda m, d, s: 7.0 if m.endswith(" tree") else 3.0)
    found = line(check_claims(Results(rows)), "the graph makes the difference to GNMF, not the form")
    assert found["holds_in_run"] == "yes"
    assert found["from_our_run"].startswith("The graph makes a clear difference")
    for gone in (
        (rows["dataset"] == "WDBC") & (rows["method"] == "symmetric, tree"),
        rows["method"] == "laplacian, tree",
    ):
        found = line(check_claims(Results(spoil(rows, gone))), "the graph makes the difference to GNMF, not the form")
        assert found["holds_in_run"] == "undecided"
        assert "without a result" in found["from_our_run"]


def test_the_plant_is_not_compared(simulated: Any) -> None:
    plant = simulated()
    stamps = pd.DatetimeIndex(plant.table.index)
    lists = list_tables(plant, {"NS-NMF": stamps[:100], "online": stamps[54:154], "NMF": stamps[73:173]})
    found = check_claims(Results(NOTHING), SimpleNamespace(searches={PAPER: lists}))
    common = found[found["claim"].str.startswith("common to")]
    assert common["from_our_run"].tolist() == ["27 (simulated plant)", "46 (simulated plant)"]
    assert set(common["holds_in_run"]) == {"not comparable"}
    missed = line(found, "9 January is missed")
    assert missed["from_our_run"] == "time stamps on these days: NS-NMF 0, online 0, NMF 0 (simulated plant)"
