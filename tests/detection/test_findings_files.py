"""Findings as CSV, JSON and Parquet: what is read back is what was found."""

from __future__ import annotations

import csv
import datetime as dt
import io
import json
import sys
import tracemalloc
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from detect_tables import left_behind, plant

from penstock.detection import Findings, detect
from penstock.report import as_json, plain, summarize, write_findings, write_new, write_scores
from penstock.report.document import as_csv, iso_times
from penstock.storage import StorageError


@pytest.fixture(scope="module")
def findings() -> Findings:
    return detect(plant(), top=40, gap="20min", label="fault", method="mean", timezone="Europe/Berlin")


@pytest.fixture(scope="module")
def timeless() -> Findings:
    return detect(plant().drop(columns=["time", "fault"]), top=12, method="norm")


def test_csv(findings: Findings, tmp_path: Path) -> None:
    write_findings(findings, tmp_path / "findings.csv")
    content = (tmp_path / "findings.csv").read_bytes()
    assert not content.startswith(b"\xef\xbb\xbf")
    assert content.count(b"\r\n") == content.count(b"\n") == 41
    table = pd.read_csv(io.BytesIO(content), keep_default_na=False)
    top = findings.top().reset_index()
    assert table.columns.tolist() == [
        "rank", "time", "row", "score", "expected_by_chance", "event", "mode", "seen", "variables",
        "event_start", "event_end", "event_seconds", "seen_as", "incident", "incident_start", "incident_end",
        "first_sensor", "condition", "source", "rule",
    ]  # fmt: skip
    assert table["score"].tolist() == top["score"].tolist()
    assert table["row"].tolist() == top["row"].tolist()
    assert table["time"].tolist() == [moment.isoformat() for moment in top["time"]]
    assert table["time"][0].endswith("+02:00")
    for event, start, end, seconds, rule in table[
        ["event", "event_start", "event_end", "event_seconds", "rule"]
    ].itertuples(index=False):
        known = findings.events.loc[event]
        assert (start, end) == (known["start"].isoformat(), known["end"].isoformat())
        assert seconds == known["duration"].total_seconds()
        found = findings.explain(event).rule
        assert rule.removeprefix("'") == ("" if found is None else found.text)


def test_parquet_holds_what_csv_holds_with_types(findings: Findings, tmp_path: Path) -> None:
    pytest.importorskip("pyarrow")
    write_findings(findings, tmp_path / "findings.parquet")
    write_findings(findings, tmp_path / "findings.csv")
    table, text = pd.read_parquet(tmp_path / "findings.parquet"), pd.read_csv(tmp_path / "findings.csv")
    assert table.columns.tolist() == text.columns.tolist()
    assert table["time"].tolist() == findings.top()["time"].tolist()
    assert table["event_seconds"].tolist() == text["event_seconds"].tolist()
    for name in ("rank", "row", "score", "event", "seen"):
        assert table[name].tolist() == text[name].tolist()
    assert str(table["time"].dt.tz) == "Europe/Berlin"


def test_json(findings: Findings, tmp_path: Path) -> None:
    write_findings(findings, tmp_path / "findings.json")
    document = json.loads((tmp_path / "findings.json").read_text("utf-8"), parse_constant=pytest.fail)
    assert list(document) == [
        "summary",
        "verdict",
        "incidents",
        "events",
        "days",
        "findings",
        "settings",
        "notes",
        "columns",
    ]
    assert document["summary"] == summarize(findings)
    assert document["verdict"] == {
        "kind": "unknown",
        "sentence": findings.verdict.sentence,
        "found": 0,
        "expected": None,
    }
    assert document["incidents"] == []
    assert document["summary"]["agreement"]["faults"] == 1
    assert [event["event"] for event in document["events"]] == findings.events.index.tolist()
    assert [row["score"] for row in document["findings"]] == findings.top()["score"].tolist()
    assert [note["message"] for note in document["notes"]] == [str(note) for note in findings.notes]
    assert {column["name"] for column in document["columns"]} >= set(findings.inputs.names)
    for event in document["events"]:
        why = findings.explain(event["event"])
        assert dt.datetime.fromisoformat(event["start"]) == findings.events.loc[event["event"], "start"]
        assert [entry["variable"] for entry in event["variables"]] == why.variables["variable"].tolist()
        assert [entry["row"] for entry in event["neighbors"]] == why.neighbors["row"].tolist()
        assert event["rule"] is None or (why.rule is not None and event["rule"]["text"] == why.rule.text)
    assert [day["rows"] for day in document["days"]] == findings.rows.days["rows"].tolist()
    assert all(len(day["day"]) == len("2024-05-01") for day in document["days"])


def test_incidents_are_in_every_file(tmp_path: Path) -> None:
    findings = detect(plant(3000), exclude="fault")
    for ending in ("json", "csv", "parquet"):
        write_findings(findings, tmp_path / f"findings.{ending}")
    document = json.loads((tmp_path / "findings.json").read_text("utf-8"), parse_constant=pytest.fail)
    verdict, (incident,) = document["verdict"], document["incidents"]
    assert (verdict["kind"], verdict["found"]) == ("clearly", 1)
    assert verdict["expected"] == incident["expected_by_chance"] < 0.01
    known = findings.incidents[0]
    assert (incident["incident"], incident["rank"], incident["events"]) == (1, 1, [1])
    assert incident["start"] == "2024-05-03T02:00:00"
    assert (incident["source"], incident["reason"]) == (known.source, known.reason)
    assert incident["similar"] == []
    assert [sensor["name"] for sensor in incident["sensors"]] == [sensor.name for sensor in known.sensors]
    first, sensor = incident["sensors"][0], known.sensors[0]
    assert findings.table.time is not None
    assert first == {
        "name": "bearing [°C]",
        "onset": findings.table.time[sensor.onset].isoformat(),
        "mean_evidence": sensor.mean_evidence,
        "peak_evidence": sensor.peak_evidence,
        "direction": "above",
        "condition": sensor.condition,
        "certain": sensor.certain,
    }
    for table in (pd.read_csv(tmp_path / "findings.csv"), pd.read_parquet(tmp_path / "findings.parquet")):
        assert set(table["incident"]) == {1}
        assert set(pd.to_datetime(table["incident_start"])) == {pd.Timestamp(incident["start"])}
        assert set(table["first_sensor"]) == {"bearing [°C]"}
        assert set(table["source"]) == {known.source}
        assert (table["expected_by_chance"] <= 1).all()


def test_only_the_highest_events_are_explained(findings: Findings, tmp_path: Path) -> None:
    highest = int(findings.events["rank"].idxmin())
    findings = replace(
        findings, explained=replace(findings.explained, events={highest: findings.explained.events[highest]})
    )
    write_findings(findings, tmp_path / "findings.json")
    write_findings(findings, tmp_path / "findings.csv")
    events = json.loads((tmp_path / "findings.json").read_text())["events"]
    assert [event["rank"] for event in events if event["variables"] is not None] == [1]
    table = pd.read_csv(tmp_path / "findings.csv", keep_default_na=False)
    assert (table.loc[table["event"] != highest, "rule"] == "").all()


def test_what_appears_meanwhile_stays(tmp_path: Path) -> None:
    def pieces() -> Iterator[bytes]:
        yield b"ours"
        (tmp_path / "findings.csv").write_bytes(b"theirs")

    with pytest.raises(FileExistsError):
        write_new(tmp_path / "findings.csv", pieces(), overwrite=False)
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == {"findings.csv": b"theirs"}
    write_new(tmp_path / "findings.csv", pieces(), overwrite=True)
    assert (tmp_path / "findings.csv").read_bytes() == b"ours"


@pytest.mark.parametrize(
    "text", ["=1", " =1", "\u00a0+1", '"=1', "'@x", "＝1", "＠x", "\t=1", "\r", "\nx", "-x", "=cmd|'/c calc'!A0"]
)
def test_formulas_are_defused(text: str) -> None:
    [[cell]] = csv.reader(io.StringIO(as_csv(pd.DataFrame({"a": [text]}), header=False), newline=""))
    assert cell == f"'{text}"


def test_without_time(timeless: Findings, tmp_path: Path) -> None:
    write_findings(timeless, tmp_path / "findings.csv")
    write_findings(timeless, tmp_path / "findings.json")
    write_scores(timeless, tmp_path / "scores.jsonl")
    table = pd.read_csv(tmp_path / "findings.csv")
    assert "time" not in table
    assert table["event_span"].tolist() == timeless.events.loc[table["event"], "duration"].tolist()
    assert table["event_start"].tolist() == timeless.events.loc[table["event"], "start"].tolist()
    document = json.loads((tmp_path / "findings.json").read_text())
    assert document["days"] == []
    assert document["summary"]["first_time"] is None
    assert [event["start"] for event in document["events"]] == timeless.events["start"].tolist()
    assert "time" not in json.loads((tmp_path / "scores.jsonl").read_text().splitlines()[0])


@pytest.mark.parametrize("ending", ["csv", "csv.gz", "jsonl", "parquet"])
def test_scores(findings: Findings, tmp_path: Path, ending: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("penstock.report.document.ROWS_AT_ONCE", 150)
    part = replace(findings, scores=np.where(np.arange(400) == 7, np.nan, findings.scores))
    path = tmp_path / f"scores.{ending}"
    write_scores(part, path)
    readers: dict[str, Callable[..., Any]] = {"jsonl": lambda path: pd.read_json(path, lines=True)}
    readers |= {"parquet": pd.read_parquet}
    table = readers.get(ending, pd.read_csv)(path)
    assert table.columns.tolist() == ["row", "time", "score", "flag", "event", "mode", "seen"]
    assert table["row"].tolist() == findings.table.values.index.tolist()
    np.testing.assert_allclose(table["score"], part.scores, rtol=1e-12)
    assert table["flag"].tolist() == findings.flags.tolist()
    assert table["event"].isna().tolist() == (findings.rows.grouped.of_row == 0).tolist()
    assert table["event"].fillna(0).tolist() == findings.rows.grouped.of_row.tolist()
    assert pd.to_datetime(table["time"], utc=True).tolist() == findings.table.time.tolist()  # type: ignore[union-attr]


@pytest.mark.slow
def test_many_scores_take_little_memory(findings: Findings, tmp_path: Path) -> None:
    table = findings.table
    assert table.time is not None
    times = 250  # 100,000 rows
    long = replace(
        findings,
        table=replace(
            table,
            values=pd.DataFrame(index=pd.RangeIndex(400 * times)),
            time=pd.date_range("2024-05-01", periods=400 * times, freq="min"),
        ),
        scores=np.tile(findings.scores, times),
        flags=np.tile(findings.flags, times),
        rows=replace(
            findings.rows,
            modes=np.tile(findings.rows.modes, times),
            seen=np.tile(findings.rows.seen, times),
            grouped=replace(findings.rows.grouped, of_row=np.tile(findings.rows.grouped.of_row, times)),
        ),
    )
    tracemalloc.start()
    try:
        write_scores(long, tmp_path / "scores.csv")
        assert tracemalloc.get_traced_memory()[1] < 80 * 2**20  # for a part of it, whatever the length
    finally:
        tracemalloc.stop()
    assert (tmp_path / "scores.csv").read_bytes().count(b"\n") == 400 * times + 1


@pytest.mark.parametrize("text", ["flow", 'a "quoted" name', "a,b", "a;=1", "a\t=1", "two\r\nlines", "高さ", "'x", ""])
def test_other_texts_stay_as_they_are(text: str) -> None:
    rows = list(csv.reader(io.StringIO(as_csv(pd.DataFrame({"a": [text, "x"]}), header=False), newline="")))
    assert rows == [[text], ["x"]]


def test_numbers_read_back_to_the_same() -> None:
    values = [0.1, 1e-300, 123456789.123456789, -0.0, float("inf")]
    assert [float(line) for line in as_csv(pd.DataFrame({"a": values})).split()[1:]] == values


@pytest.mark.parametrize(
    ("times", "zone", "written"),
    [
        (["2024-05-01 10:00"], None, ["2024-05-01T10:00:00"]),
        (["2024-05-01 10:00", "2024-05-01 10:00:00.25"], None, ["2024-05-01T10:00:00.000", "2024-05-01T10:00:00.250"]),
        (["2024-01-01", "2024-07-01"], "America/New_York", ["2024-01-01T00:00:00-05:00", "2024-07-01T00:00:00-04:00"]),
        (["2024-01-01"], "Asia/Kolkata", ["2024-01-01T00:00:00+05:30"]),
        (["2024-01-01", None], "UTC", ["2024-01-01T00:00:00+00:00", ""]),
        ([], None, []),
    ],
)
def test_iso_times(times: list[str], zone: str | None, written: list[str]) -> None:
    index = pd.DatetimeIndex(times, tz=zone)
    assert iso_times(index) == written
    assert [dt.datetime.fromisoformat(text) for text in written if text] == index.dropna().to_pydatetime().tolist()


def test_plain_values() -> None:
    given = {
        "nan": float("nan"), "inf": -np.inf, "nat": pd.NaT, "na": pd.NA, "day": dt.date(2024, 5, 1),
        "span": pd.Timedelta("90s"), "set": {"b", "a"}, "array": np.array([1, 2]), 3: np.bool_(True),
        "path": Path("a/b"),
    }  # fmt: skip
    assert plain(given) == {
        "nan": None, "inf": None, "nat": None, "na": None, "day": "2024-05-01",
        "span": 90.0, "set": ["a", "b"], "array": [1, 2], "3": True,
        "path": "a/b",
    }  # fmt: skip
    assert as_json(plain(given)).startswith('{"nan": null, "inf": null,')


def test_names_that_are_not_utf_8(findings: Findings, tmp_path: Path) -> None:
    odd = replace(findings, settings={"source": "plant\udcff.csv"})
    write_findings(odd, tmp_path / "findings.json")
    document = json.loads((tmp_path / "findings.json").read_text("utf-8"))
    assert document["settings"] == {"source": "plant\udcff.csv"}


@pytest.mark.parametrize("write", [write_findings, write_scores])
def test_nothing_is_replaced_unasked(findings: Findings, tmp_path: Path, write: Callable[..., None]) -> None:
    path = tmp_path / "old.csv"
    path.write_text("precious")
    with pytest.raises(FileExistsError):
        write(findings, path)
    assert path.read_text() == "precious"
    write(findings, path, overwrite=True)
    assert path.read_text().startswith(("rank", "row"))
    assert left_behind(tmp_path).keys() == {"old.csv"}


def test_a_failure_leaves_the_old_file(findings: Findings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "old.json"
    path.write_text("precious")

    def broken(*_: Any) -> Any:
        raise KeyboardInterrupt

    monkeypatch.setattr(Findings, "top", broken)
    with pytest.raises(KeyboardInterrupt):
        write_findings(findings, path, overwrite=True)
    assert path.read_text() == "precious"
    assert left_behind(tmp_path).keys() == {"old.json"}


def test_endings(findings: Findings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("findings.txt", "findings", "findings.jsonl"):
        with pytest.raises(StorageError, match=r"ending must be one of .csv, .csv.gz, .json, .parquet, .xlsx"):
            write_findings(findings, tmp_path / name)
    with pytest.raises(StorageError, match=r"ending must be one of .csv, .csv.gz, .jsonl, .parquet"):
        write_scores(findings, tmp_path / "scores.json")
    monkeypatch.setitem(sys.modules, "pyarrow.parquet", None)
    with pytest.raises(StorageError, match=r"needs pyarrow. Install it with: pip install 'penstock\[files\]'"):
        write_scores(findings, tmp_path / "scores.parquet")
    assert left_behind(tmp_path) == {}
