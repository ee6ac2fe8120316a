"""Monitor a stream with a model that was fitted before: the verdicts are those of `penstock.score`, row by row."""

from __future__ import annotations

import json
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from golden.behaviour import modes as modes_table
from golden.behaviour import plant
from live_tables import lines_of

import penstock
from penstock._parameters import ParameterError
from penstock.io import InputError
from penstock.live import Counts, Monitor, Observer, WatchOptions
from penstock.thresholds import ConformalPValue, RollingQuantile

PAPERS = {"method": "nsnmf", "parameters": {"similarity": "relative"}}
FITS: dict[str, dict[str, Any]] = {
    "detector": {"method": "detector"},
    "modes": {"modes": "state", "method": "detector"},
    "rules": {
        "method": "detector",
        "modes": ["run: `load [MW]` > 20 and state == on", "low: state == off"],
        "columns": ["flow", "head", "oil"],
    },
    "skipped": {"modes": ["run: state == on"], "skip_modes": ["other"], "method": "knn"},
    "papers": {"modes": "state", **PAPERS},
    "mean": {"method": "mean"},
}
SERIES: dict[str, dict[str, Any]] = {
    "sensors": {},
    "sensors by mode": {"modes": "state"},
    "sensors by rules": {"modes": ["run: state == on", "low: state == off"], "columns": ["flow", "head", "oil"]},
}


def series() -> tuple[pd.DataFrame, pd.DataFrame]:
    """Return good rows of sensors that explain each other, in two states, and new rows: hot oil from 80 to 89."""
    rng, n = np.random.default_rng(3), 900
    load = np.cumsum(rng.normal(size=n)) * 0.2
    off = np.arange(n) // 90 % 2 == 1
    values = load[:, None] * [1.0, 0.5, -0.7, 2.0, 0.8] + np.outer(off, [5, 0, 3, 0, 1]) + rng.normal(size=(n, 5)) * 0.1
    table = pd.DataFrame(np.round(values, 4), columns=["load", "flow", "head", "oil", "gate"])
    table.insert(0, "time", pd.date_range("2024-05-01", periods=n, freq="10min"))
    table = table.assign(state=np.where(off, "off", "on"))
    new = table.iloc[700:].reset_index(drop=True)
    new.loc[80:89, "oil"] += 3
    new.loc[20, "flow"] = np.nan
    new.loc[30, "state"] = "test run"
    new.loc[31, "state"] = None
    return table.iloc[:700], new


def good() -> pd.DataFrame:
    return modes_table().iloc[:400]


def live() -> pd.DataFrame:
    """Return new rows: an anomaly, missing readings, a row without any, and states that were not fitted."""
    table = modes_table().iloc[300:].reset_index(drop=True)
    table.loc[80:83, "oil"] += 15
    table.loc[20, "flow"] = np.nan
    table.loc[30, "state"] = "test run"
    table.loc[31, "state"] = None
    return table


@pytest.fixture
def options(tmp_path: Path) -> WatchOptions:
    live().to_csv(tmp_path / "live.csv", index=False)
    return WatchOptions(tmp_path / "live.csv", output=tmp_path / "out.jsonl", model=tmp_path / "model", overwrite=True)


def watched(options: WatchOptions, **changes: Any) -> list[dict[str, Any]]:
    options = replace(options, **changes)
    Monitor(options).run()
    return lines_of(options.output)


def scores_in(lines: list[dict[str, Any]]) -> list[float]:
    return [np.nan if line["score"] is None else line["score"] for line in lines]


@pytest.mark.parametrize("fit", FITS, ids=str)
def test_verdicts_are_those_of_score_whatever_the_batches(options: WatchOptions, fit: str, tmp_path: Path) -> None:
    model = penstock.fit_model(good(), **FITS[fit])
    model.save(str(options.model))
    expected = penstock.score(model, live())
    lines = watched(options)
    np.testing.assert_array_equal(scores_in(lines), expected.scores)
    assert [line["flag"] for line in lines] == expected.flags.tolist()
    assert {line["threshold"] for line in lines} == {expected.threshold}
    assert any(expected.flags)
    assert [line["score"] is None for line in lines] == ["reason" in line for line in lines]
    for line in (line for line in lines if line["flag"]):
        assert set(line["variables"]) <= set(model.inputs.names)
        assert len(line["variables"]) == min(3, len(model.inputs.names))
    others = tmp_path / "others.jsonl"
    Monitor(replace(options, output=others, state=tmp_path / "state", snapshot_every=3)).run()
    assert others.read_bytes() == Path(str(options.output)).read_bytes()


@pytest.mark.parametrize(
    ("fit", "time"), [*((fit, "gap") for fit in SERIES), ("sensors", "written"), ("sensors by mode", "none")]
)
def test_detectors_of_series_judge_in_order_whatever_the_batches(
    options: WatchOptions, fit: str, time: str, tmp_path: Path
) -> None:
    """The history of each mode goes on from row to row, and begins anew after gaps, as in a table."""
    table, new = series()
    if time == "gap":
        new.loc[85:, "time"] += pd.Timedelta("3h")
    if time == "none":
        new = new.drop(columns="time")
    new.to_csv(options.input, index=False)
    model = penstock.fit_model(table, **SERIES[fit])
    assert model.can.over_time
    model.save(str(options.model))
    expected = penstock.score(model, new)
    lines = watched(options)
    np.testing.assert_array_equal(scores_in(lines), expected.scores)
    alone = [part.scores(expected.inputs.values.to_numpy()) for part in model.parts]
    assert not np.array_equal(scores_in(lines), alone[0])
    assert {line["threshold"] for line in lines} == {model.threshold_of("auto")}
    assert [line["flag"] for line in lines] == [bool(score > model.threshold_of("auto")) for score in expected.scores]
    assert next(iter(lines[81]["variables"])) == "oil"
    assert lines[81]["variables"]["oil"] == pytest.approx(3, abs=0.5)
    if fit == "sensors":  # a commit for each row takes a while
        singly = replace(options, output=tmp_path / "singly.jsonl", state=tmp_path / "state", snapshot_every=1)
        Monitor(singly).run()
        assert lines_of(singly.output) == lines
    pieces = replace(options, output=tmp_path / "pieces", state=tmp_path / "states", snapshot_every=7)
    while Monitor(pieces).run(iter([False] * 4 + [True]).__next__).samples < 200:
        pass
    assert lines_of(pieces.output) == lines


def test_groups_and_times_that_cannot_be_read_in_a_series(options: WatchOptions) -> None:
    table, new = series()
    model = penstock.fit_model(table.assign(run=np.arange(700) // 50), group="run", columns=["flow", "head", "oil"])
    model.save(str(options.model))
    new["run"] = "a"
    new.loc[82:, "run"] = "b"
    new.to_csv(options.input, index=False)
    grouped = watched(options)
    np.testing.assert_array_equal(scores_in(grouped), penstock.score(model, new).scores)
    new.drop(columns="run").to_csv(options.input, index=False)
    single = watched(options)
    np.testing.assert_array_equal(scores_in(single), penstock.score(model, new.drop(columns="run")).scores)
    assert scores_in(grouped)[:82] == scores_in(single)[:82]
    assert scores_in(grouped)[82] != scores_in(single)[82]
    new.assign(time=new["time"].astype(str).where(new.index != 99, "yesterday")).to_csv(options.input, index=False)
    lines = watched(options)  # a row whose time cannot be read is malformed; one without a time has no score
    assert len(lines) == len(new) - 1
    assert not any("reason" in line for line in lines)
    assert scores_in(lines)[:99] == scores_in(grouped)[:99]
    new.assign(time=new["time"].astype(str).where(new.index != 99, "")).to_csv(options.input, index=False)
    lines = watched(options)
    assert {line["row"]: line["reason"] for line in lines if "reason" in line} == {100: "the time is missing"}


@pytest.mark.parametrize("clock", ["stamps", "numbers", "none"])
def test_saved_detectors_and_monitors_of_series(options: WatchOptions, clock: str) -> None:
    table = plant().drop(columns="fault")
    stamps = {"stamps": table["time"], "numbers": pd.Series(np.arange(500) * 0.1), "none": None}[clock]
    readings = table.drop(columns="time")
    detector = penstock.SensorDetector().fit(readings[:400], time=None if stamps is None else stamps[:400])
    monitor, time = detector.monitor(), None if stamps is None else stamps[400:].copy()
    if time is not None:
        time[450:] += 50 * (time.iloc[1] - time.iloc[0])
    new = readings[400:] if time is None else readings[400:].assign(time=time)
    new.to_csv(options.input, index=False)
    for saved in (detector, monitor):
        before = monitor.copy()
        saved.save(str(options.model))
        lines = watched(options)
        fresh = detector.monitor() if saved is detector else before
        assert scores_in(lines) == fresh.update_many(readings[400:], time=time).scores.tolist()
        assert {line["threshold"] for line in lines} == {
            detector.new_row_rate_.score_expected(1.0, 400) if detector.new_row_rate_ else lines[0]["threshold"]
        }
        monitor.update_many(readings[380:400], time=None if stamps is None else stamps[380:400])
    detector.set_contamination(0.1).save(str(options.model))
    assert watched(options)[0]["threshold"] == np.sort(detector.out_of_sample_scores_)[-41:-39].mean()


def test_the_variable_that_is_off_is_named_with_its_deviation(options: WatchOptions) -> None:
    for fit in ("detector", "skipped", "papers"):
        penstock.fit_model(good(), **FITS[fit]).save(str(options.model), overwrite=True)
        name, deviation = next(iter(watched(options, threshold="0.02")[81]["variables"].items()))
        assert (name, deviation > 2) == ("oil", True)
        assert deviation == pytest.approx(15, abs=3) or fit == "papers"  # latent groups follow the row


def test_reasons_and_counts(options: WatchOptions, tmp_path: Path) -> None:
    table = live()
    table.iloc[70, 1:6] = np.nan
    table.to_csv(options.input, index=False)
    penstock.fit_model(good(), modes="state", settle=3).save(str(options.model))
    reports: list[str] = []
    counts = Monitor(options, Observer(warning=reports.append)).run()
    reasons = {line["row"] - 1: line["reason"] for line in lines_of(options.output) if "reason" in line}
    state = table["state"].fillna("").tolist()
    assert reasons.pop(30) == "mode test run was not there in fitting"
    assert reasons.pop(31) == "a reading that decides on the mode is missing"
    assert reasons.pop(70) == "the row has no reading"
    changes = [row for row in range(1, 200) if state[row] != state[row - 1] and row not in (30, 31, 32)]
    settling = {row + step for row in [*changes, 30, 32] for step in range(3)} - {30, 31}
    assert reasons == {row: f"mode {state[row]} is settling" for row in sorted(settling)}
    assert counts == Counts(200, counts.flagged, missing=1 + 1 + 5, unscored=len(reasons) + 3)
    assert reports == []

    penstock.fit_model(good()).save(str(options.model), overwrite=True)  # state is an input
    counts = Monitor(options, Observer(warning=reports.append)).run()
    assert reports == ["Column 'state' holds 'test run', which the model does not know."]
    assert (counts.unknown, counts.unscored, counts.missing) == (1, 0, 7)


@pytest.mark.filterwarnings("ignore:Dates in column 'time'")
@pytest.mark.parametrize("written", ["%Y-%m-%d %H:%M:%S", "%d.%m.%Y %H:%M", "%m/%d/%Y %I:%M %p", "%Y-%m-%dT%H:%MZ"])
def test_settling_by_time(options: WatchOptions, written: str) -> None:
    table = good()
    model = penstock.fit_model(table, modes="state", settle="30min")
    model.save(str(options.model))
    stamps = live()["time"].dt.strftime(written)
    live().assign(time=stamps.where(stamps.index != 99, "")).to_csv(options.input, index=False)
    reasons = [line.get("reason") for line in watched(options)]
    assert reasons[99] == "the time is missing"
    assert [row for row, reason in enumerate(reasons) if reason and "settling" in reason][:5] == [32, 33, 34, 60, 61]
    live().drop(columns="time").to_csv(options.input, index=False)
    with pytest.raises(InputError, match="needs the time of each row"):
        watched(options)


def test_a_running_threshold_starts_from_the_training_scores(options: WatchOptions) -> None:
    model = penstock.fit_model(good())
    model.save(str(options.model))
    running = ConformalPValue(rate=0.02)
    running.update_many(model.new_row_scores)
    lines = watched(options, threshold="conformal:rate=0.02")
    expected = [(running.value, running.update(score)) for score in scores_in(lines)]
    assert [(line["threshold"], line["flag"]) for line in lines] == expected
    assert len({line["threshold"] for line in lines}) > 1
    assert {line["threshold"] for line in watched(options, threshold="0.001")} == {model.threshold_of(0.001)}
    assert lines_of(options.output) == watched(options, threshold=0.001)
    assert watched(options, threshold="auto") == watched(options, threshold=None)
    for wrong in ("0.9", "peek", "quantile:rate=2"):
        with pytest.raises(ParameterError, match="threshold"):
            watched(options, threshold=wrong)


def test_a_threshold_that_stays_is_not_asked_for_each_row(
    options: WatchOptions, monkeypatch: pytest.MonkeyPatch
) -> None:
    penstock.fit_model(good()).save(str(options.model))
    expected = watched(options)
    monkeypatch.delattr("penstock.thresholds.Threshold.update")
    assert watched(options) == expected


def test_an_online_model_of_fit_goes_on_learning_in_each_mode(options: WatchOptions, tmp_path: Path) -> None:
    model = penstock.fit_model(good(), modes="state", method="online")
    model.save(str(options.model))
    lines = watched(options)
    values = model.inputs.apply(penstock.io.read_table(live())).to_numpy()
    for part in model.parts:
        rows = np.flatnonzero(live()["state"] == part.mode)
        expected = part.detector.process(part.scaled_before.apply(values[rows]))
        found = [lines[row] for row in rows]
        assert scores_in(found) == (expected.scores / part.usual).tolist()
        assert [line["flag"] for line in found] == expected.flags.tolist()
    options = replace(options, state=tmp_path / "state", snapshot_every=13, output=tmp_path / "pieces")
    while Monitor(options).run(iter([False] * 4 + [True]).__next__).samples < 200:
        pass
    assert lines_of(options.output) == lines


@pytest.mark.parametrize("name", ["Detector", "NSNMF", "KNNDistance", "LoMST", "MeanDistance"])
def test_a_saved_detector(options: WatchOptions, name: str) -> None:
    table = plant().drop(columns=["time", "fault"])
    new = table.iloc[400:].assign(oil=lambda frame: frame["oil"] + 9.0)
    new.assign(comment="x")[["comment", *reversed(list(new))]].to_csv(options.input, index=False)
    for known in (table.iloc[:400], table.iloc[:400].to_numpy()):
        detector = getattr(penstock.detectors, name)().fit(known)
        detector.save(str(options.model))
        if isinstance(known, np.ndarray):  # without names the columns are taken as they come
            new.to_csv(options.input, index=False)
        lines = watched(options)
        rows = new.to_numpy() if isinstance(known, np.ndarray) else new
        np.testing.assert_array_equal(scores_in(lines), detector.anomaly_score(rows))
        assert [line["flag"] for line in lines] == (detector.predict(rows) == -1).tolist()
    with pytest.raises(ParameterError, match="columns cannot be changed"):
        watched(options, columns=("oil",))
    new.iloc[:, :2].to_csv(options.input, index=False)
    with pytest.raises(InputError, match="made for 5 columns, but there are 2"):
        watched(options)


def test_rows_that_the_detector_refuses_have_a_reason(options: WatchOptions) -> None:
    table = plant().drop(columns=["time", "fault"]).iloc[:100]
    penstock.NMF(2, scale=None, random_state=0).fit(table).save(str(options.model))
    table.loc[3, "flow"], table.loc[5, "head"] = -1.0, np.nan
    table.to_csv(options.input, index=False)
    reasons = {line["row"]: line["reason"] for line in watched(options) if "reason" in line}
    assert list(reasons) in ([4], [4, 6])
    assert 'column "flow"' in reasons[4]
    with pytest.raises(InputError, match="Negative"):
        watched(options, strict=True)


def test_missing_codes_json_lines_and_a_column_that_is_not_there(options: WatchOptions) -> None:
    model = penstock.fit_model(good().replace({"state": {"off": "?off"}}), missing=[-999], modes="state")
    model.save(str(options.model))
    table = live().replace({"state": {"off": "?off"}}).drop(index=[30, 31]).drop(columns="time")
    text = "".join(json.dumps(row) + "\n" for row in table.fillna(-999).to_dict("records"))
    Path(options.input).write_text(text)
    np.testing.assert_array_equal(scores_in(watched(options)), penstock.score(model, table).scores)
    table.drop(columns="head").to_csv(options.input, index=False)
    with pytest.raises(InputError, match='no column "head"'):
        watched(options)


@pytest.mark.slow
def test_many_lines_a_second(options: WatchOptions) -> None:
    rng = np.random.default_rng(0)
    table = pd.DataFrame(rng.normal(size=(60_000, 8)), columns=list("abcdefgh")).round(4)
    penstock.Detector().fit(table[:3000]).save(str(options.model))
    table.to_csv(options.input, index=False)
    for threshold in (None, RollingQuantile(0.01)):
        begin = time.process_time()
        assert Monitor(replace(options, threshold=threshold)).run().samples == 60_000
        assert 60_000 / (time.process_time() - begin) > 5_000
