"""The web server of `penstock serve`: the page, an API in JSON, server-sent events, and who may do what.

`ENDPOINTS` is the one table of the API: routes, roles and the OpenAPI description are made of it. There are no cookies:
a token is sent with each request, so that another site cannot use it; without tokens the service listens on loopback
alone, and commands need a header that other sites cannot send.
"""

from __future__ import annotations

import asyncio
import ipaddress
import json
import logging
import math
import re
import socket
import threading
import time
from collections import OrderedDict
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import asdict, dataclass
from functools import partial
from importlib import resources
from typing import Any

import numpy as np
import pandas as pd
import uvicorn
from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.datastructures import Headers, MutableHeaders
from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp, Message, Receive, Scope, Send
from uvicorn.protocols.http.h11_impl import H11Protocol

import penstock
from penstock.io import Batch, TableError, need_pyarrow
from penstock.live.alarm_load import alarm_load
from penstock.live.alarms import Alarm, AlarmError, Change, alarm_in_words
from penstock.live.connectors import Input, Outbox, as_lines, make_inputs, make_targets
from penstock.live.feedback import REASONS, labels_of, looks_like
from penstock.live.options import ServeOptions
from penstock.live.service import ENGINEER_ACTIONS, OPERATOR_ACTIONS, Delivery, RefusedError, Service
from penstock.live.store import StoreError, find_token

log = logging.getLogger("penstock.serve")
ROLES = ("viewer", "operator", "engineer", "source")  # a source may only bring rows
_MAY = {
    "viewer": {"viewer", "operator", "engineer"},
    "operator": {"operator", "engineer"},
    "engineer": {"engineer"},
    "source": {"source", "engineer"},
}
_HEADERS = {
    "content-security-policy": "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; "
    "img-src 'self' data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "cache-control": "no-store",
}
COMMAND_HEADER = "penstock-command"
_HEADER_SECONDS, _BODY_SECONDS = 10.0, 30.0  # a client that is slower is cut off
_MOST_FAILURES, _FAILURE_SECONDS = 10, 60.0  # wrong tokens of an address
_MOST_ADDRESSES = 10_000
_RATE, _BURST = 500.0, 1000.0  # requests a second of an address, and how many at once
_MOST_LISTENERS = 500
_TICK, _HEARTBEAT = 0.1, 15.0  # seconds
_MOST_CHANGES = 200  # in one event; beyond, pages are told to load anew
_MOST_POINTS = 5000
_MOST_EXPORTED = 1_000_000  # rows
_COUNTS = {
    "samples": "Rows that were judged.",
    "flagged": "Rows above the threshold.",
    "unscored": "Rows without a score.",
    "malformed": "Lines that were no rows.",
    "missing": "Readings that were missing.",
}
_KINDS = {
    "application/json": "json",
    "application/x-ndjson": "lines",
    "application/jsonl": "lines",
    "text/csv": "lines",
    "text/plain": "influx",
    "application/x-influx": "influx",
}
_SCRIPT = "text/javascript"
_PAGE = {  # files of the page; the charts are those of the report
    "/": ("live/templates/live.html", "text/html"),
    "/live.css": ("live/templates/live.css", "text/css"),
    "/live.js": ("live/templates/live.js", _SCRIPT),
    **{f"/{name}.js": (f"report/templates/{name}.js", _SCRIPT) for name in ("format", "view", "chart")},
}


class HttpError(Exception):
    """An answer other than 200."""

    def __init__(self, status: int, message: str, **headers: str) -> None:
        super().__init__(message)
        self.status, self.headers = status, headers


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
    run: Callable[[Api, Request], Awaitable[Any]]
    parameters: tuple[Parameter, ...] = ()
    body: Mapping[str, str] | tuple[str, ...] | None = None


class Api:
    """What the endpoints do, on a service."""

    def __init__(self, service: Service) -> None:
        self.service, self.store = service, service.store
        self.hub = Hub()
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
            raise HttpError(415, f"The content type must be one of {', '.join(_KINDS)}.")
        body = await request.body()
        asset = request.path_params["asset"]
        known = self.service.assets.get(asset)
        if known is None:
            raise HttpError(404, f"There is no asset {asset!r:.80}.")
        client, number = request.headers.get("penstock-client"), request.headers.get("penstock-sequence")
        if (client is None) != (number is None):
            raise HttpError(400, "Penstock-Client and Penstock-Sequence belong together: send both, or none.")
        position = None
        if number is not None:
            if not re.fullmatch(r"\d{1,15}", number) or not re.fullmatch(r"[\w.:-]{1,100}", client or ""):
                raise HttpError(400, "Penstock-Sequence must be a whole number, Penstock-Client 1 to 100 letters.")
            position = ("next", int(number))
        source = f"http {client or ''}".strip()
        columns = known.record.columns or known.scorer.variable_names
        convert = partial(as_lines, body, kind, columns)
        lines = await run_in_threadpool(convert) if len(body) > 100_000 else convert()
        answer = await asyncio.wrap_future(self.service.deliver(Delivery(asset, lines, source, position)))
        if not answer["accepted"] and answer.get("malformed"):
            raise HttpError(422, f"No row could be read: {answer['faults'][0]['reason']}.")
        return answer

    # What there is.

    async def health(self, request: Request) -> Any:
        ok = self.service.alive and "disk" not in self.service.problems
        return JSONResponse({"status": "ok" if ok else "not accepting"}, 200 if ok else 503)

    async def status(self, request: Request) -> dict[str, Any]:
        service = self.service
        return {
            "version": penstock.__version__,
            "started": service.started,
            "now": time.time(),
            "commits": service.commits,
            "last_commit": service.last_commit,
            "waiting": service.waiting,
            "messages_waiting": await run_in_threadpool(self.store.count_waiting),
            "listeners": self.hub.count,
            "problems": [asdict(problem) for problem in list(service.problems.values())],
            "reasons": list(REASONS),
            "user": request.scope["user"],
            "role": request.scope["role"],
        }

    async def assets(self, request: Request) -> list[dict[str, Any]]:
        found = await run_in_threadpool(self.store.alarms, only_open=True)
        states = self.service.asset_states()
        for state in states:
            mine = [alarm for alarm in found if alarm["asset"] == state["asset"]]
            state["alarms"] = len([alarm for alarm in mine if "active" in alarm["state"]])
            state["unacknowledged"] = len([alarm for alarm in mine if "acknowledged" not in alarm["state"]])
        return states

    async def asset(self, request: Request) -> dict[str, Any]:
        asset = self._asset(request)
        record = asset.record
        return {**asset.summary(), "columns": list(record.columns or ()), "settings": record.settings}

    async def series(self, request: Request) -> dict[str, Any]:
        asset, query = self._asset(request), request.query_params
        hours, points = _number(query, "hours", 8.0), int(_number(query, "points", 600.0))
        after = int(_number(query, "after", 0.0))
        names = [name for name in query.getlist("sensor") if name]
        unknown = [name for name in names if name not in (asset.record.columns or ())]
        if unknown:
            raise HttpError(404, f"There is no sensor {unknown[0]!r:.80}.")
        if not 1 <= points <= _MOST_POINTS or len(names) > 50:
            raise HttpError(400, f"points must be 1 to {_MOST_POINTS}, and there may be 50 sensors.")
        return await run_in_threadpool(self._series, asset, hours, points, after, names)

    def _series(self, asset: Any, hours: float, points: int, after: int, names: Sequence[str]) -> dict[str, Any]:
        """Return scores and readings of the last hours; of each stretch the row with the highest score."""
        record = asset.record
        since = None if record.newest is None else record.newest - 3600 * hours
        blocks = list(self.store.verdicts(record.id, after=after, since=since))
        if not blocks:
            return {
                "asset": record.name,
                "rows": [],
                "time": [],
                "score": [],
                "threshold": [],
                "flag": [],
                "sensors": {},
            }
        rows = np.concatenate([np.arange(block.first, block.first + len(block.seconds)) for block in blocks])
        seconds, scores, thresholds, flags = (
            np.concatenate(parts)
            for parts in zip(
                *((b.seconds, b.scores.scores, b.scores.thresholds, b.scores.flags) for b in blocks), strict=True
            )
        )
        kept = (rows > after) & (seconds >= (since or -math.inf))
        chosen = _highest(np.flatnonzero(kept), scores, points)
        sensors = self._sensors(asset, rows[chosen], names) if names else {}
        return {
            "asset": record.name,
            "rows": rows[chosen].tolist(),
            "time": seconds[chosen].tolist(),
            "score": _plain(scores[chosen]),
            "threshold": _plain(thresholds[chosen]),
            "flag": flags[chosen].tolist(),
            "sensors": sensors,
        }

    def _sensors(self, asset: Any, rows: Any, names: Sequence[str]) -> dict[str, Any]:
        """Return readings, and what was expected, at these rows; None where readings are not kept any more."""
        columns = asset.record.columns
        values = np.full((len(rows), len(columns)), np.nan)
        texts: dict[str, list[str | None]] = {}
        times: list[Any] = [None] * len(rows)
        place_of = {row: place for place, row in enumerate(rows.tolist())}
        for block in self.store.readings(asset.record.id, after=int(rows[0]) - 1) if len(rows) else ():
            for offset in range(len(block.values)):
                place = place_of.get(block.first + offset)
                if place is not None:
                    values[place] = block.values[offset]
                    times[place] = None if block.times is None else block.times[offset]
                    for name, column in block.texts.items():
                        texts.setdefault(name, [None] * len(rows))[place] = column[offset]
            if block.first > rows[-1]:
                break
        expected = asset.scorer.expected(Batch(values, range(len(rows)), times, [], texts))
        inputs = asset.scorer.variable_names
        return {
            name: {
                "value": _plain(values[:, columns.index(name)]),
                "expected": None if expected is None or name not in inputs else _plain(expected[:, inputs.index(name)]),
            }
            for name in names
        }

    async def verdicts(self, request: Request) -> Any:
        asset, query = self._asset(request), request.query_params
        after, limit = int(_number(query, "after", 0.0)), int(_number(query, "limit", 1000.0))
        if not 1 <= limit <= 100_000:
            raise HttpError(400, "limit must be 1 to 100000.")
        return await run_in_threadpool(lambda: verdict_records(self.service, asset.record.name, after, limit))

    async def export(self, request: Request) -> Response:
        asset, query = self._asset(request), request.query_params
        after, limit = int(_number(query, "after", 0.0)), int(_number(query, "limit", 100_000.0))
        kind = query.get("format", "csv")
        if kind not in ("csv", "parquet") or not 1 <= limit <= _MOST_EXPORTED:
            raise HttpError(400, f"format must be csv or parquet, and limit 1 to {_MOST_EXPORTED}.")
        return await run_in_threadpool(self._export, asset, after, limit, kind)

    def _export(self, asset: Any, after: int, limit: int, kind: str) -> Response:
        frame = export_frame(self.service, asset.record.name, after, limit)
        name = re.sub(r"[^A-Za-z0-9._-]", "_", asset.record.name)
        headers = {"content-disposition": f'attachment; filename="{name}.{kind}"'}
        if kind == "csv":
            return Response(frame.to_csv(index=False), media_type="text/csv", headers=headers)
        try:
            need_pyarrow("Parquet")
        except TableError as error:
            raise HttpError(501, str(error)) from None
        return Response(frame.to_parquet(index=False), media_type="application/vnd.apache.parquet", headers=headers)

    async def metrics(self, request: Request) -> Response:
        return Response(await run_in_threadpool(self._metrics), media_type="text/plain; version=0.0.4")

    def _metrics(self) -> bytes:
        """Return what Prometheus reads."""
        from prometheus_client import CollectorRegistry, generate_latest
        from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily

        registry, service, families = CollectorRegistry(), self.service, list[Any]()

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
        registry.register(_Families(families))
        return generate_latest(registry)

    async def alarms(self, request: Request) -> list[dict[str, Any]]:
        query = request.query_params
        find = partial(
            self.store.alarms,
            only_open=query.get("open") in ("1", "true"),
            asset=query.get("asset"),
            limit=min(5000, int(_number(query, "limit", 500.0))),
        )
        return [_with_words(each) for each in await run_in_threadpool(find)]

    async def alarm(self, request: Request) -> dict[str, Any]:
        identity = request.path_params["alarm"]

        def find() -> dict[str, Any]:
            alarm = self.store.alarm(identity)
            labels = labels_of(self.store.labels())
            like = looks_like(Alarm.from_dict(alarm), labels)
            mine = [label.as_dict() for label in labels if label.alarm == identity]
            known = None if like is None else {"label": like[0].as_dict(), "likeness": like[1]}
            return {**_with_words(alarm), "history": self.store.changes(identity), "labels": mine, "looks_like": known}

        return await run_in_threadpool(find)

    async def load(self, request: Request) -> dict[str, Any]:
        query = request.query_params
        days, operators = _number(query, "days", 30.0), int(_number(query, "operators", 1.0))
        if operators < 1:
            raise HttpError(400, "operators must be a whole number ≥ 1.")
        return await run_in_threadpool(self._load, days, operators)

    def _load(self, days: float, operators: int) -> dict[str, Any]:
        times = [asset.record.newest for asset in self.service.assets.values() if asset.record.newest is not None]
        end = max(times, default=time.time())
        changes = [Change.from_dict(each) for each in self.store.changes(since=end - 86400 * days)]
        first = min([each.time for each in changes if each.alarm is not None], default=end)
        found = alarm_load(changes, first, end, operators)
        figures = [
            {
                "name": name,
                "value": f"{value:.3g}",
                "target": f"target: {target}" if target else "",
                "within": _within(value, target),
            }
            for name, value, target in found.rows()
            if math.isfinite(value)
        ]
        return {"from": first, "to": end, "figures": figures, "top": [{"name": n, "count": k} for n, k in found.top]}

    async def labels(self, request: Request) -> list[dict[str, Any]]:
        return await run_in_threadpool(self.store.labels)

    async def label_lines(self, request: Request) -> Response:
        lines = "".join(f"{json.dumps(each)}\n" for each in await run_in_threadpool(self.store.labels))
        return Response(lines, media_type="application/x-ndjson")

    async def audit(self, request: Request) -> list[dict[str, Any]]:
        return await run_in_threadpool(self.store.audit)

    async def events(self, request: Request) -> Any:
        return self.hub

    async def openapi(self, request: Request) -> dict[str, Any]:
        return describe()

    # Commands.

    async def act(self, request: Request) -> dict[str, Any]:
        action, body = request.path_params["action"], await _json_body(request)
        if action not in (*OPERATOR_ACTIONS, *ENGINEER_ACTIONS):
            raise HttpError(404, f"There is no action {action!r:.40}.")
        if action in ENGINEER_ACTIONS and request.scope["role"] != "engineer":
            raise HttpError(403, f"Only an engineer may do this ({action}).")
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
            raise HttpError(400, "pattern and hours are needed.")
        who = _who(request, body)
        return await asyncio.wrap_future(self.service.silence(pattern, who, hours, _text(body, "reason", 200)))

    async def withdraw(self, request: Request) -> dict[str, Any]:
        body = await _json_body(request)
        _refuse_others(body, ("name",))
        await asyncio.wrap_future(self.service.withdraw_label(request.path_params["label"], _who(request, body)))
        return {"withdrawn": request.path_params["label"]}

    def _asset(self, request: Request) -> Any:
        name = request.path_params["asset"]
        if name not in self.service.assets:
            raise HttpError(404, f"There is no asset {name!r:.80}.")
        return self.service.assets[name]


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
    Endpoint("GET", "/api/v1/alarms/{alarm}", "viewer", "One alarm with its history and labels.", Api.alarm),
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
    Endpoint("POST", "/api/v1/labels/{label}/withdraw", "engineer", "Take back a label.", Api.withdraw, (),
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
    Endpoint("GET", "/api/v1/assets/{asset:path}", "viewer", "One asset: columns, model, counts.", Api.asset),
)  # fmt: skip


def describe() -> dict[str, Any]:
    """Return the OpenAPI description of all endpoints."""
    paths: dict[str, dict[str, Any]] = {}
    for each in ENDPOINTS:
        names = re.findall(r"\{(\w+)", each.path)
        given = [{"name": n, "in": "path", "required": True, "schema": {"type": "string"}} for n in names]
        given += [
            {"name": p.name, "in": "query", "description": p.text, "schema": {"type": p.kind}} for p in each.parameters
        ]
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
            headers = {
                "Penstock-Client": "name of the sender",
                "Penstock-Sequence": "number of this request, from any on",
            }
            entry["parameters"] += [
                {"name": n, "in": "header", "description": text, "schema": {"type": "string"}}
                for n, text in headers.items()
            ]
        elif each.body is not None:
            fields = {name: {"description": text} for name, text in each.body.items()}
            entry["requestBody"] = {
                "content": {"application/json": {"schema": {"type": "object", "properties": fields}}}
            }
        paths.setdefault(re.sub(r":path\}", "}", each.path), {})[each.method.lower()] = entry
    return {
        "openapi": "3.1.0",
        "info": {"title": "penstock serve", "version": penstock.__version__},
        "paths": paths,
        "components": {"securitySchemes": {"token": {"type": "http", "scheme": "bearer"}}},
    }


def verdict_records(service: Service, asset: str, after: int = 0, limit: int | None = None) -> list[dict[str, Any]]:
    """Return the verdicts on an asset after a row, in the form of `penstock watch`."""
    record, names = service.store.asset(asset), service.assets[asset].scorer.variable_names
    found: list[dict[str, Any]] = []
    for block in service.store.verdicts(record.id, after=after):
        scores = block.scores
        plain = zip(_plain(scores.scores), _plain(scores.thresholds), scores.flags.tolist(), strict=True)
        for place, (score, threshold, flag) in enumerate(plain):
            if block.first + place <= after:
                continue
            pairs = zip(scores.variables[place].tolist(), _plain(scores.residuals[place]), strict=True)
            verdict: dict[str, Any] = {"row": block.first + place}
            if block.times is not None:
                verdict["time"] = block.times[place]
            verdict |= {"score": score, "threshold": threshold, "flag": flag}
            verdict["variables"] = {names[number]: residual for number, residual in pairs if number >= 0}
            found.append(verdict | ({"reason": block.reasons[place]} if place in block.reasons else {}))
            if limit is not None and len(found) >= limit:
                return found
    return found


def export_frame(service: Service, asset: str, after: int = 0, limit: int = 100_000) -> pd.DataFrame:
    """Return verdicts and readings of an asset as a table; readings are missing where they are not kept any more."""
    record = service.store.asset(asset)
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
        })  # fmt: skip
        columns = list(record.columns or ())
        values = readings.get(block.first, np.full((n, len(columns)), np.nan))
        named = [f"{name} (reading)" if name in part.columns else name for name in columns]
        parts.append(pd.concat([part, pd.DataFrame(values, columns=named)], axis=1))
        if sum(map(len, parts)) >= limit + (after - parts[0]["row"].iloc[0] + 1 if after else 0):
            break
    whole = pd.concat(parts, ignore_index=True) if parts else pd.DataFrame(columns=["row", "time", "score"])
    return whole[whole["row"] > after].head(limit)


def _with_words(alarm: dict[str, Any]) -> dict[str, Any]:
    known = Alarm.from_dict(alarm)
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


def _within(value: float, target: str) -> bool:
    """Return whether a measure is within its target, as `AlarmLoad.rows` writes it."""
    numbers = re.findall(r"\d+", target)
    return not numbers or (value < float(numbers[-1]) if target.startswith("under") else value <= float(numbers[-1]))


def _number(query: Mapping[str, str], name: str, default: float) -> float:
    try:
        value = float(query.get(name, default))
    except ValueError:
        value = math.nan
    if not 0 <= value < 1e12:
        raise HttpError(400, f"{name} must be a number ≥ 0.")
    return value


async def _json_body(request: Request) -> dict[str, Any]:
    if request.headers.get("content-type", "").partition(";")[0].strip().lower() != "application/json":
        raise HttpError(415, "The content type must be application/json.")
    try:
        body = json.loads(await request.body() or b"{}")
    except (ValueError, RecursionError):
        raise HttpError(400, "The body is not JSON.") from None
    if not isinstance(body, dict):
        raise HttpError(400, "The body must be a JSON object.")
    return body


def _refuse_others(body: Mapping[str, Any], known: Sequence[str]) -> None:
    other = next((name for name in body if name not in known), None)
    if other is not None:
        raise HttpError(400, f"{other!r:.40} is not known here; {', '.join(known)} are.")


def _text(body: Mapping[str, Any], name: str, most: int) -> str:
    value = body.get(name) or ""
    if not isinstance(value, str) or len(value) > most:
        raise HttpError(400, f"{name} must be a text of at most {most} characters.")
    return value.strip()


def _hours(body: Mapping[str, Any]) -> float | None:
    value = body.get("hours")
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value <= 24 * 366:
        raise HttpError(400, "hours must be a number above 0 and at most a year.")
    return float(value)


def _who(request: Request, body: Mapping[str, Any]) -> str:
    """Return who acts: the name of the token, or on loopback without tokens the name that is given."""
    user: str = request.scope["user"]
    return user or _text(body, "name", 80) or "local"


class _Families:
    """Measures as Prometheus' library collects them."""

    def __init__(self, families: list[Any]) -> None:
        self._families = families

    def collect(self) -> list[Any]:
        return self._families


class Hub:
    """Send the same events to all pages that listen: what was committed is collected, and sent ten times a second."""

    def __init__(self) -> None:
        self._queues: set[asyncio.Queue[bytes | None]] = set()
        self._pending: dict[str, Any] = {}
        self._loop: asyncio.AbstractEventLoop | None = None
        self._lock = threading.Lock()

    @property
    def count(self) -> int:
        """How many pages listen."""
        return len(self._queues)

    def publish(self, news: dict[str, Any]) -> None:
        """Take what a commit has changed, from any thread."""
        with self._lock:
            pending = self._pending or {"assets": {}, "changes": []}
            pending["commit"] = news["commit"]
            pending["assets"] |= {
                name: [each["row"], each["time"], each["score"], each["threshold"]]
                for name, each in news["assets"].items()
            }
            pending["changes"] += news["changes"]
            self._pending = pending

    async def run(self) -> None:
        """Send until cancelled."""
        silent = 0.0
        while True:
            await asyncio.sleep(_TICK)
            with self._lock:
                pending, self._pending = self._pending, {}
            silent += _TICK
            if pending:
                if len(pending["changes"]) > _MOST_CHANGES:
                    pending |= {"changes": [], "reload": True}
                self._send(f"id: {pending['commit']}\nevent: news\ndata: {json.dumps(pending)}\n\n".encode())
            elif silent >= _HEARTBEAT:
                self._send(b": still here\n\n")
            else:
                continue
            silent = 0.0

    def close(self) -> None:
        """End all connections."""
        for queue in list(self._queues):
            self._queues.discard(queue)
            with suppress(asyncio.QueueFull):
                queue.put_nowait(None)

    def _send(self, data: bytes) -> None:
        for queue in list(self._queues):
            try:
                queue.put_nowait(data)
            except asyncio.QueueFull:  # it does not read: it may come again
                self._queues.discard(queue)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request with events."""
        if len(self._queues) >= _MOST_LISTENERS:
            await JSONResponse({"error": "Too many pages listen."}, 503)(scope, receive, send)
            return
        queue: asyncio.Queue[bytes | None] = asyncio.Queue(100)
        self._queues.add(queue)
        gone = asyncio.ensure_future(_wait_for_end(receive))
        try:
            headers = [(b"content-type", b"text/event-stream"), (b"x-accel-buffering", b"no")]
            await send({"type": "http.response.start", "status": 200, "headers": headers})
            await send({"type": "http.response.body", "body": b"event: hello\ndata: {}\n\n", "more_body": True})
            gone.add_done_callback(lambda _: queue.put_nowait(None) if not queue.full() else None)
            while queue in self._queues or not queue.empty():
                data = await queue.get()
                if data is None or gone.done():
                    break
                await send({"type": "http.response.body", "body": data, "more_body": True})
            await send({"type": "http.response.body", "body": b""})
        finally:
            self._queues.discard(queue)
            gone.cancel()


async def _wait_for_end(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass


class Guard:
    """Check each request before anything else sees it: host, rate, size, token; and set the headers of answers."""

    def __init__(self, app: ASGIApp, api: Api, options: ServeOptions) -> None:
        self._app, self._api = app, api
        self._most = int(options.max_body * 1e6)
        self._local = is_loopback(options.host)
        self._hosts = {"localhost", "127.0.0.1", "[::1]", options.host.lower()}
        self._buckets: OrderedDict[str, tuple[float, float]] = OrderedDict()
        self._failures: OrderedDict[str, list[float]] = OrderedDict()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return

        async def guarded_send(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in _HEADERS.items():
                    headers[name] = value
            await send(message)

        try:
            self._check(scope)
        except HttpError as error:
            await _error_response(error, scope)(scope, receive, guarded_send)
            return
        await self._app(scope, self._limited(scope, receive), guarded_send)

    def _check(self, scope: Scope) -> None:
        headers, address = Headers(scope=scope), (scope["client"] or ("?", 0))[0]
        self._check_rate(address)
        host = headers.get("host", "").lower()
        if self._local and re.sub(r":\d+$", "", host) not in self._hosts:
            raise HttpError(421, "This name is not one of this service.")
        length = headers.get("content-length")
        if length is not None and (not length.isdigit() or int(length) > self._most):
            raise HttpError(413, f"The body may have {self._most:,} bytes at most.")
        if scope["method"] not in ("GET", "HEAD"):
            origin, site = headers.get("origin"), headers.get("sec-fetch-site", "same-origin")
            if (origin is not None and origin != f"{scope['scheme']}://{host}") or site not in ("same-origin", "none"):
                raise HttpError(403, "Requests from other sites are not accepted.")
        self._authenticate(scope, headers, address)

    def _authenticate(self, scope: Scope, headers: Headers, address: str) -> None:
        """Find out who asks; where there are no tokens, whoever is on this machine may do all."""
        tokens = self._api.tokens()
        if not tokens and self._local:
            scope["user"], scope["role"] = "", "engineer"
            return
        scope["user"], scope["role"] = "", None
        given = headers.get("authorization")
        if given is None:
            return  # what needs a role says so
        now = time.monotonic()
        failed = [at for at in self._failures.get(address, []) if now - at < _FAILURE_SECONDS]
        if len(failed) >= _MOST_FAILURES:
            raise HttpError(429, "Too many wrong tokens. Wait a minute.", **{"retry-after": "60"})
        kind, _, token = given.partition(" ")
        found = find_token(token.strip(), tokens) if kind.lower() == "bearer" else None
        if found is None:
            self._failures[address] = [*failed, now]
            self._failures.move_to_end(address)
            while len(self._failures) > _MOST_ADDRESSES:
                self._failures.popitem(last=False)
            raise HttpError(401, "The token is not valid.", **{"www-authenticate": "Bearer"})
        scope["user"], scope["role"] = found

    def _check_rate(self, address: str) -> None:
        now = time.monotonic()
        left, at = self._buckets.pop(address, (_BURST, now))
        left = min(_BURST, left + (now - at) * _RATE) - 1
        self._buckets[address] = (max(left, -1.0), now)
        while len(self._buckets) > _MOST_ADDRESSES:
            self._buckets.popitem(last=False)
        if left < 0:
            raise HttpError(429, "Too many requests.", **{"retry-after": "1"})

    def _limited(self, scope: Scope, receive: Receive) -> Receive:
        """Return a `receive` that ends with an error for a body that is too long or takes too long."""
        read, end = 0, time.monotonic() + _BODY_SECONDS
        reading = scope["method"] not in ("GET", "HEAD")

        async def limited() -> Message:
            nonlocal read, reading
            if not reading:
                return await receive()
            try:
                async with asyncio.timeout(max(0.0, end - time.monotonic())):
                    message = await receive()
            except TimeoutError:
                raise HttpError(408, "The body did not come in time.") from None
            read += len(message.get("body", b""))
            reading = message.get("more_body", False)
            if read > self._most:
                raise HttpError(413, f"The body may have {self._most:,} bytes at most.")
            return message

        return limited


def _error_response(error: Exception, scope: Scope) -> Response:
    """Return the answer to an error; what is not expected is logged, and nothing of it is shown."""
    status, text, headers = 500, "The service could not do this; see its log.", dict[str, str]()
    if isinstance(error, HttpError):
        status, text, headers = error.status, str(error), dict(error.headers)
    elif isinstance(error, RefusedError):
        status, text = error.status, str(error)
        headers = {"retry-after": "1"} if status in (503, 507) else {}
    elif isinstance(error, AlarmError):
        status, text = 409, str(error)
    elif isinstance(error, LookupError):
        status, text = 404, str(error).strip("'\"")
    elif isinstance(error, ClientDisconnect):
        status, text = 400, "The client has gone."
    else:
        log.error("A request failed: %s %s", scope["method"], scope["path"], exc_info=error)
    if status in (401, 408, 413, 429):
        headers["connection"] = "close"  # what it still sends is not read
    return JSONResponse({"error": text}, status, headers)


def create_app(api: Api, options: ServeOptions) -> ASGIApp:
    """Return the web application on a service."""

    def endpoint(each: Endpoint) -> Callable[[Request], Awaitable[Any]]:
        async def run(request: Request) -> Any:
            try:
                answer = await checked(request)
            except Exception as error:
                return _error_response(error, request.scope)
            return answer if callable(answer) else JSONResponse(answer)

        async def checked(request: Request) -> Any:
            role = request.scope["role"]
            if each.role is not None and role not in _MAY[each.role]:
                if role is None:
                    raise HttpError(401, "A token is needed.", **{"www-authenticate": "Bearer"})
                raise HttpError(403, f"This needs the role {each.role}; the token has the role {role}.")
            if each.method == "POST" and isinstance(each.body, Mapping) and COMMAND_HEADER not in request.headers:
                raise HttpError(403, "A command needs the header Penstock-Command: 1.")
            return await each.run(api, request)

        return run

    async def page(request: Request) -> Response:
        name, kind = _PAGE[request.url.path]
        return Response(await run_in_threadpool(_template, name), media_type=kind)

    async def missing(request: Request, error: Exception) -> Response:
        return JSONResponse({"error": "There is nothing here."}, getattr(error, "status_code", 404))

    @asynccontextmanager
    async def lifespan(_: Starlette) -> AsyncIterator[None]:
        api.service.listeners.append(api.hub.publish)
        sending = asyncio.create_task(api.hub.run())
        yield
        sending.cancel()
        api.service.listeners.remove(api.hub.publish)

    routes = [Route(each.path, endpoint(each), methods=[each.method]) for each in ENDPOINTS]
    routes += [Route(path, page) for path in _PAGE]
    inner = Starlette(routes=routes, lifespan=lifespan, exception_handlers={404: missing, 405: missing})
    inner.router.redirect_slashes = False
    return Guard(inner, api, options)


def _template(name: str) -> bytes:
    return (resources.files("penstock") / name).read_bytes()


def is_loopback(host: str) -> bool:
    """Return whether an address is this machine alone.

    >>> is_loopback("127.0.0.1"), is_loopback("localhost"), is_loopback("0.0.0.0")
    (True, True, False)
    """
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


class _Protocol(H11Protocol):
    """HTTP, with a limit to the time that a request may take to arrive."""

    _deadline: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._await_request()

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        self._await_request()

    def connection_lost(self, exc: Exception | None) -> None:
        super().connection_lost(exc)
        if self._deadline is not None:
            self._deadline.cancel()

    def _await_request(self) -> None:
        """Start the clock when a request begins to arrive, and stop it when its headers are there."""
        if self.cycle is not None and not self.cycle.response_complete:
            if self._deadline is not None:
                self._deadline.cancel()
            self._deadline = None
        elif self._deadline is None:
            self._deadline = self.loop.call_later(_HEADER_SECONDS, self.transport.abort)


class _WebServer(uvicorn.Server):
    """Uvicorn, which ends the events before it waits for requests to end."""

    hub: Hub

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        self.hub.close()
        await super().shutdown(sockets)


class LiveServer:
    """A service with its web server.

    Parameters
    ----------
    options : ServeOptions

    Examples
    --------
    >>> import tempfile, urllib.request
    >>> from pathlib import Path
    >>> from penstock.live.options import AssetOptions
    >>> folder = Path(tempfile.mkdtemp())
    >>> options = ServeOptions(store=folder / "live.db", port=0, assets={"unit1": AssetOptions()})
    >>> with LiveServer(options) as server:
    ...     urllib.request.urlopen(server.url + "healthz").status
    200
    """

    def __init__(self, options: ServeOptions) -> None:
        options.check()
        self.options = options
        targets = make_targets(options)
        self._socket = _bound(options)
        try:
            self.service = Service(options, tuple(targets))
        except BaseException:
            self._socket.close()
            raise
        self.outbox = Outbox(self.service, targets)
        self.inputs: list[Input] = []
        self.api = Api(self.service)
        try:
            self.inputs = make_inputs(self.service)
        except BaseException:
            self._close()
            raise
        local = is_loopback(options.host)
        if not local and not self.service.store.tokens():
            self._close()
            raise StoreError(
                f"To listen at {options.host}, which other machines may reach, there must be a token: "
                f"penstock serve --store {options.store} --add-token NAME:ROLE"
            )
        host = f"[{options.host}]" if ":" in options.host else options.host
        scheme = "http" if options.tls_certificate is None else "https"
        self.url = f"{scheme}://{host}:{self._socket.getsockname()[1]}/"
        for name in ("uvicorn.error", "asyncio"):  # it would log each malformed request
            logging.getLogger(name).setLevel(logging.CRITICAL)
        self._server = _WebServer(
            uvicorn.Config(
                create_app(self.api, options),
                http=_Protocol,
                ws="none",
                log_config=None,
                access_log=False,
                server_header=False,
                date_header=False,
                proxy_headers=False,
                limit_concurrency=1000,
                h11_max_incomplete_event_size=32_768,
                timeout_keep_alive=30,
                timeout_graceful_shutdown=2,
                ssl_certfile=None if options.tls_certificate is None else str(options.tls_certificate),
                ssl_keyfile=None if options.tls_key is None else str(options.tls_key),
            )
        )
        self._server.hub = self.api.hub
        self._thread: threading.Thread | None = None

    def run(self) -> None:
        """Serve until a signal ends it."""
        self._start()
        try:
            self._server.run([self._socket])
        finally:
            self._close()

    def _start(self) -> None:
        self.service.start()
        self.outbox.start()
        for each in self.inputs:
            each.start()

    def __enter__(self) -> LiveServer:
        self._start()
        self._thread = threading.Thread(target=self._server.run, args=([self._socket],), daemon=True)
        self._thread.start()
        while not self._server.started:
            if not self._thread.is_alive():
                self._close()
                raise RuntimeError("The web server did not start; see the log.")
            time.sleep(0.005)
        return self

    def __exit__(self, *_: object) -> None:
        self._server.should_exit = True
        assert self._thread is not None
        self._thread.join()
        self._close()

    def _close(self) -> None:
        for each in self.inputs:
            each.stop()
        self.outbox.stop()
        self.service.stop()
        self._socket.close()


def _bound(options: ServeOptions) -> socket.socket:
    """Return a socket that is bound to the address; StoreError if that is not possible."""
    family = socket.AF_INET6 if ":" in options.host else socket.AF_INET
    bound = socket.socket(family, socket.SOCK_STREAM)
    bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        bound.bind((options.host, options.port))
        bound.listen(1024)
    except OSError as error:
        bound.close()
        raise StoreError(
            f"Cannot listen at {options.host}, port {options.port}: {error.strerror}. Choose another --port (0: any)."
        ) from None
    return bound
