"""The contract that every detector keeps: scikit-learn's checks, and our own promises on top."""

from __future__ import annotations

import re
import threading
from unittest import SkipTest

import numpy as np
import pandas as pd
import polars as pl
import pytest
from estimators_cases import (
    ALL_DETECTORS,
    CLASSES,
    LISTED,
    TABLES,
    VARIANTS,
    agreeing_rows,
    both_scales,
    fitted_to_agreeing_rows,
    holey_rows,
    new_rows,
    rescaled,
    scores_of_single_rows,
    some_rows,
)
from sklearn.base import clone
from sklearn.utils import get_tags
from sklearn.utils.estimator_checks import parametrize_with_checks

from penstock._parameters import bounds_of
from penstock.detectors import (
    GNMF,
    NSNMF,
    SNMF,
    BaseDetector,
    Copies,
    Detector,
    FactorDetector,
    FactorModel,
    LoMST,
    NormScore,
    OnlineNSNMF,
    SensorDetector,
    cluster_plan,
)
from penstock.factor import Solution
from penstock.graph.rows import different_rows, first_copies

# scikit-learn's checks use two columns, five iterations, and a table with holes in which two rows have no column in
# common, so that the detectors rightly complain.
pytestmark = [
    pytest.mark.filterwarnings("ignore:.* have no column in common:UserWarning"),
    pytest.mark.filterwarnings("ignore:n_components = :UserWarning"),
    pytest.mark.filterwarnings("ignore:Only .* rows differ:UserWarning"),
    pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning"),
    pytest.mark.filterwarnings("ignore::penstock.CollapsedFactorsWarning"),
]

every_detector = pytest.mark.parametrize("detector", [clone(detector) for detector in ALL_DETECTORS], ids=repr)
# For what the base class does, and no detector changes: one of each family.
FAMILIES = [NormScore(), NSNMF(random_state=0), Detector(), SensorDetector()]
each_family = pytest.mark.parametrize("detector", FAMILIES, ids=repr)
every_table = pytest.mark.parametrize(("detector", "holes"), TABLES, ids=repr)


@pytest.mark.slow
@parametrize_with_checks([*VARIANTS, OnlineNSNMF(2, buffer_size=6, similarity="relative", learn_flagged=False)])
def test_scikit_learn_with_other_parameters(estimator, check) -> None:
    test_scikit_learn(estimator, check)


@parametrize_with_checks([*CLASSES, OnlineNSNMF(random_state=0)])
def test_scikit_learn(estimator, check) -> None:
    try:
        check(estimator)
    except SkipTest as reason:
        pytest.fail(f"scikit-learn skipped a check: {reason}")


@every_table
@both_scales
def test_a_row_does_not_depend_on_its_batch(detector: BaseDetector, holes: bool, scale: str | None) -> None:
    fitted = fitted_to_agreeing_rows(detector, scale, holes)
    new = new_rows(detector)
    whole = fitted.anomaly_score(new)
    assert np.isfinite(whole).all()
    for size in (1, 2, 7):
        parts = [fitted.anomaly_score(new[start : start + size]) for start in range(0, len(new), size)]
        np.testing.assert_array_equal(np.concatenate(parts), whole)
    np.testing.assert_array_equal(fitted.anomaly_score(new[::-1])[::-1], whole)


@every_table
@both_scales
def test_training_rows_keep_their_scores(detector: BaseDetector, holes: bool, scale: str | None) -> None:
    X = agreeing_rows(holes)
    fitted = fitted_to_agreeing_rows(detector, scale, holes)
    assert np.isfinite(fitted.scores_).all()
    scores, original = scores_of_single_rows(fitted), first_copies(X)
    np.testing.assert_array_equal(fitted.anomaly_score(X), scores)
    np.testing.assert_array_equal(scores[original], scores)
    assert (original != np.arange(len(X))).sum() >= 8
    if isinstance(fitted, FactorDetector):
        np.testing.assert_array_equal(fitted.transform(X), fitted.embedding_)


@each_family
def test_fit_predict_is_the_verdict_on_the_training_scores(detector: BaseDetector) -> None:
    fitted = clone(detector).set_params(contamination=0.1)
    verdicts = fitted.fit_predict(some_rows())
    np.testing.assert_array_equal(verdicts, np.where(scores_of_single_rows(fitted) > fitted.threshold_, -1, 1))
    np.testing.assert_array_equal(verdicts, fitted.predict(some_rows()))
    assert (verdicts == -1).sum() == 8


@each_family
def test_signs(detector: BaseDetector) -> None:
    X = some_rows()
    fitted = clone(detector).fit(X)
    score = fitted.anomaly_score(X)
    assert score.dtype == np.float64
    np.testing.assert_array_equal(fitted.score_samples(X), -score)
    np.testing.assert_array_equal(fitted.decision_function(X), fitted.threshold_ - score)
    assert fitted.offset_ == -fitted.threshold_
    assert score.argmax() == 40


@each_family
def test_the_threshold_can_be_changed_after_fitting(detector: BaseDetector) -> None:
    X = some_rows()
    fitted = clone(detector).fit(X)
    assert fitted.set_contamination(0.25) is fitted
    assert (fitted.predict(X) == -1).sum() == 20
    assert fitted.contamination == 0.25
    scores = scores_of_single_rows(fitted)
    fitted.offset_ = -float(np.sort(scores)[-4])
    assert fitted.threshold_ == np.sort(scores)[-4]
    assert (fitted.predict(X) == -1).sum() == 3
    fitted.threshold_ = float(scores.max())
    assert (fitted.predict(X) == 1).all()
    assert fitted.offset_ == -scores.max()
    with pytest.raises(ValueError, match="contamination must be"):
        fitted.set_contamination(0.9)


@each_family
def test_top(detector: BaseDetector) -> None:
    fitted = clone(detector).fit(some_rows())
    best = fitted.top(3)
    assert list(best.columns) == ["rank", "score"]
    assert best["rank"].tolist() == [1, 2, 3]
    assert best.index.name == "row"
    assert best.index[0] == 40
    np.testing.assert_array_equal(best["score"], np.sort(fitted.scores_)[::-1][:3])
    np.testing.assert_array_equal(best["score"], fitted.scores_[best.index])
    assert len(fitted.top(1000)) == 80
    with pytest.raises(ValueError, match="n must be a whole number ≥ 1"):
        fitted.top(0)


def test_top_breaks_ties_by_row() -> None:
    fitted = NormScore().fit([[1.0], [2.0], [0.0], [2.0], [2.0]])
    assert fitted.top(4).index.tolist() == [1, 3, 4, 0]


@each_family
def test_pandas_keeps_names_and_index(detector: BaseDetector) -> None:
    times = pd.date_range("2024-03-01", periods=80, freq="10min", name="time")
    frame = pd.DataFrame(some_rows(), columns=list("abcde"), index=times)
    fitted = clone(detector).fit(frame)
    assert fitted.feature_names_in_.tolist() == list("abcde")
    assert fitted.top(1).index[0] == times[40]
    assert fitted.top(1).index.name == "time"
    plain = clone(detector).fit(some_rows())
    np.testing.assert_array_equal(fitted.anomaly_score(frame), scores_of_single_rows(plain))
    np.testing.assert_array_equal(fitted.scores_, plain.scores_)
    with pytest.raises(ValueError, match="same order"):
        fitted.anomaly_score(frame[list("bacde")])
    with pytest.raises(ValueError, match="f"):
        fitted.anomaly_score(frame.rename(columns={"a": "f"}))


@each_family
def test_polars(detector: BaseDetector) -> None:
    frame = pl.DataFrame(some_rows(), schema=list("abcde"))
    fitted = clone(detector).fit(frame)
    assert fitted.feature_names_in_.tolist() == list("abcde")
    plain = clone(detector).fit(some_rows())
    np.testing.assert_array_equal(fitted.anomaly_score(frame), scores_of_single_rows(plain))
    np.testing.assert_array_equal(fitted.scores_, plain.scores_)
    assert fitted.top(1).index[0] == 40
    with pytest.raises(ValueError, match="same order"):
        fitted.predict(frame.select(list("bacde")))


@every_table
@both_scales
def test_scores_are_finite_for_wild_rows(detector: BaseDetector, holes: bool, scale: str | None) -> None:
    fitted = rescaled(detector, scale).fit(holey_rows() if holes else some_rows(p=6))
    gap = [np.nan if type(detector)._takes_missing else 1.0, 0, 0, 0, 0, 1e300]
    wild = np.array([[1e308] * 6, [0.0] * 6, [5e-324] * 6, [1e308, 0, 1e-308, 1e200, 1.0, 0], gap])
    assert np.isfinite(fitted.anomaly_score(wild)).all()
    assert np.isfinite(fitted.decision_function(wild)).all()
    if scale == "minmax":
        assert np.isfinite(fitted.anomaly_score(-wild)).all()


@every_detector
@pytest.mark.parametrize("unit", [1e-308, 1e306])
def test_scores_are_finite_in_any_unit(detector: BaseDetector, unit: float) -> None:
    assert np.isfinite(clone(detector).fit(some_rows() * unit).scores_).all()


@every_detector
def test_constant_data_score_zero(detector: BaseDetector) -> None:
    X = np.full((30, 3), 4.2)
    fitted = clone(detector).fit(X)
    assert (fitted.scores_ == 0).all()
    assert (fitted.predict(X) == 1).all()


@every_detector
def test_the_callers_data_are_neither_changed_nor_kept(detector: BaseDetector) -> None:
    for scale in ("minmax", None):
        X = some_rows()
        fitted = rescaled(detector, scale).fit(X)
        np.testing.assert_array_equal(X, some_rows())
        before = fitted.anomaly_score(some_rows(9, seed=3))
        X[:] = 0.0
        np.testing.assert_array_equal(fitted.anomaly_score(some_rows(9, seed=3)), before)


@pytest.mark.parametrize("detector", [*FAMILIES, LoMST()], ids=repr)
@pytest.mark.parametrize(
    ("value", "word"), [(np.nan, r"NaN \(missing values\)"), (np.inf, r"inf \(infinity\)"), (-np.inf, "inf")]
)
def test_missing_and_infinite_values_are_named(detector: BaseDetector, value: float, word: str) -> None:
    takes_missing = type(detector)._takes_missing
    if np.isnan(value) and takes_missing:
        return  # tests/detectors/test_missing_detectors.py
    X = some_rows()
    X[7, 2] = X[9, 0] = X[9, 1] = value
    way_out = "Replace them by NaN" if takes_missing else "Fill them"
    message = rf"contains {word}.*: 3 of 400 values, the first in row 7, column 2\. {way_out}.* these 2 rows"
    with pytest.raises(ValueError, match=message):
        clone(detector).fit(X)
    fitted = clone(detector).fit(some_rows())
    with pytest.raises(ValueError, match=message):
        fitted.anomaly_score(X)
    frame = pd.DataFrame(X, columns=list("abcde"), index=pd.date_range("2024-01-01", periods=80))
    with pytest.raises(ValueError, match=r"row 7 \(index 2024-01-08 00:00:00\), column 'c'"):
        clone(detector).fit(frame)
    with pytest.raises(ValueError, match="row 7, column 'c'"):
        clone(detector).fit(pl.DataFrame(X, schema=list("abcde")))


def test_mixed_missing_and_infinite() -> None:
    X = [[1.0, np.nan], [np.inf, 2.0], [1.0, 1.0]]
    with pytest.raises(ValueError, match="contains NaN and inf: 2 of 6 values, the first in row 0, column 1"):
        LoMST().fit(X)
    with pytest.raises(ValueError, match=r"contains inf \(infinity\): 1 of 6 values, the first in row 1, column 0"):
        NormScore().fit(X)


def test_huge_finite_values_are_not_called_infinite() -> None:
    assert np.isfinite(NormScore().fit([[1.7e308], [1.7e308], [-1.7e308]]).scores_).all()


@each_family
def test_text_and_times_are_named(detector: BaseDetector) -> None:
    frame = pd.DataFrame(some_rows(20, 2), columns=["a", "b"])
    with pytest.raises(ValueError, match=r"row 0, column 'city' holds 'Oslo'.*Encode or leave out"):
        clone(detector).fit(frame.assign(city="Oslo"))
    with pytest.raises(ValueError, match=r"column 'city' holds 'Oslo'"):
        clone(detector).fit(pl.DataFrame(some_rows(20, 2), schema=["a", "b"]).with_columns(city=pl.lit("Oslo")))
    with pytest.raises(ValueError, match=r"row 0, column 1 holds 'x'"):
        clone(detector).fit(np.array([[1.0, "x"], [2.0, "y"]], dtype=object))
    with pytest.raises(ValueError, match=r"Column 't' holds times.*index"):
        clone(detector).fit(frame.assign(t=pd.Timestamp("2024-01-01")))


WRONG = [
    (NSNMF, {"n_components": 0, "max_iter": 0, "tol": float("nan"), "alpha": 0.0, "gamma": -1.0, "solver": "newton"}),
    (NSNMF, {"similarity": "cosine", "duplicates": "drop", "score_kind": "norm", "scale": "z", "random_state": "seed"}),
    (GNMF, {"penalty": -1, "n_neighbors": 0}),
    (SNMF, {"graph": "complete"}),
    (
        OnlineNSNMF,
        {"n_components": 21, "buffer_size": 2001, "warmup": 5, "alpha": 0.0, "gamma": -1.0, "threshold": 1.5},
    ),
    (OnlineNSNMF, {"max_iter": 0, "tol": -1, "forgetting": 1.5, "refresh_every": -1, "learn_flagged": "no"}),
    (
        OnlineNSNMF,
        {"similarity": "path", "duplicates": "drop", "accumulate": "never", "scale": "z", "random_state": -1},
    ),
    (LoMST, {"n_neighbors": "best", "max_neighbors": 1}),
    (SensorDetector, {"contamination": 0.7, "random_state": 1.5}),
    (Detector, {"contamination": 0.7, "scale": "z", "random_state": "seed"}),
]


@pytest.mark.parametrize(
    ("cls", "name", "value"), [(cls, name, value) for cls, wrong in WRONG for name, value in wrong.items()]
)
def test_parameters_are_checked_when_fitting(cls: type, name: str, value: object) -> None:
    with pytest.raises(ValueError, match="[Ss]eed" if name == "random_state" else name):
        cls(**{name: value}).fit(some_rows())


@pytest.mark.parametrize("cls", [type(each) for each in (*LISTED.values(), OnlineNSNMF())])
def test_every_parameter_has_a_bound_that_refuses_what_it_cannot_be(cls: type) -> None:
    free = {"graph", "init", "detector", "explaining"}  # are checked with the table
    for name in {*cls().get_params(deep=False)} - free:
        with pytest.raises((TypeError, ValueError)):
            bounds_of(cls)[name](name, object())


@every_detector
def test_negative_values_unscaled(detector: BaseDetector) -> None:
    X = some_rows()
    X[3, 1] = X[5, 0] = -0.5
    raw = rescaled(detector, None)
    assert get_tags(raw).input_tags.positive_only is type(detector)._needs_nonnegative
    assert get_tags(detector).input_tags.positive_only is False
    if type(detector)._needs_nonnegative:
        with pytest.raises(ValueError, match=r"2 in all, the first \(-0\.5\) in row 3, column 1.*scale='minmax'"):
            raw.fit(X)
    else:
        assert np.isfinite(raw.fit(X).scores_).all()
    assert np.isfinite(clone(detector).fit(X).scores_).all()


class _Picky(NormScore):
    _needs_nonnegative = True


def test_negative_values_are_named() -> None:
    frame = pd.DataFrame({"a": [1.0, 2.0, 3.0], "b": [1.0, -2.0, -3.0]})
    with pytest.raises(ValueError, match=r"passed to _Picky: 2 in all, the first \(-2\) in row 1, column 'b'"):
        _Picky(scale=None).fit(frame)
    assert get_tags(_Picky(scale=None)).input_tags.positive_only
    assert not get_tags(_Picky()).input_tags.positive_only
    fitted = _Picky(scale=None).fit(frame.abs())
    with pytest.raises(ValueError, match="row 1, column 'b'"):
        fitted.anomaly_score(frame)


def test_what_a_detector_keeps_is_not_the_callers_memory() -> None:
    class Keeper(NormScore):
        def _fit_rows(self, A):
            self.kept_ = A
            return super()._fit_rows(A)

    X = some_rows()
    for scale in ("minmax", None):
        assert not np.shares_memory(Keeper(scale=scale).fit(X).kept_, X)


@pytest.mark.parametrize("detector", [NSNMF(tol=0, random_state=0), SensorDetector(), OnlineNSNMF(2)], ids=repr)
def test_a_fit_that_lasts_is_logged(
    detector: BaseDetector, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("penstock._progress.SECONDS", 1e-4)
    rows, threads = np.random.default_rng(0).random((3000, 6)), threading.active_count()
    detector.fit(rows)
    assert not caplog.records
    with caplog.at_level("INFO", "penstock"):
        detector.fit(rows)
    counted = [each for each in caplog.records if each.total]
    assert counted
    assert all(1 <= each.done <= each.total for each in counted)
    words = rf"fitting {type(detector).__name__}: \w+ [\d,]+ of [\d,]+, \d+ s"
    assert re.fullmatch(words, counted[0].getMessage())
    assert threading.active_count() == threads


def test_a_nan_score_is_an_error_not_a_verdict() -> None:
    class Broken(NormScore):
        def _fit_rows(self, A):
            return np.full(len(A), np.nan)

    with pytest.raises(FloatingPointError, match="NaN as a score"):
        Broken().fit(some_rows())


@pytest.mark.parametrize("detector", [NSNMF(2, random_state=0), NSNMF(2, random_state=0, duplicates="zero")])
def test_a_fit_by_its_plan_scores_as_the_fit_it_repeats(detector: BaseDetector) -> None:
    """Another program reads the table, and computes what `pose` says: here it takes the factors of an ordinary fit."""
    X = np.r_[some_rows(), some_rows()[:5]]
    fitted, other = clone(detector).fit(X), clone(detector)
    steps = cluster_plan(other)
    assert steps is not None
    assert steps.pose is not None
    scaling = steps.begin(len(X), X.min(axis=0), X.max(axis=0), list("abcde"))
    assert scaling is not None
    A = scaling.apply(X)
    copies = Copies(*different_rows(first_copies(A) if steps.needs.merge_copies else np.arange(len(A))))
    assert len(copies.kept) == (80 if steps.needs.merge_copies else 85)
    task = steps.pose(A[copies.kept], copies, fitted.tree_)
    assert task.n_components == 2
    solution = Solution(fitted.model_.factors, fitted.objective_, 9, True, 0.0, np.zeros(1), np.zeros(1))
    rows, search = fitted.model_.rows, fitted.model_.search
    steps.install(FactorModel(copies, rows, task.problem, solution.factors, search, fitted.tree_), solution)
    steps.finish(fitted.scores_, table=pd.DataFrame(X, index=np.arange(100, 185)))
    new = some_rows(seed=3)
    np.testing.assert_array_equal(
        other.anomaly_score(pd.DataFrame(new, columns=list("abcde"))), fitted.anomaly_score(new)
    )
    assert other.threshold_ == fitted.threshold_
    assert other.explained_ == fitted.explained_
    assert other.top(1).index[0] == 100 + fitted.top(1).index[0]


def test_only_what_pays_on_a_cluster_has_a_plan() -> None:
    made = [*LISTED.values(), OnlineNSNMF()]
    assert {type(each).__name__ for each in made if cluster_plan(each)} == {"NSNMF", "Detector", "SensorDetector"}


def test_steps_of_a_fit_are_not_public() -> None:
    steps = {"begin_fit", "finish_fit", "pose", "install", "with_model", "needs", "learn_rows", "score_array"}
    assert not [type(each) for each in (*LISTED.values(), OnlineNSNMF()) if steps & set(dir(type(each)))]
