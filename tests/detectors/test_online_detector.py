"""OnlineNSNMF: however a stream is cut, whatever is missing from it, wherever it is stopped and gone on with."""

from __future__ import annotations

import copy
import pickle
import warnings
from concurrent.futures import ThreadPoolExecutor

import joblib
import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MinMaxScaler
from sklearn.utils import get_tags
from strategies import examples

import penstock
from penstock import OnlineNSNMF
from penstock.factor import fit_factors, nsnmf
from penstock.graph.mst import minimum_spanning_tree
from penstock.graph.similarities import similarity
from penstock.storage import StorageError, read_state, write_state
from penstock.thresholds import Fixed, MeanDeviation, RollingQuantile


def some_rows(n: int = 150, p: int = 4, seed: int = 0, missing: float = 0.0) -> np.ndarray:
    """Three kinds of rows in the user's units, some negative, some readings missing."""
    rng = np.random.default_rng(seed)
    centres = rng.normal(size=(3, p)) * 10
    X = centres[rng.integers(3, size=n)] + rng.normal(size=(n, p))
    X[rng.random((n, p)) < missing] = np.nan
    return X


SMALL = {"n_components": 2, "buffer_size": 6, "random_state": 0}


def small(**parameters) -> OnlineNSNMF:
    return OnlineNSNMF(**(SMALL | parameters))


VARIANTS = [
    {},
    {"learn_flagged": False, "threshold": RollingQuantile(0.2, window=20)},
    {"forgetting": 0.95, "similarity": "relative", "warmup": 17},
    {"refresh_every": 3, "scale": "minmax", "similarity": "normalized"},
    {"refresh_every": 0, "similarity": "binary", "threshold": MeanDeviation(k=1.0, min_scores=5)},
    {"accumulate": "step", "forgetting": 0.99},
]
every_variant = pytest.mark.parametrize("variant", VARIANTS, ids=str)


# ---- however it is cut ----


@every_variant
@given(cuts=st.lists(st.integers(0, 150), max_size=8), missing=st.sampled_from([0.0, 0.3]))
@examples(12)
def test_any_cut_gives_the_same_bits(variant, cuts, missing):
    X = some_rows(missing=missing)
    whole = small(**variant).process(X)
    detector, parts = small(**variant), []
    for rows in np.split(X, sorted(cuts)):
        if len(rows):
            parts.append(detector.process(rows))
    for name in ("scores", "thresholds", "flags", "variables", "residuals"):
        joined = np.concatenate([getattr(part, name) for part in parts])
        np.testing.assert_array_equal(joined, getattr(whole, name), err_msg=name)


@every_variant
def test_every_face_gives_the_same_bits(variant):
    X = some_rows(missing=0.1)
    whole = small(**variant).update_many(X)
    one = small(**variant)
    np.testing.assert_array_equal([one.update(row) for row in X], whole)
    parts = small(**variant)
    for start in range(0, 150, 30):
        parts.partial_fit(X[start : start + 30])
    fitted = small(**variant).fit(X)
    n = len(fitted.warmup_scores_)
    usable = ~np.isnan(X).all(axis=1)
    np.testing.assert_array_equal(fitted.scores_[usable][n:], whole[usable][n:])
    np.testing.assert_array_equal(fitted.scores_[usable][:n], fitted.warmup_scores_)
    new = some_rows(9, seed=5)
    np.testing.assert_array_equal(parts.anomaly_score(new), one.anomaly_score(new))
    np.testing.assert_array_equal(fitted.anomaly_score(new), one.anomaly_score(new))
    frame = pd.DataFrame(X, columns=list("abcd"))
    np.testing.assert_array_equal(small(**variant).update_many(frame), whole)
    np.testing.assert_array_equal(small(**variant).update_many(pl.DataFrame(X, schema=list("abcd"))), whole)


@every_variant
def test_scoring_learns_nothing_and_foretells_the_update(variant):
    X = some_rows(missing=0.1)
    detector = small(**variant)
    detector.update_many(X[:100])
    before = pickle.dumps(detector._pack())
    foretold = detector.anomaly_score(X[100:101])
    detector.score_samples(X)
    detector.predict(X)
    assert pickle.dumps(detector._pack()) == before
    assert detector.update(X[100]) == foretold[0]


# ---- the warm-up ----


def test_the_warm_up_is_offline_ns_nmf():
    A = np.random.default_rng(3).random((30, 5))
    detector = small(buffer_size=8, n_components=3, scale=None)
    for ask in (lambda: detector.predict(A), lambda: detector.n_seen_):
        with pytest.raises(NotFittedError, match="has not seen any sample yet"):
            ask()
    assert np.isnan(detector.update_many(A[:7])).all()
    assert not detector.is_warm
    for ask in (lambda: detector.warmup_scores_, lambda: detector.predict(A), lambda: detector.threshold_):
        with pytest.raises(NotFittedError, match="has seen 7 of the 8 samples"):
            ask()
    scores = detector.update_many(A[7:])
    assert np.isnan(scores[0])
    assert np.isfinite(scores[1:]).all()
    objective = nsnmf(A[:8], similarity(minimum_spanning_tree(A[:8])), 0.8, 0.2)
    factors = fit_factors(objective, 3, random_state=0).factors
    residuals = A[:8] - factors.W @ factors.H
    np.testing.assert_allclose(detector.warmup_scores_, np.linalg.norm(residuals, axis=1), rtol=1e-9)


def test_a_longer_warm_up_scores_its_later_rows_when_it_ends():
    A = np.random.default_rng(3).random((60, 5))
    plain, patient = small(scale=None), small(scale=None, warmup=25)
    scores, late = plain.update_many(A), patient.update_many(A)
    assert np.isnan(late[:25]).all()
    np.testing.assert_array_equal(late[25:], scores[25:])
    np.testing.assert_array_equal(patient.warmup_scores_[6:], scores[6:25])


def test_fit_with_few_rows_ends_the_warm_up_early():
    X = some_rows(4)
    fitted = OnlineNSNMF(n_components=3, random_state=0).fit(X)
    assert np.isfinite(fitted.scores_).all()
    assert np.isfinite(fitted.update_many(some_rows(60, seed=1))).all()
    with pytest.warns(UserWarning, match=r"Only 4 rows have readings, so n_components = 5 was lowered to 4\."):
        assert OnlineNSNMF(n_components=5, random_state=0).fit(X).n_components_ == 4
    with pytest.raises(ValueError, match=r"at least 2 rows with readings; got 1 \(n_samples = 3\)"):
        OnlineNSNMF().fit([[1.0, np.nan], [np.nan, np.nan], [np.nan, np.nan]])


# ---- scaling ----


def test_auto_scales_unless_the_warm_up_lies_in_the_unit_interval():
    A = np.random.default_rng(0).random((60, 3))
    np.testing.assert_array_equal(small(scale=None).update_many(A), small().update_many(A))
    X = A * [100.0, 7.0, 1.0] - 5.0
    np.testing.assert_array_equal(small(scale="minmax").update_many(X), small().update_many(X))
    detector = small().fit(X)
    np.testing.assert_allclose(detector.scaling_.undo(detector.scaling_.apply(X)), X)


def test_values_outside_the_range_are_clipped_for_the_fit_but_not_for_the_residual():
    A = np.random.default_rng(1).random((80, 3))
    detector = small(similarity="relative").fit(A)
    inside, outside = np.array([[1.0, 0.5, 0.0]]), np.array([[4.0, 0.5, -2.0]])
    near, far = detector.anomaly_score(inside)[0], detector.anomaly_score(outside)[0]
    expected = copy.deepcopy(detector).process(inside, n_variables=3)
    rebuilt = inside[0] - expected.residuals[0, np.argsort(expected.variables[0])]
    assert far == pytest.approx(np.linalg.norm(outside[0] - rebuilt), rel=1e-12)
    assert near == pytest.approx(np.linalg.norm(inside[0] - rebuilt), rel=1e-12)
    # what was learned is the clipped row, so that both leave the same model behind
    one, other = copy.deepcopy(detector), copy.deepcopy(detector)
    one.update(inside[0])
    other.update(outside[0])
    np.testing.assert_array_equal(one.components_, other.components_)


def test_a_sensor_that_freezes_and_one_that_was_stuck():
    X = some_rows(200)
    X[:60, 1] = 7.0  # constant while the scaling is learned, then alive
    X[100:, 2] = X[100, 2]  # freezes
    scores = small(warmup=40, similarity="binary").update_many(X)
    assert np.isfinite(scores[40:]).all()
    assert scores[60] > np.nanmax(scores[40:60])  # a stuck sensor that begins to move is seen
    X[:, 1] = 7.0
    frozen = small(warmup=40, similarity="binary").update_many(X)
    X[100:, 2] = some_rows(200)[100:, 2]
    alive = small(warmup=40, similarity="binary").update_many(X)
    assert np.median(frozen[100:]) > np.median(alive[100:])  # it no longer goes with the others


def test_columns_of_zeros_that_come_alive():
    A = np.random.default_rng(0).random((200, 4))
    A[:100, :2] = 0.0
    A[120:150] = 0.0
    scores = small(scale=None).update_many(A)
    assert np.isfinite(scores[6:]).all()
    assert scores[100] > scores[99]


@pytest.mark.parametrize("scale", ["auto", "minmax"])
@pytest.mark.parametrize("rows", [np.tile(some_rows(1), (300, 1)), some_rows()], ids=["all equal", "usual"])
def test_scores_stay_finite_whatever_comes_later(rows, scale):
    detector = small(scale=scale)
    assert np.isfinite(detector.update_many(rows)[6:]).all()
    for size in (1e30, 1e200, 1.7e308):
        assert np.isfinite(detector.update(np.full(4, size)))
    gaps = [1.2e154, np.nan, np.nan, 0.5]
    assert np.isfinite(detector.anomaly_score([gaps])[0])
    assert np.isfinite(detector.update(gaps))
    assert np.isfinite(detector.update_many(some_rows(50, seed=2))).all()
    before = detector.n_seen_
    for call in (detector.update_many, detector.anomaly_score, lambda none: detector.process(none).scores):
        assert call(np.empty((0, 4))).shape == (0,)
    assert detector.n_seen_ == before


# ---- missing readings ----


def test_missing_readings_are_counted_and_left_out():
    X = some_rows(150, missing=0.2)
    X[70] = np.nan
    detector = small()
    scores = detector.update_many(X)
    assert np.isnan(scores[70])
    assert np.isfinite(np.delete(scores, 70)[6:]).all()
    np.testing.assert_array_equal(detector.missing_, np.isnan(X).sum(axis=0))
    assert detector.n_missing_ == np.isnan(X).sum()
    assert detector.n_seen_ == 150
    without = small().update_many(np.delete(X, 70, axis=0))
    np.testing.assert_array_equal(np.delete(scores, 70), without)  # an empty row leaves no trace


def test_a_missing_reading_has_no_part_in_the_residual():
    A = np.random.default_rng(1).random((80, 4))
    detector = small().fit(A)
    row = A[3].copy()
    row[2] = np.nan
    result = copy.deepcopy(detector).process(row[None], n_variables=4)
    assert result.variables[0, 3] == -1
    assert np.isnan(result.residuals[0, 3])
    seen = result.residuals[0, :3]
    assert result.scores[0] == pytest.approx(np.sqrt(4 / 3 * (seen**2).sum()), rel=1e-12)


def test_a_column_without_readings_in_the_warm_up_is_announced():
    frame = pd.DataFrame(some_rows(60), columns=["a", "b", "c", "d"])
    frame.loc[:29, "c"] = np.nan
    detector = small(warmup=20)
    with pytest.warns(UserWarning, match=r"Columns \['c'\] had no reading in the warm-up of 20 samples"):
        scores = detector.update_many(frame)
    assert np.isfinite(scores[20:]).all()
    assert detector.unseen_columns_ == ["c"]
    others = small(warmup=20, similarity="binary").update_many(frame[["a", "b", "d"]])
    with pytest.warns(UserWarning, match="no reading"):
        scores = small(warmup=20, similarity="binary").update_many(frame)
    np.testing.assert_allclose(scores[20:], others[20:] * np.sqrt(4 / 3), rtol=1e-2)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        small(warmup=40).update_many(frame)


# ---- what is learned, and what is not ----


def test_flagged_samples_leave_no_trace_if_told_so():
    A = np.random.default_rng(0).random((120, 4)) * 0.2 + 0.4
    spoilt = np.insert(A, 60, [[0.0, 1.0, 0.0, 1.0]] * 3, axis=0)
    chosen = {"learn_flagged": False, "threshold": Fixed(0.6), "similarity": "relative"}
    detector = small(**chosen)
    result = detector.process(spoilt)
    assert np.flatnonzero(result.flags).tolist() == [60, 61, 62]
    np.testing.assert_array_equal(np.delete(result.scores, [60, 61, 62]), small(**chosen).update_many(A))
    fitted = small(threshold=Fixed(0.6), similarity="relative").update_many(spoilt)
    assert (fitted[63:] != result.scores[63:]).any()


def test_forgetting_keeps_the_norms_of_h_and_follows_a_change():
    rng = np.random.default_rng(0)
    before, after = np.array([0.8, 0.2, 0.2, 0.5]), np.array([0.2, 0.8, 0.3, 0.5])
    A = np.vstack([before * (0.5 + rng.random((400, 1)) / 2), after * (0.5 + rng.random((400, 1)) / 2)])
    likeness = {}
    for forgetting in (1.0, 0.95):
        detector = small(n_components=1, forgetting=forgetting, similarity="relative", scale=None)
        detector.update_many(A[:6])
        norm = np.linalg.norm(detector.components_)
        detector.update_many(A[6:])
        h = detector.components_[0]
        likeness[forgetting] = h @ after / np.linalg.norm(h) / np.linalg.norm(after)
        if forgetting < 1:
            assert np.linalg.norm(h) == pytest.approx(norm, rel=1e-9)
    assert likeness[0.95] > 0.999
    assert likeness[1.0] < 0.97


def test_h_moves_when_it_is_told_to():
    A = np.random.default_rng(0).random((60, 4))
    still = small(refresh_every=0).fit(A[:10])
    H = still.components_
    still.update_many(A[10:])
    np.testing.assert_array_equal(still.components_, H)
    third = small(refresh_every=3)
    third.update_many(A[:6])
    moved = []
    for row in A[6:18]:
        H = third.components_
        third.update(row)
        moved.append(bool((third.components_ != H).any()))
    assert moved == [False, False, True] * 4


def test_memory_does_not_grow():
    detector = small()
    detector.update_many(some_rows(50))
    before = len(pickle.dumps(detector))
    detector.update_many(some_rows(5_000, seed=1))
    assert abs(len(pickle.dumps(detector)) - before) < 64  # counters take a byte or two more


# ---- thresholds ----


def test_the_threshold_given_is_copied():
    threshold = MeanDeviation(k=2.0, min_scores=5)
    detector = small(threshold=threshold)
    assert clone(detector).threshold.k == 2.0
    detector.update_many(some_rows())
    assert np.isnan(threshold.value)
    assert detector.threshold_ == detector.running_threshold_.value
    other = clone(detector)
    assert not other.is_warm


def test_threshold_and_offset():
    detector = small().fit(some_rows())
    assert detector.offset_ == -detector.threshold_
    new = some_rows(40, seed=9)
    np.testing.assert_array_equal(detector.predict(new) == -1, detector.anomaly_score(new) > detector.threshold_)
    detector.threshold_ = 0.0
    assert (detector.predict(new) == -1).all()
    assert isinstance(detector.running_threshold_, Fixed)
    detector.offset_ = -3.0
    assert detector.threshold_ == 3.0
    detector.threshold_ = np.inf
    detector.update_many(new)
    assert (detector.predict(new) == 1).all()
    with pytest.raises(ValueError, match="got NaN"):
        detector.threshold_ = np.nan
    young = small()
    scores = young.update_many(some_rows(9))
    assert young.threshold_ == max(*young.warmup_scores_, *scores[6:])  # none known yet: the highest so far


def test_scores_are_compared_with_the_threshold_known_before():
    result = small(threshold=MeanDeviation(k=1.0, min_scores=10)).process(some_rows())
    known = ~np.isnan(result.thresholds)
    assert not known[:16].any()
    assert known[16:].all()
    np.testing.assert_array_equal(result.flags[known], result.scores[known] > result.thresholds[known])


def test_the_variables_behind_a_score():
    X = some_rows(200)
    X[150, 2] += 80.0
    result = small(warmup=50).process(X, n_variables=2)
    assert result.variables[150, 0] == 2
    assert result.residuals[150, 0] == pytest.approx(80, rel=0.5)  # in the user's units
    assert (result.variables[:50] == -1).all()
    assert small().process(X, n_variables=9).variables.shape == (200, 4)
    assert small().process(X, n_variables=0).variables.shape == (200, 0)


# ---- saved and gone on with ----


@every_variant
@pytest.mark.parametrize("cut", [1, 5, 6, 16, 40, 149])
def test_a_saved_stream_goes_on_to_the_last_bit(variant, cut, tmp_path):
    X = some_rows(missing=0.1)
    whole = small(**variant).process(X)
    detector = small(**variant)
    detector.process(X[:cut])
    detector.save(tmp_path / "stream.safetensors")
    again = penstock.load(tmp_path / "stream.safetensors")
    assert again.n_seen_ == cut
    rest = again.process(X[cut:])
    np.testing.assert_array_equal(rest.scores, whole.scores[cut:])
    np.testing.assert_array_equal(rest.thresholds, whole.thresholds[cut:])
    np.testing.assert_array_equal(rest.flags, whole.flags[cut:])
    assert again.n_missing_ == np.isnan(X).sum()


def test_a_fitted_detector_is_saved_with_its_scores_and_names(tmp_path):
    frame = pd.DataFrame(some_rows(), columns=list("abcd"))
    detector = small().fit(frame)
    detector.save(tmp_path / "fitted.safetensors")
    again = penstock.load(tmp_path / "fitted.safetensors")
    np.testing.assert_array_equal(again.scores_, detector.scores_)
    assert again.threshold_ == detector.threshold_
    assert again.feature_names_in_.tolist() == list("abcd")
    with pytest.raises(ValueError, match="feature names"):
        again.update_many(frame[["b", "a", "c", "d"]])
    OnlineNSNMF(alpha=0.5).save(tmp_path / "new.safetensors")
    assert repr(penstock.load(tmp_path / "new.safetensors")) == "OnlineNSNMF(alpha=0.5)"


@pytest.mark.parametrize(
    ("place", "change", "message"),
    [
        ("stream", {"n_seen": -1}, "n_seen"),
        ("stream", {"missing": np.zeros(3, dtype=np.int64)}, r"\['missing'\] should be int64"),
        ("stream", {"waiting": np.ones((2, 4))}, "waiting"),
        ("stream", {"threshold": {"kind": "Evil"}}, "threshold"),
        ("stream/warm", {"n_components": 9}, "n_components"),
        ("stream/warm", {"scaling": None}, "scaling"),
        ("stream/warm/factors", {"H": np.zeros((2, 4))}, r"\['H'\] should hold finite numbers > 0"),
        ("stream/warm/factors", {"U": np.full((2, 2), np.nan)}, r"\['U'\] should hold"),
        ("stream/warm/factors", {"V": np.full((2, 4), 1e300)}, r"\['V'\] should hold"),
        (
            "stream/warm/factors",
            {"rows": np.ones((9, 4)), "weights": np.ones((9, 2))},
            r"\['rows'\] should be 1 to 6 rows",
        ),
        ("stream/warm/factors", {"rows": -np.ones((6, 4))}, r"\['rows'\] should hold"),
        ("stream/warm/factors", {"rows": np.ones((6, 4), dtype=np.float32)}, r"\['rows'\] should be"),
        ("stream/warm/factors", {"n_learned": "5"}, "n_learned"),
        ("stream/warm/factors", {"n_learned": -4}, "n_learned"),
        ("stream/warm/factors", {"more": 1}, "should have the fields"),
        ("", {"scores": "many"}, "scores"),
    ],
)
def test_a_state_that_cannot_be_is_refused(place, change, message, tmp_path):
    path = tmp_path / "odd.safetensors"
    small().fit(some_rows()).save(path)
    kind, state = read_state(path)
    part = state["fitted"]
    for step in place.split("/") if place else ():
        part = part[step]
    part.update(change)
    write_state(path, kind, state)
    with pytest.raises(StorageError, match=message):
        penstock.load(path)


# ---- what is wrong is named, and changes nothing ----


def test_wrong_rows_are_named_and_leave_the_stream_as_it_was():
    X = some_rows()
    detector, twin = small(), small()
    detector.update_many(X[:50])
    twin.update_many(X[:50])
    bad = X[50:60].copy()
    bad[3, 1] = np.inf
    with pytest.raises(ValueError, match=r"inf \(infinity\): 1 of 40 values, the first in row 3, column 1"):
        detector.update_many(bad)
    with pytest.raises(ValueError, match="row 0, column 1"):
        detector.update(bad[3])
    with pytest.raises(ValueError, match="has 3 features"):
        detector.update(X[0, :3])
    with pytest.raises(ValueError, match=r"one sample, p numbers in a row; got shape \(2, 4\)"):
        detector.update(X[:2])
    with pytest.raises(ValueError, match="3 features"):
        detector.update_many(X[:, :3])
    np.testing.assert_array_equal(detector.update_many(X[50:]), twin.update_many(X[50:]))
    with pytest.raises(ValueError, match=r"Negative values .* the first \(-1\) in row 1, column 0"):
        small(scale=None).update_many([[1.0], [-1.0]])
    with pytest.raises(ValueError, match="too large"):
        small(scale=None).update_many([[1.0], [1e90]])


def test_a_fit_that_fails_leaves_the_detector_as_it_was():
    detector = small().fit(some_rows())
    before = detector.scores_.copy()
    with pytest.raises(ValueError, match="inf"):
        detector.fit([[np.inf, 1.0]])
    np.testing.assert_array_equal(detector.scores_, before)
    assert detector.is_warm


def test_tags_and_pipelines():
    assert get_tags(OnlineNSNMF()).input_tags.allow_nan
    assert get_tags(OnlineNSNMF(scale=None)).input_tags.positive_only
    X = some_rows()
    pipeline = make_pipeline(MinMaxScaler(), small()).fit(X)
    assert set(np.unique(pipeline.predict(X))) <= {-1, 1}


def test_threads_may_score_side_by_side():
    detector = OnlineNSNMF(random_state=0).fit(some_rows(300))
    new = some_rows(20_000, seed=4)
    alone = detector.anomaly_score(new)
    with ThreadPoolExecutor(2) as pool:
        for scores in pool.map(lambda _: detector.anomaly_score(new), range(6)):
            np.testing.assert_array_equal(scores, alone)


# ---- found by review ----


def test_a_copy_scores_as_its_original_does():
    """An edge of length 0 gave no similarity, so that an anomaly that repeats looked normal the second time."""
    X = np.random.default_rng(0).random((500, 4)) * 0.3 + [0.1, 0.2, 0.3, 0.4]
    odd = np.array([0.35, 0.25, 0.5, 0.45])
    for kind in ("inverse", "binary", "relative", "normalized"):
        detector = OnlineNSNMF(similarity=kind, random_state=0)
        detector.update_many(X)
        first = detector.update(odd)
        again, nearly = detector.anomaly_score([odd, odd + 1e-12])
        assert again == pytest.approx(nearly, rel=1e-3)
        assert again > 0.5 * first
    literal = OnlineNSNMF(duplicates="zero", random_state=0)
    literal.update_many(X)
    first = literal.update(odd)
    assert literal.anomaly_score([odd])[0] < 0.5 * first


@pytest.mark.parametrize("error", [KeyboardInterrupt, ValueError])
@pytest.mark.parametrize("step", ["fit_factors", "learn_scaling"])
def test_a_warm_up_that_fails_to_end_leaves_everything_as_it_was(monkeypatch, step, error):
    X = some_rows()
    detector = small(warmup=20)
    detector.update_many(X[:15])

    def fail(*args, **kwargs):
        raise error("stop")

    with monkeypatch.context() as patch:
        patch.setattr(f"penstock.detectors._stream.{step}", fail)
        for _ in range(2):
            with pytest.raises(error, match="stop"):
                detector.update_many(X[15:40])
    assert not detector.is_warm
    assert detector.n_seen_ == 15
    np.testing.assert_array_equal(detector.update_many(X[15:]), small(warmup=20).update_many(X)[15:])


def test_a_model_that_broke_does_not_look_perfect():
    detector = small().fit(some_rows())
    detector._stream.factors._memory.H[:] = np.nan
    assert detector.anomaly_score(some_rows(1))[0] == np.finfo(np.float64).max


def test_parameters_changed_on_the_way_wait_for_the_next_fit(tmp_path):
    A = np.random.default_rng(0).random((100, 4))
    detector = small(scale=None)
    detector.update_many(A[:50])
    detector.set_params(scale="auto")
    with pytest.raises(ValueError, match="Negative values"):
        detector.update_many(-A)
    with pytest.raises(ValueError, match=r"Parameters were changed after the stream began \(scale\)"):
        detector.save(tmp_path / "changed.safetensors")
    detector.set_params(scale=None).save(tmp_path / "changed.safetensors")
    scaled = small()
    scaled.update_many(some_rows(50))
    scaled.set_params(scale=None)
    assert np.isfinite(scaled.update_many(some_rows(50))).all()


def test_rows_of_every_kind_are_read_alike():
    X = some_rows()
    frame = pd.DataFrame(X, columns=list("abcd"))
    detector = small()
    detector.update_many(frame[:100])
    expected = detector.anomaly_score(frame[100:101])[0]
    assert copy.deepcopy(detector).update(frame.iloc[100]) == expected
    assert copy.deepcopy(detector).update(X[100].tolist()) == expected
    with pytest.raises(ValueError, match="feature names"):
        detector.update(frame[["b", "a", "c", "d"]].iloc[100])
    for row in (X[100].astype("complex"), np.arange(4).astype("datetime64[s]"), np.arange(4).astype("timedelta64[s]")):
        with pytest.raises(ValueError, match="A sample holds real numbers"):
            detector.update(row)
    with pytest.raises(ValueError, match="A sample holds numbers, NaN for a missing reading"):
        detector.update([1.0, pd.NA, 2.0, 3.0])
    masked = np.ma.masked_array(X[100], mask=[False, True, False, False])
    missing = X[100].copy()
    missing[1] = np.nan
    expected = copy.deepcopy(detector).update(missing)
    assert copy.deepcopy(detector).update(masked) == expected
    fitted = small().fit(X)
    assert fitted.anomaly_score(masked[None]) == fitted.anomaly_score(missing[None])


def test_nothing_but_gaps_in_the_warm_up_takes_no_memory():
    detector = small()
    for _ in range(50):
        assert np.isnan(detector.update([np.nan] * 4))
    assert detector.n_seen_ == 50
    assert len(detector._stream.waiting) == 0


def test_near_copies_in_the_warm_up_are_announced():
    X = np.random.default_rng(0).random((60, 3))
    X[3] = X[4] + [1e-6, 0.0, 0.0]
    with pytest.warns(UserWarning, match="times nearer to each other.*'binary' and 'normalized' are safe"):
        small().update_many(X)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        small(similarity="normalized").update_many(X)


def test_a_file_that_asks_for_endless_work_is_refused(tmp_path):
    threshold = {"kind": "RollingQuantile", "parameters": {"rate": 1e-25, "window": 9, "min_scores": None}, "state": {}}
    state = {"class": "OnlineNSNMF", "parameters": {"threshold": threshold}, "fitted": None}
    write_state(tmp_path / "endless.safetensors", "detector", state)
    with pytest.raises(StorageError):
        penstock.load(tmp_path / "endless.safetensors")


def test_a_file_opened_for_reading_only_can_be_gone_on_with(tmp_path):
    X = some_rows(missing=0.1)
    detector = small()
    detector.update_many(X[:100])
    joblib.dump(detector, tmp_path / "model.joblib")
    again = joblib.load(tmp_path / "model.joblib", mmap_mode="r")
    np.testing.assert_array_equal(again.update_many(X[100:]), detector.update_many(X[100:]))


# ---- what the other detectors have ----


def test_the_list_of_a_fit_and_its_threshold(tmp_path):
    rows = pd.DataFrame(some_rows(80), columns=list("abcd"), index=pd.date_range("2024-05-01", periods=80, freq="h"))
    rows.iloc[60] = [90.0, -90.0, 90.0, -90.0]
    rows.iloc[70] = np.nan  # has no score
    detector = small().fit(rows)
    found = detector.top(100)
    assert found.index[0] == rows.index[60]
    assert len(found) == 79
    assert found["score"].is_monotonic_decreasing
    assert rows.index[70] not in found.index
    np.testing.assert_array_equal(found["rank"], np.arange(1, 80))
    assert detector.set_contamination(0.1) is detector
    assert (detector.scores_ > detector.threshold_).sum() == 8
    detector.update_many(rows[:5])
    assert detector.threshold_ == detector.running_threshold_.value  # fixed, also when the stream goes on
    detector.save(tmp_path / "stream")
    again = penstock.load(tmp_path / "stream")
    pd.testing.assert_frame_equal(again.top(3), found[:3], check_freq=False)
    assert again.threshold_ == detector.threshold_
    detector.save(tmp_path / "bare", labels=False)
    assert penstock.load(tmp_path / "bare").top(1).index.tolist() == [60]
    with pytest.raises(ValueError, match="contamination"):
        detector.set_contamination(0.7)


def test_a_stream_without_a_fit_keeps_no_list():
    detector = small().partial_fit(some_rows())
    for ask in (detector.top, detector.plot, lambda: detector.set_contamination(0.1)):
        with pytest.raises(NotFittedError, match="rank what update_many returns"):
            ask()


def test_the_scores_of_a_fit_are_drawn():
    pyplot = pytest.importorskip("matplotlib.pyplot")
    lines = small().fit(some_rows()).plot(3).axes[0].get_lines()
    assert [len(line.get_xdata()) for line in lines] == [150, 2, 3]
    pyplot.close("all")


def test_the_share_explained_is_that_of_the_buffer():
    rows = np.random.default_rng(0).random((60, 4))
    rows[55, 2] = np.nan
    detector = small(scale=None).partial_fit(rows)
    state = detector.stream.factors.get_state()
    np.testing.assert_array_equal(state["rows"], rows[-6:])
    rebuilt, seen = state["weights"] @ state["H"], ~np.isnan(rows[-6:])
    expected = (rebuilt[seen] ** 2).sum() / (rows[-6:][seen] ** 2).sum()
    assert detector.explained_ == pytest.approx(expected, rel=1e-12)
    with pytest.raises(NotFittedError):
        _ = small().explained_


def test_sums_as_printed_count_a_sample_as_often_as_it_took_steps():
    rows = some_rows()
    once, printed = (small(accumulate=when, max_iter=7, tol=0.0).partial_fit(rows) for when in ("sample", "step"))
    growth = [np.trace(each.stream.factors.get_state()["U"]) for each in (once, printed)]
    assert growth[1] > 4 * growth[0]
    single = small(accumulate="step", max_iter=1).update_many(rows)
    np.testing.assert_array_equal(single, small(max_iter=1).update_many(rows))  # one step: no difference
