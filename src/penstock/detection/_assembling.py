"""Put all that is known of a scored table into one record: events, incidents, verdict, explanations.

A model and a prepared table come in, `Findings` go out.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd

from penstock._messages import counted
from penstock._types import BoolArray, FloatArray, IndexArray
from penstock.detection._explaining import explain_findings
from penstock.detection._preparing import Prepared, Progress
from penstock.detection._scoring import LISTED, MANY, ScoredTable, Selection, score_rows
from penstock.detection._shifts import Shift, about_shifts, find_shifts, lasts_throughout
from penstock.detection.findings import Assessment, Explained, Findings, RowDetails, ScoredInputs
from penstock.detection.model import Model
from penstock.detection.verdict import THROUGHOUT, Verdict, verdict_on
from penstock.detectors import read_time
from penstock.explain import (
    NEW_STATE,
    NORMAL,
    Agreement,
    Events,
    Incident,
    Label,
    agreement,
    event_days,
    find_incidents,
    find_known,
    group_events,
    incident_table,
)
from penstock.io import Note, Table

_NAMED_VARIABLES = 3  # in the list of rows
_USUAL = 2.0  # spreads of a sensor that it may be, on average, from what is expected of it and still count as usual


def make_findings(
    model: Model,
    prepared: Prepared,
    fitted: Mapping[str, IndexArray] | None,
    selection: Selection,
    settings: Mapping[str, Any],
    progress: Progress,
) -> Findings:
    """Score, flag, group and explain rows. `fitted`: where the training rows are, if they are of this table."""
    scored = score_rows(model, prepared, fitted, selection, progress)
    table, parts = prepared.table, scored.parts
    grouped = group_events(scored.flags, scored.scores, table.time, gap=selection.gap, groups=table.group)
    grouped = replace(grouped, table=_in_source(grouped.table, grouped.first_rows, table, "start", "end", "peak"))
    if model.can.by_sensor:
        incidents, scored = _find_incidents(scored, grouped)
        found = _list_incidents(scored, incidents)
    else:
        found = _Listing(verdict_on(scored, "event", grouped.table["peak_row"].tolist()), scored.notes)
    compared, labelled = _compare_with_label(scored)
    spans = np.max([each.part.scale for each in parts], axis=0)
    rebuilt = model.can.rebuilds and not model.can.by_sensor
    values = prepared.values
    # What a method rebuilds stays what it is; what is expected is within what each input can be.
    expected = scored.expected if rebuilt else prepared.inputs.plausible(scored.expected, model.units)
    findings = Findings(
        table=table,
        data=prepared.data,
        inputs=ScoredInputs(
            choice=prepared.inputs,
            names=tuple(values.columns),
            units=model.units,
            values=values,
            expected=pd.DataFrame(expected, index=values.index, columns=values.columns),
            ranges=np.where(np.isfinite(spans) & (spans > 0), spans, 1.0),
            rebuilt=rebuilt,
        ),
        scores=scored.scores,
        flags=scored.flags,
        threshold=scored.threshold,
        rows=RowDetails(
            modes=prepared.modes,
            seen=1.0 - np.isnan(scored.values).mean(axis=1),
            scored=scored.has_score,
            fitted=scored.fitted,
            evidence=scored.evidence,
            contributions=scored.contributions,
            parts=parts,
            grouped=grouped,
            days=event_days(scored.flags, scored.scores, table.time, grouped.of_row),
            ranking=_ranking(scored, grouped),
        ),
        events=_with_chance(grouped.table, scored, grouped.table["peak_row"].to_numpy()),
        incidents=found.incidents,
        incident_table=_incident_table(scored, found.incidents),
        explained=Explained(shares=_shares_of_inputs(scored, grouped)),
        verdict=found.verdict,
        assessment=Assessment(
            method=type(parts[0].part.detector).__name__,
            by_sensor=model.can.by_sensor,
            self_scored=scored.self_scored,
            chance_unknown=scored.chance_unknown,
            threshold_expected=scored.threshold_expected,
            shifts=found.shifts,
            stretches=_incident_table(scored, found.stretches),
            agreement=compared,
        ),
        notes=(*prepared.notes, *found.notes, *labelled),
        settings=dict(settings),
    )
    progress(f"explaining {counted(len(grouped), 'event')}")
    return replace(findings, explained=explain_findings(findings, selection.options.most_explained))


@dataclass(frozen=True, eq=False)
class _Listing:
    """What findings say as a whole; of a detector that scores sensors over time also the incidents."""

    verdict: Verdict
    notes: tuple[Note, ...]
    incidents: tuple[Incident, ...] = ()
    stretches: tuple[Incident, ...] = ()  # the highest that are no incidents
    shifts: tuple[Shift, ...] = ()


def _list_incidents(scored: ScoredTable, found: Sequence[Incident]) -> _Listing:
    """Decide which incidents are listed, and what they say as a whole."""
    shifts = find_shifts(scored)
    throughout = [incident for incident in found if shifts and lasts_throughout(incident, scored)]
    found = [_with_known(incident, scored.model.labels) for incident in found if incident not in throughout]
    new = [incident for incident in found if not incident.is_known_normal]
    states = [incident.kind == NEW_STATE for incident in new]
    verdict = verdict_on(scored, "incident", [incident.peak for incident in new], states)
    notes = scored.notes
    if shifts:
        notes = (*(note for note in notes if note.kind != MANY), about_shifts(shifts, scored))
    if throughout and verdict.kind in ("nothing", "unknown"):
        verdict = Verdict("clearly", THROUGHOUT, 0)
    elif throughout and verdict.kind == "unusual":
        verdict = replace(verdict, kind="clearly", sentence=f"{THROUGHOUT} {verdict.sentence}")
    incidents, stretches = _split_listed(found, scored.chance, verdict.kind == "nothing")
    listed = sum(incident.is_known_normal for incident in incidents)
    if listed:
        known = f"{counted(listed, 'incident')} {'is' if listed == 1 else 'are'} like what is known as {NORMAL}"
        verdict = replace(verdict, sentence=f"{verdict.sentence} {known}.")
    return _Listing(verdict, notes, incidents, stretches, shifts)


def _ranking(scored: ScoredTable, grouped: Events) -> pd.DataFrame:
    """Return all findings, the highest score first, of equals the earlier."""
    prepared, scores, values = scored.prepared, scored.scores, scored.values
    table = prepared.table
    rows = np.flatnonzero(scored.flags)
    rows = rows[np.argsort(-scores[rows], kind="stable")]
    if scored.evidence is not None:
        weights = scored.evidence[rows]
    elif scored.contributions is None:
        weights = values[rows] - scored.expected[rows]
        for each in scored.parts:
            weights[prepared.modes[rows] == each.part.mode] /= each.part.scale
        weights = np.nan_to_num(np.abs(weights))
    else:
        weights = scored.contributions.of(rows).variables
    names = prepared.values.columns
    weights = np.where(np.isin(names, prepared.inputs.causes), weights, 0.0)
    order = np.argsort(-weights, axis=1, kind="stable")[:, :_NAMED_VARIABLES]
    columns: dict[str, Any] = {"rank": np.arange(1, len(rows) + 1), "score": scores[rows]}
    if table.time is not None:
        columns["time"] = table.time[rows]
    if table.group is not None:
        columns["group"] = table.group.to_numpy()[rows]
    columns |= {
        "expected_by_chance": scored.chance[rows],
        "event": grouped.of_row[rows],
        "mode": prepared.modes[rows],
        "seen": 1.0 - np.isnan(values[rows]).mean(axis=1),
        "variables": [
            ", ".join(names[column] for column in worst if weights[place, column] > 0)
            for place, worst in enumerate(order)
        ],
    }
    return pd.DataFrame(columns, index=pd.Index(table.values.index[rows], name="row"))


def _shares_of_inputs(scored: ScoredTable, grouped: Events) -> FloatArray | None:
    """Return the share of each input (events, p) in an event's rows of the mode at its peak; None if it is not known.

    Of what the inputs add to the scores that are above the usual, or of the squared evidence.
    """
    contributions, modes = scored.contributions, scored.prepared.modes
    known = scored.evidence if contributions is None else contributions.variables
    if known is None:
        return None
    shares = np.full((len(grouped), known.shape[1]), np.nan)
    for event, peak in zip(grouped.table.index, grouped.table["peak_row"], strict=True):
        rows = grouped.rows_of(int(event))
        rows = rows[modes[rows] == modes[peak]]
        if contributions is None:
            added = (known[rows] ** 2).sum(axis=0)
        else:
            added = np.maximum(contributions.of(rows[scored.scores[rows] > 0]).variables.sum(axis=0), 0.0)
        if added.sum() > 0:
            shares[int(event) - 1] = added / added.sum()
    return shares


def _find_incidents(scored: ScoredTable, grouped: Events) -> tuple[list[Incident], ScoredTable]:
    """Put events of one cause together; return also the table with what is expected without wrong sensors."""
    assert scored.evidence is not None
    modes = scored.prepared.modes
    order = scored.prepared.order(np.arange(len(modes)))
    seconds = read_time(None, order.get("time"), len(modes))
    # No incident goes on into another mode, nor where a detector sees a new history begin: after a gap, in another run.
    starts: BoolArray = np.append(True, modes[1:] != modes[:-1])
    for each in scored.parts:
        clock = each.part.detector.model_.clock
        starts |= clock.follow(len(modes), seconds, order["runs"]).starts
    names = tuple(scored.prepared.values.columns)
    found = find_incidents(
        grouped,
        scored.scores,
        np.where(np.isin(names, scored.prepared.inputs.causes), scored.evidence, 0.0),  # settings are no causes
        scored.expected,
        scored.values,
        starts,
        names,
        [scored.model.units[name] for name in names],
        [scored.prepared.inputs.role_of(name) for name in names],
        fitted_apart=not scored.fitted.any(),
    )
    expected = scored.expected.copy()
    incidents = [_without_wrong_sensors(scored, incident, expected) for incident in found]
    return incidents, replace(scored, expected=expected)


def _split_listed(
    found: Sequence[Incident], chance: FloatArray, nothing: bool
) -> tuple[tuple[Incident, ...], tuple[Incident, ...]]:
    """Return the incidents that are listed, and the highest stretches that are none, each numbered and ranked anew.

    An incident has at most one as high expected by chance, or an expectation that is not known. Where nothing stands
    out there is none but those that are known to be normal.
    """
    listed = [(not nothing or incident.is_known_normal) and not chance[incident.peak] > LISTED for incident in found]
    some = tuple(incident for incident, is_listed in zip(found, listed, strict=True) if is_listed)
    rest = tuple(incident for incident, is_listed in zip(found, listed, strict=True) if not is_listed)
    return _renumbered(some), _renumbered(rest)


def _with_known(incident: Incident, labels: Sequence[Label]) -> Incident:
    """Return an incident with what people said of a situation that it is like."""
    label = find_known(incident.pattern, labels)
    if label is None:
        return incident
    how = "Known as" if label.reason == NORMAL else "Like an earlier"
    reason = f"{how} {label.in_words()} ({label.subject}, said by {label.who}). {incident.reason}"
    return replace(incident, known=label, reason=reason)


def _renumbered(incidents: Sequence[Incident]) -> tuple[Incident, ...]:
    """Return incidents with numbers and ranks from 1 on; those similar are named by their new numbers."""
    numbers = {incident.number: number for number, incident in enumerate(incidents, 1)}
    order = sorted(incidents, key=lambda incident: incident.rank)
    ranks = {incident.number: rank for rank, incident in enumerate(order, 1)}
    return tuple(
        replace(
            incident,
            number=numbers[incident.number],
            rank=ranks[incident.number],
            similar=tuple((numbers[other], alike) for other, alike in incident.similar if other in numbers),
        )
        for incident in incidents
    )


def _without_wrong_sensors(scored: ScoredTable, incident: Incident, expected: FloatArray) -> Incident:
    """Return an incident of wrong sensors without the sensors that read as expected if those are left out.

    A wrong sensor, or two that are swapped, draws along what is expected of the others. In the rows of the incident,
    `expected` becomes what is expected of the others without it.
    """
    wrong = [sensor.column for sensor in incident.wrong_sensors]
    if not wrong:
        return incident
    first = min(incident.start, int(incident.rows[0]))
    last = max(incident.end, int(incident.rows[-1]))
    mode = scored.prepared.modes[incident.peak]
    rows = np.arange(first, last + 1)
    rows = rows[scored.has_score[rows] & (scored.prepared.modes[rows] == mode)]
    detector = scored.part_of(mode).part.detector
    readings = scored.values[rows]
    readings[:, wrong] = np.nan
    others = ~np.isin(np.arange(readings.shape[1]), wrong)
    expected[np.ix_(rows, others)] = detector.expected(readings)[:, others]
    usual = np.abs(detector.deviations(readings)).mean(axis=0) <= _USUAL
    sensors = tuple(sensor for sensor in incident.sensors if sensor.column in wrong or not usual[sensor.column])
    among = len(incident.sensors) - len(wrong)
    left_out = len(incident.sensors) - len(sensors)
    if not left_out:
        return incident
    how_many = "the others read" if left_out == among else f"{left_out} of {among} others read"
    without = "it" if len(wrong) == 1 else "them"
    reason = f"{incident.reason} Without {without} {how_many} as expected."
    left = {sensor.column for sensor in sensors}
    moved_first = tuple(column for column in incident.moved_first if column in left) or tuple(wrong[:1])
    return replace(incident, sensors=sensors, moved_first=moved_first, reason=reason)


def _incident_table(scored: ScoredTable, incidents: Sequence[Incident]) -> pd.DataFrame:
    """Return one row per incident, with how often it is expected by chance."""
    table = scored.prepared.table
    peaks = np.array([incident.peak for incident in incidents], dtype=np.intp)
    found = _with_chance(incident_table(incidents, table.time), scored, peaks)
    firsts = np.array([incident.rows[0] for incident in incidents], dtype=np.intp)
    return _in_source(found, firsts, table, "start", "end", "peak")


def _with_chance(found: pd.DataFrame, scored: ScoredTable, peaks: IndexArray) -> pd.DataFrame:
    """Return events or incidents with how many as high as the peak of each are expected by chance, before the rank."""
    found = found.copy()
    found.insert(list(found).index("rank"), "expected_by_chance", scored.chance[peaks])
    return found


def _in_source(found: pd.DataFrame, first_rows: IndexArray, table: Table, *places: str) -> pd.DataFrame:
    """Return events or faults with the group of each, if there is one, and without time with rows of the source."""
    if table.time is None:
        numbers = pd.Series(table.values.index)
        found = found.assign(**{name: found[name].map(numbers).astype(found[name].dtype) for name in places})
        if "runs" in found:
            runs = [tuple(tuple(numbers[row] for row in run) for run in each) for each in found["runs"]]
            found = found.assign(runs=pd.Series(runs, index=found.index, dtype=object))
    return found if table.group is None else found.assign(group=table.group.to_numpy()[first_rows])


def _compare_with_label(scored: ScoredTable) -> tuple[Agreement | None, list[Note]]:
    """Return how the findings agree with the label, if there is one, and a note on how it was understood."""
    truth, table = scored.prepared.truth, scored.prepared.table
    if truth is None:
        return None, []
    # What is known of rows that could not be findings, or found where nothing is known, says nothing about the rest.
    scores = np.where(truth.unknown | ~scored.candidates, np.nan, scored.scores)
    found = agreement(truth.faults, scored.flags, scores, table.time, groups=table.group)
    faults = _in_source(found.faults, found.first_rows, table, "start", "end", "first_alarm")
    return replace(found, faults=faults), [Note("label", truth.sentence, int(truth.faults.sum()))]
