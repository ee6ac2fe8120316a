"""What the claims of the paper are checked on: the same tables, as the paper prints them and as we ran them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal

import pandas as pd

from penstock.bench import paper
from penstock.bench.chosen_rows import rename_to_columns
from penstock.bench.run_times import aloi_times
from penstock.bench.sweeps import Sweep, sweep_table
from penstock.bench.tables import PAPER_TABLES, paper_figures, pivot

Holds = Literal["yes", "no", "undecided", "not run", "cannot be checked", "not comparable"]


@dataclass(frozen=True)
class Finding:
    """What came of a claim, in words, and whether it holds."""

    text: str
    holds: Holds


def yes_or_no(holds: bool) -> Holds:
    """
    >>> yes_or_no(True)
    'yes'
    """
    return "yes" if holds else "no"


NOT_RUN = Finding("not run", "not run")
NO_TABLE = Finding("no table of the paper shows it", "cannot be checked")


@dataclass(frozen=True, eq=False)
class Source:
    """The three tables of detections (twenty data sets; NaN where there is no result), p, and minutes on ALOI.

    `rows` are those of the study, None for the paper: what it gives no table for cannot be recomputed from it.
    `time_marks` are of the methods whose times are those of a documented other way to compute the same, in words.
    """

    tables: dict[str, pd.DataFrame]
    p: pd.Series
    minutes: pd.Series
    rows: pd.DataFrame | None
    time_marks: dict[str, str] = field(default_factory=dict)
    _sweeps: dict[str, Sweep] = field(default_factory=dict)  # several claims read the same one: made once

    def table_with(self, methods: Sequence[str]) -> pd.DataFrame:
        """The columns of these methods, from the first table that has them all."""
        for table in self.tables.values():
            if set(methods) <= set(table.columns):
                return table[list(methods)]
        raise ValueError(f"No table of the paper has all of {', '.join(methods)}.")

    def sweep(self, name: str) -> Sweep | None:
        """A sweep of the study; None for the paper, which shows none."""
        if self.rows is None:
            return None
        if name not in self._sweeps:
            self._sweeps[name] = sweep_table(self.rows, name)
        return self._sweeps[name]

    def timed(self, text: str, methods: Sequence[str], holds: bool) -> Finding:
        """What came of a claim about times: another way to compute has another time, and says nothing of the claim."""
        marked = {name: mark for name, mark in self.time_marks.items() if name in methods}
        if not marked:
            return Finding(text, yes_or_no(holds))
        return Finding(f"{text} ({'; '.join(f'{name}: {mark}' for name, mark in marked.items())})", "not comparable")


def paper_source() -> Source:
    """The paper's own tables.

    >>> int(paper_source().table_with(["NS-NMF", "LoMST"]).loc["Glass", "LoMST"])
    3
    """
    tables = {name: paper_figures(name) for name in PAPER_TABLES}
    return Source(tables, paper.characteristics["p"], paper.run_times["minutes"], None)


def run_source(rows: pd.DataFrame) -> Source:
    """The same tables from a study: medians over seeds on the paper's data sets.

    >>> from penstock.bench.results import COLUMNS
    >>> bool(run_source(pd.DataFrame(columns=list(COLUMNS))).minutes.isna().all())
    True
    """
    tables = {}
    for name in PAPER_TABLES:
        figures = paper_figures(name)
        ours = pivot(rename_to_columns(rows, list(figures.columns)))
        tables[name] = ours.reindex(index=figures.index, columns=figures.columns)
    times = aloi_times(rows)
    marks = {str(method): mark for method, mark in times["mark"].items() if mark}
    return Source(tables, paper.characteristics["p"], times["our_minutes"], rows, marks)
