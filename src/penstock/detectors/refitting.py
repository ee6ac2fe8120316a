"""Score the rows of a table by a detector that was not fitted to the rows that stand out."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import clone

from penstock._types import BoolArray, FloatArray
from penstock.certainty import expected_by_chance
from penstock.certainty.rows import FEWEST_SCORES

_SET_ASIDE = 10  # one row in so many


def scores_without_the_highest(detector: Any, X: Any, first_scores: ArrayLike) -> FloatArray:
    """Fit again without the rows that stand out, and return scores of all rows.

    Anomalies among the training rows widen what a detector takes for normal and hide each other. Use it before
    `penstock.certainty.expected_by_chance`; where only the ranking of rows matters, the first scores are as good.

    First a clone is fitted without the tenth of the rows that scored highest; by its scores `expected_by_chance` calls
    rows. If it calls none, the first scores are returned. Else a clone is fitted to all rows but the called ones. So
    normal rows are not missed in the last fit, which costs one fit more, or two.

    Parameters
    ----------
    detector : detector
        As in `penstock.detectors`: it is cloned and not changed.
    X : array-like or DataFrame of shape (n, p)
        The rows that were scored.
    first_scores : array-like of shape (n,)
        Their scores as training rows, `detector.scores_`; high means anomalous.

    Returns
    -------
    ndarray of shape (n,)
        Of rows that were fitted last, the scores as training rows (`scores_`); of the others, the scores as new rows
        (`anomaly_score`).

    Raises
    ------
    ValueError
        If there is not one finite score per row, and with the detector's message if it cannot be fitted to the rows
        kept, for example because a column has readings only in the others.

    Examples
    --------
    >>> import numpy as np
    >>> from penstock import Detector
    >>> rng = np.random.default_rng(0)
    >>> X = np.r_[rng.normal(size=(300, 5)), 3.0 + 0.2 * rng.normal(size=(12, 5))]
    >>> detector = Detector(random_state=0).fit(X)
    >>> expected_by_chance(detector.scores_).verdict
    'nothing'
    >>> scores = scores_without_the_highest(detector, X, detector.scores_)
    >>> expected_by_chance(scores).verdict, int(expected_by_chance(scores).called[300:].sum())
    ('clearly', 12)
    """
    first: FloatArray = np.array(first_scores, dtype=np.float64)
    table = X if hasattr(X, "iloc") else np.asanyarray(X)
    n = len(table)
    if first.shape != (n,) or not np.isfinite(first).all():
        raise ValueError(f"first_scores must hold a finite number for each of the {n:,} rows of X.")
    if n < FEWEST_SCORES:
        return first
    highest = first > np.sort(first)[n - 1 - n // _SET_ASIDE]  # of equal scores at the cut none
    called = expected_by_chance(_scores_without(detector, table, highest)).called
    return _scores_without(detector, table, called) if called.any() else first


def _scores_without(detector: Any, table: Any, aside: BoolArray) -> FloatArray:
    """Fit a clone to the rows that are not set aside, and score all rows."""
    rows = table.iloc if hasattr(table, "iloc") else table
    refitted = clone(detector).fit(rows[~aside])
    scores = np.empty(len(table))
    scores[~aside] = refitted.scores_
    if aside.any():
        scores[aside] = refitted.anomaly_score(rows[aside])
    return scores
