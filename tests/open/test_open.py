"""A project: a folder that the command line can use too, kept whole; uploads; and what HTTP refuses."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import urllib.error
import urllib.request
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from open_cases import plant_frame

import penstock
from penstock.cli import main
from penstock.detection import read_failures
from penstock.io import TableError, read_table
from penstock.live.options import AssetOptions
from penstock.live.runtime import RefusedError
from penstock.project import (
    Project,
    compare_periods,
    compare_units,
    notebook_json,
    opened_project,
)
from penstock.project.folder import toml_value
from penstock.project.tasks import EXPORTS, Desk
from penstock.project.worker import Worker


@pytest.fixture(scope="module")
def plant(tmp_path_factory):
    path = tmp_path_factory.mktemp("plant") / "plant.csv"
    plant_frame().to_csv(path, index=False)
    return path


@pytest.fixture
def project(tmp_path, plant):
    made = Project(tmp_path / "unit1")
    made.use(str(plant))
    return made


def desk_of(project):
    return Desk(project, lambda stage: None)


def done(desk, what, **given):
    kind, answer = desk.carry_out(what, given)
    assert kind == "done", answer
    return answer


# Options of detect that a project needs.


def test_training_periods_are_what_a_rule_says(plant):
    by_period = penstock.fit_model(
        plant, train_periods=["2024-05-01..2024-05-02", "2024-05-04T00:00..2024-05-04T12:00"]
    )
    rule = "time <= '2024-05-02' or time >= '2024-05-04 00:00' and time <= '2024-05-04 12:00'"
    by_rule = penstock.fit_model(plant, train_rule=rule)
    assert np.array_equal(by_period.training_scores, by_rule.training_scores)
    assert len(by_period.training_scores) == 2 * 144 + 73
    with pytest.raises(TableError) as caught:
        penstock.fit_model(plant, train_periods="2024-05-01..", train_until="2024-05-02")
    assert caught.value.parameter == "train_until"
    with pytest.raises(TableError, match="nothing to learn from"):
        penstock.fit_model(plant, train_periods="2030-01-01..2030-02-01")


@pytest.mark.parametrize(
    "text",
    [
        "start,end,text\n2024-05-05 20:40,2024-05-06 01:30,oil hot\n",
        "Beginn;Ende;Beschreibung\n05.05.2024 20:40;06.05.2024 01:30;oil hot\n31.05.2024 10:00;;later\n",
        "2024-05-05,2024-05-06\n",
    ],
)
def test_a_log_of_failures_is_compared_with(tmp_path, plant, text):
    log = tmp_path / "log.csv"
    log.write_text(text)
    known = penstock.detect(plant, failures=log).assessment.agreement
    assert (known.n_scored_faults, known.n_found) == (1, 1)


def test_a_log_that_is_none_is_refused(tmp_path, plant):
    log = tmp_path / "log.csv"
    for text in ("", "start,end\nsoon,later\n"):
        log.write_text(text)
        with pytest.raises(TableError) as caught:
            penstock.detect(plant, failures=log)
        assert caught.value.parameter == "failures"
    assert read_failures(None) == ()


def test_known_faults_are_not_learnt_from_and_normal_ones_are_known(project):
    desk = desk_of(project)
    done(desk, "detect")
    (incident,) = project.read_json("findings")["incidents"]
    assert incident["first_sensor"] == "oil"
    project.label(incident, "fault", "Ada", "bearing")
    assert project.settings["labels"] == "labels.jsonl"
    start, end = (pd.Timestamp(incident[name]) for name in ("start", "end"))
    n_rows = int((end - start) / pd.Timedelta("10min")) + 1
    (path,) = [project.fit()]
    assert len(penstock.load(path).training_scores) == 900 - n_rows
    assert [each.reason for each in penstock.load(path).labels] == ["fault"]
    project.label(incident, "normal", "Bob", "test run")  # takes the place of the first
    assert [each.reason for each in project.labels] == ["rare but normal"]
    done(desk, "detect")
    document = project.read_json("findings")
    assert document["incidents"][0]["known"] == "rare but normal: test run"
    assert document["changed"] == ["Incident 1 is now known (rare but normal: test run)."]
    project.take_back(project.labels[0].id, "Bob")
    assert project.labels == []


# The folder.


def test_the_command_line_does_what_the_page_does(project, monkeypatch, capsys):
    project.set_roles(["flow"], "driver")
    project.set_roles(["head"], "left out")
    project.add_period("exclude_periods", "2024-05-01T00:00:00..2024-05-01T12:00:00")
    project.add_period("train_periods", "2024-05-01T13:00:00..2024-05-05T12:00:00")
    ours = project.detect()
    monkeypatch.chdir(project.folder)
    assert main(["detect", "--config", "penstock.toml", "--json"]) == 0
    theirs = json.loads(capsys.readouterr().out)
    assert theirs["verdict"]["sentence"] == ours.verdict.sentence
    assert [each["start"] for each in theirs["incidents"]] == [
        str(each.isoformat()) for each in ours.incident_table["start"]
    ]
    assert ours.inputs.names == ("load", "oil", "flow")
    assert main(["fit", "--config", "penstock.toml", "-q", "--model", "models/unit1-1.penstock"]) == 0
    assert [each.name for each in project.models] == ["unit1-1.penstock"]
    assert project.fit().name == "unit1-2.penstock"


@pytest.mark.parametrize("name", ['a "b"', "c\\d", "e=f", "tab\there", "ümlaut", "del\x7f", "comma, too", "#x"])
def test_settings_come_back_as_they_were(tmp_path, name):
    project = Project(tmp_path)
    project.change(exclude=[name], roles=[f"{name}=driver"], timezone="Europe/Berlin", day_first=True)
    assert project.settings == {
        "source": [], "exclude": [name], "roles": [f"{name}=driver"], "timezone": "Europe/Berlin", "day_first": True,
    }  # fmt: skip
    project.change(exclude=None, roles=(), timezone="", day_first=None)
    assert project.settings == {"source": []}
    assert toml_value(3) == "3"


def test_wrong_settings_are_refused(tmp_path):
    project = Project(tmp_path)
    for wrong in ({"nonsense": 1}, {"day_first": "yes"}, {"exclude": [{}]}, {"timezone": True}):
        with pytest.raises(RefusedError):
            project.change(**wrong)
    (tmp_path / "penstock.toml").write_text("time-zone = 'x'")
    with pytest.raises(RefusedError, match="no option of a project"):
        _ = project.settings
    for kind, period in [
        ("label", "2024..2025"),
        ("train_periods", "gestern..heute"),
        ("train_periods", "2024-05-03..2024-05-01"),
        ("exclude_periods", ".."),
        ("exclude_periods", "2024-05-03"),
    ]:
        with pytest.raises(RefusedError):
            project.add_period(kind, period)
    with pytest.raises(RefusedError, match="no file"):
        project.use(str(tmp_path / "nothing.csv"))


def test_scoring_again_reads_nothing_again(project):
    desk = desk_of(project)
    done(desk, "look")
    assert done(desk, "detect")["reads"] == 1
    project.add_period("exclude_periods", "2024-05-01..2024-05-01")
    assert done(desk, "detect")["reads"] == 1
    assert project.read_json("findings")["key"] == project.key
    project.change(timezone="UTC")
    assert done(desk, "detect")["reads"] == 2


def test_periods_are_understood_as_people_write_them(project):
    project.add_period("train_periods", "01.05.2024 .. 3.5.2024 14:20")
    project.add_period("train_periods", "2024-05-04..2024-05-04T12:00")
    project.add_period("exclude_periods", "..10")
    assert project.settings["train_periods"] == ["2024-05-01..2024-05-03T14:20:00", "2024-05-04..2024-05-04T12:00"]
    assert project.settings["exclude_periods"] == ["..10"]


def test_models_are_numbered_on_when_one_is_gone(project):
    first, second = project.fit(), project.fit()
    first.unlink()
    assert (second.name, project.fit().name) == ("unit1-2.penstock", "unit1-3.penstock")


def test_a_label_does_not_fit_again(project):
    desk = desk_of(project)
    first = done(desk, "detect")
    (incident,) = project.read_json("findings")["incidents"]
    project.label(incident, "normal", "Ada", "test run")
    again = done(desk, "detect")
    assert (first["fits"], again["fits"]) == (1, 1)
    kept = project.read_json("findings")["incidents"]
    assert [each["known"] for each in kept] == ["rare but normal: test run"]
    done(desk_of(project), "detect")  # from nothing: the same
    assert project.read_json("findings")["incidents"] == kept
    project.add_period("exclude_periods", "2024-05-01..2024-05-01")
    assert done(desk, "detect")["fits"] == 2


def test_what_was_understood_is_a_document(project):
    done(desk_of(project), "look")
    look = project.read_json("look")
    assert [tag["name"] for tag in look["tags"]] == ["load", "oil", "flow", "head"]
    curve = np.array(look["tags"][1]["curve"], dtype=float)
    frame = plant_frame()
    assert len(curve) == 48
    assert (curve.min(), curve.max()) == pytest.approx((frame["oil"].min(), frame["oil"].max()))


def test_an_ambiguous_date_has_a_button(tmp_path):
    path = tmp_path / "dates.csv"
    rows = [f"0{day}/0{month}/2024,{day + month},{day * month}" for month in (1, 2, 3) for day in (1, 2, 3, 4)]
    path.write_text("time,a,b\n" + "\n".join(rows))
    project = Project(tmp_path / "project")
    project.use(str(path))
    done(desk_of(project), "look")
    cures = [cure for doubt in project.read_json("look")["doubts"] for cure in doubt["cures"]]
    assert {(cure["name"], cure["value"]) for cure in cures} & {("day_first", True), ("day_first", False)}


def test_a_bad_file_gets_the_sentence_of_the_command_line(tmp_path, capsys):
    path = tmp_path / "bad.csv"
    path.write_bytes(b"\x00\x01\x02nothing")
    project = Project(tmp_path / "project")
    project.use(str(path))
    kind, answer = desk_of(project).carry_out("look", {})
    assert kind == "failed"
    assert main(["look", str(path)]) == 2
    said = capsys.readouterr().err
    assert " ".join(answer["message"].split()) in " ".join(said.split())


def test_everything_is_kept(project):
    desk = desk_of(project)
    for kind, name in EXPORTS.items():
        assert done(desk, "export", kind=kind)["name"] == name
        assert (project.folder / "reports" / name).stat().st_size > 200
    assert (project.folder / "reports" / "report.html").read_text().startswith("<!DOCTYPE html>")
    kind, _ = desk.carry_out("export", {"kind": "../../x"})
    assert kind == "failed"


def test_the_notebook_runs_as_it_is(project):
    project.add_period("exclude_periods", "2024-05-01..2024-05-01")
    cells = json.loads(notebook_json(project))["cells"]
    names: dict = {}
    for cell in cells:
        if cell["cell_type"] == "code":
            exec("".join(cell["source"]), names)
    assert names["findings"].verdict.sentence == project.detect().verdict.sentence
    assert len(names["model"].training_scores) == 900 - 144


def test_periods_are_compared():
    table = read_table({"a": [1.0, 2, 3, 11, 12, 13], "b": [5.0, 6, 7, 6, 6, 7], "c": [1.0, 1, 1, 2, 2, 2]})
    found = compare_periods(table, "0..2", "3..5").set_index("tag")
    assert found.index[0] == "c"  # it never moved before
    assert found.loc["a", "change"] == 10
    assert np.isnan(found.loc["c", "apart"])
    assert found["differs"].to_dict() == {"a": True, "b": False, "c": True}
    assert found["since"].to_dict() == {"a": 3, "b": None, "c": 3}
    back = compare_periods(table, "3..5", "0..2").set_index("tag")
    assert (back.loc["a", "change"], back.loc["a", "since"]) == (-10, 3)
    assert compare_periods(table, "0..4", "3..5").set_index("tag").loc["c", "since"] is None  # they overlap
    with pytest.raises(TableError):
        compare_periods(table, "0..2", "70..80")


def sisters(folder):
    """Two units with the same tags, the oil of the second warmer from row 500 on."""
    rng, one = np.random.default_rng(3), plant_frame(900, range(0)).set_index("time")
    other = one + rng.normal(scale=0.2, size=one.shape)
    other.iloc[500:, 1] += 6
    one.to_csv(folder / "unit1.csv")
    other.to_csv(folder / "unit2.csv")
    one.add_prefix("unit1_").join(other.add_prefix("unit2_")).to_csv(folder / "wide.csv")
    both = pd.concat([one.assign(unit="unit1"), other.assign(unit="unit2")])
    both.to_csv(folder / "long.csv")
    return one.index[500]


@pytest.mark.parametrize("source", ["wide.csv", "long.csv", ["unit1.csv", "unit2.csv"]])
def test_sister_units_are_compared(tmp_path, source, capsys):
    moment = sisters(tmp_path)
    names = [str(tmp_path / each) for each in ([source] if isinstance(source, str) else source)]
    project = Project(tmp_path / "project")
    project.use(*names)
    project.change(group="unit" if source == "long.csv" else None)
    found = project.compare(units=("unit1", "unit2"))
    assert found["differs"].tolist() == [True, False, False, False]
    first = found.iloc[0]
    assert (first["tag"], str(first["since"])) == ("oil", moment)
    assert first["change"] == pytest.approx(6, abs=0.1)
    group = ["--group", "unit"] if source == "long.csv" else []
    output = tmp_path / "found.csv"
    given = [*names, *group, "--unit", "unit1", "--unit", "unit2"]
    assert main(["compare", *given, "--output", str(output)]) == 0
    assert moment in capsys.readouterr().out
    assert pd.read_csv(output)["tag"].tolist() == found["tag"].tolist()
    assert main(["compare", *given, "--output", str(output)]) == 2  # it is there
    assert main(["compare", *given[:-2]]) == 2
    assert main(["compare", *names, *group, "--unit", "unit1", "--unit", "unit9"]) == 2


def test_units_that_differ_in_nothing_differ_in_nothing():
    rng, times = np.random.default_rng(0), pd.date_range("2024-05-01", periods=500, freq="h").astype(str)
    base = np.sin(np.arange(500) / 30)
    tables = [read_table({"time": times, "oil": base + rng.normal(scale=0.1, size=500)}) for _ in range(2)]
    assert not compare_units(*tables)["differs"].any()
    always = read_table({"time": times, "oil": tables[1].values["oil"] + 5})
    found = compare_units(tables[0], always).iloc[0]
    assert (bool(found["differs"]), found["since"]) == (True, None)
    with pytest.raises(TableError):
        compare_units(tables[0], read_table({"time": times, "other": base}))


def test_rules_say_what_they_would_have_done(project):
    desk = desk_of(project)
    project.add_period("train_periods", "..2024-05-05T12:00:00")
    name = done(desk, "fit")["name"]
    answer = done(desk, "past", model=name, rules={"on_delay": "20min"})
    assert len(answer["alarms"]) == 1
    assert "2024-05-05 20:" in answer["alarms"][0]
    assert desk.carry_out("past", {"model": name, "rules": {"on_delay": "soon"}})[0] == "failed"
    assert desk.carry_out("past", {"model": "other", "rules": {}})[0] == "failed"
    asset = AssetOptions(model=project.models[0], input=Path(project.sources[0]))
    row = done(desk, "test_input", asset=asset)
    assert row["time"] == "2024-05-01T00:00:00"
    assert [each["name"] for each in row["readings"]] == ["load", "oil", "flow", "head"]


def test_a_project_is_open_once(tmp_path):
    with opened_project(tmp_path), pytest.raises(RefusedError, match="open already"), opened_project(tmp_path):
        pass


KILLED = """
import os, signal, sys
from penstock.project import Project

def work(folder, told):
    project = Project(folder)
    for number in range(100_000):
        os.write(told, b".")
        project.change(exclude_periods=[f"2024-05-{n % 28 + 1:02d}..2024-05-28" for n in range(number % 400)])
        project.write_json("look", {"number": number, "fill": "x" * 100_000})

for rounds in map(int, sys.argv[2:]):  # one process each, without the time to import everything again
    reading, writing = os.pipe()
    process = os.fork()
    if process == 0:
        work(f"{sys.argv[1]}/{rounds}", writing)
    for _ in range(rounds):
        os.read(reading, 1)
    os.kill(process, signal.SIGKILL)
    os.waitpid(process, 0)
"""


def test_killed_in_the_middle_the_folder_is_whole(tmp_path):
    rounds = ("1", "2", "5", "20")
    subprocess.run([sys.executable, "-c", KILLED, str(tmp_path), *rounds], check=True, timeout=300)
    for name in rounds:
        project = Project(tmp_path / name)
        assert set(project.settings) <= {"source", "exclude_periods"}
        assert project.read_json("look") is None or len(project.read_json("look")["fill"]) == 100_000
    assert [each.name for each in tmp_path.rglob("*.tmp")] == []


UPLOAD = """
import asyncio, sys
from pathlib import Path
from penstock.project.uploads import UploadLimits, receive

async def pieces():
    yield b"time,flow\\n"
    print("ready", flush=True)
    await asyncio.sleep(600)

asyncio.run(receive(Path(sys.argv[1]), "plant.csv", pieces(), UploadLimits()))
"""


def test_an_upload_that_was_killed_leaves_nothing(tmp_path):
    data = Project(tmp_path).folder / "data"
    with subprocess.Popen([sys.executable, "-c", UPLOAD, str(data)], stdout=subprocess.PIPE) as process:
        process.stdout.readline()
        assert len(list(data.iterdir())) == 1
        process.send_signal(signal.SIGKILL)
    assert Project(tmp_path).uploads == []
    assert list(data.iterdir()) == []


# The worker.


def test_work_can_be_cancelled_and_goes_on(project):
    worker = Worker(project)
    try:
        first = worker.start("detect")
        while worker.running is None:
            assert not first.done.wait(0.01)
        second = worker.start("look")
        assert worker.start("look") is second  # it waits already
        worker.cancel()
        assert first.done.wait(300)
        assert (first.error["message"], second.error["message"]) == ("Cancelled.", "Cancelled.")
        third = worker.start("look")
        assert third.done.wait(300)
        assert third.error is None
        os.kill(worker._process.pid, signal.SIGKILL)
        fourth = worker.start("look")
        assert fourth.done.wait(300)
        assert worker.start("look").done.wait(300)
    finally:
        worker.close()


def test_the_command_opens_a_project_and_ends_in_order(tmp_path, plant):
    command = [sys.executable, "-m", "penstock", "open", str(plant), "--no-browser"]
    with subprocess.Popen(command, cwd=tmp_path, stdout=subprocess.PIPE, text=True) as process:
        try:
            url, _, token = process.stdout.readline().removeprefix("Open ").strip().partition("#token=")
            asked = urllib.request.Request(url + "api/state", headers={"Authorization": f"Bearer {token}"})
            with urllib.request.urlopen(asked) as answer:  # the socket is bound: it waits
                state = json.loads(answer.read())
        finally:
            process.send_signal(signal.SIGTERM)
    assert state["folder"] == str(tmp_path / "plant-project")
    assert state["settings"]["source"] == [str(plant)]
    assert process.returncode == 128 + signal.SIGTERM
