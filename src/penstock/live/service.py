"""Score the rows of many assets in one thread, turn verdicts into alarms, and commit everything together.

All that changes anything (rows from files and from clients, actions of people, timers) passes through the one thread of
`Service`, in cycles: take what is there, score it, update the alarms, write one transaction, then answer and tell. What
was answered is in the store; what was not has not happened. A model's state is saved now and then, and computed again
from the readings after it: the verdicts do not depend on how rows are cut into batches.
"""

from __future__ import annotations

import datetime as dt
import logging
import math
import queue
import shutil
import threading
import time
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, field, replace
from fnmatch import fnmatchcase as fnmatch
from typing import Any

import numpy as np

from penstock._types import FloatArray, StreamScores
from penstock.io import Batch, Fault, Feed, InputError, RowSource, TableOptions, is_number, open_feed
from penstock.live.alarms import AlarmBook, Change, Event, Notification, Verdict
from penstock.live.feedback import REASONS, Feedback, Label, label_alarm
from penstock.live.options import AlarmRules, AssetOptions, ServeOptions
from penstock.live.scorers import Scorer, Verdicts, scorer_maker
from penstock.live.store import AssetRecord, Block, Store, StoreFullError
from penstock.storage import state_from_bytes, state_to_bytes

log = logging.getLogger("penstock.serve")
N_VARIABLES = 3  # named for each flagged row
_MOST_JOBS = 256  # deliveries and actions in one cycle
_MOST_WAITING = 2000  # more are refused: the client sends them again later
_MOST_LINES = 2000  # of a file in one cycle
_MOST_LAYOUTS = 16  # of posted tables, remembered for each asset
_MOST_DIGESTS = 250  # of messages that a broker may send again
_MOST_FAULTS = 20  # malformed lines that an answer shows one by one
_POLL = 0.02  # seconds between looks at files that do not grow
_STATE_ROWS, _STATE_SECONDS = 5000, 30.0  # after which a model's state is saved
_CLEANING_SECONDS = 60.0
_DISK_SECONDS = 5.0

# Actions of the alarm book that an operator may do, and those that an engineer may.
OPERATOR_ACTIONS = ("acknowledge", "confirm", "reset", "shelve", "unshelve", "comment")
ENGINEER_ACTIONS = ("suppress", "unsuppress", "out_of_service", "in_service")


class RefusedError(ValueError):
    """A delivery or an action cannot be accepted; `status` is that of HTTP."""

    def __init__(self, message: str, status: int = 400) -> None:
        super().__init__(message)
        self.status = status


@dataclass
class Delivery:
    """Rows that a client or a connector brings for an asset; answered when they are committed.

    Parameters
    ----------
    asset : str
    lines : bytes
        CSV with a header, or JSON objects, one a line.
    source : str
        Name of the input, by which positions are kept.
    position : tuple of (str, int or str) or None, default=None
        ("next", n): number n of this source, each one more than the one before; ("after", n): greater than the one
        before; ("digest", text): may come again, then as ("again", text). What came before is not counted again.
    """

    asset: str
    lines: bytes
    source: str
    position: tuple[str, Any] | None = None
    future: Future[dict[str, Any]] = field(default_factory=Future)
    received: float = field(default_factory=time.time)


@dataclass
class Action:
    """Something that a person or a part of the service does, inside the transaction of a cycle."""

    run: Callable[[float], Any]
    future: Future[Any] = field(default_factory=Future)


@dataclass(frozen=True)
class Problem:
    """Something that is wrong with the service itself, or with the input of an asset."""

    id: str
    text: str
    since: float


class Service:
    """Run the assets of a configuration on a store.

    Parameters
    ----------
    options : ServeOptions
    targets : sequence of str, default=()
        Where notifications go; the outbox has each of them once for each target.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from penstock.live.options import AssetOptions
    >>> folder = Path(tempfile.mkdtemp())
    >>> service = Service(ServeOptions(store=folder / "live.db", assets={"unit1": AssetOptions()}))
    >>> service.start()
    >>> rows = b'{"time": "2026-01-01T00:00:00", "flow": 1.5, "head": 2.0}'
    >>> service.deliver(Delivery("unit1", rows, "example")).result()["accepted"]
    1
    >>> service.stop()
    """

    def __init__(self, options: ServeOptions, targets: Sequence[str] = ()) -> None:
        options.check()
        self.options, self.targets = options, tuple(targets)
        self.store = Store(options.store)
        self.started = time.time()
        self.commits = 0
        self.last_commit: float | None = None
        self.problems: dict[str, Problem] = {}
        self._notices: list[tuple[Problem, bool]] = []  # problems that began or are over, to be notified
        self.listeners: list[Callable[[dict[str, Any]], None]] = []
        self._jobs: queue.Queue[Delivery | Action] = queue.Queue(_MOST_WAITING)
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, name="penstock scoring", daemon=True)
        self._wall = 0.0
        self._next_cleaning = self._next_disk_check = 0.0
        self._labels: dict[str, Label] = {}
        self._makers: dict[Any, Callable[[], Scorer]] = {}
        self.assets: dict[str, _Asset] = {}
        self._books: dict[str, _Book] = {}
        try:
            self._load()
        except BaseException:
            self.store.close()
            raise

    # From other threads.

    def start(self) -> None:
        """Start the thread."""
        self._thread.start()

    def stop(self) -> None:
        """Finish the cycle, save all states, and close the store."""
        self._stopping.set()
        if self._thread.is_alive():
            self._thread.join()
        for asset in self.assets.values():
            asset.close()
        self.store.close()

    def deliver(self, delivery: Delivery) -> Future[dict[str, Any]]:
        """Take in rows; the future has the answer when they are committed, or a `RefusedError`."""
        if delivery.asset not in self.assets:
            raise RefusedError(f"There is no asset {delivery.asset!r:.80}.", 404)
        if "disk" in self.problems:
            raise RefusedError(self.problems["disk"].text, 507)
        return self._put(delivery)

    def act(self, name: str, alarm: str, who: str, **given: Any) -> Future[dict[str, Any]]:
        """Carry out an action of `AlarmBook` on an alarm, with `reason`, `comment` and, to shelve it, `hours`."""
        return self._put(Action(lambda now: self._act(name, alarm, who, given)))

    def silence(self, pattern: str, who: str, hours: float, reason: str = "") -> Future[list[dict[str, Any]]]:
        """Send no notifications of assets whose name matches the pattern, for so many hours of the data's time."""
        return self._put(Action(lambda now: self._silence(pattern, who, hours, reason)))

    def withdraw_label(self, identity: str, who: str) -> Future[None]:
        """Take back a label."""
        return self._put(Action(lambda now: self._withdraw(identity, who, now)))

    def note_message(self, number: int, problem: str | None, wait: float) -> Future[None]:
        """Note that a message of the outbox was sent, or why not and for how long to wait."""

        def note(now: float) -> None:
            delivered = now if problem is None else None
            self.store.note_message(number, delivered=delivered, problem=problem, next_try=now + wait)

        return self._put(Action(note))

    @property
    def waiting(self) -> int:
        """How many deliveries and actions wait for the thread."""
        return self._jobs.qsize()

    @property
    def alive(self) -> bool:
        """Whether the thread runs."""
        return self._thread.is_alive()

    def asset_states(self) -> list[dict[str, Any]]:
        """Return the newest of each asset."""
        return [asset.summary() for asset in list(self.assets.values())]

    def _put(self, job: Delivery | Action) -> Future[Any]:
        if self._stopping.is_set():
            raise RefusedError("The service is being stopped.", 503)
        try:
            self._jobs.put_nowait(job)
        except queue.Full:
            raise RefusedError("Too much is waiting to be scored. Send it again in a second.", 503) from None
        return job.future

    # Loading, at the start and after a failed transaction.

    def _load(self) -> None:
        """Bring all assets and alarms to where the store is."""
        for asset in self.assets.values():
            asset.close()
        assets: dict[str, _Asset] = {}
        for name, options in self.options.assets.items():
            key = (options.model, repr(options.threshold))
            if key not in self._makers:
                self._makers[key] = scorer_maker(options.watch_options())
            assets[name] = self._open_asset(name, options, self._makers[key])
        groups = _book_names(self.options)
        labels = {each["id"]: Label.from_dict(each) for each in self.store.labels()}
        books = {
            key: _Book(key, self.options.rules, labels.values(), self.store.book(key)) for key in {*groups.values()}
        }
        replayed: list[tuple[float, int, _Asset, int, list[Verdict]]] = []
        for name, asset in assets.items():
            asset.book = books[groups[name]]
            for block in self.store.verdicts(asset.record.id, after=asset.record.rows - 1):
                asset.show_last(block.scores, block.reasons)
            for received, last, verdicts in asset.replay(self.store):
                replayed.append((received, asset.record.id, asset, last, verdicts))
        for _, _, asset, last, verdicts in sorted(replayed, key=lambda each: each[:2]):
            new = last - asset.book.rows.get(asset.record.name, 0)
            if new > 0:  # what the book says to them was committed before
                asset.book.take(asset.record.name, verdicts[-new:], last)
        for book in books.values():
            book.dirty = False
            book.begin_clock()
        self.assets, self._books, self._labels = assets, books, labels

    def _open_asset(self, name: str, options: AssetOptions, make_scorer: Callable[[], Scorer]) -> _Asset:
        scorer = make_scorer()
        settings = scorer.settings()
        with self.store.transaction():
            record = self.store.open_asset(name, settings)
            if record.settings != settings:
                log.warning(
                    "%s: the model or its threshold has changed; it begins anew with row %d", name, record.rows + 1
                )
                self.store.restart_asset(record, settings)
                self.store.add_audit(time.time(), "penstock", "new model", name, settings)
        return _Asset(record, options, scorer, self.store.positions(record.id))

    # The thread.

    def _run(self) -> None:
        while not self._stopping.is_set():
            try:
                self._cycle()
            except StoreFullError:
                time.sleep(0.1)  # nothing is accepted until there is room
            except Exception:  # a defect must not end the service: go on from what is committed
                log.exception("A cycle failed; what was not committed is done again")
                time.sleep(1.0)
                self._load()
        with suppress(StoreFullError):
            self._save_states()
        while True:
            try:
                self._jobs.get_nowait().future.set_exception(RefusedError("The service is being stopped.", 503))
            except queue.Empty:
                return

    def _cycle(self) -> None:
        """Do all that is there to do, in one transaction."""
        now = self._wall = max(
            time.time(), self._wall + 1e-6
        )  # each cycle has a time of its own, if clocks go back too
        self._check_disk(now)
        work = self._gather()
        due = any(book.is_due() for book in self._books.values())
        if not (work.read or work.jobs or due or self._notices or now >= self._next_cleaning):
            return
        try:
            with self.store.transaction():
                events = self._carry_out(work, now)
        except BaseException as error:
            if isinstance(error, StoreFullError):
                self._enter_disk_problem(str(error))
            self._answer_failure(work.jobs, error)
            self._load()  # nothing of this cycle has happened
            raise
        del self._notices[: len(work.notices)]
        self.commits += 1
        self.last_commit = time.time()
        for future, answer in work.answers:
            if isinstance(answer, Exception):
                future.set_exception(answer)
            else:
                future.set_result(answer)
        self._tell({name: self.assets[name] for name in work.read}, events)

    def _gather(self) -> _Work:
        """Take what has come: rows of files, deliveries, actions."""
        work, blocked = _Work(notices=list(self._notices)), "disk" in self.problems
        for name, asset in self.assets.items() if not blocked else ():
            rows = self._read_file(asset)
            if rows is not None:
                work.read.setdefault(name, []).append((None, rows))
        work.jobs = self._take_jobs(wait=not work.read)
        for job in work.jobs:
            if isinstance(job, Delivery) and blocked:
                work.answers.append((job.future, RefusedError(self.problems["disk"].text, 507)))
            elif isinstance(job, Delivery):
                self._receive(job, work)
        return work

    def _carry_out(self, work: _Work, now: float) -> list[Event]:
        """Score, act and let timers run; write all of it, and return what the alarms said."""
        events: list[Event] = []
        for name in sorted(work.read, key=lambda each: self.assets[each].record.id):
            events += self._judge(self.assets[name], work.read[name], now, work.answers)
        for (name, source), position in work.positions.items():
            self.store.save_position(self.assets[name].record.id, source, position)
        for job in work.jobs:
            if isinstance(job, Action):
                work.answers.append((job.future, self._run_action(job, now, events)))
        for book in self._books.values():
            events += book.advance()
        self._write_events(events)
        self._write_notices(work.notices)
        self._save_due(work.read, now)
        if now >= self._next_cleaning:
            self.store.remove_old(now, self.options.keep_readings, self.options.keep_verdicts)
            self._next_cleaning = now + _CLEANING_SECONDS
        return events

    def _take_jobs(self, *, wait: bool) -> list[Delivery | Action]:
        jobs: list[Delivery | Action] = []
        try:
            jobs.append(self._jobs.get(wait, _POLL if wait else None))
            while len(jobs) < _MOST_JOBS:
                jobs.append(self._jobs.get_nowait())
        except queue.Empty:
            pass
        return jobs

    def _read_file(self, asset: _Asset) -> _Rows | None:
        """Return the next rows of an asset's file; a file that cannot be read is a problem of this asset alone."""
        try:
            return asset.read_file()
        except (InputError, OSError) as error:
            asset.close()
            text = f"{error} The file is not read any more until a restart."
            self.enter_problem(f"input of {asset.record.name}", text)
            return None

    def _receive(self, delivery: Delivery, work: _Work) -> None:
        """Read the rows of a delivery, unless they came before."""
        asset, key = self.assets[delivery.asset], (delivery.asset, delivery.source)
        try:
            if delivery.position is not None:
                position = _next_position(delivery.position, asset.positions.get(delivery.source))
                if position is None:
                    answer = {"accepted": 0, "duplicate": True, "row": asset.record.rows}
                    work.answers.append((delivery.future, answer))
                    return
            rows = asset.read_lines(delivery.lines, delivery.source)
        except RefusedError as error:
            work.answers.append((delivery.future, error))
            return
        except InputError as error:
            asset.record.counts["malformed"] = asset.record.counts.get("malformed", 0) + 1
            work.read.setdefault(delivery.asset, [])  # so that it is saved
            work.answers.append((delivery.future, RefusedError(str(error), 400)))
            return
        if delivery.position is not None:
            work.positions[key] = asset.positions[delivery.source] = position
        work.read.setdefault(delivery.asset, []).append((delivery, rows))

    def _judge(
        self,
        asset: _Asset,
        read: list[tuple[Delivery | None, _Rows]],
        now: float,
        answers: list[tuple[Future[Any], Any]],
    ) -> list[Event]:
        """Score the rows of an asset, write them, and return what the alarms say to them."""
        first = asset.record.rows
        block, verdicts, refused = asset.judge([rows for _, rows in read], now)
        start = 0
        for delivery, (batch, _) in read:
            stop = start + len(batch.lines)
            faults = [
                *batch.faults,
                *(Fault("the rows", place - start + 1, why) for place, why in refused.items() if start <= place < stop),
            ]
            asset.record.counts["malformed"] = asset.record.counts.get("malformed", 0) + len(faults)
            if delivery is None and faults:
                log.warning("%s: %d malformed lines; the first: %s", asset.record.name, len(faults), faults[0])
            if delivery is not None:
                answers.append((delivery.future, _answer(first + start + 1, len(batch.lines), faults)))
            start = stop
        if asset.new_layout:
            self.store.save_position(asset.record.id, "layouts", asset.layouts)
            asset.new_layout = False
        if asset.source is not None and asset.source.columns is not None:
            self.store.save_position(asset.record.id, "file", asset.source.position())
        if block is None:
            return []
        self.store.add_block(asset.record.id, block)
        asset.show_last(block.scores, block.reasons)
        return asset.book.take(asset.record.name, verdicts, asset.record.rows)

    def _run_action(self, action: Action, now: float, events: list[Event]) -> Any:
        try:
            result = action.run(now)
        except (LookupError, ValueError) as error:
            return error
        if isinstance(result, _Said):
            events += result.events
            return result.answer
        return result

    def _act(self, name: str, alarm: str, who: str, given: dict[str, Any]) -> _Said:
        book = next((book for book in self._books.values() if book.has(alarm)), None)
        if book is None:
            raise LookupError(f"There is no open alarm {alarm!r:.80}.")
        now = book.now()
        words: dict[str, Any] = {key: str(given.get(key) or "") for key in ("reason", "comment")}
        hours = given.get("hours")
        if name == "shelve":
            words["until"] = None if hours is None else now + 3600 * float(hours)
        before = book.book.alarm(alarm)
        events = book.named(getattr(book.book, name)(alarm, who, now, **words))
        if name == "acknowledge" and hours is not None:  # remind me in so many hours
            until = now + 3600 * float(hours)
            events += book.named(book.book.shelve(alarm, who, now, until, reason=words["reason"]))
        self.store.add_audit(time.time(), who, name.replace("_", " "), alarm, {**words, "asset": before.asset})
        changed = [event.alarm for event in events if isinstance(event, Change) and event.alarm is not None]
        after = next((each for each in changed if each.id == alarm), before)
        if name == "acknowledge" and words["reason"] in REASONS:
            self._save_label(label_alarm(after, words["reason"], who, now, words["comment"]))
        return _Said(events, (changed[-1] if changed else before).as_dict())

    def _silence(self, pattern: str, who: str, hours: float, reason: str) -> _Said:
        events: list[Event] = []
        for book in {
            id(asset.book): asset.book for name, asset in self.assets.items() if fnmatch(name, pattern)
        }.values():
            now = book.now()
            events += book.named(book.book.silence(pattern, who, now, now + 3600 * hours, reason=reason))
        if not events:
            raise LookupError(f"No asset has a name like {pattern!r:.80}.")
        self.store.add_audit(time.time(), who, "silence", pattern, {"hours": hours, "reason": reason})
        return _Said(events, [event.as_dict() for event in events])

    def _withdraw(self, identity: str, who: str, now: float) -> None:
        label = self._labels.get(identity)
        if label is None or not label.holds:
            raise LookupError(f"There is no label {identity!r:.80}, or it was taken back already.")
        self._save_label(replace(label, withdrawn_by=who, withdrawn_at=now))
        self.store.add_audit(now, who, "withdraw label", identity, {})

    def _save_label(self, label: Label) -> None:
        """Write a label, and let it act from the next row on."""
        self._labels[label.id] = label
        self.store.save_label(label.id, label.as_dict())
        for book in self._books.values():
            book.feedback.set_labels(self._labels.values())
            book.dirty = True

    def _write_events(self, events: Iterable[Event]) -> None:
        """Write changes and alarms, and put notifications into the outbox."""
        for event in events:
            if isinstance(event, Notification):
                for target in self.targets:
                    self.store.add_message(event.id, target, event.time, self._message(event))
                continue
            subject = event.id if event.alarm is None else event.alarm.id
            self.store.add_change(event.id, subject, event.time, event.as_dict())
            if event.alarm is not None:
                is_open = event.kind != "closed"
                self.store.save_alarm(subject, event.asset, event.alarm.since, is_open, event.alarm.as_dict())

    def _write_notices(self, notices: Iterable[tuple[Problem, bool]]) -> None:
        """Put messages on problems of the service itself into the outbox."""
        for problem, over in notices:
            identity = f"service:{problem.id}:{problem.since:.3f}:{'over' if over else 'new'}"
            lists: dict[str, Any] = {"new": [], "ended": [], "active": [], "alarms": []}
            message = {"id": identity, "time": problem.since, "kind": "problem", "group": "", "repeat": False, **lists}
            for target in self.targets:
                self.store.add_message(
                    identity, target, time.time(), {**message, "problem": asdict(problem), "over": over}
                )

    def _message(self, notification: Notification) -> dict[str, Any]:
        """Return a notification with the alarms that it is about, as they were after their last change before it."""
        wanted = dict.fromkeys((*notification.new, *notification.ended, *notification.active))
        return {**notification.as_dict(), "alarms": self.store.alarms_written(wanted)}

    def _save_due(self, touched: Iterable[str], now: float) -> None:
        """Save states that are due, and the alarms of those assets and of all in which something happened."""
        for asset in map(self.assets.__getitem__, touched):
            rows = asset.record.rows - asset.record.state_row
            due = rows >= _STATE_ROWS or now - asset.saved >= _STATE_SECONDS
            if due:
                asset.pack(now)
                asset.book.dirty = True
            self.store.save_asset(asset.record, with_state=due)
        for book in self._books.values():
            if book.dirty:
                self.store.save_book(book.name, book.state())
                book.dirty = False

    def _save_states(self) -> None:
        with self.store.transaction():
            for asset in self.assets.values():
                asset.pack(self._wall)
                self.store.save_asset(asset.record, with_state=True)
            for book in self._books.values():
                self.store.save_book(book.name, book.state())

    def _answer_failure(self, jobs: Iterable[Delivery | Action], error: BaseException) -> None:
        status = 507 if isinstance(error, StoreFullError) else 500
        text = str(error) if isinstance(error, StoreFullError) else "The service could not do this; see its log."
        for job in jobs:
            if not job.future.done():
                job.future.set_exception(RefusedError(text, status))

    def _tell(self, touched: Mapping[str, _Asset], events: Sequence[Event], *, anyway: bool = False) -> None:
        """Tell the listeners what has changed, if something has."""
        if not (touched or events or anyway):
            return
        news = {
            "commit": self.commits,
            "assets": {name: asset.summary() for name, asset in touched.items()},
            "changes": [event.as_dict() for event in events if isinstance(event, Change)],
        }
        for listener in self.listeners:
            listener(news)

    # Problems of the service itself.

    def enter_problem(self, identity: str, text: str) -> None:
        """Show a problem, from any thread, until it is cleared."""
        if identity not in self.problems:
            log.error("%s: %s", identity, text)
            problem = self.problems[identity] = Problem(identity, text, time.time())
            self._notices.append((problem, False))
            self._tell({}, [], anyway=True)

    def clear_problem(self, identity: str) -> None:
        """Note that a problem is over."""
        problem = self.problems.pop(identity, None)
        if problem is not None:
            log.warning("%s: this is over.", identity)
            self._notices.append((problem, True))
            self._tell({}, [], anyway=True)

    def _enter_disk_problem(self, text: str) -> None:
        self.enter_problem("disk", text)
        self._next_disk_check = time.time() + _DISK_SECONDS

    def _check_disk(self, now: float) -> None:
        """Stop accepting while the disk is nearly full, and go on when there is room again."""
        if now < self._next_disk_check:
            return
        self._next_disk_check = now + _DISK_SECONDS
        free = shutil.disk_usage(self.store.path.parent).free / 1e6
        if free < self.options.min_free:
            text = f"The disk of {self.store.path} has only {free:,.0f} MB left (--min-free): no rows are taken in."
            self.enter_problem("disk", text)
        elif "disk" in self.problems and self.store.has_room():
            self.clear_problem("disk")


@dataclass
class _Work:
    """What there is to do in a cycle: rows by asset, jobs, new positions of inputs, answers to jobs, and notices."""

    read: dict[str, list[tuple[Delivery | None, _Rows]]] = field(default_factory=dict)
    jobs: list[Delivery | Action] = field(default_factory=list)
    positions: dict[tuple[str, str], Any] = field(default_factory=dict)
    answers: list[tuple[Future[Any], Any]] = field(default_factory=list)
    notices: list[tuple[Problem, bool]] = field(default_factory=list)


@dataclass(frozen=True)
class _Said:
    """What an action has led to, and the answer to the client."""

    events: list[Event]
    answer: Any


_Rows = tuple[Batch, FloatArray]  # with their times in seconds, NaN where one cannot be read


class _Asset:
    """One asset while it runs: its scorer, its file, and how posted rows are laid out."""

    book: _Book

    def __init__(self, record: AssetRecord, options: AssetOptions, scorer: Scorer, positions: dict[str, Any]) -> None:
        self.record, self.scorer, self.positions = record, scorer, positions
        watch = options.watch_options()
        delimiter = "\t" if watch.delimiter in ("tab", "\\t") else watch.delimiter
        self._table = scorer.table_options(TableOptions(None, delimiter, watch.time))
        self.layouts: dict[str, Any] = positions.pop("layouts", {})
        self.new_layout = False
        self.saved = time.time() - _STATE_SECONDS * (record.id % 10) / 10  # so that not all are saved at once
        self._last: tuple[float | None, float | None, str] = (None, None, "")  # score, threshold, reason
        if record.state is not None:
            scorer.restore(state_from_bytes(record.state, "penstock.serve"))
        if record.columns is not None:
            scorer.begin(record.columns)
        self.source: RowSource | None = None
        if options.input is not None:
            self.source = RowSource(open_feed(options.input, follow=True, wait=False), self._table)
            if "file" in positions:
                self.source.continue_from(positions.pop("file"))

    def close(self) -> None:
        """Close the file."""
        if self.source is not None:
            self.source.close()
        self.source = None

    def read_file(self) -> _Rows | None:
        """Return the next rows of the file; None if there are none."""
        if self.source is None:
            return None
        with _unheard_warnings(self.source):
            batch = self.source.next_batch(_MOST_LINES)
        if self.source.columns is not None:
            self._begin(self.source.columns.variable_names)
        return None if batch is None else (batch, read_seconds(batch.times, len(batch.lines), self.source))

    def read_lines(self, lines: bytes, source: str) -> _Rows:
        """Return the rows of a text, which is laid out like those with the same first line."""
        header = lines.lstrip().partition(b"\n")[0].strip()
        if not header:
            raise InputError("There is no row in this.")
        key = "json" if header.startswith(b"{") else header[:4096].decode("utf-8", errors="replace")
        reader = RowSource(_Lines(lines, source), self._table)
        if key in self.layouts:
            reader.continue_from({"table": self.layouts[key], "file": {"kind": "pipe"}, "line": 0})
        parts: list[Batch] = []
        while not reader.ended:
            with _unheard_warnings(reader):
                batch = reader.next_batch(_MOST_LINES * 32)
            if batch is not None:
                parts.append(batch)
        if reader.columns is None:
            raise InputError("There is no row in this that could be read; CSV needs a header and a row.")
        self._begin(reader.columns.variable_names)
        if key not in self.layouts:
            if len(self.layouts) >= _MOST_LAYOUTS:
                self.layouts.pop(next(iter(self.layouts)))
            self.layouts[key], self.new_layout = reader.position()["table"], True
        batch = _joined(parts, len(self.record.columns or ()))
        if not batch.lines and not batch.faults:
            raise InputError("There is no row in this, only a header.")
        return batch, read_seconds(batch.times, len(batch.lines), reader)

    def _begin(self, columns: tuple[str, ...]) -> None:
        """Take the columns of the first rows; later ones must have the same."""
        if self.record.columns is None:
            self.scorer.begin(columns)
            self.record.columns = columns
        elif self.record.columns != columns:
            raise InputError(
                f"The rows have the columns {', '.join(columns)}, but this asset has {', '.join(self.record.columns)}."
            )

    def judge(self, read: list[_Rows], now: float) -> tuple[Block | None, list[Verdict], dict[int, str]]:
        """Score rows; return them with their verdicts, and the rows that the model refused, by place."""
        batch = _joined([batch for batch, _ in read], len(self.record.columns or ()))
        batch.lines = range(len(batch.lines))
        record, n = self.record, len(batch.lines)
        if not n:
            return None, [], {}
        seconds = _filled(np.concatenate([each for _, each in read]), record.newest, now)
        found = self.scorer.score(batch, N_VARIABLES, strict=False)
        refused = dict(found.refused)
        if refused:
            seconds = np.delete(seconds, list(refused))
        if not len(batch.values):
            return None, [], refused
        block = Block(
            record.rows + 1, now, seconds, batch.times, batch.values, batch.texts, found.scores, found.reasons
        )
        record.rows += len(batch.values)
        record.newest, record.received = float(seconds[-1]), now
        self._count(batch, found)
        return block, self._verdicts(found, seconds), refused

    def replay(self, store: Store) -> Iterable[tuple[float, int, list[Verdict]]]:
        """Score again what was scored after the last saved state; yield when it came, the last row, and verdicts."""
        for block in store.readings(self.record.id, after=self.record.state_row):
            batch = Batch(block.values.copy(), range(len(block.values)), block.times, [], block.texts)
            found = self.scorer.score(batch, N_VARIABLES, strict=False)
            yield block.received, block.first + len(block.values) - 1, self._verdicts(found, block.seconds)

    def _count(self, batch: Batch, found: Verdicts) -> None:
        counts, scores = self.record.counts, found.scores
        new = {
            "samples": len(scores.scores),
            "flagged": int(scores.flags.sum()),
            "missing": int(np.isnan(batch.values).sum()) + sum(each.count(None) for each in batch.texts.values()),
            "unscored": len(found.reasons),
            "unknown": sum(found.unknown_texts.values()),
        }
        for name, count in new.items():
            counts[name] = counts.get(name, 0) + count

    def _verdicts(self, found: Verdicts, seconds: FloatArray) -> list[Verdict]:
        """Return the verdicts on rows for the alarms."""
        return found.for_alarms(self.record.name, seconds.tolist(), self.scorer.variable_names)

    def pack(self, now: float) -> None:
        """Put the state of the scorer into the record."""
        state = self.scorer.state()
        self.record.state = None if state is None else state_to_bytes("penstock.serve", state)
        self.record.state_row, self.saved = self.record.rows, now

    def show_last(self, scores: StreamScores, reasons: Mapping[int, str]) -> None:
        """Note the last of some verdicts, to be shown."""
        if len(scores.scores):
            last = (float(values[-1]) for values in (scores.scores, scores.thresholds))
            score, threshold = (value if math.isfinite(value) else None for value in last)
            self._last = score, threshold, reasons.get(len(scores.scores) - 1, "")

    def summary(self) -> dict[str, Any]:
        """Return the newest in plain values."""
        record, (score, threshold, reason) = self.record, self._last
        return {
            "asset": record.name,
            "row": record.rows,
            "time": record.newest,
            "received": record.received,
            "score": score,
            "threshold": threshold,
            "reason": reason,
            "counts": dict(record.counts),
        }


class _Book:
    """The alarms of a group of assets, with a clock: the newest time of the data plus what has passed since."""

    def __init__(self, name: str, rules: AlarmRules, labels: Iterable[Label], saved: dict[str, Any] | None) -> None:
        self.feedback = Feedback(labels)
        self.name, self.dirty = name, False
        self.rows: dict[str, int] = {}
        self._newest: float | None = None
        self._timer: float | None = None
        if saved is None:
            self.book = AlarmBook(rules)
        else:
            self.book = AlarmBook.restore(saved["book"], rules)
            self.rows, self._newest = saved["rows"], saved["newest"]
            self.feedback.restore(saved["feedback"])
        self.begin_clock()

    def begin_clock(self) -> None:
        """Let time pass from now on."""
        self._came = time.monotonic()

    def now(self) -> float:
        """Return the time of the data's clock."""
        return time.time() if self._newest is None else self._newest + time.monotonic() - self._came

    def has(self, alarm: str) -> bool:
        """Return whether an open alarm is in this book."""
        return any(each.id == alarm for each in self.book.alarms())

    def take(self, asset: str, verdicts: Sequence[Verdict], row: int) -> list[Event]:
        """Take the verdicts up to this row of an asset."""
        events = self.named(self.book.update(map(self.feedback.apply, verdicts)))
        self.rows[asset] = max(row, self.rows.get(asset, 0))
        if verdicts:
            newest = max(each.time for each in verdicts)
            self._newest = newest if self._newest is None else max(newest, self._newest)
            self.begin_clock()
        return events

    def named(self, events: Iterable[Event]) -> list[Event]:
        """Return events with ids that no other book has, and note that there is something to save."""
        self._timer = None
        found = [
            replace(event, id=f"{self.name}:{event.id}")
            if isinstance(event, Notification) or event.alarm is None
            else event
            for event in events
        ]
        self.dirty = self.dirty or bool(found)
        return found

    def is_due(self) -> bool:
        """Return whether a timer is due."""
        if self._newest is None:
            return False
        if self._timer is None:  # looking for it takes a while with many alarms: only after something has happened
            timer = self.book.next_timer()
            self._timer = math.inf if timer is None else timer
        return self._timer <= self.now()

    def advance(self) -> list[Event]:
        """Let timers run that are due."""
        return self.named(self.book.advance(self.now())) if self.is_due() else []

    def state(self) -> dict[str, Any]:
        plain = {"rows": self.rows, "newest": self._newest}
        return {"book": self.book.state(), "feedback": self.feedback.state(), **plain}


class _Lines(Feed):
    """Lines that are all there."""

    can_seek = False

    def __init__(self, lines: bytes, name: str) -> None:
        self.name = name
        self._lines: bytes | None = lines

    def read(self) -> bytes | None:
        lines, self._lines = self._lines, b""
        return lines or b""

    def mark(self, offset: int, tail: bytes) -> dict[str, Any]:
        return {"kind": "pipe", "offset": offset}

    def continue_from(self, state: dict[str, Any]) -> tuple[int, bytes]:
        return 0, b""


@contextmanager
def _unheard_warnings(source: RowSource) -> Iterator[None]:
    """Log what is odd about the layout of an input, when it is found out, instead of warning of it."""
    if source.columns is not None:
        yield
        return
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield
    for note in source.notes:
        log.info("%s", note)


def _book_names(options: ServeOptions) -> dict[str, str]:
    """Return which assets share an alarm book: those of a group, and those that inhibit each other."""
    groups = {name: name.partition("/")[0] if "/" in name else name for name in options.assets}
    for pair in options.rules.inhibit:
        one, other = (groups.get(name.strip()) for name in pair.split(">"))
        groups = {name: one if group == other and one is not None else group for name, group in groups.items()}
    return groups


def _joined(batches: Sequence[Batch], n_columns: int) -> Batch:
    """Return several batches as one; line numbers are those of each."""
    filled = [batch for batch in batches if len(batch.lines)]
    faults = [fault for batch in batches for fault in batch.faults]
    if len(filled) == 1:
        return Batch(filled[0].values, filled[0].lines, filled[0].times, faults, filled[0].texts)
    if not filled:
        return Batch(np.empty((0, n_columns)), [], None, faults)
    timed = any(batch.times is not None for batch in filled)
    times = [each for batch in filled for each in (batch.times or [None] * len(batch.lines))] if timed else None
    texts = {name: [text for batch in filled for text in batch.texts[name]] for name in filled[0].texts}
    lines = [line for batch in filled for line in batch.lines]
    return Batch(np.concatenate([batch.values for batch in filled]), lines, times, faults, texts)


def _next_position(given: tuple[str, Any], before: Any) -> Any:
    """Return the position after a delivery, None if it came before; RefusedError if one is missing in between."""
    kind, value = given
    if kind in ("digest", "again"):
        known = before or []
        return None if kind == "again" and value in known else [*known, value][-_MOST_DIGESTS:]
    if before is None or value == before + 1 or (kind == "after" and value > before):
        return value
    if value <= before:
        return None
    raise RefusedError(f"Sequence {before + 1} is expected next, not {value}: what is between them would be lost.", 409)


def _answer(row: int, accepted: int, faults: Sequence[Fault]) -> dict[str, Any]:
    shown = [{"line": fault.line, "reason": fault.reason} for fault in faults[:_MOST_FAULTS]]
    return {
        "accepted": accepted,
        "duplicate": False,
        "row": row + accepted - 1,
        "malformed": len(faults),
        "faults": shown,
    }


_EPOCHS = ((1e11, 1.0), (1e14, 1e3), (1e17, 1e6), (math.inf, 1e9))


def read_seconds(times: Sequence[Any] | None, n: int, source: RowSource) -> FloatArray:
    """Return times in seconds since 1970, NaN for those that cannot be read; `source` knows how they are written."""
    if times is None:
        return np.full(n, np.nan)
    found = [_second(each) for each in times]
    if None in found:
        index = source.read_times(times)
        if index is not None:
            unread = index.isna().tolist()
            stamps = index.as_unit("us").asi8.tolist()
            found = [None if no else stamp / 1e6 for no, stamp in zip(unread, stamps, strict=True)]
    return np.array(found, dtype=np.float64)


def _filled(seconds: FloatArray, before: float | None, now: float) -> FloatArray:
    """Return times without gaps: one that is not known is that of the row before; where none is known, it is now."""
    known = np.isfinite(seconds)
    if known.all():
        return seconds
    if not known.any():
        return np.full(len(seconds), now)
    first = before if before is not None else seconds[known][0]
    last = np.maximum.accumulate(np.where(known, np.arange(len(seconds)), -1))
    return np.where(last >= 0, seconds[last], first)


def _second(text: Any) -> float | None:
    if is_number(text):
        number = float(text)
        scale = next(scale for most, scale in _EPOCHS if abs(number) < most or most == math.inf)
        return number / scale if math.isfinite(number) else None
    try:
        stamp = dt.datetime.fromisoformat(str(text).strip())
    except ValueError:
        return None
    return (stamp if stamp.tzinfo else stamp.replace(tzinfo=dt.UTC)).timestamp()
