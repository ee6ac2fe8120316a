"""The report of a study: what it says is in the numbers, what it is given is shown and not obeyed."""

from __future__ import annotations

import re
from dataclasses import replace
from datetime import date
from html.parser import HTMLParser
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pandas as pd
import pytest
from study_rows import make_rows, paper_rows, study_rows, sweep_rows

from penstock.bench.overlap import Overlap
from penstock.bench.plant import PlantLists, PlantTables
from penstock.bench.results import Results, frame_of
from penstock.report.closed_page import digest
from penstock.report.study import to_html, to_markdown, write_study
from penstock.report.study.blocks import Block, Bullets, CodeBlock, DataTable, Details, Paragraph, plain
from penstock.report.study.compose import SECTIONS, compose, pictures
from penstock.report.study.draw_boxes import draw_boxes
from penstock.report.study.draw_curves import Curve, draw_curves
from penstock.report.study.draw_grid import draw_grid
from penstock.report.study.draw_paper import Compared, draw_paper
from penstock.report.study.draw_ranks import draw_ranks
from penstock.report.study.draw_times import draw_times
from penstock.report.study.label_places import spread
from penstock.report.study.markdown import render, to_text
from penstock.report.study.material import Material
from penstock.report.study.page import inline, to_page

HOSTILE = "<img src=x onerror=alert(1)>|`**\n# [a](http://evil.example) $x$ www.evil.example \u202e\x00'\""
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
def small() -> Results:
    return results(study_rows())


@pytest.fixture(scope="module")
def blocks(small: Results) -> list[Block]:
    return compose(Material(small))


@pytest.fixture(scope="module")
def page(blocks: list[Block]) -> str:
    return to_page(blocks, "A study", "")


@pytest.fixture(scope="module")
def text(blocks: list[Block]) -> str:
    return to_text(blocks, "A study", "images")


@pytest.fixture(scope="module")
def hostile_blocks(hostile: Results) -> list[Block]:
    return compose(Material(hostile))


@pytest.fixture(scope="module")
def hostile_page(hostile_blocks: list[Block]) -> str:
    return to_page(hostile_blocks, HOSTILE, HOSTILE)


@pytest.fixture(scope="module")
def hostile_text(hostile_blocks: list[Block]) -> str:
    return to_text(hostile_blocks, HOSTILE, "images")


@pytest.fixture(scope="module")
def hostile() -> Results:
    rows = pd.concat(
        [
            make_rows(["NS-NMF", HOSTILE], ["Glass", HOSTILE, "Pima"]),
            make_rows(["SNMF"], ["Glass"], status="failed", why=HOSTILE),
            make_rows(["GNMF"], ["Glass"], mark=HOSTILE),
            sweep_rows(HOSTILE, [HOSTILE, "b"], ["Glass", HOSTILE], methods=[HOSTILE]),
        ],
        ignore_index=True,
    )
    return results(rows, title=HOSTILE, machine=HOSTILE, settings_text=f"```\n{HOSTILE}\n</code></pre><script>")


def elements(page: str) -> list[tuple[str, list[tuple[str, str | None]]]]:
    found = []
    parser = HTMLParser()
    parser.handle_starttag = lambda tag, attributes: found.append((tag, attributes))  # type: ignore[method-assign]
    parser.feed(page)
    return found


def headings(page: str) -> list[str]:
    return re.findall(r"<h2[^>]*>(.*?)</h2>", page)


def test_all_sections_are_there_in_order(page: str) -> None:
    titles = [title.replace("'", "&#39;") for title, _ in SECTIONS]
    found = headings(page)
    assert found == [title for title in [*titles, "Not in this run"] if title in found]
    for title in ("What reproduces, what does not", "Sensitivity", "Nearest configuration", "Failures and marks"):
        assert title in found
    assert "the tables of the simulated plant were not made" in page


def test_the_page_is_closed(page: str, hostile_page: str) -> None:
    for text in (page, hostile_page):
        assert "<script" not in text
        for tag, attributes in elements(text):
            assert tag not in {"img", "iframe", "object", "embed", "link", "base", "form", "image", "use"}
            for name, value in attributes:
                assert name not in {"src", "style"}
                assert not name.startswith("on")
                assert name != "href" or value.startswith("#")
        style = re.search(r"<style>(.*?)</style>", text, re.DOTALL)
        policy = re.search(r'Content-Security-Policy" content="([^"]*)"', text)
        assert style
        assert policy
        allowed = policy[1].replace("&#39;", "'")
        assert allowed.startswith("default-src 'none'")
        assert f"style-src '{digest(style[1])}'" in allowed
        assert "img-src 'none'" in allowed
        assert "script-src" not in allowed


def test_hostile_names_are_shown_and_not_obeyed(hostile_page: str, hostile_text: str) -> None:
    page, text = hostile_page, hostile_text
    assert "<img" not in page
    assert "&lt;img src=x onerror=alert(1)&gt;" in page
    assert "\u202e" not in page
    assert "\x00" not in page
    outside = re.sub(r"(?s)^(`{3,})[^\n]*\n.*?\n\1$", "", text, flags=re.MULTILINE)
    assert "<img" not in outside
    assert "http://" not in outside
    assert not re.search(r"(?<!\\)\]\(http", outside)
    assert "\n# [a]" not in outside
    assert "www.evil" not in outside


def test_tables_in_markdown_have_as_many_cells_in_every_line(text: str, hostile_text: str) -> None:
    for document in (text, hostile_text):
        lines = document.split("\n")
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


def test_every_picture_is_whole_xml_and_refers_to_nothing(blocks: list[Block], hostile_blocks: list[Block]) -> None:
    for study in (blocks, hostile_blocks):
        drawn = pictures(study)
        assert drawn
        assert len({picture.name for picture in drawn}) == len(drawn)
        for picture in drawn:
            root = ElementTree.fromstring(picture.svg)
            assert root.get("role") == "img"
            assert root.get("aria-label")
            assert re.fullmatch(r"[a-z0-9-]+", picture.name)
            assert picture.svg.replace("http://www.w3.org/2000/svg", "").count("http:") == picture.svg.count(
                "evil.example)"
            )
            for element in root.iter():
                assert not {"href", "id", "style", "onload"} & set(element.keys())
                assert element.tag.rpartition("}")[2] in {"svg", "title", "rect", "line", "path", "circle", "text"}
                size = element.get("font-size")
                assert size is None or float(size) >= 12


def test_coordinates_are_numbers(blocks: list[Block]) -> None:
    for picture in pictures(blocks):
        assert "nan" not in re.sub(r"<(title|text).*?</\1>|aria-label=\"[^\"]*\"", "", picture.svg)


@pytest.mark.slow
def test_the_same_results_make_the_same_text(small: Results, text: str) -> None:
    assert to_markdown(results(study_rows())) == text


def test_a_run_that_gives_the_papers_figures_matches_everywhere() -> None:
    text = to_markdown(results(paper_rows()))
    for method in ("NS-NMF", "Online NS-NMF", "NMF", "GNMF", "SNMF", "LoMST", "AER", "DAGMM"):
        assert f"**{method}** matches the paper on 20 of 20 data sets (exactly on 20" in text
    assert "NS-NMF 1.20 (paper 1.20)" in text
    assert "the best here is NS-NMF" in text
    assert "p = 1.23e−7 (paper 1.23e−7)" in text


def test_what_was_not_run_is_said_and_not_made_up() -> None:
    text = to_markdown(results(make_rows(["NS-NMF"], ["Glass"])))
    assert "**NS-NMF** matches the paper on" in text
    assert "of 1 data sets" in text or "of 1 data set" in text
    assert "19 of 20 have no result" in text
    assert "**NMF**: not run." in text
    assert "Mean ranks" not in text
    assert "Not in this run" in text
    assert "nan" not in text.lower().replace("nanoseconds", "")


@pytest.mark.parametrize(
    "status", ["failed", *(pytest.param(s, marks=pytest.mark.slow) for s in ("timed out", "killed", "not run"))]
)
def test_all_cells_without_result(status: str) -> None:
    rows = make_rows(status=status, why="" if status == "not run" else "boom")
    for document in (to_html(results(rows)), to_markdown(results(rows))):
        assert "nothing can be said about them" in document
        assert "matches the paper on" not in document
        assert f"45 {status}" in document


def test_no_rows_at_all() -> None:
    empty = Results(frame_of([], {}))
    page, text = to_html(empty), to_markdown(empty)
    assert "0 planned" in page
    assert "0 planned" in text
    assert "Not in this run" in text


def test_overlaps_are_warned_of() -> None:
    text = to_markdown(results(make_rows()), overlaps=[Overlap("Glass", HOSTILE, 12, 0.5)])
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


def test_writes_all_files_or_refuses(small: Results, tmp_path) -> None:
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
    write_study(small, folder, overwrite=True)
    assert (folder / "study.html").exists()


class TestRenderers:
    def test_marks(self) -> None:
        assert inline(f"**{plain('a*b')}** {plain('**c**')}") == "<strong>a*b</strong> **c**"
        assert render(Paragraph(plain("- a\n1. b")), "i") == "\\- a 1. b"
        assert render(Paragraph("=== `a|b`"), "i") == "\\=== `a|b`"

    def test_code_cannot_end_its_block(self) -> None:
        text = render(CodeBlock("a\n````\nb"), "i")
        assert text.startswith("`````\n")
        assert "&lt;/code&gt;" in to_page([CodeBlock("</code>")], "t", "")

    def test_groups_of_columns(self) -> None:
        table = DataTable(
            ("set", "paper", "ours"), (("A|B", "1", "2"),), (False, True, True), "", (("", 1), ("NMF", 2))
        )
        assert "| set | NMF: paper | NMF: ours |" in render(table, "i")
        assert "| A\\|B | 1 | 2 |" in render(table, "i")
        assert 'colspan="2">NMF</th>' in to_page([table], "t", "")

    def test_details_and_bullets(self) -> None:
        block = Details("a <b>", (Bullets(("x", "y")),))
        assert render(block, "i") == "<details>\n<summary>a &lt;b&gt;</summary>\n\n- x\n- y\n\n</details>"

    def test_halves_of_characters(self) -> None:
        assert "\ud800" not in to_text([CodeBlock("\ud800")], "t", "i")
        assert to_page([CodeBlock("\ud800")], "\ud800", "").encode()


class TestDrawings:
    @pytest.mark.parametrize("seed", range(20))
    def test_labels_are_apart(self, seed: int) -> None:
        random = np.random.default_rng(seed)
        wanted = random.uniform(0, 100, size=8).round().tolist()
        found = spread(wanted, 12, 0, 100)
        assert np.diff(sorted(found)).min() >= 12 - 1e-9
        assert min(found) >= 0
        assert max(found) <= 100 + 1e-9
        assert (np.argsort(found) == np.argsort(wanted, kind="stable")).all()

    def test_labels_with_room_stay(self) -> None:
        assert spread([10.0, 50.0, 90.0], 12, 0, 100) == [10.0, 50.0, 90.0]
        assert spread([], 12, 0, 100) == []
        assert spread([5.0, 5.0, 5.0], 60, 0, 100) == [0.0, 60.0, 120.0]

    @pytest.mark.parametrize(
        "drawing",
        [
            draw_ranks({HOSTILE: 1.0, "B": 2.0}, [(HOSTILE, "B")], float("nan"), HOSTILE),
            draw_ranks({"A": 1.0}, [], 9.0, "one"),
            draw_boxes({}, "none", "x", str),
            draw_boxes({HOSTILE: [float("nan")], "b": [1.0]}, "one", "x", str),
            draw_paper([], "none"),
            draw_paper([Compared(HOSTILE, 0.5, float("nan"), float("nan"), float("nan"), HOSTILE)], "one"),
            draw_curves([], "none", "x", "y", str),
            draw_curves([Curve("a", [0, 1, 100], [0.1, float("nan"), 0.2], np.empty((0, 3)))], "t", "x", "y", str),
            draw_curves([Curve("a", [HOSTILE], [0.1], np.empty((0, 1)))], "t", HOSTILE, "y", str),
            draw_times({}, "none"),
            draw_times({HOSTILE: [(1, 0.0)], "b": []}, "one"),
            draw_grid([], [], {}, "none", "form"),
            draw_grid([HOSTILE], [HOSTILE], {(HOSTILE, HOSTILE): 0.5}, "one", "form"),
        ],
    )
    def test_odd_input_makes_whole_drawings(self, drawing: str) -> None:
        root = ElementTree.fromstring(drawing)
        for element in root.iter():
            for name in ("x", "y", "cx", "cy", "x1", "x2", "width", "height"):
                value = element.get(name)
                assert value is None or np.isfinite(float(value))


def test_the_collapse_of_ns_nmf_is_said_first() -> None:
    def first(method: str, dataset: str) -> Block:
        return compose(Material(results(make_rows([method], [dataset]))))[1]

    said = first("NS-NMF", "Shuttle")
    assert isinstance(said, Paragraph)
    assert said.warning
    assert "explained_" in said.text
    for other in (first("NMF", "Shuttle"), first("NS-NMF", "Glass")):
        assert isinstance(other, Paragraph)
        assert not other.warning


def test_the_document_in_the_repository_begins_as_the_report_does() -> None:
    text = (Path(__file__).parents[1] / "docs" / "reproduction.md").read_text(encoding="utf-8")
    begin = to_markdown(results(make_rows(["NS-NMF"], ["Shuttle"]))).split("\n\n")[1:3]
    assert text.split("\n\n")[1:3] == begin
