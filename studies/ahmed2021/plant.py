"""The paper's application on the simulated plant: lists of the most anomalous time stamps, and what is true of them.

The paper's plant is private, so its tables (tbl:8, tbl:9) cannot be made again. These are the same tables of another
plant, which is simulated (docs/hydropower.md), and whose faults are known.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from penstock import OnlineNSNMF
from penstock.detection import Findings, detect
from penstock.prepare import learn_scaling
from penstock.simulate import SimulatedPlant, found_events, simulate_hydropower

# A unit at rest, and one that starts or stops, is farther from the usual than most faults: they are kept apart.
MODES: Mapping[str, str] = {
    "both units": "unit1_active_power > 5 and unit2_active_power > 5",
    "unit 1": "unit1_active_power > 5",
    "unit 2": "unit2_active_power > 5",
}
SETTLE = "2h"
TOP = 100
_ONLINE, _OURS = "online", "NS-NMF"
_Settings = tuple[str, Mapping[str, Any]]
_OWN: Mapping[str, _Settings] = {
    _OURS: ("nsnmf", {"similarity": "normalized"}),
    _ONLINE: ("online", {"similarity": "binary"}),
    "GNMF": ("gnmf", {}),
    "SNMF": ("snmf", {"graph": "self_tuning"}),
    "NMF": ("nmf", {}),
}
# The paper's settings: S = 1/M, the full Gaussian graph for SNMF; online, what is above its threshold when it comes.
PAPER = "the paper's settings"
SEARCHES: Mapping[str, Mapping[str, _Settings]] = {
    PAPER: {
        **_OWN,
        _OURS: ("nsnmf", {"similarity": "inverse"}),
        _ONLINE: ("on the fly", {"similarity": "inverse"}),
        "SNMF": ("snmf", {"graph": "gaussian"}),
    },
    "ours": _OWN,
    "ours, by mode of operation": _OWN,
}


@dataclass(frozen=True, eq=False)
class PlantLists:
    """The lists of several methods, held against each other and against the truth.

    `times` are the time stamps per method, in the order of time (tbl:8); `overlap` how many each two have in common,
    `common_offline` all but the online method, `common_online` offline and online NS-NMF. `days` counts them on the
    days with an event (tbl:9); on `harmless_days` nothing was wrong.
    """

    times: dict[str, pd.DatetimeIndex]
    overlap: pd.DataFrame
    common_offline: int
    common_online: int | None
    summary: pd.DataFrame
    days: pd.DataFrame
    harmless_days: set[date]


@dataclass(frozen=True, eq=False)
class PlantTables:
    """The searches of one simulated plant, by name; `marked` rows were above the online threshold when they came."""

    seed: int
    top: int
    n_rows: int
    n_columns: int
    n_faults: int
    marked: int
    searches: dict[str, PlantLists]


def search_plant(path: Path, seed: int = 0, top: int = TOP, progress: Callable[[str], None] = print) -> None:
    """Simulate the plant, search it with each method in each way, and write the time stamps found. Takes minutes."""
    plant, marked = simulate_hydropower(seed=seed), 0
    found: dict[str, dict[str, list[str]]] = {}
    for search, methods in SEARCHES.items():
        found[search] = {}
        for name, (method, parameters) in methods.items():
            progress(f"power plant, {search}: {name}")
            if method == "on the fly":
                times, marked = mark_on_the_fly(plant.table, top, **parameters)
            else:
                times = times_of(find(plant.table, method, parameters, modes="mode" in search, top=top))
            found[search][name] = [when.isoformat() for when in times]
    path.write_text(json.dumps({"seed": seed, "top": top, "marked": marked, "searches": found}), encoding="utf-8")


def read_plant(path: Path) -> PlantTables:
    """Make the tables of what `search_plant` wrote."""
    kept = json.loads(path.read_text(encoding="utf-8"))
    plant = simulate_hydropower(seed=kept["seed"])
    searches = {
        search: list_tables(plant, {name: pd.DatetimeIndex(times) for name, times in lists.items()})
        for search, lists in kept["searches"].items()
    }
    faults = int(plant.events["is_fault"].sum())
    return PlantTables(kept["seed"], kept["top"], *plant.table.shape, faults, kept["marked"], searches)


def find(source: Any, method: str, parameters: Mapping[str, Any], *, modes: bool, top: int = TOP) -> Findings:
    """Find the most anomalous rows of the plant by one method, states at rest and starts kept apart, or all in one."""
    return detect(
        source,
        method=method,
        parameters=dict(parameters) or None,
        top=top,
        most_explained=0,
        modes=dict(MODES) if modes else (),
        settle=SETTLE if modes else None,
    )


def mark_on_the_fly(table: pd.DataFrame, top: int = TOP, **parameters: Any) -> tuple[pd.DatetimeIndex, int]:
    """Pass the plant's rows through Algorithm 2 and mark each that is above the running threshold when it comes.

    The threshold is mean + 3 standard deviations of the scores that were not marked before. Returns the times of the
    `top` highest of the marked rows, and how many were marked in all.
    """
    rows = table.to_numpy(dtype="float64")
    rows = rows[:, np.nanmax(rows, axis=0) > np.nanmin(rows, axis=0)]
    result = OnlineNSNMF(random_state=0, **parameters).process(learn_scaling(rows).apply(rows))
    marked = np.flatnonzero(result.flags)
    first = marked[np.argsort(-result.scores[marked], kind="stable")[:top]]
    return pd.DatetimeIndex(table.index[np.sort(first)]), len(marked)


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
    >>> found.overlap.loc["all of it", "a start"].item(), found.summary.loc["faults found, of 13", "a start"].item()
    (10, 1)
    """
    lists = {name: pd.DatetimeIndex(stamps).sort_values() for name, stamps in times.items()}
    events = {name: found_events(plant, stamps) for name, stamps in lists.items()}
    sets = {name: set(stamps) for name, stamps in lists.items()}
    offline = [stamps for name, stamps in sets.items() if name != _ONLINE]
    spans = zip(plant.events["start"], plant.events["end"], strict=True)
    days = sorted({day.date() for start, end in spans for day in pd.date_range(start.normalize(), end)})
    on_days = {name: pd.Series(stamps.date).value_counts() for name, stamps in lists.items()}
    return PlantLists(
        times=lists,
        overlap=pd.DataFrame({a: {b: len(sets[a] & sets[b]) for b in sets} for a in sets}),
        common_offline=len(set.intersection(*offline)) if offline else 0,
        common_online=len(sets[_OURS] & sets[_ONLINE]) if {_OURS, _ONLINE} <= set(sets) else None,
        summary=_summary(events, int(plant.events["is_fault"].sum())),
        days=pd.DataFrame(
            {name: [int(counts.get(day, 0)) for day in days] for name, counts in on_days.items()},
            index=pd.Index(days, name="day"),
        ),
        harmless_days=set(plant.events["start"].dt.date[~plant.events["is_fault"]]),
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
