"""What `penstock watch` says on standard error: a live status on a terminal, malformed lines, a summary."""

from __future__ import annotations

import sys
import time
import warnings
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from penstock._types import StreamScores
from penstock.sources import Batch, Fault
from penstock.watch import Counts, Observer

_REPORTED_SINGLY = 20  # malformed lines; after that only how many there were, every so many seconds
_PAUSE = 10.0
_SHOWN_ANOMALIES = 5


class Narrator:
    """Tells a person what goes on. Verdicts go elsewhere."""

    def __init__(self, *, quiet: bool) -> None:
        self._quiet = quiet
        self._counts = Counts()
        self._live: Any = None
        self._anomalies: deque[tuple[str, str, str]] = deque(maxlen=_SHOWN_ANOMALIES)
        self._started = self._reported = time.monotonic()
        self._samples_before = 0
        self._faults = 0
        self._unreported = 0
        if sys.stderr.isatty() and not quiet:
            self._begin_status()

    def observer(self) -> Observer:
        return Observer(self._verdicts, self._fault, self.say)

    def say(self, text: str) -> None:
        """One line on standard error, above the status if there is one."""
        if self._live is not None:
            self._live.console.print(f"penstock: {text}", markup=False, highlight=False, soft_wrap=True)
        else:
            sys.stderr.write(f"penstock: {text}\n")
            sys.stderr.flush()

    @contextmanager
    def warnings(self) -> Iterator[None]:
        """Inside this block, what Python would warn of is said like everything else."""
        with warnings.catch_warnings():
            warnings.simplefilter("default", UserWarning)
            warnings.showwarning = lambda message, *_, **__: self.say(" ".join(str(message).split()))
            yield

    def begin(self, counts: Counts) -> None:
        """The watch is open; it may have counted before."""
        self._counts, self._samples_before = counts, counts.samples
        self._started = time.monotonic()

    def end(self, counts: Counts | None) -> None:
        """Take the status away and, if all went well, sum up."""
        self._report_rest()
        if self._live is not None:
            self._live.stop()
            self._live = None
        if counts is not None and not self._quiet:
            self.say(in_words(counts))

    def _verdicts(self, counts: Counts, batch: Batch, scores: StreamScores) -> None:
        self._counts = counts
        if self._live is None:
            return
        for place in np.flatnonzero(scores.flags)[-_SHOWN_ANOMALIES:].tolist():
            row = counts.samples - len(scores.flags) + place + 1
            when = "" if batch.times is None else str(batch.times[place])
            self._anomalies.append((f"{row:,}", when, f"{scores.scores[place]:.4g}"))

    def _fault(self, fault: Fault) -> None:
        self._faults += 1
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

    def _begin_status(self) -> None:
        from rich.console import Console
        from rich.live import Live

        self._live = Live(
            console=Console(stderr=True), get_renderable=self._status, refresh_per_second=4, transient=True
        )
        self._live.start()

    def _status(self) -> Any:
        from rich.console import Group
        from rich.text import Text

        seconds = max(time.monotonic() - self._started, 1e-9)
        rate = (self._counts.samples - self._samples_before) / seconds
        lines = [Text(f"{in_words(self._counts)}, {rate:,.0f} per second", style="bold")]
        lines += [Text(f"  row {row}  {when}  score {score}", style="red") for row, when, score in self._anomalies]
        return Group(*lines)


def in_words(counts: Counts) -> str:
    """Counts as a line for people.

    >>> in_words(Counts(samples=1200, flagged=1, missing=0, malformed=2))
    '1,200 samples, 1 flagged, 0 readings missing, 2 lines malformed'
    """
    missing, malformed = _plural(counts.missing, "reading"), _plural(counts.malformed, "line")
    return f"{_plural(counts.samples, 'sample')}, {counts.flagged:,} flagged, {missing} missing, {malformed} malformed"


def _plural(number: int, word: str) -> str:
    return f"{number:,} {word}{'' if number == 1 else 's'}"
