"""Check the claims that the paper makes in words, and list all claims with what the paper and our run give."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import pandas as pd

from penstock.bench import Results
from penstock.bench.significance import conover, mean_ranks
from studies.ahmed2021 import paper
from studies.ahmed2021.claims import (
    NO_TABLE,
    NOT_RUN,
    Finding,
    Holds,
    Source,
    check_number,
    gnmf_is_sensitive,
    k_keeps_the_order,
    k_range_is_best,
    paper_source,
    rule_of,
    run_source,
    spread_is_small,
    yes_or_no,
)
from studies.ahmed2021.graph_effect import graph_effect
from studies.ahmed2021.plant import PAPER
from studies.ahmed2021.rows import rows_of_column
from studies.ahmed2021.tables import MANY_ATTRIBUTES, OFFLINE

_MOST = 0.5


@dataclass(frozen=True)
class ProseClaim:
    """A claim, of which method, where it is made, how it is checked, in what words it is made, and when it holds."""

    claim: str
    method: str
    where: str
    check: Callable[[Source], Finding]
    stated: str
    rule: str


def _first_rank(source: Source) -> Finding:
    return _on_ranks(source, lambda ranks: ranks["NS-NMF"] < ranks.drop("NS-NMF").min())


def _gnmf_second(source: Source) -> Finding:
    return _on_ranks(source, lambda ranks: ranks["GNMF"] < ranks[["NMF", "SNMF"]].min())


def _significant(source: Source) -> Finding:
    complete = source.table_with(OFFLINE).dropna()
    if len(complete) < 2:
        return NOT_RUN
    try:
        p_values = conover(complete)["NS-NMF"].drop("NS-NMF")
    except ValueError as error:  # all tie, or all data sets rank alike
        return Finding(f"no test: {error}", "undecided")
    words = ", ".join(f"{name} {p:.1e}" for name, p in p_values.items())
    decided = _on_ranks(source, lambda ranks: ranks["NS-NMF"] == ranks.min() and bool((p_values < 0.01).all()))
    return Finding(f"p against {words}, on {len(complete)} data sets", decided.holds)


def _on_ranks(source: Source, holds: Callable[[pd.Series], bool]) -> Finding:
    table = source.table_with(OFFLINE)
    complete = table.dropna()
    if len(complete) < 2:
        return NOT_RUN
    ranks = mean_ranks(complete)
    text = "mean ranks " + ", ".join(f"{name} {rank:.2f}" for name, rank in ranks.items())
    if len(complete) < len(table):
        return Finding(f"{text}, on {len(complete)} data sets of {len(table)}", "undecided")
    return Finding(text, yes_or_no(bool(holds(ranks))))


def _online_is_best(source: Source) -> Finding:
    table = source.table_with(["Online NS-NMF", *OFFLINE[1:]])
    return _most_often(table, "Online NS-NMF", lambda row: row == row.max())


def _best_with_deep(source: Source) -> Finding:
    table = source.table_with(["NS-NMF", "AER", "DAGMM"])
    return _most_often(table, "NS-NMF", lambda row: (row == row.max()) & ((row == row.max()).sum() == 1))


def _most_often(table: pd.DataFrame, ours: str, best: Callable[[pd.Series], pd.Series]) -> Finding:
    complete = table.dropna()
    missing = len(table) - len(complete)
    if complete.empty:
        return NOT_RUN
    counts = complete.apply(best, axis=1).sum()
    lead = int(counts[ours] - counts.drop(ours).max())
    text = "best on " + ", ".join(f"{name} {count}" for name, count in counts.items())
    return _with_missing(text, lead, missing)


def _beats_lomst(source: Source, above: int = 0) -> Finding:
    """Compare on the data sets with more attributes than so many."""
    table = source.table_with(["NS-NMF", "LoMST"])
    table = table[source.p.reindex(table.index) > above]
    complete = table.dropna()
    if complete.empty:
        return NOT_RUN
    won = int((complete["NS-NMF"] > complete["LoMST"]).sum())
    lost = int((complete["NS-NMF"] < complete["LoMST"]).sum())
    text = f"{won} won, {lost} lost, {len(complete) - won - lost} tied"
    return _with_missing(text, won - lost, len(table) - len(complete))


def _with_missing(text: str, lead: int, missing: int) -> Finding:
    """Is there a lead? A data set without a result may change it by one."""
    if missing == 0:
        return Finding(text, yes_or_no(lead > 0))
    sure: Holds = "yes" if lead > missing else "no" if lead + missing <= 0 else "undecided"
    return Finding(f"{text}; {missing} data sets without a result", sure)


def _snmf_slowest(source: Source) -> Finding:
    minutes = source.minutes.astype("float64")
    if minutes.isna().any():
        return NOT_RUN
    text = "minutes: " + ", ".join(f"{name} {value:.3g}" for name, value in minutes.items())
    return source.timed(text, list(minutes.index), bool(minutes["SNMF"] > minutes.drop("SNMF").max()))


def _tree_takes_longest(source: Source) -> Finding:
    if source.rows is None:
        return NO_TABLE
    cells = rows_of_column(source.rows, "NS-NMF")
    cells = cells[cells["dataset"] == "ALOI"]
    shares = [
        float(detail["tree_seconds"]) / seconds
        for detail, seconds, status in zip(cells["detail"], cells["fit_seconds"], cells["status"], strict=True)
        if status == "ok" and isinstance(detail, dict) and "tree_seconds" in detail and seconds > 0
    ]
    if not shares:
        return NOT_RUN
    text = f"{pd.Series(shares).median():.0%} of the time"
    missing = len(cells) - len(shares)
    # The median is sure to be where it is only if it stays there whatever the missing runs would have given.
    lowest, highest = (float(pd.Series([*shares, *[share] * missing]).median()) for share in (0.0, 1.0))
    if (lowest > _MOST) != (highest > _MOST):
        return Finding(f"{text}; {missing} runs without a result", "undecided")
    return Finding(text, yes_or_no(lowest > _MOST))


def _graph_decides(source: Source) -> Finding:
    if source.rows is None:
        return NO_TABLE
    found = graph_effect(source.rows)
    if found.verdict == "not run":
        return NOT_RUN
    if len(found.left_out):
        return Finding(f"{found.sentence} {len(found.left_out)} cells without a result.", "undecided")
    return Finding(found.sentence, yes_or_no(found.verdict == "graph"))


def _on_days(days: pd.DataFrame, when: tuple[str, ...]) -> Finding:
    chosen = days[[str(day) in when for day in days.index]].sum()
    words = ", ".join(f"{name} {count}" for name, count in chosen.items())
    return Finding(f"time stamps on these days: {words} (simulated plant)", "not comparable")


_PLANT_DAYS = (
    ("9 January is missed", "All of them misses the January 9th anomalies", ("2016-01-09",)),
    (
        "7 and 8 July and 17 September are flagged by all but NS-NMF",
        "identified as anomalous by the NMF variants except NS-NMF",
        ("2015-07-07", "2015-07-08", "2015-09-17"),
    ),
    (
        "13 and 14 September, 2 and 12 January are found by NS-NMF and missed by GNMF and SNMF",
        "The offline NS-NMF successfully identified all of those time stamps",
        ("2015-09-13", "2015-09-14", "2016-01-02", "2016-01-12"),
    ),
)

PROSE_CLAIMS = (
    ProseClaim("best mean rank of the four offline methods", "NS-NMF", "section5.1", _first_rank,
        "far ahead of other methods", "the lowest mean rank, alone"),
    ProseClaim("significantly better than each of the other three", "NS-NMF", "fig:posthoc", _significant,
        "significantly better […] at the 0.01 level",
        "ranks first, and Conover's p with Bonferroni is below 0.01 three times"),
    ProseClaim("better than NMF and SNMF", "GNMF", "section5.1", _gnmf_second,
        "GNMF's performance is better than that of NMF and SNMF", "a lower mean rank than both"),
    ProseClaim("better than the other variants, offline NS-NMF excluded", "Online NS-NMF", "section5.1",
        _online_is_best, "comparatively better results than other NMF variants",
        "best or tied on more data sets than each of them"),
    ProseClaim("outperforms LoMST", "NS-NMF", "section5.1b", _beats_lomst, "NS-NMF overall outperforms LoMST",
        "more data sets won than lost"),
    ProseClaim("outperforms LoMST above 20 attributes", "NS-NMF", "section5.1b",
        partial(_beats_lomst, above=MANY_ATTRIBUTES),
        "consistently better […] when the number of attributes is relatively large",
        "more data sets won than lost, of those with p above 20 in the paper's Table 1"),
    ProseClaim("outperforms AER and DAGMM", "NS-NMF", "DNN", _best_with_deep,
        "NS-NMF outperforms the two DNN-based methods", "uniquely best on more data sets than each of them"),
    ProseClaim("the slowest on ALOI", "SNMF", "section5.1", _snmf_slowest,
        "SNMF is also the slowest in terms of computational time",
        "the longest time of the five, all in the way of the paper"),
    ProseClaim("the tree takes most of the time on ALOI", "NS-NMF", "section5.1", _tree_takes_longest,
        "the majority of its time spent on MST construction", "more than half, the median over seeds"),
    ProseClaim("the graph makes the difference to GNMF, not the form", "NS-NMF", "sec:compare", _graph_decides,
        "which S to use creates the difference between GNMF and NS-NMF",
        "of graph and form only the graph has a 95 % interval for P@N without 0"),
    ProseClaim("K from 5 to 15 is best", "all", "section5.1", k_range_is_best,
        "perform better when K is in the range of [5, 15]",
        "a higher mean P@N over these K than over the others, on the data sets that all methods finished"),
    ProseClaim("K does not change the order of the methods", "all", "section5.1", k_keeps_the_order,
        "the relative performance among the competing NMF methods remain the same",
        "the same order by mean P@N at every K, on the data sets that all methods finished"),
    ProseClaim("hardly depends on alpha", "NS-NMF", "section5.1", spread_is_small,
        "not sensitive to the choice of alpha", "mean P@N over the values differs by at most 10 % of its mean"),
    ProseClaim("sensitive to its penalty, NS-NMF less so to alpha", "GNMF", "section5.1",
        partial(gnmf_is_sensitive, sweep="GNMF penalty"),
        "We do observe the sensitive nature of GNMF to its parameters",
        "over the penalty P@N differs by more than over alpha in NS-NMF, and by over 10 % of its mean"),
    ProseClaim("sensitive to its neighbours, NS-NMF less so to alpha", "GNMF", "section5.1",
        partial(gnmf_is_sensitive, sweep="GNMF neighbours"),
        "We do observe the sensitive nature of GNMF to its parameters",
        "over the neighbours P@N differs by more than over alpha in NS-NMF, and by over 10 % of its mean"),
)  # fmt: skip

COLUMNS = [
    *("claim", "method", "where", "stated", "from_paper_table", "from_our_run"),
    *("holds_in_paper", "holds_in_run", "rule"),
]


def check_claims(results: Results, plant: Any = None) -> pd.DataFrame:
    """List each claim: what the paper states, what its own tables give, what our run gives, and whether each holds.

    `rule` says when a claim holds. Both holds_in_paper and holds_in_run are "yes", "no", "undecided" (cells are missing
    that could change it), "not run", "cannot be checked" (the paper shows no table of it) or "not comparable" (the
    paper's power plant is private, ours is simulated; or a time is that of another way to compute). `plant` is what
    `plant.plant_tables` returns.

    >>> from studies.ahmed2021.rows import COLUMNS
    >>> claims = check_claims(Results(pd.DataFrame(columns=list(COLUMNS))))
    >>> set(claims["holds_in_run"]), claims["holds_in_paper"].value_counts()["no"]
    ({'not run'}, np.int64(3))
    """
    theirs, ours = paper_source(), run_source(results.rows)
    lines: list[tuple[Any, ...]] = []
    for claim, method, value, where in paper.claims.itertuples(index=False):
        stated = f"{value:.2e}" if "p-value" in claim else f"{value:g}"
        found = check_number(theirs, claim, method, value), check_number(ours, claim, method, value, plant)
        lines.append((claim, method, where, stated, *found, rule_of(claim)))
    for each in PROSE_CLAIMS:
        said = each.claim, each.method, each.where, each.stated
        lines.append((*said, each.check(theirs), each.check(ours), each.rule))
    days = None if plant is None else plant.searches[PAPER].days
    for claim, words, when in _PLANT_DAYS:
        outcome = NOT_RUN if days is None else _on_days(days, when)
        lines.append((claim, "all", "section5.2", words, NO_TABLE, outcome, "another plant: not to be compared"))
    rows = [
        (*said, in_paper.text, in_run.text, in_paper.holds, in_run.holds, rule)
        for *said, in_paper, in_run, rule in lines
    ]
    return pd.DataFrame(rows, columns=COLUMNS)
