"""Scores → findings: the top N, or those above a threshold."""

from __future__ import annotations

from numbers import Real

import numpy as np
from numpy.typing import NDArray

from penstock._parameters import check_whole_number
from penstock._types import FloatArray
from penstock.io import TableError
from penstock.thresholds import Contamination, Exceedance, midway, score_threshold

_DEFAULT_TOP, _DEFAULT_SHARE = 100, 20  # the paper's list, but no more than one row in twenty


def default_top(n_rows: int) -> int:
    """How long the list is if nothing is said: the paper's 100, and of a small table a twentieth.

    >>> default_top(9219), default_top(400), default_top(5)
    (100, 20, 1)
    """
    return max(1, min(_DEFAULT_TOP, n_rows // _DEFAULT_SHARE))


def flag_top(scores: FloatArray, candidates: NDArray[np.bool_], n: int) -> tuple[NDArray[np.bool_], float]:
    """Flags of the n candidates with the highest scores, of equals the earlier, and a threshold that separates them.

    Scores above it are flagged, and of those equal to it, if the cut is among equals, the earlier ones.

    >>> flags, threshold = flag_top(np.array([1.0, 9.0, 3.0]), np.array([True, True, True]), 1)
    >>> flags.tolist(), threshold
    ([False, True, False], 6.0)
    >>> flags, threshold = flag_top(np.array([2.0, 1.0, 2.0, 2.0]), np.ones(4, dtype=bool), 2)
    >>> flags.tolist(), threshold
    ([True, False, True, False], 2.0)
    """
    check_whole_number("top", n, least=1)
    rows = np.flatnonzero(candidates)
    if n >= len(rows):
        raise TableError(
            f"top = {n} asks for as many findings as there are rows to judge ({len(rows):,}) or more. Ask for fewer."
        )
    order = rows[np.argsort(-scores[rows], kind="stable")]
    flags = np.zeros(len(scores), dtype=np.bool_)
    flags[order[:n]] = True
    return flags, midway(float(scores[order[n]]), float(scores[order[n - 1]]))


def flag_above(
    scores: FloatArray,
    candidates: NDArray[np.bool_],
    reference: FloatArray,
    threshold: Contamination,
    *,
    by_rate: bool = False,
) -> tuple[NDArray[np.bool_], float]:
    """Flags of the candidates above a threshold that is learnt from reference scores.

    by_rate : a share is that of normal rows, `Detector.set_false_alarm_rate`, and may be less than one of those learnt.
    """
    if by_rate and isinstance(threshold, Real):
        limit = Exceedance.of(reference).exceeded_at(float(threshold))
    else:
        limit = score_threshold(reference, threshold)
    return candidates & (np.nan_to_num(scores, nan=-np.inf) > limit), limit
