"""The exact medians of columns that nobody holds as a whole."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from penstock._types import FloatArray
from penstock.scale._median_tasks import bin_widths, count_keys, keys_of, pick_keys, values_of
from penstock.scale.runs import Runs

_MOST_PICKED = 1024  # readings of a column near its median that are sent to the driver
_FEWEST_BINS, _MOST_BINS = 16, 2048
_STAGE = "looking for medians"


def middle_values(runs: Runs, file: Path, n: int, low: FloatArray, high: FloatArray) -> tuple[FloatArray, FloatArray]:
    """The two values in the middle of each column (one and the same if n is odd), given what the columns range over.

    Numbers are counted by whole ones in the same order, of which each column has as many as there are numbers between
    its ends. Counting readings in bins tells in which the middle is; that one is cut into bins in turn, until few
    readings are left.
    """
    first, second, columns = (n - 1) // 2, n // 2, np.arange(len(low))
    least, most = keys_of(low), keys_of(high)
    below, inside = np.zeros(len(low), dtype=np.int64), np.full(len(low), n)
    bins = max(_FEWEST_BINS, min(_MOST_BINS, runs.n_rows // 64))  # what tasks tell stays small beside their rows
    while ((inside > _MOST_PICKED) & (least < most)).any():
        counts = np.zeros((len(low), bins), dtype=np.int64)
        for some in runs.each(_STAGE, "count-keys", count_keys, file, n, least, most, bins):
            counts += some
        ends = counts.cumsum(axis=1)
        chosen = (ends <= (first - below)[:, None]).sum(axis=1)
        inside = counts[columns, chosen]
        below += ends[columns, chosen] - inside
        widths = bin_widths(least, most, bins)
        steps = chosen.astype(np.uint64) * widths
        room = np.minimum(widths - np.uint64(1), most - least - steps)
        least, most = least + steps, least + steps + room
    found = runs.each(_STAGE, "pick-keys", pick_keys, file, n, least, most)
    above = np.min([next_one for _, next_one in found], axis=0)
    middle = np.empty((2, len(low)), dtype=np.uint64)
    for d in columns:
        picked = np.sort(np.concatenate([keys[d] for keys, _ in found])) if least[d] < most[d] else least[[d]]
        for place, rank in enumerate((first - below[d], second - below[d])):
            middle[place, d] = picked[min(rank, len(picked) - 1)] if rank < inside[d] else above[d]
    lower, upper = values_of(middle)
    return lower, upper
