"""Workers that are killed in the middle of a task cost time, and nothing else: the result is that of a quiet run."""

from __future__ import annotations

import os
import signal
import threading
import time
from concurrent.futures import CancelledError
from types import SimpleNamespace

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from dask import config
from distributed import KilledWorker
from scale_kills import FACTORISATION, ROWS, TREE, kill_workers, killing, random_aims, wait_for_all_workers
from waiting import is_running, wait_for

from penstock import NSNMF, scale
from penstock.io import TableError
from penstock.scale import cluster as cluster_module
from penstock.scale import factor_fit

pytestmark = [
    pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning"),
    pytest.mark.filterwarnings("ignore::penstock.CollapsedFactorsWarning"),
]

N_ROWS = 20_000  # tasks of tens of milliseconds: long enough to be hit
PATTERNS = [*ROWS, *TREE, *FACTORISATION]
LONGEST_DELAY = 60.0  # seconds that a kill may cost a run


class Ground:
    """A cluster, a table, and what an undisturbed fit makes of it."""

    def __init__(self, client, marks, folder):
        self.client, self.marks, self.source = client, marks, folder / "rows.parquet"
        rng = np.random.default_rng(0)
        X = rng.random((N_ROWS, 4)) @ rng.random((4, 6)) + 0.01 * rng.random((N_ROWS, 6))
        X[500:700] = X[100:300]
        table = pa.table({f"sensor{column}": X[:, column] for column in range(6)})
        pq.write_table(table, self.source, row_group_size=2500)
        self.fit()  # workers load libraries and compile kernels
        began = time.monotonic()
        self.undisturbed = self.fit()
        self.fit_seconds = time.monotonic() - began

    def fit(self, **options):
        detector = NSNMF(n_components=3, max_iter=12, random_state=0)
        return scale.fit(detector, self.source, self.client, n_parts=6, **options)

    def assert_same(self, detector):
        expected = self.undisturbed
        np.testing.assert_array_equal(detector.tree_.edges, expected.tree_.edges)
        np.testing.assert_array_equal(detector.tree_.lengths, expected.tree_.lengths)
        for name in ("embedding_", "components_", "scores_", "threshold_"):
            np.testing.assert_allclose(
                getattr(detector, name), getattr(expected, name), rtol=1e-12, atol=1e-12, err_msg=name
            )


@pytest.fixture(scope="module")
def ground(client, marks, tmp_path_factory):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(factor_fit, "_CHECKPOINT_EVERY", 3)
        yield Ground(client, marks, tmp_path_factory.mktemp("faults"))


def run_through(ground, work, patterns, seed):
    """Do the work while tasks of these names are hit; once more if one was too quick to be hit."""
    for turn in range(3):
        result, missed = strike(ground, work, patterns, seed + 1000 * turn)
        if not missed:
            return result
    raise AssertionError(f"not hit in three runs: {missed}")


def strike(ground, work, patterns, seed):
    """The result of the work, and the aims that nothing was hit with."""
    began = time.monotonic()
    with killing(ground.client, ground.marks, random_aims(np.random.default_rng(seed), patterns)) as killer:
        result = work()
        seconds = time.monotonic() - began
    hits = [f"{kill.key} of process {kill.pid} after {1000 * kill.delay:.0f} ms" for kill in killer.kills]
    print(f"seed {seed}, {seconds:.1f} s (undisturbed {ground.fit_seconds:.1f} s), {killer.misses} too late; {hits}")
    assert len(killer.kills) + len(killer.aims) == len(patterns)
    assert not any(is_running(kill.pid) for kill in killer.kills)
    assert all(killer.given[kill.key] >= 2 for kill in killer.kills), "a task was not run again"
    assert seconds < ground.fit_seconds + LONGEST_DELAY * len(patterns)
    return result, killer.aims


@pytest.mark.slow
@pytest.mark.parametrize("number", range(len(PATTERNS)))
def test_three_kills_in_a_fit(ground, number):
    """Every kind of task is hit three times in all, in company of others each time."""
    chosen = sorted((number + shift) % len(PATTERNS) for shift in (0, 5, 9))
    ground.assert_same(run_through(ground, ground.fit, [PATTERNS[place] for place in chosen], seed=100 + number))


@pytest.mark.slow
@pytest.mark.parametrize("stage", ["edges between parts", "factorising"])
def test_all_workers_killed_at_once(ground, stage):
    killed = []

    def strike(now, done, total):
        if now == stage and done >= 1 and not killed:
            killed.extend(kill_workers(ground.client.cluster, 2))

    detector = ground.fit(progress=strike)
    assert len(killed) == 2
    assert not any(is_running(pid) for pid in killed)
    ground.assert_same(detector)
    wait_for_all_workers(ground.client)


@pytest.mark.slow
def test_workers_that_are_gone_for_good_end_the_fit(ground, monkeypatch):
    gone_at = []

    def strike(now, done, total):
        if now == "trees of parts" and not gone_at:
            client.cluster.scale(0)
            wait_for(lambda: not client.scheduler_info(n_workers=-1)["workers"])
            monkeypatch.setattr(cluster_module, "_DEADLINE", 2.0)
            gone_at.append(time.monotonic())

    detector = NSNMF(n_components=3, random_state=0)
    with scale.local_client(n_workers=1, memory_limit="2GiB") as client:
        with pytest.raises(scale.ClusterError, match="All workers have been gone for 2 s"):
            scale.fit(detector, ground.source, client, n_parts=6, progress=strike)
        assert time.monotonic() - gone_at[0] < 15
        monkeypatch.undo()  # closing may take longer
    assert not hasattr(detector, "scores_")


@pytest.mark.slow
def test_workers_that_stay_paused_end_the_fit(ground, monkeypatch):
    """Dask pauses a worker that is near its memory limit, and never asks it again if it stays there."""
    detector = NSNMF(n_components=3, random_state=0)
    with (
        config.set({"distributed.worker.memory.pause": 0.001}),
        scale.local_client(n_workers=1, memory_limit="2GiB") as client,
    ):
        monkeypatch.setattr(cluster_module, "_DEADLINE", 2.0)
        with pytest.raises(scale.ClusterError, match="All workers have been paused for 2 s, because their memory"):
            scale.fit(detector, ground.source, client)
        monkeypatch.undo()  # closing may take longer
    assert not hasattr(detector, "scores_")


@pytest.mark.slow
def test_a_restarted_cluster_is_said_to_have_dropped_the_tasks(ground):
    def restart(now, done, total):
        if now == "trees of parts":
            ground.client.restart()

    with pytest.raises(scale.ClusterError, match="dropped the task"):
        ground.fit(progress=restart)
    wait_for_all_workers(ground.client)


# --- what never answers


def test_a_scheduler_that_does_not_answer(client, monkeypatch, tmp_path):
    monkeypatch.setattr(cluster_module, "_START_DEADLINE", 1.0)
    cluster, answer = cluster_module.Cluster(client, print), threading.Event()
    client.loop.add_callback(answer.wait)
    try:
        for wait, whom in (
            (lambda: cluster._ask("The scheduler", client.scheduler.identity, seconds=1.0), "The scheduler"),
            (cluster.check, "A worker"),
            (lambda: cluster.check_sees(tmp_path), "A worker"),
        ):
            with pytest.raises(scale.ClusterError, match=f"{whom} did not answer within 1 s"):
                wait()
    finally:
        answer.set()


def test_a_worker_that_does_not_answer(client, monkeypatch):
    monkeypatch.setattr(cluster_module, "_START_DEADLINE", 1.0)
    pid = next(iter(client.cluster.workers.values())).pid
    os.kill(pid, signal.SIGSTOP)
    try:
        with pytest.raises(scale.ClusterError, match="A worker did not answer within 1 s"):
            cluster_module.Cluster(client, print).check()
    finally:
        os.kill(pid, signal.SIGCONT)


@pytest.mark.slow
def test_a_task_that_nobody_works_on(client, monkeypatch):
    monkeypatch.setattr(cluster_module, "_DEADLINE", 4.0)
    stuck = client.submit(int, workers=["tcp://127.0.0.1:1"], pure=False)
    with pytest.raises(scale.ClusterError, match="No worker has been at work for 4 s, with 1 tasks unfinished"):
        cluster_module.Cluster(client, print).collect("waiting", [stuck])


def test_closing_that_takes_too_long_is_told():
    def close(timeout):
        raise TimeoutError

    with (
        pytest.warns(UserWarning, match="SimpleNamespace of Dask did not close within 60 s"),
        cluster_module._closed_in_time(SimpleNamespace(close=close)),
    ):
        pass


# --- results that are slow to come, with a client that only seems to be one


class Done:
    """A future whose task is done; `lost` is what comes of doing it again when its result is asked for."""

    def __init__(self, result, lost=None):
        self.key, self.status, self.result, self.lost, self.released = f"task-{result}", "finished", result, lost, False

    def add_done_callback(self, tell):
        tell(self)

    def exception(self, timeout):
        return self.lost

    def release(self):
        self.released = True


class SlowClient:
    """Fetches at most so many results in time, and none in the calls of these numbers."""

    status = "running"

    def __init__(self, most=10**9, slow_calls=()):
        self.most, self.slow_calls, self.asked, self.seconds = most, slow_calls, [], 0.0
        self.scheduler = SimpleNamespace(identity=lambda: {"workers": {"tcp://10.0.0.1:1": self.worker()}})

    def worker(self):
        return {"status": "running", "last_seen": 0.0, "metrics": {}}

    def sync(self, work, *arguments, callback_timeout):
        if work != self.gather:
            return work(*arguments)
        self.asked.append(len(arguments[0]))
        if self.asked[-1] > self.most or len(self.asked) - 1 in self.slow_calls:
            self.seconds += callback_timeout
            raise TimeoutError
        return work(*arguments)

    def gather(self, futures):
        for future in futures:
            if future.lost is not None:
                future.status = "error"
                raise future.lost
        return [future.result for future in futures]


def collect(client, futures):
    return cluster_module.Cluster(client, lambda *_: None).collect("fetching", futures)


def test_results_are_fetched_a_few_at_a_time():
    client, futures = SlowClient(most=16), [Done(number) for number in range(40)]
    assert collect(client, futures) == list(range(40))
    assert client.asked == [16, 16, 8]
    assert all(future.released for future in futures)


def test_results_that_never_come_in_time_end_the_wait():
    client = SlowClient(most=0)
    with pytest.raises(scale.ClusterError, match=r"did not come from the workers within 60 s.*goes on"):
        collect(client, [Done(number) for number in range(5)])
    assert client.asked == [5]
    assert client.seconds == 60


class LookedAtClient(SlowClient):
    """A worker that says what it does, or nothing; each look takes a second, and the task is done after so many."""

    def __init__(self, tasks, is_heard, task, n_looks=10**9):
        super().__init__()
        self.tasks, self.is_heard, self.n_looks, self.n_looked, self.task = tasks, is_heard, n_looks, 0, task
        task.status = "pending"

    def worker(self):
        self.n_looked += 1
        if self.n_looked == self.n_looks:
            self.task.status = "finished"
        heard = float(self.n_looked) if self.is_heard else 0.0
        return {"status": "running", "last_seen": heard, "metrics": {"task_counts": self.tasks}}

    def patient(self, monkeypatch):
        monkeypatch.setattr(cluster_module, "_POLL_SECONDS", 0.001)
        monkeypatch.setattr(cluster_module, "time", SimpleNamespace(monotonic=lambda: float(self.n_looked)))
        return collect(self, [self.task])


@pytest.mark.parametrize(("tasks", "is_heard"), [({"executing": 1}, True), ({"flight": 1}, True), ({}, False)])
def test_a_worker_that_is_or_may_be_at_work_is_waited_for(tasks, is_heard, monkeypatch):
    assert LookedAtClient(tasks, is_heard, Done(7), 200).patient(monkeypatch) == [7]


def test_a_worker_that_says_that_it_is_idle_is_not_waited_for(monkeypatch):
    client = LookedAtClient({"memory": 3}, True, Done(7))
    with pytest.raises(
        scale.ClusterError, match=r"at work for 60 s, with 1 tasks unfinished\. Restart the workers, and"
    ):
        client.patient(monkeypatch)
    assert 60 < client.n_looked < 70


@pytest.mark.parametrize(
    ("error", "raised", "match"),
    [
        (
            KilledWorker("task-1", SimpleNamespace(address="tcp://10.0.0.1:1"), 3),
            scale.ClusterError,
            "Workers died again and again in the task task-1:",
        ),
        (CancelledError(), scale.ClusterError, "The cluster has dropped tasks"),
        (TableError("the file is gone"), TableError, "the file is gone"),
        (TimeoutError("the file did not come"), TimeoutError, "the file did not come"),
    ],
)
def test_a_task_that_fails_when_it_is_done_again_as_its_result_is_fetched(error, raised, match):
    with pytest.raises(raised, match=match):
        collect(SlowClient(), [Done(0), Done(1, lost=error)])
