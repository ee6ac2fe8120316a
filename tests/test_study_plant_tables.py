"""The paper's application on the simulated plant: lists held against each other and against the truth."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest

from studies.ahmed2021 import plant as module
from studies.ahmed2021.plant import METHODS, PlantLists, list_tables, plant_tables, times_of


@pytest.fixture(scope="module")
def plant(simulated):
    return simulated()


@pytest.fixture(scope="module")
def lists(plant) -> PlantLists:
    stamps = pd.DatetimeIndex(plant.table.index)
    event = {number: (row["start"], row["end"]) for number, row in plant.events.set_index("event").iterrows()}
    first, flood, hard = (stamps[(stamps >= event[n][0]) & (stamps <= event[n][1])] for n in (1, 3, 15))
    rest = stamps[:5]
    ours, theirs = first.append(rest)[::-1], flood.append(first[3:6])
    times = {"NS-NMF": ours, "online": first[:4], "GNMF": first[2:8].append(hard[:1]), "NMF": theirs}
    return list_tables(plant, times)


def test_overlaps(lists: PlantLists) -> None:
    assert np.diag(lists.overlap).tolist() == [47, 4, 7, 43]
    assert (lists.overlap == lists.overlap.T).all(axis=None)
    assert lists.overlap.loc["NS-NMF", "GNMF"] == 6
    assert lists.overlap.loc["online", "GNMF"] == 2
    assert lists.common_offline == 3
    assert lists.common_online == 4
    assert lists.common_all == 1


def test_truth(lists: PlantLists) -> None:
    assert lists.summary.loc["rows in a fault"].tolist() == [42, 4, 7, 3]
    assert lists.summary.loc["rows in a look-alike"].tolist() == [0, 0, 0, 40]
    assert lists.summary.loc["faults found, of 13"].tolist() == [1, 1, 2, 1]
    assert lists.faults_found == {"NS-NMF": [1], "online": [1], "GNMF": [1, 15], "NMF": [1]}
    assert lists.events.loc[3, ["kind", "is_fault", "rows", "NS-NMF", "NMF"]].tolist() == [
        "look-alike",
        False,
        40,
        0,
        40,
    ]
    assert len(lists.events) == 16


def test_both_searches_with_every_method(monkeypatch, plant) -> None:
    asked = []

    def searched(source: pd.DataFrame, **options) -> SimpleNamespace:
        asked.append((options["method"], bool(options["modes"]), options["settle"], options["top"]))
        flags = np.zeros(len(source), dtype=bool)
        flags[len(asked) * 10 : len(asked) * 10 + options["top"]] = True
        return SimpleNamespace(table=SimpleNamespace(time=pd.DatetimeIndex(source.index)), flags=flags)

    monkeypatch.setattr(module, "detect", searched)
    told: list[str] = []
    found = plant_tables(top=30, progress=told.append)
    with_modes = [(method, True, "2h", 30) for method in METHODS.values()]
    assert asked == with_modes + [(method, False, None, 30) for method in METHODS.values()]
    assert len(told) == 10
    assert told[-1] == "power plant: NMF, without operating modes"
    assert (found.seed, found.top, found.n_rows, found.n_columns, found.n_faults) == (0, 30, 9219, 222, 13)
    assert found.with_modes.overlap.loc["NS-NMF"].tolist() == [30, 20, 10, 0, 0]
    assert found.with_modes.times["NS-NMF"][0] == plant.table.index[10]
    assert found.without_modes.times["NS-NMF"][0] == plant.table.index[60]


def test_a_real_search_of_some_days(plant) -> None:
    """With operating modes no time stamp is within two hours of a start or stop; without, some are."""
    days = plant.table.loc["2015-07-01":"2015-07-06"]
    running = days[["unit1_active_power", "unit2_active_power"]] > 5
    mode = running @ [1, 2]
    unsettled = {}
    for modes in (True, False):
        times = times_of(module.search(days, "nmf", modes=modes, top=20))
        assert len(times) == 20
        unsettled[modes] = sum(mode.loc[when - pd.Timedelta("110min") : when].nunique() > 1 for when in times)
    assert unsettled[True] == 0
    assert unsettled[False] > 0
