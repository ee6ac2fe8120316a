"""Hold what the sections are written from: the rows of the study, and tables that several sections read."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import pandas as pd

from penstock.bench.results import Results, compare_rows, saw_labels
from penstock.bench.significance import Comparison
from studies.ahmed2021 import paper
from studies.ahmed2021.claim_table import check_claims
from studies.ahmed2021.graph_effect import GraphEffect, graph_effect
from studies.ahmed2021.nearest import Nearest, nearest, nearest_columns
from studies.ahmed2021.overlap import Overlap
from studies.ahmed2021.rows import fair_rows, main_rows, rename_to_columns
from studies.ahmed2021.tables import PAPER_TABLES, Performance, detections, performance

if TYPE_CHECKING:
    from studies.ahmed2021.plant import PlantTables


@dataclass(frozen=True, eq=False)
class Material:
    """A study, with the simulated plant's tables and the data sets that share rows, if these are known."""

    results: Results
    plant: PlantTables | None = None
    overlaps: Sequence[Overlap] = ()

    @property
    def rows(self) -> pd.DataFrame:
        return self.results.rows

    @cached_property
    def main(self) -> pd.DataFrame:
        """Methods as such: without sweeps, grids and configurations."""
        return main_rows(self.rows)

    @cached_property
    def fair(self) -> pd.DataFrame:
        """Methods as such that do not see the labels."""
        return fair_rows(self.main)

    @cached_property
    def oracles(self) -> list[str]:
        """Methods that saw the labels."""
        return [str(method) for method in pd.unique(self.main["method"][saw_labels(self.main)])]

    @cached_property
    def detections(self) -> dict[str, pd.DataFrame]:
        """Of the paper's tables those that something was run for."""
        tables = {name: detections(self.rows, name) for name in PAPER_TABLES}
        return {name: table for name, table in tables.items() if (table["runs"] > 0).any()}

    @cached_property
    def offline(self) -> Comparison:
        """The four methods that the paper tests."""
        return compare_rows(rename_to_columns(self.rows, paper.OFFLINE), paper.OFFLINE)

    @cached_property
    def everyone(self) -> Comparison:
        return compare_rows(self.fair)

    @cached_property
    def claims(self) -> pd.DataFrame:
        return check_claims(self.results, self.plant)

    @cached_property
    def graph_effect(self) -> GraphEffect:
        return graph_effect(self.rows)

    @cached_property
    def performance(self) -> Performance:
        """Table 3."""
        return performance(self.rows)

    @cached_property
    def nearest(self) -> list[Nearest]:
        found = [nearest(self.rows, column) for column in nearest_columns(self.rows)]
        return [each for each in found if each.compared]


def in_paper_order(names: Sequence[str]) -> list[str]:
    """The names of data sets: the paper's in the order of its tables of detections, then the others.

    >>> in_paper_order(["mine.csv", "Pima", "Glass"])
    ['Glass', 'Pima', 'mine.csv']
    """
    known = [str(name) for name in paper.true_positives.index]
    return sorted(names, key=lambda name: known.index(name) if name in known else len(known))
