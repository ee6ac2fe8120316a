"""The normal situation that is most like an alarm: what the machine looked like when all was well."""

from __future__ import annotations

import math
from itertools import takewhile
from typing import Any

import numpy as np

from penstock._types import FloatArray
from penstock.live.alarm_records import ALARM, Alarm
from penstock.live.assets import Asset, batch_of, joined_batches
from penstock.live.store import Store

_MOST_ROWS = 5_000  # of the stream, up to the alarm


def nearest_normal(store: Store, asset: Asset, alarm: Alarm) -> dict[str, Any] | None:
    """Return the most similar normal row to the worst row of an alarm.

    Normal are rows of the stream before it, of its operating mode, that were in no alarm and have a score in the lower
    half, and the usual training rows that the model has kept. The sensors that have half of the alarm's evidence do not
    count, at most half of all. Differences of the others count in standard deviations of the normal rows.

    The answer has `time` (seconds) and `row` of a row of the stream, None of a training row; `distance`: root mean
    square difference in standard deviations; `compared`: over so many sensors; `sensors`: the readings by name. It is
    None where readings are not kept any more, there is nothing to compare with, or the alarm is about no data.
    """
    worst = _worst_row(store, asset.record.id, alarm) if alarm.about == ALARM else 0
    after = worst - _MOST_ROWS
    blocks = takewhile(lambda block: block.first <= worst, store.rows(asset.record.id, after=after, with_readings=True))
    # Rows of another version of the model may have other columns.
    read = [block for block in blocks if block.values is not None and block.version == asset.record.version]
    if not worst or not read or read[-1].first + len(read[-1].seconds) <= worst:
        return None
    seconds = np.concatenate([block.seconds for block in read])
    rows = np.concatenate([block.first + np.arange(len(block.seconds)) for block in read])
    scores = np.concatenate([np.where(each.scores.flags, np.nan, each.scores.scores) for each in read])
    for each in store.alarms(asset=alarm.asset):
        scores[(seconds >= each["since"]) & (seconds <= each["last"])] = np.nan
    batch = joined_batches([batch_of(each) for each in read])
    place, names = int(np.searchsorted(rows, worst)), asset.scorer.variable_names
    inputs, same_mode, fitted = asset.scorer.situations(batch, place)
    scores[~same_mode | (rows > worst)] = np.nan
    known = np.isfinite(scores)
    usual = np.flatnonzero(known & (scores <= (np.median(scores[known]) if known.any() else 0.0)))
    evidence, left_out = [sensor.evidence for sensor in alarm.sensors], set[str]()
    for sensor, before in zip(alarm.sensors, np.cumsum([0.0, *evidence]), strict=False):
        if before < sum(evidence) / 2 and 2 * len(left_out) + 2 <= len(names):
            left_out.add(sensor.name)
    normal = np.vstack([inputs[usual], fitted])
    found = _nearest(inputs[place], normal, np.array([name not in left_out for name in names]))
    if found is None:
        return None
    nearest, distance, compared = found
    when: dict[str, Any] = {"time": None, "row": None}
    if nearest < len(usual):
        when = {"time": float(seconds[usual[nearest]]), "row": int(rows[usual[nearest]])}
    values = zip(names, normal[nearest].tolist(), strict=True)
    sensors = {name: value if math.isfinite(value) else None for name, value in values}
    return {**when, "distance": distance, "compared": compared, "sensors": sensors}


def _worst_row(store: Store, asset: int, alarm: Alarm) -> int:
    """Return the number of the row of an alarm that is furthest above its threshold; 0 if there is none."""
    worst = (-math.inf, 0)
    for block in store.rows(asset, since=alarm.since):
        if block.seconds[0] > alarm.last:
            break
        inside = (block.seconds >= alarm.since) & (block.seconds <= alarm.last)
        above = np.where(inside, block.scores.scores - block.scores.thresholds, np.nan)
        if np.isfinite(above).any():
            place = int(np.nanargmax(above))
            worst = max(worst, (float(above[place]), block.first + place))
    return worst[1]


def _nearest(row: FloatArray, normal: FloatArray, others: Any) -> tuple[int, float, int] | None:
    """Return which normal row is nearest to a row, how far it is, and by how many sensors; None if there is none.

    A normal row without a reading of more than half of these sensors is passed over.
    """
    seen = np.isfinite(row) & ~np.isnan(normal).all(axis=0)
    shared = seen & others if (seen & others).any() else seen
    if not len(normal) or not shared.any():
        return None
    differences = normal[:, shared] - row[shared]
    known = ~np.isnan(differences)
    counts = known.sum(axis=0)
    means = np.where(known, differences, 0.0).sum(axis=0) / counts
    spreads = np.sqrt((np.where(known, differences - means, 0.0) ** 2).sum(axis=0) / counts)
    squares = np.where(known, differences / np.where(spreads > 0, spreads, 1.0), 0.0) ** 2
    distances = np.sqrt(squares.sum(axis=1) / np.maximum(known.sum(axis=1), 1))
    distances[2 * known.sum(axis=1) < shared.sum()] = np.inf
    nearest = int(np.argmin(distances))
    return (nearest, float(distances[nearest]), int(shared.sum())) if math.isfinite(distances[nearest]) else None
