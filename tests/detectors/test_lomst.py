from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from naive import detection as naive_detect
from strategies import examples

from penstock._threads import thread_limit
from penstock.bench import true_detections
from penstock.detectors import LoMST, lomst
from penstock.detectors.lomst import _longest_stable_run, local_tree_lengths
from penstock.graph.search import nearest_neighbors
from studies.ahmed2021 import datasets

kernels = pytest.mark.kernels


def some_rows(n: int = 60, p: int = 3, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).normal(size=(n, p))


@kernels
@given(st.integers(2, 18), st.integers(1, 6), st.booleans(), st.integers(0, 10_000))
@examples(40)
def test_local_trees_equal_kruskal(n: int, p: int, coarse: bool, seed: int) -> None:
    X = some_rows(n, p, seed)
    X = X.round() if coarse else X
    near, _ = nearest_neighbors(X, n - 1)
    lengths = local_tree_lengths(X, near, n - 1)
    for i in range(n):
        for k in range(1, n):
            expected = naive_detect.tree_length([X[i].tolist(), *X[near[i, :k]].tolist()])
            assert lengths[i, k - 1] == pytest.approx(expected, rel=1e-12, abs=1e-14)


@kernels
@pytest.mark.parametrize("k", [1, 4, 20])
def test_scores_are_the_definition(k: int) -> None:
    X = some_rows(40)
    detector = LoMST(n_neighbors=k, scale=None).fit(X)
    expected = naive_detect.min_max(naive_detect.lomst_contrasts(X.tolist(), k))
    np.testing.assert_allclose(detector.scores_, expected, atol=1e-12)
    assert detector.n_neighbors_ == k


@pytest.mark.parametrize("seed", range(3))
def test_practical_k_is_that_of_the_largest_deviation(seed: int) -> None:
    X = some_rows(20, 2, seed)
    for rule, scaled in (("sd", True), ("raw sd", False)):
        found = LoMST(rule, max_neighbors=15, scale=None).fit(X).n_neighbors_
        assert found == naive_detect.practical_k(X.tolist(), 2, 15, scaled)


def test_where_all_local_trees_are_one_tree_nothing_stands_out() -> None:
    X = some_rows(20, 2, 1)
    assert (LoMST(19).fit(X).scores_ == 0).all()
    assert (LoMST(19).fit(X).anomaly_score(X) == 0).all()
    assert LoMST().fit(X).n_neighbors_ < 19


def test_stable_k_lies_in_the_stable_range(monkeypatch: pytest.MonkeyPatch) -> None:
    X = np.r_[some_rows(80, 2), 4 + some_rows(20, 2, 1)]
    means = [LoMST(k).fit(X).scores_.mean() for k in range(2, 51)]
    start, stop = _longest_stable_run(np.array(means))
    assert 2 + start <= LoMST("stable").fit(X).n_neighbors_ < 2 + stop
    monkeypatch.setattr(lomst, "STABLE_STEP", 1.0)  # everything is stable then
    assert LoMST("stable").fit(X).n_neighbors_ == LoMST("sd").fit(X).n_neighbors_


def test_an_outlier_tops_the_list_and_a_new_one_scores_above_one() -> None:
    X = np.r_[some_rows(150, 2), [[7.0, 7.0]]]
    detector = LoMST(10).fit(X)
    assert detector.top(1).index.tolist() == [150]
    assert detector.anomaly_score([[20.0, 20.0]])[0] > 1
    assert detector.anomaly_score([[0.0, 0.0]])[0] < 0.5


@kernels
def test_the_unit_of_the_data_does_not_matter() -> None:
    X = some_rows()
    for unit in (2.0**-900, 2.0**900):
        np.testing.assert_array_equal(LoMST(5, scale=None).fit(X * unit).scores_, LoMST(5, scale=None).fit(X).scores_)


def test_threads_do_not_matter() -> None:
    X = some_rows(600, 4)
    with thread_limit(1):
        alone = LoMST().fit(X).scores_
    with thread_limit(3):
        np.testing.assert_array_equal(LoMST().fit(X).scores_, alone)


@kernels
def test_two_rows() -> None:
    detector = LoMST().fit([[0.0], [1.0]])
    assert detector.n_neighbors_ == 1
    assert detector.scores_.tolist() == [0.0, 0.0]


@pytest.mark.parametrize("bad", [0, -1, 2.0, "median", None, True])
def test_other_values_are_refused(bad: object) -> None:
    with pytest.raises(ValueError, match=r"n_neighbors must be .*got"):
        LoMST(bad).fit(some_rows())
    with pytest.raises(ValueError, match=r"LoMST\(n_neighbors=7\) needs at least 8 rows; got n_samples = 5"):
        LoMST(7).fit(some_rows(5))
    with pytest.raises(ValueError, match="between 1 and the 2 neighbours given, but is 3"):
        local_tree_lengths(some_rows(5), nearest_neighbors(some_rows(5), 2)[0], 3)


def test_on_real_data_it_is_as_good_as_the_paper_says(benchmark_data: Path) -> None:
    """Ahmed et al. (2021), tbl:TPRL: 101 of 126 on Ionosphere, whose file is the paper's."""
    data = datasets.load("Ionosphere")
    assert true_detections(data.y, LoMST().fit(data.X).scores_) >= 101
