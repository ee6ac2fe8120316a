"""Describe a study: which methods on which data sets with which seeds; read it from a TOML file (docs/study.md)."""

from __future__ import annotations

import shlex
import tomllib
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from importlib import resources
from pathlib import Path
from typing import Any

from penstock._parameters import ParameterError, check_choice, check_number, check_whole_number
from penstock.bench.methods import OURS
from penstock.registry import did_you_mean

TIME_LIMIT = 1800.0  # seconds per cell, if the settings do not say
_LONGEST_LIMIT = 1e9  # seconds; clocks cannot wait longer
READING = ("time", "group", "train_until", "cause")  # options of `load_file`, also of the command line
_METHOD_KEYS = ("name", "detector", "parameters", "order", "rows", "datasets", "seeds", "mark", "detail")


@dataclass(frozen=True)
class Method:
    """A method of a study: a detector, its parameters, and which rows it is fitted to.

    Parameters
    ----------
    name : str
        Its name in tables.
    detector : str
        A class name of penstock, or the import path of any other class.
    parameters : Mapping, default={}
        Of the detector. Solvers are tables with their name: ``{"BlockSGD": {"rounds": 100}}``.
    datasets : tuple of str, optional
        Where it runs; those of the study by default.
    seeds : tuple of int, optional
        Those of the study by default.
    order : {"file", "shuffled"}, default="file"
        The order of the rows; shuffled by the seed.
    rows : int, optional
        Fit to that many rows, drawn at random by the seed.
    mark : str, default=""
        A note shown with its results, such as another way to compute the same.
    labels : Mapping, default={}
        Further columns of its rows in the results, as `Study.labels` lists them.
    detail : Mapping, default={}
        Further entries of the column `detail` of its rows.

    Examples
    --------
    >>> Method("distance", "KNNDistance", {"n_neighbors": 10}).order
    'file'
    """

    name: str
    detector: str
    parameters: Mapping[str, Any] = field(default_factory=dict)
    datasets: tuple[str, ...] | None = None
    seeds: tuple[int, ...] | None = None
    order: str = "file"
    rows: int | None = None
    mark: str = ""
    labels: Mapping[str, Any] = field(default_factory=dict)
    detail: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Study:
    """What is to be run.

    Parameters
    ----------
    title : str
    datasets : tuple of str
        Labelled files, as `penstock.bench.load_file` takes them.
    methods : tuple of Method
    seeds : tuple of int, default=(0, 1, 2, 3, 4)
    time_limit : float, default=1800
        Seconds per cell.
    text : str, default=""
        The settings file, kept with the results.
    options : str, default=""
        Options of the command line that reduced the settings.
    labels : tuple of str, default=()
        Columns that `Method.labels` adds to the results.
    reading : Mapping, default={}
        How data sets are read, as `load_file` takes it: time, group, train_until, cause.

    Examples
    --------
    >>> study = Study("Pumps", ("pump.csv::fault",), (Method("mine", "LoMST"), Method("other", "NormScore")))
    >>> [method.name for method in study.only(methods=["mine"], seeds=1).methods]
    ['mine']
    """

    title: str
    datasets: tuple[str, ...]
    methods: tuple[Method, ...]
    seeds: tuple[int, ...] = (0, 1, 2, 3, 4)
    time_limit: float = TIME_LIMIT
    text: str = ""
    options: str = ""
    labels: tuple[str, ...] = ()
    reading: Mapping[str, str] = field(default_factory=dict)

    def only(
        self,
        *,
        methods: Sequence[str] = (),
        datasets: Sequence[str] = (),
        seeds: int | None = None,
        reading: Mapping[str, str] | None = None,
    ) -> Study:
        """Reduce the study to these methods, data sets and number of seeds; read data sets with these options too.

        A method that the study does not have may be a detector by its class name or import path, with its default
        parameters. The first of the study's seeds are used, or 0, 1, … if it has fewer.

        >>> study = parse_settings(example_settings()).only(methods=["LoMST", "SNMF"], datasets=["a.csv"], seeds=2)
        >>> [method.name for method in study.methods], study.datasets, study.seeds
        (['LoMST', 'SNMF'], ('a.csv',), (0, 1))
        """
        there = {method.name for method in self.methods}
        bases = {method.labels.get("base") for method in self.methods}
        added = [name for name in dict.fromkeys(methods) if name not in there | bases]
        for name in added:
            if name not in OURS and "." not in name:
                raise ParameterError(
                    "method", f": there is no {name!r} in the study.{did_you_mean(name, {*there, *OURS})}"
                )
        kept = [
            replace(
                method,
                datasets=None if datasets else method.datasets,
                seeds=None if method.seeds is None else method.seeds[:seeds],
            )
            for method in self.methods
            if not methods or {method.name, method.labels.get("base")} & set(methods)
        ]
        given = {"method": methods, "data": datasets, "seeds": [] if seeds is None else [str(seeds)]}
        given |= {name.replace("_", "-"): [value] for name, value in (reading or {}).items()}
        options = [word for name, values in given.items() for value in values for word in (f"--{name}", value)]
        counted = self.seeds if seeds is None or seeds <= len(self.seeds) else tuple(range(seeds))
        chosen = tuple(dict.fromkeys(datasets)) or self.datasets
        classes = [name.rpartition(".")[2] for name in (*there, *added)]
        short = {path: path.rpartition(".")[2] for path in added if classes.count(path.rpartition(".")[2]) == 1}
        return replace(
            self,
            title=self.title if set(chosen) & set(self.datasets) else f"Study of {', '.join(chosen)}",
            methods=(*kept, *(Method(short.get(path, path), path) for path in added)),
            datasets=chosen,
            seeds=counted[:seeds],
            options=" ".join(filter(None, [self.options, shlex.join(options)])),
            reading={**self.reading, **(reading or {})},
        )

    def limited(self, seconds: float) -> Study:
        """Return the study with another time limit for each cell."""
        return replace(self, time_limit=checked_limit(seconds))


def example_settings() -> str:
    """Return the text of an example, which `penstock bench settings` prints; its methods run where none are named."""
    return (resources.files("penstock.bench") / "templates" / "example.toml").read_text(encoding="utf-8")


def read_settings(path: str | Path) -> Study:
    """Read and check the settings of a study from a TOML file.

    Parameters
    ----------
    path : path
        The file. `penstock bench settings` prints an example.

    Raises
    ------
    ParameterError
        With the file, the entry and the key that are wrong.

    Examples
    --------
    >>> import tempfile
    >>> path = Path(tempfile.mkdtemp()) / "study.toml"
    >>> _ = path.write_text('datasets = ["pump.csv::fault"]\\n[[method]]\\nname = "mine"\\ndetector = "LoMST"\\n')
    >>> read_settings(path).datasets
    ('pump.csv::fault',)
    """
    return parse_settings(Path(path).read_text(encoding="utf-8"), str(path))


def parse_settings(text: str, place: str = "settings") -> Study:
    """Check the text of a settings file; `place` names it in errors.

    >>> study = parse_settings('''
    ... datasets = ["pump.csv::fault"]
    ... [[method]]
    ... name = "mine"
    ... detector = "KNNDistance"
    ... ''')
    >>> study.methods[0].name, study.seeds
    ('mine', (0, 1, 2, 3, 4))
    """
    return make_study(parse_toml(text, place), text, place)


def parse_toml(text: str, place: str) -> dict[str, Any]:
    """Parse TOML; raise ParameterError where it is none."""
    try:
        return tomllib.loads(text)
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        raise ParameterError(place, f": not TOML: {error}.") from None


def make_study(content: Mapping[str, Any], text: str, place: str, labels: Sequence[str] = ()) -> Study:
    """Check the content of a settings file; each [[method]] may have `labels` as further keys."""
    check_keys(content, ("title", "datasets", *READING, "seeds", "time_limit", "method"), place)
    entries = enumerate(tables_of(content, "method", place), 1)
    methods = [_method(entry, f"{place}: [[method]] {number}", labels) for number, entry in entries]
    if not methods:
        raise ParameterError(place, ": there is no [[method]].")
    for (name, _), count in Counter((method.name, method.mark) for method in methods).items():
        if count > 1:
            raise ParameterError(place, f": two methods are named {name!r}; tables could not tell them apart.")
    return Study(
        title=typed(content, "title", str, place, "Study"),
        datasets=_datasets(content, place) or (),
        methods=tuple(methods),
        seeds=_seeds(content, place) or tuple(range(5)),
        time_limit=checked_limit(content.get("time_limit", TIME_LIMIT), f"{place}: time_limit"),
        text=text,
        labels=tuple(labels),
        reading={name: str(content[name]) for name in READING if name in content},
    )


def _method(entry: Mapping[str, Any], place: str, labels: Sequence[str]) -> Method:
    check_keys(entry, (*_METHOD_KEYS, *labels), place)
    order, rows = entry.get("order", "file"), entry.get("rows")
    check_choice(f"{place}: order", order, ("file", "shuffled"))
    if rows is not None:
        check_whole_number(f"{place}: rows", rows, least=1)
    return Method(
        name=typed(entry, "name", str, place),
        detector=typed(entry, "detector", str, place),
        parameters=typed(entry, "parameters", dict, place, {}),
        datasets=_datasets(entry, place),
        seeds=_seeds(entry, place),
        order=order,
        rows=rows,
        mark=typed(entry, "mark", str, place, ""),
        labels={name: entry.get(name, "") for name in labels},
        detail=typed(entry, "detail", dict, place, {}),
    )


def _datasets(entry: Mapping[str, Any], place: str) -> tuple[str, ...] | None:
    if "datasets" not in entry:
        return None
    given = entry["datasets"]
    given = [given] if isinstance(given, str) else given
    if not (isinstance(given, list) and given and all(isinstance(name, str) for name in given)):
        raise ParameterError(place, f": datasets must be a list of files; got {entry['datasets']!r}.")
    return tuple(dict.fromkeys(given))


def _seeds(entry: Mapping[str, Any], place: str) -> tuple[int, ...] | None:
    """Read a number of seeds, from 0 on, or a list of them."""
    if "seeds" not in entry:
        return None
    given = entry["seeds"]
    numbers = list(range(given)) if type(given) is int else given
    if not (isinstance(numbers, list) and numbers and all(type(seed) is int and seed >= 0 for seed in numbers)):
        raise ParameterError(place, f": seeds must be how many there are, or a list of them; got {given!r}.")
    return tuple(dict.fromkeys(numbers))


def checked_limit(seconds: float, name: str = "time_limit") -> float:
    """Return a time limit in seconds, if it is one."""
    check_number(name, seconds, least=0.0, above=True, most=_LONGEST_LIMIT)
    return float(seconds)


def tables_of(content: Mapping[str, Any], kind: str, place: str) -> list[dict[str, Any]]:
    """Return the entries [[kind]]."""
    tables = content.get(kind, [])
    if not (isinstance(tables, list) and all(isinstance(table, dict) for table in tables)):
        raise ParameterError(place, f": write [[{kind}]] with two brackets on each side; there may be several.")
    return tables


def typed(entry: Mapping[str, Any], key: str, kind: type, place: str, *default: Any) -> Any:
    """Return a value of this type, or the default if there is one."""
    if key not in entry:
        if default:
            return default[0]
        raise ParameterError(place, f": {key!r} is missing.")
    words = {str: "a text", int: "a whole number", dict: "a table", list: "a list"}
    if type(entry[key]) is not kind:
        raise ParameterError(place, f": {key} must be {words[kind]}; got {entry[key]!r}.")
    return entry[key]


def check_keys(entry: Mapping[str, Any], known: Sequence[str], place: str) -> None:
    """Raise for a key that is not known."""
    for key in entry:
        if key not in known:
            raise ParameterError(
                place, f": unknown key {key!r}.{did_you_mean(key, known)} Known are {', '.join(known)}."
            )
