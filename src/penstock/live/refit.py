"""Fit a model again without what people marked and what no one explained, and compare old and new on later rows.

The last part of the record is held out: the new model is not fitted to it, and both are compared there. Periods that
people called faults, defects or maintenance are left out of fitting, and so are alarms that no one has labelled: a
model that is fitted to an attack takes it for normal ever after.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from sklearn.base import clone

from penstock._parameters import ParameterError
from penstock.detection import FROM_DATA, Model, fit_model
from penstock.explain import FAULT, NORMAL, SENSOR_DEFECT, Label, excluded_periods, joined_periods
from penstock.io import AlignedSource, AnySource, Batch, InputError, RowSource, TableOptions, TimeReader, open_feed
from penstock.live.alarm_files import ROW_SECONDS, AlarmClock
from penstock.live.alarm_records import ALARM, Alarm, Change
from penstock.live.alarms import AlarmBook
from penstock.live.assets import batch_of
from penstock.live.fitted import FittedScorer
from penstock.live.options import AlarmRules, WatchOptions
from penstock.live.store import AssetRecord, Store

HOLD_OUT = 0.2  # of the rows, the last ones
_MOST_LINES = 1 << 14
_N_VARIABLES = 3
_FROM_TEXT = ("separator", "decimal", "thousands", "encoding", "sheet", "names", "time", "timezone", "day_first",
              "time_format", "max_bytes", "query", "step", "hold")  # fmt: skip


@dataclass(frozen=True)
class WatchedRecord:
    """The rows of a record in seconds, the clock that shows them, and the alarms of a model on them, as they ended."""

    seconds: list[float]
    clock: AlarmClock
    alarms: list[Alarm]

    @property
    def end(self) -> float:
        """The time of the last row."""
        return max(self.seconds)

    def period(self, since: float, until: float) -> tuple[Any, Any] | None:
        """Return the ends of a period as the reader of tables takes them; None if no row is in it."""
        rows = [place for place, time in enumerate(self.seconds) if since <= time <= until]
        if not rows:
            return None
        if self.clock.text(since) is None:
            if self.clock.counts_rows:
                return round(since / ROW_SECONDS) - 1, round(until / ROW_SECONDS) - 1
            return rows[0], rows[-1]
        first, last = (self.clock.text(self.seconds[row]) for row in (rows[0], rows[-1]))
        return first, last


class TableRows:
    """Rows of a file, scored as `penstock watch` does."""

    def __init__(self, path: Path) -> None:
        self.path, self.source = path, path

    def batches(self, scorer: FittedScorer, clock: AlarmClock) -> Iterator[Batch]:
        """Yield the rows, after the scorer knows their columns."""
        options = scorer.table_options(TableOptions())
        aligning = scorer.aligning(WatchOptions())
        rows = RowSource(open_feed(self.path, follow=False), options if aligning is None else aligning.options(options))
        source: AnySource = rows if aligning is None else AlignedSource(rows, aligning)
        begun = False
        try:
            while not source.ended:
                batch = source.next_batch(_MOST_LINES)
                clock.reader = clock.reader or source.reader
                if not begun and source.columns is not None:
                    scorer.begin(source.columns.variable_names)
                    begun = True
                if batch is not None and len(batch.lines):
                    yield batch
        finally:
            source.close()

    def reading(self, model: Model) -> dict[str, Any]:
        """Return the options with which the file is read for fitting."""
        return {
            each.name: getattr(model.reading, each.name) for each in fields(model.reading) if each.name not in FROM_DATA
        }


class StoredRows:
    """Rows of an asset of a live service, as far as they are kept and have the columns of the version in use.

    They may have been scored by other versions.
    """

    def __init__(self, store: Store, record: AssetRecord, model: Model) -> None:
        columns = record.columns or ()
        known = {version: each.columns or () for version, each in store.models(record.id).items()}
        blocks = []
        for block in store.rows(record.id, with_readings=True):
            there = known[block.version]
            if block.values is not None and columns and set(columns) <= set(there):
                values = block.values[:, [there.index(name) for name in columns]]
                blocks.append(replace(block, values=values))
        if not blocks:
            raise InputError(f"{store.path} has no readings of {record.name} with the columns of its model.")
        self._columns, self._blocks = columns, blocks
        zone = model.reading.timezone
        reader = TimeReader(zoned=True, zone=None if zone is None else str(zone))
        frame = pd.DataFrame(
            np.vstack([block.values for block in blocks if block.values is not None]), columns=list(columns)
        )
        for name in blocks[0].texts:
            frame[name] = [text for block in blocks for text in block.texts[name]]
        frame.insert(0, "time", reader.index(np.concatenate([block.seconds for block in blocks])))
        self.source, self.path, self._reader = frame, store.path, reader

    def batches(self, scorer: FittedScorer, clock: AlarmClock) -> Iterator[Batch]:
        """Yield the rows, after the scorer knows their columns."""
        scorer.begin(self._columns)
        clock.reader = self._reader
        yield from map(batch_of, self._blocks)

    def reading(self, model: Model) -> dict[str, Any]:
        """Return the options with which the table is taken for fitting: it is read already."""
        names = [each.name for each in fields(model.reading) if each.name not in (*FROM_DATA, *_FROM_TEXT)]
        return {"time": "time", **{name: getattr(model.reading, name) for name in names}}


AnyRows = TableRows | StoredRows


def watch_record(model: Model, rows: AnyRows, labels: Sequence[Label], rules: AlarmRules, asset: str) -> WatchedRecord:
    """Score rows one by one, with the labels in effect."""
    scorer, book, clock = FittedScorer(model), AlarmBook(rules), AlarmClock()
    book.set_labels([*labels, *(replace(each, asset=asset) for each in model.labels)])
    seconds: list[float] = []
    newest: dict[str, Alarm] = {}
    for batch in rows.batches(scorer, clock):
        found = scorer.score(batch, _N_VARIABLES)
        times = clock.seconds(batch.seconds, len(seconds) + 1, len(batch.lines))
        seconds += times
        for event in book.update(found.for_alarms(asset, times, scorer.variable_names)):
            if isinstance(event, Change) and event.alarm is not None and event.alarm.about == ALARM:
                newest[event.alarm.id] = event.alarm
    if not seconds:
        raise InputError(f"{rows.path}: there is no row that could be read.")
    newest |= {alarm.id: alarm for alarm in book.alarms() if alarm.id in newest}
    return WatchedRecord(seconds, clock, list(newest.values()))


@dataclass(frozen=True)
class Tally:
    """What a model says of the rows that are held out, and of the faults that people labelled.

    alarms, known : in the rows held out, and how many of them are recognised as rare but normal.
    days : of the rows held out.
    faults, found : labelled ones in rows that the new model was not fitted to, and how many of them have an alarm.
    """

    alarms: int
    known: int
    days: float
    faults: int
    found: int

    @property
    def per_day(self) -> float:
        """Alarms per day that are not known; all of them in less than a day."""
        return (self.alarms - self.known) / max(self.days, 1.0)


@dataclass(frozen=True)
class Refit:
    """A new model, and what speaks for it.

    model : fitted as the old one was, with the labels.
    old, new : both on rows that the new one was not fitted to.
    held_out : from when on.
    unlabelled : alarms of the old model in no labelled period.
    fits_unlabelled : whether these were fitted to.
    old_knows : whether the old model was fitted to a part of what is held out; None if that is not known.
    clock : shows the times.
    """

    model: Model
    old: Tally
    new: Tally
    held_out: float
    unlabelled: list[Alarm]
    fits_unlabelled: bool
    old_knows: bool | None
    clock: AlarmClock


def refit(
    model: Model,
    rows: AnyRows,
    labels: Iterable[Label],
    asset: str,
    *,
    rules: AlarmRules | None = None,
    hold_out: float = HOLD_OUT,
    fit_unlabelled: bool = False,
    progress: Callable[[str], None] = lambda _: None,
) -> Refit:
    """Fit a model again as it was fitted, and compare both on the last rows, which the new one was not fitted to.

    labels : of this asset; what a model keeps besides is kept.
    hold_out : share of the rows.
    fit_unlabelled : also fit to alarms of the old model that no one has labelled.
    """
    if not 0 < hold_out < 1:
        raise ParameterError("hold_out", f" must be a share of the rows above 0 and below 1; got {hold_out}.")
    said, rules = [label for label in labels if label.holds and label.is_about(asset)], rules or AlarmRules()
    progress(f"scoring {rows.path} with the old model")
    before = watch_record(model, rows, said, rules, asset)
    held_out = float(np.sort(before.seconds)[int(len(before.seconds) * (1 - hold_out))])
    unlabelled = [alarm for alarm in before.alarms if not any(_overlap(alarm, label) for label in said)]
    unlabelled = [alarm for alarm in unlabelled if alarm.known_as != NORMAL]
    periods = [*excluded_periods(said), (held_out, before.end)]
    periods += [] if fit_unlabelled else [(alarm.since, _end(alarm)) for alarm in unlabelled]
    new = _fit_again(model, rows, joined_periods(periods), before, progress)
    kept = [replace(each, asset="") for each in said if each.reason in (NORMAL, FAULT, SENSOR_DEFECT) and each.pattern]
    new = replace(new, labels=model.labels).with_labels(kept)
    progress(f"scoring {rows.path} with the new model")
    after = watch_record(new, rows, said, rules, asset)
    old_knows = _knows(model, held_out)
    old, now = (_tally(record, said, held_out) for record in (before, after))
    return Refit(new, old, now, held_out, unlabelled, fit_unlabelled, old_knows, before.clock)


def _tally(record: WatchedRecord, labels: Sequence[Label], held_out: float) -> Tally:
    later = [alarm for alarm in record.alarms if _end(alarm) >= held_out]
    faults = [each for each in labels if each.reason in (FAULT, SENSOR_DEFECT) and each.until >= min(record.seconds)]
    faults = [each for each in faults if each.since <= record.end]
    found = sum(any(_overlap(alarm, label) for alarm in record.alarms) for label in faults)
    known = sum(alarm.known_as == NORMAL for alarm in later)
    return Tally(len(later), known, (record.end - held_out) / 86_400, len(faults), found)


def _knows(model: Model, held_out: float) -> bool | None:
    """Return whether a model was fitted to rows after a time; None if it does not say until when."""
    until = model.settings.get("fitted until")
    return None if until is None else bool(pd.Timestamp(str(until)).timestamp() > held_out)


def _end(alarm: Alarm) -> float:
    return alarm.last if alarm.ended is None else alarm.ended


def _overlap(alarm: Alarm, label: Label) -> bool:
    return label.is_about(alarm.asset) and alarm.since <= label.until and alarm.last >= label.since


def _fit_again(
    model: Model,
    rows: AnyRows,
    left_out: Iterable[tuple[float, float]],
    record: WatchedRecord,
    progress: Callable[[str], None],
) -> Model:
    """Fit a model as this one was, without some periods; it reads new data as this one does."""
    periods = [record.period(since, until) for since, until in left_out]
    encoded = dict.fromkeys(encoding.column for encoding in model.inputs.encoded)
    modes: Any = model.modes.column or {name: str(rule) for name, rule in model.modes.rules}
    given = {
        **rows.reading(model),
        "columns": (*model.inputs.as_they_are, *encoded),
        "exclude": (),
        "exclude_periods": [period for period in periods if period is not None],
        "method": clone(model.parts[0].detector),
        "modes": modes or (),
        "skip_modes": model.modes.skip,
        "settle": model.modes.settle,
    }
    fitted = fit_model(rows.source, **given, progress=progress)
    return fitted if isinstance(rows, TableRows) else replace(fitted, reading=model.reading)
