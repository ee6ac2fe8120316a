"""Detectors in the shape scikit-learn expects; `penstock.registry` lists them.

Classes load on first use. The imports below are for type checkers and editors.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from penstock.registry import DETECTORS, detector_class

if TYPE_CHECKING:
    from penstock.detectors._base import BaseDetector as BaseDetector
    from penstock.detectors._factor_base import CollapsedFactorsWarning as CollapsedFactorsWarning
    from penstock.detectors._factor_base import FactorDetector as FactorDetector
    from penstock.detectors._factor_base import limit_components as limit_components
    from penstock.detectors._saving import load as load
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
    from penstock.detectors.recommended import Detector as Detector
    from penstock.detectors.snmf import SNMF as SNMF

_OTHERS = {
    "BaseDetector": "penstock.detectors._base",
    "CollapsedFactorsWarning": "penstock.detectors._factor_base",
    "FactorDetector": "penstock.detectors._factor_base",
    "limit_components": "penstock.detectors._factor_base",
    "load": "penstock.detectors._saving",
    "restore": "penstock.detectors._saving",
    "state_of": "penstock.detectors._saving",
}
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
