"""Controls: simple distances, to compare every other detector with."""

from __future__ import annotations

from typing import Annotated, Any, ClassVar

import numpy as np

from penstock._parameters import estimator, whole
from penstock._types import FloatArray
from penstock.detectors._base import BaseDetector
from penstock.detectors._neighbors import FittedRows, unpack_rows
from penstock.graph.search import RowSearch
from penstock.scoring import distance_scores
from penstock.storage import Record, read_fields


class NormScore(BaseDetector):
    """Score rows by ‖a‖, the distance from the origin (with scale="minmax": from the smallest value of every column).

    A control: what it finds needs no other method.

    Parameters
    ----------
    contamination : "auto", float in (0, 0.5] or threshold, default="auto"
        See `penstock.thresholds.score_threshold`.
    scale : "minmax" or None, default="minmax"
        Whether columns are first scaled to [0, 1].

    Examples
    --------
    >>> import numpy as np
    >>> NormScore(contamination=0.25).fit([[0.0], [1.0], [2.0], [4.0]]).scores_
    array([0.  , 0.25, 0.5 , 1.  ])
    """

    _takes_missing: ClassVar[bool] = True
    _compares_rows: ClassVar[bool] = False

    def _fit_rows(self, A: FloatArray) -> FloatArray:
        return self._score_rows(A, A)

    def _score_rows(self, A: FloatArray, A_clipped: FloatArray) -> FloatArray:
        return distance_scores(A, np.zeros(A.shape[1]))

    def _pack_model(self) -> dict[str, Any]:
        return {}

    def _unpack_model(self, record: Record) -> None:
        record.require_fields()


class MeanDistance(BaseDetector):
    """Score rows by ‖a − mean‖, the distance from the mean of the training rows. A control.

    Parameters
    ----------
    contamination, scale : as in `NormScore`

    Attributes
    ----------
    mean_ : ndarray of shape (p,)
        The mean of the scaled training rows.

    Examples
    --------
    >>> import numpy as np
    >>> MeanDistance(contamination=0.25).fit([[0.0], [2.0], [2.0], [4.0]]).scores_
    array([0.5, 0. , 0. , 0.5])
    """

    _takes_missing: ClassVar[bool] = True
    _compares_rows: ClassVar[bool] = False

    def _fit_rows(self, A: FloatArray) -> FloatArray:
        self.mean_ = _mean(A)
        return self._score_rows(A, A)

    def _score_rows(self, A: FloatArray, A_clipped: FloatArray) -> FloatArray:
        return distance_scores(A, self.mean_)

    def _pack_model(self) -> dict[str, Any]:
        return {"mean": self.mean_}

    def _unpack_model(self, record: Record) -> None:
        self.mean_ = read_fields(record, {"mean": "p"}, {"p": self.n_features_in_})["mean"]


@estimator
class KNNDistance(BaseDetector):
    """Score rows by the distance to the k-th nearest training row; a training row is not its own neighbour.

    A simple score that is hard to beat. A new row that equals a training row gets its score; near it, the score as that
    row and the score as a new row are blended, so that it does not jump. A row that shares columns with fewer than k
    others has those as its neighbours, and the last of them counts.

    Parameters
    ----------
    n_neighbors : int, default=5
        k.
    contamination, scale : as in `NormScore`

    Examples
    --------
    >>> import numpy as np
    >>> detector = KNNDistance(n_neighbors=1, contamination=0.25).fit([[0.0], [1.0], [2.0], [4.0]])
    >>> detector.scores_
    array([0.25, 0.25, 0.25, 0.5 ])
    >>> detector.anomaly_score([[4.0], [6.0]])
    array([0.5, 0.5])
    """

    _takes_missing: ClassVar[bool] = True

    n_neighbors: Annotated[int, whole(1)] = 5

    def _fewest_rows(self) -> int:
        return self.n_neighbors + 1

    def _fit_rows(self, A: FloatArray) -> FloatArray:
        tree = RowSearch(A)
        distances = tree.neighbors(self.n_neighbors)[1]
        self._fitted: FittedRows = FittedRows.of(tree, distances)
        return _last_found(distances, self.n_neighbors)

    def _score_rows(self, A: FloatArray, A_clipped: FloatArray) -> FloatArray:
        near = self._fitted.neighbors(A, self.n_neighbors)
        without_twin = _last_found(near.distances, self.n_neighbors + 1)
        return near.blend(without_twin, _last_found(near.distances, self.n_neighbors))

    def _pack_model(self) -> dict[str, Any]:
        return self._fitted.pack()

    def _unpack_model(self, record: Record) -> None:
        self._fitted = unpack_rows(record, len(self.scores_), self.n_features_in_, missing=True)


def _last_found(distances: FloatArray, k: int) -> FloatArray:
    """Return the k-th of ascending distances, or the last finite one before it; the first is finite."""
    count = np.isfinite(distances[:, :k]).sum(axis=1)
    return np.asarray(distances[np.arange(len(distances)), count - 1])


def _mean(A: FloatArray) -> FloatArray:
    """Return column means that cannot overflow and are exact for constant columns; NaN is left out."""
    if np.isnan(A).any():
        return np.array([_mean(column[~np.isnan(column)][:, None])[0] for column in A.T])
    base = A[0]
    with np.errstate(over="ignore"):
        direct = base + (A - base).mean(axis=0)
    return np.asarray(np.where(np.isfinite(direct), direct, (A / len(A)).sum(axis=0)))
