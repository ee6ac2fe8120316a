"""Show how results change with one parameter, all others fixed."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pandas as pd

from penstock.bench.results import missing_cells
from penstock.bench.significance import without_last_bits

_MEASURES = ["precision_at_n", "average_precision", "cpu_seconds"]
_PER_SET = ["base", "value", "dataset", "precision_at_n", "average_precision", "rank", "cpu_seconds", "runs"]
_SUMMARY = ["base", "value", "precision_at_n", "average_precision", "mean_rank", "cpu_seconds", "datasets"]


@dataclass(frozen=True, eq=False)
class Sweep:
    """One sweep: means per method (`base`) and value, the same per data set, and what is missing.

    Means are over the data sets on which every value of that method ran, so that values are compared on the same ones.
    Ranks are among the values, 1 for the highest P@N.
    """

    name: str
    summary: pd.DataFrame
    per_set: pd.DataFrame
    left_out: pd.DataFrame


def sweep_names(rows: pd.DataFrame) -> list[str]:
    """List the sweeps of a study, in its order."""
    return [str(name) for name in pd.unique(rows["sweep"]) if name]


def sweep_table(rows: pd.DataFrame, sweep: str) -> Sweep:
    """Summarise a sweep. Values are in ascending order, words after numbers."""
    chosen = rows[rows["sweep"] == sweep]
    per_set, summary, left_out = [], [], []
    for base in pd.unique(chosen["base"]):
        part = chosen[chosen["base"] == base]
        found = _medians(part).assign(base=base)
        per_set.append(found)
        summary.append(_summary(_complete(found)).assign(base=base))
        left_out.append(_gaps(part, found).assign(base=base))
    return Sweep(
        sweep,
        _joined(summary, _SUMMARY),
        _joined(per_set, _PER_SET),
        _joined(left_out, ["base", "value", "dataset", "why"]),
    )


def _medians(part: pd.DataFrame) -> pd.DataFrame:
    """Per value and data set the medians over seeds, and ranks among the values within a data set; equal ones tie."""
    values = sorted(dict.fromkeys(part["value"]), key=_order)
    place = {value: number for number, value in enumerate(values)}
    known = part.assign(place=[place[value] for value in part["value"]])
    pairs = known[["place", "dataset"]].drop_duplicates().sort_values("place", kind="stable")
    done = known[(known["status"] == "ok") & known["precision_at_n"].notna()].groupby(["place", "dataset"])
    medians = done[_MEASURES].median().assign(runs=done.size()).reset_index()
    found = pairs.merge(medians, on=["place", "dataset"], how="left").astype({"runs": "Int64"})
    found["runs"] = found["runs"].fillna(0).astype("int64")
    found["value"] = pd.Series([values[number] for number in found["place"]], dtype="object")
    found["precision_at_n"] = without_last_bits(found["precision_at_n"])
    found["rank"] = found.groupby("dataset")["precision_at_n"].rank(ascending=False)
    return found.drop(columns="place")


def _complete(found: pd.DataFrame) -> pd.DataFrame:
    """Only the data sets on which all values ran."""
    n_values = len(dict.fromkeys(found["value"]))
    ran = found[found["precision_at_n"].notna()].groupby("dataset").size()
    return found[found["dataset"].isin(ran.index[ran == n_values])]


def _summary(complete: pd.DataFrame) -> pd.DataFrame:
    lines = []
    for value in dict.fromkeys(complete["value"]):
        same = complete[[other == value for other in complete["value"]]]
        means = same[[*_MEASURES, "rank"]].mean().rename({"rank": "mean_rank"}).to_dict()
        lines.append({"value": value, **means, "datasets": len(same)})
    found = pd.DataFrame(lines, columns=["value", *_MEASURES, "mean_rank", "datasets"])
    found["value"] = pd.Series([line["value"] for line in lines], dtype="object")
    return found


def _gaps(part: pd.DataFrame, found: pd.DataFrame) -> pd.DataFrame:
    """List the cells without a result; a value that one data set was not planned for is one too."""
    wide = found.assign(text=found["value"].map(repr)).pivot(index="dataset", columns="text", values="precision_at_n")
    gaps = missing_cells(part.assign(method=part["value"].map(repr)), wide)
    values = {repr(value): value for value in found["value"]}
    gaps["value"] = pd.Series([values[text] for text in gaps["method"]], dtype="object")
    return gaps


def _joined(parts: list[pd.DataFrame], columns: list[str]) -> pd.DataFrame:
    filled = [part[columns] for part in parts if len(part)]
    return pd.concat(filled, ignore_index=True) if filled else pd.DataFrame(columns=columns)


def is_number(value: Any) -> bool:
    """Tell whether a value of a parameter is a number."""
    return isinstance(value, int | float) and not isinstance(value, bool)


def _order(value: Any) -> tuple[bool, float, str]:
    return (not is_number(value), float(value) if is_number(value) else 0.0, str(value))
