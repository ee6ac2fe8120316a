"""Write the sections on ranks, costs, other methods, the simulated plant and failures."""

from __future__ import annotations

import math

import pandas as pd

from penstock.bench.results import failure_counts, failures, marks, method_summary, pivot
from penstock.bench.significance import Comparison
from studies.ahmed2021 import paper
from studies.ahmed2021.plant import PlantLists
from studies.ahmed2021.report.figures import draw_boxes, draw_ranks, draw_times
from studies.ahmed2021.report.material import Material, in_paper_order
from studies.ahmed2021.report.pages import (
    Block,
    CodeBlock,
    DataTable,
    Details,
    Heading,
    Paragraph,
    Picture,
    make_table,
    plain,
    visible,
)
from studies.ahmed2021.report.words import count, enumerate_names, p_value, percent, plural, rank, seconds
from studies.ahmed2021.tables import aloi_times, run_times, speed_ups

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
        drawing = draw_boxes(groups, title, axis)
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


def times(material: Material) -> list[Block] | str:
    """Against the number of rows, and on ALOI compared with the paper's words."""
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


_MOST = 200  # failures that are listed one by one


def peers(material: Material) -> list[Block] | str:
    """The methods of the paper, others, and controls that do next to nothing."""
    if not (material.main["status"] == "ok").any():
        return "no method has a result"
    frame = method_summary(material.main).drop(columns=["mean_roc_auc", "median_roc_auc"]).reset_index()
    part = material.main.drop_duplicates("method").set_index("method")["part"]
    frame.insert(1, "part", [part[method] for method in frame["method"]])
    frame["method"] = [f"{method} *" if method in material.oracles else method for method in frame["method"]]
    shares = [name for name in frame.columns if name.endswith(("precision_at_n", "average_precision"))]
    whole = ["datasets", "planned", "ranked_on", "failures", "not_run"]
    formats = dict.fromkeys(shares, percent) | dict.fromkeys(whole, count) | {"mean_rank": rank}
    titles = {
        "datasets": "data sets",
        "planned": "planned",
        "mean_precision_at_n": "mean P@N",
        "median_precision_at_n": "median P@N",
        "mean_average_precision": "mean AP",
        "median_average_precision": "median AP",
        "mean_rank": "mean rank",
        "ranked_on": "ranked on",
        "failures": "failed cells",
        "not_run": "cells not run",
    }
    caption = (
        "Each method over the data sets it finished (AP: average precision); ranks by P@N over those that all "
        "finished. Compare means only where the numbers of data sets agree. *: chosen with the labels."
    )
    words = (
        "Controls show what can be had without a model: a method that does not beat them on the same data has not "
        "shown that its model helps. Peers are methods in common use."
    )
    return [Paragraph(words), make_table(frame, caption, formats, titles=titles)]


def plant(material: Material) -> list[Block] | str:
    """Tables 8 and 9, on the simulated plant."""
    tables = material.plant
    if tables is None:
        return "the tables of the simulated plant were not made"
    blocks: list[Block] = [
        Paragraph(
            "The paper's plant data are not public. These tables are made from a simulated hydropower plant (seed "
            f"{tables.seed}: {tables.n_rows:,} rows, {tables.n_columns} columns, {plural(tables.n_faults, 'fault')}), "
            "so their numbers cannot be held against the paper's; but here it is known what is a fault."
        )
    ]
    both = {
        "Without modes of operation, as in the paper": tables.without_modes,
        "By mode of operation": tables.with_modes,
    }
    for title, lists in both.items():
        blocks += _lists(title, lists, tables.top)
    return blocks


def _lists(title: str, lists: PlantLists, top: int) -> list[Block]:
    online = ""
    if lists.common_online is not None:
        online = f", {lists.common_online} to NS-NMF offline and online (the paper: 46)"
    common = (
        f"Of the {top} rows with the highest scores, {lists.common_offline} are common to the offline methods (the "
        f"paper, on its plant: 27){online}, and {lists.common_all} to all."
    )
    harmless = {str(day) for day in lists.harmless_days}
    days = _flat(lists.days, "day")
    days.insert(1, "in truth", ["look-alike" if day in harmless else "fault" for day in days["day"]])
    numbers = dict.fromkeys([str(method) for method in lists.days.columns], count)
    listing = make_table(_flat(lists.listing, "").iloc[:, 1:], "Times of the rows with the highest scores.", {})
    by_day = make_table(days, "Rows listed on days with an event; look-alikes are unusual and harmless.", numbers)
    return [
        Heading(3, title),
        Paragraph(common),
        make_table(_flat(lists.summary, ""), f"What the {top} rows are in truth.", count),
        make_table(_flat(lists.overlap, ""), "How many rows each two methods have in common.", count),
        Details("Rows listed on the days of events (as in the paper's Table 9)", (by_day,)),
        Details("The rows listed (as in the paper's Table 8)", (listing,)),
    ]


def _flat(frame: pd.DataFrame, name: str) -> pd.DataFrame:
    """The index as first column, all names as text."""
    flat = frame.copy()
    flat.columns = pd.Index([str(column) for column in flat.columns])
    flat.insert(0, name, [str(label) for label in flat.index])
    return flat


def what_failed(material: Material) -> list[Block] | str:
    """Every planned cell without a result, and every one that was computed in another way."""
    rows = material.rows
    failed, marked = failures(rows), marks(rows)
    never = failed[failed["status"] == "not run"]
    failed = failed[failed["status"] != "not run"]
    if failed.empty and marked.empty and never.empty:
        return []
    blocks: list[Block] = []
    if len(never):
        cells = int(never["cells"].sum())
        who = f"{plural(never['method'].nunique(), 'method')} on {plural(never['dataset'].nunique(), 'data set')}"
        blocks.append(Paragraph(f"**Not run yet:** {plural(cells, 'planned cell')} of {who}."))
    if len(failed):
        counts = failure_counts(rows)
        counts = counts[counts.drop(columns=["ok", "not run"]).sum(axis=1) > 0]
        numbers = dict.fromkeys([str(column) for column in counts.columns], count)
        blocks.append(
            make_table(counts.reset_index(), "Cells by how they ended, of methods that did not finish all.", numbers)
        )
        blocks += _listed(failed, "without a result")
    if len(marked):
        titles = {"dataset": "data set", "mark": "how"}
        table = make_table(
            marked, "Cells that were computed in a documented other way.", {"cells": count}, titles=titles
        )
        blocks.append(Details(f"{plural(len(marked), 'mark')}", (table,)) if len(marked) > 30 else table)
    return blocks


def _listed(failed: pd.DataFrame, what: str) -> list[Block]:
    more = f" The first {_MOST} of {len(failed):,} lines." if len(failed) > _MOST else ""
    titles = {"dataset": "data set", "status": "ended", "why": "because"}
    table = make_table(failed.head(_MOST), f"Cells {what}.{more}", {"cells": count}, titles=titles)
    return [Details("All of them, with reasons", (table,)) if len(failed) > 10 else table]


def settings(material: Material) -> list[Block] | str:
    """The settings file, and what to do with it."""
    text = material.results.settings_text
    if not text.strip():
        return "the settings of the run were not recorded"
    command = f"python -m studies.ahmed2021 run --config study.toml {material.results.options} --folder study"
    command = " ".join(command.replace("`", "").split())
    shown = "\n".join(visible(line.expandtabs(4)) for line in text.split("\n"))
    return [
        Paragraph(
            f"Save these settings as `study.toml`, install the versions named above, and run `{command}` in the "
            "repository. Results of the same seeds are the same on the same machine; run times are not."
        ),
        Details("The settings (TOML)", (CodeBlock(shown, "toml"),)),
    ]
