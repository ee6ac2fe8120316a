"""The River face: River's own checks, and the same scores as the arrays' face."""

from __future__ import annotations

import pickle
from functools import cache

import numpy as np
import pytest
from river import checks, compose, datasets, preprocessing

import penstock
from penstock.adapters.river import RiverNSNMF
from penstock.thresholds import Fixed, RollingQuantile


@cache
def credit_cards():
    rng = np.random.default_rng(0)
    rows = rng.normal(size=30) + rng.normal(size=(10_000, 30)) * np.where(np.arange(10_000) % 50 == 49, 5, 1)[:, None]
    return [({f"V{j}": value for j, value in enumerate(row)}, i % 50 == 49) for i, row in enumerate(rows.tolist())]


class StandIn:
    """In place of River's credit-card data, which it would download: 30 features, every fiftieth sample odd."""

    def take(self, n: int):
        return [(dict(features), odd) for features, odd in credit_cards()[:n]]


def rivers_checks():
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(datasets, "CreditCard", StandIn)
        return list(checks.yield_checks(RiverNSNMF(seed=1)))


@pytest.mark.parametrize("check", rivers_checks(), ids=lambda check: check.__name__)
def test_rivers_checks(check):
    assert check.__name__ not in RiverNSNMF()._unit_test_skips()
    check(RiverNSNMF(seed=1))


def as_dicts(X):
    return [{f"x{j}": value for j, value in enumerate(row) if not np.isnan(value)} for row in X.tolist()]


@pytest.mark.parametrize("parameters", [{}, {"learn_flagged": False, "threshold": Fixed(0.4)}, {"warmup": 30}], ids=str)
def test_the_same_bits_as_the_arrays_face(parameters):
    X = np.random.default_rng(0).random((200, 4))
    X[np.random.default_rng(1).random(X.shape) < 0.05] = np.nan
    model = RiverNSNMF(seed=0, **parameters)
    scores = []
    for x in as_dicts(X):
        scores.append(model.score_one(x))
        model.learn_one(x)
    detector = penstock.OnlineNSNMF(random_state=0, **parameters)
    expected = detector.update_many(X)
    assert scores[: len(detector.warmup_scores_)] == [0.0] * len(detector.warmup_scores_)
    np.testing.assert_array_equal(scores[len(detector.warmup_scores_) :], expected[len(detector.warmup_scores_) :])
    assert model._stream.n_seen == detector.n_seen_
    np.testing.assert_array_equal(model._stream.missing, detector.missing_)
    assert model.feature_names == ["x0", "x1", "x2", "x3"]


def test_learning_without_scoring_and_scoring_something_else_first():
    X = as_dicts(np.random.default_rng(0).random((100, 3)))
    plain, nosy = RiverNSNMF(seed=0), RiverNSNMF(seed=0)
    for x, other in zip(X, reversed(X), strict=True):
        plain.learn_one(x)
        nosy.score_one(x)
        nosy.score_one(other)
        nosy.learn_one(x)
    assert plain.score_one(X[0]) == nosy.score_one(X[0])


def test_wrong_samples_are_named():
    model = RiverNSNMF(seed=0)
    rows = as_dicts(np.random.default_rng(0).random((40, 2)))
    with pytest.raises(ValueError, match="Feature 'city' is 'Oslo', not a number"):
        model.learn_one({"city": "Oslo"})
    model.learn_one({})  # nothing to learn
    for x in rows:
        model.learn_one(x)
    with pytest.raises(ValueError, match=r"New features \['pump'\] after the warm-up, which knew 2"):
        model.score_one({"x0": 0.1, "pump": 0.2})
    with pytest.raises(ValueError, match="Feature 'x1' is inf"):
        model.score_one({"x0": 0.1, "x1": float("inf")})
    with pytest.raises(ValueError, match="Feature 'x1' is 'high', not a number"):
        model.score_one({"x0": 0.1, "x1": "high"})
    assert model.score_one({}) == 0.0
    assert model.score_one({"x0": None, "x1": float("nan")}) == 0.0
    assert model.score_one({"x0": 1, "x1": True}) > 0
    before = model._stream.n_seen
    model.learn_one({})
    assert model._stream.n_seen == before + 1


def test_one_feature():
    model = RiverNSNMF(n_components=1, buffer_size=5, seed=0)
    for value in np.random.default_rng(0).random(20):
        model.learn_one({"level": value})
    assert model.score_one({"level": 9.0}) > model.score_one({"level": 0.5})


def test_pickle_and_pipeline():
    X = as_dicts(np.random.default_rng(0).normal(size=(120, 3)))
    model = compose.Pipeline(preprocessing.MinMaxScaler(), RiverNSNMF(seed=0, threshold=RollingQuantile(0.1)))
    for x in X[:60]:
        model.score_one(x)
        model.learn_one(x)
    again = pickle.loads(pickle.dumps(model))
    for x in X[60:]:
        assert again.score_one(x) == model.score_one(x)
        again.learn_one(x)
        model.learn_one(x)


def test_a_warm_up_with_samples_that_cannot_be_learnt():
    model = RiverNSNMF(n_components=1, buffer_size=5, seed=0, scale=None)
    model.learn_one({"x0": None, "x1": float("nan")})  # nothing to learn, and not counted
    for value in np.random.default_rng(0).random(5):
        with pytest.raises(ValueError, match="Feature 'x0' is -5; with scale=None"):
            model.learn_one({"x0": -5.0, "x1": 0.5})
        model.learn_one({"x0": value, "x1": value / 2})
    assert model.score_one({"x0": 0.5, "x1": 0.9}) > 0
    for value in (-5.0, 1e200):
        with pytest.raises(ValueError, match="with scale=None values must lie between"):
            model.learn_one({"x0": value, "x1": 0.5})
    assert np.isfinite(model.score_one({"x0": 0.5, "x1": 0.9}))


def test_bad_parameters_are_refused_with_the_first_sample():
    for parameters in ({"n_components": 50}, {"buffer_size": 0}, {"seed": -3}):
        with pytest.raises(ValueError):  # noqa: PT011
            RiverNSNMF(**parameters).learn_one({"x": 1.0})


def test_a_warm_up_that_fails_to_end_can_be_tried_again(monkeypatch):
    model, twin = RiverNSNMF(buffer_size=5, seed=0), RiverNSNMF(buffer_size=5, seed=0)
    rows = as_dicts(np.random.default_rng(0).random((12, 6)))
    for x in rows[:4]:
        model.learn_one(x)

    def fail(*args, **kwargs):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr("penstock.detectors._stream.fit_factors", fail)
        with pytest.raises(KeyboardInterrupt):
            model.learn_one(rows[4])
    for x in rows[4:]:
        model.learn_one(x)
    for x in rows:
        twin.learn_one(x)
    assert model.score_one(rows[0]) == twin.score_one(rows[0]) > 0
