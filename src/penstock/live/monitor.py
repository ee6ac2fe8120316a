"""Monitor a stream: the runtime of one asset without a service, whose verdicts go to a file.

Verdicts are written as soon as they are known; now and then, all that is needed to go on is committed to a store.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, fields
from itertools import combinations
from pathlib import Path
from typing import Any

from penstock._messages import listed
from penstock._parameters import ParameterError
from penstock._types import StreamScores
from penstock.explain import read_labels
from penstock.io import (
    BadLine,
    Batch,
    Feed,
    InputError,
    JsonLinesSink,
    OutputMark,
    continue_sink,
    open_feed,
    open_sink,
)
from penstock.live.alarm_files import AlarmClock, event_line, stream_name
from penstock.live.alarm_records import Event
from penstock.live.assets import Asset, Book, ScoredBatch, known_labels
from penstock.live.options import AlarmRules, WatchOptions
from penstock.live.runtime import BatchReport, CycleWork, ModelShelf, Runtime
from penstock.live.scorers import Scorer
from penstock.live.store import AssetRecord, Store
from penstock.storage import StorageError

# Options that decide how rows are read: a state belongs to them.
_READING = ("format", "delimiter", "time", "columns", "exclude", "timezone", "day_first", "time_format", "max_ahead",
            "step", "hold", "late")  # fmt: skip
_MOST_TEXTS = 20  # unknown texts are reported one by one, so many of them
_STORE = "watch.db"  # in the folder --state
_ANEW = "Put right what differs, or begin with an empty --state folder."
_MODELS = " Another model for the same --state: 'penstock model use'."


@dataclass
class Counts:
    """What has passed.

    samples, flagged : rows, and those that were flagged.
    missing : readings that were missing in them.
    malformed : lines that were no rows.
    unscored : rows without a score, for a reason that their verdict states.
    unknown : texts in rows that the model does not know.
    quarantined : rows that the model failed on; they are set aside.
    """

    samples: int = 0
    flagged: int = 0
    missing: int = 0
    malformed: int = 0
    unscored: int = 0
    unknown: int = 0
    quarantined: int = 0


@dataclass
class Observer:
    """Functions that are called while a stream is monitored; each is optional."""

    verdicts: Callable[[Counts, Batch, StreamScores], None] = lambda counts, batch, scores: None
    fault: Callable[[BadLine], None] = lambda fault: None
    warning: Callable[[str], None] = lambda text: None


class Monitor(Runtime):
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
    >>> Monitor(options).run().samples
    50
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
        shelf = ModelShelf()
        self._settings = self._all_settings(shelf.make(options)())
        self._begun = False  # whether the columns are known and the first commit is done
        self._sealed = False  # no commit from here on: the line that comes now may still grow
        self._lost = False  # whether there is something that would not come again after a kill
        self._answered = True  # whether all lines that were read have a verdict or a report
        self._error: InputError | None = None  # of a line, with --strict
        self._committed = (0, time.monotonic())  # samples at the last commit, and when it was
        self._named: Scorer | None = None  # whose inputs the output names
        self._sinks: dict[str, JsonLinesSink] = {}
        self._reported: set[tuple[str, str]] = set()
        path = None if str(options.input) == "-" else Path(options.input)
        if path is None and sys.stdin is None:
            raise InputError("Standard input is closed; open it, or give a file.")
        self._feed: Feed = open_feed(path, follow=options.follow)
        try:
            self._check_files(path)
            super().__init__(_open_store(options.state), shelf)
        except BaseException:
            self._feed.close()
            raise
        try:
            self._open()
        except BaseException:
            self.close()
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
                self._cycle()
            if self._begun and not self._sealed:
                with self.store.transaction():
                    self._commit(self._begin_cycle())
        except (BrokenPipeError, InputError):
            self._commit_last()
            raise
        finally:
            self.close()
        return self.counts

    @property
    def asset(self) -> Asset:
        """The asset that the stream is of."""
        (asset,) = self.assets.values()
        return asset

    @property
    def _source(self) -> Any:
        return self.asset.source

    @property
    def counts(self) -> Counts:
        """What has passed until now."""
        return Counts(**{each.name: self.asset.record.counts[each.name] for each in fields(Counts)})

    @property
    def variable_names(self) -> tuple[str, ...]:
        """The inputs of the model; none as long as they are not known."""
        return self.asset.scorer.variable_names

    @property
    def warmup(self) -> int:
        """How many samples the model takes in before it scores, if it is new."""
        return self.asset.scorer.warmup

    def close(self) -> None:
        """Close input, output and state."""
        self._feed.close()
        for sink in self._sinks.values():
            sink.close()
        self._sinks = {}
        self.store.close()

    def _commit_last(self) -> None:
        """Keep what was learned when an error ends the run.

        Not where lines of the last batch have no verdict yet and can be read again: they would be left out then.
        """
        if not self._begun or self._sealed or (self._feed.can_seek and not self._answered):
            return
        try:
            with self.store.transaction():
                self._commit(self._begin_cycle())
        except StorageError as error:  # the first error is what matters
            self._observer.warning(str(error))

    # Opening.

    def _check_files(self, path: Path | None) -> None:
        files = {"input": path, "--output": self._options.output, "--alarms": self._options.alarms}
        there = [(name, file) for name, file in files.items() if file is not None and file.exists()]
        for (name, file), (other_name, other) in combinations(there, 2):
            if file.samefile(other):
                raise StorageError(f"{other} is the {name} already; choose another {other_name}.")

    def _open(self) -> None:
        """Open the asset and the outputs, which go on where they were."""
        options, store = self._options, self.store
        known = store.asset_names()
        if not known:
            record = AssetRecord.new(stream_name(Path(options.input)), {})
            self._restore(record, self._shelf.make(options), {}, None)
            for name, file in self._files().items():
                self._sinks[name] = open_sink(file, overwrite=options.overwrite)
            return
        try:
            record = store.asset(known[0])
            positions = store.positions(record.id)
            changed = _differences(positions.pop("settings"), self._settings)
            if changed:
                more = _MODELS if "model was" in changed else ""
                raise StorageError(
                    f"The --state {options.state} was made with other settings: {changed}. {_ANEW}{more}"
                )
            marks = {name: positions.pop(name, None) for name in ("output", "alarms")}
            with store.transaction():
                make = self._shelf.open(store, record, options)
            self._restore(record, make, positions, store.book(""))
        except (InputError, StorageError):
            raise
        except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError) as error:
            raise StorageError(f"{store.path} is not what this version writes ({error}). {_ANEW}") from error
        self._continue(marks)

    def _files(self) -> dict[str, Path | None]:
        options = self._options
        return {"output": options.output} | ({} if options.alarms is None else {"alarms": options.alarms})

    def _restore(self, record: AssetRecord, make: Callable[[], Scorer], positions: dict[str, Any], saved: Any) -> None:
        """Make the asset at these positions, and its alarms, from a state of theirs if there is one."""
        options, kept = self._options, positions.pop("alarm clock", None)
        clock = AlarmClock() if kept is None else AlarmClock.restore(kept)
        asset = Asset(record, options, make, positions, self._feed, clock, has_alarms=options.alarms is not None)
        labels = [] if options.labels is None else read_labels(options.labels)
        if labels and not any(label.is_about(record.name) for label in labels):
            others = listed(sorted({label.asset for label in labels}))
            said = f"No label has an effect: they are of {others}, and this stream is {record.name!r:.100}."
            self._observer.warning(said)
        self._labels = {label.id: label for label in labels}
        asset.book = Book("", self._rules, known_labels(labels, [asset]), saved)
        self.assets = {record.name: asset}

    def _continue(self, marks: dict[str, OutputMark | None]) -> None:
        """Cut the outputs back to where the state is, and go on."""
        record = self.asset.record
        for name, file in self._files().items():
            next_row, keep = (record.rows + 1, not self._feed.can_seek) if name == "output" else (None, False)
            self._sinks[name], kept = continue_sink(file, marks[name], next_row, keep=keep)
            record.rows += kept
            record.counts["samples"] += kept
        self._committed = (record.rows, time.monotonic())
        self._begun = True
        if self._sinks["output"].mark() != marks["output"]:  # else the next start would look for the output of before
            with self.store.transaction():
                self._commit(self._begin_cycle())

    # Going on.

    def _cycle(self) -> None:
        """Read what has come, and do what follows from it."""
        now, work = self._begin_cycle(), CycleWork()
        may_commit = self._begun and not self._sealed
        work.jobs += self._wanted_switches() if may_commit else []
        batch = None if work.jobs else self.asset.read_file(self._room())
        if batch is not None:
            self._answered = False
            work.read[self.asset.record.name] = [(None, batch)]
        self._lost = self._lost or bool(work.jobs)
        self._carry_out(work, now)
        for _, answer in work.answers:
            is_refused = isinstance(answer, Exception)
            said = f"{answer}" if is_refused else "Version {version} of the model from row {row} on.".format(**answer)
            self._observer.warning(said)
        if self._error is not None:
            raise self._error
        self._answered = True
        self._sealed = self._source.provisional

    def _room(self) -> int:
        """Return how many lines may be read until something is to be committed."""
        return max(1, self._committed[0] + self._options.snapshot_every - self.asset.record.rows)

    def _is_due(self) -> bool:
        new, seconds = self.asset.record.rows - self._committed[0], time.monotonic() - self._committed[1]
        return new >= self._options.snapshot_every or (new > 0 and seconds >= self._options.snapshot_seconds)

    def _options_of(self, name: str) -> WatchOptions:
        return self._options

    def _remark(self, asset: Asset, remarks: list[str]) -> None:
        for remark in remarks:
            self._observer.warning(remark)

    def _leave(self, asset: Asset, work: CycleWork, error: Exception) -> None:
        if isinstance(error, InputError):
            raise error
        how = f"{type(error).__name__}: {error!s:.200}"
        raise InputError(f"The model fails on each of several rows ({how}).") from error

    def _keep(self, asset: Asset, scored: ScoredBatch) -> None:
        block, batch, clock = scored.block, scored.batch, asset.clock
        assert block is not None
        assert clock is not None
        self._report_unknown(set(scored.unknown_texts))
        if self._named is not asset.scorer:
            self._named = asset.scorer
            self._sinks["output"].name_variables(asset.scorer.variable_names)
        self._sinks["output"].write(block.first, batch.times, block.scores, block.reasons)
        if asset.has_alarms and block.first == 1 and clock.counts_rows and batch.times:
            said = f"The time {str(batch.times[0])!r:.40} cannot be read: for alarms, rows count as a minute apart."
            self._observer.warning(said)
        self._observer.verdicts(self.counts, batch, block.scores)

    def _answer(self, asset: Asset, part: BatchReport, work: CycleWork) -> None:
        """Report malformed lines and rows that cannot be used; with --strict, these end the run."""
        strict = self._options.strict
        for fault in sorted(part.faults, key=lambda fault: fault.line):
            if not strict:  # else the error says it
                self._observer.fault(fault)
        if strict and len(part.faults) > len(part.batch.faults):
            self._error = InputError(f"{part.faults[-1]} (--strict)")

    def _write_events(self, events: Iterable[Event]) -> None:
        if "alarms" in self._sinks and self.asset.clock is not None:
            lines = [event_line(event, self.asset.clock) for event in events]
            self._sinks["alarms"].write_lines(b"".join(lines))
            self._lost = self._lost or (bool(lines) and not self._feed.can_seek)  # a pipe cannot be read again

    def _report_unknown(self, found: set[tuple[str, str]]) -> None:
        """Report each text that the model does not know once, up to a number of them."""
        for column, text in sorted(found - self._reported):
            if len(self._reported) < _MOST_TEXTS:
                self._observer.warning(f"Column {column!r:.80} holds {text!r:.80}, which the model does not know.")
            self._reported.add((column, text))
            if len(self._reported) == _MOST_TEXTS:
                self._observer.warning("Further texts that the model does not know are only counted.")

    def _save(self, work: CycleWork, now: float) -> None:
        """Commit when it is time to, and when the columns are known: a kill can be continued from then on."""
        asset, begins = self.asset, not self._begun and self._source.columns is not None
        self._begun = self._begun or begins
        may_commit = self._begun and not self._sealed and self._error is None
        if may_commit and (begins or self._is_due() or self._lost or work.quarantined or self._source.provisional):
            self._commit(now, work)
        else:
            asset.record.counts["quarantined"] += len(work.quarantined)
            if asset.state_is_due():
                asset.pack()  # so that few rows are to be scored again if the model fails on one

    def _commit(self, now: float, work: CycleWork | None = None) -> None:
        """Write all that is needed to go on from here, inside a transaction."""
        store, asset = self.store, self.asset
        record = asset.record
        for sink in self._sinks.values():
            sink.sync()  # first: a state must not know of output that a power cut could take
        if not record.id:
            columns, record.id = record.columns, store.open_asset(record.name).id
            self._shelf.open(store, record, self._options)
            record.columns, asset.new_columns = columns, True
            store.save_position(record.id, "settings", self._settings)
        for each in [] if work is None else work.quarantined:
            self._quarantine(*each, now)
        asset.pack()
        store.save_asset(record, with_state=True)
        asset.save_positions(store)
        for name, sink in self._sinks.items():
            store.save_position(record.id, name, sink.mark())
        if asset.has_alarms and asset.clock is not None:
            store.save_position(record.id, "alarm clock", asset.clock.state())
            store.save_book("", asset.book.state())
        self._lost = False
        self._committed = (record.rows, time.monotonic())


def _open_store(folder: Path | None) -> Store:
    """Return the store in a folder, both made if they are not there; without a folder it is kept in memory."""
    if folder is None:
        return Store(None)
    try:
        Path(folder).mkdir(parents=True, exist_ok=True)
        return Store(Path(folder) / _STORE)
    except (FileExistsError, NotADirectoryError):
        raise StorageError(f"--state {folder}: a folder is needed, but that is a file, or in one.") from None
    except OSError as error:
        raise StorageError(f"--state {folder} cannot be written to: {error.strerror}.") from error


def _differences(saved: dict[str, Any], now: dict[str, Any]) -> str:
    """Return the settings that are not the same, in words; "" if all are."""
    names = [name for name in sorted({*saved, *now}) if saved.get(name) != now.get(name)]
    shown = [["not set" if value is None else repr(value) for value in (saved.get(n), now.get(n))] for n in names]
    return "; ".join(f"{name} was {before}, is {after}" for name, (before, after) in zip(names, shown, strict=True))
