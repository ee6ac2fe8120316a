"""Trained nets as plain arrays: they rebuild and score rows without PyTorch, each row by itself to the last bit."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from penstock._threads import for_each_range
from penstock._types import FloatArray
from penstock.detectors._deep_kernels import FARTHEST, rebuild_rows, row_energies
from penstock.storage import Record

LARGEST_WEIGHT = 1e50  # with rows cut at 1e150, nothing in a net overflows
_SMALLEST_RANGE = 512  # rows per thread below which starting a thread costs more than it saves


@dataclass(frozen=True, eq=False)
class Autoencoder:
    """A net that leads p values through layers to a code and back: `sizes` reads the same both ways.

    Layers are bent by tanh, save for the last and, unless `bends_code`, the one that gives the code. `weights` holds
    for each layer the matrix (inputs × outputs, by rows) and then the biases.

    >>> net = Autoencoder(np.array([2, 1, 2]), False, np.array([1.0, 1.0, 0.0, 0.5, 0.5, 0.0, 0.0]))
    >>> codes, rebuilt = net.rebuild(np.array([[3.0, 1.0]]))
    >>> codes.tolist(), rebuilt.tolist()
    ([[4.0]], [[2.0, 2.0]])
    """

    sizes: NDArray[np.int64]
    bends_code: bool
    weights: FloatArray

    @cached_property
    def bent(self) -> NDArray[np.bool_]:
        """Which layers end in tanh."""
        bent = np.ones(len(self.sizes) - 1, dtype=np.bool_)
        bent[-1] = False
        bent[len(self.sizes) // 2 - 1] = self.bends_code
        return bent

    def __reduce__(self) -> tuple[Any, ...]:
        return Autoencoder, (self.sizes, self.bends_code, self.weights)  # not what is cached

    def rebuild(self, A: FloatArray) -> tuple[FloatArray, FloatArray]:
        """The codes of rows, and the rows rebuilt from them."""
        codes, rebuilt = np.empty((len(A), int(self.sizes[len(self.sizes) // 2]))), np.empty(A.shape)

        def work(start: int, stop: int) -> None:
            rebuild_rows(A, self.sizes, self.bent, self.weights, start, stop, codes, rebuilt)

        for_each_range(work, len(A), smallest=_SMALLEST_RANGE)
        return codes, rebuilt

    def pack(self) -> dict[str, Any]:
        return {"sizes": self.sizes, "weights": self.weights}


def unpack_net(record: Record, p: int, *, bends_code: bool) -> Autoencoder:
    """The net again, for rows of p values."""
    record.only("sizes", "weights")
    sizes = record.array("sizes", np.int64, (None,), least=1)
    if len(sizes) < 3 or len(sizes) % 2 == 0 or (sizes != sizes[::-1]).any() or sizes[0] != p:
        raise record.trouble("sizes", f"layers from {p} to {p} that read the same both ways")
    bound = LARGEST_WEIGHT
    weights = record.array("weights", np.float64, (weight_count(sizes.tolist()),), least=-bound, most=bound)
    return Autoencoder(sizes, bends_code, weights)


def weight_count(sizes: list[int]) -> int:
    """How many weights and biases layers of these sizes have.

    >>> weight_count([3, 2, 3])
    17
    """
    return sum((n_in + 1) * n_out for n_in, n_out in pairwise(sizes))


@dataclass(frozen=True, eq=False)
class Mixture:
    """Gaussians over z = [code, relative distance, cosine], ready for energies.

    `levels` are log φ_k − ½ log|2πΣ_k|, `whitening` the inverses of the Cholesky factors of Σ_k; `floor` is the least
    norm that a row is divided by.
    """

    levels: FloatArray
    means: FloatArray
    whitening: FloatArray
    floor: float

    def energies(self, A: FloatArray, net: Autoencoder) -> FloatArray:
        """−log density of each row's z."""
        codes, rebuilt = net.rebuild(A)
        out = np.empty(len(A))

        def work(start: int, stop: int) -> None:
            row_energies(
                A, codes, rebuilt, self.floor, self.levels, self.means, self.whitening, start, stop, out
            )  # fmt: skip

        for_each_range(work, len(A), smallest=_SMALLEST_RANGE)
        return out

    def pack(self) -> dict[str, Any]:
        return {"levels": self.levels, "means": self.means, "whitening": self.whitening, "floor": self.floor}


def unpack_mixture(record: Record, size: int) -> Mixture:
    """The mixture again, of z with `size` entries."""
    record.only("levels", "means", "whitening", "floor")
    levels = record.array("levels", np.float64, (None,), least=-FARTHEST, most=FARTHEST)
    k = len(levels)
    if k == 0:
        raise record.trouble("levels", "one number per Gaussian, and at least one")
    means = record.array("means", np.float64, (k, size), least=-FARTHEST, most=FARTHEST)
    bound = LARGEST_WEIGHT
    whitening = record.array("whitening", np.float64, (k, size, size), least=-bound, most=bound)
    floor = record.number("floor", least=float(np.finfo(np.float64).tiny))
    return Mixture(levels, means, whitening, floor)
