"""Pack what the charts of the page draw: readings around each case, heat maps, and all sensors over the whole time.

Findings and their cases come in; plain data for `incident.js` and `explorer.js` go out.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from penstock._types import FloatArray, IndexArray
from penstock.detection import Findings
from penstock.report.axis import (
    Axis,
    Level,
    Packed,
    make_axis,
    pack_bytes,
    pack_curve,
    pack_places,
    thin_out,
)
from penstock.report.cases import MOST_CHARTS, Areas, Case, place_in_words
from penstock.report.words import shown_name

MOST_HEAT, MOST_VARIABLES, MOST_BINS = 24, 30, 96
_MOST_OPENED = 100  # with charts
_CHARTS_OF_MANY = ((50, 3), (20, 5))  # of more cases than these, so many charts each
_CONTEXT, _MOST_CONTEXT = 36, 500  # rows before a case, at least and at most; half as many after it
_PLAIN = 240  # rows drawn one by one; of more, the lowest and highest in each span
_REACH = 3.0  # context ends where the sampling has a hole so many times as long as the context should be
_USUAL = 0.98  # of the readings outside cases lie in the usual band
_COMPARED = 1_000_000  # readings that are compared at once to find a similar situation
_OFFSETS = 8  # rows of a case that are compared
_MOST_EMPTY = 0.7  # of the cells of a heat map
_FULL_EVIDENCE = 6.0  # times the edge of the usual: the strongest colour
FINE_SENSORS, COARSE_POINTS, _FINE_POINTS, _MOST_FINE = 30, 400, 10_500, 40_000
_ALL_CELLS = 200_000  # a table with no more readings is packed whole


class CaseCharts:
    """Packs what the charts of cases need; what several cases share is worked out once."""

    def __init__(self, findings: Findings, axis: Axis, cases: Sequence[Case]) -> None:
        self.findings, self.axis = findings, axis
        self._values, self._expected = findings.inputs.values.to_numpy(), findings.inputs.expected.to_numpy()
        self._outside = findings.rows.scored & ~findings.flags
        for case in cases:
            self._outside[case.start : case.end + 1] = False
        self._bands: dict[int, tuple[float, float]] = {}

    @cached_property
    def has_expected(self) -> bool:
        """Whether something is expected of sensors outside of cases too."""
        return bool(np.isfinite(self._expected[self._outside]).any())

    def band(self, column: int) -> tuple[float, float]:
        """Return the usual band: around what is expected, or of the readings themselves where nothing is.

        It holds 98 % of the readings outside of cases; NaN where there are none.
        """
        if column not in self._bands:
            rows = self._outside
            values = self._values[rows, column] - (self._expected[rows, column] if self.has_expected else 0.0)
            values = values[np.isfinite(values)]
            ends = np.quantile(values, [(1 - _USUAL) / 2, (1 + _USUAL) / 2]) if len(values) else (np.nan, np.nan)
            self._bands[column] = float(ends[0]), float(ends[1])
        return self._bands[column]

    def pack(self, case: Case, most: int) -> Packed:
        """Pack a chart for each of the first `most` sensors, with what was expected and a normal situation."""
        sensors = case.in_order[:most]
        window = self.window(case)
        columns = [sensor.column for sensor in sensors]
        actual, expected = (table[window.start : window.stop][:, columns] for table in (self._values, self._expected))
        axis = self.local_axis(window)
        kept = self._kept(actual, window)
        stretches = np.cumsum(axis.begins)[kept]
        similar = self.similar(case, window)
        normal = None if similar is None else self._values[similar : similar + window.stop - window.start][kept]
        charts = []
        for place, sensor in enumerate(sensors):
            low, high = self.band(sensor.column)
            chart = {
                "name": shown_name(sensor.name),
                "unit": self.findings.inputs.units[sensor.name],
                "range": float(self.findings.inputs.ranges[sensor.column]),
                "onset": float(axis.places[sensor.onset - window.start]) if sensor.onset >= window.start else None,
                "band": [low, high] if np.isfinite(low + high) else None,
                "actual": pack_curve(actual[kept, place]),
                "expected": pack_curve(expected[kept, place]),
                "normal": None if normal is None else pack_curve(normal[:, sensor.column]),
            }
            charts.append(chart)
        return {
            "axis": axis.packed(),
            "places": pack_places(axis.places[kept]),
            "begins": np.flatnonzero(np.diff(stretches, prepend=-1)).tolist(),
            "extent": [float(axis.places[0]), float(axis.places[-1])],
            "all": [float(self.axis.places[window.start]), float(self.axis.places[window.stop - 1])],
            "span": [float(axis.places[case.start - window.start]), float(axis.places[case.end - window.start])],
            "around": self.has_expected,
            "gaps": [gap[:2] for gap in axis.gaps],
            "normal": None if similar is None else place_in_words(self.findings, similar + case.start - window.start),
            "first": next((k for k, s in enumerate(sensors) if s.column == case.sensors[0].column), 0),
            "charts": charts,
        }

    def local_axis(self, window: slice) -> Axis:
        """Return the axis of a window by itself: with time also where groups overlap in time."""
        time = self.findings.table.time
        begins = self.axis.begins[window].copy()
        begins[:1] = True
        numbers = self.findings.table.values.index[window]
        found = make_axis(None if time is None else time[window], len(begins), np.flatnonzero(begins).tolist(), numbers)
        return replace(found, begins=begins)

    def window(self, case: Case) -> slice:
        """Return the rows of a case with some before and after it, unless they are far away in time."""
        context = min(max(_CONTEXT, case.end - case.start + 1), _MOST_CONTEXT)
        group = self.findings.table.span_of(case.start)
        low = max(group.start, case.start - context)
        high = min(group.stop, case.end + 1 + context // 2)
        if self.axis.step > 0:
            reach = _REACH * self.axis.step * context
            elapsed = self.axis.elapsed
            low = max(low, int(np.searchsorted(elapsed, elapsed[case.start] - reach)))
            high = min(high, int(np.searchsorted(elapsed, elapsed[case.end] + reach, side="right")))
        return slice(low, high)

    def _kept(self, actual: FloatArray, window: slice) -> IndexArray:
        """Which rows of the window are drawn: those in which any of the sensors has a peak."""
        length = window.stop - window.start
        if length <= _PLAIN:
            return np.arange(length, dtype=np.intp)
        stretches = np.cumsum(self.axis.begins[window]).astype(np.intp)
        each = max(40, _PLAIN // max(1, actual.shape[1]))
        kept = [thin_out(np.nan_to_num(column), stretches, self.axis.places[window], each) for column in actual.T]
        return np.unique(np.concatenate([*kept, np.linspace(0, length - 1, 40).astype(np.intp)])).astype(np.intp)

    def similar(self, case: Case, window: slice) -> int | None:
        """Return where the most similar normal situation as long as a window begins; None if there is none.

        All of its rows are outside of cases, without a gap, in the mode of the case. Compared are some rows of the
        window in the sensors that the case is not about, each in units of its range.
        """
        length = window.stop - window.start
        n = len(self._values)
        normal = self._outside & (self.findings.rows.modes == self.findings.rows.modes[case.peak])
        bad = np.concatenate([[0], np.cumsum(~normal)])
        gaps = np.concatenate([[0], np.cumsum(self.axis.begins)])
        starts = np.arange(n - length + 1)
        whole = (bad[starts + length] == bad[starts]) & (gaps[starts + length] == gaps[starts + 1])
        candidates = np.flatnonzero(whole)
        if not len(candidates):
            return None
        compared = self._compared(case)
        candidates = candidates[:: max(1, len(candidates) * len(compared) // _COMPARED)]
        distances, known = np.zeros(len(candidates)), np.zeros(len(candidates))
        readings = self._scaled[:, compared]
        for offset in np.linspace(0, length - 1, min(_OFFSETS, length)).astype(np.intp):
            apart = readings[candidates + offset] - readings[window.start + offset]
            squares = np.einsum("ij,ij->i", apart, apart)
            seen = np.full(len(apart), len(compared))
            holed = np.isnan(squares)  # rows in which a reading is missing
            seen[holed] = np.count_nonzero(np.isfinite(apart[holed]), axis=1)
            squares[holed] = np.nansum(apart[holed] ** 2, axis=1)
            distances, known = distances + squares, known + seen
        found = known > 0.5 * known.max()
        if not known.max() or not found.any():
            return None
        return int(candidates[np.where(found, distances / np.maximum(known, 1), np.inf).argmin()])

    @cached_property
    def _scaled(self) -> NDArray[np.float32]:
        return (self._values / self.findings.inputs.ranges).astype(np.float32)

    def _compared(self, case: Case) -> IndexArray:
        """The columns that a case is not about: that did not leave their range, or have no charts; else all."""
        every = np.arange(self._values.shape[1])
        out = np.setdiff1d(
            every, [sensor.column for sensor in case.sensors if sensor.onset >= 0 or case.incident is None]
        )
        rest = np.setdiff1d(every, [sensor.column for sensor in case.in_order])
        return next(some for some in (out, rest, every) if len(some) >= min(3, len(every)))

    def heat(self, case: Case) -> Packed | None:
        """Pack cells of −126 … 126 steps of `full`, sensors × time; None where nothing is known of single sensors.

        With evidence, a cell shows how far a sensor is beyond the usual, with the sign of the difference from what was
        expected; else that difference in units of the sensor's range. A cell of several rows shows the farthest one.
        """
        window = self.window(case)
        evidence = self.findings.rows.evidence
        columns = np.flatnonzero(np.isin(self.findings.inputs.names, self.findings.inputs.choice.causes))
        values = self._values[window][:, columns]
        residuals = values - self._expected[window][:, columns]
        if evidence is not None:
            shown = np.where(np.isnan(values), np.nan, evidence[window][:, columns] * np.sign(residuals))
        else:
            shown = residuals / self.findings.inputs.ranges[columns]
        inside = shown[case.start - window.start : case.end + 1 - window.start]
        sizes = np.nanmean(np.where(np.isnan(inside), 0.0, np.abs(inside)), axis=0)
        order = np.argsort(-sizes, kind="stable")[:MOST_VARIABLES]
        order = order[sizes[order] > 0]
        if not len(order) or np.isnan(shown[:, order]).mean() > _MOST_EMPTY:
            return None
        axis = self.local_axis(window)
        length = window.stop - window.start
        places = axis.places
        first = np.unique(
            [*np.linspace(0, length, min(MOST_BINS, length) + 1)[:-1].astype(np.intp), *np.flatnonzero(axis.begins)]
        )
        cells = _farthest(shown[:, order], first)
        unknown = np.where(np.isnan(_farthest(values[:, order], first)), -128, -127)
        full = _FULL_EVIDENCE if evidence is not None else _full_colour(cells)
        steps = np.where(np.isnan(cells), unknown, np.clip(np.rint(np.nan_to_num(cells) / full * 126), -126, 126))
        last = np.append(first[1:], length) - 1
        ends = np.minimum(places[last] + axis.step, np.append(places[first[1:]], np.inf))  # a gap is a bin by itself
        after_gap = np.flatnonzero(ends[:-1] < places[first[1:]]) + 1
        edges = np.insert(np.append(places[first], ends[-1]), after_gap, ends[after_gap - 1])
        steps = np.insert(steps, after_gap, -128, axis=1)
        return {
            "names": [shown_name(self.findings.inputs.names[columns[j]]) for j in order],
            "units": [self.findings.inputs.units[self.findings.inputs.names[columns[j]]] for j in order],
            "ranges": [float(self.findings.inputs.ranges[columns[j]]) for j in order],
            "edges": pack_places(edges),
            "cells": pack_bytes(steps, "i1"),
            "full": full,
        }


def _farthest(values: FloatArray, first: IndexArray) -> FloatArray:
    """(columns, bins) the value of each bin that is farthest from 0; NaN where there is none."""
    known = ~np.isnan(values)
    high = np.maximum.reduceat(np.where(known, values, -np.inf), first, axis=0)
    low = np.minimum.reduceat(np.where(known, values, np.inf), first, axis=0)
    farthest = np.where(high >= -low, high, low)
    result: FloatArray = np.where(np.isfinite(farthest), farthest, np.nan).T
    return result


def _full_colour(cells: FloatArray) -> float:
    """Of the strongest colour: so that only one known cell in a hundred is beyond it."""
    sizes = np.abs(cells[np.isfinite(cells)])
    full = float(np.quantile(sizes, 0.99)) if len(sizes) else 0.0
    return full if full > 0 else 1.0


def case_data(findings: Findings, axis: Axis, cases: Sequence[Case]) -> dict[int, Packed]:
    """Pack the charts of the most severe cases, and heat maps of the first of them; of many, fewer charts each."""
    charts = CaseCharts(findings, axis, cases)
    opened = [case for case in cases if case.sensors][:_MOST_OPENED]
    most = next((charts_each for n_cases, charts_each in _CHARTS_OF_MANY if len(opened) > n_cases), MOST_CHARTS)
    found = {}
    for place, case in enumerate(opened):
        found[case.number] = charts.pack(case, most)
        found[case.number]["heat"] = charts.heat(case) if place < MOST_HEAT else None
    return found


def most_involved(findings: Findings, cases: Sequence[Case]) -> IndexArray:
    """Return the columns: those that have shifted first, then those that most and the most severe cases are about."""
    weight = np.zeros(len(findings.inputs.names))
    for place, shift in enumerate(findings.assessment.shifts):
        weight[findings.inputs.names.index(shift.name)] = 1 + 1 / (1 + place)
    for case in cases:
        for place, sensor in enumerate(case.sensors[:MOST_CHARTS]):
            weight[sensor.column] += 1 / ((1 + case.rank) * (1 + place))
    return np.argsort(-weight, kind="stable").astype(np.intp)


def explorer_data(findings: Findings, axis: Axis, cases: Sequence[Case], areas: Areas) -> Packed:
    """Pack the scores and all sensors over the whole time: finely the most involved, the others coarsely if many.

    A level is a list of places that several curves share.
    """
    n, p = len(findings.scores), len(findings.inputs.names)
    fine = Level.of(axis, n if n * p <= _ALL_CELLS else max(_FINE_POINTS, min(_MOST_FINE, n // 20)))
    coarse = fine if n * p <= _ALL_CELLS or p <= FINE_SENSORS else Level.of(axis, COARSE_POINTS)
    order = most_involved(findings, cases)
    values = findings.inputs.values.to_numpy()
    finely = set(order[:FINE_SENSORS].tolist()) if coarse is not fine else set(range(p))
    sensors = [
        {
            "name": shown_name(name),
            "unit": findings.inputs.units[name],
            "area": areas.of(name),
            "level": 0 if column in finely else 1,
            "curve": pack_curve((fine if column in finely else coarse).thin(values[:, column])),
        }
        for column, name in enumerate(findings.inputs.names)
    ]
    return {
        "levels": [level.packed() for level in ((fine,) if coarse is fine else (fine, coarse))],
        "sensors": sensors,
        "order": order.tolist(),
        "score": pack_curve(fine.thin(findings.scores)),
        "fine_rows": fine.size,
        "coarse_rows": coarse.size,
        "n_fine": len(finely),
    }
