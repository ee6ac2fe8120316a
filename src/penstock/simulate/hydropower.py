"""Simulated hydropower plant with known faults, in place of the private data of the paper: docs/hydropower.md."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from penstock._types import FloatArray
from penstock.simulate._events import FAULTS, LOOK_ALIKES, Event, inject
from penstock.simulate._plant import Machinery, run_plant
from penstock.simulate._readings import (
    Reading,
    body_readings,
    cooler_readings,
    governor_readings,
    grid_readings,
    guide_readings,
    main_readings,
    power_readings,
    river_readings,
    thrust_readings,
    transformer_readings,
    water_readings,
)
from penstock.simulate._signals import (
    STEP_HOURS,
    STEPS_PER_HOUR,
    Span,
    recorded,
    red_noise,
    simulated_times,
    stream,
    within,
)
from penstock.storage import replace_file

# Samples per drop-out of a sensor: always 240 readings in all, in twelve different sensors.
DROPOUTS = (3, 4, 6, 8, 10, 12, 15, 20, 25, 32, 45, 60)
# Shares of the standard deviation: 0.6² + 0.75² + 0.28² = 1.
_SHARED, _OWN, _DRIFT = 0.6, 0.75, 0.28
_SHARED_HOURS, _OWN_HOURS = 1.5, 0.4
_DRIFT_DAYS = 40


def measure(readings: Sequence[Reading], cabinets: Sequence[str], seed: int) -> FloatArray:
    """Readings with noise, steps × variables. Sensors of one cabinet share a part of it; all drift a little."""
    n, p = len(readings[0].values), len(readings)
    noise = _OWN * red_noise(stream(seed, "sensors"), (n, p), _OWN_HOURS)
    noise += _DRIFT * _drift(stream(seed, "drift"), n, p)
    shared = {name: red_noise(stream(seed, f"cabinet {name}"), n, _SHARED_HOURS) for name in sorted(set(cabinets))}
    for column, (reading, cabinet) in enumerate(zip(readings, cabinets, strict=True)):
        noise[:, column] += _SHARED * shared[cabinet]
        noise[:, column] *= reading.noise
        noise[:, column] += reading.values
    return noise


def _drift(rng: np.random.Generator, n: int, p: int) -> FloatArray:
    """Noise that changes within weeks: drawn once a day, and straight from day to day."""
    per_day = 24 * STEPS_PER_HOUR
    daily = red_noise(rng, (n // per_day + 2, p), _DRIFT_DAYS * STEP_HOURS)  # a step of it is a day
    day, past = np.divmod(np.arange(n), per_day)
    share = (past / per_day)[:, None]
    result: FloatArray = (1 - share) * daily[day] + share * daily[day + 1]
    return result


def digitise(values: FloatArray, readings: Sequence[Reading]) -> FloatArray:
    """Within the range of each sensor and in steps of its resolution."""
    result = np.clip(values, [reading.low for reading in readings], [reading.high for reading in readings])
    for column, reading in enumerate(readings):
        # Adding zero turns the −0.0 of a rounded negative into 0.0.
        result[:, column] = np.round(result[:, column], reading.decimals) + 0.0
    return result


def drop_out(rows: FloatArray, spared: NDArray[np.bool_], rng: np.random.Generator) -> FloatArray:
    """The same rows with NaN where a sensor dropped out, never in a spared row."""
    result = rows.copy()
    columns = rng.permutation(rows.shape[1])[: len(DROPOUTS)]
    for column, length in zip(columns, DROPOUTS, strict=True):
        while True:
            begin = int(rng.integers(len(rows) - length))
            if not spared[begin : begin + length].any():
                break
        result[begin : begin + length, column] = np.nan
    return result


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


def found_events(plant: SimulatedPlant, times: pd.DatetimeIndex) -> pd.DataFrame:
    """How many of these time stamps fall into each event: event, day, kind, is_fault, rows (of it), found.

    >>> from penstock.simulate import simulate_hydropower
    >>> plant = simulate_hydropower()
    >>> found = found_events(plant, plant.table.index[plant.is_anomalous])
    >>> bool((found["found"] == found["rows"])[found["is_fault"]].all()), int(found["found"].sum())
    (True, 227)
    """
    stamps = pd.DatetimeIndex(plant.table.index)
    events = plant.events
    spans = list(_spans(plant))
    return pd.DataFrame(
        {
            "day": events["start"].dt.date,
            "kind": events["kind"],
            "is_fault": events["is_fault"],
            "rows": [_count(stamps, start, end) for start, end in spans],
            "found": [_count(times, start, end) for start, end in spans],
        }
    ).set_axis(pd.Index(events["event"], name="event"))


def found_days(plant: SimulatedPlant, times: pd.DatetimeIndex) -> pd.Series[int]:
    """How many of these time stamps fall on each day of the plant that has an event; an event may last into the next.

    >>> from penstock.simulate import simulate_hydropower
    >>> plant = simulate_hydropower()
    >>> str(found_days(plant, plant.table.index[plant.is_anomalous]).index[0])
    '2015-07-04'
    """
    days = sorted({day.date() for start, end in _spans(plant) for day in pd.date_range(start.normalize(), end)})
    counts = pd.Series(times.date).value_counts()
    return pd.Series([int(counts.get(day, 0)) for day in days], index=pd.Index(days, name="day"))


def _spans(plant: SimulatedPlant) -> Iterable[tuple[pd.Timestamp, pd.Timestamp]]:
    return zip(plant.events["start"], plant.events["end"], strict=True)


def _count(times: pd.DatetimeIndex, start: pd.Timestamp, end: pd.Timestamp) -> int:
    return int(((times >= start) & (times <= end)).sum())


def write_plant(
    plant: SimulatedPlant, folder: str | os.PathLike[str], overwrite: bool = False, *, by_area: bool = False
) -> list[Path]:
    """Write plant.csv (time and variables), truth.csv (events) and variables.csv (name, area, unit) into a folder.

    Parameters
    ----------
    folder : path
        Made if it is not there.
    overwrite : bool
        Whether files of these names may be replaced; else a FileExistsError names them, and nothing is written.
    by_area : bool
        Also write one file per functional area, areas/turbine.csv and so on, as plants export them. The folder areas
        can be read as one table.

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
    tables = {"plant.csv": plant.table, "truth.csv": _truth(plant), "variables.csv": _variables(plant)}
    if by_area:
        tables |= _areas(plant)
    target = Path(folder)
    present = [name for name in tables if (target / name).exists()]
    if present and not overwrite:
        raise FileExistsError(
            f"{target} holds {', '.join(present)} already. Choose another folder, or overwrite=True (--overwrite)."
        )
    target.mkdir(parents=True, exist_ok=True)
    for name, table in tables.items():
        (target / name).parent.mkdir(exist_ok=True)
        replace_file(target / name, [memoryview(_csv(table))])
    return [target / name for name in tables]


def _csv(table: pd.DataFrame) -> bytes:
    has_times = table.index.name is not None
    return table.to_csv(index=has_times, date_format="%Y-%m-%d %H:%M", lineterminator="\n").encode()


def _areas(plant: SimulatedPlant) -> dict[str, pd.DataFrame]:
    return {
        f"areas/{area}.csv": plant.table[[name for name in plant.table.columns if plant.areas[name] == area]]
        for area in AREAS
    }


def _truth(plant: SimulatedPlant) -> pd.DataFrame:
    return plant.events.assign(variables=["; ".join(names) for names in plant.events["variables"]])


def _variables(plant: SimulatedPlant) -> pd.DataFrame:
    return pd.DataFrame(
        {"name": list(plant.units), "area": list(plant.areas.values()), "unit": list(plant.units.values())}
    )
