"""The paper's application on the simulated plant: lists held against each other and against the truth."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from penstock import OnlineNSNMF
from studies.ahmed2021 import plant as module
from studies.ahmed2021.plant import PlantLists, list_tables, mark_on_the_fly, times_of


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


def test_truth(lists: PlantLists) -> None:
    assert lists.summary.loc["rows in a fault"].tolist() == [42, 4, 7, 3]
    assert lists.summary.loc["rows in a look-alike"].tolist() == [0, 0, 0, 40]
    assert lists.summary.loc["faults found, of 13"].tolist() == [1, 1, 2, 1]


def test_marks_are_those_of_the_running_threshold(plant) -> None:
    days = plant.table.loc["2015-07-01":"2015-07-06"]
    times, n_marked = mark_on_the_fly(days, top=5, similarity="inverse")
    rows = days.to_numpy()
    rows = rows[:, np.nanmax(rows, axis=0) > np.nanmin(rows, axis=0)]
    low, high = np.nanmin(rows, axis=0), np.nanmax(rows, axis=0)
    scores = OnlineNSNMF(random_state=0).update_many((rows - low) / (high - low))
    kept: list[float] = []
    marked = []
    for row, score in enumerate(scores[20:], 20):  # the warm-up is not scored
        if len(kept) >= 50 and score > np.mean(kept) + 3 * np.std(kept):
            marked.append((score, row))
        else:
            kept.append(score)
    assert n_marked == len(marked) > 5
    assert times.tolist() == sorted(days.index[row] for _, row in sorted(marked, reverse=True)[:5])


def test_a_real_search_of_some_days(plant) -> None:
    """With operating modes no time stamp is within two hours of a start or stop; without, some are."""
    days = plant.table.loc["2015-07-01":"2015-07-06"]
    running = days[["unit1_active_power", "unit2_active_power"]] > 5
    mode = running @ [1, 2]
    unsettled = {}
    for modes in (True, False):
        times = times_of(module.find(days, "nmf", {}, modes=modes, top=20))
        assert len(times) == 20
        unsettled[modes] = sum(mode.loc[when - pd.Timedelta("110min") : when].nunique() > 1 for when in times)
    assert unsettled[True] == 0
    assert unsettled[False] > 0
