"""Read labelled files as data sets."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from penstock._messages import counted, listed, quoted
from penstock._types import FloatArray
from penstock.io import TableError, read_table

_LABEL_NAMES = ("outlier", "label", "anomaly", "is_anomaly", "y", "class", "target")
_NORMAL = {"0", "false", "no", "normal", "inlier", "ok", "good", "healthy"}
_ANOMALOUS = {"1", "true", "yes", "anomaly", "anomalous", "abnormal", "outlier", "fault", "faulty"}
_ENDINGS = (".csv", ".tsv", ".txt", ".dat", ".parquet", ".pq", ".xlsx", ".xlsm")


@dataclass(frozen=True, eq=False)
class Dataset:
    """A labelled table: `X` (n×p), `y` 1 for an anomaly and 0 for a normal row."""

    name: str
    X: FloatArray
    y: NDArray[np.int64]

    @property
    def n(self) -> int:
        """Number of rows."""
        return len(self.X)

    @property
    def p(self) -> int:
        """Number of columns."""
        return int(self.X.shape[1])

    @property
    def n_anomalies(self) -> int:
        """Number of anomalies."""
        return int(self.y.sum())

    @cached_property
    def digest(self) -> str:
        """SHA-256 of the content, whatever the name: n and p, X row by row and y, all as little-endian 64-bit numbers.

        >>> Dataset("one", np.array([[0.5], [1.0]]), np.array([0, 1])).digest[:12]
        '325f7bc565dc'
        """
        content = hashlib.sha256(np.array([self.n, self.p], dtype="<i8").tobytes())
        content.update(np.ascontiguousarray(self.X, dtype="<f8").tobytes())
        content.update(np.ascontiguousarray(self.y, dtype="<i8").tobytes())
        return content.hexdigest()


def load_file(path: str | os.PathLike[str], label: str | None = None, *, exclude: Sequence[str] = ()) -> Dataset:
    """Read a labelled table, with its rows in the order of the file and its values as they are.

    Parameters
    ----------
    path : path
        Of the file (CSV, Parquet, Excel), or ``path::column`` with the label column, or ``path::column::others`` with
        the columns that are no inputs too, separated by commas.
    label : str, optional
        The label column: 0 and 1, false and true, no and yes, normal and anomaly and the like. If neither names it, it
        is the one called outlier, label, anomaly, is_anomaly, y, class or target in upper or lower case.
    exclude : sequence of str, default=()
        Columns that are no inputs, such as a second label.

    Returns
    -------
    Dataset
        A time column is no input; all other columns are.

    Raises
    ------
    TableError
        For inputs that are no complete numbers, and labels that cannot be read, with the column and the row.

    Examples
    --------
    >>> import tempfile
    >>> file = Path(tempfile.mkdtemp()) / "pump.csv"
    >>> _ = file.write_text("flow;head;Fault\\n3,5;40;no\\n3,6;41;no\\n9,1;12;yes\\n")
    >>> pump = load_file(f"{file}::Fault")
    >>> pump.name, pump.X.tolist(), pump.y.tolist()
    ('pump', [[3.5, 40.0], [3.6, 41.0], [9.1, 12.0]], [0, 0, 1])
    """
    file, named, others = _file_and_columns(os.fspath(path))
    exclude = [*exclude, *others]
    if label is None:
        label = named if named is not None else _label_among(list(read_table(file, exclude=exclude).names), file)
    table = read_table(file, label=label, exclude=exclude)
    lost = table.about("missing times")
    if lost is not None:  # reading leaves such rows out, and with them labels
        raise TableError(
            f"{table.source}: column {quoted(table.time_name)} is taken for the time, and {counted(lost.count, 'row')} "
            f"of it cannot be read, the first in row {min(lost.rows)} (counted from 0). Correct or remove the column."
        )
    values = table.values.sort_index()  # the order of the file, not that of time
    assert table.label is not None
    y = _anomalies(table.label.sort_index(), table.source)
    X = _numbers(values, table.source)
    if y.min() != y.max():
        for name, column in zip(values.columns, X.T, strict=True):
            if (column == y).all():  # every method would find all anomalies by it
                raise TableError(
                    f"Column {quoted(name)} is equal to the label in every row, and would give the anomalies away. "
                    f"Name it after the label to leave it out: {file}::{table.label.name}::{name}."
                )
    name = Path(file).name
    name = name[:-3] if name.lower().endswith(".gz") else name
    return Dataset(Path(name).stem if name.lower().endswith(_ENDINGS) else name, X, y)


def _file_and_columns(text: str) -> tuple[str, str | None, list[str]]:
    """Split into the path, the label column if it is named, and the columns that are no inputs."""
    file, sign, columns = text.partition("::")
    if not sign or Path(text).exists():
        return text, None, []
    label, _, others = columns.partition("::")
    if not label:
        raise TableError(f"There is no column after '::' in {quoted(text)}. Name the label column there.")
    return file, label, [name.strip() for name in others.split(",") if name.strip()]


def _label_among(columns: Sequence[str], file: str) -> str:
    """Find the one column that is called like a label."""
    found = [column for column in columns if column.casefold() in _LABEL_NAMES]
    if len(found) == 1:
        return found[0]
    name, how_to = Path(file).name, f"Name the label column after the path: {file}::column."
    if found:
        raise TableError(f"{name} has more than one column that may be the label: {listed(found)}. {how_to}")
    raise TableError(
        f"{name} has no column called {', '.join(_LABEL_NAMES[:-1])} or {_LABEL_NAMES[-1]} that says which rows are "
        f"anomalies; its columns are {listed(columns)}. {how_to}"
    )


def _anomalies(label: pd.Series[Any], source: str) -> NDArray[np.int64]:
    """Return 1 for each anomaly, 0 for each normal row."""
    codes, values = pd.factorize(label, use_na_sentinel=True)
    kinds: list[int | None] = []
    for value in values:
        word = str(value).strip().casefold()
        with suppress(ValueError):
            word = f"{float(word):g}"  # 1.0 is 1
        kinds.append(0 if word in _NORMAL else 1 if word in _ANOMALOUS else None)
    kinds.append(None)  # code -1: missing
    known = np.array([kind is not None for kind in kinds])[codes]
    if not known.all():
        row = int((~known).argmax())
        held = "nothing" if codes[row] < 0 else quoted(values[codes[row]])
        raise TableError(
            f"{source}: the label column {quoted(label.name)} holds {held} in row {row} (counted from 0), which is "
            f"neither normal nor an anomaly. Write 0 for normal rows and 1 for anomalies."
        )
    return np.array([kind or 0 for kind in kinds], dtype=np.int64)[codes]


def _numbers(values: pd.DataFrame, source: str) -> FloatArray:
    """Return the inputs as an array; raise for texts and gaps, at the first of them."""
    texts = [name for name in values if values[name].dtype.kind != "f"]
    if texts:
        more = f" (as do {listed(texts[1:], most=4)})" if len(texts) > 1 else ""
        column = values[texts[0]]
        row = int(column.notna().to_numpy().argmax())
        raise TableError(
            f"{source}: column {quoted(texts[0])} holds text, {quoted(column.iloc[row])} in row {row} (counted from 0)"
            f"{more}. The methods of the study take numbers only: write it as numbers, or remove it from the file."
        )
    X = np.array(values, dtype=np.float64, order="C")
    odd = ~np.isfinite(X)
    if odd.any():
        row, column_number = np.argwhere(odd)[0]
        raise TableError(
            f"{source}: {counted(int(odd.sum()), 'value')} cannot be used, the first in column "
            f"{quoted(values.columns[column_number])}, row {row} (counted from 0), which is missing or no finite "
            f"number. The methods of the study take complete tables only: fill the gaps, or remove those rows "
            f"or columns."
        )
    return X
