"""Make rows of a stream of readings: each tag at its own time, one or several in a line or message.

In: batches of a `RowSource`, each row of which is a reading (tag, time, value), or has readings of some tags alone.
Out: batches of rows of one clock, made by the same `Aligner` as those of a file, when a step is over. What waits for
the end of its step is part of the position, so that a stream that is killed goes on to the same bits.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from penstock._messages import counted, listed, quoted
from penstock._types import FloatArray
from penstock.io._layout import is_missing, plain_number
from penstock.io._numbers import MissingCodes
from penstock.io._row_values import Columns, TableOptions, to_number
from penstock.io.align import AlignedRows, AlignedTag, Aligner, Alignment
from penstock.io.feeds import InputError
from penstock.io.quality import BAD_WORDS
from penstock.io.rows import BadLine, Batch, RowSource
from penstock.io.times import TimeReader

_MANY_LATE = 1000  # readings
_SHOWN = 5  # tags in a message
_MOST_WORDS = 1000  # different texts of a tag
_SECOND = 1e6  # microseconds


class Aligning:
    """Put the readings of a unit into rows, whichever source brings them.

    Parameters
    ----------
    alignment : Alignment
        The clock, and the tags that are read.
    texts : names
        Tags whose values are texts.
    late : float
        Seconds for which a reading may come after the end of its step.
    always : bool
        Whether all rows are put on the clock; else only rows that are single readings.
    missing : texts
        Further ones that stand for a missing reading.
    thousands : str, optional
        The sign between thousands.
    """

    def __init__(
        self,
        alignment: Alignment,
        texts: Sequence[str] = (),
        late: float = 0.0,
        always: bool = True,
        missing: Sequence[str] = (),
        thousands: str | None = None,
    ) -> None:
        self.always = always
        self._missing, self._thousands = MissingCodes.of(missing), thousands
        self._aligner = Aligner(alignment, round(late * _SECOND))
        self._codes = {name: code for code, name in enumerate(alignment.names)}
        self._texts = tuple(name for name in alignment.names if name in texts)
        self._words: dict[str, list[str]] = {name: [] for name in self._texts}
        self._numbers = tuple(name for name in alignment.names if name not in texts)
        self._taken = 0  # readings, since the start
        self._unknown: dict[str, None] = {}  # some of the tags that the model does not have

    @property
    def is_out_of_order(self) -> bool:
        """Whether more than a quarter of the readings came too late."""
        late = self._aligner.too_late
        return late > _MANY_LATE and 4 * late > self._taken

    def refuse_unknown_tags(self) -> None:
        """Raise if there were readings, and none of a tag of the model."""
        if self._unknown and not self._taken:
            raise InputError(
                f"No reading is of a tag of the model: the tags of the stream are {listed(self._unknown)}, those of "
                f"the model {listed(self._codes, most=_SHOWN)}. Give the tags the names they had when it was fitted."
            )

    @property
    def columns(self) -> Columns:
        """The columns of the rows that are made."""
        names = ("time", *self._numbers, *self._texts)
        places = {name: place for place, name in enumerate(names)}
        return Columns(
            names, 0, tuple(places[name] for name in self._numbers), tuple(places[name] for name in self._texts)
        )

    def options(self, options: TableOptions) -> TableOptions:
        """Return how the stream is read."""
        return replace(options, readings="always" if self.always else "perhaps")

    def take(self, batch: Batch, columns: Columns, reader: TimeReader | None) -> Batch:
        """Take the readings of a batch; return the rows that are complete now."""
        if reader is None or batch.seconds is None:
            if len(batch.lines):
                reason = "there is no time that can be read, and readings are put into rows by their times"
                batch.faults.append(BadLine("the stream", batch.lines[0], reason))
            return self._rows(None, batch, reader, 0, [])
        before = self._aligner.too_late
        codes, times, values = self._long(batch, columns) if columns.reading else self._wide(batch, columns)
        made = self._aligner.take(codes, np.round(times * _SECOND).astype(np.int64), values)
        self._taken += len(codes)
        remarks, late = [], self._aligner.too_late - before
        if late:
            tag, time = self._aligner.newest_too_late or ("", 0)
            remarks.append(
                f"Not used, as the row of their step was made already: {counted(late, 'reading')}, the newest of "
                f"{quoted(tag)} at {reader.text(time / _SECOND)}. --late waits longer."
            )
        return self._rows(made, batch, reader, len(codes) - late, remarks)

    def finish(self, reader: TimeReader | None) -> Batch | None:
        """Return the rows of the steps that are not over; None if there are none."""
        made = self._aligner.finish()
        if not len(made):
            return None
        return self._rows(made, Batch(np.empty((0, 0)), [0]), reader, 0, [])

    def state(self) -> dict[str, Any]:
        """Return plain values, for `restore`."""
        state = {
            name: value.tolist() if isinstance(value, np.ndarray) else value
            for name, value in self._aligner.state().items()
            if name != "alignment"
        }
        numbers = {name: [None if math.isnan(x) else x for x in state[name]] for name in ("values", "last_values")}
        return {**state, **numbers, "words": self._words, "tags": list(self._codes)}

    def fits(self, state: dict[str, Any] | None) -> bool:
        """Return whether a state has the readings of these tags; True for None, which has none."""
        return state is None or state["tags"] == list(self._codes)

    def restore(self, state: dict[str, Any]) -> None:
        """Go on from a state; ValueError, TypeError or LookupError if it does not fit."""
        words = state["words"]
        if state["tags"] != list(self._codes):
            raise ValueError("its tags are not those of the model")
        are_texts = all(isinstance(word, str) for some in words.values() for word in some)
        if words.keys() != self._words.keys() or not are_texts:
            raise ValueError("its tags of text are not those of the model")
        plain = {name: value for name, value in state.items() if name not in ("words", "tags")}
        for name in ("values", "last_values"):
            plain[name] = [math.nan if number is None else number for number in plain[name]]
        kinds = {
            "marks": np.int64, "codes": np.int64, "times": np.int64, "values": np.float64, "last_values": np.float64,
            "last_times": np.int64, "shares": np.int64,
        }  # fmt: skip
        arrays = {name: np.array(plain[name], dtype=kind) for name, kind in kinds.items()}
        arrays["shares"] = arrays["shares"].reshape(2, -1)
        alignment = self._aligner.alignment.state()
        self._aligner = Aligner.restore({**plain, **arrays, "alignment": alignment})
        self._words = {name: list(some) for name, some in words.items()}

    def _long(self, batch: Batch, columns: Columns) -> tuple[list[int], FloatArray, list[float]]:
        """Return the readings of rows of one reading each; a row that is none is a fault."""
        tag, value, *about = (batch.texts[columns.names[place]] for place in columns.texts)
        assert batch.seconds is not None
        bad = np.zeros(len(tag), dtype=np.bool_)
        for quality, texts in zip(columns.quality, about, strict=True):
            bad |= quality.bad(texts)
        codes: list[int] = []
        kept: list[int] = []
        values: list[float] = []
        for place, name in enumerate(tag):
            try:
                if name is None:
                    raise ValueError("it has no tag")
                if math.isnan(batch.seconds[place]):
                    raise ValueError("its time is missing")
                code = self._codes.get(name)
                if code is None:
                    if len(self._unknown) < _SHOWN:
                        self._unknown[name] = None
                    continue
                values.append(math.nan if bad[place] else self._value(name, value[place]))
            except ValueError as error:
                batch.faults.append(BadLine("the stream", batch.lines[place], str(error)))
                continue
            codes.append(code)
            kept.append(place)
        return codes, batch.seconds[kept], values

    def _wide(self, batch: Batch, columns: Columns) -> tuple[np.ndarray[Any, Any], FloatArray, FloatArray]:
        """Return the readings of rows that have several.

        An empty cell is a missing reading of a tag that is read in every step, and none of a slower one.
        """
        assert batch.seconds is not None
        alignment, names = self._aligner.alignment, list(columns.variable_names)
        parts = [batch.values, *([self._coded(name, batch.texts[name])] for name in batch.texts)]
        names += list(batch.texts)
        values = np.hstack([batch.values, *(np.array(part).T for part in parts[1:])]) if batch.texts else batch.values
        known = [place for place, name in enumerate(names) if name in self._codes]
        codes = np.array([self._codes[names[place]] for place in known], dtype=np.int64)
        values = values[:, known]
        often = np.array([alignment.is_read_in_each_step(code) for code in codes], dtype=np.bool_)
        timed = np.isfinite(batch.seconds)
        if columns.sparse:
            often[:] = False
        there = (~np.isnan(values) | often) & timed[:, None]
        rows, places = np.nonzero(there)
        return codes[places], batch.seconds[rows], values[rows, places]

    def _value(self, name: str, text: str | None) -> float:
        """Return the number of a reading, or of its word; NaN for a missing one, and for what historians write then."""
        if text is None or text in self._missing.texts:
            return math.nan
        if name in self._words:
            return math.nan if text.casefold() in BAD_WORDS else self._coded(name, [text])[0]
        plain = plain_number(text if self._thousands is None else text.replace(self._thousands, ""))
        number = to_number(plain.replace(",", ".") if "." not in plain else plain, name, shown=text)
        return math.nan if number in self._missing.numbers else number

    def _coded(self, name: str, texts: Sequence[str | None]) -> list[float]:
        """Return texts as numbers of the words of their tag."""
        words, found = self._words[name], []
        for text in texts:
            if text is None or is_missing(text):
                found.append(math.nan)
                continue
            if text not in words:
                if len(words) >= _MOST_WORDS:
                    raise ValueError(f"tag {quoted(name)} has more than {_MOST_WORDS:,} different texts")
                words.append(text)
            found.append(float(words.index(text)))
        return found

    def _rows(
        self, made: AlignedRows | None, batch: Batch, reader: TimeReader | None, readings: int, remarks: list[str]
    ) -> Batch:
        rows = np.empty((0, len(self._codes))) if made is None else made.values
        seconds = np.empty(0) if made is None else made.times / _SECOND
        texts: dict[str, list[str | None]] = {}
        for name in self._texts:
            column = rows[:, self._codes[name]].tolist()
            texts[name] = [None if math.isnan(number) else self._words[name][int(number)] for number in column]
        numbers = np.ascontiguousarray(rows[:, [self._codes[name] for name in self._numbers]])
        line = batch.lines[-1] if len(batch.lines) else 0
        times = None if reader is None else [reader.text(second) for second in seconds.tolist()]
        return Batch(
            numbers, [line] * len(rows), times, batch.faults, texts, seconds, [*batch.remarks, *remarks], readings
        )


class AlignedSource:
    """Read rows from a source whose rows are readings; see `RowSource`, which it does instead of."""

    def __init__(self, source: RowSource, aligning: Aligning, *, is_part: bool = False) -> None:
        self._source, self._aligning = source, aligning
        self._is_part = is_part  # more readings come from elsewhere: its end is not the end of the last step
        self._finished = False
        self.provisional = False

    @property
    def _aligns(self) -> bool:
        columns = self._source.columns
        return columns is not None and (self._aligning.always or columns.reading or columns.sparse)

    @property
    def columns(self) -> Columns | None:
        """The columns of the rows; None until the layout is known."""
        return self._aligning.columns if self._aligns else self._source.columns

    def __getattr__(self, name: str) -> Any:
        """Return what is that of the source: how times are read, notes, how far times have come."""
        return getattr(self._source, name)

    @property
    def ended(self) -> bool:
        """Whether no more will come."""
        return self._source.ended and (self._finished or self._is_part or not self._aligns)

    def next_batch(self, at_most: int) -> Batch | None:
        """Return rows that are complete, from at most so many lines; None when there are none yet."""
        if self._source.ended and self._aligns:
            if not self.provisional:  # the last steps may still get readings: no position is kept after them
                self.provisional = True
                return None
            self._finished = True
            if not self._is_part:
                self._aligning.refuse_unknown_tags()
            return self._aligning.finish(self.reader)
        batch = self._source.next_batch(at_most)
        self.provisional = self._source.provisional
        if batch is None or not self._aligns or self._source.columns is None:
            return batch
        made = self._aligning.take(batch, self._source.columns, self.reader)
        if not self._is_part and self._aligning.is_out_of_order:
            raise InputError(
                "Many readings come after the row of their step was made: they are not in order of time. Sort them by "
                "time, or score them as a file (penstock score)."
            )
        return made if len(made.lines) or made.faults or made.remarks or made.readings else None

    def position(self) -> dict[str, Any]:
        """Return the place of the first line that was not read, how it is read, and the readings that wait."""
        return {**self._source.position(), "aligner": self._aligning.state() if self._aligns else None}

    def continue_from(self, position: dict[str, Any]) -> None:
        """Go on at a position."""
        self._source.continue_from(position)
        if position.get("aligner") is not None:
            self._aligning.restore(position["aligner"])


AnySource = RowSource | AlignedSource


def plain_alignment(step: float, hold: float | None, names: Sequence[str], texts: Sequence[str]) -> Alignment:
    """Return a clock with steps of so many seconds for tags of which nothing else is known."""
    ticks = max(1, round(step * _SECOND))
    held = round(1.5 * ticks if hold is None else hold * _SECOND)
    return Alignment(ticks, tuple(AlignedTag(name, 0, held, name not in texts) for name in (*names, *texts)))
