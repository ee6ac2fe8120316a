"""`penstock serve`: watch assets, keep alarms, and show them on a page."""

from __future__ import annotations

import logging
import sys
import time
from typing import Annotated, Any

import typer

from penstock._messages import odd_character
from penstock.cli._console import CommandError, StopSignals, print_text, printable
from penstock.cli._options import chosen_options, plain_errors, with_options
from penstock.live.options import AlarmRules, AssetOptions, ServeOptions

_Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="Say nothing but errors.", rich_help_panel="Service")]


@with_options(AssetOptions, ServeOptions, AlarmRules, tables={"asset": AssetOptions})
def serve(context: typer.Context, quiet: _Quiet = False, **options: Any) -> int:
    r"""Watch assets live: rows in from files and over HTTP, alarms that people can work with on a page.

    penstock serve --model unit1.penstock --input unit1.csv

    Everything is kept in one file (--store): ended in any way and started again, it goes on where it was. Several
    assets are named in a --config file: a table \[asset.NAME] with model, input, threshold … for each.
    """
    with plain_errors(context):
        chosen = _options(context)
        if chosen.add_token is not None or chosen.remove_token is not None:
            return _change_tokens(chosen)
        return _run(chosen, quiet=quiet)


def _options(context: typer.Context) -> ServeOptions:
    given = chosen_options(ServeOptions, context)
    usual = vars(AssetOptions())
    one = {name: value for name, value in chosen_options(AssetOptions, context).items() if value != usual[name]}
    assets = {name: AssetOptions(**each) for name, each in ((context.obj or {}).get("asset") or {}).items()}
    if one or (given.get("asset") and not assets):
        if assets:
            names = ", ".join(f"--{name.replace('_', '-')}" for name in one)
            raise CommandError(f"{names}: name these in a table [asset.NAME] of the --config file.")
        file = one.get("input") or one.get("model")  # the input first, as watch, refit and alarms name a stream
        name = given.get("asset") or (file.name.split(".")[0] if file is not None else "") or "stream"
        assets = {name: AssetOptions(**one)}
    return ServeOptions(**given, assets=assets, rules=AlarmRules(**chosen_options(AlarmRules, context)))


def _change_tokens(options: ServeOptions) -> int:
    from penstock.live.api import ROLES
    from penstock.live.store import Store

    store = Store(options.store, exclusive=False)
    try:
        if options.remove_token is not None:
            try:
                store.remove_token(options.remove_token)
            except LookupError as error:
                raise CommandError(str(error).strip("'\"")) from None
            return 0
        name, _, role = (options.add_token or "").rpartition(":")
        if not name.strip() or role not in ROLES or odd_character(name) is not None:
            roles = ", ".join(ROLES)
            raise CommandError(f"--add-token must be NAME:ROLE, a role being {roles}; got {options.add_token!r:.80}.")
        token = store.add_token(name, role, time.time())
        print_text(f"Token of {printable(name)} ({role}), shown this once:\n{token}")
        return 0
    finally:
        store.close()


def _run(options: ServeOptions, *, quiet: bool) -> int:
    from penstock.live.web import LiveServer

    options.check()
    level = logging.ERROR if quiet else logging.INFO
    logging.basicConfig(level=logging.WARNING, format="%(asctime)s %(message)s", stream=sys.stderr)
    logging.getLogger("penstock.serve").setLevel(level)
    server = LiveServer(options)
    if not quiet:
        names = ", ".join(options.assets) if len(options.assets) <= 5 else f"{len(options.assets)} assets"
        print_text(
            printable(f"Watching {names}. Open {server.url} (Ctrl-C ends it; everything is in {options.store}).")
        )
    with StopSignals() as stop:  # the web server ends at a signal, and passes it on
        server.run(stop.requested)
    return 0 if stop.number is None else 128 + stop.number
