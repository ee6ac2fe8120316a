"""What several tests of detectors share: taken from those of open."""

from __future__ import annotations

import numpy as np
import pandas as pd


def plant_frame(n=900, fault=range(700, 730)):
    """Four related readings every ten minutes, one of which is wrong for some rows."""
    rng = np.random.default_rng(1)
    load = 50 + 10 * np.sin(np.arange(n) / 40) + rng.normal(scale=1.0, size=n)
    frame = pd.DataFrame({"load": load, "oil": 20 + load / 2, "flow": load / 5, "head": 100 - load / 3})
    frame += rng.normal(scale=0.2, size=frame.shape)
    frame.iloc[list(fault), 1] += 12
    frame.insert(0, "time", pd.date_range("2024-05-01", periods=n, freq="10min").astype(str))
    return frame
