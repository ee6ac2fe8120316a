"""Compare our detectors of streams with River's, in one run and on the same rows.

Prints samples per second, the time that a sample takes, memory, and lines per second of `penstock watch`.

    python benchmarks/stream.py

Needs ALOI in the folder that PENSTOCK_DATA names. Rates are by CPU time on one thread, the median of repeats taken in
turns; latencies and the command are by the clock.
"""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))  # the folder that studies/ is in
os.environ["PENSTOCK_THREADS"] = "1"
REPEATS = 5
Rows = list[dict[str, float]]


def as_dicts(X: Any) -> Rows:
    names = [f"x{j}" for j in range(X.shape[1])]
    return [dict(zip(names, row, strict=True)) for row in X.tolist()]


def pass_through(model: Any, rows: Rows) -> None:
    for x in rows:
        model.score_one(x)
        model.learn_one(x)


def cpu_seconds(job: Callable[[], Any]) -> float:
    started = time.process_time()
    job()
    return time.process_time() - started


def rates(X: Any) -> dict[str, float]:
    """Samples per second of each way of going through the rows."""
    from river import anomaly

    from penstock import OnlineNSNMF
    from penstock.adapters.river import RiverNSNMF

    rows, few = as_dicts(X), as_dicts(X[:1_500])
    jobs: dict[str, tuple[int, Callable[[], Any]]] = {
        "OnlineNSNMF.update_many": (len(X), lambda: OnlineNSNMF(random_state=0).update_many(X)),
        "OnlineNSNMF, score_one + learn_one": (len(rows), lambda: pass_through(RiverNSNMF(seed=0), rows)),
        "River HalfSpaceTrees": (len(rows), lambda: pass_through(anomaly.HalfSpaceTrees(seed=0), rows)),
        "River LocalOutlierFactor": (len(few), lambda: pass_through(anomaly.LocalOutlierFactor(), few)),
    }
    OnlineNSNMF(random_state=0).update_many(X[:100])  # compile
    pass_through(RiverNSNMF(seed=0), rows[:100])
    found: dict[str, list[float]] = {name: [] for name in jobs}
    for _ in range(REPEATS):
        for name, (n, job) in jobs.items():
            found[name].append(n / cpu_seconds(job))
    return {name: statistics.median(values) for name, values in found.items()}


def latencies(p: int, n: int = 20_000) -> dict[str, Any]:
    """Microseconds of each sample, by the clock."""
    from penstock import OnlineNSNMF
    from penstock.adapters.river import RiverNSNMF

    X = np.random.default_rng(0).random((n, p))
    detector, model = OnlineNSNMF(random_state=0), RiverNSNMF(seed=0)
    detector.update_many(X[:1_000])
    rows = as_dicts(X)
    pass_through(model, rows[:1_000])
    taken: dict[str, list[int]] = {"update": [], "score_one + learn_one": []}
    for row, x in zip(X[1_000:], rows[1_000:], strict=True):
        started = time.perf_counter_ns()
        detector.update(row)
        between = time.perf_counter_ns()
        model.score_one(x)
        model.learn_one(x)
        taken["update"].append(between - started)
        taken["score_one + learn_one"].append(time.perf_counter_ns() - between)
    return {name: np.percentile(values, [50, 99, 99.9, 100]) / 1e3 for name, values in taken.items()}


def sensor_latencies(p: int, n: int = 9_219, later: int = 5_000) -> dict[str, float]:
    """Microseconds a row through a monitor of `SensorDetector`: one by one by the clock (median), in batches by CPU."""
    from penstock import SensorDetector

    rng = np.random.default_rng(0)
    causes = np.cumsum(rng.normal(size=(n + later, 10)), axis=0) * 0.1
    X = causes @ rng.normal(size=(10, p)) + 0.1 * rng.normal(size=(n + later, p))
    detector, new = SensorDetector().fit(X[:n]), np.ascontiguousarray(X[n:])
    detector.monitor().update(new[0])  # compile
    monitor, taken = detector.monitor(), []
    for row in new:
        started = time.perf_counter_ns()
        monitor.update(row)
        taken.append(time.perf_counter_ns() - started)
    batch = cpu_seconds(lambda: detector.monitor().update_many(new)) / later
    return {"SensorDetector, update": float(np.median(taken)) / 1e3, "SensorDetector, update_many": batch * 1e6}


def resident_mb() -> float:
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / 1e6


def resident_over(n: int, p: int = 27, piece: int = 50_000) -> list[float]:
    """Resident memory after each tenth of n samples, the first tenth being the warm-up."""
    from penstock import OnlineNSNMF

    rng, detector = np.random.default_rng(0), OnlineNSNMF(random_state=0)
    sizes = []
    for done in range(piece, n + 1, piece):
        detector.update_many(rng.random((piece, p)))
        if done % (n // 10) == 0:
            sizes.append(resident_mb())
    assert detector.n_seen_ == n
    return sizes


def lines_per_second(X: Any) -> dict[str, float]:
    """Lines of CSV through `penstock watch`, from the start of the command to its end, by the clock."""
    command = [str(Path(sys.executable).with_name("penstock")), "watch"]
    with tempfile.TemporaryDirectory() as folder:
        table = Path(folder) / "rows.csv"
        header = ",".join(f"x{j}" for j in range(X.shape[1]))
        np.savetxt(table, X, fmt="%.6g", delimiter=",", header=header, comments="")
        ways = {
            "file to file": [*command, str(table), "--output", f"{folder}/out.jsonl", "--overwrite"],
            "file to file, with snapshots": [
                *command, str(table), "--output", f"{folder}/kept.jsonl", "--overwrite", "--state", f"{folder}/state"
            ],
        }  # fmt: skip
        subprocess.run(ways["file to file"], check=True, capture_output=True)  # compile
        found = {}
        for name, way in ways.items():
            started = time.perf_counter()
            subprocess.run(way, check=True, capture_output=True)
            found[name] = len(X) / (time.perf_counter() - started)
        started = time.perf_counter()
        with table.open("rb") as source, (Path(folder) / "piped.jsonl").open("wb") as target:
            subprocess.run(command, stdin=source, stdout=target, stderr=subprocess.DEVNULL, check=True)
        found["pipe to pipe"] = len(X) / (time.perf_counter() - started)
    return found


class Bars:
    """Prints figures with their bars, and remembers whether all were met."""

    missed = 0

    def show(self, what: str, figure: str, bar: str, met: bool) -> None:
        self.missed += not met
        print(f"  {what:<44} {figure:>22}   bar {bar:<14} {'met' if met else 'NOT MET'}", flush=True)


def main() -> int:
    from studies.ahmed2021.datasets import load

    X = load("ALOI").X
    bars = Bars()
    print("ALOI, 49,534 x 27, buffer 20, one thread: samples per second")
    found = rates(X)
    for name, rate in found.items():
        print(f"  {name:<44} {rate:>14,.0f}")
    trees = found["River HalfSpaceTrees"]
    many, one = (found[name] / trees for name in ("OnlineNSNMF.update_many", "OnlineNSNMF, score_one + learn_one"))
    most = found["OnlineNSNMF.update_many"]
    bars.show("update_many, samples per second", f"{most:,.0f}", ">= 300,000", most >= 300_000)
    bars.show("update_many / HalfSpaceTrees", f"{many:.2f}", ">= 3", many >= 3)
    bars.show("score_one + learn_one / HalfSpaceTrees", f"{one:.2f}", ">= 1", one >= 1)
    print("p = 222: microseconds a sample (median, p99, p99.9, longest)")
    for name, (middle, p99, p999, longest) in latencies(222).items():
        bars.show(name, f"{middle:.0f} {p99:.0f} {p999:.0f} {longest:.0f}", "p99 < 1000", p99 < 1000)
    for name, middle in sensor_latencies(222).items():
        bars.show(name, f"{middle:.0f}", "<= 60", middle <= 60)
    print("10,000,000 samples of 27 readings: resident memory")
    with get_context("spawn").Pool(1) as pool:  # a process that holds nothing else
        sizes = pool.apply(resident_over, (10_000_000,))
    growth = max(abs(size / sizes[0] - 1) for size in sizes)
    bars.show(
        f"{sizes[0]:.1f} MB after 1 M, {sizes[-1]:.1f} at the end", f"{100 * growth:.2f} %", "<= 2 %", growth <= 0.02
    )
    print("penstock watch, ALOI four times over (198,136 lines), start and end included: lines per second")
    for name, rate in lines_per_second(np.tile(X, (4, 1))).items():
        bars.show(name, f"{rate:,.0f}", ">= 20,000", rate >= 20_000)
    return bars.missed


if __name__ == "__main__":
    sys.exit(min(main(), 1))
