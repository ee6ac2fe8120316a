"""Forms of exports that no name of a column gives away: tables of readings by what they hold, odd times, quality."""

from __future__ import annotations

import datetime as dt
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import penstock
from penstock.cli import main
from penstock.io import Table, read_table
from penstock.io.quality import is_bad, is_quality, tag_of
from penstock.io.times import TimeReader

STAMPS = pd.date_range("2024-02-26", periods=400, freq="h")
RANDOM = np.random.default_rng(8)
PLANT = pd.DataFrame(
    {
        "FT1": (1020 + np.cumsum(RANDOM.normal(size=400))).round(2),
        "TT2": (25 + RANDOM.normal(size=400)).round(2),
        "PT3": (6 + 0.1 * RANDOM.normal(size=400)).round(3),
    },
    index=STAMPS,
)


def is_plant(table: Table, frame: pd.DataFrame = PLANT) -> bool:
    same = np.array_equal(table.values[list(frame.columns)].to_numpy(), frame.to_numpy(), equal_nan=True)
    return same and list(table.time.tz_localize(None)) == list(frame.index)


def readings(frame: pd.DataFrame = PLANT) -> pd.DataFrame:
    """Each reading in a row of its own, in order of time."""
    long = frame.reset_index(names="t").melt("t", var_name="tag", value_name="v")
    return long.sort_values("t", kind="stable", ignore_index=True)


LONG = readings()
BAD = np.zeros(len(LONG), dtype=bool)
BAD[30:90:3] = True  # of the first tag
MASKED = PLANT.mask(np.column_stack([(np.arange(400) >= 10) & (np.arange(400) < 30), np.zeros((400, 2), dtype=bool)]))
VALUES = np.where(BAD, 0.0, LONG["v"])


def long_form(*, tag: str, time: str, value: str, quality: str, good: object, bad: object, **more: Any) -> pd.DataFrame:
    frame = {tag: LONG["tag"], time: LONG["t"].dt.strftime("%d/%m/%Y %H:%M:%S"), **more, value: VALUES}
    return pd.DataFrame({**frame, quality: np.where(BAD, bad, good)})


FORMS = {
    "PHD": long_form(tag="TAGNAME", time="TIMESTAMP", value="VALUE", quality="CONFIDENCE", good=100, bad=0),
    "IP.21": long_form(
        tag="NAME", time="IP_TREND_TIME", value="IP_TREND_VALUE", quality="IP_TREND_QSTATUS", good="Good", bad="Bad"
    ),
    "ClearSCADA": long_form(
        tag="FullName", time="RecordTime", value="ValueAsReal", quality="QualityDesc", good="Good", bad="Comm Failure",
        RecordId=np.arange(len(LONG)), ReasonDesc=np.where(np.arange(len(LONG)) % 7, "Periodic", "Change"),
    ),
    "Chinese": long_form(tag="位号", time="时间", value="数值", quality="质量", good="好", bad="坏"),
    "Ignition": long_form(tag="tagpath", time="stamp", value="floatvalue", quality="dataintegrity", good=192, bad=24),
    "WinCC": long_form(tag="Archiv", time="Zeit", value="Messung", quality="Qualitätscode", good="0x80", bad="0x18"),
    "PCS 7": long_form(tag="Variable", time="Zeit", value="Wert", quality="Flags", good="0x80", bad="0x18"),
    "PI Web API": long_form(
        tag="Name", time="Timestamp", value="Value", quality="Good", good=True, bad=False, Questionable=False
    ),
    "DeltaV": long_form(
        tag="Module/Parameter", time="Date/Time", value="Value", quality="Status", good="Good", bad="BadComm", Node="C1"
    ),
    "GE": long_form(tag="Tagname", time="TimeStamp", value="Value", quality="Quality", good=100, bad=0),
}  # fmt: skip


@pytest.mark.parametrize("name", FORMS)
def test_readings_are_known_by_what_the_columns_hold(tmp_path: Path, name: str) -> None:
    FORMS[name].to_csv(tmp_path / "long.csv", index=False)
    table = read_table(tmp_path / "long.csv")
    assert table.names == tuple(PLANT.columns)
    assert is_plant(table, MASKED)
    assert table.about("bad quality").count == BAD.sum()


def test_readings_with_times_of_their_own_are_known_too() -> None:
    late = LONG.assign(t=LONG["t"] + pd.to_timedelta(LONG.groupby("t").cumcount() * 7, unit="s"))
    for frame in (late, late.sort_values("tag", kind="stable", ignore_index=True)):
        table = read_table(frame.set_axis(["Moment", "Bezeichnung", "Zahl"], axis=1))
        assert set(table.names) == set(PLANT.columns)
        assert table.alignment is not None


def test_a_state_beside_one_sensor_is_no_tag() -> None:
    mode = np.where(np.arange(400) // 20 % 2, "run", "idle")
    single = PLANT[["TT2"]].assign(mode=mode, TT2=PLANT["TT2"] + 40 * (mode == "run")).reset_index(names="when")
    assert read_table(single).names == ("TT2", "mode")
    flicker = single.assign(mode=RANDOM.choice(["a", "b", "c"], 400))
    assert read_table(flicker).names == ("TT2", "mode")
    two = PLANT[["TT2", "PT3"]].assign(unit="A").reset_index(names="when")
    machines = pd.concat([two, two.assign(unit="B", TT2=two["TT2"] + 3)])
    assert set(read_table(machines).names) == {"TT2", "PT3", "unit"}


def test_a_file_per_tag_with_codes_in_hex(tmp_path: Path) -> None:
    bad = np.arange(400) % 40 == 7
    for name in PLANT:
        frame = pd.DataFrame({"Zeitstempel": STAMPS.strftime("%d.%m.%Y %H:%M:%S"), "Wert": PLANT[name].mask(bad, 0.0)})
        frame = frame.assign(**{"Qualitätscode": np.where(bad, "0x18", "0x80")})
        frame.to_csv(tmp_path / f"{name}.csv", index=False, sep="\t", encoding="utf-16")
    assert is_plant(read_table(tmp_path), PLANT[~bad])  # times at which all readings are bad make no rows


@pytest.mark.parametrize(
    ("name", "values", "bad"),
    [
        ("Confidence", [100, 97, 0], [False, False, True]),
        ("PercentGood", [100.0, 50.0, 0.0], [False, False, True]),
        ("Quality", [100, 0], [False, True]),
        ("IsGood", [True, False], [False, True]),
        ("Validity", [1, 0], [False, True]),
        ("P1 valid", ["true", "false"], [False, True]),
        ("TDE,QUALITY", ["G", "B", "U"], [False, True, False]),
        ("QualityDesc", ["Good", "Comm Failure"], [False, True]),
        ("QC", ["0x80", "0x4C", "0x00"], [False, False, True]),
    ],
)
def test_quality_in_further_words_and_codes(name: str, values: list[Any], bad: list[bool]) -> None:
    assert is_quality(name, values)
    assert is_bad(values, name).tolist() == bad


@pytest.mark.parametrize(
    ("name", "values"),
    [
        ("valid", [3, 7]),
        ("Confidence", [12.5, 13.5]),
        ("good parts", [0, 1]),
        ("Status", [100, 0]),
        ("Pump", ["G", "B"]),
    ],
)
def test_and_what_is_none(name: str, values: list[Any]) -> None:
    assert not is_quality(name, values)


def test_the_tag_beside_a_comma() -> None:
    assert tag_of("TDE,QUALITY", ["TDE,VALUE", "TDE,QUALITY", "TNDE,VALUE"]) == "TDE,VALUE"


def spelled(form: Callable[[pd.Timestamp], str]) -> list[str]:
    return [form(stamp) for stamp in STAMPS]


MONTHS = {2: "février", 3: "mars"}
TIMES = {
    "French": spelled(lambda t: f"{t.day} {MONTHS[t.month]} {t.year} {t:%Hh%M}"),
    "French, long": spelled(lambda t: f"{t:%d/%m/%Y} {t.hour} h {t:%M} min {t:%S} s"),
    "IEC": spelled(lambda t: f"DT#{t:%Y-%m-%d-%H:%M:%S}"),
    "span": spelled(lambda t: f"{t:%d.%m.%Y %H:%M} - {t + pd.Timedelta('1h'):%d.%m.%Y %H:%M}"),
    "ISO span": spelled(lambda t: f"{t:%Y-%m-%dT%H:%M}Z/{t + pd.Timedelta('1h'):%Y-%m-%dT%H:%M}Z"),
    "Japanese era": spelled(lambda t: f"令和{t.year - 2018}年{t.month}月{t.day}日 {t.hour}時{t:%M}分"),
    "Spanish": spelled(lambda t: f"{t.day} de {({2: 'febrero', 3: 'marzo'})[t.month]} de {t.year}, {t:%H:%M}"),
    "JavaScript": spelled(lambda t: f"{t:%a %b %d %Y %H:%M:%S} GMT+0000 (Coordinated Universal Time)"),
    "week": spelled(lambda t: f"{t:%G-W%V-%uT%H:%M}"),
    "day of the year": spelled(lambda t: f"{t:%Y-%jT%H:%M:%S}"),
    "Hungarian": spelled(lambda t: f"{t:%Y.%m.%d.} {t.hour}:{t:%M:%S}"),
    "Finnish": spelled(lambda t: f"{t.day}.{t.month}.{t.year} klo {t.hour}.{t:%M}"),
    "Chinese": spelled(lambda t: f"{t:%Y年%m月%d日 %H时%M分%S秒}"),
    "MATLAB": spelled(lambda t: f"{719_529 + (t - pd.Timestamp(0)) / pd.Timedelta('1D'):.6f}"),
    "LabVIEW": spelled(lambda t: f"{(t - pd.Timestamp('1904-01-01')).total_seconds():.3f}"),
    "FILETIME": spelled(lambda t: str((int(t.value) // 100) + 116_444_736 * 10**9)),
}


@pytest.mark.parametrize("form", TIMES)
def test_times_in_further_ways(tmp_path: Path, form: str) -> None:
    frame = PLANT.reset_index(drop=True)
    frame.insert(0, "time", TIMES[form])
    frame.to_csv(tmp_path / "plant.csv", index=False, sep=";")
    table = read_table(tmp_path / "plant.csv")
    near = np.abs(table.time.tz_localize(None) - STAMPS) < pd.Timedelta("1s")  # days of MATLAB are cut here
    assert near.all()
    known = TimeReader.restore(table.time_reader.state())
    seconds = known.seconds(TIMES[form])
    np.testing.assert_allclose(seconds, STAMPS.as_unit("s").asi8, atol=1.0)


def test_a_clock_of_years_to_come_is_a_doubt() -> None:
    ahead = PLANT.set_axis(STAMPS + pd.Timedelta(days=20 * 365)).reset_index(names="time")
    assert read_table(ahead).about("times to come").doubt
    assert read_table(PLANT.reset_index(names="time")).about("times to come") is None


@pytest.mark.parametrize(
    ("name", "values"),
    [
        ("Moment", [f"w{t.isocalendar().week}.{t.weekday()} {t:%H%M}" for t in STAMPS]),
        ("Name", [3_600_000.0 * n for n in range(400)]),
    ],
)
def test_what_may_be_the_time_but_was_not_read_is_a_doubt(name: str, values: list[Any]) -> None:
    frame = PLANT.reset_index(drop=True)
    frame.insert(0, name, values)
    note = read_table(frame).about("not a time")
    assert note.doubt
    assert note.columns == (name,)


def test_tables_without_any_time_raise_no_doubt() -> None:
    frame = PLANT.reset_index(drop=True)
    assert not read_table(frame).notes
    assert read_table(frame.assign(batch=[f"B{n:04d}" for n in RANDOM.permutation(400)])).about("not a time") is None


@pytest.mark.parametrize("sign", ["’", "'", "\u202f", "\u00a0", " "])
def test_blanks_and_apostrophes_stand_between_thousands(tmp_path: Path, sign: str) -> None:
    frame = PLANT.map(lambda value: f"{value:,.3f}".replace(",", sign).replace(".", ","))
    frame.insert(0, "Zeit", STAMPS.strftime("%d.%m.%Y %H:%M"))
    frame.to_csv(tmp_path / "plant.csv", index=False, sep=";")
    table = read_table(tmp_path / "plant.csv")
    assert is_plant(table)
    note = table.about("grouped numbers")
    assert note.columns == ("FT1",)
    assert not note.doubt


def test_sheets_of_a_workbook_are_areas(tmp_path: Path) -> None:
    path = tmp_path / "plant.xlsx"
    with pd.ExcelWriter(path) as book:
        pd.DataFrame({"Remarks": ["written by ann"]}).to_excel(book, sheet_name="about", index=False)
        PLANT[["FT1"]].reset_index(names="Time").to_excel(book, sheet_name="process", index=False)
        PLANT[["TT2", "PT3"]].reset_index(names="Time").to_excel(book, sheet_name="machine", index=False)
    table = read_table(path)
    assert is_plant(table)
    assert read_table(path, sheet="process").names == ("FT1",)


def test_lines_above_a_sheet_may_hold_dates(tmp_path: Path) -> None:
    rows: list[list[Any]] = [["Station 3"], ["Printed", dt.datetime(2024, 4, 1)], [], ["Date", "Time", *PLANT]]
    rows = [[*row, *[None] * (5 - len(row))] for row in [*rows, [None, None, "m³/h", "°C", "bar"]]]
    rows += [
        [t.to_pydatetime().date(), t.time(), *row] for t, row in zip(STAMPS, PLANT.to_numpy().tolist(), strict=True)
    ]
    pd.DataFrame(rows).to_excel(tmp_path / "plant.xlsx", index=False, header=False)
    assert is_plant(read_table(tmp_path / "plant.xlsx"))


def test_columns_of_pandas_with_two_levels(tmp_path: Path) -> None:
    frame = PLANT.copy()
    frame.columns = pd.MultiIndex.from_arrays([["process", "machine", "machine"], list(PLANT)], names=["area", "tag"])
    frame.index.name = "time"
    frame.to_csv(tmp_path / "plant.csv")
    assert is_plant(read_table(tmp_path / "plant.csv"))


@pytest.mark.parametrize("form", ["%Y%m%d", "%Y-%m-%d", "%d.%m.%Y", "%y%m%d"])
def test_the_date_may_stand_in_the_names_of_files(tmp_path: Path, form: str) -> None:
    for day, rows in PLANT.groupby(PLANT.index.date):
        frame = rows.assign(Time=pd.DatetimeIndex(rows.index).strftime("%H:%M:%S"))
        frame.to_csv(tmp_path / f"unit7_log_{day:{form}}.csv", index=False)
    table = read_table(tmp_path)
    if form == "%y%m%d":  # six digits may be anything
        assert table.time is None
        return
    assert is_plant(table)
    assert not table.about("dates of files").doubt


def test_a_name_of_a_file_gives_no_date_to_rows_over_midnight(tmp_path: Path) -> None:
    frame = PLANT.assign(Time=STAMPS.strftime("%H:%M:%S"))
    frame.to_csv(tmp_path / "log_20240226.csv", index=False)
    table = read_table(tmp_path / "log_20240226.csv")
    assert table.time is None
    assert table.about("time without date") is not None


def test_streams_read_these_forms_as_files_do(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    for name in ("PHD", "IP.21", "Ignition", "Chinese"):
        frame = FORMS[name]
        frame[:900].to_csv(tmp_path / "good.csv", index=False)
        frame[900:].to_csv(tmp_path / "new.csv", index=False)
        model, alarms, scores = (str(tmp_path / f"{name}.{end}") for end in ("penstock", "jsonl", "csv"))
        assert main(["fit", str(tmp_path / "good.csv"), "--model", model]) == 0
        assert main(["watch", str(tmp_path / "new.csv"), "--model", model, "-o", alarms]) == 0
        assert main(["score", "--model", model, str(tmp_path / "new.csv"), "--scores", scores]) == 0
        capfd.readouterr()
        live, later = pd.read_json(alarms, lines=True), pd.read_csv(scores)
        assert len(live) == len(later) == 100
        np.testing.assert_allclose(live["score"], later["score"], rtol=1e-9)


def test_labels_in_more_languages() -> None:
    on = (np.arange(400) > 300) & (np.arange(400) < 320)
    for name, kinds in (("Alarm", ("OK", "ALARM")), ("故障", (0, 1)), ("Défaut", (0, 1)), ("авария", (0, 1))):
        frame = PLANT.reset_index(names="time").assign(**{name: np.where(on, kinds[1], kinds[0])})
        roles = {tag.name: tag.role for tag in penstock.look(frame).tags}
        assert roles[name] == "label"


def test_words_in_place_of_numbers_are_missing_readings_in_streams_too(tmp_path: Path) -> None:
    frame = PLANT.astype(object).assign(state=np.where(np.arange(400) % 9 < 4, "on", "(null)"))
    frame.iloc[10:390:19, 1] = "(null)"
    frame.insert(0, "time", STAMPS.strftime("%Y-%m-%d %H:%M"))
    frame[:300].to_csv(tmp_path / "good.csv", index=False)
    frame[300:].to_csv(tmp_path / "new.csv", index=False)
    files = [str(tmp_path / name) for name in ("good.csv", "new.csv", "model", "live.jsonl", "scores.csv")]
    good, new, model, live, scores = files
    assert main(["fit", good, "--model", model]) == 0
    assert main(["watch", new, "--model", model, "-o", live]) == 0
    assert main(["score", "--model", model, new, "--scores", scores]) == 0
    rows = pd.read_json(live, lines=True)
    assert len(rows) == 100
    np.testing.assert_allclose(rows["score"], pd.read_csv(scores)["score"], rtol=1e-9)
    assert read_table(frame.iloc[300:302].assign(TT2="(null)"), words=["(null)"]).values["state"].notna().all()


def test_an_hour_beside_a_date(tmp_path: Path) -> None:
    for first in (0, 1):
        frame = PLANT.reset_index(drop=True)
        frame.insert(0, "HE" if first else "Hour", STAMPS.hour + first)
        frame.insert(0, "Date", STAMPS.strftime("%m/%d/%Y"))
        frame.to_csv(tmp_path / "plant.csv", index=False)
        table = read_table(tmp_path / "plant.csv")
        assert table.time is not None
        assert list(table.time) == list(STAMPS + pd.Timedelta(hours=first))
        assert table.names == tuple(PLANT.columns)


def test_empty_cells_of_a_sparse_stream_are_those_of_a_file(tmp_path: Path) -> None:
    minutes = pd.date_range("2024-03-01", periods=4000, freq="min")
    smooth = pd.DataFrame(RANDOM.normal(size=(4000, 4)).cumsum(axis=0).round(2), columns=list("abcd"))
    frame = smooth.where(RANDOM.uniform(size=(4000, 4)) < [0.55, 0.55, 0.1, 0.1])
    frame.insert(0, "time", minutes.strftime("%Y-%m-%d %H:%M"))
    frame[:2500].to_csv(tmp_path / "good.csv", index=False)
    frame[2500:].to_csv(tmp_path / "new.csv", index=False)
    files = [str(tmp_path / name) for name in ("good.csv", "new.csv", "model", "live.jsonl", "scores.csv")]
    good, new, model, live, scores = files
    assert main(["fit", good, "--model", model]) == 0
    assert main(["watch", new, "--model", model, "-o", live]) == 0
    assert main(["score", "--model", model, new, "--scores", scores]) == 0
    rows, table = pd.read_json(live, lines=True), pd.read_csv(scores)
    assert len(rows) == len(table)
    np.testing.assert_allclose(rows["score"], table["score"], rtol=1e-9)


def test_areas_of_one_clock_that_hardly_overlap_are_a_doubt(tmp_path: Path) -> None:
    PLANT[["FT1", "TT2"]].rename_axis("time").to_csv(tmp_path / "a.csv")
    late = PLANT[["PT3"]].set_axis(STAMPS + pd.Timedelta(hours=380))
    late.rename_axis("time").to_csv(tmp_path / "b.csv")
    assert read_table(tmp_path).about("short overlap").doubt


@pytest.mark.parametrize("names", [("Dato", "Klokkeslæt"), ("Dzień", "Godzina")])
def test_a_time_of_day_beside_a_date_whatever_they_are_called(tmp_path: Path, names: tuple[str, str]) -> None:
    frame = PLANT.reset_index(drop=True)
    frame.insert(0, names[1], STAMPS.strftime("%H.%M.%S"))
    frame.insert(0, names[0], STAMPS.strftime("%d-%m-%Y"))
    frame.to_csv(tmp_path / "plant.csv", index=False, sep=";", encoding="cp1250" if "ń" in names[0] else "cp1252")
    table = read_table(tmp_path / "plant.csv")
    assert is_plant(table)
    assert table.time_name == " + ".join(names)


def test_objects_of_a_gateway_are_readings_too(tmp_path: Path) -> None:
    FORMS["IP.21"][:900].to_csv(tmp_path / "good.csv", index=False)
    rows = LONG[900:].assign(bad=BAD[900:])
    lines = [
        json.dumps({"id": row.tag, "v": row.v, "q": not row.bad, "t": f"{row.t:%d/%m/%Y %H:%M:%S}"})
        for row in rows.itertuples()
    ]
    (tmp_path / "new.jsonl").write_text("\n".join(lines) + "\n")
    FORMS["IP.21"][900:].to_csv(tmp_path / "new.csv", index=False)
    names = ("good.csv", "new.jsonl", "new.csv", "model", "live.jsonl", "scores.csv")
    good, objects, table, model, live, scores = (str(tmp_path / name) for name in names)
    assert main(["fit", good, "--model", model]) == 0
    assert main(["watch", objects, "--model", model, "-o", live]) == 0
    assert main(["score", "--model", model, table, "--scores", scores]) == 0
    np.testing.assert_allclose(
        pd.read_json(live, lines=True)["score"], pd.read_csv(scores)["score"], rtol=1e-9, equal_nan=True
    )
