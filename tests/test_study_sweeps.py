"""Sweeps of parameters."""

from __future__ import annotations

import pytest
from study_rows import study_rows, sweep_rows

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
