"""How many parts a job is cut into, and what is refused before it begins."""

from __future__ import annotations

from dataclasses import dataclass

import pytest

from penstock.scale.cluster import ClusterError
from penstock.scale.plan import check_disk, part_bytes, plan_parts, settled_plan


@dataclass(frozen=True)
class Workers:
    """What planning asks of a cluster."""

    n_threads: int
    memory_per_thread: float


LARGE, SMALL = Workers(2, 8e9), Workers(2, 700e6)


def test_enough_parts_for_all_threads_and_for_the_memory():
    assert plan_parts(LARGE, 100_000, 20, None).n_parts == 8
    n = 10_000_000
    plan = plan_parts(SMALL, n, 20, None)
    assert n / plan.n_parts * part_bytes(20) < SMALL.memory_per_thread
    assert plan_parts(LARGE, 50, 20, None).n_parts == 1


def test_what_is_asked_for_is_done_or_refused():
    assert plan_parts(LARGE, 100_000, 20, 3).n_parts == 3
    with pytest.raises(ClusterError, match="3 parts of 10,000,000 rows of 20 columns do not fit"):
        plan_parts(SMALL, 10_000_000, 20, 3)


def test_too_little_memory_says_how_much_is_needed():
    with pytest.raises(ClusterError, match=r"too little for 1,000 rows of 3 columns\. Give them at least"):
        plan_parts(Workers(1, 2e8), 1000, 3, None)


def test_a_plan_outlives_a_change_of_the_cluster(tmp_path):
    """Half of a job cut by one plan and half by another would be no partition."""
    first = settled_plan(tmp_path / "plan.json", LARGE, 1_000_000, 20, None)
    assert settled_plan(tmp_path / "plan.json", Workers(16, 8e9), 1_000_000, 20, None) == first
    with pytest.raises(ClusterError, match="do not fit"):
        settled_plan(tmp_path / "plan.json", SMALL, 10_000_000, 20, None)


def test_a_disk_too_small_is_refused(tmp_path):
    check_disk(tmp_path, 1000, 20, 5)
    with pytest.raises(ClusterError, match=r"needs about .* GB on disk"):
        check_disk(tmp_path, 10**12, 20, 5)
