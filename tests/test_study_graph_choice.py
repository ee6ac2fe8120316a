"""The study's own detectors: the form and the graph of a structure term to choose, and LoMST's best k."""

from __future__ import annotations

from typing import Any, get_args

import numpy as np
import pytest

from penstock.detectors import NSNMF, LaplacianNSNMF, LoMST
from penstock.factor import Multiplicative
from penstock.ranking import true_detections
from studies.ahmed2021.graph_choice import Graph, GraphChoice
from studies.ahmed2021.oracle import BestLoMST

GRAPHS = get_args(Graph)


def some_rows(n: int = 90, p: int = 4, seed: int = 0) -> np.ndarray:
    rows = np.random.default_rng(seed).gamma(2.0, size=(n, p))
    rows[n // 2] *= 5.0
    return rows


@pytest.mark.parametrize("seed", [0, 1])
@pytest.mark.parametrize("more", [{}, {"alpha": 0.3, "solver": Multiplicative(), "max_iter": 50, "tol": 0.0}])
@pytest.mark.filterwarnings("ignore:.* stopped after")
def test_on_the_tree_it_is_ns_nmf(seed: int, more: dict[str, Any]) -> None:
    X = some_rows(seed=seed)
    twins = {
        "symmetric": NSNMF(3, duplicates="collapse", random_state=seed, **more),
        "laplacian": LaplacianNSNMF(3, random_state=seed, **more),
    }
    for form, twin in twins.items():
        chosen = GraphChoice(form, "tree", 3, random_state=seed, **more).fit(X)
        np.testing.assert_allclose(chosen.scores_, twin.fit(X).scores_, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("form", ["symmetric", "laplacian"])
def test_all_graphs_run_and_differ(form: Any) -> None:
    X = some_rows()
    scores = [GraphChoice(form, graph, 3, random_state=0).fit(X).scores_ for graph in GRAPHS]
    assert all(np.isfinite(found).all() and found.shape == (90,) for found in scores)
    for place, found in enumerate(scores):
        for other in scores[:place]:
            assert not np.allclose(found, other, rtol=1e-6)


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"form": "square"}, "form must be"),
        ({"graph": "mesh"}, "graph must be"),
        ({"alpha": 0.0}, "alpha must be"),
        ({"gamma": -1.0}, "gamma must be"),
        ({"n_components": 0}, "n_components must be"),
    ],
)
def test_wrong_values_are_refused(wrong: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        GraphChoice(**wrong).fit(some_rows())


def labelled(n: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    X, y = rng.random((n, 2)), np.zeros(n, dtype=np.int64)
    y[:8] = 1
    X[:8] = 0.5 + 0.25 * rng.normal(size=(8, 2))
    return (X - X.min(0)) / np.ptp(X, axis=0), y


@pytest.mark.parametrize(("n", "seed"), [(150, 0), (150, 1), (30, 2)])
def test_the_best_k_is_that_of_trying_all(n: int, seed: int) -> None:
    X, y = labelled(n, seed)
    tried = {k: LoMST(k).fit(X).scores_ for k in range(2, min(50, n - 1) + 1)}
    found = {k: true_detections(y, scores) for k, scores in tried.items()}
    best = min(k for k, count in found.items() if count == max(found.values()))
    oracle = BestLoMST().fit(X, y)
    assert len(set(found.values())) > 1  # or any k would do
    assert oracle.detections_ == found
    assert oracle.n_neighbors_ == best
    np.testing.assert_allclose(oracle.scores_, tried[best], rtol=1e-9, atol=1e-12)
