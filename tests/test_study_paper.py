"""The paper's figures: typed in right, consistent with each other, and what follows from them."""

from __future__ import annotations

import re
from pathlib import Path

import pandas as pd
import pytest

from studies.ahmed2021 import paper
from studies.ahmed2021.datasets import names
from studies.ahmed2021.tables import compare

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
    found = list(Path(__file__).resolve().parents[2].glob("*/paper/ns-nmf-jmlr-2021.tex"))
    if not found:
        pytest.skip("the paper's LaTeX source does not lie beside the checkout")
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


def claimed(where: str, claim: str) -> dict[str, float]:
    table = paper.claims.query("where == @where and claim == @claim")
    assert len(table), f"{claim} is not among the claims of {where}"
    return dict(zip(table["method"], table["value"], strict=True))


def test_the_claims_about_the_nmf_methods_follow() -> None:
    table = paper.true_positives
    pair = compare(table[["NS-NMF", "Online NS-NMF"]], "NS-NMF")
    assert claimed("section5.1", "data sets better than Online NS-NMF") == {"NS-NMF": pair.loc["Better", "NS-NMF"]}
    assert claimed("section5.1", "data sets better than NS-NMF") == {"Online NS-NMF": pair.loc["Better"].iloc[1]}
    for other in ("GNMF", "SNMF"):
        worse = (table["NS-NMF"] < table[other]).sum()
        assert claimed("section5.1", f"data sets worse than {other}") == {"NS-NMF": worse}
    assert claimed("section5.1", "data sets worse than NMF") == {"SNMF": (table["SNMF"] < table["NMF"]).sum()}
    rest = compare(table.drop(columns="NS-NMF"), "Online NS-NMF")
    best = claimed("section5.1", "data sets best or tied, without offline NS-NMF")
    assert best == rest.loc[["Better", "Equal"]].sum().to_dict()


def test_the_claims_about_lomst_follow() -> None:
    table = paper.lomst_true_positives
    p = paper.characteristics["p"][table.index]
    for part, words in ((table, ""), (table[p > 20], ", p above 20"), (table[p < 20], ", p below 20")):
        found = compare(part, "NS-NMF")
        won = claimed("section5.1b", f"data sets better than LoMST{words}")
        won |= claimed("section5.1b", f"data sets better than NS-NMF{words}")
        assert won == found.loc["Better"].to_dict()
        if words != ", p above 20":
            assert claimed("section5.1b", f"data sets tied with LoMST{words}") == {"NS-NMF": found.loc["Equal"].iloc[0]}
    assert ((p > 20).sum(), (p < 20).sum()) == (11, 9)


def test_the_claims_about_deep_methods_follow() -> None:
    found = compare(paper.deep_true_positives, "NS-NMF")
    assert claimed("DNN", "data sets uniquely best of NS-NMF, AER, DAGMM") == found.loc["Better"].to_dict()
    assert found.loc["Equal"].to_dict() == {"NS-NMF": 1, "AER": 1, "DAGMM": 0}
    assert claimed("DNN", "data sets where NS-NMF and AER tie for the best") == {"NS-NMF": 1}
