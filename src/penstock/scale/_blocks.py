"""Tables in memory → arrays of finite numbers: blocks that Dask has computed, and what a caller holds."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Any

import numpy as np

from penstock._types import FloatArray
from penstock.scale._checks import (
    Place,
    SourceError,
    chosen_positions,
    refuse_array_type,
    refuse_nonfinite,
    refuse_shape,
    refuse_type,
)


def as_table(
    block: Any, label: str, columns: Sequence[str] | None = None, *, n_columns: int | None = None
) -> FloatArray:
    """A computed block as a C-contiguous float64 array of finite numbers, or an error that says where the trouble is.

    `columns` are chosen by name from a DataFrame and only name those of an array. What Dask says of a block before it
    is computed is a promise of the code that makes it, so types and the number of columns are looked at again. The
    array may share memory with the block, which belongs to Dask, so do not write into it; what arrives read-only is
    copied, since kernels are compiled for the ordinary kind.

    >>> as_table([[1, 2], [3, 4]], "partition 0 of the Dask dataframe")
    array([[1., 2.],
           [3., 4.]])
    """
    table = frame_table(block, label, columns) if is_frame(block) else array_table(block, label)
    expected = n_columns if columns is None else len(columns)
    if expected is not None and table.shape[1] != expected:
        raise SourceError(
            f"{label} has {table.shape[1]:,} columns, but {expected:,} were announced. Make all blocks alike."
        )
    refuse_nonfinite(table, Place(label), columns)
    return table if table.flags.writeable else table.copy()


def is_instance_of(value: Any, module: str, name: str) -> bool:
    """Whether a value is of a class whose package may not be there: what is not loaded cannot have made it."""
    loaded = sys.modules.get(module)
    return loaded is not None and isinstance(value, getattr(loaded, name))


def is_frame(value: Any) -> bool:
    """Whether a value is a DataFrame of pandas or polars."""
    return is_instance_of(value, "pandas", "DataFrame") or is_instance_of(value, "polars", "DataFrame")


def array_table(block: Any, label: str) -> FloatArray:
    """An array as float64; what a masked array hides is missing."""
    if isinstance(block, np.ma.MaskedArray):
        refuse_array_type(block.dtype, label)
        block = np.ma.filled(block.astype(np.float64), np.nan)
    try:
        values = np.asarray(block)
    except (TypeError, ValueError) as error:
        raise SourceError(f"{label} is a {type(block).__name__}, which is no table of numbers ({error}).") from None
    refuse_shape(values.shape, label)
    refuse_array_type(values.dtype, label)
    with np.errstate(over="ignore"):  # what is too large for float64 becomes inf, and is refused by name
        return np.ascontiguousarray(values, dtype=np.float64)


def frame_table(frame: Any, label: str, columns: Sequence[str] | None) -> FloatArray:
    """The chosen columns of a DataFrame as float64, NaN where a value is missing; its index is no measurement."""
    names = [str(name) for name in frame.columns]
    positions = chosen_positions(names, columns, label)
    check_frame_types(names, list(frame.dtypes), positions, label)
    table = np.empty((len(frame), len(positions)))
    for number, position in enumerate(positions):
        table[:, number] = _column_values(frame, position)
    return table


def check_frame_types(names: Sequence[str], dtypes: Sequence[Any], positions: Sequence[int], label: str) -> None:
    """Raise for a column of a DataFrame (pandas, polars or Dask) that holds anything but real numbers or booleans."""
    for position in positions:
        if not _is_numeric(dtypes[position]):
            refuse_type(label, names[position], str(dtypes[position]))


def frame_names(frame: Any) -> list[str] | None:
    """The names of the columns, None unless all are texts: names by which scikit-learn would know them again, too."""
    names = list(frame.columns)
    return [str(name) for name in names] if all(isinstance(name, str) for name in names) else None


def _is_numeric(dtype: Any) -> bool:
    if is_instance_of(dtype, "polars", "DataType") or is_instance_of(dtype, "polars.datatypes", "DataTypeClass"):
        return bool(dtype.is_numeric()) or str(dtype) == "Boolean"
    from pandas.api import types

    return bool(types.is_numeric_dtype(dtype)) and not types.is_complex_dtype(dtype)


def _column_values(frame: Any, position: int) -> FloatArray:
    if is_instance_of(frame, "polars", "DataFrame"):
        values = frame.to_series(position).cast(float).to_numpy()
    else:
        values = frame.iloc[:, position].to_numpy(dtype=np.float64, na_value=np.nan)
    return np.asarray(values, dtype=np.float64)
