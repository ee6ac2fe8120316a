"""Autoencoders and their mixtures, compiled: one row at a time, so that a score cannot depend on the other rows."""

from __future__ import annotations

from typing import Any

import numpy as np

from penstock._jit import kernel
from penstock._scoring_kernels import LARGEST, norm

Array = Any

FARTHEST = 1e100  # latent values are cut here: their squares may overflow, but only to +∞


@kernel
def pass_layers(sizes: Array, bent: Array, weights: Array, first: int, last: int, values: Array, spare: Array) -> None:
    """Take `values` through the layers first..last − 1; layer l has sizes[l]·sizes[l+1] weights, then its biases."""
    start = 0
    for layer in range(first):
        start += (sizes[layer] + 1) * sizes[layer + 1]
    for layer in range(first, last):
        n_in, n_out = sizes[layer], sizes[layer + 1]
        biases = start + n_in * n_out
        for j in range(n_out):
            spare[j] = weights[biases + j]
        for i in range(n_in):
            value = values[i]
            for j in range(n_out):
                spare[j] += value * weights[start + i * n_out + j]
        for j in range(n_out):
            values[j] = np.tanh(spare[j]) if bent[layer] else spare[j]
        start = biases + n_out


@kernel
def rebuild_rows(
    A: Array, sizes: Array, bent: Array, weights: Array, start: int, stop: int, codes: Array, rebuilt: Array
) -> None:
    """codes[i] and rebuilt[i]: what the net makes of row i in its middle and at its end."""
    widest = sizes.max()
    values, spare = np.empty(widest), np.empty(widest)
    middle = len(sizes) // 2
    for i in range(start, stop):
        for d in range(A.shape[1]):
            values[d] = A[i, d]
        pass_layers(sizes, bent, weights, 0, middle, values, spare)
        for k in range(sizes[middle]):
            codes[i, k] = values[k]
        pass_layers(sizes, bent, weights, middle, len(sizes) - 1, values, spare)
        for d in range(A.shape[1]):
            rebuilt[i, d] = values[d]


@kernel
def write_latent(a: Array, code: Array, rebuilt: Array, floor: float, spare: Array, z: Array) -> None:
    """z = [code, ‖a − â‖/‖a‖, cosine of a and â], norms not below `floor`. Zong et al. (2018), eq. 2."""
    p, k = a.shape[0], code.shape[0]
    for c in range(k):
        z[c] = min(max(code[c], -FARTHEST), FARTHEST)
    for d in range(p):
        spare[d] = a[d] - rebuilt[d]
    length, other = max(norm(a), floor), max(norm(rebuilt), floor)
    z[k] = min(norm(spare[:p]) / length, FARTHEST)
    cosine = 0.0
    for d in range(p):
        cosine += (a[d] / length) * (rebuilt[d] / other)
    z[k + 1] = cosine


@kernel
def energy(z: Array, levels: Array, means: Array, whitening: Array, exponents: Array) -> float:
    """−log Σ_k exp(level_k − ½‖T_k(z − μ_k)‖²), T_k lower triangular. Zong et al. (2018), eq. 6."""
    size = z.shape[0]
    highest = -np.inf
    for k in range(levels.shape[0]):
        square = 0.0
        for r in range(size):
            total = 0.0
            for c in range(r + 1):
                total += whitening[k, r, c] * (z[c] - means[k, c])
            square += total * total
        exponents[k] = levels[k] - 0.5 * square
        highest = max(highest, exponents[k])
    if highest == -np.inf:
        return LARGEST
    total = 0.0
    for k in range(levels.shape[0]):
        total += np.exp(exponents[k] - highest)
    return float(-(highest + np.log(total)))


@kernel
def row_energies(
    A: Array,
    codes: Array,
    rebuilt: Array,
    floor: float,
    levels: Array,
    means: Array,
    whitening: Array,
    start: int,
    stop: int,
    out: Array,
) -> None:
    """out[i] = the energy of row i under the mixture."""
    z, exponents, spare = np.empty(means.shape[1]), np.empty(levels.shape[0]), np.empty(A.shape[1])
    for i in range(start, stop):
        write_latent(A[i], codes[i], rebuilt[i], floor, spare, z)
        out[i] = energy(z, levels, means, whitening, exponents)
