"""From a file to a finished report: `penstock detect`, as the shell runs it, in wall time and memory.

    python benchmarks/detect.py            # about ten minutes; --quick leaves the million rows out

Every figure is that of a whole process, its start included. "Cold" is the very first run on a machine, with every
kernel to be compiled. Modules are compiled to bytecode before, as pip does when it installs them, whatever
PYTHONDONTWRITEBYTECODE says: else every start would take some seconds more.
"""

from __future__ import annotations

import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import pandas as pd

# Runs a command and prints what it took: the peak of a child's memory is that of the largest of all children so far,
# so each measurement has a process of its own.
_MEASURE = """
import json, resource, subprocess, sys, time
started = time.perf_counter()
code = subprocess.run(sys.argv[1:], stdout=subprocess.DEVNULL).returncode
used = resource.getrusage(resource.RUSAGE_CHILDREN)
print(json.dumps({"code": code, "wall": time.perf_counter() - started, "cpu": used.ru_utime + used.ru_stime,
                  "peak": used.ru_maxrss * 1024}))
"""
_READ = """
import json, sys, time
import pandas
from penstock.io import read_table
read = {"penstock": read_table, "pandas": lambda path: pandas.read_csv(path, parse_dates=["time"])}[sys.argv[1]]
wall, cpu = time.perf_counter(), time.process_time()
read(sys.argv[2])
print(json.dumps([time.perf_counter() - wall, time.process_time() - cpu]))
"""


def plant_table(n: int, p: int, seed: int = 0) -> pd.DataFrame:
    """Readings that follow a few slow causes with noise, and twenty short faults."""
    rng = np.random.default_rng(seed)
    causes = np.cumsum(rng.normal(size=(n, 6)), axis=0)
    causes = (causes - causes.mean(axis=0)) / causes.std(axis=0)
    values = 50 + 10 * causes @ rng.normal(size=(6, p)) / np.sqrt(6) + rng.normal(size=(n, p))
    for start in rng.integers(0, n - 10, size=20):
        values[start : start + 5, rng.integers(0, p, size=3)] += 25
    frame = pd.DataFrame(values.round(3), columns=[f"sensor_{k:03d}" for k in range(p)])
    frame.insert(0, "time", pd.date_range("2024-01-01", periods=n, freq="min"))
    return frame


def measure(*command: str, **environment: str) -> dict[str, float]:
    done = subprocess.run(
        [sys.executable, "-c", _MEASURE, *command], env=os.environ | environment, check=True, capture_output=True,
        text=True,
    )  # fmt: skip
    figures: dict[str, float] = json.loads(done.stdout.splitlines()[-1])
    if figures["code"]:
        raise SystemExit(f"{' '.join(command)} ended with exit code {figures['code']:.0f}:\n{done.stderr}")
    return figures


def detect(table: Path, folder: Path, **environment: str) -> dict[str, float]:
    """One `penstock detect` with a report and a list."""
    penstock = str(Path(sys.executable).with_name("penstock"))
    outputs = ["--report", f"{folder}/report.html", "--output", f"{folder}/findings.csv"]
    return measure(penstock, "detect", str(table), *outputs, "--overwrite", **environment)


def opening_seconds(page: Path) -> float | None:
    """From the request to a page that is loaded and has drawn its first chart, in chromium; None without a browser."""
    from playwright.sync_api import sync_playwright

    browser_path = shutil.which("chromium")
    if browser_path is None:
        return None
    with sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=browser_path, args=["--no-sandbox", "--disable-gpu"])
        times = []
        for _ in range(3):
            tab = browser.new_page()
            started = time.perf_counter()
            tab.goto(page.as_uri(), wait_until="load")
            tab.wait_for_selector("#score svg, #score canvas, svg, canvas", state="attached")
            times.append(time.perf_counter() - started)
            tab.close()
        browser.close()
    return statistics.median(times)


def compare_reading(table: Path, repeats: int) -> tuple[float, float]:
    """Wall and CPU time of reading by us over those of pandas: medians of pairs in turn, each in a fresh process."""

    def seconds(reader: str) -> tuple[float, float]:
        command = [sys.executable, "-c", _READ, reader, str(table)]
        wall, cpu = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
        return wall, cpu

    pairs = [(seconds("penstock"), seconds("pandas")) for _ in range(repeats)]
    wall, cpu = (statistics.median(ours[k] / theirs[k] for ours, theirs in pairs) for k in (0, 1))
    return wall, cpu


def main() -> int:
    missed = []

    def report(name: str, measured: float, bar: float, unit: str) -> None:
        verdict = "met" if measured <= bar else "MISSED"
        print(f"  {name:58s} {measured:8.2f} {unit:3s} [{bar:g}] {verdict}", flush=True)
        if measured > bar:
            missed.append(name)

    def report_reading(wall: float, cpu: float) -> None:
        report("reading, wall time over that of pandas", wall, 1.5, "×")
        print(f"  (reading on two threads; CPU time over that of pandas {cpu:.2f} ×)")

    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        table = folder / "table.csv"
        plant_table(10_000, 222).to_csv(table, index=False)
        print(f"10,000 × 222, a CSV of {table.stat().st_size / 1e6:.0f} MB, to the finished report:")
        bytecode = {"PYTHONPYCACHEPREFIX": str(folder / "bytecode"), "PYTHONDONTWRITEBYTECODE": ""}
        detect(table, folder, **bytecode)
        cold = detect(table, folder, NUMBA_CACHE_DIR=str(folder / "kernels"), **bytecode)
        report("cold, all kernels compiled, wall time", cold["wall"], 9, "s")
        warm = [detect(table, folder, NUMBA_CACHE_DIR=str(folder / "kernels"), **bytecode) for _ in range(3)]
        report("warm, wall time", statistics.median(run["wall"] for run in warm), 5, "s")
        print(f"  (CPU time: cold {cold['cpu']:.2f} s, warm {min(run['cpu'] for run in warm):.2f} s)")
        report("warm, peak memory", max(run["peak"] for run in warm) / 1e6, 300, "MB")
        report("size of the report", (folder / "report.html").stat().st_size / 1e6, 5, "MB")
        opening = opening_seconds(folder / "report.html")
        if opening is None:
            print("  opening the report: not measured, there is no chromium here")
        else:
            report("opening the report in chromium", opening, 2, "s")
        report_reading(*compare_reading(table, 5))
        if "--quick" not in sys.argv:
            plant_table(1_000_000, 20).to_csv(table, index=False)
            print(f"1,000,000 × 20, a CSV of {table.stat().st_size / 1e6:.0f} MB, to the finished report:")
            large = detect(table, folder)
            report("wall time", large["wall"] / 60, 10, "min")
            report("peak memory", large["peak"] / 1e9, 6, "GB")
            report("size of the report", (folder / "report.html").stat().st_size / 1e6, 5, "MB")
            report_reading(*compare_reading(table, 5))
    print(f"Missed: {', '.join(missed)}" if missed else "All bars met.")
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
