"""What a live service would do before there is one: alarms of the past, and the first row of every kind of source."""

from __future__ import annotations

import json
import shutil
import signal
import socket
import subprocess
import sys
import urllib.request
from pathlib import Path

import pandas as pd
import pytest
from opcua_server import OpcUaServer
from open_cases import plant_frame

import penstock
from penstock.cli import main
from penstock.io import InputError, TableError, read_table
from penstock.live import Monitor, WatchOptions
from penstock.live.alarm_files import read_alarms
from penstock.live.options import AlarmRules, AssetOptions
from penstock.project import Project, first_row, past_alarms
from penstock.project.web import OpenOptions, ProjectApi

MOSQUITTO = shutil.which("mosquitto") or shutil.which("mosquitto", path="/usr/sbin")
RULES = AlarmRules(on_delay="20min")
ROW = {"time": "2024-06-01 10:00:00", "load": 50.0, "oil": 45.0, "flow": 10.0, "head": 83.0}
UNDERSTOOD = [{"name": name, "value": value} for name, value in list(ROW.items())[1:]]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    made = tmp_path_factory.mktemp("plant")
    plant_frame().to_csv(made / "plant.csv", index=False)
    penstock.fit_model(made / "plant.csv", train_periods="..2024-05-05T12:00").save(made / "plant.penstock")
    return made


def asset(folder, **given):
    return AssetOptions(model=folder / "plant.penstock", **given)


# Alarms of the past.


def test_past_alarms_are_those_of_a_watch(folder, tmp_path):
    model = folder / "plant.penstock"
    found = past_alarms(read_table(folder / "plant.csv"), model, RULES, [(1714939200.0, 1714960000.0)])
    options = WatchOptions(input=folder / "plant.csv", model=model, alarms=tmp_path / "a", output=tmp_path / "v")
    Monitor(options, rules=RULES).run(lambda: False)
    raised = [each.alarm.since for each in read_alarms(tmp_path / "a").changes if each.kind == "raised"]
    assert found["alarms"] == pd.to_datetime(raised, unit="s").astype(str).tolist()
    assert (len(raised), found["on_marks"]) == (1, 1)
    with pytest.raises(TableError):
        past_alarms(read_table({"load": [1.0, 2.0]}), model, RULES)
    times = ["2024-05-01 10:00", "2024-05-01 11:00"]
    with pytest.raises(TableError, match="needs 'oil'"):
        past_alarms(
            read_table({"time": times, "load": [1.0, 2.0], "flow": [1.0, 2.0], "head": [1.0, 2.0]}), model, RULES
        )


def test_past_alarms_of_a_table_on_three_clocks(tmp_path):
    frame, areas = plant_frame(), tmp_path / "areas"
    areas.mkdir()
    times = pd.to_datetime(frame["time"])
    for name, columns, shift, every in (("a", ["load"], 0, 1), ("b", ["oil"], 180, 1), ("c", ["flow", "head"], 61, 2)):
        part = frame[columns].set_axis((times + pd.Timedelta(shift, "s")).rename("time"), axis=0)
        part.iloc[::every].to_csv(areas / f"{name}.csv")
    project = Project(tmp_path / "project")
    project.use(str(areas))
    project.add_period("train_periods", "..2024-05-05T12:00")
    table = project.table()
    assert table.alignment is not None
    found = past_alarms(table, project.fit(), RULES)
    assert len(found["alarms"]) == 1
    assert found["alarms"][0].startswith("2024-05-05 2")


def test_past_alarms_by_command(folder, tmp_path, capsys):
    log = tmp_path / "log.csv"
    log.write_text("start,end,text\n2024-05-05 20:00,2024-05-06 02:00,oil\n")
    given = [str(folder / "plant.csv"), "--model", str(folder / "plant.penstock"), "--on-delay", "20min"]
    assert main(["alarms", "past", *given, "--failures", str(log)]) == 0
    words = capsys.readouterr().out
    assert "1 alarm in" in words
    assert "1 of them on your marks" in words
    assert "2024-05-05 20:" in words
    assert main(["alarms", "past", *given, "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["on_marks"] == 0
    assert main(["alarms", "past", *given, "--off-delay", "soon"]) == 2


# The first row.


def test_the_first_row_of_a_file_and_of_a_post(folder, tmp_path):
    found = first_row(asset(folder, input=folder / "plant.csv"))
    assert found["time"] == "2024-05-01T00:00:00"
    assert [each["name"] for each in found["readings"]] == ["load", "oil", "flow", "head"]
    for body in (json.dumps(ROW), "time,load,oil,flow,head\n2024-06-01 10:00,50,45,10,83\n"):
        found = first_row(asset(folder), body.encode())
        assert (found["time"], found["readings"]) == ("2024-06-01T10:00:00", UNDERSTOOD)
    for body in (json.dumps({**ROW, "load": "full"}), "nonsense", ""):
        with pytest.raises(ValueError, match=r"number|row"):
            first_row(asset(folder), body.encode())
    (tmp_path / "short.csv").write_text("time,load")
    for file, words in (("nothing.csv", "no file"), ("short.csv", "no row yet")):
        with pytest.raises(InputError, match=words):
            first_row(asset(folder, input=tmp_path / file), seconds=0.5)
    with pytest.raises(InputError, match="as it would be posted"):
        first_row(asset(folder))


def test_a_folder_is_read_file_by_file(folder, tmp_path):
    frame, days = plant_frame(), tmp_path / "days"
    days.mkdir()
    for number in (9, 10, 11):
        frame[300 * (number - 9) : 300 * (number - 8)].to_csv(days / f"day{number}.csv", index=False)
    (days / "notes.md").write_text("not a table")
    found = first_row(asset(folder, input=days))
    assert found["time"] == "2024-05-01T00:00:00"
    state, late = tmp_path / "state", days / "day12.csv"
    options = WatchOptions(input=days, follow=True, model=folder / "plant.penstock", output=tmp_path / "v", state=state)

    def rows():
        return len((tmp_path / "v").read_text().splitlines()) if (tmp_path / "v").exists() else 0

    Monitor(options).run(lambda: rows() >= 900)
    assert rows() == 900
    (days / "day10.csv").unlink()
    frame.assign(time=(pd.to_datetime(frame["time"]) + pd.Timedelta("10D")).astype(str))[:50].to_csv(late, index=False)
    Monitor(options).run(lambda: rows() >= 950)  # it goes on in the file that it had left
    times = [json.loads(line)["time"] for line in (tmp_path / "v").read_text().splitlines()]
    assert len(times) == 950
    assert times[:900] == frame["time"].tolist()


def free_port():
    with socket.create_server(("127.0.0.1", 0)) as free:
        return free.getsockname()[1]


def test_the_first_row_of_mqtt(folder, tmp_path):
    if MOSQUITTO is None:
        pytest.skip("there is no mosquitto on the path")
    mqtt = pytest.importorskip("paho.mqtt.client")
    port, settings = free_port(), tmp_path / "mosquitto.conf"
    settings.write_text(f"listener {port} 127.0.0.1\nallow_anonymous true\n")
    options = asset(folder, mqtt=f"mqtt://127.0.0.1:{port}/plant")
    with subprocess.Popen([MOSQUITTO, "-c", settings], stderr=subprocess.PIPE) as broker:
        assert any(line.rstrip().endswith(b"running") for line in broker.stderr)
        client = mqtt.Client(mqtt.CallbackAPIVersion.VERSION2)
        client.connect("127.0.0.1", port)
        client.loop_start()
        client.publish("plant", json.dumps(ROW), qos=1, retain=True).wait_for_publish(300)
        assert first_row(options)["readings"] == UNDERSTOOD
        client.disconnect()
        client.loop_stop()
        broker.terminate()


def test_a_broker_that_is_not_there_is_named(folder):
    pytest.importorskip("paho.mqtt.client")
    with pytest.raises(InputError, match=r"mqtt://127.0.0.1:\d+/plant: .*refused"):
        first_row(asset(folder, mqtt=f"mqtt://127.0.0.1:{free_port()}/plant"))


def test_the_first_row_of_kafka(folder):
    kafka = pytest.importorskip("confluent_kafka")
    producer = kafka.Producer({"bootstrap.servers": "none", "test.mock.num.brokers": 1})
    broker = next(iter(producer.list_topics(timeout=300).brokers.values()))
    producer.produce("plant", json.dumps(ROW))
    producer.flush(300)
    found = first_row(asset(folder, kafka=f"kafka://{broker.host}:{broker.port}/plant"), seconds=300)
    assert found["readings"] == UNDERSTOOD


def test_the_first_row_of_opc_ua(folder):
    pytest.importorskip("asyncua")
    plant = OpcUaServer(["load", "oil", "flow", "head"])
    plant.start()
    assert plant.ready.wait(300)
    nodes = tuple(f"{name}={node}" for name, node in plant.nodes.items())
    try:
        found = first_row(asset(folder, opcua=plant.url, opcua_nodes=nodes), seconds=300)
    finally:
        plant.stop()
    assert [each["value"] for each in found["readings"]] == [5.0] * 4
    with pytest.raises(InputError):
        first_row(asset(folder, opcua=plant.url, opcua_nodes=nodes), seconds=60)


# The project's live.toml.


def test_live_toml_of_a_project_is_served(folder, tmp_path, capsys):
    project = Project(tmp_path / "unit 1")
    shutil.copy(folder / "plant.penstock", project.folder / "models" / "unit-1-1.penstock")
    shutil.copy(folder / "plant.csv", project.folder / "data" / "plant.csv")
    api, port = ProjectApi(project, OpenOptions()), free_port()
    given = {"name": "pump", "model": "unit-1-1.penstock", "input": "data/plant.csv", "port": port}
    try:
        files = api.start_live({**given, "rules": {"on_delay": "20min"}})
    finally:
        api.close()
    assert files["toml"] == (project.folder / "live.toml").read_text()
    serve = [sys.executable, "-m", "penstock", "serve", "--config", "live.toml"]
    tested = subprocess.run([*serve, "--test"], check=False, cwd=project.folder, capture_output=True, text=True)
    assert (tested.returncode, "pump: 2024-05-01T00:00:00" in tested.stdout) == (0, True), tested.stderr
    with subprocess.Popen(serve, cwd=project.folder, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert "Watching pump" in process.stdout.readline()
            service, alarms = f"http://127.0.0.1:{port}/api/v1", []
            with urllib.request.urlopen(f"{service}/events") as events:
                while not alarms and events.readline():  # asked again at each line
                    with urllib.request.urlopen(f"{service}/alarms") as answer:
                        alarms = [each for each in json.loads(answer.read()) if each["about"] == "alarm"]
        finally:
            process.send_signal(signal.SIGTERM)
    assert [each["asset"] for each in alarms] == ["pump"]
    assert "oil" in alarms[0]["cause"]
    assert Path(project.folder / "live.db").exists()
