"""The detectors of the study, and what the choice of a graph changes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, get_args

import numpy as np
import pandas as pd
import pytest
from naive import factors as naive
from scipy import stats
from study_rows import central_claim_rows, make_rows

from penstock._types import Factors
from penstock.detectors import NSNMF, LaplacianNSNMF, LoMST
from penstock.factor import Multiplicative
from penstock.graph.similarities import binary_knn_graph
from penstock.ranking import true_detections
from studies.ahmed2021.graph_effect import graph_effect
from studies.ahmed2021.methods import BestLoMST, CaiGNMF, Graph, GraphChoice, PCAResidual
from studies.ahmed2021.rows import COLUMNS

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


@pytest.mark.parametrize("score_kind", ["residual", "structural"])
def test_normalized_and_structural_as_ns_nmf(score_kind: Any) -> None:
    X = some_rows()
    twin = NSNMF(3, similarity="normalized", score_kind=score_kind, random_state=0).fit(X)
    chosen = GraphChoice("symmetric", "tree, normalized", 3, score_kind=score_kind, random_state=0).fit(X)
    np.testing.assert_allclose(chosen.scores_, twin.scores_, rtol=1e-12, atol=1e-12)


def test_weights_and_what_is_kept_of_the_factors() -> None:
    X = some_rows()
    X[1], X[3] = X[0] + 1e-6, X[2] + 1e-6  # as many very near pairs as groups
    fitted = {
        weight: GraphChoice(n_components=2, weight=weight, random_state=0).fit(X)
        for weight in (1.0, "max", "equal", 0.5)
    }
    S = fitted[1.0].similarity_
    assert fitted["max"].similarity_.max() == pytest.approx(1.0)
    assert fitted["equal"].details_["structure_ratio"] == pytest.approx(1.0)
    np.testing.assert_allclose(fitted[0.5].similarity_.toarray(), 0.5 * S.toarray())
    A = (X - X.min(0)) / np.ptp(X, axis=0)
    details, W = fitted[1.0].details_, fitted[1.0].embedding_
    norms = np.linalg.norm(A, axis=1)
    assert details["norm_rank_correlation"] == pytest.approx(stats.spearmanr(fitted[1.0].scores_, norms).statistic)
    assert details["structure_ratio"] == pytest.approx((S.toarray() ** 2).sum() / (A**2).sum())
    held = sorted((W**2).sum(axis=1), reverse=True)
    most = int(details["rows_holding_most"])
    assert sum(held[:most]) >= 0.9 * sum(held) > sum(held[: most - 1])
    assert most == 4
    assert fitted[1.0].explained_ < 0.05 < fitted["max"].explained_


def test_cai_steps_are_the_twins() -> None:
    X = some_rows(n=40)
    fitted = CaiGNMF(3, penalty=2.0, max_iter=40, n_starts=1, random_state=3).fit(X)
    rng, S = np.random.default_rng(3), binary_knn_graph(X, 5).toarray()
    W, H = rng.random((40, 3)), rng.random((3, 4))
    W, H = W * np.linalg.norm(H, axis=1), H / np.linalg.norm(H, axis=1)[:, None]
    for _ in range(40):
        W, H = naive.gnmf_step(X, S, W, H, 2.0)
    np.testing.assert_allclose(fitted.factors_.W, W, rtol=1e-9)
    np.testing.assert_allclose(fitted.scores_, naive.anomaly_scores(X, W, H), rtol=1e-9)
    several = [CaiGNMF(3, max_iter=30, n_starts=n, random_state=3).fit(X).factors_ for n in (1, 10)]
    losses = [naive.gnmf_loss(X, S, factors.W, factors.H, 100.0) for factors in several]
    assert losses[1] <= losses[0]
    assert isinstance(several[0], Factors)


def test_the_residual_of_principal_components() -> None:
    X = some_rows()
    centred = X - X.mean(axis=0)
    plane = np.linalg.svd(centred)[2][:2]
    expected = np.linalg.norm(centred - centred @ plane.T @ plane, axis=1)
    np.testing.assert_allclose(PCAResidual(2).fit(X).scores_, expected, rtol=1e-9)


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
        ({"weight": "median"}, "weight must be"),
        ({"weight": -1.0}, "weight must be"),
        ({"score_kind": "norm"}, "score_kind must be"),
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


SETS = list("abcdefgh")


def noisy(gain_of_tree: float, gain_of_form: float):
    def count(method: str, dataset: str, seed: int | None) -> float:
        tree, symmetric = method.endswith(" tree"), method.startswith("symmetric")
        return 4.0 + SETS.index(dataset) % 3 + gain_of_tree * tree + gain_of_form * symmetric

    return count


@pytest.mark.parametrize(
    ("tree", "form", "verdict"), [(2, 0, "graph"), (0, 2, "form"), (2, 1, "both"), (0, 0, "neither")]
)
def test_verdicts(tree: float, form: float, verdict: str) -> None:
    found = graph_effect(central_claim_rows(SETS, detections=noisy(tree, form)))
    assert found.verdict == verdict
    assert len(found.table) == 8
    assert (found.table["datasets"] == 8).all()
    effects = found.effects.query("measure == 'precision_at_n'").set_index("contrast")
    assert effects.index.tolist() == [
        "symmetric − laplacian",
        "tree − tree, 0-1",
        "tree − 5 nearest, 0-1",
        "tree − gaussian",
    ]
    assert effects["mean_difference"].tolist() == pytest.approx([form / 10, *[tree / 10] * 3])
    assert effects["p_value"]["symmetric − laplacian"] == pytest.approx(2 / 2**8 if form else 1)
    assert effects["p_value"]["tree − gaussian"] == pytest.approx(3 * 2 / 2**8 if tree else 1)  # Holm over three
    best = found.table.sort_values("mean_rank").iloc[0]
    if verdict == "both":
        assert (best["form"], best["graph"], best["mean_rank"]) == ("symmetric", "tree", 1.0)


def test_effects_are_paired_over_data_sets() -> None:
    rng, methods = np.random.default_rng(1), sorted(set(central_claim_rows(SETS)["method"]))
    counts = {(method, dataset): rng.integers(0, 11) for dataset in SETS for method in methods}
    found = graph_effect(central_claim_rows(SETS, detections=lambda m, d, s: float(counts[m, d])))
    shares = pd.DataFrame({m: [counts[m, d] / 10 for d in SETS] for m in methods})
    tree = shares[["symmetric, tree", "laplacian, tree"]].mean(axis=1)
    other = shares[["symmetric, gaussian", "laplacian, gaussian"]].mean(axis=1)
    line = found.effects.query("contrast == 'tree − gaussian' and measure == 'precision_at_n'").iloc[0]
    assert line["mean_difference"] == pytest.approx((tree - other).mean())
    boot = stats.bootstrap(((tree - other).to_numpy(),), np.mean, method="percentile", n_resamples=20_000, rng=2)
    assert (line["low"], line["high"]) == pytest.approx(tuple(boot.confidence_interval), abs=0.01)
    again = graph_effect(central_claim_rows(SETS, detections=lambda m, d, s: float(counts[m, d])))
    pd.testing.assert_frame_equal(found.effects, again.effects)


@pytest.mark.parametrize(
    "rows",
    [
        lambda: pd.DataFrame(columns=list(COLUMNS)),
        make_rows,
        lambda: central_claim_rows(["a"]),
        lambda: central_claim_rows(SETS).query("method.str.startswith('symmetric')"),
        lambda: central_claim_rows(SETS).query("method in ['symmetric, tree', 'laplacian, gaussian']"),
    ],
    ids=["nothing", "other parts", "one set", "one form", "no pair"],
)
def test_too_little_to_say(rows: Callable[[], pd.DataFrame]) -> None:
    found = graph_effect(rows())
    assert found.verdict == "not run"
    assert "not run" in found.sentence


def failed(rows: pd.DataFrame, where: pd.Series, why: str = "memory") -> pd.DataFrame:
    rows = rows.copy()
    measures = ["precision_at_n", "average_precision", "true_detections", "roc_auc"]
    rows.loc[where, ["status", "why"]] = ["killed", why]
    rows.loc[where, measures] = np.nan
    return rows


def test_a_method_that_never_succeeded_is_a_gap_in_the_grid() -> None:
    rows = central_claim_rows(SETS, detections=noisy(2, 0))
    found = graph_effect(failed(rows, rows["method"] == "laplacian, gaussian"))
    assert len(found.table) == 8
    line = found.table.set_index(["form", "graph"]).loc[("laplacian", "gaussian")]
    assert line["datasets"] == 0
    assert np.isnan(line["precision_at_n"])
    assert found.table["datasets"].tolist() == [8] * 7 + [0]
    assert found.verdict == "graph"
    assert found.sentence.endswith("Without any result: laplacian | gaussian.")
    assert set(found.left_out["method"]) == {"laplacian | gaussian"}
    assert found.left_out["dataset"].tolist() == SETS
