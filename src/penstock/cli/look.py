"""`penstock look`: what is understood of a table, before anything is scored."""

from __future__ import annotations

from typing import Any

import typer

from penstock.cli._options import Sources, with_options
from penstock.options import ColumnOptions, LookResultOptions, ReadingOptions


@with_options(LookResultOptions, ReadingOptions, ColumnOptions)
def look(context: typer.Context, source: Sources, **options: Any) -> int:
    """Say what is understood of a table, before anything is scored. Look here first with a new export.

    How the time was read, what each tag is, its usual range and what is missing, what would be left out and why, and
    what would be done; on top, what was read without confidence, and how to change it. It reads as 'penstock detect'
    does. Exit code 0: done; 2: the table cannot be read, or an option is wrong.
    """
    from penstock.cli._run_detect import run_look

    return run_look(context)
