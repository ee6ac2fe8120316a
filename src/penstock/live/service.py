"""Score the rows of many assets in one thread, turn verdicts into alarms, and commit everything together.

All that changes anything (rows from files and from clients, actions of people, timers) passes through the one thread of
`Service`, in cycles: take what is there, score it, update the alarms, write one transaction, then answer and tell. What
was answered is in the store. A cycle is short, as others wait for it: assets take turns, each with a piece of its rows.
A model's state is saved now and then, and computed again from the readings after it: the verdicts do not depend on how
rows are cut into batches.
"""

from __future__ import annotations

import logging
import math
import queue
import shutil
import sqlite3
import threading
import time
from collections import Counter, deque
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from fnmatch import fnmatchcase
from functools import partial
from typing import Any

from penstock._messages import counted, duration_in_words
from penstock._parameters import ParameterError
from penstock.explain import REASONS, Label
from penstock.io import Batch, InputError, open_feed
from penstock.live.alarm_records import Alarm, Change, Event, Notification, RefusedError, RowVerdict, label_alarm
from penstock.live.assets import MOST_FAULTS, Asset, Book, ScoredBatch, known_labels
from penstock.live.options import AssetOptions, ServeOptions, WatchOptions
from penstock.live.runtime import BatchReport, CycleTask, CycleWork, Delivery, ModelShelf, Runtime
from penstock.live.scorers import Scorer
from penstock.live.store import AssetRecord, Store, StoreFullError
from penstock.storage import StorageError

log = logging.getLogger("penstock.serve")
_MOST_TASKS = 20  # of people, in one cycle
_CYCLE_SECONDS = 0.2  # of rows, about, in one cycle: those of other assets come next
_MOST_WAITING = 2000  # deliveries and actions; more are refused: the client sends them again later
_SHARE = 0.25  # of the bytes that may wait, for one asset
_UNREAD_SECONDS = 0.25  # between looks at a file whose layout is not known
_LONGEST_CYCLE = 10.0  # seconds; then something is wrong
_FIRST_PAUSE, _LONGEST_PAUSE = 60.0, 3600.0  # seconds for which an asset that fails is left alone
_MANY_UNREAD = 20  # malformed lines, one after the other: then it is not the lines
_PUT_RIGHT = "Put the former file back, or have this one read anew from its beginning (page Assets)."
TO_END = "silences to end"  # what is kept in the store for it
_QUIET = 3600.0  # seconds after which a row that could not be scored is no problem any more
_LONGEST_TEXT = 10_000  # characters of a row that is kept
_MOST_DIGESTS = 250  # of messages that a broker may send again
_POLL = 0.02  # seconds between looks at files that do not grow
_CLEANING_SECONDS, _CLEANING_PIECE = 60.0, 0.02
_CLOCK_JUMP, _CLOCK_TRUST = 3600.0, 86_400.0  # seconds: after a jump of the clock nothing is removed for so long
_DISK_SECONDS = 5.0
_NOTICE_SECONDS = 300.0  # at least, between two messages that the same thing has failed

# Actions of the alarm book that an operator may do, and those that an engineer may.
OPERATOR_ACTIONS = ("acknowledge", "confirm", "reset", "shelve", "unshelve", "comment", "label")
ENGINEER_ACTIONS = ("suppress", "unsuppress", "out_of_service", "in_service")


Request = tuple[str, str] | None  # of a person: see `CycleTask`


@dataclass(frozen=True)
class ServiceProblem:
    """Something that is wrong with the service itself, or with the input of an asset."""

    id: str
    text: str
    since: float


class Claim:
    """Bytes that wait for an asset, from when they are read from a client until their rows are committed."""

    def __init__(self, service: Service, asset: str) -> None:
        self._service, self._asset, self._size = service, asset, 0
        self._is_over = False
        self._lock = threading.Lock()

    def resize(self, size: int) -> None:
        """Claim so many bytes instead; a `RefusedError` if there are too many."""
        with self._lock:
            if not self._is_over:
                self._service.count_bytes(self._asset, size - self._size)
                self._size = size

    def release(self) -> None:
        """Give all of them back, for good."""
        self.resize(0)
        self._is_over = True

    def __enter__(self) -> Claim:
        return self

    def __exit__(self, *_: object) -> None:
        self.release()


@dataclass
class _Pause:
    """An asset that is left alone until a time of `monotonic`, because it failed so often."""

    until: float
    reason: str
    times: int = 1


class Service(Runtime):
    """Run the assets of a configuration on a store; the outbox has each notification once for each of the targets."""

    def __init__(self, options: ServeOptions, targets: Sequence[str] = ()) -> None:
        options.check()
        super().__init__(Store(options.store), ModelShelf())
        self.options, self.targets = options, tuple(targets)
        self.started = time.time()
        self.commits = 0
        self.last_commit: float | None = None
        self.problems: dict[str, ServiceProblem] = {}
        self._told: dict[str, tuple[ServiceProblem | None, float]] = {}  # messages on problems: None if it is over
        self.listeners: list[Callable[[dict[str, Any]], None]] = []
        self._jobs: queue.Queue[Delivery | CycleTask] = queue.Queue()
        self._deliveries: dict[str, deque[Delivery]] = {name: deque() for name in options.assets}  # by asset, in order
        self._tasks: deque[CycleTask] = deque()
        self._turns = deque(options.assets)  # the asset whose rows are read first, and those after it
        self._learning: dict[str, Future[Batch | None]] = {}  # assets whose file is being looked at
        self._learner = ThreadPoolExecutor(1, "penstock layouts")
        self._next_looks: dict[str, float] = {}
        self._claimed: Counter[str] = Counter()  # bytes that wait, by asset
        self._claims = threading.Lock()
        self._pauses: dict[str, _Pause] = {}
        self._must_load = False
        self._cycle_began = math.inf
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, name="penstock scoring", daemon=True)
        self._next_cleaning = self._next_disk_check = 0.0
        self._to_clean: deque[int] = deque()  # assets
        self._clock_offset = time.time() - time.monotonic()
        try:
            self._load()
        except BaseException:
            self.store.close()
            raise

    # From other threads.

    def start(self) -> None:
        """Start the thread."""
        self._thread.start()

    def stop(self, seconds: float | None = None) -> None:
        """Finish the cycle, save all states, and close the store; after so many seconds, leave the cycle as it is."""
        self._stopping.set()
        if self._thread.is_alive():
            self._thread.join(seconds)
        if self._thread.is_alive():
            log.error(
                "The service is ended in the middle of its work (%s): it is done again after a start", self._place
            )
            return
        self._await_learner(self.options.assets)
        self._learner.shutdown()
        for asset in self.assets.values():
            asset.close()
        self.store.close()

    def asset(self, name: str) -> Asset:
        """Return an asset; a `RefusedError` if there is none of this name."""
        if name not in self.assets:
            raise RefusedError(f"There is no asset {name!r:.80}.", 404)
        return self.assets[name]

    def deliver(self, delivery: Delivery, claim: Claim | None = None) -> Future[dict[str, Any]]:
        """Take in rows; the future has the answer when they are committed, or a `RefusedError`.

        claim : what was claimed for them; it is given back with the answer.
        """
        claim = claim or self.claim(delivery.asset, 0)
        delivery.future.add_done_callback(lambda _: claim.release())
        try:
            asset = self.asset(delivery.asset)
            if "disk" in self.problems:
                raise RefusedError(self.problems["disk"].text, 507)
            claim.resize(len(delivery.lines))
            try:
                delivery.layout = asset.learn_layout(delivery.lines, delivery.source)
            except Exception as error:  # whatever a text does to the parser: it is answered in turn
                delivery.layout = error
            return self._put(delivery)
        except RefusedError:
            claim.release()
            raise

    def claim(self, asset: str, size: int) -> Claim:
        """Count bytes that wait for an asset; a `RefusedError` if there are too many."""
        found = Claim(self, asset)
        found.resize(size)
        return found

    def count_bytes(self, asset: str, more: int) -> None:
        """Count more bytes that wait for an asset, or fewer: its share is bounded, so that there is room for others.

        asset : "" are commands of people, who do not wait for room of rows.
        """
        most = 1e6 * self.options.max_waiting
        with self._claims:
            mine, every = self._claimed[asset], self._claimed.total()
            if more > 0 and ((mine and mine + more > _SHARE * most) or (asset and every and every + more > most)):
                raise RefusedError("Too much is waiting to be scored (--max-waiting). Send it again in a second.", 429)
            self._claimed[asset] += more

    def stuck(self) -> str:
        """Say what the thread has been doing for far too long; "" if it works."""
        seconds = time.monotonic() - self._cycle_began
        return f"{self._place} has taken {seconds:.0f} s" if seconds > _LONGEST_CYCLE else ""

    def act(self, name: str, alarm: str, who: str, *, request: Request = None, **given: Any) -> Future[dict[str, Any]]:
        """Carry out an action of `AlarmBook` on an alarm, with `reason`, `comment` and, to shelve it, `hours`.

        request : of this and what else people do, see `CycleTask`: done once, however often it comes.
        """
        return self._put(CycleTask(partial(self._act, name, alarm, who, given), request))

    def silence(
        self, pattern: str, who: str, hours: float, reason: str = "", *, request: Request = None
    ) -> Future[list[dict[str, Any]]]:
        """Send no notifications of assets whose name matches the pattern, for so many hours of the data's time."""
        return self._put(CycleTask(partial(self._silence, pattern, who, hours, reason), request))

    def silences(self) -> list[dict[str, Any]]:
        """Return the silences that have not ended."""
        return [each for _, book in sorted(self._books.items()) for each in book.silences()]

    def end_silence(self, identity: str, who: str, *, request: Request = None) -> Future[None]:
        """End a silence before its time."""
        return self._put(CycleTask(partial(self._end_silence, identity, who), request))

    def read_anew(self, asset: str, who: str, *, request: Request = None) -> Future[dict[str, Any]]:
        """Read the file of an asset from its beginning, with the layout that it has now."""
        self.asset(asset)
        return self._put(CycleTask(partial(self._read_anew, asset, who), request))

    def withdraw_label(self, identity: str, who: str, *, request: Request = None) -> Future[None]:
        """Take back a label."""
        return self._put(CycleTask(partial(self._withdraw, identity, who), request))

    def read_model(self, asset: str, version: int | None) -> None:
        """Read a model that is to be used, in the thread of who asks for it: it may take a while."""
        record = self.asset(asset).record
        versions = self.store.models(record.id)
        wanted = versions[record.version].before if version is None else version
        with suppress(Exception):  # using it will say what is wrong
            self._shelf.maker(self.store, versions[wanted or 0], self._options_of(asset))

    def use_model(
        self, asset: str, version: int | None, who: str, *, other_columns: bool = False, request: Request = None
    ) -> Future[dict[str, Any]]:
        """Score the rows of an asset by another version of its model from now on; None: by the one before."""
        self.asset(asset)
        return self._put(CycleTask(partial(self._use_model, asset, version, who, other_columns), request))

    def post(self, message: dict[str, Any], **marks: Any) -> Future[None]:
        """Put a message into the outbox, for every target; `marks` are kept together with it, for `Store.mark`."""

        def post(now: float) -> tuple[list[Event], None]:
            for target in self.targets if message else ():
                self.store.add_message(message["id"], target, now, message)
            for name, mark in marks.items():
                self.store.save_book(f"~{name}", mark)
            return [], None

        return self._put(CycleTask(post))

    def note_message(self, number: int, problem: str | None, wait: float) -> Future[None]:
        """Note that a message of the outbox was sent, or why not and for how long to wait."""

        def note(now: float) -> tuple[list[Event], None]:
            delivered = now if problem is None else None
            self.store.note_message(number, delivered=delivered, problem=problem, next_try=now + wait)
            return [], None

        return self._put(CycleTask(note))

    @property
    def waiting(self) -> int:
        """How many deliveries and actions wait for the thread."""
        return self._jobs.qsize() + len(self._tasks) + sum(map(len, self._deliveries.values()))

    @property
    def waiting_bytes(self) -> int:
        """How many bytes of requests that is, from the first one that is read of each."""
        with self._claims:
            return self._claimed.total()

    @property
    def alive(self) -> bool:
        """Whether the thread runs."""
        return self._thread.is_alive()

    def asset_states(self) -> list[dict[str, Any]]:
        """Return the newest of each asset."""
        return [asset.summary() for asset in list(self.assets.values())]

    def enter_problem(self, identity: str, text: str) -> None:
        """Show a problem, from any thread, until it is cleared."""
        known = self.problems.get(identity)
        if known is not None and known.text != text:
            self.problems[identity] = replace(known, text=text)
        if known is None:
            log.error("%s: %s", identity, text)
            self.problems[identity] = ServiceProblem(identity, text, time.time())
            self._tell((), ())

    def clear_problem(self, identity: str) -> None:
        """Note that a problem is over."""
        if self.problems.pop(identity, None) is not None:
            log.warning("%s: this is over.", identity)
            self._tell((), ())

    def _put(self, job: Delivery | CycleTask) -> Future[Any]:
        if self._stopping.is_set():
            raise RefusedError("The service is being stopped.", 503)
        if self.waiting >= _MOST_WAITING:
            raise RefusedError("Too much is waiting to be scored. Send it again in a second.", 503)
        self._jobs.put(job)
        return job.future

    # Loading, at the start and after a failed transaction.

    def _load(self) -> None:
        """Bring all assets and alarms to where the store is."""
        self._await_learner(self.options.assets)
        for asset in self.assets.values():
            asset.close()
        for options in self.options.assets.values():
            self._shelf.configured(options.watch_options())  # what is wrong with a model is not wrong with the store
        try:
            self._load_store()
        except (InputError, ParameterError, StorageError):
            raise
        except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError, sqlite3.Error) as error:
            raise self.store.damaged(f"{type(error).__name__}: {error}") from error

    def _load_store(self) -> None:
        assets = {name: self._open_asset(name, options) for name, options in self.options.assets.items()}
        groups, rules = _book_names(self.options), self.options.rules
        labels = {each["id"]: Label.from_dict(each) for each in self.store.labels()}
        books = {
            name: Book(name, rules, known_labels(labels.values(), members), self.store.book(name))
            for name in dict.fromkeys(groups.values())
            if (members := [asset for each, asset in assets.items() if groups[each] == name])
        }
        replayed: list[tuple[float, int, Asset, int, list[RowVerdict]]] = []
        for name, asset in assets.items():
            asset.book = books[groups[name]]
            for block in self.store.rows(asset.record.id, after=asset.record.rows - 1):
                asset.show_last(block)
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

    def _open_asset(self, name: str, options: AssetOptions) -> Asset:
        with self.store.transaction():
            record = self.store.open_asset(name)
            make = self._shelf.open(self.store, record, options.watch_options())
        try:
            return self._asset_at(record, options, make)
        except (InputError, OSError) as error:
            if options.input is None or not record.rows:  # as it was never read, it may be the wrong file
                raise
            self._pause(name, error)
            return self._asset_at(record, replace(options, input=None), make)

    def _asset_at(self, record: AssetRecord, options: AssetOptions, make: Callable[[], Scorer]) -> Asset:
        """Return an asset that goes on where the store is; InputError or OSError if its file does not."""
        feed = None if options.input is None else open_feed(options.input, follow=True, wait=False)
        positions = self.store.positions(record.id)
        try:
            return Asset(record, options.watch_options(), make, positions, feed)
        except BaseException:
            if feed is not None:
                feed.close()
            raise

    def _await_learner(self, names: Iterable[str]) -> None:
        """Wait until the files of these assets are looked at no more; what was found out is found out again."""
        wait([self._learning.pop(name) for name in names if name in self._learning])

    def _reopen(self, name: str) -> None:
        """Bring an asset alone to where the store is; its alarms stay."""
        self._await_learner([name])
        asset = self.assets[name]
        asset.close()
        reopened = self._open_asset(name, self.options.assets[name])
        reopened.book = asset.book
        for _ in reopened.replay(self.store):
            pass
        self.assets[name] = reopened

    def _pause(self, name: str, error: Exception) -> None:
        """Leave an asset alone for a while, longer each time, and say so."""
        last = self._pauses.get(name)
        times = 1 if last is None else last.times + 1
        seconds = min(_FIRST_PAUSE * 2.0 ** min(times - 1, 20), _LONGEST_PAUSE)
        reason = str(error) if isinstance(error, InputError | OSError) else f"{type(error).__name__}: {error}"
        advice = ""
        if isinstance(error, InputError) and self.options.assets[name].input is not None:
            advice = f" {_PUT_RIGHT}"
        text = f"{reason[:300]} It is paused, and tried again after {duration_in_words(seconds)}.{advice}"
        self._pauses[name] = _Pause(time.monotonic() + seconds, text, times)
        self.enter_problem(f"input of {name}", text)

    def _is_paused(self, name: str) -> bool:
        """Return whether an asset is left alone; one whose pause is over is opened again."""
        pause = self._pauses.get(name)
        if pause is None or pause.until == math.inf:
            return False
        if time.monotonic() < pause.until:
            return True
        self._reopen(name)
        if self._pauses[name] is not pause:  # it failed once more
            return True
        pause.until = math.inf  # tried again: over when it works
        return False

    def _end_pause(self, name: str) -> None:
        if name in self._pauses:
            del self._pauses[name]
            self.clear_problem(f"input of {name}")

    # The thread.

    def _run(self) -> None:
        while not self._stopping.is_set():
            try:
                self._cycle()
            except StoreFullError:
                time.sleep(0.1)  # nothing is accepted until there is room
            except Exception:  # a defect must not end the service: go on from what is committed
                log.exception("A cycle failed; what was not committed is done again")
                time.sleep(0.2)
            finally:
                self._cycle_began = math.inf
        with suppress(StoreFullError), self.store.transaction():
            self._save_states(self.assets, every=True)
        self._collect(0.0)
        futures: list[Future[Any]] = [task.future for task in self._tasks]
        futures += [each.future for waiting in self._deliveries.values() for each in waiting]
        for future in [each for each in futures if not each.done()]:
            future.set_exception(RefusedError("The service is being stopped.", 503))

    def _cycle(self) -> None:
        """Do all that is there to do, in one transaction."""
        now = self._begin_cycle()
        self._place, self._cycle_began = "loading", time.monotonic()
        if self._must_load:
            self._load()
            self._must_load = False
        self._check_disk()
        work, notices = CycleWork(), self._due_notices()
        try:
            self._gather(work)
            due = any(book.is_due() for book in self._books.values())
            some = work.read or work.jobs or work.answers or due or notices
            if not (some or self._to_clean or time.monotonic() >= self._next_cleaning):
                return
            with self.store.transaction():
                self._write_notices(notices)
                events = self._carry_out(work, now)
        except BaseException as error:
            refusal = RefusedError("The service could not do this; see its log.", 500)
            if isinstance(error, StoreFullError):
                refusal = RefusedError(str(error), 507)
                self.enter_problem("disk", str(error))
                self._next_disk_check = time.monotonic() + _DISK_SECONDS
            for job in work.jobs:
                if not job.future.done():
                    job.future.set_exception(refusal)
            self._must_load = True  # nothing of this cycle has happened
            raise
        for problem, over in notices:
            failed = self._told[problem.id][1] if over else time.monotonic()
            self._told[problem.id] = (None if over else problem, failed)
        self.commits += 1
        self.last_commit = time.time()
        for future, answer in work.answers:
            if future.done():  # by a failure of its asset, after it was read
                continue
            if isinstance(answer, Exception):
                future.set_exception(answer)
            else:
                future.set_result(answer)
        if work.read or events:
            self._tell(work.read, events)

    def _gather(self, work: CycleWork) -> None:
        """Take what has come: actions, and rows of files and deliveries."""
        work.jobs += self._wanted_switches()  # first: rows are read by the models that are wanted
        self._collect(0.0)
        if not work.jobs:
            self._read_in_turn(work)
        self._cycle_began = time.monotonic()  # waiting for something to do takes no time
        if not (work.read or work.jobs or work.answers or self._tasks) and self._collect(_POLL):
            self._read_in_turn(work)
        work.jobs += [self._tasks.popleft() for _ in range(min(len(self._tasks), _MOST_TASKS))]

    def _collect(self, seconds: float) -> bool:
        """Take over what other threads have brought, after a wait if there is nothing; return whether there is any."""
        with suppress(queue.Empty):
            job = self._jobs.get(timeout=seconds) if seconds else self._jobs.get_nowait()
            while True:
                if isinstance(job, Delivery):
                    self._deliveries[job.asset].append(job)
                else:
                    self._tasks.append(job)
                job = self._jobs.get_nowait()
        return bool(self._tasks) or any(self._deliveries.values())

    def _read_in_turn(self, work: CycleWork) -> None:
        """Read rows of one asset after the other, a piece of each, until there is enough to do in this cycle."""
        seconds = 0.0
        for _ in range(len(self._turns)):
            if seconds >= _CYCLE_SECONDS:
                return
            name = self._turns[0]
            self._turns.rotate(-1)
            refusal = None
            if "disk" in self.problems:
                refusal = RefusedError(self.problems["disk"].text, 507)
            elif self._is_paused(name):
                refusal = RefusedError(self._pauses[name].reason, 503)
            if refusal is not None:
                work.answers += [(each.future, refusal) for each in self._deliveries[name]]
                self._deliveries[name].clear()
                continue
            room = self.assets[name].room
            room -= self._read_file(name, work, room)
            if name not in self._learning:
                self._read_deliveries(name, work, room)
            if work.read.get(name):
                lines = sum(len(batch.lines) + len(batch.faults) for _, batch in work.read[name])
                seconds += lines * self.assets[name].line_seconds

    def _read_file(self, name: str, work: CycleWork, at_most: int) -> int:
        """Read rows of an asset's file, and return how many; its layout is found out in another thread."""
        asset = self.assets[name]
        if asset.source is None or work.read.get(name):
            return 0
        self._place = f"reading the file of {name}"
        try:
            if asset.source.columns is not None and name not in self._learning:
                with asset.timed():
                    rows = asset.read_file(at_most)
            elif name in self._learning and self._learning[name].done():
                rows = self._learning.pop(name).result()
            elif name in self._learning or time.monotonic() < self._next_looks.get(name, 0.0):
                return 0
            else:
                self._next_looks[name] = time.monotonic() + _UNREAD_SECONDS
                self._learning[name] = self._learner.submit(asset.read_file, at_most)
                return 0
        except Exception as error:  # a problem of this asset alone
            asset.close()
            self._pause(name, error)
            return 0
        if rows is None:
            return 0
        work.read[name] = [(None, rows)]
        return len(rows.lines)

    def _read_deliveries(self, name: str, work: CycleWork, at_most: int) -> None:
        """Read rows that were delivered for an asset, in order, from so many lines or the first delivery."""
        waiting = self._deliveries[name]
        while waiting and at_most > 0:
            delivery = waiting[0]
            if delivery.future.done():  # it has failed with its asset or its cycle
                waiting.popleft()
                continue
            self._place = f"reading rows for {name}"
            with self.assets[name].timed():
                at_most -= self._receive(delivery, work, at_most)
            if delivery.reading is None or delivery.reading.source.ended:
                waiting.popleft()
            else:
                break  # the rest of it comes next

    def _receive(self, delivery: Delivery, work: CycleWork, at_most: int) -> int:
        """Read a piece of a delivery, unless it came before; return how many lines that took."""
        asset, name, position = self.assets[delivery.asset], delivery.asset, None
        work.jobs.append(delivery)
        try:
            if delivery.position is not None:
                position = _next_position(delivery.position, asset.positions.get(delivery.source))
                if position is None:
                    answer = {"accepted": 0, "duplicate": True, "row": asset.record.rows}
                    work.answers.append((delivery.future, answer))
                    return 1
            if isinstance(delivery.layout, Exception):
                raise delivery.layout
            reading = delivery.reading
            if reading is None or reading.asset is not asset:  # it is new, or the asset was opened again
                reading = asset.begin_text(delivery.lines, delivery.source, delivery.layout)
            rows = asset.read_text(reading, at_most)
        except RefusedError as error:
            work.answers.append((delivery.future, error))
        except InputError as error:
            asset.record.counts["malformed"] += 1
            work.read.setdefault(name, [])  # so that it is saved
            work.answers.append((delivery.future, RefusedError(str(error))))
        except Exception as error:  # whatever a text does to the parser
            log.exception("%s: a text could not be read", name)
            text = delivery.lines[:_LONGEST_TEXT].decode("utf-8", errors="replace")
            work.quarantined.append((name, delivery.source, text, f"{type(error).__name__}: {error}"[:300]))
            work.read.setdefault(name, [])
            work.answers.append(
                (delivery.future, RefusedError("These rows could not be read; they were set aside.", 422))
            )
        else:
            delivery.reading = reading
            if position is not None and reading.source.ended:
                for source, place in asset.note_position(delivery.source, position).items():
                    work.positions[name, source] = place
            work.read.setdefault(name, []).append((delivery, rows))
            return max(1, len(rows.lines) + len(rows.faults) + rows.readings)
        delivery.reading = None
        return 1

    def _score(self, asset: Asset, work: CycleWork, now: float) -> list[Event]:
        lines = sum(len(batch.lines) + len(batch.faults) for _, batch in work.read[asset.record.name])
        try:
            with asset.timed(lines):
                return super()._score(asset, work, now)
        except (StorageError, sqlite3.Error):
            raise
        except Exception as error:  # in the middle of it: the whole cycle is done again, without this asset
            self._pause(asset.record.name, error)
            raise

    def _options_of(self, name: str) -> WatchOptions:
        return self.options.assets[name].watch_options()

    def _remark(self, asset: Asset, remarks: list[str]) -> None:
        if remarks:
            self.enter_problem(f"clock of {asset.record.name}", remarks[-1])
        elif not asset.progress.behind:
            self.clear_problem(f"clock of {asset.record.name}")

    def _keep(self, asset: Asset, scored: ScoredBatch) -> None:
        assert scored.block is not None
        self._end_pause(asset.record.name)
        if scored.block.received - asset.last_bad > _QUIET:
            self.clear_problem(f"rows of {asset.record.name}")
        self.store.add_rows(asset.record.id, scored.block)

    def _answer(self, asset: Asset, part: BatchReport, work: CycleWork) -> None:
        faults, count = part.faults, len(part.faults) + part.batch.further_faults
        if part.delivery is None or not part.delivery.source.startswith("http "):  # clients over HTTP are answered
            self._note_unread(asset, part, count)
        if part.delivery is not None:
            reading = part.delivery.reading
            assert reading is not None
            reading.rows += len(part.batch.lines)
            reading.accepted += part.batch.readings or part.taken
            reading.malformed += count
            reading.faults += faults[: MOST_FAULTS - len(reading.faults)]
            asset.note_part(reading, part.delivery.lines, part.delivery.source)
            if reading.source.ended:
                shown = [{"line": fault.line, "reason": fault.reason} for fault in reading.faults]
                answer = {"accepted": reading.accepted, "duplicate": False, "row": part.last_row}
                work.answers.append((part.delivery.future, {**answer, "malformed": reading.malformed, "faults": shown}))
        elif faults:
            log.warning("%s: %d malformed lines; the first: %s", asset.record.name, count, faults[0])

    def _note_unread(self, asset: Asset, part: BatchReport, count: int) -> None:
        """Show a problem where an input brings nothing but malformed lines."""
        asset.unread = 0 if part.taken or part.batch.readings else asset.unread + count
        name, source = asset.record.name, "its file" if part.delivery is None else part.delivery.source
        if not asset.unread:
            self.clear_problem(f"lines of {name}")
        elif asset.unread >= _MANY_UNREAD and part.faults:
            said = f"None of the last {asset.unread:,} lines of {source} is a row; the last: {part.faults[-1].reason}."
            self.enter_problem(f"lines of {name}", f"{said} Has its layout changed (header, separator)? {_PUT_RIGHT}")

    def _leave(self, asset: Asset, work: CycleWork, error: Exception) -> None:
        """Pause an asset in the middle of a cycle: nothing of it is written, and it is read again later."""
        name = asset.record.name
        log.error("%s: its rows cannot be scored", name, exc_info=error)
        self._pause(name, error)
        self._reopen(name)
        refusal = RefusedError(self._pauses[name].reason, 503)
        work.answers += [(delivery.future, refusal) for delivery, _ in work.read[name] if delivery is not None]
        work.positions = {key: position for key, position in work.positions.items() if key[0] != name}
        work.quarantined = [each for each in work.quarantined if each[0] != name]
        work.read[name] = []

    def _quarantine(self, name: str, source: str, text: str, reason: str, now: float) -> None:
        super()._quarantine(name, source, text, reason, now)
        count = self.assets[name].record.counts["quarantined"]
        said = f"{counted(count, 'row')} could not be scored and set aside. The last: {text[:200]} ({reason})"
        self.enter_problem(f"rows of {name}", said)

    def _act(self, name: str, alarm: str, who: str, given: dict[str, Any], _: float) -> tuple[list[Event], Any]:
        """Do something with an alarm; a label or a comment also if it is closed."""
        written = next((Alarm.from_dict(each) for each in self.store.alarms_of([alarm])), None)
        book = next((each for each in self._books.values() if alarm in (a.id for a in each.book.alarms())), None)
        if written is None or (book is None and name not in ("label", "comment")):
            raise LookupError(f"There is no {'open ' if name not in ('label', 'comment') else ''}alarm {alarm!r:.80}.")
        asset = self.assets.get(written.asset)
        now = book.now() if book is not None else time.time() if asset is None else asset.book.now()
        words: dict[str, Any] = {key: str(given.get(key) or "") for key in ("reason", "comment")}
        hours = given.get("hours")
        until = None if hours is None else now + 3600 * float(hours)
        words |= {"until": until} if name == "shelve" else {}
        events: list[Event] = []
        answer: Alarm | Label = written
        if name == "label":
            if words["reason"] not in REASONS:
                raise RefusedError(f"The reason must be one of {', '.join(REASONS)}.")
            events, answer = self._replace_label(written, who, now, **words)
        elif book is None:
            answer = self._comment_closed(written, who, now, **words)
        else:
            events = book.named(book.book.act(name, alarm, who, now, **words))
            if name == "acknowledge" and until is not None:  # remind me in so many hours
                events += book.named(book.book.act("shelve", alarm, who, now, words["reason"], until=until))
            changed = [event.alarm for event in events if isinstance(event, Change) and event.alarm is not None]
            answer = next((each for each in reversed(changed) if each.id == alarm), written)
            if name == "acknowledge" and words["reason"] in REASONS:
                events += self._replace_label(answer, who, now, **words)[0]
        details = {**words, "asset": written.asset, "time": now}
        self.store.add_audit(time.time(), who, name.replace("_", " "), alarm, details)
        return events, answer.as_dict()

    def _replace_label(
        self, alarm: Alarm, who: str, now: float, reason: str, comment: str
    ) -> tuple[list[Event], Label]:
        """Label an alarm; the label that it had is taken back."""
        label = label_alarm(alarm, reason, who, now, self._labels.values(), comment)
        mine = [each for each in self._labels.values() if each.subject == alarm.id and each.holds]
        return self._save_labels([*(replace(each, withdrawn_by=who, withdrawn_at=now) for each in mine), label]), label

    def _comment_closed(self, alarm: Alarm, who: str, now: float, reason: str, comment: str) -> Alarm:
        """Add a comment to an alarm that is closed; it stays so."""
        said = replace(alarm, comment=comment or alarm.comment, changes=alarm.changes + 1)
        change = Change(
            f"{alarm.id}.{said.changes}", now, "commented", alarm.asset, alarm.state, said, who, reason, comment
        )
        self.store.add_change(change.id, alarm.id, now, change.as_dict())
        self.store.save_alarm(alarm.id, alarm.asset, alarm.since, False, said.as_dict())
        return said

    def _silence(self, pattern: str, who: str, hours: float, reason: str, _: float) -> tuple[list[Event], Any]:
        events: list[Event] = []
        matching = [asset.book for name, asset in self.assets.items() if fnmatchcase(name, pattern)]
        for book in dict.fromkeys(matching):
            now = book.now()
            events += book.named(book.book.silence(pattern, who, now, now + 3600 * hours, reason=reason))
        if not events:
            raise LookupError(f"No asset has a name like {pattern!r:.80}.")
        self.store.add_audit(time.time(), who, "silence", pattern, {"hours": hours, "reason": reason})
        return events, [event.as_dict() for event in events]

    def _end_silence(self, identity: str, who: str, now: float) -> tuple[list[Event], None]:
        name, _, own = identity.rpartition(":")
        if name not in self._books:
            raise LookupError(f"There is no silence {identity!r:.80}, or it has ended.")
        book = self._books[name]
        events = book.named(book.book.end_silence(own, who, book.now()))
        self.store.add_audit(now, who, "end silence", identity, {})
        return events, None

    def _wanted_switches(self) -> list[CycleTask]:
        """Return also the ends of silences that `penstock alarms silences` has asked for."""
        looked, found = self._next_look, super()._wanted_switches()
        if self._next_look == looked or not (wanted := self.store.mark(TO_END)):
            return found

        def end(now: float) -> tuple[list[Event], None]:
            self.store.save_book(f"~{TO_END}", [])
            events = list[Event]()
            for each in wanted:
                with suppress(LookupError, RefusedError):  # it has ended meanwhile
                    events += self._end_silence(each["id"], each["who"], now)[0]
            return events, None

        return [*found, CycleTask(end)]

    def _read_anew(self, name: str, who: str, now: float) -> tuple[list[Event], Any]:
        if self.options.assets[name].input is None:
            raise RefusedError(f"{name} has no file.", 409)
        asset = self.assets[name]
        asset.save_positions(self.store)
        asset.pack()
        self.store.save_asset(asset.record, with_state=True)
        self.store.forget_position(asset.record.id, "file")
        self._end_pause(name)
        self.clear_problem(f"lines of {name}")
        self._reopen(name)
        details = {"asset": name, "row": asset.record.rows + 1}
        self.store.add_audit(now, who, "read anew", name, details)
        return [], details

    def _with_model(
        self, asset: Asset, record: AssetRecord, options: WatchOptions, make: Callable[[], Scorer]
    ) -> Asset:
        name = record.name
        self._await_learner([name])
        if asset.source is None:  # its file may have been closed
            switched = self._asset_at(record, self.options.assets[name], make)
        else:
            switched = super()._with_model(asset, record, options, make)
        self._end_pause(name)
        return switched

    def _withdraw(self, identity: str, who: str, now: float) -> tuple[list[Event], None]:
        label = self._labels.get(identity)
        if label is None or not label.holds:
            raise LookupError(f"There is no label {identity!r:.80}, or it was taken back already.")
        events = self._save_labels([replace(label, withdrawn_by=who, withdrawn_at=now)])
        self.store.add_audit(now, who, "withdraw label", identity, {})
        return events, None

    def _save_labels(self, labels: Iterable[Label]) -> list[Event]:
        """Write labels, and return what the alarms of the assets that they are about say to them."""
        books: dict[Book, None] = {}
        for label in labels:
            self._labels[label.id] = label
            self.store.save_label(label.id, label.as_dict())
            about = label.asset.partition("/")[0]
            books |= {
                each.book: None for name, each in self.assets.items() if name.partition("/")[0] == about or not about
            }
        return [event for book in books for event in self._tell_labels(book)]

    def _write_events(self, events: Iterable[Event]) -> None:
        """Write changes and alarms, and put notifications into the outbox."""
        for event in events:
            if isinstance(event, Notification):  # with the alarms as they were after their last change before it
                wanted = dict.fromkeys((*event.new, *event.ended, *event.active))
                message = {**event.as_dict(), "alarms": self.store.alarms_of(wanted)}
                for target in self.targets:
                    self.store.add_message(event.id, target, event.time, message)
                continue
            subject = event.id if event.alarm is None else event.alarm.id
            self.store.add_change(event.id, subject, event.time, event.as_dict())
            if event.alarm is not None:
                is_open = event.kind != "closed"
                self.store.save_alarm(subject, event.asset, event.alarm.since, is_open, event.alarm.as_dict())

    def _due_notices(self) -> list[tuple[ServiceProblem, bool]]:
        """Return the problems that are to be told, and those of which it is to be told that they are over.

        What fails again and again is told now and then, however often that is.
        """
        now, found = time.monotonic(), list[tuple[ServiceProblem, bool]]()
        problems = dict(self.problems)
        for identity, problem in problems.items():
            told, failed = self._told.get(identity, (None, -math.inf))
            if told is None and now - failed >= _NOTICE_SECONDS:
                found.append((problem, False))
        for identity, (told, _) in self._told.items():
            if told is not None and identity not in problems:
                found.append((told, True))
        return found

    def _write_notices(self, notices: Iterable[tuple[ServiceProblem, bool]]) -> None:
        """Put messages on problems of the service itself into the outbox."""
        for problem, over in notices:
            identity = f"service:{problem.id}:{problem.since:.3f}:{'over' if over else 'new'}"
            lists: dict[str, Any] = {"new": [], "ended": [], "active": [], "alarms": []}
            message = {"id": identity, "time": problem.since, "kind": "problem", "group": "", "repeat": False, **lists}
            message |= {"problem": asdict(problem), "over": over}
            for target in self.targets:
                self.store.add_message(identity, target, time.time(), message)

    def _save(self, work: CycleWork, now: float) -> None:
        for each in work.quarantined:
            self._quarantine(*each, now)
        for (name, source), position in work.positions.items():
            identity = self.assets[name].record.id
            if position is None:
                self.store.forget_position(identity, source)
            else:
                self.store.save_position(identity, source, position)
        for name in work.read:
            self.assets[name].save_positions(self.store)
        self._save_states(work.read)
        self._clean(now)

    def _clean(self, now: float) -> None:
        """Remove what is old, of some assets at a time; by a clock that has just jumped, what is new could be."""
        if time.monotonic() >= self._next_cleaning:
            offset = time.time() - time.monotonic()
            jumped = abs(offset - self._clock_offset) > _CLOCK_JUMP
            self._clock_offset = offset
            self._to_clean = deque([] if jumped else self.store.asset_ids())
            self._next_cleaning = time.monotonic() + (_CLOCK_TRUST if jumped else _CLEANING_SECONDS)
        end = time.monotonic() + _CLEANING_PIECE
        while self._to_clean and time.monotonic() < end:
            asset = self._to_clean.popleft()
            self.store.remove_old(asset, now, self.options.keep_readings, self.options.keep_verdicts)

    def _save_states(self, touched: Iterable[str], *, every: bool = False) -> None:
        """Save assets, states that are due (or every one), and the alarms of those and where something happened."""
        for asset in map(self.assets.__getitem__, touched):
            due = every or asset.state_is_due()
            if due:
                asset.pack()
                asset.book.dirty = True
            self.store.save_asset(asset.record, with_state=due)
        for book in self._books.values():
            if book.dirty:
                self.store.save_book(book.name, book.state())
                book.dirty = False

    def _tell(self, touched: Iterable[str], events: Iterable[Event]) -> None:
        """Tell the listeners what has changed."""
        news = {
            "commit": self.commits,
            "assets": {name: self.assets[name].summary() for name in touched},
            "changes": [event.as_dict() for event in events if isinstance(event, Change)],
        }
        for listener in self.listeners:
            listener(news)

    def _check_disk(self) -> None:
        """Stop accepting while the disk is nearly full, and go on when there is room again."""
        if time.monotonic() < self._next_disk_check:
            return
        self._next_disk_check = time.monotonic() + _DISK_SECONDS
        free = shutil.disk_usage(self.store.path.parent).free / 1e6
        if free < self.options.min_free:
            text = f"The disk of {self.store.path} has only {free:,.0f} MB left (--min-free): no rows are taken in."
            self.enter_problem("disk", text)
        elif "disk" in self.problems and self.store.has_room():
            self.clear_problem("disk")


def _book_names(options: ServeOptions) -> dict[str, str]:
    """Return which assets share an alarm book: those of a group, and those that inhibit each other."""
    groups = {name: name.partition("/")[0] for name in options.assets}
    for pair in options.rules.inhibit:
        one, other = (groups.get(name.strip()) for name in pair.split(">"))
        groups = {name: one if group == other and one is not None else group for name, group in groups.items()}
    return groups


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
