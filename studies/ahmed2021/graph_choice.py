"""One factorisation with the form of its structure term and its graph as parameters.

The paper derives (eq:equivalence2) that GNMF and NS-NMF are practically the same if they use the same similarities, so
that the graph makes the difference. Here both can be had in all combinations, everything else equal.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal

from scipy import sparse

from penstock._parameters import check_choice, check_number
from penstock._types import FloatArray, SparseMatrix, Tree
from penstock.detectors import Copies, FactorDetector, Problem, nearest_distances, row_maxima
from penstock.factor.objectives import laplacian_nsnmf, nsnmf
from penstock.factor.solve import MAX_ITER, TOL, Settings
from penstock.graph.mst import spanning_tree_of_comparable
from penstock.graph.similarities import binary_knn_graph, gaussian_graph, self_tuning_graph, similarity
from penstock.thresholds import Contamination

Form = Literal["symmetric", "laplacian"]
Graph = Literal["tree", "tree, 0-1", "5 nearest, 0-1", "gaussian", "sparse gaussian"]


class GraphChoice(FactorDetector):
    """NMF with a structure term of either form on any of the graphs, for the study.

    Parameters
    ----------
    form : {"symmetric", "laplacian"}
        ‖S−WWᵀ‖² with the ridge term gamma·(‖W‖²+‖H‖²), as in NS-NMF; or tr(WᵀLW) with bounded rows of H, as in the
        online algorithm and in GNMF.
    graph : {"tree", "tree, 0-1", "5 nearest, 0-1", "gaussian", "sparse gaussian"}
        The minimum spanning tree with similarities 1/length, or 1; the five nearest neighbours, 0-1, as in GNMF; the
        full Gaussian graph, as in SNMF (up to 12,000 rows), or its sparse self-tuning one.
    n_components, alpha, gamma, solver, contamination, scale, max_iter, tol, random_state :
        As in `NSNMF`. Equal rows are fitted once.

    >>> import numpy as np
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
        solver: Literal["auto"] | Settings = "auto",
        contamination: Contamination = "auto",
        scale: Literal["minmax"] | None = "minmax",
        max_iter: int = MAX_ITER,
        tol: float = TOL,
        random_state: Any = None,
    ) -> None:
        super().__init__(n_components, solver, contamination, scale, max_iter, tol, random_state)
        self.form = form
        self.graph = graph
        self.alpha = alpha
        self.gamma = gamma

    def check_parameters(self) -> None:
        super().check_parameters()
        check_choice("form", self.form, ("symmetric", "laplacian"))
        check_choice("graph", self.graph, tuple(_GRAPHS))
        check_number("alpha", self.alpha, least=0.0, above=True)
        check_number("gamma", self.gamma, least=0.0)

    def _pose(self, rows: FloatArray, copies: Copies, tree: Tree | None) -> Problem:
        S = _GRAPHS[self.graph](rows) if len(rows) > 1 else sparse.csr_array((1, 1))
        objective = (
            nsnmf(rows, S, self.alpha, self.gamma) if self.form == "symmetric" else laplacian_nsnmf(rows, S, self.alpha)
        )
        return Problem(objective, nearest_distances(rows), row_maxima(S))


def _tree(A: FloatArray) -> SparseMatrix:
    return similarity(spanning_tree_of_comparable(A), "inverse", duplicates="floor")


def _plain_tree(A: FloatArray) -> SparseMatrix:
    return similarity(spanning_tree_of_comparable(A), "binary", duplicates="floor")


def _gaussian(A: FloatArray) -> SparseMatrix:
    return sparse.csr_array(gaussian_graph(A))


_GRAPHS: dict[str, Callable[[FloatArray], SparseMatrix]] = {
    "tree": _tree,
    "tree, 0-1": _plain_tree,
    "5 nearest, 0-1": binary_knn_graph,
    "gaussian": _gaussian,
    "sparse gaussian": self_tuning_graph,
}
