"""Report on `penstock watch` on standard error: a live status on a terminal, malformed lines, a summary."""

from __future__ import annotations

import json
import re
import shlex
import sys
import time
import warnings
from collections import Counter, deque
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from penstock._messages import counted
from penstock._types import StreamScores
from penstock.cli._console import live_status, printable
from penstock.cli._options import join_names
from penstock.io import BadLine, Batch
from penstock.live import Counts, Monitor, Observer, with_names

_REPORTED_SINGLY = 20  # malformed lines; after that only how many there were, every so many seconds
_PAUSE = 10.0
_SHOWN_ANOMALIES = 5


class Narrator:
    """Report what happens while a stream is watched; `status` shows a live status on a terminal."""

    def __init__(self, *, quiet: bool, status: bool = True) -> None:
        self._quiet, self._counts = quiet, Counts()
        self._anomalies: deque[tuple[str, str, str]] = deque(maxlen=_SHOWN_ANOMALIES)
        self._started = self._reported = time.monotonic()
        self._samples_before = self._faults = self._unreported = 0
        self._watch: Monitor | None = None
        self._scored = False
        self.text_columns = TextColumns()
        self._live = live_status(self._status) if status and not quiet else None

    def observer(self) -> Observer:
        """Return the functions that the monitor calls."""
        return Observer(self._verdicts, self._fault, self.say)

    def say(self, text: str) -> None:
        """Write a line to standard error, above the status if there is one."""
        text = printable(text)
        if self._live is not None:
            self._live.console.print(f"penstock: {text}", markup=False, highlight=False, soft_wrap=True)
        elif sys.stderr is not None:  # None: it was closed before the start
            sys.stderr.write(f"penstock: {text}\n")
            sys.stderr.flush()

    @contextmanager
    def warnings(self) -> Iterator[None]:
        """Inside this block, Python's warnings are reported like everything else."""
        with warnings.catch_warnings():
            warnings.simplefilter("default", UserWarning)
            warnings.showwarning = lambda message, *_, **__: self._warn(" ".join(str(message).split()))
            yield

    def begin(self, watch: Monitor) -> None:
        """Take a monitor that is open; it may have counted before."""
        self._watch = watch
        self._counts, self._samples_before = watch.counts, watch.counts.samples
        self._started = time.monotonic()

    def end(self, counts: Counts | None) -> None:
        """End the status and, if all went well, write the summary."""
        self._report_rest()
        if self._live is not None:
            self._live.stop()
            self._live = None
        if counts is not None and not self._quiet:
            self.say(in_words(counts) + self._warmup_in_words(counts.samples))
            hint = self.text_columns.hint(counts.samples - self._samples_before)
            if hint and counts.samples:  # without samples it is an error, which says the same
                self.say(hint)

    def _warn(self, text: str) -> None:
        self.say(text if self._watch is None else with_names(text, self._watch.variable_names))

    def _warmup_in_words(self, samples: int) -> str:
        """Say why there was no score at all, if the input was too short for one."""
        warmup = 0 if self._watch is None else self._watch.warmup
        if self._scored or not 0 < samples <= warmup:
            return ""
        return f"; no scores: all {counted(samples, 'sample')} went into the warm-up of {warmup:,} (--warmup)"

    def _verdicts(self, counts: Counts, batch: Batch, scores: StreamScores) -> None:
        self._counts = counts
        self._scored = self._scored or bool(np.isfinite(scores.scores).any())
        if self._live is None:
            return
        for place in np.flatnonzero(scores.flags)[-_SHOWN_ANOMALIES:].tolist():
            row = counts.samples - len(scores.flags) + place + 1
            when = "" if batch.times is None else str(batch.times[place])
            self._anomalies.append((f"{row:,}", printable(when), f"{scores.scores[place]:.4g}"))

    def _fault(self, fault: BadLine) -> None:
        self._faults += 1
        self.text_columns.note(fault.reason)
        if self._faults <= _REPORTED_SINGLY:
            self.say(f"{fault}")
            return
        self._unreported += 1
        self._last = fault
        if time.monotonic() - self._reported >= _PAUSE or self._faults == _REPORTED_SINGLY + 1:
            self._report_rest()

    def _report_rest(self) -> None:
        if self._unreported:
            self.say(f"{self._unreported:,} more malformed, the last: {self._last}")
            self._unreported, self._reported = 0, time.monotonic()

    def _status(self) -> Any:
        from rich.console import Group
        from rich.text import Text

        self._counts = self._counts if self._watch is None else self._watch.counts
        seconds = max(time.monotonic() - self._started, 1e-9)
        rate = (self._counts.samples - self._samples_before) / seconds
        lines = [Text(f"{in_words(self._counts)}, {rate:,.0f} per second", style="bold")]
        lines += [Text(f"  row {row}  {when}  score {score}", style="red") for row, when, score in self._anomalies]
        return Group(*lines)


def in_words(counts: Counts) -> str:
    """Return counts as a line for people.

    >>> in_words(Counts(samples=1200, flagged=1, missing=0, malformed=2))
    '1,200 samples, 1 flagged, 0 readings missing, 2 lines malformed'
    >>> in_words(Counts(samples=9, unscored=3, unknown=1))
    '9 samples, 0 flagged, 3 without a score, 0 readings missing, 1 unknown text, 0 lines malformed'
    >>> in_words(Counts(samples=9, quarantined=2))
    '9 samples, 0 flagged, 0 readings missing, 0 lines malformed, 2 rows set aside'
    """
    parts = [counted(counts.samples, "sample"), f"{counts.flagged:,} flagged"]
    parts += [f"{counts.unscored:,} without a score"] if counts.unscored else []
    parts.append(f"{counted(counts.missing, 'reading')} missing")
    parts += [f"{counted(counts.unknown, 'unknown text')}"] if counts.unknown else []
    parts.append(f"{counted(counts.malformed, 'line')} malformed")
    parts += [f"{counted(counts.quarantined, 'row')} set aside"] if counts.quarantined else []
    return ", ".join(parts)


_NOT_A_NUMBER = re.compile(r'column ("(?:[^"\\]|\\.)*") holds .*, which is not a number')


class TextColumns:
    """Count for which columns lines are malformed."""

    def __init__(self) -> None:
        self._lines: Counter[str] = Counter()

    def note(self, reason: str) -> None:
        """Count the reason why a line is malformed."""
        found = _NOT_A_NUMBER.fullmatch(reason)
        if found:
            self._lines[found[1]] += 1

    def hint(self, samples: int) -> str:
        """Return what to do, if one column is text in more lines than there were samples; else ""."""
        for name, lines in self._lines.most_common(1):
            if lines > samples:
                excluded = shlex.quote(join_names([json.loads(name)]))
                return f"column {name} is text; leave it out with --exclude {excluded}"
        return ""
