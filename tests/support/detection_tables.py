"""Small tables with a planted fault, for the tests of the whole job."""

from __future__ import annotations

import numpy as np
import pandas as pd

NAMES = ("load [MW]", "bearing [°C]", "flow [m³/s]", "head [m]", "oil", "vibration [mm/s]")
FAULT = range(200, 205)  # rows in which the bearing is hot
HOT = "bearing [°C]"


def readings(n: int = 260, seed: int = 0) -> pd.DataFrame:
    """Six readings that follow two causes, without a fault."""
    rng = np.random.default_rng(seed)
    causes = rng.normal(3, 0.2, (n, 2))
    mixing = np.random.default_rng(7).uniform(0.2, 1.0, (2, len(NAMES))) * [40, 20, 6, 9, 1, 0.3]
    values = causes @ mixing * (1 + rng.normal(scale=0.05, size=(n, len(NAMES)))) + [0, 20, 0, 50, -5, 0]
    return pd.DataFrame(np.round(values, 4), columns=list(NAMES))


def plant(n: int = 260, seed: int = 0, *, time: bool = True, freq: str = "10min") -> pd.DataFrame:
    """The readings with a bearing that is hot in the rows of `FAULT`."""
    table = readings(n, seed)
    rows = [row for row in FAULT if row < n]
    table.loc[rows, HOT] += 120
    if time:
        table.insert(0, "time", pd.date_range("2024-05-01", periods=n, freq=freq))
    return table


def two_modes(n: int = 400, seed: int = 0) -> pd.DataFrame:
    """Runs of 50 rows "on" and "off", in which readings differ in size; the bearing is hot in one run of each."""
    table = plant(n, seed)
    off = np.arange(n) // 50 % 2 == 1
    names = [name for name in NAMES if name != HOT]
    table.loc[off, names] = 0.01 * table.loc[off, names] + np.random.default_rng(seed).uniform(0, 0.01, (off.sum(), 5))
    table["state"] = np.where(off, "off", "on")
    return table


def positions(findings) -> np.ndarray:
    """Where the findings are in the table, the highest score first."""
    return findings.table.values.index.get_indexer(findings.top().index)


def residuals(findings, rows=None) -> np.ndarray:
    """Actual − expected of some rows (all if None) in units of the range that the model of their mode has fitted."""
    rows = np.arange(len(findings.scores)) if rows is None else rows
    found = findings.inputs.values.to_numpy()[rows] - findings.inputs.expected.to_numpy()[rows]
    for each in findings.rows.parts:
        found[findings.rows.modes[rows] == each.part.mode] /= each.part.scale
    return found


def rows_found(findings) -> list[int]:
    """The flagged rows, as in the source."""
    return findings.table.values.index[np.flatnonzero(findings.flags)].tolist()
