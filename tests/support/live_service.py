"""A small plant for the tests of `penstock serve`: a model, rows with a fault, and a client."""

from __future__ import annotations

import http.client
import json
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from tempfile import mkdtemp
from urllib.parse import urlsplit

import numpy as np
import pandas as pd

from penstock import fit_model
from penstock.live.options import AlarmRules, AssetOptions, ServeOptions
from penstock.live.service import Service

NAMES = ["flow", "head", "power", "oil"]
HEADER = "time," + ",".join(NAMES)
RULES = AlarmRules(on_delay="3s", off_delay="5s", min_duration="2s", rejoin="20s", group_wait="1s", group_interval="5s")


def rows(n=900, seed=0, fault=range(700, 730)):
    """One row a second; a fault of the oil temperature, and some missing readings."""
    rng = np.random.default_rng(seed)
    mixing, noise = rng.random((2, 4)), 0.05 * rng.normal(size=(2000, 4))[:n]
    base = np.column_stack([np.sin(np.arange(n) / 50), np.cos(np.arange(n) / 83)])
    table = base @ mixing + noise + 5
    table[list(fault), 3] += 3
    table[::97, 1] = np.nan
    times = pd.date_range("2026-01-01", periods=n, freq="s").astype(str)
    return pd.DataFrame(table, columns=NAMES).assign(time=times)[["time", *NAMES]]


def csv_of(table):
    return table.to_csv(index=False, float_format="%.6f")


@cache
def model():
    folder = Path(mkdtemp())
    (folder / "good.csv").write_text(csv_of(rows()[:600]))
    fitted = fit_model(folder / "good.csv")
    fitted.save(folder / "unit.penstock")
    return folder / "unit.penstock"


def options(folder, *, names=("unit1",), rules=RULES, **given):
    """Options of a service: `unit1` has a model and no file unless `input` is given."""
    asset = {"input": given.pop("input", None), "model": given.pop("model", model())}
    assets = {name: AssetOptions(**asset) for name in names}
    return ServeOptions(**{"store": Path(folder) / "live.db", "port": 0, "assets": assets, "rules": rules, **given})


@contextmanager
def running(given, targets=("log",)):
    """A service that is stopped at the end of the block."""
    service = Service(given, targets)
    service.start()
    try:
        yield service
    finally:
        service.stop()


class Client:
    """Requests to a server, with its answers as (status, content)."""

    def __init__(self, url, token=None):
        self.url, self._own = urlsplit(url), {} if token is None else {"authorization": f"Bearer {token}"}

    def __call__(self, method, path, body=None, headers=(), *, whole=False):
        connection = http.client.HTTPConnection(self.url.hostname, self.url.port, timeout=60)
        try:
            connection.request(method, path, body, {**self._own, **dict(headers)})
            answer = connection.getresponse()
            content = answer.read()
            if whole:
                return answer.status, content, answer.headers
            is_json = answer.headers["content-type"] == "application/json"
            return answer.status, json.loads(content) if is_json else content.decode()
        finally:
            connection.close()

    def get(self, path):
        status, content = self("GET", f"/api/v1/{path}")
        assert status == 200, content
        return content

    def command(self, path, **body):
        headers = {"content-type": "application/json", "penstock-command": "1"}
        return self("POST", f"/api/v1/{path}", json.dumps(body), headers)

    def samples(self, text, asset="unit1", kind="text/csv", sequence=None, client="test"):
        headers = {"content-type": kind}
        if sequence is not None:
            headers |= {"penstock-client": client, "penstock-sequence": str(sequence)}
        return self("POST", f"/api/v1/assets/{asset}/samples", text, headers)
