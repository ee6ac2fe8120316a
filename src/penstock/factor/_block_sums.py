"""What blocks of rows report, added up: always in the order of the blocks, and with the pairs across blocks."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from penstock._types import FloatArray
from penstock.factor._block_work import Place, Swept, find_gaps
from penstock.factor.blocks import Crew, Wiring
from penstock.factor.line_search import JointSteps
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
