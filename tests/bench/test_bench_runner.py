"""Studies run for real: methods that hang, crash and fail, runs that are killed and go on, nothing run twice."""

from __future__ import annotations

import gzip
import json
import os
import re
import resource
import shutil
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from bench_detectors import Place, fits, made_place, write_data
from waiting import PATIENCE, is_running, wait_for

from penstock import KNNDistance
from penstock.bench.results import (
    COLUMNS,
    MEASURES,
    ROWS_FILE,
    Results,
    RowsFile,
    read_results,
    read_rows,
)
from penstock.bench.runner import Progress, run_study
from penstock.bench.settings import Study
from penstock.io import TableError

pytestmark = pytest.mark.skipif(os.name != "posix", reason="signals and forks of POSIX")

COMMAND = [sys.executable, "-c", "import sys; from penstock.cli import main; sys.exit(main())"]


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Place]:
    folder = tmp_path_factory.mktemp("studies")
    with made_place(folder) as place:
        write_data(folder / "two.csv", n=60, seed=1)
        yield place


@pytest.fixture
def own_place(tmp_path: Path) -> Iterator[Place]:
    """A place for one test that changes it."""
    with made_place(tmp_path) as place:
        yield place


SOUND = """
    noted Noted
    other Noted parameters = { power = 3.0 }
    same Noted parameters = { power = 1.0 }
    sure Sure
    shuffled Sure order = "shuffled"
    few Sure rows = 30
    knn KNNDistance
"""
LIMIT = 3.0  # seconds: too few for those that sleep; the others, which a busy machine may delay, have PATIENCE
SLEEPING = ("hangs", "slow")
HARMFUL = """
    hangs Sleeps parameters = { power = 600.0 }; seeds = [0]
    slow Sleeps parameters = { power = 6.0 }; seeds = [0]
    raises Raises
    kills Kills
    crashes Crashes
    leaves Leaves
    looks Looks
    lost no_such_module.Detector
    broken broken_module.Detector
    ends ending_module.Detector
    wrong Sure parameters = { powr = 2 }
    solver NSNMF parameters = { solver = { BlockSGD = { rouns = 2 } } }
"""


@dataclass
class Run:
    place: Place
    study: Study
    folder: Path
    results: Results
    steps: list[Progress]

    def row(self, method: str, dataset: str = "one") -> pd.Series[Any]:
        rows = self.results.rows
        return rows[(rows["method"] == method) & (rows["dataset"] == dataset)].iloc[0]


@pytest.fixture(scope="module")
def run(place: Place) -> Run:
    """All that can happen, two cells at a time with three threads each; those that sleep come last."""
    folder = place.folder
    (folder / "broken_module.py").write_text("class Detector(:\n")
    (folder / "ending_module.py").write_text("raise SystemExit('no')\n")
    write_data(folder / "none.csv", anomalies=0)
    write_data(folder / "all.csv", n=6, anomalies=6)
    (folder / "cut.csv.gz").write_bytes(gzip.compress((folder / "one.csv").read_bytes())[:200])
    names = ("one.csv", "two.csv", "none.csv", "all.csv", "missing.csv", "cut.csv.gz", os.fsdecode(b"odd\xff.csv"))
    study = place.study(SOUND, [place.file(name) for name in names[:2]], title="All of it")
    harmful = [replace(method, datasets=(place.file("one.csv"),)) for method in place.study(HARMFUL).methods]
    (bad,) = place.study("bad Sure").methods
    bad = replace(bad, name="bad sets", datasets=tuple(place.file(name) for name in names[2:]))
    study = replace(study, methods=(*study.methods, *harmful, bad))
    steps: list[Progress] = []
    KNNDistance().fit(np.eye(9))  # compiled before the clock of a cell runs
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PENSTOCK_THREADS", "6")
        prompt = study.only(methods=[method.name for method in study.methods if method.name not in SLEEPING])
        run_study(replace(prompt, time_limit=PATIENCE), folder / "study", jobs=2, progress=steps.append)
        results = run_study(replace(study, time_limit=LIMIT), folder / "study", jobs=2, progress=steps.append)
    return Run(place, study, folder / "study", results, steps)


def test_rows_are_as_promised(run: Run) -> None:
    rows = run.results.rows
    assert tuple(rows.columns) == COLUMNS
    assert rows["seed"].dtype == "Int64"
    assert {str(rows[name].dtype) for name in ("n", "p", "n_anomalies")} == {"int64"}
    assert {str(rows[name].dtype) for name in MEASURES} == {"float64"}
    assert set(rows["status"]) == {"ok", "failed", "timed out", "killed"}
    done = rows["status"] == "ok"
    assert rows.loc[done, list(MEASURES)].notna().all(axis=None)
    assert rows.loc[~done, list(MEASURES)].isna().all(axis=None)
    assert (rows.loc[done, "why"] == "").all()
    assert (rows.loc[~done, "why"] != "").all()
    assert all(isinstance(detail, dict) for detail in rows["detail"])
    knn = run.row("knn", "two")
    assert (knn["n"], knn["p"], knn["n_anomalies"]) == (60, 3, 5)
    assert run.results.title == "All of it"
    assert run.results.settings_text == run.study.text
    assert set(run.results.versions or {}) >= {"python", "penstock", "numpy"}


def test_a_method_runs_with_all_seeds_if_chance_has_a_part(run: Run) -> None:
    rows = run.results.rows
    seeds = {method: list(part["seed"]) for method, part in rows[rows["dataset"] == "two"].groupby("method")}
    assert seeds["noted"] == seeds["shuffled"] == seeds["few"] == [0, 1]
    assert seeds["sure"] == seeds["knn"] == [pd.NA]
    assert set(rows.loc[rows["method"] == "few", "n"]) == {30}


def test_equal_cells_are_run_once(run: Run) -> None:
    counts = Counter(tuple(fit[:4]) for fit in fits(run.place.folder) if fit[0] == "Noted")
    assert counts["Noted", "1.0", "0", "40"] == 1  # "noted" and "same", which gives the default
    assert set(counts.values()) == {1}
    assert run.row("noted")["key"] == run.row("same")["key"] != run.row("other")["key"]
    assert run.row("noted")["roc_auc"] == run.row("same")["roc_auc"]


@pytest.mark.parametrize(
    ("method", "status", "why"),
    [
        ("hangs", "timed out", "stopped after the time limit of 3 s"),
        ("slow", "timed out", "stopped after the time limit of 3 s"),
        ("raises", "failed", "ArithmeticError: it is broken"),
        ("kills", "killed", r"ended by signal 9 \(SIGKILL\); was there too little memory\?"),
        ("crashes", "killed", r"ended by signal 11 \(SIGSEGV\)"),
        ("leaves", "killed", "ended with exit code 1 and no result"),
        ("looks", "ok", ""),
        ("lost", "failed", "install what provides the module 'no_such_module'"),
        ("broken", "failed", "broken_module.Detector cannot be .*SyntaxError"),
        ("ends", "failed", "ending_module.Detector cannot be .*SystemExit: no"),
        ("wrong", "failed", r"no parameter 'powr'\. Did you mean 'power'"),
        ("solver", "failed", "rouns"),
    ],
)
def test_what_a_method_does_is_reported_and_the_rest_goes_on(run: Run, method: str, status: str, why: str) -> None:
    row = run.row(method)
    assert row["status"] == status
    assert re.search(why, row["why"]), row["why"]


def test_what_is_wrong_with_data_is_reported(run: Run) -> None:
    rows = run.results.rows
    bad = rows[rows["method"] == "bad sets"].set_index("dataset")
    assert (bad["status"] == "failed").all()
    reasons = {Path(name).name: why for name, why in bad["why"].items()}
    assert "none has no anomaly" in reasons["none"]
    assert "all has nothing but anomalies" in reasons["all"]
    assert "missing.csv" in reasons["missing.csv"]
    assert "cut.csv.gz" in reasons["cut.csv.gz"]
    assert "odd?.csv" in reasons["odd?.csv"]
    assert len(reasons) == 5
    assert bad.loc["none", "n"] == 40
    assert (rows[rows["method"].isin([m.name for m in run.study.methods[:7]])]["status"] == "ok").all()


def test_what_hung_is_gone(run: Run) -> None:
    processes = {int(process) for fit in fits(run.place.folder) for process in fit[4:]}
    assert len(processes) > 10
    wait_for(lambda: not any(map(is_running, processes)))


def test_threads_are_limited(run: Run) -> None:
    assert (run.place.folder / "threads.txt").read_text().split() == ["1", "1", "1", "3", "3"]  # ours: of six, two jobs


def test_progress_is_told_of_every_cell(run: Run) -> None:
    n_cells = run.results.rows["key"].nunique()
    assert [step.done for step in run.steps] == list(range(1, n_cells + 1))
    n_prompt = run.results.rows.query("method not in @SLEEPING")["key"].nunique()
    assert {(step.total, step.kept) for step in run.steps} == {(n_prompt, 0), (n_cells, n_prompt)}
    assert {step.cell.key for step in run.steps} == set(run.results.rows["key"])


def test_a_second_run_runs_nothing(run: Run) -> None:
    before, content = fits(run.place.folder), (run.folder / ROWS_FILE).read_bytes()
    steps: list[Progress] = []
    again = run_study(replace(run.study, time_limit=LIMIT), run.folder, progress=steps.append)
    assert fits(run.place.folder) == before
    assert (run.folder / ROWS_FILE).read_bytes() == content
    assert not steps
    pd.testing.assert_frame_equal(again.rows, run.results.rows)
    assert again.started == run.results.started


@pytest.mark.slow
def test_a_higher_limit_and_a_retry_run_what_they_should(run: Run, tmp_path: Path) -> None:
    folder = tmp_path / "study"
    shutil.copytree(run.folder, folder)
    study = run.study.only(methods=["slow", "raises", "sure"])
    before = len(fits(run.place.folder))
    run_study(replace(study, time_limit=0.5), folder)  # a lower one changes nothing
    assert len(fits(run.place.folder)) == before
    rows = run_study(replace(study, time_limit=30), folder).rows.set_index("method")
    assert [fit[0] for fit in fits(run.place.folder)[before:]] == ["Sleeps"]
    assert rows.loc["slow", "status"] == "ok"
    assert rows.loc["raises", "status"] == "failed"
    (run.place.folder / "mended").touch()
    rows = run_study(replace(study, time_limit=30), folder, retry=True).rows.set_index("method")
    assert [fit[0] for fit in fits(run.place.folder)[before:]] == ["Sleeps", "Raises"]
    assert rows.loc["raises", "status"] == "ok"
    assert rows.loc["raises", "why"] == ""
    assert np.isfinite(rows.loc["raises", "roc_auc"])


def test_results_of_a_study_that_is_not_finished(run: Run, tmp_path: Path) -> None:
    folder = tmp_path / "study"
    shutil.copytree(run.folder, folder)
    lines = (folder / ROWS_FILE).read_bytes().splitlines(keepends=True)
    (folder / ROWS_FILE).write_bytes(b"".join(lines[:9]) + lines[9][:20])
    rows = read_results(folder).rows
    assert rows[rows["status"] != "not run"]["key"].nunique() == 9
    waiting = rows[rows["status"] == "not run"]
    assert (waiting["why"] == "").all()
    assert waiting[list(MEASURES)].isna().all(axis=None)
    (folder / ROWS_FILE).unlink()
    assert set(read_results(folder).rows["status"]) == {"not run"}


# ---- Interrupted


def start_command(place: Place, methods: str, seeds: int) -> subprocess.Popen[str]:
    config = place.folder / "study.toml"
    config.write_text(place.study(methods, seeds=seeds).text)
    arguments = ["bench", "--config", str(config), "--folder", "study", "--jobs", "2"]
    return subprocess.Popen(
        [*COMMAND, *arguments], cwd=place.folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )


def processes_of(place: Place) -> set[int]:
    return {int(process) for fit in fits(place.folder) for process in fit[4:]}


def test_killed_in_the_middle_and_taken_up_again(own_place: Place) -> None:
    methods = "waits Waits\nsleeps Sleeps parameters = { power = 0.3 }\nsure Sure"
    process = start_command(own_place, methods, seeds=10)
    rows = own_place.folder / "study" / ROWS_FILE
    try:
        wait_for(
            lambda: (
                rows.exists()
                and rows.read_bytes().count(b"\n") >= 4
                and "Waits" in [fit[0] for fit in fits(own_place.folder)]
            )
        )
    finally:
        process.kill()
        process.communicate()
    wait_for(lambda: not any(map(is_running, processes_of(own_place))))  # none goes on alone
    written = read_rows(own_place.folder / "study")
    assert 4 <= len(written) < 12
    before = fits(own_place.folder)
    (own_place.folder / "mended").touch()
    results = run_study(own_place.study(methods, seeds=10), own_place.folder / "study", jobs=1)
    assert (results.rows["status"] == "ok").all()
    assert len(results.rows) == 12
    assert set(written) < set(results.rows["key"])
    anew = fits(own_place.folder)[len(before) :]
    assert len(anew) == 12 - len(written)  # none that was written is repeated
    assert read_rows(own_place.folder / "study").keys() == set(results.rows["key"])


@pytest.mark.slow
def test_ctrl_c_leaves_no_process_behind(own_place: Place) -> None:
    process = start_command(own_place, "hangs Sleeps parameters = { power = 600.0 }", seeds=2)
    try:
        wait_for(lambda: len(fits(own_place.folder)) == 2)
        process.send_signal(signal.SIGINT)
        _, errors = process.communicate(timeout=300)
    finally:
        process.kill()
    assert process.returncode == 130
    assert errors == "penstock: stopped; what is done is kept, the same command goes on from here\n"
    wait_for(lambda: not any(map(is_running, processes_of(own_place))))
    assert read_rows(own_place.folder / "study") == {}
    assert set(read_results(own_place.folder / "study").rows["status"]) == {"not run"}


def test_a_limit_shorter_than_any_start(own_place: Place) -> None:
    study = own_place.study("hangs Sleeps parameters = { power = 600.0 }; seeds = [0]", time_limit=0.05)
    (row,) = run_study(study, own_place.folder / "study", jobs=1).rows.to_dict("records")
    assert (row["status"], row["why"]) == ("timed out", "stopped after the time limit of 0.05 s")


@pytest.mark.slow
def test_a_worker_that_is_killed_is_replaced(own_place: Place) -> None:
    study = own_place.study("orphan KillsItsParent\nsure Sure")
    rows = run_study(study, own_place.folder / "study", jobs=1).rows.set_index("method")
    assert (rows.loc["orphan", "status"], rows.loc["orphan", "why"]) == ("killed", "its worker was killed")
    assert rows.loc["sure", "status"] == "ok"
    wait_for(lambda: not any(map(is_running, processes_of(own_place))))


# ---- The file of outcomes


def some(key: str, **more: object) -> dict[str, object]:
    return {"key": key, "status": "ok"} | more


def written(folder: Path, *outcomes: dict[str, object]) -> bytes:
    with RowsFile(folder) as file:
        for outcome in outcomes:
            file.append(outcome)
    return (folder / ROWS_FILE).read_bytes()


def test_what_is_appended_is_read(tmp_path: Path) -> None:
    folder = tmp_path / "made" / "for it"
    assert read_rows(folder) == {}
    odd = os.fsdecode(b"no file \xff.csv")
    written(folder, some("a", status="failed"), some("b", why="„ä“ \n"), some("d", why=odd))
    assert written(folder, some("c"), some("a")).count(b"\n") == 5
    found = read_rows(folder)
    assert found == {"a": some("a"), "b": some("b", why="„ä“ \n"), "d": some("d", why=odd), "c": some("c")}


@pytest.mark.parametrize("left", [1, 20, 200])
def test_a_line_that_was_cut_off_is_dropped_and_overwritten(tmp_path: Path, left: int) -> None:
    long = some("a", why="x" * 300)
    whole = written(tmp_path, long)
    (tmp_path / ROWS_FILE).write_bytes(whole + whole[:left])
    assert read_rows(tmp_path) == {"a": long}
    assert (tmp_path / ROWS_FILE).read_bytes() == whole + whole[:left]  # reading changes nothing
    assert written(tmp_path, some("b")) == whole + json.dumps(some("b")).encode() + b"\n"


@pytest.mark.parametrize("damage", [b"{", b"[1]", b'{"status": "ok"}', b"\xff\xfe", b'{"key": [1]}'])
def test_a_damaged_line_is_named(tmp_path: Path, damage: bytes) -> None:
    line = json.dumps(some("a")).encode()
    (tmp_path / ROWS_FILE).write_bytes(b"\n".join([line, b" ", damage, line, b""]))
    with pytest.raises(TableError, match=r"rows\.jsonl, line 3: not the outcome of a cell.*delete the line"):
        read_rows(tmp_path)
    (tmp_path / ROWS_FILE).write_bytes(b"\n".join([line, b" ", b"", line, b""]))
    assert list(read_rows(tmp_path)) == ["a"]


def test_what_json_cannot_hold_is_refused_and_nothing_written(tmp_path: Path) -> None:
    with RowsFile(tmp_path) as file:
        file.append(some("a"))
        with pytest.raises(ValueError, match="JSON"):
            file.append(some("b", roc_auc=float("nan")))
        file.append(some("c"))
    assert list(read_rows(tmp_path)) == ["a", "c"]


def test_a_full_disk_leaves_whole_lines_and_takes_the_rest_once_there_is_room(tmp_path: Path) -> None:
    def fill(file: RowsFile) -> None:
        for number in range(20):
            file.append(some(str(number), why="x" * (60 + number)))

    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    with RowsFile(tmp_path) as file:
        resource.setrlimit(resource.RLIMIT_FSIZE, (1000, limits[1]))
        try:
            with pytest.raises(OSError, match=r"could not be written \(File too large\); make room and run the study"):
                fill(file)
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, limits)
        assert (tmp_path / ROWS_FILE).read_bytes().endswith(b"\n")
        kept = list(read_rows(tmp_path))
        assert kept == [str(number) for number in range(len(kept))]
        assert 0 < len(kept) < 20
        file.append(some("later"))
    assert list(read_rows(tmp_path)) == [*kept, "later"]


def test_two_studies_cannot_write_at_once(tmp_path: Path) -> None:
    with RowsFile(tmp_path) as file:
        file.append(some("a"))
        with pytest.raises(RuntimeError, match=r"rows\.jsonl is in use by another study"):
            RowsFile(tmp_path)
        file.append(some("b"))
    assert list(read_rows(tmp_path)) == ["a", "b"]
    written(tmp_path, some("c"))  # it is free again
