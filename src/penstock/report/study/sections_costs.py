"""Run times, beside the paper's, and whether the iterations came to an end."""

from __future__ import annotations

import math

import pandas as pd

from penstock.bench.run_times import aloi_times, run_times, speed_ups
from penstock.report.study.blocks import Block, DataTable, Details, Paragraph, Picture, make_table, plain
from penstock.report.study.draw_times import draw_times
from penstock.report.study.material import Material, in_paper_order
from penstock.report.study.words import count, percent, plural, seconds


def times(material: Material) -> list[Block] | str:
    """Against the number of rows, and on ALOI beside the paper's words."""
    table = run_times(material.main)
    table = table[table["fit_seconds"].notna()]
    if table.empty:
        return "no cell has a run time"
    lines = {
        str(method): list(zip(part["n"].astype(int), part["fit_seconds"].astype(float), strict=True))
        for method, part in table.groupby("method", sort=False)
    }
    title = "Time of a fit against the number of rows"
    caption = (
        "Median time of a fit against the rows of the data set, both axes logarithmic. Data sets differ in attributes "
        "too, so lines are not smooth. Some methods use several processor cores."
    )
    picture = Picture("run-times", draw_times(lines, title), title, caption)
    return [picture, *_aloi(material), Details("Time of a fit on each data set", (_all_times(table),))]


def _all_times(table: pd.DataFrame) -> DataTable:
    wide = table.pivot_table("fit_seconds", "dataset", "method", sort=False)
    wide = wide.reindex(in_paper_order(list(wide.index))).reset_index()
    wide.columns = pd.Index([str(name) for name in wide.columns])
    return make_table(wide, "Median time of a fit.", seconds, titles={"dataset": "data set"})


def _aloi(material: Material) -> list[Block]:
    if not material.of_paper:
        return []
    found = aloi_times(material.main)
    if found["our_minutes"].isna().all():
        return [Paragraph("On ALOI, the one data set that the paper gives times for, no method of it has a result.")]
    frame = pd.DataFrame(
        {
            "method": found.index,
            "paper": 60 * found["paper_minutes"].to_numpy(),
            "in the paper's words": found["stated"].to_numpy(),
            "ours": 60 * found["our_minutes"].to_numpy(),
            "processor time": 60 * found["cpu_minutes"].to_numpy(),
            "paper ÷ ours": found["ratio"].to_numpy(),
            "mark": [mark or why for mark, why in zip(found["mark"], found["why"], strict=True)],
        }
    )
    formats = {"paper": seconds, "ours": seconds, "processor time": seconds, "paper ÷ ours": _times}
    caption = "Run times on ALOI. Machines and programs differ: ratios within a column say more than those across."
    gains = speed_ups(material.main).reset_index(names="method")
    marked = sorted(set(found["mark"]) - {""})
    note = f" Ours against another way of computing it ({', '.join(map(plain, marked))})." if marked else ""
    faster = make_table(gains, f"Times faster than SNMF on ALOI.{note}", {"paper": _times, "ours": _times})
    return [make_table(frame, caption, formats), faster]


def _times(value: float) -> str:
    """
    >>> _times(32.0), _times(1250.4), _times(0.52), _times(float("nan"))
    ('32×', '1,250×', '0.52×', '–')
    """
    if not math.isfinite(value):
        return "–"
    return f"{value:,.0f}×" if value >= 10 else f"{value:.2g}×"


def convergence(material: Material) -> list[Block] | str:
    """How many iterations, and whether they stopped by themselves."""
    rows = material.rows[(material.rows["status"] == "ok")].drop_duplicates(["method", "key"])
    told = pd.DataFrame(
        [
            (method, detail.get("n_iter"), detail.get("converged"))
            for method, detail in zip(rows["method"], rows["detail"], strict=True)
            if isinstance(detail, dict) and ("n_iter" in detail or "converged" in detail)
        ],
        columns=["method", "n_iter", "converged"],
    )
    if told.empty:
        return "no cell tells its iterations"
    told["n_iter"] = pd.to_numeric(told["n_iter"], errors="coerce")
    groups = told.groupby("method", sort=False)
    frame = pd.DataFrame(
        {
            "cells": groups.size(),
            "converged": groups["converged"].agg(_share_true),
            "median iterations": groups["n_iter"].median(),
            "most iterations": groups["n_iter"].max(),
        }
    ).reset_index()
    known = told["converged"].dropna().astype(bool)
    words = f"Of {plural(len(known), 'cell')} that tell, {int(known.sum()):,} stopped because nothing changed any more"
    words += "; the others at the limit of iterations, and more of these might change their figures."
    formats = {"cells": count, "converged": percent, "median iterations": count, "most iterations": count}
    table = make_table(frame, "Iterations of the factorisations.", formats)
    shown: Block = Details("Iterations per method", (table,)) if len(frame) > 20 else table
    return [*([Paragraph(words)] if len(known) else []), shown]


def _share_true(values: pd.Series) -> float:
    known = values.dropna()
    return float(known.astype(bool).mean()) if len(known) else math.nan
