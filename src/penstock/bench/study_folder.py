"""The folder of a study: its settings, its plan, when and with what it was run, and (`rows_file`) its outcomes."""

from __future__ import annotations

import json
from collections.abc import Container, Iterable, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

from penstock.bench.circumstances import describe_run, now
from penstock.bench.overlap import Overlap
from penstock.bench.planning import Cell
from penstock.bench.results import Results, frame_of
from penstock.bench.rows_file import read_rows
from penstock.bench.settings import Study
from penstock.storage import replace_file

PLAN_FILE, RUN_FILE, SETTINGS_FILE = "plan.json", "run.json", "study.toml"


def begin(place: Path, study: Study, cells: Iterable[Cell], overlaps: Iterable[Overlap], done: Container[str]) -> None:
    """Write down what is to be run, before it is; when a study was begun is remembered from the first time.

    A run of a part of the study adds to the plan: what other runs have `done` in the folder stays in the report.
    """
    run = _read(place / RUN_FILE)
    if not run:
        _write(place / RUN_FILE, {"started": now(), "finished": "", "versions": {}, "machine": ""})
    replace_file(place / SETTINGS_FILE, [memoryview(study.text.encode("utf-8"))])
    planned = [cell.planned() for cell in cells]
    content = {
        "title": study.title,
        "options": study.options,
        "overlaps": [asdict(overlap) for overlap in overlaps],
        "cells": [*(_kept(place, planned, done) if study.options else []), *planned],
    }
    _write(place / PLAN_FILE, content)  # the last of them: where it is, so are the others


def _kept(place: Path, planned: list[dict[str, Any]], done: Container[str]) -> list[dict[str, Any]]:
    """Cells of earlier plans that have an outcome and are not planned anew."""
    now_planned = {_name(cell) for cell in planned}
    earlier = _read(place / PLAN_FILE).get("cells", [])
    return [cell for cell in earlier if cell["key"] in done and _name(cell) not in now_planned]


def _name(cell: Mapping[str, Any]) -> tuple[Any, ...]:
    return tuple(cell[name] for name in ("part", "method", "dataset", "seed"))


def conclude(place: Path, cells: Iterable[Cell]) -> None:
    """Write down with what cells were run, and that the last of them has ended."""
    started = str(_read(place / RUN_FILE).get("started") or now())
    _write(place / RUN_FILE, describe_run({cell.method.detector for cell in cells}, started))


def read_results(folder: str | Path) -> Results:
    """The results in a study's folder, finished or not, as they were planned and run there."""
    place = Path(folder)
    if not (place / PLAN_FILE).is_file():
        raise FileNotFoundError(
            f"There is no study in {place}: it has no {PLAN_FILE}. Run one with 'penstock bench --folder {place}'."
        )
    return collect(place, read_rows(place))


def collect(place: Path, outcomes: Mapping[str, Mapping[str, Any]]) -> Results:
    """The results of the study planned in a folder, given all outcomes by key."""
    plan, run = _read(place / PLAN_FILE), _read(place / RUN_FILE)
    if "cells" not in plan:
        raise ValueError(f"{place / PLAN_FILE} is damaged. Run the study again, which runs only what is missing.")
    return Results(
        rows=frame_of(plan["cells"], outcomes),
        title=plan["title"],
        versions=run.get("versions", {}),
        machine=run.get("machine", ""),
        started=run.get("started", ""),
        finished=run.get("finished", ""),
        settings_text=(place / SETTINGS_FILE).read_text(encoding="utf-8"),
        options=plan["options"],
        unplanned=len(set(outcomes) - {cell["key"] for cell in plan["cells"]}),
        overlaps=tuple(Overlap(**overlap) for overlap in plan["overlaps"]),
    )


def _read(path: Path) -> dict[str, Any]:
    """What a file holds; nothing if it is not there or not whole."""
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return content if isinstance(content, dict) else {}


def _write(path: Path, content: dict[str, Any]) -> None:
    replace_file(path, [memoryview(json.dumps(content, indent=1).encode("ascii"))])
