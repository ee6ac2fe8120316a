"""Mean ranks, tests of whether they differ, critical-difference diagrams and box plots."""

from __future__ import annotations

import pandas as pd

from penstock.bench import paper
from penstock.bench.comparison import Comparison
from penstock.bench.tables import pivot
from penstock.report.study.blocks import Block, DataTable, Details, Paragraph, Picture, make_table, plain
from penstock.report.study.draw_boxes import draw_boxes
from penstock.report.study.draw_ranks import draw_ranks
from penstock.report.study.material import Material
from penstock.report.study.words import enumerate_names, p_value, percent, plural, rank

_PAPER_CONOVER = (
    "The paper prints Conover p-values of 7.11e−21 (NMF, SNMF) and 3.40e−15 (GNMF). From its own table of detections "
    "they are 1.24e−9, 2.84e−6 and 1.24e−9; exchanging the numbers of data sets and of methods in the pooled variance, "
    "a slip of an older R package, gives 7.11e−21 and 3.38e−15, not quite the 3.40e−15 printed. The "
    "paper's conclusion does not depend on it, the size does."
)
_PAPER_FRIEDMAN = (
    "The paper prints Friedman's statistic without a correction for ties, but its p-value (1.23e−7) is the corrected "
    "one; so is ours."
)


def offline_ranks(material: Material) -> list[Block] | str:
    """The four methods that the paper tests."""
    found = material.offline
    if found.mean_ranks.empty:
        return "the four offline methods have no data sets in common to be ranked on"
    blocks = _tests(found, f"the offline methods ({enumerate_names(paper.OFFLINE)})", "offline")
    return [*blocks, Paragraph(_PAPER_FRIEDMAN), Paragraph(_PAPER_CONOVER)]


def all_ranks(material: Material) -> list[Block] | str:
    """All methods that were run, peers and controls among them."""
    found = material.everyone
    if len(found.mean_ranks) < 2:
        return "ranks need two methods, and two data sets that all of them finished"
    seen = material.oracles
    blocks = _tests(found, "all methods", "all")
    if seen:
        blocks.insert(0, Paragraph(f"Not ranked, because the labels were used in choosing: {enumerate_names(seen)}."))
    return blocks


def _tests(found: Comparison, who: str, name: str) -> list[Block]:
    sets = plural(len(found.table), "data set")
    words = f"Ranks of {who} by P@N, the median over seeds, on the {sets} that all of them finished; 1 is best."
    blocks: list[Block] = [Paragraph(words)]
    if found.methods_missing:
        blocks.append(
            Paragraph(f"Without any result, and so not ranked: {enumerate_names(found.methods_missing, 20)}.")
        )
    test = found.friedman
    if test is not None:
        differ = "the methods differ" if test.p_value < found.alpha else "it is not shown that the methods differ"
        blocks.append(
            Paragraph(
                f"**Friedman's test:** χ² = {test.statistic:.2f} with {test.degrees_of_freedom} degrees of freedom, "
                f"p = {p_value(test.p_value)}: at {percent(found.alpha)}, {differ}."
            )
        )
    blocks += [Paragraph(plain(note)) for note in found.notes]
    blocks.append(_rank_picture(found, name))
    if found.groups:
        joined = "; ".join(enumerate_names(group, 20) for group in found.groups if len(group) > 1)
        blocks.append(
            Paragraph(f"**Not told apart by {found.groups_by}'s test** at {percent(found.alpha)}: {joined or 'none'}.")
        )
    blocks += _pairwise(found)
    if len(found.left_out):
        gaps = make_table(found.left_out, "", {}, titles={"dataset": "data set"})
        summary = f"{plural(found.left_out['dataset'].nunique(), 'data set')} left out, and why"
        blocks.append(Details(summary, (gaps,)))
    return blocks


def _rank_picture(found: Comparison, name: str) -> Picture:
    ranks = {str(method): float(value) for method, value in found.mean_ranks.items()}
    drawing = draw_ranks(ranks, found.nemenyi_groups, found.critical_difference, "Mean ranks and critical difference")
    told = ", ".join(f"{method} {rank(value)}" for method, value in ranks.items())
    caption = (
        "Critical-difference diagram: methods that a bar joins do not differ by Nemenyi's test at 5 %; ranks that are "
        "further apart than CD do."
    )
    return Picture(f"ranks-{name}", drawing, f"Mean ranks: {told}", caption)


def _pairwise(found: Comparison) -> list[Block]:
    tests = (
        (found.conover, "Conover's test after Friedman's, p-values with Bonferroni's correction."),
        (found.wilcoxon, "Wilcoxon's signed-rank test of P@N, exact two-sided p-values with Holm's correction."),
    )
    tables: list[Block] = [_square(table, caption) for table, caption in tests if table is not None]
    many = len(found.mean_ranks) > 6
    return [Details("Pairwise tests", tuple(tables))] if many and tables else tables


def _square(table: pd.DataFrame, caption: str) -> DataTable:
    """The lower half suffices: p-values of pairs."""
    names = [str(name) for name in table.index]
    values = table.to_numpy(dtype=float)
    cells = tuple(
        (name, *(p_value(float(values[row, column])) if column < row else "" for column in range(len(names) - 1)))
        for row, name in enumerate(names)
        if row
    )
    return DataTable(("", *names[:-1]), cells, (False, *[True] * (len(names) - 1)), caption)


def boxes(material: Material) -> list[Block] | str:
    """How P@N and average precision spread over the data sets."""
    shares = pivot(material.main, "precision_at_n")
    if shares.empty or shares.isna().all().all():
        return "no method has a result"
    blocks: list[Block] = []
    measures = (
        ("precision_at_n", "P@N", "share of the anomalies that is among the first N (P@N = detections ÷ anomalies)"),
        ("average_precision", "Average precision", "average precision"),
    )
    stars = " *: chosen with the labels." if material.oracles else ""
    for measure, name, axis in measures:
        table = pivot(material.main, measure)
        groups = {_named(str(method), material): table[method].tolist() for method in _by_median(table)}
        title = f"{name} of each method over the data sets"
        drawing = draw_boxes(groups, title, axis, percent, low=0, high=1)
        caption = (
            f"{name} over the data sets, a point for each (the median over seeds). Box: middle half; stroke: median. "
            f"Methods that failed on a data set have fewer points.{stars}"
        )
        blocks.append(Picture(f"boxes-{measure.replace('_', '-')}", drawing, title, caption))
    return blocks


def _by_median(table: pd.DataFrame) -> list[str]:
    return list(table.median().sort_values(ascending=False, kind="stable").index)


def _named(method: str, material: Material) -> str:
    return f"{method} *" if method in material.oracles else method
