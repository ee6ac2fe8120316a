"""Any detector of rows over time: its residuals, or its scores where it rebuilds nothing, go through the time layer."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar, cast

import numpy as np
from sklearn.base import clone
from sklearn.utils import get_tags

from penstock._parameters import estimator
from penstock._threads import one_blas_thread
from penstock._types import BoolArray, FloatArray
from penstock.detectors._base import BaseDetector, score_array
from penstock.detectors._factor_base import FactorDetector
from penstock.detectors._saving import restore, state_of
from penstock.detectors.nsnmf import NSNMF
from penstock.detectors.sensors import SeriesDetector
from penstock.sensors import (
    Clock,
    ResidualState,
    Scale,
    SeriesFit,
    SeriesModel,
    SeriesScores,
    TimeLayer,
    learn_clock,
    learn_movement,
    learn_scale,
    learn_time_layer,
    score_both_sides,
)
from penstock.sensors.packing import pack, unpack
from penstock.sensors.readings import without_holes
from penstock.sensors.residuals import leave_own_out, rebuild_rows
from penstock.storage import Record

_SET_ASIDE = 0.05  # of the rows, the highest, are not calibrated by
_LARGEST = 100.0  # in widths: residuals are cut there


@dataclass(frozen=True, eq=False)
class OverTimeModel(SeriesModel):
    """A fitted detector of rows as a source of residuals, and the time layer that follows them."""

    detector: BaseDetector
    scale: Scale
    clock: Clock
    layer: TimeLayer
    usual: tuple[float, float] | None  # of a detector that rebuilds nothing: median and width of its training scores

    def start(self) -> ResidualState:
        return ResidualState(self.layer.start())

    def score(
        self, X: FloatArray, state: ResidualState, time: FloatArray | None = None, runs: Any = None
    ) -> SeriesScores:
        residuals, filled = self._residuals(X)  # first, as the detector may refuse a row
        spacing = self.clock.follow(len(X), time, runs, state.last)
        return SeriesScores(*self.layer.score(residuals, filled, spacing, state.layer))

    def score_single_rows(self, X: FloatArray) -> FloatArray:
        return self.layer.score_single_rows(self._residuals(X)[0])

    def _residuals(self, X: FloatArray) -> tuple[FloatArray, FloatArray]:
        if self.usual is None:
            return self.residuals_of(X)
        there, scores = _with_readings(X), np.full(len(X), self.usual[0])
        if there.any():
            scores[there] = score_array(self.detector, np.ascontiguousarray(X[there]))
        return above_usual(scores, self.usual), without_holes(self.scale.apply(X))

    def residuals_of(self, X: FloatArray) -> tuple[FloatArray, FloatArray]:
        if not isinstance(self.detector, FactorDetector):
            raise AttributeError(
                f"{type(self.detector).__name__} rebuilds no rows, so that nothing is known of what a sensor should "
                f"have read. OverTime(NSNMF()) and SensorDetector() say it."
            )
        return rebuilt_residuals(self.detector, X, self.scale, self._held)

    @cached_property
    def _held(self) -> FloatArray | None:
        return held_apart_from_readings(self.detector) if isinstance(self.detector, FactorDetector) else None


def rebuilt_residuals(
    detector: FactorDetector, X: FloatArray, scale: Scale, held: FloatArray | None, weights: FloatArray | None = None
) -> tuple[FloatArray, FloatArray]:
    """Return residuals (n, p), and readings with rebuilt values where one is missing (n, p), in units of `scale`.

    X : (n, p) readings; NaN where one is missing. A row without any has residuals of 0.
    held : of `held_apart_from_readings`.
    weights : of the rows that have a reading; found by `detector.transform` if None.
    """
    Z = scale.apply(X)
    residuals, filled, there = np.zeros(X.shape), without_holes(Z), _with_readings(X)
    if not there.any():
        return residuals, filled
    W = detector.transform(X[there]) if weights is None else weights
    H = detector.components_
    rebuilt, inside, missing = rebuild_rows(W, H), Z[there], np.isnan(Z[there])
    scaling = detector.scaling_
    if scaling is not None:
        rebuilt = scaling.undo(rebuilt)
        inside = scale.apply(np.clip(X[there], scaling.minimum, scaling.maximum))
    rebuilt = scale.apply(rebuilt)
    found = np.where(missing, 0.0, inside - rebuilt)
    if held is not None:
        found = leave_own_out(found, H, held, W > 0, ~missing)
    found += np.where(missing, 0.0, Z[there] - inside)  # what is outside the range fitted has no part in the weights
    residuals[there] = np.clip(found, -_LARGEST, _LARGEST)
    filled[there] = np.where(missing, rebuilt, Z[there])
    return residuals, filled


def held_apart_from_readings(detector: FactorDetector) -> FloatArray | None:
    """Return Q of ‖a − wH‖² + wQwᵀ, as which the objective is seen by the weights w of one row when all else is fixed.

    None if the weights do not depend on readings (`SNMF`). Differs: the weights' own fourth power is left out, and each
    row counts as joined to others as much as rows are on average.
    """
    objective, W = detector.model_.problem.objective, detector.model_.factors.W
    if objective.A is None or not objective.alpha > 0:
        return None
    degree = float(objective.structure.degree.mean())
    ridge = (objective.gamma + objective.laplacian * degree) / 2
    with one_blas_thread():
        held: FloatArray = 2 / objective.alpha * (objective.symmetric * (W.T @ W) + ridge * np.eye(W.shape[1]))
    return held


def above_usual(scores: FloatArray, usual: tuple[float, float]) -> FloatArray:
    """Return how far scores are above their median in widths (n, 1), at most 100; 0 below it, as low is normal."""
    with np.errstate(over="ignore"):
        return np.clip((scores - usual[0]) / usual[1], 0.0, _LARGEST)[:, None]


def _named(table: FloatArray, there: BoolArray, index: Any) -> Any:
    """Return the rows that are there, with an index where it is needed for messages that name rows as the user does."""
    if index is None and there.all():
        return table
    import pandas as pd  # see `BaseDetector.top`

    return pd.DataFrame(table[there], index=np.flatnonzero(there) if index is None else index[there])


def _with_readings(X: FloatArray) -> BoolArray:
    return np.asarray(~np.isnan(X).all(axis=1))


@estimator
class OverTime(SeriesDetector):
    """Give any detector of rows a sense of time: `OverTime(NSNMF(30))`.

    Of a detector that rebuilds rows (`NSNMF`, `LaplacianNSNMF`, `NMF`, `GNMF`, `SNMF`) the residuals of each sensor,
    readings minus rebuilt ones from the rows' own weights, go through the time layer of `SensorDetector`: compared with
    what is usual when the plant moves as much, followed over horizons, calibrated by blocks of time. A residual is
    divided by 1 − h, h the leverage of the reading on its own rebuilt value: a reading must not vouch for itself. (A
    factorisation whose weights are held by the graph rather than by the readings has little leverage.)

    Of a detector that rebuilds nothing (`Detector`, `KNNDistance`, `LoMST`, …) the score of each row goes through it.
    Then `evidence_` has one column, that of the score, as nothing is known of single sensors, and `expected` and
    `deviations` raise an AttributeError.

    Use it to see what time adds to a method; for a plant begin with `SensorDetector`. The detector is fitted once, on
    all rows. `out_of_sample_scores_` and `new_row_rate_` come from training rows as they are, and later rows, which the
    detector has not seen, may score higher.

    Parameters
    ----------
    detector : detector, default=None
        One of penstock that scores rows by themselves; it is cloned. None: `NSNMF(random_state=0)`, with at most half
        as many groups as there are columns.
    contamination : "auto", float in (0, 0.5] or threshold, default="auto"
        Sets `threshold_`, for rows scored by themselves, as for `SensorDetector`. That of the inner detector has no
        effect.

    Attributes
    ----------
    detector_ : BaseDetector
        The detector that was fitted.
    evidence_ : ndarray of shape (n, p) or (n, 1)
        How far each sensor (or the score) is from what is usual at each training row: 1 at its edge. Not in saved
        files.
    scores_, single_row_scores_, out_of_sample_scores_, rate_, new_row_rate_ :
        As in `SensorDetector`.
    model_ : OverTimeModel
        All that scoring later rows needs.

    Examples
    --------
    >>> import numpy as np
    >>> from penstock import NMF
    >>> rng = np.random.default_rng(0)
    >>> load = 5 + np.sin(np.arange(600) / 30)[:, None] @ np.ones((1, 6)) + 0.05 * rng.normal(size=(600, 6))
    >>> load[400:420, 2] += 0.3  # one sensor reads too high for a while
    >>> detector = OverTime(NMF(1, random_state=0)).fit(load)
    >>> bool(400 <= detector.scores_.argmax() < 425), int(detector.evidence_[410].argmax())
    (True, 2)
    """

    scale: ClassVar[str | None] = None  # type: ignore[misc]

    detector: Any = None

    @property
    def _fitted(self) -> OverTimeModel:
        return cast("OverTimeModel", self.model_)

    def check_parameters(self) -> None:
        """Raise a ValueError if a parameter is out of bounds."""
        super().check_parameters()
        inner = self._inner()
        if isinstance(inner, SeriesDetector):
            raise ValueError(f"{type(inner).__name__} looks at time by itself. Use it as it is, without OverTime.")
        if not isinstance(inner, BaseDetector):
            raise ValueError(
                f"detector must be None or a detector of penstock that scores rows by themselves, such as NSNMF(30) or "
                f"KNNDistance(); got {inner!r:.100}."
            )
        inner.check_parameters()

    @property
    def detector_(self) -> BaseDetector:
        """The detector that was fitted."""
        return self._fitted.detector

    @property
    def scores_sensors(self) -> bool:
        """Whether there is evidence of each sensor, not only of the row."""
        return isinstance(self._inner(), FactorDetector)

    def _inner(self) -> Any:
        return NSNMF(random_state=0) if self.detector is None else self.detector

    @property
    def _compares_rows(self) -> bool:  # type: ignore[override]
        return bool(self._inner()._compares_rows)

    def _learn(self, table: FloatArray, time: FloatArray | None, runs: Any, index: Any) -> SeriesFit:
        clock = learn_clock(time, runs)
        spacing = clock.follow(len(table), time, runs)
        scale = learn_scale(table, spacing.starts)
        there = _with_readings(table)
        inner = clone(self._inner())
        if self.detector is None:  # as many groups as columns could rebuild any row
            inner.set_params(n_components=min(inner.n_components, max(1, (table.shape[1] + 1) // 2)))
        detector = inner.fit(_named(table, there, index))
        usual = None
        if isinstance(detector, FactorDetector):
            R, filled = rebuilt_residuals(
                detector, table, scale, held_apart_from_readings(detector), detector.embedding_
            )
            scored, leads = scale.scored, scale.leads
            if not scored.any():
                scored = np.ones_like(scored)
        else:
            usual = _usual(detector.scores_)
            scores = np.full(len(table), usual[0])
            scores[there] = detector.scores_
            R, filled = above_usual(scores, usual), without_holes(scale.apply(table))
            scored = leads = np.ones(1, dtype=np.bool_)
        kept = np.ones(len(table), dtype=np.bool_)
        first = score_both_sides(R, learn_movement(filled, spacing, kept), spacing, kept, scored, leads).scores
        kept = first <= np.quantile(first, 1 - _SET_ASIDE)
        movement = learn_movement(filled, spacing, kept)
        found = score_both_sides(R, movement, spacing, kept, scored, leads)
        layer, out_of_sample = learn_time_layer(R, movement, spacing, kept, scored, leads)
        scores = np.maximum(found.scores, found.surprise_before())
        model = OverTimeModel(detector, scale, clock, layer, usual)
        return SeriesFit(model, SeriesScores(scores, layer.on_all_sensors(found.evidence)), out_of_sample)

    def _pack_series(self) -> dict[str, Any]:
        model = self._fitted
        return {
            "detector": state_of(model.detector),
            "scale": pack(model.scale),
            "clock": pack(model.clock),
            "layer": pack(model.layer),
            "usual": None if model.usual is None else np.array(model.usual),
        }

    def _unpack_series(self, record: Record) -> OverTimeModel:
        record.require_fields("detector", "scale", "clock", "layer", "usual")
        p, name = self.n_features_in_, type(self._inner()).__name__
        part = record.part("detector")
        if part.text("class") != name:  # before it is made: files may hold detectors in detectors without end
            raise part.error("class", name)
        detector = restore(record.value("detector"))
        if not detector._has_state() or detector.n_features_in_ != p or len(detector.scores_) > len(self.scores_):
            raise record.error("detector", "fitted to the rows of this file")
        usual = None
        if not self.scores_sensors:
            center, width = record.array("usual", np.float64, (2,))
            if not width > 0:
                raise record.error("usual", "a median and a width above 0")
            usual = (float(center), float(width))
        lengths = {"p": p, "r": p if usual is None else 1}
        scale = unpack(Scale, record.part("scale"), lengths)
        clock = unpack(Clock, record.part("clock"), lengths)
        return OverTimeModel(detector, scale, clock, unpack(TimeLayer, record.part("layer"), lengths), usual)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags = get_tags(self._inner()).input_tags
        tags.input_tags.sparse = self._takes_sparse
        return tags


def _usual(scores: FloatArray) -> tuple[float, float]:
    """Return the median of scores and their width: a standard deviation of the middle 90 %, or of all if that is 0."""
    low, center, high = np.quantile(scores, [0.05, 0.5, 0.95])
    with np.errstate(over="ignore"):
        widths = [(high - low) / 3.29, float(np.std(scores)), 1.0]
    return float(center), float(next(width for width in widths if width > 0 and np.isfinite(width)))
