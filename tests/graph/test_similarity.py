from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from naive import detection as naive_detect
from strategies import examples

from penstock import Tree, minimum_spanning_tree
from penstock.graph.similarities import normalize, similarity

KINDS = ["inverse", "binary", "relative", "normalized"]


def some_tree(n: int = 40, p: int = 3, seed: int = 0) -> Tree:
    return minimum_spanning_tree(np.random.default_rng(seed).random((n, p)))


def chain(*lengths: float) -> Tree:
    steps = np.arange(len(lengths))
    return Tree(np.column_stack([steps, steps + 1]), np.array(lengths, dtype=float))


@given(st.integers(2, 25), st.integers(0, 1000))
@examples(25)
def test_inverse_is_the_papers_formula(n: int, seed: int) -> None:
    tree = some_tree(n, seed=seed)
    expected = naive_detect.similarity(n, tree.edges.tolist(), tree.lengths.tolist())
    np.testing.assert_array_equal(similarity(tree).toarray(), expected)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("duplicates", ["zero", "floor"])
def test_symmetric_sorted_and_without_explicit_zeros(kind: str, duplicates: str) -> None:
    X = np.random.default_rng(1).integers(0, 4, (60, 2)).astype(float)
    S = similarity(minimum_spanning_tree(X), kind, duplicates)
    assert S.format == "csr"
    assert S.dtype == np.float64
    assert S.has_sorted_indices
    assert (S.data > 0).all()
    np.testing.assert_array_equal(S.toarray(), S.toarray().T)
    assert S.diagonal().sum() == 0


def test_binary_and_relative() -> None:
    tree = chain(1.0, 2.0, 8.0)
    assert sorted(similarity(tree, "binary").data) == [1.0] * 6
    np.testing.assert_allclose(sorted(similarity(tree, "relative").data), [0.25, 0.25, 1, 1, 2, 2], rtol=1e-15)
    np.testing.assert_allclose(similarity(chain(3.0, 6.0, 24.0), "relative").data, similarity(tree, "relative").data)


def test_normalized() -> None:
    S = similarity(some_tree())
    before = S.toarray()
    np.testing.assert_allclose(np.linalg.eigvalsh(normalize(S).toarray())[-1], 1.0, rtol=1e-12)
    np.testing.assert_array_equal(S.toarray(), before)  # the argument stays as it was
    isolated = similarity(chain(0.0, 1.0), "normalized", "zero").toarray()
    assert (isolated[0] == 0).all()
    assert isolated[1, 2] == 1.0


def test_zero_lengths() -> None:
    tree = chain(0.0, 0.5, 2.0)
    zero, floor = similarity(tree, duplicates="zero"), similarity(tree, duplicates="floor")
    assert zero.nnz == 4
    assert zero[[0], :].nnz == 0
    assert floor[0, 1] == 2.0
    assert (floor.toarray()[1:, 1:] == zero.toarray()[1:, 1:]).all()
    assert similarity(minimum_spanning_tree([[1.0]])).shape == (1, 1)


@pytest.mark.parametrize("kind", KINDS)
def test_all_rows_equal(kind: str) -> None:
    tree = chain(0.0, 0.0)
    assert similarity(tree, kind, "zero").nnz == 0
    floored = similarity(tree, kind, "floor").toarray()
    expected = np.sqrt(0.5) if kind == "normalized" else 1.0
    np.testing.assert_allclose(floored[[0, 1], [1, 2]], expected, rtol=1e-15)


@pytest.mark.parametrize("kind", KINDS)
def test_tiny_lengths_stay_finite(kind: str) -> None:
    S = similarity(chain(5e-324, 1e-310, 1e-200, 1.0), kind)
    assert np.isfinite(S.data).all()
    assert np.isfinite((S.data**2).sum())


def test_unknown_names_are_refused() -> None:
    with pytest.raises(ValueError, match=r"kind must be one of inverse.*'cosine'"):
        similarity(chain(1.0), "cosine")
    with pytest.raises(ValueError, match=r"duplicates must be one of zero, floor.*'collapse'"):
        similarity(chain(1.0), "inverse", "collapse")
