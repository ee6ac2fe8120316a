"""How many parts a job is cut into, and what is refused before it begins."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytest

from penstock.scale.cluster import ClusterError
from penstock.scale.plan import (
    check_disk,
    check_largest_part,
    check_pieces,
    gather_bytes,
    part_bytes,
    plan_parts,
    settled_plan,
)
from penstock.scale.sources import open_source
from penstock.scale.workspace import Workspace


@dataclass(frozen=True)
class Workers:
    """What planning asks of a cluster."""

    n_threads: int
    memory_per_thread: float


LARGE, SMALL = Workers(2, 8e9), Workers(2, 700e6)


def test_enough_parts_for_all_threads_and_for_the_memory():
    assert plan_parts(LARGE, 100_000, 20, 5, None).n_parts == 8
    n = 10_000_000
    plan = plan_parts(SMALL, n, 20, 5, None)
    assert n / plan.n_parts * part_bytes(20) < SMALL.memory_per_thread
    assert plan_parts(LARGE, 50, 20, 5, None).n_parts == 1
    assert plan_parts(LARGE, 100_000, 20, 5, 3).n_parts == 3
    with pytest.raises(ClusterError, match="3 parts of 10,000,000 rows of 20 columns do not fit"):
        plan_parts(SMALL, n, 20, 5, 3)
    with pytest.raises(ClusterError, match=r"too little for 1,000 rows of 3 columns\. Give them at least"):
        plan_parts(Workers(1, 2e8), 1000, 3, 5, None)


def test_a_plan_outlives_a_change_of_the_cluster(tmp_path):
    """Half of a job cut by one plan and half by another would be no partition."""
    first = settled_plan(Workspace(tmp_path), LARGE, 1_000_000, 20, 5, None)
    assert settled_plan(Workspace(tmp_path), Workers(16, 8e9), 1_000_000, 20, 5, None) == first
    with pytest.raises(ClusterError, match="do not fit"):
        settled_plan(Workspace(tmp_path), SMALL, 10_000_000, 20, 5, None)


def test_a_disk_too_small_is_refused(tmp_path):
    check_disk(tmp_path, 1000, 20, 5)
    with pytest.raises(ClusterError, match=r"needs about .* GB on disk"):
        check_disk(tmp_path, 10**12, 20, 5)


def test_a_disk_that_the_job_itself_has_filled_is_no_reason_to_refuse_it(tmp_path, monkeypatch):
    first = settled_plan(Workspace(tmp_path), LARGE, 1_000_000, 20, 5, None)
    monkeypatch.setattr("penstock.scale.plan.shutil.disk_usage", lambda _: type("Usage", (), {"free": 10})())
    assert settled_plan(Workspace(tmp_path), LARGE, 1_000_000, 20, 5, None) == first
    with pytest.raises(ClusterError, match="on disk"):
        settled_plan(Workspace(tmp_path / "other"), LARGE, 1_000_000, 20, 5, None)


def test_many_equal_rows_in_one_part_are_refused_with_what_helps():
    check_largest_part(SMALL, 1000, gather_bytes(20))
    with pytest.raises(ClusterError, match=r"One part has 9,000,000 rows.*rows that are equal are always together"):
        check_largest_part(SMALL, 9_000_000, gather_bytes(20))


def test_pieces_too_large_for_a_worker_are_named(tmp_path):
    source = open_source(np.ones((1000, 4)), tmp_path)
    check_pieces(SMALL, source)
    with pytest.raises(ClusterError, match=r"has 1,000 rows of 4 columns, to be loaded at once.*smaller row groups"):
        check_pieces(Workers(1, 421e6), source)
