"""Which rows the model learns from."""

from __future__ import annotations

import datetime as dt
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from penstock.row_rules import RowRule, RuleError
from penstock.row_rules._stamps import order_to_stamp
from penstock.tables import Table, TableError


def training_rows(table: Table, until: Any, rule: RowRule | None) -> NDArray[np.bool_]:
    """The rows of a period that is known to be good: up to a time, or where a rule holds; all if neither is given."""
    if until is not None and rule is not None:
        raise TableError("train_until and train_rule exclude each other: one period is learnt from.")
    if rule is not None:
        return _some(rule.holds(table), f"the rule {rule} holds for no row of {table.source}")
    if until is None:
        return np.ones(len(table.values), dtype=np.bool_)
    if table.time is None:
        raise TableError(f"train_until needs time stamps, and {table.source} has none. Use train_rule instead.")
    first, last = table.time[0], table.time[-1]
    return _some(_rows_until(until, table.time), f"{table.source} begins at {first}, after {until} (it ends at {last})")


def _rows_until(until: Any, time: pd.DatetimeIndex) -> NDArray[np.bool_]:
    """The rows up to a moment, and with it; of a day or a month without a time up to its end."""
    if not isinstance(until, str | dt.date | np.datetime64):
        raise TableError(f"train_until = {until!r:.100} is not a time. Write it like 2024-05-31 or '2024-05-31 13:40'.")
    try:
        return ~order_to_stamp(time, until.isoformat() if isinstance(until, dt.date) else str(until))[1]
    except RuleError as error:
        raise TableError(f"train_until: {error}") from None


def _some(rows: NDArray[np.bool_], otherwise: str) -> NDArray[np.bool_]:
    if not rows.any():
        raise TableError(f"There is nothing to learn from: {otherwise}.")
    return np.asarray(rows, dtype=np.bool_)
