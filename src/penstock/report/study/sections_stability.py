"""Whether another seed would have told another story."""

from __future__ import annotations

import math

import pandas as pd

from penstock.bench.stability import Stability, stability
from penstock.report.study.blocks import Block, Details, Paragraph, Picture, make_table, plain
from penstock.report.study.draw_boxes import draw_boxes
from penstock.report.study.material import Material, in_paper_order
from penstock.report.study.names import file_name
from penstock.report.study.words import count, enumerate_names, percent, plural, rank


def seeds(material: Material) -> list[Block] | str:
    """Ranks seed by seed, and the spread on each data set."""
    found = stability(material.fair)
    if len(found.seeds) < 2:
        return "there are not two seeds"
    blocks: list[Block] = []
    if len(found.datasets):
        blocks += [Paragraph(_sentence(found)), _ranks_by_seed(found)]
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


def _sentence(found: Stability) -> str:
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
        drawing = draw_boxes(groups, title, "share of the anomalies that was found (P@N)", percent, low=0, high=1)
        caption = f"{plain(method)}: P@N of each seed (points) on each data set."
        made.append(Picture(file_name("seeds", str(method)), drawing, title, caption))
    return made
