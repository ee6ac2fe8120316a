"""Graph or form: which of them makes the difference."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from scipy import stats
from study_rows import central_claim_rows, make_rows

from studies.ahmed2021.graph_effect import graph_effect
from studies.ahmed2021.rows import COLUMNS

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


METHODS = sorted(set(central_claim_rows(SETS)["method"]))  # in an order that is the same in every process


def test_effects_are_paired_over_data_sets() -> None:
    rng = np.random.default_rng(1)
    counts = {(method, dataset): rng.integers(0, 11) for dataset in SETS for method in METHODS}
    found = graph_effect(central_claim_rows(SETS, detections=lambda m, d, s: float(counts[m, d])))
    shares = pd.DataFrame({m: [counts[m, d] / 10 for d in SETS] for m in METHODS})
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
        pd.DataFrame(columns=list(COLUMNS)),
        make_rows(),
        central_claim_rows(["a"]),
        central_claim_rows(SETS).query("method.str.startswith('symmetric')"),
        central_claim_rows(SETS).query("method in ['symmetric, tree', 'laplacian, gaussian']"),
    ],
    ids=["nothing", "other parts", "one set", "one form", "no pair"],
)
def test_too_little_to_say(rows: pd.DataFrame) -> None:
    found = graph_effect(rows)
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


def test_labels_are_those_of_the_method_not_of_the_way_a_cell_was_computed() -> None:
    rows = central_claim_rows(SETS)
    other = rows["method"].str.endswith("gaussian") & rows["dataset"].isin(SETS[-2:])
    rows.loc[other, "mark"] = "sparse graph"
    for place in rows.index[other]:
        rows.at[place, "detail"] = rows.at[place, "detail"] | {"graph": "sparse gaussian"}
    found = graph_effect(rows)
    assert set(found.table["graph"]) == {"tree", "tree, 0-1", "5 nearest, 0-1", "gaussian"}
    assert (found.table["datasets"] == 8).all()
