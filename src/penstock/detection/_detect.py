"""Carry out the whole job, a table in and findings out, and its two halves: fit once, score often."""

from __future__ import annotations

import logging
import os
import platform
from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

import penstock
from penstock._messages import option
from penstock._parameters import ParameterError
from penstock._types import BoolArray, IndexArray
from penstock.columns import RowRule, give_roles, parse_rule, read_roles
from penstock.detection._assembling import make_findings
from penstock.detection._parts import Abilities
from penstock.detection._periods import (
    UsedRows,
    check_moment,
    read_duration,
    read_periods,
    shown,
    shown_names,
    shown_periods,
    training_rows,
)
from penstock.detection._preparing import (
    Prepared,
    Progress,
    ReadSettings,
    check_table,
    choose_columns,
    input_columns,
    prepare,
    read_units,
    refuse_read_already,
    unit_table,
)
from penstock.detection._scoring import Selection
from penstock.detection.data import DataSummary
from penstock.detection.findings import Findings
from penstock.detection.model import Model, fit_parts
from penstock.detection.modes import check_modes, columns_of, plan_modes
from penstock.explain import Label, Truth, excluded_periods, read_labels
from penstock.io import Note, Table, TableError
from penstock.options import (
    DetectOptions,
    FitOptions,
    LookOptions,
    ScoreOptions,
    SelectionOptions,
    as_names,
    errors_name,
    keyword_options,
    read_options,
)
from penstock.registry import AUTO, DEFAULT_METHOD, PAPERS_METHOD, SERIES_METHOD, make_detector

_LOGGER = logging.getLogger("penstock.detect")
_FEWEST_IN_TIME = 50  # rows
_MOST_EQUAL = 0.1  # of the time stamps
_LIBRARIES = ("numpy", "scipy", "scikit-learn", "numba", "pandas")


@dataclass(frozen=True, eq=False)
class FitPlan:
    """The options of `look`, `fit_model` or `detect`, checked and converted once, before a table is read."""

    options: FitOptions
    reading: ReadSettings
    units: dict[str, str]
    settle: pd.Timedelta | int | None
    train_rule: RowRule | None
    detector: Any  # of the method "auto": the one for rows that are not in order of time
    used: UsedRows
    roles: dict[str, str]
    train_periods: tuple[tuple[Any, Any], ...]
    known: tuple[Label, ...]
    selection: Selection  # of findings; only `detect` uses it

    @classmethod
    def of(cls, options: LookOptions | FitOptions) -> FitPlan:
        """Check all that can be checked without a table; an error has the name of its `parameter`."""
        if not isinstance(options, FitOptions):
            options = FitOptions(**{each.name: getattr(options, each.name) for each in fields(options)})
        if sum((options.train_until is not None, options.train_rule is not None, bool(options.train_periods))) > 1:
            ways = [option(name) for name in ("train_until", "train_rule", "train_periods")]
            message = f"Give only one of {ways[0]}, {ways[1]} and {ways[2]}."
            raise TableError(message, "train_until" if options.train_until is not None else "train_periods")
        check_moment("train_until", options.train_until)
        settle = read_duration("settle", options.settle)
        check_modes(options.modes, as_names(options.skip_modes), settle)
        with errors_name("train_rule"):
            train_rule = None if options.train_rule is None else parse_rule(options.train_rule)
        with errors_name("units"):
            units = unit_table(options.units)
        seed = options.random_state
        if isinstance(options.method, str) and isinstance(seed, int) and not 0 <= seed < 2**32:
            raise ParameterError("random_state", f" must be a whole number from 0 to 4294967295; got {seed}.")
        train_periods = read_periods("train_periods", options.train_periods)
        new_only = options.train_until is not None or options.train_rule is not None or bool(train_periods)
        selection = options if isinstance(options, SelectionOptions) else SelectionOptions()
        return cls(
            options=options,
            reading=ReadSettings.of(options),
            units=units,
            settle=settle,
            train_rule=train_rule,
            detector=_make_detector(options, DEFAULT_METHOD if options.method == AUTO else options.method),
            used=UsedRows.of(options),
            roles=read_roles(options.roles),
            train_periods=train_periods,
            known=_read_labels(options.labels),
            selection=Selection.of(selection, new_only=new_only),
        )

    @property
    def progress(self) -> Progress:
        return self.options.progress or _LOGGER.info

    def using(self, progress: Progress | None, fit_rows: Any = None) -> FitPlan:
        """Return the plan with other ways to report stages and to fit, which need no check."""
        return replace(self, options=replace(self.options, progress=progress, fit_rows=fit_rows))

    def look(self, source: Any) -> DataSummary:
        """Carry out `penstock.look`."""
        return self._prepare(source, this_table_only=True)[0].data

    def fit(self, source: Any) -> Model:
        """Carry out `penstock.fit_model`."""
        return self._fit(source)[0]

    def detect(self, source: Any) -> Findings:
        """Carry out `penstock.detect`."""
        model, prepared, fitted = self._fit(source, this_table_only=True)
        settings = dict(model.settings) | self.selection.described()
        return make_findings(model, prepared, fitted, self.selection, settings, self.progress)

    def _prepare(self, source: Any, *, this_table_only: bool) -> tuple[Prepared, Any, BoolArray]:
        """Return the table with its inputs and modes, the detector for it, and which rows are fitted to.

        this_table_only : no rows but those of this table will be scored, so that its constants never move.
        """
        options, progress = self.options, self.progress
        refuse_read_already(source, options)
        keep = as_names(options.keep)
        extra, also = columns_of(options.modes)
        if self.train_rule is not None:
            extra += self.train_rule.columns
            also += self.train_rule.perhaps_columns
        also += [name for name in extra if name == self.reading.group]
        reading = self.reading.with_columns(extra)
        read = reading.read(source, progress, also=also, reader=options.reader)
        table, truth, excluded, left_out = self.used.take(read)
        modes = plan_modes(options.modes, table.names, skip=as_names(options.skip_modes), settle=self.settle)
        modes = modes.resolved(table)
        modes.refuse_unknown_skips(table)
        candidates = self.reading.candidates(table, without={str(modes.column)} - set(keep))
        good = training_rows(table, options.train_until, self.train_rule, self.train_periods) & ~excluded
        if self.selection.new_only or not this_table_only:
            good = _without_known_faults(good, table, self.known)
        if excluded.any():
            candidates = candidates.only(~excluded)
        checks = check_table(candidates, progress, good[~excluded], options.checker)
        detector, chosen = self._choose_detector(table)
        can = Abilities.of(detector)
        checks = give_roles(checks, candidates, self.roles, as_names(options.drivers), recognise=can.takes_drivers)
        inputs, notes = choose_columns(
            candidates,
            checks,
            keep,
            strict=self.reading.strict,
            labels=self.reading.columns is not None,
            constants=not this_table_only and can.keeps_constants,
            drivers=can.takes_drivers,
            fitted=good[~excluded],
        )
        units = read_units(self.units, [*table.names, *inputs.names], table.units)
        prepared = prepare(table, checks, inputs, modes, [*left_out, *notes, *chosen], excluded, truth, units)
        return prepared, detector, prepared.scorable & good

    def _choose_detector(self, table: Table) -> tuple[Any, list[Note]]:
        """Return the detector that was asked for, or of "auto" the one for this table, and a note that says why."""
        options = self.options
        if options.method != AUTO:
            if options.ordered and not Abilities.of(self.detector).over_time:
                message = "ordered says that rows are in order of time, but this method scores rows one by one."
                raise TableError(f"{message} Leave it out, or take method sensors.", "ordered")
            return self.detector, []
        reason = _no_series(options, table)
        if reason:
            message = f"Rows are scored one by one (method {DEFAULT_METHOD}): {reason}."
            return self.detector, [Note("method", message, 1)]
        message = (
            f"Sensors are scored by each other over time (method {SERIES_METHOD}), as the rows are in order of time. "
            f"--method {DEFAULT_METHOD} scores rows one by one, --method {PAPERS_METHOD} is the paper's NS-NMF."
        )
        return _make_detector(options, SERIES_METHOD), [Note("method", message, 1)]

    def _fit(self, source: Any, *, this_table_only: bool = False) -> tuple[Model, Prepared, dict[str, IndexArray]]:
        """Return the model, the table, and the training rows of each mode; see `_prepare`."""
        options = self.options
        prepared, detector, trained = self._prepare(source, this_table_only=this_table_only)
        table, inputs = prepared.table, prepared.inputs
        named = isinstance(options.method, str) and (options.parameters or {}).get("n_components") is None
        parts, fitted, warned = fit_parts(prepared, trained, detector, options.fit_rows, self.progress)
        notes = [*prepared.notes, *warned, *_about_inputs(detector, len(inputs.names), named)]
        if self.selection.new_only or not this_table_only:
            notes += _about_fitted_faults(prepared.truth, trained)
        training = "all rows" if options.train_until is None else f"until {options.train_until}"
        if self.train_rule is not None:
            training = f"rows where {self.train_rule}"
        training = shown_periods(self.train_periods) or training
        settings = {
            "source": table.source,
            "rows": len(table.values),
            "inputs": len(inputs.names),
            "detector": " ".join(repr(detector).split()),
            **self.reading.described(),
            "keep": shown_names(as_names(options.keep)),
            "roles": shown_names(tuple(f"{name}={role}" for name, role in self.roles.items())),
            "drivers": shown_names(as_names(options.drivers)),
            "modes": str(prepared.plan) or None,
            "settle": shown(self.settle),
            "training": training,
            "fitted until": None if table.time is None else str(table.time[trained].max()),
            **self.used.described(),
            "random_state": shown(options.random_state),
            "penstock": penstock.__version__,
            "python": platform.python_version(),
            **{name: version(name) for name in _LIBRARIES},
        }
        units = {name: prepared.units[name] for name in inputs.names}
        reading = replace(self.reading, time_reader=table.time_reader, alignment=table.alignment, words=table.words)
        model = Model(reading, inputs, prepared.plan, parts, units, settings, tuple(notes)).with_labels(self.known)
        return model, replace(prepared, notes=model.notes), fitted


@dataclass(frozen=True, eq=False)
class ScorePlan:
    """The options of `score`, checked and converted once, before a table is read."""

    options: ScoreOptions
    selection: Selection
    used: UsedRows

    @classmethod
    def of(cls, options: ScoreOptions) -> ScorePlan:
        """Check all that can be checked without a table; an error has the name of its `parameter`."""
        return cls(options, Selection.of(options), UsedRows.of(options))

    def score(self, model: Model, source: Any, progress: Progress | None = None) -> Findings:
        """Carry out `penstock.score`."""
        options = self.options
        refuse_read_already(source, options)
        progress = progress or options.progress or _LOGGER.info
        how = model.reading.for_new_data(options)
        needed = options.group is not None
        read = how.read(source, progress, fewest_rows=1, group_needed=needed, reader=options.reader)
        table, truth, excluded, notes = self.used.take(read)
        checks = check_table(input_columns(model.inputs, table), progress)
        prepared = prepare(table, checks, model.inputs, model.modes, notes, excluded, truth, model.units)
        before = replace(model.reading, columns=None, exclude=()).described()  # the inputs stay what they were
        settings = {name: value for name, value in model.settings.items() if name not in before} | {
            "source": table.source,
            "rows": len(table.values),
            "fitted to": model.settings.get("source"),
            **how.described(),
            **self.used.described(),
            **self.selection.described(),
        }
        return make_findings(model, prepared, None, self.selection, settings, progress)


def _read_labels(given: Any) -> tuple[Label, ...]:
    """Return the labels of a file, or as they are given, that hold; of one incident the newest, without assets."""
    if given is None:
        return ()
    try:
        read = read_labels(Path(given)) if isinstance(given, str | os.PathLike) else given
    except (OSError, ValueError) as error:
        said = error.strerror if isinstance(error, OSError) else str(error)
        raise TableError(f"labels: {said}", "labels") from None
    return tuple({each.subject: replace(each, asset="") for each in read if each.holds}.values())


def _without_known_faults(good: BoolArray, table: Table, labels: Sequence[Label]) -> BoolArray:
    """Return the rows to learn from without those that people called a fault, a defect or maintenance."""
    found = good.copy()
    for since, until in excluded_periods(labels):
        seconds = table.values.index.to_numpy() if table.time is None else table.time.as_unit("us").asi8 / 1e6
        found &= (seconds < since) | (seconds > until)
    if good.any() and not found.any():
        raise TableError("There is nothing to learn from: all good rows are in periods that labels call a fault.")
    return found


def _make_detector(options: FitOptions, method: Any) -> Any:
    """Make the detector of a method; an error has the name of its `parameter`."""
    with errors_name("method"):
        detector = make_detector(method, options.random_state, **(options.parameters or {}))
    if isinstance(method, str):
        detector.check_parameters()
    return detector


def _no_series(options: FitOptions, table: Table) -> str:
    """Return why a table is not scored as a series; "" if it is."""
    n = len(table.values)
    if options.parameters and any(value is not None for value in options.parameters.values()):
        return "parameters of a method are given"
    if table.time is None:
        return "" if options.ordered else "there is no time column (--ordered says that rows are in order of time)"
    if n < _FEWEST_IN_TIME:
        return f"{n:,} rows are too few to be a series"
    stamps = table.time.asi8
    equal = sum(int((np.diff(stamps[span]) == 0).sum()) for span in table.spans)
    if equal > _MOST_EQUAL * n:
        return (
            f"{equal / n:.0%} of the rows share their time stamp with the row before, so that they are not one series "
            f"(--group separates several)"
        )
    return ""


def _about_fitted_faults(truth: Truth | None, trained: BoolArray) -> list[Note]:
    """Return a note on known faults among the rows that others are to be scored by."""
    count = 0 if truth is None else int((truth.faults & trained).sum())
    if not count:
        return []
    message = (
        f"Known faults among the {int(trained.sum()):,} rows fitted to: {count:,}. Rows like these will not stand "
        f"out; learn from good rows (--train-until, --train-rule)."
    )
    return [Note("faults fitted", message, count)]


def _about_inputs(detector: Any, p: int, named: bool) -> list[Note]:
    """Return what follows from there being few inputs; `named`: the number of groups is the default of the method."""
    groups = getattr(detector, "n_components", 0)
    if p == 1 and groups:
        message = (
            "There is one input alone. A factorisation can then say little: high values stand out, low ones do not. "
            "Method knn compares values instead."
        )
        return [Note("one input", message, 1)]
    half = (p + 1) // 2
    if not named or groups <= half:
        return []
    message = (
        f"There are {groups} latent groups for {p} inputs. So many can rebuild nearly any row, and little stands out: "
        f"try fewer (--components {half})."
    )
    return [Note("groups", message, groups)]


@keyword_options(LookOptions)
def look(source: Any, **given: Any) -> DataSummary:
    """Say what is understood of a table before anything is scored: the first part of `detect`.

    Use it first on a new export: it reads as `detect` would, says how the time was read, what each tag is, what would
    be left out, and above all what was read without confidence (`doubts`). It fits nothing.

    Parameters
    ----------
    source : as in `detect`
        A path, a folder, a table, …
    time, columns, exclude, keep, roles, drivers, units, ordered, strict : as in `detect`
        Columns.
    label, fault_values, unknown_values, failures, group, since, until, exclude_periods : as in `detect`
        Rows, and what is known of them.
    reader, checker : as in `detect`
    timezone, day_first, time_format, names, separator, decimal, thousands, missing : as in `detect`
        How the text is written.
    encoding, sheet, query, max_bytes, step, hold : as in `detect`
        Files, and the clock that tags are put on.
    progress : callable, optional
        Called with the name of each stage that begins. None: the logger "penstock.detect" gets it at level INFO.

    Returns
    -------
    DataSummary
        Plain data; `penstock look` prints it.

    Raises
    ------
    penstock.io.TableError
        (a ValueError) if the table cannot be used, as `detect` would.

    Examples
    --------
    >>> import penstock
    >>> rows = {"time": [f"0{day}/02/2024" for day in range(1, 8)], "flow [m³/s]": [3.0, 2.5, 2.0, 2.2, 2.4, 2.9, 3.3]}
    >>> data = penstock.look(rows)
    >>> data.time.how, data.tags[0].unit, data.tags[0].role
    ('dates with the day first', 'm³/s', 'sensor')
    >>> print(data.doubts[0])
    Dates in column 'time' were read with the day first, as the order of the rows suggests, though the month could be first; day_first=False changes it.
    """  # noqa: E501
    return FitPlan.of(read_options(LookOptions, given)).look(source)


@keyword_options(DetectOptions)
def detect(source: Any, **given: Any) -> Findings:
    """Find what is anomalous in a table, when, what belongs together, and which variables are behind it.

    Parameters
    ----------
    source : path, folder, list of paths, a pandas, polars or NumPy table, or a `penstock.io.Table`
        As `penstock.io.read_table` takes it.
    time, columns, exclude, label, group, strict : as in `penstock.io.read_table`
        Of `read_table`. The label is never an input; findings are compared with it. No event spans two groups (runs,
        units, machines). `strict` refuses instead of changing, leaving out or encoding anything.
    keep : names
        Columns of numbers that are inputs even if the check of the columns would leave them out, and columns that look
        like a label, which are no inputs unless they are named here or in `columns`.
    roles : mapping, "column=role", or several of these
        What columns are to the plant, where that is not what their values say: "sensor", "state" (on or off, few
        levels), "setting", "driver", "counter", "quality" or "label"; see `penstock.columns.ColumnReport`.
    drivers : names
        Columns that explain others, such as inflow, level or weather, and are never scored nor named. A method that
        cannot use them so leaves them out. The method sensors also takes columns for drivers that are named like the
        weather, the inflow, the grid or a set point, and a note says which; `roles` changes it.
    fault_values, unknown_values : value or values
        Of the label, those that mean a fault, and those of rows of which nothing is known, which are scored but not
        counted. With `fault_values` all others are normal; without, see `penstock.explain.known_faults`.
    failures : path, or (start, end, text) of each, optional
        A log of known failures, a CSV file with these columns: findings are compared with it, as with a label.
    since, until : time, or row number (from 0) of a table without time
        Use no other rows. Both ends are included; of a day or a month, all of it.
    exclude_periods : "START..END", or several of these, or of pairs
        Periods, such as maintenance, that are neither fitted to nor scored. Times or row numbers as for `since`.
    units : mapping, DataFrame or path, optional
        The unit of each variable (columns name and unit), for explanations; else from names such as "flow [m³/s]".
    method : name or detector
        "auto" is "sensors", `penstock.SensorDetector`, for rows in order of time (a time column, or `ordered`), and
        "detector", `penstock.Detector`, for others; a note says which and why. "nsnmf" is the paper's NS-NMF, with the
        parameters of `penstock.NSNMF()`; the others are `penstock.detection.METHODS`; or any detector of penstock, not
        fitted.
    ordered : bool
        Whether the rows of a table without time stamps are in order of time, evenly spaced.
    parameters : mapping, optional
        Parameters for a method given by name; those left out have the defaults of its class.
    modes : column, rule, "name: rule", several of these, or a mapping of names to rules
        Operating modes, each of which is scored by a model of its own: "power > 5", "state". A column whose values are
        the modes is no input (unless in `keep`), as it never changes within one. At most 50 rules, or 20 values.
    skip_modes : names
        Modes that are not scored. Rows for which no rule holds are of the mode "other".
    settle : duration or number of rows, optional
        Leave out the rows around a change of mode: the last one before it, and of the new mode the first so many rows,
        or those less than this after its first row.
    train_until, train_rule : time, or row number of a table without time; rule
        A period that is known to be good. It alone is fitted to, and findings are among the other rows. Of a day or a
        month without a time, all of it. Rules compare also `time` and `row`, the row number.
    train_periods : "START..END", or several of these, or of pairs
        The same, as periods; given as `exclude_periods`.
    labels : path or labels, optional
        What people said of incidents (`penstock label`, a project): those like them are listed as known, and what was
        called a fault, a defect or maintenance is not fitted to where other rows are known to be good.
    top : int, optional
        The number of findings. If neither this nor a threshold is given: of a series, rows so high that chance would
        show at most one such episode in this period (or in that fitted to, if longer); else 100 rows, the paper's list,
        but at most a twentieth of all, and with a training period the threshold "auto".
    threshold : "auto", share of rows or `penstock.thresholds.Threshold`, optional
        As `contamination` of the detectors; fitted to the training rows. For "detector" with a training period, a
        share is that of normal rows, so the rate of false alarms (`Detector.set_false_alarm_rate`); n training rows
        cannot show rates below 1/(n + 1), which are extrapolated.
    gap : duration or number of rows, optional
        Findings at most so far apart are one event; six times the usual time step if None.
    most_explained : int, optional
        How many events, the most severe, are explained. None: 100, of a long table fewer, but at least 20. 0: none, nor
        is the model described, which saves time where only scores count. `explain` explains further ones.
    random_state : int
        The same seed gives the same findings.
    fit_rows : callable, optional
        How a detector is fitted, called with it and its training rows; by default its own `fit`. `penstock.scale.fit`
        fits on a cluster.
    reader : callable, optional
        How a source is read, called with the arguments of `penstock.io.read_table`, which is the default. A cache of
        tables goes here.
    checker : callable, optional
        How columns are checked, called with a table and its rows to learn from, as `penstock.columns.check_columns`.
    progress : callable, optional
        Called with the name of each stage that begins. None: the logger "penstock.detect" gets it at level INFO.
    timezone, day_first, time_format, names, separator, decimal, thousands : as in `penstock.io.read_table`
        How the text is written; found if not given.
    missing, encoding, sheet, query, max_bytes : as in `penstock.io.read_table`
        Further codes for missing values, and how much is read.
    step, hold : as in `penstock.io.read_table`
        The one clock on which tags with times of their own are put, and how long a reading stands.

    Returns
    -------
    Findings
        Complete: `findings.to_html(path)` and other formats only show it.

    Raises
    ------
    penstock.io.TableError
        (a ValueError) if the table cannot be used; the message says what is wrong, where, and what to do.

    Examples
    --------
    >>> import numpy as np, pandas as pd
    >>> rng = np.random.default_rng(0)
    >>> load = 50 + 10 * np.sin(np.arange(600) / 50)
    >>> plant = pd.DataFrame({"load [MW]": load, "bearing [°C]": 30 + load / 2, "flow [m³/s]": load / 5})
    >>> plant += rng.normal(scale=0.2, size=plant.shape)
    >>> plant.iloc[300:304, 1] += 12
    >>> plant.insert(0, "time", pd.date_range("2024-05-01", periods=600, freq="10min"))
    >>> findings = detect(plant)
    >>> findings.verdict.sentence
    '1 incident stands out, near certain; fewer than 0.05 would be expected by chance in 4.16 days.'
    >>> findings.incident_table[["start", "first_sensor"]].iloc[0].astype(str).tolist()
    ['2024-05-03 02:00:00', 'bearing [°C]']
    >>> why = findings.explain(1).variables.iloc[0]
    >>> why["variable"], why["unit"], why["direction"]
    ('bearing [°C]', '°C', 'above')
    """
    return FitPlan.of(read_options(DetectOptions, given)).detect(source)


@keyword_options(FitOptions)
def fit_model(source: Any, **given: Any) -> Model:
    """Fit a table, to score other tables later: the first half of `detect`.

    Parameters
    ----------
    source : as in `detect`
        The training data.
    time, columns, exclude, keep, roles, drivers, label, fault_values, unknown_values, group, strict : as in `detect`
        Columns.
    since, until, exclude_periods, train_until, train_rule, train_periods, modes, skip_modes, settle : as in `detect`
        Rows.
    labels, failures, reader, checker : as in `detect`
        What is known of rows: known faults are not fitted to.
    timezone, day_first, time_format, names, separator, decimal, thousands, missing : as in `detect`
        How the text is written.
    encoding, sheet, query, max_bytes, units, step, hold : as in `detect`
        Files, and the clock that tags are put on, which the model keeps for new data.
    method, ordered, parameters, random_state, fit_rows, progress : as in `detect`
        The detector, and how it is fitted.

    Returns
    -------
    Model
        For `score`, or `save` and `penstock.load`.

    Examples
    --------
    >>> import numpy as np, pandas as pd
    >>> rng = np.random.default_rng(0)
    >>> usual = pd.DataFrame(rng.normal(size=(300, 3)), columns=["a", "b", "c"])
    >>> model = fit_model(usual)
    >>> new = pd.DataFrame(rng.normal(size=(20, 3)), columns=["a", "b", "c"])
    >>> new.loc[7, "b"] = 40.0
    >>> score(model, new).top().index.tolist()
    [7]
    """
    return FitPlan.of(read_options(FitOptions, given)).fit(source)


@keyword_options(ScoreOptions).after_two
def score(model: Model, source: Any, **given: Any) -> Findings:
    """Score a table by a model: the second half of `detect`.

    Parameters
    ----------
    model : Model
        Of `fit_model`, or `penstock.load`.
    source : as in `detect`
        New data with the columns that the model knows; one row is enough. It is read as the training data were.
    label : str, optional
        A column to compare the findings with; that of the training data is not looked for.
    group : str, optional
        The column of groups, if it is another than that of the training data. A table without that one is one group.
    fault_values, unknown_values, failures, since, until, exclude_periods : as in `detect`
        Those of the training data are not used.
    reader : as in `detect`
    top, threshold, gap, most_explained : as in `detect`
        By default findings are scores above the threshold "auto" of the training scores.
    strict : bool, optional
        As when the model was fitted if None.
    progress : callable, optional
        Called with the name of each stage that begins. None: the logger "penstock.detect" gets it at level INFO.
    time, timezone, day_first, time_format, names, separator, decimal, thousands : as in `detect`
        If the table is written otherwise than the training data.
    missing, encoding, sheet, query, max_bytes, step, hold : as in `detect`
        Likewise. A model of tags that were put on one clock has it, and refuses another.

    Returns
    -------
    Findings

    Examples
    --------
    >>> import numpy as np, pandas as pd
    >>> rng = np.random.default_rng(0)
    >>> model = fit_model(pd.DataFrame(rng.normal(size=(300, 3)), columns=["a", "b", "c"]), method="knn")
    >>> findings = score(model, pd.DataFrame({"a": [0.0], "b": [0.1], "c": [30.0]}))
    >>> findings.flags.tolist(), findings.explain(1).variables["variable"].iloc[0]
    ([True], 'c')
    """
    return ScorePlan.of(read_options(ScoreOptions, given)).score(model, source)
