"""What minimises f: the family of objectives and its solvers."""

from penstock.factor.block_sgd import BlockSGD
from penstock.factor.coordinate import Coordinate
from penstock.factor.multiplicative import Multiplicative
from penstock.factor.objectives import Objective, gnmf, laplacian_nsnmf, nmf, nsnmf, snmf
from penstock.factor.row_blocks import RowBlocks
from penstock.factor.solve import fit_factors, solve
from penstock.factor.start import Auto, random_start

__all__ = [
    "Auto",
    "BlockSGD",
    "Coordinate",
    "Multiplicative",
    "Objective",
    "RowBlocks",
    "fit_factors",
    "gnmf",
    "laplacian_nsnmf",
    "nmf",
    "nsnmf",
    "random_start",
    "snmf",
    "solve",
]
