"""Read a long text with a row for each reading in pieces: tags become numbers and times become times at once.

Ten million readings are 180 MB then, where their texts would be some gigabytes. Only what can be read without a doubt
is read so: numbers, and times that begin with the year. For all else `read_in_pieces` returns None, and the text is
read whole.
"""

from __future__ import annotations

import datetime as dt
import re
import warnings
from collections.abc import Iterator
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from penstock.io._time_texts import NAIVE
from penstock.io.times import TimeReader

PIECE = 250_000  # rows
MOST_EXPECTED = 2**24  # rows for which there is room from the start, if the length of a packed text is not known
_SAMPLE = 1000  # times that show how all are written
_FINER = re.compile(r"\.\d{7}")  # than microseconds
_EXACT = 2.0**53  # whole numbers up to this one are kept


class _Column:
    """The values of a column, piece by piece, in one array that grows."""

    def __init__(self, rows: int, dtype: Any) -> None:
        self._values: NDArray[Any] = np.empty(rows, dtype=dtype)  # takes memory only as far as it is filled
        self.count = 0

    def add(self, values: NDArray[Any]) -> None:
        end = self.count + len(values)
        if end > len(self._values):
            grown = np.empty(2 * end, dtype=self._values.dtype)
            grown[: self.count] = self._values[: self.count]
            self._values = grown
        self._values[self.count : end] = values
        self.count = end

    @property
    def values(self) -> NDArray[Any]:
        return self._values[: self.count]


class _Kinds(_Column):
    """A column of texts, as numbers of different ones."""

    def __init__(self, rows: int) -> None:
        super().__init__(rows, np.int32)
        self._numbers: dict[str, int] = {}

    def add_texts(self, texts: pd.Series[Any]) -> None:
        kinds = texts.cat.categories
        numbers = [self._numbers.setdefault(kind, len(self._numbers)) for kind in kinds]
        self.add(np.array([*numbers, -1], dtype=np.int32)[texts.cat.codes.to_numpy()])

    def made(self) -> pd.Categorical:
        kinds: Any = pd.Index(list(self._numbers))
        found: pd.Categorical = pd.Categorical.from_codes(self.values, kinds)
        return found


class _Times(_Column):
    """A column of times in microseconds, all with one offset from UTC, or without one."""

    def __init__(self, rows: int) -> None:
        super().__init__(rows, np.int64)
        self._reader: TimeReader | None = None
        self._offset = NAIVE

    def add_times(self, texts: pd.Series[Any]) -> bool:
        """Return whether all of these could be read, in one way that leaves no doubt."""
        codes, kinds = pd.factorize(texts)
        written = kinds.tolist()
        if self._reader is None:
            self._reader = TimeReader.learn(written[:_SAMPLE])
        reader = self._reader
        if reader is None or reader.unit or reader.day_first is not None or (codes < 0).any():
            return False
        times, offsets = reader.read(written)
        one_offset = (offsets == (self._offset if self.count else offsets[0])).all()
        if np.isnat(times).any() or not one_offset or any(map(_FINER.search, written)):
            return False
        self._offset = int(offsets[0])
        self.add(times.view(np.int64)[codes])
        return True

    def made(self) -> pd.DatetimeIndex:
        index = pd.DatetimeIndex(self.values.view("M8[us]"), copy=False)
        if self._offset == NAIVE:
            return index
        zone = dt.timezone(dt.timedelta(minutes=self._offset)) if self._offset else dt.UTC
        return index.tz_localize("UTC").tz_convert(zone)


def read_in_pieces(pieces: Iterator[pd.DataFrame], rows: int) -> pd.DataFrame | None:
    """Return the columns of a text with a row for each reading; None if one of them cannot be read for certain.

    pieces : of the text: tags as categories, times as texts.
    rows : how many there are, about.
    """
    columns: dict[Any, _Column] = {}
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error", pd.errors.ParserWarning)
            for piece in pieces:
                for name in piece.columns:
                    if not _add(piece[name], name, rows, columns):
                        return None
    except (ValueError, OverflowError, pd.errors.ParserWarning):
        return None  # and said by who reads it whole
    made = {name: each.made() if isinstance(each, _Kinds | _Times) else each.values for name, each in columns.items()}
    return pd.DataFrame(made, copy=False)


def _add(column: pd.Series[Any], name: Any, rows: int, columns: dict[Any, _Column]) -> bool:
    """Add a piece to a column, and begin it with the first piece; return whether it is of the same kind."""
    is_kinds, is_text = isinstance(column.dtype, pd.CategoricalDtype), column.dtype.kind not in "iufb"
    if name not in columns:
        columns[name] = _Kinds(rows) if is_kinds else _Times(rows) if is_text else _Column(rows, np.float64)
    known = columns[name]
    if isinstance(known, _Times):
        return is_text and not is_kinds and known.add_times(column)
    if isinstance(known, _Kinds):
        if is_kinds:
            known.add_texts(column)
        return is_kinds
    if is_text or column.dtype.kind not in "iuf" or column.abs().max() > _EXACT:
        return False
    known.add(column.to_numpy(dtype=np.float64))
    return True
