"""Codes such as -9999 in place of readings: one rule for files and streams."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import penstock
from penstock.io import TableError, read_table
from penstock.live import Monitor, WatchOptions

N, FITTED = 1500, 1000


def plant(code: float = -9999.0) -> pd.DataFrame:
    rng = np.random.default_rng(0)
    load = 50 + 10 * np.sin(np.arange(N) / 50) + rng.normal(size=N)
    frame = pd.DataFrame(
        {
            "time": pd.date_range("2024-01-01", periods=N, freq="10min"),
            "load": load.round(2),
            "temp": (20 + load / 2 + rng.normal(size=N) * 0.2).round(2),
            "oil": (5 + load / 20 + rng.normal(size=N) * 0.05).round(2),
        }
    )
    frame.loc[::37, "temp"] = code
    return frame


def readings(code: float = -9999.0) -> pd.DataFrame:
    """The plant with a row for each reading, each tag at times of its own."""
    long = plant(code).melt("time", var_name="tag", value_name="value").sort_values("time", kind="stable")
    long["time"] += pd.to_timedelta(7 * pd.factorize(long["tag"])[0], unit="s")
    return long


@pytest.mark.parametrize("form", [plant, readings])
def test_known_codes_that_come_again_are_missing_and_named(form, tmp_path: Path) -> None:
    form().to_csv(tmp_path / "plant.csv", index=False)
    table = read_table(tmp_path / "plant.csv")
    note = table.about("codes for missing?")
    assert (note.columns, note.count, note.changed, note.doubt) == (("temp",), 41, True, True)
    assert table.words == ("-9999",)
    assert table.values.min().min() > 0
    with pytest.raises(TableError, match="-9999"):
        read_table(tmp_path / "plant.csv", strict=True)


def test_numbers_that_may_be_readings_stay(tmp_path: Path) -> None:
    assert read_table(plant(-999.5)).values["temp"].min() == -999.5  # no known code
    assert read_table(plant(), words=()).values["temp"].min() == -9999  # what counts as missing is known
    power = plant().assign(temp=lambda rows: (rows["load"] - 60) * 1000)  # -9999 is a reading like others
    power.loc[::37, "temp"] = -9999
    assert (read_table(power).values["temp"] == -9999).sum() == 41
    twice = plant(30.0)
    twice.loc[[5, 90], "temp"] = -9999
    assert (read_table(twice).values["temp"] == -9999).sum() == 2


@pytest.mark.parametrize("form", [plant, readings])
@pytest.mark.parametrize("given", [{}, {"missing": [-9999]}])
def test_score_and_watch_take_the_codes_of_the_model(form, given, tmp_path: Path) -> None:
    table = form()
    since = table["time"].min() + FITTED * pd.Timedelta("10min")
    table[table["time"] < since].to_csv(tmp_path / "good.csv", index=False)
    table[table["time"] >= since].to_csv(tmp_path / "new.csv", index=False)
    model = penstock.fit_model(tmp_path / "good.csv", **given)
    model.save(tmp_path / "model")
    findings = penstock.score(model, tmp_path / "new.csv")
    assert findings.table.about("codes for missing").count == 13
    Monitor(WatchOptions(tmp_path / "new.csv", model=tmp_path / "model", output=tmp_path / "out.jsonl")).run()
    rows = [json.loads(line) for line in (tmp_path / "out.jsonl").read_text().splitlines()]
    scores = np.array([np.nan if row["score"] is None else row["score"] for row in rows])
    np.testing.assert_array_equal(scores, findings.scores)
