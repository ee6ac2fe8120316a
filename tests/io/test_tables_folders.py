"""Data sets in folders: partitions, a folder for each day, many small files; and areas of a plant by name."""

import numpy as np
import pandas as pd
import pytest

import penstock
from penstock.io import TableError, read_table

STAMPS = pd.date_range("2025-03-10", periods=72, freq="h")


def plant(stamps=STAMPS, seed=0, **more):
    random = np.random.default_rng(seed)
    return pd.DataFrame({"time": stamps, "flow": random.normal(size=len(stamps)).round(3), "head": 1.5}).assign(**more)


@pytest.fixture
def partitioned(tmp_path):
    pytest.importorskip("pyarrow")
    for day, rows in plant().groupby(STAMPS.date):
        folder = tmp_path / f"year={day.year}" / f"month={day.month}" / f"day={day}"
        folder.mkdir(parents=True)
        rows.to_parquet(folder / "part-0.parquet")
    (tmp_path / "_SUCCESS").touch()
    return tmp_path


def test_partitions_of_dates_are_put_together_and_are_no_inputs(partitioned):
    table = read_table(partitioned)
    assert table.names == ("flow", "head")
    assert list(table.time) == list(STAMPS)
    assert table.values["flow"].tolist() == plant()["flow"].tolist()
    assert table.about("partitions").columns == ("year", "month", "day")


@pytest.mark.parametrize(
    "names", [("2025/03/10", "2025/03/11", "2025/03/12"), ("day=2025-03-10", "day=2025-03-11", "day=2025-03-12")]
)
def test_folders_for_each_day_may_hold_csv(tmp_path, names):
    for name, (_, rows) in zip(names, plant().groupby(STAMPS.date), strict=True):
        (tmp_path / name).mkdir(parents=True)
        rows.to_csv(tmp_path / name / "data.csv", index=False)
    table = read_table(tmp_path)
    assert table.names == ("flow", "head")
    assert list(table.time) == list(STAMPS)


def test_partitions_that_are_no_dates_become_a_column(tmp_path):
    for unit in (1, 2):
        (tmp_path / f"unit={unit}").mkdir()
        plant(seed=unit).to_csv(tmp_path / f"unit={unit}" / "data.csv", index=False)
    table = read_table(tmp_path, group="unit")
    assert table.group.value_counts().to_dict() == {"1": 72, "2": 72}
    assert "unit" in read_table(tmp_path).names
    assert read_table(tmp_path).about("partitions") is not None


def test_partitions_of_tags_are_a_long_table(tmp_path):
    for tag in ("FT1", "PT2"):
        (tmp_path / f"tag={tag}").mkdir()
        frame = plant(seed=len(tag))[["time", "flow"]].rename(columns={"flow": "value"})
        frame.to_csv(tmp_path / f"tag={tag}" / "part.csv", index=False)
    table = read_table(tmp_path)
    assert table.names == ("FT1", "PT2")
    assert len(table.values) == 72


def test_tables_in_the_folder_itself_come_first(tmp_path):
    plant().to_csv(tmp_path / "plant.csv", index=False)
    (tmp_path / "old").mkdir()
    plant(seed=1).to_csv(tmp_path / "old" / "plant.csv", index=False)
    table = read_table(tmp_path)
    assert len(table.values) == 72
    note = table.about("other files")
    assert "'old'" in note.message


@pytest.mark.parametrize("log", ["_delta_log/00000000000000000000.json", "metadata/v1.metadata.json"])
def test_tables_with_a_log_of_their_own_are_refused(tmp_path, log):
    (tmp_path / log).parent.mkdir()
    (tmp_path / log).touch()
    (tmp_path / "data").mkdir()
    plant().to_csv(tmp_path / "data" / "part.csv", index=False)
    with pytest.raises(TableError, match="out of date"):
        read_table(tmp_path)


def test_a_folder_that_is_too_large_is_refused_before_it_is_read(tmp_path, monkeypatch):
    for number in range(50):
        with (tmp_path / f"part-{number}.csv").open("wb") as file:
            file.write(b"time,flow\n2024-01-01,1\n")
            file.truncate(10**9)  # as large as it says, without taking the disk
    monkeypatch.setattr("penstock.io._files._read_file", lambda *_: pytest.fail("it began to read"))
    with pytest.raises(TableError, match="50 GB") as caught:
        read_table(tmp_path, max_bytes=8 * 10**9)
    assert caught.value.parameter == "max_bytes"


def test_files_that_are_too_much_together_are_refused(partitioned):
    sizes = [file.stat().st_size for file in partitioned.rglob("*.parquet")]
    assert len(read_table(partitioned, max_bytes=sum(sizes)).values) == 72
    with pytest.raises(TableError) as caught:
        read_table(partitioned, max_bytes=sum(sizes) // 5)
    assert caught.value.parameter == "max_bytes"


def test_values_of_all_files_are_counted(tmp_path):
    pytest.importorskip("pyarrow")
    for number in range(4):
        frame = pd.DataFrame({"time": pd.date_range(f"202{number}-01-01", periods=5_000, freq="min"), "flow": 1.0})
        frame.to_parquet(tmp_path / f"part-{number}.parquet", compression="zstd")
    assert len(read_table(tmp_path, max_bytes=8 * 40_000).values) == 20_000
    with pytest.raises(TableError) as caught:
        read_table(tmp_path, max_bytes=8 * 25_000)
    assert caught.value.parameter == "max_bytes"


def test_a_wrong_line_in_one_of_many_files_is_found(tmp_path):
    for number in range(20):
        extra = ",9" if number == 13 else ""
        text = f"time,flow\n2024-01-{number + 1:02} 00:00,1\n2024-01-{number + 1:02} 01:00,2{extra}\n"
        (tmp_path / f"part-{number}.csv").write_text(text)
    with pytest.raises(TableError, match=r"part-13\.csv, line 3"):
        read_table(tmp_path)


def test_decimal_signs_of_many_files_are_found_one_by_one(tmp_path):
    for number in range(6):
        sign = "," if number % 2 else "."
        text = f"time;flow\n2024-01-{number + 1:02} 00:00;1{sign}5\n2024-01-{number + 1:02} 01:00;2{sign}5\n"
        (tmp_path / f"part-{number}.csv").write_text(text)
    assert read_table(tmp_path).values["flow"].tolist() == [1.5, 2.5] * 6


def test_a_dict_of_tables_names_areas(tmp_path):
    turbine = plant(seed=1)
    generator = plant(seed=2).rename(columns={"head": "current"})
    table = read_table({"turbine": turbine, "generator": generator})
    assert table.names == ("turbine flow", "head", "generator flow", "current")
    assert table.source == "2 areas"
    assert table.about("areas").columns == ("flow",)
    same = read_table({"turbine": turbine, "generator": turbine})
    assert same.names == ("turbine flow", "turbine head", "generator flow", "generator head")
    assert len(same.values) == 72
    turbine.to_csv(tmp_path / "a.csv", index=False)
    mixed = read_table({"turbine": tmp_path / "a.csv", "generator": generator})
    pd.testing.assert_frame_equal(mixed.values, table.values)


def test_areas_may_be_tables_of_polars_and_folders(tmp_path):
    polars = pytest.importorskip("polars")
    for number, (_, rows) in enumerate(plant().groupby(STAMPS.date)):
        rows.to_csv(tmp_path / f"part-{number}.csv", index=False)
    areas = {
        "a": polars.from_dict(plant(seed=1).to_dict("list")),
        "b": polars.LazyFrame(plant().to_dict("list")),
        "c": tmp_path,
    }
    table = read_table(areas)
    assert table.names == ("a flow", "a head", "b flow", "b head", "c flow", "c head")
    assert table.values["c flow"].tolist() == table.values["b flow"].tolist()


def test_detect_takes_areas():
    findings = penstock.detect({"turbine": plant(seed=1), "generator": plant(seed=2)}, method="knn")
    assert set(findings.table.names) >= {"turbine flow", "generator flow"}


def test_a_dict_of_columns_stays_a_table():
    assert read_table({"flow": [1.0, 2.0]}).names == ("flow",)
    assert read_table({"flow": np.arange(3.0), "state": ["a", "b", "c"]}).names == ("flow", "state")
    assert read_table({"flow": pd.Series([1.0, 2.0])}).names == ("flow",)


@pytest.mark.parametrize(
    "areas",
    [
        {"turbine": plant(), "generator": [1.0, 2.0]},
        {1: plant(), "generator": plant()},
        {"": plant(), "generator": plant()},
        {"turbine": {"deeper": plant()}, "generator": plant()},
        {"turbine": plant(), "generator": plant().drop(columns="time")},
        {"turbine": plant(), "generator": "no such file.csv"},
    ],
)
def test_areas_that_cannot_be_read_are_refused(areas):
    with pytest.raises(TableError):
        read_table(areas)
