"""Read labelled files as data sets."""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from penstock._messages import counted, listed, quoted
from penstock._types import BoolArray, FloatArray
from penstock.columns import order_to_stamp
from penstock.explain.labels import known_faults
from penstock.io import TableError, read_table
from penstock.io.table import refuse_unknown

_LABEL_NAMES = ("outlier", "label", "anomaly", "is_anomaly", "y", "class", "target")
_TOLD_ELSEWHERE = ("missing values", "row groups")  # notes of the table that a report has in another place, or not
_ENDINGS = (".csv", ".tsv", ".txt", ".dat", ".parquet", ".pq", ".xlsx", ".xlsm")


@dataclass(frozen=True, eq=False)
class Dataset:
    """A labelled table; with times, a series.

    Parameters
    ----------
    name : str
    X : ndarray of shape (n, p)
        NaN where a value is missing.
    y : ndarray of shape (n,)
        1 for an anomaly, 0 for a normal row.
    time : DatetimeIndex, default=None
        In ascending order, in each group.
    groups : ndarray of shape (n,), default=None
        Which run, unit or machine each row is of; rows of a group are together.
    train : ndarray of bool of shape (n,), default=None
        Rows to learn from; the others are scored. None: methods are fitted to all rows, and score these.
    counted : ndarray of bool of shape (n,), default=None
        Rows that count where rows are counted; None: all that are scored.
    names : tuple of str, default=()
        Of the columns.
    causes : ndarray of str of shape (n,), default=None
        In rows of anomalies the columns that cause them, separated by semicolons; "" where that is not known.
    notes : tuple of str, default=()
        What reading the file assumed or changed, in sentences.

    Examples
    --------
    >>> data = Dataset("pump", np.array([[1.0], [1.1], [9.0]]), np.array([0, 0, 1]))
    >>> data.X.shape, int(data.y.sum())
    ((3, 1), 1)
    """

    name: str
    X: FloatArray
    y: NDArray[np.int64]
    time: pd.DatetimeIndex | None = None
    groups: NDArray[Any] | None = None
    train: BoolArray | None = None
    counted: BoolArray | None = None
    names: tuple[str, ...] = ()
    causes: NDArray[Any] | None = None
    notes: tuple[str, ...] = ()

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

        What a series has besides follows, as far as there is any.

        >>> Dataset("one", np.array([[0.5], [1.0]]), np.array([0, 1])).digest[:12]
        '325f7bc565dc'
        """
        content = hashlib.sha256(np.array([self.n, self.p], dtype="<i8").tobytes())
        content.update(np.ascontiguousarray(self.X, dtype="<f8").tobytes())
        content.update(np.ascontiguousarray(self.y, dtype="<i8").tobytes())
        time = None if self.time is None else self.time.as_unit("ns").asi8
        for values in (time, self.groups, self.train, self.counted, self.causes):
            if values is not None:
                content.update(repr(values.tolist()).encode("utf-8", "replace"))
        return content.hexdigest()


def load_file(
    path: str | os.PathLike[str],
    label: str | None = None,
    *,
    exclude: Sequence[str] = (),
    time: str | None = None,
    group: str | None = None,
    train_until: str | int | None = None,
    cause: str | None = None,
) -> Dataset:
    """Read a labelled table: rows of a series in order of time, others in that of the file, values as they are.

    Parameters
    ----------
    path : path
        Of the file (CSV, Parquet, Excel), or ``path::column`` with the label column, or ``path::column::others`` with
        the columns that are no inputs too, separated by commas.
    label : str, optional
        The label column: 0 and 1, false and true, no and yes, normal and names of faults, as `penstock detect` reads
        it. If neither names it, it is the one called outlier, label, anomaly, is_anomaly, y, class or target in upper
        or lower case.
    exclude : sequence of str, default=()
        Columns that are no inputs, such as a second label.
    time : str, optional
        The time column; found by name or content if not given.
    group : str, optional
        A column that says which run, unit or machine each row is of.
    train_until : str or int, optional
        Learn from the rows until this time, or from so many rows (of each group), and score the later ones.
    cause : str, optional
        A column that names, in rows of anomalies, the columns that cause them, separated by semicolons.

    Returns
    -------
    Dataset
        All columns but these are inputs.

    Raises
    ------
    TableError
        For inputs that are no numbers, and labels that cannot be read, with the column and the row.

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
    columns: dict[str, Any] = {"exclude": exclude, "time": time, "group": group}
    if label is None:
        label = named if named is not None else _label_among(list(read_table(file, **columns).names), file)
    table = read_table(file, label=label, **columns)
    lost = table.about("missing times")
    if lost is not None:  # reading leaves such rows out, and with them labels
        raise TableError(
            f"{table.source}: column {quoted(table.time_name)} is taken for the time, and {counted(lost.count, 'row')} "
            f"of it cannot be read, the first in row {min(lost.rows)} (counted from 0). Correct or remove the column."
        )
    values = table.values
    causes = None
    if cause is not None:
        refuse_unknown([cause], table.names, "cause", table.source)
        causes = values[cause].fillna("").astype(str).to_numpy()
        values = values.drop(columns=cause)
        named_there = {name for text in causes for name in split_causes(text)}
        refuse_unknown(sorted(named_there), list(values.columns), f"cause, in column {quoted(cause)}", table.source)
        if table.time is None:
            raise TableError(
                f"cause: {table.source} has no time stamps, and sensors are compared by faults over time. Name the "
                f"time column, or leave cause out and name the column after the label: {file}::{label}::{cause}.",
                "cause",
            )
    assert table.label is not None
    y, sentence = _anomalies(table.label, table.source)
    X = _numbers(values, table.source)
    if y.min() != y.max():
        for name, column in zip(values.columns, X.T, strict=True):
            found = [np.unique(column[y == kind]) for kind in (0, 1)]
            of_two_values = list(map(len, found)) == [1, 1] and len(np.unique(column)) > 1
            # Every method would find all anomalies by it; of a single anomaly other numbers may do so by chance.
            if of_two_values and (y.sum() > 1 or (column == y).all()):
                raise TableError(
                    f"Column {quoted(name)} tells the label in every row, and would give the anomalies away. Name "
                    f"it after the label to leave it out: {file}::{table.label.name}::{name}."
                )
    groups = None if table.group is None else pd.factorize(table.group)[0]
    train = _training_rows(train_until, table.time, groups, X, table.source)
    name = Path(file).name
    name = name[:-3] if name.lower().endswith(".gz") else name
    name = Path(name).stem if name.lower().endswith(_ENDINGS) else name
    notes = (sentence, *(note.message for note in table.notes if note.kind not in _TOLD_ELSEWHERE))
    return Dataset(name, X, y, table.time, groups, train, names=tuple(values.columns), causes=causes, notes=notes)


def check_labels(dataset: Dataset) -> None:
    """Raise if the rows that are scored are all normal, or all anomalies."""
    scored = dataset.y if dataset.train is None else dataset.y[~dataset.train]
    if scored.min() == scored.max():
        none_or_all = "nothing but anomalies" if scored.all() else "no anomaly"
        where, what_to_do = "", "Write 1 in the label column of anomalies and 0 in that of normal rows."
        if dataset.train is not None:
            where, what_to_do = " after the rows that are fitted to", "Fit to other rows (train_until)."
        raise TableError(
            f"Data set {dataset.name} has {none_or_all}{where}: there is nothing to tell apart. {what_to_do}"
        )


def split_causes(text: str) -> list[str]:
    """Split the names of the columns that cause an anomaly.

    >>> split_causes(" flow; head")
    ['flow', 'head']
    """
    return [name.strip() for name in text.split(";") if name.strip()]


def _training_rows(
    until: str | int | None, time: pd.DatetimeIndex | None, groups: NDArray[Any] | None, X: FloatArray, source: str
) -> BoolArray | None:
    """Return the rows to learn from, None for all; raise if that leaves none to learn from or to score."""
    if until is None:
        return None
    said, n = str(until).strip(), len(X)
    if re.fullmatch("[0-9]+", said):
        if time is not None and n > int(said) and time.min().year <= int(said) <= time.max().year:
            raise TableError(
                f"train_until: {said} may be a year of {source} or a number of its rows. Write a year with its month, "
                f"as in '{said}-12', or another number of rows.",
                "train_until",
            )
        count, said = int(said), f"row {said}"
        runs = np.zeros(n, dtype=np.intp) if groups is None else groups
        rows = pd.Series(runs).groupby(runs).cumcount().to_numpy() < count
    elif time is None:
        raise TableError(
            f"train_until: {source} has no time stamps to compare {said} with. Give a number of rows.", "train_until"
        )
    else:
        try:
            rows = ~order_to_stamp(time, said)[1]
        except ValueError as error:
            raise TableError(f"train_until: {error}", "train_until") from None
    if not rows.any() or rows.all():
        extent = f"{n:,} rows" if time is None else f"{n:,} rows from {time.min()} to {time.max()}"
        left = "to score after" if rows.all() else "to learn from until"
        raise TableError(f"train_until: there is no row {left} {said}; {source} has {extent}.", "train_until")
    return np.asarray(rows, dtype=np.bool_)


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


def _anomalies(label: pd.Series[Any], source: str) -> tuple[NDArray[np.int64], str]:
    """Return 1 for anomalies and 0 for normal rows, as `penstock detect --label` reads them, and how that was done."""
    how_to = "Write 0 for normal rows and 1 for anomalies."
    try:
        truth = known_faults(label)
    except TableError as error:
        raise TableError(
            f"{source}: it is not clear which values of the label column {quoted(label.name)} mean an anomaly. {how_to}"
        ) from error
    unclear = label.isna().to_numpy() | truth.unknown
    if unclear.any():
        row = int(unclear.argmax())
        held = "nothing" if pd.isna(label.iloc[row]) else quoted(label.iloc[row])
        raise TableError(
            f"{source}: the label column {quoted(label.name)} holds {held} in row {label.index[row]} (counted from 0), "
            f"which is neither normal nor an anomaly. {how_to}"
        )
    return truth.faults.astype(np.int64), truth.sentence


def _numbers(values: pd.DataFrame, source: str) -> FloatArray:
    """Return the inputs, NaN where one is missing; raise for texts, and for rows and columns without any number."""
    texts = [name for name in values if values[name].dtype.kind != "f"]
    if texts:
        more = f" (as do {listed(texts[1:], most=4)})" if len(texts) > 1 else ""
        column = values[texts[0]]
        row = int(column.notna().to_numpy().argmax())
        raise TableError(
            f"{source}: column {quoted(texts[0])} holds text, {quoted(column.iloc[row])} in row {column.index[row]} "
            f"(counted from 0){more}. The methods of the study take numbers only: write it as numbers, or name it "
            f"after the label to leave it out: FILE::LABEL::{texts[0]}."
        )
    X = np.array(values, dtype=np.float64, order="C")
    lost = np.isnan(X)
    for odd, what in (
        (np.isinf(X), "holds a number that is not finite"),
        (lost.all(axis=0, keepdims=True), "has no number at all"),
        (lost.all(axis=1, keepdims=True), "and all others hold nothing"),
    ):
        if odd.any():
            row, column_number = np.argwhere(odd)[0]
            place = f", row {values.index[row]} (counted from 0)" if odd.shape[0] > 1 else ""
            raise TableError(
                f"{source}: column {quoted(values.columns[column_number])}{place} {what}. Correct the value, or remove "
                f"the row or the column."
            )
    return X
