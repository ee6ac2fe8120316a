"""Alarms in files: `penstock watch --alarms`, `penstock alarms report`, and the measures of their load."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from live_tables import a_pipe, lines_of

import penstock
from penstock._parameters import ParameterError
from penstock.cli import main
from penstock.explain import Label
from penstock.io import TimeReader
from penstock.live import Monitor, WatchOptions
from penstock.live.alarm_files import AlarmClock, read_alarms
from penstock.live.alarm_load import alarm_load
from penstock.live.alarm_records import Alarm, AlarmState, Change, RowVerdict
from penstock.live.alarms import AlarmBook
from penstock.live.options import AlarmRules
from penstock.storage import StorageError

RULES = AlarmRules(on_delay="1min", off_delay="3min", min_duration=0, group_wait=0)


@pytest.fixture(scope="module")
def unit(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a model and a stream in which the oil is too warm for twenty rows, then gone for two hours."""
    folder = tmp_path_factory.mktemp("unit")
    rng = np.random.default_rng(0)
    drift = np.convolve(rng.normal(size=1219), np.ones(20) / 4, mode="valid")
    load = drift[:, None] * [1.0, 0.5, -0.3] + 0.1 * rng.normal(size=(1200, 3))
    table = pd.DataFrame(load, columns=["load", "oil", "flow"])
    table.insert(0, "time", pd.date_range("2024-05-01", periods=1200, freq="1min"))
    penstock.fit_model(table[:800]).save(folder / "unit1.penstock")
    live = table[800:].copy()
    live.loc[900:919, "oil"] += 5
    live.loc[1000:, "time"] += pd.Timedelta("2h")
    live.to_csv(folder / "live.csv", index=False)
    return folder


@pytest.fixture
def options(unit: Path, tmp_path: Path) -> WatchOptions:
    files = {name: tmp_path / f"{name}.jsonl" for name in ("output", "alarms")}
    model = unit / "unit1.penstock"
    return WatchOptions(unit / "live.csv", model=model, state=tmp_path / "state", snapshot_every=30, **files)


def test_watch_writes_alarms_and_goes_on_after_any_step(options: WatchOptions, tmp_path: Path) -> None:
    alarms, whole = Path(str(options.alarms)), tmp_path / "whole.jsonl"
    Monitor(replace(options, state=None, output=tmp_path / "other", alarms=whole), rules=RULES).run()
    raised = [line for line in lines_of(whole) if line["kind"] == "raised"]
    assert [(line["at"], line["alarm"]["cause"]) for line in raised] == [
        (raised[0]["at"], "oil high"),
        ("2024-05-01T17:39:00", "no data"),
    ]
    assert "2024-05-01T15:01:00" <= raised[0]["at"] <= "2024-05-01T15:04:00"
    (oil,) = [sensor for sensor in raised[0]["alarm"]["sensors"] if sensor["name"] == "oil"]
    assert oil["residual"] == pytest.approx(5, abs=1)
    assert oil["before"] is not None
    assert 0 < raised[0]["alarm"]["expected_by_chance"] < 1
    left = 0
    while not alarms.exists() or alarms.read_bytes() != whole.read_bytes() or left < 3:
        steps = iter([False] * 2 + [True])
        Monitor(options, rules=RULES).run(lambda steps=steps: next(steps))
        left += 1
        assert whole.read_bytes().startswith(alarms.read_bytes())
        assert left < 50
    assert left > 3


def test_of_a_pipe_no_change_is_lost_or_told_twice(unit: Path, options: WatchOptions) -> None:
    text = (unit / "live.csv").read_text().splitlines(keepends=True)
    ids = []
    for part in (text[:150], text[:1] + text[150:230], text[:1] + text[230:]):
        Monitor(replace(options, input=a_pipe("".join(part))), rules=RULES).run()
        ids = [line["id"] for line in lines_of(options.alarms)]
    assert len(ids) == len(set(ids))
    assert [each for each in ids if each.endswith(".1")] == ["stream-1.1", "stream-2.1"]


def test_wrong_files_and_settings(options: WatchOptions) -> None:
    with pytest.raises(ParameterError, match="alarms is needed"):
        Monitor(replace(options, alarms=None), rules=RULES)
    Monitor(options, rules=RULES).run()
    with pytest.raises(StorageError, match="is the --output already"):
        Monitor(replace(options, alarms=options.output), rules=RULES)
    with pytest.raises(StorageError, match="alarms: on_delay was"):
        Monitor(options)
    Path(str(options.alarms)).write_text("{}\n")
    with pytest.raises(StorageError, match="fewer than"):
        Monitor(options, rules=RULES)


@pytest.mark.parametrize(
    ("times", "seconds", "text"),
    [
        (["2024-05-01 10:00", "", "2024-05-01 10:02"], [1714557600, 1714557600, 1714557720], "2024-05-01T10:00:00"),
        (["2024-05-01T10:00:00.5Z"], [1714557600.5], "2024-05-01T10:00:00.5Z"),
        (["13.5.2024 10:00", "1.6.2024 10:00"], [1715594400, 1717236000], "2024-05-13T10:00:00"),
        ([1714557600, "1714557660"], [1714557600, 1714557660], "2024-05-01T10:00:00Z"),
        ([1714557600000], [1714557600], "2024-05-01T10:00:00Z"),
        (["45413.5", "45413,75"], [1714564800, 1714586400], "2024-05-01T12:00:00"),
        ([3, 4.5, None], [3, 4.5, 4.5], None),
        (["t0", "t1"], [420, 480], None),
        (None, [420], None),
    ],
)
def test_times_of_alarms(times: Any, seconds: list[float], text: str | None) -> None:
    reader = None if times is None else TimeReader.learn(times)
    clock = AlarmClock(reader)
    assert clock.seconds(None if reader is None else reader.seconds(times), 7, len(times or [None])) == seconds
    assert clock.text(seconds[0]) == text
    again = AlarmClock.restore(json.loads(json.dumps(clock.state())))
    assert (again.reader, again.counts_rows, again.last) == (reader, reader is None, clock.last)


def test_a_report_on_alarms_and_one_on_their_verdicts(
    options: WatchOptions, capsys: pytest.CaptureFixture[str]
) -> None:
    Monitor(options, rules=RULES).run()
    capsys.readouterr()
    rules = ["--on-delay", "1min", "--off-delay", "3min", "--min-duration", "0s", "--group-wait", "0s"]
    assert main(["alarms", "report", str(options.alarms), "--json"]) == 0
    of_alarms = json.loads(capsys.readouterr().out)
    assert main(["alarms", "report", str(options.output), "--json", *rules]) == 0
    of_verdicts = json.loads(capsys.readouterr().out)
    assert of_alarms["shown"] == of_verdicts["shown"] >= 2
    assert main(["alarms", "report", str(options.output), "--operators", "2", *rules]) == 0
    text = capsys.readouterr().out
    assert "2024-05-01T13:20:00 to 2024-05-01T21:59:00, 2 operators." in text
    assert "output: oil high" in text


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "is empty"),
        ('{"row": 1}\n', "line 1: neither"),
        ('{"row": 1, "score": null, "threshold": null, "flag": false, "variables": {}}\n[]\n', "line 2: neither"),
        ('{"kind": "raised", "time": 3}\n', "line 1: neither"),
        ("\x00\xff\n", "line 1: neither"),
    ],
)
def test_files_that_are_no_alarms(text: str, message: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "a.jsonl").write_text(text, encoding="latin-1")
    assert main(["alarms", "report", str(tmp_path / "a.jsonl")]) == 2
    assert message in capsys.readouterr().err
    assert main(["alarms", "report", str(tmp_path / "none.jsonl")]) == 2
    assert main(["alarms", "report", str(tmp_path / "a.jsonl"), "--on-delay", "soon"]) == 2
    assert "--on-delay" in capsys.readouterr().err


def shown(name: str, times: list[float], length: float, quiet: str = "") -> list[Change]:
    """An alarm that is raised at these times for so long, in seconds."""
    changes = []
    for time in times:
        alarm = Alarm(name, name[0], "alarm", "oil", AlarmState(active=True), time, time, time)
        changes.append(Change("", time, "raised", name[0], None, alarm, quiet=quiet))
        ended = replace(alarm, state=AlarmState(), ended=time + length)
        changes.append(Change("", time + length, "ended", name[0], alarm.state, ended))
    return changes


def test_labels_of_another_stream_are_not_left_out_in_silence(
    options: WatchOptions, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    label = Label("a~1", "a", "unit7", "maintenance", "Ada", 9.0, 0.0, 5.0, {})
    (tmp_path / "labels.jsonl").write_text(json.dumps(label.as_dict()) + "\n")
    files = [f"--{name}={tmp_path / name}" for name in ("output", "alarms")]
    given = [str(options.input), "--model", str(options.model), "--labels", str(tmp_path / "labels.jsonl")]
    assert main(["watch", *given, *files]) == 0
    assert "No label has an effect: they are of 'unit7', and this stream is 'live'." in capsys.readouterr().err


def test_the_load_of_alarms() -> None:
    day = 86_400.0
    changes = shown("a-1", [0, 20, 40], 10) + shown("b-1", [7000], 2 * day) + shown("c-1", [7000], 1.5 * day)
    changes += shown("d-1", [7000], 30, quiet="shelved")
    changes += [change for n in range(11) for change in shown(f"e-{n}", [100_200 + n], 300)]
    load = alarm_load(sorted(changes, key=lambda change: change.time), 0, 4 * day)
    assert (load.shown, load.alarms, load.mean_day) == (16, 14, 4.0)
    assert (load.mean_hour, load.mean_10_minutes) == (16 / 96, 16 / 576)
    assert (load.most_10_minutes, load.most_hour, load.most_day) == (11, 11, 11)
    assert load.flood_share == 1 / 577
    assert (load.chattering, load.fleeting, load.stale, load.most_stale) == (("a-1",), 4, ("b-1", "c-1"), 2)
    assert load.top == (("e: oil", 11), ("a: oil", 3), ("b: oil", 1), ("c: oil", 1))
    assert load.top_share == 1.0
    assert alarm_load([]).shown == 0


def test_acknowledged_alarms_count_with_the_time_they_waited() -> None:
    book = AlarmBook(RULES)
    events = book.update(RowVerdict("a", 60.0 * row, 9.0, 4.0) for row in range(5))
    events += book.act("acknowledge", "a-1", "Ada", 300)
    load = alarm_load([each for each in events if isinstance(each, Change)])
    assert (load.acknowledged, load.median_to_acknowledge) == (1, 240.0)


def test_changes_read_back_as_they_were_written(options: WatchOptions) -> None:
    Monitor(options, rules=RULES).run()
    record = read_alarms(Path(str(options.alarms)))
    written = [line for line in lines_of(options.alarms) if line["kind"] != "notification"]
    assert [{"at": record.clock.text(each.time), **each.as_dict()} for each in record.changes] == written
