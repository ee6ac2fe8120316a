"""Keep what a study has found, a folder with its settings, its plan and one JSON line per cell; and summarise it.

A line is in the file wholly or not at all: what a killed process left of one is cut off when the file is next opened.
"""

from __future__ import annotations

import json
import os
import platform
from collections.abc import Container, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from importlib import metadata
from pathlib import Path
from typing import Any, Literal, Self

import numpy as np
import pandas as pd

from penstock.bench.cells import owners_of_modules
from penstock.bench.settings import Study
from penstock.bench.significance import Comparison, compare_table, resample_means, without_last_bits
from penstock.io import TableError
from penstock.storage import lock, replace_file

Statistic = Literal["median", "mean", "max", "min"]
_SUMMARISED = ("precision_at_n", "average_precision", "roc_auc")
MEASURES = ("precision_at_n", "true_detections", "roc_auc", "average_precision")
SERIES_MEASURES = (
    *("vus_pr", "faults", "in_n", "in_2n", "false_per_day", "delay_hours", "sensor_first", "sensor_in_three"),
)
COSTS = ("fit_seconds", "cpu_seconds", "peak_memory_mb")
STATUSES = ("ok", "failed", "timed out", "killed", "not run")
PLANNED = ("method", "dataset", "seed", "n", "p", "n_anomalies")
OUTCOME = (*MEASURES, *SERIES_MEASURES, *COSTS, "status", "why", "mark", "detail")
COLUMNS = (*PLANNED, *OUTCOME, "key")
ROWS_FILE, PLAN_FILE, RUN_FILE, SETTINGS_FILE = "rows.jsonl", "plan.json", "run.json", "study.toml"
_REPORTED = ("numpy", "scipy", "scikit-learn", "numba", "pandas", "pyod", "torch")


LEVEL = 0.95  # of intervals


@dataclass(frozen=True, eq=False)
class Results:
    """The rows of a study, and when, where and with what it was run.

    Attributes
    ----------
    rows : DataFrame
        One row per planned cell, with the columns `COLUMNS` and the labels of the study. `status` is "ok", "failed",
        "timed out", "killed" or "not run", and `why` the reason if not "ok"; measures are NaN then. `mark` names a
        documented other way in which a cell was computed.
    title, machine, started, finished, settings_text : str
    versions : Mapping
        Of Python and the packages used.
    options : str
        Options of the command line that reduced the settings.

    Examples
    --------
    >>> cell = {"method": "NMF", "dataset": "a", "seed": 0, "n": 9, "p": 2, "n_anomalies": 1, "key": "k"}
    >>> Results(frame_of([cell], {}), title="Pumps").rows["status"].tolist()
    ['not run']
    """

    rows: pd.DataFrame
    title: str = ""
    versions: Mapping[str, str] | None = None
    machine: str = ""
    started: str = ""
    finished: str = ""
    settings_text: str = ""
    options: str = ""


def read_results(folder: str | Path) -> Results:
    """Read the results in the folder of a study, finished or not.

    Parameters
    ----------
    folder : path
        As given to `run_study`, or to ``penstock bench --folder``.

    Examples
    --------
    >>> read_results("nowhere")
    Traceback (most recent call last):
    FileNotFoundError: There is no study in nowhere: ... Run one with 'penstock bench --folder nowhere'.
    """
    place = Path(folder)
    if not (place / PLAN_FILE).is_file():
        raise FileNotFoundError(
            f"There is no study in {place}: it has no {PLAN_FILE}. Run one with 'penstock bench --folder {place}'."
        )
    return collect(place, read_rows(place))


def collect(place: Path, outcomes: Mapping[str, Mapping[str, Any]]) -> Results:
    """Join the plan in a folder with outcomes by key."""
    planned, run = _read_json(place / PLAN_FILE), _read_json(place / RUN_FILE)
    if "cells" not in planned:
        raise ValueError(f"{place / PLAN_FILE} is damaged. Run the study again, which runs only what is missing.")
    return Results(
        rows=frame_of(planned["cells"], outcomes, planned.get("labels", ())),
        title=planned["title"],
        versions=run.get("versions", {}),
        **{name: run.get(name, "") for name in ("machine", "started", "finished")},
        settings_text=(place / SETTINGS_FILE).read_text(encoding="utf-8"),
        options=planned["options"],
    )


def frame_of(
    planned: Iterable[Mapping[str, Any]], outcomes: Mapping[str, Mapping[str, Any]], labels: Sequence[str] = ()
) -> pd.DataFrame:
    """Join planned cells with their outcomes by key; a cell without an outcome is "not run".

    >>> cell = {"method": "NMF", "dataset": "a", "seed": 0, "n": 9, "p": 2, "n_anomalies": 1, "key": "k"}
    >>> frame_of([cell], {})[["method", "status"]].to_dict("records")
    [{'method': 'NMF', 'status': 'not run'}]
    """
    nothing: dict[str, Any] = dict.fromkeys((*MEASURES, *SERIES_MEASURES, *COSTS), float("nan"))
    nothing |= {"status": "not run", "why": "", "mark": ""}
    records = []
    for cell in planned:
        outcome = outcomes.get(cell["key"], {})
        known = {name: outcome[name] for name in OUTCOME if outcome.get(name) is not None}
        # Cells of the same content share an outcome, but each has the mark of its own method.
        own = {"mark": cell["mark"]} if "mark" in cell else {}
        detail = {**outcome.get("detail", {}), **cell.get("detail", {})}
        record = dict(cell) | nothing | known | own | {"detail": detail}
        for name in ("dataset", "why"):  # bytes of file names that are no text become question marks
            record[name] = record[name].encode("utf-8", "replace").decode("utf-8")
        records.append(record)
    frame = pd.DataFrame(records, columns=[*labels, *COLUMNS])
    kinds = {"seed": "Int64", "n": "int64", "p": "int64", "n_anomalies": "int64"}
    frame = frame.astype(kinds | dict.fromkeys((*MEASURES, *SERIES_MEASURES, *COSTS), "float64"))
    return frame.astype(dict.fromkeys([*labels, "detail"], object))


def write_plan(place: Path, study: Study, planned: list[dict[str, Any]], done: Container[str]) -> None:
    """Write down what is to be run, before it is; the time of the first start is kept.

    A run of a part of the study adds to the plan: cells that other runs have `done` in the folder stay in the report.
    """
    if not _read_json(place / RUN_FILE):
        _write_json(place / RUN_FILE, {"started": _now(), "finished": "", "versions": {}, "machine": ""})
    replace_file(place / SETTINGS_FILE, [memoryview(study.text.encode("utf-8"))])
    names = ("part", "method", "dataset", "seed")
    planned_now = {tuple(cell.get(name) for name in names) for cell in planned}
    earlier = _read_json(place / PLAN_FILE).get("cells", []) if study.options else []
    kept = [
        cell for cell in earlier if cell["key"] in done and tuple(cell.get(name) for name in names) not in planned_now
    ]
    content = {"title": study.title, "options": study.options, "labels": study.labels, "cells": [*kept, *planned]}
    _write_json(place / PLAN_FILE, content)  # the last of them: where it is, so are the others


def write_circumstances(place: Path, detectors: Iterable[str]) -> None:
    """Write down dates, versions of packages and the machine after a run."""
    owners = [next(iter(owners_of_modules().get(path.partition(".")[0], [""]))) for path in detectors if "." in path]
    versions = {"python": platform.python_version()}
    for package in ("penstock", *sorted({*_REPORTED, *owners} - {"", "penstock"})):
        try:
            versions[package] = metadata.version(package)
        except metadata.PackageNotFoundError:
            continue
    machine = f"{platform.system()} {platform.machine()}, {os.cpu_count()} cores"
    started = str(_read_json(place / RUN_FILE).get("started") or _now())
    content = {"started": started, "finished": _now(), "versions": versions, "machine": machine}
    _write_json(place / RUN_FILE, content)


def read_rows(folder: Path) -> dict[str, dict[str, Any]]:
    """Read outcomes by the key of their cell; of several for one key (a retry) the last."""
    path = folder / ROWS_FILE
    if not path.is_file():
        return {}
    outcomes = {}
    lines = path.read_bytes().split(b"\n")
    for number, line in enumerate(lines[:-1], start=1):  # what follows the last line end was cut off
        if not line.strip():  # a person deleted its text
            continue
        try:
            outcome = json.loads(line)
            outcomes[outcome["key"]] = outcome
        except (ValueError, TypeError, KeyError):
            raise TableError(
                f"{path}, line {number}: not the outcome of a cell. The file was changed or damaged; delete the line "
                "to have its cell run again."
            ) from None
    return outcomes


class RowsFile:
    """The file of outcomes, open for one process at a time.

    >>> import tempfile
    >>> folder = Path(tempfile.mkdtemp())
    >>> with RowsFile(folder) as file:
    ...     file.append({"key": "a", "status": "ok"})
    >>> read_rows(folder)
    {'a': {'key': 'a', 'status': 'ok'}}
    """

    def __init__(self, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self.path = folder / ROWS_FILE
        self.path.touch()  # not "w": another study may be writing to it
        self._file = self.path.open("r+b", buffering=0)
        try:
            if not lock(self._file.fileno()):
                raise RuntimeError(
                    f"{self.path} is in use by another study. Wait for it to end, or choose another folder."
                )
            self._end = self._file.read().rfind(b"\n") + 1
            self._file.truncate(self._end)
        except BaseException:
            self._file.close()
            raise

    def append(self, outcome: Mapping[str, Any]) -> None:
        """Write an outcome to the disk; leave none of it there if that fails."""
        line = json.dumps(outcome, allow_nan=False).encode("ascii") + b"\n"
        self._file.seek(self._end)
        try:
            rest = memoryview(line)
            while rest:
                rest = rest[self._file.write(rest) or 0 :]
            os.fsync(self._file.fileno())
        except OSError as error:
            self._file.truncate(self._end)
            why = f"an outcome could not be written ({error.strerror}); make room and run the study again, which runs "
            raise OSError(error.errno, f"{why}only what is missing", str(self.path)) from None
        self._end += len(line)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._file.close()


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")


def _read_json(path: Path) -> dict[str, Any]:
    """Read a JSON object; an empty one if the file is missing or not whole."""
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return content if isinstance(content, dict) else {}


def _write_json(path: Path, content: dict[str, Any]) -> None:
    replace_file(path, [memoryview(json.dumps(content, indent=1).encode("ascii"))])


def pivot(rows: pd.DataFrame, measure: str = "true_detections", statistic: Statistic = "median") -> pd.DataFrame:
    """Return data sets × methods: a statistic of a measure over the seeds that ran; NaN where none did.

    Methods are identified by name alone. All planned data sets and methods are there, in the order of their first row.
    Values are rounded to 12 digits: medians of shares that are equal tie in ranks and tests.

    Parameters
    ----------
    rows : DataFrame
        `Results.rows`.
    measure : str, default="true_detections"
        A column of numbers.
    statistic : {"median", "mean", "max", "min"}, default="median"

    Examples
    --------
    >>> pivot(pd.DataFrame(columns=list(COLUMNS))).shape
    (0, 0)
    """
    if statistic not in ("median", "mean", "max", "min"):
        raise ValueError(f"statistic must be 'median', 'mean', 'max' or 'min'; got {statistic!r}.")
    datasets, methods = pd.unique(rows["dataset"]), pd.unique(rows["method"])
    done = rows[rows["status"] == "ok"]
    values = done[measure].astype("float64").groupby([done["dataset"], done["method"]]).agg(statistic)
    values = pd.Series(without_last_bits(values), index=values.index)
    table = values.unstack("method") if len(values) else pd.DataFrame()
    table = table.reindex(index=datasets, columns=methods).astype("float64")
    return table.rename_axis(index="dataset", columns="method")


def missing_cells(
    rows: pd.DataFrame, table: pd.DataFrame, otherwise: str = "ran, but the measure is not a number"
) -> pd.DataFrame:
    """List why each cell of a pivot is missing: dataset, method, why; `otherwise` if all its runs ended well."""
    cells = rows.groupby(["dataset", "method"], sort=False).indices
    found = []
    for row, column in zip(*np.nonzero(table.isna().to_numpy()), strict=True):
        dataset, method = str(table.index[int(row)]), str(table.columns[int(column)])
        runs = rows.iloc[cells.get((dataset, method), [])]
        bad = runs[runs["status"] != "ok"]
        reasons = [f"{status}: {why}" if why else status for status, why in zip(bad["status"], bad["why"], strict=True)]
        why = "not planned" if runs.empty else "; ".join(dict.fromkeys(reasons)) or otherwise
        found.append((dataset, method, why))
    return pd.DataFrame(found, columns=["dataset", "method", "why"], dtype="object")


def compare_rows(
    rows: pd.DataFrame,
    methods: Sequence[str] | None = None,
    measure: str = "precision_at_n",
    statistic: Statistic = "median",
    alpha: float = 0.05,
) -> Comparison:
    """Compare the methods of a study by one number per data set, the median over the seeds.

    Parameters
    ----------
    rows : DataFrame
        `Results.rows`.
    methods : sequence of str, optional
        All by default.
    measure : str, default="precision_at_n"
    statistic : {"median", "mean", "max", "min"}, default="median"
        Over the seeds.
    alpha : float, default=0.05

    Examples
    --------
    >>> compare_rows(pd.DataFrame(columns=list(COLUMNS))).notes
    ['There are 0 methods with results on 0 common data sets: nothing can be tested.']
    """
    table = pivot(rows, measure, statistic)
    if methods is not None:
        table = table.reindex(columns=pd.Index(methods, name="method"))
    return compare_table(table, alpha, missing_cells(rows, table))


@dataclass(frozen=True, eq=False)
class Lead:
    """Which method has the highest average precision, and how sure that is.

    Attributes
    ----------
    table : DataFrame
        One row per method, the best first: `value` (the mean over data sets of medians over seeds), `low` and `high`
        (its 95 % interval), `first` (the share of the draws in which it is the best), `behind` (by how much it is below
        the best), `behind_low` and `behind_high` (the interval of that difference). NaN where there are no draws.
    drawn : {"faults", "anomalies", "data sets"}
        What was drawn with replacement.
    n : int
        How many of these there are.

    Examples
    --------
    >>> table = pd.DataFrame({"value": [0.9, 0.7]}, index=["NS-NMF", "LoMST"])
    >>> Lead(table, "data sets", 20).count
    '20 data sets'
    """

    table: pd.DataFrame
    drawn: str
    n: int

    @property
    def count(self) -> str:
        """How many of these there are, in words."""
        one = {"faults": "fault", "anomalies": "anomaly", "data sets": "data set"}
        return f"{self.n:,} {one[self.drawn] if self.n == 1 else self.drawn}"

    @property
    def told_apart(self) -> list[str]:
        """Methods that are surely below the best: the interval of the difference does not hold 0."""
        return [str(name) for name in self.table.index[self.table["behind_low"] > 0]]


def find_lead(rows: pd.DataFrame) -> Lead | None:
    """Find the method with the highest average precision, with intervals by a bootstrap.

    Of several data sets these are drawn; of one its faults and stretches of time, or without times its rows: see
    `penstock.bench.resampled_precision`. Methods that saw the labels, or have no result on some data set, are left out.

    Parameters
    ----------
    rows : DataFrame
        `Results.rows`.

    Returns
    -------
    Lead or None
        None if no method has a result on all data sets.

    Examples
    --------
    >>> find_lead(pd.DataFrame(columns=list(COLUMNS))) is None
    True
    """
    fair = rows[~saw_labels(rows)]
    table = pivot(fair, "average_precision")
    table = table[table.notna().any(axis=1)].dropna(axis=1)
    if table.empty:
        return None
    done = fair[fair["status"] == "ok"]
    if len(table) > 1:
        drawn, n, draws = "data sets", len(table), resample_means(table)
    else:
        done = done[done["method"].isin(table.columns)]
        in_time = bool(done["faults"].notna().any())
        drawn, n = ("faults", int(done["faults"].max())) if in_time else ("anomalies", int(done["n_anomalies"].max()))
        # Of each draw the median over seeds.
        each = {method: [d.get("resampled", []) for d in some["detail"]] for method, some in done.groupby("method")}
        lengths = {len(values) for several in each.values() for values in several}
        complete = len(lengths) == 1 and lengths != {0}
        draws = pd.DataFrame({name: np.median(several, axis=0) for name, several in each.items()} if complete else {})
    found = pd.DataFrame({"value": table.mean()}).sort_values("value", ascending=False, kind="stable")
    best = found.index[0]
    found["behind"] = found["value"].loc[best] - found["value"]
    draws = draws.reindex(columns=found.index).astype("float64")
    tail = (1 - LEVEL) / 2
    behind = draws.rsub(draws[best], axis=0)
    for low, high, values in (("low", "high", draws), ("behind_low", "behind_high", behind)):
        found[low], found[high] = values.quantile(tail), values.quantile(1 - tail)
    top = draws.eq(draws.max(axis=1), axis=0)
    found["first"] = top.div(top.sum(axis=1), axis=0).mean() if len(draws) else np.nan
    return Lead(found, drawn, n)


def saw_labels(rows: pd.DataFrame) -> pd.Series[bool]:
    """Tell which rows are of a method that was given the labels: an oracle, not to be ranked with the others."""
    said = [isinstance(detail, dict) and bool(detail.get("uses_labels")) for detail in rows["detail"]]
    return pd.Series(said, index=rows.index, dtype="bool")


def method_summary(rows: pd.DataFrame) -> pd.DataFrame:
    """Summarise each method: means over data sets of each measure, the mean rank by P@N, and failures.

    Means are over the data sets that a method finished, `datasets` of `planned`: compare them only where these agree.
    Mean ranks are over those that all methods finished. Methods that saw the labels have no rank.

    >>> method_summary(pd.DataFrame(columns=list(COLUMNS))).shape[0]
    0
    """
    tables = {measure: pivot(rows, measure) for measure in _SUMMARISED}
    methods = tables["precision_at_n"].columns
    oracles = pd.unique(rows["method"][saw_labels(rows)])
    by_rank = compare_table(tables["precision_at_n"].drop(columns=oracles))
    found = pd.DataFrame(index=methods)
    found["datasets"] = tables["precision_at_n"].notna().sum()
    found["planned"] = rows.groupby("method")["dataset"].nunique().reindex(methods)
    for measure, table in tables.items():
        found[f"mean_{measure}"] = table.mean()
    found["mean_rank"] = by_rank.mean_ranks.reindex(methods)
    counts = failure_counts(rows).reindex(methods)
    found["failures"] = counts[["failed", "timed out", "killed"]].sum(axis=1)
    found["not_run"] = counts["not run"]
    return found.rename_axis(index="method")


def distinct_cells(rows: pd.DataFrame) -> pd.DataFrame:
    """Keep each cell of each method once, also if it was planned more than once."""
    return rows.drop_duplicates(["method", "dataset", "seed", "key"])


def failures(rows: pd.DataFrame) -> pd.DataFrame:
    """List all cells that did not end well, alike ones in one line: method, dataset, status, why, cells.

    >>> len(failures(pd.DataFrame(columns=list(COLUMNS))))
    0
    """
    return _counted(rows[rows["status"] != "ok"], ["method", "dataset", "status", "why"])


def failure_counts(rows: pd.DataFrame) -> pd.DataFrame:
    """Count how the cells of each method ended: ok, failed, timed out, killed, not run."""
    others = [status for status in pd.unique(rows["status"]) if status not in STATUSES]
    counted = distinct_cells(rows).groupby(["method", "status"], sort=False).size()
    table = counted.unstack("status") if len(counted) else pd.DataFrame()
    index = pd.Index(pd.unique(rows["method"]), name="method")
    return table.reindex(index=index, columns=pd.Index([*STATUSES, *others])).fillna(0).astype("int64")


def marks(rows: pd.DataFrame) -> pd.DataFrame:
    """List all cells that were computed in a documented other way: method, dataset, mark, cells."""
    return _counted(rows[rows["mark"] != ""], ["method", "dataset", "mark"])


def _counted(rows: pd.DataFrame, columns: list[str]) -> pd.DataFrame:
    counts = distinct_cells(rows).groupby(columns, sort=False).size().rename("cells").reset_index()
    return counts.reindex(columns=[*columns, "cells"]).astype({"cells": "int64"})
