"""Monitor a stream: read rows, score them, write verdicts, and take snapshots in between."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from penstock._types import StreamScores
from penstock.io import (
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
    TableOptions,
    check_position,
    continue_sink,
    differences,
    open_feed,
    open_sink,
    quoted,
)

_PLAIN = (type(None), bool, int, float, str)


class StreamDetector(Protocol):
    """What a watch asks of a detector; `OnlineNSNMF` has it."""

    def process(self, X: Any, n_variables: int = 3) -> StreamScores: ...
    def get_params(self, deep: bool = True) -> dict[str, Any]: ...
    def _pack(self) -> dict[str, Any]: ...
    def _unpack(self, state: dict[str, Any]) -> None: ...


@dataclass(frozen=True)
class WatchPlan:
    """What to watch, with what, and where verdicts and snapshots go. None as a path: standard input or output."""

    detector: Callable[[], StreamDetector]  # makes one that is ready for the first row, each time the same
    origin: str | None = None  # what that one has learnt before, if anything: a name for it
    input: Path | None = None
    follow: bool = False
    table: TableOptions = field(default_factory=TableOptions)
    strict: bool = False
    output: Path | None = None
    overwrite: bool = False
    n_variables: int = 3
    state: Path | None = None
    snapshot_every: int = 50_000
    snapshot_seconds: float = 10.0

    def settings(self) -> dict[str, Any]:
        """All that the verdicts depend on beside the input, in plain values: a snapshot only suits the same."""
        parameters = self.detector().get_params(deep=False)
        chosen = {**parameters, **asdict(self.table), "n_variables": self.n_variables, "model": self.origin}
        return {name: value if isinstance(value, _PLAIN) else repr(value) for name, value in chosen.items()}


@dataclass
class Counts:
    """What has passed: samples, those flagged, readings that were missing in them, and lines that were no samples."""

    samples: int = 0
    flagged: int = 0
    missing: int = 0
    malformed: int = 0


@dataclass
class Observer:
    """Who is told while a watch runs; each is optional."""

    verdicts: Callable[[Counts, Batch, StreamScores], None] = lambda counts, batch, scores: None
    fault: Callable[[Fault], None] = lambda fault: None
    warning: Callable[[str], None] = lambda text: None
    idle: Callable[[], None] = lambda: None


def check_saved(state: dict[str, Any], options: TableOptions) -> Columns:
    """The columns of a snapshot; ValueError, TypeError or LookupError if a watch could not go on from it.

    A good checksum only says that a snapshot is what was written; another version may have written something else.
    """
    counts = vars(Counts(**state["counts"]))
    for name, value in counts.items():
        _whole(value, f"counts: {name}")
    output_mark(state)
    return check_position(state["input"], options)


def pack_output(mark: OutputMark | None) -> dict[str, Any]:
    """A mark of the output as it is in a snapshot."""
    return {"output": mark and mark["length"], "output_tail": mark and mark["tail"]}


def output_mark(state: dict[str, Any]) -> OutputMark | None:
    """The mark of the output in a snapshot; None if it went where nothing can be taken back."""
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


def process_with_refusals(
    detector: StreamDetector, batch: Batch, n_variables: int, names: tuple[str, ...], *, stop: bool
) -> tuple[StreamScores, list[tuple[int, str]]]:
    """Scores, and for each row that was refused its line and the reason; the batch is left with the other rows.

    Without scaling, rows with negative or huge values are refused. A refusal leaves the detector as it was, and scores
    do not depend on how rows are batched, so that the others can be passed one by one. With `stop`, the first refusal
    ends it.
    """
    try:
        return detector.process(batch.values, n_variables), []
    except ValueError:
        if detector.get_params(deep=False).get("scale") is not None:
            raise  # then no row can be the reason
    parts, refused, taken = [], [], []
    for number, row in enumerate(batch.values):
        try:
            parts.append(detector.process(row.reshape(1, -1), n_variables))
            taken.append(number)
        except ValueError as error:
            refused.append((batch.lines[number], with_names(str(error), names)))
            if stop:
                break
    batch.values = batch.values[taken]
    batch.times = None if batch.times is None else [batch.times[number] for number in taken]
    return _joined(parts, min(n_variables, len(names))), refused


def with_names(words: str, names: tuple[str, ...]) -> str:
    """A detector's words about an array, of one row where they are about a row, in the user's names.

    >>> with_names("Columns [0, 2] had no reading", ("flow", "head", "power"))
    'Columns "flow", "power" had no reading'
    """

    def named(found: re.Match[str]) -> str:
        return ", ".join(quoted(names[int(number)]) for number in found[1].split(", "))

    if not names:
        return words
    words = re.sub(r"row 0, column (\d+)", lambda found: f"column {named(found)}", words)
    return re.sub(r"Columns \[(\d+(?:, \d+)*)\]", lambda found: f"Columns {named(found)}", words)


def _joined(parts: list[StreamScores], n_variables: int) -> StreamScores:
    none = np.empty(0)
    pairs = np.empty((0, n_variables))
    parts = [StreamScores(none, none, none.astype(np.bool_), pairs.astype(np.intp), pairs), *parts]
    joined: dict[str, Any] = {
        field.name: np.concatenate([getattr(part, field.name) for part in parts]) for field in fields(StreamScores)
    }
    return StreamScores(**joined)


_MOST_LINES = 1 << 20  # at once, where no snapshot is due before


class Watch:
    """A watch that is ready to run: opened from the newest good snapshot, if there is one.

    Parameters
    ----------
    plan : WatchPlan
    observer : Observer
        Is told of verdicts, malformed lines and snapshots that were passed over.

    Attributes
    ----------
    counts : Counts

    Examples
    --------
    >>> import tempfile, numpy as np
    >>> from pathlib import Path
    >>> from penstock import OnlineNSNMF
    >>> folder = Path(tempfile.mkdtemp())
    >>> rows = np.random.default_rng(0).random((50, 2))
    >>> _ = (folder / "in.csv").write_text("a,b\\n" + "".join(f"{a},{b}\\n" for a, b in rows))
    >>> def detector():
    ...     return OnlineNSNMF(n_components=2, random_state=0)
    >>> Watch(WatchPlan(detector, input=folder / "in.csv", output=folder / "out.jsonl")).run()
    Counts(samples=50, flagged=..., missing=0, malformed=0)
    >>> (folder / "out.jsonl").read_text().count("\\n")
    50
    """

    def __init__(self, plan: WatchPlan, observer: Observer | None = None) -> None:
        self._plan = plan
        self._observer = observer or Observer()
        self._settings = plan.settings()
        self._begun = False  # whether the columns are known and the first snapshot is written
        self._sealed = False  # no snapshot from here on: the line that comes now may yet grow
        self._answered = True  # whether all lines that were handed out have their verdict or their report
        self._snapshots: Snapshots | None = None
        self._sink: JsonLinesSink | None = None
        self.counts = Counts()
        if plan.input is None and sys.stdin is None:
            raise InputError("Standard input is closed; open it, or give a file.")
        self._feed = open_feed(plan.input, follow=plan.follow)
        self._source = RowSource(self._feed, plan.table, plan.strict)
        try:
            self._open()
        except BaseException:
            self.close()
            raise

    def run(self, stopped: Callable[[], bool] = lambda: False) -> Counts:
        """Watch until the input ends, or until `stopped` says so, which is asked between batches."""
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
        """The columns that are measured; none as long as they are not known."""
        return () if self._source.columns is None else self._source.columns.variable_names

    @property
    def warmup(self) -> int:
        """How many samples the detector takes in before it scores, if it is new."""
        parameters = self._detector.get_params(deep=False)
        return int(parameters.get("warmup") or parameters.get("buffer_size") or 0)

    def close(self) -> None:
        """Let go of input, output and state."""
        for part in (self._source, self._sink, self._snapshots):
            if part is not None:
                part.close()

    def _write_last_snapshot(self) -> None:
        """At an end by an error: keep what was learnt.

        Not where lines of the last batch were left unanswered and can be read again: they would be passed over then.
        """
        if not self._begun or self._sealed or (self._feed.can_seek and not self._answered):
            return
        try:
            self._write_snapshot()
        except SnapshotError as error:  # the first error is what matters
            self._observer.warning(str(error))

    def _open(self) -> None:
        plan, saved = self._plan, None
        if plan.input is not None and plan.output is not None and _same_file(plan.input, plan.output):
            raise OutputError(f"{plan.output} is the input; choose another --output.")
        if plan.state is not None:
            self._snapshots = Snapshots(plan.state, every=plan.snapshot_every, seconds=plan.snapshot_seconds)
            saved = self._snapshots.newest(self._restored, self._observer.warning)
        if saved is None:
            self._detector, self._learnt = plan.detector(), False
            self._sink = open_sink(plan.output, overwrite=plan.overwrite)
        else:
            self._continue(*saved)

    def _restored(self, state: dict[str, Any]) -> tuple[dict[str, Any], StreamDetector]:
        """A snapshot and the detector in it; SnapshotError if they are not for this plan."""
        detector = self._plan.detector()
        try:
            changed = differences(state["settings"], self._settings)
            if not changed:
                names = check_saved(state, self._plan.table).variable_names
                if state["detector"] is not None:
                    detector._unpack(state["detector"])
                _adopt_columns(detector, names)
        except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError) as error:
            raise SnapshotError(f"it is not what this version writes ({error}).") from error
        if changed:
            raise SnapshotError(f"it was made with other settings: {changed}.")
        return state, detector

    def _continue(self, saved: dict[str, Any], detector: StreamDetector) -> None:
        assert self._snapshots is not None
        self._detector, self._learnt = detector, saved["detector"] is not None
        self._source.continue_from(saved["input"])
        self.counts = Counts(**saved["counts"])
        self._sink, kept = continue_sink(
            self._plan.output, output_mark(saved), self.counts.samples + 1, keep=not self._feed.can_seek
        )
        self.counts.samples += kept
        self._snapshots.continue_at(self.counts.samples)
        assert self._source.columns is not None
        self._sink.name_variables(self._source.columns.variable_names)
        self._begun = True
        if self._sink.mark() != output_mark(saved):  # else the next start would look for the output of before
            self._write_snapshot()

    def _step(self) -> None:
        batch = self._source.next_batch(self._room())
        if batch is None:
            self._observer.idle()
        else:
            self._take(batch)
        if not self._begun and self._source.columns is not None:
            self._begin(self._source.columns)
        elif self._begun and not self._sealed and (self._due() or self._source.provisional):
            self._write_snapshot()
        self._sealed = self._source.provisional

    def _begin(self, columns: Columns) -> None:
        """The columns are known and no row was handed out: with this snapshot, a kill from now on can be continued."""
        assert self._sink is not None
        _adopt_columns(self._detector, columns.variable_names)
        self._sink.name_variables(columns.variable_names)
        self._begun = True
        self._write_snapshot()

    def _take(self, batch: Batch) -> None:
        self._answered = False
        refused = self._judge(batch) if len(batch.values) else []
        faults = batch.faults + [self._source.fault(line, reason) for line, reason in refused]
        for fault in sorted(faults, key=lambda fault: fault.line):
            self.counts.malformed += 1
            if not self._plan.strict:  # else the error says it
                self._observer.fault(fault)
        if refused and self._plan.strict:
            raise InputError(f"{faults[-1]} (--strict)")
        self._answered = True

    def _judge(self, batch: Batch) -> list[tuple[int, str]]:
        """Score the rows and write the verdicts; returns the rows that the detector refused."""
        assert self._source.columns is not None
        assert self._sink is not None
        plan, names = self._plan, self._source.columns.variable_names
        scores, refused = process_with_refusals(self._detector, batch, plan.n_variables, names, stop=plan.strict)
        self._learnt = True
        first = self.counts.samples + 1
        self.counts.samples += len(batch.values)  # before they are written: learnt they are, even if nobody reads it
        self.counts.flagged += int(scores.flags.sum())
        self.counts.missing += int(np.isnan(batch.values).sum())
        self._sink.write(first, batch.times, scores)
        self._observer.verdicts(self.counts, batch, scores)
        return refused

    def _room(self) -> int:
        return _MOST_LINES if self._snapshots is None else self._snapshots.room(self.counts.samples)

    def _due(self) -> bool:
        return self._snapshots is not None and self._snapshots.due(self.counts.samples)

    def _write_snapshot(self) -> None:
        if self._snapshots is None:
            return
        assert self._sink is not None
        self._sink.sync()  # first: a snapshot must not know of output that a power cut could take
        state = {
            "settings": self._settings,
            "input": self._source.position(),
            **pack_output(self._sink.mark()),
            "counts": asdict(self.counts),
            "detector": self._detector._pack() if self._learnt else None,
        }
        self._snapshots.write(state, self.counts.samples)


def _same_file(one: Path, other: Path) -> bool:
    return one.exists() and other.exists() and one.samefile(other)


def _adopt_columns(detector: StreamDetector, names: tuple[str, ...]) -> None:
    """Raise unless a detector that knows its columns knows them by these names and in this order."""
    # Checked here once and for all; the rows that follow are arrays, about which scikit-learn would warn each time.
    known = vars(detector).pop("feature_names_in_", None)
    count = vars(detector).get("n_features_in_", len(names))
    if known is not None and tuple(known) != names:
        raise InputError(f"The model was made for the columns {', '.join(known)}, but these are {', '.join(names)}.")
    if count != len(names):
        raise InputError(f"The model was made for {count} columns, but there are {len(names)}: {', '.join(names)}.")
