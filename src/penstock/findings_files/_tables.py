"""What goes into the list of findings, and into that of scores."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pandas as pd

from penstock.detection import Explanation
from penstock.detection.findings import Findings
from penstock.findings_files._explained import events_to_explain

ROWS_AT_ONCE = 50_000


def findings_table(findings: Findings, most_explained: int | None) -> pd.DataFrame:
    """One row per finding, best first: the columns of `findings.top()`, and of its event when it was and its rule.

    Of `penstock.Detector` also `seen_as`, what its views say of the event's peak, in words.

    `event_seconds` is how long the event lasts; without time stamps, `event_span` is how many rows it spans.
    """
    table = findings.top().reset_index()
    events = findings.events.loc[table["event"]]
    reasons = {event: findings.explain(event) for event in events_to_explain(findings, most_explained)}
    if findings.table.time is None:
        spans: dict[str, Any] = {
            "event_start": events["start"].to_numpy(),
            "event_end": events["end"].to_numpy(),
            "event_span": events["duration"].to_numpy(),
        }
    else:
        spans = {
            "event_start": events["start"].array,
            "event_end": events["end"].array,
            "event_seconds": pd.TimedeltaIndex(events["duration"]).total_seconds().to_numpy(),
        }
    table = table.assign(**spans)
    if findings.told is not None:
        told = [reasons[event].seen_as if event in reasons else None for event in table["event"]]
        table["seen_as"] = pd.array(told, dtype="string")
    table["rule"] = pd.array([_rule(reasons.get(int(event))) for event in table["event"]], dtype="string")
    texts = [name for name in ("group", "mode", "variables", "standing") if name in table]
    return table.astype(dict.fromkeys(texts, "string"))


def _rule(why: Explanation | None) -> str | None:
    """What tells an event apart, in words; None if nothing does."""
    return None if why is None or why.rule is None else str(why.rule.text)


def scores_tables(findings: Findings) -> Iterator[pd.DataFrame]:
    """One row per row of the table, in order of time, in parts; the event is missing where a row is none."""
    count = len(findings.scores)
    for start in range(0, count, ROWS_AT_ONCE):
        part = slice(start, start + ROWS_AT_ONCE)
        columns: dict[str, Any] = {"row": findings.table.values.index[part].to_numpy()}
        if findings.table.time is not None:
            columns["time"] = findings.table.time[part]
        if findings.table.group is not None:
            columns["group"] = pd.array(findings.table.group.to_numpy()[part], dtype="string")
        events = pd.Series(findings.grouped.of_row[part], dtype="Int64")
        columns |= {
            "score": findings.scores[part],
            "flag": findings.flags[part],
            "event": events.mask(events == 0),
            "mode": pd.array(findings.modes[part].astype(object), dtype="string"),
            "seen": findings.seen[part],
        }
        yield pd.DataFrame(columns)
