"""What `penstock.scale` refuses or keeps before and between its steps."""

from __future__ import annotations

import pickle
import resource
import stat

import numpy as np
import pandas as pd
import psutil
import pytest

from penstock import NSNMF, LaplacianNSNMF, scale
from penstock.factor import Auto, BlockSGD, Multiplicative
from penstock.scale import rows as rows_module
from penstock.scale import workspace

pytestmark = [
    pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning"),
    pytest.mark.filterwarnings("ignore::penstock.CollapsedFactorsWarning"),
]


@pytest.fixture(scope="module")
def client():
    with scale.local_client(n_workers=1, memory_limit="2GiB") as client:
        yield client


def some_rows(n=300, seed=0):
    return np.random.default_rng(seed).uniform(size=(n, 4))


def quick(**options):
    return NSNMF(**{"n_components": 2, "max_iter": 3, "random_state": 0, **options})


@pytest.mark.parametrize(
    ("detector", "message"),
    [
        (quick(solver=Multiplicative()), "does not work by blocks"),
        (LaplacianNSNMF(solver=BlockSGD(blocks="space")), "no Laplacian term"),
        (quick(solver=BlockSGD()), "say BlockSGD"),
    ],
)
def test_solvers_are_refused_before_any_work(detector, message):
    with pytest.raises(ValueError, match=message):
        scale.fit(detector, some_rows(), client="not looked at")


@pytest.mark.parametrize(("n_parts", "message"), [(0, "n_parts"), (2.5, "n_parts"), (5000, "at most 4,096")])
def test_impossible_numbers_of_parts_are_refused(n_parts, message):
    with pytest.raises((TypeError, ValueError), match=message):
        scale.fit(quick(), some_rows(), client="not looked at", n_parts=n_parts)


def test_parts_and_blocks_that_differ_are_refused():
    with pytest.raises(ValueError, match="n_parts = 3, but its n_blocks = 2"):
        scale.fit(quick(solver=Auto(n_blocks=2)), some_rows(), client="not looked at", n_parts=3)


def test_what_is_no_client_is_refused():
    with pytest.raises(TypeError, match=r"client must be a distributed\.Client, but is a str"):
        scale.fit(quick(), some_rows(), "tcp://127.0.0.1:8786")


def test_the_index_of_a_frame_is_kept(client):
    frame = pd.DataFrame(some_rows(), columns=list("abcd"), index=pd.date_range("2024-01-01", periods=300))
    frame.iloc[7] = 30.0
    assert scale.fit(quick(), frame, client).top(1).index.tolist() == [frame.index[7]]


def test_a_source_of_random_numbers_is_used_and_a_job_with_one_goes_on(client, tmp_path):
    fits = [scale.fit(quick(random_state=np.random.RandomState(5)), some_rows(), client) for _ in range(2)]
    np.testing.assert_array_equal(fits[0].embedding_, fits[1].embedding_)
    for _ in range(2):
        again = scale.fit(quick(random_state=np.random.RandomState(5)), some_rows(), client, folder=tmp_path / "job")
        np.testing.assert_array_equal(fits[0].embedding_, again.embedding_)


def test_a_source_that_changes_between_the_passes_is_refused(tmp_path):
    rows = some_rows()
    before = rows_module.Extent.of(rows)
    workspace.create_array(tmp_path / "rows.npy", rows.shape)
    arguments = ("the table", None, before, None, True, tmp_path / "rows.npy", 0, 10, tmp_path / "sample.npy")
    rows_module.scale_piece(rows, *arguments)
    with pytest.raises(scale.SourceError, match="the table has changed since it was first read"):
        rows_module.scale_piece(rows + 0.001, *arguments)


def test_another_detector_in_the_same_place_is_not_taken_for_the_first(client, tmp_path):
    """Workers keep the detector that they scored with last."""
    scores = []
    for seed in (0, 1):
        detector = scale.fit(quick(random_state=seed), some_rows(), client, folder=tmp_path / "job")
        scores.append(scale.score(detector, some_rows(seed=2), client))
        np.testing.assert_array_equal(scores[-1], detector.anomaly_score(some_rows(seed=2)))
        (tmp_path / "job").rename(tmp_path / f"job of seed {seed}")
    assert not np.array_equal(*scores)


def test_a_detector_in_files_stays_small_when_sent(client, tmp_path):
    detector = scale.fit(quick(), some_rows(5000), client, folder=tmp_path / "job")
    detector.anomaly_score(np.where(some_rows() < 0.01, np.nan, some_rows()))  # holes: all rows are read
    assert len(pickle.dumps(detector.model_.search)) < 10_000


@pytest.mark.slow
def test_many_parts_need_few_open_files(client, tmp_path):
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    detector = quick()
    resource.setrlimit(resource.RLIMIT_NOFILE, (psutil.Process().num_fds() + 48, before[1]))
    try:
        scale.fit(detector, some_rows(800), client, folder=tmp_path / "job", n_parts=24)
        detector.anomaly_score(some_rows(seed=1))
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, before)
    assert len(detector.scores_) == 800


def test_two_processes_are_not_at_work_in_one_folder(tmp_path):
    refused = pytest.raises(scale.WorkspaceError, match="Another process is at work in the folder")
    # Within one process, too: a lock belongs to the file as it was opened.
    with workspace.open_workspace(tmp_path / "job"), refused, workspace.open_workspace(tmp_path / "job"):
        pass
    with workspace.open_workspace(tmp_path / "job"):
        pass


def test_a_table_of_zeros_scores_zero_whatever_the_solver(client):
    detector = quick(solver=BlockSGD(n_blocks=2, rounds=20, blocks="space"), scale=None, duplicates="zero")
    assert not scale.fit(detector, np.zeros((50, 3)), client).scores_.any()


def test_workers_that_cannot_use_the_folder_are_named(tmp_path):
    class ElsewhereClient:
        def sync(self, call, *arguments, callback_timeout, **options):
            return call(*arguments, **options)

        def run(self, function, file, on_error):
            return {"tcp://10.0.0.6:9": function("/no/such/folder/file")}

    with pytest.raises(scale.ClusterError, match=r"worker tcp://10\.0\.0\.6:9 cannot use the folder .* does not see"):
        scale.cluster.Cluster(ElsewhereClient(), print).check_sees(tmp_path)


def test_what_keeps_a_worker_from_a_folder_is_told(tmp_path):
    assert "File name too long" in scale.cluster._write_beside(str(tmp_path / ("x" * 300)))


def test_a_new_folder_is_for_its_user_alone_and_an_old_one_keeps_its_rights(tmp_path):
    (tmp_path / "old").mkdir()
    (tmp_path / "old").chmod(0o750)
    for folder, mode in ((tmp_path / "new" / "job", 0o700), (tmp_path / "old", 0o750), (None, 0o700)):
        for _ in range(2):
            with workspace.open_workspace(folder) as space:
                assert stat.S_IMODE(space.folder.stat().st_mode) == mode
