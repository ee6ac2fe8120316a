"""A stream under way: the warm-up, the scaling learnt in it, the factors that follow, and the threshold beside them.

Rows are clean arrays here (`online.py` checks them): float64, NaN where a reading is missing.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from penstock._types import Factors, FloatArray, IndexArray, StreamScores
from penstock.factor.incomplete import fit_incomplete
from penstock.factor.objectives import nsnmf
from penstock.factor.online import OnlineFactors, OnlineSettings
from penstock.graph.similarity import similarity
from penstock.prepare import MinMaxScaling, learn_scaling
from penstock.thresholds import Threshold

_ROWS_AT_ONCE = 1 << 15  # between two looks at Ctrl-C; no result depends on it


@dataclass(frozen=True)
class StreamSettings:
    """The parameters of `OnlineNSNMF` that matter once a stream has begun."""

    n_components: int
    buffer_size: int
    warmup: int
    gamma: float
    scale: Literal["auto", "minmax"] | None
    learn_flagged: bool
    random_state: Any
    online: OnlineSettings


class Stream:
    """All that a stream has left behind so far."""

    def __init__(self, settings: StreamSettings, n_columns: int, threshold: Threshold) -> None:
        self.settings = settings
        self.n_columns = n_columns
        self.threshold = threshold
        self.n_seen = 0
        self.n_iter = 0  # of the factorisation that ends the warm-up
        self.missing: IndexArray = np.zeros(n_columns, dtype=np.intp)
        self.highest = np.nan
        self.scaling: MinMaxScaling | None = None
        self.factors: OnlineFactors | None = None
        self.warmup_scores: FloatArray | None = None
        self._waiting: list[FloatArray] = []
        self._proposed = (b"", np.nan)

    @property
    def n_waiting(self) -> int:
        """How many samples the warm-up has collected."""
        return sum(map(len, self._waiting))

    @property
    def waiting(self) -> FloatArray:
        """The samples the warm-up has collected."""
        return np.concatenate([np.empty((0, self.n_columns)), *self._waiting])

    @waiting.setter
    def waiting(self, rows: FloatArray) -> None:
        self._waiting = [rows] if len(rows) else []

    def take(self, table: FloatArray) -> FloatArray:
        """Scores of the rows in turn, each learnt before the next."""
        scores = np.full(len(table), np.nan)
        for start, stop in self._pieces(table):
            scores[start:stop] = self._pass(table[start:stop])
        return scores

    def take_and_explain(self, table: FloatArray, n_variables: int) -> StreamScores:
        """As `take`, with the thresholds, the flags and the columns with the largest residuals."""
        n, m = len(table), min(n_variables, self.n_columns)
        result = StreamScores(
            np.full(n, np.nan),
            np.full(n, np.nan),
            np.zeros(n, dtype=np.bool_),
            np.full((n, m), -1, dtype=np.intp),
            np.full((n, m), np.nan),
        )
        for start, stop in self._pieces(table):
            part = slice(start, stop)
            expected = np.empty((stop - start, self.n_columns))
            result.scores[part] = self._pass(table[part], expected, result.thresholds[part], result.flags[part])
            self._explain(table[part], expected, result.variables[part], result.residuals[part])
        return result

    def score(self, table: FloatArray) -> FloatArray:
        """What `take` would score each row if it came next; nothing is learnt."""
        scores = np.empty(len(table))
        for at in range(0, len(table), _ROWS_AT_ONCE):
            part = slice(at, at + _ROWS_AT_ONCE)
            scores[part] = self._running.score(*self.scaled(table[part]))
        return scores

    def propose(self, table: FloatArray) -> float:
        """Score the one row given; should it be learnt next, nothing is worked out again."""
        score = self._running.propose(*self.scaled(table))
        self._proposed = (table.tobytes(), score)
        return score

    def learn(self, table: FloatArray) -> None:
        """Learn the one row given, after the warm-up: `take`, but sparing what `propose` did."""
        known = self._running.has_proposal and self._proposed[0] == table.tobytes()
        score = self._proposed[1] if known else self.propose(table)
        self.n_seen += 1
        if self._running.proposed_gap:
            self.missing += np.isnan(table[0])
        flagged = self.threshold.update(score)
        if self.settings.learn_flagged or not flagged:
            self._running.accept()
        if not score <= self.highest:  # also if that is NaN: the first score of all
            self._note(np.array([score]))

    def scaled(self, table: FloatArray) -> tuple[FloatArray, FloatArray]:
        """The rows as residuals see them, and, brought into the range learnt, as the factorisation does."""
        if self.scaling is None:
            return table, table
        return self.scaling.apply_both(table)

    def end_warmup(self) -> None:
        """Factorise the samples collected, and go on from there. Ahmed et al. (2021), Algorithm 2, d = z."""
        table = self.waiting
        chosen = self.settings
        self.scaling = self._learn_scaling(table)
        X, A = self.scaled(table)
        first = np.ascontiguousarray(A[: chosen.buffer_size])
        self.factors = OnlineFactors(
            chosen.online, chosen.buffer_size, self.n_columns, min(chosen.n_components, len(first))
        )
        self.factors.fill(first)
        fitted = self._fit_first(first)
        self.factors.begin(fitted)
        residuals = X[: len(first)] - fitted.W @ fitted.H
        scores = seen_norms(residuals)
        self._waiting = []
        later = self._running.update(X[len(first) :], A[len(first) :])
        self._note(np.concatenate([scores, later]))
        # The threshold has no part in these: it would take the scores of a model that is still settling for normal.
        self.warmup_scores = np.concatenate([scores, later])

    def _learn_scaling(self, table: FloatArray) -> MinMaxScaling | None:
        if self.settings.scale is None:
            return None
        learnt = learn_scaling(table)
        within = np.fmin.reduce(learnt.minimum) >= 0 and np.fmax.reduce(learnt.maximum) <= 1
        if self.settings.scale == "auto" and within:
            return MinMaxScaling(np.zeros(self.n_columns), np.ones(self.n_columns))
        return learnt

    def _fit_first(self, A: FloatArray) -> Factors:
        chosen = self.settings
        S = similarity(self._running.tree(), chosen.online.similarity)
        solution = fit_incomplete(
            lambda rows: nsnmf(rows, S, chosen.online.alpha, chosen.gamma),
            A,
            min(chosen.n_components, len(A)),
            random_state=chosen.random_state,
        )
        self.n_iter = solution.n_iter
        return solution.factors

    @property
    def _running(self) -> OnlineFactors:
        assert self.factors is not None, "the warm-up has not ended"
        return self.factors

    def _pieces(self, table: FloatArray) -> list[tuple[int, int]]:
        """Count the rows, let the warm-up have those it needs, and cut up the rest."""
        absent = np.isnan(table)
        self.n_seen += len(table)
        if absent.any():
            self.missing += absent.sum(axis=0)
        start = 0 if self.factors is not None else self._collect(table, absent)
        return [(at, min(at + _ROWS_AT_ONCE, len(table))) for at in range(start, len(table), _ROWS_AT_ONCE)]

    def _collect(self, table: FloatArray, absent: NDArray[np.bool_]) -> int:
        """Keep rows for the warm-up, those without any reading apart; returns how many rows that took."""
        usable = np.flatnonzero(~absent.all(axis=1))
        needed = self.settings.warmup - self.n_waiting
        self._waiting.append(table[usable[:needed]].copy())
        if len(usable) < needed:
            return len(table)
        self.end_warmup()
        return int(usable[needed - 1]) + 1

    def _pass(
        self,
        table: FloatArray,
        expected: FloatArray | None = None,
        thresholds: FloatArray | None = None,
        flags: NDArray[np.bool_] | None = None,
    ) -> FloatArray:
        X, A = self.scaled(table)
        if self.settings.learn_flagged:
            scores = self._running.update(X, A, expected)
            self._judge(scores, thresholds, flags)
        else:
            scores = self._learn_unflagged(X, A, expected, thresholds, flags)
        self._note(scores)
        return scores

    def _judge(self, scores: FloatArray, thresholds: FloatArray | None, flags: NDArray[np.bool_] | None) -> None:
        if thresholds is None or flags is None:
            self.threshold.update_many(scores)
            return
        for i, score in enumerate(scores.tolist()):
            thresholds[i] = self.threshold.value
            flags[i] = self.threshold.update(score)

    def _learn_unflagged(
        self,
        X: FloatArray,
        A: FloatArray,
        expected: FloatArray | None,
        thresholds: FloatArray | None,
        flags: NDArray[np.bool_] | None,
    ) -> FloatArray:
        scores, running = np.empty(len(X)), self._running
        for i in range(len(X)):
            row = slice(i, i + 1)
            if thresholds is not None:
                thresholds[i] = self.threshold.value
            scores[i] = running.propose(X[row], A[row], None if expected is None else expected[row])
            flagged = self.threshold.update(float(scores[i]))
            if flags is not None:
                flags[i] = flagged
            if not flagged:
                running.accept()
        return scores

    def _note(self, scores: FloatArray) -> None:
        if len(scores):
            self.highest = float(np.fmax(self.highest, np.fmax.reduce(scores)))

    def _explain(self, table: FloatArray, expected: FloatArray, variables: IndexArray, residuals: FloatArray) -> None:
        m = variables.shape[1]
        if m == 0 or len(table) == 0:
            return
        size = np.abs(self.scaled(table)[0] - expected)
        size[np.isnan(size)] = -1.0
        largest = np.argsort(-size, axis=1, kind="stable")[:, :m]
        rows = np.arange(len(table))[:, None]
        in_units = table - (expected if self.scaling is None else self.scaling.undo(expected))
        missing = size[rows, largest] < 0
        variables[:] = np.where(missing, -1, largest)
        residuals[:] = np.where(missing, np.nan, in_units[rows, largest])


def seen_norms(residuals: FloatArray) -> FloatArray:
    """‖r‖ of each row over what is not NaN, scaled up to all of it."""
    seen = ~np.isnan(residuals)
    share = residuals.shape[1] / np.maximum(seen.sum(axis=1), 1)
    norms: FloatArray = np.sqrt(np.nansum(residuals**2, axis=1) * share)
    return norms
