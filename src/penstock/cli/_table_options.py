"""The options that say how tables are read, shared by `detect`, `fit` and `score`: those of `read_table`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from penstock.cli._config import read_config

_IN, _FORMAT = "Input", "How the text is written (found if not given)"


def _input(flag: str, text: str) -> Any:
    return typer.Option(flag, help=text, rich_help_panel=_IN)


def _format(flag: str, text: str) -> Any:
    return typer.Option(flag, help=text, rich_help_panel=_FORMAT)


Sources = Annotated[
    list[str],
    typer.Argument(
        metavar="SOURCE",
        help="CSV (also .gz), Parquet or Excel files, or a folder of them. Several belong together: the same columns "
        "are appended, others are joined on time.",
        show_default=False,
    ),
]
Time = Annotated[str | None, _input("--time", "The time column, or two: date,time. Found if not given.")]
ColumnList = Annotated[str | None, _input("--columns", "Inputs, only these: a,b,c")]
Exclude = Annotated[str | None, _input("--exclude", "No inputs: a,b")]
Keep = Annotated[
    str | None,
    _input("--keep", "Inputs even if they would be left out (useless, like a label): a,b"),
]
Label = Annotated[str | None, _input("--label", "A column of what is known, to compare with; never an input.")]
FaultValue = Annotated[
    list[str] | None, _input("--fault-value", "Values of the label that mean a fault: 1,2; may be repeated.")
]
UnknownValue = Annotated[
    list[str] | None, _input("--unknown-value", "And those of rows of which nothing is known: -999; may be repeated.")
]
Group = Annotated[str | None, _input("--group", "A column of runs, units or machines: no event spans two.")]
From = Annotated[str | None, _input("--from", "Use rows from this time on; without times, from this row (from 0).")]
Until = Annotated[str | None, _input("--until", "Use rows up to this time or row, and with it.")]
ExcludePeriod = Annotated[
    list[str] | None,
    _input("--exclude-period", "Neither learn from nor judge START..END, times or rows; may be repeated."),
]
Strict = Annotated[bool, _input("--strict", "Refuse a table rather than change, leave out or encode anything.")]
MaxBytes = Annotated[int | None, _input("--max-bytes", "The largest text to read; else a quarter of the memory.")]

Timezone = Annotated[str | None, _format("--timezone", "Of time stamps that have none, and to show others in.")]
DayFirst = Annotated[bool | None, _format("--day-first/--month-first", "Whether 1/2/2024 is in February.")]
TimeFormat = Annotated[str | None, _format("--time-format", "How times are written: '%d/%m/%y %Hh'")]
Names = Annotated[str | None, _format("--names", "The names of all columns, where there is no header: a,b,c")]
Separator = Annotated[str | None, _format("--separator", "Between fields: one character, tab or space.")]
Decimal = Annotated[str | None, _format("--decimal", "Before decimals: . or ,")]
Thousands = Annotated[str | None, _format("--thousands", "Between thousands, if there is a sign.")]
Missing = Annotated[str | None, _format("--missing", "Further codes for a missing value: -9999,Bad")]
Encoding = Annotated[str | None, _format("--encoding", "Such as utf-8 or cp1252.")]
Sheet = Annotated[str | None, _format("--sheet", "Of a workbook; else the first.")]

Config = Annotated[
    Path | None,
    typer.Option(
        "--config",
        callback=read_config,
        is_eager=True,
        help="A TOML file with any of these options; the command line wins.",
    ),
]
