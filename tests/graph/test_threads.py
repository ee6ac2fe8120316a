"""The work is cut into ranges that cover everything once, whatever the number of threads."""

from __future__ import annotations

import threading
import time

import numpy as np
import pytest

from penstock._threads import for_each_range, thread_count, thread_limit


@pytest.mark.parametrize("threads", [1, 2, 5])
@pytest.mark.parametrize("n", [0, 1, 7, 1000])
def test_ranges_cover_everything_once(threads, n):
    seen = np.zeros(n, dtype=int)

    def work(start, stop):
        seen[start:stop] += 1

    with thread_limit(threads):
        for_each_range(work, n, smallest=2)
    assert (seen == 1).all()


def test_several_threads_work_at_once():
    meeting = threading.Barrier(2, timeout=300)
    met = []

    def work(start, stop):
        if len(met) < 2:
            meeting.wait()
            met.append(start)

    with thread_limit(2):
        for_each_range(work, 2, smallest=1)
    assert len(met) == 2


def test_after_an_error_what_has_not_begun_is_not_begun():
    begun = []

    def work(start, stop):
        begun.append(start)
        if start == 0:
            raise KeyboardInterrupt
        time.sleep(1.0)  # long enough for the calling thread to notice, on a busy machine too

    with thread_limit(2), pytest.raises(KeyboardInterrupt):
        for_each_range(work, 100, smallest=1)
    assert len(begun) < 8  # of eight ranges


def test_the_environment_sets_the_count(monkeypatch):
    monkeypatch.setenv("PENSTOCK_THREADS", "3")
    assert thread_count() == 3
    with thread_limit(2):
        assert thread_count() == 2
    for nonsense in ("0", "many"):
        monkeypatch.setenv("PENSTOCK_THREADS", nonsense)
        with pytest.raises(ValueError, match="PENSTOCK_THREADS must be a positive whole number"):
            thread_count()
    monkeypatch.delenv("PENSTOCK_THREADS")
    assert thread_count() >= 1
