"""`penstock open`: a page to drop a file on, to see what is wrong, and to go live."""

from __future__ import annotations

import logging
import sys
from pathlib import Path
from typing import Annotated

import typer

from penstock.cli._console import CommandError, StopSignals, print_text, printable
from penstock.cli._options import plain_errors


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
