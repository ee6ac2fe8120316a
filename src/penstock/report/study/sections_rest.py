"""All methods in one table, the simulated plant, what failed, and how to run it again."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pandas as pd

from penstock.bench.method_summary import failure_counts, failures, marks, method_summary
from penstock.bench.settings_file import paper_settings
from penstock.report.study.blocks import Block, CodeBlock, Details, Heading, Paragraph, make_table, visible
from penstock.report.study.material import Material
from penstock.report.study.words import count, percent, plural, rank

if TYPE_CHECKING:
    from penstock.bench.plant import PlantLists

_MOST = 200  # failures that are listed one by one


def peers(material: Material) -> list[Block] | str:
    """The methods of the paper, and beside them others and controls that do next to nothing."""
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
        return "the tables of the simulated plant were not made" if material.of_paper else []
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
    as_shipped = text == paper_settings() and not material.of_paper  # methods of it, on other data sets
    config = "" if as_shipped else "--config study.toml"
    command = " ".join(["penstock bench", config, material.results.options, "--folder study"])
    command = " ".join(command.replace("`", "").split())
    same = "Results of the same seeds are the same on the same machine; run times are not."
    if as_shipped:
        return [Paragraph(f"Install the versions named above, and run `{command}`. {same}")]
    shown = "\n".join(visible(line.expandtabs(4)) for line in text.split("\n"))
    return [
        Paragraph(
            f"Save these settings as `study.toml`, install the versions named above, and run `{command}`. {same}"
        ),
        Details("The settings (TOML)", (CodeBlock(shown, "toml"),)),
    ]
