"""What a study has found: a tidy frame with one row per cell, and when, where and with what it was run."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd

from penstock.bench.overlap import Overlap

PLAN_FILE, RUN_FILE, SETTINGS_FILE = "plan.json", "run.json", "study.toml"
MEASURES = ("precision_at_n", "true_detections", "roc_auc", "average_precision")
COSTS = ("fit_seconds", "cpu_seconds", "peak_memory_mb")
# What a cell is, known before it is run; and what came of it.
PLANNED = ("part", "method", "paper", "sweep", "base", "value", "dataset", "seed", "n", "p", "n_anomalies", "key")
OUTCOME = (*MEASURES, *COSTS, "status", "why", "mark", "detail")
COLUMNS = (*PLANNED[:-1], *OUTCOME, "key")


@dataclass(frozen=True, eq=False)
class Results:
    """The rows of a study, and its circumstances.

    `rows` has the columns `COLUMNS`, one row per planned cell: `part` and `method` say what was run (`sweep`, `base`
    and `value` for one of a series), `paper` which column of the paper's tables it is held against; `status` is "ok",
    "failed", "timed out", "killed" or "not run", and `why` the reason if not "ok"; measures are NaN then. `mark` names
    a documented other way in which a cell was computed. `overlaps` are the pairs of data sets that share rows.
    """

    rows: pd.DataFrame
    title: str = ""
    versions: Mapping[str, str] | None = None
    machine: str = ""
    started: str = ""
    finished: str = ""
    settings_text: str = ""
    overlaps: tuple[Overlap, ...] = ()


def frame_of(planned: Iterable[Mapping[str, Any]], outcomes: Mapping[str, Mapping[str, Any]]) -> pd.DataFrame:
    """Planned cells with what came of them, as a frame; a cell without an outcome is "not run".

    >>> cell = dict.fromkeys(PLANNED, "") | {"method": "NMF", "seed": 0, "n": 9, "p": 2, "n_anomalies": 1, "key": "k"}
    >>> frame_of([cell], {})[["method", "status"]].to_dict("records")
    [{'method': 'NMF', 'status': 'not run'}]
    """
    nothing: dict[str, Any] = dict.fromkeys((*MEASURES, *COSTS), float("nan")) | {
        "status": "not run",
        "why": "",
        "mark": "",
    }
    records = []
    for cell in planned:
        outcome = outcomes.get(cell["key"], {})
        known = {name: outcome[name] for name in OUTCOME if outcome.get(name) is not None}
        records.append(dict(cell) | nothing | {"detail": {}} | known)
    frame = pd.DataFrame(records, columns=list(COLUMNS))
    kinds = {"seed": "Int64", "n": "int64", "p": "int64", "n_anomalies": "int64"}
    frame = frame.astype(kinds | dict.fromkeys((*MEASURES, *COSTS), "float64"))
    return frame.astype({"value": object, "detail": object})


def read_results(folder: str | Path) -> Results:
    """The results in a study's folder, finished or not, as they were planned and run there."""
    from penstock.bench.rows_file import read_rows

    place = Path(folder)
    if not (place / PLAN_FILE).is_file():
        raise FileNotFoundError(
            f"There is no study in {place}: it has no {PLAN_FILE}. Run one with 'penstock bench --folder {place}'."
        )
    planned = json.loads((place / PLAN_FILE).read_text(encoding="utf-8"))
    runs = json.loads((place / RUN_FILE).read_text(encoding="utf-8"))
    return Results(
        rows=frame_of(planned["cells"], read_rows(place)),
        title=planned["title"],
        versions=runs["versions"],
        machine=runs["machine"],
        started=runs["started"],
        finished=runs["finished"],
        settings_text=(place / SETTINGS_FILE).read_text(encoding="utf-8"),
        overlaps=tuple(Overlap(**overlap) for overlap in planned["overlaps"]),
    )
