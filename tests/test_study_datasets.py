from __future__ import annotations

import gzip
from pathlib import Path

import numpy as np
import pytest

from penstock.bench.datasets import Dataset
from studies.ahmed2021.datasets import load
from studies.ahmed2021.download import record, sha256_of


def write(folder: Path, name: str, text: str) -> None:
    with gzip.open(folder / f"{name}.csv.gz", "wt") as file:
        file.write(text)


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("PENSTOCK_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("PENSTOCK_DATA", str(tmp_path))
    return tmp_path


def put_in(cache: Path, name: str, text: str) -> Path:
    """As a download leaves it."""
    path = cache / "dami" / f"{name}.csv.gz"
    path.parent.mkdir(parents=True, exist_ok=True)
    write(path.parent, name, text)
    record(cache, {path.name: sha256_of(path)})
    return path


def test_reads_a_file(folder: Path) -> None:
    write(folder, "Glass", "x0,x1,outlier\n0,0.5,0\n1,0.25,1\n")
    data = load("Glass")
    np.testing.assert_array_equal(data.X, [[0.0, 0.5], [1.0, 0.25]])
    np.testing.assert_array_equal(data.y, [0, 1])
    assert (data.name, data.n, data.p, data.n_anomalies) == ("Glass", 2, 2, 1)
    assert data.X.dtype == np.float64
    assert data.X.flags.c_contiguous
    assert data.X.flags.writeable


def test_variable_not_set(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("PENSTOCK_DATA", raising=False)
    both = r"PENSTOCK_DATA is not set\. Set it to the folder.*, or fetch them with `python -m studies"
    with pytest.raises(FileNotFoundError, match=both):
        load("Glass")
    with pytest.raises(ValueError, match="Did you mean Glass"):
        load("glas")


def test_downloaded_sets_are_found(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("PENSTOCK_DATA", raising=False)
    put_in(cache, "Glass", "x0,outlier\n0,0\n1,1\n")
    assert load("Glass").n == 2


def test_a_downloaded_set_that_was_changed(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("PENSTOCK_DATA", raising=False)
    path = put_in(cache, "Glass", "x0,outlier\n0,0\n1,1\n")
    write(path.parent, "Glass", "x0,outlier\n0,0\n1,1\n2,0\n")
    with pytest.raises(ValueError, match=r"Glass\.csv\.gz is not the one that was written.*Delete it and download"):
        load("Glass")
    (cache / "checksums.json").unlink()
    with pytest.raises(ValueError, match="is not listed in"):
        load("Glass")
    (cache / "checksums.json").write_text("[")
    with pytest.raises(ValueError, match=r"checksums\.json is damaged"):
        load("Glass")


def test_digest_is_of_the_content() -> None:
    X, y = np.array([[0.0, 1.0], [2.0, 3.0]]), np.array([0, 1])
    digest = Dataset("a", X, y).digest
    assert len(digest) == 64
    assert digest == Dataset("b", np.asfortranarray(X), y.astype(np.int32)).digest  # type: ignore[arg-type]
    assert digest == Dataset("c", np.column_stack([X, X])[:, :2], y).digest
    assert digest != Dataset("a", X, np.array([1, 0])).digest
    assert digest != Dataset("a", np.nextafter(X, 9.0), y).digest
    assert digest != Dataset("a", X.T.copy(), y).digest
    # Without the shape these two would be the same run of bytes.
    zeros = np.zeros
    assert Dataset("a", zeros((6, 1)), zeros(6, np.int64)).digest != Dataset("a", zeros((4, 2)), zeros(4, int)).digest


def test_unknown_name(folder: Path) -> None:
    with pytest.raises(ValueError, match=r"no data set 'glas'. Did you mean Glass"):
        load("glas")
    with pytest.raises(ValueError, match=r"no data set 'qqqq'. Known are ALOI, Annthyroid"):
        load("qqqq")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("x0,x1\n0,1\n", r"last column must be 'outlier'.*2 columns ending in x0, x1"),
        ("outlier\n0\n1\n", "at least one other"),
        ("x0,outlier\n0,2\n", "must hold 0 and 1 only"),
        ("x0,outlier\na,0\n", r"must be numbers without gaps; see \['x0'\]"),
        ("x0,x1,outlier\n,2,0\n1,1,1\n", "must be numbers without gaps; see the gaps"),
    ],
)
def test_wrong_columns(folder: Path, text: str, message: str) -> None:
    write(folder, "Glass", text)
    with pytest.raises(ValueError, match=message):
        load("Glass")
