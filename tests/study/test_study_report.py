"""The pages of the study: what they say is in the numbers, and no count of matches is without its controls."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from datetime import date
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from study_rows import make_rows, paper_rows, study_rows

from penstock.bench import Results
from penstock.bench.results import frame_of
from penstock.bench.significance import friedman, mean_ranks
from studies.ahmed2021 import appendix, paper, report
from studies.ahmed2021.markdown import escape
from studies.ahmed2021.outcome import (
    CONTROLS,
    LEFT_OPEN,
    Outcome,
    collapse_table,
    favourable_readings,
    lead,
    match_table,
)
from studies.ahmed2021.plant import PAPER, PlantLists, PlantTables
from studies.ahmed2021.report import write_study
from studies.ahmed2021.rows import LABELS

NAME = "<img src=x>|`**\n# [a](http://evil.example) $x$ www.evil.example \u202e\x00'\""
CELL = re.compile(r"(?<!\\)\|")
SETS = ["Glass", "Pima", "WBC", "Parkinson", "WDBC"]
NOTHING = frame_of([], {}, LABELS)


def readings(explained: float, gain: float = 0.0) -> pd.DataFrame:
    """Two readings of NS-NMF: the first rebuilds a share of the rows, the second all of them and finds more."""
    detail = {"norm_rank_correlation": 0.5, "rows_holding_most": 7.0, "structure_ratio": 1e11}
    made = []
    for name, share in (("first", explained), ("second", 0.9)):
        found = {"explained": share} | detail
        made.append(
            make_rows(
                [name], SETS, part="readings", detail=found, detections=lambda m, d, s: 2.0 + gain * (m == "second")
            )
        )
    return pd.concat(made, ignore_index=True)


@cache
def whole_study(explained: float = 0.01) -> pd.DataFrame:
    """Every part of the study; do not change it."""
    controls = make_rows(list(CONTROLS), SETS, [0], part="controls")
    choices = [make_rows(methods, SETS, part="nearest", paper=column) for column, methods in LEFT_OPEN.values()]
    return pd.concat([study_rows(), readings(explained), controls, *choices], ignore_index=True)


def pages(rows: pd.DataFrame, plant: PlantTables | None = None, **more: Any) -> tuple[str, str]:
    given = Results(
        rows,
        title="A study",
        versions={"python": "3.11", "penstock": "0.1"},
        machine="2 cores",
        started="2026-11-16T01:00:00+00:00",
        finished="2026-11-16T03:00:00+00:00",
    )
    outcome = Outcome(replace(given, **more), plant)
    return report.to_page(outcome), appendix.to_page(outcome)


def plant_tables() -> PlantTables:
    times = pd.date_range("2015-01-01", periods=3, freq="h")
    methods = ["NS-NMF", "online", "GNMF"]
    lists = PlantLists(
        times=dict.fromkeys(methods, times),
        overlap=pd.DataFrame(1, index=methods, columns=methods),
        common_offline=1,
        common_online=2,
        summary=pd.DataFrame(3, index=["rows in a fault", "rows in a look-alike", "faults found"], columns=methods),
        days=pd.DataFrame(2, index=pd.Index([date(2015, 1, 1), date(2015, 1, 2)], name="day"), columns=methods),
        harmless_days={date(2015, 1, 2)},
    )
    return PlantTables(0, 3, 100, 5, 2, 860, {PAPER: lists, "ours": lists})


@cache
def whole_pages(explained: float = 0.01) -> tuple[str, str]:
    return pages(whole_study(explained), plant_tables())


def test_two_pages_and_an_appendix() -> None:
    page, rest = whole_pages()
    assert "Not in this run" not in page
    assert page.count("\n") < 150
    titles = re.findall(r"^## (.*)$", page, re.MULTILINE)
    assert titles[:3] == ["What was asked", "What holds", "What does not, and by how much"]
    for text in (page, rest):
        tables = re.findall(r"(?:^\|.*\|\n)+", text, re.MULTILINE)
        assert len(tables) >= 5
        for lines in tables:
            assert len({len(CELL.findall(line)) for line in lines.splitlines()}) == 1, lines
        assert "nan" not in text.lower()
    assert rest.endswith("not in this run: Run times; Other variants of the data.\n")


def test_the_collapse_is_said_with_its_figures() -> None:
    page, _ = whole_pages()
    assert "does so on **5 of 5** data sets (5 % of ‖A‖² or less is rebuilt; on 5 of them 1 % or less)" in page
    rest = next(line for line in whole_pages(0.5)[0].splitlines() if line.startswith("| the other 5 |"))
    sizes = collapse_table(whole_study(0.5))["n"]
    low, high = (f"{100 * 7 / n:.2g} %" for n in (sizes.max(), sizes.min()))
    assert f"| {low} to {high} |" in rest  # shares: seven rows of each, of tables of different size
    assert re.search(r"\| Glass \| 1 % \| 0\.500 \| 7 \(3\.3 %\) \| 1\.00e11 \|", page)
    assert "‖S‖²/‖A‖² is 1.00e11 (Glass) to 1.00e11 (WDBC)" in page
    assert "the same on" in page
    assert "on **0 of 5** data sets" in whole_pages(0.5)[0]
    assert collapse_table(whole_study())["explained"].tolist() == [0.01] * 5


def test_readings_are_ranked_with_the_other_three() -> None:
    rows = pd.concat([study_rows(), readings(0.01, gain=2.0)], ignore_index=True)
    shares = rows[rows["method"].isin(["NMF", "GNMF", "SNMF", "second"])]
    table = shares.groupby(["dataset", "method"])["precision_at_n"].median().unstack().loc[SETS]
    found = Outcome(Results(rows)).readings.set_index("reading").loc["second"]
    expected = mean_ranks(table)
    assert found["NS-NMF"] == expected["second"]
    assert found[["NMF", "GNMF", "SNMF"]].tolist() == expected[["NMF", "GNMF", "SNMF"]].tolist()
    assert found["Friedman's p"] == pytest.approx(friedman(table).p_value)
    assert (found["mean P@N"], found["collapsed"]) == (pytest.approx(table["second"].mean()), 0)
    best = favourable_readings(rows)
    assert best["NS-NMF"].is_monotonic_increasing
    assert {"first", "second", "NS-NMF, block SGD"} <= set(best["reading"])
    other, gain, low, high = lead(rows, "second")
    assert gain == pytest.approx((table["second"] - table[other]).mean())
    assert low <= gain <= high


def test_no_count_of_matches_without_its_controls() -> None:
    figures = paper.true_positives["GNMF"]
    controls = make_rows(
        ["from mean"], list(figures.index), [0], part="controls", detections=lambda m, d, s: figures[d]
    )
    found = match_table(pd.concat([paper_rows(), controls]), {}).set_index("who")
    assert (found.loc["the method"] == "20 (20)").all()
    assert found.loc["from mean", "GNMF"] == "20 (20)"
    near = (figures - paper.true_positives["NS-NMF"]).abs() <= np.maximum(2, 0.1 * paper.true_positives["NS-NMF"])
    assert found.loc["from mean", "NS-NMF"].startswith(f"{near.sum()} (")
    assert found.loc["row norm"].isna().all()
    page, rest = pages(pd.concat([paper_rows(), controls]))
    assert "Some control matches the column of **GNMF** at least as often" in page
    for text in (page, rest):
        for counts in re.findall(r"(?:^\|.*matche.*\|\n)(?:^\|.*\|\n)+", text, re.MULTILINE):
            assert "from mean" in counts or "highest seed" in counts, counts
    assert "control: from mean" in whole_pages()[1].split("Nearest configurations")[1]


def test_a_run_that_gives_the_papers_figures() -> None:
    page, rest = pages(paper_rows())
    assert re.search(r"\| the method \|( 20 \(20\) \|){8}", page)
    holds = page.split("## What holds")[1].split("## What does not")[0]
    assert "mean ranks NS-NMF 1.20, NMF 3.10, GNMF 2.60, SNMF 3.10 |" in holds
    assert "p = 1.23e−7, on 20 data sets" in rest


@pytest.mark.parametrize(
    ("rows", "told"),
    [
        (lambda: NOTHING, "0 cells"),
        (lambda: make_rows(status="failed", why="boom"), "(failed 45)"),
        (lambda: make_rows(status="not run"), "(not run 45)"),
        (lambda: make_rows(["NS-NMF"], ["Glass"]), "3 cells"),
    ],
    ids=["nothing", "failed", "not run", "one method"],
)
def test_what_was_not_run_is_said_and_not_made_up(rows: Callable[[], pd.DataFrame], told: str) -> None:
    page, rest = pages(rows())
    assert told in page
    assert "Not in this run." in page
    assert "nan" not in (page + rest).lower()
    assert "Of the study not in this run: " in rest


def test_what_each_open_choice_moves() -> None:
    figures = paper.true_positives["Online NS-NMF"]
    names = LEFT_OPEN["the order of the stream"][1]
    rows = make_rows(
        names, SETS, part="nearest", detections=lambda m, d, s: figures[d] + 5 * (m == names[1] and d == "Pima")
    )
    found = Outcome(Results(rows)).left_open.set_index("choice")
    assert found.index.tolist() == ["the order of the stream"]
    assert found.iloc[0][["data sets", "moved", "most", "on"]].tolist() == [5, 1, 5.0, "Pima"]
    assert "| the order of the stream | Online NS-NMF | 2 | 5 | 1 | 5 | Pima |" in pages(rows)[0]


def test_the_plant() -> None:
    page, rest = pages(make_rows(), plant_tables())
    assert "| NS-NMF | 3 / 3 / 3 | 3 / 3 / 3 |" in page
    assert "| NS-NMF offline and online (46) | 2 | 2 |" in page
    assert "860 rows marked" in page
    assert "| 2015-01-02 | look-alike | 2 | 2 | 2 |" in rest


def test_writes_both_pages_or_refuses(tmp_path: Path) -> None:
    small, folder = Results(make_rows()), tmp_path / "new" / "report"
    written = write_study(small, folder)
    assert [path.name for path in written] == ["reproduction.md", "reproduction_appendix.md"]
    written[0].unlink()
    with pytest.raises(FileExistsError, match="exists already"):
        write_study(small, folder)
    assert not written[0].exists()
    write_study(Results(NOTHING), folder, overwrite=True)
    assert "0 cells" in written[0].read_text(encoding="utf-8")


def test_names_are_shown_as_they_are() -> None:
    text = "".join(pages(make_rows([NAME, "NMF"], part="controls"))) + escape(NAME)
    assert not {"\u202e", "\x00"} & set(text)
    assert not re.search(r"<img|http://|www\.evil|\n# \[a\]|(?<!\\)\]\(http", text)


def test_the_pages_in_the_repository_are_those_of_the_report() -> None:
    docs = Path(__file__).parents[2] / "docs"
    page, rest = ((docs / name).read_text(encoding="utf-8") for name in (report.PAGE, report.APPENDIX))
    made, more = whole_pages()
    for text, new in ((page, made), (rest, more)):
        assert text.splitlines()[0] == new.splitlines()[0]
    titles = r"^## (.*)$"
    assert re.findall(titles, page, re.MULTILINE) == re.findall(titles, made, re.MULTILINE)
    online = r"^\| {} \| [^|]* \| (\d+) \("
    ours, control = (re.search(online.format(who), page, re.MULTILINE)[1] for who in ("the method", "from mean"))
    told = " ".join((docs / "streaming.md").read_text(encoding="utf-8").split())
    assert f"matches the paper's on {ours} of 20 sets; that of the distance from the mean" in told
    assert f"no stream at all, on {control}." in told
