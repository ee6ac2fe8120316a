"""What `penstock bench` prints at its end: the paper's tables with ours beside them, ranks, tests, and what failed."""

from __future__ import annotations

import pandas as pd

from penstock._messages import counted
from penstock.bench.chosen_rows import fair_rows, main_rows
from penstock.bench.comparison import compare_rows
from penstock.bench.method_summary import failures, method_summary
from penstock.bench.results import Results
from penstock.bench.tables import PAPER_TABLES, detections, match_counts

_HEADINGS = {
    "TPR": "True detections, NMF methods (tbl:TPR): paper, ours (median over seeds)",
    "TPRL": "True detections against LoMST (tbl:TPRL): paper, ours",
    "TPRDL": "True detections against deep methods (tbl:TPRDL): paper, ours (median over seeds)",
}
_MOST_REASONS = 8
_FEW_SETS = 5


def summary_text(results: Results) -> str:
    """The summary as plain text."""
    blocks = [_data_block(results), *_paper_blocks(results), _methods_block(results), _tests_block(results)]
    blocks.append(_failures_block(results))
    return "\n\n".join(block for block in blocks if block)


def _data_block(results: Results) -> str:
    """What was judged, where there is not much of it."""
    sets = results.rows[results.rows["n"] > 0].groupby("dataset", sort=False)[["n", "p", "n_anomalies"]].max()
    if not 0 < len(sets) <= _FEW_SETS:
        return ""
    return "\n".join(
        f"{name}: {counted(int(n), 'row')} of {counted(int(p), 'input')}, {found:,} anomalous"
        for name, (n, p, found) in zip(sets.index, sets.itertuples(index=False), strict=True)
    )


def _paper_blocks(results: Results) -> list[str]:
    blocks = []
    for name in PAPER_TABLES:
        table = detections(results.rows, name)
        run = table[table["runs"] > 0]
        if run.empty or len(run["method"].unique()) < 2:
            continue
        blocks.append(f"{_HEADINGS[name]}\n\n{_beside(table)}\n\n{_matches(table)}")
    return blocks


def _beside(table: pd.DataFrame) -> str:
    """Data sets × methods, the paper's figure and ours in each cell."""
    shown = table.assign(cell=[_pair(paper, ours) for paper, ours in zip(table["paper"], table["median"], strict=True)])
    wide = shown.pivot_table(index="dataset", columns="method", values="cell", aggfunc="first", sort=False)
    return wide.rename_axis(index=None, columns=None).to_string()


def _pair(paper: float, ours: float) -> str:
    return f"{paper:g} · {'–' if pd.isna(ours) else f'{ours:g}'}"


def _matches(table: pd.DataFrame) -> str:
    counts = match_counts(table)
    words = [f"{method} {row['matched']:g} of {row['run']:g}" for method, row in counts.iterrows() if row["run"]]
    return f"Within 2 or 10 % of the paper: {', '.join(words)} sets."


def _methods_block(results: Results) -> str:
    rows = main_rows(results.rows)
    if not (rows["status"] == "ok").any():
        return ""
    table = method_summary(rows)
    shown = pd.DataFrame(
        {
            "sets": table["datasets"].astype(str),
            "P@N": _shares(table["mean_precision_at_n"]),
            "AP": _shares(table["mean_average_precision"]),
            "ROC-AUC": _shares(table["mean_roc_auc"]),
            "mean rank": [f"{rank:.2f}" if pd.notna(rank) else "–" for rank in table["mean_rank"]],
        }
    )
    heading = "Means over the data sets of the medians over seeds; ranks by P@N, 1 is best"
    return f"{heading}\n\n{shown.rename_axis(index=None).to_string()}"


def _shares(values: pd.Series[float]) -> list[str]:
    return [f"{value:.3f}" if pd.notna(value) else "–" for value in values]


def _tests_block(results: Results) -> str:
    comparison = compare_rows(fair_rows(main_rows(results.rows)))
    if comparison.friedman is None:
        return ""
    test = comparison.friedman
    words = (
        f"Friedman over {test.n} data sets and {test.k} methods: p = {test.p_value:.2e} (χ² = {test.statistic:.2f})."
    )
    left_out = comparison.left_out["dataset"].nunique()
    return words + (f" {counted(left_out, 'data set')} left out for want of a cell." if left_out else "")


def _failures_block(results: Results) -> str:
    table = failures(results.rows)
    if table.empty:
        return ""
    # What is wrong with a data set is wrong for all its methods: said once.
    reasons = (
        table.groupby(["dataset", "status", "why"], sort=False).agg({"method": list, "cells": "sum"}).reset_index()
    )
    lines = []
    for row in reasons.head(_MOST_REASONS).to_dict("records"):
        who = row["method"][0] if len(row["method"]) == 1 else counted(len(row["method"]), "method")
        why = f", {row['why']}" if row["why"] else ""
        lines.append(f"  {who} on {row['dataset']}: {row['status']}{why} ({counted(int(row['cells']), 'cell')})")
    more = len(reasons) - _MOST_REASONS
    lines += [f"  and {more:,} more"] if more > 0 else []
    return f"{counted(int(table['cells'].sum()), 'cell')} without result:\n" + "\n".join(lines)
