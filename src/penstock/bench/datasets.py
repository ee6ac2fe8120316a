"""The benchmark sets of the paper's Table 1 and the user's own labelled files. No data come with the package."""

from __future__ import annotations

import hashlib
import os
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from penstock._types import FloatArray
from penstock.bench import registry
from penstock.bench._cache import cache_folder, cached_file

_FILE_ENDINGS = (".csv", ".csv.gz", ".parquet")
_DOWNLOAD = "penstock bench datasets --download"


@dataclass(frozen=True, eq=False)
class Dataset:
    """A labelled table: `X` (n×p), `y` 1 for an anomaly and 0 for a normal row."""

    name: str
    X: FloatArray
    y: NDArray[np.int64]

    @property
    def n(self) -> int:
        return len(self.X)

    @property
    def p(self) -> int:
        return int(self.X.shape[1])

    @property
    def n_anomalies(self) -> int:
        return int(self.y.sum())

    @cached_property
    def digest(self) -> str:
        """SHA-256 of the content, whatever the name: n and p, X row by row and y, all as little-endian 64-bit numbers.

        >>> Dataset("one", np.array([[0.5], [1.0]]), np.array([0, 1])).digest[:12]
        '325f7bc565dc'
        """
        content = hashlib.sha256(np.array([self.n, self.p], dtype="<i8").tobytes())
        content.update(np.ascontiguousarray(self.X, dtype="<f8").tobytes())
        content.update(np.ascontiguousarray(self.y, dtype="<i8").tobytes())
        return content.hexdigest()


def names() -> list[str]:
    """The twenty data sets, in the order of the paper's Table 1.

    >>> len(names()), names()[:2]
    (20, ['Annthyroid', 'Arrhythmia'])
    """
    return registry.names()


def load(name: str | os.PathLike[str]) -> Dataset:
    """Read a data set by its name, or a labelled file by its path. Nothing is fetched from the network.

    A name stands for ``<name>.csv.gz`` in the folder of the environment variable PENSTOCK_DATA or in its ``dami/``, or
    else for a set that was downloaded before (`penstock.bench.download`). Any file of the folder can be named, the
    variants beside the twenty too (``Glass``, ``WBC_nodup``). The last column is ``outlier``, 0 or 1; all others are
    numbers. What ends in .csv, .csv.gz or .parquet, or has a path separator in it, is a file of the user's own
    (`penstock.bench.csv_sets.load_file`), with its label column after ``::`` if need be (``pump.csv::fault``).
    """
    name = os.fspath(name)
    if is_file_name(name):
        from penstock.bench.csv_sets import load_file

        return load_file(name)
    return _read(find_file(name), name)


def is_file_name(name: str) -> bool:
    """Whether this means a file of the user's own, rather than a data set by name.

    >>> is_file_name("Glass"), is_file_name("pump.csv::fault"), is_file_name("./pump")
    (False, True, True)
    """
    path = name.partition("::")[0]
    return path.lower().endswith(_FILE_ENDINGS) or any(sign in path for sign in (os.sep, os.altsep) if sign)


def data_folder() -> Path:
    """The folder that holds the ``.csv.gz`` files, from PENSTOCK_DATA."""
    setting = os.environ.get("PENSTOCK_DATA", "")
    if not setting:
        raise FileNotFoundError(
            "The environment variable PENSTOCK_DATA is not set. Set it to the folder that holds the benchmark files "
            f"(or their folder dami/), one <Name>.csv.gz per data set, or fetch them with `{_DOWNLOAD}`."
        )
    folder = Path(setting).expanduser()
    if not folder.is_dir():
        raise FileNotFoundError(f"PENSTOCK_DATA is {setting!r}, but there is no such folder.")
    return folder / "dami" if (folder / "dami").is_dir() else folder


def find_file(name: str) -> Path:
    """The file of a data set: the user's folder first, then what was downloaded."""
    folders = _folders()
    for folder in folders:
        if (folder / f"{name}.csv.gz").is_file():
            return folder / f"{name}.csv.gz"
    cache = cache_folder()
    downloaded = cached_file(cache, name)
    if downloaded is not None:
        return downloaded
    present = [path.name.removesuffix(".csv.gz") for folder in folders for path in folder.glob("*.csv.gz")]
    known = sorted({*registry.known_names(), *present})
    if name not in known:
        raise registry.unknown_name(name, known)
    data_folder()  # which has its own message where there is none
    raise FileNotFoundError(
        f"Data set {name!r}: there is no file {folders[0] / name}.csv.gz, and it was not downloaded to "
        f"{cache / 'dami'}. Put it there, set PENSTOCK_DATA to another folder, or fetch it with `{_DOWNLOAD}`."
    )


def _folders() -> list[Path]:
    """Where files are looked for: dami/ and the folder it is in."""
    if not os.environ.get("PENSTOCK_DATA", ""):
        return []
    return list(dict.fromkeys([data_folder(), Path(os.environ["PENSTOCK_DATA"]).expanduser()]))


def _read(path: Path, name: str) -> Dataset:
    """A file in the format of the benchmark folder."""
    table = pd.read_csv(path)
    if len(table.columns) < 2 or table.columns[-1] != "outlier":
        raise ValueError(f"{path}: the last column must be 'outlier', after at least one other; got {_listed(table)}.")
    if not table["outlier"].isin((0, 1)).all():
        raise ValueError(f"{path}: column 'outlier' must hold 0 and 1 only.")
    columns = table.drop(columns="outlier")
    wrong = [column for column in columns if columns[column].dtype.kind not in "fiu"]
    if wrong or columns.isna().to_numpy().any():
        raise ValueError(f"{path}: all columns but 'outlier' must be numbers without gaps; see {wrong or 'the gaps'}.")
    X = np.array(columns, dtype=np.float64, order="C")
    return Dataset(name, X, np.array(table["outlier"], dtype=np.int64))


def _listed(table: pd.DataFrame) -> str:
    shown = ", ".join(map(str, table.columns[-3:]))
    return f"{len(table.columns)} columns ending in {shown}"
