"""A stream of rows: the warm-up, the scaling fitted to it, the factors that follow, and the threshold.

Rows are checked arrays here (`online.py` checks them): float64, NaN where a reading is missing.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from penstock._progress import set_stage
from penstock._types import BoolArray, FloatArray, IndexArray, StreamScores
from penstock.detectors._input import LARGEST_VALUE
from penstock.factor.objectives import nsnmf
from penstock.factor.online import OnlineFactors
from penstock.factor.solve import fit_factors
from penstock.prepare import SCALING, MinMaxScaling, learn_scaling, unpack_scaling
from penstock.storage import Fields, Record, pack_fields, read_fields
from penstock.thresholds import Threshold, pack_threshold, unpack_threshold

if TYPE_CHECKING:
    from penstock.detectors.online import OnlineNSNMF

_FIELDS: Fields = {
    "n_seen": int, "missing": "p int >=0", "highest": ("?", "float >=0"), "waiting": object, "threshold": object,
    "warm": object,
}  # fmt: skip
_WARM: Fields = {
    "scaling": object, "warmup_scores": "w >=0 nan", "n_iter": int, "n_components": "int >=1 <k", "factors": object,
}  # fmt: skip
_ROWS_AT_ONCE = 1 << 15  # between two looks at Ctrl-C; no result depends on it


class Stream:
    """The state of a stream.

    settings : a detector with the parameters of the moment the stream began; they do not change while it runs.
    waiting, n_waiting : (n, p) rows with readings that the warm-up has collected, and how many; none after it.
    tightest : the shortest edge of the tree of the warm-up in units of the middle one, edges of length 0 apart.
    """

    def __init__(self, detector: OnlineNSNMF, n_columns: int, threshold: Threshold) -> None:
        self.settings = type(detector)(**detector.get_params(deep=False))  # those of the moment it begins
        self.wanted = detector.warmup or detector.buffer_size  # rows that the warm-up collects
        self.n_columns = n_columns
        self.threshold = threshold
        self.n_seen = 0
        self.n_iter = 0  # of the factorisation that ends the warm-up
        self.missing: IndexArray = np.zeros(n_columns, dtype=np.intp)
        self.highest = np.nan
        self.scaling: MinMaxScaling | None = None
        self.factors: OnlineFactors | None = None
        self.warmup_scores: FloatArray | None = None
        self.tightest = 1.0
        self.n_waiting = 0
        self._waiting: list[FloatArray] = []
        self._proposed = (b"", np.nan)

    @property
    def waiting(self) -> FloatArray:
        """The rows that the warm-up has collected."""
        return np.concatenate([np.empty((0, self.n_columns)), *self._waiting])

    def take(self, table: FloatArray) -> FloatArray:
        """Score the rows in turn, and learn each before the next; NaN for those of the warm-up."""
        scores = np.full(len(table), np.nan)
        for part in self._pieces(table):
            set_stage("row", part.start, len(table))
            scores[part] = self._pass(table[part])
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
        for part in self._pieces(table):
            expected = np.empty((len(table[part]), self.n_columns))
            result.scores[part] = self._pass(table[part], expected, result.thresholds[part], result.flags[part])
            self._explain(table[part], expected, result.variables[part], result.residuals[part])
        return result

    def score(self, table: FloatArray) -> FloatArray:
        """Return what `take` would score each row if it came next; nothing is taken in."""
        scores = np.empty(len(table))
        for at in range(0, len(table), _ROWS_AT_ONCE):
            part = slice(at, at + _ROWS_AT_ONCE)
            scores[part] = self._running.score(*self._scaled(table[part]))
        return scores

    def propose(self, table: FloatArray) -> float:
        """Score one row; if it is taken in next, nothing is computed again."""
        score = self._running.propose(*self._scaled(table))
        self._proposed = (table.tobytes(), score)
        return score

    def learn(self, table: FloatArray) -> None:
        """Learn one row after the warm-up: as `take`, but without computing again what `propose` did."""
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

    def end_warmup(self) -> None:
        """Factorise the samples collected. Ahmed et al. (2021), Algorithm 2, d = z. If that fails, nothing changes."""
        chosen, table = self.settings, self.waiting
        scaling = None if chosen.scale is None else learn_scaling(table)
        if scaling is not None and chosen.scale == "auto":
            within = np.fmin.reduce(scaling.minimum) >= 0 and np.fmax.reduce(scaling.maximum) <= 1
            if within:  # the stream counts as scaled already
                scaling = MinMaxScaling(np.zeros(self.n_columns), np.ones(self.n_columns))
        X, A = (table, table) if scaling is None else scaling.apply_both(table)
        n = min(chosen.buffer_size, len(table))
        n_components = min(chosen.n_components, n)
        first = np.ascontiguousarray(A[:n])
        factors = OnlineFactors(chosen, chosen.buffer_size, self.n_columns, n_components)
        factors.fill(first)
        lengths, S = factors.tree().lengths, factors.similarity()
        objective = nsnmf(first, S, chosen.alpha, chosen.gamma)
        solution = fit_factors(objective, n_components, random_state=chosen.random_state)
        factors.begin(solution.factors)
        residuals = X[:n] - solution.factors.W @ solution.factors.H
        share = self.n_columns / (~np.isnan(residuals)).sum(axis=1)
        own = np.sqrt(np.nansum(residuals**2, axis=1) * share)
        # The threshold does not see the later ones: it would take a model that is still settling for normal.
        scores = np.concatenate([own, factors.update(X[n:], A[n:])])
        positive = lengths[(lengths > 0) & np.isfinite(lengths)]
        self.tightest = float(positive.min() / np.median(positive)) if len(positive) else 1.0
        self.scaling, self.n_iter, self.warmup_scores = scaling, solution.n_iter, scores
        self._note(scores)
        self._waiting, self.n_waiting = [], 0
        self.factors = factors

    @property
    def _running(self) -> OnlineFactors:
        assert self.factors is not None, "the warm-up has not ended"
        return self.factors

    def _scaled(self, table: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return the rows for residuals and, clipped to the fitted range, for the factorisation."""
        return (table, table) if self.scaling is None else self.scaling.apply_both(table)

    def _pieces(self, table: FloatArray) -> list[slice]:
        """Give the warm-up the rows it needs, count all rows, and cut the others into pieces."""
        absent = np.isnan(table)
        start = 0 if self.factors is not None else self._collect(table, absent)
        self.n_seen += len(table)
        if absent.any():
            self.missing = self.missing + absent.sum(axis=0)
        return [slice(at, min(at + _ROWS_AT_ONCE, len(table))) for at in range(start, len(table), _ROWS_AT_ONCE)]

    def _collect(self, table: FloatArray, absent: BoolArray) -> int:
        """Let the warm-up take the rows with readings that it needs; return how many rows were looked at."""
        usable = np.flatnonzero(~absent.all(axis=1))
        needed = self.wanted - self.n_waiting
        if len(usable):
            self._waiting.append(table[usable[:needed]].copy())
            self.n_waiting += len(self._waiting[-1])
        if len(usable) < needed:
            return len(table)
        try:
            self.end_warmup()
        except BaseException:
            self.n_waiting -= len(self._waiting.pop())
            raise
        return int(usable[needed - 1]) + 1

    def _pass(
        self,
        table: FloatArray,
        expected: FloatArray | None = None,
        thresholds: FloatArray | None = None,
        flags: BoolArray | None = None,
    ) -> FloatArray:
        """Score and learn rows; fill what is given: expected readings, thresholds and flags."""
        X, A = self._scaled(table)
        running, threshold = self._running, self.threshold
        if self.settings.learn_flagged:
            scores = running.update(X, A, expected)
            if thresholds is None or flags is None:
                threshold.update_many(scores)
            else:
                for i, score in enumerate(scores.tolist()):
                    thresholds[i] = threshold.value
                    flags[i] = threshold.update(score)
        else:
            scores = np.empty(len(X))
            for i in range(len(X)):
                row = slice(i, i + 1)
                if thresholds is not None:
                    thresholds[i] = threshold.value
                scores[i] = running.propose(X[row], A[row], None if expected is None else expected[row])
                flagged = threshold.update(float(scores[i]))
                if flags is not None:
                    flags[i] = flagged
                if flagged:
                    running.decline()
                else:
                    running.accept()
        self._note(scores)
        return scores

    def _note(self, scores: FloatArray) -> None:
        if len(scores):
            self.highest = float(np.fmax(self.highest, np.fmax.reduce(scores)))

    def _explain(self, table: FloatArray, expected: FloatArray, variables: IndexArray, residuals: FloatArray) -> None:
        m = variables.shape[1]
        if m == 0 or len(table) == 0:
            return
        size = np.abs(self._scaled(table)[0] - expected)
        size[np.isnan(size)] = -1.0
        largest = np.argsort(-size, axis=1, kind="stable")[:, :m]
        rows = np.arange(len(table))[:, None]
        in_units = table - (expected if self.scaling is None else self.scaling.undo(expected))
        missing = size[rows, largest] < 0
        variables[:] = np.where(missing, -1, largest)
        residuals[:] = np.where(missing, np.nan, in_units[rows, largest])

    def pack(self) -> dict[str, Any]:
        """Return the stream for a file."""
        warm = None
        if self.factors is not None:
            warm = {
                "scaling": None if self.scaling is None else pack_fields(self.scaling, SCALING),
                "warmup_scores": self.warmup_scores,
                "n_iter": self.n_iter,
                "n_components": len(self.factors.H),
                "factors": self.factors.get_state(),
            }
        return {
            "n_seen": self.n_seen,
            "missing": self.missing.astype(np.int64),
            "highest": None if math.isnan(self.highest) else self.highest,
            "waiting": self.waiting,
            "threshold": pack_threshold(self.threshold),
            "warm": warm,
        }

    def unpack(self, record: Record) -> None:
        """Bring a stream that has not begun to where `pack` was called."""
        p, chosen = self.n_columns, self.settings
        found = read_fields(record, _FIELDS, {"p": p})
        self.n_seen, self.missing = found["n_seen"], found["missing"]
        if (self.missing > self.n_seen).any():
            raise record.error("missing", "at most as many as there were samples")
        self.highest = math.nan if found["highest"] is None else found["highest"]
        least, most = (0.0, LARGEST_VALUE) if chosen.scale is None else (-math.inf, math.inf)
        waiting = record.array("waiting", np.float64, (None, p), least=least, most=most, missing=True)
        self.threshold = unpack_threshold(record.value("threshold"))
        warm = record.optional_part("warm")
        if len(waiting) >= self.wanted or (warm is not None and len(waiting)) or len(waiting) > self.n_seen:
            raise record.error("waiting", f"fewer rows than the warm-up needs ({self.wanted}), none after it")
        if np.isnan(waiting).all(axis=1).any():
            raise record.error("waiting", "rows with at least one reading")
        self._waiting, self.n_waiting = [waiting], len(waiting)
        if warm is None:
            return
        begun = read_fields(warm, _WARM, {"k": chosen.n_components + 1})
        self.scaling = unpack_scaling(warm.optional_part("scaling"), p, missing=True)
        if (self.scaling is None) != (chosen.scale is None):
            raise warm.error("scaling", f"what scale={chosen.scale!r} leads to")
        self.warmup_scores, self.n_iter = begun["warmup_scores"], begun["n_iter"]
        factors = OnlineFactors(chosen, chosen.buffer_size, p, begun["n_components"])
        factors.set_state(begun["factors"])
        self.factors = factors
