"""Measure what an installation takes, and write the table of docs/install.md.

    .venv/bin/python tools/measure_install.py [--python PYTHON] [--extras …] [--constraints FILE]

The wheel is built and installed into an empty environment; each extra is then added to a copy of it. Sizes are of all
files on disk, with what a package needs in turn and its compiled modules. Times include the download.
"""

from __future__ import annotations

import argparse
import re
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PAGE = ROOT / "docs" / "install.md"
BEGIN, END = "<!-- measured -->", "<!-- end of measured -->"
USES = {
    "": "everything not named below",
    "files": "Parquet files",
    "excel": "Excel files, in and out",
    "sql": "databases, `sql:URL`; the driver of one other than SQLite is installed besides",
    "plots": "figures: `Findings.plot`, `detector.plot`",
    "serve": "figures of [`penstock serve`](serve.md) for Prometheus",
    "mqtt": "rows from MQTT, messages by MQTT",
    "kafka": "rows from Kafka",
    "opcua": "rows from OPC UA (asyncua is LGPL)",
    "notify": "messages by e-mail, chat and others",
    "river": "the adapter for River",
    "dask": "a cluster",
    "peers": "the detectors of PyOD in `penstock bench`",
}


def run(*command: object) -> None:
    """Run a command, and end if it fails."""
    ran = subprocess.run([str(part) for part in command], cwd=ROOT, capture_output=True, text=True, check=False)
    if ran.returncode:
        sys.exit(f"{' '.join(map(str, command))}\n{ran.stdout}\n{ran.stderr}")


def size_of(folder: Path) -> float:
    """Return the size of all files of a folder in MB."""
    files = (path for path in folder.rglob("*") if path.is_file() and not path.is_symlink())
    return sum(path.stat().st_size for path in files) / 1e6


def measure(environment: Path, what: str, constraints: Path) -> tuple[float, float]:
    """Install into an environment; return the seconds and the MB that this added."""
    before, started = size_of(environment), time.perf_counter()
    run(environment / "bin" / "python", "-m", "pip", "install", "-c", constraints, what)
    return time.perf_counter() - started, size_of(environment) - before


def main() -> None:
    """Build, measure, and write the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--python", default=sys.executable)
    parser.add_argument("--extras", nargs="*", default=[name for name in USES if name])
    parser.add_argument("--constraints", type=Path, default=ROOT / "constraints.txt")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        run(sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", folder)
        wheel = next(folder.glob("*.whl"))
        lines = []
        for extra in ("", *given.extras):
            what = f"{wheel}[{extra}]" if extra else str(wheel)
            place = folder / (extra or "base")
            if extra:
                shutil.copytree(folder / "base", place, symlinks=True)
            else:
                run(given.python, "-m", "venv", place)
            seconds, size = measure(place, what, given.constraints)
            if extra:
                shutil.rmtree(place)
            shown = f"`{extra}`" if extra else "(none)"
            digits = 1 if size < 10 else 0
            lines.append(f"| {shown} | {USES[extra]} | {size:.{digits}f} MB | {seconds:.0f} s |")
            print(lines[-1], flush=True)
        version = subprocess.run([given.python, "--version"], capture_output=True, text=True, check=True).stdout.strip()
    table = ["| extra | for | size | time |", "| --- | --- | --- | --- |", *lines]
    where = f"Linux, {version}, the versions in {given.constraints.name}"
    note = f"({where}. Times are from a fast mirror, on two cores that did other work.)"
    content = "\n".join([BEGIN, *table, "", note, END])
    text = PAGE.read_text(encoding="utf-8")
    PAGE.write_text(re.sub(f"{BEGIN}.*{END}", lambda _: content, text, flags=re.DOTALL), encoding="utf-8")


if __name__ == "__main__":
    main()
