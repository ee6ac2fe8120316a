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
from penstock.bench.settings import TIME_LIMIT, Above, Method, SettingsError, Study, closest, expand_datasets


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
    except tomllib.TOMLDecodeError as error:
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
    limit = content.get("time_limit", TIME_LIMIT)
    if not isinstance(limit, int | float) or isinstance(limit, bool) or not limit > 0:
        raise SettingsError(f"{place}: time_limit must be a number of seconds above 0; got {limit!r}.")
    return Study(
        title=_typed(content, "title", str, place, "Study"),
        datasets=_datasets(content, place) or tuple(names()),
        seeds=_seeds(content, place) or tuple(range(5)),
        methods=(*plain, *varied),
        time_limit=float(limit),
        text=text,
    )


def _method(entry: dict[str, Any], place: str) -> Method:
    known = ("name", "detector", "part", "parameters", "paper", "order", "rows", "above", "datasets", "seeds")
    _check_keys(entry, known, place)
    order = _typed(entry, "order", str, place, "file")
    if order not in ("file", "shuffled"):
        raise SettingsError(f"{place}: order must be 'file' or 'shuffled'; got {order!r}.")
    return Method(
        name=_typed(entry, "name", str, place),
        detector=_typed(entry, "detector", str, place),
        part=_typed(entry, "part", str, place, "study"),
        parameters=_typed(entry, "parameters", dict, place, {}),
        paper=_typed(entry, "paper", str, place, ""),
        order=order,
        rows=_typed(entry, "rows", int, place, None),
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
            _varied(base, parameter, value),
            name=f"{base.name}, {name} {_shown(value)}",
            part=_typed(entry, "part", str, place, "sensitivity"),
            paper="",
            datasets=_datasets(entry, place) or base.datasets,
            seeds=_seeds(entry, place) or base.seeds,
            sweep=name,
            base=base.name,
            value=value if isinstance(value, str | int | float) else _shown(value),
        )
        for base in (_named(methods, key, place) for key in _typed(entry, "methods", list, place))
        for value in _typed(entry, "values", list, place)
    ]


def _grid(entry: dict[str, Any], methods: Mapping[str, Method], place: str) -> list[Method]:
    """A method in all combinations of some parameters' values."""
    _check_keys(entry, ("base", "axes", "part", "datasets", "seeds"), place)
    base = _named(methods, _typed(entry, "base", str, place), place)
    axes = _typed(entry, "axes", dict, place)
    varied = []
    for values in itertools.product(*axes.values()):
        method = base
        for parameter, value in zip(axes, values, strict=True):
            method = _varied(method, parameter, value)
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


def _varied(method: Method, parameter: str, value: Any) -> Method:
    """The method with one parameter set; "order" and "rows" are the protocol's, a dotted name leads into tables."""
    if parameter in ("order", "rows"):
        return replace(method, **{parameter: value})
    first, *rest = parameter.split(".")
    old = method.parameters.get(first, {})
    return replace(method, parameters=dict(method.parameters) | {first: _set_inside(old, rest, value)})


def _set_inside(old: Any, path: list[str], value: Any) -> Any:
    if not path:
        return value
    table = dict(old) if isinstance(old, Mapping) else {}
    return table | {path[0]: _set_inside(table.get(path[0], {}), path[1:], value)}


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
    if name not in methods:
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
