"""Figures about columns, the slow way."""

from __future__ import annotations

import itertools

import numpy as np


def runs(values: list[float]) -> list[int]:
    """Lengths of runs of equal values."""
    return [len(list(group)) for _, group in itertools.groupby(values)]


def usual_run(values: list[float]) -> int:
    """The length that 95 % of the values outside the longest run keep to."""
    lengths = sorted(runs(values))
    lengths.remove(max(lengths))
    others = [length for length in lengths for _ in range(length)]
    return next((length for length in others if sum(o <= length for o in others) >= 0.95 * len(others)), 0)


def longest_gap(missing: list[bool]) -> int:
    return max((len(list(group)) for is_missing, group in itertools.groupby(missing) if is_missing), default=0)


def copies(columns: np.ndarray, names: list[str]) -> dict[str, str]:
    """All pairs, by their correlation over the rows that are known in both, if these are nine in ten."""
    found: dict[str, str] = {}
    for later in range(columns.shape[1]):
        for earlier in range(later):
            pair = columns[:, [earlier, later]]
            pair = pair[~np.isnan(pair).any(axis=1)]
            if names[earlier] in found or len(pair) < 0.9 * len(columns) or 0 in pair.std(axis=0):
                continue
            if 1 - abs(np.corrcoef(pair.T)[0, 1]) <= 1e-9:
                found[names[later]] = names[earlier]
                break
    return found
