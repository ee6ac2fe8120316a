"""The one live runtime: assets in cycles. `Monitor` is that of one stream without a service, `Service` that of many.

An asset is a reader of rows, a model, alarms and a place in a store. In a cycle, what has come is read, scored and
passed to the alarms, and all that follows from it is written in one transaction. What was not committed has not
happened: it is read again.

Every model that an asset ever had is a version in the store, with its file. Verdicts and readings name the version
that they belong to, and the version names their sensors: they stay right whatever model comes after.
"""

from __future__ import annotations

import hashlib
import json
import logging
import tempfile
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable
from concurrent.futures import Future
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

from penstock._messages import listed
from penstock.explain import Label
from penstock.io import BadLine, Batch, TableOptions
from penstock.live.alarm_records import Event, RefusedError
from penstock.live.assets import Asset, Book, ScoredBatch, TextReading, known_labels
from penstock.live.options import WatchOptions
from penstock.live.scorers import Scorer, scorer_maker
from penstock.live.store import AssetRecord, ModelVersion, Store
from penstock.storage import StorageError

log = logging.getLogger("penstock.serve")
_LONGEST_TEXT = 10_000  # characters of a row that is kept
_LOOK_SECONDS = 1.0  # between looks for switches to other models


@dataclass
class Delivery:
    """Rows that a client or a connector brings for an asset; answered when they are committed.

    lines : CSV with a header, or JSON objects, one a line.
    source : name of the input, by which positions are kept.
    position : ("next", n): number n of this source, each one more than the one before; ("after", n): greater than the
        one before; ("digest", text): may come again, then as ("again", text). What came before is not counted again.
    layout : what `Asset.learn_layout` found out, or what was wrong.
    reading : how far it was read; None before.
    """

    asset: str
    lines: bytes
    source: str
    position: tuple[str, Any] | None = None
    layout: dict[str, Any] | Exception | None = None
    reading: TextReading | None = None
    future: Future[dict[str, Any]] = field(default_factory=Future)


@dataclass
class CycleTask:
    """Something that a person or a part of the runtime does, inside the transaction of a cycle.

    run : gets the time of the cycle; returns what the alarms say to it, and the answer.
    request : who asks and by which id, and what for: a request that comes again is not done again, but answered again.
    """

    run: Callable[[float], tuple[list[Event], Any]]
    request: tuple[str, str] | None = None
    future: Future[Any] = field(default_factory=Future)


@dataclass
class CycleWork:
    """What there is to do in a cycle: rows by asset, tasks, new positions of inputs, and answers.

    read : a batch that was delivered, or None and a batch of the file.
    quarantined : asset, source, text and reason of rows that cannot be scored.
    """

    read: dict[str, list[tuple[Delivery | None, Batch]]] = field(default_factory=dict)
    jobs: list[Delivery | CycleTask] = field(default_factory=list)
    positions: dict[tuple[str, str], Any] = field(default_factory=dict)
    answers: list[tuple[Future[Any], Any]] = field(default_factory=list)
    quarantined: list[tuple[str, str, str, str]] = field(default_factory=list)


@dataclass(frozen=True)
class BatchReport:
    """What came of a batch: where it is from, its malformed lines, how many rows were taken, and the last of them."""

    delivery: Delivery | None
    batch: Batch
    faults: list[BadLine]
    taken: int
    last_row: int


class ModelShelf:
    """Return what makes the scorers of the version in use, and of others; a model is read once."""

    def __init__(self) -> None:
        self._makers: dict[tuple[str, str], Callable[[], Scorer]] = {}
        self._configured: dict[Any, tuple[str, bytes | None]] = {}

    def configured(self, options: WatchOptions) -> tuple[str, bytes | None]:
        """Return digest and file of the model that options name, as they were when this was asked first.

        An error says what is wrong with that model, not with the store.
        """
        key = (options.model, repr(options.threshold))
        if key not in self._configured:
            make = scorer_maker(options)
            found: tuple[str, bytes | None]
            if options.model is None:
                settings = json.dumps(make().settings(), sort_keys=True)
                found = f"online {hashlib.sha256(settings.encode()).hexdigest()}", None
            else:
                data = Path(options.model).read_bytes()
                found = hashlib.sha256(data).hexdigest(), data
            self._makers[found[0], key[1]], self._configured[key] = make, found
        return self._configured[key]

    def make(self, options: WatchOptions) -> Callable[[], Scorer]:
        """Return what makes the scorers of the model that options name."""
        return self._makers[self.configured(options)[0], repr(options.threshold)]

    def open(self, store: Store, record: AssetRecord, options: WatchOptions) -> Callable[[], Scorer]:
        """Return what makes the scorers of an asset, inside a transaction.

        It is of the version in use, unless the configuration names another model than at the last start.
        """
        digest, data = self.configured(options)
        version, now = record.version, time.time()
        if not version or record.configured != digest:
            version = store.add_model(record.id, digest, data, str(options.model or ""), "penstock", now)
            record.configured = digest
            store.save_asset(record, with_state=False)
        mine = store.models(record.id)[version]
        if mine.digest != digest:
            where = f"version {version} is in use since a switch, not the one of the configuration"
            log.info("%s: %s", record.name, where)
        make = self.maker(store, mine, options)
        settings = make().settings()
        if version == record.version and settings == record.settings:
            return make
        if record.version:
            text = "%s: the model or its threshold has changed; version %d begins with row %d"
            log.warning(text, record.name, version, record.rows + 1)
            store.add_audit(now, "penstock", "new model", record.name, {"version": version, **settings})
        store.use_model(record, version, settings, now)
        return make

    def switch(
        self,
        store: Store,
        record: AssetRecord,
        options: WatchOptions,
        version: int,
        old: Scorer,
        *,
        other_columns: bool,
    ) -> Callable[[], Scorer]:
        """Put a version into use, inside a transaction, and return what makes its scorers.

        old : the scorer in use. A model of other columns than that has must be asked for by `other_columns`.
        """
        mine = store.models(record.id)
        if version not in mine:
            known = f"; there are 1 to {max(mine)}" if mine else ""
            raise RefusedError(f"{record.name} has no model version {version}{known}.", 409)
        if version == record.version:
            raise RefusedError(f"{record.name}: version {version} is in use already.", 409)
        make = self.maker(store, mine[version], options)
        scorer = make()
        gone, new = _columns(old), _columns(scorer)
        if set(gone) != set(new) and new and not other_columns:
            without = [name for name in gone if name not in new]
            besides = [name for name in new if name not in gone]
            parts = [f"without {listed(without)}"] * bool(without) + [f"with {listed(besides)}"] * bool(besides)
            text = f"Version {version} has other columns than version {record.version}: {' and '.join(parts)}. "
            text += "From the switch on, rows must bring its columns, and only these are kept; what is there stays. "
            raise RefusedError(f"{text}If that is meant, say so (--other-columns).", 409)
        store.use_model(record, version, scorer.settings(), time.time())
        return make

    def maker(self, store: Store, version: ModelVersion, options: WatchOptions) -> Callable[[], Scorer]:
        """Return what makes the scorers of a version."""
        key = (version.digest, repr(options.threshold))
        if key not in self._makers:
            if not version.source:
                raise StorageError(f"Version {version.version} learns from the rows with parameters of its own.")
            try:
                data = store.model_file(version.digest)
            except LookupError as error:
                raise StorageError(f"{error!s:.200} Add its file again.") from None
            with tempfile.TemporaryDirectory() as folder:
                file = Path(folder) / Path(version.source).name
                file.write_bytes(data)
                given: dict[str, Any] = dict.fromkeys(options.online_parameters())  # of a model without a file
                self._makers[key] = scorer_maker(replace(options, model=file, **given))
        return self._makers[key]


def add_file(store: Store, asset: str, file: Path, source: str, who: str, note: str = "") -> int:
    """Add a model to an asset, and return its version; it is not used yet.

    LookupError if there is no such asset, StorageError if the file is no model.
    """
    from penstock.detection import Model, load  # takes a while to import

    record, data, model = store.asset(asset), file.read_bytes(), load(file)
    names = model.inputs.names if isinstance(model, Model) else None
    with store.transaction():
        digest = hashlib.sha256(data).hexdigest()
        version = store.add_model(record.id, digest, data, source, who, time.time(), note, names)
        details = {"version": version, "source": source, "note": note}
        store.add_audit(time.time(), who, "add model", asset, details)
    return version


def _columns(scorer: Scorer) -> tuple[str, ...]:
    """Return the columns that a scorer reads; empty if it reads whatever comes."""
    options = scorer.table_options(TableOptions())
    return (*options.columns, *options.texts)


class Runtime(ABC):
    """Assets on a store, in cycles. What is said, and where rows and alarms go, is for those who inherit."""

    def __init__(self, store: Store, shelf: ModelShelf) -> None:
        self.store, self._shelf = store, shelf
        self.assets: dict[str, Asset] = {}
        self._books: dict[str, Book] = {}
        self._labels: dict[str, Label] = {}
        self._place = ""
        self._wall = self._next_look = 0.0

    # For those who inherit.

    @abstractmethod
    def _options_of(self, name: str) -> WatchOptions:
        """Return the options of an asset."""

    def _remark(self, asset: Asset, remarks: list[str]) -> None:  # noqa: B027 - a watch has none
        """Say what is odd about the clock of an asset; nothing if there are no remarks."""

    def _leave(self, asset: Asset, work: CycleWork, error: Exception) -> None:
        """Do something about an asset whose rows cannot be scored."""
        raise error

    @abstractmethod
    def _keep(self, asset: Asset, scored: ScoredBatch) -> None:
        """Write rows and verdicts."""

    @abstractmethod
    def _answer(self, asset: Asset, part: BatchReport, work: CycleWork) -> None:
        """Say what came of a batch."""

    @abstractmethod
    def _write_events(self, events: Iterable[Event]) -> None:
        """Write what the alarms say."""

    @abstractmethod
    def _save(self, work: CycleWork, now: float) -> None:
        """Write how far it is."""

    # A cycle.

    def _begin_cycle(self) -> float:
        """Return the time of a cycle, which no other has, if clocks go back too; what waits does so by `monotonic`."""
        self._wall = max(time.time(), self._wall + 1e-6)
        return self._wall

    def _carry_out(self, work: CycleWork, now: float) -> list[Event]:
        """Score, act and let timers run; write all of it in one transaction, and return what the alarms said."""
        events: list[Event] = []
        with self.store.transaction():
            for name in sorted(work.read, key=lambda each: self.assets[each].record.id):
                self._place = f"scoring {name}"
                events += self._score(self.assets[name], work, now)
            self._place = "writing"
            for job in work.jobs:
                if isinstance(job, CycleTask):
                    answer: Any
                    try:
                        said, answer = self._act_once(job, now)
                        events += said
                    except (LookupError, ValueError) as error:
                        answer = error
                    work.answers.append((job.future, answer))
            for book in self._books.values():
                events += book.advance()
            self._write_events(events)
            self._save(work, now)
        return events

    def _act_once(self, task: CycleTask, now: float) -> tuple[list[Event], Any]:
        """Do a task; one that was done and committed before, as the request comes again, is answered as it was."""
        if task.request is None:
            return task.run(now)
        identity, command = task.request
        before = self.store.answered(identity)
        if before is None:
            events, answer = task.run(now)
            self.store.add_answer(identity, now, command, answer)
            return events, answer
        if before[0] != command:
            raise RefusedError("This Idempotency-Key came with another command before.", 422)
        return [], before[1]

    def _score(self, asset: Asset, work: CycleWork, now: float) -> list[Event]:
        """Score the rows of an asset, write them, and return what the alarms say to them."""
        record, first, read = asset.record, asset.record.rows, work.read[asset.record.name]
        self._remark(asset, [remark for _, batch in read for remark in batch.remarks])
        try:
            scored = asset.score([batch for _, batch in read], now, self.store)
        except Exception as error:
            self._leave(asset, work, error)
            return []
        events: list[Event] = []
        if scored.block is not None:
            self._keep(asset, scored)
            asset.show_last(scored.block)
            events = asset.book.take(record.name, scored.verdicts, record.rows) if asset.has_alarms else []
        start, last_row = 0, first
        for delivery, batch in read:
            places = range(start, start + len(batch.lines))
            start = places.stop
            failed = {at: reason for at, reason in scored.failed.items() if at in places}
            why = {at: f"it could not be scored, and was set aside ({reason})" for at, reason in failed.items()}
            why |= {at: reason for at, reason in scored.refused.items() if at in places}
            source = "the file" if delivery is None else delivery.source
            for at, reason in failed.items():
                text = asset.row_text(batch, at - places.start)
                work.quarantined.append((record.name, source, text, reason))
            before = 0 if delivery is None or delivery.reading is None else delivery.reading.rows
            faults = [*batch.faults, *(asset.fault(batch, at - places.start, why[at], before) for at in sorted(why))]
            record.counts["malformed"] += len(faults) + batch.further_faults - len(failed)
            taken = len(places) - len(why)
            last_row += taken
            self._answer(asset, BatchReport(delivery, batch, faults, taken, last_row), work)
        return events

    def _quarantine(self, name: str, source: str, text: str, reason: str, now: float) -> None:
        """Set a row aside that could not be scored: keep it and count it."""
        asset = self.assets[name]
        asset.last_bad = now
        asset.record.counts["quarantined"] += 1
        self.store.quarantine(asset.record.id, now, source, text[:_LONGEST_TEXT], reason)

    # Models.

    def _wanted_switches(self) -> list[CycleTask]:
        """Return what `penstock model use` has asked for in the store."""
        if time.monotonic() < self._next_look:
            return []
        self._next_look = time.monotonic() + _LOOK_SECONDS
        return [
            CycleTask(partial(self._use_model, name, each["version"], each["who"], bool(each.get("other_columns"))))
            for name, each in self.store.wanted_models().items()
            if name in self.assets
        ]

    def _use_model(
        self, name: str, version: int | None, who: str, other_columns: bool, now: float
    ) -> tuple[list[Event], Any]:
        """Switch to another version between two rows; if that cannot be, nothing has changed."""
        asset, options = self.assets[name], self._options_of(name)
        record, before = replace(asset.record), asset.record.version
        details = {"version": version, "before": before, "row": record.rows + 1}
        try:
            with self.store.savepoint():
                if version is None:
                    version = details["version"] = self.store.models(record.id)[before].before
                if version is None:
                    raise StorageError(f"{name}: version {before} is the first that was in use.")
                make = self._shelf.switch(
                    self.store, record, options, version, asset.scorer, other_columns=other_columns
                )
                switched = self._with_model(asset, record, options, make)
                self.store.add_audit(now, who, "use model", name, details)
        except Exception as error:  # whatever a model does: the one in use stays
            reason = str(error) if isinstance(error, LookupError | OSError | ValueError) else repr(error)
            log.warning("%s: version %s of the model cannot be used: %s", name, version, reason)
            self.store.want_model(record.id, None)
            self.store.add_audit(now, who, "switch refused", name, {**details, "reason": reason[:1000]})
            raise RefusedError(reason, 409) from None
        log.warning("%s: version %d of the model from row %d on, by %s", name, version, record.rows + 1, who)
        switched.book = asset.book
        self.assets[name] = switched
        return self._tell_labels(switched.book), {"asset": name, **details}

    def _with_model(
        self, asset: Asset, record: AssetRecord, options: WatchOptions, make: Callable[[], Scorer]
    ) -> Asset:
        """Return an asset with another model."""
        return asset.switched(record, options, make)

    def _tell_labels(self, book: Book) -> list[Event]:
        """Tell the alarms what people said: the labels that are known here, and those that the models keep."""
        mine = [asset for asset in self.assets.values() if asset.book is book]
        book.dirty = True  # rows before this are not to be taken again with these labels
        return book.named(book.book.set_labels(known_labels(self._labels.values(), mine), book.now()))
