"""The API of `penstock serve`: what each endpoint does, in one table.

`ENDPOINTS` has the routes, the roles and what is written in the OpenAPI description. What waits for the service is a
coroutine; what reads the store is a plain function, which is run in a thread.
"""

from __future__ import annotations

import asyncio
import datetime as dt
import hashlib
import json
import math
import re
import time
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from functools import cache, partial
from itertools import chain
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import JSONResponse, Response, StreamingResponse

import penstock
from penstock._messages import odd_character
from penstock.explain import NORMAL, REASONS, find_known, labels_of, likeness
from penstock.io import Batch, TableError, as_zone, need_pyarrow, parquet_pieces
from penstock.io.sinks import format_verdicts
from penstock.live.alarm_load import alarm_load
from penstock.live.alarm_records import Alarm, Change, RefusedError, alarm_in_words
from penstock.live.assets import Asset, known_labels
from penstock.live.connectors import as_lines
from penstock.live.nearest import nearest_normal
from penstock.live.runtime import Delivery
from penstock.live.service import ENGINEER_ACTIONS, OPERATOR_ACTIONS, Service
from penstock.live.store import ModelVersion, ScoredBlock
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
_MOST_ROWS = 200_000  # of verdicts that are in memory at once
_STAMP = "%Y-%m-%dT%H:%M:%S.%f+00:00"  # the same in all pieces of an export
_PIECE_ITEMS = 200  # of a list in an answer that are written at once
_PIECE_ROWS = 2_000  # of an export that are made at once
_SHORT_BODY = 100_000  # bytes that are read without a thread of their own
_LONGEST_COMMAND = 20_000  # bytes
_MOST_CHANGES = 1_000  # of an alarm that are shown, the last ones
_PLAIN_TEXT = r"^[^\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f]*$"  # of the description; what cannot be shown is refused
_LAST_DAY = 29_585  # the end of 2050, in days since 1970
_COUNTS = {
    "samples": "Rows that were scored.",
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
    """A parameter of the query, or a field of a JSON body: its type is that of JSON.

    default : its value where it is absent; a text of the query is compared with `choices`, if there are any.
    least, most : bounds of a number, most characters of a text, most values of an array of texts.
    needed : whether a body must have it.
    """

    name: str
    kind: str
    text: str
    default: Any = None
    least: float = 0
    most: float = 1000
    choices: tuple[str, ...] = ()
    needed: bool = False

    def schema(self) -> dict[str, Any]:
        """Return how the OpenAPI description says what it may be."""
        bounds: dict[str, Any] = {}
        if self.kind in ("integer", "number"):
            bounds = {"minimum": self.least, "maximum": self.most}
        elif self.kind == "string":
            free = {"maxLength": self.most, "minLength": int(self.needed), "pattern": _PLAIN_TEXT}
            bounds = {"enum": list(self.choices)} if self.choices else free
        elif self.kind == "array":
            bounds = {"items": {"type": "string"}, "maxItems": self.most}
        return {"type": self.kind, **bounds, "description": self.text}

    def in_query(self, texts: Sequence[str]) -> Any:
        """Return its value in a query, where it has these texts; a `RefusedError` if it cannot be."""
        if self.kind == "array":
            return self.checked([text for text in texts if text])
        if not texts:
            return self.default
        value: Any = texts[-1]
        if self.kind == "boolean":
            value = {"1": True, "true": True, "0": False, "false": False}.get(value)
        elif self.kind != "string":
            try:
                value = float(value)
            except ValueError:
                value = math.nan
        return self.checked(value)

    def checked(self, value: Any) -> Any:
        """Return a value; a `RefusedError` if it cannot be."""
        if self.kind in ("integer", "number"):
            if self.kind == "integer" and isinstance(value, float) and value.is_integer():
                value = int(value)  # 1.0 is a whole number in JSON
            kinds = int if self.kind == "integer" else int | float
            if isinstance(value, bool) or not isinstance(value, kinds) or not self.least <= value <= self.most:
                whole = "whole " if self.kind == "integer" else ""
                raise RefusedError(f"{self.name} must be a {whole}number from {self.least:g} to {self.most:g}.")
        elif self.kind == "boolean":
            if type(value) is not bool:
                raise RefusedError(f"{self.name} must be true or false.")
        elif self.kind == "array":
            if len(value) > self.most:
                raise RefusedError(f"{self.name} may come {self.most:g} times at most.")
        else:
            if not isinstance(value, str) or len(value) > self.most:
                raise RefusedError(f"{self.name} must be a text of at most {self.most:g} characters.")
            odd = odd_character(value)
            if odd is not None:
                raise RefusedError(f"{self.name} holds {odd}, which is no character of a text.")
            if self.choices and value not in self.choices:
                raise RefusedError(f"{self.name} must be {' or '.join(self.choices)}.")
        return value


@dataclass(frozen=True)
class Endpoint:
    """One method of one path of the API.

    role : who may use it; None: anybody.
    parameters : of the query.
    body : the fields of a JSON body; types of content: another body.
    is_long : whether it may have much to read or to answer; few such are worked on at once.
    """

    method: str
    path: str
    role: str | None
    summary: str
    run: Callable[[Api, Request], Any]
    parameters: tuple[Parameter, ...] = ()
    body: tuple[Parameter, ...] | tuple[str, ...] = ()
    is_long: bool = False

    @property
    def fields(self) -> tuple[Parameter, ...]:
        """The fields of a JSON body, which is then a command."""
        return tuple(each for each in self.body if isinstance(each, Parameter))

    async def given(self, request: Request) -> dict[str, Any]:
        """Return what a request gives for each parameter and field; a `RefusedError` for what cannot be."""
        query = {each.name: each.in_query(request.query_params.getlist(each.name)) for each in self.parameters}
        return query if not self.fields else {**query, **_read_fields(await _json_body(request), self.fields)}


class PlainJson(JSONResponse):
    """An answer in ASCII: it can be written whatever a text holds."""

    def render(self, content: Any) -> bytes:
        """Return the content as bytes; ValueError for a number that JSON does not have."""
        return "".join(_json_pieces(content)).encode()


_plain_json = json.JSONEncoder(allow_nan=False, separators=(",", ":")).encode


def _json_pieces(content: Any) -> Iterator[str]:
    """Yield JSON piece by piece: no other thread works while the encoder does.

    >>> "".join(_json_pieces({"rows": [1, 2], "none": {}}))
    '{"rows":[1,2],"none":{}}'
    """
    if isinstance(content, dict):
        for number, (name, value) in enumerate(content.items()):
            yield f"{',' if number else '{'}{_plain_json(name)}:"
            yield from _json_pieces(value)
        yield "}" if content else "{}"
    elif isinstance(content, list) and len(content) > _PIECE_ITEMS:
        for start in range(0, len(content), _PIECE_ITEMS):
            yield f"{',' if start else '['}{_plain_json(content[start : start + _PIECE_ITEMS])[1:-1]}"
        yield "]"
    else:
        yield _plain_json(content)


class Api:
    """What the endpoints do, on a service."""

    def __init__(self, service: Service, hub: Hub) -> None:
        self.service, self.store, self.hub = service, service.store, hub
        self._learning = ThreadPoolExecutor(1)  # layouts, which takes a while with thousands of columns
        self._converting = ThreadPoolExecutor(1)  # one: objects take thirty times the memory of their text
        self.few = asyncio.Semaphore(2)  # long answers at once: threads that work take turns with the one that scores
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
        size = request.headers.get("content-length")
        most = round(1e6 * self.service.options.max_body)
        claim = self.service.claim(asset.record.name, most if size is None else int(size))
        try:
            lines = await self._lines(request, kind, asset)
            delivery = Delivery(asset.record.name, lines, f"http {client or ''}".strip(), position)
            deliver = partial(self.service.deliver, delivery, claim)
            if asset.knows_layout(lines):
                taken = deliver()
            else:
                taken = await asyncio.get_running_loop().run_in_executor(self._learning, deliver)
        except BaseException:
            claim.release()
            raise
        answer: dict[str, Any] = await asyncio.wrap_future(taken)
        if not answer["accepted"] and answer.get("malformed"):
            raise RefusedError(f"No row could be read: {answer['faults'][0]['reason']}.", 422)
        return answer

    async def _lines(self, request: Request, kind: str, asset: Asset) -> bytes:
        """Return the rows of a body as lines."""
        body = await request.body()
        convert = partial(as_lines, body, kind, asset.record.columns or asset.scorer.variable_names)
        if len(body) <= _SHORT_BODY or kind == "lines":
            return convert()
        return await asyncio.get_running_loop().run_in_executor(self._converting, convert)

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
            **{
                name: getattr(service, name)
                for name in ("started", "commits", "last_commit", "waiting", "waiting_bytes")
            },
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
            state["has_file"] = self.service.options.assets[state["asset"]].input is not None
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
        asset, given = self._asset(request), request.scope["given"]
        points, after, names = given["points"], given["after"], given["sensor"]
        record = asset.record
        known = {name for each in self._versions(record.name).values() for name in each.columns or ()}
        unknown = [name for name in names if name not in known]
        if unknown:
            raise RefusedError(f"There is no sensor {unknown[0]!r:.80}.", 404)
        since = -math.inf if record.newest is None else record.newest - 3600 * given["hours"]
        none = np.empty(0, np.intp)
        thinned: list[Any] = [none, *np.empty((3, 0)), np.empty(0, np.bool_), none]
        parts, waiting = list[Any](), 0
        share = 1 + self.store.count_rows(record.id, after=after, since=since) // _MOST_ROWS
        for block in self.store.rows(record.id, after=after, since=since):
            numbers, scores = np.arange(block.first, block.first + len(block.seconds)), block.scores
            versions = np.full(len(numbers), block.version)
            parts.append((numbers, block.seconds, scores.scores, scores.thresholds, scores.flags, versions))
            waiting += len(numbers)
            if waiting >= _MOST_ROWS:
                thinned, parts, waiting = _thinned(thinned, parts, share), [], 0
        rows, seconds, found, thresholds, flags, versions = _thinned(thinned, parts, share)
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
        for block in self.store.rows(asset.record.id, after=rows[0] - 1, with_readings=True) if rows else ():
            if block.first > rows[-1]:
                break
            if block.values is None:
                continue
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
        given = request.scope["given"]
        return verdict_records(self.service, self._asset(request).record.name, given["after"], given["limit"])

    def export(self, request: Request) -> Response:
        asset, given = self._asset(request), request.scope["given"]
        kind = given["format"]
        name = re.sub(r"[^A-Za-z0-9._-]", "_", asset.record.name)
        headers = {"content-disposition": f'attachment; filename="{name}.{kind}"'}
        frames = export_frames(self.service, asset.record.name, given["after"], given["limit"])
        if kind == "csv":
            dated = (frame.assign(time=frame["time"].dt.strftime(_STAMP)) for frame in frames)
            pieces = (as_csv(frame, header=not number).encode() for number, frame in enumerate(dated))
            return StreamingResponse(self._sent(pieces), media_type="text/csv", headers=headers)
        try:
            need_pyarrow("Parquet")
        except TableError as error:
            raise RefusedError(str(error), 501) from None
        media_type = "application/vnd.apache.parquet"
        return StreamingResponse(self._sent(parquet_pieces(frames)), media_type=media_type, headers=headers)

    async def _sent(self, pieces: Iterator[bytes]) -> AsyncIterator[bytes]:
        """Yield pieces, each made in a thread when the one before was sent."""
        while True:
            async with self.few:
                piece = await run_in_threadpool(next, pieces, None)
            if piece is None:
                return
            yield piece

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
        given = request.scope["given"]
        found = self.store.alarms(only_open=given["open"], asset=given["asset"], limit=given["limit"])
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
        normal = None if asset is None else nearest_normal(self.store, asset, Alarm.from_dict(alarm))
        more: dict[str, Any] = {
            "history": self.store.changes(identity, most=_MOST_CHANGES),
            "labels": mine,
            "looks_like": known,
            "nearest_normal": normal,
        }
        more["model"] = None if asset is None else self._version_at(asset, alarm["since"])
        return {**_with_words(alarm), **more}

    def _version_at(self, asset: Asset, second: float) -> int | None:
        """Return the version of the model that scored the row at this time; None if verdicts are not kept any more."""
        found = (block.version for block in self.store.rows(asset.record.id, since=second))
        return next(found, None)

    def load(self, request: Request) -> dict[str, Any]:
        given = request.scope["given"]
        return self._load(given["days"], given["operators"])

    def _load(self, days: float, operators: int) -> dict[str, Any]:
        times = [asset.record.newest for asset in self.service.assets.values() if asset.record.newest is not None]
        end = max(times, default=time.time())
        changes = list(map(_slim_change, self.store.each_change(end - 86400 * days)))
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

    async def events(self, request: Request) -> Response:
        return self.hub.answer()

    async def openapi(self, request: Request) -> dict[str, Any]:
        return describe()

    # Commands.

    async def act(self, request: Request) -> dict[str, Any]:
        action, given = request.path_params["action"], request.scope["given"]
        if action not in (*OPERATOR_ACTIONS, *ENGINEER_ACTIONS):
            raise RefusedError(f"There is no action {action!r:.40}.", 404)
        if action in ENGINEER_ACTIONS and request.scope["role"] != "engineer":
            raise RefusedError(f"Only an engineer may do this ({action}).", 403)
        said = {name: given[name] for name in ("reason", "comment", "hours")}
        return await asyncio.wrap_future(
            self.service.act(action, request.path_params["alarm"], _who(request), request=_command(request), **said)
        )

    async def silence(self, request: Request) -> list[dict[str, Any]]:
        given = request.scope["given"]
        silenced = self.service.silence(
            given["pattern"], _who(request), given["hours"], given["reason"], request=_command(request)
        )
        return await asyncio.wrap_future(silenced)

    def silences(self, request: Request) -> list[dict[str, Any]]:
        return self.service.silences()

    async def end_silence(self, request: Request) -> dict[str, Any]:
        await asyncio.wrap_future(
            self.service.end_silence(request.path_params["silence"], _who(request), request=_command(request))
        )
        return {"ended": request.path_params["silence"]}

    async def read_anew(self, request: Request) -> dict[str, Any]:
        asset = self._asset(request)
        return await asyncio.wrap_future(
            self.service.read_anew(asset.record.name, _who(request), request=_command(request))
        )

    async def withdraw(self, request: Request) -> dict[str, Any]:
        await asyncio.wrap_future(
            self.service.withdraw_label(request.path_params["label"], _who(request), request=_command(request))
        )
        return {"withdrawn": request.path_params["label"]}

    async def use_model(self, request: Request) -> dict[str, Any]:
        asset, given = self._asset(request), request.scope["given"]
        version, other = given["version"], given["other_columns"]
        await run_in_threadpool(self.service.read_model, asset.record.name, version)
        switched = self.service.use_model(
            asset.record.name, version, _who(request), other_columns=other, request=_command(request)
        )
        return await asyncio.wrap_future(switched)

    def _asset(self, request: Request) -> Asset:
        return self.service.asset(request.path_params["asset"])


_HOURS = "for so long, in the data's time"
_NAME = Parameter("name", "string", "who does it, where there are no tokens", "", most=80)
_REASON = Parameter("reason", "string", "why, in a word", "", most=200)
_COMMENT = Parameter("comment", "string", "anything else", "", most=2000)
_SHELVED = Parameter("hours", "number", f"{_HOURS}; absent: until the alarm has ended", least=0.001, most=8784)
_AFTER = Parameter("after", "integer", "rows after this number; 0", 0, most=1e12)
ENDPOINTS = (
    Endpoint("GET", "/healthz", None, "Whether rows are accepted (200) or not (503).", Api.health),
    Endpoint("GET", "/openapi.json", None, "This description.", Api.openapi),
    Endpoint("GET", "/metrics", "viewer", "Measures for Prometheus.", Api.metrics, is_long=True),
    Endpoint("GET", "/api/v1/status", "viewer", "The service itself: commits, what waits, problems.", Api.status),
    Endpoint("GET", "/api/v1/events", "viewer", "Server-sent events: what each commit has changed.", Api.events),
    Endpoint("GET", "/api/v1/assets", "viewer", "All assets with the newest verdict and open alarms.", Api.assets),
    Endpoint("GET", "/api/v1/alarms", "viewer", "Alarms, the newest first.", Api.alarms, (
        Parameter("open", "boolean", "only those that are not closed", False),
        Parameter("asset", "string", "only of this asset"),
        Parameter("limit", "integer", "at most so many; 500", 500, most=5000),
    ), is_long=True),
    Endpoint("GET", "/api/v1/alarms/{alarm}", "viewer", "One alarm, with the nearest normal situation.", Api.alarm,
        is_long=True),
    Endpoint("POST", "/api/v1/alarms/{alarm}/{action}", "operator",
        f"Work on an alarm: {', '.join(OPERATOR_ACTIONS)}; engineers also {', '.join(ENGINEER_ACTIONS)}.",
        Api.act, (), (_REASON, _COMMENT, _SHELVED, _NAME)),
    Endpoint("POST", "/api/v1/silences", "operator", "Send no notifications of some assets for some hours.",
        Api.silence, (), (
        Parameter("pattern", "string", "of asset names, * for any text", most=100, needed=True),
        Parameter("hours", "number", _HOURS, least=0.001, most=8784, needed=True), _REASON, _NAME,
    )),
    Endpoint("GET", "/api/v1/silences", "viewer", "Silences that have not ended.", Api.silences),
    Endpoint("POST", "/api/v1/silences/{silence}/end", "operator", "End a silence before its time.",
        Api.end_silence, (), (_NAME,)),
    Endpoint("GET", "/api/v1/load", "viewer", "How much alarms ask of operators, against usual targets.", Api.load, (
        Parameter("days", "number", "of the data's time; 30", 30.0, most=1e6),
        Parameter("operators", "integer", "who share the load; 1", 1, least=1, most=10_000),
    ), is_long=True),
    Endpoint("GET", "/api/v1/labels", "viewer", "What people said of alarms; labels taken back too.", Api.labels),
    Endpoint("GET", "/api/v1/labels.jsonl", "viewer", "The same as a file for penstock refit.", Api.label_lines),
    Endpoint("POST", "/api/v1/labels/{label}/withdraw", "operator", "Take back a label.", Api.withdraw, (), (_NAME,)),
    Endpoint("GET", "/api/v1/audit", "viewer", "Who did what, the newest first.", Api.audit),
    Endpoint("POST", "/api/v1/assets/{asset:path}/samples", "source",
        "Bring rows; answered when they are scored and on the disk.", Api.add_samples, (), tuple(_KINDS)),
    Endpoint("GET", "/api/v1/assets/{asset:path}/series", "viewer", "Scores and readings of the last hours.",
        Api.series, (
        Parameter("hours", "number", "of the data's time; 8", 8.0, most=1e8),
        Parameter("points", "integer", "at most so many, of each stretch the row with the highest score; 600", 600,
            least=1, most=5000),
        _AFTER,
        Parameter("sensor", "array", "readings of this sensor too; may be repeated", most=50),
    ), is_long=True),
    Endpoint("GET", "/api/v1/assets/{asset:path}/verdicts", "viewer", "All verdicts, row by row.", Api.verdicts, (
        _AFTER, Parameter("limit", "integer", "at most so many; 1000", 1000, least=1, most=100_000),
    ), is_long=True),
    Endpoint("GET", "/api/v1/assets/{asset:path}/export", "viewer", "Verdicts and readings as a file.", Api.export, (
        Parameter("format", "string", "csv or parquet; csv", "csv", choices=("csv", "parquet")), _AFTER,
        Parameter("limit", "integer", "at most so many rows; 100000", 100_000, least=1, most=1_000_000),
    ), is_long=True),
    Endpoint("GET", "/api/v1/assets/{asset:path}/models", "viewer", "All versions of its model.", Api.models),
    Endpoint("POST", "/api/v1/assets/{asset:path}/models/use", "engineer",
        "Score by another version of the model from now on.", Api.use_model, (),
        (Parameter("version", "integer", "which one; absent: the one in use before", least=1, most=1e9),
         Parameter("other_columns", "boolean", "true: a model of other columns is meant", False), _NAME)),
    Endpoint("POST", "/api/v1/assets/{asset:path}/input/anew", "engineer",
        "Read its file from the beginning, with the layout that it has now.", Api.read_anew, (), (_NAME,)),
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
        kinds: dict[str, Any] = {name: {"type": "string"} for name in re.findall(r"\{(\w+)", each.path)}
        kinds |= {"action": {"enum": [*OPERATOR_ACTIONS, *ENGINEER_ACTIONS]}} if "action" in kinds else {}
        given = [{"name": n, "in": "path", "required": True, "schema": kind} for n, kind in kinds.items()]
        given += [{"name": p.name, "in": "query", "schema": p.schema()} for p in each.parameters]
        entry: dict[str, Any] = {
            "summary": each.summary,
            "operationId": each.run.__name__,
            "parameters": given,
            "responses": {"200": {"description": "Done."}, "default": {"description": 'A problem: {"error": "…"}'}},
        }
        if each.role is not None:
            entry["security"] = [{"token": []}]
            entry["description"] = f"For the role {each.role}."
        if each.fields:
            fields = {field.name: field.schema() for field in each.fields}
            schema = {"type": "object", "properties": fields, "additionalProperties": False}
            schema |= {"required": [field.name for field in each.fields if field.needed]}
            entry["requestBody"] = {"required": True, "content": {"application/json": {"schema": schema}}}
            text = "1: other sites cannot send it"
            header = {"name": "Penstock-Command", "in": "header", "required": True, "description": text}
            given.append({**header, "schema": {"const": "1"}})
            text = "an id of this command: sent again, it is answered again and not done again"
            given.append({"name": "Idempotency-Key", "in": "header", "description": text, "schema": {"type": "string"}})
        elif each.body:
            entry["requestBody"] = {"required": True, "content": {str(kind): {} for kind in each.body}}
            texts = {"schema": {"type": "string"}, "in": "header"}
            given += [{"name": name, "description": text, **texts} for name, text in _SEQUENCE_HEADERS.items()]
        paths.setdefault(re.sub(r":path\}", "}", each.path), {})[each.method.lower()] = entry
    return {
        "openapi": "3.1.0",
        "info": {"title": "penstock serve", "version": penstock.__version__},
        "paths": paths,
        "components": {"securitySchemes": {"token": {"type": "http", "scheme": "bearer"}}},
    }


def verdict_records(service: Service, asset: str, after: int = 0, limit: int | None = None) -> list[dict[str, Any]]:
    """Return the verdicts on an asset after a row, in the form of `penstock watch`."""
    record, found = service.store.asset(asset), list[dict[str, Any]]()
    names = {version: [*map(json.dumps, each.names or ())] for version, each in service.store.models(record.id).items()}
    for block in service.store.rows(record.id, after=after):
        mine = names[block.version]
        lines = format_verdicts(block.first, block.times, block.scores, mine, block.reasons).splitlines()
        found += ({**json.loads(line), "model": block.version} for line in lines[max(0, after + 1 - block.first) :])
        if limit is not None and len(found) >= limit:
            break
    return found[:limit]


def export_frames(service: Service, asset: str, after: int = 0, limit: int = 100_000) -> Iterator[pd.DataFrame]:
    """Yield verdicts and readings of an asset as tables with the same columns, one after the other.

    Readings are missing where they are not kept any more, or were none of the version that scored the row.
    """
    store = service.store
    record = store.asset(asset)
    mine = {version: each.columns or () for version, each in store.models(record.id).items()}
    columns = list(dict.fromkeys(name for version in store.versions(record.id, after) for name in mine[version]))
    waiting: list[ScoredBlock] = []
    left = limit
    for block in chain(store.rows(record.id, after=after, with_readings=True), [None]):
        if block is not None:
            waiting.append(block)
        count = sum(len(each.seconds) for each in waiting)
        if block is None and not count and left < limit:  # all is said
            return
        if block is None or count >= min(_PIECE_ROWS, left):
            frame = _export_frame(waiting, mine, columns)
            frame = frame[frame["row"] > after].head(left)
            yield frame
            left -= len(frame)
            waiting = []
            if not left:
                return


def _export_frame(
    blocks: Sequence[ScoredBlock], columns_of: Mapping[int, Sequence[str]], columns: Sequence[str]
) -> pd.DataFrame:
    """Return rows as one table with these columns of readings."""
    values = np.full((sum(len(each.seconds) for each in blocks), len(columns)), np.nan)
    reasons, end = list[str](), 0
    for block in blocks:
        n, there = len(block.seconds), columns_of[block.version]
        if block.values is not None and there:
            values[end : end + n, [columns.index(name) for name in there]] = block.values
        reasons += [block.reasons.get(place, "") for place in range(n)]
        end += n
    seconds, scores, thresholds, flags, rows, versions = (
        np.concatenate([[], *each])
        for each in (
            [block.seconds for block in blocks],
            [block.scores.scores for block in blocks],
            [block.scores.thresholds for block in blocks],
            [block.scores.flags for block in blocks],
            [np.arange(block.first, block.first + len(block.seconds)) for block in blocks],
            [np.full(len(block.seconds), block.version) for block in blocks],
        )
    )
    times = pd.to_datetime((seconds * 1e6).astype(np.int64), unit="us", utc=True)
    part = pd.DataFrame({
        "row": rows.astype(np.int64), "time": times, "score": scores, "threshold": thresholds,
        "flag": flags.astype(np.bool_), "reason": reasons, "model": versions.astype(np.int64),
    })  # fmt: skip
    named = [f"{name} (reading)" if name in part.columns else name for name in columns]
    return pd.concat([part, pd.DataFrame(values, columns=named)], axis=1)


def _slim_change(record: dict[str, Any]) -> Change:
    """Return a change without what is known of sensors, which takes most of its memory."""
    if "alarm" in record:
        record["alarm"] |= {"sensors": [], "pattern": {}}
    return Change.from_dict(record)


def _with_words(alarm: dict[str, Any]) -> dict[str, Any]:
    known = Alarm.from_dict(alarm)
    return {**alarm, "words": alarm_in_words(known), "moved_first": list(known.moved_first)}


def _thinned(before: list[Any], parts: Sequence[Any], share: int) -> list[Any]:
    """Return columns with those of blocks of rows after them: of each so many rows the one with the highest score.

    A period of any length takes a bounded memory. The third column is that of the scores.
    """
    if not parts:
        return before
    columns = [np.concatenate(each) for each in zip(*parts, strict=True)]
    chosen = _highest(np.arange(len(columns[0])), columns[2], 1 + len(columns[0]) // share)
    return [np.concatenate([one, other[chosen]]) for one, other in zip(before, columns, strict=True)]


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


async def _json_body(request: Request) -> dict[str, Any]:
    if request.headers.get("content-type", "").partition(";")[0].strip().lower() != "application/json":
        raise RefusedError("The content type must be application/json.", 415)
    size = request.headers.get("content-length")
    if size is None or int(size) > _LONGEST_COMMAND:
        raise RefusedError(f"A command needs its length, and may have {_LONGEST_COMMAND:,} bytes at most.", 413)
    try:
        body = json.loads(await request.body() or b"{}")
    except (ValueError, RecursionError):
        raise RefusedError("The body is not JSON.") from None
    if not isinstance(body, dict):
        raise RefusedError("The body must be a JSON object.")
    return body


def _read_fields(body: Mapping[str, Any], fields: Sequence[Parameter]) -> dict[str, Any]:
    """Return the value of each field, of texts without blanks that are not needed; null is absent."""
    known = {each.name: each for each in fields}
    other = next((name for name in body if name not in known), None)
    if other is not None:
        raise RefusedError(f"{other!r:.40} is not known here; {', '.join(known)} are.")
    for name, each in known.items():
        if each.needed and not body.get(name):
            raise RefusedError(f"{name} is needed.")
    found = {name: each.default for name, each in known.items()}
    found |= {name: known[name].checked(value) for name, value in body.items() if value is not None}
    return {name: " ".join(value.split()) if isinstance(value, str) else value for name, value in found.items()}


def _command(request: Request) -> tuple[str, str] | None:
    """Return by which id a command is known again, and what it is; None for a client that gives it no id."""
    key = request.headers.get("idempotency-key")
    if key is None:
        return None
    if not re.fullmatch(r"[\w.:-]{8,100}", key):
        raise RefusedError("Idempotency-Key must be 8 to 100 letters, digits, _ . : or -, other ones each time.")
    what = {"path": request.url.path, **request.scope["given"]}
    return f"{_who(request)} {key}", hashlib.sha256(json.dumps(what, sort_keys=True).encode()).hexdigest()


def _who(request: Request) -> str:
    """Return who acts: the name of the token, or on loopback without tokens the name that is given."""
    user: str = request.scope["user"]
    return user or request.scope["given"]["name"] or "local"
