"""What `OnlineNSNMF` shows of its stream; the docstring of that class says what each attribute is."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.exceptions import NotFittedError

from penstock._types import FloatArray, IndexArray
from penstock.detectors._stream import Stream
from penstock.prepare import MinMaxScaling
from penstock.thresholds import Fixed, Threshold


class StreamAttributes:
    """The attributes of a detector that keeps its stream in `_stream`, once there is one."""

    _stream: Stream
    _batch_threshold: tuple[int, float]  # how many samples had come when it was chosen, and what it is

    @property
    def is_warm(self) -> bool:
        """Whether the warm-up has ended, so that samples are scored."""
        stream = self.__dict__.get("_stream")
        return stream is not None and stream.factors is not None

    @property
    def warmup_scores_(self) -> FloatArray:
        scores: FloatArray | None = self._warm().warmup_scores
        assert scores is not None
        return scores

    @property
    def running_threshold_(self) -> Threshold:
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
    def offset_(self) -> float:
        """−threshold_, scikit-learn's word for it; setting one sets the other."""
        return 0.0 - self.threshold_

    @offset_.setter
    def offset_(self, value: float) -> None:
        self.threshold_ = 0.0 - float(value)

    @property
    def components_(self) -> FloatArray:
        factors = self._warm().factors
        assert factors is not None
        return factors.H

    @property
    def n_components_(self) -> int:
        return len(self.components_)

    @property
    def n_iter_(self) -> int:
        return self._warm().n_iter

    @property
    def scaling_(self) -> MinMaxScaling | None:
        return self._warm().scaling

    @property
    def n_seen_(self) -> int:
        return self._begun().n_seen

    @property
    def missing_(self) -> IndexArray:
        return self._begun().missing.copy()

    @property
    def n_missing_(self) -> int:
        return int(self._begun().missing.sum())

    @property
    def unseen_columns_(self) -> list[Any]:
        scaling = self._warm().scaling
        unseen = [] if scaling is None else np.flatnonzero(np.isnan(scaling.minimum)).tolist()
        names = getattr(self, "feature_names_in_", None)
        return unseen if names is None else [str(names[column]) for column in unseen]

    def _begun(self) -> Stream:
        stream: Stream | None = self.__dict__.get("_stream")
        if stream is None:
            raise NotFittedError(f"{type(self).__name__} has not seen any sample yet. Call update_many, fit or update.")
        return stream

    def _warm(self) -> Stream:
        stream = self._begun()
        if stream.factors is None:
            raise NotFittedError(
                f"{type(self).__name__} is still warming up: it has seen {stream.warmup.n_rows} of the "
                f"{stream.settings.warmup} samples it needs before it can score."
            )
        return stream
