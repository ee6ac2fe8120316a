"""The paper's central claim, its statements one by one, and the configuration that comes nearest to its figures."""

from __future__ import annotations

import math

import pandas as pd

from penstock.bench.graph_effect import GraphEffect
from penstock.bench.nearest import Nearest
from penstock.report.study.blocks import Block, Details, Heading, Paragraph, Picture, make_table, plain
from penstock.report.study.draw_grid import draw_grid
from penstock.report.study.material import Material
from penstock.report.study.words import count, p_value, percent, plural, rank, yes_or_no


def central_claim(material: Material) -> list[Block] | str:
    """What is gained by the form of the objective, what by the graph."""
    effect = material.graph_effect
    if effect.verdict == "not run":
        return "the grid of forms and graphs has no data set that all its cells finished"
    blocks: list[Block] = [Paragraph(plain(effect.sentence)), _grid(effect)]
    table = effect.table.rename(columns={"datasets": "data sets", "precision_at_n": "P@N", "average_precision": "AP"})
    formats = {"P@N": percent, "AP": percent, "mean_rank": rank, "data sets": count}
    caption = "Each form with each graph: means over the data sets that all combinations finished."
    blocks.append(make_table(table, caption, formats, titles={"mean_rank": "mean rank", "AP": "average precision"}))
    shares = dict.fromkeys(("mean_difference", "low", "high"), _points)
    titles = {
        "datasets": "data sets",
        "mean_difference": "mean difference",
        "low": "from",
        "high": "to",
        "p_value": "p",
    }
    caption = "What changing the one or the other does, in points (hundredths of a share), with 95 % intervals."
    effects = effect.effects.assign(measure=effect.effects["measure"].map(_measure))
    blocks.append(make_table(effects, caption, {**shares, "datasets": count, "p_value": p_value}, titles=titles))
    if len(effect.left_out):
        gaps = make_table(effect.left_out, "", {}, titles={"dataset": "data set", "method": "form | graph"})
        blocks.append(Details("Combinations without a result, and why", (gaps,)))
    return blocks


def _measure(name: str) -> str:
    return {"precision_at_n": "P@N", "average_precision": "average precision", "roc_auc": "ROC AUC"}.get(name, name)


def _points(share: float) -> str:
    """
    >>> _points(0.0312), _points(-0.1)
    ('+3.1', '−10.0')
    """
    return f"{100 * share:+.1f}".replace("-", "−") if math.isfinite(share) else "–"


def _grid(effect: GraphEffect) -> Picture:
    table = effect.table
    lines = table.to_dict("records")
    values = {(str(line["form"]), str(line["graph"])): float(line["precision_at_n"]) for line in lines}
    forms, graphs = [str(x) for x in pd.unique(table["form"])], [str(x) for x in pd.unique(table["graph"])]
    title = "Mean P@N of each form of the objective with each graph"
    caption = "Mean P@N, the darker the higher. Shades go from the lowest to the highest cell, however close these are."
    return Picture("graph-effect", draw_grid(forms, graphs, values, title, "form"), title, caption)


def claims(material: Material) -> list[Block] | str:
    """Every number of the paper's text that others follow from."""
    table = material.claims
    if not table["holds_in_run"].isin(("yes", "no", "undecided")).any():
        return "no cell that a statement of the paper could be checked with has a result"
    shown = table.rename(
        columns={
            "from_paper_table": "from the paper's tables",
            "from_our_run": "in our run",
            "holds_in_paper": "holds in the paper",
            "holds_in_run": "holds here",
            "rule": "holds if",
        }
    )
    caption = "Statements of the paper, checked against its own tables and against our run."
    order = ["claim", "method", "stated", "in our run", "holds here", "from the paper's tables", "holds in the paper"]
    return [make_table(shown[[*order, "where", "holds if"]], caption, {})]


def nearest_configurations(material: Material) -> list[Block] | str:
    """What can be matched if one may choose."""
    if not material.nearest:
        return "no other configurations of the paper's methods have results"
    blocks: list[Block] = [
        Paragraph(
            "The paper leaves settings open. These tables look for the reading of it that comes nearest to its "
            "figures. The best of many configurations is chosen by the figures it is judged on, and so looks better "
            "than it is: the choice for each data set by all the **other** data sets is the number to trust."
        )
    ]
    several = [found for found in material.nearest if found.compared > 1]
    if not several:
        return "of each method of the paper there is one configuration with results: nothing to choose from"
    for found in several:
        blocks += _nearest(found)
    return blocks


def _nearest(found: Nearest) -> list[Block]:
    best = found.configurations.iloc[0]
    words = (
        f"The nearest of {plural(found.compared, 'configuration')} compared is **{plain(found.best)}**, which matches "
        f"on {int(best['matched'])} of {int(best['run'])} data sets; chosen without the data set in question, "
        f"{found.held_out_matched} of {found.held_out_sets} match."
    )
    ranked = found.configurations.head(20).reset_index(names="configuration")
    formats = dict.fromkeys(("sets", "run", "matched", "exact", "mean_abs_difference"), count)
    titles = {"sets": "data sets", "run": "with a result", "mean_abs_difference": "mean distance"}
    more = f" The first 20 of {found.compared}." if found.compared > 20 else ""
    per_set = found.per_set.reset_index(names="data set")
    numbers = dict.fromkeys(("paper", "median", "lowest", "highest", "matched_by", "run_by", "closest_median"), count)
    per_set = per_set.assign(matches=[yes_or_no(None if pd.isna(x) else bool(x)) for x in per_set["matches"]])
    held = found.held_out.reset_index(names="data set")
    held = held.assign(matches=[yes_or_no(None if pd.isna(x) else bool(x)) for x in held["matches"]])
    named = {
        "matched_by": "matched by",
        "run_by": "of",
        "closest": "closest configuration",
        "closest_median": "its median",
    }
    return [
        Heading(3, f"Nearest to the paper's {plain(found.column)}"),
        Paragraph(words),
        make_table(ranked, f"Configurations, the nearest first.{more}", formats, titles=titles),
        make_table(
            per_set, "The nearest configuration on each data set, and how many of all match.", numbers, titles=named
        ),
        Details(
            "The choice without the data set in question",
            (make_table(held, "", {"paper": count, "median": count}, titles={"chosen": "chosen by the others"}),),
        ),
    ]
