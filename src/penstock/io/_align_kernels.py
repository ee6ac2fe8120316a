"""The inner loops of the aligner: readings that arrive → readings that wait; readings in order of time → rows."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from penstock._jit import kernel
from penstock._types import BoolArray, FloatArray

IntArray = NDArray[np.int64]

# Places of the marks that `receive_readings` keeps.
NEWEST, CLOSED, WAITING, OLDEST, TOO_LATE, LATE_TIME, LATE_CODE = range(7)


@kernel
def receive_readings(
    codes: IntArray,
    times: IntArray,
    values: FloatArray,
    first: int,
    step: int,
    origin: int,
    late: int,
    waiting_codes: IntArray,
    waiting_times: IntArray,
    waiting_values: FloatArray,
    marks: IntArray,
) -> int:
    """Add readings from `first` on to those that wait; return the first that does not fit.

    marks : the newest time that has come, the last step that is closed, how many wait, the oldest step that waits, how
        many came too late, and the newest of these: its time and its code.
    """
    for i in range(first, len(times)):
        n = marks[WAITING]
        if n == len(waiting_times):
            return i
        number = (times[i] - origin) // step
        if number <= marks[CLOSED]:
            marks[TOO_LATE] += 1
            if times[i] >= marks[LATE_TIME]:
                marks[LATE_TIME] = times[i]
                marks[LATE_CODE] = codes[i]
            continue
        waiting_codes[n] = codes[i]
        waiting_times[n] = times[i]
        waiting_values[n] = values[i]
        marks[WAITING] = n + 1
        marks[OLDEST] = min(marks[OLDEST], number)
        if times[i] > marks[NEWEST]:
            marks[NEWEST] = times[i]
            marks[CLOSED] = max(marks[CLOSED], (times[i] - late - origin) // step - 1)
    return len(times)


@kernel
def count_rows(times: IntArray, values: FloatArray, step: int, origin: int) -> int:
    """Return how many steps have a reading that is a number; times ascend."""
    count = 0
    end = np.iinfo(np.int64).min
    for i in range(len(times)):
        if times[i] >= end and np.isfinite(values[i]):
            end = ((times[i] - origin) // step + 1) * step + origin
            count += 1
    return count


@kernel
def fill_rows(
    codes: NDArray[np.integer],
    times: IntArray,
    values: FloatArray,
    step: int,
    origin: int,
    holds: IntArray,
    means: BoolArray,
    last_values: FloatArray,
    last_times: IntArray,
    shares: IntArray,
    stamps: IntArray,
    rows: FloatArray,
) -> None:
    """Fill the rows of the steps of readings whose times ascend; `last_*` and `shares` (own, held) go on from before.

    A mean is kept as it runs: the mean of equal readings is that reading, to the bit.
    """
    counts = np.zeros(len(holds), dtype=np.int64)
    levels = np.zeros(len(holds))
    row = 0
    i = 0
    while i < len(times):
        start = (times[i] - origin) // step * step + origin
        some = False
        while i < len(times) and times[i] - start < step:
            code, value = codes[i], values[i]
            if np.isfinite(value):
                some = True
                counts[code] += 1
                if means[code]:
                    levels[code] += (value - levels[code]) / counts[code]
                else:
                    levels[code] = value
                last_values[code] = value
            else:
                last_values[code] = np.nan
            last_times[code] = times[i]
            i += 1
        if not some:
            continue
        stamps[row] = start
        for code in range(len(holds)):
            if counts[code] > 0:
                rows[row, code] = levels[code]
                shares[0, code] += 1
            elif not np.isnan(last_values[code]) and start - last_times[code] <= holds[code]:
                rows[row, code] = last_values[code]
                shares[1, code] += 1
            else:
                rows[row, code] = np.nan
            counts[code] = 0
            levels[code] = 0.0
        row += 1


@kernel
def count_readings(codes: NDArray[np.integer], values: FloatArray, count: int) -> IntArray:
    """Return how many readings each tag has, and how many of them are numbers."""
    counts = np.zeros((2, count), dtype=np.int64)
    for i in range(len(codes)):
        counts[0, codes[i]] += 1
        if np.isfinite(values[i]):
            counts[1, codes[i]] += 1
    return counts


@kernel
def sample_intervals(
    codes: NDArray[np.integer], times: IntArray, values: FloatArray, strides: IntArray, samples: IntArray
) -> IntArray:
    """Fill in times between successive readings of each tag, every so many of them; return how many of each.

    Times ascend. Readings that are no number, and such of the same time as the one before, are passed over.
    """
    p = samples.shape[0]
    last = np.zeros(p, dtype=np.int64)
    seen = np.zeros(p, dtype=np.int64)
    filled = np.zeros(p, dtype=np.int64)
    for i in range(len(times)):
        code = codes[i]
        if not np.isfinite(values[i]) or (seen[code] > 0 and times[i] == last[code]):
            continue
        if seen[code] > 0 and seen[code] % strides[code] == 0 and filled[code] < samples.shape[1]:
            samples[code, filled[code]] = times[i] - last[code]
            filled[code] += 1
        seen[code] += 1
        last[code] = times[i]
    return filled


@kernel
def has_few_levels(codes: NDArray[np.integer], values: FloatArray, levels: FloatArray, counts: IntArray) -> BoolArray:
    """Return which tags have only whole numbers, and no more different ones than there is room for in `levels`."""
    p, most = levels.shape
    few = np.ones(p, dtype=np.bool_)
    for i in range(len(values)):
        code, value = codes[i], values[i]
        if not few[code] or not np.isfinite(value):
            continue
        known = False
        for j in range(counts[code]):
            known = known or levels[code, j] == value
        if known:
            continue
        if value != np.floor(value) or counts[code] == most:
            few[code] = False
        else:
            levels[code, counts[code]] = value
            counts[code] += 1
    return few


@kernel
def count_neighbours(codes: NDArray[np.integer], times: IntArray, counts: IntArray) -> None:
    """Count for each tag its readings (row 0), those at the time of its one before (1) and at the next time of any (2).

    Times ascend. Tags that share their stamps are mostly read at the next time of any.
    """
    p = counts.shape[1]
    place = 0
    last = np.full(p, -1, dtype=np.int64)
    for i in range(len(times)):
        if i > 0 and times[i] != times[i - 1]:
            place += 1
        code = codes[i]
        counts[0, code] += 1
        if last[code] == place:
            counts[1, code] += 1
        elif last[code] == place - 1 and last[code] >= 0:
            counts[2, code] += 1
        last[code] = place


@kernel
def spread_rows(stamps: IntArray, often: int, apart: int, before: int) -> IntArray:
    """Return times of rows of which so many share a stamp, evenly between it and the next, which is so far `apart`.

    before : the time of the row before the first. Missing stamps (the least integer) stay.
    """
    found = stamps.copy()
    for i in range(len(stamps)):
        if stamps[i] == np.iinfo(np.int64).min:
            continue
        if stamps[i] <= before < stamps[i] + apart:
            place = ((before - stamps[i]) * often + apart // 2) // apart + 1
            found[i] = stamps[i] + min(place, often - 1) * apart // often
        before = found[i]
    return found
