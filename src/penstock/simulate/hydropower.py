"""A simulated hydropower plant in the place of the paper's private one, with known faults: docs/hydropower.md."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from penstock.simulate._bearing import guide_readings, thrust_readings
from penstock.simulate._calendar import Span, recorded, simulated_times, within
from penstock.simulate._cooling import cooler_readings, main_readings
from penstock.simulate._effects import inject
from penstock.simulate._events import Event
from penstock.simulate._faults import FAULTS
from penstock.simulate._generator import body_readings, power_readings
from penstock.simulate._look_alikes import LOOK_ALIKES
from penstock.simulate._machinery import Machinery, run_plant
from penstock.simulate._randomness import stream
from penstock.simulate._readings import Reading
from penstock.simulate._sensors import digitise, drop_out, measure
from penstock.simulate._transformer import grid_readings, transformer_readings
from penstock.simulate._turbine import governor_readings, river_readings, water_readings

AREAS = ("turbine", "generator", "bearing", "transformer", "cooling")
_UNIT_READINGS = (
    ("turbine", governor_readings), ("turbine", water_readings),
    ("generator", power_readings), ("generator", body_readings),
    ("bearing", thrust_readings), ("bearing", guide_readings),
    ("transformer", transformer_readings), ("cooling", cooler_readings),
)  # fmt: skip
_PLANT_READINGS = (("turbine", river_readings), ("transformer", grid_readings), ("cooling", main_readings))
_ALL_EVENTS = dict(enumerate(sorted((*FAULTS, *LOOK_ALIKES), key=lambda event: event.start), 1))
_MARGIN = pd.Timedelta(hours=1)  # around events nothing is missing, so that each is seen from before to after


@dataclass(frozen=True, eq=False)
class SimulatedPlant:
    """What was recorded, and, apart from it, what really happened.

    Attributes
    ----------
    table : DataFrame
        9,219 ten-minute samples (index "time") of 222 variables; 240 readings are NaN, where a sensor dropped out.
    units, areas : dict
        Of each variable: its physical unit; turbine, generator, bearing, transformer or cooling.
    events : DataFrame
        The truth: event, kind, start, end (first and last sample), variables, is_fault, description. Look-alikes
        are unusual but right; `variables` are all that a fault changes, and the most telling of a look-alike.
    """

    table: pd.DataFrame
    units: dict[str, str]
    areas: dict[str, str]
    events: pd.DataFrame

    @property
    def is_anomalous(self) -> NDArray[np.bool_]:
        """Which rows of the table lie in a fault."""
        faults = self.events[self.events["is_fault"]]
        times = pd.DatetimeIndex(self.table.index)
        return within(times, list(zip(faults["start"], faults["end"], strict=True)))


def simulate_hydropower(seed: int = 0, *, faults: bool = True, dropouts: bool = True) -> SimulatedPlant:
    """Two Francis units of 60 MW, recorded from July 2015 to January 2016.

    Parameters
    ----------
    seed : int
        The same seed gives the same plant to the last digit. Days and sizes of the events do not depend on it.
    faults : bool
        False leaves the faults out; all else, look-alikes too, is the same.
    dropouts : bool
        False leaves no reading out, for detectors that need complete rows.

    Examples
    --------
    >>> plant = simulate_hydropower(seed=0)
    >>> plant.table.shape, int(plant.table.isna().sum().sum())
    ((9219, 222), 240)
    >>> plant.units["unit1_thrust_oil_temperature"], plant.areas["unit1_thrust_oil_temperature"]
    ('°C', 'bearing')
    >>> plant.events["kind"][0], int(plant.is_anomalous.sum())
    ('global', 227)
    """
    _check_seed(seed)
    times = simulated_times()
    events = {number: event for number, event in _ALL_EVENTS.items() if faults or not event.is_fault}
    readings, areas = _name_readings(run_plant(times, int(seed)))
    names = [reading.name for reading in readings]
    cabinets = [f"{name.split('_')[0]} {area}" for name, area in zip(names, areas, strict=True)]
    values = digitise(inject(measure(readings, cabinets, int(seed)), names, times, list(events.values())), readings)
    return SimulatedPlant(
        table=_record(values, names, times, int(seed), dropouts=dropouts),
        units={reading.name: reading.unit for reading in readings},
        areas=dict(zip(names, areas, strict=True)),
        events=_list_events(events),
    )


def _check_seed(seed: object) -> None:
    if not isinstance(seed, int | np.integer) or isinstance(seed, bool) or seed < 0:
        raise ValueError(f"seed must be a whole number ≥ 0; got {seed!r}.")


def _name_readings(plant: Machinery) -> tuple[list[Reading], list[str]]:
    """All variables under their full names, and the area of each."""

    def all_areas() -> Iterator[tuple[str, str, Reading]]:
        for unit in plant.units:
            for area, of_unit in _UNIT_READINGS:
                yield from ((area, f"unit{unit.number}", reading) for reading in of_unit(plant, unit))
        for area, of_plant in _PLANT_READINGS:
            yield from ((area, "plant", reading) for reading in of_plant(plant))

    listed = list(all_areas())
    return [replace(reading, name=f"{owner}_{reading.name}") for _, owner, reading in listed], [a for a, _, _ in listed]


def _record(
    values: NDArray[np.float64], names: list[str], times: pd.DatetimeIndex, seed: int, *, dropouts: bool
) -> pd.DataFrame:
    """The samples that the historian kept. The same with and without faults, but for the faults."""
    around: list[Span] = [(event.start - _MARGIN, event.end + _MARGIN) for event in _ALL_EVENTS.values()]
    kept = recorded(times, stream(seed, "gaps"), around)
    rows = values[kept]
    if dropouts:
        rows = drop_out(rows, within(times, around)[kept], stream(seed, "drop-outs"))
    return pd.DataFrame(rows, index=times[kept], columns=names)


def _list_events(events: dict[int, Event]) -> pd.DataFrame:
    listed = events.values()
    return pd.DataFrame(
        {
            "event": list(events),
            "kind": [event.kind for event in listed],
            "start": [event.start for event in listed],
            "end": [event.end for event in listed],
            "variables": [event.variables for event in listed],
            "is_fault": [event.is_fault for event in listed],
            "description": [event.description for event in listed],
        }
    )
