"""Detectors that only the study needs: readings of NS-NMF, GNMF as its authors compute it, controls, the best LoMST."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar, Literal, Self

import numpy as np
from scipy import sparse, stats
from sklearn.decomposition import PCA

from penstock._parameters import check_choice, check_number
from penstock._types import Factors, FloatArray, SparseMatrix, Tree
from penstock.detectors import Copies, FactorDetector, Problem, nearest_distances, row_maxima
from penstock.detectors.lomst import LARGEST_K, SMALLEST_K, local_tree_lengths, tree_contrasts
from penstock.factor.objectives import gnmf, laplacian_nsnmf, nsnmf
from penstock.factor.settings import MAX_ITER, TOL, Settings
from penstock.graph.mst import spanning_tree_of_comparable
from penstock.graph.paths import PathSimilarity
from penstock.graph.points import plain_frame
from penstock.graph.search import nearest_neighbors
from penstock.graph.similarities import (
    Kind,
    binary_knn_graph,
    floor_lengths,
    gaussian_graph,
    self_tuning_graph,
    similarity,
)
from penstock.ranking import true_detections
from penstock.scoring import residual_scores
from penstock.thresholds import Contamination

Form = Literal["symmetric", "laplacian"]
Graph = Literal[
    "tree", "tree, all pairs", "tree, 0-1", "tree, normalized", "5 nearest, 0-1", "gaussian", "sparse gaussian"
]  # fmt: skip
Weight = Literal["max", "equal"] | float
_FLOOR = 1e-12
_MOST_OF_W = 0.9


class GraphChoice(FactorDetector):
    """NMF with a structure term of either form, on any of the graphs, with any weight.

    The paper derives (eq:equivalence2) that GNMF and NS-NMF are practically the same if they use the same similarities,
    so that the graph makes the difference. Here both can be had in all combinations, everything else equal.

    Parameters
    ----------
    form : {"symmetric", "laplacian"}
        ‖S−WWᵀ‖² with the ridge term gamma·(‖W‖²+‖H‖²), as in NS-NMF; or tr(WᵀLW) with bounded rows of H, as in the
        online algorithm and in GNMF.
    graph : {"tree", "tree, all pairs", "tree, 0-1", "tree, normalized", "5 nearest, 0-1", "gaussian", …}
        The minimum spanning tree with similarities 1/length, of the rows that it joins or of all pairs along its paths,
        or 1, or D^-½ S D^-½; the five nearest neighbours, 0-1, as in GNMF; the full Gaussian graph, as in SNMF (up to
        12,000 rows), or its sparse self-tuning one, "sparse gaussian".
    weight : {"max", "equal"} or float, default=1.0
        What S is multiplied by: "max" divides by its largest entry, "equal" makes ‖S‖ = ‖A‖. All pairs have weight 1.
    n_components, alpha, gamma, score_kind, solver, contamination, scale, max_iter, tol, random_state :
        As in `NSNMF`. Equal rows are fitted once.

    Attributes
    ----------
    details_ : dict of str to float
        `norm_rank_correlation`, Spearman's of the scores with ‖a‖; `rows_holding_most`, the fewest rows with 90 % of
        ‖W‖²; `structure_ratio`, ‖S‖²/‖A‖² of what was minimised.

    >>> X = np.random.default_rng(0).normal(size=(60, 3))
    >>> X[5] += 9
    >>> GraphChoice("laplacian", "5 nearest, 0-1", n_components=2, random_state=0).fit(X).top(1).index.tolist()
    [5]
    """

    def __init__(
        self,
        form: Form = "symmetric",
        graph: Graph = "tree",
        n_components: int = 5,
        alpha: float = 0.8,
        gamma: float = 0.2,
        weight: Weight = 1.0,
        score_kind: Literal["residual", "structural"] = "residual",
        solver: Literal["auto"] | Settings = "auto",
        contamination: Contamination = "auto",
        scale: Literal["minmax"] | None = "minmax",
        max_iter: int = MAX_ITER,
        tol: float = TOL,
        random_state: Any = None,
    ) -> None:
        super().__init__(
            n_components, solver=solver, contamination=contamination, scale=scale, max_iter=max_iter, tol=tol,
            random_state=random_state,
        )  # fmt: skip
        self.form = form
        self.graph = graph
        self.alpha = alpha
        self.gamma = gamma
        self.weight = weight
        self.score_kind = score_kind

    def check_parameters(self) -> None:
        super().check_parameters()
        check_choice("form", self.form, ("symmetric", "laplacian"))
        check_choice("graph", self.graph, tuple(_GRAPHS))
        check_choice("score_kind", self.score_kind, ("residual", "structural"))
        check_number("alpha", self.alpha, least=0.0, above=True)
        check_number("gamma", self.gamma, least=0.0)
        if isinstance(self.weight, str):
            check_choice("weight", self.weight, ("max", "equal"))
        else:
            check_number("weight", self.weight, least=0.0)
        if self.graph == "tree, all pairs" and self.weight != 1.0:
            raise ValueError(f"The similarities of all pairs have weight 1; got {self.weight!r}.")

    def _pose(self, rows: FloatArray, copies: Copies, tree: Tree | None) -> Problem:
        S = _GRAPHS[self.graph](rows) if len(rows) > 1 else sparse.csr_array((1, 1))
        if self.weight != 1.0:
            S = S * self._factor(rows, S)
        objective = (
            nsnmf(rows, S, self.alpha, self.gamma) if self.form == "symmetric" else laplacian_nsnmf(rows, S, self.alpha)
        )
        return Problem(objective, nearest_distances(rows), row_maxima(S))

    def _factor(self, rows: FloatArray, S: SparseMatrix) -> float:
        if not isinstance(self.weight, str):
            return self.weight
        size = float(S.max()) if self.weight == "max" else float(sparse.linalg.norm(S) / np.linalg.norm(rows))
        return 1.0 / size if size > 0 else 1.0

    def _fit_rows(self, A: FloatArray) -> FloatArray:
        scores = super()._fit_rows(A)
        objective, W = self.model_.problem.objective, self.model_.factors.W
        held = np.sort(np.square(W).sum(axis=1))[::-1].cumsum()
        self.details_ = {
            "norm_rank_correlation": float(stats.spearmanr(scores, np.linalg.norm(A, axis=1)).statistic),
            "rows_holding_most": float(np.searchsorted(held, _MOST_OF_W * held[-1]) + 1),
            "structure_ratio": objective.terms.norm_S / objective.norm_A if objective.norm_A > 0 else 0.0,
        }
        return scores


def _tree(kind: Kind) -> Callable[[FloatArray], SparseMatrix]:
    return lambda A: similarity(spanning_tree_of_comparable(A), kind, duplicates="floor")


def _all_pairs(A: FloatArray) -> PathSimilarity:
    tree = spanning_tree_of_comparable(A)
    return PathSimilarity(Tree(tree.edges, floor_lengths(tree.lengths)))


_GRAPHS: dict[str, Callable[[FloatArray], Any]] = {
    "tree": _tree("inverse"),
    "tree, all pairs": _all_pairs,
    "tree, 0-1": _tree("binary"),
    "tree, normalized": _tree("normalized"),
    "5 nearest, 0-1": binary_knn_graph,
    "gaussian": lambda A: sparse.csr_array(gaussian_graph(A)),
    "sparse gaussian": self_tuning_graph,
}


class CaiGNMF:
    """GNMF by the multiplicative steps of its authors, without a bound on H. Ahmed et al. (2021), eq:GNMF; Cai (2011).

    Ten random starts, thirty steps of each, and the best goes on. The objective has no minimiser: it falls for ever as
    (W/c, cH), so that `max_iter` is a part of the method. Training rows only; each column is to be within [0, 1].

    Parameters
    ----------
    n_components, penalty, n_neighbors : as in `penstock.GNMF`
    max_iter : int, default=100
        Steps in all, of which the first thirty are those of the starts.
    n_starts : int, default=10
    random_state : int or None, default=None

    Attributes
    ----------
    scores_ : array of shape (n,)
    factors_ : Factors

    >>> X = np.random.default_rng(0).random((80, 3))
    >>> X[7] = [1, 0, 9]
    >>> int(np.argmax(CaiGNMF(1, random_state=0).fit(X).scores_))
    7
    """

    _starting_steps: ClassVar[int] = 30

    def __init__(
        self,
        n_components: int = 5,
        penalty: float = 100.0,
        n_neighbors: int = 5,
        max_iter: int = 100,
        n_starts: int = 10,
        random_state: int | None = None,
    ) -> None:
        self.n_components = n_components
        self.penalty = penalty
        self.n_neighbors = n_neighbors
        self.max_iter = max_iter
        self.n_starts = n_starts
        self.random_state = random_state

    def fit(self, X: Any, y: Any = None) -> Self:
        A = np.ascontiguousarray(X, dtype=np.float64)
        S = binary_knn_graph(A, self.n_neighbors)
        objective, rng, first = gnmf(A, S, self.penalty), np.random.default_rng(self.random_state), self._starting_steps
        starts = [_gnmf_steps(A, S, self.penalty, self._start(A, rng), first) for _ in range(self.n_starts)]
        best = min(starts, key=objective.value)
        self.factors_ = _gnmf_steps(A, S, self.penalty, best, max(0, self.max_iter - first))
        self.scores_: FloatArray = residual_scores(A, self.factors_.W, self.factors_.H)
        return self

    def _start(self, A: FloatArray, rng: np.random.Generator) -> Factors:
        W, H = rng.random((len(A), self.n_components)), rng.random((self.n_components, A.shape[1]))
        size = np.linalg.norm(H, axis=1)
        return Factors(W * size, H / size[:, None])


def _gnmf_steps(A: FloatArray, S: SparseMatrix, penalty: float, factors: Factors, steps: int) -> Factors:
    """W ← W∘(AHᵀ+λSW)/(WHHᵀ+λDW), H ← H∘(WᵀA)/(WᵀWH)."""
    W, H = factors.W, factors.H
    degree = np.asarray(S.sum(axis=1)).reshape(-1, 1)
    for _ in range(steps):
        rise = W @ (H @ H.T) + penalty * degree * W
        W = np.maximum(W * (A @ H.T + penalty * (S @ W)) / np.maximum(rise, _FLOOR), _FLOOR)
        H = np.maximum(H * (W.T @ A) / np.maximum((W.T @ W) @ H, _FLOOR), _FLOOR)
    return Factors(W, H)


class MedianDistance:
    """Score rows by the distance from the median of every column. A control.

    >>> MedianDistance().fit([[0.0], [1.0], [5.0]]).scores_.tolist()
    [1.0, 0.0, 4.0]
    """

    def fit(self, X: Any, y: Any = None) -> Self:
        A = np.asarray(X, dtype=np.float64)
        self.scores_: FloatArray = np.linalg.norm(A - np.median(A, axis=0), axis=1)
        return self


class PCAResidual:
    """Score rows by their distance from the plane of the first K principal components. A control.

    >>> PCAResidual(1).fit([[0.0, 0.0], [1.0, 1.0], [2.0, 2.0]]).scores_.round(9).tolist()
    [0.0, 0.0, 0.0]
    """

    def __init__(self, n_components: int = 5) -> None:
        self.n_components = n_components

    def fit(self, X: Any, y: Any = None) -> Self:
        A = np.asarray(X, dtype=np.float64)
        plane = PCA(min(self.n_components, *A.shape), svd_solver="full").fit(A)
        self.scores_: FloatArray = np.linalg.norm(A - plane.inverse_transform(plane.transform(A)), axis=1)
        return self


class BestLoMST:
    """LoMST at the k in 2..50 that finds the most, the smallest of several. Ahmed et al. (2021), section 5.3.

    An oracle, not a detector: it looks at the truth, and scores training rows only.

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
        near, _ = nearest_neighbors(A, largest)
        lengths = local_tree_lengths(plain_frame(A).scale(A), near, largest)
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
