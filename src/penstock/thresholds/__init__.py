"""Scores → a threshold, above which they are flagged: on a stream, score by score, or from all scores at once."""

from penstock.thresholds._base import Threshold
from penstock.thresholds._registry import pack_threshold, unpack_threshold
from penstock.thresholds.conformal import ConformalPValue
from penstock.thresholds.contamination import Contamination, check_contamination, score_threshold
from penstock.thresholds.drifting_peaks import DriftingPeaks
from penstock.thresholds.fixed import Fixed
from penstock.thresholds.mean_deviation import MeanDeviation
from penstock.thresholds.peaks import PeaksOverThreshold
from penstock.thresholds.rolling_quantile import RollingQuantile
from penstock.thresholds.top_n import TopN

__all__ = [
    "ConformalPValue",
    "Contamination",
    "DriftingPeaks",
    "Fixed",
    "MeanDeviation",
    "PeaksOverThreshold",
    "RollingQuantile",
    "Threshold",
    "TopN",
    "check_contamination",
    "pack_threshold",
    "score_threshold",
    "unpack_threshold",
]
