"""Rank the methods seed by seed, to see whether another seed would change the conclusions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np
import pandas as pd

from penstock.bench.results import missing_cells, pivot
from penstock.bench.significance import friedman, mean_ranks

_SPREAD = ["dataset", "method", "seeds", "median", "lowest", "highest", "deviation"]


@dataclass(frozen=True, eq=False)
class Stability:
    """How the ranking of methods depends on the seed.

    `seeds` are those that all methods were run with; a method that takes none has the same result for all. `mean_ranks`
    (seeds × methods) are over `datasets`, which every method finished with every seed. `agree_on_best` is the share of
    pairs of seeds with the same best method, `kendalls_w` the agreement of the seeds on the order of methods (1 is
    full, 0 none, corrected for ties); `per_dataset` has both for each data set alone. `spread` is that of true
    detections over the seeds. NaN: too few to say.
    """

    seeds: list[int]
    datasets: list[str]
    mean_ranks: pd.DataFrame
    best: pd.Series
    agree_on_best: float
    kendalls_w: float
    per_dataset: pd.DataFrame
    spread: pd.DataFrame
    left_out: pd.DataFrame


def stability(rows: pd.DataFrame, measure: str = "precision_at_n", methods: Sequence[str] | None = None) -> Stability:
    """Rank the methods with each seed by itself.

    >>> from studies.ahmed2021.rows import COLUMNS
    >>> stability(pd.DataFrame(columns=list(COLUMNS))).seeds
    []
    """
    if methods is not None:
        rows = rows[rows["method"].isin(methods)]
    seeds = _common_seeds(rows)
    by_seed = {seed: pivot(rows[(rows["seed"] == seed) | rows["seed"].isna()], measure) for seed in seeds}
    whole = pivot(rows, measure)
    kept = list(whole.columns[whole.notna().any()])
    by_seed = {seed: table.reindex(index=whole.index, columns=kept) for seed, table in by_seed.items()}
    gaps = sum((table.isna().astype(int) for table in by_seed.values()), start=0 * whole[kept].isna().astype(int))
    complete = gaps.index[(gaps == 0).all(axis=1)] if seeds and kept else whole.index[:0]
    tables = {seed: table.loc[complete] for seed, table in by_seed.items()}
    ranks = _ranks_by_seed(tables)
    return Stability(
        seeds=seeds,
        datasets=[str(name) for name in complete],
        mean_ranks=ranks,
        best=ranks.apply(_best_of, axis=1) if len(ranks) else pd.Series(dtype="object"),
        agree_on_best=_agreement([_best_of(line) for _, line in ranks.iterrows()]),
        kendalls_w=kendalls_w(-ranks),
        per_dataset=_per_dataset(tables),
        spread=_spread(rows),
        left_out=missing_cells(rows, whole[kept].mask(gaps > 0), "no number with every seed"),
    )


def kendalls_w(table: pd.DataFrame) -> float:
    """Agreement of judges (rows) on the order of methods (columns): 1 if all order alike, 0 if there is no agreement.

    Ties share ranks and are corrected for; NaN for fewer than two judges or methods, or if all is tied.

    >>> kendalls_w(pd.DataFrame({"A": [3, 9], "B": [2, 8], "C": [1, 0]}))
    1.0
    """
    if min(table.shape) < 2 or (table.nunique(axis=1) == 1).all():
        return float("nan")
    result = friedman(table)
    return min(1.0, result.statistic / (result.n * (result.k - 1)))


def _common_seeds(rows: pd.DataFrame) -> list[int]:
    """Return the seeds that every method was planned with, of those that take one."""
    seeded = rows[rows["seed"].notna()]
    planned = [{int(seed) for seed in seeds} for _, seeds in seeded.groupby("method")["seed"]]
    return sorted(set.intersection(*planned)) if planned else []


def _ranks_by_seed(tables: dict[int, pd.DataFrame]) -> pd.DataFrame:
    usable = {seed: table for seed, table in tables.items() if len(table) and table.shape[1] > 1}
    ranks = {seed: _mean_ranks(table) for seed, table in usable.items()}
    found = pd.DataFrame.from_dict(ranks, orient="index")
    return found.rename_axis(index="seed", columns="method")


def _mean_ranks(table: pd.DataFrame) -> pd.Series:
    """Mean ranks; over a single data set too, where they are its ranks."""
    return mean_ranks(table) if len(table) > 1 else table.iloc[0].rank(ascending=False)


def _best_of(ranks: pd.Series) -> str:
    return " = ".join(str(method) for method in ranks.index[ranks == ranks.min()])


def _agreement(best: Sequence[str]) -> float:
    pairs = list(combinations(best, 2))
    return float(np.mean([first == second for first, second in pairs])) if pairs else float("nan")


def _per_dataset(tables: dict[int, pd.DataFrame]) -> pd.DataFrame:
    lines = {}
    for dataset in dict.fromkeys(name for table in tables.values() for name in table.index):
        results = pd.DataFrame({seed: table.loc[dataset] for seed, table in tables.items()}).T
        best = [_best_of(-line) for _, line in results.iterrows()]
        lines[dataset] = {"agree_on_best": _agreement(best), "kendalls_w": kendalls_w(results)}
    found = pd.DataFrame.from_dict(lines, orient="index", columns=["agree_on_best", "kendalls_w"])
    return found.rename_axis(index="dataset")


def _spread(rows: pd.DataFrame) -> pd.DataFrame:
    done = rows[(rows["status"] == "ok") & rows["true_detections"].notna() & rows["seed"].notna()]
    if done.empty:
        return pd.DataFrame(columns=_SPREAD)
    counts = done.groupby(["dataset", "method"], sort=False)["true_detections"]
    found = counts.agg(seeds="size", median="median", lowest="min", highest="max", deviation="std")
    return found.reset_index()[_SPREAD]
