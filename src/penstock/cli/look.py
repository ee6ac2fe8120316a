"""`penstock look` and `compare`: what a table holds, without scoring it; two periods or units of it side by side."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from penstock.cli._options import Sources, with_options
from penstock.options import ColumnOptions, LookResultOptions, ReadingOptions, WriteOptions


@with_options(LookResultOptions, ReadingOptions, ColumnOptions)
def look(context: typer.Context, source: Sources, **options: Any) -> int:
    """Say what is understood of a table, before anything is scored. Look here first with a new export.

    How the time was read, what each tag is, its usual range and what is missing, what would be left out and why, and
    what would be done; on top, what was read without confidence, and how to change it. It reads as 'penstock detect'
    does. Exit code 0: done; 2: the table cannot be read, or an option is wrong.
    """
    from penstock.cli._run_detect import run_look

    return run_look(context)


@with_options(WriteOptions, ReadingOptions, ColumnOptions)
def compare(
    context: typer.Context,
    source: Sources,
    period: Annotated[
        list[str] | None, typer.Option("--period", help="START..END; give two.", rich_help_panel="What is compared")
    ] = None,
    unit: Annotated[
        list[str] | None,
        typer.Option(
            "--unit",
            help="A word of tag names, a value of --group, or a file's name without ending; give two.",
            rich_help_panel="What is compared",
        ),
    ] = None,
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", help="Write all tags to this CSV file.", rich_help_panel="Output"),
    ] = None,
    json: Annotated[bool, typer.Option("--json", help="As JSON.", rich_help_panel="Output")] = False,
    **options: Any,
) -> int:
    """Say which tags differ between two periods or two sister units, by how much, and since when.

    penstock compare plant.csv --period 2024-05-01..2024-05-14 --period 2024-06-01..2024-06-14

    penstock compare plant.csv --unit unit1 --unit unit2

    A tag differs between periods if its median in the second is outside the range that nine tenths of its readings in
    the first lie in; between units also if their difference has moved by more than it usually varies. Exit code 0:
    done; 2: the table cannot be read, or an option is wrong.
    """
    from penstock.cli._run_detect import run_compare

    return run_compare(context)
