"""Read the settings of the study: those of `penstock bench`, with sweeps, grids and the paper's data sets by name.

Everything becomes plain [[method]] entries, which `penstock.bench.settings` checks. Further keys are `part`
(of the study), `paper` (the column of the paper's tables to hold the method against), `above` (other parameters beyond
so many rows; the cells are marked), `large` (fewer seeds on large data sets), and [[sweep]] and [[grid]].
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from penstock._parameters import ParameterError
from penstock.bench import Method, Study
from penstock.bench.settings import check_keys, make_study, parse_toml, tables_of, typed
from penstock.registry import did_you_mean
from studies.ahmed2021 import registry
from studies.ahmed2021.rows import LABELS

SETTINGS = Path(__file__).with_name("settings.toml")
_SHORT = {"n_components": "K", "max_iter": "steps", "penalty": "λ", "max_neighbors": "k ≤"}  # in names
_CHOICES = ("form", "graph")  # parameters that the central claim is tested by
_Entry = dict[str, Any]


def paper_study() -> Study:
    """Return the study as it is in settings.toml.

    >>> study = paper_study()
    >>> len(study.datasets), study.seeds, len({method.name for method in study.methods})
    (20, (0, 1, 2, 3, 4), 158)
    """
    return parse(SETTINGS.read_text(encoding="utf-8"), SETTINGS.name)


def read(path: str | Path) -> Study:
    """Read the study from a TOML file of this format."""
    return parse(Path(path).read_text(encoding="utf-8"), str(path))


def parse(text: str, place: str = "settings") -> Study:
    """Read the study from the text of a TOML file; `place` names it in errors.

    >>> [(method.name, method.parameters) for method in parse('''
    ... datasets = ["paper", "-ALOI"]
    ... [[method]]
    ... name = "NMF"
    ... detector = "NMF"
    ... [[sweep]]
    ... name = "K"
    ... methods = ["NMF"]
    ... parameter = "n_components"
    ... values = [2, 5]
    ... ''').methods]
    [('NMF', {}), ('NMF, K 2', {'n_components': 2}), ('NMF, K 5', {'n_components': 5})]
    """
    content = parse_toml(text, place)
    known = ("title", "datasets", "seeds", "time_limit", "large", "method", "sweep", "grid")
    check_keys(content, known, place)
    plain = [{"part": "study", **entry} for entry in tables_of(content, "method", place)]
    by_name = {entry["name"]: entry for entry in plain if isinstance(entry.get("name"), str)}
    varied: list[_Entry] = []
    for number, entry in enumerate(tables_of(content, "sweep", place), 1):
        varied += _sweep(entry, by_name, f"{place}: [[sweep]] {number}")
    for number, entry in enumerate(tables_of(content, "grid", place), 1):
        varied += _grid(entry, by_name, f"{place}: [[grid]] {number}")
    sets = _expanded(content.get("datasets", ["paper"]), place)
    methods = [each for entry in [*plain, *varied] for each in _split(entry, sets, place)]
    whole = {key: content[key] for key in ("title", "seeds", "time_limit") if key in content}
    study = make_study(whole | {"datasets": sets, "method": methods}, text, place, LABELS)
    if "large" not in content:
        return study
    large = typed(content, "large", dict, place)
    check_keys(large, ("rows", "seeds"), f"{place}: large")
    rows, seeds = (typed(large, key, int, f"{place}: large") for key in ("rows", "seeds"))
    return replace(
        study, methods=tuple(each for one in study.methods for each in _fewer_seeds(one, study, rows, seeds))
    )


def choose(
    study: Study,
    parts: Sequence[str] = (),
    methods: Sequence[str] = (),
    datasets: Sequence[str] = (),
    seeds: int | None = None,
) -> Study:
    """Reduce the study to these parts, methods (with what varies them), data sets and number of seeds."""
    known = {str(method.labels["part"]) for method in study.methods}
    for part in parts:
        if part not in known:
            raise ParameterError("part", f": there is no {part!r} in the study.{did_you_mean(part, known)}")
    kept = tuple(method for method in study.methods if not parts or method.labels["part"] in parts)
    options = " ".join(f"--part '{part}'" if " " in part else f"--part {part}" for part in parts)
    sets = _expanded(list(datasets), "--data") if datasets else []
    if sets:  # a method that has data sets of its own keeps those that are asked for
        own = [method.datasets and tuple(name for name in method.datasets if name in sets) for method in kept]
        kept = tuple(replace(method, datasets=left) for method, left in zip(kept, own, strict=True) if left != ())
    chosen = replace(study, methods=kept, options=options).only(methods=methods, seeds=seeds)
    if not chosen.methods:
        raise ParameterError(
            "part", ": nothing is left of the study, as no method is in these parts and on these data sets."
        )
    given = " ".join(f"--data {name}" for name in datasets)
    return replace(chosen, datasets=tuple(sets) or study.datasets, options=f"{chosen.options} {given}".strip())


def _expanded(given: Any, place: str) -> list[str]:
    """Replace "paper" by the twenty; "-Name" leaves one out again; each name once, in the order given.

    >>> _expanded(["paper", "-ALOI", "WBC_nodup"], "")[-3:]
    ['PenDigits', 'Lymphography', 'WBC_nodup']
    """
    if not (isinstance(given, list) and given and all(isinstance(name, str) for name in given)):
        raise ParameterError(place, f": datasets must be a list of names; got {given!r}.")
    expanded: dict[str, None] = {}
    for item in given:
        if not item.startswith("-"):
            expanded |= dict.fromkeys(registry.names() if item == "paper" else [item])
        elif item[1:] in expanded:
            del expanded[item[1:]]
        else:
            raise ParameterError(place, f": {item!r} leaves out a data set that is not there to be left out.")
    return list(expanded)


def _split(entry: _Entry, sets: list[str], place: str) -> list[_Entry]:
    """Turn an entry with `above` into two methods of one name: on small data sets, and marked on large ones."""
    parameters = entry.get("parameters", {})
    chosen = {name: parameters[name] for name in _CHOICES if name in parameters}
    entry = entry | ({"detail": chosen} if chosen else {})
    if "datasets" in entry:
        entry["datasets"] = _expanded(entry["datasets"], place)
    if "above" not in entry:
        return [entry]
    above = typed(entry, "above", dict, place)
    check_keys(above, ("rows", "parameters", "mark"), f"{place}: above")
    limit = typed(above, "rows", int, f"{place}: above")
    small, large = _by_size(entry.get("datasets", sets), limit)
    rest = {key: value for key, value in entry.items() if key != "above"}
    other = {key: typed(above, key, kind, f"{place}: above") for key, kind in (("parameters", dict), ("mark", str))}
    return [made | {"datasets": on} for made, on in ((rest, small), (rest | other, large)) if on]


def _fewer_seeds(method: Method, study: Study, limit: int, seeds: int) -> list[Method]:
    """Split a method in two, with fewer seeds on large data sets."""
    small, large = _by_size(method.datasets or study.datasets, limit)
    own = method.seeds or study.seeds
    return [replace(method, datasets=tuple(on), seeds=used) for on, used in ((small, own), (large, own[:seeds])) if on]


def _by_size(names: Sequence[str], limit: int) -> tuple[list[str], list[str]]:
    large = [name for name in names if name in registry.known_names() and registry.entry(name).n > limit]
    return [name for name in names if name not in large], large


def _sweep(entry: _Entry, methods: Mapping[str, _Entry], place: str) -> list[_Entry]:
    """Repeat each method once per value of one parameter, or of `rows` or `order`."""
    check_keys(entry, ("name", "methods", "parameter", "values", "part", "datasets", "seeds"), place)
    parameter, name = typed(entry, "parameter", str, place), typed(entry, "name", str, place)
    made = []
    for key in _filled(entry, "methods", list, place):
        base = _named(methods, key, place)
        for value in _filled(entry, "values", list, place):
            made.append(
                _varied(base, parameter, value)
                | {
                    "name": f"{base['name']}, {name} {_shown(value)}",
                    "part": entry.get("part", "sensitivity"),
                    "paper": "",
                    "sweep": name,
                    "base": base["name"],
                    "value": value if isinstance(value, str | int | float) else _shown(value),
                }
                | {key: entry[key] for key in ("datasets", "seeds") if key in entry}
            )
    return made


def _grid(entry: _Entry, methods: Mapping[str, _Entry], place: str) -> list[_Entry]:
    """Repeat a method in all combinations of some parameters' values.

    A value that is a table with a `name` sets all else that is in it.
    """
    check_keys(entry, ("base", "axes", "part", "datasets", "seeds"), place)
    base = _named(methods, typed(entry, "base", str, place), place)
    axes = _filled(entry, "axes", dict, place)
    made = []
    for values in itertools.product(*(_filled(axes, key, list, f"{place}: axes") for key in axes)):
        method, words = base, []
        for axis, value in zip(axes, values, strict=True):
            several = isinstance(value, Mapping) and "name" in value
            for parameter, each in value.items() if several else [(axis, value)]:
                method = method if several and parameter == "name" else _varied(method, parameter, each)
            shown = f"{_SHORT.get(axis, axis.rpartition('.')[2])} {_shown(value)}"
            words.append(value["name"] if several else value if isinstance(value, str) else shown)
        name = f"{base['name']}: {', '.join(words)}"
        labels = {"name": name, "part": entry.get("part", "nearest"), "base": base["name"]}
        made.append(method | labels | {key: entry[key] for key in ("datasets", "seeds") if key in entry})
    return made


def _varied(method: _Entry, parameter: str, value: Any) -> _Entry:
    """Set one parameter; "order" and "rows" are the protocol's, a dotted name leads into tables."""
    if parameter in ("order", "rows"):
        return method | {parameter: value}
    path = parameter.split(".")
    varied = method | {"parameters": _set_inside(method.get("parameters", {}), path, value)}
    if "above" in method:  # varied there too
        inner = method["above"]
        varied["above"] = inner | {"parameters": _set_inside(inner["parameters"], path, value)}
    return varied


def _set_inside(table: Mapping[str, Any], path: list[str], value: Any) -> _Entry:
    first, *rest = path
    if not rest:
        return dict(table) | {first: value}
    inner = table.get(first)
    return dict(table) | {first: _set_inside(inner if isinstance(inner, Mapping) else {}, rest, value)}


def _shown(value: Any) -> str:
    """Format a value in a name: a solver as it would be called.

    >>> _shown({"BlockSGD": {"rounds": 100}}), _shown(0.5)
    ('BlockSGD(rounds=100)', '0.5')
    """
    if not isinstance(value, Mapping):
        return str(value)
    return ", ".join(
        f"{name}({', '.join(f'{key}={inner}' for key, inner in fields.items())})"
        if isinstance(fields, Mapping)
        else f"{name}={fields}"
        for name, fields in value.items()
    )


def _named(methods: Mapping[str, _Entry], name: Any, place: str) -> _Entry:
    if not isinstance(name, str) or name not in methods:
        raise ParameterError(place, f": there is no [[method]] named {name!r}.{did_you_mean(str(name), methods)}")
    return methods[name]


def _filled(entry: Mapping[str, Any], key: str, kind: type, place: str) -> Any:
    found = typed(entry, key, kind, place)
    if not found:
        raise ParameterError(place, f": {key} must not be empty.")
    return found
