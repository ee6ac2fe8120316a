"""NS-NMF for streams: the paper's online algorithm with the faces of scikit-learn and of a plain loop."""

from __future__ import annotations

import warnings
from typing import Any, Literal, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, OutlierMixin

from penstock._parameters import check_whole_number
from penstock._types import FloatArray, StreamScores
from penstock.detectors._base import restore_on_failure
from penstock.detectors._input import table_of_one
from penstock.detectors._packing import pack_columns, unpack_columns
from penstock.detectors._saving import Saveable
from penstock.detectors._stream import Stream
from penstock.detectors._stream_attributes import StreamAttributes
from penstock.detectors._stream_input import read_first_rows, read_later_row, read_later_rows
from penstock.detectors._stream_settings import check_stream_parameters, stream_settings
from penstock.detectors._stream_state import pack_stream, unpack_stream
from penstock.detectors._warmup_warnings import announcing
from penstock.graph.similarities import Kind
from penstock.storage import Record
from penstock.thresholds import MeanDeviation, Threshold, score_threshold


class OnlineNSNMF(StreamAttributes, Saveable, OutlierMixin, BaseEstimator):  # type: ignore[misc]
    """NS-NMF over a stream: each sample is scored when it comes. Ahmed et al. (2021), Algorithm 2.

    The first `buffer_size` samples are collected and factorised by NS-NMF. Each later one joins the exact spanning tree
    of the samples in the buffer; its weights w and the profiles H follow by multiplicative steps, its score is
    ‖a − wH‖, and it takes the place of the oldest. Work per sample and memory do not grow with the stream.

    `update` and `update_many` score and learn in one go; `anomaly_score` and scikit-learn's `score_samples`, `predict`
    and `decision_function` score without learning. Rows one by one, in chunks of any size or all at once give the same
    scores to the last bit.

    Parameters
    ----------
    n_components : int
        K, the number of latent groups, at most `buffer_size`.
    alpha : float
        Weight of the attributes against the structure.
    buffer_size : int
        z: how many samples back the tree reaches, at most 2,000. The cost of a sample grows with z·(z + p).
    similarity : {"inverse", "binary", "relative", "normalized"}
        How lengths of the local tree become similarities; "inverse" is the paper's. On sensors, where samples follow
        each other closely, "binary" finds more (docs/streaming.md): one near pair cannot outweigh the rest.
    max_iter, tol :
        Steps for one sample end when the relative change of w is below `tol`, or after `max_iter` steps.
    forgetting : float in (0, 1]
        What is left of the past after each sample. 1 is the paper's: every sample counts for ever. With 0.999 a sample
        counts half after 693 more; rows of H are kept at their norms then.
    learn_flagged : bool
        Whether a sample above the threshold is learnt as well. With False it leaves no trace in the model or the
        buffer, and a lasting change of the process stays an anomaly until someone fits anew.
    threshold : Threshold or None
        From `penstock.thresholds`; a copy of it follows the scores. None: `MeanDeviation()`, the mean + 3 standard
        deviations of the unflagged scores.
    random_state : int, RandomState or None
        Seeds the factorisation that ends the warm-up.
    gamma : float
        Weight of the ridge term in that factorisation.
    refresh_every : int
        The profiles H move at every so many-th sample (1 is the paper's; 0: never after the warm-up). In between only
        w is fitted, and what samples teach is collected.
    scale : {"auto", "minmax", None}
        "minmax" takes each column to [0, 1] by its range in the warm-up, frozen afterwards. Values outside are clipped
        for the factorisation, never for the residual. "auto" does so unless all values of the warm-up lie in [0, 1]:
        then the stream counts as scaled already, and only values outside [0, 1] are clipped. With None values are taken
        as they are and must be non-negative.
    warmup : int or None
        How many samples are collected before the first score, at least `buffer_size`, which is what None stands for.
        More of them make a better range; those after the first `buffer_size` are then passed through the model.
    duplicates : {"join", "zero"}
        What an edge of length 0 is worth, to a sample that equals one in the buffer. "join" is the limit for a
        vanishing length, so that a copy scores as its original does; "zero" is the paper's formula to the letter, by
        which a copy is no neighbour at all, and an anomaly that repeats looks normal the second time.

    Missing readings (NaN) are left out: of distances and residuals, which are scaled up by p over the number of
    readings there are, and of the factorisation. They are counted in `missing_`. A sample without any reading scores
    NaN and is passed over.

    Attributes
    ----------
    warmup_scores_ : array
        Scores of the samples of the warm-up, known when it ends; those in the first buffer are residuals of the fit.
    threshold_ : float
        What scores are compared with now. While the threshold has seen too few scores, the highest score so far. After
        `fit` with threshold=None, until the next sample, chosen as by the other detectors from the scores of all rows
        under the model as it is. Setting it fixes it.
    running_threshold_ : Threshold
        The threshold at work.
    components_ : array of shape (n_components_, p)
        H as it is now, in scaled units.
    n_iter_ : int
        Iterations of the factorisation that ended the warm-up.
    n_seen_, missing_, n_missing_ :
        Samples that came; missing readings of each column; their sum.
    scaling_ : MinMaxScaling or None
        How columns are taken to [0, 1], once known; its `undo` leads back.
    unseen_columns_ : list
        Columns without a reading in the warm-up: if they had to be scaled, they have no range and are left out.
    scores_ : array
        After `fit` only: scores of the rows in the order they were passed, those of the warm-up included.

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
    """

    def __init__(
        self,
        n_components: int = 5,
        alpha: float = 0.8,
        buffer_size: int = 20,
        similarity: Kind = "inverse",
        max_iter: int = 50,
        tol: float = 1e-3,
        forgetting: float = 1.0,
        learn_flagged: bool = True,
        threshold: Threshold | None = None,
        random_state: Any = None,
        gamma: float = 0.2,
        refresh_every: int = 1,
        scale: Literal["auto", "minmax"] | None = "auto",
        warmup: int | None = None,
        duplicates: Literal["join", "zero"] = "join",
    ) -> None:
        self.n_components = n_components
        self.alpha = alpha
        self.buffer_size = buffer_size
        self.similarity = similarity
        self.max_iter = max_iter
        self.tol = tol
        self.forgetting = forgetting
        self.learn_flagged = learn_flagged
        self.threshold = threshold
        self.random_state = random_state
        self.gamma = gamma
        self.refresh_every = refresh_every
        self.scale = scale
        self.warmup = warmup
        self.duplicates = duplicates

    def update(self, row: Any) -> float:
        """Score one sample (p numbers, NaN for a missing reading) and learn it; NaN during the warm-up."""
        table = self._read_row(row)
        with announcing(self):
            return float(self._begun().take(table)[0])

    def update_many(self, X: Any) -> FloatArray:
        """Score samples in turn, learning each before the next; NaN for those of the warm-up."""
        table = self._read(X)
        with announcing(self):
            return self._begun().take(table)

    def process(self, X: Any, n_variables: int = 3) -> StreamScores:
        """As `update_many`, with the threshold each score met, the flags, and the variables with the largest residuals.

        >>> import numpy as np
        >>> rows = np.random.default_rng(0).random((300, 4)) * 0.1 + 0.5
        >>> rows[250, 2] = 9.0
        >>> result = OnlineNSNMF(n_components=2, random_state=0).process(rows, n_variables=1)
        >>> bool(result.flags[250]), int(result.variables[250, 0])
        (True, 2)
        """
        check_whole_number("n_variables", n_variables, least=0)
        table = self._read(X)
        with announcing(self):
            return self._begun().take_and_explain(table, n_variables)

    def partial_fit(self, X: Any, y: Any = None) -> Self:
        """Learn the rows of X in turn. `y` is ignored, for scikit-learn's sake."""
        self.update_many(X)
        return self

    def fit(self, X: Any, y: Any = None) -> Self:
        """Forget everything, pass the rows of X through, and keep their scores. `y` is ignored.

        With fewer rows than the warm-up asks for, it ends with the last of them.
        """
        with restore_on_failure(self):
            return self._fit_table(X)

    def _fit_table(self, X: Any) -> Self:
        for name in ("_stream", "_batch_threshold"):
            self.__dict__.pop(name, None)
        table = self._read(X)
        stream = self._begun()
        with announcing(self):
            scores = stream.take(table)
            if stream.factors is None:
                self._end_warmup_early(stream, len(table))
        assert stream.warmup_scores is not None
        usable = np.flatnonzero(~np.isnan(table).all(axis=1))[: len(stream.warmup_scores)]
        scores[usable] = stream.warmup_scores
        self.scores_ = scores
        if self.threshold is None or np.isnan(stream.threshold.value):
            now = stream.score(table)
            self._batch_threshold = (stream.n_seen, score_threshold(now[~np.isnan(now)]))
        return self

    def _end_warmup_early(self, stream: Stream, n: int) -> None:
        found = stream.warmup.n_rows
        if found < 2:
            raise ValueError(f"{self!r} needs at least 2 rows with readings; got {found} (n_samples = {n}).")
        if found < self.n_components:
            warnings.warn(
                f"Only {found} rows have readings, so n_components = {self.n_components} was lowered to {found}.",
                stacklevel=4,
            )
        stream.end_warmup()

    def anomaly_score(self, X: Any) -> FloatArray:
        """What each row would score if it came next: the higher, the more anomalous. Nothing is learnt."""
        stream = self._warm()
        return stream.score(self._read(X))

    def score_samples(self, X: Any) -> FloatArray:
        """−anomaly_score(X), scikit-learn's sign: the lower, the more anomalous."""
        return 0.0 - self.anomaly_score(X)

    def decision_function(self, X: Any) -> FloatArray:
        """score_samples(X) − offset_: negative for flagged rows."""
        return self.threshold_ - self.anomaly_score(X)

    def predict(self, X: Any) -> NDArray[np.int64]:
        """−1 for rows whose score is above the threshold as it is now, 1 for the others."""
        return np.where(self.decision_function(X) < 0, -1, 1)

    def check_parameters(self) -> None:
        check_stream_parameters(self)

    def _new_stream(self) -> Stream:
        threshold = MeanDeviation() if self.threshold is None else self.threshold
        return Stream(stream_settings(self), self.n_features_in_, threshold.fresh())

    def _read(self, X: Any) -> FloatArray:
        """X as a table; the first one begins the stream."""
        if "_stream" in self.__dict__:
            return read_later_rows(self, X, self._stream.settings.scale)
        self.check_parameters()
        table = read_first_rows(self, X, self.scale)
        self._stream = self._new_stream()
        return table

    def _read_row(self, row: Any) -> FloatArray:
        """One sample as a table of one row."""
        if "_stream" not in self.__dict__ or not isinstance(row, np.ndarray | list | tuple):
            return self._read(table_of_one(row))
        return read_later_row(self, row, self._stream.settings.scale)

    def _pack(self) -> dict[str, Any]:
        stream = self._begun()
        self._refuse_changed_parameters(stream)
        seen, batch = self.__dict__.get("_batch_threshold", (-1, None))
        return {
            "columns": pack_columns(self),
            "stream": pack_stream(stream),
            "scores": getattr(self, "scores_", None),
            "batch_threshold": batch if seen == stream.n_seen else None,
        }

    def _refuse_changed_parameters(self, stream: Stream) -> None:
        """A file holds the parameters and the stream; they must belong together."""
        now = stream_settings(self)
        if now != stream.settings:
            changed = [name for name, value in vars(now).items() if value != getattr(stream.settings, name)]
            raise ValueError(
                f"Parameters were changed after the stream began ({', '.join(changed)}), which it goes on without. Set "
                f"them back before saving, or fit anew."
            )

    def _unpack(self, state: dict[str, Any]) -> None:
        record = Record(state, "fitted").only("columns", "stream", "scores", "batch_threshold")
        unpack_columns(self, record.part("columns"))
        stream = self._new_stream()
        unpack_stream(stream, record.part("stream"))
        if record.value("scores") is not None:
            self.scores_ = record.array("scores", np.float64, (None,), least=0.0, missing=True)
        if record.value("batch_threshold") is not None:
            self._batch_threshold = (stream.n_seen, record.number("batch_threshold"))
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
