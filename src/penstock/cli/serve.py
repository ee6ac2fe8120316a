"""`penstock serve`: watch assets, keep alarms, and show them on a page; `penstock open`: a page for a file."""

from __future__ import annotations

import logging
import sys
import time
from pathlib import Path
from typing import Annotated, Any

import typer

from penstock._messages import odd_character
from penstock.cli._console import CommandError, StopSignals, print_text, printable
from penstock.cli._options import chosen_options, plain_errors, with_options
from penstock.live.options import AlarmRules, AssetOptions, ServeOptions

_Test = Annotated[bool, typer.Option("--test", help="Show the first row of each asset as it is understood, and end.")]
_Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="Say nothing but errors.", rich_help_panel="Service")]


@with_options(AssetOptions, ServeOptions, AlarmRules, tables={"asset": AssetOptions})
def serve(context: typer.Context, quiet: _Quiet = False, test: _Test = False, **options: Any) -> int:
    r"""Watch assets live: rows in from files and over HTTP, alarms that people can work with on a page.

    penstock serve --model unit1.penstock --input unit1.csv

    Everything is kept in one file (--store): ended in any way and started again, it goes on where it was. Several
    assets are named in a --config file: a table \[asset.NAME] with model, input, threshold … for each.
    """
    with plain_errors(context):
        chosen = _options(context)
        if chosen.add_token is not None or chosen.remove_token is not None:
            return _change_tokens(chosen)
        if test:
            return _test(chosen)
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


def _test(options: ServeOptions) -> int:
    """Show the first row of each asset, or why there is none; exit code 2 if one has none."""
    from penstock.project.trial import first_row

    options.check()
    failed = False
    for name, asset in options.assets.items():
        try:
            found = first_row(asset)
        except (ValueError, OSError) as error:
            failed = True
            print_text(printable(f"{name}: {error}"))
            continue
        readings = ", ".join(f"{each['name']} {each['value']}" for each in found["readings"])
        print_text(printable(f"{name}: {found['time'] or 'without time'}, score {found['score']}: {readings}"))
    return 2 if failed else 0


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


def open_(
    context: typer.Context,
    sources: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[FILE …]",
            help="CSV, Parquet or Excel files, a folder of them, a database (sql:URL), or the folder of a project.",
            show_default=False,
        ),
    ] = None,
    project: Annotated[
        Path | None,
        typer.Option(
            "--project", help="The folder that everything is kept in; else named as the file.", show_default=False
        ),
    ] = None,
    sample: Annotated[bool, typer.Option("--sample", help="Begin with the sample plant.")] = False,
    host: Annotated[
        str, typer.Option("--host", help="Address to listen at: this machine alone by default.")
    ] = "127.0.0.1",
    port: Annotated[int, typer.Option("--port", min=0, max=65535, help="Port to listen at; 0 for any.")] = 0,
    max_upload: Annotated[float, typer.Option("--max-upload", min=0.001, help="Largest file to upload, in GB.")] = 4.0,
    browser: Annotated[bool, typer.Option("--browser/--no-browser", help="Open the page in a browser.")] = True,
) -> int:
    """Open a page: drop a file, see what was understood, mark the good weeks, see what is wrong, go live.

    Everything is kept in one folder (--project); 'penstock detect --config penstock.toml', run there, does the same.
    The files stay on this machine. Ctrl-C ends it.
    """
    from penstock.project.folder import SETTINGS, opened_project
    from penstock.project.uploads import UploadLimits
    from penstock.project.web import OpenOptions, ProjectServer

    given = list(sources or [])
    if len(given) == 1 and project is None and (Path(given[0]) / SETTINGS).is_file():
        project, given = Path(given[0]), []
    if sample and given:
        raise CommandError("--sample and files exclude each other.")
    folder = project or Path(_folder_name(given, sample))
    logging.basicConfig(level=logging.WARNING, format="%(asctime)s %(message)s", stream=sys.stderr)
    with plain_errors(context), opened_project(folder) as opened:
        if given:
            opened.use(*given)
        elif sample:
            opened.add_sample()
        limits = UploadLimits(file_bytes=int(max_upload * 1e9), unpacked_bytes=int(2 * max_upload * 1e9))
        server = ProjectServer(opened, OpenOptions(host, port, limits))
        if opened.sources and opened.read_json("look") is None:
            server.api.run("look")
        print_text(f"Open {server.url}")
        print_text(printable(f"Everything is kept in {opened.folder}. Ctrl-C ends it."))
        with StopSignals() as stop:
            server.run(stop.requested, started=lambda: _show(server.url) if browser else None)
    return 0 if stop.number is None else 128 + stop.number


def _folder_name(sources: list[str], sample: bool) -> str:
    """Return what the folder of a project is called: as the first file, beside which it is not looked for."""
    name = Path(sources[0]).name.split(".")[0] if sources and not sources[0].startswith("sql:") else ""
    return f"{name or ('sample' if sample else 'penstock')}-project"


def _show(url: str) -> None:
    import threading
    import webbrowser

    threading.Timer(0.5, webbrowser.open, (url,)).start()
