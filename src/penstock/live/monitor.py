"""Monitor a stream: one asset without a service, whose verdicts go to a file.

Rows are read, scored and written, and now and then all that is needed to go on is committed to a store.
"""

from __future__ import annotations

import sys
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import asdict, dataclass
from itertools import combinations
from pathlib import Path
from typing import Any

from penstock._messages import listed
from penstock._parameters import ParameterError
from penstock._types import StreamScores
from penstock.io import (
    BadLine,
    Batch,
    Columns,
    Feed,
    InputError,
    JsonLinesSink,
    OutputError,
    OutputMark,
    continue_sink,
    open_feed,
    open_sink,
)
from penstock.live.alarm_files import AlarmClock, event_line, read_labels, stream_name
from penstock.live.assets import Asset, Book, known_labels
from penstock.live.options import AlarmRules, WatchOptions
from penstock.live.scorers import Scorer, Verdicts, scorer_maker
from penstock.live.store import AssetRecord, Store, StoreError

# Options that decide how rows are read: a state belongs to them.
_READING = ("format", "delimiter", "time", "columns", "exclude", "timezone", "day_first", "time_format", "max_ahead",
            "step", "hold", "late")  # fmt: skip
_MOST_LINES = 1 << 16  # at once, where nothing is to be committed before
_MOST_TEXTS = 20  # texts that were not learnt are reported one by one, so many of them
_STORE = "watch.db"  # in the folder --state
_ANEW = "Put right what differs, or begin with an empty --state folder."


@dataclass
class Counts:
    """What has passed.

    samples, flagged : rows, and those that were flagged.
    missing : readings that were missing in them.
    malformed : lines that were no rows.
    unscored : rows without a score, for a reason that their verdict states.
    unknown : texts in rows that the model had not learnt.
    """

    samples: int = 0
    flagged: int = 0
    missing: int = 0
    malformed: int = 0
    unscored: int = 0
    unknown: int = 0


@dataclass
class Observer:
    """Functions that are called while a stream is monitored; each is optional."""

    verdicts: Callable[[Counts, Batch, StreamScores], None] = lambda counts, batch, scores: None
    fault: Callable[[BadLine], None] = lambda fault: None
    warning: Callable[[str], None] = lambda text: None
    idle: Callable[[], None] = lambda: None


class Monitor:
    """Monitor a stream, from what was committed last if there is something.

    Killed at any moment and started again with the same options, it goes on so that the output is what an unbroken run
    writes: docs/watch.md.

    Parameters
    ----------
    options : WatchOptions
    observer : Observer, default=Observer()
    rules : AlarmRules, default=AlarmRules()
        For `options.alarms`.

    Attributes
    ----------
    counts : Counts

    Examples
    --------
    >>> import tempfile, numpy as np
    >>> from pathlib import Path
    >>> folder = Path(tempfile.mkdtemp())
    >>> rows = np.random.default_rng(0).random((50, 2))
    >>> _ = (folder / "in.csv").write_text("a,b\\n" + "".join(f"{a},{b}\\n" for a, b in rows))
    >>> options = WatchOptions(folder / "in.csv", output=folder / "out.jsonl", n_components=2, warmup=20)
    >>> Monitor(options).run()
    Counts(samples=50, flagged=0, missing=0, malformed=0, unscored=0, unknown=0)
    >>> (folder / "out.jsonl").read_text().count("\\n")
    50
    """

    def __init__(
        self, options: WatchOptions, observer: Observer | None = None, rules: AlarmRules | None = None
    ) -> None:
        options.check()
        self._options, self._rules = options, rules or AlarmRules()
        self._observer = observer or Observer()
        if options.alarms is None and (self._rules != AlarmRules() or options.labels is not None):
            raise ParameterError("alarms", " is needed where rules for alarms or labels are given.")
        make = scorer_maker(options)
        self._settings = self._all_settings(make())
        self._begun = False  # whether the columns are known and the first commit is done
        self._sealed = False  # no commit from here on: the line that comes now may still grow
        self._changed = False  # whether alarms have changed since the last commit
        self._answered = True  # whether all lines that were read have a verdict or a report
        self._committed = (0, time.monotonic())  # samples at the last commit, and when it was
        self._store: Store | None = None
        self._sink: JsonLinesSink | None = None
        self._alarm_sink: JsonLinesSink | None = None
        self._book: Book | None = None
        self._clock = AlarmClock()
        self._reported: set[tuple[str, str]] = set()
        self.counts = Counts()
        path = None if str(options.input) == "-" else Path(options.input)
        if path is None and sys.stdin is None:
            raise InputError("Standard input is closed; open it, or give a file.")
        self._feed: Feed = open_feed(path, follow=options.follow)
        try:
            self._check_files(path)
            self._asset = self._open(make)
        except BaseException:
            self._feed.close()
            self._close_outputs()
            raise

    def _all_settings(self, scorer: Scorer) -> dict[str, Any]:
        """Return what the output depends on apart from the rows; a state belongs to it."""
        asked = {name: getattr(self._options, name) for name in _READING}
        found: dict[str, Any] = {
            name: value if isinstance(value, str | None) else repr(value) for name, value in asked.items()
        }
        found |= {**scorer.settings(), "n_variables": self._options.n_variables}
        if self._options.alarms is not None:
            found |= {f"alarms: {name}": repr(value) for name, value in vars(self._rules).items()}
        return found

    def run(self, stopped: Callable[[], bool] = lambda: False) -> Counts:
        """Monitor until the input ends, or until `stopped` returns True, which is asked between batches."""
        try:
            while not (self._source.ended or stopped()):
                self._step()
            if self._begun and not self._sealed:
                self._commit()
        except (BrokenPipeError, InputError):
            self._commit_last()
            raise
        finally:
            self.close()
        return self.counts

    @property
    def _source(self) -> Any:
        return self._asset.source

    @property
    def variable_names(self) -> tuple[str, ...]:
        """The inputs of the model; none as long as they are not known."""
        return self._asset.scorer.variable_names

    @property
    def warmup(self) -> int:
        """How many samples the model takes in before it scores, if it is new."""
        return self._asset.scorer.warmup

    def close(self) -> None:
        """Close input, output and state."""
        self._feed.close()
        self._close_outputs()

    def _close_outputs(self) -> None:
        for part in (self._sink, self._alarm_sink, self._store):
            if part is not None:
                part.close()
        self._store = None

    def _commit_last(self) -> None:
        """Keep what was learnt when an error ends the run.

        Not where lines of the last batch have no verdict yet and can be read again: they would be left out then.
        """
        if not self._begun or self._sealed or (self._feed.can_seek and not self._answered):
            return
        try:
            self._commit()
        except StoreError as error:  # the first error is what matters
            self._observer.warning(str(error))

    # Opening.

    def _check_files(self, path: Path | None) -> None:
        files = {"input": path, "--output": self._options.output, "--alarms": self._options.alarms}
        there = [(name, file) for name, file in files.items() if file is not None and file.exists()]
        for (name, file), (other_name, other) in combinations(there, 2):
            if file.samefile(other):
                raise OutputError(f"{other} is the {name} already; choose another {other_name}.")

    def _open(self, make: Callable[[], Scorer]) -> Asset:
        """Open state and outputs, which go on where they were; return the asset."""
        options = self._options
        if options.state is not None:
            self._store = _open_store(options.state)
        known = [] if self._store is None else self._store.asset_names()
        record = AssetRecord.new(known[0] if known else stream_name(Path(options.input)), self._settings)
        if self._store is None or not known:
            asset = self._restore(make, record, {}, None)
            self._sink = open_sink(options.output, overwrite=options.overwrite)
            if options.alarms is not None:
                self._alarm_sink = open_sink(options.alarms, overwrite=options.overwrite)
            return asset
        try:
            record = self._store.asset(record.name)
            changed = differences(record.settings, self._settings)
            if changed:
                raise StoreError(f"The --state {options.state} was made with other settings: {changed}. {_ANEW}")
            positions = self._store.positions(record.id)
            self.counts = Counts(**{each: _whole(count, each) for each, count in record.counts.items()})
            marks = {each: _output_mark(positions.pop(each, None)) for each in ("output", "alarms")}
            asset = self._restore(make, record, positions, self._store.book(record.name))
        except (InputError, StoreError):
            raise
        except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError) as error:
            raise StoreError(f"{self._store.path} is not what this version writes ({error}). {_ANEW}") from error
        self._continue(asset, marks)
        return asset

    def _restore(self, make: Callable[[], Scorer], record: AssetRecord, positions: dict[str, Any], saved: Any) -> Asset:
        """Return the asset at these positions, and bring the alarms to a state of theirs."""
        options = self._options
        asset = Asset(record, options, make, positions, self._feed, of_the_present=False)
        if options.alarms is not None:
            labels = [] if options.labels is None else read_labels(options.labels)
            if labels and not any(label.is_about(record.name) for label in labels):
                others = listed(sorted({label.asset for label in labels}))
                said = f"No label has an effect: they are of {others}, and this stream is {record.name!r:.100}."
                self._observer.warning(said)
            known = known_labels(labels, [asset])
            self._book = Book("", self._rules, known, None if saved is None else saved["alarms"])
            self._clock = AlarmClock() if saved is None else AlarmClock.restore(saved["clock"])
        return asset

    def _continue(self, asset: Asset, marks: dict[str, OutputMark | None]) -> None:
        """Cut the outputs back to where the state is, and go on."""
        options = self._options
        self._sink, kept = continue_sink(
            options.output, marks["output"], self.counts.samples + 1, keep=not self._feed.can_seek
        )
        self.counts.samples += kept
        if options.alarms is not None:
            self._alarm_sink, _ = continue_sink(options.alarms, marks["alarms"], None)
        self._committed = (self.counts.samples, time.monotonic())
        self._sink.name_variables(asset.scorer.variable_names)
        self._begun = True
        if self._sink.mark() != marks["output"]:  # else the next start would look for the output of before
            self._asset = asset
            self._commit()

    # Going on.

    def _step(self) -> None:
        batch = self._source.next_batch(self._room())
        if batch is None:
            self._observer.idle()
        else:
            self._take(batch)
        if not self._begun and self._source.columns is not None:
            self._begin(self._source.columns)
        elif self._begun and not self._sealed:
            lost = self._changed and not self._feed.can_seek  # rows of a pipe cannot be read again
            if self._is_due() or lost or self._source.provisional:
                self._commit()
        self._sealed = self._source.provisional

    def _room(self) -> int:
        """Return how many lines may be read until something is to be committed."""
        if self._store is None:
            return _MOST_LINES
        return max(1, self._committed[0] + self._options.snapshot_every - self.counts.samples)

    def _is_due(self) -> bool:
        new, seconds = self.counts.samples - self._committed[0], time.monotonic() - self._committed[1]
        return new >= self._options.snapshot_every or (new > 0 and seconds >= self._options.snapshot_seconds)

    def _begin(self, columns: Columns) -> None:
        """Commit for the first time when the columns are known, before any row: a kill can be continued from now on."""
        assert self._sink is not None
        self._asset.scorer.begin(columns.variable_names)
        self._asset.record.columns = columns.variable_names
        self._sink.name_variables(self.variable_names)
        self._begun = True
        self._commit()

    def _take(self, batch: Batch) -> None:
        self._answered = False
        for remark in batch.remarks:
            self._observer.warning(remark)
        refused = self._judge(batch) if len(batch.lines) else []
        faults = batch.faults + [self._source.fault(line, reason) for line, reason in refused]
        for fault in sorted(faults, key=lambda fault: fault.line):
            self.counts.malformed += 1
            if not self._options.strict:  # else the error says it
                self._observer.fault(fault)
        if refused and self._options.strict:
            raise InputError(f"{faults[-1]} (--strict)")
        self._answered = True

    def _judge(self, batch: Batch) -> list[tuple[int, str]]:
        """Score the rows and write the verdicts; return the rows that the model refused."""
        assert self._sink is not None
        verdicts = self._asset.scorer.score(batch, self._options.n_variables, strict=self._options.strict)
        scores, counts = verdicts.scores, self.counts
        first = counts.samples + 1
        for name, count in verdicts.counts(batch).items():  # before they are written: they are learnt, even if no
            setattr(counts, name, getattr(counts, name) + count)  # reader is left
        self._report_unknown(set(verdicts.unknown_texts))
        self._sink.write(first, batch.times, scores, verdicts.reasons)
        self._raise_alarms(first, batch, verdicts)
        self._observer.verdicts(counts, batch, scores)
        return verdicts.refused

    def _raise_alarms(self, first_row: int, batch: Batch, found: Verdicts) -> None:
        """Write what the alarms say to verdicts on rows of which the first has this number."""
        if self._book is None or self._alarm_sink is None:
            return
        clock, times, name = self._clock, batch.times, self._asset.record.name
        clock.reader = clock.reader or self._source.reader
        if clock.counts_rows is None and times and batch.seconds is None:
            said = f"The time {str(times[0])!r:.40} cannot be read: for alarms, rows count as a minute apart."
            self._observer.warning(said)
        seconds = clock.seconds(batch.seconds, first_row, len(found.scores.scores))
        events = self._book.take(name, found.for_alarms(name, seconds, self.variable_names), self.counts.samples)
        self._alarm_sink.write_lines(b"".join(event_line(event, clock) for event in events))
        self._changed = self._changed or bool(events)

    def _report_unknown(self, found: set[tuple[str, str]]) -> None:
        """Report each text that the model has not learnt once, up to a number of them."""
        for column, text in sorted(found - self._reported):
            if len(self._reported) < _MOST_TEXTS:
                self._observer.warning(f"Column {column!r:.80} holds {text!r:.80}, which the model has not learnt.")
            self._reported.add((column, text))
            if len(self._reported) == _MOST_TEXTS:
                self._observer.warning("Further texts that the model has not learnt are only counted.")

    def _enter(self, store: Store, record: AssetRecord) -> None:
        """Write the asset into a new store, and the one version that its model has."""
        columns, model, now = record.columns, str(self._options.model or ""), time.time()
        record.id = store.open_asset(record.name).id
        version = store.add_model(record.id, str(self._settings["model"] or "online"), None, model, "penstock", now)
        store.use_model(record, version, self._settings, now)
        record.columns = columns
        store.save_columns(record, self.variable_names)

    def _commit(self) -> None:
        """Keep all that is needed to go on from here, in one transaction."""
        store, asset = self._store, self._asset
        if store is None:
            return
        assert self._sink is not None
        for sink in (self._sink, self._alarm_sink):
            if sink is not None:
                sink.sync()  # first: a state must not know of output that a power cut could take
        record = asset.record
        with store.transaction():
            if not record.id:
                self._enter(store, record)
            record.rows, record.counts = self.counts.samples, Counter(asdict(self.counts))
            asset.pack(time.time())
            store.save_asset(record, with_state=True)
            store.save_position(record.id, "file", self._source.position())
            store.save_position(record.id, "output", self._sink.mark())
            if self._book is not None and self._alarm_sink is not None:
                store.save_position(record.id, "alarms", self._alarm_sink.mark())
                store.save_book(record.name, {"alarms": self._book.state(), "clock": self._clock.state()})
        self._changed = False
        self._committed = (self.counts.samples, time.monotonic())


def _open_store(folder: Path) -> Store:
    """Return the store in a folder, both made if they are not there."""
    try:
        Path(folder).mkdir(parents=True, exist_ok=True)
        return Store(Path(folder) / _STORE)
    except (FileExistsError, NotADirectoryError):
        raise StoreError(f"--state {folder}: a folder is needed, but that is a file, or in one.") from None
    except OSError as error:
        raise StoreError(f"--state {folder} cannot be written to: {error.strerror}.") from error


def differences(saved: dict[str, Any], now: dict[str, Any]) -> str:
    """Return the settings that are not the same, in words; "" if all are.

    >>> differences({"alpha": 0.8, "model": None}, {"alpha": 0.5, "model": "3f2a"})
    "alpha was 0.8, is 0.5; model was not set, is '3f2a'"
    """
    names = [name for name in sorted({*saved, *now}) if saved.get(name) != now.get(name)]
    shown = [["not set" if value is None else repr(value) for value in (saved.get(n), now.get(n))] for n in names]
    return "; ".join(f"{name} was {before}, is {after}" for name, (before, after) in zip(names, shown, strict=True))


def _output_mark(mark: Any) -> OutputMark | None:
    """Return the mark of an output; None if it went where nothing can be taken back."""
    if mark is None:
        return None
    if not isinstance(mark, dict) or not isinstance(mark.get("tail"), str):
        raise StoreError(f"What the --state says of an output makes no sense. {_ANEW}")
    return {"length": _whole(mark.get("length"), "output"), "tail": mark["tail"]}


def _whole(value: object, name: str) -> int:
    if type(value) is not int or value < 0:
        raise StoreError(f"What the --state says of {name} is {value!r:.40}, not a whole number ≥ 0. {_ANEW}")
    return value
