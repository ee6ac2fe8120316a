"""Coordinate descent by blocks of rows: all blocks sweep at once, then take the joint step of least loss.

Sums over blocks are always added in the order of the blocks.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np

from penstock._threads import dot
from penstock._types import FloatArray
from penstock.factor import blocks
from penstock.factor.blocks import BlockCoupling, BlockExecutor, BlockSums, Grown, Place, SweepResult
from penstock.factor.descent import Descent, next_pace, reach, update_profiles
from penstock.factor.start import Extension, Operator, Products
from penstock.factor.terms import Gaps, Sums, Terms, has_risen, profile_parts, profile_residual, shorten_rows, value_of

_HALVINGS = 60  # of an interval inside [0, 1]: down to one unit in the last place


@dataclass(frozen=True, eq=False)
class BlockProblem:
    """An objective over blocks of rows: the executor that steps them, their coupling, and the numbers of the objective.

    Its methods add up what blocks report, with the pairs of rows across blocks.
    """

    executor: BlockExecutor
    coupling: BlockCoupling
    terms: Terms

    def borders(self, places: Sequence[Place]) -> list[tuple[FloatArray]]:
        """Return the rows of others that each block receives, as the last argument of its work."""
        return [(border,) for border in self.coupling.borders([place.offers for place in places])]

    def mean(self, places: Sequence[Place]) -> float:
        """Compute the mean of W."""
        return sum(place.total for place in places) / (self.terms.n_rows * len(places[0].G))

    def add_up(self, offered: FloatArray, parts: Sequence[Sums]) -> Sums:
        """Compute the sums over all rows, from those of the blocks and the rows they offer."""
        one, other = self.coupling.ends_of(offered)
        agreement = 2 * dot(self.coupling.similarities, _dots(one, other))
        roughness = 0.0
        if self.terms.laplacian:
            roughness = dot(self.coupling.similarities, _dots(one - other, one - other))
        return Sums(
            np.sum([part.G for part in parts], axis=0),
            np.sum([part.V for part in parts], axis=0),
            sum(part.agreement for part in parts) + agreement,
            sum(part.roughness for part in parts) + roughness,
        )

    def sums_of(self, sums: Sequence[BlockSums]) -> Sums:
        """Compute the sums over all rows."""
        return self.add_up(offers_of(sums), [it.sums for it in sums])

    def sums_after(self, places: Sequence[Place], swept: Sequence[SweepResult], steps: FloatArray) -> Sums:
        """Compute the sums over all rows once each block has taken its step."""
        parts = []
        for place, report, t in zip(places, swept, steps.tolist(), strict=True):
            (a, b, c), (d, e, f) = report.agreement, report.roughness
            G, V = report.G, report.V
            if t != 1.0:
                G = place.G + t * (report.mixed + report.mixed.T) + t * t * report.change
                V = (1 - t) * report.V_before + t * report.V
            parts.append(Sums(G, V, a + t * (2 * b + t * c), d + t * (2 * e + t * f)))
        return self.add_up(offers_after(places, swept, steps), parts)

    def value(self, H: FloatArray, sums: Sums, offered: FloatArray, steps: FloatArray | None = None) -> float:
        """Compute the objective given sums and rows offered, once each block has taken its step (None: no step)."""
        steps = np.zeros(self.executor.n_blocks) if steps is None else steps
        return value_of(self.terms, H, sums, lambda: self.gaps_after(H, sums.G, steps, offered))

    def gaps_after(self, H: FloatArray, G: FloatArray, steps: FloatArray, offered: FloatArray) -> Gaps:
        """Sum the residuals themselves once each block has taken its step, which takes a pass over all rows."""
        reports = self.executor.each(blocks.find_gaps, self.terms, H, apart=[(float(t),) for t in steps])
        attributes, on_graph, square, entries = (sum(column) for column in zip(*reports, strict=True))
        if not self.terms.symmetric:
            return Gaps(attributes, 0.0, 0.0)
        fitted = _dots(*self.coupling.ends_of(offered))
        on_graph += 2 * float(np.sum((self.coupling.similarities - fitted) ** 2))
        square += 2 * dot(fitted, fitted)
        off_graph = 0.0 if entries == self.terms.n_rows**2 else max(dot(G, G) - square, 0.0)
        return Gaps(attributes, on_graph, off_graph)

    def assess(self, H: FloatArray) -> tuple[float, float]:
        """Compute the objective and the KKT residual of W and H. See `Objective.kkt_residual`."""
        terms = self.terms
        places = self.executor.each(blocks.look, "W")
        G = gram_of(places)
        reports = self.executor.each(blocks.assess, terms, H, G, self.mean(places), apart=self.borders(places))
        residual = math.sqrt(sum(squares for squares, _ in reports) / terms.n_rows)
        offered = offers_of(places)
        sums = self.add_up(offered, [sums for _, sums in reports])
        if terms.alpha:
            parts = profile_parts(terms, H, sums.G, sums.V)
            residual = max(residual, profile_residual(terms, H, np.diag(G), parts))
        return self.value(H, sums, offered), residual

    def joint_steps(self, H: FloatArray, places: Sequence[Place], swept: Sequence[SweepResult]) -> JointSteps:
        """Compute exactly how f changes as blocks take a part of their steps. Ahmed et al. (2021), eq:main."""
        terms = self.terms
        tilts = np.array([report.mixed + report.mixed.T for report in swept])
        grams = np.array([report.change for report in swept])
        agreement = np.array([report.agreement for report in swept])
        roughness = np.array([report.roughness for report in swept])
        fit = np.array([report.fit for report in swept])
        bend = 2 * terms.symmetric * gram_of(places) + terms.alpha * (H @ H.T) + terms.gamma * np.eye(len(H))
        slopes = np.einsum("bkm,km->b", tilts, bend) - 2 * terms.alpha * fit
        slopes += 2 * terms.laplacian * roughness[:, 1] - 4 * terms.symmetric * agreement[:, 1]
        curves = np.einsum("bkm,km->b", grams, bend)
        curves += terms.laplacian * roughness[:, 2] - 2 * terms.symmetric * agreement[:, 2]
        bends = np.diag(curves)
        self._add_across(places, swept, slopes, bends)
        return JointSteps(slopes, bends, tilts, grams, terms.symmetric)

    def _add_across(
        self, places: Sequence[Place], swept: Sequence[SweepResult], slopes: FloatArray, bends: FloatArray
    ) -> None:
        """Add to slopes and bends the parts of pairs of rows in different blocks.

        For w_i = y + t_p·d and w_j = z + t_q·e with similarity s, that is λs‖w_i − w_j‖² − 4σs⟨w_i, w_j⟩.
        """
        coupling = self.coupling
        numbers = np.repeat(np.arange(len(places)), [len(place.offers) for place in places])[coupling.ends]
        (p, q), s = (numbers[:, 0], numbers[:, 1]), coupling.similarities
        before = offers_of(places)
        after = np.concatenate([report.offers for report in swept])
        (y, z), (d, e) = coupling.ends_of(before), coupling.ends_of(after - before)
        hold, pull = self.terms.laplacian * s, 4 * self.terms.symmetric * s
        np.add.at(slopes, p, 2 * hold * _dots(y - z, d) - pull * _dots(z, d))
        np.add.at(slopes, q, 2 * hold * _dots(z - y, e) - pull * _dots(y, e))
        np.add.at(bends, (p, p), hold * _dots(d, d))
        np.add.at(bends, (q, q), hold * _dots(e, e))
        np.add.at(bends, (p, q), -(2 * hold + pull) * _dots(d, e))


def gram_of(places: Sequence[Place]) -> FloatArray:
    """Return WᵀW."""
    return np.asarray(np.sum([place.G for place in places], axis=0))


def offers_of(places: Sequence[Place]) -> FloatArray:
    """Return all rows offered."""
    return np.concatenate([place.offers for place in places])


def offers_after(places: Sequence[Place], swept: Sequence[SweepResult], steps: FloatArray) -> FloatArray:
    """Return all rows offered, once each block has taken its step."""
    return np.concatenate(
        [
            report.offers if t == 1.0 else place.offers + t * (report.offers - place.offers)
            for place, report, t in zip(places, swept, steps, strict=True)
        ]
    )


def _dots(X: FloatArray, Z: FloatArray) -> FloatArray:
    """Compute the scalar products of their rows."""
    return np.asarray(np.einsum("ik,ik->i", X, Z))


@dataclass(frozen=True, eq=False)
class JointSteps:
    """f(y + Σ_b t_b D_b) − f(y), where D_b is zero outside the rows of block b, for steps t_b in [0, 1].

    It is slopes·t + tᵀ·bends·t + symmetric·‖Σ_b t_b·tilts_b + t_b²·grams_b‖², with tilts_b = yᵀD_b + D_bᵀy and grams_b
    = D_bᵀD_b. Nothing here is of the size of f itself, so that a small change is not lost in it. Blocks that move at
    the same time do not see each other move; together they may overshoot, though each alone lowers f.
    """

    slopes: FloatArray
    bends: FloatArray
    tilts: FloatArray
    grams: FloatArray
    symmetric: float

    def change(self, t: FloatArray) -> float:
        """Compute by how much f changes."""
        gram = np.tensordot(t, self.tilts, axes=1) + np.tensordot(t**2, self.grams, axes=1)
        return float(self.slopes @ t + t @ self.bends @ t + self.symmetric * np.vdot(gram, gram))

    def along_diagonal(self) -> tuple[float, float, float, float]:
        """Return the coefficients of t, t², t³ and t⁴ where all blocks take the same step t."""
        tilt, gram = self.tilts.sum(axis=0), self.grams.sum(axis=0)
        return (
            float(self.slopes.sum()),
            float(self.bends.sum()) + self.symmetric * dot(tilt, tilt),
            2 * self.symmetric * dot(tilt, gram),
            self.symmetric * dot(gram, gram),
        )

    def choose(self) -> FloatArray:
        """Find the best step for all blocks; if there is none, whole steps of those blocks that lower f in turn.

        Whole steps also where sums have overflowed: the loop finds out whether f has, too.
        """
        quartic = self.along_diagonal()
        if not all(math.isfinite(c) for c in quartic):
            return np.ones(len(self.slopes))
        t = lowest_on_unit_interval(*quartic)
        if polynomial(t, *quartic) < 0.0:
            return np.full(len(self.slopes), t)
        steps, reached = np.zeros(len(self.slopes)), 0.0
        for block in range(len(steps)):
            steps[block] = 1.0
            with_it = self.change(steps)
            if with_it < reached:
                reached = with_it
            else:
                steps[block] = 0.0
        return steps


def polynomial(t: float, c1: float, c2: float, c3: float, c4: float) -> float:
    """Return c1·t + c2·t² + c3·t³ + c4·t⁴."""
    return t * (c1 + t * (c2 + t * (c3 + t * c4)))


def lowest_on_unit_interval(c1: float, c2: float, c3: float, c4: float) -> float:
    """Find the t in [0, 1] of least c1·t + c2·t² + c3·t³ + c4·t⁴, exactly 1 where nothing is lower than 1.

    Between the zeros of its second derivative, 2·c2 + 6·c3·t + 12·c4·t², the polynomial has one minimum at most.
    """
    corners = []
    discriminant = 9 * c3 * c3 - 24 * c2 * c4
    if discriminant >= 0.0:
        q = -(3 * c3 + math.copysign(math.sqrt(discriminant), c3))
        corners = [2 * c2 / q if q else 0.0, q / (12 * c4) if c4 else 0.0]
    corners = [0.0, *sorted(t for t in corners if 0.0 < t < 1.0), 1.0]
    best = 1.0
    for t in (0.0, *(_valley(a, b, c1, c2, c3, c4) for a, b in pairwise(corners))):
        if polynomial(t, c1, c2, c3, c4) < polynomial(best, c1, c2, c3, c4):
            best = t
    return best


def _valley(a: float, b: float, c1: float, c2: float, c3: float, c4: float) -> float:
    """Find where in [a, b] the derivative, monotone there, goes from falling to rising; b if it does not."""

    def slope(t: float) -> float:
        return c1 + t * (2 * c2 + t * (3 * c3 + t * 4 * c4))

    if not slope(a) < 0.0 < slope(b):
        return b
    for _ in range(_HALVINGS):
        middle = a + (b - a) / 2
        if slope(middle) < 0.0:
            a = middle
        else:
            b = middle
    return b


class RowBlockDescent(Descent):
    """A run under way on blocks of rows, each block's part of W in its state.

    What is known here are sums over rows and the few rows that touch other blocks. An iteration is a sweep of every
    block from y, a little further along the way that the last iteration went (Nesterov's momentum), and H's best
    answer to it. f along the joint step D of all blocks is a quartic, so its minimum on the way is known, and so is
    where it would end without momentum, should it end higher: the loss never rises.
    """

    def __init__(self, problem: BlockProblem, H: FloatArray, profile_passes: int) -> None:
        self._problem, self._passes = problem, profile_passes
        self.H = self._reached = self._next = H
        self._pace, self._push, self._value, self.residual = 1.0, 0.0, math.inf, math.inf
        self._steps = np.ones(problem.executor.n_blocks)
        self._places: list[Place] = []
        self._assessed: tuple[float, float] | None = None

    @classmethod
    def resumed(cls, problem: BlockProblem, profile_passes: int, snapshot: Mapping[str, Any]) -> RowBlockDescent:
        """Go on where a snapshot was taken, with blocks that have the states of that moment."""
        run = cls(problem, np.asarray(snapshot["H"], dtype=np.float64), profile_passes)
        run._reached = np.asarray(snapshot["reached"], dtype=np.float64)
        run._pace, run._push = float(snapshot["pace"]), float(snapshot["push"])
        if math.isfinite(snapshot["value"]):  # not before the first step
            run._value, run.residual = float(snapshot["value"]), float(snapshot["residual"])
            run._places = problem.executor.each(blocks.look, "y")
        return run

    def snapshot(self) -> dict[str, Any]:
        """Return arrays and numbers from which, with the blocks' states of this moment, a run continues."""
        return {
            "H": self.H.copy(),
            "reached": self._reached.copy(),
            "pace": self._pace,
            "push": self._push,
            "value": self._value,
            "residual": self.residual,
        }

    def step(self) -> float:
        """Take one iteration; return the objective, and leave in `residual` how far from stationary it began."""
        executor, terms = self._problem.executor, self._problem.terms
        if not self._places:
            self._places = executor.each(blocks.begin)
        value = self._sweep()
        if self._push > 0.0 and has_risen(terms, value, self._value):
            self._pace, self._reached = 1.0, self.H
            self._places = executor.each(blocks.begin)
            value = self._sweep()
        self._pace, self._push = next_pace(self._pace)
        self._reached = shorten_rows(reach(self._next, self.H, self._push), terms.row_bound)
        self.H, self._value, self._assessed = self._next, value, None
        self._places = executor.each(blocks.advance, self._push, apart=[(float(t),) for t in self._steps])
        return value

    def value(self) -> float:
        return self._assess()[0]

    def kkt_residual(self) -> float:
        return self._assess()[1]

    def _assess(self) -> tuple[float, float]:
        if self._assessed is None:
            self._assessed = self._problem.assess(self.H)
        return self._assessed

    def _sweep(self) -> float:
        """Sweep from y; leave the steps to take and the H to go with them, and return the objective there."""
        problem, terms, H, places = self._problem, self._problem.terms, self._reached, self._places
        mean, borders = problem.mean(places), problem.borders(places)
        swept = problem.executor.each(blocks.sweep, terms, H, gram_of(places), mean, apart=borders)
        self._steps = steps = problem.joint_steps(H, places, swept).choose()
        self.residual = math.sqrt(sum(report.residual for report in swept) / terms.n_rows)
        sums = problem.sums_after(places, swept, steps)
        self._next = H = H.copy()
        if terms.alpha:
            self.residual = max(self.residual, update_profiles(terms, H, sums.G, sums.V))
            for _ in range(self._passes - 1):
                update_profiles(terms, H, sums.G, sums.V)
        return problem.value(H, sums, offers_after(places, swept, steps), steps)


class BlockColumns:
    """Columns of which each block has its own rows; here are the sums AᵀQ and AᵀY, and the rows that blocks offer."""

    def __init__(self, problem: BlockProblem, n_components: int, seed: int) -> None:
        self._problem, self._K, self._seed = problem, n_components, seed
        self._operator = Operator.of(problem.terms)
        self._numbers = [(number,) for number in range(problem.executor.n_blocks)]
        self._images, self._offers = (np.zeros((0, 0)), np.zeros((0, 0))), (np.zeros((0, 0)), np.zeros((0, 0)))

    def draw(self) -> FloatArray:
        problem = self._problem
        self._add_up(problem.executor.each(blocks.draw_start, problem.terms, self._K, self._seed, apart=self._numbers))
        return self._products.YY

    def extend(self, extension: Extension) -> Products:
        problem = self._problem
        (Q_image, V_image) = extension.apply(*self._images)
        (Q_offers, V_offers) = extension.apply(*self._offers)
        borders = [(border,) for border in problem.coupling.borders([V_offers])]
        common = problem.terms, self._operator, extension, V_image
        reports = problem.executor.each(blocks.extend_columns, *common, apart=borders)
        self._add_up(reports, np.concatenate([Q_image, V_image], axis=1), np.concatenate([Q_offers, V_offers], axis=1))
        return self._products

    def set_weights(self, mixed: FloatArray, fill: float) -> tuple[FloatArray, FloatArray]:
        common = self._problem.terms, mixed, fill, self._seed
        sums = self._problem.sums_of(self._problem.executor.each(blocks.set_weights, *common, apart=self._numbers))
        return sums.G, sums.V

    def scale_weights(self, factors: FloatArray) -> None:
        self._problem.executor.each(blocks.scale_columns, factors)

    def _add_up(
        self, reports: Sequence[Grown], images: FloatArray | None = None, offers: FloatArray | None = None
    ) -> None:
        Y_image = np.asarray(np.sum([report.image for report in reports], axis=0))
        Y_offers = np.concatenate([report.offers for report in reports])
        self._images = np.zeros((len(Y_image), 0)) if images is None else images, Y_image
        self._offers = np.zeros((len(Y_offers), 0)) if offers is None else offers, Y_offers
        parts = [report.products for report in reports]
        QV, QY, YY = (np.sum([getattr(part, name) for part in parts], axis=0) for name in ("QV", "QY", "YY"))
        self._products = Products(QV, QY, YY)
