from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from penstock._types import FloatArray
from penstock.bench.datasets import Dataset
from studies.ahmed2021.datasets import load
from studies.ahmed2021.overlap import find_overlaps


def named(name: str, X: FloatArray) -> Dataset:
    return Dataset(name, X, np.zeros(len(X), dtype=np.int64))


def rows(seed: int, n: int = 100, p: int = 4) -> FloatArray:
    return np.random.default_rng(seed).normal(size=(n, p))


def test_sets_of_their_own_do_not_overlap() -> None:
    assert find_overlaps([named("one", rows(1)), named("two", rows(2)), named("three", rows(3, p=3))]) == []
    assert find_overlaps([]) == []


def test_shared_rows_are_counted_once_and_by_the_smaller_set() -> None:
    X = rows(1)
    second = np.concatenate([X[:10], X[:10], rows(2, 30)])
    (found,) = find_overlaps([named("one", X), named("two", second)])
    assert (found.first, found.second, found.shared_rows) == ("one", "two", 10)
    assert found.share == 10 / 40


def test_the_order_of_rows_and_rounding_do_not_matter() -> None:
    X = np.round(rows(1), 6)
    (found,) = find_overlaps([named("one", X), named("two", X[::-1] + 1e-9)])
    assert (found.shared_rows, found.share) == (100, 1.0)


def test_minus_zero_is_zero() -> None:
    X = rows(1)
    X[:, 0] = 0.0
    X[0], X[1] = 9.0, -9.0  # left out of the second, so that the two are alike as they are only, not scaled
    Y = X[2:].copy()
    Y[:, 0] = -0.0
    assert find_overlaps([named("one", X), named("two", Y)])[0].share == 1


def test_scaled_copies_are_found() -> None:
    X = np.round(rows(1), 3)
    (found,) = find_overlaps([named("one", X), named("two", 40 + X * [1, 10, 100, 0.5])])
    assert found.share == 1


def test_the_corners_of_scaled_sets_are_no_overlap() -> None:
    first, second = rows(1, 20, 1) ** 2, rows(2, 20, 1)
    assert find_overlaps([named("one", first), named("two", second)]) == []


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


def test_ordered_by_share_and_cut_at_the_least() -> None:
    X = rows(1)
    sets = [named("all", X), named("few", np.concatenate([X[:4], rows(2, 96)])), named("half", X[50:])]
    assert [(found.first, found.second) for found in find_overlaps(sets)] == [("all", "half")]
    assert [found.shared_rows for found in find_overlaps(sets, least=0.04)] == [50, 4]
    with pytest.raises(ValueError, match="least must be a share above 0"):
        find_overlaps(sets, least=0)


def test_a_constant_set_and_an_empty_one() -> None:
    sets = [named("constant", np.ones((5, 2))), named("empty", np.empty((0, 2))), named("other", rows(1, p=2))]
    assert find_overlaps(sets) == []


def test_the_variants_of_the_real_sets(benchmark_data: Path) -> None:
    names = ("Annthyroid", "SpamBase", "Cardiotocography", "Waveform", "Annthyroid_full", "SpamBase_05v10", "Glass")
    found = {(each.first, each.second): each for each in find_overlaps([load(name) for name in names])}
    assert set(found) == {("Annthyroid", "Annthyroid_full"), ("SpamBase", "SpamBase_05v10")}
    assert all(each.share > 0.9 for each in found.values())
