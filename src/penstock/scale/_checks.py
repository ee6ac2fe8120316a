"""What is asked of the rows of every source, and the words for what is wrong with them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from penstock._messages import counted, listed, quoted
from penstock._types import FloatArray
from penstock.io import TableError, refuse_unknown

_TIME_TYPES = ("datetime", "timestamp", "timedelta", "duration", "period", "date", "time")
_CHOOSE = "pass columns=[...] with the names of those to use"


class SourceError(ValueError):
    """The rows cannot be used as they are; the message says what is wrong, where, and what to do."""


@dataclass(frozen=True)
class Place:
    """Where the rows of a piece lie, for messages: `part` of a `whole` in which they begin at `first_row`.

    Without a part, rows are counted in what the label names.
    """

    label: str
    part: str | None = None
    whole: str | None = None
    first_row: int = 0

    def row(self, number: int) -> str:
        """How a message calls a row.

        >>> Place("a.parquet, row group 2", "row group 2", "the file", 4000).row(17)
        'row 17 of row group 2 (row 4,017 of the file)'
        """
        if self.part is None:
            return f"row {self.first_row + number:,}"
        return f"row {number:,} of {self.part} (row {self.first_row + number:,} of {self.whole})"


def missing_extra(what: str) -> SourceError:
    """The error for a package that is not installed."""
    return SourceError(f"{what} needs the extra 'dask': pip install 'penstock[dask]'")


def brief(error: BaseException) -> str:
    """What another package says is wrong, on one line and not too long.

    >>> brief(OSError("Couldn't deserialize:\\n no more data\\n"))
    "Couldn't deserialize: no more data"
    """
    return " ".join(str(error).split())[:150]


def checked_wish(columns: Sequence[str] | None) -> list[str] | None:
    """The names that were asked for, as a list, unless they cannot be meant."""
    if columns is None:
        return None
    if isinstance(columns, str):
        raise SourceError(f"columns is a list of names; for one column pass columns=[{columns!r}].")
    wish = list(columns)
    if not all(isinstance(name, str) for name in wish):
        raise SourceError(f"columns is a list of names, texts each; got {wish!r:.200}.")
    if not wish:
        raise SourceError("columns=[] leaves no column. Name at least one, or leave out columns to use all.")
    refuse_repeated(wish, "columns=[...]")
    return wish


def chosen_positions(known: Sequence[str], wish: Sequence[str] | None, label: str) -> list[int]:
    """Where the columns to use stand among those that there are; all of them if none were asked for.

    >>> chosen_positions(["flow", "head", "noise"], ["head", "flow"], "a.parquet")
    [1, 0]
    """
    positions = {name: position for position, name in enumerate(known)}
    try:
        refuse_unknown([name for name in wish or () if name not in positions], known, "columns", label)
    except TableError as error:
        raise SourceError(str(error)) from None
    if not known:
        raise SourceError(f"{label} has no columns. A detector needs at least one column of numbers.")
    wanted = set(known if wish is None else wish)
    refuse_repeated([name for name in known if name in wanted], label)
    return list(range(len(known))) if wish is None else [positions[name] for name in wish]


def refuse_repeated(names: Sequence[str], label: str) -> None:
    """Raise if a name stands for two columns: which one is meant could not be told."""
    repeated = [name for name, count in Counter(names).items() if count > 1]
    if repeated:
        raise SourceError(f"{label} has more than one column named {listed(repeated)}. Give each its own name.")


def refuse_chosen_names(wish: Sequence[str] | None, label: str) -> None:
    """Raise if columns are asked for by name where they have no names."""
    if wish is not None:
        raise SourceError(
            f"{label} has no column names, so {listed(wish)} (given as columns) cannot be found. Leave out columns, "
            f"and pass an array of the wanted columns only."
        )


def refuse_type(label: str, column: str, type_name: str) -> None:
    """Raise for a column that holds no numbers, with the way out."""
    if type_name.lower().startswith(_TIME_TYPES):
        raise SourceError(
            f"{label}: column {quoted(column)} holds times ({type_name}), not measurements. Leave it out: {_CHOOSE}."
        )
    raise SourceError(
        f"{label}: column {quoted(column)} holds {type_name}, but a detector needs numbers. Encode it as numbers, or "
        f"leave it out: {_CHOOSE}."
    )


def refuse_array_type(dtype: np.dtype[np.generic], label: str) -> None:
    """Raise unless an array holds real numbers or truth values."""
    if dtype.kind not in "biuf":
        what = "times" if dtype.kind in "mM" else "values"
        raise SourceError(
            f"{label} holds {what} of type {dtype}, but a detector needs real numbers. Convert it, for example with "
            f"astype(float), or leave out what is no measurement."
        )


def refuse_shape(shape: Sequence[float], label: str) -> None:
    """Raise unless an array has rows and columns, and its number of columns is known; the rows may be unknown (NaN)."""
    if len(shape) != 2:
        raise SourceError(
            f"{label} has {counted(len(shape), 'dimension')} (shape {tuple(shape)}), but a table of rows × columns "
            f"needs 2. For a single column use reshape(-1, 1)."
        )
    if np.isnan(shape[1]):
        raise SourceError(f"{label} has an unknown number of columns. Call its compute_chunk_sizes() first.")
    if shape[1] == 0:
        raise SourceError(f"{label} has no columns. A detector needs at least one column of numbers.")


def refuse_nonfinite(table: FloatArray, place: Place, columns: Sequence[str] | None) -> None:
    """Raise if a value is missing or infinite, naming the first."""
    bad = ~np.isfinite(table)
    if not bad.any():
        return
    row, column = (int(index) for index in np.argwhere(bad)[0])
    name = f"{column:,}" if columns is None else quoted(columns[column])
    missing, n_rows = bool(np.isnan(table[row, column])), counted(int(bad.any(axis=1).sum()), "row")
    what = "no value (null or NaN)" if missing else f"{table[row, column]} (infinity)"
    way_out = (
        f"Missing values are not taken here: fill them, leave out such rows ({n_rows} here), or fit on one machine "
        f"with detector.fit, which takes them."
        if missing
        else f"Replace such values by finite numbers, or leave out such rows ({n_rows} here)."
    )
    raise SourceError(
        f"{place.label}: {place.row(row)}, column {name}, holds {what}, the first of "
        f"{counted(int(bad.sum()), 'such value')} among {table.size:,}. {way_out}"
    )
