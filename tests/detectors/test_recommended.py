"""The detector to begin with: what its scores do not depend on, what they say, how often they cry wolf, and files.

That they are what they are defined to be is in test_views.py.
"""

from __future__ import annotations

import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
import pandas as pd
import polars as pl
import pytest
from estimators_cases import agreeing_rows, holey_rows
from hypothesis import given
from hypothesis import strategies as st
from saving_cases import alike, assert_same_detector, saved_and_loaded
from saving_refusals_cases import refuse_or_work
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.metrics import average_precision_score
from strategies import examples
from views_cases import few_draws, make_table, new_rows

from penstock import Detector
from penstock._threads import thread_limit
from penstock.certainty import RowRate
from penstock.detectors import views as composite
from penstock.detectors.views import VIEWS, sampling_of


def plain_rows(n: int = 150, p: int = 4, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).normal(size=(n, p))


def mixed_rows(n: int = 150, seed: int = 0) -> np.ndarray:
    """Columns of four kinds."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=n)
    return np.column_stack([x, x + 0.1 * rng.normal(size=n), rng.lognormal(size=n), rng.random(n)])


# What scores do not depend on.


@pytest.mark.parametrize("holes", [False, True])
@pytest.mark.parametrize("seed", range(3))
def test_units_do_not_matter(seed: int, holes: bool) -> None:
    rng = np.random.default_rng(seed)
    X, new = mixed_rows(seed=seed), mixed_rows(40, seed=seed + 9) * 1.7
    if holes:
        X[:, 1:][rng.random((150, 3)) < 0.1] = np.nan
    factor = 10.0 ** rng.uniform(-12, 12, 4) * rng.choice([-1, 1], 4)
    offset = factor * rng.normal(scale=5.0, size=4)
    fitted, other = Detector().fit(X), Detector().fit(X * factor + offset)
    np.testing.assert_allclose(other.scores_, fitted.scores_, rtol=1e-8, atol=1e-8)
    np.testing.assert_allclose(other.anomaly_score(new * factor + offset), fitted.anomaly_score(new), rtol=1e-8)


def test_units_do_not_matter_where_all_rows_are_equally_far_apart() -> None:
    """A clock: what rounding leaves of equal steps was taken for their spread, and a gap was a billion of those."""
    clock = np.linspace(0.0, 1.0, 50)[:, None]
    late = np.array([[1.05], [1.5]])
    fitted, other = Detector().fit(clock), Detector().fit(3600 * clock + 1.7e9)
    np.testing.assert_allclose(other.parts_[:, 2], fitted.parts_[:, 2], atol=1e-6)
    np.testing.assert_allclose(other.anomaly_score(3600 * late + 1.7e9), fitted.anomaly_score(late), rtol=1e-5)


def test_the_unit_matters_to_the_local_view_alone_without_scaling() -> None:
    X = mixed_rows()
    one, other = (Detector(scale=None).fit(X * unit) for unit in (1.0, [1e3, 1.0, 1e-3, 1.0]))
    np.testing.assert_allclose(one.parts_[:, [0, 1, 3]], other.parts_[:, [0, 1, 3]], rtol=1e-8, atol=1e-8)
    assert np.abs(one.parts_[:, 2] - other.parts_[:, 2]).max() > 0.1


@pytest.mark.parametrize("holes", [False, True])
def test_the_order_of_rows_does_not_matter_but_for_the_draws(holes: bool) -> None:
    X = holey_rows() if holes else mixed_rows(80)
    order = np.random.default_rng(5).permutation(80)
    fitted = Detector().fit(X)
    drawn = fitted.model_.views.sampled
    place = np.argsort(order)  # where each row is now
    moved = [place[drawn.coarse], place[drawn.fine], drawn.times]
    with mock.patch.object(composite, "draw_nodes", lambda rows, copy_of, rng: sampling_of(rows, *moved)):
        other = Detector().fit(X[order])
    np.testing.assert_allclose(other.parts_, fitted.parts_[order], rtol=1e-9, atol=1e-9)
    new = np.vstack([X[:20] * 1.1, 3 * X[:5]])
    np.testing.assert_allclose(other.anomaly_score(new), fitted.anomaly_score(new), rtol=1e-9, atol=1e-9)
    redrawn = Detector().fit(X[order])
    np.testing.assert_allclose(redrawn.parts_[:, 2:], fitted.parts_[order, 2:], rtol=1e-9, atol=1e-9)
    assert np.corrcoef(redrawn.scores_, fitted.scores_[order])[0, 1] > 0.98


@given(
    st.integers(0, 10**6), st.sampled_from([2, 3, 5, 30]), st.integers(1, 4), st.booleans(), st.booleans(),
    st.sampled_from(["smooth", "lattice", "wide"]), st.sampled_from(["minmax", None]), st.sampled_from([1.0, -1e300]),
)  # fmt: skip
@examples(60)
def test_a_row_has_one_score(
    seed: int, n: int, p: int, copies: bool, holes: bool, kind: str, scale: str | None, unit: float
) -> None:
    """Fitted or new, alone or with others, explained or not; and it is finite."""
    X = make_table(seed, n, p, kind, copies, False, holes)
    X = X * (unit if kind != "wide" else 1.0)
    with few_draws():
        fitted = Detector(scale=scale, random_state=seed).fit(X)
    assert np.isfinite(fitted.scores_).all()
    np.testing.assert_array_equal(fitted.anomaly_score(X), fitted.scores_)
    new = np.vstack([new_rows(X, seed, holes), X])
    scores = fitted.anomaly_score(new)
    assert np.isfinite(scores).all()
    for i in range(0, len(new), 3):
        assert fitted.anomaly_score(new[i : i + 1])[0] == scores[i]
        np.testing.assert_array_equal(fitted.anomaly_score(new[i:]), scores[i:])
    explained = fitted.explain(new)
    np.testing.assert_array_equal(explained.parts.to_numpy().sum(axis=1), scores)
    np.testing.assert_allclose(explained.variables.sum(axis=1), scores, rtol=1e-9, atol=1e-9)
    for shares in explained.shares.values():
        np.testing.assert_allclose(shares.sum(axis=1), 1.0, rtol=1e-12)
        assert (shares.to_numpy() >= 0).all()
        assert (shares.to_numpy()[np.isnan(new)] == 0).all()
    rates = fitted.false_alarm_rate(new)
    assert (rates > 0).all()
    assert (rates <= 1).all()


def test_equal_rows_have_equal_scores_and_count_as_often_as_they_are_there() -> None:
    X = np.repeat(plain_rows(20), 3, axis=0)
    scores = Detector().fit(X).scores_.reshape(20, 3)
    assert (scores == scores[:, :1]).all()
    single, several = (Detector().fit(np.r_[plain_rows(20), np.repeat(plain_rows(1), k, axis=0)]) for k in (1, 30))
    assert several.parts_[0, 3] < single.parts_[0, 3]  # its readings are no longer rare


@pytest.mark.parametrize("scale", ["minmax", None])
@pytest.mark.parametrize("holes", [False, True])
def test_a_row_that_comes_near_a_fitted_one_comes_near_its_score(scale: str | None, holes: bool) -> None:
    X = holey_rows(60) if holes else mixed_rows(60)
    fitted = Detector(scale=scale).fit(X)
    direction = np.random.default_rng(1).normal(size=X.shape)
    gaps = [np.abs(fitted.anomaly_score(X + step * direction) - fitted.scores_).max() for step in (1e-5, 1e-7, 1e-9)]
    assert gaps[2] < 1e-5
    assert gaps[2] < gaps[1] < gaps[0]


def test_a_row_that_comes_near_a_table_of_equal_ones_comes_near_its_score() -> None:
    fitted = Detector().fit(np.full((30, 3), 4.2))
    scores = fitted.anomaly_score([[4.2, 4.2, 4.2 + step] for step in (0.0, 1e-12, 1e-9, 1e-3, 1.0, 1e9)])
    assert scores[:2].tolist() == [0.0, 0.0]
    assert (np.diff(scores) >= 0).all()
    assert scores[-2] > 10


@given(st.integers(0, 10**6))
@examples(10)
def test_farther_out_is_odder(seed: int) -> None:
    fitted = Detector().fit(mixed_rows(100))
    direction = np.random.default_rng(seed).normal(size=4)
    scores = fitted.anomaly_score(
        20 * direction / np.abs(direction).max() * np.array([[1], [10], [1e3], [1e9], [1e300]])
    )
    assert (np.diff(scores) > 0).all()
    assert scores[0] > fitted.scores_.max()


def test_what_it_finds() -> None:
    """A far row, a tight group of far rows, and a row that is odd only as a whole."""
    X = mixed_rows(500)
    far, odd = np.array([8.0, -8.0, 40.0, 3.0]), np.array([1.5, -1.5, 1.0, 0.5])
    group = np.array([-6.0, -6.0, 20.0, 0.5]) + 1e-3 * plain_rows(5)
    table = np.vstack([X, far, odd, group])
    fitted = Detector().fit(table)
    assert set(fitted.top(6).index) == {500, *range(502, 507)}
    assert (fitted.scores_ >= fitted.scores_[501]).sum() < 20
    explained = fitted.explain(table)
    assert (explained.parts.loc[502:506, "local"] == 0).all()  # they cover for each other there
    assert explained.parts.loc[501, "marginal"] == 0


# Explanations.


def test_explained_frames_keep_index_and_names() -> None:
    times = pd.date_range("2024-03-01", periods=150, freq="h", tz="Europe/Oslo", name="time")
    frame = pd.DataFrame(mixed_rows(), index=times, columns=["a", "b c", "é", ""])
    fitted = Detector().fit(frame)
    explained = fitted.explain(frame.iloc[3:9])
    for table in (explained.parts, explained.variables, *explained.shares.values()):
        pd.testing.assert_index_equal(table.index, times[3:9])
    for table in (explained.variables, *explained.shares.values()):
        assert table.columns.tolist() == ["a", "b c", "é", ""]
    assert tuple(explained.parts.columns) == tuple(explained.shares) == VIEWS
    np.testing.assert_array_equal(explained.parts.sum(axis=1), fitted.scores_[3:9])
    for rows in (mixed_rows()[3:9], mixed_rows()[3:9].tolist(), pl.DataFrame(mixed_rows()[3:9])):
        bare = Detector().fit(mixed_rows()).explain(rows if not isinstance(rows, pl.DataFrame) else rows.to_numpy())
        assert bare.parts.index.equals(pd.RangeIndex(6))
        assert bare.parts.index.name == "row"
        assert bare.variables.columns.tolist() == [0, 1, 2, 3]
        np.testing.assert_array_equal(bare.variables, explained.variables)
    named = Detector().fit(pl.DataFrame(mixed_rows(), schema=list("abcd")))
    assert named.explain(pl.DataFrame(mixed_rows()[:2], schema=list("abcd"))).variables.columns.tolist() == list("abcd")


def test_the_parts_of_fitted_rows() -> None:
    fitted = Detector().fit(mixed_rows())
    explained = fitted.explain(mixed_rows()).parts.to_numpy()
    counts = explained != 0
    assert (counts.sum(axis=1) == 2).all()
    np.testing.assert_array_equal(explained[counts], fitted.parts_[counts])
    assert np.sort(fitted.parts_, axis=1)[:, 2:].sum(axis=1) == pytest.approx(fitted.scores_)


@pytest.mark.parametrize("variable", range(4))
@pytest.mark.parametrize("step", [-30.0, 30.0, 1e12])
def test_the_variable_that_is_odd_has_the_largest_share(variable: int, step: float) -> None:
    fitted = Detector().fit(mixed_rows())
    rows = mixed_rows()[:20]
    rows[:, variable] += step
    explained = fitted.explain(rows)
    assert (explained.variables.idxmax(axis=1) == variable).all()
    assert (explained.variables[variable] > 0.5 * explained.variables.sum(axis=1)).all()
    for view in VIEWS:
        assert (explained.shares[view].idxmax(axis=1) == variable).all(), view


def test_a_missing_reading_explains_nothing() -> None:
    fitted = Detector().fit(holey_rows())
    rows = np.vstack([holey_rows()[:10], holey_rows(10, seed=3) * 9])
    explained = fitted.explain(rows)
    for table in (explained.variables, *explained.shares.values()):
        assert (table.to_numpy()[np.isnan(rows)] == 0).all()
    np.testing.assert_array_equal(explained.parts.sum(axis=1), fitted.anomaly_score(rows))


def test_explaining_refuses_what_scoring_refuses() -> None:
    with pytest.raises(NotFittedError):
        Detector().explain(mixed_rows())
    fitted = Detector().fit(mixed_rows())
    for bad, message in (([[1.0, 2.0]], "2 features"), ([[np.inf] * 4], "infinity"), ([[np.nan] * 4], "only in row 0")):
        with pytest.raises(ValueError, match=message):
            fitted.explain(bad)


# How often a normal row is flagged.

Draw = Callable[[np.random.Generator, int], np.ndarray]
NORMAL: dict[str, Draw] = {
    "Gaussian": lambda rng, n: rng.normal(size=(n, 5)),
    "two groups": lambda rng, n: rng.normal(size=(n, 3)) + 8 * rng.integers(0, 2, (n, 1)),
    "skewed": lambda rng, n: rng.lognormal(size=(n, 4)),
    "heavy": lambda rng, n: rng.standard_t(3, size=(n, 2)),
    "a curve": lambda rng, n: np.c_[(t := rng.random(n)), t**2, np.sin(9 * t)] + 0.02 * rng.normal(size=(n, 3)),
}


@pytest.mark.parametrize(
    "kind", ["skewed", *(pytest.param(kind, marks=pytest.mark.slow) for kind in NORMAL if kind != "skewed")]
)
def test_a_false_alarm_rate_means_what_it_says(kind: str) -> None:
    hundredth, thousandth = [], []
    for seed in range(2):
        rng = np.random.default_rng([seed, len(kind)])
        fitted = Detector(random_state=seed).fit(NORMAL[kind](rng, 5000))
        new = NORMAL[kind](rng, 20_000)
        rates = fitted.false_alarm_rate(new)
        hundredth.append((rates <= 0.01).mean())
        thousandth.append((rates <= 0.001).mean())
        verdicts = fitted.set_false_alarm_rate(0.01).predict(new[:2000])
        np.testing.assert_array_equal(verdicts == -1, rates[:2000] <= 0.01)
    assert 0.006 <= np.mean(hundredth) <= 0.016
    assert 0.0004 <= np.mean(thousandth) <= 0.002


@pytest.mark.parametrize("p", [5, 500])
def test_new_rows_score_as_training_rows_do(p: int) -> None:
    """With as many columns as rows, training rows were once the less odd by a quarter of a standard deviation."""
    gaps, flagged = [], []
    for seed in range(3):
        rng = np.random.default_rng(seed)
        fitted, new = Detector().fit(rng.normal(size=(400, p))), rng.normal(size=(1000, p))
        parts = fitted.model_.views.parts(fitted.scaling_.apply(new))
        gap = (parts.mean(axis=0) - fitted.parts_.mean(axis=0)) / fitted.parts_.std(axis=0)
        score = (fitted.anomaly_score(new).mean() - fitted.scores_.mean()) / fitted.scores_.std()
        gaps.append([*gap, score])
        flagged.append((fitted.false_alarm_rate(new) <= 0.01).mean())
    assert (np.abs(np.mean(gaps, axis=0)) < [0.12, 0.12, 0.12, 0.15, 0.06]).all(), np.mean(gaps, axis=0)
    assert 0.005 < np.mean(flagged) < 0.016


def test_copies_do_not_turn_the_order_around() -> None:
    """Six of seven normal rows repeat a few states: counted once, these would be as rare as anything else."""
    truth, found = np.arange(1000) >= 950, []
    for seed in range(4):
        rng = np.random.default_rng(seed)
        states = rng.normal(size=(12, 4))[rng.integers(0, 12, 810)]
        anomalies = 0.6 + 0.15 * rng.normal(size=(31, 4))
        X = np.vstack([states, 1.5 * rng.normal(size=(140, 4)), anomalies, anomalies[rng.integers(0, 31, 19)]])
        found.append(average_precision_score(truth, Detector().fit(X).scores_))
    assert min(found) > truth.mean()
    assert np.mean(found) > 1.5 * truth.mean()


@pytest.mark.slow
def test_rates_below_one_in_n_are_kept_too() -> None:
    """Where the highest scores seemed to end, every thirtieth of them would have been impossible."""
    shares = []
    for kind in ("Gaussian", "heavy", "skewed"):
        for seed in range(3):
            rng = np.random.default_rng([seed, len(kind)])
            rates = Detector().fit(NORMAL[kind](rng, 300)).false_alarm_rate(NORMAL[kind](rng, 6000))
            shares.append([(rates <= rate).mean() for rate in (1e-3, 1e-4, 1e-6)])
    assert (np.mean(shares, axis=0) <= [2e-3, 3e-4, 1e-5]).all(), np.mean(shares, axis=0)


@pytest.mark.parametrize("rate", [0.3, 0.01, 0.002, 1e-4, 1e-9])
@pytest.mark.parametrize("n", [12, 300])
def test_a_threshold_by_rate_flags_what_has_that_rate(rate: float, n: int) -> None:
    X = np.r_[plain_rows(n), plain_rows(n // 4)]
    fitted = Detector(contamination=0.1).fit(X)
    assert fitted.set_false_alarm_rate(rate) is fitted
    new = np.vstack([X, plain_rows(200, seed=1) * np.linspace(0.1, 9, 200)[:, None], 1e9 * plain_rows(3, seed=2)])
    np.testing.assert_array_equal(fitted.predict(new) == -1, fitted.false_alarm_rate(new) <= rate)
    np.testing.assert_array_equal(fitted.decision_function(new) < 0, fitted.predict(new) == -1)
    assert fitted.contamination == 0.1
    assert fitted.set_contamination(0.1).threshold_ == Detector(contamination=0.1).fit(X).threshold_


def test_rates_fall_with_the_score() -> None:
    fitted = Detector().fit(plain_rows())
    new = plain_rows(100, seed=1) * np.linspace(0.1, 30, 100)[:, None]
    scores, rates = fitted.anomaly_score(new), fitted.false_alarm_rate(new)
    assert (np.diff(rates[np.argsort(scores)]) <= 0).all()
    assert (rates[scores > fitted.scores_.max()] <= 1 / 151).all()
    assert rates.min() < 1e-4
    np.testing.assert_array_equal(
        fitted.false_alarm_rate(plain_rows()),
        [(1 + (fitted.scores_ >= score).sum()) / 151 for score in fitted.scores_],
    )  # fmt: skip


def test_rates_where_all_rows_are_equal() -> None:
    fitted = Detector().fit(np.full((19, 2), 3.0)).set_false_alarm_rate(0.05)
    assert fitted.false_alarm_rate([[3.0, 3.0], [3.0, 9.0]]).tolist() == [1.0, 0.05]
    assert fitted.predict([[3.0, 3.0], [3.0, 9.0]]).tolist() == [1, -1]


@pytest.mark.parametrize("bad", [0.0, 1.0, -0.1, 2, np.nan, "0.1", None, True])
def test_what_is_no_rate(bad: Any) -> None:
    fitted = Detector().fit(plain_rows())
    before = fitted.threshold_
    with pytest.raises(ValueError, match="rate must be a number between 0 and 1"):
        fitted.set_false_alarm_rate(bad)
    assert fitted.threshold_ == before


# Files, copies, threads, seeds.

TABLES = {
    "plain": mixed_rows(),
    "copies": np.r_[mixed_rows(30), mixed_rows(30)[:20]],
    "holes": holey_rows(),
    "holes and copies": agreeing_rows(),
    "two rows": mixed_rows(2),
    "equal rows": np.full((5, 2), 7.0),
    "one column": mixed_rows()[:, :1],
}


@pytest.mark.parametrize("scale", ["minmax", None])
@pytest.mark.parametrize("name", TABLES)
def test_all_comes_back(tmp_path: Path, name: str, scale: str | None) -> None:
    X = TABLES[name]
    fitted = Detector(scale=scale, random_state=3).fit(X).set_false_alarm_rate(0.02)
    loaded = saved_and_loaded(fitted, tmp_path)
    assert loaded.threshold_ == fitted.threshold_
    for other in (loaded, pickle.loads(pickle.dumps(fitted))):
        assert_same_detector(fitted, other)
        new = np.vstack([X * 1.01, X, 5 * X[:3]])
        for method in ("anomaly_score", "predict", "false_alarm_rate", "observed_fraction"):
            assert alike(getattr(fitted, method)(new), getattr(other, method)(new))
        mine, its = fitted.explain(new), other.explain(new)
        pd.testing.assert_frame_equal(mine.parts, its.parts, check_exact=True)
        pd.testing.assert_frame_equal(mine.variables, its.variables, check_exact=True)
        assert clone(fitted).fit(X).set_false_alarm_rate(1e-4).threshold_ == other.set_false_alarm_rate(1e-4).threshold_
    before = (tmp_path / "saved.safetensors").read_bytes()
    loaded.set_false_alarm_rate(0.02).save(tmp_path / "again")
    assert (tmp_path / "again").read_bytes() == before


# A draw more or less, a hole in a row, or another mean make another detector, but one that works.
HARMLESS = {("views", "rows"), ("views", "draws", "coarse"), ("views", "draws", "fine")} | {
    ("views", "standards", name, "mean") for name in ("coarse", "fine", "plain", "logged", "marginal")
}


@pytest.mark.parametrize("name", ["copies", "holes"])
def test_whatever_part_of_a_file_does_not_fit_is_refused(
    tmp_path: Path, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    X = TABLES[name][:24] if name == "holes" else TABLES[name][15:40]
    Detector().fit(X).save(tmp_path / "saved")

    def works(loaded: Detector) -> None:
        assert np.isfinite(loaded.anomaly_score(X * 1.1)).all()
        assert np.isfinite(loaded.explain(X * 1.1).variables.to_numpy()).all()

    refused, taken = refuse_or_work(tmp_path / "saved", monkeypatch, works, ("fitted", "model"))
    assert taken <= HARMLESS
    assert refused > 500


@pytest.mark.parametrize("name", ["plain", "holes"])
def test_threads_do_not_matter(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    X = np.random.default_rng(0).normal(size=(700, 5)) if name == "plain" else holey_rows(300)
    new = np.vstack([X, 1.3 * X])
    found = []
    for threads in ("1", "2"):
        monkeypatch.setenv("PENSTOCK_THREADS", threads)
        fitted = Detector().fit(X)
        found.append([fitted.scores_, fitted.anomaly_score(new), fitted.explain(new[:50]).variables.to_numpy()])
    with thread_limit(5):
        fitted = Detector().fit(X)
        found.append([fitted.scores_, fitted.anomaly_score(new), fitted.explain(new[:50]).variables.to_numpy()])
    for one, other, third in zip(*found, strict=True):
        np.testing.assert_array_equal(one, other)
        np.testing.assert_array_equal(one, third)


def test_seeds() -> None:
    X = mixed_rows()
    scores = Detector(random_state=0).fit(X).scores_
    assert alike(Detector().fit(X).scores_, scores)
    assert alike(Detector(random_state=np.int64(0)).fit(X).scores_, scores)
    assert alike(Detector(random_state=np.random.RandomState(0)).fit(X).scores_, scores)
    others = [Detector(random_state=seed).fit(X).scores_ for seed in (1, None, None, np.random.default_rng(0))]
    assert all(not alike(scores, other) for other in others)
    assert not alike(others[1], others[2])
    assert all(np.corrcoef(scores, other)[0, 1] > 0.95 for other in others)
    generator = np.random.default_rng(7)
    first, second = (Detector(random_state=generator).fit(X).scores_ for _ in range(2))
    assert not alike(first, second)  # it goes on
    assert alike(Detector(random_state=np.random.default_rng(7)).fit(X).scores_, first)
    for bad in ("seed", 1.5, -1):
        with pytest.raises(ValueError, match=r"cannot be used to seed|must be|Seed"):
            Detector(random_state=bad).fit(X)


def slow_rows(n: int, p: int, seed: int) -> np.ndarray:
    """AR(1) with a coefficient of 0.99, of unit variance."""
    X = plain_rows(n, p, seed)
    for i in range(1, n):
        X[i] = 0.99 * X[i - 1] + np.sqrt(1 - 0.99**2) * X[i]
    return X


def test_rates_of_rows_close_in_time_are_those_of_blocks_left_out(tmp_path: Path) -> None:
    X = slow_rows(2400, 6, 1)
    detector, later = Detector().fit(X[:800]), X[800:]
    own = RowRate.of(detector.scores_).rate_of(detector.anomaly_score(later))
    assert (own <= 0.01).mean() > 0.2
    rates = detector.false_alarm_rate(later)
    assert (rates <= 0.01).mean() < 0.02
    np.testing.assert_array_equal(saved_and_loaded(detector, tmp_path).false_alarm_rate(later), rates)
    assert (detector.set_false_alarm_rate(0.01).predict(later) == -1).mean() < 0.02
    mixed = Detector().fit(X[:800][np.random.default_rng(0).permutation(800)])  # no order: nothing changes
    np.testing.assert_array_equal(mixed.model_.out_of_sample_scores, mixed.scores_)


def test_a_column_read_in_one_block_only_does_not_stop_rates_of_rows_close_in_time() -> None:
    X = slow_rows(400, 4, 2)
    X[134:, 3] = np.nan
    detector = Detector().fit(X)
    assert len(detector.model_.out_of_sample_scores) == 266  # of the first block nothing else can say
    assert np.isfinite(detector.false_alarm_rate(X)).all()
