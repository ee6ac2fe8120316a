"""What an attacker or an accident tries next: store files, clocks, names, senders and readers that do not read."""

from __future__ import annotations

import json
import socket
import sqlite3
import threading
import time
from contextlib import closing

import pytest
from live_service import HEADER, NAMES, Client, csv_of, model, options, rows, running
from waiting import wait_for

from penstock._parameters import ParameterError
from penstock.live import Monitor, WatchOptions
from penstock.live import api as api_module
from penstock.live import assets as assets_module
from penstock.live import service as service_module
from penstock.live.alarm_records import RefusedError
from penstock.live.alarms import AlarmBook
from penstock.live.options import AssetOptions
from penstock.live.runtime import Delivery
from penstock.live.store import Store
from penstock.live.web import Limits, LiveServer, bound_socket, make_server
from penstock.storage import StorageError

LIVE = rows()[600:740]
ROW = dict.fromkeys(NAMES, 5.0)


def post(service, text, source="test", position=None, asset="unit1"):
    return service.deliver(Delivery(asset, text.encode(), source, position)).result(30)


# The files of a store.


@pytest.fixture(scope="module")
def written(tmp_path_factory):
    """A store with something in every table that has a seal."""
    folder = tmp_path_factory.mktemp("written")
    with running(options(folder)) as service:
        post(service, csv_of(LIVE), "http one", ("next", 1))
        (alarm, *_) = service.store.alarms()
        service.act("label", alarm["id"], "Ada", reason="fault").result(30)
    return (folder / "live.db").read_bytes()


def read_all(service):
    store, asset = service.store, service.store.asset("unit1")
    store.alarms(), store.changes(), store.labels(), store.audit(), store.positions(asset.id)
    list(store.rows(asset.id, with_readings=True))
    store.model_file(store.models(asset.id)[1].digest)


CHANGES = {
    "readings": "UPDATE blocks SET readings = zeroblob(length(readings))",
    "verdicts": "UPDATE blocks SET scores = zeroblob(length(scores))",
    "time of rows": "UPDATE blocks SET until = until + 1",
    "alarms": "UPDATE alarms SET record = replace(record, 'oil', 'head')",
    "open alarms": "UPDATE alarms SET open = 1 - open",
    "changes": "UPDATE changes SET record = replace(record, 'oil', 'head')",
    "labels": "UPDATE labels SET record = replace(record, 'fault', 'maintenance')",
    "audit": "UPDATE audit SET who = 'Bob'",
    "positions": "UPDATE inputs SET position = '7' WHERE name = 'http one'",
    "counts": "UPDATE assets SET rows = rows - 1",
    "model state": "UPDATE assets SET state = zeroblob(length(state))",
    "alarm book": "UPDATE books SET state = replace(state, 'oil', 'head')",
    "model": "UPDATE model_files SET data = zeroblob(length(data))",
}


@pytest.mark.parametrize("what", CHANGES)
def test_a_value_that_was_changed_in_a_store_is_noticed(tmp_path, written, what):
    (tmp_path / "live.db").write_bytes(written)
    with running(options(tmp_path)) as service:  # as it was written, all is well
        read_all(service)
    with closing(sqlite3.connect(tmp_path / "live.db")) as store, store:
        assert store.execute(CHANGES[what]).rowcount
    with pytest.raises(StorageError), running(options(tmp_path)) as service:
        read_all(service)


def test_a_request_for_what_was_changed_says_so(tmp_path, written):
    (tmp_path / "live.db").write_bytes(written)
    with closing(sqlite3.connect(tmp_path / "live.db")) as store, store:
        store.execute(CHANGES["audit"])
    with LiveServer(options(tmp_path)) as server:
        status, answer = Client(server.url)("GET", "/api/v1/audit")
        assert (status, "damaged" in answer["error"]) == (500, True)
        assert Client(server.url)("GET", "/api/v1/alarms")[0] == 200


@pytest.mark.parametrize("which", ["live.db", "live.db-wal"])
def test_a_store_that_is_taken_away_while_it_is_in_use(tmp_path, which):
    with running(options(tmp_path)) as service:
        post(service, csv_of(LIVE[:50]))
        (tmp_path / which).rename(tmp_path / "away")
        with pytest.raises(RefusedError) as refused:
            post(service, csv_of(LIVE[50:]))
        assert refused.value.status == 507
        assert which in service.problems["disk"].text
        (tmp_path / "away").rename(tmp_path / which)  # put back, all goes on
        service._next_disk_check = 0.0
        wait_for(lambda: "disk" not in service.problems)
        assert post(service, csv_of(LIVE[50:]))["row"] == len(LIVE)


def test_a_state_that_is_taken_away_ends_a_watch(tmp_path):
    file = tmp_path / "unit1.csv"
    file.write_text(csv_of(LIVE))
    given = WatchOptions(file, model=model(), output=tmp_path / "out", state=tmp_path / "state", snapshot_every=20)
    monitor, cycles = Monitor(given), iter(range(10**6))

    def take_away():
        if next(cycles) == 2:
            (tmp_path / "state" / "watch.db").unlink()
        return False

    with pytest.raises(StorageError, match="removed or replaced"):
        monitor.run(take_away)


def test_an_asset_called_room_keeps_its_alarms_when_the_disk_was_full(tmp_path):
    given = options(tmp_path, names=("room",))
    with running(given) as service:
        post(service, csv_of(LIVE), asset="room")
        before = service.store.book("room")
        assert service.store.has_room()
        assert service.store.book("room") == before is not None


# Clocks.


class Wall:
    """A wall clock that can be set."""

    def __init__(self, monkeypatch):
        self._real, self.ahead = time.time, 0.0
        monkeypatch.setattr(time, "time", lambda: self._real() + self.ahead)


def test_after_a_clock_was_set_ahead_and_back_nothing_waits_for_it(tmp_path, monkeypatch):
    wall = Wall(monkeypatch)
    with running(options(tmp_path)) as service:
        wall.ahead = 40 * 86_400.0
        post(service, csv_of(LIVE[:50]))
        service.post({"id": "one"}).result(30)
        (number,) = (each["number"] for each in service.store.messages() if each["id"] == "one")
        service.note_message(number, "not taken", 600.0).result(30)
        wall.ahead = 0.0
        assert [each["id"] for each in service.store.messages(time.time())] == ["one"]
        with closing(Store(tmp_path / "live.db", exclusive=False)) as other, other.transaction():
            other.want_model(other.asset("unit1").id, {"version": 9, "who": "Ada"})
        wait_for(lambda: service.store.asset("unit1").wanted is None)  # a switch is seen, a pause ends
        service._pause("unit1", OSError("gone"))
        service._pauses["unit1"].until = time.monotonic() + 0.1
        wait_for(lambda: not service._is_paused("unit1"))
        assert post(service, csv_of(LIVE[50:]))["row"] == len(LIVE)


def test_a_clock_that_jumps_ahead_removes_nothing(tmp_path, monkeypatch):
    wall = Wall(monkeypatch)
    with running(options(tmp_path)) as service:
        post(service, csv_of(LIVE))
    with running(options(tmp_path)) as service:
        wait_for(lambda: service.commits)  # what is old is removed at the start
        wall.ahead = 400 * 86_400.0
        service.post({}).result(30)  # the cycles after this one have the new time
        service._next_cleaning = 0.0
        service.post({}).result(30)
        service.post({}).result(30)
        assert sum(len(block.seconds) for block in service.store.rows(1)) == len(LIVE)
        service._next_cleaning = 0.0  # a day later it is the time that it is
        wait_for(lambda: not list(service.store.rows(1)))


# Names, senders, rows.


@pytest.mark.parametrize("name", ["a/series", "a/verdicts", "a/export", "a/models", "a/quarantine"])
def test_an_asset_cannot_be_called_as_a_part_of_another(tmp_path, name):
    with pytest.raises(ParameterError) as error:
        options(tmp_path, assets={name: AssetOptions()}).check()
    assert error.value.parameter == "asset"


@pytest.mark.parametrize(
    "body",
    [
        '{"time": 1767225600, "flow": 5, "head": 5, "power": 5, "oil": 5, "oil": 9}',
        json.dumps({"columns": [*NAMES, "oil"], "rows": [[5, 5, 5, 5, 9]]}),
        json.dumps({"columns": [*NAMES, 7], "rows": [[5, 5, 5, 5, 9]]}),
    ],
)
def test_a_reading_that_comes_twice_is_not_chosen_in_silence(tmp_path, body):
    with LiveServer(options(tmp_path)) as server:
        assert Client(server.url).samples(body, kind="application/json")[0] == 400
        assert server.service.assets["unit1"].record.rows == 0


def test_long_headers_and_names_are_refused(tmp_path):
    with running(options(tmp_path, model=None)) as service:
        for text in (f"time,{'x' * 300_000},b\n1,2,3\n", f"time,{'x' * 1001},b\n2026-01-01,2,3\n"):
            with pytest.raises(RefusedError) as refused:
                post(service, text)
            assert refused.value.status == 400
        assert post(service, "time,a,b\n2026-01-01,2,3\n")["row"] == 1


def test_names_of_senders_are_bounded_and_the_last_are_remembered(tmp_path, monkeypatch):
    monkeypatch.setattr(assets_module, "_MOST_SENDERS", 5)
    row = f"{HEADER}\n2026-01-01 00:10:00,5,5,5,5"
    with running(options(tmp_path)) as service:
        for number in range(12):
            post(service, row, f"http c{number}", ("next", 1))
            post(service, row, "http always", ("next", number))
        post(service, row, "kafka topic 0", ("after", 3))
    with running(options(tmp_path)) as service:
        kept = {name for name in service.store.positions(1) if name.startswith("http ")}
        assert kept == {"http always", *(f"http c{number}" for number in range(8, 12))}
        assert post(service, row, "http always", ("next", 11))["duplicate"]
        assert post(service, row, "kafka topic 0", ("after", 3))["duplicate"]


def test_silences_are_bounded():
    book = AlarmBook()
    for _ in range(1000):
        book.silence("*", "Ada", 0.0, 10.0)
    with pytest.raises(RefusedError):
        book.silence("*", "Ada", 0.0, 10.0)
    book.advance(11.0)
    book.silence("*", "Ada", 12.0, 20.0)


def test_what_fails_again_and_again_is_told_now_and_then(tmp_path, monkeypatch):
    with running(options(tmp_path)) as service:

        def told():
            return [message["payload"]["over"] for message in service.store.messages()]

        for _ in range(20):
            service.enter_problem("mqtt of unit1", "no broker")
            wait_for(lambda: told()[:1] == [False])
            service.clear_problem("mqtt of unit1")
            wait_for(lambda: told() == [False, True])
        monkeypatch.setattr(service_module, "_NOTICE_SECONDS", 0.0)  # after a while it is told again
        service.enter_problem("mqtt of unit1", "no broker")
        wait_for(lambda: told() == [False, True, False])


# Questions about everything.


def test_a_question_about_a_long_period_takes_a_bounded_memory(tmp_path, monkeypatch):
    monkeypatch.setattr(api_module, "_MOST_ROWS", 40)
    with LiveServer(options(tmp_path)) as server:
        client = Client(server.url)
        for start in range(0, 140, 20):
            assert client.samples(csv_of(LIVE[start : start + 20]))[0] == 200
        held = []
        plain = api_module._thinned
        monkeypatch.setattr(
            api_module, "_thinned", lambda *given: held.append(sum(len(each[0]) for each in given[1])) or plain(*given)
        )
        few = client.get("assets/unit1/series?hours=1000&points=10")
        whole = client.get("assets/unit1/verdicts")
        assert max(held) <= 40
        assert len(few["rows"]) <= 10
        assert max(few["score"]) == max(each["score"] for each in whole)
        read = []
        of_store = Store.rows
        monkeypatch.setattr(
            Store, "rows", lambda self, *at, **how: (read.append(each) or each for each in of_store(self, *at, **how))
        )
        assert client("GET", "/api/v1/assets/unit1/export?limit=5")[1].count("\n") == 6
        assert len(read) <= 4  # not the whole history


# A client that does not read.


def test_a_client_that_does_not_read_its_answer_is_cut_off(tmp_path):
    async def app(scope, receive, send):
        if scope["type"] == "http":
            await send({"type": "http.response.start", "status": 200, "headers": []})
            await send({"type": "http.response.body", "body": bytes(40_000_000)})

    given = options(tmp_path)
    server, listening = make_server(app, given, Limits(answer_seconds=0.2)), bound_socket(given)
    thread = threading.Thread(target=server.run, args=([listening],), daemon=True)
    thread.start()
    try:
        wait_for(lambda: server.started)
        with socket.create_connection(listening.getsockname(), timeout=30) as unread:
            unread.sendall(b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n")
            wait_for(lambda: server.server_state.connections)
            wait_for(lambda: not server.server_state.connections)
        assert len(Client(f"http://127.0.0.1:{listening.getsockname()[1]}/")("GET", "/", whole=True)[1]) == 40_000_000
    finally:
        server.should_exit = True
        thread.join(30)
        listening.close()
