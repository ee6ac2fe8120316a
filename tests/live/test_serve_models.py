"""Models of a live service have versions: verdicts name theirs, and another is put into use while rows come."""

from __future__ import annotations

import hashlib
import json
import os
import sqlite3
from contextlib import closing
from functools import cache
from pathlib import Path
from tempfile import mkdtemp

import pandas as pd
import pytest
from live_service import NAMES, Client, csv_of, model, options, rows, running
from waiting import wait_for

from penstock import fit_model, load
from penstock.cli import main
from penstock.live import Monitor, Observer, WatchOptions
from penstock.live.alarm_records import RefusedError
from penstock.live.api import export_frames, verdict_records
from penstock.live.fitted import FittedScorer
from penstock.live.options import AssetOptions
from penstock.live.runtime import Delivery, add_file
from penstock.live.web import LiveServer

ROWS = rows(n=1200, fault=[*range(700, 730), *range(1000, 1030)])


@cache
def other_model(*columns):
    """A model of some of the columns, in another order."""
    folder = Path(mkdtemp())
    (folder / "good.csv").write_text(csv_of(rows(seed=3)[:600][["time", *NAMES]]))
    fit_model(folder / "good.csv", columns=columns or ("oil", "power", "head", "flow")).save(folder / "other.penstock")
    return folder / "other.penstock"


def bring(service, start, stop, columns=("time", *NAMES)):
    return service.deliver(Delivery("unit1", csv_of(ROWS[start:stop][list(columns)]).encode(), "test")).result()


def named(records):
    return {name for each in records if each["flag"] for name in each["variables"]}


@pytest.mark.parametrize("columns", [(), ("oil", "power", "head"), ("oil", "head")])
def test_old_verdicts_name_their_sensors_after_a_restart_with_another_model(tmp_path, columns):
    with running(options(tmp_path)) as service:
        bring(service, 600, 800)
        before = verdict_records(service, "unit1")
        exported = pd.concat(export_frames(service, "unit1"), ignore_index=True)
        assert "oil" in named(before)
    with running(options(tmp_path, model=other_model(*columns))) as service:
        assert verdict_records(service, "unit1") == before
        answer = bring(service, 800, 1100)
        assert (answer["accepted"], answer["malformed"]) == (300, 0), "no row is refused"
        after = verdict_records(service, "unit1", after=200)
        assert {each["model"] for each in after} == {2}
        assert named(after) <= {*(columns or NAMES)}
        assert named(after) or len(columns) == 2, "of two columns none stands out"
        whole = pd.concat(export_frames(service, "unit1"), ignore_index=True)
        assert whole[:200][list(exported)].equals(exported), "nothing of what was there is lost"
        assert whole[200:][list(columns or NAMES)].notna().sum().min() > 250
        assert [each["action"] for each in service.store.audit()] == ["new model"]


def test_a_hot_switch_and_the_way_back(tmp_path):
    with running(options(tmp_path)) as service:
        bring(service, 600, 700)
        store = service.store
        with pytest.raises(RefusedError, match="no model version 2"):
            service.use_model("unit1", 2, "Ada").result()
        with pytest.raises(RefusedError, match="is the first"):
            service.use_model("unit1", None, "Ada").result()
        assert main(["model", "use", str(other_model()), "--store", str(store.path), "--who", "Ada"]) == 0
        bring(service, 700, 900)
        with pytest.raises(RefusedError, match="in use already"):
            service.use_model("unit1", 2, "Ada").result()
        assert service.use_model("unit1", None, "Bob").result()["version"] == 1
        bring(service, 900, 1100)
        records = verdict_records(service, "unit1")
        assert [each["model"] for each in records] == [1] * 100 + [2] * 200 + [1] * 200
        assert [each["row"] for each in records] == list(range(1, 501))
        for part in (records[100:300], records[300:]):
            assert "oil" in named(part)
        audit = [(each["who"], each["action"], each["details"]["version"]) for each in store.audit()]
        assert [each for each in audit if each[1] == "use model"] == [("Bob", "use model", 1), ("Ada", "use model", 2)]
    with running(options(tmp_path)) as service:
        assert service.assets["unit1"].record.version == 1
        assert service.use_model("unit1", 2, "Ada").result()["row"] == 501
    with running(options(tmp_path)) as service:  # the configuration is as before: what a person has switched stays
        assert service.assets["unit1"].record.version == 2
        bring(service, 1100, 1200)
        assert verdict_records(service, "unit1", after=500)[0]["model"] == 2
    with running(options(tmp_path, model=other_model("oil", "head"))) as service:  # it names another one
        assert service.assets["unit1"].record.version == 3


def test_scores_after_a_switch_are_those_of_a_service_that_begins_with_that_model(tmp_path):
    (tmp_path / "fresh").mkdir()
    with running(options(tmp_path / "fresh", model=other_model())) as service:
        bring(service, 800, 1000)
        expected = verdict_records(service, "unit1")
    with running(options(tmp_path, names=("unit1", "unit2"))) as service:
        bring(service, 600, 800)
        main(["model", "use", str(other_model()), "--store", str(service.store.path), "--asset", "unit1"])
        bring(service, 800, 1000)
        found = verdict_records(service, "unit1", after=200)
        assert service.assets["unit2"].record.version == 1
    keys = ("time", "score", "threshold", "flag", "variables")
    assert [[each[key] for key in keys] for each in found] == [[each[key] for key in keys] for each in expected]


def test_a_model_of_other_columns_is_a_choice(tmp_path, capsys):
    """From a file that grows, too: it goes on where it was, with the columns of the new model."""
    file = tmp_path / "unit1.csv"
    file.write_text(csv_of(ROWS[600:700]))
    with running(options(tmp_path, input=file)) as service:
        wait_for(lambda: service.store.asset("unit1").rows >= 99)
        few = str(other_model("oil", "head"))
        command = ["model", "use", few, "--store", str(service.store.path), "--who", "Ada"]
        assert main(command) == 2
        said = capsys.readouterr().err
        assert "without 'flow', 'power'" in said
        assert "--other-columns" in said
        assert service.assets["unit1"].record.version == 1
        assert service.store.audit()[0]["action"] == "switch refused"
        assert main([*command, "--other-columns"]) == 0
        with file.open("a") as end:
            end.write(csv_of(ROWS[700:900]).partition("\n")[2])
        wait_for(lambda: service.store.asset("unit1").rows >= 299)
        assert service.assets["unit1"].record.columns == ("oil", "head")
        records = verdict_records(service, "unit1")
        assert [each["time"] for each in records] == ROWS["time"][600 : 600 + len(records)].tolist()
        assert named(records[100:]) <= {"oil", "head"}
        assert main(["model", "rollback", "--store", str(service.store.path), "--other-columns"]) == 0
        assert not service.problems
        with file.open("a") as end:
            end.write(csv_of(ROWS[900:1000]).partition("\n")[2])
        wait_for(lambda: service.store.asset("unit1").rows >= 399)
        assert verdict_records(service, "unit1")[-1]["model"] == 1


def test_the_commands_while_no_service_runs(tmp_path, capsys):
    store = str(tmp_path / "live.db")
    assert main(["model", "list", "--store", store]) == 2
    with running(options(tmp_path)) as service:
        bring(service, 600, 700)
    assert main(["model", "rollback", "--store", store]) == 2
    assert main(["model", "use", "7", "--store", store]) == 2
    assert main(["model", "use", str(tmp_path / "none"), "--store", store]) == 2
    assert main(["model", "use", str(other_model()), "--store", store, "--asset", "unit9"]) == 2
    assert "There are unit1." in capsys.readouterr().err
    assert main(["model", "use", str(other_model()), "--store", store]) == 0
    assert "from the next start" in capsys.readouterr().out
    with running(options(tmp_path)) as service:
        wait_for(lambda: service.assets["unit1"].record.version == 2)
    assert main(["model", "list", "--store", store]) == 0
    said = capsys.readouterr().out
    assert "unit1: version 2 is in use." in said
    assert main(["model", "list", "--store", store, "--json"]) == 0
    found = json.loads(capsys.readouterr().out)["unit1"]
    assert [(each["version"], each["in_use"]) for each in found] == [(1, False), (2, True)]


def test_a_refit_of_what_a_service_has_seen_is_a_version_and_used_only_if_asked(tmp_path, capsys):
    store = str(tmp_path / "live.db")
    rules = ["--on-delay", "3s", "--off-delay", "5s", "--min-duration", "2s", "--rejoin", "20s"]
    with running(options(tmp_path)) as service:
        bring(service, 0, 1200)
        alarms = [each["id"] for each in service.store.alarms()]
        assert alarms
        service.act("label", alarms[-1], "Ada", reason="fault", comment="bearing").result()
        assert main(["refit", "--store", store, *rules]) == 0
        said = capsys.readouterr().out
        assert "Kept as version 2" in said
        assert "1 alarm without a label was left out of fitting" in said
        assert service.assets["unit1"].record.version == 1
        assert main(["refit", "--store", store, *rules, "--hold-out", "0.3", "--switch"]) == 0
        assert service.assets["unit1"].record.version == 3
        assert bring(service, 600, 700)["accepted"] == 0 or service.assets["unit1"].record.rows > 1200
        version = service.store.models(service.assets["unit1"].record.id)[3]
        (tmp_path / "new.penstock").write_bytes(service.store.model_file(version.digest))
        new = load(tmp_path / "new.penstock")
        assert [label.comment for label in new.labels] == ["bearing"]
        assert new.reading == load(model()).reading
    assert main(["refit", "--store", store, "--labels", store]) == 2


def test_the_api_shows_versions_and_switches(tmp_path):
    with LiveServer(options(tmp_path)) as server:
        client = Client(server.url)
        client.samples(csv_of(ROWS[600:800]))
        assert client.get("assets")[0]["model"] == 1
        assert main(["model", "use", str(other_model("oil", "head")), "--store", str(tmp_path / "live.db")]) == 2
        assert [each["version"] for each in client.get("assets/unit1/models")] == [1, 2]
        path = "assets/unit1/models/use"
        status, answer = client.command(path, version=2, name="Ada")
        assert (status, "other columns" in answer["error"]) == (409, True)
        assert client.command(path, version="2")[0] == 400
        assert client.command(path, version=2, other_columns=True, name="Ada")[0] == 200
        client.samples(csv_of(ROWS[800:900]))
        series = client.get("assets/unit1/series?hours=1&sensor=oil&sensor=power")
        assert series["model"] == [1] * 200 + [2] * 100
        power = series["sensors"]["power"]["value"]
        assert power[150] is not None
        assert power[-1] is None
        alarm = client.get("alarms")[0]
        assert client.get(f"alarms/{alarm['id']}")["model"] == 1
        assert client.command(path, name="Ada", other_columns=True)[1]["version"] == 1
        assert [each["in_use"] for each in client.get("assets/unit1/models")] == [True, False]
        assert client.get("assets/unit1")["columns"] == NAMES


def test_files_of_old_versions_are_bounded(tmp_path):
    with running(options(tmp_path)) as service:
        bring(service, 600, 700)
        store, record = service.store, service.assets["unit1"].record
    from penstock.live.store import Store

    store = Store(tmp_path / "live.db")
    with store.transaction():
        for number in range(40):
            data = b"model %d" % number
            store.add_model(record.id, hashlib.sha256(data).hexdigest(), data, "x.penstock", "Ada", 0.0)
    kept = [version for version, each in store.models(record.id).items() if _is_kept(store, each.digest)]
    store.close()
    assert kept == [1, *range(22, 42)], "that in use, and the newest 20"


def _is_kept(store, digest):
    try:
        return bool(store.model_file(digest))
    except LookupError:
        return False


def test_a_store_of_an_older_version_is_refused(tmp_path):
    with running(options(tmp_path)):
        pass
    with closing(sqlite3.connect(tmp_path / "live.db")) as connection, connection:
        connection.execute("PRAGMA user_version=1")
    with pytest.raises(ValueError, match="older penstock"), running(options(tmp_path)):
        pass


def test_labels_that_a_model_keeps_act_in_the_service(tmp_path):
    fitted = load(model())
    findings = fitted.score(ROWS[600:800].assign(time=ROWS["time"][600:800]), time="time")
    (incident,) = findings.incidents
    fitted.labelled(findings, incident.number, "normal", "Ada", "oil test").save(tmp_path / "knows.penstock")
    with running(options(tmp_path, assets={"unit1": AssetOptions(model=tmp_path / "knows.penstock")})) as service:
        bring(service, 800, 1200)
        (alarm,) = service.store.alarms()
        assert (alarm["known_as"], service.store.messages()) == ("rare but normal", [])


def test_another_model_ends_the_pause_of_an_asset_that_its_model_fails_on(tmp_path, monkeypatch):
    plain = FittedScorer.score

    def score(self, batch, n_variables, *, strict=False):
        if self.variable_names == tuple(NAMES):
            raise ZeroDivisionError("of all numbers")
        return plain(self, batch, n_variables, strict=strict)

    monkeypatch.setattr(FittedScorer, "score", score)
    file = tmp_path / "unit1.csv"
    file.write_text(csv_of(ROWS[600:800][["time", *NAMES]]))
    with running(options(tmp_path, input=file)) as service:
        wait_for(lambda: "input of unit1" in service.problems)
        newer = add_file(service.store, "unit1", other_model(), "other.penstock", "Ada")
        service.use_model("unit1", newer, "Ada").result(30)
        wait_for(lambda: service.store.asset("unit1").rows == 200)
        assert "input of unit1" not in service.problems
        assert {each["model"] for each in verdict_records(service, "unit1")} == {newer}


def test_the_store_of_a_watch_has_the_version_of_its_model(tmp_path, capsys):
    (tmp_path / "unit1.csv").write_text(csv_of(ROWS[600:800][["time", *NAMES]]))
    state = ["--state", str(tmp_path / "state"), "--output", str(tmp_path / "v.jsonl"), "--quiet"]
    command = ["watch", str(tmp_path / "unit1.csv"), "--model", str(model()), *state]
    for _ in range(2):  # it goes on from what is there
        assert main(command) == 0
    assert main(["model", "list", "--store", str(tmp_path / "state" / "watch.db"), "--json"]) == 0
    assert (tmp_path / "state" / "watch.db").stat().st_mode & 0o777 == 0o600  # it holds readings
    (version,) = json.loads(capsys.readouterr().out)["unit1"]
    assert (version["version"], version["in_use"], version["source"]) == (1, True, str(model()))
    assert version["names"] == version["columns"] == list(NAMES)


def watch_with(tmp_path, *more):
    """Watch what was written of rows so far, on a state."""
    state = ["--state", str(tmp_path / "state"), "--output", str(tmp_path / "v.jsonl"), "--quiet"]
    return main(["watch", str(tmp_path / "unit1.csv"), "--model", str(model()), *state, *more])


def test_another_model_for_a_watch_and_the_way_back(tmp_path, capsys):
    """From a file, between two runs: rows after the switch are scored as by a watch that begins with that model."""
    store, file = str(tmp_path / "state" / "watch.db"), tmp_path / "unit1.csv"
    file.write_text(csv_of(ROWS[600:800]))
    assert watch_with(tmp_path) == 0
    before = (tmp_path / "v.jsonl").read_text()
    assert main(["model", "use", str(other_model()), "--store", store, "--who", "Ada"]) == 0
    file.write_text(csv_of(ROWS[600:1000]))
    assert watch_with(tmp_path) == 0
    lines = [json.loads(line) for line in (tmp_path / "v.jsonl").read_text().splitlines()]
    assert (tmp_path / "v.jsonl").read_text().startswith(before)
    assert [line["row"] for line in lines] == list(range(1, 401))
    (tmp_path / "later.csv").write_text(csv_of(ROWS[800:1000]))
    fresh = ["watch", str(tmp_path / "later.csv"), "--model", str(other_model()), "-o", str(tmp_path / "fresh"), "-q"]
    assert main(fresh) == 0
    expected = [json.loads(line) for line in (tmp_path / "fresh").read_text().splitlines()]
    assert [{**line, "row": 0} for line in lines[200:]] == [{**line, "row": 0} for line in expected]
    capsys.readouterr()
    assert main(["model", "rollback", "--store", store]) == 0
    assert watch_with(tmp_path) == 0
    assert main(["model", "list", "--store", store, "--json"]) == 0
    found = json.loads(capsys.readouterr().out.partition("\n")[2])["unit1"]
    assert [(each["version"], each["in_use"]) for each in found] == [(1, True), (2, False)]
    assert main(["model", "use", "7", "--store", store]) == 2
    assert watch_with(tmp_path, "--threshold", "0.01") == 2, "other settings are refused as before"


def test_a_model_is_switched_while_a_watch_reads_a_pipe(tmp_path):
    reading, writing = os.pipe()
    given = WatchOptions(Path(f"/dev/fd/{reading}"), model=model(), output=tmp_path / "v", state=tmp_path / "state")
    with os.fdopen(writing, "w") as pipe:
        pipe.write(csv_of(ROWS[600:700]))
        pipe.flush()
        said, asked = [], []

        def stopped():
            rows = monitor.asset.record.rows
            if rows >= 99 and not asked:
                asked.append(add_file(monitor.store, monitor.asset.record.name, other_model("oil", "head"), "b", "Ada"))
                with monitor.store.transaction():
                    wanted = {"version": asked[0], "who": "Ada", "other_columns": True}
                    monitor.store.want_model(monitor.asset.record.id, wanted)
                monitor._next_look = 0.0
                pipe.write(csv_of(ROWS[700:900]).partition("\n")[2])
                pipe.flush()
            return rows >= 299

        monitor = Monitor(given, Observer(warning=said.append))
        monitor.run(stopped)
    lines = [json.loads(line) for line in (tmp_path / "v").read_text().splitlines()]
    assert [line["time"] for line in lines] == ROWS["time"][600 : 600 + len(lines)].tolist(), "no row is lost"
    assert len(lines) >= 299
    assert any(text.startswith("Version 2 of the model from row ") for text in said)
    assert named(lines[110:]) <= {"oil", "head"}


@pytest.mark.parametrize("kind", [RuntimeError, AttributeError, ZeroDivisionError, MemoryError])
def test_a_switch_that_fails_leaves_the_model_in_use_whatever_it_fails_of(tmp_path, monkeypatch, kind):
    with running(options(tmp_path)) as service:
        bring(service, 600, 700)
        newer = add_file(service.store, "unit1", other_model(), "other.penstock", "Ada")

        def fail(*_, **__):
            raise kind("an odd model")

        with monkeypatch.context() as patch:
            patch.setattr("penstock.live.assets.Asset.switched", fail)
            patch.setattr("penstock.live.runtime.scorer_maker", fail)
            with pytest.raises(RefusedError, match="an odd model"):
                service.use_model("unit1", newer, "Ada").result(30)
        bring(service, 700, 800)
        assert {each["model"] for each in verdict_records(service, "unit1")} == {1}
        assert service.store.audit()[0]["action"] == "switch refused"
        assert not service.problems
        assert service.use_model("unit1", newer, "Ada").result(30)["version"] == newer
