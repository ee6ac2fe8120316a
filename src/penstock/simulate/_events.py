"""Calendar of the plant, and its events: which faults and look-alikes happen when, and what they change.

A scenario is what can happen; an event is a scenario with a unit, a size and a time. The thirteen faults of the fixed
calendar and those that a seed draws (`draw_events`) come from the same scenarios.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import pandas as pd

from penstock._types import BoolArray
from penstock.simulate._scenarios import SCENARIOS, STEP, STEPS_PER_HOUR, Effect, Scenario

N_ROWS = 9_219
_N_FAULTS, _N_LOOK_ALIKES = 13, 3
_ATTEMPTS = 1_000  # to place one event

Span = tuple[pd.Timestamp, pd.Timestamp]  # first and last sample, both included
Order = tuple[int, pd.Timestamp, pd.Timestamp, int | None]  # unit, first and last sample, MW (None: as planned, but on)

_FIRST, _LAST = pd.Timestamp("2015-07-01 00:00"), pd.Timestamp("2016-01-31 23:50")
_SPIN_UP = pd.Timedelta(days=7)  # simulated but never recorded: reservoir, oil and iron forget their initial values
# Whole days, first and last: 67 in all. The paper's 9,219 samples are 64 days of its seven months.
_RECORDED: tuple[Span, ...] = tuple(
    (pd.Timestamp(first), pd.Timestamp(last) + pd.Timedelta("23h50min"))
    for first, last in (
        ("2015-07-01", "2015-07-10"), ("2015-08-08", "2015-08-13"), ("2015-09-10", "2015-09-19"),
        ("2015-10-01", "2015-10-06"), ("2015-10-11", "2015-10-16"), ("2015-11-16", "2015-11-21"),
        ("2015-12-08", "2015-12-14"), ("2016-01-01", "2016-01-05"), ("2016-01-07", "2016-01-14"),
        ("2016-01-29", "2016-01-31"),
    )
)  # fmt: skip
_LONGEST_GAP = 36  # samples, six hours


def simulated_times() -> pd.DatetimeIndex:
    """Return every ten minutes of the seven months and of the week before them."""
    return pd.date_range(_FIRST - _SPIN_UP, _LAST, freq=STEP, name="time")


def within(times: pd.DatetimeIndex, spans: Sequence[Span]) -> BoolArray:
    """Return which samples lie in one of the spans, ends included."""
    inside = np.zeros(len(times), dtype=np.bool_)
    for start, end in spans:
        inside |= np.asarray((times >= start) & (times <= end))
    return inside


def recorded(times: pd.DatetimeIndex, rng: np.random.Generator, protected: Sequence[Span]) -> BoolArray:
    """Return which samples are in the table: `N_ROWS`, with random short gaps outside the protected spans."""
    kept = within(times, _RECORDED)
    # The first and the last sample stay, so that the table spans the seven months whatever the seed.
    spared = within(times, [*protected, (_FIRST, _FIRST), (_LAST, _LAST)])
    surplus = int(kept.sum()) - N_ROWS
    while surplus > 0:
        begin = int(rng.integers(len(times)))
        gap = slice(begin, begin + min(int(rng.integers(1, _LONGEST_GAP + 1)), surplus))
        if not spared[gap].any():
            surplus -= int(kept[gap].sum())
            kept[gap] = False
    return kept


@dataclass(frozen=True)
class Event:
    """Something that happens from the first sample to the last, both included.

    A look-alike has no effects: the plant really ran that way. `unit` is 0 for the plant as a whole.
    """

    name: str
    kind: str
    unit: int
    start: pd.Timestamp
    end: pd.Timestamp
    variables: tuple[str, ...]
    description: str
    effects: tuple[Effect, ...] = ()

    @property
    def is_fault(self) -> bool:
        return bool(self.effects)

    @property
    def onsets(self) -> tuple[pd.Timestamp, ...]:
        """First sample of each variable of a fault; empty for a look-alike."""
        return tuple(effect.begin(self.start) for effect in self.effects for _ in effect.variables)

    @property
    def first_effect(self) -> Effect:
        """Effect that begins first; of several, the one that builds up fastest, then the one that is listed first."""
        return min(self.effects, key=lambda effect: (effect.delay, effect.rise))

    @property
    def first_variable(self) -> str:
        return self.first_effect.variables[0] if self.effects else ""

    @property
    def half_size(self) -> pd.Timestamp | None:
        """First sample at which the first variable is changed by half of the greatest change."""
        if not self.effects:
            return None
        begin = self.first_effect.begin(self.start)
        strength = self.first_effect.strength((self.end - begin) // STEP + 1)
        return begin + int(np.argmax(strength >= strength.max() / 2)) * STEP

    @property
    def complete_spans(self) -> list[Span]:
        """Spans without gaps and drop-outs, so that an event is seen from before to after: a slow one at its ends."""
        margin = pd.Timedelta(hours=1)
        if self.kind != "slow":
            return [(self.start - margin, self.end + margin)]
        return [(moment - margin, moment + margin) for moment in (self.start, self.end)]


def _event(
    name: str, unit: int, start: pd.Timestamp, end: pd.Timestamp, place: int = 1, size: float = 1.0, pace: float = 1.0
) -> Event:
    """Return an event; `size` multiplies the sizes of its effects, `pace` their delays and time constants."""
    scenario = SCENARIOS[name]

    def full(variables: tuple[str, ...]) -> tuple[str, ...]:
        owned = [v if v.startswith(("plant_", "unit1_", "unit2_")) else f"unit{unit}_{v}" for v in variables]
        return tuple(variable.format(place=place) for variable in owned)

    effects = tuple(
        replace(
            effect,
            variables=full(effect.variables),
            size=size * effect.size,
            rise=pace * effect.rise,
            delay=pace * effect.delay,
        )
        for effect in scenario.effects
    )
    percent = f"{100 * abs(effects[0].size):.0f}" if effects else ""
    return Event(
        name,
        scenario.kind,
        0 if scenario.of_plant else unit,
        start,
        end,
        full(scenario.variables) or tuple(variable for effect in effects for variable in effect.variables),
        scenario.description.format(unit=unit, place=place, percent=percent),
        effects,
    )


def fixed_events() -> tuple[tuple[Event, ...], tuple[Order, ...]]:
    """Return the events of the fixed calendar, the same for every seed, and the orders for their days."""
    events = tuple(
        _event(name, unit, pd.Timestamp(start), pd.Timestamp(end), place)
        for name, unit, start, end, place in (
            ("air coolers without water", 1, "2015-07-04 11:30", "2015-07-04 18:20", 1),
            ("condenser", 1, "2015-07-07 03:50", "2015-07-07 06:00", 1),
            ("flood", 0, "2015-07-08 12:00", "2015-07-08 18:30", 1),
            ("shear pin", 2, "2015-09-13 18:30", "2015-09-13 19:40", 1),
            ("voltage transformer", 1, "2015-09-14 07:30", "2015-09-14 08:50", 2),
            ("creeping", 2, "2015-09-14 13:00", "2015-09-14 13:40", 1),
            ("efficiency test", 2, "2015-09-17 04:00", "2015-09-17 05:40", 1),
            ("damaged runner", 2, "2015-10-03 18:30", "2015-10-04 00:30", 1),
            ("stuck when cold", 2, "2015-10-04 17:40", "2015-10-04 19:20", 2),
            ("clogged filter", 0, "2015-10-04 22:50", "2015-10-05 04:50", 1),
            ("loose contact", 1, "2015-10-13 16:20", "2015-10-13 18:20", 7),
            ("exchanged cables", 1, "2015-10-14 08:30", "2015-10-14 10:30", 7),
            ("cabinet supply", 2, "2015-10-14 20:00", "2015-10-14 22:00", 1),
            ("shorted field", 1, "2016-01-02 21:10", "2016-01-02 22:00", 1),
            ("seeping bearing", 2, "2016-01-09 13:00", "2016-01-09 17:00", 1),
            ("thrust oil cooler", 1, "2016-01-12 11:10", "2016-01-12 12:20", 1),
        )
    )
    orders = tuple(
        (unit, pd.Timestamp(start), pd.Timestamp(end), power)
        for unit, start, end, power in (
            (1, "2015-07-04 09:30", "2015-07-04 19:30", 52),
            (1, "2015-07-07 02:00", "2015-07-07 03:40", 40),
            (1, "2015-07-07 06:10", "2015-07-07 08:00", 40),
            (1, "2015-07-08 11:00", "2015-07-08 20:00", 60),
            (2, "2015-07-08 11:00", "2015-07-08 20:00", 60),
            (2, "2015-09-13 17:00", "2015-09-13 20:40", 44),
            (1, "2015-09-14 06:30", "2015-09-14 09:30", 38),
            (2, "2015-09-14 07:00", "2015-09-14 10:30", 42),
            (2, "2015-09-14 10:40", "2015-09-14 15:00", 0),
            (2, "2015-09-17 03:30", "2015-09-17 03:50", 14),
            (2, "2015-09-17 05:50", "2015-09-17 07:00", 48),
            (2, "2015-10-03 17:00", "2015-10-04 00:40", 48),
            (2, "2015-10-04 00:50", "2015-10-04 17:20", 0),
            (2, "2015-10-04 17:30", "2015-10-04 21:50", 44),
            (1, "2015-10-04 22:00", "2015-10-05 06:00", 42),
            (2, "2015-10-04 22:00", "2015-10-05 06:00", 36),
            (1, "2015-10-13 15:30", "2015-10-13 19:00", 40),
            (1, "2015-10-14 07:30", "2015-10-14 11:30", 38),
            (2, "2015-10-14 19:00", "2015-10-14 23:00", 36),
            (1, "2016-01-02 20:00", "2016-01-02 23:00", 46),
            (2, "2016-01-09 12:00", "2016-01-09 18:30", 45),
            (1, "2016-01-12 09:30", "2016-01-12 13:30", 18),
        )
    )
    return events, orders


def draw_events(rng: np.random.Generator) -> tuple[tuple[Event, ...], tuple[Order, ...]]:
    """Draw faults and look-alikes that do not overlap, and the orders for them.

    One or two of the faults are slow, two to four propagate. No event is nearer to another than eight hours.
    """
    counts = {"slow": int(rng.integers(1, 3)), "propagating": int(rng.integers(2, 5)), "look-alike": _N_LOOK_ALIKES}
    counts["other"] = _N_FAULTS + _N_LOOK_ALIKES - sum(counts.values())
    groups: dict[str, list[str]] = {group: [] for group in counts}
    for name, scenario in SCENARIOS.items():
        groups[scenario.kind if scenario.kind in groups else "other"].append(name)
    names = [str(name) for group in groups for name in rng.choice(groups[group], size=counts[group], replace=False)]
    stamps = simulated_times()
    stamps = stamps[within(stamps, _RECORDED)]
    events: list[Event] = []
    orders: list[Order] = []
    for name in sorted(names, key=lambda name: -SCENARIOS[name].hours[1]):  # the longest need the most room
        scenario = SCENARIOS[name]
        unit, place = int(rng.integers(1, 3)), int(rng.integers(1, scenario.places + 1))
        size, pace = float(rng.uniform(0.75, 1.3)), float(rng.uniform(0.75, 1.3))
        for _ in range(_ATTEMPTS):
            start = stamps[int(rng.integers(len(stamps)))]
            end = start + round(rng.uniform(*scenario.hours) * STEPS_PER_HOUR) * STEP
            if _has_room(scenario, start, end, events):
                break
        else:  # the long ones leave no room, for example in the months of a heat wave: draw all of them again
            return draw_events(rng)
        events.append(_event(name, unit, start, end, place, size, pace))
        orders += _orders(scenario, unit, start, end, rng)
    return tuple(sorted(events, key=lambda event: event.start)), tuple(orders)


def _has_room(scenario: Scenario, start: pd.Timestamp, end: pd.Timestamp, events: Sequence[Event]) -> bool:
    """Return whether an event is recorded, with some hours around it, in its season and apart from other events."""
    before, after = start - pd.Timedelta(hours=3), end + pd.Timedelta(hours=3)
    # A slow fault lasts over days that are not recorded; its worst day and a half are.
    stretches = [(before, after)]
    if scenario.kind == "slow":
        stretches = [(before, start + pd.Timedelta(hours=3)), (end - pd.Timedelta(hours=36), after)]
    apart = pd.Timedelta(hours=8)
    return (
        all(any(first <= a and b <= last for first, last in _RECORDED) for a, b in stretches)
        and (not scenario.months or start.month in scenario.months)
        and all(end + apart < event.start or event.end + apart < start for event in events)
    )


def _orders(
    scenario: Scenario, unit: int, start: pd.Timestamp, end: pd.Timestamp, rng: np.random.Generator
) -> list[Order]:
    """Return what dispatch orders so that an event has its context."""
    power = None if scenario.load is None else int(rng.integers(scenario.load[0], scenario.load[1] + 1))
    hour = pd.Timedelta(hours=1)
    if scenario.context == "any":
        return []
    if scenario.context == "stands":
        # A look-alike is the standstill itself; a fault happens to a unit that has stood for two hours.
        return [(unit, start, end, 0) if scenario.kind == "look-alike" else (unit, start - 2 * hour, end + hour, 0)]
    if scenario.context == "starts cold":
        return [(unit, start - 6 * hour, start - 2 * STEP, 0), (unit, start - STEP, end + hour, power)]
    if scenario.context == "runs, then stands":
        return [(unit, start - 2 * hour, end + STEP, power), (unit, end + 2 * STEP, end + 6 * hour, 0)]
    units = (1, 2) if scenario.context == "both run" else (unit,)
    return [(one, start - 2 * hour, end + 1.5 * hour, power) for one in units]
