"""Missing readings: empty rows are not judged, others by what they have."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from detection_tables import FAULT, HOT, NAMES, plant, readings, residuals, rows_found, two_modes

from penstock import NSNMF, detect, fit_model
from penstock.detection import METHODS, load_model, score
from penstock.detection._parts import Part, mean_of_similar
from penstock.io import TableError
from penstock.prepare import learn_scaling

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
    off = residuals(findings)
    assert (np.isnan(off[findings.judged]) == gone[findings.judged]).all()
    seen = (~gone).sum(axis=1)
    stretched = np.sqrt(np.nansum(off**2, axis=1) * 6 / np.maximum(seen, 1))
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
    part = Part("all", Nothing(), 1.0, learn_scaling(values))
    expected = mean_of_similar(part, values[flagged], values[normal])
    middle = np.nanmedian(values[normal], axis=0)
    scaled = learn_scaling(values).apply(np.where(np.isnan(values), middle, values))
    for row in flagged:
        known = ~np.isnan(values[row])
        nearest = sorted(normal, key=lambda other: (np.linalg.norm((scaled[row] - scaled[other])[known]), other))[:3]
        for column in range(4):
            near = [values[other, column] for other in nearest if not np.isnan(values[other, column])]
            assert expected[row, column] == pytest.approx(np.mean(near) if near else middle[column], rel=1e-12)


def leaky_plant(n=600, p=8, missing=0.05):
    """Eight readings, one in twenty of them missing, one row without any, and in rows 400 to 404 a fault in "c"."""
    rng = np.random.default_rng(0)
    values = 5 + rng.normal(3, 0.2, (n, 2)) @ rng.uniform(0.2, 1.0, (2, p)) + rng.normal(scale=0.05, size=(n, p))
    values[400:405, 2] += 3.0
    gone = rng.random((n, p)) < missing
    gone[400:405, 2], gone[77] = False, True
    table = pd.DataFrame(np.where(gone, np.nan, values), columns=list("abcdefgh"))
    table.insert(0, "time", pd.date_range("2024-05-01", periods=n, freq="h"))
    return table, gone


@pytest.mark.parametrize("method", ["nsnmf", "laplacian", "gnmf", "snmf", "nmf"])
def test_a_fault_is_found_among_holes(method):
    table, gone = leaky_plant()
    findings = detect(table, method=method, top=8, train_until="2024-05-15")
    assert set(rows_found(findings)) >= set(range(400, 405))
    assert np.isfinite(findings.scores[findings.judged]).all()
    assert np.flatnonzero(~findings.judged).tolist() == [77]
    assert [note.rows for note in findings.notes if note.kind == "empty rows"] == [(77,)]
    np.testing.assert_allclose(findings.seen, 1 - gone.mean(axis=1))
    assert np.isfinite(findings.expected.to_numpy()[findings.judged]).all()


def test_a_fault_is_found_among_holes_though_it_was_learnt_from():
    table, _ = leaky_plant()
    for method in (NSNMF(n_components=4, similarity="relative", random_state=0), "gnmf"):
        assert set(rows_found(detect(table, method=method, top=8))) >= set(range(400, 405))
    whole, holes = (detect(leaky_plant(missing=share)[0], method="knn", top=8) for share in (0.0, 0.05))
    assert set(rows_found(whole)) >= set(range(400, 405))
    # Thirty rows lack the reading that is odd, and the odd rows are near to those: docs/missing_values.md.
    assert not set(rows_found(holes)) & set(range(400, 405))
    assert np.isfinite(holes.scores[holes.judged]).all()


def test_training_rows_without_a_common_reading_are_named_where_it_matters():
    table, _ = leaky_plant()
    table.loc[20, list("abcdefg")] = table.loc[9, "h"] = np.nan
    table.loc[20, "h"] = 6.0
    message = (
        r"Detector cannot compare row 9 \(2024-05-01 09:00:00\) with row 20 \(2024-05-01 20:00:00\) \(counted from 0\) "
        r"of the training rows: no input has a reading in both\. Leave out one of them, or exclude columns"
    )
    with pytest.raises(TableError, match=message):
        detect(table)
    swapped = table.iloc[::-1]  # rows are sorted by time, and named as they are numbered in the source
    with pytest.raises(TableError, match=r"row 590 \(2024-05-01 09:00:00\) with row 579 \(2024-05-01 20:00:00\)"):
        detect(swapped.reset_index(drop=True), method="knn")
    with pytest.raises(TableError, match=r"compare row 9 with row 20 \(counted"):
        detect(table.drop(columns="time"), method="gnmf")
    for method in ("nmf", "mean"):  # no rows are compared
        assert detect(table, method=method, top=8).judged.sum() == 599
    model = fit_model(table.drop(index=20))
    assert np.isfinite(score(model, table.iloc[[9, 20]]).scores).all()
    with pytest.raises(TableError, match=r"row 9 .* with row 20 .* of the training rows of mode on: no input"):
        detect(table.assign(state=np.where(np.arange(600) < 500, "on", "off")), modes="state")
