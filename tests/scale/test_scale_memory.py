"""A table four times as large as the memory of all workers together is fitted by them."""

from __future__ import annotations

import shutil
import time
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from penstock import NSNMF, scale
from penstock.factor import Coordinate

pytestmark = [
    pytest.mark.slow,
    pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning"),
    pytest.mark.filterwarnings("ignore::penstock.CollapsedFactorsWarning"),
]

MEBIBYTE = 2**20
LIMIT = 640 * MEBIBYTE  # of the one worker, of which the libraries alone take about half
N_COLUMNS = 200
N_ROWS = 4 * LIMIT // (8 * N_COLUMNS) + 1
ROWS_AT_ONCE = 20 * MEBIBYTE // (8 * N_COLUMNS)


def write_table(path, n_rows=N_ROWS):
    """Rows near a plane, written a row group at a time; never all of them in memory."""
    rng = np.random.default_rng(0)
    profiles = np.array([[1.0], [0.1]]) * rng.random((2, N_COLUMNS))
    names = [f"sensor{column}" for column in range(N_COLUMNS)]
    schema = pa.schema([(name, pa.float64()) for name in names])
    with pq.ParquetWriter(path, schema) as writer:
        for start in range(0, n_rows, ROWS_AT_ONCE):
            n = min(ROWS_AT_ONCE, n_rows - start)
            rows = rng.random((n, 2)) @ profiles + 1e-4 * rng.random((n, N_COLUMNS))
            writer.write_table(pa.table(list(rows.T.copy()), schema=schema), row_group_size=n)
    return path


def small_detector():
    return NSNMF(n_components=2, solver=Coordinate(), max_iter=3, random_state=0)


def compile_kernels(path):
    """Let another worker do it: one that has compiled kernels, where no fit ever was, keeps 100 MiB for that."""
    with scale.local_client(n_workers=1) as client:
        scale.fit(small_detector(), write_table(path, n_rows=20_000), client, n_parts=4)


def peak_memory(pid):
    """The most that a process ever had in memory at once, in bytes, pages of mapped files included."""
    status = Path(f"/proc/{pid}/status").read_text().split()
    return 1024 * int(status[status.index("VmHWM:") + 1])


@pytest.fixture
def folder(tmp_path):
    yield tmp_path
    shutil.rmtree(tmp_path)  # about 15 GB, which pytest would keep for three runs


def test_four_times_the_memory_of_all_workers(folder):
    compile_kernels(folder / "few.parquet")
    source = write_table(folder / "rows.parquet")
    ends, peaks = {}, {}
    with scale.local_client(n_workers=1, memory_limit=LIMIT) as client:
        (nanny,) = client.cluster.workers.values()
        pid, began = nanny.pid, time.monotonic()

        def note(stage, done, total):
            assert nanny.pid == pid, f"the worker was killed while {stage} ({done} of {total}); peaks: {peaks}"
            ends[stage] = time.monotonic() - began
            peaks[stage] = peak_memory(pid)

        detector = small_detector()
        scale.fit(detector, source, client, folder=folder / "job", progress=note)
        peaks["the end"] = peak_memory(pid)
        assert nanny.pid == pid, "the worker was killed and started again"
    for stage, seconds in ends.items():
        print(f"{stage}: until {seconds:.0f} s, peak so far {peaks[stage] / MEBIBYTE:.0f} MiB")
    assert N_ROWS * N_COLUMNS * 8 >= 4 * LIMIT
    assert max(peaks.values()) < LIMIT
    assert len(detector.scores_) == N_ROWS
    assert np.isfinite(detector.scores_).all()
    assert len(detector.tree_.lengths) == N_ROWS - 1
