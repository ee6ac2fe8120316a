"""The detector to begin with: four views of a row, of which the two highest count."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import KW_ONLY, dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Annotated, Any, ClassVar

import numpy as np
from sklearn.utils.validation import check_is_fitted

from penstock._parameters import check_share, estimator
from penstock._types import FloatArray, Tree
from penstock.certainty import FOLLOWING, TRAINING_ROWS, RowRate
from penstock.detectors._base import COPIES, BaseDetector, Copies, bounded, unpack_copies
from penstock.detectors._packing import TREE, unpack_tree
from penstock.detectors.views import VIEWS, Composite, counted, learn_composite, total_of, unpack_views
from penstock.factor.start import check_random_source, draw_seed, draws_from
from penstock.graph.edges import nearest_by_tree, tree_among
from penstock.graph.mst import spanning_tree_of_comparable
from penstock.graph.rows import different_rows, find_unconnected, first_copies
from penstock.graph.search import RowSearch
from penstock.storage import Record, pack_fields, read_fields

if TYPE_CHECKING:
    import pandas as pd


_BLOCKS = 3  # of consecutive rows, each scored by views of the others; with more, later rows are farther off
_SOON = 0.01  # of the rows: rows so few rows apart are close in time
_OFTEN = 0.125  # of the rows have their nearest one so close: a fiftieth of independent ones do
_BETWEEN = 0.025  # of the rows, on each side of a block: not fitted to either, as they are close to its rows
_FEWEST_ROWS = 100
_MOST_NEXT = 0.5  # of the rows are most like the one before or after: a later one would be like none fitted to


@dataclass(frozen=True, eq=False)
class ViewsModel:
    """The fitted state of a `Detector`."""

    copies: Copies  # which training rows were fitted
    tree: Tree  # the spanning tree of all training rows
    views: Composite  # the four views of any row
    parts: FloatArray  # (n, 4) of the training rows

    @cached_property
    def out_of_sample_scores(self) -> FloatArray:
        """Scores of the training rows as if each were new.

        Those that each has without itself, unless rows are close to those before and after them: then by views of
        other blocks of rows, and not of the rows next to the block. Costs two to three times the fit.
        """
        scores, n = bounded(total_of(counted(self.parts))), len(self.parts)
        kept, between = self.copies.kept, int(_BETWEEN * n)
        is_soon = np.abs(kept - kept[self.views.plain.joins]) <= max(1, int(_SOON * n))
        if n < _FEWEST_ROWS or is_soon.mean() <= _OFTEN:
            return scores
        A = np.asarray(self.views.plain.search.rows)[self.copies.copy_of]
        numbers = np.arange(n)
        found = []
        for block in np.array_split(numbers, _BLOCKS):
            others = np.ascontiguousarray(A[(numbers < block[0] - between) | (numbers > block[-1] + between)])
            if np.isnan(others).all(axis=0).any() or find_unconnected(~np.isnan(others)) is not None:
                continue  # a column or a group of rows was read in this block alone: nothing to compare it with
            original = first_copies(others)
            copies = Copies(*different_rows(original))
            tree = tree_among(spanning_tree_of_comparable(others, original), copies.kept)
            views, _ = learn_composite(others, copies.kept, copies.copy_of, tree, np.random.default_rng(0))
            its = total_of(counted(views.parts(A[block])))
            found.append(bounded(its[~np.isnan(its)]))  # NaN: it shares no column with any other
        return np.concatenate(found) if found else scores

    @cached_property
    def rate(self) -> RowRate:
        """How often scores are reached by normal rows."""
        return RowRate.of(self.out_of_sample_scores)

    @cached_property
    def are_following(self) -> bool:
        """Whether most rows are like the one before or after, so that the rate would be far too low for later rows."""
        nearest = nearest_by_tree(self.tree)[0]
        return bool((np.abs(nearest - np.arange(len(nearest))) == 1).mean() > _MOST_NEXT)

    def in_memory(self) -> ViewsModel:
        """Return the same model with arrays that do not lie in files."""
        rows, views = np.array(self.views.plain.search.rows), self.views
        plain = replace(views.plain, search=RowSearch(rows))
        logged = replace(views.logged, search=RowSearch(views.encoding.apply(rows)))
        tree = Tree(np.array(self.tree.edges), np.array(self.tree.lengths))
        return replace(self, tree=tree, views=replace(views, plain=plain, logged=logged))


@dataclass(frozen=True, eq=False)
class ScoreParts:
    """What makes up the scores of some rows.

    parts : DataFrame, rows × views (coarse, fine, local, marginal); the sum of a row is its score, to the last bit. The
        two views that see most in a row count, the others are 0.
    variables : DataFrame, rows × variables: the same, shared out among the variables; the sum of a row is its score to
        rounding.
    shares : dict of DataFrames, one per view: each variable's share of what the view says, summing to 1.
    """

    parts: pd.DataFrame
    variables: pd.DataFrame
    shares: dict[str, pd.DataFrame]


@estimator
class Detector(BaseDetector):
    """Recommended where nothing is known yet: four views of a row, of which the two that see most count.

    - *coarse* and *fine*: how far a row is from the nearest of 4 (of 32) rows drawn at random, averaged over draws;
      copies of a row are drawn as often as they are there.
    - *local*: the edge that joins it to the spanning tree of all others, and how long edges usually are there.
    - *marginal*: readings that are rare for their variable.

    Each is put on a scale on which training rows have mean 0 and standard deviation 1 of the logarithm; the score is
    the sum of the two largest. Nothing is to be tuned, and units do not matter. Why it is made so, what was tried and
    how it compares: docs/which_detector.md and docs/decisions/0015-default-detector.md.

    Training rows are looked at as if they were new (each without itself), so that a new normal row scores like a
    training row, and `false_alarm_rate` means what it says where rows are like independent draws. Rows of a sensor that
    moves slowly are not: those of the training period have near copies a moment earlier and later, new ones do not.
    Where that is so in the training rows, taken in the order given, rates come from blocks of them scored by what
    was fitted to the others. The threshold of `contamination` does not.

    Parameters
    ----------
    contamination : "auto", float in (0, 0.5] or threshold, default="auto"
        See `penstock.thresholds.score_threshold`. `set_false_alarm_rate` is the other way to a threshold.
    scale : "minmax" or None, default="minmax"
        Whether columns are first scaled to [0, 1]; matters for the local view only.
    random_state : int, RandomState or None, default=0
        Seeds the draws. The same seed, the same scores.

    Attributes
    ----------
    tree_ : Tree
        The minimum spanning tree of the training rows.
    parts_ : ndarray of shape (n, 4)
        How odd each training row is in each view.
    model_ : ViewsModel
        All that scoring new rows needs.

    Examples
    --------
    >>> import numpy as np
    >>> X = np.r_[np.random.default_rng(0).normal(size=(200, 2)), [[6.0, 6.0]]]
    >>> detector = Detector().fit(X)
    >>> int(detector.top(1).index[0])
    200
    >>> bool(detector.false_alarm_rate([[6.0, 6.0]])[0] < 0.01 < detector.false_alarm_rate([[0.0, 0.5]])[0])
    True
    """

    _needs_tree: ClassVar[bool] = True
    _merges_copies: ClassVar[bool] = True
    _takes_missing: ClassVar[bool] = True

    _: KW_ONLY
    random_state: Annotated[Any, check_random_source] = 0

    def _fit_rows(self, A: FloatArray) -> FloatArray:
        original = first_copies(A)
        copies = Copies(*different_rows(original))
        tree = spanning_tree_of_comparable(A, original)
        rng = np.random.default_rng(draw_seed(draws_from(self.random_state)))
        views, parts = learn_composite(A, copies.kept, copies.copy_of, tree_among(tree, copies.kept), rng)
        return self._install(ViewsModel(copies, tree, views, parts))

    def _fit_steps(self) -> tuple[Callable[..., Any] | None, Callable[..., Any]] | None:
        return None, self._install

    def _install(self, model: ViewsModel) -> FloatArray:
        """Take over what was computed, and return the scores of the training rows."""
        self.model_ = model
        return total_of(counted(model.parts))

    @property
    def tree_(self) -> Tree:
        """The minimum spanning tree of the training rows."""
        return self.model_.tree

    @property
    def parts_(self) -> FloatArray:
        """(n, 4): how odd each training row is in each view."""
        return self.model_.parts

    def _score_rows(self, A: FloatArray, A_clipped: FloatArray) -> FloatArray:
        return total_of(counted(self.model_.views.parts(A)))

    def explain(self, X: Any) -> ScoreParts:
        """Return which views, and which variables, make the scores of rows what they are.

        Parameters
        ----------
        X : array-like of shape (n, p)

        Returns
        -------
        ScoreParts
        """
        import pandas as pd  # see `top`

        table = self._read_new(X)
        A = self._own_rows(table, X)
        parts, shares = self.model_.views.parts_and_shares(A)
        parts = counted(parts)
        index = getattr(X, "index", None)
        index = index if isinstance(index, pd.Index) else pd.RangeIndex(len(A), name="row")
        names = list(getattr(self, "feature_names_in_", range(self.n_features_in_)))
        frames = {view: pd.DataFrame(shares[:, v], index=index, columns=names) for v, view in enumerate(VIEWS)}
        variables = np.einsum("nv,nvp->np", parts, shares)
        return ScoreParts(
            pd.DataFrame(parts, index=index, columns=list(VIEWS)),
            pd.DataFrame(variables, index=index, columns=names),
            frames,
        )

    def false_alarm_rate(self, X: Any) -> FloatArray:
        """Return how many normal rows score at least as high: 0.001 says that of 1,000 normal rows, one does.

        Measured on the training rows, each looked at without itself; those that are anomalous among them make it larger
        than it is, to the safe side. Of a training row it is only its rank, (rank + 1)/(n + 1), whatever the row is.
        Below 1/(n + 1) it is extrapolated by a Pareto tail, and a guess: fit on several times as many rows as the rate
        is one in. It holds for rows that are like independent draws of the training rows.

        Where an eighth of the training rows have their nearest one within a hundredth of the rows before or after, as
        readings that follow each other in time do, the first call takes several times as long as the fit: blocks of
        training rows are scored by what is fitted to the others. The rate then holds for later rows as long as these
        move in the range of the training rows. A table that is sorted by many small groups looks the same; its rates
        are too high.

        Parameters
        ----------
        X : array-like of shape (n, p)

        Returns
        -------
        ndarray of shape (n,)
        """
        scores = self.anomaly_score(X)
        return self.model_.rate.rate_of(scores)

    def set_false_alarm_rate(self, rate: float) -> Detector:
        """Choose the threshold so that this share of normal rows is flagged, without fitting again.

        Parameters
        ----------
        rate : float in (0, 1)

        Returns
        -------
        self

        Examples
        --------
        >>> import numpy as np
        >>> rng = np.random.default_rng(0)
        >>> detector = Detector().fit(rng.normal(size=(2000, 3))).set_false_alarm_rate(0.01)
        >>> bool(0.005 < (detector.predict(rng.normal(size=(5000, 3))) == -1).mean() < 0.02)
        True
        """
        check_is_fitted(self)
        check_share("rate", rate)
        self.threshold_ = self.model_.rate.exceeded_at(rate)
        return self

    def _rate(self, *, later: bool) -> RowRate | str:
        if self.model_.are_following:
            return FOLLOWING
        return self.model_.rate if later else TRAINING_ROWS

    def _pack_model(self) -> dict[str, Any]:
        model = self.model_
        return {
            "copies": pack_fields(model.copies, COPIES),
            "tree": pack_fields(model.tree, TREE),
            "parts": model.parts,
            "views": model.views.pack(),
        }

    def _unpack_model(self, record: Record) -> None:
        n = len(self.scores_)
        fields = {"copies": object, "tree": object, "parts": f"n {len(VIEWS)}", "views": object}
        parts = read_fields(record, fields, {"n": n})["parts"]
        copies = unpack_copies(record.part("copies"), n)
        tree = unpack_tree(record.part("tree"), n)
        views = unpack_views(record.part("views"), copies.copy_of, self.n_features_in_)
        self.model_ = ViewsModel(copies, tree, views, parts)
