"""Rows that a detector does not take."""

from __future__ import annotations

import re
from dataclasses import fields
from typing import Any

import numpy as np

from penstock._types import StreamScores
from penstock.io import Batch
from penstock.io.faults import quoted
from penstock.watch.plan import StreamDetector


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
