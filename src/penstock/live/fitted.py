"""Score the rows of a stream with a model of `penstock fit` or a saved detector.

The model stays as it is, except for `OnlineNSNMF`, which goes on learning; what changes with the stream is the
threshold, the operating mode and, for detectors that score series, the history of each mode. Rows are scored in turn:
batches of any size give the same verdicts.
"""

from __future__ import annotations

import copy
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import product
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from penstock._parameters import ParameterError
from penstock._types import BoolArray, FloatArray, IndexArray, StreamScores
from penstock.columns import RowRule
from penstock.detection import UNKNOWN, Model, ModePart, ModePlan, deviations, mode_name
from penstock.detectors import OnlineNSNMF, SeriesMonitor
from penstock.io import Aligning, Batch, InputError, Table, TableOptions, TimeReader, is_number, plain_alignment
from penstock.live.options import WatchOptions
from penstock.live.scorers import Verdicts, check_columns, with_names
from penstock.storage import Record
from penstock.thresholds import Contamination, Fixed, Threshold, pack_threshold, unpack_threshold


class FittedScorer:
    """Score rows with a fitted model; see `Scorer`.

    model : a Model, a detector, or a SeriesMonitor, which goes on from where it stands.
    threshold : None is the model's own: that of a saved detector, and `Model.threshold_of("auto")` of a `Model`; of a
        detector that scores series it is `threshold_of` its contamination, as its `threshold_` is for single rows. A
        number is a share of normal rows. A `Threshold` starts from the training scores and follows the stream.
    origin : digest of the model file; a snapshot belongs to the same file.
    variable_names : the inputs of the model, by which verdicts name variables.
    """

    warmup = 0

    def __init__(self, model: Any, threshold: Contamination | None = None, origin: str | None = None) -> None:
        begun = model if isinstance(model, SeriesMonitor) else None
        if begun is not None:
            model = begun.detector
        self._bare = not isinstance(model, Model)
        self._model: Model = Model.of_detector(model) if self._bare else model
        self._origin, self._asked = origin, threshold
        self._parts = self._model.parts
        self._learns = isinstance(self._parts[0].detector, OnlineNSNMF)
        if self._learns:
            self._parts = copy.deepcopy(self._parts)
        self._threshold = self._first_threshold(model, threshold)
        self._series: dict[str, _Series] = {}
        if self._model.can.over_time:
            self._series = {part.mode: _Series(part.detector.monitor()) for part in self._parts}
        if begun is not None:
            self._series[self._parts[0].mode].monitor.restore(begun.state())
        self._modes = _ModeFollower(self._model.modes, frozenset(part.mode for part in self._parts))
        zone = self._model.reading.timezone
        self._stamps = TimeReader(zoned=True, zone=None if zone is None else str(zone))
        self._kinds = _column_kinds(self._model)
        self._codes = np.array([float(code) for code in self._model.reading.missing if is_number(code)])
        inputs = self._model.inputs
        self.variable_names = inputs.names
        self.labels = self._model.labels
        roles = [inputs.role_of(name) for name in inputs.names]
        self._states = {place: role.in_words for place, role in enumerate(roles) if role.levels}

    def _first_threshold(self, model: Any, threshold: Contamination | None) -> Threshold | None:
        """Return the threshold for the first row; None: that of the detectors, which learn."""
        if isinstance(threshold, Threshold):
            running = threshold.fresh()
            running.update_many(self._model.new_row_scores)
            return running
        if threshold is None and self._learns:
            return None
        if threshold is None and self._bare:
            is_series = self._model.can.over_time
            return Fixed(self._model.threshold_of(model.contamination) if is_series else float(model.threshold_))
        return Fixed(self._model.threshold_of("auto" if threshold is None else threshold))

    def table_options(self, options: TableOptions) -> TableOptions:
        if self._bare and not self.variable_names:
            return options
        reading = self._model.reading
        group = reading.group if self._series else None
        return replace(
            options,
            columns=tuple(name for name, kind in self._kinds.items() if kind == "number"),
            texts=tuple(name for name, kind in self._kinds.items() if kind == "text"),
            texts_if_there=() if group is None or group in self._kinds else (group,),
            time=options.time or (reading.time if isinstance(reading.time, str) else None),
            delimiter=options.delimiter or reading.separator,
            decimal=options.decimal or reading.decimal,
            encoding=options.encoding or reading.encoding,
            times=reading.time_options(options.times),
            missing=(*reading.missing, *(reading.words or ())),
            thousands=reading.thousands,
        )

    def aligning(self, options: WatchOptions) -> Aligning | None:
        """Return the clock of the model, if it was fitted to readings; else one of its usual step, for readings."""
        step, hold = options.step_and_hold
        reading, late = self._model.reading, options.seconds("late")
        known, missing = reading.alignment, (*reading.missing, *(reading.words or ()))
        texts = [name for name, kind in self._kinds.items() if kind == "text"]
        if known is not None:
            if step is not None or hold is not None:
                raise ParameterError("step", " cannot be changed: --model has a clock of its own.")
            tags = tuple(tag for tag in known.tags if tag.name in self._kinds)
            return Aligning(replace(known, tags=tags), texts, late, missing=missing, thousands=reading.thousands)
        usual = [series.monitor.detector.model_.clock.step for series in self._series.values()]
        if (step is None and not (usual and usual[0] > 0)) or not self._kinds:
            return None
        numbers = [name for name in self._kinds if name not in texts]
        clock = plain_alignment(usual[0] if step is None else step, hold, numbers, texts)
        return Aligning(clock, texts, late, always=step is not None, missing=missing, thousands=reading.thousands)

    def begin(self, names: tuple[str, ...]) -> None:
        if self._bare and not self.variable_names:
            check_columns(self._parts[0].detector, names)
            self.variable_names = names
            self._kinds = dict.fromkeys(names, "number")
        self._columns = {name: place for place, name in enumerate(names)}

    def settings(self) -> dict[str, Any]:
        return {"threshold": None if self._asked is None else repr(self._asked), "model": self._origin}

    def state(self) -> dict[str, Any]:
        return {
            "threshold": None if self._threshold is None else pack_threshold(self._threshold),
            "modes": self._modes.state(),
            "detectors": [part.detector._pack() for part in self._parts] if self._learns else None,
            "series": [series.state() for series in self._series.values()] or None,
        }

    def restore(self, state: dict[str, Any]) -> None:
        record = Record(state, "state").require_fields("threshold", "modes", "detectors", "series")
        if record.value("threshold") is not None:
            self._threshold = unpack_threshold(record.value("threshold"))
        self._modes.restore(record.part("modes"))
        if self._learns:
            for part, packed in zip(self._parts, record.value("detectors"), strict=True):
                part.detector._unpack(packed)
        for series, packed in zip(self._series.values(), record.value("series") or (), strict=True):
            series.restore(Record(packed, "series"))

    def score(self, batch: Batch, n_variables: int, *, strict: bool = False) -> Verdicts:
        """Score some rows; `n_variables` inputs are named for each row that is flagged.

        With `strict`, a row that the detector refuses is an error, and else a row without a score.
        """
        unknown: dict[tuple[str, str], int] = {}
        rows = self._inputs(batch, unknown)
        table = self._table(batch)
        modes, reasons = self._modes.follow(table, self._without_time(batch))
        for place in np.flatnonzero(np.isnan(rows).all(axis=1)).tolist():
            reasons.setdefault(place, "the row has no reading")
        n, k = len(rows), min(n_variables, rows.shape[1])
        found = StreamScores(
            np.full(n, np.nan), np.full(n, np.nan), np.zeros(n, dtype=np.bool_),
            np.full((n, k), -1, dtype=np.intp), np.full((n, k), np.nan),
        )  # fmt: skip
        groups = self._groups(batch) if self._series else None
        deviations = np.full(rows.shape, np.nan)
        job = _Job(rows, table, batch.seconds, groups, np.zeros(rows.shape), deviations, found, reasons)
        scored = np.array([place not in reasons for place in range(n)], dtype=np.bool_)
        for part in self._parts:
            places = np.flatnonzero(scored & (modes == part.mode))
            if len(places):
                self._score_part(part, places, job, strict)
        if self._threshold is not None:
            found.thresholds[:], found.flags[:] = self._threshold.follow(found.scores)
        for part in self._parts if not self._learns else ():
            self._explain(part, np.flatnonzero(found.flags & (modes == part.mode)), job)
        evidence = job.evidence if self._parts[0].can.by_sensor else None
        names = None if groups is None else [str(group) for group in groups]
        chances = self._expected_in_a_day(found, modes)
        known = None if evidence is None else job.deviations
        return Verdicts(found, rows, reasons, unknown, {}, evidence, known, chances, names, self._states)

    def _expected_in_a_day(self, found: StreamScores, modes: NDArray[np.str_]) -> FloatArray | None:
        """Return how many episodes of at least the score of each flagged row normal data have in a day."""
        if not self._series or not found.flags.any():
            return None
        chances = np.full(len(modes), np.nan)
        for part in self._parts:
            step = part.detector.model_.clock.step
            places = np.flatnonzero(found.flags & (modes == part.mode))
            if step > 0 and len(places):
                days = 1000  # a day may be shorter than what is counted in
                expected = part.detector.expected_by_chance(found.scores[places], int(days * 86_400 / step))
                chances[places] = expected / days
        return chances

    def expected(self, batch: Batch) -> FloatArray | None:
        """Return what each input should have been in these rows; NaN in modes without a fit, None if unknown."""
        rows = self._inputs(batch, {})
        if self._learns or not self._parts[0].can.rebuilds:
            return None
        modes, found = self._modes.modes_of(self._table(batch)), np.full(rows.shape, np.nan)
        for part in self._parts:
            places = np.flatnonzero((modes == part.mode) & ~np.isnan(rows).all(axis=1))
            if len(places):
                found[places] = self._expected(part, rows[places])
        return found

    def _expected(self, part: ModePart, rows: FloatArray) -> FloatArray:
        """Return expected values as they are shown: within what each input can be."""
        found = part.expected(rows)
        return found if self._bare else self._model.inputs.plausible(found, self._model.units)

    def situations(self, batch: Batch, place: int) -> tuple[FloatArray, BoolArray, FloatArray]:
        rows, modes = self._inputs(batch, {}), self._modes.modes_of(self._table(batch))
        fitted = [part.reference for part in self._parts if part.mode == modes[place] and part.reference is not None]
        return rows, modes == modes[place], fitted[0] if fitted else np.empty((0, rows.shape[1]))

    def _score_part(self, part: ModePart, places: IndexArray, job: _Job, strict: bool) -> None:
        """Fill in the scores of the rows of one mode; one by one if the detector refuses a row."""
        try:
            self._take(part, places, job)
        except ValueError:
            for place in places.tolist():
                try:
                    self._take(part, np.array([place]), job)
                except ValueError as error:
                    job.reasons[place] = with_names(str(error), self.variable_names)
                    if strict:
                        raise InputError(f"A row cannot be scored: {job.reasons[place]} (--strict)") from None

    def _take(self, part: ModePart, places: IndexArray, job: _Job) -> None:
        rows, found = job.rows, job.found
        if self._series:
            found.scores[places] = self._series[part.mode].score(places, job)
            return
        if not self._learns:
            found.scores[places] = part.scores(rows[places])
            return
        scaling, k = part.scaled_before, found.variables.shape[1]
        values = rows[places] if scaling is None else scaling.apply(rows[places])
        result = part.detector.process(values, k)
        found.scores[places] = result.scores / part.usual
        found.variables[places] = result.variables
        span = np.ones(rows.shape[1]) if scaling is None else scaling.span
        found.residuals[places] = result.residuals * span[result.variables]
        if self._threshold is None:
            found.thresholds[places] = result.thresholds / part.usual
            found.flags[places] = result.flags

    def _explain(self, part: ModePart, places: IndexArray, job: _Job) -> None:
        """Name the inputs that stand out in rows of a mode: measured minus expected."""
        found, rows = job.found, job.rows[places]
        if not len(places) or not found.variables.shape[1]:
            return
        if part.can.by_sensor:
            residuals, weights = rows - self._expected(part, rows), job.evidence[places]
            job.deviations[places] = residuals
        else:
            residuals, weights = deviations(part, rows)
        weights = np.where(np.isnan(rows) | ~(weights > 0), -np.inf, weights)
        worst = np.argsort(-weights, axis=1, kind="stable")[:, : found.variables.shape[1]]
        named = np.take_along_axis(weights, worst, axis=1) > -np.inf
        found.variables[places] = np.where(named, worst, -1)
        found.residuals[places] = np.where(named, np.take_along_axis(residuals, worst, axis=1), np.nan)

    def _inputs(self, batch: Batch, unknown: dict[tuple[str, str], int]) -> FloatArray:
        """Return the inputs of the model, (n, p), and count texts that it does not know."""
        values = batch.values
        if len(self._codes):
            values = np.where(np.isin(values, self._codes), np.nan, values)
        if self._bare:
            return values[:, [self._columns[name] for name in self.variable_names]]
        inputs = self._model.inputs
        parts = [values[:, [self._columns[name] for name in inputs.as_they_are]]]
        for encoding in inputs.encoded:
            texts = pd.Series(self._texts(batch, encoding.column), dtype=object)
            for text in texts[texts.notna() & ~texts.isin(encoding.categories)]:
                unknown[encoding.column, text] = unknown.get((encoding.column, text), 0) + 1
            parts.append(encoding.apply(texts))
        return np.ascontiguousarray(np.hstack(parts))

    def _texts(self, batch: Batch, name: str) -> list[str | None]:
        """Return a text column; codes for missing values are None."""
        codes = self._model.reading.missing
        return [None if text in codes else text for text in batch.texts[name]]

    def _groups(self, batch: Batch) -> Sequence[Any] | None:
        """Return the group of each row, where the model was fitted with groups and the stream has them."""
        name = self._model.reading.group
        if name in self._columns:
            return [mode_name(value) for value in batch.values[:, self._columns[name]]]
        return [text or "" for text in batch.texts[name]] if name in batch.texts else None

    def _table(self, batch: Batch) -> Table:
        """Return the columns that the rules and the column of modes need, and times if they are needed."""
        modes = self._model.modes
        wanted = dict.fromkeys(
            [*([modes.column] if modes.column else []), *(c for _, r in modes.rules for c in r.columns)]
        )
        columns = {
            name: batch.values[:, self._columns[name]]
            if self._kinds[name] == "number"
            else np.array(self._texts(batch, name), dtype=object)
            for name in wanted
        }
        first = self._modes.rows
        frame = pd.DataFrame(columns, index=pd.RangeIndex(first, first + len(batch.values)))
        times = None
        if self._modes.needs_time:
            if batch.seconds is None:
                raise InputError(
                    "The model needs the time of each row (settling periods or rules), but there is none that can be "
                    "read. Name its column (--time)."
                )
            times = self._stamps.index(batch.seconds)
        return Table(frame, times, None, None, "the stream", ())

    def _without_time(self, batch: Batch) -> BoolArray:
        """Return which rows have no time, where the model needs it."""
        needed = self._modes.needs_time or any(series.has_clock for series in self._series.values())
        if batch.seconds is None or not needed:
            return np.zeros(len(batch.values), dtype=np.bool_)
        return np.isnan(batch.seconds)


@dataclass(frozen=True)
class _Job:
    """Rows (n, p) that are being scored, their modes' columns and groups, and what was found of them so far."""

    rows: FloatArray
    table: Table
    seconds: FloatArray | None
    groups: Sequence[Any] | None
    evidence: FloatArray
    deviations: FloatArray
    found: StreamScores
    reasons: dict[int, str]


@dataclass
class _Series:
    """The rows of one operating mode as a series: its monitor, and how many rows it has scored."""

    monitor: SeriesMonitor
    scored: int = 0

    @property
    def has_clock(self) -> bool:
        return self.monitor.detector.model_.clock.step > 0

    def state(self) -> dict[str, Any]:
        return {"scored": self.scored, "monitor": self.monitor.state()}

    def restore(self, record: Record) -> None:
        record.require_fields("scored", "monitor")
        self.scored = record.whole("scored", least=0)
        self.monitor.restore(record.value("monitor"))

    def score(self, places: IndexArray, job: _Job) -> FloatArray:
        """Score the next rows of this mode, at these places of a batch, and note their evidence.

        Where there is no time, the history begins anew after rows of other modes: their number is then part of the
        name of the run.
        """
        time = None
        runs: Any
        groups = None if job.groups is None else [job.groups[place] for place in places.tolist()]
        if job.seconds is not None and self.has_clock:
            time, runs = job.seconds[places], groups
        else:
            others = job.table.values.index.to_numpy()[places] - self.scored - np.arange(len(places))
            runs = others if groups is None else [f"{n} {group}" for n, group in zip(others, groups, strict=True)]
        found = self.monitor.update_many(np.ascontiguousarray(job.rows[places]), time=time, runs=runs)
        self.scored += len(places)
        if self.monitor.detector.scores_sensors:
            job.evidence[places] = found.evidence
        return found.scores


class _ModeFollower:
    """Follow the operating mode of a stream, row by row.

    A row is settling from the first row of a new mode on, for the duration (or the number of rows) of the plan. Unlike
    in a table, the last row before a change is scored: the change is not known yet when it comes.
    """

    def __init__(self, plan: ModePlan, fitted: frozenset[str]) -> None:
        self._plan, self._learnt = plan, fitted
        self.needs_time = isinstance(plan.settle, pd.Timedelta) or any(
            re.search(r"\btime\b", str(rule)) for _, rule in plan.rules
        )
        self.rows = 0
        self._last: str | None = None  # the mode of the last row whose mode is known
        self._settled: int | None = None  # the row number, or the time in ns, at which settling ends

    def state(self) -> dict[str, Any]:
        return {"rows": self.rows, "last": self._last, "settled": self._settled}

    def restore(self, record: Record) -> None:
        record.require_fields("rows", "last", "settled")
        self.rows = record.whole("rows", least=0)
        self._last = None if record.value("last") is None else record.text("last")
        self._settled = None if record.value("settled") is None else record.whole("settled", least=-(2**63))

    def follow(self, table: Table, without_time: BoolArray) -> tuple[NDArray[np.str_], dict[int, str]]:
        """Return the mode of each row, and the reason for each row that is not to be scored."""
        plan, reasons = self._plan, dict[int, str]()
        modes = self.modes_of(table)
        numbers = np.arange(self.rows, self.rows + len(modes))
        places = numbers if table.time is None else table.time.as_unit("ns").asi8
        self.rows += len(modes)
        in_time = isinstance(plan.settle, pd.Timedelta)
        for position, (mode, place) in enumerate(zip(modes.tolist(), places.tolist(), strict=True)):
            if mode == UNKNOWN:
                reasons[position] = "a reading that decides on the mode is missing"
            elif without_time[position]:
                reasons[position] = "the time is missing"
            else:
                settling = self._is_settling(mode, place if in_time else int(numbers[position]))
                if mode in plan.skip:
                    reasons[position] = f"mode {mode} is not to be scored"
                elif mode not in self._learnt:
                    reasons[position] = f"mode {mode} was not there in fitting"
                elif settling:
                    reasons[position] = f"mode {mode} is settling"
        return modes, reasons

    def modes_of(self, table: Table) -> NDArray[np.str_]:
        if self._plan.column is None:
            return ModePlan(rules=self._plan.rules).assign(table)
        return np.array([UNKNOWN if pd.isna(value) else mode_name(value) for value in table.values[self._plan.column]])

    def _is_settling(self, mode: str, place: int) -> bool:
        """Return whether a row at this place, a row number or a time in ns, is in a settling period."""
        settle = self._plan.settle
        if settle is None:
            return False
        if self._last not in (None, mode):
            end = place + (settle if isinstance(settle, int) else settle.value)
            self._settled = end if self._settled is None else max(self._settled, end)
        self._last = mode
        return self._settled is not None and place < self._settled


def _column_kinds(model: Model) -> dict[str, str]:
    """Return which columns a stream must have for this model, and whether each is read as "number" or "text"."""
    inputs, plan = model.inputs, model.modes
    kinds = dict.fromkeys(inputs.as_they_are, "number") | {encoding.column: "text" for encoding in inputs.encoded}
    if plan.column is not None and plan.column not in kinds:
        numbers = all(is_number(part.mode) and mode_name(float(part.mode)) == part.mode for part in model.parts)
        kinds[plan.column] = "number" if numbers else "text"
    for _, rule in plan.rules:
        kinds |= _kinds_in_rule(rule, kinds)
    return kinds


def _kinds_in_rule(rule: RowRule, known: dict[str, str]) -> dict[str, str]:
    """Return the kinds of a rule's columns that are no inputs: those with which the rule has a meaning."""
    dtypes: dict[str, Any] = {"number": np.float64, "text": object}
    others = [name for name in rule.columns if name not in known]
    for kinds in product(("number", "text"), repeat=len(others)):
        found = known | dict(zip(others, kinds, strict=True))
        frame = pd.DataFrame({name: pd.Series(dtype=dtypes[found[name]]) for name in rule.columns})
        try:
            rule.truth(Table(frame, pd.DatetimeIndex([], tz="UTC"), None, None, "the stream", ()))
        except ParameterError:
            continue
        return found
    raise InputError(f"The model has a rule for its modes that cannot be applied to a stream: {rule}.")
