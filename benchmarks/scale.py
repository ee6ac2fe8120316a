"""The fit on a Dask cluster of this machine beside the plain fit: overhead, growth, speed-up, memory, in one run.

    python benchmarks/scale.py            all of it (half an hour on two cores)
    python benchmarks/scale.py 200000     one size

Readings of three quantities by twenty sensors (`generate.spatial`), in Parquet files. Every run is a process of its
own; the memory of all its processes is watched from outside.
"""

from __future__ import annotations

import json
import math
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path
from typing import Any

SIZES = (100_000, 200_000, 1_000_000, 5_000_000)
P = 20
PARTS = 8  # the same work for one worker and for two
TREE = ("trees of parts", "edges between parts", "joining the parts")
LIMITS = {"speed-up": 1.6, "exponent": 1.3, "minutes": 90.0, "GB": 6.0}


def main() -> int:
    sizes = [int(word) for word in sys.argv[1:]] or list(SIZES)
    missed = 0
    runs: dict[tuple[str, int], dict[str, Any]] = {}
    with tempfile.TemporaryDirectory(prefix="penstock-scale-") as folder:
        for n in sizes:
            data = Path(folder) / f"{n}"
            subprocess.run([sys.executable, __file__, "--write", str(n), str(data)], check=True)
            for kind in kinds_at(n):
                runs[kind, n] = measure(kind, n, data, Path(folder) / "job")
                show(kind, n, runs[kind, n])
    for n in sizes:
        missed += compare(n, {kind: runs[kind, n] for kind in kinds_at(n)})
    missed += growth(runs)
    return min(missed, 1)


def kinds_at(n: int) -> tuple[str, ...]:
    """One worker alone is only asked for where its speed-up is scored, or is quick."""
    return ("plain", "2 workers") if n > 1_000_000 else ("plain", "1 worker", "2 workers")


def measure(kind: str, n: int, data: Path, job: Path) -> dict[str, Any]:
    """Run one fit in a process of its own, watching the memory of it and of those it starts."""
    command = [sys.executable, __file__, "--one", kind, str(n), str(data), str(job)]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    peaks: dict[int, float] = {}
    watcher = threading.Thread(target=watch, args=(process, peaks))
    watcher.start()
    answer, _ = process.communicate()
    watcher.join()
    if process.returncode != 0:
        raise SystemExit(f"{kind}, {n:,} rows: the run failed.")
    found: dict[str, Any] = json.loads(answer.splitlines()[-1])
    return found | {"peak GB": max(peaks.values()) / 1e9}


def watch(process: subprocess.Popen[str], peaks: dict[int, float]) -> None:
    import psutil

    try:
        root = psutil.Process(process.pid)
        while process.poll() is None:
            for one in [root, *root.children(recursive=True)]:
                try:
                    peaks[one.pid] = max(peaks.get(one.pid, 0.0), one.memory_info().rss)
                except psutil.NoSuchProcess:
                    continue
            time.sleep(0.2)
    except psutil.NoSuchProcess:
        return


def write(n: int, folder: Path) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq
    from generate import spatial

    folder.mkdir()
    X = spatial(n, P)
    per_file = max(100_000, n // 10)
    for number, start in enumerate(range(0, n, per_file)):
        columns = {f"sensor {c}": X[start : start + per_file, c] for c in range(P)}
        pq.write_table(pa.table(columns), folder / f"{number:03}.parquet", row_group_size=100_000)


def one(kind: str, n: int, data: Path, job: Path) -> dict[str, Any]:
    """One fit, compiled beforehand: seconds of the whole, of its tree and of its factorisation."""
    import warnings

    import numpy as np

    from penstock import NSNMF

    warnings.simplefilter("ignore")
    detector = NSNMF(similarity="relative", random_state=0)
    NSNMF(similarity="relative", random_state=0).fit(np.random.default_rng(0).normal(size=(5000, P)))
    return plain(detector, data) if kind == "plain" else on_cluster(detector, data, int(kind[0]), job)


def plain(detector: Any, data: Path) -> dict[str, Any]:
    import pandas as pd

    from penstock.detectors import _factor_base as base
    from penstock.detectors import nsnmf as home

    seconds = {"tree": 0.0, "factorisation": 0.0}

    def timed(module: Any, name: str, what: str) -> None:
        function = getattr(module, name)

        def call(*arguments: Any, **options: Any) -> Any:
            began = time.perf_counter()
            result = function(*arguments, **options)
            seconds[what] += time.perf_counter() - began
            return result

        setattr(module, name, call)

    timed(home, "spanning_tree_of_comparable", "tree")
    timed(base, "fit_factors", "factorisation")
    began = time.perf_counter()
    detector.fit(pd.read_parquet(data))
    return seconds | {
        "whole": time.perf_counter() - began,
        "objective": detector.objective_,
        "sweeps": detector.n_iter_,
    }


def on_cluster(detector: Any, data: Path, n_workers: int, job: Path) -> dict[str, Any]:
    import shutil

    from penstock import scale

    began_stage: dict[str, float] = {}
    ended_stage: dict[str, float] = {}

    def note(stage: str, done: int, total: int) -> None:
        began_stage.setdefault(stage, time.perf_counter())
        ended_stage[stage] = time.perf_counter()

    with scale.local_client(n_workers=n_workers) as client:
        client.run(_compile)
        began = time.perf_counter()
        scale.fit(detector, data, client, folder=job, n_parts=PARTS, progress=note)
        whole = time.perf_counter() - began
    shutil.rmtree(job)
    spent = {stage: ended_stage[stage] - began_stage[stage] for stage in began_stage}
    return {
        "whole": whole,
        "tree": sum(spent.get(stage, 0.0) for stage in TREE),
        "factorisation": spent["factorising"],
        "objective": detector.objective_,
        "sweeps": detector.n_iter_,
        "stages": {stage: round(seconds, 2) for stage, seconds in spent.items()},
    }


def _compile() -> None:
    """Load, or compile, all kernels of a worker before the clock starts."""
    import warnings

    import numpy as np

    from penstock import NSNMF
    from penstock.factor import RowBlocks
    from penstock.graph.parts import common_frame, cross_edges, grow_part

    warnings.simplefilter("ignore")
    X = np.random.default_rng(0).normal(size=(10_000, 3))
    frame = common_frame(X.min(axis=0), X.max(axis=0), X)
    cross_edges(*(grow_part(X[rows], rows, frame) for rows in np.split(np.arange(len(X)), 2)))
    NSNMF(solver=RowBlocks(2), random_state=0, max_iter=4).fit(X)


def show(kind: str, n: int, run: dict[str, Any]) -> None:
    parts = ", ".join(f"{name} {run[name]:.1f} s" for name in ("tree", "factorisation"))
    print(f"{n:>9,} rows, {kind:9}: {run['whole']:7.1f} s ({parts}; {run['sweeps']} iterations to "
          f"{run['objective']:.6g}), largest process {run['peak GB']:.2f} GB", flush=True)  # fmt: skip
    if "stages" in run:
        print(f"{'':>26}{run['stages']}", flush=True)


def compare(n: int, found: dict[str, dict[str, Any]]) -> int:
    plain_run, two = found["plain"], found["2 workers"]
    print(f"\n{n:,} rows: Dask takes {two['whole'] / plain_run['whole']:.2f} × the plain fit's time")
    missed = 0
    if n == 1_000_000:
        for part in ("tree", "factorisation"):
            missed += bar(f"1 → 2 workers, {part}", found["1 worker"][part] / two[part], LIMITS["speed-up"], least=True)
    if n == 5_000_000:
        missed += bar("plain fit over two workers", plain_run["whole"] / two["whole"], 1.0, least=True)
        missed += bar("minutes", two["whole"] / 60, LIMITS["minutes"])
        missed += bar("largest process, GB", two["peak GB"], LIMITS["GB"])
    return missed


def growth(runs: dict[tuple[str, int], dict[str, Any]]) -> int:
    """The exponent of the cost in n, from the smallest to a million rows."""
    small, large = 100_000, 1_000_000
    if ("plain", small) not in runs or ("plain", large) not in runs:
        return 0
    print()
    missed = 0
    for kind in ("plain", "2 workers"):
        for part in ("tree", "whole"):
            ratio = runs[kind, large][part] / runs[kind, small][part]
            exponent = math.log(ratio) / math.log(large / small)
            missed += bar(f"exponent of the cost in n, {kind}, {part}", exponent, LIMITS["exponent"])
    return missed


def bar(what: str, value: float, limit: float, *, least: bool = False) -> int:
    met = value >= limit if least else value <= limit
    print(f"  {what}: {value:.2f} [{'≥' if least else '≤'} {limit:g}] {'met' if met else 'NOT MET'}", flush=True)
    return int(not met)


if __name__ == "__main__":
    if sys.argv[1:2] == ["--write"]:
        write(int(sys.argv[2]), Path(sys.argv[3]))
    elif sys.argv[1:2] == ["--one"]:
        print(json.dumps(one(sys.argv[2], int(sys.argv[3]), Path(sys.argv[4]), Path(sys.argv[5]))))
    else:
        sys.exit(main())
