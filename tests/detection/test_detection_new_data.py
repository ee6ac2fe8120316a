"""New data for a model, tables with missing readings, and what every method does: the job, in the user's units."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from detection_tables import FAULT, HOT, NAMES, plant, readings, residuals, rows_found, two_modes

from penstock import NSNMF, detect, fit_model
from penstock.detection import METHODS, make_detector, score
from penstock.io import TableError, read_table
from penstock.thresholds import score_threshold


def training() -> pd.DataFrame:
    table = plant(190)
    table["kind"] = np.where(np.arange(190) % 3 == 0, "a", "b")
    return table


@pytest.fixture(scope="module")
def model():
    return fit_model(training(), method="nmf")


def new(**columns) -> pd.DataFrame:
    table = plant().iloc[150:].reset_index(drop=True)
    return table.assign(**{"kind": "a", **columns})


def test_new_faults_are_above_the_threshold_of_the_training_scores(model):
    findings = score(model, new())
    assert set(np.flatnonzero(findings.flags)) >= {row - 150 for row in FAULT}
    assert findings.threshold == score_threshold(model.training_scores, "auto")
    assert not findings.rows.fitted.any()
    assert findings.settings["rows"] == 110
    assert findings.settings["fitted to"] == "the table"


def test_columns_in_another_order_and_others_are_no_trouble(model):
    expected = score(model, new()).scores
    assert (score(model, new()[["kind", *reversed(NAMES), "time"]]).scores == expected).all()
    assert (score(model, new(more=3.0, words="x")).scores == expected).all()
    assert score(model, new(more=3.0)).inputs.names == (*NAMES, "kind=b", "kind=a")


def test_columns_that_are_missing_or_hold_text_now_are_named(model):
    for table, message in (
        (new().drop(columns=HOT), r"the table has no column 'bearing \[°C\]', which was an input before"),
        (new().drop(columns="kind"), "no column 'kind', which was an input before"),
        (new(oil="much"), "column 'oil' held numbers before, and now holds text"),
    ):
        with pytest.raises(TableError, match=message):
            score(model, table)


def test_a_category_that_was_never_seen_stands_out(model):
    usual, strange = score(model, new()), score(model, new(kind="c"))
    assert (strange.inputs.values[["kind=a", "kind=b"]] == 0).all(axis=None)
    assert np.median(strange.scores) > np.median(usual.scores)
    notes = {note.kind: note for note in strange.notes}
    assert str(notes["unknown categories"]) == "Column 'kind' has values that were not fitted ('c') in 110 rows."
    assert not any(note.kind == "unknown categories" for note in usual.notes)


def test_a_label_is_compared_with_if_one_is_named(model):
    table = new(fault=[int(row + 150 in FAULT) for row in range(110)])
    assert score(model, table).assessment.agreement is None
    assert score(model, table, label="fault").assessment.agreement.n_found == 1


def test_new_data_are_read_as_the_training_data_were(tmp_path):
    paths = [tmp_path / "old.txt", tmp_path / "new.txt"]
    for path, table in zip(paths, [training(), new()], strict=True):
        table.to_csv(path, index=False, sep="|", decimal=",")
    model = fit_model(paths[0], separator="|", decimal=",", time="time", timezone="Europe/Berlin", method="mean")
    findings = score(model, paths[1])
    assert (findings.scores == score(fit_model(training(), method="mean"), new()).scores).all()
    assert str(findings.table.time.tz) == "Europe/Berlin"
    assert str(score(model, paths[1], timezone="UTC").table.time.tz) == "UTC"
    comma = tmp_path / "comma.csv"
    new().rename(columns={"time": "when"}).to_csv(comma, index=False)
    other = score(model, comma, separator=",", decimal=".", time=["when"])
    assert (other.scores == findings.scores).all()


def test_options_that_have_no_meaning_are_refused(model):
    for name in ("columns", "exclude", "nonsense", "keep"):
        with pytest.raises(TypeError, match=f"'{name}' is not a parameter here"):
            score(model, new(), **{name: ["oil"]})
    with pytest.raises(TableError, match="is read already"):
        score(model, read_table(new()), label="oil")


def test_strict_can_be_chosen_for_new_data(model):
    backwards = new().iloc[::-1]
    assert len(score(model, backwards).scores) == 110
    with pytest.raises(TableError, match="strict refuses"):
        score(model, backwards, strict=True)
    strict = fit_model(plant(190), strict=True, method="mean")
    with pytest.raises(TableError, match="strict refuses"):
        score(strict, backwards)
    assert len(score(strict, backwards, strict=False).scores) == 110


def alone(name: str, folder) -> object:
    row = new().iloc[[3]].assign(**{HOT: 500.0})
    if name == "csv":
        row.to_csv(folder / "one.csv", index=False)
        return folder / "one.csv"
    return row.drop(columns="time") if name == "without time" else row if name == "frame" else pd.concat([row, row])


@pytest.mark.parametrize("method", ["nsnmf", "knn", "lomst", "online"])
@pytest.mark.parametrize("source", ["frame", "csv", "without time", "twice"])
def test_a_single_row_can_be_scored_and_explained(method, source, tmp_path):
    model = fit_model(training(), method=method)
    findings = score(model, alone(source, tmp_path))
    assert findings.flags.all()
    assert len(findings.events) == 1
    assert findings.explain(1).variables["variable"].iloc[0] == HOT
    together = score(model, new().assign(**{HOT: 500.0})).scores[3]
    assert findings.scores[0] == together


def test_no_row_is_refused_and_one_is_nothing_to_learn_from(model):
    with pytest.raises(TableError, match=r"has no rows\. Check"):
        score(model, new().iloc[:0])
    with pytest.raises(TableError, match="a single row, and rows are scored by each other"):
        fit_model(new().iloc[:1])


HOLES = 0.03


def with_holes(table, seed=0):
    """The table with readings missing at random, but not that of the fault, and two rows without any."""
    gone = np.random.default_rng(seed).random((len(table), len(NAMES))) < HOLES
    gone[list(FAULT), 1] = False
    gone[[30, 31]] = True
    table[list(NAMES)] = table[list(NAMES)].mask(gone)
    return table, gone


@pytest.mark.parametrize("method", [method for method in METHODS if method != "lomst"])
def test_all_methods_take_missing_readings(method):
    table, gone = with_holes(plant())
    with pytest.raises(TableError, match=r"LoMST cannot learn from the rows: .*NaN"):
        detect(table, method="lomst")
    findings = detect(table, method=method, train_until="2024-05-01", top=8)
    assert set(rows_found(findings)) >= set(FAULT)
    assert np.isfinite(findings.scores[findings.rows.scored]).all()
    assert np.flatnonzero(~findings.rows.scored).tolist() == [30, 31]
    assert [note.rows for note in findings.notes if note.kind == "empty rows"] == [(30, 31)]
    assert (findings.inputs.values.isna().to_numpy() == gone).all()
    np.testing.assert_allclose(findings.rows.seen, 1 - gone.mean(axis=1))
    why = findings.explain(int(findings.rows.grouped.of_row[FAULT[1]]))
    assert why.variables["variable"].iloc[0] == HOT
    assert np.isfinite(why.variables[["actual", "expected"]].to_numpy()).all()
    assert len(why.neighbors) == 3


def test_residuals_of_rows_with_holes_make_up_their_scores():
    table, gone = with_holes(plant())
    findings = detect(table, method="nmf", top=5, parameters={"n_components": 3})
    off = residuals(findings)
    assert (np.isnan(off[findings.rows.scored]) == gone[findings.rows.scored]).all()
    seen = (~gone).sum(axis=1)
    stretched = np.sqrt(np.nansum(off**2, axis=1) * 6 / np.maximum(seen, 1))
    np.testing.assert_allclose(stretched[findings.rows.scored], findings.scores[findings.rows.scored], rtol=1e-9)


def test_a_column_without_any_reading_to_learn_from_is_named():
    table = two_modes()
    table.loc[table["state"] == "off", "oil"] = np.nan
    with pytest.raises(TableError, match=r"no reading of 'oil' in the training rows of mode off. Exclude it"):
        detect(table, modes="state", method="nmf")
    assert detect(table, modes="state", method="nmf", skip_modes="off", top=5).rows.scored.sum() == 200
    assert detect(table, modes="state", method="nmf", exclude="oil", top=5).rows.scored.sum() == 400


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


def test_a_fault_is_found_among_holes_though_it_was_fitted_to():
    table, _ = leaky_plant()
    for method in (NSNMF(n_components=4, similarity="relative", random_state=0), "gnmf"):
        assert set(rows_found(detect(table, method=method, top=8))) >= set(range(400, 405))
    whole, holes = (detect(leaky_plant(missing=share)[0], method="knn", top=8) for share in (0.0, 0.05))
    assert set(rows_found(whole)) >= set(range(400, 405))
    # Thirty rows lack the reading that is odd, and the odd rows are near to those: docs/missing_values.md.
    assert not set(rows_found(holes)) & set(range(400, 405))
    assert np.isfinite(holes.scores[holes.rows.scored]).all()


def test_training_rows_without_a_common_reading_are_named_where_it_matters():
    table, _ = leaky_plant()
    table.loc[20, list("abcdefg")] = table.loc[9, "h"] = np.nan
    table.loc[20, "h"] = 6.0
    message = (
        r"Detector cannot compare row 9 \(2024-05-01 09:00:00\) with row 20 \(2024-05-01 20:00:00\) \(counted from 0\) "
        r"of the training rows: no input has a reading in both\. Leave out one of them, or exclude columns"
    )
    with pytest.raises(TableError, match=message):
        detect(table, method="detector")
    swapped = table.iloc[::-1]  # rows are sorted by time, and named as they are numbered in the source
    with pytest.raises(TableError, match=r"row 590 \(2024-05-01 09:00:00\) with row 579 \(2024-05-01 20:00:00\)"):
        detect(swapped.reset_index(drop=True), method="knn")
    with pytest.raises(TableError, match=r"compare row 9 with row 20 \(counted"):
        detect(table.drop(columns="time"), method="gnmf")
    for method in ("nmf", "mean", "sensors"):  # no rows are compared
        assert detect(table, method=method, top=8).rows.scored.sum() == 599
    model = fit_model(table.drop(index=20), method="detector")
    assert np.isfinite(score(model, table.iloc[[9, 20]]).scores).all()
    with pytest.raises(TableError, match=r"row 9 .* with row 20 .* of the training rows of mode on: no input"):
        detect(table.assign(state=np.where(np.arange(600) < 500, "on", "off")), method="detector", modes="state")


REBUILDING = ("nsnmf", "laplacian", "nmf", "gnmf", "snmf")


@pytest.fixture(scope="module", params=METHODS)
def found(request):
    return request.param, detect(plant(), method=request.param, train_until="2024-05-01", top=8)


def test_the_fault_is_found_and_its_variable_named(found):
    _, findings = found
    assert np.isfinite(findings.scores).all()
    assert findings.rows.scored.all()
    assert findings.flags.sum() == 8
    assert set(rows_found(findings)) >= set(FAULT)
    why = findings.explain(int(findings.rows.grouped.of_row[FAULT[2]]))
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
    part = findings.rows.parts[0].part
    in_units = findings.inputs.values.to_numpy() - findings.inputs.expected.to_numpy()
    if method in REBUILDING:
        values, detector = findings.inputs.values.to_numpy(), part.detector
        scaled = detector.scaling_.apply(values)
        rebuilt = np.vstack([detector.embedding_, detector.transform(values[144:])]) @ detector.components_
        np.testing.assert_allclose(in_units, part.scale * (scaled - rebuilt), atol=1e-9)
        np.testing.assert_allclose(np.sqrt((residuals(findings) ** 2).sum(axis=1)), findings.scores, rtol=1e-9)
    elif method == "sensors":  # given the others, its own reading left out
        values, expected = findings.inputs.values.to_numpy(), findings.inputs.expected.to_numpy()
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
        by_hand = make_detector(method).fit(values)
        assert (detect(plant(), method=method, top=5).scores == by_hand.scores_).all()
