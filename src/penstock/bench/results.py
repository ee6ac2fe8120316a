"""What a study has found: a tidy frame with one row per cell, and when, where and with what it was run."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import pandas as pd

from penstock.bench.overlap import Overlap

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
    a documented other way in which a cell was computed. `options` are those that cut down the settings; `unplanned`
    counts outcomes in the folder of cells that this plan does not have; `overlaps` are the pairs of data sets of its
    comparisons that share rows.
    """

    rows: pd.DataFrame
    title: str = ""
    versions: Mapping[str, str] | None = None
    machine: str = ""
    started: str = ""
    finished: str = ""
    settings_text: str = ""
    options: str = ""
    unplanned: int = 0
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
        # Cells of the same content share an outcome, but each has the mark of its own method.
        own = {"mark": cell["mark"]} if "mark" in cell else {}
        detail = {**outcome.get("detail", {}), **cell.get("detail", {})}
        records.append(dict(cell) | nothing | known | own | {"detail": detail})
    for record in records:
        record |= {name: _readable(record[name]) for name in ("dataset", "why")}
    frame = pd.DataFrame(records, columns=list(COLUMNS))
    kinds = {"seed": "Int64", "n": "int64", "p": "int64", "n_anomalies": "int64"}
    frame = frame.astype(kinds | dict.fromkeys((*MEASURES, *COSTS), "float64"))
    return frame.astype({"value": object, "detail": object})


def _readable(text: str) -> str:
    """Bytes of file names that are no text, which no table can hold, as question marks."""
    return text.encode("utf-8", "replace").decode("utf-8")
