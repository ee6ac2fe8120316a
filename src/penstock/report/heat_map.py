"""Which variables were off in which event: residuals, variables × time around all events."""

from __future__ import annotations

import numpy as np
import pandas as pd

from penstock._types import FloatArray, IndexArray
from penstock.detection import Findings
from penstock.report.axis import Axis, Packed, event_span, finite, pack_bytes
from penstock.report.words import shown_name

MOST_VARIABLES, MOST_BINS, MOST_EVENTS = 40, 400, 60
_CONTEXT = 3  # rows before and after, at least


def heat_map_data(findings: Findings, axis: Axis) -> Packed | None:
    """Cells of −126 … 126 steps of `full`, the residual (in units of the variable's range) of the strongest colour.

    A cell shows the residual of its rows that is farthest from 0. −128 means that there is no reading, −127 that there
    is one but nothing to compare it with. None without events, or where nothing is expected of any variable.
    """
    events = _chosen_events(findings)
    if not events:
        return None
    windows = _windows(findings, events)
    rows = np.concatenate([np.arange(low, high) for low, high, _ in windows])
    ranges = findings.ranges
    values = findings.values.to_numpy()[rows]
    residuals = (values - findings.expected.to_numpy()[rows]) / ranges
    variables = _most_involved(findings, rows, residuals)
    if not len(variables):
        return None
    residuals = residuals[:, variables]
    edges, panels = _bins([high - low for low, high, _ in windows])
    cells = _farthest(residuals, edges)
    full = _full_colour(cells)
    without = np.where(np.isnan(_farthest(values[:, variables], edges)), -128, -127)
    steps = np.where(np.isnan(cells), without, np.clip(np.rint(np.nan_to_num(cells) / full * 126), -126, 126))
    return {
        "variables": [
            _variable(findings, int(j), float(ranges[j]), residuals[:, place]) for place, j in enumerate(variables)
        ],
        "bins": [float(axis.places[row]) for row in rows[edges[:-1]]],
        "panels": [
            {"first": first, "count": count, "events": numbers}
            for (first, count), (_, _, numbers) in zip(panels, windows, strict=True)
        ],
        "flagged": _flagged(findings, rows, edges),
        "full": full,
        "cells": pack_bytes(steps, "i1"),
        "n_events": len(events),
    }


def _chosen_events(findings: Findings) -> list[int]:
    """The most severe, in order of time."""
    events: pd.Series[int] = findings.events["rank"]
    return sorted(int(event) for event in events.sort_values().index[:MOST_EVENTS])


def _windows(findings: Findings, events: list[int]) -> list[tuple[int, int, list[int]]]:
    """First row, row after the last, and the events in it; windows that touch are one."""
    windows: list[tuple[int, int, list[int]]] = []
    for event in events:
        span = event_span(findings, event)
        context = max(_CONTEXT, (span.stop - span.start) // 2)
        group = findings.table.span_of(span.start)
        low, high = max(group.start, span.start - context), min(group.stop, span.stop + context)
        if windows and low <= windows[-1][1]:
            before = windows.pop()
            low, high, numbers = before[0], max(high, before[1]), [*before[2], event]
        else:
            numbers = [event]
        windows.append((low, high, numbers))
    return windows


def _most_involved(findings: Findings, rows: IndexArray, residuals: FloatArray) -> IndexArray:
    """The variables with the largest share of any event, the largest sum of shares first.

    Shares are of the score, where they are known, as on the cards of the events; else of the squared residual.
    """
    of_row = findings.grouped.of_row[rows]
    squares = np.nan_to_num(residuals) ** 2
    sums = np.zeros(squares.shape[1])
    for event in np.unique(of_row[of_row > 0]):
        each = squares[of_row == event].sum(axis=0)
        if findings.shares is not None and not np.isnan(findings.shares[event - 1]).any():
            each = findings.shares[event - 1]
        total = each.sum()
        sums += each / total if total > 0 else 0.0
    sums[~np.isin(findings.names, findings.inputs.causes)] = 0.0  # settings
    order = np.argsort(-sums, kind="stable")[:MOST_VARIABLES]
    return order[sums[order] > 0].astype(np.intp)


def _bins(lengths: list[int]) -> tuple[IndexArray, list[tuple[int, int]]]:
    """The edges of the bins over all windows end to end, and the first bin and number of bins of each window.

    >>> edges, panels = _bins([3, 2])
    >>> edges.tolist(), panels
    ([0, 1, 2, 3, 4, 5], [(0, 3), (3, 2)])
    """
    total = sum(lengths)
    ratio = min(1.0, MOST_BINS / total)
    edges, panels, start = [0], [], 0
    for length in lengths:
        count = length if ratio == 1 else max(1, min(length, int(length * ratio)))
        inner = start + np.floor(np.arange(1, count + 1) * length / count).astype(np.intp)
        panels.append((len(edges) - 1, count))
        edges.extend(inner.tolist())
        start += length
    return np.array(edges, dtype=np.intp), panels


def _farthest(residuals: FloatArray, edges: IndexArray) -> FloatArray:
    """(variables, bins) the residual of each bin that is farthest from 0; NaN where there is none."""
    known = ~np.isnan(residuals)
    high = np.maximum.reduceat(np.where(known, residuals, -np.inf), edges[:-1], axis=0)
    low = np.minimum.reduceat(np.where(known, residuals, np.inf), edges[:-1], axis=0)
    farthest = np.where(high >= -low, high, low)
    result: FloatArray = np.where(np.isfinite(farthest), farthest, np.nan).T
    return result


def _full_colour(cells: FloatArray) -> float:
    """Of the strongest colour: so that only one known cell in a hundred is beyond it."""
    sizes = np.abs(cells[np.isfinite(cells)])
    full = float(np.quantile(sizes, 0.99)) if len(sizes) else 0.0
    return full if full > 0 else 1.0


def _flagged(findings: Findings, rows: IndexArray, edges: IndexArray) -> list[int]:
    """The event of each bin, 0 for context."""
    found: list[int] = np.maximum.reduceat(findings.grouped.of_row[rows], edges[:-1]).tolist()
    return found


def _variable(findings: Findings, column: int, range_: float, residuals: FloatArray) -> Packed:
    """Name, unit, the range that counts as one, and the farthest residual, for those who see no colours."""
    name = findings.names[column]
    known = residuals[np.isfinite(residuals)]
    farthest = float(known[np.abs(known).argmax()]) if len(known) else 0.0
    return {
        "name": shown_name(name),
        "unit": findings.units.get(name, ""),
        "range": range_,
        "farthest": finite(farthest * range_),
    }
