"""The study itself: settings → cells → outcomes on disk → results. What is done is not done again."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from penstock._threads import thread_count
from penstock.bench.cell import failed
from penstock.bench.chosen_rows import SIDE_PARTS
from penstock.bench.overlap import Overlap, find_overlaps
from penstock.bench.planning import Cell, job_of, plan
from penstock.bench.results import Results
from penstock.bench.rows_file import RowsFile, read_rows
from penstock.bench.settings import Study
from penstock.bench.study_folder import begin, collect, conclude
from penstock.bench.workers import run_jobs


@dataclass(frozen=True)
class Progress:
    """How far a study is: cells that are done of all, those kept from before among them, and the one just ended."""

    done: int
    total: int
    kept: int
    cell: Cell
    outcome: Mapping[str, Any]


def run_study(
    study: Study,
    folder: str | Path,
    *,
    jobs: int | None = None,
    retry: bool = False,
    progress: Callable[[Progress], None] | None = None,
) -> Results:
    """Run what is not yet done of a study, and return all of its results.

    Outcomes go to `rows.jsonl` in the folder as they come, so that an interrupted study goes on where it stopped.
    A cell is known by the content of its data, its parameters, its seed and the code it runs: it is run again only if
    one of these changed, if `retry` asks for those that failed, or if it was stopped by a lower time limit.

    Parameters
    ----------
    study : Study
        From `penstock.bench.settings_file.read_settings`.
    folder : path
        Where the results are kept; made if it is not there.
    jobs : int, optional
        How many cells run at a time, each on one thread (more, if there are more cores than jobs); by default as many
        as there are cores.
    retry : bool
        Run cells again that failed, timed out or were killed.
    progress : callable, optional
        Called after each cell.

    Raises
    ------
    OSError
        at the end, if outcomes could not be written (a full disk, say); all others are kept.
    """
    place = Path(folder)
    cells = list(plan(study))
    with RowsFile(place) as file:
        known = read_rows(place)
        begin(place, study, cells, _overlaps(cells), known)
        wanted = {cell.key: cell for cell in cells if _is_wanted(known.get(cell.key), study.time_limit, retry)}
        kept = len({cell.key for cell in cells}) - len(wanted)
        for done, (cell, outcome) in enumerate(_outcomes(wanted, jobs, study.time_limit), start=kept + 1):
            file.append({"method": cell.method.name, "dataset": cell.dataset, "seed": cell.seed} | outcome)
            known[cell.key] = dict(outcome)
            if progress is not None:
                progress(Progress(done, kept + len(wanted), kept, cell, outcome))
        file.flush()
        if file.trouble is not None:
            raise OSError(
                file.trouble.errno,
                f"{len(file.waiting)} outcomes could not be written ({file.trouble.strerror}); make room and run the "
                "study again, which runs only what is missing",
                str(file.path),
            )
        if wanted:
            conclude(place, cells)
    return collect(place, known)


def _overlaps(cells: list[Cell]) -> list[Overlap]:
    """Which of the data sets that methods are compared on share rows."""
    compared = [cell.data for cell in cells if cell.data is not None and cell.method.part not in SIDE_PARTS]
    return find_overlaps(list({data.name: data for data in compared}.values()))


def _is_wanted(outcome: Mapping[str, Any] | None, time_limit: float, retry: bool) -> bool:
    if outcome is None:
        return True
    if outcome["status"] == "ok":
        return False
    return retry or outcome.get("limit", time_limit) < time_limit


def _outcomes(wanted: dict[str, Cell], jobs: int | None, limit: float) -> Iterator[tuple[Cell, dict[str, Any]]]:
    for key, cell in wanted.items():
        if cell.trouble:
            yield cell, {"key": key, "mark": ""} | failed(cell.trouble)
    cores = thread_count()
    n_workers = max(1, cores if jobs is None else jobs)
    threads = max(1, cores // n_workers)
    runnable = [cell for cell in wanted.values() if not cell.trouble]
    # The large ones first: else a core idles at the end while the other works through the largest.
    runnable.sort(key=lambda cell: -cell.size)
    with closing(run_jobs((job_of(cell, threads) for cell in runnable), n_workers, limit)) as outcomes:
        for outcome in outcomes:
            yield wanted[outcome["key"]], outcome
