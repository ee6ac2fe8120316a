"""The user's own labelled files as data sets."""

from __future__ import annotations

import os
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from penstock._messages import counted, listed, quoted
from penstock._types import FloatArray
from penstock.bench.datasets import Dataset
from penstock.io import Table, TableError, read_table

_LABEL_NAMES = ("outlier", "label", "anomaly", "is_anomaly", "y", "class", "target")
_NORMAL = {"0", "false", "no", "normal", "inlier", "ok", "good", "healthy"}
_ANOMALOUS = {"1", "true", "yes", "anomaly", "anomalous", "abnormal", "outlier", "fault", "faulty"}
_ENDINGS = (".csv", ".tsv", ".txt", ".dat", ".parquet", ".pq", ".xlsx", ".xlsm")


def load_file(path: str | os.PathLike[str], label: str | None = None, *, exclude: Sequence[str] = ()) -> Dataset:
    """Read a labelled table as `penstock.io.read_table` does, with its rows in the order of the file.

    path : of the file, or ``path::column`` with the name of the label column, or ``path::column::others`` with the
        columns that are no inputs too, separated by commas.
    label : that column; if neither names it, it is the one called outlier, label, anomaly, is_anomaly, y, class or
        target in upper or lower case. It says of each row whether it is an anomaly: 0 and 1, false and true, no and
        yes, normal and anomaly and the like. A time column is no input; all others are, and must be complete numbers.

    exclude : columns that are no inputs, such as a second label: what tells of the anomalies must not be one.

    Values are taken as they are, not scaled. A file whose rows are all of one kind is read too; see `n_anomalies`.

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
        label = named if named is not None else _label_among(_columns(file, exclude), file)
    table = read_table(file, label=label, exclude=exclude)
    _refuse_lost_rows(table)
    values = table.values.sort_index()  # the order of the file, not that of time
    assert table.label is not None
    y = _anomalies(table.label.sort_index(), table.source)
    X = _numbers(values, table.source)
    _refuse_copies_of_the_label(X, y, list(values.columns), f"{file}::{table.label.name}")
    return Dataset(_stem(file), X, y)


def _file_and_columns(text: str) -> tuple[str, str | None, list[str]]:
    """The path, the label column if it is named, and the columns that are no inputs."""
    file, sign, columns = text.partition("::")
    if not sign or Path(text).exists():
        return text, None, []
    label, _, others = columns.partition("::")
    if not label:
        raise TableError(f"There is no column after '::' in {quoted(text)}. Name the label column there.")
    return file, label, [name.strip() for name in others.split(",") if name.strip()]


def _refuse_copies_of_the_label(X: FloatArray, y: NDArray[np.int64], names: Sequence[str], given: str) -> None:
    """Raise for an input that is the label under another name: every method would find all anomalies by it."""
    if y.min() == y.max():
        return
    for name, column in zip(names, X.T, strict=True):
        if (column == y).all():
            raise TableError(
                f"Column {quoted(name)} is equal to the label in every row, and would give the anomalies away. Name it "
                f"after the label to leave it out: {given}::{name}."
            )


def _columns(file: str, exclude: Sequence[str]) -> list[str]:
    """The names of all columns that may be the label, which that of the time is not."""
    return list(read_table(file, exclude=exclude).names)


def _label_among(columns: Sequence[str], file: str) -> str:
    """The one column that is called like a label."""
    found = [column for column in columns if column.casefold() in _LABEL_NAMES]
    if len(found) == 1:
        return found[0]
    name = Path(file).name
    if found:
        raise TableError(f"{name} has more than one column that may be the label: {listed(found)}. {_how_to(file)}")
    raise TableError(
        f"{name} has no column called {', '.join(_LABEL_NAMES[:-1])} or {_LABEL_NAMES[-1]} that says which rows are "
        f"anomalies; its columns are {listed(columns)}. {_how_to(file)}"
    )


def _how_to(file: str) -> str:
    return f"Name the label column after the path: {file}::column."


def _refuse_lost_rows(table: Table) -> None:
    """Raise if reading left out rows: the labels of a study are not ours to drop."""
    lost = table.about("missing times")
    if lost is not None:
        raise TableError(
            f"{table.source}: column {quoted(table.time_name)} is taken for the time, and {counted(lost.count, 'row')} "
            f"of it cannot be read, the first in row {min(lost.rows)} (counted from 0). Mend or remove the column."
        )


def _anomalies(label: pd.Series[Any], source: str) -> NDArray[np.int64]:
    """1 for each anomaly, 0 for each normal row."""
    codes, values = pd.factorize(label, use_na_sentinel=True)
    kinds = [_kind(value) for value in values]
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


def _kind(value: object) -> int | None:
    """1 for an anomaly, 0 for normal, None for a value that says neither."""
    word = str(value).strip().casefold()
    with suppress(ValueError):
        word = f"{float(word):g}"  # 1.0 is 1
    return 0 if word in _NORMAL else 1 if word in _ANOMALOUS else None


def _numbers(values: pd.DataFrame, source: str) -> FloatArray:
    """The inputs as an array; raise for texts and gaps, at the first of them."""
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


def _stem(file: str) -> str:
    """The name of a file without its folder and endings."""
    name = Path(file).name
    unpacked = name[:-3] if name.lower().endswith(".gz") else name
    return Path(unpacked).stem if unpacked.lower().endswith(_ENDINGS) else unpacked
