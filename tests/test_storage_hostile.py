"""Files that do harm, or try to: refused within a second and in little memory."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import hostile_files
import numpy as np
import pytest

from penstock.storage import StorageError, read_state, write_state

REFUSALS = """
import json, os, sys, time
from penstock.storage import StorageError, read_state

def judge(path):
    start = time.process_time()
    try:
        read_state(path)
        error = ""
    except StorageError as caught:
        error = f"{type(caught).__name__}: {caught}"
    seconds = time.process_time() - start
    peak = next(int(line.split()[1]) for line in open("/proc/self/status") if line.startswith("VmHWM"))
    heavy = [name for name in ("sklearn", "scipy", "numba", "pandas") if name in sys.modules]
    print(json.dumps([error, seconds, peak / 1024, heavy]), flush=True)

for path in sys.argv[1:]:
    if os.fork() == 0:
        judge(path)
        os._exit(0)
    assert os.wait()[1] == 0, path
"""
HOSTILE = [*hostile_files.CONTENTS, *hostile_files.PLACES]
measures_memory = pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="needs /proc to measure memory")


def judge(folder: Path, *paths: Path) -> list[tuple[str, float, float, list[str]]]:
    """For each path, read in a process that has imported nothing but `penstock.storage`: error, seconds, peak memory.

    Each is read in a fork of its own. Seconds are the processor's, so that other programs do not matter; who waits for
    a pipe meets the timeout. Not ru_maxrss: that counts the memory of whoever started the process.
    """
    command = [sys.executable, "-c", REFUSALS, *map(str, paths)]
    done = subprocess.run(command, stdout=subprocess.PIPE, cwd=folder, timeout=300, check=True, text=True)
    return [json.loads(line) for line in done.stdout.splitlines()]


@pytest.fixture(scope="module")
def verdicts(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    folder = tmp_path_factory.mktemp("hostile")
    for i, name in enumerate(HOSTILE):
        hostile_files.make(name, folder / str(i))
    verdicts = judge(folder, *(folder / str(i) for i in range(len(HOSTILE))))
    for i in range(len(HOSTILE)):  # here as well, where other things are imported
        with pytest.raises(StorageError):
            read_state(folder / str(i))
    assert not (folder / "executed").exists()
    return dict(zip(HOSTILE, verdicts, strict=True))


@measures_memory
@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_files_are_refused_at_once(verdicts: dict[str, Any], name: str) -> None:
    error, seconds, megabytes, heavy = verdicts[name]
    assert "Error: Cannot read /" in error
    assert len(error) < 600
    assert seconds < 1.0
    assert megabytes < 256
    assert heavy == []


@measures_memory
def test_reading_takes_little_more_memory_than_the_arrays(tmp_path: Path) -> None:
    write_state(tmp_path / "small", "test", {})
    write_state(tmp_path / "large", "test", {"x": np.zeros(10_000_000)})
    small, large = judge(tmp_path, tmp_path / "small", tmp_path / "large")
    assert small[0] == large[0] == ""
    assert large[2] - small[2] < 1.2 * 80


def test_a_forged_file_is_read_if_it_is_sound(tmp_path: Path) -> None:
    """Else the hostile ones might be refused for a reason of their own."""
    (tmp_path / "file").write_bytes(hostile_files.one_array(np.float64([3, 4]).tobytes()))
    assert read_state(tmp_path / "file")[1]["x"].tolist() == [3.0, 4.0]
    (tmp_path / "file").write_bytes(hostile_files.two_arrays([16, 32], [0, 16], 32))
    assert set(read_state(tmp_path / "file")[1]) == {"x", "y"}
