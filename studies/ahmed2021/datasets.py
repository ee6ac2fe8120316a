"""Read the data sets of the paper's Table 1, and variants of them, by name. No data come with the repository."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pandas as pd

from penstock.bench import Dataset
from studies.ahmed2021 import registry
from studies.ahmed2021.download import cache_folder, cached_file
from studies.ahmed2021.registry import names

__all__ = ["Dataset", "data_folder", "find_file", "load", "names"]

_DOWNLOAD = "python -m studies.ahmed2021 datasets --download"


def load(name: str) -> Dataset:
    """Read a data set by its name. Nothing is fetched from the network.

    A name stands for ``<name>.csv.gz`` in the folder of the environment variable PENSTOCK_DATA or in its ``dami/``, or
    else for a set that was downloaded before (`studies.ahmed2021.download`). Any file of the folder can be named, the
    variants of the twenty too (``Glass``, ``WBC_nodup``). The last column is ``outlier``, 0 or 1; all others are
    numbers.
    """
    return _read(find_file(name), name)


def data_folder() -> Path:
    """Return the folder that holds the ``.csv.gz`` files, from PENSTOCK_DATA."""
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
    """Return the file of a data set: the user's folder first, then what was downloaded."""
    folders: list[Path] = []
    if os.environ.get("PENSTOCK_DATA", ""):
        folders = list(dict.fromkeys([data_folder(), Path(os.environ["PENSTOCK_DATA"]).expanduser()]))
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


def _read(path: Path, name: str) -> Dataset:
    """Read a file in the format of the benchmark folder."""
    table = pd.read_csv(path)
    if len(table.columns) < 2 or table.columns[-1] != "outlier":
        shown = f"{len(table.columns)} columns ending in {', '.join(map(str, table.columns[-3:]))}"
        raise ValueError(f"{path}: the last column must be 'outlier', after at least one other; got {shown}.")
    if not table["outlier"].isin((0, 1)).all():
        raise ValueError(f"{path}: column 'outlier' must hold 0 and 1 only.")
    columns = table.drop(columns="outlier")
    wrong = [column for column in columns if columns[column].dtype.kind not in "fiu"]
    if wrong or columns.isna().to_numpy().any():
        raise ValueError(f"{path}: all columns but 'outlier' must be numbers without gaps; see {wrong or 'the gaps'}.")
    X = np.array(columns, dtype=np.float64, order="C")
    return Dataset(name, X, np.array(table["outlier"], dtype=np.int64))
