"""Say how many rows of a normal table would score as high by chance, and whether any row stands out.

The idea: the scores of normal rows have an upper tail of one shape, whatever the table; only its width differs. The
width is fitted to the scores between the median and the highest 6 %, so that anomalies hardly enter it. The number of
rows that such a tail has at a score or above is then compared with the number that are there.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike

from penstock._messages import counted
from penstock._types import BoolArray, FloatArray, IndexArray

Verdict = Literal["too few", "nothing", "some", "clearly"]
FEWEST_SCORES = 40  # different ones
SOME, CLEARLY = 0.10, 0.01
_SHAPE = 1.3  # excesses above the median to this power are exponential: docs/decisions/0017-expected-by-chance.md
_HIGHEST = 60  # thousandths of the different scores, which the tail does not learn from
_SMALLEST_FIGURE = 0.05  # what is below it is not printed as a number
_MANY = 0.02  # of the rows


@dataclass(frozen=True, eq=False)
class Chance:
    """How many high scores a table has, and how many a normal table of its size would have by chance.

    expected : (n,) per row, how many rows of a normal table of this size score as high; as many as there are for rows
        that are not in the upper tail, NaN if there are too few scores. Rows with equal scores count as one.
    called : (n,) the rows that stand out. Their share is a lower bound on the share of anomalies: the others look like
        normal rows by this score.
    q : the smallest expected number of rows divided by their actual number, over all scores; above 0.10 in about nine
        of ten normal tables. NaN if there are too few scores.
    verdict : whether any row stands out: "some" for q ≤ 0.10, "clearly" for q ≤ 0.01. "nothing" does not say that all
        rows are healthy.
    different : the number of different scores.
    """

    expected: FloatArray
    called: BoolArray
    q: float
    verdict: Verdict
    different: int
    _ranks: IndexArray

    @classmethod
    def of(cls, expected: FloatArray, scores: FloatArray) -> Chance:
        """Compare how many rows are expected as high as each with how many there are.

        expected : of each row; of rows of several modes it need not fall with the score.
        scores : tell apart rows that are expected equally often.
        """
        order = np.lexsort((-scores, expected))
        columns = [values[order] for values in (expected, scores)]
        differs = np.any([values[1:] != values[:-1] for values in columns], axis=0)
        ranks = np.empty(len(order), dtype=np.intp)
        ranks[order] = np.cumsum(np.append(np.ones(min(len(order), 1)), differs))
        q = float((expected / ranks).min(initial=np.inf))
        verdict: Verdict = "nothing"
        if q <= SOME:
            verdict = "clearly" if q <= CLEARLY else "some"
        return cls(expected, _called(expected, ranks, SOME), q, verdict, int(ranks.max(initial=0)), ranks)

    def in_words(self) -> str:
        """Return how many rows stand out, and how many would by chance, in plain sentences."""
        if self.verdict == "too few":
            return (
                f"Too few rows to say whether any stands out: {counted(self.different, 'different score')}, "
                f"{FEWEST_SCORES} are needed."
            )
        if self.verdict == "nothing":
            figure = about_figure(float(self.expected.min()))
            rows = "row" if figure == "about 1" else "rows"
            return (
                f"Nothing stands out: the highest score is one that chance gives to {figure} {rows} of a normal table "
                f"of this size."
            )
        clearly = _called(self.expected, self._ranks, CLEARLY)
        sentences = []
        if clearly.any():
            sentences.append(self._sentence(clearly, "clearly "))
        if (self.called & ~clearly).any():
            sentences.append(self._sentence(self.called, "in all " if sentences else ""))
        share = float(self.called.mean())
        if share > _MANY:
            sentences.append(
                f"At {share:.0%} of all rows they may be a group apart, such as a rare but normal state: see whether "
                f"they are alike."
            )
        return " ".join(sentences)

    def _sentence(self, rows: BoolArray, manner: str) -> str:
        """Say how many rows stand out, and how many would by chance."""
        found, different = int(rows.sum()), int(self._ranks[rows].max())
        verb = "stands" if found == 1 else "stand"
        equal = "" if different == found else f" ({counted(different, 'different score')})"
        figure = about_figure(float(self.expected[rows].max()))
        return f"{counted(found, 'row')}{equal} {manner}{verb} out; {figure} would be expected by chance."


def expected_by_chance(scores: ArrayLike) -> Chance:
    """Compare the scores of a table with what a normal table of its size would show.

    Use it for tables whose rows are like independent draws, with scores from
    `penstock.detectors.scores_without_the_highest` of a `penstock.Detector`. Do not use it for rows that follow each
    other closely in time (these come in episodes), nor for plain distances or residuals such as those of `KNNDistance`
    and `NSNMF`: their tails are heavier, and it called rows in most normal tables.

    scores : finite numbers; high means anomalous. Adding a number to all of them, or multiplying all by a positive one,
        changes nothing but rounding; other scales do, such as the logarithm, as they have tails of other shapes.

    Equal scores count once: d₁ > d₂ > … > d_m. Let i = ⌈m/2⌉, j = ⌈0.06·m⌉, N = i − j and t(s) = (s − d_i)^1.3. For
    normal rows above d_i, t is taken to be exponential with mean σ = [Σ_{j<k<i} t(d_k) + j·t(d_j)]/N; of the j highest
    only their number is used (censoring). E(s) = j·(1 + (t(s) − t(d_j))/(Nσ))^(−N) scores are then expected at
    s ≥ d_j or above, k at a lower d_k. q = min_k E(d_k)/k; rows are called down to the largest k with E(d_k) ≤ 0.10·k.

    It calls too often where normal rows have small groups apart, follow few causes closely, or have heavy tails.

    >>> scores = np.random.default_rng(4).weibull(1.3, size=500)
    >>> print(expected_by_chance(scores).in_words())
    Nothing stands out: the highest score is one that chance gives to about 0.6 rows of a normal table of this size.
    >>> found = expected_by_chance(np.append(scores, [12.0, 14.0]))
    >>> print(found.in_words())
    2 rows clearly stand out; fewer than 0.05 would be expected by chance.
    >>> np.flatnonzero(found.called)
    array([500, 501])
    """
    values = np.asarray(scores, dtype=np.float64)
    if values.ndim != 1:
        raise ValueError(f"Scores must be one-dimensional; got an array of shape {values.shape}.")
    wrong = np.flatnonzero(~np.isfinite(values))
    if len(wrong):
        raise ValueError(f"Scores must be finite, but number {wrong[0]} is {values[wrong[0]]}.")
    ascending, places = np.unique(values, return_inverse=True)
    m = len(ascending)
    ranks = m - places.astype(np.intp)
    if m < FEWEST_SCORES:
        nothing = np.zeros(len(values), dtype=np.bool_)
        return Chance(np.full(len(values), np.nan), nothing, np.nan, "too few", m, ranks)
    return Chance.of(_expected(values, ascending[::-1], ranks), values)


def _expected(scores: FloatArray, descending: FloatArray, ranks: IndexArray) -> FloatArray:
    """Return E of each score, by the tail of the different scores; its rank below where the tail begins.

    All in units of the largest size of a score, so that differences do not overflow, and of t where the tail begins.
    """
    m = len(descending)
    i, j = -(-m // 2), -(-_HIGHEST * m // 1000)
    unit = float(max(abs(descending[0]), abs(descending[-1])))
    upper, values = descending[:i] / unit, scores / unit
    median, start = float(upper[-1]), float(upper[j - 1])

    def t(some: FloatArray) -> FloatArray:
        excess: FloatArray = ((some - median) / (start - median)) ** _SHAPE
        return excess

    total = float(t(upper[j:-1]).sum()) + j
    with np.errstate(over="ignore"):
        beyond = t(np.maximum(values, start)) - 1.0
        expected = j * np.exp(-(i - j) * np.log1p(beyond / total))
    return np.where(values >= start, expected, ranks)


def _called(expected: FloatArray, ranks: IndexArray, level: float) -> BoolArray:
    """Return the rows down to the last rank at which the expected number is at most this share of the actual one."""
    called: BoolArray = ranks <= ranks[expected <= level * ranks].max(initial=0)
    return called


def about_figure(expected: float) -> str:
    """Return an expected number of rows or episodes in words.

    >>> about_figure(0.0735), about_figure(2.44), about_figure(1234.5), about_figure(1e-9)
    ('about 0.07', 'about 2.4', 'about 1,234', 'fewer than 0.05')
    """
    if expected < _SMALLEST_FIGURE:
        return f"fewer than {_SMALLEST_FIGURE:g}"
    return f"about {expected:,.0f}" if expected >= 10 else f"about {expected:.{2 if expected >= 1 else 1}g}"
