"""Detectors in the shape scikit-learn expects."""

from penstock.detectors._base import BaseDetector
from penstock.detectors._factor_base import CollapsedFactorsWarning, FactorDetector
from penstock.detectors.controls import KNNDistance, MeanDistance, NormScore
from penstock.detectors.gnmf import GNMF
from penstock.detectors.lomst import LoMST
from penstock.detectors.nmf import NMF
from penstock.detectors.nsnmf import NSNMF, LaplacianNSNMF
from penstock.detectors.online import OnlineNSNMF
from penstock.detectors.recommended import Detector
from penstock.detectors.snmf import SNMF

__all__ = [
    "GNMF",
    "NMF",
    "NSNMF",
    "SNMF",
    "BaseDetector",
    "CollapsedFactorsWarning",
    "Detector",
    "FactorDetector",
    "KNNDistance",
    "LaplacianNSNMF",
    "LoMST",
    "MeanDistance",
    "NormScore",
    "OnlineNSNMF",
]
