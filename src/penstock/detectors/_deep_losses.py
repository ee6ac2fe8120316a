"""What AER and DAGMM minimise, in PyTorch. Nothing here touches its global state."""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor

from penstock._types import FloatArray, SparseMatrix

Layers = list[tuple[Tensor, Tensor]]  # one (weights, biases) per layer

JITTER = 1e-6  # added to the variances of a Gaussian: codes and distances are of the order of one
_LEAST_MASS = 1e-12  # of a Gaussian that no row belongs to


@dataclass(frozen=True, eq=False)
class AERTask:
    """mean ‖a_i − â_i‖² + penalty · mean over edges ‖z_i − z_j‖² + weight_decay · Σ w². Yu et al. (2013).

    With all rows, all edges count. In a mini-batch each row meets one of its neighbours, drawn anew at each step, and
    the pair counts with the row's degree over the mean degree: on average that is the mean over all edges.
    """

    rows: Tensor
    ends: Tensor  # (edges, 2), every edge once
    first: Tensor  # where the neighbours of each row begin in `neighbors`
    degrees: Tensor
    neighbors: Tensor
    penalty: float
    weight_decay: float

    def loss(self, nets: list[Layers], picked: Tensor | None, generator: torch.Generator) -> Tensor:
        layers = nets[0]
        middle = len(layers) // 2
        if picked is None:
            a = self.rows
            z = run(a, layers[:middle], bend_last=True)
            apart = (z[self.ends[:, 0]] - z[self.ends[:, 1]]).square().sum(1).mean()
        else:
            a = self.rows[picked]
            partners = self._draw_partners(picked, generator)
            both = run(torch.cat([a, self.rows[partners]]), layers[:middle], bend_last=True)
            z, others = both[: len(a)], both[len(a) :]
            share = self.degrees[picked] / self.degrees.mean()
            apart = (share * (z - others).square().sum(1)).mean()
        rebuilt = run(z, layers[middle:], bend_last=False)
        decay = torch.stack([weights.square().sum() for weights, _ in layers]).sum()
        return (a - rebuilt).square().sum(1).mean() + self.penalty * apart + self.weight_decay * decay

    def _draw_partners(self, picked: Tensor, generator: torch.Generator) -> Tensor:
        draws = torch.rand(len(picked), generator=generator, dtype=torch.float64, device="cpu")
        places = (draws * self.degrees[picked]).long()
        return self.neighbors[self.first[picked] + places]


def pose_aer(A: FloatArray, S: SparseMatrix, penalty: float, weight_decay: float) -> AERTask:
    """The task for rows A and a 0-1 graph S."""
    entries = S.tocoo()
    rows, columns = (torch.from_numpy(coordinates.astype("int64")) for coordinates in entries.coords)
    pointers = torch.from_numpy(S.indptr.astype("int64"))
    once = rows < columns
    return AERTask(
        rows=torch.from_numpy(A),
        ends=torch.stack([rows[once], columns[once]], dim=1),
        first=pointers[:-1],
        degrees=(pointers[1:] - pointers[:-1]).double(),
        neighbors=torch.from_numpy(S.indices.astype("int64")),
        penalty=penalty,
        weight_decay=weight_decay,
    )


@dataclass(frozen=True, eq=False)
class DAGMMTask:
    """mean ‖a − â‖² + λ1 · mean energy + λ2 · Σ 1/Σ_kjj. Zong et al. (2018), eq. 7.

    Gaussians are those of the rows in the batch, as there.
    """

    rows: Tensor
    floor: float
    dropout: float
    energy_weight: float
    variance_weight: float

    def loss(self, nets: list[Layers], picked: Tensor | None, generator: torch.Generator) -> Tensor:
        a = self.rows if picked is None else self.rows[picked]
        z, rebuilt = self.latent(nets[0], a)
        phi, means, covariances = mixture_of(z, self.memberships(nets[1], z, generator))
        variances = torch.diagonal(covariances, dim1=1, dim2=2)
        return (
            (a - rebuilt).square().sum(1).mean()
            + self.energy_weight * energies(z, phi, means, covariances).mean()
            + self.variance_weight * variances.reciprocal().sum()
        )

    def latent(self, layers: Layers, a: Tensor) -> tuple[Tensor, Tensor]:
        """z = [code, relative distance, cosine] and the rows rebuilt. Zong et al. (2018), eq. 1 and 2."""
        middle = len(layers) // 2
        code = run(a, layers[:middle], bend_last=False)
        rebuilt = run(code, layers[middle:], bend_last=False)
        length = torch.linalg.vector_norm(a, dim=1).clamp_min(self.floor)
        other = torch.linalg.vector_norm(rebuilt, dim=1).clamp_min(self.floor)
        distance = torch.linalg.vector_norm(a - rebuilt, dim=1) / length
        cosine = (a * rebuilt).sum(1) / (length * other)
        return torch.cat([code, distance[:, None], cosine[:, None]], dim=1), rebuilt

    def memberships(self, layers: Layers, z: Tensor, generator: torch.Generator | None) -> Tensor:
        """γ: one row of shares per row of z; with a generator, hidden units drop out. Zong et al. (2018), eq. 3."""
        hidden = run(z, layers[:-1], bend_last=True)
        if generator is not None and self.dropout > 0:
            kept = torch.rand(hidden.shape, generator=generator, dtype=torch.float64, device="cpu") >= self.dropout
            hidden = hidden * kept / (1.0 - self.dropout)
        return torch.softmax(run(hidden, layers[-1:], bend_last=False), dim=1)


def pose_dagmm(A: FloatArray, floor: float, dropout: float, energy_weight: float, variance_weight: float) -> DAGMMTask:
    """The task for rows A."""
    return DAGMMTask(torch.from_numpy(A), floor, dropout, energy_weight, variance_weight)


def run(values: Tensor, layers: Layers, *, bend_last: bool) -> Tensor:
    """Rows through layers, each but perhaps the last one bent by tanh."""
    for place, (weights, biases) in enumerate(layers):
        values = torch.addmm(biases, values, weights)
        if bend_last or place < len(layers) - 1:
            values = torch.tanh(values)
    return values


def mixture_of(z: Tensor, shares: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """φ, μ, Σ (with jitter) of rows that belong to Gaussians by shares. Zong et al. (2018), eq. 4 and 5."""
    mass = shares.sum(0)
    divisor = mass.clamp_min(_LEAST_MASS)
    means = (shares.T @ z) / divisor[:, None]
    apart = z[None] - means[:, None]
    covariances = (shares.T[:, :, None] * apart).transpose(1, 2) @ apart / divisor[:, None, None]
    jitter = JITTER * torch.eye(z.shape[1], dtype=torch.float64, device="cpu")
    return mass / len(z), means, covariances + jitter


def energies(z: Tensor, phi: Tensor, means: Tensor, covariances: Tensor) -> Tensor:
    """−log Σ_k φ_k N(z; μ_k, Σ_k) per row; NaN where a Σ_k is not positive definite. Zong et al. (2018), eq. 6."""
    levels, factors = levels_of(phi, covariances)
    apart = (z[None] - means[:, None]).transpose(1, 2)
    white = torch.linalg.solve_triangular(factors, apart, upper=False)
    return -torch.logsumexp(levels[:, None] - 0.5 * white.square().sum(1), dim=0)


def levels_of(phi: Tensor, covariances: Tensor) -> tuple[Tensor, Tensor]:
    """log φ_k − ½ log|2πΣ_k|, and the Cholesky factors of Σ_k."""
    factors, trouble = torch.linalg.cholesky_ex(covariances)
    if bool(trouble.any()):
        factors = factors * math.nan
    half_log_determinants = torch.diagonal(factors, dim1=1, dim2=2).log().sum(1)
    size = covariances.shape[1]
    levels = phi.clamp_min(_LEAST_MASS).log() - 0.5 * size * math.log(2 * math.pi) - half_log_determinants
    return levels, factors
