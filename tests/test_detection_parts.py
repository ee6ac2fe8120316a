"""Several modes: each row is scored by the model of its own mode."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from detection_tables import HOT, NAMES, readings, residuals, two_modes

from penstock import NSNMF, detect, fit_model
from penstock.detection import ModelError, make_detector, score
from penstock.detection._parts import usual_scores
from penstock.detectors import limit_components
from penstock.io import TableError


@pytest.mark.parametrize("method", ["nsnmf", "nmf", "knn", "lomst"])
def test_each_row_is_scored_by_its_own_model(method):
    table = two_modes()
    findings = detect(table, modes="state", method=method, top=10)
    for part in findings.parts:
        rows = (table["state"] == part.part.mode).to_numpy()
        by_hand = limit_components(make_detector(method), 6).fit(table.loc[rows, list(NAMES)].to_numpy())
        assert (part.rows == np.flatnonzero(rows)).all()
        assert (part.learnt == part.rows).all()
        np.testing.assert_allclose(findings.scores[rows], by_hand.scores_ / part.part.usual, rtol=1e-12)
        assert part.part.usual == pytest.approx(np.quantile(by_hand.scores_, 0.95))
        assert np.quantile(findings.scores[rows], 0.95) == pytest.approx(1.0)
        if method in ("nsnmf", "nmf"):
            off = np.sqrt((residuals(findings, part.rows) ** 2).sum(axis=1))
            np.testing.assert_allclose(off, findings.scores[rows] * part.part.usual, rtol=1e-9)


def test_new_rows_are_scored_by_the_model_of_their_mode():
    table = two_modes()
    model = fit_model(table.iloc[:300], modes="state", method="nmf")
    findings = score(model, table.iloc[300:])
    for part in model.parts:
        rows = (table["state"].iloc[300:] == part.mode).to_numpy()
        by_hand = part.detector.anomaly_score(table.loc[300:, list(NAMES)].to_numpy()[rows]) / part.usual
        np.testing.assert_allclose(findings.scores[rows], by_hand, rtol=1e-12)
    assert repr(model) == "<Model: NMF, 6 inputs, 300 training rows, 2 modes>"


def test_the_fault_of_a_small_mode_is_not_lost_among_a_large_one():
    table = two_modes()
    table.loc[[60, 61], "oil"] += 0.2  # large for "off", nothing for "on"
    findings = detect(table, modes="state", method="knn", top=12)
    assert {60, 61} <= set(np.flatnonzero(findings.flags))
    assert set(findings.modes[findings.flags]) >= {"off"}


def test_a_mode_with_too_few_rows_is_noted_and_not_judged():
    table = two_modes()
    table.loc[10:14, "state"] = "test"
    findings = detect(table, modes="state", method="mean", top=5)
    assert not findings.judged[10:15].any()
    notes = {note.kind: note for note in findings.notes}
    assert "Mode test has 5 rows to learn from, too few (10 are needed)" in str(notes["small modes"])
    assert [part.part.mode for part in findings.parts] == ["off", "on"]
    with pytest.raises(TableError, match=r"the table has 8 in its largest mode"):
        detect(two_modes(16).assign(state=["a", "b"] * 8), modes="state")


def test_a_single_mode_that_is_judged_keeps_its_scores():
    table = two_modes()
    findings = detect(table, modes="state", skip_modes=["off"], method="nmf", top=5)
    rows = (table["state"] == "on").to_numpy()
    by_hand = limit_components(make_detector("nmf"), 6).fit(table.loc[rows, list(NAMES)].to_numpy())
    assert (findings.scores[rows] == by_hand.scores_).all()


def test_a_mode_that_comes_after_the_training_period_is_noted():
    table = two_modes()
    table.loc[350:, "state"] = "new"
    findings = detect(table, modes="state", train_until="2024-05-02", method="mean", top=5)
    assert not findings.judged[350:].any()
    notes = {note.kind: note for note in findings.notes}
    assert "50 rows of modes that were not learnt (new) cannot be judged" in str(notes["unknown modes"])


def test_new_data_need_not_show_a_mode_that_is_skipped():
    table = two_modes()
    model = fit_model(table, modes="state", skip_modes="off", method="mean")
    findings = score(model, table.iloc[:40])
    assert findings.judged.all()


def test_new_data_of_no_known_mode_are_refused_and_of_a_skipped_one_not():
    table = two_modes()
    model = fit_model(table, modes="state", skip_modes="off", method="mean")
    with pytest.raises(ModelError, match="No row is of a mode that the model knows; the rows are of strange"):
        score(model, table.iloc[:40].assign(state="strange"))
    stopped = score(model, table.iloc[50:100])
    assert not stopped.judged.any()
    assert len(stopped.events) == 0
    with pytest.raises(TableError, match="no column 'state' \\(given as modes\\)"):
        score(model, table.drop(columns="state"))


def test_training_scores_of_all_modes_make_the_threshold():
    model = fit_model(two_modes(), modes="state", method="mean")
    assert len(model.training_scores) == 400
    together = np.concatenate([part.detector.scores_ / part.usual for part in model.parts])
    assert (np.sort(model.training_scores) == np.sort(together)).all()


def test_the_usual_score_is_one_that_few_rows_exceed_and_positive():
    scores = np.arange(101.0)
    assert usual_scores([scores, np.append(scores, np.nan)]) == [95.0, 95.0]
    assert usual_scores([scores, np.append(np.zeros(99), 3.0), np.zeros(3)]) == [95.0, 3.0, 1.0]
    assert usual_scores([scores, np.full(9, 1e-9)]) == [95.0, 95.0 * 1e-6]
    assert usual_scores([np.zeros(3), np.zeros(3)]) == [1.0, 1.0]


@pytest.mark.parametrize(
    "method", ["detector", NSNMF(n_components=3, similarity="relative", random_state=0), "nmf", "knn"]
)
def test_the_noise_of_a_machine_that_stands_still_does_not_lead_the_list(method):
    rng, n = np.random.default_rng(0), 600
    table = two_modes(n).drop(columns="time")
    off = np.arange(n) >= 300
    table["state"] = np.where(off, "off", "on")
    table.loc[~off, list(NAMES)] = readings(300).to_numpy()
    table.loc[off, list(NAMES)] = [0.0, 20.0, 0.0, 50.0, -5.0, 0.0]
    quiet = rng.choice(np.flatnonzero(off), 30, replace=False)
    table.loc[quiet, list(NAMES)] += rng.normal(scale=1e-3, size=(30, len(NAMES)))
    table.loc[100:103, HOT] += 120
    findings = detect(table, modes="state", method=method, top=8)
    assert findings.flags[100:104].all()


def test_an_event_across_modes_is_explained_by_the_rows_of_its_peak():
    table = two_modes()
    table.loc[48:51, HOT] += 500  # two rows on, two off
    findings = detect(table, modes="state", method="mean", top=9)
    event = int(findings.grouped.of_row[49])
    assert set(findings.grouped.rows_of(event)) == {48, 49, 50, 51}
    why = findings.explain(event)
    peak = int(findings.events.loc[event, "peak_row"])
    assert (findings.modes[why.variables["position"]] == findings.modes[peak]).all()
    assert why.variables["variable"].iloc[0] == HOT
    assert why.rule.event_rows == 2


def test_modes_without_findings_have_a_place_in_the_report():
    findings = detect(two_modes(), modes={"on": "`load [MW]` > 5"}, method="mean", top=5)
    assert [part.part.mode for part in findings.parts] == ["on", "other"]
    assert pd.Series(findings.modes).value_counts().to_dict() == {"on": 200, "other": 200}
