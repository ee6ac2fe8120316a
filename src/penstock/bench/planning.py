"""From a study's settings to its cells: each a method on a data set with a seed, known by the content of all three."""

from __future__ import annotations

import hashlib
import json
import zlib
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from penstock.bench.cell import Job, taken_rows
from penstock.bench.code_digest import code_digest, forget_digests, judging_digest
from penstock.bench.datasets import Dataset, load
from penstock.bench.methods import MethodError, build, find_class, takes_seed, with_defaults
from penstock.bench.settings import Method, Study

_CHOICES = ("form", "graph")  # parameters that the central claim is judged by


@dataclass(frozen=True, eq=False)
class Cell:
    """A method on a data set with a seed. `trouble` says why it cannot even be tried."""

    method: Method
    dataset: str
    seed: int | None
    key: str
    data: Dataset | None
    trouble: str = ""
    uses_labels: bool = False

    @property
    def parameters(self) -> Mapping[str, Any]:
        return self._special.parameters if self._special else self.method.parameters

    @property
    def mark(self) -> str:
        return self._special.mark if self._special else ""

    @property
    def _special(self) -> Any:
        above = self.method.above
        return above if above is not None and self._n > above.rows else None

    @property
    def _n(self) -> int:
        return 0 if self.data is None else min(self.data.n, self.method.rows or self.data.n)

    @property
    def size(self) -> int:
        """How many values are fitted."""
        return 0 if self.data is None else self._n * self.data.p

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
            "n": self._n,
            "p": 0 if data is None else data.p,
            "n_anomalies": 0 if data is None else self._n_anomalies(data),
            "key": self.key,
            "mark": self.mark,
            "detail": self._choices(),
        }

    def _n_anomalies(self, data: Dataset) -> int:
        """Of the rows that are drawn."""
        if self.method.rows is None:
            return data.n_anomalies
        return int(data.y[taken_rows(data.n, self.method.order, self.method.rows, self.seed)].sum())

    def _choices(self) -> dict[str, Any]:
        """What tables tell methods apart by; as the method says, also where a cell is run in another way."""
        chosen = {name: self.method.parameters[name] for name in _CHOICES if name in self.method.parameters}
        return chosen | ({"uses_labels": True} if self.uses_labels else {})


def plan(study: Study) -> Iterator[Cell]:
    """All cells of a study. Data sets are read; one that cannot be is a trouble of its cells, not the end."""
    forget_digests()
    data = _told_apart({name: _read(name) for name in dict.fromkeys(_used_datasets(study))})
    for method in study.methods:
        seeds, uses_labels, trouble = _seeds(method, study)
        for name in method.datasets or study.datasets:
            dataset, why = data[name]
            for seed in seeds:
                cell = Cell(method, name, seed, "", dataset, trouble or why, uses_labels)
                yield replace(cell, key=_key(cell))


def _used_datasets(study: Study) -> Iterator[str]:
    for method in study.methods:
        yield from method.datasets or study.datasets


def _told_apart(data: dict[str, tuple[Dataset | None, str]]) -> dict[str, tuple[Dataset | None, str]]:
    """Files of the same name in different folders are called as they were given."""
    count = Counter(dataset.name for dataset, _ in data.values() if dataset is not None)
    return {
        given: (replace(dataset, name=given), why)
        if dataset is not None and count[dataset.name] > 1
        else (dataset, why)
        for given, (dataset, why) in data.items()
    }


def _read(name: str) -> tuple[Dataset | None, str]:
    try:
        dataset = load(name)
    except (EOFError, zlib.error) as error:
        return None, f"{name}: a damaged file ({error})."
    except (OSError, ValueError) as error:
        return None, str(error)
    if dataset.n_anomalies in (0, dataset.n):
        none_or_all = "no anomaly" if dataset.n_anomalies == 0 else "nothing but anomalies"
        return dataset, f"Data set {dataset.name} has {none_or_all}: there is nothing to tell apart."
    return dataset, ""


def _seeds(method: Method, study: Study) -> tuple[tuple[int | None, ...], bool, str]:
    """The seeds of a method, one None where chance has no part; whether it sees the labels; why it cannot be built."""
    try:
        cls = find_class(method.detector)
        build(method.detector, method.parameters)
    except MethodError as error:
        return (None,), False, str(error)
    except (Exception, SystemExit) as error:  # a module of the user's own may do anything when it is imported
        return (None,), False, f"{method.detector} cannot be made: {type(error).__name__}: {error}"
    by_chance = takes_seed(cls) or method.order == "shuffled" or method.rows is not None
    seeds = (method.seeds or study.seeds) if by_chance else (None,)
    return seeds, bool(getattr(cls, "uses_labels", False)), ""


def _key(cell: Cell) -> str:
    """What a cell is known by: everything that its outcome depends on."""
    method = cell.method
    content = {
        "detector": method.detector,
        "code": cell.trouble or code_digest(method.detector),
        "judged by": judging_digest(),
        "parameters": cell.parameters if cell.trouble else with_defaults(method.detector, cell.parameters),
        "order": method.order,
        "rows": method.rows,
        "data": cell.dataset if cell.data is None else cell.data.digest,
        "seed": cell.seed,
    }
    text = json.dumps(content, sort_keys=True, ensure_ascii=False, default=str)
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:32]


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
