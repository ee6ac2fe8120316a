"""Our spanning tree beside mlpack, hdbscan, fast_hdbscan and scikit-learn, in one run.

    python benchmarks/mst.py [--quick] [--limit SECONDS]

Every method gets the same table in a process of its own and is called once beforehand, so that nothing is compiled
while the clock runs. Medians of three. The ratio is the fastest peer's time over ours: above 1 we are faster.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from typing import Any

from generate import KINDS, clustered
from timing import Timing, Worker

SIZES = (1_000, 10_000, 50_000)
COLUMNS = (3, 9, 27, 60, 222)
# (kind, n, p) → how many times as fast as the fastest peer we promise to be
PROMISES = {
    ("clustered", 50_000, 3): 1.5,
    ("uniform", 50_000, 3): 1.5,
    ("clustered", 50_000, 9): 3.0,
    ("clustered", 50_000, 27): 3.0,
}


def ours(kind: str, n: int, p: int) -> Callable[[], float]:
    from penstock import minimum_spanning_tree

    for warm in (300, 6_000):  # both strategies
        minimum_spanning_tree(clustered(warm, 3))
    X = KINDS[kind](n, p)
    return lambda: minimum_spanning_tree(X).total_length


def mlpack(kind: str, n: int, p: int) -> Callable[[], float]:
    import mlpack as library

    X = KINDS[kind](n, p)

    def tree() -> float:
        answer: Any = library.emst(X)
        return float((answer["output"] if isinstance(answer, dict) else answer)[:, 2].sum())

    return tree


def hdbscan(kind: str, n: int, p: int) -> Callable[[], float]:
    from hdbscan._hdbscan_boruvka import KDTreeBoruvkaAlgorithm
    from sklearn.neighbors import KDTree

    X = KINDS[kind](n, p)

    def tree() -> float:
        boruvka = KDTreeBoruvkaAlgorithm(KDTree(X, leaf_size=20), 1, leaf_size=20, approx_min_span_tree=False)
        return float(boruvka.spanning_tree()[:, 2].sum())

    return tree


def fast_hdbscan(kind: str, n: int, p: int) -> Callable[[], float]:
    from fast_hdbscan.hdbscan import compute_minimum_spanning_tree

    compute_minimum_spanning_tree(clustered(300, p), min_samples=1)
    X = KINDS[kind](n, p)
    return lambda: float(compute_minimum_spanning_tree(X, min_samples=1)[0][:, 2].sum())


def scikit_learn(kind: str, n: int, p: int) -> Callable[[], float]:
    import numpy as np
    from sklearn.cluster._hdbscan._linkage import mst_from_data_matrix
    from sklearn.metrics import DistanceMetric

    X = KINDS[kind](n, p)
    metric = DistanceMetric.get_metric("euclidean")
    return lambda: float(mst_from_data_matrix(X, np.zeros(n), metric, 1.0)["distance"].sum())


PEERS = {"mlpack": mlpack, "hdbscan": hdbscan, "fast_hdbscan": fast_hdbscan, "scikit-learn": scikit_learn}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="only the cells with a promise and n = 1,000")
    parser.add_argument("--limit", type=float, default=60.0, help="seconds a peer gets for a cell")
    options = parser.parse_args()
    workers = {name: Worker(setup) for name, setup in {"ours": ours, **PEERS}.items()}
    print("Spanning tree: seconds of wall (CPU) time; ratio = fastest peer / ours")
    print(f"{'data':>10} {'n':>7} {'p':>4} " + " ".join(f"{name:>17}" for name in workers) + "   ratio wall   cpu")
    missed = []
    too_slow: set[tuple[str, str, int]] = set()
    for kind in ("clustered", "uniform"):
        for n in SIZES:
            for p in COLUMNS:
                if not options.quick or (kind, n, p) in PROMISES or n == SIZES[0]:
                    missed += compare((kind, n, p), workers, options.limit, too_slow)
    for worker in workers.values():
        worker.close()
    missed += million()
    print("\n".join(["", "All bars met."] if not missed else ["", "NOT MET:", *missed]))
    return 1 if missed else 0


def compare(cell: tuple[str, int, int], workers: dict[str, Worker], limit: float, too_slow: set[Any]) -> list[str]:
    """Measure one cell, print its line, return the bars it misses."""
    kind, n, p = cell
    results: dict[str, Timing | str] = {}
    for name, worker in workers.items():
        if (name, kind, n) in too_slow:  # more columns would only take longer
            results[name] = "-"
            continue
        results[name] = worker.run(cell, 10 * limit if name == "ours" else limit)
        if isinstance(results[name], str):
            too_slow.add((name, kind, n))
    mine = results["ours"]
    if isinstance(mine, str):
        return [f"{cell}: ours {mine}"]
    peers = {k: v for k, v in results.items() if k != "ours" and isinstance(v, Timing)}
    # fast_hdbscan searches in float32 and, beyond 30 columns, only approximately: other lengths do not compete
    exact = [v for v in peers.values() if abs(v.value - mine.value) <= 1e-6 * mine.value]
    wall = min((v.wall for v in exact), default=float("inf")) / mine.wall
    cpu = min((v.cpu for v in exact), default=float("inf")) / mine.cpu
    shown = [
        (f"{v.wall:.3f} ({v.cpu:.3f})" + ("" if v is mine or v in exact else "~")) if isinstance(v, Timing) else v
        for v in results.values()
    ]
    print(f"{kind:>10} {n:>7} {p:>4} " + " ".join(f"{text:>17}" for text in shown) + f"   {wall:10.1f} {cpu:5.1f}")
    sys.stdout.flush()
    promise = PROMISES.get(cell, 1.0)
    return [] if wall >= promise else [f"{kind} {n} × {p}: {wall:.2f} × the fastest peer, {promise} promised"]


def million() -> list[str]:
    worker = Worker(ours)
    result = worker.run(("clustered", 1_000_000, 27), limit=1800.0, repeats=1)
    worker.close()
    if isinstance(result, str):
        return [f"1,000,000 × 27: {result}"]
    print(
        f"\n1,000,000 × 27 clustered: {result.wall:.0f} s wall, {result.cpu:.0f} s CPU, peak {result.peak_mb:.0f} MB "
        "(bar: 900 s, 4,000 MB)"
    )
    return [] if result.wall < 900 and result.peak_mb < 4000 else ["1,000,000 × 27"]


if __name__ == "__main__":
    sys.exit(main())
