"""The report of the study: what it says is in the numbers, and it is one closed page and one Markdown file."""

from __future__ import annotations

import re
from dataclasses import replace
from datetime import date
from functools import cache
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pandas as pd
import pytest
from study_rows import make_rows, paper_rows, study_rows

from penstock.bench import Results
from penstock.bench.results import frame_of
from studies.ahmed2021.overlap import Overlap
from studies.ahmed2021.plant import PlantLists, PlantTables
from studies.ahmed2021.report import figures, to_html, to_markdown, write_study
from studies.ahmed2021.report.material import Material
from studies.ahmed2021.report.pages import (
    Block,
    Bullets,
    CodeBlock,
    Details,
    Paragraph,
    pictures,
    plain,
    to_page,
    to_text,
)
from studies.ahmed2021.report.write import SECTIONS, compose
from studies.ahmed2021.rows import LABELS

NAME = "<img src=x>|`**\n# [a](http://evil.example) $x$ www.evil.example \u202e\x00'\""
CELL = re.compile(r"(?<!\\)\|")


def results(rows: pd.DataFrame, **more: str) -> Results:
    given = Results(
        rows,
        title="A study",
        versions={"python": "3.11", "penstock": "0.1"},
        machine="2 cores",
        started="2026-11-16T01:00:00+00:00",
        finished="2026-11-16T03:00:00+00:00",
        settings_text='title = "A study"\n',
    )
    return replace(given, **more)


@pytest.fixture(scope="module")
def blocks() -> list[Block]:
    return compose(Material(results(study_rows())))


@cache
def composed(method: str, dataset: str) -> list[Block]:
    """The report of a study of one method on one data set."""
    return compose(Material(results(make_rows([method], [dataset]))))


@pytest.fixture(scope="module")
def page(blocks: list[Block]) -> str:
    return to_page(blocks, "A study", "")


@pytest.fixture(scope="module")
def text(blocks: list[Block]) -> str:
    return to_text(blocks, "A study", "images")


def test_all_sections_are_there_in_order(page: str) -> None:
    titles = [title.replace("'", "&#39;") for title, _ in SECTIONS]
    found = re.findall(r"<h2[^>]*>(.*?)</h2>", page)
    assert found == [title for title in [*titles, "Not in this run"] if title in found]
    for title in ("What reproduces, what does not", "Sensitivity", "Nearest configuration", "Failures and marks"):
        assert title in found
    assert "the tables of the simulated plant were not made" in page


def test_the_page_loads_and_runs_nothing(page: str) -> None:
    assert "<script" not in page
    assert set(re.findall(r' src="([^,]*),', page)) == {"data:image/svg+xml;base64"}
    assert all(link.startswith("#") for link in re.findall(r' href="([^"]*)"', page))
    policy = re.search(r'Content-Security-Policy" content="([^"]*)"', page)
    assert policy
    assert policy[1].startswith("default-src 'none'; style-src 'sha256-")


def test_tables_in_markdown_have_as_many_cells_in_every_line(text: str) -> None:
    lines = text.split("\n")
    tables = 0
    for place, line in enumerate(lines):
        if not re.fullmatch(r"\|( -+:? \|)+", line):
            continue
        tables += 1
        width = len(CELL.findall(line))
        assert len(CELL.findall(lines[place - 1])) == width
        for row in lines[place + 1 :]:
            if not row.startswith("|"):
                break
            assert len(CELL.findall(row)) == width, row
    assert tables > 5


@pytest.mark.slow
def test_every_figure_is_whole_and_the_same_each_time(blocks: list[Block], text: str) -> None:
    drawn = pictures(blocks)
    assert len({picture.name for picture in drawn}) == len(drawn) > 5
    for picture in drawn:
        root = ElementTree.fromstring(picture.svg)
        assert root.tag.endswith("svg")
        assert re.fullmatch(r"[a-z0-9-]+", picture.name)
        assert picture.alt
    again = compose(Material(results(study_rows())))
    assert [picture.svg for picture in pictures(again)] == [picture.svg for picture in drawn]
    assert to_text(again, "A study", "images") == text


@pytest.mark.slow
def test_a_run_that_gives_the_papers_figures_matches_everywhere() -> None:
    text = to_markdown(results(paper_rows()))
    for method in ("NS-NMF", "Online NS-NMF", "NMF", "GNMF", "SNMF", "LoMST", "AER", "DAGMM"):
        assert f"**{method}** matches the paper on 20 of 20 data sets (exactly on 20" in text
    assert "NS-NMF 1.20 (paper 1.20)" in text
    assert "the best here is NS-NMF" in text
    assert "p = 1.23e−7 (paper 1.23e−7)" in text


def test_what_was_not_run_is_said_and_not_made_up() -> None:
    text = to_text(composed("NS-NMF", "Glass"), "A study", "images")
    assert "**NS-NMF** matches the paper on" in text
    assert "of 1 data sets" in text or "of 1 data set" in text
    assert "19 of 20 have no result" in text
    assert "**NMF**: not run." in text
    assert "Mean ranks" not in text
    assert "Not in this run" in text
    assert "nan" not in text.lower().replace("nanoseconds", "")


@pytest.mark.parametrize("status", ["failed", "not run"])
def test_all_cells_without_result(status: str) -> None:
    made = compose(Material(results(make_rows(status=status, why="" if status == "not run" else "boom"))))
    for document in (to_page(made, "A study", ""), to_text(made, "A study", "images")):
        assert "nothing can be said about them" in document
        assert "matches the paper on" not in document
        assert f"45 {status}" in document


def test_no_rows_at_all() -> None:
    empty = Results(frame_of([], {}, LABELS))
    page, text = to_html(empty), to_markdown(empty)
    assert "0 planned" in page
    assert "0 planned" in text
    assert "Not in this run" in text


@pytest.mark.slow
def test_overlaps_are_warned_of() -> None:
    text = to_markdown(results(make_rows()), overlaps=[Overlap("Glass", NAME, 12, 0.5)])
    assert "> **Warning.** Some data sets share rows: Glass and " in text
    assert "share 12 rows (50 % of the smaller)" in text


def plant_tables() -> PlantTables:
    times = pd.date_range("2015-01-01", periods=3, freq="h")
    methods = ["NS-NMF", "online", "GNMF"]
    square = pd.DataFrame(1, index=methods, columns=methods)
    days = pd.DataFrame(2, index=[date(2015, 1, 1), date(2015, 1, 2)], columns=methods)
    lists = PlantLists(
        times=dict.fromkeys(methods, times),
        listing=pd.DataFrame(dict.fromkeys(methods, times)),
        overlap=square,
        common_offline=1,
        common_online=None,
        common_all=0,
        summary=pd.DataFrame(3, index=["rows in a fault"], columns=methods),
        days=days,
        harmless_days={date(2015, 1, 2)},
        events=pd.DataFrame(),
        faults_found={},
    )
    return PlantTables(0, 3, 100, 5, 2, lists, replace(lists, common_online=2))


def test_the_plant() -> None:
    text = to_markdown(results(make_rows()), plant=plant_tables())
    assert "The plant: tables 8 and 9" in text
    assert "2 to NS-NMF offline and online (the paper: 46)" in text
    assert "| 2015-01-02 | look-alike | 2 | 2 | 2 |" in text
    assert "| rows in a fault | 3 | 3 | 3 |" in text


def test_writes_all_files_or_refuses(tmp_path: Path) -> None:
    small = results(make_rows())
    folder = tmp_path / "new" / "report"
    written = write_study(small, folder)
    assert {path.name for path in written if path.parent == folder} == {"study.html", "reproduction.md"}
    assert all(path.is_file() for path in written)
    text = (folder / "reproduction.md").read_text(encoding="utf-8")
    for image in re.findall(r"\]\((images/[^)]*)\)", text):
        assert (folder / image).is_file()
        ElementTree.parse(folder / image)
    assert len(re.findall(r"!\[", text)) == len(list((folder / "images" / "reproduction").iterdir()))
    (folder / "study.html").unlink()
    with pytest.raises(FileExistsError, match="exists already"):
        write_study(small, folder)
    assert not (folder / "study.html").exists()
    write_study(Results(frame_of([], {}, LABELS)), folder, overwrite=True)
    assert "0 planned" in (folder / "study.html").read_text(encoding="utf-8")


def test_marks_and_special_characters() -> None:
    made = to_text([Paragraph(plain("- a\n1. b")), Paragraph("=== `a|b`"), Paragraph(f"**{plain('a*b')}**")], "t", "i")
    assert made == "# t\n\n\\- a 1. b\n\n\\=== `a|b`\n\n**a\\*b**\n"
    page = to_page([Paragraph(plain(NAME)), CodeBlock("</code>\ud800")], NAME, NAME)
    assert "<img src=x" not in page
    assert "&lt;img src=x&gt;" in page
    assert not {"\u202e", "\x00", "\ud800"} & set(page)
    assert "&lt;/code&gt;" in page
    text = to_text([Paragraph(plain(NAME)), CodeBlock("a\n````\nb")], NAME, "i")
    assert not re.search(r"<img|http://|www\.evil|\n# \[a\]|(?<!\\)\]\(http", text)
    assert "\n`````\n" in text  # code cannot end its block
    block = Details("a <b>", (Bullets(("x", "y")),))
    assert "<details>\n<summary>a &lt;b&gt;</summary>\n\n- x\n- y\n\n</details>" in to_text([block], "t", "i")


@pytest.mark.parametrize(
    "draw",
    [
        lambda: figures.draw_ranks({"$A": 1.0, "B": 2.0}, [("$A", "B")], float("nan"), "two"),
        lambda: figures.draw_ranks({"A": 1.0}, [], 9.0, "one"),
        lambda: figures.draw_boxes({"a": [float("nan")], "b": [1.0]}, "one", "x"),
        lambda: figures.draw_paper([figures.Compared("a", 0.5, *[float("nan")] * 3, "not run")], "one"),
        lambda: figures.draw_curves(
            [figures.Curve("a", [0, 1, 100], [0.1, float("nan"), 0.2], np.empty((0, 3)))], "t", "x", "y"
        ),
        lambda: figures.draw_curves([figures.Curve("a", ["file"], [0.1], np.empty((0, 1)))], "t", "x", "y"),
        lambda: figures.draw_times({"a": [(1, 0.0)], "b": []}, "one"),
        lambda: figures.draw_grid(["a"], ["b"], {}, "one", "form"),
    ],
)
def test_figures_of_little(draw) -> None:
    ElementTree.fromstring(draw())


def test_the_collapse_of_ns_nmf_is_said_first() -> None:
    said = composed("NS-NMF", "Shuttle")[1]
    assert isinstance(said, Paragraph)
    assert said.warning
    assert "explained_" in said.text
    for other in (composed("NMF", "Shuttle")[1], composed("NS-NMF", "Glass")[1]):
        assert isinstance(other, Paragraph)
        assert not other.warning


def test_the_document_in_the_repository_begins_as_the_report_does() -> None:
    text = (Path(__file__).parents[1] / "docs" / "reproduction.md").read_text(encoding="utf-8")
    begin = to_text(composed("NS-NMF", "Shuttle"), "A study", "images").split("\n\n")[1:3]
    assert text.split("\n\n")[1:3] == begin
