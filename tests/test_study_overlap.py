from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from penstock.bench.datasets import Dataset
from studies.ahmed2021.datasets import load
from studies.ahmed2021.overlap import find_overlaps


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
