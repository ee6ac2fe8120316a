"""Findings as one JSON document."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pandas as pd

import penstock
from penstock.detection.findings import Findings
from penstock.findings_files._explained import events_to_explain
from penstock.findings_files._plain import as_json, plain, records


def document_pieces(findings: Findings, most_explained: int | None) -> Iterator[str]:
    """The text of the document, piece by piece: an entry of a list is a line."""
    yield f'{{\n"summary": {as_json(summarize(findings))}'
    yield from _list_pieces("events", _events(findings, most_explained))
    yield from _list_pieces("days", records(_days(findings)))
    yield from _list_pieces("findings", records(findings.top().reset_index()))
    yield f',\n"settings": {as_json(plain(findings.settings))}'
    yield from _list_pieces("notes", map(plain, findings.notes))
    yield from _list_pieces("columns", _columns(findings))
    yield "\n}\n"


def _list_pieces(name: str, entries: Iterator[Any]) -> Iterator[str]:
    yield f',\n"{name}": ['
    for number, entry in enumerate(entries):
        yield f"{',' if number else ''}\n  {as_json(entry)}"
    yield "\n]"


def summarize(findings: Findings) -> dict[str, Any]:
    """The findings in figures, in JSON's types."""
    time = findings.table.time
    names, counts = np.unique(findings.modes, return_counts=True)
    agreement = findings.agreement
    return {
        "penstock": penstock.__version__,
        "source": findings.table.source,
        "rows": len(findings.scores),
        "first_time": None if time is None else plain(time.min()),
        "last_time": None if time is None else plain(time.max()),
        "groups": None if findings.table.group is None else len(findings.table.spans),
        "judged": int(findings.judged.sum()),
        "trained": int(findings.trained.sum()),
        "self_judged": findings.self_judged,
        "rebuilt": findings.rebuilt,
        "inputs": len(findings.names),
        "left_out": len(findings.inputs.left_out),
        "findings": int(findings.flags.sum()),
        "events": len(findings.events),
        "event_days": len(findings.days),
        "method": type(findings.parts[0].part.detector).__name__,
        "threshold": plain(findings.threshold),
        "false_alarm_rate": plain(findings.threshold_rate),
        "modes": {str(name): int(count) for name, count in zip(names, counts, strict=True)},
        "agreement": None
        if agreement is None
        else {
            "known_rows": agreement.n_known,
            "ranked_rows": agreement.n_ranked,
            "precision_at_n": plain(agreement.precision_at_n),
            "faults": len(agreement.faults),
            "faults_judged": agreement.n_judged_faults,
            "faults_found": agreement.n_found,
        },
    }


def _events(findings: Findings, most_explained: int | None) -> Iterator[dict[str, Any]]:
    numbers = findings.table.values.index
    explained = set(events_to_explain(findings, most_explained))
    for event, figures in zip(findings.events.index.tolist(), records(findings.events), strict=True):
        peak = figures["peak_row"]
        yield {
            "event": event,
            **figures,
            "peak_row": plain(numbers[peak]),
            "mode": str(findings.modes[peak]),
            **(_why(findings, event) if event in explained else dict.fromkeys(_unexplained(findings))),
        }


def _unexplained(findings: Findings) -> tuple[str, ...]:
    return (*(("parts", "seen_as") if findings.told is not None else ()), "variables", "settings", "neighbors", "rule")


def _why(findings: Findings, event: int) -> dict[str, Any]:
    why = findings.explain(event)
    return {
        **({} if why.parts is None else {"parts": plain(why.parts), "seen_as": why.seen_as}),
        "variables": _placed(findings, why.variables),
        "settings": list(records(why.settings)),
        "neighbors": plain(why.neighbors.drop(columns="position")),
        "rule": None if why.rule is None else {"text": why.rule.text, **plain(why.rule)},
    }


def _placed(findings: Findings, variables: pd.DataFrame) -> list[dict[str, Any]]:
    """The variables of an event with rows as in the source instead of positions."""
    rows = findings.table.values.index[variables["position"].to_numpy(dtype=np.intp)]
    return list(records(variables.drop(columns="position").assign(row=rows)))


def _days(findings: Findings) -> pd.DataFrame:
    days = findings.days.reset_index()
    return days.assign(day=[str(day)[:10] for day in days["day"]])


def _columns(findings: Findings) -> Iterator[dict[str, Any]]:
    uses = dict.fromkeys(findings.inputs.as_they_are, "as it is")
    uses |= {encoding.column: "encoded" for encoding in findings.inputs.encoded}
    uses |= {each.name: f"left out: {each.reason}" for each in findings.inputs.left_out}
    for report in findings.checks:
        yield {
            "name": report.name,
            "kind": report.kind,
            "grade": report.grade,
            "reasons": list(report.reasons),
            "unit": findings.units.get(report.name, ""),
            "share_missing": plain(report.share_missing),
            "use": uses.get(report.name, "time" if report.kind == "time" else "not an input"),
        }
