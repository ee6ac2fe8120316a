"""One bad row, asset or client never stops another, and what is wrong is said."""

from __future__ import annotations

import json
import os
import resource
import signal
import subprocess
import sys
import threading
from concurrent.futures import wait
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from unittest.mock import ANY

import pandas as pd
import pytest
from live_service import HEADER, NAMES, Client, csv_of, model, options, rows, running
from waiting import wait_for

from penstock.io import InputError
from penstock.live import Monitor, Observer, WatchOptions
from penstock.live import service as service_module
from penstock.live.alarm_records import RefusedError
from penstock.live.assets import Asset, Book
from penstock.live.connectors import as_lines
from penstock.live.fitted import FittedScorer
from penstock.live.runtime import CycleTask, Delivery
from penstock.live.store import Store, StoreFullError
from penstock.live.web import LiveServer

LIVE = rows()[600:700]
BAD = 666.0


@pytest.fixture
def fragile(monkeypatch):
    """Models that raise on a reading of 666."""
    plain = FittedScorer.score

    def score(self, batch, n_variables, *, strict=False):
        if (batch.values == BAD).any():
            raise ZeroDivisionError("of all numbers")
        return plain(self, batch, n_variables, strict=strict)

    monkeypatch.setattr(FittedScorer, "score", score)


def post(service, text, asset="unit1"):
    return service.deliver(Delivery(asset, text.encode(), "test")).result(30)


def with_bad_rows(*places):
    table = LIVE.copy()
    table.loc[table.index[list(places)], "oil"] = BAD
    return table


def scores_of(service, asset="unit1"):
    record = service.store.asset(asset)
    return [score for block in service.store.rows(record.id) for score in block.scores.scores.tolist()]


def expected_scores(folder, places):
    folder.mkdir()
    with running(options(folder)) as service:
        post(service, csv_of(LIVE.drop(LIVE.index[list(places)])))
        return scores_of(service)


@pytest.mark.parametrize("places", [(0,), (50,), (99,), (3, 4, 70)])
def test_a_row_that_raises_is_set_aside_and_the_others_are_scored(tmp_path, fragile, places):
    expected = expected_scores(tmp_path / "without", places)
    with running(options(tmp_path, names=("unit1", "unit2"))) as service:
        answer = post(service, csv_of(with_bad_rows(*places)))
        assert (answer["accepted"], answer["malformed"]) == (100 - len(places), len(places))
        assert [fault["line"] for fault in answer["faults"]] == [place + 1 for place in places]
        assert scores_of(service) == expected
        kept = service.store.quarantined(service.store.asset("unit1").id)
        assert [json.loads(each["text"])["oil"] for each in kept] == [BAD] * len(places)
        assert {each["reason"] for each in kept} == {"ZeroDivisionError: of all numbers"}
        assert service.assets["unit1"].record.counts["quarantined"] == len(places)
        assert "666" in service.problems["rows of unit1"].text
        assert post(service, csv_of(LIVE), "unit2")["accepted"] == 100
    with running(options(tmp_path, names=("unit1", "unit2"))) as service:  # and so it stays
        assert scores_of(service) == expected


def test_a_row_of_a_file_that_raises_is_set_aside(tmp_path, fragile):
    expected = expected_scores(tmp_path / "without", (50,))
    (tmp_path / "unit1.csv").write_text(csv_of(with_bad_rows(50)))
    with running(options(tmp_path, input=tmp_path / "unit1.csv")) as service:
        wait_for(lambda: len(scores_of(service)) == 99)
        assert scores_of(service) == expected


@pytest.mark.parametrize("every", [7, 50_000])
def test_a_row_that_raises_does_not_end_a_watch(tmp_path, fragile, every):
    """It is set aside with its text and reason, reported and counted, also after stops in between."""
    faults = []

    def watch(name, table, state=None, stopped=lambda: False):
        (tmp_path / f"{name}.csv").write_text(csv_of(table))
        files = {"output": tmp_path / f"{name}.jsonl", "alarms": tmp_path / f"{name}.alarms", "state": state}
        given = WatchOptions(tmp_path / f"{name}.csv", model=model(), snapshot_every=every, **files)
        return Monitor(given, Observer(fault=faults.append)).run(stopped)

    watch("without", LIVE.drop(LIVE.index[[3, 4, 70]]))
    state, steps = tmp_path / "state", iter([False, False, False, True])
    watch("bad", with_bad_rows(3, 4, 70), state, lambda: next(steps))
    counts = watch("bad", with_bad_rows(3, 4, 70), state)
    assert (counts.samples, counts.malformed, counts.quarantined) == (97, 0, 3)
    assert (tmp_path / "bad.jsonl").read_bytes() == (tmp_path / "without.jsonl").read_bytes()
    assert [fault.line for fault in faults][-1] == 72
    assert "set aside (ZeroDivisionError: of all numbers)" in faults[-1].reason
    with closing(Store(state / "watch.db")) as store:
        kept = store.quarantined(store.asset("bad").id)
    assert [json.loads(each["text"])["oil"] for each in kept] == [BAD] * 3
    faults.clear()
    watch("plain", with_bad_rows(3, 4, 70))  # without a state
    assert (tmp_path / "plain.jsonl").read_bytes() == (tmp_path / "without.jsonl").read_bytes()
    assert [fault.line for fault in faults] == [5, 6, 72]
    with pytest.raises(InputError, match="fails on each of several rows"):
        watch("broken", with_bad_rows(*range(10, 30)))


def test_an_asset_that_fails_again_and_again_is_paused_and_nothing_is_lost(tmp_path, fragile, monkeypatch):
    table = LIVE.copy()
    table.loc[table.index[20:40], "oil"] = BAD
    (tmp_path / "unit1.csv").write_text(csv_of(table))
    given = options(tmp_path, names=("unit1", "unit2"), input=None)
    given.assets["unit1"] = options(tmp_path, input=tmp_path / "unit1.csv").assets["unit1"]
    with running(given) as service:
        wait_for(lambda: "input of unit1" in service.problems)
        assert "paused" in service.problems["input of unit1"].text
        assert post(service, csv_of(LIVE), "unit2")["accepted"] == 100
        with pytest.raises(RefusedError) as refusal:
            post(service, csv_of(LIVE), "unit1")
        assert refusal.value.status == 503
        targets = {message["payload"]["problem"]["id"] for message in service.store.messages()}
        assert targets == {"input of unit1"}
        monkeypatch.undo()  # the model is put right
        service._pauses["unit1"].until = 0.0
        wait_for(lambda: len(scores_of(service)) == 100)
        assert "input of unit1" not in service.problems


def test_a_file_that_is_not_the_one_of_before_stops_one_asset_alone(tmp_path):
    file = tmp_path / "unit1.csv"
    file.write_text(csv_of(LIVE))
    given = options(tmp_path, names=("unit1", "unit2"))
    given.assets["unit1"] = options(tmp_path, input=file).assets["unit1"]
    with running(given) as service:
        wait_for(lambda: len(scores_of(service)) == 100)
    file.rename(tmp_path / "away")
    file.write_text("time,flow\n1,2\n")
    (tmp_path / "away").unlink()
    with running(given) as service:
        assert "paused" in service.problems["input of unit1"].text
        assert post(service, csv_of(LIVE), "unit2")["accepted"] == 100
        service._pauses["unit1"].until = 0.0  # tried again, it fails again, and later
        wait_for(lambda: service._pauses["unit1"].times == 2)
        file.write_text(csv_of(LIVE))
        service._pauses["unit1"].until = 0.0
        with file.open("a") as more:
            more.write("".join(csv_of(rows()[700:720]).splitlines(keepends=True)[1:]))
        wait_for(lambda: len(scores_of(service)) == 120)
        assert "input of unit1" not in service.problems


def test_a_failure_of_the_alarms_stops_one_asset_alone(tmp_path, monkeypatch):
    take = Book.take

    def fail(self, asset, verdicts, row):
        if asset == "unit1":
            raise LookupError("no such alarm")
        return take(self, asset, verdicts, row)

    monkeypatch.setattr(Book, "take", fail)
    with running(options(tmp_path, names=("unit1", "unit2"))) as service:
        with pytest.raises(RefusedError):
            post(service, csv_of(LIVE))
        assert post(service, csv_of(LIVE), "unit2")["accepted"] == 100
        assert "no such alarm" in service.problems["input of unit1"].text


def test_a_text_that_breaks_the_parser_is_set_aside(tmp_path, monkeypatch):
    from penstock.live import assets

    plain = assets.RowSource.next_batch

    def next_batch(self, at_most):
        if self._feed.name == "odd":
            raise IndexError("out of range")
        return plain(self, at_most)

    monkeypatch.setattr(assets.RowSource, "next_batch", next_batch)
    with running(options(tmp_path)) as service:
        odd = service.deliver(Delivery("unit1", csv_of(LIVE).encode(), "odd"))
        with pytest.raises(RefusedError) as refusal:
            odd.result(30)
        assert refusal.value.status == 422
        assert post(service, csv_of(LIVE))["accepted"] == 100
        (kept,) = service.store.quarantined(service.store.asset("unit1").id)
        assert kept["text"].startswith(HEADER)
        assert kept["source"] == "odd"


def test_a_row_dated_ahead_does_not_move_the_clock_of_the_alarms(tmp_path):
    header, *lines = csv_of(LIVE).splitlines()
    with running(options(tmp_path)) as service:
        post(service, "\n".join([header, *lines]))
        before = service.assets["unit1"].book.now()
        for time_of in ("2199-01-01 00:00:00", "2199-01-01 00:00:01", "1e300", "-1e300", "5", "", "9999-12-31"):
            values = ",".join(lines[-1].split(",")[1:])
            post(service, f"{header}\n{time_of},{values}")
            service.deliver(Delivery("unit1", json.dumps({"time": float("1e300"), "oil": 1}).encode(), "json"))
        assert service.assets["unit1"].book.now() - before < 60
        assert post(service, "\n".join([header, *lines]))["accepted"] == 100


@pytest.mark.parametrize("first", ["5", "1e300", '"soon"', "null", "0"])
def test_an_odd_first_time_locks_nothing(tmp_path, first):
    row = dict.fromkeys(NAMES, 5.0)
    with running(options(tmp_path)) as service:
        with suppress(RefusedError):
            post(service, json.dumps({"time": 0, **row}).replace('"time": 0', f'"time": {first}'))
        for number in range(5):
            assert post(service, json.dumps({"time": 1_767_225_600_000 + 1000 * number, **row}))["accepted"] == 1
            assert post(service, json.dumps({"time": f"2026-01-01T00:00:0{number}Z", **row}))["accepted"] == 1
        assert service.assets["unit1"].record.newest == 1_767_225_604.0


def test_bytes_that_wait_are_bounded(tmp_path):
    given = options(tmp_path, max_waiting=0.1)
    with LiveServer(given) as server:
        held = threading.Event()
        server.service.act_held = server.service._put(CycleTask(lambda now: (held.wait(30), ([], None))[1]))
        body = csv_of(LIVE)
        found = []

        def send():
            found.append(Client(server.url).samples(body)[0])

        threads = [threading.Thread(target=send) for _ in range(40)]
        for thread in threads:
            thread.start()
        wait_for(lambda: found.count(429) >= 20)
        assert server.service._claimed.total() <= 100_000
        held.set()
        for thread in threads:
            thread.join()
        assert set(found) == {200, 429}
        assert server.service._claimed.total() == 0
        assert Client(server.url).samples(body)[0] == 200


def test_a_request_has_a_bound_of_rows_and_columns(tmp_path):
    with running(options(tmp_path)) as service:
        for text in (HEADER + "\n" * 30_000 + "1", ",".join(f"c{n}" for n in range(9000)) + "\n1"):
            with pytest.raises(RefusedError, match="At most"):
                post(service, text)


def test_a_layout_that_takes_long_to_learn_stops_nobody_else(tmp_path, monkeypatch):
    held, waited, plain = threading.Event(), [], Asset.learn_layout

    def slow(asset, *given):
        if asset.record.name == "unit1":
            waited.append(held.wait(10))
        return plain(asset, *given)

    monkeypatch.setattr(Asset, "learn_layout", slow)
    with LiveServer(options(tmp_path, names=("unit1", "unit2"))) as server:
        client, found = Client(server.url), []
        assert client.samples(csv_of(LIVE[:50]), asset="unit2")[0] == 200
        waiting = threading.Thread(target=lambda: found.append(client.samples(csv_of(LIVE))[0]))
        waiting.start()
        assert client.samples(csv_of(LIVE[50:]), asset="unit2")[0] == 200
        assert client("GET", "/healthz")[0] == 200
        held.set()
        waiting.join()
        assert (found, waited) == ([200], [True])


def test_a_cycle_that_takes_too_long_is_said_by_the_health(tmp_path, monkeypatch):
    monkeypatch.setattr(service_module, "_LONGEST_CYCLE", 0.3)
    held = threading.Event()
    plain = FittedScorer.score

    def score(self, batch, n_variables, *, strict=False):
        held.wait(30)
        return plain(self, batch, n_variables, strict=strict)

    monkeypatch.setattr(FittedScorer, "score", score)
    with LiveServer(options(tmp_path)) as server:
        client = Client(server.url)
        assert client("GET", "/healthz") == (200, {"status": "ok"})
        future = server.service.deliver(Delivery("unit1", csv_of(LIVE).encode(), "test"))
        wait_for(lambda: client("GET", "/healthz")[0] == 503)
        assert "scoring unit1" in client("GET", "/healthz")[1]["reason"]
        held.set()
        wait([future])
        wait_for(lambda: client("GET", "/healthz")[0] == 200)


ENDLESS = """
import sys, threading, time
from penstock.live.fitted import FittedScorer
def score(self, batch, n_variables, *, strict=False):
    print("scoring", flush=True)
    while True:
        sum(range(1000))
FittedScorer.score = score
from penstock.cli import main
sys.exit(main(["serve", "--model", {model!r}, "--input", {file!r}, "--store", {store!r}, "--port", "0"]))
"""


def test_a_signal_that_comes_before_the_server_is_there_is_not_lost(tmp_path):
    LiveServer(options(tmp_path)).run(stopped=lambda: True)  # else it would never return


def children_cpu():
    """The processor time of all processes that have ended."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


@pytest.mark.parametrize("number", [signal.SIGTERM, pytest.param(signal.SIGINT, marks=pytest.mark.slow)])
def test_a_signal_ends_it_within_five_seconds_whatever_it_does(tmp_path, number):
    (tmp_path / "unit1.csv").write_text(csv_of(LIVE))
    code = ENDLESS.format(
        tests=str(Path(__file__).parents[1] / "support"),
        model=str(model()),
        file=str(tmp_path / "unit1.csv"),
        store=str(tmp_path / "s"),
    )
    command = [sys.executable, "-c", code]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    try:
        assert any("scoring" in line for line in process.stdout)
        fields = Path(f"/proc/{process.pid}/stat").read_text().rpartition(")")[2].split()
        begun = (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
        earlier = children_cpu()
        process.send_signal(number)
        assert process.wait(300) == 128 + number
        assert children_cpu() - earlier - begun < 9  # it works for 5 s, and others may run meanwhile
    finally:
        process.kill()
        process.communicate()


def test_a_long_text_is_read_in_pieces_and_another_asset_does_not_wait_for_all_of_it(tmp_path):
    table, other = pd.concat([LIVE] * 40, ignore_index=True), csv_of(LIVE[:1])
    with running(options(tmp_path, names=("unit1", "unit2"))) as service:
        service.assets["unit1"].line_seconds = 1.0  # as of a model that takes a second for a row
        long = service.deliver(Delivery("unit1", csv_of(table).encode(), "test", ("next", 3)))
        assert service.deliver(Delivery("unit2", other.encode(), "test")).result(30)["accepted"] == 1
        assert not long.done()
        assert long.result(60)["accepted"] == len(table)
        assert service.assets["unit1"].positions["test"] == 3
        assert not service.store.positions(service.store.asset("unit1").id)["parts"]
        pieces = [len(block.seconds) for block in service.store.rows(service.store.asset("unit1").id)]
        assert pieces[0] == 1
        assert sum(pieces) == len(table)


@pytest.mark.parametrize("position", [None, ("next", 7), ("digest", "3f")])
def test_a_text_that_was_cut_off_goes_on_where_it_was(tmp_path, monkeypatch, position):
    """Also one without a number, and at rows that are no rows; each row counts once."""
    header, *lines = csv_of(pd.concat([LIVE] * 4, ignore_index=True)).splitlines()
    lines[50], lines[250] = "soon", "2026-01-01 00:11:00,off,1,1,1"
    text = "\n".join([header, *lines]).encode()
    with running(options(tmp_path, store=tmp_path / "whole.db")) as service:
        answer = service.deliver(Delivery("unit1", text, "http x", position)).result(30)
        expected = scores_of(service)
    plain, left = Store.transaction, [3]

    @contextmanager
    def cut_off(self):
        with plain(self):
            yield
            left[0] -= any(self._read("SELECT 1 FROM blocks"))
            if left[0] < 0:
                raise StoreFullError("no room")

    with running(options(tmp_path)) as service, monkeypatch.context() as patched:
        patched.setattr(Store, "transaction", cut_off)
        with pytest.raises(RefusedError):
            service.deliver(Delivery("unit1", text, "http x", position)).result(30)
        assert 0 < len(scores_of(service)) < len(expected)
        service._stopping.set()
        service._thread.join()
    with running(options(tmp_path)) as service:
        again = ("again", "3f") if position == ("digest", "3f") else position
        assert service.deliver(Delivery("unit1", text, "http x", again)).result(30) == {**answer, "faults": ANY}
        assert scores_of(service) == expected
        assert service.assets["unit1"].record.counts["malformed"] == 2


def test_one_asset_cannot_take_all_the_room_for_what_waits(tmp_path):
    held = threading.Event()
    with running(options(tmp_path, names=("unit1", "unit2"), max_waiting=0.1)) as service:
        service._put(CycleTask(lambda now: (held.wait(30), ([], None))[1]))
        text = csv_of(LIVE).encode()
        for _ in range(100):
            with suppress(RefusedError):
                service.deliver(Delivery("unit1", text, "test"))
        found = service.deliver(Delivery("unit2", text, "test"))
        held.set()
        assert found.result(30)["accepted"] == 100


@pytest.mark.parametrize("field", [b"a", b'a="b,', b"a=b,", b'"a b" ', b"a\\ "])
def test_line_protocol_that_is_none_is_found_out_in_one_pass(field):
    with pytest.raises(RefusedError, match="line protocol"):  # in minutes, where it is looked at from each place again
        as_lines(b"m " + field * 400_000, "influx")


def test_a_file_whose_layout_takes_long_to_find_stops_nobody_else(tmp_path, monkeypatch):
    (tmp_path / "unit1.csv").write_text(csv_of(LIVE))
    held, plain = threading.Event(), Asset.read_file

    def slow(asset, *given):
        if asset.source.columns is None:
            held.wait(30)
        return plain(asset, *given)

    monkeypatch.setattr(Asset, "read_file", slow)
    given = options(tmp_path, names=("unit1", "unit2"))
    given.assets["unit1"] = options(tmp_path, input=tmp_path / "unit1.csv").assets["unit1"]
    with running(given) as service:
        wait_for(lambda: "unit1" in service._learning)
        assert post(service, csv_of(LIVE), "unit2")["accepted"] == 100
        assert not scores_of(service)
        held.set()
        wait_for(lambda: len(scores_of(service)) == 100)
        assert scores_of(service) == scores_of(service, "unit2")
