"""What a live service would do, before there is one: the alarms of the past, and the first row of a source."""

from __future__ import annotations

import logging
import re
import tempfile
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from penstock._messages import counted, duration_in_words, listed
from penstock.detection import Model, ScorePlan
from penstock.explain import NORMAL
from penstock.io import Batch, InputError, Table, TableError, TableOptions
from penstock.live import WatchOptions
from penstock.live.alarm_records import ALARM, NO_DATA, Change
from penstock.live.alarms import AlarmBook
from penstock.live.connectors import MqttInput, as_lines, make_inputs
from penstock.live.options import AlarmRules, AssetOptions, ServeOptions
from penstock.live.runtime import Delivery
from penstock.live.scorers import Scorer, scorer_maker
from penstock.live.service import Service
from penstock.options import ScoreOptions
from penstock.report import plain

_DAY = 86_400.0  # seconds: an alarm so long before a fault is a warning of it
_ROWS = 2000  # scored at once
_PATIENCE = 20.0  # seconds for which a first row is waited for
_UNIT = "unit"
_CLASS = re.compile(r"^\w+(Error|Exception): (\[Errno -?\d+\] )?")  # of an error, which says nothing to users
_log = logging.getLogger("penstock.open")


def table_for_model(model: Path, source: str | list[str], options: ScoreOptions) -> Table:
    """Return a table as `penstock score` reads it for a model."""
    plan, how = ScorePlan.of(options), Model.load(model).reading.for_new_data(options)
    read = how.read(source, options.progress or _log.info, group_needed=options.group is not None)
    return plan.used.take(read)[0]


def past_alarms(
    table: Table, model: Path, rules: AlarmRules, marks: Sequence[tuple[float, float]] = ()
) -> dict[str, Any]:
    """Return what a live service with this model and these rules would have done with the rows of a table.

    The rows are scored one after the other, as `penstock watch` does it. Those of a table that was put on one clock are
    taken as they are in it.

    marks : the first and last second of what is known to be a fault.
    """
    if table.time is None:
        raise TableError("Alarms of the past need times; this table has none.")
    scorer, book, changes = scorer_maker(WatchOptions(model=model))(), AlarmBook(rules), list[Change]()
    book.set_labels(replace(each, asset=_UNIT) for each in scorer.labels)
    for batch in _batches(table, scorer):
        assert batch.seconds is not None
        found = scorer.score(batch, 3, strict=False)
        events = book.update(found.for_alarms(_UNIT, batch.seconds.tolist(), scorer.variable_names))
        changes += [event for event in events if isinstance(event, Change)]
    raised = [each.alarm for each in changes if each.kind == "raised" and each.alarm is not None]
    times = [alarm.since for alarm in raised if alarm.about == ALARM and alarm.known_as != NORMAL]
    hits = sum(any(since - _DAY <= at <= until for since, until in marks) for at in times)
    span = float((table.time.max() - table.time.min()).total_seconds())
    words = f"With these rules: {counted(len(times), 'alarm')} in {duration_in_words(span)}"
    words += f", {hits} of them on your marks." if marks else "."
    no_data = sum(alarm.about == NO_DATA for alarm in raised)
    if no_data:
        words += f" {no_data:,} times it would have said that rows are missing."
    index = pd.to_datetime(times, unit="s")
    if table.time.tz is not None:
        index = index.tz_localize("UTC").tz_convert(table.time.tz).tz_localize(None)
    return {"sentence": words, "alarms": index.floor("s").astype(str).tolist(), "on_marks": hits}


def _batches(table: Table, scorer: Scorer) -> list[Batch]:
    """Return the rows of a table in order of time, as a stream would bring them."""
    assert table.time is not None
    options = scorer.table_options(TableOptions())
    frame = table.values
    if table.group is not None:
        frame = frame.assign(**{str(table.group.name): table.group})
    texts = [*options.texts, *(name for name in options.texts_if_there if name in frame)]
    lacking = [name for name in (*options.columns, *texts) if name not in frame]
    if lacking:
        raise TableError(f"The model needs {listed(lacking)}, which {table.source} does not have.")
    order = np.argsort(table.time.asi8, kind="stable")
    frame = frame.iloc[order]
    seconds = table.time[order].as_unit("ns").asi8 / 1e9
    scorer.begin(options.columns)
    numbers = frame[list(options.columns)].apply(pd.to_numeric, errors="coerce").to_numpy(dtype=np.float64)
    words = {name: frame[name].astype(object).where(frame[name].notna(), None).tolist() for name in texts}
    parts = [slice(start, start + _ROWS) for start in range(0, len(frame), _ROWS)]
    return [
        Batch(
            numbers[part], range(len(numbers[part])), seconds[part].tolist(),
            texts={name: column[part] for name, column in words.items()}, seconds=seconds[part],
        )
        for part in parts
    ]  # fmt: skip


def first_row(options: AssetOptions, posted: bytes | None = None, seconds: float = _PATIENCE) -> dict[str, Any]:
    """Run a live service on a source until its first row, and return the row as it was understood.

    Nothing is kept, and what a broker has for others is left to them. InputError says why no row came.

    posted : a body as it would be posted over HTTP: JSON, or CSV with a header.

    Returns the time, as it is shown; readings, each with name and value; score, None if the row has none; reason, why.
    """
    if posted is None and not any((options.input, options.mqtt, options.kafka, options.opcua)):
        raise InputError("Rows are posted to this asset: give one as it would be posted.")
    with tempfile.TemporaryDirectory() as folder, _Said() as said:
        service = Service(ServeOptions(store=Path(folder) / "live.db", assets={_UNIT: options}))
        inputs = make_inputs(service)
        service.start()
        for each in inputs:
            each.start()
        try:
            if posted is not None:
                _post(service, posted, seconds)
            _wait_for_row(service, options, said, seconds)
            return _first_row(service)
        finally:
            for each in inputs:
                each.stop(seconds)
                if isinstance(each, MqttInput):
                    each.forget()
            service.stop(seconds)


class _Said(logging.Handler):
    """Collect what the service logs of rows that it cannot use."""

    def __init__(self) -> None:
        super().__init__(logging.WARNING)
        self.texts: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.texts.append(record.getMessage())

    def __enter__(self) -> _Said:
        logging.getLogger("penstock.serve").addHandler(self)
        return self

    def __exit__(self, *_: object) -> None:
        logging.getLogger("penstock.serve").removeHandler(self)


def _post(service: Service, body: bytes, seconds: float) -> None:
    kind = "json" if body.lstrip()[:1] in (b"{", b"[") else "lines"
    answer = service.deliver(Delivery(_UNIT, as_lines(body, kind), "test")).result(seconds)
    if answer["faults"] and not answer["accepted"]:
        raise InputError(f"The row cannot be used: {answer['faults'][0]['reason']}")


def _wait_for_row(service: Service, options: AssetOptions, said: _Said, seconds: float) -> None:
    """Return when a row is kept; InputError if something is wrong, or nothing came."""
    where = options.input or options.mqtt or options.kafka or options.opcua
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if next(service.store.rows(service.assets[_UNIT].record.id), None) is not None:
            return
        problems = [each.text for each in list(service.problems.values())]
        if problems or said.texts:
            text = (problems or said.texts)[0].removeprefix(f"{_UNIT}: ").partition(" It is ")[0]  # tried again later
            raise InputError(f"{where}: {_CLASS.sub('', text)}")
        time.sleep(0.05)
    if isinstance(where, Path) and not where.exists():
        raise InputError(f"There is no file {where} yet; the service would wait for it.")
    if isinstance(where, Path):
        raise InputError(f"{where} has no row yet: a header, and a row below it, are needed.")
    alone = "."
    if options.model is not None and Model.load(options.model).reading.alignment is not None:
        alone = ": readings are put on a clock, and a row is complete when its step is over."
    raise InputError(f"No row came from {where} within {duration_in_words(seconds)}{alone}")


def _first_row(service: Service) -> dict[str, Any]:
    record = service.assets[_UNIT].record
    row = next(service.store.rows(record.id, with_readings=True))
    values = [] if row.values is None else row.values[0].tolist()
    numbers = zip(record.columns or (), values, strict=False)
    texts = ((name, column[0]) for name, column in row.texts.items())
    moment = None if row.times is None else pd.Timestamp(row.seconds[0], unit="s").isoformat(timespec="seconds")
    return {
        "time": moment,
        "readings": [{"name": name, "value": plain(value)} for name, value in (*numbers, *texts)],
        "score": plain(float(row.scores.scores[0])),
        "reason": row.reasons.get(0, ""),
    }
