"""How long a newcomer waits: import, first call with compiled kernels at hand, and the very first call of all.

    python benchmarks/start.py

Each figure is taken in fresh processes; the median of three where it is cheap.
"""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

IMPORT = "import penstock"
FIRST_CALL = """
import time
import penstock
from penstock import NSNMF, minimum_spanning_tree
import numpy as np
X = np.random.default_rng(0).normal(size=(6000, 5))
started = time.perf_counter()
minimum_spanning_tree(X)                          # the kd-tree
minimum_spanning_tree(X[:100])                    # Prim
NSNMF(random_state=0).fit(X[:500]).predict(X[:5]) # the factors, and new rows
print(time.perf_counter() - started)
"""
# The names load on first use, so that the imports of numba and scikit-learn count in the first call, not in the import.
FIRST_CALL_OF_ALL = """
import time
import penstock
started = time.perf_counter()
import numpy as np
penstock.NSNMF(random_state=0).fit(np.random.default_rng(0).normal(size=(6000, 7)))
print(time.perf_counter() - started)
"""
COMPILE_ALL = """
import time
started = time.perf_counter()
import warnings, numpy as np, penstock
from penstock.factor import BlockSGD
X = np.random.default_rng(0).normal(size=(6000, 5))
penstock.minimum_spanning_tree(X)
with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    for detector in (
        penstock.NSNMF(), penstock.NSNMF(solver=BlockSGD(), max_iter=5), penstock.LoMST(), penstock.KNNDistance()
    ):
        detector.fit(X[:300]).predict(X[:5])
penstock.OnlineNSNMF(random_state=0).fit(X[:300]).predict(X[:5])
print(time.perf_counter() - started)
"""


def seconds(code: str, **environment: str) -> tuple[float, float]:
    """Wall time of a fresh process, less that of an empty one, and the last number it printed (or 0)."""
    started = time.perf_counter()
    done = subprocess.run(
        [sys.executable, "-c", code], env=os.environ | environment, check=True, capture_output=True, text=True
    )
    return time.perf_counter() - started, float(done.stdout.split()[-1]) if done.stdout.split() else 0.0


def main() -> int:
    seconds(FIRST_CALL)  # fills the cache
    empty = statistics.median(seconds("pass")[0] for _ in range(3))
    figures = {
        "import penstock": (statistics.median(seconds(IMPORT)[0] for _ in range(3)) - empty, 1.0),
        "then the first fit, kernels cached": (statistics.median(seconds(FIRST_CALL_OF_ALL)[1] for _ in range(3)), 2.0),
    }
    with tempfile.TemporaryDirectory() as folder:
        figures["everything compiled again"] = seconds(COMPILE_ALL, NUMBA_CACHE_DIR=folder)[1], 30.0
        kept = sum(file.stat().st_size for file in Path(folder).rglob("*") if file.is_file()) / 1e6
    loaded = statistics.median(seconds(FIRST_CALL)[1] for _ in range(3))
    print("Start, in seconds (the bar behind it):")
    missed = []
    for name, (measured, bar) in figures.items():
        print(f"  {name:<36} {measured:6.2f}  ({bar:g})")
        missed += [] if measured < bar else [name]
    print(f"  (a first call once scikit-learn and numba are imported: {loaded:.2f})")
    print(f"  kernel cache on disk: {kept:.1f} MB")
    print("All bars met." if not missed else f"NOT MET: {', '.join(missed)}")
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
