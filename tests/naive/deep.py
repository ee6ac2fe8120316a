"""AER and DAGMM straight from their equations, in slow loops and textbook linear algebra. Imports nothing of ours."""

from __future__ import annotations

import math
from itertools import pairwise

import numpy as np


def forward(row, layers, bends_code):
    """A row through (weights, biases) layers: tanh after each but the last and, unless bends_code, the middle one."""
    values, code = list(row), None
    middle = len(layers) // 2
    for place, (weights, biases) in enumerate(layers, start=1):
        sums = [
            biases[j] + sum(values[i] * weights[i][j] for i in range(len(values))) for j in range(len(biases))
        ]  # fmt: skip
        straight = place == len(layers) or (place == middle and not bends_code)
        values = sums if straight else [math.tanh(value) for value in sums]
        if place == middle:
            code = values
    return code, values


def split(sizes, weights):
    """(weights, biases) of each layer from one flat list: a matrix by rows, then the biases, layer after layer."""
    layers, at = [], 0
    for n_in, n_out in pairwise(sizes):
        matrix = [[float(weights[at + i * n_out + j]) for j in range(n_out)] for i in range(n_in)]
        at += n_in * n_out
        layers.append((matrix, [float(value) for value in weights[at : at + n_out]]))
        at += n_out
    assert at == len(weights)
    return layers


def aer_scores(A, layers):
    return [math.dist(row, forward(row, layers, True)[1]) for row in A]


def aer_loss(A, S, layers, penalty, weight_decay):
    """Yu et al. (2013), with means in place of sums: rows, pairs of neighbours (each both ways), weights."""
    n = len(A)
    passes = [forward(row, layers, True) for row in A]
    rebuilding = sum(math.dist(A[i], passes[i][1]) ** 2 for i in range(n)) / n
    apart, edges = 0.0, 0.0
    for i in range(n):
        for j in range(n):
            apart += S[i][j] * math.dist(passes[i][0], passes[j][0]) ** 2
            edges += S[i][j]
    decay = sum(weight**2 for matrix, _ in layers for line in matrix for weight in line)
    return rebuilding + penalty * apart / edges + weight_decay * decay


def latent(row, layers, floor):
    """Zong et al. (2018), eq. 1 and 2; norms are at least `floor`."""
    code, rebuilt = forward(row, layers, False)
    length = max(math.hypot(*row), floor)
    other = max(math.hypot(*rebuilt), floor)
    cosine = sum(a * b for a, b in zip(row, rebuilt, strict=True)) / (length * other)
    return [*code, math.dist(row, rebuilt) / length, cosine]


def memberships(z, layers):
    """Zong et al. (2018), eq. 3, without dropout; tanh, then a softmax."""
    values = list(z)
    for place, (weights, biases) in enumerate(layers, start=1):
        sums = [biases[j] + sum(values[i] * weights[i][j] for i in range(len(values))) for j in range(len(biases))]
        values = [math.tanh(value) for value in sums] if place < len(layers) else sums
    powers = [math.exp(value) for value in values]
    return [power / sum(powers) for power in powers]


def mixture(Z, shares, jitter):
    """Zong et al. (2018), eq. 4 and 5, plus jitter on the diagonal."""
    Z, n = np.array(Z), len(Z)
    result = []
    for k in range(len(shares[0])):
        mass = sum(shares[i][k] for i in range(n))
        mean = sum(shares[i][k] * Z[i] for i in range(n)) / mass
        covariance = sum(shares[i][k] * np.outer(Z[i] - mean, Z[i] - mean) for i in range(n)) / mass
        result.append((mass / n, mean, covariance + jitter * np.eye(len(mean))))
    return result


def energy(z, gaussians):
    """Zong et al. (2018), eq. 6."""
    density = 0.0
    for share, mean, covariance in gaussians:
        apart = np.array(z) - mean
        square = apart @ np.linalg.inv(covariance) @ apart
        density += share * math.exp(-0.5 * square) / math.sqrt(np.linalg.det(2 * math.pi * covariance))
    return -math.log(density)


def dagmm_loss(A, layers, estimation, floor, jitter, energy_weight, variance_weight):
    """Zong et al. (2018), eq. 7."""
    n = len(A)
    Z = [latent(row, layers, floor) for row in A]
    gaussians = mixture(Z, [memberships(z, estimation) for z in Z], jitter)
    rebuilding = sum(math.dist(row, forward(row, layers, False)[1]) ** 2 for row in A) / n
    energies = sum(energy(z, gaussians) for z in Z) / n
    inverse = sum(1.0 / covariance[d, d] for _, _, covariance in gaussians for d in range(len(covariance)))
    return rebuilding + energy_weight * energies + variance_weight * inverse


def dagmm_scores(A, layers, estimation, floor, jitter):
    """The energies of rows under the mixture that they all make."""
    Z = [latent(row, layers, floor) for row in A]
    gaussians = mixture(Z, [memberships(z, estimation) for z in Z], jitter)
    return [energy(z, gaussians) for z in Z]
