"""LoMST with the best k, chosen with the labels: what no choice of k can beat. In the study only."""

from __future__ import annotations

from typing import Any, ClassVar, Self

import numpy as np

from penstock._types import FloatArray
from penstock.detectors.lomst import LARGEST_K, SMALLEST_K, local_tree_lengths, tree_contrasts
from penstock.graph.search import search_over
from penstock.ranking import true_detections


class BestLoMST:
    """LoMST at the k in 2..50 that finds the most, the smallest of several. Ahmed et al. (2021), section 5.3.

    An oracle, not a detector: it looks at the truth, and judges training rows only.

    Attributes
    ----------
    scores_ : array of shape (n,)
    n_neighbors_ : int
        The best k.
    detections_ : dict of int to float
        What each k finds.

    >>> rng = np.random.default_rng(0)
    >>> X, y = np.r_[rng.normal(size=(200, 2)), [[6.0, 6.0]]], np.r_[np.zeros(200), 1]
    >>> int(np.argmax(BestLoMST().fit(X, y).scores_))
    200
    """

    uses_labels: ClassVar[bool] = True

    def fit(self, X: Any, y: Any) -> Self:
        A = np.ascontiguousarray(X, dtype=np.float64)
        largest = min(LARGEST_K, len(A) - 1)
        tree = search_over(A)
        near, _ = tree.neighbors(largest)
        lengths = local_tree_lengths(tree.frame.scale(A), near, largest)
        scores = {
            k: _scores(np.ascontiguousarray(lengths[:, k - 1]), near[:, :k])
            for k in range(min(SMALLEST_K, largest), largest + 1)
        }
        self.detections_ = {k: float(true_detections(y, found)) for k, found in scores.items()}
        self.n_neighbors_ = max(scores, key=lambda k: (self.detections_[k], -k))
        self.scores_: FloatArray = scores[self.n_neighbors_]
        return self


def _scores(lengths: FloatArray, near: Any) -> FloatArray:
    values = tree_contrasts(lengths, lengths, near)
    scaled: FloatArray = (values - values.min()) / (np.ptp(values) or 1.0)
    return scaled
