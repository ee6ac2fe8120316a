"""Simulated hydropower plant with known faults, in place of the private data of the paper: docs/hydropower.md."""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd

from penstock._types import BoolArray
from penstock.simulate._events import Span, draw_events, fixed_events, recorded, simulated_times, within
from penstock.simulate._plant import run_plant, stream
from penstock.simulate._readings import AREAS, digitise, drop_out, inject, measure, read_plant
from penstock.simulate._scenarios import STEP
from penstock.storage import replace_file

_TIME_FORMAT = "%Y-%m-%d %H:%M"


@dataclass(frozen=True, eq=False)
class SimulatedPlant:
    """Recorded readings of a simulated plant, and apart from them its true events.

    Attributes
    ----------
    table : DataFrame
        9,219 ten-minute samples (index "time") of 222 variables; 240 readings are NaN, where a sensor dropped out.
    units, areas : dict
        Of each variable: its physical unit; turbine, generator, bearing, transformer or cooling.
    events : DataFrame
        The truth, one row per event: event (its number), kind, start, end (first and last sample), variables, is_fault,
        description, unit (unit1, unit2 or plant), first_variable (which moves first), onsets (of each variable: the
        first sample that the fault changes) and half_size (when first_variable has moved by half of its greatest
        change). Look-alikes are unusual but right, and have no onsets; `variables` are all that a fault changes, and
        the most telling of a look-alike.

    Examples
    --------
    >>> from penstock.simulate import simulate_hydropower
    >>> plant = simulate_hydropower(seed=0)
    >>> plant.table.shape, int(plant.events["is_fault"].sum())
    ((9219, 222), 13)
    >>> bool(plant.is_anomalous[plant.is_faint].all())
    True
    """

    table: pd.DataFrame
    units: dict[str, str]
    areas: dict[str, str]
    events: pd.DataFrame

    @property
    def is_anomalous(self) -> BoolArray:
        """Which rows of the table lie in a fault."""
        return within(pd.DatetimeIndex(self.table.index), list(_spans(self.events[self.events["is_fault"]])))

    @property
    def is_faint(self) -> BoolArray:
        """Which rows lie in a slow fault that has not reached half of its size.

        They are in `is_anomalous` too, but no method can be expected to find them: leave them out where rows are
        counted.
        """
        slow = self.events[self.events["kind"] == "slow"]
        times = pd.DatetimeIndex(self.table.index)
        return within(times, list(zip(slow["start"], slow["half_size"] - STEP, strict=True)))


def simulate_hydropower(
    seed: int = 0, *, vary: bool = False, faults: bool = True, dropouts: bool = True
) -> SimulatedPlant:
    """Simulate two Francis units of 60 MW, recorded from July 2015 to January 2016.

    Parameters
    ----------
    seed : int, default 0
        The same seed gives the same plant to the last digit.
    vary : bool, default False
        Whether the seed also draws the events: which of 34 faults and 6 look-alikes happen, when, to which unit and
        how strongly, slow and propagating faults among them. Otherwise they are the same for every seed. Use it to
        assess a method, so that it is not tuned to one set of faults.
    faults : bool, default True
        False leaves the faults out; all else, look-alikes too, is the same.
    dropouts : bool, default True
        False leaves no reading out, for detectors that need complete rows.

    Returns
    -------
    SimulatedPlant
        Table, units and areas of the variables, and events.

    Examples
    --------
    >>> plant = simulate_hydropower(seed=0)
    >>> plant.table.shape, int(plant.table.isna().sum().sum())
    ((9219, 222), 240)
    >>> plant.units["unit1_thrust_oil_temperature"], plant.areas["unit1_thrust_oil_temperature"]
    ('°C', 'bearing')
    >>> plant.events["kind"][0], int(plant.is_anomalous.sum())
    ('global', 227)
    >>> events = simulate_hydropower(seed=0, vary=True).events
    >>> int(events["is_fault"].sum()), bool((events["kind"] == "slow").any())
    (13, True)
    """
    if not isinstance(seed, int | np.integer) or isinstance(seed, bool) or seed < 0:
        raise ValueError(f"seed must be a whole number ≥ 0; got {seed!r}.")
    seed, times = int(seed), simulated_times()
    events, orders = draw_events(stream(seed, "events")) if vary else fixed_events()
    readings, areas = read_plant(run_plant(times, events, orders, seed))
    names = [reading.name for reading in readings]
    cabinets = [f"{name.split('_')[0]} {area}" for name, area in zip(names, areas, strict=True)]
    # Loads, gaps and drop-outs are those of the events, whether the faults are left out or not.
    happened = {number: event for number, event in enumerate(events, 1) if faults or not event.is_fault}
    values = digitise(inject(measure(readings, cabinets, seed), names, times, list(happened.values())), readings)
    spared: list[Span] = [span for event in events for span in event.complete_spans]
    kept = recorded(times, stream(seed, "gaps"), spared)
    rows = values[kept]
    if dropouts:
        rows = drop_out(rows, within(times, spared)[kept], stream(seed, "drop-outs"))
    truth = pd.DataFrame(
        {
            "event": list(happened),
            **{
                name: [getattr(event, name) for event in happened.values()]
                for name in ("kind", "start", "end", "variables", "is_fault", "description")
            },
            "unit": [f"unit{event.unit}" if event.unit else "plant" for event in happened.values()],
            "first_variable": [event.first_variable for event in happened.values()],
            "onsets": [event.onsets for event in happened.values()],
            "half_size": pd.Series([event.half_size for event in happened.values()], dtype="datetime64[us]"),
        }
    )
    return SimulatedPlant(
        table=pd.DataFrame(rows, index=times[kept], columns=names),
        units={reading.name: reading.unit for reading in readings},
        areas=dict(zip(names, areas, strict=True)),
        events=truth,
    )


def found_events(plant: SimulatedPlant, times: pd.DatetimeIndex) -> pd.DataFrame:
    """Count how many of these time stamps fall into each event.

    Parameters
    ----------
    plant : SimulatedPlant
        A plant with its events.
    times : DatetimeIndex
        Time stamps, for example of the rows that a detector flags.

    Returns
    -------
    DataFrame
        One row per event: day, kind, is_fault, rows (of the event in the table), found.

    Examples
    --------
    >>> from penstock.simulate import simulate_hydropower
    >>> plant = simulate_hydropower()
    >>> found = found_events(plant, plant.table.index[plant.is_anomalous])
    >>> bool((found["found"] == found["rows"])[found["is_fault"]].all()), int(found["found"].sum())
    (True, 227)
    """
    events, stamps = plant.events, pd.DatetimeIndex(plant.table.index)
    counts = [[int(within(some, [span]).sum()) for span in _spans(events)] for some in (stamps, times)]
    return pd.DataFrame(
        {
            "day": events["start"].dt.date,
            "kind": events["kind"],
            "is_fault": events["is_fault"],
            "rows": counts[0],
            "found": counts[1],
        }
    ).set_axis(pd.Index(events["event"], name="event"))


def _spans(events: pd.DataFrame) -> Iterable[Span]:
    return zip(events["start"], events["end"], strict=True)


def write_plant(
    plant: SimulatedPlant, folder: str | os.PathLike[str], overwrite: bool = False, *, by_area: bool = False
) -> list[Path]:
    """Write plant.csv (time and variables), truth.csv (events) and variables.csv (name, area, unit) into a folder.

    Parameters
    ----------
    plant : SimulatedPlant
        From `simulate_hydropower`.
    folder : path
        Made if it does not exist.
    overwrite : bool, default False
        Whether files of these names may be replaced; else a FileExistsError names them, and nothing is written.
    by_area : bool, default False
        Also write one file per functional area that has variables, areas/turbine.csv and so on, as plants export them.
        The folder areas can be read as one table: with `overwrite` files of areas that this plant has not are removed.

    Returns
    -------
    list of Path
        The files. Each is written wholly or not at all.

    Examples
    --------
    >>> import dataclasses, tempfile
    >>> from penstock.simulate import simulate_hydropower
    >>> plant = simulate_hydropower()
    >>> first_day = dataclasses.replace(plant, table=plant.table.head(144))
    >>> [path.name for path in write_plant(first_day, tempfile.mkdtemp())]
    ['plant.csv', 'truth.csv', 'variables.csv']
    """
    tables = {
        "plant.csv": plant.table,
        "truth.csv": plant.events.assign(
            variables=["; ".join(names) for names in plant.events["variables"]],
            onsets=["; ".join(f"{onset:{_TIME_FORMAT}}" for onset in onsets) for onsets in plant.events["onsets"]],
        ),
        "variables.csv": pd.DataFrame(
            {"name": list(plant.units), "area": list(plant.areas.values()), "unit": list(plant.units.values())}
        ),
    }
    if by_area:
        for area in AREAS:
            names = [name for name in plant.table.columns if plant.areas[name] == area]
            if names:
                tables[f"areas/{area}.csv"] = plant.table[names]
    target = Path(folder)
    others = [f"areas/{area}.csv" for area in AREAS if f"areas/{area}.csv" not in tables] if by_area else []
    present = [name for name in (*tables, *others) if (target / name).exists()]
    if present and not overwrite:
        raise FileExistsError(
            f"{target} holds {', '.join(present)} already. Choose another folder, or overwrite=True (--overwrite)."
        )
    for name in others:  # of another plant, which would be read as columns of this one
        (target / name).unlink(missing_ok=True)
    for name, table in tables.items():
        (target / name).parent.mkdir(parents=True, exist_ok=True)
        has_times = table.index.name is not None
        text = table.to_csv(index=has_times, date_format=_TIME_FORMAT, lineterminator="\n")
        replace_file(target / name, [memoryview(text.encode())])
    return [target / name for name in tables]
