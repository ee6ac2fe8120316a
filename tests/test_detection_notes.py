"""Notes that make people doubt a result where they should."""

from __future__ import annotations

import numpy as np
import pandas as pd

import penstock


def kinds(findings):
    return {note.kind: str(note) for note in findings.notes}


def test_one_input_is_said_to_be_too_few():
    one = pd.DataFrame({"temperature": np.random.default_rng(0).normal(size=200)})
    assert "low ones do not" in kinds(penstock.detect(one, top=3))["one input"]
    assert "one input" not in kinds(penstock.detect(one, top=3, method="knn"))


def test_fewer_groups_are_said_with_their_number():
    rng = np.random.default_rng(0)
    two = pd.DataFrame(rng.normal(size=(200, 2)), columns=["a", "b"])
    assert "1 latent group was used instead of 5" in kinds(penstock.detect(two, top=3))["groups"]
    asked = penstock.detect(two, top=3, parameters={"n_components": 2})
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


def test_a_model_tells_what_its_training_data_lacked():
    rng = np.random.default_rng(0)
    table = pd.DataFrame(rng.normal(size=(100, 4))).add_prefix("sensor_").assign(limit=9.0)
    assert [note.columns for note in penstock.fit_model(table).notes if note.kind == "left out columns"] == [("limit",)]
