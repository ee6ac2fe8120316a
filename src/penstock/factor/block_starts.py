"""Where descent by blocks of rows starts: every block draws its own rows, and nobody ever holds all of W."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from penstock._types import FloatArray
from penstock.factor._block_sums import add_up, borders_of, gaps_after, offers_of
from penstock.factor._block_work import Standing, draw, multiply, rescale, settle
from penstock.factor.blocks import Crew, Wiring
from penstock.factor.loop import finite
from penstock.factor.multiplicative import FLOOR, Multiplicative, scale_profiles
from penstock.factor.start import best_scales, draw_seed, draws_from
from penstock.factor.stationarity import shorten_rows
from penstock.factor.terms import Sums, Terms, value_of


@dataclass(frozen=True, eq=False)
class BlockStart:
    """Where a descent starts: H (the blocks have W), and the objective on the way there, if there was one."""

    H: FloatArray
    history: list[float]
    start_objectives: FloatArray | None = None


def one_start(crew: Crew, wiring: Wiring, terms: Terms, n_components: int, random_state: Any) -> BlockStart:
    """Random factors on the scale of the problem, as they are."""
    seed = draw_seed(draws_from(random_state))
    H, _ = _drawn(crew, wiring, terms, n_components, seed, 0, keep=False, floor=0.0)
    return BlockStart(H, [])


def best_start(
    crew: Crew, wiring: Wiring, terms: Terms, n_components: int, n_starts: int, burn_in: int, random_state: Any
) -> BlockStart:
    """The best of some random starts after a burn-in of each."""
    seed = draw_seed(draws_from(random_state))
    best, keep = BlockStart(np.zeros((0, 0)), []), False
    ends: list[float] = []
    for start in range(n_starts):
        H, standings = _drawn(crew, wiring, terms, n_components, seed, start, keep, FLOOR)
        tried = _burnt_in(crew, wiring, terms, H, standings, burn_in)
        keep = not ends or tried.history[-1] < best.history[-1]
        best = tried if keep else best
        ends.append(tried.history[-1])
    crew.each(settle, keep)
    return BlockStart(best.H, best.history, np.array(ends))


def given_start(crew: Crew, wiring: Wiring, terms: Terms, H: FloatArray, burn_in: int) -> BlockStart:
    """Multiplicative updates from the W that the blocks have."""
    return _burnt_in(crew, wiring, terms, H, crew.each(rescale, terms, 1.0, FLOOR), burn_in)


def _drawn(
    crew: Crew, wiring: Wiring, terms: Terms, n_components: int, seed: int, start: int, keep: bool, floor: float
) -> tuple[FloatArray, list[Standing]]:
    """Uniform random factors times the numbers that suit the objective best (see `random_start`).

    H is drawn from the stream [seed, start], the rows of block b from [seed, start, 1 + b].
    """
    H = np.random.default_rng([seed, start]).random((n_components, terms.n_columns))
    numbers = [(number,) for number in range(crew.n_blocks)]
    sums = _added(terms, wiring, crew.each(draw, terms, n_components, seed, start, keep, apart=numbers))
    fit, energy = float(np.vdot(sums.V, H)), float(np.vdot(sums.G, H @ H.T))
    t, u = best_scales(terms, sums.G, H, fit, energy, sums.agreement)
    return shorten_rows(u * H, terms.row_bound), crew.each(rescale, terms, t, floor)


def _burnt_in(
    crew: Crew, wiring: Wiring, terms: Terms, H: FloatArray, standings: Sequence[Standing], steps: int
) -> BlockStart:
    """Multiplicative updates of W, then of H, from where the blocks stand."""
    H = np.maximum(H, FLOOR) if terms.alpha else H
    exponent = Multiplicative().exponent_for(terms)
    sums = _added(terms, wiring, standings)
    history = [_value(crew, wiring, terms, H, sums, standings)]
    for _ in range(steps):
        borders = borders_of(wiring, [it.place for it in standings])
        standings = crew.each(multiply, terms, H, sums.G, exponent, apart=borders)
        sums = _added(terms, wiring, standings)
        if terms.alpha:
            H = H.copy()  # what blocks were told stays as it was: a cluster may tell it again
            scale_profiles(terms, H, sums.G, sums.V)
        history.append(_value(crew, wiring, terms, H, sums, standings))
    return BlockStart(H, history)


def _added(terms: Terms, wiring: Wiring, standings: Sequence[Standing]) -> Sums:
    return add_up(terms, wiring, offers_of([it.place for it in standings]), [it.sums for it in standings])


def _value(crew: Crew, wiring: Wiring, terms: Terms, H: FloatArray, sums: Sums, standings: Sequence[Standing]) -> float:
    offered, stay = offers_of([it.place for it in standings]), np.zeros(crew.n_blocks)
    return finite(value_of(terms, H, sums, lambda: gaps_after(crew, wiring, terms, H, sums.G, stay, offered)))
