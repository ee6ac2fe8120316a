"""A study's settings from a small TOML file, checked. docs/study.md explains it; the paper's study is `paper.toml`."""

from __future__ import annotations

import itertools
import tomllib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from importlib import resources
from pathlib import Path
from typing import Any

from penstock.bench.datasets import names
from penstock.bench.settings import (
    TIME_LIMIT,
    Above,
    Method,
    SettingsError,
    Study,
    checked_time_limit,
    closest,
    expand_datasets,
)


def paper_settings() -> str:
    """The text of the settings of the paper's study."""
    return (resources.files("penstock.bench") / "paper.toml").read_text(encoding="utf-8")


def read_settings(path: str | Path | None = None) -> Study:
    """The study in a TOML file, checked; the paper's if None.

    >>> study = read_settings()
    >>> len(study.datasets), study.seeds
    (20, (0, 1, 2, 3, 4))
    """
    if path is None:
        return parse_settings(paper_settings(), "paper.toml")
    return parse_settings(Path(path).read_text(encoding="utf-8"), str(path))


def parse_settings(text: str, place: str = "settings") -> Study:
    """The study in the text of a settings file; `place` names it in errors.

    >>> study = parse_settings('''
    ... datasets = ["Glass"]
    ... [[method]]
    ... name = "mine"
    ... detector = "KNNDistance"
    ... ''')
    >>> study.methods[0].name
    'mine'
    """
    try:
        content = tomllib.loads(text)
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        raise SettingsError(f"{place}: not TOML: {error}.") from None
    known = ("title", "datasets", "seeds", "time_limit", "method", "sweep", "grid")
    _check_keys(content, known, place)
    entries = {kind: _tables(content, kind, place) for kind in ("method", "sweep", "grid")}
    plain = [_method(entry, f"{place}: [[method]] {number}") for number, entry in enumerate(entries["method"], 1)]
    by_name = _by_name(plain, place)
    varied: list[Method] = []
    for number, entry in enumerate(entries["sweep"], 1):
        varied += _sweep(entry, by_name, f"{place}: [[sweep]] {number}")
    for number, entry in enumerate(entries["grid"], 1):
        varied += _grid(entry, by_name, f"{place}: [[grid]] {number}")
    if not plain:
        raise SettingsError(f"{place}: there is no [[method]].")
    _by_name([*plain, *varied], place)
    return Study(
        title=_typed(content, "title", str, place, "Study"),
        datasets=_datasets(content, place) or tuple(names()),
        seeds=_seeds(content, place) or tuple(range(5)),
        methods=(*plain, *varied),
        time_limit=_time_limit(content, place),
        text=text,
    )


def _method(entry: dict[str, Any], place: str) -> Method:
    known = ("name", "detector", "part", "parameters", "paper", "order", "rows", "above", "datasets", "seeds")
    _check_keys(entry, known, place)
    return Method(
        name=_typed(entry, "name", str, place),
        detector=_typed(entry, "detector", str, place),
        part=_typed(entry, "part", str, place, "study"),
        parameters=_typed(entry, "parameters", dict, place, {}),
        paper=_typed(entry, "paper", str, place, ""),
        order=_order(entry.get("order", "file"), place),
        rows=_rows(entry["rows"], place) if "rows" in entry else None,
        above=_above(entry, place),
        datasets=_datasets(entry, place),
        seeds=_seeds(entry, place),
    )


def _above(entry: dict[str, Any], place: str) -> Above | None:
    if "above" not in entry:
        return None
    place = f"{place}: above"
    content = _typed(entry, "above", dict, place)
    _check_keys(content, ("rows", "parameters", "mark"), place)
    return Above(
        _typed(content, "rows", int, place),
        _typed(content, "parameters", dict, place),
        _typed(content, "mark", str, place),
    )


def _sweep(entry: dict[str, Any], methods: Mapping[str, Method], place: str) -> list[Method]:
    """Each method once per value of one parameter, or of `rows` or `order`."""
    _check_keys(entry, ("name", "methods", "parameter", "values", "part", "datasets", "seeds"), place)
    parameter = _typed(entry, "parameter", str, place)
    name = _typed(entry, "name", str, place)
    return [
        replace(
            _varied(base, parameter, value, place),
            name=f"{base.name}, {name} {_shown(value)}",
            part=_typed(entry, "part", str, place, "sensitivity"),
            paper="",
            datasets=_datasets(entry, place) or base.datasets,
            seeds=_seeds(entry, place) or base.seeds,
            sweep=name,
            base=base.name,
            value=value if isinstance(value, str | int | float) else _shown(value),
        )
        for base in (_named(methods, key, place) for key in _filled(entry, "methods", list, place))
        for value in _filled(entry, "values", list, place)
    ]


def _grid(entry: dict[str, Any], methods: Mapping[str, Method], place: str) -> list[Method]:
    """A method in all combinations of some parameters' values."""
    _check_keys(entry, ("base", "axes", "part", "datasets", "seeds"), place)
    base = _named(methods, _typed(entry, "base", str, place), place)
    axes = _filled(entry, "axes", dict, place)
    varied = []
    for values in itertools.product(*(_filled(axes, key, list, f"{place}: axes") for key in axes)):
        method = base
        for parameter, value in zip(axes, values, strict=True):
            method = _varied(method, parameter, value, place)
        shown = ", ".join(f"{key.rpartition('.')[2]} {_shown(value)}" for key, value in zip(axes, values, strict=True))
        varied.append(
            replace(
                method,
                name=f"{base.name}: {shown}",
                part=_typed(entry, "part", str, place, "nearest"),
                datasets=_datasets(entry, place) or base.datasets,
                seeds=_seeds(entry, place) or base.seeds,
                base=base.name,
            )
        )
    return varied


def _varied(method: Method, parameter: str, value: Any, place: str) -> Method:
    """The method with one parameter set; "order" and "rows" are the protocol's, a dotted name leads into tables."""
    if parameter == "order":
        return replace(method, order=_order(value, place))
    if parameter == "rows":
        return replace(method, rows=_rows(value, place))
    path = parameter.split(".")
    above = method.above
    if above is not None:  # what is varied is varied there too
        above = replace(above, parameters=_set_inside(above.parameters, path, value))
    return replace(method, parameters=_set_inside(method.parameters, path, value), above=above)


def _set_inside(table: Mapping[str, Any], path: list[str], value: Any) -> dict[str, Any]:
    first, *rest = path
    if not rest:
        return dict(table) | {first: value}
    inner = table.get(first)
    return dict(table) | {first: _set_inside(inner if isinstance(inner, Mapping) else {}, rest, value)}


def _shown(value: Any) -> str:
    """A value in a name: settings of a solver as they would be called.

    >>> _shown({"BlockSGD": {"rounds": 100}}), _shown(0.5)
    ('BlockSGD(rounds=100)', '0.5')
    """
    if isinstance(value, Mapping):
        return ", ".join(
            f"{name}({', '.join(f'{key}={inner}' for key, inner in fields.items())})"
            if isinstance(fields, Mapping)
            else f"{name}={fields}"
            for name, fields in value.items()
        )
    return str(value)


def _time_limit(content: dict[str, Any], place: str) -> float:
    try:
        return checked_time_limit(content.get("time_limit", TIME_LIMIT))
    except SettingsError as error:
        raise SettingsError(f"{place}: {error}") from None


def _order(value: Any, place: str) -> str:
    if value not in ("file", "shuffled"):
        raise SettingsError(f"{place}: order must be 'file' or 'shuffled'; got {value!r}.")
    return str(value)


def _rows(value: Any, place: str) -> int:
    if type(value) is not int or value < 1:
        raise SettingsError(f"{place}: rows must be a whole number above 0; got {value!r}.")
    return value


def _tables(content: dict[str, Any], kind: str, place: str) -> list[dict[str, Any]]:
    tables = content.get(kind, [])
    if not (isinstance(tables, list) and all(isinstance(table, dict) for table in tables)):
        raise SettingsError(f"{place}: write [[{kind}]] with two brackets on each side; there may be several.")
    return tables


def _by_name(methods: Iterable[Method], place: str) -> dict[str, Method]:
    found: dict[str, Method] = {}
    for method in methods:
        if method.name in found:
            raise SettingsError(f"{place}: two methods are named {method.name!r}; tables could not tell them apart.")
        found[method.name] = method
    return found


def _named(methods: Mapping[str, Method], name: Any, place: str) -> Method:
    if not isinstance(name, str) or name not in methods:
        raise SettingsError(f"{place}: there is no [[method]] named {name!r}.{closest(str(name), methods)}")
    return methods[name]


def _typed(entry: dict[str, Any], key: str, kind: type, place: str, *default: Any) -> Any:
    if key not in entry:
        if default:
            return default[0]
        raise SettingsError(f"{place}: {key!r} is missing.")
    words = {str: "a text", int: "a whole number", dict: "a table", list: "a list"}
    if type(entry[key]) is not kind:
        raise SettingsError(f"{place}: {key} must be {words[kind]}; got {entry[key]!r}.")
    return entry[key]


def _filled(entry: dict[str, Any], key: str, kind: type, place: str) -> Any:
    """A list or table with something in it: an empty one would quietly run nothing."""
    found = _typed(entry, key, kind, place)
    if not found:
        raise SettingsError(f"{place}: {key} must not be empty.")
    return found


def _datasets(entry: dict[str, Any], place: str) -> tuple[str, ...] | None:
    if "datasets" not in entry:
        return None
    given = entry["datasets"]
    given = [given] if isinstance(given, str) else given
    if not (isinstance(given, list) and given and all(isinstance(name, str) for name in given)):
        raise SettingsError(f"{place}: datasets must be a list of names and files; got {entry['datasets']!r}.")
    return tuple(expand_datasets(given))


def _seeds(entry: dict[str, Any], place: str) -> tuple[int, ...] | None:
    """A number of seeds, from 0 on, or a list of them."""
    if "seeds" not in entry:
        return None
    given = entry["seeds"]
    numbers = list(range(given)) if type(given) is int else given
    if not (isinstance(numbers, list) and numbers and all(type(seed) is int and seed >= 0 for seed in numbers)):
        raise SettingsError(f"{place}: seeds must be how many there are, or a list of them; got {given!r}.")
    return tuple(dict.fromkeys(numbers))


def _check_keys(entry: Mapping[str, Any], known: Sequence[str], place: str) -> None:
    for key in entry:
        if key not in known:
            raise SettingsError(f"{place}: unknown key {key!r}.{closest(key, known)} Known are {', '.join(known)}.")
