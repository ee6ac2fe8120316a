"""`penstock model list|use|rollback`: the versions of the model of an asset of `penstock serve` or `watch`."""

from __future__ import annotations

import getpass
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from penstock.cli._console import CommandError, print_text, printable
from penstock.cli._options import plain_errors
from penstock.live.options import ServeOptions

if TYPE_CHECKING:
    from penstock.live.store import AssetRecord, Store

model = typer.Typer(help="Versions of the models of 'penstock serve' and 'watch'.", no_args_is_help=True)
_WAIT = 30.0  # seconds for a service to carry out a switch

StoreFile = Annotated[
    Path, typer.Option("--store", help="The file of the service, or watch.db in the --state of a watch.")
]
_Asset = Annotated[str | None, typer.Option("--asset", help="Which; may be left out if there is one.")]
Who = Annotated[str | None, typer.Option("--who", help="Who does it, for the audit log; else the user's name here.")]
_Columns = Annotated[bool, typer.Option("--other-columns", help="A model of other columns is meant.")]
STORE = ServeOptions().store


@model.command("list")
def list_versions(
    context: typer.Context,
    store: StoreFile = STORE,
    asset: _Asset = None,
    json: Annotated[bool, typer.Option("--json", help="The same as JSON.")] = False,
) -> int:
    """Show the versions of each asset's model, and which is in use.

    Exit code 0: done; 2: there is no such store or asset.
    """
    from dataclasses import asdict
    from json import dumps

    with plain_errors(context), opened_store(store) as opened:
        names = [asset] if asset is not None else opened.asset_names()
        found = {name: (_record(opened, name), opened.models(_record(opened, name).id)) for name in names}
    if json:
        plain = {
            name: [{**asdict(each), "in_use": each.version == record.version} for each in versions.values()]
            for name, (record, versions) in found.items()
        }
        print_text(dumps(plain, indent=2))
        return 0
    lines = []
    for name, (record, versions) in found.items():
        lines.append(f"{name}: version {record.version} is in use." if versions else f"{name}: no model yet.")
        for each in versions.values():
            mark = "*" if each.version == record.version else " "
            source = each.source or "learns from the rows"
            since = "in use since" if each.version == record.version else "last put into use"
            used = "never used" if each.used is None else f"{since} {_day(each.used)}"
            lines.append(f" {mark}{each.version:>3}  {source}, added {_day(each.added)} by {each.who}, {used}")
            lines += [f"       {each.note}"] if each.note else []
    print_text("\n".join(map(printable, lines)))
    return 0


@model.command()
def use(
    context: typer.Context,
    which: Annotated[
        str,
        typer.Argument(metavar="MODEL", help="A file of 'penstock fit', or a version's number.", show_default=False),
    ],
    store: StoreFile = STORE,
    asset: _Asset = None,
    who: Who = None,
    other_columns: _Columns = False,
) -> int:
    """Score an asset by another model from the next row on, also while 'penstock serve' or 'watch' runs.

    Exit code 0: done, or noted for the next start; 2: it cannot be.
    """
    from penstock.live.runtime import add_file

    with plain_errors(context), opened_store(store) as opened:
        name, person = chosen_asset(opened, asset), who or getpass.getuser()
        if which.isdecimal():
            version = int(which)
            if version not in opened.models(opened.asset(name).id):
                raise CommandError(f"{name} has no model version {which}; 'penstock model list' shows them.")
        else:
            version = add_file(opened, name, Path(which), str(Path(which).resolve()), person)
        return ask_for(opened, name, version, person, other_columns=other_columns)


@model.command()
def rollback(
    context: typer.Context,
    store: StoreFile = STORE,
    asset: _Asset = None,
    who: Who = None,
    other_columns: _Columns = False,
) -> int:
    """Go back to the version that was in use before.

    Exit code 0: done, or noted for the next start; 2: there is none.
    """
    with plain_errors(context), opened_store(store) as opened:
        name = chosen_asset(opened, asset)
        record = opened.asset(name)
        before = opened.models(record.id)[record.version].before if record.version else None
        if before is None:
            raise CommandError(f"{name}: no version was in use before version {record.version}.")
        return ask_for(opened, name, before, who or getpass.getuser(), other_columns=other_columns)


def ask_for(store: Store, name: str, version: int, who: str, *, other_columns: bool) -> int:
    """Ask for a switch, and wait until a service has carried it out, if one runs."""
    record = store.asset(name)
    if record.version == version and record.wanted is None:
        print_text(printable(f"{name}: version {version} is in use already."))
        return 0
    asked = time.time()
    with store.transaction():
        store.want_model(record.id, {"version": version, "who": who, "other_columns": other_columns})
    if not store.is_served():
        print_text(printable(f"{name}: version {version} is used from the next start on."))
        return 0
    wait_until(store, lambda: store.asset(name).wanted is None)
    done = next((each for each in store.audit(100) if _is_answer(each, name, asked)), None)
    details: dict[str, Any] = {} if done is None else done["details"]
    if done is not None and done["action"] == "switch refused":
        raise CommandError(details["reason"])
    print_text(printable(f"{name}: version {version} from row {details.get('row', store.asset(name).rows + 1)} on."))
    return 0


def wait_until(store: Store, is_done: Callable[[], bool]) -> None:
    """Wait until a service has done what the store asks it for."""
    end = time.monotonic() + _WAIT
    while not is_done():
        if time.monotonic() > end:
            said = f"The service on {store.path} has not answered in {_WAIT:.0f} s: see its log."
            raise CommandError(f"{said} It may still do it.")
        time.sleep(0.1)


def _is_answer(line: dict[str, Any], name: str, asked: float) -> bool:
    return line["subject"] == name and line["action"] in ("use model", "switch refused") and line["at"] >= asked - 1


def opened_store(path: Path) -> Any:
    """Return a context that has the store of a service open, whether that runs or not."""
    from contextlib import closing

    from penstock.live.store import Store

    if not path.is_file():
        raise CommandError(
            f"There is no store {path}: name that of penstock serve, or the watch.db of a watch (--store)."
        )
    return closing(Store(path, exclusive=False))


def _record(store: Store, name: str) -> AssetRecord:
    try:
        return store.asset(name)
    except LookupError as error:
        raise CommandError(f"{error.args[0]} There are {', '.join(store.asset_names())}.") from None


def chosen_asset(store: Store, asset: str | None) -> str:
    """Return the name of the asset that is meant; there must be one alone if none is named."""
    names = store.asset_names()
    if asset is None and len(names) != 1:
        raise CommandError(f"--asset: name one of {', '.join(names)}.")
    return _record(store, asset if asset is not None else names[0]).name


def _day(seconds: float) -> str:
    return time.strftime("%Y-%m-%d %H:%M", time.localtime(seconds))
