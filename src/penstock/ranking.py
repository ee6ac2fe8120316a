"""Measure how well an order by scores puts known anomalies first."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from penstock._types import FloatArray


def precision_at_n(y: ArrayLike, scores: ArrayLike, n: int | None = None) -> float:
    """Return P@N, the share of true anomalies among the N highest scores. Ahmed et al. (2021), eq:evaluation.

    N is the number of true anomalies unless given. Scores that tie at the cut count with the expected value over
    their orders, so that the result does not depend on the order of the file.

    >>> precision_at_n([1, 0, 1, 0], [9.0, 8.0, 7.0, 1.0])
    0.5
    >>> precision_at_n([1, 0, 0, 0], [5.0, 5.0, 5.0, 5.0])
    0.25
    """
    labels, values = checked_labels(y, scores)
    count = _cut(labels, n)
    return true_detections(labels, values, count) / count


def true_detections(y: ArrayLike, scores: ArrayLike, n: int | None = None) -> float:
    """Return how many true anomalies are among the N highest scores, expected over the orders of ties at the cut.

    >>> true_detections([1, 0, 1, 0], [9.0, 8.0, 7.0, 1.0], n=3)
    2.0
    """
    labels, values = checked_labels(y, scores)
    count = _cut(labels, n)
    last = np.partition(values, -count)[-count]
    above, tied = values > last, values == last
    share = (count - int(above.sum())) / int(tied.sum())
    return float(labels[above].sum() + share * labels[tied].sum())


def checked_labels(y: ArrayLike, scores: ArrayLike) -> tuple[NDArray[np.int64], FloatArray]:
    """Return both as arrays; raise unless there are labels of both kinds, and a score for each."""
    labels, values = np.asarray(y), np.asarray(scores, dtype=np.float64)
    if labels.ndim != 1 or labels.shape != values.shape:
        raise ValueError(f"Labels and scores must be two lists of one length; got {labels.shape} and {values.shape}.")
    if not np.isin(labels, (0, 1)).all():
        raise ValueError(f"Labels must be 0 (normal) or 1 (anomaly); got {np.unique(labels).tolist()[:5]}.")
    if np.isnan(values).any():
        raise ValueError(f"Scores must be numbers; row {int(np.isnan(values).argmax())} is NaN.")
    anomalies = int(labels.sum())
    if anomalies in (0, len(labels)):
        raise ValueError(f"{anomalies} of {len(labels)} rows are labelled anomalies; a measure needs both kinds.")
    return labels.astype(np.int64), values


def _cut(labels: NDArray[np.int64], n: int | None) -> int:
    count = int(labels.sum()) if n is None else n
    if not 1 <= count <= len(labels):
        raise ValueError(f"n must be between 1 and the number of rows, {len(labels)}; got {n!r}.")
    return count
