"""One value a row, with the name of its sensor beside it, instead of one column for each sensor."""

from __future__ import annotations

import numpy as np
import pandas as pd

from penstock._messages import listed, quoted
from penstock.io._notes import Notebook

_SHARED = 0.3  # of the rows have the stamp of the row before
_NEARLY_ALL = 0.99  # of the rows are the only one of their kind at their time


def note_long_format(values: pd.DataFrame, times: pd.DatetimeIndex, time_name: str | None, notebook: Notebook) -> None:
    """Say so if a column of text names what each of several rows at the same time is about; `times` are in order."""
    stamps = times.asi8
    if np.count_nonzero(stamps[1:] == stamps[:-1]) < _SHARED * len(stamps):
        return
    numeric = values.select_dtypes("number").columns
    kinds = {name: values[name].nunique() for name in values.columns.difference(numeric, sort=False)}
    for name in sorted(kinds, key=lambda each: kinds[each]):
        pairs = pd.DataFrame({"stamp": stamps, "kind": pd.factorize(values[name])[0]})
        if 2 <= kinds[name] <= len(values) / 2 and (~pairs.duplicated()).mean() >= _NEARLY_ALL:
            notebook.add(
                "long format",
                f"The {kinds[name]:,} kinds of column {quoted(name)} have rows of their own at the same time. If they "
                f"name sensors or machines, pivot the table first, to one row per {quoted(time_name)} and a column of "
                f"{listed(numeric, most=3)} for each {quoted(name)}.",
                kinds[name],
                (name, *numeric),
            )
            return
