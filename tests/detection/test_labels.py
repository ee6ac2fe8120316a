"""What people say of incidents and alarms is kept apart from the fit, makes later ones known, and can be taken back."""

from __future__ import annotations

import importlib
import json
import os
import signal
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.cli import main
from penstock.detection import load
from penstock.explain import FAULT, MOST_LABELS, NORMAL, Label, excluded_periods, find_known, labels_of, read_labels
from penstock.explain.situations import is_alike, joined_patterns, likeness
from penstock.live.alarm_files import read_alarms
from penstock.live.alarm_records import Alarm, Change, RowVerdict, Sensor
from penstock.live.alarms import AlarmBook
from penstock.live.options import AlarmRules


def a_label(reason: str, pattern: dict[str, float] | None = None, **changes: Any) -> Label:
    label = Label("a-1~1", "a-1", "a", reason, "Ada", 40.0, 10.0, 40.0, pattern or {"oil": 3.0})
    return replace(label, **changes)


patterns = st.dictionaries(st.sampled_from("abcdef"), st.floats(1, 50) | st.floats(-50, -1), max_size=6)


@given(patterns, patterns)
def test_likeness_is_the_cosine(one: dict[str, float], other: dict[str, float]) -> None:
    a, b = (np.array([each.get(name, 0.0) for name in "abcdef"]) for each in (one, other))
    lengths = np.linalg.norm(a) * np.linalg.norm(b)
    assert likeness(one, other) == pytest.approx(a @ b / lengths if lengths else 0.0, abs=1e-9)
    assert is_alike(one, one) == bool(one)
    slow = (
        bool(lengths) and a @ b / lengths >= 0.8 and all(abs(x) <= 2 * abs(y) + 2.5 for x, y in zip(a, b, strict=True))
    )
    if not lengths or abs(a @ b / lengths - 0.8) > 1e-9:
        assert is_alike(one, other) == slow
    assert joined_patterns(one, other).keys() == {*one, *other}


def test_what_is_on_top_of_a_known_situation_is_not_excused() -> None:
    flood = {f"level {n}": 20.0 for n in range(20)}
    assert is_alike({**flood, "level 3": 30.0}, flood)
    assert not is_alike({**flood, "seal": 4.0}, flood)
    assert not is_alike(dict.fromkeys(flood, 60.0), flood), "the same, but far stronger"


def test_a_known_fault_is_never_excused_by_what_is_normal() -> None:
    normal, fault = a_label(NORMAL, at=90.0), a_label(FAULT, {"oil": 3.0, "flow": 1.5}, id="b", subject="b")
    assert find_known({"oil": 3.0}, [normal]) == normal
    assert find_known({"oil": 3.0}, [normal, fault]) == fault
    for other in (replace(normal, withdrawn_at=3.0), a_label("maintenance"), replace(normal, asset="b")):
        assert find_known({"oil": 3.0}, [other], "a") is None
    assert find_known({"oil": 3.0}, [normal], "a/group 1") == normal
    assert find_known({"oil": -3.0}, [normal]) is None
    assert find_known({}, [normal]) is None
    assert excluded_periods([normal, fault]) == [(10.0, 40.0)]
    assert excluded_periods([replace(fault, withdrawn_at=3.0)]) == []


def high(minute: int, *sensors: Sensor) -> RowVerdict:
    return RowVerdict("a", 60.0 * minute, 9.0, 4.0, sensors=sensors)


OIL, FLOW = Sensor("oil", 3.0, 1.0), Sensor("flow", 2.8, -1.0)


def test_an_alarm_that_is_known_is_listed_as_such_and_not_notified_until_it_is_something_else() -> None:
    book = AlarmBook(AlarmRules(on_delay="2min", group_wait="30s"))
    assert book.set_labels([a_label(NORMAL, subject="a-0")]) == []
    events = book.update([high(minute, OIL) for minute in range(5)])
    assert [(event.kind, event.quiet, event.alarm.known_as) for event in events if isinstance(event, Change)] == [
        ("raised", NORMAL, NORMAL)
    ]
    assert book.advance(2000.0) == []
    later = book.update([high(40, OIL), high(41, OIL, FLOW), high(42, OIL, FLOW)])
    assert [event.kind for event in later] == ["not recognised", "new"]
    assert book.active()[0].known == ""
    assert book.update([high(43, OIL, FLOW)]) == []


def test_a_label_acts_at_once_on_alarms_that_are_active_and_can_be_taken_back() -> None:
    book = AlarmBook(AlarmRules(on_delay="2min", group_wait="30s"))
    book.update([high(minute, OIL) for minute in range(3)])
    (alarm,) = book.active()
    label = a_label(NORMAL, subject="a-0")
    assert [event.kind for event in book.set_labels([label], 125.0)] == ["recognised"]
    assert book.quiet(book.active()[0]) == NORMAL
    again = AlarmBook.restore(json.loads(json.dumps(book.state())))
    again.set_labels([label])
    assert again.active() == book.active()
    assert [event.kind for event in again.set_labels([], 130.0)] == ["not recognised"]
    assert replace(again.active()[0], changes=alarm.changes) == alarm


@pytest.mark.parametrize(
    ("records", "message"),
    [
        ([{"kind": "label"}], "missing"),
        ([{**a_label("fault").as_dict(), "reason": "who knows"}], "reason must be one of"),
        ([{**a_label("fault").as_dict(), "who": " "}], "name of the person"),
        ([{**a_label("fault").as_dict(), "until": float("inf")}], "finite"),
        ([a_label("fault").as_dict()] * 2, "two labels"),
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


def labelled(tmp_path: Path, alarm: str, reason: str, *more: str) -> int:
    files = [str(tmp_path / "a.jsonl"), alarm, "--as", reason, "--labels", str(tmp_path / "labels.jsonl")]
    return main(["label", *files, "--who", "Ada", *more])


def test_from_an_alarm_to_a_label_to_a_model_that_remembers(
    history: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    first = watched(history, tmp_path)
    leak, test, overhaul = (begun_at(row, first) for row in (1000, 1300, 1600))
    assert leak is not None
    assert test is not None
    assert overhaul is not None
    assert [leak.cause, test.cause] == ["flow low", "speed high"]
    labels, model = tmp_path / "labels.jsonl", tmp_path / "unit1.penstock"
    before = (history / "unit1.penstock").read_bytes()
    model.write_bytes(before)
    said = {leak.id: "fault", test.id: "normal", overhaul.id: "maintenance"}
    for alarm, reason in said.items():
        assert labelled(tmp_path, alarm, reason) == 0
    assert [line.partition(":")[0] for line in capsys.readouterr().out.splitlines()] == [f"{each}~1" for each in said]

    watched(history, tmp_path, "--labels", str(labels))  # what is like it is known; it is not hidden
    ended = {each.alarm.id: each.alarm for each in read_alarms(tmp_path / "a.jsonl").changes if each.alarm}
    known = {row: begun_at(row, list(ended.values())) for row in (1000, 1300, 1600)}
    assert [None if each is None else each.known_as for each in known.values()] == ["fault", "rare but normal", ""]

    refit = ["refit", "--model", str(model), str(history / "unit1.csv"), "--labels", str(labels), *RULES]
    assert main(refit) == 0
    text = capsys.readouterr().out
    assert model.read_bytes() == before, "nothing is switched unless asked"
    assert "Nothing was written" in text
    table = {line[:28].strip(): line[28:].replace(" of ", "/").split() for line in text.splitlines() if line}
    assert table["labelled faults found"][:2] == ["1/1", "1/1"]
    assert main([*refit, "--switch", "--quiet"]) == 0
    assert model.with_name("unit1.penstock.old").read_bytes() == before
    new = load(model)
    assert [label.reason for label in new.labels] == ["fault", "rare but normal"], "labels survive a refit"
    excluded = sum((until - since) / 60 + 1 for since, until in excluded_periods(read_labels(labels)))
    assert excluded > 100
    assert 1500 - excluded < len(new.training_scores) <= 1600 - 20, "neither what is held out nor what was marked"
    again = watched(history, tmp_path, "--model", str(model))
    assert begun_at(1000, again).known_as == "fault", "also without the file of labels"

    assert main(["label", str(labels), f"{test.id}~1", "--undo", "--who", "Bob"]) == 0
    assert main(["label", str(labels), f"{test.id}~1", "--undo", "--who", "Bob"]) == 2
    assert len(labels.read_text().splitlines()) == 4, "the record only grows"
    capsys.readouterr()
    assert main(["label", str(labels)]) == 0
    assert "taken back by Bob" in capsys.readouterr().out


def test_alarms_that_have_no_label_are_not_fitted_to(
    history: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    command = [
        "refit",
        "--model",
        str(history / "unit1.penstock"),
        str(history / "unit1.csv"),
        *RULES,
        "--hold-out",
        "0.1",
    ]
    assert main([*command, "-o", str(tmp_path / "safe.penstock")]) == 0
    text = capsys.readouterr().out
    assert "without a label were left out of fitting" in text
    assert main([*command, "--fit-unlabelled", "-o", str(tmp_path / "all.penstock")]) == 0
    assert "without a label were fitted to as normal" in capsys.readouterr().out
    safe, everything = (load(tmp_path / f"{name}.penstock") for name in ("safe", "all"))
    assert len(everything.training_scores) == 1800
    assert len(safe.training_scores) <= 1800 - 100 - 20 - 10  # the overhaul, the leak, the test
    again = watched(history, tmp_path, "--model", str(tmp_path / "safe.penstock"))
    assert begun_at(1600, again) is not None, "what was not fitted to is found again"


def test_a_refit_on_a_schedule_goes_on_until_it_is_ended(
    history: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    import penstock.live.refit

    cli = importlib.import_module("penstock.cli.refit")  # the name is that of the command, too

    (tmp_path / "unit1.penstock").write_bytes((history / "unit1.penstock").read_bytes())
    before, calls = (tmp_path / "unit1.penstock").read_bytes(), []
    fit = penstock.live.refit.refit

    def counted(*given: Any, **options: Any) -> Any:
        calls.append(1)
        if len(calls) == 2:
            raise ValueError("the disk is full")
        return fit(*given, **options)

    def wait(seconds: float) -> None:
        if len(calls) == 3:
            os.kill(os.getpid(), signal.SIGTERM)

    monkeypatch.setattr(penstock.live.refit, "refit", counted)
    monkeypatch.setattr(cli, "_wait", wait)
    command = [
        "refit",
        "--model",
        str(tmp_path / "unit1.penstock"),
        str(history / "unit1.csv"),
        *RULES,
        "--every",
        "1s",
    ]
    assert main(command) == 128 + signal.SIGTERM
    assert len(calls) == 3
    assert "the disk is full Tried again" in capsys.readouterr().err
    assert (tmp_path / "unit1.penstock").read_bytes() == before, "it never switches by itself"
    (dated,) = set(tmp_path.glob("*.penstock")) - {tmp_path / "unit1.penstock"}
    assert len(load(dated).training_scores) > 1000
    assert main([*command[:-1], "0.1s"]) == 2


def test_wrong_labels_on_the_command_line(history: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    watched(history, tmp_path)
    assert labelled(tmp_path, "unit1-99", "fault") == 2
    assert "no 'unit1-99'" in capsys.readouterr().err
    assert labelled(tmp_path, "unit1-1", "bad luck") == 2
    assert "--as must be one of" in capsys.readouterr().err
    assert main(["label", str(tmp_path / "a.jsonl"), "unit1-1", "--as", "fault"]) == 2
    assert "--model" in capsys.readouterr().err
    (tmp_path / "labels.jsonl").write_text('{"kind": "label"}\n')
    refit = ["refit", "--model", str(history / "unit1.penstock"), str(history / "unit1.csv")]
    assert main([*refit, "--labels", str(tmp_path / "labels.jsonl")]) == 2
    assert "line 1: this is no label" in capsys.readouterr().err
    assert main([*refit, "--labels", str(tmp_path / "none.jsonl")]) == 2
    (tmp_path / "labels.jsonl").unlink()
    assert labelled(tmp_path, "unit1-1", "fault") == 0
    capsys.readouterr()
    assert main([*refit, "--labels", str(tmp_path / "labels.jsonl"), "--asset", "pump"]) == 2
    assert "--asset must be one that has labels ('unit1'); got 'pump'." in capsys.readouterr().err
    assert main(refit[:2]) == 2
    assert main([*refit, "--hold-out", "1.5"]) == 2


# From an incident of a report to a model that knows it.


def test_an_incident_of_a_report_is_known_to_the_model_afterwards(
    history: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    model = tmp_path / "unit1.penstock"
    model.write_bytes((history / "unit1.penstock").read_bytes())
    table = pd.read_csv(history / "unit1.csv", parse_dates=["time"])
    later = table[1200:1500].copy()
    later["time"] += pd.Timedelta("30D")
    later.to_csv(tmp_path / "later.csv", index=False)

    def scored(name: str, source: Path) -> dict[str, Any]:
        files = ["-o", str(tmp_path / name), "--overwrite", "--quiet"]
        assert main(["score", "--model", str(model), str(source), *files]) in (0, 1)
        document: dict[str, Any] = json.loads((tmp_path / name).read_text())
        return document

    first = scored("report.json", history / "unit1.csv")
    number = next(each["incident"] for each in first["incidents"] if each["first_sensor"] == "speed")
    assert not any(each["known"] for each in first["incidents"])
    report = str(tmp_path / "report.json")
    capsys.readouterr()
    assert main(["label", report, str(number), "--as", "normal", "--comment", "overspeed test", "--who", "Ada"]) == 0
    assert capsys.readouterr().out.startswith("1: ")
    found = scored("later.json", tmp_path / "later.csv")
    (known,) = [each for each in found["incidents"] if each["known"]]
    assert known["known"] == "rare but normal: overspeed test"
    assert known["reason"].startswith("Known as rare but normal: overspeed test (incident")
    assert found["verdict"]["sentence"].endswith("1 incident is like what is known as rare but normal.")
    assert found["verdict"]["kind"] == "nothing"
    assert main(["label", str(model)]) == 0
    assert "overspeed test" in capsys.readouterr().out
    assert main(["label", str(model), "1", "--undo"]) == 0
    assert not any(each["known"] for each in scored("later.json", tmp_path / "later.csv")["incidents"])
    assert main(["label", str(model), "1", "--undo"]) == 2
    assert main(["label", report, "99", "--as", "normal"]) == 2
    assert main(["label", report, "1", "--as", "normal", "--model", str(tmp_path / "none.penstock")]) == 2


def test_labels_in_python_are_bounded_and_can_be_undone(history: Path, tmp_path: Path) -> None:
    model = load(history / "unit1.penstock")
    findings = model.score(history / "unit1.csv")
    knows = model.labelled(findings, 1, "normal", "Ada", "a test")
    knows.save(tmp_path / "m.penstock")
    again = load(tmp_path / "m.penstock")
    assert again.labels == knows.labels
    assert again.score(history / "unit1.csv").incidents[0].is_known_normal
    assert len(again.labelled(findings, 1, "fault", "Bob").labels) == 1, "the new label takes the place of the old one"
    assert again.without_label("1").labels == ()
    with pytest.raises(KeyError):
        again.without_label("2")
    with pytest.raises(KeyError):
        again.labelled(findings, 99, "fault", "Bob")
    label = knows.labels[0]
    later = replace(label, since=label.since + 9.0)
    assert len(again.with_labels([later]).labels) == 2, "an incident of the same number, but of another time"
    many = [replace(label, subject=f"incident {n}") for n in range(MOST_LABELS)]
    full = model.with_labels(many)
    assert len({each.id for each in full.labels}) == MOST_LABELS
    with pytest.raises(ValueError, match="at most 100 labels"):
        full.with_labels([label])
