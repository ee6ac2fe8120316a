"""LoMST: the length of a row's local spanning tree against those of its neighbours (Ahmed et al. 2019)."""

from __future__ import annotations

from dataclasses import KW_ONLY
from typing import Annotated, Any

import numpy as np

from penstock._parameters import estimator, whole, word_or
from penstock._threads import for_each_range
from penstock._types import FloatArray, IndexArray
from penstock.detectors._base import BaseDetector
from penstock.detectors._lomst_kernels import grow_local_trees
from penstock.detectors._neighbors import FittedRows, unpack_rows
from penstock.graph.points import plain_frame
from penstock.graph.search import RowSearch
from penstock.storage import Record, read_fields

SMALLEST_K, LARGEST_K = 2, 50  # the range searched for a practical k; cut to n − 1
_RULES = ("stable", "sd", "raw sd")
_ROUNDING = 1e-13  # relative error of a tree's length, generously
STABLE_STEP = 0.01  # of the scores' range: the mean score is stable while it changes by no more from k to k + 1


@estimator
class LoMST(BaseDetector):
    """Local minimum spanning trees. Ahmed, Dagnino, Ding (2019); compared with in Ahmed et al. (2021), section 5.3.

    T_i is the length of the minimum spanning tree of row i and its k nearest rows; c_i = T_i − mean of T_j over those
    k rows; the score is c_i scaled so that the training rows span [0, 1] (all 0 if their c_i are equal).

    A new row is measured against the training rows: T_x over its k nearest of them, minus the mean of their T, on the
    same scale, not clipped: a score below 0 or above 1 is beyond all training rows. One that equals a training row
    gets its score; near it, the score as that row and the score as a new row are blended, so that it does not jump.

    Parameters
    ----------
    n_neighbors : "stable", "sd", "raw sd" or int, default="stable"
        k. "stable" is the 'practical k' by the rule of its authors: of the longest run of k in 2..50 (at most n − 1) in
        which the mean score changes by at most 0.01 of the scores' range from one k to the next, the one whose scores
        have the largest standard deviation, the smallest of several. The authors give no number for "stable"; 0.01 is
        ours. "sd" takes the largest standard deviation of all k. "raw sd" takes that of the c_i, before they are
        scaled; it nearly always ends at the largest k.
    max_neighbors : int, default=50
        The largest k that is tried, where it is chosen.
    contamination : "auto", float in (0, 0.5] or threshold, default="auto"
        See `penstock.thresholds.score_threshold`.
    scale : "minmax" or None, default="minmax"
        Whether columns are first scaled to [0, 1].

    Attributes
    ----------
    n_neighbors_ : int
        The k used.

    Examples
    --------
    >>> import numpy as np
    >>> X = np.r_[np.random.default_rng(0).normal(size=(200, 2)), [[6.0, 6.0]]]
    >>> detector = LoMST(n_neighbors=10).fit(X)
    >>> int(detector.top(1).index[0])
    200
    """

    n_neighbors: Annotated[int | str, word_or(whole(1), *_RULES)] = "stable"
    _: KW_ONLY
    max_neighbors: Annotated[int, whole(SMALLEST_K)] = LARGEST_K

    def _fewest_rows(self) -> int:
        return 2 if isinstance(self.n_neighbors, str) else self.n_neighbors + 1

    def _fit_rows(self, A: FloatArray) -> FloatArray:
        n = len(A)
        fixed = None if isinstance(self.n_neighbors, str) else int(self.n_neighbors)
        largest = min(self.max_neighbors, n - 1) if fixed is None else fixed
        tree = RowSearch(A)
        self._unit = plain_frame(A)
        self._rows = self._unit.scale(A)
        near, distances = tree.neighbors(largest)
        self._fitted: FittedRows = FittedRows.of(tree, distances)
        lengths = local_tree_lengths(self._rows, near, largest)
        k = choose_k(lengths, near, str(self.n_neighbors)) if fixed is None else fixed
        self.n_neighbors_ = k
        self._tree_lengths = np.ascontiguousarray(lengths[:, k - 1])
        contrasts = tree_contrasts(self._tree_lengths, self._tree_lengths, near[:, :k])
        self._lowest, self._span = float(contrasts.min()), float(np.ptp(contrasts))
        return self._scaled(contrasts)

    def _score_rows(self, A: FloatArray, A_clipped: FloatArray) -> FloatArray:
        found = self._fitted.neighbors(A, self.n_neighbors_)
        rows = self._unit.scale(A)
        scores = []
        for near in (found.without_twin, found.with_twin):
            own = _tree_lengths(self._rows, rows, near)[:, -1]
            scores.append(self._scaled(tree_contrasts(own, self._tree_lengths, near)))
        return found.blend(*scores)

    def _pack_model(self) -> dict[str, Any]:
        return {
            "neighbors": self.n_neighbors_,
            "fitted": self._fitted.pack(),
            "tree_lengths": self._tree_lengths,
            "lowest": self._lowest,
            "span": self._span,
        }

    def _unpack_model(self, record: Record) -> None:
        n = len(self.scores_)
        fields = {
            "neighbors": "int >=1 <n", "fitted": object, "tree_lengths": "n >=0", "lowest": float, "span": "float >=0",
        }  # fmt: skip
        found = read_fields(record, fields, {"n": n})
        self.n_neighbors_ = found["neighbors"]
        self._fitted = unpack_rows(record.part("fitted"), n, self.n_features_in_)
        fitted = self._fitted.search.rows
        self._unit = plain_frame(fitted)
        self._rows = self._unit.scale(fitted)
        self._tree_lengths, self._lowest, self._span = found["tree_lengths"], found["lowest"], found["span"]

    def _scaled(self, contrasts: FloatArray) -> FloatArray:
        with np.errstate(over="ignore"):
            return (contrasts - self._lowest) / (self._span or 1.0)


def local_tree_lengths(X: FloatArray, neighbors: IndexArray, k: int) -> FloatArray:
    """Return T, (n, k): in column m − 1 the length of the minimum spanning tree of each row and its m nearest rows.

    `neighbors` has at least k columns, nearest first, as from `penstock.graph.nearest_neighbors`.

    >>> import numpy as np
    >>> from penstock.graph.search import nearest_neighbors
    >>> X = np.array([[0.0], [1.0], [3.0]])
    >>> local_tree_lengths(X, nearest_neighbors(X, 2)[0], 2).tolist()
    [[1.0, 3.0], [1.0, 3.0], [2.0, 3.0]]
    """
    if not 1 <= k <= neighbors.shape[1]:
        raise ValueError(f"k must be between 1 and the {neighbors.shape[1]} neighbours given, but is {k}.")
    X = np.ascontiguousarray(X, dtype=np.float64)
    return _tree_lengths(X, X, neighbors[:, :k])


def choose_k(lengths: FloatArray, neighbors: IndexArray, rule: str) -> int:
    """Return the practical k of Ahmed et al. (2019), that of the largest standard deviation, by one of the rules."""
    largest = lengths.shape[1]
    candidates = np.arange(min(SMALLEST_K, largest), largest + 1)
    means, deviations = np.empty(len(candidates)), np.empty(len(candidates))
    for place, k in enumerate(candidates):
        own = np.ascontiguousarray(lengths[:, k - 1])
        contrasts = tree_contrasts(own, own, neighbors[:, :k])
        scores = contrasts if rule == "raw sd" else (contrasts - contrasts.min()) / (np.ptp(contrasts) or 1.0)
        means[place], deviations[place] = scores.mean(), scores.std()
    start, stop = _longest_stable_run(means) if rule == "stable" else (0, len(candidates))
    return int(candidates[start + int(np.argmax(deviations[start:stop]))])


def _longest_stable_run(means: FloatArray) -> tuple[int, int]:
    """Return start and stop of the longest (first) run in which successive means differ by at most STABLE_STEP."""
    breaks = np.flatnonzero(np.abs(np.diff(means)) > STABLE_STEP) + 1
    starts, stops = np.r_[0, breaks], np.r_[breaks, len(means)]
    longest = int(np.argmax(stops - starts))
    return int(starts[longest]), int(stops[longest])


def tree_contrasts(own: FloatArray, fitted: FloatArray, near: IndexArray) -> FloatArray:
    """Return c_i = T_i − mean of T_j over the neighbours; summed one by one, so that batches do not matter."""
    total = np.zeros(len(own))
    for neighbor in near.T:
        total += fitted[neighbor]
    mean = total / near.shape[1]
    contrasts: FloatArray = own - mean
    # A difference within the rounding of its terms counts as 0. Where all local trees are the same tree (k = n − 1),
    # it would otherwise be scaled up to [0, 1].
    contrasts[np.abs(contrasts) <= _ROUNDING * own] = 0.0
    return contrasts


def _tree_lengths(X: FloatArray, Q: FloatArray, near: IndexArray) -> FloatArray:
    near = np.ascontiguousarray(near)
    lengths = np.empty(near.shape)
    for_each_range(lambda start, stop: grow_local_trees(X, Q, near, start, stop, lengths), len(near), smallest=64)
    return lengths
