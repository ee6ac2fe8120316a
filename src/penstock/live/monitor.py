"""Monitor a stream: read rows, score them, write verdicts, and take snapshots in between."""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import asdict, dataclass
from itertools import combinations
from pathlib import Path
from typing import Any

from penstock._parameters import ParameterError
from penstock._types import StreamScores
from penstock.io import (
    AlignedSource,
    AnySource,
    Batch,
    Columns,
    Fault,
    InputError,
    JsonLinesSink,
    OutputError,
    OutputMark,
    RowSource,
    SnapshotError,
    Snapshots,
    columns_at,
    continue_sink,
    differences,
    open_feed,
    open_sink,
)
from penstock.live.alarm_files import AlarmWriter, read_labels, stream_name
from penstock.live.options import AlarmRules, WatchOptions
from penstock.live.scorers import Scorer, scorer_maker

# Options that decide how rows are read: a state belongs to them.
_READING = ("format", "delimiter", "time", "columns", "exclude", "timezone", "day_first", "time_format", "max_ahead",
            "step", "hold", "late")  # fmt: skip
_MOST_LINES = 1 << 16  # at once, where no snapshot is due before
_MOST_TEXTS = 20  # texts that were not learnt are reported one by one, so many of them


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
    fault: Callable[[Fault], None] = lambda fault: None
    warning: Callable[[str], None] = lambda text: None
    idle: Callable[[], None] = lambda: None


class Monitor:
    """Monitor a stream, from the newest sound snapshot on if there is one.

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
        self._options = options
        self._observer = observer or Observer()
        self._make_scorer = scorer_maker(options)
        self._scorer: Scorer = self._make_scorer()
        table = options.table
        asked = {name: getattr(options, name) for name in _READING}
        self._settings = {
            **{name: value if isinstance(value, str | None) else repr(value) for name, value in asked.items()},
            **self._scorer.settings(),
            "n_variables": options.n_variables,
        }
        self._alarms: AlarmWriter | None = None
        if options.alarms is None and (rules not in (None, AlarmRules()) or options.labels is not None):
            raise ParameterError("alarms", " is needed where rules for alarms or labels are given.")
        if options.alarms is not None:
            labels = [] if options.labels is None else read_labels(options.labels)
            labels = [*labels, *self._scorer.labels]
            name = stream_name(Path(options.input))
            self._alarms = AlarmWriter(options.alarms, name, rules or AlarmRules(), self._observer.warning, labels)
            self._settings |= self._alarms.settings()
        self._begun = False  # whether the columns are known and the first snapshot is written
        self._sealed = False  # no snapshot from here on: the line that comes now may still grow
        self._changed = False  # whether alarms have changed since the last snapshot
        self._answered = True  # whether all lines that were read have a verdict or a report
        self._snapshots: Snapshots | None = None
        self._sink: JsonLinesSink | None = None
        self._reported: set[tuple[str, str]] = set()
        self.counts = Counts()
        path = None if str(options.input) == "-" else Path(options.input)
        if path is None and sys.stdin is None:
            raise InputError("Standard input is closed; open it, or give a file.")
        self._feed = open_feed(path, follow=options.follow)
        self._table = self._scorer.table_options(table)
        self._aligning = self._scorer.aligning(options)
        if self._aligning is not None:
            self._table = self._aligning.options(self._table)
        rows = RowSource(self._feed, self._table, options.strict, max_ahead=options.seconds("max_ahead"))
        self._source: AnySource = rows if self._aligning is None else AlignedSource(rows, self._aligning)
        try:
            self._open(path)
        except BaseException:
            self.close()
            raise

    def run(self, stopped: Callable[[], bool] = lambda: False) -> Counts:
        """Monitor until the input ends, or until `stopped` returns True, which is asked between batches."""
        try:
            while not (self._source.ended or stopped()):
                self._step()
            if self._begun and not self._sealed:
                self._write_snapshot()
        except (BrokenPipeError, InputError):
            self._write_last_snapshot()
            raise
        finally:
            self.close()
        return self.counts

    @property
    def variable_names(self) -> tuple[str, ...]:
        """The inputs of the model; none as long as they are not known."""
        return self._scorer.variable_names

    @property
    def warmup(self) -> int:
        """How many samples the model takes in before it scores, if it is new."""
        return self._scorer.warmup

    def close(self) -> None:
        """Close input, output and state."""
        for part in (self._source, self._sink, self._alarms, self._snapshots):
            if part is not None:
                part.close()

    def _write_last_snapshot(self) -> None:
        """Keep what was learnt when an error ends the run.

        Not where lines of the last batch have no verdict yet and can be read again: they would be left out then.
        """
        if not self._begun or self._sealed or (self._feed.can_seek and not self._answered):
            return
        try:
            self._write_snapshot()
        except SnapshotError as error:  # the first error is what matters
            self._observer.warning(str(error))

    def _open(self, path: Path | None) -> None:
        options, saved = self._options, None
        output = options.output
        files = {"input": path, "--output": output, "--alarms": options.alarms}
        there = [(name, file) for name, file in files.items() if file is not None and file.exists()]
        for (name, file), (other_name, other) in combinations(there, 2):
            if file.samefile(other):
                raise OutputError(f"{other} is the {name} already; choose another {other_name}.")
        if options.state is not None:
            self._snapshots = Snapshots(
                Path(options.state), every=options.snapshot_every, seconds=options.snapshot_seconds
            )
            saved = self._snapshots.newest(self._restored, self._observer.warning)
        if saved is None:
            self._sink = open_sink(output, overwrite=options.overwrite)
            if self._alarms is not None:
                self._alarms.open(overwrite=options.overwrite)
        else:
            self._continue(*saved)

    def _restored(self, state: dict[str, Any]) -> tuple[dict[str, Any], Scorer]:
        """Return a snapshot and the scorer in it; SnapshotError if they are not for these options."""
        scorer = self._make_scorer()
        try:
            changed = differences(state["settings"], self._settings)
            if not changed:
                # A good checksum says that it is what was written; another version may have written something else.
                for name, value in vars(Counts(**state["counts"])).items():
                    _whole(value, f"counts: {name}")
                _output_mark(state)
                names = columns_at(state["input"], self._table, scorer.aligning(self._options)).variable_names
                if state["detector"] is not None:
                    scorer.restore(state["detector"])
                if self._alarms is not None:
                    self._alarms.restore(state["alarms"])
                scorer.begin(names)
        except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError) as error:
            raise SnapshotError(f"it is not what this version writes ({error}).") from error
        if changed:
            raise SnapshotError(f"it was made with other settings: {changed}.")
        return state, scorer

    def _continue(self, saved: dict[str, Any], scorer: Scorer) -> None:
        assert self._snapshots is not None
        self._scorer = scorer
        self._source.continue_from(saved["input"])
        self.counts = Counts(**saved["counts"])
        self._sink, kept = continue_sink(
            self._options.output, _output_mark(saved), self.counts.samples + 1, keep=not self._feed.can_seek
        )
        self.counts.samples += kept
        if self._alarms is not None:
            self._alarms.open(saved["alarms"])
        self._snapshots.continue_at(self.counts.samples)
        self._sink.name_variables(scorer.variable_names)
        self._begun = True
        if self._sink.mark() != _output_mark(saved):  # else the next start would look for the output of before
            self._write_snapshot()

    def _step(self) -> None:
        snapshots, samples = self._snapshots, self.counts.samples
        batch = self._source.next_batch(_MOST_LINES if snapshots is None else snapshots.room(samples))
        if batch is None:
            self._observer.idle()
        else:
            self._take(batch)
        if not self._begun and self._source.columns is not None:
            self._begin(self._source.columns)
        elif self._begun and not self._sealed:
            due = snapshots is not None and snapshots.due(self.counts.samples)
            lost = self._changed and not self._feed.can_seek  # rows of a pipe cannot be read again
            if due or lost or self._source.provisional:
                self._write_snapshot()
        self._sealed = self._source.provisional

    def _begin(self, columns: Columns) -> None:
        """Write the first snapshot when the columns are known, before any row: a kill can be continued from now on."""
        assert self._sink is not None
        self._scorer.begin(columns.variable_names)
        self._sink.name_variables(self._scorer.variable_names)
        self._begun = True
        self._write_snapshot()

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
        verdicts = self._scorer.score(batch, self._options.n_variables, strict=self._options.strict)
        scores, counts = verdicts.scores, self.counts
        first = counts.samples + 1
        for name, count in verdicts.counts(batch).items():  # before they are written: they are learnt, even if no
            setattr(counts, name, getattr(counts, name) + count)  # reader is left
        self._report_unknown(set(verdicts.unknown_texts))
        self._sink.write(first, batch.times, scores, verdicts.reasons)
        if self._alarms is not None:
            changed = self._alarms.take(first, batch, self._source.reader, verdicts, self._scorer.variable_names)
            self._changed = self._changed or changed
        self._observer.verdicts(counts, batch, scores)
        return verdicts.refused

    def _report_unknown(self, found: set[tuple[str, str]]) -> None:
        """Report each text that the model has not learnt once, up to a number of them."""
        for column, text in sorted(found - self._reported):
            if len(self._reported) < _MOST_TEXTS:
                self._observer.warning(f"Column {column!r:.80} holds {text!r:.80}, which the model has not learnt.")
            self._reported.add((column, text))
            if len(self._reported) == _MOST_TEXTS:
                self._observer.warning("Further texts that the model has not learnt are only counted.")

    def _write_snapshot(self) -> None:
        if self._snapshots is None:
            return
        assert self._sink is not None
        self._sink.sync()  # first: a snapshot must not know of output that a power cut could take
        mark, self._changed = self._sink.mark(), False
        state = {
            "settings": self._settings,
            "input": self._source.position(),
            "output": mark and mark["length"],
            "output_tail": mark and mark["tail"],
            "counts": asdict(self.counts),
            "detector": self._scorer.state(),
            "alarms": None if self._alarms is None else self._alarms.state(),
        }
        self._snapshots.write(state, self.counts.samples)


def _output_mark(state: dict[str, Any]) -> OutputMark | None:
    """Return the mark of the output in a snapshot; None if it went where nothing can be taken back."""
    length, tail = state["output"], state["output_tail"]
    if length is None and tail is None:
        return None
    if not isinstance(tail, str):
        raise TypeError("output_tail is no text")
    return {"length": _whole(length, "output"), "tail": tail}


def _whole(value: object, name: str) -> int:
    if type(value) is not int or value < 0:
        raise ValueError(f"{name} is {value!r}, not a whole number ≥ 0")
    return value
