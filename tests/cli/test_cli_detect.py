"""`penstock detect`, `fit` and `score` where all is well."""

from __future__ import annotations

import json
import os
import pty
import re
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from detect_tables import left_behind, plant

from penstock.cli import main
from penstock.detection import detect, fit_model, load
from penstock.detection.verdict import ONLY_RANKS
from penstock.options import MethodParameters, described
from penstock.registry import METHODS, make_detector

COMMAND = [sys.executable, "-c", "import sys; from penstock.cli import main; sys.exit(main())"]
QUICK = ["--method", "norm"]
PAPERS = ["--method", "nsnmf", "-K", "2"]


@pytest.fixture
def table(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.chdir(tmp_path)
    plant().to_csv("plant.csv", index=False)
    return "plant.csv"


def test_the_summary(table: str, capfd: pytest.CaptureFixture[str]) -> None:
    assert main(["detect", table, *PAPERS, "--top", "8", "--label", "fault", "--gap", "20min"]) == 0
    shown = capfd.readouterr()
    assert shown.err == ""
    lines = shown.out.splitlines()
    findings = detect(table, method="nsnmf", parameters={"n_components": 2}, top=8, label="fault", gap="20min")
    assert lines[0] == findings.verdict.sentence == f"This method gives scores without a rate. {ONLY_RANKS}"
    assert (
        lines[1] == "plant.csv: 400 rows from 2024-05-01 00:00 to 2024-05-03 18:30, all scored by NSNMF with 4 inputs."
    )
    data, lines = lines[2:4], [*lines[:2], *lines[4:]]
    assert data == ["Time: 'time', unambiguous dates, no zone; a row every 10 min.", "Columns: 4 sensors."]
    assert lines[2].startswith(
        f"8 findings (the 8 highest scores of 400 rows, above {findings.threshold:.4g}) in {len(findings.events)} event"
    )
    first = findings.events.sort_values("rank").iloc[0]
    shown_event = lines[5].split()
    assert shown_event[0] == str(findings.events.sort_values("rank").index[0])
    assert shown_event[1:3] == str(first["start"])[:16].split()
    assert "bearing [°C]" in lines[5]
    assert any(line.startswith("Event days (findings): 2024-05-0") for line in lines)
    assert "inside 1 of 1 known fault" in shown.out
    assert all(str(note) in shown.out for note in findings.notes)
    assert left_behind(Path()).keys() == {"plant.csv"}


HINT = "(method "


def test_rows_in_no_order_are_scored_one_by_one(table: str, capfd: pytest.CaptureFixture[str]) -> None:
    rows = plant().drop(columns=["time", "fault"]).sample(frac=1, random_state=0)
    rows.to_csv("rows.csv", index=False)
    why = (
        "Rows are scored one by one (method detector): there is no time column (--ordered says that rows are in order "
        "of time)."
    )
    assert main(["detect", "rows.csv", "--top", "8"]) == 0
    lines = capfd.readouterr().out.splitlines()
    findings = detect("rows.csv", top=8)
    assert lines[0] == findings.verdict.sentence
    assert lines[1].endswith("all scored by Detector with 4 inputs.")
    data, lines = lines[2:4], [*lines[:2], *lines[4:]]
    assert data == ["Time: none was found (--time names its column).", "Columns: 4 sensors."]
    assert lines[2] == why
    assert lines[3].startswith(f"8 findings (the 8 highest scores of 400 rows, above {findings.threshold:.4g}) in ")
    heads, first = lines[5], next(line for line in lines[6:] if "bearing [°C]" in line)
    assert "expected by chance" in heads
    assert "  fewer than 0.05  " in first
    assert lines.count(why) == 1
    assert not any("Incidents" in line or line.strip() == why for line in lines[3:])
    assert main(["fit", "rows.csv", "-m", "plant.model"]) == 0
    lines = capfd.readouterr().out.splitlines()
    assert lines[:2] == ["Detector was fitted to 400 rows of 4 inputs.", why]


def test_rows_in_order_of_time_are_incidents(table: str, capfd: pytest.CaptureFixture[str]) -> None:
    plant(3000).to_csv(table, index=False)
    assert main(["detect", table, "--exclude", "fault"]) == 0
    shown = capfd.readouterr().out
    lines = shown.splitlines()
    findings = detect(table, exclude=["fault"])
    (incident,) = findings.incident_table.to_dict("records")
    assert lines[0] == findings.verdict.sentence
    assert lines[0].startswith("1 incident stands out, near certain; ")
    assert lines[1].endswith("all scored by SensorDetector with 4 inputs.")
    data, lines = lines[2:4], [*lines[:2], *lines[4:]]
    assert data == ["Time: 'time', unambiguous dates, no zone; a row every 10 min.", "Columns: 4 sensors."]
    assert lines[2].startswith("Sensors are scored by each other over time (method sensors)")
    assert lines[4] == "Incidents, the most severe first:"
    certain = r"near certain \(expected by chance: .*0\.\d+\)"
    assert re.fullmatch(rf"  1: 2024-05-03 02:00 to 02:40 \(40 min\), {certain}", lines[5])  # the fault's rows
    condition = f" ({incident['condition']})" if incident["condition"] else ""
    assert lines[6].startswith(f"     look first at bearing [°C]{condition}, which moved first; ")
    assert lines[8].endswith(" in 1 event on 1 day.")
    assert "  expected by chance  variables" in lines[10]
    assert re.search(r"\d +(about 0\.\d+|fewer than 0\.05)  bearing", lines[11])
    assert shown.count("method sensors") == 1
    assert main(["detect", table, "--exclude", "fault", "--json"]) == 0
    summary = json.loads(capfd.readouterr().out)
    assert summary["verdict"]["sentence"] == lines[0]
    assert [each["sensors"][0]["name"] for each in summary["incidents"]] == ["bearing [°C]"]
    assert summary["events"] == 1


def test_how_sure_is_not_said_where_it_is_not_known(table: str, capfd: pytest.CaptureFixture[str]) -> None:
    """A short record without time stamps, in order: incidents are there, by row numbers, without a rate."""
    plant().drop(columns=["time", "fault"])[200:400].to_csv("rows.csv", index=False)
    assert main(["detect", "rows.csv", "--ordered", "--top", "7"]) == 0
    shown = capfd.readouterr().out
    assert shown.startswith("The record is too short to say how often chance would give such an episode.")
    assert re.search(r"\n  \d: rows 100 to 104, how sure is not known\n     look first at bearing", shown)
    assert "nan" not in shown


@pytest.mark.parametrize("chosen", [["--method", "detector"], ["--config", "job.toml"]])
def test_who_chose_a_method_is_not_told_why(table: str, chosen: list[str], capfd: pytest.CaptureFixture[str]) -> None:
    Path("job.toml").write_text('method = "nsnmf"\n')
    assert main(["detect", table, *chosen]) == 0
    assert HINT not in capfd.readouterr().out
    assert main(["fit", table, *chosen, "-m", "plant.model"]) == 0
    assert HINT not in capfd.readouterr().out
    assert main(["score", "--model", "plant.model", table]) == 0
    assert HINT not in capfd.readouterr().out


def test_a_share_is_a_rate_of_false_alarms(table: str, capfd: pytest.CaptureFixture[str]) -> None:
    usual = plant()[lambda rows: rows["fault"] == 0].drop(columns="time").sample(frac=1, random_state=0)
    usual.to_csv("usual.csv", index=False)
    assert main(["fit", "usual.csv", "--exclude", "fault", "-m", "plant.model"]) == 0
    capfd.readouterr()
    assert main(["score", "--model", "plant.model", table, "--threshold", "1e-4", "-o", "new.json"]) == 0
    detector = load("plant.model").parts[0].detector.set_false_alarm_rate(1e-4)
    summary = json.loads(Path("new.json").read_text())["summary"]
    assert summary["threshold"] == detector.threshold_
    assert summary["threshold_expected"] == pytest.approx(1e-4 * len(plant()))
    assert summary["chance_unknown"] == ""
    shown = capfd.readouterr().out
    assert f"above {detector.threshold_:.4g}, expected by chance: fewer than 0.05" in shown
    assert "  fewer than 0.05  bearing" in shown


def test_parameters_of_other_methods_are_refused_with_their_home(table: str, capfd: pytest.CaptureFixture[str]) -> None:
    assert main(["detect", table, "-K", "3"]) == 2
    assert "Detector has no parameter 'n_components'" in (shown := capfd.readouterr().err)
    assert "The methods that have it: nsnmf, laplacian, online, nmf, gnmf, snmf." in shown


def test_help_tells_the_defaults_of_the_methods() -> None:
    for name, _, option in described(MethodParameters):
        made = {make_detector(method).get_params().get(name) for method in METHODS}
        assert {str(default) for default in made if default is not None} == {option.default}


def test_the_files_hold_what_the_library_finds(table: str, capfd: pytest.CaptureFixture[str]) -> None:
    files = ["-o", "findings.json", "--incidents", "incidents.csv", "--scores", "scores.csv"]
    assert main(["detect", table, *PAPERS, "--exclude", "fault", "--threshold", "0.02", *files]) == 0
    findings = detect(table, method="nsnmf", parameters={"n_components": 2}, exclude=["fault"], threshold=0.02)
    document = json.loads(Path("findings.json").read_text())
    assert [row["row"] for row in document["findings"]] == findings.top().index.tolist()
    assert pd.read_csv("scores.csv")["score"].tolist() == pytest.approx(findings.scores.tolist(), rel=1e-12)
    assert pd.read_csv("incidents.csv")["event"].tolist() == findings.events.sort_values("rank").index.tolist()
    written = capfd.readouterr().out
    assert written.endswith("Written: findings.json\nWritten: incidents.csv\nWritten: scores.csv\n")


@pytest.mark.parametrize(("option", "parameters"), [
    (["--components", "3", "--gamma", "0.1"], {"n_components": 3, "gamma": 0.1}),
    (["--n-components", "2", "--alpha", "0.6"], {"n_components": 2, "alpha": 0.6}),
    (["-K", "2", "--similarity", "binary", "--score", "structural"],
     {"n_components": 2, "similarity": "binary", "score_kind": "structural"}),
])  # fmt: skip
def test_options_of_the_model(table: str, option: list[str], parameters: dict[str, float | str]) -> None:
    chosen = ["--method", "nsnmf", "--seed", "3", *option]
    assert main(["detect", table, "-q", "--exclude", "fault", "--scores", "scores.csv", *chosen]) == 0
    findings = detect(table, exclude=["fault"], method="nsnmf", parameters=parameters, random_state=3)
    np.testing.assert_allclose(pd.read_csv("scores.csv")["score"], findings.scores, rtol=1e-12)


def test_options_of_tables(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    german = plant().assign(Tag=lambda table: table["time"].dt.strftime("%d.%m.%Y"))
    german = german.assign(Zeit=german.pop("time").dt.strftime("%H:%M"))
    german.to_csv("werk.txt", sep="\t", decimal=",", encoding="cp1252", index=False)
    options = "--time Tag,Zeit --separator tab --decimal , --encoding cp1252 --day-first --timezone Europe/Berlin"
    chosen = ["--columns", '"load [MW]",head,fault', "--exclude", "fault", "--keep", "head"]
    assert main(["detect", "werk.txt", *QUICK, *options.split(), *chosen, "-q", "-o", "findings.json"]) == 0
    document = json.loads(Path("findings.json").read_text())
    assert document["summary"]["first_time"] == "2024-05-01T00:00:00+02:00"
    assert document["summary"]["inputs"] == 2


def test_month_first(table: str) -> None:
    dates = pd.DataFrame(
        {"time": ["1/2/2024", "2/2/2024", "3/2/2024"] * 20, "flow": range(60), "head": range(60, 0, -1)}
    )
    dates.to_csv("dates.csv", index=False)
    for flag, last in (("--month-first", "2024-03-02"), ("--day-first", "2024-02-03")):
        assert main(["detect", "dates.csv", *QUICK, flag, "-q", "--overwrite", "-o", "found.json"]) == 0
        assert json.loads(Path("found.json").read_text())["summary"]["last_time"].startswith(last)


def test_a_format_of_time_and_names_are_kept_by_the_model(table: str, capfd: pytest.CaptureFixture[str]) -> None:
    frame = plant().drop(columns="fault")
    frame["time"] = frame["time"].dt.strftime("%Hh%M-%d.%m.%Y")
    Path("plant.dat").write_text(frame.to_csv(sep=" ", index=False, header=False))
    Path("fit.toml").write_text('time-format = "%Hh%M-%d.%m.%Y"\nnames = ["when", "a", "b", "c", "d"]\n')
    assert main(["fit", "plant.dat", *QUICK, "--config", "fit.toml", "-m", "model", "-q"]) == 0
    assert main(["score", "--model", "model", "plant.dat", "--scores", "scores.csv", "-q"]) == 0
    assert pd.read_csv("scores.csv")["time"].iloc[1] == "2024-05-01T00:10:00"
    assert load("model").inputs.names == ("a", "b", "c", "d")
    assert main(["score", "--model", "model", "plant.dat", "--time-format", "%Y", "-q"]) == 2
    assert "no column of times written as '%Y' (--time-format)" in capfd.readouterr().err
    assert main(["detect", "plant.dat", *QUICK, "--names", "a,b"]) == 2
    assert "plant.dat has 5 columns, but names has 2." in capfd.readouterr().err


def test_modes_training_and_units(table: str, capfd: pytest.CaptureFixture[str]) -> None:
    Path("units.csv").write_text("name,unit\nhead,mWC\n")
    modes = ["--mode", "high: head > 26", "--mode", "low: head <= 26", "--skip-mode", "low", "--settle", "20min"]
    options = [*modes, "--train-until", "2024-05-02", "--units", "units.csv", "--threshold", "auto"]
    assert main(["detect", table, *QUICK, *options, "-o", "findings.json"]) == 0
    document = json.loads(Path("findings.json").read_text())
    assert {"high", "low", "changing"} <= set(document["summary"]["modes"])
    assert document["summary"]["scored"] < 400
    assert next(column["unit"] for column in document["columns"] if column["name"] == "head") == "mWC"
    assert "rows were not scored" in capfd.readouterr().out


def test_a_column_of_modes_called_like_a_tag(table: str) -> None:
    plant().assign(**{"=MKA10": np.where(np.arange(400) < 200, "on", "off")}).to_csv("tags.csv", index=False)
    assert main(["detect", "tags.csv", *QUICK, "--mode", "=MKA10", "-q", "-o", "findings.json"]) == 0
    assert json.loads(Path("findings.json").read_text())["summary"]["modes"] == {"off": 200, "on": 200}


def test_fit_and_score_are_the_halves_of_detect(table: str, capfd: pytest.CaptureFixture[str]) -> None:
    common = ["--exclude", "fault", *PAPERS, "--train-until", "2024-05-02"]
    assert main(["fit", table, *common, "--model", "plant.model"]) == 0
    assert re.fullmatch(
        r"NSNMF was fitted to 288 rows of 4 inputs\.\n(\nWorth knowing:\n(  .+\n)+)?\nWritten: plant\.model\n",
        capfd.readouterr().out,
    )
    assert main(["score", "--model", "plant.model", table, "-q", "--scores", "new.csv", "-o", "new.json"]) == 0
    paper = {"method": "nsnmf", "parameters": {"n_components": 2}}
    model = fit_model(table, exclude=["fault"], **paper, train_until="2024-05-02")
    scores = pd.read_csv("new.csv")["score"]
    np.testing.assert_allclose(scores, model.score(table).scores, rtol=1e-9)
    np.testing.assert_allclose(scores, load("plant.model").score(table).scores, rtol=1e-9)
    assert main(["detect", table, *common, "-q", "--scores", "whole.csv", "--threshold", "auto"]) == 0
    whole = pd.read_csv("whole.csv")
    np.testing.assert_allclose(scores[288:], whole["score"][288:], rtol=1e-9)
    found = {row["row"] for row in json.loads(Path("new.json").read_text())["findings"] if row["row"] >= 288}
    assert found == set(whole["row"][whole["flag"]])
    assert set(range(300, 305)) <= found


def test_a_model_is_not_replaced_unasked(table: str, capfd: pytest.CaptureFixture[str]) -> None:
    Path("plant.model").write_text("precious")
    assert main(["fit", table, *QUICK, "-m", "plant.model"]) == 2
    assert "--overwrite" in capfd.readouterr().err
    assert main(["fit", table, *QUICK, "--label", "fault", "-m", "plant.model", "--overwrite", "-q"]) == 0
    assert capfd.readouterr().out == ""
    assert main(["score", "--model", "plant.model", table, "--top", "3", "--gap", "0", "--label", "fault"]) == 0
    assert "3 findings" in capfd.readouterr().out


def test_fail_on_counts_events_and_files_are_written_all_the_same(table: str) -> None:
    events = len(detect(table, method="norm").events)
    files = ["-o", "findings.parquet", "--scores", "scores.csv.gz", "--report", "report.html", "--overwrite"]
    for number in (events, events + 1):
        assert main(["detect", table, *QUICK, "-q", "--fail-on", str(number), *files]) == int(number <= events)
    assert pd.read_parquet("findings.parquet")["rank"].tolist() == list(range(1, 21))
    assert len(pd.read_csv("scores.csv.gz")) == 400
    assert "</html>" in Path("report.html").read_text("utf-8")


def test_quiet_and_json(table: str, capfd: pytest.CaptureFixture[str]) -> None:
    assert main(["detect", table, *QUICK, "--quiet", "-o", "findings.csv"]) == 0
    assert capfd.readouterr() == ("", "")
    assert main(["detect", table, *QUICK, "--json", "--scores", "scores.csv"]) == 0
    shown = capfd.readouterr()
    assert shown.err == ""
    summary = json.loads(shown.out)
    assert (summary["rows"], summary["findings"], summary["files"]) == (400, 20, ["scores.csv"])


def test_a_configuration(table: str, capfd: pytest.CaptureFixture[str]) -> None:
    Path("detect.toml").write_text(
        'source = ["plant.csv"]\nmethod = "norm"\ntop = 3\nexclude = ["fault", "head"]\nquiet = true\n'
        'output = "ignored.csv"\nmode = "high: `load [MW]` > 50"\nskip-mode = ["other"]\nsettle = "10min"\n'
    )
    assert main(["detect", "--config", "detect.toml", "-o", "findings.csv"]) == 0
    assert capfd.readouterr() == ("", "")
    assert not Path("ignored.csv").exists()
    assert pd.read_csv("findings.csv")["mode"].tolist() == ["high"] * 3


def test_names_that_a_terminal_would_obey(table: str, capfd: pytest.CaptureFixture[str]) -> None:
    text = Path(table).read_text().replace("head", "he\x1b]0;owned\x07ad", 1)
    Path("odd.csv").write_text(text)
    assert main(["detect", "odd.csv", *QUICK, "--columns", "he\x1b]0;owned\x07ad,=flow"]) == 0
    shown = capfd.readouterr().out
    assert "owned" in shown
    assert shown.replace("\n", "").isprintable()


def test_many_events_and_notes_are_cut(table: str, capfd: pytest.CaptureFixture[str]) -> None:
    assert main(["detect", table, *QUICK, "--top", "100", "--gap", "0"]) == 0
    lines = capfd.readouterr().out.splitlines()
    assert sum(bool(re.match(r" +\d+  2024", line)) for line in lines) == 10
    assert any(re.fullmatch(r"  … and \d+ more", line) for line in lines)


def test_no_findings(table: str, capfd: pytest.CaptureFixture[str]) -> None:
    assert main(["detect", table, *QUICK, "--threshold", "fixed:1e9", "-o", "findings.csv", "--fail-on", "1"]) == 0
    assert "No findings" in capfd.readouterr().out
    assert Path("findings.csv").read_text().count("\n") == 1


def test_a_reader_that_has_had_enough(
    table: str, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    reading, writing = os.pipe()
    os.close(reading)
    with os.fdopen(writing, "w") as nobody_reads:
        monkeypatch.setattr(sys, "stdout", nobody_reads)
        assert main(["detect", table, *QUICK]) == 0
    assert capfd.readouterr().err == ""


def test_a_closed_output(table: str, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(sys, "stdout", None)  # what Python has for one that was closed before it began
    assert main(["detect", table, *QUICK, "-o", "findings.csv"]) == 0
    assert capfd.readouterr().err == ""
    assert Path("findings.csv").exists()


def test_a_full_output(table: str, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> None:
    with Path("/dev/full").open("w") as full:
        monkeypatch.setattr(sys, "stdout", full)
        assert main(["detect", table, *QUICK, "-o", "findings.csv"]) == 2
    assert capfd.readouterr().err == "penstock: Standard output cannot be written: No space left on device.\n"
    assert Path("findings.csv").exists()


@pytest.mark.slow
def test_a_closed_standard_error(table: str) -> None:
    shell = ["sh", "-c", 'exec "$@" 2>&-', "sh", *COMMAND, "detect", table, *QUICK, "-o", "findings.csv"]
    assert subprocess.run(shell, stdout=subprocess.PIPE, timeout=300, check=False).returncode == 0
    assert Path("findings.csv").exists()


SLOW_WRITER = """
import os, sys, time
from penstock.cli import main
import penstock.storage.files as files
sync = os.fsync
def slow(descriptor):
    print("writing", flush=True)
    time.sleep(600)
files.os.fsync = slow
sys.exit(main(sys.argv[1:]))
"""


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
@pytest.mark.parametrize("option", ["-o", pytest.param("--scores", marks=pytest.mark.slow)])
def test_signals_leave_nothing(table: str, number: int, code: int, option: str) -> None:
    before = left_behind(Path())
    process = subprocess.Popen(
        [sys.executable, "-c", SLOW_WRITER, "detect", table, *QUICK, option, "new.csv"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stdout
    assert process.stdout.readline() == "writing\n"
    assert len(left_behind(Path())) == 2
    process.send_signal(number)
    _, errors = process.communicate(timeout=300)
    assert (process.returncode, errors) == (code, "")
    assert left_behind(Path()) == before


def test_a_terminal_shows_the_stage(table: str) -> None:
    code = "import penstock._progress as progress; progress.SECONDS = 0.01; "
    ours, theirs = pty.openpty()
    command = [sys.executable, "-c", code + COMMAND[2], "detect", table, *PAPERS, "-o", "findings.csv"]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=theirs, env={**os.environ, "TERM": "xterm"})
    os.close(theirs)
    shown = b""
    while True:
        try:
            shown += os.read(ours, 4096)
        except OSError:  # the other end is closed
            break
    os.close(ours)
    output = process.communicate(timeout=300)[0]
    assert process.returncode == 0
    # the line is drawn four times a second: which of the stages it catches depends on the machine
    fit = rb"fitting NSNMF to 400 rows, (checks|spanning tree of 400 rows|starts|iteration \d+ of 300)"
    others = rb"reading plant.csv|checking 5 columns|scoring 400 rows|explaining \d+ events?|writing findings.csv"
    assert re.search(rb"(" + fit + rb"|" + others + rb"), \d+ s", shown)
    assert b"Written: findings.csv" in output
    assert b"\x1b" not in output


def test_labels_groups_and_periods(table: str, capfd: pytest.CaptureFixture[str]) -> None:
    two = plant().assign(unit="B", fault=lambda rows: rows["fault"].replace(0, -999))
    pd.concat([plant().assign(unit="A"), two]).to_csv("two.csv", index=False)
    asked = ["--label", "fault", "--fault-value", "1", "--unknown-value", "-999", "--group", "unit", "--top", "10"]
    asked += [
        "--since",
        "2024-05-01 12:00",
        "--until",
        "2024-05-03",
        "--exclude-period",
        "2024-05-02..2024-05-02 12:00",
    ]
    assert main(["detect", "two.csv", *QUICK, *asked, "--output", "found.csv", "--scores", "scores.csv"]) == 0
    shown = capfd.readouterr().out
    assert "event  unit             start" in shown
    assert "2 known faults" in shown
    assert "323 unknown and not counted (-999)" in shown
    assert "144 of 800 rows were not used: only those from 2024-05-01 12:00 until 2024-05-03." in shown
    assert "146 rows from 2024-05-02 until 2024-05-02 12:00 neither fitted to nor scored" in shown
    assert set(pd.read_csv("found.csv")["group"]) <= {"A", "B"}
    scores = pd.read_csv("scores.csv")
    assert scores["group"].tolist() == ["A"] * 328 + ["B"] * 328
    assert scores["score"].isna().sum() == 146
    Path("job.toml").write_text(
        "label = 'fault'\nfault-value = [1]\nunknown-value = -999\ngroup = 'unit'\nsince = 2024-05-01\n"
        "until = '2024-05-03'\nexclude-period = ['2024-05-02..2024-05-02 12:00']\n"
    )
    assert main(["detect", "two.csv", *QUICK, "--config", "job.toml", "--json"]) == 0
    summary = json.loads(capfd.readouterr().out)
    assert (summary["rows"], summary["scored"], summary["groups"]) == (800, 654, 2)
    assert main(["fit", "two.csv", *QUICK, "--group", "unit", "-m", "plant.penstock"]) == 0
    assert "Column 'fault' looks like a label and is no input." in capfd.readouterr().out
    assert main(["score", "--model", "plant.penstock", "two.csv", "--top", "5", "--until", "2024-05-01", "--json"]) == 0
    assert json.loads(capfd.readouterr().out)["rows"] == 288
