"""Find what is wrong in a plant's sensor data, and the rows of any table that do not fit the rest.

>>> import penstock
>>> plant = penstock.datasets.load_plant()
>>> findings = penstock.detect(plant.table)
>>> findings.incident_table["first_sensor"].tolist()[0]
'unit2_guide_vane_opening'
"""

from __future__ import annotations

from importlib import import_module

from penstock.registry import DETECTORS

TYPE_CHECKING = False  # typing's, which takes a while to import
if TYPE_CHECKING:
    from typing import Any

    from penstock._types import Tree as Tree
    from penstock.detection import detect as detect
    from penstock.detection import fit_model as fit_model
    from penstock.detection import load as load
    from penstock.detection import look as look
    from penstock.detection import score as score
    from penstock.detectors import GNMF as GNMF
    from penstock.detectors import NMF as NMF
    from penstock.detectors import NSNMF as NSNMF
    from penstock.detectors import SNMF as SNMF
    from penstock.detectors import CollapsedFactorsWarning as CollapsedFactorsWarning
    from penstock.detectors import Detector as Detector
    from penstock.detectors import KNNDistance as KNNDistance
    from penstock.detectors import LaplacianNSNMF as LaplacianNSNMF
    from penstock.detectors import LoMST as LoMST
    from penstock.detectors import OnlineNSNMF as OnlineNSNMF
    from penstock.detectors import OverTime as OverTime
    from penstock.detectors import SensorDetector as SensorDetector
    from penstock.detectors import choose_rank as choose_rank
    from penstock.graph.mst import minimum_spanning_tree as minimum_spanning_tree
    from penstock.graph.mst import spanning_tree_of_edges as spanning_tree_of_edges
    from penstock.graph.similarities import similarity as similarity

__version__ = "0.1.0"

# Names load on first use, so that `import penstock` stays quick. Controls to compare with are in `penstock.detectors`.
_CONTROLS = ("MeanDistance", "NormScore")
_HOMES = {
    name: entry.module
    for name, entry in DETECTORS.items()
    if entry.module.startswith("penstock.") and name not in _CONTROLS
} | {
    "CollapsedFactorsWarning": "penstock.detectors",
    "Tree": "penstock._types",
    "choose_rank": "penstock.detectors",
    "detect": "penstock.detection",
    "fit_model": "penstock.detection",
    "load": "penstock.detection",
    "look": "penstock.detection",
    "minimum_spanning_tree": "penstock.graph.mst",
    "score": "penstock.detection",
    "similarity": "penstock.graph.similarities",
    "spanning_tree_of_edges": "penstock.graph.mst",
}

# Rooms of their own, whose other names are not taken over here.
_ROOMS = {
    "adapters", "bench", "certainty", "cli", "columns", "datasets", "detection", "detectors", "explain", "factor",
    "graph", "io", "live", "options", "prepare", "project", "ranking", "registry", "report", "scale", "scoring",
    "sensors", "simulate", "storage", "thresholds",
}  # fmt: skip

__all__ = [*_HOMES]  # noqa: PLE0604


def __getattr__(name: str) -> Any:
    if name in _ROOMS:
        return import_module(f"penstock.{name}")
    if name not in _HOMES:
        raise AttributeError(f"module 'penstock' has no attribute {name!r}")
    value = getattr(import_module(_HOMES[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({"__version__", *_HOMES, *_ROOMS})
