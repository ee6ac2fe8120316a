"""New data for a model: what fits, what does not, and what is said about it."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from detection_tables import FAULT, HOT, NAMES, plant, readings

from penstock import fit_model
from penstock.detection import score
from penstock.io import TableError, read_table
from penstock.thresholds import Fixed, score_threshold


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
    assert not findings.trained.any()
    assert findings.settings["rows"] == 110
    assert findings.settings["learnt from"] == "the table"


def test_cuts_can_be_chosen(model):
    assert score(model, new(), top=3).flags.sum() == 3
    assert score(model, new(), threshold=Fixed(0.5)).threshold == 0.5
    share = score(model, new(), threshold=0.1)
    assert share.threshold == score_threshold(model.training_scores, 0.1)
    with pytest.raises(TableError, match="exclude each other"):
        score(model, new(), top=3, threshold="auto")


def test_columns_in_another_order_and_others_are_no_trouble(model):
    expected = score(model, new()).scores
    assert (score(model, new()[["kind", *reversed(NAMES), "time"]]).scores == expected).all()
    assert (score(model, new(more=3.0, words="x")).scores == expected).all()
    assert score(model, new(more=3.0)).names == (*NAMES, "kind=b", "kind=a")


def test_a_column_that_is_missing_is_named(model):
    with pytest.raises(TableError, match=r"the table has no column 'bearing \[°C\]', which was an input before"):
        score(model, new().drop(columns=HOT))
    with pytest.raises(TableError, match="no column 'kind', which was an input before"):
        score(model, new().drop(columns="kind"))


def test_text_where_numbers_were_is_refused(model):
    with pytest.raises(TableError, match="column 'oil' held numbers before, and now holds text"):
        score(model, new(oil="much"))


def test_a_category_that_was_never_seen_stands_out(model):
    usual, strange = score(model, new()), score(model, new(kind="c"))
    assert (strange.values[["kind=a", "kind=b"]] == 0).all(axis=None)
    assert np.median(strange.scores) > np.median(usual.scores)
    notes = {note.kind: note for note in strange.notes}
    assert str(notes["unknown categories"]) == "Column 'kind' has values that were not learnt ('c') in 110 rows."
    assert not any(note.kind == "unknown categories" for note in usual.notes)


def test_a_label_is_compared_with_if_one_is_named(model):
    table = new(fault=[int(row + 150 in FAULT) for row in range(110)])
    assert score(model, table).agreement is None
    assert score(model, table, label="fault").agreement.n_found == 1


def test_the_label_of_the_training_data_is_not_needed():
    table = training().assign(fault=0)
    table.loc[5, "fault"] = 1
    model = fit_model(table, label="fault", method="mean")
    assert score(model, new()).agreement is None
    assert "fault" not in model.inputs.names


def test_columns_that_were_chosen_are_the_inputs_of_new_data():
    model = fit_model(training(), columns=["oil", HOT], method="mean")
    assert score(model, new().drop(columns=["kind", "head [m]"])).names == ("oil", HOT)
    model = fit_model(training(), exclude=["oil", "kind"], method="mean")
    assert score(model, new().drop(columns=["oil", "kind"])).names == tuple(name for name in NAMES if name != "oil")


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


def test_nothing_is_learnt_by_scoring(model):
    online = fit_model(readings(200), method="online")
    for fitted, table in ((model, new()), (online, plant(time=False))):
        first = score(fitted, table)
        assert (score(fitted, table).scores == first.scores).all()


def test_a_duration_between_rows_without_time_is_refused(model):
    with pytest.raises(ValueError, match="gap"):
        score(model, new().drop(columns="time"), gap="1 h")


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
    with pytest.raises(TableError, match="a single row, and rows are judged by each other"):
        fit_model(new().iloc[:1])


def test_settings_tell_how_new_data_were_read(tmp_path):
    model = fit_model(training().assign(fault=0), label="fault", exclude="kind", method="mean")
    told = score(model, new(), strict=True, timezone="UTC", top=3, gap="1 h").settings
    assert (told["strict"], told["timezone"], told["top"], told["gap"]) == (True, "UTC", 3, "1 h")
    assert told["exclude"] == "'kind'"
    assert "label" not in told
