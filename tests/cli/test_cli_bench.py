"""`penstock bench`, its report and its settings."""

from __future__ import annotations

import contextlib
import io
import re
import sys
import tomllib
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from bench_detectors import write_data, write_module

from penstock.bench import Results, write_report
from penstock.bench.results import RowsFile, frame_of
from penstock.cli import main

NO_RUN = ["--config", "healthy.toml", "--method", "KNNDistance"]  # nothing to find: no cell is run


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))  # the command puts the folder there
    (tmp_path / "healthy.csv").write_text("flow,label\n1,0\n2,0\n4,0\n")
    (tmp_path / "healthy.toml").write_text("datasets = ['healthy.csv']\n[[method]]\nname = 'k'\ndetector = 'NMF'\n")
    return tmp_path


@pytest.fixture(scope="module")
def study(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str]:
    """A small study of two files with a detector of the user's own, run by the command; its folder and its output."""
    folder = tmp_path_factory.mktemp("bench")
    write_module(folder, "mine")
    write_data(folder / "pump.csv", seed=1)
    write_data(folder / "valve.csv", seed=2)
    (folder / "my.toml").write_text(
        "title = 'Pumps'\ndatasets = ['pump.csv', 'valve.csv', 'gone.csv']\nseeds = 2\n"
        "[[method]]\nname = 'mine'\ndetector = 'mine.Noted'\n"
        "[[method]]\nname = 'near'\ndetector = 'KNNDistance'\n"
        "[[method]]\nname = 'far'\ndetector = 'MeanDistance'\n"
    )
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        patch.setattr(sys, "path", list(sys.path))
        output = run_and_read(["bench", "--config", "my.toml", "--folder", "out", "--jobs", "1"])
    sys.modules.pop("mine", None)
    return folder, output


def run_and_read(arguments: list[str]) -> str:
    """The command's standard output, also in a fixture that is shared."""
    output = io.StringIO()
    with contextlib.redirect_stdout(output):
        assert main(arguments) == 0
    return output.getvalue()


def complaint(capfd: pytest.CaptureFixture[str], arguments: list[str], code: int = 2) -> str:
    """The one line that a wrong use is answered with."""
    assert main(arguments) == code
    output, errors = capfd.readouterr()
    assert output == ""
    assert re.fullmatch(r"penstock: [^\n]*\n", errors), errors
    return errors


def test_tables_are_printed_and_nothing_is_run_twice(study: tuple[Path, str], monkeypatch: pytest.MonkeyPatch) -> None:
    folder, output = study
    assert re.search(
        r"^(mine|near|far) has the highest average precision, 0\.\d+ \(95 % interval", output, re.MULTILINE
    )
    assert "These are few: take the intervals as a hint" in output
    assert "pump: 40 rows of 3 inputs, 5 anomalous" in output
    for method in ("mine", "near", "far"):
        assert re.search(rf"^{method} +2 +[01]\.\d\d\d", output, re.MULTILINE), output
    assert "4 cells without result:" in output
    assert output.count("There is no file gone.csv") == 1  # once for all methods
    assert "Report: out/study.html" in output
    monkeypatch.chdir(folder)
    fits = (folder / "fits.txt").read_text()
    assert len(fits.splitlines()) == 4
    assert run_and_read(["bench", "--config", "my.toml", "--folder", "out"]) == output
    assert (folder / "fits.txt").read_text() == fits
    assert run_and_read(["bench", "--config", "my.toml", "--folder", "out", "--quiet"]) == ""


def test_methods_by_name_and_by_path_on_a_file(here: Path, capfd: pytest.CaptureFixture[str]) -> None:
    write_data(here / "mine.csv")
    methods = ["NormScore", "Detector", "sklearn.ensemble.IsolationForest"]
    named = [word for method in methods for word in ("--method", method)]
    assert main(["bench", "--data", "mine.csv", *named, "--seeds", "1", "--jobs", "1"]) == 0
    output, errors = capfd.readouterr()
    for method in ("NormScore", "Detector", "IsolationForest"):
        assert re.search(rf"^{method} +[01]\.\d\d\d +[01]\.\d\d\d to ", output, re.MULTILINE), output
    assert errors == ""  # no bar in a pipe
    text = (here / "study" / "study.html").read_text()
    assert "Study of mine.csv" in text
    assert "Ahmed" not in text


def series(folder: Path) -> None:
    """600 rows of four sensors that follow each other; in three faults one of them does not."""
    rng = np.random.default_rng(0)
    X = np.cumsum(rng.normal(size=600))[:, None] + 0.1 * rng.normal(size=(600, 4))
    table = pd.DataFrame(X, columns=list("abcd")).assign(fault=0, why="")
    for begin in (200, 350, 500):
        rows = slice(begin, begin + 11)
        table.loc[rows, "c"] += 1.5
        table.loc[rows, ["fault", "why"]] = [1, "c"]
    table.loc[5, "d"] = np.nan
    table.insert(0, "time", pd.date_range("2024-05-01", periods=600, freq="10min"))
    table.to_csv(folder / "series.csv", index=False)


@pytest.mark.parametrize("fitted", [False, True])
def test_a_series_has_events_and_the_sensor_detector(
    here: Path, capfd: pytest.CaptureFixture[str], fitted: bool
) -> None:
    series(here)
    until = ["--train-until", "2024-05-01 23:50"] if fitted else []
    assert main(["bench", "--data", "series.csv::fault", "--cause", "why", "--seeds", "1", "--jobs", "1", *until]) == 0
    output = capfd.readouterr().out
    assert output.splitlines()[0] == "series: 600 rows of 4 inputs, 36 anomalous"
    assert "1 value missing" in output
    assert ("fitted to 144 rows and measured on the 456 later ones" in output) == fitted
    assert re.search(r"^SensorDetector has the highest average precision", output, re.MULTILINE), output
    found = next(line for line in output.splitlines() if re.match(r"SensorDetector .*\d of \d", line))
    assert "3 of 3" in found
    assert found.endswith("100 / 100 %")
    assert "A true sensor is named first in 100 % of the faults found" in output
    page = (here / "study" / "study.html").read_text()
    assert page.count("<svg") == 2
    assert page.index("SensorDetector has the highest") < page.index("<svg")
    assert "Ahmed" not in page
    assert 'class="hit"' in page


def test_what_reading_assumed_and_what_is_fitted_to_is_said(here: Path) -> None:
    times = pd.date_range("2024-05-01", periods=40, freq="h").astype(str).tolist()
    flows = [str(row % 7) for row in range(40)]
    flows[9], times[12] = "broken", times[11]
    faults = [int(row in (4, 25, 26)) for row in range(40)]
    lines = [
        f"{when},{flow},{row % 5},{y}" for row, (when, flow, y) in enumerate(zip(times, flows, faults, strict=True))
    ]
    (here / "said.csv").write_text("\n".join(["w,flow,head,fault", *lines, ""]))
    until = ["--method", "KNNDistance", "--train-until", "20", "--jobs", "1"]
    output = run_and_read(["bench", "--data", "said.csv::fault", *until])
    for words in (
        "said: Column 'w' is taken as the time.",
        "'broken'",
        "said: The time stamp of 1 row is that of the row before; all rows are kept.",
        "fitted to 20 rows, 1 of them anomalous, and measured on the 20 later ones",
        "KNNDistance is the only method with a result: there is nothing to compare it with.",
    ):
        assert words in output, output
    assert "Column 'w' is taken as the time." in (here / "study" / "study.html").read_text().replace("&#39;", "'")


def test_no_sensor_detector_without_time_and_the_intervals_of_one_table(here: Path) -> None:
    write_data(here / "mine.csv", n=60)
    output = run_and_read(["bench", "--data", "mine.csv", "--seeds", "1", "--jobs", "1"])
    methods = [line.split()[0] for line in output.splitlines() if re.search(r"\d\.\d{3} to \d\.\d{3} ", line)]
    assert sorted(methods) == ["Detector", "IForest", "KNN", "NS-NMF", "PCA"]
    assert "Intervals are of 5 anomalies drawn with replacement" in output


def test_a_study_without_any_result_says_why(here: Path, capfd: pytest.CaptureFixture[str]) -> None:
    assert main(["bench", *NO_RUN]) == 1
    output = capfd.readouterr().out
    assert "1 cell without result:" in output
    assert "Data set healthy has no anomaly" in output
    assert {path.name for path in (here / "study").iterdir()} == {"plan.json", "rows.jsonl", "run.json", "study.toml"}
    (here / "study" / "rows.jsonl").unlink()
    assert main(["bench", "report"]) == 0
    assert "study.html" in capfd.readouterr().out


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ([], "needs labelled data: --data FILE or FILE::LABEL"),
        ([], "'penstock bench settings' prints an example"),
        (["--data", "healthy.csv", "--time", "when"], "no column 'when' (given as --time)"),
        (["--data", "healthy.csv", "--group", "run"], "no column 'run' (given as --group)"),
        (
            ["--data", "healthy.csv", "--train-until", "2024"],
            "--data healthy.csv: --train-until: there is no row to score after",
        ),
        (
            ["--data", "healthy.csv", "--train-until", "2024-05"],
            "--data healthy.csv: --train-until: healthy.csv has no time",
        ),
        (["--data", "healthy.csv::flow"], "healthy has nothing but anomalies: there is nothing"),
        (["--data", "healthy.csv", "--method", "NMFF"], "there is no 'NMFF' in the study. Did you mean 'NMF'?"),
        (["--data", "missing.csv"], "--data missing.csv: There is no file missing.csv"),
        (["--data", "healthy.csv::falt"], "falt"),
        (
            ["--data", "healthy.csv"],
            "healthy has no anomaly: there is nothing to tell apart. Write 1 in the label column",
        ),
        (["--data", "ill.csv"], "ill has nothing but anomalies: there is nothing to tell apart"),
        (
            ["--data", "early.csv::label::why", "--train-until", "2"],
            "early has no anomaly after the rows that are fitted to",
        ),
        (["--data", "early.csv::label::flow", "--cause", "why"], "--cause: early.csv has no time stamps"),
        (["--data", "early.csv::label::why", "--method", "sklearn.svm.SVMM"], "module sklearn.svm has no 'SVMM'"),
        (["--seeds", "0"], "--seeds"),
        (["--data", "healthy.csv", "--time-limit", "inf"], "time_limit must be"),
        (["--colour", "red"], "--colour"),
        (["nonsense"], "nonsense"),
        (["--config", "none.toml"], "none.toml: No such file or directory"),
        (["--config", "bad.toml"], "bad.toml: not TOML"),
        (["--config", "latin.toml"], "latin.toml: not a text in UTF-8"),
        (["--config", "empty.toml"], "empty.toml: there are no data sets"),
        (["report", "nowhere"], "There is no study in nowhere"),
    ],
)
def test_a_wrong_use_is_one_line(
    here: Path, capfd: pytest.CaptureFixture[str], arguments: list[str], words: str
) -> None:
    (here / "ill.csv").write_text("flow,label\n1,1\n2,1\n")
    (here / "early.csv").write_text("flow,head,why,label\n1,5,,0\n2,6,head,1\n4,7,,0\n5,5,,0\n")
    (here / "bad.toml").write_text("title =")
    (here / "empty.toml").write_text("[[method]]\nname = 'x'\ndetector = 'NMF'\n")
    (here / "latin.toml").write_bytes("title = 'Zürich'".encode("latin-1"))
    assert words in complaint(capfd, ["bench", *arguments])
    assert not (here / "study").exists()


def test_a_folder_that_is_in_use_or_damaged(here: Path, capfd: pytest.CaptureFixture[str]) -> None:
    with RowsFile(here / "study"):
        assert "in use by another study" in complaint(capfd, ["bench", *NO_RUN], code=1)
    (here / "study" / "rows.jsonl").write_text("{}\n")
    assert "rows.jsonl, line 1: not the outcome of a cell" in complaint(capfd, ["bench", *NO_RUN])


def test_settings_can_be_printed_and_run(here: Path, capfd: pytest.CaptureFixture[str]) -> None:
    assert main(["bench", "settings"]) == 0
    text = capfd.readouterr().out
    assert {"title", "datasets", "seeds", "method"} <= tomllib.loads(text).keys()
    copy = text.replace("plant.csv::fault", "healthy.csv")
    (here / "copy.toml").write_text(copy)
    assert main(["bench", "--config", "copy.toml"]) == 1
    assert (here / "study" / "study.toml").read_text() == copy


def test_a_report_is_written(study: tuple[Path, str], here: Path, capfd: pytest.CaptureFixture[str]) -> None:
    folder = study[0] / "out"
    (folder / "study.html").unlink()
    assert main(["bench", "report", str(folder)]) == 0
    assert capfd.readouterr().out.rstrip().endswith("study.html")
    page = (folder / "study.html").read_text()
    for words in ("mine", "near", "far", "Pumps", "Ranks and tests", "There is no file gone.csv"):
        assert words in page
    assert "<script" not in page
    assert main(["bench", "report", str(folder), "--quiet"]) == 0
    assert capfd.readouterr() == ("", "")


def test_names_in_a_report_are_shown_and_not_obeyed(here: Path) -> None:
    name = "<img src=x onerror=alert(1)>|`**\n# [a](http://evil.example) \u202e\x00'\""
    cell = {"method": name, "dataset": name, "seed": 0, "n": 9, "p": 2, "n_anomalies": 1, "key": "k"}
    outcome = {"k": {"status": "failed", "why": name}}
    rows = frame_of([cell], outcome)
    page = write_report(Results(rows, title=name, machine=name, settings_text=f"```\n{name}\n</code><script>"), here)
    shown = page.read_text(encoding="utf-8")
    assert "<img" not in shown
    assert "<script" not in shown
    assert "&lt;img src=x onerror=alert(1)&gt;" in shown
    assert "\u202e" not in shown.split("<pre")[0]
