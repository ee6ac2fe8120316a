"""Is a look-alike that comes again recognised by the label of the first one, and is no fault excused by it?

    python benchmarks/situations.py 0 6     # seeds 0 to 5, on which the limits were chosen
    python benchmarks/situations.py 6 12    # seeds on which they were confirmed

Each plant has four look-alikes twice, on the same unit, and twelve faults; a second record has the look-alikes twice
with a fault at the same time as the later one. The model is fitted to the same plant without any of these. The
incidents of the earlier ones are labelled as rare but normal; all others are then counted by what the labels make of
them, by `score` and live by `AlarmBook`, with labels of incidents and with those of alarms.
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd

import penstock
from penstock.detection import Findings, Model
from penstock.explain import NORMAL, Incident, Label
from penstock.io import Batch
from penstock.live.alarm_records import ALARM, Alarm, Change, label_alarm
from penstock.live.alarms import AlarmBook
from penstock.live.fitted import FittedScorer
from penstock.simulate._events import (
    _RECORDED,
    Event,
    Order,
    _event,
    _has_room,
    _orders,
    recorded,
    simulated_times,
    within,
)
from penstock.simulate._plant import run_plant, stream
from penstock.simulate._readings import digitise, drop_out, inject, measure, read_plant
from penstock.simulate._scenarios import SCENARIOS, STEP, STEPS_PER_HOUR

Counts = Counter[tuple[str, Any, bool]]
HOUR = pd.Timedelta(hours=1)
LOOK_ALIKES = [name for name, each in SCENARIOS.items() if each.kind == "look-alike"]
FAULTS = [name for name, each in SCENARIOS.items() if each.kind not in ("look-alike", "slow")]


def draw(rng: np.random.Generator, on_top: bool) -> tuple[list[Event], list[Order]]:
    """Return events and orders: four look-alikes twice, and faults, alone or at the same time as the later ones."""
    names = [(str(name), int(rng.integers(1, 3))) for name in rng.choice(LOOK_ALIKES, 4, replace=False)]
    wanted = [pair for pair in names for _ in range(2)]
    if not on_top:
        wanted += [(str(name), int(rng.integers(1, 3))) for name in rng.choice(FAULTS, 12, replace=False)]
    stamps = simulated_times()
    stamps = stamps[within(stamps, _RECORDED)]
    events: list[Event] = []
    orders: list[Order] = []
    for name, unit in sorted(wanted, key=lambda pair: -SCENARIOS[pair[0]].hours[1]):
        scenario = SCENARIOS[name]
        place = int(rng.integers(1, scenario.places + 1))
        for _ in range(3000):
            start = stamps[int(rng.integers(len(stamps)))]
            end = start + round(rng.uniform(*scenario.hours) * STEPS_PER_HOUR) * STEP
            if _has_room(scenario, start, end, events):
                break
        else:
            return draw(rng, on_top)
        events.append(_event(name, unit, start, end, place, rng.uniform(0.75, 1.3), rng.uniform(0.75, 1.3)))
        orders += _orders(scenario, unit, start, end, rng)
    if on_top:
        running = [name for name in FAULTS if SCENARIOS[name].context in ("any", "runs", "both run")]
        for name, unit in names:
            later = max((each for each in events if each.name == name), key=lambda each: each.start)
            fault = str(rng.choice(running))
            place = int(rng.integers(1, SCENARIOS[fault].places + 1))
            events.append(_event(fault, unit, later.start, later.end, place, rng.uniform(0.75, 1.3), 0.3))
    return sorted(events, key=lambda each: each.start), orders


def simulate(seed: int, events: Sequence[Event], orders: Sequence[Order], gaps: str) -> pd.DataFrame:
    times = simulated_times()
    readings, areas = read_plant(run_plant(times, events, orders, seed))
    names = [each.name for each in readings]
    cabinets = [f"{name.split('_')[0]} {area}" for name, area in zip(names, areas, strict=True)]
    values = digitise(inject(measure(readings, cabinets, seed), names, times, list(events)), readings)
    spared = [span for each in events for span in each.complete_spans]
    kept = recorded(times, stream(seed, gaps), spared)
    rows = drop_out(values[kept], within(times, spared)[kept], stream(seed, gaps))
    return pd.DataFrame(rows, index=times[kept], columns=names)


def kind_of(start: pd.Timestamp, end: pd.Timestamp, events: list[Event], firsts: list[Event]) -> str:
    """Say what a stretch is: "first" or "again" of a look-alike, "fault", "fault on it", or "nothing"."""
    hit = [each for each in events if start <= each.end + HOUR and end >= each.start - HOUR]
    if any(each.is_fault for each in hit):
        return "fault on it" if any(not each.is_fault for each in hit) else "fault"
    if not hit:
        return "nothing"
    return "first" if any(each in firsts for each in hit) else "again"


def first_ones(events: list[Event]) -> list[Event]:
    seen, found = set[tuple[str, int]](), list[Event]()
    for each in events:
        if not each.is_fault and (each.name, each.unit) not in seen:
            seen.add((each.name, each.unit))
            found.append(each)
    return found


def count(seed: int, on_top: bool, counts: Counts) -> None:
    events, orders = draw(np.random.default_rng(1000 + seed + 500 * on_top), on_top)
    firsts = first_ones(events)
    model = penstock.fit_model(simulate(seed, (), (), "gaps"))
    table = simulate(seed, events, orders, "gaps2")

    def scored(one: Model) -> tuple[Findings, list[tuple[Incident, str]]]:
        findings = penstock.score(one, table, most_explained=0)
        time: Any = findings.table.time
        kinds = [kind_of(time[each.start], time[each.end], events, firsts) for each in findings.incidents]
        return findings, list(zip(findings.incidents, kinds, strict=True))

    findings, incidents = scored(model)
    knows = model
    for incident, kind in incidents:
        if kind == "first":
            knows = knows.labelled(findings, incident.number, "normal", "bench")
    for incident, kind in scored(knows)[1]:
        counts["score", kind, incident.is_known_normal] += 1

    scorer = FittedScorer(model)
    scorer.begin(tuple(table.columns))
    seconds = table.index.astype("datetime64[s]").astype("i8").to_numpy().astype(float)
    batch = Batch(table.to_numpy(), range(len(table)), [str(each) for each in table.index], [], {}, seconds)
    verdicts = scorer.score(batch, 3).for_alarms("plant", seconds.tolist(), scorer.variable_names)

    def watched(labels: Iterable[Label]) -> list[tuple[Alarm, str, bool, float | None]]:
        book, newest, notified, after = AlarmBook(), dict[str, Alarm](), set[str](), dict[str, float]()
        book.set_labels(labels)
        for event in book.update(verdicts):
            if isinstance(event, Change):
                if event.alarm is not None and event.alarm.about == ALARM:
                    newest[event.alarm.id] = event.alarm
                    if event.alarm.known_as == NORMAL:
                        after.setdefault(event.alarm.id, event.time - event.alarm.raised)
            else:
                notified |= {*event.new}
        newest |= {each.id: each for each in book.alarms() if each.id in newest}
        spans = [[pd.Timestamp(at, unit="s") for at in (each.since, each.last)] for each in newest.values()]
        kinds = [kind_of(start, end, events, firsts) for start, end in spans]
        return [
            (each, kind, each.id in notified, after.get(each.id))
            for each, kind in zip(newest.values(), kinds, strict=True)
        ]

    alarms = [label_alarm(each, NORMAL, "bench", each.last) for each, kind, *_ in watched([]) if kind == "first"]
    for how, labels in (("live, labels of incidents", knows.labels), ("live, labels of alarms", alarms)):
        for each, kind, notified, after in watched(replace(label, asset="") for label in labels):
            known = each.known_as == NORMAL
            counts[how, kind, known] += 1
            counts[how + ", not notified", kind, not notified] += 1
            if kind == "again" and known:
                counts[how + ", minutes", int((after or 0.0) / 60), True] += 1


def main(first: int, last: int) -> None:
    counts: Counts = Counter()
    for seed in range(first, last):
        for on_top in (False, True):
            count(seed, on_top, counts)
        print(f"seed {seed} done", file=sys.stderr, flush=True)
    print(f"seeds {first} to {last - 1}: known as rare but normal, of all that were listed")
    hows = dict.fromkeys(how for how, *_ in counts if "minutes" not in how)
    print(f"{'':<40}" + "".join(f"{kind:>14}" for kind in ("again", "fault", "fault on it", "nothing")))
    for how in hows:
        cells = []
        for kind in ("again", "fault", "fault on it", "nothing"):
            known, other = (counts[how, kind, each] for each in (True, False))
            cells.append(f"{f'{known} of {known + other}':>14}")
        print(f"{how:<40}" + "".join(cells))
    for how in hows:
        minutes = sorted(key[1] for key, n in counts.items() if key[0] == how + ", minutes" for _ in range(n))
        if minutes:
            median = minutes[len(minutes) // 2]
            print(f"{how}: known {median} minutes after it was raised in the median, at most {minutes[-1]}")


if __name__ == "__main__":
    main(*map(int, sys.argv[1:3]))
