"""Measures of scores over time straight from their definitions, as slow loops. Imports nothing of ours."""

from __future__ import annotations

import math
import statistics

from naive.events import events, faults


def spans(labels, runs=None):
    """First and last row of each stretch of 1s; a stretch ends where the run does."""
    found = []
    for row, label in enumerate(labels):
        goes_on = row > 0 and labels[row - 1] and (runs is None or runs[row] == runs[row - 1])
        if label and goes_on:
            found[-1][1] = row
        elif label:
            found.append([row, row])
    return found


def vus_pr(labels, scores, largest, n_thresholds=250, runs=None):
    """Paparrizos et al. (2022), VUS-PR, with recall and steps as TSB-AD (Liu and Paparrizos, 2024) computes them."""
    areas = [range_average_precision(labels, scores, length, n_thresholds, runs) for length in range(largest + 1)]
    return sum(areas) / len(areas)


def period(column):
    """The lag of the highest peak of the autocorrelation, as TSB-AD (Liu and Paparrizos, 2024) finds the buffer."""
    n, mean = len(column), sum(column) / len(column)
    away = [value - mean for value in column]
    lags = range(3, min(400, n - 1) + 1)
    at = {lag: sum(away[row] * away[row - lag] for row in range(lag, n)) for lag in lags}
    peaks = [lag for lag in lags if lag - 1 in at and lag + 1 in at and at[lag - 1] < at[lag] > at[lag + 1]]
    best = max(peaks, key=at.get, default=0)
    return best if 6 <= best <= 303 else 125


def range_average_precision(labels, scores, length, n_thresholds, runs=None):
    """The area under precision and recall where labels fade out over length / 2 rows at both ends of an anomaly."""
    n, half = len(labels), length // 2
    runs = [0] * n if runs is None else runs
    true = spans(labels, runs)
    soft = [float(label) for label in labels]
    for first, last in true:
        for row in range(n):
            away = max(first - row, row - last)
            if 0 < away <= half and runs[row] == runs[first]:
                soft[row] = min(1.0, soft[row] + math.sqrt(1 - away / length))
    zones = []  # anomalies with the rows around them; zones that touch are one
    for first, last in true:
        low = min(row for row in range(n) if row >= first - half and runs[row] == runs[first])
        high = max(row for row in range(n) if row <= last + half and runs[row] == runs[first])
        if zones and first - half <= zones[-1][2] + half and runs[first] == runs[zones[-1][0]]:
            zones[-1][1:] = [high, last]
        else:
            zones.append([low, high, last])
    ordered = sorted(scores, reverse=True)
    area, recall_before = 0.0, 0.0
    for step in range(n_thresholds):
        cut = ordered[int(step * (n - 1) / (n_thresholds - 1))]
        flagged = [score >= cut for score in scores]
        hits = sum(weight for weight, flag in zip(soft, flagged, strict=True) if flag)
        around = sum(weight for weight, flag, label in zip(soft, flagged, labels, strict=True) if flag and not label)
        positives = sum(labels) + around / 2  # the mean of the anomalies, and these with what was found around them
        seen = sum(any(flagged[low : high + 1]) for low, high, _ in zones) / len(zones)
        recall = min(hits / positives, 1.0) * seen
        area += (recall - recall_before) * hits / sum(flagged)
        recall_before = recall
    return area


def flagged_events(scores, times, gap, cut):
    return events([score >= cut for score in scores], times, gap)


def windows(known, times, gap):
    """Of each fault its rows, and those in which an event may have its highest score to find it."""
    true = faults(known, times, math.inf)
    found = []
    for at, rows in enumerate(true):
        end = true[at + 1][0] if at + 1 < len(true) else len(known)
        found.append((rows, rows + [row for row in range(rows[-1] + 1, end) if times[row] - times[rows[-1]] <= gap]))
    return found


def found_at(known, scores, times, gap, cut):
    """Events without a fault, the number of events, and of the faults found the rows of their windows."""
    flagged = flagged_events(scores, times, gap, cut)
    peaks = [max(rows, key=lambda row: (scores[row], -row)) for rows in flagged]
    true = [window for _, window in windows(known, times, gap)]
    false = sum(not any(peak in window for window in true) for peak in peaks)
    return false, len(flagged), [window for window in true if any(peak in window for peak in peaks)]


def found_among(known, scores, times, gap, most):
    """How many faults are found at the highest cut with the most events, down to where there are more than `most`."""
    found = highest = 0
    for cut in sorted(set(scores), reverse=True):
        _, count, hit = found_at(known, scores, times, gap, cut)
        if count > most:
            break
        if count > highest:
            found, highest = len(hit), count
    return found


def at_recall(known, scores, times, gap, recall):
    """Events without a fault and the median delay at the highest peak of a fault that finds this share; or None."""
    peaks = {max(scores[row] for row in window) for _, window in windows(known, times, gap)}
    for cut in sorted(peaks, reverse=True):
        false, _, hit = found_at(known, scores, times, gap, cut)
        if len(hit) >= recall * len(faults(known, times, math.inf)):
            alarms = [next(row for row in window if scores[row] >= cut) for window in hit]
            return false, statistics.median(times[row] - times[w[0]] for row, w in zip(alarms, hit, strict=True))
    return None


def average_precision(labels, scores, weights):
    """Rows that are there `weights` times: the precision at each hit's score, a mean over the hits."""
    total = hits = 0.0
    for label, score, weight in zip(labels, scores, weights, strict=True):
        if label and weight:
            above = [(w, y) for w, y, s in zip(weights, labels, scores, strict=True) if s >= score]
            total += weight * sum(w for w, y in above if y) / sum(w for w, _ in above)
            hits += weight
    return total / hits
