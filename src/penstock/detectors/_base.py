"""What all detectors share: the door where data are checked, the threshold, and scikit-learn's signs."""

from __future__ import annotations

import os
from abc import ABCMeta, abstractmethod
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, OutlierMixin
from sklearn.utils.validation import check_is_fitted

from penstock._parameters import check_choice, check_whole_number
from penstock._types import FloatArray
from penstock.detectors._input import pandas_index, read_table, refuse_negative
from penstock.detectors._labels import pack_labels, unpack_labels
from penstock.detectors._missing import compare_rows, refuse_empty_columns, refuse_empty_rows
from penstock.detectors._packing import pack_columns, pack_scaling, unpack_columns, unpack_scaling
from penstock.detectors._saving import KIND, Saveable
from penstock.detectors._undo import restored_if_it_fails
from penstock.graph.rows import shares_seen
from penstock.prepare import MinMaxScaling, learn_scaling
from penstock.storage import Record, write_state
from penstock.thresholds import Contamination, check_contamination, score_threshold

if TYPE_CHECKING:
    import pandas as pd


class BaseDetector(Saveable, OutlierMixin, BaseEstimator, metaclass=ABCMeta):  # type: ignore[misc]
    """A detector: rows in, anomaly scores out; above the threshold a row is flagged.

    The only class that validates data and the only one that flips signs: below it high means anomalous, and
    `score_samples` and `decision_function` are scikit-learn's, where low does.

    A subclass takes at least `contamination` and `scale` in its `__init__`, stores its parameters and does nothing
    else there, and implements `_fit_rows` and `_score_rows`; if it has parameters of its own, `_check_parameters`; and
    `_pack_model` and `_unpack_model`, if it is to be saved.

    A detector that takes missing values (NaN; `_takes_missing`) leaves them out: docs/missing_values.md.

    Promises of every detector: scores are finite; a row's score does not depend on the rows scored with it; a row that
    equals a training row gets that row's training score (the first one's, where a detector was told to treat equal
    training rows as different); with scale="minmax", data whose columns are all constant
    score 0.

    Attributes
    ----------
    scores_ : array of shape (n,)
        Anomaly scores of the training rows.
    seen_ : array of shape (n,)
        How much of each training row there was to see: the share of its values that are not missing.
    threshold_ : float
        Rows with a higher score are flagged. Set it to change the verdicts after fitting.
    offset_ : float
        −threshold_, scikit-learn's word for it; setting one sets the other.
    scaling_ : MinMaxScaling or None
        How columns were taken to [0, 1].
    n_features_in_, feature_names_in_ :
        As in scikit-learn.
    """

    # Whether the method needs A ≥ 0. Scaled data are; with scale=None, negative values are refused.
    _needs_nonnegative: ClassVar[bool] = False
    # Whether missing values (NaN) may be passed, and whether training rows are compared with each other: then rows
    # without a common column count as infinitely far apart, and the others have to hold all rows together.
    _takes_missing: ClassVar[bool] = False
    _compares_rows: ClassVar[bool] = True

    contamination: Contamination
    scale: str | None
    scores_: FloatArray
    seen_: FloatArray
    threshold_: float
    scaling_: MinMaxScaling | None
    n_features_in_: int

    @abstractmethod
    def _fit_rows(self, A: FloatArray) -> FloatArray:
        """Learn from the rows of A and return their anomaly scores.

        A is clean, C-contiguous float64 and the detector's own (it may be kept, and may be changed). If the class takes
        missing values, it may hold NaN, but every row and every column has a number; and if it compares rows, chains
        of rows that share a column join them all.
        """

    @abstractmethod
    def _score_rows(self, A: FloatArray, A_clipped: FloatArray) -> FloatArray:
        """Anomaly scores of new rows, each by itself to the last bit.

        A_clipped has values outside the range learnt brought back to [0, 1], for the factorisation; A has not, for
        the residual. With scale=None the two are the same.
        """

    def _check_parameters(self) -> None:
        """Raise a ValueError if a parameter is out of bounds. A subclass adds its own and calls this one."""
        check_contamination(self.contamination)
        check_choice("scale", self.scale, ("minmax", None))

    def _fewest_rows(self) -> int:
        """How many rows fitting needs, given the parameters."""
        return 2

    def fit(self, X: Any, y: Any = None) -> Self:
        """Learn what is normal from the rows of X. `y` is ignored, for scikit-learn's sake."""
        with restored_if_it_fails(self):
            return self._fit_table(X)

    def _fit_table(self, X: Any) -> Self:
        self._check_parameters()
        table = read_table(self, X, reset=True, allow_missing=self._takes_missing)
        self._check_row_count(len(table))
        refuse_empty_rows(table, X)
        refuse_empty_columns(table, X)
        if self._compares_rows:
            compare_rows(table, X)
        self._row_labels = pandas_index(X)
        self.scaling_ = learn_scaling(table) if self.scale == "minmax" else None
        scores = self._fit_rows(self._own_rows(table, X))
        return self._conclude(scores, shares_seen(table))

    def _conclude(self, scores: FloatArray, seen: FloatArray) -> Self:
        """The end of every fit: scores, and the threshold that follows from them."""
        self.scores_ = bounded(scores)
        self.seen_ = seen
        self.threshold_ = score_threshold(self.scores_, self.contamination)
        return self

    def fit_predict(self, X: Any, y: Any = None) -> NDArray[np.int64]:
        """Fit, and return the verdicts on the training rows: −1 for flagged, 1 for the others."""
        return self.fit(X)._verdicts(self.scores_)

    def anomaly_score(self, X: Any) -> FloatArray:
        """How anomalous each row is: the higher, the more."""
        table = self._read_rows(X)
        A = self._own_rows(table, X)
        A_clipped = A if self.scaling_ is None else self.scaling_.apply(table, clip=True)
        return bounded(self._score_rows(A, A_clipped))

    def seen_share(self, X: Any) -> FloatArray:
        """How much of each row there is to see: the share of its values that are not missing, from 0 to 1.

        A score is scaled up from the values that are there to all of them; the fewer there are, the less it says.
        """
        check_is_fitted(self)
        return shares_seen(read_table(self, X, reset=False, allow_missing=self._takes_missing))

    def _read_rows(self, X: Any) -> FloatArray:
        """New rows, each with a reading."""
        check_is_fitted(self)
        table = read_table(self, X, reset=False, allow_missing=self._takes_missing)
        refuse_empty_rows(table, X)
        return table

    def score_samples(self, X: Any) -> FloatArray:
        """−anomaly_score(X), scikit-learn's sign: the lower, the more anomalous."""
        return 0.0 - self.anomaly_score(X)

    def decision_function(self, X: Any) -> FloatArray:
        """score_samples(X) − offset_: negative for flagged rows."""
        return self._decide(self.anomaly_score(X))

    def predict(self, X: Any) -> NDArray[np.int64]:
        """−1 for rows whose score is above the threshold, 1 for the others."""
        return self._verdicts(self.anomaly_score(X))

    @property
    def offset_(self) -> float:
        """−threshold_."""
        return 0.0 - self.threshold_

    @offset_.setter
    def offset_(self, value: float) -> None:
        self.threshold_ = 0.0 - float(value)

    def set_contamination(self, contamination: Contamination) -> Self:
        """Choose the threshold anew from the training scores, without fitting again.

        An object of `penstock.thresholds` learns nothing here: a copy of it sees the scores, in the order of the rows.
        """
        check_is_fitted(self)
        self.threshold_ = score_threshold(self.scores_, contamination)
        self.contamination = contamination
        return self

    def top(self, n: int = 10) -> pd.DataFrame:
        """The n training rows with the highest scores, best first, ties in order of rows: the paper's l_final.

        Columns `rank` (from 1) and `score`; the index is that of the pandas DataFrame the detector was fitted on, else
        row numbers.
        """
        import pandas as pd  # a third of a second that a first fit need not wait for

        check_is_fitted(self)
        check_whole_number("n", n, least=1)
        best = np.argsort(-self.scores_, kind="stable")[:n]
        labels = pd.RangeIndex(len(self.scores_), name="row") if self._row_labels is None else self._row_labels
        return pd.DataFrame({"rank": np.arange(1, len(best) + 1), "score": self.scores_[best]}, index=labels[best])

    def save(self, path: str | os.PathLike[str], *, labels: bool = True) -> None:
        """Save the detector, fitted or not, to a file for `penstock.load`: docs/saving.md.

        The file appears wholly or not at all. Attributes that you added yourself are not in it, nor, with
        `labels=False`, the index of the rows: `top` of the loaded detector then shows row numbers.
        """
        write_state(path, KIND, self._whole_state(labels=labels))

    def _has_state(self) -> bool:
        return "scores_" in vars(self)

    def _pack(self, *, labels: bool = True) -> dict[str, Any]:
        self._check_row_count(len(self.scores_))  # parameters may have been changed since the fit
        if np.isnan(self.threshold_):
            raise ValueError("threshold_ is NaN. Set it to a number, or call set_contamination, before saving.")
        state = {
            "columns": pack_columns(self),
            "row_labels": pack_labels(self._row_labels) if labels else None,
            "scaling": pack_scaling(self.scaling_),
            "scores": self.scores_,
            "threshold": float(self.threshold_),
            "model": self._pack_model(),
        }
        # Without holes a file is as it was before there could be any.
        return state if (self.seen_ == 1).all() else state | {"seen": self.seen_}

    def _unpack(self, state: dict[str, Any]) -> None:
        names = ("columns", "row_labels", "scaling", "scores", "threshold", "model")
        record = Record(state, "fitted").only(*names, *(("seen",) if "seen" in state else ()))
        unpack_columns(self, record.part("columns"))
        self.scores_ = record.array("scores", np.float64, (None,))
        n = len(self.scores_)
        self._check_row_count(n)
        self.seen_ = record.array("seen", np.float64, (n,), least=0.0, most=1.0) if "seen" in state else np.ones(n)
        self._row_labels = unpack_labels(record.optional_part("row_labels"), len(self.scores_))
        self.scaling_ = unpack_scaling(record.optional_part("scaling"), self.n_features_in_)
        self.threshold_ = record.number("threshold", infinite=True)
        self._unpack_model(record.part("model"))

    def _pack_model(self) -> dict[str, Any]:
        """What the subclass has learnt, beside what all detectors share; see `Saveable._pack`."""
        raise NotImplementedError(f"{type(self).__name__} cannot be saved yet: it lacks _pack_model.")

    def _unpack_model(self, record: Record) -> None:
        """Take it over, all of it checked. `scores_`, `n_features_in_` and `scaling_` are already there."""
        raise NotImplementedError(f"{type(self).__name__} cannot be loaded yet: it lacks _unpack_model.")

    def _check_row_count(self, n: int) -> None:
        fewest = max(2, self._fewest_rows())
        if n < fewest:
            raise ValueError(f"{self!r} needs at least {fewest} rows; got n_samples = {n}.")

    def _own_rows(self, table: FloatArray, X: Any) -> FloatArray:
        """Scaled rows, in memory that is not the caller's."""
        if self.scaling_ is not None:
            return self.scaling_.apply(table)
        if self._needs_nonnegative:
            refuse_negative(table, X, type(self).__name__)
        return table.copy()

    def _decide(self, scores: FloatArray) -> FloatArray:
        with np.errstate(over="ignore"):
            return bounded(self.threshold_ - scores)

    def _verdicts(self, scores: FloatArray) -> NDArray[np.int64]:
        return np.where(self._decide(scores) < 0, -1, 1)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = self._takes_missing
        tags.input_tags.positive_only = self._needs_nonnegative and self.scale is None
        return tags


def bounded(scores: FloatArray) -> FloatArray:
    """Scores that overflowed, at the largest float; a NaN would be a bug of a detector, and is not hidden."""
    largest = np.finfo(np.float64).max
    result: FloatArray = np.clip(np.asarray(scores, dtype=np.float64), -largest, largest)
    if np.isnan(result).any():
        raise FloatingPointError("A detector returned NaN as a score. Please report this as a bug.")
    return result
