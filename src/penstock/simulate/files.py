"""A simulated plant as CSV files: what was recorded, and the truth in a file of its own."""

from __future__ import annotations

import os
from pathlib import Path

import pandas as pd

from penstock.simulate.hydropower import AREAS, SimulatedPlant
from penstock.storage import replace_file


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
        raise FileExistsError(f"{target} holds {', '.join(present)} already. Choose another folder, or overwrite=True.")
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
