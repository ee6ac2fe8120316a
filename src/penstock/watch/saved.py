"""Whether what a snapshot holds is what a watch writes, before any of it is used."""

from __future__ import annotations

from typing import Any

from penstock.io import Columns, OutputMark, TableOptions
from penstock.io.csv_rows import CsvRows
from penstock.io.json_rows import JsonRows
from penstock.io.marks import Mark
from penstock.watch.plan import Counts


def check_saved(state: dict[str, Any], options: TableOptions) -> Columns:
    """The columns of a snapshot; ValueError, TypeError or LookupError if a watch could not go on from it.

    A good checksum only says that a snapshot is what was written; another version may have written something else.
    """
    counts = vars(Counts(**state["counts"]))
    for name, value in counts.items():
        _whole(value, f"counts: {name}")
    position = state["input"]
    _whole(position["line"], "input: line")
    if position["file"]["kind"] == "file":
        Mark.restore(position["file"], "the input")
    elif position["file"]["kind"] != "pipe":
        raise ValueError("input: file is no mark")
    output_mark(state)
    return _check_table(position["table"], options)


def pack_output(mark: OutputMark | None) -> dict[str, Any]:
    """A mark of the output as it is in a snapshot."""
    return {"output": mark and mark["length"], "output_tail": mark and mark["tail"]}


def output_mark(state: dict[str, Any]) -> OutputMark | None:
    """The mark of the output in a snapshot; None if it went where nothing can be taken back."""
    length, tail = state["output"], state["output_tail"]
    if length is None and tail is None:
        return None
    if not isinstance(tail, str):
        raise TypeError("output_tail is no text")
    return {"length": _whole(length, "output"), "tail": tail}


def _check_table(table: dict[str, Any], options: TableOptions) -> Columns:
    restore = {"csv": CsvRows.restore, "jsonl": JsonRows.restore}[table["format"]]
    if table["format"] == "csv" and len(table["delimiter"]) != 1:
        raise ValueError("the delimiter is not one character")
    columns = Columns.restore(table)
    places = (*columns.variables, *(() if columns.time is None else (columns.time,)))
    if not columns.variables or not all(isinstance(name, str) for name in columns.names):
        raise ValueError("the columns have no names")
    if any(_whole(place, "column") >= len(columns.names) for place in places):
        raise ValueError("there are fewer columns than are measured")
    restore(table, options)
    return columns


def _whole(value: object, name: str) -> int:
    if type(value) is not int or value < 0:
        raise ValueError(f"{name} is {value!r}, not a whole number ≥ 0")
    return value
