"""Where a solver starts: random factors on the scale of the problem."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from sklearn.utils import check_random_state

from penstock._types import Factors, FloatArray
from penstock.factor.objectives import Objective, shorten_rows


def draws_from(random_state: Any) -> Any:
    """A source of random numbers from a seed, a `RandomState`, a `Generator` or None.

    >>> bool(draws_from(3).random() == draws_from(3).random())
    True
    """
    return random_state if isinstance(random_state, np.random.Generator) else check_random_state(random_state)


def random_start(objective: Objective, n_components: int, rng: Any) -> Factors:
    """Uniform random W and H, each times the number that suits the objective best.

    Along (tW, uH) the objective is a polynomial in t and u whose five coefficients cost one pass over the data; t is
    its best power of √2 and u the best multiple for that t. So the start follows the data whatever its units: entries
    of A near 1e-6 and similarities of 1e4 alike. A term that only ever shrinks W (a Laplacian) does not set a scale:
    there t = u, or, where rows of H are bounded, H is as long as allowed and W fits it.

    >>> import numpy as np
    >>> from penstock.factor import nmf
    >>> start = random_start(nmf(np.full((4, 3), 1e-6)), 2, 0)
    >>> start.W.shape, start.H.shape, bool(np.abs(start.W @ start.H - 1e-6).max() < 1e-6)
    ((4, 2), (2, 3), True)
    """
    rng = draws_from(rng)
    W = rng.random((objective.n_rows, n_components))
    H = rng.random((n_components, objective.n_columns))
    G = W.T @ W
    fit, energy = objective.fit_and_energy(W, H, G)
    t = _best_scale(objective, W, H, G, fit, energy)
    if objective.alpha and energy > 0:
        H *= _profile_scale(objective, t, fit, energy, float(np.vdot(H, H)))  # u
    return Factors(t * W, shorten_rows(H, objective.row_bound))


def _profile_scale(objective: Objective, t: float, fit: float, energy: float, norm_H: float) -> float:
    """The u that minimises f(tW, uH); 1 when A holds nothing to fit."""
    return objective.alpha * t * fit / (objective.alpha * t * t * energy + objective.gamma * norm_H) or 1.0


def _best_scale(objective: Objective, W: FloatArray, H: FloatArray, G: FloatArray, fit: float, energy: float) -> float:
    """The t that minimises f(tW, uH) with u at its best."""
    norm_W, norm_H = float(np.trace(G)), float(np.vdot(H, H))
    agreement, quartic = float(np.vdot(W, objective.spread(W))), float(np.vdot(G, G))
    balanced = math.sqrt(max(fit, 0.0) / energy) if energy > 0 and fit > 0 else 1.0
    structured = math.sqrt(agreement / quartic) if agreement > 0 else balanced
    if not objective.alpha:
        return structured
    if not objective.symmetric and math.isfinite(objective.row_bound):
        return balanced**2 * math.sqrt(norm_H / len(H)) / objective.row_bound
    if not objective.symmetric:
        return balanced
    centre = math.sqrt(balanced * structured)
    scales = centre * 2.0 ** np.arange(-20, 20.5, 0.5)
    squares = scales**2
    fitted = objective.alpha * squares * fit**2 * objective.alpha
    fitted /= objective.alpha * squares * energy + objective.gamma * norm_H
    values = objective.symmetric * (squares**2 * quartic - 2 * squares * agreement)
    values += objective.gamma * squares * norm_W - fitted
    return float(scales[np.argmin(values)])
