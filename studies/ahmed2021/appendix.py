"""Write the appendix of the study: every table, generated from the cells of a run."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pandas as pd

from penstock._messages import counted
from penstock.bench.results import failures, marks, method_summary, pivot
from studies.ahmed2021 import paper, registry
from studies.ahmed2021.markdown import closed, count, escape, number, p_value, percent, points, rank, table, yes_no
from studies.ahmed2021.nearest import Nearest, paper_column
from studies.ahmed2021.outcome import CONTROLS, Outcome
from studies.ahmed2021.plant import PlantLists
from studies.ahmed2021.rows import rows_of_column
from studies.ahmed2021.sweeps import sweep_names, sweep_table
from studies.ahmed2021.tables import PAPER_TABLES, aloi_times, detections, match_counts, performance, within

_MOST = 40  # lines of a list
_CONOVER = (
    "The paper prints Conover p-values of 7.11e−21 (NMF, SNMF) and 3.40e−15 (GNMF). From its own table of detections "
    "they are 1.24e−9, 2.84e−6 and 1.24e−9; exchanging the numbers of data sets and of methods in the pooled variance, "
    "a slip of an older R package, gives 7.11e−21 and 3.38e−15. It prints Friedman's statistic without a correction "
    "for ties, but its p-value (1.23e−7) is the corrected one; so is ours."
)


def to_page(outcome: Outcome) -> str:
    """Write all sections that have something to show; those without are named at the end.

    >>> from penstock.bench import Results
    >>> from penstock.bench.results import frame_of
    >>> from studies.ahmed2021.rows import LABELS
    >>> "not in this run" in to_page(Outcome(Results(frame_of([], {}, LABELS))))
    True
    """
    parts = [
        "# The study of Ahmed et al. (2021): all tables",
        "Appendix to [what reproduces](reproduction.md), written by the same command from the same cells. Where "
        "several seeds were run, figures are their medians unless it says otherwise.",
    ]
    absent = []
    for title, make in _SECTIONS.items():
        made = make(outcome)
        parts += [f"## {title}", *made] if made else []
        absent += [] if made else [title]
    if absent:
        parts.append(f"Of the study not in this run: {'; '.join(absent)}.")
    return "\n\n".join(parts) + "\n"


def _versions(outcome: Outcome) -> list[str]:
    versions = outcome.results.versions or {}
    return [escape(", ".join(f"{name} {version}" for name, version in versions.items()) + ".")] if versions else []


def _data_sets(outcome: Outcome) -> list[str]:
    used = outcome.rows.groupby("dataset", sort=False)[["n", "p", "n_anomalies"]].max()
    known = registry.provenance()
    known = known[known.index.isin(used.index)]
    if used.empty:
        return []
    frame = known.join(used.add_suffix("_used")).reset_index()
    columns = {
        **{"dataset": "data set", "n_used": "rows", "paper_n": "rows, paper", "p_used": "attributes"},
        **{"paper_p": "attributes, paper", "n_anomalies_used": "anomalies", "duplicate_rows": "duplicates"},
        **{"exact": "as printed", "file": "file", "differs": "what is known to differ"},
    }
    shown = list(columns)[:8]
    others = used[~used.index.isin(known.index)].reset_index()
    parts = [
        table(frame[shown], dict.fromkeys(shown[1:-1], count), titles=columns),
        closed(
            "Files, and what differs from the paper's", table(frame[["dataset", "file", "differs"]], titles=columns)
        ),
    ]
    return parts + ([table(others, count, caption="Other variants of these data.")] if len(others) else [])


def _collapse(outcome: Outcome) -> list[str]:
    titles = {
        **{"dataset": "data set", "n": "rows", "explained": "‖WH‖²/‖A‖²", "norm_rank_correlation": "Spearman with ‖a‖"},
        **{"rows_holding_most": "rows with 90 % of ‖W‖²", "structure_ratio": "‖S‖²/‖A‖²"},
    }
    return [table(outcome.collapse, number, titles=titles)] if len(outcome.collapse) else []


def _readings(outcome: Outcome) -> list[str]:
    cells = outcome.rows[outcome.rows["part"] == "readings"]
    found = pivot(cells)
    if not found.notna().any(axis=None):
        return []
    shown = found.reindex(_ordered(found.index)).reset_index()
    return [table(shown, count, caption="True detections of each reading.", titles={"dataset": "data set"})]


def _true_detections(outcome: Outcome) -> list[str]:
    parts = []
    for name, attribute in PAPER_TABLES.items():
        found = detections(outcome.rows, name)
        if not (found["runs"] > 0).any():
            continue
        shown = pd.DataFrame({"data set": getattr(paper, attribute).index})
        for method, part in found.groupby("method", sort=False):
            ticks = [" ✓" if pd.notna(x) and x else "" for x in part["matches"]]
            shown[f"{method}: paper"] = [count(x) for x in part["paper"]]
            shown[f"{method}: ours"] = [count(x) + tick for x, tick in zip(part["median"], ticks, strict=True)]
        caption = f"True detections, the paper's tbl:{name} and our medians; ✓: within 2 or 10 %."
        parts.append(table(shown, str, caption=caption))
        if name == "TPR":
            parts += _controls(outcome)
        counts = match_counts(found).reset_index()
        counts.insert(4, "best control", [_best_control(outcome.rows, method) for method in counts["method"]])
        titles = {"sets": "data sets", "run": "with a result", "best_matched": "highest seed matches"}
        titles |= {"mean_difference": "ours − paper's", "mean_abs_difference": "mean distance"}
        numbers = dict.fromkeys(counts.columns.drop(["method", "best control"]), count)
        parts.append(table(counts, numbers, titles=titles))
    return parts


def _best_control(rows: pd.DataFrame, column: str) -> str:
    """Return how many data sets the best of the controls matches in a column of the paper, and which it is."""
    controls, figures = pivot(rows[rows["method"].isin(CONTROLS)]), paper_column(column)
    found = {str(name): within(controls[name].reindex(figures.index), figures).fillna(False).sum() for name in controls}
    best = max(found, key=lambda name: int(found[name]), default="")
    return f"{found[best]} ({best})" if best else "not run"


def _controls(outcome: Outcome) -> list[str]:
    """Show what the controls find, and which of the paper's columns that matches."""
    found = pivot(outcome.rows[outcome.rows["method"].isin(CONTROLS)])
    if not found.notna().any(axis=None):
        return []
    shown = pd.DataFrame({"data set": _ordered(found.index)})
    for control in found:
        ours = found[control].reindex(shown["data set"])
        near = {
            method: within(ours, paper_column(method).reindex(ours.index)).fillna(False).to_numpy() for method in _SHORT
        }
        matched = [[_SHORT[method] for method, yes in near.items() if yes[row]] for row in range(len(ours))]
        shown[str(control)] = [f"{count(x)} {''.join(m)}".strip() for x, m in zip(ours, matched, strict=True)]
    key = ", ".join(f"{short} {method}" for method, short in _SHORT.items())
    return [table(shown, str, caption=f"Controls, with the columns of the paper that their number matches: {key}.")]


_SHORT = dict(zip(map(str, paper.true_positives), "abcde", strict=True))


def _offline(outcome: Outcome) -> list[str]:
    found, kinds = outcome.offline, performance(outcome.rows)
    if found.mean_ranks.empty:
        return []
    both = pd.DataFrame(
        {
            f"{name}: {who}": frame[name]
            for name in kinds.paper
            for who, frame in (("paper", kinds.paper), ("ours", kinds.ours))
        }
    )
    parts = [table(both.reset_index(names=""), rank, caption="Better, equal, close, worse (the paper's tbl:3).")]
    test = found.friedman
    if test is not None:
        words = f"Friedman's χ² = {test.statistic:.2f} with {test.degrees_of_freedom} degrees of freedom, "
        parts.append(f"{words}p = {p_value(test.p_value)}, on {len(found.table)} data sets.")
    for p_values, name in ((found.conover, "Conover's, Bonferroni"), (found.wilcoxon, "Wilcoxon's, Holm")):
        if p_values is not None:
            parts.append(table(p_values.reset_index(names=""), p_value, caption=f"p-values: {name}."))
    return [*parts, _CONOVER]


def _everyone(outcome: Outcome) -> list[str]:
    if outcome.main.empty:
        return []
    found = method_summary(outcome.main).reset_index()
    found["cpu"] = pivot(outcome.main, "cpu_seconds").sum().reindex(found["method"]).to_numpy()
    columns = {
        **{"method": "method", "datasets": "data sets", "mean_precision_at_n": "mean P@N"},
        **{"mean_average_precision": "mean AP", "mean_rank": "mean rank", "cpu": "CPU seconds, all data sets"},
    }
    formats: dict[str, Callable[[Any], str]] = dict.fromkeys(list(columns)[1:], number)
    formats |= {"mean_precision_at_n": "{:.3f}".format, "mean_average_precision": "{:.3f}".format, "mean_rank": rank}
    caption = "Methods, peers and controls; ranks by P@N. LoMST (best k) saw the labels and has no rank."
    return [table(found[list(columns)].sort_values("mean_rank"), formats, titles=columns, caption=caption)]


def _times(outcome: Outcome) -> list[str]:
    found = aloi_times(outcome.rows).reset_index()
    if found["our_minutes"].isna().all():
        return []
    columns = ["method", "paper_minutes", "stated", "our_minutes", "ratio", "mark"]
    caption = "Minutes on ALOI. Machines and programs differ: ratios within a column say more than those across."
    formats = dict.fromkeys(("paper_minutes", "our_minutes", "ratio"), number)
    titles = {"paper_minutes": "paper", "stated": "in its words", "our_minutes": "ours, CPU"}
    return [table(found[columns], formats, caption=caption, titles=titles | {"ratio": "paper ÷ ours"})]


def _central(outcome: Outcome) -> list[str]:
    effect = outcome.graph_effect
    if effect.verdict == "not run":
        return []
    formats = {"precision_at_n": percent, "average_precision": percent, "mean_rank": rank, "datasets": count}
    shares = dict.fromkeys(("mean_difference", "low", "high"), points) | {"datasets": count, "p_value": p_value}
    caption = "What changing the form or the graph does, in points, with 95 % intervals over data sets."
    return [
        escape(effect.sentence),
        table(effect.table, formats, titles={"datasets": "data sets"}),
        table(effect.effects, shares, caption=caption, titles={"datasets": "data sets"}),
    ]


def _statements(outcome: Outcome) -> list[str]:
    claims = outcome.claims
    if not claims["holds_in_run"].isin(("yes", "no", "undecided")).any():
        return []
    order = ["claim", "method", "stated", "from_our_run", "holds_in_run", "from_paper_table", "holds_in_paper"]
    titles = {"from_our_run": "here", "holds_in_run": "holds here", "from_paper_table": "from the paper's tables"}
    titles |= {"holds_in_paper": "holds there", "rule": "holds here if"}
    return [table(claims[[*order, "where", "rule"]], titles=titles)]


def _nearest(outcome: Outcome) -> list[str]:
    parts = []
    for column, found in outcome.nearest.items():
        parts += [f"### {escape(column)}", *_one_grid(outcome, column, found)]
    return parts


def _one_grid(outcome: Outcome, column: str, found: Nearest) -> list[str]:
    figures = paper_column(column)
    controls = pivot(outcome.rows[outcome.rows["method"].isin(CONTROLS)]).reindex(figures.index)
    ranked = found.configurations.head(15).reset_index(names="configuration")
    for control in controls:
        difference = controls[control] - figures
        ranked.loc[len(ranked)] = {
            "configuration": f"control: {control}",
            "sets": len(figures),
            "run": int(difference.notna().sum()),
            "matched": int(within(controls[control], figures).fillna(False).sum()),
            "exact": int((difference == 0).sum()),
            "mean_abs_difference": float(difference.abs().mean()),
        }
    columns = ["configuration", "run", "matched", "exact", "mean_abs_difference"]
    titles = {"run": "with a result", "mean_abs_difference": "mean distance"}
    per_set = found.per_set.reset_index(names="data set")
    per_set = per_set.assign(matches=per_set["matches"].map(yes_no))
    shown = ["data set", "paper", "median", "matches", "matched_by", "run_by", "closest", "closest_median"]
    names = {"matched_by": "matched by", "run_by": "of", "closest": "closest", "closest_median": "its median"}
    numbers = dict.fromkeys(("paper", "median", "matched_by", "run_by", "closest_median"), count)
    best = found.configurations.iloc[0]
    return [
        f"The nearest of {found.compared} configurations, **{escape(found.best)}**, matches {best['matched']} data "
        f"sets; chosen without the data set in question, {found.held_out_matched} of {found.held_out_sets}.",
        table(ranked[columns], dict.fromkeys(columns[1:], count), titles=titles),
        closed(f"{column}, per data set", table(per_set[shown], numbers, titles=names)),
    ]


def _sweeps(outcome: Outcome) -> list[str]:
    parts = []
    for name in sweep_names(outcome.rows):
        found = sweep_table(outcome.rows, name).summary
        if found.empty:
            continue
        wide = found.pivot(index="value", columns="base", values="precision_at_n")[list(pd.unique(found["base"]))]
        wide.index = pd.Index([str(value) for value in wide.index])
        matched = {base: _matched_by_value(outcome.rows, name, str(base)) for base in wide}
        wide = wide.map("{:.3f}".format)
        for base, counts in matched.items():
            wide[f"{base}: matched"] = [count(counts.get(value, float("nan"))) for value in wide.index]
        wide.loc["the best control"] = [*[""] * len(matched), *(_best_control(outcome.rows, str(b)) for b in matched)]
        sets = ", ".join(f"{base} {n}" for base, n in found.groupby("base", sort=False)["datasets"].max().items())
        cells = outcome.rows[outcome.rows["sweep"] == name]
        seeds = cells.groupby(["method", "dataset"])["seed"].nunique().max()  # fewer than of the tables above
        caption = (
            f"**{escape(name)}**: mean P@N over the data sets on which all values ran ({escape(sets)}; "
            f"{counted(int(seeds), 'seed')} at most), and matches."
        )
        parts.append(table(wide.reset_index(names=name), str, caption=caption))
    return parts


def _matched_by_value(rows: pd.DataFrame, sweep: str, base: str) -> dict[str, int]:
    cells = rows[(rows["sweep"] == sweep) & (rows["base"] == base)]
    medians = pivot(cells.assign(method=cells["value"].map(str)))
    figures = paper_column(base)
    return {str(v): int(within(medians[v].reindex(figures.index), figures).fillna(False).sum()) for v in medians}


def _variants(outcome: Outcome) -> list[str]:
    found = pivot(outcome.rows[outcome.rows["part"] == "variants"])
    if not found.notna().any(axis=None):
        return []
    own = pivot(rows_of_column(outcome.rows, "NS-NMF")).reindex(columns=["NS-NMF"])["NS-NMF"]
    of = registry.variants()["of"]
    shown = found.reset_index()
    parents = [str(of.get(name, name)) for name in shown["dataset"]]
    shown["the twenty's"] = own.reindex(parents).to_numpy()
    shown["paper"] = paper.true_positives["NS-NMF"].reindex(parents).to_numpy()
    return [table(shown, count, titles={"dataset": "data set"})]


def _plant(outcome: Outcome) -> list[str]:
    if outcome.plant is None:
        return []
    parts = []
    for name, lists in outcome.plant.searches.items():
        parts += [f"### {escape(name).capitalize()}", *_lists(lists)]
    return parts


def _lists(lists: PlantLists) -> list[str]:
    harmless = {str(day) for day in lists.harmless_days}
    days = lists.days.reset_index().astype({"day": "str"})
    days.insert(1, "in truth", ["look-alike" if day in harmless else "fault" for day in days["day"]])
    stamps = pd.DataFrame({name: pd.Series(times.strftime("%Y-%m-%d %H:%M")) for name, times in lists.times.items()})
    numbers = dict.fromkeys([str(column) for column in lists.days], count)
    return [
        table(lists.summary.reset_index(names=""), count, caption="What the listed rows are in truth."),
        table(lists.overlap.reset_index(names=""), count, caption="Rows that each two lists have in common."),
        closed("Rows listed on the days of events (the paper's Table 9)", table(days, numbers)),
        closed("The rows listed (the paper's Table 8)", table(stamps)),
    ]


def _failures(outcome: Outcome) -> list[str]:
    failed, marked = failures(outcome.rows), marks(outcome.rows)
    never = failed[failed["status"] == "not run"]
    ended = failed[failed["status"] != "not run"].groupby(["method", "status", "why"], sort=False)
    listed = ended.agg(datasets=("dataset", lambda names: ", ".join(dict.fromkeys(names))), cells=("cells", "sum"))
    marked = marked.groupby("mark")["dataset"].unique().map(lambda names: ", ".join(sorted(names))).reset_index()
    parts = []
    if len(never):
        parts.append(
            f"Planned and not run: {int(never['cells'].sum()):,} cells, of {never['method'].nunique()} methods on "
            f"{escape(', '.join(_ordered(pd.unique(never['dataset']))))}."
        )
    if len(listed):
        more = f", the first {_MOST} of {len(listed)} lines" if len(listed) > _MOST else ""
        frame = listed.reset_index().head(_MOST)
        parts.append(table(frame, {"cells": count}, caption=f"Cells without a result{more}."))
    return parts + ([table(marked, caption="Cells that were computed in another way.")] if len(marked) else [])


def _ordered(given: Any) -> list[str]:
    """Return data sets in the order of the paper's tables of detections, then the others."""
    known = [str(name) for name in paper.true_positives.index]
    return sorted(map(str, given), key=lambda name: known.index(name) if name in known else len(known))


_SECTIONS: dict[str, Callable[[Outcome], list[str]]] = {
    "Versions": _versions,
    "Data sets": _data_sets,
    "The collapse, per data set": _collapse,
    "Readings, per data set": _readings,
    "True detections": _true_detections,
    "The four offline methods: ranks and tests": _offline,
    "All methods": _everyone,
    "Run times": _times,
    "The central claim: form and graph": _central,
    "The paper's statements, one by one": _statements,
    "Nearest configurations": _nearest,
    "Sensitivity": _sweeps,
    "Other variants of the data": _variants,
    "The plant": _plant,
    "Failures and marks": _failures,
}
