"""Objectives of the NMF family and the solvers that minimise them."""

from penstock._types import Factors, Solution
from penstock.factor.objectives import Objective, gnmf, laplacian_nsnmf, nmf, nsnmf, snmf
from penstock.factor.settings import BlockSGD, Coordinate, Multiplicative, RowBlocks
from penstock.factor.solve import fit_factors, solve
from penstock.factor.start import random_start

__all__ = [
    "BlockSGD", "Coordinate", "Factors", "Multiplicative", "Objective", "RowBlocks", "Solution",
    "fit_factors", "gnmf", "laplacian_nsnmf", "nmf", "nsnmf", "random_start", "snmf", "solve",
]  # fmt: skip
