"""Compare both forms of the objective on all graphs, paired by data set: which of the two makes the difference."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

import numpy as np
import pandas as pd

from penstock._types import FloatArray
from penstock.bench.results import missing_cells, pivot
from penstock.bench.significance import corrected, mean_ranks, wilcoxon

FORMS = ("symmetric", "laplacian")
GRAPHS = ("tree", "tree, 0-1", "5 nearest, 0-1", "gaussian")
MEASURES = ("precision_at_n", "average_precision")
_PART = "central claim"
_RESAMPLES, _SEED, _LEVEL = 10_000, 20210, 0.95
_DECIMALS = 12  # beyond them shares differ by rounding only
_EFFECT_COLUMNS = ["factor", "contrast", "measure", "datasets", "mean_difference", "low", "high", "p_value"]


@dataclass(frozen=True, eq=False)
class GraphEffect:
    """Each form with each graph, and what changing the one or the other does.

    `effects` are mean differences over data sets, in shares (0.1 is ten points of P@N): of the forms, averaged over the
    graphs, and of the tree to each other graph, averaged over the forms; with a 95 % bootstrap interval over data sets
    and a Wilcoxon p-value (Holm's correction within a factor). `verdict` says whose interval for P@N leaves 0 out:
    "graph", "form", "both", "neither", or "not run". A form on a graph that never ran has a line of gaps in `table`,
    the others are compared without it, and `sentence` names it; all that is missing is in `left_out`.
    """

    table: pd.DataFrame
    effects: pd.DataFrame
    verdict: str
    sentence: str
    left_out: pd.DataFrame


def graph_effect(rows: pd.DataFrame) -> GraphEffect:
    """Hold the two forms and the four graphs of part "central claim" against each other."""
    part = rows[rows["part"] == _PART]
    labels = _labels(part)
    pairs = sorted(set(labels.values()), key=lambda pair: (_place(FORMS, pair[0]), _place(GRAPHS, pair[1])))
    grid = {" | ".join(pair): pair for pair in pairs}
    placed = part[part["method"].isin(labels)]
    named = placed.assign(method=[" | ".join(labels[method]) for method in placed["method"]])
    tables = {measure: pivot(named, measure).reindex(columns=list(grid)) for measure in MEASURES}
    ran = [name for name in grid if tables["precision_at_n"][name].notna().any()]
    effects = _all_effects(tables, grid, ran)
    verdict = _verdict(effects)
    nowhere = [name for name in grid if name not in ran]
    return GraphEffect(
        table=_means(tables, grid, ran),
        effects=effects,
        verdict=verdict,
        sentence=_sentence(effects, verdict) + (f" Without any result: {'; '.join(nowhere)}." if nowhere else ""),
        left_out=_left_out(named, tables["precision_at_n"], part[~part["method"].isin(labels)]),
    )


def _labels(part: pd.DataFrame) -> dict[str, tuple[str, str]]:
    """Form and graph of each method, from any of its rows; first from those that were not computed in another way."""
    found: dict[str, tuple[str, str]] = {}
    marked = part["mark"] != ""
    for rows in (part[~marked], part[marked]):
        for method, detail in zip(rows["method"], rows["detail"], strict=True):
            if method not in found and isinstance(detail, dict) and "form" in detail and "graph" in detail:
                found[method] = (str(detail["form"]), str(detail["graph"]))
    return found


def _left_out(named: pd.DataFrame, table: pd.DataFrame, unplaced: pd.DataFrame) -> pd.DataFrame:
    """List what is missing of the grid, and methods that do not say where in it they belong."""
    gaps = missing_cells(named, table)
    if unplaced.empty:
        return gaps
    nothing = pivot(unplaced, "precision_at_n") * np.nan
    others = missing_cells(unplaced, nothing, "ran, but its rows do not say with which form and graph")
    return pd.concat([gaps, others], ignore_index=True) if len(gaps) else others


def _place(order: tuple[str, ...], name: str) -> tuple[int, str]:
    return (order.index(name) if name in order else len(order), name)


def _means(tables: dict[str, pd.DataFrame], grid: dict[str, tuple[str, str]], ran: list[str]) -> pd.DataFrame:
    """Means over the data sets on which all ran that ran at all."""
    complete = {measure: table[ran].dropna() for measure, table in tables.items()}
    counted = complete["precision_at_n"]
    ranks = mean_ranks(counted) if min(counted.shape) > 1 else pd.Series(np.nan, index=counted.columns)
    lines = [
        {
            "form": form,
            "graph": graph,
            **{measure: float(table[name].mean()) if name in ran else np.nan for measure, table in complete.items()},
            "mean_rank": float(ranks[name]) if name in ran else np.nan,
            "datasets": len(counted) if name in ran else 0,
        }
        for name, (form, graph) in grid.items()
    ]
    return pd.DataFrame(lines, columns=["form", "graph", *MEASURES, "mean_rank", "datasets"])


def _all_effects(tables: dict[str, pd.DataFrame], grid: dict[str, tuple[str, str]], ran: list[str]) -> pd.DataFrame:
    """Compute, for each factor and measure, the contrasts of its first level to each other one, where they ran."""
    able = {name: grid[name] for name in ran}
    lines: list[dict[str, object]] = []
    for place, (factor, order) in enumerate((("form", FORMS), ("graph", GRAPHS))):
        levels = sorted({pair[place] for pair in grid.values()}, key=partial(_place, order))
        for measure, table in tables.items():
            found = [_effect(table, able, place, levels[0], other) for other in levels[1:]]
            p_values = np.array([float(line["p_value"]) for line in found])
            known = ~np.isnan(p_values)
            p_values[known] = corrected(p_values[known], "holm")
            for line, p_value in zip(found, p_values, strict=True):
                lines.append({"factor": factor, "measure": measure, **line, "p_value": float(p_value)})
    return pd.DataFrame(lines, columns=_EFFECT_COLUMNS)


def _effect(
    table: pd.DataFrame, grid: dict[str, tuple[str, str]], place: int, level: str, other: str
) -> dict[str, float | int | str]:
    """Compute the paired difference of two levels, averaged over the levels of the other factor that both have."""
    partner = {(pair[place], pair[1 - place]): name for name, pair in grid.items()}
    shared = [rest for kind, rest in partner if kind == level and (other, rest) in partner]
    first = [partner[level, rest] for rest in shared]
    second = [partner[other, rest] for rest in shared]
    complete = table[[*first, *second]].dropna() if shared else table.iloc[:0]
    pair = pd.DataFrame({"first": complete[first].mean(axis=1), "second": complete[second].mean(axis=1)})
    difference = (pair["first"] - pair["second"]).to_numpy(dtype="float64").round(_DECIMALS)
    low, high = bootstrap_interval(difference)
    return {
        "contrast": f"{level} − {other}",
        "datasets": len(difference),
        "mean_difference": float(difference.mean()) if len(difference) else float("nan"),
        "low": low,
        "high": high,
        "p_value": float(wilcoxon(pair, None)["first"]["second"]) if len(pair) > 1 else float("nan"),
    }


def bootstrap_interval(differences: FloatArray) -> tuple[float, float]:
    """Compute a 95 % percentile interval of the mean over data sets drawn with replacement, with fixed draws.

    >>> bootstrap_interval(np.array([1.0, 1.0, 1.0]))
    (1.0, 1.0)
    """
    if len(differences) < 2:
        return float("nan"), float("nan")
    rng = np.random.default_rng(_SEED)
    drawn = rng.integers(0, len(differences), (_RESAMPLES, len(differences)))
    low, high = np.quantile(differences[drawn].mean(axis=1), [(1 - _LEVEL) / 2, (1 + _LEVEL) / 2])
    return round(float(low), _DECIMALS), round(float(high), _DECIMALS)


def _verdict(effects: pd.DataFrame) -> str:
    measured = effects[(effects["measure"] == "precision_at_n") & effects["low"].notna()]
    if set(measured["factor"]) != {"form", "graph"}:
        return "not run"
    clear = set(measured["factor"][(measured["low"] > 0) | (measured["high"] < 0)])
    return {0: "neither", 2: "both"}.get(len(clear)) or clear.pop()


def _sentence(effects: pd.DataFrame, verdict: str) -> str:
    if verdict == "not run":
        return "The forms and graphs were not run on two data sets or more."
    measured = effects[effects["measure"] == "precision_at_n"].dropna()
    largest = measured.loc[measured["mean_difference"].abs().groupby(measured["factor"]).idxmax()].set_index("factor")
    words = [
        f"{line['contrast']} {line['mean_difference']:+.3f} ({line['low']:+.3f} to {line['high']:+.3f})"
        for _, line in largest.iterrows()
    ]
    which = {"neither": "Neither the form nor the graph makes", "both": "Both the form and the graph make"}
    subject = which.get(verdict, f"The {verdict} makes")
    return f"{subject} a clear difference in P@N; the largest of each: {'; '.join(words)}."
