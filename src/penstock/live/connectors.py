"""Read rows from MQTT, Kafka and OPC UA, and send notifications to webhooks, Alertmanager, MQTT and Apprise.

In: a message is acknowledged to a broker when its rows are committed; what a broker sends again is not counted again.
Out: a message is sent after the commit that it belongs to, until its target has taken it: at least once, with an id by
which a receiver can tell that it has it already. Each target gets its messages in order.
"""

from __future__ import annotations

import asyncio
import base64
import datetime as dt
import hashlib
import json
import logging
import queue
import re
import threading
import time
import urllib.error
import urllib.request
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from functools import partial
from importlib import import_module
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from urllib.parse import SplitResult, quote, unquote, urlsplit, urlunsplit

from penstock._parameters import ParameterError, check_choice
from penstock.live.alarm_records import Alarm, RefusedError, alarm_in_words
from penstock.live.assets import MOST_ROWS
from penstock.live.digest import DigestClock, digest_in_words, digest_page
from penstock.live.options import OPCUA_POLICIES, AssetOptions, ServeOptions
from penstock.live.runtime import Delivery
from penstock.live.service import Service

log = logging.getLogger("penstock.serve")
_TIMEOUT = 10.0  # seconds
_LONGEST_WAIT = 600.0  # seconds between two attempts
_PAUSE = 0.25
_LONGEST_PAUSE = 30.0  # seconds until an input is tried again
_MOST_INFLIGHT = 100  # messages that a broker sends before the first is acknowledged; fewer than digests are kept
_LONGEST_READING = 4096  # bytes of a message with a single reading
_MOST_BRACES = 5 * MOST_ROWS  # of JSON: texts may hold some
_MOST_MESSAGES = 500  # of Kafka at once
Send = Callable[[Mapping[str, Any]], None]


# Rows in.


def as_lines(body: bytes, kind: str, columns: Sequence[str] = ()) -> bytes:
    """Return rows as lines of CSV or JSON.

    >>> as_lines(b'[{"time": 1, "flow": 2.5}, {"time": 2, "flow": 2.6}]', "json")
    b'{"time": 1, "flow": 2.5}\\n{"time": 2, "flow": 2.6}'
    >>> as_lines(b"pump,site=a flow=2.5,head=3i 1700000000000000000", "influx")
    b'{"time": 1700000000000000000, "flow": 2.5, "head": 3}'
    """
    if kind == "lines":
        return body
    if kind == "influx":
        return _influx_lines(body, frozenset(columns))
    too_many = RefusedError(f"At most {MOST_ROWS:,} rows are taken at once: send the others by themselves.")
    if body.count(b"{") > _MOST_BRACES:  # before they are objects, which take a hundred times the memory
        raise too_many
    try:
        rows = json.loads(body, object_pairs_hook=_object_once)
    except (ValueError, RecursionError) as error:
        raise RefusedError(f"The body is not JSON, or a key comes twice: {error}.") from None
    if isinstance(rows, dict) and set(rows) == {"columns", "rows"}:
        names, table = rows["columns"], rows["rows"]
        if not isinstance(names, list) or not isinstance(table, list):
            raise RefusedError("columns and rows must be lists.")
        if not all(isinstance(name, str) for name in names) or len({*names}) < len(names):
            raise RefusedError("columns must be names, each of them once.")
        if not all(isinstance(row, list) and len(row) == len(names) for row in table):
            raise RefusedError(f"Each row must be a list of {len(names)} values, as there are columns.")
        rows = [dict(zip(names, row, strict=True)) for row in table]
    rows = [rows] if isinstance(rows, dict) else rows
    if isinstance(rows, list) and len(rows) > MOST_ROWS:
        raise too_many
    if not isinstance(rows, list) or not rows:
        raise RefusedError('The body must be an object, a list of objects, or {"columns": […], "rows": [[…], …]}.')
    return "\n".join(map(json.dumps, rows)).encode()


def _object_once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Return an object of JSON; ValueError if one of its keys comes twice: one of the readings would be lost."""
    found = dict(pairs)
    if len(found) < len(pairs):
        raise ValueError("which of two readings is meant is not known")
    return found


# Possessive, and each field from where the last one ends: a text that is none is found out in one pass.
_INFLUX = re.compile(r"((?:[^\s,\\]|\\.)++)(?:,(?:[^\s\\]|\\.)++)? ")
_INFLUX_FIELD = re.compile(r"((?:[^\s,=\\]|\\.)++)=(\"(?:[^\"\\]|\\.)*+\"|[^\s,\"]++)(,|$|(?= ))")
_INFLUX_TIME = re.compile(r" (-?\d{1,19})|$")


def _influx_lines(body: bytes, columns: frozenset[str]) -> bytes:
    """Return the lines of Influx' line protocol as JSON objects; neighbours with one time stamp are one row.

    A field is the sensor of its name or, with its measurement before it and a dot or underscore between, of that.
    """
    rows: list[dict[str, Any]] = []
    for number, line in enumerate(body.decode("utf-8", errors="replace").splitlines(), start=1):
        text = line.strip()
        if not text or text.startswith("#"):
            continue
        begin = _INFLUX.match(text)
        fields = [] if begin is None else _influx_fields(text, begin.end())
        end = _INFLUX_TIME.fullmatch(text, fields[-1].end()) if fields else None
        if begin is None or end is None:
            raise RefusedError(f"Line {number} is not line protocol (measurement,tag=… field=… time): {text[:80]!r}.")
        time_stamp = None if end[1] is None else int(end[1])
        if not rows or time_stamp is None or rows[-1].get("time") != time_stamp:
            rows.append({} if time_stamp is None else {"time": time_stamp})
        measurement = re.sub(r"\\(.)", r"\1", begin[1])
        for each in fields:
            field = re.sub(r"\\(.)", r"\1", each[1])
            names = (field, f"{measurement}.{field}", f"{measurement}_{field}", measurement)
            rows[-1][next((name for name in names if name in columns), field)] = _influx_value(each[2])
    return "\n".join(map(json.dumps, rows)).encode()


def _influx_fields(text: str, start: int) -> list[re.Match[str]]:
    """Return the fields of a line from a place on; none if one of them is none."""
    found: list[re.Match[str]] = []
    while (field := _INFLUX_FIELD.match(text, start)) is not None:
        found.append(field)
        start = field.end()
        if field[3] != ",":
            return found
    return []


def _influx_value(text: str) -> Any:
    if text.startswith('"'):
        return re.sub(r"\\(.)", r"\1", text[1:-1])
    if text.lower() in ("t", "true", "f", "false"):
        return 1.0 if text.lower().startswith("t") else 0.0
    number = text[:-1] if text[-1:] in ("i", "u") else text
    try:
        return int(number) if number != text else float(number)
    except ValueError:
        return text  # reported as not a number, with the name of the sensor


class _Thread(ABC):
    """A thread of its own, which ends soon after `stopping` is set."""

    def __init__(self, name: str) -> None:
        self.stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, name=f"penstock {name}", daemon=True)

    def start(self) -> None:
        """Start the thread."""
        self._thread.start()

    def stop(self, seconds: float | None = None) -> None:
        """End the thread, or leave it as it is after so many seconds."""
        self.stopping.set()
        if self._thread.is_alive():
            self._thread.join(seconds)

    @abstractmethod
    def _run(self) -> None:
        """Work until `stopping` is set."""


def _need(parameter: str, module: str, package: str, extra: str) -> Any:
    """Return a module of an optional package; ParameterError if it is not installed."""
    try:
        return import_module(module)
    except ImportError:
        raise ParameterError(parameter, f" needs the package {package}: pip install 'penstock[{extra}]'") from None


class Input(_Thread):
    """Bring rows to an asset, in a thread of its own; what ends it by an error is tried again after a while.

    `name` is what it is called in messages.
    """

    def __init__(self, service: Service, asset: str, name: str) -> None:
        super().__init__(f"{name} {asset}")
        self.service, self.asset, self.name = service, asset, name

    @abstractmethod
    def read(self) -> None:
        """Bring rows until `stopping` is set; any exception is a problem that is shown."""

    def connected(self) -> None:
        """Note that rows can come."""
        self.service.clear_problem(f"{self.name} of {self.asset}")

    def bring(self, lines: bytes, source: str, position: tuple[str, Any] | None) -> None:
        """Return when rows are committed, or cannot be; waits while the service cannot accept any."""
        while not self.stopping.is_set():
            try:
                answer = self.service.deliver(Delivery(self.asset, lines, source, position)).result()
            except RefusedError as error:
                if error.status in (429, 500, 503, 507):
                    self.stopping.wait(1.0)
                    continue
                log.warning("%s of %s: a message cannot be used: %s", self.name, self.asset, error)
                return
            if answer.get("malformed"):
                log.warning("%s of %s: %s", self.name, self.asset, answer["faults"][0]["reason"])
            return

    def _run(self) -> None:
        wait = 1.0
        while not self.stopping.is_set():
            try:
                self.read()
                wait = 1.0
            except Exception as error:  # whatever a network or a library does
                text = f"{type(error).__name__}: {error}"[:300]
                self.service.enter_problem(f"{self.name} of {self.asset}", f"{text}. It is tried again.")
                self.stopping.wait(wait)
                wait = min(2 * wait, _LONGEST_PAUSE)


def make_inputs(service: Service) -> list[Input]:
    """Return the inputs of all assets apart from files; ParameterError for one that cannot be used."""
    inputs: list[Input] = []
    for name, options in service.options.assets.items():
        if options.mqtt is not None:
            inputs.append(MqttInput(service, name, options.mqtt))
        if options.kafka is not None:
            inputs.append(KafkaInput(service, name, options.kafka))
        if options.opcua is not None:
            inputs.append(OpcUaInput(service, name, options))
    return inputs


def _message_lines(payload: bytes, topic: str = "") -> bytes:
    """Return the rows of a message: JSON, CSV with a header, or line protocol; of a topic for each tag, its reading.

    >>> _message_lines(b'{"timestamp": 1714557600, "value": 2.5}', "plant/pump/flow")
    b'{"tag": "flow", "timestamp": 1714557600, "value": 2.5}'
    """
    text = payload.lstrip()
    if topic and text.startswith(b"{") and len(text) < _LONGEST_READING:
        with suppress(ValueError, RecursionError):
            reading = json.loads(text)
            keys = {str(key).casefold() for key in reading}
            if keys & {"value", "v", "val"} and not keys & {"tag", "name", "sensor", "tagname"} and len(keys) <= 4:
                plain = {"value" if str(key).casefold() in ("v", "val") else key: of for key, of in reading.items()}
                return json.dumps({"tag": topic.rpartition("/")[2], **plain}).encode()
    kind = "influx"
    if text[:1] in (b"{", b"["):
        kind = "lines" if b"\n{" in text else "json"
    elif b"," in text.partition(b"\n")[0] and b"=" not in text:
        kind = "lines"
    try:
        return as_lines(payload, kind)
    except RefusedError:
        return payload  # the reader says what is wrong with it, and counts it


class MqttInput(Input):
    """Subscribe to a topic with quality of service 1, in a session that the broker keeps."""

    def __init__(self, service: Service, asset: str, url: str) -> None:
        super().__init__(service, asset, "mqtt")
        self._parts = mqtt_address("mqtt", url)
        digest = hashlib.sha256(f"{service.store.path.resolve()} {asset}".encode()).hexdigest()[:12]
        self._client_id = f"penstock-{digest}"

    def read(self) -> None:
        parts, topic = self._parts, unquote(self._parts.path[1:])
        messages: queue.Queue[Any] = queue.Queue()
        client = mqtt_client(parts, self._client_id, clean=False)
        client.max_inflight_messages_set(_MOST_INFLIGHT)
        client.on_connect = lambda *_: client.subscribe(topic, qos=1)
        client.on_subscribe = lambda *_: self.connected()
        client.on_message = lambda _, __, message: messages.put(message)
        client.on_disconnect = lambda *_: messages.put(None)
        _connect(client, parts)
        try:
            while not self.stopping.is_set():
                try:
                    message = messages.get(timeout=_PAUSE)
                except queue.Empty:
                    continue
                if message is None:
                    raise OSError("the broker has ended the connection")
                digest = hashlib.sha256(message.topic.encode() + b"\0" + message.payload).hexdigest()[:24]
                position = ("again" if message.dup else "digest", digest)
                one_tag = message.topic if "+" in topic or "#" in topic else ""
                self.bring(_message_lines(message.payload, one_tag), f"mqtt {topic}", position)
                if not self.stopping.is_set():
                    client.ack(message.mid, message.qos)
        finally:
            client.on_disconnect = None
            client.disconnect()
            client.loop_stop()

    def forget(self) -> None:
        """Let the broker forget the session, which it would keep messages for."""
        client = mqtt_client(self._parts, self._client_id, clean=True)
        with suppress(OSError):
            _connect(client, self._parts)
            client.disconnect()
        client.loop_stop()


class KafkaInput(Input):
    """Read all partitions of a topic. The store has the offsets: each message counts once."""

    def __init__(self, service: Service, asset: str, url: str) -> None:
        super().__init__(service, asset, "kafka")
        parts = urlsplit(url)
        self._topic = unquote(parts.path[1:])
        if parts.scheme != "kafka" or not parts.netloc or not self._topic:
            raise ParameterError("kafka", f" must be kafka://HOST:PORT/TOPIC; got {url!r:.100}.")
        _need("kafka", "confluent_kafka", "confluent-kafka", "kafka")
        self._brokers = parts.netloc

    def _source(self, partition: int) -> str:
        return f"kafka {self._topic} {partition}"

    def read(self) -> None:
        from confluent_kafka import OFFSET_BEGINNING, Consumer, KafkaException, TopicPartition

        # No group: who reads what is in the configuration, and offsets are in the store alone.
        settings = {"bootstrap.servers": self._brokers, "group.id": "penstock", "enable.auto.commit": False}
        consumer = Consumer({**settings, "enable.partition.eof": False}, logger=log)
        try:
            topic = consumer.list_topics(self._topic, timeout=_TIMEOUT).topics[self._topic]
            if topic.error is not None:
                raise KafkaException(topic.error)
            known = self.service.assets[self.asset].positions
            last = {number: known.get(self._source(number)) for number in topic.partitions}
            starts = {number: OFFSET_BEGINNING if at is None else at + 1 for number, at in last.items()}
            consumer.assign([TopicPartition(self._topic, number, at) for number, at in starts.items()])
            self.connected()
            while not self.stopping.is_set():
                together: dict[int, list[Any]] = {}
                for message in consumer.consume(_MOST_MESSAGES, timeout=_PAUSE):
                    if message.error():
                        raise KafkaException(message.error())
                    together.setdefault(message.partition() or 0, []).append(message)
                for partition, messages in together.items():
                    lines = b"\n".join(_message_lines(message.value() or b"") for message in messages)
                    self.bring(lines, self._source(partition), ("after", messages[-1].offset()))
        finally:
            consumer.close()


class OpcUaInput(Input):
    """Subscribe to nodes of an OPC UA server, and bring their newest values as a row at even times.

    There is no memory on the other side: what changes while this is not connected is not seen.
    """

    def __init__(self, service: Service, asset: str, options: AssetOptions) -> None:
        super().__init__(service, asset, "opcua")
        self._url, self._interval = options.opcua or "", options.opcua_interval
        if urlsplit(self._url).scheme != "opc.tcp":
            raise ParameterError("opcua", f" must be an address such as opc.tcp://HOST:4840; got {self._url!r:.100}.")
        if not self._interval > 0:
            raise ParameterError("opcua_interval", f" must be a number of seconds > 0; got {self._interval!r}.")
        pairs = [text.partition("=") for text in options.opcua_nodes]
        if not pairs or not all(name and node for name, _, node in pairs):
            raise ParameterError("opcua_nodes", " must be SENSOR=NODE for each sensor, such as 'flow=ns=2;s=Flow'.")
        self._nodes = {node.strip(): name.strip() for name, _, node in pairs}
        _need("opcua", "asyncua", "asyncua", "opcua")
        self._security = _opcua_security(options)

    def read(self) -> None:
        asyncio.run(self._read())

    async def _read(self) -> None:
        from asyncua import Client  # type: ignore[attr-defined]  # it is public, but not named as such

        values: dict[str, Any] = dict.fromkeys(self._nodes.values())

        class Handler:
            """Note each value that changes; one that is not good is missing."""

            def datachange_notification(self, node: Any, value: Any, data: Any) -> None:
                good = data.monitored_item.Value.StatusCode.is_good() and isinstance(value, bool | int | float)
                values[names[node.nodeid.to_string()]] = float(value) if good else None

            def status_change_notification(self, status: Any) -> None:
                log.warning("OPC UA: %s", status)

        client = Client(self._url, timeout=_TIMEOUT)
        if self._security is not None:
            policy, certificate, key, server = self._security
            client.application_uri = await _application_name(certificate)
            await client.set_security(policy, certificate, key, server_certificate=server)
        async with client:
            nodes = [client.get_node(node) for node in self._nodes]
            names = {node.nodeid.to_string(): name for node, name in zip(nodes, self._nodes.values(), strict=True)}
            subscription = await client.create_subscription(1000 * self._interval / 2, Handler())
            await subscription.subscribe_data_change(nodes)
            self.connected()
            due = time.time() + self._interval
            while not self.stopping.is_set():
                await asyncio.sleep(min(_PAUSE, max(0.0, due - time.time())))
                if time.time() < due:
                    continue
                await client.check_connection()
                row = json.dumps({"time": _stamp(time.time()), **values}).encode()
                due = max(due + self._interval, time.time())
                await asyncio.to_thread(self.bring, row, "opcua", None)


def _opcua_security(options: AssetOptions) -> tuple[Any, Path, Path, str] | None:
    """Return policy, certificate, key and the server's certificate; None without them, ParameterError for some."""
    names = ("opcua_certificate", "opcua_key", "opcua_server_certificate")
    files = {name: getattr(options, name) for name in names}
    check_choice("opcua_security", options.opcua_security, OPCUA_POLICIES)
    if all(file is None for file in files.values()):
        return None
    for name, file in files.items():
        if file is None:
            problem = " is needed too: both sides must know each other's certificate, or anybody could answer."
            raise ParameterError(name, problem)
        if not file.is_file():
            raise ParameterError(name, f" must be a file in PEM or DER; there is no {str(file)!r:.100}.")
    policies = import_module("asyncua.crypto.security_policies")
    policy = getattr(policies, f"SecurityPolicy{options.opcua_security}")
    certificate, key, server = files.values()
    return policy, certificate, key, str(server)


async def _application_name(certificate: Path) -> str:
    """Return what an application is called in its certificate: a server accepts it by no other name."""
    from asyncua.crypto.uacrypto import load_certificate
    from cryptography import x509

    try:
        names = (await load_certificate(certificate)).extensions.get_extension_for_class(x509.SubjectAlternativeName)
        return str(names.value.get_values_for_type(x509.UniformResourceIdentifier)[0])
    except (x509.ExtensionNotFound, IndexError):
        raise OSError(f"{certificate} names no application (a URI among its subject alternative names)") from None


# Notifications out.


def make_targets(options: ServeOptions) -> dict[str, Send]:
    """Return how to send to each target of a configuration; ParameterError for one that cannot be used.

    >>> list(make_targets(ServeOptions(webhook=("http://127.0.0.1:9000/hook",))))
    ['webhook http://127.0.0.1:9000/hook']
    """
    targets: dict[str, Send] = {}
    for kind, send in (("webhook", _send_webhook), ("alertmanager", _send_alertmanager)):
        for url in getattr(options, kind):
            if urlsplit(url).scheme not in ("http", "https"):
                raise ParameterError(
                    kind, f" must be an address that begins with http:// or https://; got {url!r:.100}."
                )
            targets[f"{kind} {url}"] = partial(send, url)
    for url in options.notify:
        targets[f"notify {url}"] = _apprise(url)
    if options.mqtt_out is not None:
        targets[f"mqtt {options.mqtt_out}"] = partial(_publish, mqtt_address("mqtt_out", options.mqtt_out))
    return targets


def with_link(message: Mapping[str, Any], origin: str | None) -> dict[str, Any]:
    """Return a message with the address of the page that shows what it is about; None if that is not known.

    >>> with_link({"kind": "notification", "new": ["unit1-3"], "active": []}, "https://plant.example")["url"]
    'https://plant.example/#alarms=unit1-3'
    """
    named = [*message["new"], *message["active"]]
    place = "service" if message["kind"] == "problem" else "alarms"
    place = f"{place}={quote(named[0], safe='')}" if len({*named}) == 1 else place
    return {**message, "url": None if origin is None else f"{origin}/#{place}"}


def in_words(message: Mapping[str, Any]) -> tuple[str, str]:
    """Return a title and a text for people."""
    title, text = _title_and_text(message)
    return title, f"{text}\n{message['url']}" if message.get("url") else text


def _title_and_text(message: Mapping[str, Any]) -> tuple[str, str]:
    if message["kind"] == "problem":
        problem = message["problem"]
        if not message["over"]:
            return f"Penstock: {problem['id']}", problem["text"]
        return f"Penstock: {problem['id']} is over", f"This is over: {problem['text']}"
    if message["kind"] == "digest":
        return digest_in_words(message["digest"])
    alarms = {each["id"]: alarm_in_words(Alarm.from_dict(each)) for each in message["alarms"]}
    parts = {name: [alarms[each] for each in message[name] if each in alarms] for name in ("new", "ended", "active")}
    parts["active"] = [each for each in parts["active"] if each not in parts["new"]]
    counts = [f"{len(parts[name])} {name}" for name in ("new", "active", "ended") if parts[name]]
    title = f"{message['group'] or 'Penstock'}: alarms {', '.join(counts) or 'as before'}"
    lines = [f"{name.capitalize()}: {text}" for name in ("new", "active", "ended") for text in parts[name]]
    return title, "\n".join(lines)


class _NoRedirects(urllib.request.HTTPRedirectHandler):
    """A redirect is an error, as any answer but 2xx: followed, it would be a GET without the message, anywhere."""

    def redirect_request(self, *_: Any) -> None:
        return None


_OPENER = urllib.request.build_opener(_NoRedirects)


def _post(url: str, body: Any, headers: Mapping[str, str]) -> None:
    """POST an object; OSError unless the answer to this request itself is 2xx. A user in the address is a header."""
    parts = urlsplit(url)
    sent = {"content-type": "application/json", **headers}
    if parts.username is not None:
        user = f"{unquote(parts.username)}:{unquote(parts.password or '')}".encode()
        sent["authorization"] = f"Basic {base64.b64encode(user).decode()}"
        parts = parts._replace(netloc=parts.netloc.rpartition("@")[2])
    request = urllib.request.Request(urlunsplit(parts), json.dumps(body).encode(), sent, method="POST")
    with _OPENER.open(request, timeout=_TIMEOUT) as answer:
        answer.read(65536)


def _send_webhook(url: str, message: Mapping[str, Any]) -> None:
    title, text = in_words(message)
    _post(url, {**message, "title": title, "text": text}, {"penstock-notification": message["id"]})


def _send_alertmanager(url: str, message: Mapping[str, Any]) -> None:
    """Send alerts to Alertmanager's API v2; it knows them again by their labels. A digest is no alert."""
    alerts = []
    for record in message["alarms"] if message["kind"] != "digest" else ():
        alarm = Alarm.from_dict(record)
        labels = {"alertname": alarm.about, "asset": alarm.asset, "cause": alarm.cause, "alarm": alarm.id}
        words = {"summary": alarm_in_words(alarm), "notification": message["id"]}
        ended = None if alarm.state.active else alarm.ended
        alerts.append(_alert(labels, words, alarm.since, ended, message["url"]))
    if message["kind"] == "problem":
        problem = message["problem"]
        labels = {"alertname": "penstock problem", "problem": problem["id"]}
        ended = time.time() if message["over"] else None
        alerts.append(_alert(labels, {"summary": problem["text"]}, problem["since"], ended, message["url"]))
    if alerts:
        _post(f"{url.rstrip('/')}/api/v2/alerts", alerts, {})


def _alert(
    labels: dict[str, str], annotations: dict[str, str], since: float, ended: float | None, url: str | None
) -> dict[str, Any]:
    more = {"endsAt": None if ended is None else _stamp(ended), "generatorURL": url}
    known = {name: value for name, value in more.items() if value is not None}
    return {"labels": labels, "annotations": annotations, "startsAt": _stamp(since), **known}


def _stamp(seconds: float) -> str:
    return dt.datetime.fromtimestamp(seconds, dt.UTC).isoformat()


def _apprise(url: str) -> Send:
    sender = _need("notify", "apprise", "apprise", "notify").Apprise()
    if not sender.add(url):
        raise ParameterError("notify", f" is not an address that Apprise knows: {url!r:.60}.")

    def send(message: Mapping[str, Any]) -> None:
        title, text = in_words(message)
        with TemporaryDirectory(prefix="penstock-") as folder:
            report = None
            if message["kind"] == "digest":  # attached where the target takes files, such as e-mail
                report = Path(folder) / f"{re.sub('[^0-9A-Za-z-]', '-', message['id'])}.html"
                report.write_text(digest_page(message["digest"], message["url"]), encoding="utf-8")
            given = {} if report is None else {"attach": str(report)}
            if not sender.notify(title=title, body=f"{text}\n\n{message['id']}", **given):
                raise OSError("Apprise could not send it")

    return send


def mqtt_address(parameter: str, url: str) -> SplitResult:
    """Return the parts of mqtt://[user:password@]host[:port]/topic; ParameterError if it is none."""
    parts = urlsplit(url)
    if parts.scheme not in ("mqtt", "mqtts") or not parts.hostname or len(parts.path) < 2:
        raise ParameterError(parameter, f" must be mqtt://HOST:PORT/TOPIC (mqtts with TLS); got {url!r:.100}.")
    _need(parameter, "paho.mqtt.client", "paho-mqtt", "mqtt")
    return parts


def mqtt_client(parts: SplitResult, name: str, *, clean: bool) -> Any:
    """Return a client of an MQTT broker, which is not connected yet."""
    from paho.mqtt.client import Client
    from paho.mqtt.enums import CallbackAPIVersion

    client = Client(CallbackAPIVersion.VERSION2, client_id=name, clean_session=clean, manual_ack=not clean)
    if parts.username is not None:
        client.username_pw_set(unquote(parts.username), unquote(parts.password or ""))
    if parts.scheme == "mqtts":
        client.tls_set()
    return client


def _connect(client: Any, parts: SplitResult) -> None:
    client.connect(parts.hostname, parts.port or (8883 if parts.scheme == "mqtts" else 1883))
    client.loop_start()


def _publish(parts: SplitResult, message: Mapping[str, Any]) -> None:
    title, text = in_words(message)
    client = mqtt_client(parts, "", clean=True)
    client.connect_timeout = _TIMEOUT
    _connect(client, parts)
    try:
        body = json.dumps({**message, "title": title, "text": text})
        sent = client.publish(unquote(parts.path[1:]), body, qos=1)
        sent.wait_for_publish(_TIMEOUT)
        if not sent.is_published():
            raise OSError("the broker has not taken it")
    finally:
        client.disconnect()
        client.loop_stop()


class Outbox(_Thread):
    """Send what is in the outbox to targets of `make_targets`, in a thread of its own."""

    def __init__(self, service: Service, targets: Mapping[str, Send]) -> None:
        super().__init__("outbox")
        self._service, self._targets = service, targets
        self._digests = DigestClock(service)

    def _run(self) -> None:
        while not self.stopping.wait(_PAUSE):
            try:
                if self._targets:
                    self._digests.post_due(time.time())
                self.send_waiting()
            except RefusedError:  # the service ends, or its disk is full
                continue
            except Exception:
                log.exception("Messages could not be sent")

    def send_waiting(self) -> None:
        """Send all messages that are due; after one that fails, the others of its target wait too."""
        failed: dict[str, float] = {}
        for message in self._service.store.messages(time.time()):
            if self.stopping.is_set():
                return
            target, wait, problem = message["target"], 0.0, None
            if target in failed:
                wait, problem = failed[target], "waits for the message before it"
            elif target not in self._targets:
                wait, problem = _LONGEST_WAIT, "this target is not configured any more"
            else:
                try:
                    self._targets[target](with_link(message["payload"], self._service.options.public_origin))
                except Exception as error:  # whatever a network or a library does
                    problem = f"{type(error).__name__}: {error}"[:300]
                    wait = failed[target] = min(2.0 ** min(message["attempts"], 12), _LONGEST_WAIT)
                    log.warning("A message for %s was not taken: %s", target.partition(" ")[0], problem)
            with suppress(TimeoutError):
                self._service.note_message(message["number"], problem, wait).result(30)
