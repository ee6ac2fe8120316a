"""`penstock detect` and `fit` with `--engine`: on workers of a real cluster, and where there is none."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from detect_tables import left_behind, plant

from penstock.cli import main
from penstock.detection import detect, fit_model, load

distributed = pytest.importorskip("distributed")
psutil = pytest.importorskip("psutil")

PAPERS = ["--method", "nsnmf", "--similarity", "relative"]


@pytest.fixture
def table(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.chdir(tmp_path)
    plant().to_csv("plant.csv", index=False)
    return "plant.csv"


@pytest.fixture
def cluster(client: Any) -> str:
    """The address of a cluster of somebody else's, as `--engine` takes it."""
    return str(client.scheduler.address).replace("tcp://", "dask://")


def test_workers_on_this_machine(table: str, cluster: str, capfd: pytest.CaptureFixture[str]) -> None:
    before = set(psutil.Process().children(recursive=True))
    files = ["-o", "findings.json", "--report", "report.html"]
    options = [*PAPERS, "-K", "2", "--top", "8", "--exclude", "fault", *files]
    assert main(["detect", table, "--engine", "dask", *options]) == 0
    shown = capfd.readouterr()
    assert shown.err == ""
    assert "Worth knowing" not in shown.out  # such as that another cluster has the usual port
    document = json.loads(Path("findings.json").read_text())
    assert {row["row"] for row in document["findings"][:5]} == set(range(300, 305))
    assert document["settings"]["engine"] == "dask"
    assert "</html>" in Path("report.html").read_text("utf-8")
    assert set(psutil.Process().children(recursive=True)) <= before


@pytest.mark.slow
def test_a_cluster_fits_every_mode(table: str, cluster: str, capfd: pytest.CaptureFixture[str]) -> None:
    Path("fit.toml").write_text(
        f'engine = "{cluster}"\nmethod = "nsnmf"\nsimilarity = "relative"\n'
        'mode = ["high: head > 26", "low: head <= 26"]\n'
    )
    assert main(["fit", table, "--config", "fit.toml", "--exclude", "fault", "-m", "plant.model"]) == 0
    shown = capfd.readouterr()
    assert shown.err == ""
    assert "NSNMF was fitted to 400 rows of 4 inputs in 2 operating modes." in shown.out
    model = load("plant.model")
    assert model.settings["engine"] == cluster
    assert set(model.score(table).top(5).index) == set(range(300, 305))


def test_the_library_fits_as_it_is_told(table: str) -> None:
    fitted: list[int] = []

    def fit_rows(detector: Any, rows: Any) -> None:
        detector.fit(rows)
        fitted.append(len(rows))

    options: dict[str, Any] = {"method": "norm", "modes": {"high": "head > 26", "low": "head <= 26"}}
    told, usual = detect(table, **options, fit_rows=fit_rows), detect(table, **options)
    np.testing.assert_array_equal(told.scores, usual.scores)
    assert told.settings == usual.settings
    assert sum(fitted) == 400
    assert len(fitted) == 2
    fit_model(table, **options, fit_rows=fit_rows)
    assert len(fitted) == 4


def test_the_local_engine_is_the_usual_one(table: str) -> None:
    for name, option in (("a.json", []), ("b.json", ["--engine", "local"])):
        assert main(["detect", table, "--method", "norm", "-q", "-o", name, *option]) == 0
    assert Path("a.json").read_bytes() == Path("b.json").read_bytes()
    assert "engine" not in json.loads(Path("a.json").read_text())["settings"]


@pytest.mark.parametrize(
    "engine",
    ["", "spark", "dask:", "dask://:8786", "dask://host:65536", "dask://me:secret@host:1", "tcp://host:8786"],
)  # fmt: skip
def test_other_engines(table: str, engine: str, capfd: pytest.CaptureFixture[str]) -> None:
    before = left_behind(Path())
    assert main(["detect", table, *PAPERS, "--engine", engine, "-o", "findings.csv"]) == 2
    shown = capfd.readouterr()
    assert shown == ("", f"penstock: --engine must be local, dask or dask://HOST:PORT; got {engine!r}.\n")
    assert left_behind(Path()) == before
    Path("fit.toml").write_text(f"engine = '{engine}'\n")
    assert main(["fit", table, "--config", "fit.toml", "-m", "plant.model"]) == 2
    assert capfd.readouterr().err.startswith("penstock: fit.toml: engine must be local, dask or dask://HOST:PORT; got")


@pytest.mark.parametrize("method", ["lomst", "online"])
def test_methods_that_a_cluster_cannot_fit(table: str, method: str, capfd: pytest.CaptureFixture[str]) -> None:
    assert main(["detect", table, "--engine", "dask", "--method", method]) == 2
    assert capfd.readouterr().err == (
        f"penstock: --engine dask cannot fit --method {method}, only detector, sensors, nsnmf. Choose "
        f"one of these, or --engine local.\n"
    )


def test_missing_values(table: str, cluster: str, capfd: pytest.CaptureFixture[str]) -> None:
    holes = plant()
    holes.loc[[7, 8], "head"] = np.nan
    holes.to_csv(table, index=False)
    assert main(["detect", table, *PAPERS, "--engine", cluster, "--exclude", "fault"]) == 2
    assert capfd.readouterr().err == (
        f"penstock: --engine {cluster} takes no missing values, and 2 of 400 training rows have some, in 1 input. Use "
        f"--engine local, which takes them, fill them, or leave out such columns (--exclude).\n"
    )


def test_no_scheduler_at_the_address(
    table: str, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    impatient = distributed.Client
    monkeypatch.setattr(distributed, "Client", lambda address, **how: impatient(address, **{**how, "timeout": "1s"}))
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        port = unused.getsockname()[1]
        assert main(["detect", table, *PAPERS, "--engine", f"dask://127.0.0.1:{port}"]) == 2
    shown = capfd.readouterr().err
    assert shown.startswith(f"penstock: --engine: There is no Dask scheduler at tcp://127.0.0.1:{port}: ")
    assert shown.count("\n") == 1


def test_a_cluster_that_goes_away(
    table: str, cluster: str, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    def cut_off(detector: Any, rows: Any, client: Any, progress: Any) -> None:
        running = client.submit(time.sleep, 0.5)
        client.cancel(running, force=True)
        running.result()

    monkeypatch.setattr("penstock.scale.fit", cut_off)
    assert main(["detect", table, *PAPERS, "--engine", cluster, "-o", "findings.csv"]) == 2
    assert capfd.readouterr().err.startswith("penstock: --engine: The cluster has dropped the work.")
    assert not Path("findings.csv").exists()


def test_progress_is_told_as_a_stage(table: str, cluster: str, monkeypatch: pytest.MonkeyPatch) -> None:
    told: list[str] = []
    monkeypatch.setattr("penstock.cli._console.Stages.__call__", lambda self, stage: told.append(stage))
    assert main(["detect", table, "--engine", cluster, "--method", "nsnmf", "-q"]) == 0
    assert f"connecting to {cluster.replace('dask', 'tcp')}" in told
    assert "looking at the rows, 1 of 1" in told


def test_without_the_extra(table: str, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setitem(sys.modules, "distributed", None)
    assert main(["detect", table, *PAPERS, "--engine", "dask"]) == 2
    assert capfd.readouterr().err == (
        "penstock: --engine: Fitting on a cluster needs the extra 'dask': pip install 'penstock[dask]'\n"
    )


ENDLESS_FIT = """
import sys, time
from penstock import scale
from penstock.cli import main
def endless(detector, rows, client, progress, **order):
    running = client.submit(time.sleep, 600)
    while not any(client.processing().values()):
        time.sleep(0.05)
    print("fitting", flush=True)
    running.result()
scale.fit = endless
sys.exit(main(sys.argv[1:]))
"""


@pytest.mark.slow
@pytest.mark.skipif(os.name != "posix", reason="signals")
@pytest.mark.parametrize(
    ("number", "to_all", "code"),
    [(signal.SIGINT, True, 130), pytest.param(signal.SIGTERM, False, 143, marks=pytest.mark.slow)],
)
def test_signals_leave_no_workers(table: str, number: int, to_all: bool, code: int) -> None:
    before = left_behind(Path())
    process = subprocess.Popen(
        [sys.executable, "-c", ENDLESS_FIT, "detect", table, "--engine", "dask", "-o", "findings.csv"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    assert process.stdout
    assert process.stdout.readline() == "fitting\n"
    workers = psutil.Process(process.pid).children(recursive=True)
    assert len(workers) > 1
    if to_all:  # as a terminal does
        os.killpg(process.pid, number)
    else:
        process.send_signal(number)
    _, errors = process.communicate(timeout=300)
    assert (process.returncode, errors) == (code, "")
    assert [worker for worker in workers if not _ends(worker)] == []
    assert left_behind(Path()) == before


def _ends(process: Any) -> bool:
    """Whether a process is over soon; one that is may be listed until its parent, now another, takes notice."""
    deadline = time.monotonic() + 300
    while time.monotonic() < deadline:
        try:
            if not process.is_running() or process.status() == psutil.STATUS_ZOMBIE:
                return True
        except psutil.NoSuchProcess:
            return True
        time.sleep(0.05)
    return False
