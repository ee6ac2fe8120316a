"""What it costs to put readings on one clock: a long file, against pandas, and readings as they come.

    python benchmarks/align.py [rows]     # 10 million rows by default; each part in a process of its own

Long file: 200 tags with times of their own, in order of time or tag by tag, from CSV into a table. pandas reads the
same file, rounds times down to the same step, averages, and makes a column of each tag (its own pivot of the times as
they are would take 200 columns of every second). Memory is the most that the process took over its start.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

TAGS = 200
MINUTE = 60_000_000


def write_long(path: Path, rows: int, by_tag: bool) -> None:
    """Write readings of tags, each every minute or so at a phase of its own, in pieces."""
    rng = np.random.default_rng(0)
    each = rows // TAGS
    start = np.datetime64("2024-01-01", "s")
    phases = rng.integers(0, 60, TAGS)
    with path.open("w") as file:
        file.write("tag,time,value\n")
        pieces = [(tag, tag + 1, 0, each) for tag in range(TAGS)]
        if not by_tag:
            pieces = [(0, TAGS, first, min(first + 500, each)) for first in range(0, each, 500)]
        for low, high, first, last in pieces:
            tags = np.repeat(np.arange(low, high), last - first)
            seconds = np.tile(np.arange(first, last) * 60, high - low) + phases[tags] + rng.integers(0, 3, len(tags))
            values = np.round(50 + tags + rng.normal(size=len(tags)), 3)
            order = np.argsort(seconds, kind="stable")
            names = np.char.add("UNIT1.TAG", tags.astype(str))
            frame = pd.DataFrame({"tag": names, "time": start + seconds, "value": values}).take(order)
            frame.to_csv(file, header=False, index=False)


def peak() -> float:
    """The most memory that this process took, in MB; ru_maxrss would be at least that of its parent."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("VmHWM")) / 1024


def read_by_penstock(path: str) -> Any:
    from penstock.io import read_table

    return read_table(path, max_bytes=8 * 2**30).values


def read_by_pandas(path: str) -> Any:
    frame = pd.read_csv(path, parse_dates=["time"])
    frame["time"] = frame["time"].dt.floor("1min")
    return frame.groupby(["time", "tag"])["value"].mean().unstack()


def run_part(part: str, path: str) -> None:
    read = {"penstock": read_by_penstock, "pandas": read_by_pandas}[part]
    small = Path(path).with_name("small.csv")
    read(str(small))  # imports and compiled kernels
    before, began = peak(), time.process_time()
    table = read(path)
    seconds = time.process_time() - began
    result = {"part": part, "rows": len(table), "tags": table.shape[1], "CPU s": round(seconds, 1)}
    print(json.dumps({**result, "MB over start": round(peak() - before), "MB result": round(table.size * 8 / 2**20)}))


def run_live() -> None:
    from penstock.io import AlignedTag, Aligner, Alignment

    rng = np.random.default_rng(0)
    n = 200_000
    clock = Alignment(MINUTE, tuple(AlignedTag(f"t{i}", MINUTE, 2 * MINUTE) for i in range(TAGS)))
    codes, values = rng.integers(0, TAGS, n), rng.normal(size=n)
    times = np.arange(n) * MINUTE // TAGS + rng.integers(0, 2_000_000, n)  # up to 2 s out of order
    for size in (1, 10, 100):
        aligner = Aligner(clock, late=30_000_000)
        aligner.take(codes[:1], times[:1], values[:1])
        count = n if size > 1 else n // 4
        began, rows = time.process_time(), 0
        for first in range(1, count, size):
            part = slice(first, first + size)
            rows += len(aligner.take(codes[part], times[part], values[part]))
        rate = count / (time.process_time() - began)
        print(f"live, batches of {size}: {rate:,.0f} readings/s ({rows:,} rows, {aligner.too_late} too late)")


def main() -> None:
    if len(sys.argv) > 2:
        run_part(sys.argv[1], sys.argv[2])
        return
    rows = int(sys.argv[1]) if len(sys.argv) > 1 else 10_000_000
    run_live()
    with tempfile.TemporaryDirectory() as folder:
        write_long(Path(folder) / "small.csv", 20_000, by_tag=False)
        for by_tag in (False, True):
            path, order = Path(folder) / "long.csv", "tag by tag" if by_tag else "in order of time"
            write_long(path, rows, by_tag)
            print(f"{rows:,} rows, {path.stat().st_size / 2**20:,.0f} MB, {order}")
            for part in ("penstock", "pandas"):
                subprocess.run([sys.executable, __file__, part, str(path)], check=True)


if __name__ == "__main__":
    main()
