"""Missing readings: empty rows are not judged, others by what they have."""

from __future__ import annotations

import numpy as np
import pytest
from detection_tables import FAULT, HOT, NAMES, plant, readings, rows_found, two_modes

from penstock import detect, fit_model
from penstock.detection import METHODS, load_model, score
from penstock.detection._expecting import compare_with_similar
from penstock.detection._parts import Part
from penstock.prepare import learn_scaling
from penstock.tables import TableError

HOLES = 0.03


def with_holes(table, seed=0):
    """The table with readings missing at random, but not that of the fault, and two rows without any."""
    gone = np.random.default_rng(seed).random((len(table), len(NAMES))) < HOLES
    gone[list(FAULT), 1] = False
    gone[[30, 31]] = True
    table[list(NAMES)] = table[list(NAMES)].mask(gone)
    return table, gone


def test_a_method_that_takes_no_missing_readings_says_so():
    table, _ = with_holes(plant())
    with pytest.raises(TableError, match=r"LoMST cannot learn from the rows: .*NaN"):
        detect(table, method="lomst")


@pytest.mark.parametrize("method", [method for method in METHODS if method != "lomst"])
def test_all_methods_take_missing_readings(method):
    table, gone = with_holes(plant())
    findings = detect(table, method=method, train_until="2024-05-01", top=8)
    assert set(rows_found(findings)) >= set(FAULT)
    assert np.isfinite(findings.scores[findings.judged]).all()
    assert findings.judged.sum() == 258
    assert (findings.values.isna().to_numpy() == gone).all()
    np.testing.assert_allclose(findings.seen, 1 - gone.mean(axis=1))
    why = findings.explain(int(findings.grouped.of_row[FAULT[1]]))
    assert why.variables["variable"].iloc[0] == HOT
    assert np.isfinite(why.variables[["actual", "expected"]].to_numpy()).all()
    assert len(why.neighbors) == 3


@pytest.mark.parametrize("method", ["nsnmf", "mean", "online"])
def test_empty_rows_are_noted_and_not_judged(method):
    table, _ = with_holes(plant())
    findings = detect(table, method=method, top=5)
    assert np.flatnonzero(~findings.judged).tolist() == [30, 31]
    assert np.isnan(findings.scores[30:32]).all()
    note = next(note for note in findings.notes if note.kind == "empty rows")
    assert (note.count, note.rows) == (2, (30, 31))
    assert str(note) == "2 rows without any reading cannot be judged: 30, 31 (counted from 0)."
    assert not any(note.kind == "no score" for note in findings.notes)


def test_residuals_of_rows_with_holes_make_up_their_scores():
    table, gone = with_holes(plant())
    findings = detect(table, method="nmf", top=5)
    residuals = findings.residuals()
    assert (np.isnan(residuals[findings.judged]) == gone[findings.judged]).all()
    seen = (~gone).sum(axis=1)
    stretched = np.sqrt(np.nansum(residuals**2, axis=1) * 6 / np.maximum(seen, 1))
    np.testing.assert_allclose(stretched[findings.judged], findings.scores[findings.judged], rtol=1e-9)


def test_missing_readings_in_modes():
    table, _ = with_holes(two_modes())
    findings = detect(table, modes={"on": "`load [MW]` > 5"}, method="nmf", top=8)
    assert (findings.modes == "unknown").sum() == table["load [MW]"].isna().sum()
    assert not findings.judged[findings.modes == "unknown"].any()
    for event in findings.events.index:
        assert len(findings.explain(event).neighbors) == 3


@pytest.mark.parametrize("method", ["nsnmf", "knn", "online"])
def test_models_with_holes_come_back_from_files(method, tmp_path):
    table, _ = with_holes(plant())
    model = fit_model(table, method=method)
    model.save(tmp_path / "model")
    new, _ = with_holes(plant(seed=3), seed=3)
    one, two = score(model, new), score(load_model(tmp_path / "model"), new)
    assert np.array_equal(one.scores, two.scores, equal_nan=True)
    assert one.judged.sum() == 258


def test_new_rows_with_holes_score_the_same_in_any_company():
    table, _ = with_holes(plant())
    model = fit_model(readings(200), method="nmf")
    whole, half = score(model, table), score(model, table.iloc[100:])
    assert np.array_equal(whole.scores[100:], half.scores, equal_nan=True)


def test_a_column_without_any_reading_to_learn_from_is_named():
    table = two_modes()
    table.loc[table["state"] == "off", "oil"] = np.nan
    with pytest.raises(TableError, match=r"no reading of 'oil' in the training rows of mode off. Exclude it"):
        detect(table, modes="state", method="nmf")
    assert detect(table, modes="state", method="nmf", skip_modes="off", top=5).judged.sum() == 200
    assert detect(table, modes="state", method="nmf", exclude="oil", top=5).judged.sum() == 400


class Nothing:
    """A detector that rebuilds nothing."""

    scaling_ = None


def test_similar_rows_are_compared_over_the_readings_that_both_have():
    rng = np.random.default_rng(0)
    values = rng.random((60, 4))
    values[rng.random(values.shape) < 0.3] = np.nan
    values[np.isnan(values).all(axis=1)] = 0.5
    flagged, normal = np.arange(5), np.arange(5, 60)
    expected = np.full(values.shape, np.nan)
    compare_with_similar(Part("all", Nothing(), 1.0, learn_scaling(values)), values, flagged, normal, expected)
    middle = np.nanmedian(values[normal], axis=0)
    scaled = learn_scaling(values).apply(np.where(np.isnan(values), middle, values))
    for row in flagged:
        known = ~np.isnan(values[row])
        nearest = sorted(normal, key=lambda other: (np.linalg.norm((scaled[row] - scaled[other])[known]), other))[:5]
        for column in range(4):
            near = [values[other, column] for other in nearest if not np.isnan(values[other, column])]
            assert expected[row, column] == pytest.approx(np.mean(near) if near else middle[column], rel=1e-12)
    assert np.isnan(expected[5:]).all()
