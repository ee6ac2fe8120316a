"""Compare the spanning tree with those of mlpack, hdbscan, fast_hdbscan and scikit-learn, in one run.

    python benchmarks/mst.py [--quick | --far] [--limit SECONDS]

Every method gets the same table in a process of its own and is called once beforehand, so that nothing is compiled
while the clock runs. Medians of three. The ratio is the fastest peer's time over ours: above 1 we are faster.

Then the tree of Penstock alone: how its time grows with the rows, and what rows cost that are very far from the others:
at most three times the CPU time of the same rows without them.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from typing import Any

import numpy as np
from generate import KINDS, clustered
from timing import Timing, Worker

from penstock._types import FloatArray

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


def far_row(n: int, apart: bool) -> FloatArray:
    """Normal rows, and one row of 1e10 or another normal one."""
    X = np.random.default_rng(0).normal(size=(n + 1, 5))
    if apart:
        X[-1] = 1e10
    return X


def far_clusters(n: int, apart: bool) -> FloatArray:
    """Two clusters of standard deviation 1, at 1e9 or 10 from each other in each of 8 columns."""
    rng = np.random.default_rng(0)
    return rng.normal(size=(n, 8)) + (1e9 if apart else 10.0) * rng.integers(2, size=(n, 1))


def one_hot(n: int, apart: bool) -> FloatArray:
    """Fifty corners and noise of a millionth of their distance, or of a twentieth: clusters that barely part."""
    rng = np.random.default_rng(0)
    return np.eye(50)[rng.integers(50, size=n)] + (1e-6 if apart else 0.05) * rng.normal(size=(n, 50))


# what is built, of which rows, and how many
FAR = {
    "Detector.fit, a row of 1e10": ("detector", far_row, 40_000),
    "tree, a row of 1e10": ("tree", far_row, 40_000),
    "tree, clusters 1e9 apart": ("tree", far_clusters, 20_000),
    "tree, one-hot and 1e-6 noise": ("tree", one_hot, 20_000),
}
MOST_FOR_FAR = 3.0


def build_far(name: str, apart: bool) -> Callable[[], float]:
    from penstock import minimum_spanning_tree
    from penstock.detectors import Detector

    kind, rows, n = FAR[name]
    small, X = rows(6_000, apart), rows(n, apart)
    if kind == "tree":
        minimum_spanning_tree(small)
        return lambda: minimum_spanning_tree(X).total_length
    Detector().fit(small)
    return lambda: float(Detector().fit(X).tree_.total_length)


def far() -> list[str]:
    """Measure each case with and without what is far off, print its line, return the bars that are missed."""
    worker, missed = Worker(build_far), []
    print(f"\nFar-off rows: seconds of CPU time; ratio = with them / without (bar: {MOST_FOR_FAR:.0f})")
    for name, (_, _, n) in FAR.items():
        without, apart = (worker.run((name, far_off), limit=120.0) for far_off in (False, True))
        if isinstance(without, str) or isinstance(apart, str):
            missed.append(f"{name}: {without}, {apart}")
            continue
        ratio = apart.cpu / without.cpu
        print(f"{name:>30} {n:>7} {without.cpu:8.2f} {apart.cpu:8.2f} {ratio:6.1f}")
        sys.stdout.flush()
        missed += [] if ratio <= MOST_FOR_FAR else [f"{name}: {ratio:.1f} × the time without"]
    worker.close()
    return missed


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
    from sklearn.cluster._hdbscan._linkage import mst_from_data_matrix
    from sklearn.metrics import DistanceMetric

    X = KINDS[kind](n, p)
    metric = DistanceMetric.get_metric("euclidean")
    return lambda: float(mst_from_data_matrix(X, np.zeros(n), metric, 1.0)["distance"].sum())


PEERS = {"mlpack": mlpack, "hdbscan": hdbscan, "fast_hdbscan": fast_hdbscan, "scikit-learn": scikit_learn}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="only the cells with a promise and n = 1,000")
    parser.add_argument("--far", action="store_true", help="only the rows that are far off")
    parser.add_argument("--limit", type=float, default=60.0, help="seconds a peer gets for a cell")
    options = parser.parse_args()
    missed = [] if options.far else against_peers(options.quick, options.limit)
    missed += far()
    print("\n".join(["", "All bars met."] if not missed else ["", "NOT MET:", *missed]))
    return 1 if missed else 0


def against_peers(quick: bool, limit: float) -> list[str]:
    """Measure all cells, print their lines, return the bars that are missed."""
    workers = {name: Worker(setup) for name, setup in {"ours": ours, **PEERS}.items()}
    print("Spanning tree: seconds of wall (CPU) time; ratio = fastest peer / ours")
    print(f"{'data':>10} {'n':>7} {'p':>4} " + " ".join(f"{name:>17}" for name in workers) + "   ratio wall   cpu")
    missed = []
    too_slow: set[tuple[str, str, int]] = set()
    for kind in ("clustered", "uniform"):
        for n in SIZES:
            for p in COLUMNS:
                if not quick or (kind, n, p) in PROMISES or n == SIZES[0]:
                    missed += compare((kind, n, p), workers, limit, too_slow)
    for worker in workers.values():
        worker.close()
    return missed + growth()


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


def build_growth(n: int, dimensions: int) -> Callable[[], float]:
    from penstock import minimum_spanning_tree

    for warm in (300, 60_000):  # both strategies
        minimum_spanning_tree(clustered(warm, 27, intrinsic=dimensions))
    X = clustered(n, 27, clusters=50, intrinsic=dimensions)
    return lambda: minimum_spanning_tree(X).total_length


def growth() -> list[str]:
    """Print how the time grows from 250,000 to 1,000,000 rows, by how many dimensions the data fill."""
    worker, missed = Worker(build_growth), []
    print("\nGrowth, 50 clusters in 27 columns: CPU seconds; exponent of n (goal: 1.3)")
    for dimensions in (2, 6, 12, 27):
        results = [worker.run((n, dimensions), limit=1800.0, repeats=1) for n in (250_000, 1_000_000)]
        if any(isinstance(each, str) for each in results):
            missed.append(f"growth, {dimensions} dimensions: {results}")
            continue
        less, more = (each for each in results if isinstance(each, Timing))
        exponent = np.log(more.cpu / less.cpu) / np.log(4)
        print(f"{dimensions:>4} dimensions {less.cpu:8.1f} {more.cpu:8.1f}  {exponent:.2f}", end="")
        print(f"   {more.wall:.0f} s wall, peak {more.peak_mb:.0f} MB (bar: 900 s, 4,000 MB)", flush=True)
        missed += [] if more.wall < 900 and more.peak_mb < 4000 else [f"1,000,000 × 27, {dimensions} dimensions"]
    worker.close()
    return missed


if __name__ == "__main__":
    sys.exit(main())
