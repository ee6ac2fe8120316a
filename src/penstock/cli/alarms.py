"""`penstock alarms`: how much alarms ask of operators, and what rules would have done in the past."""

from __future__ import annotations

from math import isnan
from pathlib import Path
from typing import Annotated, Any

import typer

from penstock.cli._options import Sources, chosen_options, plain_errors, with_options
from penstock.cli.model import STORE, StoreFile, Who, opened_store, wait_until
from penstock.live.options import AlarmRules
from penstock.options import ReadingOptions

alarms = typer.Typer(help="Alarms of a record.", no_args_is_help=True)

File = Annotated[
    Path,
    typer.Argument(
        metavar="FILE",
        help="As 'penstock watch --alarms' wrote it, or its verdicts, of which alarms are made first.",
        show_default=False,
    ),
]


@alarms.command()
@with_options(AlarmRules)
def report(
    context: typer.Context,
    file: File,
    operators: Annotated[int, typer.Option("--operators", min=1, help="Who share the alarms.")] = 1,
    json: Annotated[bool, typer.Option("--json", help="The same as JSON.")] = False,
    **options: Any,
) -> int:
    """Show how many alarms came per operator, in 10 minutes, hours and days, and which of them are a nuisance.

    The targets are those of ISA-18.2 and IEC 62682 as secondary sources give them. Exit code 0: done; 2: the file or
    an option is wrong.
    """
    from json import dumps

    from penstock.cli._console import print_text
    from penstock.live.alarm_files import read_alarms
    from penstock.live.alarm_load import alarm_load

    with plain_errors(context):
        rules = AlarmRules(**chosen_options(AlarmRules, context))
        record = read_alarms(file, rules)
    load = alarm_load(record.changes, record.start, record.end, operators)
    known = {name: None if isinstance(value, float) and isnan(value) else value for name, value in vars(load).items()}
    print_text(dumps(known, indent=2) if json else "\n".join(_lines(file, record, load, operators)))
    return 0


@alarms.command()
@with_options(AlarmRules, ReadingOptions)
def past(
    context: typer.Context,
    source: Sources,
    model: Annotated[Path, typer.Option("--model", "-m", help="As 'penstock fit' wrote it.", path_type=Path)],
    labels: Annotated[
        Path | None, typer.Option("--labels", help="What people said of incidents: faults are marks.", path_type=Path)
    ] = None,
    json: Annotated[bool, typer.Option("--json", help="The same as JSON.")] = False,
    **options: Any,
) -> int:
    """Say which alarms a model and rules would have raised on the rows of a table, as 'penstock watch' would.

    With --failures or --labels, how many of them are on what is known. The table is read as that of the model was,
    unless options say otherwise. Exit code 0: done; 2: the table or an option is wrong.
    """
    from penstock.cli._run_detect import run_past

    return run_past(context)


@alarms.command()
def silences(
    context: typer.Context,
    store: StoreFile = STORE,
    end: Annotated[str | None, typer.Option("--end", help="End the silence of this id.", show_default=False)] = None,
    who: Who = None,
    json: Annotated[bool, typer.Option("--json", help="The same as JSON.")] = False,
) -> int:
    """Show the silences of 'penstock serve' (no notifications of some assets), or end one.

    Exit code 0: done, or noted for the next start; 2: there is no such store or silence.
    """
    import getpass
    from json import dumps

    from penstock.cli._console import CommandError, print_text, printable

    with plain_errors(context), opened_store(store) as opened:
        found = _silences(opened)
        if end is None:
            lines = [
                f"{each['id']}  {each['pattern']}, until {_shown(each['until'])}, by {each['who']} {each['reason']}"
                for each in found
            ]
            print_text(dumps(found, indent=2) if json else "\n".join(map(printable, lines or ["There are none."])))
            return 0
        if all(each["id"] != end for each in found):
            raise CommandError(f"There is no silence {end!r:.80}, or it has ended.")
        with opened.transaction():
            wanted = [*(opened.mark("silences to end") or []), {"id": end, "who": who or getpass.getuser()}]
            opened.save_book("~silences to end", wanted)
        if not opened.is_served():
            print_text(printable(f"{end} ends with the next start."))
            return 0
        wait_until(opened, lambda: not opened.mark("silences to end"))
        print_text(printable(f"{end} has ended."))
    return 0


def _silences(store: Any) -> list[dict[str, Any]]:
    """Return the silences in a store, by ids that no other group of assets has."""
    books = [(name, store.book(name)["book"]) for name in store.book_names()]
    return [{**each, "id": f"{name}:{each['id']}"} for name, book in books for each in book["silences"]]


def _shown(seconds: float) -> str:
    import datetime as dt

    return f"{dt.datetime.fromtimestamp(seconds, dt.UTC):%Y-%m-%d %H:%M} of the data's clock"


def _lines(file: Path, record: Any, load: Any, operators: int) -> list[str]:
    from penstock._messages import counted, duration_in_words
    from penstock.cli._console import printable
    from penstock.live.alarm_records import alarm_in_words

    first, last = (record.clock.text(time) for time in (record.start, record.end))
    span = "" if first is None else f", {first} to {last}"
    lines = [f"{file}: {duration_in_words(load.seconds)}{span}, {counted(operators, 'operator')}.", ""]
    lines.append(f"{'':<50}{'found':>9}  {'target':<9}")
    for name, value, target, _ in load.rows():
        shown = "-" if isnan(value) else f"{value:,.0f}" if value == int(value) else f"{value:,.3g}"
        lines.append(f"{name:<50}{shown:>9}  {target:<9}".rstrip())
    if load.acknowledged:
        lines.append(f"{'median time to acknowledge':<50}{duration_in_words(load.median_to_acknowledge):>9}")
    if load.top:
        lines += ["", "Most often:", *(f"{count:>6}  {cause}" for cause, count in load.top)]
    newest = {change.alarm.id: change.alarm for change in record.changes if change.alarm is not None}
    active = [alarm for alarm in newest.values() if alarm.state.active]
    if active:
        lines += ["", "Active at the end:"]
    for alarm in active:
        since = record.clock.text(alarm.since)
        lines.append(
            f"  {alarm.id}, since {since if since is not None else f'{alarm.since:g} s'}: {alarm_in_words(alarm)}"
        )
    return [*(printable(line) for line in lines), "", "Targets: ISA-18.2 and IEC 62682, from secondary sources."]
