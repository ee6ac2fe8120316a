"""The factors of a stream against their naive twin."""

from __future__ import annotations

import naive.online
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from strategies import examples

from penstock.detectors import OnlineNSNMF
from penstock.factor import Factors
from penstock.factor.online import OnlineFactors
from penstock.graph.mst import minimum_spanning_tree

KINDS = ("inverse", "binary", "relative", "normalized")


def some_stream(seed: int, n: int, p: int, missing: float = 0.0, zeros: bool = False, ties: bool = False):
    """Rows in [0, 1] that drift, with missing readings, columns that are 0 for a while, and equal rows."""
    rng = np.random.default_rng(seed)
    base = rng.random((3, p))
    X = base[rng.integers(3, size=n)] * rng.random((n, 1)) + 0.1 * rng.random((n, p))
    if ties:
        X = np.round(8 * X) / 8  # squares and sums without rounding, so that ties are ties
    if zeros:
        X[: n // 2, 0] = 0.0
        X[n // 4 : 3 * n // 4, -1] = 0.0
    X[rng.random((n, p)) < missing] = np.nan
    return X


def started(A, W, H, capacity=None, **chosen) -> OnlineFactors:
    factors = OnlineFactors(OnlineNSNMF(**chosen), capacity or len(A), A.shape[1], len(H))
    factors.fill(A)
    factors.begin(Factors(W, H))
    return factors


def both(
    X,
    z,
    K,
    seed,
    n_inner,
    kind="inverse",
    forgetting=1.0,
    refresh_every=1,
    duplicates="join",
    accumulate="sample",
    alpha=0.8,
):
    rng = np.random.default_rng(seed + 1)
    W, H = rng.random((z, K)), rng.random((K, X.shape[1]))
    W[0, 0] = H[0, 0] = 0.0
    chosen = {"alpha": alpha, "similarity": kind, "forgetting": forgetting, "refresh_every": refresh_every}
    chosen |= {"duplicates": duplicates, "accumulate": accumulate}
    fast = started(X[:z], W, H, max_iter=n_inner, tol=0.0, **chosen)
    slow = naive.online.online_nsnmf(
        *(part.tolist() for part in (X[:z], W, H, X[z:])), alpha, kind, n_inner, forgetting, refresh_every, duplicates,
        accumulate,
    )  # fmt: skip
    return fast.update(X[z:], X[z:]), np.array(slow)


@pytest.mark.kernels
@given(
    seed=st.integers(0, 10**6),
    z=st.integers(2, 9),
    K=st.integers(1, 4),
    p=st.integers(1, 9),
    n_inner=st.integers(1, 4),
    kind=st.sampled_from(KINDS),
    forgetting=st.sampled_from([1.0, 0.9]),
    refresh_every=st.sampled_from([1, 3]),
    missing=st.sampled_from([0.0, 0.3]),
    zeros=st.booleans(),
    ties=st.booleans(),
    duplicates=st.sampled_from(["join", "zero"]),
    accumulate=st.sampled_from(["sample", "step"]),
)
@examples(60)
def test_equals_the_naive_twin(
    seed, z, K, p, n_inner, kind, forgetting, refresh_every, missing, zeros, ties, duplicates, accumulate
):
    X = some_stream(seed, z + 25, p, missing, zeros, ties)
    fast, slow = both(X, z, K, seed, n_inner, kind, forgetting, refresh_every, duplicates, accumulate)
    np.testing.assert_allclose(fast, slow, rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize(
    ("kind", "options"),
    [("inverse", {}), ("normalized", {"zeros": True}), ("relative", {"missing": 0.1}), ("binary", {"ties": True})],
)
def test_equals_the_naive_twin_over_a_long_stream(kind, options):
    fast, slow = both(some_stream(7, 600, 6, **options), 10, 3, 7, 5, kind)
    np.testing.assert_allclose(fast, slow, rtol=1e-10, atol=1e-10)
    assert np.isfinite(fast).all()


@pytest.mark.kernels
@given(seed=st.integers(0, 10**6), n=st.integers(2, 30), p=st.integers(1, 6), ties=st.booleans())
@examples(40)
def test_the_local_tree_is_the_minimum_spanning_tree(seed, n, p, ties):
    X = some_stream(seed, n, p, ties=ties)
    factors = OnlineFactors(OnlineNSNMF(), n, p, 1)
    factors.fill(X)
    tree, expected = factors.tree(), minimum_spanning_tree(X)
    np.testing.assert_array_equal(tree.edges, expected.edges)
    np.testing.assert_allclose(tree.lengths, expected.lengths, rtol=1e-14)


def test_samples_that_share_no_reading_are_not_similar():
    nan = np.nan
    factors = OnlineFactors(OnlineNSNMF(), 3, 2, 1)
    factors.fill(np.array([[0.1, nan], [nan, 0.2], [0.3, nan]]))
    np.testing.assert_allclose(factors.tree().lengths, [0.2 * np.sqrt(2), np.inf])
    for kind in KINDS:
        chosen = OnlineFactors(OnlineNSNMF(similarity=kind), 3, 2, 1)
        chosen.fill(np.array([[0.1, nan], [nan, 0.2], [0.3, nan]]))
        assert chosen.similarity().nnz == 2
    one = OnlineFactors(OnlineNSNMF(), 3, 2, 1)
    one.fill(np.array([[0.1, 0.2]]))
    assert one.tree().n_nodes == 1


@given(seed=st.integers(0, 10**6))
@examples(25)
def test_the_papers_derivation(seed):
    """The gradient steps with the paper's step sizes are the multiplicative ones, and U, V replace all samples."""
    rng = np.random.default_rng(seed)
    n, p, K = 6, 4, 3
    A, W, H, s = (rng.random(shape) + 0.1 for shape in ((n, p), (n, K), (K, p), (n - 1,)))
    A, W, H, s = A.tolist(), W.tolist(), H.tolist(), s.tolist()
    newest = (A[-1], W[-1], H, s, W[:-1], 0.8)
    by_gradient = naive.online.weight_step_by_gradient(*newest)
    np.testing.assert_allclose(by_gradient, naive.online.weight_step(*newest), rtol=1e-9, atol=1e-12)
    all_at_once = naive.online.profile_step_from_samples(A, W, H)
    np.testing.assert_allclose(naive.online.profile_step_by_gradient(A, W, H), all_at_once, rtol=1e-9)
    U, V = np.zeros((K, K)).tolist(), np.zeros((K, p)).tolist()
    for a, w in zip(A, W, strict=True):
        U, V = naive.online.add_weights(U, w), naive.online.add_products(V, w, a)
    np.testing.assert_allclose(naive.online.profile_step(H, U, V), all_at_once, rtol=1e-9)


def test_a_sample_is_counted_once_however_long_it_is_fitted():
    """Adding to U in every round, as Algorithm 2 is printed, would let it grow with the number of rounds."""
    X = some_stream(3, 40, 5)
    rng = np.random.default_rng(0)
    W, H = rng.random((10, 2)), rng.random((2, 5))
    traces = []
    for n_inner in (1, 50):
        factors = started(X[:10], W, H, max_iter=n_inner, tol=0.0)
        factors.update(X[10:], X[10:])
        traces.append(np.trace(factors.get_state()["U"]))
    assert traces[1] < 3 * traces[0]


def test_steps_end_when_the_weights_no_longer_change():
    X = some_stream(3, 60, 5)
    rng = np.random.default_rng(0)
    W, H = rng.random((10, 2)), rng.random((2, 5))
    by_tol = started(X[:10], W, H, max_iter=10_000, tol=1e-9).update(X[10:], X[10:])
    by_count = started(X[:10], W, H, max_iter=3_000, tol=0.0).update(X[10:], X[10:])
    np.testing.assert_allclose(by_tol, by_count, rtol=1e-3)


@pytest.mark.kernels
def test_a_proposal_is_learnt_only_if_accepted():
    X = some_stream(5, 30, 4, missing=0.1)
    rng = np.random.default_rng(0)
    W, H = rng.random((8, 2)), rng.random((2, 4))
    stepwise, at_once = started(X[:8], W, H, capacity=12), started(X[:8], W, H, capacity=12)
    scores = []
    for i in range(8, 30):
        row = X[i : i + 1]
        assert stepwise.propose(row, row) == stepwise.propose(row, row)
        scores.append(stepwise.propose(row, row))
        assert stepwise.has_proposal
        stepwise.accept()
        stepwise.accept()  # nothing is left to accept
        assert not stepwise.has_proposal
    np.testing.assert_array_equal(scores, at_once.update(X[8:], X[8:]))
    assert stepwise.n_learned == at_once.n_learned == 22
    np.testing.assert_array_equal(stepwise.H, at_once.H)
    nothing = np.full((1, 4), np.nan)
    assert np.isnan(stepwise.propose(nothing, nothing))
    stepwise.accept()
    assert stepwise.n_learned == 22


@pytest.mark.kernels
def test_residuals_whose_squares_vanish_or_overflow():
    A = np.random.default_rng(0).random((5, 3))
    factors = started(A, np.ones((5, 1)), np.ones((1, 3)))
    far = np.array([[1e200, -1e200, 0.0]])
    farthest = np.full((1, 3), 1.7e308)
    with np.errstate(over="ignore"):  # without the JIT, NumPy would warn
        assert factors.score(far, np.clip(far, 0, 1))[0] == pytest.approx(np.sqrt(2) * 1e200)
        assert factors.score(farthest, np.ones((1, 3)))[0] == np.finfo(np.float64).max
    tiny = 1e-160 * np.ones((1, 3))
    assert 0 < factors.score(tiny, tiny)[0] < 10
