"""A driver that is killed goes on where it was, ends as if nothing had happened, and leaves no workers behind."""

from __future__ import annotations

import json
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
from waiting import is_running, wait_for

from penstock import NSNMF, scale
from penstock.factor import Coordinate
from penstock.scale import factor_fit
from penstock.scale.workspace import read_json, save_arrays, write_json
from penstock.storage import StorageError

pytestmark = [
    pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning"),
    pytest.mark.filterwarnings("ignore::penstock.CollapsedFactorsWarning"),
]

CHECKPOINT_EVERY = 3
DRIVER = Path(__file__).parents[1] / "support" / "scale_driver.py"


def some_rows(n=4000):
    rng = np.random.default_rng(0)
    X = rng.random((n, 3)) @ rng.random((3, 5)) + 0.01 * rng.random((n, 5))
    X[n // 4 : n // 4 + 50] = X[:50]
    return X


class Driver:
    """A fit in a process of its own, with workers of its own."""

    def __init__(self, folder, source, *, keep=True, **settings):
        self.pids_file = folder.with_suffix(".pids")
        task = {
            "source": str(source),
            "folder": str(folder) if keep else None,
            "checkpoint_every": CHECKPOINT_EVERY,
            "pids": str(self.pids_file),
            "result": str(folder.with_suffix(".npz")),
            "log": str(folder.with_suffix(".log")),
            **settings,
        }
        self.task = task
        self.process = subprocess.Popen([sys.executable, str(DRIVER), json.dumps(task)], stderr=subprocess.PIPE)

    def wait(self):
        errors = self.process.communicate(timeout=300)[1]
        return self.process.returncode, errors.decode()

    def worker_pids(self):
        return json.loads(self.pids_file.read_text())

    def assert_no_workers(self):
        pids = self.worker_pids()
        assert len(pids) == 2
        wait_for(lambda: not any(is_running(pid) for pid in pids))

    def tasks(self):
        """The names of the tasks that ran, each as often as it did."""
        return Path(self.task["log"]).read_text().split()

    def result(self):
        return dict(np.load(self.task["result"]))


@pytest.fixture(scope="module")
def source(tmp_path_factory):
    file = tmp_path_factory.mktemp("resume") / "rows.npy"
    np.save(file, some_rows())
    return file


@pytest.fixture(scope="module")
def uninterrupted(source, tmp_path_factory):
    driver = Driver(tmp_path_factory.mktemp("unbroken") / "job", source)
    code, errors = driver.wait()
    assert code == 0, errors
    driver.assert_no_workers()
    return driver


def assert_same(result, expected):
    assert result.keys() == expected.keys()
    for name, values in expected.items():
        np.testing.assert_allclose(result[name], values, rtol=1e-12, atol=1e-12, err_msg=name)


def count(kind, driver):
    return sum(task.startswith(f"{kind}:") for task in driver.tasks())


def kinds(tasks):
    return {task.split(":")[0] for task in tasks}


ROW_TASKS = {"measure-piece", "lay-piece", "spread-rows", "gather-part"}
TREE_TASKS = {"grow-part-tree", "join-two"}
SOLVED = ROW_TASKS | TREE_TASKS | {"draw-start", "extend-columns"}
# When to die (what is done, how much of it; or in the how-manieth task of which name), and which tasks must not be run
# again after it.
MOMENTS = {
    "rows": ("laying out the rows", 0, {"measure-piece"}),
    "parts": ("gathering parts", 2, {"measure-piece", "lay-piece"}),
    "trees": ("trees of parts", 2, ROW_TASKS),
    "burn-in": ("extend-columns", 5, ROW_TASKS | TREE_TASKS),
    "factors": ("factorising", 2 * CHECKPOINT_EVERY + 2, SOLVED),
    "third checkpoint": ("save-blocks", 6, SOLVED),  # the first is that of the starts
    "training scores": ("score-block", 2, SOLVED),
}


@pytest.mark.slow  # drivers of their own take long to start; those that stop on one cluster are below
@pytest.mark.parametrize("moment", list(MOMENTS))
def test_a_killed_driver_goes_on(moment, source, uninterrupted, tmp_path):
    *die_at, not_again = MOMENTS[moment]
    killed = Driver(tmp_path / "job", source, die_at=die_at)
    code, errors = killed.wait()
    assert code == -signal.SIGKILL, errors
    killed.assert_no_workers()
    assert not Path(killed.task["result"]).exists()
    kept, sweeps = written_files(tmp_path / "job"), count("sweep", killed)

    again = Driver(tmp_path / "job", source)
    code, errors = again.wait()
    assert code == 0, errors
    again.assert_no_workers()
    assert not kinds(again.tasks()) & not_again
    unchanged = [file for file, written in written_files(tmp_path / "job").items() if kept.get(file) == written]
    for done in finished(kept):
        assert done in unchanged
    if not_again == SOLVED:
        lost = 2 * (CHECKPOINT_EVERY + 2)  # two groups of blocks: what was done after the last checkpoint
        assert sweeps + count("sweep", again) <= count("sweep", uninterrupted) + lost
        assert count("sweep", again) < count("sweep", uninterrupted)
    assert_same(again.result(), uninterrupted.result())


def written_files(folder):
    return {str(file.relative_to(folder)): file.stat().st_mtime_ns for file in folder.rglob("*.npy")}


def finished(files):
    """What tasks have left for good: rows and trees of parts, and edges between them."""
    return [file for file in files if file.startswith(("part-", "tree-", "pair-", "tree/"))]


@pytest.mark.slow
def test_killed_at_a_random_moment_again_and_again(source, uninterrupted, tmp_path):
    """The kills come from outside, whatever the driver is at."""
    rng = np.random.default_rng(0)
    for number in range(6):
        driver = Driver(tmp_path / "job", source)
        wait_for(lambda current=driver: current.pids_file.exists())
        time.sleep(rng.uniform(0.5, 4.0))
        driver.process.kill()
        code, _ = driver.wait()
        print(f"kill {number}: ended with {code}")
        driver.assert_no_workers()
        driver.pids_file.unlink()
    last = Driver(tmp_path / "job", source)
    code, errors = last.wait()
    assert code == 0, errors
    assert_same(last.result(), uninterrupted.result())


@pytest.mark.slow
def test_ctrl_c_closes_workers_and_leaves_no_folder(source, tmp_path):
    driver = Driver(tmp_path / "job", source, keep=False, tempdir=str(tmp_path / "temporary"), max_iter=10_000)
    wait_for(lambda: "sweep:" in log_of(driver))
    driver.process.send_signal(signal.SIGINT)
    code, errors = driver.wait()
    assert code in (1, -signal.SIGINT)
    assert errors.rstrip().endswith("KeyboardInterrupt")
    driver.assert_no_workers()
    assert [file.name for file in (tmp_path / "temporary").iterdir()] in ([], ["dask-scratch-space"])


def log_of(driver):
    file = Path(driver.task["log"])
    return file.read_text() if file.exists() else ""


# --- on the same cluster


def detector():
    return NSNMF(n_components=2, solver=Coordinate(), max_iter=8, tol=1e-12, random_state=0)


def fit(client, folder, progress=None):
    return scale.fit(detector(), some_rows(600), client, folder=folder, n_parts=3, progress=progress)


@pytest.fixture(scope="module", autouse=True)
def checkpoints():
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(factor_fit, "_CHECKPOINT_EVERY", 2)
        yield


@pytest.fixture(scope="module")
def unbroken(client, checkpoints, tmp_path_factory):
    """A folder, and the detector that was fitted there."""
    folder = tmp_path_factory.mktemp("unbroken") / "job"
    return folder, fit(client, folder)


def test_stopped_and_taken_up_on_the_same_cluster(client, unbroken, tmp_path):
    """The error is kept, as a notebook keeps it: tasks of the first run must not be taken for those of the second."""
    errors, (_, expected) = [], unbroken
    for stop in (3, 6):

        def interrupt(stage, done, total, stop=stop):
            if stage == "factorising" and done == stop:
                raise KeyboardInterrupt

        try:
            fit(client, tmp_path / "job", interrupt)
        except KeyboardInterrupt as error:
            errors.append(error)
    assert len(errors) == 2
    found = fit(client, tmp_path / "job")
    np.testing.assert_array_equal(found.scores_, expected.scores_)
    np.testing.assert_array_equal(found.components_, expected.components_)


def test_half_a_checkpoint_is_not_mistaken_for_one(client, unbroken, tmp_path):
    """States that a killed driver left without saying so, of whatever moment, are not those of the next checkpoint."""

    def interrupt(stage, done, total):
        if stage == "factorising" and done == 3:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        fit(client, tmp_path / "job", interrupt)
    leave_half_a_checkpoint(tmp_path / "job")
    assert len(list((tmp_path / "job").glob("states-*"))) == 2
    found = fit(client, tmp_path / "job")
    np.testing.assert_array_equal(found.scores_, unbroken[1].scores_)
    assert len(list((tmp_path / "job").glob("states-*"))) == 1


def leave_half_a_checkpoint(job):
    """The next checkpoint's states of one block, other than they will be."""
    (folder,) = job.glob("states-*")
    states = {file.stem: 2 * np.load(file) for file in (folder / "0").glob("*.npy")}
    (job / "states-000999-dead").mkdir()
    save_arrays(job / "states-000999-dead" / "0", states)


def test_a_finished_job_is_not_done_again(client, unbroken):
    (folder, first), stages = unbroken, []
    again = fit(client, folder, lambda *report: stages.append(report[0]))
    np.testing.assert_array_equal(again.scores_, first.scores_)
    assert set(stages) <= {"factorising"}


def test_a_folder_of_another_release_is_refused(client, unbroken, tmp_path):
    shutil.copytree(unbroken[0], tmp_path / "job")
    write_json(tmp_path / "job" / "job.json", {**read_json(tmp_path / "job" / "job.json"), "penstock": "0.0.1"})
    with pytest.raises(StorageError, match="penstock was"):
        fit(client, tmp_path / "job")
