"""`penstock detect` on files and options that cannot work: one line, exit code 2, and nothing left behind."""

from __future__ import annotations

import gzip
import json
import os
import re
import stat
import time
from collections.abc import Callable
from pathlib import Path

import hostile_tables
import numpy as np
import pandas as pd
import pytest
from detect_tables import left_behind, plant

from penstock.cli import main

TABLES = hostile_tables.hostile()
# They take a second each to read or refuse, and test_tables_hostile.py does that.
SLOW = {"a million columns", "text, then numbers", "numbers, then text", "three thousand columns", "line of 70 MB"}
QUICK = ["--method", "norm"]  # scores a table at once: it is what comes before and after that is tested here
LONGEST = 10.0  # seconds of CPU time, which other processes do not count in


class Run:
    """Runs the command in a folder, and checks what every refusal promises."""

    def __init__(self, folder: Path, capfd: pytest.CaptureFixture[str]) -> None:
        self.folder = folder
        self.capfd = capfd
        self.before: dict[str, str] = {}

    def __call__(self, *arguments: str) -> int:
        self.before = left_behind(self.folder)
        start = time.process_time()
        code = main(list(arguments))
        assert time.process_time() - start < LONGEST
        return code

    def refusal(self, *arguments: str) -> str:
        """The one line that a refused command says."""
        assert self(*arguments) == 2
        return self.said()

    def said(self) -> str:
        shown = self.capfd.readouterr()
        assert shown.out == ""
        assert left_behind(self.folder) == self.before
        assert re.fullmatch(r"penstock: [^\n]+\n", shown.err), shown.err
        assert shown.err.rstrip("\n").isprintable()
        assert "Traceback" not in shown.err
        assert len(shown.err) < 1500
        return shown.err.removeprefix("penstock: ").rstrip("\n")


@pytest.fixture(scope="module")
def warm(tmp_path_factory: pytest.TempPathFactory) -> None:
    """The kernels compiled, whole rows and rows with holes: on a new machine that takes longer than `LONGEST`."""
    folder = tmp_path_factory.mktemp("warm")
    whole = plant(60)
    whole.to_csv(folder / "whole.csv", index=False)
    whole.iloc[::7, 1:3] = None
    whole.to_csv(folder / "holes.csv", index=False)
    for name in ("whole.csv", "holes.csv"):
        main(["detect", str(folder / name), *QUICK, "-o", str(folder / "findings.json")])


@pytest.fixture
def run(warm: None, tmp_path: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Run:
    capfd.readouterr()  # what the warming said
    monkeypatch.chdir(tmp_path)
    return Run(tmp_path, capfd)


@pytest.fixture
def table(tmp_path: Path) -> str:
    plant(60).to_csv(tmp_path / "plant.csv", index=False)
    return "plant.csv"


# All of them go through `read_table` in test_tables_hostile.py; here 40 of all kinds go through the command.
CHOSEN = sorted(TABLES.keys() - SLOW)
CHOSEN = [CHOSEN[place * len(CHOSEN) // 40] for place in range(40)]


@pytest.mark.parametrize("name", CHOSEN)
def test_any_file_is_scored_or_refused_in_one_line(run: Run, name: str) -> None:
    Path("table.csv").write_bytes(TABLES[name]())
    code = run("detect", "table.csv", *QUICK, "-o", "findings.json", "--scores", "scores.jsonl")
    if code == 2:
        run.said()
        return
    assert code == 0
    shown = run.capfd.readouterr()
    assert shown.err == ""
    assert shown.out.replace("\n", "").isprintable()
    assert left_behind(run.folder).keys() - run.before.keys() == {"findings.json", "scores.jsonl"}
    found = json.loads(Path("findings.json").read_text(), parse_constant=pytest.fail)
    scores = [json.loads(line, parse_constant=pytest.fail) for line in Path("scores.jsonl").read_text().splitlines()]
    assert found["summary"]["findings"] == len(found["findings"]) == sum(row["flag"] for row in scores)
    assert found["summary"]["rows"] == len(scores)


# Values of options that cannot be: the refusal names the option as it is typed.
WRONG = {
    "--tpo": ["3"],
    "--top": ["0", "ten"],
    "--threshold": ["0.6", "nan", "peek"],
    "--gap": ["1.5", "-2h"],
    "--fail-on": ["0"],
    "--method": ["nsmf"],
    "--n-components": ["2.5"],
    "--seed": ["-1"],
    "--train-until": ["next week or so", "31.05.2024"],
    "--train-rule": ["head >", "__import__('os').system('touch x')", "(" * 100_000],
    "--mode": ["head >"],
    "--skip-mode": ["idle"],
    "--time": ["tme"],
    "--label": ["falut"],
    "--columns": ["a\nb"],
    "--exclude": ["x" * 200_000, "\x1b[2Jhead"],
    "--timezone": ["Mars/Base", "../../etc/passwd"],
    "--decimal": ["x"],
    "--separator": ["::"],
    "--encoding": ["klingon", "base64"],
    "--max-bytes": ["0"],
    "--units": ["nowhere.csv"],
    "--since": ["soon"],
    "--until": ["5"],
    "--exclude-period": ["May"],
    "--fault-value": ["1"],
    "--group": ["run"],
}
# Others, and what the refusal names.
TOGETHER = {
    ("--top", "3", "--threshold", "auto"): "--threshold",
    ("--threshold", "quantile:rat=1"): "'rat'",
    ("--quiet", "--json"): "--json",
    ("--method", "nsnmf", "-K", "0"): "--n-components",
    ("--method", "nsnmf", "--alpha", "nan"): "--alpha",
    ("--method", "nsnmf", "--similarity", "cosine"): "--similarity",
    ("--method", "nsnmf", "--score", "best"): "--score-kind",
    ("--train-until", "2024-05-01", "--train-rule", "head > 1"): "--train-rule",
    ("--train-until", "1999-01-01"): "nothing to learn from",
    ("--mode", "fault", "--skip-mode", "idle"): "'idle'",
    ("--exclude", '"load [MW]",bearing [°C],=flow,head,fault'): "plant.csv",
    ("--decimal", ",", "--separator", ","): "decimal",
    ("--decimal", ",", "--thousands", ","): "--decimal and --thousands",
    ("--config", "nowhere.toml"): "nowhere.toml",
    ("--config", "plant.csv"): "plant.csv",
    ("--strict", "--keep", "head"): "'fault'",
    ("nowhere.csv",): "nowhere.csv",
    ("./plant.csv",): "plant.csv is named twice",
}


@pytest.mark.parametrize("command", ["detect", "fit", "score", "bench"])
def test_an_unexpected_error_in_a_file_is_one_line(run: Run, table: str, command: str) -> None:
    """As pyarrow's for notes of pandas that are damaged."""
    import pyarrow as pa
    from pyarrow import parquet

    notes = pa.table({"a": [1.0, 2.0], "label": [0, 1]}).replace_schema_metadata({b"pandas": b"{}"})
    parquet.write_table(notes, "bad.parquet")
    assert run("fit", table, *QUICK, "-m", "model", "-q") == 0
    given = {
        "fit": ["bad.parquet", "-m", "new"],
        "score": ["--model", "model", "bad.parquet"],
        "bench": ["--data", "bad.parquet"],
    }
    assert "bad.parquet is damaged" in run.refusal(command, *given.get(command, ["bad.parquet"]))


@pytest.mark.parametrize(
    ("option", "content"),
    [
        ("--config", b"top = " + b"[" * 100_000),
        ("--config", b"\xff\xfe"),
        ("--units", bytes(range(256))),
        ("--units", b'name,unit\n"a'),
        ("--units", b""),
    ],
)
def test_damaged_other_files(run: Run, table: str, option: str, content: bytes) -> None:
    Path("other").write_bytes(content)
    assert "other" in run.refusal("detect", table, *QUICK, option, "other")


@pytest.mark.parametrize(
    ("options", "named"),
    [*(((f"{option}={value}",), option) for option, values in WRONG.items() for value in values), *TOGETHER.items()],
    ids=lambda part: f"{part!r:.60}",
)
def test_wrong_options(run: Run, table: str, options: tuple[str, ...], named: str) -> None:
    assert named in run.refusal("detect", table, *QUICK, "-o", "findings.csv", *options)


OUTPUTS: dict[str, tuple[list[str], str]] = {
    "findings of another kind": (["-o", "findings.ods"], "--output"),
    "findings without ending": (["-o", "findings"], "--output"),
    "scores of another kind": (["--scores", "scores.json"], "scores.json"),
    "report of another kind": (["--report", "report.pdf"], "--report"),
    "findings there": (["-o", "old.csv"], "--overwrite"),
    "scores there": (["--scores", "old.csv"], "--scores"),
    "report there": (["--report", "old.html"], "--report"),
    "a link to one there": (["-o", "link.csv"], "--output"),
    "a link to nothing": (["-o", "broken.csv"], "--output"),
    "a link to itself": (["-o", "loop.csv"], "loop.csv"),
    "report is a folder": (["--report", "folder.html"], "--report"),
    "folder with overwrite": (["-o", "folder.csv", "--overwrite"], "--output"),
    "a pipe": (["-o", "pipe.csv", "--overwrite"], "--output"),
    "a device": (["-o", "full.csv", "--overwrite"], "--output"),
    "no folder": (["-o", "nowhere/findings.csv"], "--output"),
    "below a file": (["-o", "plant.csv/findings.csv"], "plant.csv/findings.csv"),
    "no files here": (["-o", "/proc/findings.csv"], "/proc/findings.csv"),
    "empty name": (["-o", ""], "--output"),
    "a name too long": (["-o", "x" * 300 + ".csv"], "xxx"),
    "NUL in the name": (["-o", "a\0b.csv"], "embedded null"),
    "the same twice": (["-o", "new.csv", "--scores", "new.csv"], "--scores"),
    "the same twice, otherwise": (["-o", "new.csv", "--scores", "./folder.csv/../new.csv"], "--output"),
    "the input": (["-o", "plant.csv", "--overwrite"], "--output"),
    "the input by a link": (["--scores", "input.csv", "--overwrite"], "--scores"),
    "the input by another name": (["-o", "hard.csv", "--overwrite"], "--output"),
    "the units": (["-o", "units.csv", "--units", "units.csv", "--overwrite"], "units.csv"),
}  # fmt: skip


@pytest.mark.parametrize("name", OUTPUTS)
def test_outputs_that_cannot_be(run: Run, table: str, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for old in ("old.csv", "old.html"):
        Path(old).write_text("precious")
    for folder in ("folder.csv", "folder.html"):
        Path(folder).mkdir()
    Path("units.csv").write_text("name,unit\nhead,m\n")
    for link, target in {"link": "old", "broken": "gone", "loop": "loop", "input": "plant"}.items():
        Path(f"{link}.csv").symlink_to(f"{target}.csv")
    Path("hard.csv").hardlink_to("plant.csv")
    Path("full.csv").symlink_to("/dev/full")
    os.mkfifo("pipe.csv")
    monkeypatch.setattr("penstock.io.read.read_files", lambda *_: pytest.fail("it began to read"))
    options, message = OUTPUTS[name]
    assert message in run.refusal("detect", table, *QUICK, *options)


@pytest.mark.parametrize("name", ["missing", "parent missing", "empty folder", "folder of pictures", "pipe", "device"])
def test_sources_that_are_none(run: Run, name: str) -> None:
    Path("empty").mkdir()
    Path("pictures").mkdir()
    Path("pictures/plant.png").write_bytes(b"\x89PNG")
    os.mkfifo("pipe.csv")
    sources = {"missing": "plant.csv", "parent missing": "no/plant.csv", "empty folder": "empty"}
    sources |= {"folder of pictures": "pictures", "pipe": "pipe.csv", "device": "/dev/zero"}
    assert sources[name] in run.refusal("detect", sources[name], *QUICK, "-o", "findings.csv")


@pytest.mark.skipif(os.geteuid() == 0, reason="nothing is forbidden to root")
@pytest.mark.parametrize("which", ["input", "folder"])
def test_without_permission(run: Run, table: str, which: str) -> None:
    Path("locked").mkdir()
    Path("locked" if which == "folder" else table).chmod(0)
    assert "" in run.refusal("detect", table, *QUICK, "-o", "locked/findings.csv" if which == "folder" else "new.csv")
    Path("locked").chmod(stat.S_IRWXU)


def sparse(head: bytes, size: int) -> Callable[[Path], None]:
    def make(path: Path) -> None:
        with path.open("wb") as file:
            file.write(head)
            file.truncate(size)

    return make


HUGE: dict[str, Callable[[Path], None]] = {
    "10 GB of nothing": sparse(b"", 10 * 2**30),
    "a line of 10 GB": sparse(b"time,flow\n2024-01-01,1\n2024-01-02,2", 10 * 2**30),
    "a gzip of 1 GB in one line": lambda path: path.write_bytes(gzip_bomb(2**30)) and None,
}


def gzip_bomb(size: int) -> bytes:
    """So many bytes of the digit 1, packed; made of equal members, as packing them all would take long."""
    member = gzip.compress(b"1" * 2**24, 9)
    return gzip.compress(b"time,flow\n2024-01-01,") + member * (size // 2**24)


@pytest.mark.parametrize("name", HUGE)
def test_huge_files_are_refused_without_reading_them_all(run: Run, name: str) -> None:
    HUGE[name](Path("table.csv"))
    run.refusal("detect", "table.csv", *QUICK, "-o", "findings.csv")


def test_a_full_disk_leaves_nothing(run: Run, table: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(descriptor: int) -> None:
        raise OSError(28, os.strerror(28))

    monkeypatch.setattr(os, "fsync", full)
    said = run.refusal("detect", table, *QUICK, "-o", "findings.csv", "--scores", "scores.csv")
    assert said == "findings.csv could not be written: No space left on device."


def test_a_small_disk(run: Run, table: str, capfd: pytest.CaptureFixture[str]) -> None:
    """The limit of a file's size stands for a small disk: a file system of our own would need root."""
    import resource
    import signal

    before, handler = resource.getrlimit(resource.RLIMIT_FSIZE), signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (2000, before[1]))
    try:
        said = run.refusal("detect", table, *QUICK, "--scores", "scores.csv")
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
        signal.signal(signal.SIGXFSZ, handler)
    assert said == "scores.csv could not be written: File too large."


MODELS: dict[str, tuple[list[str], str]] = {
    "no model": (["score", "--model", "nowhere.model", "plant.csv"], "nowhere.model"),
    "a table as model": (["score", "--model", "plant.csv", "plant.csv"], "not a file saved by penstock"),
    "a folder as model": (["score", "--model", ".", "plant.csv"], "."),
    "the model alone": (["score", "--model", "plant.csv"], "Missing argument 'SOURCE'"),
    "fit without model": (["fit", "plant.csv"], "Missing option '--model'"),
    "the input as model": (["fit", "plant.csv", "-m", "plant.csv", "--overwrite"], "is read by this very command"),
    "model there": (["fit", "plant.csv", "-m", "old.model"], "--model: old.model exists already."),
    "no folder for the model": (["fit", "plant.csv", "-m", "no/m"], "there is no folder"),
    "nothing to fit": (["fit", "nowhere.csv", "-m", "m"], "There is no file nowhere.csv"),
}


@pytest.mark.parametrize("name", MODELS)
def test_models_that_cannot_be(run: Run, table: str, name: str) -> None:
    Path("old.model").write_text("precious")
    arguments, message = MODELS[name]
    assert message in run.refusal(*arguments)


CONFIGURATIONS: dict[str, tuple[str, str]] = {
    "unknown key": ("tpo = 3", "detect.toml: unknown key 'tpo'"),
    "far from any key": ("zzz = 3", "detect.toml: unknown key 'zzz'"),
    "wrong type": ('top = "ten"', "detect.toml: top"),
    "wrong value": ("top = 0", "detect.toml: top"),
    "modes that are none": ("mode = [true]", "detect.toml: mode"),
    "a file that is a number": ("output = 3", "detect.toml: output"),
    "wrong threshold": ('threshold = "peek"', "detect.toml: threshold"),
    "NUL in a path": ('output = "a\\u0000b.csv"', "embedded null"),
    "not TOML": ("top =", "detect.toml: not TOML"),
    "the configuration as output": ('output = "detect.toml"', "detect.toml"),
}


@pytest.mark.parametrize("name", CONFIGURATIONS)
def test_configurations_that_cannot_be(run: Run, table: str, name: str) -> None:
    text, message = CONFIGURATIONS[name]
    Path("detect.toml").write_text(text)
    assert message in run.refusal("detect", table, *QUICK, "--config", "detect.toml")


def table_in_time(n: int = 600) -> pd.DataFrame:
    """Five sensors that follow two causes, every ten minutes; the oil is hot from row 400 to 419."""
    rng, mixing = np.random.default_rng(0), np.random.default_rng(9).normal(size=(2, 5))
    values = np.cumsum(rng.normal(size=(n, 2)), axis=0) * 0.1 @ mixing + 0.05 * rng.normal(size=(n, 5))
    table = pd.DataFrame(values.round(4), columns=["load", "flow", "head", "oil", "gate"])
    table.loc[400:419, "oil"] += 2
    table.insert(0, "time", pd.date_range("2024-05-01", periods=n, freq="10min"))
    return table


def clock_jumps_back(table: pd.DataFrame) -> None:
    table.loc[300:, "time"] -= pd.Timedelta("5h")


def duplicate_stamps(table: pd.DataFrame) -> None:
    table["time"] = table["time"].iloc[np.arange(600) // 20 * 20 + np.maximum(np.arange(600) % 20, 2)].to_numpy()


def uneven_sampling(table: pd.DataFrame) -> None:
    seconds = np.cumsum(np.random.default_rng(0).integers(200, 1500, size=600))
    table["time"] = pd.Timestamp("2024-05-01") + pd.to_timedelta(seconds, unit="s")


def times_missing(table: pd.DataFrame) -> None:
    table["time"] = table["time"].astype(str).where(~table.index.isin([5, 9]), "yesterday")


def sensor_dies(table: pd.DataFrame) -> None:
    table.loc[350:, "flow"] = np.nan


def sensor_added(table: pd.DataFrame) -> None:
    table.loc[:350, "flow"] = np.nan


def day_of_nan(table: pd.DataFrame) -> None:
    table.iloc[200:344, 1:] = np.nan


def one_constant(table: pd.DataFrame) -> None:
    table["gate"] = 0.1


@pytest.mark.parametrize(
    ("spoil", "said"),
    [
        (clock_jumps_back, "The rows were sorted by time: 1 step went backwards"),
        (duplicate_stamps, "The time stamp of 60 rows is that of the row before; all rows are kept"),
        (uneven_sampling, "distances differ from that by more than a tenth"),
        (times_missing, "2 rows without a time stamp that can be read left out"),
        (sensor_dies, "Of 3,000 values in columns of numbers 250 are missing"),
        (sensor_added, "Of 3,000 values in columns of numbers 351 are missing"),
        (day_of_nan, "144 rows without any reading cannot be scored"),
        (one_constant, "1 column was left out (gate: It never changes"),
    ],
)
def test_a_series_with_faulty_clocks_and_sensors_is_scored_with_a_note(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], spoil: Callable[[pd.DataFrame], None], said: str
) -> None:
    table = table_in_time()
    spoil(table)
    table.to_csv(tmp_path / "plant.csv", index=False)
    assert main(["detect", str(tmp_path / "plant.csv"), "--output", str(tmp_path / "findings.csv")]) == 0
    shown = capsys.readouterr().out
    assert "scored by SensorDetector" in shown
    assert said in " ".join(shown.split())
    findings = pd.read_csv(tmp_path / "findings.csv").sort_values("score", ascending=False)
    hot = pd.to_datetime(table["time"][400:420], errors="coerce")
    assert pd.to_datetime(findings["time"].head(5)).isin(hot).mean() >= 0.8


def test_series_of_which_nothing_can_be_said(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    constant = table_in_time()
    constant.iloc[:, 1:] = 3.3
    for table, message in [
        (constant, "no column that can be an input ('load': It never changes"),
        (table_in_time()[:2], "There are too few rows to learn from: 10 are needed, plant.csv has 2"),
        (table_in_time()[:1], "plant.csv has a single row"),
    ]:
        table.to_csv(tmp_path / "plant.csv", index=False)
        assert main(["detect", str(tmp_path / "plant.csv")]) == 2
        assert message in " ".join(capsys.readouterr().err.split())
