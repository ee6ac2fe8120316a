"""One cell: what is measured, on which rows, and what a method may do without harm."""

from __future__ import annotations

import json
import sys
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.metrics import average_precision_score, roc_auc_score

from penstock.bench.cell import Job, run_cell
from penstock.detectors import KNNDistance, LoMST

DETECTORS = '''
import sys
import warnings

import numpy as np


class Given:
    """Scores that are the first column; keeps the rows it saw."""

    def fit(self, X):
        self.scores_ = X[:, 0]
        np.save(sys.modules[__name__].SEEN, X)
        return self


class Wanton(Given):
    def __init__(self, what="nothing", random_state=None):
        self.what = what

    def fit(self, X):
        if self.what == "raise":
            raise RuntimeError("two\\nlines  and spaces")
        if self.what == "memory":
            np.empty(2**50)
        if self.what == "long":
            raise ValueError("x" * 9000)
        if self.what == "warn":
            for word in ("d", "a", "c", "b", "a"):
                warnings.warn(word)
        if self.what == "print":
            print("a lot")
        if self.what == "attributes":
            self.n_iter_, self.converged_, self.objective_ = np.int64(7), np.True_, np.float64(0.5)
            self.n_neighbors_, self.collapsed_ = float("nan"), np.arange(3)
        return super().fit(X)
'''


@pytest.fixture(scope="module")
def data() -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(3)
    X = rng.normal(size=(120, 3)) * (1.0, 50.0, 0.1) + 7.0
    y = np.zeros(120, dtype=np.int64)
    y[[5, 50, 70, 110]] = 1
    X[y == 1] += rng.normal(size=(4, 3)) * (3.0, 150.0, 0.3)
    return X, y


@pytest.fixture
def seen(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where the rows go that a detector of the module `odd_detectors` has seen."""
    (tmp_path / "odd_detectors.py").write_text(DETECTORS)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "odd_detectors", raising=False)
    import odd_detectors  # type: ignore[import-not-found]

    odd_detectors.SEEN = tmp_path / "seen.npy"
    return tmp_path / "seen.npy"


def job(data: tuple[np.ndarray, np.ndarray], detector: str, **more: Any) -> Job:
    given: dict[str, Any] = {"parameters": {}, "seed": None, "order": "file", "rows": None} | more
    return Job("the key", detector, X=data[0], y=data[1], **given)


def test_measures_are_those_computed_directly(data: tuple[np.ndarray, np.ndarray]) -> None:
    X, y = data
    outcome = run_cell(job(data, "KNNDistance", parameters={"n_neighbors": 3}, mark="sparse"))
    scores = KNNDistance(n_neighbors=3).fit(X).scores_
    found = int(y[np.argsort(-scores)[:4]].sum())
    assert 0 < found < 4  # or it would not tell much
    assert (outcome["status"], outcome["why"], outcome["key"], outcome["mark"]) == ("ok", "", "the key", "sparse")
    assert (outcome["true_detections"], outcome["precision_at_n"]) == (found, found / 4)
    assert outcome["roc_auc"] == pytest.approx(roc_auc_score(y, scores), abs=1e-12)
    assert outcome["average_precision"] == pytest.approx(average_precision_score(y, scores), abs=1e-12)
    assert outcome["fit_seconds"] >= 0
    assert outcome["cpu_seconds"] >= 0
    assert outcome["peak_memory_mb"] >= 0
    json.dumps(outcome, allow_nan=False)


def test_every_method_sees_columns_from_0_to_1(data: tuple[np.ndarray, np.ndarray], seen: Path) -> None:
    run_cell(job(data, "odd_detectors.Given"))
    np.testing.assert_allclose(np.load(seen), (data[0] - data[0].min(0)) / np.ptp(data[0], axis=0), atol=1e-12)


def rows_seen(data: tuple[np.ndarray, np.ndarray], seen: Path, **more: Any) -> list[float]:
    """What tells the fitted rows apart, in their order: the first column, which counts them."""
    X = np.column_stack([np.arange(120.0), data[0][:, 1]])
    outcome = run_cell(job((X, data[1]), "odd_detectors.Given", **more))
    if "rows" not in more:
        assert outcome["roc_auc"] == roc_auc_score(data[1], X[:, 0])  # whatever the order
    return [float(value) for value in np.load(seen)[:, 0]]


def test_a_shuffled_order_is_seeded_and_complete(data: tuple[np.ndarray, np.ndarray], seen: Path) -> None:
    plain = rows_seen(data, seen, seed=1)
    first = rows_seen(data, seen, order="shuffled", seed=1)
    assert plain == [row / 119 for row in range(120)]
    assert first != plain
    assert sorted(first) == plain
    assert rows_seen(data, seen, order="shuffled", seed=1) == first
    assert rows_seen(data, seen, order="shuffled", seed=2) != first


def test_rows_are_drawn_by_the_seed_and_in_order(data: tuple[np.ndarray, np.ndarray], seen: Path) -> None:
    first = rows_seen(data, seen, rows=100, seed=1)
    assert len(set(first)) == 100
    assert first == sorted(first)
    assert rows_seen(data, seen, rows=100, seed=1) == first
    assert rows_seen(data, seen, rows=100, seed=2) != first
    shuffled = rows_seen(data, seen, rows=100, seed=1, order="shuffled")
    assert shuffled != first
    assert sorted(shuffled) == first  # the same rows
    assert len(rows_seen(data, seen, rows=500, seed=1)) == 120  # all there are


def test_a_draw_without_anomalies_is_a_failure_that_says_so(data: tuple[np.ndarray, np.ndarray]) -> None:
    outcome = run_cell(job(data, "KNNDistance", parameters={"n_neighbors": 1}, rows=3, seed=0))
    assert outcome["status"] == "failed"
    assert "0 of 3 rows are labelled anomalies" in outcome["why"]


@pytest.mark.parametrize(
    ("what", "why"),
    [
        ("raise", "RuntimeError: two lines and spaces"),
        ("memory", "out of memory"),
        ("long", f"ValueError: {'x' * 488}"),
    ],
)
def test_what_a_method_raises_is_its_outcome(
    data: tuple[np.ndarray, np.ndarray], seen: Path, what: str, why: str
) -> None:
    outcome = run_cell(job(data, "odd_detectors.Wanton", parameters={"what": what}))
    assert (outcome["status"], outcome["why"], outcome["detail"]) == ("failed", why, {})
    assert "roc_auc" not in outcome


def test_a_method_that_cannot_be_built_is_an_outcome_too(data: tuple[np.ndarray, np.ndarray]) -> None:
    outcome = run_cell(job(data, "KNNDistance", parameters={"n_neighbours": 3}))
    assert outcome["status"] == "failed"
    assert outcome["why"].startswith("KNNDistance has no parameter 'n_neighbours'. Did you mean")


def test_warnings_are_kept_and_not_shown(data: tuple[np.ndarray, np.ndarray], seen: Path) -> None:
    with warnings.catch_warnings(record=True) as shown:
        outcome = run_cell(job(data, "odd_detectors.Wanton", parameters={"what": "warn"}))
    assert outcome["status"] == "ok"
    assert outcome["detail"]["warnings"] == ["a", "b", "c"]
    assert not shown


def test_printing_does_no_harm(data: tuple[np.ndarray, np.ndarray], seen: Path) -> None:
    assert run_cell(job(data, "odd_detectors.Wanton", parameters={"what": "print"}))["status"] == "ok"


def test_details_are_plain_numbers(data: tuple[np.ndarray, np.ndarray], seen: Path) -> None:
    outcome = run_cell(job(data, "odd_detectors.Wanton", parameters={"what": "attributes"}))
    assert outcome["detail"] == {"n_iter": 7, "converged": True, "objective": 0.5}
    assert [type(value) for value in outcome["detail"].values()] == [int, bool, float]
    json.dumps(outcome, allow_nan=False)


def test_details_of_ours(data: tuple[np.ndarray, np.ndarray]) -> None:
    detail = run_cell(job(data, "GraphChoice", parameters={"graph": "tree", "n_components": 2}, seed=0))["detail"]
    assert detail["n_iter"] > 0
    assert detail["converged"] in (True, False)
    assert detail["objective"] > 0
    assert "tree_seconds" not in detail  # too few rows for a clock
    detail = run_cell(job(data, "LoMST", parameters={"n_neighbors": "sd"}))["detail"]
    assert detail == {"n_neighbors": LoMST("sd").fit(data[0]).n_neighbors_}


def test_the_tree_is_timed_alone_where_it_takes_long_enough() -> None:
    X = np.random.default_rng(0).random((1000, 2))
    y = np.arange(1000) < 5
    detail = run_cell(job((X, y), "NSNMF", parameters={"n_components": 2, "max_iter": 3}, seed=0))["detail"]
    assert detail["tree_seconds"] > 0
