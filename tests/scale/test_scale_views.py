"""`penstock.Detector` fitted on a cluster is the one fitted on one machine, to the last bit; and what can go wrong."""

from __future__ import annotations

import tracemalloc

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from scale_fit_cases import NAMES, some_rows
from scale_kills import Aim, killing

from penstock import Detector, load, scale
from penstock.detectors import views
from penstock.detectors.views import BLOCK
from penstock.graph import partition
from penstock.scale import plan, tree
from penstock.scale.views_fit import middle_of_columns
from penstock.scale.workspace import open_array, save_array

ROWS = some_rows()
NEW = np.r_[some_rows(100, seed=5), ROWS[:20], ROWS[20:40] + 1e-9, [[50.0, -50.0, 0.0, 1.0]]]


@pytest.fixture(scope="module")
def local():
    return Detector().fit(ROWS)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("fitted") / "job"


@pytest.fixture(scope="module")
def in_folder(client, folder):
    return scale.fit(Detector(), ROWS, client, folder=folder, n_parts=3)


def assert_same_fit(found, expected, new):
    """All that is fitted, and the scores of new rows."""
    for name in ("edges", "lengths"):
        np.testing.assert_array_equal(getattr(found.tree_, name), getattr(expected.tree_, name), err_msg=name)
    for name in ("kept", "copy_of"):
        np.testing.assert_array_equal(getattr(found.model_.copies, name), getattr(expected.model_.copies, name))
    for name in ("parts_", "scores_", "observed_fraction_", "threshold_"):
        np.testing.assert_array_equal(getattr(found, name), getattr(expected, name), err_msg=name)
    assert found.model_.views.standards == expected.model_.views.standards
    for view in ("encoding", "plain", "logged", "sampled", "marginal"):
        for name, values in vars(getattr(expected.model_.views, view)).items():
            if isinstance(values, np.ndarray) and not name.startswith("_"):  # not what is cached
                np.testing.assert_array_equal(getattr(getattr(found.model_.views, view), name), values, err_msg=name)
    np.testing.assert_array_equal(found.anomaly_score(new), expected.anomaly_score(new))


# --- the same as on one machine


def negative(X):
    return (X - 0.5) * [1.0, 1000.0, 1e-3, 1e6]


def with_constants(X):
    return np.column_stack([X, np.full(len(X), 7.0), np.zeros(len(X))])


def equal_when_encoded(X):
    """Rows 50 and 51 differ by less than the largest reading can tell, 52 and 53 by nothing."""
    X = X.copy()
    X[50:54] = X[50]
    X[50:54, 0] = [0.0, 1e-320, 2e-320, 2e-320]
    return X


TABLES = {
    "in one part": (ROWS, "minmax", 1),
    "unscaled, negative": (negative(ROWS), None, 3),
    "constants": (with_constants(ROWS[:200]), "minmax", 2),
    "different but encoded equal": (equal_when_encoded(ROWS[:200]), None, 3),
    "without copies": (np.random.default_rng(1).normal(size=(201, 3)), "minmax", 2),
    "one column": (np.round(np.random.default_rng(2).normal(size=(300, 1)), 1), "minmax", 2),
    "all equal": (np.full((5, 2), 3.0), "minmax", 1),
    "huge": (1e200 * ROWS[:100], None, 2),
}


@pytest.mark.parametrize("kind", TABLES)
def test_as_on_one_machine(client, tmp_path, kind):
    X, scaled, n_parts = TABLES[kind]
    expected = Detector(scale=scaled).fit(X)
    found = scale.fit(Detector(scale=scaled), X, client, n_parts=n_parts, folder=tmp_path / "job")
    assert_same_fit(found, expected, np.r_[X[::7], X[:3] * 1.01])


def test_in_many_runs(client, monkeypatch):
    monkeypatch.setattr(plan, "_RUNS_PER_THREAD", 1000)
    X = np.round(some_rows(2 * BLOCK + 100, seed=1), 2)  # many ties
    assert_same_fit(scale.fit(Detector(), X, client, n_parts=5), Detector().fit(X), X[::50])


def test_from_parquet(client, tmp_path, local):
    table = pa.table(dict(zip(NAMES, ROWS.T, strict=True)))
    pq.write_table(table, tmp_path / "rows.parquet", row_group_size=90)
    found = scale.fit(Detector(), tmp_path / "rows.parquet", client, n_parts=2)
    new = pd.DataFrame(NEW, columns=NAMES)
    np.testing.assert_array_equal(found.scores_, local.scores_)
    np.testing.assert_array_equal(found.anomaly_score(new), local.anomaly_score(NEW))
    assert list(found.feature_names_in_) == NAMES
    assert found.explain(table.to_pandas()[:3]).variables.columns.tolist() == NAMES


# --- the result


@pytest.mark.parametrize("keeps_files", [False, True])
def test_the_result_is_an_ordinary_detector(client, tmp_path, local, in_folder, keeps_files):
    found = in_folder if keeps_files else scale.fit(Detector(), ROWS, client, n_parts=3)
    assert_same_fit(found, local, NEW)
    np.testing.assert_array_equal(found.anomaly_score(ROWS), found.scores_)
    np.testing.assert_array_equal(found.false_alarm_rate(NEW), local.false_alarm_rate(NEW))
    assert found.top(1).index.tolist() == [37]
    parts, expected = found.explain(NEW), local.explain(NEW)
    pd.testing.assert_frame_equal(parts.parts, expected.parts, check_exact=True)
    pd.testing.assert_frame_equal(parts.variables, expected.variables, check_exact=True)
    for file, detector in (("found", found), ("local", local)):
        detector.save(tmp_path / file)
    assert (tmp_path / "found").read_bytes() == (tmp_path / "local").read_bytes()
    np.testing.assert_array_equal(load(tmp_path / "found").anomaly_score(NEW), local.anomaly_score(NEW))


# --- medians


@pytest.mark.parametrize("n", [1, 2, 600, 601])
def test_medians_are_exact(tmp_path, n):
    rng = np.random.default_rng(n)
    normal, tiny = rng.normal(size=n), np.finfo(np.float64).tiny
    columns = [
        normal, -np.exp(50 * normal), np.round(normal), np.zeros(n), np.where(normal > 0, -0.0, 0.0),
        tiny * normal, np.where(np.arange(n) < n // 2, -1.0, 1.0), np.full(n, -3.7), 1.7e308 * np.sign(normal),
        np.where(rng.random(n) < 0.6, 0.25, normal),
    ]  # fmt: skip
    X = np.column_stack(columns)
    save_array(tmp_path / "rows.npy", X)
    lower, upper = middle_of_columns(tmp_path / "rows.npy", np.arange(X.shape[1]))
    ordered = np.sort(X, axis=0)
    np.testing.assert_array_equal(lower, ordered[(n - 1) // 2])
    np.testing.assert_array_equal(upper, ordered[n // 2])


# --- cut short, and broken

TOGETHER = [  # stages whose result is kept when the last of them is done
    {"sorting rows by part", "gathering parts"},
    {"trees of parts", "edges between parts", "joining the parts"},
    {"adding up columns", "adding up squares", "looking for medians"},
    {"sorting rows by part (encoded)", "gathering parts (encoded)"},
    {"trees of parts (encoded)", "edges between parts (encoded)", "joining the parts (encoded)"},
]


def test_a_driver_that_is_stopped_in_each_stage_goes_on(client, tmp_path, local):
    """Each run is stopped at the stage after the one at which the last was stopped."""
    passed = []
    while True:
        stages = []

        def stop_at_new_stage(stage, done, total, stages=stages):
            stages.append(stage)
            if stage not in passed:
                passed.append(stage)
                raise KeyboardInterrupt

        try:
            found = scale.fit(Detector(), ROWS, client, n_parts=3, folder=tmp_path / "job", progress=stop_at_new_stage)
        except KeyboardInterrupt:
            before = passed[-2:-1]
            group = next((group for group in TOGETHER if passed[-1] in group or set(before) & group), set())
            assert set(stages) <= {*before, passed[-1]} | group, "done again"
            continue
        break
    assert len(passed) >= 17
    assert_same_fit(found, local, NEW)


def test_a_finished_job_is_not_done_again(client, folder, in_folder):
    stages = []
    again = scale.fit(
        Detector(), ROWS, client, n_parts=3, folder=folder, progress=lambda *report: stages.append(report[0])
    )
    assert_same_fit(again, in_folder, NEW)
    assert stages == []


def test_runs_that_are_looked_at_are_kept(client, tmp_path, local, monkeypatch):
    """A driver that dies while rows are looked at has the finished runs the next time, on however many workers."""
    X = some_rows(3 * BLOCK, seed=4)
    monkeypatch.setattr(plan, "_RUNS_PER_THREAD", 1000)

    def stop(stage, done, total):
        if stage == "looking at rows" and done >= 1:
            raise KeyboardInterrupt

    folder = tmp_path / "job"
    with pytest.raises(KeyboardInterrupt):
        scale.fit(Detector(), X, client, n_parts=2, folder=folder, progress=stop)
    monkeypatch.setattr(plan, "_RUNS_PER_THREAD", 1)
    finished = list((folder / "looked-at").glob("[0-9]*"))
    assert finished
    written = {file: file.stat().st_mtime_ns for file in finished}
    kept = []

    def look(stage, done, total):
        if stage == "looking at rows":
            kept.extend(file for file in finished if file.exists() and file.stat().st_mtime_ns == written[file])

    found = scale.fit(Detector(), X, client, n_parts=2, folder=folder, progress=look)
    assert set(kept) == set(finished)
    np.testing.assert_array_equal(found.scores_, Detector().fit(X).scores_)
    assert len(open_array(folder / "views" / "fine.npy")) == len(found.model_.copies.kept)
    assert not (folder / "looked-at").exists()


TASKS = ["add-units", "add-squares", "middle-of-columns", "encode", "count-bins", "add-surprises", "view"]


@pytest.mark.slow
@pytest.mark.parametrize("name", TASKS)
def test_a_worker_is_killed_in_every_kind_of_task(client, marks, name):
    X = some_rows(40 * BLOCK, seed=6)
    for _ in range(3):
        with killing(client, marks, [Aim(rf"^{name}-[0-9a-f]+-\d+$", 1, 0.0)]) as killer:
            found = scale.fit(Detector(), X, client, n_parts=2)
        assert_same_fit(found, Detector().fit(X), X[:5])
        assert all(killer.given[kill.key] >= 2 for kill in killer.kills), "a task was not run again"
        if killer.kills:
            return
    raise AssertionError(f"not hit in three runs: {killer.aims}")


@pytest.mark.slow
def test_the_driver_never_holds_the_rows(client, tmp_path, monkeypatch):
    """With few draws and small buffers: a few numbers of each row are a tenth of what the rows would be."""
    monkeypatch.setattr(views, "FINE", (4, 32))
    monkeypatch.setattr(tree, "_ROWS_AT_ONCE", 1000)
    monkeypatch.setattr(partition, "_FEWEST_SAMPLED", 256)
    monkeypatch.setattr(partition, "_PER_PART", 64)
    n, p = 12_000, 300
    rng = np.random.default_rng(0)
    X = rng.random((n, 3)) @ rng.random((3, p)) + 0.01 * rng.random((n, p))
    X[:100] = X[100:200]
    pq.write_table(pa.table({f"c{d}": X[:, d] for d in range(p)}), tmp_path / "rows.parquet", row_group_size=1000)
    table = X.nbytes
    del X
    scale.fit(Detector(), ROWS[:50], client, n_parts=2, folder=tmp_path / "first")  # libraries and kernels are loaded
    tracemalloc.start()
    try:
        found = scale.fit(Detector(), tmp_path / "rows.parquet", client, n_parts=4, folder=tmp_path / "job")
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    print(f"peak {peak / 2**20:.1f} MiB, table {table / 2**20:.1f} MiB")
    assert found.scores_.shape == (n,)
    assert peak < table / 2
