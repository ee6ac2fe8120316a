"""The options of a job, checked once, and what is done with them: read, choose columns and method, fit, score.

Options come in; a plan carries out `look`, `fit_model` and `detect`, or `score`, for any number of tables.
"""

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
    FitOptions,
    LookOptions,
    ScoreOptions,
    SelectionOptions,
    as_names,
    errors_name,
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
        reading = replace(
            self.reading,
            time_reader=table.time_reader,
            alignment=table.alignment,
            words=table.words,
            thousands=self.reading.thousands or table.thousands,
        )
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
