"""Nets trained with PyTorch on one thread: the same bits for the same seed, and its global state left as it was."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import pairwise
from typing import Protocol

import numpy as np
import torch
from torch import Tensor

from penstock._types import FloatArray
from penstock.detectors._deep_losses import DAGMMTask, Layers, levels_of, mixture_of, pose_aer, pose_dagmm
from penstock.detectors._deep_net import LARGEST_WEIGHT, Mixture
from penstock.detectors._deep_rules import batch_count

__all__ = [
    "Schedule",
    "Task",
    "Training",
    "layers_of",
    "pose_aer",
    "pose_dagmm",
    "quiet_torch",
    "settle_mixture",
    "train",
]

_RESTARTS = 4  # with a tenth of the learning rate each, where the loss overflows


class Task(Protocol):
    """What is to be minimised."""

    rows: Tensor

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
    """Minimise with Adam; where the loss overflows, anew with a tenth of the learning rate. None if nothing helps.

    The first net is the autoencoder.
    """
    rate = schedule.learning_rate
    for _ in range(1 + _RESTARTS):
        generator = torch.Generator(device="cpu").manual_seed(schedule.seed)
        weights = [_draw_weights(net, generator) for net in sizes]
        _start_at_means(weights[0], task.rows)
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


def _start_at_means(weights: Tensor, rows: Tensor) -> None:
    """The biases of an autoencoder's last layer: else hundreds of steps go into finding the column means."""
    with torch.no_grad():
        weights[-rows.shape[1] :] = rows.mean(0)


def _descend(
    task: Task,
    weights: list[Tensor],
    sizes: list[list[int]],
    schedule: Schedule,
    rate: float,
    generator: torch.Generator,
) -> FloatArray | None:
    """The mean loss of each epoch, the weights being changed in place; None as soon as something is not finite."""
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
            loss.backward()  # type: ignore[no-untyped-call]
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
    """The Gaussians of all training rows, without dropout; None if they overflow."""
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
    """One thread and gradients inside this block, whatever the caller has set.

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
