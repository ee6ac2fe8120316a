"""Turn scores into flags: a threshold that follows a stream score by score, or from all scores at once."""

from penstock.thresholds.base import Threshold, pack_threshold, parse_threshold, unpack_threshold
from penstock.thresholds.basic import (
    Contamination,
    Fixed,
    MeanDeviation,
    TopN,
    check_contamination,
    midway,
    score_threshold,
)
from penstock.thresholds.pareto import ParetoTail
from penstock.thresholds.peaks import DriftingPeaks, PeaksOverThreshold
from penstock.thresholds.quantile import ConformalPValue, RollingQuantile

__all__ = [
    "ConformalPValue", "Contamination", "DriftingPeaks", "Fixed", "MeanDeviation", "ParetoTail",
    "PeaksOverThreshold", "RollingQuantile", "Threshold", "TopN", "check_contamination", "midway", "pack_threshold",
    "parse_threshold", "score_threshold", "unpack_threshold",
]  # fmt: skip
