from __future__ import annotations

import numpy as np
import pytest
from naive import detection as naive_detect

from penstock.detectors import KNNDistance, MeanDistance, NormScore


def some_rows(n: int = 50, p: int = 3, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).normal(size=(n, p))


def test_norm_and_distance_from_the_mean() -> None:
    X = some_rows()
    mean = [sum(column) / 50 for column in X.T]
    for detector, origin, rtol in ((NormScore(scale=None), [0.0] * 3, 1e-14), (MeanDistance(scale=None), mean, 1e-12)):
        expected = [naive_detect.distance(row, origin) for row in X]
        np.testing.assert_allclose(detector.fit(X).scores_, expected, rtol=rtol)
    scaled = (X - X.min(axis=0)) / np.ptp(X, axis=0)  # the norm is measured from the smallest values
    np.testing.assert_allclose(NormScore().fit(X).scores_, np.linalg.norm(scaled, axis=1), rtol=1e-14)


@pytest.mark.parametrize("k", [1, 5, 49])
def test_knn_distance(k: int) -> None:
    X = some_rows()
    expected = naive_detect.knn_distance(X.tolist(), k)
    np.testing.assert_allclose(KNNDistance(k, scale=None).fit(X).scores_, expected, rtol=1e-14)


def test_knn_distance_of_a_new_row_counts_all_training_rows() -> None:
    detector = KNNDistance(2, scale=None).fit([[0.0], [1.0], [3.0], [9.0]])
    assert detector.anomaly_score([[2.0], [3.0], [100.0]]).tolist() == [1.0, 3.0, 97.0]


@pytest.mark.parametrize("detector", [NormScore(scale=None), MeanDistance(scale=None), KNNDistance(scale=None)])
@pytest.mark.parametrize("unit", [1e-300, 1e300])
def test_any_unit(detector, unit: float) -> None:
    X = some_rows()
    expected = detector.fit(X).scores_
    np.testing.assert_allclose(detector.fit(X * unit).scores_ / unit, expected, rtol=1e-6)


@pytest.mark.parametrize("bad", [0, 1.5, "five", None])
def test_other_numbers_of_neighbours_are_refused(bad: object) -> None:
    with pytest.raises(ValueError, match="n_neighbors must be a whole number ≥ 1; got"):
        KNNDistance(bad).fit(some_rows())
    with pytest.raises(ValueError, match=r"KNNDistance\(\) needs at least 6 rows; got n_samples = 5"):
        KNNDistance().fit(some_rows(5))
