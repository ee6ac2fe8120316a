"""What all detectors share: the checks of data, the threshold, scikit-learn's signs, and the steps of a fit.

`fit` does everything in one call. A program that holds the rows elsewhere (`penstock.scale`) asks `cluster_plan` for
the steps of a fit as one value, and takes them itself.
"""

from __future__ import annotations

import os
from abc import ABCMeta, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import KW_ONLY, dataclass
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, OutlierMixin
from sklearn.utils.validation import check_is_fitted

from penstock._parameters import check_bounds, check_whole_number, choice, estimator
from penstock._progress import logged_fit
from penstock._types import FloatArray, IndexArray
from penstock.certainty import NO_RATE, EpisodeRate, RowRate
from penstock.detectors._input import (
    check_columns_seen,
    check_comparable,
    check_nonnegative,
    check_rows_seen,
    pandas_index,
    read_table,
)
from penstock.detectors._packing import pack_columns, pack_labels, unpack_columns, unpack_labels
from penstock.detectors._saving import KIND, Saveable
from penstock.graph.rows import shares_seen
from penstock.prepare import SCALING, MinMaxScaling, learn_scaling, unpack_scaling
from penstock.storage import Fields, Record, pack_fields, read_fields, write_state
from penstock.thresholds import Contamination, check_contamination, score_threshold

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True)
class FitNeeds:
    """What has to be known of training rows before a detector can be fitted to them, and what may come."""

    tree: bool  # the minimum spanning tree of all rows
    merge_copies: bool  # rows that are equal are fitted once
    nonnegative: bool  # rows that are not scaled must lie between 0 and `LARGEST_VALUE`
    neighbors: bool  # rows are compared with each other
    missing: bool  # rows may miss values (NaN); they are compared by the columns that both have


@dataclass(frozen=True)
class ClusterPlan:
    """The steps of a fit to rows that lie elsewhere, in the order of the fields; all change the detector itself."""

    needs: FitNeeds
    begin: Callable[..., MinMaxScaling | None]  # (n_rows, minimum, maximum, names): how rows are to be scaled
    pose: Callable[..., Any] | None  # what is to be computed of the rows, if the class says it
    install: Callable[..., Any]  # takes over what was computed
    finish: Callable[..., Any]  # (scores, seen, table): the threshold, and the labels of the rows


@dataclass(frozen=True, eq=False)
class Copies:
    """Which training rows are fitted."""

    kept: IndexArray  # (m,) numbers of the rows that are fitted, ascending
    copy_of: IndexArray  # (n,) for each training row, the place among those of the row that it is or equals


COPIES: Fields = {"kept": "m int >=0 <n", "copy_of": "n int >=0 <m"}


def unpack_copies(record: Record, n: int) -> Copies:
    """Return the copies among n training rows that a file holds."""
    copies = Copies(**read_fields(record, COPIES, {"n": n}))
    if not np.array_equal(copies.copy_of[copies.kept], np.arange(len(copies.kept))):
        raise record.error("copy_of", "the number of each fitted row for that row itself")
    return copies


_FITTED: Fields = {
    "columns": object, "row_labels": object, "scaling": object, "scores": "n", "seen": ("?", "n >=0 <=1"),
    "threshold": "float inf", "model": object,
}  # fmt: skip


class TrainingScores(Saveable, OutlierMixin):  # type: ignore[misc]
    """What a detector does with scores: scikit-learn's methods and signs, the list, a drawing, another threshold.

    The only class that flips signs. A subclass has `anomaly_score`, and sets `scores_`, `threshold_` and `_row_labels`
    (the index of a pandas table, or None) in `fit`.
    """

    scores_: FloatArray
    threshold_: float
    _row_labels: Any

    @abstractmethod
    def anomaly_score(self, X: Any) -> FloatArray:
        """Return how anomalous each row of X is: the higher, the more."""

    def score_samples(self, X: Any) -> FloatArray:
        """Return −anomaly_score(X), scikit-learn's sign: the lower, the more anomalous.

        Parameters
        ----------
        X : array-like of shape (n, p)

        Returns
        -------
        ndarray of shape (n,)
        """
        return 0.0 - self.anomaly_score(X)

    def decision_function(self, X: Any) -> FloatArray:
        """Return `score_samples(X)` − `offset_`: negative for flagged rows.

        Parameters
        ----------
        X : array-like of shape (n, p)

        Returns
        -------
        ndarray of shape (n,)
        """
        return self._decide(self.anomaly_score(X))

    def predict(self, X: Any) -> NDArray[np.int64]:
        """Return −1 for rows whose score is above the threshold, 1 for the others.

        Parameters
        ----------
        X : array-like of shape (n, p)

        Returns
        -------
        ndarray of shape (n,)
        """
        return self._verdicts(self.anomaly_score(X))

    @property
    def offset_(self) -> float:
        """−threshold_, scikit-learn's word for it; setting one sets the other."""
        return 0.0 - self.threshold_

    @offset_.setter
    def offset_(self, value: float) -> None:
        self.threshold_ = 0.0 - float(value)

    def _decide(self, scores: FloatArray) -> FloatArray:
        with np.errstate(over="ignore"):
            return self.threshold_ - scores

    def _verdicts(self, scores: FloatArray) -> NDArray[np.int64]:
        return np.where(self._decide(scores) < 0, -1, 1)

    def _choose_threshold(self, contamination: Contamination) -> float:
        return score_threshold(self.scores_[~np.isnan(self.scores_)], contamination)

    def _check_has_scores(self) -> None:
        """Raise a NotFittedError if there are no scores of training rows."""
        check_is_fitted(self)

    def set_contamination(self, contamination: Contamination) -> Self:
        """Choose another threshold from the training scores, without fitting again.

        Parameters
        ----------
        contamination : "auto", float in (0, 0.5] or threshold
            An object of `penstock.thresholds` learns nothing here: a copy of it sees the scores, in the order of rows.

        Returns
        -------
        self
        """
        self._check_has_scores()
        self.threshold_ = self._choose_threshold(contamination)
        if hasattr(self, "contamination"):
            self.contamination = contamination
        return self

    def top(self, n: int = 10) -> pd.DataFrame:
        """Return the n training rows with the highest scores, highest first, ties in order of rows (the paper's list).

        Parameters
        ----------
        n : int, default=10

        Returns
        -------
        DataFrame
            Columns `rank` (from 1) and `score`; the index is that of the pandas DataFrame the detector was fitted on,
            else row numbers.
        """
        import pandas as pd  # a third of a second that a first fit need not wait for

        self._check_has_scores()
        check_whole_number("n", n, least=1)
        n_scored = int((~np.isnan(self.scores_)).sum())  # rows without a score come last
        best = np.argsort(-self.scores_, kind="stable")[: min(n, n_scored)]
        labels = pd.RangeIndex(len(self.scores_), name="row") if self._row_labels is None else self._row_labels
        return pd.DataFrame({"rank": np.arange(1, len(best) + 1), "score": self.scores_[best]}, index=labels[best])

    def _rate(self, *, later: bool) -> EpisodeRate | RowRate | str:
        """Return how often scores are reached by chance, or why that is not known."""
        return NO_RATE

    def expected_by_chance(self, scores: Any, n_rows: int | None = None, *, later: bool = True) -> FloatArray:
        """Return how many as high as each score normal data would show: episodes of rows in time, rows of a table.

        Parameters
        ----------
        scores : array-like
            Of rows that were not fitted to (`anomaly_score`; in time `score_series`); of `scores_` if not `later`.
        n_rows : int, default=None
            The size of the period or table; as many rows as were fitted to if None.
        later : bool, default=True
            Whether the scores are of rows that were not fitted to.

        Returns
        -------
        ndarray
            NaN where that is not known, for the reason that `chance_unknown` gives.

        Examples
        --------
        >>> import numpy as np
        >>> from penstock.detectors import Detector, NormScore
        >>> X = np.random.default_rng(0).normal(size=(1000, 3))
        >>> detector = Detector().fit(X)
        >>> usual, high = detector.expected_by_chance(detector.anomaly_score([[0.0, 0.0, 1.0], [9.0, 9.0, 9.0]]), 100)
        >>> bool(usual > 10), bool(high < 0.05), NormScore().fit(X).chance_unknown()
        (True, True, 'This method gives scores without a rate.')
        """
        self._check_has_scores()
        rate, values = self._rate(later=later), np.asarray(scores, dtype=np.float64)
        if isinstance(rate, str):
            return np.full(values.shape, np.nan)
        expected = rate.expected(values, len(self.scores_) if n_rows is None else n_rows)
        return np.where(np.isnan(values), np.nan, expected)

    def chance_unknown(self, *, later: bool = True) -> str:
        """Return why `expected_by_chance` is not known, in a sentence.

        Parameters
        ----------
        later : bool, default=True
            As in `expected_by_chance`.

        Returns
        -------
        str
            "" where it is known.
        """
        self._check_has_scores()
        rate = self._rate(later=later)
        return rate if isinstance(rate, str) else ""

    def plot(self, n: int = 10) -> Any:
        """Draw the scores of the training rows, the threshold and the n highest, with matplotlib (extra `plots`).

        Parameters
        ----------
        n : int, default=10
            How many of the highest scores are marked; as in `top`.

        Returns
        -------
        matplotlib Figure
        """
        from penstock.report.figures import plot_training_scores

        top = self.top(n)
        return plot_training_scores(self.scores_, self.threshold_, top, self._row_labels).figure

    def save(self, path: str | os.PathLike[str], *, labels: bool = True) -> None:
        """Save the detector, fitted or not, to a file for `penstock.load`: docs/saving.md.

        The file appears wholly or not at all. Attributes that you added yourself are not in it.

        Parameters
        ----------
        path : str or PathLike
        labels : bool, default=True
            Whether the index of the rows is saved too; without it, `top` of the loaded detector shows row numbers.
        """
        write_state(path, KIND, self._whole_state(labels=labels))


@estimator
class BaseDetector(TrainingScores, BaseEstimator, metaclass=ABCMeta):  # type: ignore[misc]
    """Score rows: the higher the score, the more anomalous; rows above the threshold are flagged.

    The only class that validates data. High means anomalous, but for `score_samples` and `decision_function`,
    where low does.

    A subclass implements `_fit_rows` and `_score_rows`; if it has parameters of its own, it is a dataclass with a field
    for each (`penstock._parameters`); and `_pack_model` and `_unpack_model`, if it is to be saved.

    A detector that takes missing values (NaN; `_takes_missing`) leaves them out: docs/missing_values.md.

    Every detector promises: scores are finite; a row's score does not depend on the rows scored with it; a row that
    equals a training row gets that row's training score (the first one's, where a parameter says that equal training
    rows are treated as different); with scale="minmax", data whose columns are all constant score 0.

    Attributes
    ----------
    scores_ : ndarray of shape (n,)
        Anomaly scores of the training rows.
    observed_fraction_ : ndarray of shape (n,)
        The share of each training row's values that are not missing.
    threshold_ : float
        Rows with a higher score are flagged. Set it to change the verdicts after fitting.
    offset_ : float
        −threshold_, scikit-learn's word for it; setting one sets the other.
    scaling_ : MinMaxScaling or None
        How columns were taken to [0, 1].
    n_features_in_, feature_names_in_ :
        As in scikit-learn.
    """

    # With a graph of the user's own there is no tree, and no copies are merged.
    _needs_tree: ClassVar[bool] = False
    _merges_copies: ClassVar[bool] = False  # equal rows are fitted once, so that they get one score
    _needs_nonnegative: ClassVar[bool] = False  # with scale=None, negative values are refused
    _takes_missing: ClassVar[bool] = False
    _takes_sparse: ClassVar[bool] = False  # sparse tables are written out
    _compares_rows: ClassVar[bool] = True  # chains of rows that share a column have to join all training rows

    _: KW_ONLY
    contamination: Annotated[Contamination, check_contamination] = "auto"
    scale: Annotated[str | None, choice("minmax", None)] = "minmax"

    @abstractmethod
    def _fit_rows(self, A: FloatArray) -> FloatArray:
        """Learn from the rows of A and return their anomaly scores.

        A is clean, C-contiguous float64 and the detector's own (it may be kept, and may be changed). If the class takes
        missing values, it may hold NaN, but every row and every column has a number; and if it compares rows, chains
        of rows that share a column join them all.
        """

    @abstractmethod
    def _score_rows(self, A: FloatArray, A_clipped: FloatArray) -> FloatArray:
        """Return anomaly scores of new rows, each by itself to the last bit.

        A_clipped has values outside the fitted range brought back to [0, 1], for the factorisation; A has not, for
        the residual. With scale=None the two are the same.
        """

    def check_parameters(self) -> None:
        """Raise a ValueError if a parameter is out of bounds: those declared, and how they go together."""
        check_bounds(self)

    def _fewest_rows(self) -> int:
        """Return how many rows fitting needs, given the parameters."""
        return 2

    def fit(self, X: Any, y: Any = None) -> Self:
        """Learn what is normal from the rows of X.

        Parameters
        ----------
        X : array-like of shape (n, p)
            Numbers; a pandas DataFrame gives its index to `top`.
        y : ignored
            For scikit-learn.

        Returns
        -------
        self
        """
        with restore_on_failure(self), logged_fit(type(self).__name__):
            self.check_parameters()
            table = read_table(self, X, reset=True, allow_missing=self._takes_missing)
            self._check_row_count(len(table))
            seen = None
            if np.isnan(table).any():
                check_rows_seen(table, X)
                check_columns_seen(table, X)
                if self._compares_rows:
                    check_comparable(table, X)
                seen = shares_seen(table)
            self.scaling_: MinMaxScaling | None = learn_scaling(table) if self.scale == "minmax" else None
            scores = self._fit_rows(self._own_rows(table, X))
            return self._finish_fit(scores, seen=seen, table=X)

    def _check_fit_elsewhere(self) -> None:
        """Raise a ValueError if a parameter is of use to `fit` alone."""

    def _begin_fit(
        self, n_rows: int, minimum: FloatArray, maximum: FloatArray, names: Sequence[str] | None = None
    ) -> MinMaxScaling | None:
        """Note a table that is read elsewhere: the size, the range of each column and their names."""
        self.check_parameters()
        self._check_fit_elsewhere()
        self._check_row_count(n_rows)
        self.n_features_in_ = len(minimum)
        self.__dict__.pop("feature_names_in_", None)
        if names is not None:
            self.feature_names_in_ = np.array(names, dtype=object)
        self.scaling_ = MinMaxScaling(minimum, maximum) if self.scale == "minmax" else None
        return self.scaling_

    def _finish_fit(self, scores: FloatArray, *, seen: FloatArray | None = None, table: Any = None) -> Self:
        """Take over the scores of the training rows and choose the threshold; nothing is missing if `seen` is None."""
        self.scores_ = bounded(scores)
        self.observed_fraction_ = np.ones(len(scores)) if seen is None else seen
        self.threshold_ = self._choose_threshold(self.contamination)
        self._row_labels = pandas_index(table)
        return self

    def _fit_steps(self) -> tuple[Callable[..., Any] | None, Callable[..., Any]] | None:
        """Return `pose` and `install` of a `ClusterPlan`; None if rows that lie elsewhere cannot be fitted."""
        return None

    def fit_predict(self, X: Any, y: Any = None) -> NDArray[np.int64]:
        """Fit, and return the verdicts on the training rows: −1 for flagged, 1 for the others.

        Parameters
        ----------
        X : array-like of shape (n, p)
        y : ignored

        Returns
        -------
        ndarray of shape (n,)
        """
        return self._verdicts(self.fit(X).scores_)

    def anomaly_score(self, X: Any) -> FloatArray:
        """Return how anomalous each row of X is: the higher, the more.

        Parameters
        ----------
        X : array-like of shape (n, p)

        Returns
        -------
        ndarray of shape (n,)
        """
        return self._score_table(self._read_new(X), X)

    def observed_fraction(self, X: Any) -> FloatArray:
        """Return the share of each row's values that are not missing, from 0 to 1.

        A score is scaled up from the values that are there to all of them; the fewer there are, the less it says.

        Parameters
        ----------
        X : array-like of shape (n, p)

        Returns
        -------
        ndarray of shape (n,)
        """
        check_is_fitted(self)
        return shares_seen(read_table(self, X, reset=False, allow_missing=self._takes_missing))

    def _has_state(self) -> bool:
        return "scores_" in vars(self)

    def _pack(self, *, labels: bool = True) -> dict[str, Any]:
        self._check_row_count(len(self.scores_))  # parameters may have been changed since the fit
        if np.isnan(self.threshold_):
            raise ValueError("threshold_ is NaN. Set it to a number, or call set_contamination, before saving.")
        return {
            "columns": pack_columns(self),
            "row_labels": pack_labels(self._row_labels) if labels else None,
            "scaling": None if self.scaling_ is None else pack_fields(self.scaling_, SCALING),
            "scores": self.scores_,
            "seen": None if (self.observed_fraction_ == 1).all() else self.observed_fraction_,
            "threshold": float(self.threshold_),
            "model": self._pack_model(),
        }

    def _unpack(self, state: dict[str, Any]) -> None:
        record = Record(state, "fitted")
        found = read_fields(record, _FITTED)
        unpack_columns(self, record.part("columns"))
        self.scores_ = found["scores"]
        n = len(self.scores_)
        self._check_row_count(n)
        self.observed_fraction_ = np.ones(n) if found["seen"] is None else found["seen"]
        self._row_labels = unpack_labels(record.optional_part("row_labels"), n)
        self.scaling_ = unpack_scaling(record.optional_part("scaling"), self.n_features_in_)
        self.threshold_ = found["threshold"]
        self._unpack_model(record.part("model"))

    def _pack_model(self) -> dict[str, Any]:
        """Return the fitted state of the subclass, apart from what all detectors share; see `Saveable._pack`."""
        raise NotImplementedError(f"{type(self).__name__} cannot be saved yet: it lacks _pack_model.")

    def _unpack_model(self, record: Record) -> None:
        """Take it over, all of it checked. `scores_`, `n_features_in_` and `scaling_` are already there."""
        raise NotImplementedError(f"{type(self).__name__} cannot be loaded yet: it lacks _unpack_model.")

    def _check_row_count(self, n: int) -> None:
        fewest = max(2, self._fewest_rows())
        if n < fewest:
            raise ValueError(f"{self!r} needs at least {fewest} rows; got n_samples = {n}.")

    def _read_new(self, X: Any) -> FloatArray:
        """Return new rows as an array; each has a reading."""
        check_is_fitted(self)
        table = read_table(self, X, reset=False, allow_missing=self._takes_missing)
        check_rows_seen(table, X)
        return table

    def _own_rows(self, table: FloatArray, X: Any) -> FloatArray:
        """Return scaled rows, in memory that is not the caller's."""
        if self.scaling_ is not None:
            return self.scaling_.apply(table)
        if self._needs_nonnegative:
            check_nonnegative(table, X, type(self).__name__)
        return table.copy()

    def _score_table(self, table: FloatArray, X: Any) -> FloatArray:
        A = self._own_rows(table, X)
        clipped = A if self.scaling_ is None else self.scaling_.apply(table, clip=True)
        return bounded(self._score_rows(A, clipped))

    def _decide(self, scores: FloatArray) -> FloatArray:
        return bounded(super()._decide(scores))

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = self._takes_missing
        tags.input_tags.sparse = self._takes_sparse
        tags.input_tags.positive_only = self._needs_nonnegative and self.scale is None
        return tags


def bounded(scores: FloatArray) -> FloatArray:
    """Return scores with overflowed ones at the largest float; a NaN would be a bug of a detector, and is raised."""
    result: FloatArray = np.asarray(scores, dtype=np.float64)
    if np.isfinite(result).all():
        return result
    largest = np.finfo(np.float64).max
    result = np.clip(result, -largest, largest)
    if np.isnan(result).any():
        raise FloatingPointError("A detector returned NaN as a score. Please report this as a bug.")
    return result


@contextmanager
def restore_on_failure(estimator: object) -> Iterator[None]:
    """Restore an estimator's attributes if the block ends in any exception.

    >>> class Counter: n = 0
    >>> counter = Counter()
    >>> with restore_on_failure(counter):
    ...     counter.n = 1
    ...     raise ValueError("no")
    Traceback (most recent call last):
    ValueError: no
    >>> counter.n
    0
    """
    before = vars(estimator).copy()
    try:
        yield
    except BaseException:
        vars(estimator).clear()
        vars(estimator).update(before)
        raise


def fit_needs(detector: BaseDetector) -> FitNeeds:
    """Return what has to be known of training rows before a detector can be fitted to them."""
    return FitNeeds(
        detector._needs_tree,
        detector._merges_copies,
        detector._needs_nonnegative,
        detector._compares_rows,
        detector._takes_missing,
    )


def cluster_plan(detector: Any) -> ClusterPlan | None:
    """Return how to fit a detector to rows that lie elsewhere; None if that is not possible."""
    steps = detector._fit_steps() if isinstance(detector, BaseDetector) else None
    if steps is None:
        return None
    return ClusterPlan(fit_needs(detector), detector._begin_fit, *steps, detector._finish_fit)


def score_array(detector: BaseDetector, rows: FloatArray) -> FloatArray:
    """Return `anomaly_score` of a checked array (C-contiguous float64), without reading it as a table."""
    check_is_fitted(detector)
    return detector._score_table(rows, rows)
