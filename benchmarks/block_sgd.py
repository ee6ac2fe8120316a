"""Algorithm 1 beside the exact minimum: a table over the twenty data sets, and the curve of docs/images/block-sgd.png.

    python benchmarks/block_sgd.py [table | picture]

CPU seconds of one thread. "Exact" is the lowest objective of five seeds of the default solver.
"""

from __future__ import annotations

import os
import sys
import time
import warnings
from pathlib import Path

os.environ["PENSTOCK_THREADS"] = "1"

import numpy as np

from penstock.factor import BlockSGD, Objective, fit_factors

PICTURE = Path(__file__).resolve().parents[1] / "docs" / "images" / "block-sgd.png"
SHOWN = ("Parkinson", "Glass")


def problem(name: str) -> Objective:
    """NS-NMF's objective with the paper's settings, on one of the twenty data sets."""
    from penstock import NSNMF
    from studies.ahmed2021.datasets import load

    detector = NSNMF(random_state=0, max_iter=1).fit(load(name).X)
    return detector.model_.problem.objective


def lowest(objective: Objective) -> float:
    return min(fit_factors(objective, 5, random_state=seed).objective for seed in range(5))


def one_step_for_all(objective: Objective, rounds: int) -> BlockSGD:
    """The same step for all entries: short enough for the row that has the largest similarities."""
    size = max(float(objective.structure.degree.max()), objective.norm_A**0.5)
    step = 1 / (4 * (3 * size + float(objective.structure.degree.max())) + 2 * 0.8 * size)
    return BlockSGD(first_step=step, last_step=step * 0.0035 / 0.04, rounds=rounds, stall=0.0)


def print_table() -> None:
    from studies.ahmed2021 import paper

    fit_factors(problem("Glass"), 5, BlockSGD(rounds=25), random_state=0)  # compile
    print(f"{'data set':18}{'exact':>12}{'BlockSGD()':>12}{'ratio':>8}{'rounds':>8}{'converged':>11}{'CPU s':>8}")
    for name in paper.characteristics.index:
        objective = problem(name)
        exact, started = lowest(objective), time.process_time()
        found = fit_factors(objective, 5, BlockSGD(), random_state=0)
        spent = time.process_time() - started
        rounds = min(found.n_iter * BlockSGD().n_blocks ** 2, BlockSGD().rounds)
        print(
            f"{name:18}{exact:12.6g}{found.objective:12.6g}{found.objective / exact:8.4f}{rounds:8}"
            f"{found.converged!s:>11}{spent:8.2f}",
            flush=True,
        )


def draw() -> None:
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    plt.rcParams.update({"font.size": 13, "axes.spines.top": False, "axes.spines.right": False})
    figure, axes = plt.subplots(len(SHOWN), 1, figsize=(6, 7.2), sharex=True, layout="constrained")
    for axis, name in zip(axes, SHOWN, strict=True):
        objective = problem(name)
        exact = lowest(objective)
        for settings, every, label, style in (
            (one_step_for_all(objective, 700), 10, "one step for all entries", {"color": "#D55E00", "ls": "--"}),
            (BlockSGD(rounds=700, stall=0.0), 25, "a step for each entry", {"color": "#0072B2", "ls": "-"}),
        ):
            history = fit_factors(objective, 5, settings, 1000, random_state=0).history
            rounds = every * np.arange(len(history))
            axis.plot(rounds, 100 * (history / exact - 1), lw=2.5, label=label, **style)
        axis.axhline(0, color="black", lw=1.5, ls=":", label="exact minimum")
        axis.set_title(name, loc="left")
        axis.set_ylabel("% above the minimum")
        axis.set_ylim(bottom=-1)
    axes[0].legend(frameon=False)
    axes[-1].set_xlabel("rounds of Algorithm 1")
    figure.savefig(PICTURE, dpi=130)


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    if sys.argv[1:] != ["picture"]:
        print_table()
    if sys.argv[1:] != ["table"]:
        draw()
