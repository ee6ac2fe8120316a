"""How much the results depend on what was set."""

from __future__ import annotations

import math
from typing import Any

import pandas as pd

from penstock.bench.sweeps import Sweep, sweep_names, sweep_table
from penstock.report.study.blocks import Block, Details, Heading, Paragraph, Picture, make_table, plain
from penstock.report.study.draw_curves import Curve, draw_curves
from penstock.report.study.material import Material
from penstock.report.study.names import file_name
from penstock.report.study.words import count, figure, percent, plural, rank, seconds


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
    drawing = draw_curves(curves, title, sweep.name, "mean P@N", percent)
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
