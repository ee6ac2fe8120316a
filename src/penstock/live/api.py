"""The API of `penstock serve`: what each endpoint does, in one table.

`ENDPOINTS` has the routes, the roles and what is written in the OpenAPI description. What waits for the service is a
coroutine; what reads the store is a plain function, which is run in a thread.
"""

from __future__ import annotations

import asyncio
import datetime as dt
import json
import math
import re
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cache, partial
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import JSONResponse, Response

import penstock
from penstock._messages import odd_character
from penstock.explain import NORMAL, REASONS, find_known, labels_of, likeness
from penstock.io import Batch, TableError, as_zone, need_pyarrow
from penstock.io.sinks import format_verdicts
from penstock.live.alarm_load import alarm_load
from penstock.live.alarm_records import Alarm, Change, alarm_in_words
from penstock.live.assets import Asset, known_labels
from penstock.live.connectors import as_lines
from penstock.live.nearest import nearest_normal
from penstock.live.runtime import Delivery, RefusedError
from penstock.live.service import ENGINEER_ACTIONS, OPERATOR_ACTIONS, Service
from penstock.live.store import ModelVersion
from penstock.report import as_csv

if TYPE_CHECKING:
    from penstock.live.web import Hub

ROLES = ("viewer", "operator", "engineer", "source")  # a source may only bring rows
MAY = {  # by the role that an endpoint needs: the roles that have it
    "viewer": {"viewer", "operator", "engineer"},
    "operator": {"operator", "engineer"},
    "engineer": {"engineer"},
    "source": {"source", "engineer"},
}
_MOST_POINTS = 5000
_LAST_DAY = 29_585  # the end of 2050, in days since 1970
_MOST_EXPORTED = 1_000_000  # rows
_COUNTS = {
    "samples": "Rows that were judged.",
    "flagged": "Rows above the threshold.",
    "unscored": "Rows without a score.",
    "malformed": "Lines that were no rows.",
    "missing": "Readings that were missing.",
    "quarantined": "Rows that could not be scored and were set aside.",
}
_SEQUENCE_HEADERS = {
    "Penstock-Client": "name of the sender",
    "Penstock-Sequence": "number of this request, from any on",
}
_KINDS = {
    "application/json": "json",
    "application/x-ndjson": "lines",
    "application/jsonl": "lines",
    "text/csv": "lines",
    "text/plain": "influx",
    "application/x-influx": "influx",
}


@dataclass(frozen=True)
class Parameter:
    """A parameter in the query: its type is that of JSON."""

    name: str
    kind: str
    text: str


@dataclass(frozen=True)
class Endpoint:
    """One method of one path of the API.

    role : who may use it; None: anybody.
    body : the fields of a JSON body and what they mean; a type of content: another body.
    """

    method: str
    path: str
    role: str | None
    summary: str
    run: Callable[[Api, Request], Any]
    parameters: tuple[Parameter, ...] = ()
    body: Mapping[str, str] | tuple[str, ...] | None = None


class PlainJson(JSONResponse):
    """An answer in ASCII: it can be written whatever a text holds."""

    def render(self, content: Any) -> bytes:
        """Return the content as bytes; ValueError for a number that JSON does not have."""
        return json.dumps(content, allow_nan=False, separators=(",", ":")).encode()


class Api:
    """What the endpoints do, on a service."""

    def __init__(self, service: Service, hub: Hub) -> None:
        self.service, self.store, self.hub = service, service.store, hub
        self._converting = asyncio.Semaphore(1)
        self._tokens: tuple[float, list[tuple[str, str, str]]] = (-math.inf, [])

    def tokens(self) -> list[tuple[str, str, str]]:
        """Return the tokens, those of some seconds ago."""
        if time.monotonic() - self._tokens[0] > 2.0:
            self._tokens = time.monotonic(), self.store.tokens()
        return self._tokens[1]

    # Rows in.

    async def add_samples(self, request: Request) -> dict[str, Any]:
        kind = _KINDS.get(request.headers.get("content-type", "").partition(";")[0].strip().lower())
        if kind is None:
            raise RefusedError(f"The content type must be one of {', '.join(_KINDS)}.", 415)
        asset = self._asset(request)
        client, number = request.headers.get("penstock-client"), request.headers.get("penstock-sequence")
        if (client is None) != (number is None):
            raise RefusedError("Penstock-Client and Penstock-Sequence belong together: send both, or none.")
        position = None
        if number is not None:
            if not re.fullmatch(r"\d{1,15}", number) or not re.fullmatch(r"[\w.:-]{1,100}", client or ""):
                raise RefusedError("Penstock-Sequence must be a whole number, Penstock-Client 1 to 100 letters.")
            position = ("next", int(number))
        lines = await self._lines(request, kind, asset)
        delivery = Delivery(asset.record.name, lines, f"http {client or ''}".strip(), position)
        answer = await asyncio.wrap_future(self.service.deliver(delivery))
        if not answer["accepted"] and answer.get("malformed"):
            raise RefusedError(f"No row could be read: {answer['faults'][0]['reason']}.", 422)
        return answer

    async def _lines(self, request: Request, kind: str, asset: Asset) -> bytes:
        """Return the rows of a body as lines; what is read and not yet waiting to be scored counts as waiting."""
        size = request.headers.get("content-length")
        release = self.service.claim(round(1e6 * self.service.options.max_body) if size is None else int(size))
        try:
            body = await request.body()
            convert = partial(as_lines, body, kind, asset.record.columns or asset.scorer.variable_names)
            if len(body) <= 100_000 or kind == "lines":
                return convert()
            async with self._converting:  # objects take thirty times the memory of their text
                return await run_in_threadpool(convert)
        finally:
            release()

    # What there is.

    async def health(self, request: Request) -> Any:
        service = self.service
        problem = "" if service.alive else "its thread has ended"
        problem = problem or service.stuck() or (service.problems["disk"].text if "disk" in service.problems else "")
        state = {"status": "not accepting", "reason": problem} if problem else {"status": "ok"}
        return PlainJson(state, 503 if problem else 200)

    def quarantine(self, request: Request) -> list[dict[str, Any]]:
        return self.store.quarantined(self._asset(request).record.id)

    def status(self, request: Request) -> dict[str, Any]:
        service = self.service
        return {
            "version": penstock.__version__,
            **{name: getattr(service, name) for name in ("started", "commits", "last_commit", "waiting")},
            "now": time.time(),
            "messages_waiting": self.store.count_waiting(),
            "listeners": self.hub.count,
            "problems": [asdict(problem) for problem in list(service.problems.values())],
            "reasons": list(REASONS),
            "zone": self._zone(),
            **{name: request.scope[name] for name in ("user", "role")},
        }

    def assets(self, request: Request) -> list[dict[str, Any]]:
        found, states = self.store.alarms(only_open=True), self.service.asset_states()
        for state in states:
            every = [alarm for alarm in found if alarm["asset"] == state["asset"]]
            mine = [alarm["state"] for alarm in every if alarm["known_as"] != NORMAL]
            state["known"] = sum("active" in alarm["state"] and alarm["known_as"] == NORMAL for alarm in every)
            state["alarms"] = sum("active" in names for names in mine)
            state["unacknowledged"] = sum("acknowledged" not in names for names in mine)
            version = self._versions(state["asset"]).get(state["model"])
            state["model_time"] = version.added if version is not None and version.source else None
            problem = self.service.problems.get(f"input of {state['asset']}")
            state["problem"] = None if problem is None else problem.text
        return states

    def _versions(self, asset: str) -> dict[int, ModelVersion]:
        return self.store.models(self.service.asset(asset).record.id)

    def models(self, request: Request) -> list[dict[str, Any]]:
        asset = self._asset(request)
        versions = self._versions(asset.record.name)
        return [
            {**asdict(each), "source": Path(each.source).name, "in_use": number == asset.record.version}
            for number, each in versions.items()
        ]

    def _zone(self) -> dict[str, Any]:
        """Return the one zone that all times are shown in."""
        name = self.service.options.zone
        return {"name": name or "UTC", "offsets": zone_offsets(name) if name else []}

    async def asset(self, request: Request) -> dict[str, Any]:
        asset = self._asset(request)
        record = asset.record
        return {**asset.summary(), "columns": list(record.columns or ()), "settings": record.settings}

    def series(self, request: Request) -> dict[str, Any]:
        """Return scores and readings of the last hours; of each stretch the row with the highest score."""
        asset, query = self._asset(request), request.query_params
        hours, points = _number(query, "hours", 8.0), int(_number(query, "points", 600.0))
        after = int(_number(query, "after", 0.0))
        names = [name for name in query.getlist("sensor") if name]
        record = asset.record
        known = {name for each in self._versions(record.name).values() for name in each.columns or ()}
        unknown = [name for name in names if name not in known]
        if unknown:
            raise RefusedError(f"There is no sensor {unknown[0]!r:.80}.", 404)
        if not 1 <= points <= _MOST_POINTS or len(names) > 50:
            raise RefusedError(f"points must be 1 to {_MOST_POINTS}, and there may be 50 sensors.")
        since = -math.inf if record.newest is None else record.newest - 3600 * hours
        none = np.empty(0, np.intp)
        parts: list[tuple[Any, ...]] = [(none, *np.empty((3, 0)), np.empty(0, np.bool_), none)]
        for block in self.store.verdicts(record.id, after=after, since=since):
            numbers, scores = np.arange(block.first, block.first + len(block.seconds)), block.scores
            versions = np.full(len(numbers), block.version)
            parts.append((numbers, block.seconds, scores.scores, scores.thresholds, scores.flags, versions))
        rows, seconds, found, thresholds, flags, versions = map(np.concatenate, zip(*parts, strict=True))
        chosen = _highest(np.flatnonzero((rows > after) & (seconds >= since)), found, points)
        return {
            "asset": record.name,
            "rows": rows[chosen].tolist(),
            "time": seconds[chosen].tolist(),
            "score": _plain(found[chosen]),
            "threshold": _plain(thresholds[chosen]),
            "flag": flags[chosen].tolist(),
            "model": versions[chosen].tolist(),
            "sensors": self._sensors(asset, rows[chosen].tolist(), names) if names and len(rows) else {},
        }

    def _sensors(self, asset: Asset, rows: list[int], names: Sequence[str]) -> dict[str, Any]:
        """Return readings, and what was expected, at these rows; None where readings are not kept any more.

        What was expected is known where the version in use has scored.
        """
        columns, versions = asset.record.columns or (), self._versions(asset.record.name)
        values = np.full((len(rows), len(columns)), np.nan)
        wanted = {name: np.full(len(rows), np.nan) for name in names}
        texts: dict[str, list[str | None]] = {}
        times: list[Any] = [None] * len(rows)
        place_of = {row: place for place, row in enumerate(rows)}
        for block in self.store.readings(asset.record.id, after=rows[0] - 1) if rows else ():
            of_block = versions[block.version].columns or ()
            places = [(name, of_block.index(name)) for name in names if name in of_block]
            for offset in range(len(block.values)):
                place = place_of.get(block.first + offset)
                for name, column in places if place is not None else ():
                    wanted[name][place] = block.values[offset, column]
                if place is not None and block.version == asset.record.version:
                    values[place] = block.values[offset]
                    times[place] = None if block.times is None else block.times[offset]
                    for name, words in block.texts.items():
                        texts.setdefault(name, [None] * len(rows))[place] = words[offset]
            if block.first > rows[-1]:
                break
        expected = asset.scorer.expected(Batch(values, range(len(rows)), times, [], texts))
        inputs = asset.scorer.variable_names
        return {
            name: {
                "value": _plain(wanted[name]),
                "expected": None if expected is None or name not in inputs else _plain(expected[:, inputs.index(name)]),
            }
            for name in names
        }

    def verdicts(self, request: Request) -> list[dict[str, Any]]:
        asset, query = self._asset(request), request.query_params
        after, limit = int(_number(query, "after", 0.0)), int(_number(query, "limit", 1000.0))
        if not 1 <= limit <= 100_000:
            raise RefusedError("limit must be 1 to 100000.")
        return verdict_records(self.service, asset.record.name, after, limit)

    def export(self, request: Request) -> Response:
        asset, query = self._asset(request), request.query_params
        after, limit = int(_number(query, "after", 0.0)), int(_number(query, "limit", 100_000.0))
        kind = query.get("format", "csv")
        if kind not in ("csv", "parquet") or not 1 <= limit <= _MOST_EXPORTED:
            raise RefusedError(f"format must be csv or parquet, and limit 1 to {_MOST_EXPORTED}.")
        frame = export_frame(self.service, asset.record.name, after, limit)
        name = re.sub(r"[^A-Za-z0-9._-]", "_", asset.record.name)
        headers = {"content-disposition": f'attachment; filename="{name}.{kind}"'}
        if kind == "csv":
            return Response(as_csv(frame), media_type="text/csv", headers=headers)
        try:
            need_pyarrow("Parquet")
        except TableError as error:
            raise RefusedError(str(error), 501) from None
        return Response(frame.to_parquet(index=False), media_type="application/vnd.apache.parquet", headers=headers)

    def metrics(self, request: Request) -> Response:
        """Return what Prometheus reads."""
        try:
            from prometheus_client import generate_latest
            from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily
        except ImportError:
            raise RefusedError("This needs prometheus-client: pip install 'penstock[serve]'.", 501) from None

        service, families = self.service, list[Any]()

        def add(family: Any, name: str, text: str, values: Mapping[Any, float | None], *labels: str) -> None:
            metric = family(f"penstock_{name}", text, labels=labels)
            for key, value in values.items():
                if value is not None:
                    metric.add_metric(key, value)
            families.append(metric)

        gauge, counter = partial(add, GaugeMetricFamily), partial(add, CounterMetricFamily)
        states, now = service.asset_states(), time.time()
        for name, text in _COUNTS.items():
            found = {(each["asset"],): float(each["counts"].get(name, 0)) for each in states}
            counter(name, text, found, "asset")
        for name, text in (("score", "Newest score."), ("threshold", "What it is compared with.")):
            gauge(name, text, {(each["asset"],): each[name] for each in states}, "asset")
        ages = {(each["asset"],): now - each["received"] for each in states if each["received"] is not None}
        gauge("last_row_age_seconds", "Since the last row came.", ages, "asset")
        alarms = self.store.alarms(only_open=True, limit=100_000)
        by_state = {
            (each["asset"], state): float(sum(state in a["state"] for a in alarms if a["asset"] == each["asset"]))
            for each in states
            for state in ("active", "acknowledged", "shelved")
        }
        gauge("open_alarms", "Open alarms that are in this state.", by_state, "asset", "state")
        load = {(each["name"],): float(each["value"]) for each in self._load(30.0, 1)["figures"]}
        gauge("alarm_load", "Load of alarms over 30 days of the data's time, one operator.", load, "measure")
        counter("commits", "Transactions since the start.", {(): float(service.commits)})
        gauge("waiting_jobs", "Deliveries and actions that wait to be scored.", {(): float(service.waiting)})
        gauge("waiting_messages", "Notifications that were not taken yet.", {(): float(self.store.count_waiting())})
        gauge("problems", "Problems of the service itself.", {(): float(len(service.problems))})
        registry: Any = SimpleNamespace(collect=lambda: families)
        return Response(generate_latest(registry), media_type="text/plain; version=0.0.4")

    def alarms(self, request: Request) -> list[dict[str, Any]]:
        query = request.query_params
        only_open, limit = query.get("open") in ("1", "true"), min(5000, int(_number(query, "limit", 500.0)))
        found = self.store.alarms(only_open=only_open, asset=query.get("asset"), limit=limit)
        return [_with_words(each) for each in found]

    def alarm(self, request: Request) -> dict[str, Any]:
        identity = request.path_params["alarm"]
        alarm, labels = self.store.alarm(identity), labels_of(self.store.labels())
        asset = self.service.assets.get(alarm["asset"])
        mine = [label.as_dict() for label in labels if label.subject == identity]
        pattern = alarm["pattern"]
        others = [label for label in labels if (label.subject, label.since) != (identity, alarm["since"])]
        like = find_known(pattern, known_labels(others, [asset] if asset else []), alarm["asset"])
        known = None if like is None else {"label": like.as_dict(), "likeness": likeness(pattern, like.pattern)}
        normal = None if asset is None else nearest_normal(self.store, asset, _as_alarm(alarm))
        more: dict[str, Any] = {
            "history": self.store.changes(identity),
            "labels": mine,
            "looks_like": known,
            "nearest_normal": normal,
        }
        more["model"] = None if asset is None else self._version_at(asset, alarm["since"])
        return {**_with_words(alarm), **more}

    def _version_at(self, asset: Asset, second: float) -> int | None:
        """Return the version of the model that scored the row at this time; None if verdicts are not kept any more."""
        found = (block.version for block in self.store.verdicts(asset.record.id, since=second))
        return next(found, None)

    def load(self, request: Request) -> dict[str, Any]:
        query = request.query_params
        days, operators = _number(query, "days", 30.0), int(_number(query, "operators", 1.0))
        if operators < 1:
            raise RefusedError("operators must be a whole number ≥ 1.")
        return self._load(days, operators)

    def _load(self, days: float, operators: int) -> dict[str, Any]:
        times = [asset.record.newest for asset in self.service.assets.values() if asset.record.newest is not None]
        end = max(times, default=time.time())
        changes = [Change.from_dict(each) for each in self.store.changes(since=end - 86400 * days)]
        first = min([each.time for each in changes if each.alarm is not None], default=end)
        found = alarm_load(changes, first, end, operators)
        return {
            "from": first,
            "to": end,
            "figures": found.figures(),
            "top": [{"name": n, "count": k} for n, k in found.top],
        }

    def labels(self, request: Request) -> list[dict[str, Any]]:
        return self.store.labels()

    def label_lines(self, request: Request) -> Response:
        lines = "".join(f"{json.dumps(each)}\n" for each in self.store.labels())
        return Response(lines, media_type="application/x-ndjson")

    def audit(self, request: Request) -> list[dict[str, Any]]:
        return self.store.audit()

    async def events(self, request: Request) -> Any:
        return self.hub

    async def openapi(self, request: Request) -> dict[str, Any]:
        return describe()

    # Commands.

    async def act(self, request: Request) -> dict[str, Any]:
        action, body = request.path_params["action"], await _json_body(request)
        if action not in (*OPERATOR_ACTIONS, *ENGINEER_ACTIONS):
            raise RefusedError(f"There is no action {action!r:.40}.", 404)
        if action in ENGINEER_ACTIONS and request.scope["role"] != "engineer":
            raise RefusedError(f"Only an engineer may do this ({action}).", 403)
        hours = _hours(body)
        given = {"reason": _text(body, "reason", 200), "comment": _text(body, "comment", 2000), "hours": hours}
        who = _who(request, body)
        _refuse_others(body, ("reason", "comment", "hours", "name"))
        return await asyncio.wrap_future(self.service.act(action, request.path_params["alarm"], who, **given))

    async def silence(self, request: Request) -> list[dict[str, Any]]:
        body = await _json_body(request)
        _refuse_others(body, ("pattern", "reason", "hours", "name"))
        hours, pattern = _hours(body), _text(body, "pattern", 100)
        if hours is None or not pattern:
            raise RefusedError("pattern and hours are needed.")
        who = _who(request, body)
        return await asyncio.wrap_future(self.service.silence(pattern, who, hours, _text(body, "reason", 200)))

    async def withdraw(self, request: Request) -> dict[str, Any]:
        body = await _json_body(request)
        _refuse_others(body, ("name",))
        await asyncio.wrap_future(self.service.withdraw_label(request.path_params["label"], _who(request, body)))
        return {"withdrawn": request.path_params["label"]}

    async def use_model(self, request: Request) -> dict[str, Any]:
        body = await _json_body(request)
        _refuse_others(body, ("version", "other_columns", "name"))
        version, other = body.get("version"), body.get("other_columns", False)
        if (version is not None and (type(version) is not int or version < 1)) or type(other) is not bool:
            raise RefusedError("version must be a whole number ≥ 1, or absent; other_columns true or false.")
        asset, who = self._asset(request), _who(request, body)
        return await asyncio.wrap_future(self.service.use_model(asset.record.name, version, who, other_columns=other))

    def _asset(self, request: Request) -> Asset:
        return self.service.asset(request.path_params["asset"])


_COMMENT = {"reason": "why, in a word", "comment": "anything else", "name": "who does it, where there are no tokens"}
_SHELVED = {"hours": "for so long, in the data's time; absent: until the alarm has ended"}
ENDPOINTS = (
    Endpoint("GET", "/healthz", None, "Whether rows are accepted (200) or not (503).", Api.health),
    Endpoint("GET", "/openapi.json", None, "This description.", Api.openapi),
    Endpoint("GET", "/metrics", "viewer", "Measures for Prometheus.", Api.metrics),
    Endpoint("GET", "/api/v1/status", "viewer", "The service itself: commits, what waits, problems.", Api.status),
    Endpoint("GET", "/api/v1/events", "viewer", "Server-sent events: what each commit has changed.", Api.events),
    Endpoint("GET", "/api/v1/assets", "viewer", "All assets with the newest verdict and open alarms.", Api.assets),
    Endpoint("GET", "/api/v1/alarms", "viewer", "Alarms, the newest first.", Api.alarms, (
        Parameter("open", "boolean", "only those that are not closed"),
        Parameter("asset", "string", "only of this asset"),
        Parameter("limit", "integer", "at most so many; 500"),
    )),
    Endpoint("GET", "/api/v1/alarms/{alarm}", "viewer", "One alarm, with the nearest normal situation.", Api.alarm),
    Endpoint("POST", "/api/v1/alarms/{alarm}/{action}", "operator",
        f"Work on an alarm: {', '.join(OPERATOR_ACTIONS)}; engineers also {', '.join(ENGINEER_ACTIONS)}.",
        Api.act, (), {**_COMMENT, **_SHELVED}),
    Endpoint("POST", "/api/v1/silences", "operator", "Send no notifications of some assets for some hours.",
        Api.silence, (), {"pattern": "of asset names, * for any text", "hours": "for so long", **_COMMENT}),
    Endpoint("GET", "/api/v1/load", "viewer", "How much alarms ask of operators, against usual targets.", Api.load, (
        Parameter("days", "number", "of the data's time; 30"),
        Parameter("operators", "integer", "who share the load; 1"),
    )),
    Endpoint("GET", "/api/v1/labels", "viewer", "What people said of alarms; labels taken back too.", Api.labels),
    Endpoint("GET", "/api/v1/labels.jsonl", "viewer", "The same as a file for penstock refit.", Api.label_lines),
    Endpoint("POST", "/api/v1/labels/{label}/withdraw", "operator", "Take back a label.", Api.withdraw, (),
        {"name": _COMMENT["name"]}),
    Endpoint("GET", "/api/v1/audit", "viewer", "Who did what, the newest first.", Api.audit),
    Endpoint("POST", "/api/v1/assets/{asset:path}/samples", "source",
        "Bring rows; answered when they are scored and on the disk.", Api.add_samples, (), tuple(_KINDS)),
    Endpoint("GET", "/api/v1/assets/{asset:path}/series", "viewer", "Scores and readings of the last hours.",
        Api.series, (
        Parameter("hours", "number", "of the data's time; 8"),
        Parameter("points", "integer", "at most so many, of each stretch the row with the highest score; 600"),
        Parameter("after", "integer", "only rows after this number"),
        Parameter("sensor", "string", "readings of this sensor too; may be repeated"),
    )),
    Endpoint("GET", "/api/v1/assets/{asset:path}/verdicts", "viewer", "All verdicts, row by row.", Api.verdicts, (
        Parameter("after", "integer", "rows after this number"), Parameter("limit", "integer", "at most so many; 1000"),
    )),
    Endpoint("GET", "/api/v1/assets/{asset:path}/export", "viewer", "Verdicts and readings as a file.", Api.export, (
        Parameter("format", "string", "csv or parquet; csv"), Parameter("after", "integer", "rows after this number"),
        Parameter("limit", "integer", "at most so many rows; 100000"),
    )),
    Endpoint("GET", "/api/v1/assets/{asset:path}/models", "viewer", "All versions of its model.", Api.models),
    Endpoint("POST", "/api/v1/assets/{asset:path}/models/use", "engineer",
        "Score by another version of the model from now on.", Api.use_model, (),
        {"version": "which one; absent: the one in use before", "name": _COMMENT["name"],
         "other_columns": "true: a model of other columns is meant"}),
    Endpoint("GET", "/api/v1/assets/{asset:path}/quarantine", "viewer",
        "Rows that could not be scored, and why, the newest first.", Api.quarantine),
    Endpoint("GET", "/api/v1/assets/{asset:path}", "viewer", "One asset: columns, model, counts.", Api.asset),
)  # fmt: skip


@cache
def zone_offsets(name: str) -> list[list[int]]:
    """Return how far the clocks of a zone are ahead of UTC, and from when on, in milliseconds since 1970.

    >>> zone_offsets("Europe/Berlin")[-1]
    [2550704400000, 3600000]
    """
    zone, found = as_zone(name), list[list[int]]()

    def ahead(at: int) -> int:
        offset = dt.datetime.fromtimestamp(at, dt.UTC).astimezone(zone).utcoffset()
        return int((offset or dt.timedelta()).total_seconds())

    for day in range(0, _LAST_DAY):
        low, high = 86_400 * day, 86_400 * (day + 1)
        if not found:
            found.append([0, 1000 * ahead(low)])
        if 1000 * ahead(high) != found[-1][1]:
            while high - low > 1:
                middle = (low + high) // 2
                low, high = (low, middle) if 1000 * ahead(middle) != found[-1][1] else (middle, high)
            found.append([1000 * high, 1000 * ahead(high)])
    return found


def describe() -> dict[str, Any]:
    """Return the OpenAPI description of all endpoints."""
    paths: dict[str, dict[str, Any]] = {}
    for each in ENDPOINTS:
        names = re.findall(r"\{(\w+)", each.path)
        given = [{"name": n, "in": "path", "required": True, "schema": {"type": "string"}} for n in names]
        given += [_described(p.name, "query", p.text, p.kind) for p in each.parameters]
        entry: dict[str, Any] = {
            "summary": each.summary,
            "operationId": each.run.__name__,
            "parameters": given,
            "responses": {"200": {"description": "Done."}, "default": {"description": 'A problem: {"error": "…"}'}},
        }
        if each.role is not None:
            entry["security"] = [{"token": []}]
            entry["description"] = f"For the role {each.role}."
        if isinstance(each.body, tuple):
            entry["requestBody"] = {"content": {kind: {} for kind in each.body}}
            given += [_described(name, "header", text, "string") for name, text in _SEQUENCE_HEADERS.items()]
        elif each.body is not None:
            fields = {name: {"description": text} for name, text in each.body.items()}
            schema = {"type": "object", "properties": fields}
            entry["requestBody"] = {"content": {"application/json": {"schema": schema}}}
        paths.setdefault(re.sub(r":path\}", "}", each.path), {})[each.method.lower()] = entry
    return {
        "openapi": "3.1.0",
        "info": {"title": "penstock serve", "version": penstock.__version__},
        "paths": paths,
        "components": {"securitySchemes": {"token": {"type": "http", "scheme": "bearer"}}},
    }


def _described(name: str, place: str, text: str, kind: str) -> dict[str, Any]:
    return {"name": name, "in": place, "description": text, "schema": {"type": kind}}


def verdict_records(service: Service, asset: str, after: int = 0, limit: int | None = None) -> list[dict[str, Any]]:
    """Return the verdicts on an asset after a row, in the form of `penstock watch`."""
    record, found = service.store.asset(asset), list[dict[str, Any]]()
    names = {version: [*map(json.dumps, each.names or ())] for version, each in service.store.models(record.id).items()}
    for block in service.store.verdicts(record.id, after=after):
        mine = names[block.version]
        lines = format_verdicts(block.first, block.times, block.scores, mine, block.reasons).splitlines()
        found += ({**json.loads(line), "model": block.version} for line in lines[max(0, after + 1 - block.first) :])
        if limit is not None and len(found) >= limit:
            break
    return found[:limit]


def export_frame(service: Service, asset: str, after: int = 0, limit: int = 100_000) -> pd.DataFrame:
    """Return verdicts and readings of an asset as a table; readings are missing where they are not kept any more."""
    record = service.store.asset(asset)
    versions = service.store.models(record.id)
    readings = {block.first: block.values for block in service.store.readings(record.id, after=after)}
    parts: list[pd.DataFrame] = []
    for block in service.store.verdicts(record.id, after=after):
        n, scores = len(block.seconds), block.scores
        part = pd.DataFrame({
            "row": np.arange(block.first, block.first + n),
            "time": pd.to_datetime((block.seconds * 1e6).astype(np.int64), unit="us", utc=True),
            "score": scores.scores,
            "threshold": scores.thresholds,
            "flag": scores.flags,
            "reason": [block.reasons.get(place, "") for place in range(n)],
            "model": block.version,
        })  # fmt: skip
        columns = list(versions[block.version].columns or ())
        values = readings.get(block.first, np.full((n, len(columns)), np.nan))
        named = [f"{name} (reading)" if name in part.columns else name for name in columns]
        parts.append(pd.concat([part, pd.DataFrame(values, columns=named)], axis=1)[part["row"] > after])
        if sum(map(len, parts)) >= limit:
            break
    whole = pd.concat(parts, ignore_index=True) if parts else pd.DataFrame(columns=["row", "time", "score"])
    return whole.head(limit)


def _as_alarm(record: dict[str, Any]) -> Alarm:
    return Alarm.from_dict({name: value for name, value in record.items() if name != "open"})


def _with_words(alarm: dict[str, Any]) -> dict[str, Any]:
    known = _as_alarm(alarm)
    return {**alarm, "words": alarm_in_words(known), "moved_first": list(known.moved_first)}


def _highest(places: Any, scores: Any, points: int) -> Any:
    """Return at most so many places, in order: of each stretch the one with the highest score, and the last."""
    if len(places) <= points:
        return places
    parts = np.array_split(places, max(1, points - 1))
    known = np.nan_to_num(scores, nan=-np.inf)
    chosen = [part[np.argmax(known[part])] for part in parts]
    return np.unique(np.array([*chosen, places[-1]]))


def _plain(values: Any) -> list[float | None]:
    return [value if math.isfinite(value) else None for value in values.tolist()]


def _number(query: Mapping[str, str], name: str, default: float) -> float:
    try:
        value = float(query.get(name, default))
    except ValueError:
        value = math.nan
    if not 0 <= value < 1e12:
        raise RefusedError(f"{name} must be a number ≥ 0.")
    return value


async def _json_body(request: Request) -> dict[str, Any]:
    if request.headers.get("content-type", "").partition(";")[0].strip().lower() != "application/json":
        raise RefusedError("The content type must be application/json.", 415)
    try:
        body = json.loads(await request.body() or b"{}")
    except (ValueError, RecursionError):
        raise RefusedError("The body is not JSON.") from None
    if not isinstance(body, dict):
        raise RefusedError("The body must be a JSON object.")
    return body


def _refuse_others(body: Mapping[str, Any], known: Sequence[str]) -> None:
    other = next((name for name in body if name not in known), None)
    if other is not None:
        raise RefusedError(f"{other!r:.40} is not known here; {', '.join(known)} are.")


def _text(body: Mapping[str, Any], name: str, most: int) -> str:
    value = body.get(name) or ""
    if not isinstance(value, str) or len(value) > most:
        raise RefusedError(f"{name} must be a text of at most {most} characters.")
    odd = odd_character(value)
    if odd is not None:
        raise RefusedError(f"{name} holds {odd}, which is no character of a text.")
    return " ".join(value.split())


def _hours(body: Mapping[str, Any]) -> float | None:
    value = body.get("hours")
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value <= 24 * 366:
        raise RefusedError("hours must be a number above 0 and at most a year.")
    return float(value)


def _who(request: Request, body: Mapping[str, Any]) -> str:
    """Return who acts: the name of the token, or on loopback without tokens the name that is given."""
    user: str = request.scope["user"]
    return user or _text(body, "name", 80) or "local"
