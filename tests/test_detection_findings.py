"""What the answer shows: lists, events, days, residuals, and a face for notebooks."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from detection_tables import FAULT, HOT, NAMES, plant, positions, residuals, two_modes

from penstock import detect
from penstock.thresholds import Fixed


@pytest.fixture(scope="module")
def findings():
    return detect(plant(), top=12, method="nsnmf", parameters={"similarity": "relative"})


def test_the_list_is_ranked(findings):
    top = findings.top()
    assert top.index.tolist() == list(range(1, 13))
    assert (np.diff(top["score"]) <= 0).all()
    assert set(top["row"].head(5)) == set(FAULT)
    assert top["row"].tolist() == positions(findings).tolist()
    columns = ["time", "row", "score", "severity", "event", "mode", "seen", "variables"]
    assert top.columns.tolist() == columns
    assert (top["time"] == findings.table.time[positions(findings)]).all()
    assert set(top["mode"]) == {"all"}
    assert (top["seen"] == 1).all()
    assert (top["variables"].head(5).str.split(", ").str[0] == HOT).all()


def test_the_list_has_the_length_asked_for(findings):
    assert len(findings.top(3)) == 3
    assert findings.top(3).equals(findings.top().head(3))
    assert len(findings.top(99)) == 12
    for n in (0, -1, 1.5, True):
        with pytest.raises(ValueError, match="n must be a whole number ≥ 1"):
            findings.top(n)


def test_rows_are_numbered_as_in_the_source():
    table = plant().iloc[::-1].reset_index(drop=True)
    found = detect(table, top=5).top()
    assert {table.loc[row, "time"] for row in found["row"]} == set(found["time"])


def test_variables_are_ranked_by_their_residuals(findings):
    off = np.abs(residuals(findings))
    for row in findings.top().itertuples():
        worst = sorted(range(6), key=lambda column: (-off[row.row, column], column))[:3]
        assert row.variables == ", ".join(NAMES[column] for column in worst)


def test_severity_is_in_units_of_the_threshold(findings):
    top = findings.top()
    np.testing.assert_allclose(top["severity"] * findings.threshold, top["score"])
    assert (top["severity"] > 1).all()
    assert detect(plant(), method="mean", threshold=Fixed(0.0)).top()["severity"].isna().all()


def test_events_hold_all_findings(findings):
    assert findings.events["rows"].sum() == 12
    assert sorted(row for event in findings.events.index for row in findings.grouped.rows_of(event)) == sorted(
        positions(findings)
    )
    assert findings.events["severity"].max() == pytest.approx(findings.top()["severity"].max())


def test_days_count_findings(findings):
    days = findings.days
    assert days["rows"].sum() == 12
    per_day = pd.Series(findings.table.time[findings.flags].normalize()).value_counts().sort_index()
    assert days["rows"].tolist() == per_day.tolist()
    assert days["highest"].max() == findings.scores.max()


def test_residuals_are_in_units_of_the_range(findings):
    spans = findings.values.max() - findings.values.min()
    expected = (findings.values - findings.expected) / spans
    np.testing.assert_allclose(residuals(findings), expected, rtol=1e-9)
    rows = np.array([3, 200])
    np.testing.assert_allclose(residuals(findings, rows), expected.iloc[rows], rtol=1e-9)


def test_residuals_of_modes_are_in_units_of_their_own_range():
    findings = detect(two_modes(), modes="state", method="nmf", top=5)
    for mode in ("on", "off"):
        rows = np.flatnonzero(findings.modes == mode)
        values = findings.values.iloc[rows]
        expected = (values - findings.expected.iloc[rows]) / (values.max() - values.min())
        np.testing.assert_allclose(residuals(findings, rows), expected, rtol=1e-9)


def test_the_rule_tree_tells_findings_from_others(findings):
    tree = findings.rule_tree
    assert tree is not None
    assert findings.rule_tree is tree
    assert detect(plant(), method="mean", threshold=Fixed(1e9)).rule_tree is None


def test_no_findings_are_findings_too():
    findings = detect(plant(), method="mean", threshold=Fixed(1e9))
    assert not findings.flags.any()
    assert findings.top().empty
    assert findings.top().columns.tolist() == detect(plant(), method="mean", top=3).top().columns.tolist()
    assert findings.events.empty
    assert findings.days.empty
    assert repr(findings) == "<Findings in the table: 0 of 260 rows, 0 events>"
    assert "none stands out" in findings._repr_html_()
    with pytest.raises(KeyError, match="There are no events"):
        findings.explain(1)


def test_a_line_says_what_was_found(findings):
    assert repr(findings) == f"<Findings in the table: 12 of 260 rows, {len(findings.events)} events>"


def test_notebooks_are_safe_from_hostile_names(tmp_path):
    name = "<script>alert(1)</script>"
    path = tmp_path / "<b>plant<b>.csv"
    plant().rename(columns={HOT: name}).to_csv(path, index=False)
    findings = detect(path, top=5)
    shown = findings._repr_html_()
    assert shown.startswith("<p><strong>5 of 260 rows</strong> have the highest scores")
    assert "<table" in shown
    for hostile in ("<script", "<b>"):
        assert hostile not in shown
    assert findings.explain(1).variables["variable"].iloc[0] == name


def test_findings_are_frozen(findings):
    with pytest.raises(AttributeError):
        findings.threshold = 3.0


def test_without_time_rows_are_numbered_as_in_the_source():
    """Also where only some rows are used, and in another order."""
    table = plant(time=False).assign(fault=0, run=np.repeat(["b", "a"], 130))
    table.loc[list(FAULT), "fault"] = 1
    table.loc[list(FAULT), list(NAMES)] *= 3
    whole = detect(table, label="fault", exclude="run", top=5, method="mean", exclude_periods="0..99")
    part = detect(table, label="fault", exclude="run", top=5, method="mean", since=100)
    assert part.events[["start", "end", "peak"]].equals(whole.events[["start", "end", "peak"]])
    faults = ["start", "end", "first_alarm", "lead"]
    assert part.agreement.faults[faults].equals(whole.agreement.faults[faults])
    assert part.events[["start", "end"]].to_numpy().tolist() == [[200, 204]]
    shuffled = detect(table.iloc[::-1], group="run", label="fault", top=5, method="mean")
    assert shuffled.agreement.faults["start"].tolist() == [55]  # in the reversed table
