"""The first samples of a stream: collected, scaled, factorised."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from penstock._types import Factors, FloatArray, Solution
from penstock.detectors._stream_settings import StreamSettings
from penstock.factor.objectives import nsnmf
from penstock.factor.online import OnlineFactors
from penstock.factor.solve import fit_factors
from penstock.prepare import MinMaxScaling, learn_scaling


@dataclass(frozen=True)
class Start:
    """What the warm-up leaves a stream to go on with."""

    scaling: MinMaxScaling | None
    factors: OnlineFactors
    scores: FloatArray  # of the samples collected
    n_iter: int
    tightest: float  # the shortest edge of the tree, in units of the middle one; zeros apart


class WarmUp:
    """Collects samples that have any reading until there are enough."""

    def __init__(self, settings: StreamSettings, n_columns: int) -> None:
        self.settings = settings
        self._n_columns = n_columns
        self._pieces: list[FloatArray] = []
        self.n_rows = 0

    @property
    def rows(self) -> FloatArray:
        """The samples collected."""
        return np.concatenate([np.empty((0, self._n_columns)), *self._pieces])

    @property
    def is_complete(self) -> bool:
        return self.n_rows >= self.settings.warmup

    def add(self, table: FloatArray, absent: NDArray[np.bool_]) -> int:
        """Take what is needed of the rows, those without any reading apart; returns how many rows were looked at."""
        usable = np.flatnonzero(~absent.all(axis=1))
        needed = self.settings.warmup - self.n_rows
        self.keep(table[usable[:needed]].copy())
        return len(table) if len(usable) < needed else int(usable[needed - 1]) + 1

    def keep(self, rows: FloatArray) -> None:
        """Take these rows, all of which have readings."""
        if len(rows):
            self._pieces.append(rows)
            self.n_rows += len(rows)

    def drop_from(self, n_rows: int) -> None:
        """Give back the samples after the first `n_rows`."""
        rows = self.rows[:n_rows]
        self._pieces, self.n_rows = [], 0
        self.keep(rows)

    def end(self) -> Start:
        """Factorise the samples collected. Ahmed et al. (2021), Algorithm 2, d = z."""
        chosen, table = self.settings, self.rows
        scaling = self._learn_scaling(table)
        X, A = (table, table) if scaling is None else scaling.apply_both(table)
        n = min(chosen.buffer_size, len(table))
        factors = OnlineFactors(chosen.online, chosen.buffer_size, self._n_columns, min(chosen.n_components, n))
        factors.fill(np.ascontiguousarray(A[:n]))
        tree = factors.tree()
        solution = self._fit(factors, np.ascontiguousarray(A[:n]))
        factors.begin(solution.factors)
        # The threshold has no part in the later ones: it would take a model that is still settling for normal.
        scores = np.concatenate([_norms(X[:n], solution.factors), factors.update(X[n:], A[n:])])
        return Start(scaling, factors, scores, solution.n_iter, _tightest(tree.lengths))

    def _learn_scaling(self, table: FloatArray) -> MinMaxScaling | None:
        if self.settings.scale is None:
            return None
        learnt = learn_scaling(table)
        within = np.fmin.reduce(learnt.minimum) >= 0 and np.fmax.reduce(learnt.maximum) <= 1
        if self.settings.scale == "auto" and within:
            return MinMaxScaling(np.zeros(self._n_columns), np.ones(self._n_columns))
        return learnt

    def _fit(self, factors: OnlineFactors, A: FloatArray) -> Solution:
        chosen, S = self.settings, factors.similarity()
        objective = nsnmf(A, S, chosen.online.alpha, chosen.gamma)
        return fit_factors(objective, min(chosen.n_components, len(A)), random_state=chosen.random_state)


def _norms(X: FloatArray, factors: Factors) -> FloatArray:
    """‖a − wH‖ of each row over what is not missing, scaled up to all of it."""
    residuals = X - factors.W @ factors.H
    seen = ~np.isnan(residuals)
    share = residuals.shape[1] / seen.sum(axis=1)
    norms: FloatArray = np.sqrt(np.nansum(residuals**2, axis=1) * share)
    return norms


def _tightest(lengths: FloatArray) -> float:
    positive = lengths[(lengths > 0) & np.isfinite(lengths)]
    return float(positive.min() / np.median(positive)) if len(positive) else 1.0
