"""The command `penstock serve`: options, the config file, errors in one line with exit code 2, and the real thing."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys

import pytest
from live_service import Client, csv_of, model, rows
from waiting import wait_for

from penstock.cli import main

RUN = "import sys; from penstock.cli import main; sys.exit(main())"


@pytest.mark.parametrize(
    ("arguments", "config", "message"),
    [
        ([], None, "--input is missing"),
        (["--model", "none.penstock"], None, "none.penstock"),
        (["--input", "in.csv", "--port", "99999"], None, "--port must be"),
        (["--input", "in.csv", "--asset", "a/b/c"], None, "--asset must be"),
        (["--input", "in.csv", "--on-delay", "soon"], None, "--on-delay"),
        (["--input", "in.csv", "--threshold", "fixed:"], None, "--threshold"),
        (["--input", "in.csv", "--webhook", "here"], None, "--webhook must be"),
        (["--input", "in.csv", "--mqtt", "here"], None, "--mqtt must be"),
        (["--input", "in.csv", "--store", "missing/live.db"], None, "no folder missing"),
        (["--input", "in.csv.gz"], None, "cannot be followed"),
        ([], "[asset.one]\nmodle = 'x'", "Did you mean 'model'?"),
        ([], "[asset]\nmodel = 'x'", "[asset.pump1]"),
        ([], "[asset.one]\nmodel = 7", "must be the path of a file"),
        ([], "prot = 7\n[asset.one]", "Did you mean 'port'?"),
        (["--input", "in.csv"], "[asset.one]", "name these in a table"),
    ],
)
def test_what_is_wrong_is_said_in_one_line(tmp_path, monkeypatch, capsys, arguments, config, message):
    monkeypatch.chdir(tmp_path)
    if config is not None:
        (tmp_path / "live.toml").write_text(config)
        arguments = [*arguments, "--config", "live.toml"]
    port = [] if "--port" in arguments else ["--port", "0"]
    assert main(["serve", *arguments, *port]) == 2
    said = capsys.readouterr().err
    assert message in said
    assert said.count("\n") == 1
    assert not list(tmp_path.glob("*.db-wal"))


def test_zero_configuration_and_an_orderly_end(tmp_path):
    (tmp_path / "unit1.csv").write_text(csv_of(rows()))
    command = [sys.executable, "-c", RUN, "serve", "--model", str(model()), "--input", "unit1.csv", "--port", "0"]
    command += ["--on-delay", "3s", "--off-delay", "5s", "--min-duration", "2s"]
    process = subprocess.Popen(
        command, cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=os.environ
    )
    line = process.stdout.readline()
    url = re.search(r"http://127.0.0.1:\d+/", line)[0]
    client = Client(url)
    wait_for(lambda: client.get("assets/unit1")["row"] == 900)
    labels = tmp_path / "labels.jsonl"  # those of serve are of the same name as the file that refit is given
    alarm = client.get("alarms")[0]["id"]
    assert client.command(f"alarms/{alarm}/label", reason="fault", name="Ada")[0] == 200
    labels.write_text(client("GET", "/api/v1/labels.jsonl")[1])
    process.send_signal(signal.SIGTERM)
    _, errors = process.communicate(timeout=300)
    assert process.returncode == 128 + signal.SIGTERM, errors
    assert "Traceback" not in errors
    assert not (tmp_path / "penstock-live.db-wal").exists()  # closed in order
    assert main(["refit", "--model", str(model()), str(tmp_path / "unit1.csv"), "--labels", str(labels)]) == 0
