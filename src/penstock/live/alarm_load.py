"""How much alarms ask of operators: the measures of ISA-18.2 and IEC 62682, from the changes of alarms.

The targets are figures from secondary sources (docs/alarms.md), not from the standards themselves.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from statistics import median
from typing import Any

from penstock.live.alarm_records import Alarm, Change

_PERIOD, _HOUR, _DAY = 600.0, 3600.0, 86_400.0
_FLOOD = 10  # more alarms in 10 minutes are a flood
_CHATTER, _MINUTE = 3, 60.0
_SHOWN = ("raised", "returned", "re-alarmed")  # what an operator is shown
_Changed = tuple[Change, Alarm]


@dataclass(frozen=True)
class AlarmLoad:
    """Alarms per operator, and alarms that are no use to operators.

    seconds : length of the record.
    alarms, shown : how many different alarms were shown, and how often: one that returns or is re-alarmed counts again.
    mean_10_minutes, mean_hour, mean_day : shown per operator; most_…: in one period of the clock.
    flood_share : share of the 10-minute periods with more than 10 per operator.
    chattering : alarms (ids) shown 3 times or more within a minute.
    fleeting : how often one ended within a minute, before it was acknowledged.
    stale, most_stale : alarms that were active for more than 24 hours, and how many of them at once.
    top, top_share : the ten assets and causes shown most often, how often, and their share (NaN if nothing was shown).
    acknowledged, median_to_acknowledge : how many alarms were, and after how many seconds (NaN if none was).
    """

    seconds: float
    alarms: int
    shown: int
    mean_10_minutes: float
    mean_hour: float
    mean_day: float
    most_10_minutes: float
    most_hour: float
    most_day: float
    flood_share: float
    chattering: tuple[str, ...]
    fleeting: int
    stale: tuple[str, ...]
    most_stale: int
    top: tuple[tuple[str, int], ...]
    top_share: float
    acknowledged: int
    median_to_acknowledge: float

    def rows(self) -> list[tuple[str, float, str, bool]]:
        """Return the measures in words: what, how much, the target (secondary sources), and whether it is met."""
        flood, top = 100 * self.flood_share, 100 * self.top_share
        goal = "1 to 5" if top < 100 else ""  # of ten causes or fewer, all are among the top ten
        return [
            ("alarms", self.alarms, "", True),
            ("shown to operators", self.shown, "", True),
            ("per operator in 10 minutes, mean", self.mean_10_minutes, "about 1", self.mean_10_minutes <= 1),
            ("per operator in 10 minutes, most", self.most_10_minutes, "10", self.most_10_minutes <= 10),
            ("per operator in an hour, mean", self.mean_hour, "about 6", self.mean_hour <= 6),
            ("per operator in a day, mean", self.mean_day, "about 144", self.mean_day <= 144),
            ("per operator in a day, most", self.most_day, "", True),
            ("% of 10-minute periods with more than 10 (flood)", flood, "under 1", flood < 1),
            ("chattering (3 or more in a minute)", len(self.chattering), "0", not self.chattering),
            ("fleeting (ended within a minute)", self.fleeting, "0", not self.fleeting),
            ("stale (active for more than 24 h)", len(self.stale), "", True),
            ("stale at once, most", self.most_stale, "under 5", self.most_stale < 5),
            ("% of what was shown from the top ten causes", top, goal, top <= 5 or not goal),
            ("acknowledged", self.acknowledged, "", True),
        ]

    def figures(self) -> list[dict[str, Any]]:
        """Return the measures that are known, as texts for people."""
        return [
            {"name": name, "value": f"{value:.3g}", "target": target and f"target: {target}", "within": within}
            for name, value, target, within in self.rows()
            if math.isfinite(value)
        ]


def alarm_load(
    changes: Iterable[Change], start: float | None = None, end: float | None = None, operators: int = 1
) -> AlarmLoad:
    """Measure the load of alarms from changes in order of time, for so many operators who share it.

    The record goes from `start` to `end` in seconds (the first and last change if None). Alarms that were shelved,
    suppressed, out of service, silenced or inhibited were not shown.

    >>> from penstock.live.alarm_records import RowVerdict
    >>> from penstock.live.alarms import AlarmBook
    >>> book = AlarmBook()
    >>> changes = book.update(RowVerdict("a", 60.0 * row, 9.0 * (row % 100 > 50), 4.0) for row in range(1440))
    >>> load = alarm_load([each for each in changes if isinstance(each, Change)], 0.0, 86_400.0)
    >>> load.alarms, load.shown, load.mean_day
    (1, 14, 14.0)
    """
    every = [(change, change.alarm) for change in changes if change.alarm is not None]
    times = [change.time for change, _ in every]
    start = min(times, default=0.0) if start is None else start
    end = max(times, default=start) if end is None else end
    shown = [(change, alarm) for change, alarm in every if change.kind in _SHOWN and not change.quiet]
    seconds = max(end - start, 0.0)
    widths = (_PERIOD, _HOUR, _DAY)
    periods = {width: Counter(math.floor(change.time / width) for change, _ in shown) for width in widths}
    most = {width: max(counts.values(), default=0) / operators for width, counts in periods.items()}
    n_periods = math.floor(end / _PERIOD) - math.floor(start / _PERIOD) + 1
    floods = sum(count > _FLOOD * operators for count in periods[_PERIOD].values())
    causes = Counter(f"{change.asset}: {alarm.cause}" for change, alarm in shown)
    top = tuple(sorted(causes.items(), key=lambda pair: (-pair[1], pair[0]))[:10])
    runs = _active_runs(every, end)
    stale = {name: [run for run in of_one if run[1] - run[0] > _DAY] for name, of_one in runs.items()}
    waits: dict[str, float] = {}  # of each alarm for its first acknowledgement
    fleeting = 0
    for change, alarm in every:
        if change.kind == "acknowledged":
            waits.setdefault(alarm.id, change.time - alarm.raised)
        elif change.kind == "ended" and alarm.ended is not None:
            fleeting += alarm.ended - alarm.raised <= _MINUTE and not alarm.state.acknowledged
    return AlarmLoad(
        seconds=seconds,
        alarms=len({alarm.id for _, alarm in shown}),
        shown=len(shown),
        mean_10_minutes=len(shown) / operators / max(seconds / _PERIOD, 1.0),
        mean_hour=len(shown) / operators / max(seconds / _HOUR, 1.0),
        mean_day=len(shown) / operators / max(seconds / _DAY, 1.0),
        most_10_minutes=most[_PERIOD],
        most_hour=most[_HOUR],
        most_day=most[_DAY],
        flood_share=floods / n_periods,
        chattering=_chattering(shown),
        fleeting=fleeting,
        stale=tuple(sorted(name for name, of_one in stale.items() if of_one)),
        most_stale=_most_at_once([(begin + _DAY, until) for of_one in stale.values() for begin, until in of_one]),
        top=top,
        top_share=sum(count for _, count in top) / len(shown) if shown else math.nan,
        acknowledged=len(waits),
        median_to_acknowledge=median(waits.values()) if waits else math.nan,
    )


def _active_runs(changes: Sequence[_Changed], end: float) -> dict[str, list[tuple[float, float]]]:
    """Return from when to when each alarm was active."""
    runs: dict[str, list[tuple[float, float]]] = defaultdict(list)
    begun: dict[str, float] = {}
    for change, alarm in changes:
        if change.kind in ("raised", "returned"):
            begun[alarm.id] = change.time
        elif change.kind == "ended" and alarm.id in begun:
            runs[alarm.id].append((begun.pop(alarm.id), change.time))
    for name, since in begun.items():
        runs[name].append((since, end))
    return runs


def _chattering(shown: Sequence[_Changed]) -> tuple[str, ...]:
    times: dict[str, list[float]] = defaultdict(list)
    for change, alarm in shown:
        times[alarm.id].append(change.time)
    found = [
        name
        for name, of_one in times.items()
        if any(place - bisect_left(of_one, time - _MINUTE) + 1 >= _CHATTER for place, time in enumerate(of_one))
    ]
    return tuple(sorted(found))


def _most_at_once(spans: Sequence[tuple[float, float]]) -> int:
    """Return how many spans cover one moment, at most.

    >>> _most_at_once([(0, 5), (1, 3), (3, 4)])
    2
    """
    edges = sorted([(begin, 1) for begin, _ in spans] + [(end, -1) for _, end in spans])
    now = most = 0
    for _, step in edges:
        now += step
        most = max(most, now)
    return most
