"""The record that `detect` returns is complete: whatever shows it only formats it."""

from __future__ import annotations

import sys
from dataclasses import fields
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from detection_tables import FAULT, HOT, plant, two_modes

import penstock
from penstock import detect
from penstock.cli._summary import summary_lines
from penstock.detection import explain
from penstock.report import notebook_html, to_html, write_findings, write_scores
from penstock.storage import StorageError

ROOMS = tuple(str(Path(penstock.__file__).parent / room) + "/" for room in ("detection", "explain"))


def labelled(table: pd.DataFrame) -> pd.DataFrame:
    return table.assign(fault=np.isin(np.arange(len(table)), list(FAULT)).astype(int))


@pytest.fixture(
    scope="module",
    params=[{}, {"method": "nsnmf", "modes": "state"}, {"train_until": "2024-05-02"}],
    ids=["detector", "modes", "trained"],
)
def findings(request):
    return detect(labelled(two_modes()), label="fault", top=12, **request.param)


@pytest.mark.parametrize("show", ["page", "csv", "json", "xlsx", "scores", "terminal", "notebook"])
def test_showing_findings_computes_nothing(findings, show, tmp_path):
    shows = {
        "page": lambda: to_html(findings),
        "terminal": lambda: summary_lines(findings, []),
        "notebook": lambda: notebook_html(findings),
        "scores": lambda: write_scores(findings, tmp_path / "scores.csv"),
    }
    entered = []

    def look(frame, event, _):
        code = frame.f_code
        if event == "call" and code.co_filename.startswith(ROOMS) and code.co_name not in ("<module>", "top"):
            entered.append(f"{code.co_filename}:{code.co_name}")

    work = shows.get(show, lambda: write_findings(findings, tmp_path / f"findings.{show}"))
    sys.setprofile(look)
    try:
        work()
    finally:
        sys.setprofile(None)
    assert entered == []


def test_events_beyond_the_most_severe_are_explained_on_request():
    whole, some = (detect(plant(), method="mean", top=12, gap=0, most_explained=most) for most in (None, 2))
    assert set(whole.explanations) == set(whole.events.index)
    assert [some.events["rank"][event] for event in sorted(some.explanations, key=some.events["rank"].get)] == [1, 2]
    for event, why in whole.explanations.items():
        assert str(explain(some, event)) == str(some.explain(event)) == str(why)
    none = detect(plant(), top=5, most_explained=0)
    assert (none.explanations, none.rule_tree, none.groups, none.trees) == ({}, None, (), ())
    assert none.explain(1).variables["variable"].iloc[0] == HOT
    with pytest.raises(ValueError, match="most_explained must be a whole number ≥ 0"):
        detect(plant(), most_explained=-1)


def test_fields_are_data(findings):
    assert not [name for name, value in vars(type(findings)).items() if isinstance(value, property)]
    assert {field.name for field in fields(findings)} == set(vars(findings))


def test_files_are_written_and_replaced_only_on_request(findings, tmp_path):
    for write, name in ((findings.to_html, "a.html"), (findings.to_csv, "a.csv"), (findings.to_excel, "a.xlsx")):
        path = tmp_path / name
        write(path)
        before = path.read_bytes()
        with pytest.raises(FileExistsError, match=r"exists already\. Choose another name, or overwrite=True"):
            write(path)
        write(path, overwrite=True)
        assert len(path.read_bytes()) == pytest.approx(len(before), abs=9)
    with pytest.raises(StorageError, match=r"ending must be one of \.xlsx"):
        findings.to_excel(tmp_path / "a.csv")
    with pytest.raises(StorageError, match=r"ending must be one of \.csv, \.csv\.gz"):
        findings.to_csv(tmp_path / "a.json")


def test_a_workbook_reads_back(findings, tmp_path):
    pytest.importorskip("openpyxl")
    findings.to_excel(tmp_path / "a.xlsx")
    sheets = pd.read_excel(tmp_path / "a.xlsx", sheet_name=None)
    assert list(sheets) == ["findings", "events", "settings"]
    np.testing.assert_allclose(sheets["findings"]["score"], findings.top()["score"])
    assert sheets["findings"]["time"].tolist() == findings.top()["time"].tolist()
    assert sheets["events"]["rows"].tolist() == findings.events["rows"].tolist()
    assert dict(zip(sheets["settings"]["setting"], sheets["settings"]["value"], strict=True))["top"] == 12


def test_a_workbook_holds_no_formulas_and_no_zone(tmp_path):
    openpyxl = pytest.importorskip("openpyxl")
    table = plant().rename(columns={HOT: "=1+1"}).assign(kind="\x07@x")
    detect(table, top=5, timezone="Europe/Berlin", columns=["=1+1", "oil"]).to_excel(tmp_path / "a.xlsx")
    book = openpyxl.load_workbook(tmp_path / "a.xlsx")
    cells = [cell for sheet in book for row in sheet.iter_rows() for cell in row]
    assert any(str(cell.value).startswith("=1+1") for cell in cells)
    assert not [cell for cell in cells if cell.data_type == "f"]


def test_plots_are_drawn(findings):
    matplotlib = pytest.importorskip("matplotlib")
    matplotlib.use("Agg")
    assert len(findings.plot().axes) == 1
    assert findings.plot(event=1).axes[0].get_title(loc="left") == findings.explain(1).variables["variable"].iloc[0]
    matplotlib.pyplot.close("all")
