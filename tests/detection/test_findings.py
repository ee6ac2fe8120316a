"""The record that `detect` returns is complete: whatever shows it only formats it."""

from __future__ import annotations

import sys
from dataclasses import fields, replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from detection_tables import FAULT, HOT, NAMES, plant, positions, residuals, two_modes

import penstock
from penstock import KNNDistance, detect
from penstock._parameters import ParameterError
from penstock.cli._summary import summary_lines
from penstock.report import notebook_html, to_html, write_findings, write_scores
from penstock.storage import StorageError
from penstock.thresholds import Fixed

ROOMS = tuple(str(Path(penstock.__file__).parent / room) + "/" for room in ("detection", "explain"))


def labelled(table: pd.DataFrame) -> pd.DataFrame:
    return table.assign(fault=np.isin(np.arange(len(table)), list(FAULT)).astype(int))


@pytest.fixture(
    scope="module",
    params=[
        {},
        {"method": "detector"},
        {"method": "nsnmf", "modes": "state"},
        {"method": "detector", "train_until": "2024-05-02"},
    ],
    ids=["series", "detector", "modes", "trained"],
)
def findings(request):
    table = two_modes() if request.param else plant(400)
    return detect(labelled(table), label="fault", top=12, **request.param)


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
    assert set(whole.explained.events) == set(whole.events.index)
    assert [some.events["rank"][event] for event in sorted(some.explained.events, key=some.events["rank"].get)] == [
        1,
        2,
    ]
    for event, why in whole.explained.events.items():
        assert str(some.explain(event)) == str(why)
    none = detect(plant(), top=5, most_explained=0)
    why = none.explained
    assert (why.events, why.rule_tree, why.groups) == ({}, "", ())
    assert none.explain(1).variables["variable"].iloc[0] == HOT
    with pytest.raises(ParameterError) as refused:
        detect(plant(), most_explained=-1)
    assert refused.value.parameter == "most_explained"


def test_fields_are_data(findings):
    assert not [name for name, value in vars(type(findings)).items() if isinstance(value, property)]
    assert {field.name for field in fields(findings)} == set(vars(findings))
    assert len(fields(findings)) <= 15


def test_explaining_later_changes_nothing(findings):
    expected, events, explained = (
        findings.inputs.expected.copy(),
        findings.events.copy(),
        set(findings.explained.events),
    )
    none = replace(findings, explained=replace(findings.explained, events={}))
    for event in findings.events.index:
        none.explain(int(event))
    assert findings.inputs.expected.equals(expected)
    assert findings.events.equals(events)
    assert set(findings.explained.events) == explained


def test_files_are_written_and_replaced_only_on_request(findings, tmp_path):
    for write, name in ((findings.to_html, "a.html"), (findings.to_csv, "a.csv"), (findings.to_excel, "a.xlsx")):
        path = tmp_path / name
        write(path)
        before = path.read_bytes()
        with pytest.raises(FileExistsError):
            write(path)
        write(path, overwrite=True)
        assert len(path.read_bytes()) == pytest.approx(len(before), abs=9)
    with pytest.raises(StorageError, match=r"ending must be one of \.xlsx"):
        findings.to_excel(tmp_path / "a.csv")
    with pytest.raises(StorageError, match=r"ending must be one of \.csv, \.csv\.gz"):
        findings.to_csv(tmp_path / "a.json")


def test_incidents_alone_are_a_csv(findings, tmp_path):
    findings.to_csv(tmp_path / "a.csv", incidents=True)
    read = pd.read_csv(tmp_path / "a.csv")
    known = (findings.events if findings.rows.evidence is None else findings.incident_table).sort_values("rank")
    assert read.iloc[:, 0].tolist() == known.index.tolist()
    assert pd.to_datetime(read["start"]).tolist() == known["start"].tolist()
    assert read["duration"].tolist() == known["duration"].dt.total_seconds().tolist()


def test_a_workbook_reads_back(findings, tmp_path):
    pytest.importorskip("openpyxl")
    findings.to_excel(tmp_path / "a.xlsx")
    sheets = pd.read_excel(tmp_path / "a.xlsx", sheet_name=None)
    kind, known = "incidents", findings.incident_table
    if findings.assessment.method != "SensorDetector":
        kind, known = "events", findings.events
    assert list(sheets) == [kind, "findings", "sensors", "settings"]
    known, read = known.sort_values("rank"), sheets[kind]
    assert read[kind[:-1]].tolist() == known.index.tolist()
    assert read["start"].tolist() == known["start"].tolist()
    assert read["duration"].tolist() == known["duration"].dt.total_seconds().tolist()
    sensors = sheets["sensors"].set_index("sensor")
    assert set(findings.inputs.choice.as_they_are) <= set(sensors.index)
    assert sensors.loc[findings.inputs.names[0], "use"] == "as it is"
    if findings.incidents:
        assert read["reason"].tolist() == known["reason"].tolist()
        worst = min(findings.incidents, key=lambda incident: incident.rank)
        moved = known["sensors"].to_numpy() > 0  # of the others no single sensor left its range
        assert (read["in_order"].str.contains("(first)", regex=False).fillna(False).to_numpy(bool) == moved).all()
        numbers = str(sensors.loc[worst.sensors[0].name, "incidents"]).removesuffix(".0").split(", ")
        assert str(worst.number) in numbers
        assert sensors["to_look_at_first"].sum() == len(findings.incidents)
        assert sheets["findings"]["incident"].tolist() == [number_of(findings, row) for row in findings.top().index]
    np.testing.assert_allclose(sheets["findings"]["score"], findings.top()["score"])
    assert sheets["findings"]["time"].tolist() == findings.top()["time"].tolist()
    assert dict(zip(sheets["settings"]["setting"], sheets["settings"]["value"], strict=True))["top"] == 12
    assert sheets["settings"].iloc[0].tolist() == ["verdict", findings.verdict.sentence]


def number_of(findings, row):
    """The incident of a row of the source; tables here are in the order of the source."""
    return next(incident.number for incident in findings.incidents if row in incident.rows)


def test_a_workbook_holds_no_formulas_and_no_zone(tmp_path):
    openpyxl = pytest.importorskip("openpyxl")
    table = plant().rename(columns={HOT: "=1+1"}).assign(kind="\x07@x")
    detect(table, top=5, timezone="Europe/Berlin", columns=["=1+1", "oil"]).to_excel(tmp_path / "a.xlsx")
    book = openpyxl.load_workbook(tmp_path / "a.xlsx")
    cells = [cell for sheet in book for row in sheet.iter_rows() for cell in row]
    assert any(str(cell.value).startswith("=1+1") for cell in cells)
    assert not [cell for cell in cells if cell.data_type == "f"]


def test_plots_are_drawn(findings, monkeypatch):
    matplotlib = pytest.importorskip("matplotlib")
    matplotlib.use("Agg")
    score, threshold = findings.plot().axes[0].get_lines()
    drawn = score.get_ydata()
    np.testing.assert_array_equal(drawn[~np.isnan(drawn)], findings.scores[~np.isnan(findings.scores)])
    assert set(threshold.get_ydata()) == {findings.threshold}
    figure = findings.plot()
    figure.canvas.draw()
    shaded, table = (
        figure.axes[0].patches,
        findings.events if findings.rows.evidence is None else findings.incident_table,
    )
    assert len(shaded) == len(table)
    for patch, start in zip(shaded, table.sort_values("rank")["start"], strict=True):
        assert matplotlib.dates.num2date(patch.get_x(), tz="UTC").replace(tzinfo=None) == pytest.approx(
            start.to_pydatetime(), abs=pd.Timedelta("1s")
        )
    numbers = {int(text.get_text()) for text in figure.axes[0].texts}
    assert numbers <= set(table.index[table["rank"] <= 10])
    assert table["rank"].idxmin() in numbers
    name = findings.incidents[0].sensors[0].name if findings.incidents else findings.explain(1).variables["variable"][0]
    first = {axis.get_title(loc="left"): axis for axis in findings.plot(1).axes}[name]
    assert first.get_ylabel() == findings.inputs.units[name]
    expected, actual, *_ = first.get_lines()
    assert len(actual.get_ydata()) == len(expected.get_ydata()) > 4
    with pytest.raises(KeyError, match=r"There is no (incident|event) 99"):
        findings.plot(99)
    scores, threshold, highest = KNNDistance().fit(findings.inputs.values.dropna()).plot(3).axes[0].get_lines()
    assert len(scores.get_xdata()) == len(findings.inputs.values.dropna())
    assert sorted(highest.get_ydata()) == sorted(scores.get_ydata())[-3:]
    matplotlib.pyplot.close("all")
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(ImportError, match=r"penstock\[plots\]"):
        findings.plot()


@pytest.fixture(scope="module")
def ranked_findings():
    return detect(plant(), top=12, method="nsnmf", parameters={"similarity": "relative"})


def test_the_list_is_ranked(ranked_findings):
    top = ranked_findings.top()
    assert top["rank"].tolist() == list(range(1, 13))
    assert (np.diff(top["score"]) <= 0).all()
    assert set(top.index[:5]) == set(FAULT)
    assert top.index.tolist() == positions(ranked_findings).tolist()
    columns = ["rank", "score", "time", "expected_by_chance", "event", "mode", "seen", "variables"]
    assert top.columns.tolist() == columns
    assert (top["time"] == ranked_findings.table.time[positions(ranked_findings)]).all()
    assert set(top["mode"]) == {"all"}
    assert (top["seen"] == 1).all()
    assert (top["variables"].head(5).str.split(", ").str[0] == HOT).all()
    assert ranked_findings.top(3).equals(top.head(3))
    assert len(ranked_findings.top(99)) == 12
    for n in (0, -1, 1.5, True):
        with pytest.raises(ParameterError) as refused:
            ranked_findings.top(n)
        assert refused.value.parameter == "n"


def test_events_and_days_are_those_of_the_list(ranked_findings):
    top, events, days = ranked_findings.top(), ranked_findings.events, ranked_findings.rows.days
    assert top["expected_by_chance"].isna().all()
    assert ranked_findings.assessment.chance_unknown == "This method gives scores without a rate."
    rows = np.concatenate([ranked_findings.rows.grouped.rows_of(event) for event in events.index])
    assert sorted(rows) == sorted(positions(ranked_findings))
    assert events["rows"].sum() == days["rows"].sum() == 12
    assert days["rows"].tolist() == top["time"].dt.normalize().value_counts().sort_index().tolist()
    assert days["highest"].max() == ranked_findings.scores.max()


def test_rows_are_numbered_as_in_the_source():
    table = plant().iloc[::-1].reset_index(drop=True)
    found = detect(table, top=5).top()
    assert {table.loc[row, "time"] for row in found.index} == set(found["time"])


def test_variables_are_ranked_by_their_residuals(ranked_findings):
    off = np.abs(residuals(ranked_findings))
    for row in ranked_findings.top().itertuples():
        worst = sorted(range(6), key=lambda column: (-off[row.Index, column], column))[:3]
        assert row.variables == ", ".join(NAMES[column] for column in worst)


def test_no_findings_are_findings_too():
    ranked_findings = detect(plant(), method="mean", threshold=Fixed(1e9))
    assert not ranked_findings.flags.any()
    assert ranked_findings.top().empty
    assert ranked_findings.top().columns.tolist() == detect(plant(), method="mean", top=3).top().columns.tolist()
    assert ranked_findings.events.empty
    assert ranked_findings.rows.days.empty
    for words in ("the table", "0 of 260 rows", "MeanDistance", ranked_findings.verdict.sentence):
        assert words in repr(ranked_findings)
    assert ranked_findings.verdict.sentence in ranked_findings._repr_html_()
    with pytest.raises(KeyError, match="There are no events"):
        ranked_findings.explain(1)


def test_notebooks_are_safe_from_hostile_names(tmp_path):
    name = "<script>alert(1)</script>"
    path = tmp_path / "<b>plant<b>.csv"
    plant().rename(columns={HOT: name}).to_csv(path, index=False)
    for method in ("detector", "auto"):
        found = detect(path, top=5, method=method)
        shown = found._repr_html_()
        assert shown.startswith(f"<p><strong>{found.verdict.sentence}</strong></p><p>5 findings ")
        assert "<table" in shown
        for hostile in ("<script", "<b>"):
            assert hostile not in shown
        assert found.explain(1).variables["variable"].iloc[0] == name
    assert "&lt;script&gt;" in shown  # the sensor to look at first


def test_without_time_rows_are_numbered_as_in_the_source():
    """Also where only some rows are used, and in another order."""
    table = plant(time=False).assign(fault=0, run=np.repeat(["b", "a"], 130))
    table.loc[list(FAULT), "fault"] = 1
    table.loc[list(FAULT), list(NAMES)] *= 3
    whole = detect(table, label="fault", exclude="run", top=5, method="mean", exclude_periods="0..99")
    part = detect(table, label="fault", exclude="run", top=5, method="mean", since=100)
    assert part.events[["start", "end", "peak"]].equals(whole.events[["start", "end", "peak"]])
    faults = ["start", "end", "first_alarm", "lead"]
    assert part.assessment.agreement.faults[faults].equals(whole.assessment.agreement.faults[faults])
    assert part.events[["start", "end"]].to_numpy().tolist() == [[200, 204]]
    shuffled = detect(table.iloc[::-1], group="run", label="fault", top=5, method="mean")
    assert shuffled.assessment.agreement.faults["start"].tolist() == [55]  # in the reversed table
