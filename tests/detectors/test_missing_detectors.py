"""Detectors on tables with missing values keep every promise that they make for complete ones."""

from __future__ import annotations

import pickle

import numpy as np
import pandas as pd
import polars as pl
import pytest
from estimators_cases import (
    ALL_DETECTORS,
    OTHERS,
    TAKERS,
    agreeing_rows,
    both_scales,
    holey_rows,
    rescaled,
    scores_of_single_rows,
    some_rows,
)
from naive import incomplete as naive
from sklearn.base import clone
from sklearn.utils import get_tags

import penstock
from penstock.detectors import (
    NMF,
    NSNMF,
    BaseDetector,
    FactorDetector,
    KNNDistance,
    LoMST,
    MeanDistance,
    NormScore,
    OverTime,
    SeriesDetector,
)
from penstock.graph.edges import tree_among

pytestmark = [
    pytest.mark.filterwarnings("ignore:n_components = :UserWarning"),
    pytest.mark.filterwarnings("ignore:Only .* rows differ:UserWarning"),
    pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning"),
    pytest.mark.filterwarnings("ignore::penstock.CollapsedFactorsWarning"),
]
every_taker = pytest.mark.parametrize("detector", [clone(detector) for detector in TAKERS], ids=repr)


def test_who_takes_missing_values() -> None:
    refusers = {type(detector).__name__ for detector in ALL_DETECTORS if detector not in TAKERS}
    assert refusers == {"LoMST", *({"AER", "DAGMM"} - OTHERS)}
    for detector in ALL_DETECTORS:
        assert get_tags(detector).input_tags.allow_nan is type(detector)._takes_missing
    with pytest.raises(ValueError, match=r"contains NaN \(missing values\): .* Fill them"):
        LoMST().fit(holey_rows())


@every_taker
def test_the_outlier_is_still_found(detector: BaseDetector) -> None:
    X = holey_rows()
    X[40] = 6 * some_rows(p=6)[3]
    X[40, 2] = np.nan
    if isinstance(detector, NMF | OverTime):
        return  # it spends a group on such a row; or it follows what lasts, which a single row in 80 does not
    assert clone(detector).fit(X).scores_.argmax() == 40


@every_taker
def test_how_much_was_seen(detector: BaseDetector) -> None:
    X = holey_rows()
    fitted = clone(detector).fit(X)
    np.testing.assert_allclose(fitted.observed_fraction_, (~np.isnan(X)).mean(axis=1))
    np.testing.assert_array_equal(fitted.observed_fraction(X), fitted.observed_fraction_)
    assert fitted.observed_fraction([[np.nan] * 6, [1.0] * 6]).tolist() == [0.0, 1.0]
    assert (clone(detector).fit(some_rows()).observed_fraction_ == 1).all()


def test_a_detector_that_refuses_holes_has_seen_everything() -> None:
    fitted = LoMST().fit(some_rows())
    assert (fitted.observed_fraction_ == 1).all()
    assert (fitted.observed_fraction(some_rows(3)) == 1).all()


def test_pandas_polars_masked_arrays_and_arrays_agree() -> None:
    X, names = holey_rows(), list("abcdef")
    frame = pd.DataFrame(X, columns=names)
    for table in (frame, frame.astype("Float64"), pl.DataFrame(X, schema=names), np.ma.masked_invalid(X)):
        np.testing.assert_array_equal(NormScore().fit(table).scores_, NormScore().fit(X).scores_)


@every_taker
def test_an_empty_row_or_column_is_named(detector: BaseDetector) -> None:
    times = pd.date_range("2024-03-01", periods=80, freq="h")
    frame = pd.DataFrame(holey_rows(), columns=list("abcdef"), index=times)
    hollow = frame.copy()
    hollow.iloc[[3, 9]] = np.nan
    message = (
        r"NaN \(missing values\) only in row 3 \(index 2024-03-01 03:00:00\) \(2 such rows in all\).*Leave out rows"
    )
    with pytest.raises(ValueError, match=r"only in column 'b'.* Leave out such columns"):
        clone(detector).fit(frame.assign(b=np.nan))
    if isinstance(detector, SeriesDetector):  # such rows carry no evidence: test_sensor_detector.py
        return
    with pytest.raises(ValueError, match=message):
        clone(detector).fit(hollow)
    fitted = clone(detector).fit(frame)
    with pytest.raises(ValueError, match=message):
        fitted.anomaly_score(hollow)
    if isinstance(fitted, FactorDetector):
        with pytest.raises(ValueError, match="only in row 3"):
            fitted.transform(hollow)


def rows_without_a_common_column() -> np.ndarray:
    """Rows 12 and 30 share no column; every other row has the one that row 12 has."""
    X = holey_rows()
    X[np.isnan(X[:, 0]), 0] = 1.0
    X[12, 1:], X[30, 0], X[30, 1] = np.nan, np.nan, 1.0
    return X


@every_taker
@both_scales
def test_rows_that_share_no_column_are_never_joined(detector: BaseDetector, scale: str | None, tmp_path) -> None:
    X = rows_without_a_common_column()
    frame = pd.DataFrame(X, index=[f"day {i}" for i in range(80)])
    mine = rescaled(detector, scale)
    if not type(detector)._compares_rows:
        assert np.isfinite(mine.fit(frame).scores_).all()  # and a warning would be an error
        return
    message = r"Row 12 \(index day 12\) and row 30 \(index day 30\) have no column in common and were not compared"
    with pytest.warns(UserWarning, match=message) as caught:
        fitted = mine.fit(frame)
    assert caught[0].filename == __file__
    assert np.isfinite(fitted.scores_).all()
    np.testing.assert_array_equal(fitted.anomaly_score(frame), scores_of_single_rows(fitted))
    if hasattr(fitted, "similarity_"):
        assert fitted.similarity_[12, 30] == 0
        assert fitted.similarity_[[12], :].sum() > 0
    if hasattr(fitted, "tree_"):
        edges, lengths = naive.kruskal(X if scale is None else fitted.scaling_.apply(X))
        assert sorted(map(tuple, fitted.tree_.edges.tolist())) == sorted(edges)
        np.testing.assert_allclose(fitted.tree_.lengths, lengths)
    fitted.save(tmp_path / "saved")
    new = np.vstack([holey_rows(20, seed=1), X[[30, 12]]])
    np.testing.assert_array_equal(penstock.load(tmp_path / "saved").anomaly_score(new), fitted.anomaly_score(new))
    assert np.isfinite(clone(detector).fit(frame.drop("day 30")).anomaly_score(frame)).all()


@every_taker
def test_rows_that_fall_apart_are_refused_by_name(detector: BaseDetector) -> None:
    X = some_rows(p=6)
    X[:50, 3:], X[50:, :3] = np.nan, np.nan
    frame = pd.DataFrame(X, index=[f"day {i}" for i in range(80)])
    if not type(detector)._compares_rows:
        assert np.isfinite(clone(detector).fit(frame).scores_).all()
        return
    message = r"between row 0 \(index day 0\) and row 50 \(index day 50\), not even by way of other rows: .* fall apart"
    with pytest.raises(ValueError, match=message):
        clone(detector).fit(frame)
    X[70, 0] = 1.0  # one row that holds them together
    with pytest.warns(UserWarning, match="Row 0 and row 50 have no column in common"):
        assert np.isfinite(clone(detector).fit(X).scores_).all()


def test_a_row_with_too_few_rows_to_compare_with_has_fewer_neighbours() -> None:
    X = np.column_stack([np.arange(8.0) ** 2, np.r_[1.0, 2.0, np.full(6, np.nan)]])
    new = [[1.0, 1.0], [np.nan, 4.0]]
    scores = KNNDistance(3, scale=None).fit(X).anomaly_score(new)
    np.testing.assert_allclose(scores[1], np.sqrt(2) * 3.0)  # row 0, the last of the two with that column
    X[0, 0] = np.nan
    with pytest.warns(UserWarning, match="Row 0 and row 2 have no column in common"):
        fitted = KNNDistance(3, scale=None).fit(X)
    expected = [naive.nearest(X.tolist(), X[i].tolist(), 3, left_out=i)[-1][0] for i in range(8)]
    np.testing.assert_allclose(fitted.scores_, expected)
    np.testing.assert_allclose(fitted.scores_[0], np.sqrt(2))
    np.testing.assert_array_equal(fitted.anomaly_score(X), fitted.scores_)
    near_row_0 = fitted.anomaly_score([[np.nan, 1.0 + 1e-9]])
    np.testing.assert_allclose(near_row_0, fitted.scores_[0], rtol=1e-6)  # no jump


@pytest.mark.parametrize("hollow", [np.s_[:, 2], np.s_[4, :]], ids=["column", "row"])
def test_a_file_with_an_empty_row_or_column_is_refused(hollow) -> None:
    for fitted in (KNNDistance(3).fit(holey_rows()), NSNMF(n_components=2, random_state=0).fit(holey_rows())):
        state = pickle.loads(pickle.dumps(fitted._pack()))
        state["model"].get("factorisation", state["model"])["rows"][hollow] = np.nan
        with pytest.raises(ValueError, match="numbers, some of them in each row and each column"):
            clone(fitted)._unpack(state)


def test_the_controls_are_their_formulas() -> None:
    X = holey_rows()
    zeros = np.zeros((1, 6))
    np.testing.assert_allclose(NormScore(scale=None).fit(X).scores_, naive.residual_scores(X, np.ones((80, 1)), zeros))
    mean = np.nanmean(X, axis=0)[None]
    np.testing.assert_allclose(
        MeanDistance(scale=None).fit(X).scores_, naive.residual_scores(X, np.ones((80, 1)), mean)
    )
    expected = [naive.nearest(X.tolist(), X[i].tolist(), 5, left_out=i)[-1][0] for i in range(80)]
    np.testing.assert_allclose(KNNDistance(5, scale=None).fit(X).scores_, expected, rtol=1e-13)


def test_scores_are_residuals_over_what_is_seen() -> None:
    X = holey_rows()
    for detector in (NSNMF(n_components=2, random_state=0), NMF(n_components=2, random_state=0)):
        fitted = detector.fit(X)
        A = fitted.scaling_.apply(X)
        np.testing.assert_allclose(
            fitted.scores_, naive.residual_scores(A, fitted.embedding_, fitted.components_), rtol=1e-10, atol=1e-14
        )
        back = fitted.inverse_transform(fitted.transform(X))
        assert np.isfinite(back).all()
        assert np.nanmean(np.abs(back - X)) < np.nanstd(X)


def test_the_order_of_rows_does_not_matter_to_the_scores_without_a_start() -> None:
    X = holey_rows()
    order = np.random.default_rng(5).permutation(80)
    for detector in (NormScore(), MeanDistance(), KNNDistance()):
        np.testing.assert_allclose(clone(detector).fit(X[order]).scores_, clone(detector).fit(X).scores_[order])


def test_an_edge_of_length_zero_between_rows_that_are_not_copies() -> None:
    X = agreeing_rows()
    fitted = NSNMF(n_components=2, random_state=0).fit(X)
    kept = fitted.model_.copies.kept
    tree = tree_among(fitted.tree_, kept)
    assert tree.n_nodes == len(kept)  # copies were leaves: without them it is a tree still
    zero = tree.lengths == 0
    assert zero.any()
    S = fitted.model_.problem.objective.S
    shortest = tree.lengths[~zero].min()
    for i, j in tree.edges[zero]:
        assert S[i, j] == pytest.approx(1 / shortest)
    letter = NSNMF(n_components=2, duplicates="zero", random_state=0).fit(X)
    assert letter.similarity_.nnz < fitted.similarity_.nnz + 2 * zero.sum()


def test_a_row_with_a_hole_scores_like_the_whole_one_nearby() -> None:
    """What one hole changes is small compared with what an outlier changes."""
    X = some_rows(200, 12)
    fitted = NSNMF(n_components=3, random_state=0).fit(X)
    punched = X[:50].copy()
    punched[np.arange(50), np.arange(50) % 12] = np.nan
    ratio = fitted.anomaly_score(punched) / fitted.scores_[:50]
    assert 0.8 < np.median(ratio) < 1.2
