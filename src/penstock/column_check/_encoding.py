"""Text of few kinds → numbers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import pandas as pd

from penstock._types import FloatArray

ONE_HOT, RARITY = "one-hot", "rarity"


@dataclass(frozen=True)
class Encoding:
    """How the categories of a column become numbers, learnt once and applied to any rows.

    "one-hot": a column for each category, named "state=on", which is 1 in its rows and 0 in others.
    "rarity": one column, in which each category is replaced by how rare it was: log(rows ÷ rows of this category), so
    that a category of every row is 0, one of a tenth of the rows 2.3, and one of a thousandth 6.9.

    A category that was not there when this was learnt is 0 in all columns of one-hot, and rarer than any other in
    rarity. A missing value is missing in every column.

    >>> state = pd.Series(["on", "on", "off", None])
    >>> encoding = learn_encoding("state", state, most_one_hot=5)
    >>> encoding.names, encoding.apply(state).tolist()
    (('state=on', 'state=off'), [[1.0, 0.0], [1.0, 0.0], [0.0, 1.0], [nan, nan]])
    >>> learn_encoding("state", state, most_one_hot=1).apply(pd.Series(["on", "off", "new"])).round(2).tolist()
    [[0.41], [1.1], [1.39]]
    """

    METHODS: ClassVar[tuple[str, ...]] = (ONE_HOT, RARITY)

    column: str
    method: str
    categories: tuple[str, ...]  # the most frequent first
    counts: tuple[int, ...]

    @property
    def names(self) -> tuple[str, ...]:
        """Of the columns it makes."""
        if self.method == RARITY:
            return (self.column,)
        return tuple(f"{self.column}={category}" for category in self.categories)

    def apply(self, values: pd.Series[Any]) -> FloatArray:
        """Rows × `names`."""
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


def learn_encoding(column: str, values: pd.Series[Any], most_one_hot: int) -> Encoding:
    """One-hot up to so many categories, rarity beyond."""
    counts = values.value_counts()
    method = ONE_HOT if len(counts) <= most_one_hot else RARITY
    return Encoding(column, method, tuple(counts.index), tuple(int(count) for count in counts))
