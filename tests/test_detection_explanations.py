"""Why an event is one."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from detection_tables import FAULT, HOT, plant, readings, residuals, two_modes

from penstock import NSNMF, Detector, MeanDistance, detect, fit_model
from penstock.detection import score
from penstock.detection._parts import are_usual
from penstock.thresholds import Fixed


@pytest.fixture(scope="module", params=["all", "modes", "period", "mean", "knn in modes", "online", "views"])
def findings(request):
    options = {
        "all": {"top": 12, "method": "nsnmf"},
        "modes": {"top": 12, "method": "nsnmf", "modes": "state"},
        "period": {"top": 12, "method": "nsnmf", "train_until": "2024-05-01"},
        "views": {"top": 12, "modes": "state"},
        "mean": {"top": 12, "method": "mean"},
        "knn in modes": {"top": 12, "method": "knn", "modes": "state", "train_until": "2024-05-01"},
        "online": {"top": 12, "method": "online", "exclude": "state"},
    }[request.param]
    return detect(two_modes(), **options)


def test_shares_are_sorted_and_no_more_than_all(findings):
    for event in findings.events.index:
        variables = findings.explain(event).variables
        assert (np.diff(variables["share"]) <= 0).all()
        assert 0 < variables["share"].sum() <= 1 + 1e-12
        assert (variables["difference"] == variables["actual"] - variables["expected"]).all()
        assert ((variables["difference"] > 0) == (variables["direction"] == "above")).all()
        assert set(variables["position"]) <= set(findings.grouped.rows_of(event))
        for row in variables.itertuples():
            assert findings.values.loc[findings.values.index[row.position], row.variable] == row.actual
            assert findings.expected.loc[findings.values.index[row.position], row.variable] == row.expected


def test_shares_are_of_squared_residuals_or_of_scores_where_those_are_told(findings):
    for event in findings.events.index:
        rows, peak = findings.grouped.rows_of(event), int(findings.events.loc[event, "peak_row"])
        rows = rows[findings.modes[rows] == findings.modes[peak]]
        if findings.contributions is None:
            weights = (residuals(findings, rows) ** 2).sum(axis=0)
        else:
            weights = np.maximum(findings.contributions.of(rows[findings.scores[rows] > 0]).variables.sum(axis=0), 0)
        expected = dict(zip(findings.names, weights / weights.sum(), strict=True))
        for row in findings.explain(event).variables.itertuples():
            assert row.share == pytest.approx(expected[row.variable], rel=1e-6)


def test_neighbors_are_usual_rows_of_the_same_mode(findings):
    for event in findings.events.index:
        neighbors, peak = findings.explain(event).neighbors, int(findings.events.loc[event, "peak_row"])
        positions = neighbors["position"].to_numpy()
        mode = findings.modes[peak]
        part = next(part for part in findings.parts if part.part.mode == mode)
        assert len(positions) == 3
        assert (findings.modes[positions] == mode).all()
        assert not findings.flags[positions].any()
        assert np.isin(positions, part.learnt).all()
        assert (findings.scores[positions] <= np.median(findings.scores[part.learnt])).all()
        assert (np.diff(neighbors["distance"]) >= 0).all()
        assert (neighbors["steps"] >= 1).all()
        assert (neighbors["row"] == findings.table.values.index[positions]).all()
        assert (neighbors["time"].to_numpy() == findings.table.time[positions].to_numpy()).all()
        values, scale = findings.values.to_numpy(), part.part.scale
        straight = np.linalg.norm((values[positions] - values[peak]) / scale, axis=1)
        if findings.contributions is None:  # else not all variables are compared
            assert (straight <= neighbors["distance"] + 1e-9).all()  # along the tree it is farther


def test_expected_is_the_mean_of_the_neighbors_unless_it_is_rebuilt(findings):
    for event in findings.events.index:
        why, peak = findings.explain(event), int(findings.events.loc[event, "peak_row"])
        mean = findings.values.iloc[why.neighbors["position"]].mean()
        assert why.rebuilt == findings.rebuilt == hasattr(findings.parts[0].part.detector, "inverse_transform")
        assert (", rebuilt as " in str(why)) == why.rebuilt
        assert (", expected " in str(why)) != why.rebuilt
        if not why.rebuilt:
            np.testing.assert_allclose(findings.expected.iloc[peak], mean, rtol=1e-12)
            shown = why.comparison
            np.testing.assert_allclose(shown["expected"], shown.filter(like="neighbor").mean(axis=1), rtol=1e-12)


def test_comparisons_show_the_peak_and_its_neighbors(findings):
    for event in findings.events.index:
        why, peak = findings.explain(event), int(findings.events.loc[event, "peak_row"])
        compared = why.comparison
        assert compared.columns.tolist() == ["actual", "expected", "neighbor 1", "neighbor 2", "neighbor 3"]
        assert compared.index.tolist() == why.variables["variable"].tolist()
        for name in compared.index:
            assert compared.loc[name, "actual"] == findings.values.iloc[peak][name]
            first = why.neighbors["position"].iloc[0]
            assert compared.loc[name, "neighbor 1"] == findings.values.iloc[first][name]


def test_rules_count_rows_of_the_same_mode(findings):
    values = findings.values.to_numpy()
    for event in findings.events.index:
        rule, peak = findings.explain(event).rule, int(findings.events.loc[event, "peak_row"])
        if rule is None:
            continue
        of_mode = findings.judged & (findings.modes == findings.modes[peak])
        is_event = of_mode & (findings.grouped.of_row == event)
        met = rule.holds(values, findings.names)
        assert (rule.event_rows, rule.hits) == (is_event.sum(), (met & is_event).sum())
        normal = of_mode & ~findings.flags
        assert (rule.normal_rows, rule.false_hits) == (normal.sum(), (met & normal).sum())


def test_events_are_explained_once_and_unknown_ones_are_refused(findings):
    assert findings.explain(1) is findings.explain(1)
    last = len(findings.events)
    for event in (0, last + 1, -1, "1", None, 1.5):
        with pytest.raises(KeyError, match=f"numbered from 1 to {last}"):
            findings.explain(event)
    assert findings.explain(np.int64(1)) is findings.explain(1)


def test_an_explanation_can_be_read(findings):
    text = str(findings.explain(1))
    assert text.startswith("Event 1\n" if findings.contributions is None else "Event 1: ")
    assert "rule: " in text


def test_a_table_that_was_not_learnt_from_has_no_neighbors():
    model = fit_model(plant(190))
    findings = score(model, plant().iloc[190:])
    why = findings.explain(int(findings.grouped.of_row[12]))
    assert why.variables["variable"].iloc[0] == HOT
    assert why.neighbors.empty
    assert why.neighbors.columns.tolist() == ["position", "row", "time", "distance", "steps", "score"]
    assert why.comparison.columns.tolist() == ["actual", "expected"]


def test_without_time_there_is_none_in_the_neighbors():
    findings = detect(plant(time=False), top=5)
    assert "time" not in findings.explain(1).neighbors
    assert len(findings.explain(1).neighbors) == 3


def test_a_row_that_was_learnt_is_its_own_node_and_another_the_nearest():
    findings = detect(plant(), method="nsnmf", train_until="2024-05-01", top=5)
    values, part = findings.values.to_numpy(), findings.parts[0]
    scaled = values / part.part.scale
    event = int(findings.grouped.of_row[200])
    peak = int(findings.events.loc[event, "peak_row"])
    nearest = np.linalg.norm(scaled[:144] - scaled[peak], axis=1).min()
    neighbors = findings.explain(event).neighbors
    assert (neighbors["distance"] >= nearest * (1 - 1e-9)).all()


@pytest.mark.parametrize(("method", "parameters"), [("nsnmf", {"similarity": "relative"}), ("nmf", {})])
def test_equal_rows_are_explained_too(method, parameters):
    table = plant(time=False)
    table = table.iloc[np.r_[0:40, 0:40, 0:40, 200:202, 40:60]].reset_index(drop=True)
    findings = detect(table, method=method, parameters=parameters, top=2)
    assert np.flatnonzero(findings.flags).tolist() == [120, 121]
    why = findings.explain(1)
    assert why.variables["variable"].iloc[0] == HOT
    assert not findings.flags[why.neighbors["position"]].any()
    assert len(why.neighbors) == 3


def test_where_no_row_is_usual_there_is_nobody_to_compare_with():
    table = np.vstack([np.zeros((6, 2)), np.eye(2).repeat(3, axis=0), np.full((6, 2), 2.0)])
    findings = detect(table, method="mean", top=17)
    for event in findings.events.index:
        why = findings.explain(event)
        assert len(why.neighbors) <= 1
        assert not why.neighbors["position"].isin(np.flatnonzero(findings.flags)).any()


def test_a_detector_without_a_tree_shows_the_nearest_usual_rows():
    findings = detect(plant(), method="knn", top=5)
    values, part = findings.values.to_numpy(), findings.parts[0]
    scaled = values / part.part.scale
    usual = [
        row for row in range(260) if not findings.flags[row] and findings.scores[row] <= np.median(findings.scores)
    ]
    for event in findings.events.index:
        peak = int(findings.events.loc[event, "peak_row"])
        nearest = sorted(usual, key=lambda row: (np.linalg.norm(scaled[row] - scaled[peak]), row))[:3]
        neighbors = findings.explain(event).neighbors
        assert neighbors["position"].tolist() == nearest
        assert (neighbors["steps"] == 1).all()
        np.testing.assert_allclose(neighbors["distance"], np.linalg.norm(scaled[nearest] - scaled[peak], axis=1))


def test_the_nearest_row_that_was_learnt_is_the_first_neighbor_if_it_is_usual():
    findings = detect(plant(), method="nsnmf", train_until="2024-05-01", top=110, gap=0)
    part, learnt = findings.parts[0].part, findings.parts[0].learnt
    scaled, usual = part.scaled(findings.values.to_numpy()), are_usual(learnt, findings.scores, findings.flags)
    seen = 0
    for event, row in findings.events["peak_row"].items():
        distances = np.linalg.norm(scaled[learnt] - scaled[row], axis=1)
        neighbors = findings.explain(event).neighbors
        assert neighbors["position"].nunique() == 3
        assert (np.diff(neighbors["distance"]) >= 0).all()
        assert neighbors["steps"].min() >= 1
        if usual[distances.argmin()]:
            seen += 1
            assert (neighbors["position"][0], neighbors["steps"][0]) == (learnt[distances.argmin()], 1)
            assert neighbors["distance"][0] == pytest.approx(distances.min())
    assert seen > 20


def test_a_copy_of_a_row_that_was_learnt_has_that_as_its_neighbor():
    table = plant()
    learnt = detect(table, method="nsnmf", train_until="2024-05-01", top=5)
    usual = int(np.nanargmin(np.where(learnt.trained, learnt.scores, np.nan)))
    table.iloc[250, 1:] = table.iloc[usual, 1:]
    findings = detect(table, method="nsnmf", train_until="2024-05-01", threshold=Fixed(-1.0), gap=0)
    first = findings.explain(int(findings.grouped.of_row[250])).neighbors.iloc[0]
    assert (first["position"], first["distance"], first["steps"]) == (usual, 0.0, 1)


REBUILD_NOTHING = ["knn", "lomst", "mean", "norm", "online"]


@pytest.mark.parametrize("method", REBUILD_NOTHING)
def test_what_is_expected_of_new_rows_was_learnt_though_all_of_them_are_faulty(method):
    usual, new = readings(200), readings(60, seed=3)
    model = fit_model(usual, method=method)
    new[HOT] += 200
    findings = score(model, new, threshold=Fixed(-1.0))
    assert findings.flags.all()
    low, high = usual[HOT].min(), usual[HOT].max()
    assert findings.expected[HOT].between(low, high).all()
    assert findings.explain(1).variables["variable"].iloc[0] == HOT


@pytest.mark.parametrize("method", REBUILD_NOTHING)
def test_what_is_expected_after_a_training_period_is_of_that(method):
    table = plant()
    table.loc[100:, HOT] += 300  # most rows, also of those that are not findings
    findings = detect(table, train_until="2024-05-01 10:00", method=method, top=5)
    usual = table.loc[findings.trained, HOT]
    assert findings.expected.loc[findings.flags, HOT].between(usual.min(), usual.max()).all()


def test_a_model_keeps_some_usual_rows_only_if_it_rebuilds_none():
    assert fit_model(readings(60), method="nmf").parts[0].reference is None
    part = fit_model(readings(60), method="mean").parts[0]
    usual = part.training_scores <= np.median(part.training_scores)
    assert (part.reference == readings(60).to_numpy()[usual]).all()
    many = fit_model(np.random.default_rng(0).normal(size=(9_000, 2)), method="norm").parts[0].reference
    assert many.shape == (2_000, 2)


def with_settings() -> pd.DataFrame:
    """A limit that was moved for the hot rows alone, and a set point that was moved long before."""
    table = plant()
    table["limit [MW]"] = np.where(np.isin(np.arange(260), list(FAULT)), 9.0, 5.0)
    table["set point"] = np.where(np.arange(260) < 100, 40.0, 60.0)
    return table


@pytest.mark.parametrize("method", [Detector(), NSNMF(2, similarity="normalized", random_state=0), MeanDistance()])
def test_settings_are_no_causes_but_listed_with_before_and_after(method):
    findings = detect(with_settings(), method=method, top=5)
    assert findings.inputs.settings == ("limit [MW]", "set point")
    assert set(findings.inputs.settings) <= set(findings.names)
    event = int(findings.grouped.of_row[202])
    why = findings.explain(event)
    named = {*why.variables["variable"], *(each.variable for each in (why.rule.conditions if why.rule else ()))}
    assert not named & set(findings.inputs.settings)
    assert not any(name in line for line in findings.top()["variables"] for name in findings.inputs.settings)
    assert why.settings.iloc[0][["variable", "unit", "before", "after"]].tolist() == ["limit [MW]", "MW", 5.0, 9.0]
    assert f"setting limit [MW]: 5 → 9 MW ({why.settings.iloc[0]['share']:.0%} of it)" in str(why)
    text = str(findings.rule_tree)
    assert "limit" not in text
    note = next(note for note in findings.notes if note.kind == "settings")
    assert note.message.startswith("2 inputs change in under 5 % of the steps, as settings and states do ('limit [MW]'")


def test_settings_are_known_from_the_training_rows():
    """In the new rows a sensor is stuck and a set point moves at every step: the one is a cause, the other none."""
    model = fit_model(with_settings().iloc[:200], method="mean")
    assert model.inputs.settings == ("set point",)
    new = with_settings().iloc[200:]
    new["oil"] = 50.0
    new["set point"] = np.arange(60) * 10.0
    why = model.score(new, top=3).explain(1)
    assert "oil" in set(why.variables["variable"])
    assert "set point" not in set(why.variables["variable"])


def test_settings_are_named_where_there_is_nothing_else():
    findings = detect(with_settings()[["time", "limit [MW]", "set point"]], method="mean", top=5)
    assert set(findings.explain(1).variables["variable"]) <= {"limit [MW]", "set point"}
    assert len(findings.explain(1).variables)
    note = next(note for note in findings.notes if note.kind == "settings")
    assert note.message.endswith("There is no other input, so they are named as causes all the same.")


def test_a_state_in_words_may_be_the_cause():
    table = plant().assign(state=np.where(np.isin(np.arange(260), list(FAULT)), "off", "on"))
    findings = detect(table, method="mean", top=5)
    assert findings.inputs.settings == ()
    assert "state=off" in set(findings.explain(1).variables["variable"])
