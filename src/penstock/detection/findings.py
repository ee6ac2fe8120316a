"""What was found in a table, with all that is needed to show it, explain it and repeat it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from penstock._parameters import check_whole_number
from penstock._types import FloatArray, IndexArray
from penstock.columns import ColumnReport, InputChoice
from penstock.detection._explaining import Explainer, Explanation
from penstock.detection._parts import Contributions, JudgedPart, rebuilds
from penstock.detection._wording import HOW_TO_RATES, LIKE_THE_LAST, ONLY_RANKS, how_rare, rank_in_words, rows_that
from penstock.explain import Agreement, Events, RuleTree, event_days
from penstock.io import Note, Table

_NAMED_VARIABLES = 3  # in the list of rows


@dataclass(frozen=True, eq=False)
class Findings:
    """The answer to `penstock.detect`: scored rows, the flagged ones, and the events that these make up.

    All arrays have one entry per row of `table`, in order of time; where the table has groups, group by group.

    table : as it was read.
    checks, inputs : what is known of each column, and which of them were used, encoded or left out.
    values, expected : the inputs and what they are compared with, both in the user's units. Expected is the mean of the
        usual rows most like a finding, NaN for other rows; but of a method that rebuilds rows (`rebuilt`), what it
        rebuilds of each row that was judged.
    scores : high is anomalous; NaN where a row was not judged. With several modes in units of the mode's usual score;
        those of `penstock.Detector` stay what they are: 0 is usual in every mode, and less is possible.
    seen : the share of the inputs that the row has readings of.
    modes : the operating mode of each row ("all" where no modes were given).
    judged, trained, flags : which rows have a score, were learnt from, and are findings.
    threshold : scores above it are findings (of a list of the top N: midway between the last one and the next; if these
        are equal it is their score, and of the rows with that score the earlier ones are findings).
    grouped : the events, with `events` as their table.
    parts : the model of each mode, and where its rows are.
    units : per input, its unit, "" if unknown.
    notes : everything that was changed, left out or odd, in the order in which it came up.
    settings : what was asked for and what it ran on, to repeat it.
    agreement : how the findings compare with a label column, if there is one.
    rates : of findings of `penstock.Detector`, the share of normal rows (of the mode) that score at least as high, NaN
        for other rows. None where there is no such estimate, and only the rank of a score is known: for other methods,
        where the rows judged are those learnt from, and where most rows are like the one before (a note says so).
    threshold_rate : and the share of normal rows above the threshold, of all modes together, where there are several.
    told : of findings of `penstock.Detector`, what makes up their scores; None for other methods.
    """

    table: Table
    checks: tuple[ColumnReport, ...]
    inputs: InputChoice
    values: pd.DataFrame
    expected: pd.DataFrame
    scores: FloatArray
    seen: FloatArray
    modes: NDArray[np.str_]
    judged: NDArray[np.bool_]
    trained: NDArray[np.bool_]
    flags: NDArray[np.bool_]
    threshold: float
    grouped: Events
    parts: tuple[JudgedPart, ...]
    units: Mapping[str, str]
    notes: tuple[Note, ...]
    settings: Mapping[str, Any]
    agreement: Agreement | None = None
    rates: FloatArray | None = None
    threshold_rate: float | None = None
    told: Contributions | None = None

    @cached_property
    def events(self) -> pd.DataFrame:
        """One row per event, in order of the rows: start, end, duration, rows, peak, peak_score, severity, rank …

        Of a table with groups, also `group`; of one without time, start, end and peak are row numbers of the source.
        For `penstock.Detector`, `false_alarm_rate` (that of the peak) is in place of the severity where `rates` are
        known, and elsewhere `standing`, such as "rank 3 of 4,177": the peak among all rows that could be findings.
        """
        table = self.grouped.table
        if self.told is None:
            return table
        ((name, values),) = self._graded(table["peak_row"].to_numpy()).items()
        return table.rename(columns={"severity": name}).assign(**{name: values})

    @cached_property
    def days(self) -> pd.DataFrame:
        """The days that findings fall on: rows, events and the highest score of each. Empty without time stamps."""
        if self.table.time is None:
            return pd.DataFrame(columns=["rows", "events", "highest", "first", "last"], index=pd.Index([], name="day"))
        return event_days(self.flags, self.scores, self.table.time, self.grouped.of_row)

    @cached_property
    def ranked(self) -> IndexArray:
        """All findings, the highest score first, of equals the earlier: positions in the table."""
        rows = np.flatnonzero(self.flags)
        return rows[np.argsort(-self.scores[rows], kind="stable")]

    def top(self, n: int | None = None) -> pd.DataFrame:
        """The n findings with the highest scores (all if None), best first: the paper's list for the manager.

        Columns: rank, time (if there is one), group (if there is one), row (as in the source, from 0), score, severity
        (or `false_alarm_rate` or `standing`, as in `events`), event, mode, seen, and the variables, but no settings,
        with the largest residuals (or the largest part of the score, where the detector tells it).
        """
        if n is not None:
            check_whole_number("n", n, least=1)
        rows = self.ranked[:n]
        columns: dict[str, Any] = {"rank": np.arange(1, len(rows) + 1)}
        if self.table.time is not None:
            columns["time"] = self.table.time[rows]
        if self.table.group is not None:
            columns["group"] = self.table.group.to_numpy()[rows]
        columns |= {
            "row": self.table.values.index[rows],
            "score": self.scores[rows],
            **self._graded(rows),
            "event": self.grouped.of_row[rows],
            "mode": self.modes[rows],
            "seen": self.seen[rows],
            "variables": [", ".join(names) for names in self._worst_variables(rows)],
        }
        return pd.DataFrame(columns).set_index("rank")

    @property
    def severity(self) -> FloatArray:
        """Scores in units of the threshold; NaN where that is not positive, and for `penstock.Detector`."""
        if self.threshold > 0 and self.told is None:
            return self.scores / self.threshold
        return np.full(len(self.scores), np.nan)

    @property
    def rebuilt(self) -> bool:
        """Whether `expected` is what the method rebuilds of a row, as NMF and its kin do."""
        return rebuilds(self.parts[0].part.detector)

    @property
    def names(self) -> tuple[str, ...]:
        """Of the inputs, as in `values`."""
        return tuple(self.values.columns)

    @property
    def self_judged(self) -> bool:
        """Whether the rows judged are those learnt from: then a score has a rank among them, and no rate."""
        return bool(self.trained.any() and not (self.judged & ~self.trained).any())

    @property
    def caution(self) -> str:
        """What findings among the rows learnt from do not say; "" for others."""
        if not (self.self_judged and self.flags.any()):
            return ""
        rateless = self.told is None or any(note.kind == LIKE_THE_LAST for note in self.notes)
        return ONLY_RANKS if rateless else f"{ONLY_RANKS} {HOW_TO_RATES}"

    def standing(self, position: int) -> str:
        """The rank of a row's score among all rows that could be findings, such as "rank 3 of 4,177".

        position : of the row in the table.
        """
        scores = self._ascending
        below, up_to = (int(np.searchsorted(scores, self.scores[position], side)) for side in ("left", "right"))
        several = len(self.parts) > 1
        return rank_in_words(len(scores) - up_to, up_to - below, len(scores), over_all_modes=several)

    def rarity(self, position: int) -> str:
        """How many normal rows score as high as a finding, in words, or its `standing`; "" for other methods.

        position : of the finding in the table.
        """
        if self.rates is None:
            return "" if self.told is None else self.standing(position)
        rate, beyond = float(self.rates[position]), self._is_extrapolated(position)
        return rows_that(rate, "scores this high", "score this high", extrapolated=beyond)

    def rarity_figure(self, position: int, *, short: bool = False) -> str:
        """The figure in `rarity`, such as "1 in 4,600"; `short`: for a column of figures."""
        if self.rates is None:
            return self.rarity(position)
        return how_rare(float(self.rates[position]), extrapolated=self._is_extrapolated(position), short=short)

    def _is_extrapolated(self, position: int) -> bool:
        """Whether the rate of a finding is smaller than the training rows of its mode can show."""
        assert self.rates is not None
        part = next(judged.part for judged in self.parts if judged.part.mode == self.modes[position])
        return bool(self.rates[position] < 1 / (len(part.training_scores) + 1))

    @property
    def threshold_rarity(self) -> str:
        """How many normal rows, or rows learnt from, exceed the threshold, in words; "" where neither is known."""
        if self.told is None or self.self_judged:
            return ""
        scores = np.concatenate([judged.part.training_scores for judged in self.parts])
        if self.threshold_rate is None:
            above = int((scores > self.threshold).sum())
            verb = "exceed" if above > 1 else "exceeds"
            return f"{f'{above:,}' if above else 'none'} of the {len(scores):,} rows learnt from {verb}"
        return rows_that(
            self.threshold_rate,
            "exceeds",
            "exceed",
            extrapolated=self.threshold_rate < 1 / (len(scores) + 1),
            over_all_modes=len(self.parts) > 1,
        )

    def _graded(self, rows: IndexArray) -> dict[str, Any]:
        """The one column that says how grave findings are, by its name."""
        if self.told is None:
            return {"severity": self.severity[rows]}
        if self.rates is None:
            return {"standing": np.array([self.standing(row) for row in rows.tolist()], dtype=object)}
        return {"false_alarm_rate": self.rates[rows]}

    @cached_property
    def _ascending(self) -> FloatArray:
        """The scores of all rows that could be findings."""
        return np.sort(self.scores[self.judged if self.self_judged else self.judged & ~self.trained])

    def residuals(self, rows: IndexArray | None = None) -> FloatArray:
        """Actual minus expected in the units of the score, so that variables compare; NaN where either is not known.

        What counts as one is the range in which the model of the row's mode has learnt the variable.
        """
        places = np.arange(len(self.scores)) if rows is None else rows
        residuals: FloatArray = self.values.to_numpy()[places] - self.expected.to_numpy()[places]
        for judged in self.parts:
            residuals[self.modes[places] == judged.part.mode] /= judged.part.scale
        return residuals

    def explain(self, event: int) -> Explanation:
        """Why: the variables behind an event, the nearest normal rows, and a rule that tells it apart.

        Raises a KeyError for an event that is not in `events`.
        """
        return self._explainer.explain(event)

    def behind(self, event: int) -> pd.DataFrame:
        """The variables behind an event, as in `explain`, without its costlier parts."""
        return self._explainer.variables(event)

    def settings_of(self, event: int) -> pd.DataFrame:
        """The settings that changed with an event, as in `explain`, without its costlier parts."""
        return self._explainer.settings(event)

    def shares(self, event: int) -> FloatArray | None:
        """What each input adds to the scores of an event's rows, as shares; None where that is not known."""
        return self._explainer.shares(event)

    @cached_property
    def rule_tree(self) -> RuleTree | None:
        """A classification tree of all findings against the other judged rows; None where there are no others."""
        return self._explainer.rule_tree()

    @cached_property
    def _explainer(self) -> Explainer:
        return Explainer(self)

    def _worst_variables(self, rows: IndexArray) -> list[list[str]]:
        weights = np.nan_to_num(np.abs(self.residuals(rows))) if self.told is None else self.told.of(rows).variables
        weights = np.where(np.isin(self.names, self.inputs.causes), weights, 0.0)
        order = np.argsort(-weights, axis=1, kind="stable")[:, :_NAMED_VARIABLES]
        names = self.names
        return [[names[column] for column in worst if weights[place, column] > 0] for place, worst in enumerate(order)]

    def __repr__(self) -> str:
        return (
            f"<Findings in {self.table.source}: {int(self.flags.sum()):,} of {int(self.judged.sum()):,} rows, "
            f"{len(self.events):,} events>"
        )

    def _repr_html_(self) -> str:
        """For notebooks."""
        return f"<p>{len(self.events):,} events</p>{self.events.to_html(max_rows=20, escape=True)}"
