"""NS-NMF, the paper's detector, and its Laplacian form."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import KW_ONLY
from typing import Annotated, Any, ClassVar, Literal

import numpy as np

from penstock._parameters import estimator, number
from penstock._types import FloatArray, SparseMatrix, Tree
from penstock.detectors._base import Copies
from penstock.detectors._factor_base import FactorDetector, Problem, row_maxima
from penstock.detectors._packing import TREE, unpack_tree
from penstock.factor.objectives import Objective, laplacian_nsnmf, nsnmf
from penstock.graph.edges import shortest_edges, tree_among
from penstock.graph.paths import PathSimilarity
from penstock.graph.similarities import TreeKind, floor_lengths, similarity
from penstock.scoring import residual_scores
from penstock.storage import Record, pack_fields

Duplicates = Literal["collapse", "zero", "floor"]


@estimator
class _TreeDetector(FactorDetector):
    """A factorisation with a structure term over the minimum spanning tree."""

    _: KW_ONLY
    alpha: Annotated[float, number(0.0, above=True)] = 0.8
    similarity: TreeKind = "inverse"
    duplicates: Duplicates = "collapse"
    score_kind: Literal["residual", "structural"] = "residual"
    graph: Any = None

    _needs_tree: ClassVar[bool] = True

    @property
    def _merges_copies(self) -> bool:  # type: ignore[override]
        return self.duplicates == "collapse"

    @property
    def tree_(self) -> Tree:
        """The minimum spanning tree of all training rows."""
        if self.model_.tree is None:
            raise AttributeError(
                f"{type(self).__name__} has no tree_: it was fitted to a graph of your own (similarity_), and no "
                f"spanning tree was computed."
            )
        return self.model_.tree

    def _pose(self, rows: FloatArray, copies: Copies, tree: Tree | None) -> Problem:
        assert tree is not None
        among = tree_among(tree, copies.kept)
        if self.duplicates != "zero":
            # Once copies are merged, an edge of length 0 joins rows that agree wherever both have a value, and no more.
            among = Tree(among.edges, floor_lengths(among.lengths))
        S = PathSimilarity(among) if self.similarity == "path" else similarity(among, self.similarity)
        strongest = row_maxima(S)
        reach = shortest_edges(tree)[copies.kept]
        if self.similarity == "path":  # of a row's place, where other rows may be, too
            reach = np.divide(1.0, strongest, out=reach, where=strongest > 0)
        return Problem(self._objective(rows, S), reach, strongest, decays=self.similarity != "binary")

    def _score_rows(self, A: FloatArray, A_clipped: FloatArray) -> FloatArray:
        placed, around = self._place(A_clipped)
        return residual_scores(A, placed if self.score_kind == "residual" else around, self.model_.factors.H)

    def _pack_model(self) -> dict[str, Any]:
        tree = self.model_.tree
        return {"tree": None if tree is None else pack_fields(tree, TREE), "factorisation": super()._pack_model()}

    def _unpack_model(self, record: Record) -> None:
        record.require_fields("tree", "factorisation")
        packed = record.optional_part("tree")  # None if it was fitted to a graph of the user's
        tree = None if packed is None else unpack_tree(packed, len(self.scores_))
        self._unpack_factorisation(record.part("factorisation"), tree)


@estimator
class NSNMF(_TreeDetector):
    """Neighbourhood-structure-assisted NMF. Ahmed et al. (2021), eq:main.

    A minimum spanning tree joins near rows, S holds the similarity of rows that it joins, and
    ‖S−WWᵀ‖² + alpha·‖A−WH‖² + gamma·(‖W‖²+‖H‖²) is minimised over W, H ≥ 0. What cannot be rebuilt from the latent
    groups is anomalous: the score of a row is ‖a − wH‖.

    Parameters
    ----------
    n_components : int, default=5
        K, the number of latent groups.
    alpha : float, default=0.8
        Weight of the attributes against the structure.
    gamma : float, default=0.2
        Weight of the ridge term, which also pins the scale of W and H.
    similarity : {"inverse", "binary", "relative", "normalized", "path"}, default="inverse"
        How lengths become similarities (`penstock.similarity`); "inverse" is the paper's. It has no upper bound:
        often a few very near rows take nearly all of W, `explained_` is near 0, and a score is little more than the
        norm of the row, of which there is a `penstock.CollapsedFactorsWarning`. "normalized" has a bound. "path" makes
        all rows similar, by 1/length of the path between them: it holds W together where "inverse" collapses. No matrix
        is made, but for `BlockSGD` and `RowBlocks`, which take at most 5,000 rows with it.
    duplicates : {"collapse", "zero", "floor"}, default="collapse"
        What to do with rows that are equal. "collapse" fits them once and gives every copy the same score; "zero" is
        the paper's formula to the letter, which gives an edge of length 0 similarity 0 and equal rows different scores;
        "floor" counts the length as the shortest positive one. Rows with missing values are equal if they miss the same
        ones; rows that only agree where both have a value are not, and "collapse" counts the length between them as
        "floor" does.
    solver : "auto" or settings, default="auto"
        "auto" is exact coordinate descent from eigenvectors, `Coordinate()` of `penstock.factor`. Settings from there
        choose otherwise: `Multiplicative()`, `BlockSGD()` (the paper's Algorithm 1); for many rows and several cores
        `RowBlocks()`.
    score_kind : {"residual", "structural"}, default="residual"
        "residual" is the paper's ‖a − wH‖; "structural" rebuilds a row from the weights of its neighbours only.
    contamination : "auto", float in (0, 0.5] or threshold, default="auto"
        The share of rows to flag; "auto" flags above mean + 3 standard deviations of the unflagged scores.
    scale : {"minmax", None}, default="minmax"
        Take each column to [0, 1] first, as the paper does. With None the data must be non-negative.
    max_iter, tol : int, float
        Stop after so many iterations, or when the KKT residual is at most `tol`.
    random_state : int, RandomState or None, default=None
        The same seed gives the same result on any number of threads. With solver "auto" it hardly matters: the search
        for eigenvectors begins with random columns.
    graph : array-like or sparse of shape (n, n), or None, default=None
        Similarities of your own between the n rows passed to `fit`, instead of those of the tree: ≥ 0, symmetric up to
        rounding (1e-8 of the largest; then made symmetric). No tree is computed, copies of rows are not merged, and
        `similarity` and `duplicates` have no effect. A new row is joined to the nearest fitted row, as always. A saved
        file holds the similarities in the fitted model, not this parameter, which a loaded detector has at its default.
    init : (W, H) or None, default=None
        A start of your own, in scaled units: W of shape (n, n_components), H of shape (n_components, p), ≥ 0. The
        solver goes on from there, and draws no other start. A zero may stay one. Of rows that are equal and fitted
        once, the first one's weights count. Not in saved files.

    Attributes
    ----------
    tree_ : Tree
        The minimum spanning tree of all training rows; none with a `graph`. Rows without a common column are never
        joined.
    components_, embedding_, similarity_, objective_, explained_, n_iter_, … :
        As in `FactorDetector`.

    Examples
    --------
    >>> import numpy as np
    >>> from penstock import NSNMF
    >>> X = np.random.default_rng(0).normal(size=(200, 3))
    >>> X[17] += 9
    >>> detector = NSNMF(n_components=2, similarity="normalized", random_state=0).fit(X)
    >>> detector.top(1).index.tolist(), round(detector.explained_, 2)
    ([17], 0.76)

    A graph of one's own, here of rows that follow each other:

    >>> from scipy import sparse
    >>> chain = sparse.diags_array([np.ones(199), np.ones(199)], offsets=[-1, 1])
    >>> NSNMF(n_components=2, graph=chain, random_state=0).fit(X).top(1).index.tolist()
    [17]
    """

    _: KW_ONLY
    gamma: Annotated[float, number(0.0)] = 0.2

    def _objective(self, A: FloatArray, S: SparseMatrix | PathSimilarity) -> Objective:
        return nsnmf(A, S, self.alpha, self.gamma)

    def _fit_steps(self) -> tuple[Callable[..., Any] | None, Callable[..., Any]] | None:
        return self._task, self._install


class LaplacianNSNMF(_TreeDetector):
    """The Laplacian form of NS-NMF, alpha·‖A−WH‖² + tr(WᵀLW), fitted offline. Ahmed et al. (2021), eq:stream.

    The objective of the paper's online algorithm. Rows of H are bounded by the mean row norm of A, without which it has
    no minimiser; that also pins the scale, so there is no `gamma`. Attributes are those of `NSNMF`.

    Parameters
    ----------
    n_components, alpha, similarity, duplicates, solver, score_kind : as in `NSNMF`
    contamination, scale, max_iter, tol, random_state, graph, init : as in `NSNMF`

    Examples
    --------
    >>> import numpy as np
    >>> X = np.random.default_rng(0).normal(size=(60, 3))
    >>> X[5] += 9
    >>> LaplacianNSNMF(n_components=2, random_state=0).fit(X).top(1).index.tolist()
    [5]
    """

    def _objective(self, A: FloatArray, S: SparseMatrix | PathSimilarity) -> Objective:
        return laplacian_nsnmf(A, S, self.alpha)
