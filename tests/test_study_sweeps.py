"""Sweeps of parameters, overlaps of lists and the stability of ranks."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from strategies import examples
from study_rows import make_rows, study_rows, sweep_rows

from penstock.bench.datasets import Dataset
from studies.ahmed2021.datasets import load
from studies.ahmed2021.overlap import find_overlaps
from studies.ahmed2021.rows import COLUMNS
from studies.ahmed2021.stability import kendalls_w, stability
from studies.ahmed2021.sweeps import sweep_names, sweep_table

SETS = ["x", "y"]


def test_means_and_ranks() -> None:
    rows = sweep_rows("K", [10, 2], SETS, ["NMF"], lambda base, k, d: k / 2 + (d == "y"))
    found = sweep_table(rows, "K")
    assert found.summary["value"].tolist() == [2, 10]
    assert found.summary["precision_at_n"].tolist() == pytest.approx([0.15, 0.55])
    assert found.summary["average_precision"].tolist() == pytest.approx([0.135, 0.495])
    assert found.summary["mean_rank"].tolist() == [2, 1]
    assert found.summary["cpu_seconds"].tolist() == [1.5, 1.5]
    assert found.summary["datasets"].tolist() == [2, 2]
    assert found.per_set[["value", "dataset", "rank", "runs"]].to_numpy().tolist() == [
        [2, "x", 2.0, 2], [2, "y", 2.0, 2], [10, "x", 1.0, 2], [10, "y", 1.0, 2]]  # fmt: skip
    assert found.left_out.empty


def test_bases_are_apart_and_sweeps_too() -> None:
    rows = study_rows()
    assert sweep_names(rows) == ["K", "alpha"]
    assert sweep_table(rows, "K").summary.groupby("base").size().to_dict() == {"NS-NMF": 6, "NMF": 6}
    assert set(sweep_table(rows, "alpha").summary["base"]) == {"NS-NMF"}


def test_values_are_compared_on_the_same_sets() -> None:
    rows = sweep_rows("K", [2, 5], SETS, ["NMF"], lambda base, k, d: 9.0 if d == "y" else 1.0)
    gone = (rows["value"] == 5) & (rows["dataset"] == "y")
    rows.loc[gone, ["status", "why"]] = ["timed out", "1 h"]
    found = sweep_table(rows, "K")
    assert found.summary["datasets"].tolist() == [1, 1]
    assert found.summary["precision_at_n"].tolist() == [0.1, 0.1]
    assert len(found.per_set) == 4
    assert found.left_out.to_dict("records") == [{"base": "NMF", "value": 5, "dataset": "y", "why": "timed out: 1 h"}]


def named(name: str, X: np.ndarray) -> Dataset:
    return Dataset(name, X, np.zeros(len(X), dtype=np.int64))


def rows(seed: int, n: int = 100, p: int = 4) -> np.ndarray:
    return np.random.default_rng(seed).normal(size=(n, p))


def test_shared_rows_are_counted_once_and_by_the_smaller_set() -> None:
    X = rows(1)
    second = np.concatenate([X[:10], X[:10], rows(2, 30)])
    (found,) = find_overlaps([named("one", X), named("two", second)])
    assert (found.first, found.second, found.shared_rows) == ("one", "two", 10)
    assert found.share == 10 / 40


def test_scaled_copies_are_found() -> None:
    X = np.round(rows(1), 3)
    (found,) = find_overlaps([named("one", X), named("two", 40 + X * [1, 10, 100, 0.5])])
    assert found.share == 1


def test_draws_that_lost_the_extremes_of_some_columns_are_found() -> None:
    X = np.round(rows(1, 300, 6), 3)
    extreme = np.argmax(X[:, 0])
    less = np.delete(X, extreme, axis=0)
    less[:, 0] /= less[:, 0].max()  # now on another scale than in the complete set, in this column
    (found,) = find_overlaps([named("all", X), named("less", less)])
    assert found.share == pytest.approx(1, abs=0.01)


def test_columns_that_tell_few_rows_apart_prove_nothing() -> None:
    states = np.random.default_rng(0).integers(0, 3, size=(200, 5)).astype(float)
    first, second = np.column_stack([states, rows(1, 200, 3)]), np.column_stack([states[::-1], rows(2, 200, 3)])
    assert find_overlaps([named("one", first), named("two", second)]) == []


def test_the_variants_of_the_real_sets(benchmark_data: Path) -> None:
    names = ("Annthyroid", "SpamBase", "Cardiotocography", "Waveform", "Annthyroid_full", "SpamBase_05v10", "Glass")
    found = {(each.first, each.second): each for each in find_overlaps([load(name) for name in names])}
    assert set(found) == {("Annthyroid", "Annthyroid_full"), ("SpamBase", "SpamBase_05v10")}
    assert all(each.share > 0.9 for each in found.values())


def test_seeds_that_all_agree() -> None:
    rows = make_rows(["A", "B", "C"], list("xyz"), detections=lambda m, d, s: "CBA".index(m))
    found = stability(rows)
    assert found.seeds == [0, 1, 2]
    assert found.datasets == list("xyz")
    assert (found.mean_ranks == [1, 2, 3]).all(axis=None)
    assert (found.agree_on_best, found.kendalls_w) == (1, 1)
    assert found.best.tolist() == ["A", "A", "A"]
    assert (found.per_dataset == 1).all(axis=None)
    assert (found.spread["deviation"] == 0).all()


def test_a_seed_that_tells_another_story() -> None:
    """With seed 2 A and C change places: one pair of seeds of three agrees on the best, and nothing on the order."""
    rows = make_rows(
        ["A", "B", "C"], list("xy"), detections=lambda m, d, s: "CBA".index(m) if s < 2 else "ABC".index(m)
    )
    found = stability(rows)
    assert found.best.tolist() == ["A", "A", "C"]
    assert found.agree_on_best == pytest.approx(1 / 3)
    assert found.kendalls_w == pytest.approx(1 / 9)  # rank sums 5, 6, 7 of three judges: 12 · 2 / (9 · 24)
    assert found.per_dataset.loc["x"].tolist() == pytest.approx([1 / 3, 1 / 9])
    spread = found.spread.set_index(["dataset", "method"])
    assert spread.loc[("x", "A"), ["seeds", "median", "lowest", "highest"]].tolist() == [3, 2, 0, 2]
    assert spread.loc[("x", "A"), "deviation"] == pytest.approx(np.std([2, 2, 0], ddof=1))


@pytest.mark.parametrize(
    "rows",
    [
        pd.DataFrame(columns=list(COLUMNS)),
        make_rows(status="failed", why="x"),
        make_rows(["A"]),
        make_rows(["LoMST"]),
        make_rows(seeds=(0,)),
    ],
    ids=["nothing", "all failed", "one method", "no seeds", "one seed"],
)
def test_too_little_to_say(rows: pd.DataFrame) -> None:
    found = stability(rows)
    assert np.isnan(found.agree_on_best)
    assert np.isnan(found.kendalls_w)


@given(st.integers(2, 6), st.integers(2, 5), st.integers(1, 6), st.randoms(use_true_random=False))
@examples(60)
def test_kendalls_w_is_its_definition(judges: int, items: int, top: int, random) -> None:
    table = pd.DataFrame([[random.randint(0, top) for _ in range(items)] for _ in range(judges)])
    found = kendalls_w(table)
    ranks = table.rank(axis=1)
    sums = ranks.sum()
    ties = sum(sum(size**3 - size for size in row.value_counts()) for _, row in table.iterrows())
    below = judges**2 * (items**3 - items) - judges * ties
    if below == 0:
        assert np.isnan(found)
    else:
        assert found == pytest.approx(12 * ((sums - sums.mean()) ** 2).sum() / below, rel=1e-10, abs=1e-12)
