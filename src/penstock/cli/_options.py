"""Options on the command line and in TOML files, made of the dataclasses in `penstock.options`."""

from __future__ import annotations

import csv
import datetime as dt
import inspect
import io
import shlex
import tomllib
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from difflib import get_close_matches
from functools import partial
from pathlib import Path
from typing import Annotated, Any, get_args, get_origin, get_type_hints

import typer

from penstock._messages import spelled_by
from penstock.cli._console import CommandError
from penstock.options import Option, described

Sources = Annotated[
    list[str],
    typer.Argument(
        metavar="SOURCE",
        help="CSV (also .gz), Parquet or Excel files, a folder of them, or a database (sql:URL). Several belong "
        "together: the same columns are appended, others are joined on time.",
        show_default=False,
    ),
]
_KEYWORD = inspect.Parameter.KEYWORD_ONLY


def with_options(*jobs: type, tables: Mapping[str, type] | None = None) -> Callable[[Callable[..., int]], Any]:
    """Give a command with `**options` the fields of dataclasses as options, and `--config`.

    tables : further dataclasses by the name of a table of tables in the file, such as [asset.pump1]; what the file has
    of them is in the `obj` of the command's context: by table and name, the options given.
    """

    def decorate(command: Callable[..., int]) -> Callable[..., int]:
        own = inspect.signature(command, eval_str=True).parameters.values()
        parameters = [each for each in own if each.kind is not inspect.Parameter.VAR_KEYWORD]
        for job in jobs:
            parameters += [_parameter(name, default, option) for name, default, option in described(job)]
        config = typer.Option(
            "--config",
            callback=read_config,
            is_eager=True,
            help="A TOML file with any of these options; the command line wins.",
        )
        parameters.append(
            inspect.Parameter("config", _KEYWORD, default=None, annotation=Annotated[Path | None, config])
        )
        command.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
        command.__annotations__ = {each.name: each.annotation for each in parameters}
        command.config_tables = tables or {}  # type: ignore[attr-defined]
        return command

    return decorate


def _parameter(name: str, default: Any, option: Option) -> inspect.Parameter:
    kind = {"names": str, "repeated": list[str], "values": list[str]}.get(option.kind, option.kind)
    if default in (None, ()):
        kind, default = kind | None, None
    shown = option.default or default is not None
    if not option.flags:
        argument = typer.Argument(help=option.help)
        return inspect.Parameter(name, _KEYWORD, default=default, annotation=Annotated[str, argument])
    declared = typer.Option(
        *option.flags.split(),
        help=option.help,
        rich_help_panel=option.panel,
        show_default=shown,
        path_type=Path,  # type: ignore[arg-type]  # older typers keep texts in `context.params`
    )
    if kind == bool | None and "/" not in option.flags:
        kind, default = bool, False
    return inspect.Parameter(name, _KEYWORD, default=default, annotation=Annotated[kind, declared])


def chosen_options(job: type, context: typer.Context) -> dict[str, Any]:
    """Return what was given on the command line of the options of a job."""
    given = context.params
    chosen: dict[str, Any] = {}
    for name, default, option in described(job):
        value = given[name]
        if option.kind in ("names", "values"):
            texts = [value] if isinstance(value, str) else value or []
            try:
                value = tuple(part for text in texts for part in split_names(text))
            except csv.Error as error:
                raise CommandError(f"{place_of(context, name)} is not a list of names: {error}.") from None
        unset = value is False and default is None and "/" not in option.flags
        if value not in (None, (), []) and not unset:
            chosen[name] = tuple(value) if isinstance(value, list) else value
    return chosen


def option_name(parameter: Any) -> str:
    """Return what an option is called in a file: its long name without the dashes."""
    longest: str = max(parameter.opts, key=len)
    return longest.lstrip("-")


def spelled_option(context: typer.Context, name: str, value: object) -> str:
    """Return an option of a command as it is typed, with a value if one is given."""
    parameters = {each.name: each for each in context.command.params}
    flag = f"--{name.replace('_', '-')}"
    if name in parameters:
        known = parameters[name]
        flag = max(known.secondary_opts if value is False else known.opts, key=len)
    words = {" ": "space", "\t": "tab"}
    if value is None or isinstance(value, bool):
        return flag
    return f"{flag} {words.get(str(value), shlex.quote(str(value)))}"


def place_of(context: typer.Context, name: str) -> str:
    """Return where the value of a parameter was given: "--alpha", or "watch.toml: alpha"."""
    parameter = next(parameter for parameter in context.command.params if parameter.name == name)
    source = context.get_parameter_source(name)
    if source is not None and source.name == "DEFAULT_MAP":
        return f"{context.params['config']}: {option_name(parameter)}"
    return f"--{option_name(parameter)}"


@contextmanager
def plain_errors(context: typer.Context, place: str = "") -> Iterator[None]:
    """Inside this block, errors that a user can put right end the command with one line and exit code 2.

    An error with a `parameter` names the option instead, where the command has it; messages name options as they are
    typed.
    """
    try:
        with spelled_by(partial(spelled_option, context)):
            yield
    except MemoryError:
        raise CommandError(f"{place}There is not enough memory. Read fewer rows or columns.") from None
    except OSError as error:
        said = str(error) if error.strerror is None else f"{error.strerror}."
        file = f"{error.filename}: " if error.strerror is not None and error.filename else ""
        raise CommandError(f"{place}{file}{said}") from None
    except ValueError as error:  # TableError, ParameterError and StorageError are such
        message = str(error)
        parameter = getattr(error, "parameter", None)
        if parameter in {each.name for each in context.command.params}:
            option = place_of(context, str(parameter))
            rest = message.removeprefix(str(parameter))
            message = f"{option}: {message}" if rest == message else f"{option}{rest}"
        raise CommandError(place + message) from error.__cause__


# TOML files.

_WORDS = {bool: "true or false", int: "a whole number", float: "a number"}


def read_config(context: typer.Context, path: Path | None) -> Path | None:
    """Let the values of the file be the defaults of the command's options."""
    if path is None:
        return None
    known = {option_name(parameter): str(parameter.name) for parameter in context.command.params}
    hints = get_type_hints(context.command.callback)
    defaults: dict[str, Any] = {}
    try:
        given = tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise CommandError(f"{path}: {error.strerror}.") from None
    except (ValueError, RecursionError) as error:  # errors of TOML and of UTF-8, and brackets without end
        raise CommandError(f"{path}: not TOML: {error}.") from None
    tables = getattr(context.command.callback, "config_tables", {})
    context.obj = {name: _read_tables(path, name, given.pop(name, {}), job) for name, job in tables.items()}
    for key, value in given.items():
        if key not in known or key == "config":
            close = get_close_matches(key.replace("_", "-"), known, n=1)
            hint = f"Did you mean {close[0]!r}?" if close else f"See '{context.command_path} --help' for the names."
            raise CommandError(f"{path}: unknown key {key!r}. {hint}")
        defaults[known[key]] = _checked(value, hints[known[key]], f"{path}: {key}")
    context.default_map = defaults
    return path


def _read_tables(path: Path, table: str, given: Any, job: type) -> dict[str, dict[str, Any]]:
    """Return the options in the tables of a kind: [asset.pump1], [asset.pump2]."""
    known = {option.flags.split()[0].lstrip("-"): (name, option) for name, _, option in described(job)}
    found: dict[str, dict[str, Any]] = {}
    if not isinstance(given, dict) or not all(isinstance(each, dict) for each in given.values()):
        raise CommandError(f"{path}: {table} must be tables with names, such as [{table}.pump1].")
    for name, options in given.items():
        found[name] = {}
        for key, value in options.items():
            if key not in known:
                close = get_close_matches(key.replace("_", "-"), known, n=1)
                hint = f"Did you mean {close[0]!r}?" if close else f"The names are {', '.join(known)}."
                raise CommandError(f"{path}: unknown key {key!r} in [{table}.{name}]. {hint}")
            parameter, option = known[key]
            kind = {"names": str, "repeated": list[str], "values": list[str]}.get(option.kind, option.kind)
            checked = _checked(value, kind, f"{path}: [{table}.{name}] {key}")
            if kind is Path:
                checked = Path(checked)
            elif option.kind == "names":
                checked = split_names(checked)
            found[name][parameter] = tuple(checked) if isinstance(checked, list) else checked
    return found


def _checked(value: Any, hint: Any, place: str) -> Any:
    """Return the value as the option takes it; texts may be numbers or dates of TOML, and lists of texts."""
    kinds = (hint, *get_args(hint))
    wanted = next((kind for kind in kinds if kind in _WORDS), None)
    if wanted is not None:
        if type(value) is not wanted and not (wanted is float and type(value) is int):
            raise CommandError(f"{place} must be {_WORDS[wanted]}; got {value!r}.")
        return value
    if Path in kinds and not isinstance(value, str):
        raise CommandError(f"{place} must be the path of a file, in quotes; got {value!r}.")
    several = []
    for each in value if isinstance(value, list) else [value]:
        if not isinstance(each, str | int | float | dt.date) or isinstance(each, bool):
            raise CommandError(f"{place} must be a text; got {value!r}.")
        several.append(str(each))
    if list in (get_origin(kind) for kind in kinds):
        return several
    return join_names(several) if isinstance(value, list) else several[0]


# Names that people type.


def join_names(names: Iterable[str]) -> str:
    """Join names to one text, with quotes around those that hold a comma."""
    text = io.StringIO()
    csv.writer(text, lineterminator="").writerow(names)
    return text.getvalue()


def split_names(text: str | None) -> tuple[str, ...]:
    """Split the names that `join_names`, or a person, put into one text."""
    return tuple(name.strip() for name in next(csv.reader([text], skipinitialspace=True))) if text else ()
