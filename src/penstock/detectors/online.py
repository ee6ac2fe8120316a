"""NS-NMF for streams: the paper's online algorithm, with the interface of scikit-learn and for single rows."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import KW_ONLY
from typing import Annotated, Any, Literal, Self

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.exceptions import NotFittedError

from penstock._messages import warn_caller
from penstock._parameters import ParameterError, check_bounds, check_whole_number, estimator, number, optional, whole
from penstock._progress import logged_fit
from penstock._types import FloatArray, IndexArray, StreamScores
from penstock.detectors._base import TrainingScores, restore_on_failure
from penstock.detectors._input import pandas_index, read_row, read_rows, table_of_one
from penstock.detectors._packing import pack_columns, pack_labels, unpack_columns, unpack_labels
from penstock.detectors._stream import Stream
from penstock.factor.start import check_random_source
from penstock.graph.similarities import Kind
from penstock.prepare import MinMaxScaling
from penstock.storage import Fields, Record, read_fields
from penstock.thresholds import Fixed, MeanDeviation, Threshold, score_threshold

LARGEST_BUFFER = 2000  # samples; the distances between them take 32 MB
_FIELDS: Fields = {
    "columns": object, "stream": object, "scores": ("?", "n >=0 nan"), "batch_threshold": ("?", float),
    "row_labels": object,
}  # fmt: skip
_TIGHT = 1e-3  # the shortest edge in units of the middle one: below it, scores of normal samples were seen to double


def _check_threshold(name: str, value: object) -> None:
    if not isinstance(value, Threshold):
        raise ParameterError(
            name, f" must be None or an object from penstock.thresholds, such as Fixed(1.5); got {value!r}."
        )
    value._check_parameters()


@estimator
class OnlineNSNMF(TrainingScores, BaseEstimator):  # type: ignore[misc]
    """NS-NMF over a stream: each sample is scored when it comes. Ahmed et al. (2021), Algorithm 2.

    The first `buffer_size` samples are collected and factorised by NS-NMF. Each later one joins the exact spanning tree
    of the samples in the buffer; its weights w and the profiles H follow by multiplicative steps, its score is
    ‖a − wH‖, and it takes the place of the oldest. Work per sample and memory do not grow with the stream.

    `update` and `update_many` score and learn in one go; `anomaly_score` and scikit-learn's `score_samples`, `predict`
    and `decision_function` score without learning. Rows one by one, in chunks of any size or all at once give the same
    scores to the last bit.

    Parameters
    ----------
    n_components : int, default=5
        K, the number of latent groups, at most `buffer_size`.
    alpha : float, default=0.8
        Weight of the attributes against the structure.
    buffer_size : int, default=20
        z: how many samples back the tree reaches, at most 2,000. The cost of a sample grows with z·(z + p).
    similarity : {"inverse", "binary", "relative", "normalized"}, default="inverse"
        How lengths of the local tree become similarities; "inverse" is the paper's. On sensors, where samples follow
        each other closely, "binary" finds more (docs/streaming.md): one near pair cannot outweigh the rest.
    max_iter, tol : int, float, default=50, 1e-3
        Steps for one sample end when the relative change of w is below `tol`, or after `max_iter` steps.
    forgetting : float in (0, 1], default=1.0
        What is left of the past after each sample. 1 is the paper's: every sample counts for ever. With 0.999 a sample
        counts half after 693 more; rows of H are kept at their norms then.
    learn_flagged : bool, default=True
        Whether a sample above the threshold is taken in as well. With False it leaves no trace in the model or the
        buffer, and a lasting change of the process stays an anomaly until the detector is fitted again.
    threshold : Threshold or None, default=None
        From `penstock.thresholds`; a copy of it follows the scores. None: `MeanDeviation()`, the mean + 3 standard
        deviations of the unflagged scores.
    random_state : int, RandomState or None, default=None
        Seeds the factorisation that ends the warm-up.
    gamma : float, default=0.2
        Weight of the ridge term in that factorisation.
    refresh_every : int, default=1
        The profiles H move at every so many-th sample (1 is the paper's; 0: never after the warm-up). In between only
        w is fitted, and what samples teach is collected.
    scale : {"auto", "minmax", None}, default="auto"
        "minmax" takes each column to [0, 1] by its range in the warm-up, frozen afterwards. Values outside are clipped
        for the factorisation, never for the residual. "auto" does so unless all values of the warm-up lie in [0, 1]:
        then the stream counts as scaled already, and only values outside [0, 1] are clipped. With None values are taken
        as they are and must be non-negative.
    warmup : int or None, default=None
        How many samples are collected before the first score, at least `buffer_size`, which is what None stands for.
        More of them make a better range; those after the first `buffer_size` are then passed through the model.
    duplicates : {"join", "zero"}, default="join"
        What an edge of length 0 is worth, to a sample that equals one in the buffer. "join" is the limit for a
        vanishing length, so that a copy scores as its original does; "zero" is the paper's formula to the letter, by
        which a copy is no neighbour at all, and an anomaly that repeats looks normal the second time.
    accumulate : {"sample", "step"}, default="sample"
        When the sums over all samples, U and V, grow: once a sample, or at every step of its fit. "step" is Algorithm 2
        as it is printed, which counts a sample as often as it took steps.

    Attributes
    ----------
    warmup_scores_ : array
        Scores of the samples of the warm-up, known when it ends; those in the first buffer are residuals of the fit.
    threshold_ : float
        What scores are compared with now. While the threshold has seen too few scores, the highest score so far. After
        `fit` with threshold=None, until the next sample, chosen as by the other detectors from the scores of all rows
        under the model as it is. Setting it fixes it, and so does `set_contamination`.
    running_threshold_ : Threshold
        The threshold at work.
    components_ : array of shape (n_components, p)
        H as it is now, in scaled units.
    n_iter_ : int
        Iterations of the factorisation that ended the warm-up.
    n_seen_, missing_, n_missing_ :
        Samples that came; missing readings of each column; their sum.
    scaling_ : MinMaxScaling or None
        How columns are taken to [0, 1], once known; its `undo` leads back.
    unseen_columns_ : list
        Columns without a reading in the warm-up: if they had to be scaled, they have no range and are left out.
    explained_ : float
        ‖WH‖²/‖A‖² over the readings of the samples in the buffer: which share of them the groups rebuild as they are
        now. Near 0, a score is little more than the size of the sample; a similarity with a bound ("binary",
        "normalized") helps.
    scores_ : array
        After `fit` only, as `top`, `plot` and `set_contamination`, which use them: scores of the rows in the order they
        were passed, those of the warm-up included. NaN for rows without any reading.

    Notes
    -----
    Missing readings (NaN) are left out: of distances and residuals, which are scaled up by p over the number of
    readings there are, and of the factorisation. They are counted in `missing_`. A sample without any reading scores
    NaN and is passed over.

    Examples
    --------
    >>> import numpy as np
    >>> from penstock import OnlineNSNMF
    >>> rows = np.random.default_rng(0).random((500, 4)) * 0.1 + [0.2, 0.4, 0.6, 0.8]
    >>> rows[400] = [0.9, 0.1, 0.1, 0.1]
    >>> detector = OnlineNSNMF(n_components=2, similarity="relative", random_state=0)
    >>> scores = detector.update_many(rows)
    >>> int(np.isnan(scores).sum()), int(np.nanargmax(scores))
    (20, 400)
    >>> detector.update(rows[0]) < detector.threshold_
    True
    >>> detector.fit(rows).top(1).index.tolist(), round(detector.explained_, 2)
    ([400], 1.0)
    """

    n_components: Annotated[int, whole(1)] = 5
    _: KW_ONLY
    alpha: Annotated[float, number(0.0, above=True)] = 0.8
    buffer_size: Annotated[int, whole(2)] = 20
    similarity: Kind = "inverse"
    max_iter: Annotated[int, whole(1)] = 50
    tol: Annotated[float, number(0.0)] = 1e-3
    forgetting: Annotated[float, number(0.0, above=True, most=1.0)] = 1.0
    learn_flagged: bool = True
    threshold: Annotated[Threshold | None, optional(_check_threshold)] = None
    random_state: Annotated[Any, check_random_source] = None
    gamma: Annotated[float, number(0.0)] = 0.2
    refresh_every: Annotated[int, whole(0)] = 1
    scale: Literal["auto", "minmax"] | None = "auto"
    warmup: Annotated[int | None, optional(whole(2))] = None
    duplicates: Literal["join", "zero"] = "join"
    accumulate: Literal["sample", "step"] = "sample"

    def update(self, row: Any) -> float:
        """Score one sample and learn it.

        Parameters
        ----------
        row : array-like of shape (p,)
            NaN for a missing reading.

        Returns
        -------
        float
            NaN during the warm-up.
        """
        if "_stream" in self.__dict__ and isinstance(row, np.ndarray | list | tuple):
            table = read_row(self, row, scaled=self._stream.settings.scale is not None)
        else:
            table = self._read(table_of_one(row))
        with self._announcing():
            return float(self._begun().take(table)[0])

    def update_many(self, X: Any) -> FloatArray:
        """Score samples in turn, learning each before the next.

        Parameters
        ----------
        X : array-like of shape (n, p)

        Returns
        -------
        ndarray of shape (n,)
            NaN for samples of the warm-up.
        """
        table = self._read(X)
        with self._announcing():
            return self._begun().take(table)

    def process(self, X: Any, n_variables: int = 3) -> StreamScores:
        """As `update_many`, with the threshold each score met, the flags, and the variables with the largest residuals.

        Parameters
        ----------
        X : array-like of shape (n, p)
        n_variables : int, default=3

        Returns
        -------
        StreamScores

        Examples
        --------
        >>> import numpy as np
        >>> rows = np.random.default_rng(0).random((300, 4)) * 0.1 + 0.5
        >>> rows[250, 2] = 9.0
        >>> result = OnlineNSNMF(n_components=2, random_state=0).process(rows, n_variables=1)
        >>> bool(result.flags[250]), int(result.variables[250, 0])
        (True, 2)
        """
        check_whole_number("n_variables", n_variables, least=0)
        table = self._read(X)
        with self._announcing():
            return self._begun().take_and_explain(table, n_variables)

    def partial_fit(self, X: Any, y: Any = None) -> Self:
        """Learn the rows of X in turn.

        Parameters
        ----------
        X : array-like of shape (n, p)
        y : ignored

        Returns
        -------
        self
        """
        self.update_many(X)
        return self

    def fit(self, X: Any, y: Any = None) -> Self:
        """Forget everything, pass the rows of X through, and keep their scores.

        With fewer rows than the warm-up asks for, it ends with the last of them.

        Parameters
        ----------
        X : array-like of shape (n, p)
        y : ignored

        Returns
        -------
        self
        """
        with restore_on_failure(self), logged_fit(type(self).__name__):
            for name in ("_stream", "_batch_threshold"):
                self.__dict__.pop(name, None)
            table = self._read(X)
            stream = self._begun()
            with self._announcing():
                scores = stream.take(table)
                if stream.factors is None:
                    found, K = stream.n_waiting, self.n_components
                    if found < 2:
                        n = f"n_samples = {len(table)}"
                        raise ValueError(f"{self!r} needs at least 2 rows with readings; got {found} ({n}).")
                    if found < K:
                        warn_caller(f"Only {found} rows have readings, so n_components = {K} was lowered to {found}.")
                    stream.end_warmup()
            assert stream.warmup_scores is not None
            usable = np.flatnonzero(~np.isnan(table).all(axis=1))[: len(stream.warmup_scores)]
            scores[usable] = stream.warmup_scores
            self.scores_ = scores
            self._row_labels = pandas_index(X)
            if self.threshold is None or np.isnan(stream.threshold.value):
                now = stream.score(table)
                self._batch_threshold = (stream.n_seen, score_threshold(now[~np.isnan(now)]))
            return self

    @contextmanager
    def _announcing(self) -> Iterator[None]:
        """Warn, when the warm-up ends in the block, of what it could not learn and of what may go wrong."""
        was_warm = self.is_warm
        yield
        if was_warm or not self.is_warm:
            return
        stream, unseen = self._begun(), self.unseen_columns_
        if unseen:
            warn_caller(
                f"Columns {unseen} had no reading in the warm-up of {len(self.warmup_scores_)} samples, so they cannot "
                f"be scaled: their readings are left out. A longer warmup would include them."
            )
        similarity = stream.settings.similarity
        if stream.tightest < _TIGHT and similarity in ("inverse", "relative"):
            warn_caller(
                f"Two samples of the warm-up are {1 / stream.tightest:.0e} times nearer to each other than is usual "
                f"among them. With similarity={similarity!r} they may outweigh all others; 'binary' and 'normalized' "
                f"are safe from that."
            )

    def anomaly_score(self, X: Any) -> FloatArray:
        """Return what each row would score if it came next: the higher, the more anomalous. Nothing is taken in.

        Parameters
        ----------
        X : array-like of shape (n, p)

        Returns
        -------
        ndarray of shape (n,)
        """
        stream = self._warm()
        return stream.score(self._read(X))

    def check_parameters(self) -> None:
        """Raise a ValueError if a parameter is out of bounds: those declared, and how they go together."""
        check_bounds(self)
        if self.buffer_size > LARGEST_BUFFER:
            raise ValueError(
                f"buffer_size must be at most {LARGEST_BUFFER:,}: memory and the time for a sample grow with its "
                f"square. Got {self.buffer_size}."
            )
        if self.n_components > self.buffer_size:
            raise ValueError(
                f"n_components = {self.n_components} groups cannot be fitted to a buffer of {self.buffer_size} "
                f"samples. Lower n_components or raise buffer_size."
            )
        if self.warmup is not None:
            check_whole_number("warmup", self.warmup, least=self.buffer_size)

    @property
    def is_warm(self) -> bool:
        """Whether the warm-up has ended, so that samples are scored."""
        stream = self.__dict__.get("_stream")
        return stream is not None and stream.factors is not None

    @property
    def warmup_scores_(self) -> FloatArray:
        """Scores of the samples of the warm-up."""
        scores = self._warm().warmup_scores
        assert scores is not None
        return scores

    @property
    def running_threshold_(self) -> Threshold:
        """The threshold that follows the scores."""
        return self._warm().threshold

    @property
    def threshold_(self) -> float:
        """What scores are compared with now."""
        stream = self._warm()
        seen, value = self.__dict__.get("_batch_threshold", (-1, np.nan))
        if seen != stream.n_seen:
            value = stream.threshold.value
        return float(stream.highest if np.isnan(value) else value)

    @threshold_.setter
    def threshold_(self, value: float) -> None:
        if np.isnan(value):
            raise ValueError("threshold_ must be a number; got NaN.")
        self._warm().threshold = Fixed(float(value))
        self.__dict__.pop("_batch_threshold", None)

    @property
    def components_(self) -> FloatArray:
        """H as it is now."""
        factors = self._warm().factors
        assert factors is not None
        return factors.H

    @property
    def explained_(self) -> float:
        """Which share of the readings in the buffer the groups rebuild."""
        factors = self._warm().factors
        assert factors is not None
        return factors.explained

    @property
    def n_components_(self) -> int:
        """The number of latent groups."""
        return len(self.components_)

    @property
    def n_iter_(self) -> int:
        """Iterations of the factorisation that ended the warm-up."""
        return self._warm().n_iter

    @property
    def scaling_(self) -> MinMaxScaling | None:
        """How columns are taken to [0, 1]."""
        return self._warm().scaling

    @property
    def n_seen_(self) -> int:
        """How many samples came."""
        return self._begun().n_seen

    @property
    def missing_(self) -> IndexArray:
        """Missing readings of each column."""
        return self._begun().missing.copy()

    @property
    def n_missing_(self) -> int:
        """Missing readings of all columns."""
        return int(self._begun().missing.sum())

    @property
    def unseen_columns_(self) -> list[Any]:
        """Columns without a reading in the warm-up."""
        scaling = self._warm().scaling
        unseen = [] if scaling is None else np.flatnonzero(np.isnan(scaling.minimum)).tolist()
        names = getattr(self, "feature_names_in_", None)
        return unseen if names is None else [str(names[column]) for column in unseen]

    @property
    def stream(self) -> Stream:
        """The running stream, for programs that pass single rows without checks; raises before the first score."""
        return self._warm()

    def _begun(self) -> Stream:
        stream: Stream | None = self.__dict__.get("_stream")
        if stream is None:
            raise NotFittedError(f"{type(self).__name__} has not seen any sample yet. Call update_many, fit or update.")
        return stream

    def _warm(self) -> Stream:
        stream = self._begun()
        if stream.factors is None:
            raise NotFittedError(
                f"{type(self).__name__} is still warming up: it has seen {stream.n_waiting} of the "
                f"{stream.wanted} samples it needs before it can score."
            )
        return stream

    def _check_has_scores(self) -> None:
        if "scores_" not in self.__dict__:
            raise NotFittedError(
                f"{type(self).__name__} keeps the scores of the rows passed to fit only, not those of a stream without "
                f"end. Call fit, or rank what update_many returns."
            )

    def _new_stream(self) -> Stream:
        threshold = MeanDeviation() if self.threshold is None else self.threshold
        return Stream(self, self.n_features_in_, threshold.fresh())

    def _read(self, X: Any) -> FloatArray:
        """Return X as a table; the first one begins the stream."""
        if "_stream" in self.__dict__:
            return read_rows(self, X, first=False, scaled=self._stream.settings.scale is not None)
        self.check_parameters()
        table = read_rows(self, X, first=True, scaled=self.scale is not None)
        self._stream: Stream = self._new_stream()
        return table

    def _pack(self, *, labels: bool = True) -> dict[str, Any]:
        stream = self._begun()
        # A file holds the parameters and the stream; they must belong together.
        given = self.get_params(deep=False).items()
        changed = [name for name, value in given if name != "threshold" and value != getattr(stream.settings, name)]
        if changed:
            raise ValueError(
                f"Parameters were changed after the stream began ({', '.join(changed)}), which it goes on without. Set "
                f"them back before saving, or fit again."
            )
        seen, batch = self.__dict__.get("_batch_threshold", (-1, None))
        rows = getattr(self, "_row_labels", None) if labels else None
        return {
            "columns": pack_columns(self),
            "stream": stream.pack(),
            "scores": getattr(self, "scores_", None),
            "batch_threshold": batch if seen == stream.n_seen else None,
            "row_labels": pack_labels(rows),
        }

    def _unpack(self, state: dict[str, Any]) -> None:
        record = Record(state, "fitted")
        found = read_fields(record, _FIELDS)
        unpack_columns(self, record.part("columns"))
        stream = self._new_stream()
        stream.unpack(record.part("stream"))
        if found["scores"] is not None:
            self.scores_ = found["scores"]
            self._row_labels = unpack_labels(record.optional_part("row_labels"), len(self.scores_))
        if found["batch_threshold"] is not None:
            self._batch_threshold = (stream.n_seen, found["batch_threshold"])
        self._stream = stream

    def _has_state(self) -> bool:
        return "_stream" in self.__dict__

    def __sklearn_is_fitted__(self) -> bool:
        return self.is_warm

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        tags.input_tags.positive_only = self.scale is None
        return tags
