"""Read a source, check its columns, choose inputs, and assign modes: what fitting and scoring share.

A source and options come in, a `Prepared` table goes out, with a note on all that was changed or left out.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from penstock._messages import duration_in_words, in_columns, listed, option, quoted
from penstock._parameters import ParameterError, check_whole_number
from penstock._types import BoolArray, IndexArray
from penstock.columns import (
    A_DRIVER,
    BY_NAME,
    LIKE_A_COUNTER,
    LIKE_A_LABEL,
    ColumnReport,
    InputChoice,
    check_columns,
    choose_inputs,
    count_roles,
)
from penstock.detection._periods import shown, shown_names
from penstock.detection.data import DataSummary, describe_data
from penstock.detection.modes import CHANGING, UNKNOWN, ModePlan
from penstock.explain import Truth, split_unit
from penstock.io import (
    Alignment,
    AlignOptions,
    Note,
    Table,
    TableError,
    TimeOptions,
    TimeReader,
    as_zone,
    is_address,
    public_query,
    read_table,
    refuse_unknown,
    source_name,
)
from penstock.options import FitOptions, ScoreOptions, SourceOptions, as_names, errors_name

Progress = Callable[[str], None]
FROM_DATA = ("time_reader", "alignment", "words")  # what is known from the training data, and no option says


@dataclass(frozen=True, kw_only=True)
class ReadSettings(SourceOptions):
    """How a source is read: the parameters of `penstock.io.read_table`, kept so that new data are read alike.

    time_reader : how the times of the training data were read.
    alignment : the clock on which their tags were put.
    words : that stood in place of numbers; None: to be found.
    """

    strict: bool = False  # a model knows it; None is "as the model" where it is an option of `score`
    columns: tuple[str, ...] | None = None
    exclude: tuple[str, ...] = ()
    time_reader: TimeReader | None = None
    alignment: Alignment | None = None
    words: tuple[str, ...] | None = None

    @classmethod
    def of(cls, options: FitOptions) -> ReadSettings:
        """Take from the options what concerns reading, and check it."""
        columns = None if options.columns is None else as_names(options.columns)
        return cls(**{**_given(options), "columns": columns, "exclude": as_names(options.exclude)})

    def read(
        self,
        source: Any,
        progress: Progress,
        *,
        also: Sequence[str] = (),
        fewest_rows: int = 2,
        group_needed: bool = True,
        reader: Callable[..., Table] | None = None,
    ) -> Table:
        if isinstance(source, Table):
            labels = tuple(str(each.name) for each in (source.label, source.group) if each is not None)
            for parameter, names in (("columns", self.columns or ()), ("exclude", self.exclude)):
                refuse_unknown(names, (*source.names, *labels, str(source.time_name)), parameter, source.source)
            return source
        path = isinstance(source, str | os.PathLike) and not is_address(source)
        progress(f"reading {source if path else source_name(source)}")
        given = {field.name: getattr(self, field.name) for field in fields(self)}
        return (reader or read_table)(source, **given, also=also, fewest_rows=fewest_rows, group_needed=group_needed)

    def for_new_data(self, options: ScoreOptions) -> ReadSettings:
        """Return how new data are read: as before but for the options; all columns, and no label unless it is given."""
        given = _given(options)
        for name in ("step", "hold"):
            if name in given and self.alignment is not None:
                step = duration_in_words(self.alignment.step / 1e6)
                raise TableError(f"{name}: the model has a clock of its own, with steps of {step}. Leave it out.", name)
        return replace(self, columns=None, exclude=(), **{"label": None, "query": None, **given})

    def time_options(self, given: TimeOptions) -> TimeOptions:
        """Return how the times of a stream are read: as the training data, but for what is given."""
        zone = given.zone or as_zone(self.timezone)
        day_first = self.day_first if given.day_first is None else given.day_first
        return TimeOptions((), zone, day_first, given.format or self.time_format, self.time_reader)

    def described(self) -> dict[str, Any]:
        """Return how a source is read, where that is not the default."""
        given = {each.name: (getattr(self, each.name), each.default) for each in fields(self)}
        if self.query is not None:
            given["query"] = (public_query(self.query), None)
        return {
            name: shown_names(value) if isinstance(value, tuple) else shown(value)
            for name, (value, default) in given.items()
            if value != default and name not in ("max_bytes", *FROM_DATA)
        }

    def with_columns(self, extra: Sequence[str]) -> ReadSettings:
        """Read these columns too, which decide modes and training periods, whether or not they are inputs."""
        extra = [name for name in extra if name != self.group]
        columns = None if self.columns is None else tuple(dict.fromkeys((*self.columns, *extra)))
        return replace(self, columns=columns, exclude=tuple(name for name in self.exclude if name not in extra))

    def candidates(self, table: Table, without: Collection[str]) -> Table:
        """Return the table with those columns that may be inputs; others were read for modes and periods alone."""
        left_out = {*self.exclude, *without, *(() if table.group is None else (str(table.group.name),))}
        asked = table.names if self.columns is None else [name for name in self.columns if name in table.names]
        wanted = [name for name in asked if name not in left_out]
        return table if wanted == list(table.names) else replace(table, values=table.values[wanted])


@dataclass(frozen=True, eq=False)
class Prepared:
    """A table, ready to be fitted to or scored."""

    table: Table
    data: DataSummary
    inputs: InputChoice
    values: pd.DataFrame
    units: Mapping[str, str]
    plan: ModePlan  # by which modes are assigned
    modes: NDArray[np.str_]
    scorable: BoolArray  # rows of a mode that is scored, with a reading, of no excluded period
    notes: tuple[Note, ...]
    truth: Truth | None

    def order(self, rows: IndexArray) -> dict[str, Any]:
        """Return times and runs of some rows, ascending, as detectors that score series take them.

        A new run begins with each group, and, in a table without time, after rows that are not among these.
        """
        table = self.table
        runs = np.zeros(len(rows), dtype=np.intp) if table.group is None else pd.factorize(table.group)[0][rows]
        if table.time is not None:
            return {"time": table.time[rows], "runs": runs}
        apart = np.cumsum(np.diff(rows, prepend=rows[:1] - 1) > 1)
        return {"runs": apart + runs * (len(rows) + 1)}


def choose_columns(
    table: Table,
    checks: Sequence[ColumnReport],
    keep: Collection[str],
    *,
    strict: bool,
    labels: bool,
    constants: bool,
    drivers: bool,
    fitted: BoolArray,
) -> tuple[InputChoice, list[Note]]:
    """Choose inputs as `choose_inputs` does, with notes on roles, and on columns left out, encoded or set."""
    refuse_unknown(keep, table.names, "keep", table.source)
    inputs = choose_inputs(
        table,
        checks,
        keep=keep,
        strict=strict,
        labels=labels,
        constants=constants,
        drivers=drivers,
        fitted=fitted,
    )
    if set(inputs.drivers) >= set(inputs.names):
        raise TableError("All inputs are drivers, which are never scored. Name fewer of them.", "drivers")
    notes = [
        _about_roles(inputs, checks),
        *_about_left_out(inputs),
        *_about_settings(inputs),
        *_about_drivers(checks),
    ]
    apart = (LIKE_A_LABEL, LIKE_A_COUNTER, A_DRIVER)
    left_out = [each for each in inputs.left_out if each.reason not in apart]
    if left_out:
        names = tuple(each.name for each in left_out)
        reasons = "; ".join(f"{each.name}: {each.reason.rstrip('.')}" for each in left_out[:5])
        more = f"; and {len(names) - 5} more" if names[5:] else ""
        word = "column was" if len(names) == 1 else "columns were"
        message = f"{len(names):,} {word} left out ({reasons}{more})."
        notes.append(Note("left out columns", message, len(names), names, changed=True))
    if inputs.encoded:
        names = tuple(each.column for each in inputs.encoded)
        how = "; ".join(f"{each.column}: {each.method}, {len(each.categories)} kinds" for each in inputs.encoded[:5])
        word = "column of text was" if len(names) == 1 else "columns of text were"
        group = option("group", names[0])
        message = (
            f"{len(names):,} {word} encoded as numbers ({how}). One that names runs or machines is a group: {group}."
        )
        notes.append(Note("encoded columns", message, len(names), names, changed=True))
    return inputs, notes


def _about_roles(inputs: InputChoice, checks: Sequence[ColumnReport]) -> Note:
    """Return a note on how many columns have which role."""
    roles = {report.name: report.role for report in checks}
    used = [roles[name] for name in (*inputs.as_they_are, *(each.column for each in inputs.encoded))]
    message = f"Columns: {count_roles(used, [roles[each.name] for each in inputs.left_out])}."
    return Note("roles", message, len(used) + len(inputs.left_out))


def _about_left_out(inputs: InputChoice) -> list[Note]:
    """Return a note on each kind of columns that are left out for what they are, with what changes it."""
    notes = []
    for reason, kind in ((LIKE_A_LABEL, "like labels"), (LIKE_A_COUNTER, "counters"), (A_DRIVER, "drivers")):
        names = tuple(each.name for each in inputs.left_out if each.reason == reason)
        if not names:
            continue
        one = len(names) == 1
        which = in_columns(names)
        which = f"{which[0].upper()}{which[1:]}"
        as_sensor = f"--role {quoted(names[0])[1:-1]}=sensor"
        messages = {
            LIKE_A_LABEL: (
                f"{which} {'looks like a label and is no input' if one else 'look like labels and are no inputs'}. To "
                f"compare findings with {'it' if one else 'one'}, name it as label (--label); to use it as an input "
                f"all the same, name it in keep or columns (--keep, --columns)."
            ),
            LIKE_A_COUNTER: (
                f"{which} {'only rises, as a counter does' if one else 'only rise, as counters do'}, and "
                f"{'is' if one else 'are'} left out: no later value would be like an earlier one. To use it all the "
                f"same, give it a role ({as_sensor})."
            ),
            A_DRIVER: (
                f"Drivers are left out ({listed(names, most=5)}): this method would score them. Method sensors lets "
                f"them explain others."
            ),
        }
        notes.append(Note(kind, messages[reason], len(names), names, changed=True))
    return notes


def _about_drivers(checks: Sequence[ColumnReport]) -> list[Note]:
    """Return a note on columns that are drivers by their names."""
    named = tuple(check.name for check in checks if any(each.startswith(BY_NAME) for each in check.reasons))
    if not named:
        return []
    message = (
        f"Drivers by their names: {listed(named, most=5)}. They explain others, and are never scored nor named; "
        f"--role {quoted(named[0])[1:-1]}=sensor changes it."
    )
    return [Note("drivers by name", message, len(named), named)]


def _about_settings(inputs: InputChoice) -> list[Note]:
    """Return a note on inputs that are never named as a cause."""
    names = inputs.settings
    if not names:
        return []
    change = "1 input changes" if len(names) == 1 else f"{len(names):,} inputs change"
    seldom = f"{change} in under 5 % of the steps, as settings and states do ({listed(names, most=5)})"
    message = f"{seldom}: never named as the cause of an event; those that changed with one are listed apart."
    if len(names) == len(inputs.names):
        message = f"{seldom}. There is no other input, so they are named as causes all the same."
    return [Note("settings", message, len(names), names)]


def prepare(
    table: Table,
    checks: Sequence[ColumnReport],
    inputs: InputChoice,
    modes: ModePlan,
    notes: Sequence[Note],
    excluded: BoolArray,
    truth: Truth | None,
    units: Mapping[str, str],
) -> Prepared:
    """Apply the choice of inputs, assign modes, and leave out what cannot be scored, with a note on each kind."""
    values = inputs.apply(table)
    assigned = modes.assign(table)
    scored = modes.is_scored(assigned)
    about_modes = _about_modes(assigned, scored, modes)
    scored = scored & ~excluded
    found = [*table.notes, *notes, *_about_categories(table, inputs, scored), *about_modes]
    dead = tuple(values.columns[values.isna().all(axis=0)])  # which a model has fitted and new data may lack
    if dead:
        word = "input has" if len(dead) == 1 else "inputs have"
        message = f"{len(dead):,} {word} no reading in {table.source}, ignored: {listed(dead, most=5)}."
        found.append(Note("dead inputs", message, len(dead), dead))
    empty = values.isna().to_numpy().all(axis=1)
    if (scored & empty).any():
        rows = np.flatnonzero(scored & empty)
        found.append(rows_note("empty rows", rows, table, "without any reading cannot be scored"))
        scored = scored & ~empty
    data = describe_data(table, checks, inputs, units, found)
    return Prepared(table, data, inputs, values, units, modes, assigned, scored, data.notes, truth)


def input_columns(inputs: InputChoice, table: Table) -> Table:
    """Return the table with the columns that inputs are made of, as far as it has them."""
    wanted = [*inputs.as_they_are, *(encoding.column for encoding in inputs.encoded)]
    return replace(table, values=table.values[[name for name in wanted if name in table.values]])


def check_table(
    table: Table,
    progress: Progress,
    fitted: BoolArray | None = None,
    checker: Callable[..., Sequence[ColumnReport]] | None = None,
) -> tuple[ColumnReport, ...]:
    """Check the columns of a table; the rows `fitted` to, or all, decide what moves."""
    progress(f"checking {len(table.names):,} columns")
    if len(table.values) < 2:
        table = replace(table, time=None)  # a single stamp has no steps to check
    return tuple((checker or check_columns)(table, fitted))


def _about_categories(table: Table, inputs: InputChoice, scored: BoolArray) -> list[Note]:
    """Return notes on text that was not there when the inputs were chosen."""
    notes = []
    for encoding in inputs.encoded:
        values = table.values[encoding.column][scored].dropna()
        unknown = values[~values.isin(encoding.categories)]
        if len(unknown):
            names = listed(unknown.unique(), most=3)
            rows = tuple(int(row) for row in unknown.index[:5])
            message = f"Column {encoding.column!r} has values that were not fitted ({names}) in {len(unknown):,} rows."
            notes.append(Note("unknown categories", message, len(unknown), (encoding.column,), rows))
    return notes


def _about_modes(modes: NDArray[np.str_], scored: BoolArray, plan: ModePlan) -> list[Note]:
    if not plan.separates:
        return []
    names, counts = np.unique(modes, return_counts=True)
    counted_rows = ", ".join(f"{name} {count:,}" for name, count in zip(names, counts, strict=True))
    notes = [Note("modes", f"Rows by operating mode: {counted_rows}.", len(names))]
    unused = [f"{name} ({rule})" for name, rule in plan.rules if name not in names]
    if unused:
        word = "mode" if len(unused) == 1 else "modes"
        notes.append(
            Note("empty modes", f"No row is of the {word} {', '.join(unused)}. Is the rule right?", len(unused))
        )
    out = int((~scored).sum())
    if out:
        why = {UNKNOWN: "the reading that decides the mode is missing", CHANGING: "the mode was changing"}
        named = [str(name) for name in names if not scored[modes == name].any()]
        kinds = ", ".join(f"{name} ({why[name]})" if name in why else name for name in named)
        notes.append(Note("modes not scored", f"{out:,} rows were not scored: {kinds}.", out, changed=True))
    return notes


def rows_note(kind: str, rows: NDArray[Any], table: Table, what: str) -> Note:
    first = [int(row) for row in table.values.index[rows[:5]]]
    word = "row" if len(rows) == 1 else "rows"
    more = " …" if len(rows) > 5 else ""
    message = f"{len(rows):,} {word} {what}: {', '.join(map(str, first))}{more} (counted from 0)."
    return Note(kind, message, len(rows), rows=tuple(first), changed=True)


def read_units(units: Any, names: Sequence[str], of_table: Mapping[str, str] | None = None) -> dict[str, str]:
    """Return the unit of each input: as given, from a line below the header, or from its name ("flow [m³/s]").

    What stands for no unit in a table of units is "".
    """
    given = {**(of_table or {}), **unit_table(units)}
    found = {name: given.get(name, split_unit(name)[1]).strip() for name in names}
    return {name: "" if unit in ("1", "-", "–", "—") else unit for name, unit in found.items()}


def unit_table(units: Any) -> dict[str, str]:
    """Return units by name, from a mapping, a table with the columns name and unit, or a CSV file of these."""
    if units is None:
        return {}
    if isinstance(units, Mapping):
        return {str(name): "" if pd.isna(unit) else str(unit) for name, unit in units.items()}
    frame = units if isinstance(units, pd.DataFrame) else _read_unit_file(units)
    folded = {str(column).strip().lower(): column for column in frame.columns}
    name = next((folded[word] for word in ("name", "variable", "column", "tag") if word in folded), None)
    if name is None or "unit" not in folded:
        raise TableError(f"A table of units needs the columns 'name' and 'unit'; it has {', '.join(map(str, frame))}.")
    return unit_table(dict(zip(frame[name], frame[folded["unit"]], strict=True)))


def _read_unit_file(path: Any) -> pd.DataFrame:
    """Read a local file; pandas is not given the path, as it would also fetch an address."""
    if isinstance(path, str | os.PathLike) and not Path(path).is_file():
        raise TableError(f"There is no file {path!s:.200}.")
    try:
        with Path(path).open("rb") as file:
            return pd.read_csv(file, dtype=str, keep_default_na=False, encoding="utf-8-sig")
    except Exception as error:  # pandas raises many kinds for a file that is no table
        raise TableError(f"The units cannot be read from {path!s:.200}: {str(error)[:200]}.") from None


def refuse_read_already(source: Any, options: FitOptions | ScoreOptions) -> None:
    """Raise if options of reading are given for a table that is read already."""
    named = [name for name in _given(options) if name != "strict"]
    if isinstance(source, Table) and named:
        raise TableError(f"{source.source} is read already, so {named[0]} has no meaning here. Give it to read_table.")


def _given(options: FitOptions | ScoreOptions) -> dict[str, Any]:
    """Return the parameters of `read_table` that differ from their defaults, but for the choice of columns."""
    read = {each.name: (getattr(options, each.name), each.default) for each in fields(SourceOptions)}
    given = {name: value for name, (value, default) in read.items() if value is not default}
    if options.max_bytes is not None:
        check_whole_number("max_bytes", options.max_bytes, least=1)
    if options.decimal not in (None, ".", ","):
        raise ParameterError("decimal", f" must be . or ,; got {options.decimal!r:.100}.")
    with errors_name("timezone"):
        as_zone(options.timezone)
    AlignOptions.of(options.step, options.hold)
    for name in ("step", "hold"):
        if name in given:  # as text, which is how model files keep it
            value = given[name]
            given[name] = value if isinstance(value, str) else f"{pd.Timedelta(value) / pd.Timedelta('1ms')} ms"
    if not isinstance(options.time, str | None):
        times = tuple(options.time)
        given["time"] = times[0] if len(times) == 1 else times
    if "names" in given:
        given["names"] = as_names(options.names)
    if "missing" in given:  # as texts, which is how model files keep them; texts of numbers count as numbers
        codes = options.missing
        given["missing"] = tuple(map(str, [codes] if isinstance(codes, str | float | int) else codes))
    return given
