"""Sums over blocks of rows, always in the order of the blocks, and the exact line search along their joint step."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from penstock._types import FloatArray
from penstock.factor._block_work import Place, Swept, find_gaps
from penstock.factor.blocks import Crew, Wiring
from penstock.factor.terms import Gaps, Sums, Terms


def gram_of(places: Sequence[Place]) -> FloatArray:
    """WᵀW."""
    total: FloatArray = np.sum([place.G for place in places], axis=0)
    return total


def mean_of(terms: Terms, places: Sequence[Place]) -> float:
    """The mean of W."""
    return sum(place.total for place in places) / (terms.n_rows * len(places[0].G))


def borders_of(wiring: Wiring, places: Sequence[Place]) -> list[tuple[FloatArray]]:
    """What each block is told of others' rows, as the last argument of its work."""
    return [(border,) for border in wiring.borders([place.offers for place in places])]


def add_up(terms: Terms, wiring: Wiring, offered: FloatArray, parts: Sequence[Sums]) -> Sums:
    """The sums over all rows, from those of the blocks and the rows they offer."""
    agreement, roughness = _across(terms, wiring, offered)
    return Sums(
        np.sum([part.G for part in parts], axis=0),
        np.sum([part.V for part in parts], axis=0),
        sum(part.agreement for part in parts) + agreement,
        sum(part.roughness for part in parts) + roughness,
    )


def offers_of(places: Sequence[Place]) -> FloatArray:
    """All rows offered."""
    return np.concatenate([place.offers for place in places])


def steps_of(
    terms: Terms, wiring: Wiring, H: FloatArray, places: Sequence[Place], swept: Sequence[Swept]
) -> JointSteps:
    """How f changes as blocks go a part of their ways, exactly. Ahmed et al. (2021), eq:main."""
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
    _add_across(terms, wiring, places, swept, slopes, bends)
    return JointSteps(slopes, bends, tilts, grams, terms.symmetric)


def sums_after(
    terms: Terms, wiring: Wiring, places: Sequence[Place], swept: Sequence[Swept], steps: FloatArray
) -> Sums:
    """The sums over all rows once each block has taken its step."""
    parts = [_sums_of_block(place, report, float(t)) for place, report, t in zip(places, swept, steps, strict=True)]
    return add_up(terms, wiring, offers_after(places, swept, steps), parts)


def gaps_after(
    crew: Crew, wiring: Wiring, terms: Terms, H: FloatArray, G: FloatArray, steps: FloatArray, offered: FloatArray
) -> Gaps:
    """The residuals themselves once each block has taken its step, which takes a pass over all rows.

    Those of similarities that have no say count as 0.
    """
    reports = crew.each(find_gaps, terms, H, apart=[(float(t),) for t in steps])
    attributes, on_graph, square, entries = (sum(column) for column in zip(*reports, strict=True))
    if not terms.symmetric:
        return Gaps(attributes, 0.0, 0.0)
    fitted = _dots(*wiring.ends_of(offered))
    on_graph += 2 * float(np.sum((wiring.similarities - fitted) ** 2))
    square += 2 * float(np.vdot(fitted, fitted))
    off_graph = 0.0 if entries == terms.n_rows**2 else max(float(np.vdot(G, G)) - square, 0.0)
    return Gaps(attributes, on_graph, off_graph)


def offers_after(places: Sequence[Place], swept: Sequence[Swept], steps: FloatArray) -> FloatArray:
    """All rows offered, once each block has taken its step."""
    return np.concatenate(
        [
            report.offers if t == 1.0 else place.offers + t * (report.offers - place.offers)
            for place, report, t in zip(places, swept, steps, strict=True)
        ]
    )


def _sums_of_block(place: Place, report: Swept, t: float) -> Sums:
    (a, b, c), (d, e, f) = report.agreement, report.roughness
    agreement, roughness = a + t * (2 * b + t * c), d + t * (2 * e + t * f)
    if t == 1.0:
        return Sums(report.G, report.V, agreement, roughness)
    G = place.G + t * (report.mixed + report.mixed.T) + t * t * report.change
    return Sums(G, (1 - t) * report.V_before + t * report.V, agreement, roughness)


def _across(terms: Terms, wiring: Wiring, offered: FloatArray) -> tuple[float, float]:
    """What pairs of rows in different blocks add to ⟨W, SW⟩ and to tr(WᵀLW)."""
    one, other = wiring.ends_of(offered)
    agreement = 2 * float(np.vdot(wiring.similarities, _dots(one, other)))
    if not terms.laplacian:
        return agreement, 0.0
    return agreement, float(np.vdot(wiring.similarities, _dots(one - other, one - other)))


def _add_across(
    terms: Terms,
    wiring: Wiring,
    places: Sequence[Place],
    swept: Sequence[Swept],
    slopes: FloatArray,
    bends: FloatArray,
) -> None:
    """Add to slopes and bends what they owe to pairs of rows in different blocks.

    For w_i = y + t_p·d and w_j = z + t_q·e with similarity s, that is λs‖w_i − w_j‖² − 4σs⟨w_i, w_j⟩.
    """
    numbers = np.repeat(np.arange(len(places)), [len(place.offers) for place in places])[wiring.ends]
    (p, q), s = (numbers[:, 0], numbers[:, 1]), wiring.similarities
    before, after = offers_of(places), np.concatenate([report.offers for report in swept])
    (y, z), (d, e) = wiring.ends_of(before), wiring.ends_of(after - before)
    hold, pull = terms.laplacian * s, 4 * terms.symmetric * s
    np.add.at(slopes, p, 2 * hold * _dots(y - z, d) - pull * _dots(z, d))
    np.add.at(slopes, q, 2 * hold * _dots(z - y, e) - pull * _dots(y, e))
    np.add.at(bends, (p, p), hold * _dots(d, d))
    np.add.at(bends, (q, q), hold * _dots(e, e))
    np.add.at(bends, (p, q), -(2 * hold + pull) * _dots(d, e))


def _dots(X: FloatArray, Z: FloatArray) -> FloatArray:
    """The scalar products of their rows."""
    products: FloatArray = np.einsum("ik,ik->i", X, Z)
    return products


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
