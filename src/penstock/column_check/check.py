"""A look at every column before anything is computed."""

from __future__ import annotations

import numpy as np

from penstock.column_check._clock import report_on_time
from penstock.column_check._copies import copies_of_numbers, copies_of_texts
from penstock.column_check._numeric import report_on_numbers
from penstock.column_check._report import ColumnReport
from penstock.column_check._texts import report_on_text
from penstock.io import Table


def check_columns(table: Table) -> list[ColumnReport]:
    """A report on each input column, in order, and one on the time column, which comes first.

    >>> import pandas as pd
    >>> from penstock.io import read_table
    >>> rng = np.random.default_rng(0)
    >>> flow = rng.normal(5, 1, 200).round(2)
    >>> flow[50:100] = 4.2
    >>> plant = pd.DataFrame({"flow": flow, "set point": 5.0, "state": ["on", "on", "off", "on"] * 50})
    >>> for report in check_columns(read_table(plant)):
    ...     print(report.grade, report.name, *report.reasons, sep=" | ")
    C | flow | It stood still at 4.2 for 50 values; usually it changes with every value.
    D | set point | It never changes: it is always 5.
    B | state | It is text of 2 kinds and has to be encoded.
    """
    values = table.values
    numeric = values.select_dtypes("number")
    numbers = np.asfortranarray(numeric.to_numpy(dtype=np.float64))
    places = {name: place for place, name in enumerate(numeric.columns)}
    copies = copies_of_numbers(numbers, list(numeric.columns))
    copies |= copies_of_texts(values.drop(columns=list(numeric.columns)))
    time = table.time if table.in_time else None
    on_time = report_on_time(table)
    reports = [] if on_time is None else [on_time]
    for name in values.columns:
        if name in places:
            column = numbers[:, places[name]]
            reports.append(report_on_numbers(name, column, time, copies.get(name)))
        else:
            reports.append(report_on_text(name, values[name], time, copies.get(name)))
    return reports
