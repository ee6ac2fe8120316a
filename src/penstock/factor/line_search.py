"""How far blocks of rows may go at once: f along their steps is a quartic, known exactly from a few sums.

Blocks that move at the same time do not see each other move; together they may overshoot and raise the loss, though
each alone lowers it.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from penstock._types import FloatArray

_HALVINGS = 60  # of an interval inside [0, 1]: down to one unit in the last place


@dataclass(frozen=True, eq=False)
class JointSteps:
    """f(y + Σ_b t_b D_b) − f(y), where D_b is zero outside the rows of block b, for steps t_b in [0, 1].

    It is slopes·t + tᵀ·bends·t + symmetric·‖Σ_b t_b·tilts_b + t_b²·grams_b‖², with tilts_b = yᵀD_b + D_bᵀy and
    grams_b = D_bᵀD_b. Nothing here is of the size of f itself, so that a small change is not lost in it.

    >>> steps = JointSteps(np.array([-2.0, -2.0]), np.array([[1.0, 2.0], [2.0, 1.0]]), *np.zeros((2, 2, 1, 1)), 0.0)
    >>> steps.change(np.ones(2)), steps.change(np.array([1.0, 0.0]))
    (2.0, -1.0)
    >>> steps.choose().tolist()
    [0.3333333333333333, 0.3333333333333333]
    """

    slopes: FloatArray
    bends: FloatArray
    tilts: FloatArray
    grams: FloatArray
    symmetric: float

    def change(self, t: FloatArray) -> float:
        """By how much f changes."""
        gram = np.tensordot(t, self.tilts, axes=1) + np.tensordot(t**2, self.grams, axes=1)
        return float(self.slopes @ t + t @ self.bends @ t + self.symmetric * np.vdot(gram, gram))

    def along_diagonal(self) -> tuple[float, float, float, float]:
        """The coefficients of t, t², t³ and t⁴ where all blocks take the same step t."""
        tilt, gram = self.tilts.sum(axis=0), self.grams.sum(axis=0)
        return (
            float(self.slopes.sum()),
            float(self.bends.sum()) + self.symmetric * float(np.vdot(tilt, tilt)),
            2 * self.symmetric * float(np.vdot(tilt, gram)),
            self.symmetric * float(np.vdot(gram, gram)),
        )

    def choose(self) -> FloatArray:
        """The best step for all blocks; if there is none, whole steps of those blocks that still lower f in turn.

        Whole steps also where sums have overflowed: whether f has too is for the loop to find out.
        """
        quartic = self.along_diagonal()
        if not all(math.isfinite(c) for c in quartic):
            return np.ones(len(self.slopes))
        t = lowest_on_unit_interval(*quartic)
        return np.full(len(self.slopes), t) if polynomial(t, *quartic) < 0.0 else self._in_turn()

    def _in_turn(self) -> FloatArray:
        t, reached = np.zeros(len(self.slopes)), 0.0
        for block in range(len(t)):
            t[block] = 1.0
            with_it = self.change(t)
            if with_it < reached:
                reached = with_it
            else:
                t[block] = 0.0
        return t


def polynomial(t: float, c1: float, c2: float, c3: float, c4: float) -> float:
    """c1·t + c2·t² + c3·t³ + c4·t⁴."""
    return t * (c1 + t * (c2 + t * (c3 + t * c4)))


def lowest_on_unit_interval(c1: float, c2: float, c3: float, c4: float) -> float:
    """The t in [0, 1] of least c1·t + c2·t² + c3·t³ + c4·t⁴, exactly 1 where nothing is lower than 1.

    Between the turning points of its derivative the polynomial has one minimum at most.

    >>> lowest_on_unit_interval(-1.0, 1.0, 0.0, 0.0), lowest_on_unit_interval(-3.0, 1.0, 0.0, 0.0)
    (0.5, 1.0)
    """
    quartic = c1, c2, c3, c4
    corners = [0.0, *sorted(_turning_points(c2, c3, c4)), 1.0]
    candidates = [_valley(a, b, *quartic) for a, b in pairwise(corners)]
    best = 1.0
    for t in (0.0, *candidates):
        if polynomial(t, *quartic) < polynomial(best, *quartic):
            best = t
    return best


def _slope(t: float, c1: float, c2: float, c3: float, c4: float) -> float:
    return c1 + t * (2 * c2 + t * (3 * c3 + t * 4 * c4))


def _turning_points(c2: float, c3: float, c4: float) -> list[float]:
    """Where in (0, 1) the second derivative 2·c2 + 6·c3·t + 12·c4·t² is zero."""
    discriminant = 9 * c3 * c3 - 24 * c2 * c4
    if discriminant < 0.0:
        return []
    q = -(3 * c3 + math.copysign(math.sqrt(discriminant), c3))
    roots = [2 * c2 / q if q else 0.0, q / (12 * c4) if c4 else 0.0]
    return [root for root in roots if 0.0 < root < 1.0]


def _valley(a: float, b: float, c1: float, c2: float, c3: float, c4: float) -> float:
    """Where in [a, b] the derivative, monotone there, goes from falling to rising; b if it does not."""
    quartic = c1, c2, c3, c4
    if not _slope(a, *quartic) < 0.0 < _slope(b, *quartic):
        return b
    for _ in range(_HALVINGS):
        middle = a + (b - a) / 2
        if _slope(middle, *quartic) < 0.0:
            a = middle
        else:
            b = middle
    return b
