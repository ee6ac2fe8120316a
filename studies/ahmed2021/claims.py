"""Check the claims of the paper that are numbers, or about parameters, on its own tables and on a run."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
import pandas as pd

from penstock.bench.results import pivot
from penstock.bench.significance import conover, friedman, mean_ranks, without_last_bits
from studies.ahmed2021 import paper
from studies.ahmed2021.plant import PAPER
from studies.ahmed2021.rows import rename_to_columns
from studies.ahmed2021.sweeps import Sweep, is_number, sweep_table
from studies.ahmed2021.tables import MANY_ATTRIBUTES, OFFLINE, PAPER_TABLES, aloi_times, compare, paper_figures

Holds = Literal["yes", "no", "undecided", "not run", "cannot be checked", "not comparable"]


@dataclass(frozen=True)
class Finding:
    """The result of checking a claim, in words, and whether it holds."""

    text: str
    holds: Holds


def yes_or_no(holds: bool) -> Holds:
    return "yes" if holds else "no"


NOT_RUN = Finding("not run", "not run")
NO_TABLE = Finding("no table of the paper shows it", "cannot be checked")


@dataclass(frozen=True, eq=False)
class Source:
    """The three tables of detections (twenty data sets; NaN where there is no result), p, and minutes on ALOI.

    `rows` are those of the study, None for the paper: what it gives no table for cannot be recomputed from it.
    `time_marks` are of the methods whose times are those of a documented other way to compute the same, in words.
    """

    tables: dict[str, pd.DataFrame]
    p: pd.Series
    minutes: pd.Series
    rows: pd.DataFrame | None
    time_marks: dict[str, str] = field(default_factory=dict)
    _sweeps: dict[str, Sweep] = field(default_factory=dict)  # several claims read the same one: made once

    def table_with(self, methods: Sequence[str]) -> pd.DataFrame:
        """Return the columns of these methods, from the first table that has them all."""
        for table in self.tables.values():
            if set(methods) <= set(table.columns):
                return table[list(methods)]
        raise ValueError(f"No table of the paper has all of {', '.join(methods)}.")

    def sweep(self, name: str) -> Sweep | None:
        """A sweep of the study; None for the paper, which shows none."""
        if self.rows is None:
            return None
        if name not in self._sweeps:
            self._sweeps[name] = sweep_table(self.rows, name)
        return self._sweeps[name]

    def timed(self, text: str, methods: Sequence[str], holds: bool) -> Finding:
        """Check a claim about times: another way to compute has another time, and says nothing about the claim."""
        marked = {name: mark for name, mark in self.time_marks.items() if name in methods}
        if not marked:
            return Finding(text, yes_or_no(holds))
        return Finding(f"{text} ({'; '.join(f'{name}: {mark}' for name, mark in marked.items())})", "not comparable")


def paper_source() -> Source:
    """Return the paper's own tables.

    >>> int(paper_source().table_with(["NS-NMF", "LoMST"]).loc["Glass", "LoMST"])
    3
    """
    tables = {name: paper_figures(name) for name in PAPER_TABLES}
    return Source(tables, paper.characteristics["p"], paper.run_times["minutes"], None)


def run_source(rows: pd.DataFrame) -> Source:
    """Compute the same tables from a study: medians over seeds on the paper's data sets."""
    tables = {}
    for name in PAPER_TABLES:
        figures = paper_figures(name)
        tables[name] = pivot(rename_to_columns(rows, list(figures.columns))).reindex_like(figures)
    times = aloi_times(rows)
    marks = {str(method): mark for method, mark in times["mark"].items() if mark}
    return Source(tables, paper.characteristics["p"], times["our_minutes"], rows, marks)


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


# What a statement deserves: a count of data sets, 2 of the twenty; a mean rank, its standard error (0.25, four methods
# on twenty data sets); a p-value, the same answer at the paper's level; times on another machine, a factor of 2.
_DATA_SETS, _RANKS, _LEVEL, _SPEED = 2, 0.25, 0.01, 2.0


def rule_of(claim: str) -> str:
    """When a number is said to hold in a run. Recomputed from the paper's own tables it has to be the same number."""
    if claim == "mean rank":
        return f"within {_RANKS}, a standard error"
    if "p-value" in claim:
        return f"on the same side of {_LEVEL}"
    if claim.startswith("times faster"):
        return f"within a factor of {_SPEED:g}, both in the way of the paper"
    if claim.startswith("common to"):
        return "another plant: not to be compared"
    return f"within {_DATA_SETS} data sets"


def check_number(source: Source, claim: str, method: str, stated: float, plant: Any = None) -> Finding:
    """Recompute one of `paper.claims` from a source.

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
    """Check a number of data sets. Those without a result could each add one: that alone can rule a number out."""
    table, counted = _counting(source, claim, method)
    complete = table.dropna()
    missing = len(table) - len(complete)
    if complete.empty:
        return NOT_RUN
    found, slack = counted(complete), 0 if source.rows is None else _DATA_SETS
    if missing == 0:
        return Finding(str(found), yes_or_no(abs(found - stated) <= slack))
    possible = found - slack <= stated <= found + missing + slack
    text = f"{found} of {len(complete)} data sets; {missing} without a result"
    return Finding(text, "undecided" if possible else "no")


def _counting(source: Source, claim: str, method: str) -> tuple[pd.DataFrame, Callable[[pd.DataFrame], int]]:
    """Return the table that a count is about, and how its rows are counted."""
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
        near = 0.05 if source.rows is None else _RANKS  # the paper prints one decimal
        text, same = f"{value:.2f}".rstrip("0").rstrip("."), abs(value - stated) <= near + 1e-9
    elif source.rows is None:
        text, same = f"{value:.2e}", f"{value:.2e}" == f"{stated:.2e}"
    else:
        text, same = f"{value:.2e}", (value < _LEVEL) == (stated < _LEVEL)
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
    most = 1.1 if source.rows is None else _SPEED
    return source.timed(f"{ratio:.3g}", ["SNMF", method], stated / most <= ratio <= stated * most)


def _check_plant(source: Source, claim: str, plant: Any) -> Finding:
    if source.rows is None:
        return Finding("its table of the top 100 leaves rows out", "cannot be checked")
    if plant is None:
        return NOT_RUN
    lists = plant.searches[PAPER]
    found = lists.common_online if "offline and online" in claim else lists.common_offline
    return Finding(f"{found} (simulated plant)", "not comparable")


_SMALL = 0.1
_ROUNDING = 1e-12


@dataclass(frozen=True, eq=False)
class _Means:
    """Mean P@N, values × methods, all over the same data sets, and how many cells of the sweep have no result."""

    table: pd.DataFrame
    missing: int


def k_range_is_best(source: Source) -> Finding:
    """Is P@N higher for K from 5 to 15 than for the others?"""
    means = _means_by_value(source, "K")
    if isinstance(means, Finding):
        return means
    by_k = means.table.mean(axis=1)
    inside = by_k[(by_k.index >= 5) & (by_k.index <= 15)]
    outside = by_k.drop(inside.index)
    if inside.empty or outside.empty:
        return NOT_RUN
    words = ", ".join(f"K = {k:g}: {value:.3f}" for k, value in by_k.items())
    text = f"mean P@N {words}; best at K = {by_k.idxmax():g}"
    return _decided(text, bool(inside.mean() - outside.mean() > _ROUNDING), means.missing)


def k_keeps_the_order(source: Source) -> Finding:
    """Are the methods in the same order, whatever K is?"""
    means = _means_by_value(source, "K")
    if isinstance(means, Finding):
        return means
    if min(means.table.shape) < 2:
        return NOT_RUN
    orders = [_order(line) for _, line in means.table.iterrows()]
    words = "; ".join(f"K = {k:g}: {order}" for k, order in zip(means.table.index, orders, strict=True))
    return _decided(words, len(set(orders)) == 1, means.missing)


def spread_is_small(source: Source) -> Finding:
    """Does P@N hardly change with alpha?"""
    means = _means_by_value(source, "alpha", "NS-NMF")
    if isinstance(means, Finding):
        return means
    values = means.table["NS-NMF"]
    if len(values) < 2:
        return NOT_RUN
    spread = _relative_spread(values)
    text = f"mean P@N from {values.min():.3f} to {values.max():.3f}, {spread:.0%} of the mean"
    return _decided(text, spread <= _SMALL, means.missing)


def gnmf_is_sensitive(source: Source, sweep: str) -> Finding:
    """Does P@N of GNMF change with one of its own parameters, more than that of NS-NMF with alpha?"""
    alpha, own = _means_by_value(source, "alpha", "NS-NMF"), _means_by_value(source, sweep, "GNMF")
    for means in (alpha, own):
        if isinstance(means, Finding):
            return means
    assert isinstance(alpha, _Means)
    assert isinstance(own, _Means)
    if len(own.table) < 2:
        return NOT_RUN
    ours, theirs = _relative_spread(alpha.table["NS-NMF"]), _relative_spread(own.table["GNMF"])
    text = f"of the mean: {sweep} {theirs:.0%}; NS-NMF, alpha {ours:.0%}"
    return _decided(text, theirs > max(ours, _SMALL), alpha.missing + own.missing)


def _decided(text: str, holds: bool, missing: int) -> Finding:
    if missing:
        return Finding(f"{text}; {missing} cells without a result", "undecided")
    return Finding(text, yes_or_no(holds))


def _order(values: pd.Series) -> str:
    """Order the methods from the best to the worst; those that tie by name, with = between."""
    by_value = {value: sorted(values.index[values == value]) for value in sorted(set(values), reverse=True)}
    return " > ".join(" = ".join(names) for names in by_value.values())


def _means_by_value(source: Source, name: str, base: str | None = None) -> _Means | Finding:
    """Means over the data sets on which every method (or only `base`) ran with every value that is a number.

    A method or a value without any result is not in them, but its cells are counted as missing.
    """
    sweep = source.sweep(name)
    if sweep is None:
        return NO_TABLE
    cells, gaps = sweep.per_set, sweep.left_out
    if base is not None:
        cells, gaps = cells[cells["base"] == base], gaps[gaps["base"] == base]
    ran = cells[cells["precision_at_n"].notna() & cells["value"].map(is_number).astype(bool)]
    if ran.empty:
        return NOT_RUN
    ran = ran.assign(value=ran["value"].astype("float64"))
    shared = ran.groupby("value")["base"].nunique()
    ran = ran[ran["value"].isin(shared.index[shared == ran["base"].nunique()])]
    wide = ran.pivot(index="dataset", columns=["base", "value"], values="precision_at_n").dropna()
    if wide.empty:
        return NOT_RUN
    means = wide.mean()
    rounded = pd.Series(without_last_bits(means), index=means.index)
    return _Means(rounded.unstack("base"), len(gaps))


def _relative_spread(values: pd.Series) -> float:
    mean = float(values.mean())
    return float(values.max() - values.min()) / mean if mean > 0 else 0.0
