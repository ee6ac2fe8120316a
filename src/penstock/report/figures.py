"""Figures for a paper or a notebook, by matplotlib (extra `plots`), with the look of the HTML report.

>>> import matplotlib
>>> matplotlib.use("Agg")
>>> import numpy as np, pandas as pd, penstock
>>> rows = pd.DataFrame(np.random.default_rng(0).normal(size=(200, 9))).add_prefix("sensor_")
>>> findings = penstock.detect(rows, top=5)
>>> plot_scores(findings).get_ylabel()
'score'
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from penstock._messages import counted
from penstock._types import FloatArray
from penstock.detection import Findings
from penstock.report.axis import axis_of
from penstock.report.cases import cases_of, word_for_cases
from penstock.report.charts import CaseCharts

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from penstock.bench.significance import Comparison

# Of Okabe and Ito's palette, which the colour-blind can distinguish, and which prints well.
_BLUE, _ORANGE, _BAND, _INK, _SOFT, _RULE = "#0072b2", "#d55e00", "#e69f00", "#1a2026", "#55606b", "#eceff1"
_NUMBERED = 10  # incidents, the most severe
_APART = 0.02  # of the width, two numbers
_SHOWN = 5  # sensors


def plot_scores(findings: Findings, axes: Axes | None = None) -> Axes:
    """Draw the scores over time with the threshold; incidents, or events, are shaded and the most severe numbered."""
    if axes is None:
        axes = _pyplot().subplots(figsize=(9, 2.6), layout="constrained")[1]
    assert axes is not None
    places = _places(findings)
    word = word_for_cases(findings)
    cases = cases_of(findings)
    whole = (places[-1] - places[0]) if len(places) > 1 else 1
    taken = list[float]()
    for case in cases:
        span = places[case.start], places[case.end]
        label = counted(len(cases), word) if case is cases[0] else None
        axes.axvspan(*span, color=_BAND, alpha=0.3, linewidth=1.5, label=label)
        share = float((span[0] - places[0]) / whole)
        if case.rank <= _NUMBERED and all(abs(share - other) > _APART for other in taken):
            taken.append(share)
            at_top = axes.get_xaxis_transform()  # y from 0 to 1 of the axes
            axes.text(span[0], 1.0, f"{case.number}", transform=at_top, va="bottom", fontsize="small", color=_INK)
    gaps = np.flatnonzero(axis_of(findings.table).begins)[1:]  # no line is drawn across
    scores = np.insert(findings.scores, gaps, np.nan)
    axes.plot(np.insert(places, gaps, places[gaps]), scores, color=_BLUE, linewidth=0.8, label="score")
    axes.axhline(findings.threshold, color=_INK, linestyle=(0, (6, 4)), linewidth=1, label="threshold")
    axes.set_ylabel("score")
    axes.set_xlabel(findings.table.time_name or "row")
    axes.legend(loc="upper right", frameon=False, fontsize="small")
    _calm(axes)
    return axes


def plot_training_scores(
    scores: FloatArray, threshold: float, top: pd.DataFrame, labels: pd.Index | None = None
) -> Axes:
    """Draw the scores of a fitted detector in order of rows (over time, if labels are times) and mark the highest."""
    axes: Axes = _pyplot().subplots(figsize=(9, 2.6), layout="constrained")[1]
    in_time = labels is not None and hasattr(labels, "hour") and labels.is_monotonic_increasing
    places = labels.to_numpy() if labels is not None and in_time else np.arange(len(scores))
    highest = np.argsort(-scores, kind="stable")[: len(top)]
    axes.plot(places, scores, color=_BLUE, linewidth=0.8, label="score")
    axes.axhline(threshold, color=_INK, linestyle=(0, (6, 4)), linewidth=1, label="threshold")
    axes.plot(places[highest], scores[highest], "o", color=_ORANGE, markersize=4, label=f"{len(top)} highest")
    axes.set_ylabel("score")
    axes.set_xlabel("time" if in_time else "row")
    axes.legend(loc="upper right", frameon=False, fontsize="small")
    _calm(axes)
    return axes


def plot_case(findings: Findings, number: int) -> Figure:
    """Draw the sensors of an incident, or of an event, in the order in which they moved: reading, expected, usual band.

    A KeyError if there is none of this number.
    """
    pyplot = _pyplot()
    cases = cases_of(findings)
    case = next((case for case in cases if case.number == number), None)
    if case is None:
        raise KeyError(f"There is no {word_for_cases(findings)} {number}.")
    sensors = case.in_order[:_SHOWN]
    charts = CaseCharts(findings, axis_of(findings.table), cases)
    window = charts.window(case)
    places = _places(findings)
    shown = max(1, len(sensors))
    figure: Figure
    figure, axes = pyplot.subplots(
        shown, 1, sharex=True, squeeze=False, figsize=(9, 1.35 * shown + 0.8), layout="constrained"
    )
    word = "rebuilt" if findings.inputs.rebuilt else "expected"
    at = places[window]
    for axis, sensor in zip(axes[:, 0], sensors, strict=False):
        actual, expected = (
            table[sensor.name].to_numpy()[window] for table in (findings.inputs.values, findings.inputs.expected)
        )
        low, high = charts.band(sensor.column)
        around = expected if charts.has_expected else np.zeros(len(expected))
        axis.axvspan(places[case.start], places[case.end], color=_BAND, alpha=0.25, linewidth=0)
        axis.fill_between(at, around + low, around + high, color=_ORANGE, alpha=0.2, linewidth=0, label="usual")
        axis.plot(at, expected, color=_ORANGE, linestyle=(0, (4, 3)), linewidth=1.3, label=word)
        axis.plot(at, actual, color=_BLUE, linewidth=1.7, label="reading")
        if sensor.onset >= 0:
            axis.axvline(places[sensor.onset], color=_ORANGE, linewidth=1.3)
        axis.set_title(sensor.name, loc="left", fontsize="small", fontweight="bold")
        axis.set_ylabel(findings.inputs.units[sensor.name])
        _calm(axis)
    if sensors:
        axes[0, 0].legend(loc="upper right", frameon=False, fontsize="small", ncols=3)
    return figure


def plot_ranks(comparison: Comparison, axes: Axes | None = None) -> Axes:
    """Draw mean ranks, the best on the left; a thick bar joins methods that do not differ (a post-hoc diagram).

    Parameters
    ----------
    comparison : Comparison
        From `penstock.bench.compare_table`; the bars are its `groups`, at its level `alpha`.
    axes : Axes, optional
        Where to draw; by default a new figure.

    Returns
    -------
    Axes

    Examples
    --------
    >>> import matplotlib
    >>> matplotlib.use("Agg")
    >>> import pandas as pd
    >>> from penstock.bench import compare_table
    >>> found = compare_table(pd.DataFrame({"A": [9, 8, 9, 7], "B": [5, 6, 4, 8], "C": [1, 2, 3, 1]}))
    >>> [text.get_text() for text in plot_ranks(found).texts]
    ['A 1.25 ', 'B 1.75 ', ' C 3.00']
    """
    ranks, groups = comparison.mean_ranks, comparison.groups
    if not len(ranks):
        raise ValueError("There are no mean ranks to draw: " + " ".join(comparison.notes))
    if axes is None:
        height = 0.8 + 0.3 * ((len(ranks) + 1) // 2) + 0.15 * len(groups)
        axes = _pyplot().subplots(figsize=(4.5, height), layout="constrained")[1]
    assert axes is not None
    highest = max(len(ranks), 2)
    half = (len(ranks) + 1) // 2  # these are named on the left
    depth = 0.25 * len(groups) + 0.35  # below the axis, of the first name
    for place, (name, rank) in enumerate(ranks.items()):
        on_left = place < half
        step = place if on_left else len(ranks) - 1 - place
        at = depth + 0.5 * step
        side = 0.9 if on_left else highest + 0.1
        axes.plot([rank, rank, side], [0, at, at], color=_SOFT, linewidth=0.8, clip_on=False)
        axes.plot(rank, 0, "o", color=_INK, markersize=5, clip_on=False, zorder=3)
        words = f"{name} {rank:.2f} " if on_left else f" {name} {rank:.2f}"
        axes.text(side, at, words, ha="right" if on_left else "left", va="center", color=_INK)
    for number, group in enumerate(groups):
        ends = [ranks[group[0]], ranks[group[-1]]]
        axes.plot(ends, [0.2 + 0.25 * number] * 2, color=_BLUE, linewidth=4, solid_capstyle="round")
    axes.set_xlim(1, highest)
    axes.set_ylim(depth + 0.5 * half - 0.2, 0)  # downwards
    axes.xaxis.tick_top()
    axes.set_xticks(range(1, highest + 1))
    axes.set_yticks([])
    axes.spines[["left", "right", "bottom"]].set_visible(False)
    axes.spines["top"].set_visible(True)
    return axes


def _calm(axes: Axes) -> None:
    axes.spines[["top", "right", "left"]].set_visible(False)
    axes.grid(axis="y", color=_RULE)
    axes.set_axisbelow(True)
    axes.tick_params(colors=_SOFT, labelsize="small")


def _places(findings: Findings) -> Any:
    time, rows = findings.table.time, findings.table.values.index
    if time is None and rows.is_monotonic_increasing:
        return rows.to_numpy()
    return time.to_numpy() if time is not None and findings.table.in_time else np.arange(len(rows))


def _pyplot() -> Any:
    try:
        from matplotlib import pyplot
    except ImportError:
        raise ImportError("Figures need matplotlib: pip install 'penstock[plots]'.") from None
    return pyplot
