"""Which run, unit or machine each row is of."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from penstock._messages import counted, quoted
from penstock.io._errors import TableError
from penstock.io._notes import Notebook

NO_GROUP = "(none)"  # rows without a value in the column of groups
_FEWEST_ROWS = 2  # of a group, on average, in a table of
_ENOUGH = 20  # rows


@dataclass(frozen=True, eq=False)
class Groups:
    """The groups of a table's rows: `codes` count them in the order in which they begin; `names` are theirs."""

    column: str
    codes: NDArray[np.intp]
    names: tuple[str, ...]

    @classmethod
    def of(cls, column: pd.Series[Any], times: pd.DatetimeIndex | None, notebook: Notebook) -> Groups:
        """Read the column of groups, and note how many there are."""
        texts = column.map(_written).fillna(NO_GROUP)
        codes, names = pd.factorize(texts)
        if len(names) * _FEWEST_ROWS > len(codes) >= _ENOUGH:
            raise TableError(
                f"{notebook.source}: column {quoted(column.name)} has {len(names):,} different values in "
                f"{counted(len(codes), 'row')}, so it tells no groups. Name a column of runs, units or machines."
            )
        if times is not None:
            stamps = np.where(times.isna(), np.iinfo(np.int64).max, times.asi8)
            order = np.argsort(pd.Series(stamps).groupby(codes).min().to_numpy(), kind="stable")
            codes, names = np.argsort(order)[codes], names[order]
        missing = int(column.isna().sum())
        without = f"; {counted(missing, 'row')} without a value are the group {NO_GROUP}" if missing else ""
        notebook.add(
            "row groups",
            f"Rows are kept together by column {quoted(column.name)}: {counted(len(names), 'group')}{without}.",
            len(names),
            (str(column.name),),
        )
        return cls(str(column.name), codes.astype(np.intp), tuple(map(str, names)))

    def new(self, rows: NDArray[np.intp]) -> NDArray[np.bool_]:
        """Whether each of these rows but the first is of another group than the one before."""
        return np.asarray(np.diff(self.codes[rows]) != 0)

    def named(self, rows: NDArray[np.intp]) -> pd.Series[Any]:
        """The names of these rows' groups, under the rows' numbers."""
        return pd.Series(np.array(self.names, dtype=object)[self.codes[rows]], index=pd.Index(rows), name=self.column)


def _written(value: Any) -> Any:
    """A value as text; a number without decimals that are 0."""
    if pd.isna(value):
        return value
    return str(int(value)) if isinstance(value, float) and value.is_integer() else str(value).strip()
