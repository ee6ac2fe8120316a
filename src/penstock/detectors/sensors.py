"""Detectors that look at rows in order of time: sensors scored by each other, and any detector over time."""

from __future__ import annotations

import os
import sys
from abc import abstractmethod
from collections.abc import Callable
from copy import deepcopy
from dataclasses import KW_ONLY
from numbers import Real
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from penstock._parameters import ParameterError, estimator
from penstock._progress import logged_fit
from penstock._types import FloatArray
from penstock.certainty import TOO_FEW_BLOCKS, WELL_ABOVE_USUAL, EpisodeRate, fit_episode_rate
from penstock.detectors._base import BaseDetector, bounded, restore_on_failure
from penstock.detectors._input import check_columns_seen, check_finite, pandas_index, read_row, read_table
from penstock.detectors._saving import restore
from penstock.factor.start import check_random_source, draw_seed, draws_from
from penstock.graph.rows import shares_seen
from penstock.sensors import SensorModel, SeriesFit, SeriesModel, SeriesScores, learn_series
from penstock.sensors.blocks import join_blocks
from penstock.sensors.packing import pack, unpack
from penstock.storage import Record, StorageError, write_state
from penstock.thresholds import Contamination, score_threshold

if TYPE_CHECKING:
    import pandas as pd

MONITOR = "monitor"  # the kind of its files
_ROWS_AT_ONCE = 4096  # of later rows: what is computed on the way takes ten times their memory


class SeriesDetector(BaseDetector):
    """Score rows in order of time: what `SensorDetector` and `OverTime` share.

    Three scores, all on one scale: of training rows by what came before and after each (`scores_`), of later rows by
    what came before (`score_series`, `monitor`), and of rows by themselves (`anomaly_score`, `score_samples`,
    `predict`), as scikit-learn asks for them; `threshold_` belongs to the last.
    """

    _takes_missing: ClassVar[bool] = True
    _compares_rows: ClassVar[bool] = False
    scale: ClassVar[str | None] = None  # type: ignore[misc]

    model_: SeriesModel
    evidence_: FloatArray
    single_row_scores_: FloatArray
    out_of_sample_scores_: FloatArray
    rate_: EpisodeRate | None
    new_row_rate_: EpisodeRate | None

    @abstractmethod
    def _learn(self, table: FloatArray, time: FloatArray | None, runs: Any, index: Any) -> SeriesFit:
        """Learn from rows in order of time; `index` names them in messages, if it is not None."""

    @abstractmethod
    def _pack_series(self) -> dict[str, Any]:
        """Return `model_` for a file."""

    @abstractmethod
    def _unpack_series(self, record: Record) -> SeriesModel:
        """Return the model of a file, all of it checked."""

    @property
    def scores_sensors(self) -> bool:
        """Whether there is evidence of each sensor, not only of the row."""
        return True

    def fit(self, X: Any, y: Any = None, *, time: Any = None, runs: Any = None) -> Self:
        """Learn what is usual from rows in order of time.

        Parameters
        ----------
        X : array-like of shape (n, p)
            Readings, NaN where one is missing.
        y : ignored
            For scikit-learn.
        time : array-like of shape (n,), default=None
            Time stamps, or numbers of any unit. None: the index of a pandas DataFrame if it is a DatetimeIndex, else
            rows are evenly spaced. After a gap (three times the usual step), and where the clock goes back, the history
            begins anew.
        runs : array-like of shape (n,), default=None
            A label for each row; where it changes the history begins anew.

        Returns
        -------
        self
        """
        with restore_on_failure(self), logged_fit(type(self).__name__):
            self.check_parameters()
            table = read_table(self, X, reset=True, allow_missing=True)
            self._check_row_count(len(table))
            check_columns_seen(table, X)
            self.scaling_ = None
            seconds, labels = read_time(X, time, len(table)), read_runs(runs, len(table))
            scores = self._learn_rows(table, seconds, labels, pandas_index(X))
            return self._finish_fit(scores, seen=shares_seen(table), table=X)

    def _learn_rows(
        self, table: FloatArray, time: FloatArray | None = None, runs: Any = None, index: Any = None
    ) -> FloatArray:
        """Learn from checked rows, and return their scores; `index` names rows in messages."""
        fitted = self._learn(table, time, runs, index)
        self.model_, self.evidence_ = fitted.model, fitted.scores.evidence
        starts = fitted.model.clock.follow(len(table), time, runs).starts
        self.rate_ = fit_episode_rate(fitted.scores.scores, starts, later=False)
        self.out_of_sample_scores_ = bounded(fitted.out_of_sample)
        self.new_row_rate_ = fit_episode_rate(self.out_of_sample_scores_, starts, later=True)
        self.single_row_scores_ = bounded(join_blocks(self.model_.score_single_rows, table))
        return fitted.scores.scores

    def _fit_rows(self, A: FloatArray) -> FloatArray:
        return self._learn_rows(A)

    def predict(self, X: Any) -> NDArray[np.int64]:
        """Return −1 for rows whose score, each by itself, is above the threshold, 1 for the others.

        It does not follow `scores_`: scikit-learn gives `predict` rows without an order and wants the same answer for
        a row in any table. What lasts counts for more in `scores_` (training rows) and `score_series` (later rows);
        compare these with a threshold of their own.

        Parameters
        ----------
        X : array-like of shape (n, p)

        Returns
        -------
        ndarray of shape (n,)

        Examples
        --------
        >>> import numpy as np
        >>> from penstock import SensorDetector
        >>> rng = np.random.default_rng(0)
        >>> load = np.cumsum(rng.normal(size=600))[:, None] @ np.ones((1, 4)) + 0.1 * rng.normal(size=(600, 4))
        >>> load[400:420, 2] += 0.4  # as large as the noise of some rows: seen because it lasts
        >>> detector = SensorDetector().fit(load)
        >>> int((detector.predict(load)[400:420] == -1).sum())
        13
        >>> int((detector.scores_[400:420] > detector.threshold_).sum())
        20
        """
        return super().predict(X)

    def fit_predict(self, X: Any, y: Any = None) -> NDArray[np.int64]:
        """Fit, and return the verdicts on the training rows, each by itself: ``fit(X).predict(X)``.

        scikit-learn asks for the same answer from both; so this does not follow `scores_`, as `predict` explains.

        Parameters
        ----------
        X, y : as in `fit`

        Returns
        -------
        ndarray of shape (n,)
            −1 for flagged, 1 for the others.

        Examples
        --------
        >>> import numpy as np
        >>> from penstock import SensorDetector
        >>> X = np.random.default_rng(0).normal(size=(300, 3))
        >>> bool((SensorDetector().fit_predict(X) == SensorDetector().fit(X).predict(X)).all())
        True
        """
        return self._verdicts(self.fit(X).single_row_scores_)

    def _choose_threshold(self, contamination: Contamination) -> float:
        chosen = score_threshold(self.single_row_scores_, contamination)
        n = len(self.single_row_scores_)
        if not isinstance(contamination, str):
            return chosen
        rate = fit_episode_rate(self.single_row_scores_, np.arange(n) == 0, later=False)
        level = max(chosen, WELL_ABOVE_USUAL) if rate is None else rate.score_expected(1.0, n)
        return min(level, score_threshold(self.single_row_scores_, min(1 / n, 0.5)))

    def assess_series(self, X: Any, *, time: Any = None, runs: Any = None) -> SeriesScores:
        """Score rows that come after the training rows, in order of time, by what came before each.

        Parameters
        ----------
        X, time, runs : as in `fit`
            The history begins anew with the first row.

        Returns
        -------
        SeriesScores
            `scores` (n,) and `evidence` (n, p): how far each sensor is from what is usual, 1 at its edge; (n, 1), of
            the row as a whole, if not `scores_sensors`.
        """
        return self.monitor().update_many(X, time=time, runs=runs)

    def score_series(self, X: Any, *, time: Any = None, runs: Any = None) -> FloatArray:
        """Score rows that come after the training rows, in order of time, by what came before each.

        Parameters
        ----------
        X, time, runs : as in `fit`
            The history begins anew with the first row.

        Returns
        -------
        ndarray of shape (n,)
            The scores of `assess_series`: the higher, the more anomalous.
        """
        return self.assess_series(X, time=time, runs=runs).scores

    def monitor(self) -> SeriesMonitor:
        """Return an object that scores later rows as they come; the detector itself stays as it is.

        Returns
        -------
        SeriesMonitor
        """
        check_is_fitted(self)
        return SeriesMonitor(self, self.model_.start())

    def expected(self, X: Any) -> FloatArray:
        """Return what each sensor should have read given the others of its row.

        Parameters
        ----------
        X : array-like of shape (n, p)
            Readings, NaN where one is missing.

        Returns
        -------
        ndarray of shape (n, p)
        """
        return self.model_.expected(self._read_new(X))

    def deviations(self, X: Any) -> FloatArray:
        """Return readings minus expected values in units of what is usual for each sensor.

        Parameters
        ----------
        X : array-like of shape (n, p)
            Readings, NaN where one is missing.

        Returns
        -------
        ndarray of shape (n, p)
            0 where a reading is missing.
        """
        return self.model_.deviations(self._read_new(X))

    def explain(self, first: int, last: int, series: SeriesScores | None = None) -> pd.DataFrame:
        """Return which sensors are behind an event, and when each left what is usual.

        Parameters
        ----------
        first, last : int
            Its first and last row, counted from 0.
        series : SeriesScores, default=None
            Of `assess_series`; the training rows if None.

        Returns
        -------
        DataFrame
            One row per sensor, the one with the most evidence first: `evidence` (mean over the event), `peak`, `onset`
            (the row from which on it was outside what is usual, at or before the event's end; −1 if it never was) and
            `order` (1 for the sensor that left first; 0 for those that did not).
        """
        import pandas as pd  # see `top`

        check_is_fitted(self)
        if series is None and not hasattr(self, "evidence_"):
            raise ValueError("A detector from a file does not hold the evidence of its training rows: give a series.")
        evidence = self.evidence_ if series is None else series.evidence
        if not 0 <= first <= last < len(evidence):
            raise ValueError(f"An event lies within rows 0 to {len(evidence) - 1}; got {first} to {last}.")
        inside, out = evidence[first : last + 1], evidence >= 1
        onset = np.full(evidence.shape[1], -1)
        for sensor in np.flatnonzero(out[first : last + 1].any(axis=0)):
            row = first + int(np.argmax(out[first : last + 1, sensor]))
            before = np.flatnonzero(~out[:row, sensor])
            onset[sensor] = before[-1] + 1 if len(before) else 0
        order = np.zeros(len(onset), dtype=np.intp)
        order[onset >= 0] = np.searchsorted(np.unique(onset[onset >= 0]), onset[onset >= 0]) + 1
        names = list(getattr(self, "feature_names_in_", range(self.n_features_in_)))
        names = names if self.scores_sensors else ["score"]
        found = pd.DataFrame(
            {"evidence": inside.mean(axis=0), "peak": inside.max(axis=0), "onset": onset, "order": order},
            index=pd.Index(names, name="sensor"),
        )
        return found.sort_values("evidence", ascending=False, kind="stable")

    def _rate(self, *, later: bool) -> EpisodeRate | str:
        return (self.new_row_rate_ if later else self.rate_) or TOO_FEW_BLOCKS

    def _score_rows(self, A: FloatArray, A_clipped: FloatArray) -> FloatArray:
        found = np.empty(len(A))
        for start in range(0, len(A), _ROWS_AT_ONCE):
            some = slice(start, start + _ROWS_AT_ONCE)
            found[some] = self.model_.score_single_rows(A[some])
        return found

    def _read_new(self, X: Any) -> FloatArray:
        check_is_fitted(self)
        return read_table(self, X, reset=False, allow_missing=True)

    def _pack_model(self) -> dict[str, Any]:
        return {
            "model": self._pack_series(),
            "single_rows": self.single_row_scores_,
            "out_of_sample": self.out_of_sample_scores_,
            "rate": None if self.rate_ is None else pack(self.rate_),
            "new_row_rate": None if self.new_row_rate_ is None else pack(self.new_row_rate_),
        }

    def _unpack_model(self, record: Record) -> None:
        record.require_fields("model", "single_rows", "out_of_sample", "rate", "new_row_rate")
        self.model_ = self._unpack_series(record.part("model"))
        self.single_row_scores_ = record.array("single_rows", np.float64, (len(self.scores_),))
        self.out_of_sample_scores_ = record.array("out_of_sample", np.float64, (len(self.scores_),))
        rates = [record.optional_part(name) for name in ("rate", "new_row_rate")]
        self.rate_, self.new_row_rate_ = (None if each is None else unpack(EpisodeRate, each, {}) for each in rates)


def _check_columns(name: str, value: object) -> None:
    """Raise unless `value` is None or a tuple of column numbers."""
    if value is not None and not (type(value) is tuple and all(type(each) is int and each >= 0 for each in value)):
        raise ParameterError(name, f" must be None or a tuple of column numbers; got {value!r:.100}.")


@estimator
class SensorDetector(SeriesDetector):
    """Score sensors by each other over time: for plants, machines and other tables in order of time.

    What each sensor should read is predicted from all others (leave-one-out ridge regression). What is left is compared
    with what is usual when the plant moves as much, and followed over horizons of 1 to 64 rows: a small deviation that
    lasts counts as much as a large one that does not. States of the plant that are new count too, and, of a sensor that
    is alone or hardly explained by others, readings unlike all earlier ones. Everything is calibrated by maxima over
    blocks of time. Columns that seldom change (settings) explain others and are not scored. A column that never moved
    in the training rows keeps its place: that it moves later scores above all training rows, and is its evidence.

    Use it where rows are in order of time and sensors explain each other. For tables whose rows have no order use
    `Detector`. How it scores: docs/plant.md; what was tried: docs/decisions/0016-sensors-over-time.md.

    Parameters
    ----------
    contamination : "auto", float in (0, 0.5] or threshold, default="auto"
        Sets `threshold_`, for rows scored by themselves. "auto": what one episode is expected to reach by chance in as
        many rows as were fitted to, or the highest of these if that is less; otherwise as
        `penstock.thresholds.score_threshold`.
    random_state : int, RandomState or None, default=0
        Draws the reference rows of the states that are known. The same seed, the same scores.
    explaining : tuple of int, default=None
        Columns, by their numbers, that explain others and are never scored. None: those that change in under 5 % of the
        steps, but for a column that left its usual value once for a short while.

    Attributes
    ----------
    scores_ : ndarray of shape (n,)
        Scores of the training rows, by what came before and after each; 0 is the usual maximum of a block of time.
    evidence_ : ndarray of shape (n, p)
        How far each sensor is from what is usual at each training row: 1 at its edge. Not in saved files.
    single_row_scores_, out_of_sample_scores_ : ndarrays of shape (n,)
        Scores of the training rows, each by itself, and by what came before each as if it had not been fitted.
    model_ : SensorModel
        All that scoring later rows needs.
    rate_, new_row_rate_ : EpisodeRate or None
        How often scores of training and of later rows are reached by chance; None if the training rows are too few.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> load = np.cumsum(rng.normal(size=600))[:, None] @ np.ones((1, 4)) + 0.1 * rng.normal(size=(600, 4))
    >>> load[400:420, 2] += 1.0  # one sensor reads too high for a while
    >>> detector = SensorDetector().fit(load)
    >>> bool(400 <= detector.scores_.argmax() < 425), int(detector.evidence_[410].argmax())
    (True, 2)
    >>> int(detector.explain(400, 419).index[0])
    2
    >>> later = detector.monitor()
    >>> bool(later.update(load[-1]) == detector.score_series(load[-1:])[0])
    True
    """

    scale: ClassVar[str | None] = None  # type: ignore[misc]

    _: KW_ONLY
    random_state: Annotated[Any, check_random_source] = 0
    explaining: Annotated[tuple[int, ...] | None, _check_columns] = None

    def _fit_steps(self) -> tuple[Callable[..., Any] | None, Callable[..., Any]] | None:
        return None, self._learn_rows

    def _learn(self, table: FloatArray, time: FloatArray | None, runs: Any, index: Any) -> SeriesFit:
        seed = draw_seed(draws_from(self.random_state))
        explaining = None if self.explaining is None else np.array(self.explaining, dtype=np.intp)
        if explaining is not None and (explaining >= table.shape[1]).any():
            raise ParameterError("explaining", f" has column {explaining.max()}, but there are {table.shape[1]}.")
        return learn_series(table, time, runs, np.random.RandomState(seed % 2**32), explaining)

    def _pack_series(self) -> dict[str, Any]:
        return dict(pack(self.model_))

    def _unpack_series(self, record: Record) -> SensorModel:
        p = self.n_features_in_
        return unpack(SensorModel, record, {"p": p, "r": p})


class SeriesMonitor:
    """Score the rows of a series as they come; made by `monitor` of `SensorDetector` and `OverTime`.

    Its memory does not depend on the length of the series, and any cut of the series into pieces gives the same scores.
    It does not learn.

    Parameters
    ----------
    detector : SeriesDetector
        Fitted.
    state : SeriesState or ResidualState
        Where the series stands.

    Examples
    --------
    >>> import numpy as np
    >>> X = np.random.default_rng(0).normal(size=(300, 3))
    >>> monitor = SensorDetector().fit(X).monitor()
    >>> scores = monitor.update_many(X[:2]).scores
    >>> scores.shape, type(monitor.update(X[2])).__name__
    ((2,), 'float')
    """

    def __init__(self, detector: SeriesDetector, state: Any) -> None:
        self.detector = detector
        self._state = state

    def update(self, row: Any, *, time: Any = None, run: Any = None) -> float:
        """Return the score of the next row.

        Parameters
        ----------
        row : array-like of shape (p,)
            NaN where a reading is missing.
        time : time stamp or number, default=None
            Of the row, as in `fit`.
        run : label, default=None
            Of the run it belongs to.
        """
        table = read_row(self.detector, row, scaled=True)
        seconds = None if time is None else read_time(None, [time], 1)
        found = self.detector.model_.score(table, self._state, seconds, None if run is None else [run])
        return float(bounded(found.scores)[0])

    def update_many(self, X: Any, *, time: Any = None, runs: Any = None) -> SeriesScores:
        """Return scores (n,) and evidence (n, p) of the next rows; see `SeriesDetector.assess_series`.

        Parameters
        ----------
        X, time, runs : as in `SensorDetector.fit`
            Rows that follow those already seen.
        """
        plain = type(X) is np.ndarray and X.dtype == np.float64 and X.ndim == 2
        if plain and X.shape[1] == self.detector.n_features_in_:  # without the checks of names, which take a while
            table = np.ascontiguousarray(X)
            check_finite(table, X, allow_missing=True)
        else:
            table = read_table(self.detector, X, reset=False, allow_missing=True, allow_empty=True)
        seconds, labels = read_time(X, time, len(table)), read_runs(runs, len(table))
        found = SeriesScores(np.empty(len(table)), np.empty((len(table), len(self.detector.model_.layer.scored))))
        for start in range(0, len(table), _ROWS_AT_ONCE):
            some = slice(start, start + _ROWS_AT_ONCE)
            its_time, its_runs = (None if each is None else each[some] for each in (seconds, labels))
            part = self.detector.model_.score(table[some], self._state, its_time, its_runs)
            found.scores[some], found.evidence[some] = bounded(part.scores), part.evidence
        return found

    def copy(self) -> SeriesMonitor:
        """Return a monitor that stands where this one does and goes on by itself."""
        return SeriesMonitor(self.detector, deepcopy(self._state))

    def state(self) -> dict[str, Any]:
        """Return where the series stands, for `restore`: plain values and arrays."""
        state: dict[str, Any] = pack(self._state)
        return deepcopy(state)

    def restore(self, state: dict[str, Any]) -> None:
        """Go on from a state; StorageError (a ValueError) if it does not fit the detector."""
        model = self.detector.model_
        lengths = {
            "p": len(model.scale.scored),
            "q": int(model.layer.scored.sum()),
            "a": model.layer.activity.directions.shape[1],
        }
        self._state = unpack(type(model.start()), Record(deepcopy(state), "series"), lengths)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Save detector and state to a file; `penstock.load` returns a monitor that goes on to the last bit."""
        write_state(path, MONITOR, {"detector": self.detector._whole_state(labels=False), "series": self.state()})


def restore_monitor(state: dict[str, Any]) -> SeriesMonitor:
    """Return the monitor of a state that was read from a file; what does not fit raises a ValueError or the like."""
    record = Record(state, "monitor").require_fields("detector", "series")
    detector = restore(record.value("detector"))
    if not isinstance(detector, SeriesDetector) or not detector._has_state():
        raise StorageError("its detector does not score series, or is not fitted")
    monitor = detector.monitor()
    monitor.restore(record.value("series"))
    return monitor


def read_time(X: Any, time: Any, n: int) -> FloatArray | None:
    """Return the time of each of n rows in seconds (numbers stay what they are); None if there is none.

    If `time` is None, the DatetimeIndex of the table X is taken, if it has one.
    """
    pandas = sys.modules.get("pandas")
    if time is None:
        if pandas is None or not isinstance(getattr(X, "index", None), pandas.DatetimeIndex):
            return None
        time = X.index
    if pandas is not None and isinstance(time, pandas.DatetimeIndex) and time.tz is not None:
        time = time.tz_convert(None)
    values = np.asarray(time)
    if values.shape != (n,):
        raise ValueError(f"time must have one entry for each of the {n} rows; got shape {values.shape}.")
    if values.dtype.kind in "OUS":
        values = _read_stamps(values)
    if values.dtype.kind == "M":
        missing = np.isnat(values)
        seconds = values.astype("datetime64[us]").astype(np.int64) / 1e6
    elif values.dtype.kind in "iuf":
        seconds = values.astype(np.float64)
        missing = ~np.isfinite(seconds)
    else:
        raise ValueError(f"time must hold time stamps or numbers; got {values.dtype}.")
    if missing.any():
        raise ValueError(
            f"time is missing in {int(missing.sum())} rows, the first of them row {int(np.argmax(missing))}. Give each "
            f"row a time, or leave these rows out."
        )
    return seconds


def _read_stamps(values: NDArray[Any]) -> NDArray[Any]:
    """Return numbers that are objects as numbers, and time stamps of any kind, or texts of these, in seconds."""
    if all(isinstance(value, Real) for value in values):
        return values.astype(np.float64)
    from penstock.io import TimeReader  # takes a while to import, and is needed for texts alone

    texts = ["" if value is None or str(value) == "NaT" else str(value) for value in values]
    reader = TimeReader.learn(texts)
    seconds = np.full(len(values), np.nan) if reader is None else reader.seconds(texts)
    unread = [place for place in np.flatnonzero(np.isnan(seconds)).tolist() if texts[place]]
    if unread:
        raise ValueError(
            f"time must hold time stamps or numbers; not all could be read: row {unread[0]} holds "
            f"{texts[unread[0]]!r:.80}."
        )
    return seconds


def read_runs(runs: Any, n: int) -> Any:
    """Return the label of each row; None if there are none."""
    if runs is None:
        return None
    labels = np.asarray(runs)
    if labels.shape != (n,):
        raise ValueError(f"runs must have one label for each of the {n} rows; got shape {labels.shape}.")
    return labels
