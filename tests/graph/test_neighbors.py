from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from naive import detection as naive_detect
from strategies import examples

from penstock.detectors._neighbors import FittedRows
from penstock.graph.search import build_tree, nearest_neighbors
from penstock.graph.similarities import binary_knn_graph, gaussian_graph, self_tuning_graph

pytestmark = pytest.mark.kernels

# Interpreted, a kernel announces the overflow that it then deals with; compiled, it does not.
overflows = pytest.mark.filterwarnings("ignore:(overflow|invalid value|divide by zero) encountered:RuntimeWarning")


def naive_lists(X: np.ndarray, k: int) -> tuple[list[list[int]], list[list[float]]]:
    found = [naive_detect.nearest(X.tolist(), i, k) for i in range(len(X))]
    return [[j for _, j in row] for row in found], [[d for d, _ in row] for row in found]


def lattice(n: int, p: int, values: int, seed: int) -> np.ndarray:
    """Small whole numbers: many ties and equal rows, and distances without rounding."""
    return np.random.default_rng(seed).integers(0, values, (n, p)).astype(float)


def assert_sorted_pairs(X: np.ndarray, k: int) -> None:
    near, distances = nearest_neighbors(X, k)
    expected, lengths = naive_lists(X, k)
    assert near.tolist() == expected
    np.testing.assert_allclose(distances, lengths, rtol=1e-12)


@pytest.mark.parametrize("p", [1, 2, 5, 20])
def test_equals_sorting_all_pairs_with_ties_and_near_duplicates(p: int) -> None:
    rng = np.random.default_rng(p)
    near = np.repeat(rng.normal(size=(8, p)), 8, axis=0) + 1e-9 * rng.normal(size=(64, p)) + 1e3
    for X in (lattice(50, p, 2, seed=p), lattice(50, p, 5, seed=p), near):
        for k in (1, 6, 49):
            assert_sorted_pairs(X, k)
    copies = np.repeat([[1.0, 2.0], [3.0, 4.0]], 30, axis=0)
    near, distances = nearest_neighbors(copies, 5)  # never its own neighbour
    assert (near[[0, 59]].tolist(), distances.max()) == ([[1, 2, 3, 4, 5], [30, 31, 32, 33, 34]], 0)
    _, distances = nearest_neighbors(np.array([[0.0], [1.0], [1.0 - 2.0**-53], [1e-170]]), 1)
    # A difference below the rounding of the range counts as none.
    assert distances[:, 0].tolist() == [0.0, 2.0**-53, 2.0**-53, 0.0]


@given(st.integers(2, 30), st.integers(1, 20), st.integers(0, 10_000), st.data())
@examples(30)
def test_equals_sorting_all_pairs(n: int, p: int, seed: int, data: st.DataObject) -> None:
    assert_sorted_pairs(np.random.default_rng(seed).normal(size=(n, p)) + 1e6, data.draw(st.integers(1, n - 1)))


@overflows
@pytest.mark.parametrize("unit", [1e-300, 1e-160, 1.0, 1e160, 1e300])
def test_any_unit(unit: float) -> None:
    X = np.random.default_rng(3).random((40, 3))
    near, distances = nearest_neighbors(X, 3)
    scaled_near, scaled = nearest_neighbors(X * unit, 3)
    np.testing.assert_array_equal(near, scaled_near)
    np.testing.assert_allclose(scaled / unit, distances, rtol=1e-6)


def test_a_new_row_does_not_depend_on_its_batch() -> None:
    rng = np.random.default_rng(4)
    X, Q = rng.random((150, 17)), rng.random((80, 17))
    tree = build_tree(X)
    whole = tree.nearest(Q, 7)
    for size in (1, 2, 7):
        for start in range(0, 21, size):
            part = tree.nearest(Q[start : start + size], 7)
            np.testing.assert_array_equal(part[0], whole[0][start : start + size])
            np.testing.assert_array_equal(part[1], whole[1][start : start + size])


def test_a_new_row_equal_to_a_known_one_has_its_neighbours() -> None:
    X = lattice(60, 2, 5, seed=5)
    tree = build_tree(X)
    near, distances = nearest_neighbors(X, 4)
    found = FittedRows.of(tree, distances).neighbors(X, 4)
    np.testing.assert_array_equal(found.distances[:, 1:], distances)
    assert (found.apart == 0).all()
    first = np.array([np.flatnonzero((row == X).all(axis=1))[0] for row in X])
    np.testing.assert_array_equal(found.without_twin, near[first])


@overflows
def test_a_query_at_the_end_of_the_world() -> None:
    tree = build_tree(np.random.default_rng(6).random((50, 3)))
    _, distances = tree.nearest(np.array([[1e308, -1e308, 0.0], [0.5, 0.5, 0.5]]), 3)
    assert np.isfinite(distances).all()
    assert distances[0, 0] > 1e149
    assert distances[1, 0] < 1


@pytest.mark.parametrize("k", [0, 5])
def test_impossible_k(k: int) -> None:
    with pytest.raises(ValueError, match=rf"between 1 and n − 1 = 4, but is {k}"):
        nearest_neighbors(np.zeros((5, 1)), k)
    with pytest.raises(ValueError, match="nearest rows, but there are 5"):
        build_tree(np.zeros((5, 1))).nearest(np.zeros((1, 1)), 6)


def test_graphs_are_their_formulas() -> None:
    X = np.random.default_rng(8).random((60, 3))
    near, lengths = naive_lists(X, 7)
    pairs = [naive_detect.distance(X[i], X[j]) for i in range(60) for j in range(60) if i != j]
    sigma = float(np.median(pairs))
    binary, gaussian, tuned = np.zeros((3, 60, 60))
    for i in range(60):
        for j in range(60):
            gaussian[i, j] = np.exp(-(naive_detect.distance(X[i], X[j]) ** 2) / (2 * sigma**2)) if i != j else 0.0
        for rank, j in enumerate(near[i][:6]):  # ⌊log2 60⌋ + 1
            square = naive_detect.distance(X[i], X[j]) ** 2
            tuned[i, j] = tuned[j, i] = np.exp(-square / (lengths[i][6] * lengths[j][6]))
            if rank < 5:
                binary[i, j] = binary[j, i] = 1.0
    np.testing.assert_array_equal(binary_knn_graph(X, q=5).toarray(), binary)
    assert binary_knn_graph(X[:3], q=5).nnz == 6
    for found, S in ((gaussian_graph(X), gaussian), (self_tuning_graph(X).toarray(), tuned)):
        degree = S.sum(axis=1)
        np.testing.assert_allclose(found, S / np.sqrt(np.outer(degree, degree)), rtol=1e-12)
    with pytest.raises(ValueError, match=r"12,001 rows would take 1\.2 GB.*self_tuning_graph"):
        gaussian_graph(np.zeros((12_001, 1)))


@pytest.mark.parametrize(
    "X",
    [
        np.ones((20, 2)),
        np.repeat([[0.0], [1.0]], 10, axis=0),
        np.r_[np.zeros((12, 1)), [[1.0], [2.0]]],
        np.array([[0.0], [1.0]]),
        np.random.default_rng(0).random((15, 2)) * 1e200,
        np.r_[np.random.default_rng(0).random((15, 2)), [[1e9, 1e9]]],
    ],
    ids=["constant", "two-values", "many-copies", "two-rows", "huge", "far-off"],
)
def test_graphs_of_awkward_data(X: np.ndarray) -> None:
    for S in (binary_knn_graph(X).toarray(), gaussian_graph(X), self_tuning_graph(X).toarray()):
        assert np.isfinite(S).all()
        assert (S >= 0).all()
        assert (S <= 1 + 1e-12).all()
        assert (np.diag(S) == 0).all()
        np.testing.assert_array_equal(S, S.T)
