"""Time stamps in text → their numbers and what stands between them, for a whole column at once."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

IntArray = NDArray[np.int64]

_ZERO, _NINE = 48, 57
_LONGEST = 100  # characters; a longer text is no time
_MOST_DIGITS = 18  # what an int64 holds
_POWERS: IntArray = 10 ** np.arange(_MOST_DIGITS, dtype=np.int64)
_SPACES = {ord(space): " " for space in "\u00a0\u2007\u2009\u202f\t\r\n"}


@dataclass(frozen=True)
class Alike:
    """Texts that differ in their numbers alone: which rows, the text in lower case with 0 for each number, the numbers.

    numbers, digits : one row a text, one column a number. A number of more than 18 digits is −1.
    """

    rows: IntArray
    skeleton: str
    numbers: IntArray
    digits: IntArray


def group_alike(texts: Sequence[str]) -> Iterator[Alike]:
    """Sort texts by what stands between their numbers.

    >>> for alike in group_alike(["31.12.2024 13:45", "1.1.2025 7:05 PM", "28.2.2024 9:30"]):
    ...     print(alike.rows, alike.skeleton, alike.numbers.tolist(), alike.digits[0])
    [0 2] 0.0.0 0:0 [[31, 12, 2024, 13, 45], [28, 2, 2024, 9, 30]] [2 2 4 2 2]
    [1] 0.0.0 0:0 pm [[1, 1, 2025, 7, 5]] [1 1 4 1 2]
    """
    signs = np.frombuffer(_joined(texts).encode("utf-8", errors="replace"), dtype=np.uint8)
    if (alike := _all_alike(signs, len(texts))) is not None:
        yield alike
        return
    is_digit = (signs >= _ZERO) & (signs <= _NINE)
    edges = np.diff(is_digit.astype(np.int8), prepend=0, append=0)
    starts, stops = np.flatnonzero(edges == 1), np.flatnonzero(edges == -1)
    numbers, digits = _values(signs, is_digit, starts, stops), stops - starts
    line_ends = np.flatnonzero(signs == ord("\n"))
    first_number = np.concatenate(([0], np.searchsorted(starts, line_ends)))
    codes, skeletons = pd.factorize(np.array(_skeletons(signs, is_digit, starts), dtype=object))
    by_code = np.argsort(codes, kind="stable")
    bounds = np.searchsorted(codes[by_code], np.arange(len(skeletons) + 1))
    for code, skeleton in enumerate(skeletons):
        rows = by_code[bounds[code] : bounds[code + 1]]
        which = first_number[rows][:, None] + np.arange(skeleton.count(b"0"))
        yield Alike(rows, skeleton.decode().strip().lower(), numbers[which], digits[which])


def _joined(texts: Sequence[str]) -> str:
    together = "\n".join(texts)
    if len(together) > _LONGEST * len(texts):
        texts = [text if len(text) < _LONGEST else "" for text in texts]
        together = "\n".join(texts)
    if together.count("\n") != len(texts) - 1 or not together.isascii():
        together = "\n".join(text.translate(_SPACES) for text in texts)
    return together


def _all_alike(signs: NDArray[np.uint8], count: int) -> Alike | None:
    """The same when all texts are as long and have their digits in the same places: several times as fast."""
    length, left = divmod(len(signs) + 1, max(count, 1))
    if left or length < 2:
        return None
    places = np.append(signs, np.uint8(ord("\n"))).reshape(count, length).T[:-1].copy()  # one row a place in the text
    is_digit = (places[:, 0] >= _ZERO) & (places[:, 0] <= _NINE)
    smallest, largest = places.min(axis=1), places.max(axis=1)
    if not np.where(is_digit, (smallest >= _ZERO) & (largest <= _NINE), smallest == largest).all():
        return None
    edges = np.diff(is_digit.astype(np.int8), prepend=0, append=0)
    runs = list(zip(np.flatnonzero(edges == 1), np.flatnonzero(edges == -1), strict=True))
    if any(stop - start > _MOST_DIGITS for start, stop in runs):
        return None
    numbers = np.empty((count, len(runs)), dtype=np.int64, order="F")
    for run, (start, stop) in enumerate(runs):
        number: NDArray[Any] = np.zeros(count, dtype=np.int32 if stop - start < 10 else np.int64)
        for place in range(start, stop):
            number *= 10
            number += places[place] - _ZERO
        numbers[:, run] = number
    skeleton = b"".join(_skeletons(places[:, 0], is_digit, np.flatnonzero(edges == 1)))
    digits = np.broadcast_to(np.array([stop - start for start, stop in runs]), numbers.shape)
    return Alike(np.arange(count), skeleton.decode().strip().lower(), numbers, digits)


def _values(signs: NDArray[np.uint8], is_digit: NDArray[np.bool_], starts: IntArray, stops: IntArray) -> IntArray:
    """The number that each run of digits spells."""
    if not len(starts):
        return np.empty(0, dtype=np.int64)
    lengths = stops - starts
    places = np.repeat(stops, lengths) - 1 - np.flatnonzero(is_digit)  # units have place 0
    weights = _POWERS[np.minimum(places, _MOST_DIGITS - 1)]
    first = np.concatenate(([0], np.cumsum(lengths)[:-1]))
    sums = np.add.reduceat((signs[is_digit] - _ZERO) * weights, first)
    return np.where(lengths > _MOST_DIGITS, -1, sums)


def _skeletons(signs: NDArray[np.uint8], is_digit: NDArray[np.bool_], starts: IntArray) -> list[bytes]:
    written = signs.copy()
    written[starts] = _ZERO
    kept = ~is_digit
    kept[starts] = True
    return written[kept].tobytes().split(b"\n")
