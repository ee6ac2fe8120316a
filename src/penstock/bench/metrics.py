"""Measure how well scores find the labelled anomalies."""

from __future__ import annotations

from numpy.typing import ArrayLike
from sklearn.metrics import average_precision_score, roc_auc_score

from penstock.ranking import checked_labels, precision_at_n, true_detections

__all__ = ["average_precision", "precision_at_n", "roc_auc", "true_detections"]


def roc_auc(y: ArrayLike, scores: ArrayLike) -> float:
    """Return the area under the ROC curve: the chance that an anomaly scores above a normal row.

    >>> roc_auc([1, 0, 0], [3.0, 1.0, 3.0])
    0.75
    """
    return float(roc_auc_score(*checked_labels(y, scores)))


def average_precision(y: ArrayLike, scores: ArrayLike) -> float:
    """Return the average precision, the area under the precision-recall steps.

    >>> average_precision([1, 0, 0, 1], [4.0, 3.0, 2.0, 1.0])
    0.75
    """
    return float(average_precision_score(*checked_labels(y, scores)))
