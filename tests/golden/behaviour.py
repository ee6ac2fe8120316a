"""Pin what users see: findings, page data, watch output, detector scores and public names.

    PYTHONPATH=tests:tests/support .venv/bin/python -m golden.behaviour      # writes the pins anew

Texts in sentences are left out, so that wording can change; every number, name, time and order is kept. The tables are
made here and nothing but the public doors (the commands and `penstock.detectors.<Class>`) is used.
"""

from __future__ import annotations

import contextlib
import io
import json
import re
import tempfile
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

import penstock
from penstock.cli import main

FOLDER = Path(__file__).resolve().parent / "behaviour"
PROSE = {"reasons", "notes", "settings", "use", "text", "penstock", "seen_as", "kind", "source", "summary_text"}


def plant(n: int = 500, seed: int = 0) -> pd.DataFrame:
    """Readings every ten minutes that follow two causes, with a hot bearing and a lost flow."""
    rng = np.random.default_rng(seed)
    t = np.arange(n)
    causes = np.column_stack([50 + 10 * np.sin(t / 40), 20 + 5 * np.cos(t / 23)])
    names = ["load [MW]", "bearing [°C]", "flow", "head", "oil"]
    values = causes @ rng.uniform(0.2, 1.0, (2, len(names))) + rng.normal(scale=0.2, size=(n, len(names)))
    table = pd.DataFrame(np.round(values, 3), columns=names)
    table.loc[300:306, "bearing [°C]"] += 12
    table.loc[150:151, "flow"] -= 9
    table.insert(0, "time", pd.date_range("2024-05-01", periods=n, freq="10min"))
    table["fault"] = 0
    table.loc[300:306, "fault"] = 1
    return table


def modes() -> pd.DataFrame:
    table = plant().drop(columns="fault")
    off = np.arange(len(table)) // 60 % 2 == 1
    table.loc[off, ["load [MW]", "flow"]] *= 0.05
    return table.assign(state=np.where(off, "off", "on"))


def holes() -> pd.DataFrame:
    table = plant(seed=2).drop(columns="fault")
    hidden = np.random.default_rng(5).random((len(table), 5)) < 0.03
    table.iloc[:, 1:] = table.iloc[:, 1:].mask(hidden)
    return table.drop(index=range(220, 260))


def odd_text(path: Path) -> None:
    """A German export: semicolons, decimal commas, a units line, another encoding."""
    table = plant(seed=3).drop(columns="fault")
    table["time"] = table["time"].dt.strftime("%d.%m.%Y %H:%M")
    lines = table.to_csv(index=False, sep=";", decimal=",").splitlines()
    lines[0] = "Zeit;Leistung;Lager für Öl;Durchfluß;Gefälle;Öl"
    lines.insert(1, ";MW;°C;m³/s;m;°C")
    path.write_bytes("\r\n".join(lines).encode("cp1252"))


def rows_only() -> pd.DataFrame:
    rng = np.random.default_rng(4)
    values = rng.normal(size=(300, 4))
    values[7], values[200] = 6.0, [5.0, -5.0, 0.0, 0.0]
    return pd.DataFrame(np.round(values, 4), columns=["a", "b", "c", "d"]).assign(kind=rng.choice(["x", "y"], 300))


def runs() -> pd.DataFrame:
    table = pd.concat([plant(200, seed).drop(columns="fault").assign(run=f"r{seed}") for seed in range(3)])
    return table.reset_index(drop=True)


def _csv(make: Callable[[], pd.DataFrame]) -> Callable[[Path], None]:
    return lambda path: make().to_csv(path, index=False)


# Name of the pin: how to write the table, and the options of the command.
DETECT: dict[str, tuple[Callable[[Path], None], list[str]]] = {
    "default": (_csv(plant), ["--label", "fault"]),
    "trained": (_csv(plant), ["--train-until", "2024-05-02 12:00"]),
    "detector": (_csv(plant), ["--top", "12", "--label", "fault", "--method", "detector"]),
    "detector-trained": (
        _csv(plant),
        ["--train-until", "2024-05-02 12:00", "--threshold", "0.01", "--method", "detector"],
    ),
    "modes": (
        _csv(modes),
        ["--mode", "state", "--method", "nsnmf", "--similarity", "relative", "-K", "3", "--top", "15"],
    ),
    "holes": (
        _csv(holes),
        ["--method", "nsnmf", "--similarity", "normalized", "-K", "3", "--top", "10", "--gap", "1h"],
    ),
    "odd-text": (odd_text, ["--method", "knn", "--top", "10"]),
    "rows": (_csv(rows_only), ["--top", "8", "--method", "detector"]),
    "runs": (_csv(runs), ["--group", "run", "--method", "lomst", "--top", "10"]),
}
METHODS: dict[str, dict[str, Any]] = {
    "Detector": {"random_state": 0},
    "SensorDetector": {"random_state": 0},
    "NSNMF": {"random_state": 0, "n_components": 3},
    "LaplacianNSNMF": {"random_state": 0, "n_components": 3},
    "NMF": {"random_state": 0, "n_components": 3},
    "GNMF": {"random_state": 0, "n_components": 3},
    "SNMF": {"random_state": 0, "n_components": 3},
    "LoMST": {},
    "OnlineNSNMF": {"random_state": 0},
    "KNNDistance": {},
    "MeanDistance": {},
    "NormScore": {},
}


def detect(name: str) -> dict[str, Any]:
    """Return the findings document and the page data of one table, without prose."""
    make, options = DETECT[name]
    with tempfile.TemporaryDirectory() as folder:
        source, out, page = (Path(folder) / each for each in ("table.csv", "out.json", "page.html"))
        make(source)
        command = ["detect", str(source), "-o", str(out), "--report", str(page), "--quiet", *options]
        assert main(command) == 0
        document = json.loads(out.read_text(encoding="utf-8"))
        data = re.search(r'id="data">(.*?)</script>', page.read_text(encoding="utf-8"), re.S)
    assert data is not None
    return {"document": without_prose(document), "page": without_prose(json.loads(data[1]))}


def watch() -> list[Any]:
    """Return the records that `penstock watch` writes for a small table."""
    with tempfile.TemporaryDirectory() as folder:
        source, out = Path(folder) / "table.csv", Path(folder) / "out.jsonl"
        plant().drop(columns="fault").to_csv(source, index=False)
        options = ["--threshold", "conformal:rate=0.01", "--warmup", "100", "--seed", "0"]
        assert main(["watch", str(source), "--output", str(out), *options]) == 0
        return [json.loads(line) for line in out.read_text(encoding="utf-8").splitlines()]


def scores(name: str) -> list[float]:
    """Return the scores of fitted rows and of new ones."""
    table = plant().drop(columns=["time", "fault"])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        detector = getattr(penstock.detectors, name)(**METHODS[name]).fit(table.iloc[:400])
    every = [*np.asarray(detector.anomaly_score(table.iloc[:400]))[::7], *detector.anomaly_score(table.iloc[400:])[::5]]
    return [float(value) for value in every]


def without_prose(value: Any) -> Any:
    """Return the value without sentences: entries named in PROSE and texts of five words or more."""
    if isinstance(value, dict):
        return {key: without_prose(each) for key, each in value.items() if key not in PROSE}
    if isinstance(value, list):
        return [without_prose(each) for each in value]
    return None if isinstance(value, str) and value.count(" ") >= 4 else value


def pins() -> dict[str, Callable[[], Any]]:
    """Return the name of every pin and how to compute it."""
    found: dict[str, Callable[[], Any]] = {f"detect-{name}": (lambda name=name: detect(name)) for name in DETECT}
    found |= {f"scores-{name}": (lambda name=name: scores(name)) for name in METHODS}
    return found | {"watch": watch, "names": lambda: sorted(penstock.__all__)}


if __name__ == "__main__":
    FOLDER.mkdir(exist_ok=True)
    for pin, compute in pins().items():
        with contextlib.redirect_stdout(io.StringIO()):
            (FOLDER / f"{pin}.json").write_text(json.dumps(compute(), indent=None) + "\n", encoding="utf-8")
        print(pin)
