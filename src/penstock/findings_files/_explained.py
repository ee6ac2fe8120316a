"""Which events are worth the time that explaining them takes."""

from __future__ import annotations

from penstock.detection.findings import Findings

MOST_EXPLAINED = 100
_FEWEST_EXPLAINED, _ROWS_READ = 20, 20_000_000  # each explanation reads all rows: of a long table fewer


def events_to_explain(findings: Findings, most: int | None = None) -> list[int]:
    """The gravest events in order of time: `most` of them, or if None 100, of a long table fewer, but at least 20."""
    if most is None:
        most = min(MOST_EXPLAINED, max(_FEWEST_EXPLAINED, _ROWS_READ // max(1, len(findings.scores))))
    gravest = findings.events.sort_values("rank").index[:most]
    return sorted(int(event) for event in gravest)
