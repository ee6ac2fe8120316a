"""What NS-NMF and its relatives promise beyond the contract of all detectors."""

from __future__ import annotations

import re
import threading

import numpy as np
import pandas as pd
import pytest
from naive import factors as naive
from scipy import sparse
from sklearn import decomposition
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MinMaxScaler

from penstock import GNMF, NMF, NSNMF, SNMF, CollapsedFactorsWarning, KNNDistance, LaplacianNSNMF, LoMST, load
from penstock._threads import thread_limit
from penstock.bench import true_detections
from penstock.factor import BlockSGD, Coordinate, Multiplicative
from penstock.graph.similarities import similarity
from studies.ahmed2021 import datasets

FAMILY = [
    NSNMF(random_state=0),
    NSNMF(score_kind="structural", random_state=0),
    NSNMF(similarity="normalized", random_state=0),
    LaplacianNSNMF(random_state=0),
    NMF(random_state=0),
    GNMF(random_state=0),
    SNMF(random_state=0),
]
family = pytest.mark.parametrize("detector", FAMILY, ids=repr)
collapsing = pytest.mark.filterwarnings("ignore::penstock.CollapsedFactorsWarning")
unconverged = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")


@pytest.fixture
def X():
    rng = np.random.default_rng(3)
    rows = np.abs(rng.normal(size=(120, 2)) @ rng.uniform(size=(2, 6))) + 0.05 * rng.uniform(size=(120, 6))
    rows[7] = rng.uniform(2, 3, 6)
    return rows


def test_the_attributes_belong_together(X):
    detector = NSNMF(random_state=0).fit(X)
    A = (X - X.min(axis=0)) / np.ptp(X, axis=0)
    W, H, S = detector.embedding_, detector.components_, detector.similarity_
    assert W.shape == (120, 5)
    assert H.shape == (5, 6)
    assert detector.objective_ == pytest.approx(naive.nsnmf_loss(A, S.toarray(), W, H, 0.8, 0.2), rel=1e-10)
    np.testing.assert_allclose(detector.scores_, naive.anomaly_scores(A, W, H), rtol=1e-10)
    np.testing.assert_array_equal(S.toarray(), similarity(detector.tree_).toarray())
    assert detector.converged_
    assert 0 < detector.n_iter_ <= detector.max_iter


@pytest.mark.parametrize(
    "detector", [*FAMILY, KNNDistance(n_neighbors=1), KNNDistance(), LoMST(n_neighbors=3), LoMST()], ids=repr
)
@unconverged
def test_the_score_has_no_jump_beside_a_training_row(detector, X):
    detector.fit(X)
    inside = np.argsort(np.abs(X - X.mean(axis=0)).max(axis=1))[:30]  # away from the edge of the range
    direction = np.random.default_rng(0).normal(size=(30, 6))
    direction /= np.linalg.norm(direction, axis=1)[:, None]
    spread = np.ptp(X, axis=0)
    jumps = [
        np.abs(detector.anomaly_score(X[inside] + step * spread * direction) - detector.scores_[inside]).max()
        for step in (1e-3, 1e-5, 1e-7, 1e-9)
    ]
    assert jumps[3] < 1e-6
    assert jumps[3] < jumps[2] < jumps[1] < jumps[0]


@family
@unconverged
def test_threads_do_not_change_a_bit(detector):
    n = 900 if isinstance(detector, SNMF) else 2500  # large enough for BLAS to use threads, if it may
    X = np.random.default_rng(5).uniform(size=(n, 20))
    detector = clone(detector).set_params(max_iter=6)
    results = []
    for threads in (1, 2, 3):
        with thread_limit(threads):
            detector.fit(X)
            results.append((detector.scores_, detector.anomaly_score(X + 0.01)))
    elsewhere = []
    thread = threading.Thread(
        target=lambda: elsewhere.append((detector.fit(X).scores_, detector.anomaly_score(X + 0.01)))
    )
    thread.start()
    thread.join()
    for other in [*results[1:], *elsewhere]:
        np.testing.assert_array_equal(results[0][0], other[0])
        np.testing.assert_array_equal(results[0][1], other[1])


def test_a_column_that_was_constant_counts_when_it_moves(X):
    detector = NSNMF(random_state=0).fit(np.column_stack([X, np.full(len(X), 5.0)]))
    row = np.append(X[3], 5.0)
    still, moved = detector.anomaly_score(np.vstack([row, [*X[3], 10.0]]))
    assert moved == pytest.approx(np.hypot(still, 1.0))


def test_similarities_of_all_methods(X):
    doubled = np.vstack([X, X[:5]])
    for detector in (NSNMF(random_state=0), GNMF(random_state=0), SNMF(random_state=0)):
        S = detector.fit(doubled).similarity_
        assert S.shape == (125, 125)
        assert S[:, 120:].nnz == 0
        assert S[:120].nnz > 0


def test_a_failed_fit_leaves_the_old_model(X):
    detector = NSNMF(random_state=0).fit(X)
    before = detector.anomaly_score(X)
    with pytest.raises(ValueError, match="NaN"):
        detector.fit(np.full((20, 3), np.nan))
    with pytest.raises(ValueError, match="too large to be squared"):
        detector.set_params(scale=None).fit(X * 1e200)
    np.testing.assert_array_equal(detector.set_params(scale="minmax").anomaly_score(X), before)
    fresh = NMF()
    with pytest.raises(ValueError, match="NaN"):
        fresh.fit(np.full((20, 3), np.nan))
    with pytest.raises(NotFittedError):
        fresh.predict(X)


def test_a_new_row_in_a_binary_graph_has_similarity_one(X):
    detector = NSNMF(similarity="binary", random_state=0).fit(X)
    assert not detector.model_.problem.decays
    assert (detector.model_.problem.strongest == 1).all()


@collapsing
def test_block_sgd_says_whether_it_was_done(X):
    for stall in (1e-3, 0.0):
        with pytest.warns(ConvergenceWarning, match=r"one exact sweep lowers it by \d+\.\d+%.*the rounds of BlockSGD"):
            assert not NSNMF(solver=BlockSGD(rounds=10, stall=stall), random_state=0).fit(X).converged_
    assert NSNMF(solver=BlockSGD(), random_state=0).fit(X).converged_


def test_a_new_value_outside_the_range_is_not_clipped_in_the_residual(X):
    detector = NSNMF(random_state=0).fit(X)
    near, far = np.tile(X[7], (2, 1))
    far = near + 100 * np.ptp(X, axis=0)
    scores = detector.anomaly_score(np.vstack([near, far]))
    assert scores[1] > 100 * np.sqrt(6) - scores[0]
    # beyond the range the weights no longer change
    further = detector.transform(np.vstack([far, 2 * far]))
    np.testing.assert_array_equal(further[0], further[1])


@pytest.mark.parametrize("solver", [Coordinate(), Multiplicative(), BlockSGD()], ids=lambda s: type(s).__name__)
@unconverged
def test_every_solver_finds_the_planted_row(X, solver):
    assert NSNMF(similarity="relative", solver=solver, random_state=0).fit(X).top(1).index[0] == 7


@collapsing
def test_equal_rows_share_a_score_unless_asked_otherwise(X):
    doubled = np.vstack([X, X[:40]])
    collapsed = NSNMF(random_state=0).fit(doubled)
    np.testing.assert_array_equal(collapsed.scores_[120:], collapsed.scores_[:40])
    np.testing.assert_allclose(collapsed.scores_[:120], NSNMF(random_state=0).fit(X).scores_)
    for policy in ("zero", "floor"):
        other = NSNMF(duplicates=policy, random_state=0).fit(doubled)
        assert np.isfinite(other.scores_).all()
    letter = NSNMF(duplicates="zero", similarity="relative", random_state=0).fit(doubled)
    assert (letter.scores_[120:] != letter.scores_[:40]).any()


def test_transform_and_back_in_the_users_units(X):
    frame = pd.DataFrame(X, columns=list("abcdef"), index=pd.date_range("2026-01-01", periods=120, freq="10min"))
    detector = NMF(n_components=6, max_iter=3000, random_state=0).fit(frame)
    back = detector.inverse_transform(detector.transform(frame))
    assert np.abs(back - X).mean() < 0.02 * np.ptp(X)
    assert detector.get_feature_names_out().tolist() == [f"nmf{k}" for k in range(6)]
    table = detector.set_output(transform="pandas").transform(frame)
    assert table.index.equals(frame.index)
    assert detector.top(1).index[0] in frame.index


def test_more_groups_than_columns_or_rows(X):
    with pytest.warns(UserWarning, match="larger than the number of columns"):
        assert NSNMF(n_components=8, random_state=0).fit(X).components_.shape == (8, 6)
    with pytest.raises(ValueError, match="needs at least 9 rows; got n_samples = 4"):
        NSNMF(n_components=9).fit(X[:4])
    with pytest.warns(UserWarning, match="Only 3 of the rows differ"):
        few = NSNMF(n_components=5, random_state=0).fit(np.repeat(X[:3], 4, axis=0))
    assert few.n_components_ == 3


def test_stopping_early_is_said():
    rows = np.random.default_rng(0).uniform(size=(60, 8))
    with pytest.warns(ConvergenceWarning, match="stopped after 2 iterations without converging"):
        assert not NMF(max_iter=2, tol=1e-12, random_state=0).fit(rows).converged_


def near_pairs(n=300, pairs=6, p=4):
    """Uniform rows; the last few are each 1e-3 away from one of the first."""
    rng = np.random.default_rng(0)
    rows = rng.uniform(size=(n, p))
    rows[-pairs:] = rows[:pairs] + 1e-3 * rng.uniform(0.5, 1.5, size=(pairs, p))
    return rows


@family
@unconverged
@collapsing
@pytest.mark.parametrize("missing", [0.0, 0.1])
def test_explained_is_the_share_of_the_readings_that_the_factors_rebuild(detector, missing, X, tmp_path):
    rows = np.where(np.random.default_rng(4).random(X.shape) < missing, np.nan, X)
    detector.fit(rows)
    A, rebuilt = detector.scaling_.apply(rows), detector.embedding_ @ detector.components_
    share = np.sum(rebuilt[~np.isnan(A)] ** 2) / np.nansum(A**2)
    assert detector.explained_ == pytest.approx(share, rel=1e-12)
    detector.save(tmp_path / "fitted.safetensors")
    assert load(tmp_path / "fitted.safetensors").explained_ == detector.explained_


def test_explained_counts_rows_that_were_fitted_once_once(X):
    doubled = NSNMF(random_state=0).fit(np.vstack([X, X[:40]]))
    assert doubled.explained_ == NSNMF(random_state=0).fit(X).explained_
    assert NMF(n_components=2, random_state=0).fit(np.ones((20, 3))).explained_ == 1.0  # nothing to explain


def test_factors_that_explain_next_to_nothing_are_warned_of():
    X = near_pairs(p=6)
    with pytest.warns(CollapsedFactorsWarning) as caught:
        collapsed = NSNMF(random_state=0).fit(X)
    message = str(caught[0].message)
    assert caught[0].filename == __file__
    assert f"explained_ = {collapsed.explained_:.2g}" in message
    assert int(re.search(r"(\d+) of 300 rows hold 90 %", message)[1]) <= 12  # the pairs
    assert 'similarity="normalized"' in message
    assert collapsed.explained_ < 0.05 < NSNMF(similarity="normalized", random_state=0).fit(X).explained_
    with pytest.warns(CollapsedFactorsWarning, match='similarity="normalized"'):  # it has no bound either
        NSNMF(similarity="relative", random_state=0).fit(X)
    with pytest.warns(CollapsedFactorsWarning, match="Use more groups"):
        NSNMF(n_components=1, similarity="normalized", random_state=0).fit(np.eye(50))


def test_the_kind_of_score_is_a_parameter_and_there_is_no_score(X):
    detector = NSNMF(score_kind="structural", random_state=0)
    assert detector.get_params()["score_kind"] == "structural"
    assert "structural" in repr(detector)
    pipeline = make_pipeline(MinMaxScaler(), NSNMF(n_components=2, similarity="normalized", random_state=0))
    with pytest.raises(TypeError, match="no scoring is specified"):  # the largest K would win
        GridSearchCV(pipeline, {"nsnmf__alpha": [0.5, 1]}).fit(X)
    search = GridSearchCV(
        pipeline, {"nsnmf__alpha": [0.5, 1]}, scoring=lambda model, rows, _=None: model.score_samples(rows).mean()
    )
    assert search.fit(X).best_params_["nsnmf__alpha"] in (0.5, 1)


@pytest.mark.parametrize(
    ("name", "expected"), [("Glass", 0), pytest.param("PageBlocks", 43, marks=pytest.mark.slow), ("WBC", 6)]
)
@collapsing
def test_detections_of_the_converged_optimum(benchmark_data, name, expected):
    """Regression, not praise: what the exact optimum of the paper's objective detects on the paper's data."""
    data = datasets.load(name)
    detector = NSNMF(random_state=0).fit(data.X)
    assert true_detections(data.y, detector.scores_) == pytest.approx(expected, abs=1)


def test_names_mean_the_methods_of_the_paper():
    assert LoMST().n_neighbors == "stable"
    X = np.random.default_rng(0).normal(size=(40, 5))
    full = SNMF(random_state=0).fit(X)
    assert np.count_nonzero(full.similarity_.toarray()) == 40 * 39  # the full Gaussian graph
    assert np.count_nonzero(SNMF(graph="self_tuning", random_state=0).fit(X).similarity_.toarray()) < 40 * 20
    with pytest.raises(ValueError, match=r'12,001 rows would take .* graph="self_tuning"'):
        SNMF(n_components=2).fit(np.arange(12_001.0)[:, None] * [1.0, 2.0])


# ---- a graph of one's own, and sparse tables ----

OWN = [NSNMF(2, random_state=0), LaplacianNSNMF(2, random_state=0), GNMF(2, random_state=0), SNMF(2, random_state=0)]
takes_a_graph = pytest.mark.parametrize("detector", OWN, ids=lambda detector: type(detector).__name__)


def table_and_graph(n=40):
    rng = np.random.default_rng(3)
    X = rng.gamma(2.0, size=(n, 4))
    X[5] = X[2]  # a copy, with edges of its own
    S = np.where(rng.random((n, n)) < 0.2, rng.random((n, n)), 0.0)
    return X, sparse.csr_array(S + S.T)


@takes_a_graph
def test_a_graph_of_ones_own_is_what_is_fitted(detector, tmp_path):
    X, S = table_and_graph()
    fitted = clone(detector).set_params(graph=S).fit(X)
    np.testing.assert_array_equal(fitted.similarity_.toarray(), S.toarray())
    W, H, dense = fitted.embedding_, fitted.components_, S.toarray()
    A = fitted.scaling_.apply(X)
    L = np.diag(dense.sum(axis=1)) - dense
    expected = {
        "NSNMF": ((dense - W @ W.T) ** 2).sum() + 0.8 * ((A - W @ H) ** 2).sum() + 0.2 * ((W**2).sum() + (H**2).sum()),
        "LaplacianNSNMF": 0.8 * ((A - W @ H) ** 2).sum() + np.trace(W.T @ L @ W),
        "GNMF": ((A - W @ H) ** 2).sum() + 100 * np.trace(W.T @ L @ W),
        "SNMF": ((dense - W @ W.T) ** 2).sum(),
    }[type(fitted).__name__]
    assert fitted.objective_ == pytest.approx(expected, rel=1e-9)
    for same in (S.toarray(), S.tocoo(), sparse.csc_matrix(S), S + 1e-10 * sparse.triu(S), pd.DataFrame(S.toarray())):
        again = clone(fitted).set_params(graph=same).fit(X)
        np.testing.assert_allclose(again.scores_, fitted.scores_, rtol=1e-5)
    other = np.arange(len(X)) != 5  # of equal training rows a new row gets the first one's score
    np.testing.assert_allclose(fitted.anomaly_score(X)[other], fitted.scores_[other], rtol=1e-9)
    fitted.save(tmp_path / "own")
    loaded = load(tmp_path / "own")
    np.testing.assert_array_equal(loaded.anomaly_score(X + 0.1), fitted.anomaly_score(X + 0.1))
    assert loaded.graph == type(fitted)().graph
    if hasattr(fitted, "alpha"):
        for each in (fitted, loaded):
            with pytest.raises(AttributeError, match="graph of your own"):
                _ = each.tree_


@takes_a_graph
def test_the_tree_given_as_a_graph_changes_nothing(detector):
    X = np.random.default_rng(0).gamma(2.0, size=(50, 4))
    own = clone(detector).fit(X)
    given = clone(detector).set_params(graph=own.similarity_).fit(X)
    np.testing.assert_array_equal(given.scores_, own.scores_)


@takes_a_graph
def test_a_graph_that_cannot_be_is_refused(detector):
    X, S = table_and_graph()
    lopsided, negative, infinite = S.toarray(), S.toarray(), S.toarray()
    lopsided[3, 7], lopsided[7, 3] = 2.0, 1.5
    negative[4, 9] = -1.0
    infinite[2, 2] = np.inf
    cases = [
        (S[:10, :10], r"n = 40 rows passed to fit; got shape \(10, 10\)"),
        (lopsided, r"0\.5, is between entry \(3, 7\), 2, and entry \(7, 3\), 1\.5"),
        (negative, r"first, -1, in row 4, column 9"),
        (infinite, r"first, inf, in row 2, column 2"),
        ([["a"]], "table of numbers"),
    ]
    for graph, message in cases:
        with pytest.raises(ValueError, match=message):
            clone(detector).set_params(graph=graph).fit(X)
    for given in ({"graph": S}, {"init": (X, X)}):
        with pytest.raises(ValueError, match="by fit only"):
            clone(detector).set_params(**given)._begin_fit(40, X.min(axis=0), X.max(axis=0))


@family
@collapsing
@pytest.mark.parametrize("scale", ["minmax", None])
def test_sparse_tables_score_as_dense_ones(detector, scale):
    rng = np.random.default_rng(1)
    X = rng.gamma(2.0, size=(60, 6)) * (rng.random((60, 6)) < 0.4)
    X[:, 0] += 0.1  # no row without a value, no copies
    dense = clone(detector).set_params(scale=scale).fit(X)
    for make in (sparse.csr_array, sparse.csc_matrix, sparse.coo_array):
        found = clone(dense).fit(make(X))
        np.testing.assert_allclose(found.scores_, dense.scores_, rtol=0, atol=1e-10)
        for method in ("anomaly_score", "transform", "predict", "score_samples", "decision_function"):
            same = getattr(dense, method)(X[:20])
            np.testing.assert_allclose(getattr(found, method)(make(X[:20])), same, rtol=0, atol=1e-10)
    with pytest.raises(ValueError, match=r"400,000 columns would take 3\.2 GB"):
        clone(dense).fit(sparse.csr_array((1000, 400_000)))


# ---- what users of NMF expect ----


@family
@collapsing
def test_the_reconstruction_error_is_that_of_all_rows(detector, tmp_path):
    X = np.random.default_rng(0).gamma(2.0, size=(50, 6))
    X[3] = X[8]
    X[4, 2] = np.nan
    fitted = clone(detector).fit(X)
    off = fitted.scaling_.apply(X) - fitted.embedding_ @ fitted.components_
    assert fitted.reconstruction_err_ == pytest.approx(np.sqrt(np.nansum(off**2)), rel=1e-12)
    fitted.save(tmp_path / "one")
    assert load(tmp_path / "one").reconstruction_err_ == fitted.reconstruction_err_


def test_the_reconstruction_error_is_that_of_scikit_learn():
    X = MinMaxScaler().fit_transform(np.random.default_rng(0).gamma(2.0, size=(50, 6)))
    theirs = decomposition.NMF(2, max_iter=5000, tol=1e-9, random_state=0).fit(X)
    ours = NMF(2, scale=None, init=(theirs.transform(X), theirs.components_), max_iter=5000, tol=1e-9).fit(X)
    assert ours.reconstruction_err_ == pytest.approx(theirs.reconstruction_err_, rel=1e-6)


@family
@collapsing
@unconverged
def test_a_start_of_ones_own_is_gone_on_from(detector):
    X = np.random.default_rng(0).gamma(2.0, size=(50, 6))
    X[3] = X[8]
    found = clone(detector).fit(X)
    start = found.embedding_, found.components_
    again = clone(detector).set_params(init=start).fit(X)
    assert again.objective_ <= found.objective_ * (1 + 1e-9)
    np.testing.assert_allclose(again.objective_, found.objective_, rtol=0.02)
    one, other = (clone(detector).set_params(init=start, random_state=seed).fit(X).scores_ for seed in (1, 2))
    np.testing.assert_array_equal(one, other)  # nothing is drawn
    for init, message in (
        ((start[0][:4], start[1]), r"of shapes \(50, 5\) and \(5, 6\) for this table; got \(4, 5\) and \(5, 6\)"),
        ((-start[0], start[1]), "finite and ≥ 0"),
        (start[:1], r"init must be None or \(W, H\)"),
        ("nndsvd", r"init must be None or \(W, H\)"),
    ):
        with pytest.raises(ValueError, match=message):
            clone(detector).set_params(init=init).fit(X)
