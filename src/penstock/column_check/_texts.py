"""The report on a column of text."""

from __future__ import annotations

from typing import Any

import pandas as pd

from penstock.column_check._labels import LIKE_A_LABEL, MOST_KINDS, looks_like_label
from penstock.column_check._remarks import Remarks
from penstock.column_check._report import ColumnReport
from penstock.column_check._runs import longest_true, time_across

_MOST_CATEGORIES = 1000


def report_on_text(
    name: str, values: pd.Series[Any], time: pd.DatetimeIndex | None, duplicate_of: str | None
) -> ColumnReport:
    """Look at one column of text: categories, if there are few for the number of rows, or free text."""
    missing = values.isna().to_numpy()
    gap = longest_true(missing)
    share = float(missing.mean())
    present = len(values) - int(missing.sum())
    distinct = values.nunique()
    remarks = Remarks()
    kind = "categorical"
    if not present:
        kind = "empty"
        remarks.add("D", "It has no values.")
    elif distinct == 1:
        kind = "constant"
        remarks.add("D", f"It never changes: it is always {values.dropna().iloc[0]!r:.60}.")
    elif distinct > max(2, min(_MOST_CATEGORIES, present // 4)):
        kind = "text"
        remarks.add("D", f"It is free text: {distinct:,} different texts, such as {values.dropna().iloc[0]!r:.60}.")
    else:
        remarks.add("B", f"It is text of {distinct:,} kinds and has to be encoded.")
    label_like = distinct <= MOST_KINDS and looks_like_label(name, values.dropna().unique().tolist())
    if label_like:
        remarks.add("B", LIKE_A_LABEL)
    if present:
        remarks.add_missing(share, gap.length, time, gap)
    if duplicate_of is not None and kind == "categorical":
        remarks.add("C", f"It says the same as column {duplicate_of!r}.")
    return ColumnReport(
        name=name,
        kind=kind,
        grade=remarks.grade,
        reasons=remarks.sentences,
        share_missing=share,
        longest_gap_rows=gap.length,
        longest_gap=time_across(time, gap),
        n_distinct=distinct,
        duplicate_of=duplicate_of if kind == "categorical" else None,
        label_like=label_like,
    )
