"""The tables of the study, and the paper's own numbers next to them."""

from __future__ import annotations

import re
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from naive import significance as naive
from strategies import examples
from study_rows import make_rows, paper_rows, study_rows

from penstock.bench.results import failure_counts, failures, marks, method_summary, missing_cells, pivot
from penstock.bench.significance import mean_ranks
from studies.ahmed2021 import paper
from studies.ahmed2021.datasets import names
from studies.ahmed2021.rows import COLUMNS, main_rows, rows_of_column
from studies.ahmed2021.tables import OFFLINE, PAPER_TABLES, aloi_times, compare, detections, match_counts, performance

NOTHING = pd.DataFrame(columns=list(COLUMNS))
TABLE = paper.true_positives[OFFLINE]


def spoilt(rows: pd.DataFrame) -> pd.DataFrame:
    """All measures of one data set are NaN although it ran."""
    rows = rows.copy()
    measures = ["precision_at_n", "true_detections", "roc_auc", "average_precision"]
    rows.loc[rows["dataset"] == "Pima", measures] = np.nan
    return rows


@pytest.fixture(scope="module")
def golden() -> pd.DataFrame:
    return paper_rows()


# The paper's figures in, the paper's figures out.


@pytest.mark.parametrize("name", PAPER_TABLES)
def test_the_papers_figures_match_themselves(golden: pd.DataFrame, name: str) -> None:
    found = detections(golden, name)
    expected = getattr(paper, PAPER_TABLES[name])
    wide = found.pivot(index="dataset", columns="method", values="median").loc[expected.index, expected.columns]
    np.testing.assert_array_equal(wide, expected)
    assert found["matches"].all()
    assert found["runs"].isin((1, 3)).all()
    assert (found["best"] >= found["median"]).all()
    assert (found["why"] == "").all()
    counts = match_counts(found)
    assert counts.index.tolist() == expected.columns.tolist()
    assert (counts[["sets", "run", "matched", "exact"]] == 20).all(axis=None)
    assert (counts["mean_abs_difference"] == 0).all()


def test_table_3_of_the_paper(golden: pd.DataFrame) -> None:
    found = performance(golden)
    for table in (found.paper, found.ours):
        assert table["NS-NMF"].tolist() == [16, 3, 0, 1, 1.2]
        assert table["NMF"].tolist() == [1, 2, 4, 13, 3.1]
        assert table["GNMF"].tolist() == [0, 2, 9, 9, 2.6]
        assert table["SNMF"].tolist() == [0, 2, 6, 12, 3.1]
    assert len(found.datasets) == 20
    assert found.left_out.empty
    assert found.methods_missing == []


def test_the_papers_times(golden: pd.DataFrame) -> None:
    found = aloi_times(golden)
    assert found["our_minutes"].tolist() == found["paper_minutes"].tolist()
    assert (found["ratio"] == 1).all()


# What each function does.


@pytest.mark.parametrize(("statistic", "expected"), [("median", 2), ("mean", 3), ("max", 7), ("min", 1)])
def test_pivot_over_seeds(statistic, expected: float) -> None:
    rows = make_rows(["NMF"], ["WBC"], (0, 1, 2, 3), detections=lambda m, d, s: [1.0, 2.0, 2.0, 7.0][s])
    assert pivot(rows, statistic=statistic).loc["WBC", "NMF"] == expected


def test_pivot_keeps_what_did_not_run() -> None:
    rows = pd.concat([make_rows(["NMF"], ["WBC", "Glass"]), make_rows(["GNMF"], ["Pima"], status="killed")])
    table = pivot(rows)
    assert table.index.tolist() == ["WBC", "Glass", "Pima"]
    assert table.columns.tolist() == ["NMF", "GNMF"]
    assert table["GNMF"].isna().all()
    why = missing_cells(rows, table).set_index(["dataset", "method"])["why"]
    assert why.to_dict() == {("WBC", "GNMF"): "not planned", ("Glass", "GNMF"): "not planned",
                             ("Pima", "NMF"): "not planned", ("Pima", "GNMF"): "killed"}  # fmt: skip


def test_variants_and_sweeps_are_kept_out() -> None:
    rows = study_rows()
    assert set(main_rows(rows)["part"]) == {"paper", "lomst", "deep", "controls"}
    assert set(rows_of_column(rows, "NS-NMF")["part"]) == {"paper"}
    twice = pd.concat([rows, make_rows(part="deep", datasets=["Glass"])], ignore_index=True)
    assert len(main_rows(twice)) == len(main_rows(rows))


def test_a_line_per_method() -> None:
    found = method_summary(main_rows(study_rows()))
    assert found.loc["DAGMM", ["datasets", "planned", "failures", "not_run"]].tolist() == [4, 5, 3, 0]
    assert found.loc["AER", ["datasets", "planned", "failures", "not_run"]].tolist() == [4, 5, 0, 3]
    fair = found.drop("LoMST (best k)")
    assert np.isnan(found.loc["LoMST (best k)", "mean_rank"])
    assert fair["mean_rank"].mean() == pytest.approx((len(fair) + 1) / 2)
    shares = pivot(study_rows().query("part == 'paper'"), "precision_at_n")["GNMF"]
    assert found.loc["GNMF", "mean_precision_at_n"] == pytest.approx(shares.mean())


def test_failures_and_marks() -> None:
    rows = study_rows()
    assert failures(rows).to_dict("records") == [
        {"method": "DAGMM", "dataset": "Glass", "status": "timed out", "why": "longer than 60 s", "cells": 3},
        {"method": "AER", "dataset": "Glass", "status": "not run", "why": "", "cells": 3},
    ]
    assert failure_counts(rows).loc["DAGMM"].to_dict() == {
        "ok": 12, "failed": 0, "timed out": 3, "killed": 0, "not run": 0}  # fmt: skip
    assert set(marks(rows)["method"]) == {"AER", "DAGMM"}
    assert (marks(rows)["cells"] == 3).all()


# Little or nothing to show.


@pytest.mark.parametrize(
    "rows",
    [
        lambda: NOTHING,
        lambda: make_rows(status="failed", why="ValueError: no"),
        lambda: make_rows(["NS-NMF"]),
        lambda: make_rows(datasets=["Glass"]),
        lambda: spoilt(make_rows()),
        lambda: make_rows(["odd"]),
    ],
    ids=["nothing", "all failed", "one method", "one set", "NaN measures", "not of the paper"],
)
def test_poor_studies(rows: Callable[[], pd.DataFrame]) -> None:
    rows = rows()
    for name in PAPER_TABLES:
        found = detections(rows, name)
        assert (found["matches"].isna() == (found["why"] != "")).all()
        assert match_counts(found)["run"].sum() == found["median"].notna().sum()
    assert performance(rows).ours.shape == (5, 4)
    assert performance(rows).ours.columns.tolist() == OFFLINE
    assert len(aloi_times(rows)) == 5
    assert len(method_summary(rows)) == rows["method"].nunique()
    assert failure_counts(rows).to_numpy().sum() == len(rows)
    assert failures(rows)["cells"].sum() == (rows["status"] != "ok").sum()


def test_refusals() -> None:
    with pytest.raises(ValueError, match="statistic must be 'median', 'mean', 'max' or 'min'; got 'mode'"):
        pivot(NOTHING, statistic="mode")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="no table 'TPX' of detections; there are TPR, TPRL, TPRDL"):
        detections(NOTHING, "TPX")


# Better, equal, close, worse.


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


@given(st.lists(st.lists(st.integers(0, 6), min_size=3, max_size=3), min_size=2, max_size=8), st.integers(1, 20))
@examples(60)
def test_compare_is_its_twin(rows: list[list[int]], twentieths: int) -> None:
    table = pd.DataFrame(rows, columns=list("ABC"))
    found = compare(table, "A", twentieths / 20)
    assert found.T.to_numpy().tolist() == naive.compare(rows, Fraction(twentieths, 20))
    assert (found.sum() == len(table)).all()


FRAMES = ["characteristics", "deep_true_positives", "lomst_true_positives", "true_positives"]
# How the paper spells the names that are spelt differently here.
SPELT = {
    "PIMA": "Pima",
    "Heart": "HeartDisease",
    "Page Blocks": "PageBlocks",
    "Pageblocks": "PageBlocks",
    "Pen digits": "PenDigits",
    "Pendigits": "PenDigits",
    "Cardiotocograpghy": "Cardiotocography",
    "KDD": "KDDCup99",
    "Spambase": "SpamBase",
}


@pytest.fixture(scope="module")
def source() -> str:
    found = list(Path(__file__).resolve().parents[3].glob("*/paper/ns-nmf-jmlr-2021.tex"))
    if not found:
        pytest.skip("the paper's LaTeX source does not lie next to the checkout")
    return found[0].read_text(errors="replace")


def printed(source: str, label: str) -> dict[str, list[str]]:
    """The cells of the rows of a table of the paper, by data set."""
    body = source.split(rf"\label{{{label}}}")[1].split(r"\end{tabular}", maxsplit=1)[0]
    rows = {}
    for line in re.split(r"\\\\\s*\\hline", re.sub(r"\\textbf\{(.*?)\}", r"\1", body)):
        name, *cells = [cell.strip().replace(",", "") for cell in line.split("&")]
        name = name.splitlines()[-1].strip() if name else ""
        if SPELT.get(name, name) in names():
            rows[SPELT.get(name, name)] = cells
    return rows


@pytest.mark.parametrize(
    ("label", "frame", "columns"),
    [
        ("tbl:1", paper.characteristics, ["n", "anomalies", "p"]),
        ("tbl:TPR", paper.true_positives, ["NS-NMF", "Online NS-NMF", "NMF", "GNMF", "SNMF"]),
        ("tbl:TPRL", paper.lomst_true_positives, ["NS-NMF", "LoMST"]),
        ("tbl:TPRDL", paper.deep_true_positives, ["NS-NMF", "AER", "DAGMM"]),
    ],
)
def test_typed_in_right(source: str, label: str, frame: pd.DataFrame, columns: list[str]) -> None:
    expected = printed(source, label)
    assert len(expected) == 20
    assert frame.index.tolist() == list(expected)
    for name, cells in expected.items():
        assert frame.loc[name, columns].tolist() == [int(cell) for cell in cells[: len(columns)]], name


def test_the_claims_are_in_the_paper(source: str) -> None:
    for label in paper.claims["where"]:
        assert rf"\label{{{label}}}" in source
    for value in ("1.23", "7.11", "3.40"):
        assert rf"{value}\times" in source.replace(" ", "")
    for words in paper.run_times["stated"]:
        assert words.replace("[around] ", "") in source


@pytest.mark.parametrize("name", FRAMES)
def test_all_twenty_data_sets(name: str) -> None:
    frame = getattr(paper, name)
    assert sorted(frame.index) == sorted(names())
    assert (frame >= 0).all(axis=None)
    assert (frame.dtypes == "int64").all()


def test_tables_agree_with_each_other() -> None:
    ours = paper.true_positives["NS-NMF"]
    pd.testing.assert_series_equal(paper.lomst_true_positives["NS-NMF"], ours)
    pd.testing.assert_series_equal(paper.deep_true_positives["NS-NMF"], ours)
    anomalies = paper.characteristics["anomalies"]
    for name in FRAMES[1:]:
        assert getattr(paper, name).le(anomalies, axis=0).all(axis=None)
