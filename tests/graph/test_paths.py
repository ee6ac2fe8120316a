"""Similarity of all pairs along a tree: products and sweeps without the matrix are those with it."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from naive import factors as naive
from naive import paths as naive_paths
from sklearn.base import clone
from strategies import WITHOUT_JIT, examples

import penstock
from penstock import NSNMF, LaplacianNSNMF, Tree, minimum_spanning_tree, similarity
from penstock.factor import BlockSGD, Coordinate, Factors, RowBlocks, fit_factors, laplacian_nsnmf, nsnmf, snmf, solve
from penstock.factor.placement import attach, place_rows
from penstock.factor.structure import MatrixStructure, PathStructure
from penstock.graph.paths import PATH_ERROR, PathSimilarity, sum_of_exponentials

pytestmark = [
    pytest.mark.kernels,
    pytest.mark.filterwarnings("ignore:n_components = :UserWarning"),
    pytest.mark.filterwarnings("ignore:Only .* rows differ:UserWarning"),
    pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning"),
    pytest.mark.filterwarnings("ignore::penstock.CollapsedFactorsWarning"),
]


@st.composite
def trees(draw, max_nodes=12):
    """Random trees with lengths over several orders of magnitude, some of them 0, and a generator."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    n = draw(st.integers(2, max_nodes))
    kind = draw(st.sampled_from(["any", "chain", "star"]))
    parents = [{"any": int(rng.integers(i)), "chain": i - 1, "star": 0}[kind] for i in range(1, n)]
    name = rng.permutation(n)
    edges = np.sort(name[np.column_stack([parents, np.arange(1, n)])], axis=1)
    lengths = np.exp(rng.uniform(-draw(st.sampled_from([1, 12])), 2, n - 1))
    lengths[rng.random(n - 1) < draw(st.sampled_from([0.0, 0.3]))] = 0.0
    order = np.lexsort((edges[:, 1], edges[:, 0], lengths))
    return Tree(edges[order].astype(np.intp), lengths[order]), rng


def naive_similarity(tree):
    return naive_paths.path_similarity(tree.n_nodes, tree.edges.tolist(), tree.lengths.tolist())


@pytest.mark.parametrize(("shortest", "longest"), [(1.0, 1.0), (1e-4, 3.0), (1e-140, 1e-120), (5.0, 1e9)])
def test_exponentials_add_up_to_the_inverse(shortest, longest):
    t, weights = sum_of_exponentials(shortest, longest)
    d = np.geomspace(shortest, longest, 2000)
    np.testing.assert_allclose(d * (np.exp(-np.outer(d, t)) @ weights), 1.0, rtol=PATH_ERROR)
    np.testing.assert_allclose(d * d * (np.exp(-np.outer(d, t)) @ (t * weights)), 1.0, rtol=1e-9)
    assert len(t) <= 17 + 6.4 * np.log10(longest / shortest)


@given(trees())
@examples(60)
def test_sums_are_those_of_the_matrix(drawn):
    tree, rng = drawn
    S, E = PathSimilarity(tree), naive_similarity(tree)
    W = rng.random((tree.n_nodes, 3)) * np.exp(rng.uniform(-8, 2, (tree.n_nodes, 1)))
    np.testing.assert_allclose(S.tocsr().toarray(), E, rtol=1e-14)
    np.testing.assert_allclose(similarity(tree, "path").toarray(), E, rtol=1e-14)
    np.testing.assert_allclose(S.spread(W), E @ W, rtol=PATH_ERROR, atol=0)
    np.testing.assert_allclose(S.degree, E.sum(axis=1), rtol=PATH_ERROR)
    np.testing.assert_allclose(S.norm, (E**2).sum(), rtol=1e-9)
    np.testing.assert_allclose(S.largest, E.max(axis=1), rtol=1e-14)
    gaps = np.sum((W[:, None] - W[None]) ** 2, axis=2)
    np.testing.assert_allclose(S.roughness(W), 0.5 * np.vdot(E, gaps), rtol=1e-9)
    assert S.roughness(np.ones_like(W)) == 0.0


def test_roughness_does_not_cancel():
    tree = minimum_spanning_tree(np.random.default_rng(0).random((30, 2)))
    W = 1e6 + np.random.default_rng(1).random((30, 2))
    gaps = np.sum((W[:, None] - W[None]) ** 2, axis=2)
    np.testing.assert_allclose(
        PathSimilarity(tree).roughness(W), 0.5 * np.vdot(naive_similarity(tree), gaps), rtol=1e-8
    )


@given(trees(), st.sampled_from(["nsnmf", "laplacian", "snmf"]))
@examples(40)
def test_a_sweep_is_that_with_the_matrix(drawn, kind):
    tree, rng = drawn
    n = tree.n_nodes
    A, W = rng.random((n, 2)), rng.random((n, 2)) + 0.01
    S = PathSimilarity(tree)
    E = S.tocsr()
    paths, matrix = PathStructure(S), MatrixStructure(E)
    symmetric, coupling = {"nsnmf": (1.0, 1.0), "laplacian": (0.0, 0.5), "snmf": (1.0, 1.0)}[kind]
    M = symmetric * W.T @ W + np.eye(2)
    one, two = (W.copy(), M.copy()), (W.copy(), M.copy())
    shift = np.full(n, 0.1) + (1 - symmetric) * matrix.degree
    order = S.walk.rows
    total, agreement = paths.sweep(one[0], A, one[1], shift, order, symmetric, coupling, 0.5)
    wanted, _ = matrix.sweep(two[0], A, two[1], shift, order, symmetric, coupling, 0.5)
    scale = np.abs(two[0]).max()
    np.testing.assert_allclose(one[0], two[0], rtol=1e-9, atol=1e-9 * scale)
    np.testing.assert_allclose(one[1], two[1], rtol=1e-8, atol=1e-8 * np.abs(two[1]).max())
    np.testing.assert_allclose(total, wanted, rtol=1e-7, atol=1e-12)
    np.testing.assert_allclose(agreement, np.vdot(one[0], E @ one[0]), rtol=2 * PATH_ERROR, atol=1e-300)


@given(trees(max_nodes=7))
@examples(15)
def test_a_step_is_the_naive_coordinate_sweep(drawn):
    tree, rng = drawn
    n, S = tree.n_nodes, PathSimilarity(tree)
    E, A = naive_similarity(tree), rng.random((n, 3))
    if E.max() > 1e3:
        return  # the naive sweep fits quartics to values of f
    start = Factors(rng.random((n, 2)) + 0.1, rng.random((2, 3)))
    found = solve(nsnmf(A, S), start, settings=Coordinate(profile_passes=1), max_iter=1, tol=0.0).factors
    W = naive.weight_sweep(lambda W: naive.nsnmf_loss(A, E, W, start.H, 0.8, 0.2), start.W, S.walk.rows)
    np.testing.assert_allclose(found.W, W, rtol=1e-5, atol=1e-5 * np.abs(W).max())
    np.testing.assert_allclose(found.H, naive.hals(A, W, start.H, 0.8, 0.2), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize(
    "make",
    [
        pytest.param(nsnmf, id="nsnmf"),
        pytest.param(laplacian_nsnmf, id="laplacian", marks=pytest.mark.compiled),
        pytest.param(lambda A, S: snmf(S), id="snmf"),
    ],
)
def test_values_residuals_and_fits_are_those_with_the_matrix(make):
    rng = np.random.default_rng(3)
    A = rng.random((60, 4))
    S = PathSimilarity(minimum_spanning_tree(A))
    paths, matrix = make(A, S), make(A, S.tocsr())
    factors = Factors(rng.random((60, 3)), rng.random((3, paths.n_columns)))
    assert paths.value(factors) == pytest.approx(matrix.value(factors), rel=1e-9)
    assert paths.kkt_residual(factors) == pytest.approx(matrix.kkt_residual(factors), rel=1e-9)
    np.testing.assert_allclose(paths.gradient(factors).W, matrix.gradient(factors).W, rtol=1e-8, atol=1e-8)
    one, two = (fit_factors(o, 3, random_state=0, max_iter=3000, tol=1e-8) for o in (paths, matrix))
    assert one.converged
    assert one.objective == pytest.approx(two.objective, rel=1e-4)  # the order of rows differs, the basin need not
    assert (np.diff(one.history) <= 1e-9 * one.history[:-1]).all()


def test_a_star_that_is_nearly_fitted():
    n = 1000  # all leaves are at the same distance: S = c(J − I) but for the hub, of which WWᵀ leaves a share of 1/n
    tree = Tree(np.column_stack([np.zeros(n - 1, int), np.arange(1, n)]), np.full(n - 1, 0.5))
    objective = snmf(PathSimilarity(tree))
    found = fit_factors(objective, 1, random_state=0)
    assert found.converged
    exact = snmf(similarity(tree, "path")).value(found.factors)
    assert found.objective == pytest.approx(exact, rel=1e-6)


def test_permuting_rows_permutes_the_result():
    rng = np.random.default_rng(5)
    X = rng.random((60, 3))
    order = rng.permutation(60)
    start = Factors(rng.random((60, 3)), rng.random((3, 3)))
    runs = []
    for rows in (np.arange(60), order):
        objective = nsnmf(X[rows], PathSimilarity(minimum_spanning_tree(X[rows])))
        runs.append(solve(objective, Factors(start.W[rows], start.H), settings=Coordinate(), max_iter=20, tol=0.0))
    np.testing.assert_allclose(runs[1].factors.W, runs[0].factors.W[order], rtol=1e-7, atol=1e-9)


def test_a_long_path_needs_no_recursion():
    n = 3_000 if WITHOUT_JIT else 200_000  # Python itself allows 1,000 calls inside each other
    tree = Tree(np.column_stack([np.arange(n - 1), np.arange(1, n)]), np.ones(n - 1))
    S = PathSimilarity(tree)
    harmonic = np.cumsum(1 / np.arange(1, n))
    np.testing.assert_allclose(S.degree[[0, n - 1]], harmonic[-1], rtol=PATH_ERROR)
    np.testing.assert_allclose(S.degree[n // 2], harmonic[n // 2 - 1] + harmonic[n // 2 - 2], rtol=PATH_ERROR)


@given(trees(max_nodes=9), st.sampled_from([1e-3, 0.3, 40.0]))
@examples(20)
def test_new_rows_are_leaves(drawn, distance):
    tree, rng = drawn
    n, S = tree.n_nodes, PathSimilarity(tree)
    if not tree.lengths.any():
        return
    M = naive_paths.path_lengths(n, tree.edges.tolist(), tree.lengths.tolist())
    E, A = naive_similarity(tree), rng.random((n, 2))
    factors = Factors(rng.random((n, 2)), rng.random((2, 2)))
    where = attach(np.arange(n), np.full(n, distance), 1 / S.largest, S.largest)
    joined = PathStructure(S).join(factors.W, where.neighbors, where.distances, where.similarity)
    np.testing.assert_allclose(joined.degree, E.sum(axis=1), rtol=1e-12)
    np.testing.assert_allclose(joined.pull, E @ factors.W, rtol=1e-12)
    for i in range(n):
        leaf = naive_paths.leaf_similarity(M, i, distance, min(1 / distance, E[i].max()))
        np.testing.assert_allclose(joined.leaf_degree[i], leaf.sum(), rtol=1e-12)
        np.testing.assert_allclose(joined.leaf_pull[i], leaf @ factors.W, rtol=1e-12)
    placed, around = place_rows(nsnmf(A, S), factors, A, where)
    alone = [place_rows(nsnmf(A, S), factors, A[[i]], attach(np.array([i]), np.array([distance]), 1 / S.largest,
                                                             S.largest)) for i in range(n)]  # fmt: skip
    np.testing.assert_array_equal(placed, np.vstack([row for row, _ in alone]))
    np.testing.assert_array_equal(around, np.vstack([row for _, row in alone]))


def rows_with(what):
    rng = np.random.default_rng(7)
    X = rng.random((40, 3))
    if what == "copies":
        X[20:25] = X[3]
    elif what == "holes":
        X[rng.random(X.shape) < 0.15] = np.nan
        X[:, 0] = rng.random(40)
    elif what == "two rows":
        X = X[:2]
    elif what == "equal rows":
        X[:] = X[0]
    return X


@pytest.mark.parametrize("what", ["plain", "copies", "holes", "two rows", "equal rows"])
@pytest.mark.parametrize(
    ("make", "duplicates", "score_kind"),
    [(NSNMF, "collapse", "residual"), (NSNMF, "zero", "structural"), (LaplacianNSNMF, "floor", "structural")],
)
def test_detectors(what, duplicates, make, score_kind, tmp_path):
    X = rows_with(what)
    detector = make(1 if what == "two rows" else 2, similarity="path", duplicates=duplicates, score_kind=score_kind,
                    random_state=0).fit(X)  # fmt: skip
    assert np.isfinite(detector.scores_).all()
    if duplicates == "collapse" or what not in ("copies", "equal rows"):  # else copies have weights of their own
        np.testing.assert_array_equal(detector.anomaly_score(X), detector.scores_)
    fresh = np.nan_to_num(X, nan=0.3) + 0.01
    detector.save(tmp_path / "saved")
    for loaded in (penstock.load(tmp_path / "saved"), pickle.loads(pickle.dumps(detector))):
        np.testing.assert_array_equal(loaded.anomaly_score(fresh), detector.anomaly_score(fresh))
        np.testing.assert_array_equal(loaded.similarity_.toarray(), detector.similarity_.toarray())
    one_by_one = [detector.anomaly_score(row[None])[0] for row in fresh]
    np.testing.assert_array_equal(one_by_one, detector.anomaly_score(fresh))


def test_a_changed_parameter_does_not_change_what_a_file_holds(tmp_path):
    X = rows_with("plain")
    detector = NSNMF(2, similarity="path", random_state=0).fit(X).set_params(similarity="inverse", duplicates="zero")
    detector.save(tmp_path / "saved")
    np.testing.assert_array_equal(
        penstock.load(tmp_path / "saved").anomaly_score(X + 0.1), detector.anomaly_score(X + 0.1)
    )


def test_scores_are_continuous_towards_a_fitted_row():
    X = np.random.default_rng(0).random((100, 4))
    detector = NSNMF(3, similarity="path", random_state=0, score_kind="structural").fit(X)
    jumps = [np.abs(detector.anomaly_score(X + step) - detector.scores_).max() for step in (1e-3, 1e-5, 1e-7)]
    assert jumps[2] < 1e-4 < jumps[0]
    assert jumps[2] < jumps[1] < jumps[0]


@pytest.mark.parametrize("solver", [BlockSGD(3), RowBlocks(3)], ids=repr)
def test_solvers_that_need_the_matrix(solver, monkeypatch):
    X = np.random.default_rng(0).random((80, 3))
    detector = NSNMF(2, similarity="path", solver=solver, random_state=0)
    by_matrix = fit_factors(nsnmf(X, similarity(minimum_spanning_tree(X), "path")), 2, solver, random_state=0)
    np.testing.assert_allclose(clone(detector).set_params(scale=None).fit(X).embedding_, by_matrix.factors.W, rtol=1e-6)
    monkeypatch.setattr(penstock.graph.paths, "LARGEST_PATH_MATRIX", 79)
    with pytest.raises(ValueError, match=r"80 rows as a matrix.*at most 79.*Coordinate"):
        detector.fit(X)
    fitted = NSNMF(2, similarity="path", random_state=0).fit(X)
    with pytest.raises(AttributeError, match="80 rows"):
        _ = fitted.similarity_


def test_memory_is_given_back_after_a_fit():
    fitted = NSNMF(2, similarity="path", random_state=0).fit(np.random.default_rng(0).random((80, 3)))
    S = fitted.model_.problem.objective.S
    assert "decay" not in vars(S)
    assert "structure" not in vars(fitted.model_.problem.objective)
