"""`--config`: a TOML file with the names of the options, checked before anything begins."""

from __future__ import annotations

import datetime as dt
import tomllib
from pathlib import Path
from typing import Any, get_args, get_origin, get_type_hints

import typer

from penstock.cli._errors import CommandError
from penstock.cli._names import closest, join_names

_WORDS = {bool: "true or false", int: "a whole number", float: "a number", str: "a text"}
_AS_TEXT = ("fault-value", "unknown-value", "from", "until", "train-until")  # may be numbers or dates of TOML too
# One text on the command line; may be written as lists too.
_LISTS = ("columns", "exclude", "keep", "missing", "names", "time")


def read_config(context: typer.Context, path: Path | None) -> Path | None:
    """Let the values of the file be the defaults of the command's options."""
    if path is None:
        return None
    keys = {option_name(parameter): str(parameter.name) for parameter in context.command.params}
    hints = get_type_hints(context.command.callback)
    defaults: dict[str, Any] = {}
    for key, value in _read(path).items():
        if key not in keys or key == "config":
            hint = closest(key.replace("_", "-"), list(keys)) or f" See '{context.command_path} --help' for the names."
            raise CommandError(f"{path}: unknown key {key!r}.{hint}", exit_code=2)
        if key in _AS_TEXT:
            value = [_text(each) for each in value] if isinstance(value, list) else _text(value)  # noqa: PLW2901
        defaults[keys[key]] = _checked(value, hints[keys[key]], f"{path}: {key}", key in _LISTS)
    context.default_map = defaults
    return path


def option_name(parameter: Any) -> str:
    """What an option is called in a file: its long name without the dashes.

    >>> from types import SimpleNamespace
    >>> option_name(SimpleNamespace(opts=["--output", "-o"]))
    'output'
    """
    longest: str = max(parameter.opts, key=len)
    return longest.lstrip("-")


def place_of(context: typer.Context, name: str) -> str:
    """Where the value of a parameter was given: "--alpha", or "watch.toml: alpha"."""
    parameter = next(parameter for parameter in context.command.params if parameter.name == name)
    source = context.get_parameter_source(name)
    if source is not None and source.name == "DEFAULT_MAP":
        return f"{context.params['config']}: {option_name(parameter)}"
    return f"--{option_name(parameter)}"


def _read(path: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise CommandError(f"{path}: {error.strerror}.", exit_code=2) from None
    except (ValueError, RecursionError) as error:  # errors of TOML and of UTF-8, and brackets without end
        raise CommandError(f"{path}: not TOML: {error}.", exit_code=2) from None


def _checked(value: Any, hint: Any, place: str, may_be_list: bool) -> Any:
    """The value as the option takes it; an option that may be repeated takes a list, or a single text."""
    is_texts = isinstance(value, list) and all(isinstance(item, str) for item in value)
    if _is_repeated(hint) and (is_texts or isinstance(value, str)):
        return value if is_texts else [value]
    if may_be_list and is_texts:
        return join_names(value)
    wanted = _plain_type(hint)
    fine = type(value) is wanted or (wanted is float and type(value) is int)
    if not fine:
        raise CommandError(f"{place} must be {_WORDS[wanted]}; got {value!r}.", exit_code=2)
    return value


def _text(value: Any) -> Any:
    return str(value) if isinstance(value, int | float | dt.date) else value


def _is_repeated(hint: Any) -> bool:
    return list in (get_origin(kind) for kind in (hint, *get_args(hint)))


def _plain_type(hint: Any) -> type:
    """What TOML has for a parameter's type: `int | None` is a whole number, a path is a text."""
    kinds = get_args(hint) or (hint,)
    return next((kind for kind in kinds if kind in (bool, int, float)), str)
