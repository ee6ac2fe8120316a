"""What is understood of a table before anything is scored: `penstock.look`, the command, and what others show of it."""

from __future__ import annotations

import dataclasses
import json
import re
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from support.exports import FORMS, draw_record

import penstock
from penstock.cli import main
from penstock.cli._data_text import text_lines
from penstock.io import TableError
from penstock.report import plain

# Keys that programs may rely on; docs/your_data.md lists them.
SUMMARY = {"penstock", "source", "rows", "doubts", "time", "tags", "left_out", "plan", "notes"}
TIME = {
    "column", "how", "zone", "first", "last", "step", "gaps", "longest_gap", "gap_after", "grade", "reasons",
    "share_missing",
}  # fmt: skip
TAG = {
    "name", "role", "unit", "use", "left_out", "grade", "reasons", "interval", "low", "usual_low", "usual_high", "high",
    "kinds", "share_missing", "share_held", "bad", "first", "last",
}  # fmt: skip
NOTE = {"kind", "message", "count", "columns", "rows", "changed", "doubt"}


@cache
def record() -> Any:
    return draw_record("bearing", days=3)


def look_at(form: str, folder: Path, **options: Any) -> Any:
    export = FORMS[form](record(), folder)
    return penstock.look(export.source, **export.options, **options)


def plant(n: int = 400) -> pd.DataFrame:
    rng = np.random.default_rng(0)
    load = 50 + 10 * np.sin(np.arange(n) / 30) + rng.normal(0, 0.1, n)
    return pd.DataFrame(
        {
            "time": pd.date_range("2024-05-01", periods=n, freq="10min"),
            "load [MW]": load,
            "oil": 30 + load / 2 + rng.normal(0, 0.1, n),
            "pump": (np.arange(n) // 25) % 2,
            "cycle": np.arange(n),
            "relief": 5.0,
        }
    )


def shown(arguments: list[str], capfd: pytest.CaptureFixture[str], code: int = 0) -> str:
    assert main(["look", *arguments]) == code
    out, err = capfd.readouterr()
    assert bool(err) == (code != 0)
    return err if code else out


# What is known of time and tags.


@pytest.mark.parametrize(
    ("form", "how"),
    [
        ("plain", "unambiguous dates"),
        ("day first, twelve days", "dates with the day first"),
        ("month first, AM/PM", "dates with the month first"),
        ("Excel days", "numbers: days as Excel counts them"),
        ("milliseconds since 1970", "numbers: milliseconds since 1970"),
        ("compact stamps", "numbers: times as 202412311345"),
        ("long, own times", "unambiguous dates"),
        ("PI DataLink pairs", None),
        ("Ignition", None),
    ],
)
def test_the_time_is_said_in_words(form: str, how: str | None, tmp_path: Path) -> None:
    data = look_at(form, tmp_path)
    assert how is None or data.time.how == how
    assert data.time.step == pytest.approx(60, abs=1e-3)  # days of Excel have few digits
    assert len(data.tags) == 15


def test_gaps_zone_and_order_are_found() -> None:
    table = plant()
    table["time"] = table["time"].dt.tz_localize("UTC")
    data = penstock.look(table.drop(index=range(100, 130))[::-1], timezone="Europe/Berlin")
    assert (data.time.zone, data.time.gaps, data.time.longest_gap) == ("Europe/Berlin", 1, 31 * 600.0)
    assert data.time.gap_after == table["time"][99]
    assert any(note.kind == "order" for note in data.notes)
    assert data.time.first == table["time"][0]


def test_tags_have_role_unit_range_missing_and_when_they_were_read() -> None:
    table = plant()
    table.loc[:99, "oil"] = np.nan
    table.loc[101::2, "load [MW]"] = np.nan
    data = penstock.look(table)
    tags = {tag.name: tag for tag in data.tags}
    assert [tag.role for tag in data.tags] == ["sensor", "sensor", "state", "counter", "constant"]
    assert data.roles == {"sensor": 2, "state": 1, "constant": 1, "counter": 1}
    oil, load = tags["oil"], tags["load [MW]"]
    assert (oil.unit, load.unit) == ("", "MW")
    assert (oil.low, oil.high) == (table["oil"].min(), table["oil"].max())
    assert oil.usual_low == pytest.approx(table["oil"].quantile(0.05), abs=0.1)
    assert oil.usual_high == pytest.approx(table["oil"].quantile(0.95), abs=0.1)
    assert oil.share_missing == pytest.approx(0.25)
    assert (oil.first, oil.last) == (table["time"][100], table["time"][399])
    assert (oil.interval, load.interval) == (600.0, 1200.0)
    assert (tags["cycle"].use, tags["relief"].use, oil.use) == ("left out", "left out", "as it is")
    assert {each.name for each in data.left_out} == {"cycle", "relief"}
    lines = text_lines(data)
    assert any("readings from 2024-05-01 16:40" in line for line in lines)


def test_tags_of_their_own_clocks_say_how_often_they_are_read(tmp_path: Path) -> None:
    data = look_at("areas at 1 and 10 min", tmp_path)
    intervals = {tag.name: tag.interval for tag in data.tags}
    assert sorted(set(intervals.values())) == [60.0, 600.0]
    slow = next(tag for tag in data.tags if tag.interval == 600)
    assert slow.share_held == pytest.approx(0.9, abs=0.02)
    assert any("aligned to 1 min" in sentence for sentence in data.plan)


def test_bad_readings_are_counted_by_tag(tmp_path: Path) -> None:
    data = look_at("status beside each tag", tmp_path)
    assert all(tag.bad is not None and tag.bad > 0 for tag in data.tags)
    assert sum(tag.bad for tag in data.tags) == next(note.count for note in data.notes if note.kind == "bad quality")
    of_rows = look_at("long with quality words", tmp_path / "..")  # known of all tags together, not of each
    assert {tag.bad for tag in of_rows.tags} == {None}
    assert any(note.kind == "bad quality" for note in of_rows.notes)
    assert {tag.bad for tag in penstock.look(plant()).tags} == {0}


def test_a_table_without_time_has_rows_instead() -> None:
    table = plant().drop(columns="time")
    table.loc[:9, "oil"] = np.nan
    data = penstock.look(table)
    assert data.time is None
    assert next((tag.first, tag.last) for tag in data.tags if tag.name == "oil") == (10, 399)
    assert any("method detector" in sentence for sentence in data.plan)
    assert any("method sensors" in sentence for sentence in penstock.look(table, ordered=True).plan)


def test_roles_that_are_given_are_shown() -> None:
    data = penstock.look(plant(), roles={"pump": "setting"}, drivers=["load [MW]"])
    assert {tag.name: tag.role for tag in data.tags} == {
        "load [MW]": "driver",
        "oil": "sensor",
        "pump": "setting",
        "cycle": "counter",
        "relief": "constant",
    }


# Doubts.


def two_clocks() -> pd.DataFrame:
    table = plant()
    even = np.arange(len(table)) % 2 == 0
    return table.assign(oil=table["oil"].where(even), **{"load [MW]": table["load [MW]"].where(~even)})


def in_turn() -> pd.DataFrame:
    """A sensor that was replaced by another."""
    table = plant()
    early = np.arange(len(table)) < 200
    return table.assign(oil=table["oil"].where(early), **{"load [MW]": table["load [MW]"].where(~early)})


def with_codes() -> pd.DataFrame:
    table = plant()
    table.loc[::17, "oil"] = -9999
    return table


def clock_reset() -> pd.DataFrame:
    table = plant()
    table.loc[:3, "time"] -= pd.Timedelta(days=9000)
    return table


def some_text() -> pd.DataFrame:
    table = plant().astype({"oil": object})
    table.loc[5:8, "oil"] = "Bad Input"
    return table


@pytest.mark.parametrize(
    ("table", "kind"),
    [
        (two_clocks, "two clocks"),
        (in_turn, ""),
        (with_codes, "codes for missing?"),
        (clock_reset, "reset of the clock"),
        (some_text, "text among numbers"),
        (plant, ""),
    ],
)
def test_what_is_read_without_confidence_is_a_doubt(table: Any, kind: str) -> None:
    found = [note.kind for note in penstock.look(table()).doubts]
    assert found == ([kind] if kind else [])


@pytest.mark.parametrize(
    ("form", "kind", "option"),
    [
        ("day first, twelve days", "ambiguous dates", "--month-first"),
        ("local time, autumn", "daylight saving", "--timezone"),
        ("local time, spring", "daylight saving", "--timezone"),
    ],
)
def test_doubts_are_on_top_and_say_what_to_do(
    form: str, kind: str, option: str, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    export = FORMS[form](record(), tmp_path)
    assert [note.kind for note in penstock.look(export.source).doubts] == [kind]
    first = shown([str(export.source)], capfd).split("\n\n")[0]
    assert first.startswith("Check first:\n")
    assert option in first
    assert main(["detect", str(export.source), "--top", "3", "--method", "mean"]) == 0
    lines = capfd.readouterr().out.splitlines()
    assert lines[2].startswith("Check first: ")
    assert option in lines[2]
    assert sum(option in line for line in lines) == 1
    assert main(["fit", str(export.source), "--method", "mean", "-m", str(tmp_path / "m.penstock")]) == 0
    assert capfd.readouterr().out.splitlines()[1] == lines[2]


def test_an_encoding_that_is_certain_is_no_doubt(tmp_path: Path) -> None:
    path = tmp_path / "plant.csv"
    header = "time,Öl\n"
    rows = "".join(f"2024-05-01 {hour:02}:00,{hour % 5}.5\n" for hour in range(24))
    path.write_bytes((header + rows).encode("utf-16"))
    assert penstock.look(path).doubts == ()
    path.write_bytes("time,Ö\n".encode("cp1252") + rows.encode())
    data = penstock.look(path)
    assert any(note.kind == "encoding" for note in data.notes)
    assert [note.kind for note in data.doubts] in ([], ["encoding"])
    path.write_bytes((header + rows).encode() + b"2024-05-02 00:00,\xff\n")
    assert "encoding" in [note.kind for note in penstock.look(path).doubts]


# It reads as detect does.


@pytest.mark.parametrize(
    "form", ["plain", "German", "areas 7 s apart", "long, own times", "PI DataLink pairs", "Fail and Cycle", "WinCC"]
)
def test_look_agrees_with_detect(form: str, tmp_path: Path) -> None:
    export = FORMS[form](record(), tmp_path)
    data = penstock.look(export.source, **export.options)
    found = penstock.detect(export.source, **export.options, most_explained=0)
    assert plain(found.data) == plain(data)
    assert data.rows == len(found.scores)
    assert {tag.name for tag in data.tags if tag.use == "as it is"} == set(found.inputs.choice.as_they_are)


def test_scored_tables_have_their_own_summary() -> None:
    model = penstock.fit_model(plant())
    later = plant(500).iloc[400:]
    found = penstock.score(model, later)
    assert found.data.rows == 100
    assert found.data.time.first == later["time"].iloc[0]
    assert [tag.unit for tag in found.data.tags][:1] == ["MW"]


# The command.


def test_text_fits_and_json_has_its_keys(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    plant().to_csv(tmp_path / "plant.csv", index=False)
    text = shown([str(tmp_path / "plant.csv")], capfd)
    assert max(map(len, text.splitlines())) <= 100
    assert re.search(r"^Sensors \(2\) +unit +every +5 to 95 % +lowest +highest$", text, re.MULTILINE)
    assert re.search(r"^  load \[MW\] +MW +10 min +\d", text, re.MULTILINE)
    assert "  cycle: It only rises" in text
    document = json.loads(shown([str(tmp_path / "plant.csv"), "--json"], capfd))
    assert document.keys() == SUMMARY
    assert document["time"].keys() == TIME
    assert all(tag.keys() == TAG for tag in document["tags"])
    assert all(note.keys() == NOTE for note in document["notes"])
    assert all(each.keys() == {"name", "reason"} for each in document["left_out"])
    assert document["time"]["first"] == "2024-05-01T00:00:00"
    assert document["tags"][0] == plain(penstock.look(tmp_path / "plant.csv").tags[0])


def test_keys_are_fields_of_the_records() -> None:
    from penstock.detection import DataSummary, TagSummary, TimeSummary

    for record_, keys in ((DataSummary, SUMMARY - {"penstock"}), (TimeSummary, TIME), (TagSummary, TAG)):
        assert {each.name for each in dataclasses.fields(record_)} == keys


def test_hundreds_of_tags_are_cut_short_unless_all_are_asked_for(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    rng = np.random.default_rng(0)
    table = pd.DataFrame(rng.normal(size=(60, 300)), columns=[f"tag {number}" for number in range(300)])
    table.loc[10:40, "tag 250"] = np.nan
    table.to_csv(tmp_path / "wide.csv", index=False)
    short = shown([str(tmp_path / "wide.csv")], capfd)
    assert len(short.splitlines()) < 40
    assert "  … and 288 more (--all)" in short
    assert "  tag 250 " in short  # there is something to know about it
    everything = shown([str(tmp_path / "wide.csv"), "--all"], capfd)
    assert sum(line.startswith("  tag ") for line in everything.splitlines()) == 300


def test_long_and_hostile_names_fit_and_do_nothing(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    table = plant()
    table = table.rename(columns={"oil": "x" * 300, "pump": "\x1b[2Jpump [bold]", "cycle": "[red]cycle"})
    table.to_csv(tmp_path / "plant.csv", index=False)
    text = shown([str(tmp_path / "plant.csv")], capfd)
    assert "\x1b" not in text
    assert max(map(len, text.splitlines())) <= 100
    assert "[red]cycle" in text


@pytest.mark.parametrize(
    ("text", "options", "word"),
    [
        ("", [], "plant.csv"),
        ("a,b\nx,y\nz,w\n", [], "no column of numbers"),
        ("time,a\n2024-05-01,1\n2024-05-02,2\n", ["--time", "when"], "when"),
        ("time,a\n2024-05-01,1\n2024-05-02,2\n", ["--role", "a=boss"], "--role"),
        ("time,a\n2024-05-01,1\n2024-05-02,2\n", ["--step", "soon"], "--step"),
        ("name,2024-05-01,2024-05-02,2024-05-03,2024-05-04\nflow,1,2,3,4\nhead,1,2,3,4\n", [], "transposed"),
    ],
)
def test_what_cannot_be_read_ends_with_a_sentence(
    text: str, options: list[str], word: str, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "plant.csv").write_text(text)
    said = shown([str(tmp_path / "plant.csv"), *options], capfd, code=2)
    assert said.count("\n") == 1
    assert word in said
    with pytest.raises((TableError, ValueError)):
        penstock.look(tmp_path / "plant.csv", **({"roles": "a=boss"} if "--role" in options else {}), step="soon")


def test_a_file_that_is_missing_or_named_twice(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    plant().to_csv(tmp_path / "plant.csv", index=False)
    assert "named twice" in shown([str(tmp_path / "plant.csv")] * 2, capfd, code=2)
    assert "missing.csv" in shown([str(tmp_path / "missing.csv")], capfd, code=2)


def test_look_has_the_options_of_reading_alone(capfd: pytest.CaptureFixture[str], monkeypatch: Any) -> None:
    monkeypatch.setenv("COLUMNS", "200")
    assert main(["look", "--help"]) == 0
    said = capfd.readouterr().out
    assert all(
        option in said for option in ("--json", "--all", "--step", "--role", "--driver", "--timezone", "--since")
    )
    assert not any(option in said for option in ("--method", "--top", "--report", "--model", "--train-until"))


# The report.


def test_the_data_part_of_the_report_escapes_and_says_what_look_says(tmp_path: Path) -> None:
    name = "<script>alert(1)</script>"
    table = two_clocks().rename(columns={"oil": name, "pump": '"><img src=x onerror=alert(2)>'})
    table["unit <b>[&]"] = np.random.default_rng(0).normal(size=len(table))
    found = penstock.detect(table, most_explained=0)
    found.to_html(tmp_path / "report.html")
    page = (tmp_path / "report.html").read_text()
    part = page.partition('id="data-section"')[2].partition("</section>")[0]
    assert "Check first" in part
    assert "hardly ever have a reading in the same row" in part
    assert "5 to 95 %" in part
    assert "&lt;script&gt;" in part
    assert "<script" not in part
    assert "<img" not in part
    assert part.count("<h2") == 1
    assert "It only rises" in part
    quiet = penstock.detect(plant(), most_explained=0)
    quiet.to_html(tmp_path / "quiet.html")
    assert "Check first" not in (tmp_path / "quiet.html").read_text()


def test_the_report_says_why_tags_of_their_own_clocks_are_left_out(tmp_path: Path) -> None:
    export = FORMS["areas at 1 and 10 min"](record(), tmp_path)
    penstock.detect(export.source, most_explained=0).to_html(tmp_path / "report.html")
    part = (tmp_path / "report.html").read_text().partition("Left out or changed")[2].partition("</div>")[0]
    assert "ZT105</bdi>: It never changes" in part  # though another note names all tags
    assert part.count("EQ101</bdi>") == 0  # a note says it, and how to change it
    assert part.count("only rises") == 1
