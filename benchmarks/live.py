"""Measure the live parts.

    .venv/bin/python benchmarks/live.py [alarm-noise]

alarm-noise: how many alarms a day, with the alarm core and without it, and how many of the true incidents have one.
Sensors are judged by each other over time, learnt from a good period (`benchmarks/plant.py`, ii); all later rows are
scored as they would be live. "rows": each row above the threshold is an alarm. "runs": each unbroken run of such rows.
"core": `penstock.live.alarms`. An incident has an alarm if a row, run or alarm overlaps it; an alarm that overlaps none
is false. On SKAB (1 Hz, runs of twenty minutes) delays are seconds, and a day is 86,400 rows.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from time import process_time

import numpy as np
from plant import BoolArray, Series, read_plant, read_skab, read_varied

from penstock import SensorDetector
from penstock._types import FloatArray, StreamScores
from penstock.detection import Model
from penstock.live.alarms import ALARM, AlarmBook, AlarmRules, Change
from penstock.live.scorers import Verdicts
from penstock.thresholds import ConformalPValue

SECONDS = AlarmRules(on_delay="5s", off_delay="30s", min_duration="10s", rejoin="5min", no_data=0)
Span = tuple[float, float]


@dataclass
class Noise:
    """Days that were judged, true incidents, and by way of counting: alarms, false ones, incidents that have one."""

    days: float = 0.0
    incidents: int = 0
    alarms: dict[str, int] = field(default_factory=dict)
    false: dict[str, int] = field(default_factory=dict)
    found: dict[str, int] = field(default_factory=dict)

    def add(self, way: str, alarms: list[Span], incidents: list[Span]) -> None:
        """Count the alarms of one series."""
        false = [alarm for alarm in alarms if not any(_overlap(alarm, span) for span in incidents)]
        found = [span for span in incidents if any(_overlap(alarm, span) for alarm in alarms)]
        for counts, number in ((self.alarms, alarms), (self.false, false), (self.found, found)):
            counts[way] = counts.get(way, 0) + len(number)


def _overlap(one: Span, other: Span) -> bool:
    return one[0] <= other[1] and one[1] >= other[0]


def _runs(rows: BoolArray, seconds: FloatArray) -> list[Span]:
    """Return the first and last second of each unbroken run of rows."""
    edges = np.flatnonzero(np.diff(np.concatenate([[False], rows, [False]]).astype(np.int8)))
    return [(seconds[begin], seconds[end - 1]) for begin, end in edges.reshape(-1, 2)]


def _incidents(series: Series, later: BoolArray, seconds: FloatArray) -> list[Span]:
    """Return the true incidents among later rows: the faults of a plant, or runs of labelled rows."""
    if not series.events:
        return _runs(series.faults[later], seconds)
    every = [rows[later] for is_fault, rows in series.events if is_fault]
    return [(seconds[rows].min(), seconds[rows].max()) for rows in every if rows.any()]


def _thresholds(detector: SensorDetector, kind: str, scores: FloatArray) -> FloatArray:
    if kind == "model's own":
        return np.full(len(scores), Model.of_detector(detector).threshold_of("auto"))
    if kind == "5 % of rows":
        return np.full(len(scores), np.quantile(detector.as_new_, 0.95))
    running, found = ConformalPValue(0.01), np.empty(len(scores))
    running.update_many(detector.as_new_)
    for place, score in enumerate(scores.tolist()):
        found[place] = running.value
        running.update(score)
    return found


def _verdicts(scores: FloatArray, evidence: FloatArray, thresholds: FloatArray, X: FloatArray) -> Verdicts:
    flags = scores > thresholds
    order = np.argsort(-evidence, axis=1, kind="stable")[:, :3]
    variables = np.where(flags[:, None] & (np.take_along_axis(evidence, order, axis=1) > 0), order, -1)
    found = StreamScores(scores, thresholds, flags, variables, np.full(order.shape, np.nan))
    return Verdicts(found, readings=X, evidence=evidence)


def noise_of(sets: Iterator[Series], kind: str, rules: AlarmRules) -> Noise:
    """Count alarms over series."""
    noise = Noise()
    for series in sets:
        later = np.arange(len(series.good)) > np.flatnonzero(series.good).max()
        detector = SensorDetector(random_state=0).fit(series.X[series.good], time=60 * series.time[series.good])
        seconds = 60 * series.time[later]
        judged = detector.monitor().update_many(series.X[later], time=seconds)
        verdicts = _verdicts(
            judged.scores, judged.evidence, _thresholds(detector, kind, judged.scores), series.X[later]
        )
        flags, incidents = verdicts.scores.flags, _incidents(series, later, seconds)
        book, names = AlarmBook(rules), [str(number) for number in range(series.X.shape[1])]
        events = book.update(verdicts.for_alarms("a", seconds.tolist(), names))
        newest = {event.alarm.id: event.alarm for event in events if isinstance(event, Change) and event.alarm}
        newest |= {alarm.id: alarm for alarm in book.alarms()}
        noise.days += float(np.median(np.diff(seconds))) * len(seconds) / 86_400
        noise.incidents += len(incidents)
        noise.add("rows", [(time, time) for time in seconds[flags]], incidents)
        noise.add("runs", _runs(flags, seconds), incidents)
        noise.add("core", [(a.since, a.last) for a in newest.values() if a.about == ALARM], incidents)
    return noise


def alarm_noise() -> None:
    """Print alarms per day and the share of true incidents that have one, with and without the core."""
    sets: dict[str, tuple[Callable[[list[int]], Iterator[Series]], list[int], AlarmRules]] = {
        "plant": (read_plant, [0, 1], AlarmRules(no_data=0)),
        "varied": (read_varied, [0, 1, 2], AlarmRules(no_data=0)),
        "SKAB": (read_skab, [], SECONDS),
    }
    print(f"{'':<8}{'threshold':<13}{'':<6}{'alarms/day':>11}{'false/day':>11}{'incidents with an alarm':>25}")
    for name, (read, seeds, rules) in sets.items():
        for kind in ("model's own", "5 % of rows", "conformal"):
            begun = process_time()
            noise = noise_of(read(seeds), kind, rules)
            for way in ("rows", "runs", "core"):
                rates = f"{noise.alarms[way] / noise.days:>11.3g}{noise.false[way] / noise.days:>11.3g}"
                print(f"{name:<8}{kind:<13}{way:<6}{rates}{f'{noise.found[way]} of {noise.incidents}':>25}")
            print(f"{'':<8}{noise.days:.3g} days; {process_time() - begun:.0f} s of CPU time")


if __name__ == "__main__":
    parts = {"alarm-noise": alarm_noise}
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("parts", nargs="*", default=[*parts], choices=[*parts])
    for part in parser.parse_args().parts:
        parts[part]()
