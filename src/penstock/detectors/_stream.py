"""A stream under way: the warm-up, the scaling learnt in it, the factors that follow, and the threshold beside them.

Rows are clean arrays here (`online.py` checks them): float64, NaN where a reading is missing.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from penstock._types import FloatArray, IndexArray, StreamScores
from penstock.detectors._stream_settings import StreamSettings
from penstock.detectors._warmup import WarmUp
from penstock.factor.online import OnlineFactors
from penstock.prepare import MinMaxScaling
from penstock.thresholds import Threshold

_ROWS_AT_ONCE = 1 << 15  # between two looks at Ctrl-C; no result depends on it


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
        self.warmup = WarmUp(settings, n_columns)
        self.tightest = 1.0  # of the tree of the warm-up: `penstock.detectors._warmup.Start`
        self._proposed = (b"", np.nan)

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
            self.missing = self.missing + np.isnan(table[0])
        if self.threshold.update(score) and not self.settings.learn_flagged:
            self._running.decline()
        self._running.accept()
        if not score <= self.highest:  # also if that is NaN: the first score of all
            self._note(np.array([score]))

    def scaled(self, table: FloatArray) -> tuple[FloatArray, FloatArray]:
        """The rows as residuals see them, and, brought into the range learnt, as the factorisation does."""
        if self.scaling is None:
            return table, table
        return self.scaling.apply_both(table)

    def end_warmup(self) -> None:
        """Go on from the samples collected. Should that fail, nothing has changed."""
        start = self.warmup.end()
        self.scaling, self.n_iter, self.tightest = start.scaling, start.n_iter, start.tightest
        self.warmup_scores = start.scores
        self._note(start.scores)
        self.warmup = WarmUp(self.settings, self.n_columns)
        self.factors = start.factors

    @property
    def _running(self) -> OnlineFactors:
        assert self.factors is not None, "the warm-up has not ended"
        return self.factors

    def _pieces(self, table: FloatArray) -> list[tuple[int, int]]:
        """Let the warm-up have the rows it needs, cut up the rest, and count all."""
        absent = np.isnan(table)
        start = 0 if self.factors is not None else self._collect(table, absent)
        self.n_seen += len(table)
        if absent.any():
            self.missing = self.missing + absent.sum(axis=0)
        return [(at, min(at + _ROWS_AT_ONCE, len(table))) for at in range(start, len(table), _ROWS_AT_ONCE)]

    def _collect(self, table: FloatArray, absent: NDArray[np.bool_]) -> int:
        """How many rows the warm-up took. Should it fail to end, it has not seen them."""
        before = self.warmup.n_rows
        taken = self.warmup.add(table, absent)
        if self.warmup.is_complete:
            try:
                self.end_warmup()
            except BaseException:
                self.warmup.drop_from(before)
                raise
        return taken

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
            if flagged:
                running.decline()
            else:
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
