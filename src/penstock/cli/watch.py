"""`penstock watch`: a stream of rows in, a line of JSON per sample out."""

from __future__ import annotations

import sys
from typing import Annotated, Any

import typer

from penstock.cli._console import CommandError
from penstock.cli._options import chosen_options, plain_errors, with_options
from penstock.live.options import AlarmRules, WatchOptions

_Quiet = Annotated[
    bool, typer.Option("--quiet", "-q", help="No status, no summary; errors are shown.", rich_help_panel="Output")
]


@with_options(WatchOptions, AlarmRules)
def watch(context: typer.Context, quiet: _Quiet = False, **options: Any) -> int:
    """Watch a stream: rows in, one line of JSON per sample out, as soon as it is known.

    {"row": 7, "time": "10:06", "score": 0.31, "threshold": 0.28, "flag": true, "variables": {"flow": -3.5}}

    Row is the number of the sample, from 1; malformed lines are reported on standard error and not counted. Variables
    are those that fit worst: what was measured minus what was expected. Null is for what is not known yet (warm-up) or
    cannot be; then a reason may say why. With --state, a watch that ended in any way goes on where it was: start it
    again as before. With --alarms, rows that stand out become alarms: docs/alarms.md.
    """
    from penstock._parameters import ParameterError

    try:
        chosen, rules = (chosen_options(job, context) for job in (WatchOptions, AlarmRules))
        return _run(WatchOptions(**chosen), AlarmRules(**rules), quiet=quiet)
    except ParameterError as error:
        with plain_errors(context):
            raise error


def _run(options: WatchOptions, rules: AlarmRules, *, quiet: bool) -> int:
    """Monitor until the end, and return the exit code of the command."""
    from penstock.cli._console import StopSignals
    from penstock.cli._narrator import Narrator
    from penstock.io import InputError
    from penstock.live import Monitor
    from penstock.storage import StorageError

    # A status on the terminal where verdicts are shown would write over them.
    verdicts_shown = options.output is None and sys.stdout is not None and sys.stdout.isatty()
    narrator = Narrator(quiet=quiet, status=not verdicts_shown)
    counts = None
    try:
        with StopSignals() as stop, narrator.warnings():
            monitor = Monitor(options, narrator.observer(), rules)
            narrator.begin(monitor)
            counts = monitor.run(stop.requested)
    except BrokenPipeError:  # the reader of the output has closed it
        return 0
    except (InputError, StorageError) as error:
        raise CommandError(str(error)) from error
    finally:
        narrator.end(counts)
    if stop.number is not None:
        return 128 + stop.number  # as shells have it
    if counts.malformed and not counts.samples:
        hint = narrator.text_columns.hint(samples=0)
        raise CommandError(f"No line could be read: {hint}" if hint else "No line could be read.")
    return 0
