"""Small frozen records that several packages share."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

BoolArray = NDArray[np.bool_]
FloatArray = NDArray[np.float64]
IndexArray = NDArray[np.intp]
SparseMatrix = Any  # scipy.sparse.csr_array, for which SciPy ships no types


@dataclass(frozen=True)
class Tree:
    """A spanning tree: its edges in ascending order of (length, smaller index, larger index).

    Parameters
    ----------
    edges : array of shape (n − 1, 2)
        The two rows that each edge joins, the smaller index first.
    lengths : array of shape (n − 1,)
        Their distances.

    Examples
    --------
    >>> from penstock import minimum_spanning_tree
    >>> minimum_spanning_tree([[0.0], [2.0], [6.0]]).total_length
    6.0
    """

    edges: IndexArray
    lengths: FloatArray

    @property
    def n_nodes(self) -> int:
        return len(self.lengths) + 1

    @property
    def total_length(self) -> float:
        return float(self.lengths.sum())


@dataclass(frozen=True)
class Factors:
    """W (n×K, one row of weights per observation) and H (K×p, one profile per latent group).

    Examples
    --------
    >>> import numpy as np
    >>> factors = Factors(W=np.array([[1.0], [2.0]]), H=np.array([[0.5, 1.5]]))
    >>> (factors.W @ factors.H).tolist()
    [[0.5, 1.5], [1.0, 3.0]]
    """

    W: FloatArray
    H: FloatArray


@dataclass(frozen=True)
class Solution:
    """What a solver returns: the factors, how good they are, and how it got there.

    Examples
    --------
    >>> import numpy as np
    >>> from penstock.factor import fit_factors, nmf
    >>> solution = fit_factors(nmf(np.array([[1.0, 2.0], [2.0, 4.0], [0.5, 1.0]])), 1, random_state=0)
    >>> solution.converged, bool(solution.objective == solution.history[-1]), solution.factors.W.shape
    (True, True, (3, 1))
    """

    factors: Factors
    objective: float
    n_iter: int
    converged: bool
    kkt_residual: float
    history: FloatArray  # the objective at the start and after each iteration
    remaining: float = math.nan  # for `BlockSGD`: by what share one exact sweep would lower the objective further


@dataclass(frozen=True)
class StreamScores:
    """What is known of each sample when it has passed: its score, the threshold it was compared with, and why.

    `scores` is NaN for samples of the warm-up and for those without any reading, `thresholds` while there are too few
    scores to know one. `variables` are the columns with the largest residuals in scaled units, the largest first (−1
    where there is none), `residuals` by how much they differ from what was expected, in the user's units.
    """

    scores: FloatArray
    thresholds: FloatArray
    flags: BoolArray
    variables: IndexArray
    residuals: FloatArray
