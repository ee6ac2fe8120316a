"""Make the tables of findings: the ranked list, shares of the inputs, incidents, and agreement with a label."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from penstock._types import BoolArray, FloatArray, IndexArray
from penstock.detection._parts import Contributions, JudgedPart
from penstock.detection._preparing import Prepared
from penstock.detection._severity import Grades
from penstock.detectors import read_time
from penstock.explain import Agreement, Events, Incident, agreement, incident_table
from penstock.io import Note, Table

_NAMED_VARIABLES = 3  # in the list of rows


def ranking_of(
    prepared: Prepared,
    scores: FloatArray,
    flags: BoolArray,
    grouped: Events,
    expected: FloatArray,
    parts: tuple[JudgedPart, ...],
    contributions: Contributions | None,
    evidence: FloatArray | None,
    grades: Grades,
) -> pd.DataFrame:
    """Return all findings, the highest score first, of equals the earlier."""
    table, values = prepared.table, prepared.values.to_numpy()
    rows = np.flatnonzero(flags)
    rows = rows[np.argsort(-scores[rows], kind="stable")]
    if evidence is not None:
        weights = evidence[rows]
    elif contributions is None:
        weights = values[rows] - expected[rows]
        for judged in parts:
            weights[prepared.modes[rows] == judged.part.mode] /= judged.part.scale
        weights = np.nan_to_num(np.abs(weights))
    else:
        weights = contributions.of(rows).variables
    names = prepared.values.columns
    weights = np.where(np.isin(names, prepared.inputs.causes), weights, 0.0)
    order = np.argsort(-weights, axis=1, kind="stable")[:, :_NAMED_VARIABLES]
    columns: dict[str, Any] = {"rank": np.arange(1, len(rows) + 1)}
    if table.time is not None:
        columns["time"] = table.time[rows]
    if table.group is not None:
        columns["group"] = table.group.to_numpy()[rows]
    columns |= {
        "row": table.values.index[rows],
        "score": scores[rows],
        **grades.of(rows),
        "event": grouped.of_row[rows],
        "mode": prepared.modes[rows],
        "seen": 1.0 - np.isnan(values[rows]).mean(axis=1),
        "variables": [
            ", ".join(names[column] for column in worst if weights[place, column] > 0)
            for place, worst in enumerate(order)
        ],
    }
    return pd.DataFrame(columns).set_index("rank")


def shares_of_inputs(
    grouped: Events,
    modes: NDArray[np.str_],
    scores: FloatArray,
    contributions: Contributions | None,
    evidence: FloatArray | None,
) -> FloatArray | None:
    """Return the share of each input (events, p) in an event's rows of the mode at its peak; None if it is not known.

    Of what the inputs add to the scores that are above the usual, or of the squared evidence.
    """
    known = evidence if contributions is None else contributions.variables
    if known is None:
        return None
    shares = np.full((len(grouped), known.shape[1]), np.nan)
    for event, peak in zip(grouped.table.index, grouped.table["peak_row"], strict=True):
        rows = grouped.rows_of(int(event))
        rows = rows[modes[rows] == modes[peak]]
        if contributions is None:
            added = (known[rows] ** 2).sum(axis=0)
        else:
            added = np.maximum(contributions.of(rows[scores[rows] > 0]).variables.sum(axis=0), 0.0)
        if added.sum() > 0:
            shares[int(event) - 1] = added / added.sum()
    return shares


def history_starts(parts: tuple[JudgedPart, ...], prepared: Prepared) -> BoolArray:
    """Return where no incident goes on from the row before: a gap, another group, another mode."""
    rows = np.arange(len(prepared.modes))
    order = prepared.order(rows)
    starts: BoolArray = np.zeros(len(rows), dtype=np.bool_)
    for judged in parts:
        clock, seconds = judged.part.detector.model_.clock, read_time(None, order.get("time"), len(rows))
        starts |= clock.follow(len(rows), seconds, order["runs"]).starts
    starts[1:] |= prepared.modes[1:] != prepared.modes[:-1]
    return starts


def incidents_by_row(incidents: Sequence[Incident], chance: FloatArray | None, table: Table) -> pd.DataFrame:
    """Return one row per incident, with how often it is expected by chance."""
    found = incident_table(incidents, table.time)
    peaks = np.array([incident.peak for incident in incidents], dtype=np.intp)
    expected = np.full(len(peaks), np.nan) if chance is None else chance[peaks]
    found.insert(list(found).index("rank"), "expected_by_chance", expected)
    firsts = np.array([incident.rows[0] for incident in incidents], dtype=np.intp)
    return in_source(found, firsts, table, "start", "end", "peak")


def in_source(found: pd.DataFrame, first_rows: IndexArray, table: Table, *places: str) -> pd.DataFrame:
    """Return events or faults with the group of each, if there is one, and without time with rows of the source."""
    if table.time is None:
        numbers = pd.Series(table.values.index)
        found = found.assign(**{name: found[name].map(numbers).astype(found[name].dtype) for name in places})
    return found if table.group is None else found.assign(group=table.group.to_numpy()[first_rows])


def compare_with_label(prepared: Prepared, flags: BoolArray, scores: FloatArray) -> tuple[Agreement | None, list[Note]]:
    """Return how the findings agree with the label, if there is one, and a note on how it was understood.

    `scores` are NaN for rows that could not be findings: what is known of those says nothing about the rest. Nor does
    what is found in rows of which nothing is known.
    """
    truth, table = prepared.truth, prepared.table
    if truth is None:
        return None, []
    scores = np.where(truth.unknown, np.nan, scores)
    found = agreement(truth.faults, flags, scores, table.time, groups=table.group)
    faults = in_source(found.faults, found.first_rows, table, "start", "end", "first_alarm")
    return replace(found, faults=faults), [Note("label", truth.sentence, int(truth.faults.sum()))]
