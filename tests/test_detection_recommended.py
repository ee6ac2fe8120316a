"""The whole job with `penstock.Detector`, the default: scores below 0, views, variables, and rates of false alarms."""

from __future__ import annotations

import inspect
import json
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from detection_tables import FAULT, HOT, NAMES, plant, positions, readings, residuals, rows_found, two_modes

from penstock import Detector, detect, fit_model, score
from penstock.detection import METHODS, explain, load_model, make_detector
from penstock.detection._parts import Contributions
from penstock.detection._wording import how_rare, rows_that, seen_as
from penstock.detectors import restore, state_of
from penstock.detectors.views import VIEWS
from penstock.report import write_findings
from penstock.thresholds import Fixed

OTHERS = [method for method in METHODS if method != "detector"]


@pytest.fixture(scope="module", params=["all", "modes", "period"])
def findings(request):
    options = {
        "all": {"top": 12},
        "modes": {"top": 12, "modes": "state"},
        "period": {"top": 12, "train_until": "2024-05-01"},
    }[request.param]
    return detect(two_modes(), **options)


@pytest.fixture(scope="module")
def model():
    return fit_model(readings(600))


def test_it_is_the_default():
    assert METHODS[0] == "detector"
    assert isinstance(make_detector("detector", 3), Detector)
    assert make_detector("detector", 3).random_state == 3
    for function in (detect, fit_model):
        assert inspect.signature(function).parameters["method"].default == "detector"
    assert detect(plant(), top=5).settings["detector"] == repr(Detector())


def test_it_finds_the_fault_and_the_variable():
    found = detect(plant(), top=5)
    assert rows_found(found) == list(FAULT)
    why = found.explain(1)
    assert why.variables["variable"].iloc[0] == HOT
    assert why.variables["share"].iloc[0] > 2 * why.variables["share"].iloc[1]
    assert found.top()["variables"].str.startswith(HOT).all()


def test_scores_are_the_detectors_own_in_every_mode(findings):
    for judged in findings.parts:
        assert judged.part.usual == 1
        np.testing.assert_array_equal(findings.scores[judged.learnt], judged.part.detector.scores_)


def test_scores_below_0_are_judged_like_others():
    found = detect(plant(), threshold=Fixed(-1.0))
    assert found.scores.min() < -1
    np.testing.assert_array_equal(found.flags, found.scores > -1)
    assert (found.events["peak_score"] > -1).all()


def test_rates_are_those_of_the_detector_of_the_mode():
    findings = detect(two_modes(), modes="state", train_until="2024-05-02", top=12)
    assert np.isnan(findings.rates[~findings.flags]).all()
    for judged in findings.parts:
        found = judged.rows[findings.flags[judged.rows]]
        expected = judged.part.detector.false_alarm_rate(findings.values.to_numpy()[found])
        np.testing.assert_array_equal(findings.rates[found], expected)
    peaks = findings.events["peak_row"].to_numpy()
    np.testing.assert_array_equal(findings.events["false_alarm_rate"], findings.rates[peaks])
    np.testing.assert_array_equal(findings.top()["false_alarm_rate"], findings.rates[positions(findings)])


def test_rows_that_were_learnt_from_have_a_rank_and_no_rate(findings):
    own = bool(findings.trained[findings.judged].all())
    assert findings.self_judged == own
    assert (findings.rates is None) == (findings.threshold_rate is None) == own
    graded, other = ("standing", "false_alarm_rate") if own else ("false_alarm_rate", "standing")
    for table in (findings.events, findings.top()):
        assert graded in table
        assert other not in table
    if not own:
        return
    assert findings.threshold_rarity == ""
    modes = " over all modes" if len(findings.parts) > 1 else ""
    assert findings.top()["standing"].tolist() == [f"rank {rank} of 400{modes}" for rank in range(1, 13)]
    for event, peak in findings.events["peak_row"].items():
        rank = 1 + int((findings.scores > findings.scores[peak]).sum())
        assert findings.events.loc[event, "standing"] == findings.explain(event).rarity == f"rank {rank} of 400{modes}"


def test_equal_scores_share_their_ranks():
    table = pd.concat([plant(time=False), plant(time=False).iloc[[*FAULT]]], ignore_index=True)
    found = detect(table, top=6)  # the hottest of the fault twice, and so on
    standings = found.top()["standing"].tolist()
    assert standings[:2] == ["rank 1–2 of 265, tied"] * 2
    assert standings[2:4] == ["rank 3–4 of 265, tied"] * 2


def test_a_rank_after_a_training_period_is_among_the_rows_after_it():
    walk = np.cumsum(np.random.default_rng(0).normal(size=(400, 6)), axis=0)
    slow = plant(400)[["time"]].join(pd.DataFrame(walk).add_prefix("sensor_"))
    found = detect(slow, train_until="2024-05-01", top=5)
    assert "like the row before" in {note.kind for note in found.notes}
    assert found.rates is found.threshold_rate is None
    n_new = int((found.judged & ~found.trained).sum())
    assert found.top()["standing"].tolist() == [f"rank {rank} of {n_new}" for rank in range(1, 6)]
    above = int((found.parts[0].part.training_scores > found.threshold).sum())
    assert found.threshold_rarity.startswith(f"{above or 'none'} of the {400 - n_new} rows learnt from exceed")


def test_rates_that_share_a_threshold_are_said_to():
    table = pd.DataFrame(np.random.default_rng(0).normal(size=(2100, 4)), columns=list("abcd"))
    table.iloc[100:700:100] = 9.0  # six equal rows, the highest of the 2,000 learnt from
    model = fit_model(table[:2000])
    one, other = (score(model, table[2000:], threshold=rate) for rate in (0.002, 0.001))
    assert one.threshold == other.threshold == model.training_scores.max()
    for found in (one, other):
        assert found.threshold_rarity == "none of the 2,000 rows learnt from exceeds"
        assert any(
            "and 6 of them have it. They cannot show rates of false alarms below 6 in 2,001" in note.message
            for note in found.notes
        )
    higher, lower = (score(model, table[2000:], threshold=rate) for rate in (0.01, 0.005))
    assert higher.threshold_rarity == "1 in 100 normal rows exceeds"
    assert lower.threshold_rarity == "1 in 200 normal rows exceeds"
    assert "highest score" not in {note.kind for note in (*higher.notes, *lower.notes)}


def test_a_ratio_of_such_scores_is_not_told(findings):
    assert "severity" not in findings.events
    assert "severity" not in findings.top()


@pytest.mark.parametrize("method", OTHERS)
def test_other_methods_tell_a_severity_and_no_views(method):
    found = detect(plant(), method=method, top=5)
    assert "severity" in found.events
    assert "severity" in found.top()
    assert "false_alarm_rate" not in found.events
    assert (found.rates, found.contributions, found.threshold_rate) == (None, None, None)
    assert (set(found.rarity["sentence"]), found.threshold_rarity) == ({""}, "")
    why = found.explain(1)
    assert (why.parts, why.seen_as, why.rarity) == (None, "", "")
    assert str(why).startswith("Event 1\n")


def test_parts_add_up_to_the_score_of_the_peak_to_the_last_bit(findings):
    for event in findings.events.index:
        why = findings.explain(event)
        assert tuple(why.parts) == VIEWS
        assert sum(why.parts.values()) == findings.events.loc[event, "peak_score"]
        assert sum(part != 0 for part in why.parts.values()) <= 2


def test_shares_are_of_the_scores_above_the_usual(findings):
    for event in findings.events.index:
        rows, peak = findings.grouped.rows_of(event), int(findings.events.loc[event, "peak_row"])
        rows = rows[(findings.modes[rows] == findings.modes[peak]) & (findings.scores[rows] > 0)]
        part = next(judged.part for judged in findings.parts if judged.part.mode == findings.modes[peak])
        added = part.detector.explain(findings.values.to_numpy()[rows]).variables.to_numpy()
        np.testing.assert_allclose(added.sum(axis=1), findings.scores[rows])
        added = np.maximum(added.sum(axis=0), 0)
        expected = dict(zip(findings.names, added / added.sum(), strict=True))
        for row in findings.explain(event).variables.itertuples():
            assert row.share == pytest.approx(expected[row.variable], rel=1e-9)


def test_a_variable_that_is_as_expected_keeps_its_share():
    found = detect(plant(), top=5)
    before = found.explain(1).variables
    found = replace(found, expected=found.expected.assign(**{HOT: found.values[HOT]}))
    after, shares = explain(found, 1).variables, found.shares[0]
    assert after["variable"].iloc[0] == HOT
    assert after["share"].tolist() == before["share"].tolist() == sorted(shares[shares > 0], reverse=True)
    assert after["share"].sum() == pytest.approx(1)
    first = after.iloc[0]
    assert (first["difference"], first["direction"], first["unit"]) == (0, "", "°C")
    rows = found.grouped.rows_of(1)
    assert first["position"] == rows[found.contributions.of(rows).variables[:, found.names.index(HOT)].argmax()]
    assert first["actual"] == first["expected"] == found.values[HOT].iloc[first["position"]]
    others = [column for column in after if column != "row"]
    pd.testing.assert_frame_equal(after.loc[1:, others], before.loc[1:, others])


def test_rows_that_are_more_usual_than_usual_are_explained_by_residuals(model):
    calm = readings(600).iloc[[int(model.training_scores.argmin())]]
    found = score(model, calm, threshold=Fixed(-100.0))
    assert found.scores[0] < 0
    why = found.explain(1)
    assert sum(why.parts.values()) == found.scores[0]
    squares = residuals(found)[0] ** 2
    expected = dict(zip(found.names, squares / squares.sum(), strict=True))
    assert why.variables["share"].tolist() == pytest.approx([expected[name] for name in why.variables["variable"]])


def test_an_explanation_in_words(findings):
    text = str(findings.explain(1)).splitlines()
    why = findings.explain(1)
    assert text[0] == f"Event 1: {why.seen_as}; {why.rarity}"
    if findings.self_judged:
        assert why.rarity.startswith("rank ")
    else:
        assert why.rarity.endswith(("scores this high", "score this high"))


def test_a_threshold_of_several_modes_is_over_all_of_them():
    found = detect(two_modes(), modes="state", train_until="2024-05-02", threshold=0.05)
    assert "normal rows over all modes " in found.threshold_rarity
    assert not any("over all modes" in found.explain(event).rarity for event in found.events.index)


def test_rates_beyond_the_rows_of_the_mode_are_extrapolated():
    found = detect(two_modes(), modes="state", train_until="2024-05-02", top=40, gap=0)
    learnt = {judged.part.mode: len(judged.part.training_scores) for judged in found.parts}
    beyond = set()
    for event, peak in found.events["peak_row"].items():
        rate = found.rates[peak]
        extrapolated = bool(rate < 1 / (learnt[found.modes[peak]] + 1))
        beyond.add(extrapolated)
        assert ("(extrapolated)" in found.rarity["sentence"][event]) == extrapolated
        assert found.rarity["figure"][event] == how_rare(rate, extrapolated=extrapolated)
    assert beyond == {True, False}
    far = detect(two_modes(), modes="state", train_until="2024-05-02", threshold=Fixed(1000.0))
    assert "(extrapolated)" in far.threshold_rarity


def test_expected_is_what_the_other_variables_go_with():
    rng = np.random.default_rng(0)
    load = rng.uniform(40, 60, 500)
    table = pd.DataFrame({"load": load, "bearing": 30 + load / 2, "oil": 20 + load / 3, "flow": load / 5})
    table += rng.normal(scale=0.05, size=table.shape)
    table.loc[100:103, "bearing"] += 12
    found = detect(table, top=4)
    assert rows_found(found) == [100, 101, 102, 103]
    error = (found.expected - table.assign(bearing=table["bearing"] - np.where(found.flags, 12, 0)))[found.flags]
    assert (
        error.abs().max() < [3, 1.5, 1, 0.6]
    ).all()  # those of rows with a bearing as hot would be off by 10 of load


def test_what_stands_out_is_half_of_the_score_and_at_most_half_of_the_variables():
    added = np.array([[0.1, 3.0, 0.2, 0.1], [1.0, 1.0, 1.0, 1.0], [-1.0, 2.0, 1.9, 0.0], [1.0, 1.1, 1.0, 0.9]])
    told = Contributions(np.arange(4), np.zeros((4, 4)), added)
    assert [np.flatnonzero(row).tolist() for row in told.standing_out] == [[1], [0, 1], [1], [0, 1]]
    assert not Contributions(np.arange(1), np.zeros((1, 4)), np.array([[5.0]])).standing_out.any()


@pytest.mark.parametrize("rate", [0.05, 0.01, 1e-4])
def test_a_share_is_a_rate_of_false_alarms(model, rate):
    detector = model.parts[0].detector
    found = score(model, readings(2000, seed=1), threshold=rate)
    assert found.threshold == restore(state_of(detector)).set_false_alarm_rate(rate).threshold_
    assert found.threshold_rate <= rate * (1 + 1e-9)
    assert found.flags.mean() < 3 * rate + 0.005


def test_a_share_of_other_methods_is_one_of_the_rows():
    assert detect(plant(), method="knn", threshold=0.001).flags.sum() == 1
    assert detect(plant(), method="knn", threshold=0.05).flags.sum() == 13
    assert detect(plant(), threshold=0.001, train_until="2024-05-01").flags.sum() == len(FAULT)


def test_modes_are_ranked_without_units_of_their_own():
    table = two_modes()
    found = detect(table, modes="state", top=20)
    assert {str(mode) for mode in found.modes[found.flags]} == {"on", "off"}


def test_a_saved_model_gives_the_same(tmp_path, model):
    model.save(tmp_path / "model.penstock")
    loaded = load_model(tmp_path / "model.penstock")
    one, other = score(model, plant(), threshold=0.001), score(loaded, plant(), threshold=0.001)
    np.testing.assert_array_equal(one.scores, other.scores)
    np.testing.assert_array_equal(one.rates, other.rates)
    assert one.threshold == other.threshold
    assert rows_found(one) == rows_found(other) == list(FAULT)
    assert str(one.explain(1)) == str(other.explain(1))


def test_missing_readings_are_no_variables_behind_a_finding():
    table = plant()
    table.loc[200:202, "oil"] = np.nan
    found = detect(table, top=5)
    assert rows_found(found) == list(FAULT)
    variables = found.explain(1).variables
    assert variables["variable"].iloc[0] == HOT
    assert variables[["actual", "expected"]].notna().all(axis=None)


@pytest.mark.parametrize(("options", "graded"), [({}, "standing"), ({"train_until": "2024-05-01"}, "false_alarm_rate")])
def test_files_carry_views_and_ranks_or_rates(tmp_path, options, graded):
    found = detect(plant(), top=5, **options)
    write_findings(found, tmp_path / "findings.csv")
    write_findings(found, tmp_path / "findings.json")
    table = pd.read_csv(tmp_path / "findings.csv")
    assert "severity" not in table
    np.testing.assert_array_equal(table[graded], found.top()[graded])
    assert (table["seen_as"] == found.explain(1).seen_as).all()
    document = json.loads((tmp_path / "findings.json").read_text())
    assert document["summary"]["method"] == "Detector"
    assert document["summary"]["false_alarm_rate"] == found.threshold_rate
    event = document["events"][0]
    assert event["parts"] == found.explain(1).parts
    assert event["seen_as"] == found.explain(1).seen_as
    assert event[graded] == found.events[graded].iloc[0]
    write_findings(detect(plant(), top=5, **options, most_explained=0), tmp_path / "unexplained.json")
    event = json.loads((tmp_path / "unexplained.json").read_text())["events"][0]
    assert event["parts"] is event["seen_as"] is event["rule"] is None


def test_text_that_fills_the_findings_is_doubted():
    table = plant(time=False)[list(NAMES[:3])]
    table["kind"] = "usual"
    table.loc[20:24, "kind"] = "odd"
    table.loc[60:64, "kind"] = "other"
    table[list(NAMES[:3])] = np.random.default_rng(0).normal(size=(260, 3))
    found = detect(table, top=10)
    assert any(note.kind == "text findings" for note in found.notes)


def test_a_parameter_of_another_method_is_refused_with_its_home():
    with pytest.raises(
        ValueError, match=r"Detector has no parameter 'n_components'.* have it: nsnmf, laplacian, online"
    ):
        detect(plant(), parameters={"n_components": 3})


@pytest.mark.parametrize(
    ("rate", "words"),
    [(1.0, "100 in 100"), (0.105, "11 in 100"), (0.1, "1 in 10"), (1 / 3000, "1 in 3,000"), (1 / 12345, "1 in 12,000"),
     (1e-9, "1 in 1,000,000,000"), (9e-10, "fewer than 1 in a billion"), (1e-300, "fewer than 1 in a billion")],
)  # fmt: skip
def test_rates_in_words(rate, words):
    assert how_rare(rate) == words
    assert rows_that(rate, "does", "do").endswith("does" if words.startswith("1 in") else "do")


@pytest.mark.parametrize(
    ("parts", "words"),
    [((3.0, 0.0, 2.0, 0.0), "far from most rows and from its nearest neighbours (coarse 3.0, local 2.0)"),
     ((0.0, 1.0, 0.0, 4.0), "far from all typical rows and with readings that are rare by themselves (fine 1.0, "
      "marginal 4.0)"),
     ((0.0, -0.1, -0.2, 0.0), "hardly unusual (fine −0.1, local −0.2)"), ((0.0, 0.0, 0.0, 0.0), "hardly unusual")],
)  # fmt: skip
def test_views_in_words(parts, words):
    assert seen_as(dict(zip(VIEWS, parts, strict=True))) == words
