"""`penstock serve`: rows in, verdicts and alarms kept; what was accepted is neither lost nor counted twice."""

from __future__ import annotations

import json
import os
import random
import re
import shutil
import sqlite3
import time
from contextlib import closing
from pathlib import Path

import pytest
from live_service import HEADER, Client, csv_of, model, options, rows, running
from waiting import wait_for

from penstock.live import Monitor, WatchOptions
from penstock.live.alarm_records import RefusedError
from penstock.live.api import verdict_records
from penstock.live.options import AssetOptions
from penstock.live.runtime import Delivery
from penstock.live.service import Service
from penstock.live.store import Store
from penstock.live.web import LiveServer
from penstock.storage import StorageError

LIVE = rows(n=900)[600:]


def wait_for_rows(service, count, name="unit1"):
    enough = lambda: service.assets[name].record.rows >= count and not service.waiting  # noqa: E731
    wait_for(lambda: enough() or not service.alive)
    assert enough(), service.problems
    service.note_message(-1, None, 0).result()  # a transaction later


def whole(service):
    """All that must not depend on batches and restarts."""
    store, verdicts = service.store, {name: verdict_records(service, name) for name in service.assets}
    outbox = [(each["id"], each["target"], each["payload"]) for each in store.messages()]
    labels = [{key: each[key] for key in ("id", "reason", "since", "until")} for each in store.labels()]
    return {**verdicts, "changes": store.changes(), "alarms": store.alarms(), "outbox": outbox, "labels": labels}


def deliver(service, text, size, pieces=None):
    """Deliver lines in pieces, numbered; so many of them, or all."""
    lines = text.splitlines()[1:]
    for number, at in list(enumerate(range(0, len(lines), size)))[:pieces]:
        piece = "\n".join([HEADER, *lines[at : at + size]]).encode()
        service.deliver(Delivery("unit1", piece, "test", ("next", number))).result()


def in_turn(given, text, size):
    """Deliver lines in pieces, and return all that is kept."""
    with running(given) as service:
        deliver(service, text, size)
        return whole(service)


def test_verdicts_are_those_of_watch_however_rows_come(tmp_path):
    text = csv_of(LIVE)
    (tmp_path / "live.csv").write_text(text)
    watched = tmp_path / "verdicts.jsonl"
    Monitor(WatchOptions(tmp_path / "live.csv", model=model(), output=watched)).run()
    expected = [json.loads(line) for line in watched.read_text().splitlines()]
    with running(options(tmp_path, input=tmp_path / "live.csv")) as service:
        wait_for_rows(service, len(expected))
        by_file = whole(service)
    assert by_file["unit1"] == [{**each, "model": 1} for each in expected]
    kinds = [change["kind"] for change in by_file["changes"]]
    assert (kinds[0], kinds[-1]) == ("raised", "ended")
    assert len(by_file["outbox"]) == 2
    (tmp_path / "posted").mkdir()
    assert in_turn(options(tmp_path / "posted"), text, 37) == by_file


def test_a_restart_goes_on_and_new_rows_of_the_file_are_read(tmp_path):
    lines = csv_of(LIVE).splitlines(keepends=True)
    file = tmp_path / "live.csv"
    file.write_text("".join(lines))
    with running(options(tmp_path, input=file)) as service:
        wait_for_rows(service, len(lines) - 1)
        expected = whole(service)
    (tmp_path / "parts").mkdir()
    file = tmp_path / "parts" / "live.csv"
    given = options(tmp_path / "parts", input=file)
    for upto in (120, 121, len(lines)):
        file.write_text("".join(lines[:upto]))
        with running(given) as service:
            wait_for_rows(service, upto - 1)
            found = whole(service)
    assert found == expected


def test_a_folder_of_many_files_is_looked_through_once(tmp_path, monkeypatch):
    folder, looks, scandir = tmp_path / "unit1", [], os.scandir
    folder.mkdir()
    header, *lines = csv_of(LIVE).splitlines(keepends=True)
    for number, line in enumerate(lines):
        (folder / f"{number}.csv").write_text(header + line)
    os.utime(folder, (0, 0))
    monkeypatch.setattr(os, "scandir", lambda path: looks.append(path) or scandir(path))
    with running(options(tmp_path, input=folder)) as service:
        wait_for_rows(service, len(lines))
        assert [each["time"] for each in verdict_records(service, "unit1")] == LIVE["time"].tolist()
        assert service.commits < 20
    assert looks.count(folder) < len(lines) / 5  # at the end, for files that come


CHANGED = {
    "swapped": lambda table: csv_of(table[["time", "oil", "power", "head", "flow"]]),
    "more": lambda table: csv_of(table.assign(extra=1.0)),
    "semicolons": lambda table: csv_of(table).replace(",", ";"),
    "json": lambda table: table.to_json(orient="records", lines=True, double_precision=6),
}


@pytest.mark.parametrize("kind", CHANGED)
def test_a_file_of_another_layout_is_a_problem_that_a_person_puts_right(tmp_path, kind):
    file = tmp_path / "unit1.csv"
    file.write_text(csv_of(LIVE[:100]))
    with LiveServer(options(tmp_path, input=file, names=("unit1",))) as server:
        service, client = server.service, Client(server.url)
        wait_for_rows(service, 100)
        (tmp_path / "new").write_text(CHANGED[kind](LIVE[100:200]))
        (tmp_path / "new").replace(file)
        wait_for(lambda: service.problems)
        assert service.assets["unit1"].record.rows == 100
        (problem,) = client.get("status")["problems"]
        assert "read anew from its beginning" in problem["text"]
        assert client.command("assets/unit1/input/anew", name="Ada") == (200, {"asset": "unit1", "row": 101})
        wait_for_rows(service, 200)
        assert not service.problems
        assert client.get("audit")[0]["action"] == "read anew"
        assert [each["row"] for each in verdict_records(service, "unit1")] == list(range(1, 201))
        oil = client.get("assets/unit1/series?sensor=oil&points=5000")["sensors"]["oil"]["value"]
        assert oil == pytest.approx(LIVE["oil"][:200].round(6).tolist())
    with LiveServer(options(tmp_path, input=file, names=("unit1",))) as server:
        wait_for_rows(server.service, 200)
        assert Client(server.url).command("assets/unit1/input/anew")[1]["row"] == 201
    with LiveServer(options(tmp_path, names=("unit1",))) as server:
        assert Client(server.url).command("assets/unit1/input/anew")[0] == 409


def tables_of(folder):
    """All rows of all tables of a store."""
    with closing(sqlite3.connect(folder / "live.db")) as store:
        names = store.execute("SELECT name FROM sqlite_master WHERE type='table' ORDER BY name").fetchall()
        return {name: store.execute(f"SELECT * FROM {name}").fetchall() for (name,) in names}


def check_together(folder, size):
    """Check that rows, verdicts, position, alarms, changes and outbox belong to one batch; return the rows."""
    store = Store(folder / "live.db")
    try:
        rows = store.asset("unit1").rows if store._read("SELECT * FROM assets") else 0
        if rows:
            asset = store.asset("unit1")
            assert rows == size * (store.positions(asset.id)["test"] + 1)
            blocks = store.rows(asset.id, with_readings=True)
            numbers = [row for each in blocks for row in range(each.first, each.first + len(each.values))]
            assert numbers == list(range(1, rows + 1))
        newest = {change["alarm"]["id"]: change["alarm"] for change in store.changes()}
        alarms = {alarm["id"]: {**alarm, "open": None} for alarm in store.alarms()}
        assert alarms == {name: {**alarm, "open": None} for name, alarm in newest.items()}
        for message in store.messages():
            told = message["payload"]
            assert {each["id"] for each in told["alarms"]} == {*told["new"], *told["ended"], *told["active"]}
            assert {each["id"] for each in told["alarms"]} <= set(alarms)
        return rows, len(newest), len(store.messages())
    finally:
        store.close()


def test_every_prefix_of_the_log_is_a_state_to_go_on_from(tmp_path):
    """A power cut may leave any prefix of the write-ahead log, also the part of a frame: the last commit holds."""
    text, size, saved, cut = csv_of(LIVE), 17, tmp_path / "saved", tmp_path / "cut"
    for folder in (tmp_path / "a", saved, cut):
        folder.mkdir()
    expected, given = in_turn(options(tmp_path / "a"), text, size), options(cut)
    with running(options(tmp_path)) as service:
        deliver(service, text, size, pieces=9)  # the alarm is raised, told and over within them
        for file in ("live.db", "live.db-wal"):
            shutil.copy(tmp_path / file, saved / file)
    log, page = (saved / "live.db-wal").read_bytes(), 24 + 4096
    frames = range(32, len(log), page)  # of each: its number of pages, if it is the last one of a commit
    commits = [at + page for at in frames if int.from_bytes(log[at + 4 : at + 8], "big")]

    def put(length):
        for file in cut.glob("live.db*"):
            file.unlink()
        shutil.copy(saved / "live.db", cut / "live.db")
        (cut / "live.db-wal").write_bytes(log[:length])

    last, seen = None, set()
    for at in sorted({0, 31, len(log), *(at + part for at in frames for part in (0, 12, 2000))}):
        put(at)
        found = tables_of(cut)
        if at in commits:
            assert found != last
            last = found
            put(at)
            seen.add(check_together(cut, size))
        assert found == (last or {}), at
    rows, alarms, messages = (sorted({each[part] for each in seen}) for part in range(3))
    assert rows == [size * number for number in range(10)]
    assert (alarms, messages) == ([0, 1], [0, 1, 2])
    for at in commits:
        put(at)
        with running(given) as service:  # a client that was not answered sends it again
            deliver(service, text, size)
            assert whole(service) == expected


def test_numbered_requests_count_once_and_gaps_are_refused(tmp_path):
    with LiveServer(options(tmp_path)) as server:
        client, text = Client(server.url), csv_of(LIVE[:10])
        assert client.samples(text, sequence=7)[1]["accepted"] == 10
        assert client.samples(text, sequence=7)[1] == {"accepted": 0, "duplicate": True, "row": 10}
        status, answer = client.samples(text, sequence=9)
        lost = "Sequence 8 is expected next, not 9: what is between them would be lost."
        assert (status, answer) == (409, {"error": lost})
        assert client.samples(text, sequence=1, client="other")[1]["row"] == 20
        assert client.get("assets/unit1")["row"] == 20
    with LiveServer(options(tmp_path)) as server:
        assert Client(server.url).samples(text, sequence=7)[1]["duplicate"]


JSON = '[{"time": "2026-01-01T00:00:00", "flow": 5, "head": 5, "power": 5, "oil": 5}]'
DATE = JSON.replace("2026-01-01T00:00:00", "20260101")
COLUMNS = '{"columns": ["time","flow","head","power","oil"], "rows": [["2026-01-01 00:00",5,5,5,5]]}'
INFLUX = "pump,site=a flow=5,head=5 1767225600000000000\npump power=5i,oil=5 1767225600000000000"


@pytest.mark.parametrize(
    ("kind", "body"),
    [
        ("application/json", JSON),
        ("application/json", DATE),
        ("application/json", COLUMNS),
        ("application/x-ndjson", JSON[1:-1]),
        ("text/csv", f"{HEADER}\n2026-01-01 00:00:00,5,5,5,5"),
        ("text/csv", "oil;time;flow;head;power\n5,0;01.01.2026 00:00;5,0;5,0;5,0\n"),
        ("application/x-influx", INFLUX),
    ],
    ids=["json", "date", "columns", "ndjson", "csv", "semicolons", "influx"],
)
def test_formats(tmp_path, kind, body):
    with LiveServer(options(tmp_path)) as server:
        client = Client(server.url)
        status, answer = client.samples(body, kind=kind)
        assert (status, answer["accepted"]) == (200, 1), answer
        found = client.get("assets/unit1/series?sensor=oil&sensor=flow")
        assert found["time"] == [1767225600.0]
        assert found["sensors"]["oil"]["value"] == found["sensors"]["flow"]["value"] == [5.0]
        assert abs(found["sensors"]["oil"]["expected"][0] - 5) < 1


@pytest.mark.parametrize(
    ("kind", "body", "status", "message"),
    [
        ("application/json", "[1", 400, "not JSON"),
        ("application/json", "[]", 400, "list of objects"),
        ("application/json", '{"columns": ["a"], "rows": [[1, 2]]}', 400, "list of 1 values"),
        ("application/json", '[{"flow": 5}]', 400, 'no column "head"'),
        ("application/json", "[" + "{}," * 20_000 + "{}]", 400, "At most 20,000 rows"),
        ("application/json", "[" + "{}," * 100_000 + "{}", 400, "At most 20,000 rows"),  # and it is not parsed
        ("text/csv", HEADER, 400, "only a header"),
        ("text/csv", "", 400, "no row"),
        ("text/csv", f"{HEADER}\n1,2", 422, "2 fields instead of 5"),
        ("text/csv", f"{HEADER}\n1,2,3,4,off", 422, '"off", which is not a number'),
        ("application/x-influx", "pump flow 7", 400, "line protocol"),
        ("image/png", "", 415, "content type"),
    ],
)
def test_rows_that_cannot_be_read(tmp_path, kind, body, status, message):
    with LiveServer(options(tmp_path)) as server:
        client = Client(server.url)
        assert client.samples(csv_of(LIVE[:1]))[0] == 200
        found = client.samples(body, kind=kind)
        assert found[0] == status, found
        assert message in found[1]["error"]
        assert client.get("assets/unit1")["row"] == 1


def test_some_malformed_lines_are_told_and_counted(tmp_path):
    with LiveServer(options(tmp_path)) as server:
        client = Client(server.url)
        good = csv_of(LIVE[:3])
        answer = client.samples(f"{good}2026-01-01 00:00:03,1,2\n")[1]
        assert answer["accepted"] == 3
        assert answer["faults"] == [{"line": 5, "reason": "3 fields instead of 5"}]
        assert client.get("assets/unit1")["counts"]["malformed"] == 1


@pytest.mark.parametrize("time", ["1e300", "9" * 5000, "2500-01-01 00:00:00", "1677-01-01", "soon", "2026-07-01 10:00"])
def test_a_row_of_an_absurd_time_is_malformed_and_the_others_go_on(tmp_path, time):
    header, *lines = csv_of(LIVE).splitlines(keepends=True)
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
    with running(options(tmp_path / "a", names=("unit1",))) as service:
        expected = post(service, header + "".join(lines)) and whole(service)
    lines.insert(50, f"{time},1,1,1,1\n")
    with running(options(tmp_path / "b", names=("unit1",))) as service:
        answer = post(service, header + "".join(lines))
        found = whole(service)
    assert (answer["accepted"], answer["malformed"]) == (len(lines) - 1, 1)
    assert found["unit1"] == expected["unit1"]
    assert found["changes"] == expected["changes"]


def test_senders_write_times_in_their_own_ways(tmp_path):
    values = '"flow": 5, "head": 5, "power": 5, "oil": 5'
    with running(options(tmp_path)) as service:
        for time in (
            '"2026-01-01 00:00:00"',
            "1767225601",
            '"2026-01-01T00:00:02"',
            "1767225603",
            '"1.1.2026 0:00:04"',
        ):
            answer = post(service, f'{{"time": {time}, {values}}}')
            assert (answer["accepted"], answer["malformed"]) == (1, 0), (time, answer)
        answer = post(service, f'{{"time": "2026-01-01T00:00:05Z", {values}}}')
        assert "offset from UTC" in answer["faults"][0]["reason"]


def post(service, text):
    return service.deliver(Delivery("unit1", text.encode(), "test", None)).result(60)


def test_a_full_disk_stops_accepting_and_is_no_crash(tmp_path):
    with running(options(tmp_path)) as service:
        rows_of = lambda at: csv_of(LIVE[at : at + 20]).encode()  # noqa: E731
        service.deliver(Delivery("unit1", rows_of(0), "test", ("next", 0))).result()
        service.store.limit_pages(1)
        found, refused = None, 0
        while found is None:  # there may be room in the pages that are there
            refused += 1
            found = service.deliver(Delivery("unit1", rows_of(20), "test", ("next", refused))).exception()
        assert isinstance(found, RefusedError)
        assert found.status == 507
        assert "disk" in service.problems
        with pytest.raises(RefusedError, match="Make room"):
            service.deliver(Delivery("unit1", rows_of(20), "test"))
        service.store.limit_pages(10**6)
        service._next_disk_check = 0.0
        wait_for(lambda: "disk" not in service.problems)
        before = service.assets["unit1"].record.rows
        service.deliver(Delivery("unit1", rows_of(20), "test", ("next", refused))).result()
        assert service.assets["unit1"].record.rows == before + 20


def test_stores_that_are_refused(tmp_path):
    store = Store(tmp_path / "live.db")
    with pytest.raises(StorageError, match="used by another"):
        Store(tmp_path / "live.db")
    store.close()
    with closing(sqlite3.connect(tmp_path / "live.db")) as newer, newer:
        newer.execute("PRAGMA user_version=99")
    with pytest.raises(StorageError, match="newer penstock"):
        Store(tmp_path / "live.db")
    (tmp_path / "text.db").write_text("no database, but long enough to be looked at" * 20)
    with pytest.raises(StorageError, match="not a store"):
        Store(tmp_path / "text.db")
    with closing(sqlite3.connect(tmp_path / "other.db")) as other, other:
        other.execute("CREATE TABLE mine(x)")
    with pytest.raises(StorageError, match="not a store of penstock"):
        Store(tmp_path / "other.db")
    with pytest.raises(StorageError, match="no folder"):
        Store(tmp_path / "missing" / "live.db")


def test_a_store_has_one_lock_by_whatever_name_it_is_called(tmp_path):
    (tmp_path / "link.db").symlink_to(tmp_path / "live.db")
    with closing(Store(tmp_path / "live.db")):
        with pytest.raises(StorageError, match="used by another"):
            Store(tmp_path / "link.db")
        (tmp_path / "hard.db").hardlink_to(tmp_path / "live.db")
        with pytest.raises(StorageError, match="second name"):
            Store(tmp_path / "hard.db")


def test_a_store_whose_log_was_taken_away_is_refused(tmp_path):
    cut_off = tmp_path / "cut off"
    with running(options(tmp_path)) as service:
        post(service, csv_of(LIVE))
        shutil.copytree(tmp_path, cut_off, ignore=shutil.ignore_patterns("cut off"))  # as a kill leaves it
    (cut_off / "live.db-wal").rename(cut_off / "kept")
    with pytest.raises(StorageError, match=r"live\.db-wal is missing"):
        Service(options(cut_off))
    (cut_off / "kept").rename(cut_off / "live.db-wal")
    with running(options(cut_off)) as service:
        assert service.assets["unit1"].record.rows == len(LIVE)
    with running(options(cut_off)):  # closed in order, there is no log
        pass


def test_a_damaged_store_is_refused_in_words(tmp_path):
    with running(options(tmp_path)) as service:
        post(service, csv_of(LIVE))
    sound, chance = (tmp_path / "live.db").read_bytes(), random.Random(0)
    refused = 0
    for number in range(24):
        damaged = bytearray(sound)
        if number % 3 == 0:
            at = 4096 * chance.randrange(1, len(sound) // 4096)
            damaged[at : at + 4096] = bytes(4096)
        for _ in range((0, 20, 2000)[number % 3]):
            damaged[chance.randrange(100, len(sound))] = chance.randrange(256)
        (tmp_path / "live.db").write_bytes(damaged)
        try:
            Service(options(tmp_path)).stop()
        except StorageError:
            refused += 1
    assert refused > 12  # where a single reading was changed, nothing can tell


def test_old_readings_are_removed_and_verdicts_stay(tmp_path):
    with running(options(tmp_path)) as service:
        service.deliver(Delivery("unit1", csv_of(LIVE[:50]).encode(), "test")).result()
    store = Store(tmp_path / "live.db")
    asset = store.asset("unit1")
    with store.transaction():
        assert store.remove_old(1, time.time() + 86400 * 31, 30, 365) == 1
    (block,) = store.rows(asset.id, with_readings=True)
    assert (block.values, len(block.seconds)) == (None, 50)
    with store.transaction():
        assert store.remove_old(1, time.time() + 86400 * 31, 30, 365) == 0
        assert store.remove_old(1, time.time() + 86400 * 366, 30, 365) == 1
    assert not list(store.rows(asset.id))
    store.close()


def test_a_store_has_the_size_that_the_page_says(tmp_path):
    page = (Path(__file__).parents[2] / "docs" / "serve.md").read_text()
    of_row, of_sensor, of_batch = re.search(
        r"takes about (\d+) bytes and (\d+) .*?some (\d+) bytes a batch", page, re.S
    ).groups()
    quiet, sizes = rows(n=1900, fault=()), []
    for first, last in ((0, 20), (20, 120)):
        with running(options(tmp_path)) as service:
            for start in range(first, last):
                service.deliver(Delivery("unit1", csv_of(quiet[start * 10 :][:10]).encode(), "test")).result()
        sizes.append((tmp_path / "live.db").stat().st_size)
    said = 1000 * (int(of_row) + 4 * int(of_sensor)) + 100 * int(of_batch)
    assert sizes[1] - sizes[0] == pytest.approx(said, rel=0.3)


def test_an_asset_without_a_model_learns(tmp_path):
    with running(options(tmp_path, model=None)) as service:
        answer = service.deliver(Delivery("unit1", csv_of(rows()[:250]).encode(), "test")).result()
        assert answer["row"] == 250
        before = verdict_records(service, "unit1", after=200)
        assert any(each["score"] is not None for each in before)
    with running(options(tmp_path, model=None)) as service:
        assert verdict_records(service, "unit1", after=200) == before


def test_a_new_model_begins_anew_and_is_in_the_audit_log(tmp_path):
    with running(options(tmp_path)) as service:
        service.deliver(Delivery("unit1", csv_of(LIVE[:50]).encode(), "test")).result()
    with running(options(tmp_path, assets={"unit1": AssetOptions(model=model(), threshold="fixed:1")})) as service:
        service.deliver(Delivery("unit1", csv_of(LIVE[50:60]).encode(), "test")).result()
        assert [each["action"] for each in service.store.audit()] == ["new model"]
        assert verdict_records(service, "unit1")[-1]["threshold"] == 1.0


# What people do comes once, however often the request does.


def commanded(client, key, path, **body):
    headers = {"content-type": "application/json", "penstock-command": "1", "idempotency-key": key}
    return client("POST", f"/api/v1/{path}", json.dumps({"name": "Ada", **body}), headers)


def test_a_command_that_is_sent_again_is_done_once_and_answered_again(tmp_path):
    commands = {
        "alarms/unit1-1/comment": {"comment": "seen"},
        "alarms/unit1-1/acknowledge": {"reason": "fault", "comment": "pump"},
        "alarms/unit1-1/label": {"reason": "maintenance"},
        "silences": {"pattern": "unit*", "hours": 1},
        "labels/unit1-1~1/withdraw": {},
    }
    with LiveServer(options(tmp_path)) as server:
        client = Client(server.url)
        client.samples(csv_of(rows()[600:760]))
        first = {
            path: commanded(client, f"key-of-{n}", path, **body) for n, (path, body) in enumerate(commands.items())
        }
        assert {path: status for path, (status, _) in first.items()} == {
            **dict.fromkeys(commands, 200), "labels/unit1-1~1/withdraw": 404}  # fmt: skip
        before = [client.get(path) for path in ("audit", "labels", "alarms/unit1-1", "silences")]
    with LiveServer(options(tmp_path)) as server:  # also after an end in between
        client = Client(server.url)
        for number, (path, body) in enumerate(commands.items()):
            assert commanded(client, f"key-of-{number}", path, **body) == first[path]
        assert [client.get(path) for path in ("audit", "labels", "alarms/unit1-1", "silences")] == before
        assert commanded(client, "key-of-0", "alarms/unit1-1/comment", comment="other")[0] == 422
        assert commanded(client, "x", "alarms/unit1-1/comment", comment="other")[0] == 400
        assert commanded(client, "key-of-0", "alarms/unit1-1/comment", name="Bo", comment="seen")[0] == 200
        assert len(client.get("audit")) == len(before[0]) + 1


def test_a_command_whose_transaction_fails_is_done_when_it_comes_again(tmp_path, monkeypatch):
    with LiveServer(options(tmp_path)) as server:
        client, plain = Client(server.url), Store.add_answer
        client.samples(csv_of(rows()[600:760]))
        before = len(client.get("audit"))

        def fail(self, *given):
            plain(self, *given)
            raise OSError("cut off")

        with monkeypatch.context() as patched:
            patched.setattr(Store, "add_answer", fail)
            assert commanded(client, "key-of-1", "alarms/unit1-1/comment", comment="seen")[0] == 500
        assert len(client.get("audit")) == before
        assert commanded(client, "key-of-1", "alarms/unit1-1/comment", comment="seen")[0] == 200
        assert commanded(client, "key-of-1", "alarms/unit1-1/comment", comment="seen")[0] == 200
        assert len(client.get("audit")) == before + 1
        assert client.get("status")["waiting_bytes"] == 0
