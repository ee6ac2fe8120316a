"""The paper's application on the simulated plant: lists of the most anomalous time stamps, and what is true of them.

The paper's plant is private, so its tables (tbl:8, tbl:9) cannot be made again. These are the same tables of another
plant, which is simulated (docs/hydropower.md), and whose faults are known.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import date
from typing import Any

import pandas as pd

from penstock.detection import Findings, detect
from penstock.simulate import SimulatedPlant, found_events, simulate_hydropower

METHODS: Mapping[str, str] = {"NS-NMF": "nsnmf", "online": "online", "GNMF": "gnmf", "SNMF": "snmf", "NMF": "nmf"}
# A unit at rest, and one that starts or stops, is farther from the usual than most faults: they are kept apart.
MODES: Mapping[str, str] = {
    "both units": "unit1_active_power > 5 and unit2_active_power > 5",
    "unit 1": "unit1_active_power > 5",
    "unit 2": "unit2_active_power > 5",
}
SETTLE = "2h"
TOP = 100
_ONLINE, _OURS = "online", "NS-NMF"


@dataclass(frozen=True, eq=False)
class PlantLists:
    """The lists of several methods, held against each other and against the truth.

    `times` and `listing` are the time stamps per method, in the order of time (tbl:8); `overlap` how many each two
    have in common, `common_offline` all but the online method, `common_online` offline and online NS-NMF, `common_all`
    all. `days` counts them on the days with an event (tbl:9); on `harmless_days` nothing was wrong. `events` has a line
    per event with the rows of it in each list, and `faults_found` the numbers of the faults with at least one.
    """

    times: dict[str, pd.DatetimeIndex]
    listing: pd.DataFrame
    overlap: pd.DataFrame
    common_offline: int
    common_online: int | None
    common_all: int
    summary: pd.DataFrame
    days: pd.DataFrame
    harmless_days: set[date]
    events: pd.DataFrame
    faults_found: dict[str, list[int]]


@dataclass(frozen=True, eq=False)
class PlantTables:
    """Both searches of one simulated plant: with operating modes kept apart, and without, as the paper did it."""

    seed: int
    top: int
    n_rows: int
    n_columns: int
    n_faults: int
    with_modes: PlantLists
    without_modes: PlantLists


def plant_tables(
    seed: int = 0,
    methods: Mapping[str, str] = METHODS,
    top: int = TOP,
    progress: Callable[[str], None] | None = None,
) -> PlantTables:
    """Simulate the plant and search it with each method, twice: with operating modes and without. Takes minutes.

    `methods` are names of `penstock.detect`, by the name they have in the tables; `progress` gets what comes next.
    """
    plant = simulate_hydropower(seed=seed)
    lists = []
    for modes in (True, False):
        times = {}
        for name, method in methods.items():
            if progress is not None:
                progress(f"power plant: {name}, {'with' if modes else 'without'} operating modes")
            times[name] = times_of(search(plant.table, method, modes=modes, top=top))
        lists.append(list_tables(plant, times))
    n_rows, n_columns = plant.table.shape
    return PlantTables(seed, top, n_rows, n_columns, int(plant.events["is_fault"].sum()), lists[0], lists[1])


def search(source: Any, method: str, *, modes: bool = True, top: int = TOP, units: Any = None) -> Findings:
    """The most anomalous rows of the plant by one method, states at rest and starts kept apart, or all in one."""
    return detect(
        source,
        method=method,
        top=top,
        units=units,
        modes=dict(MODES) if modes else (),
        settle=SETTLE if modes else None,
    )


def times_of(findings: Findings) -> pd.DatetimeIndex:
    """Return the time stamps that were flagged."""
    if findings.table.time is None:
        raise ValueError("The table has no time stamps, so that its findings cannot be compared with events.")
    return findings.table.time[findings.flags]


def list_tables(plant: SimulatedPlant, times: Mapping[str, pd.DatetimeIndex]) -> PlantLists:
    """Hold lists of time stamps against each other and against what really happened.

    >>> plant = simulate_hydropower()
    >>> truth = pd.DatetimeIndex(plant.table.index[plant.is_anomalous])
    >>> found = list_tables(plant, {"all of it": truth, "a start": truth[:10]})
    >>> found.overlap.loc["all of it", "a start"].item(), found.faults_found["a start"]
    (10, [1])
    """
    lists = {name: pd.DatetimeIndex(stamps).sort_values() for name, stamps in times.items()}
    events = {name: found_events(plant, stamps) for name, stamps in lists.items()}
    sets = {name: set(stamps) for name, stamps in lists.items()}
    spans = zip(plant.events["start"], plant.events["end"], strict=True)
    days = sorted({day.date() for start, end in spans for day in pd.date_range(start.normalize(), end)})
    on_days = {name: pd.Series(stamps.date).value_counts() for name, stamps in lists.items()}
    return PlantLists(
        times=lists,
        listing=pd.DataFrame({name: pd.Series(stamps) for name, stamps in lists.items()}),
        overlap=pd.DataFrame({a: {b: len(sets[a] & sets[b]) for b in sets} for a in sets}),
        common_offline=_common({name: stamps for name, stamps in sets.items() if name != _ONLINE}),
        common_online=len(sets[_OURS] & sets[_ONLINE]) if {_OURS, _ONLINE} <= set(sets) else None,
        common_all=_common(sets),
        summary=_summary(events, int(plant.events["is_fault"].sum())),
        days=pd.DataFrame(
            {name: [int(counts.get(day, 0)) for day in days] for name, counts in on_days.items()},
            index=pd.Index(days, name="day"),
        ),
        harmless_days=set(plant.events["start"].dt.date[~plant.events["is_fault"]]),
        events=_event_table(plant, events),
        faults_found={name: _faults_found(found) for name, found in events.items()},
    )


def _summary(events: Mapping[str, pd.DataFrame], n_faults: int) -> pd.DataFrame:
    faults = {name: found[found["is_fault"]] for name, found in events.items()}
    look_alikes = {name: found[~found["is_fault"]] for name, found in events.items()}
    return pd.DataFrame(
        {
            "rows in a fault": {name: found["found"].sum() for name, found in faults.items()},
            "rows in a look-alike": {name: found["found"].sum() for name, found in look_alikes.items()},
            f"faults found, of {n_faults}": {name: (found["found"] > 0).sum() for name, found in faults.items()},
        }
    ).T


def _event_table(plant: SimulatedPlant, events: Mapping[str, pd.DataFrame]) -> pd.DataFrame:
    known = found_events(plant, pd.DatetimeIndex([])).drop(columns="found")
    return known.assign(**{name: found["found"] for name, found in events.items()})


def _faults_found(found: pd.DataFrame) -> list[int]:
    return [int(str(event)) for event in found.index[found["is_fault"] & (found["found"] > 0)]]


def _common(sets: Mapping[str, set[pd.Timestamp]]) -> int:
    return len(set.intersection(*sets.values())) if sets else 0
