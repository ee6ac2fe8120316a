"""Why an event is one, of detectors that rebuild rows, of others, and of `penstock.Detector` with its rates."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from detection_tables import FAULT, HOT, plant, readings, residuals, rows_found, two_modes

from penstock import NSNMF, Detector, detect, fit_model, score
from penstock.detection import METHODS
from penstock.detectors import MeanDistance, restore, state_of
from penstock.detectors.views import VIEWS
from penstock.thresholds import Fixed


@pytest.fixture(scope="module", params=["all", "modes", "period", "mean", "knn in modes", "online", "views", "sensors"])
def findings(request):
    options = {
        "all": {"top": 12, "method": "nsnmf"},
        "modes": {"top": 12, "method": "nsnmf", "modes": "state"},
        "period": {"top": 12, "method": "nsnmf", "train_until": "2024-05-01"},
        "views": {"top": 12, "method": "detector", "modes": "state"},
        "sensors": {"top": 60, "modes": "state"},
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
        assert set(variables["position"]) <= set(findings.rows.grouped.rows_of(event))
        for row in variables.itertuples():
            assert findings.inputs.values.loc[findings.inputs.values.index[row.position], row.variable] == row.actual
            assert (
                findings.inputs.expected.loc[findings.inputs.values.index[row.position], row.variable] == row.expected
            )


def test_shares_are_of_squared_residuals_or_of_scores_or_evidence_where_those_are_told(findings):
    for event in findings.events.index:
        rows, peak = findings.rows.grouped.rows_of(event), int(findings.events.loc[event, "peak_row"])
        rows = rows[findings.rows.modes[rows] == findings.rows.modes[peak]]
        if findings.rows.evidence is not None:
            weights = (findings.rows.evidence[rows] ** 2).sum(axis=0)
        elif findings.rows.contributions is None:
            weights = (residuals(findings, rows) ** 2).sum(axis=0)
        else:
            weights = np.maximum(
                findings.rows.contributions.of(rows[findings.scores[rows] > 0]).variables.sum(axis=0), 0
            )
        expected = dict(zip(findings.inputs.names, weights / weights.sum(), strict=True))
        for row in findings.explain(event).variables.itertuples():
            assert row.share == pytest.approx(expected[row.variable], rel=1e-6)


def test_neighbors_are_usual_rows_of_the_same_mode(findings):
    for event in findings.events.index:
        neighbors, peak = findings.explain(event).neighbors, int(findings.events.loc[event, "peak_row"])
        positions = neighbors["position"].to_numpy()
        mode = findings.rows.modes[peak]
        part = next(part for part in findings.rows.parts if part.part.mode == mode)
        assert len(positions) == 3
        assert (findings.rows.modes[positions] == mode).all()
        assert not findings.flags[positions].any()
        assert np.isin(positions, part.fitted).all()
        assert (findings.scores[positions] <= np.median(findings.scores[part.fitted])).all()
        assert (np.diff(neighbors["distance"]) >= 0).all()
        assert (neighbors["row"] == findings.table.values.index[positions]).all()
        assert (neighbors["time"].to_numpy() == findings.table.time[positions].to_numpy()).all()


def test_expected_is_the_mean_of_the_neighbors_unless_the_detector_says_it(findings):
    for event in findings.events.index:
        why, peak = findings.explain(event), int(findings.events.loc[event, "peak_row"])
        mean = findings.inputs.values.iloc[why.neighbors["position"]].mean()
        assert (
            why.rebuilt == findings.inputs.rebuilt == hasattr(findings.rows.parts[0].part.detector, "inverse_transform")
        )
        assert (", rebuilt as " in str(why)) == why.rebuilt
        assert (", expected " in str(why)) != why.rebuilt
        if findings.rows.evidence is not None:
            detector = next(each.part.detector for each in findings.rows.parts if peak in each.rows)
            given_others = detector.expected(findings.inputs.values.to_numpy()[[peak]])[0]
            np.testing.assert_allclose(findings.inputs.expected.iloc[peak], given_others, rtol=1e-12)
        elif not why.rebuilt:
            np.testing.assert_allclose(findings.inputs.expected.iloc[peak], mean, rtol=1e-12)
            shown = why.comparison
            np.testing.assert_allclose(shown["expected"], shown.filter(like="neighbor").mean(axis=1), rtol=1e-12)


def test_comparisons_show_the_peak_and_its_neighbors(findings):
    for event in findings.events.index:
        why, peak = findings.explain(event), int(findings.events.loc[event, "peak_row"])
        compared = why.comparison
        assert compared.columns.tolist() == ["actual", "expected", "neighbor 1", "neighbor 2", "neighbor 3"]
        assert compared.index.tolist() == why.variables["variable"].tolist()
        for name in compared.index:
            assert compared.loc[name, "actual"] == findings.inputs.values.iloc[peak][name]
            first = why.neighbors["position"].iloc[0]
            assert compared.loc[name, "neighbor 1"] == findings.inputs.values.iloc[first][name]


def test_rules_count_rows_of_the_same_mode(findings):
    values = findings.inputs.values.to_numpy()
    for event in findings.events.index:
        rule, peak = findings.explain(event).rule, int(findings.events.loc[event, "peak_row"])
        if rule is None:
            continue
        of_mode = findings.rows.scored & (findings.rows.modes == findings.rows.modes[peak])
        is_event = of_mode & (findings.rows.grouped.of_row == event)
        met = rule.holds(values, findings.inputs.names)
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


def test_a_table_that_was_not_fitted_to_has_no_neighbors():
    model = fit_model(plant(190))
    findings = score(model, plant().iloc[190:])
    why = findings.explain(int(findings.rows.grouped.of_row[12]))
    assert why.variables["variable"].iloc[0] == HOT
    assert why.neighbors.empty
    assert why.neighbors.columns.tolist() == ["position", "row", "time", "distance", "score"]
    assert why.comparison.columns.tolist() == ["actual", "expected"]


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


def test_where_no_row_is_usual_there_is_nothing_to_compare_with():
    table = np.vstack([np.zeros((6, 2)), np.eye(2).repeat(3, axis=0), np.full((6, 2), 2.0)])
    findings = detect(table, method="mean", top=17)
    for event in findings.events.index:
        why = findings.explain(event)
        assert len(why.neighbors) <= 1
        assert not why.neighbors["position"].isin(np.flatnonzero(findings.flags)).any()


@pytest.mark.parametrize("method", ["knn", "nsnmf"])
def test_the_nearest_usual_rows_are_the_neighbors(method):
    findings = detect(plant(), method=method, top=5)
    values, part = findings.inputs.values.to_numpy(), findings.rows.parts[0]
    scaled = values / part.part.scale
    usual = [
        row for row in range(260) if not findings.flags[row] and findings.scores[row] <= np.median(findings.scores)
    ]
    for event in findings.events.index:
        peak = int(findings.events.loc[event, "peak_row"])
        nearest = sorted(usual, key=lambda row: (np.linalg.norm(scaled[row] - scaled[peak]), row))[:3]
        neighbors = findings.explain(event).neighbors
        assert neighbors["position"].tolist() == nearest
        np.testing.assert_allclose(neighbors["distance"], np.linalg.norm(scaled[nearest] - scaled[peak], axis=1))


REBUILD_NOTHING = ["knn", "lomst", "mean", "norm", "online"]


@pytest.mark.parametrize("method", REBUILD_NOTHING)
def test_what_is_expected_of_new_rows_was_fitted_though_all_of_them_are_faulty(method):
    usual, new = readings(200), readings(60, seed=3)
    model = fit_model(usual, method=method)
    new[HOT] += 200
    findings = score(model, new, threshold=Fixed(-1.0))
    assert findings.flags.all()
    low, high = usual[HOT].min(), usual[HOT].max()
    assert findings.inputs.expected[HOT].between(low, high).all()
    assert findings.explain(1).variables["variable"].iloc[0] == HOT


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
    assert findings.inputs.choice.settings == ("limit [MW]", "set point")
    assert set(findings.inputs.choice.settings) <= set(findings.inputs.names)
    event = int(findings.rows.grouped.of_row[202])
    why = findings.explain(event)
    named = {*why.variables["variable"], *(each.variable for each in (why.rule.conditions if why.rule else ()))}
    assert not named & set(findings.inputs.choice.settings)
    assert not any(name in line for line in findings.top()["variables"] for name in findings.inputs.choice.settings)
    assert why.settings.iloc[0][["variable", "unit", "before", "after"]].tolist() == ["limit [MW]", "MW", 5.0, 9.0]
    assert f"setting limit [MW]: 5 → 9 MW ({why.settings.iloc[0]['share']:.0%} of it)" in str(why)
    assert "limit" not in findings.explained.rule_tree
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


OTHERS = [method for method in METHODS if method != "detector"]


@pytest.fixture(scope="module", params=["all", "modes", "period"])
def recommended(request):
    options = {
        "all": {"top": 12},
        "modes": {"top": 12, "modes": "state"},
        "period": {"top": 12, "train_until": "2024-05-01"},
    }[request.param]
    return detect(two_modes(), method="detector", **options)


@pytest.fixture(scope="module")
def model():
    return fit_model(readings(600))


def test_scores_are_the_detectors_own_in_every_mode(recommended):
    for each in recommended.rows.parts:
        assert each.part.usual == 1
        np.testing.assert_array_equal(recommended.scores[each.fitted], each.part.detector.scores_)


def test_rates_are_those_of_the_detector_of_the_mode():
    recommended = detect(two_modes(), method="detector", modes="state", train_until="2024-05-02", top=12)
    peaks = recommended.events["peak_row"].to_numpy()
    for each in recommended.rows.parts:
        mine = each.rows[~recommended.rows.fitted[each.rows]]
        rates = each.part.detector.false_alarm_rate(recommended.inputs.values.to_numpy()[mine])
        expected = dict(zip(mine.tolist(), (2 * len(mine) * rates).tolist(), strict=True))
        for event, peak in zip(recommended.events.index, peaks.tolist(), strict=True):
            if peak in expected:
                found = recommended.events.loc[event, "expected_by_chance"]
                assert found == pytest.approx(expected[peak], rel=1e-12)
    top = recommended.top()["expected_by_chance"]
    assert top[recommended.table.values.index[peaks]].tolist() == recommended.events["expected_by_chance"].tolist()


def test_rows_that_were_fitted_to_are_compared_with_each_other(recommended):
    own = bool(recommended.rows.fitted[recommended.rows.scored].all())
    assert recommended.assessment.self_scored == own
    assert np.isnan(recommended.assessment.threshold_expected) == own
    assert recommended.assessment.chance_unknown == ""
    assert recommended.top()["expected_by_chance"].notna().all()
    called = recommended.verdict.found
    assert (recommended.top()["expected_by_chance"] <= recommended.verdict.expected).sum() >= min(called, 1)


def test_a_highest_score_that_several_rows_share_is_no_threshold_without_a_figure():
    table = pd.DataFrame(np.random.default_rng(0).normal(size=(2100, 4)), columns=list("abcd"))
    table.iloc[100:700:100] = 9.0  # six equal rows, the highest of the 2,000 fitted to
    model = fit_model(table[:2000])
    one, other = (score(model, table[2000:], threshold=rate) for rate in (0.002, 0.001))
    assert one.threshold == other.threshold == model.training_scores.max()
    assert (
        0.01 < one.assessment.threshold_expected == other.assessment.threshold_expected <= 100 / 2001
    )  # what 2,000 rows can show
    higher, lower = (score(model, table[2000:], threshold=rate) for rate in (0.01, 0.005))
    assert (higher.assessment.threshold_expected, lower.assessment.threshold_expected) == pytest.approx(
        (1.0, 0.5), rel=0.01
    )


@pytest.mark.parametrize("method", OTHERS)
def test_other_methods_tell_a_rank_and_no_views(method):
    found = detect(plant(), method=method, top=5)
    is_series = method in ("sensors", "over-time")
    assert found.assessment.chance_unknown == ("" if is_series else "This method gives scores without a rate.")
    assert found.events["expected_by_chance"].isna().all() == np.isnan(found.assessment.threshold_expected) != is_series
    assert sorted(found.events["rank"]) == list(range(1, len(found.events) + 1))
    assert found.rows.contributions is None
    why = found.explain(1)
    assert (why.parts, why.seen_as) == (None, "")
    assert str(why).startswith("Event 1\n")


def test_parts_add_up_to_the_score_of_the_peak_to_the_last_bit(recommended):
    for event in recommended.events.index:
        why = recommended.explain(event)
        assert tuple(why.parts) == VIEWS
        assert sum(why.parts.values()) == recommended.events.loc[event, "peak_score"]
        assert sum(part != 0 for part in why.parts.values()) <= 2


def test_a_variable_that_is_as_expected_keeps_its_share():
    found = detect(plant(), method="detector", top=5)
    before = found.explain(1).variables
    as_read = found.inputs.expected.assign(**{HOT: found.inputs.values[HOT]})
    none = replace(found.explained, events={})
    found = replace(found, inputs=replace(found.inputs, expected=as_read), explained=none)
    after, shares = found.explain(1).variables, found.explained.shares[0]
    assert after["variable"].iloc[0] == HOT
    assert after["share"].tolist() == before["share"].tolist() == sorted(shares[shares > 0], reverse=True)
    assert after["share"].sum() == pytest.approx(1)
    first = after.iloc[0]
    assert (first["difference"], first["direction"], first["unit"]) == (0, "", "°C")
    rows = found.rows.grouped.rows_of(1)
    assert (
        first["position"]
        == rows[found.rows.contributions.of(rows).variables[:, found.inputs.names.index(HOT)].argmax()]
    )
    assert first["actual"] == first["expected"] == found.inputs.values[HOT].iloc[first["position"]]
    others = [column for column in after if column != "row"]
    pd.testing.assert_frame_equal(after.loc[1:, others], before.loc[1:, others])


def test_rows_that_are_more_usual_than_usual_are_explained_by_residuals(model):
    calm = readings(600).iloc[[int(model.training_scores.argmin())]]
    found = score(model, calm, threshold=Fixed(-100.0))
    assert found.scores[0] < 0
    why = found.explain(1)
    assert sum(why.parts.values()) == found.scores[0]
    squares = residuals(found)[0] ** 2
    expected = dict(zip(found.inputs.names, squares / squares.sum(), strict=True))
    assert why.variables["share"].tolist() == pytest.approx([expected[name] for name in why.variables["variable"]])


def test_expected_is_what_the_other_variables_go_with():
    rng = np.random.default_rng(0)
    load = rng.uniform(40, 60, 500)
    table = pd.DataFrame({"load": load, "bearing": 30 + load / 2, "oil": 20 + load / 3, "flow": load / 5})
    table += rng.normal(scale=0.05, size=table.shape)
    table.loc[100:103, "bearing"] += 12
    found = detect(table, top=4)
    assert rows_found(found) == [100, 101, 102, 103]
    error = (found.inputs.expected - table.assign(bearing=table["bearing"] - np.where(found.flags, 12, 0)))[found.flags]
    assert (
        error.abs().max() < [3, 1.5, 1, 0.6]
    ).all()  # those of rows with a bearing as hot would be off by 10 of load


@pytest.mark.parametrize("rate", [0.05, 0.01, 1e-4])
def test_a_share_is_a_rate_of_false_alarms(model, rate):
    detector = model.parts[0].detector
    found = score(model, readings(2000, seed=1), threshold=rate)
    assert found.threshold == restore(state_of(detector)).set_false_alarm_rate(rate).threshold_
    assert found.assessment.threshold_expected <= 2000 * rate * (1 + 1e-9)
    assert found.flags.mean() < 3 * rate + 0.005


def test_a_share_of_other_methods_is_one_of_the_rows():
    assert detect(plant(), method="knn", threshold=0.001).flags.sum() == 1
    assert detect(plant(), method="knn", threshold=0.05).flags.sum() == 13
    assert detect(plant(), method="detector", threshold=0.001, train_until="2024-05-01").flags.sum() == len(FAULT)
