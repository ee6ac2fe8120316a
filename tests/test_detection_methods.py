"""All methods do the job, and say what they expected in the user's units."""

from __future__ import annotations

import numpy as np
import pytest
from detection_tables import FAULT, HOT, plant, readings, residuals, rows_found

from penstock import detect, fit_model
from penstock.detection import METHODS, make_detector, score
from penstock.detectors import limit_components

REBUILDING = ("nsnmf", "laplacian", "nmf", "gnmf", "snmf")


@pytest.fixture(scope="module", params=METHODS)
def found(request):
    return request.param, detect(plant(), method=request.param, train_until="2024-05-01", top=8)


def test_the_fault_is_found_and_its_variable_named(found):
    _, findings = found
    assert np.isfinite(findings.scores).all()
    assert findings.judged.all()
    assert findings.flags.sum() == 8
    assert set(rows_found(findings)) >= set(FAULT)
    why = findings.explain(int(findings.grouped.of_row[FAULT[2]]))
    assert why.variables["variable"].iloc[0] == HOT
    assert why.variables["direction"].iloc[0] == "above"
    assert why.rule is not None
    assert HOT.partition(" [")[0] in why.rule.text
    for event in findings.events.index:
        why = findings.explain(event)
        assert len(why.variables)
        assert np.isfinite(why.variables[["actual", "expected", "share"]].to_numpy()).all()
        assert len(why.neighbors) == 3


def test_what_is_expected_is_in_the_users_units(found):
    method, findings = found
    part = findings.parts[0].part
    in_units = findings.values.to_numpy() - findings.expected.to_numpy()
    if method in REBUILDING:
        values, detector = findings.values.to_numpy(), part.detector
        scaled = detector.scaling_.apply(values)
        rebuilt = np.vstack([detector.embedding_, detector.transform(values[144:])]) @ detector.components_
        np.testing.assert_allclose(in_units, part.scale * (scaled - rebuilt), atol=1e-9)
        np.testing.assert_allclose(np.sqrt((residuals(findings) ** 2).sum(axis=1)), findings.scores, rtol=1e-9)
    elif method == "sensors":  # given the others, its own reading left out
        values, expected = findings.values.to_numpy(), findings.expected.to_numpy()
        assert (np.median(np.abs(in_units), axis=0) < values.std(axis=0)).all()
        for column in range(values.shape[1]):
            changed = values[[150]] + 100.0 * (np.arange(values.shape[1]) == column)
            rebuilt = part.detector.expected(changed)[0]
            assert (np.isclose(rebuilt, expected[150], rtol=1e-9) == (np.arange(values.shape[1]) == column)).all()
    elif method == "over-time":  # of every row, without what its own reading adds
        assert np.isfinite(in_units).all()
    else:
        assert (np.isfinite(in_units).all(axis=1) == findings.flags).all()


@pytest.mark.parametrize("method", REBUILDING)
def test_residuals_of_new_rows_make_up_their_scores(method):
    model = fit_model(readings(200), method=method)
    findings = score(model, plant(time=False).iloc[190:])
    np.testing.assert_allclose(np.sqrt((residuals(findings) ** 2).sum(axis=1)), findings.scores, rtol=1e-9)


def test_scores_stay_those_of_the_detector_without_modes():
    values = plant(time=False).to_numpy()
    for method in ("nmf", "lomst", "norm"):
        by_hand = limit_components(make_detector(method), 6).fit(values)
        assert (detect(plant(), method=method, top=5).scores == by_hand.scores_).all()
