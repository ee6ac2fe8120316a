"""Notes that make people doubt a result where they should."""

from __future__ import annotations

import numpy as np
import pandas as pd

import penstock
from penstock.detection._wording import HOW_TO_RATES, ONLY_RANKS


def kinds(findings):
    return {note.kind: str(note) for note in findings.notes}


def test_one_input_is_said_to_be_too_few():
    one = pd.DataFrame({"temperature": np.random.default_rng(0).normal(size=200)})
    assert "low ones do not" in kinds(penstock.detect(one, top=3, method="nsnmf"))["one input"]
    for method in ("knn", "detector"):
        assert "one input" not in kinds(penstock.detect(one, top=3, method=method))


def test_fewer_groups_are_said_with_their_number():
    rng = np.random.default_rng(0)
    two = pd.DataFrame(rng.normal(size=(200, 2)), columns=["a", "b"])
    assert "1 latent group was used instead of 5" in kinds(penstock.detect(two, top=3, method="nsnmf"))["groups"]
    asked = penstock.detect(two, top=3, method="nsnmf", parameters={"n_components": 2})
    assert "groups" not in kinds(asked)


def test_another_season_is_said_to_differ_as_a_whole():
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(400, 9))
    rows[200:] += 30
    table = pd.DataFrame(rows).add_prefix("sensor_")
    table.insert(0, "time", pd.date_range("2024-05-01", periods=400, freq="h"))
    summer = table["time"][199]
    assert "100% of the rows judged" in kinds(penstock.detect(table, train_until=str(summer)))["many findings"]
    assert "many findings" not in kinds(penstock.detect(table))


def test_rows_that_follow_each_other_closely_make_rates_doubtful():
    rng = np.random.default_rng(0)
    rows = np.zeros((400, 6))
    for row in range(1, len(rows)):
        rows[row] = 0.99 * rows[row - 1] + rng.normal(size=6)
    table = pd.DataFrame(rows).add_prefix("sensor_")
    time = pd.Series(pd.date_range("2024-05-01", periods=400, freq="h"), name="time")
    close = pd.concat([time, table], axis=1)
    shuffled = pd.concat([time, table.sample(frac=1, random_state=0).reset_index(drop=True)], axis=1)
    for rows in (close, table):  # with time stamps and without
        found = penstock.detect(rows)
        assert "too low for later rows" in kinds(found)["like the row before"]
        assert found.caution == ONLY_RANKS
        later = penstock.fit_model(rows[:300]).score(rows[300:], top=5)
        assert "like the row before" in kinds(later)
        assert later.rates is later.threshold_rate is None
    for other, method in ((shuffled, "detector"), (close, "knn")):
        found = penstock.detect(other, method=method)
        assert "like the row before" not in kinds(found)
        assert found.caution == (ONLY_RANKS if method == "knn" else f"{ONLY_RANKS} {HOW_TO_RATES}")


def test_a_model_tells_what_its_training_data_lacked():
    rng = np.random.default_rng(0)
    table = pd.DataFrame(rng.normal(size=(100, 4))).add_prefix("sensor_").assign(limit=9.0)
    assert [note.columns for note in penstock.fit_model(table).notes if note.kind == "left out columns"] == [("limit",)]


def test_text_that_outweighs_the_readings_is_said():
    rng = np.random.default_rng(0)
    table = pd.DataFrame(rng.normal(size=(400, 4)) * 0.05).add_prefix("sensor_")
    table["state"] = rng.choice(["a", "b", "c", "d"], size=400)
    table["switch"] = rng.choice(["yes", "no"], size=400)
    found = penstock.detect(table, top=10, method="nsnmf")
    assert "is text (state, switch)" in kinds(found)["text findings"].replace("'", "")
    assert "text findings" not in kinds(penstock.detect(table, top=10, exclude=["state", "switch"]))


def test_a_rule_that_holds_for_no_row_is_said():
    table = pd.DataFrame(np.random.default_rng(0).normal(size=(100, 3)), columns=["power", "b", "c"])
    noted = kinds(penstock.detect(table, top=3, modes={"idle": "power > 1000", "on": "power <= 1000"}))
    assert "No row is of the mode idle (power > 1000)" in noted["empty modes"]
    assert "empty modes" not in kinds(penstock.detect(table, top=3, modes={"on": "power <= 1000"}))


def test_an_input_that_died_is_named():
    table = pd.DataFrame(np.random.default_rng(0).normal(size=(100, 3)), columns=["a", "b", "c"])
    findings = penstock.fit_model(table).score(table.assign(b=np.nan))
    assert "1 input has no reading" in kinds(findings)["dead inputs"]
    assert np.isfinite(findings.scores).all()


def test_units_of_a_line_below_the_header_and_codes_for_missing_are_used(tmp_path):
    rows = "\n".join(
        f"2024-05-01 {k // 60:02d}:{k % 60:02d},{k % 7},{-9999 if k % 10 == 0 else k % 5}" for k in range(200)
    )
    path = tmp_path / "plant.csv"
    path.write_text(f"time,flow,level\n,m3/s,bar\n{rows}\n")
    findings = penstock.detect(path, top=3, missing=[-9999])
    assert dict(findings.units) == {"flow": "m3/s", "level": "bar"}
    assert findings.values["level"].isna().sum() == 20
    model = penstock.fit_model(path, missing="-9999")
    model.save(tmp_path / "model")
    assert penstock.load_model(tmp_path / "model").reading.missing == ("-9999",)


def test_a_mode_of_one_row_is_said_in_the_singular():
    table = pd.DataFrame(np.random.default_rng(0).normal(size=(100, 3)), columns=["power", "b", "c"])
    table.loc[5, "power"] = 99.0
    noted = kinds(penstock.detect(table, top=3, modes={"high": "power > 50", "low": "power <= 50"}))
    assert "Mode high has 1 row to learn from" in noted["small modes"]
