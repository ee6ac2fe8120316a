"""A fit on a cluster gives the detector that a fit on one machine gives, whatever the source; and what is refused."""

from __future__ import annotations

import pickle
import re
import resource
import stat
import tempfile
import threading
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from distributed import Client, SchedulerPlugin
from scale_fit_cases import NAMES, some_rows
from scale_kills import kill_workers, wait_for_all_workers
from waiting import wait_for

import penstock
from penstock import (
    NMF,
    NSNMF,
    CollapsedFactorsWarning,
    LaplacianNSNMF,
    LoMST,
    OverTime,
    load,
    minimum_spanning_tree,
    scale,
)
from penstock.factor import BlockSGD, Coordinate, Multiplicative, RowBlocks
from penstock.io import TableError
from penstock.scale import cluster as cluster_module
from penstock.scale import plan, sources, workspace
from penstock.scale import rows as rows_module
from penstock.scale.sources import open_source
from penstock.storage import StorageError

pytestmark = [
    pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning"),
    pytest.mark.filterwarnings("ignore::penstock.CollapsedFactorsWarning"),
]

N_BLOCKS = 3


ROWS = some_rows()


def fit(detector, source, client, **options):
    return scale.fit(detector, source, client, **{"n_parts": N_BLOCKS, **options})


def assert_same_fit(found, expected):
    if hasattr(expected, "tree_"):
        np.testing.assert_array_equal(found.tree_.edges, expected.tree_.edges)
        np.testing.assert_array_equal(found.tree_.lengths, expected.tree_.lengths)
    for name in ("embedding_", "components_", "scores_", "threshold_", "objective_", "explained_"):
        np.testing.assert_allclose(getattr(found, name), getattr(expected, name), rtol=1e-10, atol=1e-10, err_msg=name)
    assert found.n_iter_ == expected.n_iter_


# --- the same as on one machine

SETTINGS = [
    (NSNMF, {}),
    pytest.param(NSNMF, {"score_kind": "structural"}, marks=pytest.mark.slow),
    pytest.param(NSNMF, {"duplicates": "zero"}, marks=pytest.mark.slow),
    (NSNMF, {"duplicates": "floor", "similarity": "binary"}),
    pytest.param(NSNMF, {"scale": None}, marks=pytest.mark.slow),
]


@pytest.mark.parametrize(("kind", "parameters"), SETTINGS)
def test_as_on_one_machine(client, kind, parameters):
    common = {"n_components": 2, "max_iter": 6, "random_state": 0, **parameters}
    expected = kind(solver=RowBlocks(N_BLOCKS), **common).fit(ROWS)
    found = fit(kind(**common), ROWS, client)
    assert_same_fit(found, expected)
    if hasattr(expected, "tree_"):
        scaled = ROWS if found.scaling_ is None else found.scaling_.apply(ROWS)
        np.testing.assert_array_equal(found.tree_.edges, minimum_spanning_tree(scaled).edges)
        np.testing.assert_array_equal(found.tree_.lengths, minimum_spanning_tree(scaled).lengths)


def test_collapsed_factors_are_warned_of(client):
    X = np.random.default_rng(0).uniform(size=(300, 6))
    X[-6:] = X[:6] + 1e-3
    with pytest.warns(CollapsedFactorsWarning, match='similarity="normalized"'):
        assert fit(NSNMF(random_state=0), X, client).explained_ < 0.05


def test_the_tree_of_more_rows_in_more_parts(client):
    X = np.round(some_rows(3000, seed=1), 2)  # many ties
    found = fit(quick(n_components=1, max_iter=1), X, client, n_parts=11)
    tree = minimum_spanning_tree(found.scaling_.apply(X))
    np.testing.assert_array_equal(found.tree_.edges, tree.edges)
    np.testing.assert_array_equal(found.tree_.lengths, tree.lengths)


# --- sources


def parquet_list(folder):
    for number, rows in enumerate((ROWS[:250], ROWS[250:])):
        write(folder / f"{number}.parquet", rows)
    return [folder / "0.parquet", folder / "1.parquet"]


def write(path, rows, names=NAMES):
    pq.write_table(pa.table(dict(zip(names, rows.T, strict=True))), path, row_group_size=100)
    return path


SOURCES = {
    "pandas": (lambda folder: pd.DataFrame(ROWS, columns=NAMES), True),
    "parquet": (parquet_list, True),
}


@pytest.fixture(scope="module")
def reference(client):
    return fit(quick(), ROWS, client)


def quick(**options):
    return NSNMF(**{"n_components": 2, "solver": Coordinate(), "max_iter": 3, "random_state": 0, **options})


@pytest.mark.parametrize("kind", SOURCES)
def test_every_source_gives_the_same(client, reference, tmp_path, kind, monkeypatch):
    monkeypatch.setattr(sources, "PIECE_BYTES", 100 * 4 * 8)
    make, has_names = SOURCES[kind]
    found = fit(quick(), make(tmp_path), client)
    np.testing.assert_array_equal(found.tree_.edges, reference.tree_.edges)
    np.testing.assert_array_equal(found.scores_, reference.scores_)
    assert list(getattr(found, "feature_names_in_", [])) == (NAMES if has_names else [])


# --- the result


@pytest.mark.parametrize("keeps_files", [False, True])
def test_the_result_is_an_ordinary_detector(client, reference, tmp_path, keeps_files):
    found = fit(quick(), ROWS, client, folder=tmp_path / "job") if keeps_files else reference
    new = some_rows(200, seed=5)
    np.testing.assert_array_equal(found.anomaly_score(new), reference.anomaly_score(new))
    np.testing.assert_allclose(found.anomaly_score(ROWS), found.scores_, rtol=1e-9, atol=1e-12)
    assert found.top(1).index.tolist() == [37]
    found.save(tmp_path / "model")
    again = load(tmp_path / "model")
    np.testing.assert_array_equal(again.scores_, found.scores_)
    np.testing.assert_array_equal(again.anomaly_score(new), found.anomaly_score(new))
    assert lies_in_a_file(found.model_.factors.W) == keeps_files
    assert lies_in_a_file(found.model_.problem.objective.A) == keeps_files
    assert lies_in_a_file(found.tree_.edges) == keeps_files


def lies_in_a_file(array):
    while array is not None:
        if isinstance(array, np.memmap) or type(array).__name__ == "mmap":
            return True
        array = getattr(array, "base", None)
    return False


# --- refusals


@contextmanager
def refused(detector, error, match):
    """An error, after which the detector is as it was."""
    before = dict(vars(detector))
    with pytest.raises(error, match=match):
        yield
    assert vars(detector) == before


def test_detectors_that_do_not_work_by_blocks(client):
    for detector in (LoMST(), NMF(), LaplacianNSNMF(), OverTime()):
        with refused(
            detector, TypeError, f"{type(detector).__name__} cannot be fitted on a cluster; those that can: N"
        ):
            scale.fit(detector, ROWS, client)
    detector = NSNMF(tol=-1)
    with refused(detector, ValueError, "tol"):
        scale.fit(detector, ROWS, client)


def test_folders_of_others(client, tmp_path):
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "letter.txt").write_text("Dear")
    detector = quick()
    with refused(detector, StorageError, "is not empty and holds no job"):
        fit(detector, ROWS, client, folder=tmp_path / "mine")
    assert [file.name for file in (tmp_path / "mine").iterdir()] == ["letter.txt"]
    fit(quick(), ROWS, client, folder=tmp_path / "job")
    with refused(detector, StorageError, "holds another job: source was"):
        fit(detector, ROWS[1:], client, folder=tmp_path / "job")
    other = quick(alpha=0.25)
    with refused(other, StorageError, "holds another job: parameter"):
        fit(other, ROWS, client, folder=tmp_path / "job")


@pytest.mark.parametrize(
    ("value", "message"),
    [
        (np.nan, r"rows.parquet, row group 4: row 17 .*column 'load', holds no value"),
        (-1, "row group 4: row 17, column .* is -1"),
    ],
)
def test_a_value_that_cannot_be_is_named(client, tmp_path, value, message):
    rows = ROWS.copy()
    rows[417, 2] = value
    detector = quick(scale=None)
    with refused(detector, TableError, message):
        fit(detector, write(tmp_path / "rows.parquet", rows), client)


def test_workers_of_another_release(client, monkeypatch):
    monkeypatch.setattr(penstock, "__version__", "9.9")
    detector = quick()
    with refused(detector, scale.ClusterError, r"has penstock 0\..* \(here 9\.9\)"):
        fit(detector, ROWS, client)


def pretend_release(release):
    penstock.__version__ = release


def test_a_worker_of_another_release_that_takes_work_later(client):
    def change(stage, done, total):
        if stage == "trees of parts":
            client.run(pretend_release, "0.0.9")

    detector, ours = quick(), penstock.__version__
    try:
        with refused(detector, scale.ClusterError, rf"worker tcp.* has penstock 0\.0\.9 \(here {re.escape(ours)}\)"):
            fit(detector, ROWS, client, progress=change)
    finally:
        client.run(pretend_release, ours)


@pytest.mark.slow  # on workers of its own
def test_a_worker_of_another_release_that_joins_later():
    """The only one left, so that it is given work."""
    before = []

    def join(stage, done, total):
        if stage == "trees of parts" and not before:
            before.extend(client.scheduler_info(n_workers=-1)["workers"])
            client.cluster.new_spec["options"]["preload"] = ["import penstock; penstock.__version__ = '0.0.9'"]
            client.cluster.scale(2)
            client.wait_for_workers(2, timeout=300)
            client.retire_workers(before)

    detector = quick()
    with (
        scale.local_client(n_workers=1) as client,
        refused(detector, scale.ClusterError, r"worker tcp.* has penstock 0\.0\.9 \(here "),
    ):
        fit(detector, ROWS, client, progress=join)


@pytest.mark.slow  # on workers of its own
def test_a_cluster_that_is_closed_ends_the_fit():
    timers = []

    def close_soon(stage, done, total):
        if stage == "factorising" and not timers:
            timers.append(threading.Timer(0.2, client.cluster.close))
            timers[0].start()

    detector = NSNMF(n_components=3, max_iter=100_000, tol=1e-15, random_state=0)
    with scale.local_client(n_workers=1, memory_limit="2GiB") as client:
        with refused(detector, scale.ClusterError, r"was the cluster closed|was it closed"):
            fit(detector, some_rows(20_000), client, progress=close_soon)
        timers[0].join()


def test_a_cluster_without_workers(monkeypatch):
    monkeypatch.setattr(cluster_module, "_DEADLINE", 1.0)
    detector, told = quick(), []
    with (
        Client(processes=False, n_workers=0, dashboard_address=None, set_as_default=False) as empty,
        refused(detector, scale.ClusterError, r"has had no workers for 1 s\. Start some, and run the same call"),
    ):
        fit(detector, ROWS, empty, progress=lambda *what: told.append(what))
    assert set(told) == {("waiting for workers", 0, 1)}
    with refused(detector, scale.ClusterError, "The client is closed"):
        fit(detector, ROWS, empty)


def test_too_little_memory_is_said_before_any_work(client, monkeypatch):
    worker = {"nthreads": 1, "memory_limit": 100 * 2**20, "status": "running", "last_seen": 0.0, "metrics": {}}
    monkeypatch.setattr(cluster_module.Cluster, "workers", lambda cluster: {"tcp://10.0.0.1:1": worker})
    detector = quick()
    wait_for(lambda: tasks_held(client) == 0)  # of earlier tests
    with watched(client) as keys, refused(detector, scale.ClusterError, "0 MiB for each thread.* more memory"):
        fit(detector, ROWS, client, n_parts=None)
    assert not keys
    worker["memory_limit"] = (plan._AT_REST + 20 * 2**20) / plan._USABLE  # so that 20 MiB are left for rows
    with refused(detector, scale.ClusterError, "1 parts of .* do not fit into the workers' memory: at least"):
        fit(detector, np.ones((60_000, 4)), client, n_parts=1)


def test_too_few_rows(client):
    detector = quick()
    with refused(detector, ValueError, "needs at least 2 rows"):
        fit(detector, ROWS[:1], client)
    with refused(detector, TableError, "has no rows"):
        fit(detector, ROWS[:0], client)
    found = fit(detector, ROWS[:5], client, n_parts=9)
    assert (len(found.scores_), len(found.tree_.lengths)) == (5, 4)


@pytest.mark.filterwarnings("ignore:Only 1 of the rows differ")
def test_all_rows_equal(client):
    found = fit(quick(), np.ones((30, 4)), client)
    expected = quick().set_params(solver=RowBlocks(N_BLOCKS)).fit(np.ones((30, 4)))
    np.testing.assert_allclose(found.scores_, expected.scores_, atol=1e-10)


def test_an_error_of_the_caller_ends_the_fit_and_its_tasks(client, tmp_path, monkeypatch):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))  # ours alone, to see what is left

    def stop(stage, done, total):
        if stage == "factorising":
            raise KeyboardInterrupt

    detector = quick()
    with refused(detector, KeyboardInterrupt, None):
        fit(detector, ROWS, client, progress=stop)
    assert not client.futures
    assert not list(tmp_path.iterdir())


@pytest.mark.slow  # new workers load all libraries; a worker killed in mid-fit is in test_scale_series.py
def test_workers_killed_before_the_first_task(client, reference):
    kill_workers(client.cluster, 2)
    np.testing.assert_array_equal(fit(quick(), ROWS, client).scores_, reference.scores_)
    wait_for_all_workers(client)


def test_two_fits_at_once_do_not_meet(client, reference):
    """The second is begun and ended in the middle of the first."""
    inner = []

    def nested(stage, done, total):
        if stage == "factorising" and done == 2 and not inner:
            inner.append(fit(quick(n_components=1), ROWS, client))

    outer = fit(quick(), ROWS, client, progress=nested)
    np.testing.assert_array_equal(outer.scores_, reference.scores_)
    assert inner[0].n_components_ == 1


def test_many_parts_need_few_open_files(client, tmp_path):
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    detector = quick()
    resource.setrlimit(resource.RLIMIT_NOFILE, (len(list(Path("/proc/self/fd").iterdir())) + 48, before[1]))
    try:
        fit(detector, plain_rows(800), client, folder=tmp_path / "job", n_parts=16)
        detector.anomaly_score(plain_rows(seed=1))
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, before)
    assert len(detector.scores_) == 800


# --- what is seen of it


class Keys(SchedulerPlugin):
    name = "keys"

    def __init__(self):
        self.seen = set()

    def transition(self, key, start, finish, *_, **__):
        self.seen.add(str(key))


@contextmanager
def watched(client):
    """The names of the tasks that the scheduler saw."""
    keys = Keys()
    client.cluster.scheduler.add_plugin(keys)
    try:
        yield keys.seen
    finally:
        client.cluster.scheduler.remove_plugin(keys.name)


def tasks_held(client):
    """How many tasks the workers know of: those that run, and those whose results somebody may yet ask for."""
    return sum(client.run(lambda dask_worker: len(dask_worker.state.tasks)).values())


def test_tasks_are_named_by_what_they_do_and_let_go_when_they_are_done(client):
    """What a task was given stays on its worker for as long as its future is held: of hundreds, all memory there is."""
    stages, freed = [], []

    def look(*report):
        stages.append(report)
        if report == ("trees of parts", N_BLOCKS, N_BLOCKS):
            wait_for(lambda: tasks_held(client) == 0)
            freed.append(True)

    with watched(client) as keys:
        fit(quick(), ROWS, client, progress=look)
    assert freed == [True]
    rows = ("measure-piece", "lay-piece", "spread-rows", "gather-part")
    for kind in (*rows, "grow-part-tree", "join-two", "sweep", "advance", "save-blocks"):
        assert any(key.startswith(f"{kind}-") for key in keys), kind
    assert len([key for key in keys if key.startswith("grow-part-tree-")]) == N_BLOCKS
    assert list(dict.fromkeys(stage for stage, _, _ in stages)) == [
        *("looking at the rows", "laying out the rows", "sorting rows by part", "gathering parts", "trees of parts"),
        *("edges between parts", "joining the parts", "factorising"),
    ]


@pytest.fixture
def sizes(monkeypatch):
    """The bytes of what each task is given."""
    sizes, submit = {}, cluster_module.Cluster.submit

    def weigh(self, key, work, arguments):
        sizes[key] = len(pickle.dumps(arguments))
        return submit(self, key, work, arguments)

    monkeypatch.setattr(cluster_module.Cluster, "submit", weigh)
    return sizes


def test_tasks_on_parts_are_given_little_however_many_columns_there_are(client, sizes):
    fit(quick(), np.random.default_rng(0).random((300, 100)), client)
    on_parts = {key: size for key, size in sizes.items() if key.startswith(("grow-part-tree-", "join-two-"))}
    assert len(on_parts) > N_BLOCKS
    assert max(on_parts.values()) < 4096


# --- what is refused or kept before and between the steps


def plain_rows(n=300, seed=0):
    return np.random.default_rng(seed).uniform(size=(n, 4))


@pytest.mark.parametrize(
    ("detector", "options", "message"),
    [
        (quick(solver=Multiplicative()), {}, "Multiplicative does not work on a cluster"),
        (quick(solver=BlockSGD()), {}, "BlockSGD does not work on a cluster"),
        (quick(solver=RowBlocks(2)), {"n_parts": 3}, "n_parts = 3, but its n_blocks = 2"),
        (quick(), {"n_parts": 0}, "n_parts"),
        (quick(), {"n_parts": 2.5}, "n_parts"),
        (quick(), {"n_parts": 5000}, "at most 4,096"),
        (quick(), {}, r"client must be a distributed\.Client, but is a str"),
    ],
)
def test_what_cannot_be_is_refused_before_any_work(detector, options, message):
    with pytest.raises((TypeError, ValueError), match=message):
        scale.fit(detector, plain_rows(), client="tcp://127.0.0.1:8786", **options)


def test_a_source_of_random_numbers_is_used_and_a_job_with_one_goes_on(client, tmp_path):
    fits = [scale.fit(quick(random_state=np.random.RandomState(5)), plain_rows(), client) for _ in range(2)]
    np.testing.assert_array_equal(fits[0].embedding_, fits[1].embedding_)
    for _ in range(2):
        again = scale.fit(quick(random_state=np.random.RandomState(5)), plain_rows(), client, folder=tmp_path / "job")
        np.testing.assert_array_equal(fits[0].embedding_, again.embedding_)


def test_a_source_that_changes_between_the_passes_is_refused(tmp_path):
    frame = pd.DataFrame(plain_rows(), columns=list("abcd")[: plain_rows().shape[1]])
    frame.to_parquet(tmp_path / "table.parquet")
    source = open_source(tmp_path / "table.parquet", tmp_path)
    expected = rows_module.Extent.of(source.pieces[0].load())
    layout = rows_module.PieceLayout(source.columns)
    assert len(layout.read(source.pieces[0], expected)) == len(frame)
    (frame + 0.001).to_parquet(tmp_path / "table.parquet")
    with pytest.raises(TableError, match=r"table\.parquet.* has changed since it was first read"):
        layout.read(source.pieces[0], expected)


def test_two_processes_are_not_at_work_in_one_folder(tmp_path):
    refused = pytest.raises(StorageError, match="Another process is at work in the folder")
    # Within one process, too: a lock belongs to the file as it was opened.
    with workspace.open_workspace(tmp_path / "job"), refused, workspace.open_workspace(tmp_path / "job"):
        pass
    with workspace.open_workspace(tmp_path / "job"):
        pass


def test_a_table_of_zeros_scores_zero_whatever_the_solver(client):
    detector = quick(solver=RowBlocks(2), scale=None, duplicates="zero")
    assert not scale.fit(detector, np.zeros((50, 3)), client).scores_.any()


def test_a_new_folder_is_for_its_user_alone_and_an_old_one_keeps_its_rights(tmp_path):
    (tmp_path / "old").mkdir()
    (tmp_path / "old").chmod(0o750)
    for folder, mode in ((tmp_path / "new" / "job", 0o700), (tmp_path / "old", 0o750), (None, 0o700)):
        for _ in range(2):
            with workspace.open_workspace(folder) as space:
                assert stat.S_IMODE(space.folder.stat().st_mode) == mode


def test_the_index_of_a_frame_is_kept(client):
    frame = pd.DataFrame(plain_rows(), columns=list("abcd"), index=pd.date_range("2024-01-01", periods=300))
    frame.iloc[7] = 30.0
    assert scale.fit(quick(), frame, client).top(1).index.tolist() == [frame.index[7]]


def test_workers_that_cannot_use_the_folder_are_named(tmp_path):
    class ElsewhereClient:
        def sync(self, call, *arguments, callback_timeout, **options):
            return call(*arguments, **options)

        def run(self, function, file, on_error):
            return {"tcp://10.0.0.6:9": function("/no/such/folder/file")}

    with pytest.raises(scale.ClusterError, match=r"worker tcp://10\.0\.0\.6:9 cannot use the folder .* does not see"):
        scale.cluster.Cluster(ElsewhereClient(), print).check_sees(tmp_path)
