"""Small tables for the tests of `penstock detect`, `fit` and `score`, and a look at what a command leaves behind."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path

import numpy as np
import pandas as pd

NAMES = ("load [MW]", "bearing [°C]", "=flow", "head")


def plant(n: int = 400, seed: int = 0) -> pd.DataFrame:
    """Readings every ten minutes that follow two causes; from row 300 on a bearing is hot for five rows (fault)."""
    rng = np.random.default_rng(seed)
    causes = np.column_stack([50 + 10 * np.sin(np.arange(n) / 40), 20 + 5 * np.cos(np.arange(n) / 23)])
    values = causes @ rng.uniform(0.2, 1.0, (2, len(NAMES))) + rng.normal(scale=0.2, size=(n, len(NAMES)))
    table = pd.DataFrame(np.round(values, 3), columns=list(NAMES))
    table.insert(0, "time", pd.date_range("2024-05-01", periods=n, freq="10min"))
    table["fault"] = 0
    table.loc[300:304, "bearing [°C]"] += 25
    table.loc[300:304, "fault"] = 1
    return table


def left_behind(folder: Path) -> dict[str, str]:
    """Every file and folder below, hidden ones too, with a hash of what is in it."""
    found = {}
    for path in sorted(folder.rglob("*")):
        read = path.is_file() and path.stat().st_size <= 2**24 and os.access(path, os.R_OK)
        content = path.read_bytes() if read else b""
        found[str(path.relative_to(folder))] = f"{path.lstat().st_mode} {hashlib.sha256(content).hexdigest()}"
    return found
