"""Choose the rules of the aligner by measurement: which step, and how long a reading stands.

A plant of its own: loads that wander and follow the day, and tags that follow them, each with a gain, a lag and noise,
read at times of their own. One fault of six hours in one tag. Asked of each rule: is the most severe incident the
fault, does it begin within two steps, does it name the tag. Chosen with the first seeds, confirmed with others:

    python benchmarks/align_study.py 0 1 2          # all rules
    python benchmarks/align_study.py 10 11 12 13 "median, up" "1.5 x q99"    # other seeds, one rule
    python benchmarks/align_study.py 10 11 12 13 "median, up" "1.5 x q99" together    # the same plants on one clock
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

import penstock
from penstock.io.align import ROUND_STEPS, AlignedTag, Alignment, align_readings, tag_intervals

Floats = NDArray[np.float64]
SECOND = 1_000_000
DAY, HOUR, MINUTE = 86_400.0, 3_600.0, 60.0
START = int(pd.Timestamp("2024-03-01").value // 1000)


@dataclass(frozen=True)
class Rate:
    """How tags are read: every so many seconds, with jitter, or when they moved by a dead band (of their noise)."""

    seconds: float
    tags: int
    jitter: float = 0.0
    dead_band: float = 0.0


PLANTS: dict[str, tuple[float, tuple[Rate, ...]]] = {
    "1 min, phases": (12, (Rate(60, 12),)),
    "1 min, jitter": (12, (Rate(60, 12, jitter=8),)),
    "1 and 10 min": (14, (Rate(60, 6), Rate(600, 6))),
    "10 s, 1 min, 5 min": (6, (Rate(10, 4, jitter=1), Rate(60, 4, jitter=3), Rate(300, 4, jitter=10))),
    "1 s to 1 h": (4, (Rate(1, 2), Rate(60, 4, jitter=2), Rate(600, 4), Rate(3600, 2))),
    "1 min and a lab": (14, (Rate(60, 10, jitter=5), Rate(3600, 2, jitter=600))),
    "mostly 15 min": (30, (Rate(60, 2), Rate(900, 10, jitter=30))),
    "exceptions": (10, (Rate(10, 12, dead_band=3.0),)),
    "exceptions and 1 min": (10, (Rate(60, 6, jitter=2), Rate(20, 6, dead_band=5.0))),
    "hourly and 10 min": (60, (Rate(600, 4), Rate(3600, 8, jitter=60))),
}


@dataclass(frozen=True)
class Readings:
    names: list[str]
    codes: NDArray[np.integer]
    times: NDArray[np.int64]
    values: Floats
    tag: str  # with the fault
    begin: int
    end: int


def wandering(grid: Floats, rng: np.random.Generator) -> Any:
    """A load in 0..1: the day, the week and a slow random walk that is pulled back."""
    dt = grid[1] - grid[0]
    pull = np.exp(-dt / (2 * HOUR))
    noise = rng.normal(size=len(grid)) * np.sqrt(1 - pull**2)
    noise[0] = rng.normal() * (1 - pull)
    walk = pd.Series(noise).ewm(alpha=1 - pull, adjust=False).mean().to_numpy() / (1 - pull)
    return 0.5 + 0.2 * np.sin(2 * np.pi * grid / DAY) + 0.15 * walk


def lagged(load: Floats, dt: float, lag: float) -> Any:
    return pd.Series(load).ewm(alpha=1 - np.exp(-dt / lag), adjust=False).mean().to_numpy()


def make_plant(name: str, seed: int, together: bool) -> Readings:
    """All readings of a plant, in order of time, with a fault in one tag for six hours; `together`: at equal times."""
    days, rates = PLANTS[name]
    rng = np.random.default_rng([seed, list(PLANTS).index(name)])
    dt = 10.0
    grid = np.arange(0.0, days * DAY, dt)
    drives = [wandering(grid, rng), wandering(grid, rng)]
    each = [rate for rate in rates for _ in range(rate.tags)]
    faulty = int(rng.integers(len(each)))
    begin = float(rng.uniform(0.4, 0.8) * days * DAY)
    length = max(6 * HOUR, 8 * each[faulty].seconds)
    codes, times, values = [], [], []
    for code, rate in enumerate(each):
        gains = rng.uniform(5, 40), rng.uniform(-10, 10)
        lag, noise = float(rng.choice([30, 120, 600])), float(rng.uniform(0.2, 0.6))
        truth = sum(gain * lagged(drive, dt, lag) for gain, drive in zip(gains, drives, strict=True)) + 50
        when = np.arange(rng.uniform(0, rate.seconds), days * DAY, rate.seconds)
        when = np.sort(when + rate.jitter * rng.normal(size=len(when)))
        if together:
            when = np.arange(0.0, days * DAY, max(MINUTE, float(np.median([each_.seconds for each_ in each]))))
        value = np.interp(when, grid, truth) + noise * rng.normal(size=len(when))
        if code == faulty:
            value = value + np.where((when >= begin) & (when < begin + length), rng.choice([-1, 1]) * 8 * noise, 0.0)
        if rate.dead_band and not together:
            kept = exceptions(value, rate.dead_band * noise)
            when, value = when[kept], value[kept]
        codes.append(np.full(len(when), code))
        times.append(START + (when * SECOND).astype(np.int64))
        values.append(np.round(value, 3))
    order = np.argsort(np.concatenate(times), kind="stable")
    all_codes, all_values = np.concatenate(codes)[order], np.concatenate(values)[order]
    names = [f"T{code:02d}" for code in range(len(each))]
    edges = START + int(begin * SECOND), START + int((begin + length) * SECOND)
    return Readings(names, all_codes, np.concatenate(times)[order], all_values, names[faulty], *edges)


def exceptions(values: Floats, band: float) -> list[int]:
    """Which readings a historian keeps: those that differ from the last one kept by more than a dead band."""
    kept, last = [0], values[0]
    for number, value in enumerate(values.tolist()):
        if abs(value - last) > band:
            kept.append(number)
            last = value
    return kept


Samples = list[NDArray[np.int64]]


def step_of(quantile: float, up: bool) -> Callable[[Samples], int]:
    def choose(samples: Samples) -> int:
        usual = float(np.quantile([np.median(each) for each in samples], quantile))
        steps = np.array(ROUND_STEPS)
        place = np.searchsorted(steps, usual * 0.9) if up else np.searchsorted(steps, usual * 1.05, "right") - 1
        return int(steps[np.clip(place, 0, len(steps) - 1)])

    return choose


def hold_of(quantile: float, factor: float) -> Callable[[NDArray[np.int64], int], int]:
    return lambda sample, step: int(max(factor * np.quantile(sample, quantile), step))


STEPS = {
    "fastest": step_of(0.0, False),
    "quarter": step_of(0.25, False),
    "median": step_of(0.5, False),
    "median, up": step_of(0.5, True),
    "three quarters": step_of(0.75, True),
    "slowest": step_of(1.0, True),
}
HOLDS = {
    "1.5 x median": hold_of(0.5, 1.5),
    "1.5 x q90": hold_of(0.9, 1.5),
    "1.5 x q99": hold_of(0.99, 1.5),
    "3 x q99": hold_of(0.99, 3.0),
    "longest": hold_of(1.0, 1.0),
}


def assess(plant: Readings, step_rule: str, hold_rule: str) -> dict[str, object] | None:
    samples = tag_intervals(plant.codes, plant.times, plant.values, len(plant.names))
    step = STEPS[step_rule](samples)
    if (plant.times[-1] - plant.times[0]) / step > 200_000:
        return None
    tags = [
        AlignedTag(name, int(np.median(sample)), HOLDS[hold_rule](sample, step))
        for name, sample in zip(plant.names, samples, strict=True)
    ]
    rows, _ = align_readings(Alignment(step, tuple(tags)), plant.codes, plant.times, plant.values)
    table = pd.DataFrame(rows.values, columns=plant.names)
    table.insert(0, "time", rows.times.astype("M8[us]"))
    before = time.process_time()
    incidents = penstock.detect(table, most_explained=0).incident_table
    result: dict[str, object] = {
        "step": step / SECOND,
        "rows": len(table),
        "seconds": time.process_time() - before,
        "missing": float(np.isnan(rows.values).mean()),
        "found": False,
        "begins": False,
        "named": False,
        "delay": np.nan,
    }
    if len(incidents):
        first = incidents.iloc[0]
        start, end = (int(pd.Timestamp(first[name]).value // 1000) for name in ("start", "end"))
        own = plant.times[plant.codes == plant.names.index(plant.tag)]
        shown = int(own[min(np.searchsorted(own, plant.begin), len(own) - 1)])  # the first reading with the fault
        result["found"] = start < plant.end and end + step > plant.begin
        result["begins"] = bool(result["found"]) and abs(start - shown) <= 2 * step
        result["named"] = bool(result["found"]) and first["first_sensor"] == plant.tag
        result["delay"] = (start - plant.begin) / SECOND / MINUTE if result["found"] else np.nan
    return result


def run(seeds: list[int], steps: list[str], holds: list[str], together: bool) -> Iterator[dict[str, object]]:
    for name in PLANTS:
        for seed in seeds:
            plant = make_plant(name, seed, together)
            for step_rule in steps:
                for hold_rule in holds:
                    result = assess(plant, step_rule, hold_rule)
                    if result is not None:
                        yield {"plant": name, "seed": seed, "rule": step_rule, "hold": hold_rule, **result}


def main() -> None:
    seeds = [int(word) for word in sys.argv[1:] if word.isdigit()] or [0, 1, 2]
    together = "together" in sys.argv
    picked = [word for word in sys.argv[1:] if not word.isdigit() and word != "together"]
    steps = [rule for rule in STEPS if not picked or rule in picked]
    holds = [rule for rule in HOLDS if not picked or rule in picked]
    table = pd.DataFrame(run(seeds, steps, holds, together))
    pd.set_option("display.width", 250, "display.max_columns", 40, "display.max_rows", 200)
    table["all"] = table["found"] & table["begins"] & table["named"]
    measures = {"found": "mean", "begins": "mean", "named": "mean", "all": "mean", "delay": "median", "seconds": "mean"}
    print(table.groupby(["rule", "hold"], sort=False).agg({**measures, "seed": "count"}).round(2))
    print(table.pivot_table(index="plant", columns=["rule", "hold"], values="all", sort=False).round(2).T)
    print(table.groupby(["plant", "rule"], sort=False)["step"].mean().unstack())


if __name__ == "__main__":
    main()
