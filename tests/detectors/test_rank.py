"""The number of groups by held-out entries, and what a score is made of."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from penstock import GNMF, NMF, NSNMF, SNMF, Detector, LaplacianNSNMF, choose_rank


def low_rank(n: int, p: int, K: int, noise: float = 0.02, seed: int = 0) -> np.ndarray:
    rng = np.random.default_rng(seed)
    return rng.gamma(0.7, size=(n, K)) @ rng.gamma(0.7, size=(K, p)) + noise * rng.random((n, p))


@pytest.mark.parametrize(("detector", "K"), [(NMF(), 1), (NMF(), 3), (NSNMF(similarity="normalized", alpha=20.0), 3)])
def test_finds_the_rank_that_made_the_table(detector: NMF, K: int) -> None:
    choice = choose_rank(detector, low_rank(150, 12, K), ranks=[6, 1, 2, 3, 4], n_repeats=3)
    assert choice.rank == K
    assert choice.table.index.tolist() == [1, 2, 3, 4, 6]
    assert choice.table["explained"].between(0, 1.1).all()


def test_the_error_is_that_of_the_hidden_entries() -> None:
    """With one column of noise alone no K is better than the mean; the error in the fit would fall with K."""
    X = np.random.default_rng(0).random((120, 6))
    choice = choose_rank(NMF(), X, ranks=[1, 3, 5], n_repeats=3)
    assert choice.rank == 1
    assert choice.table["error"].is_monotonic_increasing
    assert choice.table["explained"].is_monotonic_increasing


def test_is_repeatable_keeps_the_detector_and_takes_missing_entries() -> None:
    X = low_rank(60, 6, 2)
    X[::7, 3] = np.nan
    detector = NMF(n_components=4)
    first, again = (choose_rank(detector, pd.DataFrame(X), ranks=[1, 2], n_repeats=2) for _ in range(2))
    pd.testing.assert_frame_equal(first.table, again.table)
    assert detector.n_components == 4
    assert not hasattr(detector, "scores_")


@pytest.mark.parametrize("cls", [LaplacianNSNMF, GNMF, SNMF])
def test_takes_the_whole_family(cls: type) -> None:
    choice = choose_rank(cls(), low_rank(40, 5, 2), ranks=[1, 2], n_repeats=1)
    assert np.isfinite(choice.table["error"]).all()


@pytest.mark.parametrize(
    ("given", "error"),
    [
        ({"detector": Detector()}, TypeError),
        ({"ranks": []}, ValueError),
        ({"ranks": [0]}, ValueError),
        ({"held_out": 1.0}, ValueError),
        ({"n_repeats": 0}, ValueError),
        ({"X": np.ones((1, 3))}, ValueError),
    ],
)
def test_refuses(given: dict[str, object], error: type[Exception]) -> None:
    call = {"detector": NMF(), "X": low_rank(20, 4, 2)} | given
    with pytest.raises(error):
        choose_rank(call.pop("detector"), call.pop("X"), **call)


@pytest.mark.parametrize("score_kind", ["residual", "structural"])
def test_shares_are_those_of_the_squared_score(score_kind: str) -> None:
    X = pd.DataFrame(low_rank(60, 5, 2), columns=list("abcde"), index=[f"r{i}" for i in range(60)])
    X.loc["r7", "c"] += 5
    detector = NSNMF(2, similarity="normalized", score_kind=score_kind, random_state=0).fit(X)
    new = X.iloc[[7, 3]].assign(b=[np.nan, 1.0])
    for rows in (X, new):
        found = detector.explain(rows, n=5)
        span = detector.scaling_.maximum - detector.scaling_.minimum
        places = [list("abcde").index(name) for name in found["variable"]]
        squares = (found["difference"] / span[places]) ** 2
        total = squares.groupby(level=0, sort=False).sum()
        seen = detector.observed_fraction(rows)
        np.testing.assert_allclose(np.sqrt(total.reindex(rows.index) / seen), detector.anomaly_score(rows))
        np.testing.assert_allclose(found["share"].groupby(level=0).sum(), 1.0)
        np.testing.assert_allclose(found["value"] - found["rebuilt"], found["difference"])
    assert detector.explain(X, n=1).loc["r7", "variable"] == "c"
    assert len(detector.explain(X, n=2)) == 120


def test_a_row_that_is_rebuilt_wholly_has_no_shares() -> None:
    X = np.ones((5, 3))
    assert NMF(1, random_state=0).fit(X).explain(X).empty
