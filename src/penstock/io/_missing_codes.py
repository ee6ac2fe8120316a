"""Texts and numbers that stand for a missing value, as the caller says."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from numbers import Real
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from penstock._messages import quoted
from penstock._types import FloatArray
from penstock.io._errors import TableError


@dataclass(frozen=True)
class MissingCodes:
    """What counts as missing; numbers are compared as numbers, however they are written."""

    texts: frozenset[str] = frozenset()
    numbers: tuple[float, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.texts)

    def among_texts(self, column: pd.Series[Any]) -> NDArray[np.bool_]:
        """Which values of a column of text (or of anything) are such."""
        words = column.astype("object").map(lambda value: value.strip() if isinstance(value, str) else value)
        spelled = pd.to_numeric(words, errors="coerce")
        return np.asarray(words.isin(self.texts) | spelled.isin(self.numbers), dtype=np.bool_)

    def among_numbers(self, values: FloatArray) -> NDArray[np.bool_]:
        return np.isin(values, self.numbers)


def as_codes(missing: Sequence[str | float]) -> MissingCodes:
    """Texts and numbers, or a single one.

    >>> as_codes(["Bad", "-9999", 1e30]).numbers
    (-9999.0, 1e+30)
    """
    several: list[Any] = [missing] if isinstance(missing, str | Real) else list(missing)
    for code in several:
        if not isinstance(code, str | Real):
            raise TableError(f"missing must be texts or numbers; got {quoted(code)}.")
    texts = [str(code).strip() for code in several]
    numbers = pd.to_numeric(pd.Series(texts, dtype="object").str.replace(",", "."), errors="coerce").dropna()
    return MissingCodes(frozenset(texts), tuple(numbers.astype(float)))
