"""The score over time, with the threshold and the events."""

from __future__ import annotations

import numpy as np
import pandas as pd

from penstock._types import IndexArray
from penstock.detection import Findings
from penstock.report.axis import Axis, thin_out
from penstock.report.packing import Packed, finite, pack_numbers, pack_places

MOST_POINTS = 20_000


def timeline_data(findings: Findings, axis: Axis, events: pd.DataFrame) -> Packed:
    """What the script needs to draw the scores: at most about `MOST_POINTS` of them, with every peak.

    A stretch ends where the sampling has a gap, or rows were not judged: no line is drawn across.
    """
    rows = np.flatnonzero(np.isfinite(findings.scores))
    stretches = _stretches(rows, axis)
    kept = thin_out(findings.scores[rows], stretches, axis.places[rows], MOST_POINTS)
    shown = rows[kept]
    of_row = findings.grouped.of_row[shown]
    marked = np.flatnonzero(of_row)
    return {
        "places": pack_places(axis.places[shown]),
        "rows": len(findings.scores),
        "extent": [float(axis.places[0]), float(axis.places[-1])] if len(axis.places) else [0.0, 1.0],
        "scores": pack_numbers(findings.scores[shown]),
        "begins": np.flatnonzero(np.diff(stretches[kept], prepend=-1)).tolist(),
        "marked": [marked.tolist(), of_row[marked].tolist()],
        "threshold": finite(findings.threshold),
        "thinned": len(shown) < len(rows),
        "events": [_event(findings, axis, int(number)) for number in events.index],
    }


def _stretches(rows: IndexArray, axis: Axis) -> IndexArray:
    """The number of the stretch of each of these rows: a new one after a gap in time, or after rows left out."""
    after = np.diff(rows, prepend=-2) > 1
    gaps = np.cumsum(axis.begins)[rows]
    new = after | (np.diff(gaps, prepend=-1) != 0)
    result: IndexArray = (np.cumsum(new) - 1).astype(np.intp)
    return result


def _event(findings: Findings, axis: Axis, number: int) -> list[float]:
    """Number, first place, last place, rank."""
    first, last = (int(rows[number - 1]) for rows in (findings.grouped.first_rows, findings.grouped.last_rows))
    return [number, float(axis.places[first]), float(axis.places[last]), int(findings.events["rank"].loc[number])]
