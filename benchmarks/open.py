"""How long the page of `penstock open` waits for its worker: 200 tags with 200,000 rows.

    python benchmarks/open.py [--tags 200] [--rows 200000] [--profile]

What the worker does is done here in one process, so that processor time can be told from the wall's. With --profile,
what each step spends its time in follows (a profiler makes everything slower).
"""

from __future__ import annotations

import argparse
import cProfile
import pstats
import resource
import tempfile
import time
from pathlib import Path
from typing import Any

from detect import plant_table

from penstock.project import Project
from penstock.project.tasks import Desk


def main() -> None:
    """Print a line for each step: wall seconds, processor seconds, and the peak of memory so far."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--tags", type=int, default=200)
    parser.add_argument("--rows", type=int, default=200_000)
    parser.add_argument("--profile", action="store_true")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        warm = Path(folder) / "warm.csv"  # so that no kernel is loaded in what is measured
        plant_table(2000, 8).to_csv(warm, index=False)
        project = Project(Path(folder) / "warm")
        project.use(str(warm))
        _done(Desk(project, lambda stage: None), "detect")
        path = Path(folder) / "plant.csv"
        table = plant_table(given.rows, given.tags)
        times = [str(moment) for moment in table["time"].iloc[[given.rows // 5, given.rows // 4]]]
        table.to_csv(path, index=False)
        del table
        print(f"{given.tags} tags, {given.rows:,} rows, {path.stat().st_size / 1e6:.0f} MB")
        project = Project(Path(folder) / "plant")
        project.use(str(path))
        desk = Desk(project, lambda stage: None)
        _measure("understood", desk, "look", profile=given.profile)
        _measure("scored", desk, "detect", profile=given.profile)
        incident = project.read_json("findings")["incidents"][0]
        project.label(incident, "normal", "Ada")
        _measure("scored again, with a label", desk, "detect", profile=given.profile)
        project.add_period("exclude_periods", "..".join(times))
        _measure("scored again, with a period left out", desk, "detect", profile=given.profile)
        _measure("the report", desk, "export", profile=given.profile, kind="report")


def _measure(name: str, desk: Desk, what: str, *, profile: bool, **given: Any) -> None:
    profiler = cProfile.Profile()
    wall, cpu = time.perf_counter(), time.process_time()
    if profile:
        profiler.enable()
    _done(desk, what, **given)
    profiler.disable()
    wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6
    print(f"{name:<40}{wall:7.1f} s{cpu:8.1f} s of processor time, {peak:.1f} GB at most", flush=True)
    if profile:
        pstats.Stats(profiler).sort_stats("cumulative").print_stats(70)


def _done(desk: Desk, what: str, **given: Any) -> None:
    kind, answer = desk.carry_out(what, given)
    if kind != "done":
        raise SystemExit(answer["message"])


if __name__ == "__main__":
    main()
