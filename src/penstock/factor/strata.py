"""What block SGD does in a round: which blocks meet, over which columns, in which pieces and with what step."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from penstock._types import FloatArray, IndexArray
from penstock.factor.terms import Weighed

PIECE = 1600  # rows per piece of work, about 0.2 ms; fixed, because the order of sums depends on it
_EXPLODED = 10.0  # times the objective of the start: clipping at 0 keeps many an explosion finite for a while


def draw_instances(n_blocks: int, rng: Any) -> list[tuple[int, int, int]]:
    """One round's instance sets {i,j,k}: no two share a W-index or an H-index; i = j is allowed. Algorithm 1.

    Drawn one after the other, uniformly from those still compatible, until every W-index is used. So i = j comes up
    more often than its share of the sum eq:loss, as the last index left can only be paired with itself.

    >>> sorted(index for i, j, _ in draw_instances(5, np.random.default_rng(0)) for index in {i, j})
    [0, 1, 2, 3, 4]
    """
    free = list(range(n_blocks))
    columns = iter(rng.permutation(n_blocks))
    drawn = []
    while free:
        i, j = (free[int(rng.random() * len(free))] for _ in range(2))
        drawn.append((i, j, int(next(columns))))
        free = [index for index in free if index not in (i, j)]
    return drawn


def equal_runs(count: int, parts: int) -> IndexArray:
    """Where each of `parts` runs of about equal length begins, and where the last one ends.

    >>> equal_runs(7, 3).tolist()
    [0, 2, 4, 7]
    """
    return np.array([count * part // parts for part in range(parts + 1)], dtype=np.int64)


def cut_pieces(bounds: IndexArray) -> IndexArray:
    """The blocks' rows in pieces, (block, first row, last row): fixed, so that threads do not change a bit.

    >>> cut_pieces(np.array([0, 3, 2000])).tolist()
    [[0, 0, 3], [1, 3, 1603], [1, 1603, 2000]]
    """
    pieces = [
        (block, a, min(a + PIECE, bounds[block + 1]))
        for block in range(len(bounds) - 1)
        for a in range(bounds[block], bounds[block + 1], PIECE)
    ]
    return np.array(pieces, dtype=np.int64)


class StepSettings(Protocol):
    """The settings of `BlockSGD` that rounds and checks go by."""

    @property
    def first_step(self) -> float: ...
    @property
    def last_step(self) -> float: ...
    @property
    def rounds(self) -> int: ...
    @property
    def rounds_per_check(self) -> int: ...
    @property
    def stall(self) -> float: ...
    @property
    def scale_steps(self) -> bool: ...


def step_length(settings: StepSettings, number: int) -> float:
    """The step of one round: it falls linearly from the first round to the last."""
    share = number / max(settings.rounds - 1, 1)
    return settings.first_step + share * (settings.last_step - settings.first_step)


def step_scales(
    terms: Weighed, G: FloatArray, Q: FloatArray, max_degree: float, settings: StepSettings, n_blocks: int
) -> tuple[float, float]:
    """What W's and H's steps are multiplied by, from G = WᵀW and Q = HHᵀ of the start; see `BlockSGD`."""
    if not settings.scale_steps:
        return 1.0, 1.0
    size = math.sqrt(terms.norm_A) if terms.alpha else 0.0
    degree = max_degree if terms.symmetric else 0.0
    g = max(_top(G), degree, size)
    q = max(_top(Q), size)
    bend_W = 4 * terms.symmetric * (3 * g + degree) + 2 * terms.alpha * q + 2 * terms.gamma / n_blocks
    bend_H = 2 * terms.alpha * g + 2 * terms.gamma / n_blocks
    longest = settings.first_step
    return 1 / max(1.0, longest * bend_W), 1 / max(1.0, longest * bend_H)


def _top(gram: FloatArray) -> float:
    return float(np.linalg.eigvalsh(gram)[-1])


@dataclass
class Course:
    """How a run has gone so far, and what that means for it: all that its rules to stop look at.

    >>> from penstock.factor import BlockSGD
    >>> course = Course(first=8.0, value=8.0)
    >>> for value in (4.0, 4.0, 4.0):
    ...     course.note(value, 10, BlockSGD())
    >>> course.rounds, course.stalls, course.finished(BlockSGD())
    (30, 2, True)
    """

    first: float
    value: float
    rounds: int = 0
    stalls: int = 0

    def note(self, value: float, rounds: int, settings: StepSettings) -> None:
        """The objective after some more rounds; an error if it says that the steps are too long."""
        self.rounds += rounds
        if not value <= _EXPLODED * self.first:  # NaN is not, either
            raise FloatingPointError(
                f"Block SGD exploded by round {self.rounds}: its steps are too long for these similarities. Use "
                "scale_steps=True, shorter steps, a bounded similarity ('normalized', 'binary'), or another solver."
            )
        self.stalls = self.stalls + 1 if self.value - value < settings.stall * self.value else 0
        self.value = value

    def rounds_to_check(self, settings: StepSettings) -> range:
        """The rounds up to the next look at the objective."""
        return range(self.rounds, min(self.rounds + settings.rounds_per_check, settings.rounds))

    def finished(self, settings: StepSettings) -> bool:
        return self._stalled(settings) or self.rounds >= settings.rounds

    def settled(self, settings: StepSettings) -> bool:
        """Whether it is done rather than out of rounds: without a stall rule all rounds were the wish."""
        return self._stalled(settings) or (settings.stall == 0 and self.rounds >= settings.rounds)

    def _stalled(self, settings: StepSettings) -> bool:
        return settings.stall > 0 and self.stalls >= 2


def write_draws(rng: Any) -> str:
    """Where a source of random numbers is, as text, so that a run can go on drawing where it was interrupted.

    >>> rng = np.random.default_rng(3)
    >>> later = read_draws(write_draws(rng))
    >>> later.random() == rng.random()
    True
    """
    is_generator = isinstance(rng, np.random.Generator)
    state = rng.bit_generator.state if is_generator else rng.get_state(legacy=False)
    return json.dumps({"generator": is_generator, "state": state}, default=np.ndarray.tolist)


def read_draws(text: str) -> Any:
    """The source of random numbers that `write_draws` wrote down."""
    content: Mapping[str, Any] = json.loads(text)
    state = content["state"]
    kind = getattr(np.random, state["bit_generator"])
    if not (isinstance(kind, type) and issubclass(kind, np.random.BitGenerator)):
        raise ValueError(f"{state['bit_generator']!r} is no source of random numbers.")
    bits = kind()
    bits.state = state
    if content["generator"]:
        return np.random.Generator(bits)
    result = np.random.RandomState(bits)
    result.set_state(state)
    return result
