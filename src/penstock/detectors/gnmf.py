"""Graph-regularised NMF (Cai et al. 2011) as a detector."""

from __future__ import annotations

from dataclasses import KW_ONLY
from typing import Annotated, Any, ClassVar

from scipy import sparse

from penstock._parameters import estimator, number, whole
from penstock._types import FloatArray, SparseMatrix, Tree
from penstock.detectors._base import Copies
from penstock.detectors._factor_base import FactorDetector, Problem, nearest_distances, row_maxima
from penstock.factor.objectives import Objective, gnmf
from penstock.graph.similarities import binary_knn_graph


@estimator
class GNMF(FactorDetector):
    """NMF regularised by a nearest-neighbour graph: ‖A−WH‖² + penalty·tr(WᵀLW). Ahmed et al. (2021), eq:GNMF.

    With the default penalty of 100 (its authors' λ) the weights of joined rows become nearly equal, and a score is
    close to the distance from the mean of the row's part of the graph. Rows of H are bounded by the mean row norm of A,
    without which the objective has no minimiser. Equal rows are fitted once and share a score.

    Parameters
    ----------
    n_components, solver, contamination, scale, max_iter, tol, random_state, init : as in `NSNMF`
    penalty : float, default=100.0
        λ, the weight of the graph; 0 makes it NMF.
    n_neighbors : int, default=5
        q, the neighbours that each row is joined to; fewer, where fewer rows share a column with it.
    graph : array-like or sparse of shape (n, n), or None, default=None
        A graph of your own instead, as in `NSNMF`.

    Examples
    --------
    >>> import numpy as np
    >>> X = np.random.default_rng(0).normal(size=(80, 3))
    >>> X[7] += 9
    >>> GNMF(n_components=2, random_state=0).fit(X).top(1).index.tolist()
    [7]
    """

    _decays: ClassVar[bool] = False

    _: KW_ONLY
    penalty: Annotated[float, number(0.0)] = 100.0
    n_neighbors: Annotated[int, whole(1)] = 5
    graph: Any = None

    def _pose(self, rows: FloatArray, copies: Copies, tree: Tree | None) -> Problem:
        # A single row (all were equal) has no neighbour.
        S = binary_knn_graph(rows, self.n_neighbors) if len(rows) > 1 else sparse.csr_array((1, 1))
        return Problem(self._objective(rows, S), nearest_distances(rows), row_maxima(S), self._decays)

    def _objective(self, A: FloatArray, S: SparseMatrix) -> Objective:
        return gnmf(A, S, self.penalty)
