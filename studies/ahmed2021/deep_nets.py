"""Nets of AER and DAGMM with PyTorch: what they minimise, how they are trained, and trained ones that score rows.

Training runs on one thread, so that the same seed gives the same bits, and leaves PyTorch's global state as it was.
"""

from __future__ import annotations

import math
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Protocol

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from penstock._types import FloatArray, SparseMatrix
from penstock.storage import Record

LARGEST = float(np.finfo(np.float64).max)
LARGEST_WEIGHT = 1e50  # with rows cut at 1e150, nothing in a net overflows
FARTHEST = 1e100  # latent values are cut here: their squares may overflow, but only to +∞
Layers = list[tuple[Tensor, Tensor]]  # one (weights, biases) per layer

JITTER = 1e-6  # added to the variances of a Gaussian: codes and distances are of the order of one
_LEAST_MASS = 1e-12  # of a Gaussian that no row belongs to


@dataclass(frozen=True, eq=False)
class AERTask:
    """mean ‖a_i − â_i‖² + penalty · mean over edges ‖z_i − z_j‖² + weight_decay · Σ w². Yu et al. (2013).

    With all rows, all edges count. In a mini-batch each row meets one of its neighbours, drawn again at each step, and
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
            draws = torch.rand(len(picked), generator=generator, dtype=torch.float64, device="cpu")
            partners = self.neighbors[self.first[picked] + (draws * self.degrees[picked]).long()]
            both = run(torch.cat([a, self.rows[partners]]), layers[:middle], bend_last=True)
            z, others = both[: len(a)], both[len(a) :]
            share = self.degrees[picked] / self.degrees.mean()
            apart = (share * (z - others).square().sum(1)).mean()
        rebuilt = run(z, layers[middle:], bend_last=False)
        decay = torch.stack([weights.square().sum() for weights, _ in layers]).sum()
        return (a - rebuilt).square().sum(1).mean() + self.penalty * apart + self.weight_decay * decay


def pose_aer(A: FloatArray, S: SparseMatrix, penalty: float, weight_decay: float) -> AERTask:
    """Make the task for rows A and a 0-1 graph S."""
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


_RESTARTS = 4  # with a tenth of the learning rate each, where the loss overflows


class Task(Protocol):
    """What is to be minimised."""

    @property
    def rows(self) -> Tensor: ...

    def loss(self, nets: list[Layers], picked: Tensor | None, generator: torch.Generator) -> Tensor:
        """The loss on the rows picked (None: on all), in the nets' weights."""


@dataclass(frozen=True)
class Schedule:
    """How long to train, in steps of which size, from which seed."""

    epochs: int
    batch_size: int
    learning_rate: float
    seed: int


@dataclass(frozen=True, eq=False)
class Training:
    """The weights of the nets that training ended with, the mean loss of each epoch, and the rate that worked."""

    weights: list[FloatArray]
    losses: FloatArray
    learning_rate: float


def train(task: Task, sizes: list[list[int]], schedule: Schedule) -> Training | None:
    """Minimise with Adam; where the loss overflows, again with a tenth of the learning rate. None if nothing helps.

    The first net is the autoencoder.
    """
    rate = schedule.learning_rate
    for _ in range(1 + _RESTARTS):
        generator = torch.Generator(device="cpu").manual_seed(schedule.seed)
        weights = [_draw_weights(net, generator) for net in sizes]
        with torch.no_grad():  # biases of the last layer: else hundreds of steps go into finding the column means
            weights[0][-task.rows.shape[1] :] = task.rows.mean(0)
        losses = _descend(task, weights, sizes, schedule, rate, generator)
        if losses is not None:
            return Training([part.detach().numpy().copy() for part in weights], losses, rate)
        rate /= 10
    return None


def layers_of(weights: Tensor, sizes: list[int]) -> Layers:
    """Views of one long vector: Adam takes a step on it in a third of the time that it needs for many short ones."""
    pairs = list(pairwise(sizes))
    parts = torch.split_with_sizes(weights, [length for n_in, n_out in pairs for length in (n_in * n_out, n_out)])
    return [(parts[2 * place].view(pair), parts[2 * place + 1]) for place, pair in enumerate(pairs)]


def _draw_weights(sizes: list[int], generator: torch.Generator) -> Tensor:
    """Glorot and Bengio (2010): uniform, so that tanh layers keep the spread of what passes through them."""
    parts = []
    for n_in, n_out in pairwise(sizes):
        draws = torch.rand(n_in * n_out, generator=generator, dtype=torch.float64, device="cpu")
        parts += [(2 * draws - 1) * (6 / (n_in + n_out)) ** 0.5, torch.zeros(n_out, dtype=torch.float64, device="cpu")]
    return torch.cat(parts).requires_grad_()


def _descend(
    task: Task,
    weights: list[Tensor],
    sizes: list[list[int]],
    schedule: Schedule,
    rate: float,
    generator: torch.Generator,
) -> FloatArray | None:
    """Train in place; return the mean loss of each epoch, or None as soon as something is not finite."""
    optimizer = torch.optim.Adam(weights, lr=rate, fused=True)
    losses = np.empty(schedule.epochs)
    for epoch in range(schedule.epochs):
        batches = _deal(len(task.rows), schedule.batch_size, generator)
        total = 0.0
        for picked in batches:
            optimizer.zero_grad()
            nets = [layers_of(*net) for net in zip(weights, sizes, strict=True)]
            loss = task.loss(nets, picked, generator)
            value = loss.item()
            if not np.isfinite(value):
                return None
            loss.backward()
            optimizer.step()
            total += value
        losses[epoch] = total / len(batches)
    sound = all(bool((part.detach().abs() <= LARGEST_WEIGHT).all()) for part in weights)
    return losses if sound else None


def _deal(n: int, batch_size: int, generator: torch.Generator) -> list[Tensor | None]:
    """All rows in a random order, in even batches: a Gaussian mixture of a small remainder would be degenerate."""
    count = batch_count(n, batch_size)
    if count == 1:
        return [None]
    return list(torch.tensor_split(torch.randperm(n, generator=generator, device="cpu"), count))


def settle_mixture(task: DAGMMTask, record: Training, sizes: list[list[int]]) -> Mixture | None:
    """Compute the Gaussians of all training rows, without dropout; None if they overflow."""
    with torch.no_grad():
        nets = [layers_of(torch.from_numpy(part), net) for part, net in zip(record.weights, sizes, strict=True)]
        z, _ = task.latent(nets[0], task.rows)
        phi, means, covariances = mixture_of(z, task.memberships(nets[1], z, None))
        levels, factors = levels_of(phi, covariances)
        identity = torch.eye(z.shape[1], dtype=torch.float64, device="cpu").expand_as(factors)
        whitening = torch.linalg.solve_triangular(factors, identity, upper=False).contiguous()
    result = Mixture(levels.numpy().copy(), means.numpy().copy(), whitening.numpy().copy(), task.floor)
    parts = result.levels, result.means, result.whitening
    return result if all(np.isfinite(part).all() for part in parts) else None


_lock = threading.Lock()
_counts: list[int] = []  # one entry per block under way, on whichever thread: what the first one found


@contextmanager
def quiet_torch() -> Iterator[None]:
    """Use one thread and gradients inside this block, whatever the caller has set.

    The number of threads is each thread's own, but a thread new to PyTorch starts with the last one set anywhere; so
    all blocks that overlap go back to what the first of them found.
    """
    with _lock:
        _counts.append(_counts[0] if _counts else torch.get_num_threads())
        torch.set_num_threads(1)
    try:
        with torch.inference_mode(False), torch.enable_grad():
            yield
    finally:
        with _lock:
            torch.set_num_threads(_counts.pop())


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

    def rebuild(self, A: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return the codes of rows, and the rows rebuilt from them, each row by itself to the last bit."""
        layers = layers_of(torch.from_numpy(self.weights), self.sizes.tolist())
        middle = len(layers) // 2
        values = torch.from_numpy(np.ascontiguousarray(A))
        codes = values
        for place, (weights, biases) in enumerate(layers):
            # Column by column: a matrix product rounds in another order for other numbers of rows.
            total = biases.expand(len(values), -1)
            for column, row in zip(values.T, weights, strict=True):
                total = total + column[:, None] * row
            bends = self.bends_code if place == middle - 1 else place < len(layers) - 1
            values = torch.tanh(total) if bends else total
            if place == middle - 1:
                codes = values
        return codes.numpy(), values.numpy()

    def pack(self) -> dict[str, Any]:
        return {"sizes": self.sizes, "weights": self.weights}


def unpack_net(record: Record, p: int, *, bends_code: bool) -> Autoencoder:
    """Restore the net for rows of p values."""
    record.require_fields("sizes", "weights")
    sizes = record.array("sizes", np.int64, (None,), least=1)
    if len(sizes) < 3 or len(sizes) % 2 == 0 or (sizes != sizes[::-1]).any() or sizes[0] != p:
        raise record.error("sizes", f"layers from {p} to {p} that read the same both ways")
    bound = LARGEST_WEIGHT
    weights = record.array("weights", np.float64, (weight_count(sizes.tolist()),), least=-bound, most=bound)
    return Autoencoder(sizes, bends_code, weights)


def weight_count(sizes: list[int]) -> int:
    """Count the weights and biases of layers of these sizes.

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
        """Return −log density of each row's z, each row by itself to the last bit. Zong et al. (2018), eq. 2 and 6."""
        codes, rebuilt = net.rebuild(A)
        length = np.maximum(_row_norms(A), self.floor)
        other = np.maximum(_row_norms(rebuilt), self.floor)
        distance = np.minimum(_row_norms(A - rebuilt) / length, FARTHEST)
        cosine = _row_sums((A / length[:, None]) * (rebuilt / other[:, None]))
        z = np.column_stack([codes.clip(-FARTHEST, FARTHEST), distance, cosine])
        exponents = np.empty((len(self.levels), len(A)))
        with np.errstate(over="ignore"):
            for k, level in enumerate(self.levels):
                white = [_row_sums((z - self.means[k]) * row) for row in self.whitening[k]]
                exponents[k] = level - 0.5 * _row_sums(np.column_stack(white) ** 2)
        highest = exponents.max(axis=0)
        with np.errstate(invalid="ignore"):
            energies: FloatArray = -(highest + np.log(_row_sums(np.exp(exponents - highest).T)))
        energies[highest == -np.inf] = LARGEST
        return energies

    def pack(self) -> dict[str, Any]:
        return {"levels": self.levels, "means": self.means, "whitening": self.whitening, "floor": self.floor}


def unpack_mixture(record: Record, size: int) -> Mixture:
    """Restore the mixture of z with `size` entries."""
    record.require_fields("levels", "means", "whitening", "floor")
    levels = record.array("levels", np.float64, (None,), least=-FARTHEST, most=FARTHEST)
    k = len(levels)
    if k == 0:
        raise record.error("levels", "one number per Gaussian, and at least one")
    means = record.array("means", np.float64, (k, size), least=-FARTHEST, most=FARTHEST)
    bound = LARGEST_WEIGHT
    whitening = record.array("whitening", np.float64, (k, size, size), least=-bound, most=bound)
    floor = record.number("floor", least=float(np.finfo(np.float64).tiny))
    return Mixture(levels, means, whitening, floor)


def _row_sums(values: FloatArray) -> FloatArray:
    """Sum each row from the left, whatever the number of rows."""
    total = np.zeros(len(values))
    for column in values.T:
        total = total + column
    return total


def _row_norms(values: FloatArray) -> FloatArray:
    norms: FloatArray = np.sqrt(_row_sums(values * values))
    return norms


def batch_count(n: int, batch_size: int) -> int:
    """Into how many batches n rows are dealt: as even as can be, none larger than batch_size.

    >>> batch_count(1024, 1024), batch_count(1025, 1024)
    (1, 2)
    """
    return -(-n // batch_size)
