"""What the page shows of a project, as plain documents: what was understood, what was found, what has changed."""

from __future__ import annotations

import hashlib
import pickle
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from typing import Any

import numpy as np
import pandas as pd

from penstock._messages import duration_in_words, spelled_by
from penstock._types import BoolArray, FloatArray
from penstock.columns import ColumnReport, check_columns
from penstock.detection import NO_LONGER_FITS, DataSummary, Failure, Findings, rows_of_period
from penstock.explain import FAULT, SENSOR_DEFECT, Label
from penstock.io import Table, read_table
from penstock.options import FitOptions, described
from penstock.project.compare import units_of
from penstock.project.folder import file_key, flag_of
from penstock.report import incident_records, plain

_SPARK = 48  # points of the small curve of a tag
_MOST_EVENTS = 100
_MOST_UNITS = 100
_MOST_KEPT = 4  # fits: one of each operating mode
_KNOWN = {name: option for name, _, option in described(FitOptions)}


class Kept:
    """Read, check and fit once: what `look`, `detect` and `fit_model` do the same as before is not done again.

    What people say of incidents changes no row that is fitted to, so that scoring again need not fit again.

    Examples
    --------
    >>> from penstock import NMF
    >>> kept, rows = Kept(), np.random.default_rng(0).random((20, 3))
    >>> for detector in (NMF(2), NMF(2), NMF(1)):
    ...     kept.fit(detector, rows)
    >>> kept.fits, len(detector.scores_)
    (2, 20)
    """

    def __init__(self) -> None:
        self.table: Table | None = None
        self.reads = self.fits = 0
        self._read: Any = None  # what the table was read from, and how
        self._checked: dict[bytes, Sequence[ColumnReport]] = {}
        self._fitted: dict[bytes, tuple[dict[str, Any], list[Warning | str]]] = {}

    def options(self) -> dict[str, Any]:
        """Return the options of `look`, `detect` and `fit_model` that use what is kept."""
        return {"reader": self.read, "checker": self.check, "fit_rows": self.fit}

    def read(self, source: Any, **given: Any) -> Table:
        """Return the table of a source, as `penstock.io.read_table`; only the last one is kept."""
        names = [source] if isinstance(source, str) else source
        key = repr(given), [(each, file_key(each)) for each in names]
        if self.table is None or key != self._read:
            self.table = None  # so that two are not in memory
            self.table, self._read = read_table(source, **given), key
            self._checked.clear()
            self.reads += 1
        return self.table

    def check(self, table: Table, fitted: BoolArray) -> Sequence[ColumnReport]:
        """Return what is said of columns of the table that was read: some of its rows and columns."""
        digest = hashlib.blake2b(repr((list(table.values.columns), table.in_time, table.spans)).encode())
        digest.update(table.values.index.to_numpy().tobytes())
        digest.update(fitted.tobytes())
        found: Sequence[ColumnReport] = _kept(self._checked, digest.digest(), lambda: check_columns(table, fitted))
        return found

    def fit(self, detector: Any, rows: FloatArray, **order: Any) -> None:
        """Fit a detector to rows, or give it what was fitted to the same before, with the same warnings."""

        def fitted() -> tuple[dict[str, Any], list[Warning | str]]:
            with warnings.catch_warnings(record=True) as caught:
                warnings.simplefilter("always")
                detector.fit(rows, **order)
            self.fits += 1
            return dict(vars(detector)), [each.message for each in caught]

        digest = hashlib.blake2b(np.ascontiguousarray(rows).data)
        digest.update(pickle.dumps((type(detector), rows.shape, detector.get_params(), order)))
        found, said = _kept(self._fitted, digest.digest(), fitted)
        vars(detector).update(found)
        for message in said:
            warnings.warn(message, stacklevel=2)


def _kept(known: dict[bytes, Any], key: bytes, made: Callable[[], Any]) -> Any:
    """Return what is known of a key, or is made; the oldest goes."""
    if key not in known:
        while len(known) >= _MOST_KEPT:
            known.pop(next(iter(known)))
        known[key] = made()
    return known[key]


class Cures:
    """Inside `noting`, messages write options as the command line does, and each is kept: what a button can change.

    Examples
    --------
    >>> cures = Cures()
    >>> from penstock._messages import option
    >>> with cures.noting():
    ...     message = f"The day may be first: {option('day_first', True)}."
    >>> message, cures.of(message)
    ('The day may be first: --day-first.', [{'text': '--day-first', 'name': 'day_first', 'value': True}])
    """

    def __init__(self) -> None:
        self._known: dict[str, tuple[str, Any]] = {}

    @contextmanager
    def noting(self) -> Iterator[None]:
        """Write options in messages, and keep those with a value."""
        with spelled_by(self._spell):
            yield

    def _spell(self, name: str, value: object) -> str:
        if name not in _KNOWN:
            return f"--{name.replace('_', '-')}" + ("" if value is None or isinstance(value, bool) else f" {value}")
        flag = flag_of(_KNOWN[name], off=value is False)
        text = flag if value is None or isinstance(value, bool) else f"{flag} {value}"
        if value is not None:
            self._known[text] = (name, value)
        return text

    def of(self, message: str) -> list[dict[str, Any]]:
        """Return the options that a message proposes."""
        found = [(text, *what) for text, what in self._known.items() if text in message]
        return [{"text": text, "name": name, "value": plain(value)} for text, name, value in found]


def error_document(error: BaseException, cures: Cures) -> dict[str, Any]:
    """Return an error that a user can put right, as the command line says it."""
    message = str(error)
    if isinstance(error, OSError) and error.strerror:
        message = f"{error.filename or ''}: {error.strerror}."
    if isinstance(error, MemoryError):
        message = "There is not enough memory. Read fewer rows or columns."
    parameter = getattr(error, "parameter", None)
    if isinstance(parameter, str) and message.startswith(parameter) and parameter in _KNOWN:
        message = f"{flag_of(_KNOWN[parameter])}{message.removeprefix(parameter)}"
    return {"message": message, "cures": cures.of(message)}


def look_document(data: DataSummary, table: Table, cures: Cures) -> dict[str, Any]:
    """Return what was understood, with a small curve of each tag."""
    time = data.time
    return {
        "source": data.source,
        "rows": data.rows,
        "doubts": [{"message": each.message, "cures": cures.of(each.message)} for each in data.doubts],
        "time": None if time is None else {**plain(asdict(time)), "step_in_words": duration_in_words(time.step)},
        "tags": [{**plain(asdict(tag)), "curve": _curve(table, tag.name)} for tag in data.tags],
        "plan": list(data.plan),
        "notes": [each.message for each in data.other_notes],
        "sisters": units_of(table)[:_MOST_UNITS],
    }


def _curve(table: Table, name: str) -> list[list[float | None]]:
    """Return the lowest and the highest reading of a tag in parts of equal length; nothing for texts."""
    if name not in table.values or not pd.api.types.is_numeric_dtype(table.values[name]) or not len(table.values):
        return []
    values = table.values[name].to_numpy(dtype=np.float64)
    first = np.unique(np.linspace(0, len(values), min(_SPARK, len(values)), endpoint=False).astype(np.intp))
    low, high = np.fmin.reduceat(values, first), np.fmax.reduceat(values, first)
    return [[plain(float(a)), plain(float(b))] for a, b in zip(low, high, strict=True)]


def findings_document(findings: Findings, labels: Sequence[Label], before: Mapping[str, Any] | None) -> dict[str, Any]:
    """Return what was found, the most severe first; `before` is the document that it takes the place of."""
    incidents = sorted(incident_records(findings), key=lambda each: each["rank"])
    for each in incidents:
        said = _label_of(each, labels)
        each["label"] = None if said is None else label_document(said)
    has_events = not incidents and findings.verdict.kind != "nothing"  # of methods that know no causes
    events = findings.events.reset_index().sort_values("rank").head(_MOST_EVENTS) if has_events else None
    known = findings.assessment.agreement
    return {
        "verdict": plain(asdict(findings.verdict)),
        "incidents": incidents,
        "events": [] if events is None else plain(events),
        "warnings": [note.message for note in findings.notes if note.kind == NO_LONGER_FITS],
        "failures": None if known is None else _failures(findings),
        "changed": [] if before is None else what_changed(before["incidents"], incidents),
    }


def label_document(label: Label) -> dict[str, Any]:
    """Return what the page shows of what people said."""
    return {name: getattr(label, name) for name in ("id", "reason", "comment", "who")}


def _label_of(incident: Mapping[str, Any], labels: Sequence[Label]) -> Label | None:
    """Return what people said of this very incident: the label whose period it shares most of."""
    start, end = (_seconds(incident[name]) for name in ("start", "end"))
    shared = [(min(end, each.until) - max(start, each.since), each.at, each) for each in labels]
    return max((each for each in shared if each[0] >= 0), key=lambda each: each[:2], default=(0, 0, None))[2]


def _seconds(moment: Any) -> float:
    return pd.Timestamp(moment).timestamp() if isinstance(moment, str) else float(moment)


def _failures(findings: Findings) -> dict[str, Any]:
    known = findings.assessment.agreement
    assert known is not None
    return {"logged": len(known.faults), "scored": known.n_scored_faults, "found": known.n_found,
            "list": plain(known.faults.reset_index())}  # fmt: skip


def what_changed(before: Sequence[Mapping[str, Any]], after: Sequence[Mapping[str, Any]]) -> list[str]:
    """Return in words how incidents differ from those of the run before.

    >>> one = {"incident": 1, "start": 0, "end": 5, "known": ""}
    >>> what_changed([one], [{**one, "known": "rare but normal"}, {"incident": 2, "start": 8, "end": 9, "known": ""}])
    ['Incident 1 is now known (rare but normal).', '1 new: incident 2.']
    """
    pairs = [(each, next((old for old in before if not _apart(each, old)), None)) for each in after]
    said = [
        f"Incident {each['incident']} is now known ({each['known']})."
        for each, old in pairs
        if old is not None and each["known"] and not old["known"]
    ]
    new = [each["incident"] for each, old in pairs if old is None]
    gone = [old for old in before if all(_apart(each, old) for each in after)]
    if new:
        said.append(f"{len(new)} new: {'incident' if len(new) == 1 else 'incidents'} {', '.join(map(str, new))}.")
    if gone:
        dates = ", ".join(str(old["start"]).replace("T", " ") for old in gone[:5])
        said.append(f"{len(gone)} no longer there, of {dates}{' …' if len(gone) > 5 else ''}.")
    return said or ["The same incidents as before."]


def _apart(one: Mapping[str, Any], other: Mapping[str, Any]) -> bool:
    return any(_seconds(a["end"]) < _seconds(b["start"]) for a, b in ((one, other), (other, one)))


def known_periods(labels: Sequence[Label], failures: Sequence[Failure], table: Table) -> list[tuple[float, float]]:
    """Return the periods that people called a fault or a defect, and those of a log of failures, in seconds."""
    marks = [(each.since, each.until) for each in labels if each.reason in (FAULT, SENSOR_DEFECT)]
    if table.time is None:
        return marks
    for each in failures:
        times = table.time[rows_of_period(table, (each.start, each.end))]
        marks += [(times[0].timestamp(), times[-1].timestamp())] if len(times) else []
    return marks
