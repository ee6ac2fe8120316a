"""Sample data, generated on first use by `penstock.simulate`: nothing is downloaded.

The sample is one machine of the simulated hydropower plant (docs/hydropower.md): small enough that everything on it
takes seconds, with faults that are known.
"""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from typing import Literal, overload

import pandas as pd

from penstock._types import BoolArray
from penstock.simulate import SimulatedPlant, simulate_hydropower

__all__ = ["load_plant", "load_sensors"]

_FIRST, _LAST = "2015-08-01", "2015-10-18"


def load_plant() -> SimulatedPlant:
    """Return turbine and bearings of one unit of the simulated plant, with the truth about its faults.

    Use it to try things: five faults, of which some are hard to see, and a test that is unusual but right. To compare
    methods take the whole plant, and several (`penstock.simulate.simulate_hydropower`).

    Returns
    -------
    SimulatedPlant
        `table`: 3,833 ten-minute samples (index "time") of 50 variables of unit 2, August to October 2015, with gaps
        and missing readings as recorded. `units`, `areas` and `events` of these variables.

    Examples
    --------
    >>> from penstock.datasets import load_plant
    >>> plant = load_plant()
    >>> plant.table.shape, int(plant.events["is_fault"].sum())
    ((3833, 50), 5)
    >>> plant.units["unit2_active_power"], plant.events["first_variable"].iloc[0]
    ('MW', 'unit2_guide_vane_opening')
    """
    plant = _draw()
    return replace(plant, table=plant.table.copy(), events=plant.events.copy())


@overload
def load_sensors(*, return_X_y: Literal[False] = False) -> pd.DataFrame: ...
@overload
def load_sensors(*, return_X_y: Literal[True]) -> tuple[pd.DataFrame, BoolArray]: ...
def load_sensors(*, return_X_y: bool = False) -> pd.DataFrame | tuple[pd.DataFrame, BoolArray]:
    """Return the readings of `load_plant` as a data frame, for detectors and pipelines.

    Parameters
    ----------
    return_X_y : bool, default False
        Also return which rows lie in a fault, as loaders of scikit-learn do.

    Returns
    -------
    DataFrame, or DataFrame and array of bool
        3,833 rows (index "time") of 50 sensors; some readings are NaN.

    Examples
    --------
    >>> from penstock.datasets import load_sensors
    >>> X, y = load_sensors(return_X_y=True)
    >>> X.shape, int(y.sum())
    ((3833, 50), 98)
    """
    plant = load_plant()
    return (plant.table, plant.is_anomalous) if return_X_y else plant.table


@cache
def _draw() -> SimulatedPlant:
    plant = simulate_hydropower(seed=0)
    areas = {"bearing", "turbine"}
    names = [name for name in plant.units if name.startswith("unit2_") and plant.areas[name] in areas]
    names.append("unit2_active_power")
    table = plant.table.loc[_FIRST:_LAST, names]
    events = plant.events[(plant.events["start"] >= table.index[0]) & (plant.events["end"] <= table.index[-1])]
    events = events[[not set(names).isdisjoint(variables) for variables in events["variables"]]].reset_index(drop=True)
    onsets = [dict(zip(event.variables, event.onsets, strict=False)) for event in events.itertuples()]
    onsets = [{name: onset for name, onset in some.items() if name in names} for some in onsets]
    events["variables"] = [tuple(name for name in some if name in names) for some in events["variables"]]
    events["onsets"] = [tuple(some.values()) for some in onsets]
    events["first_variable"] = [min(some, key=some.__getitem__) if some else "" for some in onsets]
    return SimulatedPlant(
        table=table,
        units={name: plant.units[name] for name in names},
        areas={name: plant.areas[name] for name in names},
        events=events,
    )
