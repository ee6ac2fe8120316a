"""`penstock watch`: a stream of rows in, a line of JSON per sample out."""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from dataclasses import fields
from pathlib import Path
from typing import Annotated, Any, get_args, get_type_hints

import typer

from penstock.cli._console import CommandError
from penstock.cli._options import place_of, read_config, split_names
from penstock.live.options import OptionError, WatchOptions

_SIGNALLED = 128  # what shells add to the number of a signal
_Quiet = Annotated[
    bool, typer.Option("--quiet", "-q", help="No status, no summary; errors are shown.", rich_help_panel="Output")
]
_Config = Annotated[
    Path | None,
    typer.Option(
        "--config",
        callback=read_config,
        is_eager=True,
        help="A TOML file with any of these options; the command line wins.",
    ),
]


def watch(context: typer.Context, **options: Any) -> int:
    """Watch a stream: rows in, one line of JSON per sample out, as soon as it is known.

    {"row": 7, "time": "10:06", "score": 0.31, "threshold": 0.28, "flag": true, "variables": {"flow": -3.5}}

    Row is the number of the sample, from 1; malformed lines are reported on standard error and not counted. Variables
    are those that fit worst: what was measured minus what was expected. Null is for what is not known yet (warm-up) or
    cannot be; then a reason may say why. With --state, a watch that ended in any way goes on where it was: start it
    again as before.
    """
    names = ("columns", "exclude")
    lists = {name: split_names(options[name]) for name in names}
    chosen = {each.name: options[each.name] for each in fields(WatchOptions)}
    try:
        return _run(WatchOptions(**{**chosen, **lists}), quiet=options["quiet"])
    except OptionError as error:
        raise CommandError(f"{place_of(context, error.option)} {error.problem}", exit_code=2) from None


def _run(options: WatchOptions, *, quiet: bool) -> int:
    """Monitor until the end, and return the exit code of the command."""
    import sys

    from penstock.cli._console import StopSignals
    from penstock.cli._narrator import Narrator
    from penstock.io import InputError, OutputError, SnapshotError
    from penstock.live import Monitor
    from penstock.storage import StorageError

    # A status on the terminal where verdicts are shown would write over them.
    verdicts_shown = options.output is None and sys.stdout is not None and sys.stdout.isatty()
    narrator = Narrator(quiet=quiet, status=not verdicts_shown)
    counts = None
    try:
        with StopSignals() as stop, narrator.warnings():
            monitor = Monitor(options, narrator.observer())
            narrator.begin(monitor)
            counts = monitor.run(stop.requested)
    except BrokenPipeError:  # the reader of the output has closed it
        return 0
    except (InputError, OutputError, SnapshotError, StorageError) as error:
        raise CommandError(str(error), exit_code=2) from error
    finally:
        narrator.end(counts)
    if stop.number is not None:
        return _SIGNALLED + stop.number
    if counts.malformed and not counts.samples:
        hint = narrator.text_columns.hint(samples=0)
        raise CommandError(f"No line could be read: {hint}" if hint else "No line could be read.", exit_code=2)
    return 0


def _parameters() -> Iterator[inspect.Parameter]:
    """Yield the parameters of the command: the fields of `WatchOptions`, as typer takes them."""
    yield inspect.Parameter("context", inspect.Parameter.POSITIONAL_OR_KEYWORD, annotation=typer.Context)
    hints = get_type_hints(WatchOptions, include_extras=True)
    for each in fields(WatchOptions):
        kind, option = get_args(hints[each.name])
        default = each.default or None if kind in (Any, tuple[str, ...]) else each.default
        kind = str | None if kind in (Any, tuple[str, ...]) else kind
        declared: Any = typer.Option(
            *option.flags.split(),
            help=option.help,
            rich_help_panel=option.panel,
            show_default=option.default or True,
        )
        if not option.flags:
            kind, declared = str, typer.Argument(help=option.help)
        yield _keyword(each.name, default, Annotated[kind, declared])
    yield _keyword("quiet", False, _Quiet)
    yield _keyword("config", None, _Config)


def _keyword(name: str, default: Any, annotation: Any) -> inspect.Parameter:
    return inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=annotation)


watch.__signature__ = inspect.Signature(list(_parameters()))  # type: ignore[attr-defined]
watch.__annotations__ = {each.name: each.annotation for each in _parameters()}
