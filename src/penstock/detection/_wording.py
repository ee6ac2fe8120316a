"""What `penstock.Detector` says of a row, in words for those who run the machine."""

from __future__ import annotations

import math
from collections.abc import Mapping

LIKE_THE_LAST = "like the row before"  # the kind of a note: no rates
ONLY_RANKS = "Every table has rows with the highest scores: nothing here says how many of these are real faults."
HOW_TO_RATES = (
    "For a rate of false alarms, learn from a period that is known to be good (--train-until, --train-rule, or "
    "penstock fit and score)."
)
NO_RATES = "This method gives scores without a rate."
FOLLOWING = "Rows are much like the ones before, and this method judges them one by one: it cannot say how sure it is."
TOO_FEW_BLOCKS = "The record is too short to say how often chance would give such an episode."
TOO_RARE = "The rows learnt from cannot show how rare scores above the threshold are."
TOO_FEW_ROWS = "There are too few rows to say how many would stand out by chance."
_RAREST, _RAREST_BEYOND = 1e-9, 1e-6  # below it, a rate is a guess; beyond what was learnt, sooner
_EXTRAPOLATED = " (extrapolated)"
_OFTEN = 0.1
_VIEWS = {
    "coarse": "far from most rows",
    "fine": "far from all typical rows",
    "local": "far from its nearest neighbours",
    "marginal": "with readings that are rare by themselves",
}


def how_rare(rate: float, *, extrapolated: bool = False) -> str:
    """Return a share of normal rows.

    extrapolated : it is smaller than the rows that it was learnt from can show.

    >>> how_rare(0.0002), how_rare(0.31), how_rare(1e-30)
    ('1 in 5,000', '31 in 100', 'fewer than 1 in a billion')
    >>> how_rare(0.0002, extrapolated=True), how_rare(1e-7, extrapolated=True)
    ('1 in 5,000 (extrapolated)', 'fewer than 1 in a million (extrapolated)')
    """
    return _figure(rate, extrapolated) + (_EXTRAPOLATED if extrapolated else "")


def _figure(rate: float, extrapolated: bool) -> str:
    if rate < (_RAREST_BEYOND if extrapolated else _RAREST):
        return f"fewer than 1 in a {'million' if extrapolated else 'billion'}"
    if rate > _OFTEN:
        return f"{math.ceil(100 * rate - 1e-9)} in 100"
    count = math.floor(1 / rate + 1e-6)
    step = 10 ** max(0, len(str(count)) - 2)
    return f"1 in {count // step * step:,}"


def rows_that(
    rate: float,
    singular: str,
    plural: str,
    *,
    extrapolated: bool = False,
    over_all_modes: bool = False,
) -> str:
    """Return what a share of normal rows does; the rest as in `how_rare`.

    over_all_modes : it is a share of the rows of several operating modes together.

    >>> rows_that(0.0002, "scores this high", "score this high"), rows_that(0.31, "reaches it", "reach it")
    ('1 in 5,000 normal rows scores this high', '31 in 100 normal rows reach it')
    >>> rows_that(1e-5, "exceeds", "exceed", extrapolated=True, over_all_modes=True)
    '1 in 100,000 normal rows over all modes (extrapolated) exceeds'
    """
    words = _figure(rate, extrapolated)
    which = f"normal rows{' over all modes' if over_all_modes else ''}{_EXTRAPOLATED if extrapolated else ''}"
    return f"{words} {which} {singular if words.startswith('1 ') else plural}"


def rank_in_words(higher: int, equal: int, rows: int, *, over_all_modes: bool = False) -> str:
    """Return where a score stands among those of some rows.

    higher, equal : how many of the rows have a higher score, and how many this one.
    over_all_modes : the rows are of several operating modes.

    >>> rank_in_words(2, 1, 4177), rank_in_words(0, 4, 4177), rank_in_words(0, 1, 900, over_all_modes=True)
    ('rank 3 of 4,177', 'rank 1–4 of 4,177, tied', 'rank 1 of 900 over all modes')
    """
    place = f"{higher + 1:,}" if equal == 1 else f"{higher + 1:,}–{higher + equal:,}"
    modes, tied = " over all modes" if over_all_modes else "", ", tied" if equal > 1 else ""
    return f"rank {place} of {rows:,}{modes}{tied}"


def seen_as(parts: Mapping[str, float]) -> str:
    """Return what the views that raise the score of a row say of it.

    >>> seen_as({"coarse": 6.03, "fine": 5.4, "local": 0.0, "marginal": 0.0})
    'far from everything'
    >>> seen_as({"coarse": 0.0, "fine": 0.0, "local": 3.04, "marginal": -0.2})
    'far from its nearest neighbours'
    """
    raised = [view for view, part in parts.items() if part > 0]
    if raised == ["coarse", "fine"]:
        return "far from everything"
    return " and ".join(_VIEWS[view] for view in raised).replace("and far from", "and from") or "hardly unusual"
