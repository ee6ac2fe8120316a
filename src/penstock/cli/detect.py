"""`penstock detect`, `fit` and `score`: a table in; findings and a report, or a model, out."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from penstock.cli._options import Sources, with_options
from penstock.options import (
    EngineOptions,
    LearningOptions,
    MethodParameters,
    ReadingOptions,
    ResultOptions,
    SelectionOptions,
    WriteOptions,
)

ModelIn = Annotated[Path, typer.Option("--model", "-m", help="As 'penstock fit' wrote it.", path_type=Path)]
ModelOut = Annotated[  # path_type as in `with_options`
    Path, typer.Option("--model", "-m", help="Where the model goes.", rich_help_panel="Output", path_type=Path)
]


@with_options(
    ResultOptions, WriteOptions, SelectionOptions, LearningOptions, ReadingOptions, MethodParameters, EngineOptions
)
def detect(context: typer.Context, source: Sources, **options: Any) -> int:
    """Find what is anomalous in a table: which rows, which events, on which days, and which variables are behind them.

    A summary goes to standard output, with what was left out or changed on the way. Exit code 0: done; 1: at least
    --fail-on events; 2: the input or an option is wrong, or a file cannot be written. Files are written wholly or not
    at all.
    """
    from penstock.cli._run_detect import run_detect

    return run_detect(context)


@with_options(WriteOptions, LearningOptions, ReadingOptions, MethodParameters, EngineOptions)
def fit(context: typer.Context, source: Sources, model: ModelOut, **options: Any) -> int:
    """Learn from a table what is usual, and keep it in a file for 'penstock score'.

    Exit code 0: done; 2: the input or an option is wrong, or the model cannot be written.
    """
    from penstock.cli._run_detect import run_fit

    return run_fit(context)


@with_options(ResultOptions, WriteOptions, SelectionOptions, ReadingOptions)
def score(context: typer.Context, source: Sources, model: ModelIn, **options: Any) -> int:
    """Score a table by a model that 'penstock fit' made of another: new data against what was usual.

    The table is read as that one was, unless options say otherwise. Without --top and --threshold, findings are rows
    with scores that stand out from those of the training. Exit codes are those of 'penstock detect'.
    """
    from penstock.cli._run_detect import run_score

    return run_score(context)
