"""Options of `look`, `detect`, `fit_model` and `score`, declared once.

Each field has its type, its default and, as an `Option`, its name and help on the command line. The fields are the
keyword arguments of the functions (`keyword_options`), the options of the commands (`penstock.cli`), and the keys of
TOML files.
This module imports nothing heavy, so that `--help` is quick.
"""

from __future__ import annotations

import inspect
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, fields, replace
from functools import partial
from pathlib import Path
from typing import Annotated, Any, Concatenate, Generic, ParamSpec, TypeVar, cast, get_args, get_type_hints

from penstock.registry import AUTO, METHODS, did_you_mean

Names = str | Sequence[str]
P = ParamSpec("P")
First = TypeVar("First")
Second = TypeVar("Second")
Result = TypeVar("Result")
Options = TypeVar("Options")


@dataclass(frozen=True)
class Option:
    """Describe a field on the command line.

    kind : str, int, float, bool or Path; "names" is one text with commas (in TOML also a list), "repeated" a list of
        texts, and "values" a list of texts with commas. By default that of the annotation.
    """

    panel: str  # the group of options that the help shows it in
    flags: str  # its names, such as "--output -o"; "" for an argument
    help: str  # one sentence
    kind: Any = None
    default: str | None = None  # what the help shows as the default, if it is not that of the field


_in = partial(Option, "Input")
_format = partial(Option, "How the text is written (found if not given)")
_learn = partial(Option, "What is fitted, and what is scored")
_cut = partial(Option, "What counts as a finding")
_model = partial(Option, "Model")
_out = partial(Option, "Output")


# How times are written: of tables and of streams.
Timezone = Annotated[Any, _format("--timezone", "The zone of time stamps that have none, such as Europe/Berlin.")]
DayFirst = Annotated[bool | None, _format("--day-first/--month-first", "Whether 1/2/2024 is in February.")]
TimeFormat = Annotated[str | None, _format("--time-format", "How times are written: '%d/%m/%y %Hh'")]


@dataclass(frozen=True, kw_only=True)
class SourceOptions:
    """How a source is read: what a model keeps (`penstock.detection.ReadSettings`), so that new data are read alike."""

    time: Annotated[Names | None, _in("--time", "The time column, or two: date,time. Found if not given.", "names")] = (
        None
    )
    label: Annotated[str | None, _in("--label", "A column of what is known, to compare with; never an input.")] = None
    group: Annotated[str | None, _in("--group", "A column of runs, units or machines: no event spans two.")] = None
    strict: Annotated[
        bool | None, _in("--strict", "Refuse a table rather than change, leave out or encode anything.")
    ] = None
    max_bytes: Annotated[int | None, _in("--max-bytes", "The largest text to read; else a quarter of the memory.")] = (
        None
    )
    step: Annotated[
        Any, _in("--step", "Put tags with times of their own on one clock: auto, none, or a step such as 5min.")
    ] = None
    hold: Annotated[
        Any, _in("--hold", "How long a reading stands where a step has none: 15min; else as is usual for its tag.")
    ] = None
    timezone: Timezone = None
    day_first: DayFirst = None
    time_format: TimeFormat = None
    names: Annotated[
        Names, _format("--names", "The names of all columns, where there is no header: a,b,c", "names")
    ] = ()
    separator: Annotated[str | None, _format("--separator", "Between fields: one character, tab or space.")] = None
    decimal: Annotated[str | None, _format("--decimal", "Before decimals: . or ,")] = None
    thousands: Annotated[str | None, _format("--thousands", "Between thousands, if there is a sign.")] = None
    missing: Annotated[Any, _format("--missing", "Further codes for a missing value: -9999,Bad", "names")] = ()
    encoding: Annotated[str | None, _format("--encoding", "Such as utf-8 or cp1252.")] = None
    sheet: Annotated[str | None, _format("--sheet", "Of a workbook; else the first.")] = None
    query: Annotated[str | None, _in("--query", "Of a database (sql:URL): one SELECT; else its only table.")] = None


@dataclass(frozen=True, kw_only=True)
class ReadingOptions(SourceOptions):
    """How a source is read, which of its rows are used, and what is known of them."""

    fault_values: Annotated[
        Any, _in("--fault-value", "Values of the label that mean a fault: 1,2; may be repeated.", "values")
    ] = ()
    unknown_values: Annotated[
        Any, _in("--unknown-value", "And those of rows of which nothing is known: -999; may be repeated.", "values")
    ] = ()
    failures: Annotated[
        Any, _in("--failures", "A CSV file of known failures to compare with: start, end, text.", Path)
    ] = None
    since: Annotated[Any, _in("--since", "Use rows from this time on; without times, from this row (from 0).")] = None
    until: Annotated[Any, _in("--until", "Use rows up to this time or row, and with it.")] = None
    exclude_periods: Annotated[
        Any,
        _in("--exclude-period", "Neither learn from nor score START..END, times or rows; may be repeated.", "repeated"),
    ] = ()
    progress: Callable[[str], None] | None = None
    reader: Callable[..., Any] | None = None


@dataclass(frozen=True, kw_only=True)
class ColumnOptions:
    """Which columns are inputs, and what they are."""

    units: Annotated[Any, _in("--units", "A CSV file with the columns name and unit, for explanations.", Path)] = None
    columns: Annotated[Names | None, _in("--columns", "Inputs, only these: a,b,c", "names")] = None
    exclude: Annotated[Names, _in("--exclude", "Columns to leave out: a,b", "names")] = ()
    keep: Annotated[
        Names, _in("--keep", "Inputs even if they would be left out (useless, like a label): a,b", "names")
    ] = ()
    roles: Annotated[
        Any,
        _in(
            "--role",
            "What a column is: valve=state. Roles: sensor, state, setting, driver, counter, quality, label; may be "
            "repeated.",
            "repeated",
        ),
    ] = ()
    drivers: Annotated[
        Any,
        _in(
            "--driver", "Columns that explain others, never scored nor named: inflow,level; may be repeated.", "values"
        ),
    ] = ()
    ordered: Annotated[bool, _in("--ordered", "Rows without time stamps are in order of time, evenly spaced.")] = False
    checker: Callable[..., Any] | None = None


@dataclass(frozen=True, kw_only=True)
class LearningOptions(ColumnOptions):
    """Which rows are fitted to, and by which method."""

    train_until: Annotated[Any, _learn("--train-until", "Learn from what is good until this time, or row.")] = None
    train_rule: Annotated[
        str | None, _learn("--train-rule", "Or from the rows where this holds: 'flow > 3', 'row < 500'")
    ] = None
    train_periods: Annotated[
        Any, _learn("--train-period", "Or from these periods: START..END, times or rows; may be repeated.", "repeated")
    ] = ()
    labels: Annotated[
        Any,
        _learn("--labels", "A file of 'penstock label': incidents like those are known, faults not fitted.", Path),
    ] = None
    modes: Annotated[
        str | Sequence[str] | Mapping[str, str],
        _learn(
            "--mode",
            "Score operating modes apart: a column, 'power > 5' or 'running: power > 5'; may be repeated.",
            "repeated",
        ),
    ] = ()
    skip_modes: Annotated[Names, _learn("--skip-mode", "A mode not to score; may be repeated.", "repeated")] = ()
    settle: Annotated[Any, _learn("--settle", "Do not score so long after a change of mode: 30min, or 3 (rows)")] = None
    method: Annotated[
        Any,
        _model(
            "--method",
            f"{', '.join((AUTO, *METHODS))}. auto is sensors for rows in order of time, else detector; nsnmf is the "
            f"paper's NS-NMF, exactly penstock.NSNMF(), and often needs --similarity normalized.",
        ),
    ] = AUTO
    parameters: Mapping[str, Any] | None = None
    random_state: Annotated[Any, _model("--seed", "The same seed gives the same findings.", int)] = 0
    fit_rows: Callable[[Any, Any], Any] | None = None


@dataclass(frozen=True, kw_only=True)
class SelectionOptions:
    """Which rows are findings, and which findings are one event."""

    top: Annotated[
        int | None, _cut("--top", "So many rows with the highest scores; else 100, at most 1 row in 20.")
    ] = None
    threshold: Annotated[
        Any,
        _cut(
            "--threshold",
            "Or all above: auto, a share of the rows such as 0.01 (with method detector and a training period, of "
            "normal rows: the rate of false alarms), fixed:0.8, deviation, quantile … ",
        ),
    ] = None
    gap: Annotated[Any, _cut("--gap", "Findings at most so far apart are one event: 2h, or 6 (rows)")] = None
    most_explained: int | None = None


@dataclass(frozen=True, kw_only=True)
class LookOptions(ReadingOptions, ColumnOptions):
    """The options of `look`."""


@dataclass(frozen=True, kw_only=True)
class FitOptions(ReadingOptions, LearningOptions):
    """The options of `fit_model`."""


@dataclass(frozen=True, kw_only=True)
class ScoreOptions(ReadingOptions, SelectionOptions):
    """The options of `score`."""


@dataclass(frozen=True, kw_only=True)
class DetectOptions(FitOptions, SelectionOptions):
    """The options of `detect`."""


@dataclass(frozen=True, kw_only=True)
class MethodParameters:
    """Parameters of methods that have a name, which the commands take as options of their own."""

    n_components: Annotated[
        int | None,
        _model("--n-components --components -K", "Latent groups, of nsnmf and related methods.", default="5"),
    ] = None
    alpha: Annotated[float | None, _model("--alpha", "Weight of attributes against structure.", default="0.8")] = None
    gamma: Annotated[float | None, _model("--gamma", "Weight of the ridge term.", default="0.2")] = None
    similarity: Annotated[
        str | None,
        _model(
            "--similarity",
            "How lengths become similarities: inverse (the paper's), relative, normalized, binary or path (all pairs).",
            default="inverse",
        ),
    ] = None
    score_kind: Annotated[str | None, _model("--score-kind --score", "residual or structural.", default="residual")] = (
        None
    )


@dataclass(frozen=True, kw_only=True)
class EngineOptions:
    """Where a detector is fitted."""

    engine: Annotated[
        str, _model("--engine", "Where it is fitted: local, dask (all cores) or dask://HOST:PORT (a cluster).")
    ] = "local"


@dataclass(frozen=True, kw_only=True)
class ResultOptions:
    """The files that `penstock detect` and `score` write, what they print, and their exit code."""

    report: Annotated[Path | None, _out("--report", "A page for people, .html")] = None
    output: Annotated[
        Path | None, _out("--output -o", "The findings with their events: .csv, .csv.gz, .json, .parquet or .xlsx")
    ] = None
    incidents: Annotated[Path | None, _out("--incidents", "The incidents alone: .csv, .csv.gz or .parquet")] = None
    scores: Annotated[Path | None, _out("--scores", "The scores of all rows: .csv, .csv.gz, .jsonl or .parquet")] = None
    json: Annotated[bool, _out("--json", "The summary as JSON.")] = False
    fail_on: Annotated[
        int | None, _cut("--fail-on", "End with exit code 1 at so many events (not incidents), or more.")
    ] = None


@dataclass(frozen=True, kw_only=True)
class LookResultOptions:
    """What `penstock look` prints."""

    json: Annotated[bool, _out("--json", "As JSON.")] = False
    all: Annotated[bool, _out("--all", "Every tag, however many there are.")] = False


@dataclass(frozen=True, kw_only=True)
class WriteOptions:
    """Whether files are replaced, and whether anything is printed."""

    overwrite: Annotated[bool, _out("--overwrite", "Replace files that are there.")] = False
    quiet: Annotated[bool, _out("--quiet -q", "Say nothing but errors.")] = False


def described(options: type) -> Iterator[tuple[str, Any, Option]]:
    """Yield the name, the default and the description of each field that the command line has.

    >>> [(name, option.kind.__name__) for name, _, option in described(SelectionOptions)]
    [('top', 'int'), ('threshold', 'str'), ('gap', 'str')]
    """
    hints = get_type_hints(options, include_extras=True)
    for each in fields(options):
        for option in get_args(hints[each.name])[1:]:
            if isinstance(option, Option):
                annotation = get_args(hints[each.name])[0]
                kinds = [kind for kind in (bool, int, float, Path) if kind in (annotation, *get_args(annotation))]
                kind: Any = next(iter(kinds), str)
                if annotation == tuple[str, ...]:
                    kind = "names"
                yield each.name, each.default, option if option.kind else replace(option, kind=kind)


class keyword_options(Generic[P]):  # noqa: N801 - a decorator
    """Give a function with `**given` the fields of a dataclass as keyword arguments, for readers and type checkers."""

    def __init__(self, options: Callable[P, Any]) -> None:
        self._options = options

    def __call__(self, function: Callable[Concatenate[First, ...], Result]) -> Callable[Concatenate[First, P], Result]:
        self._declare(function)
        return cast("Callable[Concatenate[First, P], Result]", function)

    def after_two(
        self, function: Callable[Concatenate[First, Second, ...], Result]
    ) -> Callable[Concatenate[First, Second, P], Result]:
        """Do the same for a function of two arguments before the options."""
        self._declare(function)
        return cast("Callable[Concatenate[First, Second, P], Result]", function)

    def _declare(self, function: Any) -> None:
        own = inspect.signature(function)
        first = [each for each in own.parameters.values() if each.kind is not inspect.Parameter.VAR_KEYWORD]
        given = inspect.signature(self._options).parameters.values()
        function.__signature__ = own.replace(parameters=[*first, *given])


def read_options(options: Callable[..., Options], given: Mapping[str, Any]) -> Options:
    """Make options of keyword arguments; an unknown one is a TypeError with the nearest known name."""
    known = list(inspect.signature(options).parameters)
    for name in given:
        if name not in known:
            raise TypeError(
                f"{name!r} is not a parameter here.{did_you_mean(name, known)} Those are {', '.join(sorted(known))}."
            )
    return options(**given)


@contextmanager
def errors_name(parameter: str) -> Iterator[None]:
    """Attach the name of a parameter to a ValueError that is raised inside this block, as its `parameter`."""
    try:
        yield
    except ValueError as error:
        if getattr(error, "parameter", None) in (None, "rule"):  # of which kind a rule is, only this place knows
            error.parameter = parameter  # type: ignore[attr-defined]
        raise


def as_names(names: Names | os.PathLike[str] | None) -> tuple[str, ...]:
    """Make a tuple of one name or several.

    >>> as_names("flow"), as_names(["flow", "head"]), as_names(None)
    (('flow',), ('flow', 'head'), ())
    """
    if names is None:
        return ()
    return (names,) if isinstance(names, str) else tuple(cast("Sequence[str]", names))
