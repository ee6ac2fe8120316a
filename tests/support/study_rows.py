"""Rows of studies that were never run: what tables, tests and reports are tried on."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import pandas as pd

from penstock.bench.results import frame_of
from studies.ahmed2021 import paper
from studies.ahmed2021.rows import LABELS

SIZES = {name: tuple(map(int, sizes)) for name, *sizes in paper.characteristics.itertuples()}  # n, p, anomalies
PAPER_COLUMNS = {*paper.true_positives, *paper.lomst_true_positives, *paper.deep_true_positives}
ORACLE = "LoMST (best k)"
NO_SEED = {"LoMST", "LoMST (sd)", ORACLE, "MeanDistance", "KNNDistance"}
FORMS = ("symmetric", "laplacian")
GRAPHS = ("tree", "tree, 0-1", "5 nearest, 0-1", "gaussian")
Count = Callable[[str, str, int | None], float]


def make_rows(
    methods: Sequence[str] = ("NS-NMF", "Online NS-NMF", "NMF", "GNMF", "SNMF"),
    datasets: Sequence[str] = ("Glass", "Pima", "WBC"),
    seeds: Sequence[int] = (0, 1, 2),
    *,
    part: str = "paper",
    paper: str | None = None,
    sweep: str = "",
    base: str = "",
    value: Any = None,
    detections: Count | None = None,
    detail: Mapping[str, Any] | None = None,
    status: str = "ok",
    why: str = "",
    mark: str = "",
    fit_seconds: float | Count | None = None,
) -> pd.DataFrame:
    """Every method on every data set with every seed, all columns there; join several with pd.concat.

    `detections(method, dataset, seed)` is the number of true detections, some fixed number if not given.
    """
    cells, outcomes = [], {}
    for method in methods:
        for dataset in datasets:
            for seed in [None] if method in NO_SEED else seeds:
                cell = _cell(part, method, paper, sweep, base, value, dataset, seed)
                cells.append(cell)
                if status == "not run":
                    continue
                outcome: dict[str, Any] = {"status": status, "why": why, "mark": mark, "detail": dict(detail or {})}
                if method == ORACLE:
                    outcome["detail"]["uses_labels"] = True
                if status == "ok":
                    outcome |= _measures(cell, (detections or _some)(method, dataset, seed))
                    seconds = fit_seconds(method, dataset, seed) if callable(fit_seconds) else fit_seconds
                    outcome |= {"fit_seconds": seconds or 1.0, "cpu_seconds": seconds or 1.0}
                    outcome["peak_memory_mb"] = 100.0
                outcomes[cell["key"]] = outcome
    return frame_of(cells, outcomes, LABELS)


def paper_rows(seeds: Sequence[int] = (0, 1, 2)) -> pd.DataFrame:
    """Rows whose medians are the paper's tables of detections, and whose times on ALOI are the paper's."""
    figures = pd.concat([paper.true_positives, paper.lomst_true_positives, paper.deep_true_positives], axis=1)
    figures = figures.loc[:, ~figures.columns.duplicated()]
    minutes = paper.run_times["minutes"]
    middle = sorted(seeds)[len(seeds) // 2]

    def count(method: str, dataset: str, seed: int | None) -> float:
        around = 0 if seed is None else (seed > middle) - (seed < middle)
        return max(0, min(figures.loc[dataset, method] + around, size_of(dataset)[2]))

    def seconds(method: str, dataset: str, seed: int | None) -> float:
        return 60.0 * minutes[method] if dataset == "ALOI" and method in minutes else 2.0

    datasets = list(paper.characteristics.index)
    parts = {"paper": list(paper.true_positives), "lomst": ["LoMST"], "deep": ["NS-NMF", "AER", "DAGMM"]}
    return pd.concat(
        [
            make_rows(methods, datasets, seeds, part=part, detections=count, fit_seconds=seconds)
            for part, methods in parts.items()
        ],
        ignore_index=True,
    )


def study_rows() -> pd.DataFrame:
    """A small study with every part: the paper's methods, a failure, a mark, sweeps, variants, controls."""
    datasets = ["Glass", "Pima", "WBC", "Parkinson", "WDBC"]
    parts = [
        make_rows(datasets=datasets),
        make_rows(["LoMST", ORACLE], datasets, part="lomst", paper="LoMST"),
        make_rows(["AER", "DAGMM"], datasets[1:], part="deep", mark="fewer rounds"),
        make_rows(["DAGMM"], datasets[:1], part="deep", status="timed out", why="longer than 60 s"),
        make_rows(["AER"], datasets[:1], part="deep", status="not run"),
        make_rows(["MeanDistance", "KNNDistance"], datasets, part="controls"),
        central_claim_rows(datasets),
        sweep_rows("K", [2, 5, 10, 15, 20, 25], datasets),
        sweep_rows("alpha", [0.2, 0.8, 3.2], datasets, methods=["NS-NMF"]),
        make_rows(["NS-NMF, block SGD", "NS-NMF, relative"], datasets, part="nearest", paper="NS-NMF"),
    ]
    return pd.concat(parts, ignore_index=True)


def central_claim_rows(
    datasets: Sequence[str], seeds: Sequence[int] = (0, 1, 2), detections: Count | None = None
) -> pd.DataFrame:
    """Both forms of the objective on all four graphs."""
    return pd.concat(
        [
            make_rows(
                [f"{form}, {graph}"],
                datasets,
                seeds,
                part="central claim",
                detections=detections,
                detail={"form": form, "graph": graph},
            )
            for form in FORMS
            for graph in GRAPHS
        ],
        ignore_index=True,
    )


def sweep_rows(
    sweep: str,
    values: Sequence[Any],
    datasets: Sequence[str],
    methods: Sequence[str] = ("NS-NMF", "NMF"),
    detections: Callable[[str, Any, str], float] | None = None,
) -> pd.DataFrame:
    """A sensitivity sweep; `detections(base, value, dataset)`."""
    made = []
    for base in methods:
        for value in values:

            def count(method: str, dataset: str, seed: int | None, base: str = base, value: Any = value) -> float:
                return detections(base, value, dataset) if detections else _some(method, dataset, seed)

            name = f"{base}, {sweep} = {value}"
            fixed = {"part": "sensitivity", "sweep": sweep, "base": base, "value": value, "paper": ""}
            made.append(make_rows([name], datasets, (0, 1), detections=count, **fixed))
    return pd.concat(made, ignore_index=True)


def size_of(dataset: str) -> tuple[int, int, int]:
    """n, p, anomalies: the paper's, or some for another name."""
    return SIZES.get(dataset, (100, 5, 10))


def _cell(
    part: str, method: str, column: str | None, sweep: str, base: str, value: Any, dataset: str, seed: int | None
) -> dict[str, Any]:
    if column is None:
        column = method if method in PAPER_COLUMNS else ""
    n, p, anomalies = size_of(dataset)
    key = hashlib.sha256(repr((method, sweep, base, value, dataset, seed)).encode()).hexdigest()[:16]
    labels = {"part": part, "paper": column, "sweep": sweep, "base": base, "value": value}
    planned = {"method": method, "dataset": dataset, "seed": seed, "n": n, "p": p, "n_anomalies": anomalies, "key": key}
    return labels | planned


def _measures(cell: Mapping[str, Any], count: float) -> dict[str, float]:
    share = float(count) / cell["n_anomalies"]
    return {
        "true_detections": float(count),
        "precision_at_n": share,
        "roc_auc": 0.5 + share / 2,
        "average_precision": 0.9 * share,
    }


def _some(method: str, dataset: str, seed: int | None) -> float:
    digest = hashlib.sha256(repr((method, dataset)).encode()).digest()
    top = size_of(dataset)[2]
    return float(min(top, digest[0] % (top + 1) + (seed or 0) % 2))
