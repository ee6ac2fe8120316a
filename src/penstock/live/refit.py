"""Learn again without what people marked, and compare the old model with the new one on the labelled history."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

from sklearn.base import clone

from penstock.detection import LEARNT, Model, fit_model
from penstock.io import AlignedSource, AnySource, InputError, RowSource, TableOptions, open_feed
from penstock.live.alarm_files import ROW_SECONDS, AlarmClock
from penstock.live.alarms import ALARM, Alarm, AlarmBook, Change, Event
from penstock.live.feedback import FALSE_ALARM, REAL_DEFECT, SENSOR_DEFECT, Feedback, Label, excluded_periods
from penstock.live.fitted import FittedScorer
from penstock.live.options import AlarmRules, WatchOptions

_MOST_LINES = 1 << 14
_N_VARIABLES = 3


@dataclass(frozen=True)
class History:
    """What a model says of a record, with the labels of people in effect.

    alarms : each as it was in the end.
    days : from the first row to the last.
    defects, false_alarms : the labels in the record; found, again : how many of them have an alarm.
    unlabelled : alarms in no labelled period.
    """

    alarms: list[Alarm]
    days: float
    defects: list[Label]
    false_alarms: list[Label]
    found: int
    again: int
    unlabelled: int

    @property
    def per_day(self) -> float:
        """Alarms per day; all of them in a record shorter than a day."""
        return len(self.alarms) / max(self.days, 1.0)


@dataclass(frozen=True)
class Record:
    """The rows of a record in seconds, the clock that shows them, and the events of alarms."""

    seconds: list[float]
    clock: AlarmClock
    events: list[Event]


def watch_record(model: Model, path: Path, labels: Sequence[Label], rules: AlarmRules, asset: str) -> Record:
    """Score a file row by row as `penstock watch` does, with the labels in effect."""
    scorer = FittedScorer(model)
    options = scorer.table_options(TableOptions())
    aligning = scorer.aligning(WatchOptions())
    rows = RowSource(open_feed(path, follow=False), options if aligning is None else aligning.options(options))
    source: AnySource = rows if aligning is None else AlignedSource(rows, aligning)
    book, clock, feedback = AlarmBook(rules), AlarmClock(), Feedback(labels)
    seconds: list[float] = []
    events: list[Event] = []
    begun = False
    try:
        while not source.ended:
            batch = source.next_batch(_MOST_LINES)
            if batch is not None and len(batch.lines):
                found = scorer.score(batch, _N_VARIABLES)
                clock.reader = clock.reader or source.reader
                times = clock.seconds(batch.seconds, len(seconds) + 1, len(batch.lines))
                seconds += times
                verdicts = found.for_alarms(asset, times, scorer.variable_names)
                events += book.update(map(feedback.apply, verdicts))
            if not begun and source.columns is not None:
                scorer.begin(source.columns.variable_names)
                begun = True
    finally:
        source.close()
    if not seconds:
        raise InputError(f"{path}: there is no row that could be read.")
    return Record(seconds, clock, events)


def judge_history(record: Record, labels: Iterable[Label]) -> History:
    """Compare the alarms of a record with what people said."""
    first, last = min(record.seconds), max(record.seconds)
    mine = [each for each in labels if each.holds and each.until >= first and each.since <= last]
    newest = {
        each.alarm.id: each.alarm for each in record.events if isinstance(each, Change) and each.alarm is not None
    }
    alarms = [alarm for alarm in newest.values() if alarm.about == ALARM]
    defects = [label for label in mine if label.reason in (REAL_DEFECT, SENSOR_DEFECT)]
    false_alarms = [label for label in mine if label.reason == FALSE_ALARM]
    return History(
        alarms,
        (last - first) / 86_400,
        defects,
        false_alarms,
        sum(any(_overlap(alarm, label) for alarm in alarms) for label in defects),
        sum(any(_overlap(alarm, label) for alarm in alarms) for label in false_alarms),
        sum(not any(_overlap(alarm, label) for label in mine) for alarm in alarms),
    )


def _overlap(alarm: Alarm, label: Label) -> bool:
    return alarm.asset == label.asset and alarm.since <= label.until and alarm.last >= label.since


def labels_for(labels: Iterable[Label], asset: str) -> list[Label]:
    """Return the labels of an asset, or of the groups in one."""
    return [label for label in labels if label.asset == asset or label.asset.startswith(f"{asset}/")]


def fit_again(
    model: Model, path: Path, labels: Iterable[Label], record: Record, progress: Callable[[str], None]
) -> Model:
    """Fit a model as this one was, to a file without the periods that people marked.

    `record` is of the same file, by any model: it says when rows are. `progress` gets what is being done.
    """
    periods = [_as_period(since, until, record) for since, until in excluded_periods(labels)]
    names = [each.name for each in fields(model.reading) if each.name not in LEARNT]
    reading = {name: getattr(model.reading, name) for name in names}
    encoded = dict.fromkeys(encoding.column for encoding in model.inputs.encoded)
    modes: Any = model.modes.column or {name: str(rule) for name, rule in model.modes.rules}
    given = {
        **reading,
        "columns": (*model.inputs.as_they_are, *encoded),
        "exclude": (),
        "exclude_periods": [period for period in periods if period is not None],
        "method": clone(model.parts[0].detector),
        "modes": modes or (),
        "skip_modes": model.modes.skip,
        "settle": model.modes.settle,
    }
    return fit_model(path, **given, progress=progress)


def _as_period(since: float, until: float, record: Record) -> str | None:
    """Return a period as the reader of tables takes it; None if no row is in it."""
    rows = [place for place, time in enumerate(record.seconds) if since <= time <= until]
    if not rows:
        return None
    if record.clock.text(since) is None:
        if record.clock.counts_rows:
            return f"{round(since / ROW_SECONDS) - 1}..{round(until / ROW_SECONDS) - 1}"
        return f"{rows[0]}..{rows[-1]}"
    ends = (record.seconds[rows[0]], record.seconds[rows[-1]])
    return "..".join(str(record.clock.text(end)) for end in ends)
