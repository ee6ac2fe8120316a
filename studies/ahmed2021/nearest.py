"""Find the reading of the paper that comes nearest to its figures, and how much of that is chance of choosing."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pandas as pd

from penstock.bench.results import distinct_cells, pivot
from studies.ahmed2021 import paper
from studies.ahmed2021.tables import tolerance, within

_PLAIN_PARTS = ("paper", "lomst", "deep")


@dataclass(frozen=True, eq=False)
class Nearest:
    """Configurations of one method of the paper, held against its column of figures.

    `configurations` are ranked by data sets matched (the median over seeds within tolerance), then by exact matches,
    by mean absolute difference, by name. The best of many matches more than it deserves: it was chosen by the figures
    it is measured on. `held_out` therefore chooses for each data set by all the others, and `held_out_matched` counts
    on how many that choice matches: the honest number. Methods that are one configuration by different names count
    once, and `also` has the other names. In `per_set` data sets that no configuration matches have `matched_by` 0.
    """

    column: str
    configurations: pd.DataFrame
    best: str
    compared: int
    held_out: pd.DataFrame
    held_out_matched: int
    held_out_sets: int
    per_set: pd.DataFrame


def nearest_columns(rows: pd.DataFrame) -> list[str]:
    """List the columns of the paper's tables that a study tries several configurations for."""
    named = rows["paper"][(rows["part"] == "nearest") & (rows["paper"] != "")]
    return [str(column) for column in pd.unique(named)]


def nearest(rows: pd.DataFrame, column: str) -> Nearest:
    """Rank the configurations held against a column of the paper's tables.

    They are the methods of part "nearest" that name the column, and the plain methods of the paper's own parts.
    """
    figures = paper_column(column)
    wanted = (rows["sweep"] == "") & (rows["paper"] == column) & rows["part"].isin(("nearest", *_PLAIN_PARTS))
    chosen, others = _merged(distinct_cells(rows[wanted]))
    medians = pivot(chosen).reindex(index=figures.index)
    medians = medians.loc[:, medians.notna().any()]  # what ran nowhere was not compared
    ranking = _ranked(medians, figures)
    ranking["also"] = pd.Series(
        ["; ".join(others[name]) for name in ranking.index], index=ranking.index, dtype="object"
    )
    best = str(ranking.index[0]) if len(ranking) else ""
    held_out = _held_out(medians, figures)
    return Nearest(
        column=column,
        configurations=ranking,
        best=best,
        compared=len(ranking),
        held_out=held_out,
        held_out_matched=int(held_out["matches"].fillna(False).sum()),
        held_out_sets=int(held_out["median"].notna().sum()),
        per_set=_per_set(chosen, medians, figures, best),
    )


def paper_column(column: str) -> pd.Series:
    """Return the paper's figures of one method, whichever of its tables they are in.

    >>> int(paper_column("DAGMM")["PenDigits"])
    5
    """
    tables = (paper.true_positives, paper.lomst_true_positives, paper.deep_true_positives)
    for table in tables:
        if column in table:
            return table[column].rename_axis(index="dataset")
    known = ", ".join(dict.fromkeys(str(name) for table in tables for name in table))
    raise ValueError(f"The paper's tables have no column {column!r}; they have {known}.")


def _merged(rows: pd.DataFrame) -> tuple[pd.DataFrame, dict[str, list[str]]]:
    """Return the rows with one name per configuration, and the other names of each.

    A key is made of all that an outcome depends on: methods with the same keys wherever both were planned are one
    configuration, with the runs of all of them. It has the plain method's name, or that of most runs.
    """
    plain = set(rows["method"][rows["part"].isin(_PLAIN_PARTS)])
    cells: dict[str, dict[tuple[str, int | None], str]] = {}
    for method, dataset, seed, key in zip(rows["method"], rows["dataset"], rows["seed"], rows["key"], strict=True):
        cells.setdefault(method, {})[dataset, None if pd.isna(seed) else int(seed)] = key
    others: dict[str, list[str]] = {}
    for name in sorted(cells, key=lambda name: (name not in plain, -len(cells[name]))):
        same = next((kept for kept in others if _agree(cells[kept], cells[name])), None)
        if same is None:
            others[name] = []
        else:
            others[same].append(name)
            cells[same] |= cells[name]
    names = {name: kept for kept, more in others.items() for name in (kept, *more)}
    return distinct_cells(rows.assign(method=[names[method] for method in rows["method"]])), others


def _agree(first: dict[tuple[str, int | None], str], second: dict[tuple[str, int | None], str]) -> bool:
    common = first.keys() & second.keys()
    return bool(common) and all(first[cell] == second[cell] for cell in common)


def _ranked(medians: pd.DataFrame, figures: pd.Series) -> pd.DataFrame:
    difference = medians.sub(figures, axis=0)
    near = difference.abs().le(figures.map(tolerance).astype("float64"), axis=0)
    found = pd.DataFrame(
        {
            "configuration": [str(name) for name in medians.columns],
            "sets": len(figures),
            "run": difference.notna().sum().to_numpy(dtype="int64"),
            "matched": near.sum().to_numpy(dtype="int64"),
            "exact": (difference == 0).sum().to_numpy(dtype="int64"),
            "mean_abs_difference": difference.abs().mean().to_numpy(dtype="float64"),
        }
    ).sort_values(["matched", "exact", "mean_abs_difference", "configuration"], ascending=[False, False, True, True])
    return found.set_index("configuration")


def _held_out(medians: pd.DataFrame, figures: pd.Series) -> pd.DataFrame:
    """Choose for each data set the configuration that is best on all the others, and evaluate it on this one."""
    lines = {}
    for dataset in figures.index:
        others = medians.index != dataset
        ranking = _ranked(medians[others], figures[others])
        # One that ran on none of the others has shown nothing to be chosen for.
        able = ranking.index[ranking["run"] > 0]
        chosen = str(able[0]) if len(able) else ""
        median = float(medians[chosen].to_numpy()[~others][0]) if chosen else np.nan
        lines[dataset] = {"chosen": chosen, "paper": int(figures[dataset]), "median": median}
    found = pd.DataFrame.from_dict(lines, orient="index").rename_axis(index="dataset")
    found["matches"] = within(found["median"], found["paper"])
    return found


def _per_set(chosen: pd.DataFrame, medians: pd.DataFrame, figures: pd.Series, best: str) -> pd.DataFrame:
    found = pd.DataFrame({"paper": figures})
    of_best = chosen[chosen["method"] == best]
    for name, statistic in (("median", "median"), ("lowest", "min"), ("highest", "max")):
        table = pivot(of_best, statistic=statistic)  # type: ignore[arg-type]
        found[name] = table[best].reindex(figures.index) if best else np.nan
    found["matches"] = within(found["median"], figures)
    near = pd.DataFrame({name: within(medians[name], figures) for name in medians}, index=figures.index)
    found["matched_by"] = near.fillna(False).sum(axis=1).astype("int64")
    found["run_by"] = medians.notna().sum(axis=1).astype("int64")
    distance = medians.sub(figures, axis=0).abs()[sorted(medians.columns)]
    ran = distance.notna().any(axis=1)
    found["closest"] = distance[ran].idxmin(axis=1).reindex(figures.index).fillna("") if ran.any() else ""
    found["closest_median"] = [
        float(medians.loc[dataset, name]) if name else np.nan
        for dataset, name in zip(found.index, found["closest"], strict=True)
    ]
    return found
