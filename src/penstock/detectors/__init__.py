"""Detectors in the shape scikit-learn expects; `penstock.registry` lists them.

Classes load on first use. The imports below are for type checkers and editors.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from penstock.registry import DETECTORS, detector_class

if TYPE_CHECKING:
    from penstock.detectors._base import BaseDetector as BaseDetector
    from penstock.detectors._base import ClusterPlan as ClusterPlan
    from penstock.detectors._base import Copies as Copies
    from penstock.detectors._base import FitNeeds as FitNeeds
    from penstock.detectors._base import cluster_plan as cluster_plan
    from penstock.detectors._base import fit_needs as fit_needs
    from penstock.detectors._base import restore_on_failure as restore_on_failure
    from penstock.detectors._base import score_array as score_array
    from penstock.detectors._factor_base import CollapsedFactorsWarning as CollapsedFactorsWarning
    from penstock.detectors._factor_base import FactorDetector as FactorDetector
    from penstock.detectors._factor_base import FactorModel as FactorModel
    from penstock.detectors._factor_base import FactorTask as FactorTask
    from penstock.detectors._factor_base import Problem as Problem
    from penstock.detectors._factor_base import nearest_distances as nearest_distances
    from penstock.detectors._factor_base import row_maxima as row_maxima
    from penstock.detectors._input import LARGEST_VALUE as LARGEST_VALUE
    from penstock.detectors._saving import restore as restore
    from penstock.detectors._saving import state_of as state_of
    from penstock.detectors.controls import KNNDistance as KNNDistance
    from penstock.detectors.controls import MeanDistance as MeanDistance
    from penstock.detectors.controls import NormScore as NormScore
    from penstock.detectors.gnmf import GNMF as GNMF
    from penstock.detectors.lomst import LoMST as LoMST
    from penstock.detectors.nmf import NMF as NMF
    from penstock.detectors.nsnmf import NSNMF as NSNMF
    from penstock.detectors.nsnmf import LaplacianNSNMF as LaplacianNSNMF
    from penstock.detectors.online import OnlineNSNMF as OnlineNSNMF
    from penstock.detectors.over_time import OverTime as OverTime
    from penstock.detectors.rank import RankChoice as RankChoice
    from penstock.detectors.rank import choose_rank as choose_rank
    from penstock.detectors.recommended import Detector as Detector
    from penstock.detectors.recommended import ViewsModel as ViewsModel
    from penstock.detectors.refitting import scores_without_the_highest as scores_without_the_highest
    from penstock.detectors.sensors import MONITOR as MONITOR
    from penstock.detectors.sensors import SensorDetector as SensorDetector
    from penstock.detectors.sensors import SeriesDetector as SeriesDetector
    from penstock.detectors.sensors import SeriesMonitor as SeriesMonitor
    from penstock.detectors.sensors import read_runs as read_runs
    from penstock.detectors.sensors import read_time as read_time
    from penstock.detectors.sensors import restore_monitor as restore_monitor
    from penstock.detectors.snmf import SNMF as SNMF

_HOMES = {
    "_base": (
        *("BaseDetector", "Copies", "FitNeeds", "ClusterPlan", "fit_needs", "cluster_plan", "restore_on_failure"),
        "score_array",
    ),
    "_factor_base": (
        *("CollapsedFactorsWarning", "FactorDetector", "FactorModel", "FactorTask", "Problem"),
        *("nearest_distances", "row_maxima"),
    ),
    "_input": ("LARGEST_VALUE",),
    "_saving": ("restore", "state_of"),
    "rank": ("RankChoice", "choose_rank"),
    "recommended": ("ViewsModel",),
    "refitting": ("scores_without_the_highest",),
    "sensors": ("MONITOR", "SeriesDetector", "SeriesMonitor", "read_runs", "read_time", "restore_monitor"),
}
_OTHERS = {name: f"penstock.detectors.{module}" for module, names in _HOMES.items() for name in names}
__all__ = [*DETECTORS, *_OTHERS]  # noqa: PLE0604


def __getattr__(name: str) -> Any:
    if name in DETECTORS:
        return detector_class(name)
    if name in _OTHERS:
        from importlib import import_module

        return getattr(import_module(_OTHERS[name]), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
