"""From a study's settings to its cells: each a method on a data set with a seed, known by the content of all three."""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from penstock.bench.cell import Job
from penstock.bench.code_digest import code_digest
from penstock.bench.datasets import Dataset, load
from penstock.bench.methods import MethodError, build, find_class, takes_seed, with_defaults
from penstock.bench.settings import Method, Study


@dataclass(frozen=True, eq=False)
class Cell:
    """A method on a data set with a seed. `trouble` says why it cannot even be tried."""

    method: Method
    dataset: str
    seed: int | None
    key: str
    data: Dataset | None
    trouble: str = ""

    @property
    def parameters(self) -> Mapping[str, Any]:
        return self._special.parameters if self._special else self.method.parameters

    @property
    def mark(self) -> str:
        return self._special.mark if self._special else ""

    @property
    def _special(self) -> Any:
        above = self.method.above
        return above if above is not None and self.data is not None and self.data.n > above.rows else None

    def planned(self) -> dict[str, Any]:
        """The cell as a row, before anything came of it."""
        method, data = self.method, self.data
        return {
            "part": method.part,
            "method": method.name,
            "paper": method.paper,
            "sweep": method.sweep,
            "base": method.base,
            "value": method.value,
            "dataset": self.dataset if data is None else data.name,
            "seed": self.seed,
            "n": 0 if data is None else min(data.n, method.rows or data.n),
            "p": 0 if data is None else data.p,
            "n_anomalies": 0 if data is None else data.n_anomalies,
            "key": self.key,
        }


def plan(study: Study) -> Iterator[Cell]:
    """All cells of a study. Data sets are read; one that cannot be is a trouble of its cells, not the end."""
    data = _told_apart({name: _read(name) for name in dict.fromkeys(_used_datasets(study))})
    for method in study.methods:
        seeds, trouble = _seeds(method, study)
        for name in method.datasets or study.datasets:
            dataset, why = data[name]
            for seed in seeds:
                yield _cell(method, name, dataset, seed, trouble or why)


def _used_datasets(study: Study) -> Iterator[str]:
    for method in study.methods:
        yield from method.datasets or study.datasets


def _told_apart(data: dict[str, tuple[Dataset | None, str]]) -> dict[str, tuple[Dataset | None, str]]:
    """Files of the same name in different folders are called as they were given."""
    count = Counter(dataset.name for dataset, _ in data.values() if dataset is not None)
    return {
        given: (replace(dataset, name=given), why) if dataset is not None and count[dataset.name] > 1 else (dataset, why)
        for given, (dataset, why) in data.items()
    }


def _read(name: str) -> tuple[Dataset | None, str]:
    try:
        dataset = load(name)
    except (OSError, ValueError) as error:
        return None, str(error)
    if dataset.n_anomalies in (0, dataset.n):
        none_or_all = "no anomaly" if dataset.n_anomalies == 0 else "nothing but anomalies"
        return dataset, f"Data set {dataset.name} has {none_or_all}: there is nothing to tell apart."
    return dataset, ""


def _seeds(method: Method, study: Study) -> tuple[tuple[int | None, ...], str]:
    """The seeds of a method, one None where chance has no part; and why it cannot be built."""
    try:
        cls = find_class(method.detector)
        build(method.detector, method.parameters)
    except MethodError as error:
        return (None,), str(error)
    by_chance = takes_seed(cls) or method.order == "shuffled" or method.rows is not None
    return (method.seeds or study.seeds) if by_chance else (None,), ""


def _cell(method: Method, name: str, dataset: Dataset | None, seed: int | None, trouble: str) -> Cell:
    cell = Cell(method, name, seed, "", dataset, trouble)
    content = {
        "detector": method.detector,
        "code": trouble or code_digest(method.detector),
        "parameters": cell.parameters if trouble else with_defaults(method.detector, cell.parameters),
        "order": method.order,
        "rows": method.rows,
        "data": name if dataset is None else dataset.digest,
        "seed": seed,
    }
    text = json.dumps(content, sort_keys=True, ensure_ascii=False)
    key = hashlib.sha256(text.encode("utf-8")).hexdigest()[:32]
    return Cell(method, name, seed, key, dataset, trouble)


def job_of(cell: Cell, threads: int) -> Job:
    """What a worker is given."""
    assert cell.data is not None
    return Job(
        key=cell.key,
        detector=cell.method.detector,
        parameters=cell.parameters,
        seed=cell.seed,
        order=cell.method.order,
        rows=cell.method.rows,
        X=cell.data.X,
        y=cell.data.y,
        mark=cell.mark,
        threads=threads,
    )
