"""The exports of one plant: that each form is what it should be, and that the fault is found in it."""

from __future__ import annotations

import re
import sqlite3
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from support.exports import FORMS, LANGUAGES, Export, assess, try_export
from support.plant import FAULTS, MINUTE, NAMES, Record, draw_record

import penstock

# Forms that do not come out right with today's code: parts of issue 29 take them out as they land.


@pytest.fixture(scope="module")
def record() -> Record:
    return draw_record("bearing", seed=1, days=7)


@pytest.fixture(scope="module")
def short() -> Record:
    """Two days: enough to read a file back."""
    whole = draw_record("bearing", seed=1, days=7)
    return whole.between(whole.fault.start.normalize(), whole.fault.start.normalize() + 2 * pd.Timedelta(days=1))


@pytest.mark.parametrize("name", FORMS)
def test_the_fault_is_found_in_each_form(name: str, record: Record, tmp_path: Path) -> None:
    outcome, why = try_export(penstock.detect, record, FORMS[name](record, tmp_path))
    assert outcome == "right", why


@pytest.mark.parametrize("kind", FAULTS)
def test_a_fault_changes_its_tags_and_only_while_it_lasts(kind: str) -> None:
    record = draw_record(kind, seed=3, days=7)
    fault, gone = record.fault, record.truth.ne(record.faultless).any(axis=1)
    assert record.since < fault.start <= fault.visible < fault.end <= record.until
    assert not gone[: fault.start - MINUTE].any()
    changed = set(record.truth.columns[record.truth.ne(record.faultless).any()])
    if kind == "noisy":
        during, before = (
            record.table[fault.tag][part].diff().std()
            for part in (slice(fault.start, fault.end), slice(None, fault.start))
        )
        assert during > 5 * before
    else:
        assert fault.tag in changed
    if kind == "stands still":
        assert record.table[fault.tag][fault.start : fault.end - MINUTE].nunique() == 1
    if kind == "relief valve":
        assert not record.table[fault.tag][: fault.start - MINUTE].any()


def test_a_reading_is_the_same_whoever_asks(record: Record) -> None:
    times = pd.DatetimeIndex(record.table.index)[100:200]
    for name in NAMES:
        np.testing.assert_array_equal(record.read(name, times), record.table[name].iloc[100:200])
        np.testing.assert_array_equal(record.read(name, times[::-1]), record.table[name].iloc[100:200][::-1])
    part = record.between(times[0], times[-1])
    pd.testing.assert_frame_equal(part.table, record.table.loc[times[:-1]], check_freq=False)


@pytest.mark.parametrize("name", FORMS)
def test_readings_of_every_form_are_those_of_the_plant(name: str, short: Record, tmp_path: Path) -> None:
    readings = FORMS[name](short, tmp_path).readings
    readings = readings[readings["tag"] != "AT900"]
    assert set(readings["tag"]) == set(NAMES)
    for tag, mine in readings.groupby("tag"):
        np.testing.assert_array_equal(mine["value"], short.read(str(tag), pd.DatetimeIndex(mine["time"])))


def _parsed(export: Export, name: str) -> pd.DataFrame:
    """Read a text of one clock back with pandas and what is known of its form: rows of numbers, columns as tags."""
    options: dict[str, dict[str, Any]] = {
        "German": {"sep": ";", "decimal": ",", "encoding": "cp1252"},
        "Unicode text of Excel": {"sep": "\t", "encoding": "utf-16"},
        "title and units above": {"sep": ";", "skiprows": [0, 1, 2, 4, 5], "encoding": "utf-8-sig"},
        "Ignition": {"skiprows": [0, 2, 3, 4]},
    }
    chosen = options.get(name, {})
    if name.startswith("header in "):
        chosen = {"encoding": name.removeprefix("header in ")}
    frame = pd.read_csv(export.source, **chosen)
    assert len(set(frame.columns)) == frame.shape[1]
    called = {export.names.get(tag, tag): tag for tag in NAMES}
    plain = {column: re.sub(r" [(\[].*[)\]]$", "", column) for column in frame.columns}
    frame = frame.rename(columns={column: called.get(text, text) for column, text in plain.items()})
    return frame[list(NAMES)]


@pytest.mark.parametrize(
    "name",
    [
        *("plain", "compact stamps", "day first", "Excel days", "date and time apart", "ISO with offset", "German"),
        *("local time, autumn", "Unicode text of Excel", "title and units above", "packed", "Ignition", "Grafana"),
        *(f"header in {encoding}" for encoding in LANGUAGES if encoding != "cp1252"),
    ],
)
def test_a_text_holds_the_values_of_the_plant(name: str, short: Record, tmp_path: Path) -> None:
    frame = _parsed(FORMS[name](short, tmp_path), name)
    np.testing.assert_allclose(frame.to_numpy(dtype=float), short.table.to_numpy(), rtol=0, atol=1e-9)


@pytest.mark.parametrize(
    ("name", "first"),
    [
        ("plain", "2025-03-05 00:00:00"),
        ("compact stamps", "202503050000"),
        ("day first", "05/03/2025 00:00"),
        ("day first, twelve days", "01/06/2025 00:00"),
        ("month first, AM/PM", "3/5/2025 12:00:00 AM"),
        ("Excel days", "45721.000000000"),
        ("seconds since 1970", "1741132800"),
        ("milliseconds since 1970", "1741132800000"),
        ("ISO with offset", "2025-03-05T01:00:00+01:00"),
        ("PI DataLink pairs", "05-Mar-25 00:00:03"),
    ],
)
def test_how_the_first_time_is_written(name: str, first: str, tmp_path: Path) -> None:
    whole = draw_record("bearing", seed=0, days=7)
    part = whole.between(pd.Timestamp("2025-03-05"), pd.Timestamp("2025-03-06"))
    frame = pd.read_csv(FORMS[name](part, tmp_path).source, dtype=str)
    assert frame.iloc[0, 0] == first


def test_an_hour_is_there_twice_in_autumn_and_missing_in_spring(record: Record, tmp_path: Path) -> None:
    for season, hour, count in (("autumn", "2025-10-26 02", 120), ("spring", "2025-03-30 02", 0)):
        (tmp_path / season).mkdir()
        times = pd.read_csv(FORMS[f"local time, {season}"](record, tmp_path / season).source)["LocalTime"]
        assert times.str.startswith(hour).sum() == count
        assert len(times) == len(record.table)


def test_heads_and_ends_of_what_historians_write(short: Record, tmp_path: Path) -> None:
    texts = {}
    for name in ("WinCC", "Ignition", "InfluxDB", "Wonderware"):
        (tmp_path / name).mkdir()
        texts[name] = FORMS[name](short, tmp_path / name).source.read_text(encoding="utf-8").splitlines()
    n = len(short.table)
    assert texts["WinCC"][-1] == f'"$RT_COUNT$";{n * len(NAMES)};;;'
    assert texts["WinCC"][1].split(";")[2].count(",") == 1
    assert texts["Ignition"][0] == '"#NAMES"'
    assert texts["Ignition"][4] == f'"#ROWS","{n}"'
    assert len(texts["Ignition"]) == n + 5
    assert [line.split(",")[0] for line in texts["InfluxDB"][:4]] == ["#group", "#datatype", "#default", ""]
    assert {line.count(",") for line in texts["InfluxDB"]} == {9}
    assert texts["Wonderware"][0] == "DateTime,TagName,Value,vValue,Quality,QualityDetail,OPCQuality"
    assert any(line.endswith(",NULL,NULL,1,24,0") for line in texts["Wonderware"])


def test_tags_by_exception_have_fewer_readings_and_a_heartbeat(record: Record, tmp_path: Path) -> None:
    readings = FORMS["long by exception"](record, tmp_path).readings
    assert len(readings) < 0.5 * len(record.table) * len(NAMES)
    for _, mine in readings.groupby("tag"):
        assert mine["time"].diff().max() <= 11 * MINUTE


def test_bad_readings_are_zeros_and_far_from_the_fault(record: Record, tmp_path: Path) -> None:
    table = pd.read_csv(FORMS["long with OPC quality"](record, tmp_path).source, parse_dates=["time"])
    bad = table[table["quality"] == 0]
    assert set(table["quality"]) == {0, 64, 192}
    assert 0.003 < len(bad) / len(table) < 0.03
    assert not bad["value"].any()
    assert not bad["time"].between(record.fault.start, record.fault.end).any()


def test_sources_other_than_texts(short: Record, tmp_path: Path) -> None:
    for name in ("Parquet by day", "SQLite, long", "SQLite, wide"):
        (tmp_path / name).mkdir()
    days = sorted(path.name for path in FORMS["Parquet by day"](short, tmp_path / "Parquet by day").source.iterdir())
    assert days == [f"day={short.since + pd.Timedelta(days=day):%Y-%m-%d}" for day in range(2)]
    for name in ("SQLite, long", "SQLite, wide"):
        export = FORMS[name](short, tmp_path / name)
        connection = sqlite3.connect(export.source.removeprefix("sql:sqlite:///"))
        rows = connection.execute(export.options["query"]).fetchall()
        connection.close()
        assert len(rows) == (len(export.readings) if name == "SQLite, long" else len(short.table))


class _Answer:
    """Findings as `assess` reads them."""

    notes = ()

    def __init__(self, start: pd.Timestamp, end: pd.Timestamp, sensor: str) -> None:
        self.incident_table = pd.DataFrame({"start": [start], "end": [end], "first_sensor": [sensor]})


def test_what_is_right_and_what_is_not(record: Record) -> None:
    fault, export = record.fault, Export(None)
    start, end, visible = fault.start, fault.end, fault.visible
    assert not assess(_Answer(start, end, "TB101"), record, export)
    assert not assess(_Answer(visible + 2 * MINUTE, end, "pumps.TB102 (°C)"), record, export)
    assert not assess(_Answer(start.tz_localize("UTC"), end.tz_localize("UTC"), "TB101"), record, export)
    assert "late" in assess(_Answer(visible + 3 * MINUTE, end, "TB101"), record, export)
    assert not assess(_Answer(visible + 3 * MINUTE, end, "TB101"), record, Export(None, step=5 * MINUTE))
    assert "early" in assess(_Answer(start - 3 * MINUTE, end, "TB101"), record, export)
    assert "another time" in assess(_Answer(end, end + MINUTE, "TB101"), record, export)
    assert "names" in assess(_Answer(start, end, "FT101"), record, export)
    local = Export(None, zone="Europe/Berlin", names={"TB101": "Lager"})
    hour = pd.Timedelta(hours=1)
    assert not assess(_Answer(start + hour, end + hour, "Lager"), record, local)
    assert assess(_Answer(start, end, "Lager"), record, local)
    assert assess(_Answer(start, end, "TB101"), record, Export(None, note="timezone"))
