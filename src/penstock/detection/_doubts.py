"""Reasons to doubt findings, as notes."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from penstock._messages import listed
from penstock._types import FloatArray
from penstock.detection._parts import JudgedPart
from penstock.detection._preparing import Prepared
from penstock.detection._telling import Told
from penstock.detection.plain_words import LIKE_THE_LAST
from penstock.graph.edges import nearest_by_tree
from penstock.io import Note

_MOST_FOUND = 0.25  # of the rows judged
_MOST_NEXT = 0.5  # of the rows learnt from, that are most like the one before or after
_MOST_TEXT = 0.5  # of the squared residual of the findings, or of their scores where those are told by variable


def doubts(
    prepared: Prepared,
    candidates: NDArray[np.bool_],
    flags: NDArray[np.bool_],
    expected: FloatArray,
    parts: tuple[JudgedPart, ...],
    told: Told | None = None,
) -> list[Note]:
    """Notes on findings that are too many, or about text."""
    return [
        *_too_many(int(flags.sum()), int(candidates.sum())),
        *_about_text(prepared, flags, expected, parts, told),
    ]


def rows_like_the_last(parts: Sequence[JudgedPart]) -> list[Note]:
    """A note if rates would not hold: where each row is like the one before, a later one is like none learnt."""
    nearest = [nearest_by_tree(judged.part.detector.tree_)[0] for judged in parts]  # learnt in order of time
    rows = sum(map(len, nearest))
    close = sum(int((np.abs(each - np.arange(len(each))) == 1).sum()) for each in nearest)
    if close <= _MOST_NEXT * rows:
        return []
    message = (
        f"Rows are much like the one before: {close / rows:.0%} of those learnt from are most like the row just before "
        f"or after. A rate of false alarms learnt from them would be far too low for later rows: none is shown, only "
        f"ranks."
    )
    return [Note(LIKE_THE_LAST, message, close)]


def highest_learnt(scores: FloatArray, threshold: float) -> list[Note]:
    """A note if the threshold is the highest score of the rows learnt from: several rates have the same then."""
    equal, rows = int((scores == threshold).sum()), len(scores)
    if threshold != scores.max():
        return []
    have = "" if equal == 1 else f", and {equal:,} of them have it"
    message = (
        f"The threshold is the highest score of the {rows:,} rows learnt from{have}. They cannot tell rates of false "
        f"alarms below {equal:,} in {rows + 1:,} apart; learn from more rows for that."
    )
    return [Note("highest score", message, equal)]


def _too_many(found: int, judged: int) -> list[Note]:
    """If so much stands out, the model should be doubted rather than the rows."""
    if found <= _MOST_FOUND * judged:
        return []
    message = (
        f"{found / judged:.0%} of the rows judged are findings: they differ as a whole from what was learnt (another "
        f"season or load, a sensor exchanged?). Learn from a period that covers what is usual, or ask for a top N."
    )
    return [Note("many findings", message, found)]


def _about_text(
    prepared: Prepared,
    flags: NDArray[np.bool_],
    expected: FloatArray,
    parts: tuple[JudgedPart, ...],
    told: Told | None,
) -> list[Note]:
    """A column for each kind of text soon outweighs the readings."""
    encoded = prepared.inputs.encoded
    is_text = np.isin(prepared.inputs.names, [name for encoding in encoded for name in encoding.names])
    text, total = 0.0, 0.0
    for judged in parts if encoded else ():
        rows = judged.rows[flags[judged.rows]]
        if told is None:
            weights = np.square((prepared.values.to_numpy()[rows] - expected[rows]) / judged.part.scale)
        else:
            weights = np.maximum(told.of(rows).variables, 0.0)
        text, total = text + float(np.nansum(weights[:, is_text])), total + float(np.nansum(weights))
    if text <= _MOST_TEXT * total:
        return []
    names = tuple(encoding.column for encoding in encoded)
    message = (
        f"{text / total:.0%} of what stands out in the findings is text ({listed(names, most=5)}), not readings. "
        f"Exclude it, or let it tell operating modes, to see what the readings say."
    )
    return [Note("text findings", message, len(names), names)]
