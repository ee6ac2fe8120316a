"""`penstock bench` and what goes with it."""

from __future__ import annotations

import contextlib
import io
import json
import re
import sys
import tomllib
from pathlib import Path

import pytest
from bench_detectors import write_data, write_module
from loopback import archive, arff, serving

from penstock.cli import main
from studies.ahmed2021 import datasets

NO_RUN = ["--data", "healthy.csv", "--method", "Norm", "--part", "controls"]  # nothing to find: no cell is run


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder to be in, no data but what is there, and no proxy between this machine and itself."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))  # the command puts the folder there
    monkeypatch.setenv("PENSTOCK_CACHE", str(tmp_path / "cache"))
    monkeypatch.delenv("PENSTOCK_DATA", raising=False)
    for name in ("http_proxy", "https_proxy", "all_proxy", "HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY"):
        monkeypatch.delenv(name, raising=False)
    (tmp_path / "healthy.csv").write_text("flow,label\n1,0\n2,0\n4,0\n")
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


def test_tables_are_printed(study: tuple[Path, str]) -> None:
    _, output = study
    assert "Means over the data sets of the medians over seeds; ranks by P@N, 1 is best" in output
    assert "pump: 40 rows of 3 inputs, 5 anomalous" in output
    for method in ("mine", "near", "far"):
        assert re.search(rf"^{method} +2 +[01]\.\d\d\d", output, re.MULTILINE), output
    assert "4 cells without result:" in output
    assert output.count("There is no file gone.csv") == 1  # once for all methods
    assert "penstock bench report out" in output


def test_what_is_done_is_not_done_again(study: tuple[Path, str], monkeypatch: pytest.MonkeyPatch) -> None:
    folder, output = study
    monkeypatch.chdir(folder)
    fits = (folder / "fits.txt").read_text()
    assert len(fits.splitlines()) == 4
    assert run_and_read(["bench", "--config", "my.toml", "--folder", "out"]) == output
    assert (folder / "fits.txt").read_text() == fits


def test_quiet_is_quiet(study: tuple[Path, str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(study[0])
    assert run_and_read(["bench", "--config", "my.toml", "--folder", "out", "--quiet"]) == ""


def test_the_papers_methods_on_a_file(here: Path, capfd: pytest.CaptureFixture[str]) -> None:
    write_data(here / "mine.csv")
    arguments = ["bench", "--data", "mine.csv", "--method", "Norm", "--method", "5th neighbour", "--jobs", "1"]
    assert main([*arguments, "--folder", "out"]) == 0
    output, errors = capfd.readouterr()
    assert re.search(r"^Norm +1 ", output, re.MULTILINE)
    assert re.search(r"^5th neighbour +1 ", output, re.MULTILINE)
    assert errors == ""  # no bar in a pipe
    assert len((here / "out" / "rows.jsonl").read_text().splitlines()) == 2


def test_a_study_of_an_own_file_is_not_the_papers(here: Path, capfd: pytest.CaptureFixture[str]) -> None:
    write_data(here / "mine.csv")
    assert main(["bench", "--data", "mine.csv", "--method", "Detector", "--method", "Norm", "--jobs", "1"]) == 0
    assert re.search(r"^Detector +1 ", capfd.readouterr().out, re.MULTILINE)
    assert main(["bench", "report", "--quiet"]) == 0
    for name in ("study.html", "reproduction.md"):
        text = (here / "study" / name).read_text()
        assert "Study of mine.csv" in text
        assert "Detector" in text
        for word in ("Ahmed", "ALOI", "Glass", "paper's", "offline"):
            assert word not in text, word
    assert "run `penstock bench --method Detector --method Norm --data mine.csv --folder study`" in text


def test_a_study_without_any_result_says_why(here: Path, capfd: pytest.CaptureFixture[str]) -> None:
    assert main(["bench", *NO_RUN]) == 1
    output = capfd.readouterr().out
    assert "1 cell without result:" in output
    assert "Data set healthy has no anomaly" in output
    assert {path.name for path in (here / "study").iterdir()} == {"plan.json", "rows.jsonl", "run.json", "study.toml"}


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--method", "NMFF"], "no method 'NMFF' in the study. Did you mean 'NMF'?"),
        (["--method", "detector"], "no method 'detector' in the study. Did you mean 'Detector'?"),
        (["--part", "papre"], "no part 'papre' in the study. Did you mean 'paper'?"),
        (["--part", "paper", "--method", "LoMST"], "Nothing is left"),
        (["--data", "missing.csv"], "--data missing.csv: There is no file missing.csv"),
        (["--data", "healthy.csv::falt"], "falt"),
        (["--seeds", "0"], "--seeds"),
        (["--jobs", "none"], "--jobs"),
        (["--time-limit", "0"], "--time-limit"),
        (["--time-limit", "inf"], "time_limit must be"),
        (["--time-limit", "nan"], "--time-limit"),
        (["--colour", "red"], "--colour"),
        (["nonsense"], "nonsense"),
        (["--config", "none.toml"], "none.toml: No such file or directory"),
        (["--config", "."], "Is a directory"),
        (["--config", "bad.toml"], "bad.toml: not TOML"),
        (["--config", "latin.toml"], "latin.toml: not a text in UTF-8"),
        (["--config", "key.toml"], "key.toml: unknown key 'tittle'. Did you mean 'title'?"),
        (["report", "nowhere"], "There is no study in nowhere"),
        (["datasets", "Glas"], "There is no data set 'Glas'"),
    ],
)
def test_a_wrong_use_is_one_line(
    here: Path, capfd: pytest.CaptureFixture[str], arguments: list[str], words: str
) -> None:
    (here / "bad.toml").write_text("title =")
    (here / "key.toml").write_text("tittle = 'x'")
    (here / "latin.toml").write_bytes("title = 'Zürich'".encode("latin-1"))
    assert words in complaint(capfd, ["bench", *arguments])
    assert not (here / "study").exists()


def test_a_folder_that_is_in_use(here: Path, capfd: pytest.CaptureFixture[str]) -> None:
    from penstock.bench.results import RowsFile

    with RowsFile(here / "study"):
        assert "in use by another study" in complaint(capfd, ["bench", *NO_RUN], code=1)


def test_a_damaged_file_of_rows(here: Path, capfd: pytest.CaptureFixture[str]) -> None:
    (here / "study").mkdir()
    (here / "study" / "rows.jsonl").write_text("{}\n")
    assert "rows.jsonl, line 1: not the outcome of a cell" in complaint(capfd, ["bench", *NO_RUN])
    assert main(["bench", *NO_RUN, "--folder", "other"]) == 1
    (here / "other" / "rows.jsonl").write_text("{}\n")
    capfd.readouterr()
    assert "rows.jsonl, line 1" in complaint(capfd, ["bench", "report", "other"])


def test_settings_can_be_printed_and_run(here: Path, capfd: pytest.CaptureFixture[str]) -> None:
    assert main(["bench", "settings"]) == 0
    text = capfd.readouterr().out
    assert {"title", "datasets", "seeds", "method", "sweep", "grid"} <= tomllib.loads(text).keys()
    (here / "copy.toml").write_text(text)
    assert main(["bench", "--config", "copy.toml", *NO_RUN]) == 1
    assert json.loads((here / "study" / "plan.json").read_text())["title"] == "Study of healthy.csv"
    assert (here / "study" / "study.toml").read_text() == text


def test_the_data_sets_are_listed(capfd: pytest.CaptureFixture[str]) -> None:
    assert main(["bench", "datasets"]) == 0
    lines = capfd.readouterr().out.splitlines()
    listed = [line.split()[0] for line in lines[1:] if not line.startswith(" ")]
    assert listed == datasets.names()
    assert len(listed) == 20
    assert sum(line.endswith(" no") for line in lines) == 20
    assert main(["bench", "datasets", "Pima"]) == 0
    assert capfd.readouterr().out.splitlines()[1].split()[0] == "Pima"


def test_data_sets_are_fetched(here: Path, capfd: pytest.CaptureFixture[str]) -> None:
    member = "Parkinson/Parkinson_withoutdupl_norm_10_v01.arff"
    with serving() as server:
        server.files["Parkinson.tar.gz"] = archive({member: arff(53, 22, 5)})
        arguments = ["bench", "datasets", "Parkinson", "--download", "--home", server.home]
        assert main(arguments) == 0
        assert re.search(r"^Parkinson .* yes$", capfd.readouterr().out, re.MULTILINE)
        assert main(arguments) == 0  # which is there
        assert len(server.requests) == 1
        capfd.readouterr()
        assert "WBC" in complaint(capfd, ["bench", "datasets", "WBC", "--download", "--home", server.home], code=1)
    assert (here / "cache" / "dami" / "Parkinson.csv.gz").exists()
    assert "file:" in complaint(capfd, ["bench", "datasets", "WBC", "--download", "--home", "file:///tmp/"], code=1)


def test_a_report_is_written(study: tuple[Path, str], here: Path, capfd: pytest.CaptureFixture[str]) -> None:
    folder = study[0] / "out"
    assert main(["bench", "report", str(folder)]) == 0
    written = capfd.readouterr().out.split()
    assert [Path(path).name for path in written if path != "Written:"] == ["study.html", "reproduction.md"]
    page, tables = (folder / "study.html").read_text(), (folder / "reproduction.md").read_text()
    for method in ("mine", "near", "far"):
        assert method in page
        assert method in tables
    assert "Pumps" in page
    assert "<script" not in page
    assert "add --overwrite" in complaint(capfd, ["bench", "report", str(folder)])
    assert (folder / "study.html").read_text() == page
    elsewhere = ["--markdown", str(here / "tables.md"), "--overwrite", "--quiet"]
    assert main(["bench", "report", str(folder), *elsewhere]) == 0
    assert capfd.readouterr() == ("", "")
    assert (here / "tables.md").exists()


def test_a_report_of_a_study_that_was_not_run(here: Path, capfd: pytest.CaptureFixture[str]) -> None:
    assert main(["bench", *NO_RUN]) == 1
    (here / "study" / "rows.jsonl").unlink()
    assert main(["bench", "report"]) == 0
    assert "study.html" in capfd.readouterr().out
