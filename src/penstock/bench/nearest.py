"""Which reading of the paper comes nearest to its figures, and how much of that is choosing after the fact."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pandas as pd

from penstock.bench import paper
from penstock.bench.tables import pivot, within

_PLAIN_PARTS = ("paper", "lomst", "deep")


@dataclass(frozen=True, eq=False)
class Nearest:
    """Configurations of one method of the paper, held against its column of figures.

    `configurations` are ranked by data sets matched (the median over seeds within tolerance), then by exact matches,
    by mean absolute difference, by name. The best of many matches more than it deserves: it was chosen by the figures
    it is judged on. `held_out` therefore chooses for each data set by all the others, and `held_out_matched` counts on
    how many that choice matches: the honest number. In `per_set` data sets that no configuration matches have
    `matched_by` 0.
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
    """The columns of the paper's tables that a study tries several configurations for.

    >>> from penstock.bench.results import COLUMNS
    >>> nearest_columns(pd.DataFrame(columns=list(COLUMNS)))
    []
    """
    named = rows["paper"][(rows["part"] == "nearest") & (rows["paper"] != "")]
    return [str(column) for column in pd.unique(named)]


def nearest(rows: pd.DataFrame, column: str) -> Nearest:
    """Rank the configurations held against a column of the paper's tables.

    They are the methods of part "nearest" that name the column, and the plain methods of the paper's own parts.

    >>> from penstock.bench.results import COLUMNS
    >>> found = nearest(pd.DataFrame(columns=list(COLUMNS)), "NS-NMF")
    >>> found.best, found.compared, len(found.per_set)
    ('', 0, 20)
    """
    figures = paper_column(column)
    wanted = (rows["sweep"] == "") & (rows["paper"] == column) & rows["part"].isin(("nearest", *_PLAIN_PARTS))
    chosen = rows[wanted].drop_duplicates(["method", "dataset", "seed", "key"])
    medians = pivot(chosen).reindex(index=figures.index)
    medians = medians.loc[:, medians.notna().any()]  # what ran nowhere was not compared
    ranking = _ranked(medians, figures)
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
    """The paper's figures of one method, whichever of its tables they are in.

    >>> int(paper_column("DAGMM")["PenDigits"])
    5
    """
    tables = (paper.true_positives, paper.lomst_true_positives, paper.deep_true_positives)
    for table in tables:
        if column in table:
            return table[column].rename_axis(index="dataset")
    known = ", ".join(dict.fromkeys(str(name) for table in tables for name in table))
    raise ValueError(f"The paper's tables have no column {column!r}; they have {known}.")


def _ranked(medians: pd.DataFrame, figures: pd.Series) -> pd.DataFrame:
    lines = []
    for name in medians.columns:
        difference = medians[name] - figures
        lines.append(
            {
                "configuration": str(name),
                "sets": len(figures),
                "run": int(difference.notna().sum()),
                "matched": int(within(medians[name], figures).fillna(False).sum()),
                "exact": int((difference == 0).sum()),
                "mean_abs_difference": float(difference.abs().mean()),
            }
        )
    columns = ["configuration", "sets", "run", "matched", "exact", "mean_abs_difference"]
    found = pd.DataFrame(lines, columns=columns).sort_values(
        ["matched", "exact", "mean_abs_difference", "configuration"], ascending=[False, False, True, True]
    )
    return found.set_index("configuration")


def _held_out(medians: pd.DataFrame, figures: pd.Series) -> pd.DataFrame:
    """For each data set the configuration that is best on all the others, and how it does on this one."""
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
