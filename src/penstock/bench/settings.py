"""What a study is: which methods, on which data sets, with which seeds. `settings_file` reads it from TOML."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from difflib import get_close_matches
from typing import Any

from penstock.bench.datasets import names
from penstock.bench.methods import OURS

TIME_LIMIT = 1800.0  # seconds per cell, if the file does not say
_LONGEST = 1e9  # seconds, thirty years: more than clocks can wait for is more than anyone means


class SettingsError(ValueError):
    """A settings file that cannot be used: where, and what to do."""


@dataclass(frozen=True)
class Above:
    """Beyond so many rows a method runs with other parameters, and its cells bear a mark."""

    rows: int
    parameters: Mapping[str, Any]
    mark: str


@dataclass(frozen=True)
class Method:
    """A method of a study: a detector, its parameters, and what is done to the rows first.

    `order` is "file" or "shuffled" (by the seed; scores go back to their rows), `rows` a number of rows drawn at random
    (by the seed) or None for all. `paper` names the column of the paper's tables that it is held against.
    """

    name: str
    detector: str
    part: str = "study"
    parameters: Mapping[str, Any] = field(default_factory=dict)
    paper: str = ""
    order: str = "file"
    rows: int | None = None
    above: Above | None = None
    datasets: tuple[str, ...] | None = None
    seeds: tuple[int, ...] | None = None
    sweep: str = ""
    base: str = ""
    value: Any = None


@dataclass(frozen=True)
class Study:
    """What is to be run."""

    title: str
    datasets: tuple[str, ...]
    seeds: tuple[int, ...]
    methods: tuple[Method, ...]
    time_limit: float = TIME_LIMIT
    text: str = ""
    options: str = ""

    def only(
        self,
        *,
        parts: Sequence[str] = (),
        methods: Sequence[str] = (),
        datasets: Sequence[str] = (),
        seeds: int | None = None,
    ) -> Study:
        """The study cut down to these parts, methods (with what varies them), data sets and that many seeds.

        A method that the study does not have may be a detector of ours by its class name, with its default parameters.
        On data sets none of which is in the study, it is another study, named after these.

        Seeds are the first of its own, or 0, 1, … if it has fewer; a method with seeds of its own keeps to these. What
        was cut is remembered in `options`, in the words of the command line.
        """
        _check_known(parts, {method.part for method in self.methods}, "part")
        there = {method.name for method in self.methods}
        _check_known(methods, {*there, *OURS}, "method")
        kept = [
            replace(method, datasets=None if datasets else method.datasets, seeds=_first(method.seeds, seeds))
            for method in self.methods
            if (not parts or method.part in parts) and (not methods or {method.name, method.base} & set(methods))
        ]
        kept += [Method(name, name) for name in dict.fromkeys(methods) if name not in there]
        if not kept:
            raise SettingsError(f"Nothing is left: no method {' or '.join(methods)} is in part {' or '.join(parts)}.")
        given = tuple(expand_datasets(datasets)) if datasets else self.datasets
        counted = self.seeds if seeds is None or seeds <= len(self.seeds) else tuple(range(seeds))
        options = [*_option("part", parts), *_option("method", methods), *_option("data", datasets)]
        options += _option("seeds", [] if seeds is None else [str(seeds)])
        title = self.title if set(given) & set(self.datasets) else f"Study of {', '.join(given)}"
        return replace(
            self, title=title, methods=tuple(kept), datasets=given, seeds=counted[:seeds], options=shlex.join(options)
        )

    def limited(self, seconds: float) -> Study:
        """The study with another time limit for each cell."""
        return replace(self, time_limit=checked_time_limit(seconds))


def _option(name: str, values: Sequence[str]) -> list[str]:
    return [word for value in values for word in (f"--{name}", value)]


def checked_time_limit(seconds: object) -> float:
    """A time limit that can be waited for.

    >>> checked_time_limit(60)
    60.0
    """
    if isinstance(seconds, int | float) and not isinstance(seconds, bool) and 0 < seconds <= _LONGEST:
        return float(seconds)
    raise SettingsError(f"time_limit must be a number of seconds above 0 and at most {_LONGEST:g}; got {seconds!r}.")


def expand_datasets(given: Iterable[str]) -> list[str]:
    """ "paper" stands for the twenty, "-Name" leaves one out again; each is there once, in the order given.

    >>> expand_datasets(["paper", "-ALOI", "mine.csv"])[-3:]
    ['PenDigits', 'Lymphography', 'mine.csv']
    """
    expanded: dict[str, None] = {}
    for item in given:
        if item.startswith("-"):
            if item[1:] not in expanded:
                raise SettingsError(f"datasets: {item!r} leaves out a data set that is not there to be left out.")
            del expanded[item[1:]]
        else:
            expanded |= dict.fromkeys(names() if item == "paper" else [item])
    return list(expanded)


def _first(seeds: tuple[int, ...] | None, count: int | None) -> tuple[int, ...] | None:
    return None if seeds is None else seeds[:count]


def _check_known(given: Sequence[str], known: Iterable[str], kind: str) -> None:
    there = sorted(set(known))
    for name in given:
        if name not in there:
            raise SettingsError(f"There is no {kind} {name!r} in the study.{closest(name, there)}")


def closest(name: str, known: Iterable[str]) -> str:
    close = get_close_matches(name, list(known), n=1)
    return f" Did you mean {close[0]!r}?" if close else ""
