"""Events and known faults, one row after the other."""

from __future__ import annotations

import itertools
import statistics


def usual_gap(times):
    steps = [later - earlier for earlier, later in itertools.pairwise(times) if later > earlier]
    return 6 * statistics.median(steps) if steps else 0


def events(flags, times, gap):
    """Lists of flagged rows."""
    found = []
    for row, flag in enumerate(flags):
        if not flag:
            continue
        if found and times[row] - times[found[-1][-1]] <= gap:
            found[-1].append(row)
        else:
            found.append([row])
    return found


def rank(peaks):
    """1 for the highest; of equal ones the earlier first."""
    return [1 + sum(q > p or (q == p and j < i) for j, q in enumerate(peaks)) for i, p in enumerate(peaks)]


def faults(known, times, gap):
    """Lists of known rows that follow each other."""
    found = []
    for row, fault in enumerate(known):
        if not fault:
            continue
        if found and found[-1][-1] == row - 1 and times[row] - times[row - 1] <= gap:
            found[-1].append(row)
        else:
            found.append([row])
    return found


def first_alarms(stretches, flags, times, horizon):
    """The first flagged row that counts for each fault, or None."""
    alarms = []
    for number, rows in enumerate(stretches):
        previous = stretches[number - 1][-1] if number else -1
        window = range(previous + 1, rows[-1] + 1)
        alarms.append(next((row for row in window if flags[row] and times[row] >= times[rows[0]] - horizon), None))
    return alarms
