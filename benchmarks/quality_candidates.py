"""Composites of views that could have become `penstock.Detector`, for `quality.py`: built from the same parts, slowly.

A candidate is a text: views separated by spaces, each a sum of terms whose standardised scores are averaged.

    nodes4          mean Manhattan distance to the nearest of 4 rows drawn at random, log-encoded; ":euclidean" for that
                    distance, ":factors" for nodes rebuilt by a Laplacian factorisation on their tree (K = 4)
    edges:plain     how a row joins the spanning tree; ":log" for log-encoded rows, ":z" for standardised ones
    margins, tails  rare readings by a histogram, or by their two-sided tail probability
    residual:log    the residual of a Laplacian factorisation on the tree, each row from its neighbours' weights
    neighbor5       distance to the 5th neighbour, plain
    plane           what the principal components with 90 % of the variance do not rebuild, log-encoded; components of
                    the other four fifths of the rows
"""

from __future__ import annotations

import warnings
from typing import Any, Self

import numpy as np
from scipy.spatial.distance import cdist
from scipy.stats import rankdata
from sklearn.base import BaseEstimator

from penstock import KNNDistance, LaplacianNSNMF
from penstock._types import FloatArray
from penstock.detectors.views import Places, draw_numbers, join_rows, learn_encoding, learn_margins, sampling_of
from penstock.graph.mst import minimum_spanning_tree
from penstock.graph.rows import different_rows, first_copies
from penstock.prepare import learn_scaling

_DRAWS = {"small": 128, "large": 64}
_LARGE = 16  # nodes per draw, from which fewer draws are enough
_FOLDS, _EXPLAINED = 5, 0.9


class Candidate(BaseEstimator):  # type: ignore[misc]
    """See the module. `scale` is how views get on one scale, `rule` how they are put together."""

    def __init__(
        self, views: str = "nodes8", scale: str = "log", rule: str = "two largest", random_state: int = 0
    ) -> None:
        self.views = views
        self.scale = scale
        self.rule = rule
        self.random_state = random_state

    def fit(self, X: Any, y: Any = None) -> Self:
        table = np.asarray(X, dtype=np.float64)
        A = learn_scaling(table).apply(table)
        self._kept, self._copy_of = different_rows(first_copies(A))
        self._A, self._encoded = A, learn_encoding(A).apply(A)
        self._rng = np.random.default_rng(self.random_state)
        parts = [self._view(text) for text in self.views.split()]
        self.scores_ = _together(np.column_stack(parts), self.rule)
        return self

    def _view(self, text: str) -> FloatArray:
        terms = [_standard(self._term(term)[self._copy_of], self.scale) for term in text.split("+")]
        return np.mean(terms, axis=0)  # type: ignore[no-any-return]

    def _term(self, term: str) -> FloatArray:
        """Of the distinct rows."""
        kind, _, how = term.partition(":")
        if kind.startswith("nodes"):
            return self._nodes(int(kind.removeprefix("nodes")), how)
        if kind == "edges":
            rows = self._rows(how)
            return join_rows(rows, minimum_spanning_tree(rows), np.bincount(self._copy_of)).own
        if kind == "margins":
            rows = self._rows("log")
            return learn_margins(self._encoded).values(rows, rows, np.ones(len(rows)))
        if kind == "tails":
            return _tails(self._A)[self._kept]
        if kind in ("plane", "residual"):
            rows = self._rows(how or "log")
            return _off_plane(rows, self._rng) if kind == "plane" else _residuals(rows)
        if kind == "neighbor5":
            k = min(5, len(self._kept) - 1)
            return np.asarray(KNNDistance(k, scale=None).fit(self._A[self._kept]).scores_)
        raise ValueError(f"There is no term {term!r}.")

    def _rows(self, how: str) -> FloatArray:
        plain = self._A[self._kept]
        if how == "z":
            spread = self._A.std(axis=0)
            return np.ascontiguousarray((plain - np.median(self._A, axis=0)) / np.where(spread > 0, spread, 1.0))
        return np.ascontiguousarray({"plain": plain, "log": self._encoded[self._kept]}[how])

    def _nodes(self, size: int, how: str) -> FloatArray:
        rows = np.ascontiguousarray(self._encoded[self._kept])
        m, draws = len(rows), _DRAWS["large" if size >= _LARGE else "small"]
        drawn = self._copy_of[draw_numbers(len(self._copy_of), draws, size, self._rng)]
        if not how:
            at_home = Places(np.arange(m), np.zeros(m), np.zeros(m))
            return sampling_of(rows, drawn, drawn[:1], np.bincount(self._copy_of)).values(rows, at_home)[0]
        total, count = np.zeros(m), np.zeros(m)
        for members in drawn:
            nodes = rows[members]
            gaps = cdist(rows, nodes, "euclidean" if how == "euclidean" else "cityblock")
            gaps[members, np.arange(len(members))] = np.inf  # a row is no node for itself
            nearest = gaps.argmin(axis=1)
            distance = gaps[np.arange(m), nearest]
            known = np.isfinite(distance)
            if how == "factors":
                distance = np.abs(rows - _rebuilt(nodes)[nearest]).sum(axis=1)
            total[known] += distance[known]
            count[known] += 1
        return np.where(count > 0, total / np.maximum(count, 1), 0.0)


def _standard(values: FloatArray, how: str) -> FloatArray:
    if how == "rank":
        return np.asarray(-np.log((len(values) - rankdata(values) + 1) / len(values)))
    if how == "log":
        positive = values[values > 0]
        values = np.log(np.maximum(values, positive.min() / 2 if len(positive) else 1.0))
    return np.asarray((values - values.mean()) / (values.std() or 1.0))


def _together(parts: FloatArray, rule: str) -> FloatArray:
    ordered = np.sort(parts, axis=1)
    summed = {"sum": parts, "two largest": ordered[:, -2:], "largest": ordered[:, -1:]}[rule].sum(axis=1)
    return np.asarray(summed, dtype=np.float64)


def _off_plane(rows: FloatArray, rng: np.random.Generator) -> FloatArray:
    fold, distance = rng.permutation(len(rows)) % _FOLDS, np.empty(len(rows))
    for k in range(_FOLDS):
        others = rows[fold != k]
        center = others.mean(axis=0)
        _, sizes, axes = np.linalg.svd(others - center, full_matrices=False)
        explained = np.cumsum(sizes**2) / max(float((sizes**2).sum()), 1e-300)
        axes, moved = axes[: int(np.searchsorted(explained, _EXPLAINED)) + 1], rows[fold == k] - center
        distance[fold == k] = np.linalg.norm(moved - moved @ axes.T @ axes, axis=1)
    return distance


def _tails(A: FloatArray) -> FloatArray:
    """Σ −log of the two-sided empirical tail probability."""
    n, total = len(A), np.zeros(len(A))
    for column in A.T:
        ordered = np.sort(column)
        below = np.searchsorted(ordered, column, "right") / n
        above = 1 - np.searchsorted(ordered, column, "left") / n
        total -= np.log(np.minimum(1.0, 2 * np.minimum(below, above)))
    return total


def _halves(rows: FloatArray) -> FloatArray:
    """[positive part, negative part]: a factorisation needs A ≥ 0."""
    return np.hstack([np.maximum(rows, 0.0), np.maximum(-rows, 0.0)])


def _factorised(A: FloatArray) -> LaplacianNSNMF:
    groups = min(4, max(1, A.shape[1] // 2), max(1, len(A) - 1))
    detector = LaplacianNSNMF(
        groups, similarity="relative", score_kind="structural", scale=None, max_iter=100, random_state=0
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # few iterations are enough to compare
        return detector.fit(A)


def _residuals(rows: FloatArray) -> FloatArray:
    return np.asarray(_factorised(_halves(rows) if (rows < 0).any() else rows).scores_)


def _rebuilt(nodes: FloatArray) -> FloatArray:
    p, halves = nodes.shape[1], _halves(nodes)
    detector = _factorised(halves)
    rebuilt = detector.inverse_transform(detector.transform(halves))
    return np.asarray(rebuilt[:, :p] - rebuilt[:, p:])
