"""When the plant was recorded: seven months on a ten-minute grid, of which the historian kept a part."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd
from numpy.typing import NDArray

STEP_HOURS = 1 / 6
STEPS_PER_HOUR = 6
N_ROWS = 9_219

_FIRST, _LAST = "2015-07-01 00:00", "2016-01-31 23:50"
# Simulated but never recorded, so that reservoir, oil and iron have forgotten where they started.
_SPIN_UP = pd.Timedelta(days=7)
# Whole days, first and last: 67 in all. The paper's 9,219 samples are 64 days of its seven months.
_RECORDED = (
    ("2015-07-01", "2015-07-10"), ("2015-08-08", "2015-08-13"), ("2015-09-10", "2015-09-19"),
    ("2015-10-01", "2015-10-06"), ("2015-10-11", "2015-10-16"), ("2015-11-16", "2015-11-21"),
    ("2015-12-08", "2015-12-14"), ("2016-01-01", "2016-01-05"), ("2016-01-07", "2016-01-14"),
    ("2016-01-29", "2016-01-31"),
)  # fmt: skip
_LONGEST_GAP = 36  # samples, six hours

Span = tuple[pd.Timestamp, pd.Timestamp]


def simulated_times() -> pd.DatetimeIndex:
    """Every ten minutes of the seven months, and of the week before them."""
    return pd.date_range(pd.Timestamp(_FIRST) - _SPIN_UP, _LAST, freq="10min", name="time")


def recorded(times: pd.DatetimeIndex, rng: np.random.Generator, protected: Sequence[Span]) -> NDArray[np.bool_]:
    """Which samples are in the table: `N_ROWS` of them, with short gaps by chance that spare the protected spans."""
    first, last = pd.Timestamp(_FIRST), times[-1]
    kept = within(times, [(pd.Timestamp(a), pd.Timestamp(b) + pd.Timedelta("23h50min")) for a, b in _RECORDED])
    # The first and the last sample stay, so that the table spans the seven months whatever the seed.
    spared = within(times, [*protected, (first, first), (last, last)])
    surplus = int(kept.sum()) - N_ROWS
    while surplus > 0:
        begin = int(rng.integers(len(times)))
        gap = slice(begin, begin + min(int(rng.integers(1, _LONGEST_GAP + 1)), surplus))
        if not spared[gap].any():
            surplus -= int(kept[gap].sum())
            kept[gap] = False
    return kept


def within(times: pd.DatetimeIndex, spans: Sequence[Span]) -> NDArray[np.bool_]:
    """Which samples lie in one of the spans, ends included."""
    inside = np.zeros(len(times), dtype=np.bool_)
    for start, end in spans:
        inside |= np.asarray((times >= start) & (times <= end))
    return inside
