"""Choose the inputs among the columns of a table, and encode text as numbers."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import pandas as pd

from penstock._types import FloatArray
from penstock.columns._patterns import LIKE_A_LABEL
from penstock.columns.check import ColumnReport, check_columns
from penstock.io import Table, TableError

ONE_HOT, RARITY = "one-hot", "rarity"
_MOST_ONE_HOT = 10  # categories


@dataclass(frozen=True)
class Encoding:
    """How the categories of a column become numbers, learnt once and applied to any rows.

    "one-hot": a column for each category, named "state=on", which is 1 in its rows and 0 in others.
    "rarity": one column with log(rows ÷ rows of this category): 0 for a category of every row, 2.3 for one of a tenth
    of the rows, 6.9 for one of a thousandth.

    A category that was not there when this was learnt is 0 in all columns of one-hot, and rarer than any other in
    rarity. A missing value is missing in every column.
    """

    METHODS: ClassVar[tuple[str, ...]] = (ONE_HOT, RARITY)

    column: str
    method: str
    categories: tuple[str, ...]  # the most frequent first
    counts: tuple[int, ...]

    @property
    def names(self) -> tuple[str, ...]:
        if self.method == RARITY:
            return (self.column,)
        return tuple(f"{self.column}={category}" for category in self.categories)

    def apply(self, values: pd.Series[Any]) -> FloatArray:
        """Return the encoded values, (rows, `names`)."""
        codes = pd.Index(self.categories).get_indexer(pd.Index(values))
        missing = values.isna().to_numpy()
        if self.method == RARITY:
            total = sum(self.counts)
            rarity = np.log(total / np.append(np.array(self.counts, dtype=np.float64), total / (total + 1)))
            encoded: FloatArray = rarity[codes][:, None]
        else:
            encoded = (codes[:, None] == np.arange(len(self.categories))).astype(np.float64)
        encoded[missing] = np.nan
        return encoded


def learn_encoding(column: str, values: pd.Series[Any]) -> Encoding:
    """Learn an encoding: one-hot of few categories, else rarity."""
    counts = values.value_counts()
    method = ONE_HOT if len(counts) <= _MOST_ONE_HOT else RARITY
    return Encoding(column, method, tuple(counts.index), tuple(int(count) for count in counts))


@dataclass(frozen=True)
class LeftOut:
    """A column that is not used, and the reason in a sentence."""

    name: str
    reason: str


@dataclass(frozen=True)
class InputChoice:
    """The inputs made of the columns of a table; `apply` makes them of any table with the same columns."""

    as_they_are: tuple[str, ...]
    encoded: tuple[Encoding, ...]
    left_out: tuple[LeftOut, ...]
    settings: tuple[str, ...] = ()  # of `as_they_are`: set rather than measured, so inputs, but no causes

    @property
    def counts(self) -> dict[str, int]:
        return {"as they are": len(self.as_they_are), "encoded": len(self.encoded), "left out": len(self.left_out)}

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the columns that `apply` returns."""
        return (*self.as_they_are, *(name for encoding in self.encoded for name in encoding.names))

    @property
    def causes(self) -> tuple[str, ...]:
        """Those of `names` that may be the cause of an event: no settings, unless there is nothing else."""
        return tuple(name for name in self.names if name not in self.settings) or self.names

    def apply(self, table: Table) -> pd.DataFrame:
        """Return the inputs as float64 with NaN for missing values, under the index of the table's values."""
        values = table.values
        missing = [name for name in (*self.as_they_are, *(each.column for each in self.encoded)) if name not in values]
        if missing:
            raise TableError(f"{table.source} has no column {missing[0]!r}, which was an input before.")
        texts = [name for name in self.as_they_are if values[name].dtype.kind != "f"]
        if texts:
            raise TableError(f"{table.source}: column {texts[0]!r} held numbers before, and now holds text.")
        parts = [values[list(self.as_they_are)].to_numpy(dtype=np.float64)]
        parts += [encoding.apply(values[encoding.column]) for encoding in self.encoded]
        return pd.DataFrame(np.hstack(parts), index=values.index, columns=list(self.names))


def choose_inputs(
    table: Table,
    reports: Sequence[ColumnReport] | None = None,
    *,
    keep: Collection[str] = (),
    strict: bool = False,
    labels: bool = False,
) -> InputChoice:
    """Choose the inputs by the reports: numbers as they are, text of few kinds encoded, useless columns left out.

    Left out are columns of grade D (no values, always the same, free text), copies of an earlier column, which would
    count double, and columns that look like a label. Doubtful columns stay. Numbers go in as they are also when few of
    them are different, as they have an order.

    reports : of `check_columns`, made if None.
    keep : columns of numbers that are inputs whatever the report says, and columns that look like a label.
    strict : raise instead of leaving out or encoding anything.
    labels : take columns that look like a label for inputs.
    """
    known = {report.name: report for report in (check_columns(table) if reports is None else reports)}
    plain: list[str] = []
    encoded: list[Encoding] = []
    left_out: list[LeftOut] = []
    for name in table.values.columns:
        report = known[name]
        numeric = table.values[name].dtype.kind == "f"
        if name in keep and numeric:
            plain.append(name)
        elif report.grade == "D":
            left_out.append(LeftOut(name, report.reasons[0]))
        elif report.duplicate_of is not None:
            left_out.append(LeftOut(name, f"It says the same as column {report.duplicate_of!r}."))
        elif report.label_like and not labels and name not in keep:
            left_out.append(LeftOut(name, LIKE_A_LABEL))
        elif numeric:
            plain.append(name)
        else:
            encoded.append(learn_encoding(name, table.values[name]))
    settings = tuple(name for name in plain if known[name].setting)
    if strict and (left_out or encoded):
        odd = [f"{each.name!r} ({each.reason})" for each in left_out]
        odd += [f"{each.column!r} (It is text.)" for each in encoded]
        shown = ", ".join(odd[:3]) + (" …" if odd[3:] else "")
        raise TableError(
            f"{table.source}: {len(odd)} columns cannot be inputs as they are: {shown}. Exclude them, or do without "
            f"strict."
        )
    if not plain and not encoded:
        reasons = "; ".join(f"{each.name!r}: {each.reason}" for each in left_out[:3])
        raise TableError(f"{table.source} has no column that can be an input ({reasons}). Choose other columns.")
    return InputChoice(tuple(plain), tuple(encoded), tuple(left_out), settings)
