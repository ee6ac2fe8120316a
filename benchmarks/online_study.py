"""The study of online NS-NMF: the choices that the paper leaves open, in Markdown.

    python benchmarks/online_study.py

Needs the paper's data sets in the folder that PENSTOCK_DATA names. Takes about five minutes; progress goes to stderr,
if that is a terminal. Detection figures are the same in every run; times are CPU times and vary a little.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from statistics import fmean, median, stdev
from typing import Any, get_args

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from penstock import OnlineNSNMF
from penstock._types import FloatArray
from penstock.bench import Dataset, roc_auc
from penstock.graph.similarities import Kind
from penstock.ranking import precision_at_n

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))  # the folder that studies/ is in
from studies.ahmed2021.datasets import data_folder, load, names

N_SHUFFLES = 10
BUFFER = 20  # the default, and the paper's

SETS = ("Glass", "WDBC", "Cardiotocography", "PageBlocks", "ALOI")
TIMED = ("PageBlocks", "ALOI")  # of 10 and 27 columns
BUFFERS = (10, 20, 50, 100, 200, 500)
REFRESHES = (1, 2, 5, 20, 0)
FORGETTINGS = (1.0, 0.999, 0.99)
KINDS: tuple[Kind, ...] = get_args(Kind)
MOST_ROWS = 3_000  # of a set, in all parts but the first

STRETCHES = ((0, 50), (50, 200), (200, 1000))  # samples after the warm-up; what comes later is what they settle to


DAY = 288  # samples of the made-up plant, one in five minutes
BED_WARMUP = 300  # seconds; in all runs but one, faults begin after 490 or more
IN_ORDER: tuple[dict[str, Any], ...] = (
    {"buffer_size": 100},
    {"refresh_every": 5},
    {"refresh_every": 0},
    {"forgetting": 0.999},
    {"forgetting": 0.99},
    {"learn_flagged": False},
    {"alpha": 8.0},
)
Scored = tuple[NDArray[np.int64], FloatArray]  # labels and scores


@dataclass(frozen=True)
class Run:
    """Scores of all rows (those of the warm-up are residuals of its fit), and CPU time per sample after the warm-up."""

    scores: FloatArray
    microseconds: float


@dataclass(frozen=True)
class Quality:
    """How well one setting does on one set: means over the shuffles, the standard error of P@N, the least time."""

    precision: float
    error: float
    auc: float
    microseconds: float


def main() -> int:
    try:
        data_folder()
    except FileNotFoundError as problem:
        print(problem, file=sys.stderr)
        return 1
    started = time.perf_counter()
    stream(np.random.default_rng(0).random((100, 3)), 0)  # compile
    compare_kinds()
    vary("buffer_size", BUFFERS)
    vary("buffer_size", BUFFERS, similarity="binary")
    vary("refresh_every", REFRESHES)
    vary("refresh_every", REFRESHES, similarity="binary")
    vary("forgetting", FORGETTINGS)
    vary("forgetting", FORGETTINGS, similarity="binary")
    vary("similarity", KINDS)
    settle()
    follow()
    progress(f"{time.perf_counter() - started:.0f} s\n")
    return 0


def stream(X: FloatArray, seed: int, **options: Any) -> Run:
    """The rows in this order through a detector of their own."""
    detector = OnlineNSNMF(scale=None, random_state=seed, **options)
    detector.update_many(X[: detector.buffer_size])
    started = time.process_time()
    later = detector.update_many(X[detector.buffer_size :])
    took = time.process_time() - started
    return Run(np.concatenate([detector.warmup_scores_, later]), 1e6 * took / len(later))


def shuffles(data: Dataset, count: int, most: int | None = None) -> Iterator[tuple[int, Dataset]]:
    """Seeds, and the rows in the order each seed gives, at most so many of them."""
    for seed in range(count):
        order = np.random.default_rng(seed).permutation(data.n)[:most]
        yield seed, Dataset(data.name, data.X[order], data.y[order])


def compare_kinds() -> None:
    """The similarities on all twenty sets."""
    print("### Similarities on all twenty sets\n")
    print(f"Defaults otherwise; {N_SHUFFLES} shuffles of at most {MOST_ROWS:,} rows, all rows scored.\n")
    results: dict[Kind, list[tuple[float, float]]] = {kind: [] for kind in KINDS}
    for name in names():
        progress(f"similarities: {name}")
        for seed, s in shuffles(load_once(name), N_SHUFFLES, MOST_ROWS):
            for kind in KINDS:
                scores = stream(s.X, seed, similarity=kind).scores
                results[kind].append((precision_at_n(s.y, scores), roc_auc(s.y, scores)))
    rows = [[f'"{kind}"', *(f"{fmean(column):.3f}" for column in zip(*results[kind], strict=True))] for kind in KINDS]
    table(["similarity", "mean P@N", "mean ROC-AUC"], rows, left=1)


def vary(option: str, values: Sequence[Any], **others: Any) -> None:
    """One parameter, the others as they are by default or as given."""
    print(f"### {option}{''.join(f', with {name}={value!r}' for name, value in others.items())}\n")
    print("P@N · ROC-AUC, means over shuffles; CPU time of a sample after the warm-up.\n")
    default = getattr(OnlineNSNMF(), option)
    rows, noise = [], [""]
    for value in values:
        progress(f"{option} = {value} {others or ''}")
        qualities = {name: score(name, **others, **{option: value}) for name in SETS}
        known = [quality for quality in qualities.values() if quality is not None]
        means = pair(average(known)) if len(known) == len(SETS) else "–"
        times = [f"{q.microseconds:,.0f}" if (q := qualities[name]) else "–" for name in TIMED]
        shown = f'"{value}"' if isinstance(value, str) else f"{value:g}"
        rows.append([shown, *map(pair, qualities.values()), means, *times])
        if value == default:
            noise = [f"± {quality.error:.2f}" for quality in known]
    rows.append(["(standard error)", *noise, "", "", ""])
    table([f"`{option}`", *SETS, "mean", "µs, 10 columns", "µs, 27 columns"], rows, left=1)


def score(name: str, **options: Any) -> Quality | None:
    """The quality over shuffles on the same rows for all options, those after the largest buffer. None: too few rows.

    Small sets are shuffled more often, as their few anomalies say little.
    """
    data = load_once(name)
    n = min(data.n, MOST_ROWS)
    start = min(BUFFERS[-1], n // 2)
    if options.get("buffer_size", 0) > start:
        return None
    precisions, aucs, times = [], [], []
    for seed, s in shuffles(data, 20 if n < 1000 else 5, MOST_ROWS):
        run = stream(s.X, seed, **options)
        precisions.append(precision_at_n(s.y[start:], run.scores[start:]))
        aucs.append(roc_auc(s.y[start:], run.scores[start:]))
        times.append(run.microseconds)
        if name in TIMED and run.microseconds < 100:  # others use the machine, too: quick runs get more chances
            times += [stream(s.X, seed, **options).microseconds for _ in range(4)]
    return Quality(fmean(precisions), stdev(precisions) / len(precisions) ** 0.5, fmean(aucs), min(times))


def average(qualities: list[Quality]) -> Quality:
    columns = ([getattr(q, name) for q in qualities] for name in ("precision", "error", "auc", "microseconds"))
    return Quality(*map(fmean, columns))


def pair(quality: Quality | None) -> str:
    return "–" if quality is None else f"{quality.precision:.2f} · {quality.auc:.2f}"


def settle() -> None:
    """How long scores take to come down, or up, to where they stay."""
    print("### Settling after the warm-up\n")
    print("Median score of the samples named, over that of all later ones; median over 10 shuffles (draws).\n")
    sources: dict[str, Callable[[int], FloatArray]] = {
        "Cardiotocography": lambda seed: shuffled_rows("Cardiotocography", seed),
        "PageBlocks": lambda seed: shuffled_rows("PageBlocks", seed),
        "ALOI": lambda seed: shuffled_rows("ALOI", seed),
        "readings ± 5 %": lambda seed: steady_readings(0.1, seed),
        "readings ± 0.5 %": lambda seed: steady_readings(0.01, seed),
    }
    rows = []
    for name, draw in sources.items():
        progress(f"settling: {name}")
        for kind in KINDS:
            ratios = [settling(stream(draw(seed), seed, similarity=kind).scores) for seed in range(N_SHUFFLES)]
            rows.append([name, f'"{kind}"', *(f"{median(column):.2f}" for column in zip(*ratios, strict=True))])
    table(["table", "similarity", "warm-up", *(f"{start + 1}–{stop}" for start, stop in STRETCHES)], rows, left=2)


def shuffled_rows(name: str, seed: int) -> FloatArray:
    X = load_once(name).X
    return X[np.random.default_rng(seed).permutation(len(X))[:MOST_ROWS]]


def steady_readings(width: float, seed: int) -> FloatArray:
    """Four sensors that stay where they are, but for noise that is uniform and so wide."""
    rng = np.random.default_rng(seed)
    levels: FloatArray = np.array([0.2, 0.4, 0.6, 0.8])
    return levels + width * (rng.random((5000, 4)) - 0.5)


def settling(scores: FloatArray) -> list[float]:
    warmup, scores = scores[:BUFFER], scores[BUFFER:]
    parts = [warmup, *(scores[start:stop] for start, stop in STRETCHES)]
    return [float(np.median(part) / np.median(scores[STRETCHES[-1][1] :])) for part in parts]


def follow() -> None:
    """Streams in time order, where neighbours in time are alike: a made-up plant, and a real test bed."""
    print("### In time order\n")
    print(f"Means over {N_SHUFFLES} plants (P@N · ROC-AUC) and over the runs of SKAB (ROC-AUC); scale='auto'.\n")
    plants = [plant(seed) for seed in range(N_SHUFFLES)]
    runs = bed_runs()
    rows = []
    for options in (*({"similarity": kind} for kind in KINDS), *({"similarity": "binary"} | more for more in IN_ORDER)):
        progress(f"in time order: {options}")
        ours = [(labels, follow_one(X, 2 * DAY, options)) for X, labels in plants]
        beds = [(labels, follow_one(X, BED_WARMUP, options)) for X, labels in runs]
        rows.append([", ".join(f"{name}={value!r}" for name, value in options.items()), *in_order_cells(ours, beds)])
    ours = [(labels, distance_from_start(X, 2 * DAY)) for X, labels in plants]
    beds = [(labels, distance_from_start(X, BED_WARMUP)) for X, labels in runs]
    rows.append(["no method: distance from the mean of the warm-up", *in_order_cells(ours, beds)])
    table(["setting", "plant", f"SKAB, {len(runs)} runs"], rows, left=1)


def follow_one(X: FloatArray, warmup: int, options: dict[str, Any]) -> FloatArray:
    return OnlineNSNMF(warmup=warmup, random_state=0, **options).update_many(X)


def distance_from_start(X: FloatArray, warmup: int) -> FloatArray:
    """The trivial score: in standard deviations of the warm-up."""
    start = X[:warmup]
    scores: FloatArray = np.linalg.norm((X - start.mean(axis=0)) / start.std(axis=0), axis=1)
    scores[:warmup] = np.nan
    return scores


def in_order_cells(ours: list[Scored], beds: list[Scored]) -> tuple[str, str]:
    plants = [(precision_at_n(*scored), roc_auc(*scored)) for scored in map(after_warmup, ours)]
    precision, auc = (fmean(column) for column in zip(*plants, strict=True))
    bed = f"{fmean(roc_auc(*after_warmup(scored)) for scored in beds):.2f}" if beds else "–"
    return f"{precision:.2f} · {auc:.2f}", bed


def after_warmup(scored: Scored) -> Scored:
    labels, scores = scored
    return labels[~np.isnan(scores)], scores[~np.isnan(scores)]


def plant(seed: int) -> tuple[FloatArray, NDArray[np.int64]]:
    """Two weeks of four sensors that follow one load, up and down once a day; 30 samples have a reading 50 % off."""
    rng = np.random.default_rng(seed)
    n = 14 * DAY
    load = 0.5 + 0.4 * np.sin(np.arange(n) * 2 * np.pi / DAY) + 0.02 * rng.normal(size=n)
    X = np.column_stack([load, load**2, 1 - 0.5 * load, 0.5 * load]) + 0.02 * rng.normal(size=(n, 4))
    labels = np.zeros(n, dtype=np.int64)
    for row in rng.choice(np.arange(3 * DAY, n), 30, replace=False):
        X[row, rng.integers(4)] *= rng.choice([0.5, 1.5])
        labels[row] = 1
    return X * [40.0, 12.0, 8.0, 300.0], labels


def bed_runs() -> list[tuple[FloatArray, NDArray[np.int64]]]:
    """SKAB: 34 runs of a water-circulation test bed with labelled faults. Empty where there is no such file."""
    path = Path(os.environ["PENSTOCK_DATA"]).expanduser() / "industrial" / "SKAB.csv.gz"
    if not path.is_file():
        return []
    bed = pd.read_csv(path)
    sensors = bed.columns.drop(["run", "t", "changepoint", "outlier"])
    faulty = [run for _, run in bed.groupby("run", sort=False) if run["outlier"].any()]
    return [(np.array(run[sensors], dtype=np.float64), np.array(run["outlier"], dtype=np.int64)) for run in faulty]


@cache
def load_once(name: str) -> Dataset:
    return load(name)


def table(heads: list[str], rows: Iterable[list[Any]], left: int) -> None:
    """A Markdown table, the first `left` columns flush left and the others right."""
    print("| " + " | ".join(heads) + " |")
    print("|" + " --- |" * left + " ---: |" * (len(heads) - left))
    for row in rows:
        print("| " + " | ".join(map(str, row)) + " |")
    print(flush=True)


def progress(words: str) -> None:
    if sys.stderr.isatty():
        print(f"\r{words:<60}", end="", file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main())
