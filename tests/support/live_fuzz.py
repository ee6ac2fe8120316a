"""Hostile rows, texts and requests for `penstock serve`, from a seed: hypothesis makes them, `play` sends them.

    .venv/bin/python tests/support/live_fuzz.py [COUNT [SEED]]

Nothing may be answered by 500, stop another asset for more than a second, or take memory that is not given back.
"""

from __future__ import annotations

import http.client
import json
import sys
import threading
import time
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from urllib.parse import quote

import psutil
from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis import strategies as st
from live_service import HEADER, NAMES, Client, csv_of, options, rows

from penstock.live.web import Limits, LiveServer

LIVE = rows()[600:900]
LONGEST_STOP = 1.0  # seconds

texts = st.one_of(
    st.text(st.characters(), max_size=60),  # surrogates and control characters too
    st.sampled_from(["", "\ud800", "\x00", "=cmd|' /C calc'!A0", "<script>alert(1)</script>", "../../etc/passwd", "%00",
                     "NaN", "inf", "x" * 5000, "\u202e", "unit1", "null", "'; DROP TABLE assets;--", "*", "[", "/"]),
)  # fmt: skip
numbers = st.one_of(
    st.floats(), st.integers(), st.sampled_from([1e300, -1e300, 5e-324, 10**18, 10**40, -(10**400), 0, -0.0, 2**63])
)
times = st.one_of(
    numbers,
    texts,
    st.none(),
    st.booleans(),
    st.datetimes().map(str),
    st.sampled_from(["1677-01-01", "2262-12-31", "9999-12-31T23:59:59Z", "2026-02-30", "29.02.2025 24:00", "1" * 5000,
                     "2026-01-01 00:00:00", "2026-01-01T00:00:00+99:99", "10:00", "45292.5", "0000-00-00"]),
)  # fmt: skip
cells = st.one_of(numbers, texts, st.none(), st.booleans(), st.lists(numbers, max_size=2), st.just({"a": {}}))
names = st.one_of(st.sampled_from([*NAMES, *NAMES, "time", "Time", "tag", "value", "quality"]), texts)
objects = st.dictionaries(names, cells, max_size=8)
wholes = st.fixed_dictionaries({"time": times, **dict.fromkeys(NAMES, cells)})
lines = st.lists(st.lists(st.one_of(texts, numbers.map(str), times.map(str)), max_size=7).map(",".join), max_size=8)
tables = st.one_of(
    lines.map("\n".join),
    lines.map(lambda every: "\n".join([HEADER, *every])),
    st.sampled_from(["{}\n" * 5000, "\n" * 15_000 + "1", "," * 1900, '"' * 9999, "{" * 9999, "[" * 9999, "a,b\r" * 99,
                     "\x00" * 9999, HEADER + "\n" + "1e300,1,1,1,1\n" * 500, "a" * 100_000]),
)  # fmt: skip
json_texts = st.one_of(wholes, objects, st.lists(st.one_of(wholes, objects, cells), max_size=6), cells).map(json.dumps)
influx = st.tuples(texts, names, cells, times).map(lambda parts: "{},t=1 {}={} {}".format(*parts))
bodies = st.one_of(
    st.tuples(st.just("application/json"), json_texts),
    st.tuples(st.just("application/x-ndjson"), st.lists(json_texts, max_size=5).map("\n".join)),
    st.tuples(st.just("text/csv"), tables),
    st.tuples(st.just("text/plain"), influx),
    st.tuples(
        st.sampled_from(["text/csv", "application/json", "text/html", "", "a/b;c=\x7f"]), st.binary(max_size=300)
    ),
)
commands = st.dictionaries(
    st.sampled_from(["reason", "comment", "hours", "name", "pattern", "other"]), cells, max_size=5
).map(json.dumps)
ids = st.one_of(st.sampled_from(["unit1-1", "unit1-2", "unit2-1", "label~1"]), texts)
actions = st.sampled_from(["acknowledge", "confirm", "reset", "shelve", "unshelve", "comment", "label", "suppress",
                           "unsuppress", "out_of_service", "in_service", "drop", ""])  # fmt: skip
queries = st.dictionaries(
    st.sampled_from(["hours", "points", "after", "limit", "sensor", "format", "days", "operators", "open", "asset"]),
    st.one_of(texts, numbers.map(str)), max_size=3,
).map(lambda given: "&".join(f"{name}={_quoted(value)}" for name, value in given.items()))  # fmt: skip
places = st.sampled_from(["status", "assets", "alarms", "load", "labels", "labels.jsonl", "audit", "assets/unit1",
                          "assets/unit1/series", "assets/unit1/verdicts", "assets/unit1/export", "alarms/unit1-1",
                          "assets/unit1/quarantine", "assets/unit2"])  # fmt: skip
requests = st.one_of(
    st.tuples(st.just("rows"), bodies, st.one_of(st.none(), st.tuples(texts, st.one_of(texts, numbers.map(str))))),
    st.tuples(st.just("rows"), bodies, st.none()),
    st.tuples(st.just("act"), ids, actions, commands),
    st.tuples(st.just("silence"), commands),
    st.tuples(st.just("withdraw"), ids, commands),
    st.tuples(st.just("get"), places, queries),
    st.tuples(st.just("get"), texts, queries),
)


def _quoted(text: str) -> str:
    return quote(text.encode("utf-8", errors="surrogatepass"), safe="")


@dataclass
class Outcome:
    """What came of it: answers by status, the longest wait of the other asset, and memory in MB before and after."""

    statuses: Counter[int] = field(default_factory=Counter)
    failed: list[str] = field(default_factory=list)
    longest_wait: float = 0.0
    memory: tuple[float, float] = (0.0, 0.0)
    others: int = 0
    slowest: tuple[float, str] = (0.0, "")


def send(client: Client, request: tuple) -> int:
    """Send a request; return the status of the answer."""
    kind, *parts = request
    plain = {"content-type": "application/json", "penstock-command": "1"}
    if kind == "rows":
        (content_type, body), numbered = parts
        headers = {"content-type": content_type}
        if numbered is not None:
            headers |= {"penstock-client": numbered[0], "penstock-sequence": numbered[1]}
        data = body if isinstance(body, bytes) else body.encode("utf-8", errors="surrogatepass")
        return client("POST", "/api/v1/assets/unit1/samples", data, headers, whole=True)[0]
    if kind == "get":
        place, query = parts
        return client("GET", f"/api/v1/{quote(place.encode('utf-8', 'surrogatepass'), safe='/')}?{query}", whole=True)[
            0
        ]
    path = {"act": "/api/v1/alarms/{}/{}", "silence": "/api/v1/silences", "withdraw": "/api/v1/labels/{}/withdraw"}[
        kind
    ]
    return client("POST", path.format(*map(_quoted, parts[:-1])), parts[-1], plain, whole=True)[0]


def play(folder: Path, count: int, start: int = 0) -> Outcome:
    """Send so many hostile requests to one asset, and good rows to another meanwhile."""
    found, done = Outcome(), threading.Event()
    given_options = options(folder, names=("unit1", "unit2"))
    with LiveServer(given_options, Limits(rate=1e6, burst=1e6)) as server:
        client, header, good = Client(server.url), HEADER, csv_of(LIVE).splitlines()[1:]
        for name in ("unit1", "unit2"):
            assert client.samples(csv_of(LIVE), asset=name)[0] == 200

        def bring_good_rows() -> None:
            for number in range(10**9):
                if done.is_set():
                    return
                begun = time.monotonic()
                row = good[number % len(good)]
                status, answer = Client(server.url).samples(f"{header}\n{row}", asset="unit2")
                found.longest_wait = max(found.longest_wait, time.monotonic() - begun)
                found.others += 1
                if status != 200:
                    found.failed.append(f"good row: {status} {answer}")
                time.sleep(0.02)

        other = threading.Thread(target=bring_good_rows)
        process = psutil.Process()

        @seed(start)
        @settings(
            max_examples=count,
            database=None,
            deadline=None,
            phases=[Phase.generate],
            suppress_health_check=list(HealthCheck),
        )
        @given(requests)
        def attack(request: tuple) -> None:
            begun = time.monotonic()
            try:
                status = send(client, request)
            except (http.client.HTTPException, UnicodeEncodeError, ValueError):  # our own library refuses to send it
                found.statuses[0] += 1
                return
            except ConnectionError:  # the server does not read the body after a header that it cannot take
                found.statuses[1] += 1
                return
            found.statuses[status] += 1
            found.slowest = max(found.slowest, (time.monotonic() - begun, repr(request)[:300]))
            if status == 500:
                found.failed.append(repr(request)[:500])
            if sum(found.statuses.values()) == count // 5:
                found.memory = (process.memory_info().rss / 1e6, 0.0)

        other.start()
        try:
            attack()
        finally:
            done.set()
            other.join()
        found.memory = (found.memory[0], process.memory_info().rss / 1e6)
        for path in ("alarms", "audit", "assets", "assets/unit1", "assets/unit2", "labels", "status", "load",
                     "assets/unit1/quarantine", "assets/unit1/verdicts", "assets/unit1/export"):  # fmt: skip
            status = client("GET", f"/api/v1/{path}", whole=True)[0]
            found.failed += [] if status == 200 else [f"{path}: {status}"]
        assert client("GET", "/healthz")[0] == 200
    return found


if __name__ == "__main__":
    arguments = [*map(int, sys.argv[1:]), *(5000, 0)[len(sys.argv) - 1 :]]
    with TemporaryDirectory() as place:
        outcome = play(Path(place), *arguments)
    print(f"answers by status: {dict(sorted(outcome.statuses.items()))} (0: refused by our own library, 1: cut off)")
    print(
        f"another asset: {outcome.others} rows meanwhile, {outcome.longest_wait:.2f} s at most (goal {LONGEST_STOP:g})"
    )
    print(f"the slowest: {outcome.slowest[0]:.2f} s, {outcome.slowest[1]!a}")
    print("memory: {:.0f} MB after a fifth, {:.0f} MB in the end".format(*outcome.memory))
    for each in outcome.failed[:20]:
        print("FAILED", ascii(each))
    sys.exit(bool(outcome.failed))
