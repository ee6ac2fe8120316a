"""Online NS-NMF as a River anomaly detector (`pip install 'penstock[river]'`)."""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Mapping
from math import isfinite
from operator import itemgetter
from typing import Any, Literal

import numpy as np
from river import base

from penstock._parameters import estimator
from penstock._types import FloatArray
from penstock.detectors import LARGEST_VALUE, OnlineNSNMF
from penstock.graph.similarities import Kind
from penstock.thresholds import Threshold


@estimator
class RiverNSNMF(base.AnomalyDetector):
    """Neighbourhood-structure-assisted NMF over a stream of dicts.

    The features are those of the samples seen during the warm-up; an absent one is a missing value, which is left out
    and counted, and a new one after the warm-up is an error. `score_one` returns 0.0 until the warm-up has ended, and
    for a sample without any reading; it never learns. What `score_one` worked out is kept, so that `learn_one` of the
    same sample costs next to nothing.

    Parameters
    ----------
    seed
        As `random_state` of `penstock.OnlineNSNMF`: seeds the factorisation that ends the warm-up.
    n_components, alpha, buffer_size, similarity, max_iter, tol, forgetting, learn_flagged, threshold, gamma
        As there.
    refresh_every, scale, warmup, duplicates, accumulate
        As there.

    Examples
    --------

    >>> import random
    >>> from penstock.adapters.river import RiverNSNMF
    >>> rng = random.Random(0)
    >>> model = RiverNSNMF(n_components=1, similarity="relative", seed=0)
    >>> for _ in range(200):
    ...     model.learn_one({"flow": 0.5 + 0.1 * rng.random(), "level": 0.3 + 0.1 * rng.random()})
    >>> model.score_one({"flow": 0.55, "level": 0.35}) < 0.05 < model.score_one({"flow": 0.1, "level": 0.9})
    True

    References
    ----------
    [^1]: Ahmed, I., Hu, X. B., Acharya, M. P., Ding, Y. (2021). Neighborhood structure assisted non-negative matrix
    factorization and its application in unsupervised point-wise anomaly detection. JMLR 22.

    """

    n_components: int = 5
    alpha: float = 0.8
    buffer_size: int = 20
    similarity: Kind = "inverse"
    max_iter: int = 50
    tol: float = 1e-3
    forgetting: float = 1.0
    learn_flagged: bool = True
    threshold: Threshold | None = None
    seed: int | None = None
    gamma: float = 0.2
    refresh_every: int = 1
    scale: Literal["auto", "minmax"] | None = "auto"
    warmup: int | None = None
    duplicates: Literal["join", "zero"] = "join"
    accumulate: Literal["sample", "step"] = "sample"

    def __post_init__(self) -> None:
        self._waiting: list[dict[Hashable, float]] = []
        self._columns: dict[Hashable, None] = {}
        self._readings: Callable[[Mapping[Any, Any]], Any] = dict
        self._stream: Any = None

    def learn_one(self, x: Mapping[Any, Any]) -> None:
        if self._stream is not None:
            self._stream.learn(self._row(x))
            return
        if not self._waiting:
            self._detector().check_parameters()
        sample = {name: self._number(name, value) for name, value in x.items()}
        if all(map(math.isnan, sample.values())):
            return  # nothing to learn
        self._waiting.append(sample)
        if len(self._waiting) < (self.buffer_size if self.warmup is None else self.warmup):
            return
        # In an order that does not depend on that of the keys, so that shuffled dicts give the same bits.
        names = sorted({name for each in self._waiting for name in each}, key=lambda name: (str(name), repr(name)))
        detector = self._detector()
        try:
            detector.update_many([[each.get(name, math.nan) for name in names] for each in self._waiting])
        except BaseException:
            self._waiting.pop()
            raise
        self._columns = dict.fromkeys(names)
        self._readings = itemgetter(*names, *names[:1])  # twice the first: one feature alone would come without a tuple
        self._stream = detector.stream
        self._waiting = []

    def score_one(self, x: Mapping[Any, Any]) -> float:
        if self._stream is None:
            return 0.0
        score = self._stream.propose(self._row(x))
        return 0.0 if math.isnan(score) else score

    @property
    def feature_names(self) -> list[Hashable]:
        """The features, in the order the model has them; empty before the warm-up has ended."""
        return list(self._columns)

    def _detector(self) -> OnlineNSNMF:
        parameters = {name: value for name, value in self._get_params().items() if name != "seed"}
        return OnlineNSNMF(random_state=self.seed, **parameters)

    def _row(self, x: Mapping[Any, Any]) -> FloatArray:
        columns = self._columns
        if len(x) == len(columns):
            try:
                readings = self._readings(x)[:-1]
                plain = self.scale is not None or (min(readings) >= 0 and max(readings) <= LARGEST_VALUE)
                if plain and isfinite(sum(readings)):
                    return np.array((readings,), dtype=np.float64)
            except (KeyError, TypeError, ValueError):
                pass  # the careful way finds out what is wrong, if anything is
        if not x.keys() <= columns.keys():
            raise ValueError(
                f"New features {sorted(map(str, x.keys() - columns.keys()))} after the warm-up, which knew "
                f"{len(columns)}. Leave them out, or begin a new model."
            )
        return np.array([[self._number(name, x.get(name)) for name in columns]])

    def _number(self, name: Hashable, value: Any) -> float:
        """Return the value as a number that can be taken in, NaN for None, or an error that names the feature."""
        try:
            number = math.nan if value is None else float(value)
        except (TypeError, ValueError):
            raise ValueError(f"Feature {name!r} is {value!r}, not a number. Encode it, or leave it out.") from None
        if math.isinf(number):
            raise ValueError(f"Feature {name!r} is {number}. Leave out readings that are not finite.")
        if self.scale is None and not (math.isnan(number) or 0 <= number <= LARGEST_VALUE):
            raise ValueError(
                f"Feature {name!r} is {number:g}; with scale=None values must lie between 0 and {LARGEST_VALUE:g}. "
                f"scale='auto' takes any numbers."
            )
        return number
