"""The simulated plant: its physics, its truth, its files, and `penstock simulate`."""

from __future__ import annotations

import errno
import hashlib
import os
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from penstock.cli import main
from penstock.datasets import load_plant
from penstock.detectors import MeanDistance
from penstock.io import read_table
from penstock.simulate import AREAS, SimulatedPlant, simulate_hydropower, write_plant

DOCS = Path(__file__).resolve().parents[2] / "docs" / "hydropower.md"
STEP = pd.Timedelta(minutes=10)
FAULT_DAYS = {  # Ahmed et al. (2021), tbl:9
    "2015-07-04", "2015-09-13", "2015-09-14", "2015-10-03", "2015-10-04", "2015-10-05", "2015-10-13", "2015-10-14",
    "2016-01-02", "2016-01-12",
}  # fmt: skip
HARD_DAY = "2016-01-09"
LOOK_ALIKE_DAYS = {"2015-07-07", "2015-07-08", "2015-09-17"}


PLANTS: dict[str, dict[str, Any]] = {
    "plant": {},
    "healthy": {"faults": False, "dropouts": False},
    "complete": {"dropouts": False},
    "other": {"seed": 1},
    "varied": {"vary": True, "dropouts": False},
    "varied_healthy": {"vary": True, "faults": False, "dropouts": False},
}


def fixture_of(name: str) -> Any:
    return pytest.fixture(scope="module", name=name)(lambda simulated: simulated(**PLANTS[name]))


plant, healthy, complete, other, varied, varied_healthy = map(fixture_of, PLANTS)


def rows_of(plant, event: pd.Series) -> np.ndarray:
    return np.asarray((plant.table.index >= event["start"]) & (plant.table.index <= event["end"]))


def days_of(events: pd.DataFrame) -> set[str]:
    return {
        str(day.date())
        for start, end in zip(events["start"], events["end"], strict=True)
        for day in pd.date_range(start.normalize(), end)
    }


class TestTable:
    def test_size_names_and_times(self, plant, other):
        for table in (plant.table, other.table):
            assert table.shape == (9_219, 222)
            assert table.index.name == "time"
            assert table.columns.is_unique
            assert (table.dtypes == np.float64).all()
            steps = np.diff(table.index) / STEP
            assert (steps >= 1).all()
            np.testing.assert_array_equal(steps, np.round(steps))
            assert len(set(table.index.to_period("M"))) == 7
            assert (table.index[0], table.index[-1]) == (pd.Timestamp("2015-07-01"), pd.Timestamp("2016-01-31 23:50"))
            assert 15 <= (steps > 1).sum() <= 60
        assert not plant.table.index.equals(other.table.index)
        assert list(plant.units) == list(plant.areas) == list(plant.table.columns) == list(other.table.columns)
        assert set(plant.areas.values()) == set(AREAS)
        assert all(plant.units.values())

    def test_240_readings_are_missing_none_in_an_event(self, plant, complete):
        missing = plant.table.isna()
        assert missing.to_numpy().sum() == 240
        assert missing.any().sum() == 12
        for _, event in plant.events.iterrows():
            assert not missing.to_numpy()[rows_of(plant, event)].any()
        assert not complete.table.isna().to_numpy().any()
        pd.testing.assert_frame_equal(plant.table, complete.table.mask(missing))

    def test_no_truth_among_the_inputs(self, plant):
        words = ("fault", "anomal", "event", "label", "outlier", "truth", "alarm")
        assert not [name for name in plant.table.columns if any(word in name for word in words)]
        # A column that is different in all rows of faults from all the others would be a label under another name.
        truth = plant.is_anomalous
        for name in plant.table.columns:
            inside, outside = plant.table.loc[truth, name], plant.table.loc[~truth, name]
            assert inside.max() >= outside.min()
            assert inside.min() <= outside.max()

    def test_a_wrong_seed_is_refused(self):
        for seed in (-1, 1.5, "0", True):
            with pytest.raises(ValueError, match="seed must be a whole number"):
                simulate_hydropower(seed)  # type: ignore[arg-type]


class TestSeed:
    def test_the_plants_stay_as_they_are(self, plant, healthy, varied, varied_healthy):
        """Figures that were measured on them stay comparable."""
        plants = (plant, healthy, varied, varied_healthy)
        assert [hashlib.sha256(each.table.to_numpy().tobytes()).hexdigest()[:32] for each in plants] == [
            "abdae9ead9cc5b70ca1083f6b6f5c4b2",
            "a426382fd4e8c149d98e010da8f23029",
            "2f0bbf38e40db15df14a458a084d8cce",
            "5b5cbe745729766c6200c02ca3e59daa",
        ]
        assert [hashlib.sha256(each.events.to_csv().encode()).hexdigest()[:32] for each in plants[::2]] == [
            "0f3ee4930038c1c1f22459658d0264d1",
            "90b52ed84ae99abedcffbb940dbbb1ed",
        ]

    def test_another_seed_gives_another_plant_with_the_same_events(self, plant, other):
        pd.testing.assert_frame_equal(plant.events, other.events)
        common = plant.table.index.intersection(other.table.index)
        name = "unit1_thrust_oil_temperature"
        assert (plant.table.loc[common, name] != other.table.loc[common, name]).mean() > 0.9


class TestPhysics:
    @pytest.mark.parametrize("unit", [1, 2])
    def test_power_is_water_times_head_times_efficiency(self, healthy, unit):
        unit_table = healthy.table.filter(like=f"unit{unit}_").rename(columns=lambda name: name[6:])
        loaded = unit_table[unit_table["active_power"] > 15]
        hydraulic = 998 * 9.81 * loaded["discharge"] * loaded["net_head"] / 1e6
        efficiency = loaded["active_power"] / hydraulic
        assert efficiency.between(0.70, 0.97).all()
        assert 0.87 < efficiency.median() < 0.92
        by_load = efficiency.groupby(loaded["active_power"].round(-1)).median()
        assert by_load[50] > by_load[20] + 0.03

    def test_vibration_follows_speed_and_is_worst_in_the_rough_zone(self, healthy):
        table = healthy.table
        vibration = table["unit2_turbine_guide_bearing_vibration_x"]
        assert vibration.corr(table["unit2_speed"]) > 0.9
        test = table.loc["2015-09-17 04:10":"2015-09-17 05:40"]
        power, shaking = test["unit2_active_power"], test["unit2_head_cover_vibration"]
        assert power[shaking.idxmax()] == pytest.approx(26, abs=4)
        assert shaking[power.between(23, 29)].min() > 1.2 * shaking[power > 38].max()


class TestEvents:
    def test_days_are_those_of_the_paper(self, plant):
        faults, look_alikes = plant.events[plant.events["is_fault"]], plant.events[~plant.events["is_fault"]]
        assert days_of(faults) == FAULT_DAYS | {HARD_DAY}
        assert days_of(look_alikes) == LOOK_ALIKE_DAYS
        assert days_of(faults[faults["kind"] == "hard"]) == {HARD_DAY}

    def test_the_record(self, plant):
        events = plant.events
        expected = [
            "event", "kind", "start", "end", "variables", "is_fault", "description",
            "unit", "first_variable", "onsets", "half_size",
        ]  # fmt: skip
        assert list(events.columns) == expected
        assert events["event"].tolist() == list(range(1, 17))
        assert events["start"].is_monotonic_increasing
        assert (events["start"] <= events["end"]).all()
        assert set(events["kind"]) == {"global", "local", "one-sensor", "spread", "hard", "look-alike"}
        for names in events["variables"]:
            assert len(set(names)) == len(names)
            assert set(names) <= set(plant.table.columns)

    def test_only_faults_are_anomalous(self, plant, healthy):
        faults = plant.events[plant.events["is_fault"]]
        expected = np.any([rows_of(plant, event) for _, event in faults.iterrows()], axis=0)
        np.testing.assert_array_equal(plant.is_anomalous, expected)
        assert expected.sum() == 227
        assert not healthy.is_anomalous.any()
        assert healthy.events["event"].tolist() == [2, 3, 7]

    def test_look_alikes_are_unusual(self, healthy):
        table = healthy.table
        condenser = table.loc["2015-07-07 04:10":"2015-07-07 05:50"]
        assert (condenser["unit1_active_power"] < -1).all()
        assert (condenser["unit1_speed"] > 249).all()
        flood = table.loc["2015-07-08 13:30":"2015-07-08 17:00"]
        calm = table.drop(table.loc["2015-07-08 12:00":"2015-07-08 22:00"].index)
        assert flood["plant_tailwater_level"].min() > calm["plant_tailwater_level"].max() + 1
        assert (flood["plant_spillway_flow"] > 100).all()
        test = table.loc["2015-09-17 04:00":"2015-09-17 05:40", "unit2_power_setpoint"]
        assert test.is_monotonic_increasing
        ordinary = table["unit2_power_setpoint"].drop(test.index)
        assert not ordinary.between(21, 31).any()

    def test_effects(self, complete, healthy):
        def both(event: int) -> tuple[pd.DataFrame, pd.DataFrame]:
            fault = complete.events.set_index("event").loc[event]
            names = list(fault["variables"])
            return tuple(table.loc[fault["start"] : fault["end"], names] for table in (complete.table, healthy.table))

        low, right = both(5)
        np.testing.assert_allclose(low, 0.95 * right, atol=0.0101)  # read with two decimals
        stuck, right = both(9)
        before = complete.table["unit2_turbine_guide_bearing_temperature_2"].loc["2015-10-04 17:30"]
        assert (stuck == before).all(axis=None)
        assert (right.iloc[-1] > before + 5).all()
        jumping, right = both(11)
        assert (jumping != right).all(axis=None)
        assert (jumping.diff().abs() > 5).mean(axis=None) > 0.7
        exchanged, right = both(12)
        np.testing.assert_array_equal(exchanged, right.iloc[:, ::-1])
        higher, right = both(13)
        np.testing.assert_allclose(higher - right, 2.0, atol=1e-9)
        creeping, right = both(6)
        built_up = (creeping - right)["unit2_thrust_pad_temperature_1"]
        assert 0 < built_up.iloc[0] < built_up.max() < 4
        assert 0 < built_up.iloc[-1] < built_up.max()

    def test_the_page_tells_the_same(self, plant):
        lines = [line for line in DOCS.read_text().splitlines() if line.startswith("| ")]
        for _, event in plant.events.iterrows():
            row = next(line for line in lines if line.startswith(f"| {event['event']} |"))
            kind, first, last, count = (cell.strip().strip("*") for cell in row.split("|")[2:6])
            assert (kind, first) == (event["kind"], f"{event['start']:%Y-%m-%d %H:%M}")
            assert f"{event['end']:%Y-%m-%d %H:%M}".endswith(last)
            assert count == (str(len(event["variables"])) if event["is_fault"] else "")
        for area in AREAS:
            assert f"| {area} | {list(plant.areas.values()).count(area)} |" in DOCS.read_text()


def moved(faulty, healthy) -> pd.DataFrame:
    pd.testing.assert_index_equal(faulty.table.index, healthy.table.index)
    return faulty.table != healthy.table


class TestTruth:
    """What the truth says of each fault, compared with the plant that differs in nothing but the faults."""

    def test_each_variable_moves_from_its_onset_to_the_end_and_no_other_does(
        self, complete, healthy, varied, varied_healthy
    ):
        for faulty, twin in ((complete, healthy), (varied, varied_healthy)):
            different = moved(faulty, twin)
            claimed = pd.DataFrame(False, index=different.index, columns=different.columns)
            for _, fault in faulty.events[faulty.events["is_fault"]].iterrows():
                assert len(fault["onsets"]) == len(fault["variables"])
                for name, onset in zip(fault["variables"], fault["onsets"], strict=True):
                    assert fault["start"] <= onset < fault["end"]
                    claimed.loc[onset : fault["end"], name] = True
                    seen = different.loc[onset : fault["end"], name]
                    assert seen.any(), name
                    if fault["kind"] != "slow":  # which begins within the resolution of a sensor
                        assert seen.mean() > 0.8, name
                        assert seen.idxmax() <= onset + 3 * STEP, name
            assert not (different & ~claimed).to_numpy().any()

    def test_unit_and_first_variable(self, plant, varied):
        for events in (plant.events, varied.events):
            for _, event in events.iterrows():
                owners = {name.split("_")[0] for name in event["variables"]}
                assert owners == {event["unit"]} or (event["unit"] == "plant" and "plant" in owners)
                if not event["is_fault"]:
                    assert (event["first_variable"], event["onsets"]) == ("", ())
                    assert event["half_size"] is pd.NaT
                    continue
                onset = dict(zip(event["variables"], event["onsets"], strict=True))
                assert onset[event["first_variable"]] == min(event["onsets"]) == event["start"]
                assert event["start"] <= event["half_size"] < event["end"]
        first = plant.events.set_index("event")["first_variable"]
        assert (first[1], first[16]) == ("unit1_generator_cooling_water_flow", "unit1_bearing_cooling_water_flow")

    def test_half_size(self, varied, varied_healthy):
        checked = 0
        for _, fault in varied.events[varied.events["kind"] == "slow"].iterrows():
            change = (varied.table - varied_healthy.table).loc[fault["start"] : fault["end"], fault["first_variable"]]
            change = change.abs().rolling(36, min_periods=1).max()  # a unit that stands still shows less
            early, late = change.loc[: fault["half_size"]], change.loc[fault["half_size"] :]
            assert early.max() < 0.6 * change.max()
            assert late.iloc[-1] > 0.9 * change.max()
            inside = (varied.table.index >= fault["start"]) & (varied.table.index < fault["half_size"])
            assert varied.is_faint[inside].all()
            checked += int(inside.sum())
        assert checked == varied.is_faint.sum() > 0
        assert varied.is_anomalous[varied.is_faint].all()

    def test_propagating_faults_move_one_variable_after_another(self, varied):
        propagating = varied.events[varied.events["kind"] == "propagating"]
        assert len(propagating) >= 2
        for onsets in propagating["onsets"]:
            assert list(onsets) == sorted(onsets)
            assert len(set(onsets)) >= 3
            assert pd.Timedelta(minutes=30) <= max(onsets) - min(onsets) <= pd.Timedelta(hours=5)


class TestVary:
    def test_without_faults_only_the_look_alikes_stay(self, varied, varied_healthy):
        look_alikes = varied.events[~varied.events["is_fault"]].reset_index(drop=True)
        pd.testing.assert_frame_equal(varied_healthy.events, look_alikes, check_dtype=False)
        assert not varied_healthy.is_anomalous.any()
        assert not moved(varied, varied_healthy)[~varied.is_anomalous].to_numpy().any()

    def test_seeds_draw_days_units_and_faults(self, varied, simulated):
        another = simulated(seed=1, vary=True).events
        for events in (varied.events, another):
            assert events["is_fault"].sum() == 13
            assert events["event"].tolist() == list(range(1, 17))
            assert (events["end"].shift() < events["start"])[1:].all(), "no two at once, in the order of time"
            assert 1 <= (events["kind"] == "slow").sum() <= 2
        assert len(days_of(varied.events) ^ days_of(another)) > 5
        assert varied.events["unit"].tolist() != another["unit"].tolist()
        for is_fault in (True, False):
            one, two = (
                set(events["description"][events["is_fault"] == is_fault]) for events in (varied.events, another)
            )
            assert one != two

    def test_events_are_recorded_and_have_their_context(self, varied, varied_healthy):
        for _, event in varied.events.iterrows():
            rows = rows_of(varied, event)
            assert {event["start"], event["end"]} <= set(varied.table.index)
            if event["kind"] == "slow":
                continue
            assert rows.sum() == (event["end"] - event["start"]) / STEP + 1
            if (
                event["kind"] in ("propagating", "local", "global", "hard")
                and "stand still" not in event["description"]
            ):
                units = (1, 2) if event["unit"] == "plant" else (int(event["unit"][-1]),)
                for unit in units:
                    assert (varied_healthy.table.loc[rows, f"unit{unit}_speed"] > 240).all(), event["description"]


def test_the_distance_to_the_mean_misses_some_faults(complete):
    """The control of every study: faults that it finds need no method, so some must be out of its reach."""
    plant = complete
    scores = MeanDistance().fit(plant.table).scores_
    for n in (100, int(plant.is_anomalous.sum())):
        top = np.zeros(len(scores), dtype=bool)
        top[np.argsort(-scores)[:n]] = True
        faults = plant.events[plant.events["is_fault"]]
        missed = [event["event"] for _, event in faults.iterrows() if not top[rows_of(plant, event)].any()]
        assert missed


class TestFiles:
    @pytest.fixture
    def short(self, plant) -> SimulatedPlant:
        return SimulatedPlant(plant.table.head(50), plant.units, plant.areas, plant.events)

    def test_what_is_written_can_be_read(self, plant, tmp_path):
        some = SimulatedPlant(plant.table.iloc[::9], plant.units, plant.areas, plant.events)
        assert some.table.isna().any(axis=None)
        write_plant(some, tmp_path / "new" / "folder")
        table = pd.read_csv(tmp_path / "new" / "folder" / "plant.csv", index_col="time", parse_dates=True)
        pd.testing.assert_frame_equal(table, some.table, check_index_type=False, check_freq=False)
        truth = pd.read_csv(tmp_path / "new" / "folder" / "truth.csv", parse_dates=["start", "end", "half_size"])
        assert truth["variables"].str.split("; ").map(tuple).tolist() == plant.events["variables"].tolist()
        onsets = [tuple(f"{onset:%Y-%m-%d %H:%M}" for onset in onsets) for onsets in plant.events["onsets"]]
        assert truth["onsets"].fillna("").map(lambda text: tuple(text.split("; ")) if text else ()).tolist() == onsets
        assert truth["first_variable"].fillna("").tolist() == plant.events["first_variable"].tolist()
        pd.testing.assert_series_equal(truth["half_size"], plant.events["half_size"], check_dtype=False)
        for column in ("event", "kind", "start", "end", "is_fault", "description", "unit"):
            assert truth[column].tolist() == plant.events[column].tolist()
        variables = pd.read_csv(tmp_path / "new" / "folder" / "variables.csv", dtype=str)
        assert variables.columns.tolist() == ["name", "area", "unit"]
        assert dict(zip(variables["name"], variables["unit"], strict=True)) == plant.units
        assert dict(zip(variables["name"], variables["area"], strict=True)) == plant.areas

    def test_areas_in_files_of_their_own_are_read_as_one_table(self, short, tmp_path):
        paths = write_plant(short, tmp_path, by_area=True)
        assert [path.stem for path in paths] == ["plant", "truth", "variables", *AREAS]
        table = read_table(tmp_path / "areas")
        assert sorted(table.names) == sorted(short.table.columns)
        np.testing.assert_array_equal(table.values[list(short.table.columns)], short.table)

    def test_areas_without_variables_have_no_file(self, short, tmp_path):
        write_plant(short, tmp_path, by_area=True)
        small = load_plant()
        few = SimulatedPlant(small.table.head(50), small.units, small.areas, small.events)
        with pytest.raises(FileExistsError, match=r"areas/"):
            write_plant(few, tmp_path, by_area=True)
        paths = write_plant(few, tmp_path, overwrite=True, by_area=True)
        held = [area for area in AREAS if area in small.areas.values()]
        assert [path.stem for path in paths] == ["plant", "truth", "variables", *held]
        assert len(held) < len(AREAS)
        table = read_table(tmp_path / "areas")
        np.testing.assert_array_equal(table.values[list(few.table.columns)], few.table)
        assert sorted(table.names) == sorted(few.table.columns)

    def test_the_truth_beside_the_plant_is_no_input(self, short, tmp_path):
        write_plant(short, tmp_path)
        table = read_table(tmp_path)
        assert table.names == tuple(short.table.columns)
        note = table.about("other files")
        assert note is not None
        assert note.message.endswith(": 'truth.csv', 'variables.csv'.")
        assert note.changed

    def test_nothing_is_overwritten_unasked(self, short, tmp_path):
        (tmp_path / "truth.csv").write_text("mine")
        with pytest.raises(FileExistsError, match=r"truth\.csv already.*overwrite=True"):
            write_plant(short, tmp_path)
        assert [path.name for path in tmp_path.iterdir()] == ["truth.csv"]
        assert (tmp_path / "truth.csv").read_text() == "mine"
        write_plant(short, tmp_path, overwrite=True)
        assert (
            (tmp_path / "truth.csv").read_text().startswith("event,kind,start,end,variables,is_fault,description,unit,")
        )


class TestCommand:
    def test_files_are_those_of_the_library_and_are_not_written_over(self, tmp_path, capfd, monkeypatch, simulated):
        folder = tmp_path / "plant"
        assert main(["simulate", "hydropower", str(folder), "--seed", "3", "--vary", "--no-faults", "--complete"]) == 0
        assert capfd.readouterr().out.split() == [
            str(folder / name) for name in ("plant.csv", "truth.csv", "variables.csv")
        ]
        expected = simulate_hydropower(3, vary=True, faults=False, dropouts=False)
        truth = pd.read_csv(folder / "truth.csv", parse_dates=["start", "end"])
        assert not truth["is_fault"].any()
        assert truth["start"].tolist() == expected.events["start"].tolist()
        table = pd.read_csv(folder / "plant.csv", index_col="time", parse_dates=True)
        pd.testing.assert_frame_equal(table, expected.table, check_index_type=False, check_freq=False)
        before = (folder / "plant.csv").stat().st_mtime_ns
        monkeypatch.setattr("penstock.simulate.simulate_hydropower", simulated)
        assert main(["simulate", "hydropower", str(folder)]) == 2
        assert "Choose another folder, or overwrite=True (--overwrite)" in capfd.readouterr().err
        assert (folder / "plant.csv").stat().st_mtime_ns == before

    def test_a_write_that_fails_is_said_and_leaves_the_old_file(self, tmp_path, monkeypatch, capfd, simulated):
        (tmp_path / "plant.csv").write_text("old")

        def fail(*_: object) -> None:
            raise OSError(errno.ENOSPC, "No space left on device")

        monkeypatch.setattr(os, "fsync", fail)
        monkeypatch.setattr("penstock.simulate.simulate_hydropower", simulated)
        assert main(["simulate", "hydropower", str(tmp_path), "--overwrite"]) == 2
        assert "No space left on device" in capfd.readouterr().err
        assert [(path.name, path.read_text()) for path in tmp_path.iterdir()] == [("plant.csv", "old")]

    def test_the_small_sample(self, plant, tmp_path, capfd):
        sample = load_plant()
        assert main(["simulate", "hydropower", str(tmp_path), "--small"]) == 0
        table = pd.read_csv(tmp_path / "plant.csv", index_col="time", parse_dates=True)
        pd.testing.assert_frame_equal(table, sample.table, check_index_type=False, check_freq=False)
        pd.testing.assert_frame_equal(sample.table, plant.table.loc[sample.table.index, sample.table.columns])
        assert [set(some) <= set(sample.table) for some in sample.events["variables"]] == [True] * len(sample.events)
        faults = sample.events[sample.events["is_fault"]]
        assert all(first in names for first, names in zip(faults["first_variable"], faults["variables"], strict=True))
        sample.table.iloc[0] = 0  # a copy: the next one is whole
        assert load_plant().table.iloc[0].any()
        assert main(["simulate", "hydropower", str(tmp_path / "x"), "--small", "--vary"]) == 2
        assert "--small is one sample" in capfd.readouterr().err

    def test_a_wrong_use_names_the_command(self, capfd):
        assert main(["simulate", "hydropower"]) == 2
        assert "See 'penstock simulate hydropower --help'" in capfd.readouterr().err
        assert main(["watch", "--nonsense"]) == 2
        assert "See 'penstock watch --help'" in capfd.readouterr().err
