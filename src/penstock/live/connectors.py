"""Send notifications out of the store's outbox: webhooks, Alertmanager, MQTT, and what Apprise knows (e-mail and more).

A message is sent after the commit that it belongs to, until its target has taken it: at least once, with an id by
which a receiver can tell that it has it already. Each target gets its messages in order.
"""

from __future__ import annotations

import datetime as dt
import json
import logging
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Mapping
from contextlib import suppress
from functools import partial
from typing import Any
from urllib.parse import SplitResult, unquote, urlsplit

from penstock._parameters import ParameterError
from penstock.live.alarms import Alarm, alarm_in_words
from penstock.live.options import ServeOptions
from penstock.live.service import RefusedError, Service

log = logging.getLogger("penstock.serve")
_TIMEOUT = 10.0  # seconds
_LONGEST_WAIT = 600.0  # seconds between two attempts
_PAUSE = 0.25
Send = Callable[[Mapping[str, Any]], None]


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


def in_words(message: Mapping[str, Any]) -> tuple[str, str]:
    """Return a title and a text for people."""
    alarms = {each["id"]: alarm_in_words(Alarm.from_dict(each)) for each in message["alarms"]}
    parts = {name: [alarms[each] for each in message[name] if each in alarms] for name in ("new", "ended", "active")}
    parts["active"] = [each for each in parts["active"] if each not in parts["new"]]
    counts = [f"{len(parts[name])} {name}" for name in ("new", "active", "ended") if parts[name]]
    title = f"{message['group'] or 'Penstock'}: alarms {', '.join(counts) or 'as before'}"
    lines = [f"{name.capitalize()}: {text}" for name in ("new", "active", "ended") for text in parts[name]]
    return title, "\n".join(lines)


def _post(url: str, body: Any, headers: Mapping[str, str]) -> None:
    data = json.dumps(body).encode()
    request = urllib.request.Request(url, data, {"content-type": "application/json", **headers}, method="POST")
    with urllib.request.urlopen(request, timeout=_TIMEOUT) as answer:
        answer.read(65536)


def _send_webhook(url: str, message: Mapping[str, Any]) -> None:
    title, text = in_words(message)
    _post(url, {**message, "title": title, "text": text}, {"penstock-notification": message["id"]})


def _send_alertmanager(url: str, message: Mapping[str, Any]) -> None:
    """Send alerts to Alertmanager's API v2; it knows them again by their labels."""
    alerts = []
    for record in message["alarms"]:
        alarm = Alarm.from_dict(record)
        labels = {"alertname": alarm.about, "asset": alarm.asset, "cause": alarm.cause, "alarm": alarm.id}
        alert = {
            "labels": labels,
            "annotations": {"summary": alarm_in_words(alarm), "notification": message["id"]},
            "startsAt": _stamp(alarm.since),
        }
        alerts.append(alert if alarm.ended is None or alarm.state.active else {**alert, "endsAt": _stamp(alarm.ended)})
    _post(f"{url.rstrip('/')}/api/v2/alerts", alerts, {})


def _stamp(seconds: float) -> str:
    return dt.datetime.fromtimestamp(seconds, dt.UTC).isoformat()


def _apprise(url: str) -> Send:
    try:
        import apprise
    except ImportError:
        raise ParameterError("notify", " needs the package apprise: pip install 'penstock[notify]'") from None
    sender = apprise.Apprise()
    if not sender.add(url):
        raise ParameterError("notify", f" is not an address that Apprise knows: {url!r:.60}.")

    def send(message: Mapping[str, Any]) -> None:
        title, text = in_words(message)
        if not sender.notify(title=title, body=f"{text}\n\n{message['id']}"):
            raise OSError("Apprise could not send it")

    return send


def mqtt_address(parameter: str, url: str) -> SplitResult:
    """Return the parts of mqtt://[user:password@]host[:port]/topic; ParameterError if it is none."""
    parts = urlsplit(url)
    if parts.scheme not in ("mqtt", "mqtts") or not parts.hostname or len(parts.path) < 2:
        raise ParameterError(parameter, f" must be mqtt://HOST:PORT/TOPIC (mqtts with TLS); got {url!r:.100}.")
    try:
        import paho.mqtt.client  # noqa: F401
    except ImportError:
        raise ParameterError(parameter, " needs the package paho-mqtt: pip install 'penstock[mqtt]'") from None
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


def _publish(parts: SplitResult, message: Mapping[str, Any]) -> None:
    title, text = in_words(message)
    client = mqtt_client(parts, "", clean=True)
    client.connect_timeout = _TIMEOUT
    client.connect(parts.hostname, parts.port or (8883 if parts.scheme == "mqtts" else 1883))
    client.loop_start()
    try:
        body = json.dumps({**message, "title": title, "text": text})
        sent = client.publish(unquote(parts.path[1:]), body, qos=1)
        sent.wait_for_publish(_TIMEOUT)
        if not sent.is_published():
            raise OSError("the broker has not taken it")
    finally:
        client.disconnect()
        client.loop_stop()


class Outbox:
    """Send what is in the outbox, in a thread of its own.

    Parameters
    ----------
    service : Service
    targets : mapping of str to function
        As `make_targets` returns them.
    """

    def __init__(self, service: Service, targets: Mapping[str, Send]) -> None:
        self._service, self._targets = service, targets
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, name="penstock outbox", daemon=True)

    def start(self) -> None:
        """Start the thread."""
        self._thread.start()

    def stop(self) -> None:
        """End the thread after the message that is being sent."""
        self._stopping.set()
        if self._thread.is_alive():
            self._thread.join()

    def _run(self) -> None:
        while not self._stopping.wait(_PAUSE):
            try:
                self.send_waiting()
            except RefusedError:  # the service ends, or its disk is full
                continue
            except Exception:
                log.exception("Messages could not be sent")

    def send_waiting(self) -> None:
        """Send all messages that are due; after one that fails, the others of its target wait too."""
        failed: dict[str, float] = {}
        for message in self._service.store.waiting_messages(time.time()):
            if self._stopping.is_set():
                return
            target, wait, problem = message["target"], 0.0, None
            if target in failed:
                wait, problem = failed[target], "waits for the message before it"
            elif target not in self._targets:
                wait, problem = _LONGEST_WAIT, "this target is not configured any more"
            else:
                try:
                    self._targets[target](message["payload"])
                except Exception as error:  # whatever a network or a library does
                    problem = f"{type(error).__name__}: {error}"[:300]
                    wait = failed[target] = min(2.0 ** min(message["attempts"], 12), _LONGEST_WAIT)
                    log.warning("A message for %s was not taken: %s", target.partition(" ")[0], problem)
            with suppress(TimeoutError):
                self._service.note_message(message["number"], problem, wait).result(30)
