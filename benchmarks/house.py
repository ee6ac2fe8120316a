"""Print how large the code is and how long the walk of `penstock detect --report` is.

    .venv/bin/python benchmarks/house.py

Bars: the wheel at most 33,000 lines in 220 files, tests at most 22,000 lines, the walk at most 80 files with
`detection` entered at most 10 times, `import penstock` 0.1 s, `penstock --version` 0.3 s.
"""

from __future__ import annotations

import statistics
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from time import perf_counter
from types import FrameType
from typing import Any

import numpy as np
import pandas as pd

ROOT = Path(__file__).resolve().parent.parent
PACKAGE = ROOT / "src" / "penstock"


def count_lines(folder: Path) -> tuple[int, int]:
    """Return the number of Python files below a folder and of their lines."""
    files = sorted(folder.rglob("*.py"))
    return len(files), sum(len(file.read_text(encoding="utf-8").splitlines()) for file in files)


def walk_of_detect() -> dict[str, int]:
    """Run `penstock detect --report` once warm and count the files and functions of ours that it visits."""
    from penstock.cli import main  # here, as the counts above need no import

    rng = np.random.default_rng(0)
    values = rng.normal(size=(600, 2)) @ rng.normal(size=(2, 8)) + rng.normal(scale=0.1, size=(600, 8))
    values[300:306, 2] += 5
    table = pd.DataFrame(values, columns=list("abcdefgh"))
    table.insert(0, "time", pd.date_range("2024-01-01", periods=len(table), freq="10min"))
    files: set[str] = set()
    functions: set[tuple[str, int]] = set()
    entered = 0

    def look(frame: FrameType, event: str, _: Any) -> None:
        nonlocal entered
        name = frame.f_code.co_filename
        if event != "call" or not name.startswith(str(PACKAGE)) or frame.f_code.co_name == "<module>":
            return
        files.add(name)
        functions.add((name, frame.f_code.co_firstlineno))
        if "/detection/" in name and "/detection/" not in _caller(frame):
            entered += 1

    with tempfile.TemporaryDirectory() as folder:
        source = Path(folder) / "plant.csv"
        table.to_csv(source, index=False)
        for number in range(2):
            sys.setprofile(look if number else None)
            command = ["detect", str(source), "--report", f"{folder}/{number}.html", "--quiet"]
            code = main(command)
            sys.setprofile(None)
            if code:
                raise SystemExit(f"penstock detect ended with {code}")
    return {"files": len(files), "functions": len(functions), "detection entered": entered}


def _caller(frame: FrameType) -> str:
    """Return the file of the nearest caller that is ours."""
    above = frame.f_back
    while above is not None and not above.f_code.co_filename.startswith(str(PACKAGE)):
        above = above.f_back
    return "" if above is None else above.f_code.co_filename


def seconds(command: Sequence[str], repeats: int = 5) -> float:
    """Return the median wall time of a command."""
    times = []
    for _ in range(repeats):
        begin = perf_counter()
        subprocess.run(command, check=True, capture_output=True)
        times.append(perf_counter() - begin)
    return statistics.median(times)


def main() -> None:
    """Print each count with its bar."""
    files, lines = count_lines(PACKAGE)
    print(f"wheel: {lines:,} lines of Python in {files} files (bar 33,000 in 220)")
    print(f"tests: {count_lines(ROOT / 'tests')[1]:,} lines (bar 22,000)")
    for room in sorted(path for path in PACKAGE.iterdir() if path.is_dir() and path.name != "__pycache__"):
        print("  {:<16} {:>4} files {:>7,} lines".format(room.name, *count_lines(room)))
    walk = walk_of_detect()
    print(
        "penstock detect --report: "
        + ", ".join(f"{name} {count}" for name, count in walk.items())
        + " (bars 80, -, 10)"
    )
    bare = seconds([sys.executable, "-c", "pass"])
    print(f"import penstock: {seconds([sys.executable, '-c', 'import penstock']) - bare:.3f} s (bar 0.1)")
    version = [sys.executable, "-c", "from penstock.cli import main; main(['--version'])"]
    print(f"penstock --version: {seconds(version):.3f} s (bar 0.3)")


if __name__ == "__main__":
    main()
