"""Write the sections on the paper's claims, on seeds and on parameters."""

from __future__ import annotations

import math
from typing import Any

import pandas as pd

from studies.ahmed2021.graph_effect import GraphEffect
from studies.ahmed2021.nearest import Nearest
from studies.ahmed2021.report.figures import Curve, draw_boxes, draw_curves, draw_grid
from studies.ahmed2021.report.material import Material, in_paper_order
from studies.ahmed2021.report.pages import Block, Details, Heading, Paragraph, Picture, make_table, plain
from studies.ahmed2021.report.words import (
    count,
    enumerate_names,
    figure,
    file_name,
    p_value,
    percent,
    plural,
    rank,
    seconds,
    yes_or_no,
)
from studies.ahmed2021.stability import Stability, stability
from studies.ahmed2021.sweeps import Sweep, sweep_names, sweep_table


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


def seeds(material: Material) -> list[Block] | str:
    """Ranks seed by seed, and the spread on each data set."""
    found = stability(material.fair)
    if len(found.seeds) < 2:
        return "there are not two seeds"
    blocks: list[Block] = []
    if len(found.datasets):
        blocks += [Paragraph(_seeds_sentence(found)), _ranks_by_seed(found)]
    pictures = _pictures(material)
    if not blocks and not pictures:
        return "no data set was finished with two seeds"
    blocks += pictures[:1]
    if len(pictures) > 1:
        blocks.append(Details("The same for the other methods that take a seed", tuple(pictures[1:])))
    widest = found.spread[found.spread["seeds"] > 1].sort_values("deviation", ascending=False, kind="stable").head(15)
    if len(widest):
        formats = dict.fromkeys(("seeds", "median", "lowest", "highest", "deviation"), count)
        caption = "Where detections depend most on the seed: the largest standard deviations."
        blocks.append(
            make_table(widest, caption, formats, titles={"dataset": "data set", "deviation": "std. deviation"})
        )
    return blocks


def _seeds_sentence(found: Stability) -> str:
    names = pd.unique(found.best)
    which = (
        f"the best is always {plain(names[0])}" if len(names) == 1 else f"the best is {enumerate_names(names)}, by seed"
    )
    agree = (
        f" {percent(found.agree_on_best)} of the pairs of seeds agree on it."
        if math.isfinite(found.agree_on_best)
        else ""
    )
    order = (
        f" Kendall's W of the whole order is {found.kendalls_w:.2f} (1: every seed ranks alike)."
        if math.isfinite(found.kendalls_w)
        else ""
    )
    return (
        f"Ranked with each of {len(found.seeds)} seeds by itself, over {plural(len(found.datasets), 'data set')} that "
        f"all methods finished with every seed, {which}.{agree}{order}"
    )


def _ranks_by_seed(found: Stability) -> Block:
    frame = found.mean_ranks.copy()
    frame.columns = pd.Index([str(name) for name in frame.columns])
    frame = frame.T.rename(columns=lambda seed: f"seed {seed}").reset_index(names="method")
    return make_table(frame, "Mean rank of each method by seed.", rank)


def _pictures(material: Material) -> list[Block]:
    """Of each method of the paper that takes a seed, what share of the anomalies each seed finds."""
    done = material.main[
        (material.main["status"] == "ok") & (material.main["paper"] != "") & material.main["seed"].notna()
    ]
    made: list[Block] = []
    for method, rows in done.groupby("method", sort=False):
        if rows["seed"].nunique() < 2:
            continue
        by_set = {str(name): part.tolist() for name, part in rows.groupby("dataset", sort=False)["precision_at_n"]}
        groups = {name: by_set[name] for name in in_paper_order(list(by_set))}
        title = f"{method}: P@N with each seed, per data set"
        drawing = draw_boxes(groups, title, "share of the anomalies that was found (P@N)")
        caption = f"{plain(method)}: P@N of each seed (points) on each data set."
        made.append(Picture(file_name("seeds", str(method)), drawing, title, caption))
    return made


def sensitivity(material: Material) -> list[Block] | str:
    """A picture, a sentence per method and a table for each sweep."""
    found = [sweep_table(material.rows, name) for name in sweep_names(material.rows)]
    shown = [sweep for sweep in found if sweep.summary["precision_at_n"].notna().any()]
    if not shown:
        return "no sweep has a data set on which all of its values were run"
    blocks: list[Block] = [
        Paragraph(
            "One setting at a time, all others as in the methods' own runs; P@N is the median over seeds, "
            "averaged over data sets."
        )
    ]
    for sweep in shown:
        blocks += _one(sweep)
    absent = [plain(sweep.name) for sweep in found if sweep not in shown]
    if absent:
        blocks.append(Paragraph(f"Without a data set on which all values ran: {', '.join(absent)}."))
    return blocks


def _one(sweep: Sweep) -> list[Block]:
    bases = [str(base) for base in pd.unique(sweep.summary["base"])]
    sentences = [_sentence(sweep, base) for base in bases]
    frame = sweep.summary.assign(value=[_value(value) for value in sweep.summary["value"]])
    formats = {
        "precision_at_n": percent,
        "average_precision": percent,
        "mean_rank": rank,
        "cpu_seconds": seconds,
        "datasets": count,
    }
    titles = {
        "base": "method",
        "precision_at_n": "P@N",
        "average_precision": "average precision",
        "mean_rank": "mean rank",
        "cpu_seconds": "processor time",
        "datasets": "data sets",
    }
    caption = (
        f"{plain(sweep.name)}: means over the data sets on which all values of the method ran; rank among the values."
    )
    table: Block = make_table(frame, caption, formats, titles=titles)
    if len(frame) > 12:
        table = Details("The numbers", (table,))
    blocks: list[Block] = [
        Heading(3, plain(sweep.name)),
        Paragraph(" ".join(s for s in sentences if s)),
        _picture(sweep, bases),
    ]
    return [*blocks, table, *_gaps(sweep)]


def _value(value: Any) -> str:
    return figure(value) if isinstance(value, (int, float)) else str(value)


def _sentence(sweep: Sweep, base: str) -> str:
    """Where P@N is highest and lowest, and how far apart that is."""
    lines = sweep.summary[(sweep.summary["base"] == base) & sweep.summary["precision_at_n"].notna()]
    if len(lines) < 2:
        return ""
    by_share = lines.sort_values("precision_at_n", kind="stable").to_dict("records")
    best, worst = by_share[-1], by_share[0]
    sets = plural(int(best["datasets"]), "data set")
    apart = float(best["precision_at_n"] - worst["precision_at_n"])
    if apart == 0:
        return f"**{plain(base)}**: the same mean P@N ({percent(best['precision_at_n'])}) at every value, over {sets}."
    return (
        f"**{plain(base)}**: over {sets}, mean P@N is highest at {plain(_value(best['value']))} "
        f"({_tenths(best['precision_at_n'])}) and lowest at {plain(_value(worst['value']))} "
        f"({_tenths(worst['precision_at_n'])}), {100 * apart:.1f} points apart."
    )


def _tenths(share: float) -> str:
    return f"{100 * share:.1f} %"


def _picture(sweep: Sweep, bases: list[str]) -> Picture:
    curves = []
    for base in bases:
        lines = sweep.summary[sweep.summary["base"] == base]
        values = list(lines["value"])
        single = sweep.per_set[sweep.per_set["base"] == base]
        rows = [[_at(part, value) for value in values] for _, part in single.groupby("dataset", sort=False)]
        complete = [row for row in rows if all(math.isfinite(height) for height in row)]
        curves.append(Curve(base, values, list(lines["precision_at_n"]), _matrix(complete, len(values))))
    title = f"Mean P@N against {sweep.name}"
    behind = (
        "Thin lines are single data sets."
        if len(bases) == 1
        else ("Shaded: the middle half of the data sets." if len(bases) <= 3 else "")
    )
    caption = f"Mean P@N against {plain(sweep.name)}. {behind}".strip()
    drawing = draw_curves(curves, title, sweep.name, "mean P@N")
    return Picture(file_name("sweep", sweep.name), drawing, title, caption)


def _at(part: pd.DataFrame, value: Any) -> float:
    found = [height for other, height in zip(part["value"], part["precision_at_n"], strict=True) if other == value]
    return float(found[0]) if found else math.nan


def _matrix(rows: list[list[float]], width: int) -> Any:
    import numpy as np

    return np.array(rows, dtype=np.float64).reshape(len(rows), width)


def _gaps(sweep: Sweep) -> list[Block]:
    if sweep.left_out.empty:
        return []
    gaps = sweep.left_out.assign(value=[_value(value) for value in sweep.left_out["value"]])
    table = make_table(gaps, "", {}, titles={"base": "method", "dataset": "data set"})
    return [Details("Without a result, and why", (table,))]
