"""Which columns of a table are measurements, and which one is the time."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Any

from penstock.io.faults import InputError, quoted

TIME_NAMES = ("time", "timestamp", "date", "datetime")
_PERHAPS_TIME = "t"  # or a temperature
# What `penstock detect` takes for missing too, in whatever case.
_MISSING = frozenset(
    (
        *(
            "",
            "nan",
            "-nan",
            "na",
            "n/a",
            "#n/a",
            "#na",
            "#n/a n/a",
            "<na>",
            "null",
            "none",
            "-",
            "--",
            "---",
            "?",
            ".",
        ),
        *("1.#ind", "-1.#ind", "1.#qnan", "-1.#qnan"),
    )
)


@dataclass(frozen=True)
class TableOptions:
    """How a table is to be read; what is None is found out from its first lines."""

    format: str | None = None  # "csv" or "jsonl"
    delimiter: str | None = None
    time: str | None = None
    columns: tuple[str, ...] = ()  # of numbers; all if there are none here and in `texts`
    exclude: tuple[str, ...] = ()
    texts: tuple[str, ...] = ()  # columns to be handed out as they are written


@dataclass(frozen=True)
class Columns:
    """All names of a table in order, and by their numbers: the time column (or None) and the measured variables."""

    names: tuple[str, ...]
    time: int | None
    variables: tuple[int, ...]
    texts: tuple[int, ...] = ()

    @property
    def variable_names(self) -> tuple[str, ...]:
        return tuple(self.names[number] for number in self.variables)

    def state(self) -> dict[str, Any]:
        """The same in plain values, for `restore`."""
        texts = {"texts": list(self.texts)} if self.texts else {}
        return {"names": list(self.names), "time": self.time, "variables": list(self.variables), **texts}

    @classmethod
    def restore(cls, state: dict[str, Any]) -> Columns:
        return cls(tuple(state["names"]), state["time"], tuple(state["variables"]), tuple(state.get("texts", ())))


def choose_columns(names: Sequence[str], first_values: Sequence[object], options: TableOptions) -> Columns:
    """Find the time column and the variables; `first_values` are those of the first row.

    >>> columns = choose_columns(["when", "flow", "head"], ["Monday", "1.5", "20"], TableOptions(exclude=("head",)))
    >>> columns.time, columns.variable_names
    (0, ('flow',))
    """
    _check_options(names, options)
    time = _time_column(names, first_values, options)
    chosen = bool(options.columns or options.texts)
    wanted = options.columns if chosen else tuple(name for number, name in enumerate(names) if number != time)
    if not chosen and _is_unnamed_index(names, time, options):
        wanted = wanted[1:]
        warnings.warn("The first column has no name and another is the time: it is left out as an index.", stacklevel=2)
    variables = tuple(names.index(name) for name in wanted if name not in options.exclude)
    if not variables and not options.texts:
        raise InputError(f"No column is left to measure anomalies in; the columns are {_listed(names)}.")
    return Columns(tuple(names), time, variables, tuple(names.index(name) for name in options.texts))


def is_missing(text: str) -> bool:
    """Whether a text stands for a reading that is not there."""
    return text.strip().lower() in _MISSING


def is_number(value: object) -> bool:
    """Whether a value of a table is, or spells, a number."""
    if isinstance(value, str) and "_" in value:  # Python's own spelling, and a name for a sensor: 1_2
        return False
    try:
        float(value)  # type: ignore[arg-type]
    except (TypeError, ValueError, OverflowError):
        return False
    return True


def _check_options(names: Sequence[str], options: TableOptions) -> None:
    for name in (
        *options.columns,
        *options.texts,
        *options.exclude,
        *([options.time] if options.time is not None else []),
    ):
        if name not in names:
            raise InputError(_no_such_column(name, names))
    for option, chosen in (("--columns", options.columns), ("--exclude", options.exclude)):
        twice = next((name for name in chosen if chosen.count(name) > 1), None)
        if twice is not None:
            raise InputError(f"{option} names {quoted(twice)} more than once; name each column once.")
    if options.time is not None and options.time in options.columns:
        raise InputError(f"Column {quoted(options.time)} cannot be the time and a measurement; name it once.")


def _time_column(names: Sequence[str], first_values: Sequence[object], options: TableOptions) -> int | None:
    if options.time is not None:
        return names.index(options.time)
    taken = {*options.columns, *options.texts, *options.exclude}
    free = [number for number, name in enumerate(names) if name not in taken]
    for number in free:
        if names[number].strip().lower() in TIME_NAMES:
            return number
    if 0 in free and _is_text(first_values[0]):
        return 0
    for number in free:
        if names[number].strip().lower() == _PERHAPS_TIME and (number == 0 or _is_text(first_values[number])):
            return number
    return 0 if 0 in free and names[0] == "" else None  # pandas writes its index under no name


def _is_unnamed_index(names: Sequence[str], time: int | None, options: TableOptions) -> bool:
    """Whether the first column only counts the rows: it has no name, and the time is in another."""
    return time not in (None, 0) and names[0] == "" and "" not in options.exclude


def _is_text(value: object) -> bool:
    return isinstance(value, str) and not is_missing(value) and not is_number(value)


def _no_such_column(name: str, names: Sequence[str]) -> str:
    close = get_close_matches(name, names, n=1)
    hint = f" Did you mean {quoted(close[0])}?" if close else ""
    return f"There is no column {quoted(name)}; the columns are {_listed(names)}.{hint}"


def _listed(names: Sequence[str], most: int = 20) -> str:
    shown = ", ".join(names[:most])
    return shown if len(names) <= most else f"{shown}, … ({len(names)} in all)"
