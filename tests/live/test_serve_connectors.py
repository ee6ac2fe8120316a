"""Rows in from brokers, notifications out to receivers: real ones, on loopback."""

from __future__ import annotations

import base64
import email
import email.policy
import importlib.util
import itertools
import json
import shutil
import socket
import sqlite3
import subprocess
import threading
import time
from contextlib import closing, contextmanager, suppress
from dataclasses import replace
from datetime import datetime
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from zoneinfo import ZoneInfo

import pytest
from live_service import NAMES, RULES, Client, csv_of, model, options, rows, running
from opcua_server import OpcUaServer
from waiting import wait_for

from penstock._parameters import ParameterError
from penstock.live.api import verdict_records
from penstock.live.connectors import Outbox, make_inputs, make_targets
from penstock.live.digest import DigestClock, digest_in_words, digest_page, last_moment, make_digest
from penstock.live.options import AssetOptions, ServeOptions
from penstock.live.runtime import Delivery
from penstock.live.service import Service
from penstock.live.store import Store
from penstock.live.web import LiveServer

ROWS = rows(n=900, fault=range(700, 850))
MOSQUITTO = shutil.which("mosquitto") or shutil.which("mosquitto", path="/usr/sbin")


def with_input(folder, **given):
    assets = {"unit1": AssetOptions(model=model(), **given)}
    return ServeOptions(store=Path(folder) / "live.db", port=0, assets=assets)


def objects(table):
    return [
        {"time": each.time, **{name: getattr(each, name) for name in NAMES}} for each in table.dropna().itertuples()
    ]


@pytest.fixture(scope="module")
def broker(tmp_path_factory):
    if MOSQUITTO is None:
        pytest.skip("there is no mosquitto on the path")
    pytest.importorskip("paho.mqtt.client")
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    settings = tmp_path_factory.mktemp("mosquitto") / "mosquitto.conf"
    settings.write_text(f"listener {port} 127.0.0.1\nallow_anonymous true\n")
    process = subprocess.Popen([MOSQUITTO, "-c", settings], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

    def is_there():
        with socket.socket() as probe:
            return probe.connect_ex(("127.0.0.1", port)) == 0

    wait_for(is_there)
    yield f"mqtt://127.0.0.1:{port}/"
    process.terminate()
    process.wait()


@pytest.fixture
def publish(broker):
    from paho.mqtt.client import Client as Mqtt
    from paho.mqtt.enums import CallbackAPIVersion

    client = Mqtt(CallbackAPIVersion.VERSION2)
    client.connect("127.0.0.1", int(broker.rsplit(":", 1)[1].strip("/")))
    client.loop_start()
    yield lambda topic, payload: client.publish(topic, payload, qos=1).wait_for_publish(300)
    client.disconnect()
    client.loop_stop()


def test_mqtt_rows_are_counted_once_through_restarts(tmp_path, broker, publish):
    given, sent = with_input(tmp_path, mqtt=f"{broker}plant/unit1"), objects(ROWS[600:640])
    with LiveServer(given) as server:

        def is_heard():
            publish("plant/unit1", "this is no row")
            return server.service.assets["unit1"].record.counts.get("malformed")

        wait_for(is_heard)  # the broker knows of the subscription
        for row in sent[:10]:
            publish("plant/unit1", json.dumps(row))
        wait_for(lambda: server.service.assets["unit1"].record.rows == 10)
    for row in sent[10:20]:  # without a listener: the broker keeps them
        publish("plant/unit1", json.dumps(row))
    with LiveServer(given) as server:
        publish("plant/unit1", json.dumps(sent[20:]))  # and a list of them
        wait_for(lambda: server.service.assets["unit1"].record.rows >= len(sent))
        time.sleep(0.1)
        verdicts = verdict_records(server.service, "unit1")
    assert [each["time"] for each in verdicts] == [each["time"] for each in sent]


def test_what_a_broker_sends_again_is_not_counted_again(tmp_path):
    text = json.dumps(objects(ROWS[600:601])[0]).encode()
    with running(options(tmp_path)) as service:
        for kind, accepted in [("digest", 1), ("again", 0), ("digest", 1), ("again", 0)]:
            answer = service.deliver(Delivery("unit1", text, "mqtt x", (kind, "3f"))).result()
            assert answer["accepted"] == accepted


def test_kafka_goes_on_at_the_offsets_of_the_store(tmp_path):
    kafka = pytest.importorskip("confluent_kafka")
    producer = kafka.Producer({"bootstrap.servers": "none", "test.mock.num.brokers": 1})
    broker = next(iter(producer.list_topics(timeout=300).brokers.values()))
    given, sent = with_input(tmp_path, kafka=f"kafka://{broker.host}:{broker.port}/plant"), objects(ROWS[600:660])
    for upto in (25, len(sent)):
        for row in sent[:25] if upto == 25 else sent[25:]:
            producer.produce("plant", json.dumps(row), key="unit1")  # one key, one partition, one order
        producer.flush(300)
        with LiveServer(given) as server:
            wait_for(lambda: server.service.assets["unit1"].record.rows >= upto)  # noqa: B023
            time.sleep(0.1)
            verdicts = verdict_records(server.service, "unit1")
    assert [each["time"] for each in verdicts] == [each["time"] for each in sent]


@pytest.mark.slow  # a group takes seconds to divide its partitions
def test_a_consumer_group_divides_assets_and_each_row_counts_once(tmp_path):
    kafka = pytest.importorskip("confluent_kafka")
    spec = importlib.util.spec_from_file_location("kafka_group", Path(__file__).parents[2] / "examples/kafka_group.py")
    example = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(example)
    producer = kafka.Producer({"bootstrap.servers": "none", "test.mock.num.brokers": 1})
    broker = next(iter(producer.list_topics(timeout=300).brokers.values()))
    address, sent = f"{broker.host}:{broker.port}", objects(ROWS[600:780])
    producer.list_topics("plant", timeout=300)  # makes it, with four partitions
    assets = {number: {f"unit{number}": AssetOptions(model=model())} for number in range(4)}
    stopped, problems = [threading.Event(), threading.Event()], []
    quick = {"session.timeout.ms": 6000, "heartbeat.interval.ms": 500}

    def count():
        total = 0
        for file in tmp_path.glob("plant-*.db"):
            with closing(sqlite3.connect(file)) as store, suppress(sqlite3.OperationalError):  # it is being made
                total += store.execute("SELECT coalesce(sum(rows), 0) FROM assets").fetchone()[0]
        return total

    def member(number):
        try:
            example.run(address, "plant", tmp_path, assets, stopped[number].is_set, RULES, **quick)
        except BaseException as error:
            problems.append(error)

    threads = [threading.Thread(target=member, args=(number,), daemon=True) for number in range(2)]
    for start, event in ((0, threads[0].start), (60, threads[1].start), (120, stopped[0].set)):
        event()  # one process, a second one, and the first one leaves
        for number, row in itertools.product(range(4), sent[start : start + 60]):
            producer.produce("plant", json.dumps(row), key=f"unit{number}", partition=number)
        producer.flush(300)
        wait_for(lambda: count() >= 4 * len(sent[: start + 60]) or problems)  # noqa: B023
        time.sleep(1)
    stopped[1].set()
    for thread in threads:
        thread.join(300)
    assert problems == []
    (tmp_path / "single_rows").mkdir()
    with running(options(tmp_path / "single_rows")) as service:
        service.deliver(Delivery("unit1", "\n".join(map(json.dumps, sent)).encode(), "test")).result()
        expected = verdict_records(service, "unit1")
        kinds = [change["kind"] for change in service.store.changes()]
    for number in range(4):
        given = ServeOptions(store=tmp_path / f"plant-{number}.db", assets=assets[number], rules=RULES)
        service = Service(given)
        assert verdict_records(service, f"unit{number}") == expected
        assert [change["kind"] for change in service.store.changes()] == kinds
        service.store.close()


def certificates(folder):
    """A certificate and a key for each of these applications, by openssl."""
    found = {}
    for name in ("server", "client", "stranger"):
        use = "serverAuth" if name == "server" else "clientAuth"
        names = f"subjectAltName=URI:urn:plant.example:{name},DNS:{socket.gethostname()},IP:127.0.0.1"
        usage = "keyUsage=critical,digitalSignature,nonRepudiation,keyEncipherment,dataEncipherment,keyCertSign"
        files = folder / f"{name}.pem", folder / f"{name}-key.pem"
        subprocess.run(
            [
                *("openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", f"/CN={name}"),
                *("-addext", names, "-addext", usage, "-addext", f"extendedKeyUsage={use}"),
                *("-out", files[0], "-keyout", files[1]),
            ],
            check=True,
            capture_output=True,
        )
        found[name] = files
    return found


@pytest.mark.slow  # the server of asyncua takes seconds to load its address space
@pytest.mark.parametrize("policy", ["Basic256Sha256", "Aes256Sha256RsaPss"])
def test_opc_ua_signed_and_encrypted_fails_and_recovers(tmp_path, policy, receiver):
    """The rows come; a server that ends and one that is another are problems, which are notified, as is their end."""
    pytest.importorskip("asyncua")
    hook, got = receiver
    files = certificates(tmp_path)
    plant = OpcUaServer(NAMES, files=files)
    plant.start()
    assert plant.ready.wait(300)
    nodes = tuple(f"{name}={node}" for name, node in plant.nodes.items())
    ours = dict(zip(("opcua_certificate", "opcua_key"), files["client"], strict=True))
    inputs = {"opcua": plant.url, "opcua_nodes": nodes, "opcua_interval": 0.1, "opcua_security": policy, **ours}
    given = with_input(tmp_path, **inputs, opcua_server_certificate=files["server"][0])
    wrong = with_input(tmp_path, **inputs, opcua_server_certificate=files["stranger"][0])
    with LiveServer(replace(wrong, store=tmp_path / "wrong.db")) as server:  # not the server that we know
        wait_for(lambda: "opcua of unit1" in server.service.problems)
        assert server.service.assets["unit1"].record.rows == 0
    theirs = dict(zip(("opcua_certificate", "opcua_key"), files["stranger"], strict=True))
    stranger = with_input(tmp_path, **{**inputs, **theirs}, opcua_server_certificate=files["server"][0])
    with LiveServer(replace(stranger, store=tmp_path / "stranger.db")) as server:  # not a client that it knows
        wait_for(lambda: "opcua of unit1" in server.service.problems)
        assert server.service.assets["unit1"].record.rows == 0
    with LiveServer(replace(given, webhook=(hook,))) as server:
        wait_for(lambda: server.service.assets["unit1"].record.rows >= 3)
        plant.stop()
        wait_for(lambda: [body["title"] for _, _, body in got] == ["Penstock: opcua of unit1"])
        again = OpcUaServer(NAMES, plant.url, files)
        again.start()
        wait_for(lambda: len(got) == 2)
        assert got[1][2]["title"] == "Penstock: opcua of unit1 is over"
        again.stop()


@pytest.mark.slow  # the server of asyncua takes seconds to load its address space
def test_opc_ua_values_become_rows(tmp_path):
    pytest.importorskip("asyncua")
    plant = OpcUaServer(NAMES)
    plant.start()
    assert plant.ready.wait(300)
    nodes = tuple(f"{name}={node}" for name, node in plant.nodes.items())
    given = with_input(tmp_path, opcua=plant.url, opcua_nodes=nodes, opcua_interval=0.1)
    with LiveServer(given) as server:
        wait_for(lambda: server.service.assets["unit1"].record.rows >= 3)
        found = Client(server.url).get("assets/unit1/series?sensor=oil")
        assert found["sensors"]["oil"]["value"][-1] == 5.0
        plant.stop()
        wait_for(lambda: "opcua of unit1" in server.service.problems)


OPCUA = {"opcua": "opc.tcp://host:4840", "opcua_nodes": ("flow=ns=2;s=Flow",)}


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"mqtt": "http://host/topic"}, "mqtt must be"),
        ({"mqtt": "mqtt://host"}, "mqtt must be"),
        ({"kafka": "host:9092"}, "kafka must be"),
        ({"opcua": "http://host"}, "opcua must be"),
        ({"opcua": "opc.tcp://host:4840"}, "opcua_nodes must be"),
        ({"opcua": "opc.tcp://host:4840", "opcua_nodes": ("flow",)}, "opcua_nodes must be"),
        ({**OPCUA, "opcua_certificate": Path(__file__)}, "opcua_key is needed"),
        ({**OPCUA, "opcua_key": Path(__file__)}, "opcua_certificate is needed"),
        ({**OPCUA, "opcua_security": "None"}, "opcua_security must be"),
    ],
)
def test_inputs_that_cannot_be(tmp_path, given, message):
    service = Service(with_input(tmp_path, **given))
    with pytest.raises(ParameterError, match=message):
        make_inputs(service)
    service.store.close()


@pytest.mark.parametrize(
    "given", [{"webhook": ("ftp://host",)}, {"alertmanager": ("host:9093",)}, {"mqtt_out": "host"}]
)
def test_targets_that_cannot_be(tmp_path, given):
    with pytest.raises(ParameterError):
        make_targets(options(tmp_path, **given))


@contextmanager
def listening(answer):
    """An HTTP server; of a request's method, path, headers and body, `answer` makes status and headers."""

    class Handler(BaseHTTPRequestHandler):
        def handle_one(self):
            body = self.rfile.read(int(self.headers["content-length"] or 0))
            status, headers = answer(self.command, self.path, self.headers, body)
            self.send_response(status)
            for name, value in headers.items():
                self.send_header(name, value)
            self.end_headers()

        do_GET = do_POST = handle_one  # noqa: N815

        def log_message(self, *_):
            pass

    with HTTPServer(("127.0.0.1", 0), Handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()


@pytest.fixture
def receiver():
    """A server that refuses the first request; of the others path, id and message."""
    refused, got = [], []

    def answer(_, path, headers, body):
        if not refused:
            refused.append(path)
            return 503, {}
        got.append((path, headers["penstock-notification"], json.loads(body)))
        return 200, {}

    with listening(answer) as url:
        yield url, got


def test_problems_of_the_service_are_notified_too(tmp_path, receiver):
    url, got = receiver
    given = options(
        tmp_path, input=tmp_path / "unit1.csv", webhook=(f"{url}/hook",), alertmanager=(url,), min_free=1e12
    )
    with LiveServer(given) as server:
        wait_for(lambda: len(got) == 2)
        client = Client(server.url)
        assert client("GET", "/healthz")[0] == 503
        assert client.samples(csv_of(ROWS[600:601]))[0] == 507
        assert "MB left" in client.get("status")["problems"][0]["text"]
    found = {path: body for path, _, body in got}
    assert found["/hook"]["title"] == "Penstock: disk"
    assert found["/api/v2/alerts"][0]["labels"] == {"alertname": "penstock problem", "problem": "disk"}


@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # of apprise, when it is imported
def test_notifications_reach_their_targets_at_least_once(tmp_path, receiver, broker):
    pytest.importorskip("apprise")
    url, got = receiver
    given = options(
        tmp_path,
        webhook=(f"{url}/hook",),
        alertmanager=(url,),
        notify=(f"{url.replace('http', 'json')}/apprise",),
        mqtt_out=f"{broker}out/alarms",
    )
    heard = []
    from paho.mqtt.client import Client as Mqtt
    from paho.mqtt.enums import CallbackAPIVersion

    listener = Mqtt(CallbackAPIVersion.VERSION2)
    listener.on_message = lambda _, __, message: heard.append(json.loads(message.payload))
    listener.connect("127.0.0.1", int(broker.rsplit(":", 1)[1].strip("/")))
    listener.subscribe("out/alarms", 1)
    listener.loop_start()
    with LiveServer(given) as server:
        Client(server.url).samples(csv_of(ROWS[600:800]))
        wait_for(lambda: server.service.store.messages() and not server.service.store.count_waiting())
        expected = {each["id"] for each in server.service.store.messages()}
        wait_for(lambda: {each["id"] for each in heard} == expected)
    listener.disconnect()
    listener.loop_stop()
    hooks = [body for path, identity, body in got if path == "/hook" and identity == body["id"]]
    assert {each["id"] for each in hooks} == expected
    assert hooks[0]["title"] == "Penstock: alarms 1 new"
    assert "oil high" in hooks[0]["text"]
    alerts = next(body for path, _, body in got if path == "/api/v2/alerts")
    assert alerts[0]["labels"]["asset"] == "unit1"
    assert alerts[0]["startsAt"].startswith("2026-01-01T00:11:4")
    assert any("oil high" in json.dumps(body) for path, _, body in got if path == "/apprise")


MESSAGE = {
    "id": "x",
    "time": 0.0,
    "kind": "problem",
    "group": "",
    "repeat": False,
    "new": [],
    "ended": [],
    "active": [],
}
MESSAGE |= {"alarms": [], "problem": {"id": "disk", "text": "full", "since": 0.0}, "over": False, "url": None}


@pytest.mark.parametrize("kind", ["webhook", "alertmanager"])
def test_a_redirect_is_not_followed_and_not_taken_for_delivery(tmp_path, kind):
    methods = []
    with listening(lambda method, *_: (methods.append(method), (302, {"location": "/inside"}))[1]) as url:
        (send,) = make_targets(options(tmp_path, **{kind: (url,)})).values()
        with pytest.raises(OSError, match="302"):
            send(MESSAGE)
    assert methods == ["POST"]


def test_a_user_in_the_address_of_a_webhook_is_sent_as_a_header(tmp_path):
    heard = []
    with listening(lambda *given: (heard.append(given), (204, {}))[1]) as url:
        address = url.replace("//", "//Ada:a%2Fb%40c@")
        (send,) = make_targets(options(tmp_path, webhook=(f"{address}/hook?x=1",))).values()
        send(MESSAGE)
    ((_, path, headers, _),) = heard
    assert (path, headers["host"]) == ("/hook?x=1", url.partition("//")[2])
    assert headers["authorization"] == f"Basic {base64.b64encode(b'Ada:a/b@c').decode()}"


class MailServer(threading.Thread):
    """A mail server of a few lines: it takes what it is sent."""

    def __init__(self):
        super().__init__(daemon=True)
        self._socket = socket.create_server(("127.0.0.1", 0))
        self.port, self.mails = self._socket.getsockname()[1], []

    def run(self):
        while True:
            try:
                connection, _ = self._socket.accept()
            except OSError:
                return
            with connection, connection.makefile("rb") as lines:
                connection.sendall(b"220 here\r\n")
                for line in lines:
                    if line.upper().startswith(b"DATA"):
                        connection.sendall(b"354 go on\r\n")
                        body = b"".join(iter(lines.readline, b".\r\n"))
                        self.mails.append(email.message_from_bytes(body, policy=email.policy.default))
                    if line.upper().startswith(b"QUIT"):
                        break
                    connection.sendall(b"250 fine\r\n")

    def stop(self):
        self._socket.close()


@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # of apprise, when it is imported
def test_a_digest_is_mailed_with_a_report_and_comes_once(tmp_path):
    pytest.importorskip("apprise")
    mail = MailServer()
    mail.start()
    target = f"mailto://127.0.0.1:{mail.port}/?mode=insecure&from=penstock@plant.example&to=ada@plant.example"
    given = options(tmp_path, notify=(target,), digest="daily", names=("unit1", "unit2"))
    given = replace(given, public_url="https://plant.example", rules=replace(RULES, group_wait="10d"))
    store = Store(given.store)
    store.add_token("Ada", "engineer", 0.0)
    store.close()
    service = Service(given, tuple(make_targets(given)))
    service.start()
    outbox, clock = Outbox(service, make_targets(given)), DigestClock(service)
    try:
        now = time.time()
        clock.post_due(now)  # the first period begins
        assert service.store.messages() == []
        service.deliver(Delivery("unit1", csv_of(ROWS[600:800]).encode(), "test")).result()
        for hours in (24, 24.1, 24.2):  # one of them is due, whatever the hour is now
            clock.post_due(now + 3600 * hours)
            DigestClock(service).post_due(now + 3600 * hours)  # after a restart
        assert [each["payload"]["kind"] for each in service.store.messages()] == ["digest"]
        outbox.send_waiting()
    finally:
        service.stop()
        mail.stop()
    (sent,) = mail.mails
    assert "digest" in sent["subject"]
    assert "1 new, 1 open" in sent["subject"]
    text = sent.get_body(("plain", "html")).get_content()
    assert "oil high" in text
    assert "https://plant.example/#alarms" in text
    (report,) = [each for each in sent.walk() if (each.get_filename() or "").endswith(".html")]
    page = report.get_content()
    assert "oil high" in page
    assert "unit2" in page
    assert "no row has come yet" in page


def test_a_digest_tells_each_alarm_once_and_holds_no_markup(tmp_path):
    table = rows(n=1600, fault=[*range(700, 750), *range(1200, 1250)])
    with running(options(tmp_path)) as service:
        mark = {"at": 0.0, "change": service.store.changes_after(-1)[0]}
        told = []
        for start, stop in ((600, 1000), (1000, 1100), (1100, 1500)):
            service.deliver(Delivery("unit1", csv_of(table[start:stop]).encode(), "test")).result()
            digest, newest = make_digest(service, mark, 1e6)
            mark = {"at": 1e6, "change": newest}
            told.append([each["id"] for each in digest["alarms"]])
        assert [len(each) for each in told] == [1, 0, 1]
        digest["problems"] = ["<script>alert(1)</script>"]
        assert "<script>" not in digest_page(digest, None)
        assert "1 new" in digest_in_words(digest)[0]


@pytest.mark.parametrize(
    ("digest", "now", "expected"),
    [
        ("daily", "2026-03-29T06:59:59+02:00", "2026-03-28T07:00:00+01:00"),  # clocks were put forward at 2
        ("daily", "2026-03-29T07:00:00+02:00", "2026-03-29T07:00:00+02:00"),
        ("weekly", "2026-03-30T06:00:00+02:00", "2026-03-23T07:00:00+01:00"),  # a Monday
        ("weekly", "2026-03-30T07:00:01+02:00", "2026-03-30T07:00:00+02:00"),
        ("weekly", "2026-04-05T23:00:00+02:00", "2026-03-30T07:00:00+02:00"),
    ],
)
def test_when_a_digest_is_due(digest, now, expected):
    zone = ZoneInfo("Europe/Berlin")
    assert last_moment(digest, 7, zone, datetime.fromisoformat(now).timestamp()) == pytest.approx(
        datetime.fromisoformat(expected).timestamp()
    )


def test_messages_have_links_to_the_page_that_shows_them(tmp_path, receiver):
    url, got = receiver
    store = Store(tmp_path / "live.db")
    token = store.add_token("Ada", "engineer", 0.0)
    store.close()
    given = options(tmp_path, webhook=(url,), alertmanager=(url,), public_url="https://plant.example")
    with LiveServer(given) as server:
        Client(server.url, token).samples(csv_of(ROWS[600:800]))
        wait_for(lambda: len(got) >= 2)
    bodies = {path: body for path, _, body in got}
    link = f"https://plant.example/#alarms={bodies['/']['new'][0]}"
    assert (bodies["/"]["url"], bodies["/"]["text"].splitlines()[-1]) == (link, link)
    assert bodies["/api/v2/alerts"][0]["generatorURL"] == link
