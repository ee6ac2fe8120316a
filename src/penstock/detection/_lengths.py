"""How long something lasts, as people give it: a duration or a number of rows."""

from __future__ import annotations

import datetime as dt
from typing import Any

import numpy as np
import pandas as pd

from penstock.columns import parse_duration
from penstock.io import TableError


def read_length(name: str, value: Any) -> pd.Timedelta | int | None:
    """A duration from a text or an object of Python, NumPy or pandas; or a number of rows; None stays None.

    >>> read_length("gap", "90 min"), read_length("gap", 6)
    (Timedelta('0 days 01:30:00'), 6)
    >>> read_length("gap", 1.5)
    Traceback (most recent call last):
    penstock.io.table.TableError: gap must be a duration, such as '30 min', or a whole number of rows; got 1.5.
    """
    if value is None:
        return None
    if isinstance(value, str):
        return _parsed(name, value)
    if isinstance(value, dt.timedelta | np.timedelta64) and pd.Timedelta(value) >= pd.Timedelta(0):  # NaT is not
        return pd.Timedelta(value)
    if isinstance(value, int | np.integer) and type(value) not in (bool, np.timedelta64) and value >= 0:
        return int(value)
    raise TableError(f"{name} must be a duration, such as '30 min', or a whole number of rows; got {value!r:.100}.")


def _parsed(name: str, text: str) -> pd.Timedelta:
    try:
        return parse_duration(text)
    except ValueError as error:
        raise TableError(f"{name}: {error}") from None
