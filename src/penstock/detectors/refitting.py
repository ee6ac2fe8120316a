"""Score the rows of a table by a detector that has not learnt from its highest rows."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import clone

from penstock._types import FloatArray, IndexArray

_SET_ASIDE = 10  # one row in so many


def scores_without_the_highest(detector: Any, X: Any, first_scores: ArrayLike) -> FloatArray:
    """Fit again without the tenth of the rows that scored highest, and return scores of all rows.

    Anomalies among the training rows widen what a detector takes for normal and hide each other. Use it before
    `penstock.thresholds.expected_by_chance`; for the ranking of rows alone the first scores are as good. It costs a
    second fit.

    Parameters
    ----------
    detector : detector
        As in `penstock.detectors`: it is cloned and not changed.
    X : array-like or DataFrame of shape (n, p)
        The rows that were scored.
    first_scores : array-like of shape (n,)
        Their scores, such as `detector.scores_`; high means anomalous.

    Returns
    -------
    ndarray of shape (n,)
        Of the rows that were kept, the scores as training rows (`scores_`); of the tenth, the scores as new rows
        (`anomaly_score`). Of rows whose equal scores are at the cut, all are kept.

    Raises
    ------
    ValueError
        If there is not one finite score per row, and with the detector's message if the rows kept cannot be fitted,
        for example because a column has readings only in the others.

    Examples
    --------
    >>> import numpy as np
    >>> from penstock import Detector
    >>> from penstock.thresholds import expected_by_chance
    >>> rng = np.random.default_rng(0)
    >>> X = np.r_[rng.normal(size=(300, 3)), rng.normal(7.0, size=(3, 3))]
    >>> detector = Detector(random_state=0).fit(X)
    >>> scores = scores_without_the_highest(detector, X, detector.scores_)
    >>> np.flatnonzero(expected_by_chance(scores).called)
    array([300, 301, 302])
    """
    first = np.asarray(first_scores, dtype=np.float64)
    table = X if hasattr(X, "iloc") else np.asanyarray(X)
    if first.shape != table.shape[:1] or not np.isfinite(first).all():
        raise ValueError(f"first_scores must hold a finite number for each of the {len(table):,} rows of X.")
    n = len(first)
    cut = np.sort(first)[n - 1 - n // _SET_ASIDE] if n else 0.0
    kept, aside = np.flatnonzero(first <= cut), np.flatnonzero(first > cut)
    refitted = clone(detector).fit(_rows(table, kept))
    scores = np.empty(n)
    scores[kept] = refitted.scores_
    if len(aside):
        scores[aside] = refitted.anomaly_score(_rows(table, aside))
    return scores


def _rows(table: Any, places: IndexArray) -> Any:
    return table.iloc[places] if hasattr(table, "iloc") else table[places]
