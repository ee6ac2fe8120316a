"""What several tests of detectors share: taken from those of estimators."""

from __future__ import annotations

from functools import cache
from importlib.util import find_spec

import numpy as np
import pytest
from sklearn.base import clone

from penstock.detectors import (
    NSNMF,
    SNMF,
    BaseDetector,
    LoMST,
    SeriesDetector,
)
from penstock.factor import BlockSGD, Multiplicative
from penstock.registry import DETECTORS, detector_class

OTHERS = {"OnlineNSNMF", *(() if find_spec("torch") else ("AER", "DAGMM"))}
LISTED = {name: detector_class(name)(**entry.checks) for name, entry in DETECTORS.items() if name not in OTHERS}
CLASSES: list[BaseDetector] = [detector for name, detector in LISTED.items() if DETECTORS[name].method]
VARIANTS: list[BaseDetector] = [
    NSNMF(similarity="relative", score_kind="structural", solver=Multiplicative(), random_state=0),
    NSNMF(similarity="normalized", solver=BlockSGD(), random_state=0),
    SNMF(graph="self_tuning", random_state=0),
    LoMST("sd"),
    *(detector for name, detector in LISTED.items() if not DETECTORS[name].method),
]
ALL_DETECTORS = [*CLASSES, *VARIANTS]
TAKERS = [detector for detector in ALL_DETECTORS if type(detector)._takes_missing]
# With complete rows, and with rows that have holes where a detector takes them.
TABLES = [*((detector, False) for detector in ALL_DETECTORS), *((detector, True) for detector in TAKERS)]
both_scales = pytest.mark.parametrize("scale", ["minmax", None])


def rescaled(detector: BaseDetector, scale: str | None) -> BaseDetector:
    """Return a clone with this `scale`; one of a series has no such parameter, as sensors have a scale of their own."""
    return clone(detector).set_params(**({} if isinstance(detector, SeriesDetector) else {"scale": scale}))


def scores_of_single_rows(fitted: BaseDetector) -> np.ndarray:
    """Return the scores of training rows, each by itself: in a series, `scores_` are by what came before and after."""
    return fitted.single_row_scores_ if isinstance(fitted, SeriesDetector) else fitted.scores_


def some_rows(n: int = 80, p: int = 5, seed: int = 0) -> np.ndarray:
    """Positive, so that detectors take it scaled and unscaled."""
    rows = np.random.default_rng(seed).gamma(2.0, size=(n, p))
    rows[n // 2] *= 6.0
    return rows


def holey_rows(n: int = 80, p: int = 6, seed: int = 0, missing: float = 0.2) -> np.ndarray:
    """Rows with holes; the last column has none, so that any two share one."""
    X = some_rows(n, p, seed)
    X[:, :-1][np.random.default_rng(seed + 100).random((n, p - 1)) < missing] = np.nan
    return X


def agreeing_rows(holes: bool = True) -> np.ndarray:
    """Copies; with holes, also rows that differ by their holes alone, and some where neither has all of the other."""
    if not holes:
        return np.vstack([some_rows(p=6), some_rows(p=6)[:15], some_rows(p=6)[:3]])
    X = np.vstack([holey_rows(), holey_rows()[:10], some_rows(p=6)[20:40]])
    X[5, 0], X[6] = np.nan, np.nan_to_num(X[5], nan=1.0)
    X[7], X[8] = X[6], X[6]
    X[7, :2], X[8, 2:4] = np.nan, np.nan
    return X


@cache
def _fitted(number: int, scale: str | None, holes: bool) -> BaseDetector:
    return rescaled(ALL_DETECTORS[number], scale).fit(agreeing_rows(holes))


def fitted_to_agreeing_rows(detector: BaseDetector, scale: str | None, holes: bool) -> BaseDetector:
    """Return a detector of `ALL_DETECTORS` fitted to `agreeing_rows`, once for all tests; do not change it."""
    number = next(place for place, each in enumerate(ALL_DETECTORS) if repr(each) == repr(detector))
    return _fitted(number, scale, holes)


def new_rows(detector: BaseDetector) -> np.ndarray:
    """Return rows near and far, some that were fitted to, and as many with holes if the detector takes them."""
    complete = [some_rows(30, 6, seed=1), some_rows(p=6)[:5], 5 * some_rows(5, 6, seed=2)]
    holey = [holey_rows(30, seed=1), holey_rows()[:5], 5 * holey_rows(5, seed=3)]
    return np.vstack(complete + (holey if type(detector)._takes_missing else []))
