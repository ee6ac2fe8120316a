"""Readings of tags with clocks of their own → rows of one clock, step by step and tag by tag; nothing is fast here."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import NamedTuple


class Reading(NamedTuple):
    tag: int
    time: int
    value: float


class Tag(NamedTuple):
    hold: int
    mean: bool


def in_time(readings: list[Reading], step: int, origin: int, late: int) -> tuple[list[Reading], list[Reading]]:
    """Readings in order of arrival → those that come before the row of their step is made, and those too late.

    The row of a step is made when a reading has come that is at least `late` after its end.
    """
    good, bad = [], []
    newest = None
    for reading in readings:
        end = origin + ((reading.time - origin) // step + 1) * step
        if newest is not None and newest >= end + late:
            bad.append(reading)
        else:
            good.append(reading)
        newest = reading.time if newest is None else max(newest, reading.time)
    return good, bad


def aligned(readings: list[Reading], tags: list[Tag], step: int, origin: int) -> list[tuple[int, list[float]]]:
    """The stamp and the values of each row: one for each step with a reading of its own that is a number."""
    ordered = sorted(readings, key=lambda reading: reading.time)  # stable
    steps = sorted({(each.time - origin) // step for each in ordered if math.isfinite(each.value)})
    rows = []
    for number in steps:
        start = origin + number * step
        values = []
        for code, tag in enumerate(tags):
            mine = [each for each in ordered if each.tag == code]
            within = [each.value for each in mine if start <= each.time < start + step and math.isfinite(each.value)]
            before = [each for each in mine if each.time < start + step]
            if within and tag.mean:
                values.append(float(sum(map(Fraction, within)) / len(within)))
            elif within:
                values.append(within[-1])
            elif before and math.isfinite(before[-1].value) and start - before[-1].time <= tag.hold:
                values.append(before[-1].value)
            else:
                values.append(math.nan)
        rows.append((start, values))
    return rows
