"""The twenty benchmark sets of the paper's Table 1, read from a local folder. No data come with the package."""

from __future__ import annotations

import os
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from penstock._types import FloatArray

_NAMES = (
    "Annthyroid", "Arrhythmia", "Cardiotocography", "HeartDisease", "PageBlocks", "Parkinson", "Pima", "SpamBase",
    "Stamps", "WBC", "Waveform", "WPBC", "WDBC", "ALOI", "Shuttle", "Ionosphere", "Glass", "PenDigits",
    "Lymphography", "KDDCup99",
)  # fmt: skip


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


def names() -> list[str]:
    """The twenty data sets, in the order of the paper's Table 1.

    >>> len(names()), names()[:2]
    (20, ['Annthyroid', 'Arrhythmia'])
    """
    return list(_NAMES)


def load(name: str) -> Dataset:
    """Read ``<name>.csv.gz`` from the folder in the environment variable PENSTOCK_DATA, or from its ``dami/``.

    Any file of that folder can be named, the variants beside the twenty too (``Glass``, ``WBC_nodup``). The last column
    is ``outlier``, 0 or 1; all others are numbers.
    """
    folder = data_folder()
    path = folder / f"{name}.csv.gz"
    if Path(name).name != name or not path.is_file():
        raise _not_found(name, folder)
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


def data_folder() -> Path:
    """The folder that holds the ``.csv.gz`` files, from PENSTOCK_DATA."""
    setting = os.environ.get("PENSTOCK_DATA", "")
    if not setting:
        raise FileNotFoundError(
            "The environment variable PENSTOCK_DATA is not set. Set it to the folder that holds the benchmark files "
            "(or their folder dami/), one <Name>.csv.gz per data set."
        )
    folder = Path(setting).expanduser()
    if not folder.is_dir():
        raise FileNotFoundError(f"PENSTOCK_DATA is {setting!r}, but there is no such folder.")
    return folder / "dami" if (folder / "dami").is_dir() else folder


def _not_found(name: str, folder: Path) -> Exception:
    if name in _NAMES:
        return FileNotFoundError(f"Data set {name!r}: there is no file {folder / name}.csv.gz.")
    present = [path.name.removesuffix(".csv.gz") for path in folder.glob("*.csv.gz")]
    known = sorted({*_NAMES, *present})
    lowered = {candidate.lower(): candidate for candidate in known}
    close = [lowered[match] for match in get_close_matches(name.lower(), lowered, n=3, cutoff=0.5)]
    hint = f"Did you mean {' or '.join(close)}?" if close else f"Known are {', '.join(known)}."
    return ValueError(f"There is no data set {name!r}. {hint}")


def _listed(table: pd.DataFrame) -> str:
    shown = ", ".join(map(str, table.columns[-3:]))
    return f"{len(table.columns)} columns ending in {shown}"
