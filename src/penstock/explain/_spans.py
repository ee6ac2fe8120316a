"""Say from when to when an incident was, and of which kind it is, by the readings themselves.

Evidence is spread over time by moving means: it begins before a fault or ends after it. A reading is *off* in a row if
it is farther from what is expected than in any row outside incidents; or if the median of the five rows around is
farther than in 99.5 % of these, and the row itself is as far on the same side. What is off tells the span; how far
readings are beyond their usual range tells the kind.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from penstock._messages import quoted
from penstock._types import BoolArray, FloatArray, IndexArray
from penstock.columns.roles import DRIVER
from penstock.explain._incident_parts import IncidentPart, Series
from penstock.explain.events import USUAL_STEPS

FEWEST_READINGS = 30  # elsewhere, to say what is usual
_SAMPLE = 5_000  # rows elsewhere that say what is usual
_HALF = 2  # rows before and after one whose median is taken
_USUAL_MEDIANS = 0.995
_USUAL_RESIDUALS = 0.99
_USUAL_LEVELS = 0.005, 0.995
_CLEARLY_OFF = 2.0  # times the limit: no chance, however short
_LEAST_SHARE = 0.05  # of the strongest piece: weaker ones that are not clearly off are noise
_LONGEST_PAUSE = 0.25  # of the run before: a shorter pause is none
_STEEP = 0.1  # of a row beside it: less is the edge of a jump
_BEYOND = 0.02  # of the usual range: a level so far outside is a new one
_FEWEST_BEYOND = 3  # sensors at new levels
_CONTRADICTION, _CONTRADICTION_IF_SWITCHED = 0.2, 0.3  # docs/decisions/0023-kinds-of-incidents.md
_AT_ONE_VALUE = 0.9  # of the rows, of a column that seldom moves
_SELDOM_CHANGES = 0.05  # of the steps, in which a setting, a state or a valve changes
_SELDOM = 0.1  # changes of a setting or state that such a stretch usually has: with more, a change says nothing


@dataclass(frozen=True)
class Circumstance:
    """A setting, state or driver that moved with an incident.

    Attributes
    ----------
    name : str
    row : int
        Where it moved, or first was beyond its usual range.
    text : str
        What it did, to be read after its name: "switched on", "changed from 4.5 to 4.7 bar".

    Examples
    --------
    >>> Circumstance("spillway gate", 120, "switched on").text
    'switched on'
    """

    name: str
    row: int
    text: str


@dataclass(eq=False)
class Elsewhere:
    """Rows that belong to no incident, and what readings do there; worked out once for each sensor that is asked for.

    series : all rows.
    rows : (n,) those that belong to no incident.
    """

    series: Series
    rows: BoolArray
    _limits: dict[int, tuple[float, float, float] | None] = field(default_factory=dict)

    @cached_property
    def sample(self) -> IndexArray:
        """At most 5,000 of the rows, evenly spread."""
        every = np.flatnonzero(self.rows & np.isfinite(self.series.scores))
        return every[np.linspace(0, len(every) - 1, min(len(every), _SAMPLE)).astype(np.intp)]

    def off(self, column: int, rows: IndexArray) -> FloatArray:
        """Return by how many times a sensor exceeds its limit in some rows: above 1 it is off; 0 if not known."""
        limits = self.limits(column)
        if limits is None:
            return np.zeros(len(rows))
        center, single, smooth = limits
        own = self.series.readings[rows, column] - self.series.expected[rows, column] - center
        around = self._medians(column, rows) - center
        both = np.where(own * around > 0, np.fmin(np.abs(own), np.abs(around)), 0.0)
        size: FloatArray = np.nan_to_num(np.fmax(np.abs(own) / single, both / smooth))
        return size

    def limits(self, column: int) -> tuple[float, float, float] | None:
        """Return the usual difference from what is expected, and the limits of a row and of a median of five."""
        if column not in self._limits:
            rows = self.sample
            values = self.series.readings[rows, column]
            apart = values - self.series.expected[rows, column]
            known = apart[np.isfinite(apart)]
            if len(known) < FEWEST_READINGS:
                self._limits[column] = None
            else:
                center = float(np.median(known))
                least = 1e-9 * float(np.nanmax(np.abs(values))) + 1e-300
                medians = np.abs(self._medians(column, rows) - center)
                smooth = float(np.quantile(medians[np.isfinite(medians)], _USUAL_MEDIANS))
                self._limits[column] = center, max(float(np.abs(known - center).max()), least), max(smooth, least)
        return self._limits[column]

    def _medians(self, column: int, rows: IndexArray) -> FloatArray:
        """Return the median of reading − expected over five rows around each, in one history."""
        near = rows[:, None] + np.arange(-_HALF, _HALF + 1)
        there = np.clip(near, 0, len(self.series.scores) - 1)
        values = self.series.readings[there, column] - self.series.expected[there, column]
        values[(near != there) | (self.series.segment[there] != self.series.segment[rows][:, None])] = np.nan
        ordered = np.sort(values, axis=1)
        counts = np.isfinite(values).sum(axis=1)
        low = np.maximum(counts - 1, 0) // 2
        high = np.minimum(counts // 2, 2 * _HALF)
        place = np.arange(len(rows))
        medians: FloatArray = (ordered[place, low] + ordered[place, high]) / 2
        return medians

    @cached_property
    def commonest(self) -> dict[int, float]:
        """The commonest value of columns that have it in nine of ten rows, such as of a pump that seldom runs."""
        found = {}
        for column in range(len(self.series.names)):
            values = self.series.readings[self.sample, column]
            values = values[np.isfinite(values)]
            levels, counts = np.unique(values, return_counts=True)
            if len(values) >= FEWEST_READINGS and counts.max() >= _AT_ONE_VALUE * len(values):
                found[column] = float(levels[counts.argmax()])
        return found

    @cached_property
    def seldom_change(self) -> list[int]:
        """Columns that are not scored and change in under 5 % of the steps, such as settings, states and valves."""
        found = []
        together = np.diff(self.series.segment) == 0
        for column, role in enumerate(self.series.roles):
            if not role.scored:
                steps = np.diff(self.series.readings[:, column])
                steps = steps[together & np.isfinite(steps)]
                if len(steps) and 0 < (steps != 0).mean() < _SELDOM_CHANGES:
                    found.append(column)
        return found

    @cached_property
    def mean_steps(self) -> FloatArray:
        """How far each sensor moves from row to row, on average; NaN where that is not known."""
        rows = self.sample[self.sample > 0]
        rows = rows[self.series.segment[rows] == self.series.segment[rows - 1]]
        steps = np.abs(self.series.readings[rows] - self.series.readings[rows - 1])
        known = np.isfinite(steps)
        counts = known.sum(axis=0)
        sums = np.where(known, steps, 0.0).sum(axis=0)
        return np.where(counts > 0, sums / np.maximum(counts, 1), np.nan)

    @cached_property
    def levels(self) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray]:
        """The usual range of each sensor, from low to high, its width, and the usual limit of |reading − expected|.

        NaN where too few readings are known, or the sensor never moved in any row.
        """
        series = self.series
        low, high = (np.array([getattr(role, end) for role in series.roles]) for end in ("low", "high"))
        if not series.fitted_apart:  # these ranges are of the rows of this table, incidents too
            low, high = np.full(len(low), np.nan), np.full(len(high), np.nan)
        limit, width = np.full(len(low), np.nan), np.full(len(low), np.nan)
        for column in range(len(low)):
            values = series.readings[self.sample, column]
            apart = np.abs(values - series.expected[self.sample, column])
            values, apart = values[np.isfinite(values)], apart[np.isfinite(apart)]
            if len(values) >= FEWEST_READINGS:
                usual = np.quantile(values, _USUAL_LEVELS)
                low[column] = np.fmin(low[column], usual[0])
                high[column] = np.fmax(high[column], usual[1])
            limit[column] = np.quantile(apart, _USUAL_RESIDUALS) if len(apart) >= FEWEST_READINGS else 0.0
            if low[column] == high[column]:  # it never moved: in units of how far it ever went
                width[column] = np.nanmax(np.abs(series.readings[:, column] - low[column]))
        width = np.where(high > low, high - low, np.where(width > 0, width, np.nan))
        return low, high, width, limit


def find_runs(elsewhere: Elsewhere, part: IncidentPart, sensors: IndexArray, before: int) -> list[tuple[int, int]]:
    """Return the first and last row of each run of rows in which one of the sensors is off, joined over short pauses.

    part : the flagged rows, and from where to where the evidence goes.
    before : the last flagged row of the incident before, which no run reaches.

    A run begins before the evidence does if it goes on into it. Where nothing is off, flagged rows make the runs.
    """
    series = elsewhere.series
    margin = max(2 * _HALF, part.end - part.start)
    first = max(part.start - margin, before + 1, 0)
    rows = np.arange(first, part.end + 1)
    rows = rows[series.segment[rows] == series.segment[part.rows[0]]]
    size = np.max([np.zeros(len(rows)), *(elsewhere.off(int(column), rows) for column in sensors)], axis=0)
    pieces = _pieces(rows[_without_edges(size) > 1.0], 1)
    if not pieces:
        return _pieces(part.rows, USUAL_STEPS)
    inside = [size[(rows >= first) & (rows <= last)] for first, last in pieces]
    strength = np.array([(each - 1.0).sum() for each in inside])
    clearly = np.array([each.max() >= _CLEARLY_OFF for each in inside])
    kept = np.flatnonzero((strength >= _LEAST_SHARE * strength.max()) | clearly)
    runs = _join([pieces[place] for place in kept])
    return [run for run in runs if run[1] >= part.start] or _pieces(part.rows, USUAL_STEPS)


def _without_edges(size: FloatArray) -> FloatArray:
    """Return sizes with 0 in rows that are off only because the median of five reaches into what lies beside them.

    Of a row with a tenth of what a row at most two away has, that is so: nothing but a jump is as steep.
    """
    near = [np.roll(size, shift) for shift in range(-_HALF, _HALF + 1) if shift]
    for place, shift in enumerate(shift for shift in range(-_HALF, _HALF + 1) if shift):
        near[place][slice(shift, None) if shift < 0 else slice(None, shift)] = 0.0
    return np.where(size < _STEEP * np.max(near, axis=0), 0.0, size)


def _pieces(rows: IndexArray, step: int) -> list[tuple[int, int]]:
    """Return the first and last of ascending rows that are at most a step apart."""
    if not len(rows):
        return []
    pieces = np.split(rows, 1 + np.flatnonzero(np.diff(rows) > step))
    return [(int(piece[0]), int(piece[-1])) for piece in pieces]


def _join(pieces: list[tuple[int, int]]) -> list[tuple[int, int]]:
    """Join pieces over pauses of at most six rows, or of a quarter of what lies before the pause."""
    done = pieces[:1]
    for first, last in pieces[1:]:
        begin, end = done[-1]
        if first - end - 1 <= max(USUAL_STEPS, _LONGEST_PAUSE * (end - begin + 1)):
            done[-1] = begin, last
        else:
            done.append((first, last))
    return done


def is_new_state(elsewhere: Elsewhere, rows: IndexArray, driven: bool) -> tuple[bool, int]:
    """Say whether sensors are where they never were and agree with each other or with a driver; how many are there.

    driven : whether a driver is beyond its usual range in these rows.

    With e the part of |reading − expected| beyond its usual limit, b how far a reading is outside of its usual range,
    both medians over the rows in units of that range: at least three sensors have b > 0.02, and a driver is beyond its
    range too, or Σe / (Σe + Σb) < 0.2, or 0.3 if a setting or state was switched as it began. Sensors that contradict
    each other have a large e; where they agree at new levels, e is small against b.
    """
    series = elsewhere.series
    low, high, width, limit = elsewhere.levels
    readings = series.readings[rows]
    beyond = np.nan_to_num(np.maximum(np.maximum(low - readings, readings - high), 0.0) / width)
    apart = np.nan_to_num(np.maximum(np.abs(readings - series.expected[rows]) - limit, 0.0) / width)
    are_readings = np.array([role.is_reading for role in series.roles])
    named = np.array([role.named for role in series.roles])
    far = np.where(are_readings, np.median(beyond, axis=0), 0.0)
    wrong = np.where(are_readings & named, np.median(apart, axis=0), 0.0)
    new = int((far > _BEYOND).sum())
    most = _CONTRADICTION_IF_SWITCHED if switched_at(elsewhere, int(rows[0])) else _CONTRADICTION
    agree = driven or float(wrong.sum()) < most * float(wrong.sum() + far.sum())
    return new >= _FEWEST_BEYOND and agree, new


def in_seldom_use(elsewhere: Elsewhere, start: int, end: int) -> str:
    """Say which column is away from the value that it nearly always has, as it was before or after; "" if none is.

    Such as a spare pump that runs, and not for the first time: what others read then was hardly ever seen. Its other
    uses must have as many rows, and score at least half as high in the median: else they do not explain this one.
    """
    series = elsewhere.series
    near = slice(max(start - USUAL_STEPS, 0), end + 1 + USUAL_STEPS)
    score = np.nanmedian(series.scores[start : end + 1])
    for column, usual in elsewhere.commonest.items():
        values = series.readings[:, column]
        away = np.isfinite(values) & (values != usual)
        now = start + np.flatnonzero(away[start : end + 1])
        away[near] = False
        if 2 * len(now) < end + 1 - start or int(away.sum()) < len(now):
            continue
        if 2 * np.nanmedian(series.scores[away]) >= score:
            role = series.roles[column]
            unit = f" {series.units[column]}" if series.units[column] else ""
            value = float(values[now[0]])
            words = role.in_words(value) if role.levels else f"at {value:.4g}{unit}"
            return f"{quoted(series.names[column])} is {words}, which it seldom is"
    return ""


def while_switched(elsewhere: Elsewhere, start: int, end: int) -> str:
    """Say which column was switched as an incident began and again as it ended, "" if none was.

    What lasts exactly as long as that was chosen by somebody, such as a machine that is run in another way.
    """
    both = switched_at(elsewhere, start) & switched_at(elsewhere, min(end + 1, len(elsewhere.series.scores) - 1))
    names = [quoted(elsewhere.series.names[column]) for column in sorted(both)]
    return f"{names[0]} was switched as it began, and again as it ended" if names else ""


def switched_at(elsewhere: Elsewhere, row: int) -> set[int]:
    """Return the columns that seldom change, are not scored, and changed within two rows of one."""
    series = elsewhere.series
    found = set()
    rows = np.arange(max(row - _HALF - 1, 0), min(row + _HALF, len(series.scores)))
    rows = rows[series.segment[rows] == series.segment[row]]
    for column in elsewhere.seldom_change:
        values = series.readings[rows, column]
        values = values[np.isfinite(values)]
        if len(values) and (values != values[0]).any():
            found.add(column)
    return found


def find_circumstances(elsewhere: Elsewhere, start: int, end: int) -> tuple[Circumstance, ...]:
    """Return the settings and states that changed as an incident began or in it, and drivers beyond their usual range.

    A change counts from six rows before the start on, of a column that seldom changes.
    """
    series = elsewhere.series
    first = max(start - USUAL_STEPS, 0)
    rows = np.arange(first, end + 1)
    rows = rows[series.segment[rows] == series.segment[start]]
    found = []
    for column, role in enumerate(series.roles):
        if role.named and not role.levels:
            continue
        name = series.names[column]
        unit = f" {series.units[column]}" if series.units[column] else ""
        values = series.readings[rows, column]
        if role.role == DRIVER:
            low, high, width, _ = (figures[column] for figures in elsewhere.levels)
            inside = values[rows >= start]
            beyond = np.nan_to_num(np.maximum(low - inside, inside - high) / width)
            if np.median(beyond) > _BEYOND:
                most = inside[int(beyond.argmax())]
                text = f"reached {most:.4g}{unit}, usual are {low:.4g} to {high:.4g}{unit}"
                found.append(Circumstance(name, start + int((beyond > 0).argmax()), text))
            continue
        known = np.flatnonzero(np.isfinite(values))
        if not len(known):
            continue
        base = _last_known(series, column, int(rows[0]), float(values[known[0]]))
        moved = known[values[known] != base]
        if not len(moved) or _changes(elsewhere, column, rows) * len(rows) > _SELDOM:
            continue
        after = float(values[moved[0]])
        text = f"changed from {base:.6g} to {after:.6g}{unit}"
        if role.levels:
            words = role.in_words(after)
            text = f"switched {words}" if words in ("on", "off") else f"switched from {base:g} to {after:g}"
        found.append(Circumstance(name, int(rows[moved[0]]), text))
    return tuple(sorted(found, key=lambda each: each.row))


def _last_known(series: Series, column: int, row: int, otherwise: float) -> float:
    """Return the last reading before a row, in the same history; another value if there is none."""
    first = max(row - _SAMPLE, 0)
    values = series.readings[first:row, column][series.segment[first:row] == series.segment[row]]
    values = values[np.isfinite(values)]
    return float(values[-1]) if len(values) else otherwise


def _changes(elsewhere: Elsewhere, column: int, without: IndexArray) -> float:
    """Return the share of steps outside incidents, and outside of some rows, in which a column changes."""
    values = elsewhere.series.readings[:, column]
    counts = elsewhere.rows.copy()
    counts[without] = False
    both = counts[1:] & counts[:-1] & (np.diff(elsewhere.series.segment) == 0)
    return float((values[1:] != values[:-1])[both].mean()) if both.any() else 0.0
