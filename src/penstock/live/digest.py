"""A digest of a day or a week: what was, what is open, what is stale; as data, in words, and as a page to attach.

Its period goes from one digest to the next, by the changes that were written in between, not by a clock: nothing is
told twice or left out, whatever the times of the data are.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from penstock._messages import duration_in_words
from penstock._pages import fill_template
from penstock.io import as_zone
from penstock.live.alarm_load import alarm_load
from penstock.live.alarm_records import STALE_MODEL, Alarm, Change, alarm_in_words

if TYPE_CHECKING:
    from penstock.live.service import Service

_DAY = 86_400.0
_MOST = 200  # alarms that are listed one by one


def last_moment(digest: str, hour: int, zone: dt.tzinfo, now: float) -> float:
    """Return when a digest was due last: at this hour of the zone, of this day or this Monday.

    >>> berlin = as_zone("Europe/Berlin")
    >>> dt.datetime.fromtimestamp(last_moment("weekly", 7, berlin, 1_780_000_000), berlin).isoformat()
    '2026-05-25T07:00:00+02:00'
    """
    local = dt.datetime.fromtimestamp(now, zone)
    back = local.weekday() if digest == "weekly" else 0
    moment = local.replace(hour=hour, minute=0, second=0, microsecond=0, fold=0) - dt.timedelta(days=back)
    if moment.timestamp() > now:
        moment -= dt.timedelta(days=7 if digest == "weekly" else 1)
    return moment.timestamp()


class DigestClock:
    """Put a digest into the outbox when it is due; one that was due while the service did not run comes late."""

    def __init__(self, service: Service) -> None:
        self._service, self._options = service, service.options
        self._zone = as_zone(service.options.zone) or dt.UTC
        self._mark: dict[str, Any] | None = None

    def post_due(self, now: float) -> None:
        """Post a digest if one is due; the first period begins with the first start."""
        if self._options.digest is None:
            return
        mark = self._mark or self._service.store.mark("digest")
        if mark is None:
            mark = {"at": now, "change": self._service.store.changes_after(-1)[0]}
            self._service.post({}, digest=mark).result(30)
        moment = last_moment(self._options.digest, self._options.digest_hour, self._zone, now)
        if mark["at"] > now + _DAY:  # noted by a clock that was wrong
            mark = {**mark, "at": now}
        if moment > mark["at"]:
            digest, newest = make_digest(self._service, mark, now)
            mark = {"at": now, "change": newest}
            lists: dict[str, Any] = {"new": [], "ended": [], "active": [], "alarms": []}
            name = f"digest:{dt.datetime.fromtimestamp(moment, self._zone):%Y-%m-%dT%H}"
            message = {"id": name, "time": now, "kind": "digest", "group": "", "repeat": False, **lists}
            self._service.post({**message, "digest": digest}, digest=mark).result(30)
        self._mark = mark


def make_digest(service: Service, mark: Mapping[str, Any], now: float) -> tuple[dict[str, Any], int]:
    """Return what happened since a mark as plain data, and the number of the last change in it."""
    store, states = service.store, service.asset_states()
    newest, written = store.changes_after(mark["change"])
    changes = [Change.from_dict(each) for each in written]
    began = dict.fromkeys(each.alarm.id for each in changes if each.kind in ("raised", "returned") and each.alarm)
    open_alarms = store.alarms(only_open=True, limit=_MOST)
    times = [each["time"] for each in states if each["time"] is not None]
    until = max(times, default=now)  # of the data
    seconds = max(0.0, now - mark["at"])
    labels = {each["id"]: each for each in store.labels() if not each["withdrawn_by"]}

    def listed(records: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
        return [_entry(each, labels.values()) for each in records]

    digest = {
        "digest": service.options.digest,
        "from": mark["at"],
        "to": now,
        "zone": service.options.zone or "UTC",
        "count": len(began),
        "alarms": listed(store.alarm(each) for each in list(began)[-_MOST:]),
        "open": listed(open_alarms),
        "stale": _stale(states, open_alarms, until, now),
        "problems": [f"{each.id}: {each.text}" for each in list(service.problems.values())],
        "assets": [_asset_entry(each, now) for each in states],
        "load": alarm_load(changes, until - seconds, until).figures(),
    }
    return digest, newest


def _entry(record: dict[str, Any], labels: Iterable[Mapping[str, Any]]) -> dict[str, Any]:
    """Return what is told of an alarm."""
    alarm = Alarm.from_dict(record)
    said = [each["reason"] for each in labels if str(each["id"]).startswith(f"{alarm.id}~")]
    plain = {name: record[name] for name in ("id", "asset", "cause", "since", "ended", "state", "open")}
    return {**plain, "words": alarm_in_words(alarm), "labels": said}


def _asset_entry(state: Mapping[str, Any], now: float) -> dict[str, Any]:
    counts = state["counts"]
    age = None if state["received"] is None else max(0.0, now - state["received"])
    numbers = {name: counts.get(name, 0) for name in ("malformed", "unscored")}
    return {"asset": state["asset"], "rows": state["row"], "last_row_seconds_ago": age, **numbers}


def _stale(
    states: Sequence[Mapping[str, Any]], alarms: Sequence[Mapping[str, Any]], until: float, now: float
) -> list[str]:
    """Return in words: assets without rows, models that no longer fit, and alarms that do not end."""
    found = []
    for each in states:
        if each["received"] is None:
            found.append(f"{each['asset']}: no row has come yet")
        elif now - each["received"] > _DAY:
            found.append(f"{each['asset']}: no row for {duration_in_words(now - each['received'])}")
    for each in alarms:
        if each["about"] == STALE_MODEL:
            found.append(f"{each['asset']}: the model no longer fits ({each['reason']})")
        elif "active" in each["state"] and until - each["raised"] > _DAY:
            found.append(f"{each['asset']}: {each['cause']} active for {duration_in_words(until - each['raised'])}")
    return found


def digest_in_words(digest: Mapping[str, Any]) -> tuple[str, str]:
    """Return a title and a text."""
    parts = [f"{digest['count']} new", f"{len(digest['open'])} open", f"{len(digest['stale'])} stale"]
    title = f"Penstock, {digest['digest']} digest of {_shown(digest, digest['to'])}: {', '.join(parts)}"
    lists = {
        "Problems": digest["problems"],
        "Alarms since the last digest": [_line(digest, each) for each in digest["alarms"]],
        "Open": [_line(digest, each) for each in digest["open"]],
        "Stale": digest["stale"],
    }
    lines = [
        f"{name}: none" if not texts else "\n".join([f"{name}:", *(f"- {text}" for text in texts)])
        for name, texts in lists.items()
    ]
    return title, "\n".join(lines)


def digest_page(digest: Mapping[str, Any], url: str | None) -> str:
    """Return the digest as a page of its own, which needs no network."""
    values = {
        "title": digest_in_words(digest)[0],
        "url": url,
        "digest": digest,
        "since": _shown(digest, digest["from"]),
        "until": _shown(digest, digest["to"]),
        "problems": [(text,) for text in digest["problems"]],
        "stale": [(text,) for text in digest["stale"]],
        "alarms": [_cells(digest, each) for each in digest["alarms"]],
        "open": [_cells(digest, each) for each in digest["open"]],
        "assets": [
            (
                each["asset"],
                f"{each['rows']:,}",
                _ago(each["last_row_seconds_ago"]),
                each["malformed"],
                each["unscored"],
            )
            for each in digest["assets"]
        ],
        "load": [(each["name"], each["value"], each["target"]) for each in digest["load"]],
    }
    return fill_template("live", "digest.html", values).lstrip()


def _cells(digest: Mapping[str, Any], alarm: Mapping[str, Any]) -> tuple[str, ...]:
    ended = "" if alarm["ended"] is None else _shown(digest, alarm["ended"])
    state = ", ".join(name.replace("_", " ") for name in alarm["state"]) or "over"
    return _shown(digest, alarm["since"]), ended, alarm["words"], state, ", ".join(alarm["labels"])


def _line(digest: Mapping[str, Any], alarm: Mapping[str, Any]) -> str:
    ended = "active" if alarm["ended"] is None else f"until {_shown(digest, alarm['ended'])}"
    said = f" ({', '.join(alarm['labels'])})" if alarm["labels"] else ""
    return f"{alarm['words']}; since {_shown(digest, alarm['since'])}, {ended}{said}"


def _shown(digest: Mapping[str, Any], seconds: float) -> str:
    return f"{dt.datetime.fromtimestamp(seconds, as_zone(digest['zone'])):%Y-%m-%d %H:%M}"


def _ago(seconds: float | None) -> str:
    return "never" if seconds is None else f"{duration_in_words(max(1, round(seconds)))} ago"
