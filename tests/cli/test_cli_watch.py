"""The command `penstock watch`, in this process where that will do, and as a process of its own where it will not."""

from __future__ import annotations

import json
import os
import pty
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import get_args, get_type_hints

import pytest
from live_tables import a_pipe, as_csv, committed, lines_of, rows
from waiting import wait_for

from penstock import OnlineNSNMF, thresholds
from penstock.cli import main
from penstock.cli._console import StopSignals
from penstock.live import WatchOptions
from penstock.registry import THRESHOLDS, parameter_names, threshold_class

Files = Callable[[str], str]
COMMAND = [sys.executable, "-m", "penstock", "watch"]
QUICK = ["--components", "2", "--warmup", "30"]


@pytest.fixture
def table(tmp_path: Path) -> str:
    (tmp_path / "plant.csv").write_text(as_csv(rows()))
    return str(tmp_path / "plant.csv")


@pytest.fixture
def out(tmp_path: Path) -> Path:
    return tmp_path / "out.jsonl"


def complaint(capfd: pytest.CaptureFixture[str]) -> str:
    """The one line on standard error."""
    lines = capfd.readouterr().err.splitlines()
    assert len(lines) == 1, lines
    assert lines[0].startswith("penstock: ")
    return lines[0].removeprefix("penstock: ")


def test_a_file_to_a_file(table: str, out: Path, capfd: pytest.CaptureFixture[str]) -> None:
    assert main(["watch", table, "-o", str(out), *QUICK]) == 0
    lines = lines_of(out)
    flagged = sum(line["flag"] for line in lines)
    assert complaint(capfd) == f"400 samples, {flagged} flagged, 0 readings missing, 0 lines malformed"
    assert flagged > 0
    assert lines[0] == {
        "row": 1, "time": "t0", "score": None, "threshold": None, "flag": False, "variables": {},
    }  # fmt: skip
    worst = max(lines[30:], key=lambda line: line["score"])
    assert next(iter(worst["variables"])) == "power"
    assert len(worst["variables"]) == 3
    assert main(["watch", table, "-o", str(out)]) == 2
    assert "--overwrite" in complaint(capfd)
    assert main(["watch", str(a_pipe(as_csv(rows(50)) + "t50,,NA,1,1\n")), "-o", str(out), "--overwrite", *QUICK]) == 0
    assert complaint(capfd) == "51 samples, 0 flagged, 2 readings missing, 0 lines malformed"


def test_standard_output_and_quiet(table: str, capfd: pytest.CaptureFixture[str]) -> None:
    assert main(["watch", table, "-q", "--explain", "0", *QUICK]) == 0
    printed = capfd.readouterr()
    assert printed.err == ""
    assert len(printed.out.splitlines()) == 400


def test_every_parameter_of_the_detector_can_be_given(table: str, out: Path, tmp_path: Path) -> None:
    given = {
        "n_components": 3, "alpha": 0.7, "gamma": 0.1, "buffer_size": 12, "similarity": "relative",
        "duplicates": "zero", "max_iter": 20, "tol": 0.01, "forgetting": 0.99, "refresh_every": 2,
        "learn_flagged": False, "scale": None, "warmup": 40, "random_state": 7, "threshold": thresholds.Fixed(0.4),
    }  # fmt: skip
    others = {"accumulate"}  # Algorithm 2 as printed, for the study
    assert set(given) | others == set(OnlineNSNMF().get_params(deep=False))
    options = (
        "--components 3 --alpha 0.7 --gamma 0.1 --buffer-size 12 --similarity relative --duplicates zero --max-iter 20 "
        "--tol 0.01 --forgetting 0.99 --refresh-every 2 --no-learn-flagged --scale none --warmup 40 --seed 7 "
        "--threshold fixed:0.4"
    )
    assert main(["watch", table, "-o", str(out), "-q", *options.split()]) == 0
    expected = OnlineNSNMF(**given).process(rows())  # type: ignore[arg-type]
    assert [line["score"] for line in lines_of(out)[40:]] == expected.scores[40:].tolist()
    assert [line["flag"] for line in lines_of(out)] == expected.flags.tolist()


def test_the_page_has_every_option_with_its_default() -> None:
    page = (Path(__file__).parents[2] / "docs" / "watch.md").read_text()
    parameters = OnlineNSNMF().get_params(deep=False)
    other = {"similarity": "binary", "scale": "minmax", "warmup": "200", "random_state": "0", "threshold": "conformal"}
    for name, hint in get_type_hints(WatchOptions, include_extras=True).items():
        option = get_args(hint)[1]
        flag = next(iter(option.flags.split("/")[0].split()), "INPUT")
        assert f"`{flag}`" in page
        if option.default is not None:
            assert option.default.startswith(other.get(name, str(parameters[name])))
            assert f" | {option.default}" in page
    for name, given in re.findall(r"^\| `([a-z-]+)[:`][^|]* \| (.*?) \|", page, flags=re.MULTILINE):
        if name in [entry.method for entry in THRESHOLDS.values()] and "those" not in given:
            assert re.findall(r"\w+", given) == parameter_names(threshold_class(name))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--componets", "3"], "--componets"),
        (["--components", "three"], "--components"),
        (["--components", "0"], "--components"),
        (["--similarity", "cosine"], "--similarity"),
        (["--components", "50"], "--components"),
        (["--threshold", "peek"], "'peaks'"),
        (["--threshold", "quantile:rat=1"], "'rate'"),
        (["--threshold", "quantile:rate=2"], "rate"),
        (["--threshold", "quantile:rate=0.1,rate=0.2"], "'rate'"),
        (["--threshold", "fixed"], "--threshold"),
        (["--format", "xml"], "--format"),
        (["--delimiter", "::"], "--delimiter"),
        (["--seed", "-1"], "--seed"),
        (["--state", __file__], "a folder is needed"),
        (["--explain", "-1"], "--explain"),
        (["--snapshot-every", "0"], "--snapshot-every"),
        (["--snapshot-seconds", "nan"], "--snapshot-seconds"),
        (["--columns", "flwo"], '"flwo"'),
        (["--model", "nowhere"], "nowhere"),
        (["--model", __file__], "test_cli_watch.py"),
        (["--model", "nowhere", "--alpha", "1"], "--alpha"),
        (["--config", "nowhere.toml"], "nowhere.toml"),
        (["--output", "/nowhere/out.jsonl"], "/nowhere/out.jsonl"),
    ],
)
def test_mistakes_are_answered_in_one_line(
    table: str, capfd: pytest.CaptureFixture[str], arguments: list[str], message: str
) -> None:
    assert main(["watch", table, *arguments]) == 2
    assert message in complaint(capfd)


def test_inputs_that_are_not_there(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    assert main(["watch", str(tmp_path / "no.csv")]) == 2
    assert "no.csv: No such file or directory" in complaint(capfd)
    assert main(["watch", str(tmp_path)]) == 2
    assert "is a folder" in complaint(capfd)
    assert main(["watch", "-", "--follow"]) == 2
    assert "--follow needs a file" in complaint(capfd)
    assert main([]) in (0, 2)
    assert "Usage" in capfd.readouterr().out


def test_malformed_lines_are_reported_and_then_only_counted(
    tmp_path: Path, out: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    bad = "".join(f"t,{number},x,1,1\n" for number in range(50))
    (tmp_path / "bad.csv").write_text(as_csv(rows(100)) + bad)
    assert main(["watch", str(tmp_path / "bad.csv"), "-o", str(out), *QUICK]) == 0
    reports = capfd.readouterr().err.splitlines()
    assert reports[0] == f'penstock: {tmp_path}/bad.csv, line 102: column "head" holds "x", which is not a number'
    more = [line.split(": ")[1] for line in reports[20:22]]
    assert more == [f"{number} more malformed, the last" for number in (1, 29)]
    assert reports[22].endswith("50 lines malformed")
    assert len(reports) == 23


def test_an_input_without_any_good_line_is_an_error(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "bad.csv").write_text("time,state\n1,on\n2,off\n")
    assert main(["watch", str(tmp_path / "bad.csv"), "-q"]) == 2
    assert "No column is left to measure anomalies in" in capfd.readouterr().err
    assert main(["watch", str(tmp_path / "bad.csv"), "-q", "--columns", "state"]) == 2
    last = capfd.readouterr().err.splitlines()[-1]
    assert last == 'penstock: No line could be read: column "state" is text; leave it out with --exclude state'
    (tmp_path / "bad.csv").write_text("time,state\n1,2,3\n")
    assert main(["watch", str(tmp_path / "bad.csv"), "-q"]) == 2
    assert "line 1 has 2 fields, but the lines below have 3" in capfd.readouterr().err


def test_a_column_that_is_mostly_text_is_named(tmp_path: Path, out: Path, capfd: pytest.CaptureFixture[str]) -> None:
    text = "".join(f"t,1,{'' if number == 7 else 'valve/1'}\n" for number in range(9))
    (tmp_path / "bad.csv").write_text('time,flow,"my run, really"\n' + text)
    assert main(["watch", str(tmp_path / "bad.csv"), "-o", str(out), *QUICK]) == 0
    said = 'penstock: Left out, as the first lines hold text there: "my run, really".'
    assert said in capfd.readouterr().err.splitlines()
    assert len(lines_of(out)) == 9
    excluding = ["--exclude", '"my run, really"', "--overwrite"]
    assert main(["watch", str(tmp_path / "bad.csv"), "-o", str(out), *excluding, *QUICK]) == 0
    assert "text" not in capfd.readouterr().err
    assert len(lines_of(out)) == 9


def test_an_input_shorter_than_the_warm_up(tmp_path: Path, out: Path, capfd: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "short.csv").write_text(as_csv(rows(150)))
    common = ["watch", str(tmp_path / "short.csv"), "-o", str(out), "--overwrite"]
    assert main(common) == 0
    assert complaint(capfd).endswith("no scores: all 150 samples went into the warm-up of 200 (--warmup)")
    assert main([*common, "--warmup", "149"]) == 0
    assert "warm-up" not in complaint(capfd)


def test_config(table: str, out: Path, tmp_path: Path) -> None:
    Path(table).write_text(Path(table).read_text().replace("head", '"head,m"', 1))
    config = tmp_path / "watch.toml"
    config.write_text(
        f'input = "{table}"\noutput = "{tmp_path}/ignored"\ncomponents = 2\nwarmup = 30\nalpha = 1\nquiet = true\n'
        f'columns = ["head,m", "flow"]\nlearn-flagged = false\nthreshold = "fixed:0.5"\n'
    )
    assert main(["watch", "--config", str(config), "--output", str(out)]) == 0
    assert not (tmp_path / "ignored").exists()
    lines = lines_of(out)
    assert set(lines[-1]["variables"]) == {"flow", "head,m"}
    assert lines[-1]["threshold"] == 0.5


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("buffer_size = 3", "watch.toml: unknown key 'buffer_size'. Did you mean 'buffer-size'?"),
        ("zzz = 3", "watch.toml: unknown key 'zzz'"),
        ('config = "x"', "watch.toml: unknown key 'config'"),
        ("components = 2.5", "watch.toml: components"),
        ("components = true", "watch.toml: components"),
        ('alpha = "much"', "watch.toml: alpha"),
        ("strict = 1", "watch.toml: strict"),
        ("components = 0", "watch.toml: components"),
        ('threshold = "peek"', "watch.toml: threshold"),
        ("seed = -1", "watch.toml: seed"),
        ("snapshot-every = 0", "watch.toml: snapshot-every"),
        ("components =", "watch.toml: not TOML"),
    ],
)
def test_config_mistakes_are_found_at_the_start(
    tmp_path: Path, capfd: pytest.CaptureFixture[str], text: str, message: str
) -> None:
    (tmp_path / "watch.toml").write_text(text)
    assert main(["watch", "--config", str(tmp_path / "watch.toml")]) == 2
    assert message in complaint(capfd)


@pytest.mark.parametrize(
    ("number", "code"), [(signal.SIGTERM, 143), pytest.param(signal.SIGINT, 130, marks=pytest.mark.slow)]
)
def test_signals_end_it_with_a_snapshot(table: str, out: Path, tmp_path: Path, number: int, code: int) -> None:
    state = tmp_path / "state"
    process = subprocess.Popen(
        [*COMMAND, table, "--follow", "-o", str(out), "--state", str(state), *QUICK], stderr=subprocess.PIPE, text=True
    )
    wait_for(lambda: out.exists() and out.read_text().count("\n") == 400)
    with Path(table).open("a") as file:
        file.write("t400,1,1,1,1\nt401,1,1")  # as soon as it is known, and an unfinished line
    wait_for(lambda: out.read_text().count("\n") == 401)
    process.send_signal(number)
    _, errors = process.communicate(timeout=300)
    assert process.returncode == code
    assert errors.count("\n") == 1
    assert errors.startswith("penstock: 401 samples")
    found = committed(state)
    assert found is not None
    assert found["samples"] == 401


def test_standard_input_line_by_line_and_a_reader_that_goes_away(tmp_path: Path) -> None:
    pipes = dict.fromkeys(("stdin", "stdout", "stderr"), subprocess.PIPE)
    process = subprocess.Popen([*COMMAND, "--warmup", "20", "--components", "2"], **pipes, text=True)  # type: ignore
    assert process.stdin
    assert process.stdout
    assert process.stderr
    header, *lines = as_csv(rows(30)).splitlines(keepends=True)
    process.stdin.write(header)
    for number, line in enumerate(lines, start=1):
        process.stdin.write(line)
        process.stdin.flush()
        assert json.loads(process.stdout.readline())["row"] == number  # each answered before the next is sent
    process.stdout.close()
    process.stdin.write(lines[0])
    process.stdin.flush()
    assert process.wait(300) == 0
    assert process.stderr.read() == ""
    process.stdin.close()
    process.stderr.close()


def test_a_terminal_shows_a_live_status(table: str, out: Path) -> None:
    ours, theirs = pty.openpty()
    process = subprocess.Popen(
        [*COMMAND, table, "-f", "-o", str(out), *QUICK], stderr=theirs, env={**os.environ, "TERM": "xterm"}
    )
    os.close(theirs)
    shown = b""

    def seen() -> bool:
        nonlocal shown
        shown += os.read(ours, 4096)
        return b"per second" in shown and b"score" in shown

    wait_for(seen)
    process.send_signal(signal.SIGINT)
    end = time.monotonic() + 300
    while b"400 samples, " not in shown.rpartition(b"per second")[2] and time.monotonic() < end:
        try:
            shown += os.read(ours, 4096)
        except OSError:  # the other end is closed
            break
    assert process.wait(300) == 130
    os.close(ours)
    assert b"400 samples, " in shown.rpartition(b"per second")[2]
    assert b"Traceback" not in shown


def test_the_first_signal_is_noted_and_the_second_is_not_ours() -> None:
    before = signal.getsignal(signal.SIGTERM)
    with StopSignals() as stop:
        assert not stop.requested()
        os.kill(os.getpid(), signal.SIGTERM)
        assert stop.requested()
        assert stop.number == signal.SIGTERM
        assert signal.getsignal(signal.SIGINT) is signal.SIG_DFL
    assert signal.getsignal(signal.SIGTERM) is before


def test_the_status_and_what_is_said_above_it(
    table: str, out: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    with Path(table).open("a") as file:
        file.write("t400,off,1,1,1\n")
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "500")
    assert main(["watch", table, "-o", str(out), *QUICK]) == 0
    shown = capsys.readouterr().err
    assert 'line 402: column "flow" holds "off", which is not a number' in shown
    assert shown.rstrip().endswith("0 readings missing, 1 line malformed")
    last = [line for line in lines_of(out) if line["flag"]][-1]
    assert f"row {last['row']}  {last['time']}  score {last['score']:.4g}" in shown


def test_warnings_of_the_detector_are_said_in_one_line(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    values = rows(60)
    values[:, 1] = float("nan")
    (tmp_path / "plant.csv").write_text(as_csv(values))
    assert main(["watch", str(tmp_path / "plant.csv"), "-o", str(tmp_path / "out"), "-q", *QUICK]) == 0
    assert 'Columns "head" had no reading in the warm-up' in complaint(capfd)


def test_without_options_the_defaults_are_those_for_sensors(table: str, out: Path) -> None:
    assert main(["watch", table, "-o", str(out), "-q"]) == 0
    detector = OnlineNSNMF(
        similarity="binary", threshold=thresholds.ConformalPValue(rate=0.01), scale="minmax", warmup=200, random_state=0
    )
    expected = detector.process(rows())
    assert [line["score"] for line in lines_of(out)[200:]] == expected.scores[200:].tolist()
    assert [line["flag"] for line in lines_of(out)] == expected.flags.tolist()


@pytest.mark.parametrize("process", [False, pytest.param(True, marks=pytest.mark.slow)])
@pytest.mark.parametrize(
    ("closed", "stream", "code", "said"),
    [
        ("<&-", "stdin", 2, "penstock: Standard input is closed; open it, or give a file.\n"),
        (">&-", "stdout", 2, "penstock: Standard output is closed; open it, or give a file with --output.\n"),
        ("2>&-", "stderr", 0, ""),
    ],
)
def test_closed_descriptors(
    table: str, out: Path, closed: str, stream: str, code: int, said: str, process: bool,
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    """Python has None for a stream that was closed before it began."""
    arguments = [*QUICK, *([] if stream == "stdin" else [table]), *(["-o", str(out)] if code == 0 else [])]
    if process:
        shell = ["sh", "-c", f'exec "$@" {closed}', "sh", *COMMAND, *arguments]
        done = subprocess.run(shell, capture_output=True, text=True, timeout=300, check=False)
        assert (done.returncode, done.stderr) == (code, said)
    else:
        monkeypatch.setattr(sys, stream, None)
        assert main(["watch", *arguments]) == code
        assert capfd.readouterr().err == said
    assert code != 0 or len(lines_of(out)) == 400


def test_escape_sequences_in_the_data_do_not_reach_the_terminal(
    tmp_path: Path, out: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    hostile = "\x1b]0:owned\x07\x9b2J"
    header, rest = as_csv(rows()).split("\n", 1)
    text = header.replace("flow", f"flow{hostile}") + "\n" + re.sub(r"(?m)^t", f"t{hostile}", rest)
    (tmp_path / "plant.csv").write_text(text + "t,off,1,1,1\n", encoding="utf-8")
    assert main(["watch", str(tmp_path / "plant.csv"), "-o", str(out), "--columns", "none"]) == 2
    plain = capsys.readouterr().err
    assert "owned" in plain
    assert plain.rstrip("\n").isprintable()
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "500")
    assert main(["watch", str(tmp_path / "plant.csv"), "-o", str(out), "--overwrite", *QUICK]) == 0
    shown = capsys.readouterr().err
    assert "owned" in shown
    assert "score" in shown
    assert not set(shown) & {"\x07", "\x9b"}
    assert "\x1b]" not in shown


INTERRUPTED = """
import os, signal, sys

class Interrupt:
    def find_spec(self, name, path=None, target=None):
        if name == sys.argv[1]:
            os.kill(os.getpid(), signal.SIGINT)

sys.meta_path.insert(0, Interrupt())
from penstock.cli import main
sys.exit(main(sys.argv[2:]))
"""


@pytest.mark.parametrize("module", ["typer", "penstock.cli.watch", "numba"])
def test_ctrl_c_during_imports_ends_without_a_traceback(module: str) -> None:
    command = [sys.executable, "-c", INTERRUPTED, module, "watch", "-"]
    ended = subprocess.run(command, stdin=subprocess.DEVNULL, stderr=subprocess.PIPE, check=False)
    assert (ended.returncode, ended.stderr) == (130, b"")


def test_locks_end_with_a_process_that_is_killed(
    table: str, tmp_path: Path, out: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    state, mine = str(tmp_path / "state"), ["-q", *QUICK]
    first = subprocess.Popen([*COMMAND, table, "-f", "--state", state, "-o", str(out), *mine], stderr=subprocess.PIPE)
    try:
        wait_for(lambda: first.poll() or (out.exists() and out.stat().st_size))  # by then it holds both locks
        assert main(["watch", table, "--state", state, *mine]) == 2
        assert complaint(capfd).startswith(f"{state}/watch.db is used by another penstock.")
        assert main(["watch", table, "-o", str(out), "--overwrite", *mine]) == 2
        assert complaint(capfd) == f"Another penstock watch is writing to {out}; choose another --output."
    finally:
        first.kill()
        first.communicate()
    assert main(["watch", table, "--state", state, "-o", str(out), "--overwrite", *mine]) == 0
    assert len(lines_of(out)) == len(rows())
