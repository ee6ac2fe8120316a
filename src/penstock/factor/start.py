"""Sources of random numbers, and random starts on the scale of the problem."""

from __future__ import annotations

import math
from numbers import Integral
from typing import Any

import numpy as np
from sklearn.utils import check_random_state

from penstock._blas import dot
from penstock._types import Factors, FloatArray
from penstock.factor.objectives import Objective
from penstock.factor.terms import Terms, shorten_rows


def draws_from(random_state: Any) -> Any:
    """Make a source of random numbers from a seed, a `RandomState`, a `Generator` or None."""
    return random_state if isinstance(random_state, np.random.Generator) else check_random_state(random_state)


def check_random_source(name: str, value: object) -> None:
    """Raise unless a value is what `draws_from` takes; a bound as in `penstock._parameters`."""
    if value is not None and not (isinstance(value, Integral) and 0 <= int(value) < 2**32):  # to seed takes its time
        draws_from(value)


def draw_seed(rng: Any) -> int:
    """Draw 63 random bits, from which blocks draw their starts on any machine."""
    return int.from_bytes(rng.bytes(8), "little") >> 1


def random_start(objective: Objective, n_components: int, rng: Any) -> Factors:
    """Draw uniform random W and H, each times the number that suits the objective best: where `Multiplicative` begins.

    Along (tW, uH) the objective is a polynomial in t and u whose five coefficients cost one pass over the data; t is
    its best power of √2 and u the best multiple for that t. So the start follows the data whatever its units: entries
    of A near 1e-6 and similarities of 1e4 alike. A term that only ever shrinks W (a Laplacian) does not set a scale:
    there t = u, or, where rows of H are bounded, H is as long as allowed and W fits it.

    Parameters
    ----------
    objective : Objective
        What is to be minimised.
    n_components : int
        Number of latent groups K.
    rng : int, RandomState, Generator or None
        Source of random numbers.

    Returns
    -------
    Factors
        W of shape (n, K) and H of shape (K, p).

    Examples
    --------
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
    t, u = _best_scales(objective.terms, G, H, fit, energy, dot(W, objective.spread(W)))
    return Factors(t * W, shorten_rows(u * H, objective.row_bound))


def _best_scales(
    terms: Terms, G: FloatArray, H: FloatArray, fit: float, energy: float, agreement: float
) -> tuple[float, float]:
    """Find the t and u of the best (tW, uH), given G = WᵀW, ⟨A, WH⟩, ‖WH‖² and ⟨W, SW⟩."""
    t = _weight_scale(terms, G, H, fit, energy, agreement)
    if not (terms.alpha and energy > 0):
        return t, 1.0
    u = terms.alpha * t * fit / (terms.alpha * t * t * energy + terms.gamma * dot(H, H))
    return t, u or 1.0  # 1 where A holds nothing to fit


def _weight_scale(terms: Terms, G: FloatArray, H: FloatArray, fit: float, energy: float, agreement: float) -> float:
    """Find the t that minimises f(tW, uH) with u at its best."""
    norm_W, norm_H, quartic = float(np.trace(G)), dot(H, H), dot(G, G)
    balanced = math.sqrt(max(fit, 0.0) / energy) if energy > 0 and fit > 0 else 1.0
    structured = math.sqrt(agreement / quartic) if agreement > 0 else balanced
    if not terms.alpha:
        return structured
    if not terms.symmetric and math.isfinite(terms.row_bound):
        return balanced**2 * math.sqrt(norm_H / len(H)) / terms.row_bound
    if not terms.symmetric:
        return balanced
    centre = math.sqrt(balanced * structured)
    scales = centre * 2.0 ** np.arange(-20, 20.5, 0.5)
    squares = scales**2
    fitted = terms.alpha * squares * fit**2 * terms.alpha
    fitted /= terms.alpha * squares * energy + terms.gamma * norm_H
    values = terms.symmetric * (squares**2 * quartic - 2 * squares * agreement)
    values += terms.gamma * squares * norm_W - fitted
    return float(scales[np.argmin(values)])
