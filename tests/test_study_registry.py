from __future__ import annotations

import gzip
from pathlib import Path

import pandas as pd

from studies.ahmed2021 import datasets, paper, registry

COLUMNS = [
    "file", "n", "p", "anomalies", "paper_n", "paper_p", "paper_anomalies", "exact", "duplicate_rows", "differs",
]  # fmt: skip
LARGE = {"ALOI", "KDDCup99", "KDDCup99_withdup"}


def test_the_twenty_in_the_order_of_the_paper() -> None:
    frame = registry.provenance()
    assert list(frame.index) == list(paper.characteristics.index) == registry.names() == datasets.names()
    assert list(frame.columns) == COLUMNS
    for column in ("n", "p", "anomalies"):
        assert frame[f"paper_{column}"].tolist() == paper.characteristics[column].tolist()
        assert frame[f"paper_{column}"].dtype.kind == "i"


def test_exact_means_the_counts_of_the_paper() -> None:
    frame = registry.provenance()
    ours = frame[["n", "p", "anomalies"]].to_numpy()
    same = (ours == frame[["paper_n", "paper_p", "paper_anomalies"]].to_numpy()).all(axis=1)
    assert same.tolist() == (frame["exact"] == "yes").tolist()
    assert set(frame["exact"]) == {"yes", "no", "reconstructed"}
    assert (frame["anomalies"] == frame["paper_anomalies"]).all()


def test_what_differs_is_said_in_one_sentence() -> None:
    frame = registry.provenance()
    for name, said in frame["differs"].items():
        assert said == "" or (said.endswith(".") and said.count(". ") == 0), name
        assert said or frame.loc[name, "exact"] == "yes", name
        assert ("reconstruction" in said) == (frame.loc[name, "exact"] == "reconstructed"), name
    assert all(registry.variants()["differs"].str.endswith("."))


def test_variants_belong_to_one_of_the_twenty() -> None:
    frame = registry.variants()
    assert set(frame["of"]) < set(registry.names())
    assert not set(frame.index) & set(registry.names())
    assert registry.entry("WBC_nodup").archive == "WBC"
    assert registry.entry("Lymphography_1ofn").sha256 == registry.entry("Lymphography").sha256
    assert len(registry.entry("Ionosphere").sha256 or "") == 64


def check_file(folder: Path, name: str) -> None:
    known = registry.entry(name)
    with gzip.open(folder / f"{name}.csv.gz") as file:
        table = pd.read_csv(file)
    labels = table.pop("outlier")
    assert (len(table), table.shape[1], int(labels.sum())) == (known.n, known.p, known.anomalies), name
    assert int(table.duplicated().sum()) == known.duplicate_rows, name


def folder_of(benchmark_data: Path) -> Path:
    return benchmark_data / "dami" if (benchmark_data / "dami").is_dir() else benchmark_data


def test_the_real_files(benchmark_data: Path) -> None:
    folder = folder_of(benchmark_data)
    checked = [name for name in registry.known_names() if (folder / f"{name}.csv.gz").is_file() and name not in LARGE]
    for name in checked:
        check_file(folder, name)
    assert set(registry.names()) - LARGE <= set(checked)
