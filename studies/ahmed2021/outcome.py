"""What a run shows: where NS-NMF collapses, what other readings of it change, and what the controls match."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pandas as pd

from penstock.bench.results import Results, compare_rows, pivot
from penstock.bench.significance import Comparison, friedman, mean_ranks
from studies.ahmed2021 import paper
from studies.ahmed2021.claim_table import check_claims
from studies.ahmed2021.graph_effect import GraphEffect, bootstrap_interval, graph_effect
from studies.ahmed2021.nearest import Nearest, nearest, nearest_columns, paper_column
from studies.ahmed2021.plant import PlantTables
from studies.ahmed2021.rows import main_rows, rename_to_columns
from studies.ahmed2021.tables import OFFLINE, within

COLLAPSED = 0.05  # of ‖A‖²: what `penstock.CollapsedFactorsWarning` warns of
CONTROLS = ("from mean", "from median", "row norm", "PCA-5 residual")
MATCHED_COLUMNS = (*paper.true_positives, "LoMST", "AER", "DAGMM")
_DETAILS = ("explained", "norm_rank_correlation", "rows_holding_most", "structure_ratio")
_READINGS = "readings"
# What the paper leaves open: the column that it changes, and the configurations that differ in nothing else.
LEFT_OPEN: dict[str, tuple[str, tuple[str, ...]]] = {
    "how far the solver goes": (
        "NS-NMF",
        tuple(
            f"NS-NMF: {fit}, inverse" for fit in ("converged", "3 steps", "50 steps", "SGD 700", "SGD 200, short steps")
        ),
    ),
    "how lengths become similarities": (
        "NS-NMF",
        tuple(f"NS-NMF: converged, {kind}" for kind in ("inverse", "path", "relative", "binary", "normalized")),
    ),
    "the order of the stream": (
        "Online NS-NMF",
        tuple(f"Online NS-NMF: inverse, steps 50, {order}" for order in ("file", "shuffled")),
    ),
    "the steps for one sample": (
        "Online NS-NMF",
        tuple(f"Online NS-NMF: inverse, steps {steps}, file" for steps in (1, 50)),
    ),
    "where U and V grow": ("Online NS-NMF", ("Online NS-NMF", "Online NS-NMF, Algorithm 2 as printed")),
    "the rule for LoMST's k": ("LoMST", tuple(f"LoMST: {rule}, k ≤ 50" for rule in ("sd", "stable", "raw sd"))),
    "the largest k of LoMST": ("LoMST", tuple(f"LoMST: stable, k ≤ {largest}" for largest in (50, 80))),
}


@dataclass(frozen=True, eq=False)
class Outcome:
    """A run, complete or not, with the tables that several sections read; `plant` if its searches were made."""

    results: Results
    plant: PlantTables | None = None

    @property
    def rows(self) -> pd.DataFrame:
        return self.results.rows

    @cached_property
    def main(self) -> pd.DataFrame:
        """Methods as such: without sweeps, grids and readings."""
        return main_rows(self.rows)

    @cached_property
    def offline(self) -> Comparison:
        """The four methods that the paper tests."""
        return compare_rows(rename_to_columns(self.rows, paper.OFFLINE), paper.OFFLINE)

    @cached_property
    def claims(self) -> pd.DataFrame:
        return check_claims(self.results, self.plant)

    @cached_property
    def graph_effect(self) -> GraphEffect:
        return graph_effect(self.rows)

    @cached_property
    def nearest(self) -> dict[str, Nearest]:
        found = {column: nearest(self.rows, column) for column in nearest_columns(self.rows)}
        return {column: each for column, each in found.items() if each.compared > 1}

    @cached_property
    def collapse(self) -> pd.DataFrame:
        return collapse_table(self.rows)

    @cached_property
    def readings(self) -> pd.DataFrame:
        return reading_table(self.rows)

    @cached_property
    def matches(self) -> pd.DataFrame:
        return match_table(self.rows, self.nearest)

    @cached_property
    def left_open(self) -> pd.DataFrame:
        return left_open_table(self.rows)

    @cached_property
    def datasets(self) -> list[str]:
        """Those of the twenty that are in this run, in the paper's order."""
        return planned_datasets(self.rows)


def collapse_table(rows: pd.DataFrame) -> pd.DataFrame:
    """Show what the factors of the first reading, the paper's, do on each data set; medians over the seeds.

    `explained` is ‖WH‖²/‖A‖², `norm_rank_correlation` Spearman's of score and row norm, `rows_holding_most` the fewest
    rows with 90 % of ‖W‖², of `n`; `structure_ratio` is ‖S‖²/‖A‖². The most collapsed data set comes first.

    """
    details = _reading_details(rows)
    if details.empty:
        return pd.DataFrame(columns=["dataset", "n", *_DETAILS])
    first = details[details["method"] == details["method"].iloc[0]]
    medians: pd.DataFrame = first.groupby("dataset")[["n", *_DETAILS]].median()
    return medians.sort_values("explained").reset_index()


def reading_table(rows: pd.DataFrame) -> pd.DataFrame:
    """Rank each reading of NS-NMF among NMF, GNMF and SNMF by P@N, on the data sets that all four finished."""
    details = _reading_details(rows)
    share = details.groupby(["method", "dataset"])["explained"].median() if len(details) else pd.Series(dtype=float)
    return _ranked_readings(rows, rows[rows["part"] == _READINGS], share)


def favourable_readings(rows: pd.DataFrame) -> pd.DataFrame:
    """Rank all configurations of NS-NMF that were run, readings and grid, the best mean rank first."""
    grid = (rows["part"] == "nearest") & (rows["paper"] == "NS-NMF")
    found = _ranked_readings(rows, rows[grid | (rows["part"] == _READINGS)], pd.Series(dtype=float))
    complete: pd.DataFrame = found[found["data sets"] == found["data sets"].max()]
    return complete.sort_values("NS-NMF", kind="stable")


def lead(rows: pd.DataFrame, reading: str) -> tuple[str, float, float, float]:
    """Return which of NMF, GNMF and SNMF has the best mean P@N, and how far a reading is above it, with 95 % limits."""
    table = _four(rows, rows[rows["method"] == reading])[reading].dropna()
    best = str(table[OFFLINE[1:]].mean().idxmax())
    difference = (table["NS-NMF"] - table[best]).to_numpy(dtype="float64")
    return best, float(difference.mean()), *bootstrap_interval(difference)


def match_table(rows: pd.DataFrame, grids: dict[str, Nearest]) -> pd.DataFrame:
    """Count the data sets on which each method, and each control, matches the paper's columns: "7 (3 exactly)".

    A count of matches says something only if that of a control, which is not the method, is lower.
    """
    planned = planned_datasets(rows)
    medians = pivot(rename_to_columns(rows, MATCHED_COLUMNS))
    controls = pivot(rows[rows["method"].isin(CONTROLS)])
    lines: dict[str, dict[str, str | None]] = {"the method": {}, "nearest of its grid": {}, "the same, held out": {}}
    lines |= {control: {} for control in CONTROLS}
    for column in MATCHED_COLUMNS:
        figures = paper_column(column).reindex(planned)
        lines["the method"][column] = _matched(medians.get(column), figures)
        if column in grids:
            best, held = grids[column].configurations.iloc[0], grids[column].held_out
            lines["nearest of its grid"][column] = _counted(best["matched"], best["exact"], best["run"], len(figures))
            exact = (held["median"] == held["paper"]).sum()
            lines["the same, held out"][column] = _counted(
                grids[column].held_out_matched, exact, grids[column].held_out_sets, len(figures)
            )
        for control in CONTROLS:
            lines[control][column] = _matched(controls.get(control), figures)
    return pd.DataFrame.from_dict(lines, orient="index").reindex(columns=MATCHED_COLUMNS).reset_index(names="who")


def planned_datasets(rows: pd.DataFrame) -> list[str]:
    """List those of the paper's twenty data sets that a study has, in the paper's order."""
    there = set(rows["dataset"])
    return [str(name) for name in paper.true_positives.index if name in there]


def left_open_table(rows: pd.DataFrame) -> pd.DataFrame:
    """Count, for each choice that the paper leaves open, the data sets that this choice alone moves.

    `moved` are those that some of its values match and others do not, of the `data sets` that all values finished;
    `most` is the largest change of the number of true detections on one of them.
    """
    medians = pivot(rows[(rows["sweep"] == "") & (rows["part"] != _READINGS)])
    lines = []
    for choice, (column, methods) in LEFT_OPEN.items():
        complete = medians.reindex(columns=list(methods)).dropna()
        complete = complete[complete.index.isin(planned_datasets(rows))]
        if complete.empty:
            continue
        figures = paper_column(column).reindex(complete.index)
        matched = pd.DataFrame({name: within(complete[name], figures) for name in complete})
        change = complete.max(axis=1) - complete.min(axis=1)
        lines.append(
            {
                "choice": choice,
                "of": column,
                "values": len(methods),
                "data sets": len(complete),
                "moved": int((matched.any(axis=1) & ~matched.all(axis=1)).sum()),
                "most": float(change.max()),
                "on": str(change.idxmax()),
            }
        )
    return pd.DataFrame(lines, columns=["choice", "of", "values", "data sets", "moved", "most", "on"])


def _matched(ours: pd.Series | None, figures: pd.Series) -> str | None:
    if ours is None or ours.reindex(figures.index).isna().all():
        return None
    ours = ours.reindex(figures.index)
    matched = int(within(ours, figures).fillna(False).sum())
    return _counted(matched, int((ours == figures).sum()), int(ours.notna().sum()), len(figures))


def _counted(matched: int, exact: int, ran: int, planned: int) -> str:
    return f"{matched}{f' of {ran}' if ran < planned else ''} ({exact})"


def _reading_details(rows: pd.DataFrame) -> pd.DataFrame:
    """Return the figures that `GraphChoice` keeps of its factors, a line per cell of the readings."""
    cells = rows[(rows["part"] == _READINGS) & (rows["status"] == "ok")]
    kept = [{name: detail.get(name, np.nan) for name in _DETAILS} for detail in cells["detail"]]
    return cells[["method", "dataset", "n"]].reset_index(drop=True).join(pd.DataFrame(kept, columns=list(_DETAILS)))


def _four(rows: pd.DataFrame, cells: pd.DataFrame) -> dict[str, pd.DataFrame]:
    """Return P@N of each method of `cells`, as NS-NMF, and of the other three; data sets × four."""
    others = pivot(rename_to_columns(rows, OFFLINE[1:]), "precision_at_n").reindex(columns=OFFLINE[1:])
    ours = pivot(cells, "precision_at_n")
    return {str(name): others.assign(**{"NS-NMF": ours[name]}).reindex(columns=OFFLINE) for name in ours}


def _ranked_readings(rows: pd.DataFrame, cells: pd.DataFrame, share: pd.Series) -> pd.DataFrame:
    lines = []
    for name, table in _four(rows, cells).items():
        complete = table.dropna()
        if len(complete) < 2:
            continue
        ranks, test = mean_ranks(complete), friedman(complete)
        low = share.get(name, pd.Series(dtype=float)) <= COLLAPSED
        line = {"reading": name, "data sets": len(complete), "collapsed": int(low.sum())}
        lines.append(line | {"mean P@N": complete["NS-NMF"].mean(), **ranks[OFFLINE], "Friedman's p": test.p_value})
    return pd.DataFrame(lines, columns=["reading", "data sets", "collapsed", "mean P@N", *OFFLINE, "Friedman's p"])
