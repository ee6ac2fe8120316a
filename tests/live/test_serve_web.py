"""The web server of `penstock serve`: what it shows, who may do what, and clients that mean no good."""

from __future__ import annotations

import io
import json
import random
import re
import socket
import ssl
import subprocess
import sys
import threading
import time
import urllib.request
from contextlib import ExitStack
from pathlib import Path
from urllib.parse import urlsplit

import numpy as np
import pandas as pd
import pytest
from live_service import NAMES, Client, csv_of, options, rows
from waiting import wait_for

from penstock import fit_model
from penstock._parameters import ParameterError
from penstock.cli import main
from penstock.live import api as api_module
from penstock.live.api import ENDPOINTS, ROLES
from penstock.live.options import AssetOptions, ServeOptions
from penstock.live.store import Store
from penstock.live.web import Limits, LiveServer
from penstock.storage import StorageError

ROWS = rows(n=900, fault=range(700, 850))


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    with LiveServer(options(tmp_path_factory.mktemp("live"))) as running:
        assert Client(running.url).samples(csv_of(ROWS[600:800]))[0] == 200
        yield running


@pytest.fixture(scope="module")
def guarded(tmp_path_factory):
    """A server with a token for each role."""
    folder = tmp_path_factory.mktemp("guarded")
    store = Store(folder / "live.db")
    tokens = {role: store.add_token(f"one {role}", role, 0.0) for role in ROLES}
    store.close()
    with LiveServer(options(folder)) as running:
        assert Client(running.url, tokens["source"]).samples(csv_of(ROWS[600:800]))[0] == 200
        yield running, tokens


def test_the_description_has_every_endpoint_and_they_answer(server):
    client = Client(server.url)
    described = client("GET", "/openapi.json")[1]
    named = {(method.upper(), path) for path, methods in described["paths"].items() for method in methods}
    assert named == {(each.method, each.path.replace(":path", "")) for each in ENDPOINTS}
    alarm = client.get("alarms")[0]["id"]
    for each in ENDPOINTS:
        if each.method == "GET" and each.path != "/api/v1/events":
            path = re.sub(r"\{(\w+)(:path)?\}", lambda found: {"asset": "unit1", "alarm": alarm}[found[1]], each.path)
            assert client("GET", path)[0] == 200, path
            for parameter in each.parameters:  # each is checked, or is a text
                wrong = ["x", "-1", "1e99", "nan", "1.5" if parameter.kind == "integer" else "x"]
                texts = parameter.kind in ("string", "array") and not parameter.choices
                for text in ["x"] if texts else wrong:
                    status = client("GET", f"{path}?{parameter.name}={text}")[0]
                    assert status == (400 if not texts else 404 if parameter.name == "sensor" else 200), parameter


def test_a_method_that_is_not_there_is_answered_with_those_that_are(server):
    status, _, headers = Client(server.url)("TRACE", "/healthz", whole=True)
    assert (status, {*headers["allow"].split(", ")}) == (405, {"GET", "HEAD"})


def test_an_alarm_says_since_when_which_sensors_and_what_was_expected(server):
    client = Client(server.url)
    found = client.get("alarms?open=1&asset=unit1")
    assert len(found) == 1
    alarm = client.get(f"alarms/{found[0]['id']}")
    assert alarm["cause"] == "oil high"
    assert abs(alarm["since"] - 1767225600 - 700) <= 2
    assert alarm["moved_first"][0] == "oil"
    sensor = alarm["sensors"][0]
    assert abs(sensor["residual"] - 3) < 0.7
    assert alarm["history"][0]["kind"] == "raised"
    normal = alarm["nearest_normal"]
    assert normal["time"] == 1767225600 + 599 + normal["row"] < alarm["since"]
    read = ROWS.iloc[599 + normal["row"]]
    assert normal["sensors"] == {name: pytest.approx(read[name], abs=1e-6) for name in NAMES}
    assert abs(normal["sensors"]["oil"] - (sensor["value"] - sensor["residual"])) < 0.7
    assert client.get("load")["figures"][0] == {"name": "alarms", "value": "1", "target": "", "within": True}


def test_the_nearest_normal_row_by_a_slow_search(tmp_path):
    """Of the stream or of the training data, by the sensors that do not stand out; none without readings."""
    good = rows(n=600, fault=()).round(6)
    fitted = fit_model(good.drop(columns="time"), method="mean")
    fitted.save(tmp_path / "mean.penstock")
    reference = pd.DataFrame(fitted.parts[0].reference, columns=NAMES)
    live = good[:40].assign(oil=lambda table: table["oil"] + np.where(table.index >= 30, 5.0, 0.0))
    for start in (0, 30):  # from the fault on there is nothing normal but what was fitted
        with LiveServer(options(tmp_path, model=tmp_path / "mean.penstock", store=tmp_path / f"{start}.db")) as server:
            client = Client(server.url)
            client.samples(csv_of(live[start:]))
            alarm = client.get(f"alarms/{client.get('alarms')[0]['id']}")
            verdicts = pd.DataFrame(client.get("assets/unit1/verdicts"))
            worst = int(np.argmax(verdicts["score"][30 - start :])) + 30
            scored = verdicts[: 30 - start].set_index(live.index[start:30])
            usual = live.loc[scored.index[scored["score"] <= scored["score"].median()], NAMES]
            normal = pd.concat([usual, reference], ignore_index=True)
            others = {*NAMES} - {each["name"] for each in alarm["sensors"][:2]}  # of three with the same evidence
            assert "oil" not in others
            best, place = min(
                (np.sqrt(np.mean([((normal[name][n] - live[name][worst]) / normal[name].std(ddof=0)) ** 2
                                  for name in others if not np.isnan(normal[name][n])])), n)
                for n in range(len(normal))
            )  # fmt: skip
            found = alarm["nearest_normal"]
            assert found["distance"] == pytest.approx(best)
            assert found["compared"] == 2
            assert found["row"] == (None if place >= len(usual) else usual.index[place] - start + 1)
            assert found["sensors"]["oil"] == pytest.approx(normal["oil"][place])
            with server.service.store.transaction():
                server.service.store._write("UPDATE blocks SET readings = NULL")
            assert client.get(f"alarms/{alarm['id']}")["nearest_normal"] is None


def test_the_series_keeps_the_highest_scores_and_shows_what_was_expected(server):
    client = Client(server.url)
    every = client.get("assets/unit1/series?points=5000&sensor=oil")
    few = client.get("assets/unit1/series?points=20&sensor=oil")
    assert len(every["rows"]) == 200
    assert len(few["rows"]) <= 20
    assert max(filter(None, few["score"])) == max(filter(None, every["score"]))
    assert few["rows"][-1] == 200
    sensor = every["sensors"]["oil"]
    assert abs(sensor["value"][150] - sensor["expected"][150] - 3) < 0.7
    assert client("GET", "/api/v1/assets/unit1/series?sensor=nothing")[0] == 404
    assert client.get("assets/unit1/series?after=200")["rows"] == []


def test_measures_for_prometheus(server):
    text = Client(server.url)("GET", "/metrics")[1]
    assert 'penstock_samples_total{asset="unit1"} 200.0' in text
    assert 'penstock_open_alarms{asset="unit1",state="active"} 1.0' in text
    assert 'penstock_alarm_load{measure="alarms"} 1.0' in text


def test_the_dashboard_shows_what_is_measured(server):
    board = (Path(__file__).parents[2] / "deploy" / "grafana-dashboard.json").read_text()
    measured = set(re.findall(r"^(penstock_\w+)", Client(server.url)("GET", "/metrics")[1], re.MULTILINE))
    shown = {
        name
        for each in json.loads(board)["panels"]
        for t in each["targets"]
        for name in re.findall(r"penstock_\w+", t["expr"])
    }
    assert shown <= measured
    assert len(shown) >= 8


@pytest.mark.parametrize("kind", ["csv", "parquet"])
def test_exports(server, kind):
    path = f"/api/v1/assets/unit1/export?format={kind}&after=10&limit=50"
    status, content, headers = Client(server.url)("GET", path, whole=True)
    assert status == 200
    assert "attachment" in headers["content-disposition"]
    found = {"csv": pd.read_csv, "parquet": pd.read_parquet}[kind](io.BytesIO(content))
    assert found["row"].tolist() == list(range(11, 61))
    assert found["oil"].tolist() == pytest.approx(ROWS["oil"][610:660].round(6).tolist())
    assert pd.to_datetime(found["time"])[0] == pd.Timestamp(ROWS["time"][610], tz="UTC")


def test_actions_are_in_history_audit_and_labels(tmp_path):
    with LiveServer(options(tmp_path)) as server:
        client = Client(server.url)
        client.samples(csv_of(ROWS[600:800]))
        alarm = client.get("alarms")[0]["id"]
        status, answer = client.command(
            f"alarms/{alarm}/acknowledge", reason="rare but normal", comment="a test", name="Ada"
        )
        assert (status, answer["state"]) == (200, ["active", "acknowledged"])
        assert client.command(f"alarms/{alarm}/acknowledge")[0] == 409
        status, answer = client.command(f"alarms/{alarm}/shelve", hours=2)
        assert answer["shelved_until"] - answer["since"] > 7200
        label = client.get("labels")[0]
        assert (label["reason"], label["who"], label["withdrawn_by"]) == ("rare but normal", "Ada", "")
        assert client.command(f"labels/{label['id']}/withdraw", name="Bob")[0] == 200
        assert client.command(f"labels/{label['id']}/withdraw", name="Bob")[0] == 404
        assert client.get("labels")[0]["withdrawn_by"] == "Bob"
        assert client.command("silences", pattern="unit*", hours=1)[0] == 200
        assert client.command("silences", pattern="other*", hours=1)[0] == 404
        actions = [each["action"] for each in client.get("audit")]
        assert actions == ["silence", "withdraw label", "shelve", "acknowledge"]


@pytest.mark.parametrize("by", ["api", "command"])
def test_silences_are_listed_and_ended_by_people(tmp_path, capsys, by):
    store = ["alarms", "silences", "--store", str(tmp_path / "live.db")]
    with LiveServer(options(tmp_path, names=("unit1", "plant/a b"))) as server:
        client = Client(server.url)
        assert client.get("silences") == []
        assert client.command("silences", pattern="*", hours=1, reason="a test", name="Ada")[0] == 200
        found = client.get("silences")
        assert [(each["id"], each["pattern"], each["who"]) for each in found] == [
            ("plant:silence~1", "*", "Ada"), ("unit1:silence~1", "*", "Ada"),
        ]  # fmt: skip
        assert main([*store, "--json"]) == 0
        assert json.loads(capsys.readouterr().out) == found
        client.samples(csv_of(ROWS[600:800]))
        history = client.get(f"alarms/{client.get('alarms')[0]['id']}")["history"]
        assert {each["quiet"] for each in history} == {"silenced"}
        if by == "api":
            assert client.command("silences/unit1:silence~1/end", name="Bob")[0] == 200
        else:
            assert main([*store, "--end", "unit1:silence~1", "--who", "Bob"]) == 0
            assert "unit1:silence~1 has ended." in capsys.readouterr().out
        assert client.command("silences/unit1:silence~1/end", name="Bob")[0] == 404
        assert client.command("silences/none/end", name="Bob")[0] == 404
        assert [each["id"] for each in client.get("silences")] == ["plant:silence~1"]
        assert (client.get("audit")[0]["action"], client.get("audit")[0]["who"]) == ("end silence", "Bob")
        wait_for(lambda: [each["id"] for each in client.get("alarms") if each["state"] == ["active"]])
    assert main([*store, "--end", "unit1:silence~1"]) == 2
    assert main([*store, "--end", "plant:silence~1"]) == 0  # with the next start
    with LiveServer(options(tmp_path, names=("unit1", "plant/a b"))) as server:
        wait_for(lambda: not Client(server.url).get("silences"))


def test_what_people_said_of_an_alarm_is_known_again(tmp_path):
    table = rows(n=1800, fault=[first + row for first in (700, 1000, 1300, 1600) for row in range(60)])
    with LiveServer(options(tmp_path)) as server:
        client = Client(server.url)

        def play(start, stop):
            client.samples(csv_of(table[start:stop]))
            return client.get("alarms")

        first = play(600, 900)
        assert len(first) == 1
        client.command(f"alarms/{first[0]['id']}/acknowledge", reason="fault", comment="bearing")
        second = play(900, 1200)
        assert len(second) == 2
        found = client.get(f"alarms/{second[0]['id']}")
        assert found["looks_like"]["label"]["comment"] == "bearing"
        assert (found["known_as"], found["words"].endswith("known: fault")) == ("fault", True)
        label = client.get("labels")[0]["id"]
        assert client.command(f"labels/{label}/withdraw", name="Ada")[0] == 200
        sent = len(server.service.store.messages())
        client.command(f"alarms/{second[0]['id']}/label", reason="rare but normal", comment="a test", name="Ada")
        lines = client("GET", "/api/v1/labels.jsonl")[1].splitlines()
        assert [json.loads(line)["reason"] for line in lines] == ["fault", "rare but normal"]
        third = play(1200, 1500)
        assert (len(third), third[0]["known_as"]) == (3, "rare but normal")
        told = [each for each in server.service.store.messages()[sent:] if third[0]["id"] in each["payload"]["new"]]
        assert not told
    with LiveServer(options(tmp_path)) as server:  # remembered after a restart
        client = Client(server.url)
        assert play(1500, 1800)[0]["known_as"] == "rare but normal"


def test_an_export_holds_no_formulas(tmp_path):
    given = ServeOptions(store=tmp_path / "live.db", port=0, assets={"unit1": AssetOptions()})
    with LiveServer(given) as server:
        client = Client(server.url)
        assert client.samples("time,=cmd|'/c calc'!A0,+b\n1,2,3\n2,3,4\n")[0] == 200
        names = client("GET", "/api/v1/assets/unit1/export")[1].splitlines()[0].split(",")
        assert names[-2:] == ["'=cmd|'/c calc'!A0", "'+b"]


ODD = ["a\ud800b", "\udfff", "bell \x07", "nul \x00", "\x1b[2J"]


@pytest.mark.parametrize("text", ODD)
def test_texts_that_are_none_stop_at_the_door(server, text):
    """Whatever is sent, everybody can still read alarms, audit log and assets."""
    client = Client(server.url)
    alarm = client.get("alarms")[0]["id"]
    for field in ("comment", "reason", "name"):
        status, answer = client.command(f"alarms/{alarm}/comment", **{"name": "Ada", field: text})
        assert (status, field in answer["error"]) == (400, True)
    assert client.command("silences", pattern=f"unit*{text}", hours=1)[0] == 400
    assert client.command(f"labels/{alarm}/withdraw", name=text)[0] == 400
    row = {"time": "2026-01-01T01:00:00", **dict.fromkeys(NAMES, 5.0), text: 1.0}
    assert client.samples(json.dumps(row), kind="application/json")[0] in (200, 400, 422)
    for path in ("alarms", "audit", "assets/unit1", f"alarms/{alarm}", "assets/unit1/verdicts", "status"):
        client.get(path)


def test_names_of_sensors_that_are_no_texts(tmp_path):
    given = ServeOptions(store=tmp_path / "live.db", port=0, assets={f"unit{n}": AssetOptions() for n in range(5)})
    with LiveServer(given) as server:
        client = Client(server.url)
        for number, text in enumerate(ODD):
            row = json.dumps({"time": "2026-01-01T01:00:00", f"flow{text}": 1.0, "head": 2.0})
            assert client.samples(row, asset=f"unit{number}", kind="application/json")[0] == 400
            row = json.dumps({"time": "2026-01-01T01:00:00", "flow": 1.0, "head": 2.0})
            assert client.samples(row, asset=f"unit{number}", kind="application/json")[0] == 200
            assert client.get(f"assets/unit{number}")["columns"] == ["flow", "head"]


def test_what_a_store_holds_can_be_read_whatever_it_is(tmp_path):
    store = Store(tmp_path / "live.db")
    with store.transaction():
        store.add_audit(0.0, "Ada", "comment", "unit1-1", {"comment": "a\ud800b"})
    store.close()
    with LiveServer(options(tmp_path)) as server:
        assert Client(server.url).get("audit")[0]["details"] == {"comment": "a\ud800b"}


def test_times_and_numbers_of_line_protocol_with_thousands_of_digits(tmp_path):
    with LiveServer(ServeOptions(store=tmp_path / "live.db", port=0, assets={"unit1": AssetOptions()})) as server:
        for digits in (20, 300, 5000):
            line = f"pump flow=1,head=2 {'1' * digits}"
            assert Client(server.url).samples(line, kind="text/plain")[0] == 400
            line = f"pump flow={'1' * 20 * digits}i,head=2 1700000000000000000"
            assert Client(server.url).samples(line, kind="text/plain")[0] in (400, 422)
        assert Client(server.url).samples("pump flow=1,head=2 1700000000000000000", kind="text/plain")[0] == 200


@pytest.mark.parametrize(
    ("path", "body", "status"),
    [
        ("alarms/none/acknowledge", {}, 404),
        ("alarms/none/explode", {}, 404),
        ("alarms/none/shelve", {"hours": -1}, 400),
        ("alarms/none/shelve", {"hours": "soon"}, 400),
        ("alarms/none/comment", {"comment": "x" * 3000}, 400),
        ("alarms/none/comment", {"colour": "red"}, 400),
        ("alarms/none/comment", {"comment": False}, 400),
        ("assets/unit1/models/use", {"version": 1.5}, 400),
        ("assets/unit1/models/use", {"version": True}, 400),
        ("silences", {"pattern": "*"}, 400),
        ("labels/none/withdraw", {}, 404),
    ],
)
def test_commands_that_make_no_sense(server, path, body, status):
    found, answer = Client(server.url).command(path, **body)
    assert found == status
    assert answer["error"]


def test_events_come_when_something_was_committed(tmp_path):
    with LiveServer(options(tmp_path)) as server:
        client = Client(server.url)
        with urllib.request.urlopen(f"{server.url}api/v1/events", timeout=60) as stream:
            assert stream.headers["content-type"] == "text/event-stream"
            assert stream.readline() == b"event: hello\n"
            client.samples(csv_of(ROWS[600:800]))
            found, changes = {"assets": {"unit1": [0]}}, []
            while found["assets"]["unit1"][0] < 200:  # a commit for each piece
                found = next(json.loads(line[6:]) for line in stream if line.startswith(b'data: {"'))
                changes += found["changes"]
        assert found["assets"]["unit1"][:2] == [200, 1767225600.0 + 799]
        assert changes[0]["kind"] == "raised"
        wait_for(lambda: not server.api.hub.count)  # a page that was closed is forgotten


WHO = {
    "viewer": {"GET": 200, "ack": 403, "suppress": 403, "samples": 403},
    "operator": {"GET": 200, "ack": 404, "suppress": 403, "samples": 403},
    "engineer": {"GET": 200, "ack": 404, "suppress": 404, "samples": 400},
    "source": {"GET": 403, "ack": 403, "suppress": 403, "samples": 400},
    None: {"GET": 401, "ack": 401, "suppress": 401, "samples": 401},
}


@pytest.mark.parametrize("role", WHO)
def test_roles(guarded, role):
    server, tokens = guarded
    client = Client(server.url, tokens.get(role))
    found = {
        "GET": client("GET", "/api/v1/alarms")[0],
        "ack": client.command("alarms/none/acknowledge")[0],
        "suppress": client.command("alarms/none/suppress")[0],
        "samples": client.samples("")[0],
    }
    assert found == WHO[role]
    assert client("GET", "/healthz")[0] == 200  # for whoever watches the service


def test_who_acts_is_the_name_of_the_token(guarded):
    server, tokens = guarded
    client = Client(server.url, tokens["operator"])
    alarm = client.get("alarms")[0]["id"]
    answer = client.command(f"alarms/{alarm}/comment", comment="seen", name="somebody else")
    assert answer[0] == 200
    assert client.get("audit")[0]["who"] == "one operator"


def test_tokens_are_hashed_and_can_be_removed(tmp_path, capsys):
    store = ["serve", "--store", str(tmp_path / "live.db")]
    assert main([*store, "--add-token", "Ada:operator"]) == 0
    token = capsys.readouterr().out.splitlines()[-1]
    assert token.encode() not in (tmp_path / "live.db").read_bytes()
    assert main([*store, "--add-token", "Ada"]) == 2
    assert main([*store, "--add-token", "Ada:king"]) == 2
    with LiveServer(options(tmp_path)) as server:
        assert Client(server.url, token)("GET", "/api/v1/alarms")[0] == 200
        assert main([*store, "--remove-token", "Ada"]) == 0
        assert main([*store, "--remove-token", "Ada"]) == 2
        server.api._tokens = (0.0, [])
        assert Client(server.url, token)("GET", "/api/v1/alarms")[0] == 200  # none is left: loopback alone


def test_other_machines_need_a_token(tmp_path, capsys):
    arguments = ["serve", "--store", str(tmp_path / "live.db"), "--asset", "a", "--host", "0.0.0.0", "--port", "0"]
    assert main(arguments) == 2
    assert "--add-token" in capsys.readouterr().err


def test_tls(tmp_path):
    subprocess.run(
        [
            *("openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=localhost"),
            *("-addext", "subjectAltName=IP:127.0.0.1", "-keyout", tmp_path / "key.pem", "-out", tmp_path / "cert.pem"),
        ],
        check=True,
        capture_output=True,
    )
    given = options(tmp_path, tls_certificate=tmp_path / "cert.pem", tls_key=tmp_path / "key.pem")
    with LiveServer(given) as server:
        context = ssl.create_default_context(cafile=tmp_path / "cert.pem")
        assert server.url.startswith("https://")
        assert urllib.request.urlopen(f"{server.url}healthz", context=context, timeout=60).status == 200


def test_other_sites_cannot_send_commands(server):
    client, body = Client(server.url), "{}"
    path, kind = "/api/v1/alarms/none/acknowledge", {"content-type": "application/json"}
    own = server.url.rstrip("/")
    assert client("POST", path, body, kind)[0] == 403  # without the header
    sent = {**kind, "penstock-command": "1"}
    assert client("POST", path, body, {**sent, "origin": own})[0] == 404
    assert client("POST", path, body, {**sent, "origin": "http://evil.example"})[0] == 403
    assert client("POST", path, body, {**sent, "sec-fetch-site": "cross-site"})[0] == 403
    assert client("POST", path, body, {**sent, "content-type": "text/plain"})[0] == 415
    assert client("GET", "/api/v1/alarms", headers={"host": "evil.example"})[0] == 421  # DNS rebinding
    samples = {"content-type": "text/plain", "origin": "null"}
    assert client("POST", "/api/v1/assets/unit1/samples", "a b=1", samples)[0] == 403


def test_headers_of_every_answer(server):
    client = Client(server.url)
    for path in ("/", "/live.js", "/chart.js", "/api/v1/alarms", "/nothing", "/api/v1/assets/zz", "/../../etc/passwd"):
        status, content, headers = client("GET", path, whole=True)
        assert "default-src 'none'" in headers["content-security-policy"], path
        assert headers["x-content-type-options"] == "nosniff"
        assert "server" not in headers
        assert status in (200, 404)
        assert b"Traceback" not in content
    assert b"unsafe" not in json.dumps(dict(headers)).encode()


def test_wrong_tokens_lock_nobody_out(tmp_path):
    """Behind a proxy all users have one address: the allowance of a valid token is its own."""
    store = Store(tmp_path / "live.db")
    right = store.add_token("Ada", "engineer", 0.0)
    store.close()
    with LiveServer(options(tmp_path), Limits(rate=0.0, burst=15.0)) as server:
        found = [Client(server.url, f"wrong{n}")("GET", "/api/v1/alarms")[0] for n in range(20)]
        assert found == [401] * 15 + [429] * 5
        assert [Client(server.url, right)("GET", "/api/v1/alarms")[0] for _ in range(16)] == [200] * 15 + [429]


def test_behind_a_proxy_commands_come_from_the_public_address(tmp_path):
    """A proxy with TLS in front: the scheme is another, and the host that of the proxy or of the service."""
    public = "https://plant.example"
    with pytest.raises(StorageError, match="token"):  # others reach it: nobody is an engineer by being on this machine
        LiveServer(options(tmp_path, public_url=public))
    store = Store(tmp_path / "live.db")
    token = store.add_token("Ada", "engineer", 0.0)
    store.close()
    with LiveServer(options(tmp_path, public_url=f"{public}:443/")) as server:
        client = Client(server.url, token)
        sent = {"content-type": "application/json", "penstock-command": "1", "sec-fetch-site": "same-origin"}
        path = "/api/v1/alarms/none/acknowledge"
        for host in ("plant.example", "plant.example:443", f"127.0.0.1:{client.url.port}"):
            assert client("POST", path, "{}", {**sent, "origin": public, "host": host})[0] == 404
            for other in ("http://plant.example", "https://evil.example", "null"):
                assert client("POST", path, "{}", {**sent, "origin": other, "host": host})[0] == 403
        assert client("GET", "/api/v1/alarms", headers={"host": "evil.example"})[0] == 421
        assert Client(server.url)("GET", "/api/v1/alarms")[0] == 401


@pytest.mark.parametrize(
    "url", ["plant.example", "https://plant.example/penstock", "ftp://plant.example", "https://a:b@host", "https://"]
)
def test_public_addresses_that_cannot_be(tmp_path, url):
    with pytest.raises(ParameterError) as found:
        options(tmp_path, public_url=url).check()
    assert found.value.parameter == "public_url"


def test_long_headers_and_addresses_are_refused_however_they_arrive(server):
    head = b"GET /api/v1/alarms%s HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n%s\r\n"
    refused = (b"HTTP/1.1 431", b"HTTP/1.1 400")  # in one piece, and in several
    for most, status in ((30_000, b"HTTP/1.1 200"), (60_000, refused), (100_000, refused)):
        for request in (head % (b"?x=" + b"y" * most, b""), head % (b"", b"X-Long: " + b"y" * most + b"\r\n")):
            assert raw(server, request).startswith(status)


def test_connections_beyond_the_limit_are_closed_at_once(tmp_path):
    with LiveServer(options(tmp_path), Limits(connections=4)) as server:
        address = server._socket.getsockname()
        kept = [socket.create_connection(address, timeout=60) for _ in range(4)]
        wait_for(lambda: len(server._server.server_state.connections) == 4)
        begun = time.monotonic()
        for _ in range(3):
            assert raw(server, b"").startswith(b"HTTP/1.1 503")
        assert time.monotonic() - begun < Limits.header_seconds / 2
        for connection in kept:
            connection.close()
        wait_for(lambda: not server._server.server_state.connections)
        assert Client(server.url)("GET", "/healthz")[0] == 200


FEW_FILES = """
import resource, sys, time
resource.setrlimit(resource.RLIMIT_NOFILE, (300, 320))
from pathlib import Path
from penstock.live.options import AssetOptions, AlarmRules, ServeOptions
from penstock.live.web import Limits, LiveServer
store, hook = sys.argv[1:]
given = ServeOptions(store=Path(store), port=0, assets={"unit1": AssetOptions()}, webhook=(hook,))
with LiveServer(given, Limits(header_seconds=600)) as server:  # nobody is cut off for being slow
    print(server.url, flush=True)
    input()
    server.service.enter_problem("test", "something is wrong")
    while not (sent := server.service.store.messages()) or sent[0]["delivered"] is None:
        time.sleep(0.05)
    print(sent[0]["attempts"], flush=True)
"""


def test_a_flood_of_connections_leaves_files_for_store_and_messages(tmp_path):
    """With few descriptors, connections have a part of them; messages are sent while all of these are used."""
    pytest.importorskip("resource")
    with socket.create_server(("127.0.0.1", 0)) as heard, ExitStack() as flood:
        heard.settimeout(60)
        hook = f"http://127.0.0.1:{heard.getsockname()[1]}/"
        command = [sys.executable, "-c", FEW_FILES, str(tmp_path / "live.db"), hook]
        process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        try:
            url = urlsplit(process.stdout.readline().strip())
            for _ in range(400):
                flood.enter_context(socket.create_connection((url.hostname, url.port), timeout=60))
            process.stdin.write("\n")
            process.stdin.flush()
            with heard.accept()[0] as connection:
                assert connection.recv(65536).startswith(b"POST")
                connection.sendall(b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\nconnection: close\r\n\r\n")
            assert process.stdout.readline().strip() == "1"  # attempt
        finally:
            process.kill()
            process.communicate()


POST = b"POST /api/v1/assets/unit1/samples HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: text/csv\r\n"


def raw(server, data, wait=60.0):
    """Send bytes, and return what comes until the connection ends."""
    with socket.create_connection((server._socket.getsockname()), timeout=wait) as connection:
        connection.sendall(data)
        found = b""
        try:
            while chunk := connection.recv(65536):
                found += chunk
        except (TimeoutError, ConnectionResetError):
            pass
        return found


def test_malformed_requests_get_an_answer_and_do_no_harm(server):
    chance = random.Random(0)
    good = POST + b"Connection: close\r\nContent-Length: 3\r\n\r\nabc"
    statuses = set()
    for _ in range(60):
        data = bytearray(good)
        for _ in range(chance.randint(1, 8)):
            data[chance.randrange(len(data))] = chance.randrange(256)
        answer = raw(server, bytes(data[: chance.randint(20, len(data))]) + b"\r\n\r\n", wait=0.3)
        if answer:
            statuses.add(int(answer.split()[1]))
        assert b"Traceback" not in answer
    assert statuses <= {400, 403, 404, 405, 411, 413, 415, 421, 422}
    assert raw(server, b"GET /" + b"x" * 100_000 + b" HTTP/1.1\r\n\r\n").startswith(b"HTTP/1.1 400")
    assert raw(
        server, b"POST /api/v1/silences HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 999999999\r\n\r\n"
    ).startswith(b"HTTP/1.1 413")
    assert Client(server.url)("GET", "/healthz")[0] == 200


def test_a_body_that_is_too_long_without_saying_so(tmp_path):
    with LiveServer(options(tmp_path, max_body=0.01)) as server:
        head = POST + b"Transfer-Encoding: chunked\r\n\r\n"
        assert raw(server, head + b"4000\r\n" + b"x" * 0x4000 + b"\r\n0\r\n\r\n").startswith(b"HTTP/1.1 413")


def test_slow_clients_are_cut_off(tmp_path):
    with LiveServer(options(tmp_path), Limits(header_seconds=0.3, body_seconds=0.3)) as server:
        address, ended = server._socket.getsockname(), []

        def drip(start):
            with socket.create_connection(address, timeout=30) as connection:
                connection.sendall(start)
                try:
                    for _ in range(300):
                        connection.sendall(b"x")
                        connection.settimeout(0.02)
                        try:
                            if not connection.recv(1000):
                                break
                        except TimeoutError:
                            continue
                except OSError:
                    pass
            ended.append(time.monotonic())

        post = POST + b"Content-Length: 5000\r\n\r\n"
        threads = [threading.Thread(target=drip, args=(start,)) for start in (b"GET / HTTP/1.1\r\nX: ", post) * 3]
        begun = time.monotonic()
        for thread in threads:
            thread.start()
        assert Client(server.url)("GET", "/healthz")[0] == 200  # others are served meanwhile
        for thread in threads:
            thread.join(60)
        assert len(ended) == 6
        assert max(ended) - begun < 5.5  # 300 × 0.02 s, had nobody cut them off


def test_a_flood_is_limited(tmp_path):
    with LiveServer(options(tmp_path), Limits(rate=0.0, burst=5.0)) as server:
        assert [Client(server.url)("GET", "/healthz")[0] for _ in range(8)] == [200] * 5 + [429] * 3


def test_changes_are_read_some_at_a_time_and_the_last_ones_count(tmp_path):
    """For the load of alarms, of any number of days; of one alarm the last ones are shown."""
    store = Store(tmp_path / "live.db")
    with store.transaction():
        for number in range(2500):
            store.add_change(f"unit1-1.{number}", "unit1-1", float(number), {"number": number})
    assert [each["number"] for each in store.each_change(700.0)] == list(range(700, 2500))
    assert [each["number"] for each in store.each_change(0.0, most=1200)] == list(range(1300, 2500))
    assert [each["number"] for each in store.changes("unit1-1", most=3)] == [2497, 2498, 2499]
    store.close()


def test_an_export_in_pieces_is_one_file(tmp_path, monkeypatch):
    with LiveServer(options(tmp_path)) as server:
        client = Client(server.url)
        for start in range(600, 800, 25):
            assert client.samples(csv_of(ROWS[start : start + 25]))[0] == 200
        whole = pd.concat(api_module.export_frames(server.service, "unit1"), ignore_index=True)
        assert len(whole) == 200
        for rows_of_piece in (25, 50):  # which end where the rows do
            monkeypatch.setattr(api_module, "_PIECE_ROWS", rows_of_piece)
            table = client("GET", "/api/v1/assets/unit1/export?format=parquet", whole=True)[1]
            pd.testing.assert_frame_equal(pd.read_parquet(io.BytesIO(table)), whole)
        monkeypatch.setattr(api_module, "_PIECE_ROWS", 30)
        (text, table) = (
            client("GET", f"/api/v1/assets/unit1/export?after=3&limit=180&format={kind}", whole=True)[1]
            for kind in ("csv", "parquet")
        )
        expected = whole[3:183].reset_index(drop=True)
        assert expected["row"].tolist() == list(range(4, 184))
        pd.testing.assert_frame_equal(pd.read_parquet(io.BytesIO(table)), expected)
        read = pd.read_csv(io.BytesIO(text), parse_dates=["time"], keep_default_na=False, na_values={"head": [""]})
        assert read["time"].tolist() == expected["time"].tolist()
        np.testing.assert_array_equal(read[["score", *NAMES]], expected[["score", *NAMES]])


def test_long_answers_are_plain_json():
    content = {"rows": [{"a": number, "b": [None, "ä", {}]} for number in range(999)], "none": [], "flat": [1.5] * 401}
    assert json.loads("".join(api_module._json_pieces(content))) == content
