"""Peers of `SensorDetector` for benchmarks/plant.py and series.py: what a process engineer or a TSB-AD user would try.

Each learns from rows in order of time and scores these (`scores_`) or later rows (`anomaly_score`) by what came before
them. Columns that never moved in the training rows are left out: any move of them would be infinitely large. Readings
are brought to mean 0 and variance 1 by the training rows, and cut at 30.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Self

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view
from sklearn.cluster import MiniBatchKMeans
from sklearn.decomposition import PCA
from sklearn.preprocessing import StandardScaler

from penstock import Detector, KNNDistance, OnlineNSNMF
from penstock._types import FloatArray
from penstock.sensors import learn_leave_one_out

WINDOW = 20  # rows
_LARGEST = 30.0  # standard deviations
_KEPT = 0.9  # of the variance, by principal components
_MOST_COLUMNS, _MOST_WINDOWS = 60, 6000  # windows of more columns are made of as many principal components
_AT_A_TIME = 4000  # windows in memory
Score = Callable[[FloatArray], FloatArray]  # of rows


def mean_of_six(scores: FloatArray) -> FloatArray:
    """Return the mean of each score and the five before it; before the first there is 0."""
    return np.convolve(scores, np.full(6, 1 / 6))[: len(scores)]


class _Peer:
    """Learn a function of rows; training rows are scored by it as later ones are, unless they have scores already."""

    def fit(self, X: FloatArray) -> Self:
        moves = np.ptp(X, axis=0) > 0
        self.moves_ = moves if moves.any() else ~moves
        self.score_, scores = self._learn(X[:, self.moves_])
        self.scores_ = self.anomaly_score(X) if scores is None else scores
        return self

    def anomaly_score(self, X: FloatArray) -> FloatArray:
        return self.score_(X[:, self.moves_])

    def _learn(self, X: FloatArray) -> tuple[Score, FloatArray | None]:
        raise NotImplementedError


class DetectorMean(_Peer):
    """Mean of the last six scores of `Detector`."""

    def _learn(self, X: FloatArray) -> tuple[Score, FloatArray | None]:
        detector = Detector(random_state=0).fit(X)
        return lambda rows: mean_of_six(detector.anomaly_score(rows)), mean_of_six(detector.scores_)


class NeighbourMean(_Peer):
    """Mean of the last six distances to the fifth neighbour."""

    def _learn(self, X: FloatArray) -> tuple[Score, FloatArray | None]:
        units = _Units(X)
        detector = KNNDistance(n_neighbors=5, scale=None).fit(units(X))
        return lambda rows: mean_of_six(detector.anomaly_score(units(rows))), mean_of_six(detector.scores_)


class Ridge(_Peer):
    """The largest leave-one-out residual of a row, in its usual spread, mean of six."""

    def _learn(self, X: FloatArray) -> tuple[Score, FloatArray | None]:
        units = _Units(X)
        model = learn_leave_one_out(units(X), np.ones(len(X)))
        spread = model.residuals(units(X)).std(axis=0) + 1e-9
        return lambda rows: mean_of_six(np.abs(model.residuals(units(rows)) / spread).max(axis=1)), None


class ProcessControl(_Peer):
    """Hotelling's T² and SPE of a PCA, each over its 0.99 quantile, their sum, mean of six."""

    def _learn(self, X: FloatArray) -> tuple[Score, FloatArray | None]:
        units = _Units(X)
        parts = PCA(_KEPT if X.shape[1] > 1 else None).fit(units(X))

        def both(rows: FloatArray) -> tuple[FloatArray, FloatArray]:
            Z = units(rows)
            places = parts.transform(Z)
            left = Z - parts.inverse_transform(places)
            inside = (places**2 / np.maximum(parts.explained_variance_, 1e-9)).sum(axis=1)
            return inside, np.asarray((left**2).sum(axis=1))

        usual = [max(float(np.quantile(each, 0.99)), 1e-9) for each in both(X)]
        return lambda rows: mean_of_six(np.add(*(each / by for each, by in zip(both(rows), usual, strict=True)))), None


class KMeansAD(_Peer):
    """Distance of the last 20 rows to the nearest of 20 centres of such windows."""

    def _learn(self, X: FloatArray) -> tuple[Score, FloatArray | None]:
        windows = _Windows(X)
        centres = MiniBatchKMeans(20, random_state=0, n_init=3).fit(windows.some(X))
        return lambda rows: windows.each(rows, lambda some: centres.transform(some).min(axis=1)), None


class WindowPCA(_Peer):
    """What a PCA of windows of 20 rows leaves of the last 20 rows."""

    def _learn(self, X: FloatArray) -> tuple[Score, FloatArray | None]:
        windows = _Windows(X)
        parts = PCA(_KEPT, random_state=0).fit(windows.some(X))

        def left(some: FloatArray) -> FloatArray:
            return np.asarray(((some - parts.inverse_transform(parts.transform(some))) ** 2).sum(axis=1))

        return lambda rows: windows.each(rows, left), None


class Online:
    """The paper's online algorithm with the settings of `penstock watch`; scores before its warm-up are 0."""

    def fit(self, X: FloatArray) -> Self:
        self.detector_ = OnlineNSNMF(similarity="binary", warmup=200, scale="minmax", random_state=0)
        self.scores_ = self.anomaly_score(X)
        return self

    def anomaly_score(self, X: FloatArray) -> FloatArray:
        return np.nan_to_num(self.detector_.update_many(X))


class Position(_Peer):
    """The row number: a control."""

    def _learn(self, X: FloatArray) -> tuple[Score, FloatArray | None]:
        return lambda rows: np.arange(len(rows), dtype=float), None


class StoredScores:
    """Scores that another program has computed: a file with one column, a score for each row that is scored."""

    def __init__(self, file: str, digest: str = "") -> None:
        self.file = file
        self.digest = digest

    def fit(self, X: FloatArray) -> Self:
        self.stored_ = np.loadtxt(self.file, delimiter=",", ndmin=1)
        self.scores_ = self.stored_
        return self

    def anomaly_score(self, X: FloatArray) -> FloatArray:
        return self.stored_  # its length is checked by the study


class _Units:
    """Standardise readings by the training rows."""

    def __init__(self, X: FloatArray) -> None:
        self._scaler = StandardScaler().fit(X)

    def __call__(self, X: FloatArray) -> FloatArray:
        return np.asarray(np.clip(self._scaler.transform(X), -_LARGEST, _LARGEST))


class _Windows:
    """Windows of the last 20 rows, flat; rows before the first are taken as the first."""

    def __init__(self, X: FloatArray) -> None:
        self._units = _Units(X)
        self._parts = PCA(_MOST_COLUMNS, random_state=0).fit(self._units(X)) if X.shape[1] > _MOST_COLUMNS else None

    def some(self, X: FloatArray) -> FloatArray:
        """Return at most 6,000 windows, drawn."""
        windows = self._all(X)
        drawn = np.random.default_rng(0).permutation(len(windows))[:_MOST_WINDOWS]
        return windows[drawn].reshape(len(drawn), -1)

    def each(self, X: FloatArray, score: Score) -> FloatArray:
        """Return the score of each window, a few thousand of them in memory at a time."""
        windows = self._all(X)
        pieces = (windows[first : first + _AT_A_TIME] for first in range(0, len(X), _AT_A_TIME))
        return np.concatenate([score(piece.reshape(len(piece), -1)) for piece in pieces])

    def _all(self, X: FloatArray) -> FloatArray:
        Z = self._units(X)
        Z = Z if self._parts is None else self._parts.transform(Z)
        return sliding_window_view(np.vstack([np.repeat(Z[:1], WINDOW - 1, axis=0), Z]), WINDOW, axis=0)
