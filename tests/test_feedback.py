"""What people say of alarms is kept apart from the model, acts, and can be taken back."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from penstock.cli import main
from penstock.detection import load_model
from penstock.live.alarm_files import read_alarms, read_labels
from penstock.live.alarms import Alarm, AlarmSensor, AlarmState, Sensor, Verdict
from penstock.live.feedback import (
    MOST_SHARE,
    Feedback,
    Label,
    bounded_effects,
    excluded_periods,
    label_alarm,
    labels_of,
    likeness,
    looks_like,
)


def an_alarm(pattern: dict[str, float], score: float = 6.0, name: str = "a-1") -> Alarm:
    sensors = tuple(AlarmSensor(each, abs(value), value, None, 0.0, None) for each, value in pattern.items())
    return Alarm(
        name, "a", "alarm", "x", AlarmState(True), 10.0, 20.0, 30.0, score=score, threshold=4.0, sensors=sensors
    )


def a_label(reason: str, pattern: dict[str, float] | None = None, **changes: Any) -> Label:
    return replace(label_alarm(an_alarm(pattern or {"oil": 3.0}), reason, "Ada", 40.0), **changes)


def row(score: float, *sensors: Sensor, time: float = 0.0) -> Verdict:
    return Verdict("a", time, score, 4.0, sensors=sensors)


def after_normal_rows(labels: list[Label], like_it: int = 0) -> Feedback:
    feedback = Feedback(labels)
    for number in range(100):
        feedback.apply(row(0.0, *((Sensor("oil", 1.2, 1.0),) if number < like_it else ())))
    return feedback


HIGH = row(6.2, Sensor("oil", 4.0, 2.0))


def test_a_false_alarm_raises_the_threshold_for_situations_like_it_and_only_those() -> None:
    false = a_label("false alarm")
    feedback = after_normal_rows([false])
    assert feedback.apply(HIGH).threshold == pytest.approx(6.2)
    for other in (row(6.2, Sensor("oil", 4.0, -2.0)), row(6.2, Sensor("flow", 4.0, 2.0)), row(6.2)):
        assert feedback.apply(other) == other
    assert feedback.apply(replace(HIGH, asset="b")).threshold == 4.0
    assert feedback.apply(replace(HIGH, score=50.0, threshold=8.0)).threshold == pytest.approx(12.4), "another model"
    assert Feedback([false]).apply(HIGH) == HIGH, "no normal row is known yet"
    assert after_normal_rows([a_label("real defect")]).apply(HIGH) == HIGH


def test_an_effect_can_be_taken_back() -> None:
    false = a_label("false alarm")
    records = [{"kind": "label", **false.as_dict()}, {"kind": "withdrawn", "id": false.id, "who": "Bob", "at": 50.0}]
    assert [label.holds for label in labels_of(records[:1])] == [True]
    (taken_back,) = labels_of(records)
    assert (taken_back.withdrawn_by, taken_back.withdrawn_at) == ("Bob", 50.0)
    feedback = after_normal_rows([false])
    feedback.set_labels([taken_back])
    assert feedback.apply(HIGH) == HIGH
    feedback.set_labels([false])
    assert feedback.apply(HIGH).threshold == pytest.approx(6.2)


@pytest.mark.parametrize(("like_it", "threshold"), [(5, 6.2), (6, 4.0)])
def test_a_false_alarm_that_is_like_too_many_normal_rows_has_no_effect(like_it: int, threshold: float) -> None:
    feedback = after_normal_rows([a_label("false alarm")], like_it)
    assert feedback.apply(HIGH).threshold == pytest.approx(threshold)
    (effect,) = feedback.effects("a")
    assert effect.share == like_it / 100
    assert (effect.near is None) == (threshold == 4.0)


patterns = st.dictionaries(st.sampled_from("abcd"), st.sampled_from([-2.0, 1.0, 3.0]), min_size=1)


@settings(deadline=None, max_examples=50)
@given(st.lists(patterns, max_size=5), st.lists(patterns, min_size=1, max_size=30))
def test_all_labels_together_act_on_a_bounded_share_of_the_normal_rows(
    labelled: list[dict[str, float]], normal: list[dict[str, float]]
) -> None:
    every = [tuple(Sensor(name, abs(v), v) for name, v in row.items()) for row in [*normal, *[{}] * 40]]
    effects = bounded_effects([a_label("false alarm", pattern) for pattern in labelled], every)
    acts_on = [
        any(each.near is not None and likeness(row, each.label) >= each.near for each in effects) for row in every
    ]
    assert sum(acts_on) <= MOST_SHARE * len(every)


def test_the_effect_is_the_same_after_a_restart() -> None:
    labels = [a_label("false alarm")]
    whole, restarted = Feedback(labels), Feedback(labels)
    for number in range(2600):
        sensors = (Sensor("oil", 1.5, 1.0),) if number % 15 == 7 else ()
        verdict = row(0.0 if number % 40 else 6.2, *(sensors if number % 40 else HIGH.sensors))
        if number % 37 == 0:
            state = json.loads(json.dumps(restarted.state()))
            restarted = Feedback(labels)
            restarted.restore(state)
        assert restarted.apply(verdict) == whole.apply(verdict)
    assert restarted.state() == whole.state()


def test_a_real_defect_is_recognised_and_left_out_of_learning() -> None:
    real = a_label("real defect", {"oil": 3.0, "flow": -1.0}, at=1.0)
    others = [a_label("false alarm"), a_label("real defect", {"head": 2.0})]
    found = looks_like(an_alarm({"oil": 6.0, "flow": -1.5}, name="a-9"), [real, *others])
    assert found is not None
    assert found[0] == real
    assert looks_like(an_alarm({"oil": -6.0}, name="a-9"), [real]) is None
    assert looks_like(an_alarm({"oil": 3.0, "flow": -1.0}), [real]) is None, "the alarm itself"
    assert excluded_periods([real, *others]) == [(10.0, 40.0)]
    assert excluded_periods([replace(real, withdrawn_at=3.0)]) == []


@pytest.mark.parametrize(
    ("records", "message"),
    [
        ([{"kind": "label"}], "missing"),
        ([{**a_label("real defect").as_dict(), "reason": "who knows"}], "reason must be one of"),
        ([{**a_label("real defect").as_dict(), "who": " "}], "name of the person"),
        ([{**a_label("real defect").as_dict(), "until": float("inf")}], "finite"),
        ([a_label("real defect").as_dict()] * 2, "two labels"),
        ([{"kind": "withdrawn", "id": "x", "who": "Ada", "at": 1.0}], "no label 'x' to take back"),
        ([{"kind": "wish"}], "kind must be"),
    ],
)
def test_records_that_are_no_labels(records: list[Any], message: str) -> None:
    with pytest.raises((ValueError, TypeError), match=message):
        labels_of(records)


# From an alarm to a label to another model, by the commands.


@pytest.fixture(scope="module")
def history(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a model of good rows and a history with a leak, a test that is no fault, and an overhaul."""
    folder = tmp_path_factory.mktemp("history")
    rng = np.random.default_rng(1)
    drift = np.convolve(rng.normal(size=2019), np.ones(20) / 4, mode="valid")
    values = drift[:, None] * [1.0, 0.5, -0.3, 0.8] + 0.1 * rng.normal(size=(2000, 4))
    table = pd.DataFrame(values, columns=["load", "oil", "flow", "speed"])
    table.insert(0, "time", pd.date_range("2024-05-01", periods=2000, freq="1min"))
    table.loc[1000:1019, "flow"] -= 3  # a leak
    table.loc[1300:1309, "speed"] += 2  # a test
    table.loc[1600:1699, ["oil", "flow"]] += [4, 4]  # an overhaul
    table.to_csv(folder / "unit1.csv", index=False)
    arguments = ["fit", str(folder / "unit1.csv"), "--until", "2024-05-01 13:19", "--quiet"]
    assert main([*arguments, "--model", str(folder / "unit1.penstock")]) == 0
    return folder


RULES = ["--on-delay", "2min", "--off-delay", "5min", "--rejoin", "10min", "--stale-model", "0s"]


def watched(folder: Path, tmp_path: Path, *more: str) -> list[Alarm]:
    files = ["--output", str(tmp_path / "v.jsonl"), "--alarms", str(tmp_path / "a.jsonl"), "--overwrite", "--quiet"]
    command = ["watch", str(folder / "unit1.csv"), "--model", str(folder / "unit1.penstock"), *files, *RULES, *more]
    assert main(command) == 0
    return [each.alarm for each in read_alarms(tmp_path / "a.jsonl").changes if each.kind == "raised" and each.alarm]


def begun_at(row: int, alarms: list[Alarm]) -> Alarm | None:
    """Return the alarm that began within five minutes after a row."""
    start = pd.Timestamp("2024-05-01").timestamp() + 60 * row
    return next((alarm for alarm in alarms if 0 <= alarm.since - start <= 300), None)


def test_from_an_alarm_to_a_label_to_a_model_that_remembers(
    history: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    first = watched(history, tmp_path)
    leak, test, overhaul = (begun_at(row, first) for row in (1000, 1300, 1600))
    assert leak is not None
    assert test is not None
    assert overhaul is not None
    assert [leak.cause, test.cause] == ["flow low", "speed high"]
    labels = tmp_path / "labels.jsonl"
    said = {leak.id: "real defect", test.id: "false alarm", overhaul.id: "maintenance"}
    for alarm, reason in said.items():
        common = ["--labels", str(labels), "--who", "Ada"]
        assert main(["alarms", "label", str(tmp_path / "a.jsonl"), alarm, reason, *common]) == 0
    assert capsys.readouterr().out.split() == [f"{alarm}~1" for alarm in said]

    again = watched(history, tmp_path, "--labels", str(labels))
    assert [begun_at(row, again) is None for row in (1000, 1300, 1600)] == [False, True, False]

    model = history / "unit1.penstock"
    before = model.read_bytes()
    refit = ["refit", str(model), str(history / "unit1.csv"), "--labels", str(labels), *RULES]
    assert main(refit) == 0
    text = capsys.readouterr().out
    assert model.read_bytes() == before, "nothing is switched unless asked"
    assert "Nothing was written" in text
    table = {line[:26].strip(): line[26:].replace(" of ", "/").split() for line in text.splitlines() if line}
    assert table["labelled defects found"] == ["1/1", "1/1"]
    assert table["false alarms again"] == ["0/1", "0/1"]
    assert main([*refit, "--switch", "--quiet"]) == 0
    assert model.with_name("unit1.penstock.old").read_bytes() == before
    excluded = sum((until - since) / 60 + 1 for since, until in excluded_periods(read_labels(labels)))
    assert excluded > 100
    assert len(load_model(model).training_scores) == 2000 - excluded
    assert begun_at(1300, watched(history, tmp_path, "--labels", str(labels))) is None

    assert main(["alarms", "withdraw", f"{test.id}~1", "--labels", str(labels), "--who", "Bob"]) == 0
    assert main(["alarms", "withdraw", f"{test.id}~1", "--labels", str(labels), "--who", "Bob"]) == 2
    assert len(labels.read_text().splitlines()) == 4, "the record only grows"


def test_wrong_labels_on_the_command_line(history: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    watched(history, tmp_path)
    common = ["--labels", str(tmp_path / "labels.jsonl"), "--who", "Ada"]
    alarms = str(tmp_path / "a.jsonl")
    assert main(["alarms", "label", alarms, "unit1-99", "real defect", *common]) == 2
    assert "no alarm 'unit1-99'" in capsys.readouterr().err
    assert main(["alarms", "label", alarms, "unit1-1", "bad luck", *common]) == 2
    assert "must be one of" in capsys.readouterr().err
    (tmp_path / "labels.jsonl").write_text('{"kind": "label"}\n')
    refit = ["refit", str(history / "unit1.penstock"), str(history / "unit1.csv")]
    assert main([*refit, "--labels", str(tmp_path / "labels.jsonl")]) == 2
    assert "line 1: this is no label" in capsys.readouterr().err
    assert main([*refit, "--labels", str(tmp_path / "none.jsonl")]) == 2
    common = ["--labels", str(tmp_path / "good.jsonl")]
    assert main(["alarms", "label", alarms, "unit1-1", "real defect", *common, "--who", "Ada"]) == 0
    assert main([*refit, *common, "--asset", "pump"]) == 2
    assert "--asset must be one that has labels ('unit1'); got 'pump'." in capsys.readouterr().err
