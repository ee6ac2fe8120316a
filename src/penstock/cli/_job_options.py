"""From the options of `detect`, `fit` and `score` to parameters of the library, checked before anything is read."""

from __future__ import annotations

import csv
import re
from typing import Any

import typer

from penstock.cli._config import place_of
from penstock.cli._errors import CommandError
from penstock.cli._names import split_names
from penstock.cli._plain_errors import plain_errors
from penstock.cli._thresholds import parse_threshold

_READING = (
    "label", "group", "since", "until", "timezone", "day_first", "time_format", "decimal", "thousands", "encoding",
    "sheet", "max_bytes",
)  # fmt: skip
_DETECTOR = ("n_components", "alpha", "gamma", "similarity", "score_kind")
_COMPARES = re.compile(r"[<>]|[=!]=")  # tags of plants may begin with =, as in =MKA10


def reading_options(context: typer.Context) -> dict[str, Any]:
    """How tables are read; what was not given is left out."""
    from penstock.io import as_zone

    given = context.params
    wrong = {
        "max_bytes": given["max_bytes"] is not None and given["max_bytes"] < 1 and "must be a whole number ≥ 1",
        "decimal": given["decimal"] not in (None, ".", ",") and "must be . or ,",
    }
    _refuse(context, wrong)
    with plain_errors(f"{place_of(context, 'timezone')}: "):
        as_zone(given["timezone"])
    time = _names(context, "time")
    chosen = {
        **{name: given[name] for name in _READING},
        "time": time[0] if len(time) == 1 else time or None,
        "separator": {"tab": "\t", "\\t": "\t", "space": " "}.get(given["separator"], given["separator"]),
        "strict": given["strict"] or None,
        "missing": _names(context, "missing") or None,
        "fault_values": _values(context, "fault_value") or None,
        "unknown_values": _values(context, "unknown_value") or None,
        "exclude_periods": given["exclude_period"] or None,
        "names": _names(context, "names") or None,
    }
    _check_periods(context)
    return {name: value for name, value in chosen.items() if value is not None}


def learning_options(context: typer.Context) -> dict[str, Any]:
    """What is learnt, from which rows, by which method."""
    from penstock.columns import parse_rule
    from penstock.detection._periods import check_moment

    given = context.params
    if given["train_until"] is not None and given["train_rule"] is not None:
        raise CommandError("--train-until and --train-rule exclude each other: one period is learnt from.", exit_code=2)
    if given["train_rule"] is not None:
        with plain_errors(f"{place_of(context, 'train_rule')}: "):
            parse_rule(given["train_rule"])
    with plain_errors(place_of(context, "train_until")):
        check_moment("", given["train_until"])
    _check_units(context)
    return {
        "columns": _names(context, "columns") or None,
        "exclude": _names(context, "exclude"),
        "keep": _names(context, "keep"),
        "units": given["units"],
        **_mode_options(context),
        "train_until": given["train_until"],
        "train_rule": given["train_rule"],
        **_method_options(context),
    }


def cut_options(context: typer.Context) -> dict[str, Any]:
    """What counts as a finding."""
    given = context.params
    wrong = {
        "top": given["top"] is not None and given["top"] < 1 and "must be a whole number ≥ 1",
        "fail_on": given["fail_on"] is not None and given["fail_on"] < 1 and "must be a whole number ≥ 1",
    }
    if given["quiet"] and given["json"]:
        raise CommandError(
            "--quiet and --json exclude each other: one says nothing, the other everything.", exit_code=2
        )
    _refuse(context, wrong)
    if given["top"] is not None and given["threshold"] is not None:
        raise CommandError(
            "--top and --threshold exclude each other: a list has a length, or ends at a score.", exit_code=2
        )
    return {"top": given["top"], "threshold": _threshold(context), "gap": _span(context, "gap")}


def _threshold(context: typer.Context) -> Any:
    text: str | None = context.params["threshold"]
    if text is None or text == "auto":
        return text
    with plain_errors(f"{place_of(context, 'threshold')}: "):
        try:
            share = float(text)
        except ValueError:
            return parse_threshold(text, also=("auto", "a share of the rows"))
        if not 0 < share <= 0.5:
            raise ValueError(f"a share of the rows must be above 0 and at most 0.5; got {text}. Or mean fixed:{text}?")
    return share


def _span(context: typer.Context, name: str) -> Any:
    """A duration, or a number of rows."""
    from penstock.columns import parse_duration

    text: str | None = context.params[name]
    if text is None:
        return None
    if text.isascii() and text.isdigit() and len(text) < 10:
        return int(text)
    with plain_errors(f"{place_of(context, name)}: "):
        return parse_duration(text)


def _mode_options(context: typer.Context) -> dict[str, Any]:
    """Rules are checked now; a single word or name may be a column, which only the table can tell."""
    from penstock.detection.modes import plan_modes

    modes, skip = context.params["mode"] or (), tuple(context.params["skip_mode"] or ())
    settle = _span(context, "settle")
    if (skip or settle is not None) and not modes:
        raise CommandError("--skip-mode and --settle need --mode, which says what tells the modes.", exit_code=2)
    with plain_errors(f"{place_of(context, 'mode')}: "):
        if len(modes) > 1:
            plan_modes(tuple(modes), (), skip=skip, settle=settle)
        elif modes and _COMPARES.search(modes[0]):
            _check_rule(modes[0])
    return {"modes": tuple(modes), "skip_modes": skip, "settle": settle}


def _check_rule(spec: str) -> None:
    """Raise unless this is a rule, or a name, a colon and a rule."""
    from penstock.columns import RuleError, parse_rule

    name, colon, rule = spec.partition(":")
    try:
        parse_rule(spec)
    except RuleError:
        if not colon or not name.strip():
            raise
        parse_rule(rule)


def _method_options(context: typer.Context) -> dict[str, Any]:
    from penstock.detection import make_detector

    given = context.params
    seed = given["random_state"]
    _refuse(context, {"random_state": not 0 <= seed < 2**32 and "must be a whole number from 0 to 4294967295"})
    parameters = {name: given[name] for name in _DETECTOR if given[name] is not None}
    with plain_errors(f"{place_of(context, 'method')} {given['method']}: "):
        detector = make_detector(given["method"], seed, **parameters)
    try:
        detector.check_parameters()
    except ValueError as error:
        name = re.match(r"\w*", str(error))
        where = place_of(context, name[0]) if name and name[0] in parameters else place_of(context, "method")
        raise CommandError(f"{where}: {error}", exit_code=2) from None
    return {"method": given["method"], "parameters": parameters, "random_state": seed}


def _check_periods(context: typer.Context) -> None:
    from penstock.detection._periods import Periods, check_moment

    given = context.params
    for name in ("since", "until"):
        with plain_errors(place_of(context, name)):
            check_moment("", given[name])
    with plain_errors():
        Periods.of(None, None, given["exclude_period"] or ())
    if (given["fault_value"] or given["unknown_value"]) and given["label"] is None:
        raise CommandError(
            "--fault-value and --unknown-value need --label, the column that holds these values.", exit_code=2
        )


def _values(context: typer.Context, name: str) -> tuple[str, ...]:
    """Values given one by one, or several in one text."""
    texts: list[str] = context.params[name] or []
    try:
        return tuple(value for text in texts for value in split_names(text))
    except csv.Error as error:
        raise CommandError(f"{place_of(context, name)} is not a list of values: {error}.", exit_code=2) from None


def _check_units(context: typer.Context) -> None:
    from penstock.detection._preparing import read_units

    path = context.params["units"]
    if path is None:
        return
    with plain_errors(f"{place_of(context, 'units')}: "):
        if not path.is_file():
            raise ValueError(f"There is no file {path}.")
        read_units(path, ())


def _names(context: typer.Context, name: str) -> tuple[str, ...]:
    try:
        return split_names(context.params[name])
    except csv.Error as error:
        raise CommandError(f"{place_of(context, name)} is not a list of names: {error}.", exit_code=2) from None


def _refuse(context: typer.Context, wrong: dict[str, Any]) -> None:
    for name, problem in wrong.items():
        if problem:
            raise CommandError(f"{place_of(context, name)} {problem}; got {context.params[name]!r}.", exit_code=2)
