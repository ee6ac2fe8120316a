"""How anomalous a fitted detector finds its training rows, whichever library it is of."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from penstock._types import FloatArray


class ScoresError(ValueError):
    """A detector without scores that can be judged."""


def training_scores(detector: Any, X: FloatArray, y: ArrayLike) -> FloatArray:
    """Fit, and return how anomalous the training rows are, high = anomalous, whichever library the detector is of.

    Looked for in this order: `scores_` (ours), `decision_scores_` (pyod), and with scikit-learn's sign
    `negative_outlier_factor_`, `score_samples(X)`, `decision_function(X)`. The labels are shown only to a detector that
    says `uses_labels`, an oracle.

    >>> from sklearn.neighbors import LocalOutlierFactor
    >>> rows = np.array([[0.0], [0.1], [0.2], [9.0]])
    >>> int(training_scores(LocalOutlierFactor(n_neighbors=2), rows, None).argmax())
    3
    """
    if getattr(detector, "uses_labels", False):
        detector.fit(X, y)
    else:
        detector.fit(X)
    for name, sign in (("scores_", 1.0), ("decision_scores_", 1.0), ("negative_outlier_factor_", -1.0)):
        if hasattr(detector, name):
            return _as_scores(getattr(detector, name), sign, len(X))
    for name in ("score_samples", "decision_function"):
        if hasattr(detector, name):
            return _as_scores(getattr(detector, name)(X), -1.0, len(X))
    raise ScoresError(
        f"{type(detector).__name__} has no scores that are known here: neither scores_ nor decision_scores_ after "
        "fit, nor a method score_samples or decision_function."
    )


def _as_scores(values: Any, sign: float, n: int) -> FloatArray:
    scores = sign * np.asarray(values, dtype=np.float64)
    if scores.shape != (n,):
        raise ScoresError(f"Scores must be one number per row, {n}; they have shape {scores.shape}.")
    wrong = int((~np.isfinite(scores)).sum())
    if wrong:
        raise ScoresError(f"{wrong} of {n} scores are not finite, the first in row {np.argmin(np.isfinite(scores))}.")
    return scores
