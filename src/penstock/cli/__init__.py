"""The command `penstock`. What a command needs is imported when it runs."""

from __future__ import annotations

try:
    import sys
    from collections.abc import Sequence
    from typing import Annotated, Any

    import typer

    import penstock
    from penstock.cli._console import CommandError, printable
    from penstock.cli.alarms import alarms
    from penstock.cli.bench import bench
    from penstock.cli.detect import detect, fit, score
    from penstock.cli.label import label
    from penstock.cli.look import compare, look
    from penstock.cli.model import model
    from penstock.cli.refit import refit
    from penstock.cli.serve import open_, serve
    from penstock.cli.simulate import simulate
    from penstock.cli.watch import watch
except KeyboardInterrupt:  # as in `main`, which is not there yet
    raise SystemExit(130) from None

_EXAMPLES = """Examples:

penstock open

penstock simulate hydropower sample --small

penstock look sample/plant.csv

penstock detect sample/plant.csv --report report.html

penstock fit sample/plant.csv --until 2015-09-12 --model unit2.penstock

penstock watch sample/plant.csv --model unit2.penstock --output verdicts.jsonl
"""
_GROUPS = {
    "A file": ("open", "look", "detect", "compare", "fit", "score", "label"),
    "Live": ("watch", "serve", "alarms", "refit", "model"),
    "Sample data, and studies": ("simulate", "bench"),
}

app = typer.Typer(
    help="Find what is wrong in a plant's sensor data, and the rows of any table that do not fit the rest.",
    epilog=_EXAMPLES,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
)
app.command("open")(open_)
app.command()(look)
app.command()(detect)
app.command()(compare)
app.command()(fit)
app.command()(score)
app.command()(label)
app.command()(watch)
app.command()(serve)
app.command()(refit)
app.add_typer(alarms, name="alarms")
app.add_typer(model, name="model")
app.add_typer(simulate, name="simulate")
app.add_typer(bench, name="bench")
_entries: list[Any] = [*app.registered_commands, *app.registered_groups]
for _entry in _entries:
    _name = _entry.name or _entry.callback.__name__
    _entry.rich_help_panel = next((group for group, names in _GROUPS.items() if _name in names), None)


def _show_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"penstock {penstock.__version__}")
        raise typer.Exit()


@app.callback()
def before_any_command(
    version: Annotated[
        bool, typer.Option("--version", callback=_show_version, is_eager=True, help="Show the version and end.")
    ] = False,
) -> None:
    """Find what is wrong in a plant's sensor data, and the rows of any table that do not fit the rest."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command and return its exit code; what a user can put right is one line on standard error."""
    try:
        given = sys.argv[1:] if arguments is None else list(arguments)
        return int(app(given, prog_name="penstock", standalone_mode=False) or 0)
    except CommandError as error:
        return _complain(str(error), error.exit_code)
    except (KeyboardInterrupt, typer.Abort):
        return 130
    except OSError as error:
        place = f"{error.filename}: " if error.filename else ""
        return _complain(f"{place}{error.strerror or error}")
    except Exception as error:
        if not hasattr(error, "format_message"):  # what typer raises for a wrong use has it, in all its versions
            raise
        context = getattr(error, "ctx", None)
        command = context.command_path if context is not None else "penstock"
        return _complain(f"{error.format_message().rstrip('.')}. See '{command} --help'.")


def _complain(message: str, exit_code: int = 2) -> int:
    if sys.stderr is not None:  # None: it was closed before we began
        sys.stderr.write(f"penstock: {printable(' '.join(message.split()))}\n")
    return exit_code
