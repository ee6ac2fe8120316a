"""How many rows would score as high by chance, compared with a slow twin; and scores without the highest rows."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from naive import chance as naive

from penstock import NSNMF, Detector
from penstock.certainty import expected_by_chance
from penstock.certainty.rows import FEWEST_SCORES
from penstock.detectors import KNNDistance, LoMST, scores_without_the_highest


@st.composite
def scores_of_tables(draw: st.DrawFn) -> np.ndarray:
    """Normal, uniform, heavy and clumped scores, with repeated ones and a few far above the rest."""
    n = draw(st.integers(FEWEST_SCORES, 150))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    made = draw(st.sampled_from(["exponential", "normal", "uniform", "cauchy", "clumped"]))
    if made == "cauchy":
        scores = rng.standard_cauchy(n)
    elif made == "clumped":  # half the scores hardly differ
        scores = np.where(rng.random(n) < 0.5, 1.0 + 1e-9 * rng.random(n), rng.exponential(size=n))
    else:
        scores = getattr(rng, made)(size=n)
    scores = np.append(scores, draw(st.lists(st.floats(-50, 50), max_size=5)))
    return rng.permutation(np.append(scores, rng.choice(scores, draw(st.integers(0, 30)))))


@given(scores_of_tables())
@settings(max_examples=100, deadline=None)
def test_equals_the_twin(scores: np.ndarray) -> None:
    found = expected_by_chance(scores)
    expected, called, q, verdict = naive.assess(scores.tolist())
    np.testing.assert_allclose(found.expected, expected, rtol=1e-9)
    assert found.called.tolist() == called
    assert found.q == pytest.approx(q, rel=1e-9)
    assert found.verdict == verdict


@given(scores_of_tables())
@settings(max_examples=100, deadline=None)
def test_a_higher_score_is_expected_no_more_often(scores: np.ndarray) -> None:
    expected = expected_by_chance(scores).expected[np.argsort(scores)]
    assert (expected[1:] <= expected[:-1] * (1 + 1e-12)).all()  # powers are rounded
    assert (expected >= 0).all()


@given(scores_of_tables(), st.randoms(use_true_random=False))
@settings(max_examples=50, deadline=None)
def test_the_order_of_rows_and_copies_of_them_do_not_matter(scores: np.ndarray, random: Any) -> None:
    found = expected_by_chance(scores)
    order = list(range(len(scores))) + random.choices(range(len(scores)), k=20)
    random.shuffle(order)
    again = expected_by_chance(scores[order])
    assert again.expected.tolist() == found.expected[order].tolist()
    assert again.called.tolist() == found.called[order].tolist()
    assert (again.q, again.verdict) == (found.q, found.verdict)


@given(arrays(np.float64, 60, elements=st.integers(-1000, 1000).map(float), unique=True), st.integers(-20, 20))
@settings(max_examples=50, deadline=None)
def test_unit_and_zero_of_scores_do_not_matter(scores: np.ndarray, power: int) -> None:
    found, scaled = expected_by_chance(scores), expected_by_chance(scores * 2.0**power)
    assert scaled.expected.tolist() == found.expected.tolist()
    shifted = expected_by_chance(scores + 4096.0)
    np.testing.assert_allclose(shifted.expected, found.expected, rtol=1e-9)


@pytest.mark.parametrize("scale", [1e-300, 1e300, 1.7e308])
def test_tiny_and_huge_scores(scale: float) -> None:
    scores = np.linspace(-1.0, 0.5, 100)
    scores[7] = 1.0
    with np.errstate(all="raise", under="ignore"):
        found = expected_by_chance(scores * scale)
    assert np.isfinite(found.expected[7])
    np.testing.assert_allclose(found.expected, expected_by_chance(scores).expected, rtol=1e-6)


@pytest.mark.parametrize(
    ("scores", "words"),
    [
        ([], "0 different scores"),
        ([3.0], "1 different score, 40"),
        ([0.0] * 500, "1 different score, 40"),
        (list(range(39)) * 10, "39 different scores"),
    ],
)
def test_too_few_scores_are_said_to_be_too_few(scores: list[float], words: str) -> None:
    found = expected_by_chance(scores)
    assert found.verdict == "too few"
    assert math.isnan(found.q)
    assert not found.called.any()
    assert np.isnan(found.expected).all()
    assert words in found.in_words()
    assert found.in_words().startswith("Too few rows to say")
    assert expected_by_chance(np.arange(40.0)).verdict == "nothing"  # forty are enough


@pytest.mark.parametrize(
    ("scores", "message"),
    [
        ([1.0, math.nan], "number 1 is nan"),
        ([-math.inf, 1.0], "number 0 is -inf"),
        ([[1.0], [2.0]], r"one-dimensional; got an array of shape \(2, 1\)"),
        (["high"], "could not convert"),
    ],
)
def test_wrong_scores_are_refused(scores: list[object], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        expected_by_chance(scores)  # type: ignore[arg-type]


def usual_scores(n: int) -> np.ndarray:
    """Scores that a normal table has on average: what they exceed the median by is exponential to the power 1/1.3."""
    exponential = np.cumsum(1.0 / np.arange(n, 0, -1)) - math.log(2)
    return np.sign(exponential) * np.abs(exponential) ** (1 / 1.3)


@pytest.mark.parametrize("n", [40, 41, 50, 51, 100, 101, 2000])
def test_equals_the_twin_where_ranks_are_whole_numbers(n: int) -> None:
    scores = usual_scores(n)
    np.testing.assert_allclose(expected_by_chance(scores).expected, naive.assess(scores.tolist())[0], rtol=1e-9)


def test_expected_numbers_are_those_of_the_distribution() -> None:
    for expected in (1.0, 10.0, 100.0):
        score = math.log(2500 / expected) ** (1 / 1.3)
        found = expected_by_chance(np.append(usual_scores(5000), score))
        assert found.expected[-1] == pytest.approx(expected, rel=0.05)


def test_nine_of_ten_tables_of_the_distribution_have_nothing_that_stands_out() -> None:
    rng = np.random.default_rng(0)
    verdicts = []
    for n in (60, 300, 2000):
        for _ in range(400):
            exponential = rng.exponential(size=n) - math.log(2)
            scores = np.sign(exponential) * np.abs(exponential) ** (1 / 1.3)
            verdicts.append(expected_by_chance(scores).verdict)
    assert 0.88 <= verdicts.count("nothing") / len(verdicts) <= 0.92
    assert 0.001 <= verdicts.count("clearly") / len(verdicts) <= 0.02


@pytest.mark.parametrize(
    ("added", "words"),
    [
        ([], "Nothing stands out: the highest score is one that chance gives to about 0.6 rows of a normal table"),
        ([5.6], "1 row stands out; fewer than 0.05 would be expected by chance."),
        ([7.0, 7.0], "2 rows (1 different score) clearly stand out; fewer than 0.05 would be expected by chance."),
        ([25.0], "1 row clearly stands out; fewer than 0.05 would be expected by chance."),
        (
            [25.0, 5.3],
            "1 row clearly stands out; fewer than 0.05 would be expected by chance. 2 rows in all stand out",
        ),
    ],
)
def test_sentences(added: list[float], words: str) -> None:
    found = expected_by_chance(np.append(usual_scores(500), added))
    assert found.in_words().startswith(words)
    assert "group apart" not in found.in_words()


def test_many_rows_are_called_a_group() -> None:
    found = expected_by_chance(np.append(usual_scores(500), np.linspace(20, 21, 15)))
    assert found.called[500:].all()
    assert "At 3% of all rows they may be a group apart" in found.in_words()
    assert "healthy" not in found.in_words()


normal_rows = np.random.default_rng(3).normal(size=(120, 3))
rows_with_outliers = np.vstack([normal_rows, [[9.0, 9.0, 9.0], [9.0, -9.0, 9.0]]])


@pytest.mark.parametrize(
    "make", [lambda: Detector(random_state=0), lambda: KNNDistance(n_neighbors=3), LoMST], ids=["views", "knn", "lomst"]
)
@pytest.mark.parametrize("rows", [normal_rows, rows_with_outliers], ids=["normal", "outliers"])
def test_rows_are_scored_without_those_that_stand_out(make: Callable[[], Any], rows: np.ndarray) -> None:
    X = np.vstack([rows, rows[:5], rows[-1:]])  # copies share scores
    detector = make().fit(X)
    before = detector.scores_.copy()
    scores = scores_without_the_highest(detector, X, detector.scores_)
    expected = naive.without_the_highest(make, X.tolist(), before.tolist())
    np.testing.assert_allclose(scores, expected, rtol=1e-9, atol=1e-12)
    assert (scores == before).all() == (rows is normal_rows)
    assert (detector.scores_ == before).all()
    assert (scores_without_the_highest(detector, pd.DataFrame(X), before) == scores).all()


def test_outliers_that_hide_each_other_are_called() -> None:
    rng = np.random.default_rng(0)
    X = np.vstack([rng.normal(size=(300, 5)), 3.0 + 0.2 * rng.normal(size=(12, 5))])
    detector = Detector(random_state=0).fit(X)
    assert expected_by_chance(scores_without_the_highest(detector, X, detector.scores_)).called[300:].all()
    assert not expected_by_chance(detector.scores_).called[300:].any()


def test_equal_and_few_scores_are_returned_as_they_are() -> None:
    first = np.full(39, 0.5)
    assert (scores_without_the_highest(Detector(), normal_rows[:39], first) == first).all()
    equal = np.tile([[1.0, 2.0], [1.5, 2.5]], (30, 1))
    detector = Detector(random_state=0).fit(equal)
    assert (scores_without_the_highest(detector, equal, detector.scores_) == detector.scores_).all()


def test_factors_can_be_refitted() -> None:
    X = np.abs(rows_with_outliers)
    detector = NSNMF(2, similarity="normalized", random_state=0).fit(X)
    scores = scores_without_the_highest(detector, X, detector.scores_)
    assert set(np.argsort(-scores)[:2].tolist()) == {120, 121}


@pytest.mark.parametrize("scores", [np.zeros(5), np.zeros((122, 1)), np.full(122, np.nan)])
def test_scores_that_are_not_those_of_the_rows_are_refused(scores: np.ndarray) -> None:
    with pytest.raises(ValueError, match="a finite number for each of the 122 rows"):
        scores_without_the_highest(Detector(), rows_with_outliers, scores)


def test_a_column_that_only_the_highest_rows_have_is_an_error_with_a_reason() -> None:
    X = np.column_stack([rows_with_outliers, np.full(122, np.nan)])
    X[120:, 3] = [1.0, 2.0]
    detector = Detector(random_state=0).fit(X)
    with pytest.raises(ValueError, match="column"):
        scores_without_the_highest(detector, X, detector.scores_)
