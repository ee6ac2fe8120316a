"""The paper's claims that are numbers, recomputed: counts of data sets, ranks, p-values, ratios of times."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd

from penstock.bench.claim_sources import NOT_RUN, Finding, Source, yes_or_no
from penstock.bench.significance import compare, conover, friedman, mean_ranks
from penstock.bench.tables import MANY_ATTRIBUTES, OFFLINE

_KINDS = ("Better", "Equal", "Close", "Worse")
_PAIR = re.compile(r"data sets (better than|worse than|tied with) (.+?)(?:, p (above|below) 20)?")
_RELATIONS: dict[str, Callable[[Any, Any], Any]] = {
    "better than": lambda ours, other: ours > other,
    "worse than": lambda ours, other: ours < other,
    "tied with": lambda ours, other: ours == other,
}
_RANK_P = (
    "mean rank",
    "Friedman p-value of the four offline methods",
    "Conover p-value with Bonferroni, NS-NMF against",
)
_DEEP = ["NS-NMF", "AER", "DAGMM"]


def rule_of(claim: str) -> str:
    """When a number is said to hold."""
    if claim == "mean rank":
        return "the same to one decimal"
    if "p-value" in claim:
        return "the same to three digits"
    if claim.startswith("times faster"):
        return "within 10 %, both in the way of the paper"
    if claim.startswith("common to"):
        return "another plant: not to be compared"
    return "the same number"


def check_number(source: Source, claim: str, method: str, stated: float, plant: Any = None) -> Finding:
    """One of `paper.claims` recomputed from a source.

    >>> from penstock.bench.claim_sources import paper_source
    >>> check_number(paper_source(), "data sets better than LoMST", "NS-NMF", 14)
    Finding(text='14', holds='yes')
    """
    if claim in _RANK_P:
        return _check_ranks(source, claim, method, stated)
    if claim.startswith("times faster"):
        return _check_speed(source, method, stated)
    if claim.startswith("common to"):
        return _check_plant(source, claim, plant)
    return _check_count(source, claim, method, stated)


def _check_count(source: Source, claim: str, method: str, stated: float) -> Finding:
    """A number of data sets. Those without a result could each add one: that alone can rule a number out."""
    table, counted = _counting(source, claim, method)
    complete = table.dropna()
    missing = len(table) - len(complete)
    if complete.empty:
        return NOT_RUN
    found = counted(complete)
    if missing == 0:
        return Finding(str(found), yes_or_no(found == stated))
    possible = found <= stated <= found + missing
    text = f"{found} of {len(complete)} data sets; {missing} without a result"
    return Finding(text, "undecided" if possible else "no")


def _counting(source: Source, claim: str, method: str) -> tuple[pd.DataFrame, Callable[[pd.DataFrame], int]]:
    """The table that a count is about, and how its rows are counted."""
    if claim in _KINDS:
        return source.table_with(OFFLINE), lambda table: _of_kind(table, method, claim)
    if claim == "data sets best or tied, without offline NS-NMF":
        others = ["Online NS-NMF", *OFFLINE[1:]]
        return source.table_with(others), lambda table: int((table[method] == table.max(axis=1)).sum())
    if claim == "data sets uniquely best of NS-NMF, AER, DAGMM":
        return source.table_with(_DEEP), lambda table: _of_kind(table, method, "Better")
    if claim == "data sets where NS-NMF and AER tie for the best":
        return source.table_with(_DEEP), _ties_for_the_best
    match = _PAIR.fullmatch(claim)
    if match is None:
        raise ValueError(f"There is no rule to check the claim {claim!r}; write one in {__name__}.")
    relation, other, side = match.groups()
    table = source.table_with([method, other])
    if side:
        above = source.p.reindex(table.index) > MANY_ATTRIBUTES
        table = table[above if side == "above" else ~above]
    return table, lambda chosen: int(_RELATIONS[relation](chosen[method], chosen[other]).sum())


def _ties_for_the_best(table: pd.DataFrame) -> int:
    at_best = table[["NS-NMF", "AER"]].eq(table.max(axis=1), axis=0)
    return int(at_best.all(axis=1).sum())


def _of_kind(table: pd.DataFrame, method: str, kind: str) -> int:
    """On how many rows the method is of that kind. `compare` wants two rows at least: it is given all of them twice."""
    twice = pd.concat([table, table], ignore_index=True)
    return int(compare(twice, method)[method][kind]) // 2


def _check_ranks(source: Source, claim: str, method: str, stated: float) -> Finding:
    table = source.table_with(OFFLINE)
    complete = table.dropna()
    missing = len(table) - len(complete)
    if len(complete) < 2:
        return NOT_RUN
    try:
        value = _rank_value(complete, claim, method)
    except ValueError as error:  # all tie, or all data sets rank alike
        return Finding(f"no test: {error}", "undecided")
    if claim == "mean rank":
        text, same = f"{value:.2f}".rstrip("0").rstrip("."), abs(value - stated) <= 0.05 + 1e-9
    else:
        text, same = f"{value:.2e}", f"{value:.2e}" == f"{stated:.2e}"
    if missing:
        return Finding(f"{text} on {len(complete)} data sets; {missing} without a result", "undecided")
    return Finding(text, yes_or_no(same))


def _rank_value(complete: pd.DataFrame, claim: str, method: str) -> float:
    if claim == "mean rank":
        return float(mean_ranks(complete)[method])
    if claim.startswith("Friedman"):
        return friedman(complete).p_value
    return float(conover(complete)["NS-NMF"][method])


def _check_speed(source: Source, method: str, stated: float) -> Finding:
    ratio = float(source.minutes["SNMF"]) / float(source.minutes[method])
    if np.isnan(ratio):
        return NOT_RUN
    return source.timed(f"{ratio:.3g}", ["SNMF", method], abs(ratio - stated) <= 0.1 * stated)


def _check_plant(source: Source, claim: str, plant: Any) -> Finding:
    if source.rows is None:
        return Finding("its table of the top 100 leaves rows out", "cannot be checked")
    if plant is None:
        return NOT_RUN
    lists = plant.without_modes  # as the paper did it
    found = lists.common_online if "offline and online" in claim else lists.common_offline
    return Finding(f"{found} (simulated plant)", "not comparable")
